//! Shapes that inputs must have.

use crate::dtype::ShapeText;
use crate::error::{Error, Result, quote};
use crate::operator::Call;

/// Fails unless the input `k` is left out or has one of these shapes.
pub(super) fn check_shape(call: &Call<'_>, k: usize, shapes: &[&[usize]]) -> Result<()> {
    match call.optional_tensor(k)? {
        Some(tensor) if !shapes.contains(&tensor.shape()) => {
            let shapes: Vec<String> = shapes.iter().map(|shape| ShapeText(shape).to_string()).collect();
            Err(misfit(call, k, &shapes.join(" or ")))
        }
        _ => Ok(()),
    }
}

/// The error for the shape of the input `k`.
#[cold]
pub(super) fn misfit(call: &Call<'_>, k: usize, needs: &str) -> Error {
    let name = call.name(k);
    let shape = call.tensor(k).map_or_else(|_| String::new(), |tensor| ShapeText(tensor.shape()).to_string());
    Error::input(format!("{} has shape {shape}: {needs} is needed", quote(name))).parameter(name)
}
