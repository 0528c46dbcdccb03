//! Scan: runs a subgraph for each entry of tensors along an axis.
//! <https://onnx.ai/onnx/operators/onnx__Scan.html>

use super::parts::{Parts, entry};
use crate::ops::prelude::*;

pub(super) const SCAN: Implementation = Implementation {
    domain: "",
    name: "Scan",
    versions: &[8, 9, 11, 16, 19, 21, 23, 24, 25],
    make: Make::Control(load),
};

/// `state, scan_output[.., t, ..] = body(state, scan_input[.., t, ..])` for all `t`; the outputs are the last `state` and
/// the stacked `scan_output`.
///
/// Version 8 does that for each entry of a batch, axis 0 of all inputs, and as often as `sequence_lens` says: what
/// stays of its outputs is 0.
#[derive(Debug)]
struct Scan {
    body: usize,
    batch: bool,
    /// The number of state variables.
    states: usize,
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
    let (inputs, outputs) = if batch {
        (along(node, None, "directions", scanned)?, vec![Along { axis: 0, reverse: false }; stacked])
    } else {
        let inputs = along(node, Some("scan_input_axes"), "scan_input_directions", scanned)?;
        (inputs, along(node, Some("scan_output_axes"), "scan_output_directions", stacked)?)
    };
    Ok(Box::new(Scan { body, batch, states, inputs, outputs, facts: facts.outputs.clone() }))
}

/// The axes and directions of `count` tensors, from two attributes.
fn along(node: &Node<'_>, axes: Option<&str>, directions: &str, count: usize) -> Result<Vec<Along>> {
    let list = |name: &str| {
        let list = if node.attribute(name).is_some() { node.ints(name)?.to_vec() } else { vec![0; count] };
        if list.len() != count {
            let text = format!("{name} has {} entries: {count} are needed", list.len());
            return Err(Error::model(text).attribute(name).size(list.len()));
        }
        Ok(list)
    };
    let axes = axes.map_or(Ok(vec![0; count]), list)?;
    let directions = list(directions)?;
    if node.version() < 11
        && let Some(axis) = axes.iter().find(|axis| **axis < 0)
    {
        return Err(
            Error::model(format!("axis {axis} is negative, which is allowed from version 11 on only")).value(*axis)
        );
    }
    Ok(axes.into_iter().zip(directions).map(|(axis, direction)| Along { axis, reverse: direction != 0 }).collect())
}

impl Control for Scan {
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
        let first = usize::from(self.batch);
        let mut inputs = Vec::new();
        let mut length = None;
        for (k, along) in (first + self.states..).zip(&self.inputs) {
            let axis = if self.batch { call.axis(k, 1)? } else { call.axis(k, along.axis)? };
            if *length.get_or_insert(axis.size) != axis.size {
                let text = format!(
                    "scan input {k} has {} entries along axis {}, others have {}: they must be equal",
                    axis.size,
                    axis.at,
                    length.unwrap_or(0)
                );
                return Err(Error::input(text).axis(axis.given).size(axis.size));
            }
            inputs.push((call.tensor(k)?.clone(), axis.at, along.reverse));
        }
        let length = length.unwrap_or(0);
        let states = (first..first + self.states).map(|k| call.taken(k)).collect::<Result<Values>>()?;
        let lengths = if self.batch { self.lengths(call, length, &inputs, &states)? } else { vec![length] };
        let mut running = Running {
            body: self.body,
            batch: self.batch,
            initial: states,
            inputs,
            scanned: Vec::new(),
            outputs: self.outputs.clone(),
            facts: self.facts.clone(),
            length,
            lengths,
            entry: 0,
            trip: 0,
            parts: Vec::new(),
            batched: Vec::new(),
        };
        Ok((running.begin(call.context())?, Box::new(running)))
    }

    fn infer(&self, inputs: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        let initial = inputs.iter().skip(usize::from(self.batch)).map(|fact| fact.and_then(Fact::value_type));
        let (states, scans) = self.facts.split_at(self.states.min(self.facts.len()));
        let kept = |(fact, initial): (&Fact, Option<&ValueType>)| match fact.value_type() {
            Some(own) if Some(own) == initial => Fact::of_type(own.clone()),
            _ => Fact::default(),
        };
        let stacked =
            scans.iter().map(|fact| fact.value_type().map_or_else(Fact::default, |own| Fact::of_type(own.clone())));
        Ok(states.iter().zip(initial).map(kept).chain(stacked).collect())
    }
}

impl Scan {
    /// The number of trips for each entry of the batch.
    fn lengths(
        &self,
        call: &Call<'_>,
        length: usize,
        inputs: &[(Tensor, usize, bool)],
        states: &Values,
    ) -> Result<Vec<usize>> {
        let size = inputs.first().and_then(|(input, ..)| input.shape().first().copied()).unwrap_or(0);
        let tensors =
            states.iter().filter_map(|state| state.tensor().ok()).chain(inputs.iter().map(|(input, ..)| input));
        for shape in tensors.map(Tensor::shape) {
            if shape.first() != Some(&size) {
                let shape = ShapeText(shape);
                return Err(Error::input(format!("an input has shape {shape}: its axis 0 must be the batch, {size}")));
            }
        }
        let Some(given) = call.optional_tensor(0)? else { return Ok(vec![length; size]) };
        let given = given.as_slice::<i64>()?;
        let good = |given: &i64| usize::try_from(*given).ok().filter(|given| *given <= length);
        let lengths = given.iter().map(good).collect::<Option<Vec<usize>>>().filter(|lengths| lengths.len() == size);
        lengths.ok_or_else(|| {
            let text = format!("sequence_lens must have {size} entries from 0 to {length}");
            Error::input(text).parameter("sequence_lens")
        })
    }
}

/// A running scan.
#[derive(Debug)]
struct Running {
    body: usize,
    batch: bool,
    initial: Values,
    /// Each with its axis, and whether it is read backwards.
    inputs: Vec<(Tensor, usize, bool)>,
    /// The same for this entry of the batch.
    scanned: Vec<(Tensor, usize, bool)>,
    outputs: Vec<Along>,
    facts: Vec<Fact>,
    length: usize,
    /// For each entry of the batch the number of trips. Without a batch there is one.
    lengths: Vec<usize>,
    /// The entry of the batch, and its next trip.
    entry: usize,
    trip: usize,
    /// The outputs of the trips for this entry.
    parts: Vec<Parts>,
    /// The results for entries of the batch.
    batched: Vec<Parts>,
}

impl Running {
    /// Starts with an entry of the batch; ends after the last one.
    fn begin(&mut self, context: &Context) -> Result<Step> {
        if self.entry == self.lengths.len() {
            let mut results = Values::new();
            self.batched.resize_with(self.facts.len(), Parts::default);
            for (parts, fact) in self.batched.drain(..).zip(&self.facts) {
                results.push(parts.stacked(0, false, fact, context)?.into());
            }
            return Ok(Step::Done(results));
        }
        self.trip = 0;
        self.parts = self.outputs.iter().map(|_| Parts::default()).collect();
        if !self.batch {
            self.scanned = std::mem::take(&mut self.inputs);
            let states = std::mem::take(&mut self.initial);
            return self.next(states, context);
        }
        let mut states = self.initial.clone();
        for state in &mut states {
            *state = entry(state.tensor()?, 0, self.entry, context)?.into();
        }
        self.scanned.clear();
        for (input, axis, reverse) in &self.inputs {
            self.scanned.push((entry(input, 0, self.entry, context)?, axis - 1, *reverse));
        }
        self.next(states, context)
    }

    /// Starts the next trip, or ends the entry.
    fn next(&mut self, states: Values, context: &Context) -> Result<Step> {
        let length = self.lengths.get(self.entry).copied().unwrap_or(0);
        if self.trip < length {
            let mut feeds = states;
            for (input, axis, reverse) in &self.scanned {
                let at = if *reverse { length - 1 - self.trip } else { self.trip };
                feeds.push(entry(input, *axis, at, context)?.into());
            }
            self.trip += 1;
            return Ok(Step::Enter { body: self.body, feeds });
        }
        let mut results = states;
        let facts = self.facts.iter().skip(results.len());
        for ((mut parts, along), fact) in self.parts.drain(..).zip(&self.outputs).zip(facts) {
            if self.batch {
                parts.fill_up(self.length, fact, context)?;
            }
            results.push(parts.stacked(along.axis, along.reverse, fact, context)?.into());
        }
        if !self.batch {
            return Ok(Step::Done(results));
        }
        self.batched.resize_with(results.len(), Parts::default);
        for (parts, result) in self.batched.iter_mut().zip(results) {
            parts.push(result, context)?;
        }
        self.entry += 1;
        self.begin(context)
    }
}

impl Resume for Running {
    fn resume(&mut self, mut results: Values, context: &Context) -> Result<Step> {
        let scans = results.drain(results.len().saturating_sub(self.parts.len())..);
        for (parts, value) in self.parts.iter_mut().zip(scans) {
            parts.push(value, context)?;
        }
        self.next(results, context)
    }
}
