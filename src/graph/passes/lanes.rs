//! Fuses elementwise chains that reduce lanes to numbers, as written normalizations do, or rotate them, as written rotary
//! embeddings do.

use super::fuse::{Fusion, fuse, outside};
use super::pattern::Pattern;
use super::{PassContext, Readers, constant, dtype, fact, integer};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::draft::{Draft, DraftNode, Id};
use crate::operator::{Does, Extent, LaneChain, Made, StepInput, StepInputs};
use crate::tensor::Scalar;
use crate::value::Dim;
use smallvec::SmallVec;
use std::ops::Range;

/// Halves of lanes, the second of which is negated and comes first.
const TURNS: [&str; 2] = [
    "Concat(Neg(Slice(x, start, length, axis, step)), Slice(x, zero, end, axes, stride))",
    "Concat(Neg(Slice(x, start, length, axis)), Slice(x, zero, end, axes))",
];

/// Nodes before the last one of a chain among which its others are looked for.
const WINDOW: usize = 64;

/// Steps that are left out of a chain, one after the other, until it is one.
const ATTEMPTS: usize = 8;

/// Nodes that compute element by element, with numbers of lanes along the last axis. Nobody else reads what they produce,
/// except of the last one.
pub(super) fn lanes(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let reduces =
        |at: &usize| draft.nodes.get(*at).is_some_and(|node| matches!(node.operator, Some(Made::Blockwise(_))));
    let reductions: Vec<usize> = (0..draft.nodes.len()).filter(reduces).collect();
    if reductions.is_empty() {
        return Ok(());
    }
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let turns: Vec<Pattern> = TURNS.iter().map(|text| Pattern::of(text)).collect::<Result<_>>()?;
    let (mut taken, mut fusions) = (vec![false; draft.nodes.len()], Vec::new());
    // From the last node on: a chain goes on as long as it can.
    for last in (0..draft.nodes.len()).rev() {
        let near = window(last);
        let next = reductions.get(reductions.partition_point(|at| *at < near.start));
        if taken.get(last) == Some(&false)
            && next.is_some_and(|at| near.contains(at))
            && let Some(fusion) = chain(last, (draft, &readers, &turns), &taken)
        {
            for at in &fusion.nodes {
                taken.get_mut(*at).into_iter().for_each(|taken| *taken = true);
            }
            fusions.push(fusion);
        }
    }
    fuse(draft, fusions, context)
}

fn window(last: usize) -> Range<usize> {
    last.saturating_sub(WINDOW)..last
}

/// The chain that ends at a node.
fn chain(last: usize, (draft, readers, turns): (&Draft, &Readers, &[Pattern]), taken: &[bool]) -> Option<Fusion> {
    let output = draft.nodes.get(last)?.outputs.first().copied().flatten()?;
    let dtype = dtype(output, draft).filter(|dtype| dtype.is_float())?;
    // Sizes that aren't known may differ.
    let dims = fact(output, draft)?.dims().filter(|dims| !dims.contains(&Dim::Unknown))?;
    let of = Of { dtype, dims, draft, readers, turns };
    let is_free = |step: &Step| step.nodes.iter().all(|at| taken.get(*at) == Some(&false));
    // From the last one on.
    let mut steps: Vec<Step> = vec![of.step(last).filter(is_free)?];
    for at in window(last).rev() {
        let Some([Some(output)]) = draft.nodes.get(at).map(|node| &*node.outputs) else { continue };
        let nodes = || steps.iter().flat_map(|step| &step.nodes);
        let last_reads = readers.last_reader(*output).is_some_and(|reader| nodes().any(|at| *at == reader));
        if !last_reads || steps.len() == LaneChain::STEPS {
            continue;
        }
        let reads = |at: &&usize| draft.nodes.get(**at).is_some_and(|node| node.reads().any(|id| id == *output));
        if nodes().filter(reads).count() == readers.count(*output)
            && nodes().all(|own| *own != at)
            && let Some(step) = of.step(at).filter(is_free)
        {
            steps.push(step);
        }
    }
    steps.reverse();
    // What makes it too large, or isn't read as it may be, is left out.
    for first in 0..steps.len().min(ATTEMPTS) {
        if let Some(fusion) = steps.get(first..).and_then(|steps| of.fusion(steps)) {
            return Some(fusion);
        }
    }
    None
}

/// Chains whose output has this type and these dimensions.
struct Of<'a> {
    dtype: DType,
    dims: &'a [Dim],
    draft: &'a Draft,
    readers: &'a Readers,
    turns: &'a [Pattern],
}

/// A step of a chain.
struct Step {
    does: Does,
    inputs: SmallVec<[Id; 4]>,
    /// The last one is the node that the others are parts of.
    nodes: SmallVec<[usize; 4]>,
}

impl Of<'_> {
    fn dims(&self, id: Id) -> Option<&[Dim]> {
        fact(id, self.draft)?.dims()
    }

    /// The step that a node ends, if there is one.
    fn step(&self, at: usize) -> Option<Step> {
        let node = self.draft.nodes.get(at)?;
        if node.standard() == Some("Concat") {
            return self.turn(at);
        }
        let does = self.does(node)?;
        let count = if matches!(does, Does::Lane(_)) { 1 } else { node.inputs.len() };
        let inputs = node.inputs.iter().take(count).copied().collect::<Option<_>>()?;
        Some(Step { does, inputs, nodes: [at].into_iter().collect() })
    }

    /// What a node computes, if it is a step.
    fn does(&self, node: &DraftNode) -> Option<Does> {
        let [Some(output)] = *node.outputs else { return None };
        let (_, before) = self.dims.split_last().filter(|(last, _)| **last != Dim::Fixed(1))?;
        let is_dims = |own: &[Dim]| own == self.dims;
        let is_lanes = |own: &[Dim]| own.split_last() == Some((&Dim::Fixed(1), before));
        let own = self.dims(output).filter(|_| !node.open && dtype(output, self.draft) == Some(self.dtype))?;
        match node.operator.as_ref()? {
            Made::Rowwise(operator) => {
                let typed = |id: &Option<Id>| id.is_some_and(|id| dtype(id, self.draft) == Some(self.dtype));
                let good = operator.may_chain(self.dtype) && node.inputs.iter().all(typed);
                (good && (is_dims(own) || is_lanes(own))).then(|| Does::Each(operator.clone()))
            }
            Made::Blockwise(operator) => {
                let data = node.inputs.first().copied().flatten().and_then(|id| self.dims(id));
                let input = |k: usize| constant(node.inputs.get(k).copied().flatten()?, self.draft);
                data.filter(|data| is_dims(data) && is_lanes(own))?;
                operator.of_lanes(self.dims.len(), &input).map(Does::Lane)
            }
            _ => None,
        }
    }

    /// A turn that ends at a Concat.
    fn turn(&self, at: usize) -> Option<Step> {
        let found = self.turns.iter().find_map(|turn| turn.find(at, self.draft, self.readers))?;
        let nodes = || found.nodes.iter().filter_map(|at| self.draft.nodes.get(*at));
        let (x, rank) = (found.value("x")?, self.dims.len());
        let concat = self.draft.nodes.get(at)?;
        let last = |axis: i64| axis == -1 || axis + 1 == rank as i64;
        let number = |name: &str| match found.value(name) {
            Some(id) => match constant(id, self.draft).filter(|list| list.len() == 1)?.scalars().next()? {
                Scalar::Int(number) => Some(number),
                _ => None,
            },
            // Steps that are left out.
            None => Some(1),
        };
        let (Some(Dim::Fixed(len)), first) = (self.dims.last(), number("start")?) else { return None };
        let halves = number("zero")? == 0 && number("end")? == first && number("length")? >= *len as i64;
        let steps = number("step")? == 1 && number("stride")? == 1;
        let lasts = last(integer("axis", concat)?) && last(number("axis")?) && last(number("axes")?);
        let typed = self.dims(x) == Some(self.dims) && dtype(x, self.draft) == Some(self.dtype);
        let whole = concat.outputs.first().copied().flatten().and_then(|id| self.dims(id)) == Some(self.dims);
        let first = usize::try_from(first).ok().filter(|first| (1..*len).contains(first))?;
        let negates = nodes().find_map(|node| match &node.operator {
            Some(Made::Rowwise(operator)) if operator.may_chain(self.dtype) => Some(operator.clone()),
            _ => None,
        })?;
        let made = nodes().all(|node| node.operator.as_ref().is_some_and(|made| made.plain().is_some()));
        (halves && steps && lasts && typed && whole && made).then(|| Step {
            does: Does::Turn(negates, first),
            inputs: [x].into_iter().collect(),
            nodes: found.nodes.clone(),
        })
    }

    /// What a value from outside has for elements of the output.
    fn extent(&self, id: Id) -> Option<Extent> {
        let own = self.dims(id).filter(|own| own.len() <= self.dims.len())?;
        let are_one = |dims: &[Dim]| dims.iter().all(|dim| *dim == Dim::Fixed(1));
        match own.split_last() {
            _ if own == self.dims => Some(Extent::Full),
            _ if are_one(own) => Some(Extent::One),
            Some((last, before)) if Some(last) == self.dims.last() && are_one(before) => Some(Extent::Lane),
            Some(_) => {
                let ones = own.iter().take_while(|dim| **dim == Dim::Fixed(1)).count();
                own.get(ones..).is_some_and(|rest| self.dims.ends_with(rest)).then_some(Extent::Lanes)
            }
            _ => None,
        }
    }

    /// The chain of these steps, if there is one.
    fn fusion(&self, all: &[Step]) -> Option<Fusion> {
        all.iter().find(|step| !matches!(step.does, Does::Each(_)))?;
        let node = |at: &usize| self.draft.nodes.get(*at);
        let makes = |at: &usize, id: Id| node(at).is_some_and(|node| node.outputs.contains(&Some(id)));
        let produced = |id: Id| all.iter().position(|step| step.nodes.last().is_some_and(|at| makes(at, id)));
        let (mut inputs, mut extents): (SmallVec<[Id; 4]>, SmallVec<[Extent; 8]>) = Default::default();
        let mut steps = Vec::with_capacity(all.len());
        for step in all {
            let mut from = StepInputs::new();
            for id in &step.inputs {
                from.push(match (produced(*id), inputs.iter().position(|own| own == id)) {
                    (Some(step), _) => StepInput::Step(step),
                    (None, Some(input)) => StepInput::Input(input),
                    (None, None) => {
                        extents.push(self.extent(*id)?);
                        inputs.push(*id);
                        StepInput::Input(inputs.len() - 1)
                    }
                });
            }
            steps.push((step.does.clone(), from));
        }
        let operator = LaneChain::new(self.dtype, &extents, steps)?;
        let mut nodes: SmallVec<[usize; 4]> = all.iter().flat_map(|step| &step.nodes).copied().collect();
        nodes.sort_unstable();
        // As the axes of a reduction.
        outside(&nodes, &mut inputs, self.draft);
        (nodes.len() > 1).then(|| Fusion { nodes, inputs, operator: Box::new(operator) })
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::Draft;
    use crate::graph::passes::testing::{run, stands_for};
    use crate::graph::testing::{self, Builder, load};
    use crate::operator::Attribute;
    use crate::ops::testing::tensor;
    use crate::value::{Dim, Value};
    use half::f16;
    use kernels::testing::sized;
    use proptest::prelude::*;

    /// Numbers of a type, in a tensor.
    fn numbers(dtype: DType, shape: &[usize], from: usize) -> Value {
        let count = shape.iter().product::<usize>();
        let numbers: Vec<f64> = (from..from + count).map(|at| (at * 7919 % 1009) as f64 / 300.0 - 1.5).collect();
        match dtype {
            DType::Float => tensor(shape, numbers.iter().map(|x| *x as f32).collect::<Vec<_>>()),
            DType::Float16 => tensor(shape, numbers.iter().map(|x| f16::from_f64(*x)).collect::<Vec<_>>()),
            _ => tensor(shape, numbers),
        }
    }

    /// A normalization of `x`, whose first dimension has a name, as exporters write it.
    fn draft(dtype: DType, shape: &[usize], nodes: &[(&str, &[&str], &str)], axes: i64, keep: i64) -> Draft {
        let mut builder = Builder::new();
        let mut dims: Vec<Dim> = shape.iter().map(|dim| Dim::Fixed(*dim)).collect();
        dims[0] = Dim::Symbol("N".into());
        builder.shaped("x", Some(dtype.into()), Some(dims));
        let len = *shape.last().unwrap();
        let scalar = |value: f64| match dtype {
            DType::Float => tensor(&[], [value as f32]),
            DType::Float16 => tensor(&[], [f16::from_f64(value)]),
            _ => tensor(&[], [value]),
        };
        builder.constant("two", scalar(2.0));
        builder.constant("eps", scalar(1e-3));
        builder.constant("axes", tensor(&[1], [axes]));
        builder.constant("w", numbers(dtype, &[len], 3));
        builder.constant("b", numbers(dtype, &[1, len], 5));
        for (operator, inputs, output) in nodes {
            let attributes = operator.starts_with("Reduce").then(|| ("keepdims".to_string(), Attribute::Int(keep)));
            builder.op_with(operator, attributes.into_iter().collect(), inputs, output);
        }
        builder.output("y")
    }

    type Nodes<'a> = &'a [(&'a str, &'a [&'a str], &'a str)];

    const LAYER: Nodes<'_> = &[
        ("Neg", &["x"], "n"),
        ("ReduceMean", &["n", "axes"], "mean"),
        ("Sub", &["n", "mean"], "d"),
        ("Pow", &["d", "two"], "p"),
        ("ReduceMean", &["p", "axes"], "v"),
        ("Add", &["v", "eps"], "e"),
        ("Sqrt", &["e"], "s"),
        ("Div", &["d", "s"], "q"),
        ("Mul", &["w", "q"], "m"),
        ("Add", &["m", "b"], "y"),
    ];
    const ROOT_MEAN_SQUARE: Nodes<'_> = &[
        ("Mul", &["x", "x"], "p"),
        ("ReduceMean", &["p", "axes"], "v"),
        ("Add", &["eps", "v"], "e"),
        ("Sqrt", &["e"], "s"),
        ("Reciprocal", &["s"], "r"),
        ("Mul", &["x", "r"], "m"),
        ("Mul", &["m", "w"], "y"),
    ];
    const SOFTMAX: Nodes<'_> = &[
        ("ReduceMax", &["x", "axes"], "most"),
        ("Sub", &["x", "most"], "d"),
        ("Exp", &["d"], "p"),
        ("ReduceSum", &["p", "axes"], "sum"),
        ("Div", &["p", "sum"], "y"),
    ];

    #[test]
    fn no_bit_changes() {
        for dtype in [DType::Float, DType::Double, DType::Float16] {
            for nodes in [LAYER, ROOT_MEAN_SQUARE, SOFTMAX] {
                for shape in [&[2, 3, 40][..], &[1, 2], &[70, 129], &[3, 1, 4096], &[2, 40_000]] {
                    let shape = if cfg!(miri) { &shape[..shape.len().min(2)] } else { shape };
                    let feeds = [numbers(dtype, shape, 0)];
                    let graph = load(draft(dtype, shape, nodes, -1, 1), true).unwrap();
                    let plain = load(draft(dtype, shape, nodes, -1, 1), false).unwrap();
                    assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None), "{dtype} {shape:?}");
                    let names: Vec<_> = nodes.iter().map(|(_, _, name)| *name).collect();
                    assert_eq!(stands_for(&graph), [names], "{dtype} {shape:?}");
                }
            }
        }
    }

    /// Another axis, lanes that don't stay, and numbers of lanes that somebody else reads.
    #[test]
    fn what_is_something_else_stays() {
        let feeds = [numbers(DType::Float, &[3, 3], 0)];
        for (axis, keep) in [(0, 1), (-1, 0)] {
            let graphs =
                [true, false].map(|optimize| load(draft(DType::Float, &[3, 3], SOFTMAX, axis, keep), optimize));
            let [graph, plain] = graphs.map(Result::unwrap);
            assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None));
            assert_eq!(graph.node_infos().len(), 4);
        }
        let read = [SOFTMAX, &[("Neg", &["sum"], "z")]].concat();
        let draft = || {
            let mut draft = draft(DType::Float, &[3, 3], &read, -1, 1);
            let id = draft.nodes.last().unwrap().outputs[0].unwrap();
            let info = crate::graph::ValueInfo { name: "z".into(), value_type: None, shape: None };
            draft.output(info, id);
            draft
        };
        let [graph, plain] = [true, false].map(|optimize| load(draft(), optimize).unwrap());
        assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None));
        let alone: Vec<String> = Vec::new();
        assert_eq!(
            stands_for(&graph),
            [vec!["most".to_string(), "d".into(), "p".into()], alone.clone(), alone.clone(), alone]
        );
    }

    /// A rotary embedding of `x`, whose elements are turned by `first`, along an axis; and the shape of its cosines.
    fn rotary(shape: &[usize], cosines: &[usize], [first, end, axis]: [i64; 3], steps: bool) -> Draft {
        let mut builder = Builder::new();
        let mut dims: Vec<Dim> = shape.iter().map(|dim| Dim::Fixed(*dim)).collect();
        dims[0] = Dim::Symbol("N".into());
        builder.shaped("x", Some(DType::Float.into()), Some(dims));
        for (name, from) in [("cos", 3), ("sin", 5)] {
            builder.constant(name, numbers(DType::Float, cosines, from));
        }
        for (name, number) in [("first", first), ("end", end), ("axis", axis), ("zero", 0), ("one", 1)] {
            builder.constant(name, tensor(&[1], [number]));
        }
        let count = if steps { 5 } else { 4 };
        builder.op("Mul", &["cos", "x"], "a");
        builder.op("Slice", &["x", "zero", "first", "axis", "one"][..count], "low");
        builder.op("Slice", &["x", "first", "end", "axis", "one"][..count], "high");
        builder.op("Neg", &["high"], "n");
        builder.op_with("Concat", vec![("axis".to_string(), Attribute::Int(axis))], &["n", "low"], "t");
        builder.op("Mul", &["t", "sin"], "b");
        builder.op("Add", &["a", "b"], "y");
        builder.output("y")
    }

    #[test]
    fn rotary_embeddings() {
        const MOST: i64 = i64::MAX;
        let shape = if cfg!(miri) { [2, 2, 3, 8] } else { [2, 3, 70, 8] };
        let [rows, all] = [&[1, 1, shape[2], 8], &shape];
        for (cosines, turn, steps, nodes) in [
            (&rows[..], [4, MOST, -1], true, 1),
            (&rows[2..], [3, 8, 3], false, 1),
            (&[8], [4, MOST, 3], true, 1),
            (&all[1..], [7, MOST, -1], true, 1),
            (&[1], [4, MOST, -1], true, 1),
            // Another axis, parts that aren't all, one cosine for each lane.
            (&[8], [1, MOST, 1], true, 5),
            (&[4], [2, 4, 3], true, 7),
            (&[shape[2], 1], [4, MOST, 3], true, 5),
        ] {
            let shape = if cosines == [4] { &[2, 3, 4, 4][..] } else { &shape };
            let turn = if cosines == [4] { [1, 3, 3] } else { turn };
            let feeds = [numbers(DType::Float, shape, 0)];
            let graphs = [true, false].map(|optimize| load(rotary(shape, cosines, turn, steps), optimize).unwrap());
            let ran =
                graphs.each_ref().map(|graph| testing::run(graph, &feeds, None).map_err(|error| error.to_string()));
            assert_eq!(ran[0], ran[1], "{cosines:?} {turn:?}");
            assert_eq!(graphs[0].node_infos().len(), nodes, "{cosines:?} {turn:?}");
        }
    }

    /// An input that has other dimensions than it says, or as many as no lane may have, runs node by node.
    #[test]
    fn errors_are_those_of_the_nodes() {
        let graphs = [true, false].map(|optimize| load(draft(DType::Float, &[3, 4], LAYER, -1, 1), optimize).unwrap());
        let error = |graph| testing::run(graph, &[numbers(DType::Float, &[3, 5], 0)], None).unwrap_err().to_string();
        let [graph, plain] = graphs.each_ref().map(error);
        assert_eq!(graph, plain);
        assert!(graph.starts_with("node \"m\" (Mul-14): "), "{graph}");
    }

    const ONE: [&str; 5] = ["Neg", "Relu", "Abs", "Exp", "Sqrt"];
    const TWO: [&str; 4] = ["Add", "Sub", "Mul", "Div"];
    const LANES: [&str; 4] = ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"];

    /// A node: its operator, and its inputs among the values so far.
    type Random = (usize, [usize; 2]);

    fn nodes() -> impl Strategy<Value = Vec<Random>> {
        prop::collection::vec((0..ONE.len() + TWO.len() + LANES.len(), any::<[usize; 2]>()), 1..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(sized(300, 2)))]

        #[test]
        fn no_bit_of_any_graph_changes(
            nodes in nodes(),
            columns in prop_oneof![Just(1usize), Just(3), Just(sized(700, 5)), Just(sized(5000, 7))],
            rows in 1usize..4,
            dtype in prop_oneof![Just(DType::Float), Just(DType::Double), Just(DType::Float16)],
            shared in any::<[bool; 4]>(),
        ) {
            let shapes = [vec![rows, columns], vec![columns], vec![1, 1], vec![1], vec![rows, 1]];
            let draft = || {
                let mut builder = Builder::new();
                for (k, shape) in shapes.iter().enumerate() {
                    let mut dims: Vec<Dim> = shape.iter().copied().map(Dim::Fixed).collect();
                    if k % 4 == 0 {
                        dims[0] = Dim::Symbol("N".into());
                    }
                    builder.shaped(&format!("v{k}"), Some(dtype.into()), Some(dims));
                }
                builder.constant("axes", tensor(&[1], [-1i64]));
                for (k, (operator, from)) in nodes.iter().enumerate() {
                    let name = format!("v{}", 5 + k);
                    // Long chains are more likely if the last values are read.
                    let (late, any) = (format!("v{}", 4 + k - (from[0] % 4)), format!("v{}", from[1] % (5 + k)));
                    match (ONE.get(*operator), TWO.get(operator.wrapping_sub(ONE.len()))) {
                        (Some(operator), _) => builder.op(operator, &[&late], &name),
                        (_, Some(operator)) => builder.op(operator, &[&late, &any], &name),
                        _ => {
                            // Of a value that has lanes.
                            let lanes = if from[1] % 3 == 0 { "v0" } else { &late };
                            builder.op(LANES[operator - ONE.len() - TWO.len()], &[lanes, "axes"], &name);
                        }
                    }
                    if k + 1 == nodes.len() || (k % 6 == 1 && shared[k / 6 % 4]) {
                        builder.output_named(&name);
                    }
                }
                builder.draft
            };
            let feeds: Vec<Value> = shapes.iter().enumerate().map(|(k, shape)| numbers(dtype, shape, k)).collect();
            let [ran, plain] = [true, false].map(|optimize| run(&load(draft(), optimize).unwrap(), &feeds, None));
            prop_assert_eq!(&ran, &plain);
        }
    }
}
