//! `onnxref run`: a model, once.

use crate::failure::{Failure, RUN};
use crate::value::{Format, Named, feed, split};
use crate::{json, npy, print};
use clap::{Args, ValueEnum};
use onnxref::{Inputs, Model, Outputs, Value, quote};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Run a model and show, or write, its outputs.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onnxref run model.onnx -i data=image.npy -i 'indices=[0, -1]' -o y=y.npy

Exit status: 0 success; 2 wrong usage or input file; 3 the model can't be loaded; 4 it can't be run on these inputs.")]
pub(crate) struct Arguments {
    /// The .onnx file
    model: PathBuf,

    /// An input: a .pb file (a TensorProto), a .npy file, or JSON such as 3, '[1, -1]', '[[1.5, "NaN"]]', '["a"]'
    ///
    /// The elements of JSON are of the type that the model declares; complex numbers are pairs, [re, im]. A model of
    /// one input needs no NAME=.
    #[arg(short, long, value_name = "NAME=VALUE", allow_negative_numbers = true)]
    input: Vec<String>,

    /// Write an output to a .pb file (a TensorProto) or a .npy file
    ///
    /// Files are written after the run has succeeded, each completely or not at all. A model of one output needs no
    /// NAME=.
    #[arg(short, long, value_name = "NAME=FILE")]
    output: Vec<String>,

    /// Print the outputs as JSON: {"outputs": {NAME: {"dtype": .., "shape": .., "values": [..]}}}
    ///
    /// Values are in row-major order and read back exactly; "NaN", "inf" and "-inf" are strings, complex numbers
    /// pairs.
    #[arg(long)]
    json: bool,

    /// Accept a non-standard behaviour of other engines
    #[arg(long, value_enum, value_name = "DEPARTURE")]
    compat: Vec<Compat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Compat {
    /// Gather-1 takes negative indices, as version 11 does
    #[value(name = "gather-1-negative-indices")]
    Gather1NegativeIndices,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = load(arguments)?;
    let files = arguments.output.iter().map(|text| OutputFile::parse(text, &model)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = files.iter().enumerate().find_map(|(k, f)| files.iter().take(k).find(|g| g.path == f.path)) {
        return Err(Failure::usage(format!("two outputs go to {}", print::path(path.path))));
    }
    let mut inputs = Inputs::new();
    for text in &arguments.input {
        let (name, value) = feed(text, &model)?;
        inputs = inputs.with(name, value);
    }
    let outputs = model.run(inputs).map_err(|e| Failure::new(RUN, e.to_string()))?;
    outputs.notes().iter().for_each(|text| print::note(text));
    write(&files, &outputs)?;
    let printed = match (arguments.json, files.as_slice()) {
        (true, _) => json::print(&outputs),
        (false, []) => print::table(&outputs),
        (false, _) => Ok(()),
    };
    printed.map_err(|e| Failure::new(RUN, format!("standard output: {e}")))
}

fn load(arguments: &Arguments) -> Result<Model, Failure> {
    let gather = arguments.compat.contains(&Compat::Gather1NegativeIndices);
    let options = Model::options().compatibility(|compat| compat.gather_1_negative_indices = gather);
    let path = print::path(&arguments.model.to_string_lossy());
    let model = options.load(&arguments.model).map_err(|error| Failure::load(&path, &error))?;
    model.report().iter().for_each(|text| print::note(text));
    Ok(model)
}

/// Where an output goes.
struct OutputFile<'a> {
    name: &'a str,
    path: &'a str,
    format: Format,
}

impl<'a> OutputFile<'a> {
    fn parse(text: &'a str, model: &'a Model) -> Result<OutputFile<'a>, Failure> {
        let wrong = |why: &str| {
            let names: Vec<String> = model.outputs().map(|info| quote(&info.name)).collect();
            Failure::usage(format!("-o {}: {why}; the model's outputs: {}", print::path(text), names.join(", ")))
        };
        let (name, path) = match split(text, model.outputs()) {
            Named::Declared(info, path) => (info.name.as_str(), path),
            Named::Other(..) => return Err(wrong("there is no output of this name")),
            Named::Not => return Err(wrong("NAME= is missing")),
        };
        let format = Format::of(path).ok_or_else(|| wrong("the file's name must end with .pb or .npy"))?;
        Ok(OutputFile { name, path, format })
    }

    fn encode(&self, value: &Value) -> Result<Vec<u8>, Failure> {
        let npy = || npy::write(value.tensor().map_err(|e| format!("{e}: write a .pb file"))?);
        match self.format {
            Format::Pb => Ok(value.to_proto_bytes(self.name)),
            Format::Npy => npy().map_err(|why| {
                Failure::usage(format!("output {} to {}: {why}", quote(self.name), print::path(self.path)))
            }),
        }
    }
}

/// Writes every file beside its place before the first is moved there.
fn write(files: &[OutputFile<'_>], outputs: &Outputs) -> Result<(), Failure> {
    let failed = |file: &OutputFile<'_>, e: io::Error| Failure::new(RUN, format!("{}: {e}", print::path(file.path)));
    let mut written = Vec::new();
    for file in files {
        let value = outputs.get(file.name);
        let value = value.ok_or_else(|| Failure::new(RUN, format!("there is no output {}", quote(file.name))))?;
        let bytes = file.encode(value)?;
        written.push((file, beside(Path::new(file.path), &bytes).map_err(|e| failed(file, e))?));
    }
    for (file, temporary) in written {
        temporary.persist(file.path).map_err(|e| failed(file, e.error))?;
    }
    Ok(())
}

fn beside(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // as any new file, less the umask
    let mut file = builder.prefix(".onnxref-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.flush()?;
    Ok(file)
}
