//! The fuzz targets. Each `run` takes bytes and panics if the library breaks a promise.

pub mod document;
pub mod external;
pub mod graphs;
pub mod load;
pub mod model;
pub mod nodes;
pub mod operators;
mod plain;
pub mod replay;
mod source;
pub mod tensor;
pub mod text;

/// The messages of the ONNX format.
#[allow(missing_docs, clippy::all)]
#[rustfmt::skip] // as the generator writes it
#[path = "../../src/onnx/proto.rs"]
pub mod proto;

use onnxref::{Error, Inputs, Limits, Model, Value};

/// A target: its name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 9] = [
    ("load", load::run),
    ("model", model::run),
    ("tensor", tensor::run),
    ("operators", operators::run),
    ("external", external::run),
    ("graphs", graphs::run),
    ("nodes", nodes::run),
    ("document", document::run),
    ("text", text::run),
];

/// Limits that keep everything fast.
fn small_limits() -> Limits {
    let mut limits = Limits::default();
    limits.file_bytes = 1 << 20;
    limits.load_bytes = 4 << 20;
    limits.tensor_bytes = 1 << 20;
    limits.run_bytes = 4 << 20;
    limits.run_elements = 1 << 20;
    limits.run_nodes = 1 << 16;
    limits.run_work = 1 << 24;
    limits
}

/// The text of an error and of its causes is short and harmless.
fn check_error(error: &Error) {
    // A node's place stands before the message: three names of up to 100 bytes, escaped.
    const LONGEST: usize = 4096 + 3 * 700;
    let text = error.to_string();
    assert!(text.len() <= LONGEST, "an error of {} bytes: {text}", text.len());
    let (first, more) = text.split_once('\n').unwrap_or((&text, ""));
    check_line(first);
    check_line(more);
    assert!(!text.is_empty() && !format!("{error:?}").is_empty());
    let causes = error.causes();
    assert!((1..=1000).contains(&causes.len()), "{} causes", causes.len());
    for cause in causes {
        let text = cause.to_string();
        assert!(text.len() <= LONGEST, "a cause of {} bytes: {text}", text.len());
        if causes.len() > 1 {
            check_line(&text);
        }
    }
}

/// A line has nothing that breaks it, reorders it or drives a terminal.
fn check_line(line: &str) {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if let Some(c) = line.chars().find(|&c| harmful(c)) {
        panic!("a text has the character {c:?}: {line:?}");
    }
}

/// Notes are lines, and bounded.
fn check_notes(notes: &[String]) {
    for note in notes {
        assert!(note.len() <= 32 << 10, "a note of {} bytes: {note}", note.len());
        check_line(note);
    }
}

/// What a run gives, by name.
type Named = Vec<(String, Value)>;

/// Runs a model twice at once and twice by a runner: all give the same, be it outputs or an error.
fn run_model(model: &Model, feeds: &[(String, Value)]) -> Result<Named, Error> {
    let once = || -> Result<Named, Error> {
        let inputs: Inputs<'_> = feeds.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let outputs = model.run(inputs)?;
        check_notes(outputs.notes());
        let named: Named = outputs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let moved: Named = outputs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        assert_eq!(named, moved);
        Ok(named)
    };
    let first = once();
    match (&first, once()) {
        (Ok(first), Ok(second)) => assert_eq!(first, &second, "a second run gives something else"),
        (Err(first), Err(second)) => assert_eq!(first.to_string(), second.to_string()),
        (first, second) => panic!("a second run ends otherwise: {first:?}, {second:?}"),
    }
    let mut runner = model.runner();
    let fed = feeds.iter().try_for_each(|(name, value)| runner.feed(name, value));
    for _ in 0..2 {
        // A name fed twice is an error of `run` alone.
        if fed.is_err() || (0..feeds.len()).any(|k| feeds[..k].iter().any(|(name, _)| *name == feeds[k].0)) {
            break;
        }
        match (&first, runner.run()) {
            (Ok(outputs), Ok(())) => {
                for (name, value) in outputs {
                    let got = runner.value(name).expect("an output of the model");
                    // Of outputs of one name the first is meant.
                    let want = outputs.iter().find(|(other, _)| other == name).map_or(value, |(_, value)| value);
                    assert_eq!(got, want, "a runner gives something else");
                }
            }
            (Err(error), Err(other)) => assert_eq!(error.to_string(), other.to_string()),
            (first, second) => panic!("a runner ends otherwise: {first:?}, {second:?}"),
        }
    }
    if let Err(error) = &first {
        check_error(error);
    }
    first
}
