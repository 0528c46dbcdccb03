//! Elements that are copied: the one that is nearest to each position.

use super::{Axis, Rows, Sides, Span};
use crate::cpu::for_avx2;
use crate::gemm::blocks::CHANNELS;
use crate::{Resources, Stopped, parallel};
use bytemuck::Pod;

/// The first element of each span, elements of `element` bytes. Those outside have the bytes `outside`.
pub fn nearest(
    data: &[u8],
    element: usize,
    axes: &[Axis<'_>],
    outside: &[u8],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    // A block of channels is an element.
    if let (4, [outer @ .., Axis::Whole(CHANNELS)]) = (element, axes) {
        return nearest_of::<[u32; CHANNELS]>(data, outer, &outside.repeat(CHANNELS), out, resources);
    }
    match element {
        1 => nearest_of::<u8>(data, axes, outside, out, resources),
        2 => nearest_of::<u16>(data, axes, outside, out, resources),
        4 => nearest_of::<u32>(data, axes, outside, out, resources),
        // A complex64 has the alignment of its parts.
        8 => nearest_of::<[u32; 2]>(data, axes, outside, out, resources),
        _ => nearest_of::<[u64; 2]>(data, axes, outside, out, resources),
    }
}

fn nearest_of<T: Pod + Sync>(
    data: &[u8],
    axes: &[Axis<'_>],
    outside: &[u8],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (rows, size) = (Rows::of(axes), size_of::<T>());
    let outside: T = bytemuck::try_pod_read_unaligned(outside).map_err(|_| Stopped::Misfit)?;
    let times = times(rows.spans);
    parallel::split_by(out, size, 2, resources, |first, out| {
        let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let (len, mut sides, mut same) = (rows.output().max(1), Sides::new(), 0);
        let (mut row, mut at, mut done) = (first / len, first % len, 0);
        while done < out.len() {
            let count = (len - at).min(out.len() - done);
            let (others, now) = out.split_at_mut(done);
            let now = now.get_mut(..count).ok_or(Stopped::Misfit)?;
            let before = others.len().checked_sub(len).filter(|_| same > 0);
            match before.and_then(|start| others.get(start + at..start + at + count)) {
                Some(before) => {
                    now.copy_from_slice(before);
                    same -= 1;
                }
                None => {
                    match rows.sides(row, &mut sides) {
                        Some(seen) => {
                            let from = seen * rows.input * size..(seen + 1) * rows.input * size;
                            pick(&rows, times, data.get(from).ok_or(Stopped::Misfit)?, at, now);
                            rows.put_outside(&[outside], at, now);
                        }
                        None => now.fill(outside),
                    }
                    same = rows.same(row);
                }
            }
            (row, done, at) = (row + 1, done + count, 0);
        }
        Ok(())
    })
}

/// How often each entry follows itself, from the first one on, if that is as often for all.
fn times(spans: &[Span]) -> Option<usize> {
    let first = spans.first()?.first;
    let times = spans.iter().take_while(|span| span.first == first).count();
    spans.iter().enumerate().all(|(at, span)| span.first == first + at / times).then_some(times)
}

for_avx2! {
    /// Copies each element, at any address, so often. Of numbers that are usual, many are copied together.
    fn repeat<T: Pod>(row: &[u8], times: usize, out: &mut [T]) -> () = repeat_body::<T>;
}

#[inline(always)]
fn repeat_body<T: Pod>(row: &[u8], times: usize, out: &mut [T]) {
    match times {
        1 => repeat_by::<T, 1>(row, out),
        2 => repeat_by::<T, 2>(row, out),
        3 => repeat_by::<T, 3>(row, out),
        4 => repeat_by::<T, 4>(row, out),
        _ => entries(row).zip(out.chunks_mut(times)).for_each(|(entry, out)| out.fill(entry)),
    }
}

#[inline(always)]
fn repeat_by<T: Pod, const TIMES: usize>(row: &[u8], out: &mut [T]) {
    let (out, rest) = out.as_chunks_mut::<TIMES>();
    let mut entries = entries(row);
    out.iter_mut().zip(&mut entries).for_each(|(out, entry)| *out = [entry; TIMES]);
    entries.next().into_iter().for_each(|entry| rest.fill(entry));
}

#[inline(always)]
fn entries<T: Pod>(row: &[u8]) -> impl Iterator<Item = T> {
    row.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned)
}

/// Copies the entries of a row, at any address, from the element `at` of the output's row on.
fn pick<T: Pod>(rows: &Rows<'_>, times: Option<usize>, row: &[u8], at: usize, mut out: &mut [T]) {
    let (inner, mut skipped, size) = (rows.inner, at % rows.inner, size_of::<T>());
    let spans = rows.spans.get(at / inner..).unwrap_or(&[]);
    if inner == 1 {
        if let (Some(times), Some(span)) = (times.filter(|times| at.is_multiple_of(*times)), spans.first()) {
            return repeat(row.get(span.first * size..).unwrap_or(&[]), times, out);
        }
        for (out, span) in out.iter_mut().zip(spans) {
            let element = row.get(span.first * size..(span.first + 1) * size);
            element.into_iter().for_each(|element| *out = bytemuck::pod_read_unaligned(element));
        }
        return;
    }
    for span in spans {
        if out.is_empty() {
            break;
        }
        let count = (inner - skipped).min(out.len());
        let (now, rest) = std::mem::take(&mut out).split_at_mut(count);
        let from = (span.first * inner + skipped) * size;
        let entry = row.get(from..from + size_of_val(now));
        entry.into_iter().for_each(|entry| bytemuck::cast_slice_mut(now).copy_from_slice(entry));
        (out, skipped) = (rest, 0);
    }
}
