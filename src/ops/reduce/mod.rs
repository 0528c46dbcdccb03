//! Sums and other values of lanes, their extremes' indices, and cumulative values.

mod arg;
mod cumulative;
mod reductions;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    reductions::REDUCE_SUM,
    reductions::REDUCE_MEAN,
    reductions::REDUCE_MAX,
    reductions::REDUCE_MIN,
    reductions::REDUCE_PROD,
    reductions::REDUCE_SUM_SQUARE,
    reductions::REDUCE_L1,
    reductions::REDUCE_L2,
    reductions::REDUCE_LOG_SUM,
    reductions::REDUCE_LOG_SUM_EXP,
    arg::ARG_MAX,
    arg::ARG_MIN,
    cumulative::CUM_SUM,
    cumulative::CUM_PROD,
];
