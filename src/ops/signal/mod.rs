//! Signals and their frequencies.

mod dft;
mod mel_weight_matrix;
mod stft;
mod windows;

use crate::operator::Implementation;
use crate::ops::prelude::*;

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
