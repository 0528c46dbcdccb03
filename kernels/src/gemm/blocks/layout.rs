//! Converts images from planes to blocks of channels, and back.

use super::CHANNELS;
use crate::permute::matrix;
use crate::{Resources, Stopped, parallel};
use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// Writes planes `[images, channels, positions]` as `[images, blocks, positions, 16]`; zeros fill up the last block.
pub fn to_blocks<T: Pod + Sync>(
    planes: &[T],
    channels: usize,
    positions: usize,
    out: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (blocks, planes) = (channels.div_ceil(CHANNELS), cast_slice::<T, u8>(planes));
    let plane = size_of::<T>().saturating_mul(positions);
    let unit = size_of::<T>() * CHANNELS;
    parallel::pieces(cast_slice_mut(out), unit, unit.saturating_mul(positions), 1, resources, |block, start, out| {
        let (image, block) = (block / blocks.max(1), block % blocks.max(1));
        let first = block * CHANNELS;
        let count = CHANNELS.min(channels.saturating_sub(first));
        if count < CHANNELS {
            out.fill(0);
        }
        let from = (image * channels + first) * plane;
        let planes = planes.get(from..from + count * plane).ok_or(Stopped::Misfit)?;
        let seen = planes.get(start / CHANNELS..).ok_or(Stopped::Misfit)?;
        let places = out.len() / unit;
        matrix::<T>(seen, plane, out, unit, places, count, &mut resources.lookout())
    })
}

/// Writes `[images, blocks, positions, 16]` as planes `[images, channels, positions]`.
pub fn from_blocks<T: Pod + Sync>(
    blocks: &[T],
    channels: usize,
    positions: usize,
    out: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let plane = size_of::<T>().saturating_mul(positions);
    let (count, unit, blocks) = (channels.div_ceil(CHANNELS), size_of::<T>(), cast_slice::<T, u8>(blocks));
    let image = plane.saturating_mul(channels);
    parallel::pieces(cast_slice_mut(out), plane, image, 1, resources, |image, start, out| {
        let (mut rest, mut channel, mut lookout) = (out, start / plane.max(1), resources.lookout());
        while !rest.is_empty() {
            // The planes of a block, or those of it that are in this part.
            let (own, others) = rest.split_at_mut(((CHANNELS - channel % CHANNELS) * plane).min(rest.len()));
            let from = (image * count + channel / CHANNELS) * plane * CHANNELS;
            let block = blocks.get(from + channel % CHANNELS * unit..from + plane * CHANNELS).ok_or(Stopped::Misfit)?;
            let planes = own.len() / plane.max(1);
            matrix::<T>(block, unit * CHANNELS, own, plane, planes, positions, &mut lookout)?;
            channel += planes;
            rest = others;
        }
        Ok(())
    })
}

/// Writes rows `[positions, channels]` of bytes as `[blocks, positions, 16]`, combined with `flip`; zeros fill up the last
/// block.
pub fn rows_to_blocks(
    rows: &[u8],
    channels: usize,
    flip: u8,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let positions = rows.len() / channels.max(1);
    parallel::pieces(out, CHANNELS, CHANNELS.saturating_mul(positions), 1, resources, |block, start, out| {
        let rows = rows.chunks_exact(channels.max(1)).skip(start / CHANNELS);
        for (row, to) in rows.zip(out.as_chunks_mut::<CHANNELS>().0) {
            let from = row.get(block * CHANNELS..).unwrap_or(&[]);
            match from.first_chunk::<CHANNELS>() {
                Some(from) => *to = from.map(|byte| byte ^ flip),
                None => {
                    *to = [0; CHANNELS];
                    to.iter_mut().zip(from).for_each(|(to, byte)| *to = byte ^ flip);
                }
            }
        }
        Ok(())
    })
}

/// Back from [`rows_to_blocks`].
pub fn rows_from_blocks(
    blocks: &[u8],
    channels: usize,
    flip: u8,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (len, positions) = (out.len(), out.len() / channels.max(1));
    parallel::pieces(out, channels.max(1), len.max(1), 1, resources, |_, start, out| {
        let first = start / channels.max(1);
        for (at, row) in out.chunks_exact_mut(channels.max(1)).enumerate() {
            for (block, to) in row.chunks_mut(CHANNELS).enumerate() {
                let from = (block * positions + first + at) * CHANNELS;
                let from = blocks.get(from..from + to.len()).ok_or(Stopped::Misfit)?;
                to.iter_mut().zip(from).for_each(|(to, byte)| *to = byte ^ flip);
            }
        }
        Ok(())
    })
}
