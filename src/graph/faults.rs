//! The faults of a model while it is loaded.

use crate::error::{Error, Kind, Needs, Result, Unresolved};

/// Faults in the order they were found, up to a number and a size.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    list: Vec<(Option<usize>, Error)>,
    left_out: usize,
    weight: usize,
    /// No more faults are kept once they exceed this many bytes.
    most: usize,
    /// Operators that can't be resolved, each once; the number of nodes that use them; the number of operators beyond
    /// the list.
    unresolved: Vec<Unresolved>,
    unresolved_nodes: usize,
    unresolved_weight: usize,
    /// Nodes that fail whenever they run, if they are asked for.
    pub(super) shapes: Option<Vec<Error>>,
    /// The number of operators and of nodes, resolved or not.
    pub(crate) operators: usize,
    pub(crate) nodes: usize,
}

impl Faults {
    const KEPT: usize = 1000;

    /// Keeps faults until they exceed this many bytes.
    pub(super) fn up_to(most: usize) -> Faults {
        Faults { most, ..Faults::default() }
    }

    /// A node fails whenever it runs: that refuses no model, since it may never run.
    pub(super) fn shape(&mut self, error: impl FnOnce() -> Error) {
        if let Some(shapes) = self.shapes.as_mut().filter(|shapes| shapes.len() < Self::KEPT) {
            shapes.push(error());
        }
    }

    /// Whether further faults would be dropped.
    pub(crate) fn full(&self) -> bool {
        self.list.len() >= Self::KEPT || self.weight >= self.most
    }

    /// The number of faults found.
    pub(super) fn count(&self) -> usize {
        self.list.len() + self.left_out + self.unresolved_nodes
    }

    /// Lists an operator that can't be resolved, which the node at a place in the draft names first. Gives its number, for
    /// [`Faults::unresolved`].
    pub(crate) fn list_unresolved(&mut self, at: usize, error: Error) -> usize {
        let (missing, full) = (error.kind() == Kind::Unsupported, self.unresolved_weight >= self.most);
        self.unresolved_weight += error.weight();
        self.unresolved.push(Unresolved { error: Some(error).filter(|_| !full), missing, at, nodes: 0 });
        self.unresolved.len() - 1
    }

    /// Counts a node of an operator that was listed.
    pub(crate) fn unresolved(&mut self, number: usize) {
        self.unresolved_nodes += 1;
        if let Some(unresolved) = self.unresolved.get_mut(number) {
            unresolved.nodes += 1;
        }
    }

    /// A fault of the model.
    pub(crate) fn push(&mut self, error: Error) {
        self.push_at(None, error);
    }

    /// A fault of the node at a place in the draft.
    pub(super) fn push_at(&mut self, at: Option<usize>, error: Error) {
        if !self.full() {
            self.weight += error.weight();
            self.list.push((at, error));
        } else {
            self.left_out += 1;
        }
    }

    /// The faults of a subgraph of the node at a place in the draft, which were merged.
    pub(super) fn push_all(&mut self, at: usize, merged: Error) {
        let (causes, faults) = merged.into_causes();
        self.left_out += faults.saturating_sub(causes.len());
        causes.into_iter().for_each(|error| self.push_at(Some(at), error));
    }

    /// All faults as one error: those of the model first, then those of nodes in the order of the nodes, then the
    /// operators that are missing here, those with the most nodes first.
    pub(super) fn finish(&mut self) -> Result<()> {
        let shapes = self.shapes.take();
        let Faults { mut list, left_out, mut unresolved, operators, nodes, .. } = std::mem::take(self);
        self.shapes = shapes;
        unresolved.sort_by_key(|unresolved| std::cmp::Reverse(unresolved.nodes));
        let faults = list.len() + left_out + unresolved.len();
        let (missing, wrong): (Vec<_>, Vec<_>) = unresolved.into_iter().partition(|unresolved| unresolved.missing);
        let needs = Needs {
            missing: missing.iter().filter_map(Unresolved::as_data).collect(),
            missing_operators: missing.len(),
            missing_nodes: missing.iter().map(|unresolved| unresolved.nodes).sum(),
            operators,
            nodes,
        };
        let needs = Some(needs).filter(|needs| needs.missing_operators > 0);
        // Of two faults of a node that of its operator comes first.
        let wrong = wrong.into_iter().filter_map(|unresolved| Some((Some(unresolved.at), unresolved.into_error()?)));
        list.splice(..0, wrong);
        list.sort_by_key(|(at, _)| *at);
        let listed = list.into_iter().map(|(_, error)| error);
        let causes = listed.chain(missing.into_iter().filter_map(Unresolved::into_error)).collect();
        Error::all(causes, faults, needs).map_or(Ok(()), Err)
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }
}
