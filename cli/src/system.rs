//! What the system does to a process behind its back: signals, and a closed standard output.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output was closed when the program was started.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed when the program was started. Where that isn't known, it wasn't.
pub(crate) fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Makes a write beyond the allowed size of a file (`ulimit -f`) fail, instead of ending the program.
pub(crate) fn ignore_file_size_signal() {
    #[cfg(unix)]
    #[allow(unsafe_code)]
    // SAFETY: no handler is set.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Makes an interruption end the program as it would without a handler.
pub(crate) fn restore_interruptions() {
    #[cfg(unix)]
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        #[allow(unsafe_code)]
        // SAFETY: no handler is set.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Before `main`, Rust opens `/dev/null` in place of a closed standard output, so that all writes to it succeed. This is
/// called before that.
#[cfg(unix)]
#[used]
#[allow(unsafe_code)]
// SAFETY: such functions are called at the start, one after the other; this one needs nothing of Rust's runtime.
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static AT_START: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: this reads flags, or fails.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        CLOSED.store(closed, Ordering::Relaxed);
    }
    look
};
