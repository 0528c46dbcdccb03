//! Running a model.

use crate::opened::Opened;
use crate::print::{self, Explained, Valued};
use crate::random::{self, Random};
use crate::watch::Look;
use onnxref::{Cancel, Error, Inputs, Model, Outputs, Value, ValueType, quote};
use onnxref_view::{document, npy};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::io::{self, BufWriter, Write};

/// The value of an input.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Feed {
    Literal(String, String),
    Random(String, Random),
    /// A file with a value: .npy, or an encoded message (.pb).
    File(String, String),
}

/// Runs a model. With `watch`, the answer has what the values inside are like.
pub(crate) fn run(
    opened: &mut Opened,
    feeds: Vec<Feed>,
    files: &[(String, Vec<u8>)],
    watch: bool,
) -> Result<Json, Json> {
    let Some(model) = &opened.model else { return Err(print::plain("the model can't run")) };
    let (mut values, mut fields) = (Vec::new(), Vec::new());
    for feed in feeds {
        let (name, value) = value(model, feed, files);
        match value {
            Ok(value) => values.push((name, value)),
            Err(why) => fields.push((name, why)),
        }
    }
    if !fields.is_empty() {
        return Err(print::refused(fields));
    }
    let mut look = watch.then(|| Look::new(opened));
    let ran = execute(model, &values, look.as_mut());
    let seen = look.map(|look| look.finish(opened));
    let (seen, first) = seen.map_or((Json::Null, Vec::new()), |(values, first)| (values, first));
    let outputs = match ran {
        Ok(outputs) => outputs,
        Err(error) => {
            // What was seen until then helps to find out why.
            let fields = [("seen", seen), ("first", json!(first)), ("blamed", json!(opened.blamed(&error)))];
            return Err(print::with(failure(model, &error), fields));
        }
    };
    let answer = json!({
        "inputs": values.iter().map(|(name, value)| named(name, value)).collect::<Vec<_>>(),
        "outputs": outputs.iter().map(|(name, value)| named(name, value)).collect::<Vec<_>>(),
        "hash": hash(&outputs).map_err(|error| print::error(&error))?,
        "notes": outputs.notes(),
        "seen": seen,
        "first": first,
    });
    opened.outputs = outputs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    opened.inputs = values;
    Ok(answer)
}

fn execute(model: &Model, values: &[(String, Value)], look: Option<&mut Look>) -> Result<Outputs, Error> {
    let inputs: Inputs<'_> = values.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let Some(look) = look else { return model.run(inputs) };
    values.iter().try_for_each(|(name, value)| look.add(name, None, value))?;
    model.run_watched(inputs, &Cancel::new(), look)
}

fn failure(model: &Model, error: &Error) -> Json {
    // An input of the model, rather than a value met by a node.
    let about = error.place().value_name.as_ref().filter(|_| error.place().node_index.is_none());
    match about.filter(|name| model.inputs().any(|info| info.name == **name)) {
        Some(input) => print::refused(vec![(input.clone(), Explained(error).to_string())]),
        None => print::error(error),
    }
}

/// The input that a feed is for, and its value.
fn value(model: &Model, feed: Feed, files: &[(String, Vec<u8>)]) -> (String, Result<Value, String>) {
    let declared = |name: &str| model.inputs().find(|info| info.name == name)?.value_type.as_ref();
    match feed {
        Feed::Literal(name, text) => {
            let value = document::parse(&text, declared(&name));
            (name, value)
        }
        Feed::Random(name, random) => {
            let of = declared(&name);
            let text = random::literal(of.and_then(ValueType::dtype), &random);
            let value = text.and_then(|text| document::parse(&text, of));
            (name, value)
        }
        Feed::File(name, file) => {
            let content = files.iter().find(|(own, _)| *own == file).map(|(_, content)| content);
            let value = match (content, declared(&name)) {
                (None, _) => Err(format!("there is no file {}", quote(&file))),
                (Some(content), _) if content.starts_with(npy::MAGIC) => npy::read(content.clone()).map(Value::from),
                (_, None) => Err("its type is not known: a file needs one".to_string()),
                (Some(content), Some(of)) => {
                    Value::from_proto_bytes(content.clone(), of).map_err(|error| Explained(&error).to_string())
                }
            };
            (name, value)
        }
    }
}

/// An input or an output of the last run as a file.
pub(crate) fn file(opened: &Opened, output: bool, number: usize, form: &str) -> Result<Vec<u8>, Json> {
    let list = if output { &opened.outputs } else { &opened.inputs };
    let (name, value) = list.get(number).ok_or_else(|| print::plain("no run has given this value"))?;
    bytes_of(name, value, form)
}

/// The constant at a place as a file.
pub(crate) fn constant(opened: &Opened, place: &str, form: &str) -> Result<Vec<u8>, Json> {
    let value = opened.locate(place).and_then(|(graph, _, at)| graph.values.get(at));
    let found = value.and_then(|value| Some((&value.name, value.constant.as_ref()?)));
    let (name, value) = found.ok_or_else(|| print::plain("there is no such constant"))?;
    bytes_of(name, value, form)
}

fn bytes_of(name: &str, value: &Value, form: &str) -> Result<Vec<u8>, Json> {
    match (form, value) {
        ("npy", Value::Tensor(tensor)) => {
            let none = || print::plain(&format!("{}: NumPy has no {}: take a .pb file", quote(name), tensor.dtype()));
            let kind = npy::type_string(tensor.dtype()).ok_or_else(none)?;
            let start = npy::start(kind, tensor.shape()).map_err(|why| print::plain(&why))?;
            Ok([&start, tensor.bytes()].concat())
        }
        ("npy", _) => Err(print::plain(&format!("{} is no tensor: take a .pb file", quote(name)))),
        _ => Ok(value.to_proto_bytes(name)),
    }
}

/// What `onnxref hash` prints.
fn hash(outputs: &Outputs) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for (name, value) in outputs.iter() {
        value.write_canonical(name, BufWriter::new(Hashed(&mut hash)))?;
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Hashes what is written.
struct Hashed<'a>(&'a mut Sha256);

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn named(name: &str, value: &Value) -> Json {
    json!({ "name": print::safe(name), "value": Valued(value) })
}
