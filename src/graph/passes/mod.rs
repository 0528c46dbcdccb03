//! Transformations of a draft before it becomes a graph. No pass changes a bit of any output, unless `fast_math` is asked for.

mod attention;
mod blocks;
#[cfg(test)]
#[path = "byte_networks/tests.rs"]
mod byte_networks;
mod carry;
mod chain;
mod constants;
mod copies;
mod drop_unread;
mod fold;
mod forward;
mod functions;
mod fuse;
mod halves;
mod heads;
mod lanes;
mod lines;
mod pattern;
mod product;
mod quantized;
mod scaled;
mod tables;
mod weights;

pub(super) use fold::Fold;

use super::Loading;
use super::draft::{Draft, DraftNode, Id};
use crate::dtype::DType;
use crate::error::Result;
use crate::operator::{Attribute, Made};
use crate::tensor::Tensor;
use crate::value::{Fact, ValueType};

/// What a pass may use.
pub(super) struct PassContext<'a> {
    pub(super) loading: &'a Loading<'a>,
}

impl PassContext<'_> {
    /// Who produces and who reads each value of a draft; `None` if there is no memory to tell.
    fn readers(&self, draft: &Draft) -> Option<Readers> {
        let bytes = (draft.entries.len() * size_of::<Value>()) as u64;
        if bytes > self.loading.budget.left() {
            return None;
        }
        let mut values = vec![Value::default(); draft.entries.len()];
        let mut read = |id: Id, by: Option<usize>| {
            // A node counts once.
            if let Some(value) = values.get_mut(id.at()).filter(|value| by.is_none() || value.last != by) {
                (value.readers, value.last) = (value.readers + 1, by);
            }
        };
        for (at, node) in draft.nodes.iter().enumerate() {
            node.reads().for_each(|id| read(id, Some(at)));
        }
        draft.outputs.iter().for_each(|(_, id)| read(*id, None));
        for (at, node) in draft.nodes.iter().enumerate() {
            for id in node.outputs.iter().flatten() {
                values.get_mut(id.at()).into_iter().for_each(|value| value.producer = Some(at));
            }
        }
        Some(Readers(values))
    }
}

/// What is known about a value.
fn fact(id: Id, draft: &Draft) -> Option<&Fact> {
    draft.entries.get(id.at()).map(|entry| &entry.fact)
}

/// The tensor that a value is in every run, if it is known.
fn constant(id: Id, draft: &Draft) -> Option<&Tensor> {
    fact(id, draft)?.value()?.tensor().ok()
}

/// The element type of a value that is a tensor, if it is known.
fn dtype(id: Id, draft: &Draft) -> Option<DType> {
    fact(id, draft)?.value_type().and_then(ValueType::dtype)
}

/// Whether a node broadcasts its inputs at their last dimensions, if it computes element by element.
fn aligns_last(node: &DraftNode) -> bool {
    !matches!(&node.operator, Some(Made::Rowwise(operator)) if !operator.aligns_last())
}

/// An attribute.
fn integer(name: &str, node: &DraftNode) -> Option<i64> {
    node.attributes.iter().find_map(|(own, value)| match value {
        Attribute::Int(value) if own == name => Some(*value),
        _ => None,
    })
}

/// Who produces and who reads the values of a draft.
pub(super) struct Readers(Vec<Value>);

#[derive(Clone, Default)]
struct Value {
    producer: Option<usize>,
    readers: usize,
    last: Option<usize>,
}

impl Readers {
    /// The place of the node that produces a value.
    fn producer(&self, id: Id) -> Option<usize> {
        self.0.get(id.at())?.producer
    }

    /// The place of the last node that reads a value, unless it is an output of the graph.
    fn last_reader(&self, id: Id) -> Option<usize> {
        self.0.get(id.at())?.last
    }

    /// The place of the node that reads a value, if nobody else does.
    fn only_reader(&self, id: Id) -> Option<usize> {
        self.0.get(id.at()).filter(|value| value.readers == 1)?.last
    }

    /// The number of nodes that read a value; the graph's outputs count as one each.
    fn count(&self, id: Id) -> usize {
        self.0.get(id.at()).map_or(0, |value| value.readers)
    }
}

/// A change to a draft whose types are known.
///
/// # Errors
/// If it takes more memory than is left.
type Pass = fn(&mut Draft, &PassContext<'_>) -> Result<()>;

/// The passes after [`Fold`], in order. (Folding happens while operators are made, so that readers of a folded value
/// know it.)
const PASSES: &[Pass] = &[
    forward::forward,
    halves::halves,
    constants::constants,
    tables::tables,
    carry::carry,
    quantized::products,
    quantized::rows,
    weights::weights,
    drop_unread::drop_unread,
    attention::attention,
    product::product,
    lanes::lanes,
    chain::chain,
    blocks::blocks,
];

/// Runs the passes on a draft and on the subgraphs of its nodes.
pub(super) fn run(draft: &mut Draft, loading: &Loading<'_>) -> Result<()> {
    let context = PassContext { loading };
    PASSES.iter().try_for_each(|pass| pass(draft, &context))?;
    let whole = |node: &&mut DraftNode| !matches!(node.operator, Some(Made::Fused(_)));
    let bodies = draft.nodes.iter_mut().filter(whole).flat_map(|node| &mut node.bodies);
    bodies.into_iter().try_for_each(|body| run(&mut body.draft, loading))
}

#[cfg(test)]
mod testing {
    use crate::error::Result;
    use crate::graph::{Graph, NodeInfo, Watch, testing};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use bytes::Bytes;

    /// All outputs of a run, which are the same if feeds stand at odd addresses.
    pub(super) fn run(graph: &Graph, feeds: &[Value], watch: Option<&mut dyn Watch>) -> Vec<Value> {
        let values = testing::run(graph, feeds, watch).unwrap();
        let odd: Vec<Value> = feeds.iter().map(at_odd_address).collect();
        assert_eq!(testing::run(graph, &odd, None).unwrap(), values, "at odd addresses");
        values
    }

    fn at_odd_address(value: &Value) -> Value {
        let tensor = value.tensor().unwrap();
        let bytes = Bytes::from([&[0], tensor.bytes()].concat()).slice(1..);
        Tensor::new(tensor.dtype(), tensor.shape(), bytes).unwrap().into()
    }

    /// The names of nodes that it sees.
    pub(super) struct Seen {
        pub(super) whole: bool,
        pub(super) names: Vec<String>,
    }

    impl Watch for Seen {
        fn whole(&self) -> bool {
            self.whole
        }

        fn starts(&mut self, node: NodeInfo<'_>, _: &[Option<&Value>]) -> Result<()> {
            self.names.push(format!("{}..", node.name));
            Ok(())
        }

        fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
            assert!(outputs.iter().all(|(name, _)| *name == node.name));
            self.names.push(node.name.to_string());
            Ok(())
        }
    }

    /// The names of the nodes that each node stands for.
    pub(super) fn stands_for(graph: &Graph) -> Vec<Vec<String>> {
        graph.node_infos().map(|node| node.parts().map(|part| part.name.to_string()).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::error::Result;
    use crate::graph::testing::{Builder, load, load_within};
    use crate::graph::{Draft, Graph, Slots};
    use crate::limits::Limits;
    use crate::operator::{Call, Context, Feeds, Make, Operator, Resolved, Values};
    use crate::schema::Schema;
    use crate::tensor::Tensor;
    use crate::value::Value;
    use std::sync::Arc;

    #[derive(Debug)]
    struct Same;

    impl Operator for Same {
        fn run(&self, call: &mut Call<'_>) -> Result<Values> {
            Ok([call.input(0).cloned().unwrap()].into())
        }

        fn forwards(&self) -> Option<usize> {
            Some(0)
        }
    }

    fn same() -> Resolved {
        let schema = Schema::parse("test.Same 1\n  (x: T) -> (y: T)\n  T: float int64").unwrap();
        Resolved::new(Arc::new(schema), Make::Run(|_| Ok(Box::new(Same))), Default::default())
    }

    fn plan(draft: Draft, optimize: bool) -> Graph {
        load(draft, optimize).unwrap()
    }

    /// The nodes that run, and what they give.
    fn run(graph: &Graph, feed: Value) -> (Vec<String>, Value) {
        let names = graph.node_infos().map(|node| node.name.to_string()).collect();
        (names, super::testing::run(graph, &[feed], None).swap_remove(0))
    }

    /// `b = Same(Same(x))`, `y = Gather(b, ids)`, with what is folded and what nobody reads beside it.
    fn draft(ids: Option<Tensor>) -> Draft {
        let mut builder = Builder::new();
        builder.input_of("x", Some(DType::Float.into()));
        for (name, value) in [("ids", ids.unwrap_or(vec![2i64, 0].into())), ("order", vec![1i64, 0].into())] {
            builder.constant(name, value);
        }
        builder.node("first", same(), &["x"], "a");
        builder.node("second", same(), &["a"], "b");
        builder.gather(&["b", "order"], "unread");
        builder.gather(&["ids", "order"], "turned");
        builder.gather(&["b", "turned"], "y");
        builder.output("y")
    }

    #[test]
    fn what_is_not_needed_does_not_run() {
        let feed = || Value::from([5f32, 6.0, 7.0]);
        let (all, plain) = run(&plan(draft(None), false), feed());
        let (few, optimized) = run(&plan(draft(None), true), feed());
        assert_eq!(all, ["first", "second", "gather", "gather", "gather"]);
        assert_eq!(few, ["gather"]);
        assert_eq!((plain, optimized), ([5f32, 7.0].into(), [5f32, 7.0].into()));
    }

    #[test]
    fn an_error_is_left_to_the_run() {
        // The second entry of `ids` does not exist.
        let graph = plan(draft(Some(vec![0i64].into())), true);
        let (feeds, mut slots) = ([Some([1f32].into())], Slots::default());
        let error = graph.run(Feeds::Own(&feeds), &mut slots, &Context::new(1, Limits::default()), None).unwrap_err();
        assert_eq!(error.place().value, Some(1));
    }

    /// Another number each time.
    #[derive(Debug)]
    struct Random;

    impl Operator for Random {
        fn run(&self, _: &mut Call<'_>) -> Result<Values> {
            Ok([[1f32].into()].into())
        }

        fn pure(&self) -> bool {
            false
        }
    }

    #[test]
    fn what_is_not_pure_is_not_folded() {
        let schema = || Schema::parse("test.Random 1\n  (x: T) -> (y: T)\n  T: float").unwrap();
        for (make, nodes) in [(Make::Run(|_| Ok(Box::new(Random))), 1), (Make::Run(|_| Ok(Box::new(Same))), 0)] {
            let mut builder = Builder::new();
            builder.constant("x", [0f32]);
            builder.node("node", Resolved::new(Arc::new(schema()), make, Default::default()), &["x"], "y");
            assert_eq!(plan(builder.output("y"), true).node_infos().len(), nodes);
        }
    }

    #[test]
    fn folding_stays_within_the_budget() {
        let limits = Limits { load_bytes: 100_000, load_bytes_per_byte: 0, ..Limits::default() };
        let draft = |count: usize| {
            let mut builder = Builder::new();
            builder.input("x");
            for (name, value) in [("data", vec![1f32; 8].into()), ("ids", Tensor::from(vec![0i64; count]))] {
                builder.constant(name, value);
            }
            builder.gather(&["data", "ids"], "y");
            builder.output("y")
        };
        for (count, nodes) in [(1000, 0), (100_000, 1)] {
            let graph = load_within(draft(count), true, &limits).unwrap();
            assert_eq!(graph.node_infos().len(), nodes, "{count}");
            assert_eq!(run(&graph, [0f32].into()).1, vec![1f32; count].into());
        }
    }

    #[test]
    fn an_output_that_is_an_input() {
        // A type that is not known before a run is checked by the node.
        for (value_type, nodes) in [(Some(DType::Float.into()), 0), (None, 1)] {
            let mut builder = Builder::new();
            builder.input_of("x", value_type);
            builder.node("same", same(), &["x"], "y");
            let (names, value) = run(&plan(builder.output("y"), true), [1f32].into());
            assert_eq!((names.len(), value), (nodes, [1f32].into()));
        }
    }
}
