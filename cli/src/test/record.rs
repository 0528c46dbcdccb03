//! The result of a case, as the program reports it.

use crate::failure::flag;
use crate::print;
use crate::report::reasons;
use clap::ValueEnum;
use onnxref::Kind;
use onnxref::conformance::{self, Difference, Outcome};
use onnxref_view::difference::ulps;
use std::num::NonZeroU64;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Verdict {
    Passed,
    Failed,
    Refused,
    Unsupported,
    /// It fails, and --xfail says so
    Xfail,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Refused => "refused",
            Verdict::Unsupported => "unsupported",
            Verdict::Xfail => "xfail",
        }
    }
}

pub(super) struct Record {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    /// The operator with its version, if it was asked for.
    pub(super) operator: Option<String>,
    /// All outputs are equal bit by bit.
    pub(super) exact: bool,
    /// The greatest distance of an element, in units in the last place.
    pub(super) ulps: Option<u64>,
    /// Why the case did not pass, each once.
    pub(super) reasons: Vec<String>,
    /// Why it is expected to fail.
    pub(super) expected: Option<String>,
    /// The operators that are not implemented.
    pub(super) needs: Vec<String>,
    pub(super) data_set: Option<String>,
    pub(super) output: Option<String>,
    pub(super) difference: Option<Box<Difference>>,
    pub(super) time: Duration,
}

impl Record {
    pub(super) fn new(name: &str, outcome: Outcome, time: Duration) -> Record {
        let record = |verdict| Record {
            name: name.to_string(),
            verdict,
            operator: None,
            exact: false,
            ulps: None,
            reasons: Vec::new(),
            expected: None,
            needs: Vec::new(),
            data_set: None,
            output: None,
            difference: None,
            time,
        };
        match outcome {
            Outcome::Passed { exact, ulps, .. } => Record { exact, ulps: Some(ulps), ..record(Verdict::Passed) },
            Outcome::Refused(error) => Record { reasons: reasons(&error), ..record(Verdict::Refused) },
            Outcome::Unsupported(error) => Record {
                reasons: reasons(&error),
                needs: error.needs().map_or(Vec::new(), |needs| needs.missing.iter().map(|m| m.to_string()).collect()),
                ..record(Verdict::Unsupported)
            },
            Outcome::Failed(why) => Record {
                reasons: vec![text(&why)],
                ulps: why.difference.as_ref().and_then(|difference| difference.greatest_ulps).map(NonZeroU64::get),
                data_set: why.data_set,
                output: why.output,
                difference: why.difference,
                ..record(Verdict::Failed)
            },
            other => Record { reasons: vec![format!("{other:?}")], ..record(Verdict::Failed) },
        }
    }

    /// Why the case did not pass.
    pub(super) fn reason(&self) -> String {
        let expected = self.expected.as_ref().map_or(String::new(), |why| format!("{}: ", print::path(why)));
        expected + &self.reasons.join("; ")
    }
}

fn text(why: &conformance::Failure) -> String {
    let flag = match &why.error {
        Some(error) if error.kind() == Kind::Cancelled => ": it took longer than --timeout allows".to_string(),
        Some(error) => flag(error),
        None => String::new(),
    };
    let steps = why.difference.as_ref().map_or(String::new(), |difference| ulps(difference));
    format!("{why}{steps}{flag}")
}
