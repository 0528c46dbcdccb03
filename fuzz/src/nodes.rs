//! One node of any operator in any version: types as the standard's table has them, shapes and attributes that mostly
//! fit. It ends in outputs or in an error; the same with and without optimization and for any number of threads, and
//! what follows for its outputs before a run is true of them.

use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};
use crate::source::{Source, element};
use onnxref::schema::{self, Arity, AttributeKind, AttributeSchema, Schema};
use onnxref::{DType, Dim, Error, Kind, Map, Model, Optional, Sequence, Tensor, TypeSet, Value, ValueType};
use prost::Message;
use std::sync::OnceLock;

/// Elements of an input.
const MOST: usize = 600;

/// Shapes that go together, of operators that need more than luck: sizes, letters for sizes, and letters times a number.
/// The attribute `hidden_size` is `h`.
const SHAPES: &[(&str, &[&str])] = &[
    ("Adagrad", &["", "", "a b", "a b", "a b"]),
    ("Adam", &["", "", "a b", "a b", "a b", "a b"]),
    ("Attention", &["a h b 2", "a h c 2", "a h c 2"]),
    ("DeformConv", &["a h 3 4", "b h 1 1", "a 2 3 4", "b", "a 1 3 4"]),
    ("GRU", &["a b c", "1 3h c", "1 3h h", "1 6h", "b", "1 b h"]),
    ("LSTM", &["a b c", "1 4h c", "1 4h h", "1 8h", "b", "1 b h", "1 b h", "1 3h"]),
    ("LinearAttention", &["a h b 2", "a h b 2", "a h b 3", "a h 2 3"]),
    ("MaxRoiPool", &["a b 3 4", "c 5"]),
    ("Momentum", &["", "", "a b", "a b", "a b"]),
    ("NonMaxSuppression", &["a b 4", "a c b", "1", "1", "1"]),
    ("QLinearConv", &["a h 3 4", "", "", "b h 2 1", "", "", "", "", "b"]),
    ("RNN", &["a b c", "1 h c", "1 h h", "1 2h", "b", "1 b h"]),
    ("RoiAlign", &["a b 3 4", "c 4", "c"]),
    ("RotaryEmbedding", &["a h b 4", "5 2", "5 2", "a b"]),
];

/// Every version of every operator that has no graphs among its attributes: those are made by the target `graphs`.
fn table() -> &'static [Schema] {
    static TABLE: OnceLock<Vec<Schema>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let all = schema::operators().filter(|(domain, _)| *domain != "org.openvinotoolkit");
        let all = all.flat_map(|(domain, name)| schema::history(domain, name).expect("an operator of the table"));
        let plain = |schema: &Schema| {
            let graphs = |a: &AttributeSchema| matches!(a.kind, AttributeKind::Graph | AttributeKind::Graphs);
            schema.deprecated.is_none() && !schema.attributes.iter().any(graphs)
        };
        all.filter(plain).collect()
    })
}

pub fn run(bytes: &[u8]) {
    let table = table();
    let mut source = Source::new(bytes);
    let chosen = usize::from(source.byte()) << 8 | usize::from(source.byte());
    drop(outcome(&table[chosen % table.len()], &mut source));
}

struct Maker<'a, 'b> {
    source: &'a mut Source<'b>,
    schema: &'a Schema,
    /// The sizes that dimensions are drawn from: few, so that they often agree.
    sizes: [usize; 3],
    /// The shapes are those of [`SHAPES`].
    fitting: bool,
    /// The shape of the first input.
    first: Vec<usize>,
    /// The types that variables stand for.
    variables: Vec<(String, ValueType)>,
    /// The length of lists among the attributes.
    length: usize,
    inputs: Vec<ValueInfoProto>,
    initializers: Vec<TensorProto>,
    feeds: Vec<(String, Value)>,
}

/// Makes a node of an operator and runs it.
fn outcome(schema: &Schema, source: &mut Source<'_>) -> Result<(), Error> {
    let sizes = [1 + source.below(4), 1 + source.below(3), source.dim()];
    let (length, fitting) = (1 + source.below(4), !source.once_in(3));
    let (first, variables, inputs, initializers, feeds) = Default::default();
    let mut maker = Maker { source, schema, sizes, fitting, first, variables, length, inputs, initializers, feeds };
    let proto = maker.model();
    let (bytes, feeds) = (proto.encode_to_vec(), maker.feeds);
    let told = || format!("{}-{} {:?} {feeds:?}", schema.name, schema.since_version, proto.graph);
    let run = |optimize, threads| {
        let options = Model::options().limits(crate::small_limits()).optimize(optimize).threads(threads);
        let outcome = options.from_bytes(bytes.clone()).and_then(|model| crate::run_model(&model, &feeds));
        outcome.inspect_err(crate::check_error)
    };
    let first = run(true, 1);
    match (&first, &run(false, 3)) {
        (Ok(first), Ok(other)) => assert_eq!(first, other, "{}", told()),
        // What counts toward the limits depends on both.
        (Err(error), _) | (_, Err(error)) if error.kind() == Kind::Limit => {}
        (Err(first), Err(other)) => assert_eq!(first.kind(), other.kind(), "{first}; {other}: {}", told()),
        (first, other) => panic!("{first:?}; not optimized, 3 threads: {other:?}: {}", told()),
    }
    let outputs = first?;
    let found = Model::options().limits(crate::small_limits()).inspect_bytes(bytes).expect("a model that runs");
    assert!(
        found.error.is_none() && found.mismatches.is_empty(),
        "{:?} {:?}: {}",
        found.error,
        found.mismatches,
        told()
    );
    for value in &found.graph.values {
        let Some((name, output)) = outputs.iter().find(|(name, _)| *name == value.name) else { continue };
        assert!(value.value_type.as_ref().is_none_or(|t| output.is_of(t)), "{name}: {value:?}: {}", told());
        if let (Some(shape), Value::Tensor(tensor)) = (&value.shape, output) {
            let fits = |(dim, size): (&Dim, &usize)| !matches!(dim, Dim::Fixed(fixed) if fixed != size);
            let agrees = shape.len() == tensor.rank() && shape.iter().zip(tensor.shape()).all(fits);
            assert!(agrees, "{name}: {shape:?}, and it has {:?}: {}", tensor.shape(), told());
        }
    }
    Ok(())
}

impl Maker<'_, '_> {
    fn model(&mut self) -> ModelProto {
        let schema = self.schema;
        let mut input = Vec::new();
        for parameter in &schema.inputs {
            let count = match parameter.arity {
                Arity::One => 1,
                // The first ones are the more useful ones.
                Arity::Optional => usize::from(!self.source.once_in(2)),
                Arity::Variadic(least) => least.max(self.source.below(4)),
                other => panic!("a number of values that isn't known: {other:?}"),
            };
            for _ in 0..count {
                let value_type = self.type_of(parameter.variable.as_deref(), &parameter.types);
                input.push(self.value(&value_type, input.len()));
            }
            if count == 0 {
                input.push(String::new());
            }
        }
        while input.last().is_some_and(String::is_empty) {
            input.pop();
        }
        let mut attribute = Vec::new();
        for formal in &schema.attributes {
            // Without a seed, each run draws other numbers.
            if formal.required || formal.name == "seed" || self.source.once_in(3) {
                attribute.extend(self.attribute(formal));
            }
        }
        let given = self.source.below(schema.outputs.len() + 1).max(1);
        let output: Vec<String> = (0..given).map(|k| format!("y{k}")).collect();
        let node = NodeProto {
            op_type: Some(schema.name.clone()),
            domain: Some(schema.domain.clone()),
            input,
            output: output.clone(),
            attribute,
            ..NodeProto::default()
        };
        let outputs = output.into_iter().map(|name| ValueInfoProto { name: Some(name), ..ValueInfoProto::default() });
        let graph = GraphProto {
            name: Some("graph".into()),
            node: vec![node],
            input: std::mem::take(&mut self.inputs),
            initializer: std::mem::take(&mut self.initializers),
            output: outputs.collect(),
            ..GraphProto::default()
        };
        let import = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
        let mut opset_import = vec![import(&schema.domain, schema.since_version)];
        if !schema.domain.is_empty() {
            opset_import.push(import("", 21));
        }
        ModelProto { ir_version: Some(10), opset_import, graph: Some(graph), ..ModelProto::default() }
    }

    /// The type of a value; that of its variable, once this has one.
    fn type_of(&mut self, variable: Option<&str>, types: &TypeSet) -> ValueType {
        if let Some((_, found)) = self.variables.iter().find(|(name, _)| Some(name.as_str()) == variable) {
            return found.clone();
        }
        let all: Vec<ValueType> = types.iter().collect();
        let float = ValueType::Tensor(DType::Float);
        let chosen = match self.source.below(4) {
            0 if types.contains(&float) => float,
            _ => all[self.source.below(all.len())].clone(),
        };
        if let Some(variable) = variable {
            self.variables.push((variable.into(), chosen.clone()));
        }
        chosen
    }

    /// A shape that may go with that of the first input.
    fn shape(&mut self, place: usize) -> Vec<usize> {
        let known = SHAPES.iter().find(|(name, _)| *name == self.schema.name);
        if let Some(shape) = known.and_then(|(_, shapes)| shapes.get(place)).filter(|_| self.fitting) {
            let dims: Vec<usize> = shape.split(' ').filter(|dim| !dim.is_empty()).map(|dim| self.named(dim)).collect();
            if place == 0 {
                self.first.clone_from(&dims);
            }
            return dims;
        }
        if place == 0 {
            let rank = self.source.pick(&[2, 3, 4, 1, 4, 3, 2, 5, 0]);
            self.first = (0..rank).map(|_| self.size()).collect();
            crate::source::fit(&mut self.first, MOST);
            return self.first.clone();
        }
        let mut dims = match self.source.below(8) {
            0 | 1 => self.first.clone(),
            2 => vec![self.first.get(self.source.below(self.first.len().max(1))).copied().unwrap_or(1)],
            3 => vec![],
            4 => vec![self.source.pick(&[1, self.first.len(), 2 * self.first.len()])],
            5 => self.first.iter().skip(1).copied().collect(),
            6 => (0..self.first.len()).map(|_| self.size()).collect(),
            _ => (0..1 + self.source.below(3)).map(|_| self.size()).collect(),
        };
        crate::source::fit(&mut dims, MOST);
        dims
    }

    /// A size of [`SHAPES`].
    fn named(&self, dim: &str) -> usize {
        let size = |letter| match letter {
            "h" | "a" => self.sizes[0],
            "b" => self.sizes[1],
            _ => self.sizes[2],
        };
        let (times, letter) = dim.split_at(dim.find(char::is_alphabetic).unwrap_or(dim.len()));
        times.parse().unwrap_or(1) * if letter.is_empty() { 1 } else { size(letter) }
    }

    fn size(&mut self) -> usize {
        self.source.pick(&self.sizes)
    }

    /// The name of a value that is fed, or an initializer.
    fn value(&mut self, value_type: &ValueType, place: usize) -> String {
        let name = format!("x{place}");
        let value = self.of_type(value_type, place);
        if let Value::Tensor(tensor) = &value
            && self.source.once_in(3)
        {
            let bytes = tensor.to_proto_bytes(&name);
            self.initializers.push(TensorProto::decode(&*bytes).expect("what was encoded"));
            return name;
        }
        let shape = match &value {
            Value::Tensor(tensor) if self.source.once_in(2) => Some(tensor.shape().to_vec()),
            _ => None,
        };
        let r#type = Some(declared(value_type, shape.as_deref()));
        self.inputs.push(ValueInfoProto { name: Some(name.clone()), r#type, ..ValueInfoProto::default() });
        self.feeds.push((name.clone(), value));
        name
    }

    fn of_type(&mut self, value_type: &ValueType, place: usize) -> Value {
        match value_type {
            ValueType::Tensor(dtype) => {
                let dims = self.shape(place);
                self.tensor(*dtype, &dims).into()
            }
            ValueType::Sequence(element) => {
                let count = self.source.below(4);
                let values: Vec<Value> = (0..count).map(|_| self.of_type(element, place)).collect();
                Value::Sequence(Sequence::new((**element).clone(), values).expect("values of the type"))
            }
            ValueType::Optional(element) if self.source.once_in(3) => {
                Value::Optional(Optional::none((**element).clone()))
            }
            ValueType::Optional(element) => Value::Optional(Optional::some(self.of_type(element, place))),
            ValueType::Map(key, element) => {
                let count = self.source.below(4);
                let keys = match key {
                    DType::String => Tensor::from_strings(&[count], (0..count).map(|k| format!("{k}"))),
                    _ => Tensor::new(
                        *key,
                        &[count],
                        (0..count as i64).flat_map(|k| k.to_le_bytes()[..key.size()].to_vec()).collect::<Vec<u8>>(),
                    ),
                };
                let values: Vec<Value> = (0..count)
                    .map(|_| Value::Tensor(self.tensor(element.dtype().unwrap_or(DType::Float), &[])))
                    .collect();
                let values = Sequence::new((**element).clone(), values).expect("values of the type");
                Value::Map(Map::new(keys.expect("as many as the shape takes"), values).expect("a value for each key"))
            }
            other => panic!("a type that isn't known: {other}"),
        }
    }

    /// Small numbers mostly, or any bits.
    fn tensor(&mut self, dtype: DType, dims: &[usize]) -> Tensor {
        let count: usize = dims.iter().product();
        let (seed, wild) = (self.source.byte(), self.source.once_in(6));
        if dtype == DType::String {
            let strings = (0..count).map(|k| ["a", "", "b c", "1", "É", "-2.5", "nan"][(k + usize::from(seed)) % 7]);
            return Tensor::from_strings(dims, strings).expect("as many as the shape takes");
        }
        let mut bytes = Vec::with_capacity(count * dtype.size());
        for k in 0..count {
            let small = ((k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize + usize::from(seed);
            let small = if seed < 128 { (small % 4) as i64 } else { (small % 7) as i64 - 3 };
            let half = small as f32 / 2.0;
            match dtype {
                _ if wild => bytes.extend(element(dtype, k, seed)),
                DType::Float => bytes.extend(half.to_le_bytes()),
                DType::Double => bytes.extend(f64::from(half).to_le_bytes()),
                DType::Float16 => bytes.extend(half::f16::from_f32(half).to_le_bytes()),
                DType::Bfloat16 => bytes.extend(half::bf16::from_f32(half).to_le_bytes()),
                DType::Int64 | DType::Int32 | DType::Int16 | DType::Int8 => {
                    bytes.extend(&small.to_le_bytes()[..dtype.size()]);
                }
                DType::Uint64 | DType::Uint32 | DType::Uint16 | DType::Uint8 => {
                    bytes.extend(&small.unsigned_abs().to_le_bytes()[..dtype.size()]);
                }
                _ => bytes.extend(element(dtype, k, seed)),
            }
        }
        Tensor::new(dtype, dims, bytes).expect("bytes of the type")
    }

    fn attribute(&mut self, formal: &AttributeSchema) -> Option<AttributeProto> {
        let mut proto = AttributeProto { name: Some(formal.name.clone()), ..AttributeProto::default() };
        let kind = match formal.kind {
            AttributeKind::Float => {
                proto.f = Some(self.float());
                AttributeType::Float
            }
            AttributeKind::Int => {
                proto.i = Some(self.int(&formal.name));
                AttributeType::Int
            }
            AttributeKind::String => {
                proto.s = Some(self.word(&formal.name).into());
                AttributeType::String
            }
            AttributeKind::Floats => {
                proto.floats = (0..self.length).map(|_| self.float()).collect();
                AttributeType::Floats
            }
            AttributeKind::Ints => {
                proto.ints = self.ints(&formal.name);
                AttributeType::Ints
            }
            AttributeKind::Strings => {
                proto.strings = (0..self.length).map(|_| self.word(&formal.name).into()).collect();
                AttributeType::Strings
            }
            AttributeKind::Tensor => {
                let dtype = self.source.pick(&[
                    DType::Float,
                    DType::Int64,
                    DType::Double,
                    DType::String,
                    DType::Int32,
                    DType::Uint8,
                ]);
                let dims = vec![self.length; self.source.pick(&[1, 1, 0, 2])];
                let bytes = self.tensor(dtype, &dims).to_proto_bytes("t");
                proto.t = Some(Box::new(TensorProto::decode(&*bytes).expect("what was encoded")));
                AttributeType::Tensor
            }
            AttributeKind::TypeProto => {
                proto.tp = Some(Box::new(declared(&ValueType::Tensor(DType::Float).sequence(), None)));
                AttributeType::TypeProto
            }
            _ => return None,
        };
        proto.r#type = Some(kind.into());
        Some(proto)
    }

    fn float(&mut self) -> f32 {
        self.source.pick(&[
            1.0,
            0.5,
            2.0,
            0.0,
            -1.0,
            1e-5,
            0.25,
            3.0,
            1.0,
            0.5,
            -0.5,
            f32::NAN,
            f32::INFINITY,
            1e30,
            0.1,
            4.0,
        ])
    }

    fn int(&mut self, name: &str) -> i64 {
        if self.source.once_in(32) {
            return self.source.pick(&[i64::MIN, i64::MAX, -1, 1 << 31, 1 << 20, 17]);
        }
        let list: &[i64] = match name {
            "axis" | "batch_axis" | "time_axis" | "batch_dims" => &[0, 1, -1, 2, -2, 3],
            "to" | "dtype" | "output_dtype" | "output_datatype" | "cast_to" => {
                return 1 + self.source.below(26) as i64;
            }
            "hidden_size" => return self.sizes[0] as i64,
            "group" | "num_groups" | "blocksize" | "q_num_heads" | "kv_num_heads" | "num_heads" => {
                return self.size() as i64;
            }
            "p" | "size" | "blocksize_" | "k" | "sample_size" | "to_" => &[1, 2, 3],
            _ => &[0, 1, 1, 2, -1],
        };
        self.source.pick(list)
    }

    fn ints(&mut self, name: &str) -> Vec<i64> {
        let rank = self.first.len();
        let (len, list): (usize, &[i64]) = match name {
            "kernel_shape" | "strides" | "dilations" => (rank.saturating_sub(2), &[1, 2, 1, 3]),
            "pads" => (if self.source.once_in(2) { 2 * rank.saturating_sub(2) } else { 2 * rank }, &[0, 1, 0, 2]),
            "output_padding" => (rank.saturating_sub(2), &[0, 0, 1]),
            "perm" => {
                let mut perm: Vec<i64> = (0..rank as i64).collect();
                if rank > 1 {
                    let (a, b) = (self.source.below(rank), self.source.below(rank));
                    perm.swap(a, b);
                }
                return perm;
            }
            "axes" => (1 + self.source.below(2), &[0, 1, -1, 2]),
            "pooled_shape" => (2, &[1, 2, 3]),
            "shape" | "output_shape" | "repeats" | "starts" | "ends" => (rank, &[1, 2, 3, 0, -1]),
            _ => (self.length, &[0, 1, 2, 3, -1]),
        };
        (0..len).map(|_| self.source.pick(list)).collect()
    }

    fn word(&mut self, name: &str) -> String {
        let list: &[&str] = match name {
            "to" => &["FLOAT", "INT64", "DOUBLE", "BOOL", "INT8", "FLOAT16"],
            "auto_pad" => &["SAME_UPPER", "VALID", "SAME_LOWER", "NOTSET"],
            "mode" => &[
                "constant", "nearest", "linear", "cubic", "reflect", "edge", "wrap", "DCR", "CRD", "bilinear",
                "bicubic", "avg", "max", "TF", "IDF", "TFIDF", "standard", "nesterov",
            ],
            "padding_mode" => &["zeros", "border", "reflection"],
            "reduction" => &["none", "add", "mul", "max", "min", "sum", "mean"],
            "direction" => &["forward", "reverse", "bidirectional", "LEFT", "RIGHT"],
            "activations" => &["Tanh", "Sigmoid", "Relu", "Affine", "LeakyRelu", "Elu", "Softplus"],
            "nodes_modes" => &["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "BRANCH_EQ"],
            "post_transform" => &["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"],
            "aggregate_function" => &["SUM", "AVERAGE", "MIN", "MAX"],
            "kernel_type" => &["LINEAR", "POLY", "RBF", "SIGMOID"],
            "norm" => &["L1", "L2", "MAX"],
            "cast_to" => &["TO_FLOAT", "TO_INT64", "TO_STRING"],
            "map_form" => &["DENSE", "SPARSE"],
            "equation" => &["ij,jk->ik", "i,i", "ij->ji", "...ij->...j", "bij,bjk->bik", "ii", "i->"],
            "approximate" => &["tanh", "none"],
            "coordinate_transformation_mode" => {
                &["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize"]
            }
            "nearest_mode" => &["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"],
            "case_change_action" => &["LOWER", "UPPER", "NONE"],
            "pixel_format" => &["RGB", "BGR", "Grayscale"],
            "pattern" => &["a", "[a-z]*", "(a|b) c", "\\d+", "(", "a{1,3}?", "(?i)É"],
            "round_mode" => &["up", "down", "nearest"],
            "keep_aspect_ratio_policy" => &["stretch", "not_larger", "not_smaller"],
            "update_rule" | "attention_type" => &["linear", "gated", "delta", "gated_delta"],
            _ => &["a", "", "b c", "1", "NONE", "none", "x"],
        };
        if self.source.once_in(64) { self.source.text() } else { self.source.pick(list).into() }
    }
}

/// A type as a graph declares it, of a tensor with its shape.
fn declared(value_type: &ValueType, shape: Option<&[usize]>) -> TypeProto {
    let mut proto = crate::model::type_of(value_type);
    if let (Some(type_proto::Value::TensorType(tensor)), Some(dims)) = (&mut proto.value, shape) {
        let dim =
            |size: &usize| Dimension { value: Some(dimension::Value::DimValue(*size as i64)), ..Dimension::default() };
        tensor.shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    }
    proto
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of these no node was found that runs: they need lists that agree, shapes as values, or a graph around them.
    const NEVER: [&str; 6] = ["AffineGrid", "Col2Im", "TreeEnsemble", "TreeEnsembleClassifier", "Adam", "Gradient"];

    /// Whether one of many nodes runs, which are always the same.
    fn runs(schema: &Schema) -> bool {
        let mut state = schema.name.bytes().fold(1, |state: u64, byte| state.wrapping_mul(31) + u64::from(byte));
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..3000).any(|_| {
            let bytes: Vec<u8> = (0..400).map(|_| byte()).collect();
            outcome(schema, &mut Source::new(&bytes)).is_ok()
        })
    }

    #[test]
    fn nodes_of_nearly_all_operators_run() {
        let never_of = |part: &'static [Schema]| -> Vec<&str> {
            part.iter().filter(|schema| !runs(schema)).map(|schema| &*schema.name).collect()
        };
        // Those that never run take nearly all the time: no thread has many of them.
        let never: Vec<&str> = std::thread::scope(|scope| {
            let parts = table().chunks(table().len().div_ceil(8));
            let parts: Vec<_> = parts.map(|part| scope.spawn(move || never_of(part))).collect();
            parts.into_iter().flat_map(|part| part.join().expect("no panic")).collect()
        });
        assert_eq!(never, NEVER);
    }
}
