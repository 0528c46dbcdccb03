//! What ends a run: its time, a signal such as Ctrl-C, or another thread.

use crate::errors;
use onnxref::Cancel;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at signals, for which a run waits until it may speak to Python.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Stack of a thread that works in the place of the caller's, as the main thread of most systems has it.
const STACK: usize = 8 << 20;

/// What `work` returns, which can't be stopped midway. A signal whose handler raises ends the wait for it: `work` goes on by
/// itself, and what it returns is dropped.
pub(crate) fn awaited<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (done, mut waiting) = mpsc::sync_channel(1);
    let worker = move || {
        // Nobody may wait any more.
        let _ = done.send(errors::caught(work));
    };
    thread::Builder::new().stack_size(STACK).spawn(worker)?;
    loop {
        let alone = &mut waiting; // a receiver can't be shared
        match py.detach(move || alone.recv_timeout(BETWEEN_LOOKS)) {
            Ok(returned) => return returned,
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the thread that worked has ended"));
            }
        }
    }
}

/// What another thread sets to end runs: `RunOptions.terminate`.
#[pyclass(frozen, module = "onnxref._onnxref")]
pub(crate) struct End(Arc<AtomicBool>);

#[pymethods]
impl End {
    #[new]
    fn new() -> End {
        End(Arc::default())
    }

    fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The exception of a signal that ended a run.
#[derive(Clone, Default)]
pub(crate) struct Interruption(Arc<Mutex<Option<PyErr>>>);

impl Interruption {
    /// Ends a run of this thread at a signal whose handler raises, after `time`, or once `end` is set.
    pub(crate) fn cancel(&self, time: Option<Duration>, end: Option<&End>) -> Cancel {
        let (start, own) = (Instant::now(), thread::current().id());
        let (looked, raised) = (AtomicU64::new(0), AtomicBool::new(false));
        let (kept, end) = (self.clone(), end.map(|end| Arc::clone(&end.0)));
        let ask = move || {
            // Helpers see it too.
            if raised.load(Ordering::Relaxed) || end.as_ref().is_some_and(|end| end.load(Ordering::Relaxed)) {
                return true;
            }
            let millis = start.elapsed().as_millis() as u64;
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
        };
        match time {
            Some(time) => Cancel::when_or_after(ask, time),
            None => Cancel::when(ask),
        }
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
