//! Reductions: a lane becomes a value while it is read.
//!
//! The element i of a lane goes to the partial value i mod 32, and these are joined as a tree at the end. So the order
//! depends on the length of the lane alone, and the loops are as wide as the processor.

use super::walk::Runs;
use super::{Lanes, Number, Offsets, Stored};
use crate::kernels::cpu::for_each_level;
use crate::kernels::{Resources, Stopped, parallel};

/// How a lane of `T` becomes a value.
pub(crate) trait Reduction<T: Number> {
    /// The value to start from: joined with another, it gives the other.
    const START: T;
    /// The value of a lane without elements, before [`Reduction::end`].
    const EMPTY: T = Self::START;

    /// What an element counts.
    #[inline(always)]
    fn counts(element: T) -> T {
        element
    }
    /// Joins the values of two parts of a lane.
    fn join(a: T, b: T) -> T;
    /// Makes the result of the value of a lane of `len` elements.
    #[inline(always)]
    fn end(value: T, len: usize) -> T {
        let _ = len;
        value
    }
}

/// A reduction of each number type.
pub(crate) trait ReductionOfAll:
    Reduction<f32>
    + Reduction<f64>
    + Reduction<i8>
    + Reduction<i16>
    + Reduction<i32>
    + Reduction<i64>
    + Reduction<u8>
    + Reduction<u16>
    + Reduction<u32>
    + Reduction<u64>
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
}

/// Number of partial values.
pub(super) const PARTIALS: usize = 32;

/// Number of elements that are converted or collected at a time.
pub(super) const BLOCK: usize = 16 * PARTIALS;

/// Number of lanes that are reduced side by side.
const ABREAST: usize = 64;

/// Writes the value of each lane to `out`.
pub(crate) fn reduce<R: Reduction<T>, S: Stored<T>, T: Number>(
    data: &[S],
    lanes: &Lanes,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let out = bytemuck::cast_slice_mut::<S, u8>(out);
    parallel::split_by(out, size_of::<S>(), lanes.len, resources, |first, out| {
        let out = bytemuck::cast_slice_mut::<u8, S>(out);
        if lanes.len == 0 {
            out.chunks_mut(1).for_each(|out| S::store(&[R::end(R::EMPTY, 0)], out));
        } else if !lanes.contiguous() && lanes.abreast() > 1 {
            columns::<R, S, T>(data, lanes, first, out);
        } else {
            rows::<R, S, T>(data, lanes, first, out);
        }
        Ok(())
    })
}

for_each_level! {
    fn rows<R: Reduction<T>, S: Stored<T>, T: Number>(data: &[S], lanes: &Lanes, first: usize, out: &mut [S]) -> ()
        = rows_body::<R, S, T>;
}

for_each_level! {
    fn columns<R: Reduction<T>, S: Stored<T>, T: Number>(data: &[S], lanes: &Lanes, first: usize, out: &mut [S]) -> ()
        = columns_body::<R, S, T>;
}

/// Lanes one by one.
#[inline(always)]
fn rows_body<R: Reduction<T>, S: Stored<T>, T: Number>(data: &[S], lanes: &Lanes, first: usize, out: &mut [S]) {
    let mut starts = Offsets::new(&lanes.kept, first);
    for out in out.chunks_exact_mut(1) {
        let lane = data.get(starts.next()..).unwrap_or(&[]);
        let mut partials = Partials::<R, T>::new();
        let mut runs = Runs::new(lanes);
        for _ in 0..lanes.len / runs.len {
            partials.add_all(lane.get(runs.next()).unwrap_or(&[]));
        }
        S::store(&[partials.end(lanes.len)], out);
    }
}

/// The partial values of a lane, and elements that wait until they are a block.
struct Partials<R, T> {
    partials: [T; PARTIALS],
    waiting: [T; BLOCK],
    count: usize,
    reduction: std::marker::PhantomData<R>,
}

impl<R: Reduction<T>, T: Number> Partials<R, T> {
    #[inline(always)]
    fn new() -> Self {
        Partials { partials: [R::START; PARTIALS], waiting: [T::ZERO; BLOCK], count: 0, reduction: Default::default() }
    }

    /// Adds the next elements of the lane.
    #[inline(always)]
    fn add_all<S: Stored<T>>(&mut self, mut elements: &[S]) {
        if self.count == 0
            && let Some(numbers) = S::direct(elements)
        {
            let whole = numbers.len() - numbers.len() % PARTIALS;
            let (now, _) = numbers.split_at(whole);
            add::<R, T>(&mut self.partials, now);
            elements = elements.get(whole..).unwrap_or(&[]);
        }
        while !elements.is_empty() {
            let (now, rest) = elements.split_at(elements.len().min(BLOCK - self.count));
            S::load(now, self.waiting.get_mut(self.count..).unwrap_or(&mut []));
            self.count += now.len();
            if self.count == BLOCK {
                add::<R, T>(&mut self.partials, &self.waiting);
                self.count = 0;
            }
            elements = rest;
        }
    }

    #[inline(always)]
    fn end(mut self, len: usize) -> T {
        add::<R, T>(&mut self.partials, self.waiting.get(..self.count).unwrap_or(&[]));
        R::end(join(self.partials, R::join), len)
    }
}

/// The value of a lane that is a slice.
#[inline(always)]
pub(super) fn value<R: Reduction<T>, T: Number>(lane: &[T]) -> T {
    if lane.is_empty() {
        return R::end(R::EMPTY, 0);
    }
    let mut partials = [R::START; PARTIALS];
    add::<R, T>(&mut partials, lane);
    R::end(join(partials, R::join), lane.len())
}

/// The sum of what `counts` gives of each element of a lane.
#[inline(always)]
pub(super) fn sum<S: Stored<T>, T: Number>(lane: &[S], counts: impl Fn(T) -> T) -> T {
    let mut partials = [T::NOTHING; PARTIALS];
    let add = |value: T, element| value.plus(counts(element));
    match S::direct(lane) {
        Some(lane) => accumulate(&mut partials, lane, add),
        None => {
            let mut block = [T::ZERO; BLOCK];
            for lane in lane.chunks(BLOCK) {
                S::load(lane, &mut block);
                accumulate(&mut partials, block.get(..lane.len()).unwrap_or(&[]), add);
            }
        }
    }
    join(partials, T::plus)
}

#[inline(always)]
fn add<R: Reduction<T>, T: Number>(partials: &mut [T; PARTIALS], elements: &[T]) {
    accumulate(partials, elements, |value, element| R::join(value, R::counts(element)));
}

/// Adds elements, the first to the first partial value.
#[inline(always)]
fn accumulate<T: Copy>(partials: &mut [T; PARTIALS], elements: &[T], add: impl Fn(T, T) -> T) {
    let (blocks, rest) = elements.as_chunks::<PARTIALS>();
    // A copy stays in registers.
    let mut values = *partials;
    for block in blocks {
        for (value, &element) in values.iter_mut().zip(block) {
            *value = add(*value, element);
        }
    }
    for (value, &element) in values.iter_mut().zip(rest) {
        *value = add(*value, element);
    }
    *partials = values;
}

/// Joins partial values as a tree.
#[inline(always)]
pub(super) fn join<T: Copy>(mut partials: [T; PARTIALS], join: impl Fn(T, T) -> T) -> T {
    let mut width = PARTIALS / 2;
    while width > 0 {
        let (low, high) = partials.split_at_mut(width);
        for (low, high) in low.iter_mut().zip(high) {
            *low = join(*low, *high);
        }
        width /= 2;
    }
    let [first, ..] = partials;
    first
}

/// Lanes side by side: their elements at the same position are neighbours.
#[inline(always)]
fn columns_body<R: Reduction<T>, S: Stored<T>, T: Number>(data: &[S], lanes: &Lanes, first: usize, mut out: &mut [S]) {
    let abreast = lanes.abreast();
    let mut groups = Offsets::new(lanes.kept.get(1..).unwrap_or(&[]), first / abreast);
    let mut before = first % abreast;
    while !out.is_empty() {
        let group = data.get(groups.next()..).unwrap_or(&[]);
        let (now, rest) = out.split_at_mut(out.len().min(abreast - before));
        for (k, out) in now.chunks_mut(ABREAST).enumerate() {
            let lane = group.get(before + k * ABREAST..).unwrap_or(&[]);
            columns_abreast::<R, S, T>(lane, lanes, out);
        }
        (out, before) = (rest, 0);
    }
}

/// At most [`ABREAST`] lanes.
#[inline(always)]
fn columns_abreast<R: Reduction<T>, S: Stored<T>, T: Number>(data: &[S], lanes: &Lanes, out: &mut [S]) {
    let mut partials = [[R::START; ABREAST]; PARTIALS];
    let mut rows = Offsets::new(&lanes.along, 0);
    for k in 0..lanes.len {
        let at = rows.next();
        let Some(values) = partials.get_mut(k % PARTIALS) else { return };
        let row = data.get(at..at + out.len()).unwrap_or(&[]);
        if let (Some(row), ABREAST) = (row.first_chunk::<ABREAST>(), out.len()) {
            add_row::<R, S, T>(values, row);
        } else {
            add_row::<R, S, T>(values, row);
        }
    }
    let mut values = join(partials, |a, b| {
        let mut joined = a;
        joined.iter_mut().zip(b).for_each(|(a, b)| *a = R::join(*a, b));
        joined
    });
    values.iter_mut().for_each(|value| *value = R::end(*value, lanes.len));
    S::store(&values, out);
}

#[inline(always)]
fn add_row<R: Reduction<T>, S: Stored<T>, T: Number>(values: &mut [T; ABREAST], row: &[S]) {
    let mut converted = [T::ZERO; ABREAST];
    let row = match S::direct(row) {
        Some(row) => row,
        None => {
            S::load(row, &mut converted);
            converted.get(..row.len()).unwrap_or(&[])
        }
    };
    for (value, &element) in values.iter_mut().zip(row) {
        *value = R::join(*value, R::counts(element));
    }
}
