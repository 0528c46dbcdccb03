//! The operators, by family. This is their table of contents.

mod axes;
mod cast;
mod elementwise;
mod gather;
mod index;
mod layout;
mod openvino;
mod prelude;
mod scatter;
#[cfg(test)]
mod testing;

use crate::operator::Implementation;

/// Every operator that is implemented, by family.
pub(crate) fn all() -> impl Iterator<Item = &'static Implementation> {
    [cast::ALL, elementwise::ALL, gather::ALL, layout::ALL, openvino::ALL, scatter::ALL].into_iter().flatten()
}
