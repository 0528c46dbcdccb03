//! `onnxref bench`: times the runs of a model.

mod against;
mod machine;
mod measure;
mod profile;
mod progress;
mod report;
mod tally;
mod text;
mod trace;

use crate::failure::{FAILED, Failure, RUN};
use crate::feeds::Feeding;
use crate::options::{Running, seconds, shown};
use crate::{Global, json, output, print};
use clap::Args;
use measure::{Amount, Bench};
use onnxref_view::grouped;
use profile::Profile;
use report::{Comparison, Machine, Profiled, Report, Runs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time the runs of a model, with the share of each operator and node
#[derive(Debug, Args)]
#[command(after_help = "\
Examples, from the root of the repository:
  CASE=onnx-test-data/gather/onnx-1.12.0/node/test_gather_2d_indices
  onnxref bench $CASE/model.onnx --inputs $CASE/test_data_set_0 --profile --save before.json
  onnxref bench $CASE/model.onnx --inputs $CASE/test_data_set_0 --profile --against before.json

Exit status: 1 --max-ratio is exceeded; 2 wrong usage; 3 the model can't be loaded; 4 a run failed")]
pub(crate) struct Arguments {
    /// The model: an .onnx file, the .xml file of an OpenVINO IR, or - for standard input
    model: PathBuf,

    /// Run N times before measuring [default: 0.5 s, and at least 2 runs]
    ///
    /// The very first run comes before that, and its time is shown.
    #[arg(long, value_name = "N")]
    warmup: Option<u32>,

    /// Measure N runs
    ///
    /// Runs are timed one by one, by a Runner of the library: feeds stay in place, memory is reused, and outputs are
    /// not copied. Quantiles are by nearest rank: of few runs, the p99 is the longest.
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u32).range(1..=measure::MAX_RUNS))]
    runs: Option<u32>,

    /// Measure runs for this time [default: 3 s, and at least 10 runs]
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,

    /// List the time of each operator and of the slowest nodes (-v: of all)
    ///
    /// This takes as many runs again, which are not among those measured.
    /// Every figure is of one run. The time of a node includes the nodes of its subgraphs; own time and share don't.
    /// Watching a node adds about 0.1 µs to its time.
    /// Bytes are the sizes of a node's inputs and outputs: one that only picks from them, as Gather does, or shares
    /// them, as Reshape does, touches less. The machine's limits are measured on the spot: a copy of a large buffer,
    /// and the library's own product of two large float32 matrices.
    #[arg(long)]
    profile: bool,

    /// Write one run to a file for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE.json")]
    trace: Option<String>,

    /// Write the figures to a file, as --json prints them
    #[arg(long, value_name = "FILE.json")]
    save: Option<String>,

    /// Compare with the figures in a file, written by --save or --json
    #[arg(long, value_name = "FILE.json")]
    against: Option<PathBuf>,

    /// Fail if the p50 is more than R times that of --against
    ///
    /// Figures of another model or number of threads are refused.
    #[arg(long, value_name = "R", requires = "against", value_parser = ratio)]
    max_ratio: Option<f64>,

    /// Compute no constants at load, and keep all nodes as they are
    #[arg(long)]
    no_optimize: bool,

    #[command(flatten)]
    feeding: Feeding,

    #[command(flatten)]
    running: Running,
}

pub(crate) fn bench(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let earlier = arguments.against.as_deref().map(against::read).transpose()?;
    if let (Some((_, earlier)), Some(_)) = (&earlier, arguments.max_ratio) {
        earlier.check(&shown(&arguments.model), threads(&arguments.running))?;
    }
    arguments.check_files()?;
    let start = Instant::now();
    let model = arguments.running.load_as(&arguments.model, |options| options.optimize(!arguments.no_optimize))?;
    let load = start.elapsed();
    let bench = Bench {
        model: &model,
        feeds: arguments.feeding.inputs(&model)?,
        warmup: arguments.warmup.map_or(measure::WARMUP, Amount::Runs),
        amount: arguments.amount(),
        timeout: arguments.running.timeout,
    };
    let times = bench.times()?;
    let mut report = Report {
        model: shown(&arguments.model),
        onnxref: env!("CARGO_PKG_VERSION"),
        threads: threads(&arguments.running),
        load_seconds: load.as_secs_f64(),
        first_run_seconds: times.first.as_secs_f64(),
        warmup_runs: times.warmup,
        runs: Runs::new(times.runs),
        peak_memory_bytes: times.peak_memory,
        ..Report::default()
    };
    if arguments.profile {
        let Profile { time, tally, .. } = bench.profile()?;
        report.profile = Some(Profiled { runs: tally.runs, mean: time.as_secs_f64() / tally.runs.max(1) as f64 });
        (report.operators, report.nodes) = (tally.operators(), tally.nodes());
        report.machine = Some(Machine::measure(report.threads)?);
    }
    if let Some(path) = &arguments.trace {
        let trace = bench.trace()?;
        if trace.lost > 0 {
            print::note(&format!("--trace: {} later nodes are left out", grouped(trace.lost)));
        }
        save(path, &trace.document(&report.model))?;
    }
    if let Some(path) = &arguments.save {
        save(path, &report)?;
    }
    if let Some((file, earlier)) = earlier {
        earlier.differences(&report).iter().for_each(|text| print::note(text));
        report.against = Some(Comparison::new(file, &earlier, &report));
    }
    match global.json {
        true => json::line(&report)?,
        false => text::print(&report, global.verbose).map_err(Failure::stdout)?,
    }
    Ok(arguments.verdict(&report))
}

impl Arguments {
    fn amount(&self) -> Amount {
        match (self.runs, self.seconds) {
            (Some(runs), _) => Amount::Runs(runs),
            (None, Some(time)) => Amount::Time { time, runs: 1 },
            (None, None) => measure::DEFAULT,
        }
    }

    /// Checks before the runs that the files can be written.
    fn check_files(&self) -> Result<(), Failure> {
        for (flag, path) in [("--trace", &self.trace), ("--save", &self.save)] {
            let Some(path) = path else { continue };
            let path = Path::new(path);
            if output::is_stdout(path) {
                return Err(Failure::usage(format!(
                    "{flag} -: a file is needed: standard output gets the table, or with --json the figures"
                )));
            }
            let wrong = |e| format!("{flag} {}: the file can't be written: {e}", print::path(&path.to_string_lossy()));
            output::check_writable(path).map_err(|e| Failure::usage(wrong(e)))?;
            output::spare(flag, path, self.feeding.saved().chain([&*self.model]))?;
        }
        let [save, trace] =
            [&self.save, &self.trace].map(|path| path.as_ref().map(|path| output::unique(Path::new(path))));
        match save.is_some() && save == trace {
            true => Err(Failure::usage("--save and --trace go to the same file")),
            false => Ok(()),
        }
    }

    fn verdict(&self, report: &Report) -> u8 {
        let ratio = report.against.as_ref().and_then(Comparison::p50);
        match (self.max_ratio, ratio) {
            (Some(most), Some(ratio)) if ratio > most => {
                print::error(&format!("--max-ratio {most}: the p50 is {ratio:.3} times the earlier one"));
                FAILED
            }
            _ => 0,
        }
    }
}

/// Writes a file of JSON.
fn save(path: &str, document: &impl serde::Serialize) -> Result<(), Failure> {
    let encoded = serde_json::to_vec(document);
    let mut bytes = encoded.map_err(|e| Failure::new(RUN, format!("{}: {e}", print::path(path))))?;
    bytes.push(b'\n');
    output::save(&[(path, bytes)])
}

/// Maximum number of threads of a run.
fn threads(running: &Running) -> usize {
    let pool = onnxref::available_threads();
    running.threads.map_or(pool, |threads| threads.get().min(pool))
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio: &f64| *ratio > 0.0 && ratio.is_finite());
    ratio.ok_or_else(|| "expected a positive number, such as 1.1".to_string())
}
