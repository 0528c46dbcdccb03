//! Gather of entries of many bytes: each is copied whole.

use super::narrow::{BLOCK, narrow};
use super::{Bounds, Index};
use crate::cpu::{for_each_level, prefetch};
use crate::{Resources, Stopped, parallel};

/// Outputs from this size on are too large to stay cached; they are written with non-temporal stores.
const PAST_CACHES: usize = 16 << 20;

/// Longer entries are copied in pieces.
const LONG: usize = 128 << 10;

/// `out[o, k, ..] = data[o, indices[k], ..]`, entries of `row` bytes
pub(super) fn gather<I: Index>(
    data: &[u8],
    axis: Bounds,
    row: usize,
    indices: &[I],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let past = out.len() >= PAST_CACHES && row >= 256;
    if row > LONG {
        return parallel::pieces(out, 1, row, 1, resources, |k, start, out| {
            let (outer, k) = (k / indices.len(), k % indices.len());
            let entry = indices.get(k).and_then(|&index| axis.entry(index)).ok_or(Stopped::OutOfRange)?;
            let at = (outer * axis.size + entry) * row + start;
            let from = data.get(at..at + out.len()).ok_or(Stopped::OutOfRange)?;
            if past {
                stream_row(from, out, Next { data, at: None });
                fence();
            } else {
                out.copy_from_slice(from);
            }
            Ok(())
        });
    }
    parallel::split(out, row, resources, |first, out| {
        if past {
            stream::<I>(data, axis, row, indices, first, out)
        } else {
            copy::<I>(data, axis, row, indices, first, out)
        }
    })
}

for_each_level! {
    fn copy<I: Index>(data: &[u8], axis: Bounds, row: usize, indices: &[I], first: usize, out: &mut [u8]) -> Result<(), Stopped>
        = copy_body::<I>;
}

for_each_level! {
    fn stream<I: Index>(data: &[u8], axis: Bounds, row: usize, indices: &[I], first: usize, out: &mut [u8]) -> Result<(), Stopped>
        = stream_body::<I>;
}

#[inline(always)]
fn copy_body<I: Index>(
    data: &[u8],
    axis: Bounds,
    row: usize,
    indices: &[I],
    first: usize,
    out: &mut [u8],
) -> Result<(), Stopped> {
    if axis.size <= u32::MAX as usize {
        // Copying a short row takes a few instructions, by its size or its two ends; checking its index takes as many.
        match row {
            3 => return short_rows(data, axis, 3, indices, first, out, ends::<2>),
            5..=7 => return short_rows(data, axis, row, indices, first, out, ends::<4>),
            9..=15 => return short_rows(data, axis, row, indices, first, out, ends::<8>),
            17..=31 => return short_rows(data, axis, row, indices, first, out, ends::<16>),
            32 => return short_rows(data, axis, 32, indices, first, out, whole::<32>),
            33..=63 => return short_rows(data, axis, row, indices, first, out, ends::<32>),
            64 => return short_rows(data, axis, 64, indices, first, out, whole::<64>),
            65..=127 => return short_rows(data, axis, row, indices, first, out, ends::<64>),
            128 => return short_rows(data, axis, 128, indices, first, out, whole::<128>),
            256 => return short_rows(data, axis, 256, indices, first, out, whole::<256>),
            _ => {}
        }
    }
    match row {
        256 => each_row(data, axis, 256, indices, first, out, copy_row),
        512 => each_row(data, axis, 512, indices, first, out, copy_row),
        _ => each_row(data, axis, row, indices, first, out, copy_row),
    }
}

/// Copies all bytes.
#[inline(always)]
fn whole<const N: usize>(from: &[u8], out: &mut [u8]) {
    if let (Some(from), Some(out)) = (from.first_chunk::<N>(), out.first_chunk_mut::<N>()) {
        *out = *from;
    }
}

/// Copies the first and the last `N` bytes: all of a row of up to `2 N`.
#[inline(always)]
fn ends<const N: usize>(from: &[u8], out: &mut [u8]) {
    if let (Some(from), Some(out)) = (from.first_chunk::<N>(), out.first_chunk_mut::<N>()) {
        *out = *from;
    }
    if let (Some(from), Some(out)) = (from.last_chunk::<N>(), out.last_chunk_mut::<N>()) {
        *out = *from;
    }
}

/// As [`each_row`], with blocks of narrowed indices.
#[inline(always)]
fn short_rows<I: Index>(
    data: &[u8],
    axis: Bounds,
    row: usize,
    indices: &[I],
    first: usize,
    mut out: &mut [u8],
    copy: impl Fn(&[u8], &mut [u8]),
) -> Result<(), Stopped> {
    let ahead = (2048 / row.max(1)).clamp(16, 32);
    let mut entries = [0; BLOCK];
    let (mut outer, mut k) = (first / indices.len(), first % indices.len());
    while !out.is_empty() {
        if k == indices.len() {
            (outer, k) = (outer + 1, 0);
        }
        let count = (indices.len() - k).min(out.len() / row).min(BLOCK);
        let (Some(block), Some(data)) = (indices.get(k..k + count), data.get(outer * axis.size * row..)) else {
            return Err(Stopped::OutOfRange);
        };
        if count == 0 {
            return Err(Stopped::OutOfRange);
        }
        narrow(block, axis, &mut entries)?;
        let (now, rest) = out.split_at_mut(count * row);
        for (j, (out, &entry)) in now.chunks_exact_mut(row).zip(&entries).enumerate() {
            if let Some(&next) = entries.get(j + ahead) {
                prefetch(data, next as usize * row);
            }
            let at = entry as usize * row;
            let from = data.get(at..at + row).ok_or(Stopped::OutOfRange)?;
            copy(from, out);
        }
        (out, k) = (rest, k + count);
    }
    Ok(())
}

#[inline(always)]
fn stream_body<I: Index>(
    data: &[u8],
    axis: Bounds,
    row: usize,
    indices: &[I],
    first: usize,
    out: &mut [u8],
) -> Result<(), Stopped> {
    let outcome = each_row(data, axis, row, indices, first, out, stream_row);
    fence();
    outcome
}

/// Calls `copy` for each row from `first` on, with the entry, the row of the output, and an entry that is needed
/// soon.
#[inline(always)]
fn each_row<I: Index>(
    data: &[u8],
    axis: Bounds,
    row: usize,
    indices: &[I],
    first: usize,
    out: &mut [u8],
    copy: impl Fn(&[u8], &mut [u8], Next<'_>),
) -> Result<(), Stopped> {
    let ahead = (2048 / row.max(1)).clamp(4, 32);
    let outer = axis.size * row;
    let (mut base, mut k) = (first / indices.len() * outer, first % indices.len());
    for out in out.chunks_exact_mut(row) {
        if k == indices.len() {
            (base, k) = (base + outer, 0);
        }
        let entry = |k: usize| Some(base + axis.entry(*indices.get(k)?)? * row);
        let from = entry(k).and_then(|at| data.get(at..at + row)).ok_or(Stopped::OutOfRange)?;
        copy(from, out, Next { data, at: entry(k + ahead) });
        k += 1;
    }
    Ok(())
}

/// The entry after the next few, if there is one.
#[derive(Clone, Copy)]
struct Next<'a> {
    data: &'a [u8],
    at: Option<usize>,
}

impl Next<'_> {
    #[inline(always)]
    fn prefetch(self, byte: usize) {
        if let Some(at) = self.at {
            prefetch(self.data, at + byte);
        }
    }
}

/// Copies `from` to `out`, of the same length, and prefetches `next` meanwhile.
#[inline(always)]
fn copy_row(from: &[u8], out: &mut [u8], next: Next<'_>) {
    let (from_lines, from_rest) = from.as_chunks::<64>();
    let (out_lines, out_rest) = out.as_chunks_mut::<64>();
    for (line, (out, from)) in out_lines.iter_mut().zip(from_lines).enumerate() {
        next.prefetch(line * 64);
        *out = *from;
    }
    if !from_rest.is_empty() && from_rest.len() == out_rest.len() {
        next.prefetch(from.len() - 1);
        out_rest.copy_from_slice(from_rest);
    }
}

/// As [`copy_row`], with non-temporal stores if the processor has them.
#[inline(always)]
fn stream_row(from: &[u8], out: &mut [u8], next: Next<'_>) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        let head = out.as_ptr().align_offset(64).min(out.len());
        let (Some((from_head, from)), Some((out_head, out))) =
            (from.split_at_checked(head), out.split_at_mut_checked(head))
        else {
            return;
        };
        let none = Next { at: None, ..next };
        copy_row(from_head, out_head, none);
        let (from_lines, from_rest) = from.as_chunks::<64>();
        let (out_lines, out_rest) = out.as_chunks_mut::<64>();
        for (line, (out, from)) in out_lines.iter_mut().zip(from_lines).enumerate() {
            next.prefetch(line * 64);
            let (from, out) = (from.as_chunks::<16>().0, out.as_chunks_mut::<16>().0);
            for (out, from) in out.iter_mut().zip(from) {
                // SAFETY: both have 16 bytes, and `out` is at a multiple of 16: the lines start at one of 64. Every
                // x86-64 processor has these; `fence` orders the stores before the output is read.
                #[allow(unsafe_code)]
                unsafe {
                    _mm_stream_si128(out.as_mut_ptr().cast(), _mm_loadu_si128(from.as_ptr().cast()));
                }
            }
        }
        copy_row(from_rest, out_rest, none);
    }
    #[cfg(not(target_arch = "x86_64"))]
    copy_row(from, out, next);
}

/// Orders non-temporal stores before later reads.
#[inline(always)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
