//! The models that the page has opened, and what it asks of them.

use crate::graph::{self, Shown, Step};
use crate::opened::Opened;
use crate::print;
use crate::random::Random;
use crate::run::{self, Feed};
use crate::{describe, details, examples, random};
use onnxref::bytes::Bytes;
use onnxref::document::Document;
use onnxref::{Compatibility, Error, LoadOptions, Model};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Bytes of memory that a run may take: WebAssembly has at most 4 GiB in all.
const RUN_BYTES: u64 = 1 << 30;

/// The models that are open.
#[derive(Default)]
pub struct Session {
    models: BTreeMap<u32, Opened>,
    /// The number of the model opened last.
    last: u32,
    /// Files beside the next model: external data, or the `.bin` file of an OpenVINO IR. Or inputs of the next run.
    files: Vec<(String, Vec<u8>)>,
    /// The bytes beside the last answer.
    file: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Request {
    /// A file beside the next model, or for the next run; its bytes are beside the request.
    File {
        name: String,
    },
    /// Opens the model in the bytes beside the request.
    Load {
        allow: Vec<String>,
    },
    /// The model in the bytes beside the request, which may be a text, as the bytes of an .onnx file beside the answer.
    Binary,
    Unload {
        model: u32,
    },
    Run {
        model: u32,
        inputs: Vec<Feed>,
        /// Whether the answer has what the values inside are like.
        #[serde(default)]
        watch: bool,
    },
    /// A literal of random values for an input.
    Random {
        model: u32,
        input: String,
        random: Random,
    },
    /// A picture of the graph, or of what steps lead to, or of where a node is.
    Draw {
        model: u32,
        #[serde(default)]
        steps: Vec<Step>,
        #[serde(flatten)]
        shown: Shown,
        show: Option<String>,
    },
    Node {
        model: u32,
        place: String,
    },
    Value {
        model: u32,
        place: String,
    },
    /// An input or an output of the last run, as a file whose bytes are beside the answer.
    Save {
        model: u32,
        output: bool,
        number: usize,
        form: String,
    },
    /// As `Save`, of an initializer or what is computed at load.
    Constant {
        model: u32,
        place: String,
        form: String,
    },
    /// The standard's examples.
    Examples,
    /// Opens an example. Its model is beside the answer.
    Example {
        number: usize,
    },
}

impl Session {
    /// Answers a request, in JSON. An answer that is an error has the field `error`.
    pub fn call(&mut self, request: &[u8], data: Vec<u8>) -> String {
        self.file = Vec::new();
        let answer = match serde_json::from_slice(request) {
            Ok(request) => self.answer(request, data),
            Err(error) => Err(print::plain(&format!("the request is not valid: {error}"))),
        };
        answer.unwrap_or_else(|error| error).to_string()
    }

    /// The bytes beside the last answer; empty if it brings none.
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    fn answer(&mut self, request: Request, data: Vec<u8>) -> Result<Json, Json> {
        match request {
            Request::File { name } => self.files.push((name, data)),
            Request::Load { allow } => return self.load(data, &allow),
            Request::Binary => {
                let bytes = Document::from_bytes(data).and_then(|document| document.to_bytes());
                self.file = bytes.map_err(|error| print::error(&error))?.to_vec();
            }
            Request::Unload { model } => _ = self.models.remove(&model),
            Request::Run { model, inputs, watch } => {
                let files = std::mem::take(&mut self.files);
                let opened = self.models.get_mut(&model).ok_or_else(gone)?;
                return run::run(opened, inputs, &files, watch);
            }
            Request::Random { model, input, random } => {
                let model = self.model(model)?.model.as_ref();
                let info = model.and_then(|model| model.inputs().find(|info| info.name == input));
                let info = info.ok_or_else(|| print::plain("there is no such input"))?;
                let text = random::literal(info.dtype(), &random).map_err(|why| print::plain(&why))?;
                return Ok(json!({ "text": text }));
            }
            Request::Draw { model, steps, shown, show } => {
                return graph::draw(self.model(model)?, steps, shown, show.as_deref());
            }
            Request::Node { model, place } => return details::node(self.model(model)?, &place),
            Request::Value { model, place } => return details::value(self.model(model)?, &place),
            Request::Save { model, output, number, form } => {
                self.file = run::file(self.model(model)?, output, number, &form)?;
            }
            Request::Constant { model, place, form } => {
                self.file = run::constant(self.model(model)?, &place, &form)?;
            }
            Request::Examples => return Ok(examples::list()),
            Request::Example { number } => {
                let example = examples::ALL.get(number).ok_or_else(|| print::plain("there is no such example"))?;
                self.file = example.model.to_vec();
                return self.load(example.model.to_vec(), &[]);
            }
        }
        Ok(json!({}))
    }

    /// Describes a model and opens it, also one that can't run: the answer then says why not.
    fn load(&mut self, bytes: Vec<u8>, allow: &[String]) -> Result<Json, Json> {
        let options = options(std::mem::take(&mut self.files), allow).map_err(|error| print::error(&error))?;
        let bytes = Bytes::from(bytes);
        let found = options.inspect_bytes(bytes.clone()).map_err(|error| print::error(&error))?;
        let (model, error) = match options.from_bytes(bytes) {
            Ok(model) => (Some(model), None),
            Err(error) => (None, Some(print::error(&error))),
        };
        let opened = Opened { found, model, inputs: Vec::new(), outputs: Vec::new() };
        self.last += 1;
        let fields = [("model", json!(self.last)), ("description", describe::describe(&opened))];
        self.models.insert(self.last, opened);
        Ok(print::with(error.unwrap_or_else(|| json!({})), fields))
    }

    fn model(&self, number: u32) -> Result<&Opened, Json> {
        self.models.get(&number).ok_or_else(gone)
    }
}

fn gone() -> Json {
    print::plain("the model is not loaded any more")
}

fn options(files: Vec<(String, Vec<u8>)>, allow: &[String]) -> Result<LoadOptions, Error> {
    let mut compatibility = Compatibility::default();
    allow.iter().try_for_each(|name| compatibility.allow(name))?;
    let options = Model::options()
        .change_limits(|limits| limits.run_bytes = RUN_BYTES)
        .compatibility(|accepted| *accepted = compatibility);
    Ok(files.into_iter().fold(options, |options, (name, content)| options.external_data(name, content)))
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
    fn the_text_form_is_read_too() {
        let text = b"<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }";
        let mut session = Session::default();
        let loaded = ask(&mut session, &json!({ "load": { "allow": [] } }), text);
        assert_eq!(loaded["description"]["nodes"][0][1], "Relu-14", "{loaded}");
        ask(&mut session, &json!("binary"), text);
        let binary = session.file().to_vec();
        assert_eq!(Document::from_bytes(binary).unwrap().graph.nodes[0].op_type, "Relu");
        assert_eq!(message(&ask(&mut session, &json!("binary"), b"")), "the model file is empty");
    }

    #[test]
    fn files_that_are_missing_are_asked_for() {
        let text = b"<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) \
            <float[2] w = [\"location\": \"w.bin\"]> { y = Add (x, w) }";
        let mut session = Session::default();
        let load = json!({ "load": { "allow": [] } });
        let lacks = ask(&mut session, &load, text);
        assert_eq!(lacks["files"], true, "{lacks}");
        ask(&mut session, &json!({ "file": { "name": "w.bin" } }), &[0; 8]);
        assert_eq!(ask(&mut session, &load, text)["error"], Json::Null);
        assert_eq!(ask(&mut session, &load, b"nothing")["files"], false);
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

    /// The first example is open, and has run.
    fn ran() -> (Session, Json) {
        let mut session = Session::default();
        let loaded = ask(&mut session, &json!({ "example": { "number": 0 } }), b"");
        assert_eq!(session.file(), examples::ALL[0].model);
        let inputs = json!([{ "literal": ["data", "[[1, 2, 3], [4, \"NaN\", 6], [7, 8, 9]]"] }, { "literal": ["indices", "[[1, 0]]"] }]);
        let run = json!({ "run": { "model": loaded["model"], "inputs": inputs, "watch": true } });
        let answer = ask(&mut session, &run, b"");
        (session, answer)
    }

    #[test]
    fn a_run_tells_what_values_are_like() {
        let (mut session, answer) = ran();
        let places: Vec<&String> = answer["seen"].as_object().unwrap().keys().collect();
        assert_eq!(places, ["0", "1", "2"]);
        let output = &answer["seen"]["2"];
        assert_eq!((&output["shape"], &output["nan"], &output["times"]), (&json!([3, 1, 2]), &json!(true), &json!(1)));
        assert_eq!((&output["statistics"]["least"], &output["statistics"]["nan"]), (&json!(1.0), &json!(1)));
        assert_eq!(output["bars"].as_array().unwrap().len(), 32);
        // NaN came with the input.
        assert_eq!(answer["first"], json!([]));
        let node = ask(&mut session, &json!({ "node": { "model": 1, "place": "0" } }), b"");
        assert_eq!((&node["operator"], &node["attributes"][0]["text"]), (&json!("Gather-13"), &json!("1")));
        assert_eq!(node["inputs"][1]["parameter"], "indices");
        assert_eq!(node["about"]["link"], "https://onnx.ai/onnx/operators/onnx__Gather.html");
        let value = ask(&mut session, &json!({ "value": { "model": 1, "place": "2" } }), b"");
        assert_eq!((&value["from"]["place"], &value["leaves"]), (&json!("0"), &json!(true)));
        for (kind, place) in [("node", "1"), ("node", "0.0.0"), ("value", "x"), ("value", "")] {
            let request = json!({ kind: { "model": 1, "place": place } });
            assert!(message(&ask(&mut session, &request, b"")).starts_with("there is no such"), "{kind} {place}");
        }
    }

    #[test]
    fn values_are_saved_as_files() {
        let (mut session, _) = ran();
        let mut save = |output: bool, number: usize, form: &str| {
            let request = json!({ "save": { "model": 1, "output": output, "number": number, "form": form } });
            let answer = ask(&mut session, &request, b"");
            (session.file().to_vec(), message(&answer).to_string())
        };
        let (npy, _) = save(true, 0, "npy");
        let read = onnxref_view::npy::read(npy.clone()).unwrap();
        assert_eq!((read.shape(), read.bytes().len()), (&[3, 1, 2][..], 24));
        let (pb, _) = save(false, 1, "pb");
        assert_eq!(onnxref::Tensor::from_proto_bytes(pb.clone()).unwrap().shape(), [1, 2]);
        assert_eq!(save(true, 1, "npy"), (Vec::new(), "no run has given this value".to_string()));
        // They are inputs again.
        for (input, file) in [("data", npy), ("indices", pb)] {
            ask(&mut session, &json!({ "file": { "name": input } }), &file);
        }
        let run = json!({ "run": { "model": 1, "inputs": [{ "file": ["data", "data"] }, { "file": ["indices", "indices"] }] } });
        assert_eq!(ask(&mut session, &run, b"")["fields"][0]["input"], "data");
    }

    #[test]
    fn constants_are_saved_as_files() {
        let text = b"<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) \
            <float[2] w = {3, 4}> { y = Add (x, w) }";
        let mut session = Session::default();
        ask(&mut session, &json!({ "load": { "allow": [] } }), text);
        let files: Vec<_> = ["0", "1", "2", "9"]
            .iter()
            .map(|place| {
                let answer =
                    ask(&mut session, &json!({ "constant": { "model": 1, "place": place, "form": "npy" } }), b"");
                (session.file().to_vec(), message(&answer).to_string())
            })
            .collect();
        let saved: Vec<_> = files.iter().filter(|(file, _)| !file.is_empty()).collect();
        assert_eq!(saved.len(), 1, "{files:?}");
        let bytes: Vec<u8> = [3f32, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(onnxref_view::npy::read(saved[0].0.clone()).unwrap().bytes(), bytes);
        assert_eq!(files[3].1, "there is no such constant");
    }

    #[test]
    fn a_picture_follows_steps() {
        let (mut session, _) = ran();
        let mut draw = |steps: Json, show: Json| {
            ask(&mut session, &json!({ "draw": { "model": 1, "steps": steps, "computed": true, "show": show } }), b"")
        };
        let drawn = draw(json!([]), json!("0"));
        assert!(drawn["svg"].as_str().unwrap().contains("data-node=\"0\""), "{drawn}");
        assert_eq!((&drawn["steps"], &drawn["groups"]), (&json!([]), &json!({})));
        for steps in [json!([{ "group": 0 }]), json!([{ "body": [0, 0] }]), json!([{ "body": [9, 0] }])] {
            assert_eq!(message(&draw(steps, Json::Null)), "there is no such part of the graph");
        }
    }
}
