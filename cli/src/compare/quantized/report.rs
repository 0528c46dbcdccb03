//! The errors of quantized tensors, as text or JSON.

use super::{Noise, Row};
use crate::failure::Failure;
use crate::path::Step;
use crate::print::{Stdout, table};
use crate::stats::rounded;
use crate::{Global, json};
use onnxref::{Cancel, NodeInfo, Scalar, quote};
use onnxref_view::json::Element;
use onnxref_view::{counted, dtype_name, plain, totals};
use serde::Serialize;
use std::io::{self, Write};

/// Maximum number of tensors that are listed without `-v`.
const MAX_ROWS: usize = 20;

pub(super) struct Report {
    /// The worst first.
    pub(super) rows: Vec<Row>,
    pub(super) outputs: Vec<(String, Option<Noise>)>,
}

pub(super) fn print(report: &Report, global: &Global, cancel: &Cancel) -> Result<(), Failure> {
    if global.json {
        return json::line_until(&Document::new(report), cancel);
    }
    text(report, global.verbose).map_err(Failure::stdout)
}

fn text(report: &Report, all: bool) -> io::Result<()> {
    let Report { rows, outputs } = report;
    let shown = if all { rows.len() } else { MAX_ROWS };
    let row = |row: &Row| {
        let (local, total) = (row.local.as_ref(), row.total.as_ref());
        [
            name(row),
            if row.weights { "weights" } else { "values" }.to_string(),
            dtype_name(row.dtype).to_string(),
            format!("{:?}", row.shape),
            decibel(local),
            greatest(local),
            clipped(local.or(total)),
            decibel(total),
            greatest(total),
        ]
    };
    let header = ["tensor", "", "type", "shape", "own dB", "greatest", "clipped", "total dB", "greatest"];
    table(header, &[4, 5, 6, 7, 8], rows.iter().take(shown).map(row))?;
    let (hidden, alone) = (rows.len().saturating_sub(shown), rows.iter().filter(|row| row.total.is_none()).count());
    writeln!(Stdout)?;
    if hidden > 0 {
        writeln!(Stdout, "{} with smaller errors (-v lists them)", counted(hidden, "more tensor"))?;
    }
    if alone > 0 {
        writeln!(Stdout, "{} without a value in the float model: no total", counted(alone, "tensor"))?;
    }
    let row =
        |(name, noise): &(String, Option<Noise>)| [plain(name), decibel(noise.as_ref()), greatest(noise.as_ref())];
    table(["output", "total dB", "greatest"], &[1, 2], outputs.iter().map(row))
}

/// A tensor of the model's graph by its name.
fn name(row: &Row) -> String {
    if row.path.path.is_empty() {
        return plain(&row.name);
    }
    let text = row.path.text();
    format!("{}{}", quote(&row.name), text.get(quote(&row.path.name).len()..).unwrap_or(""))
}

/// `Conv-11 "conv"`, `Conv-11 #4`.
pub(super) fn label(node: &NodeInfo<'_>) -> String {
    let name = if node.name.is_empty() { format!("#{}", node.index) } else { quote(node.name) };
    format!("{} {name}", totals::label(node.domain, node.operator, Some(node.version)))
}

fn decibel(noise: Option<&Noise>) -> String {
    let text = |noise: &Noise| match noise.decibel() {
        exact if exact == f64::INFINITY => "exact".to_string(),
        decibel => format!("{decibel:.1}"),
    };
    noise.map_or("-".to_string(), text)
}

fn greatest(noise: Option<&Noise>) -> String {
    noise.map_or("-".to_string(), |noise| rounded(noise.greatest))
}

fn clipped(noise: Option<&Noise>) -> String {
    let text = |noise: &Noise| match noise.clipped_share() {
        0.0 => "0".to_string(),
        share if share < 1e-4 => "< 0.01%".to_string(),
        share => format!("{:.2}%", 100.0 * share),
    };
    noise.map_or("-".to_string(), text)
}

#[derive(Serialize)]
struct Document<'a> {
    tensors: Vec<Line<'a>>,
    outputs: Vec<Output<'a>>,
}

/// A quantized tensor.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    /// The first output of the node.
    output: &'a str,
    #[serde(skip_serializing_if = "<[Step]>::is_empty")]
    path: &'a [Step],
    weights: bool,
    node: &'a str,
    dtype: &'static str,
    shape: &'a [usize],
    scales: usize,
    own: Option<Errors>,
    total: Option<Errors>,
}

#[derive(Serialize)]
struct Output<'a> {
    name: &'a str,
    total: Option<Errors>,
}

/// Infinite ones are `"inf"`.
#[derive(Serialize)]
struct Errors {
    decibel: Element<'static>,
    relative: Element<'static>,
    greatest: Element<'static>,
    clipped: f64,
    elements: u64,
    skipped: u64,
}

impl Errors {
    fn new(noise: &Noise) -> Errors {
        let element = |number: f64| Element(Scalar::Double(number));
        Errors {
            decibel: element(noise.decibel()),
            relative: element(noise.relative()),
            greatest: element(noise.greatest),
            clipped: noise.clipped_share(),
            elements: noise.elements,
            skipped: noise.skipped,
        }
    }
}

impl<'a> Document<'a> {
    fn new(report: &'a Report) -> Document<'a> {
        let line = |row: &'a Row| Line {
            name: &row.name,
            output: &row.path.name,
            path: &row.path.path,
            weights: row.weights,
            node: &row.node,
            dtype: dtype_name(row.dtype),
            shape: &row.shape,
            scales: row.scales,
            own: row.local.as_ref().map(Errors::new),
            total: row.total.as_ref().map(Errors::new),
        };
        let output =
            |(name, noise): &'a (String, Option<Noise>)| Output { name, total: noise.as_ref().map(Errors::new) };
        Document {
            tensors: report.rows.iter().map(line).collect(),
            outputs: report.outputs.iter().map(output).collect(),
        }
    }
}
