//! Transposes: the elements in another order of the axes.

use super::copy::{Axis, Dim, Map, Path, Plan, Source, Walk};
#[cfg(target_arch = "x86_64")]
use super::cpu::level;
use super::cpu::{for_each_level, prefetch};
use super::{Lookout, Resources, Stopped, parallel, volume};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use std::ops::Range;

/// `out[k[perm[0]], k[perm[1]], ..] = data[k[0], k[1], ..]`, elements of `element` bytes. Fills all of `out`.
pub fn permute(
    data: &[u8],
    element: usize,
    shape: &[usize],
    perm: &[usize],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    let axis = |&at: &usize| Axis {
        size: shape.get(at).copied().unwrap_or(1),
        stride: volume(1, shape.iter().skip(at + 1)),
        map: Map::Line { start: 0, step: 1 },
    };
    let axes: SmallVec<[Axis; 6]> = perm.iter().map(axis).collect();
    let plan = Plan::new(element, &axes);
    match plan.unit {
        1 => transpose::<u8>(&plan, data, out, resources),
        2 => transpose::<u16>(&plan, data, out, resources),
        4 => transpose::<u32>(&plan, data, out, resources),
        8 => transpose::<u64>(&plan, data, out, resources),
        16 => transpose::<u128>(&plan, data, out, resources),
        _ => None,
    }
    .unwrap_or_else(|| plan.copy(Source { data, element, constant: &[] }, out, resources))
}

/// Transposes block by block, so that both sides are read and written along cache lines: `None` if the last axis stays.
fn transpose<T: Pod>(
    plan: &Plan,
    data: &[u8],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Option<Result<(), Stopped>> {
    let unit = size_of::<T>();
    let step = |dim: &Dim| match dim.path {
        Path::Line { step } => step as usize,
        Path::Padded { .. } => 0,
    };
    // The axis that is last in the source, and those inside it.
    let (at, dim) = plan.dims.iter().enumerate().find(|(_, dim)| step(dim) == unit)?;
    let (outer, inner) = (plan.dims.get(..at)?, plan.dims.get(at + 1..)?);
    let (last, middle) = inner.split_last()?;
    let (row, blocks) =
        (volume(unit, inner.iter().map(|dim| &dim.size)), volume(1, middle.iter().map(|dim| &dim.size)));
    Some(parallel::split(out, row, resources, |first, mut out| {
        let mut walk = Walk::new(outer, plan.base, first / dim.size);
        let mut from = first % dim.size;
        let mut lookout = resources.lookout();
        while !out.is_empty() {
            let rows = (dim.size - from).min(out.len() / row);
            let (to, rest) = out.split_at_mut(rows * row);
            let place = walk.place().unwrap_or(0) + (from * unit) as isize;
            let mut middle = Walk::new(middle, place, 0);
            for block in 0..blocks {
                let place = middle.place().unwrap_or(0) as usize;
                let (data, to) = (data.get(place..), to.get_mut(block * last.size * unit..));
                let (data, to) = data.zip(to).ok_or(Stopped::OutOfRange)?;
                matrix::<T>(data, step(last), to, row, rows, last.size, &mut lookout)?;
                middle.advance();
            }
            walk.advance();
            (out, from) = (rest, 0);
        }
        Ok(())
    }))
}

/// Bytes of a matrix that are written at a time; of a single row, which may be the whole output, fewer.
const STRIP: usize = 4 << 20;
const PIECE: usize = 64 << 10;

/// Bytes of each row that are written at a time, if all rows have more than a first cache holds, and more each: else lines
/// would leave it before they are full, and the rest of what was read.
const LINES: usize = 128;
const LARGE: (usize, usize) = (256 << 10, 512);

/// Rows from which on there are as many lines.
const MANY: usize = 16;

/// Bytes from which on, at multiples of them, a first cache can't tell lines apart: of columns that are so far from each other,
/// a few leave it as soon as all of them.
const ALIKE: usize = 4096;

/// `out[i, k] = data[k, i]`: `rows` rows of the output, `stride` bytes from each other, of `columns` elements, each of
/// which is in another row of the data, `step` bytes from each other.
pub(super) fn matrix<T: Pod>(
    data: &[u8],
    step: usize,
    out: &mut [u8],
    stride: usize,
    rows: usize,
    columns: usize,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let unit = size_of::<T>();
    let is_large =
        rows * columns * unit > LARGE.0 && columns * unit >= LARGE.1 && rows >= MANY && !step.is_multiple_of(ALIKE);
    let most = match rows {
        _ if is_large => LINES / unit,
        1 => (PIECE / unit).max(64),
        _ => (STRIP / (rows * unit)).max(64),
    };
    for first in (0..columns).step_by(most) {
        let columns = most.min(columns - first);
        lookout.after(rows * columns * unit)?;
        let (data, out) = (data.get(first * step..), out.get_mut(first * unit..));
        let (data, out) = data.zip(out).ok_or(Stopped::OutOfRange)?;
        if (columns - 1) * step + rows * unit > data.len() || (rows - 1) * stride + columns * unit > out.len() {
            return Err(Stopped::OutOfRange);
        }
        if few::<T>(data, step, out, stride, rows, columns) {
            continue;
        }
        #[cfg(target_arch = "x86_64")]
        if unit == 4 && level() >= 3 {
            // SAFETY: `level` checked that the processor has these features.
            #[allow(unsafe_code)]
            unsafe {
                eights(data, step, out, stride, rows, columns);
            }
            continue;
        }
        strip::<T>(data, step, out, stride, rows, columns);
    }
    Ok(())
}

/// As [`matrix`], of elements in the place of bytes.
pub(super) fn turn<T: Pod>(
    data: &[T],
    step: usize,
    out: &mut [T],
    stride: usize,
    rows: usize,
    columns: usize,
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let unit = size_of::<T>();
    matrix::<T>(cast_slice(data), step * unit, cast_slice_mut(out), stride * unit, rows, columns, lookout)
}

for_each_level! {
    /// Transposes a matrix of few columns that are one behind the other in the output, or of few rows that are so in the
    /// data: as many as the compiler knows. Returns false if it isn't one.
    fn few<T: Pod>(data: &[u8], step: usize, out: &mut [u8], stride: usize, rows: usize, columns: usize) -> bool = few_body::<T>;
}

#[inline(always)]
fn few_body<T: Pod>(data: &[u8], step: usize, out: &mut [u8], stride: usize, rows: usize, columns: usize) -> bool {
    let unit = size_of::<T>();
    match (rows, columns) {
        (_, 2) if stride == 2 * unit => each::<T>(data, step, out, 2 * unit, 0..rows, 0..2),
        (_, 3) if stride == 3 * unit => each::<T>(data, step, out, 3 * unit, 0..rows, 0..3),
        (_, 4) if stride == 4 * unit => each::<T>(data, step, out, 4 * unit, 0..rows, 0..4),
        (2, _) if step == 2 * unit => each::<T>(data, 2 * unit, out, stride, 0..2, 0..columns),
        (3, _) if step == 3 * unit => each::<T>(data, 3 * unit, out, stride, 0..3, 0..columns),
        (4, _) if step == 4 * unit => each::<T>(data, 4 * unit, out, stride, 0..4, 0..columns),
        _ => return false,
    }
    true
}

for_each_level! {
    fn strip<T: Pod>(data: &[u8], step: usize, out: &mut [u8], stride: usize, rows: usize, columns: usize) -> () = strip_body::<T>;
}

#[inline(always)]
fn strip_body<T: Pod>(data: &[u8], step: usize, out: &mut [u8], stride: usize, rows: usize, columns: usize) {
    match size_of::<T>() {
        1 => tiles::<u8, 16>(turned_bytes, data, step, out, stride, rows, columns),
        2 | 4 => tiles::<T, 8>(turned, data, step, out, stride, rows, columns),
        8 => tiles::<T, 4>(turned, data, step, out, stride, rows, columns),
        _ => tiles::<T, 2>(turned, data, step, out, stride, rows, columns),
    }
}

/// A square whose rows become columns.
#[inline(always)]
fn turned<T: Pod, const N: usize>(square: [[T; N]; N]) -> [[T; N]; N] {
    // `N` is the length of both.
    #[allow(clippy::indexing_slicing)]
    std::array::from_fn(|i| std::array::from_fn(|k| square[k][i]))
}

/// As [`turned`]: the compiler finds more steps than these.
#[inline(always)]
fn turned_bytes(square: [[u8; 16]; 16]) -> [[u8; 16]; 16] {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_unpackhi_epi8, _mm_unpacklo_epi8};
        let mut rows = square.map(bytemuck::cast::<[u8; 16], __m128i>);
        for _ in 0..4 {
            // Rows that are eight apart, byte by byte.
            let (low, high) = rows.split_at(8);
            let mut pairs = low.iter().zip(high);
            let mut next = rows;
            for to in next.as_chunks_mut::<2>().0 {
                let Some((a, b)) = pairs.next() else { break };
                // SAFETY: each x86-64 has SSE2.
                #[allow(unsafe_code, unused_unsafe)]
                unsafe {
                    *to = [_mm_unpacklo_epi8(*a, *b), _mm_unpackhi_epi8(*a, *b)];
                }
            }
            rows = next;
        }
        rows.map(bytemuck::cast::<__m128i, [u8; 16]>)
    }
    #[cfg(not(target_arch = "x86_64"))]
    turned(square)
}

/// Bytes from a word that is read to one that is prefetched.
const AHEAD: usize = 128;

/// Transposes squares of `N`, and what is left at the edges element by element.
#[inline(always)]
fn tiles<T: Pod, const N: usize>(
    turned: impl Fn([[T; N]; N]) -> [[T; N]; N],
    data: &[u8],
    step: usize,
    out: &mut [u8],
    stride: usize,
    rows: usize,
    columns: usize,
) {
    let unit = size_of::<T>();
    let (whole_rows, whole_columns) = (rows - rows % N, columns - columns % N);
    let (from, to) = (data.as_ptr(), out.as_mut_ptr());
    for row in (0..whole_rows).step_by(N) {
        for column in (0..whole_columns).step_by(N) {
            let mut tile = [[T::zeroed(); N]; N];
            for (k, line) in tile.iter_mut().enumerate() {
                // Each is on another cache line, often on another page: the processor doesn't see them coming.
                prefetch(data, (column + k) * step + row * unit + AHEAD);
                // SAFETY: as in `each`: rows `row` to `row + N - 1` of the column `column + k`.
                #[allow(unsafe_code)]
                unsafe {
                    *line = from.add((column + k) * step + row * unit).cast::<[T; N]>().read_unaligned();
                }
            }
            for (i, line) in turned(tile).into_iter().enumerate() {
                // SAFETY: as above.
                #[allow(unsafe_code)]
                unsafe {
                    to.add((row + i) * stride + column * unit).cast::<[T; N]>().write_unaligned(line);
                }
            }
        }
    }
    each::<T>(data, step, out, stride, 0..whole_rows, whole_columns..columns);
    each::<T>(data, step, out, stride, whole_rows..rows, 0..columns);
}

/// Transposes some rows and columns element by element.
#[inline(always)]
fn each<T: Pod>(data: &[u8], step: usize, out: &mut [u8], stride: usize, rows: Range<usize>, columns: Range<usize>) {
    let (unit, from, to) = (size_of::<T>(), data.as_ptr(), out.as_mut_ptr());
    for row in rows {
        for column in columns.clone() {
            // SAFETY: `matrix` checked that the last element of both is in bounds; this one is not after it. Words
            // are plain bits at any address.
            #[allow(unsafe_code)]
            unsafe {
                let word = from.add(column * step + row * unit).cast::<T>().read_unaligned();
                to.add(row * stride + column * unit).cast::<T>().write_unaligned(word);
            }
        }
    }
}

/// As [`tiles`], squares of eight words of 32 bits: the compiler finds more steps than these.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn eights(data: &[u8], step: usize, out: &mut [u8], stride: usize, rows: usize, columns: usize) {
    use std::arch::x86_64::*;
    const N: usize = 8;
    let (whole_rows, whole_columns) = (rows - rows % N, columns - columns % N);
    let (from, to) = (data.as_ptr(), out.as_mut_ptr());
    for row in (0..whole_rows).step_by(N) {
        for column in (0..whole_columns).step_by(N) {
            // Half of a vector has four words of a column, the other half those of the fourth one after it.
            let halves = |k: usize, after: usize| {
                let [low, high] = [column + k, column + k + 4].map(|column| column * step + (row + after) * 4);
                if after == 0 {
                    prefetch(data, low + AHEAD);
                    prefetch(data, high + AHEAD);
                }
                // SAFETY: as in `each`: rows `row` to `row + 7` of these columns.
                #[allow(unsafe_code)]
                unsafe {
                    _mm256_loadu2_m128(from.add(high).cast(), from.add(low).cast())
                }
            };
            // All is read before anything is written: columns may be in one another's way in the cache.
            let (a, b, c, d) = (halves(0, 0), halves(1, 0), halves(2, 0), halves(3, 0));
            let (e, f, g, h) = (halves(0, 4), halves(1, 4), halves(2, 4), halves(3, 4));
            for (after, [a, b, c, d]) in [(0, [a, b, c, d]), (4, [e, f, g, h])] {
                let (ab, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (cd, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                let lines = [
                    _mm256_shuffle_ps::<0x44>(ab, cd),
                    _mm256_shuffle_ps::<0xee>(ab, cd),
                    _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
                    _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
                ];
                for (i, line) in lines.into_iter().enumerate() {
                    // SAFETY: as above.
                    #[allow(unsafe_code)]
                    unsafe {
                        _mm256_storeu_ps(to.add((row + after + i) * stride + column * 4).cast(), line);
                    }
                }
            }
        }
    }
    if let (Some(data), Some(out)) = (data.get(whole_columns * step..), out.get_mut(whole_columns * 4..)) {
        tiles::<u32, 4>(turned, data, step, out, stride, whole_rows, columns - whole_columns);
    }
    each::<u32>(data, step, out, stride, whole_rows..rows, 0..columns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::copy::tests::{at_threads, pattern};
    use crate::testing::at_each_level;
    use crate::testing::{ASKED, assert_asks, sized};
    use proptest::prelude::*;

    fn oracle(data: &[u8], element: usize, shape: &[usize], perm: &[usize]) -> Vec<u8> {
        let turned: Vec<usize> = perm.iter().map(|&at| shape[at]).collect();
        let mut out = Vec::new();
        for k in 0..turned.iter().product() {
            let position = crate::position_of(k, &turned);
            let mut own = vec![0; shape.len()];
            perm.iter().zip(position).for_each(|(&at, p)| own[at] = p);
            let at = own.iter().zip(shape).fold(0, |at, (p, dim)| at * dim + p) * element;
            out.extend(&data[at..at + element]);
        }
        out
    }

    fn check(element: usize, shape: &[usize], perm: &[usize]) {
        // At an odd address: nothing may rely on alignment.
        let data = pattern(shape.iter().product::<usize>() * element + 1);
        let data = &data[1..];
        let want = oracle(data, element, shape, perm);
        at_each_level(|| {
            at_threads(&mut |resources| {
                let mut out = vec![0xa5; want.len() + 1];
                assert_eq!(permute(data, element, shape, perm, &mut out[1..], resources), Ok(()));
                assert!(out[1..] == want, "{shape:?} by {perm:?}, element {element}, {resources:?}");
            });
        });
    }

    const ELEMENTS: [usize; 5] = [1, 2, 4, 8, 16];

    #[test]
    fn matrices() {
        for element in ELEMENTS {
            for &rows in sized(&[1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 64][..], &[3, 17]) {
                for &columns in sized(&[1, 2, 3, 4, 8, 16, 17, 40, 200][..], &[2, 18]) {
                    check(element, &[rows, columns], &[1, 0]);
                    check(element, &[2, rows, 3, columns], &[0, 3, 2, 1]);
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too large")]
    fn large_ones_on_several_threads() {
        for element in ELEMENTS {
            // Worth waking threads.
            let n = 160_000 / element;
            check(element, &[n / 301, 301], &[1, 0]);
            // So many lines that a few are written at a time.
            if element >= 4 {
                check(element, &[1030, 300 / element], &[1, 0]);
            }
            check(element, &[3, n / 3], &[1, 0]);
            check(element, &[n / 3, 3], &[1, 0]);
            check(element, &[3, n / 750, 5, 50], &[0, 3, 2, 1]);
            check(element, &[n / 3000, 7, 5, 110], &[2, 0, 1, 3]);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too large")]
    fn a_caller_that_asks_to_stop_is_heard() {
        let (data, stop) = (vec![1; ASKED], Stop::default());
        for shape in [[2, ASKED / 2], [ASKED / 2, 2]] {
            let mut out = vec![0; data.len()];
            let resources = Resources { threads: 1, stop: Some(&stop) };
            assert_asks(&format!("{shape:?}"), &mut out, |out| permute(&data, 1, &shape, &[1, 0], out, resources));
        }
        stop.stop();
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let outcome = permute(&data, 1, &[ASKED / 2, 2], &[1, 0], &mut vec![0; data.len()], resources);
        assert_eq!(outcome, Err(Stopped::Cancelled));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: sized(256, 3), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_order(
            (shape, perm) in prop::collection::vec(0..7usize, 0..6)
                .prop_flat_map(|shape| { let all: Vec<usize> = (0..shape.len()).collect(); (Just(shape), Just(all).prop_shuffle()) }),
            element in prop::sample::select(ELEMENTS.to_vec()),
        ) {
            check(element, &shape, &perm);
        }
    }
}
