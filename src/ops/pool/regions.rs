//! The images that regions are in: what RoiAlign and MaxRoiPool share.

use crate::ops::prelude::*;
use kernels::channels;

/// The elements of an input of floats as numbers.
pub(super) fn numbers(call: &Call<'_>, k: usize, to: &mut [f64]) -> Result<()> {
    let tensor = call.tensor(k)?;
    by_type!(floats, tensor.dtype(), S as _T => Ok(channels::load(tensor.as_slice::<S>()?, to, &mut call.lookout())?))
}

/// The error for a region whose image isn't one of `count`.
#[cold]
pub(super) fn no_image(name: &str, at: Vec<usize>, index: impl std::fmt::Display, count: usize) -> Error {
    let text = format!("{name}{at:?} = {index} is out of range: there are {count} images");
    Error::input(text).parameter(name).position(at)
}
