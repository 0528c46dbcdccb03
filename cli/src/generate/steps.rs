//! How far results may be from the expected ones, if each step of a formula is rounded: running error analysis.
//!
//! The formulas of `steps.txt` are graphs of simpler operators. Each value is computed in float64, and beside it how far an
//! engine may be from it that rounds each step as the coarsest type of the node does (Higham, Accuracy and Stability of
//! Numerical Algorithms, 3.3). An engine's result is within that of the exact one, so it is within that and the distance of the
//! expected output from the exact one.

use super::lists::List;
use super::maker::{Given, Made};
use super::sums::{Numbers, finest, numbers, short};
use crate::proto::{ModelProto, NodeProto};
use onnxref::document::Document;
use onnxref::schema::{Attribute, Schema};
use onnxref::{DType, Tensor, Value};
use prost::Message;
use std::collections::BTreeMap;

const STEPS: &str = include_str!("steps.txt");

/// The opset of the formulas.
const OPSET: i64 = 12;

/// Attributes that change no result, or are minded otherwise.
const IGNORED: [&str; 3] = ["momentum", "output_datatype", "stash_type"];

/// Operators whose intermediate results may be of float32: by an attribute, or as the standard's function of a window.
const SINGLE: &[&str] =
    &["BlackmanWindow", "GroupNormalization", "HammingWindow", "HannWindow", "LayerNormalization", "RMSNormalization"];

/// Operators that move or choose elements.
const MOVES: &[&str] = &["Cast", "Identity", "Reshape", "ReduceMax", "Transpose", "Unsqueeze"];

/// Operators whose result changes no more than what they read.
const AS_FAR: &[&str] = &["Abs", "Neg", "Relu"];

/// Functions that only grow: of an engine's, within [`FUNCTION`] units of half a last place.
const GROWING: &[&str] = &["Exp", "Log", "Sigmoid", "Tanh"];

/// How precise functions of an engine are: 4 units in the last place.
const FUNCTION: f64 = 8.0;

/// Sums, of products or not.
const SUMS: &[&str] = &["MatMul", "ReduceMean", "ReduceSum"];

/// How far each element of the outputs may be from the expected one, one output after the other. `None` of an element that can
/// be anything: a step may overflow.
pub(super) fn bounds(schema: &Schema, made: &Made, outputs: &[(String, Value)]) -> Option<Vec<Option<f64>>> {
    let values = made.inputs.iter().map(|given| &given.value).chain(outputs.iter().map(|(_, value)| value));
    let types = values.filter_map(|value| value.tensor().ok()).map(Tensor::dtype);
    let single = SINGLE.contains(&schema.name.as_str()).then_some(DType::Float);
    let coarsest = types.chain(single).filter_map(numbers).reduce(|a, b| if a.unit > b.unit { a } else { b })?;
    let formula = formula(schema, made)?;
    if made.node.input.len() > formula.inputs.len() {
        return None;
    }
    let mut steps = Steps { numbers: coarsest, known: BTreeMap::new() };
    for (k, input) in formula.inputs.iter().enumerate() {
        let name = made.node.input.get(k).map_or("", String::as_str);
        let given = made.inputs.iter().find(|given| given.name == name);
        let value = given.map(|given| &given.value).or(formula.constants.get(input))?;
        steps.known.insert(input.clone(), held(value)?);
    }
    for (name, value) in &formula.constants {
        let mut constant = held(value)?;
        // Attributes are rounded too.
        if let Held::Floats(near) = &mut constant {
            near.off = near.exact.map(|x| x.abs() * coarsest.unit);
        }
        steps.known.entry(name.clone()).or_insert(constant);
    }
    formula.nodes.iter().try_for_each(|node| steps.take(node))?;
    let mut all = Vec::new();
    for ((_, output), name) in outputs.iter().zip(&formula.outputs) {
        let (expected, Held::Floats(near)) = (List::floats(output.tensor().ok()?)?, steps.known.get(name)?) else {
            return None;
        };
        all.extend(steps.numbers.compare(&expected, near)?);
    }
    (outputs.len() <= formula.outputs.len()).then_some(all)
}

impl Numbers {
    /// How far results may be from expected ones. `None` if the expected ones are not what the formula gives.
    fn compare(&self, expected: &List, near: &Near) -> Option<Vec<Option<f64>>> {
        // float64 is rounded too.
        let all = 1.0 + finest() / self.unit;
        let each = expected.elements.iter().zip(&near.exact.elements).zip(&near.off.elements);
        let bound = |((expected, exact), off): ((&f64, &f64), &f64)| {
            if !off.is_finite() || !exact.is_finite() || !expected.is_finite() {
                return Some((expected.is_nan() && exact.is_nan()).then_some(0.0));
            }
            let distance = (expected - exact).abs();
            (distance <= off * all).then(|| Some(short(distance + off * all)))
        };
        (expected.elements.len() == near.exact.elements.len()).then(|| each.map(bound).collect())?
    }
}

/// A formula of the table for a node.
struct Formula {
    inputs: Vec<String>,
    outputs: Vec<String>,
    constants: BTreeMap<String, Value>,
    nodes: Vec<NodeProto>,
}

/// The formula of a node, if all it has is in one.
fn formula(schema: &Schema, made: &Made) -> Option<Formula> {
    STEPS.split("\n\n").find_map(|block| {
        let lines: Vec<&str> = block.lines().filter(|line| !line.starts_with('#')).collect();
        let (head, graph) = lines.split_first()?;
        let (label, wanted) = head.strip_prefix("== ")?.split_once(' ').unwrap_or((head.get(3..)?, ""));
        let (operator, since) = label.rsplit_once('-')?;
        let own = match schema.domain.as_str() {
            "" => schema.name.clone(),
            domain => format!("{domain}.{}", schema.name),
        };
        if own != operator || schema.since_version < since.parse().ok()? {
            return None;
        }
        let mut text = graph.join("\n");
        let mut known: Vec<String> = IGNORED.map(str::to_string).into();
        if let Some((name, value)) = wanted.split_once('=') {
            if attribute(schema, made, name)? != value {
                return None;
            }
            known.push(name.to_string());
        }
        let rank = made.inputs.first()?.value.tensor().ok()?.rank();
        let names = schema.attributes.iter().map(|formal| formal.name.as_str());
        for name in names.chain(["rank", "shape", "last", "spatial", "after first"]) {
            let place = format!("{{{name}}}");
            if text.contains(&place) {
                text = text.replace(&place, &attribute(schema, made, name).or_else(|| measure(made, name))?);
                known.push(name.to_string());
            }
            let count = format!("{{count {name}}}");
            if text.contains(&count) {
                let list = attribute(schema, made, name)?;
                text = text.replace(&count, &list.split(',').count().to_string());
            }
            let from = format!("{{from {name}}}");
            if text.contains(&from) {
                let first: i64 = attribute(schema, made, name)?.parse().ok()?;
                let first = if first < 0 { first + rank as i64 } else { first };
                text = text.replace(&from, &listed(first..rank as i64));
                known.push(name.to_string());
            }
        }
        if made.node.attribute.iter().any(|attribute| !known.iter().any(|name| name == attribute.name())) {
            return None;
        }
        read(&text)
    })
}

fn listed<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

/// What is known of the first input.
fn measure(made: &Made, name: &str) -> Option<String> {
    let shape = made.inputs.first()?.value.tensor().ok()?.shape();
    Some(match name {
        "rank" => shape.len().to_string(),
        "shape" => listed(shape),
        "last" => shape.last()?.to_string(),
        "spatial" => listed(2..shape.len()),
        // The axes behind that of channels, of numbers for each channel.
        "after first" => listed(1..shape.len().saturating_sub(1)),
        _ => return None,
    })
}

/// An attribute of a node, or its default.
fn attribute(schema: &Schema, made: &Made, name: &str) -> Option<String> {
    let exact = |x: &f32| format!("{:?}", f64::from(*x));
    if let Some(given) = made.node.attribute.iter().find(|attribute| attribute.name() == name) {
        return match (given.i, given.f) {
            (Some(number), _) => Some(number.to_string()),
            (_, Some(number)) => Some(exact(&number)),
            _ if given.s.is_some() => String::from_utf8(given.s.as_deref()?.to_vec()).ok(),
            _ if !given.floats.is_empty() => Some(listed(given.floats.iter().map(exact))),
            _ => Some(listed(&given.ints)).filter(|list| !list.is_empty()),
        };
    }
    match schema.attributes.iter().find(|formal| formal.name == name)?.default.as_ref()? {
        Attribute::Int(number) => Some(number.to_string()),
        Attribute::Float(number) => Some(exact(number)),
        Attribute::Ints(list) => Some(listed(list)),
        Attribute::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Reads a formula.
fn read(text: &str) -> Option<Formula> {
    let text = format!("<ir_version: 10, opset_import: [\"\": {OPSET}]>\n{text}");
    let mut bytes = Vec::new();
    Document::from_text(&text).and_then(|document| document.write(&mut bytes)).ok()?;
    let graph = ModelProto::decode(&*bytes).ok()?.graph?;
    let constant = |tensor: &crate::proto::TensorProto| {
        Some((tensor.name().to_string(), Tensor::from_proto_bytes(tensor.encode_to_vec()).ok()?.into()))
    };
    let names = |infos: &[crate::proto::ValueInfoProto]| infos.iter().map(|info| info.name().to_string()).collect();
    Some(Formula {
        inputs: names(&graph.input),
        outputs: names(&graph.output),
        constants: graph.initializer.iter().map(constant).collect::<Option<_>>()?,
        nodes: graph.node,
    })
}

/// Floats, and how far those of an engine may be from them.
#[derive(Clone)]
struct Near {
    exact: List,
    off: List,
}

enum Held {
    Floats(Near),
    /// What isn't rounded.
    Other(Value),
}

impl Held {
    fn other(&self) -> Option<Value> {
        if let Held::Other(value) = self { Some(value.clone()) } else { None }
    }
}

fn held(value: &Value) -> Option<Held> {
    match List::floats(value.tensor().ok()?) {
        Some(exact) => Some(Held::Floats(Near { off: exact.map(|_| 0.0), exact })),
        None => Some(Held::Other(value.clone())),
    }
}

struct Steps {
    numbers: Numbers,
    known: BTreeMap<String, Held>,
}

impl Steps {
    /// Computes a node.
    fn take(&mut self, node: &NodeProto) -> Option<()> {
        let inputs = node.input.iter().map(|name| self.known.get(name)).collect::<Option<Vec<_>>>()?;
        let floats: Vec<&Near> =
            inputs.iter().filter_map(|held| if let Held::Floats(near) = held { Some(near) } else { None }).collect();
        // The node on floats in the place of those that it reads.
        let of = |lists: Vec<List>| {
            let mut lists = lists.into_iter();
            let values = inputs.iter().map(|held| match held {
                Held::Floats(_) => lists.next()?.value(),
                Held::Other(value) => Some(value.clone()),
            });
            List::floats(run(node, values.collect::<Option<Vec<_>>>()?)?.tensor().ok()?)
        };
        let op = node.op_type();
        let (Numbers { unit, least, greatest }, output) = (self.numbers, node.output.first()?.clone());
        if floats.is_empty() {
            let value = run(node, inputs.iter().filter_map(|held| held.other()).collect())?;
            self.known.insert(output, held(&value)?);
            return Some(());
        }
        let exact = of(floats.iter().map(|near| near.exact.clone()).collect())?;
        let (exact, off) = match floats.as_slice() {
            // It changes no more than the angle does.
            [a] if op == "Cos" => {
                let off = a.off.zip(&exact, |off, y| off + FUNCTION * unit * y.abs() + least)?;
                (exact, off)
            }
            [a] if MOVES.contains(&op) => (exact, of(vec![a.off.clone()])?),
            [a] if AS_FAR.contains(&op) => (exact, a.off.clone()),
            [a] if GROWING.contains(&op) || op == "Sqrt" => {
                let (above, below) =
                    (of(vec![a.exact.zip(&a.off, |x, e| x + e)?])?, of(vec![a.exact.zip(&a.off, |x, e| x - e)?])?);
                let off = above.zip(&exact, |up, y| up - y)?.zip(&exact.zip(&below, |y, down| y - down)?, f64::max)?;
                let half = if op == "Sqrt" { 1.0 } else { FUNCTION };
                let off = off.zip(&exact, |off, y| off + half * unit * y.abs() + least)?;
                // The greater of two numbers is one where the other is NaN: a root of less than 0.
                let off = off.zip(&below, |off, down| if down.is_nan() { f64::INFINITY } else { off })?;
                (exact, off)
            }
            all if SUMS.contains(&op) => {
                let terms = of(all.iter().map(|near| near.exact.map(|_| 1.0)).collect())?;
                let mean = op == "ReduceMean";
                let terms = if mean { terms.map(|_| a_lane(all, &exact)) } else { terms };
                let sizes = |of: fn(&Near) -> List| all.iter().map(move |near| of(near)).collect::<Vec<_>>();
                let whole = of(sizes(|near| near.exact.map(f64::abs)))?;
                let grown =
                    of(sizes(|near| near.exact.zip(&near.off, |x, e| x.abs() + e).unwrap_or(near.off.clone())))?;
                let rounded = grown.zip(&terms, |sum, n| {
                    let k = n + 2.0;
                    k * unit / (1.0 - k * unit) * sum + k * least
                })?;
                let sums = if mean { grown.zip(&terms, |sum, n| sum * n)? } else { grown.clone() };
                let overflow = |off: f64, sum: f64| if sum >= greatest / 2.0 { f64::INFINITY } else { off };
                (exact, grown.zip(&whole, |all, sum| all - sum)?.zip(&rounded, |a, b| a + b)?.zip(&sums, overflow)?)
            }
            [a, b] => {
                let off = match op {
                    "Add" | "Sub" => a.off.zip(&b.off, |a, b| a + b)?,
                    "Mul" => {
                        let one = |near: &Near| near.exact.zip(&near.off, |x, e| x.abs() + e);
                        one(a)?.zip(&one(b)?, |a, b| a * b)?.zip(&exact, |all, y| all - y.abs())?
                    }
                    "Div" => {
                        let above = a.off.zip(&exact.map(f64::abs).zip(&b.off, |y, e| y * e)?, |a, b| a + b)?;
                        let below = b.exact.zip(&b.off, |x, e| if x.abs() > e { x.abs() - e } else { 0.0 })?;
                        above.zip(&below, |above, below| if below == 0.0 { f64::INFINITY } else { above / below })?
                    }
                    _ => return None,
                };
                let off = off.zip(&exact, |off, y| off.max(0.0) + y.abs() * unit + least)?;
                (exact, off)
            }
            _ => return None,
        };
        let off = off.zip(&exact, |off, y| if y.abs() >= greatest / 2.0 { f64::INFINITY } else { off })?;
        self.known.insert(output, Held::Floats(Near { exact, off }));
        Some(())
    }
}

/// The number of elements that go into one of the result.
fn a_lane(all: &[&Near], result: &List) -> f64 {
    let read: usize = all.iter().map(|near| near.exact.elements.len()).sum();
    read as f64 / result.elements.len().max(1) as f64
}

/// What a node gives.
fn run(node: &NodeProto, values: Vec<Value>) -> Option<Value> {
    let name = |k: usize| format!("i{k}");
    let inputs: Vec<Given> =
        values.into_iter().enumerate().map(|(k, value)| Given { name: name(k), value, constant: false }).collect();
    let mut node = node.clone();
    node.input = (0..inputs.len()).map(name).collect();
    let made = Made { node, inputs, open: false, opset: OPSET, exact: None };
    made.run().ok()?.into_iter().next().map(|(_, value)| value)
}
