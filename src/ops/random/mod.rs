//! Random numbers.

mod bernoulli;
mod distributions;
mod multinomial;
mod seed;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    distributions::RANDOM_NORMAL,
    distributions::RANDOM_NORMAL_LIKE,
    distributions::RANDOM_UNIFORM,
    distributions::RANDOM_UNIFORM_LIKE,
    bernoulli::BERNOULLI,
    multinomial::MULTINOMIAL,
];
