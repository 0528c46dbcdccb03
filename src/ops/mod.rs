//! The operators, by family. This is their table of contents.

mod attention;
mod axes;
mod cast;
mod control;
mod convolution;
mod elementwise;
mod gather;
mod index;
mod joining;
mod lanes;
mod layout;
mod loss;
mod maps;
mod matrix;
mod ml;
mod normalize;
mod numbers;
mod openvino;
mod prelude;
mod product;
mod random;
mod recurrent;
mod reduce;
mod scatter;
mod sequence;
mod signal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
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
        layout::ALL,
        loss::ALL,
        matrix::ALL,
        ml::ALL,
        normalize::ALL,
        openvino::ALL,
        random::ALL,
        recurrent::ALL,
        reduce::ALL,
        scatter::ALL,
        sequence::ALL,
        signal::ALL,
        text::ALL,
        training::ALL,
    ]
    .into_iter()
    .flatten()
}
