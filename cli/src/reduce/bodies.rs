//! The search in bodies of nodes: a body becomes the model, a branch takes the place of its If, nodes of bodies go.

use super::model::{Attempt, Known, declared, reads};
use super::trial::{Check, Trial};
use crate::failure::Failure;
use crate::path::{Step, ValuePath};
use onnxref::document::{Graph, Node, Part};
use onnxref::{Tensor, Value};
use std::collections::HashSet;

/// A body: the places of nodes from the outermost one, and of the attributes that hold the bodies.
type Place = Vec<(usize, usize)>;

/// The best model as one of the bodies of its nodes.
pub(super) fn hoist(known: &Known, trial: &mut Trial<'_>) -> Result<bool, Failure> {
    for (place, _) in bodies(trial).into_iter().filter(|(place, _)| place.len() == 1) {
        let alone = trial.best.as_ref().and_then(|best| alone(best, &place, known, trial.needs_inputs()));
        if trial.accept(alone, Check::Structure)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A branch in the place of an If.
pub(super) fn inline(trial: &mut Trial<'_>) -> Result<bool, Failure> {
    for (place, _) in bodies(trial) {
        let inlined = trial.best.clone().and_then(|mut attempt| {
            let ((node, attribute), around) = place.split_last()?;
            let graph = graph_at(&mut attempt.model.graph, around)?;
            let known = graph.nodes.get(*node).filter(|node| node.op_type == "If")?;
            let name = known.attributes.get(*attribute)?.name.clone();
            graph.inline(*node, &name).then_some(attempt)
        });
        if trial.accept(inlined, Check::Structure)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Fewer nodes in bodies, in ever smaller pieces: what others read of them becomes an input of the model.
pub(super) fn nodes(known: &Known, trial: &mut Trial<'_>) -> Result<bool, Failure> {
    let mut smaller = false;
    // Nodes keep their place among those with bodies, unless one of these goes.
    for k in 0.. {
        let Some((place, path)) = bodies(trial).into_iter().nth(k) else { break };
        let len = |trial: &Trial<'_>| {
            let graph = trial.best.as_ref().and_then(|best| body_at(&best.model.graph, &place));
            graph.map_or(0, |graph| graph.nodes.len())
        };
        let mut size = len(trial).div_ceil(2);
        while size > 0 {
            let (mut removed, mut end) = (false, len(trial));
            while end > 0 {
                let start = end.saturating_sub(size);
                let with_inputs = trial.needs_inputs();
                let fewer = trial.best.as_ref().and_then(|best| {
                    let fewer = without(best, (&place, &path), start..end, known, with_inputs)?;
                    (fewer.nodes() < best.nodes()).then_some(fewer)
                });
                removed |= trial.accept(fewer, Check::Structure)?;
                end = start;
            }
            smaller |= removed;
            size = if size == 1 { usize::from(removed) } else { size / 2 };
        }
    }
    Ok(smaller)
}

/// All bodies of the best model, with the path of their values.
fn bodies(trial: &Trial<'_>) -> Vec<(Place, Vec<Step>)> {
    let (mut found, mut next) = (vec![(Place::new(), Vec::new())], 0);
    while let Some((place, path)) = found.get(next).cloned() {
        next += 1;
        let graph = trial.best.as_ref().and_then(|best| body_at(&best.model.graph, &place));
        for (at, node) in graph.into_iter().flat_map(|graph| graph.nodes.iter().enumerate()) {
            for (k, attribute) in node.attributes.iter().enumerate().filter(|(_, own)| !own.graphs().is_empty()) {
                let inside = ValuePath::in_body("", &path, &first_output(at, node), &attribute.name).path;
                found.push((place.iter().copied().chain([(at, k)]).collect(), inside));
            }
        }
    }
    found.split_off(1)
}

/// How paths name a node.
fn first_output(at: usize, node: &Node) -> String {
    node.outputs.iter().find(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("#{at}"))
}

fn body_at<'a>(graph: &'a Graph, place: &[(usize, usize)]) -> Option<&'a Graph> {
    place.iter().try_fold(graph, |graph, (node, attribute)| {
        graph.nodes.get(*node)?.attributes.get(*attribute)?.graphs().first().map(|body| &**body)
    })
}

fn graph_at<'a>(graph: &'a mut Graph, place: &[(usize, usize)]) -> Option<&'a mut Graph> {
    place.iter().try_fold(graph, |graph, (node, attribute)| {
        let attribute = graph.nodes.get_mut(*node)?.attributes.get_mut(*attribute)?;
        attribute.graphs_mut().first_mut().map(|body| &mut **body)
    })
}

/// Declares a value as an input of the model; `None` if its type isn't known, or its value and inputs are needed.
fn feed(attempt: &mut Attempt, name: &str, path: &ValuePath, known: &Known, with_inputs: bool) -> Option<()> {
    let value = known.values.get(path).cloned();
    if with_inputs && value.is_none() {
        return None;
    }
    let mut info = known.types.get(path)?.clone();
    if info.name != name {
        info.name = name.to_string();
    }
    attempt.model.graph.inputs.push(info);
    attempt.inputs.extend(value.map(|value| (name.to_string(), value)));
    Some(())
}

/// The body of a node as the model.
fn alone(best: &Attempt, place: &[(usize, usize)], known: &Known, with_inputs: bool) -> Option<Attempt> {
    let [(at, attribute)] = place else { return None };
    let node = best.model.graph.nodes.get(*at)?;
    let name = &node.attributes.get(*attribute)?.name;
    let mut body = body_at(&best.model.graph, place)?.clone();
    let first = first_output(*at, node);
    let path = |value: &str| ValuePath::in_body(value, &[], &first, name);
    let infos = std::mem::take(&mut body.inputs);
    let mut captured: Vec<String> = body.captured().into_iter().map(str::to_string).collect();
    captured.sort_unstable();
    captured.retain(|name| !infos.iter().any(|info| info.name == *name));
    let constants = |name: &String| best.model.graph.initializers.iter().find(|tensor| tensor.name == *name);
    body.initializers.extend(captured.iter().filter_map(constants).cloned());
    captured.retain(|name| constants(name).is_none());
    for info in &mut body.outputs {
        if let Some(known) = known.types.get(&path(&info.name)).filter(|_| info.value_type.is_none()) {
            *info = known.clone();
        }
    }
    let mut attempt = Attempt { model: best.model.clone(), inputs: Vec::new() };
    attempt.model.graph = body.into();
    for (k, info) in infos.into_iter().enumerate() {
        let inside = path(&info.name);
        // In its first trip, a Loop has the number 0, its condition, and what it was given.
        let value = match (node.op_type.as_str(), k) {
            ("Loop", 0) => Some(Tensor::scalar(0i64).into()),
            ("Loop", 1) => Some(Tensor::scalar(true).into()),
            ("Loop", _) => node.inputs.get(k).and_then(|name| known.values.get(&ValuePath::outermost(name)).cloned()),
            _ => None,
        };
        if with_inputs && value.is_none() {
            return None;
        }
        let info = match &value {
            _ if info.value_type.is_some() => Some(info),
            Some(value) => declared(&info.name, value),
            None => known.types.get(&inside).cloned(),
        };
        let info = info?;
        attempt.inputs.extend(value.map(|value: Value| (info.name.clone(), value)));
        attempt.model.graph.inputs.push(info);
    }
    for name in captured {
        feed(&mut attempt, &name, &ValuePath::outermost(&name), known, with_inputs)?;
    }
    attempt.model.keep_used();
    Some(attempt)
}

/// The model without some nodes of a body.
fn without(
    best: &Attempt,
    (place, path): (&Place, &[Step]),
    nodes: std::ops::Range<usize>,
    known: &Known,
    with_inputs: bool,
) -> Option<Attempt> {
    let mut attempt = best.clone();
    let body = graph_at(&mut attempt.model.graph, place)?;
    let gone: Vec<Part<Node>> =
        body.nodes.drain(nodes.start.min(body.nodes.len())..nodes.end.min(body.nodes.len())).collect();
    let read: HashSet<String> = body.nodes.iter().flat_map(|node| reads(node)).collect();
    let outputs: Vec<String> = body.outputs.iter().map(|info| info.name.clone()).collect();
    let (mut cut, mut copies) = (Vec::new(), Vec::new());
    for name in gone.iter().flat_map(|node| &node.outputs).filter(|name| !name.is_empty()) {
        if outputs.contains(name) {
            // A body gives only what it computes.
            let given = format!("{name}_cut");
            copies.push(Node::new("Identity", [&given], [name]).into());
            cut.push((given, name));
        } else if read.contains(name) {
            cut.push((name.clone(), name));
        }
    }
    // Before the nodes that read them.
    body.nodes.splice(0..0, copies);
    let graph = &attempt.model.graph;
    if cut.iter().any(|(given, _)| graph.defined().contains(given.as_str()) || graph.is_inside(given)) {
        return None;
    }
    for (given, name) in &cut {
        let path = ValuePath { name: (*name).clone(), path: path.to_vec() };
        feed(&mut attempt, given, &path, known, with_inputs)?;
    }
    attempt.model.keep_used();
    Some(attempt)
}
