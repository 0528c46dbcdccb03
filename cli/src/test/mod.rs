//! `onnxref test`: official test cases.

mod data;
mod junit;
pub(crate) mod order;
mod record;
pub(crate) mod select;
pub(crate) mod source;
mod tally;

use crate::expect::Slack;
use crate::failure::Failure;
use crate::options::Running;
use crate::print;
use crate::progress::Progress;
use crate::{Global, json, output};
use clap::Args;
use onnxref::LoadOptions;
use onnxref::conformance::Case;
use record::{Record, Verdict};
use select::Selection;
use source::Source;
use std::path::PathBuf;
use std::time::Instant;
use tally::Tally;

/// Run official test cases and compare outputs as the official runner does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onnxref test onnx-test-data --min-cases 28
  onnxref test onnx-*.whl -k /simple/ -k /light/ --containing Gather,Loop --junit report.xml

A float may differ from the expected one by at most 1e-7 + 1e-3 times its size (bfloat16: 2^-6
times). Integers, booleans, strings and floats of at most 8 bits must be equal. The totals say how
many cases are equal bit by bit. --timeout is for each case.

Exit status:
  0  nothing failed, and something passed
  1  a case failed
  2  wrong usage
  3  a folder or archive can't be read, or --strict and cases are unsupported or refused
  4  output can't be written
  5  nothing was tested, or fewer cases than --min-cases")]
pub(crate) struct Arguments {
    /// Folders, .zip, .whl, .tar, .tar.gz and .tar.xz files of cases; - is standard input
    #[arg(required = true)]
    path: Vec<PathBuf>,

    #[command(flatten)]
    selection: Selection,

    /// Run N cases at the same time [default: all processors]
    ///
    /// Each runs on one thread, or on up to --threads. The results are the same, bit by bit.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// Fail if fewer than N cases ran
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_cases: usize,

    /// Fail if a case is unsupported or refused (departs from the standard)
    #[arg(long)]
    strict: bool,

    /// Print only the cases of this outcome, and why
    #[arg(long, value_name = "OUTCOME")]
    list: Option<Verdict>,

    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    #[command(flatten)]
    slack: Slack,

    #[command(flatten)]
    running: Running,
}

/// Runs the tests and returns the exit code.
pub(crate) fn test(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let options = arguments.running.options()?;
    let sources = source::sources(&arguments.path)?;
    if let Some(path) = &arguments.junit {
        if path.as_os_str() == output::STDOUT {
            let why = "--junit -: a file is needed: standard output gets the results";
            return Err(Failure::usage(why));
        }
        let unwritable = |e| Failure::usage(format!("--junit {}: {e}", print::path(&path.to_string_lossy())));
        output::check_writable(path).map_err(unwritable)?;
    }
    let mut tally = Tally::new(arguments.list, global);
    run(arguments, &sources, &options, &mut tally)?;
    if let Some(path) = &arguments.junit {
        junit::write(path, &tally, arguments.strict)?;
    }
    if global.json {
        json::line(&data::Document::new(&tally))?;
    } else {
        tally.print().map_err(Failure::stdout)?;
    }
    Ok(tally.exit_code(arguments.strict, arguments.min_cases))
}

/// Runs the cases of one source after the other, so that one archive at a time is in memory.
fn run(arguments: &Arguments, sources: &[Source], options: &LoadOptions, tally: &mut Tally) -> Result<(), Failure> {
    let (progress, selection) = (Progress::new(), &arguments.selection);
    for source in sources {
        progress.message(&format!("reading {source}"));
        let mut cases = source.cases()?;
        tally.found += cases.len();
        cases.retain(|case| selection.has_name(&case.name));
        cases.iter_mut().for_each(|case| case.tolerance = arguments.slack.tolerance(case.tolerance));
        progress.expect(cases.len());
        progress.message(&source.to_string());
        let jobs = arguments.jobs().min(cases.len());
        let options = arguments.threads(options, jobs);
        let run = |case: &Case| {
            let started = Instant::now();
            let selected = selection.has_operators(case, &options);
            selected.then(|| {
                let outcome = case.run_until(&options, &arguments.running.cancel());
                Record::new(&case.name, outcome, started.elapsed())
            })
        };
        let count = |record: Option<Record>| {
            progress.step();
            record.map_or(Ok(()), |record| progress.aside(|| tally.add(record)))
        };
        order::in_order(&cases, jobs, run, count).map_err(Failure::stdout)?;
    }
    Ok(())
}

impl Arguments {
    /// Maximum number of cases at the same time.
    fn jobs(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, |count| count.get());
        self.jobs.map_or_else(processors, usize::from)
    }

    /// Cases that run at the same time take one thread each. The results are the same, bit by bit.
    fn threads(&self, options: &LoadOptions, jobs: usize) -> LoadOptions {
        let several = jobs > 1 && self.running.threads.is_none();
        if several { options.clone().threads(1) } else { options.clone() }
    }
}
