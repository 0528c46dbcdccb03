//! Functions that have a way of their own over rows on some processors.

use super::Real;
use bytemuck::{try_cast_slice, try_cast_slice_mut};

/// A function with such a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Exp,
    Tanh,
    Gelu,
    GeluTanh,
}

impl Known {
    /// Computes a row with the bits of the function. False if there is no such way: nothing is written then.
    pub fn row<T: Real>(self, x: &[T], out: &mut [T]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if size_of::<T>() == size_of::<f32>()
            && crate::cpu::level() >= 4
            && let (Ok(x), Ok(out)) = (try_cast_slice(x), try_cast_slice_mut(out))
        {
            super::avx512::row(self, x, out);
            return true;
        }
        let _ = (x, out);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{exp, gelu, gelu_tanh, tanh};
    use crate::testing::{at_each_level, sized};

    /// The bits of the functions, whatever numbers are side by side and however many are left at the end.
    #[test]
    fn rows_have_the_bits_of_functions() {
        type Function = fn(f32) -> f32;
        let functions: [Function; 4] = [exp, tanh, gelu, gelu_tanh];
        let all = [Known::Exp, Known::Tanh, Known::Gelu, Known::GeluTanh].into_iter().zip(functions);
        let ends = [177.5f32, 103.9, 89.0, 88.72, 87.4, 21.2, 15.0, 12.9, 9.25, 8.2, 1e-40, 0.0, f32::INFINITY];
        let ends = ends.iter().flat_map(|x| [x.next_down(), *x, x.next_up(), -x.next_down(), -x, -x.next_up()]);
        // Some of any size among many that are ordinary, so that there are groups with and without.
        let number = |i: u32| match i % 1000 {
            999 => f32::from_bits(i.wrapping_mul(2_654_435_761)),
            _ => (i.wrapping_mul(40_503) % 200_001) as f32 * 1e-4 - 10.0,
        };
        let numbers: Vec<f32> = ends.chain([f32::NAN]).chain((0..sized(60_000, 500)).map(number)).collect();
        at_each_level(|| {
            for (known, function) in all.clone() {
                let mut out = vec![7.0; numbers.len() + 1];
                for len in (0..80).chain([203, numbers.len()]) {
                    let len = len.min(numbers.len());
                    out.fill(7.0);
                    if known.row(&numbers[..len], &mut out[..len]) {
                        assert_eq!(out[len], 7.0, "{known:?} of {len}");
                        for (x, got) in numbers[..len].iter().zip(&out) {
                            let want = function(*x);
                            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                            assert!(same, "{known:?}({x:e}) = {got:e}, not {want:e}, among {len}");
                        }
                    }
                    assert!(!known.row(&[1.0f64], &mut [0.0]));
                }
            }
        });
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn rows_have_a_way_with_avx512() {
        let mut out = [0.0; 3];
        assert_eq!(Known::Tanh.row(&[0f32; 3], &mut out), crate::cpu::level() >= 4);
    }
}
