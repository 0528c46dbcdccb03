//! Sums and other values of lanes, their extremes' indices, and cumulative values.

mod arg;
mod cumulative;
mod reduce;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    reduce::REDUCE_SUM,
    reduce::REDUCE_MEAN,
    reduce::REDUCE_MAX,
    reduce::REDUCE_MIN,
    reduce::REDUCE_PROD,
    reduce::REDUCE_SUM_SQUARE,
    reduce::REDUCE_L1,
    reduce::REDUCE_L2,
    reduce::REDUCE_LOG_SUM,
    reduce::REDUCE_LOG_SUM_EXP,
    arg::ARG_MAX,
    arg::ARG_MIN,
    cumulative::CUM_SUM,
    cumulative::CUM_PROD,
];
