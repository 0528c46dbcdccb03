//! Normalization of lanes: softmax and its relatives, and by mean and variance.

mod layer;
mod scaled;
mod softmax;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] =
    &[softmax::SOFTMAX, softmax::LOG_SOFTMAX, softmax::HARDMAX, layer::LAYER_NORMALIZATION, layer::RMS_NORMALIZATION];
