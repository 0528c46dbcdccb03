//! Normalization of lanes: softmax and its relatives, and by mean and variance.

mod batch;
mod group;
mod image_scaler;
mod layer;
mod lp;
mod lrn;
mod mean_variance;
mod scaled;
mod softmax;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    softmax::SOFTMAX,
    softmax::LOG_SOFTMAX,
    softmax::HARDMAX,
    layer::LAYER_NORMALIZATION,
    layer::RMS_NORMALIZATION,
    group::INSTANCE_NORMALIZATION,
    group::GROUP_NORMALIZATION,
    lp::LP_NORMALIZATION,
    mean_variance::MEAN_VARIANCE_NORMALIZATION,
    batch::BATCH_NORMALIZATION,
    lrn::LRN,
    image_scaler::IMAGE_SCALER,
];
