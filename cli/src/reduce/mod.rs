//! `onnxref reduce`: the smallest model for which a command still fails.

mod model;
mod search;
mod trial;

use crate::failure::{FAILED, Failure};
use crate::feeds::Feeding;
use crate::options::{Running, shown};
use crate::print::Stdout;
use crate::record::Whole;
use crate::{Global, json, output, print, watch};
use clap::Args;
use model::Source;
use onnxref::{Kind, Value};
use onnxref_view::{counted, totals};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trial::{Check, Trial};

/// Find the smallest part of a model for which a command still fails
#[derive(Debug, Args)]
#[command(after_help = "\
Nodes are cut by halving; values between them become inputs, declared as a run here gives them. Then
outputs go, dimensions get smaller, and constants become 0 or 1. A part is as valid as the model.
The best so far is in OUT at any time, also after Ctrl-C.

Example:
  onnxref reduce model.onnx -o small.onnx -- python run.py {model}
  onnxref reduce model.onnx -o small.onnx --random --work tried -- ./engine {model} {inputs}

Exit status:
  0  a smaller model was found
  1  no smaller one was found
  2  wrong usage, such as a command that doesn't fail for the model
  3  the model can't be read")]
pub(crate) struct Arguments {
    /// The model: an .onnx file
    model: PathBuf,

    /// Where the smallest model is written
    #[arg(short, long = "out", value_name = "FILE")]
    out: PathBuf,

    /// The command: {model} is the file to try, {inputs} a folder with input_0.pb, ..
    ///
    /// It runs without a shell. It fails if its exit status isn't 0; a signal counts as 128 and its number, a command that runs
    /// out of time as 124.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,

    /// The exit status of the failure, instead of any but 0
    #[arg(long, value_name = "N")]
    expect_status: Option<i32>,

    /// Keep what was tried in this folder, so that a search can go on
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,

    #[command(flatten)]
    feeding: Feeding,

    #[command(flatten)]
    running: Running,
}

/// The time of a command, unless `--timeout` is given.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum memory of the values that a run gives.
const MAX_BYTES: u64 = 4 << 30;

pub(crate) fn reduce(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let Arguments { model: path, out, command, running, .. } = arguments;
    if !command.iter().any(|word| word.contains("{model}")) {
        return Err(Failure::usage("the command has no {model}: it stands for the file to try"));
    }
    let wrong = |e| Failure::usage(format!("-o {}: the file can't be written: {e}", shown(out)));
    output::check_writable(out).map_err(wrong)?;
    let (start, timeout) = (Instant::now(), running.timeout.unwrap_or(TIMEOUT));
    let options = running.options()?;
    let whole = Whole::read(path, &options, "reduce")?;
    let faults = |error: &onnxref::Error| error.causes().iter().any(|cause| cause.kind() == Kind::Model);
    let valid = !whole.found.error.as_ref().is_some_and(faults) && whole.found.mismatches.is_empty();
    let (values, runs) = arguments.values(path)?;
    let source = Source::new(whole, values);
    let (count, outputs) = (source.node_count(), source.outputs().into_iter().collect::<HashSet<_>>());
    let mut trial = Trial::new(command, (arguments.expect_status, timeout), (out, arguments.work.as_deref()), options)?;
    (trial.valid, trial.runs) = (valid, runs);
    let first = source.part(&vec![true; count], &outputs);
    let first = first.ok_or_else(|| Failure::usage(format!("{}: the model has no outputs", shown(path))))?;
    let status = trial.status(&first)?;
    if !trial.is_failure(status) {
        let expected = arguments.expect_status.map(|status| format!(", not {status}")).unwrap_or_default();
        return Err(Failure::usage(format!(
            "the command doesn't fail for the model itself: its exit status is {status}{expected}"
        )));
    }
    // All of it fails.
    trial.accept(Some(first), Check::Structure)?;
    search::nodes(&source, &mut trial)?;
    search::texts(&mut trial)?;
    search::sizes(&mut trial)?;
    search::values(&mut trial, command.iter().any(|word| word.contains("{inputs}")))?;
    let nodes = trial.best.as_ref().map_or(count, model::Attempt::nodes);
    let (runs, remembered) = (trial.count, trial.remembered);
    let found = Document { nodes_before: count, nodes, runs, remembered, seconds: start.elapsed().as_secs_f64() };
    if global.json {
        json::line(&found)?;
    } else {
        let known = if remembered > 0 { format!(" ({remembered} more were known)") } else { String::new() };
        let text = format!(
            "{} of {}, found in {}{known}",
            counted(nodes, "node"),
            onnxref_view::grouped(count as u64),
            counted(runs, "run")
        );
        writeln!(Stdout, "{}: {text}", print::path(&out.to_string_lossy())).map_err(Failure::stdout)?;
    }
    Ok(if nodes < count { 0 } else { FAILED })
}

#[derive(Serialize)]
struct Document {
    nodes_before: usize,
    nodes: usize,
    runs: usize,
    remembered: usize,
    seconds: f64,
}

impl Arguments {
    /// The values of a run of the model here, and whether it came to its end. Without one, types are those that follow.
    fn values(&self, path: &Path) -> Result<(HashMap<String, Value>, bool), Failure> {
        let none = |why: &str| {
            print::note(&format!("values between nodes have the types that follow: {why}"));
            Ok((HashMap::new(), false))
        };
        let model = match self.running.load_as(path, |options| options.optimize(false)) {
            Ok(model) => model,
            Err(_) => return none("the model doesn't load here"),
        };
        let missing = model.inputs().any(|info| !model.has_default(&info.name));
        if missing && !self.feeding.is_given() {
            return none("inputs are not given (--random makes some)");
        }
        let feeds = self.feeding.inputs(&model)?;
        let mut values: HashMap<String, Value> =
            feeds.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let mut room = MAX_BYTES;
        let inputs = feeds.iter().cloned().collect();
        let ran = watch::run(&model, inputs, &self.running.cancel(), false, |node, trips, given| {
            for (k, (name, value)) in given.iter().enumerate() {
                let bytes = totals::bytes(value);
                if trips.depth() == 0 && node.output_scope(k).is_none() && bytes <= room {
                    room -= bytes;
                    values.insert(name.to_string(), (*value).clone());
                }
            }
            Ok(())
        });
        if let Err(error) = &ran {
            print::note(&format!("values are known up to where the run fails here: {error:#}"));
        }
        Ok((values, ran.is_ok()))
    }
}
