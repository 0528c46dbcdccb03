//! Where a call finds its inputs.

use crate::value::Value;

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// The feed of an input of the graph, or its default.
    Input(u32),
    /// A constant: the same in every run.
    Constant(u32),
    /// A node's output that is needed later.
    Slot(u32),
    /// A node's output at its last use.
    Last(u32),
}

/// The values of a run.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) feeds: Feeds<'a>,
    /// The defaults of inputs that are not fed.
    pub(crate) defaults: &'a [Option<Value>],
    pub(crate) constants: &'a [Value],
    /// The outputs of nodes.
    pub(crate) slots: &'a mut [Option<Value>],
}

/// The feeds of a graph's inputs, each of which may be missing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Feeds<'a> {
    Shared(&'a [Option<&'a Value>]),
    Own(&'a [Option<Value>]),
}

impl<'a> Feeds<'a> {
    #[inline]
    pub(crate) fn get(self, k: usize) -> Option<&'a Value> {
        match self {
            Feeds::Shared(feeds) => feeds.get(k).copied().flatten(),
            Feeds::Own(feeds) => feeds.get(k).and_then(Option::as_ref),
        }
    }
}

impl Sources<'_> {
    /// The value at a place.
    #[inline]
    pub(crate) fn get(&self, source: Source) -> Option<&Value> {
        match source {
            Source::Input(k) => {
                let k = k as usize;
                self.feeds.get(k).or_else(|| self.defaults.get(k)?.as_ref())
            }
            Source::Constant(k) => self.constants.get(k as usize),
            Source::Slot(k) | Source::Last(k) => self.slots.get(k as usize).and_then(Option::as_ref),
        }
    }

    /// Moves out a value at its last use.
    #[inline]
    pub(crate) fn take(&mut self, source: Source) -> Option<Value> {
        match source {
            Source::Last(k) => self.slots.get_mut(k as usize).and_then(Option::take),
            _ => None,
        }
    }
}
