//! What a model is, as tables of text.

use crate::print::{safe, type_name};
use onnxref::{Dim, Model, NodeInfo, ValueInfo};
use serde_json::{Value as Json, json};

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 2000;

/// Maximum number of inputs that have a field.
const MAX_INPUTS: usize = 200;

/// `{"inputs": [..], "tables": [{"title": .., "columns": [..], "rows": [[..], ..], "more": N}, ..], "notes": [..],
/// "picture": ..}`. The picture is an SVG, or null.
pub(crate) fn describe(model: &Model) -> Json {
    let inputs: Vec<Json> = model.inputs().take(MAX_INPUTS).map(|info| input(model, info)).collect();
    let note = |info: &ValueInfo| if model.has_default(&info.name) { "has a default" } else { "" };
    let opsets = model.opsets().iter().map(|(domain, version)| vec![self::domain(domain), version.to_string()]);
    let metadata = model.metadata().iter().map(|(key, value)| vec![safe(key), safe(value)]);
    let format = vec!["IR version".to_string(), model.ir_version().to_string()];
    let tables = [
        table(
            "Inputs",
            &["name", "type", "shape", ""],
            model.inputs().map(|info| [declared(info), vec![note(info).to_string()]].concat()),
        ),
        table("Outputs", &["name", "type", "shape"], model.outputs().map(declared)),
        table("Opsets", &["domain", "version"], opsets),
        table("Metadata", &["key", "value"], std::iter::once(format).chain(metadata)),
        table("Nodes", &["#", "operator", "name", "in function"], model.nodes().map(node)),
    ];
    let runs = model.nodes().len();
    let mut notes = vec![match (runs, model.node_count()) {
        (1, 1) => "Its only node runs.".to_string(),
        (runs, count) if runs == count => format!("All {count} nodes run."),
        (runs, count) => format!("{runs} of {count} nodes run; the others are computed at load or never read."),
    }];
    notes.extend(model.report().iter().cloned());
    json!({ "inputs": inputs, "tables": tables, "notes": notes, "picture": null })
}

/// An input as the fields of the page need it. A size is a number, a symbol, or null.
fn input(model: &Model, info: &ValueInfo) -> Json {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => json!(size),
        Dim::Symbol(name) => json!(name),
        _ => Json::Null,
    };
    let shape = info.shape.as_ref().map(|dims| dims.iter().map(size).collect::<Vec<_>>());
    let [name, type_text, shape_text] = parts(info);
    json!({
        "name": info.name, "label": name, "type": type_text, "shape": shape_text, "sizes": shape,
        "tensor": info.value_type.as_ref().is_none_or(|of| of.dtype().is_some()),
        "default": model.has_default(&info.name),
    })
}

fn table(title: &str, columns: &[&str], mut rows: impl Iterator<Item = Vec<String>>) -> Json {
    let shown: Vec<Vec<String>> = rows.by_ref().take(MAX_ROWS).collect();
    // A column without a text in it is left out.
    let used: Vec<usize> =
        (0..columns.len()).filter(|&k| shown.iter().any(|row| row.get(k).is_some_and(|c| !c.is_empty()))).collect();
    let pick = |row: &[String]| used.iter().filter_map(|&k| row.get(k).cloned()).collect::<Vec<_>>();
    let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let picked: Vec<Vec<String>> = shown.iter().map(|row| pick(row)).collect();
    json!({ "title": title, "columns": pick(&columns), "rows": picked, "more": rows.count() })
}

fn declared(info: &ValueInfo) -> Vec<String> {
    parts(info).into()
}

/// Name, type and shape.
fn parts(info: &ValueInfo) -> [String; 3] {
    let value_type = info.value_type.as_ref();
    let shape = match &info.shape {
        Some(dims) => format!("[{}]", dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(", ")),
        None if value_type.is_none_or(|of| of.dtype().is_some()) => "any".to_string(),
        None => String::new(),
    };
    [safe(&info.name), value_type.map_or("any".to_string(), type_name), shape]
}

fn node(node: NodeInfo<'_>) -> Vec<String> {
    let domain = if node.domain.is_empty() { String::new() } else { format!("{}::", node.domain) };
    vec![
        node.index.to_string(),
        safe(&format!("{domain}{}-{}", node.operator, node.version)),
        safe(node.name),
        safe(node.function.unwrap_or("")),
    ]
}

fn domain(name: &str) -> String {
    if name.is_empty() { "ai.onnx".to_string() } else { safe(name) }
}
