//! Optimizers: steps of a training.

mod optimizers;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[optimizers::ADAGRAD, optimizers::ADAM, optimizers::MOMENTUM];
