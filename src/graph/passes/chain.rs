//! Fuses chains of elementwise operators into one pass over memory.

use super::fuse::{Fusion, fuse, outside};
use super::pattern::Pattern;
use super::{PassContext, Readers, constant, fact};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::draft::{Draft, DraftNode, Entry, Id};
use crate::operator::{Chain, Made, Rowwise, StepInput};
use crate::tensor::Scalar;
use crate::value::{Dim, Fact, ValueType};
use kernels::functions::{GeluOfErf, Halved, Scaled};
use smallvec::SmallVec;
use std::sync::Arc;

/// Nodes that read each other's values and nobody else does, all of one shape and element type.
pub(super) fn chain(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let gelus = gelus(draft, &readers)?;
    // For each node the nodes of the chain that it ends; empty if it is in none, or if the chain goes on.
    let mut chains: Vec<SmallVec<[usize; 4]>> = vec![SmallVec::new(); draft.nodes.len()];
    for (at, node) in draft.nodes.iter().enumerate() {
        let Some((dtype, dims)) = step(node, &draft.entries) else { continue };
        let mut own: SmallVec<[usize; 4]> = [at].into_iter().collect();
        for id in node.inputs.iter().flatten() {
            let before = readers.producer(*id).filter(|before| readers.count(*id) == 1 && !own.contains(before));
            let Some(before) = before.filter(|before| chains.get(*before).is_some_and(|chain| !chain.is_empty()))
            else {
                continue;
            };
            let fits = draft.nodes.get(before).and_then(|node| step(node, &draft.entries));
            if fits != Some((dtype, dims)) {
                continue;
            }
            let mut joined: SmallVec<[usize; 4]> =
                own.iter().chain(chains.get(before).into_iter().flatten()).copied().collect();
            joined.sort_unstable();
            if plan(&joined, dtype, draft, &gelus).is_some() {
                own = joined;
            }
        }
        for before in &own {
            chains.get_mut(*before).into_iter().for_each(SmallVec::clear);
        }
        chains.get_mut(at).into_iter().for_each(|chain| *chain = own.clone());
    }
    let mut fusions = Vec::new();
    for chain in chains.into_iter().filter(|chain| chain.len() > 1) {
        let dtype = chain.last().and_then(|at| step(draft.nodes.get(*at)?, &draft.entries)).map(|(dtype, _)| dtype);
        if let Some((operator, inputs)) = dtype.and_then(|dtype| plan(&chain, dtype, draft, &gelus)) {
            fusions.push(Fusion { nodes: chain, inputs, operator: Box::new(operator) });
        }
    }
    fuse(draft, fusions, context)
}

/// The element type and the dimensions of a node's output, if it may be a step of a chain.
fn step<'a>(node: &DraftNode, entries: &'a [Entry]) -> Option<(DType, &'a [Dim])> {
    let operator = rowwise(node)?;
    let fact = |id: &Option<Id>| id.and_then(|id| entries.get(id.at())).map(|entry| &entry.fact);
    let dtype = |id: &Option<Id>| fact(id)?.value_type().and_then(ValueType::dtype);
    let [output] = &*node.outputs else { return None };
    let of = dtype(output)?;
    let good = node.inputs.len() <= 3 && node.inputs.iter().all(|id| dtype(id) == Some(of)) && operator.may_chain(of);
    // Sizes that aren't known may differ.
    let dims = fact(output)?.dims().filter(|dims| good && !node.open && !dims.contains(&Dim::Unknown))?;
    let full = node.inputs.iter().any(|id| fact(id).and_then(|fact| fact.dims()) == Some(dims));
    full.then_some((of, dims))
}

fn rowwise(node: &DraftNode) -> Option<&Arc<dyn Rowwise>> {
    match &node.operator {
        Some(Made::Rowwise(operator)) => Some(operator),
        _ => None,
    }
}

/// Nodes that are a Gelu.
struct Gelu {
    nodes: SmallVec<[usize; 4]>,
    x: Id,
    operator: Arc<dyn Rowwise>,
}

/// The Gelus of a draft as exporters write them, in order of their last nodes.
fn gelus(draft: &Draft, readers: &Readers) -> Result<Vec<Gelu>> {
    /// What a constant does to x.
    type Scaling = fn(f64) -> Scaled;
    const FORMS: [(&str, Scaling, Halved); 6] = [
        ("Mul(Mul(x, Add(Erf(Div(x, c)), 1)), 0.5)", Scaled::By, Halved::Product),
        ("Mul(x, Mul(Add(Erf(Div(x, c)), 1), 0.5))", Scaled::By, Halved::Sum),
        ("Mul(Mul(x, 0.5), Add(Erf(Div(x, c)), 1))", Scaled::By, Halved::X),
        ("Mul(Mul(x, Add(Erf(Mul(x, c)), 1)), 0.5)", Scaled::Times, Halved::Product),
        ("Mul(x, Mul(Add(Erf(Mul(x, c)), 1), 0.5))", Scaled::Times, Halved::Sum),
        ("Mul(Mul(x, 0.5), Add(Erf(Mul(x, c)), 1))", Scaled::Times, Halved::X),
    ];
    if !draft.nodes.iter().any(|node| node.standard() == Some("Erf")) {
        return Ok(Vec::new());
    }
    let mut patterns = Vec::with_capacity(FORMS.len());
    for (text, scaled, halved) in FORMS {
        patterns.push((Pattern::of(text)?, scaled, halved));
    }
    let found = |at: usize, (pattern, scaled, halved): &(Pattern, Scaling, Halved)| {
        let found = pattern.find(at, draft, readers)?;
        let c = constant(found.value("c")?, draft).filter(|c| c.len() == 1)?;
        let c = match c.scalars().next()? {
            Scalar::Float(c) => f64::from(c),
            Scalar::Double(c) => c,
            _ => return None,
        };
        let steps = GeluOfErf { scaled: scaled(c), halved: *halved };
        let operator = found.nodes.iter().find_map(|at| rowwise(draft.nodes.get(*at)?)?.gelu(steps))?;
        Some(Gelu { x: found.value("x")?, nodes: found.nodes, operator })
    };
    Ok((0..draft.nodes.len()).filter_map(|at| patterns.iter().find_map(|pattern| found(at, pattern))).collect())
}

/// The chain of these nodes and the values that it reads, if it isn't too large.
fn plan(chain: &[usize], dtype: DType, draft: &Draft, gelus: &[Gelu]) -> Option<(Chain, SmallVec<[Id; 4]>)> {
    let dims = |id: Id| fact(id, draft).and_then(Fact::dims);
    let of_chain = draft.nodes.get(*chain.last()?)?.outputs.first().copied().flatten().and_then(dims);
    // Its constants may have more dimensions than its input.
    let is_inside = |gelu: &&Gelu| gelu.nodes.iter().all(|at| chain.contains(at)) && dims(gelu.x) == of_chain;
    let gelu = |at: usize| {
        let of_floats = matches!(dtype, DType::Float | DType::Double);
        let found = gelus.binary_search_by_key(&Some(&at), |gelu| gelu.nodes.last()).ok().filter(|_| of_floats)?;
        gelus.get(found).filter(is_inside)
    };
    let is_part =
        |at: usize| chain.iter().any(|end| *end != at && gelu(*end).is_some_and(|gelu| gelu.nodes.contains(&at)));
    // For each step its last node.
    let ends: SmallVec<[usize; 8]> = chain.iter().copied().filter(|at| !is_part(*at)).collect();
    let mut inputs: SmallVec<[Id; 4]> = SmallVec::new();
    let node = |at: usize| draft.nodes.get(at);
    let produced = |id: Id| ends.iter().position(|at| node(*at).is_some_and(|node| node.outputs.contains(&Some(id))));
    let mut steps = Vec::with_capacity(ends.len());
    for at in &ends {
        let from = |id: Id| match produced(id) {
            Some(step) => StepInput::Step(step),
            None => StepInput::Input(inputs.iter().position(|own| *own == id).unwrap_or_else(|| {
                inputs.push(id);
                inputs.len() - 1
            })),
        };
        steps.push(match gelu(*at) {
            Some(gelu) => (gelu.operator.clone(), [gelu.x].into_iter().map(from).collect()),
            None => (rowwise(node(*at)?)?.clone(), node(*at)?.inputs.iter().flatten().copied().map(from).collect()),
        });
    }
    let operator = Chain::new(dtype, inputs.len(), steps)?;
    // The nodes of a Gelu read more than its step.
    outside(chain, &mut inputs, draft);
    Some((operator, inputs))
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::{Seen, run, stands_for};
    use crate::graph::testing::{Builder, load};
    use crate::graph::{Draft, Runs};
    use crate::operator::Chain;
    use crate::ops::testing::tensor;
    use crate::value::{Dim, Value};
    use half::f16;
    use kernels::testing::sized;
    use proptest::prelude::*;

    fn dims(shape: &[usize]) -> Vec<Dim> {
        // A symbol may turn out to be 1.
        shape
            .iter()
            .enumerate()
            .map(|(k, dim)| if k == 0 { Dim::Symbol("N".into()) } else { Dim::Fixed(*dim) })
            .collect()
    }

    /// `y = relu((x + b) * x) + sqrt(x)`, `z = x + b`
    fn draft() -> Draft {
        let mut builder = Builder::new();
        builder.shaped("x", Some(DType::Float.into()), Some(dims(&[2, 3])));
        builder.shaped("b", Some(DType::Float.into()), Some(vec![Dim::Fixed(3)]));
        builder.op("Add", &["x", "b"], "sum");
        builder.op("Add", &["x", "b"], "z");
        builder.op("Mul", &["sum", "x"], "product");
        builder.op("Relu", &["product"], "relu");
        builder.op("Sqrt", &["x"], "root");
        builder.op("Add", &["relu", "root"], "y");
        builder.output_named("z");
        builder.output("y")
    }

    fn feeds() -> [Value; 2] {
        [tensor(&[2, 3], [1f32, 4.0, 9.0, 16.0, 25.0, 36.0]), [-2f32, 0.5, 1.0].into()]
    }

    #[test]
    fn one_node_stands_for_five() {
        let graph = load(draft(), true).unwrap();
        assert_eq!(stands_for(&graph), [vec![], vec!["sum", "product", "relu", "root", "y"]]);
        let plain = run(&load(draft(), false).unwrap(), &feeds(), None);
        assert_eq!(run(&graph, &feeds(), None), plain);
        assert_eq!(plain[1], tensor(&[2, 3], [1f32, 20.0, 93.0, 228.0, 642.5, 1338.0]));
    }

    #[test]
    fn a_watch_sees_the_nodes_or_the_whole() {
        let graph = load(draft(), true).unwrap();
        for (whole, want) in
            [(false, "z.. z sum.. sum product.. product relu.. relu root.. root y.. y"), (true, "z.. z y.. y")]
        {
            let mut seen = Seen { whole, names: Vec::new() };
            let values = run(&graph, &feeds(), Some(&mut seen));
            assert_eq!((seen.names.join(" ").as_str(), values), (want, run(&graph, &feeds(), None)));
        }
    }

    #[test]
    fn what_others_read_stays() {
        let mut builder = Builder::new();
        builder.shaped("x", Some(DType::Float.into()), Some(dims(&[2, 3])));
        builder.op("Neg", &["x"], "a");
        builder.op("Exp", &["a"], "b");
        builder.op("Relu", &["b"], "c");
        builder.output_named("b");
        let graph = load(builder.output("c"), true).unwrap();
        let nodes: Vec<(String, usize)> =
            graph.node_infos().map(|node| (node.name.to_string(), node.parts().len())).collect();
        assert_eq!(nodes, [("b".to_string(), 2), ("c".to_string(), 0)]);
    }

    /// The product with what is computed of it is one step, unless something else reads that, or it is rounded.
    #[test]
    fn gates() {
        for (dtype, twice, steps) in
            [(DType::Float, false, 2), (DType::Double, false, 2), (DType::Float16, false, 3), (DType::Float, true, 3)]
        {
            let draft = || {
                let mut builder = Builder::new();
                builder.shaped("x", Some(dtype.into()), Some(dims(&[1, 45])));
                builder.op("Neg", &["x"], "a");
                builder.op("Sigmoid", &["a"], "b");
                builder.op("Mul", &["b", "a"], "c");
                let last = if twice { ["c", "b"] } else { ["c", "a"] };
                builder.op("Sub", &last, "d");
                if twice {
                    builder.op("Relu", &["d"], "e");
                }
                builder.output(if twice { "e" } else { "d" })
            };
            let numbers: Vec<f64> = (0..45).map(|at| f64::from(at) * 5.5 - 121.0).collect();
            let feed = match dtype {
                DType::Float => tensor(&[1, 45], numbers.iter().map(|x| *x as f32).collect::<Vec<_>>()),
                DType::Float16 => tensor(&[1, 45], numbers.iter().map(|x| f16::from_f64(*x)).collect::<Vec<_>>()),
                _ => tensor(&[1, 45], numbers),
            };
            let graph = load(draft(), true).unwrap();
            let want = run(&load(draft(), false).unwrap(), std::slice::from_ref(&feed), None);
            assert_eq!(run(&graph, &[feed], None), want, "{dtype}");
            let chains = graph.nodes.iter().filter_map(|node| match &node.operator {
                Runs::Fused(fused) => fused.operator.chain().map(Chain::len),
                _ => None,
            });
            assert_eq!(chains.collect::<Vec<_>>(), [steps], "{dtype}");
        }
    }

    /// Constants of Gelu that have more dimensions than its input give them to the output.
    #[test]
    fn gelu_of_a_scalar() {
        for shape in [&[][..], &[1]] {
            let draft = || {
                let mut builder = Builder::new();
                builder.shaped("x", Some(DType::Float.into()), Some(vec![]));
                for (name, number) in [("c", 1.41f32), ("one", 1.0), ("half", 0.5)] {
                    builder.constant(name, tensor(shape, [number]));
                }
                builder.op("Div", &["x", "c"], "scaled");
                builder.op("Erf", &["scaled"], "e");
                builder.op("Add", &["one", "e"], "s");
                builder.op("Mul", &["x", "s"], "h");
                builder.op("Mul", &["h", "half"], "y");
                builder.output("y")
            };
            let [got, want] =
                [true, false].map(|optimize| run(&load(draft(), optimize).unwrap(), &[tensor(&[], [0.7f32])], None));
            assert_eq!(got, want);
            assert_eq!(got[0].tensor().unwrap().shape(), shape);
        }
    }

    /// The five nodes that exporters write for Gelu are one step, in floats that aren't rounded in between.
    #[test]
    fn gelus() {
        // What multiplies x before Erf, and what 0.5 multiplies.
        for (scale, half) in [("Div", "y"), ("Div", "s"), ("Div", "x"), ("Mul", "y"), ("Mul", "s"), ("Mul", "x")] {
            for (dtype, one, steps) in
                [(DType::Float, 1.0, 1), (DType::Double, 1.0, 1), (DType::Float16, 1.0, 5), (DType::Float, 2.0, 5)]
            {
                let numbers = |shape: &[usize], numbers: &[f64]| match dtype {
                    DType::Float => tensor(shape, numbers.iter().map(|x| *x as f32).collect::<Vec<_>>()),
                    DType::Float16 => tensor(shape, numbers.iter().map(|x| f16::from_f64(*x)).collect::<Vec<_>>()),
                    _ => tensor(shape, numbers.to_vec()),
                };
                let draft = || {
                    let mut builder = Builder::new();
                    builder.shaped("x", Some(dtype.into()), Some(dims(&[2, 700])));
                    for (name, number) in [("c", 1.41), ("one", one), ("half", 0.5)] {
                        builder.constant(name, numbers(&[1], &[number]));
                    }
                    builder.op(scale, &["x", "c"], "scaled");
                    builder.op("Erf", &["scaled"], "e");
                    builder.op("Add", &["one", "e"], "s");
                    let (halved, rest) = match half {
                        "x" => (["x", "half"], "s"),
                        "s" => (["half", "s"], "x"),
                        _ => (["x", "s"], "half"),
                    };
                    builder.op("Mul", &halved, "h");
                    builder.op("Mul", &["h", rest], "y");
                    builder.output("y")
                };
                let ends = [1e30, -1e30, f64::INFINITY, -f64::INFINITY, 1e-39, -0.0, 3e38];
                let feed: Vec<f64> = ends.into_iter().chain((7..1400).map(|at| f64::from(at) / 100.0 - 7.0)).collect();
                let feed = numbers(&[2, 700], &feed);
                let graph = load(draft(), true).unwrap();
                let feed = std::slice::from_ref(&feed);
                let plain = run(&load(draft(), false).unwrap(), feed, None);
                assert_eq!(run(&graph, feed, None), plain, "{scale}, {half}, {dtype}, {one}");
                let mut seen = Seen { whole: false, names: Vec::new() };
                assert_eq!(run(&graph, feed, Some(&mut seen)), plain, "{scale}, {half}, {dtype}, {one}");
                let chains = graph.nodes.iter().filter_map(|node| match &node.operator {
                    Runs::Fused(fused) => fused.operator.chain().map(Chain::len),
                    _ => None,
                });
                assert_eq!(chains.collect::<Vec<_>>(), [steps], "{scale}, {half}, {dtype}, {one}");
            }
        }
    }

    const ONE: [&str; 7] = ["Neg", "Relu", "Abs", "Exp", "Tanh", "Sqrt", "Sigmoid"];
    const TWO: [&str; 4] = ["Add", "Sub", "Mul", "Div"];

    /// A node: its operator, and its inputs among the values so far.
    type Random = (usize, [usize; 2]);

    fn node() -> impl Strategy<Value = Random> {
        (0..ONE.len() + TWO.len(), any::<[usize; 2]>())
    }

    fn nodes() -> impl Strategy<Value = Vec<Random>> {
        prop::collection::vec(node(), 1..16)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(sized(200, 2)))]

        #[test]
        fn no_bit_changes(
            nodes in nodes(),
            columns in prop_oneof![Just(1usize), Just(3), Just(sized(700, 5)), Just(sized(2100, 7))],
            rows in 1usize..4,
            dtype in prop_oneof![Just(DType::Float), Just(DType::Double), Just(DType::Float16)],
            shared in any::<[bool; 4]>(),
        ) {
            let shapes = [vec![rows, columns], vec![columns], vec![1, 1], vec![]];
            let draft = || {
                let mut builder = Builder::new();
                for (k, shape) in shapes.iter().enumerate() {
                    let fixed = || shape.iter().copied().map(Dim::Fixed).collect();
                    let declared = if k == 0 { dims(shape) } else { fixed() };
                    builder.shaped(&format!("v{k}"), Some(dtype.into()), Some(declared));
                }
                for (k, (operator, from)) in nodes.iter().enumerate() {
                    // Long chains are more likely if the last values are read.
                    let (late, any) = (format!("v{}", 3 + k - (from[0] % 3)), format!("v{}", from[1] % (4 + k)));
                    match ONE.get(*operator) {
                        Some(operator) => builder.op(operator, &[&late], &format!("v{}", 4 + k)),
                        None => builder.op(TWO[operator - ONE.len()], &[&late, &any], &format!("v{}", 4 + k)),
                    }
                    if k + 1 == nodes.len() || (k % 4 == 1 && shared[k / 4 % 4]) {
                        builder.output_named(&format!("v{}", 4 + k));
                    }
                }
                builder.draft
            };
            let feeds: Vec<Value> = shapes.iter().map(|shape| {
                let count = shape.iter().product::<usize>();
                let numbers: Vec<f64> = (0..count).map(|at| (at * 7 % 23) as f64 / 4.0 - 2.0).collect();
                match dtype {
                    DType::Float => tensor(shape, numbers.iter().map(|x| *x as f32).collect::<Vec<_>>()),
                    DType::Float16 => tensor(shape, numbers.iter().map(|x| f16::from_f64(*x)).collect::<Vec<_>>()),
                    _ => tensor(shape, numbers),
                }
            }).collect();
            let plain = run(&load(draft(), false).unwrap(), &feeds, None);
            let graph = load(draft(), true).unwrap();
            prop_assert_eq!(&run(&graph, &feeds, None), &plain);
            // The nodes run one after the other where somebody watches.
            let mut seen = Seen { whole: false, names: Vec::new() };
            prop_assert_eq!(&run(&graph, &feeds, Some(&mut seen)), &plain);
        }
    }
}
