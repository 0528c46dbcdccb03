//! What the values of a run are like. No value is kept.

use crate::details::Numbers;
use crate::opened::{Opened, constant_nan};
use crate::print::safe;
use onnxref::inspect::{Fate, NodeDetails};
use onnxref::{Cancel, NodeInfo, Result, Scope, Value, Watch};
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of values that are told.
const MAX_VALUES: usize = 20_000;

/// Looks at the values of a run.
pub(crate) struct Look {
    /// The scopes of each name, with the places of its values.
    places: HashMap<String, Vec<(Option<Scope>, String)>>,
    values: BTreeMap<String, Known>,
    cancel: Cancel,
}

/// What a value is like.
#[derive(Clone, Serialize)]
struct Known {
    name: String,
    #[serde(flatten)]
    numbers: Numbers,
    /// How often it was given.
    times: u64,
    /// Whether it has, or had in some trip, an element that isn't a number.
    nan: bool,
}

impl Look {
    pub(crate) fn new(opened: &Opened) -> Look {
        let mut places: HashMap<String, Vec<(Option<Scope>, String)>> = HashMap::new();
        for (prefix, graph) in opened.graphs() {
            for (at, value) in graph.values.iter().enumerate() {
                places.entry(value.name.clone()).or_default().push((value.scope.clone(), format!("{prefix}{at}")));
            }
        }
        Look { places, values: BTreeMap::new(), cancel: Cancel::new() }
    }

    /// Notes a value. In a subgraph, one of a later trip takes the place of that before.
    pub(crate) fn add(&mut self, name: &str, scope: Option<&Scope>, value: &Value) -> Result<()> {
        let of_name = self.places.get(name).into_iter().flatten();
        let place = of_name.into_iter().find(|(own, _)| own.as_ref() == scope).map(|(_, place)| place.clone());
        let Some(place) = place.filter(|place| self.values.len() < MAX_VALUES || self.values.contains_key(place))
        else {
            return Ok(());
        };
        let numbers = Numbers::of(value, &self.cancel)?;
        let (times, nan) = self.values.get(&place).map_or((0, false), |before| (before.times, before.nan));
        let known = Known { name: safe(name), times: times + 1, nan: nan || numbers.has_nan(), numbers };
        self.values.insert(place, known);
        Ok(())
    }

    /// The values by place, and the nodes that give NaN though none of their inputs has any.
    pub(crate) fn finish(mut self, opened: &Opened) -> (Json, Vec<String>) {
        let mut first = Vec::new();
        for (prefix, graph) in opened.graphs() {
            for (at, node) in graph.nodes.iter().enumerate() {
                // What doesn't run gives what it reads, and a subgraph reads values of the graph around it.
                if let (Fate::Forwarded, [Some(from)], [Some(to)]) = (node.fate, &*node.inputs, &*node.outputs) {
                    self.copy(format!("{prefix}{from}"), format!("{prefix}{to}"));
                }
                for (k, (_, body)) in node.bodies.iter().enumerate() {
                    for (inner, outer) in &body.captured {
                        self.copy(format!("{prefix}{outer}"), format!("{prefix}{at}.{k}.{inner}"));
                    }
                }
            }
            let has_nan = |at: &usize| self.values.get(&format!("{prefix}{at}")).is_some_and(|known| known.nan);
            let enters = |at: &usize| has_nan(at) || graph.values.get(*at).is_some_and(constant_nan);
            let begins = |node: &NodeDetails| {
                node.outputs.iter().flatten().any(has_nan)
                    && node.bodies.is_empty()
                    && !node.inputs.iter().flatten().any(enters)
            };
            first.extend(
                graph.nodes.iter().enumerate().filter(|(_, node)| begins(node)).map(|(at, _)| format!("{prefix}{at}")),
            );
        }
        (json!(self.values), first)
    }
}

impl Look {
    /// Notes what is known of a value for another that is the same.
    fn copy(&mut self, from: String, to: String) {
        if let Some(known) = self.values.get(&from).cloned() {
            self.values.entry(to).or_insert(known);
        }
    }
}

impl Watch for Look {
    fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
        outputs.iter().enumerate().try_for_each(|(k, (name, value))| self.add(name, node.output_scope(k), value))
    }
}
