//! The kernels against their slow oracles, around the sizes at which they switch their method.

use super::*;
use crate::Stop;
use crate::testing::at_each_level;
use crate::testing::{ASKED, assert_asks, sized};
use proptest::prelude::*;

/// Bytes that differ from their neighbours at any distance of interest.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|k| ((k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Runs `work` with one thread and with several, however few processors there are.
pub(crate) fn at_threads(work: &mut (dyn FnMut(Resources<'_>) + Send)) {
    work(Resources { threads: 1, stop: None });
    work(Resources { threads: 1, stop: Some(&Stop::default()) });
    #[cfg(feature = "rayon")]
    {
        use std::sync::LazyLock;
        static POOL: LazyLock<rayon::ThreadPool> =
            LazyLock::new(|| rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap());
        POOL.install(|| work(Resources { threads: 3, stop: None }));
    }
}

/// The coordinate of the source, or `None` for the constant.
fn mapped(map: Map, k: usize) -> Option<usize> {
    let (start, size, before, fill) = match map {
        Map::Line { start, step } => return Some((start as isize + k as isize * step) as usize),
        Map::Padded { start, size, before, fill } => (start, size as i64, before as i64, fill),
    };
    let mut at = k as i64 - before;
    match fill {
        Fill::Constant if at < 0 || at >= size => return None,
        Fill::Constant => {}
        Fill::Edge => at = at.clamp(0, size - 1),
        Fill::Wrap => at = at.rem_euclid(size),
        Fill::Reflect if size == 1 => at = 0,
        // Mirrored until it is inside.
        Fill::Reflect => {
            while at < 0 || at >= size {
                at = if at < 0 { -at } else { 2 * (size - 1) - at };
            }
        }
    }
    Some(start + at as usize)
}

/// `dims` is the shape of the source.
fn check(element: usize, dims: &[usize], maps: &[(usize, Map)]) {
    let axes: Vec<Axis> = maps
        .iter()
        .enumerate()
        .map(|(d, &(size, map))| Axis { size, stride: dims.iter().skip(d + 1).product(), map })
        .collect();
    let data = pattern(dims.iter().product::<usize>() * element + 1);
    let (data, constant) = (&data[1..], &[9, 8, 7, 6, 5, 4, 3, 2, 1, 9, 8, 7, 6, 5, 4, 3][..element]);
    let shape: Vec<usize> = maps.iter().map(|(size, _)| *size).collect();
    let mut want: Vec<u8> = Vec::new();
    for k in 0..shape.iter().product() {
        let position = crate::position_of(k, &shape);
        let places = position.iter().zip(&axes).map(|(k, axis)| Some(mapped(axis.map, *k)? * axis.stride));
        match places.sum::<Option<usize>>() {
            Some(at) => want.extend(&data[at * element..(at + 1) * element]),
            None => want.extend(constant),
        }
    }
    at_each_level(|| {
        at_threads(&mut |resources| {
            let mut out = vec![0xa5; want.len() + 1];
            let source = Source { data, element, constant };
            assert_eq!(copy(source, &axes, &mut out[1..], resources), Ok(()));
            assert!(out[1..] == want, "{dims:?}, {maps:?}, element {element}, {resources:?}");
        });
    });
}

const ELEMENTS: [usize; 5] = [1, 2, 4, 8, 16];

fn whole(size: usize) -> (usize, Map) {
    (size, Map::Line { start: 0, step: 1 })
}

fn line(size: usize, start: usize, step: isize) -> (usize, Map) {
    (size, Map::Line { start, step })
}

fn padded(size: usize, before: usize, after: usize, fill: Fill) -> (usize, Map) {
    (before + size + after, Map::Padded { start: 0, size, before, fill })
}

const FILLS: [Fill; 4] = [Fill::Constant, Fill::Edge, Fill::Reflect, Fill::Wrap];

#[test]
fn lines() {
    for element in ELEMENTS {
        check(element, &[9], &[line(5, 0, 2)]);
        check(element, &[9], &[line(9, 8, -1)]);
        check(element, &[9], &[line(3, 7, -3)]);
        check(element, &[2, 3], &[line(4, 1, 0), whole(3)]);
        check(element, &[4, 5, 6], &[line(2, 1, 1), line(3, 4, -2), whole(6)]);
        check(element, &[4, 5, 6], &[whole(4), line(1, 2, 1), line(2, 2, 1)]);
        check(element, &[4, 1, 3], &[whole(4), line(3, 0, 0), line(3, 2, -1)]);
        check(element, &[40, 17], &[line(40, 39, -1), line(9, 16, -2)]);
        check(element, &[40, 37], &[line(20, 1, 2), line(9, 0, 4)]);
        check(element, &[3, 1], &[whole(3), line(7, 0, 0)]);
        check(element, &[], &[]);
        // Rows of a size that is no power of two, and longer ones than a unit.
        check(element, &[4, 3], &[line(2, 3, -2), whole(3)]);
        check(element, &[3, sized(5000, 70)], &[line(3, 2, -1), line(sized(4999, 69), 1, 1)]);
    }
}

#[test]
fn paddings() {
    for element in ELEMENTS {
        for fill in FILLS {
            for (before, after) in [(0, 3), (2, 0), (1, 1), (7, 9)] {
                for size in [1, 2, 3, 5] {
                    check(element, &[size], &[padded(size, before, after, fill)]);
                    check(element, &[size, 3], &[padded(size, before, after, fill), padded(3, after, before, fill)]);
                    check(element, &[2, size, 3], &[whole(2), padded(size, before, after, fill), whole(3)]);
                }
            }
        }
        check(element, &[0, 2], &[padded(0, 2, 3, Fill::Constant), whole(2)]);
        check(element, &[5], &[(6, Map::Padded { start: 2, size: 2, before: 1, fill: Fill::Reflect })]);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too large")]
fn large_ones_on_several_threads() {
    for element in ELEMENTS {
        // Worth waking threads.
        let n = 160_000 / element;
        for fill in FILLS {
            check(element, &[n / 2], &[padded(n / 2, n / 3, n / 4, fill)]);
            check(element, &[n / 300, 280], &[padded(n / 300, 7, 9, fill), padded(280, 5, 100, fill)]);
        }
        check(element, &[2 * n], &[line(n, 2 * n - 1, -2)]);
        check(element, &[2, n / 4], &[line(5, 0, 0), whole(n / 4)]);
        check(element, &[n / 4, 1], &[whole(n / 4), line(5, 0, 0)]);
        check(element, &[n / 150, 7, 100], &[line(n / 300, 0, 2), line(3, 4, 1), whole(100)]);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too large")]
fn a_caller_that_asks_to_stop_is_heard() {
    let (data, stop) = (vec![1; ASKED], Stop::default());
    let resources = Resources { threads: 1, stop: Some(&stop) };
    let axis = |size, map| Axis { size, stride: 1, map };
    let source = Source { data: &data, element: 1, constant: &[1] };
    let mut out = vec![0; ASKED];
    let mut ask = |what, run: &dyn Fn(&mut [u8]) -> _| assert_asks(what, &mut out, run);
    ask("a slice", &|out| copy(source, &[axis(ASKED, Map::Line { start: 0, step: 1 })], out, resources));
    ask("a repeat", &|out| copy(source, &[axis(ASKED, Map::Line { start: 0, step: 0 })], out, resources));
    let padded = Map::Padded { start: 0, size: 1, before: 9, fill: Fill::Constant };
    ask("a padding", &|out| copy(source, &[axis(ASKED, padded)], out, resources));
    ask("padding alone", &|out| copy(Source { data: &[], ..source }, &[axis(ASKED, padded)], out, resources));
    let halves = data.split_at(ASKED / 2);
    ask("parts", &|out| concat(&[(halves.0, ASKED / 2), (halves.1, ASKED / 2)], out, resources));
    ask("short parts", &|out| concat(&[(halves.0, 2), (halves.1, 2)], out, resources));
    stop.stop();
    let outcome = copy(source, &[axis(ASKED, padded)], &mut vec![0; ASKED], resources);
    assert_eq!(outcome, Err(Stopped::Cancelled));
}

fn check_concat(entries: usize, rows: &[usize]) {
    let parts: Vec<Vec<u8>> = rows.iter().map(|row| pattern(entries * row + row)[*row..].to_vec()).collect();
    let mut want: Vec<u8> = Vec::new();
    for entry in 0..entries {
        for (part, row) in parts.iter().zip(rows) {
            want.extend(&part[entry * row..(entry + 1) * row]);
        }
    }
    let parts: Vec<(&[u8], usize)> = parts.iter().map(Vec::as_slice).zip(rows.iter().copied()).collect();
    at_threads(&mut |resources| {
        let mut out = vec![0xa5; want.len()];
        assert_eq!(concat(&parts, &mut out, resources), Ok(()));
        assert!(out == want, "{entries} of {rows:?}, {resources:?}");
    });
}

#[test]
fn parts() {
    for rows in [&[4][..], &[4, 4], &[0, 8, 3, 0], &[1, 2, 16, 100], &[1500, 500, 48], &[1500, 500, 49], &[0, 0], &[]] {
        for entries in [0, 1, 2, 7] {
            check_concat(entries, rows);
        }
    }
    // Single words.
    for word in ELEMENTS {
        (2..6).for_each(|count| check_concat(sized(75, 5), &vec![word; count]));
    }
    if !cfg!(miri) {
        check_concat(70_000, &[4, 8]);
        check_concat(70_000, &[4, 4, 4]);
        check_concat(100, &[1001, 3000, 0, 77]);
        check_concat(1, &[200_000, 1, 300_000]);
    }
}

fn any_map() -> impl Strategy<Value = (usize, (usize, Map))> {
    let steps = (1..6usize, 0..6usize, -3..4isize, 0..5usize).prop_map(|(size, start, step, count)| {
        // As many as there are.
        let start = start % size;
        let most = match step {
            0 => count,
            1.. => (size - start).div_ceil(step as usize),
            _ => (start + 1).div_ceil(step.unsigned_abs()),
        };
        (size, (count.min(most), Map::Line { start, step }))
    });
    let fills = (1..6usize, 0..9usize, 0..9usize, prop::sample::select(FILLS.to_vec()));
    prop_oneof![
        (0..6usize).prop_map(|size| (size, whole(size))),
        steps,
        fills.prop_map(|(size, before, after, fill)| (size, padded(size, before, after, fill))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sized(256, 3), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_maps(axes in prop::collection::vec(any_map(), 0..5), element in prop::sample::select(ELEMENTS.to_vec())) {
        let (dims, maps): (Vec<usize>, Vec<(usize, Map)>) = axes.into_iter().unzip();
        // Only a constant can be where there is no source.
        prop_assume!(!dims.contains(&0) || maps.iter().any(|(size, _)| *size == 0));
        check(element, &dims, &maps);
    }

    #[test]
    fn any_parts(entries in 0..50usize, rows in prop::collection::vec(prop_oneof![0..40usize, 0..3000usize], 0..5)) {
        check_concat(entries, &rows);
    }
}
