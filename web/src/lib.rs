//! onnxref for a web page. A call is a request in JSON, with bytes beside it if it brings a file; the answer is JSON.
//!
//! JavaScript calls [`text`] and [`data`] for room in the module's memory, writes the request there, calls [`call`],
//! and reads the answer at [`answer`], and bytes beside it at [`file()`]. After a trap, the answer is the message of the
//! panic.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod about;
mod describe;
mod details;
mod examples;
mod graph;
mod opened;
mod print;
mod random;
mod run;
mod session;
mod watch;

pub use session::Session;

use std::cell::RefCell;

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
    static TEXT: RefCell<Vec<u8>> = RefCell::default();
    static DATA: RefCell<Vec<u8>> = RefCell::default();
    static ANSWER: RefCell<String> = RefCell::default();
}

/// Room for the JSON of a request; null if there is no memory.
#[allow(unsafe_code)] // the name is this module's only one
#[unsafe(no_mangle)]
pub extern "C" fn text(len: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| room(text, len))
}

/// Room for the bytes beside a request; null if there is no memory.
#[allow(unsafe_code)] // the name is this module's only one
#[unsafe(no_mangle)]
pub extern "C" fn data(len: usize) -> *mut u8 {
    DATA.with_borrow_mut(|data| room(data, len))
}

/// Answers the request. Returns the number of bytes of the answer.
#[allow(unsafe_code)] // the name is this module's only one
#[unsafe(no_mangle)]
pub extern "C" fn call() -> usize {
    std::panic::set_hook(Box::new(|panic| ANSWER.set(panic.to_string())));
    let (text, data) = (TEXT.take(), DATA.take());
    let answer = SESSION.with_borrow_mut(|session| session.call(&text, data));
    ANSWER.set(answer);
    answer_len()
}

/// The answer to the last request.
#[allow(unsafe_code)] // the name is this module's only one
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// The number of bytes of the answer.
#[allow(unsafe_code)] // the name is this module's only one
#[unsafe(no_mangle)]
pub extern "C" fn answer_len() -> usize {
    ANSWER.with_borrow(String::len)
}

/// The bytes beside the answer.
#[allow(unsafe_code)] // the name is this module's only one
#[unsafe(no_mangle)]
pub extern "C" fn file() -> *const u8 {
    SESSION.with_borrow(|session| session.file().as_ptr())
}

/// The number of bytes beside the answer.
#[allow(unsafe_code)] // the name is this module's only one
#[unsafe(no_mangle)]
pub extern "C" fn file_len() -> usize {
    SESSION.with_borrow(|session| session.file().len())
}

fn room(bytes: &mut Vec<u8>, len: usize) -> *mut u8 {
    bytes.clear();
    if bytes.try_reserve_exact(len).is_err() {
        return std::ptr::null_mut();
    }
    bytes.resize(len, 0);
    bytes.as_mut_ptr()
}
