//! A model made of choices: wiring, types, versions and values that are mostly right, and sometimes anything.

use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorShapeProto,
    TypeProto, ValueInfoProto, type_proto,
};
use crate::source::Source;
use onnxref::{DType, Model, Value};
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
    /// What is fed.
    feeds: Vec<(String, Value)>,
    /// The sizes of symbols.
    symbols: [usize; 3],
}

pub fn run(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let symbols = [source.dim(), source.dim(), source.dim()];
    let mut maker = Maker { source, known: Vec::new(), feeds: Vec::new(), symbols };
    let model = maker.model();
    let threads = 1 + maker.source.below(2);
    let options = Model::options().limits(crate::small_limits()).threads(threads);
    let options = options.compatibility(|c| c.gather_1_negative_indices = maker.source.once_in(4));
    let model = match options.from_bytes(model.encode_to_vec()) {
        Ok(model) => model,
        Err(error) => return crate::check_error(&error),
    };
    crate::check_notes(model.report());
    // Feeds that the model doesn't take are left out, mostly.
    if !maker.source.once_in(16) {
        let takes: Vec<&str> = model.inputs().map(|info| info.name.as_str()).collect();
        maker.feeds.retain(|(name, _)| takes.contains(&name.as_str()));
    }
    if maker.source.once_in(16) {
        maker.feeds.pop();
    }
    let _ = crate::run_model(&model, &maker.feeds);
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
        let mut model = ModelProto {
            ir_version: Some(ir_version),
            opset_import,
            graph: Some(self.graph(ir_version)),
            ..ModelProto::default()
        };
        if self.source.once_in(16) {
            model.producer_name = Some(self.source.text());
            model.metadata_props.push(StringStringEntryProto { key: Some(self.name()), value: None });
        }
        model
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
        if self.source.once_in(8) {
            let Known { name, dtype } = &self.known[self.source.below(self.known.len())];
            let (name, dtype) = (name.clone(), *dtype);
            let info = self.value_info(&name, dtype, None);
            graph.value_info.push(info);
        }
        graph
    }

    fn node(&mut self, k: usize) -> NodeProto {
        let operator = match self.source.below(32) {
            31 => self.name(),
            30 => "Add".to_string(),
            29 => "If".to_string(),
            n => ["Gather", "GatherElements", "GatherND"][n % 3].to_string(),
        };
        let data = self.source.below(self.known.len());
        let wide = operator == "GatherND";
        let fit = |known: &Known| known.dtype == DType::Int64 || !wide && known.dtype == DType::Int32;
        let indices: Vec<usize> = (0..self.known.len()).filter(|&k| fit(&self.known[k])).collect();
        let indices = match indices.as_slice() {
            list if !list.is_empty() && !self.source.once_in(32) => self.source.pick(list),
            _ => self.source.below(self.known.len()),
        };
        let dtype = self.known[data].dtype;
        let mut input = vec![self.known[data].name.clone(), self.known[indices].name.clone()];
        match self.source.below(64) {
            63 => input[1] = self.name(),
            62 => input.push(self.name()),
            61 => input.truncate(self.source.below(2)),
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
            attribute.push(AttributeProto {
                name: Some(attribute_name.into()),
                r#type: Some(AttributeType::Int.into()),
                i: Some(self.source.axis()),
                ..AttributeProto::default()
            });
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
