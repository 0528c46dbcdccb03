//! Operators with bodies: If, Loop, Scan and their kin. They say which body runs next; the engine runs it.

use super::{Call, Context, Inference, Values};
use crate::error::Result;
use std::fmt;

/// The next step in a call of an operator with bodies.
#[derive(Debug)]
pub(crate) enum Step {
    /// The outputs of the node.
    Done(Values),
    /// Run a body with these values for its inputs; captured values are added.
    Enter { body: usize, feeds: Values },
}

/// An operator with bodies.
pub(crate) trait Control: fmt::Debug + Send + Sync {
    /// Starts a call. The result gives the next step after each body.
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)>;

    /// As [`Operator::infer`](super::Operator::infer).
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let _ = facts;
        Ok(())
    }
}

/// A started call of an operator with bodies.
pub(crate) trait Resume: fmt::Debug {
    /// Takes the outputs of the last body.
    fn resume(&mut self, results: Values, context: &Context) -> Result<Step>;
}
