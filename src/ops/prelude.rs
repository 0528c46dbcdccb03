//! Everything that an operator's file uses of the crate.

pub(super) use super::axes::{Axes, Places, not_negative, places, takes_negative_axes};
pub(super) use super::converted::{Output, converted, elements_of, scratch};
pub(super) use super::dequantized::SmallWeights;
pub(super) use super::filters::{Convolution, Filters, with_small};
pub(super) use super::index::{
    Range, check_grid, check_known_grid, indices_of, integer, out_of_range, pick, tuple_positions, unequal_batch,
    widened,
};
pub(super) use super::joining::{join, joined_size, part};
pub(super) use super::lanes::{FloatMap, by_half, by_type, map_floats, mapped, measured};
pub(super) use super::maps::{Maps, by_maps, padded, whole};
pub(super) use super::numbers::integers;
pub(super) use super::parse;
pub(super) use super::product::{
    Matrix, Multiply, Sizes, TailSteps, Weights, give_product, multiply, with_floats, with_numbers,
};
pub(super) use super::shapes::{check_shape, misfit};
pub(super) use super::windows::{self, WindowAttributes, Windows};
pub(super) use crate::dtype::{DType, Element, Format, ShapeText};
pub(super) use crate::error::{Error, Kind, Remedy, Result, quote};
pub(super) use crate::operator::{
    Align, Attribute, Axis, Blockwise, Body, BodyValue, ByteProduct, ByteScale, Call, Constants, Context, Control,
    Count, Dequantized, Ends, Form, Fused, HeadsIn, Held, Implementation, InBlocks, Inference, Lanewise, Layout, Load,
    LoadRowwise, Make, MatrixProduct, Node, Note, Operator, Pointwise, Resume, Rowwise, ScoreScale, Step, Tail, Values,
    Weighing, Windowed, broadcast, bytes_from_blocks, bytes_to_blocks, image_in_blocks, in_blocks, laid_out,
    of_channels, one_element, output_in_blocks, output_of_in_blocks, parts_in_blocks,
};
pub(super) use crate::tensor::{Counted, NewTensor, Scalar, Scratch, Shape, Tensor, shape_of, view_part};
pub(super) use crate::value::{Dim, DimsText, Fact, Formula, List, Map, Optional, Sequence, Value, ValueType};
pub(super) use bytemuck::{Pod, cast_slice, cast_slice_mut};
pub(super) use half::{bf16, f16};
pub(super) use kernels::elementwise::{
    Bytes, Floats, Ints, Row, RowOf, Test, byte_row, float_row, has_bits, int_row, number_row, of_f64, select,
    test_row, to_f64,
};
pub(super) use kernels::functions::{self, Real};
pub(super) use kernels::gemm::blocks::Activation;
pub(super) use kernels::gemm::{Batch, Broadcast, Left, Product, Right, Scaled, Strides, View};
pub(super) use kernels::half::Half;
pub(super) use kernels::lanes::{self, Floating, Lanes, Ordered, Stored};
pub(super) use kernels::number::{Float, Int};
pub(super) use kernels::{self, Resources, Small, Specials, Stopped, position_of};
pub(super) use smallvec::{SmallVec, smallvec};
pub(super) use std::str::FromStr;
pub(super) use std::sync::Arc;
