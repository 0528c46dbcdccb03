//! Computes nodes whose inputs are all constant.

use super::weights::Operands;
use crate::graph::Loading;
use crate::graph::draft::{Draft, DraftNode, Entry, Id};
use crate::limits::Budget;
use crate::operator::{Call, Context, Feeds, Source, Sources, Values};
use crate::value::{Fact, Value};
use smallvec::SmallVec;

/// Maximum elements and steps of all folding; the rest is left to the runs.
const MOST: u64 = 1 << 26;

/// Folds nodes one by one while there is budget.
pub(in crate::graph) struct Fold<'a> {
    budget: &'a Budget,
    /// Memory that folding takes, and gives back when it ends.
    scratch: u64,
    context: Context,
    /// What isn't computed in the draft.
    operands: Operands,
}

impl<'a> Fold<'a> {
    pub(in crate::graph) fn new(loading: &Loading<'a>) -> Fold<'a> {
        let (budget, mut limits) = (loading.budget, loading.limits.clone());
        // Intermediate results, and pooled memory; results are charged separately.
        let scratch = (budget.left() / 4).min(limits.run_bytes);
        limits.run_bytes = if budget.take(scratch).is_ok() { scratch } else { 0 };
        limits.run_elements = limits.run_elements.min(MOST);
        limits.run_work = limits.run_work.min(MOST);
        Fold { budget, scratch: limits.run_bytes, context: Context::new(1, limits), operands: Operands::default() }
    }

    /// Begins with a draft. Returns what belongs to the one around it, to be given back in the end.
    pub(in crate::graph) fn begin(&mut self, draft: &Draft) -> Operands {
        std::mem::replace(&mut self.operands, Operands::of(draft))
    }

    pub(in crate::graph) fn end(&mut self, outer: Operands) {
        self.operands = outer;
    }

    /// Makes the outputs of a node constants if its inputs are. Errors are left to the runs.
    pub(in crate::graph) fn node(&mut self, node: &mut DraftNode, entries: &mut [Entry]) {
        let known =
            |id: &Option<Id>| id.is_none_or(|id| entries.get(id.at()).is_some_and(|e| e.fact.value().is_some()));
        let own = node.resolved.as_ref().is_some_and(|resolved| !resolved.is_custom());
        let inferred = own && node.operator.is_some() && node.outputs.iter().all(known);
        let constant = !node.inputs.is_empty() && node.inputs.iter().all(known);
        // What the operator has inferred needs no run, but of constants a run may fail.
        if inferred && !constant {
            node.operator = None;
            return;
        }
        if constant && self.operands.has(node, entries) {
            return;
        }
        let Some(mut values) = self.values(node, entries) else {
            for id in node.outputs.iter().flatten().filter(|_| inferred) {
                if let Some(entry) = entries.get_mut(id.at()) {
                    entry.fact.take_value();
                }
            }
            return;
        };
        for (id, value) in node.outputs.iter().zip(values.drain()) {
            let Some((entry, value)) = id.and_then(|id| entries.get_mut(id.at())).zip(value) else { continue };
            value.hand_out(&self.context.memory);
            entry.fact = Fact::constant(value);
        }
        node.operator = None;
    }

    fn values(&self, node: &DraftNode, entries: &[Entry]) -> Option<Values> {
        let (resolved, operator) = (node.resolved.as_ref()?, node.operator.as_ref()?.plain()?);
        // A user's operator may return something else on each call.
        if resolved.is_custom() || node.inputs.is_empty() || !operator.pure() {
            return None;
        }
        let mut constants: SmallVec<[Value; 3]> = SmallVec::new();
        let mut inputs: SmallVec<[Option<Source>; 3]> = SmallVec::new();
        for id in &node.inputs {
            inputs.push(id.map(|_| Source::Constant(constants.len() as u32)));
            if let Some(id) = id {
                constants.push(entries.get(id.at())?.fact.value()?.clone());
            }
        }
        let sources = Sources { feeds: Feeds::Own(&[]), defaults: &[], constants: &constants, slots: &mut [] };
        let (inputs, schema, outputs, wanted) = (&*inputs, &*resolved.schema, node.outputs.len(), u64::MAX);
        let mut call = Call { inputs, sources, schema, outputs, wanted, context: &self.context };
        let values = operator.run(&mut call).ok()?;
        let fits = |(value, id): (Option<&Value>, &Option<Id>)| {
            let known = id.and_then(|id| entries.get(id.at())?.fact.value_type());
            value.map_or(id.is_none(), |value| known.is_none_or(|known| value.is_of(known)))
        };
        if values.len() != outputs || !values.iter().zip(&node.outputs).all(fits) {
            return None;
        }
        let mut bytes = 0;
        for value in values.iter().flatten() {
            let _ = value.for_each_tensor(&mut |tensor| {
                bytes += tensor.held() as u64 + 256;
                Ok(())
            });
        }
        self.budget.take(bytes).ok()?;
        Some(values)
    }
}

impl Drop for Fold<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.scratch);
    }
}
