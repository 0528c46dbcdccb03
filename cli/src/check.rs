//! `onnxref check`: whether a model is what the standard says.

use crate::failure::{FAILED, Failure, LOAD, explain};
use crate::options::{Loading, shown};
use crate::print::{self, Stdout};
use crate::{Global, json, report};
use clap::Args;
use onnxref::inspect::Inspection;
use onnxref::{Error, Kind, Missing};
use onnxref_view::counted;
use onnxref_view::error::{Cause, Fault};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Check a model against the standard, also operators that can't run here
#[derive(Debug, Args)]
#[command(after_help = "\
Checked: the file's structure; opsets; each operator, its version, the number of its inputs and
outputs, its attributes; types, as declared and as they follow through the graph; shapes, where
the operators that run here say what follows. Operators of other domains can't be checked.

Example:
  onnxref check model.onnx

Exit status:
  0  no findings
  1  findings
  2  wrong usage
  3  a file can't be read, or exceeds a limit; the others are checked nevertheless")]
pub(crate) struct Arguments {
    /// Models; - is standard input
    #[arg(required = true)]
    model: Vec<PathBuf>,

    #[command(flatten)]
    loading: Loading,
}

pub(crate) fn check(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let mut code = 0;
    for path in &arguments.model {
        let name = shown(path);
        let checked = match Checked::new(path, &arguments.loading) {
            // The others can still be checked.
            Err(failure) if failure.code == LOAD && arguments.model.len() > 1 => {
                unread(&name, &failure, global)?;
                code = LOAD;
                continue;
            }
            checked => checked?,
        };
        if global.json {
            json::line(&checked.document(&name))?;
        } else {
            checked.print(&name, global.verbose).map_err(Failure::stdout)?;
        }
        let (found, unread) = (checked.findings(), checked.unread());
        if !unread.is_empty() {
            print::error(&report::unread(&name, &unread).text());
        }
        code = code.max(match (found.is_empty(), unread.is_empty()) {
            (_, false) => LOAD,
            (false, true) => FAILED,
            (true, true) => 0,
        });
    }
    Ok(code)
}

/// Says why a file can't be read.
fn unread(model: &str, failure: &Failure, global: &Global) -> Result<(), Failure> {
    print::error(&failure.text());
    if global.json { json::line(&Unread { model, error: json::fault(failure) }) } else { Ok(()) }
}

/// What was found in a model.
struct Checked {
    /// Why it is not a model at all.
    fatal: Option<Error>,
    found: Option<Inspection>,
}

impl Checked {
    fn new(path: &Path, loading: &Loading) -> Result<Checked, Failure> {
        let found = match loading.inspected(path, |options| options)? {
            Ok(found) => found,
            Err(error) if error.kind() == Kind::Model => {
                return Ok(Checked { fatal: Some(error), found: None });
            }
            Err(error) => return Err(report::load(&shown(path), error)),
        };
        Ok(Checked { fatal: None, found: Some(found) })
    }

    /// The faults of what was found.
    fn error(&self) -> Option<&Error> {
        self.found.as_ref()?.error.as_ref()
    }

    /// Other files that can't be read, or what exceeds a limit: what follows from that isn't known.
    fn unread(&self) -> Vec<&Error> {
        let known = |cause: &&Error| matches!(cause.kind(), Kind::Model | Kind::Unsupported);
        self.error().into_iter().flat_map(Error::causes).filter(|cause| !known(cause)).collect()
    }

    /// What departs from the standard.
    fn findings(&self) -> Vec<&Error> {
        let error = self.error().or(self.fatal.as_ref());
        let causes = error.into_iter().flat_map(Error::causes).filter(|cause| cause.kind() == Kind::Model);
        causes.chain(self.found.iter().flat_map(|found| &found.mismatches)).collect()
    }

    /// The number of findings; more than are listed if there are very many.
    fn count(&self) -> usize {
        let error = self.error().or(self.fatal.as_ref());
        let beyond = error.map_or(0, |error| error.fault_count().saturating_sub(error.causes().len()));
        let findings = self.findings().len();
        if findings == 0 { 0 } else { findings + beyond }
    }

    /// Operators that are not in the standard, which can't be checked.
    fn unchecked(&self) -> impl Iterator<Item = &Missing> {
        let needs = self.error().and_then(Error::needs);
        needs.into_iter().flat_map(|needs| &needs.missing).filter(|missing| missing.version.is_none())
    }

    fn print(&self, name: &str, all: bool) -> io::Result<()> {
        let (mut out, name) = (Stdout, print::path(name));
        let nodes = self.found.as_ref().map_or(0, |found| found.graph.nodes.len());
        let (findings, count, unread) = (self.findings(), self.count(), self.unread().len());
        match (count, unread) {
            (0, 0) => writeln!(out, "{name}: no findings in {}", counted(nodes, "node"))?,
            // Not a word of findings: what can't be read may hold some.
            (0, unread) => writeln!(out, "{name}: not fully checked: {} can't be read", counted(unread, "part"))?,
            (count, _) => writeln!(out, "{name}: {}", counted(count, "finding"))?,
        }
        let most = if all { usize::MAX } else { report::MAX_FAULTS };
        report::list(&findings, count, most).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        for missing in self.unchecked() {
            print::note(&format!("not checked: {missing}: {} ({})", missing.reason, counted(missing.nodes, "node")));
        }
        self.found.iter().flat_map(|found| &found.notes).for_each(|text| print::note(text));
        Ok(())
    }

    fn document<'a>(&'a self, model: &'a str) -> Document<'a> {
        let unchecked = |missing: &'a Missing| Unchecked {
            domain: &missing.domain,
            operator: &missing.operator,
            nodes: missing.nodes,
            reason: &missing.reason,
        };
        let (findings, unread) = (self.findings(), self.unread());
        Document {
            model,
            valid: findings.is_empty() && unread.is_empty(),
            count: self.count(),
            findings: findings.into_iter().map(|finding| Cause::new(finding, explain(finding))).collect(),
            unchecked: self.unchecked().map(unchecked).collect(),
            notes: self.found.as_ref().map(|found| found.notes.as_slice()).unwrap_or_default(),
            unread: unread.into_iter().map(|error| Cause::new(error, explain(error))).collect(),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    model: &'a str,
    valid: bool,
    count: usize,
    findings: Vec<Cause<'a>>,
    unchecked: Vec<Unchecked<'a>>,
    notes: &'a [String],
    /// Other files that can't be read, or what exceeds a limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unread: Vec<Cause<'a>>,
}

/// A file that can't be read.
#[derive(Serialize)]
struct Unread<'a> {
    model: &'a str,
    error: Fault<'a>,
}

#[derive(Serialize)]
struct Unchecked<'a> {
    domain: &'a str,
    operator: &'a str,
    nodes: usize,
    reason: &'a str,
}
