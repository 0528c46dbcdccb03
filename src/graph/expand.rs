//! Replaces a node whose operator is written with others by the nodes of its body.

use super::NODE_BYTES;
use super::draft::{DraftNode, Entry, Id, Ids, new_entry};
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::operator::{BodyValue, Expansion, Resolved, gate};
use std::sync::Arc;

/// The nodes of a body, with the ids of the node's values and with new ones for what stays inside. Errors name the node.
pub(super) fn nodes(
    body: Expansion,
    node: &mut DraftNode,
    entries: &mut Vec<Entry>,
    budget: &Budget,
) -> Result<Vec<DraftNode>> {
    let mut nodes = Vec::with_capacity(body.nodes.len());
    if let (true, Some(resolved)) = (node.open, &node.resolved) {
        // Types of inputs that only a run shows are those of the node.
        budget.take(NODE_BYTES as u64 + Resolved::BYTES)?;
        let new = |id: &Option<Id>| id.map(|_| new_entry(entries, "".into(), 0, budget)).transpose();
        let outputs = node.inputs.iter().map(new).collect::<Result<Ids>>()?;
        let inputs = std::mem::replace(&mut node.inputs, outputs.clone());
        nodes.push(DraftNode::new(node.place.clone(), Some(Arc::new(gate(resolved))), Vec::new(), inputs, outputs));
    }
    let mut produced: Vec<Ids> = Vec::with_capacity(body.nodes.len());
    for (at, inner) in body.nodes.iter().enumerate() {
        let id = |k: usize| {
            let output = body.outputs.iter().position(|output| *output == BodyValue::Output { node: at, k });
            match output.and_then(|output| node.outputs.get(output).copied().flatten()) {
                Some(id) => Ok(Some(id)),
                None => new_entry(entries, "".into(), 0, budget).map(Some),
            }
        };
        produced.push((0..inner.outputs).map(id).collect::<Result<Ids>>()?);
    }
    for (inner, outputs) in body.nodes.into_iter().zip(&produced) {
        budget.take((NODE_BYTES + 64 * inner.inputs.len()) as u64)?;
        let id = |value: Option<BodyValue>| match value {
            None => Ok(None),
            Some(BodyValue::Input(k)) => Ok(node.inputs.get(k).copied().flatten()),
            Some(BodyValue::Output { node, k }) => {
                let id = produced.get(node).and_then(|outputs| outputs.get(k).copied());
                id.ok_or_else(|| Error::bug("a body reads what it doesn't produce"))
            }
        };
        let inputs = inner.inputs.into_iter().map(id).collect::<Result<Ids>>()?;
        let outputs = outputs.clone();
        let mut new = DraftNode::new(node.place.clone(), Some(inner.resolved), inner.attributes, inputs, outputs);
        if inner.bodies {
            new.bodies = std::mem::take(&mut node.bodies);
        }
        nodes.push(new);
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::error::Kind;
    use crate::graph::Draft;
    use crate::graph::testing::{self, Builder, draft, load};
    use crate::operator::{Attribute, Body, Make, Node, Resolved};
    use crate::schema::Schema;
    use crate::value::{Fact, Value};

    fn resolved(name: &str, make: Make) -> Resolved {
        let text = format!("test.{name} 1\n  (x: T, i: int64) -> (y: T)\n  T: float int64");
        Resolved::new(Arc::new(Schema::parse(&text).unwrap()), make, Default::default())
    }

    /// `y = Gather(Gather(x, i), i)`
    fn twice(_: &Node<'_>, body: &mut Body<'_>) -> Result<()> {
        let [x, i] = [0, 1].map(BodyValue::Input);
        let once = body.node("Gather", 13, [], [x, i])?;
        let y = body.node("Gather", 13, [], [once, i])?;
        body.output(y)
    }

    /// `y = Twice(Twice(x, i), i)`
    fn four_times(_: &Node<'_>, body: &mut Body<'_>) -> Result<()> {
        let twice = Arc::new(resolved("Twice", Make::Expand(twice)));
        let [x, i] = [0, 1].map(|k| Some(BodyValue::Input(k)));
        let [once] = body.nodes_of(twice.clone(), vec![], vec![x, i]);
        let [y] = body.nodes_of(twice, vec![], vec![Some(once), i]);
        body.output(y)
    }

    fn graph(make: Make) -> Draft {
        graph_of(make, Some([DType::Float, DType::Int64]))
    }

    fn graph_of(make: Make, types: Option<[DType; 2]>) -> Draft {
        let mut builder = Builder::new();
        for (k, name) in ["x", "i"].into_iter().enumerate() {
            builder.input_of(name, types.map(|types| types[k].into()));
        }
        builder.node("expanded", resolved("Own", make), &["x", "i"], "a");
        builder.gather(&["a", "i"], "y");
        builder.output("y")
    }

    fn run(draft: Draft, feeds: [Value; 2]) -> Result<(usize, Value)> {
        let graph = load(draft, true)?;
        Ok((graph.node_infos().len(), testing::run(&graph, &feeds, None)?.swap_remove(0)))
    }

    #[test]
    fn a_body_replaces_its_node() {
        let feeds = || [vec![1f32, 2.0, 3.0].into(), vec![1i64, 2, 0].into()];
        let turned = |times: usize| Value::from([0, 1, 2].map(|k| ((k + times) % 3 + 1) as f32));
        assert_eq!(run(graph(Make::Expand(twice)), feeds()).unwrap(), (3, turned(3)));
        assert_eq!(run(graph(Make::Expand(four_times)), feeds()).unwrap(), (5, turned(5)));
    }

    #[test]
    fn types_that_only_a_run_shows() {
        let draft = || graph_of(Make::Expand(twice), None);
        let indices = || Value::from(vec![1i64, 2, 0]);
        let turned = run(draft(), [vec![1f32, 2.0, 3.0].into(), indices()]).unwrap();
        assert_eq!(turned, (4, [1f32, 2.0, 3.0].into()));
        // Gather takes int32, and this operator doesn't.
        let error = run(draft(), [vec![1i32, 2, 3].into(), indices()]).unwrap_err();
        assert_eq!(error.kind(), Kind::Input);
        assert_eq!(
            error.to_string(),
            "node \"expanded\" (test::Own-1): \"x\" has element type int32: allowed float32, int64"
        );
    }

    #[test]
    fn errors_name_the_node() {
        let error = run(graph(Make::Expand(twice)), [vec![1f32].into(), vec![1i64].into()]).unwrap_err();
        assert_eq!(error.kind(), Kind::Input);
        assert!(error.to_string().starts_with("node \"expanded\" (test::Own-1): indices[0] = 1"), "{error}");
        // A body is held to the rules for its operators.
        let wrong = |_: &Node<'_>, body: &mut Body<'_>| {
            let y = body.node("Gather", 13, [], [BodyValue::Input(0)])?;
            body.output(y)
        };
        let error = run(graph(Make::Expand(wrong)), [vec![1f32].into(), vec![0i64].into()]).unwrap_err();
        assert!(error.to_string().contains("1 input given: the operator has (data, indices)"), "{error}");
        for twice in [false, true] {
            let wrong: fn(&Node<'_>, &mut Body<'_>) -> Result<()> = if twice {
                |_, body| {
                    let y = body.node("Gather", 13, [], [0, 1].map(BodyValue::Input))?;
                    body.output(y).and_then(|()| body.output(y))
                }
            } else {
                |_, body| body.output(BodyValue::Input(0))
            };
            let error = load(graph(Make::Expand(wrong)), true).unwrap_err();
            assert_eq!(error.kind(), Kind::Internal);
        }
    }

    /// `y, z = ` the values and the indices of the other operator's two outputs, in turn
    fn swapped(_: &Node<'_>, body: &mut Body<'_>) -> Result<()> {
        let [rows, columns] = body.nodes("Split", 13, [("axis", Attribute::Int(0))], [BodyValue::Input(0)])?;
        body.output(columns)?;
        body.output(rows)
    }

    #[test]
    fn several_outputs() {
        let schema = Schema::parse("test.Swap 1\n  (x: T) -> (y: T, z: T)\n  T: float").unwrap();
        let resolved = Resolved::new(Arc::new(schema), Make::Expand(swapped), Default::default());
        let graph = load(draft(resolved, vec![], &[None], 2), true).unwrap();
        let outputs = testing::run(&graph, &[[1f32, 2.0].into()], None).unwrap();
        assert_eq!(outputs, [[2f32].into(), [1f32].into()]);
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
