//! Rows of tokens: rotated, convolved, and gathered in a state.

use crate::kernels::cpu::for_each_level;
use crate::kernels::functions::sigmoid;

for_each_level! {
    /// Turns the first numbers of a row by as many angles as there are cosines: those of each pair, neighbours if
    /// `interleaved`, else in two halves.
    pub(crate) fn turn<>(from: &[f32], cos: &[f32], sin: &[f32], interleaved: bool, to: &mut [f32]) -> () = turn_body;
}

#[inline(always)]
fn turn_body(from: &[f32], cos: &[f32], sin: &[f32], interleaved: bool, to: &mut [f32]) {
    let turned = 2 * cos.len();
    let (Some((from, from_rest)), Some((to, to_rest))) =
        (from.split_at_checked(turned), to.split_at_mut_checked(turned))
    else {
        return;
    };
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to = *from;
    }
    let turn = |a: f32, b: f32, cos: f32, sin: f32| (cos * a - sin * b, sin * a + cos * b);
    let angles = cos.iter().zip(sin);
    if interleaved {
        for ((from, to), (cos, sin)) in from.as_chunks::<2>().0.iter().zip(to.as_chunks_mut::<2>().0).zip(angles) {
            let ([a, b], [real, imaginary]) = (*from, to);
            (*real, *imaginary) = turn(a, b, *cos, *sin);
        }
        return;
    }
    let ((a, b), (real, imaginary)) = (from.split_at(cos.len()), to.split_at_mut(cos.len()));
    for (((a, b), (real, imaginary)), (cos, sin)) in a.iter().zip(b).zip(real.iter_mut().zip(imaginary)).zip(angles) {
        (*real, *imaginary) = turn(*a, *b, *cos, *sin);
    }
}

for_each_level! {
    /// Convolves a row behind its past, which is one shorter than the weights, or zeros.
    pub(crate) fn causal_row<>(past: Option<&[f32]>, from: &[f32], weights: &[f32], bias: f32, to: &mut [f32]) -> () = causal_row_body;
}

/// Each output sums its taps in their order.
#[inline(always)]
fn causal_row_body(past: Option<&[f32]>, from: &[f32], weights: &[f32], bias: f32, to: &mut [f32]) {
    to.fill(0.0);
    for (tap, weight) in weights.iter().enumerate() {
        // The outputs whose tap is in the past.
        let missing = weights.len() - 1 - tap;
        let (early, late) = to.split_at_mut(missing.min(to.len()));
        if let Some(past) = past.and_then(|past| past.get(tap..)) {
            for (to, from) in early.iter_mut().zip(past) {
                *to = weight.mul_add(*from, *to);
            }
        }
        for (to, from) in late.iter_mut().zip(from) {
            *to = weight.mul_add(*from, *to);
        }
    }
    to.iter_mut().for_each(|to| *to += bias);
}

for_each_level! {
    /// `x * sigmoid(x)`
    pub(crate) fn silu<>(numbers: &mut [f32]) -> () = silu_body;
}

#[inline(always)]
fn silu_body(numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|x| *x *= sigmoid(*x));
}
