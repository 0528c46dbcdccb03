//! A model made of choices: wiring, types, versions and values that are mostly right, and sometimes anything. It gives
//! the same with and without optimization.

use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};
use crate::source::Source;
use onnxref::{DType, Error, Map, Model, Optional, Sequence, Tensor, Value, ValueType};
use prost::Message;

const DATA: [DType; 12] = [
    DType::Float,
    DType::Int64,
    DType::Int32,
    DType::Uint8,
    DType::String,
    DType::Double,
    DType::Bool,
    DType::Float16,
    DType::Complex128,
    DType::Complex64,
    DType::Bfloat16,
    DType::Int4,
];

const ODD_NAMES: [&str; 6] = ["", "a\nb", "\u{202e}x\"", "\u{1b}[31m", "é漢🙂", "\\"];

/// A name that a node may read.
struct Known {
    name: String,
    dtype: DType,
}

struct Maker<'a> {
    source: Source<'a>,
    known: Vec<Known>,
    /// Inputs that are not tensors.
    others: Vec<(String, ValueType)>,
    /// The functions so far.
    functions: Vec<FunctionProto>,
    /// Nodes are made for a function: their attributes may refer to its own.
    inside: bool,
    /// What sparse initializers stand for.
    dense: Vec<(String, Tensor)>,
    /// What is fed.
    feeds: Vec<(String, Value)>,
    /// The sizes of symbols.
    symbols: [usize; 3],
}

pub fn run(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let symbols = [source.dim(), source.dim(), source.dim()];
    let (known, others, functions, dense, feeds) = Default::default();
    let mut maker = Maker { source, known, others, functions, inside: false, dense, feeds, symbols };
    let mut proto = maker.model();
    let bytes = proto.encode_to_vec();
    let threads = 1 + maker.source.below(2);
    let options = Model::options().limits(crate::small_limits()).threads(threads);
    let options = options.compatibility(|c| c.gather_1_negative_indices = maker.source.once_in(4));
    let load = |optimize| options.clone().optimize(optimize).from_bytes(bytes.clone());
    let (model, plain) = match (load(true), load(false)) {
        (Ok(model), Ok(plain)) => (model, plain),
        (Err(error), Err(other)) => {
            let all = |error: &Error| error.causes().iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(all(&error), all(&other));
            assert_eq!(error.to_string(), other.to_string());
            return crate::check_error(&error);
        }
        (model, plain) => panic!("optimized: {model:?}, not optimized: {plain:?}"),
    };
    crate::check_notes(model.report());
    assert_eq!(model.report(), plain.report());
    // Feeds that the model doesn't take are left out, mostly.
    if !maker.source.once_in(16) {
        let takes: Vec<&str> = model.inputs().map(|info| info.name.as_str()).collect();
        maker.feeds.retain(|(name, _)| takes.contains(&name.as_str()));
    }
    if maker.source.once_in(16) {
        maker.feeds.pop();
    }
    match (crate::run_model(&model, &maker.feeds), crate::run_model(&plain, &maker.feeds)) {
        (Ok(outputs), Ok(others)) => {
            assert_eq!(outputs, others, "optimized and not optimized");
            proto.graph.iter_mut().for_each(|graph| graph.node.reverse());
            let unsorted = options.clone().compatibility(|c| c.unsorted_nodes = true);
            let unsorted = unsorted.from_bytes(proto.encode_to_vec()).expect("nodes in another order");
            let others = crate::run_model(&unsorted, &maker.feeds).expect("nodes in another order");
            assert_eq!(outputs, others, "nodes in another order");
            for (name, tensor) in &maker.dense {
                let fixed = model.inputs().all(|info| info.name != *name);
                for (_, value) in outputs.iter().filter(|(other, _)| fixed && other == name) {
                    assert_eq!(value, &Value::from(tensor), "a sparse initializer");
                }
            }
        }
        (Ok(_), Err(_)) => assert!(model.nodes().len() < plain.nodes().len(), "no node was left out that could fail"),
        (Err(error), Ok(_)) => panic!("only the optimized model fails: {error}"),
        (Err(error), Err(other)) if model.nodes().len() == plain.nodes().len() => {
            assert_eq!(error.to_string(), other.to_string());
        }
        (Err(_), Err(_)) => {}
    }
}

impl Maker<'_> {
    fn model(&mut self) -> ModelProto {
        let ir_version = match self.source.below(16) {
            15 => self.source.word(),
            14 => 3,
            13 => 2,
            12 => 15,
            n => 4 + n as i64 % 11,
        };
        let version = match self.source.below(16) {
            15 => self.source.word(),
            0..6 => 13,
            _ => 1 + self.source.below(28) as i64,
        };
        let domain = match self.source.below(16) {
            0..8 => None,
            15 => Some(self.name()),
            14 => Some("ai.onnx.ml".to_string()),
            8 => Some("ai.onnx".to_string()),
            _ => Some(String::new()),
        };
        let mut opset_import = vec![OperatorSetIdProto { domain, version: Some(version) }];
        match self.source.below(32) {
            31 => opset_import.clear(),
            30 => {
                opset_import.push(OperatorSetIdProto { domain: Some(self.name()), version: Some(self.source.axis()) })
            }
            _ if ir_version < 3 => opset_import.clear(),
            _ => {}
        }
        if self.source.once_in(2) {
            self.inside = true;
            for k in 0..1 + self.source.below(3) {
                let function = self.function(k, version);
                self.functions.push(function);
            }
            self.inside = false;
        }
        let mut model = ModelProto {
            ir_version: Some(ir_version),
            opset_import,
            graph: Some(self.graph(ir_version)),
            functions: self.functions.clone(),
            ..ModelProto::default()
        };
        if self.source.once_in(16) {
            model.producer_name = Some(self.source.text());
            model.metadata_props.push(StringStringEntryProto { key: Some(self.name()), value: None });
        }
        model
    }

    /// A function; it calls only those before it, mostly.
    fn function(&mut self, k: usize, version: i64) -> FunctionProto {
        let mut name = if self.source.once_in(8) { "F".to_string() } else { ["F", "G", "H"][k].to_string() };
        let mut domain = "f".to_string();
        match self.source.below(64) {
            63 => name = self.name(),
            62 => domain = self.name(),
            61 => (name, domain) = ("Gather".to_string(), String::new()),
            _ => {}
        }
        let overload = if self.source.once_in(4) { self.source.pick(&["o", "", "p"]) } else { "" };
        let types = [("a", DType::Float), ("b", DType::Int64), ("c", DType::Int32)];
        let types = &types[..3 - self.source.below(3)];
        self.known = types.iter().map(|&(name, dtype)| Known { name: name.into(), dtype }).collect();
        let mut function = FunctionProto {
            input: self.known.iter().map(|known| known.name.clone()).collect(),
            ..FunctionProto::default()
        };
        let version = if self.source.once_in(4) { self.source.pick(&[13, 11, 1, 12, 18, 99]) } else { version };
        if !self.source.once_in(32) {
            function.opset_import.push(OperatorSetIdProto { domain: None, version: Some(version) });
        }
        match self.source.below(16) {
            15 => {}
            0..8 => function.attribute.push("axis".into()),
            n => {
                if n == 14 {
                    function.attribute.push("axis".into());
                }
                let (inside, axis) = (std::mem::take(&mut self.inside), self.attribute("axis"));
                self.inside = inside;
                function.attribute_proto.push(axis);
            }
        }
        for k in 0..1 + self.source.below(4) {
            function.node.push(self.node(k));
        }
        if self.source.once_in(48) {
            let (op_type, domain) = (Some(name.clone()), Some(domain.clone()));
            function.node.push(NodeProto { op_type, domain, output: vec!["again".into()], ..NodeProto::default() });
        }
        for n in 0..1 + self.source.below(2) {
            let last = self.known.len() - 1;
            let at = if n == 0 { last } else { (types.len() + self.source.below(last + 1 - types.len())).min(last) };
            function.output.push(if self.source.once_in(32) { self.name() } else { self.known[at].name.clone() });
        }
        function.output.dedup();
        match self.source.below(64) {
            63 => function.input.push(self.name()),
            62 => function.output.push(self.name()),
            61 => function.node.reverse(),
            _ => {}
        }
        self.known.clear();
        (function.name, function.domain, function.overload) = (Some(name), Some(domain), Some(overload.into()));
        function
    }

    fn graph(&mut self, ir_version: i64) -> GraphProto {
        let mut graph = GraphProto { name: Some("graph".into()), ..GraphProto::default() };
        for k in 0..1 + self.source.below(4) {
            let (name, dtype) = (self.new_name("i", k), self.dtype(k));
            let (dims, declared) = self.shape();
            let mut fed = (dtype, dims.clone());
            match self.source.below(32) {
                31 => fed.0 = self.dtype(k),
                30 => fed.1 = self.source.dims(4, 64),
                _ => {}
            }
            let tensor = self.source.tensor(fed.0, &fed.1);
            graph.input.push(self.value_info(&name, dtype, declared));
            // A default, which is fed or not.
            if self.source.once_in(6) {
                let default = self.source.tensor(dtype, &dims);
                graph.initializer.push(self.source.message(&name, &default));
                if self.source.once_in(2) {
                    self.feeds.push((name.clone(), tensor.into()));
                }
            } else {
                self.feeds.push((name.clone(), tensor.into()));
            }
            self.known.push(Known { name, dtype });
        }
        for k in 0..self.source.below(4) {
            let (name, dtype) = (self.new_name("c", k), self.dtype(k));
            let dims = self.source.dims(4, 64);
            let tensor = self.source.tensor(dtype, &dims);
            graph.initializer.push(self.source.message(&name, &tensor));
            if ir_version < 4 && !self.source.once_in(8) {
                graph.input.push(self.value_info(&name, dtype, None));
            }
            self.known.push(Known { name, dtype });
        }
        for k in 0..self.source.below(8).saturating_sub(5) {
            let (name, dtype) = (self.new_name("z", k), self.dtype(k));
            graph.sparse_initializer.push(self.sparse(&name, dtype));
            self.known.push(Known { name, dtype });
        }
        for k in 0..self.source.below(8).saturating_sub(5) {
            let (name, value_type) = (self.new_name("s", k), self.other_type());
            let fed = if self.source.once_in(32) { self.other_type() } else { value_type.clone() };
            let value = self.value(&fed);
            self.feeds.push((name.clone(), value));
            graph.input.push(self.declared(&name, &value_type));
            if self.source.once_in(32) {
                let default = self.source.tensor(DType::Float, &[1]);
                graph.initializer.push(self.source.message(&name, &default));
            }
            self.others.push((name, value_type));
        }
        let constants = self.known.len();
        for k in 0..self.source.below(7) {
            graph.node.push(self.node(k));
        }
        if self.source.once_in(32) && graph.node.len() > 1 {
            graph.node.reverse();
        }
        for k in 0..1 + self.source.below(3) {
            let from = if k == 0 && self.known.len() > constants { self.known.len() - 1 } else { 0 };
            let at = from + self.source.below(self.known.len() - from);
            let (mut name, mut dtype) = (self.known[at].name.clone(), self.known[at].dtype);
            match self.source.below(32) {
                31 => name = self.name(),
                30 => dtype = self.dtype(at),
                _ => {}
            }
            let declared = if self.source.once_in(2) { self.shape().1 } else { None };
            let info = self.value_info(&name, dtype, declared);
            graph.output.push(info);
        }
        if !self.others.is_empty() && !self.source.once_in(4) {
            let (name, mut value_type) = self.others[self.source.below(self.others.len())].clone();
            if self.source.once_in(32) {
                value_type = self.other_type();
            }
            graph.output.push(self.declared(&name, &value_type));
        }
        if self.source.once_in(8) {
            let Known { name, dtype } = &self.known[self.source.below(self.known.len())];
            let (name, dtype) = (name.clone(), *dtype);
            let info = self.value_info(&name, dtype, None);
            graph.value_info.push(info);
        }
        graph
    }

    fn node(&mut self, k: usize) -> NodeProto {
        if !self.functions.is_empty() && !self.source.once_in(3) {
            return self.call(k);
        }
        let operator = match self.source.below(32) {
            31 => self.name(),
            30 => "Add".to_string(),
            29 => "If".to_string(),
            n => ["Gather", "GatherElements", "GatherND"][n % 3].to_string(),
        };
        let data = self.source.below(self.known.len());
        let indices = self.indices(operator == "GatherND");
        let dtype = self.known[data].dtype;
        let mut input = vec![self.known[data].name.clone(), self.known[indices].name.clone()];
        match self.source.below(64) {
            63 => input[1] = self.name(),
            62 => input.push(self.name()),
            61 => input.truncate(self.source.below(2)),
            60 if !self.others.is_empty() => input[0] = self.others[0].0.clone(),
            _ => {}
        }
        let name = self.new_name("v", k);
        let mut output = vec![name.clone()];
        if self.source.once_in(64) {
            output.push(self.name());
        }
        let mut attribute = Vec::new();
        if self.source.once_in(2) {
            let attribute_name = if operator == "GatherND" { "batch_dims" } else { "axis" };
            attribute.push(self.attribute(attribute_name));
            match self.source.below(64) {
                63 => attribute[0].name = Some(self.name()),
                62 => attribute[0].r#type = Some(self.source.below(18) as i32 - 1),
                61 => attribute[0].r#type = None,
                60 => attribute[0].f = Some(1.0),
                59 => attribute[0].i = None,
                58 => attribute.push(attribute[0].clone()),
                57 => attribute[0].g = Some(Box::new(GraphProto { node: vec![self.node(k)], ..GraphProto::default() })),
                _ => {}
            }
        }
        let node = NodeProto {
            name: self.source.once_in(2).then(|| self.name()),
            op_type: Some(operator),
            domain: self.source.once_in(32).then(|| self.name()),
            input,
            output,
            attribute,
            ..NodeProto::default()
        };
        self.known.push(Known { name, dtype });
        node
    }

    /// A call of a function.
    fn call(&mut self, k: usize) -> NodeProto {
        let called = self.source.below(self.functions.len());
        let FunctionProto { name, domain, overload, input, output, attribute, attribute_proto, .. } =
            self.functions[called].clone();
        let data = self.source.below(self.known.len());
        let (indices, dtype) = (self.indices(false), self.known[data].dtype);
        let mut call = NodeProto { op_type: name, domain, overload, ..NodeProto::default() };
        for n in 0..input.len() {
            let at = if n == 0 { data } else { indices };
            call.input.push(match self.source.below(32) {
                31 => String::new(),
                30 => self.name(),
                24.. if n > 0 && !self.others.is_empty() => self.others[0].0.clone(),
                _ => self.known[at].name.clone(),
            });
        }
        for n in 0..output.len() {
            let name = if self.source.once_in(16) { String::new() } else { self.new_name(["v", "w"][n.min(1)], k) };
            call.output.push(name.clone());
            if !name.is_empty() {
                self.known.push(Known { name, dtype });
            }
        }
        let takes = !attribute.is_empty() || !attribute_proto.is_empty();
        if takes && !self.source.once_in(3) {
            call.attribute.push(self.attribute("axis"));
        }
        match self.source.below(64) {
            63 => call.attribute.push(self.attribute("batch_dims")),
            62 => call.overload = Some(self.source.pick(&["o", "", "p"]).into()),
            61 => call.input.push(self.name()),
            60 => call.output.push(self.name()),
            59 => drop(call.input.pop()),
            58 => drop(call.output.pop()),
            57 => call.name = Some(self.name()),
            56 if !call.attribute.is_empty() => call.attribute[0].r#type = Some(AttributeType::Float.into()),
            _ => {}
        }
        call
    }

    /// What is mostly of a type that indices have.
    fn indices(&mut self, wide: bool) -> usize {
        let fit = |known: &Known| known.dtype == DType::Int64 || !wide && known.dtype == DType::Int32;
        let indices: Vec<usize> = (0..self.known.len()).filter(|&k| fit(&self.known[k])).collect();
        match indices.as_slice() {
            list if !list.is_empty() && !self.source.once_in(32) => self.source.pick(list),
            _ => self.source.below(self.known.len()),
        }
    }

    /// A number, or in a function a reference to the number that its call gives.
    fn attribute(&mut self, name: &str) -> AttributeProto {
        let refers = self.inside && !self.source.once_in(3);
        AttributeProto {
            name: Some(name.into()),
            r#type: Some(AttributeType::Int.into()),
            i: (!refers).then(|| self.source.axis()),
            ref_attr_name: refers.then(|| if self.source.once_in(32) { self.name() } else { "axis".into() }),
            ..AttributeProto::default()
        }
    }

    /// A sparse initializer; seldom a wrong one.
    fn sparse(&mut self, name: &str, dtype: DType) -> SparseTensorProto {
        let dims = self.source.dims(3, 64);
        let (count, step) = (dims.iter().product::<usize>(), 1 + self.source.below(4));
        let places: Vec<usize> = (self.source.below(step)..count).step_by(step).collect();
        let values = self.source.tensor(dtype, &[places.len()]);
        if dtype != DType::String {
            let size = dtype.size();
            let mut bytes = vec![0; count * size];
            for (value, place) in values.bytes().chunks_exact(size).zip(&places) {
                bytes[place * size..][..size].copy_from_slice(value);
            }
            self.dense.push((name.to_string(), Tensor::new(dtype, &dims, bytes).expect("bytes of the type")));
        }
        let (n, rank) = (places.len(), dims.len());
        let mut shape = vec![n];
        let mut indices: Vec<i64> = places.iter().map(|place| *place as i64).collect();
        if self.source.once_in(2) {
            shape.push(rank);
            let coordinate =
                |place: usize, axis: usize| place / dims[axis + 1..].iter().product::<usize>() % dims[axis];
            let coordinates = |place: &usize| (0..rank).map(|axis| coordinate(*place, axis) as i64).collect::<Vec<_>>();
            indices = places.iter().flat_map(coordinates).collect();
        }
        let mut dims: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
        let wrong = self.source.below(64);
        match wrong {
            63 => indices.reverse(),
            62 => indices.iter_mut().take(1).for_each(|index| *index = self.source.axis()),
            61 => dims.iter_mut().take(1).for_each(|dim| *dim = self.source.axis()),
            60 => dims.push(self.source.axis()),
            59 => shape.push(1),
            _ => {}
        }
        let bytes: Vec<u8> = indices.iter().flat_map(|index| index.to_le_bytes()).collect();
        let decoded =
            |tensor: Tensor, name| TensorProto::decode(&*tensor.to_proto_bytes(name)).expect("what was encoded");
        let indices = decoded(Tensor::new(DType::Int64, &shape, bytes).expect("as many as the shape takes"), "");
        let (mut values, mut indices) = (Some(Box::new(decoded(values, name))), Some(Box::new(indices)));
        match wrong {
            58 => values = None,
            57 => indices = None,
            56 => values.as_mut().into_iter().for_each(|values| values.dims.push(1)),
            _ => {}
        }
        if (56..64).contains(&wrong) {
            self.dense.pop();
        }
        SparseTensorProto { values, indices, dims }
    }

    /// A type that is not a tensor's.
    fn other_type(&mut self) -> ValueType {
        let element = ValueType::Tensor(self.dtype(0));
        let key = self.source.pick(&[DType::Int64, DType::String, DType::Int32, DType::Uint8]);
        match self.source.below(8) {
            0..3 => element.sequence(),
            3 | 4 => element.optional(),
            5 => ValueType::Map(key, Box::new(element)),
            6 => ValueType::Map(key, Box::new(element)).sequence(),
            _ => element.sequence().optional(),
        }
    }

    fn value(&mut self, value_type: &ValueType) -> Value {
        let count = self.source.below(3);
        let mut values = |element: &ValueType| {
            let values: Vec<Value> = (0..count).map(|_| self.value(element)).collect();
            Sequence::new(element.clone(), values).expect("values of the type")
        };
        match value_type {
            ValueType::Sequence(element) => values(element).into(),
            ValueType::Optional(element) if count == 0 => Optional::none((**element).clone()).into(),
            ValueType::Optional(element) => Optional::some(self.value(element)).into(),
            ValueType::Map(key, element) => {
                let values = values(element);
                Map::new(self.source.tensor(*key, &[count]), values).expect("as many keys as values").into()
            }
            other => {
                let dims = self.source.dims(2, 8);
                self.source.tensor(other.dtype().unwrap_or(DType::Float), &dims).into()
            }
        }
    }

    /// An input or output of a type; seldom of none, or of half a type.
    fn declared(&mut self, name: &str, value_type: &ValueType) -> ValueInfoProto {
        let r#type = match self.source.below(64) {
            63 => None,
            62 => Some(TypeProto { value: Some(type_proto::Value::OptionalType(Box::default())), denotation: None }),
            _ => Some(type_of(value_type)),
        };
        ValueInfoProto { name: Some(name.to_string()), r#type, ..ValueInfoProto::default() }
    }

    /// Mostly of a type that other nodes can use.
    fn dtype(&mut self, k: usize) -> DType {
        let n = self.source.below(256);
        match n {
            255 => DType::Uint2,
            254 => DType::Float8e5m2,
            253 => DType::Float6e3m2,
            _ if k == 1 && n > 16 => DType::Int64,
            _ => DATA[n % DATA.len()],
        }
    }

    /// A shape, and how it is declared.
    fn shape(&mut self) -> (Vec<usize>, Option<Vec<Dimension>>) {
        let mut dims = self.source.dims(4, 64);
        if self.source.once_in(3) {
            return (dims, None);
        }
        let mut declared = Vec::new();
        for dim in &mut dims {
            let value = match self.source.below(16) {
                15 => None,
                14 => Some(dimension::Value::DimParam(ODD_NAMES[self.source.below(6)].into())),
                13 => Some(dimension::Value::DimValue(self.source.axis())),
                n @ 9..=12 => {
                    let k = n % 3;
                    *dim = self.symbols[k];
                    Some(dimension::Value::DimParam(["n", "m", "batch"][k].into()))
                }
                _ => Some(dimension::Value::DimValue(*dim as i64)),
            };
            declared.push(Dimension { value, denotation: None });
        }
        if dims.iter().product::<usize>() > 4096 {
            return (vec![1], None);
        }
        (dims, Some(declared))
    }

    fn value_info(&mut self, name: &str, dtype: DType, dims: Option<Vec<Dimension>>) -> ValueInfoProto {
        let elem_type = if self.source.once_in(64) { self.source.axis() as i32 } else { dtype.code() };
        let shape = dims.map(|dim| TensorShapeProto { dim });
        let tensor = type_proto::Tensor { elem_type: Some(elem_type), shape };
        let value = match self.source.below(64) {
            63 => None,
            62 => Some(type_proto::Value::OpaqueType(type_proto::Opaque::default())),
            61 => Some(type_proto::Value::SequenceType(Box::default())),
            _ => Some(type_proto::Value::TensorType(tensor)),
        };
        ValueInfoProto {
            name: Some(name.to_string()),
            r#type: Some(TypeProto { value, denotation: None }),
            ..ValueInfoProto::default()
        }
    }

    /// A name for a value, nearly always a new one.
    fn new_name(&mut self, what: &str, k: usize) -> String {
        if self.source.once_in(48) { self.name() } else { format!("{what}{k}") }
    }

    /// Any name: one that is there, one that may be, an odd one.
    fn name(&mut self) -> String {
        match self.source.below(8) {
            0..3 if !self.known.is_empty() => self.known[self.source.below(self.known.len())].name.clone(),
            3 => format!("v{}", self.source.below(8)),
            4 => self.source.text(),
            5 => self.source.text().repeat(20),
            _ => self.source.pick(&ODD_NAMES).to_string(),
        }
    }
}

/// The message of a type.
pub(crate) fn type_of(value_type: &ValueType) -> TypeProto {
    let inner = |element: &ValueType| Some(Box::new(type_of(element)));
    let value = match value_type {
        ValueType::Sequence(element) => {
            type_proto::Value::SequenceType(Box::new(type_proto::Sequence { elem_type: inner(element) }))
        }
        ValueType::Optional(element) => {
            type_proto::Value::OptionalType(Box::new(type_proto::Optional { elem_type: inner(element) }))
        }
        ValueType::Map(key, value) => type_proto::Value::MapType(Box::new(type_proto::Map {
            key_type: Some(key.code()),
            value_type: inner(value),
        })),
        other => {
            type_proto::Value::TensorType(type_proto::Tensor { elem_type: other.dtype().map(DType::code), shape: None })
        }
    };
    TypeProto { value: Some(value), denotation: None }
}
