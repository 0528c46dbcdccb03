//! `onnxref run`: runs a model once.

use crate::failure::{Failure, RUN};
use crate::feeds::Feeding;
use crate::options::Loading;
use crate::{Global, json, output, print};
use clap::Args;
use onnxref_view::json::Named;
use std::path::PathBuf;

/// Run a model and print its outputs, or write them to files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples, from the root of the repository:
  CASE=onnx-test-data/gather/onnx-1.12.0/node/test_gather_2d_indices
  onnxref run $CASE/model.onnx -i 'data=[[1, 2, 3], [4, 5, 6], [7, 8, 9]]' -i 'indices=[[0, 2]]'
  onnxref run $CASE/model.onnx -i data=$CASE/test_data_set_0/input_0.pb -i 'indices=[[0, -1]]' -o y=y.npy
  onnxref run $CASE/model.onnx --inputs $CASE/test_data_set_0 --json

Exit status:
  0  success
  2  wrong usage: an unknown, missing or doubled input, an unknown output, a file that can't be read or written
  3  the model can't be loaded
  4  the run failed")]
pub(crate) struct Arguments {
    /// The model: an .onnx file, or the .xml file of an OpenVINO IR
    model: PathBuf,

    /// Write an output to a .pb file (a TensorProto) or a .npy file
    ///
    /// Files are written after the run has succeeded, each completely or not at all. If the program is killed while
    /// writing, it may leave temporary files .onnxref-* beside them. If the model has one output, NAME= may be omitted.
    #[arg(short, long, value_name = "NAME=FILE")]
    output: Vec<String>,

    #[command(flatten)]
    feeding: Feeding,

    #[command(flatten)]
    loading: Loading,
}

pub(crate) fn run(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let model = arguments.loading.load(&arguments.model)?;
    let files = output::files(&arguments.output, &model)?;
    let inputs = arguments.feeding.inputs(&model)?;
    let outputs = model.run_with(inputs.into_iter().collect(), &arguments.loading.cancel()).map_err(Failure::run)?;
    outputs.notes().iter().for_each(|text| print::note(text));
    output::write(&files, &outputs)?;
    match (global.json, files.as_slice()) {
        (true, _) => json::line(&Document { outputs: Named(&outputs) })?,
        (false, []) => {
            print::outputs(&outputs).map_err(|e| Failure::new(RUN, format!("standard output: {e}")))?;
        }
        (false, _) => {}
    }
    Ok(0)
}

#[derive(serde::Serialize)]
struct Document<'a> {
    outputs: Named<'a>,
}
