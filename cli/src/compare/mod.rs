//! `onnxref compare`: where two models, or a model and recorded values, first differ.

mod planes;
mod quantized;
mod report;

use crate::expect::{Compared, Slack};
use crate::failure::{FAILED, Failure, NOTHING};
use crate::feeds::{Feeding, Feeds};
use crate::lineage::Lineage;
use crate::options::Running;
use crate::path::ValuePath;
use crate::recorded::Recorded;
use crate::repeat::{RANDOM, REPEATS};
use crate::{Global, print, watch};
use clap::Args;
use onnxref::conformance::{DifferenceKind, Tolerance};
use onnxref::{Error, Kind, LoadOptions, Model, Outputs, Scalar, Tensor, Value, quote};
use onnxref_view::{counted, grouped, totals};
use planes::in_planes;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Find the first value in which two models differ, and the nodes that lead to it
#[derive(Debug, Args)]
#[command(after_help = "\
Values of the same name, in the same calls and subgraphs, are compared in the order of B. Inputs
and outputs whose names the other model doesn't have are taken by position, if both have as many.
Without B, the model is compared with itself without optimisation, bit by bit: of nodes that run
as one, the values of the last. Of two models, what differs from run to run of A is not compared.

Example:
  onnxref compare before.onnx after.onnx --random --set batch=2
  onnxref run before.onnx --random --dump values && onnxref compare after.onnx values --random
  onnxref compare model.onnx values.npz --inputs inputs.npz
  onnxref compare float.onnx quantized.onnx --quantized --inputs inputs.npz")]
pub(crate) struct Arguments {
    /// A model
    a: PathBuf,

    /// Another model; or values that A should give: a .npz file, or a folder of `run --dump` or another program
    ///
    /// A folder has an index.json, such as {"values": [{"name": "/lm/Add", "file": "0.npy"}]}, or files NAME.npy, NAME.pb.
    b: Option<PathBuf>,

    /// Measure the error of each quantized tensor of B, where A is the float original
    ///
    /// For what QuantizeLinear, DequantizeLinear of weights, DynamicQuantizeLinear and QLinear operators give: the ratio of
    /// signal to noise that quantizing adds (own dB), the greatest error and the share of elements that are clipped; and the
    /// same against the value of that name in A (total). Names that quantizers change, and nodes in the same order, are found.
    #[arg(long, requires = "b", conflicts_with_all = ["rtol", "atol"])]
    quantized: bool,

    #[command(flatten)]
    feeding: Feeding,

    #[command(flatten)]
    slack: Slack,

    #[command(flatten)]
    running: Running,
}

pub(crate) fn compare(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    if arguments.quantized {
        return quantized::compare(arguments, global);
    }
    let Arguments { a, b, feeding, running, slack, .. } = arguments;
    // Without B the second model is the optimised one.
    let (whole, second) = (|options: LoadOptions| options.optimize(false), b.as_deref().unwrap_or(a));
    let first = running.load_as(a, whole)?;
    let feeds = feeding.inputs(&first)?;
    let tolerance = slack.tolerance(if b.is_none() { Tolerance::EXACT } else { Tolerance::default() });
    let (found, ran) = if is_recorded(second) {
        let known = Known::Recorded(Recorded::open(second, first.limits())?);
        let found = arguments.run(&first, &feeds, &known, None, tolerance)?;
        (Found { sides: [if second.is_dir() { "the folder" } else { "the file" }, "A"], ..found }, a.as_path())
    } else {
        let model = running.load_as(second, |options| options.optimize(b.is_none()))?;
        let (known, outputs) = arguments.values(&first, &feeds)?;
        let handed = handed_over(&first, &model, &feeds, feeding)?;
        let mut found = arguments.run(&model, &handed, &known, Some(&outputs), tolerance)?;
        arguments.random(&first, &feeds, (&known, &outputs), tolerance, &mut found)?;
        (found, second)
    };
    if found.is_empty() {
        let why = match found.is_random() {
            true => "all values that both have are random: they differ from run to run of A",
            false => "no value has the same name in both; `run --expect` compares a folder with output_0.pb, ..",
        };
        return Err(Failure::new(NOTHING, format!("nothing was compared: {why}")));
    }
    if found.widened > 0 {
        let count = counted(found.widened, "value");
        print::note(&format!("compared as numbers, as their float types differ: {count}"));
    }
    // The graph is read again only if there is something to find in it.
    let graph = || Lineage::of(&running.loading, ran, b.is_none());
    let lineage = if found.differing.is_empty() { None } else { Some(graph()?) };
    report::print(&found, lineage.as_ref(), global)?;
    Ok(if found.differs() { FAILED } else { 0 })
}

impl Arguments {
    /// All values of a run, but of those in subgraphs only the first ones if they are very many.
    fn values(&self, model: &Model, feeds: &Feeds<'_>) -> Result<(Known, Outputs), Failure> {
        let (mut values, mut room) = (HashMap::new(), Room::default());
        let inputs = feeds.iter().cloned().collect();
        let outputs = watch::run(model, inputs, &self.running.cancel(), false, |node, trips, given| {
            for (k, (name, value)) in given.iter().enumerate() {
                if trips.depth() == 0 || room.take(totals::bytes(value).saturating_add(VALUE_BYTES)) {
                    values.insert(trips.path(node, k, name)?, (*value).clone());
                }
            }
            Ok(())
        });
        if room.refused > 0 {
            let (count, most) = (grouped(room.refused), MAX_INNER_BYTES >> 20);
            print::note(&format!(
                "the last {count} values of A in subgraphs are not compared: those before take {most} MiB"
            ));
        }
        let outputs = outputs.map_err(|error| failed(error, self.b.is_some().then_some("A")))?;
        Ok((Known::Values(values), outputs))
    }

    /// Runs a model and compares its values with known ones.
    fn run(
        &self,
        model: &Model,
        feeds: &Feeds<'_>,
        known: &Known,
        outputs: Option<&Outputs>,
        tolerance: Tolerance,
    ) -> Result<Found, Failure> {
        let mut found = Found { sides: ["A", "B"], known: known.len(), ..Found::default() };
        let inputs = feeds.iter().cloned().collect();
        // What optimisation changes is how nodes run as one.
        let whole = self.b.is_none() || self.running.loading.fast_math;
        let ran = watch::run(model, inputs, &self.running.cancel(), whole, |node, trips, given| {
            let mut given = given.iter().enumerate();
            given.try_for_each(|(k, (name, got))| found.add(trips.path(node, k, name)?, got, known, tolerance, whole))
        });
        let got = ran.map_err(|error| failed(error, outputs.and(self.b.as_ref()).map(|_| "B")))?;
        if let Some(outputs) = outputs {
            found.outputs = compare_outputs(&got, outputs, tolerance);
        }
        Ok(found)
    }

    /// Leaves out what differs from run to run of A as it does in B.
    fn random(
        &self,
        a: &Model,
        feeds: &Feeds<'_>,
        (known, outputs): (&Known, &Outputs),
        tolerance: Tolerance,
        found: &mut Found,
    ) -> Result<(), Failure> {
        for _ in 0..REPEATS {
            if !found.differs() {
                break;
            }
            let differing = found.differing.iter().map(|(path, compared)| (path.clone(), compared.kind()));
            let (differing, mut random) = (differing.collect::<HashMap<ValuePath, _>>(), HashSet::new());
            let mut draws = false;
            let inputs = feeds.iter().cloned().collect();
            let again = watch::run(a, inputs, &self.running.cancel(), false, |node, trips, given| {
                draws |= RANDOM.contains(&node.operator) || node.operator == "Dropout";
                for (k, (name, value)) in given.iter().enumerate() {
                    let path = trips.path(node, k, name)?;
                    if let Some(kind) = differing.get(&path)
                        && let Some(Ok(before)) = known.get(&path, value)
                        && Compared::new(value, &before, tolerance).kind() == *kind
                    {
                        random.insert(path);
                    }
                }
                Ok(())
            });
            let again = again.map_err(Failure::run)?;
            found.leave_out(random, |name| {
                let (one, other) = outputs.get(name).zip(again.get(name))?;
                Compared::new(other, one, tolerance).kind()
            });
            // Without such a node every run is the same.
            if !draws {
                break;
            }
        }
        Ok(())
    }
}

/// A failure of a run: of which model, if there are two.
fn failed(error: Error, side: Option<&str>) -> Failure {
    let failure = Failure::run(error);
    let message = side.map_or_else(String::new, |side| format!("{side}: ")) + &failure.message;
    Failure { message, ..failure }
}

/// The partner in A of each name of B: the same name, or else, if both have as many, the one in the same place of those
/// that the other doesn't have.
fn partners<'a>(a: &[&'a str], b: &[&str]) -> Vec<Option<&'a str>> {
    let (of_a, of_b) = (HashSet::<&str>::from_iter(a.iter().copied()), HashSet::<&str>::from_iter(b.iter().copied()));
    let mut left = a.iter().filter(|name| a.len() == b.len() && !of_b.contains(**name));
    b.iter().map(|name| of_a.get(*name).or_else(|| left.next()).copied()).collect()
}

/// What one model is fed, for the other.
fn handed_over<'b>(a: &Model, b: &'b Model, feeds: &Feeds<'_>, feeding: &Feeding) -> Result<Feeds<'b>, Failure> {
    let [of_a, of_b] = [a, b].map(|model| model.inputs().map(|info| info.name.as_str()).collect::<Vec<_>>());
    let mut given: Feeds<'b> = Vec::new();
    for (info, partner) in b.inputs().zip(partners(&of_a, &of_b)) {
        match feeds.iter().find(|(name, _)| Some(*name) == partner) {
            Some((_, value)) => {
                let wrong = |why| Failure::usage(format!("input {} of B: {why}", quote(&info.name)));
                given.push((&info.name, feeding.cast(info, value.clone()).map_err(wrong)?));
            }
            None if b.has_default(&info.name) => {}
            None => {
                return Err(Failure::usage(format!("A has no input for {} of B", quote(&info.name))));
            }
        }
    }
    Ok(given)
}

/// The outputs of B, each with its partner in A.
fn pairs<'a>(got: &'a Outputs, want: &'a Outputs) -> Vec<(&'a str, &'a Value, Option<&'a str>)> {
    let [of_a, of_b] = [want, got].map(|outputs| outputs.iter().map(|(name, _)| name).collect::<Vec<_>>());
    got.iter().zip(partners(&of_a, &of_b)).map(|((name, value), partner)| (name, value, partner)).collect()
}

/// An output of B, or of A if that has no partner: its partner in A, and how they compare.
struct ComparedOutput {
    name: String,
    partner: Option<String>,
    /// `None` without a partner.
    compared: Option<Compared>,
    /// Its values in A differ from run to run.
    random: bool,
}

/// Compares the outputs.
fn compare_outputs(got: &Outputs, want: &Outputs, tolerance: Tolerance) -> Vec<ComparedOutput> {
    let pairs = pairs(got, want);
    let taken: HashSet<&str> = pairs.iter().filter_map(|(.., partner)| *partner).collect();
    let output = |name: &str, partner: Option<&str>, compared| ComparedOutput {
        name: name.to_string(),
        partner: partner.map(str::to_string),
        compared,
        random: false,
    };
    let lost = want.iter().filter(|(name, _)| !taken.contains(name)).map(|(name, _)| output(name, None, None));
    let compared = pairs.iter().map(|(name, got, partner)| {
        let want = partner.and_then(|name| want.get(name));
        output(name, *partner, want.map(|want| Compared::as_numbers(got, want, tolerance).0))
    });
    compared.chain(lost).collect()
}

/// Maximum memory of the values of subgraphs that are kept: a Loop gives them again in each trip.
const MAX_INNER_BYTES: u64 = 1 << 30;

/// Memory of a value that is kept, beside its elements.
const VALUE_BYTES: u64 = 512;

/// Memory for the values of subgraphs.
struct Room {
    left: u64,
    /// The number of values that had none: one that doesn't fit, and all after it.
    refused: u64,
}

impl Default for Room {
    fn default() -> Room {
        Room { left: MAX_INNER_BYTES, refused: 0 }
    }
}

impl Room {
    fn take(&mut self, bytes: u64) -> bool {
        let fits = self.refused == 0 && bytes <= self.left;
        if fits {
            self.left -= bytes;
        } else {
            self.refused += 1;
        }
        fits
    }
}

/// Whether a path has values, not a model.
fn is_recorded(path: &Path) -> bool {
    path.is_dir() || path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz"))
}

/// What values are compared with.
enum Known {
    Values(HashMap<ValuePath, Value>),
    Recorded(Recorded),
}

impl Known {
    fn get(&self, path: &ValuePath, like: &Value) -> Option<Result<Value, String>> {
        match self {
            Known::Values(values) => values.get(path).cloned().map(Ok),
            Known::Recorded(recorded) => recorded.get(path, like.value_type().as_ref()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Known::Values(values) => values.len(),
            Known::Recorded(recorded) => recorded.len(),
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
    /// The number of values that have different float types.
    widened: usize,
    /// Values that differ, in the order in which they were computed.
    differing: Vec<(ValuePath, Compared)>,
    /// Each value that was compared, and whether it is equal.
    equal: HashMap<ValuePath, bool>,
    nan: Nan,
    /// Values that differ from run to run of A: they are not compared.
    random: HashSet<ValuePath>,
    outputs: Vec<ComparedOutput>,
}

/// NaN in values that were compared.
#[derive(Default)]
struct Nan {
    /// The number of values that have it on some side, and the first one.
    values: usize,
    first: Option<ValuePath>,
    /// The number of those that have it at other places on the other side.
    elsewhere: usize,
}

impl Nan {
    fn add(&mut self, path: &ValuePath, got: &Value, want: &Value) {
        let (Ok(got), Ok(want)) = (got.tensor(), want.tensor()) else { return };
        let is_nan = |scalar: Scalar<'_>| match scalar {
            Scalar::Float(v) => v.is_nan(),
            Scalar::Double(v) => v.is_nan(),
            Scalar::Complex64(re, im) => re.is_nan() || im.is_nan(),
            Scalar::Complex128(re, im) => re.is_nan() || im.is_nan(),
            _ => false,
        };
        let some = |tensor: &Tensor| tensor.scalars().any(is_nan);
        if some(got) || some(want) {
            self.values += 1;
            self.first.get_or_insert_with(|| path.clone());
            let same = got.shape() == want.shape() && got.scalars().map(is_nan).eq(want.scalars().map(is_nan));
            self.elsewhere += usize::from(!same);
        }
    }
}

impl Found {
    /// Compares a value with the known one of its path. It may be stored in blocks if nodes run as one.
    fn add(
        &mut self,
        path: ValuePath,
        got: &Value,
        known: &Known,
        tolerance: Tolerance,
        whole: bool,
    ) -> onnxref::Result<()> {
        let Some(want) = known.get(&path, got) else {
            self.alone += 1;
            return Ok(());
        };
        let want = want.map_err(|why| Error::new(Kind::Io, why))?;
        let planes = if whole { in_planes(got, &want) } else { None };
        let got = planes.as_ref().unwrap_or(got);
        let (compared, widened) = Compared::as_numbers(got, &want, tolerance);
        self.widened += usize::from(widened);
        self.nan.add(&path, got, &want);
        self.equal.insert(path.clone(), compared.equal);
        match (compared.equal, compared.exact) {
            (true, true) => self.exact += 1,
            (true, false) => self.close += 1,
            (false, _) => self.differing.push((path, compared)),
        }
        Ok(())
    }

    /// Leaves out random values, and outputs that differ as much in another run of A.
    fn leave_out(&mut self, random: HashSet<ValuePath>, again: impl Fn(&str) -> Option<DifferenceKind>) {
        self.differing.retain(|(path, _)| !random.contains(path));
        self.random.extend(random);
        for output in self.outputs.iter_mut().filter(|output| output.differs()) {
            let kind = output.compared.as_ref().and_then(Compared::kind);
            output.random = kind.is_some() && output.partner.as_ref().and_then(|name| again(name)) == kind;
        }
    }

    /// Whether nothing was compared, but for what is random.
    fn is_empty(&self) -> bool {
        let compared = |output: &ComparedOutput| output.compared.is_some() && !output.random;
        self.equal.len() == self.random.len() && !self.outputs.iter().any(compared)
    }

    /// Whether something is random.
    fn is_random(&self) -> bool {
        !self.random.is_empty() || self.outputs.iter().any(|output| output.random)
    }

    /// Whether a value differs, or an output has no partner.
    fn differs(&self) -> bool {
        !self.differing.is_empty() || self.outputs.iter().any(ComparedOutput::differs)
    }
}

impl ComparedOutput {
    fn differs(&self) -> bool {
        !self.random && self.compared.as_ref().is_none_or(|compared| !compared.equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_have_room() {
        let mut room = Room { left: 10, ..Room::default() };
        assert_eq!([4, 6, 0, 1, 0].map(|bytes| room.take(bytes)), [true, true, true, false, false]);
        assert_eq!((room.left, room.refused), (0, 2));
    }
}
