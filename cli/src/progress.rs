//! A progress bar on standard error, for work that takes longer than a second.

use crate::print;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

/// Time until the bar is shown.
const DELAY: Duration = Duration::from_secs(1);

/// Time between two drawings.
const TICK: Duration = Duration::from_millis(100);

/// The bar. It stays hidden if standard error is not a terminal, or with `--quiet`. It disappears at the end.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new() -> Progress {
        let bar = ProgressBar::hidden();
        set_style(&bar, "{spinner} {msg}");
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if io::stderr().is_terminal() && !dumb && !print::quiet() {
            let bar = bar.downgrade();
            let draw = move || {
                thread::sleep(DELAY);
                bar.upgrade().inspect(|bar| bar.set_draw_target(ProgressDrawTarget::stderr()));
                while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
                    bar.tick();
                    drop(bar);
                    thread::sleep(TICK);
                }
            };
            // Without a thread it stays hidden.
            let _ = thread::Builder::new().spawn(draw);
        }
        Progress(bar)
    }

    /// There is more to do.
    pub(crate) fn expect(&self, more: usize) {
        self.0.set_length(self.0.length().unwrap_or(0) + more as u64);
        set_style(&self.0, "{spinner} {pos}/{len} {msg}");
    }

    /// What is being done.
    pub(crate) fn message(&self, text: &str) {
        self.0.set_message(text.to_string());
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// Prints without drawing across the bar.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
