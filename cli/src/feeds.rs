//! The model's feeds: `-i NAME=VALUE` and the files of `--inputs DIR`.

use crate::failure::Failure;
use crate::print;
use crate::value::{Named, split, value};
use clap::Args;
use onnxref::{Dim, Inputs, Model, Value, ValueInfo, quote};
use onnxref_view::type_name;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// What to feed: the flags of every verb that runs a model.
#[derive(Debug, Args)]
#[command(next_help_heading = "Inputs")]
pub(crate) struct Feeding {
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
}

impl Feeding {
    /// The values to feed, or all faults in them.
    pub(crate) fn inputs<'a>(&'a self, model: &'a Model) -> Result<Inputs<'a>, Failure> {
        Ok(self.values(model)?.into_iter().collect())
    }

    /// As [`Feeding::inputs`], for a [`Runner`](onnxref::Runner).
    pub(crate) fn values<'a>(&'a self, model: &'a Model) -> Result<Vec<(&'a str, Value)>, Failure> {
        values(model, &self.input, self.inputs.as_deref())
    }
}

fn values<'a>(model: &'a Model, texts: &'a [String], folder: Option<&Path>) -> Result<Vec<(&'a str, Value)>, Failure> {
    let mut feeds = Feeds { values: Vec::new(), named: HashSet::new(), faults: Vec::new() };
    if let Some(folder) = folder {
        let shown = print::path(&folder.to_string_lossy());
        let files = files(folder).map_err(|why| Failure::usage(format!("--inputs {shown}: {why}")))?;
        for (position, path) in files {
            match model.inputs().nth(position) {
                Some(info) => feeds.add(info, &path.to_string_lossy()),
                None => {
                    feeds.faults.push(format!("input_{position}.pb: the model has {} inputs", model.inputs().len()))
                }
            }
        }
    }
    for text in texts {
        match split(text, model.inputs()) {
            Named::Declared(info, text) => feeds.add(info, text),
            Named::Other(name) => feeds.faults.push(unknown(model, name)),
            Named::Not => feeds.faults.push(format!("-i {}: NAME= is missing", quote(text))),
        }
    }
    let missing =
        model.inputs().filter(|info| !feeds.named.contains(info.name.as_str()) && !model.has_default(&info.name));
    feeds.faults.extend(missing.map(|info| format!("missing input {} ({})", quote(&info.name), declared(info))));
    if feeds.faults.is_empty() { Ok(feeds.values) } else { Err(Failure::usage(feeds.faults.join("; "))) }
}

struct Feeds<'a> {
    values: Vec<(&'a str, Value)>,
    named: HashSet<&'a str>,
    faults: Vec<String>,
}

impl<'a> Feeds<'a> {
    fn add(&mut self, info: &'a ValueInfo, text: &str) {
        let name = quote(&info.name);
        if !self.named.insert(&info.name) {
            return self.faults.push(format!("input {name} is given twice"));
        }
        match value(text, info.value_type.as_ref()) {
            Ok(value) => self.values.push((&info.name, value)),
            Err(why) => self.faults.push(format!("input {name}: {why}")),
        }
    }
}

/// The files `input_0.pb`, `input_1.pb`, .. of a folder.
fn files(folder: &Path) -> Result<BTreeMap<usize, PathBuf>, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())? {
        let path = entry.map_err(|e| e.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = name.strip_prefix("input_").and_then(|rest| rest.strip_suffix(".pb")?.parse().ok());
        files.extend(number.map(|number: usize| (number, path.clone())));
    }
    if files.is_empty() { Err("it has no input_0.pb".to_string()) } else { Ok(files) }
}

/// The library's error for a name that is not an input.
fn unknown(model: &Model, name: &str) -> String {
    let refused = model.runner().feed(name, vec![0i64]);
    refused.err().map_or_else(String::new, |error| format!("{error:#}"))
}

/// The declared type and shape: `float32, [N, 3]`.
fn declared(info: &ValueInfo) -> String {
    let Some(value_type) = &info.value_type else { return "any type".to_string() };
    let name = type_name(value_type);
    match (&info.shape, value_type.dtype()) {
        (Some(dims), _) => format!("{name}, [{}]", dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(", ")),
        (None, Some(_)) => format!("{name}, any shape"),
        (None, None) => name,
    }
}
