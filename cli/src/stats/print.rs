//! Statistics as tables and JSON.

use super::{From, Input, Look, Node, Numbers, Row, Stop};
use crate::path::ValuePath;
use crate::print::{Stdout, table};
use onnxref::quote;
use onnxref_view::statistics::Statistics;
use onnxref_view::totals::label;
use onnxref_view::{counted, grouped, plain};
use serde::Serialize;
use std::io::{self, Write};

/// The statistics of a run, and where it was stopped.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<&'a [Row]>,
    /// The number of values in subgraphs that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    unlisted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'a Stop>,
}

impl Look<'_> {
    pub(crate) fn document(&self) -> Document<'_> {
        let stats = self.looking.stats.then_some(&*self.rows);
        Document { stats, unlisted: stats.map(|_| self.unlisted), stopped: self.stop.as_ref() }
    }

    /// Prints the statistics, and where the run was stopped.
    pub(crate) fn print(&self, verbose: bool) -> io::Result<()> {
        if self.looking.stats {
            self.print_rows(verbose)?;
        }
        let Some(stop) = &self.stop else { return Ok(()) };
        if self.looking.stats {
            writeln!(Stdout)?;
        }
        stop.print()
    }

    fn print_rows(&self, verbose: bool) -> io::Result<()> {
        let rows = self.rows.iter().map(|row| cells(value(&row.path), &row.numbers));
        if verbose {
            let source = |row: &Row| match (&row.node, row.from) {
                (Some(node), _) => label(&node.domain, &node.operator, Some(node.version)),
                (None, From::Initializer) => "initializer".to_string(),
                (None, _) => "input".to_string(),
            };
            let rows = self.rows.iter().zip(rows).map(|(row, [name, rest @ ..])| {
                let [kind, shape, least, greatest, mean, nan, infinite, zeros, beyond] = rest;
                [name, source(row), kind, shape, least, greatest, mean, nan, infinite, zeros, beyond]
            });
            let [name, rest @ ..] = HEADER;
            let [kind, shape, least, greatest, mean, nan, infinite, zeros, beyond] = rest;
            let header = [name, "from", kind, shape, least, greatest, mean, nan, infinite, zeros, beyond];
            table(header, &[4, 5, 6, 7, 8, 9, 10], rows)?;
        } else {
            table(HEADER, &NUMBERS, rows)?;
        }
        writeln!(Stdout)?;
        writeln!(Stdout, "{}: {}", counted(self.rows.len(), "value"), self.summary().join("; "))
    }

    /// How many values have what is worth a look, and the first of them.
    fn summary(&self) -> Vec<String> {
        let of = |what: &str, count: fn(&Statistics) -> Option<u64>| {
            let has = |row: &&Row| row.numbers.statistics.as_ref().and_then(count).unwrap_or(0) > 0;
            match self.rows.iter().find(has) {
                None => format!("none with {what}"),
                Some(first) => {
                    let count = self.rows.iter().filter(has).count();
                    format!("{} with {what}, the first is {}", grouped(count as u64), first.path.text())
                }
            }
        };
        vec![
            of("NaN", |statistics| statistics.nan),
            of("infinities", |statistics| statistics.infinite),
            of("numbers that float16 can't hold", |statistics| statistics.beyond_float16),
        ]
    }
}

impl Stop {
    fn print(&self) -> io::Result<()> {
        let Stop { what, node, count, position, inputs, output } = self;
        let what = what.text();
        let of = output.numbers.statistics.as_ref().map_or(0, |statistics| statistics.elements);
        let at = position.as_ref().map(|position| format!(", the first at {position:?}")).unwrap_or_default();
        writeln!(
            Stdout,
            "{} gives {}: {} of {} elements {} {what}{at}; its inputs have none",
            node.text(),
            output.path.text(),
            grouped(*count),
            grouped(of),
            if *count == 1 { "is" } else { "are" },
        )?;
        writeln!(Stdout)?;
        let name = |(k, input): (usize, &Input)| {
            let name = input.path.as_ref().map_or(format!("input {k}"), value);
            cells(name, &input.numbers)
        };
        let rows = inputs.iter().enumerate().map(name);
        table(HEADER, &NUMBERS, rows.chain([cells(value(&output.path), &output.numbers)]))
    }
}

impl Node {
    /// `node "add" (Add-14)`.
    fn text(&self) -> String {
        let name = if self.name.is_empty() { format!("#{}", self.index) } else { quote(&self.name) };
        format!("node {name} ({})", label(&self.domain, &self.operator, Some(self.version)))
    }
}

const HEADER: [&str; 10] =
    ["value", "type", "shape", "least", "greatest", "mean", "NaN", "infinite", "zeros", "> float16"];

/// The columns of numbers.
const NUMBERS: [usize; 7] = [3, 4, 5, 6, 7, 8, 9];

/// A value of the model's graph by its name.
fn value(path: &ValuePath) -> String {
    if path.path.is_empty() { plain(&path.name) } else { path.text() }
}

fn cells(name: String, numbers: &Numbers) -> [String; 10] {
    let Numbers { value_type, shape, statistics } = numbers;
    let shape = shape.as_ref().map(|shape| format!("{shape:?}")).unwrap_or_default();
    let text = |text: Option<String>| text.unwrap_or("-".to_string());
    let count = |count: Option<u64>| text(count.map(grouped));
    let of = statistics.as_ref();
    let scalar = |scalar: Option<&Option<onnxref::Scalar<'static>>>| {
        text(scalar.and_then(|scalar| scalar.as_ref()).map(ToString::to_string))
    };
    [
        name,
        value_type.clone(),
        shape,
        scalar(of.map(|of| &of.least)),
        scalar(of.map(|of| &of.greatest)),
        text(of.and_then(|of| of.mean).map(rounded)),
        count(of.and_then(|of| of.nan)),
        count(of.and_then(|of| of.infinite)),
        count(of.map(|of| of.zeros)),
        count(of.and_then(|of| of.beyond_float16)),
    ]
}

/// A number with six digits.
pub(crate) fn rounded(number: f64) -> String {
    let text = format!("{number:.5e}");
    // What is read back has no digits beyond the sixth.
    match text.parse::<f64>() {
        Ok(short) if short == 0.0 || (1e-5..1e16).contains(&short.abs()) => format!("{short}"),
        Ok(short) => format!("{short:e}"),
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        let numbers = [0.0, -1.0 / 3.0, 123456.78, 1234567.8, 1e-7 / 3.0, -2e300, f64::INFINITY];
        let texts = ["0", "-0.333333", "123457", "1234570", "3.33333e-8", "-2e300", "inf"];
        assert_eq!(numbers.map(rounded), texts);
    }
}
