//! Elements as bytes, and how they are read and written as numbers. So what walks over lanes is compiled for the few types
//! of numbers, not for each type of elements.

use super::Stored;
use bytemuck::Pod;
use std::ops::Range;

/// How elements are read and written as numbers `T`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Storage<T> {
    /// Bytes of an element.
    pub(super) size: usize,
    /// They are such numbers.
    pub(super) is_direct: bool,
    load: fn(&[u8], &mut [T]),
    store: fn(&[T], &mut [u8]),
}

impl<T: Pod> Storage<T> {
    #[inline]
    pub(super) fn of<S: Stored<T>>() -> Storage<T> {
        Storage { size: size_of::<S>(), is_direct: S::DIRECT, load: load::<S, T>, store: store::<S, T> }
    }

    /// The elements as they are, if they are such numbers.
    pub(super) fn direct_mut<'a>(&self, to: &'a mut [u8]) -> Option<&'a mut [T]> {
        if self.is_direct { bytemuck::try_cast_slice_mut(to).ok() } else { None }
    }

    /// Converts as many numbers as both have, to the nearest elements.
    pub(super) fn store(&self, from: &[T], to: &mut [u8]) {
        match bytemuck::try_cast_slice_mut(to) {
            Ok(to) if self.is_direct => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
            _ => (self.store)(from, to),
        }
    }
}

/// Elements that are read as numbers `T`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a, T> {
    bytes: &'a [u8],
    format: Storage<T>,
}

impl<'a, T: Pod> Elements<'a, T> {
    #[inline]
    pub(super) fn of<S: Stored<T>>(elements: &'a [S]) -> Elements<'a, T> {
        Elements { bytes: bytemuck::cast_slice(elements), format: Storage::of::<S>() }
    }

    pub(super) fn in_bytes(bytes: &'a [u8], format: Storage<T>) -> Elements<'a, T> {
        Elements { bytes, format }
    }

    pub(super) fn is_direct(&self) -> bool {
        self.format.is_direct
    }

    /// These elements, or none if there are fewer.
    pub(super) fn range(&self, at: Range<usize>) -> Elements<'a, T> {
        let bytes = self.bytes.get(at.start * self.format.size..at.end * self.format.size).unwrap_or(&[]);
        Elements { bytes, ..*self }
    }

    /// The elements from one on.
    pub(super) fn from(&self, first: usize) -> Elements<'a, T> {
        Elements { bytes: self.bytes.get(first * self.format.size..).unwrap_or(&[]), ..*self }
    }

    /// The elements as they are, if they are such numbers.
    pub(super) fn direct(&self) -> Option<&'a [T]> {
        if self.format.is_direct { bytemuck::try_cast_slice(self.bytes).ok() } else { None }
    }

    /// Converts as many elements as both have.
    pub(super) fn load(&self, to: &mut [T]) {
        match self.direct() {
            Some(from) => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
            None => (self.format.load)(self.bytes, to),
        }
    }
}

fn load<S: Stored<T>, T>(from: &[u8], to: &mut [T]) {
    S::load(bytemuck::try_cast_slice(from).unwrap_or(&[]), to);
}

fn store<S: Stored<T>, T>(from: &[T], to: &mut [u8]) {
    S::store(from, bytemuck::try_cast_slice_mut(to).unwrap_or(&mut []));
}
