//! A few nodes whose shapes and types go together, mostly, with extreme elements. The result is the same for any number of
//! threads, with and without optimization, and is that of the module `plain` where that has the operator.

mod bodies;
mod layout;
mod networks;
mod numbers;

use crate::plain::{Num, Plain, common, is_float, round, wrap};
use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_shape_proto::dimension::Value as Dimension;
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, tensor_shape_proto, type_proto,
};
use crate::source::{Source, fit};
use onnxref::DType::{Bool, Double, Float, Float16, Int32, Int64, Uint8};
use onnxref::{DType, Error, Kind, Model, Tensor, Value};
use prost::Message;

const ALL: &[DType] = &[Float, Int64, Int32, Double, Float16, Uint8, Bool];
const NUMBERS: &[DType] = &[Float, Int64, Int32, Double, Float16, Uint8];
const WIDE: &[DType] = &[Int64, Float, Int32, Double, Float16];
const FLOATS: &[DType] = &[Float, Double, Float16];

/// Elements of an output.
const MOST: usize = 2000;

struct Maker<'a> {
    source: Source<'a>,
    /// What nodes may read.
    known: Vec<(String, Plain)>,
    /// The nodes of the graph or body in the making.
    nodes: Vec<NodeProto>,
    inputs: Vec<ValueInfoProto>,
    initializers: Vec<TensorProto>,
    feeds: Vec<(String, Value)>,
    read: Vec<String>,
    names: usize,
    /// The floats of nodes as exporters write them.
    floating: DType,
    /// Outputs may be shared among threads.
    large: bool,
    /// A node may fail.
    failing: bool,
    /// Now and then a parameter is anything.
    careless: bool,
    /// One was: what is known may be wrong.
    wrong: bool,
}

pub fn run(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let careless = source.once_in(6);
    let (known, nodes, inputs, initializers, feeds, read) = Default::default();
    let (names, large, failing, wrong) = (0, false, false, false);
    let mut maker = Maker {
        source,
        known,
        nodes,
        inputs,
        initializers,
        feeds,
        read,
        names,
        floating: Float,
        large,
        failing,
        careless,
        wrong,
    };
    let proto = maker.model();
    let bytes = proto.encode_to_vec();
    let told = || told(&proto, &maker.known);
    let outcome = |optimize, threads| -> Result<Vec<(String, Value)>, Error> {
        let options = Model::options().limits(crate::small_limits()).optimize(optimize).threads(threads);
        let outcome = options.from_bytes(bytes.clone()).and_then(|model| crate::run_model(&model, &maker.feeds));
        if let Err(error) = &outcome {
            crate::check_error(error);
            let fine = match error.kind() {
                Kind::Input | Kind::Model => maker.failing,
                kind => kind == Kind::Limit,
            };
            assert!(fine, "{error}: {}", told());
        }
        outcome
    };
    let first = outcome(true, 1);
    // Loading takes most of the time, and small outputs have one thread: there one more run tells as much.
    let others: &[_] = if maker.large { &[(false, 3), (true, 3), (false, 1)] } else { &[(false, 3)] };
    for &(optimize, threads) in others {
        match (&first, &outcome(optimize, threads)) {
            (Ok(first), Ok(other)) => {
                // The bits of a NaN may differ.
                for ((name, first), (_, other)) in first.iter().zip(other) {
                    let (first, other) = (Plain::of(tensor(first)), Plain::of(tensor(other)));
                    let how = (optimize, threads);
                    assert!(first == other, "{name}: {first:?}, and {how:?} {other:?}: {}", told());
                }
            }
            // What counts toward the limits depends on both.
            (Err(error), _) | (_, Err(error)) if error.kind() == Kind::Limit => {}
            // A node whose output isn't read, or only its shape, is left out, with its error.
            (_, Err(_)) if !optimize && maker.failing => {}
            (Err(first), Err(other)) => assert_eq!(first.kind(), other.kind(), "{first}; {other}: {}", told()),
            (first, other) => panic!("{first:?}; optimize {optimize}, {threads} threads: {other:?}: {}", told()),
        }
    }
    for (name, value) in first.iter().flatten().filter(|_| !maker.wrong) {
        let (_, want) = maker.known.iter().find(|(known, _)| known == name).expect("a known output");
        let got = Plain::of(tensor(value));
        assert_eq!((got.dtype, &got.shape), (want.dtype, &want.shape), "{name}: {}", told());
        assert!(want.nums.is_none() || got.nums == want.nums, "{name}: {got:?}, not {want:?}: {}", told());
    }
}

fn tensor(value: &Value) -> &Tensor {
    match value {
        Value::Tensor(tensor) => tensor,
        other => panic!("not a tensor: {other:?}"),
    }
}

/// The graph for people.
fn told(model: &ModelProto, known: &[(String, Plain)]) -> String {
    let mut text = String::new();
    for (name, plain) in known {
        let nums = plain.nums.as_ref().map(|nums| &nums[..nums.len().min(20)]);
        text += &format!("\n{name}: {} {:?} {nums:?}", plain.dtype, plain.shape);
    }
    for node in model.graph.iter().flat_map(|graph| &graph.node) {
        let attributes: Vec<_> =
            node.attribute.iter().map(|a| (a.name(), a.i(), &a.ints, a.f(), a.s(), &a.g)).collect();
        text += &format!("\n{:?} = {}({:?}) {attributes:?}", node.output, node.op_type(), node.input);
    }
    text
}

impl Maker<'_> {
    fn model(&mut self) -> ModelProto {
        for _ in 0..1 + self.source.below(3) {
            let dtype = self.source.pick(ALL);
            let mut dims = self.source.dims(4, 200);
            // Large enough for several threads.
            if self.source.once_in(100) {
                self.large = true;
                dims = vec![self.source.pick(&[257, 64, 3]), self.source.pick(&[130, 256, 1000])];
            }
            self.constant(dtype, &dims);
        }
        for _ in 0..2 + self.source.below(7) {
            self.node(0);
        }
        // A node that is not read could be left out, and with it its error.
        let mut names: Vec<String> = self.nodes.iter().flat_map(|node| node.output.clone()).collect();
        names.retain(|name| !self.read.contains(name) || self.source.once_in(3));
        let outputs = names.iter().map(|name| declared(name, self.plain(name).dtype, None)).collect();
        let graph = GraphProto {
            name: Some("graph".into()),
            node: std::mem::take(&mut self.nodes),
            input: std::mem::take(&mut self.inputs),
            initializer: std::mem::take(&mut self.initializers),
            output: outputs,
            ..GraphProto::default()
        };
        let version = self.source.pick(&[19, 21, 20, 22, 23]);
        ModelProto {
            ir_version: Some(10),
            opset_import: vec![OperatorSetIdProto { domain: None, version: Some(version) }],
            graph: Some(graph),
            ..ModelProto::default()
        }
    }

    /// A node, or a few.
    fn node(&mut self, depth: usize) {
        match self.source.below(if depth < 2 { 32 } else { 28 }) {
            0..3 => self.binary(),
            3 => self.unary(),
            4 => self.cast(),
            5 => self.concat(),
            6 => self.split(),
            7 | 8 => self.slice(),
            9 => self.transpose(),
            10 => self.expand(),
            11 => self.tile(),
            12 => self.pad(),
            13 => self.reshape(),
            14 | 15 => self.reduce(),
            16 => self.softmax(),
            17 => self.cumulative(),
            18 => self.matmul(),
            19 => self.gemm(),
            20 => self.choice(),
            21 => self.scatter_nd(),
            22 => self.scatter_elements(),
            23 => self.made(),
            24..28 => self.network(),
            28 | 29 => self.branches(depth),
            _ => self.repeated(depth),
        }
    }

    fn plain(&self, name: &str) -> Plain {
        self.known.iter().find(|(known, _)| known == name).expect("a known name").1.clone()
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// An input or initializer of the model.
    fn fixed(&mut self, plain: Plain) -> String {
        if self.source.once_in(2) { self.input(plain) } else { self.initializer(plain) }
    }

    /// An input of the model, whose sizes may be known, or named by what they are.
    fn input(&mut self, plain: Plain) -> String {
        let (name, tensor) = (self.new_name(), plain.tensor());
        let named = self.source.below(3);
        let dim = |size: &usize| match named {
            2 => Dimension::DimParam(format!("n{size}")),
            _ => Dimension::DimValue(*size as i64),
        };
        let shape = (named > 0).then(|| plain.shape.iter().map(dim).collect());
        self.inputs.push(declared(&name, plain.dtype, shape));
        self.feeds.push((name.clone(), tensor.into()));
        self.known.push((name.clone(), plain));
        name
    }

    fn initializer(&mut self, plain: Plain) -> String {
        let name = self.new_name();
        let bytes = plain.tensor().to_proto_bytes(&name);
        self.initializers.push(TensorProto::decode(&*bytes).expect("what was encoded"));
        self.known.push((name.clone(), plain));
        name
    }

    fn constant(&mut self, dtype: DType, dims: &[usize]) -> String {
        let numbers = self.numbers(dtype, dims);
        self.fixed(numbers)
    }

    /// Small numbers, fractions, or those that go wrong.
    fn numbers(&mut self, dtype: DType, dims: &[usize]) -> Plain {
        let (seed, kind) = (self.source.byte(), self.source.pick(&[Kinds::Small, Kinds::Fractions, Kinds::Extreme]));
        let count = dims.iter().product::<usize>();
        let nums = (0..count).map(|k| element(dtype, (k as u64 + 1) * 0x9e37_79b9 + (u64::from(seed) << 9), kind));
        Plain::new(dtype, dims, nums.collect())
    }

    /// A parameter of int64.
    fn ints(&mut self, dims: &[usize], values: &[i64]) -> String {
        let mut values = values.to_vec();
        if self.careless && !values.is_empty() && self.source.once_in(6) {
            let at = self.source.below(values.len());
            values[at] = self.source.axis();
            (self.wrong, self.failing) = (true, true);
        }
        self.fixed(Plain::new(Int64, dims, values.into_iter().map(Num::Int).collect()))
    }

    fn list(&mut self, values: &[i64]) -> String {
        self.ints(&[values.len()], values)
    }

    fn shape(&mut self, dims: &[usize]) -> String {
        self.list(&dims.iter().map(|dim| *dim as i64).collect::<Vec<_>>())
    }

    /// A value of one of some types and with some dimensions, nearly always a late one.
    fn operand(&mut self, types: &[DType], ranks: std::ops::Range<usize>) -> (String, Plain) {
        let fits = |plain: &Plain| types.contains(&plain.dtype) && ranks.contains(&plain.shape.len());
        let skip = self.source.below(4);
        if let Some(found) = self.known.iter().rev().filter(|(_, plain)| fits(plain)).nth(skip) {
            return found.clone();
        }
        let rank = ranks.start + self.source.below((ranks.end - ranks.start).min(3));
        let mut dims: Vec<usize> = (0..rank).map(|_| self.source.dim()).collect();
        fit(&mut dims, 100);
        let dtype = self.source.pick(types);
        let name = self.constant(dtype, &dims);
        (name.clone(), self.plain(&name))
    }

    /// A value whose shape broadcasts with a shape.
    fn partner(&mut self, dtype: DType, shape: &[usize]) -> (String, Plain) {
        let bounded = |dims: Vec<usize>| dims.iter().product::<usize>() <= MOST.max(shape.iter().product());
        let fits = |plain: &Plain| plain.dtype == dtype && common(&plain.shape, shape).is_some_and(bounded);
        let skip = self.source.below(4);
        if let Some(found) = self.known.iter().rev().filter(|(_, plain)| fits(plain)).nth(skip) {
            return found.clone();
        }
        let from = self.source.below(shape.len() + 1);
        let dims: Vec<usize> = shape[from..].iter().map(|dim| if self.source.once_in(3) { 1 } else { *dim }).collect();
        let name = self.constant(dtype, &dims);
        (name.clone(), self.plain(&name))
    }

    /// An axis of a rank that isn't 0, and how it is named.
    fn axis(&mut self, rank: usize) -> (usize, i64) {
        let axis = self.source.below(rank);
        let named = if self.source.once_in(2) { axis as i64 - rank as i64 } else { axis as i64 };
        if self.careless && self.source.once_in(6) {
            (self.wrong, self.failing) = (true, true);
            return (axis, self.source.axis());
        }
        (axis, named)
    }

    fn emit(&mut self, op: &str, inputs: &[&str], attribute: Vec<AttributeProto>, outputs: Vec<Plain>) {
        let mut output = Vec::new();
        for plain in outputs {
            output.push(self.new_name());
            self.known.push((output[output.len() - 1].clone(), plain));
        }
        let input: Vec<String> = inputs.iter().map(|name| name.to_string()).collect();
        self.read.extend(input.clone());
        let node = NodeProto { op_type: Some(op.into()), input, output, attribute, ..NodeProto::default() };
        self.nodes.push(node);
    }
}

fn declared(name: &str, dtype: DType, dims: Option<Vec<Dimension>>) -> ValueInfoProto {
    let dim = |value: Dimension| tensor_shape_proto::Dimension { value: Some(value), ..Default::default() };
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.into_iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(dtype.code()), shape };
    let r#type = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(r#type), ..ValueInfoProto::default() }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind.into()), ..AttributeProto::default() }
}

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, AttributeType::Int) }
}

fn string(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.to_string().into()), ..attribute(name, AttributeType::String) }
}

/// What numbers a tensor has.
#[derive(Clone, Copy)]
enum Kinds {
    /// Their sums and products are exact.
    Small,
    Fractions,
    /// Those that go wrong.
    Extreme,
}

/// A number of a kind.
fn element(dtype: DType, mix: u64, kind: Kinds) -> Num {
    let mix = mix ^ mix >> 15;
    let at = (mix.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as usize;
    let small = (at % 7) as i32 - 3;
    const INTS: [i64; 12] = [i64::MIN, i64::MAX, 0, -1, 1, 2, 255, 128, 1 << 31, (1 << 31) - 1, 65536, -(1 << 31)];
    const FLOATS: [f64; 14] = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        1e-3,
        65504.0,
        3.402_823_5e38,
        1e308,
        5e-324,
        1e-45,
        6e-8,
        -88.5,
        1.0 / 3.0,
    ];
    match (is_float(dtype), kind) {
        (true, Kinds::Extreme) => round(dtype, FLOATS[at % 14]),
        (true, Kinds::Fractions) => round(dtype, f64::from(small) / 2.0 + (at % 97) as f64 / 97.0),
        (true, Kinds::Small) => round(dtype, f64::from(small) / 2.0),
        (false, Kinds::Extreme) => wrap(dtype, INTS[at % 12].into()),
        (false, _) => wrap(dtype, small.into()),
    }
}
