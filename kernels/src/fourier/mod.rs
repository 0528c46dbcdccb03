//! Discrete Fourier transforms of lanes of any length: `X[k] = sum of x[j] e^(-2 pi i j k / n)`.
//!
//! A length with small prime factors has a pass for each ([`passes`]); any other is a convolution of such a length
//! ([`chirp`]). If one side is real, a transform of an even length is a complex one of half of it ([`halves`]), and what must
//! be 0 is 0. Turns are computed once for all lanes, from angles that are reduced in integers.
//!
//! What is computed of a lane depends on its elements alone: up to [`WIDTH`] lanes are side by side in a vector, but the
//! steps of each are the same. They are single products and sums, so that all processors give the same bits. In `f64` no
//! part of a transform of normal numbers is further from the exact one than 4.6 units in the last place of the greatest
//! frequency: measured for all lengths up to 300, and for primes and powers of two up to 2^18.

mod chirp;
mod halves;
mod passes;
#[cfg(test)]
mod tests;

use crate::number::Float;
use crate::parallel::{self, Benches};
use crate::{Lookout, Resources, Stopped, functions};
use bytemuck::cast_slice_mut;
use chirp::Chirp;
use passes::{Passes, Planes, factors};

/// What the two sides of a transform are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    Complex,
    /// From real numbers.
    FromReal,
    /// To real numbers: half of the frequencies, `len / 2 + 1`, say all. The imaginary part of the first, and of the last one
    /// of an even length, counts as 0.
    ToReal,
}

/// A kind of transform.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub sides: Sides,
    /// Turns the other way, and divides by the length. A transform to real numbers always does.
    pub inverse: bool,
    /// Of the side that has one number for each sample, at least 1.
    pub len: usize,
}

/// Maximum number of lanes that are transformed at a time.
const WIDTH: usize = 8;
/// Rows of elements at most, of lanes that are transformed together: all stay in a near cache.
const SHORT: usize = 2 << 10;

impl Kind {
    /// Whether elements are transformed in pairs.
    fn is_halved(self) -> bool {
        self.sides != Sides::Complex && self.len.is_multiple_of(2)
    }

    /// The length of the complex transform.
    fn complex(self) -> usize {
        if self.is_halved() { self.len / 2 } else { self.len }
    }

    /// The length of its passes.
    fn passes(self) -> usize {
        let len = self.complex();
        if factors(len).is_some() { len } else { chirp::convolution(len) }
    }

    /// Frequencies of a side that isn't real, as long as they don't follow from others.
    fn frequencies(self) -> usize {
        if self.sides == Sides::Complex { self.len } else { self.len / 2 + 1 }
    }

    /// Elements of a lane that are read.
    pub fn elements(self) -> usize {
        if self.sides == Sides::ToReal { self.frequencies() } else { self.len }
    }

    /// Rows of planes.
    fn rows(self) -> usize {
        self.passes().max(self.frequencies())
    }

    /// Numbers that a [`Transform`] keeps.
    pub fn kept(self) -> usize {
        let (complex, passes) = (self.complex(), self.passes());
        let chirp = if passes == complex { 0 } else { complex.saturating_add(passes) };
        let halves = if self.is_halved() { complex / 2 + 1 } else { 0 };
        passes.saturating_add(chirp).saturating_add(halves).saturating_mul(2)
    }

    /// Numbers that a thread needs as room for `count` lanes.
    pub fn bench(self, count: usize) -> usize {
        self.rows().saturating_mul(4 * self.width(count))
    }

    /// Lanes that are transformed at a time, of so many.
    fn width(self, count: usize) -> usize {
        match count {
            WIDTH.. if self.rows() <= SHORT => WIDTH,
            4.. if self.rows() <= SHORT => 4,
            _ => 1,
        }
    }

    /// Steps for each lane.
    pub fn work(self) -> u64 {
        let (complex, passes) = (self.complex(), self.passes());
        let steps: usize = factors(passes).unwrap_or_default().iter().sum();
        let times = if passes == complex { 1 } else { 2 };
        (passes as u64).saturating_mul((times * steps + 1) as u64)
    }
}

/// Where lanes are: the first is at 0, and lane `l` at `l / inner * steps[0] + l % inner * steps[1]`.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    pub inner: usize,
    pub steps: [usize; 2],
    /// From one element of a lane to the next: one number if it is real, else two.
    pub step: usize,
    /// Elements of a lane.
    pub len: usize,
}

impl Places {
    fn of(&self, lane: usize) -> usize {
        lane / self.inner * self.steps[0] + lane % self.inner * self.steps[1]
    }

    /// The places of some lanes from `first` on.
    fn starts(&self, first: usize) -> [usize; WIDTH] {
        let mut starts = [0; WIDTH];
        starts.iter_mut().enumerate().for_each(|(k, start)| *start = self.of(first + k));
        starts
    }
}

/// A transform that is ready for lanes.
#[derive(Debug)]
pub struct Transform<'a, T> {
    kind: Kind,
    passes: Passes<'a, T>,
    chirp: Option<Chirp<'a, T>>,
    /// `e^(-2 pi i k / len)` of a quarter of the length, if it is halved.
    turns: &'a [[T; 2]],
}

impl<'a, T: Float> Transform<'a, T> {
    /// `kept` is room for what [`Kind::kept`] says; `bench` is that of one lane, and free afterwards.
    pub fn new(
        kind: Kind,
        kept: &'a mut [T],
        bench: &mut [T],
        resources: Resources<'_>,
    ) -> Result<Transform<'a, T>, Stopped> {
        let (complex, passes) = (kind.complex(), kind.passes());
        let mut lookout = resources.lookout();
        let pairs: &mut [[T; 2]] = bytemuck::try_cast_slice_mut(kept).map_err(|_| Stopped::Misfit)?;
        let (turns, rest) = pairs.split_at_mut_checked(passes).ok_or(Stopped::Misfit)?;
        write_turns(turns, passes, |k| k as u64, &mut lookout)?;
        let passes = Passes { factors: factors(passes).ok_or(Stopped::Misfit)?, turns };
        let (chirp, halves) = if passes.turns.len() == complex {
            (None, rest)
        } else {
            let (own, rest) = rest.split_at_mut_checked(complex + passes.turns.len()).ok_or(Stopped::Misfit)?;
            (Some(Chirp::new(complex, &passes, own, bench, &mut lookout)?), rest)
        };
        write_turns(halves, kind.len, |k| k as u64, &mut lookout)?;
        Ok(Transform { kind, passes, chirp, turns: halves })
    }

    /// Transforms `count` lanes of `data`, which may have fewer elements than are needed: the others are 0. Samples are
    /// multiplied by those of `window`, unless it is empty. `benches` has [`Kind::bench`] numbers for each thread.
    #[expect(clippy::too_many_arguments)]
    pub fn run(
        &self,
        count: usize,
        [from, to]: [&Places; 2],
        data: &[T],
        window: &[T],
        out: &mut [T],
        benches: &mut [T],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        if out.is_empty() {
            return Ok(());
        }
        let benches = Benches::new(benches, self.kind.bench(count));
        // Lanes that are written by one thread.
        let lanes = if to.inner == 1 { WIDTH } else { to.inner };
        let (unit, cost) = (to.steps[0] * (lanes / to.inner), 4 * self.passes.factors.len() + 4);
        parallel::split_by(cast_slice_mut(out), unit * size_of::<T>(), cost, resources, |first, out| {
            let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
            let mut lookout = resources.lookout();
            benches.with(|bench| {
                let (mut lane, base) = (first * lanes, to.of(first * lanes));
                let end = lane + out.len() / to.steps[0] * to.inner;
                while lane < end {
                    let width = self.kind.width(end - lane);
                    let (mut planes, mut room) = planes(bench, self.kind.rows() * width)?;
                    let starts = from.starts(lane);
                    let starts = starts.get(..width).unwrap_or(&[]);
                    self.load(data, from, starts, window, &mut planes, &mut lookout)?;
                    self.transform(&mut planes, &mut room, width, &mut lookout)?;
                    let starts = to.starts(lane).map(|start| start.wrapping_sub(base));
                    self.store(&planes, to, starts.get(..width).unwrap_or(&[]), out, &mut lookout)?;
                    lane += width;
                }
                Ok(())
            })
        })
    }

    /// Reads the elements of lanes into rows.
    fn load(
        &self,
        data: &[T],
        from: &Places,
        starts: &[usize],
        window: &[T],
        planes: &mut Planes<'_, T>,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (width, real) = (starts.len(), self.kind.sides == Sides::FromReal);
        // Samples that are in a row.
        let samples = if real && self.kind.is_halved() { 2 } else { 1 };
        let rows = if real { self.kind.complex() } else { self.kind.elements() };
        let number = |at: usize| data.get(at).copied().unwrap_or(T::ZERO);
        let planes = planes.re.chunks_exact_mut(width).zip(planes.im.chunks_exact_mut(width));
        for (row, (re, im)) in planes.take(rows).enumerate() {
            lookout.after(4 * size_of::<T>() * width)?;
            let at = row * samples;
            if at >= from.len {
                re.fill(T::ZERO);
                im.fill(T::ZERO);
                continue;
            }
            let weight = |at: usize| window.get(at).copied().unwrap_or(T::ONE);
            let weights = [weight(at), weight(if real { at + 1 } else { at })];
            let second = if real { from.step } else { 1 };
            let has_second = !real || samples == 2 && at + 1 < from.len;
            for ((re, im), start) in re.iter_mut().zip(im).zip(starts) {
                let place = start + at * from.step;
                *re = number(place) * weights[0];
                *im = if has_second { number(place + second) * weights[1] } else { T::ZERO };
            }
        }
        Ok(())
    }

    /// From rows of what was read to rows of what is written.
    fn transform<'p>(
        &self,
        planes: &mut Planes<'p, T>,
        room: &mut Planes<'p, T>,
        width: usize,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let Kind { sides, len, .. } = self.kind;
        if sides == Sides::ToReal {
            if self.kind.is_halved() {
                halves::join(planes, room, self.turns, len / 2, width, lookout)?;
                std::mem::swap(planes, room);
            } else {
                halves::mirror(planes, len, width, lookout)?;
            }
        }
        // The inverse of a real lane is the conjugate of its transform.
        let swapped = self.kind.inverse && sides != Sides::FromReal;
        if swapped {
            planes.swap();
        }
        match &self.chirp {
            Some(chirp) => chirp.run(&self.passes, planes, room, width, lookout)?,
            None => self.passes.run(planes, room, width, lookout)?,
        }
        if swapped {
            planes.swap();
        }
        if sides == Sides::FromReal {
            if self.kind.is_halved() {
                halves::part(planes, room, self.turns, len / 2, width, lookout)?;
                std::mem::swap(planes, room);
            } else {
                planes.im.get_mut(..width).unwrap_or(&mut []).fill(T::ZERO);
            }
        }
        Ok(())
    }

    /// Writes rows to the lanes.
    fn store(
        &self,
        planes: &Planes<'_, T>,
        to: &Places,
        starts: &[usize],
        out: &mut [T],
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (Kind { sides, inverse, len }, width) = (self.kind, starts.len());
        let divisor = if inverse { T::of(len as f64) } else { T::ONE };
        for element in 0..to.len {
            lookout.after(4 * size_of::<T>() * width)?;
            // Frequencies beyond the half are conjugates of others.
            let beyond = element >= self.kind.frequencies();
            let row = match sides {
                Sides::ToReal if self.kind.is_halved() => element / 2,
                Sides::FromReal if beyond => len - element,
                _ => element,
            };
            let row_of = |plane| part_of(plane, row * width, width);
            let (re, im) = (row_of(planes.re)?, row_of(planes.im)?);
            for ((re, im), start) in re.iter().zip(im).zip(starts) {
                let place = start + element * to.step;
                if sides == Sides::ToReal {
                    let number = if self.kind.is_halved() && element % 2 == 1 { im } else { re };
                    out.get_mut(place).into_iter().for_each(|to| *to = *number / divisor);
                    continue;
                }
                // 0 stays 0.
                let im = if sides == Sides::FromReal && beyond != inverse { T::ZERO - *im } else { *im };
                if let Some([a, b]) = out.get_mut(place..).and_then(<[T]>::first_chunk_mut) {
                    (*a, *b) = (*re / divisor, im / divisor);
                }
            }
        }
        Ok(())
    }
}

fn part_of<T>(plane: &[T], at: usize, len: usize) -> Result<&[T], Stopped> {
    plane.get(at..at + len).ok_or(Stopped::Misfit)
}

/// Two planes of `len` numbers each, out of room.
fn planes<T>(bench: &mut [T], len: usize) -> Result<(Planes<'_, T>, Planes<'_, T>), Stopped> {
    let mut planes = bench.chunks_exact_mut(len.max(1));
    match [planes.next(), planes.next(), planes.next(), planes.next()] {
        [Some(a), Some(b), Some(c), Some(d)] => Ok((Planes { re: a, im: b }, Planes { re: c, im: d })),
        _ => Err(Stopped::Misfit),
    }
}

/// Writes `e^(-2 pi i at(k) / of)` for each `k`.
fn write_turns<T: Float>(
    turns: &mut [[T; 2]],
    of: usize,
    mut at: impl FnMut(usize) -> u64,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    const SOME: usize = 64;
    for (k, turns) in turns.chunks_mut(SOME).enumerate() {
        // The functions take as long as some 16 numbers that are written.
        lookout.after(16 * SOME * size_of::<T>())?;
        let (mut numbers, mut exact) = ([0; SOME], [[0.0; 2]; SOME]);
        numbers.iter_mut().take(turns.len()).enumerate().for_each(|(j, number)| *number = at(k * SOME + j));
        functions::turns(&numbers, of as u64, &mut exact);
        for (to, [re, im]) in turns.iter_mut().zip(exact) {
            *to = [T::of(re), T::of(im)];
        }
    }
    Ok(())
}
