//! What a model holds, on one screen.

use super::lists::shape;
use crate::print::{Stdout, path, table};
use crate::report;
use onnxref::inspect::{GraphDetails, Inspection, MemoryPlan, ValueDetails};
use onnxref_view::totals::{OperatorTotal, Totals, label};
use onnxref_view::{counted, grouped, plain, type_name};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Maximum number of rows of a table, unless all are wanted.
const MAX_ROWS: usize = 12;

/// Maximum number of characters of a metadata value.
const MAX_TEXT: usize = 90;

pub(super) fn print(found: &Inspection, file: &str, all: bool) -> io::Result<()> {
    let totals = Totals::new(&found.graph);
    let most = if all { usize::MAX } else { MAX_ROWS };
    head(found, file, &totals, all)?;
    values("input", &found.graph, &found.graph.inputs, most)?;
    values("output", &found.graph, &found.graph.outputs, most)?;
    operators(&totals, most)?;
    if let Some(error) = &found.error {
        let (message, details) = report::describe(file, error);
        writeln!(Stdout, "\nCan't run: {message}")?;
        details.iter().try_for_each(|line| writeln!(Stdout, "  {line}"))?;
    }
    costs(found, &totals)?;
    rest(found, most)?;
    writeln!(Stdout, "\nMore: --nodes, --constants, --svg FILE, -v, --json")
}

fn head(found: &Inspection, file: &str, totals: &Totals, all: bool) -> io::Result<()> {
    let opset = |(domain, version): &(String, i64)| {
        format!("{} {version}", if domain.is_empty() { "ai.onnx".to_string() } else { plain(domain) })
    };
    let opsets: Vec<String> = found.opsets.iter().map(opset).collect();
    writeln!(Stdout, "{}: IR version {}, opset {}", path(file), found.ir_version, opsets.join(", "))?;
    let mut known = found.metadata.iter();
    let shown = known.by_ref().take(if all { usize::MAX } else { 6 });
    for (name, value) in shown {
        let line: String = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let cut: String = line.chars().take(if all { 2000 } else { MAX_TEXT }).collect();
        let more = if cut.len() < line.len() { "…" } else { "" };
        writeln!(Stdout, "{}: {}{more}", plain(name), path(&cut))?;
    }
    if known.len() > 0 {
        writeln!(Stdout, "and {} more metadata (-v)", known.len())?;
    }
    if totals.parameters == 0 {
        return Ok(());
    }
    let count = counted(totals.parameters, "initializer");
    let elements = counted(usize::try_from(totals.parameter_elements).unwrap_or(usize::MAX), "element");
    let unread = match totals.parameters_unread {
        0 => String::new(),
        unread => format!("; the data of {} can't be read", grouped(unread as u64)),
    };
    writeln!(Stdout, "{count} with {elements}, {}{unread}", size(totals.parameter_bytes))
}

/// Inputs or outputs.
fn values(what: &str, graph: &GraphDetails, places: &[usize], most: usize) -> io::Result<()> {
    writeln!(Stdout)?;
    let row = |value: &ValueDetails| {
        let of = value.value_type.as_ref().map_or("?".to_string(), type_name);
        let default = if value.default.is_some() { "has a default" } else { "" };
        [plain(&value.name), of, shape(value.shape.as_deref()).unwrap_or("any shape".to_string()), default.to_string()]
    };
    let rows = places.iter().take(most).filter_map(|at| graph.values.get(*at)).map(row);
    table([what, "type", "shape", ""], &[], rows)?;
    more(places.len(), most)
}

fn more(count: usize, most: usize) -> io::Result<()> {
    match count.checked_sub(most).filter(|more| *more > 0) {
        Some(more) => writeln!(Stdout, "and {} more (-v)", grouped(more as u64)),
        None => Ok(()),
    }
}

fn operators(totals: &Totals, most: usize) -> io::Result<()> {
    writeln!(Stdout)?;
    let at_least = |known: u64, unknown: usize| match (known, unknown) {
        (0, 0) => "-".to_string(),
        (known, 0) => grouped(known),
        (0, _) => "?".to_string(),
        (known, _) => format!(">= {}", grouped(known)),
    };
    let row = |of: &OperatorTotal| {
        let runs = if of.missing > 0 { "no" } else { "yes" };
        let (macs, bytes) = (at_least(of.macs, of.macs_unknown), at_least(of.bytes, of.bytes_unknown));
        [of.label(), grouped(of.nodes as u64), grouped(of.running as u64), macs, bytes, runs.to_string()]
    };
    // Those that can't run come first.
    let mut sorted: Vec<&OperatorTotal> = totals.operators.iter().collect();
    sorted.sort_by_key(|of| of.missing == 0);
    let header = ["operator", "nodes", "in a run", "multiply-adds", "output bytes", "implemented"];
    table(header, &[1, 2, 3, 4], sorted.into_iter().take(most).map(row))?;
    more(totals.operators.len(), most)
}

/// What optimization did, and what a run costs. Nodes that are parts of others run too.
fn costs(found: &Inspection, totals: &Totals) -> io::Result<()> {
    writeln!(Stdout)?;
    let mut dropped = Vec::new();
    for (count, text) in [
        (totals.computed, "computed at load"),
        (totals.forwarded, "skipped, as they return an input unchanged"),
        (totals.unread, "dropped, as nobody reads their outputs"),
        (totals.missing, "can't run"),
    ] {
        if count > 0 {
            dropped.push(format!("{} {text}", grouped(count as u64)));
        }
    }
    let dropped = if dropped.is_empty() { String::new() } else { format!("; {}", dropped.join("; ")) };
    let (running, nodes) = (grouped((totals.running + totals.fused) as u64), grouped(totals.nodes as u64));
    let run = if found.error.is_some() { "could run" } else { "run" };
    let parts = match totals.fused {
        0 => String::new(),
        fused => format!(", {} of these as parts of others", grouped(fused as u64)),
    };
    writeln!(Stdout, "Nodes: {running} of {nodes} {run}{parts}{dropped}")?;
    let open = counted(totals.macs_unknown, "node");
    match (totals.macs, totals.macs_unknown) {
        (0, 0) => {}
        (macs, 0) => writeln!(Stdout, "Multiply-adds: {}", grouped(macs))?,
        (0, _) => writeln!(Stdout, "Multiply-adds: unknown, for {open}")?,
        (macs, _) => writeln!(Stdout, "Multiply-adds: {}, and those of {open} of unknown shape", grouped(macs))?,
    }
    if let Some(plan) = &found.memory {
        memory(plan, &found.graph)?;
    }
    let symbols = symbols(&found.graph);
    let open = totals.macs_unknown > 0 || found.memory.is_some_and(|plan| plan.unknown > 0);
    if open && !symbols.is_empty() {
        let flags: Vec<String> = symbols.iter().take(4).map(|name| format!("--set {}=1", plain(name))).collect();
        writeln!(Stdout, "More is known with sizes for the symbols: {}", flags.join(" "))?;
    }
    Ok(())
}

fn memory(plan: &MemoryPlan, graph: &GraphDetails) -> io::Result<()> {
    let node = plan.peak_node.and_then(|at| Some((at, graph.nodes.get(at)?)));
    let place = node.map(|(at, node)| {
        let name = if node.name.is_empty() { String::new() } else { format!(" {}", plain(&node.name)) };
        format!(" at node {at}{name} ({})", label(&node.domain, &node.operator, node.version))
    });
    let unknown = match plan.unknown {
        0 => String::new(),
        unknown => format!("; {} of unknown size", counted(unknown, "value")),
    };
    let (peak, place) = (size(plan.peak_bytes), place.unwrap_or_default());
    writeln!(
        Stdout,
        "Memory between nodes: at most {peak}{place}; {} at the same time{unknown}",
        counted(plan.slots, "value")
    )
}

/// The symbols in the shapes of the inputs.
fn symbols(graph: &GraphDetails) -> BTreeSet<&str> {
    let dims = graph.inputs.iter().filter_map(|at| graph.values.get(*at)?.shape.as_deref()).flatten();
    dims.filter_map(|dim| if let onnxref::Dim::Symbol(name) = dim { Some(name.as_str()) } else { None }).collect()
}

/// A number of bytes, rounded: `12.3 MB`.
fn size(bytes: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let large = units.iter().find(|(unit, _)| bytes as f64 >= *unit);
    large.map_or(format!("{bytes} bytes"), |(unit, name)| format!("{:.1} {name}", bytes as f64 / unit))
}

/// Functions, notes, mismatches.
fn rest(found: &Inspection, most: usize) -> io::Result<()> {
    if !found.functions.is_empty() {
        writeln!(Stdout)?;
        let row = |f: &onnxref::inspect::FunctionInfo| {
            let overload = if f.overload.is_empty() { String::new() } else { format!(" {}", plain(&f.overload)) };
            [label(&f.domain, &f.name, None) + &overload, grouped(f.nodes)]
        };
        table(["function", "nodes"], &[1], found.functions.iter().take(most).map(row))?;
        more(found.functions.len(), most)?;
    }
    let mismatches = found.mismatches.iter().map(|error| format!("{error:#}"));
    let notes: Vec<String> = found.notes.iter().cloned().chain(mismatches).collect();
    if !notes.is_empty() {
        writeln!(Stdout)?;
    }
    notes.iter().take(most).try_for_each(|note| writeln!(Stdout, "Note: {note}"))?;
    more(notes.len(), most)
}
