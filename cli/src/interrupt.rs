//! An interruption ends the program at once, and leaves no temporary file.

use crate::system;
use crate::test::process;
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
    let handled = ctrlc::set_handler(|| {
        ENDING.store(true, Ordering::SeqCst);
        process::kill_all();
        clean();
        std::process::exit(INTERRUPTED);
    });
    if handled.is_err() {
        // There is no thread for the handler: an interruption may leave a file, but it ends the program.
        system::restore_interruptions();
    }
}

/// Goes no further after an interruption, whose handler ends the program. Not to be called while [`temporary`] is held.
pub(crate) fn point() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Does what an interruption may not cut, such as moving a file to its place, unless there was one. It gets the temporary
/// files and folders.
pub(crate) fn commit<T>(work: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    loop {
        let mut names = temporary();
        if !ENDING.load(Ordering::SeqCst) {
            return work(&mut names);
        }
        drop(names);
        point();
    }
}

/// The temporary files and folders. While they are locked, an interruption waits.
pub(crate) fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files and folders.
fn clean() {
    for name in temporary().drain(..) {
        let _ = if name.is_dir() { std::fs::remove_dir_all(name) } else { std::fs::remove_file(name) };
    }
}
