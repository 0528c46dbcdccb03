//! Subgraphs of nodes: each becomes a draft of its own, whose last inputs are the values around it that it reads.

use super::functions::key;
use super::graph::{Loader, Scope};
use super::proto::{GraphProto, ValueInfoProto};
use crate::error::{Error, Result};
use crate::graph::{Draft, DraftBody, Id, Names, NodePlace};
use crate::limits::exceeded;

/// A graph as it is read: what it consists of, decoded one by one.
pub(super) struct Parts<N, I, S, D> {
    pub(super) nodes: N,
    pub(super) initializers: I,
    pub(super) sparse: S,
    pub(super) inputs: Vec<ValueInfoProto>,
    pub(super) outputs: Vec<ValueInfoProto>,
    /// Types of other values.
    pub(super) declared: D,
}

/// A graph around the subgraph that is read.
pub(super) struct Around {
    draft: Draft,
    names: Names,
    /// The values that the subgraph reads.
    captured: Vec<Id>,
    /// The values with names that are given again inside.
    hidden: Vec<Id>,
    /// It is in a function: what is around it has other names.
    closed: bool,
}

impl Loader<'_> {
    /// The subgraphs of a node.
    pub(super) fn bodies(
        &mut self,
        scope: &mut Scope,
        place: &NodePlace,
        outputs: &[String],
        graphs: Vec<(String, GraphProto)>,
    ) -> Result<Vec<DraftBody>> {
        let mut bodies = Vec::with_capacity(graphs.len());
        for (attribute, graph) in graphs {
            bodies.push(self.body(scope, place, &key(outputs, place.index), attribute, graph)?);
        }
        Ok(bodies)
    }

    fn body(
        &mut self,
        scope: &mut Scope,
        place: &NodePlace,
        key: &str,
        attribute: String,
        graph: GraphProto,
    ) -> Result<DraftBody> {
        // In a file each is three messages; functions can nest them further.
        let most = self.files.limits.nesting / 3;
        let depth = self.open.len() + 1;
        if depth > most {
            return Err(exceeded("nesting", "subgraphs nest", depth as u128, "deep", most as u64));
        }
        let budget = &self.files.budget;
        let around = Self::calls(place);
        budget.take((size_of::<Draft>() + size_of::<DraftBody>() + 512 + around.len()) as u64)?;
        let mut own = Scope {
            names: scope.names.inside(key, Some(&attribute), graph.node.len() + graph.initializer.len(), budget)?,
            opsets: scope.opsets.clone(),
            attributes: scope.attributes.clone(),
            function: Some(around),
            called: None,
            index: 0,
            inner: true,
        };
        let inner = self.draft.inner();
        self.open.push(Around {
            draft: std::mem::replace(&mut self.draft, inner),
            names: std::mem::take(&mut scope.names),
            captured: Vec::new(),
            hidden: Vec::new(),
            closed: !scope.inner && scope.function.is_some(),
        });
        let opened = self.draft.open(&mut own.names, budget);
        let read = opened.and_then(|()| self.own_names(&mut own.names, &graph)).and_then(|()| {
            self.parts(
                &mut own,
                Parts {
                    nodes: graph.node.into_iter().map(Ok),
                    initializers: graph.initializer.into_iter().map(Ok),
                    sparse: graph.sparse_initializer.into_iter().map(Ok),
                    inputs: graph.input,
                    outputs: graph.output,
                    declared: graph.value_info.into_iter().map(Ok),
                },
            )
        });
        let Some(around) = self.open.pop() else { return Err(Error::bug("no graph is open")) };
        let mut draft = std::mem::replace(&mut self.draft, around.draft);
        self.draft.close(&mut draft);
        scope.names = around.names;
        read?;
        Ok(DraftBody { attribute, draft, captured: around.captured, hidden: around.hidden })
    }

    /// Makes the names that a subgraph gives to its own values, and notes the values around it that have one of them.
    fn own_names(&mut self, own: &mut Names, graph: &GraphProto) -> Result<()> {
        let budget = &self.files.budget;
        let inputs = graph.input.iter().filter_map(|input| input.name.as_deref());
        let initializers = graph.initializer.iter().filter_map(|initializer| initializer.name.as_deref());
        let sparse = graph.sparse_initializer.iter().filter_map(|sparse| sparse.values.as_ref()?.name.as_deref());
        let outputs = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
        for name in inputs.chain(initializers).chain(sparse).chain(outputs).filter(|name| !name.is_empty()) {
            if own.get(name).is_none()
                && let Some(around) =
                    self.open.iter_mut().rfind(|around| around.closed || around.names.get(name).is_some())
                && let Some(Some(id)) = around.names.get(name)
            {
                budget.take(size_of::<Id>() as u64)?;
                around.hidden.push(id);
            }
            self.draft.optional(own, name, budget)?;
        }
        Ok(())
    }

    /// The value that a name stands for in a scope, here or later; `None` for an omitted one.
    #[inline]
    pub(super) fn optional(&mut self, scope: &mut Scope, name: &str) -> Result<Option<Id>> {
        if scope.inner && !name.is_empty() && scope.names.get(name).is_none() {
            return self.captured(scope, name);
        }
        self.draft.optional(&mut scope.names, name, &self.files.budget)
    }

    /// As [`Loader::optional`], for a value that must have a name.
    pub(super) fn value(&mut self, scope: &mut Scope, name: &str) -> Result<Id> {
        match self.optional(scope, name)? {
            Some(id) => Ok(id),
            None => self.draft.value(&mut scope.names, name, &self.files.budget),
        }
    }

    /// A value of a graph around the subgraph: a further input of each subgraph down to this one. `None` if it is an
    /// input of a function that the call omits.
    fn captured(&mut self, scope: &mut Scope, name: &str) -> Result<Option<Id>> {
        let budget = &self.files.budget;
        let knows = |around: &Around| around.closed || around.names.get(name).is_some();
        // If nobody knows it, the outermost graph is to be at fault.
        let level = self.open.iter().rposition(knows).unwrap_or(0);
        for (depth, Around { draft, names, captured, .. }) in self.open.iter_mut().enumerate().skip(level) {
            let id = if depth == level {
                match draft.optional(names, name, budget)? {
                    Some(id) => id,
                    None => return Ok(None),
                }
            } else {
                draft.captured(names, name, budget)?
            };
            budget.take(2 * size_of::<Id>() as u64)?;
            captured.push(id);
        }
        self.draft.captured(&mut scope.names, name, budget).map(Some)
    }
}
