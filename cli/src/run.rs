//! `onnxref run`: runs a model once.

use crate::failure::{Failure, RUN};
use crate::options::Loading;
use crate::{feeds, json, output, print, report};
use clap::Args;
use onnxref::Model;
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

    /// An input: a .pb file (a TensorProto), a .npy file, or JSON such as 3, '[1, -1]', '[[1.5, "NaN"]]', '["a"]'
    ///
    /// Elements of JSON have the type that the model declares; complex numbers are pairs, [re, im]. A decimal is
    /// rounded to the nearest value of the type; an integer that the type can't hold exactly is an error. If the model
    /// has one input, NAME= may be omitted.
    #[arg(short, long, value_name = "NAME=VALUE", allow_negative_numbers = true)]
    input: Vec<String>,

    /// Feed the files input_0.pb, input_1.pb, .. of a folder, such as test_data_set_0 of a test case
    ///
    /// Files match the model's inputs by position, including those with an initializer.
    #[arg(long, value_name = "DIR")]
    inputs: Option<PathBuf>,

    /// Write an output to a .pb file (a TensorProto) or a .npy file
    ///
    /// Files are written after the run has succeeded, each completely or not at all. If the program is killed while
    /// writing, it may leave temporary files .onnxref-* beside them. If the model has one output, NAME= may be omitted.
    #[arg(short, long, value_name = "NAME=FILE")]
    output: Vec<String>,

    /// Print outputs and errors as JSON
    ///
    /// Outputs: {"outputs": {NAME: {"dtype": .., "shape": .., "values": [..]}}}. Values are in row-major order and read
    /// back exactly; "NaN", "inf" and "-inf" are strings, complex numbers are pairs.
    ///
    /// An error: {"error": {"kind": .., "message": .., "faults": N, "causes": [..], "needs": ..}}, also on standard
    /// output. Each cause has a kind, a message and, if known, node_index, node, operator, domain, version, function,
    /// value_name, parameter, attribute, axis, size, value, position and limit; needs lists the operators that are not
    /// implemented. The exit status and standard error are as without --json.
    #[arg(long, verbatim_doc_comment)]
    pub(crate) json: bool,

    #[command(flatten)]
    loading: Loading,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = load(arguments)?;
    let files = output::files(&arguments.output, &model)?;
    let inputs = feeds::inputs(&model, &arguments.input, arguments.inputs.as_deref())?;
    let outputs = model.run(inputs).map_err(Failure::run)?;
    outputs.notes().iter().for_each(|text| print::note(text));
    output::write(&files, &outputs)?;
    let printed = match (arguments.json, files.as_slice()) {
        (true, _) => json::print(&outputs),
        (false, []) => print::table(&outputs),
        (false, _) => Ok(()),
    };
    printed.map_err(|e| Failure::new(RUN, format!("standard output: {e}")))
}

fn load(arguments: &Arguments) -> Result<Model, Failure> {
    let model = arguments.loading.options()?.load(&arguments.model);
    let model = model.map_err(|error| report::load(&arguments.model.to_string_lossy(), error))?;
    model.report().iter().for_each(|text| print::note(text));
    Ok(model)
}
