//! Signals and their frequencies.

mod dft;
mod mel_weight_matrix;
mod stft;
mod windows;

use crate::ops::prelude::*;
use kernels::fourier::{self, Places, Transform};

pub(super) static ALL: &[Implementation] = &[
    dft::DFT,
    stft::STFT,
    windows::HANN_WINDOW,
    windows::HAMMING_WINDOW,
    windows::BLACKMAN_WINDOW,
    mel_weight_matrix::MEL_WEIGHT_MATRIX,
];

/// The number of frequencies of a real signal of this length: those that don't follow from others.
fn frequencies(length: &Dim) -> Dim {
    let half = Formula::of(length).and_then(|length| length.floor_over(2));
    half.and_then(|half| half.plus(&Formula::from(1))).map_or(Dim::Unknown, |count| count.dim())
}

/// The transforms of `count` lanes of `x`, computed in `T` and rounded once. Samples are multiplied by those of the window.
fn transformed<T: Element + Float>(
    call: &Call<'_>,
    kind: fourier::Kind,
    count: usize,
    places: [&Places; 2],
    x: &Tensor,
    window: Option<&Tensor>,
    shape: Shape,
) -> Result<Values> {
    let context = call.context();
    let mut output = Output::<T>::new(context, x.dtype(), shape)?;
    if count == 0 {
        return Ok(output.finish()?.into());
    }
    // Turns are computed as for one more lane.
    call.charge(kind.work().saturating_mul(count as u64 + 1))?;
    let (mut x_room, mut window_room) = (None, None);
    let x = elements_of::<T>(context, x, &mut x_room)?;
    let window = window.map(|window| elements_of::<T>(context, window, &mut window_room)).transpose()?;
    let mut kept = call.scratch::<T>(kind.kept())?;
    let threads = call.threads().clamp(1, count);
    let mut benches = call.scratch::<T>(kind.bench(count).saturating_mul(threads))?;
    let transform = Transform::new(kind, kept.elements_mut(), benches.elements_mut(), call.resources())?;
    let (out, benches) = (output.elements_mut()?, benches.elements_mut());
    transform.run(count, places, x, window.unwrap_or(&[]), out, benches, call.resources())?;
    Ok(output.finish()?.into())
}

/// Fails if a length is known and less than 1.
fn check_length(length: Option<&Formula>, parameter: &str) -> Result<()> {
    match length.and_then(Formula::number) {
        Some(length @ ..1) => {
            let text = format!("the length of the transform is {length}: it must be at least 1");
            Err(Error::input(text).parameter(parameter).value(length))
        }
        _ => Ok(()),
    }
}

/// What is larger than any size.
#[cold]
fn beyond() -> Error {
    Error::input("the output is larger than can be counted")
}
