//! Recurrent layers: a state that each step of a sequence changes.

mod activations;
mod layers;
#[cfg(test)]
mod tests;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[layers::RNN, layers::GRU, layers::LSTM];
