//! Pools: windows and regions of an image, each reduced to an entry.

mod global;
mod global_bytes;
mod in_blocks;
mod max_roi_pool;
mod max_unpool;
mod order;
mod regions;
mod roi_align;
mod sliding;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    sliding::AVERAGE_POOL,
    sliding::MAX_POOL,
    sliding::LP_POOL,
    global::GLOBAL_AVERAGE_POOL,
    global::GLOBAL_MAX_POOL,
    global::GLOBAL_LP_POOL,
    max_unpool::MAX_UNPOOL,
    max_roi_pool::MAX_ROI_POOL,
    roi_align::ROI_ALIGN,
];
