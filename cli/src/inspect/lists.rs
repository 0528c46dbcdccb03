//! Lists of nodes and constants.

use crate::print::{Stdout, table};
use onnxref::inspect::{GraphDetails, NodeDetails, Origin, ValueDetails};
use onnxref::{Dim, Value};
use onnxref_view::totals::{bytes, fate, label};
use onnxref_view::{grouped, plain, type_name};
use std::collections::HashSet;
use std::io::{self, Write};

/// Maximum number of values of a node that are listed.
const MAX_VALUES: usize = 8;

/// Every node, those of subgraphs below their node.
pub(super) fn nodes(graph: &GraphDetails) -> io::Result<()> {
    let mut rows = Vec::new();
    add(&mut rows, graph, "");
    table(["node", "operator", "fate", "name", "inputs -> outputs"], &[], rows)
}

fn add(rows: &mut Vec<[String; 5]>, graph: &GraphDetails, around: &str) {
    for (k, node) in graph.nodes.iter().enumerate() {
        let number = format!("{around}{k}");
        let calls = node.function.as_ref().filter(|_| around.is_empty());
        let name = match (node.name.as_str(), calls) {
            ("", None) => String::new(),
            (name, None) => plain(name),
            ("", Some(calls)) => format!("in {calls}"),
            (name, Some(calls)) => format!("{} in {calls}", plain(name)),
        };
        rows.push([
            number.clone(),
            label(&node.domain, &node.operator, node.version),
            fate(node.fate).to_string(),
            name,
            format!("{} -> {}", list(graph, &node.inputs, false), list(graph, &node.outputs, true))
                .trim_start()
                .to_string(),
        ]);
        for (attribute, body) in &node.bodies {
            add(rows, body, &format!("{number}.{}.", plain(attribute)));
        }
    }
}

fn list(graph: &GraphDetails, places: &[Option<usize>], typed: bool) -> String {
    let text = |place: &Option<usize>| match place.and_then(|at| graph.values.get(at)) {
        Some(value) if typed => format!("{} {}", plain(&value.name), type_text(value)),
        Some(value) => plain(&value.name),
        None => "-".to_string(),
    };
    let shown: Vec<String> = places.iter().take(MAX_VALUES).map(text).collect();
    let more = places.len().saturating_sub(MAX_VALUES);
    shown.join(", ") + &if more > 0 { format!(", and {more} more") } else { String::new() }
}

/// Type and shape, as far as they are known: `float32[1, N]`.
fn type_text(value: &ValueDetails) -> String {
    let name = value.value_type.as_ref().map_or("?".to_string(), type_name);
    name + &shape(value.shape.as_deref()).unwrap_or_default()
}

/// `[1, N, ?]`
pub(super) fn shape(dims: Option<&[Dim]>) -> Option<String> {
    Some(format!("[{}]", dims?.iter().map(Dim::to_string).collect::<Vec<_>>().join(", ")))
}

/// Every constant, the largest first.
pub(super) fn constants(graph: &GraphDetails) -> io::Result<()> {
    let mut found = Vec::new();
    collect(&mut found, graph, "");
    if found.is_empty() {
        return writeln!(Stdout, "The model has no constants.");
    }
    found.sort_by_key(|(_, _, bytes)| std::cmp::Reverse(*bytes));
    let row = |(name, value, bytes): (String, &ValueDetails, u64)| {
        let from = match value.origin {
            Origin::Node(_) => "computed at load",
            Origin::Initializer => "initializer",
            _ => "",
        };
        let constant = value.constant.as_ref();
        let dims = constant.and_then(|value| Some(format!("{:?}", value.tensor().ok()?.shape()))).unwrap_or_default();
        let element = constant.and_then(Value::value_type).map_or("?".to_string(), |of| type_name(&of));
        [grouped(bytes), element, dims, from.to_string(), name]
    };
    table(["bytes", "type", "shape", "from", "name"], &[0], found.into_iter().map(row))
}

fn collect<'a>(found: &mut Vec<(String, &'a ValueDetails, u64)>, graph: &'a GraphDetails, around: &str) {
    // A captured constant is one of the graph around.
    let captured: HashSet<usize> = graph.captured.iter().map(|(inner, _)| *inner).collect();
    for (_, value) in graph.values.iter().enumerate().filter(|(at, _)| !captured.contains(at)) {
        if let Some(constant) = &value.constant {
            found.push((format!("{around}{}", plain(&value.name)), value, bytes(constant)));
        }
    }
    for node in &graph.nodes {
        node.bodies.iter().for_each(|(attribute, body)| collect(found, body, &inside(node, attribute)));
    }
}

fn inside(node: &NodeDetails, attribute: &str) -> String {
    format!("{} #{} {}: ", node.operator, node.index, plain(attribute))
}
