//! The operators, by family. This is their table of contents.

mod attention;
mod axes;
mod cast;
mod control;
mod converted;
mod convolution;
mod dequantized;
mod elementwise;
mod filters;
mod gather;
#[cfg(feature = "image")]
mod image;
mod index;
mod joining;
mod lanes;
mod layout;
mod loss;
mod maps;
mod matrix;
#[cfg(feature = "ml")]
mod ml;
mod normalize;
mod numbers;
#[cfg(feature = "openvino")]
mod openvino;
mod parse;
mod pool;
mod prelude;
mod product;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod scatter;
mod sequence;
mod shapes;
#[cfg(feature = "signal")]
mod signal;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
#[cfg(feature = "text")]
mod text;
mod training;
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
        #[cfg(feature = "image")]
        image::ALL,
        layout::ALL,
        loss::ALL,
        matrix::ALL,
        #[cfg(feature = "ml")]
        ml::ALL,
        normalize::ALL,
        #[cfg(feature = "openvino")]
        openvino::ALL,
        pool::ALL,
        quantize::ALL,
        random::ALL,
        recurrent::ALL,
        reduce::ALL,
        resize::ALL,
        scatter::ALL,
        sequence::ALL,
        #[cfg(feature = "signal")]
        signal::ALL,
        #[cfg(feature = "text")]
        text::ALL,
        training::ALL,
    ]
    .into_iter()
    .flatten()
}
