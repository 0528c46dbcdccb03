//! What was found, as text or JSON.

use super::Found;
use super::lineage::Lineage;
use crate::expect::Compared;
use crate::failure::Failure;
use crate::print::Stdout;
use crate::{Global, json, print};
use onnxref::inspect::NodeDetails;
use onnxref::quote;
use onnxref_view::{counted, plain};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Maximum number of nodes that are listed before the first difference.
const MAX_NODES: usize = 12;

/// Prints what was found. `lineage` is known if a value differs.
pub(super) fn print(found: &Found, lineage: Option<&Lineage>, global: &Global) -> Result<(), Failure> {
    if global.json {
        return json::line(&Document::new(found, lineage));
    }
    text(found, lineage, global.verbose).map_err(Failure::stdout)
}

fn text(found: &Found, lineage: Option<&Lineage>, all: bool) -> io::Result<()> {
    let mut out = Stdout;
    let compared = found.exact + found.close + found.differing.len();
    let Found { exact, close, differing, alone, known, outputs, .. } = found;
    writeln!(
        out,
        "{} with the same name: {exact} equal bit by bit, {close} within the tolerance, {} different",
        counted(compared, "value"),
        differing.len()
    )?;
    let ([known_by, run], only) = (found.sides, known.saturating_sub(compared));
    writeln!(out, "without a partner: {only} of {known_by}, {alone} of {run}")?;
    if let (Some((name, compared)), Some(lineage)) = (differing.first(), lineage) {
        writeln!(out, "\nThe first that differs, {}, {}", quote(name), compared.text())?;
        let nodes = lineage.before(name, &found.equal);
        writeln!(out, "\nNodes that lead to it from values that are equal:")?;
        let skipped = nodes.len().saturating_sub(if all { usize::MAX } else { MAX_NODES });
        if skipped > 0 {
            writeln!(out, "  {skipped} nodes before (-v lists them)")?;
        }
        let row = |node: &&NodeDetails| {
            let names: Vec<String> = lineage.outputs(node).map(quote).collect();
            let state = lineage.outputs(node).map(|name| state(found, name)).next().unwrap_or("");
            [format!("  {}", label(node)), format!("gives {}", names.join(", ")), state.to_string()]
        };
        print::table(["  ", "", ""], &[], nodes.iter().skip(skipped).map(row))?;
        let reads: Vec<String> = nodes.last().map(|node| lineage.inputs(node).map(quote).collect()).unwrap_or_default();
        writeln!(out, "\nThe last of them reads {}", reads.join(", "))?;
    }
    if !outputs.is_empty() {
        writeln!(out)?;
        let shown =
            |compared: &Option<Compared>| compared.as_ref().map_or("has no partner".to_string(), Compared::text);
        print::table(["output", ""], &[], outputs.iter().map(|(name, c)| [plain(name), shown(c)]))?;
    }
    Ok(())
}

fn state(found: &Found, name: &str) -> &'static str {
    match found.equal.get(name) {
        Some(true) => "equal",
        Some(false) => "differs",
        None => "has no partner",
    }
}

/// `node "add" (Add-14)`.
fn label(node: &NodeDetails) -> String {
    let name =
        if node.name.is_empty() { format!("node #{}", node.index) } else { format!("node {}", quote(&node.name)) };
    let version = node.version.map(|version| format!("-{version}")).unwrap_or_default();
    format!("{name} ({}{version})", node.operator)
}

#[derive(Serialize)]
struct Document<'a> {
    compared: usize,
    exact: usize,
    close: usize,
    differing: usize,
    only_a: usize,
    only_b: usize,
    first: Option<First<'a>>,
    outputs: BTreeMap<&'a str, &'a Option<Compared>>,
}

/// The first value that differs.
#[derive(Serialize)]
struct First<'a> {
    value: &'a str,
    #[serde(flatten)]
    compared: &'a Compared,
    /// The nodes that lead to it from values that are equal; its own is the last.
    nodes: Vec<Node<'a>>,
}

#[derive(Serialize)]
struct Node<'a> {
    index: usize,
    name: &'a str,
    operator: &'a str,
    domain: &'a str,
    version: Option<i64>,
    inputs: Vec<&'a str>,
    outputs: Vec<&'a str>,
}

impl<'a> Node<'a> {
    fn new(node: &'a NodeDetails, lineage: &'a Lineage) -> Node<'a> {
        Node {
            index: node.index,
            name: &node.name,
            operator: &node.operator,
            domain: &node.domain,
            version: node.version,
            inputs: lineage.inputs(node).collect(),
            outputs: lineage.outputs(node).collect(),
        }
    }
}

impl<'a> Document<'a> {
    fn new(found: &'a Found, lineage: Option<&'a Lineage>) -> Document<'a> {
        let compared = found.exact + found.close + found.differing.len();
        let first = |((value, compared), lineage): (&'a (String, Compared), &'a Lineage)| First {
            value,
            compared,
            nodes: lineage.before(value, &found.equal).into_iter().map(|node| Node::new(node, lineage)).collect(),
        };
        Document {
            compared,
            exact: found.exact,
            close: found.close,
            differing: found.differing.len(),
            only_a: found.known.saturating_sub(compared),
            only_b: found.alone,
            first: found.differing.first().zip(lineage).map(first),
            outputs: found.outputs.iter().map(|(name, compared)| (name.as_str(), compared)).collect(),
        }
    }
}
