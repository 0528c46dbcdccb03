//! `onnxref hash`: what a model gives, as one number.

use crate::bounded::{Bounded, Unwritten};
use crate::failure::{FAILED, Failure};
use crate::feeds::Feeding;
use crate::options::Running;
use crate::print::{self, Stdout};
use crate::repeat::RANDOM;
use crate::{Global, json, watch};
use clap::Args;
use onnxref::{Cancel, Value, quote};
use onnxref_view::plain;
use onnxref_view::totals::label;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// Print a hash of a model's outputs, which is the same on every machine
#[derive(Debug, Args)]
#[command(after_help = "\
The hash is SHA-256 of the files that `onnxref run -o NAME=FILE.pb` writes, one after the other in
the order of the model's outputs. Any NaN counts as the same one. It doesn't depend on the
processor, the number of threads, or optimisation. What draws random numbers without a seed has
another hash in each run: a note says so.

Example, from the root of the repository:
  CASE=onnx-test-data/gather/onnx-1.12.0/node/test_gather_2d_indices
  onnxref hash $CASE/model.onnx --inputs $CASE/test_data_set_0
  onnxref hash model.onnx --random")]
pub(crate) struct Arguments {
    /// The model: an .onnx file, the .xml file of an OpenVINO IR, or - for standard input
    model: PathBuf,

    /// The exit status is 1 if the hash is another one
    #[arg(long, value_name = "HASH", value_parser = hash)]
    expect: Option<String>,

    #[command(flatten)]
    feeding: Feeding,

    #[command(flatten)]
    running: Running,
}

fn hash(text: &str) -> Result<String, String> {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { Ok(text.to_ascii_lowercase()) } else { Err("expected 64 hexadecimal digits".to_string()) }
}

/// The hash of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    digits(Sha256::digest(bytes))
}

pub(crate) fn print(arguments: &Arguments, global: &Global) -> Result<u8, Failure> {
    let model = arguments.running.load_as(&arguments.model, |options| options)?;
    let inputs = arguments.feeding.inputs(&model)?.into_iter().collect();
    let cancel = arguments.running.cancel();
    let mut drawn = HashMap::new();
    let outputs = watch::run(&model, inputs, &cancel, true, |node, _, _| {
        if node.domain.is_empty() && RANDOM.contains(&node.operator) {
            let order = drawn.len();
            drawn.entry(place(node.index, node.name, (node.operator, node.version), node.function)).or_insert(order);
        }
        Ok(())
    });
    let outputs = outputs.map_err(Failure::run)?;
    outputs.notes().iter().for_each(|text| print::note(text));
    arguments.note_random(drawn)?;
    let (mut whole, mut each) = (Sha256::new(), BTreeMap::new());
    for (name, value) in outputs.iter() {
        let mut own = Sha256::new();
        add(name, value, Both(&mut whole, &mut own), &cancel)?;
        each.insert(name, digits(own.finalize()));
    }
    let hash = digits(whole.finalize());
    if global.json {
        let expected = arguments.expect.as_deref();
        json::line(&Document { hash: &hash, expected, outputs: &each })?;
    } else if global.verbose {
        let rows = outputs.iter().filter_map(|(name, _)| Some([each.get(name)?.clone(), plain(name)]));
        print::table(["hash", "output"], &[], rows.chain([[hash.clone(), String::new()]])).map_err(Failure::stdout)?;
    } else {
        writeln!(Stdout, "{hash}").map_err(Failure::stdout)?;
    }
    match &arguments.expect {
        Some(expected) if *expected != hash => {
            print::error(&format!("the hash is not the expected one: {expected}"));
            Ok(FAILED)
        }
        _ => Ok(0),
    }
}

impl Arguments {
    /// Prints a note if a node without a seed drew random numbers. `drawn` are the nodes that drew some, with their order.
    fn note_random(&self, mut drawn: HashMap<String, usize>) -> Result<(), Failure> {
        if drawn.is_empty() {
            return Ok(());
        }
        let found = self.running.loading.inspect_as(&self.model, |options| options)?;
        for node in found.graph.all_nodes().filter(|node| node.attributes.iter().any(|(name, _)| name == "seed")) {
            let operator = (node.operator.as_str(), node.version.unwrap_or(0));
            drawn.remove(&place(node.index, &node.name, operator, node.function.as_deref()));
        }
        if let Some((place, _)) = drawn.into_iter().min_by_key(|(_, order)| *order) {
            print::note(&format!("{place} draws random numbers without a seed: each run has another hash"));
        }
        Ok(())
    }
}

/// What a note calls a node of the standard: `node "noise" (RandomNormal-22)`.
fn place(index: usize, name: &str, (operator, version): (&str, i64), function: Option<&str>) -> String {
    let name = if name.is_empty() { format!("#{index}") } else { quote(name) };
    let around = function.map(|function| format!("{function}: ")).unwrap_or_default();
    format!("{around}node {name} ({})", label("", operator, Some(version)))
}

#[derive(Serialize)]
struct Document<'a> {
    hash: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    outputs: &'a BTreeMap<&'a str, String>,
}

/// Hashes what is written in two ways: with what came before, and by itself.
struct Both<'a>(&'a mut Sha256, &'a mut Sha256);

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        self.1.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn add(name: &str, value: &Value, to: Both<'_>, cancel: &Cancel) -> Result<(), Failure> {
    let mut to = BufWriter::new(Bounded::new(to, cancel));
    let written = value.write_canonical(name, &mut to).map_err(Unwritten::of);
    let text = |why: String| format!("output {}: {why}", quote(name));
    written.and_then(|()| Ok(to.flush()?)).map_err(|why| why.failure("the hash", text))
}

/// A hash in hexadecimal digits.
pub(crate) fn digits(hash: impl AsRef<[u8]>) -> String {
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
