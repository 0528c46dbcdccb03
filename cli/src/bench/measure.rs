//! Times runs.

use super::profile::Profile;
use super::progress::Progress;
use super::trace::Trace;
use crate::failure::Failure;
use onnxref::{Cancel, Model, Runner, Value};
use std::time::{Duration, Instant};

/// Maximum number of measured runs: their times are kept.
pub(super) const MAX_RUNS: i64 = 10_000_000;

/// How long to run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Amount {
    Runs(u32),
    /// Until the time is over, but at least so many runs.
    Time {
        time: Duration,
        runs: u32,
    },
}

pub(super) const WARMUP: Amount = Amount::Time { time: Duration::from_millis(500), runs: 2 };
pub(super) const DEFAULT: Amount = Amount::Time { time: Duration::from_secs(3), runs: 10 };

impl Amount {
    /// Whether so many runs, which took so long, are enough.
    fn is_reached(self, runs: usize, took: Duration) -> bool {
        match self {
            Amount::Runs(least) => runs >= least as usize,
            Amount::Time { time, runs: least } => runs >= least as usize && took >= time || runs as i64 >= MAX_RUNS,
        }
    }
}

/// What to run, and how long.
pub(super) struct Bench<'a> {
    pub(super) model: &'a Model,
    pub(super) feeds: Vec<(&'a str, Value)>,
    pub(super) warmup: Amount,
    pub(super) amount: Amount,
    /// Maximum time of a run.
    pub(super) timeout: Option<Duration>,
}

/// What the clock said.
pub(super) struct Times {
    pub(super) first: Duration,
    pub(super) warmup: usize,
    /// After the warm-up: the times themselves take memory.
    pub(super) peak_memory: Option<u64>,
    /// In seconds.
    pub(super) runs: Vec<f64>,
}

impl Bench<'_> {
    /// Times runs of a [`Runner`].
    pub(super) fn times(&self) -> Result<Times, Failure> {
        let mut runner = self.runner()?;
        let first = self.time(&mut runner)?;
        let (progress, mut warmup) = (Progress::new(), 0);
        self.repeat("warming up", &progress, self.warmup, || {
            warmup += 1;
            self.time(&mut runner)
        })?;
        let (peak_memory, mut runs) = (peak_memory(), Vec::new());
        self.repeat("measuring", &progress, self.amount, || {
            let took = self.time(&mut runner)?;
            runs.push(took.as_secs_f64());
            Ok(took)
        })?;
        Ok(Times { first, warmup, peak_memory, runs })
    }

    /// A runner with the feeds.
    fn runner(&self) -> Result<Runner, Failure> {
        let mut runner = self.model.runner();
        for (name, value) in &self.feeds {
            runner.feed(name, value).map_err(Failure::run)?;
        }
        Ok(runner)
    }

    fn time(&self, runner: &mut Runner) -> Result<Duration, Failure> {
        self.limit(runner);
        let start = Instant::now();
        runner.run().map_err(Failure::run)?;
        Ok(start.elapsed())
    }

    /// Limits the time of the next run.
    fn limit(&self, runner: &mut Runner) {
        if let Some(timeout) = self.timeout {
            runner.cancel_with(&Cancel::after(timeout));
        }
    }

    /// Runs as long again, node by node.
    pub(super) fn profile(&self) -> Result<Profile, Failure> {
        let (progress, mut profile, mut runner) = (Progress::new(), Profile::default(), self.runner()?);
        // This runner has no memory yet.
        self.time(&mut runner)?;
        self.repeat("profiling", &progress, self.amount, || self.watched(&mut runner, &mut profile))?;
        Ok(profile)
    }

    /// One run, node by node, after another one.
    pub(super) fn trace(&self) -> Result<Trace, Failure> {
        let (mut profile, mut runner) = (Profile::traced(), self.runner()?);
        self.time(&mut runner)?;
        self.watched(&mut runner, &mut profile)?;
        let mut trace = profile.trace.unwrap_or_else(Trace::new);
        trace.end();
        Ok(trace)
    }

    fn watched(&self, runner: &mut Runner, profile: &mut Profile) -> Result<Duration, Failure> {
        self.limit(runner);
        profile.start();
        runner.run_watched(profile).map_err(Failure::run)?;
        Ok(profile.end())
    }

    fn repeat(
        &self,
        what: &'static str,
        progress: &Progress,
        amount: Amount,
        mut run: impl FnMut() -> Result<Duration, Failure>,
    ) -> Result<(), Failure> {
        let (mut runs, mut took) = (0, Duration::ZERO);
        while !amount.is_reached(runs, took) {
            took += run()?;
            runs += 1;
            progress.update(what, runs);
        }
        Ok(())
    }
}

/// The most memory that the program had at a time, in bytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_is_a_count_or_a_time() {
        let second = Duration::from_secs(1);
        assert!(!Amount::Runs(2).is_reached(1, second * 9) && Amount::Runs(2).is_reached(2, Duration::ZERO));
        assert!(Amount::Runs(0).is_reached(0, Duration::ZERO));
        assert!(!DEFAULT.is_reached(9, second * 9) && !DEFAULT.is_reached(100, second));
        assert!(DEFAULT.is_reached(10, second * 3));
        assert!(DEFAULT.is_reached(MAX_RUNS as usize, Duration::ZERO));
    }
}
