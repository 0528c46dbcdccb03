//! An interruption ends the program at once, and leaves no temporary file.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exit status after an interruption: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Handles interruptions from now on.
pub(crate) fn handle() {
    // If no handler can be set, an interruption may leave a file.
    let _ = ctrlc::set_handler(|| {
        clean();
        std::process::exit(INTERRUPTED);
    });
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
