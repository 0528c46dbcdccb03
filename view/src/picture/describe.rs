//! The full texts that appear when the mouse is over a box or an edge.

use super::text::{constant, short, typed};
use crate::attributes;
use crate::totals::{fate, label};
use onnxref::inspect::{Fate, GraphDetails, NodeDetails, ValueDetails};
use std::fmt::Write;

/// Maximum number of values, attributes or operators that are listed.
pub(super) const MAX_LISTED: usize = 16;

/// Maximum number of characters of a name.
const MAX_NAME: usize = 300;

/// A line about a value: name, type, shape, the constant.
pub(super) fn value(value: &ValueDetails) -> String {
    let fixed = value.constant.as_ref().map(|value| format!(" = {}", constant(value))).unwrap_or_default();
    format!("{}: {}{fixed}\n", short(&value.name, MAX_NAME), typed(value))
}

/// All about a node.
pub(super) fn node(graph: &GraphDetails, node: &NodeDetails) -> String {
    let mut text = format!("{}, node #{}", label(&node.domain, &node.operator, node.version), node.index);
    if !node.name.is_empty() {
        let _ = write!(text, " {}", short(&node.name, MAX_NAME));
    }
    text.push('\n');
    if let Some(function) = &node.function {
        let _ = writeln!(text, "in {}", short(function, MAX_NAME));
    }
    match node.fate {
        Fate::Runs => {}
        Fate::Missing => text.push_str("missing: the operator can't run here\n"),
        Fate::Computed => text.push_str("computed at load\n"),
        Fate::Forwarded => text.push_str("returns its input unchanged: readers read that\n"),
        Fate::Unread => text.push_str("dropped: nobody reads its outputs\n"),
        Fate::Fused => text.push_str("runs as a part of a later node\n"),
        other => _ = writeln!(text, "{}", fate(other)),
    }
    for given in attributes::of(node).iter().take(MAX_LISTED) {
        let _ = writeln!(text, "{} = {}", short(given.name, MAX_NAME), given.text);
    }
    for (what, places) in [("reads", &node.inputs), ("gives", &node.outputs)] {
        for at in places.iter().take(MAX_LISTED) {
            match at.and_then(|at| graph.values.get(at)) {
                Some(of) => _ = write!(text, "{what} {}", value(of)),
                None => _ = writeln!(text, "{what} nothing: omitted"),
            }
        }
        if places.len() > MAX_LISTED {
            let _ = writeln!(text, "{what} {} more", places.len() - MAX_LISTED);
        }
    }
    if let Some(macs) = node.macs.filter(|macs| *macs > 0) {
        let _ = writeln!(text, "{} multiply-accumulates", crate::grouped(macs));
    }
    text
}
