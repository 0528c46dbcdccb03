//! Lets networks of float16 and bfloat16 that convolve compute in float32: each result is rounded to the model's type, and
//! convolutions run as those of float32 do.

use super::copies::{beside, insert};
use super::{PassContext, constant, dtype, fact};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::NODE_BYTES;
use crate::graph::draft::{Draft, DraftNode, Id, NodePlace};
use crate::graph::watch::Wide;
use crate::operator::{Attribute, Label, Made, Rounded};
use crate::tensor::Tensor;
use crate::value::Fact;
use bytemuck::cast_slice;
use kernels::half::Half;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a node gives in float32.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Gives {
    /// Sums, which are rounded.
    Sums,
    /// What is computed of each element, which is rounded.
    Rounded,
    /// Numbers that it reads.
    Same,
    /// What its own form for such numbers gives.
    Own,
}

/// Operators that compute element by element, in float32, and round once.
const ROUNDED: [&str; 20] = [
    "Add",
    "Div",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "Mul",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Swish",
    "Tanh",
    "ThresholdedRelu",
];

/// Operators that give numbers that they read, or those with another sign.
const SAME: [&str; 16] = [
    "Abs",
    "Concat",
    "DepthToSpace",
    "Flatten",
    "Max",
    "MaxPool",
    "Min",
    "Neg",
    "Relu",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];

/// What a node gives, if all its floats are of a type of 16 bits.
fn gives(node: &DraftNode, draft: &Draft) -> Option<(Gives, DType)> {
    let name = node.standard().filter(|_| !node.open && node.bodies.is_empty())?;
    let half = dtype(node.outputs.first().copied().flatten()?, draft).filter(|dtype| dtype.half().is_some())?;
    let of = |id: &Id| dtype(*id, draft) == Some(half);
    let gives = match &node.operator {
        Some(Made::Product(_)) if name == "Conv" => Gives::Sums,
        // A bound that is left out is the end of the type.
        Some(Made::Rowwise(_)) if name == "Clip" => match (node.inputs.len(), node.attributes.len()) {
            (3, _) if node.inputs.iter().all(Option::is_some) => Gives::Same,
            (1, 2) => Gives::Rounded,
            _ => return None,
        },
        Some(Made::Rowwise(_)) if ROUNDED.contains(&name) => Gives::Rounded,
        Some(Made::Rowwise(_) | Made::Plain(_) | Made::Blockwise(_)) if SAME.contains(&name) => Gives::Same,
        Some(Made::Blockwise(_)) if name == "Resize" && is_nearest(node) => Gives::Same,
        Some(Made::Blockwise(of)) if half.half().is_some_and(|half| of.of_halves(half).is_some()) => Gives::Own,
        _ => return None,
    };
    // Sizes and places stay integers, and scales of Resize what they are.
    let mut read = node.inputs.iter().take(if name == "Resize" { 1 } else { node.inputs.len() }).flatten();
    let fits = read.all(|id| of(id) || dtype(*id, draft).is_some_and(|dtype| !dtype.is_float()));
    (fits && node.outputs.iter().flatten().all(of)).then_some((gives, half))
}

/// Whether a Resize gives the nearest numbers, and none of its own.
fn is_nearest(node: &DraftNode) -> bool {
    node.attributes.iter().all(|(name, value)| match value {
        Attribute::String(mode) if name == "mode" => **mode == *"nearest",
        _ => name != "extrapolation_value",
    })
}

/// Widens convolutions with constant filters, and what reads nothing but what is wide.
pub(super) fn halves(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let mut found: Vec<_> = draft.nodes.iter().map(|node| gives(node, draft)).collect();
    if !found.iter().flatten().any(|(gives, _)| *gives == Gives::Sums) {
        return Ok(());
    }
    let is_constant = |id: &Id| constant(*id, draft).is_some();
    let (mut wide, mut bytes) = (HashSet::<Id>::new(), 0);
    for (node, found) in draft.nodes.iter().zip(&mut found) {
        let floats =
            || node.inputs.iter().flatten().filter(|id| dtype(**id, draft).is_some_and(|dtype| dtype.half().is_some()));
        *found = found.filter(|(gives, _)| match gives {
            Gives::Sums => floats().skip(1).all(is_constant),
            _ => floats().all(|id| wide.contains(id) || is_constant(id)) && floats().any(|id| wide.contains(id)),
        });
        if found.is_some() {
            wide.extend(node.outputs.iter().flatten());
            let constants = floats().filter_map(|id| constant(*id, draft));
            bytes += 4 * NODE_BYTES as u64 + constants.map(|constant| 4 * constant.len() as u64).sum::<u64>();
        }
    }
    if wide.is_empty() || context.loading.budget.take(bytes).is_err() {
        return Ok(());
    }
    let others = draft.nodes.iter().zip(&found).filter(|(_, found)| found.is_none());
    let read = others.flat_map(|(node, _)| node.reads()).chain(draft.outputs.iter().map(|(_, id)| *id));
    let narrow: HashSet<Id> = read.filter(|id| wide.contains(id)).collect();
    let mut widening = Widening { draft, context, narrow, wide: HashMap::new(), new: Vec::new() };
    for (at, found) in found.into_iter().enumerate() {
        if let Some((gives, half)) = found {
            widening.node(at, gives, half)?;
        }
    }
    let new = widening.new;
    insert(new, draft);
    Ok(())
}

/// A draft of which some nodes compute in float32.
struct Widening<'a, 'b> {
    draft: &'a mut Draft,
    context: &'a PassContext<'b>,
    /// What else reads these values.
    narrow: HashSet<Id>,
    /// The same numbers in float32.
    wide: HashMap<Id, Id>,
    /// Further nodes, and before which they stand.
    new: Vec<(usize, DraftNode)>,
}

impl Widening<'_, '_> {
    /// Makes a node one of float32.
    fn node(&mut self, at: usize, gives: Gives, half: DType) -> Result<()> {
        let (Some(node), Some(to)) = (self.draft.nodes.get(at), half.half()) else { return Ok(()) };
        let (mut inputs, mut outputs, place) = (node.inputs.clone(), node.outputs.clone(), node.place.clone());
        for id in inputs.iter_mut().flatten() {
            if dtype(*id, self.draft).is_some_and(|dtype| dtype.half().is_some()) {
                *id = self.widened(*id, at, &place)?;
            }
        }
        for output in outputs.iter_mut().flatten() {
            let own = *output;
            *output = self.value(own)?;
            self.wide.insert(own, *output);
            let wide = *output;
            if gives == Gives::Sums {
                *output = self.value(own)?;
                self.convert([*output, wide], DType::Float, at + 1, &place, Some(to))?;
            }
            if self.narrow.contains(&own) {
                self.convert([wide, own], half, at + 1, &place, None)?;
            }
        }
        let Some(node) = self.draft.nodes.get_mut(at) else { return Ok(()) };
        let own = match (gives, &node.operator) {
            (Gives::Rounded, Some(Made::Rowwise(of))) => {
                Some(Made::Rowwise(Arc::new(Rounded { of: Some(of.clone()), to })))
            }
            (Gives::Own, Some(Made::Blockwise(of))) => of.of_halves(to).map(Made::Blockwise),
            _ => None,
        };
        node.operator = own.or(node.operator.take());
        let ends = (gives != Gives::Sums).then(|| place.operator.clone());
        // Of Resize, what isn't the image.
        let own_from = if node.standard() == Some("Resize") { 1 } else { usize::MAX };
        node.wide = Some(Box::new(Wide { half: to, starts: true, ends, own_from }));
        (node.inputs, node.outputs) = (inputs, outputs);
        node.known.iter_mut().for_each(|known| *known = Some(DType::Float.into()));
        Ok(())
    }

    /// The numbers of a value in float32, for the node at a place.
    fn widened(&mut self, id: Id, at: usize, place: &NodePlace) -> Result<Id> {
        if let Some(wide) = self.wide.get(&id) {
            return Ok(*wide);
        }
        let wide = self.value(id)?;
        match constant(id, self.draft) {
            Some(tensor) => {
                let mut numbers = vec![0f32; tensor.len()];
                if let Some(half) = tensor.dtype().half() {
                    half.widen(cast_slice(tensor.aligned_bytes()), &mut numbers);
                }
                let constant = Fact::constant(Tensor::from_elements(tensor.shape(), numbers)?.into());
                if let Some(entry) = self.draft.entries.get_mut(wide.at()) {
                    entry.fact = constant;
                }
            }
            None => self.convert([id, wide], DType::Float, at, place, None)?,
        }
        self.wide.insert(id, wide);
        Ok(wide)
    }

    /// A value of float32 that goes with another one, and has its name.
    fn value(&mut self, id: Id) -> Result<Id> {
        let dims = fact(id, self.draft).and_then(Fact::dims).map(Into::into);
        beside(id, "", Fact::of(Some(DType::Float.into()), dims), self.draft, self.context)
    }

    /// A node that makes one value of another, before the one at a place: Cast, or what rounds sums, where the node of the model
    /// ends that gives them.
    fn convert(
        &mut self,
        [from, to]: [Id; 2],
        dtype: DType,
        at: usize,
        place: &NodePlace,
        rounds: Option<Half>,
    ) -> Result<()> {
        let resolver = self.context.loading.resolver;
        let (resolved, note) = (resolver.resolve("", "Cast", 13)?, Cell::default());
        let attributes = vec![("to".to_string(), Attribute::Int(dtype.code().into()))];
        let facts = [fact(from, self.draft)];
        let made = match rounds {
            Some(to) => Made::Rowwise(Arc::new(Rounded { of: None, to })),
            None => resolved.load(&resolved.node(&attributes, &facts, 1, &[], &note), resolver)?,
        };
        let (half, ends) = (rounds.unwrap_or(Half::F16), rounds.map(|_| place.operator.clone()));
        let place = NodePlace { operator: Arc::new(Label::new("Cast", "", Some(13))), ..place.clone() };
        let [inputs, outputs] = [from, to].map(|id| [Some(id)].into_iter().collect());
        let mut node = DraftNode::new(place, Some(resolved), attributes, inputs, outputs);
        (node.operator, node.known) = (Some(made), [Some(dtype.into())].into_iter().collect());
        node.wide = Some(Box::new(Wide { half, starts: false, ends, own_from: usize::MAX }));
        self.new.push((at, node));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ROUNDED, SAME};
    use crate::dtype::DType;
    use crate::error::Result;
    use crate::graph::passes::testing::run;
    use crate::graph::testing::{Builder, load, load_within};
    use crate::graph::{Draft, Graph, NodeInfo, Watch};
    use crate::limits::Limits;
    use crate::operator::Attribute;
    use crate::ops::testing::tensor;
    use crate::registry::Registry;
    use crate::value::{Dim, Fact, Value};
    use half::{bf16, f16};
    use std::slice::from_ref;

    const HALVES: [DType; 2] = [DType::Float16, DType::Bfloat16];

    fn of(dtype: DType, shape: &[usize], numbers: impl Iterator<Item = f32>) -> Value {
        let numbers = numbers.take(shape.iter().product());
        match dtype {
            DType::Float16 => tensor(shape, numbers.map(f16::from_f32).collect::<Vec<f16>>()),
            _ => tensor(shape, numbers.map(bf16::from_f32).collect::<Vec<bf16>>()),
        }
    }

    fn numbers(seed: usize) -> impl Iterator<Item = f32> {
        (seed..).map(|at| (at * 7919 % 10007) as f32 / 4096.0 - 1.2)
    }

    struct Network {
        builder: Builder,
        dtype: DType,
    }

    impl Network {
        fn new(dtype: DType, dims: &[Dim]) -> Network {
            let mut builder = Builder::new();
            builder.shaped("x", Some(dtype.into()), Some(dims.to_vec()));
            Network { builder, dtype }
        }

        fn constant(&mut self, name: &str, shape: &[usize]) {
            let value = of(self.dtype, shape, numbers(shape.len() + name.len()));
            let id = self.builder.id(name);
            self.builder.draft.constant(id, Fact::constant(value), None);
        }

        fn op(&mut self, name: &str, inputs: &[&str], y: &str) {
            self.op_with(name, Vec::new(), inputs, y);
        }

        fn op_with(&mut self, name: &str, attributes: Vec<(String, Attribute)>, inputs: &[&str], y: &str) {
            let resolved = Registry::default().resolve("", name, 25).unwrap();
            self.builder.whole_node(y, resolved, attributes, inputs, y);
        }

        /// `y = conv(x)` with filters of a shape, a bias, and padding that keeps the size of odd windows.
        fn convolve(&mut self, x: &str, filters: [usize; 4], group: i64, stride: i64, y: &str) {
            let (w, b) = (format!("{y}.w"), format!("{y}.b"));
            self.constant(&w, &filters);
            self.constant(&b, &filters[..1]);
            let ints = |name: &str, list: Vec<i64>| (name.to_string(), Attribute::Ints(list));
            let pads = ints("pads", vec![(filters[2] / 2) as i64; 4]);
            let attributes = vec![pads, ints("strides", vec![stride; 2]), ("group".to_string(), Attribute::Int(group))];
            self.op_with("Conv", attributes, &[x, &w, &b], y);
        }
    }

    fn image(images: &str) -> [Dim; 4] {
        [Dim::Symbol(images.into()), Dim::Fixed(3), Dim::Fixed(13), Dim::Fixed(11)]
    }

    /// What convolutional networks have: a stem, a pool, channels alone, gates, residual sums, channels that are joined, and
    /// nodes that compute in 16 bits.
    fn network(dtype: DType) -> Draft {
        let mut network = Network::new(dtype, &image("N"));
        network.convolve("x", [20, 3, 3, 3], 1, 2, "stem");
        network.op("Relu", &["stem"], "stem.relu");
        let ints = |name: &str, list: &[i64]| (name.to_string(), Attribute::Ints(list.to_vec()));
        let pool = vec![ints("kernel_shape", &[3, 3]), ints("pads", &[1, 1, 1, 1])];
        network.op_with("MaxPool", pool, &["stem.relu"], "pool");
        network.convolve("pool", [20, 1, 5, 5], 20, 1, "alone");
        network.op("HardSwish", &["alone"], "swish");
        let pool = vec![ints("kernel_shape", &[3, 2]), ints("pads", &[1, 0, 1, 1]), ints("strides", &[2, 1])];
        network.op_with("AveragePool", pool, &["swish"], "average");
        network.convolve("average", [4, 20, 1, 1], 1, 1, "of.average");
        network.op("GlobalAveragePool", &["swish"], "mean");
        network.convolve("mean", [20, 20, 1, 1], 1, 1, "squeeze");
        let axes = network.builder.id("axes");
        network.builder.draft.constant(axes, Fact::constant(tensor(&[2], [2i64, -1])), None);
        network.op("ReduceMean", &["pool", "axes"], "other.mean");
        network.op("Add", &["squeeze", "other.mean"], "means");
        network.op("Sigmoid", &["means"], "gate");
        network.op("Mul", &["gate", "swish"], "gated");
        network.convolve("gated", [20, 20, 1, 1], 1, 1, "back");
        network.op("Add", &["back", "pool"], "residual");
        network.op("Relu", &["residual"], "residual.relu");
        network.convolve("residual.relu", [17, 20, 3, 3], 1, 1, "narrow");
        network.op("Sigmoid", &["narrow"], "narrow.sigmoid");
        network.op("Mul", &["narrow", "narrow.sigmoid"], "narrow.swish");
        let axis = vec![("axis".to_string(), Attribute::Int(1))];
        network.op_with("Concat", axis, &["narrow.swish", "residual"], "both");
        ["scale", "bias", "shift"].iter().for_each(|name| network.constant(name, &[37]));
        let positive = of(dtype, &[37], (1..).map(|at| at as f32 / 7.0));
        let spread = network.builder.id("variance");
        network.builder.draft.constant(spread, Fact::constant(positive), None);
        network.op("BatchNormalization", &["both", "scale", "bias", "shift", "variance"], "normed");
        network.convolve("normed", [9, 37, 1, 1], 1, 1, "narrow.again");
        let scales = network.builder.id("scales");
        let value = tensor(&[4], [1f32, 1.0, 2.0, 1.5]);
        network.builder.draft.constant(scales, Fact::constant(value), None);
        network.op("Resize", &["narrow.again", "", "scales"], "larger");
        network.convolve("larger", [9, 9, 1, 1], 1, 1, "last");
        network.constant("half", &[1]);
        network.op("Add", &["last", "half"], "sum");
        network.op("Softmax", &["sum"], "y");
        ["narrow", "of.average"].iter().for_each(|name| network.builder.output_named(name));
        network.builder.output("y")
    }

    /// The operators of the nodes that run: of several, the last one.
    fn operators(graph: &Graph) -> Vec<String> {
        graph.node_infos().map(|node| node.operator.to_string()).collect()
    }

    /// Its bits, where all NaN are one.
    fn codes(value: &Value) -> Vec<u16> {
        let tensor = value.tensor().unwrap();
        let code = |code: u16, nan: bool| if nan { u16::MAX } else { code };
        match tensor.as_slice::<f16>() {
            Ok(numbers) => numbers.iter().map(|x| code(x.to_bits(), x.is_nan())).collect(),
            _ => tensor.as_slice::<bf16>().unwrap().iter().map(|x| code(x.to_bits(), x.is_nan())).collect(),
        }
    }

    /// What a watch sees, in order.
    #[derive(Debug, Default, PartialEq)]
    struct Seen(Vec<(String, String, Vec<Value>)>);

    impl Watch for Seen {
        fn starts(&mut self, node: NodeInfo<'_>, inputs: &[Option<&Value>]) -> Result<()> {
            let inputs = inputs.iter().filter_map(|input| input.cloned());
            self.0.push((format!("{} starts", node.name), node.operator.to_string(), inputs.collect()));
            Ok(())
        }

        fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
            let names: Vec<&str> = outputs.iter().map(|(name, _)| *name).collect();
            let text = format!("{} gives {}", node.name, names.join(", "));
            self.0.push((text, node.operator.to_string(), outputs.iter().map(|(_, value)| (*value).clone()).collect()));
            Ok(())
        }
    }

    /// As if all nodes computed in 16 bits.
    #[test]
    fn a_watch_sees_the_model() {
        for dtype in HALVES {
            let [got, want] = [true, false].map(|optimize| {
                let (graph, mut seen) = (load(network(dtype), optimize).unwrap(), Seen::default());
                run(&graph, &[of(dtype, &[1, 3, 13, 11], numbers(7))], Some(&mut seen));
                // Nodes that run as parts of another one come with it.
                seen.0.sort_by(|one, other| one.0.cmp(&other.0));
                seen
            });
            assert_eq!(got.0.len(), want.0.len());
            for (got, want) in got.0.iter().zip(&want.0) {
                assert_eq!((&got.0, &got.1), (&want.0, &want.1));
                assert!(got.2 == want.2, "{}", got.0);
            }
        }
    }

    #[test]
    fn no_bit_of_a_network_changes() {
        for dtype in HALVES {
            let [graph, plain] = [true, false].map(|optimize| load(network(dtype), optimize).unwrap());
            for images in [0, 1, 2] {
                let x = of(dtype, &[images, 3, 13, 11], numbers(images));
                assert_eq!(run(&graph, from_ref(&x), None), run(&plain, from_ref(&x), None), "{dtype}, {images}");
            }
            assert!(graph.constants.iter().all(|value| value.tensor().unwrap().dtype() != dtype), "{dtype}");
            // The input, and three values that are outputs or that Softmax reads.
            let casts = graph.node_infos().filter(|node| node.operator == "Cast" && node.parts().next().is_none());
            assert_eq!(casts.count(), 4, "{dtype}");
        }
    }

    /// Every number of 16 bits, and each operator: with a constant, where it has two inputs.
    #[test]
    fn operators_round_once() {
        let many = if cfg!(miri) { 1 << 6 } else { 1 << 16 };
        for dtype in HALVES {
            let all = (0..many).map(|code: u32| match dtype {
                DType::Float16 => f16::from_bits((code * (65_536 / many)) as u16).to_f32(),
                _ => bf16::from_bits((code * (65_536 / many)) as u16).to_f32(),
            });
            let x = of(dtype, &[1, 1, many as usize], all);
            for name in ROUNDED.into_iter().chain(["Abs", "Clip", "Max", "Min", "Neg", "Relu"]) {
                let draft = || {
                    let mut network = Network::new(dtype, &[1, 1, many as usize].map(Dim::Fixed));
                    ["c", "upper"].into_iter().for_each(|name| network.constant(name, &[]));
                    let one = network.builder.id("one");
                    let filter = of(dtype, &[1, 1, 1], std::iter::once(1.0));
                    network.builder.draft.constant(one, Fact::constant(filter), None);
                    network.op("Conv", &["x", "one"], "conv");
                    let inputs: &[&str] = match name {
                        "Clip" => &["conv", "c", "upper"],
                        "Add" | "Div" | "Max" | "Min" | "Mul" | "Sub" => &["conv", "c"],
                        _ => &["conv"],
                    };
                    network.op(name, inputs, "y");
                    network.builder.output("y")
                };
                let Ok(plain) = load(draft(), false) else {
                    assert_eq!(dtype, DType::Bfloat16, "{name}");
                    continue;
                };
                let graph = load(draft(), true).unwrap();
                let [got, want] = [&graph, &plain].map(|graph| codes(&run(graph, from_ref(&x), None)[0]));
                let found = got.iter().zip(&want).position(|(got, want)| got != want);
                let found = found.map(|at| (at, got[at], want[at]));
                assert_eq!(found, None, "{name} of {dtype}");
                assert_eq!(operators(&graph).last().unwrap(), "Cast", "{name} of {dtype}");
            }
        }
        assert!(ROUNDED.is_sorted() && SAME.is_sorted());
    }

    /// Filters that are fed, other products, and what reads something else.
    #[test]
    fn what_stays() {
        let conv = |fed: bool| {
            let mut network = Network::new(DType::Float16, &image("N"));
            match fed {
                true => {
                    let dims = [4, 3, 1, 1].map(Dim::Fixed);
                    network.builder.shaped("w", Some(DType::Float16.into()), Some(dims.to_vec()));
                }
                false => network.constant("w", &[4, 3, 1, 1]),
            }
            network.op("Relu", &["x"], "before");
            network.op("Conv", &["before", "w"], "conv");
            network.op("Add", &["conv", "before"], "sum");
            network.builder.output("sum")
        };
        assert_eq!(operators(&load(conv(true), true).unwrap()), ["Relu", "Conv", "Add"]);
        assert_eq!(operators(&load(conv(false), true).unwrap()), ["Relu", "Cast", "Cast", "Cast", "Add"]);
    }

    /// Constants of float32 take memory.
    #[test]
    fn little_memory() {
        let limits = |load_bytes| Limits { load_bytes, ..Limits::default() };
        let x = of(DType::Float16, &[1, 3, 13, 11], numbers(3));
        let plain = load(network(DType::Float16), false).unwrap();
        let want = run(&plain, from_ref(&x), None);
        for bytes in (0..30).map(|k| 8000 * k) {
            if let Ok(graph) = load_within(network(DType::Float16), true, &limits(bytes)) {
                assert_eq!(run(&graph, from_ref(&x), None), want, "{bytes}");
            }
        }
    }
}
