//! Comparing outputs with expected ones: `--expect`.

use crate::failure::Failure;
use crate::feeds::numbered;
use crate::value::{Named, Wanted, split, value};
use crate::{floats, npz, print};
use clap::Args;
use onnxref::conformance::{Difference, DifferenceKind, Tolerance};
use onnxref::{Model, Value, quote};
use onnxref_view::difference::{Differs, ulps};
use serde::Serialize;
use std::path::Path;

/// How far a float may be from the expected one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparing")]
pub(crate) struct Slack {
    /// Accept a relative error of floats up to X [default: 1e-3]
    #[arg(long, value_name = "X", value_parser = error)]
    rtol: Option<f64>,

    /// Accept an absolute error of floats up to X [default: 1e-7]
    #[arg(long, value_name = "X", value_parser = error)]
    atol: Option<f64>,
}

fn error(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number that is not negative, such as 1e-4".to_string())
}

impl Slack {
    /// The tolerance; where no flag is given, that of `otherwise`.
    pub(crate) fn tolerance(&self, otherwise: Tolerance) -> Tolerance {
        let mut tolerance = otherwise;
        tolerance.rtol = self.rtol.unwrap_or(tolerance.rtol);
        tolerance.atol = self.atol.unwrap_or(tolerance.atol);
        tolerance
    }
}

/// Expected values by the name of the output.
pub(crate) type Expected<'a> = Vec<(&'a str, Value)>;

/// Reads expected outputs: a folder with output_0.pb, .., a .npz file, or `NAME=VALUE`.
pub(crate) fn expected<'a>(texts: &[String], model: &'a Model) -> Result<Expected<'a>, Failure> {
    let mut all: Expected<'a> = Vec::new();
    for text in texts {
        let wrong = |why: String| Failure::usage(format!("--expect {}: {why}", print::path(text)));
        let other = |name: &str| {
            let names: Vec<String> = model.outputs().map(|info| quote(&info.name)).collect();
            let names = print::listed(&names, ", ");
            wrong(format!("the model has no output {}: its outputs are {names}", quote(name)))
        };
        let path = Path::new(text);
        if path.is_dir() {
            for (position, path) in numbered(path, "output_").map_err(wrong)? {
                let info = model.outputs().nth(position).ok_or_else(|| other(&format!("#{position}")))?;
                let wanted = Wanted::of_type(info.value_type.as_ref());
                all.push((&info.name, value(&path.to_string_lossy(), wanted).map_err(wrong)?));
            }
        } else if path.is_file() && path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz")) {
            let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
            for (name, tensor) in npz::read(&bytes, model.limits()).map_err(wrong)? {
                let info = model.outputs().find(|info| info.name == name).ok_or_else(|| other(&name))?;
                all.push((&info.name, tensor.into()));
            }
        } else {
            let (info, text) = match split(text, model.outputs()) {
                Named::Declared(info, text) => (info, text),
                Named::Other(name) => return Err(other(name)),
                Named::Not => return Err(wrong("NAME= is missing".to_string())),
            };
            all.push((&info.name, value(text, Wanted::of_type(info.value_type.as_ref())).map_err(wrong)?));
        }
    }
    if let Some((name, _)) =
        all.iter().enumerate().find_map(|(k, (n, v))| Some((n, v)).filter(|_| all.iter().take(k).any(|(m, _)| m == n)))
    {
        return Err(Failure::usage(format!("output {} is expected twice", quote(name))));
    }
    Ok(all)
}

/// The result of a comparison.
#[derive(Serialize)]
pub(crate) struct Compared {
    /// Equal bit by bit.
    pub(crate) exact: bool,
    /// Equal within the tolerance.
    pub(crate) equal: bool,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "differs")]
    difference: Option<Difference>,
}

fn differs<S: serde::Serializer>(difference: &Option<Difference>, serializer: S) -> Result<S::Ok, S::Error> {
    difference.as_ref().map(Differs::new).serialize(serializer)
}

impl Compared {
    pub(crate) fn new(got: &Value, want: &Value, tolerance: Tolerance) -> Compared {
        let (equal, exact, difference) = match tolerance.compare(got, want) {
            Ok(exact) => (true, exact, None),
            Err(difference) => (false, false, Some(difference)),
        };
        Compared { exact, equal, difference }
    }

    /// As [`Compared::new`], but of floats of two types as numbers: whether they are, and then not bit by bit.
    pub(crate) fn as_numbers(got: &Value, want: &Value, tolerance: Tolerance) -> (Compared, bool) {
        match floats::widened(got, want) {
            Some((got, want)) => (Compared { exact: false, ..Compared::new(&got, &want, tolerance) }, true),
            None => (Compared::new(got, want, tolerance), false),
        }
    }

    /// In what they differ.
    pub(crate) fn kind(&self) -> Option<DifferenceKind> {
        self.difference.as_ref().map(|difference| difference.kind)
    }

    /// `equal bit by bit`, `equal within the tolerance`, or how it differs.
    pub(crate) fn text(&self) -> String {
        match &self.difference {
            Some(difference) => format!("{difference}{}", ulps(difference)),
            None if self.exact => "is equal bit by bit".to_string(),
            None => "is equal within the tolerance".to_string(),
        }
    }
}
