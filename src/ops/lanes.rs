//! From element types to the types that kernels on lanes compute with.

use crate::dtype::Element;
use crate::error::Result;
use crate::operator::{Call, Values};
use crate::tensor::{NewTensor, Shape, Tensor};
use kernels::lanes::{self, Lanes, Map, Measure, Number, Stored};

/// Runs an expression with `$S`, the Rust type of elements, and `$T`, the number to compute with, for an element type
/// out of
/// - `floats`;
/// - `wrapping`: floats, and integers of 32 and 64 bits for what wraps, and so has the same bits with a sign as without;
/// - `exact`: the same element types, for what doesn't;
/// - `ordered`: all floats and integers, for comparisons;
/// - `floats_and_bytes`: floats, and integers of 8 bits.
macro_rules! by_type {
    (floats, $dtype:expr, $S:ident as $T:ident => $run:expr) => {
        by_type!(@ $dtype, $S, $T, $run, Float f32 f32, Double f64 f64, Float16 f16 f32, Bfloat16 bf16 f32)
    };
    (wrapping, $dtype:expr, $S:ident as $T:ident => $run:expr) => {
        by_type!(@ $dtype, $S, $T, $run, Float f32 f32, Double f64 f64, Float16 f16 f32, Bfloat16 bf16 f32,
            Int32 i32 i32, Int64 i64 i64, Uint32 u32 i32, Uint64 u64 i64)
    };
    (exact, $dtype:expr, $S:ident as $T:ident => $run:expr) => {
        by_type!(@ $dtype, $S, $T, $run, Float f32 f32, Double f64 f64, Float16 f16 f32, Bfloat16 bf16 f32,
            Int32 i32 i32, Int64 i64 i64, Uint32 u32 u32, Uint64 u64 u64)
    };
    (ordered, $dtype:expr, $S:ident as $T:ident => $run:expr) => {
        by_type!(@ $dtype, $S, $T, $run, Float f32 f32, Double f64 f64, Float16 f16 f32, Bfloat16 bf16 f32,
            Int8 i8 u8, Int16 i16 i16, Int32 i32 i32, Int64 i64 i64,
            Uint8 u8 u8, Uint16 u16 i16, Uint32 u32 i32, Uint64 u64 i64)
    };
    (floats_and_bytes, $dtype:expr, $S:ident as $T:ident => $run:expr) => {
        by_type!(@ $dtype, $S, $T, $run, Float f32 f32, Double f64 f64, Float16 f16 f32, Bfloat16 bf16 f32,
            Int8 i8 u8, Uint8 u8 u8)
    };
    (@ $dtype:expr, $S:ident, $T:ident, $run:expr, $($name:ident $s:ident $t:ident),*) => {{
        #[allow(unused_imports)] // some lists have no halves
        use half::{bf16, f16};
        match $dtype {
            $(crate::dtype::DType::$name => {
                type $S = $s;
                type $T = $t;
                $run
            })*
            other => Err(crate::error::Error::bug(&format!("no kernel computes with {other}"))),
        }
    }};
}
pub(super) use by_type;

/// As [`by_type`] of `floats`, where float32 has the numbers of `half` if that is some: `$R` are elements that are read then, and
/// `$S` those that are written.
macro_rules! by_half {
    ($half:expr, $dtype:expr, $R:ident to $S:ident as $T:ident => $run:expr) => {
        match ($half, $dtype) {
            (Some(half), crate::dtype::DType::Float) => {
                type $R = f32;
                type $T = f32;
                match half {
                    kernels::half::Half::F16 => {
                        type $S = kernels::lanes::Halved<false>;
                        $run
                    }
                    kernels::half::Half::Bf16 => {
                        type $S = kernels::lanes::Halved<true>;
                        $run
                    }
                }
            }
            (_, dtype) => by_type!(floats, dtype, $S as $T => {
                type $R = $S;
                $run
            }),
        }
    };
}
pub(super) use by_half;

/// Fills the lanes of `output` with those of `data`, mapped.
pub(super) fn mapped<S: Element + Stored<T>, T: Number>(
    call: &Call<'_>,
    data: &Tensor,
    lanes: &Lanes,
    map: &impl Map<T>,
    output: &mut NewTensor,
) -> Result<()> {
    let mut scratch = call.scratch::<T>(lanes.scratch_to_map::<S, T>(call.threads()))?;
    let (from, to) = (data.as_slice::<S>()?, output.elements_mut::<S>()?);
    Ok(lanes::map(map, from, lanes, scratch.elements_mut(), to, call.resources())?)
}

/// Fills `output` with the measure of each lane of `data`.
pub(super) fn measured<S: Element + Stored<T>, O: Element + Stored<M::Value>, T: Number, M: Measure<T>>(
    call: &Call<'_>,
    data: &Tensor,
    lanes: &Lanes,
    measure: &M,
    output: &mut NewTensor,
) -> Result<()> {
    let mut scratch = call.scratch::<T>(lanes.scratch_to_measure::<S, T>(call.threads()))?;
    let (from, to) = (data.as_slice::<S>()?, output.elements_mut::<O>()?);
    Ok(lanes::measure(measure, from, lanes, scratch.elements_mut(), to, call.resources())?)
}

/// A function of lanes of floats.
pub(super) trait FloatMap: Map<f32> + Map<f64> + std::fmt::Debug + Send + 'static {}
impl<M: Map<f32> + Map<f64> + std::fmt::Debug + Send + 'static> FloatMap for M {}

/// As [`mapped`], of the input 0, which is of floats: all that an operator returns.
pub(super) fn map_floats(call: &Call<'_>, lanes: &Lanes, map: &impl FloatMap) -> Result<Values> {
    let data = call.tensor(0)?;
    let mut output = call.output_of(data.dtype(), Shape::from_slice(data.shape()))?;
    by_type!(floats, data.dtype(), S as T => mapped::<S, T>(call, data, lanes, map, &mut output))?;
    Ok([output.finish().into()].into())
}
