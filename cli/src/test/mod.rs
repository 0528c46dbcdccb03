//! `onnxref test`: test cases, on this runtime or on another engine.

mod data;
mod engine;
mod junit;
mod lines;
mod operators;
pub(crate) mod order;
pub(crate) mod process;
mod record;
pub(crate) mod select;
pub(crate) mod source;
mod tally;
mod xfail;

use crate::expect::Slack;
use crate::failure::Failure;
use crate::options::Running;
use crate::print;
use crate::progress::Progress;
use crate::{Global, json, output};
use clap::Args;
use engine::Engine;
use onnxref::LoadOptions;
use onnxref::conformance::Case;
use record::{Record, Verdict};
use select::Selection;
use source::CaseSource;
use std::path::PathBuf;
use std::time::Instant;
use tally::Tally;
use xfail::Xfail;

/// Examples and the rule, which both helps have.
macro_rules! examples {
    () => {
        "\
Examples:
  onnxref test onnx-test-data --min-cases 28
  onnxref test onnx-*.whl -k /simple/ --containing Gather,Loop --junit report.xml
  onnxref test onnx-test-data --engine 'my-engine {model} {inputs} {outputs}' --xfail xfail.txt

A float may differ from the expected one by at most 1e-7 + 1e-3 times its size (bfloat16: 2^-6
times). Integers, booleans, strings and floats of at most 8 bits must be equal."
    };
}

/// Run test cases, here or on another engine, and compare outputs as the official runner does.
#[derive(Debug, Args)]
#[command(after_help = examples!(), after_long_help = concat!(examples!(), " The totals say how
many cases are equal bit by bit. --timeout is for each case.

Exit status:
  0  nothing failed, and something passed
  1  a case failed, or an entry of --xfail is stale
  2  wrong usage: also a folder or archive that isn't there
  3  a folder or archive can't be read, or --strict and cases are unsupported or refused
  4  output can't be written
  5  nothing was tested, or fewer cases than --min-cases"))]
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

    /// Add a summary by operator and version
    ///
    /// Cases whose nodes have several operators beside Constant are counted together.
    #[arg(long)]
    by_operator: bool,

    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Expect cases to fail: lines of a name or pattern and a reason
    ///
    /// A name is a case's path, or the end of it after a /. * and ? stand for any characters but /. A # begins a comment. An
    /// entry is stale, and the run fails, if a case that it matches passes, or if it matches none.
    #[arg(long, value_name = "FILE")]
    xfail: Option<PathBuf>,

    #[command(flatten)]
    engine: engine::Flags,

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
        if output::is_stdout(path) {
            let why = "--junit -: a file is needed: standard output gets the results";
            return Err(Failure::usage(why));
        }
        let unwritable = |e| Failure::usage(format!("--junit {}: {e}", print::path(&path.to_string_lossy())));
        output::check_writable(path).map_err(unwritable)?;
        let read = arguments.path.iter().chain(&arguments.xfail);
        output::spare("--junit", path, read.map(PathBuf::as_path))?;
    }
    let mut xfail = arguments.xfail.as_deref().map(Xfail::read).transpose()?.unwrap_or_default();
    let engine = arguments.engine.engine(arguments.running.timeout)?;
    let mut tally = Tally::new(arguments.list, global);
    let runner = Runner { arguments, options, engine };
    sources.iter().try_for_each(|source| runner.run(source, &mut tally, &mut xfail))?;
    tally.stale = xfail.stale();
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

/// What runs cases.
struct Runner<'a> {
    arguments: &'a Arguments,
    options: LoadOptions,
    /// `None` for this runtime.
    engine: Option<Engine>,
}

impl Runner<'_> {
    /// Runs the cases of a source. One archive at a time is in memory.
    fn run(&self, source: &CaseSource, tally: &mut Tally, xfail: &mut Xfail) -> Result<(), Failure> {
        let (progress, selection) = (Progress::new(), &self.arguments.selection);
        progress.message(&format!("reading {source}"));
        let mut cases = source.cases()?;
        tally.found += cases.len();
        cases.iter().for_each(|case| xfail.finds(&case.name));
        cases.retain(|case| selection.has_name(&case.name));
        cases.iter_mut().for_each(|case| case.tolerance = self.arguments.slack.tolerance(case.tolerance));
        progress.expect(cases.len());
        progress.message(&source.to_string());
        let jobs = self.arguments.jobs().min(cases.len());
        let options = self.arguments.threads(&self.options, jobs);
        let run = |case: &Case| selection.has_operators(case, &options).then(|| self.record(case, &options));
        let count = |record: Option<Record>| {
            progress.step();
            self.engine.as_ref().map_or(Ok(()), Engine::check)?;
            let Some(mut record) = record else { return Ok(()) };
            xfail.judge(&mut record);
            progress.aside(|| tally.add(record)).map_err(Failure::stdout)
        };
        order::in_order(&cases, jobs, run, count)
    }

    fn record(&self, case: &Case, options: &LoadOptions) -> Record {
        let started = Instant::now();
        let outcome = match &self.engine {
            Some(engine) => engine.run(case, options),
            None => case.run_until(options, &self.arguments.running.cancel()),
        };
        let record = Record::new(&case.name, outcome, started.elapsed());
        let operator = self.arguments.by_operator.then(|| operators::operator(case, options));
        Record { operator, ..record }
    }
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
