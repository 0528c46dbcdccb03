//! Replaces functions of one integer of 8 bits that are written with floats by tables of 256 integers.

use super::copies::{is_own, own_sources};
use super::fuse::{Fusion, fuse, outside};
use super::quantized::scaling;
use super::{PassContext, Readers, constant, dtype, fact};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::draft::{Draft, DraftNode, Id};
use crate::operator::{ByteRows, ByteScale, Made, Rowwise, Table};
use bytemuck::{cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use std::sync::Arc;

/// Nodes before the last one of a function that are looked at, and the most that it has.
const WINDOW: usize = 64;
const MOST: usize = 32;

/// `QuantizeLinear(f(DequantizeLinear(x)))`, where `f` computes element by element, of that and of single constants: also if it
/// quantizes and dequantizes on the way, and reads `x` several times. What becomes of each integer is computed here.
pub(super) fn functions(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let reads = all(draft, &readers).into_iter().flat_map(|found| found.reads).collect();
    own_sources(draft, reads, &readers, context)?;
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let own = |found: &Found| found.reads.iter().all(|(.., at)| is_own(*at, draft, &readers));
    let fusions = all(draft, &readers).into_iter().filter(own).filter_map(|found| found.fusion(draft)).collect();
    fuse(draft, fusions, context)
}

/// The largest functions. No two have a node in common, but for those of DequantizeLinear, which are copied then.
fn all(draft: &Draft, readers: &Readers) -> Vec<Found> {
    let (mut taken, mut all) = (vec![false; draft.nodes.len()], Vec::new());
    for last in (0..draft.nodes.len()).rev() {
        if let Some(found) = function(last, draft, readers, &taken) {
            let copied = |at: &&usize| found.reads.iter().any(|(.., read)| read == *at);
            for at in found.nodes.iter().map(|(at, _)| at).filter(|at| !copied(at)) {
                taken.get_mut(*at).into_iter().for_each(|taken| *taken = true);
            }
            all.push(found);
        }
    }
    all.reverse();
    all
}

/// What a node of a function does.
enum Does {
    Quantize(ByteScale),
    Dequantize(ByteScale),
    Compute(Arc<dyn Rowwise>),
    /// What guards a softmax of nothing but negative infinities: 1 for NaN, and a choice by that.
    IsNan,
    Choose,
}

/// A function: its nodes, the last one first, and the integers that it reads.
struct Found {
    nodes: SmallVec<[(usize, Does); 8]>,
    /// The DequantizeLinear nodes: by whom they are read, and as which input.
    reads: SmallVec<[(usize, usize, usize); 4]>,
    from: Id,
}

/// The largest function whose QuantizeLinear node is at a place.
fn function(last: usize, draft: &Draft, readers: &Readers, taken: &[bool]) -> Option<Found> {
    let does_last = does(last, draft).filter(|does| matches!(does, Does::Quantize(_)))?;
    let output = draft.nodes.get(last)?.outputs.first().copied().flatten()?;
    let dims = fact(output, draft)?.dims()?;
    let mut found = Found { nodes: [(last, does_last)].into_iter().collect(), reads: SmallVec::new(), from: output };
    let (mut needed, mut best) = (SmallVec::<[Id; 4]>::new(), None);
    needed.push(draft.nodes.get(last)?.inputs.first().copied().flatten()?);
    for at in (last.saturating_sub(WINDOW)..last).rev() {
        let Some([Some(output)]) = draft.nodes.get(at).map(|node| &*node.outputs) else { continue };
        if !needed.contains(output) {
            continue;
        }
        let (Some(does), false) = (does(at, draft), taken.get(at) == Some(&true)) else { break };
        let node = draft.nodes.get(at)?;
        let inside = || found.nodes.iter().filter_map(|(at, _)| Some((*at, draft.nodes.get(*at)?)));
        let all_inside =
            inside().filter(|(_, node)| node.reads().any(|id| id == *output)).count() == readers.count(*output);
        let mut inputs: SmallVec<[Id; 4]> = SmallVec::new();
        match does {
            // Others may read it too: it is copied then.
            Does::Dequantize(_) => {
                let of_node = |(reader, node): (usize, &DraftNode)| {
                    let own = |(k, id): (usize, &Option<Id>)| (*id == Some(*output)).then_some((reader, k, at));
                    node.inputs.iter().enumerate().filter_map(own).collect::<SmallVec<[_; 2]>>()
                };
                let reads: SmallVec<[_; 4]> = inside().flat_map(of_node).collect();
                found.reads.extend(reads);
                inputs.push(node.inputs.first().copied().flatten()?);
            }
            Does::Quantize(_) if all_inside => inputs.push(node.inputs.first().copied().flatten()?),
            Does::Compute(_) | Does::IsNan | Does::Choose if all_inside => {
                inputs.extend(
                    node.inputs.iter().flatten().copied().filter(|id| single(*id, dims.len(), draft).is_none()),
                );
            }
            _ => break,
        }
        if found.nodes.len() == MOST {
            break;
        }
        found.nodes.push((at, does));
        needed.retain(|id| id != output);
        for id in inputs {
            if !needed.contains(&id) {
                needed.push(id);
            }
        }
        // Nothing else is read, and it has the shape of the output.
        if let [from] = *needed
            && matches!(dtype(from, draft), Some(DType::Int8 | DType::Uint8))
            && fact(from, draft).and_then(|fact| fact.dims()) == Some(dims)
        {
            best = Some((from, found.nodes.len(), found.reads.len()));
        }
    }
    let (from, nodes, reads) = best?;
    found.nodes.truncate(nodes);
    found.reads.truncate(reads);
    let computes = found.nodes.iter().any(|(_, does)| !matches!(does, Does::Quantize(_) | Does::Dequantize(_)));
    computes.then_some(Found { from, ..found })
}

/// What the node at a place does in a function, if it may be one of its nodes.
fn does(at: usize, draft: &Draft) -> Option<Does> {
    let node = draft.nodes.get(at).filter(|node| !node.open && node.operator.is_some())?;
    match (node.standard(), &*node.inputs) {
        (Some("IsNaN"), [Some(_)]) => return Some(Does::IsNan),
        (Some("Where"), [Some(_), Some(_), Some(_)]) => return Some(Does::Choose),
        _ => {}
    }
    if let Some(Made::Rowwise(operator)) = &node.operator {
        let [Some(output)] = *node.outputs else { return None };
        let floats = dtype(output, draft) == Some(DType::Float) && operator.may_chain(DType::Float);
        let whole = node.inputs.len() <= ByteRows::INPUTS && !node.inputs.contains(&None);
        return (floats && whole).then(|| Does::Compute(operator.clone()));
    }
    let scale = |name| scaling(name, at, draft)?.single();
    scale("QuantizeLinear").map(Does::Quantize).or_else(|| scale("DequantizeLinear").map(Does::Dequantize))
}

/// A constant of one float, which doesn't make tensors of a rank larger.
fn single(id: Id, rank: usize, draft: &Draft) -> Option<f32> {
    let constant = constant(id, draft).filter(|constant| constant.rank() <= rank)?;
    let &[number] = constant.as_slice::<f32>().ok()? else { return None };
    Some(number)
}

impl Found {
    fn fusion(self, draft: &Draft) -> Option<Fusion> {
        let (table, from, to) = self.table(draft)?;
        let nodes: SmallVec<[usize; 4]> = self.nodes.iter().rev().map(|(at, _)| *at).collect();
        let mut inputs = [self.from].into_iter().collect();
        outside(&nodes, &mut inputs, draft);
        Some(Fusion { nodes, inputs, operator: Box::new(ByteRows::of_each(table, from, to)) })
    }

    /// What becomes of each integer, and how those are scaled that are read and written.
    fn table(&self, draft: &Draft) -> Option<(Box<Table>, ByteScale, ByteScale)> {
        let mut bytes: SmallVec<[(Id, Box<Table>); 2]> = SmallVec::new();
        let mut floats: SmallVec<[(Id, Box<[f32; 256]>); 2]> = SmallVec::new();
        let (mut from, mut to) = (None, None);
        bytes.push((self.from, Box::new(std::array::from_fn(|at| at as u8))));
        for (at, does) in self.nodes.iter().rev() {
            let node = draft.nodes.get(*at)?;
            let output = node.outputs.first().copied().flatten()?;
            let first = node.inputs.first().copied().flatten()?;
            match does {
                Does::Dequantize(scale) => {
                    let mut numbers = Box::new([0.0; 256]);
                    scale.floats(&*bytes.iter().find(|(id, _)| *id == first)?.1, &mut *numbers);
                    floats.push((output, numbers));
                    from = from.or(Some(*scale));
                }
                Does::Quantize(scale) => {
                    let mut table = Box::new([0; 256]);
                    scale.bytes(&*floats.iter().find(|(id, _)| *id == first)?.1, &mut *table);
                    bytes.push((output, table));
                    to = Some(*scale);
                }
                Does::Compute(_) | Does::IsNan | Does::Choose => {
                    let input = |id: &Option<Id>| {
                        let id = (*id)?;
                        let known = floats.iter().find(|(own, _)| *own == id).map(|(_, floats)| floats.clone());
                        known.or_else(|| Some(Box::new([single(id, usize::MAX, draft)?; 256])))
                    };
                    let inputs = node.inputs.iter().map(input).collect::<Option<SmallVec<[_; 3]>>>()?;
                    let mut numbers = Box::new([0f32; 256]);
                    match (does, &*inputs) {
                        (Does::Compute(operator), _) => {
                            let given: SmallVec<[&[u8]; 3]> =
                                inputs.iter().map(|floats| cast_slice(&**floats)).collect();
                            operator.compute(DType::Float, &given, cast_slice_mut(&mut *numbers));
                        }
                        (Does::IsNan, [x]) => {
                            numbers.iter_mut().zip(&**x).for_each(|(to, x)| *to = f32::from(u8::from(x.is_nan())));
                        }
                        (_, [conditions, x, y]) => {
                            for (((to, condition), x), y) in numbers.iter_mut().zip(&**conditions).zip(&**x).zip(&**y) {
                                *to = if *condition == 0.0 { *y } else { *x };
                            }
                        }
                        _ => return None,
                    }
                    floats.push((output, numbers));
                }
            }
        }
        Some((bytes.pop()?.1, from?, to?))
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::Draft;
    use crate::graph::passes::testing::{run, stands_for};
    use crate::graph::testing::{Builder, load};
    use crate::ops::testing::tensor;
    use crate::tensor::Tensor;
    use crate::value::{Dim, Value};
    use kernels::testing::at_each_level;

    const INTEGERS: [DType; 2] = [DType::Uint8, DType::Int8];

    /// Nodes of `x`, integers of this type: `name = operator(inputs)`, where `q` is quantized and `d` dequantized by the scale of
    /// their number.
    fn draft(dtype: DType, half: &[usize], nodes: &[(&str, &[&str], &str)], outputs: &[&str]) -> Draft {
        let mut builder = Builder::new();
        builder.shaped("x", Some(dtype.into()), Some(vec![Dim::Symbol("N".into()), Dim::Fixed(300)]));
        builder.shaped("w", Some(dtype.into()), Some(vec![Dim::Symbol("N".into()), Dim::Fixed(300)]));
        let mut constant = |name: &str, value: Value| {
            builder.constant(name, value);
        };
        constant("root", tensor(&[], [std::f32::consts::SQRT_2]));
        constant("one", tensor(&[1], [1f32]));
        constant("half", tensor(half, vec![0.5f32; half.iter().product()]));
        for (k, scale) in [0.02f32, 0.008, 0.011, 0.03].into_iter().enumerate() {
            constant(&format!("scale{k}"), tensor(&[], [scale]));
            constant(&format!("zero{k}"), Tensor::new(dtype, &[], vec![120u8 - 30 * k as u8]).unwrap().into());
        }
        for (operator, inputs, output) in nodes {
            match *operator {
                "q" | "d" => {
                    let [from, k] = inputs else { panic!() };
                    let name = if *operator == "q" { "QuantizeLinear" } else { "DequantizeLinear" };
                    builder.op(name, &[from, &format!("scale{k}"), &format!("zero{k}")], output);
                }
                name => builder.op(name, inputs, output),
            }
        }
        outputs.iter().for_each(|output| builder.output_named(output));
        builder.draft
    }

    /// What exporters make of Gelu, quantized between all steps: reads `x` twice.
    const GELU: &[(&str, &[&str], &str)] = &[
        ("d", &["x", "0"], "floats"),
        ("Div", &["floats", "root"], "divided"),
        ("Erf", &["divided"], "erf"),
        ("q", &["erf", "1"], "erf.q"),
        ("d", &["erf.q", "1"], "erf.d"),
        ("Add", &["one", "erf.d"], "more"),
        ("q", &["more", "2"], "more.q"),
        ("d", &["more.q", "2"], "more.d"),
        ("Mul", &["floats", "more.d"], "product"),
        ("q", &["product", "3"], "product.q"),
        ("d", &["product.q", "3"], "product.d"),
        ("Mul", &["product.d", "half"], "gelu"),
        ("q", &["gelu", "1"], "y"),
    ];

    /// Whether there is one node for this many of the draft, and the outputs are those of the nodes.
    #[track_caller]
    fn check(draft: impl Fn(DType) -> Draft, parts: &[usize]) {
        for dtype in INTEGERS {
            let (graph, plain) = (load(draft(dtype), true).unwrap(), load(draft(dtype), false).unwrap());
            let found: Vec<usize> = stands_for(&graph).iter().map(Vec::len).filter(|parts| *parts > 0).collect();
            assert_eq!(found, parts, "{dtype}");
            let bytes = |k: usize| (0..600).map(|at| (at * k % 256) as u8).collect::<Vec<_>>();
            let feeds = [7, 5].map(|k| Tensor::new(dtype, &[2, 300], bytes(k)).unwrap().into());
            let want = run(&plain, &feeds, None);
            at_each_level(|| assert_eq!(run(&graph, &feeds, None), want, "{dtype}"));
        }
    }

    #[test]
    fn functions_of_one_integer_are_tables() {
        check(|dtype| draft(dtype, &[], GELU, &["y"]), &[14]);
        // Somebody else reads the floats: they are computed for that alone.
        check(|dtype| draft(dtype, &[], GELU, &["y", "floats"]), &[14]);
    }

    /// As softmax is guarded, where 0 / 0 is NaN indeed.
    #[test]
    fn choices_by_nan() {
        let guard = |floats| -> Vec<(&str, &[&str], &str)> {
            let choose: &[&str] = if floats == "ratio" { &["nan", "half", "ratio"] } else { &["nan", "one", "floats"] };
            let is_nan: &[&str] = if floats == "ratio" { &["ratio"] } else { &["floats"] };
            let ratio: (&str, &[&str], &str) = ("Div", &["floats", "floats"], "ratio");
            let all = [("d", &["x", "0"][..], "floats"), ratio, ("IsNaN", is_nan, "nan"), ("Where", choose, "z")];
            let own = all.into_iter().filter(|(.., name)| floats == "ratio" || *name != "ratio");
            own.chain([("q", &["z", "1"][..], "y")]).collect()
        };
        check(|dtype| draft(dtype, &[], &guard("floats"), &["y"]), &[5]);
        check(|dtype| draft(dtype, &[], &guard("ratio"), &["y"]), &[5]);
        // What others read, and a row to choose from.
        check(|dtype| draft(dtype, &[], &guard("ratio"), &["y", "nan"]), &[]);
        check(|dtype| draft(dtype, &[300], &guard("ratio"), &["y"]), &[]);
    }

    #[test]
    fn several_functions_of_the_same_floats() {
        let nodes: &[(&str, &[&str], &str)] = &[
            ("d", &["x", "0"], "floats"),
            ("Sigmoid", &["floats"], "a"),
            ("q", &["a", "1"], "a.q"),
            ("Tanh", &["floats"], "b"),
            ("q", &["b", "1"], "b.q"),
            ("Relu", &["floats"], "c"),
            ("Mul", &["c", "floats"], "c.product"),
            ("q", &["c.product", "2"], "c.q"),
        ];
        check(|dtype| draft(dtype, &[], nodes, &["a.q", "b.q", "c.q"]), &[3, 3, 5]);
    }

    #[test]
    fn what_isnt_a_function_of_one_integer() {
        // What others read is computed, and the rest is a function of that.
        check(|dtype| draft(dtype, &[], GELU, &["y", "more.q"]), &[7, 4, 3]);
        // A row of numbers: each column has a function of its own.
        check(|dtype| draft(dtype, &[300], GELU, &["y"]), &[11, 3]);
        // A constant of a larger rank.
        check(|dtype| draft(dtype, &[1, 1, 1], GELU, &["y"]), &[11]);
        let two = |dtype| {
            let mut nodes = GELU.to_vec();
            nodes[8] = ("Mul", &["floats", "others"], "product");
            nodes.splice(3..8, [("q", &["erf", "1"][..], "z"), ("d", &["w", "2"], "others")]);
            draft(dtype, &[], &nodes, &["y", "z"])
        };
        check(two, &[4, 4, 3]);
    }
}
