//! Everything that an operator's file uses of the crate.

pub(super) use super::axes::Axes;
pub(super) use super::index::{Range, indices_of, integer, out_of_range, tuple_positions, unequal_batch, widened};
pub(super) use super::product::{Multiply, Weights, multiply, with_numbers};
pub(super) use crate::dtype::{DType, ShapeText};
pub(super) use crate::error::{Error, Kind, Remedy, Result};
pub(super) use crate::kernels::gemm::{Batch, Epilogue, Product, View};
pub(super) use crate::kernels::{self, Stopped};
pub(super) use crate::operator::{Attribute, Axis, Call, Implementation, Make, Node, Operator, Values};
pub(super) use crate::tensor::{Shape, Tensor, shape_of};
pub(super) use crate::value::{Dim, Fact, Value};
pub(super) use smallvec::smallvec;
