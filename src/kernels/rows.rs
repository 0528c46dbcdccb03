//! Gather of entries of many bytes: each is copied whole.

use super::cpu::{for_each_level, prefetch};
use super::{Bounds, Index, parallel};

/// Outputs of so many bytes are not in the caches any more when somebody reads them: they are written past them.
const PAST_CACHES: usize = 16 << 20;

/// `out[o, k, ..] = data[o, indices[k], ..]`, entries of `row` bytes
pub(super) fn gather<I: Index>(
    data: &[u8],
    axis: Bounds,
    row: usize,
    indices: &[I],
    out: &mut [u8],
    threads: usize,
) -> bool {
    let past = out.len() >= PAST_CACHES && row >= 256;
    parallel::split(out, row, threads, |first, out| {
        if past {
            stream::<I>(data, axis, row, indices, first, out)
        } else {
            copy::<I>(data, axis, row, indices, first, out)
        }
    })
}

for_each_level! {
    fn copy<I: Index>(data: &[u8], axis: Bounds, row: usize, indices: &[I], first: usize, out: &mut [u8]) = copy_body::<I>;
}

for_each_level! {
    fn stream<I: Index>(data: &[u8], axis: Bounds, row: usize, indices: &[I], first: usize, out: &mut [u8]) = stream_body::<I>;
}

#[inline(always)]
fn copy_body<I: Index>(data: &[u8], axis: Bounds, row: usize, indices: &[I], first: usize, out: &mut [u8]) -> bool {
    if row == 64 {
        return each_row(data, axis, row, indices, first, out, |from, out| {
            if let (Some(from), Some(out)) = (from.first_chunk::<64>(), out.first_chunk_mut::<64>()) {
                *out = *from;
            }
        });
    }
    each_row(data, axis, row, indices, first, out, copy_row)
}

#[inline(always)]
fn stream_body<I: Index>(data: &[u8], axis: Bounds, row: usize, indices: &[I], first: usize, out: &mut [u8]) -> bool {
    let good = each_row(data, axis, row, indices, first, out, stream_row);
    fence();
    good
}

/// Calls `copy` with the bytes of the entry and of the output for each row from `first` on.
#[inline(always)]
fn each_row<I: Index>(
    data: &[u8],
    axis: Bounds,
    row: usize,
    indices: &[I],
    first: usize,
    out: &mut [u8],
    copy: impl Fn(&[u8], &mut [u8]),
) -> bool {
    let ahead = (2048 / row.max(1)).clamp(2, 32);
    let outer = axis.size * row;
    let (mut base, mut k) = (first / indices.len() * outer, first % indices.len());
    for out in out.chunks_exact_mut(row) {
        if k == indices.len() {
            (base, k) = (base + outer, 0);
        }
        let Some(entry) = indices.get(k).and_then(|&index| axis.entry(index)) else { return false };
        if let Some(next) = indices.get(k + ahead).and_then(|&index| axis.entry(index)) {
            // The processor sees where this leads and asks for the rest itself.
            for line in 0..row.div_ceil(64).min(4) {
                prefetch(data, base + next * row + line * 64);
            }
        }
        let at = base + entry * row;
        let Some(from) = data.get(at..at + row) else { return false };
        copy(from, out);
        k += 1;
    }
    true
}

/// Both are of one length.
#[inline(always)]
fn copy_row(from: &[u8], out: &mut [u8]) {
    let (from_lines, from_rest) = from.as_chunks::<64>();
    let (out_lines, out_rest) = out.as_chunks_mut::<64>();
    for (out, from) in out_lines.iter_mut().zip(from_lines) {
        *out = *from;
    }
    if from_rest.len() == out_rest.len() {
        out_rest.copy_from_slice(from_rest);
    }
}

/// As [`copy_row`], past the caches where the processor can.
#[inline(always)]
fn stream_row(from: &[u8], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        let (head, lines, tail) = {
            let start = out.as_ptr().align_offset(64).min(out.len());
            let lines = (out.len() - start) / 64 * 64;
            (start, lines, start + lines)
        };
        let (Some(from_head), Some(out_head)) = (from.get(..head), out.get_mut(..head)) else { return };
        out_head.copy_from_slice(from_head);
        let (Some(from_lines), Some(out_lines)) = (from.get(head..tail), out.get_mut(head..tail)) else { return };
        debug_assert!(lines.is_multiple_of(64));
        for (from, out) in from_lines.chunks_exact(16).zip(out_lines.chunks_exact_mut(16)) {
            // SAFETY: both have 16 bytes, and `out` is at a multiple of 16: the lines start at one of 64. Every x86-64
            // processor has these instructions; `fence` orders the stores before others see the output.
            #[allow(unsafe_code)]
            unsafe {
                _mm_stream_si128(out.as_mut_ptr().cast(), _mm_loadu_si128(from.as_ptr().cast()));
            }
        }
        let (Some(from_tail), Some(out_tail)) = (from.get(tail..), out.get_mut(tail..)) else { return };
        out_tail.copy_from_slice(from_tail);
    }
    #[cfg(not(target_arch = "x86_64"))]
    copy_row(from, out);
}

/// After stores past the caches, before anybody reads them.
#[inline(always)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
