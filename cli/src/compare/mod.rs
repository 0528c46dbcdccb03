//! `onnxref compare`: where two models, or a model and recorded values, part.

mod lineage;
mod report;

use crate::Global;
use crate::dump::Dumped;
use crate::expect::{Compared, Slack};
use crate::failure::{FAILED, Failure, NOTHING};
use crate::feeds::{Feeding, Feeds};
use crate::options::Loading;
use crate::progress::Progress;
use clap::Args;
use lineage::Lineage;
use onnxref::conformance::Tolerance;
use onnxref::{LoadOptions, Model, NodeInfo, Outputs, Value, Watch, quote};
use std::collections::HashMap;
use std::path::PathBuf;

/// Find the first value in which two models differ, and the nodes that lead to it
#[derive(Debug, Args)]
#[command(after_help = "\
Values with the same name are compared in the order in which B computes them; outputs also by position.
Without B, the model is compared with itself without optimisation, bit by bit.

Example:
  onnxref compare before.onnx after.onnx --random --set batch=2
  onnxref run before.onnx --random --dump values && onnxref compare after.onnx values --random")]
pub(crate) struct Arguments {
    /// A model
    a: PathBuf,

    /// Another model; or a folder of values that A should give: `run --dump`, or files NAME.npy, NAME.pb
    b: Option<PathBuf>,

    #[command(flatten)]
    feeding: Feeding,

    #[command(flatten)]
    slack: Slack,

    #[command(flatten)]
    loading: Loading,
}

pub(crate) fn compare(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let Arguments { a, b, feeding, loading, .. } = arguments;
    let plain = |options: LoadOptions| options.optimize(false);
    let first = loading.load_as(a, plain)?;
    let feeds = feeding.inputs(&first)?;
    let mut tolerance = Tolerance::default();
    let (found, lineage) = match b {
        Some(folder) if folder.is_dir() => {
            let known = Known::Dumped(Dumped::open(folder)?);
            let tolerance = arguments.slack.tolerance(tolerance);
            let found = Found { sides: ["the folder", "A"], ..arguments.run(&first, &feeds, known, None, tolerance)? };
            (found, Lineage::of(loading, a, plain)?)
        }
        Some(b) => {
            let second = loading.load_as(b, plain)?;
            let tolerance = arguments.slack.tolerance(tolerance);
            let (known, outputs) = arguments.values(&first, &feeds)?;
            let feeds = handed_over(&first, &second, &feeds)?;
            let found = arguments.run(&second, &feeds, known, Some(&outputs), tolerance)?;
            (found, Lineage::of(loading, b, plain)?)
        }
        None => {
            (tolerance.rtol, tolerance.atol) = (0.0, 0.0);
            let (known, outputs) = arguments.values(&first, &feeds)?;
            let second = loading.load_as(a, |options| options)?;
            let tolerance = arguments.slack.tolerance(tolerance);
            let found = arguments.run(&second, &feeds, known, Some(&outputs), tolerance)?;
            (found, Lineage::of(loading, a, |options| options)?)
        }
    };
    if found.is_empty() {
        let hint = "values have the same name in both; `run --expect` compares a folder with output_0.pb, ..";
        return Err(Failure::new(NOTHING, format!("nothing was compared: no {hint}")));
    }
    report::print(&found, &lineage, global)?;
    Ok(if found.differs() { FAILED } else { 0 })
}

impl Arguments {
    /// All values of a run.
    fn values(&self, model: &Model, feeds: &Feeds<'_>) -> Result<(Known, Outputs), Failure> {
        let mut keep = Keep { values: HashMap::new(), depth: 0, progress: Progress::new() };
        keep.progress.expect(model.nodes().len());
        let inputs = feeds.iter().cloned().collect();
        let outputs = model.run_watched(inputs, &self.loading.cancel(), &mut keep).map_err(Failure::run)?;
        Ok((Known::Values(keep.values), outputs))
    }

    /// Runs a model and compares its values with known ones.
    fn run(
        &self,
        model: &Model,
        feeds: &Feeds<'_>,
        known: Known,
        outputs: Option<&Outputs>,
        tolerance: Tolerance,
    ) -> Result<Found, Failure> {
        let progress = Progress::new();
        progress.expect(model.nodes().len());
        let mut against =
            Against { known, tolerance, found: Found { sides: ["A", "B"], ..Found::default() }, depth: 0, progress };
        let inputs = feeds.iter().cloned().collect();
        let got = model.run_watched(inputs, &self.loading.cancel(), &mut against).map_err(Failure::run)?;
        let mut found = against.found;
        if let Some(outputs) = outputs {
            found.outputs = compare_outputs(&got, outputs, tolerance);
        }
        Ok(found)
    }
}

/// What one model is fed, for the other: by name, or else by position.
fn handed_over<'b>(a: &Model, b: &'b Model, feeds: &Feeds<'_>) -> Result<Feeds<'b>, Failure> {
    let mut given: Feeds<'b> = Vec::new();
    for (position, info) in b.inputs().enumerate() {
        let same = feeds.iter().find(|(name, _)| *name == info.name);
        let at = || {
            let name = &a.inputs().nth(position).filter(|_| a.inputs().len() == b.inputs().len())?.name;
            feeds.iter().find(|(other, _)| other == name)
        };
        match same.or_else(at) {
            Some((_, value)) => given.push((&info.name, value.clone())),
            None if b.has_default(&info.name) => {}
            None => {
                return Err(Failure::usage(format!("A has no input for {} of B", quote(&info.name))));
            }
        }
    }
    Ok(given)
}

/// Outputs of the same name, or else of the same position.
fn compare_outputs(got: &Outputs, want: &Outputs, tolerance: Tolerance) -> Vec<(String, Option<Compared>)> {
    let by_position = got.len() == want.len();
    let of = |(position, (name, got)): (usize, (&str, &Value))| {
        let at = || want.iter().nth(position).map(|(_, value)| value).filter(|_| by_position);
        let want = want.get(name).or_else(at);
        (name.to_string(), want.map(|want| Compared::new(got, want, tolerance)))
    };
    let lost = want.iter().filter(|(name, _)| !by_position && got.get(name).is_none());
    got.iter().enumerate().map(of).chain(lost.map(|(name, _)| (name.to_string(), None))).collect()
}

/// What values are compared with.
enum Known {
    Values(HashMap<String, Value>),
    Dumped(Dumped),
}

impl Known {
    fn get(&self, name: &str, like: &Value) -> Option<Result<Value, String>> {
        match self {
            Known::Values(values) => values.get(name).cloned().map(Ok),
            Known::Dumped(dumped) => dumped.get(name, like.value_type().as_ref()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Known::Values(values) => values.len(),
            Known::Dumped(dumped) => dumped.len(),
        }
    }
}

/// What was found.
#[derive(Default)]
struct Found {
    /// What the two sides are called: what was known, and what was run.
    sides: [&'static str; 2],
    /// The number of values that the first side has.
    known: usize,
    /// The number of values that are equal bit by bit, and of others that are equal within the tolerance.
    exact: usize,
    close: usize,
    /// The number of values without a partner.
    alone: usize,
    /// Values that differ, in the order in which they were computed.
    differing: Vec<(String, Compared)>,
    /// Each value that was compared, and whether it is equal.
    equal: HashMap<String, bool>,
    /// The outputs; `None` for one without a partner.
    outputs: Vec<(String, Option<Compared>)>,
}

impl Found {
    /// Whether nothing was compared.
    fn is_empty(&self) -> bool {
        self.equal.is_empty() && self.outputs.iter().all(|(_, compared)| compared.is_none())
    }

    /// Whether a value differs, or an output has no partner.
    fn differs(&self) -> bool {
        let differs = |(_, compared): &(String, Option<Compared>)| compared.as_ref().is_none_or(|c| !c.equal);
        !self.differing.is_empty() || self.outputs.iter().any(differs)
    }
}

/// Keeps all values of a run, without those in subgraphs.
struct Keep {
    values: HashMap<String, Value>,
    depth: usize,
    progress: Progress,
}

impl Watch for Keep {
    fn starts(&mut self, _: NodeInfo<'_>, _: &[Option<&Value>]) -> onnxref::Result<()> {
        self.depth += 1;
        Ok(())
    }

    fn ends(&mut self, _: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> onnxref::Result<()> {
        self.depth -= 1;
        if self.depth == 0 {
            self.progress.step();
            self.values.extend(outputs.iter().map(|(name, value)| (name.to_string(), (*value).clone())));
        }
        Ok(())
    }
}

/// Compares the values of a run with known ones.
struct Against {
    known: Known,
    tolerance: Tolerance,
    found: Found,
    depth: usize,
    progress: Progress,
}

impl Watch for Against {
    fn starts(&mut self, _: NodeInfo<'_>, _: &[Option<&Value>]) -> onnxref::Result<()> {
        self.depth += 1;
        Ok(())
    }

    fn ends(&mut self, _: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> onnxref::Result<()> {
        self.depth -= 1;
        if self.depth > 0 {
            return Ok(());
        }
        self.progress.step();
        self.found.known = self.known.len();
        for (name, got) in outputs {
            let Some(want) = self.known.get(name, got) else {
                self.found.alone += 1;
                continue;
            };
            let want = want.map_err(|why| onnxref::Error::new(onnxref::Kind::Io, why))?;
            let compared = Compared::new(got, &want, self.tolerance);
            self.found.equal.insert(name.to_string(), compared.equal);
            match (compared.equal, compared.exact) {
                (true, true) => self.found.exact += 1,
                (true, false) => self.found.close += 1,
                (false, _) => self.found.differing.push((name.to_string(), compared)),
            }
        }
        Ok(())
    }
}
