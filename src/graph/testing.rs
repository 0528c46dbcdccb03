//! Drafts made by hand, for tests.

use super::{Draft, Graph, Id, Loading, Names, NodePlace, Slots, ValueInfo, Watching};
use crate::error::Result;
use crate::limits::{Budget, Limits};
use crate::operator::{Attribute, Context, Feeds, Resolved};
use crate::registry::{Own, Registry};
use crate::value::{Dim, Fact, Value, ValueType};
use std::sync::Arc;

/// A draft of one node: `y0, .. = operator(x0, ..)`.
pub(crate) fn draft(
    resolved: Resolved,
    attributes: Vec<(String, Attribute)>,
    inputs: &[Option<ValueType>],
    outputs: usize,
) -> Draft {
    let mut builder = Builder::new();
    let name = |prefix: &str, k: usize| format!("{prefix}{k}");
    inputs.iter().enumerate().for_each(|(k, value_type)| builder.input_of(&name("x", k), value_type.clone()));
    let place = NodePlace { index: 0, name: "".into(), operator: resolved.label.clone(), function: None };
    let given = (0..inputs.len()).map(|k| Some(builder.id(&name("x", k)))).collect();
    let produced = (0..outputs).map(|k| Some(builder.id(&name("y", k)))).collect();
    builder.draft.node(place, Some(Arc::new(resolved)), attributes, given, produced);
    for k in 0..outputs {
        builder.output_named(&name("y", k));
    }
    builder.draft
}

/// Loads a draft within the default limits.
pub(crate) fn load(draft: Draft, optimize: bool) -> Result<Graph> {
    load_within(draft, optimize, &Limits::default())
}

/// All outputs of a run with these inputs.
pub(crate) fn run(graph: &Graph, feeds: &[Value], watch: Watching<'_>) -> Result<Vec<Value>> {
    let feeds: Vec<Option<Value>> = feeds.iter().cloned().map(Some).collect();
    let (mut slots, context) = (Slots::default(), Context::new(2, Limits::default()));
    graph.run(Feeds::Own(&feeds), &mut slots, &context, watch)?;
    (0..graph.outputs.len()).map(|k| graph.take(k, Feeds::Own(&feeds), &mut slots)).collect()
}

/// A draft whose operators are made.
pub(super) fn inferred(mut draft: Draft) -> Draft {
    loading(|loading| super::infer::infer(&mut draft, &mut None, loading).unwrap());
    draft
}

/// Calls a function with what loading takes.
pub(super) fn loading<R>(call: impl FnOnce(&Loading<'_>) -> R) -> R {
    let limits = Limits::default();
    let budget = Budget::new(&limits);
    call(&Loading { limits: &limits, budget: &budget, resolver: &Own::new(&budget), fast_math: false })
}

pub(crate) fn load_within(draft: Draft, optimize: bool, limits: &Limits) -> Result<Graph> {
    let budget = Budget::new(limits);
    Graph::new(draft, optimize, &Loading { limits, budget: &budget, resolver: &Own::new(&budget), fast_math: false })
}

/// Loads a draft whose sums may change.
pub(super) fn load_fast(draft: Draft) -> Result<Graph> {
    let limits = Limits::default();
    let budget = Budget::new(&limits);
    Graph::new(
        draft,
        true,
        &Loading { limits: &limits, budget: &budget, resolver: &Own::new(&budget), fast_math: true },
    )
}

/// A draft under construction.
pub(super) struct Builder {
    pub(super) draft: Draft,
    names: Names,
    budget: Budget,
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder { draft: Draft::new(1 << 20), names: Names::default(), budget: Budget::new(&Limits::default()) }
    }

    pub(super) fn id(&mut self, name: &str) -> Id {
        self.draft.value(&mut self.names, name, &self.budget).unwrap()
    }

    pub(super) fn input(&mut self, name: &str) {
        self.input_of(name, None);
    }

    pub(super) fn input_of(&mut self, name: &str, value_type: Option<ValueType>) {
        self.shaped(name, value_type, None);
    }

    pub(super) fn shaped(&mut self, name: &str, value_type: Option<ValueType>, shape: Option<Vec<Dim>>) {
        let id = self.id(name);
        self.draft.input(ValueInfo { name: name.into(), value_type, shape }, id, None);
    }

    pub(super) fn constant(&mut self, name: &str, value: impl Into<Value>) {
        let id = self.id(name);
        self.draft.constant(id, Fact::constant(value.into()), None);
    }

    /// A node of an operator of opset 20.
    pub(super) fn op(&mut self, operator: &str, inputs: &[&str], output: &str) {
        self.op_with(operator, vec![], inputs, output);
    }

    /// As [`Builder::op`], with attributes.
    pub(super) fn op_with(
        &mut self,
        operator: &str,
        attributes: Vec<(String, Attribute)>,
        inputs: &[&str],
        output: &str,
    ) {
        self.whole_node(output, Registry::default().resolve("", operator, 20).unwrap(), attributes, inputs, output);
    }

    pub(super) fn output_named(&mut self, name: &str) {
        let id = self.id(name);
        self.draft.output(ValueInfo { name: name.into(), value_type: None, shape: None }, id);
    }

    pub(super) fn node(&mut self, name: &str, resolved: Resolved, inputs: &[&str], output: &str) {
        self.whole_node(name, resolved, vec![], inputs, output);
    }

    pub(super) fn whole_node(
        &mut self,
        name: &str,
        resolved: Resolved,
        attributes: Vec<(String, Attribute)>,
        inputs: &[&str],
        output: &str,
    ) {
        let place = NodePlace { index: 0, name: name.into(), operator: resolved.label.clone(), function: None };
        // A name that is empty stands for none, as in files.
        let inputs = inputs.iter().map(|name| (!name.is_empty()).then(|| self.id(name))).collect();
        let outputs = [Some(self.id(output))].into_iter().collect();
        self.draft.node(place, Some(Arc::new(resolved)), attributes, inputs, outputs);
    }

    pub(super) fn gather(&mut self, inputs: &[&str], output: &str) {
        self.node("gather", Registry::default().resolve("", "Gather", 13).unwrap(), inputs, output);
    }

    pub(super) fn output(mut self, name: &str) -> Draft {
        self.output_named(name);
        self.draft
    }
}
