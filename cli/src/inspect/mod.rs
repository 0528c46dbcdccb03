//! `onnxref inspect`: what a model holds, and what was made of it.

mod lists;
mod summary;

use crate::failure::{Failure, explain};
use crate::options::{Loading, shown};
use crate::print::Stdout;
use crate::{Global, json, output, report};
use clap::Args;
use onnxref::LoadOptions;
use onnxref::inspect::Inspection;
use onnxref_view::{inspection, picture};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Show what a model holds: operators, shapes, constants, memory, and what can't run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples, from the root of the repository:
  CASE=onnx-test-data/gather/onnx-1.1.2/pytorch-converted/test_Embedding
  onnxref inspect $CASE/model.onnx
  onnxref inspect $CASE/model.onnx --nodes --constants
  onnxref inspect $CASE/model.onnx --svg model.svg
  onnxref inspect model.onnx --set batch=1 --set sequence=128

Exit status:
  0  success, even if the model can't run
  2  wrong usage, or a file that can't be written
  3  the file can't be read, or is not a model")]
pub(crate) struct Arguments {
    /// The model: an .onnx file, the .xml file of an OpenVINO IR, or - for standard input
    model: PathBuf,

    /// List every node: operator version, inputs, outputs with shapes, what becomes of it
    #[arg(long)]
    nodes: bool,

    /// List every constant, the largest first
    #[arg(long)]
    constants: bool,

    /// Give a symbol in the shapes of the inputs a size, so that more shapes, sizes and costs are known
    #[arg(long, value_name = "NAME=SIZE")]
    set: Vec<String>,

    /// Compute no constants at load, and keep all nodes as they are
    #[arg(long)]
    no_optimize: bool,

    /// Draw the graph to an SVG file, or - for standard output
    ///
    /// Browsers show it, with full names and shapes under the mouse. More than 300 nodes are folded by the scopes in
    /// their names.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write the graph in the language of Graphviz to a file, or - for standard output
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,

    #[command(flatten)]
    loading: Loading,
}

pub(crate) fn inspect(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let pictures = arguments.pictures();
    if let [(svg, _), (dot, _)] = pictures[..]
        && output::unique(svg) == output::unique(dot)
    {
        let place = if output::is_stdout(svg) { "standard output".to_string() } else { shown(svg) };
        return Err(Failure::usage(format!("--svg and --dot both go to {place}")));
    }
    for (flag, path) in [("--svg", &arguments.svg), ("--dot", &arguments.dot)] {
        let Some(path) = path else { continue };
        output::beside_json(flag, path, global)?;
        output::spare(flag, path, [&*arguments.model])?;
    }
    let to_stdout = |(path, _): &(&Path, Draw)| output::is_stdout(path);
    for (path, _) in pictures.iter().filter(|picture| !to_stdout(picture)) {
        let wrong = |e| Failure::usage(format!("{}: the file can't be written: {e}", shown(path)));
        output::check_writable(path).map_err(wrong)?;
    }
    let found = read(arguments)?;
    let drawn = |(path, draw): &(_, Draw)| (*path, draw(&found.graph, &name(&arguments.model)).into_bytes());
    output::save(&pictures.iter().map(drawn).collect::<Vec<_>>())?;
    let lists = global.json || arguments.nodes || arguments.constants;
    if pictures.iter().any(to_stdout) || (!pictures.is_empty() && !lists) {
        return Ok(0);
    }
    if global.json {
        json::line(&inspection::Document::new(&found, explain))?;
        return Ok(0);
    }
    text(arguments, global, &found).map(|()| 0).map_err(Failure::stdout)
}

type Draw = fn(&onnxref::inspect::GraphDetails, &str) -> String;

impl Arguments {
    /// The pictures to draw, and where.
    fn pictures(&self) -> Vec<(&Path, Draw)> {
        let svg = self.svg.as_deref().map(|path| (path, picture::svg as Draw));
        let dot = self.dot.as_deref().map(|path| (path, picture::dot as Draw));
        svg.into_iter().chain(dot).collect()
    }
}

fn read(arguments: &Arguments) -> Result<Inspection, Failure> {
    let sizes = arguments.set.iter().map(|text| size(text)).collect::<Result<Vec<_>, _>>()?;
    let set = |options: LoadOptions| {
        let options = options.optimize(!arguments.no_optimize);
        sizes.into_iter().fold(options, |options, (name, size)| options.dimension(name, size))
    };
    let path = &arguments.model;
    arguments.loading.inspected(path, set)?.map_err(|error| {
        let set =
            arguments.set.iter().any(|text| error.place().value_name.as_deref() == text.split_once('=').map(|s| s.0));
        if set { Failure::usage(format!("--set: {}", explain(&error))) } else { report::load(&shown(path), error) }
    })
}

/// `NAME=SIZE`
fn size(text: &str) -> Result<(&str, usize), Failure> {
    let wrong = || Failure::usage(format!("--set {}: NAME=SIZE is needed, such as batch=1", crate::print::path(text)));
    let (name, size) = text.rsplit_once('=').ok_or_else(wrong)?;
    Ok((name, size.parse().map_err(|_| wrong())?))
}

fn text(arguments: &Arguments, global: &Global, found: &Inspection) -> io::Result<()> {
    if !arguments.nodes && !arguments.constants {
        return summary::print(found, &shown(&arguments.model), global.verbose);
    }
    if arguments.nodes {
        lists::nodes(&found.graph)?;
    }
    if arguments.nodes && arguments.constants {
        writeln!(Stdout)?;
    }
    if arguments.constants {
        lists::constants(&found.graph)?;
    }
    Ok(())
}

/// The name of the picture.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| shown(path), |name| shown(Path::new(name)))
}
