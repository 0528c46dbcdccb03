//! Elements that are copied: the one that is nearest to each position.

use super::{Axis, Rows, Sides};
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
    parallel::split_by(out, size, 2, resources, |first, out| {
        let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let (len, mut sides, mut before) = (rows.output().max(1), Sides::new(), None);
        let (mut at, mut done) = (first % len, 0);
        while done < out.len() {
            let count = (len - at).min(out.len() - done);
            let (others, now) = out.split_at_mut(done);
            let now = now.get_mut(..count).ok_or(Stopped::Misfit)?;
            let nearest = rows.sides((first + done) / len, &mut sides);
            // Rows that follow each other may be the same.
            let same = others.len().checked_sub(len).filter(|_| nearest.is_some() && nearest == before);
            match (nearest, same.and_then(|start| others.get(start + at..start + at + count))) {
                (_, Some(same)) => now.copy_from_slice(same),
                (Some(row), None) => {
                    let from = row * rows.input * size..(row + 1) * rows.input * size;
                    pick(&rows, data.get(from).ok_or(Stopped::Misfit)?, at, now);
                    rows.put_outside(&[outside], at, now);
                }
                (None, None) => now.fill(outside),
            }
            before = nearest;
            (done, at) = (done + count, 0);
        }
        Ok(())
    })
}

/// Copies the entries of a row, at any address, from the element `at` of the output's row on.
fn pick<T: Pod>(rows: &Rows<'_>, row: &[u8], at: usize, mut out: &mut [T]) {
    let (inner, mut skipped, size) = (rows.inner, at % rows.inner, size_of::<T>());
    let spans = rows.spans.get(at / inner..).unwrap_or(&[]);
    if inner == 1 {
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
