//! Images of other sizes, and images sampled at places that are given.

mod affine_grid;
mod coordinates;
mod grid_sample;
mod in_blocks;
mod interpolation;
mod resizing;
mod scales;
mod upsample;

use crate::operator::Implementation;

/// Evaluates an expression with `$type` as the type of the numbers that elements hold; complex ones hold two.
macro_rules! with_samples {
    ($dtype:expr, $type:ident => $body:expr) => {
        with_samples!(@ $dtype, $type => $body;
            Float f32, Double f64, Float16 half::f16, Bfloat16 half::bf16, Bool kernels::resample::Truth,
            Int8 i8, Int16 i16, Int32 i32, Int64 i64, Uint8 u8, Uint16 u16, Uint32 u32, Uint64 u64,
            Complex64 f32, Complex128 f64)
    };
    (@ $dtype:expr, $type:ident => $body:expr; $($name:ident $element:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $type = $element;
                $body
            })*
            other => Err(Error::bug(&format!("{other} between elements"))),
        }
    };
}
use with_samples;

pub(super) static ALL: &[Implementation] =
    &[resizing::RESIZE, upsample::UPSAMPLE, grid_sample::GRID_SAMPLE, affine_grid::AFFINE_GRID];
