//! Scatter kernels: combine elements with others at indices, in the order of the indices. Two of them may name the same
//! place, so this is not shared among threads.

use super::gather::{Bounds, Grid, Index, Indices};
use super::number::{Float, Int};
use super::{Resources, Stopped, volume};
use crate::format::Format;
use crate::half::Half;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use std::ops::{Add, Mul, Sub};

/// What happens to an element that is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The update replaces it.
    None,
    Add,
    Mul,
    Max,
    Min,
}

/// Combines contiguous elements with as many updates.
pub type Combine = fn(&mut [u8], &[u8]);

/// How a reduction combines elements of a type; `None` if it isn't defined for them. For bool, the sum is `or` and the
/// product `and`. NaN wins over all numbers.
pub fn combine(reduction: Reduction, format: Format) -> Option<Combine> {
    match format {
        _ if reduction == Reduction::None => Some(|elements, updates| elements.copy_from_slice(updates)),
        Format::Single => Some(float::<f32>(reduction)),
        Format::Double => Some(float::<f64>(reduction)),
        Format::Half(Half::F16) => Some(half::<f16>(reduction)),
        Format::Half(Half::Bf16) => Some(half::<bf16>(reduction)),
        Format::Signed(8) => Some(int::<i8>(reduction)),
        Format::Signed(16) => Some(int::<i16>(reduction)),
        Format::Signed(32) => Some(int::<i32>(reduction)),
        Format::Signed(64) => Some(int::<i64>(reduction)),
        Format::Unsigned(8) => Some(int::<u8>(reduction)),
        Format::Unsigned(16) => Some(int::<u16>(reduction)),
        Format::Unsigned(32) => Some(int::<u32>(reduction)),
        Format::Unsigned(64) => Some(int::<u64>(reduction)),
        Format::Bool if matches!(reduction, Reduction::Add | Reduction::Max) => Some(int::<u8>(Reduction::Max)),
        Format::Bool => Some(int::<u8>(Reduction::Min)),
        Format::Complex64 => complex::<f32>(reduction),
        Format::Complex128 => complex::<f64>(reduction),
        _ => None,
    }
}

fn each<T: Pod>(elements: &mut [u8], updates: &[u8], by: impl Fn(T, T) -> T) {
    let (elements, updates) = (cast_slice_mut(elements), cast_slice(updates));
    // One alone takes less time than getting ready for many.
    if let ([element], [update]) = (&mut *elements, updates) {
        *element = by(*element, *update);
        return;
    }
    for (element, update) in elements.iter_mut().zip(updates) {
        *element = by(*element, *update);
    }
}

fn int<T: Int>(reduction: Reduction) -> Combine {
    match reduction {
        Reduction::None => |elements, updates| each(elements, updates, |_: T, update| update),
        Reduction::Add => |elements, updates| each(elements, updates, T::plus),
        Reduction::Mul => |elements, updates| each(elements, updates, T::times),
        Reduction::Max => |elements, updates| each(elements, updates, <T as Ord>::max),
        Reduction::Min => |elements, updates| each(elements, updates, <T as Ord>::min),
    }
}

fn float<T: Float>(reduction: Reduction) -> Combine {
    match reduction {
        Reduction::None => |elements, updates| each(elements, updates, |_: T, update| update),
        Reduction::Add => |elements, updates| each(elements, updates, |element: T, update| element + update),
        Reduction::Mul => |elements, updates| each(elements, updates, |element: T, update| element * update),
        Reduction::Max => |elements, updates| each(elements, updates, greater::<T>),
        Reduction::Min => |elements, updates| each(elements, updates, |element: T, update| -greater(-element, -update)),
    }
}

fn greater<T: Float>(element: T, update: T) -> T {
    if update > element || update.is_nan() { update } else { element }
}

/// A float of 16 bits: computed in `f32`, and rounded after each update.
trait Narrow: Pod + Into<f32> {
    fn of(number: f32) -> Self;
}

impl Narrow for f16 {
    fn of(number: f32) -> Self {
        f16::from_f32(number)
    }
}

impl Narrow for bf16 {
    fn of(number: f32) -> Self {
        bf16::from_f32(number)
    }
}

fn half<T: Narrow>(reduction: Reduction) -> Combine {
    fn by<T: Narrow>(elements: &mut [u8], updates: &[u8], by: impl Fn(f32, f32) -> f32) {
        each(elements, updates, |element: T, update| T::of(by(element.into(), update.into())));
    }
    match reduction {
        Reduction::None => |elements, updates| each(elements, updates, |_: T, update| update),
        Reduction::Add => |elements, updates| by::<T>(elements, updates, |element, update| element + update),
        Reduction::Mul => |elements, updates| by::<T>(elements, updates, |element, update| element * update),
        Reduction::Max => |elements, updates| by::<T>(elements, updates, greater),
        Reduction::Min => |elements, updates| by::<T>(elements, updates, |element, update| -greater(-element, -update)),
    }
}

/// Complex numbers have no order.
fn complex<T: Float + Pod + Add<Output = T> + Sub<Output = T> + Mul<Output = T>>(
    reduction: Reduction,
) -> Option<Combine> {
    match reduction {
        Reduction::Add => Some(|elements, updates| each(elements, updates, |[a, b]: [T; 2], [c, d]| [a + c, b + d])),
        Reduction::Mul => {
            Some(|elements, updates| each(elements, updates, |[a, b]: [T; 2], [c, d]| [a * c - b * d, a * d + b * c]))
        }
        Reduction::None | Reduction::Max | Reduction::Min => None,
    }
}

/// `out[places[k]] = elements[k]`, elements of `size` bytes
pub fn put(
    out: &mut [u8],
    size: usize,
    places: &[i64],
    elements: &[u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    match size {
        1 => put_of::<1>(out, places, elements, resources),
        2 => put_of::<2>(out, places, elements, resources),
        4 => put_of::<4>(out, places, elements, resources),
        8 => put_of::<8>(out, places, elements, resources),
        _ => put_of::<16>(out, places, elements, resources),
    }
}

/// Elements between two looks.
const SOME: usize = 1 << 10;

fn put_of<const N: usize>(
    out: &mut [u8],
    places: &[i64],
    elements: &[u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (out, elements, mut lookout) = (out.as_chunks_mut::<N>().0, elements.as_chunks::<N>().0, resources.lookout());
    for (places, elements) in places.chunks(SOME).zip(elements.chunks(SOME)) {
        lookout.after(size_of_val(places) + size_of_val(elements))?;
        for (place, element) in places.iter().zip(elements) {
            let to = usize::try_from(*place).ok().and_then(|place| out.get_mut(place));
            *to.ok_or(Stopped::OutOfRange)? = *element;
        }
    }
    Ok(())
}

/// Bytes of a long row that are updated at a time: a multiple of the size of each type.
const PIECE: usize = 64 << 10;

/// `out[rows[k]] = combine(out[rows[k]], updates[k])`, rows of `row` bytes
pub fn scatter_rows(
    out: &mut [u8],
    row: usize,
    rows: &[i64],
    updates: &[u8],
    combine: Combine,
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    let mut lookout = resources.lookout();
    for (&at, update) in rows.iter().zip(updates.chunks_exact(row)) {
        let start = usize::try_from(at).ok().and_then(|at| at.checked_mul(row));
        let range = start.and_then(|start| Some(start..start.checked_add(row)?));
        let out = range.and_then(|range| out.get_mut(range)).ok_or(Stopped::OutOfRange)?;
        for (out, update) in out.chunks_mut(PIECE).zip(update.chunks(PIECE)) {
            lookout.after(size_of_val(&at) + out.len())?;
            combine(out, update);
        }
    }
    Ok(())
}

/// `out[i, indices[i, j, k], k] = combine(.., updates[i, j, k])`, elements of `element` bytes; `grid.data` is the shape of
/// `out`
pub fn scatter_elements(
    out: &mut [u8],
    element: usize,
    grid: &Grid<'_>,
    indices: Indices<'_>,
    updates: &[u8],
    combine: Combine,
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    match indices {
        Indices::I32(indices) => elements(out, element, grid, indices, updates, combine, resources),
        Indices::I64(indices) => elements(out, element, grid, indices, updates, combine, resources),
    }
}

fn elements<I: Index>(
    out: &mut [u8],
    element: usize,
    grid: &Grid<'_>,
    indices: &[I],
    updates: &[u8],
    combine: Combine,
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let Some((columns, outer)) = grid.indices.split_last().filter(|_| !indices.is_empty()) else { return Ok(()) };
    let stride = |d: usize| volume(1, grid.data.iter().skip(d + 1));
    let bounds = Bounds { size: grid.data.get(grid.axis).copied().unwrap_or(0), negative: true };
    let along = stride(grid.axis);
    // Off the axis, the place in `out` is that in `indices`: the step of each dimension, the last one apart.
    let steps: Vec<usize> = (0..outer.len()).map(|d| if d == grid.axis { 0 } else { stride(d) }).collect();
    let step = usize::from(grid.axis != outer.len());
    let mut position = vec![0; outer.len()];
    let mut lookout = resources.lookout();
    for (indices, updates) in indices.chunks_exact(*columns).zip(updates.chunks_exact(columns * element)) {
        let mut first: usize = position.iter().zip(&steps).map(|(p, step)| p * step).sum();
        for (indices, updates) in indices.chunks(SOME).zip(updates.chunks(SOME * element)) {
            lookout.after(size_of_val(indices) + updates.len())?;
            for (index, update) in indices.iter().zip(updates.chunks_exact(element)) {
                let entry = bounds.entry(*index).ok_or(Stopped::OutOfRange)?;
                let at = (first + entry * along) * element;
                combine(out.get_mut(at..at + element).ok_or(Stopped::OutOfRange)?, update);
                first += step;
            }
        }
        for (p, dim) in position.iter_mut().zip(outer).rev() {
            *p += 1;
            if *p < *dim {
                break;
            }
            *p = 0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::looks;
    use proptest::prelude::*;

    const RESOURCES: Resources<'_> = Resources { threads: 1, stop: None };

    /// Of those with the same place the last stays, in elements of any size.
    #[test]
    fn elements_are_put() {
        for size in [1, 2, 4, 8, 16] {
            let elements: Vec<u8> = (1..=3 * size as u8).collect();
            let mut out = vec![0; 4 * size];
            assert_eq!(put(&mut out, size, &[3, 1, 3], &elements, RESOURCES), Ok(()));
            let (none, [_, second, third]) = (vec![0; size], [0, 1, 2].map(|k| elements[k * size..][..size].to_vec()));
            assert_eq!(out, [&none[..], &second, &none, &third].concat());
            for place in [4, -1, i64::MIN, i64::MAX, 1 << 32] {
                assert_eq!(put(&mut out, size, &[0, place], &elements, RESOURCES), Err(Stopped::OutOfRange));
            }
            assert_eq!(put(&mut [], size, &[0], &elements, RESOURCES), Err(Stopped::OutOfRange));
        }
        let stop = Stop::default();
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let (places, mut out) = (vec![0; 40_000], [0; 16]);
        let elements = vec![0; 16 * places.len()];
        let (outcome, looks) = looks::count(5, || put(&mut out, 16, &places, &elements, resources));
        assert_eq!((outcome, looks.len()), (Err(Stopped::Cancelled), 5));
    }

    fn product(dims: &[usize]) -> usize {
        dims.iter().product()
    }

    /// The definition, position by position.
    fn one_by_one(out: &mut [i32], grid: &Grid<'_>, indices: &[i32], updates: &[i32]) {
        for (k, (&index, update)) in indices.iter().zip(updates).enumerate() {
            let mut position: Vec<usize> = Vec::new();
            let mut rest = k;
            for dim in grid.indices.iter().rev() {
                position.insert(0, rest % dim);
                rest /= dim;
            }
            let size = grid.data[grid.axis] as i32;
            position[grid.axis] = (if index < 0 { index + size } else { index }) as usize;
            let at = position.iter().zip(grid.data).fold(0, |at, (p, dim)| at * dim + p);
            out[at] = out[at].wrapping_mul(3).wrapping_add(*update);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::testing::sized(300, 4)))]

        #[test]
        fn elements_go_where_the_definition_says(
            dims in prop::collection::vec((1usize..5, 0usize..5), 1..4),
            axis in 0usize..3,
            seed in any::<u32>(),
        ) {
            let axis = axis % dims.len();
            let data: Vec<usize> = dims.iter().map(|(data, _)| *data).collect();
            let shape: Vec<usize> =
                dims.iter().enumerate().map(|(d, (data, own))| if d == axis { *own } else { *own.min(data) }).collect();
            let grid = Grid { data: &data, indices: &shape, axis };
            let size = data[axis] as i32;
            let random = |k: usize| (seed.wrapping_add(k as u32).wrapping_mul(2_654_435_761) >> 7) as i32;
            let indices: Vec<i32> = (0..product(&shape)).map(|k| random(k) % (2 * size) - size).collect();
            let updates: Vec<i32> = (0..product(&shape)).map(|k| random(k + 77)).collect();
            let mut want: Vec<i32> = (0..product(&data) as i32).collect();
            let mut got = want.clone();
            one_by_one(&mut want, &grid, &indices, &updates);
            let combine: Combine =
                |out, update| each(out, update, |a: i32, b: i32| a.wrapping_mul(3).wrapping_add(b));
            let (out, updates) = (cast_slice_mut(&mut got), cast_slice(&updates));
            prop_assert_eq!(scatter_elements(out, 4, &grid, Indices::I32(&indices), updates, combine, RESOURCES), Ok(()));
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn a_bad_index_or_a_request_stops() {
        let replace = combine(Reduction::None, Format::Unsigned(8)).unwrap();
        let grid = Grid { data: &[2], indices: &[1], axis: 0 };
        for bad in [2, -3, i64::MIN, i64::MAX] {
            let stopped = scatter_elements(&mut [0; 2], 1, &grid, Indices::I64(&[bad]), &[1], replace, RESOURCES);
            assert_eq!(stopped, Err(Stopped::OutOfRange));
            assert_eq!(scatter_rows(&mut [0; 2], 2, &[bad], &[1; 2], replace, RESOURCES), Err(Stopped::OutOfRange));
        }
        let stop = Stop::default();
        stop.stop();
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let (many, updates) = (vec![0; 1 << 16], vec![1; 1 << 16]);
        let grid = Grid { data: &[2], indices: &[1 << 16], axis: 0 };
        let stopped = scatter_elements(&mut [0; 2], 1, &grid, Indices::I64(&many), &updates, replace, resources);
        assert_eq!(stopped, Err(Stopped::Cancelled));
        assert_eq!(scatter_rows(&mut [0; 2], 1, &many, &updates, replace, resources), Err(Stopped::Cancelled));
        let (mut long, update) = (vec![0; 1 << 20], vec![1; 1 << 20]);
        assert_eq!(scatter_rows(&mut long, 1 << 20, &[0], &update, replace, resources), Err(Stopped::Cancelled));
    }
}
