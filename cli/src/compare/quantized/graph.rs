//! The nodes that quantize, and what their values are called in the float model.

use super::noise::{ALL, number};
use crate::path::ValuePath;
use onnxref::inspect::{GraphDetails, NodeDetails, Origin, ValueDetails};
use onnxref::schema::Attribute;
use std::collections::{HashMap, HashSet};

/// A node with quantized values.
pub(super) struct Quantizer {
    /// Its quantized output: its own error, that of what it was computed from.
    pub(super) output: Option<Site>,
    /// A quantized input: weights, or what no node here quantized.
    pub(super) input: Option<Site>,
}

/// A quantized tensor of a node.
pub(super) struct Site {
    /// The place of the tensor among the inputs, or the outputs for a node that quantizes; then of scale and zero point.
    pub(super) codes: usize,
    pub(super) scale: usize,
    pub(super) zero: usize,
    pub(super) axis: i64,
    pub(super) block: usize,
    /// Whether it is the same in every run.
    pub(super) constant: bool,
    /// What it may be called in the float model, the likeliest first.
    pub(super) names: Vec<String>,
    /// The range of an activation that quantizing it does too: that of Relu begins at 0.
    pub(super) range: (f64, f64),
    /// What it is called in the report.
    pub(super) name: String,
}

/// Nodes that only change how a value is stored.
const STORING: [&str; 5] = ["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Identity", "Constant"];

/// The nodes with quantized values, by their first outputs in the first trip of each subgraph.
pub(super) fn quantizers<'a>(quantized: &GraphDetails, float: &'a GraphDetails) -> HashMap<ValuePath, Quantizer> {
    let of = |graph: &'a GraphDetails| graph.values.iter().map(|value| (value.name.as_str(), range(graph, value)));
    let known: HashMap<&str, Option<(f64, f64)>> = graphs(float).flat_map(of).collect();
    let same = aligned(quantized, float);
    let mut found = HashMap::new();
    for graph in graphs(quantized) {
        let names = Names { graph, known: &known, same: &same };
        for node in &graph.nodes {
            let first = node.outputs.iter().flatten().next().and_then(|at| graph.values.get(*at));
            let path = first.and_then(|value| ValuePath::new(&value.name, value.scope.as_ref(), []));
            if let (Some(path), Some(quantizer)) = (path, names.quantizer(node)) {
                found.insert(path, quantizer);
            }
        }
    }
    found
}

/// A graph and those of its subgraphs.
fn graphs(graph: &GraphDetails) -> impl Iterator<Item = &GraphDetails> {
    let mut open = vec![graph];
    std::iter::from_fn(move || {
        let graph = open.pop()?;
        open.extend(graph.nodes.iter().flat_map(|node| &node.bodies).map(|(_, body)| body));
        Some(graph)
    })
}

/// The range of what Relu or Clip gives; `None` of other values.
fn range(graph: &GraphDetails, value: &ValueDetails) -> Option<(f64, f64)> {
    let Origin::Node(k) = value.origin else { return None };
    let node = graph.nodes.get(k).filter(|node| node.domain.is_empty())?;
    let bound = |input: usize, attribute: &str| {
        let constant = || graph.values.get((*node.inputs.get(input)?)?)?.constant.as_ref()?.tensor().ok();
        let given = node.attributes.iter().find_map(|(name, value)| match value {
            Attribute::Float(bound) if name == attribute => Some(f64::from(*bound)),
            _ => None,
        });
        given.or_else(|| constant()?.scalars().next().as_ref().and_then(number))
    };
    match node.operator.as_str() {
        "Relu" => Some((0.0, f64::INFINITY)),
        "Clip" => Some((bound(1, "min").unwrap_or(ALL.0), bound(2, "max").unwrap_or(ALL.1))),
        _ => None,
    }
}

struct Names<'a> {
    graph: &'a GraphDetails,
    /// The names of the float model, with the ranges of activations.
    known: &'a HashMap<&'a str, Option<(f64, f64)>>,
    /// By the order of nodes: names of the quantized model, and what they are called in the float one.
    same: &'a HashMap<String, String>,
}

impl Names<'_> {
    fn quantizer(&self, node: &NodeDetails) -> Option<Quantizer> {
        if !node.domain.is_empty() {
            return None;
        }
        let own = |name: &str| {
            node.attributes.iter().find_map(|(attribute, value)| match value {
                Attribute::Int(value) if attribute == name => Some(*value),
                _ => None,
            })
        };
        let axis = own("axis").unwrap_or(1);
        let block = usize::try_from(own("block_size").unwrap_or(0)).unwrap_or(0);
        let site = |codes, scale, zero, constant, (name, names): (String, Vec<String>)| {
            // The activation may also be in front of it.
            let own = self.graph.values.get((*node.inputs.first()?)?).and_then(|value| range(self.graph, value));
            let range = names.first().and_then(|name| *self.known.get(name.as_str())?).filter(|_| own.is_none());
            let range = range.unwrap_or(ALL);
            Some(Site { codes, scale, zero, axis, block, constant, range, names, name })
        };
        let (mut output, mut input) = (None, None);
        match node.operator.as_str() {
            "QuantizeLinear" => output = site(0, 1, 2, self.is_constant(node, 0), self.names(node, [0], true)),
            "DynamicQuantizeLinear" => output = site(0, 1, 2, false, self.names(node, [0], true)),
            "DequantizeLinear" if !self.is_quantized(node) => {
                input = site(0, 1, 2, self.is_constant(node, 0), self.names(node, [0], true));
            }
            "QLinearConv" | "QLinearMatMul" => {
                output = site(0, 6, 7, false, self.names(node, [], true));
                let axis = if node.operator == "QLinearConv" { 0 } else { -1 };
                let weights = site(3, 4, 5, true, self.names(node, [3], false)).filter(|_| self.is_constant(node, 3));
                input = weights.map(|site| Site { axis, ..site });
            }
            _ => {}
        }
        (output.is_some() || input.is_some()).then_some(Quantizer { output, input })
    }

    /// What a tensor is called, here and in the float model, by the names of inputs and, if that is wanted, of the output.
    fn names<const N: usize>(&self, node: &NodeDetails, inputs: [usize; N], output: bool) -> (String, Vec<String>) {
        let name = |at: &Option<usize>| Some(self.graph.values.get((*at)?)?.name.as_str());
        let inputs = inputs.iter().filter_map(|k| name(node.inputs.get(*k)?));
        let output = node.outputs.first().filter(|_| output).and_then(name);
        let own: Vec<&str> = inputs.chain(output).collect();
        let mut names: Vec<String> = own.iter().flat_map(|name| stripped(name)).map(str::to_string).collect();
        names.extend(own.iter().filter_map(|name| self.same.get(*name).cloned()));
        // Copies of a tensor for each of its readers are numbered.
        names.extend(
            own.iter()
                .flat_map(|name| stripped(name))
                .map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_string()),
        );
        names.retain(|name| self.known.contains_key(name.as_str()));
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let shown = names.first().cloned().or_else(|| own.first().map(|name| name.to_string()));
        (shown.unwrap_or_default(), names)
    }

    fn producer(&self, node: &NodeDetails, input: usize) -> Option<Origin> {
        Some(self.graph.values.get((*node.inputs.get(input)?)?)?.origin)
    }

    fn is_constant(&self, node: &NodeDetails, input: usize) -> bool {
        match self.producer(node, input) {
            Some(Origin::Initializer) => true,
            Some(Origin::Node(k)) => self.graph.nodes.get(k).is_some_and(|node| node.operator == "Constant"),
            _ => false,
        }
    }

    /// Whether a node reads what another one quantized.
    fn is_quantized(&self, node: &NodeDetails) -> bool {
        let Some(Origin::Node(k)) = self.producer(node, 0) else { return false };
        let operators = ["QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul"];
        self.graph.nodes.get(k).is_some_and(|node| operators.contains(&node.operator.as_str()))
    }
}

/// A name without what quantizers append, step by step.
fn stripped(name: &str) -> Vec<&str> {
    let (mut names, mut rest) = (vec![name], name);
    'longer: loop {
        for ending in ["_Output", "_Input", "_DequantizeLinear", "_QuantizeLinear", "_dequantized", "_quantized"] {
            if let Some(shorter) = rest.strip_suffix(ending).filter(|shorter| !shorter.is_empty()) {
                names.push(shorter);
                rest = shorter;
                continue 'longer;
            }
        }
        let Some((shorter, number)) = rest.rsplit_once('_') else { return names };
        // `x_DequantizeLinear_Output_1`
        if !shorter.ends_with("_Output") || number.is_empty() || number.bytes().any(|byte| !byte.is_ascii_digit()) {
            return names;
        }
        rest = shorter;
    }
}

/// If both graphs have the same operators in the same order, beside those that store: what the inputs and outputs of these
/// nodes are called in the float model. What stores a value has its name.
fn aligned(quantized: &GraphDetails, float: &GraphDetails) -> HashMap<String, String> {
    let sides = [quantized, float].map(|graph| -> Vec<&NodeDetails> {
        graph.nodes.iter().filter(|node| !STORING.contains(&node.operator.as_str())).collect()
    });
    let [a, b] = &sides;
    let plain = |node: &NodeDetails| node.operator.strip_prefix("QLinear").unwrap_or(&node.operator).to_string();
    if a.len() != b.len() || a.iter().zip(b).any(|(a, b)| plain(a) != plain(b) || a.domain != b.domain) {
        return HashMap::new();
    }
    let mut same = HashMap::new();
    for (a, b) in a.iter().zip(b) {
        let is_linear = a.operator != b.operator;
        // QLinear operators read three values for each tensor.
        let inputs = a.inputs.iter().step_by(if is_linear { 3 } else { 1 }).zip(&b.inputs).take(if is_linear {
            2
        } else {
            usize::MAX
        });
        for (mut here, there) in inputs.chain(a.outputs.iter().zip(&b.outputs)).filter_map(|(a, b)| a.zip(*b)) {
            let Some(there) = float.values.get(there) else { continue };
            // Back through what only stores.
            for _ in 0..8 {
                let Some(value) = quantized.values.get(here) else { break };
                same.entry(value.name.clone()).or_insert_with(|| there.name.clone());
                let Origin::Node(k) = value.origin else { break };
                let node = quantized.nodes.get(k).filter(|node| STORING.contains(&node.operator.as_str()));
                let Some(before) = node.and_then(|node| *node.inputs.first()?) else { break };
                here = before;
            }
        }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_what_quantizers_append() {
        for (name, names) in [
            ("x", &["x"][..]),
            ("w_quantized", &["w_quantized", "w"]),
            ("_quantized", &["_quantized"]),
            ("w_DequantizeLinear_Output_12", &["w_DequantizeLinear_Output_12", "w_DequantizeLinear", "w"]),
            ("w_QuantizeLinear_Output", &["w_QuantizeLinear_Output", "w_QuantizeLinear", "w"]),
            ("w_1", &["w_1"]),
        ] {
            assert_eq!(stripped(name), names);
        }
    }
}
