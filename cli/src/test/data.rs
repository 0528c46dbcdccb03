//! Results as JSON.

use super::operators::{self, Count};
use super::record::{Record, Verdict};
use super::tally::Tally;
use onnxref_view::difference::Differs;
use serde::Serialize;
use std::time::Duration;

/// All results; the cases are those that are listed.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    passed: usize,
    exact: usize,
    failed: usize,
    #[serde(skip_serializing_if = "is_zero")]
    xfail: usize,
    refused: usize,
    unsupported: usize,
    cases: Vec<Entry<'a>>,
    reasons: Vec<Reason<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    operators: Vec<Count<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stale: &'a [String],
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct Reason<'a> {
    reason: &'a str,
    cases: usize,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<&'a str>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ulps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    needs: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    data_set: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Differs<'a>>,
    seconds: f64,
}

impl<'a> Document<'a> {
    pub(super) fn new(tally: &'a Tally) -> Document<'a> {
        let listed = |record: &&Record| tally.list.is_none_or(|list| list == record.verdict);
        Document {
            passed: tally.count(Verdict::Passed),
            exact: tally.exact(),
            failed: tally.count(Verdict::Failed),
            xfail: tally.count(Verdict::Xfail),
            refused: tally.count(Verdict::Refused),
            unsupported: tally.count(Verdict::Unsupported),
            cases: tally.records.iter().filter(listed).map(Entry::new).collect(),
            reasons: tally.reasons().into_iter().map(|(reason, cases)| Reason { reason, cases }).collect(),
            operators: operators::counts(&tally.records),
            stale: &tally.stale,
        }
    }
}

impl<'a> Entry<'a> {
    fn new(record: &'a Record) -> Entry<'a> {
        let passed = record.verdict == Verdict::Passed;
        Entry {
            name: &record.name,
            operator: record.operator.as_deref(),
            outcome: record.verdict.name(),
            exact: passed.then_some(record.exact),
            ulps: record.ulps,
            expected: record.expected.as_deref(),
            reason: (!passed).then(|| record.reasons.join("; ")),
            needs: &record.needs,
            data_set: record.data_set.as_deref(),
            output: record.output.as_deref(),
            difference: record.difference.as_deref().map(Differs::new),
            seconds: seconds(record.time),
        }
    }
}

/// With six digits after the point.
fn seconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e6
}
