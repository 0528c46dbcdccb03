//! Everything that an operator's file uses of the crate.

pub(super) use super::axes::Axes;
pub(super) use super::index::{
    Range, check_grid, indices_of, integer, out_of_range, tuple_positions, unequal_batch, widened,
};
pub(super) use crate::dtype::{DType, Element, Format, ShapeText};
pub(super) use crate::error::{Error, Kind, Remedy, Result, quote};
pub(super) use crate::kernels::elementwise::{Floats, Ints, Row, Test, float_row, number_row, test_row};
pub(super) use crate::kernels::number::{Float, Int};
pub(super) use crate::kernels::{self, Stopped};
pub(super) use crate::operator::{
    Align, Attribute, Axis, Call, Held, Implementation, Make, Node, Operator, Values, broadcast_fact,
};
pub(super) use crate::tensor::{Scalar, Shape, Tensor, position_of, shape_of};
pub(super) use crate::value::{Dim, Fact, Value, ValueType};
pub(super) use bytemuck::Pod;
pub(super) use smallvec::smallvec;
pub(super) use std::str::FromStr;
