//! Computes the next states of a row from the sums of its gates, number by number.

use crate::cpu::for_each_level;
use crate::functions::{Real, elu, sigmoid_in_place, softplus, tanh_in_place};
use crate::number::Float;

/// A function of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    Relu,
    Tanh,
    Sigmoid,
    /// `alpha * x + beta`
    Affine(f32, f32),
    /// `x` if it is not negative, else `alpha * x`
    LeakyRelu(f32),
    /// `x` from `alpha` on, else 0
    ThresholdedRelu(f32),
    /// `alpha * tanh(beta * x)`
    ScaledTanh(f32, f32),
    /// `alpha * x + beta`, between 0 and 1
    HardSigmoid(f32, f32),
    /// `x` if it is not negative, else `alpha * (e^x - 1)`
    Elu(f32),
    /// `x / (1 + |x|)`
    Softsign,
    /// `log(1 + e^x)`
    Softplus,
}

/// What a gate adds up.
pub(super) struct Gate<'a, T> {
    pub(super) input: &'a [T],
    pub(super) product: &'a [T],
    pub(super) biases: [&'a [T]; 2],
}

for_each_level! {
    /// `input + product + both biases`
    pub(super) fn total<T: Float>(gate: &Gate<'_, T>, to: &mut [T]) -> () = total_body::<T>;
}

#[inline(always)]
fn total_body<T: Float>(gate: &Gate<'_, T>, to: &mut [T]) {
    let [one, other] = gate.biases;
    for ((((to, input), product), one), other) in to.iter_mut().zip(gate.input).zip(gate.product).zip(one).zip(other) {
        *to = (*input + *product) + (*one + *other);
    }
}

for_each_level! {
    /// `input + bias + r * (product + other bias)`
    pub(super) fn reset<T: Float>(gate: &Gate<'_, T>, r: &[T], to: &mut [T]) -> () = reset_body::<T>;
}

#[inline(always)]
fn reset_body<T: Float>(gate: &Gate<'_, T>, r: &[T], to: &mut [T]) {
    let [one, other] = gate.biases;
    let sums = gate.input.iter().zip(gate.product).zip(one).zip(other);
    for ((to, r), (((input, product), one), other)) in to.iter_mut().zip(r).zip(sums) {
        *to = r.mul_add(*product + *other, *input + *one);
    }
}

for_each_level! {
    /// `to += a * b`
    pub(super) fn add_product<T: Float>(to: &mut [T], a: &[T], b: &[T]) -> () = add_product_body::<T>;
}

#[inline(always)]
fn add_product_body<T: Float>(to: &mut [T], a: &[T], b: &[T]) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = a.mul_add(*b, *to);
    }
}

for_each_level! {
    /// `to *= by`
    pub(super) fn multiply<T: Float>(to: &mut [T], by: &[T]) -> () = multiply_body::<T>;
}

#[inline(always)]
fn multiply_body<T: Float>(to: &mut [T], by: &[T]) {
    for (to, by) in to.iter_mut().zip(by) {
        *to = *to * *by;
    }
}

for_each_level! {
    /// `to = 1 - of`
    pub(super) fn complement<T: Float>(to: &mut [T], of: &[T]) -> () = complement_body::<T>;
}

#[inline(always)]
fn complement_body<T: Float>(to: &mut [T], of: &[T]) {
    for (to, of) in to.iter_mut().zip(of) {
        *to = T::ONE - *of;
    }
}

for_each_level! {
    /// `c = f * c + i * g`
    pub(super) fn remember<T: Float>(c: &mut [T], f: &[T], i: &[T], g: &[T]) -> () = remember_body::<T>;
}

#[inline(always)]
fn remember_body<T: Float>(c: &mut [T], f: &[T], i: &[T], g: &[T]) {
    for (((c, f), i), g) in c.iter_mut().zip(f).zip(i).zip(g) {
        *c = f.mul_add(*c, *i * *g);
    }
}

for_each_level! {
    /// `h = (1 - z) * n + z * h`
    pub(super) fn blend<T: Float>(h: &mut [T], z: &[T], n: &[T]) -> () = blend_body::<T>;
}

#[inline(always)]
fn blend_body<T: Float>(h: &mut [T], z: &[T], n: &[T]) {
    for ((h, z), n) in h.iter_mut().zip(z).zip(n) {
        *h = z.mul_add(*h, (T::ONE - *z) * *n);
    }
}

for_each_level! {
    /// Clips numbers, and replaces them by what a function makes of them.
    pub(super) fn activate<T: Real>(of: Activation, clip: Option<f32>, numbers: &mut [T]) -> () = activate_body::<T>;
}

#[inline(always)]
fn activate_body<T: Real>(of: Activation, clip: Option<f32>, numbers: &mut [T]) {
    macro_rules! each {
        (|$x:ident| $y:expr) => {
            for number in numbers.iter_mut() {
                let $x = *number;
                *number = $y;
            }
        };
    }
    let wide = |number: f32| T::of(number.into());
    if let Some(clip) = clip {
        let (least, most) = (wide(-clip), wide(clip));
        each!(|x| if x < least {
            least
        } else if x > most {
            most
        } else {
            x
        });
    }
    match of {
        Activation::Relu => each!(|x| x.larger(T::ZERO)),
        Activation::Tanh => tanh_in_place(numbers),
        Activation::Sigmoid => sigmoid_in_place(numbers),
        Activation::Affine(alpha, beta) => {
            let (alpha, beta) = (wide(alpha), wide(beta));
            each!(|x| alpha.mul_add(x, beta));
        }
        Activation::LeakyRelu(alpha) => {
            let alpha = wide(alpha);
            each!(|x| if x < T::ZERO { alpha * x } else { x });
        }
        Activation::ThresholdedRelu(alpha) => {
            let alpha = wide(alpha);
            each!(|x| if x < alpha { T::ZERO } else { x });
        }
        Activation::ScaledTanh(alpha, beta) => {
            let (alpha, beta) = (wide(alpha), wide(beta));
            each!(|x| beta * x);
            tanh_in_place(numbers);
            each!(|x| alpha * x);
        }
        Activation::HardSigmoid(alpha, beta) => {
            let (alpha, beta) = (wide(alpha), wide(beta));
            each!(|x| alpha.mul_add(x, beta).larger(T::ZERO).smaller(T::ONE));
        }
        Activation::Elu(alpha) => each!(|x| elu(x, alpha.into())),
        Activation::Softsign => each!(|x| x / (T::ONE + x.abs())),
        Activation::Softplus => each!(|x| softplus(x)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_each_level;

    #[test]
    fn activations() {
        use Activation::*;
        for (of, want) in [
            (Relu, [0.0, 0.0, 2.0]),
            (Tanh, [(-0.5f64).tanh(), 0.0, 2f64.tanh()]),
            (Sigmoid, [1.0 / (1.0 + 0.5f64.exp()), 0.5, 1.0 / (1.0 + (-2f64).exp())]),
            (Affine(3.0, 1.0), [-0.5, 1.0, 7.0]),
            (LeakyRelu(0.5), [-0.25, 0.0, 2.0]),
            (ThresholdedRelu(2.0), [0.0, 0.0, 2.0]),
            (ThresholdedRelu(-0.5), [-0.5, 0.0, 2.0]),
            (ScaledTanh(3.0, 0.5), [3.0 * (-0.25f64).tanh(), 0.0, 3.0 * 1f64.tanh()]),
            (HardSigmoid(0.5, 0.125), [0.0, 0.125, 1.0]),
            (Elu(2.0), [2.0 * (-0.5f64).exp_m1(), 0.0, 2.0]),
            (Softsign, [-1.0 / 3.0, 0.0, 2.0 / 3.0]),
            (Softplus, [(-0.5f64).exp().ln_1p(), std::f64::consts::LN_2, 2f64.exp().ln_1p()]),
        ] {
            at_each_level(|| {
                let (mut wide, mut narrow) = ([-0.5f64, 0.0, 2.0], [-0.5f32, 0.0, 2.0]);
                activate(of, None, &mut wide);
                activate(of, None, &mut narrow);
                for ((wide, narrow), want) in wide.iter().zip(narrow).zip(want) {
                    assert!((wide - want).abs() < 1e-15, "{of:?}: {wide} {want}");
                    assert!((f64::from(narrow) - want).abs() < 1e-7 * want.abs().max(1.0), "{of:?}: {narrow} {want}");
                }
                let mut clipped = [f32::NEG_INFINITY, f32::NAN, 0.25, 9.0];
                activate(Affine(2.0, 0.0), Some(0.5), &mut clipped);
                assert!(clipped[1].is_nan() && [clipped[0], clipped[2], clipped[3]] == [-1.0, 0.5, 1.0]);
            });
        }
    }
}
