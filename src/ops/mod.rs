//! The operators, by family. This is their table of contents.

mod axes;
mod gather;
mod index;
mod layout;
mod matrix;
mod openvino;
mod prelude;
mod product;
#[cfg(test)]
mod testing;

use crate::operator::Implementation;

/// Every operator that is implemented, by family.
pub(crate) fn all() -> impl Iterator<Item = &'static Implementation> {
    [gather::ALL, layout::ALL, matrix::ALL, openvino::ALL].into_iter().flatten()
}
