//! Pow: powers. The result has the type of the base, whatever that of the exponent.
//! <https://onnx.ai/onnx/operators/onnx__Pow.html>

use super::{Elementwise, align, no_row};
use crate::ops::prelude::*;

pub(super) const POW: Implementation =
    Implementation::rowwise("Pow", &[1, 7, 12, 13, 15], |node| Ok(Arc::new(Pow { align: align(node)? })));

/// `Z = X^Y`; the powers of an integer are rounded toward 0, and wrap.
#[derive(Debug)]
struct Pow {
    align: Align,
}

impl Rowwise for Pow {
    fn may_chain(&self, _: DType) -> bool {
        false
    }

    fn aligns_last(&self) -> bool {
        self.align == Align::Last
    }

    fn compute(&self, _: DType, _: &[&[u8]], _: &mut [u8]) {}

    /// Powers of floats, if they have a shorter way.
    fn of_constants(&self, base: DType, constant: &Constants<'_>) -> Option<Arc<dyn Rowwise>> {
        // An axis may be none of the base.
        let anywhere = base.is_float() && !matches!(self.align, Align::At(Some(_)));
        let exponent = constant(1).filter(|exponent| anywhere && exponent.rank() == 0 && exponent.dtype() == base)?;
        let short = Short::of_element(exponent.bytes(), base)?;
        Some(Elementwise::new(short, float_row, Align::Last).shared())
    }
}

impl Operator for Pow {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (base, exponent) = (call.tensor(0)?.dtype(), call.tensor(1)?.dtype());
        let (x, y) = (Held::Input(0), Held::Input(1));
        let output = match base {
            DType::Int32 | DType::Int64 => {
                let y = if exponent.is_float() { widened(call, 1, exponent)? } else { y };
                let row = if base == DType::Int32 { powers::<i32>(exponent) } else { powers::<i64>(exponent) };
                call.rowwise([x, y], self.align, base, &row)?
            }
            _ if base == exponent => self.floats(call, [x, y], base)?,
            _ => {
                let held = [widened(call, 0, base)?, widened(call, 1, exponent)?];
                let wide = Held::Own(self.floats(call, held, DType::Double)?);
                call.rowwise([wide], Align::Last, base, &|[x], out| of_f64(base.format(), x, out))?
            }
        };
        Ok(output.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_broadcast(self.align)
    }
}

impl Pow {
    fn floats(&self, call: &mut Call<'_>, held: [Held; 2], dtype: DType) -> Result<Tensor> {
        let [_, exponents] = &held;
        match Short::of(call.held(exponents)?.bytes(), dtype, call)? {
            Some(short) => {
                let row = float_row(dtype.format()).ok_or_else(|| no_row(dtype))?;
                call.rowwise(held, self.align, dtype, &|[x, _], out| row(&short, [x], out))
            }
            None => {
                let row = float_row(dtype.format()).ok_or_else(|| no_row(dtype))?;
                call.rowwise(held, self.align, dtype, &|inputs, out| row(&Power, inputs, out))
            }
        }
    }
}

/// The elements of an input as doubles.
fn widened(call: &mut Call<'_>, k: usize, dtype: DType) -> Result<Held> {
    call.rowwise([Held::Input(k)], Align::Last, DType::Double, &|[x], out| to_f64(dtype.format(), x, out))
        .map(|wide| Held::Replaced(k, wide))
}

/// The powers of integers by exponents of a type; floats are doubles.
fn powers<T: Int>(exponent: DType) -> fn([&[u8]; 2], &mut [u8]) {
    match exponent {
        DType::Int8 => rows::<T, i8>,
        DType::Int16 => rows::<T, i16>,
        DType::Int32 => rows::<T, i32>,
        DType::Int64 => rows::<T, i64>,
        DType::Uint8 => rows::<T, u8>,
        DType::Uint16 => rows::<T, u16>,
        DType::Uint32 => rows::<T, u32>,
        DType::Uint64 => rows::<T, u64>,
        _ => rows::<T, f64>,
    }
}

fn rows<T: Int, Y: Exponent>([x, y]: [&[u8]; 2], out: &mut [u8]) {
    let (x, y) = (cast_slice::<u8, T>(x), cast_slice::<u8, Y>(y));
    for ((out, x), y) in cast_slice_mut(out).iter_mut().zip(x).zip(y) {
        *out = y.power_of(*x);
    }
}

/// An exponent of integers.
trait Exponent: Pod {
    /// 0 where the power is infinite or NaN.
    fn power_of<T: Int>(self, x: T) -> T;
}

impl Exponent for f64 {
    fn power_of<T: Int>(self, x: T) -> T {
        if self.abs() < (1u64 << 63) as f64 && self == self.trunc() {
            return integer_power(x, self as i128);
        }
        let power = functions::pow(x.to_i128() as f64, self);
        if power.is_finite() { T::wrapped(power as i128) } else { T::ZERO }
    }
}

macro_rules! exponents {
    ($($type:ident)*) => {$(
        impl Exponent for $type {
            fn power_of<T: Int>(self, x: T) -> T {
                integer_power(x, self.into())
            }
        }
    )*};
}

exponents!(i8 i16 i32 i64 u8 u16 u32 u64);

/// By an exponent between -2^63 and 2^64.
fn integer_power<T: Int>(x: T, y: i128) -> T {
    if y < 0 {
        return match x.to_i128() {
            1 => x,
            -1 if y % 2 == 0 => T::ONE,
            -1 => x,
            _ => T::ZERO,
        };
    }
    let (mut power, mut square, mut rest) = (T::ONE, x, y as u64);
    while rest > 0 {
        if rest & 1 == 1 {
            power = power.times(square);
        }
        square = square.times(square);
        rest >>= 1;
    }
    power
}

#[derive(Debug)]
struct Power;

impl Floats<2> for Power {
    #[inline(always)]
    fn float<T: Real>(&self, [x, y]: [T; 2]) -> T {
        let mut power = functions::pow(x, y);
        for short in Short::ALL {
            let short_power = short.float([x]);
            power = if y == T::of(short.exponent()) { short_power } else { power };
        }
        power
    }
}

/// [`Power`] where all exponents are the same, and one that has a shorter way.
#[derive(Debug, Clone, Copy)]
enum Short {
    Square,
    Cube,
    Root,
    Inverse,
}

impl Short {
    const ALL: [Short; 4] = [Short::Square, Short::Cube, Short::Root, Short::Inverse];

    #[inline(always)]
    const fn exponent(self) -> f64 {
        match self {
            Short::Square => 2.0,
            Short::Cube => 3.0,
            Short::Root => 0.5,
            Short::Inverse => -1.0,
        }
    }

    /// The way of an exponent.
    fn of_element(exponent: &[u8], dtype: DType) -> Option<Short> {
        let (mut aligned, mut number) = ([0u64], [f64::NAN]);
        let aligned = cast_slice_mut::<u64, u8>(&mut aligned).get_mut(..exponent.len())?;
        aligned.copy_from_slice(exponent);
        to_f64(dtype.format(), aligned, cast_slice_mut(&mut number));
        Short::ALL.into_iter().find(|short| [short.exponent()] == number)
    }

    /// The way of all these exponents.
    fn of(exponents: &[u8], dtype: DType, call: &Call<'_>) -> Result<Option<Short>> {
        let Some(first) = exponents.get(..dtype.size()) else { return Ok(None) };
        let Some(short) = Short::of_element(first, dtype) else { return Ok(None) };
        for block in call.lookout().blocks(exponents) {
            if !block?.chunks_exact(dtype.size()).all(|exponent| exponent == first) {
                return Ok(None);
            }
        }
        Ok(Some(short))
    }
}

impl Floats<1> for Short {
    #[inline(always)]
    fn float<T: Real>(&self, [x]: [T; 1]) -> T {
        match self {
            Short::Square => x * x,
            Short::Cube => functions::cube(x),
            Short::Root => functions::root(x),
            Short::Inverse => T::ONE / x,
        }
    }

    /// Each way has a loop of its own.
    fn row<T: Real>(&self, inputs: [&[T]; 1], out: &mut [T]) {
        match self {
            Short::Square => Way::<{ Short::Square as usize }>.row(inputs, out),
            Short::Cube => Way::<{ Short::Cube as usize }>.row(inputs, out),
            Short::Root => Way::<{ Short::Root as usize }>.row(inputs, out),
            Short::Inverse => Way::<{ Short::Inverse as usize }>.row(inputs, out),
        }
    }
}

/// The [`Short`] with a number.
struct Way<const NUMBER: usize>;

impl<const NUMBER: usize> Floats<1> for Way<NUMBER> {
    #[inline(always)]
    fn float<T: Real>(&self, x: [T; 1]) -> T {
        if let Some(short) = Short::ALL.get(NUMBER) { short.float(x) } else { T::of(f64::NAN) }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{int, run, tensor};
    use half::{bf16, f16};

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    #[test]
    fn floats() {
        run("Pow", 15, [], [&[1f32, 2.0, 3.0].into(), &[4f32, 5.0, 6.0].into()]).gives([1f32, 32.0, 729.0]);
        run("Pow", 7, [], [&[3f64, -1.5].into(), &tensor(&[], [2f64])]).gives([9f64, 2.25]);
        run("Pow", 13, [], [&[4f32, -8.0, 0.0, 1.0, -0.0].into(), &[0.5f32, 0.5, -1.0, NAN, -3.0].into()])
            .gives([2f32, NAN, INF, 1.0, -INF]);
        run("Pow", 13, [], [&vec![f16::from_f32(3.0)].into(), &vec![f16::from_f32(2.0)].into()])
            .gives(vec![f16::from_f32(9.0)]);
        let a = tensor(&[2, 3], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        run("Pow", 1, [int("broadcast", 1), int("axis", 0)], [&a, &[2f32, 1.0].into()])
            .gives(tensor(&[2, 3], [1f32, 4.0, 9.0, 4.0, 5.0, 6.0]));
        run("Pow", 1, [], [&a, &[2f32, 1.0].into()]).fails("without broadcast they must be equal");
    }

    #[test]
    fn exponents_of_other_types() {
        run("Pow", 12, [], [&[1f32, 2.0, 3.0].into(), &[4i64, -1, 2].into()]).gives([1f32, 0.5, 9.0]);
        run("Pow", 12, [], [&[3f32].into(), &[2u8].into()]).gives([9f32]);
        run("Pow", 13, [], [&vec![bf16::from_f32(-3.0)].into(), &[3i32].into()]).gives(vec![bf16::from_f32(-27.0)]);
        run("Pow", 15, [], [&vec![f16::from_f32(2.0)].into(), &vec![bf16::from_f32(0.5)].into()])
            .gives(vec![f16::from_f32(2f32.sqrt())]);
        run("Pow", 12, [], [&tensor(&[2, 1], [2f64, 3.0]), &[0u64, 1, 5].into()])
            .gives(tensor(&[2, 3], [1f64, 2.0, 32.0, 1.0, 3.0, 243.0]));
    }

    #[test]
    fn integers() {
        run("Pow", 12, [], [&[3i64, -2, 7, 0, 10].into(), &[39i64, 63, 0, 0, 18].into()]).gives([
            3i64.pow(39),
            i64::MIN,
            1,
            1,
            10i64.pow(18),
        ]);
        run("Pow", 12, [], [&[3i32, 2, -3].into(), &[21i32, 32, 21].into()]).gives([
            3i32.wrapping_pow(21),
            0,
            (-3i32).wrapping_pow(21),
        ]);
        run("Pow", 12, [], [&[1i32, 2, 3, 10].into(), &[4f32, 0.5, 2.5, 2.0].into()]).gives([1i32, 1, 15, 100]);
        run("Pow", 12, [], [&[1i32, -1, 2, -2, 0, 5].into(), &[-3i8, -3, -1, -1, -1, -2].into()])
            .gives([1i32, -1, 0, 0, 0, 0]);
        run("Pow", 12, [], [&[2i64, 1, -4].into(), &[f32::INFINITY, NAN, 0.5].into()]).gives([0i64, 1, 0]);
    }

    /// Exponents that float64 doesn't have.
    #[test]
    fn exponents_beyond_floats() {
        let odd = (1i64 << 53) + 1;
        run("Pow", 12, [], [&[-1i64, 3, -1, 3, -1].into(), &[odd, odd, -odd, -odd, i64::MIN].into()]).gives([
            -1i64,
            6_593_269_854_470_406_147,
            -1,
            0,
            1,
        ]);
        run("Pow", 12, [], [&[-1i32, 3, 2].into(), &[u64::MAX, u64::MAX, 1 << 63].into()]).gives([
            -1i32,
            3i32.wrapping_pow(u32::MAX),
            0,
        ]);
    }
}
