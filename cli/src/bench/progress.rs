//! A line on standard error while runs are timed. It is drawn between runs only: no thread takes their time.

use crate::print;
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// Minimum time between two drawings.
const TICK: Duration = Duration::from_millis(200);

/// The line; none if standard error is not a terminal, or with `--quiet`. It disappears at the end.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    drawn: Cell<Instant>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        let bar = (io::stderr().is_terminal() && !print::quiet()).then(ProgressBar::no_length);
        if let (Some(bar), Ok(style)) = (&bar, ProgressStyle::with_template("{msg}")) {
            bar.set_style(style);
        }
        Progress { bar, drawn: Cell::new(Instant::now()) }
    }

    /// So many runs are done.
    pub(super) fn update(&self, what: &str, runs: usize) {
        let Some(bar) = &self.bar else { return };
        if self.drawn.get().elapsed() >= TICK {
            bar.set_message(format!("{what}: {runs} runs"));
            bar.tick();
            self.drawn.set(Instant::now());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
