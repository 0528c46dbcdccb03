//! Scan in version 8: a scan for each entry of a batch.

use super::parts::{Parts, entry, keep};
use super::scan::{Scanning, Signature};
use crate::ops::prelude::*;

/// Scan for each entry of axis 0 of all inputs. `sequence_lens` says how many trips each entry has, by default as many as
/// the scan inputs have entries along axis 1: what stays of the outputs is 0.
#[derive(Debug)]
pub(super) struct Batch(pub(super) Arc<Signature>);

impl Control for Batch {
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
        let (inputs, length) = self.0.inputs(call, 1)?;
        let initial = (1..=self.0.states).map(|k| call.taken(k)).collect::<Result<Values>>()?;
        let size = inputs.first().and_then(|(input, _)| input.shape().first().copied()).unwrap_or(0);
        let states = initial.iter().filter_map(|state| state?.tensor().ok());
        for tensor in states.chain(inputs.iter().map(|(input, _)| input)) {
            if tensor.shape().first() != Some(&size) {
                let shape = ShapeText(tensor.shape());
                return Err(Error::input(format!("an input has shape {shape}: its axis 0 must be the batch, {size}")));
            }
        }
        let lengths = lengths(call, size, length)?;
        let (states, scans) = (initial.iter().map(|_| Parts::default()).collect(), self.0.parts());
        let entries = Entries { initial, inputs, length, lengths, size };
        let mut running = Running { signature: self.0.clone(), entries, next: 0, sequence: None, states, scans };
        Ok((running.begin(call.context())?, Box::new(running)))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        self.0.infer(1, facts);
        let batch = facts.dims(1).and_then(<[Dim]>::first).cloned().unwrap_or(Dim::Unknown);
        let body = facts.body("body")?.1;
        for (k, fact) in body.inferred.iter().take(self.0.states).enumerate() {
            if let (Some(dims), Some(initial)) = (fact.dims(), facts.input(1 + k)) {
                let state = fact.clone().with_dims([std::slice::from_ref(&batch), dims].concat());
                facts.give_fact(k, state.common(initial));
            }
        }
        let sizes = [batch, self.0.length(1, facts)?];
        // Without a trip the outputs have what is declared.
        for (k, fact) in (self.0.states..).zip(body.stacked(false).skip(self.0.states)) {
            if let Some(dims) = fact.dims() {
                facts.give(k, [&sizes, dims].concat());
            }
        }
        Ok(())
    }
}

/// The checked `sequence_lens`, if they are given.
fn lengths(call: &Call<'_>, size: usize, length: usize) -> Result<Option<Tensor>> {
    let Some(given) = call.optional_tensor(0)? else { return Ok(None) };
    let good = |given: &i64| usize::try_from(*given).is_ok_and(|given| given <= length);
    if given.shape() != [size] || !given.as_slice()?.iter().all(good) {
        let text = format!("sequence_lens must have {size} entries from 0 to {length}");
        return Err(Error::input(text).parameter("sequence_lens"));
    }
    Ok(Some(given.clone()))
}

/// The entries of a batch.
#[derive(Debug)]
struct Entries {
    /// The initial states and the scan inputs, these with their axis.
    initial: Values,
    inputs: Vec<(Tensor, usize)>,
    /// The number of trips of each entry, unless `lengths` has them.
    length: usize,
    lengths: Option<Tensor>,
    /// The number of entries.
    size: usize,
}

impl Entries {
    /// The number of trips of an entry.
    fn length(&self, at: usize) -> Result<usize> {
        let lengths = self.lengths.as_ref().map(Tensor::as_slice::<i64>).transpose()?;
        Ok(lengths.and_then(|lengths| lengths.get(at)).map_or(self.length, |length| *length as usize))
    }
}

/// A running batch.
#[derive(Debug)]
struct Running {
    signature: Arc<Signature>,
    entries: Entries,
    /// The next entry, and the trips of the last one.
    next: usize,
    sequence: Option<Scanning>,
    /// The last states of the entries, and the results of all trips.
    states: Vec<Parts>,
    scans: Vec<Parts>,
}

impl Running {
    /// Starts the next entry. One without trips ends at once.
    fn begin(&mut self, context: &Context) -> Result<Step> {
        while self.next < self.entries.size {
            // It may have no nodes that count.
            context.next_node(0)?;
            let at = self.next;
            self.next += 1;
            let (mut states, mut inputs) = (Values::new(), Vec::new());
            for state in self.entries.initial.iter().flatten() {
                states.push(entry(state.tensor()?, 0, at, context)?);
            }
            let length = self.entries.length(at)?;
            if length == 0 {
                self.end(states, context)?;
                continue;
            }
            for (input, axis) in &self.entries.inputs {
                inputs.push((entry(input, 0, at, context)?, axis - 1));
            }
            return self.sequence.insert(Scanning::new(self.signature.clone(), inputs, length)).next(states, context);
        }
        self.finish(context).map(Step::Done)
    }

    /// Keeps the last states of an entry.
    fn end(&mut self, states: Values, context: &Context) -> Result<()> {
        self.states.iter_mut().zip(states).try_for_each(|(parts, state)| parts.push(state, context))
    }

    /// The outputs of the node.
    fn finish(&mut self, context: &Context) -> Result<Values> {
        let (size, length) = (self.entries.size, self.entries.length);
        let mut outputs = Values::new();
        if size == 0 {
            outputs = std::mem::take(&mut self.entries.initial);
        } else {
            for parts in self.states.drain(..) {
                outputs.push(parts.stacked(0, false, &Fact::default(), context)?);
            }
        }
        let lengths = (0..size).map(|at| self.entries.length(at));
        for (parts, fact) in self.scans.drain(..).zip(self.signature.scans()) {
            outputs.push(parts.batched([size, length], lengths.clone(), fact, context)?);
        }
        Ok(outputs)
    }
}

impl Resume for Running {
    fn resume(&mut self, mut results: Values, context: &Context) -> Result<Step> {
        keep(&mut self.scans, &mut results, context)?;
        let sequence = self.sequence.as_mut().ok_or_else(|| Error::bug("a body ended that no entry started"))?;
        match sequence.next(results, context)? {
            Step::Done(states) => {
                self.end(states, context)?;
                self.begin(context)
            }
            enter => Ok(enter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{body, graph, int, ints, run};
    use super::*;
    use crate::ops::testing::tensor;

    fn attributes(directions: &[i64]) -> Vec<crate::onnx::proto::AttributeProto> {
        let nodes = ["after = Add(before, entry)", "each = Mul(after, k)"];
        let trip = graph("before: float, entry: float", nodes, "after, each");
        vec![body("body", trip), int("num_scan_inputs", 1), ints("directions", directions)]
    }

    /// `last, sums = ` the sums of `entries[b, t, ..]` for each `b`, after each `t`, and these times 2.
    fn sums(lengths: Option<&[i64]>, direction: i64, start: &Value, entries: &Value) -> Result<Vec<Value>> {
        let k = Tensor::scalar(2f32).into();
        let given = lengths.map(|lengths| tensor(&[lengths.len()], lengths));
        let mut feeds = vec![("start", start), ("entries", entries), ("k", &k)];
        feeds.extend(given.as_ref().map(|given| ("lengths", given)));
        let text = ["last, sums = Scan(-, start, entries)", "last, sums = Scan(lengths, start, entries)"];
        run(8, text[usize::from(given.is_some())], attributes(&[direction]), &feeds)
    }

    #[test]
    fn each_entry_has_its_length() {
        let start = tensor::<f32>(&[3, 1], [0.0, 10.0, 20.0]);
        let entries = tensor::<f32>(&[3, 2, 1], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let gives = |lengths: Option<&[i64]>, direction, last: [f32; 3], all: [f32; 6]| {
            let ran = sums(lengths, direction, &start, &entries).unwrap();
            assert_eq!(ran, [tensor::<f32>(&[3, 1], last), tensor::<f32>(&[3, 2, 1], all)], "{lengths:?}");
        };
        gives(None, 0, [3.0, 17.0, 31.0], [2.0, 6.0, 26.0, 34.0, 50.0, 62.0]);
        gives(None, 1, [3.0, 17.0, 31.0], [4.0, 6.0, 28.0, 34.0, 52.0, 62.0]);
        gives(Some(&[2, 2, 2]), 0, [3.0, 17.0, 31.0], [2.0, 6.0, 26.0, 34.0, 50.0, 62.0]);
        gives(Some(&[2, 0, 1]), 0, [3.0, 10.0, 25.0], [2.0, 6.0, 0.0, 0.0, 50.0, 0.0]);
        // What is read backwards begins at the end of its own length.
        gives(Some(&[0, 1, 2]), 1, [0.0, 13.0, 31.0], [0.0, 0.0, 26.0, 0.0, 52.0, 62.0]);
    }

    #[test]
    fn nothing_to_do() {
        let start = tensor::<f32>(&[2, 1], [1.0, 2.0]);
        // The sizes of results are unknown if no trip tells them.
        let ran = sums(Some(&[0, 0]), 0, &start, &tensor::<f32>(&[2, 3, 1], [0.0; 6])).unwrap();
        assert_eq!(ran, [start.clone(), tensor::<f32>(&[2, 3], [0.0; 6])]);
        let ran = sums(None, 0, &start, &tensor::<f32>(&[2, 0, 1], [])).unwrap();
        assert_eq!(ran, [start, tensor::<f32>(&[2, 0], [])]);
        let none = tensor::<f32>(&[0, 1], []);
        let ran = sums(None, 0, &none, &tensor::<f32>(&[0, 3, 1], [])).unwrap();
        assert_eq!(ran, [none, tensor::<f32>(&[0, 3], [])]);
    }

    #[test]
    fn strings() {
        let trip = graph("a: string, b: string", ["c = Identity(b)", "d = Identity(a)"], "c, d");
        let attributes = vec![body("body", trip), int("num_scan_inputs", 1)];
        let strings = |shape: &[usize], list: &[&str]| Value::from(Tensor::from_strings(shape, list).unwrap());
        let (start, x) = (strings(&[2], &["s", "t"]), strings(&[2, 3], &["a", "b", "c", "d", "e", "f"]));
        let lengths = tensor::<i64>(&[2], [2, 1]);
        let feeds = [("lengths", &lengths), ("start", &start), ("x", &x)];
        let ran = run(8, "last, all = Scan(lengths, start, x)", attributes, &feeds).unwrap();
        assert_eq!(ran, [strings(&[2], &["b", "d"]), strings(&[2, 3], &["s", "a", "", "t", "", ""])]);
    }

    #[test]
    fn refusals() {
        let (start, entries) = (tensor::<f32>(&[2, 1], [0.0; 2]), tensor::<f32>(&[2, 3, 1], [0.0; 6]));
        for lengths in [&[1i64, 4][..], &[-1, 1], &[1], &[1, 1, 1], &[]] {
            let error = sums(Some(lengths), 0, &start, &entries).unwrap_err();
            let text = "node #0 (Scan-8): sequence_lens must have 2 entries from 0 to 3";
            assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Input, text));
        }
        let error = sums(None, 0, &tensor::<f32>(&[3, 1], [0.0; 3]), &entries).unwrap_err();
        assert!(error.to_string().ends_with("an input has shape [3, 1]: its axis 0 must be the batch, 2"), "{error}");
        let error = sums(None, 2, &start, &entries).unwrap_err();
        assert!(error.to_string().ends_with("directions[0] is 2: allowed 0 (forward) and 1 (reverse)"), "{error}");
    }
}
