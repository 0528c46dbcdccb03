//! Outputs whose coordinates follow those of `data` axis by axis. Shared by the families whose operators do so.

use crate::error::{Error, Result};
use crate::operator::Context;
use crate::tensor::Tensor;
use kernels::copy::{Axis as Along, Fill, Map, Source, copy};
use smallvec::SmallVec;

/// The axes of an output: their sizes, and the coordinates of `data` along them. Axes that `data` doesn't have come
/// first.
pub(super) type Maps = SmallVec<[(usize, Map); 6]>;

/// All coordinates of an axis.
pub(super) fn whole(size: usize) -> (usize, Map) {
    (size, Map::Line { start: 0, step: 1 })
}

/// `size` coordinates from `start` on, with `sides` around them.
pub(super) fn padded(start: usize, size: usize, sides: [usize; 2], fill: Fill) -> Result<(usize, Map)> {
    if sides == [0, 0] {
        return Ok((size, Map::Line { start, step: 1 }));
    }
    let total = sides.into_iter().try_fold(size, usize::checked_add);
    let total = total.ok_or_else(|| Error::input(format!("{size} entries and {sides:?} around them are too many")))?;
    Ok((total, Map::Padded { start, size, before: sides[0], fill }))
}

/// The elements of `data` by `maps`, and where these say so the element that `constant` starts with.
pub(super) fn by_maps(context: &Context, data: &Tensor, maps: &Maps, constant: &[u8]) -> Result<Tensor> {
    let mut output = context.output_like(data, maps.iter().map(|(size, _)| *size).collect())?;
    let mut stride = 1usize;
    let dims = data.shape().iter().rev().chain(std::iter::repeat(&1));
    let mut axes: SmallVec<[Along; 6]> = SmallVec::new();
    for (&(size, map), &dim) in maps.iter().rev().zip(dims) {
        axes.push(Along { size, stride, map });
        stride = stride.saturating_mul(dim);
    }
    axes.reverse();
    let element = data.dtype().size();
    let source = Source { data: data.bytes(), element, constant: constant.get(..element).unwrap_or(&[]) };
    copy(source, &axes, output.bytes_mut(), context.resources())?;
    Ok(output.finish())
}
