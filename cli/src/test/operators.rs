//! Results by operator.

use super::record::{Record, Verdict};
use crate::print;
use onnxref::LoadOptions;
use onnxref::conformance::Case;
use onnxref_view::grouped;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// What stands for the operator of a graph with several.
const SEVERAL: &str = "(several)";

/// The operator with its version, such as `Gather-13`, if the graph's nodes have one operator beside Constant.
pub(super) fn operator(case: &Case, options: &LoadOptions) -> String {
    let Ok(found) = case.inspect(options) else { return "(unreadable)".to_string() };
    let nodes = found.graph.nodes.iter().filter(|node| node.operator != "Constant");
    let label = |(domain, operator, version): (&String, &String, Option<i64>)| {
        let domain = if domain.is_empty() { String::new() } else { format!("{domain}.") };
        let version = version.map_or(String::new(), |version| format!("-{version}"));
        format!("{domain}{operator}{version}")
    };
    let mut operators: BTreeSet<_> = nodes.map(|node| (&node.domain, &node.operator, node.version)).collect();
    if operators.is_empty() {
        operators = found.graph.nodes.iter().map(|node| (&node.domain, &node.operator, node.version)).collect();
    }
    match operators.len() {
        0 | 1 => operators.pop_first().map_or("(none)".to_string(), label),
        _ => SEVERAL.to_string(),
    }
}

/// The cases of an operator.
#[derive(Debug, Default, Serialize)]
pub(super) struct Count<'a> {
    operator: &'a str,
    passed: usize,
    exact: usize,
    failed: usize,
    xfail: usize,
    refused: usize,
    unsupported: usize,
    /// The greatest distance in a case that passed.
    ulps: u64,
}

/// The cases of each operator, by name.
pub(super) fn counts(records: &[Record]) -> Vec<Count<'_>> {
    let mut counts: BTreeMap<&str, Count<'_>> = BTreeMap::new();
    for record in records {
        let Some(operator) = record.operator.as_deref() else { continue };
        let count = counts.entry(operator).or_insert_with(|| Count { operator, ..Count::default() });
        let cases = match record.verdict {
            Verdict::Passed => &mut count.passed,
            Verdict::Failed => &mut count.failed,
            Verdict::Xfail => &mut count.xfail,
            Verdict::Refused => &mut count.refused,
            Verdict::Unsupported => &mut count.unsupported,
        };
        *cases += 1;
        count.exact += usize::from(record.exact);
        if record.verdict == Verdict::Passed {
            count.ulps = count.ulps.max(record.ulps.unwrap_or(0));
        }
    }
    counts.into_values().collect()
}

/// A line for each operator.
pub(super) fn print(counts: &[Count<'_>]) -> io::Result<()> {
    let header = ["operator", "passed", "bit by bit", "failed", "xfail", "unsupported", "ulp"];
    let rows = counts.iter().map(|count| {
        // Of the program's own runs: what is refused doesn't run.
        let unsupported = count.unsupported + count.refused;
        let cases = [count.passed, count.exact, count.failed, count.xfail, unsupported].map(|cases| cases.to_string());
        let [passed, exact, failed, xfail, unsupported] = cases;
        [print::path(count.operator), passed, exact, failed, xfail, unsupported, grouped(count.ulps)]
    });
    print::table(header, &[1, 2, 3, 4, 5, 6], rows)
}
