//! `onnxref run`: runs a model once.

use crate::corpus::folder::NewFolder;
use crate::corpus::manifest::Corpus;
use crate::dump::Dump;
use crate::expect::{Compared, Slack, expected};
use crate::failure::{FAILED, Failure};
use crate::feeds::{Feeding, Feeds};
use crate::options::Running;
use crate::output::OutputFile;
use crate::path::Trips;
use crate::record::{self, Nodes, Record, Whole};
use crate::stats::{Look, Looking};
use crate::watch::Seen;
use crate::{Global, json, output, print, stats, watch};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use onnxref::conformance::Tolerance;
use onnxref::{Cancel, Error, Kind, Model, NodeInfo, Outputs, Value, quote};
use onnxref_view::json::Described;
use onnxref_view::plain;
use serde::Serialize;
use serde::ser::Serializer;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Run a model and print its outputs, write them to files, or compare them with expected ones
#[derive(Debug, Args)]
#[command(after_help = "\
Examples, from the root of the repository:
  CASE=onnx-test-data/gather/onnx-1.12.0/node/test_gather_2d_indices
  onnxref run $CASE/model.onnx -i 'data=[[1, 2, 3], [4, 5, 6], [7, 8, 9]]' -i 'indices=[[0, 2]]'
  onnxref run $CASE/model.onnx --inputs $CASE/test_data_set_0 --expect $CASE/test_data_set_0")]
pub(crate) struct Arguments {
    /// The model: an .onnx file, the .xml file of an OpenVINO IR, or - for standard input
    model: PathBuf,

    /// Write an output to a file (.pb, .npy, .npz, .json) or, as .npy, to - for standard output
    ///
    /// Files are written after the run has succeeded, each completely or not at all. If the model has one output, NAME= may
    /// be omitted; a .npz file without a name gets all outputs. A .json file doesn't keep the sign and the payload of a NaN.
    #[arg(short, long, value_name = "NAME=FILE")]
    output: Vec<String>,

    /// Compare with expected outputs: a folder with output_0.pb, .., a .npz file, or NAME=VALUE as for -i
    ///
    /// The rule is that of `onnxref test`. The exit status is 1 if an output differs.
    #[arg(long, value_name = "DIR|FILE|NAME=VALUE")]
    expect: Vec<String>,

    /// Write every value that a node computes to a folder
    ///
    /// It is made if it isn't there, and may have other files in it, but no dump. This switches optimisation off. The folder gets a .npy file for each value (a .pb file, if NumPy doesn't have its type) and index.json, which lists
    /// them in the order of the run with their nodes. `onnxref compare` reads it. The values of a run that fails stay.
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,

    /// Stop after a node and print what it gives
    ///
    /// This switches optimisation off. NODE is its name, the name of one of its outputs, or # and its index.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["output", "expect"], value_parser = NonEmptyStringValueParser::new())]
    until: Option<String>,

    /// Write the run to a new folder, as a test case
    ///
    /// The folder gets the model, its inputs and its outputs; `onnxref test DIR` runs it. Tensors of other files are put into the model;
    /// an OpenVINO IR keeps its .bin file.
    #[arg(long, value_name = "DIR", conflicts_with = "until")]
    record: Option<PathBuf>,

    /// With --record: write a case for each node instead
    ///
    /// This switches optimisation off. A case is a model of that one node, with the values that it had in the run. A value that is constant stays an
    /// initializer; others are inputs, as are those that subgraphs read from around them. A call of a function is one node.
    /// A node that gives other values in each run has no case. The folder gets manifest.json too: see `onnxref corpus`.
    #[arg(long, requires = "record", hide_short_help = true)]
    each_node: bool,

    #[command(flatten)]
    looking: Looking,

    #[command(flatten)]
    feeding: Feeding,

    #[command(flatten)]
    slack: Slack,

    #[command(flatten)]
    running: Running,
}

pub(crate) fn run(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let (dump, until) = (arguments.dump.as_deref(), arguments.until.as_deref());
    let every = dump.is_some() || until.is_some() || arguments.each_node || arguments.looking.every();
    let model = arguments.running.load_as(&arguments.model, |options| options.optimize(!every))?;
    let files = output::files(&arguments.output, &model, global)?;
    arguments.check_places(&files)?;
    let expected = expected(&arguments.expect, &model)?;
    let fed = arguments.feeding.inputs(&model)?;
    // The time of the run is that of writing too.
    let cancel = arguments.running.cancel();
    let mut look = Look::new(&arguments.looking, &fed, &cancel).map_err(Failure::run)?;
    if arguments.looking.stats() && (global.verbose || global.json) {
        look.initializers(&arguments.running, &arguments.model)?;
    }
    let mut record = arguments.record(&model, &fed, &cancel)?;
    let (mut dump, mut stopped) = (dump.map(|folder| Dump::new(folder, &cancel)).transpose()?, None);
    let inputs = fed.iter().map(|(name, value)| (*name, value)).collect();
    let each = |node: NodeInfo<'_>, trips: &Trips, values: &[(&str, &Value)]| {
        record.add(node, trips, values)?;
        dump.as_mut().map_or(Ok(()), |dump| dump.add(node, trips, values))?;
        if trips.depth() > 0 || !until.is_some_and(|until| is_called(until, node, values)) {
            return Ok(());
        }
        stopped = Some(values.iter().map(|(name, value)| (name.to_string(), (*value).clone())).collect::<Vec<_>>());
        Err(Error::new(Kind::Cancelled, "the run was stopped after a node"))
    };
    let ran = watch::run_seen(&model, inputs, &cancel, !every, &mut Seeing { each, look: &mut look });
    if let Some(dump) = dump {
        let failed = ran.as_ref().err().filter(|_| stopped.is_none() && !look.stopped());
        let failed = failed.map(|error| format!("{error:#}"));
        let by = if look.stopped() { "--stop-at" } else { "--until" };
        let until = (look.stopped() || stopped.is_some()).then(|| format!("it was stopped by {by}"));
        match dump.end(failed.as_deref().or(until.as_deref())) {
            Ok(1) => print::note("1 value was dumped"),
            Ok(count) => print::note(&format!("{count} values were dumped")),
            Err(failure) if failed.is_none() => return Err(failure),
            // The run's own error says more.
            Err(_) => {}
        }
    }
    if let Some(failure) = record.failed() {
        return Err(failure);
    }
    look.notes();
    let outputs = match (ran, until) {
        (Err(_), _) if look.stopped() => {
            look.name_inputs(&arguments.running, &arguments.model)?;
            show(&look, global, &cancel)?;
            return Ok(FAILED);
        }
        (Err(_), _) if stopped.is_some() => Outputs::default(),
        (Err(error), _) => {
            // What led to it.
            if arguments.looking.stats() {
                show(&look, global, &cancel)?;
            }
            return Err(Failure::run(error));
        }
        (Ok(_), Some(until)) => return Err(no_node(&model, until)),
        (Ok(outputs), None) => outputs,
    };
    outputs.notes().iter().for_each(|text| print::note(text));
    output::write(&files, &outputs, &cancel)?;
    record.end(&model, &fed, &outputs)?;
    let shown: Vec<(&str, &Value)> = match &stopped {
        Some(values) => values.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        None => outputs.iter().collect(),
    };
    let tolerance = arguments.slack.tolerance(Tolerance::default());
    let compare =
        |(name, want): &(&'_ str, Value)| Some((name.to_string(), Compared::new(outputs.get(name)?, want, tolerance)));
    let compared: BTreeMap<String, Compared> = expected.iter().filter_map(compare).collect();
    if arguments.looking.stats() && !global.json {
        look.print(global.verbose).map_err(Failure::stdout)?;
    }
    if global.json {
        let outputs: Vec<(&str, &Value)> = output::once(shown.into_iter()).collect();
        let outputs = (!arguments.looking.stats()).then_some(Named(&outputs));
        json::line_until(&Document { outputs, expected: &compared, looked: look.document() }, &cancel)?;
    } else if !compared.is_empty() {
        let rows = compared.iter().map(|(name, compared)| [plain(name), compared.text()]);
        print::table(["output", "compared with what is expected"], &[], rows).map_err(Failure::stdout)?;
    } else if files.is_empty() && (!arguments.looking.stats() || stopped.is_some()) {
        print::values("output", &shown).map_err(Failure::stdout)?;
    }
    Ok(if compared.values().all(|compared| compared.equal) { 0 } else { FAILED })
}

impl Arguments {
    /// Checks that all goes to places of its own. The folder of `--record` has nothing in it until the end.
    fn check_places(&self, files: &[OutputFile<'_>]) -> Result<(), Failure> {
        files.iter().try_for_each(|file| output::spare("-o", file.path(), [&*self.model]))?;
        let saved = self.feeding.saved().map(|path| ("--save-inputs", path));
        let folders = [("--dump", &self.dump), ("--record", &self.record)];
        let folders = folders.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?)));
        let all = files.iter().map(|file| ("-o", file.path())).chain(saved).chain(folders);
        let mut places: Vec<(&str, PathBuf)> = Vec::new();
        for (flag, path) in all {
            let place = output::unique(path);
            let meets = |other: &PathBuf| *other == place || (flag == "--record" && other.starts_with(&place));
            if let Some((other, _)) = places.iter().find(|(_, other)| meets(other)) {
                let path = print::path(&path.to_string_lossy());
                return Err(Failure::usage(format!("{other} and {flag} both go to {path}")));
            }
            places.push((flag, place));
        }
        Ok(())
    }

    /// What records the run.
    fn record<'a>(&'a self, model: &Model, fed: &Feeds<'_>, cancel: &'a Cancel) -> Result<Record<'a>, Failure> {
        let Some(folder) = &self.record else { return Ok(Record::None) };
        let options = self.running.options()?;
        let folder = NewFolder::new("--record", folder, cancel)?;
        if !self.each_node {
            return Ok(Record::Whole(folder, record::files(&self.model, &options, model)?));
        }
        let whole = Whole::read(&self.model, &options, "--record --each-node")?;
        Ok(Record::Nodes(Nodes::new(Corpus::new(folder), whole, options, fed)?.into()))
    }
}

/// Whether a node, or one of the values that it gives, has a name; `#` and its index are one too.
fn is_called(name: &str, node: NodeInfo<'_>, values: &[(&str, &Value)]) -> bool {
    let index = name.strip_prefix('#').and_then(|index| index.parse().ok());
    let is_index = node.function.is_none() && index == Some(node.index);
    is_index || node.name == name || values.iter().any(|(value, _)| *value == name)
}

fn no_node(model: &Model, name: &str) -> Failure {
    let names: Vec<String> =
        model.nodes().map(|node| node.name).filter(|name| !name.is_empty()).take(8).map(quote).collect();
    let known = if names.is_empty() {
        "nodes have no names: #0 is the first".to_string()
    } else {
        format!("the first nodes are {}", names.join(", "))
    };
    Failure::usage(format!("--until {}: no node and no value has this name; {known}", quote(name)))
}

/// Sees the values of a run: statistics come before all else, so that they have the last one.
struct Seeing<'l, 'a, F> {
    look: &'l mut Look<'a>,
    each: F,
}

impl<F: FnMut(NodeInfo<'_>, &Trips, &[(&str, &Value)]) -> Result<(), Error>> Seen for Seeing<'_, '_, F> {
    fn starts(&mut self, node: NodeInfo<'_>, inputs: &[Option<&Value>]) -> Result<(), Error> {
        self.look.starts(node, inputs)
    }

    fn enters(&mut self) {
        self.look.enters();
    }

    fn ends(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> Result<(), Error> {
        let looked = self.look.ends(node, trips, outputs);
        (self.each)(node, trips, outputs)?;
        looked
    }
}

/// Prints what was seen of a run that didn't come to its end.
fn show(look: &Look<'_>, global: &Global, cancel: &Cancel) -> Result<(), Failure> {
    if global.json {
        json::line_until(&look.document(), cancel)
    } else {
        look.print(global.verbose).map_err(Failure::stdout)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Named<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    expected: &'a BTreeMap<String, Compared>,
    #[serde(flatten)]
    looked: stats::Document<'a>,
}

/// Values by name, in their order.
struct Named<'a>(&'a [(&'a str, &'a Value)]);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, Described(value))))
    }
}
