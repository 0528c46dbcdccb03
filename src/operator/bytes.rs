//! Fused operators between integers of 8 bits: products, and functions of elements.

use super::fused::largest;
use super::{Align, Call, Fused, Held, Operator, Rowwise, Values};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use bytemuck::{cast_slice, cast_slice_mut};
use kernels::bytes::{Pair, Unsigned, look_up, pairs, with_floats};
use kernels::gemm::blocks::{Scales, Scaling};
use kernels::quantize::{dequantize_part, quantize_part};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// A product of integers of 8 bits, the first two inputs of a call, which becomes integers of 8 bits again:
/// `round((sum + bias) * factor) + zero_point`.
#[derive(Debug)]
pub(crate) struct ByteProduct {
    /// What is subtracted from the operands: a number, or for the second operand one for each column or filter.
    pub(crate) zeros: [Tensor; 2],
    /// Whether the second operand is the same in every run.
    pub(crate) constant: bool,
    /// Of float32 and of int32: a number, or one for each column or filter.
    pub(crate) factors: Tensor,
    pub(crate) bias: Option<Tensor>,
    /// The greatest magnitude of the bias, once it is known.
    pub(crate) most: OnceLock<u32>,
    pub(crate) zero_point: Tensor,
    /// If the integers are those that floats give, bit by bit.
    pub(crate) floats: Option<Floats>,
}

/// The scales and the bias of the product of floats that a product of bytes stands for.
#[derive(Debug)]
pub(crate) struct Floats {
    /// The scales of the first operand and of the output.
    pub(crate) scales: [f32; 2],
    /// A number, or one for each column or filter: the scales of the second operand, and a bias.
    pub(crate) of_columns: Tensor,
    pub(crate) bias: Option<Tensor>,
}

impl Floats {
    /// Whether nothing that is computed of them is anywhere near the ends of what float32 can be.
    pub(crate) fn are_usual(&self) -> bool {
        let of = |tensor: &Tensor, usual: &dyn Fn(f32) -> bool| {
            tensor.as_slice::<f32>().is_ok_and(|all| all.iter().all(|number| usual(*number)))
        };
        let scale = |number: f32| (1e-12..1e12).contains(&number);
        let [_, by] = self.scales;
        self.scales.iter().all(|number| scale(*number))
            && of(&self.of_columns, &scale)
            && self.bias.as_ref().is_none_or(|bias| of(bias, &|number| (number / by).abs() < 1e6))
    }
}

impl ByteProduct {
    /// What bytes of a type are combined with in blocks, where they are unsigned.
    pub(crate) fn turn(dtype: DType) -> u8 {
        if dtype == DType::Int8 { 0x80 } else { 0 }
    }

    /// Whether sums stay numbers where blocks scale them.
    pub(crate) fn is_finite(&self) -> bool {
        self.factors.as_slice::<f32>().is_ok_and(|all| all.iter().all(|factor| factor.is_finite()))
    }

    /// What bytes of the second operand are combined with to be those of int8.
    pub(crate) fn flip(&self) -> u8 {
        let [_, zeros] = &self.zeros;
        if zeros.dtype() == DType::Int8 { 0 } else { 0x80 }
    }

    /// Whether the second operand has no zero points, if it's int8.
    pub(crate) fn is_symmetric(&self) -> bool {
        let [_, zeros] = &self.zeros;
        zeros.bytes().iter().all(|zero| *zero == self.flip())
    }

    /// As a convolution in blocks scales its sums, if it's one.
    pub(crate) fn scaling(&self) -> Result<Scaling<'_>> {
        let ByteProduct { zeros: [zero, of_filters], zero_point, factors, bias, floats, .. } = self;
        let byte = |zero: &Tensor| zero.bytes().first().copied().unwrap_or(0) ^ ByteProduct::turn(zero.dtype());
        let scales = match floats {
            Some(Floats { scales: [images, out], of_columns, bias }) => Scales::Floats {
                images: *images,
                weights: of_columns.as_slice()?,
                bias: bias.as_ref().map(Tensor::as_slice).transpose()?,
                out: *out,
            },
            None => Scales::Integers {
                factors: factors.as_slice()?,
                bias: bias.as_ref().map(Tensor::as_slice).transpose()?,
            },
        };
        let of_filters = if self.is_symmetric() { &[] } else { of_filters.bytes() };
        Ok(Scaling { outside: byte(zero), of_filters, scales, zero: byte(zero_point) })
    }

    /// Whether these are the operands, with a number of columns or filters, and sums of so many steps fit in int32.
    pub(crate) fn fits(&self, call: &Call<'_>, steps: usize, count: usize) -> bool {
        let is_of = |(k, zero): (usize, &Tensor)| call.tensor(k).is_ok_and(|tensor| tensor.dtype() == zero.dtype());
        let [_, zeros] = &self.zeros;
        let mut numbers = [Some(zeros), Some(&self.factors), self.bias.as_ref()].into_iter().flatten();
        let most = self.most.get_or_init(|| {
            let bias = self.bias.as_ref().and_then(|bias| bias.as_slice::<i32>().ok()).unwrap_or_default();
            bias.iter().map(|bias| bias.unsigned_abs()).max().unwrap_or(0)
        });
        self.zeros.iter().enumerate().all(is_of)
            && numbers.all(|numbers| numbers.len() == 1 || numbers.len() == count)
            && (steps as u64).saturating_mul(255 * 255).saturating_add((*most).into()) <= i32::MAX as u64
    }
}

/// The scale and the zero point of integers of 8 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteScale {
    dtype: DType,
    scale: f32,
    zero: f32,
    /// Integers of int8 are moved by 128.
    turned: bool,
}

impl ByteScale {
    /// For integers of a type, int8 or uint8.
    pub(crate) fn new(dtype: DType, scale: f32, zero: u8) -> ByteScale {
        let zero = if dtype == DType::Int8 { f32::from(zero as i8) } else { f32::from(zero) };
        ByteScale { dtype, scale, zero, turned: false }
    }

    /// For the same integers in blocks of channels.
    pub(crate) fn in_blocks(self) -> ByteScale {
        let signed = self.signed();
        ByteScale { zero: if signed { self.zero + 128.0 } else { self.zero }, turned: self.turned || signed, ..self }
    }

    /// For the same bytes, read as unsigned ones.
    pub(crate) fn unsigned(self) -> Unsigned {
        let flip = if self.signed() { 0x80 } else { 0 };
        Unsigned { scale: self.scale, zero: self.in_blocks().zero, flip }
    }

    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    fn signed(&self) -> bool {
        self.dtype == DType::Int8 && !self.turned
    }

    /// What integers stand for.
    pub(crate) fn floats(&self, bytes: &[u8], to: &mut [f32]) {
        dequantize_part(bytes, self.signed(), [self.scale, self.zero], to);
    }

    /// The integers of floats.
    pub(crate) fn bytes(&self, floats: &[f32], to: &mut [u8]) {
        quantize_part(floats, self.signed(), [self.scale, self.zero], to);
    }
}

/// What becomes of each byte.
pub(crate) type Table = [u8; 256];

/// Floats that are computed element by element, of dequantized integers and other floats, and quantized.
#[derive(Debug, Clone)]
pub(crate) struct ByteRows {
    function: Function,
    /// The scales of its inputs; `None` for floats.
    inputs: SmallVec<[Option<ByteScale>; 3]>,
    to: ByteScale,
}

/// What is computed.
#[derive(Debug, Clone)]
enum Function {
    /// An operator, which may be one that has loops of its own.
    Floats(Arc<dyn Rowwise>, Option<Pair>),
    /// A function of one integer.
    Table(Box<Table>),
}

impl ByteRows {
    /// Maximum number of inputs.
    pub(crate) const INPUTS: usize = 3;
    /// Elements that are computed at once.
    const BLOCK: usize = 256;

    pub(crate) fn new(
        operator: Arc<dyn Rowwise>,
        inputs: SmallVec<[Option<ByteScale>; 3]>,
        to: ByteScale,
        pair: Option<Pair>,
    ) -> ByteRows {
        ByteRows { function: Function::Floats(operator, pair), inputs, to }
    }

    /// A function of the integers of one input.
    pub(crate) fn of_each(table: Box<Table>, from: ByteScale, to: ByteScale) -> ByteRows {
        ByteRows { function: Function::Table(table), inputs: [Some(from)].into_iter().collect(), to }
    }

    /// For bytes in blocks of channels.
    fn in_blocks(&self) -> Option<ByteRows> {
        let inputs: Option<SmallVec<_>> =
            self.inputs.iter().map(|scale| Some(Some(scale.as_ref()?.in_blocks()))).collect();
        let function = match (&self.function, &*self.inputs) {
            (Function::Table(table), [Some(from)]) => {
                let [from, to] = [from, &self.to].map(|scale| scale.unsigned().flip);
                let byte = |at: usize| table.get(at ^ usize::from(from)).map_or(0, |byte| byte ^ to);
                Function::Table(Box::new(std::array::from_fn(byte)))
            }
            (function, _) => function.clone(),
        };
        Some(ByteRows { function, inputs: inputs?, to: self.to.in_blocks() })
    }

    /// The number of inputs that are computed with.
    pub(crate) fn inputs(&self) -> usize {
        self.inputs.len()
    }

    fn dtype(&self, k: usize) -> DType {
        self.inputs.get(k).copied().flatten().map_or(DType::Float, |scale| scale.dtype)
    }

    /// Computes elements of the output from as many of each input.
    pub(crate) fn compute(&self, inputs: &[&[u8]], out: &mut [u8]) {
        let operator = match (&self.function, inputs, &*self.inputs) {
            (Function::Table(table), [bytes, ..], _) => return look_up(table, bytes, out),
            (Function::Floats(_, Some(pair)), &[a, b], &[Some(one), Some(other)]) => {
                return pairs(*pair, [a, b], [one, other, self.to].map(ByteScale::unsigned), out);
            }
            (Function::Floats(_, Some(pair)), &[bytes, floats], &[Some(own), None])
            | (Function::Floats(_, Some(pair)), &[floats, bytes], &[None, Some(own)]) => {
                return with_floats(*pair, bytes, cast_slice(floats), [own, self.to].map(ByteScale::unsigned), out);
            }
            (Function::Floats(operator, _), ..) => operator,
            (Function::Table(_), ..) => return,
        };
        let (mut rooms, mut floats) = ([[0f32; ByteRows::BLOCK]; ByteRows::INPUTS], [0f32; ByteRows::BLOCK]);
        for (at, out) in out.chunks_mut(ByteRows::BLOCK).enumerate() {
            let (first, count) = (at * ByteRows::BLOCK, out.len());
            let mut given: [&[u8]; ByteRows::INPUTS] = [&[]; ByteRows::INPUTS];
            for (((to, room), scale), from) in given.iter_mut().zip(&mut rooms).zip(&self.inputs).zip(inputs) {
                let size = scale.map_or(size_of::<f32>(), |_| 1);
                let from = from.get(first * size..(first + count) * size).unwrap_or_default();
                let room = room.get_mut(..count).unwrap_or_default();
                *to = match scale {
                    Some(scale) => {
                        scale.floats(from, room);
                        cast_slice(room)
                    }
                    None => from,
                };
            }
            let floats = floats.get_mut(..count).unwrap_or_default();
            let given = given.get(..self.inputs.len()).unwrap_or_default();
            operator.compute(DType::Float, given, cast_slice_mut(floats));
            self.to.bytes(floats, out);
        }
    }

    /// The type of the output.
    pub(crate) fn to(&self) -> DType {
        self.to.dtype
    }

    fn rows<const N: usize>(&self, call: &mut Call<'_>) -> Result<Values> {
        let inputs: [Held; N] = std::array::from_fn(Held::Input);
        let row = |inputs: [&[u8]; N], out: &mut [u8]| self.compute(&inputs, out);
        // Integers become floats, and floats integers.
        let cost = if matches!(self.function, Function::Table(_)) { 1 } else { N + 2 };
        Ok(call.rowwise_by(inputs, Align::Last, self.to.dtype, cost, &row)?.into())
    }
}

impl Fused for ByteRows {
    /// If no input is of floats, all of them are bytes of images.
    fn byte_rows(&self) -> Option<ByteRows> {
        self.in_blocks()
    }

    /// The inputs must be broadcast to one of them.
    fn fits(&self, call: &Call<'_>) -> bool {
        let shape = |k: usize| {
            let tensor = call.tensor(k).ok().filter(|tensor| tensor.dtype() == self.dtype(k))?;
            Some(tensor.shape())
        };
        let all: Option<SmallVec<[&[usize]; ByteRows::INPUTS]>> = (0..self.inputs()).map(shape).collect();
        all.is_some_and(|all| largest(&all).is_some())
    }
}

impl Operator for ByteRows {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        match self.inputs() {
            1 => self.rows::<1>(call),
            2 => self.rows::<2>(call),
            3 => self.rows::<{ ByteRows::INPUTS }>(call),
            _ => Err(Error::bug("a row of integers has too many inputs")),
        }
    }
}
