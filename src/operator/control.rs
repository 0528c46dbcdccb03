//! Operators with bodies: If, Loop, Scan and their kin. They say which body runs next; the engine runs it.

use super::{Call, Context, Values};
use crate::error::Result;
use std::fmt;

/// What is to be done next in a call of an operator with bodies.
#[cfg_attr(not(test), expect(dead_code, reason = "If, Loop and Scan are to come"))]
#[derive(Debug)]
pub(crate) enum Step {
    /// The outputs of the node.
    Done(Values),
    /// Run a body with these values for its inputs; those that it captures are added to them.
    Enter { body: usize, feeds: Values },
}

/// An operator with bodies.
pub(crate) trait Control: fmt::Debug + Send + Sync {
    /// Starts a call. What comes back is asked after each body what comes next.
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)>;
}

/// A call of an operator with bodies that has started.
pub(crate) trait Resume: fmt::Debug {
    /// Takes the outputs of the body that was entered last.
    fn resume(&mut self, results: Values, context: &Context) -> Result<Step>;
}
