//! What a model is, as tables of text.

use crate::details::{fate, findings};
use crate::opened::Opened;
use crate::print::safe;
use onnxref::inspect::{Fate, Inspection, NodeDetails, Origin, ValueDetails};
use onnxref::{Dim, ValueInfo, ValueType};
use onnxref_view::totals::label;
use onnxref_view::{grouped, type_name};
use serde_json::{Value as Json, json};

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 2000;

/// Maximum number of inputs that have a field.
const MAX_INPUTS: usize = 200;

/// Maximum number of nodes that are listed, and of values of each.
const MAX_NODES: usize = 20_000;
const MAX_VALUES: usize = 8;

/// Maximum number of characters of a cell.
const MAX_CELL: usize = 300;

/// `{"inputs": [..], "tables": [{"title": .., "columns": [..], "rows": [[..], ..], "more": N}, ..], "notes": [..],
/// "nodes": [..], "findings": [..], ..}`. There are inputs if the model can run.
pub(crate) fn describe(opened: &Opened) -> Json {
    let (found, model) = (&opened.found, opened.model.as_ref());
    let Inspection { graph, ir_version, .. } = found;
    let value = |place: &usize| graph.values.get(*place);
    let declared = |value: &ValueDetails| parts(&value.name, value.value_type.as_ref(), value.shape.as_deref());
    let default = |name: &str| model.is_some_and(|model| model.has_default(name));
    let note = |name: &str| if default(name) { "has a default" } else { "" }.to_string();
    let constants = graph.values.iter().filter(|value| value.origin == Origin::Initializer);
    let functions = found.functions.iter().map(|function| {
        let domain = domain(&function.domain);
        vec![format!("{domain}::{}", function.name), function.overload.clone(), grouped(function.nodes)]
    });
    let opsets = found.opsets.iter().map(|(name, version)| vec![domain(name), version.to_string()]);
    let format = vec!["IR version".to_string(), ir_version.to_string()];
    let metadata = found.metadata.iter().map(|(key, value)| vec![key.clone(), value.clone()]);
    let inputs = graph.inputs.iter().filter_map(value);
    let tables = [
        table("Inputs", &["name", "type", "shape", ""], inputs.map(|v| [&declared(v)[..], &[note(&v.name)]].concat())),
        table(
            "Outputs",
            &["name", "type", "shape"],
            graph.outputs.iter().filter_map(value).map(|v| declared(v).into()),
        ),
        table("Opsets", &["domain", "version"], opsets),
        table("Metadata", &["key", "value"], std::iter::once(format).chain(metadata)),
        table("Constants", &["name", "type", "shape", "bytes", "values"], constants.map(constant)),
        table("Functions", &["name", "overload", "nodes"], functions),
    ];
    let fields: Vec<Json> = model.map_or(Vec::new(), |model| {
        model.inputs().take(MAX_INPUTS).map(|info| field(info, default(&info.name))).collect()
    });
    let findings: Vec<Json> =
        findings(opened).take(MAX_ROWS).map(|(node, text)| json!({ "node": node, "text": text })).collect();
    let is_computed = |node: &&NodeDetails| node.fate == Fate::Computed && !node.inputs.is_empty();
    let computed = graph.all_nodes().filter(is_computed).count();
    json!({
        "inputs": fields, "outputs": graph.outputs.len(), "tables": tables, "notes": notes(found), "nodes": nodes(opened), "findings": findings,
        "computed": computed,
    })
}

/// The nodes, those of subgraphs included: place, operator, name, outputs, inputs and initializers that it
/// reads, type and shape, what becomes of it.
fn nodes(opened: &Opened) -> Vec<Json> {
    let mut graphs = opened.graphs();
    graphs.sort_by_key(|(prefix, _)| key(prefix));
    let mut rows = Vec::new();
    for (prefix, graph) in graphs {
        for (at, node) in graph.nodes.iter().enumerate().take(MAX_NODES.saturating_sub(rows.len())) {
            let own = |value: &&ValueDetails| !matches!(value.origin, Origin::Node(_));
            let of = |places: &'_ [Option<usize>]| {
                places.iter().flatten().filter_map(|at| graph.values.get(*at)).collect::<Vec<_>>()
            };
            let names = |values: Vec<&ValueDetails>| -> Vec<String> {
                values.into_iter().take(MAX_VALUES).map(|value| cut(&value.name)).collect()
            };
            let first = node.outputs.iter().flatten().next().and_then(|at| graph.values.get(*at));
            let shape = first.map(|value| {
                let [_, value_type, shape] = parts("", value.value_type.as_ref(), value.shape.as_deref());
                format!("{value_type} {shape}")
            });
            let operator = label(&node.domain, &node.operator, node.version);
            rows.push(json!([
                format!("{prefix}{at}"),
                operator,
                cut(&node.name),
                names(of(&node.outputs)),
                names(of(&node.inputs).into_iter().filter(own).collect()),
                shape.unwrap_or_default(),
                fate(node.fate),
            ]));
        }
    }
    rows
}

/// Orders prefixes by their numbers.
fn key(prefix: &str) -> Vec<usize> {
    prefix.split('.').filter_map(|number| number.parse().ok()).collect()
}

/// An input as its field needs it. A size is a number, a symbol, or null.
fn field(info: &ValueInfo, default: bool) -> Json {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => json!(size),
        Dim::Symbol(name) => json!(name),
        _ => Json::Null,
    };
    let sizes = info.shape.as_ref().map(|dims| dims.iter().map(size).collect::<Vec<_>>());
    let [name, value_type, shape] = parts(&info.name, info.value_type.as_ref(), info.shape.as_deref());
    json!({
        "name": info.name, "label": safe(&name), "type": value_type, "shape": shape, "sizes": sizes,
        "tensor": info.value_type.as_ref().is_none_or(|of| of.dtype().is_some()), "default": default,
    })
}

/// What is said about the whole model, a line each.
fn notes(found: &Inspection) -> Vec<String> {
    let nodes = &found.graph.nodes;
    let number = |count: usize| grouped(count as u64);
    let count = |fate: Fate| nodes.iter().filter(|node| node.fate == fate).count();
    let parts = [
        (Fate::Runs, "run"),
        (Fate::Fused, "run as parts of others"),
        (Fate::Computed, "computed at load"),
        (Fate::Forwarded, "only forward an input"),
        (Fate::Unread, "never read"),
        (Fate::Missing, "not implemented"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(fate, _)| count(*fate) > 0)
        .map(|(fate, what)| format!("{} {what}", number(count(*fate))))
        .collect();
    let all = match nodes.len() {
        1 => "1 node".to_string(),
        count => format!("{} nodes", number(count)),
    };
    let mut notes = vec![match parts.as_slice() {
        [] => all,
        _ if count(Fate::Runs) == nodes.len() => all + ", nothing to compute at load",
        parts => format!("{all}: {}", parts.join(", ")),
    }];
    let constants = found.graph.values.iter().filter(|value| value.origin == Origin::Initializer);
    let (elements, bytes) = constants.fold((0u64, 0u64), |(elements, bytes), value| {
        let len =
            value.sizes().map_or(0, |sizes| sizes.iter().fold(1u64, |len, size| len.saturating_mul(*size as u64)));
        (elements.saturating_add(len), bytes.saturating_add(value.bytes().unwrap_or(0)))
    });
    if elements > 0 {
        notes.push(format!("Initializers: {} elements, {} bytes", grouped(elements), grouped(bytes)));
    }
    let macs = nodes.iter().try_fold(0u64, |sum, node| Some(sum.saturating_add(node.macs?)));
    match macs {
        Some(0) => {}
        Some(macs) => notes.push(format!("Multiply-accumulate operations: {}", grouped(macs))),
        None => notes.push("Multiply-accumulate operations: not known before a run".to_string()),
    }
    if let Some(memory) = &found.memory {
        let unknown = match memory.unknown {
            0 => String::new(),
            unknown => format!(", and {} values of unknown size", number(unknown)),
        };
        let (slots, bytes) = (number(memory.slots), grouped(memory.peak_bytes));
        let s = if memory.slots == 1 { "" } else { "s" };
        notes.push(format!("Memory between nodes: {bytes} bytes in {slots} slot{s}{unknown}"));
    }
    notes.extend(found.notes.iter().cloned());
    notes
}

fn table(title: &str, columns: &[&str], mut rows: impl Iterator<Item = Vec<String>>) -> Json {
    let shown: Vec<Vec<String>> = rows.by_ref().take(MAX_ROWS).collect();
    // A column without a text in it is left out.
    let used = |k: &usize| shown.iter().any(|row| row.get(*k).is_some_and(|cell| !cell.is_empty()));
    let used: Vec<usize> = (0..columns.len()).filter(used).collect();
    let pick = |row: &[String]| used.iter().filter_map(|k| row.get(*k)).map(|cell| cut(cell)).collect::<Vec<_>>();
    let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let picked: Vec<Vec<String>> = shown.iter().map(|row| pick(row)).collect();
    json!({ "title": title, "columns": pick(&columns), "rows": picked, "more": rows.count() })
}

/// A text of at most [`MAX_CELL`] characters that changes nothing around it.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CELL) {
        Some((end, _)) => safe(text.get(..end).unwrap_or("")) + "…",
        None => safe(text),
    }
}

/// Name, type and shape.
pub(crate) fn parts(name: &str, value_type: Option<&ValueType>, shape: Option<&[Dim]>) -> [String; 3] {
    let shape = match shape {
        Some(dims) => format!("[{}]", dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(", ")),
        None if value_type.is_none_or(|of| of.dtype().is_some()) => "any".to_string(),
        None => String::new(),
    };
    [name.to_string(), value_type.map_or("any".to_string(), type_name), shape]
}

fn constant(value: &ValueDetails) -> Vec<String> {
    let text = value.constant.as_ref().map_or(String::new(), |constant| match constant.tensor() {
        Ok(tensor) => tensor.values().to_string(),
        Err(_) => constant.to_string(),
    });
    let [name, value_type, shape] = parts(&value.name, value.value_type.as_ref(), value.shape.as_deref());
    vec![name, value_type, shape, value.bytes().map_or(String::new(), grouped), text]
}

fn domain(name: &str) -> String {
    if name.is_empty() { "ai.onnx".to_string() } else { name.to_string() }
}
