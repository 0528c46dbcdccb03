//! The operators, by family. This is their table of contents.

mod axes;
mod elementwise;
mod gather;
mod index;
mod layout;
mod numbers;
mod openvino;
mod prelude;
#[cfg(test)]
mod testing;

use crate::operator::Implementation;

/// Every operator that is implemented, by family.
pub(crate) fn all() -> impl Iterator<Item = &'static Implementation> {
    [elementwise::ALL, gather::ALL, layout::ALL, openvino::ALL].into_iter().flatten()
}
