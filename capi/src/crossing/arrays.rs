//! Arrays that a program hands over, and memory that it gets.

use super::{Crossing, FilePath, In, Result, Text, boxed, found, guarded};
use crate::failure::Failure;
use crate::value::Held;
use ort_sys::{OrtAllocator, OrtValue, os_char};
use std::ffi::{c_char, c_void};
use std::ops::Deref;
use std::path::PathBuf;
use std::ptr::NonNull;

/// A pointer to the first of many.
pub(crate) trait Array {
    type List;
    /// # Safety
    ///
    /// `len` values are there during the call, unless it is null.
    unsafe fn list(self, len: usize, name: &'static str) -> Result<Self::List>;
}

/// An array that is read.
pub(crate) struct List<T>(NonNull<T>, usize);

impl<T> Array for *const T {
    type List = List<T>;
    unsafe fn list(self, len: usize, name: &'static str) -> Result<List<T>> {
        if len == 0 {
            return Ok(List(NonNull::dangling(), 0));
        }
        if len > isize::MAX as usize / size_of::<T>() {
            return Err(Failure::argument(format!("the argument {name} can't have {len} elements")));
        }
        Ok(List(found(self.cast_mut(), name)?, len))
    }
}

impl<T> Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: see `Array::list`; without elements the pointer is dangling, as it may be.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.1) }
    }
}

impl List<*const c_char> {
    /// The texts that the pointers lead to.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<String>> {
        // SAFETY: the program hands over what the API asks for.
        self.iter().map(|text| unsafe { Text::cross(*text, name) }).collect()
    }
}

impl List<*const os_char> {
    /// The paths that the pointers lead to.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>> {
        // SAFETY: the program hands over what the API asks for.
        self.iter().map(|path| unsafe { FilePath::cross(*path, "of a file's name") }).collect()
    }
}

impl List<*mut c_char> {
    /// The bytes that the pointers lead to.
    pub(crate) fn contents(&self, sizes: &[usize]) -> Result<Vec<List<u8>>> {
        // SAFETY: the program hands over what the API asks for.
        let content =
            |(at, size): (&*mut c_char, &usize)| unsafe { at.cast_const().cast::<u8>().list(*size, "of a content") };
        self.iter().zip(sizes).map(content).collect()
    }
}

impl List<*const OrtValue> {
    /// The values that the pointers lead to.
    pub(crate) fn values(&self) -> Result<Vec<In<OrtValue>>> {
        // SAFETY: the program hands over what the API asks for.
        self.iter().map(|value| unsafe { In::cross(*value, "of a value") }).collect()
    }
}

/// An array that is filled.
pub(crate) struct Slots<T>(NonNull<T>, usize);

impl<T> Array for *mut T {
    type List = Slots<T>;
    unsafe fn list(self, len: usize, name: &'static str) -> Result<Slots<T>> {
        // SAFETY: the same contract.
        unsafe { self.cast_const().list(len, name) }.map(|List(at, len)| Slots(at, len))
    }
}

impl<T> Slots<T> {
    /// Fills the first elements; there may be fewer values, or fewer elements.
    pub(crate) fn fill(&self, values: impl IntoIterator<Item = T>) {
        for (k, value) in values.into_iter().take(self.1).enumerate() {
            // SAFETY: `k` is less than the number of elements, which may not be initialized.
            unsafe { self.0.add(k).write(value) }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.1
    }

    pub(crate) fn address(&self) -> *mut T {
        self.0.as_ptr()
    }
}

impl Slots<*mut OrtValue> {
    /// Gives the program values, but where there is one already.
    pub(crate) fn fill_missing(&self, values: Vec<Option<Held>>) {
        for (k, value) in values.into_iter().enumerate().take(self.1) {
            if let Some(value) = value {
                // SAFETY: `k` is less than the number of elements.
                unsafe { self.0.add(k).write(boxed(value)) }
            }
        }
    }

    /// The values that are there already.
    pub(crate) fn present(&self) -> Vec<Option<In<OrtValue>>> {
        // SAFETY: the API has this array initialized, with handles or null.
        let at = |k| unsafe { Option::<In<OrtValue>>::cross(self.0.add(k).read(), "outputs") };
        (0..self.1).map(|k| at(k).ok().flatten()).collect()
    }
}

/// An allocator of the program, or ours.
pub(crate) struct Allocator(NonNull<OrtAllocator>);

impl Crossing for Allocator {
    type C = *mut OrtAllocator;
    type Rust = Allocator;
    unsafe fn cross(raw: *mut OrtAllocator, name: &'static str) -> Result<Allocator> {
        found(raw, name).map(Allocator)
    }
}

impl Allocator {
    /// Memory for the program to free, with a copy of values.
    pub(crate) fn copy<T: Copy>(&self, values: &[T]) -> Result<*mut T> {
        self.collect(values.iter().copied())
    }

    /// The same with values that are made once there is memory.
    pub(crate) fn collect<T>(&self, values: impl ExactSizeIterator<Item = T>) -> Result<*mut T> {
        let place: NonNull<T> = self.allocate(values.len().saturating_mul(size_of::<T>()))?.cast();
        // The alignment of allocators is that of `malloc` at least.
        Slots(place, values.len()).fill(values);
        Ok(place.as_ptr())
    }

    /// Text for the program to free, with a null byte behind it.
    pub(crate) fn text(&self, text: &str) -> Result<*mut c_char> {
        Ok(self.copy(&[text.as_bytes(), &[0]].concat())?.cast())
    }

    pub(crate) fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>> {
        // SAFETY: an allocator has its functions set, and lives during the call.
        let given = unsafe { (*self.0.as_ptr()).Alloc.map(|alloc| alloc(self.0.as_ptr(), bytes.max(1))) };
        given
            .and_then(NonNull::new)
            .ok_or_else(|| Failure::other(format!("the allocator gave no memory for {bytes} bytes")))
    }

    pub(crate) fn free(&self, place: *mut c_void) {
        // SAFETY: the program hands over what this allocator gave.
        unsafe { (*self.0.as_ptr()).Free.into_iter().for_each(|free| free(self.0.as_ptr(), place)) }
    }
}

/// Runs on a thread of its own, fills `outputs`, and calls the program's function.
pub(crate) fn answer_later(
    outputs: Slots<*mut OrtValue>,
    callback: ort_sys::RunAsyncCallbackFn,
    context: *mut u8,
    run: impl FnOnce() -> Result<Vec<Option<Held>>> + Send + 'static,
) -> Result<()> {
    /// What the API has the program keep until it is called.
    struct Kept(Slots<*mut OrtValue>, ort_sys::RunAsyncCallbackFn, *mut c_void);
    // SAFETY: the API says that another thread uses these.
    unsafe impl Send for Kept {}

    let kept = Kept(outputs, callback, context.cast());
    let work = move || {
        let Kept(outputs, callback, context) = { kept };
        let status = guarded("RunAsync", || run().map(|values| outputs.fill_missing(values)));
        let (at, len) = if status.0.is_null() { (outputs.address(), outputs.len()) } else { (std::ptr::null_mut(), 0) };
        // SAFETY: the program's function, with what it is made for.
        callback.into_iter().for_each(|callback| unsafe { callback(context, at, len, status) });
    };
    let started = std::thread::Builder::new().name("onnxref run".to_string()).spawn(work);
    started.map(drop).map_err(|error| Failure::other(format!("no thread can be started: {error}")))
}
