//! `onnxref reduce`: the smallest model for which a command still fails.

mod bodies;
mod model;
mod search;
mod trial;

use crate::failure::{FAILED, Failure};
use crate::feeds::Feeding;
use crate::options::{Running, is_standard_input, shown, standard_input};
use crate::path::ValuePath;
use crate::print::Stdout;
use crate::{Global, json, output, print, report, watch};
use clap::Args;
use model::{Attempt, Known, Source};
use onnxref::document::Document;
use onnxref::{Kind, LoadOptions, Model, Outputs, Value, ValueInfo};
use onnxref_view::{counted, totals};
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trial::{Check, Trial};

/// Find the smallest part of a model for which a command still fails
#[derive(Debug, Args)]
#[command(after_help = "\
Nodes are cut by halving, those of bodies too; values between become inputs, as a run gives them.
A body may become the model, a branch replace its If. Then outputs go, dimensions get smaller and
constants 0 or 1. OUT has the best so far, also after Ctrl-C; --save-inputs its inputs at the end.

Example:
  onnxref reduce model.onnx -o small.onnx -- python run.py {model}
  onnxref reduce model.onnx -o small.onnx --random --work tried -- ./engine {model} {inputs}

Exit status:
  0  a smaller model was found: in nodes or dimensions
  1  no smaller one was found, or the command fails for what no node needs only
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
    let wrong = |why: &str| Failure::usage(format!("-o {}: {why}", print::path(&out.to_string_lossy())));
    if output::is_stdout(out) {
        return Err(wrong("a file is needed"));
    }
    output::spare("-o", out, arguments.feeding.saved().chain([&**path]))?;
    output::check_writable(out).map_err(|e| wrong(&format!("the file can't be written: {e}")))?;
    let (start, timeout) = (Instant::now(), running.timeout.unwrap_or(TIMEOUT));
    // Nodes are those of the file.
    let options = running.options()?.optimize(false).keep_packed(false);
    let unreadable = |error| report::load(&shown(path), error);
    let read = if is_standard_input(path) {
        Document::from_bytes_with(standard_input()?, &options)
    } else {
        Document::read_with(path, &options)
    };
    let read = read.map_err(unreadable)?;
    if read.has_data_in(out).map_err(unreadable)? {
        return Err(wrong(&format!("it is a file of {}", shown(path))));
    }
    let (expected, place) = ((arguments.expect_status, timeout), output::followed(out));
    let mut trial = Trial::new(command, expected, (&place, arguments.work.as_deref()), options.clone())?;
    let whole = trial.place(read, &unreadable)?;
    let found = whole.inspect(&options).map_err(unreadable)?;
    let faults = |error: &onnxref::Error| error.causes().iter().any(|cause| cause.kind() == Kind::Model);
    let valid = !found.error.as_ref().is_some_and(faults) && found.mismatches.is_empty();
    let (values, runs) = arguments.values(&whole, &options)?;
    let known = Known::new(&whole, &found, values);
    let count = model::count(&whole.graph);
    (trial.valid, trial.runs) = (valid, runs);
    let source = Source::new(whole.clone(), &known);
    let first = source.part(&vec![true; source.node_count()], &source.outputs().into_iter().collect());
    let first = first.ok_or_else(|| Failure::usage(format!("{}: the model has no outputs", shown(path))))?;
    let status = trial.status(&first)?;
    if !trial.is_failure(status) {
        let whole = Attempt { inputs: known.inputs(&whole), model: whole };
        let status = trial.status(&whole)?;
        if trial.is_failure(status) {
            let what = model::dropped(&whole.model.graph, &first.model.graph);
            let message = format!("the command fails for the model, but not without what no node needs: {what}");
            return Err(Failure::new(FAILED, message));
        }
        let expected = arguments.expect_status.map(|status| format!(", not {status}")).unwrap_or_default();
        return Err(Failure::usage(format!(
            "the command doesn't fail for the model itself: its exit status is {status}{expected}"
        )));
    }
    // All of it fails.
    trial.accept(Some(first), Check::Structure)?;
    search::nodes(&source, &mut trial)?;
    trial.embed()?;
    arguments.bodies(known, &mut trial)?;
    search::texts(&mut trial)?;
    let smaller = search::sizes(&mut trial)?;
    search::values(&mut trial)?;
    arguments.feeding.save_of(|| {
        let best = trial.best.as_ref()?;
        let model = best.model.load(&trial.options).ok()?;
        let is_known = |info: &ValueInfo| best.inputs.iter().any(|(name, _)| *name == info.name);
        let known = model.inputs().all(|info| is_known(info) || model.has_default(&info.name));
        known.then_some((model, &best.inputs))
    })?;
    let nodes = trial.best.as_ref().map_or(count, Attempt::nodes);
    let (runs, remembered) = (trial.count, trial.remembered);
    let found = Found { nodes_before: count, nodes, runs, remembered, seconds: start.elapsed().as_secs_f64() };
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
    Ok(if smaller || nodes < count { 0 } else { FAILED })
}

#[derive(Serialize)]
struct Found {
    nodes_before: usize,
    nodes: usize,
    runs: usize,
    remembered: usize,
    seconds: f64,
}

impl Arguments {
    /// Looks into bodies until nothing gets smaller.
    fn bodies(&self, mut known: Known, trial: &mut Trial<'_>) -> Result<(), Failure> {
        loop {
            let changed = bodies::hoist(&known, trial)? || bodies::inline(trial)? || bodies::nodes(&known, trial)?;
            let Some(best) = trial.best.clone().filter(|_| changed) else { return Ok(()) };
            // What is known of the values follows from the new model.
            let found = best.model.inspect(&trial.options).map_err(Failure::run)?;
            let values = match best.model.load(&trial.options) {
                Ok(model) => self.run(&model, &best.inputs).0,
                Err(_) => HashMap::new(),
            };
            known = Known::new(&best.model, &found, values);
            search::nodes(&Source::new(best.model, &known), trial)?;
        }
    }

    /// The values of a run of the model here, and whether it came to its end. Without one, types are those that follow.
    fn values(&self, document: &Document, options: &LoadOptions) -> Result<(HashMap<ValuePath, Value>, bool), Failure> {
        let none = |why: &str| {
            print::note(&format!("values between nodes have the types that follow: {why}"));
            Ok((HashMap::new(), false))
        };
        let Ok(model) = document.load(options) else { return none("the model doesn't load here") };
        let missing = model.inputs().any(|info| !model.has_default(&info.name));
        if missing && !self.feeding.is_given() {
            return none("inputs are not given (--random makes some)");
        }
        let feeds = self.feeding.given(&model)?;
        let feeds: Vec<(String, Value)> = feeds.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let (values, ran) = self.run(&model, &feeds);
        if let Err(error) = &ran {
            print::note(&format!("values are known up to where the run fails here: {error:#}"));
        }
        Ok((values, ran.is_ok()))
    }

    /// The values of a run, those of bodies in their first trip.
    fn run(&self, model: &Model, feeds: &[(String, Value)]) -> (HashMap<ValuePath, Value>, onnxref::Result<Outputs>) {
        let own = feeds.iter().map(|(name, value)| (ValuePath::outermost(name), value.clone()));
        let mut values: HashMap<ValuePath, Value> = own.collect();
        let mut room = MAX_BYTES;
        let inputs = feeds.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let ran = watch::run(model, inputs, &self.running.cancel(), false, |node, trips, given| {
            for (k, (name, value)) in given.iter().enumerate() {
                let bytes = totals::bytes(value);
                let Ok(path) = trips.path(node, k, name) else { continue };
                if path.trips().all(|trip| trip == 0) && bytes <= room {
                    room -= bytes;
                    values.insert(path, (*value).clone());
                }
            }
            Ok(())
        });
        (values, ran)
    }
}
