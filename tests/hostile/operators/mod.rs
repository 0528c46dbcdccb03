//! Every operator, from two tables: what a call of it takes, and how it is refused.
//!
//! A call takes elements (of its outputs and of what it makes on the way), work and memory. Each is counted in full: the
//! call runs with limits of just that, and is refused with less.

mod bodies;
mod sweep;
mod table;

use crate::case::{At, BESIDE, Case, STACK, check, on_thread, report};
use crate::memory::peak_of;
use onnxref::{Error, Inputs, Kind, Limits, Model};
use std::collections::BTreeSet;
use table::{Call, calls};

const COSTS: &str = include_str!("costs.txt");
const REFUSALS: &str = include_str!("refusals.txt");

impl Call {
    /// A run within limits, and the memory that it took at the most.
    fn run(&self, limits: &Limits) -> (Result<(), Error>, u64) {
        let options = Model::options().threads(1).limits(limits.clone());
        let model = match options.from_bytes(self.model()) {
            Ok(model) => model,
            Err(error) => return (Err(error), 0),
        };
        let feeds = self.feeds();
        let inputs: Inputs<'_> = feeds.iter().map(|(name, value)| (*name, value.clone())).collect();
        let (result, peak) = peak_of(|| model.run(inputs));
        (result.map(drop), peak.bytes)
    }

    /// The least value of a limit with which the call runs.
    fn least(&self, limit: &str) -> u64 {
        let (mut low, mut high) = (0, 1 << 50);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.run(&self.limited(limit, middle)).0.is_ok() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    fn limited(&self, limit: &str, value: u64) -> Limits {
        let mut limits = self.limits.clone();
        limits.set(limit, value).unwrap();
        limits
    }

    /// How the cost of the call differs from the table's.
    fn faults(&self) -> Vec<String> {
        let (result, peak) = self.run(&self.limits);
        if let Err(error) = result {
            return vec![format!("is refused: {error}")];
        }
        let words: Vec<&str> = self.outcome.split_whitespace().collect();
        let &["elements", elements, "work", work] = words.as_slice() else {
            return vec![format!("has no cost: {}", self.outcome)];
        };
        let mut faults = Vec::new();
        for (limit, amount) in [("run_elements", elements), ("run_work", work)] {
            let amount: u64 = amount.parse().unwrap();
            let runs = self.run(&self.limited(limit, amount)).0.is_ok();
            let less = amount.checked_sub(1).map(|less| self.run(&self.limited(limit, less)).0);
            let refused = less.is_none_or(|less| less.is_err_and(|error| error.place().limit == Some(limit)));
            if !runs || !refused {
                faults.push(format!("takes {} of {limit}, and the table says {amount}", self.least(limit)));
            }
        }
        // All memory but what every run takes beside its tensors is in the ledger.
        if let Some(less) = peak.checked_sub(BESIDE + 1) {
            let (result, _) = self.run(&self.limited("run_bytes", less));
            if !result.is_err_and(|error| error.place().limit == Some("run_bytes")) {
                // Free memory that is kept for later is given back where there is a limit.
                let least = self.least("run_bytes");
                let (_, peak) = self.run(&self.limited("run_bytes", least));
                if peak > least + BESIDE {
                    faults.push(format!("takes {peak} bytes, and needs run_bytes = {least}"));
                }
            }
        }
        faults
    }
}

#[test]
fn each_takes_what_is_counted() {
    let mut wrong = Vec::new();
    for call in calls(COSTS) {
        let (title, own) = (call.title(), call.clone());
        match on_thread(&title, STACK, move || own.faults()) {
            Ok(faults) => wrong.extend(faults.into_iter().map(|fault| format!("{title} {fault}"))),
            Err(fate) => wrong.push(format!("{title} {fate}")),
        }
    }
    assert!(wrong.is_empty(), "{} faults of tests/hostile/operators/costs.txt:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_is_refused() {
    let case = |call: Call| {
        let (at_load, outcome) =
            call.outcome.strip_prefix("load ").map_or((false, &*call.outcome), |rest| (true, rest));
        let (kind, text) = outcome.split_once(": ").unwrap_or_else(|| panic!("{}", call.title()));
        let limit = Limits::NAMES.iter().find(|name| **name == kind);
        let kind = match kind {
            _ if limit.is_some() => Kind::Limit,
            "Model" => Kind::Model,
            "Input" => Kind::Input,
            other => panic!("{}: {other} is no kind and no limit", call.title()),
        };
        // In a body the place is a node of it.
        let own = if call.attributes.iter().all(|attribute| attribute.g.is_none()) {
            vec![At::Operator(call.name.clone()), At::Version(call.version)]
        } else {
            Vec::new()
        };
        let at = own.into_iter().chain(limit.map(|name| At::Limit(name)));
        let limits = call.limits.clone();
        let case = Case::new("operator", call.title(), call.model(), kind, text).at(at);
        let case = case.limits(|own| *own = limits);
        if at_load { case } else { case.fed(call.feeds()) }
    };
    check(calls(REFUSALS).into_iter().map(case));
    report("operator");
}

/// A new operator belongs into the table of costs; none is there that doesn't run.
#[test]
fn all_are_in_the_table() {
    let label =
        |domain: &str, name: &str| if domain.is_empty() { name.to_string() } else { format!("{domain}.{name}") };
    let listed: BTreeSet<String> = calls(COSTS).iter().map(|call| label(&call.domain, &call.name)).collect();
    let all: BTreeSet<String> = onnxref::supported().iter().map(|own| label(own.domain, own.name)).collect();
    let missing: Vec<_> = all.difference(&listed).collect();
    assert!(missing.is_empty(), "tests/hostile/operators/costs.txt says nothing of {missing:?}");
}
