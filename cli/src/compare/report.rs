//! What was found, as text or JSON.

use super::{ComparedOutput, Found};
use crate::expect::Compared;
use crate::failure::Failure;
use crate::lineage::{Lead, Lineage};
use crate::path::{Step, ValuePath};
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
    let ([known_by, run], only) = (found.sides, known.saturating_sub(compared + found.random.len()));
    writeln!(out, "without a partner: {only} of {known_by}, {alone} of {run}")?;
    if !found.random.is_empty() {
        writeln!(out, "random in A, and not compared: {}", counted(found.random.len(), "value"))?;
    }
    if let Some(first) = &found.nan.first {
        let places = match found.nan.elsewhere {
            0 => "at the same places on both sides".to_string(),
            elsewhere => format!("at other places on the other side in {}", counted(elsewhere, "value")),
        };
        writeln!(out, "NaN is in {}, first in {}: {places}", counted(found.nan.values, "value"), first.text())?;
    }
    if let (Some((path, compared)), Some(lineage)) = (differing.first(), lineage) {
        writeln!(out, "\nThe first that differs, {}, {}", path.text(), compared.text())?;
        let nodes = lineage.before(path, &found.equal);
        writeln!(out, "\nNodes that lead to it from values that are equal:")?;
        let skipped = nodes.len().saturating_sub(if all { usize::MAX } else { MAX_NODES });
        if skipped > 0 {
            writeln!(out, "  {skipped} nodes before (-v lists them)")?;
        }
        let row = |lead: &Lead<'_>| {
            let state = lead.outputs.iter().map(|path| state(found, path)).next().unwrap_or("");
            [format!("  {}", label(lead.node)), format!("gives {}", texts(&lead.outputs)), state.to_string()]
        };
        print::table(["  ", "", ""], &[], nodes.iter().skip(skipped).map(row))?;
        if let Some(last) = nodes.last().filter(|last| !last.inputs.is_empty()) {
            writeln!(out, "\nThe last of them reads {}", texts(&last.inputs))?;
        }
    }
    if !outputs.is_empty() {
        writeln!(out)?;
        let shown = |output: &ComparedOutput| match &output.compared {
            _ if output.random => "is random in A, and not compared".to_string(),
            Some(compared) => compared.text(),
            None => "has no partner".to_string(),
        };
        print::table(["output", ""], &[], outputs.iter().map(|output| [plain(&output.name), shown(output)]))?;
    }
    Ok(())
}

fn texts(paths: &[ValuePath]) -> String {
    paths.iter().map(ValuePath::text).collect::<Vec<_>>().join(", ")
}

fn state(found: &Found, path: &ValuePath) -> &'static str {
    match found.equal.get(path) {
        _ if found.random.contains(path) => "is random",
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
    /// The number of values that differ from run to run of A, and the outputs among them.
    random: usize,
    random_outputs: Vec<&'a str>,
    /// The number of values with NaN, and of those that have it at other places on the other side.
    nan: usize,
    nan_elsewhere: usize,
    first: Option<First<'a>>,
    outputs: BTreeMap<&'a str, &'a Option<Compared>>,
}

/// The first value that differs.
#[derive(Serialize)]
struct First<'a> {
    value: &'a str,
    /// The calls and subgraphs around it.
    #[serde(skip_serializing_if = "<[Step]>::is_empty")]
    path: &'a [Step],
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
    function: Option<&'a str>,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl<'a> Node<'a> {
    fn new(lead: Lead<'a>) -> Node<'a> {
        let Lead { node, inputs, outputs } = lead;
        let names = |paths: Vec<ValuePath>| paths.into_iter().map(|path| path.name).collect();
        Node {
            index: node.index,
            name: &node.name,
            operator: &node.operator,
            domain: &node.domain,
            version: node.version,
            function: node.function.as_deref(),
            inputs: names(inputs),
            outputs: names(outputs),
        }
    }
}

impl<'a> Document<'a> {
    fn new(found: &'a Found, lineage: Option<&'a Lineage>) -> Document<'a> {
        let compared = found.exact + found.close + found.differing.len();
        let first = |((path, compared), lineage): (&'a (ValuePath, Compared), &'a Lineage)| First {
            value: &path.name,
            path: &path.path,
            compared,
            nodes: lineage.before(path, &found.equal).into_iter().map(Node::new).collect(),
        };
        let compared_outputs = found.outputs.iter().filter(|output| !output.random);
        Document {
            compared,
            exact: found.exact,
            close: found.close,
            differing: found.differing.len(),
            only_a: found.known.saturating_sub(compared + found.random.len()),
            only_b: found.alone,
            random: found.random.len(),
            random_outputs: found.outputs.iter().filter(|output| output.random).map(|o| o.name.as_str()).collect(),
            nan: found.nan.values,
            nan_elsewhere: found.nan.elsewhere,
            first: found.differing.first().zip(lineage).map(first),
            outputs: compared_outputs.map(|output| (output.name.as_str(), &output.compared)).collect(),
        }
    }
}
