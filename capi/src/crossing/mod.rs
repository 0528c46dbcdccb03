//! What crosses between C and Rust. Pointers that a program hands over are followed here; the other modules see values.
//!
//! A null pointer where the API wants one is an error. That other pointers lead to what the API says is up to the program,
//! as it is with onnxruntime.
#![allow(unsafe_code)]

mod arrays;

pub(crate) use arrays::{Allocator, Array, answer_later};

use crate::failure::Failure;
use onnxref::quote;
use ort_sys::{OrtStatusPtr, os_char};
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr::NonNull;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// A type of the API, behind which there is a box of ours.
pub(crate) trait Handle {
    type Value;
}

/// A kind of parameter: how it comes from C, and what it is here.
pub(crate) trait Crossing {
    type C;
    type Rust;
    /// # Safety
    ///
    /// `raw` is null or leads to what the API asks for, which lasts as long as the call.
    unsafe fn cross(raw: Self::C, name: &'static str) -> Result<Self::Rust>;
}

/// Functions of the API that return a status: a parameter's kind stands where its type would. Those in `lists` are arrays,
/// whose length is another parameter.
macro_rules! entries {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $kind:ty),* $(,)?)
        $(lists($($list:ident[$len:ident]),+))? $body:block)*) => {$(
        $(#[$doc])*
        #[allow(non_snake_case, unsafe_code, unused_mut, unused_variables, clippy::too_many_arguments)]
        pub(crate) unsafe extern "system" fn $name(
            $($arg: <$kind as $crate::crossing::Crossing>::C),*
        ) -> ort_sys::OrtStatusPtr {
            $crate::crossing::guarded(stringify!($name), || {
                // SAFETY: the program hands over what the API asks for.
                $(let mut $arg = unsafe { <$kind as $crate::crossing::Crossing>::cross($arg, stringify!($arg)) }?;)*
                // SAFETY: the same.
                $($(let mut $list = unsafe { $crate::crossing::Array::list($list, $len, stringify!($list)) }?;)+)?
                $body
            })
        }
    )*};
}
pub(crate) use entries;

/// As [`entries`], of functions that return something else: `default` if an argument is null.
macro_rules! other_entries {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $kind:ty),* $(,)?) -> $type:ty, $default:expr, $body:block)*) => {$(
        $(#[$doc])*
        #[allow(non_snake_case, unsafe_code, unused_mut, unused_variables)]
        pub(crate) unsafe extern "system" fn $name($($arg: <$kind as $crate::crossing::Crossing>::C),*) -> $type {
            let run = || -> $crate::crossing::Result<$type> {
                // SAFETY: the program hands over what the API asks for.
                $(let mut $arg = unsafe { <$kind as $crate::crossing::Crossing>::cross($arg, stringify!($arg)) }?;)*
                Ok($body)
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).ok().and_then(|given| given.ok()).unwrap_or_else(|| $default)
        }
    )*};
}
pub(crate) use other_entries;

/// Functions that free what is behind a handle.
macro_rules! releases {
    ($($name:ident: $handle:ty),* $(,)?) => {$(
        #[allow(non_snake_case, unsafe_code)]
        pub(crate) unsafe extern "system" fn $name(handle: *mut $handle) {
            // SAFETY: the program hands over a handle that was made here, once.
            unsafe { $crate::crossing::release(handle) }
        }
    )*};
}
pub(crate) use releases;

/// A status for the result of `run`, also if it panics.
pub(crate) fn guarded(name: &'static str, run: impl FnOnce() -> Result<()>) -> OrtStatusPtr {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => OrtStatusPtr::default(),
        Ok(Err(failure)) => failure.into_status(name),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Failure::bug(format!("onnxref panicked, which is a bug of its own: {text}")).into_status(name)
        }
    }
}

/// # Safety
///
/// `handle` is null or was made by [`boxed`], and isn't used again.
pub(crate) unsafe fn release<H: Handle>(handle: *mut H) {
    if !handle.is_null() {
        // SAFETY: see above.
        let value = unsafe { Box::from_raw(handle.cast::<H::Value>()) };
        // Nothing of ours panics when it is dropped; if it did, that would end here.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    }
}

/// A handle on a value.
pub(crate) fn boxed<H: Handle>(value: H::Value) -> *mut H {
    Box::into_raw(Box::new(value)).cast()
}

fn found<T>(pointer: *mut T, name: &str) -> Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(|| Failure::argument(format!("the argument {name} is null")))
}

/// A handle that is read.
pub(crate) struct In<H: Handle>(NonNull<H::Value>);

impl<H: Handle> Crossing for In<H> {
    type C = *const H;
    type Rust = In<H>;
    unsafe fn cross(raw: *const H, name: &'static str) -> Result<In<H>> {
        found(raw.cast_mut().cast(), name).map(In)
    }
}

impl<H: Handle> Deref for In<H> {
    type Target = H::Value;
    fn deref(&self) -> &H::Value {
        // SAFETY: a handle that was made here and isn't freed during the call.
        unsafe { self.0.as_ref() }
    }
}

/// A handle that the function may change.
pub(crate) struct Change<H: Handle>(In<H>);

impl<H: Handle> Crossing for Change<H> {
    type C = *mut H;
    type Rust = Change<H>;
    unsafe fn cross(raw: *mut H, name: &'static str) -> Result<Change<H>> {
        found(raw.cast(), name).map(|at| Change(In(at)))
    }
}

impl<H: Handle> Deref for Change<H> {
    type Target = H::Value;
    fn deref(&self) -> &H::Value {
        &self.0
    }
}

impl<H: Handle> DerefMut for Change<H> {
    fn deref_mut(&mut self) -> &mut H::Value {
        // SAFETY: as above, and the API lets nobody else use a handle while it is changed. What several threads may use at
        // once (sessions, values, run options) is never changed through this.
        unsafe { self.0.0.as_mut() }
    }
}

/// An argument that may be null.
impl<H: Handle> Crossing for Option<In<H>> {
    type C = *const H;
    type Rust = Option<In<H>>;
    unsafe fn cross(raw: *const H, _: &'static str) -> Result<Option<In<H>>> {
        Ok(NonNull::new(raw.cast_mut().cast()).map(In))
    }
}

/// Where a result goes.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Crossing for Out<T> {
    type C = *mut T;
    type Rust = Out<T>;
    unsafe fn cross(raw: *mut T, name: &'static str) -> Result<Out<T>> {
        found(raw, name).map(Out)
    }
}

impl<T> Out<T> {
    pub(crate) fn set(&self, value: T) {
        // SAFETY: the program's own variable, which may not be initialized.
        unsafe { self.0.write(value) }
    }
}

impl Out<usize> {
    /// Copies text with a null byte into a buffer whose size is here, and says how many bytes it takes.
    pub(crate) fn write_text(&self, text: &str, buffer: *mut c_char) -> Result<()> {
        let bytes = [text.as_bytes(), &[0]].concat();
        // SAFETY: the API has the size set.
        let size = unsafe { self.0.read() };
        self.set(bytes.len());
        if buffer.is_null() {
            return Ok(());
        }
        if size < bytes.len() {
            return Err(Failure::argument(format!("the text takes {} bytes, and the buffer has {size}", bytes.len())));
        }
        // SAFETY: the buffer has as many bytes.
        unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }
}

impl<H: Handle> Out<*mut H> {
    /// Gives the program a value to keep.
    pub(crate) fn give(&self, value: H::Value) {
        self.set(boxed(value));
    }
}

impl<H: Handle> Out<*const H> {
    /// Shows the program a value that belongs to another handle; null if there is none.
    pub(crate) fn show(&self, value: Option<&H::Value>) {
        self.set(value.map_or(std::ptr::null(), |value| std::ptr::from_ref(value).cast()));
    }
}

/// Text that ends with a null byte, in UTF-8.
pub(crate) struct Text;

impl Crossing for Text {
    type C = *const c_char;
    type Rust = String;
    unsafe fn cross(raw: *const c_char, name: &'static str) -> Result<String> {
        found(raw.cast_mut(), name)?;
        // SAFETY: it isn't null, so it is text.
        let text = unsafe { CStr::from_ptr(raw) };
        let wrong =
            |_| Failure::argument(format!("the argument {name} is not UTF-8: {}", quote(&text.to_string_lossy())));
        Ok(text.to_str().map_err(wrong)?.to_string())
    }
}

/// A path, in the system's characters.
pub(crate) struct FilePath;

impl Crossing for FilePath {
    type C = *const os_char;
    type Rust = PathBuf;
    #[cfg(windows)]
    unsafe fn cross(raw: *const os_char, name: &'static str) -> Result<PathBuf> {
        use std::os::windows::ffi::OsStringExt;
        found(raw.cast_mut(), name)?;
        // SAFETY: it isn't null, so it ends with a null character.
        let len = (0..).take_while(|at| unsafe { *raw.add(*at) } != 0).count();
        // SAFETY: as many characters were read.
        Ok(std::ffi::OsString::from_wide(unsafe { std::slice::from_raw_parts(raw, len) }).into())
    }
    #[cfg(unix)]
    unsafe fn cross(raw: *const os_char, name: &'static str) -> Result<PathBuf> {
        use std::os::unix::ffi::OsStrExt;
        found(raw.cast_mut(), name)?;
        // SAFETY: it isn't null, so it is text.
        let path = unsafe { CStr::from_ptr(raw) };
        Ok(std::ffi::OsStr::from_bytes(path.to_bytes()).into())
    }
}

/// Bytes, whose number is another argument.
pub(crate) struct Bytes;

impl Crossing for Bytes {
    type C = *const c_void;
    type Rust = *const u8;
    unsafe fn cross(raw: *const c_void, _: &'static str) -> Result<*const u8> {
        Ok(raw.cast())
    }
}

/// Memory that the function fills, or keeps.
pub(crate) struct Space;

impl Crossing for Space {
    type C = *mut c_void;
    type Rust = *mut u8;
    unsafe fn cross(raw: *mut c_void, _: &'static str) -> Result<*mut u8> {
        Ok(raw.cast())
    }
}

/// An array of names that the API would let a function change.
pub(crate) struct Names;

impl Crossing for Names {
    type C = *mut *const c_char;
    type Rust = *const *const c_char;
    unsafe fn cross(raw: *mut *const c_char, _: &'static str) -> Result<*const *const c_char> {
        Ok(raw)
    }
}

/// What is passed on as it is.
pub(crate) struct Raw<T>(PhantomData<T>);

impl<T> Crossing for Raw<T> {
    type C = T;
    type Rust = T;
    unsafe fn cross(raw: T, _: &'static str) -> Result<T> {
        Ok(raw)
    }
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Crossing for $type {
            type C = $type;
            type Rust = $type;
            unsafe fn cross(raw: $type, _: &'static str) -> Result<$type> {
                Ok(raw)
            }
        }
    )*};
}

plain!(bool, i32, i64, u32, usize);

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use super::guarded;
    use ort_sys::stub;

    #[test]
    fn panics_become_statuses() {
        let status = guarded("Run", || panic!("number {}", 7));
        // SAFETY: a status that was just made.
        let error = unsafe { stub::Error::consume_sys(status.0) };
        assert_eq!(error.message(), "Run: onnxref panicked, which is a bug of its own: number 7");
        assert_eq!(error.code, ort_sys::OrtErrorCode::ORT_RUNTIME_EXCEPTION);
    }
}
