//! Folds: what elements add to partial values, in loops that are compiled for each processor level.
//!
//! The element i of a lane goes to the partial value i mod 32, and these are joined as a tree at the end. So the order
//! depends on the length of the lane alone, and the loops are as wide as the processor.

use super::Number;
use super::reduce::{BETWEEN_LOOKS, between_looks, looking_every};
use super::sums::Partial;
use crate::cpu::for_each_level;
use crate::{Stop, Stopped};
use std::iter;

/// What elements add to the partial value of a lane.
pub trait Fold<T>: Sync {
    type Partial: Partial;
    /// There are odd elements and partial values, and adding others takes fewer steps.
    const HAS_ODD: bool = false;

    /// What an element counts.
    #[inline(always)]
    fn counts(&self, element: T) -> T {
        element
    }
    /// Adds what an element counts.
    fn add(&self, value: Self::Partial, element: T) -> Self::Partial;
    /// Adds the elements of blocks, each to the value at its place.
    #[inline(always)]
    fn add_blocks<'a, const N: usize>(&self, values: &mut [Self::Partial; N], blocks: impl Iterator<Item = &'a [T; N]>)
    where
        T: Number,
    {
        // A copy stays in registers.
        let mut held = *values;
        for block in blocks {
            add_block(self, &mut held, block);
        }
        *values = held;
    }
    /// As [`Fold::add`], where neither is odd.
    #[inline(always)]
    fn add_ordinary(&self, value: Self::Partial, element: T) -> Self::Partial {
        self.add(value, element)
    }
    /// Whether an element is odd.
    #[inline(always)]
    fn is_odd(&self, _element: T) -> bool {
        false
    }
    /// Whether the partial value of an odd element was added.
    #[inline(always)]
    fn has_odd(&self, _value: Self::Partial) -> bool {
        false
    }
}

/// The loops of a fold, compiled for each processor level. What walks over lanes calls these, and knows only the types of
/// numbers and partial values.
pub(super) trait Loops<T, P>: Sync {
    /// Adds `len` elements to the partial values of each lane, the first to the first.
    fn add(&self, partials: &mut [[P; PARTIALS]], len: usize, elements: &[T]);
}

/// As [`Loops`], of lanes that are side by side, as their partial values are: there are [`PARTIALS`] rows of these.
pub(super) trait LoopsOfRows<T, P>: Sync {
    /// Adds rows, the first to the partial values with the number `first`.
    fn add_rows(&self, partials: &mut [P], first: usize, rows: Rows<'_, T>);
    /// The values of lanes that are these rows, at most [`FEW`]: for a multiple of [`NARROW`].
    fn values_of_rows(&self, values: &mut [P], rows: Rows<'_, T>);
}

/// Elements of lanes that are side by side: a row has those at one position, and rows start `step` elements apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub(super) elements: &'a [T],
    pub(super) step: usize,
    pub(super) count: usize,
    pub(super) width: usize,
}

impl<'a, T> Rows<'a, T> {
    /// Rows one behind the other.
    pub(super) fn dense(elements: &'a [T], count: usize, width: usize) -> Rows<'a, T> {
        Rows { elements, step: width, count, width }
    }
}

/// Number of partial values.
pub(super) const PARTIALS: usize = 32;

/// Number of elements that are added at a time where [`PARTIALS`] are too many.
const PART: usize = 8;

/// Rows that a partial value gets one after another: more would read memory at strides that prefetching doesn't follow.
const ROUNDS: usize = 8;

/// Rows that lanes may have to be joined as they are added, and how many of these stay in registers.
pub(super) const FEW: usize = ROUNDS * PARTIALS;
pub(super) const NARROW: usize = HELD / 2;

/// Number of lanes that are reduced side by side; and that of many, so that processors look for the pages of rows that are
/// far apart less often.
pub(super) const ABREAST: usize = 64;
pub(super) const MANY: usize = 4 * ABREAST;

impl<F: Fold<T>, T: Number> Loops<T, F::Partial> for F {
    fn add(&self, partials: &mut [[F::Partial; PARTIALS]], len: usize, elements: &[T]) {
        add::<F, T>(self, partials, len, elements);
    }
}

impl<F: Fold<T>, T: Number> LoopsOfRows<T, F::Partial> for F {
    fn add_rows(&self, partials: &mut [F::Partial], first: usize, rows: Rows<'_, T>) {
        add_rows::<F, T>(self, partials, first, rows);
    }

    fn values_of_rows(&self, values: &mut [F::Partial], rows: Rows<'_, T>) {
        values_of_rows::<F, T>(self, values, rows);
    }
}

for_each_level! {
    fn add<F: Fold<T>, T: Number>(fold: &F, partials: &mut [[F::Partial; PARTIALS]], len: usize, elements: &[T]) -> ()
        = add_body::<F, T>;
}

for_each_level! {
    fn add_rows<F: Fold<T>, T: Number>(fold: &F, partials: &mut [F::Partial], first: usize, rows: Rows<'_, T>) -> ()
        = add_rows_body::<F, T>;
}

/// The values of at most `LANES` lanes of `len` elements, one behind the other.
#[inline(always)]
pub(super) fn fold_lanes<F: Fold<T>, T: Number, const LANES: usize>(
    fold: &F,
    len: usize,
    lanes: &[T],
    stop: Option<&Stop>,
) -> Result<[F::Partial; LANES], Stopped> {
    match len {
        0..=8 => fold_lanes_in::<F, T, LANES, 8>(fold, len, lanes, stop),
        9..=16 => fold_lanes_in::<F, T, LANES, 16>(fold, len, lanes, stop),
        _ => fold_lanes_in::<F, T, LANES, PARTIALS>(fold, len, lanes, stop),
    }
}

/// As [`fold_lanes`], with the first `N` partial values: short lanes leave the others at the start.
#[inline(always)]
fn fold_lanes_in<F: Fold<T>, T: Number, const LANES: usize, const N: usize>(
    fold: &F,
    len: usize,
    lanes: &[T],
    stop: Option<&Stop>,
) -> Result<[F::Partial; LANES], Stopped> {
    let (mut all, len) = ([[F::Partial::START; N]; LANES], len.max(1));
    let some = all.get_mut(..lanes.len() / len).ok_or(Stopped::Misfit)?;
    for (partials, lane) in some.iter_mut().zip(lanes.chunks_exact(len)) {
        fold_lane(fold, partials, lane, stop)?;
    }
    if N < PARTIALS {
        for value in some.as_flattened_mut() {
            *value = value.join(F::Partial::START);
        }
    }
    join_each(some);
    let mut values = [F::Partial::START; LANES];
    for (value, partials) in values.iter_mut().zip(&all) {
        partials.first().into_iter().for_each(|first| *value = *first);
    }
    Ok(values)
}

/// Adds a lane to its partial values, of which there are [`PARTIALS`], or no fewer than elements.
#[inline(always)]
pub(super) fn fold_lane<F: Fold<T>, T: Number, const N: usize>(
    fold: &F,
    partials: &mut [F::Partial; N],
    lane: &[T],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    for at in between_looks(lane.len(), stop) {
        add_lane(fold, partials, lane.get(at?).unwrap_or(&[]));
    }
    Ok(())
}

#[inline(always)]
fn add_body<F: Fold<T>, T: Number>(fold: &F, partials: &mut [[F::Partial; PARTIALS]], len: usize, elements: &[T]) {
    for (k, partials) in partials.iter_mut().enumerate() {
        add_lane(fold, partials, elements.get(k * len..(k + 1) * len).unwrap_or(&[]));
    }
}

/// Adds elements of a lane to its partial values; a multiple of [`PARTIALS`] came before.
#[inline(always)]
pub(super) fn add_lane<F: Fold<T>, T: Number, const N: usize>(
    fold: &F,
    partials: &mut [F::Partial; N],
    elements: &[T],
) {
    // A copy stays in registers.
    let mut values = *partials;
    let (mut blocks, rest) = elements.as_chunks::<N>();
    if F::HAS_ODD {
        let (mut ordinary, mut odd) = (values, [0u32; N]);
        for (odd, value) in odd.iter_mut().zip(&values) {
            *odd = fold.has_odd(*value).into();
        }
        for block in blocks {
            for (value, element) in ordinary.iter_mut().zip(block) {
                *value = fold.add_ordinary(*value, fold.counts(*element));
            }
            for (odd, element) in odd.iter_mut().zip(block) {
                *odd |= u32::from(fold.is_odd(*element));
            }
        }
        let mut some = 0;
        for odd in &odd {
            some |= odd;
        }
        if some == 0 {
            (values, blocks) = (ordinary, &[]);
        }
    }
    fold.add_blocks(&mut values, blocks.iter());
    *partials = values;
    let (partials, last) = partials.split_at_mut(rest.len() / PART * PART);
    let (parts, rest) = rest.as_chunks::<PART>();
    for (partials, part) in partials.as_chunks_mut::<PART>().0.iter_mut().zip(parts) {
        fold.add_blocks(partials, iter::once(part));
    }
    for (value, &element) in last.iter_mut().zip(rest) {
        *value = fold.add(*value, fold.counts(element));
    }
}

#[inline(always)]
fn add_block<F: Fold<T> + ?Sized, T: Number, const N: usize>(fold: &F, values: &mut [F::Partial; N], block: &[T; N]) {
    // Two loops: one would be as narrow as its widest type.
    let mut counts = *block;
    for count in &mut counts {
        *count = fold.counts(*count);
    }
    // By reference: of an array that is moved, compilers make vectors that begin anywhere.
    for (value, &count) in values.iter_mut().zip(&counts) {
        *value = fold.add(*value, count);
    }
}

for_each_level! {
    /// As [`join_each`].
    pub(super) fn join_lanes<P: Partial>(lanes: &mut [[P; PARTIALS]]) -> () = join_each::<P, PARTIALS>;
}

/// Joins the partial values of each lane as a tree: the first is that of all. A step for all lanes comes before the next: so
/// none waits for what was just written, and steps are as wide as the processor.
#[inline(always)]
pub(super) fn join_each<P: Partial, const N: usize>(lanes: &mut [[P; N]]) {
    if N > 16 {
        join_half::<P, N, 16>(lanes);
    }
    if N > 8 {
        join_half::<P, N, 8>(lanes);
    }
    join_half::<P, N, 4>(lanes);
    join_half::<P, N, 2>(lanes);
    join_half::<P, N, 1>(lanes);
}

#[inline(always)]
fn join_half<P: Partial, const N: usize, const HALF: usize>(lanes: &mut [[P; N]]) {
    for partials in lanes {
        // Otherwise vectors would be made of the same partial value of several lanes, element by element.
        let (low, high) = std::hint::black_box(partials).split_at_mut(HALF);
        for (low, high) in low.iter_mut().zip(high) {
            *low = low.join(*high);
        }
    }
}

/// Lanes whose partial values stay in registers while rows are added to them.
const HELD: usize = 32;

#[inline(always)]
fn add_rows_body<F: Fold<T>, T: Number>(fold: &F, partials: &mut [F::Partial], first: usize, rows: Rows<'_, T>) {
    let Rows { elements, step, count, width } = rows;
    let together = ROUNDS * PARTIALS;
    for start in (0..count).step_by(together) {
        let end = count.min(start + together);
        // The rows of a partial value one after another.
        for from in start..end.min(start + PARTIALS) {
            let at = (first + from) % PARTIALS * width;
            let Some(values) = partials.get_mut(at..at + width) else { return };
            let rows = (from..end).step_by(PARTIALS).map(|k| k * step);
            let mut at = 0;
            while let Some(values) = values.get_mut(at..).filter(|values| !values.is_empty()) {
                let starts = rows.clone().map(|row| row + at);
                if let Some(held) = values.first_chunk_mut::<HELD>() {
                    add_held(fold, held, elements, starts);
                    at += HELD;
                } else if let Some(held) = values.first_chunk_mut::<{ HELD / 2 }>() {
                    add_held(fold, held, elements, starts);
                    at += HELD / 2;
                } else if let Some(held) = values.first_chunk_mut::<PART>() {
                    add_held(fold, held, elements, starts);
                    at += PART;
                } else {
                    for start in starts {
                        let Some(row) = elements.get(start..start + values.len()) else { return };
                        for (value, &element) in values.iter_mut().zip(row) {
                            *value = fold.add(*value, fold.counts(element));
                        }
                    }
                    at = width;
                }
            }
        }
    }
}

for_each_level! {
    fn values_of_rows<F: Fold<T>, T: Number>(fold: &F, values: &mut [F::Partial], rows: Rows<'_, T>) -> ()
        = values_of_rows_body::<F, T>;
}

#[inline(always)]
fn values_of_rows_body<F: Fold<T>, T: Number>(fold: &F, values: &mut [F::Partial], rows: Rows<'_, T>) {
    let elements = rows.elements;
    for (at, values) in values.as_chunks_mut::<NARROW>().0.iter_mut().enumerate() {
        let elements = elements.get(at * NARROW..).unwrap_or(&[]);
        if rows.count <= PARTIALS / 4 {
            *values = value_of_few(fold, Rows { elements, ..rows });
            continue;
        }
        // In this order, a value is joined with the one before as soon as it is there.
        let mut waiting = [[F::Partial::START; NARROW]; (PARTIALS / 4).ilog2() as usize];
        for number in 0..PARTIALS / 4 {
            let first = number.reverse_bits() >> (usize::BITS - (PARTIALS / 4).ilog2());
            let mut value = pair_of_rows(fold, Rows { elements, ..rows }, first);
            // Of few rows most partial values have none, and joining those changes nothing.
            if first + PARTIALS / 4 < rows.count {
                value = joined(value, pair_of_rows(fold, Rows { elements, ..rows }, first + PARTIALS / 4));
            }
            let mut waiting = waiting.iter_mut();
            for (level, before) in waiting.by_ref().take(number.trailing_ones() as usize).enumerate() {
                let least = first % ((PARTIALS / 4) >> level);
                value = if least < rows.count { joined(*before, value) } else { *before };
            }
            match waiting.next() {
                Some(room) => *room = value,
                None => *values = value,
            }
        }
    }
}

/// The values of so few rows that each is a partial value. Joining those that have no row changes nothing.
#[inline(always)]
fn value_of_few<F: Fold<T>, T: Number>(fold: &F, rows: Rows<'_, T>) -> [F::Partial; NARROW] {
    let mut value = two_of_few(fold, rows, 0);
    if rows.count > 2 {
        value = joined(value, two_of_few(fold, rows, 2));
    }
    if rows.count > 1 {
        let mut odd = two_of_few(fold, rows, 1);
        if rows.count > 3 {
            odd = joined(odd, two_of_few(fold, rows, 3));
        }
        value = joined(value, odd);
    }
    value
}

/// Those of a row, and of the one that is joined with it first.
#[inline(always)]
fn two_of_few<F: Fold<T>, T: Number>(fold: &F, rows: Rows<'_, T>, first: usize) -> [F::Partial; NARROW] {
    let (mut low, mut high) = ([F::Partial::START; NARROW], [F::Partial::START; NARROW]);
    add_held(fold, &mut low, rows.elements, iter::once(first * rows.step));
    if first + PARTIALS / 8 < rows.count {
        add_held(fold, &mut high, rows.elements, iter::once((first + PARTIALS / 8) * rows.step));
        low = joined(low, high);
    }
    low
}

/// The partial value with a number, joined with the one half as many further on.
#[inline(always)]
fn pair_of_rows<F: Fold<T>, T: Number>(fold: &F, rows: Rows<'_, T>, first: usize) -> [F::Partial; NARROW] {
    let Rows { elements, step, count, .. } = rows;
    let ([mut low, mut high], half) = ([[F::Partial::START; NARROW]; 2], first + PARTIALS / 2);
    add_held(fold, &mut low, elements, (first..count).step_by(PARTIALS).map(|row| row * step));
    if half >= count {
        return low;
    }
    add_held(fold, &mut high, elements, (half..count).step_by(PARTIALS).map(|row| row * step));
    joined(low, high)
}

#[inline(always)]
fn joined<P: Partial>(mut low: [P; NARROW], high: [P; NARROW]) -> [P; NARROW] {
    for (low, &high) in low.iter_mut().zip(&high) {
        *low = low.join(high);
    }
    low
}

/// Adds elements that begin at these places.
#[inline(always)]
fn add_held<F: Fold<T>, T: Number, const N: usize>(
    fold: &F,
    values: &mut [F::Partial; N],
    elements: &[T],
    starts: impl Iterator<Item = usize>,
) {
    fold.add_blocks(values, starts.map_while(|start| elements.get(start..)?.first_chunk()));
}

/// The values of lanes that are side by side, at most [`ABREAST`], whose next elements are `step` further on.
#[inline(always)]
pub(super) fn fold_rows<F: Fold<T>, T: Number>(
    fold: &F,
    rows: Rows<'_, T>,
    stop: Option<&Stop>,
) -> Result<[F::Partial; ABREAST], Stopped> {
    let mut partials = [F::Partial::START; PARTIALS * ABREAST];
    let partials = partials.get_mut(..PARTIALS * rows.width).ok_or(Stopped::Misfit)?;
    for at in looking_every(BETWEEN_LOOKS / ABREAST, rows.count, stop) {
        let at = at?;
        let elements = rows.elements.get(at.start * rows.step..).unwrap_or(&[]);
        add_rows_body(fold, partials, at.start, Rows { elements, count: at.len(), ..rows });
    }
    join_rows_body(partials, rows.count);
    let mut values = [F::Partial::START; ABREAST];
    for (value, partial) in values.iter_mut().zip(partials.iter().take(rows.width)) {
        *value = *partial;
    }
    Ok(values)
}

for_each_level! {
    /// Joins the partial values of lanes that are side by side as trees, after so many rows: the first row is that of all.
    pub(super) fn join_rows<P: Partial>(partials: &mut [P], rows: usize) -> () = join_rows_body::<P>;
}

#[inline(always)]
fn join_rows_body<P: Partial>(partials: &mut [P], rows: usize) {
    // Joining those that have no row changes nothing.
    let (mut half, mut left) = (partials.len() / 2, partials.len() / PARTIALS * rows.min(PARTIALS));
    for _ in 0..PARTIALS.ilog2() {
        let (low, high) = partials.split_at_mut(half);
        let high = high.get(..left.saturating_sub(half)).unwrap_or(&[]);
        for (low, high) in low.iter_mut().zip(high) {
            *low = low.join(*high);
        }
        (half, left) = (half / 2, left.min(half));
    }
}
