//! The operators, by family. This is their table of contents.

mod attention;
mod axes;
mod cast;
mod control;
mod convolution;
mod elementwise;
mod gather;
mod image;
mod index;
mod joining;
mod lanes;
mod layout;
mod maps;
mod matrix;
mod normalize;
mod numbers;
#[cfg(feature = "openvino")]
mod openvino;
mod pool;
mod prelude;
mod product;
mod quantize;
mod reduce;
mod resize;
mod scatter;
mod sequence;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod windows;

use crate::operator::Implementation;

/// Every operator that is implemented or inferred, by family.
pub(crate) fn all() -> impl Iterator<Item = &'static Implementation> {
    [
        attention::ALL,
        cast::ALL,
        control::ALL,
        convolution::ALL,
        elementwise::ALL,
        gather::ALL,
        image::ALL,
        layout::ALL,
        matrix::ALL,
        normalize::ALL,
        #[cfg(feature = "openvino")]
        openvino::ALL,
        pool::ALL,
        quantize::ALL,
        reduce::ALL,
        resize::ALL,
        scatter::ALL,
        sequence::ALL,
    ]
    .into_iter()
    .flatten()
}
