//! Optimizers: steps of a training. Gradient, which they need, doesn't run.

mod gradient;
mod optimizers;

use crate::operator::Implementation;

/// Where they are among the domains.
const DOMAIN: &str = "ai.onnx.preview.training";

pub(super) static ALL: &[Implementation] =
    &[optimizers::ADAGRAD, optimizers::ADAM, gradient::GRADIENT, optimizers::MOMENTUM];
