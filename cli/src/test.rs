//! `onnxref test`: official test cases.

use crate::Global;
use crate::archive;
use crate::failure::{FAILED, Failure, LOAD, NOTHING, RUN, USAGE};
use crate::options::Loading;
use crate::print::{self, Stdout};
use crate::report::reasons;
use clap::Args;
use onnxref::conformance::{Case, Outcome};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Maximum number of reasons listed why cases can't run.
const MAX_REASONS: usize = 10;

/// Run official test cases and compare outputs as the official runner does.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onnxref test onnx-test-data --min-cases 28

A float may differ from the expected one by at most 1e-7 + 1e-3 times its size (bfloat16: 2^-6 times). Integers,
booleans, strings and floats of at most 8 bits must be equal. The totals say how many cases are equal bit by bit.
A model is refused if a node departs from the standard; every such case is listed.

Exit status:
  0  nothing failed, and something passed
  1  a case failed
  2  wrong usage
  3  a folder or archive can't be read, or --strict is given and cases are unsupported or refused
  4  standard output can't be written
  5  nothing was tested, or fewer cases than --min-cases asks for")]
pub(crate) struct Arguments {
    /// Folders with cases at any depth, or archives of such folders: .tar.xz, .tar.gz, .tar
    #[arg(required = true)]
    path: Vec<PathBuf>,

    /// Fail if fewer than N cases ran
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_cases: usize,

    /// Fail if a case is unsupported or refused
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    loading: Loading,
}

/// Runs the tests and returns the exit code.
pub(crate) fn test(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let (mut tally, options) = (Tally::default(), arguments.loading.options()?);
    for path in &arguments.path {
        for case in cases(path)? {
            tally.count(&case, case.run_with(&options), global.verbose).map_err(lost)?;
        }
    }
    tally.print_reasons(global.verbose).map_err(lost)?;
    let code = tally.verdict(arguments);
    tally.print_totals().map_err(lost)?;
    Ok(code)
}

fn lost(error: io::Error) -> Failure {
    Failure::new(RUN, format!("standard output: {error}"))
}

/// The cases of a folder and of the archives below it, or of an archive, each named by its whole path.
fn cases(path: &Path) -> Result<Vec<Case>, Failure> {
    let shown = print::path(&path.to_string_lossy());
    let kind = std::fs::metadata(path).map_err(|e| Failure::new(USAGE, format!("{shown}: {e}")))?;
    if !kind.is_dir() && !archive::is_archive(path) {
        return Err(Failure::usage(format!("{shown} is neither a folder nor a .tar, .tar.gz or .tar.xz file")));
    }
    let (folder, archives) = if kind.is_dir() {
        let cases = Case::find(path).map_err(|e| Failure::new(LOAD, format!("{e:#}")))?;
        (cases, archives(path).map_err(|e| Failure::new(LOAD, format!("{shown}: {e}")))?)
    } else {
        (Vec::new(), vec![path.to_path_buf()])
    };
    let mut all = named(path, folder);
    for archive in archives {
        let unreadable = |e| Failure::new(LOAD, format!("{}: {e}", print::path(&archive.to_string_lossy())));
        all.extend(named(&archive, archive::cases(&archive).map_err(unreadable)?));
    }
    Ok(all)
}

fn named(root: &Path, mut cases: Vec<Case>) -> Vec<Case> {
    // A case that is the folder itself has the folder's name.
    let itself = root.join("model.onnx").is_file();
    for case in &mut cases {
        let itself = itself && root.file_name().is_some_and(|name| name.to_string_lossy() == case.name);
        let path = if itself { root.to_path_buf() } else { root.join(&case.name) };
        case.name = path.to_string_lossy().into_owned();
    }
    cases
}

/// The archives below a folder, by name. Links are not followed.
fn archives(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() && archive::is_archive(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[derive(Default)]
struct Tally {
    passed: usize,
    /// Passed cases that are equal bit by bit.
    exact: usize,
    failed: usize,
    refused: usize,
    unsupported: usize,
    /// The reasons why cases are unsupported, with the number of cases.
    reasons: BTreeMap<String, usize>,
}

impl Tally {
    fn count(&mut self, case: &Case, outcome: Outcome, verbose: bool) -> io::Result<()> {
        let name = print::path(&case.name);
        match outcome {
            Outcome::Passed { exact } => {
                self.passed += 1;
                self.exact += usize::from(exact);
            }
            Outcome::Refused(error) => {
                self.refused += 1;
                writeln!(Stdout, "refused {name}: {}", reasons(&error).join("; "))?;
            }
            Outcome::Unsupported(error) => {
                self.unsupported += 1;
                let reasons = reasons(&error);
                if verbose {
                    writeln!(Stdout, "unsupported {name}: {}", reasons.join("; "))?;
                }
                for reason in reasons {
                    *self.reasons.entry(reason).or_default() += 1;
                }
            }
            Outcome::Failed(why) => {
                self.failed += 1;
                writeln!(Stdout, "FAILED {name}: {why}")?;
            }
            other => {
                self.failed += 1;
                writeln!(Stdout, "FAILED {name}: {other:?}")?;
            }
        }
        Ok(())
    }

    fn print_reasons(&self, verbose: bool) -> io::Result<()> {
        if self.reasons.is_empty() {
            return Ok(());
        }
        let mut reasons: Vec<(&String, &usize)> = self.reasons.iter().collect();
        reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(**count), *reason));
        let shown = if verbose { reasons.len() } else { MAX_REASONS };
        writeln!(Stdout, "Why cases can't run, and how many:")?;
        for (reason, count) in reasons.iter().take(shown) {
            writeln!(Stdout, "{count:6}  {reason}")?;
        }
        if let Some(more @ 1..) = reasons.len().checked_sub(shown) {
            writeln!(Stdout, "        and {more} more: -v lists all")?;
        }
        Ok(())
    }

    /// The exit code. Explains every code but that of a failed case.
    fn verdict(&self, arguments: &Arguments) -> u8 {
        let (tested, least) = (self.passed + self.failed, arguments.min_cases);
        let (not_run, why) = match self.refused {
            0 => (self.unsupported, "unsupported"),
            refused => (self.unsupported + refused, "unsupported or refused"),
        };
        if self.failed > 0 {
            FAILED
        } else if arguments.strict && not_run > 0 {
            print::error(&format!("--strict: {} {why}", cases_text(not_run)));
            LOAD
        } else if tested == 0 {
            let found = if not_run == 0 { "no case was found" } else { &format!("every case is {why}") };
            print::error(&format!("nothing was tested: {found}"));
            NOTHING
        } else if tested < least {
            print::error(&format!("--min-cases: {} ran: {least} are needed", cases_text(tested)));
            NOTHING
        } else {
            0
        }
    }

    fn print_totals(&self) -> io::Result<()> {
        let refused = if self.refused == 0 { String::new() } else { format!("{} refused, ", self.refused) };
        let Tally { passed, exact, failed, unsupported, .. } = self;
        writeln!(Stdout, "{passed} passed ({exact} bit by bit), {failed} failed, {refused}{unsupported} unsupported")
    }
}

fn cases_text(count: usize) -> String {
    if count == 1 { "1 case".to_string() } else { format!("{count} cases") }
}
