//! Scan: runs a subgraph for each entry of tensors along an axis.
//! <https://onnx.ai/onnx/operators/onnx__Scan.html>

use super::batch::Batch;
use super::parts::{Parts, entry, keep};
use crate::ops::prelude::*;
use std::fmt::Display;

pub(super) const SCAN: Implementation = Implementation::control("Scan", &[8, 9, 11, 16, 19, 21, 23, 24, 25], load);

/// `state, scan_output[.., t, ..] = body(state, scan_input[.., t, ..])` for all `t`; the outputs are the last `state` and
/// the stacked `scan_output`.
#[derive(Debug)]
struct Scan(Arc<Signature>);

/// What the trips of a node have in common.
#[derive(Debug)]
pub(super) struct Signature {
    body: usize,
    /// The number of state variables.
    pub(super) states: usize,
    inputs: Vec<Along>,
    outputs: Vec<Along>,
    /// What is known about the results of the body.
    facts: Vec<Fact>,
}

/// The axis of a tensor along which the trips are, and whether they go backwards.
#[derive(Debug, Clone, Copy)]
struct Along {
    axis: i64,
    reverse: bool,
}

/// In version 8 the first input is `sequence_lens`, axis 0 is the batch, and the trips are along axis 1.
fn load(node: &Node<'_>) -> Result<Box<dyn Control>> {
    let batch = node.version() < 9;
    let (given, first) = (node.int("num_scan_inputs")?, usize::from(batch));
    let values = node.input_count().saturating_sub(first);
    let scanned = usize::try_from(given).ok().filter(|count| (1..=values).contains(count));
    let scanned = scanned.ok_or_else(|| {
        let text = format!("num_scan_inputs {given} is out of range: allowed 1..={values}");
        Error::model(text).attribute("num_scan_inputs").value(given)
    })?;
    let states = values - scanned;
    let (body, facts) = node.body("body")?;
    facts.check_counts(values, node.output_count())?;
    let stacked = node.output_count().checked_sub(states).ok_or_else(|| {
        Error::model(format!("{} outputs given: there are {states} state variables", node.output_count()))
    })?;
    let facts = facts.outputs.clone();
    if batch {
        let inputs = along(vec![1; scanned], reversed(node, "directions", scanned)?);
        let outputs = along(vec![0; stacked], vec![false; stacked]);
        return Ok(Box::new(Batch(Arc::new(Signature { body, states, inputs, outputs, facts }))));
    }
    let axes = |name, count| {
        node.axes(name, 11)?;
        list(node, name, count)
    };
    let inputs = along(axes("scan_input_axes", scanned)?, reversed(node, "scan_input_directions", scanned)?);
    let outputs = along(axes("scan_output_axes", stacked)?, reversed(node, "scan_output_directions", stacked)?);
    Ok(Box::new(Scan(Arc::new(Signature { body, states, inputs, outputs, facts }))))
}

fn along(axes: Vec<i64>, reversed: Vec<bool>) -> Vec<Along> {
    axes.into_iter().zip(reversed).map(|(axis, reverse)| Along { axis, reverse }).collect()
}

/// An attribute with an integer for each of `count` tensors: 0 if it isn't given.
fn list(node: &Node<'_>, name: &str, count: usize) -> Result<Vec<i64>> {
    let list = if node.attribute(name).is_some() { node.ints(name)?.to_vec() } else { vec![0; count] };
    if list.len() != count {
        let text = format!("{name} has {} entries: {count} are needed", list.len());
        return Err(Error::model(text).attribute(name).size(list.len()));
    }
    Ok(list)
}

/// Directions: 0 is forward, 1 is reverse.
fn reversed(node: &Node<'_>, name: &str, count: usize) -> Result<Vec<bool>> {
    let reverse = |(k, direction)| match direction {
        0 => Ok(false),
        1 => Ok(true),
        _ => {
            let text = format!("{name}[{k}] is {direction}: allowed 0 (forward) and 1 (reverse)");
            Err(Error::model(text).attribute(name).value(direction).position(vec![k]))
        }
    };
    list(node, name, count)?.into_iter().enumerate().map(reverse).collect()
}

impl Control for Scan {
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
        let (inputs, length) = self.0.inputs(call, 0)?;
        let states = (0..self.0.states).map(|k| call.taken(k)).collect::<Result<Values>>()?;
        let mut running = Running { parts: self.0.parts(), sequence: Scanning::new(self.0.clone(), inputs, length) };
        Ok((running.next(states, call.context())?, Box::new(running)))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        self.0.infer(0, facts);
        let body = facts.body("body")?.1;
        for (k, fact) in body.inferred.iter().take(self.0.states).enumerate() {
            facts.give_fact(k, facts.input(k).map_or_else(Fact::default, |initial| fact.common(initial)));
        }
        let length = self.0.length(0, facts)?;
        // Without a trip the outputs have what is declared.
        let scans = body.stacked(matches!(length, Dim::Fixed(1..)));
        for ((k, along), fact) in (self.0.states..).zip(&self.0.outputs).zip(scans.skip(self.0.states)) {
            let Some(dims) = fact.dims() else { continue };
            let mut dims = dims.to_vec();
            let at = facts.place_of(along.axis, "scan_output_axes", dims.len() + 1)?;
            dims.insert(at, length.clone());
            facts.give(k, dims);
        }
        Ok(())
    }
}

impl Signature {
    /// What is known about the number of trips, which all scan inputs share. The states are the inputs from `first` on.
    pub(super) fn length(&self, first: usize, facts: &Inference<'_>) -> Result<Dim> {
        let mut length = Dim::Unknown;
        for (k, along) in (first + self.states..).zip(&self.inputs) {
            let Some(dims) = facts.dims(k) else { continue };
            let at = facts.place_of(along.axis, "scan_input_axes", dims.len())?;
            let own = dims.get(at).unwrap_or(&Dim::Unknown);
            length = length.both(own).ok_or_else(|| unequal(k, own, at, &length).axis(along.axis))?;
        }
        Ok(length)
    }

    /// The scan inputs, from the state variables after the input `first` on, each with its axis; their length.
    pub(super) fn inputs(&self, call: &Call<'_>, first: usize) -> Result<(Vec<(Tensor, usize)>, usize)> {
        let mut inputs = Vec::new();
        let mut length = None;
        for (k, along) in (first + self.states..).zip(&self.inputs) {
            let axis = call.axis(k, along.axis)?;
            let length = *length.get_or_insert(axis.size);
            if length != axis.size {
                let Axis { at, size, given } = axis;
                return Err(unequal(k, size, at, length).axis(given).size(size));
            }
            inputs.push((call.tensor(k)?.clone(), axis.at));
        }
        Ok((inputs, length.unwrap_or(0)))
    }

    /// Nothing yet of the outputs that are stacked.
    pub(super) fn parts(&self) -> Vec<Parts> {
        self.outputs.iter().map(|_| Parts::default()).collect()
    }

    /// What is known about the results that are stacked.
    pub(super) fn scans(&self) -> &[Fact] {
        self.facts.get(self.states..).unwrap_or(&[])
    }

    /// Gives what is known about the outputs. The states are the inputs from `first` on.
    pub(super) fn infer(&self, first: usize, facts: &mut Inference<'_>) {
        for (k, value_type) in self.facts.iter().enumerate().filter_map(|(k, fact)| Some((k, fact.value_type()?))) {
            if k >= self.states || facts.input_type(first + k) == Some(value_type) {
                facts.give_type(k, value_type.clone());
            }
        }
    }
}

#[cold]
fn unequal(k: usize, size: impl Display, at: usize, length: impl Display) -> Error {
    let text = format!("scan input {k} has {size} entries along axis {at}, others have {length}: they must be equal");
    Error::input(text)
}

/// The trips along one sequence.
#[derive(Debug)]
pub(super) struct Scanning {
    signature: Arc<Signature>,
    /// The scan inputs, each with its axis.
    inputs: Vec<(Tensor, usize)>,
    length: usize,
    /// The next trip.
    trip: usize,
}

impl Scanning {
    pub(super) fn new(signature: Arc<Signature>, inputs: Vec<(Tensor, usize)>, length: usize) -> Scanning {
        Scanning { signature, inputs, length, trip: 0 }
    }

    /// Starts the next trip, or ends with the last states.
    pub(super) fn next(&mut self, states: Values, context: &Context) -> Result<Step> {
        if self.trip == self.length {
            return Ok(Step::Done(states));
        }
        let mut feeds = states;
        for ((input, axis), along) in self.inputs.iter().zip(&self.signature.inputs) {
            let at = if along.reverse { self.length - 1 - self.trip } else { self.trip };
            feeds.push(entry(input, *axis, at, context)?);
        }
        self.trip += 1;
        Ok(Step::Enter { body: self.signature.body, feeds })
    }
}

/// A running scan.
#[derive(Debug)]
struct Running {
    sequence: Scanning,
    parts: Vec<Parts>,
}

impl Running {
    fn next(&mut self, states: Values, context: &Context) -> Result<Step> {
        let mut step = self.sequence.next(states, context)?;
        if let Step::Done(outputs) = &mut step {
            let signature = &self.sequence.signature;
            for ((parts, along), fact) in self.parts.drain(..).zip(&signature.outputs).zip(signature.scans()) {
                outputs.push(parts.stacked(along.axis, along.reverse, fact, context)?);
            }
        }
        Ok(step)
    }
}

impl Resume for Running {
    fn resume(&mut self, mut results: Values, context: &Context) -> Result<Step> {
        keep(&mut self.parts, &mut results, context)?;
        self.next(results, context)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{body, graph, int, ints, run};
    use super::*;
    use crate::ops::testing::{infer_with, tensor};

    /// `last, sums = ` the sums of the entries of `x` along an axis, after each.
    fn sums(opset: i64, attributes: &[(&str, i64)], start: &Value, x: &Value) -> Result<Vec<Value>> {
        let trip = graph(
            "before: float, entry: float",
            ["after = Add(before, entry)", "each = Identity(after)"],
            "after, each",
        );
        let mut given = vec![body("body", trip), int("num_scan_inputs", 1)];
        given.extend(attributes.iter().map(|(name, value)| ints(name, &[*value])));
        run(opset, "last, sums = Scan(start, x)", given, &[("start", start), ("x", x)])
    }

    #[test]
    fn axes_and_directions() {
        let (start, x) = (tensor::<f32>(&[2], [0.0, 10.0]), tensor::<f32>(&[2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let last = tensor::<f32>(&[2], [6.0, 25.0]);
        let sums = |opset, attributes: &[(&str, i64)]| sums(opset, attributes, &start, &x).unwrap();
        let (input, output) = ("scan_input_axes", "scan_output_axes");
        for opset in [9, 11, 16, 25] {
            let forward = tensor::<f32>(&[3, 2], [1.0, 14.0, 3.0, 19.0, 6.0, 25.0]);
            assert_eq!(sums(opset, &[(input, 1)]), [last.clone(), forward.clone()], "{opset}");
            assert_eq!(sums(opset, &[(input, 1), ("scan_input_directions", 0)]), [last.clone(), forward]);
            let backward = tensor::<f32>(&[3, 2], [3.0, 16.0, 5.0, 21.0, 6.0, 25.0]);
            assert_eq!(sums(opset, &[(input, 1), ("scan_input_directions", 1)]), [last.clone(), backward]);
            let turned = tensor::<f32>(&[3, 2], [6.0, 25.0, 3.0, 19.0, 1.0, 14.0]);
            assert_eq!(sums(opset, &[(input, 1), ("scan_output_directions", 1)]), [last.clone(), turned]);
            let inner = tensor::<f32>(&[2, 3], [1.0, 3.0, 6.0, 14.0, 19.0, 25.0]);
            assert_eq!(sums(opset, &[(input, 1), (output, 1)]), [last.clone(), inner.clone()]);
            assert_eq!(sums(opset, &[(input, -1), (output, -1)]), [last.clone(), inner]);
        }
    }

    #[test]
    fn no_trips() {
        let (start, x) = (tensor::<f32>(&[2], [0.0, 10.0]), tensor::<f32>(&[2, 0], []));
        let ran = sums(11, &[("scan_input_axes", 1)], &start, &x).unwrap();
        assert_eq!(ran, [start, tensor::<f32>(&[0], [])]);
    }

    #[test]
    fn several_states_and_sequences_and_what_is_around() {
        let trip = graph(
            "a: float, b: float, x: float, y: float",
            ["c = Add(a, x)", "d = Mul(b, y)", "e = Mul(c, k)"],
            "c, d, e",
        );
        let [one, two, three]: [Value; 3] = [1f32, 2.0, 3.0].map(|value| Tensor::scalar(value).into());
        let (x, y) = (tensor::<f32>(&[3], [1.0, 2.0, 3.0]), tensor::<f32>(&[3], [5.0, 6.0, 7.0]));
        let feeds = [("one", &one), ("two", &two), ("xs", &x), ("ys", &y), ("k", &three)];
        let attributes = |count| vec![body("body", trip.clone()), int("num_scan_inputs", count)];
        let ran = run(13, "last, product, all = Scan(one, two, xs, ys)", attributes(2), &feeds).unwrap();
        let want = [Tensor::scalar(7f32).into(), Tensor::scalar(420f32).into(), tensor::<f32>(&[3], [6.0, 12.0, 21.0])];
        assert_eq!(ran, want);
        let longer = tensor::<f32>(&[4], [0.0; 4]);
        let feeds = [("one", &one), ("two", &two), ("xs", &x), ("ys", &longer), ("k", &three)];
        let error = run(13, "last, product, all = Scan(one, two, xs, ys)", attributes(2), &feeds).unwrap_err();
        let text = "scan input 3 has 4 entries along axis 0, others have 3: they must be equal";
        assert!(error.to_string().ends_with(text), "{error}");
        for count in [0, 5, -1, i64::MIN] {
            let error = run(13, "last, product, all = Scan(one, two, xs, ys)", attributes(count), &feeds).unwrap_err();
            let text = format!("num_scan_inputs {count} is out of range: allowed 1..=4");
            assert!(error.to_string().ends_with(&text), "{error}");
        }
    }

    #[test]
    fn directions_are_0_or_1() {
        let (start, x) = (tensor::<f32>(&[1], [0.0]), tensor::<f32>(&[2, 1], [1.0, 2.0]));
        for name in ["scan_input_directions", "scan_output_directions"] {
            for direction in [2, -1, i64::MAX, i64::MIN] {
                let error = sums(13, &[(name, direction)], &start, &x).unwrap_err();
                let text = format!("node #0 (Scan-11): {name}[0] is {direction}: allowed 0 (forward) and 1 (reverse)");
                assert_eq!((error.kind(), error.to_string()), (Kind::Model, text));
                let place = error.place();
                assert_eq!((place.attribute.as_deref(), place.value), (Some(name), Some(direction.into())));
                assert_eq!(place.position.as_deref(), Some(&[0][..]));
            }
        }
    }

    #[test]
    fn axes_that_are_not_there() {
        let (start, x) = (tensor::<f32>(&[1], [0.0]), tensor::<f32>(&[2, 1], [1.0, 2.0]));
        let fails = |opset, name, axis, text: &str| {
            let error = sums(opset, &[(name, axis)], &start, &x).unwrap_err();
            assert!(error.to_string().ends_with(text), "{error}");
        };
        fails(
            11,
            "scan_input_axes",
            2,
            "axis 2 is out of range for \"initial_state_and_scan_inputs\" of shape [2, 1]: allowed -2..=1",
        );
        fails(11, "scan_output_axes", -3, "axis -3 is out of range for an output of rank 2: allowed -2..=1");
        let error = run(
            11,
            "last, sums = Scan(start, x)",
            vec![
                body("body", graph("a, b", ["c = Add(a, b)", "d = Add(a, b)"], "c, d")),
                int("num_scan_inputs", 1),
                ints("scan_input_axes", &[0, 0]),
            ],
            &[("start", &start), ("x", &x)],
        );
        assert!(error.unwrap_err().to_string().ends_with("scan_input_axes has 2 entries: 1 are needed"));
    }

    #[test]
    fn inferred() {
        let body: (&[&str], &[&str]) = (&["float[3]", "float"], &["float[3]", "float[2, C]"]);
        let scanned = || crate::ops::testing::int("num_scan_inputs", 1);
        let axes = |name| crate::ops::testing::ints(name, &[-1]);
        // Without a trip, a size that isn't fixed is 0.
        infer_with(body, "Scan", 9, [scanned()], ["float[3]", "float[T, 5]"]).gives_all(["[3]", "[T, 2, ?]"]);
        infer_with(body, "Scan", 11, [scanned(), axes("scan_output_axes")], ["float[?]", "float[7, 5]"])
            .gives_all(["[?]", "[2, C, 7]"]);
        infer_with(body, "Scan", 11, [scanned(), axes("scan_input_axes")], ["float[3]", "float[7, 5]"])
            .gives_all(["[3]", "[5, 2, C]"]);
        infer_with(body, "Scan", 8, [scanned()], ["-", "float[N, 3]", "float[N, 7, 5]"])
            .gives_all(["[N, 3]", "[N, 7, 2, ?]"]);
        let two = crate::ops::testing::int("num_scan_inputs", 2);
        infer_with(body, "Scan", 11, [two], ["float[7]", "float[6]"])
            .fails("scan input 1 has 6 entries along axis 0, others have 7: they must be equal");
    }
}
