//! The kernel against the plain triple loop: the same bits for each level, layout, number of threads and type.

use super::operand::ZeroPoints;
use super::*;
use crate::Stopped;
use crate::testing::at_each_level;
use crate::testing::sized;
use crate::{Resources, Stop};
use half::{bf16, f16};

/// A number from a seed.
pub(super) trait Sample: Operand<Sum: PartialEq> + PartialEq {
    fn sample(seed: u64) -> Self;
}

macro_rules! samples {
    ($($type:ident: $seed:ident => $value:expr;)*) => {$(
        impl Sample for $type {
            fn sample($seed: u64) -> $type {
                $value
            }
        }
    )*};
}

samples! {
    f32: seed => (seed >> 40) as f32 / (1 << 22) as f32 - 2.0;
    f64: seed => (seed >> 11) as f64 / (1u64 << 51) as f64 - 2.0;
    f16: seed => f16::from_f32(f32::sample(seed));
    bf16: seed => bf16::from_f32(f32::sample(seed));
    i32: seed => (seed >> 32) as i32;
    u32: seed => (seed >> 32) as u32;
    i64: seed => seed as i64;
    u64: seed => seed;
    u8: seed => (seed >> 40) as u8;
    i8: seed => (seed >> 40) as i8;
}

pub(super) fn samples<S: Sample>(count: usize, seed: u64) -> Vec<S> {
    (0..count as u64).map(|at| S::sample((at + 1 + seed * 0x1_0001).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

/// How an operand is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    Rows,
    Columns,
    /// Rows that are some elements apart, and elements of a row too.
    Loose,
    /// All rows are the same.
    Repeated,
    Packed,
}

impl Layout {
    /// The distance of rows and columns, of elements, of matrices.
    fn strides(self, rows: usize, columns: usize) -> (usize, usize, usize) {
        match self {
            Layout::Rows | Layout::Packed => (columns, 1, rows * columns),
            Layout::Columns => (1, rows, rows * columns),
            Layout::Loose => (2 * columns + 3, 2, rows * (2 * columns + 3)),
            Layout::Repeated => (0, 1, columns),
        }
    }
}

struct Case {
    m: usize,
    k: usize,
    n: usize,
    layouts: [Layout; 2],
    /// For each dimension its size, and whether it is in `a` and in `b`.
    batch: Vec<(usize, bool, bool)>,
}

pub(super) fn one<S: Operand>(element: S) -> S::Sum {
    let mut sum = [S::Sum::ZERO];
    S::widen(bytemuck::bytes_of(&element), &mut sum);
    sum[0]
}

/// The sum that is written as an element.
pub(super) fn written<O: Operand>(sum: O::Sum) -> O {
    let mut element = [O::zeroed()];
    O::narrow(&[sum], &mut element);
    element[0]
}

/// The sum of products in the order of all products.
pub(super) fn sum<T: Number>(k: usize, product: impl Fn(usize) -> (T, T)) -> T {
    let block = |first: usize| {
        (first..k.min(first + BLOCK)).fold(T::ZERO, |sum, p| {
            let (a, b) = product(p);
            a.mul_add(b, sum)
        })
    };
    (0..k).step_by(BLOCK).map(block).reduce(T::add).unwrap_or(T::ZERO)
}

/// Where a matrix of a batch starts.
pub(super) fn start(batch: &[Batch], mut matrix: usize, stride: impl Fn(&Batch) -> usize) -> usize {
    let mut start = 0;
    for batch in batch.iter().rev() {
        start += matrix % batch.size * stride(batch);
        matrix /= batch.size;
    }
    start
}

fn check<S: Sample>(case: &Case) {
    check_mixed::<S, S, S>(case, false);
}

/// With operands of any types; with `zero` points for each row and column of each matrix, or for all.
fn check_mixed<A: Sample<Sum = O::Sum>, B: Sample<Sum = O::Sum>, O: Sample>(case: &Case, zero: bool) {
    let &Case { m, k, n, layouts: [layout_a, layout_b], .. } = case;
    let (a_row, a_column, a_len) = layout_a.strides(m, k);
    let (b_row, b_column, b_len) = layout_b.strides(k, n);
    let (mut a_next, mut b_next, mut batch) = (a_len, b_len, Vec::new());
    for &(size, in_a, in_b) in case.batch.iter().rev() {
        batch.push(Batch { size, a: if in_a { a_next } else { 0 }, b: if in_b { b_next } else { 0 } });
        a_next *= if in_a { size } else { 1 };
        b_next *= if in_b { size } else { 1 };
    }
    batch.reverse();
    // Not at the start of memory, and the bytes of `b` at an odd address: nothing relies on alignment.
    let (a, b) = (samples::<A>(a_next + 1, 1), samples::<B>(b_next, 2));
    let a = &a[1..];
    let b_bytes = [&[0], bytemuck::cast_slice(&b)].concat();
    let count: usize = batch.iter().map(|batch| batch.size).product();
    // Zero points for each row of each matrix, unless they are packed, and for each column.
    let (zero_a, zero_b) = (samples::<A>(count * m + m + 1, 6), samples::<B>(n + 1, 7));
    let sizes = batch.iter().rev().scan(m, |next, batch| Some(std::mem::replace(next, *next * batch.size)));
    let mut zero_batch: Vec<usize> = sizes.collect();
    zero_batch.reverse();
    let of_matrix = if layout_a == Layout::Packed { 0 } else { m };
    let number = |element: O::Sum, zero_point: O::Sum| if zero { element.sub(zero_point) } else { element };
    let [wide_a, wide_zero_a] = [a, &zero_a].map(|elements| elements.iter().map(|a| one(*a)).collect::<Vec<_>>());
    let [wide_b, wide_zero_b] = [&b, &zero_b].map(|elements| elements.iter().map(|b| one(*b)).collect::<Vec<_>>());
    let mut want = Vec::new();
    for matrix in 0..count {
        let (a_start, b_start) = (start(&batch, matrix, |batch| batch.a), start(&batch, matrix, |batch| batch.b));
        for i in 0..m {
            for j in 0..n {
                want.push(written::<O>(sum(k, |p| {
                    let (a, b) =
                        (wide_a[a_start + i * a_row + p * a_column], wide_b[b_start + p * b_row + j * b_column]);
                    (number(a, wide_zero_a[matrix * of_matrix + i]), number(b, wide_zero_b[j]))
                })));
            }
        }
    }
    at_each_level(|| {
        for aligned in [true, false].into_iter().take(if m * k * n * count < 1 << 12 { 2 } else { 1 }) {
            let packing = Resources { threads: 2, stop: None };
            let (count_a, count_b) = (a_next / a_len.max(1), b_next / b_len.max(1));
            let mut packed_a = vec![O::Sum::ZERO; packed_len_of::<A>(Side::Left, count_a, (m, k))];
            let mut packed_b = vec![O::Sum::ZERO; packed_len_of::<B>(Side::Right, count_b, (k, n))];
            let mut view = match aligned {
                true => View::new(&b, b_row, b_column),
                false => View::of_bytes::<B>(&b_bytes[1..], b_row, b_column),
            };
            let mut left = View::new(a, a_row, a_column);
            if zero {
                let batch = if layout_a == Layout::Packed { &[][..] } else { &zero_batch };
                let strides = Strides { batch, ..Strides::ROWS };
                left = left.less(ZeroPoints::new(&zero_a, strides));
                view = view.less(ZeroPoints::new(&zero_b, Strides::COLUMNS));
            }
            let right = if layout_b == Layout::Packed {
                pack(Side::Right, view, (count_b, b_len), (k, n), &mut packed_b, packing).unwrap();
                Right::Packed(Packed::of::<B>(Side::Right, &packed_b))
            } else {
                Right::View(view)
            };
            let left = if layout_a == Layout::Packed {
                pack(Side::Left, left, (count_a, a_len), (m, k), &mut packed_a, packing).unwrap();
                Left::Packed(Packed::of::<A>(Side::Left, &packed_a))
            } else {
                Left::View(left)
            };
            for threads in if m * k * n * count < 1 << 18 { 1..2 } else { 1..4 } {
                let product = Product::<O> { m, k, n, a: left, b: right, batch: &batch, epilogue: &[] };
                let resources = Resources { threads, stop: None };
                let plan = product.plan(resources);
                let mut scratch = vec![O::Sum::ZERO; plan.scratch()];
                let mut out = samples::<O>(count * m * n, 3);
                plan.run(&mut out, &mut scratch, resources).unwrap();
                let wrong = out.iter().zip(&want).position(|(out, want)| out != want);
                let types = std::any::type_name::<(A, B, O)>();
                assert_eq!(wrong, None, "{m} x {k} x {n}, {:?}, {batch:?}, {threads} threads, {types}", case.layouts);
            }
        }
    });
}

fn check_types(case: &Case) {
    check::<f32>(case);
    check::<f64>(case);
    check::<f16>(case);
    check::<bf16>(case);
    check::<i32>(case);
    check::<u32>(case);
    check::<i64>(case);
    check::<u64>(case);
    check_bytes(case);
    check_floats(case);
}

/// Operands and outputs of different widths.
fn check_floats(case: &Case) {
    check_mixed::<f16, f32, f32>(case, false);
    check_mixed::<f32, bf16, f32>(case, false);
    check_mixed::<f32, f32, f16>(case, false);
}

/// Operands of 8 bits, with zero points.
fn check_bytes(case: &Case) {
    check_mixed::<u8, i8, i32>(case, true);
    check_mixed::<u8, u8, i32>(case, true);
    check_mixed::<i8, i8, i32>(case, true);
    check_mixed::<i8, u8, i32>(case, true);
}

const LAYOUTS: [[Layout; 2]; 10] = [
    [Layout::Rows, Layout::Rows],
    [Layout::Rows, Layout::Packed],
    [Layout::Rows, Layout::Columns],
    [Layout::Columns, Layout::Rows],
    [Layout::Columns, Layout::Packed],
    [Layout::Loose, Layout::Loose],
    [Layout::Repeated, Layout::Repeated],
    [Layout::Packed, Layout::Rows],
    [Layout::Packed, Layout::Columns],
    [Layout::Packed, Layout::Packed],
];

#[test]
fn tiles_of_each_size() {
    for m in sized(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13][..], &[1, 5]) {
        for n in sized(&[1, 3, 16, 17, 31, 32, 45, 131][..], &[3]) {
            for layouts in LAYOUTS {
                let case = Case { m: *m, k: 5, n: *n, layouts, batch: vec![] };
                if [1, 5, 13].contains(m) && [1, 3, 45].contains(n) { check_types(&case) } else { check::<f32>(&case) }
            }
        }
    }
}

/// More steps, rows and columns than a block has, and `a` with rows that are a page apart.
#[test]
fn blocks() {
    let long = Case { m: 14, k: sized(1630, 11), n: 35, layouts: LAYOUTS[0], batch: vec![] };
    for layouts in LAYOUTS {
        check_mixed::<i8, u8, i32>(&Case { layouts, batch: vec![], ..long }, true);
        check_mixed::<u8, i8, i32>(&Case { m: 1, n: sized(150, 5), layouts, batch: vec![], ..long }, true);
        // Tiles of two small matrices by one and by two.
        let wide = Case { m: sized(55, 9), k: sized(139, 7), n: sized(44, 3), layouts, batch: vec![] };
        check_mixed::<i8, i8, i32>(&wide, true);
    }
    for (m, k, n) in sized(&[(1, 401, 300), (13, 390, 35), (6, 1024, 130), (251, 3, 40), (17, 3, 700)][..], &[]) {
        for layouts in LAYOUTS {
            let case = Case { m: *m, k: *k, n: *n, layouts, batch: vec![] };
            // What is packed stands no page apart.
            if layouts[0] != Layout::Packed || *k < 1024 {
                check::<f32>(&case);
            }
            if layouts[0] == Layout::Rows && *k < 1024 {
                check::<bf16>(&case);
                check_mixed::<u8, i8, i32>(&case, true);
            }
        }
    }
    for layouts in [LAYOUTS[0], LAYOUTS[1], LAYOUTS[2]].into_iter().filter(|_| !cfg!(miri)) {
        // Long rows of `b`, and a column.
        check::<f32>(&Case { m: 1, k: 20, n: 4200, layouts, batch: vec![] });
        check::<f32>(&Case { m: 1, k: 1000, n: 900, layouts, batch: vec![(2, false, true)] });
        check::<u64>(&Case { m: 1, k: 771, n: 800, layouts, batch: vec![] });
        check_floats(&Case { m: 1, k: 771, n: 800, layouts, batch: vec![] });
        check::<f32>(&Case { m: 45, k: 400, n: 1, layouts, batch: vec![(2, true, true)] });
    }
    // A row of more steps than are done at once, and than are looked at.
    check::<f32>(&Case { m: 1, k: sized(2900, 3), n: 140, layouts: LAYOUTS[1], batch: vec![] });
    check::<f16>(&Case { m: 1, k: sized(2900, 3), n: 33, layouts: LAYOUTS[1], batch: vec![] });
    check::<f16>(&Case { m: 1, k: sized(8200, 3), n: 131, layouts: LAYOUTS[1], batch: vec![] });
    check::<f32>(&Case { m: 1, k: sized(8200, 3), n: 130, layouts: LAYOUTS[6], batch: vec![] });
    check::<f64>(&Case { m: 14, k: sized(900, 3), n: 20, layouts: LAYOUTS[1], batch: vec![] });
    check::<i64>(&Case { m: 14, k: sized(900, 3), n: 20, layouts: LAYOUTS[1], batch: vec![] });
}

/// Weights with less than all their bits, which change sums where these are small: at first, where they cancel, and where what
/// is weighed is large.
#[test]
fn weights_that_are_tiny() {
    let (m, k, n) = (sized(14, 5), sized(500, 20), sized(70, 33));
    let signed = |value: f32, seed: usize| if seed.is_multiple_of(2) { value } else { -value };
    // Some rows have small ones alone, and each block of steps begins with such.
    let kind = |at: usize| match at / k {
        1 => at % 12,
        row if row % 3 == 0 || at % k % BLOCK < row * 5 => at % 17,
        _ => at * 7 % 23,
    };
    let weight = |at: usize| match kind(at) {
        0..12 => signed(f32::from_bits(1 + (at * 3571 % 0x7f_ffff) as u32), at),
        12..14 => signed(f32::MIN_POSITIVE * 2f32.powi(at as i32 % 37), at / 3),
        14..17 => signed(0.0, at),
        // They cancel where what they weigh is the same.
        17..20 => signed(1.0, at / 23),
        _ => signed(at as f32 / 1e3, at),
    };
    let weighed = |at: usize| match at % n {
        column @ 0..40 if !(at / n).is_multiple_of(17) => signed(1.5f32.powi(column as i32 * 6 - 120), column),
        40..42 => f32::MAX,
        42 if (at / n).is_multiple_of(101) => f32::INFINITY,
        43 => 1e-40,
        44 => 0.0,
        _ => ((at % 1009) as f32 - 500.0) * 1e6,
    };
    let (a, b): (Vec<f32>, Vec<f32>) = ((0..m * k).map(weight).collect(), (0..k * n).map(weighed).collect());
    check_weights(&a, &b, (m, k, n));
    // Many that are tiny together are just so large that the last weight is rounded up.
    let (few, last) = (sized(300, 15), 2f32.powi(-51) * (1.0 + f32::EPSILON));
    let weights: Vec<f32> = (0..=few).map(|p| if p < few { 2f32.powi(-127) } else { last }).collect();
    let weighed: Vec<f32> = (0..(few + 1) * n)
        .map(|at| match at / n {
            0 => 1.0,
            p if p < few => 2f32.powi(24),
            _ => 1.5 - f32::EPSILON,
        })
        .collect();
    check_weights(&weights.repeat(m), &weighed, (m, few + 1, n));
}

fn check_weights(a: &[f32], b: &[f32], (m, k, n): (usize, usize, usize)) {
    let want: Vec<f32> = (0..m * n).map(|at| sum(k, |p| (a[at / n * k + p], b[p * n + at % n]))).collect();
    let columns: Vec<f32> = (0..m * k).map(|at| a[at % m * k + at / m]).collect();
    let resources = Resources { threads: 1, stop: None };
    at_each_level(|| {
        for a in [View::new(a, k, 1), View::new(&columns, 1, m)] {
            let (a, b) = (Left::View(a), Right::View(View::rows(b, n)));
            let plan = Product::<f32> { m, k, n, a, b, batch: &[], epilogue: &[] }.plan(resources);
            let mut out = vec![f32::NAN; m * n];
            plan.run(&mut out, &mut vec![0.0; plan.scratch()], resources).unwrap();
            for (at, (out, want)) in out.iter().zip(&want).enumerate() {
                let same = out.to_bits() == want.to_bits() || out.is_nan() && want.is_nan();
                assert!(same, "{out} at {at}, which is {want}");
            }
        }
    });
}

#[test]
#[cfg(feature = "rayon")]
fn threads_share_blocks_and_batches() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    pool.install(|| {
        for (m, k, n) in sized(&[(1, 300, 999), (70, 30, 200), (500, 70, 9)][..], &[]) {
            for layouts in &LAYOUTS[..3] {
                check::<f32>(&Case { m: *m, k: *k, n: *n, layouts: *layouts, batch: vec![] });
            }
        }
        for layouts in LAYOUTS {
            let (m, k, n) = sized((20, 30, 40), (6, 5, 7));
            check::<f32>(&Case { m, k, n, layouts, batch: vec![(sized(30, 1), true, true)] });
        }
    });
}

#[test]
fn batches() {
    for layouts in LAYOUTS.into_iter().step_by(sized(1, 3)) {
        for batch in [
            vec![(3, true, true)],
            vec![(3, true, false)],
            vec![(3, false, true)],
            vec![(2, true, true), (3, true, false)],
            vec![(2, false, true), (3, true, false), (1, true, true)],
            vec![(2, true, false), (3, true, false)],
        ] {
            for &m in sized(&[1, 3][..], &[3]) {
                check::<f32>(&Case { m, k: 4, n: 5, layouts, batch: batch.clone() });
                if !cfg!(miri) {
                    check::<f16>(&Case { m, k: 4, n: 5, layouts, batch: batch.clone() });
                    check_bytes(&Case { m, k: 4, n: 5, layouts, batch: batch.clone() });
                    check_bytes(&Case { m, k: 4, n: 1, layouts, batch: batch.clone() });
                }
            }
        }
    }
}

#[test]
fn nothing() {
    for [m, k, n] in [[0, 3, 4], [3, 0, 4], [3, 4, 0], [0, 0, 0], [1, 0, 40]] {
        for layouts in LAYOUTS.into_iter().step_by(sized(1, 6)) {
            check_types(&Case { m, k, n, layouts, batch: vec![] });
            check_types(&Case { m, k, n, layouts, batch: vec![(2, true, true)] });
            check_types(&Case { m, k, n, layouts, batch: vec![(0, true, false)] });
        }
    }
}

pub(super) fn product<'a>(m: usize, k: usize, n: usize, a: &'a [f32], b: &'a [f32]) -> Product<'a, f32> {
    let (a, b) = (Left::View(View::rows(a, k)), Right::View(View::rows(b, n)));
    Product { m, k, n, a, b, batch: &[], epilogue: &[] }
}

pub(super) fn run<S: Operand>(product: Product<'_, S>, out: &mut [S]) -> Result<(), Stopped> {
    let resources = Resources { threads: 1, stop: None };
    let plan = product.plan(resources);
    plan.run(out, &mut vec![S::Sum::ZERO; plan.scratch()], resources)
}

/// [`scratch_for`] is enough, also for smaller products.
#[test]
fn scratch_that_is_enough() {
    let sizes = [1, 2, 5, 16, 31, 33, 127, 128, 240, 241, 255, 256, 300, 511, 513, 1000, 2049, 5000];
    let strides = |m, k, n| {
        [((k, 1), (n, 1)), ((1, m), (n, 1)), ((k, 1), (1, k)), ((1, m), (1, k)), ((1, 0), (0, 1)), ((2, 3), (3, 2))]
    };
    let check = |m: usize, k: usize, n: usize| {
        for (a, b) in strides(m, k, n) {
            let view = |(row, column)| View::new(&[0f32], row, column);
            let (a, b) = (Left::View(view(a)), Right::View(view(b)));
            let product = Product::<f32> { m, k, n, a, b, batch: &[], epilogue: &[] };
            let takes = product.plan(Resources { threads: 1, stop: None }).scratch();
            for enough in [scratch_for(m, k, n), scratch_for(m + 1, k + 1, n + 1)] {
                assert!(takes <= enough, "{takes} > {enough}: {product:?}");
            }
        }
    };
    let sizes = sized(&sizes[..], &sizes[..4]);
    for &m in sizes {
        sizes.iter().for_each(|&k| sizes.iter().for_each(|&n| check(m, k, n)));
    }
}

#[test]
fn operands_that_do_not_fit() {
    let numbers = [0f32; 32];
    let numbers: &[f32] = &numbers[numbers.as_ptr().align_offset(64)..][..12];
    let fails = |product: Product<'_, f32>, len: usize| {
        assert_eq!(run(product, &mut vec![0.0; len]), Err(Stopped::Misfit), "{product:?}");
    };
    fails(product(3, 4, 3, numbers, numbers), 8);
    fails(product(3, 4, 3, &numbers[1..], numbers), 9);
    fails(product(3, 4, 3, numbers, &numbers[1..]), 9);
    fails(Product { batch: &[Batch { size: 2, a: 0, b: 1 }], ..product(3, 4, 3, numbers, numbers) }, 18);
    let far = Left::View(View::new(numbers, usize::MAX, 1));
    fails(Product { a: far, ..product(3, 4, 3, numbers, numbers) }, 9);
    let c = |elements, strides| Scaled { alpha: 1.0, beta: 1.0, c: Some(Broadcast { elements, strides }) };
    fails(Product { epilogue: &[&c(&numbers[..2], Strides::COLUMNS)], ..product(3, 4, 3, numbers, numbers) }, 9);
    let batch = Strides { batch: &[1], ..Strides::ONE };
    fails(Product { epilogue: &[&c(numbers, batch)], ..product(3, 4, 3, numbers, numbers) }, 9);
    let packed = Right::Packed(Packed::new(Side::Right, &numbers[..11]));
    fails(Product { b: packed, ..product(3, 4, 3, numbers, numbers) }, 9);
    let packed = Left::Packed(Packed::new(Side::Left, &numbers[..11]));
    fails(Product { a: packed, ..product(3, 4, 3, numbers, numbers) }, 9);
    let other = Left::Packed(Packed::new(Side::Right, numbers));
    fails(Product { a: other, ..product(3, 4, 3, numbers, numbers) }, 9);
    let zero = ZeroPoints::new(&numbers[..2], Strides::ROWS);
    let less = Left::View(View::rows(numbers, 4).less(zero));
    fails(Product { a: less, ..product(3, 4, 3, numbers, numbers) }, 9);
    let of_columns = Left::View(View::rows(numbers, 4).less(ZeroPoints::new(numbers, Strides::COLUMNS)));
    fails(Product { a: of_columns, ..product(3, 4, 3, numbers, numbers) }, 9);
    let few = View::rows(numbers, 3).less(ZeroPoints::new(&numbers[..2], Strides::COLUMNS));
    let alone = Resources { threads: 1, stop: None };
    assert_eq!(pack(Side::Right, few, (1, 0), (4, 3), &mut [0.0; 32], alone), Err(Stopped::Misfit));
}

#[test]
fn factors_of_integers() {
    assert_eq!(i32::scale(7, -2.0, Some((5, 3.0))), 1);
    assert_eq!(i32::scale(i32::MIN as u32, -1.0, None) as i32, i32::MIN);
    assert_eq!(i32::scale(-7i32 as u32, 0.5, None) as i32, -3);
    assert_eq!(i32::scale(7, 0.5, Some((5, 0.5))), 6);
    assert_eq!(u32::scale(7, -0.5, None), 0);
    assert_eq!(i64::scale(1, f32::INFINITY, None), i64::MAX as u64);
    assert_eq!(i64::scale(1, f32::NAN, None), 0);
    assert_eq!(u64::scale(3, (1u64 << 62) as f32, None), 3 << 62);
}

#[test]
fn a_long_product_is_cancelled() {
    let stop = Stop::default();
    stop.stop();
    let numbers = vec![1f32; 1 << 10];
    for (m, n) in [(1, 1), (1, 200), (40, 40)] {
        // All steps read the same numbers.
        let a = Left::View(View::new(&numbers, 0, 0));
        let b = Right::View(View::new(&numbers, 0, 1));
        let k = 1 << 40;
        let product = Product::<f32> { m, k, n, a, b, batch: &[], epilogue: &[] };
        for threads in [1, 2] {
            let resources = Resources { threads, stop: Some(&stop) };
            let plan = product.plan(resources);
            let outcome = plan.run(&mut vec![0.0; m * n], &mut vec![0.0; plan.scratch()], resources);
            assert_eq!(outcome, Err(Stopped::Cancelled));
        }
    }
}

/// Long sums are as exact as their blocks: a sum in one run would be off by some hundred times as much.
#[test]
#[cfg_attr(miri, ignore)]
fn long_sums_are_exact_enough() {
    let k = 1_000_000;
    let (a, b) = (samples::<f32>(k, 4), samples::<f32>(k, 5));
    let (a, b): (Vec<f32>, Vec<f32>) = (a.iter().map(|x| x.abs()).collect(), b.iter().map(|x| x.abs()).collect());
    let exact = crate::exact::dot(a.iter().copied().zip(b.iter().copied())).nearest::<f64>();
    let (left, right) = (Left::View(View::rows(&a, k)), Right::View(View::rows(&b, 1)));
    let product = Product::<f32> { m: 1, k, n: 1, a: left, b: right, batch: &[], epilogue: &[] };
    let alone = Resources { threads: 1, stop: None };
    let plan = product.plan(alone);
    let mut out = [0f32];
    plan.run(&mut out, &mut vec![0.0; plan.scratch()], alone).unwrap();
    assert!((f64::from(out[0]) / exact - 1.0).abs() < 2e-5, "{} {exact}", out[0]);
}
