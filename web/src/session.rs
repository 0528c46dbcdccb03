//! The models that the page has loaded, and what it asks of them.

use crate::print::{self, Explained, Valued};
use crate::random::Random;
use crate::{describe, examples, random};
use onnxref::bytes::Bytes;
use onnxref::{Compatibility, Error, Inputs, LoadOptions, Model, Outputs, Value, ValueType, quote};
use onnxref_view::document;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

/// Bytes of memory that a run may take: WebAssembly has at most 4 GiB in all.
const RUN_BYTES: u64 = 1 << 30;

/// The models that are loaded.
#[derive(Default)]
pub struct Session {
    models: BTreeMap<u32, Model>,
    /// The number of the model loaded last.
    last: u32,
    /// Files beside the next model: external data, or the `.bin` file of an OpenVINO IR. Or inputs of the next run.
    files: Vec<(String, Vec<u8>)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Request {
    /// A file beside the next model, or for the next run; its bytes are beside the request.
    File {
        name: String,
    },
    /// Loads the model in the bytes beside the request.
    Load {
        allow: Vec<String>,
    },
    Unload {
        model: u32,
    },
    Run {
        model: u32,
        inputs: Vec<Feed>,
    },
    /// A literal of random values for an input.
    Random {
        model: u32,
        input: String,
        random: Random,
    },
    /// The standard's examples.
    Examples,
    /// Loads an example.
    Example {
        number: usize,
    },
}

/// The value of an input.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Feed {
    Literal(String, String),
    Random(String, Random),
    /// A file with a value as an encoded message: .pb.
    File(String, String),
}

impl Session {
    /// Answers a request, in JSON. An answer that is an error has the field `error`.
    pub fn call(&mut self, request: &[u8], data: Vec<u8>) -> String {
        let answer = match serde_json::from_slice(request) {
            Ok(request) => self.answer(request, data),
            Err(error) => Err(print::plain(&format!("the request is not valid: {error}"))),
        };
        answer.unwrap_or_else(|error| error).to_string()
    }

    fn answer(&mut self, request: Request, data: Vec<u8>) -> Result<Json, Json> {
        match request {
            Request::File { name } => {
                self.files.push((name, data));
                Ok(json!({}))
            }
            Request::Load { allow } => self.load(data, &allow),
            Request::Unload { model } => {
                self.models.remove(&model);
                Ok(json!({}))
            }
            Request::Run { model, inputs } => {
                let files = std::mem::take(&mut self.files);
                run(self.model(model)?, inputs, files)
            }
            Request::Random { model, input, random } => {
                let model = self.model(model)?;
                let info = model.inputs().find(|info| info.name == input);
                let info = info.ok_or_else(|| print::plain("there is no such input"))?;
                let text = random::literal(info.dtype(), &random).map_err(|why| print::plain(&why))?;
                Ok(json!({ "text": text }))
            }
            Request::Examples => Ok(examples::list()),
            Request::Example { number } => {
                let example = examples::ALL.get(number).ok_or_else(|| print::plain("there is no such example"))?;
                self.load(example.model.to_vec(), &[])
            }
        }
    }

    /// Describes a model and loads it. A model that can't run is described too.
    fn load(&mut self, bytes: Vec<u8>, allow: &[String]) -> Result<Json, Json> {
        let options = options(std::mem::take(&mut self.files), allow).map_err(|error| print::error(&error))?;
        let bytes = Bytes::from(bytes);
        let found = options.inspect_bytes(bytes.clone()).map_err(|error| print::error(&error))?;
        let loaded = options.from_bytes(bytes);
        let description = describe::describe(&found, loaded.as_ref().ok());
        match loaded {
            Ok(model) => {
                self.last += 1;
                self.models.insert(self.last, model);
                Ok(json!({ "model": self.last, "description": description }))
            }
            Err(error) => {
                let Json::Object(mut answer) = print::error(&error) else { return Err(Json::Null) };
                answer.insert("description".to_string(), description);
                Err(Json::Object(answer))
            }
        }
    }

    fn model(&self, number: u32) -> Result<&Model, Json> {
        self.models.get(&number).ok_or_else(|| print::plain("the model is not loaded any more"))
    }
}

fn options(files: Vec<(String, Vec<u8>)>, allow: &[String]) -> Result<LoadOptions, Error> {
    let mut compatibility = Compatibility::default();
    allow.iter().try_for_each(|name| compatibility.allow(name))?;
    let options = Model::options()
        .change_limits(|limits| limits.run_bytes = RUN_BYTES)
        .compatibility(|accepted| *accepted = compatibility);
    Ok(files.into_iter().fold(options, |options, (name, content)| options.external_data(name, content)))
}

fn run(model: &Model, feeds: Vec<Feed>, files: Vec<(String, Vec<u8>)>) -> Result<Json, Json> {
    let mut values: Vec<(String, Value)> = Vec::new();
    let mut fields = Vec::new();
    for feed in feeds {
        let declared = |name: &str| model.inputs().find(|info| info.name == name)?.value_type.as_ref();
        let (name, value) = match feed {
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
                let content = files.iter().find(|(own, _)| *own == file).map(|(_, content)| content.clone());
                let value = match (content, declared(&name)) {
                    (None, _) => Err(format!("there is no file {}", quote(&file))),
                    (_, None) => Err("its type is not known: a file needs one".to_string()),
                    (Some(content), Some(of)) => {
                        Value::from_proto_bytes(content, of).map_err(|error| Explained(&error).to_string())
                    }
                };
                (name, value)
            }
        };
        match value {
            Ok(value) => values.push((name, value)),
            Err(why) => fields.push((name, why)),
        }
    }
    if !fields.is_empty() {
        return Err(print::refused(fields));
    }
    let inputs: Inputs<'_> = values.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let outputs = model.run(inputs).map_err(|error| {
        // An input of the model, rather than a value met by a node.
        let about = error.place().value_name.as_ref().filter(|_| error.place().node_index.is_none());
        match about.filter(|name| model.inputs().any(|info| info.name == **name)) {
            Some(input) => print::refused(vec![(input.clone(), Explained(&error).to_string())]),
            None => print::error(&error),
        }
    })?;
    Ok(json!({
        "inputs": values.iter().map(|(name, value)| named(name, value)).collect::<Vec<_>>(),
        "outputs": list(&outputs),
        "hash": hash(&outputs).map_err(|error| print::error(&error))?,
        "notes": outputs.notes(),
    }))
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

fn list(outputs: &Outputs) -> Vec<Json> {
    outputs.iter().map(|(name, value)| named(name, value)).collect()
}

fn named(name: &str, value: &Value) -> Json {
    json!({ "name": print::safe(name), "value": Valued(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(session: &mut Session, request: &Json, data: &[u8]) -> Json {
        serde_json::from_str(&session.call(request.to_string().as_bytes(), data.to_vec())).unwrap()
    }

    fn message(answer: &Json) -> &str {
        answer["error"]["message"].as_str().unwrap_or("no error")
    }

    #[test]
    fn examples_give_the_official_outputs_and_refuse_wrong_indices() {
        let mut session = Session::default();
        let examples = ask(&mut session, &json!("examples"), b"");
        for (number, example) in examples["examples"].as_array().unwrap().iter().enumerate() {
            let loaded = ask(&mut session, &json!({ "example": { "number": number } }), b"");
            let literal = |name: &Json, text: &Json| json!({ "literal": [name, text] });
            let inputs: Vec<Json> =
                example["inputs"].as_array().unwrap().iter().map(|pair| literal(&pair[0], &pair[1])).collect();
            let run = json!({ "run": { "model": loaded["model"], "inputs": inputs } });
            let ran = ask(&mut session, &run, b"");
            let value = &ran["outputs"][0]["value"];
            let shape: Vec<usize> = serde_json::from_value(value["shape"].clone()).unwrap();
            let values: Vec<String> = serde_json::from_value(value["values"].clone()).unwrap();
            assert_eq!(print::nested(&shape, &values), example["output"].as_str().unwrap());

            let wrong = [inputs[0].clone(), literal(&json!("indices"), &example["wrong"])];
            let run = json!({ "run": { "model": loaded["model"], "inputs": wrong } });
            let ran = ask(&mut session, &run, b"");
            assert!(message(&ran).contains(" is out of range for axis "), "{}", message(&ran));
        }
    }

    #[test]
    fn every_fault_of_the_inputs_is_told() {
        let mut session = Session::default();
        let loaded = ask(&mut session, &json!({ "example": { "number": 0 } }), b"");
        let mut run = |data: &str, indices: &str| {
            let inputs = json!([{ "literal": ["data", data] }, { "literal": ["indices", indices] }]);
            ask(&mut session, &json!({ "run": { "model": loaded["model"], "inputs": inputs } }), b"")
        };
        let answer = run("[1, ", "[0.5]");
        assert_eq!(answer["fields"].as_array().unwrap().len(), 2);
        assert!(answer["fields"][1]["message"].as_str().unwrap().starts_with("0.5 at [0] is not a valid int64"));
        let answer = run("[[1, 2, 3], [4, 5, 6], [7, 8, 9]]", "[0, 1, 2]");
        assert_eq!(answer["fields"][0]["input"], "indices", "{answer}");
    }

    #[test]
    fn what_is_no_request_or_no_model() {
        let mut session = Session::default();
        assert!(message(&ask(&mut session, &json!({ "fly": {} }), b"")).starts_with("the request is not valid"));
        let run = json!({ "run": { "model": 7, "inputs": [] } });
        assert_eq!(message(&ask(&mut session, &run, b"")), "the model is not loaded any more");
        let load = json!({ "load": { "allow": [] } });
        assert_eq!(message(&ask(&mut session, &load, b"")), "the model file is empty");
    }
}
