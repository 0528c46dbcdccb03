//! Compares with earlier figures.

use super::report::{Comparison, OperatorFigures, Pair, Report, Runs};
use crate::failure::Failure;
use crate::print;
use onnxref_view::counted;
use serde::Deserialize;
use std::path::Path;

/// What is read of a file of `--save`.
#[derive(Deserialize)]
pub(super) struct Earlier {
    model: String,
    onnxref: String,
    threads: usize,
    runs: Runs,
    #[serde(default)]
    operators: Vec<EarlierOperator>,
}

#[derive(Deserialize)]
struct EarlierOperator {
    operator: String,
    domain: String,
    own_seconds: f64,
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<(String, Earlier), Failure> {
    let shown = path.to_string_lossy().into_owned();
    let wrong = |why: String| Failure::usage(format!("--against {}: {why}", print::path(&shown)));
    let text = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
    let earlier = serde_json::from_slice(&text);
    let earlier = earlier
        .map_err(|e| wrong(format!("expected a file of onnxref bench --save: {}", print::text(&e.to_string()))))?;
    Ok((shown, earlier))
}

impl Comparison {
    pub(super) fn new(file: String, earlier: &Earlier, report: &Report) -> Comparison {
        let runs = earlier.runs.named().into_iter().zip(report.runs.named());
        let runs = runs.map(|((name, before), (_, after))| Pair::new(name.into(), Some(before), Some(after)));
        let both = !earlier.operators.is_empty() && !report.operators.is_empty();
        let operators = if both { operators(&earlier.operators, &report.operators) } else { Vec::new() };
        Comparison { file, runs: runs.collect(), operators }
    }

    /// The ratio of the p50s.
    pub(super) fn p50(&self) -> Option<f64> {
        self.runs.iter().find(|pair| pair.name == "p50")?.ratio
    }
}

impl Earlier {
    /// Refuses to judge by the figures of another model or number of threads.
    pub(super) fn check(&self, model: &str, threads: usize) -> Result<(), Failure> {
        let (before, now) = (print::path(&self.model), print::path(model));
        let real = |path: &str| std::fs::canonicalize(path).ok();
        let same = self.model == model || real(model).is_some_and(|path| real(&self.model) == Some(path));
        if !same {
            let why = format!("the figures of --against are of another model: {before} before, {now} now");
            return Err(Failure::usage(format!("--max-ratio: {why}")));
        }
        if self.threads != threads {
            let before = counted(self.threads, "thread");
            let why = format!("the figures of --against are of {before}, but this run has {threads}");
            return Err(Failure::usage(format!("--max-ratio: {why}: --threads {} is the same", self.threads)));
        }
        Ok(())
    }

    /// What makes the figures hard to compare, a line each.
    pub(super) fn differences(&self, report: &Report) -> Vec<String> {
        let rows = [
            ("the model", self.model.clone(), report.model.clone()),
            ("the number of threads", self.threads.to_string(), report.threads.to_string()),
            ("the version of onnxref", self.onnxref.clone(), report.onnxref.to_string()),
        ];
        let different = rows.into_iter().filter(|(_, before, after)| before != after);
        let line = |what: &str, before: &str, after: &str| {
            format!("{what} differs: {} before, {} now", print::path(before), print::path(after))
        };
        different.map(|(what, before, after)| line(what, &before, &after)).collect()
    }
}

impl Pair {
    fn new(name: String, before: Option<f64>, after: Option<f64>) -> Pair {
        let ratio = before.filter(|before| *before > 0.0).zip(after).map(|(before, after)| after / before);
        Pair { name, before, after, ratio }
    }
}

/// Today's operators, then those that are gone.
fn operators(before: &[EarlierOperator], after: &[OperatorFigures]) -> Vec<Pair> {
    let known = |old: &EarlierOperator, new: &OperatorFigures| old.operator == new.operator && old.domain == new.domain;
    let pair = |new: &OperatorFigures| {
        let old = before.iter().find(|old| known(old, new));
        Pair::new(label(&new.domain, &new.operator), old.map(|old| old.own_seconds), Some(new.figures.own_seconds))
    };
    let gone = before.iter().filter(|old| !after.iter().any(|new| known(old, new)));
    let gone = gone.map(|old| Pair::new(label(&old.domain, &old.operator), Some(old.own_seconds), None));
    after.iter().map(pair).chain(gone).collect()
}

/// An operator with its domain, unless it is the default one.
pub(super) fn label(domain: &str, operator: &str) -> String {
    if domain.is_empty() { operator.to_string() } else { format!("{domain}.{operator}") }
}
