//! Drafts made by hand, for tests.

use super::{Draft, Id, Names, NodePlace, ValueInfo};
use crate::limits::{Budget, Limits};
use crate::operator::Resolved;
use crate::registry::Registry;
use crate::value::ValueType;
use std::sync::Arc;

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
        let id = self.id(name);
        self.draft.input(ValueInfo { name: name.into(), value_type, shape: None }, id, None);
    }

    pub(super) fn node(&mut self, name: &str, resolved: Resolved, inputs: &[&str], output: &str) {
        let place = NodePlace { index: 0, name: name.into(), operator: resolved.label.clone(), function: None };
        let inputs = inputs.iter().map(|name| Some(self.id(name))).collect();
        let outputs = [Some(self.id(output))].into_iter().collect();
        self.draft.node(place, Some(Arc::new(resolved)), vec![], inputs, outputs);
    }

    pub(super) fn gather(&mut self, inputs: &[&str], output: &str) {
        self.node("gather", Registry::default().resolve("", "Gather", 13).unwrap(), inputs, output);
    }

    pub(super) fn output(mut self, name: &str) -> Draft {
        let id = self.id(name);
        self.draft.output(ValueInfo { name: name.into(), value_type: None, shape: None }, id);
        self.draft
    }
}
