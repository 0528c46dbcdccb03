//! To blocks and back.

use super::CHANNELS;
use crate::{Resources, Stopped, parallel};
use bytemuck::{Pod, cast_slice_mut};

/// Places that are moved together.
const PLACES: usize = 64;

/// Writes planes `[images, channels, positions]` as `[images, blocks, positions, 16]`; zeros fill up the last block.
pub fn to_blocks<T: Pod + Sync>(
    planes: &[T],
    channels: usize,
    positions: usize,
    out: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let blocks = channels.div_ceil(CHANNELS);
    let unit = size_of::<T>() * CHANNELS;
    parallel::pieces(cast_slice_mut(out), unit, unit.saturating_mul(positions), 1, resources, |block, start, out| {
        let (image, block) = (block / blocks.max(1), block % blocks.max(1));
        let first = block * CHANNELS;
        let count = CHANNELS.min(channels.saturating_sub(first));
        let from = (image * channels + first) * positions;
        let planes = planes.get(from..from + count * positions).ok_or(Stopped::Misfit)?;
        gather(planes, positions, start / unit, cast_slice_mut(out));
        Ok(())
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
    let unit = size_of::<T>();
    let count = channels.div_ceil(CHANNELS);
    // The channels of a block, or those of the last one.
    let image = unit.saturating_mul(channels).saturating_mul(positions);
    parallel::pieces(cast_slice_mut(out), unit.saturating_mul(positions), image, 1, resources, |image, start, out| {
        let planes: &mut [T] = cast_slice_mut(out);
        let first = start / unit / positions.max(1);
        let (mut rest, mut channel) = (planes, first);
        while !rest.is_empty() {
            // The planes of a block, or those of it that are in this part.
            let (own, others) = rest.split_at_mut(((CHANNELS - channel % CHANNELS) * positions).min(rest.len()));
            let from = (image * count + channel / CHANNELS) * positions * CHANNELS;
            let block = blocks.get(from..from + positions * CHANNELS).ok_or(Stopped::Misfit)?;
            pick(block, channel % CHANNELS, positions, own);
            channel += own.len() / positions.max(1);
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

fn gather<T: Pod>(planes: &[T], positions: usize, start: usize, out: &mut [T]) {
    for (at, out) in out.chunks_mut(PLACES * CHANNELS).enumerate() {
        let from = start + at * PLACES;
        let out = out.as_chunks_mut::<CHANNELS>().0;
        out.fill([T::zeroed(); CHANNELS]);
        for (channel, plane) in planes.chunks_exact(positions.max(1)).enumerate() {
            let from = plane.get(from..).unwrap_or(&[]);
            for (to, from) in out.iter_mut().zip(from) {
                if let Some(to) = to.get_mut(channel) {
                    *to = *from;
                }
            }
        }
    }
}

/// Fills planes, of which the first is that of a channel of the block.
fn pick<T: Pod>(block: &[T], channel: usize, positions: usize, planes: &mut [T]) {
    for (at, places) in block.chunks(PLACES * CHANNELS).enumerate() {
        for (lane, plane) in planes.chunks_exact_mut(positions.max(1)).enumerate() {
            let to = plane.iter_mut().skip(at * PLACES);
            for (to, place) in to.zip(places.as_chunks::<CHANNELS>().0) {
                *to = place.get(channel + lane).copied().unwrap_or(T::zeroed());
            }
        }
    }
}
