//! The differences, as text or JSON.

use super::changes::{Change, Changed, Found, Graph, Node, Weight, Weights};
use crate::failure::Failure;
use crate::print::Stdout;
use crate::{Global, json};
use onnxref::inspect::Inspection;
use onnxref::quote;
use onnxref_view::counted;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Maximum number of lines of a list without `-v`.
const MAX_LINES: usize = 20;

#[derive(Serialize)]
pub(super) struct Report<'a> {
    same: bool,
    /// The number of nodes that are the same, and of those that have another name, in all graphs.
    nodes: usize,
    renamed: usize,
    /// Version of the format, opsets, functions and metadata.
    model: Vec<Change>,
    /// Versions of operators that changed.
    versions: Vec<Version<'a>>,
    /// The model's graph, then subgraphs that differ.
    graphs: &'a [Graph],
    weights: &'a Weights,
}

#[derive(Serialize)]
struct Version<'a> {
    a: &'a str,
    b: &'a str,
    nodes: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(a: &Inspection, b: &Inspection, found: &'a Found) -> Report<'a> {
        let mut model = Vec::new();
        if a.ir_version != b.ir_version {
            let text = |version: i64| Some(version.to_string());
            model.push(Change { what: "IR version".to_string(), a: text(a.ir_version), b: text(b.ir_version) });
        }
        let opset = |(domain, version): &(String, i64)| {
            let domain = if domain.is_empty() { "ai.onnx" } else { domain };
            (format!("opset {}", onnxref_view::plain(domain)), version.to_string())
        };
        let opsets = |found: &Inspection| found.opsets.iter().map(opset).collect::<Vec<_>>();
        model.extend(changes(&opsets(a), &opsets(b)));
        let function = |of: &onnxref::inspect::FunctionInfo| {
            let overload = if of.overload.is_empty() { String::new() } else { format!(":{}", of.overload) };
            (
                format!("function {}", quote(&format!("{}::{}{overload}", of.domain, of.name))),
                counted(nodes(of.nodes), "node"),
            )
        };
        let functions = |found: &Inspection| found.functions.iter().map(function).collect::<Vec<_>>();
        model.extend(changes(&functions(a), &functions(b)));
        let pair = |(name, value): &(String, String)| (onnxref_view::plain(name), quote(value));
        let metadata = |found: &Inspection| found.metadata.iter().map(pair).collect::<Vec<_>>();
        model.extend(changes(&metadata(a), &metadata(b)));
        let versions = found.versions.iter().map(|((a, b), nodes)| Version { a, b, nodes: *nodes }).collect();
        let same = model.is_empty() && found.is_same();
        let (nodes, renamed) = (found.same, found.renamed);
        Report { same, nodes, renamed, model, versions, graphs: &found.graphs, weights: &found.weights }
    }

    pub(super) fn is_same(&self) -> bool {
        self.same
    }

    pub(super) fn print(&self, global: &Global) -> Result<(), Failure> {
        if global.json {
            return json::line(self);
        }
        self.text(if global.verbose { usize::MAX } else { MAX_LINES }).map_err(Failure::stdout)
    }

    fn text(&self, most: usize) -> io::Result<()> {
        let mut out = Stdout;
        let (nodes, renamed) = (self.nodes, self.renamed);
        let renamed = if renamed > 0 { format!(" ({renamed} with another name)") } else { String::new() };
        let Weights { same, changed } = &self.weights;
        if self.same {
            return writeln!(
                out,
                "the models are the same: {}{renamed}, {}",
                counted(nodes, "node"),
                counted(*same, "constant")
            );
        }
        list(self.model.iter().map(change), most)?;
        for version in &self.versions {
            writeln!(out, "{}: {} -> {}", counted(version.nodes, "node"), version.a, version.b)?;
        }
        for graph in self.graphs.iter().filter(|graph| !graph.is_same()) {
            if !graph.place.is_empty() {
                writeln!(out, "\nin {}:", graph.place)?;
            }
            list(graph.inputs.iter().chain(&graph.outputs).map(change), most)?;
            section("changed", graph.changed.iter().map(changed_text).collect(), most)?;
            section("only in B", graph.added.iter().map(node).collect(), most)?;
            section("only in A", graph.removed.iter().map(node).collect(), most)?;
        }
        section("constants that differ", changed.iter().map(weight).collect(), most)?;
        writeln!(out, "\nthe same in both: {}{renamed}, {}", counted(nodes, "node"), counted(*same, "constant"))
    }
}

fn nodes(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// What two lists of names and texts have in different ways, by name.
fn changes(a: &[(String, String)], b: &[(String, String)]) -> Vec<Change> {
    let of = |list: &[(String, String)], name: &str| {
        let texts: Vec<String> = list.iter().filter(|(known, _)| known == name).map(|(_, text)| text.clone()).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let names: BTreeSet<&String> = a.iter().chain(b).map(|(name, _)| name).collect();
    let pairs = names.into_iter().map(|name| Change { what: name.clone(), a: of(a, name), b: of(b, name) });
    pairs.filter(|change| change.a != change.b).collect()
}

fn section(title: &str, lines: Vec<String>, most: usize) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(Stdout, "\n{title}: {}", lines.len())?;
    list(lines.into_iter().map(|line| format!("  {line}")), most)
}

fn list(lines: impl Iterator<Item = String>, most: usize) -> io::Result<()> {
    let lines: Vec<String> = lines.collect();
    for line in lines.iter().take(most) {
        writeln!(Stdout, "{line}")?;
    }
    if lines.len() > most {
        writeln!(Stdout, "  and {} more (-v lists them)", lines.len() - most)?;
    }
    Ok(())
}

/// `strides: [1, 1] -> [2, 2]`, `group: only in B, 2`.
fn change(change: &Change) -> String {
    let Change { what, a, b } = change;
    match (a, b) {
        (Some(a), Some(b)) => format!("{what}: {a} -> {b}"),
        (Some(a), None) => format!("{what}: only in A, {a}"),
        (None, Some(b)) => format!("{what}: only in B, {b}"),
        (None, None) => what.clone(),
    }
}

fn changed_text(changed: &Changed) -> String {
    let changes: Vec<String> = changed.changes.iter().map(change).collect();
    let renamed = changed.a.name != changed.b.name && !changed.a.name.is_empty();
    let was = if renamed { format!(", in A {}", quote(&changed.a.name)) } else { String::new() };
    format!("{}{was}: {}", changed.b.title(), changes.join("; "))
}

fn node(node: &Node) -> String {
    let names = |names: &[String]| names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ");
    format!("{}: reads {}, gives {}", node.title(), names(&node.inputs), names(&node.outputs))
}

fn weight(weight: &Weight) -> String {
    let was = if weight.a == weight.b { String::new() } else { format!(", in A {}", quote(&weight.a)) };
    format!("{}{was} {}", quote(&weight.b), weight.compared.text())
}
