//! Transforms whose lengths have small prime factors: a pass over all elements for each factor.
//!
//! Elements of several lanes are side by side. Stockham's order: a pass reads elements that are far apart and writes them as
//! neighbours, so that what is left are transforms of more lanes; the last pass leaves the frequencies in order.

use crate::cpu::for_avx2;
use crate::number::Float;
use crate::{Lookout, Stopped};
use smallvec::SmallVec;
use std::ops::Range;

/// Complex numbers, their parts apart: the elements of some lanes, row by row.
#[derive(Debug)]
pub(super) struct Planes<'a, T> {
    pub(super) re: &'a mut [T],
    pub(super) im: &'a mut [T],
}

impl<T> Planes<'_, T> {
    /// Multiplies by i and conjugates. Before a transform and after it, this makes it the inverse one, but for the scale.
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.re, &mut self.im);
    }
}

/// `W` neighbours of [`Planes`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Point<T, const W: usize> {
    pub(super) re: [T; W],
    pub(super) im: [T; W],
}

impl<T: Float, const W: usize> Point<T, W> {
    pub(super) const ZERO: Self = Point { re: [T::ZERO; W], im: [T::ZERO; W] };

    #[inline(always)]
    pub(super) fn load(from: &Planes<'_, T>, at: usize) -> Self {
        let (re, im) = (from.re.get(at..), from.im.get(at..));
        match (re.and_then(<[T]>::first_chunk), im.and_then(<[T]>::first_chunk)) {
            (Some(re), Some(im)) => Point { re: *re, im: *im },
            _ => Point::ZERO,
        }
    }

    #[inline(always)]
    pub(super) fn store(self, to: &mut Planes<'_, T>, at: usize) {
        let (re, im) = (to.re.get_mut(at..), to.im.get_mut(at..));
        if let (Some(re), Some(im)) = (re.and_then(<[T]>::first_chunk_mut), im.and_then(<[T]>::first_chunk_mut)) {
            (*re, *im) = (self.re, self.im);
        }
    }

    #[inline(always)]
    pub(super) fn plus(mut self, other: Self) -> Self {
        for (a, b) in self.re.iter_mut().zip(other.re) {
            *a = *a + b;
        }
        for (a, b) in self.im.iter_mut().zip(other.im) {
            *a = *a + b;
        }
        self
    }

    #[inline(always)]
    pub(super) fn minus(mut self, other: Self) -> Self {
        for (a, b) in self.re.iter_mut().zip(other.re) {
            *a = *a - b;
        }
        for (a, b) in self.im.iter_mut().zip(other.im) {
            *a = *a - b;
        }
        self
    }

    #[inline(always)]
    pub(super) fn times(mut self, [re, im]: [T; 2]) -> Self {
        for (a, b) in self.re.iter_mut().zip(&mut self.im) {
            (*a, *b) = (*a * re - *b * im, *a * im + *b * re);
        }
        self
    }

    #[inline(always)]
    pub(super) fn scaled(mut self, by: T) -> Self {
        for (a, b) in self.re.iter_mut().zip(&mut self.im) {
            (*a, *b) = (*a * by, *b * by);
        }
        self
    }

    #[inline(always)]
    pub(super) fn conjugate(mut self) -> Self {
        for b in &mut self.im {
            *b = -*b;
        }
        self
    }

    /// Times i.
    #[inline(always)]
    pub(super) fn turned(self) -> Self {
        let Point { re: im, im: re } = self;
        let mut turned = Point { re, im };
        for a in &mut turned.re {
            *a = -*a;
        }
        turned
    }
}

/// The greatest prime factor of a length that has passes.
const MOST: usize = 13;

/// The factors of a length in the order of pocketfft: fours, before them a two, and the odd primes. `None` if one of these
/// is too large.
pub(super) fn factors(mut len: usize) -> Option<SmallVec<[usize; 16]>> {
    let mut factors = SmallVec::new();
    while len > 1 && len.is_multiple_of(4) {
        factors.push(4);
        len /= 4;
    }
    if len > 1 && len.is_multiple_of(2) {
        factors.insert(0, 2);
        len /= 2;
    }
    for prime in (3..=MOST).step_by(2) {
        while len > 1 && len.is_multiple_of(prime) {
            factors.push(prime);
            len /= prime;
        }
    }
    (len == 1).then_some(factors)
}

/// A transform of `turns.len()` elements.
#[derive(Debug)]
pub(super) struct Passes<'a, T> {
    pub(super) factors: SmallVec<[usize; 16]>,
    /// `e^(-2 pi i k / len)`
    pub(super) turns: &'a [[T; 2]],
}

/// For each output of half of those of an odd factor, the turn of each input of a half.
type Roots<T> = [[T; 2]; (MOST / 2) * (MOST / 2)];

/// What a pass does: elements of `stride` lanes, of which `rest` rows are between those that are added up.
struct Pass<'a, T> {
    radix: usize,
    rest: usize,
    stride: usize,
    /// The product of the factors before.
    before: usize,
    turns: &'a [[T; 2]],
    roots: Roots<T>,
}

/// Elements that a pass reads and writes between two looks.
pub(super) const BLOCK: usize = 4 << 10;

impl<T: Float> Passes<'_, T> {
    /// Transforms the elements of `width` lanes in `from`. `to` is room.
    pub(super) fn run<'a>(
        &self,
        from: &mut Planes<'a, T>,
        to: &mut Planes<'a, T>,
        width: usize,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (mut before, mut rest) = (1, self.turns.len());
        for &radix in &self.factors {
            rest /= radix;
            let stride = before * width;
            let pass = Pass { radix, rest, stride, before, turns: self.turns, roots: self.roots(radix) };
            let rows = (BLOCK / (radix * stride)).max(1);
            for row in (0..rest).step_by(rows) {
                for start in (0..stride).step_by(BLOCK) {
                    let (rows, lanes) = (row..rest.min(row + rows), start..stride.min(start + BLOCK));
                    lookout.after(4 * size_of::<T>() * radix * rows.len() * lanes.len())?;
                    part(&pass, from, to, rows, lanes);
                }
            }
            std::mem::swap(from, to);
            before *= radix;
        }
        Ok(())
    }

    fn roots(&self, radix: usize) -> Roots<T> {
        let (half, step) = (radix / 2, self.turns.len() / radix);
        let mut roots = [[T::ZERO; 2]; _];
        for (k, root) in roots.iter_mut().enumerate().take(half * half) {
            let (u, j) = (k / half + 1, k % half + 1);
            self.turns.get(u * j % radix * step).into_iter().for_each(|turn| *root = *turn);
        }
        roots
    }
}

/// A function for each radix, as those of all in one would need too much of the stack.
macro_rules! radices {
    ($($radix:pat => $name:ident: $points:expr,)*) => {
        $(for_avx2! {
            fn $name<T: Float>(
                pass: &Pass<'_, T>, from: &Planes<'_, T>, to: &mut Planes<'_, T>, rows: Range<usize>, lanes: Range<usize>,
            ) -> () = rows_of::<T, $points>;
        })*

        fn part<T: Float>(
            pass: &Pass<'_, T>,
            from: &Planes<'_, T>,
            to: &mut Planes<'_, T>,
            rows: Range<usize>,
            lanes: Range<usize>,
        ) {
            match pass.radix {
                $($radix => $name(pass, from, to, rows, lanes),)*
            }
        }
    };
}

radices! {
    2 => twos: 2,
    3 => threes: 3,
    4 => fours: 4,
    5 => fives: 5,
    7 => sevens: 7,
    _ => others: MOST,
}

#[inline(always)]
fn rows_of<T: Float, const R: usize>(
    pass: &Pass<'_, T>,
    from: &Planes<'_, T>,
    to: &mut Planes<'_, T>,
    rows: Range<usize>,
    lanes: Range<usize>,
) {
    for row in rows {
        // The first row isn't turned, which also keeps what is infinite.
        let mut turns = [[T::ONE, T::ZERO]; R];
        if row > 0 {
            for (j, turn) in turns.iter_mut().enumerate().take(radix::<T, R>(pass)) {
                pass.turns.get(j * row * pass.before).into_iter().for_each(|own| *turn = *own);
            }
        }
        let mut lane = lanes.start;
        while lane + 8 <= lanes.end {
            points::<T, R, 8>(pass, from, to, row, lane, &turns);
            lane += 8;
        }
        while lane + 4 <= lanes.end {
            points::<T, R, 4>(pass, from, to, row, lane, &turns);
            lane += 4;
        }
        while lane < lanes.end {
            points::<T, R, 1>(pass, from, to, row, lane, &turns);
            lane += 1;
        }
    }
}

/// The radix of a pass for `R`, which is that of all passes without a function of their own if it is [`MOST`].
#[inline(always)]
fn radix<T, const R: usize>(pass: &Pass<'_, T>) -> usize {
    if R == MOST { pass.radix.min(MOST) } else { R }
}

/// Rows of `W` lanes: `R`, or as many as the radix.
#[inline(always)]
fn points<T: Float, const R: usize, const W: usize>(
    pass: &Pass<'_, T>,
    from: &Planes<'_, T>,
    to: &mut Planes<'_, T>,
    row: usize,
    lane: usize,
    turns: &[[T; 2]; R],
) {
    let mut all = [Point::<T, W>::ZERO; R];
    let all = all.get_mut(..radix::<T, R>(pass)).unwrap_or_default();
    for (j, point) in all.iter_mut().enumerate() {
        *point = Point::load(from, (row + j * pass.rest) * pass.stride + lane);
    }
    match &mut *all {
        [a, b] => (*a, *b) = (a.plus(*b), a.minus(*b)),
        [a, b, c, d] => {
            let (even, odd) = ((a.plus(*c), a.minus(*c)), (b.plus(*d), d.minus(*b).turned()));
            (*a, *b, *c, *d) = (even.0.plus(odd.0), even.1.plus(odd.1), even.0.minus(odd.0), even.1.minus(odd.1));
        }
        _ => odd::<T, R, W>(all, &pass.roots),
    }
    for (j, (point, turn)) in all.iter().zip(turns).enumerate() {
        let point = if row == 0 || j == 0 { *point } else { point.times(*turn) };
        point.store(to, (row * all.len() + j) * pass.stride + lane);
    }
}

/// Of an odd number, at most `R`: inputs `j` and the one as far from the end make sums and differences, these the outputs `u`
/// and the one as far from the end.
#[inline(always)]
fn odd<T: Float, const R: usize, const W: usize>(all: &mut [Point<T, W>], roots: &Roots<T>) {
    let half = all.len() / 2;
    let (mut sums, mut differences) = ([Point::<T, W>::ZERO; R], [Point::<T, W>::ZERO; R]);
    let Some((first, others)) = all.split_first_mut() else { return };
    let (low, high) = others.split_at_mut(half);
    let start = *first;
    for (((low, high), sum), difference) in
        low.iter().zip(high.iter().rev()).zip(&mut sums).zip(&mut differences).take(half)
    {
        (*sum, *difference) = (low.plus(*high), low.minus(*high));
        *first = first.plus(*sum);
    }
    for ((low, high), roots) in low.iter_mut().zip(high.iter_mut().rev()).zip(roots.chunks_exact(half.max(1))) {
        let (mut even, mut odd) = (start, Point::ZERO);
        for (([re, im], sum), difference) in roots.iter().zip(&sums).zip(&differences) {
            even = even.plus(sum.scaled(*re));
            odd = odd.plus(difference.scaled(*im));
        }
        let odd = odd.turned();
        (*low, *high) = (even.plus(odd), even.minus(odd));
    }
}
