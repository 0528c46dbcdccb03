//! Counts results and prints them.

use super::operators;
use super::record::{Record, Verdict};
use crate::Global;
use crate::failure::{FAILED, LOAD, NOTHING};
use crate::print::{self, Stdout};
use onnxref_view::{counted, grouped};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Maximum number of reasons listed why cases can't run.
const MAX_REASONS: usize = 10;

pub(super) struct Tally {
    /// The number of cases before selection.
    pub(super) found: usize,
    pub(super) records: Vec<Record>,
    /// Only cases of this outcome are listed.
    pub(super) list: Option<Verdict>,
    /// The entries of `--xfail` that are stale.
    pub(super) stale: Vec<String>,
    json: bool,
    verbose: bool,
}

impl Tally {
    pub(super) fn new(list: Option<Verdict>, global: &Global) -> Tally {
        Tally { found: 0, records: Vec::new(), list, stale: Vec::new(), json: global.json, verbose: global.verbose }
    }

    /// Adds a result, and prints it if it is to be listed.
    pub(super) fn add(&mut self, record: Record) -> io::Result<()> {
        if !self.json {
            self.print_record(&record)?;
        }
        self.records.push(record);
        Ok(())
    }

    fn print_record(&self, record: &Record) -> io::Result<()> {
        let name = print::path(&record.name);
        let word = match (self.list, record.verdict) {
            (Some(list), verdict) if list != verdict => return Ok(()),
            (Some(_), Verdict::Passed) => return writeln!(Stdout, "{name}"),
            (Some(_), _) => return writeln!(Stdout, "{name}: {}", record.reason()),
            (None, Verdict::Failed) => "FAILED",
            (None, Verdict::Refused) => "refused",
            (None, Verdict::Unsupported) if self.verbose => "unsupported",
            (None, Verdict::Xfail) if self.verbose => "xfail",
            (None, Verdict::Passed) if self.verbose && !record.exact => {
                return writeln!(Stdout, "passed {name}: within {} ulp", grouped(record.ulps.unwrap_or(0)));
            }
            (None, _) => return Ok(()),
        };
        writeln!(Stdout, "{word} {name}: {}", record.reason())
    }

    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.records.iter().filter(|record| record.verdict == verdict).count()
    }

    /// The number of passed cases that are equal bit by bit.
    pub(super) fn exact(&self) -> usize {
        self.records.iter().filter(|record| record.exact).count()
    }

    /// The reasons why cases are unsupported, with the number of cases, the most frequent first.
    pub(super) fn reasons(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for record in self.records.iter().filter(|record| record.verdict == Verdict::Unsupported) {
            record.reasons.iter().for_each(|reason| *counts.entry(reason).or_default() += 1);
        }
        let mut reasons: Vec<(&str, usize)> = counts.into_iter().collect();
        reasons.sort_by_key(|(_, count)| Reverse(*count));
        reasons
    }

    /// Prints the reasons and the totals. Beside a list, the totals are a note.
    pub(super) fn print(&self) -> io::Result<()> {
        if self.list.is_some() {
            print::note(&self.totals());
            return Ok(());
        }
        self.print_reasons()?;
        let operators = operators::counts(&self.records);
        if !operators.is_empty() {
            operators::print(&operators)?;
        }
        writeln!(Stdout, "{}", self.totals())
    }

    fn print_reasons(&self) -> io::Result<()> {
        let reasons = self.reasons();
        if reasons.is_empty() {
            return Ok(());
        }
        let shown = if self.verbose { reasons.len() } else { MAX_REASONS };
        writeln!(Stdout, "Why cases can't run, and how many:")?;
        for (reason, count) in reasons.iter().take(shown) {
            writeln!(Stdout, "{count:6}  {reason}")?;
        }
        if let Some(more @ 1..) = reasons.len().checked_sub(shown) {
            writeln!(Stdout, "        and {more} more: -v lists all")?;
        }
        Ok(())
    }

    fn totals(&self) -> String {
        let [passed, failed, unsupported] =
            [Verdict::Passed, Verdict::Failed, Verdict::Unsupported].map(|verdict| self.count(verdict));
        let others = [Verdict::Xfail, Verdict::Refused].map(|verdict| match self.count(verdict) {
            0 => String::new(),
            count => format!("{count} {}, ", verdict.name()),
        });
        let (exact, others) = (self.exact(), others.concat());
        format!("{passed} passed ({exact} bit by bit), {failed} failed, {others}{unsupported} unsupported")
    }

    /// The exit code. Explains every code but that of a failed case.
    pub(super) fn exit_code(&self, strict: bool, least: usize) -> u8 {
        let (refused, failed) = (self.count(Verdict::Refused), self.count(Verdict::Failed));
        let tested = self.count(Verdict::Passed) + failed + self.count(Verdict::Xfail);
        let not_run = self.count(Verdict::Unsupported) + refused;
        let why = if refused == 0 { "unsupported" } else { "unsupported or refused" };
        self.stale.iter().for_each(|why| print::error(why));
        if failed > 0 || !self.stale.is_empty() {
            FAILED
        } else if strict && not_run > 0 {
            print::error(&format!("--strict: {} {why}", counted(not_run, "case")));
            LOAD
        } else if tested == 0 {
            let found = match (not_run, self.found) {
                (0, 0) => "no case was found".to_string(),
                (0, found) => format!("no case was selected of {found}"),
                _ => format!("every case is {why}"),
            };
            print::error(&format!("nothing was tested: {found}"));
            NOTHING
        } else if tested < least {
            print::error(&format!("--min-cases: {} ran: {least} are needed", counted(tested, "case")));
            NOTHING
        } else {
            0
        }
    }
}
