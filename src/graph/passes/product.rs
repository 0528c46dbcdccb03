//! Products of matrices with what is done to each of their elements afterwards, in one pass over the output.

use super::fuse::{Fusion, fuse};
use super::pattern::{Found, Pattern};
use super::{PassContext, Readers};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::draft::{Draft, Id};
use crate::operator::{Made, MatrixProduct, ProductThen, Rowwise, Tail};
use crate::value::{Dim, Fact, ValueType};
use smallvec::SmallVec;
use std::sync::Arc;

/// Maximum number of functions after a product.
const STEPS: usize = 4;

/// `f(MatMul(a, b) + c)`, where `c` is a row, and `f(Gemm(a, b, c))`; `f` may be missing or be several functions.
pub(super) fn product(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let with_bias = Pattern::parse("Add(MatMul(a, b), c)").ok_or_else(|| Error::bug("a pattern is none"))?;
    let (mut fusions, mut taken) = (Vec::new(), vec![false; draft.nodes.len()]);
    for at in 0..draft.nodes.len() {
        if taken.get(at) == Some(&true) || dtype(at, draft).is_none() {
            continue;
        }
        let found = with_bias.find(at, draft, &readers).and_then(|found| sum(found, draft));
        let Some(mut fusion) = found.or_else(|| alone(at, draft)) else { continue };
        fusion.extend(draft, &readers);
        if fusion.nodes.len() > 1 {
            fusion.nodes.iter().for_each(|at| _ = taken.get_mut(*at).map(|taken| *taken = true));
            fusions.push(fusion.finish());
        }
    }
    fuse(draft, fusions, context)
}

/// A product, and what follows it so far.
struct Growing {
    nodes: SmallVec<[usize; 4]>,
    inputs: SmallVec<[Id; 4]>,
    product: Arc<dyn MatrixProduct>,
    tail: Tail,
}

impl Growing {
    /// Adds the functions of one number that follow.
    fn extend(&mut self, draft: &Draft, readers: &Readers) {
        while self.tail.steps.len() < STEPS
            && let Some((at, step)) = self.next(draft, readers)
        {
            self.nodes.push(at);
            self.tail.steps.push(step);
        }
    }

    fn next(&self, draft: &Draft, readers: &Readers) -> Option<(usize, Arc<dyn Rowwise>)> {
        let [Some(output)] = &*draft.nodes.get(*self.nodes.last()?)?.outputs else { return None };
        let at = readers.only_reader(*output)?;
        let node = draft.nodes.get(at)?;
        match (&node.operator, &*node.inputs) {
            (Some(Made::Rowwise(step)), [Some(_)]) if step.may_chain(self.tail.dtype) && !node.open => {
                Some((at, step.clone()))
            }
            _ => None,
        }
    }

    fn finish(self) -> Fusion {
        let Growing { nodes, inputs, product, tail } = self;
        Fusion { nodes, inputs, operator: Box::new(ProductThen { product, tail }) }
    }
}

/// The element type of a node's output, if its product and what follows are rounded as one by one.
fn dtype(at: usize, draft: &Draft) -> Option<DType> {
    let node = draft.nodes.get(at).filter(|node| !node.open)?;
    let [Some(output)] = &*node.outputs else { return None };
    let dtype = draft.entries.get(output.at())?.fact.value_type().and_then(ValueType::dtype)?;
    matches!(dtype, DType::Float | DType::Double).then_some(dtype)
}

fn alone(at: usize, draft: &Draft) -> Option<Growing> {
    let (node, dtype) = (draft.nodes.get(at)?, dtype(at, draft)?);
    let Some(Made::Product(product)) = &node.operator else { return None };
    // An input that is left out would be another's place.
    let inputs = node.inputs.iter().copied().collect::<Option<_>>()?;
    let tail = Tail { dtype, bias: None, steps: SmallVec::new() };
    Some(Growing { nodes: [at].into_iter().collect(), inputs, product: product.clone(), tail })
}

/// A product and a row that is added.
fn sum(found: Found, draft: &Draft) -> Option<Growing> {
    let &[product, sum] = &*found.nodes else { return None };
    let bias = found.value("c")?;
    let mut growing = alone(product, draft)?;
    let dims = |id: Id| draft.entries.get(id.at()).map(|entry| &entry.fact).and_then(Fact::dims);
    let of_product = draft.nodes.get(product)?.outputs.first().copied().flatten().and_then(dims)?;
    let (last, before) = dims(bias)?.split_last()?;
    let is_row = *last != Dim::Unknown
        && Some(last) == of_product.last()
        && before.len() < of_product.len()
        && before.iter().all(|dim| *dim == Dim::Fixed(1));
    if !is_row {
        return None;
    }
    growing.tail.bias = Some(growing.inputs.len());
    growing.inputs.push(bias);
    growing.nodes.push(sum);
    Some(growing)
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::{run, stands_for};
    use crate::graph::testing::{self, Builder, load};
    use crate::graph::{Draft, NodeInfo, Watch};
    use crate::ops::testing::tensor;
    use crate::value::{Dim, Fact, Value};

    fn sizes(dims: &[usize]) -> Option<Vec<Dim>> {
        Some(dims.iter().map(|dim| if *dim == 99 { Dim::Symbol("N".into()) } else { Dim::Fixed(*dim) }).collect())
    }

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|at| (at * 7 % 23) as f32 / 8.0 - 1.3).collect()
    }

    /// `y = tanh(relu(a x b + c))` with 99 for N, where `b` may be constant.
    fn draft(a: &[usize], b: &[usize], c: &[usize], constant: bool, dtype: DType) -> Draft {
        let mut builder = Builder::new();
        builder.shaped("a", Some(dtype.into()), sizes(a));
        let weights = tensor(b, numbers(b.iter().product()));
        if constant {
            let id = builder.id("b");
            builder.draft.constant(id, Fact::constant(weights), None);
        } else {
            builder.shaped("b", Some(dtype.into()), sizes(b));
        }
        builder.shaped("c", Some(dtype.into()), sizes(c));
        builder.op("MatMul", &["a", "b"], "product");
        builder.op("Add", &["c", "product"], "sum");
        builder.op("Relu", &["sum"], "relu");
        builder.op("Tanh", &["relu"], "y");
        builder.output("y")
    }

    #[test]
    fn no_bit_changes() {
        for (a, b, c) in [
            (&[99, 5][..], &[5, 3][..], &[3][..]),
            (&[99, 5], &[5, 3], &[1, 3]),
            (&[2, 99, 400], &[400, 17], &[17]),
            (&[99, 4, 5], &[2, 5, 1], &[1]),
            (&[99, 1], &[1, 300], &[300]),
            (&[99, 0], &[0, 3], &[3]),
        ] {
            for constant in [false, true] {
                for rows in [0, 1, 2] {
                    let own: Vec<usize> = a.iter().map(|dim| if *dim == 99 { rows } else { *dim }).collect();
                    let mut feeds = vec![tensor(&own, numbers(own.iter().product()))];
                    if !constant {
                        feeds.push(tensor(b, numbers(b.iter().product())));
                    }
                    feeds.push(tensor(c, numbers(c.iter().product())));
                    let graph = load(draft(a, b, c, constant, DType::Float), true).unwrap();
                    assert_eq!(stands_for(&graph), [["product", "sum", "relu", "y"]]);
                    let plain = load(draft(a, b, c, constant, DType::Float), false).unwrap();
                    match (b.len(), rows) {
                        // The batches don't broadcast.
                        (3, 0) => assert_eq!(failure(&graph, &feeds), failure(&plain, &feeds)),
                        _ => assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None)),
                    }
                }
            }
        }
    }

    fn failure(graph: &crate::graph::Graph, feeds: &[Value]) -> String {
        testing::run(graph, feeds, None).unwrap_err().to_string()
    }

    /// A value of each node: whoever runs doesn't matter to the one who sees none.
    struct Nobody;

    impl Watch for Nobody {
        fn ends(&mut self, _: NodeInfo<'_>, _: &[(&str, &Value)]) -> crate::error::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_no_row_is_added_alone() {
        for (a, b, c) in [(&[99, 5][..], &[5, 3][..], &[99, 3][..]), (&[4, 5], &[5, 3], &[1]), (&[5], &[5], &[])] {
            let graph = load(draft(a, b, c, false, DType::Float), true).unwrap();
            let nodes = stands_for(&graph);
            assert!(nodes.iter().all(|parts| !parts.contains(&"product".to_string())), "{nodes:?}");
        }
        // Half floats are rounded in between.
        let half = load(draft(&[4, 5], &[5, 3], &[3], false, DType::Float16), true).unwrap();
        assert_eq!(stands_for(&half)[0], Vec::<String>::new());
    }

    #[test]
    fn functions_follow_a_gemm() {
        let draft = || {
            let mut builder = Builder::new();
            for (name, shape) in [("a", [2, 3]), ("b", [3, 4]), ("c", [1, 4])] {
                builder.shaped(name, Some(DType::Float.into()), sizes(&shape));
            }
            builder.op("Gemm", &["a", "b", "c"], "product");
            builder.op("Sigmoid", &["product"], "y");
            builder.output("y")
        };
        let feeds = [tensor(&[2, 3], numbers(6)), tensor(&[3, 4], numbers(12)), tensor(&[1, 4], numbers(4))];
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        assert_eq!(stands_for(&graph), [["product", "y"]]);
        let values = run(&graph, &feeds, None);
        assert_eq!(values, run(&plain, &feeds, None));
        assert_eq!(values, run(&graph, &feeds, Some(&mut Nobody)));
    }

    #[test]
    fn errors_are_those_of_the_nodes() {
        // Nothing is known about the rows of `b` before the run.
        let draft = || {
            let mut builder = Builder::new();
            builder.shaped("a", Some(DType::Float.into()), sizes(&[2, 3]));
            builder.shaped("b", Some(DType::Float.into()), Some(vec![Dim::Unknown, Dim::Fixed(4)]));
            builder.shaped("c", Some(DType::Float.into()), sizes(&[4]));
            builder.op("MatMul", &["a", "b"], "product");
            builder.op("Add", &["product", "c"], "y");
            builder.output("y")
        };
        let feeds = [tensor(&[2, 3], numbers(6)), tensor(&[2, 4], numbers(8)), tensor(&[4], numbers(4))];
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        assert_eq!(stands_for(&graph), [["product", "y"]]);
        let error = failure(&graph, &feeds);
        assert_eq!(error, failure(&plain, &feeds));
        assert!(error.starts_with("node \"product\" (MatMul-13): \"A\" (value \"a\") of shape [2, 3]"), "{error}");
    }
}
