//! The figures for people.

use super::against::label;
use super::report::{Comparison, Figures, Machine, NodeFigures, OperatorFigures, Pair, Report};
use crate::print::{self, Stdout, table};
use onnxref_view::{counted, grouped, plain};
use std::io::{self, Write};

/// Number of nodes listed without `-v`.
const NODES: usize = 20;

pub(super) fn print(report: &Report, verbose: bool) -> io::Result<()> {
    summary(report)?;
    if let (Some(profile), Some(machine)) = (&report.profile, &report.machine) {
        let plain = time(report.runs.mean);
        let share = report.operators.iter().map(|operator| operator.figures.own_seconds).sum::<f64>() / profile.mean;
        let (runs, mean) = (grouped(profile.runs), time(profile.mean));
        writeln!(
            Stdout,
            "\nProfile of {runs} runs, mean {mean} ({plain} without); nodes take {:.1} %:",
            100.0 * share
        )?;
        operators(&report.operators, machine)?;
        writeln!(Stdout)?;
        nodes(&report.nodes, verbose)?;
        limits(machine, report.threads)?;
    }
    report.against.as_ref().map_or(Ok(()), against)
}

fn summary(report: &Report) -> io::Result<()> {
    let threads = report.threads.to_string();
    let rate = if report.runs.mean > 0.0 { 1.0 / report.runs.mean } else { 0.0 };
    let (count, warmup) = (grouped(report.runs.count as u64), grouped(report.warmup_runs as u64));
    let runs = format!("{count}, {} a second, after {warmup} of warm-up", scaled(rate, ""));
    let memory = report.peak_memory_bytes.map(|bytes| ("peak memory", scaled(bytes as f64, "B")));
    let rows = [
        ("model", print::path(&report.model)),
        ("threads", threads),
        ("load", time(report.load_seconds)),
        ("first run", time(report.first_run_seconds)),
        ("runs", runs),
    ];
    for (name, text) in rows.into_iter().chain(memory) {
        writeln!(Stdout, "{name:12}{text}")?;
    }
    writeln!(Stdout)?;
    let times = report.runs.named();
    table(times.map(|(name, _)| name), &[0, 1, 2, 3, 4, 5], [times.map(|(_, seconds)| time(seconds))])
}

fn operators(operators: &[OperatorFigures], machine: &Machine) -> io::Result<()> {
    let row = |operator: &OperatorFigures| {
        let [calls, _, own, share, macs, macs_rate, bytes, bytes_rate] = cells(&operator.figures);
        let name = plain(&label(&operator.domain, &operator.operator));
        [name, calls, own, share, macs, macs_rate, bytes, bytes_rate]
    };
    let rates = [machine.macs_per_second, machine.copy_bytes_per_second].map(giga);
    let [macs_rate, bytes_rate] = rates;
    let none = String::new;
    let limit = ["(machine)".to_string(), none(), none(), none(), none(), macs_rate, none(), bytes_rate];
    let header = ["operator", "calls", "own time", "share", "MACs", "GMAC/s", "bytes", "GB/s"];
    table(header, &[1, 2, 3, 4, 5, 6, 7], operators.iter().map(row).chain([limit]))
}

fn nodes(nodes: &[NodeFigures], verbose: bool) -> io::Result<()> {
    let mut slowest: Vec<&NodeFigures> = nodes.iter().collect();
    slowest.sort_by(|a, b| b.figures.own_seconds.total_cmp(&a.figures.own_seconds));
    let shown = if verbose { slowest.len() } else { NODES };
    let row = |node: &&NodeFigures| {
        let [calls, whole, own, share, macs, macs_rate, bytes, bytes_rate] = cells(&node.figures);
        let operator = plain(&label(&node.domain, &node.operator));
        [path(node, nodes), operator, calls, whole, own, share, macs, macs_rate, bytes, bytes_rate]
    };
    let header = ["node", "operator", "calls", "time", "own time", "share", "MACs", "GMAC/s", "bytes", "GB/s"];
    table(header, &[2, 3, 4, 5, 6, 7, 8, 9], slowest.iter().take(shown).map(row))?;
    match slowest.len().checked_sub(shown) {
        Some(more @ 1..) => writeln!(Stdout, "and {} more: -v lists all", grouped(more as u64)),
        _ => Ok(()),
    }
}

/// Calls, time, own time, share, MACs, GMAC/s, bytes, GB/s.
fn cells(figures: &Figures) -> [String; 8] {
    let unless_zero = |number: u64, text: String| if number == 0 { String::new() } else { text };
    let Figures { calls, seconds, own_seconds, share, macs, bytes } = *figures;
    [
        grouped(calls),
        time(seconds),
        time(own_seconds),
        format!("{:.1} %", 100.0 * share),
        unless_zero(macs, scaled(macs as f64, "")),
        unless_zero(macs, giga(figures.macs_rate())),
        unless_zero(bytes, scaled(bytes as f64, "B")),
        unless_zero(bytes, giga(figures.bytes_rate())),
    ]
}

/// A node after those around it: `loop > #3`.
fn path(node: &NodeFigures, nodes: &[NodeFigures]) -> String {
    let name = if node.name.is_empty() { format!("#{}", node.index) } else { plain(&node.name) };
    let around = node.parent.and_then(|parent| nodes.get(parent));
    around.map_or(name.clone(), |around| format!("{} > {name}", path(around, nodes)))
}

fn limits(machine: &Machine, threads: usize) -> io::Result<()> {
    let Machine { processor, copy_bytes, matrix_size, .. } = machine;
    let threads = counted(threads, "thread");
    let processor = processor.as_ref().map(|name| format!(" of {}", print::path(name))).unwrap_or_default();
    writeln!(
        Stdout,
        "\n(machine): measured on {threads}{processor}: GMAC/s as fast as onnxref's own product of two float32 matrices, \
         {matrix_size}x{matrix_size}; GB/s read and written by a copy of {} MiB.\nBytes: sizes of inputs and outputs. A \
         node that picks from them or shares them touches less.",
        copy_bytes >> 20
    )
}

fn against(comparison: &Comparison) -> io::Result<()> {
    let optional = |seconds: Option<f64>| seconds.map_or("-".to_string(), time);
    let row = |pair: &Pair| {
        let ratio = pair.ratio.map_or("-".to_string(), |ratio| format!("{ratio:.3}"));
        [plain(&pair.name), optional(pair.before), optional(pair.after), ratio]
    };
    writeln!(Stdout)?;
    table(["time of runs", "before", "after", "ratio"], &[1, 2, 3], comparison.runs.iter().map(row))?;
    if comparison.operators.is_empty() {
        return Ok(());
    }
    writeln!(Stdout)?;
    table(["own time", "before", "after", "ratio"], &[1, 2, 3], comparison.operators.iter().map(row))
}

/// Seconds with three digits and a unit: `1.23 ms`.
fn time(seconds: f64) -> String {
    let units = [("s", 1.0), ("ms", 1e3), ("µs", 1e6)];
    let fitting = units.iter().find(|(_, scale)| seconds * scale >= 0.9995);
    let (unit, scale) = fitting.copied().unwrap_or(("ns", 1e9));
    format!("{} {unit}", digits(seconds * scale))
}

/// A number with three digits, a decimal prefix and a unit: `1.23 MB`.
fn scaled(number: f64, unit: &str) -> String {
    let prefixes = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
    let fitting = prefixes.iter().find(|(_, scale)| number / scale >= 0.9995);
    match fitting {
        Some((prefix, scale)) => format!("{} {prefix}{unit}", digits(number / scale)),
        None if unit.is_empty() => digits(number),
        None => format!("{} {unit}", digits(number)),
    }
}

/// A rate in units of 10^9.
fn giga(rate: f64) -> String {
    digits(rate / 1e9)
}

/// Three digits, or all before the point.
fn digits(number: f64) -> String {
    let after = if number >= 99.95 {
        0
    } else if number >= 9.995 {
        1
    } else {
        2
    };
    format!("{number:.after$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let times = [2.0, 0.9996, 0.12345, 0.00999, 12.345e-6, 5e-9, 0.0].map(time);
        assert_eq!(times, ["2.00 s", "1.00 s", "123 ms", "9.99 ms", "12.3 µs", "5.00 ns", "0.00 ns"]);
        assert_eq!([118_013_952.0, 999.0, 1.0].map(|n| scaled(n, "B")), ["118 MB", "999 B", "1.00 B"]);
        assert_eq!(scaled(2_048.0, ""), "2.05 k");
    }
}
