//! Quotients as integers of 8 bits: `saturate(round(number / scale) + zero point)`, ties to even; 0 for NaN.

use crate::cpu::{for_each_level, is_fused};
use crate::quantize::{Precision, rounded};

/// What numbers are divided by, the zero point that is added, and the range of the integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Divided {
    pub(super) scale: f32,
    /// An integer of the range.
    pub(super) zero: f32,
    pub(super) limits: [f32; 2],
}

/// As many integers as there are numbers, or room for.
pub(super) fn write(numbers: impl Iterator<Item = f32>, to: Divided, out: &mut [u8]) {
    match Inverse::of(to) {
        Some(inverse) => write_each(numbers, inverse, out),
        None => write_each(numbers, to, out),
    }
}

for_each_level! {
    fn write_each<I: Iterator<Item = f32>, B: Byte>(numbers: I, to: B, out: &mut [u8]) -> () = write_body::<I, B>;
}

#[inline(always)]
fn write_body<I: Iterator<Item = f32>, B: Byte>(numbers: I, to: B, out: &mut [u8]) {
    for (out, number) in out.iter_mut().zip(numbers) {
        *out = to.byte(number);
    }
}

/// What makes a byte of a number.
trait Byte: Copy {
    fn byte(self, number: f32) -> u8;
}

impl Byte for Divided {
    #[inline(always)]
    fn byte(self, number: f32) -> u8 {
        rounded(number / self.scale, self.zero, self.limits[0], self.limits[1])
    }
}

/// The same integers without a division, which takes as long as ten other operations.
///
/// A number that is multiplied by the inverse in two parts is less than a unit of the last place off the quotient; what is left
/// of it, exact in a fused operation, times the inverse mends that to the rounded quotient (Markstein's theorem; Muller et al.,
/// Handbook of Floating-Point Arithmetic). Of quotients so small that what is left isn't exact all become the same integer.
#[derive(Debug, Clone, Copy)]
struct Inverse {
    scale: f32,
    /// The inverse of the scale, rounded, and what that is off.
    inverse: [f32; 2],
    /// The numbers of the least and the greatest integer, which those beyond become too.
    ends: [f32; 2],
    zero: u8,
}

impl Inverse {
    /// `None` where multiplications aren't fused, or where some product might be too small or too large.
    fn of(Divided { scale, zero, limits }: Divided) -> Option<Inverse> {
        /// Neither these nor their inverses are near an end of what floats there are.
        const SCALES: [f32; 2] = [1e-24, 1e24];
        if !is_fused() || !(SCALES[0]..=SCALES[1]).contains(&scale) {
            return None;
        }
        let exact = 1.0 / f64::from(scale);
        let inverse = [exact as f32, (exact - f64::from(exact as f32)) as f32];
        Some(Inverse { scale, inverse, ends: limits.map(|limit| (limit - zero) * scale), zero: zero as i32 as u8 })
    }

    #[inline(always)]
    fn quotient(self, number: f32) -> f32 {
        let [inverse, off] = self.inverse;
        let near = number.mul_add(inverse, number * off);
        (-near).mul_add(self.scale, number).mul_add(inverse, near)
    }
}

impl Byte for Inverse {
    #[inline(always)]
    fn byte(self, number: f32) -> u8 {
        let [least, most] = self.ends;
        let within = if number < least { least } else { number };
        let within = if within > most { most } else { within };
        let byte = f32::byte(self.quotient(within)).wrapping_add(self.zero);
        if number.is_nan() { 0 } else { byte }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_each_level, sized};

    /// Numbers at and beside what is between two integers, and at the ends of what there is.
    #[test]
    fn as_by_divisions() {
        let mut seed = 1u32;
        let mut mantissas = || {
            seed = seed.wrapping_mul(0x9e37_79b1).wrapping_add(77);
            f32::from_bits(0x3f80_0000 | seed >> 9)
        };
        let ends =
            [1.0f32, 1f32.next_up(), 2f32.next_down(), 1.5, 1e-24, 1e24, 9e-25, 2e24, -1.0, 0.0, 1e-45, f32::NAN];
        let scales = (0..sized(400, 6)).map(|at: i32| mantissas() * (at as f32 / 8.0 - 25.0).exp2());
        let scales: Vec<f32> = ends.into_iter().chain(scales).collect();
        for (at, &scale) in scales.iter().enumerate() {
            let [zero, least] = [[0.0, 0.0], [77.0, 0.0], [-128.0, -128.0], [5.0, -128.0]][at % 4];
            let between = (-514..=514).step_by(sized(1, 37)).flat_map(|twice: i16| {
                let number = f32::from(twice) / 2.0 * scale;
                [
                    number.next_down().next_down(),
                    number.next_down(),
                    number,
                    number.next_up(),
                    number.next_up().next_up(),
                ]
            });
            let others = [f32::NAN, f32::INFINITY, -f32::INFINITY, f32::MAX, f32::MIN, 1e-45, -0.0, 1e-38, -1e-30];
            let numbers: Vec<f32> = between.chain(others).collect();
            let to = Divided { scale, zero, limits: [least, least + 255.0] };
            let want: Vec<u8> = numbers.iter().map(|number| to.byte(*number)).collect();
            at_each_level(|| {
                let mut out = vec![9; numbers.len()];
                write(numbers.iter().copied(), to, &mut out);
                let apart = (0..out.len()).find(|at| out[*at] != want[*at]).map(|at| (numbers[at], out[at], want[at]));
                assert_eq!(apart, None, "{to:?}");
            });
        }
    }

    /// Quotients as near to the middle between two floats as quotients get: `n * 2^25` and the product of a scale and of such a
    /// middle, all of them integers, differ by 1.
    #[test]
    fn inverses_divide() {
        for scale in ((1u32 << 23) + 1..1 << 24).step_by(sized(22, 100_000)) {
            // Each step makes twice as many bits of the inverse modulo 2^25 right: three are to begin with.
            let inverse =
                (0..4).fold(scale, |inverse, _| inverse.wrapping_mul(2u32.wrapping_sub(scale.wrapping_mul(inverse))));
            for (middle, off) in [(inverse % (1 << 25), -1), (inverse.wrapping_neg() % (1 << 25), 1)] {
                let number = (u64::from(scale) * u64::from(middle)).wrapping_add_signed(off) >> 25;
                let (number, scale) = (number as f32, scale as f32);
                let Some(inverse) = Inverse::of(Divided { scale, zero: 0.0, limits: [0.0, 255.0] }) else { return };
                assert_eq!(inverse.quotient(number), number / scale, "{number} / {scale}");
            }
        }
    }
}
