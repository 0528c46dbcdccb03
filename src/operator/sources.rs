//! Where a call finds its inputs.

use crate::value::Value;

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// What is fed to an input of the graph, or its default.
    Input(u32),
    /// The same in every run.
    Constant(u32),
    /// What a node produced; others read it too.
    Slot(u32),
    /// What a node produced; nobody reads it later.
    Last(u32),
}

/// The values of a run.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) feeds: Feeds<'a>,
    /// What is used where nothing is fed.
    pub(crate) defaults: &'a [Option<Value>],
    pub(crate) constants: &'a [Value],
    /// What nodes produced.
    pub(crate) slots: &'a mut [Option<Value>],
}

/// What is fed to the inputs of a graph, where anything is.
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

    /// Moves out a value that nobody reads later.
    #[inline]
    pub(crate) fn take(&mut self, source: Source) -> Option<Value> {
        match source {
            Source::Last(k) => self.slots.get_mut(k as usize).and_then(Option::take),
            _ => None,
        }
    }
}
