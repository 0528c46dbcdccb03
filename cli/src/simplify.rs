//! `onnxref simplify`: a model without what needn't run.

use crate::Global;
use crate::edit::Editing;
use crate::failure::Failure;
use clap::Args;

/// Write a model with its constants computed, and without nodes that needn't run
#[derive(Debug, Args)]
#[command(after_help = "\
Nodes that give the same in every run become constants. Identity goes, and so does all that no
output depends on; in bodies too. Random operators, DequantizeLinear, inputs, outputs and called
functions stay. Both models run on random inputs or those of -i, and nothing is written if what
they give differs in a bit.

Example, from the root of the repository:
  CASE=onnx-test-data/gather/onnx-1.1.2/pytorch-converted/test_Embedding
  onnxref simplify $CASE/model.onnx -o /tmp/simple.onnx")]
pub(crate) struct Arguments {
    /// Leave constants of more bytes to nodes
    ///
    /// A small node may make a large constant, such as ConstantOfShape: the file would grow.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    max_bytes: u64,

    #[command(flatten)]
    editing: Editing,
}

pub(crate) fn simplify(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let Arguments { editing, max_bytes } = arguments;
    let before = editing.read()?;
    let mut after = before.clone();
    let found = editing.inspect(&before)?;
    if let Some(error) = found.error {
        return Err(editing.unloadable(error));
    }
    after.simplify(&found, *max_bytes).map_err(|error| editing.unloadable(error))?;
    editing.finish(&before, after, |_| Ok(None), &str::to_string, global)
}
