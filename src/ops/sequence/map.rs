//! SequenceMap: runs a subgraph for each element of a sequence.
//! <https://onnx.ai/onnx/operators/onnx__SequenceMap.html>

use crate::ops::prelude::*;

pub(super) const SEQUENCE_MAP: Implementation = Implementation::control("SequenceMap", &[17], load);

/// `out_sequence[i].. = body(input_sequence[i], additional_inputs..)`, where of a sequence in `additional_inputs` it is
/// the element `i` too
#[derive(Debug)]
struct SequenceMap {
    body: usize,
    /// What is known about the results of the body.
    facts: Arc<[Fact]>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Control>> {
    let (body, facts) = node.body("body")?;
    facts.check_counts(node.input_count(), node.output_count())?;
    Ok(Box::new(SequenceMap { body, facts: facts.outputs.as_slice().into() }))
}

impl Control for SequenceMap {
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
        let len = call.sequence(0)?.values().len();
        let inputs = (0..call.input_count()).map(|k| call.taken(k)).collect::<Result<Values>>()?;
        for (k, input) in inputs.iter().enumerate() {
            if let Some(Value::Sequence(sequence)) = input
                && sequence.values().len() != len
            {
                let (name, own) = (quote(call.name(k)), sequence.values().len());
                let text = format!(
                    "input {k}, of {name}, has {own} elements, and \"input_sequence\" has {len}: they must be equal"
                );
                return Err(Error::input(text).parameter(call.name(k)).size(own));
            }
        }
        let context = call.context();
        let element = |fact: &Fact| context.sequence(fact.value_type().cloned(), len);
        let outputs = self.facts.iter().map(element).collect::<Result<_>>()?;
        let mut samples = Samples { body: self.body, inputs, outputs, len, at: 0 };
        Ok((samples.next(), Box::new(samples)))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        for (k, element) in self.facts.iter().enumerate().filter_map(|(k, fact)| Some((k, fact.value_type()?))) {
            facts.give_type(k, element.clone().sequence());
        }
        Ok(())
    }
}

/// A running call.
#[derive(Debug)]
struct Samples {
    body: usize,
    inputs: Values,
    outputs: Vec<Sequence>,
    /// The number of elements, and the next one.
    len: usize,
    at: usize,
}

impl Samples {
    fn next(&mut self) -> Step {
        if self.at == self.len {
            return Step::Done(self.outputs.drain(..).map(Value::from).collect());
        }
        let feed = |input: &Value| match input {
            Value::Sequence(sequence) => sequence.values().get(self.at).cloned(),
            other => Some(other.clone()),
        };
        let feeds = self.inputs.iter().flatten().filter_map(feed).collect();
        self.at += 1;
        Step::Enter { body: self.body, feeds }
    }
}

impl Resume for Samples {
    fn resume(&mut self, results: Values, context: &Context) -> Result<Step> {
        for (output, value) in self.outputs.iter_mut().zip(results) {
            output.push(value.into_tensor()?.into(), &context.memory)?;
        }
        Ok(self.next())
    }
}
