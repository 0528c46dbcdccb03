//! `onnxref diff`: how two models differ in structure.

mod changes;
mod matching;
mod picture;
mod report;
mod side;

use crate::failure::{FAILED, Failure};
use crate::options::{Loading, shown};
use crate::{Global, output};
use changes::Found;
use clap::Args;
use std::path::PathBuf;

/// Show how two models differ: nodes, attributes, shapes, weights
#[derive(Debug, Args)]
#[command(after_help = "\
Nodes are matched by what they compute from the inputs and what becomes of that in the outputs,
then by their neighbours and their order. Names decide between equals only: nodes that are only
renamed are the same. Inputs and outputs belong together by name, those of bodies by position.
Attributes with their default are as omitted ones, Constant nodes as initializers; functions are
expanded.

Example:
  onnxref diff before.onnx after.onnx
  onnxref diff before.onnx after.onnx --svg changes.svg

Exit status:
  0  the models are the same
  1  they differ
  2  wrong usage, or a file that can't be written
  3  a model can't be read")]
pub(crate) struct Arguments {
    /// A model: an .onnx file, the .xml file of an OpenVINO IR, or - for standard input
    a: PathBuf,

    /// Another model
    b: PathBuf,

    /// Draw both graphs as one to an SVG file, or - for standard output: what is added, removed and changed has colours
    ///
    /// Bodies of nodes are drawn as B has them; ≠ stands at those that differ.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    loading: Loading,
}

pub(crate) fn diff(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    if let Some(path) = &arguments.svg {
        output::beside_json("--svg", path, global)?;
        output::spare("--svg", path, [&*arguments.a, &*arguments.b])?;
    }
    if let Some(path) = arguments.svg.as_deref().filter(|path| !output::is_stdout(path)) {
        let wrong = |e| Failure::usage(format!("--svg {}: the file can't be written: {e}", shown(path)));
        output::check_writable(path).map_err(wrong)?;
    }
    let read = |path| arguments.loading.inspect_as(path, |options| options.optimize(false));
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    let (found, matching) = Found::new(&a.graph, &b.graph);
    let report = report::Report::new(&a, &b, &found);
    if let Some(path) = &arguments.svg {
        let name = format!("{} → {}", shown(&arguments.a), shown(&arguments.b));
        let drawn = picture::draw(&a.graph, &b.graph, &found, &matching, &name);
        output::save(&[(path, drawn.into_bytes())])?;
    }
    if arguments.svg.as_deref().is_none_or(|path| !output::is_stdout(path)) {
        report.print(global)?;
    }
    Ok(if report.is_same() { 0 } else { FAILED })
}
