use super::*;
use crate::testing::{at_each_level, on_threads, sized};
use crate::{Stop, testing::looks};

const ALONE: Resources<'_> = Resources { threads: 1, stop: None };

/// An axis of `input` whose positions are at `places`.
fn table(window: Window, input: usize, places: &[f64]) -> (Vec<Span>, Vec<f64>) {
    let mut spans = vec![Span::OUTSIDE; places.len()];
    let mut weights = vec![0.0; places.len() * window.most(input)];
    let place = |k: usize| (places[k] >= -10.0).then_some(places[k]);
    window.fill(input, place, &mut spans, &mut weights, &mut ALONE.lookout()).unwrap();
    (spans, weights)
}

fn window(filter: Filter, stretch: f64, exclude: bool) -> Window {
    Window { filter, stretch, exclude }
}

fn weights_of(window: Window, input: usize, place: f64) -> (usize, Vec<f64>) {
    let (spans, weights) = table(window, input, &[place]);
    let Span { first, start, count } = spans[0];
    (first, weights[start..start + count].to_vec())
}

#[test]
fn weights() {
    let linear = window(Filter::Linear, 1.0, false);
    assert_eq!(weights_of(linear, 5, 1.25), (1, vec![0.75, 0.25]));
    assert_eq!(weights_of(linear, 5, 3.0), (3, vec![1.0]));
    // Those at the ends stand for what is beyond.
    assert_eq!(weights_of(linear, 5, -0.25), (0, vec![1.0]));
    assert_eq!(weights_of(linear, 5, 4.5), (4, vec![1.0]));
    assert_eq!(weights_of(linear, 1, 0.25), (0, vec![1.0]));
    let cubic = |exclude| window(Filter::Cubic { a: -0.5 }, 1.0, exclude);
    assert_eq!(weights_of(cubic(false), 5, 1.5), (0, vec![-0.0625, 0.5625, 0.5625, -0.0625]));
    assert_eq!(weights_of(cubic(false), 5, 0.5), (0, vec![0.5, 0.5625, -0.0625]));
    assert_eq!(weights_of(cubic(true), 5, 0.5), (0, [0.5625, 0.5625, -0.0625].iter().map(|w| w / 1.0625).collect()));
    assert_eq!(weights_of(cubic(false), 5, 2.0), (2, vec![1.0]));
    // Twice as wide: half of the weight at 1, none at 2.
    assert_eq!(weights_of(window(Filter::Linear, 2.0, false), 5, 2.0), (1, vec![0.25, 0.5, 0.25]));
    assert_eq!(weights_of(window(Filter::Linear, 2.0, false), 5, 0.0), (0, vec![0.75, 0.25]));
    assert_eq!(weights_of(window(Filter::Linear, 2.0, true), 5, 0.0), (0, vec![1.0 / 1.5, 0.5 / 1.5]));
}

/// The weights of all elements of an axis, for each place; `None` if that is outside.
fn plain_weights(window: Window, size: usize, places: &[f64]) -> Vec<Option<Vec<f64>>> {
    let last = size as i64 - 1;
    let weights = |place: f64| {
        let mut all = vec![0.0; size];
        (-9..9 + last).for_each(|p| all[p.clamp(0, last) as usize] += window.filter.weight(p as f64 - place));
        all
    };
    places.iter().map(|place| (*place >= -10.0).then(|| weights(*place))).collect()
}

/// The sum over all elements, by the definition; -7 outside.
fn plain(data: &[f32], dims: [usize; 3], weights: [&[Option<Vec<f64>>]; 3]) -> Vec<f32> {
    let all = weights[0].iter().flat_map(|x| weights[1].iter().map(move |y| (x, y)));
    let all = all.flat_map(|(x, y)| weights[2].iter().map(move |z| (x, y, z)));
    all.map(|all| {
        let (Some(x), Some(y), Some(z)) = all else { return -7.0 };
        let at = |k: usize| x[k / (dims[1] * dims[2])] * y[k / dims[2] % dims[1]] * z[k % dims[2]];
        data.iter().enumerate().map(|(k, element)| at(k) * f64::from(*element)).sum::<f64>() as f32
    })
    .collect()
}

/// Two axes of three, of which the last or the middle one is whole.
fn check(resources: Resources<'_>, count: usize) {
    let dims = [4, 6, 5];
    let data: Vec<f32> = (0..dims.iter().product()).map(|k| ((k * 7919) % 1009) as f32 - 500.0).collect();
    let spread = |size: usize| {
        (0..count).map(move |k| if k % 7 == 3 { -99.0 } else { k as f64 / count as f64 * size as f64 - 0.3 })
    };
    for (filter, inner) in [Filter::Linear, Filter::Cubic { a: -0.75 }].iter().flat_map(|f| [(*f, true), (*f, false)]) {
        let window = window(filter, 1.0, false);
        let middle = if inner { dims[1] } else { dims[2] };
        let places = [spread(dims[0]).collect::<Vec<_>>(), spread(middle).collect()];
        let (spans, weights) = table(window, dims[0], &places[0]);
        let first = Axis::Taps { input: dims[0], spans: &spans, weights: &weights };
        let (spans, weights) = table(window, middle, &places[1]);
        let second = Axis::Taps { input: middle, spans: &spans, weights: &weights };
        let axes = if inner { [first, second, Axis::Whole(dims[2])] } else { [first, Axis::Whole(dims[1]), second] };
        let identity = |size: usize| {
            let row = |at: usize| Some((0..size).map(|k| f64::from(u8::from(k == at))).collect());
            (0..size).map(row).collect::<Vec<_>>()
        };
        let [x, y] = [(dims[0], &places[0]), (middle, &places[1])].map(|(size, at)| plain_weights(window, size, at));
        let want = match inner {
            true => plain(&data, dims, [&x, &y, &identity(dims[2])]),
            false => plain(&data, dims, [&x, &identity(dims[1]), &y]),
        };
        let mut out = vec![0f32; want.len()];
        resample(&data, &axes, &[-7.0], &mut out, resources).unwrap();
        for (got, want) in out.iter().zip(&want) {
            assert!((got - want).abs() <= 1e-3, "{got} {want}");
        }
        let bits = |out: &[f32]| out.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let mut alone = vec![0f32; want.len()];
        resample(&data, &axes, &[-7.0], &mut alone, ALONE).unwrap();
        assert_eq!(bits(&out), bits(&alone));
    }
}

#[test]
fn sums_of_neighbours() {
    at_each_level(|| check(ALONE, 9));
    on_threads(3, || check(Resources { threads: 3, stop: None }, 36));
    check(Resources { threads: 1, stop: Some(&Stop::default()) }, 20);
}

/// Parts of images and of rows, as a run has them that can be stopped.
#[test]
fn parts_are_those_of_the_whole() {
    for (rows, width, planes) in [(sized(90, 2), sized(700, 30), 2), (1, sized(50_000, 300), 1), (30, 9, sized(300, 2))]
    {
        let places = |size: usize| (0..size).map(|k| k as f64 * 0.4 - 0.2).collect::<Vec<_>>();
        let size = |size: usize| size * 2 / 5 + 1;
        let tables = [rows, width].map(|all| table(window(Filter::Linear, 1.0, false), size(all), &places(all)));
        let [(row_spans, row_weights), (spans, weights)] = &tables;
        let axes = [
            Axis::Whole(planes),
            Axis::Taps { input: size(rows), spans: row_spans, weights: row_weights },
            Axis::Taps { input: size(width), spans, weights },
        ];
        let data: Vec<f32> = (0..planes * size(rows) * size(width)).map(|k| ((k * 7919) % 1009) as f32).collect();
        let run = |threads, stop| {
            let resources = Resources { threads, stop };
            let (mut out, mut near) = (vec![f32::NAN; planes * rows * width], vec![0f32; planes * rows * width]);
            on_threads(threads, || {
                resample(&data, &axes, &[0.0], &mut out, resources).unwrap();
                let (data, near) = (bytemuck::cast_slice(&data), bytemuck::cast_slice_mut(&mut near));
                nearest(data, 4, &axes, &[0; 4], near, resources).unwrap();
            });
            (out, near)
        };
        let (whole, stop) = (run(1, None), Stop::default());
        assert!(run(1, Some(&stop)) == whole && run(3, Some(&stop)) == whole, "{rows} {width} {planes}");
        // The first place of each row and column is before the first element, and the others are between two.
        let at = |row: usize, column: usize| f64::from(data[row * size(width) + column]);
        assert_eq!(whole.0[1], (at(0, 0) * 0.8 + at(0, 1) * 0.2) as f32);
    }
}

#[test]
fn integers_are_rounded_once() {
    let (spans, weights) = table(window(Filter::Linear, 1.0, false), 3, &[0.5, 1.5, 2.0, 0.75]);
    let axis = [Axis::Taps { input: 3, spans: &spans, weights: &weights }];
    let mut out = [0u8; 4];
    resample(&[0u8, 255, 0], &axis, &[0], &mut out, ALONE).unwrap();
    // Halves go to the even neighbour.
    assert_eq!(out, [128, 128, 0, 191]);
    let (spans, weights) = table(window(Filter::Cubic { a: -0.75 }, 1.0, false), 4, &[0.25, 2.75]);
    let axis = [Axis::Taps { input: 4, spans: &spans, weights: &weights }];
    let mut out = [0u8; 2];
    resample(&[255u8, 255, 0, 0], &axis, &[0], &mut out, ALONE).unwrap();
    assert_eq!(out, [255, 0]);
}

#[test]
fn the_nearest() {
    let spans: Vec<Span> = [2, 0, 2].map(Span::of).into_iter().chain([Span::OUTSIDE]).collect();
    let axis = Axis::Taps { input: 3, spans: &spans, weights: &[] };
    let data = [1u8, 2, 3, 4, 5, 6];
    let mut out = [0; 8];
    nearest(&data, 1, &[Axis::Whole(2), axis], &[9], &mut out, ALONE).unwrap();
    assert_eq!(out, [3, 1, 3, 9, 6, 4, 6, 9]);
    nearest(&data, 1, &[axis, Axis::Whole(2)], &[9], &mut out, ALONE).unwrap();
    assert_eq!(out, [5, 6, 1, 2, 5, 6, 9, 9]);
    let data: Vec<u16> = (0..9).collect();
    let mut out = [0u16; 16];
    nearest(bytemuck::cast_slice(&data), 2, &[axis, axis], &[7, 0], bytemuck::cast_slice_mut(&mut out), ALONE).unwrap();
    assert_eq!(out, [8, 6, 8, 7, 2, 0, 2, 7, 8, 6, 8, 7, 7, 7, 7, 7]);
}

/// Entries that follow themselves as often each, but for the last one.
#[test]
fn entries_that_are_repeated() {
    let check = |threads: usize, rows: usize| {
        for (times, first, count) in [(1, 2, 90), (2, 0, 100), (2, 1, 99), (3, 0, 98), (4, 3, 91), (5, 0, 7)] {
            let last = first + (count - 1) / times;
            for (size, last) in [1, 2, 4, 8, 16].into_iter().flat_map(|size| [(size, last), (size, 0)]) {
                let row = 100 * size;
                let data: Vec<u8> = (0..rows * row).map(|k| (k * 131) as u8).collect();
                let mut spans: Vec<Span> = (0..count).map(|k| Span::of(first + k / times)).collect();
                spans[count - 1] = Span::of(last);
                let axis = Axis::Taps { input: 100, spans: &spans, weights: &[] };
                let (mut out, resources) = (vec![0; rows * count * size], Resources { threads, stop: None });
                nearest(&data, size, &[Axis::Whole(rows), axis], &vec![0; size], &mut out, resources).unwrap();
                for (at, entry) in out.chunks_exact(size).enumerate() {
                    let from = at / count * row + spans[at % count].first * size;
                    assert_eq!(entry, &data[from..from + size], "{times} times from {first}, {size} bytes, at {at}");
                }
            }
        }
    };
    at_each_level(|| check(1, 2));
    on_threads(3, || check(3, sized(300, 2)));
}

/// Entries that are blocks of channels become what the image of each channel becomes.
#[test]
fn blocks_of_channels() {
    const BLOCK: usize = 16;
    let (sizes, counts) = ([5, 7], [sized(9, 3), sized(41, 19)]);
    let data: Vec<f32> = (0..35 * BLOCK).map(|k| ((k * 7919) % 1009) as f32 / 8.0 - 60.0).collect();
    let check = |threads: usize| {
        for filter in [Filter::Linear, Filter::Cubic { a: -0.75 }] {
            let places = |k: usize| (0..counts[k]).map(move |at| at as f64 * sizes[k] as f64 / counts[k] as f64 - 0.3);
            let tables = [0, 1].map(|k| table(window(filter, 1.0, false), sizes[k], &places(k).collect::<Vec<_>>()));
            let [rows, columns] = [0, 1].map(|k| {
                let (spans, weights) = &tables[k];
                Axis::Taps { input: sizes[k], spans, weights }
            });
            let run = |data: &[f32], axes: &[Axis<'_>], len: usize| {
                let (mut sums, mut near) = (vec![f32::NAN; len], vec![0f32; len]);
                let stop = Stop::default();
                for resources in [Resources { threads, stop: None }, Resources { threads, stop: Some(&stop) }] {
                    resample(data, axes, &[0.0], &mut sums, resources).unwrap();
                    let (data, near) = (bytemuck::cast_slice(data), bytemuck::cast_slice_mut(&mut near));
                    nearest(data, 4, axes, &[0; 4], near, resources).unwrap();
                }
                (sums, near)
            };
            let blocks = run(&data, &[rows, columns, Axis::Whole(BLOCK)], counts[0] * counts[1] * BLOCK);
            for channel in 0..BLOCK {
                let of = |data: &[f32]| data.iter().skip(channel).step_by(BLOCK).copied().collect::<Vec<f32>>();
                let plane = run(&of(&data), &[rows, columns], counts[0] * counts[1]);
                assert!(plane == (of(&blocks.0), of(&blocks.1)), "{filter:?} {channel}");
            }
        }
    };
    at_each_level(|| check(1));
    on_threads(3, || check(3));
}

/// One position that reads a million elements.
#[test]
fn they_stop_within_a_window() {
    let window = window(Filter::Linear, 5e5, false);
    let (spans, weights) = table(window, 1 << 20, &[5e5]);
    let axis = [Axis::Taps { input: 1 << 20, spans: &spans, weights: &weights }];
    let data = vec![1f32; 1 << 20];
    let stop = Stop::default();
    let resources = Resources { threads: 1, stop: Some(&stop) };
    let (outcome, looks) = looks::count(5, || resample(&data, &axis, &[0.0], &mut [0.0], resources));
    assert_eq!((outcome, looks.len()), (Err(Stopped::Cancelled), 5));
}

/// Planes that are sampled together give what each gives by itself, on any number of threads; and axes of one element change
/// nothing, though there are too many taps to list then.
#[test]
fn places_of_a_grid() {
    let (sizes, count, channels, images) = ([5, 7], if cfg!(miri) { 20 } else { 150 }, 3, 2);
    let numbers = |len: usize, by: usize| (0..len).map(move |k| (k * by % 101) as f64 / 40.0 - 1.25);
    let (places, data): (Vec<f64>, Vec<f32>) =
        (numbers(images * count * 2, 37).collect(), numbers(images * channels * 35, 29).map(|x| x as f32).collect());
    for (filter, padding) in [Padding::Zeros, Padding::Border, Padding::Reflection]
        .into_iter()
        .flat_map(|padding| [Filter::Linear, Filter::Cubic { a: -0.75 }].map(|filter| (filter, padding)))
    {
        let grid = Grid { sizes: &sizes, places: &places, count, channels, corners: false, padding };
        let run = |data: &[f32], grid: &Grid<'_>, out: usize| {
            let [out, again] = [1, 3].map(|threads| {
                let mut out = vec![f32::NAN; out];
                let resources = Resources { threads, stop: None };
                on_threads(threads, || sample::<f32>(data, grid, filter, 1, &mut out, resources)).unwrap();
                out
            });
            assert_eq!(out, again);
            out
        };
        let all = run(&data, &grid, images * channels * count);
        let mut apart = Vec::new();
        for plane in 0..images * channels {
            let own = Grid { places: &places[plane / channels * count * 2..][..count * 2], channels: 1, ..grid };
            apart.extend(run(&data[plane * 35..][..35], &own, count));
        }
        assert_eq!(all, apart, "{filter:?} {padding:?}");
        let near = |data: &[f32], grid: &Grid<'_>, threads: usize, out: usize| {
            let mut out = vec![f32::NAN; out];
            let (data, to) = (bytemuck::cast_slice(data), bytemuck::cast_slice_mut(&mut out));
            on_threads(threads, || sample_nearest(data, 4, grid, to, Resources { threads, stop: None })).unwrap();
            out
        };
        let all_near = near(&data, &grid, 1, all.len());
        assert_eq!(all_near, near(&data, &grid, 3, all.len()));
        for plane in 0..images * channels {
            let own = Grid { places: &places[plane / channels * count * 2..][..count * 2], channels: 1, ..grid };
            assert_eq!(near(&data[plane * 35..][..35], &own, 1, count), all_near[plane * count..][..count]);
        }
        // Cubic filters have 4096 taps here. In the middle of an axis of one element.
        let long: Vec<f64> = places.chunks(2).flat_map(|place| [place[0], place[1], 0.0, 0.0, 0.0, 0.0]).collect();
        let own = Grid { sizes: &[1, 1, 1, 1, 5, 7], places: &long, ..grid };
        assert_eq!(run(&data, &own, all.len()), all, "{filter:?} {padding:?}");
        at_each_level(|| assert_eq!(run(&data, &grid, all.len()), all, "{filter:?} {padding:?}"));
    }
}

/// Elements that weigh nothing aren't read: they may be infinite.
#[test]
fn elements_that_weigh_nothing() {
    let data = [1.0, f32::INFINITY, 2.0, f32::NAN, 3.0];
    let grid = Grid {
        sizes: &[5],
        places: &[-1.0, 1.0, 0.0, -3.0, 5.0],
        count: 5,
        channels: 1,
        corners: true,
        padding: Padding::Zeros,
    };
    at_each_level(|| {
        for filter in [Filter::Linear, Filter::Cubic { a: -0.75 }] {
            let mut out = [f32::NAN; 5];
            sample(&data, &grid, filter, 1, &mut out, ALONE).unwrap();
            assert_eq!(out, [1.0, 3.0, 2.0, 0.0, 0.0]);
            let (spans, weights) = table(window(filter, 1.0, false), 5, &[0.0, 2.0, 4.0, 2.0, 0.5]);
            let axis = Axis::Taps { input: 5, spans: &spans, weights: &weights };
            resample(&data, &[axis], &[0.0], &mut out, ALONE).unwrap();
            assert_eq!(out.map(|x| if x.is_finite() { x } else { -1.0 }), [1.0, 2.0, 3.0, 2.0, -1.0]);
        }
    });
}

/// Lines that are longer than what is known of them at a time, in parts of any length: each place by the definition.
#[test]
fn affine_places() {
    let check = |image: &[usize], corners: bool| {
        let (axes, count) = (image.len(), volume(1, image));
        let theta: Vec<f32> = (0..2 * axes * (axes + 1)).map(|k| (k * 37 % 11) as f32 / 7.0 - 0.6).collect();
        let coordinate = |at: usize, size: usize| match corners {
            true if size > 1 => 2.0 * at as f64 / (size as f64 - 1.0) - 1.0,
            _ => (2.0 * at as f64 + 1.0) / size as f64 - 1.0,
        };
        let want = (0..2 * count).flat_map(|k| {
            let position = crate::position_of(k % count, image);
            let point: Vec<f64> = position.iter().zip(image).rev().map(|(at, size)| coordinate(*at, *size)).collect();
            let rows = theta[k / count * axes * (axes + 1)..].chunks(axes + 1).take(axes);
            let moved = |row: &[f32]| {
                let products = row.iter().zip(&point).map(|(by, x)| f64::from(*by) * x);
                (products.sum::<f64>() + f64::from(row[axes])) as f32
            };
            rows.map(moved).collect::<Vec<_>>()
        });
        let want: Vec<f32> = want.collect();
        let stop = Stop::default();
        for (threads, stop) in [(1, None), (1, Some(&stop)), (3, None)] {
            let mut out = vec![f32::NAN; want.len()];
            on_threads(threads, || affine(&theta, image, corners, &mut out, Resources { threads, stop })).unwrap();
            assert!(out == want, "{image:?} {corners} {threads}");
        }
    };
    at_each_level(|| {
        for corners in [false, true] {
            check(&[sized(20, 2), sized(531, 259)], corners);
            check(&[3, 5, 7], corners);
            check(&[2, 1], corners);
        }
    });
}
