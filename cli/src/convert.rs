//! `onnxref convert`: a model of a later opset.

use crate::Global;
use crate::edit::Editing;
use crate::failure::{Failure, LOAD};
use crate::report;
use clap::Args;
use onnxref::Kind;

/// So many refused nodes are named.
const SHOWN: usize = 10;

/// Write a model of a later opset
#[derive(Debug, Args)]
#[command(after_help = "\
Nodes whose operators changed in form only are rewritten: attributes that became inputs become
constants, and what another default would change is stated. If others are among them, or types that
the opset doesn't take, nothing is written, and each is named with its reason. Bodies and functions
are converted too; domains other than ai.onnx stay. Both models run on random inputs or those of -i,
and nothing is written if what they give differs in a bit.

Example, from the root of the repository:
  CASE=onnx-test-data/gather/onnx-1.1.2/pytorch-converted/test_Embedding
  onnxref convert $CASE/model.onnx --opset 22 -o /tmp/later.onnx")]
pub(crate) struct Arguments {
    /// The opset of ai.onnx
    #[arg(long, value_name = "VERSION")]
    opset: i64,

    #[command(flatten)]
    editing: Editing,
}

pub(crate) fn convert(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let Arguments { editing, opset } = arguments;
    let before = editing.read()?;
    let mut after = before.clone();
    let mut found = editing.inspect(&before)?;
    // What isn't implemented here may be converted.
    if let Some(error) = found.error.take().filter(|error| error.kind() != Kind::Unsupported) {
        return Err(editing.unloadable(error));
    }
    after.convert(&found, *opset).map_err(|error| match error.kind() {
        Kind::Input => Failure::usage(format!("--opset: {error:#}")),
        _ => {
            let causes: Vec<_> = error.causes().iter().collect();
            let details = report::list(&causes, error.fault_count(), SHOWN);
            let message = format!("the model can't be converted to opset {opset}, and nothing is written");
            Failure { details, error: Some(error), ..Failure::new(LOAD, message) }
        }
    })?;
    editing.finish(&before, after, |_| Ok(None), &str::to_string, global)
}
