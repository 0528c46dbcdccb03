//! Losses: how far scores are from labels.

mod log_likelihood;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] =
    &[log_likelihood::NEGATIVE_LOG_LIKELIHOOD_LOSS, log_likelihood::SOFTMAX_CROSS_ENTROPY_LOSS];
