//! Each kernel against its slow oracle, at each processor level, around every size at which it switches its method.

use super::*;
use crate::Stop;
use crate::testing::at_each_level;
use crate::testing::{ASKED, assert_asks, on_threads, sized};
use proptest::prelude::*;

/// `out[o, k, ..] = data[o, indices[k], ..]`, entry by entry.
fn oracle(data: &[u8], axis: Bounds, row: usize, indices: &[i64]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for o in 0..data.len().checked_div(axis.size * row).unwrap_or(0) {
        for &index in indices {
            let wrapped = if index < 0 && axis.negative { index + axis.size as i64 } else { index };
            let entry = usize::try_from(wrapped).ok().filter(|entry| *entry < axis.size)?;
            let at = (o * axis.size + entry) * row;
            out.extend_from_slice(&data[at..at + row]);
        }
    }
    Some(out)
}

/// Bytes that differ from their neighbours at any distance of interest.
fn pattern(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (k, word) in bytes.chunks_mut(4).enumerate() {
        let random = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        word.copy_from_slice(&random[..word.len()]);
    }
    bytes
}

/// Indices from a seed: in range, some negative, some equal, some in order.
fn indices(n: usize, size: usize, seed: u64) -> Vec<i64> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    (0..n).map(|_| next() % size as i64 - if next() % 3 == 0 { size as i64 } else { 0 }).collect()
}

/// [`gather`] with the scratch memory that it needs.
fn picked(work: Gather<'_>, out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    let mut scratch = vec![0; work.scratch(out.len())];
    gather(work, out, &mut scratch, resources)
}

fn check(outer: usize, size: usize, row: usize, indices: &[i64]) {
    let axis = Bounds { size, negative: true };
    // At an odd address: nothing may rely on alignment.
    let data = pattern(outer * size * row + 1);
    let data = &data[1..];
    let want = oracle(data, axis, row, indices);
    let narrow: Option<Vec<i32>> = indices.iter().map(|&i| i32::try_from(i).ok()).collect();
    at_each_level(|| {
        for &threads in THREADS {
            for indices in [Some(Indices::I64(indices)), narrow.as_deref().map(Indices::I32)].into_iter().flatten() {
                let mut out = vec![0xa5; outer * row * indices.len() + 1];
                let work = Gather { data, axis, row, indices };
                let outcome = picked(work, &mut out[1..], Resources { threads, stop: None });
                assert_eq!(outcome, expected(&want), "outer {outer}, size {size}, row {row}");
                if let Some(want) = &want {
                    assert!(out[1..] == want[..], "outer {outer}, size {size}, row {row}, {threads} threads");
                }
            }
        }
    });
}

/// If the oracle has no answer, an index is out of range.
fn expected(want: &Option<Vec<u8>>) -> Result<(), Stopped> {
    want.as_ref().map(|_| ()).ok_or(Stopped::OutOfRange)
}

/// Small work is always done by one thread.
const THREADS: &[usize] = sized(&[1, 3], &[3]);

/// Numbers of indices around the thresholds: short, one block, several blocks.
const COUNTS: &[usize] = sized(&[0, 1, 2, 31, 32, 33, 511, 512, 513, 1023, 1025, 1600], &[0, 1, 33, 513]);

#[test]
fn every_row_size() {
    for row in (0..=70).chain([100, 127, 128, 129, 255, 256, 257, 1000, 3072]).step_by(sized(1, 7)) {
        for n in [0, 1, 3, 40] {
            check(2, 7, row, &indices(n, 7, row as u64));
        }
    }
}

#[test]
fn every_number_of_indices() {
    for row in [1, 2, 3, 4, 8, 12, 16, 64, 100] {
        for &n in COUNTS {
            for &(outer, size) in sized(&[(3, 17), (1, 1), (1, 1000), (1, 65_537)][..], &[(2, 17)]) {
                check(outer, size, row, &indices(n, size, n as u64));
            }
        }
    }
}

#[test]
fn large_outputs_on_several_threads() {
    // However few processors there are.
    on_threads(3, large_outputs);
}

fn large_outputs() {
    // Around the sizes from which threads share the work, and from which stores go past the caches.
    check(2, 3, 3072, &indices(33, 3, 4));
    if cfg!(miri) {
        return;
    }
    for (row, n) in [(1, 131_071), (1, 131_072), (4, 300_000), (16, 70_000), (12, 9000), (3072, 33), (257, 65_281)] {
        check(1, 500, row, &indices(n, 500, 5));
    }
    check(300, 40, 4, &indices(100, 40, 6));
    check(70, 3, 3072, &indices(90, 3, 7));
}

#[test]
fn one_bad_index_anywhere_is_found() {
    for &n in sized(&[1, 32, 600, 31, 1100][..], &[1, 32]) {
        for at in [0, n / 2, n - 1] {
            for bad in [9, -10, i64::MAX, i64::MIN, 1 << 32, (1 << 32) + 1, -(1 << 32), i64::from(u32::MAX)] {
                let mut indices = indices(n, 9, 1);
                indices[at] = bad;
                for row in [1, 4, 12, 16] {
                    check(1, 9, row, &indices);
                    check(2, 9, row, &indices);
                }
            }
        }
    }
}

#[test]
fn without_negative_indices() {
    let axis = Bounds { size: 9, negative: false };
    let data = pattern(9);
    for n in [1, 40] {
        let mut indices = vec![8; n];
        let mut out = vec![0; n];
        let mut run = |indices: &[i64]| {
            let work = Gather { data: &data, axis, row: 1, indices: Indices::I64(indices) };
            picked(work, &mut out, Resources { threads: 1, stop: None }).map(|()| out.clone())
        };
        assert_eq!(run(&indices), Ok(vec![data[8]; n]));
        indices[n - 1] = -1;
        assert_eq!(run(&indices), Err(Stopped::OutOfRange));
    }
}

#[test]
#[cfg_attr(miri, ignore = "too large")]
fn a_caller_that_asks_to_stop_is_heard() {
    let (data, indices) = (pattern(100), vec![5i32; 20 << 20]);
    let axis = Bounds { size: 100, negative: true };
    for threads in [1, 3] {
        for stop in [true, false] {
            let asked = Stop::default();
            if stop {
                asked.stop();
            }
            let resources = Resources { threads, stop: Some(&asked) };
            let mut out = vec![0; indices.len()];
            let work = Gather { data: &data, axis, row: 1, indices: Indices::I32(&indices) };
            let expected = if stop { Err(Stopped::Cancelled) } else { Ok(()) };
            assert_eq!(picked(work, &mut out, resources), expected);
            assert!(out.iter().all(|&byte| byte == if stop { 0 } else { data[5] }));
        }
    }
}

/// However few and long the rows are, the caller is asked after every 128 KiB.
#[test]
#[cfg_attr(miri, ignore = "too large")]
fn a_caller_is_asked_often() {
    const LONG: usize = ASKED / 2;
    let (data, stop) = (vec![1; 2 * LONG], Stop::default());
    let (resources, one) = (Resources { threads: 1, stop: Some(&stop) }, vec![0i32; LONG]);
    let mut out = vec![0; 2 * LONG];
    let mut ask = |what: &str, run: &dyn Fn(&mut [u8]) -> _| assert_asks(what, &mut out, run);
    let axis = Bounds { size: 1, negative: true };
    let work = Gather { data: &data[..2], axis, row: 1, indices: Indices::I32(&one) };
    ask("two rows that share their indices", &|out| picked(work, out, resources));
    ask("long rows", &|out| {
        let work =
            Gather { data: &data, axis: Bounds { size: 2, negative: true }, row: LONG, indices: Indices::I32(&[1, 0]) };
        picked(work, out, resources)
    });
    ask("the same with zeros", &|out| gather_or_zero(work, out, resources));
    let both = vec![0i32; 2 * LONG];
    for (shape, axis) in [([2, LONG], 0), ([LONG, 2], 1)] {
        let grid = Grid { data: &shape, indices: &shape, axis };
        let run = |out: &mut [u8]| gather_elements(&data, 1, &grid, Indices::I32(&both), out, resources);
        ask(&format!("a grid of {shape:?}"), &run);
    }
}

/// `out[p] = data[p with p[axis] = indices[p]]`, element by element.
fn grid_oracle(data: &[u8], element: usize, grid: Grid<'_>, indices: &[i64]) -> Option<Vec<u8>> {
    let size = grid.data[grid.axis] as i64;
    let mut out = Vec::new();
    for (k, &index) in indices.iter().enumerate() {
        let mut position = crate::position_of(k, grid.indices);
        let wrapped = if index < 0 { index + size } else { index };
        position[grid.axis] = usize::try_from(wrapped).ok().filter(|_| wrapped < size)?;
        let at = position.iter().zip(grid.data).fold(0, |at, (p, dim)| at * dim + p);
        out.extend(&data[at * element..(at + 1) * element]);
    }
    Some(out)
}

fn check_grid(data_shape: &[usize], indices_shape: &[usize], axis: usize, element: usize, bad: Option<(usize, i64)>) {
    let grid = Grid { data: data_shape, indices: indices_shape, axis };
    let data = pattern(data_shape.iter().product::<usize>() * element + 1);
    let data = &data[1..];
    let n = indices_shape.iter().product();
    let mut indices = if n == 0 { vec![] } else { indices(n, data_shape[axis], 3) };
    if let Some((at, value)) = bad {
        indices[at % n] = value;
    }
    let narrow: Option<Vec<i32>> = indices.iter().map(|&i| i32::try_from(i).ok()).collect();
    let want = grid_oracle(data, element, grid, &indices);
    at_each_level(|| {
        for &threads in THREADS {
            for indices in [Some(Indices::I64(&indices)), narrow.as_deref().map(Indices::I32)].into_iter().flatten() {
                let mut out = vec![0xa5; n * element + 1];
                let resources = Resources { threads, stop: None };
                let outcome = gather_elements(data, element, &grid, indices, &mut out[1..], resources);
                assert_eq!(outcome, expected(&want), "{grid:?}");
                if let Some(want) = &want {
                    assert!(out[1..] == want[..], "{grid:?}, element {element}, {threads} threads");
                }
            }
        }
    });
}

#[test]
fn grids() {
    let rows = sized(9, 2);
    for &element in sized(&[1, 2, 4, 8, 16][..], &[4]) {
        for &n in COUNTS {
            check_grid(&[70], &[n], 0, element, None);
            check_grid(&[3, 40], &[3, n], 1, element, None);
            check_grid(&[5, n.max(1)], &[rows, n], 0, element, None);
            check_grid(&[5, n.max(1)], &[rows, n / 2], 0, element, None);
        }
        check_grid(&[3, 4, 5, 6], &[2, 9, 4, 5], 1, element, None);
        check_grid(&[3, 4, 5, 50], &[3, sized(4, 1), 2, 50], 2, element, None);
        check_grid(&[1, 1, 600], &[1, 1, 600], 1, element, None);
        check_grid(&[1, 600], &[1, 600], 0, element, None);
    }
    if cfg!(miri) {
        return;
    }
    check_grid(&[400, 400], &[400, 400], 0, 4, None);
    check_grid(&[400, 400], &[400, 400], 1, 4, None);
    check_grid(&[1000], &[200_000], 0, 2, None);
    // One row, which threads share.
    check_grid(&[3, 200_000], &[1, 200_000], 0, 2, None);
    check_grid(&[3, 400, 500], &[1, 400, 500], 0, 4, None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sized(256, 3), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_gather(outer in 1..4usize, size in 1..700usize, row in 1..40usize, n in 0..1200usize, seed: u64) {
        check(outer, size, row, &indices(n, size, seed));
    }

    #[test]
    fn any_grid(
        shape in prop::collection::vec((1..6usize, 1..6usize), 1..5),
        axis: prop::sample::Index,
        last in 1..sized(600, 100usize),
        element in prop::sample::select(vec![1, 2, 4, 8, 16]),
        bad in prop::option::of((any::<usize>(), prop_oneof![Just(i64::MIN), Just(1 << 32), Just(600), Just(-601)])),
    ) {
        let axis = axis.index(shape.len());
        let mut data: Vec<usize> = shape.iter().map(|(a, b)| *a.max(b)).collect();
        let mut indices: Vec<usize> = shape.iter().map(|(a, _)| *a).collect();
        if let (Some(d), Some(i)) = (data.last_mut(), indices.last_mut()) {
            (*d, *i) = (last, last);
        }
        indices[axis] = shape[axis].1 * 3;
        check_grid(&data, &indices, axis, element, bad);
    }
}
