//! What ends a run: its time, or a signal such as Ctrl-C.

use onnxref::Cancel;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at signals, for which a run waits until it may speak to Python.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The exception of a signal that ended a run.
#[derive(Clone, Default)]
pub(crate) struct Interruption(Arc<Mutex<Option<PyErr>>>);

impl Interruption {
    /// Ends a run of this thread at a signal whose handler raises, or after `time`.
    pub(crate) fn cancel(&self, time: Option<Duration>) -> Cancel {
        let (start, own) = (Instant::now(), thread::current().id());
        let (looked, raised) = (AtomicU64::new(0), AtomicBool::new(false));
        let kept = self.clone();
        Cancel::when(move || {
            let passed = start.elapsed();
            // Helpers see it too.
            if raised.load(Ordering::Relaxed) || time.is_some_and(|time| passed >= time) {
                return true;
            }
            let millis = passed.as_millis() as u64;
            // Python calls handlers on its main thread only. Helpers never are that.
            if millis < looked.load(Ordering::Relaxed) + BETWEEN_LOOKS.as_millis() as u64
                || thread::current().id() != own
            {
                return false;
            }
            let exception = Python::try_attach(|py| py.check_signals().err()).flatten();
            looked.store(start.elapsed().as_millis() as u64, Ordering::Relaxed);
            let ends = exception.is_some();
            if ends {
                kept.set(exception);
                raised.store(true, Ordering::Relaxed);
            }
            ends
        })
    }

    /// Keeps an exception that ends a run.
    pub(crate) fn set(&self, raised: Option<PyErr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = raised;
    }

    /// The exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
