//! Runs nodes with bodies, on a stack of frames on the heap: however deeply bodies nest, the thread's stack doesn't grow.

use super::run::Slots;
use super::watch::Watching;
use super::{Graph, Node, Runs};
use crate::error::{Error, Result};
use crate::operator::{Context, Feeds, Resume, Sources, Step, Values};
use crate::value::{Optional, Value, ValueType};

/// A running body, and the node that waits for it.
#[derive(Debug)]
pub(super) struct Frame<'g> {
    node: &'g Node,
    /// The node's place in its graph.
    at: usize,
    resume: Box<dyn Resume>,
    body: &'g Graph,
    /// The body's inputs come first.
    slots: Slots,
}

/// Bodies have their inputs in slots.
const NO_FEEDS: Feeds<'static> = Feeds::Own(&[]);

impl Graph {
    /// Runs a body that a node entered, all bodies that it enters, and the remaining nodes.
    pub(super) fn run_frames<'g>(
        &'g self,
        first: Frame<'g>,
        feeds: Feeds<'_>,
        slots: &mut Slots,
        context: &Context,
        watch: &mut Watching<'_>,
    ) -> Result<()> {
        // The innermost body is the last one.
        let mut frames = vec![first];
        while let Some(Frame { body, slots: inner, .. }) = frames.last_mut() {
            let mut next = body.run_from(0, NO_FEEDS, inner, context, watch)?;
            while next.is_none() {
                let Some(ended) = frames.pop() else { return Ok(()) };
                let (graph, feeds, slots) = match frames.last_mut() {
                    Some(outer) => (outer.body, NO_FEEDS, &mut outer.slots),
                    None => (self, feeds, &mut *slots),
                };
                let Frame { node, at, .. } = ended;
                next = match ended.resume(context).map_err(|error| graph.blame(at, error))? {
                    (Step::Enter { body, feeds: given }, resume) => {
                        node.enters(body, watch)?;
                        Some(graph.enter(at, body, given, resume, graph.sources(feeds, slots), context)?)
                    }
                    (Step::Done(mut values), _) => {
                        let checked = node.check_outputs(&mut values, None, context);
                        checked.map_err(|error| graph.blame(at, error))?;
                        node.finish(&mut values, slots, context, watch)?;
                        graph.run_from(at + 1, feeds, slots, context, watch)?
                    }
                };
                if next.is_none() && frames.is_empty() {
                    return Ok(());
                }
            }
            frames.extend(next);
        }
        Ok(())
    }

    /// The frame of a body of the node at a place.
    pub(super) fn enter<'g>(
        &'g self,
        at: usize,
        body: usize,
        given: Values,
        resume: Box<dyn Resume>,
        sources: Sources<'_>,
        context: &Context,
    ) -> Result<Frame<'g>> {
        let no_body = || Error::bug("a node enters a body that it doesn't have");
        let node = self.nodes.get(at).ok_or_else(no_body)?;
        let Runs::Control(operator) = &node.operator else { return Err(no_body()) };
        let body = operator.bodies.get(body).ok_or_else(no_body)?;
        // A body may have no nodes.
        context.next_node(body.graph.slots)?;
        let mut own: Vec<Option<Value>> = given.into_iter().map(Some).collect();
        own.extend(body.captured.iter().map(|source| sources.get(*source).cloned()));
        let body = &body.graph;
        for (value, input) in own.iter_mut().zip(&body.inputs) {
            // A loop may carry a value where the next trip takes an optional.
            if let (Some(given), Some(ValueType::Optional(element))) = (&*value, &input.info.value_type)
                && given.is_of(element)
            {
                *value = value.take().map(|given| Optional::some(given).into());
            }
        }
        body.check_feeds(Feeds::Own(&own)).map_err(|error| node.place.locate(error))?;
        let mut slots = Slots::of(own);
        slots.reserve(body);
        Ok(Frame { node, at, resume, body, slots })
    }
}

impl Frame<'_> {
    /// Hands the outputs of the body to the node.
    fn resume(self, context: &Context) -> Result<(Step, Box<dyn Resume>)> {
        let Frame { mut resume, body, mut slots, .. } = self;
        let results: Result<Values> = (0..body.outputs.len()).map(|k| body.take(k, NO_FEEDS, &mut slots)).collect();
        let results = results?;
        slots.release(context);
        Ok((resume.resume(results, context)?, resume))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::error::Kind;
    use crate::graph::Draft;
    use crate::graph::draft::DraftBody;
    use crate::graph::testing::{Builder, load};
    use crate::limits::Limits;
    use crate::operator::{Call, Cancel, Control, Make, Resolved};
    use crate::schema::Schema;
    use crate::tensor::Tensor;
    use crate::value::Fact;
    use std::sync::Arc;
    use std::time::Duration;

    /// `y = body(.. body(body(x)))`, `n` times.
    #[derive(Debug)]
    struct Repeat;

    #[derive(Debug)]
    struct Repeating(u64);

    impl Control for Repeat {
        fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
            let n = call.tensor(1)?.as_slice::<i64>()?[0] as u64;
            let x = call.input(0).cloned().unwrap();
            let mut repeating = Repeating(n);
            Ok((repeating.resume([x].into(), call.context)?, Box::new(repeating)))
        }
    }

    impl Resume for Repeating {
        fn resume(&mut self, results: Values, _: &Context) -> Result<Step> {
            if self.0 == 0 {
                return Ok(Step::Done(results));
            }
            self.0 -= 1;
            Ok(Step::Enter { body: 0, feeds: results })
        }
    }

    impl Builder {
        /// A Repeat with a body that captures `captured`, which it knows by the same names.
        fn repeat(&mut self, inputs: [&str; 2], output: &str, body: Draft, captured: &[&str]) {
            let text = "test.Repeat 1\n  (x: T, n: int64) -> (y: T)\n  T: float int64";
            let make = Make::Control(|_| Ok(Box::new(Repeat)));
            let resolved = Resolved::new(Arc::new(Schema::parse(text).unwrap()), make, Default::default());
            self.node("repeat", resolved, &inputs, output);
            let captured = captured.iter().map(|name| self.id(name)).collect();
            self.draft.nodes.last_mut().unwrap().bodies.push(DraftBody {
                attribute: "body".into(),
                draft: body,
                captured,
                hidden: vec![],
            });
        }
    }

    /// `next = Gather(x, ids)`; `ids` is captured.
    fn body() -> Draft {
        let mut body = Builder::new();
        body.input("x");
        body.input("ids");
        body.gather(&["x", "ids"], "next");
        body.output("next")
    }

    /// `y = Repeat(x, n) { body }`
    fn graph(body: Draft) -> Graph {
        let mut outer = Builder::new();
        ["x", "n", "ids"].into_iter().for_each(|name| outer.input(name));
        outer.repeat(["x", "n"], "y", body, &["ids"]);
        load(outer.output("y"), true).unwrap()
    }

    fn run(graph: &Graph, feeds: [Value; 3], limits: Limits, cancel: Option<Cancel>) -> Result<Value> {
        let mut context = Context::new(1, limits);
        context.cancel = cancel;
        let (feeds, mut slots) = (feeds.map(Some), Slots::default());
        graph.run(Feeds::Own(&feeds), &mut slots, &context, None)?;
        graph.take(0, Feeds::Own(&feeds), &mut slots)
    }

    fn feeds(n: i64) -> [Value; 3] {
        [vec![1f32, 2.0, 3.0].into(), Tensor::scalar(n).into(), vec![1i64, 2, 0].into()]
    }

    #[test]
    fn a_body_runs_as_often_as_its_node_says() {
        let graph = graph(body());
        for (n, want) in [(0, [1f32, 2.0, 3.0]), (1, [2.0, 3.0, 1.0]), (2, [3.0, 1.0, 2.0]), (300, [1.0, 2.0, 3.0])] {
            assert_eq!(run(&graph, feeds(n), Limits::default(), None).unwrap(), want.into(), "{n} times");
        }
    }

    #[test]
    fn bodies_nest_on_a_small_stack() {
        let nested = |depth: usize| {
            (1..depth).fold(body(), |inner, _| {
                let mut outer = Builder::new();
                outer.input("x");
                outer.input("ids");
                let one = outer.id("one");
                outer.draft.constant(one, Fact::constant(Tensor::scalar(1i64).into()), None);
                outer.repeat(["x", "one"], "next", inner, &["ids"]);
                outer.output("next")
            })
        };
        let graph = graph(nested(30));
        let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let value = run(&graph, feeds(2), Limits::default(), None).unwrap();
            std::mem::forget(graph);
            value
        });
        assert_eq!(thread.unwrap().join().unwrap(), [3f32, 1.0, 2.0].into());
    }

    #[test]
    fn nodes_of_bodies_count_and_are_cancelled() {
        let graph = graph(body());
        // Each trip counts as a node, and so does the body's own one.
        let limits = Limits { run_nodes: 1999, ..Limits::default() };
        assert!(run(&graph, feeds(999), limits.clone(), None).is_ok());
        assert_eq!(run(&graph, feeds(1000), limits, None).unwrap_err().place().limit, Some("run_nodes"));
        let cancel = Cancel::after(Duration::from_millis(20));
        let error = run(&graph, feeds(i64::MAX), Limits::default(), Some(cancel)).unwrap_err();
        assert_eq!(error.kind(), Kind::Cancelled);
    }

    #[test]
    fn memory_of_bodies_is_counted_and_used_again() {
        let many = vec![0i64; 10_000];
        let feeds = |n: i64| [vec![0f32; 10_000].into(), Tensor::scalar(n).into(), many.clone().into()];
        // Two outputs of the body at a time, and no more however often it runs.
        let limits = |bytes| Limits { run_bytes: bytes, ..Limits::default() };
        assert!(run(&graph(body()), feeds(100), limits(80_000), None).is_ok());
        let error = run(&graph(body()), feeds(100), limits(60_000), None).unwrap_err();
        assert_eq!(error.place().limit, Some("run_bytes"));
    }

    #[test]
    fn an_error_names_the_node_in_the_body() {
        let [x, n, _] = feeds(1);
        let error = run(&graph(body()), [x, n, vec![3i64].into()], Limits::default(), None).unwrap_err();
        assert_eq!((error.kind(), error.place().node.as_deref()), (Kind::Input, Some("gather")));
        // Feeds of a body are checked against its declarations.
        let mut typed = body();
        typed.inputs[1].info.value_type = Some(DType::Int32.into());
        let error = run(&graph(typed), feeds(1), Limits::default(), None).unwrap_err();
        assert_eq!((error.place().node.as_deref(), error.place().value_name.as_deref()), (Some("repeat"), Some("ids")));
    }
}
