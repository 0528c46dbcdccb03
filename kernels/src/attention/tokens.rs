//! Kernels on rows of tokens: rotary embeddings and causal convolutions.

use crate::cpu::for_each_level;
use crate::{Lookout, Stop, Stopped};

for_each_level! {
    /// Turns the first numbers of a row by as many angles as there are cosines: those of each pair, neighbours if
    /// `interleaved`, else in two halves.
    pub fn turn<>(from: &[f32], cos: &[f32], sin: &[f32], interleaved: bool, to: &mut [f32], stop: Option<&Stop>) -> Result<(), Stopped>
        = turn_body;
}

#[inline(always)]
fn turn_body(
    from: &[f32],
    cos: &[f32],
    sin: &[f32],
    interleaved: bool,
    to: &mut [f32],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let turned = 2 * cos.len();
    let (Some((from, from_rest)), Some((to, to_rest))) =
        (from.split_at_checked(turned), to.split_at_mut_checked(turned))
    else {
        return Err(Stopped::Misfit);
    };
    let turn = |a: f32, b: f32, cos: f32, sin: f32| (cos * a - sin * b, sin * a + cos * b);
    let mut lookout = Lookout::new(stop);
    for (to, from) in to_rest.chunks_mut(ANGLES).zip(from_rest.chunks(ANGLES)) {
        lookout.after(2 * size_of_val(from))?;
        to.copy_from_slice(from);
    }
    if interleaved {
        let (mut from_pairs, mut to_pairs) = (from.as_chunks::<2>().0, to.as_chunks_mut::<2>().0);
        for (cos, sin) in cos.chunks(ANGLES).zip(sin.chunks(ANGLES)) {
            lookout.after(4 * size_of_val(cos))?;
            let (from, to);
            (from, from_pairs) = from_pairs.split_at(cos.len());
            (to, to_pairs) = to_pairs.split_at_mut(cos.len());
            for ((from, to), (cos, sin)) in from.iter().zip(to).zip(cos.iter().zip(sin)) {
                let ([a, b], [real, imaginary]) = (*from, to);
                (*real, *imaginary) = turn(a, b, *cos, *sin);
            }
        }
        return Ok(());
    }
    let ((a, b), (real, imaginary)) = (from.split_at(cos.len()), to.split_at_mut(cos.len()));
    let operands = a.chunks(ANGLES).zip(b.chunks(ANGLES)).zip(cos.chunks(ANGLES).zip(sin.chunks(ANGLES)));
    let results = real.chunks_mut(ANGLES).zip(imaginary.chunks_mut(ANGLES));
    for (((a, b), (cos, sin)), (real, imaginary)) in operands.zip(results) {
        lookout.after(4 * size_of_val(cos))?;
        let angles = cos.iter().zip(sin);
        for (((a, b), (real, imaginary)), (cos, sin)) in a.iter().zip(b).zip(real.iter_mut().zip(imaginary)).zip(angles)
        {
            (*real, *imaginary) = turn(*a, *b, *cos, *sin);
        }
    }
    Ok(())
}

/// Angles between two checks whether to stop.
const ANGLES: usize = 1 << 12;

for_each_level! {
    /// Convolves a row behind its past, which is one shorter than the weights, or zeros.
    pub fn causal_row<>(past: Option<&[f32]>, from: &[f32], weights: &[f32], bias: f32, to: &mut [f32], lookout: &mut Lookout<'_>) -> Result<(), Stopped>
        = causal_row_body;
}

/// Each output sums its taps in their order.
#[inline(always)]
fn causal_row_body(
    past: Option<&[f32]>,
    from: &[f32],
    weights: &[f32],
    bias: f32,
    to: &mut [f32],
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    to.fill(0.0);
    for (tap, weight) in weights.iter().enumerate() {
        lookout.after(size_of_val(to))?;
        // The outputs whose tap is in the past.
        let missing = weights.len() - 1 - tap;
        let (early, late) = to.split_at_mut(missing.min(to.len()));
        match past.map(|past| past.get(tap..).unwrap_or_default()) {
            Some(past) => early.iter_mut().zip(past).for_each(|(to, from)| *to = weight.mul_add(*from, *to)),
            // Infinity times 0 is no number.
            None => early.iter_mut().for_each(|to| *to = weight.mul_add(0.0, *to)),
        }
        for (to, from) in late.iter_mut().zip(from) {
            *to = weight.mul_add(*from, *to);
        }
    }
    to.iter_mut().for_each(|to| *to += bias);
    Ok(())
}
