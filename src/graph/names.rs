//! Names while a model is read: which value each one stands for in its scope.

use super::draft::Id;
use super::scope::Scope;
use crate::error::Result;
use crate::limits::Budget;
use std::collections::HashMap;
use std::sync::Arc;

/// The values that names stand for in one scope; `None` for an input of a function that its caller omits.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(super) ids: HashMap<Arc<str>, Option<Id>>,
    /// `None` for the model's graph.
    pub(super) scope: Option<Scope>,
    /// The scope as entries have it.
    pub(super) place: u32,
}

/// Memory of a table with room for that many names.
fn table_bytes(capacity: usize) -> u64 {
    if capacity == 0 {
        return 0;
    }
    let places = (capacity as u64 * 8).div_ceil(7).next_power_of_two().max(16);
    places * (size_of::<(Arc<str>, Option<Id>)>() as u64 + 1)
}

impl Names {
    /// A table with room for that many names.
    pub(crate) fn with_capacity(count: usize, budget: &Budget) -> Result<Names> {
        budget.take(table_bytes(count))?;
        Ok(Names { ids: HashMap::with_capacity(count), scope: None, place: 0 })
    }

    /// A table for a call of the node that gives `node`, or for its subgraph. [`Draft::open`](super::Draft::open) opens it.
    pub(crate) fn inside(&self, node: &str, body: Option<&str>, count: usize, budget: &Budget) -> Result<Names> {
        let scope = Some(Scope::new(self.scope.as_ref(), node, body, budget)?);
        Ok(Names { scope, ..Names::with_capacity(count, budget)? })
    }

    pub(super) fn insert(&mut self, name: Arc<str>, id: Option<Id>, budget: &Budget) -> Result<Option<Option<Id>>> {
        budget.take(32 + name.len() as u64)?;
        if self.ids.len() < self.ids.capacity() {
            return Ok(self.ids.insert(name, id));
        }
        // While the table grows, both copies exist.
        let capacity = self.ids.capacity();
        budget.take(table_bytes(2 * capacity.max(2)))?;
        let before = self.ids.insert(name, id);
        budget.give_back(table_bytes(capacity));
        Ok(before)
    }

    /// Memory for the scopes of a node with that many outputs.
    pub(crate) fn scope_bytes(&self, outputs: usize) -> u64 {
        if self.scope.is_some() { 16 + (size_of::<Scope>() * outputs) as u64 } else { 0 }
    }

    /// The value that a name stands for, if it does.
    pub(crate) fn get(&self, name: &str) -> Option<Option<Id>> {
        self.ids.get(name).copied()
    }

    /// Makes a new name of this scope stand for a value of another. Returns false if it isn't new.
    pub(crate) fn bind(&mut self, name: &str, id: Option<Id>, budget: &Budget) -> Result<bool> {
        Ok(self.insert(name.into(), id, budget)?.is_none())
    }
}
