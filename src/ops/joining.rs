//! Parts of tensors along an axis, and tensors one after the other. Shared by the families that split and join them.

use super::maps::{Maps, by_maps, whole};
use crate::error::{Error, Result};
use crate::operator::{Axis, Context};
use crate::tensor::{Shape, Tensor};
use kernels::copy::Map;
use kernels::{self, volume};
use smallvec::SmallVec;

/// `size` entries along an axis of a tensor.
pub(super) fn part(context: &Context, tensor: &Tensor, axis: &Axis, start: usize, size: usize) -> Result<Tensor> {
    let mut maps: Maps = tensor.shape().iter().map(|size| whole(*size)).collect();
    if let Some(map) = maps.get_mut(axis.at) {
        *map = (size, Map::Line { start, step: 1 });
    }
    by_maps(context, tensor, &maps, &[])
}

/// Bytes of the lists that joining takes for each tensor: a reference, a part, and for strings a view.
const LISTED: usize = size_of::<(&Tensor, &[u8], usize)>() + size_of::<Tensor>() + Tensor::BESIDE;

/// Tensors one after the other along the axis at `at` of the result, whose shape is `shape`: an axis of theirs, or a new
/// one.
pub(super) fn join(context: &Context, tensors: &[&Tensor], at: usize, shape: Shape) -> Result<Tensor> {
    // The lists made here and below are memory too.
    let _lists = context.memory.count(tensors.len().saturating_mul(LISTED))?;
    match context.joined(tensors)? {
        Some(joined) => concat(context, &joined.iter().collect::<SmallVec<[&Tensor; 4]>>(), at, shape),
        None => concat(context, tensors, at, shape),
    }
}

fn concat(context: &Context, tensors: &[&Tensor], at: usize, shape: Shape) -> Result<Tensor> {
    let like = tensors.first().ok_or_else(|| Error::bug("nothing is to be joined"))?;
    // The bytes of the dimensions from the axis on stay together.
    let row = |tensor: &Tensor| volume(tensor.dtype().size(), tensor.shape().iter().skip(at));
    let parts = tensors.iter().map(|tensor| (tensor.bytes(), row(tensor))).filter(|(bytes, _)| !bytes.is_empty());
    let parts: SmallVec<[(&[u8], usize); 4]> = parts.collect();
    let mut output = context.output_like(like, shape)?;
    kernels::copy::concat(&parts, output.bytes_mut(), context.resources())?;
    Ok(output.finish())
}

/// The size of tensors along the axis at `along`; without one their number. Off the axis their shapes must be equal.
/// Errors call each `what`, and blame `parameter`.
pub(super) fn joined_size(
    context: &Context,
    tensors: &[&Tensor],
    along: Option<usize>,
    what: &str,
    parameter: &str,
) -> Result<usize> {
    let mut lookout = context.resources().lookout();
    let (first, mut size) = (tensors.first().map_or(&[][..], |first| first.shape()), 0usize);
    for (k, tensor) in tensors.iter().enumerate() {
        lookout.after(size_of_val(*tensor))?;
        let shape = tensor.shape();
        check_shape(k, shape, first, along, what).map_err(|error| error.parameter(parameter))?;
        let own = along.map_or(Some(1), |at| shape.get(at).copied());
        let sum = own.and_then(|own| size.checked_add(own));
        size = sum.ok_or_else(|| Error::input("the sizes along the axis add up to too many").parameter(parameter))?;
    }
    Ok(size)
}

fn check_shape(k: usize, shape: &[usize], first: &[usize], along: Option<usize>, what: &str) -> Result<()> {
    let (rank, want) = (shape.len(), first.len());
    if rank != want {
        let text = format!("{what} {k} has rank {rank}, and {what} 0 has rank {want}: they must be equal");
        return Err(Error::input(text));
    }
    let unequal = |(d, (size, want)): &(usize, (&usize, &usize))| Some(*d) != along && size != want;
    match shape.iter().zip(first).enumerate().find(unequal) {
        None => Ok(()),
        Some((d, (&size, want))) => {
            let off = along.map_or(String::new(), |at| format!("off the axis {at} "));
            let text =
                format!("dimension {d} of {what} {k} is {size}, and of {what} 0 {want}: {off}they must be equal");
            Err(Error::input(text).axis(d as i64).size(size))
        }
    }
}
