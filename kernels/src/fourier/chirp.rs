//! Transforms of lengths with large prime factors, as convolutions (Bluestein): as `jk = (j^2 + k^2 - (k - j)^2) / 2`, a
//! transform is a product with a chirp `e^(-pi i k^2 / len)`, a convolution with its conjugate, and a product again.

use super::passes::{BLOCK, Passes, Planes, Point};
use super::{planes, write_turns};
use crate::cpu::for_avx2;
use crate::number::Float;
use crate::{Lookout, Stopped};

/// The length of the convolution: at least `2 len - 1`, a small number times a power of two.
pub(super) fn convolution(len: usize) -> usize {
    let least = len.saturating_mul(2).saturating_sub(1);
    let size = |factor: usize| factor.checked_mul(least.div_ceil(factor).checked_next_power_of_two()?);
    [1, 3, 5, 7].into_iter().filter_map(size).min().unwrap_or(usize::MAX)
}

#[derive(Debug)]
pub(super) struct Chirp<'a, T> {
    /// `e^(-pi i k^2 / len)` for each element of a lane.
    chirp: &'a [[T; 2]],
    /// The transform of what it is convolved with, over its length.
    spectrum: &'a [[T; 2]],
}

impl<'a, T: Float> Chirp<'a, T> {
    /// `kept` is room for `len` pairs, and for as many as `passes` have.
    pub(super) fn new(
        len: usize,
        passes: &Passes<'_, T>,
        kept: &'a mut [[T; 2]],
        bench: &mut [T],
        lookout: &mut Lookout<'_>,
    ) -> Result<Chirp<'a, T>, Stopped> {
        let (chirp, spectrum) = kept.split_at_mut_checked(len).ok_or(Stopped::Misfit)?;
        let (mut square, period) = (0, 2 * len as u64);
        let next = |k| {
            let own = square;
            square = (square + 2 * k as u64 + 1) % period;
            own
        };
        write_turns(chirp, 2 * len, next, lookout)?;
        let (mut from, mut to) = planes(bench, passes.turns.len())?;
        let scale = T::of(passes.turns.len() as f64);
        for plane in [&mut from.re, &mut from.im] {
            for block in plane.chunks_mut(BLOCK) {
                lookout.after(size_of_val(block))?;
                block.fill(T::ZERO);
            }
        }
        for (k, [re, im]) in chirp.iter().enumerate() {
            lookout.after(4 * size_of::<T>())?;
            let turn = Point { re: [*re / scale], im: [-*im / scale] };
            turn.store(&mut from, k);
            turn.store(&mut from, if k == 0 { 0 } else { passes.turns.len() - k });
        }
        passes.run(&mut from, &mut to, 1, lookout)?;
        for (k, pair) in spectrum.iter_mut().enumerate() {
            lookout.after(4 * size_of::<T>())?;
            let Point { re: [re], im: [im] } = Point::load(&from, k);
            *pair = [re, im];
        }
        Ok(Chirp { chirp, spectrum })
    }

    /// Transforms the elements of `width` lanes in `from`. `to` is room.
    pub(super) fn run<'p>(
        &self,
        passes: &Passes<'_, T>,
        from: &mut Planes<'p, T>,
        to: &mut Planes<'p, T>,
        width: usize,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        multiply(from, self.chirp, width, lookout)?;
        for plane in [&mut from.re, &mut from.im] {
            for block in plane.get_mut(self.chirp.len() * width..).unwrap_or(&mut []).chunks_mut(BLOCK) {
                lookout.after(size_of_val(block))?;
                block.fill(T::ZERO);
            }
        }
        passes.run(from, to, width, lookout)?;
        multiply(from, self.spectrum, width, lookout)?;
        from.swap();
        passes.run(from, to, width, lookout)?;
        from.swap();
        multiply(from, self.chirp, width, lookout)
    }
}

/// Multiplies rows by a number each.
fn multiply<T: Float>(
    planes: &mut Planes<'_, T>,
    by: &[[T; 2]],
    width: usize,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let rows = BLOCK / width;
    let blocks = planes.re.chunks_mut(rows * width).zip(planes.im.chunks_mut(rows * width));
    for ((re, im), by) in blocks.zip(by.chunks(rows)) {
        lookout.after(4 * size_of_val(re))?;
        multiply_rows(&mut Planes { re, im }, by, width);
    }
    Ok(())
}

for_avx2! {
    fn multiply_rows<T: Float>(planes: &mut Planes<'_, T>, by: &[[T; 2]], width: usize) -> () = multiply_body::<T>;
}

#[inline(always)]
fn multiply_body<T: Float>(planes: &mut Planes<'_, T>, by: &[[T; 2]], width: usize) {
    match width {
        8 => multiply_points::<T, 8>(planes, by),
        4 => multiply_points::<T, 4>(planes, by),
        _ => multiply_points::<T, 1>(planes, by),
    }
}

#[inline(always)]
fn multiply_points<T: Float, const W: usize>(planes: &mut Planes<'_, T>, by: &[[T; 2]]) {
    for (row, by) in by.iter().enumerate() {
        Point::<T, W>::load(planes, row * W).times(*by).store(planes, row * W);
    }
}
