//! Convolutions of bytes whose filters see one channel each, on planes: line by line, without a product of matrices.

use super::epilogue::Step;
use super::place::{Extent, Place};
use super::{Batch, Operand};
use crate::cpu::for_each_level;
use crate::windows::{Axis, Windows};
use crate::{Resources, Stopped};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Positions that are computed together, and taps between two looks whether to stop.
const RUN: usize = 64;
const TAPS: usize = 1 << 10;

/// Planes, and filters of each.
#[derive(Debug, Clone, Copy)]
pub struct Channels<'a> {
    /// Bytes, what each is combined with first to be unsigned, and the zero point of what that gives.
    pub planes: &'a [u8],
    pub flip: u8,
    pub zero: u8,
    /// Of each filter its taps, less a zero point.
    pub weights: &'a [i32],
    pub windows: &'a Windows,
    /// Filters of a channel, and the dimensions of the batch: images and channels.
    pub m: usize,
    pub batch: &'a [Batch],
}

impl Channels<'_> {
    /// Writes the sums of each filter of each channel, which wrap, and of which the epilogue makes what is written.
    pub fn run<O: Operand<Sum = u32>>(
        &self,
        epilogue: &[&dyn Step<u32>],
        out: &mut [O],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let Channels { planes, flip, zero, weights, windows, m, batch } = *self;
        let (input, taps, last) = (windows.input(), windows.kernel(), windows.last());
        let channels = batch.last().map_or(1, |batch| batch.size);
        let matrices = batch.iter().map(|batch| batch.size).fold(1, usize::saturating_mul);
        let count = crate::volume(matrices, [&m, &windows.output()]);
        if out.is_empty() && count == 0 {
            return Ok(());
        }
        let extent = Extent { m, n: windows.output(), batch };
        let fits = out.len() == count
            && planes.len() == matrices.saturating_mul(input)
            && weights.len() == crate::volume(channels, [&m, &taps])
            && epilogue.iter().all(|step| step.fits(&extent));
        if !fits {
            return Err(Stopped::Misfit);
        }
        windows.runs(RUN, [cast_slice_mut(out), &mut []], [size_of::<O>(), 0], resources, &|run, [out, _]| {
            let (matrix, row) = (run.plane / m, run.plane % m);
            let plane = planes.get(matrix * input..(matrix + 1) * input).ok_or(Stopped::Misfit)?;
            let filter = matrix % channels * m + row;
            let weights = weights.get(filter * taps..(filter + 1) * taps).ok_or(Stopped::Misfit)?;
            let (mut sums, mut lookout) = ([0u32; RUN], resources.lookout());
            run.lines(|line, number| {
                let line = plane.get(line..line + last.input).ok_or(Stopped::Misfit)?;
                let weights = weights.get(number * last.kernel..(number + 1) * last.kernel).ok_or(Stopped::Misfit)?;
                for (part, weights) in weights.chunks(TAPS).enumerate() {
                    lookout.after(weights.len() * RUN)?;
                    add(&mut sums, line, (last, &run.along), (part * TAPS, weights), (flip, zero));
                }
                Ok(())
            })?;
            let sums = sums.get_mut(..run.along.len()).ok_or(Stopped::Misfit)?;
            let place = Place { matrix, row, column: run.number(), down: false, batch };
            epilogue.iter().for_each(|step| step.apply(&place, sums));
            O::narrow(sums, cast_slice_mut(out));
            Ok(())
        })
    }
}

for_each_level! {
    /// Adds what windows see of a line at taps from one on.
    fn add<>(
        sums: &mut [u32; RUN], line: &[u8], windows: (&Axis, &Range<usize>), weights: (usize, &[i32]), bytes: (u8, u8)
    ) -> () = add_body;
}

#[inline(always)]
fn add_body(
    sums: &mut [u32; RUN],
    line: &[u8],
    (axis, along): (&Axis, &Range<usize>),
    (first, weights): (usize, &[i32]),
    (flip, zero): (u8, u8),
) {
    for (tap, weight) in (first..).zip(weights) {
        let positions = axis.positions(tap, along);
        let to = sums.get_mut(positions.start - along.start..positions.end.max(positions.start) - along.start);
        let (Some(to), false) = (to, positions.is_empty()) else { continue };
        let from = line.get(axis.element(positions.start, tap)..).unwrap_or(&[]);
        let product = |byte: u8| (i32::from(byte ^ flip) - i32::from(zero)).wrapping_mul(*weight).cast_unsigned();
        match axis.stride {
            1 => to.iter_mut().zip(from).for_each(|(sum, byte)| *sum = sum.wrapping_add(product(*byte))),
            2 => {
                // The last pair may be half of one.
                let pairs = from.as_chunks::<2>().0.iter().map(|[byte, _]| byte);
                let bytes = pairs.chain(from.as_chunks::<2>().1);
                to.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum = sum.wrapping_add(product(*byte)));
            }
            stride => {
                let bytes = from.iter().step_by(stride.max(1));
                to.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum = sum.wrapping_add(product(*byte)));
            }
        }
    }
}
