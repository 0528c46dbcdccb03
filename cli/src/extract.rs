//! `onnxref extract`: the part of a model that computes some values.

use crate::edit::{Editing, unknown};
use crate::failure::Failure;
use crate::{Global, print};
use clap::Args;
use onnxref::quote;

/// Write the part of a model that computes some values from others
#[derive(Debug, Args)]
#[command(after_help = "\
Names are those of values of the graph: `onnxref inspect` lists them. Bodies of If, Loop and Scan
stay whole, with what they read from around them; values inside of them can't be inputs or
outputs. Types of new inputs and outputs are those that follow from the model. What is changed is
proved: both models run on random inputs or those of -i, and nothing is written if the outputs
differ in a bit.

Example, from the root of the repository:
  CASE=onnx-test-data/gather/onnx-1.1.2/pytorch-converted/test_Embedding
  onnxref extract $CASE/model.onnx --outputs 2 -o /tmp/part.onnx
  onnxref extract model.onnx --inputs hidden --outputs logits -o head.onnx")]
pub(crate) struct Arguments {
    /// Values that become the inputs; without it those of the model that are needed
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    inputs: Option<Vec<String>>,

    /// Values that become the outputs; without it those of the model
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    outputs: Option<Vec<String>>,

    #[command(flatten)]
    editing: Editing,
}

pub(crate) fn extract(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let Arguments { editing, inputs, outputs } = arguments;
    if inputs.is_none() && outputs.is_none() {
        return Err(Failure::usage("--inputs or --outputs is missing: names of values"));
    }
    let before = editing.read()?;
    let mut after = before.clone();
    let types = editing.types(&before);
    let unused = after.extract(inputs.as_deref(), outputs.as_deref(), &types).map_err(|error| {
        let name = error.place().value_name.clone().unwrap_or_default();
        let is_input = inputs.iter().flatten().any(|input| *input == name);
        let is_output = outputs.iter().flatten().any(|output| *output == name);
        unknown(if is_input || !is_output { "--inputs" } else { "--outputs" }, &error, &before)
    })?;
    unused.iter().for_each(|name| print::note(&format!("no output depends on input {}", quote(name))));
    for info in after.graph.inputs.iter().chain(&after.graph.outputs).filter(|info| info.value_type.is_none()) {
        print::note(&format!("the type of {} is not known", quote(&info.name)));
    }
    editing.finish(&before, after, |_| Ok(None), &str::to_string, global)
}
