//! Transformations of a draft before it becomes a graph. No pass changes a bit of any output.

mod drop_unread;
mod fold;
mod forward;

pub(super) use fold::Fold;

use super::Loading;
use super::draft::Draft;
use crate::error::Result;

/// What a pass may use.
#[expect(dead_code, reason = "for passes that make nodes")]
pub(super) struct PassContext<'a> {
    pub(super) loading: &'a Loading<'a>,
}

/// A change to a draft whose types are known.
///
/// # Errors
/// If it takes more memory than is left.
type Pass = fn(&mut Draft, &PassContext<'_>) -> Result<()>;

/// The passes after [`Fold`], in order. (Folding happens while operators are made, so that readers of a folded value
/// know it.)
const PASSES: &[Pass] = &[forward::forward, drop_unread::drop_unread];

/// Runs the passes on a draft and on the subgraphs of its nodes.
pub(super) fn run(draft: &mut Draft, loading: &Loading<'_>) -> Result<()> {
    let context = PassContext { loading };
    PASSES.iter().try_for_each(|pass| pass(draft, &context))?;
    draft.nodes.iter_mut().flat_map(|node| &mut node.bodies).try_for_each(|body| run(&mut body.draft, loading))
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
    use crate::value::{Fact, Value};
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
        let (feeds, mut slots, context) = ([Some(feed)], Slots::default(), Context::new(1, Limits::default()));
        graph.run(Feeds::Own(&feeds), &mut slots, &context, None).unwrap();
        let names = graph.node_infos().map(|node| node.name.to_string()).collect();
        (names, graph.take(0, Feeds::Own(&feeds), &mut slots).unwrap())
    }

    /// `b = Same(Same(x))`, `y = Gather(b, ids)`, with what is folded and what nobody reads beside it.
    fn draft(ids: Option<Tensor>) -> Draft {
        let mut builder = Builder::new();
        builder.input_of("x", Some(DType::Float.into()));
        for (name, value) in [("ids", ids.unwrap_or(vec![2i64, 0].into())), ("order", vec![1i64, 0].into())] {
            let id = builder.id(name);
            builder.draft.constant(id, Fact::constant(value.into()), None);
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

    #[test]
    fn folding_stays_within_the_budget() {
        let limits = Limits { load_bytes: 100_000, load_bytes_per_byte: 0, ..Limits::default() };
        let draft = |count: usize| {
            let mut builder = Builder::new();
            builder.input("x");
            for (name, value) in [("data", vec![1f32; 8].into()), ("ids", Tensor::from(vec![0i64; count]))] {
                let id = builder.id(name);
                builder.draft.constant(id, Fact::constant(value.into()), None);
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
