//! The nodes of a body in place of the node whose operator is written with others.

use super::NODE_BYTES;
use super::draft::{DraftNode, Entry, Id, Ids, new_entry};
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::operator::{Body, BodyValue};

/// The nodes of a body, with the ids of the node's values and with new ones for what stays inside. Errors name the node.
pub(super) fn nodes(body: Body, node: &DraftNode, entries: &mut Vec<Entry>, budget: &Budget) -> Result<Vec<DraftNode>> {
    let mut produced: Vec<Id> = Vec::with_capacity(body.nodes.len());
    for k in 0..body.nodes.len() {
        let output = body.outputs.iter().position(|producer| *producer == k);
        let id = output.and_then(|output| node.outputs.get(output).copied().flatten());
        produced.push(match id {
            Some(id) => id,
            None => new_entry(entries, "".into(), 0, budget)?,
        });
    }
    let mut nodes = Vec::with_capacity(body.nodes.len());
    for (inner, output) in body.nodes.into_iter().zip(&produced) {
        budget.take((NODE_BYTES + 64 * inner.inputs.len()) as u64)?;
        let id = |value: Option<BodyValue>| match value {
            None => Ok(None),
            Some(BodyValue::Input(k)) => Ok(node.inputs.get(k).copied().flatten()),
            Some(BodyValue::Node(k)) => {
                produced.get(k).map(|id| Some(*id)).ok_or_else(|| Error::bug("a body reads what it doesn't produce"))
            }
        };
        let inputs = inner.inputs.into_iter().map(id).collect::<Result<Ids>>()?;
        let outputs = [Some(*output)].into_iter().collect();
        nodes.push(DraftNode::new(node.place.clone(), Some(inner.resolved), inner.attributes, inputs, outputs));
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::graph::testing::Builder;
    use crate::graph::{Draft, Graph, Slots};
    use crate::limits::Limits;
    use crate::operator::{Context, Feeds, Make, Node, Resolved};
    use crate::ops;
    use crate::schema::Schema;
    use crate::value::{Fact, Value};
    use std::sync::Arc;

    fn resolved(name: &str, make: Make) -> Resolved {
        let text = format!("test.{name} 1\n  (x: T, i: int64) -> (y: T)\n  T: float int64");
        Resolved::new(Arc::new(Schema::parse(&text).unwrap()), make, Default::default())
    }

    /// `y = Gather(Gather(x, i), i)`
    fn twice(_: &Node<'_>, body: &mut Body) -> Result<()> {
        let gather = ops::all().find(|operator| operator.name == "Gather").unwrap();
        let [x, i] = [0, 1].map(|k| Some(BodyValue::Input(k)));
        let once = body.node(gather, 13, vec![], &[x, i])?;
        let y = body.node(gather, 13, vec![], &[Some(once), i])?;
        body.output(y)
    }

    /// `y = Twice(Twice(x, i), i)`
    fn four_times(_: &Node<'_>, body: &mut Body) -> Result<()> {
        let twice = Arc::new(resolved("Twice", Make::Expand(twice)));
        let [x, i] = [0, 1].map(|k| Some(BodyValue::Input(k)));
        let once = body.node_of(twice.clone(), vec![], &[x, i]);
        let y = body.node_of(twice, vec![], &[Some(once), i]);
        body.output(y)
    }

    fn graph(make: Make) -> Draft {
        let mut builder = Builder::new();
        builder.input("x");
        builder.input("i");
        builder.node("expanded", resolved("Own", make), &["x", "i"], "a");
        builder.gather(&["a", "i"], "y");
        builder.output("y")
    }

    fn run(draft: Draft, feeds: [Value; 2]) -> Result<(usize, Value)> {
        let limits = Limits::default();
        let graph = Graph::new(draft, true, &limits, &Budget::new(&limits))?;
        let (feeds, mut slots, context) = (feeds.map(Some), Slots::default(), Context::new(1, limits));
        graph.run(Feeds::Own(&feeds), &mut slots, &context, None)?;
        Ok((graph.node_infos().len(), graph.take(0, Feeds::Own(&feeds), &mut slots)?))
    }

    #[test]
    fn a_body_replaces_its_node() {
        let feeds = || [vec![1f32, 2.0, 3.0].into(), vec![1i64, 2, 0].into()];
        let turned = |times: usize| Value::from([0, 1, 2].map(|k| ((k + times) % 3 + 1) as f32));
        assert_eq!(run(graph(Make::Expand(twice)), feeds()).unwrap(), (3, turned(3)));
        assert_eq!(run(graph(Make::Expand(four_times)), feeds()).unwrap(), (5, turned(5)));
    }

    #[test]
    fn errors_name_the_node() {
        let error = run(graph(Make::Expand(twice)), [vec![1f32].into(), vec![1i64].into()]).unwrap_err();
        assert_eq!(error.kind(), Kind::Input);
        assert!(error.to_string().starts_with("node \"expanded\" (test::Own-1): indices[0] = 1"), "{error}");
        // A body is held to the rules for its operators.
        let wrong = |_: &Node<'_>, body: &mut Body| {
            let twice = Arc::new(resolved("Twice", Make::Expand(twice)));
            let y = body.node_of(twice, vec![], &[Some(BodyValue::Input(0))]);
            body.output(y)
        };
        let error = run(graph(Make::Expand(wrong)), [vec![1f32].into(), vec![0i64].into()]).unwrap_err();
        assert!(error.to_string().contains("1 input given: the operator has (x, i)"), "{error}");
        for outputs in [&[BodyValue::Input(0)][..], &[BodyValue::Node(0), BodyValue::Node(0)]] {
            let mut body = Body::default();
            assert!(outputs.iter().any(|output| body.output(*output).is_err()));
        }
    }

    #[test]
    fn what_is_constant_in_a_body_is_folded() {
        let mut builder = Builder::new();
        builder.input("x");
        for (name, value) in [("table", vec![5i64, 6, 7]), ("i", vec![2i64, 0, 1])] {
            let id = builder.id(name);
            builder.draft.constant(id, Fact::constant(value.into()), None);
        }
        builder.node("expanded", resolved("Own", Make::Expand(four_times)), &["table", "i"], "y");
        let folded = run(builder.output("y"), [vec![1f32].into(), vec![0i64].into()]).unwrap();
        assert_eq!(folded, (0, [7i64, 5, 6].into()));
    }
}
