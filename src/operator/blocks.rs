//! Operators on images in blocks of 16 channels: `[N, blocks, H, W, 16]` in the place of `[N, C, H, W]`, and in the same way
//! with one axis or three in the place of `H` and `W`.
//!
//! A pass decides which values are stored so; nobody but the nodes around them sees it.

use super::{ByteRows, ByteScale, Call, Chain, Context, Form, Fused, Lanewise, Operator, Rowwise, Tail, Values};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{NewTensor, Shape, Tensor};
use crate::value::Value;
use kernels::gemm::blocks::{self, CHANNELS, from_blocks, len_of, to_blocks};
use kernels::half::Half;
use kernels::lanes::Lanes;
use kernels::{Resources, volume};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// The channels of the values of a node that are in blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) inputs: SmallVec<[Option<usize>; 4]>,
    pub(crate) output: Option<usize>,
}

impl Layout {
    /// The channels of an input, if it is in blocks.
    pub(crate) fn input(&self, k: usize) -> Option<usize> {
        self.inputs.get(k).copied().flatten()
    }

    /// The channels of the first input that is in blocks.
    fn channels(&self) -> Option<usize> {
        self.inputs.iter().copied().find_map(|channels| channels)
    }
}

/// What a node can do with blocks.
pub(crate) enum InBlocks {
    /// Windows of its first input. The output has so many channels.
    Windows { operator: Arc<dyn Windowed>, channels: usize, ends: Ends },
    /// Inputs are joined along the axis of the channels: blocks of them, too.
    Joined,
}

/// Which values of windows are in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The input, the output, both, or none.
    Any,
    /// The input, the output, or both.
    Either,
    Both,
    Input,
    /// The output, of float32; the input too, unless its channels fill blocks.
    Output,
}

/// The inputs of a node that are the same in every run.
pub(crate) type Constants<'a> = dyn Fn(usize) -> Option<&'a Tensor> + 'a;

/// An operator that has a form for blocks.
pub(crate) trait Blockwise: Operator {
    /// What it can do, if an input has so many channels, and so many axes behind them.
    fn in_blocks(&self, channels: usize, axes: usize, constant: &Constants<'_>) -> Option<InBlocks> {
        let _ = (channels, axes, constant);
        None
    }

    /// What it computes of numbers of a type of 16 bits that are kept in float32: the results are rounded once, to these.
    fn of_halves(&self, half: Half) -> Option<Arc<dyn Blockwise>> {
        let _ = half;
        None
    }

    /// What it computes of each lane along the last axis of an input of this rank, if that axis stays, with size 1.
    fn of_lanes(&self, rank: usize, constant: &Constants<'_>) -> Option<Arc<dyn Lanewise>> {
        let _ = (rank, constant);
        None
    }

    /// The mean of each channel of dequantized integers, quantized again, if it is that of floats.
    fn mean_of_bytes(&self, from: ByteScale, to: ByteScale) -> Option<Box<dyn Fused>> {
        let _ = (from, to);
        None
    }

    /// The product of bytes that it is, and the inputs of which it is one. The second of these and all others are constants.
    fn of_bytes(&self, constant: &Constants<'_>) -> Option<(Box<dyn Fused>, [usize; 2])> {
        let _ = constant;
        None
    }
}

/// The windows of an image.
pub(crate) trait Windowed: std::fmt::Debug + Send + Sync {
    /// Whether a run can't fail as it would on planes, and there is the memory that it needs.
    fn is_ready(&self, call: &Call<'_>, layout: &Layout) -> bool;

    /// As [`Operator::run`], and then what `tail` says.
    fn run(&self, call: &mut Call<'_>, layout: &Layout, tail: Option<&Tail>) -> Result<Values>;

    /// The shape of its output in planes, for what a tail reads beside it.
    fn shape(&self, call: &Call<'_>, layout: &Layout) -> Option<Shape> {
        let _ = (call, layout);
        None
    }

    /// What it is if it sees single places of an image, and gives one of the same size. It has so many inputs.
    fn pointwise(&self, inputs: usize) -> Option<Pointwise> {
        let _ = inputs;
        None
    }

    /// The same with so many inputs, where a tail that scales sums reads those behind them.
    fn scaled(&self, inputs: usize) -> Option<Arc<dyn Windowed>> {
        let _ = inputs;
        None
    }

    /// The same windows of what another convolution and its tail give, if it computes these line by line. It has so many
    /// inputs; those from the second on follow the inputs of the other.
    fn of_products(&self, inputs: usize, first: Pointwise, tail: Option<Arc<Tail>>) -> Option<Arc<dyn Windowed>> {
        let _ = (inputs, first, tail);
        None
    }
}

/// A convolution of single places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointwise {
    pub(crate) channels: usize,
    pub(crate) filters: usize,
    /// The number of its inputs.
    pub(crate) inputs: usize,
}

/// A node, with values that are in blocks.
#[derive(Debug)]
pub(crate) struct Laid {
    pub(crate) how: How,
    pub(crate) layout: Layout,
}

/// How a node runs.
#[derive(Debug)]
pub(crate) enum How {
    Windows(Arc<dyn Windowed>, Option<Arc<Tail>>),
    /// On blocks as on any other tensor.
    Same(Arc<dyn Operator>),
    Chain(Chain),
    Bytes(ByteRows),
    /// Of images, and of a number for each of their channels.
    Gated(Arc<dyn Rowwise>),
    GatedChain(Chain),
    GatedBytes(ByteRows),
    /// On planes.
    Planes,
}

impl Fused for Laid {
    fn fits(&self, call: &Call<'_>) -> bool {
        match &self.how {
            How::Windows(windows, tail) => {
                windows.is_ready(call, &self.layout)
                    && tail.as_ref().is_none_or(|tail| self.has_beside(tail, &**windows, call))
            }
            How::Chain(chain) => chain.fits(call),
            How::Bytes(rows) => rows.fits(call),
            How::Same(_) => true,
            How::Gated(_) | How::GatedBytes(_) => self.gates(call, 2),
            How::GatedChain(chain) => self.gates(call, chain.inputs()),
            How::Planes => false,
        }
    }

    fn layout(&self) -> Option<&Layout> {
        Some(&self.layout)
    }
}

impl Operator for Laid {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        match &self.how {
            How::Windows(windows, tail) => windows.run(call, &self.layout, tail.as_deref()),
            How::Same(operator) => operator.run(call),
            How::Chain(chain) => {
                let blocks = chain.run(call)?;
                self.chained(blocks, call)
            }
            How::GatedChain(chain) => {
                let compute = |inputs: &[&[u8]], out: &mut [u8]| chain.compute(inputs, out);
                self.chained(gated(call, &self.layout, DType::Float, chain.inputs(), &compute)?, call)
            }
            How::Bytes(rows) => rows.run(call),
            How::Gated(operator) if operator.form() == Some(Form::Product) => scaled(call, &self.layout),
            How::Gated(operator) => {
                gated(call, &self.layout, DType::Float, 2, &|inputs, out| operator.compute(DType::Float, inputs, out))
            }
            How::GatedBytes(rows) => gated(call, &self.layout, rows.to(), 2, &|inputs, out| rows.compute(inputs, out)),
            How::Planes => Err(Error::bug("a node on planes has no form for blocks")),
        }
    }
}

impl Laid {
    /// Whether a tail finds what it reads beside the sums: numbers of each channel, and images with the shape of the output.
    fn has_beside(&self, tail: &Tail, windows: &dyn Windowed, call: &Call<'_>) -> bool {
        let stands = |k: &usize, shape: &[usize]| match (self.layout.input(*k), call.tensor(*k), shape) {
            (None, Ok(input), shape) => input.shape() == shape,
            (Some(_), Ok(input), [images, channels, image @ ..]) => {
                input.shape() == &*shape_in_blocks(*images, *channels, image)
            }
            _ => false,
        };
        let mut scale = tail.scale.iter().flatten();
        if tail.beside.is_empty() && scale.clone().next().is_none() {
            return true;
        }
        let Some(shape) = windows.shape(call, &self.layout) else { return false };
        tail.beside.iter().all(|k| stands(k, &shape))
            && scale.all(|k| call.tensor(*k).is_ok_and(|numbers| shape.get(1) == Some(&numbers.len())))
    }

    /// Whether so many inputs are images of one shape, numbers for each of their channels, and single numbers.
    fn gates(&self, call: &Call<'_>, inputs: usize) -> bool {
        let Some(at) = (0..inputs).find(|k| self.layout.input(*k).is_some()) else { return false };
        let (channels, Ok(image)) = (self.layout.input(at).unwrap_or(0), call.tensor(at)) else { return false };
        let of_each = channels.saturating_mul(image.shape().first().copied().unwrap_or(0));
        (0..inputs).all(|k| match (self.layout.input(k), call.tensor(k)) {
            (Some(_), Ok(other)) => other.shape() == image.shape(),
            (None, Ok(gate)) => [1, channels, of_each].contains(&gate.len()),
            _ => false,
        })
    }

    /// What a chain gives, as the layout has it.
    fn chained(&self, mut blocks: Values, call: &Call<'_>) -> Result<Values> {
        match self.layout.channels() {
            Some(channels) => Ok(laid_out(blocks.take_first()?, channels, &self.layout, call.context())?.into()),
            None => Ok(blocks),
        }
    }
}

/// Elements that are computed together, a multiple of the channels of a block.
const PART: usize = 1024;

/// Computes elements from as many of each input.
type Compute<'a> = dyn Fn(&[&[u8]], &mut [u8]) + Sync + 'a;

/// Computes an image in blocks from so many inputs, whose elements have the same size: images in blocks, numbers for each of their
/// channels, and single numbers.
fn gated(call: &Call<'_>, layout: &Layout, to: DType, inputs: usize, compute: &Compute<'_>) -> Result<Values> {
    let inputs: SmallVec<[&Tensor; Chain::INPUTS]> = (0..inputs).map(|k| call.tensor(k)).collect::<Result<_>>()?;
    let in_blocks = inputs.iter().enumerate().find_map(|(k, x)| Some((*x, layout.input(k)?)));
    let (x, channels) = in_blocks.ok_or_else(|| Error::bug("no image is in blocks"))?;
    let ([_, blocks], image) = parts_in_blocks(x.shape())?;
    let mut y = call.output_of(to, x.shape().into())?;
    call.charge(x.len() as u64)?;
    let (size, blocks) = (to.size(), blocks.max(1));
    let unit = size * CHANNELS;
    let plane = volume(unit, image);
    kernels::pieces(y.bytes_mut(), unit, plane, 1, call.resources(), |block, start, out| {
        let (image, first) = (block / blocks, block % blocks * CHANNELS);
        // The numbers of its channels, for each input that has them.
        let mut rooms: SmallVec<[[f32; PART]; 1]> = SmallVec::new();
        for tensor in inputs.iter().enumerate().filter(|(k, _)| layout.input(*k).is_none()).map(|(_, tensor)| tensor) {
            let mut room = [0f32; PART];
            // In blocks, bytes are unsigned.
            let turned = if tensor.dtype() == DType::Int8 { 0x80 } else { 0 };
            // Those of an image follow each other; there may be one image of them for all, or one number.
            let own = if tensor.len() > channels { image * channels } else { 0 };
            let (own, tile) = match tensor.len() {
                1 => (tensor.bytes(), size),
                _ => (tensor.bytes().get((own + first) * size..(own + channels) * size).unwrap_or(&[]), unit),
            };
            let some = bytemuck::cast_slice_mut(&mut room).get_mut(..out.len().min(PART * size)).unwrap_or(&mut []);
            for tile in some.chunks_exact_mut(tile) {
                tile.iter_mut().zip(own).for_each(|(to, from): (&mut u8, &u8)| *to = *from ^ turned);
            }
            rooms.push(room);
        }
        let mut at = block * plane + start;
        for out in out.chunks_mut(PART * size) {
            let mut own: SmallVec<[&[u8]; Chain::INPUTS]> = SmallVec::new();
            let mut rooms = rooms.iter();
            for (k, tensor) in inputs.iter().enumerate() {
                let part = match layout.input(k) {
                    Some(_) => tensor.bytes().get(at..at + out.len()),
                    None => rooms.next().and_then(|room| bytemuck::cast_slice(room).get(..out.len())),
                };
                own.push(part.ok_or(kernels::Stopped::Misfit)?);
            }
            compute(&own, out);
            at += out.len();
        }
        Ok(())
    })?;
    Ok(y.finish().into())
}

/// The products of an image in blocks and a number for each channel: where the image is, if nobody reads it later.
fn scaled(call: &mut Call<'_>, layout: &Layout) -> Result<Values> {
    let (at, other) = if layout.input(0).is_none() { (1, 0) } else { (0, 1) };
    let (channels, gate) = (layout.input(at).unwrap_or(0), call.tensor(other)?.clone());
    let shape = Shape::from_slice(call.tensor(at)?.shape());
    let positions = volume(1, parts_in_blocks(&shape)?.1);
    call.charge(volume(1, &shape) as u64)?;
    let (mut y, x) = match NewTensor::over(call.taken(at)?.into_tensor()?) {
        Ok(y) => (y, None),
        Err(x) => (call.output_of(DType::Float, shape.clone())?, Some(x)),
    };
    let images = x.as_ref().map(Tensor::as_slice::<f32>).transpose()?;
    blocks::gate(images, gate.as_slice()?, channels, positions, y.elements_mut()?, call.resources())?;
    Ok(y.finish().into())
}

/// One number of each of so many channels, in planes of this shape. `reduce` gives that of each lane, as a tensor of a shape.
pub(crate) fn of_channels(
    call: &Call<'_>,
    channels: usize,
    shape: Shape,
    reduce: impl FnOnce(&Lanes, Shape) -> Result<Tensor>,
) -> Result<Values> {
    let x = call.tensor(0)?;
    let ([images, blocks], _) = parts_in_blocks(x.shape())?;
    let lanes = Lanes::new(x.shape(), |axis| (2..x.rank() - 1).contains(&axis));
    call.charge(x.len() as u64)?;
    let all = reduce(&lanes, Shape::from_slice(&[images, blocks.saturating_mul(CHANNELS)]))?;
    if channels.is_multiple_of(CHANNELS) {
        return Ok(all.reshaped(shape)?.into());
    }
    let mut y = call.output_of(DType::Float, shape)?;
    let rows = all.as_slice::<f32>()?.chunks_exact((blocks * CHANNELS).max(1));
    for (to, from) in y.elements_mut::<f32>()?.chunks_exact_mut(channels.max(1)).zip(rows) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    }
    Ok(y.finish().into())
}

/// The shape of an image of so many channels in blocks.
fn shape_in_blocks(images: usize, channels: usize, image: &[usize]) -> Shape {
    [&[images, channels.div_ceil(CHANNELS)], image, &[CHANNELS]].concat().into()
}

/// Of the shape of images in blocks, `[N, blocks, .., 16]`: `N` and the blocks, and what is between.
pub(crate) fn parts_in_blocks(shape: &[usize]) -> Result<([usize; 2], &[usize])> {
    match shape {
        [images, blocks, image @ .., _] => Ok(([*images, *blocks], image)),
        _ => Err(Error::bug("an image in blocks has no blocks")),
    }
}

/// The first input, an image, in blocks.
pub(crate) fn image_in_blocks<'a>(call: &'a Call<'_>, layout: &Layout) -> Result<Cow<'a, Value>> {
    let image = call.input(0).ok_or_else(|| Error::bug("there is no image"))?;
    match layout.input(0) {
        Some(_) => Ok(Cow::Borrowed(image)),
        None => in_blocks(image, call.context()).map(Cow::Owned),
    }
}

/// An image `[N, C, ..]` in blocks.
pub(crate) fn in_blocks(value: &Value, context: &Context) -> Result<Value> {
    let planes = value.tensor()?;
    let [images, channels, image @ ..] = planes.shape() else {
        return Err(Error::bug("what has no channels has no blocks"));
    };
    let positions = volume(1, image);
    let (shape, count) =
        (shape_in_blocks(*images, *channels, image), images.saturating_mul(len_of(*channels, positions)));
    let (mut to, resources) = (new(planes.dtype(), shape, count, context)?, context.resources());
    match planes.dtype() {
        DType::Float => to_blocks(planes.as_slice::<f32>()?, *channels, positions, to.elements_mut()?, resources)?,
        dtype => bytes_to_blocks(planes.bytes(), dtype, *channels, positions, to.bytes_mut(), resources)?,
    }
    Ok(to.finish().into())
}

/// An image of so many channels, `[N, blocks, .., 16]`, in planes.
pub(crate) fn in_planes(value: &Value, channels: usize, context: &Context) -> Result<Value> {
    let blocks = value.tensor()?;
    let ([images, _], image) = parts_in_blocks(blocks.shape())?;
    let (shape, positions): (Shape, _) = ([&[images, channels], image].concat().into(), volume(1, image));
    let (count, resources) = (volume(1, &shape), context.resources());
    let mut to = new(blocks.dtype(), shape, count, context)?;
    match blocks.dtype() {
        DType::Float => from_blocks(blocks.as_slice::<f32>()?, channels, positions, to.elements_mut()?, resources)?,
        dtype => bytes_from_blocks(blocks.bytes(), dtype, channels, positions, to.bytes_mut(), resources)?,
    }
    Ok(to.finish().into())
}

/// An output of so many channels that is in blocks, in planes if it is needed so.
pub(crate) fn laid_out(blocks: Value, channels: usize, layout: &Layout, context: &Context) -> Result<Value> {
    if layout.output.is_some() { Ok(blocks) } else { in_planes(&blocks, channels, context) }
}

/// Integers of 8 bits in planes as bytes in blocks, which are unsigned: those of int8 are moved by 128.
pub(crate) fn bytes_to_blocks(
    planes: &[u8],
    dtype: DType,
    channels: usize,
    positions: usize,
    to: &mut [u8],
    resources: Resources<'_>,
) -> Result<()> {
    to_blocks(planes, channels, positions, to, resources)?;
    turn(to, dtype, resources)
}

/// Back from [`bytes_to_blocks`].
pub(crate) fn bytes_from_blocks(
    blocks: &[u8],
    dtype: DType,
    channels: usize,
    positions: usize,
    to: &mut [u8],
    resources: Resources<'_>,
) -> Result<()> {
    from_blocks(blocks, channels, positions, to, resources)?;
    turn(to, dtype, resources)
}

/// Makes bytes of a type unsigned, or turns them back.
fn turn(bytes: &mut [u8], dtype: DType, resources: Resources<'_>) -> Result<()> {
    if dtype != DType::Int8 {
        return Ok(());
    }
    let len = bytes.len();
    Ok(kernels::pieces(bytes, 1, len.max(1), 1, resources, |_, _, bytes| {
        bytes.iter_mut().for_each(|byte| *byte ^= 0x80);
        Ok(())
    })?)
}

/// A new output of float32 in blocks. Its elements count as those of planes.
pub(crate) fn output_in_blocks(call: &Call<'_>, images: usize, channels: usize, image: &[usize]) -> Result<NewTensor> {
    output_of_in_blocks(call, DType::Float, images, channels, image)
}

/// As [`output_in_blocks`], of any type.
pub(crate) fn output_of_in_blocks(
    call: &Call<'_>,
    dtype: DType,
    images: usize,
    channels: usize,
    image: &[usize],
) -> Result<NewTensor> {
    let context = call.context();
    context.check_output(dtype, &[&[images, channels], image].concat())?;
    let count = images.saturating_mul(len_of(channels, volume(1, image)));
    new(dtype, shape_in_blocks(images, channels, image), count, context)
}

fn new(dtype: DType, shape: Shape, count: usize, context: &Context) -> Result<NewTensor> {
    NewTensor::new(dtype, shape, volume(count, &[dtype.size()]), None, &context.memory)
}
