//! An interruption ends the program at once, and leaves no temporary file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exit status after an interruption: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// Whether the program is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Handles interruptions from now on.
pub(crate) fn handle() {
    // If no handler can be set, an interruption may leave a file.
    let _ = ctrlc::set_handler(|| {
        ENDING.store(true, Ordering::SeqCst);
        clean();
        std::process::exit(INTERRUPTED);
    });
}

/// Goes no further after an interruption, whose handler ends the program. Not to be called while [`temporary`] is held.
pub(crate) fn point() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Moves a file to its place, unless there was an interruption.
pub(crate) fn commit<T>(move_it: impl FnOnce() -> T) -> T {
    let names = temporary();
    if ENDING.load(Ordering::SeqCst) {
        drop(names);
        point();
    }
    move_it()
}

/// The temporary files. While they are locked, an interruption waits.
pub(crate) fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files.
pub(crate) fn clean() {
    for name in temporary().drain(..) {
        // Files already moved to their places don't exist under this name.
        let _ = std::fs::remove_file(name);
    }
}
