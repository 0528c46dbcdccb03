//! Images of other sizes, and images sampled at places that are given.

mod affine_grid;
mod grid_sample;
mod resizing;
mod scales;
mod upsample;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] =
    &[resizing::RESIZE, upsample::UPSAMPLE, grid_sample::GRID_SAMPLE, affine_grid::AFFINE_GRID];
