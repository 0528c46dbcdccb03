//! Row kernels: one function on one type, over contiguous elements.

use crate::cpu::for_each_level;
use crate::format::Format;
use crate::functions::Real;
use crate::half::{Half, odd};
use crate::number::Int;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};

/// Computes a row from rows of `N` operands. They have equal lengths.
pub type Row<F, const N: usize> = fn(&F, [&[u8]; N], &mut [u8]);

/// A [`Row`] with its function.
pub type RowOf<'a, const N: usize> = dyn Fn([&[u8]; N], &mut [u8]) + Sync + 'a;

/// A function of `N` floats. float16 and bfloat16 are computed in `f32` and rounded once. `#[inline(always)]`, so that the
/// loop is compiled for each level of the processor.
pub trait Floats<const N: usize>: Sync {
    fn float<T: Real>(&self, x: [T; N]) -> T;

    /// Computes a row: [`Floats::float`] of each element, unless there is a faster way with the same results.
    fn row<T: Real>(&self, inputs: [&[T]; N], out: &mut [T])
    where
        Self: Sized,
    {
        at_best_level(FloatLoop { f: self, inputs, out });
    }
}

/// A function of `N` integers.
pub trait Ints<const N: usize>: Sync {
    fn int<T: Int>(&self, x: [T; N]) -> T;
}

/// A function of each byte of `N` elements.
pub trait Bytes<const N: usize>: Sync {
    fn byte(&self, x: [u8; N]) -> u8;
}

/// A question about `N` numbers.
pub trait Test<const N: usize>: Sync {
    fn test<T: PartialOrd + Copy>(&self, x: [T; N]) -> bool;
}

/// The row kernel of a function on floats.
pub fn float_row<F: Floats<N>, const N: usize>(format: Format) -> Option<Row<F, N>> {
    Some(match format {
        Format::Single => float::<F, f32, N>,
        Format::Double => float::<F, f64, N>,
        Format::Half(Half::F16) => |f, inputs, out| half(f, Half::F16, inputs, out),
        Format::Half(Half::Bf16) => |f, inputs, out| half(f, Half::Bf16, inputs, out),
        _ => return None,
    })
}

/// The row kernel of a function on floats and integers.
pub fn number_row<F: Floats<N> + Ints<N>, const N: usize>(format: Format) -> Option<Row<F, N>> {
    float_row(format).or_else(|| int_row(format))
}

/// The row kernel of a function on integers.
pub fn int_row<F: Ints<N>, const N: usize>(format: Format) -> Option<Row<F, N>> {
    Some(match format {
        Format::Signed(8) => int::<F, i8, N>,
        Format::Signed(16) => int::<F, i16, N>,
        Format::Signed(32) => int::<F, i32, N>,
        Format::Signed(64) => int::<F, i64, N>,
        Format::Unsigned(8) => int::<F, u8, N>,
        Format::Unsigned(16) => int::<F, u16, N>,
        Format::Unsigned(32) => int::<F, u32, N>,
        Format::Unsigned(64) => int::<F, u64, N>,
        _ => return None,
    })
}

/// The row kernel of a function on bytes.
pub fn byte_row<F: Bytes<N>, const N: usize>(_: Format) -> Option<Row<F, N>> {
    Some(|f, inputs, out| each(inputs, out, |x| f.byte(x)))
}

/// The row kernel of a question about numbers or bools: its output is bool.
pub fn test_row<F: Test<N>, const N: usize>(format: Format) -> Option<Row<F, N>> {
    Some(match format {
        Format::Single => test_single::<F, N>,
        Format::Double => test::<F, f64, N>,
        Format::Half(Half::F16) => |f, inputs, out| test_half(f, Half::F16, inputs, out),
        Format::Half(Half::Bf16) => |f, inputs, out| test_half(f, Half::Bf16, inputs, out),
        Format::Signed(8) => test::<F, i8, N>,
        Format::Signed(16) => test::<F, i16, N>,
        Format::Signed(32) => test::<F, i32, N>,
        Format::Signed(64) => test::<F, i64, N>,
        Format::Unsigned(8) | Format::Bool => test::<F, u8, N>,
        Format::Unsigned(16) => test::<F, u16, N>,
        Format::Unsigned(32) => test::<F, u32, N>,
        Format::Unsigned(64) => test::<F, u64, N>,
        _ => return None,
    })
}

fn float<F: Floats<N>, T: Real, const N: usize>(f: &F, inputs: [&[u8]; N], out: &mut [u8]) {
    f.row(inputs.map(cast_slice::<u8, T>), cast_slice_mut(out));
}

fn int<F: Ints<N>, T: Int, const N: usize>(f: &F, inputs: [&[u8]; N], out: &mut [u8]) {
    each(inputs.map(cast_slice::<u8, T>), cast_slice_mut(out), |x| f.int(x));
}

fn test<F: Test<N>, T: Pod + PartialOrd, const N: usize>(f: &F, inputs: [&[u8]; N], out: &mut [u8]) {
    each(inputs.map(cast_slice::<u8, T>), out, |x| u8::from(f.test(x)));
}

fn test_single<F: Test<N>, const N: usize>(f: &F, inputs: [&[u8]; N], out: &mut [u8]) {
    at_best_level(TestLoop { f, inputs: inputs.map(cast_slice), out });
}

fn half<F: Floats<N>, const N: usize>(f: &F, half: Half, inputs: [&[u8]; N], out: &mut [u8]) {
    narrowed(half, inputs, out, &|inputs, out| float::<F, f32, N>(f, inputs, out));
}

/// As [`half`], for the row kernel on `f32`.
fn narrowed<const N: usize>(half: Half, inputs: [&[u8]; N], out: &mut [u8], row: &RowOf<'_, N>) {
    let mut result = [0f32; WIDE];
    widened(half, inputs, out.len() / 2, &mut |at, inputs| {
        let result = result.get_mut(..inputs.first().map_or(0, |input| input.len())).unwrap_or(&mut []);
        row(inputs.map(cast_slice), cast_slice_mut(result));
        let out = cast_slice_mut(out).get_mut(at..at + result.len()).unwrap_or(&mut []);
        half.narrow(result, out);
    });
}

fn test_half<F: Test<N>, const N: usize>(f: &F, half: Half, inputs: [&[u8]; N], out: &mut [u8]) {
    widened(half, inputs, out.len(), &mut |at, inputs| {
        let out = out.get_mut(at..).unwrap_or(&mut []);
        let count = inputs.first().map_or(0, |input| input.len()).min(out.len());
        test_single::<F, N>(f, inputs.map(cast_slice), out.get_mut(..count).unwrap_or(&mut []));
    });
}

/// Whether each element has one of these bit patterns.
pub fn has_bits<T: Pod + Eq, const N: usize>(patterns: [T; N], input: &[u8], out: &mut [u8]) {
    each([cast_slice::<u8, T>(input)], out, |[x]| u8::from(patterns.contains(&x)));
}

/// `out[i] = if condition[i] { x[i] } else { y[i] }` for elements of `size` bytes.
pub fn select(size: usize, [condition, x, y]: [&[u8]; 3], out: &mut [u8]) {
    fn each<T: Pod>(condition: &[u8], x: &[u8], y: &[u8], out: &mut [u8]) {
        at_best_level(SelectLoop { condition, x: cast_slice::<u8, T>(x), y: cast_slice(y), out: cast_slice_mut(out) });
    }
    match size {
        1 => each::<u8>(condition, x, y, out),
        2 => each::<u16>(condition, x, y, out),
        4 => each::<u32>(condition, x, y, out),
        // A complex64 has the alignment of its parts.
        8 => each::<[u32; 2]>(condition, x, y, out),
        _ => each::<[u64; 2]>(condition, x, y, out),
    }
}

/// Numbers as `f64`: rounded if they are integers beyond 2^53.
pub fn to_f64(from: Format, input: &[u8], out: &mut [u8]) {
    fn with<T: Pod>(input: &[u8], out: &mut [u8], convert: fn(T) -> f64) {
        each([cast_slice::<u8, T>(input)], cast_slice_mut(out), |[x]| convert(x));
    }
    match from {
        Format::Single => with::<f32>(input, out, f64::from),
        Format::Double => with::<f64>(input, out, |x| x),
        Format::Half(Half::F16) => with(input, out, f16::to_f64),
        Format::Half(Half::Bf16) => with(input, out, bf16::to_f64),
        Format::Signed(8) => with::<i8>(input, out, f64::from),
        Format::Signed(16) => with::<i16>(input, out, f64::from),
        Format::Signed(32) => with::<i32>(input, out, f64::from),
        Format::Signed(64) => with::<i64>(input, out, |x| x as f64),
        Format::Unsigned(8) => with::<u8>(input, out, f64::from),
        Format::Unsigned(16) => with::<u16>(input, out, f64::from),
        Format::Unsigned(32) => with::<u32>(input, out, f64::from),
        Format::Unsigned(64) => with::<u64>(input, out, |x| x as f64),
        _ => {}
    }
}

/// `f64` as floats of another type, rounded once.
pub fn of_f64(to: Format, input: &[u8], out: &mut [u8]) {
    let input = [cast_slice::<u8, f64>(input)];
    match to {
        Format::Single => each(input, cast_slice_mut(out), |[x]| x as f32),
        Format::Double => each(input, cast_slice_mut(out), |[x]| x),
        Format::Half(Half::F16) => each(input, cast_slice_mut(out), |[x]| f16::from_f32(odd(x))),
        Format::Half(Half::Bf16) => each(input, cast_slice_mut(out), |[x]| bf16::from_f32(odd(x))),
        _ => {}
    }
}

/// The output `k` of a function of floats of any types: computed in `f64`, and rounded once.
pub fn rounded_row<const N: usize, const M: usize>(
    f: impl Fn([f64; N]) -> [f64; M],
    k: usize,
    (from, to): ([Format; N], Format),
    inputs: [&[u8]; N],
    out: &mut [u8],
) {
    let (mut wide, mut results) = ([[0f64; WIDE]; N], [0f64; WIDE]);
    for (block, out) in out.chunks_mut(WIDE * to.size()).enumerate() {
        let count = out.len() / to.size();
        for ((wide, input), from) in wide.iter_mut().zip(inputs).zip(from) {
            let size = WIDE * from.size();
            let input = input.get(block * size..).unwrap_or(&[]);
            let input = input.get(..count * from.size()).unwrap_or(input);
            to_f64(from, input, cast_slice_mut(wide));
        }
        for (i, result) in results.iter_mut().take(count).enumerate() {
            *result = f(at(&wide.each_ref().map(|wide| wide.as_slice()), i)).get(k).copied().unwrap_or(f64::NAN);
        }
        of_f64(to, cast_slice(results.get(..count).unwrap_or(&[])), out);
    }
}

/// Elements that are widened at a time.
const WIDE: usize = 256;

/// Calls `work` with the operands widened, part by part, and the position of each part.
fn widened<const N: usize>(half: Half, inputs: [&[u8]; N], count: usize, work: &mut dyn FnMut(usize, [&[f32]; N])) {
    let mut wide = [[0f32; WIDE]; N];
    for at in (0..count).step_by(WIDE) {
        let part = WIDE.min(count - at);
        for (wide, input) in wide.iter_mut().zip(inputs) {
            let from = cast_slice::<u8, u16>(input).get(at..at + part).unwrap_or(&[]);
            half.widen(from, wide.get_mut(..part).unwrap_or(&mut []));
        }
        work(at, wide.each_ref().map(|wide| wide.get(..part).unwrap_or(&[])));
    }
}

/// `out[i] = f(inputs[..][i])`
#[inline(always)]
fn each<A: Pod, B: Pod, const N: usize>(inputs: [&[A]; N], out: &mut [B], f: impl Fn([A; N]) -> B) {
    let (inputs, out) = of_equal_length(inputs, out);
    for (i, out) in out.iter_mut().enumerate() {
        *out = f(at(&inputs, i));
    }
}

#[inline(always)]
fn of_equal_length<'a, A, B, const N: usize>(
    mut inputs: [&'a [A]; N],
    out: &'a mut [B],
) -> ([&'a [A]; N], &'a mut [B]) {
    let mut count = out.len();
    for input in &inputs {
        count = count.min(input.len());
    }
    for input in &mut inputs {
        *input = input.split_at(count).0;
    }
    (inputs, out.split_at_mut(count).0)
}

/// The elements at a place that all inputs have.
#[inline(always)]
fn at<A: Pod, const N: usize>(inputs: &[&[A]; N], i: usize) -> [A; N] {
    let mut x = [A::zeroed(); N];
    for (x, input) in x.iter_mut().zip(inputs) {
        #[allow(clippy::indexing_slicing)]
        let element = input[i];
        *x = element;
    }
    x
}

/// A loop over a row. Methods, unlike closures, can be inlined for sure, so that the loop is vectorized at each level.
trait Loop {
    fn run(self);
}

/// What a loop computes of a block of each input.
trait Each<A, B, const N: usize> {
    fn each(&self, x: [&[A; BLOCK]; N]) -> [B; BLOCK];
}

struct FloatLoop<'a, F, T, const N: usize> {
    f: &'a F,
    inputs: [&'a [T]; N],
    out: &'a mut [T],
}

struct OfFloats<'a, F>(&'a F);

impl<F: Floats<N>, T: Real, const N: usize> Each<T, T, N> for OfFloats<'_, F> {
    #[inline(always)]
    fn each(&self, x: [&[T; BLOCK]; N]) -> [T; BLOCK] {
        let mut results = [T::ZERO; BLOCK];
        for (i, result) in results.iter_mut().enumerate() {
            *result = self.0.float(at_place(&x, i));
        }
        results
    }
}

impl<F: Floats<N>, T: Real, const N: usize> Loop for FloatLoop<'_, F, T, N> {
    #[inline(always)]
    fn run(self) {
        blocks(&OfFloats(self.f), self.inputs, self.out);
    }
}

struct TestLoop<'a, F, const N: usize> {
    f: &'a F,
    inputs: [&'a [f32]; N],
    out: &'a mut [u8],
}

struct OfNumbers<'a, F>(&'a F);

impl<F: Test<N>, const N: usize> Each<f32, u8, N> for OfNumbers<'_, F> {
    #[inline(always)]
    fn each(&self, x: [&[f32; BLOCK]; N]) -> [u8; BLOCK] {
        let mut results = [0; BLOCK];
        for (i, result) in results.iter_mut().enumerate() {
            *result = u8::from(self.0.test(at_place(&x, i)));
        }
        results
    }
}

impl<F: Test<N>, const N: usize> Loop for TestLoop<'_, F, N> {
    #[inline(always)]
    fn run(self) {
        blocks(&OfNumbers(self.f), self.inputs, self.out);
    }
}

struct SelectLoop<'a, T> {
    condition: &'a [u8],
    x: &'a [T],
    y: &'a [T],
    out: &'a mut [T],
}

impl<T: Pod> Loop for SelectLoop<'_, T> {
    #[inline(always)]
    fn run(self) {
        let SelectLoop { condition, x, y, out } = self;
        let (conditions, rest) = condition.as_chunks::<BLOCK>();
        let ((xs, x), (ys, y)) = (x.as_chunks::<BLOCK>(), y.as_chunks::<BLOCK>());
        let (outs, out) = out.as_chunks_mut::<BLOCK>();
        for (((out, condition), x), y) in outs.iter_mut().zip(conditions).zip(xs).zip(ys) {
            // Copies of all elements: those that are chosen would be loaded one by one.
            let (x, mut chosen) = (*x, *y);
            for ((chosen, condition), x) in chosen.iter_mut().zip(condition).zip(x) {
                *chosen = if *condition == 0 { *chosen } else { x };
            }
            *out = chosen;
        }
        for (((out, condition), x), y) in out.iter_mut().zip(rest).zip(x).zip(y) {
            *out = if *condition == 0 { *y } else { *x };
        }
    }
}

/// Elements that are computed together: a few vectors at each level.
const BLOCK: usize = 32;

/// `out[i] = f(inputs[..][i])`, by blocks alone: the last overlaps the one before, so that no element is computed by itself.
/// A row shorter than a block is filled up to one.
#[inline(always)]
fn blocks<A: Pod, B: Pod, const N: usize>(f: &impl Each<A, B, N>, inputs: [&[A]; N], out: &mut [B]) {
    let (mut inputs, out) = of_equal_length(inputs, out);
    let (len, mut filled, mut results) = (out.len(), [[A::zeroed(); BLOCK]; N], [B::zeroed(); BLOCK]);
    let to = if len < BLOCK {
        for (filled, input) in filled.iter_mut().zip(&mut inputs) {
            filled.iter_mut().zip(*input).for_each(|(to, from)| *to = *from);
            *input = filled;
        }
        &mut results
    } else {
        &mut *out
    };
    let (last, zeros) = (to.len() - BLOCK, [A::zeroed(); BLOCK]);
    for at in (0..to.len()).step_by(BLOCK) {
        let (at, mut x) = (at.min(last), [&zeros; N]);
        for (x, input) in x.iter_mut().zip(&inputs) {
            let Some(block) = input.get(at..).and_then(|rest| rest.first_chunk()) else { return };
            *x = block;
        }
        let Some(to) = to.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) else { return };
        *to = f.each(x);
    }
    if len < BLOCK {
        out.iter_mut().zip(results).for_each(|(to, result)| *to = result);
    }
}

/// The elements at a place of blocks.
#[inline(always)]
fn at_place<A: Pod, const N: usize>(blocks: &[&[A; BLOCK]; N], i: usize) -> [A; N] {
    let mut x = [A::zeroed(); N];
    for (x, block) in x.iter_mut().zip(blocks) {
        #[allow(clippy::indexing_slicing)]
        let element = block[i];
        *x = element;
    }
    x
}

#[inline(always)]
fn run<L: Loop>(row: L) {
    row.run();
}

for_each_level! {
    fn at_best_level<L: Loop>(row: L) -> () = run;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions;
    use crate::testing::at_each_level;

    struct Test3;

    impl Floats<3> for Test3 {
        #[inline(always)]
        fn float<T: Real>(&self, [x, y, z]: [T; 3]) -> T {
            functions::gelu(x).mul_add(y, z.larger(x))
        }
    }

    fn numbers(factor: u32) -> Vec<f32> {
        let spread = |i: u32| (i.wrapping_mul(factor) % 4001) as f32 / 100.0 - 20.0;
        (0..1003).map(spread).chain([f32::NAN, f32::INFINITY, -0.0]).collect()
    }

    /// A row in any type is what the function gives for each element, at each level.
    #[test]
    fn rows_are_their_functions() {
        let x = [numbers(40_503), numbers(77), numbers(1_235)];
        let row = |format| float_row::<Test3, 3>(format).unwrap();
        let want: Vec<f32> = (0..x[0].len()).map(|i| Test3.float([x[0][i], x[1][i], x[2][i]])).collect();
        let wide = x.each_ref().map(|x| x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
        let want_wide: Vec<f64> = (0..x[0].len()).map(|i| Test3.float([wide[0][i], wide[1][i], wide[2][i]])).collect();
        at_each_level(|| {
            let mut out = vec![0f32; want.len()];
            row(Format::Single)(&Test3, x.each_ref().map(|x| cast_slice(x)), cast_slice_mut(&mut out));
            for (out, want) in out.iter().zip(&want) {
                assert!(out.to_bits() == want.to_bits() || out.is_nan() && want.is_nan(), "{out} {want}");
            }
            let mut out = vec![0f64; want.len()];
            row(Format::Double)(&Test3, wide.each_ref().map(|x| cast_slice(x)), cast_slice_mut(&mut out));
            for (out, want) in out.iter().zip(&want_wide) {
                assert!(out.to_bits() == want.to_bits() || out.is_nan() && want.is_nan(), "{out} {want}");
            }
            for (format, half) in [(Format::Half(Half::F16), Half::F16), (Format::Half(Half::Bf16), Half::Bf16)] {
                let narrow = x.each_ref().map(|x| {
                    let mut narrow = vec![0u16; x.len()];
                    half.narrow(x, &mut narrow);
                    narrow
                });
                let mut out = vec![0u16; want.len()];
                row(format)(&Test3, narrow.each_ref().map(|x| cast_slice(x)), cast_slice_mut(&mut out));
                let mut wide = narrow.each_ref().map(|narrow| vec![0f32; narrow.len()]);
                narrow.iter().zip(&mut wide).for_each(|(narrow, wide)| half.widen(narrow, wide));
                let (mut want, mut back) = (vec![0u16; out.len()], vec![0f32; out.len()]);
                let each: Vec<f32> =
                    (0..out.len()).map(|i| Test3.float([wide[0][i], wide[1][i], wide[2][i]])).collect();
                half.narrow(&each, &mut want);
                half.widen(&out, &mut back);
                for ((out, want), back) in out.iter().zip(&want).zip(&back) {
                    assert!(out == want || back.is_nan(), "{out:x} {want:x}");
                }
            }
        });
    }

    /// Rows of a few elements are filled up; in others the last block overlaps.
    #[test]
    fn rows_of_each_length() {
        let x = [numbers(40_503), numbers(77), numbers(1_235)];
        let row = float_row::<Test3, 3>(Format::Single).unwrap();
        for len in 0..3 * BLOCK {
            let mut want: Vec<f32> = (0..len).map(|i| Test3.float([x[0][i], x[1][i], x[2][i]])).collect();
            want.push(7.0);
            at_each_level(|| {
                let mut out = vec![7f32; len + 1];
                row(&Test3, x.each_ref().map(|x| cast_slice(&x[..len])), cast_slice_mut(&mut out[..len]));
                assert_eq!(out, want);
            });
        }
    }

    struct Less;

    impl Test<2> for Less {
        #[inline(always)]
        fn test<T: PartialOrd + Copy>(&self, [x, y]: [T; 2]) -> bool {
            x < y
        }
    }

    #[test]
    fn questions_at_each_level() {
        let (x, y) = (numbers(40_503), numbers(77));
        let want: Vec<u8> = x.iter().zip(&y).map(|(x, y)| u8::from(x < y)).collect();
        at_each_level(|| {
            let mut out = vec![7; want.len()];
            let inputs = [cast_slice(&x), cast_slice(&y)];
            test_row::<Less, 2>(Format::Single).unwrap()(&Less, inputs, &mut out);
            assert_eq!(out, want);
        });
    }

    #[test]
    fn rows_of_mixed_types_are_rounded_once() {
        let (single, double): (Vec<f32>, Vec<f64>) =
            (0..700u16).map(|i| (f32::from(i) / 3.0, f64::from(i) / 7.0)).unzip();
        let (mut sums, mut products) = ([0f32; 700], [0f64; 700]);
        let (f, from) = (|[x, y]: [f64; 2]| [x + y, x * y], [Format::Single, Format::Double]);
        let inputs = [cast_slice(&single), cast_slice(&double)];
        rounded_row(f, 0, (from, Format::Single), inputs, cast_slice_mut(&mut sums));
        rounded_row(f, 1, (from, Format::Double), inputs, cast_slice_mut(&mut products));
        for (((x, y), sum), product) in single.iter().zip(&double).zip(sums).zip(products) {
            assert_eq!((sum, product), ((f64::from(*x) + y) as f32, f64::from(*x) * y));
        }
    }

    #[test]
    fn selections_of_each_size() {
        const LEN: usize = 2 * BLOCK + 5;
        let condition: Vec<u8> = (0..LEN).map(|i| u8::from(i % 3 == 1)).collect();
        for size in [1usize, 2, 4, 8, 16] {
            let fill =
                |from: u64| (0..LEN as u64 * size.div_ceil(8) as u64).map(|i| i * 7 + from).collect::<Vec<u64>>();
            let (x, y, mut out) = (fill(1), fill(900), fill(0));
            let cut = |words: &[u64]| cast_slice::<u64, u8>(words)[..LEN * size].to_vec();
            let (expect_x, expect_y) = (cut(&x), cut(&y));
            let rows = [&condition[..], &cast_slice(&x)[..LEN * size], &cast_slice(&y)[..LEN * size]];
            at_each_level(|| {
                out.fill(0);
                select(size, rows, &mut cast_slice_mut(&mut out)[..LEN * size]);
                for (i, out) in cut(&out).chunks(size).enumerate() {
                    let want = if condition[i] == 1 { &expect_x } else { &expect_y };
                    assert_eq!(out, &want[i * size..(i + 1) * size]);
                }
            });
        }
    }

    #[test]
    fn numbers_as_doubles_and_back() {
        let mut wide = [0f64; 3];
        to_f64(Format::Unsigned(64), cast_slice(&[u64::MAX, 1 << 53, 0]), cast_slice_mut(&mut wide));
        assert_eq!(wide, [18_446_744_073_709_551_616.0, 9_007_199_254_740_992.0, 0.0]);
        to_f64(Format::Signed(8), cast_slice(&[-128i8, 127, 0]), cast_slice_mut(&mut wide));
        assert_eq!(wide, [-128.0, 127.0, 0.0]);
        to_f64(
            Format::Half(Half::F16),
            cast_slice(&[f16::MAX, f16::NEG_INFINITY, f16::NEG_ZERO]),
            cast_slice_mut(&mut wide),
        );
        assert_eq!(wide, [65504.0, f64::NEG_INFINITY, 0.0]);
        // A float16 is rounded once: through float it would become 1.
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        let (x, mut half) = ([above, -above, 1.0 + 2f64.powi(-11) - 2f64.powi(-40), 1e300], [f16::ZERO; 4]);
        of_f64(Format::Half(Half::F16), cast_slice(&x), cast_slice_mut(&mut half));
        assert_eq!(half, [0x3c01, 0xbc01, 0x3c00, 0x7c00].map(f16::from_bits));
        let mut single = [0f32; 4];
        of_f64(Format::Single, cast_slice(&x), cast_slice_mut(&mut single));
        assert_eq!(single, x.map(|x| x as f32));
    }
}
