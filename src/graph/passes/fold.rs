//! Computes what is the same in every run: nodes all of whose inputs are constant.

use crate::graph::draft::{DraftNode, Entry, Id};
use crate::graph::run::call;
use crate::limits::{Budget, Limits};
use crate::operator::{Arg, Call, Context, Values};
use crate::value::{Fact, Value, ValueType};
use smallvec::SmallVec;

/// Elements and steps that folding may take in all: more is left to the runs.
const MOST: u64 = 1 << 26;

/// Folds nodes, one after the other, as long as there is budget.
pub(in crate::graph) struct Fold<'a> {
    budget: &'a Budget,
    context: Context,
}

impl<'a> Fold<'a> {
    pub(in crate::graph) fn new(budget: &'a Budget, limits: &Limits) -> Fold<'a> {
        let mut limits = limits.clone();
        limits.run_bytes = limits.run_bytes.min(budget.left() / 2);
        limits.run_elements = limits.run_elements.min(MOST);
        limits.run_work = limits.run_work.min(MOST);
        Fold { budget, context: Context::new(1, limits) }
    }

    /// Makes the outputs of a node constants, if they are. An error is left to the runs, which tell it.
    pub(in crate::graph) fn node(&mut self, node: &mut DraftNode, entries: &mut [Entry]) {
        let Some(values) = self.values(node, entries) else { return };
        for (id, value) in node.outputs.iter().zip(values) {
            let Some(entry) = id.and_then(|id| entries.get_mut(id.at())) else { continue };
            value.hand_out();
            entry.fact = Fact::constant(value);
        }
        node.operator = None;
    }

    fn values(&self, node: &DraftNode, entries: &[Entry]) -> Option<Values> {
        let (resolved, operator) = (node.resolved.as_ref()?, node.operator.as_ref()?);
        // What a user's operator does is the user's: it may differ from call to call.
        if resolved.is_custom() || node.inputs.is_empty() {
            return None;
        }
        let value = |id: &Option<Id>| -> Option<Arg<'_>> {
            let Some(id) = id else { return Some(Arg::None) };
            Some(Arg::Shared(entries.get(id.at())?.fact.value()?))
        };
        let args: SmallVec<[Arg<'_>; 3]> = node.inputs.iter().map(value).collect::<Option<_>>()?;
        let (schema, outputs) = (&*resolved.schema, node.outputs.len());
        let values =
            call(&**operator, Call { args, schema, outputs, wanted: u64::MAX, context: &self.context }).ok()?;
        let known = node.outputs.iter().map(|id| entries.get((*id)?.at())?.fact.value_type());
        let fits = |(value, known): (&Value, Option<&ValueType>)| known.is_none_or(|known| value.is_of(known));
        if values.len() != outputs || !values.iter().zip(known).all(fits) {
            return None;
        }
        let mut bytes = 0;
        for value in &values {
            let _ = value.for_each_tensor(&mut |tensor| {
                bytes += tensor.bytes().len() as u64 + 256;
                Ok(())
            });
        }
        if bytes > self.budget.left() / 2 {
            return None;
        }
        self.budget.take(bytes).ok()?;
        Some(values)
    }
}
