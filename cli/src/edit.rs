//! What the verbs that change models share: they read a model, prove the change, and write it.

use crate::bounded::Unwritten;
use crate::failure::{FAILED, Failure};
use crate::options::{Running, is_standard_input, shown, standard_input};
use crate::print::{self, Stdout};
use crate::prove::{self, Proof, Proved};
use crate::{Global, json, ops, output, report};
use clap::Args;
use onnxref::document::{DataFile, Document, Size, ValueInfo};
use onnxref::inspect::Inspection;
use onnxref::{Error, Kind};
use onnxref_view::counted;
use serde::Serialize;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The flags of every verb that changes a model.
#[derive(Debug, Args)]
pub(crate) struct Editing {
    /// The model: an .onnx file, or - for standard input
    model: PathBuf,

    /// The file to write
    ///
    /// External data goes beside it, unless it is there already.
    #[arg(short = 'o', value_name = "FILE")]
    to: PathBuf,

    /// Run both models on this input of the old one, by name or position: a file or JSON, as `run` reads it
    ///
    /// Inputs that are not given are random.
    #[arg(short, long, value_name = "NAME=VALUE", allow_negative_numbers = true)]
    input: Vec<String>,

    /// Don't run both models to compare them
    #[arg(long, conflicts_with = "input")]
    no_prove: bool,

    #[command(flatten)]
    running: Running,
}

/// How a value of the changed model is called in the old one.
pub(crate) type OldName<'a> = &'a dyn Fn(&str) -> String;

impl Editing {
    pub(crate) fn read(&self) -> Result<Document, Failure> {
        let wrong = |why: &str| Failure::usage(format!("-o {}: {why}", print::path(&self.to.to_string_lossy())));
        if is_standard_input(&self.to) {
            return Err(wrong("a file is needed"));
        }
        output::check_writable(&self.to).map_err(|e| wrong(&format!("the file can't be written: {e}")))?;
        let options = self.running.options()?;
        let read = if is_standard_input(&self.model) {
            Document::from_bytes_with(standard_input()?, &options)
        } else {
            Document::read_with(&self.model, &options)
        };
        let document = read.map_err(|error| self.unloadable(error))?;
        let is_data = document.has_data_in(&self.to).map_err(|error| self.unloadable(error))?;
        if is_data { Err(wrong(&format!("it is a file of {}", shown(&self.model)))) } else { Ok(document) }
    }

    /// What the model holds.
    pub(crate) fn inspect(&self, document: &Document) -> Result<Inspection, Failure> {
        let found = document.inspect(&self.running.options()?);
        found.map_err(|error| self.unloadable(error))
    }

    /// Declares the shapes that follow from changed inputs.
    pub(crate) fn renew_shapes(&self, document: &mut Document) -> Result<(), Failure> {
        let renewed = document.renew_shapes(&self.running.options()?);
        renewed.map_err(|error| self.unloadable(error))
    }

    /// Types and shapes that follow for the values of a graph.
    pub(crate) fn inferred(&self, document: &Document) -> Result<HashMap<String, ValueInfo>, Failure> {
        let found = self.inspect(document)?;
        let values = found.graph.values.into_iter().filter(|value| value.scope.is_none());
        let info = |value: onnxref::inspect::ValueDetails| {
            let dims: Option<Vec<Size>> = value.shape.map(|dims| dims.iter().map(Size::from).collect());
            let info = ValueInfo::new(&value.name, &value.value_type?, dims.as_deref());
            Some((value.name, info))
        };
        Ok(values.filter_map(info).collect())
    }

    /// The failure of a model that can't be loaded.
    pub(crate) fn unloadable(&self, error: Error) -> Failure {
        report::load(&shown(&self.model), error)
    }

    /// As [`Editing::inferred`], when a type is needed.
    pub(crate) fn types<'a>(&'a self, document: &'a Document) -> impl Fn(&str) -> Option<ValueInfo> + 'a {
        let known = OnceCell::new();
        move |name| known.get_or_init(|| self.inferred(document).unwrap_or_default()).get(name).cloned()
    }

    /// Proves a change and writes the model.
    pub(crate) fn finish(
        &self,
        before: &Document,
        mut after: Document,
        data: impl FnOnce(&mut Document) -> Result<Option<DataFile>, Error>,
        old_name: OldName<'_>,
        global: &Global,
    ) -> Result<u8, Failure> {
        if !self.no_prove && !self.running.loading.mmap && data_of(before) >= MUCH {
            print::note("the proof reads the model's data into memory: --mmap leaves it in its files");
        }
        let Proved { proof, random, other_sizes } = match self.no_prove {
            true => Proof::None("--no-prove".to_string()).into(),
            // Of what the file is read as.
            false => prove::prove(before, &self.written(&after)?, old_name, (&self.input, &self.running))?,
        };
        if let Proof::Differs(what) = &proof {
            return Err(Failure::new(FAILED, format!("the change is not proved, and nothing is written: {what}")));
        }
        if before.has_training() && !after.has_training() {
            print::note("what says how to train the model is dropped (training_info): it may tell of what is gone");
        }
        let nodes = [before, &after].map(|document| document.graph.nodes.len());
        let moved = data(&mut after).map_err(|error| self.unloadable(error))?;
        let data = match moved {
            Some(data) => Some(data),
            None => after.relocate(&output::followed(&self.to)).map_err(|error| self.unloadable(error))?,
        };
        let place = data.as_ref().map(|data| self.check_place(before, data)).transpose()?;
        self.write(&after, data.as_ref().zip(place.as_deref()))?;
        let output = self.to.to_string_lossy();
        if global.json {
            let data = data.map(|data| data.location);
            let other_sizes = other_sizes.as_deref();
            json::line(&Written { output: &output, nodes, data, proof: &proof, random, other_sizes })?;
            return Ok(0);
        }
        let [old, new] = nodes;
        let nodes = if old == new { counted(new, "node") } else { format!("{new} of {}", counted(old, "node")) };
        let data = data.map_or(String::new(), |data| {
            format!(", external data in {} ({})", print::path(&data.location), counted(data.size() as usize, "byte"))
        });
        writeln!(Stdout, "{}: {nodes}{data}", print::path(&output)).map_err(Failure::stdout)?;
        match proof {
            Proof::Equal(count) => {
                writeln!(Stdout, "proved: {} the same, bit by bit", are(count)).map_err(Failure::stdout)?;
                if random > 0 {
                    print::note(&format!("{} random and not compared", are(random)));
                }
                if let Some(why) = other_sizes {
                    print::note(&format!("it doesn't run {why}"));
                }
            }
            Proof::None(why) if !self.no_prove => print::note(&format!("not proved: {why}")),
            Proof::None(_) | Proof::Differs(_) => {}
        }
        Ok(0)
    }

    /// The document that is read from what is written.
    fn written(&self, document: &Document) -> Result<Document, Failure> {
        let written = document.written_as(&self.to);
        written.map_err(|error| Unwritten::of(error).failure(&self.to.to_string_lossy(), |why| why))
    }

    /// The place of external data, which can be written and is not that of the model.
    pub(crate) fn data_place(&self, data: &DataFile) -> Result<PathBuf, Failure> {
        let model = output::followed(&self.to);
        let place = data.place(&model).map_err(Failure::run)?;
        if place == model {
            return Err(unplaced(&place, "the model goes there"));
        }
        output::check_writable(&place).map_err(|error| unplaced(&place, &error.to_string()))?;
        Ok(place)
    }

    /// The place of new data, which isn't that of the model that was read, unless that is replaced too.
    fn check_place(&self, before: &Document, data: &DataFile) -> Result<PathBuf, Failure> {
        let place = self.data_place(data)?;
        let same = |one: &Path, other: &Path| matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other);
        if same(&self.to, &self.model) || is_standard_input(&self.model) {
            return Ok(place);
        }
        let is_data = before.has_data_in(&place).map_err(|error| self.unloadable(error))?;
        match is_data || same(&self.model, &place) {
            true => Err(unplaced(&place, &format!("it is a file of {}", shown(&self.model)))),
            false => Ok(place),
        }
    }

    fn write(&self, document: &Document, data: Option<(&DataFile, &Path)>) -> Result<(), Failure> {
        let data = data.map(|(data, place)| (place, File::Data(data)));
        let files: Vec<(&Path, File<'_>)> = data.into_iter().chain([(&*self.to, File::Model(document))]).collect();
        let unread = Cell::new(None);
        let content = |file: &File<'_>, to: &mut dyn output::Target| {
            let mut to = Watched { to, failed: false };
            let written = match file {
                File::Model(document) => document.write_as(&self.to, &mut to),
                File::Data(data) => data.write(&mut to),
            };
            written.map_err(|error| {
                if to.failed || (matches!(file, File::Model(_)) && error.kind() != Kind::Model) {
                    return Unwritten::of(error);
                }
                unread.set(Some(error));
                Unwritten::Unfit(String::new())
            })
        };
        let written =
            output::write_all(files.iter().map(|(path, file)| (*path, file)), &self.running.cancel(), content);
        written.map_err(|failure| unread.take().map_or(failure, |error| self.unloadable(error)))
    }
}

/// A file that is written, and whether writing it failed. If not, an error may come from what is read.
struct Watched<'a> {
    to: &'a mut dyn output::Target,
    failed: bool,
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes).inspect_err(|_| self.failed = true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().inspect_err(|_| self.failed = true)
    }
}

/// Data of a model that many machines have no room for beside all else.
const MUCH: u64 = 1 << 30;

/// Bytes of the initializers of the outermost graph.
fn data_of(document: &Document) -> u64 {
    document.graph.initializers.iter().filter_map(|tensor| tensor.byte_len().ok()).fold(0, u64::saturating_add)
}

fn are(count: usize) -> String {
    format!("{} {}", counted(count, "output"), if count == 1 { "is" } else { "are" })
}

/// A file to write.
enum File<'a> {
    Model(&'a Document),
    Data(&'a DataFile),
}

#[derive(Serialize)]
struct Written<'a> {
    output: &'a str,
    /// Before and after.
    nodes: [usize; 2],
    /// The file of external data.
    data: Option<String>,
    #[serde(flatten)]
    proof: &'a Proof,
    /// So many outputs are random, and not compared.
    #[serde(skip_serializing_if = "is_zero")]
    random: usize,
    /// Why it doesn't run with other sizes that it leaves open.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_sizes: Option<&'a str>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// External data can't go to a place.
fn unplaced(place: &Path, why: &str) -> Failure {
    Failure::usage(format!("external data can't be written to {}: {why}", print::path(&place.to_string_lossy())))
}

/// A failure of a flag, with the names of values that are like one that doesn't exist.
pub(crate) fn unknown(flag: &str, error: &Error, document: &Document) -> Failure {
    let text = format!("{flag}: {error:#}");
    let name = error.place().value_name.clone().unwrap_or_default();
    let defined = document.graph.defined();
    if name.is_empty() || defined.contains(name.as_str()) {
        return Failure::usage(text);
    }
    Failure::usage(text + &ops::meant(&name, defined.into_iter().map(str::to_string)))
}
