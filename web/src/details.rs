//! All about a node, or a value.

use crate::opened::{Opened, reads, title};
use crate::print::{Explained, plain, safe};
use crate::{about, describe};
use onnxref::inspect::{Fate, GraphDetails, NodeDetails, Origin, ValueDetails};
use onnxref::schema::{self, Parameter};
use onnxref::{Cancel, Error, Kind, Value};
use onnxref_view::histogram::histogram;
use onnxref_view::statistics::Statistics;
use onnxref_view::totals::label;
use onnxref_view::{attributes, grouped};
use serde::Serialize;
use serde_json::{Value as Json, json};

/// Maximum number of attributes, of values of a node, and of readers of a value, that are listed.
const MAX_LISTED: usize = 200;

/// Maximum number of characters of an attribute or of values.
const MAX_TEXT: usize = 2000;

/// The number of bars of a histogram.
const BARS: usize = 32;

/// All about the node at a place.
pub(crate) fn node(opened: &Opened, place: &str) -> Result<Json, Json> {
    let unknown = || plain("there is no such node");
    let (graph, prefix, at) = opened.locate(place).ok_or_else(unknown)?;
    let node = graph.nodes.get(at).ok_or_else(unknown)?;
    let schema = node.version.and_then(|version| schema::resolve(&node.domain, &node.operator, version).ok());
    let (inputs, outputs) =
        schema.as_ref().map_or((&[][..], &[][..]), |schema| (&schema.inputs[..], &schema.outputs[..]));
    let row = |(k, at): (usize, &Option<usize>), formal: &[Parameter]| {
        let parameter = formal.get(k).or(formal.last()).map_or("", |parameter| parameter.name.as_str());
        let value = at.and_then(|at| Some((at, graph.values.get(at)?)));
        let Some((at, value)) = value else { return json!({ "parameter": parameter }) };
        let mut row = brief(graph, &prefix, at, value);
        row.insert("parameter".to_string(), json!(parameter));
        Json::Object(row)
    };
    let list = |places: &[Option<usize>], formal: &[Parameter]| -> Vec<Json> {
        places.iter().enumerate().take(MAX_LISTED).map(|of| row(of, formal)).collect()
    };
    let given: Vec<Json> = attributes::of(node)
        .iter()
        .take(MAX_LISTED)
        .map(|given| json!({ "name": safe(given.name), "text": cut(&given.text), "default": given.is_default }))
        .collect();
    let bodies: Vec<Json> = node
        .bodies
        .iter()
        .enumerate()
        .map(|(k, (name, body))| json!({ "name": safe(name), "nodes": body.nodes.len(), "step": [at, k] }))
        .collect();
    Ok(json!({
        "place": place,
        "index": node.index,
        "operator": label(&node.domain, &node.operator, node.version),
        "name": safe(&node.name),
        "function": node.function.as_deref().map(safe),
        "fate": fate(node.fate),
        "macs": node.macs.filter(|macs| *macs > 0).map(grouped),
        "attributes": given,
        "inputs": list(&node.inputs, inputs),
        "outputs": list(&node.outputs, outputs),
        "bodies": bodies,
        "about": about::of(node),
        "findings": findings(opened).filter(|(own, _)| own.as_deref() == Some(place)).map(|(_, text)| text).collect::<Vec<_>>(),
    }))
}

/// What becomes of a node that doesn't simply run.
pub(crate) fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Computed => "computed at load",
        Fate::Forwarded => "forwards its input",
        Fate::Unread => "never read",
        Fate::Fused => "part of a later node",
        Fate::Missing => "not implemented",
        _ => "",
    }
}

/// What `check` finds: the place of the node, if it is known, and the text.
pub(crate) fn findings(opened: &Opened) -> impl Iterator<Item = (Option<String>, String)> {
    let causes = opened.found.error.iter().flat_map(Error::causes).filter(|cause| cause.kind() == Kind::Model);
    causes.chain(&opened.found.mismatches).map(|error| (opened.blamed(error), Explained(error).to_string()))
}

/// All about the value at a place.
pub(crate) fn value(opened: &Opened, place: &str) -> Result<Json, Json> {
    let unknown = || plain("there is no such value");
    let (graph, prefix, at) = opened.locate(place).ok_or_else(unknown)?;
    let value = graph.values.get(at).ok_or_else(unknown)?;
    let mut all = brief(graph, &prefix, at, value);
    let readers = graph.nodes.iter().enumerate().filter(|(_, node)| reads(node).any(|read| read == at));
    let readers: Vec<Json> = readers.take(MAX_LISTED).map(|(k, node)| link(&prefix, k, node)).collect();
    all.insert("readers".to_string(), json!(readers));
    all.insert("leaves".to_string(), json!(graph.outputs.contains(&at)));
    all.insert("bytes".to_string(), json!(value.bytes().map(grouped)));
    if let Some(constant) = &value.constant {
        all.insert("numbers".to_string(), json!(Numbers::of(constant, &Cancel::new()).ok()));
    }
    Ok(Json::Object(all))
}

/// Statistics of a value, a histogram, and its first elements.
#[derive(Clone, Serialize)]
pub(crate) struct Numbers {
    #[serde(rename = "type")]
    value_type: Option<String>,
    shape: Option<Vec<usize>>,
    pub(crate) statistics: Option<Statistics>,
    bars: Vec<u64>,
    text: String,
}

impl Numbers {
    pub(crate) fn of(value: &Value, cancel: &Cancel) -> onnxref::Result<Numbers> {
        let statistics = Statistics::of(value, cancel)?;
        let tensor = value.tensor().ok();
        let bars = statistics.as_ref().zip(tensor).map(|(statistics, tensor)| histogram(tensor, statistics, BARS));
        let text = tensor.map_or_else(|| value.to_string(), |tensor| tensor.values().to_string());
        Ok(Numbers {
            value_type: value.value_type().map(|of| onnxref_view::type_name(&of)),
            shape: tensor.map(|tensor| tensor.shape().to_vec()),
            statistics,
            bars: bars.unwrap_or_default(),
            text: cut(&text),
        })
    }

    pub(crate) fn has_nan(&self) -> bool {
        self.statistics.as_ref().and_then(|statistics| statistics.nan).is_some_and(|nan| nan > 0)
    }
}

/// A value in a few words, with the node that it comes from.
fn brief(graph: &GraphDetails, prefix: &str, at: usize, value: &ValueDetails) -> serde_json::Map<String, Json> {
    let [name, value_type, shape] = describe::parts(&value.name, value.value_type.as_ref(), value.shape.as_deref());
    let (from, origin) = match value.origin {
        Origin::Node(k) => (graph.nodes.get(k).map(|node| link(prefix, k, node)), "node"),
        Origin::Input if graph.inputs.contains(&at) => (None, "input"),
        Origin::Input => (None, "value of the graph around it"),
        Origin::Initializer => (None, "initializer"),
        _ => (None, "nothing"),
    };
    let row = json!({
        "place": format!("{prefix}{at}"), "name": safe(&name), "type": value_type, "shape": shape, "from": from,
        "origin": origin, "constant": value.constant.is_some(),
    });
    match row {
        Json::Object(row) => row,
        _ => serde_json::Map::new(),
    }
}

fn link(prefix: &str, at: usize, node: &NodeDetails) -> Json {
    json!({ "place": format!("{prefix}{at}"), "title": title(node) })
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => safe(text.get(..end).unwrap_or("")) + "…",
        None => safe(text),
    }
}
