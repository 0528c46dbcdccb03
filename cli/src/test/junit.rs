//! Results as a JUnit report, which build servers show.

use super::record::{Record, Verdict};
use super::tally::Tally;
use crate::failure::{Failure, RUN};
use crate::{output, print};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::path::Path;
use std::time::Duration;

/// Writes the report whole or not at all. Cases that can't run are skipped ones; errors if `strict`.
pub(super) fn write(path: &Path, tally: &Tally, strict: bool) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(RUN, format!("{}: {why}", print::path(&path.to_string_lossy())));
    let cases: Vec<TestCase> = tally.records.iter().map(|record| case(record, strict)).collect();
    let time: Duration = tally.records.iter().map(|record| record.time).sum();
    let (mut suite, mut report) = (TestSuite::new("onnxref test"), Report::new("onnxref test"));
    suite.set_time(time).add_test_cases(cases);
    report.set_time(time).add_test_suite(suite);
    let text = report.to_string().map_err(|e| failed(e.to_string()))?;
    output::save(&[(path, text.into_bytes())])
}

fn case(record: &Record, strict: bool) -> TestCase {
    let mut status = match record.verdict {
        Verdict::Passed => TestCaseStatus::success(),
        Verdict::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Refused | Verdict::Unsupported if strict => TestCaseStatus::non_success(NonSuccessKind::Error),
        Verdict::Refused | Verdict::Unsupported | Verdict::Xfail => TestCaseStatus::skipped(),
    };
    if record.verdict != Verdict::Passed {
        status.set_message(record.reason()).set_type(record.verdict.name());
    }
    let path = record.name.replace('\\', "/");
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let mut case = TestCase::new(name, status);
    case.set_classname(folder).set_time(record.time);
    if record.verdict == Verdict::Passed {
        case.add_property(("exact", if record.exact { "true" } else { "false" }));
    }
    if let Some(ulps) = record.ulps {
        case.add_property(("ulps", ulps.to_string().as_str()));
    }
    case
}
