//! Times contenders in turns: in each round every contender of a cell takes one sample, in a changing order, so that a
//! disturbance affects all of them. The medians of the rounds are comparable; those of different runs are less so.

use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Minimum length of a sample: many times the cost of reading the clock.
const SAMPLE: Duration = Duration::from_micros(1500);

/// Minimum number of rounds of a cell, however slow it is.
const ROUNDS: usize = 7;

const USAGE: &str = "cargo bench -- [FILTER ..] [--exact] [--list] [--seconds S] [--json FILE] [--export DIR]

FILTER         only cells whose name contains one of these (--exact: is one of these)
--list         print the names of the cells
--seconds S    how long a cell is measured (default 2)
--json FILE    write the medians too: a line of JSON for each cell, times in nanoseconds
--export DIR   write the model and the inputs of each cell: model.onnx and *.npy in DIR/CELL";

/// Something that is timed.
pub struct Contender<'a> {
    name: &'static str,
    work: Box<dyn FnMut() + 'a>,
    /// How often a sample repeats the work.
    times: u32,
    /// Nanoseconds of the work, by round.
    samples: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// `work` under a name.
    pub fn new(name: &'static str, work: impl FnMut() + 'a) -> Contender<'a> {
        Contender { name, work: Box::new(work), times: 1, samples: Vec::new() }
    }

    fn time(&mut self, times: u32) -> Duration {
        let start = Instant::now();
        for _ in 0..times {
            (self.work)();
        }
        start.elapsed()
    }

    /// Finds how often the work fits a sample.
    fn calibrate(&mut self) {
        loop {
            let took = self.time(self.times);
            if took >= SAMPLE {
                return;
            }
            let factor = SAMPLE.as_secs_f64() / took.as_secs_f64().max(1e-9);
            self.times = (f64::from(self.times) * (1.1 * factor).clamp(1.5, 20.0)).ceil() as u32;
        }
    }

    fn sample(&mut self) {
        self.time(self.times / 4 + 1); // its data is in the caches again
        let took = self.time(self.times);
        self.samples.push(took.as_secs_f64() * 1e9 / f64::from(self.times));
    }

    fn median(&mut self) -> f64 {
        self.samples.sort_by(f64::total_cmp);
        self.samples[self.samples.len() / 2]
    }
}

/// The command line's options.
pub struct Bench {
    filters: Vec<String>,
    exact: bool,
    list: bool,
    /// Zero: as a test, everything runs a few times.
    time: Duration,
    json: Option<File>,
    export: Option<PathBuf>,
}

impl Bench {
    /// Reads the command line.
    pub fn from_args() -> Bench {
        let mut bench =
            Bench { filters: vec![], exact: false, list: false, time: Duration::ZERO, json: None, export: None };
        let mut seconds = 2.0;
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| fail(&format!("{arg} needs a value")));
            match arg.as_str() {
                "--bench" => bench.time = Duration::MAX, // cargo bench says so, cargo test doesn't
                "--exact" => bench.exact = true,
                "--list" => bench.list = true,
                "--seconds" => seconds = value().parse().unwrap_or_else(|_| fail("--seconds takes a number")),
                "--json" => bench.json = Some(File::create(value()).unwrap_or_else(|e| fail(&format!("--json: {e}")))),
                "--export" => bench.export = Some(value().into()),
                "--help" | "-h" => fail(""),
                option if option.starts_with('-') => fail(&format!("unknown option {option}")),
                _ => bench.filters.push(arg),
            }
        }
        bench.time = bench.time.min(Duration::try_from_secs_f64(seconds).unwrap_or_else(|e| fail(&e.to_string())));
        bench
    }

    /// Whether a cell is selected. Prints its name if only names are requested.
    pub fn wants(&self, cell: &str) -> bool {
        let asked = |filter: &String| if self.exact { cell == filter } else { cell.contains(filter.as_str()) };
        let wanted = self.filters.is_empty() || self.filters.iter().any(asked);
        if wanted && self.list {
            println!("{cell}");
        }
        wanted && !self.list
    }

    /// Where to write models and inputs.
    pub fn export(&self) -> Option<&Path> {
        self.export.as_deref()
    }

    /// Measures the contenders and reports them; ratios are to the first. `facts` go into the JSON too.
    pub fn measure(&mut self, cell: &str, facts: Value, mut contenders: Vec<Contender<'_>>) {
        contenders.iter_mut().for_each(Contender::calibrate);
        let (start, count) = (Instant::now(), contenders.len());
        let mut round = 0;
        while round == 0 || (!self.time.is_zero() && round < ROUNDS) || start.elapsed() < self.time {
            for turn in 0..count {
                let turn = if round % 2 == 0 { turn } else { count - 1 - turn };
                contenders[(turn + round / 2) % count].sample();
            }
            round += 1;
        }
        let medians: Vec<(&str, f64)> = contenders.iter_mut().map(|c| (c.name, c.median())).collect();
        let base = medians[0].1;
        let show = |&(name, ns): &(&str, f64)| format!("{name} {} ({:.2})", duration(ns), ns / base);
        println!("{cell:<38} {}", medians.iter().map(show).collect::<Vec<_>>().join("  "));
        if let Some(file) = &mut self.json {
            let ns: Map<String, Value> =
                medians.iter().map(|&(name, ns)| (name.to_string(), json!((ns * 10.0).round() / 10.0))).collect();
            let mut line = json!({ "cell": cell, "rounds": round, "ns": ns });
            line.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
            writeln!(file, "{line}").unwrap_or_else(|e| fail(&format!("--json: {e}")));
        }
    }
}

/// A time in a unit that suits.
fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}\n\n{USAGE}");
    std::process::exit(2)
}
