//! Draws both graphs as one: the second, with the nodes that only the first has.

use super::changes::Found;
use super::matching::Matching;
use onnxref::inspect::{GraphDetails, Origin};
use onnxref_view::picture::{Mark, marked_svg};
use std::collections::{HashMap, HashSet};

/// The picture, as SVG.
pub(super) fn draw(a: &GraphDetails, b: &GraphDetails, found: &Found, matching: &Matching, name: &str) -> String {
    let mut graph = b.clone();
    let Some(outermost) = found.graphs.first() else { return marked_svg(&graph, &[], name) };
    let added: HashSet<usize> = outermost.added.iter().map(|node| node.at).collect();
    let mut changed: HashSet<usize> = outermost.changed.iter().map(|node| node.b.at).collect();
    // A body is drawn as B has it, with a sign if it differs.
    let bodies: HashSet<&(usize, String)> =
        found.graphs.iter().filter(|inner| !inner.is_same()).filter_map(|inner| inner.outermost.as_ref()).collect();
    for (at, attribute) in bodies {
        changed.insert(*at);
        let node = graph.nodes.get_mut(*at).into_iter();
        for (name, _) in node.flat_map(|node| &mut node.bodies).filter(|(name, _)| name == attribute) {
            name.push_str(" ≠");
        }
    }
    let mark = |k| match k {
        k if added.contains(&k) => Mark::Added,
        k if changed.contains(&k) => Mark::Changed,
        _ => Mark::Same,
    };
    let mut marks: Vec<Mark> = (0..graph.nodes.len()).map(mark).collect();
    // The values of A in the picture.
    let mut places: HashMap<usize, usize> = matching.inputs.clone();
    for (p, q) in matching.nodes.iter().enumerate().filter_map(|(x, y)| Some((a.nodes.get(x)?, b.nodes.get((*y)?)?))) {
        places.extend(p.outputs.iter().zip(&q.outputs).filter_map(|(x, y)| x.zip(*y)));
    }
    let removed: Vec<usize> = outermost.removed.iter().map(|node| node.at).collect();
    for (k, x) in removed.iter().enumerate() {
        for at in a.nodes.get(*x).iter().flat_map(|node| node.outputs.iter().flatten()) {
            let Some(mut value) = a.values.get(*at).cloned() else { continue };
            value.origin = Origin::Node(b.nodes.len() + k);
            places.insert(*at, graph.values.len());
            graph.values.push(value);
        }
    }
    for mut node in removed.iter().filter_map(|x| a.nodes.get(*x)).cloned() {
        for at in node.inputs.iter_mut().chain(&mut node.outputs).flatten() {
            // Constants, and inputs that B doesn't have.
            let place = places.entry(*at).or_insert_with(|| {
                let mut value = a.values.get(*at).cloned();
                // The place of a node Constant is that of another node here.
                let node = value.iter_mut().filter(|value| matches!(value.origin, Origin::Node(_)));
                node.for_each(|value| value.origin = Origin::Initializer);
                graph.values.extend(value);
                graph.values.len() - 1
            });
            *at = *place;
        }
        node.bodies.clear();
        graph.nodes.push(node);
        marks.push(Mark::Removed);
    }
    let lost = a.inputs.iter().filter(|x| !matching.inputs.contains_key(x)).filter_map(|x| places.get(x));
    graph.inputs.extend(lost.filter(|at| **at >= b.values.len()));
    marked_svg(&graph, &marks, name)
}
