//! Everything that an operator's file uses of the crate.

pub(super) use super::axes::{Axes, places};
pub(super) use super::index::{Range, indices_of, integer, out_of_range, tuple_positions, unequal_batch, widened};
pub(super) use super::numbers::integers;
pub(super) use crate::dtype::{DType, ShapeText};
pub(super) use crate::error::{Error, Kind, Remedy, Result, quote};
pub(super) use crate::kernels::elementwise::{
    Bytes, Floats, Ints, Row, Test, byte_row, float_row, has_bits, int_row, number_row, of_f64, select, test_row,
    to_f64,
};
pub(super) use crate::kernels::functions::{self, Real};
pub(super) use crate::kernels::half::Half;
pub(super) use crate::kernels::number::Int;
pub(super) use crate::kernels::{self, Stopped};
pub(super) use crate::operator::{
    Align, Attribute, Axis, Call, Held, Implementation, Load, Make, Node, Operator, Values,
};
pub(super) use crate::tensor::{Scalar, Shape, Tensor, position_of, shape_of};
pub(super) use crate::value::{Dim, Fact, Value};
pub(super) use bytemuck::{cast_slice, cast_slice_mut};
pub(super) use half::{bf16, f16};
pub(super) use smallvec::{SmallVec, smallvec};
