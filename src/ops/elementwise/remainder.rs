//! Mod: what remains of a division.
//! <https://onnx.ai/onnx/operators/onnx__Mod.html>

use super::Elementwise;
use crate::ops::prelude::*;

/// The text of versions 10 and 13 wants `fmod = 1` for floats. An official case doesn't, and means what version 28 says.
pub(super) const MOD: Implementation = Implementation::rowwise("Mod", &[10, 13, 28], |node| {
    let function = Mod { truncates: node.is_set("fmod")? };
    Ok(Elementwise::new(function, number_row, Align::Last).dividing().shared())
});

/// `C = A - floor(A / B) * B` with the sign of B, or `A - trunc(A / B) * B` with the sign of A
#[derive(Debug)]
struct Mod {
    truncates: bool,
}

impl Floats<2> for Mod {
    #[inline(always)]
    fn float<T: Real>(&self, [a, b]: [T; 2]) -> T {
        let rest = a.remainder(b);
        if self.truncates {
            rest
        } else if rest == T::ZERO {
            rest.copysign(b)
        } else if (rest < T::ZERO) == (b < T::ZERO) {
            rest
        } else {
            rest + b
        }
    }
}

impl Ints<2> for Mod {
    fn int<T: Int>(&self, [a, b]: [T; 2]) -> T {
        let rest = a.remainder(b);
        if self.truncates || rest == T::ZERO || (rest < T::ZERO) == (b < T::ZERO) { rest } else { rest.plus(b) }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{int, outputs, run};
    use half::{bf16, f16};

    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;

    #[test]
    fn integers() {
        let (a, b) = ([-4i32, 7, 5, 4, -7, 8].into(), [2i32, -3, 8, -2, 3, 5].into());
        run("Mod", 13, [], [&a, &b]).gives([0i32, -2, 5, 0, 2, 3]);
        run("Mod", 10, [int("fmod", 1)], [&a, &b]).gives([0i32, 1, 5, 0, -1, 3]);
        run("Mod", 28, [], [&[250u8, 7].into(), &[240u8].into()]).gives([10u8, 7]);
        run("Mod", 13, [], [&[i64::MIN].into(), &[-1i64].into()]).gives([0i64]);
        run("Mod", 13, [], [&[1i8].into(), &[0i8].into()]).fails("\"B\"[0] = 0: an integer can't be divided by 0");
    }

    #[test]
    fn floats() {
        let a = [5.5, -5.5, 5.5, -5.5, -0.0, 0.0, INF, 1.0, 3.0, -3.0, NAN, 1.0];
        let b = [2.0, 2.0, -2.0, -2.0, 2.0, -2.0, 1.0, 0.0, INF, INF, 1.0, NAN];
        let check = |fmod, want: [f64; 12]| {
            let got = outputs("Mod", 28, [int("fmod", fmod)], [&a.into(), &b.into()]);
            for (got, want) in got[0].tensor().unwrap().as_slice::<f64>().unwrap().iter().zip(want) {
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{got} {want}");
            }
        };
        check(0, [1.5, 0.5, -0.5, -1.5, 0.0, -0.0, NAN, NAN, 3.0, INF, NAN, NAN]);
        check(1, [1.5, -1.5, 1.5, -1.5, -0.0, 0.0, NAN, NAN, 3.0, -3.0, NAN, NAN]);
        run("Mod", 28, [], [&vec![f16::from_f32(-4.3)].into(), &vec![f16::from_f32(2.1)].into()])
            .gives(vec![f16::from_f32(2.0 - 0.001_953_125)]);
        run("Mod", 28, [], [&vec![bf16::from_f32(-3.0)].into(), &vec![bf16::from_f32(2.0)].into()])
            .gives(vec![bf16::ONE]);
    }
}
