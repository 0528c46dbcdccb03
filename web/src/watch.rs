//! What the values of a run are like. No value is kept.

use crate::details::numbers;
use crate::opened::{Opened, constant_nan};
use onnxref::inspect::NodeDetails;
use onnxref::{Cancel, NodeInfo, Result, Scope, Value, Watch};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Maximum number of values that are told.
const MAX_VALUES: usize = 20_000;

/// Looks at the values of a run.
pub(crate) struct Look {
    /// The scopes of each name, with the places of its values.
    places: HashMap<String, Vec<(Option<Scope>, String)>>,
    values: BTreeMap<String, Json>,
    /// The places of values that had NaN in some trip.
    nan: HashSet<String>,
    cancel: Cancel,
}

impl Look {
    pub(crate) fn new(opened: &Opened) -> Look {
        let mut places: HashMap<String, Vec<(Option<Scope>, String)>> = HashMap::new();
        for (prefix, graph) in opened.graphs() {
            for (at, value) in graph.values.iter().enumerate() {
                places.entry(value.name.clone()).or_default().push((value.scope.clone(), format!("{prefix}{at}")));
            }
        }
        Look { places, values: BTreeMap::new(), nan: HashSet::new(), cancel: Cancel::new() }
    }

    /// Notes a value. In a subgraph, one of a later trip takes the place of that before.
    pub(crate) fn add(&mut self, name: &str, scope: Option<&Scope>, value: &Value) -> Result<()> {
        let of_name = self.places.get(name).into_iter().flatten();
        let place = of_name.into_iter().find(|(own, _)| own.as_ref() == scope).map(|(_, place)| place.clone());
        let Some(place) = place.filter(|place| self.values.len() < MAX_VALUES || self.values.contains_key(place))
        else {
            return Ok(());
        };
        let mut known = numbers(value, &self.cancel)?;
        let before = self.values.get(&place).and_then(|before| before["times"].as_u64()).unwrap_or(0);
        known["times"] = json!(before + 1);
        if known["statistics"]["nan"].as_u64().is_some_and(|nan| nan > 0) {
            self.nan.insert(place.clone());
        }
        known["nan"] = json!(self.nan.contains(&place));
        self.values.insert(place, known);
        Ok(())
    }

    /// The values by place, and the nodes that give NaN though none of their inputs has any.
    pub(crate) fn finish(self, opened: &Opened) -> (Json, Vec<String>) {
        let mut first = Vec::new();
        for (prefix, graph) in opened.graphs() {
            let has_nan = |at: &usize| self.nan.contains(&format!("{prefix}{at}"));
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

impl Watch for Look {
    fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
        outputs.iter().enumerate().try_for_each(|(k, (name, value))| self.add(name, node.output_scope(k), value))
    }
}
