//! `onnxref set`: changes names, dimensions, outputs and metadata of a model, and where its data is.

use crate::edit::{Editing, unknown};
use crate::failure::Failure;
use crate::ops::meant;
use crate::{Global, print};
use clap::Args;
use onnxref::document::{Document, Entry, Size};
use onnxref::{Kind, quote};
use onnxref_view::counted;
use std::collections::{HashMap, HashSet};

/// So many declarations that the change makes wrong are shown.
const SHOWN: usize = 10;

/// Change names, dimensions, outputs and metadata of a model, and where its data is
#[derive(Debug, Args)]
#[command(after_help = "\
Both models run on random inputs or those of -i, and nothing is written if what they give differs
in a bit.

Example, from the root of the repository:
  MODEL=onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx
  onnxref set $MODEL --rename data=table --dim data.0=rows -o /tmp/table.onnx
  onnxref set model.onnx --external weights.bin -o small.onnx")]
pub(crate) struct Arguments {
    /// Set a symbol of shapes, or INPUT.AXIS: 4, batch or ?
    ///
    /// A number fixes it, a name makes it a symbol, ? any size. A symbol is replaced in all shapes of the graph. In
    /// bodies and functions it is too where that size follows, and becomes unknown elsewhere: it may stand for another
    /// one there. If a dimension of an input is set by its place, shapes that were declared for what nodes compute are
    /// dropped but for ranks of outputs and in bodies, and those that follow are declared for the outputs; --shapes
    /// declares all.
    #[arg(long, value_name = "NAME=SIZE")]
    dim: Vec<String>,

    /// Add a value to the outputs
    #[arg(long, value_name = "NAME")]
    output: Vec<String>,

    /// Remove an output
    #[arg(long, value_name = "NAME")]
    drop_output: Vec<String>,

    /// Rename a value, wherever it is used
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,

    /// Set an entry of the model's metadata
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Vec<String>,

    /// Remove an entry of the model's metadata
    #[arg(long, value_name = "KEY")]
    drop_metadata: Vec<String>,

    /// Declare types and shapes that follow, in bodies and functions too
    #[arg(long)]
    shapes: bool,

    /// Move data of initializers to a file beside the model
    #[arg(long, value_name = "FILE", conflicts_with = "embed")]
    external: Option<String>,

    /// Move initializers of at least so many bytes, and no strings
    #[arg(long, value_name = "BYTES", default_value_t = 1024, requires = "external", hide_short_help = true)]
    external_threshold: u64,

    /// Move data of other files into the model
    #[arg(long)]
    embed: bool,

    #[command(flatten)]
    editing: Editing,
}

pub(crate) fn set(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let editing = &arguments.editing;
    let before = editing.read()?;
    let mut after = before.clone();
    if arguments.dims(&mut after)? {
        editing.renew_shapes(&mut after)?;
    }
    if !arguments.dim.is_empty() {
        let mismatches = |document| -> Result<Vec<String>, Failure> {
            Ok(editing.inspect(document)?.mismatches.iter().map(|error| format!("{error:#}")).collect())
        };
        let (known, mut new) = (HashSet::<String>::from_iter(mismatches(&before)?), mismatches(&after)?);
        new.retain(|text| !known.contains(text));
        new.iter().take(SHOWN).for_each(|text| print::note(&format!("in the changed model, {text}")));
        if let more @ 1.. = new.len().saturating_sub(SHOWN) {
            print::note(&format!("in the changed model, {more} more declarations differ from what follows"));
        }
    }
    arguments.outputs(&mut after)?;
    let old_names = arguments.rename(&mut after)?;
    arguments.metadata(&mut after)?;
    if arguments.shapes {
        let found = editing.inspect(&after)?;
        after.declare_shapes(&found).map_err(|error| editing.unloadable(error))?;
    }
    if arguments.embed {
        after.embed().map_err(|error| editing.unloadable(error))?;
    }
    if let Some(file) = &arguments.external {
        // Found before the models run.
        match after.clone().externalize(file, u64::MAX) {
            Ok(moved) => _ = editing.data_place(&moved)?,
            Err(error) if error.kind() == Kind::Input => {
                return Err(Failure::usage(format!("--external: {error:#}")));
            }
            Err(error) => return Err(editing.unloadable(error)),
        }
    }
    let old_name = |name: &str| old_names.get(name).cloned().unwrap_or_else(|| name.to_string());
    let data = |document: &mut Document| {
        let Some(file) = &arguments.external else { return Ok(None) };
        let threshold = arguments.external_threshold.max(1);
        let data = document.externalize(file, threshold)?;
        if data.is_empty() {
            let bytes = counted(usize::try_from(threshold).unwrap_or(usize::MAX), "byte");
            print::note(&format!("--external: no initializer of numbers has at least {bytes}: none is moved"));
        }
        Ok(Some(data).filter(|data| !data.is_empty()))
    };
    editing.finish(&before, after, data, &old_name, global)
}

fn wrong(flag: &str, text: &str, why: &str) -> Failure {
    Failure::usage(format!("{flag} {text}: {why}"))
}

impl Arguments {
    /// Sets dimensions. Returns whether a shape that was declared for what nodes compute may no longer hold.
    fn dims(&self, document: &mut Document) -> Result<bool, Failure> {
        let mut opened = false;
        for text in &self.dim {
            let wrong = |why: &str| wrong("--dim", text, why);
            let (name, size) = text.rsplit_once('=').ok_or_else(|| wrong("expected NAME=SIZE or INPUT.AXIS=SIZE"))?;
            let size = match (size, size.parse::<i64>()) {
                ("?", _) => Size::Unknown,
                ("", _) | (_, Ok(..0)) => return Err(wrong("a size is a number, the name of a symbol, or ?")),
                (digits, Err(_)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    return Err(wrong("a size is below 2^63"));
                }
                (_, Ok(number)) => Size::Fixed(number),
                (symbol, Err(_)) => Size::Symbol(symbol.to_string()),
            };
            let symbols = document.symbols();
            if symbols.iter().any(|symbol| symbol == name) {
                document.set_symbol(name, &size).map_err(|error| wrong(&format!("{error:#}")))?;
                continue;
            }
            let place = name.rsplit_once('.').and_then(|(input, axis)| Some((input, axis.parse::<usize>().ok()?)));
            let Some((input, axis)) = place else {
                let places = document.graph.inputs.iter().map(|info| info.name.clone());
                let near = meant(name, symbols.into_iter().chain(places));
                return Err(wrong(&format!("no shape has the symbol {}{near}", quote(name))));
            };
            document.set_dimension(input, axis, size).map_err(|error| wrong(&format!("{error:#}")))?;
            opened = true;
        }
        Ok(opened)
    }

    fn outputs(&self, document: &mut Document) -> Result<(), Failure> {
        for name in &self.output {
            document.check_name(name).map_err(|error| unknown("--output", &error, document))?;
            if document.graph.outputs.iter().any(|info| info.name == *name) {
                return Err(wrong("--output", name, "it is an output already"));
            }
            let known = |list: &[onnxref::document::Part<onnxref::document::ValueInfo>]| {
                list.iter().find(|info| info.name == *name).cloned()
            };
            let declared = known(&document.graph.inputs).or_else(|| known(&document.graph.value_info));
            let info = match declared {
                Some(info) => info,
                None => {
                    let found = self.editing.inferred(document)?.remove(name);
                    found.unwrap_or_else(|| onnxref::document::ValueInfo::untyped(name)).into()
                }
            };
            document.graph.value_info.retain(|other| other.name != *name);
            document.graph.outputs.push(info);
        }
        for name in &self.drop_output {
            let Some(place) = document.graph.outputs.iter().position(|info| info.name == *name) else {
                let names: Vec<String> = document.graph.outputs.iter().map(|info| quote(&info.name)).collect();
                return Err(wrong(
                    "--drop-output",
                    name,
                    &format!("it is not an output; the outputs: {}", print::listed(&names, ", ")),
                ));
            };
            document.graph.outputs.remove(place);
        }
        if document.graph.outputs.is_empty() && !self.drop_output.is_empty() {
            return Err(Failure::usage("--drop-output: a model has at least one output"));
        }
        Ok(())
    }

    /// Renames values. Returns the old name of each new one.
    fn rename(&self, document: &mut Document) -> Result<HashMap<String, String>, Failure> {
        let mut old_names: HashMap<String, String> = HashMap::new();
        for text in &self.rename {
            let (old, new) = text.split_once('=').ok_or_else(|| wrong("--rename", text, "expected OLD=NEW"))?;
            // A name may have an equals sign.
            let known = document.graph.defined();
            let cut = text.match_indices('=').map(|(at, _)| text.split_at(at)).find(|(old, _)| known.contains(old));
            let (old, new) = cut.map_or((old, new), |(old, rest)| (old, rest.get(1..).unwrap_or_default()));
            document.rename(old, new).map_err(|error| unknown("--rename", &error, document))?;
            let first = old_names.remove(old).unwrap_or_else(|| old.to_string());
            old_names.insert(new.to_string(), first);
        }
        Ok(old_names)
    }

    fn metadata(&self, document: &mut Document) -> Result<(), Failure> {
        for text in &self.metadata {
            let (key, value) = text.split_once('=').ok_or_else(|| wrong("--metadata", text, "expected KEY=VALUE"))?;
            match document.metadata.iter_mut().find(|entry| entry.key == key) {
                Some(entry) => entry.value = value.to_string(),
                None => document.metadata.push(Entry::new(key, value).into()),
            }
        }
        for key in &self.drop_metadata {
            let before = document.metadata.len();
            document.metadata.retain(|entry| entry.key != *key);
            if document.metadata.len() == before {
                let keys: Vec<String> = document.metadata.iter().map(|entry| quote(&entry.key)).collect();
                let keys = if keys.is_empty() { "none".to_string() } else { keys.join(", ") };
                return Err(wrong("--drop-metadata", key, &format!("there is no such entry; the keys: {keys}")));
            }
        }
        Ok(())
    }
}
