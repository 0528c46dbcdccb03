//! Conv on images in blocks of channels: the same sums, and nothing is packed between one and the next.

use super::of_products::OfProducts;
use crate::ops::prelude::*;
use kernels::gemm::blocks::{
    CHANNELS, Dense, Each, Finish, Images, Own, ROOM, Scale, Source, from_blocks, have_blocks, len_of, pack,
    share_blocks, to_blocks,
};
use kernels::gemm::{Alone, BLOCK};
use kernels::volume;
use kernels::windows::Axis;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Taps of a channel of its own from which on blocks are faster, though images change their layout before and after.
const MANY: usize = 20;

/// Places of a row from which on planes are faster for channels of their own, if nothing around is in blocks: for each tap,
/// and more.
const LONG: (usize, usize) = (32, 64);

/// Minimum number of filters that see all channels.
pub(super) const FEW: usize = 4;

/// Places of a channel in planes, multiples of which caches can't tell apart: the same place of all channels goes to a few of
/// their lines, where each puts out another.
const ALIKE: usize = 1 << 10;

/// A convolution of images with one axis to three by constant filters: each sees all channels, or that of its own number.
#[derive(Debug)]
pub(super) struct ConvInBlocks {
    filters: Filters,
    channels: usize,
    /// The number of filters, and of groups that see channels of their own.
    count: usize,
    groups: usize,
    own: bool,
    /// It sees single places, and the output has the size of the image.
    pointwise: bool,
    /// The third input, if there is one, is a bias. Else a tail reads it.
    has_bias: bool,
    weights: Weights,
    /// Whether no filter has an infinite element or NaN: known once they are packed.
    finite: AtomicBool,
}

impl ConvInBlocks {
    /// For images of so many channels, and filters of a shape.
    pub(super) fn of(filters: &Filters, channels: usize, shape: &[usize]) -> Option<InBlocks> {
        let (count, of_each, taps) = match *shape {
            [count, of_each, ref kernel @ ..] if (1..=3).contains(&kernel.len()) => (count, of_each, volume(1, kernel)),
            _ => return None,
        };
        let own = of_each == 1 && count == channels && channels > 1;
        let groups = if own { 1 } else { channels / of_each.max(1) };
        let shared = share_blocks(channels, count, groups);
        // Sums of more taps than a block has would be those of several blocks. Few filters would leave most of a vector empty.
        let suits = match own {
            true => taps <= BLOCK,
            false => {
                let divides = of_each * groups == channels && filters.groups == groups as i64;
                count >= FEW && divides && (shared || have_blocks(channels, count, groups))
            }
        };
        if volume(1, shape) == 0 || !suits {
            return None;
        }
        let one = |axis: &Axis| (axis.kernel, axis.stride, axis.pad) == (1, 1, 0) && axis.input == axis.output;
        // Those of an image with so many rows and columns.
        let axes = |size: usize| match shape.len() {
            4 => filters.of_image(shape, &[size; 2]).ok(),
            _ => None,
        };
        let pointwise = !own && groups == 1 && axes(2).is_some_and(|(axes, _)| axes.iter().all(one));
        let is_direct = own && axes(taps).is_some_and(|([_, axes @ ..], _)| Alone::<f32>::is_direct(&axes));
        let (filters, weights, finite) = (filters.clone(), Weights::known(true), AtomicBool::new(false));
        let operator =
            ConvInBlocks { filters, channels, count, groups, own, pointwise, has_bias: true, weights, finite };
        let few = if taps > 1 { CHANNELS / 2 } else { CHANNELS };
        Some(InBlocks::Windows {
            operator: Arc::new(operator),
            channels: count,
            ends: match own {
                true if taps >= MANY && count >= CHANNELS || !is_direct && count >= FEW => Ends::Any,
                true => Ends::Both,
                // A few filters leave most of a vector empty, and sums of a few steps are soon made.
                false if count >= few && volume(of_each, [&taps]) >= CHANNELS => Ends::Any,
                false => Ends::Either,
            },
        })
    }

    /// The packed filters; `None` if there is no room for them.
    fn packed(&self, call: &Call<'_>) -> Result<Option<&[f32]>> {
        let (w, count, resources) = (call.tensor(1)?, self.count, call.resources());
        // Of a filter: its own taps, or those of all channels.
        let steps = volume(1, w.shape().get(1..).unwrap_or(&[]));
        self.weights.formed(call, w, len_of(count, steps), |to| match self.own {
            true => Ok(to_blocks(w.as_slice()?, count, steps, to, resources)?),
            false => {
                pack(w.bytes(), count, self.groups, to, resources)?;
                self.finite.store(to.iter().all(|weight| weight.is_finite()), Relaxed);
                Ok(())
            }
        })
    }
}

/// Images in blocks or planes, and the windows of them along slices, rows and columns.
pub(super) struct Geometry {
    pub(super) images: usize,
    pub(super) axes: [Axis; 3],
    pub(super) counts: [usize; 3],
}

impl Geometry {
    pub(super) fn of(filters: &Filters, call: &Call<'_>, layout: &Layout) -> Result<Geometry> {
        let (shape, in_blocks) = (call.tensor(0)?.shape(), layout.input(0).is_some());
        let image = shape.get(2..shape.len() - usize::from(in_blocks));
        let (Some(images), Some(image)) = (shape.first(), image) else {
            return Err(Error::bug("a convolution in blocks is one of images"));
        };
        let (axes, counts) = filters.of_image(call.tensor(1)?.shape(), image)?;
        Ok(Geometry { images: *images, axes, counts })
    }
}

impl ConvInBlocks {
    /// Whether images in planes are read there.
    fn reads_planes(&self, layout: &Layout, axes: &[Axis; 3]) -> bool {
        let places = volume(1, &axes.each_ref().map(|axis| axis.input));
        let blocks_pay = self.count >= 2 * CHANNELS && self.channels >= 2 * CHANNELS && places.is_multiple_of(ALIKE);
        let shared = share_blocks(self.channels, self.count, self.groups);
        layout.input(0).is_none() && !self.own && !shared && !blocks_pay
    }

    fn dense<'a>(&self, images: Source<'a>, axes: &'a [Axis; 3]) -> Dense<'a> {
        let weights = &[];
        let (channels, filters, groups, finite) = (self.channels, self.count, self.groups, self.finite.load(Relaxed));
        Dense {
            axes,
            images,
            channels,
            filters,
            groups,
            weights,
            finite,
            bias: None,
            scale: Scale::default(),
            finish: Finish::default(),
            tail: None,
        }
    }

    fn each<'a>(&self, images: &'a [f32], axes: &'a [Axis; 3]) -> Each<'a> {
        Each { axes, images: Images::Stored(images), channels: self.channels }
    }
}

/// Whether rows of windows of each channel are long enough for planes.
fn is_long(axes: &[Axis; 3]) -> bool {
    let taps = volume(1, axes.each_ref().map(|axis| axis.kernel).iter());
    let [_, _, columns] = axes;
    taps < MANY && columns.output >= LONG.0 * taps + LONG.1
}

/// Whether the bias in an input, if there is one, has a number for each filter.
pub(super) fn bias_fits(call: &Call<'_>, input: usize, filters: usize) -> bool {
    call.optional_tensor(input).is_ok_and(|bias| bias.is_none_or(|bias| bias.shape() == [filters]))
}

impl Windowed for ConvInBlocks {
    fn is_ready(&self, call: &Call<'_>, layout: &Layout) -> bool {
        let Ok(Geometry { images, axes, .. }) = Geometry::of(&self.filters, call, layout) else { return false };
        let is_alone = layout.input(0).is_none() && layout.output.is_none();
        if self.own && is_alone && is_long(&axes) {
            return false;
        }
        let room = |finite: bool| -> Result<usize> {
            let resources = call.resources();
            let planes = self.reads_planes(layout, &axes);
            let seen = if planes { Source::Planes(&[][..]) } else { Source::Blocks(&[]) };
            Ok(match self.own {
                true => self.each(&[], &axes).plan(images, resources)?.scratch(),
                false => Dense { finite, ..self.dense(seen, &axes) }.plan(images, resources)?.scratch(),
            })
        };
        let fits = |finite: bool| room(finite).is_ok_and(|room| room <= ROOM);
        (!self.has_bias || bias_fits(call, 2, self.count))
            && fits(true)
            && matches!(self.packed(call), Ok(Some(_)))
            // Whether filters are finite, as they mostly are, is known once they are packed.
            && (self.finite.load(Relaxed) || fits(false))
    }

    fn run(&self, call: &mut Call<'_>, layout: &Layout, tail: Option<&Tail>) -> Result<Values> {
        let Geometry { images, axes, counts } = Geometry::of(&self.filters, call, layout)?;
        let (resources, positions) = (call.resources(), volume(1, &counts));
        let bias = if self.has_bias { call.optional_tensor(2)? } else { None };
        let bias = bias.map(Tensor::as_slice::<f32>).transpose()?;
        let no_room = || Error::bug("a convolution in blocks has no filters");
        let weights = self.packed(call)?.ok_or_else(no_room)?;
        let steps = volume(1, call.tensor(1)?.shape().get(1..).unwrap_or(&[]));
        call.charge(volume(steps, [&images, &self.count, &positions]) as u64)?;

        // What is beside the sums, in blocks as they are.
        let rooms = self.beside(call, layout, tail, positions)?;
        let inputs = tail.map(|tail| tail.beside.iter().zip(&rooms)).into_iter().flatten();
        let beside: SmallVec<[&[f32]; 2]> = inputs
            .map(|(k, room)| match room {
                Some(room) => Ok(room.elements()),
                None => call.tensor(*k)?.as_slice(),
            })
            .collect::<Result<_>>()?;
        let of_channels = |k: Option<usize>| k.map(|k| call.tensor(k)?.as_slice::<f32>()).transpose();
        let [factors, addends] = tail.map_or([None; 2], |tail| tail.scale).map(of_channels);
        let scale = Scale { factors: factors?, addends: addends? };
        let finish = tail.and_then(Tail::finish);
        let tail = tail.filter(|_| finish.is_none());
        let (adds, activation) = finish.unwrap_or_default();
        let finish = Finish { beside: beside.first().copied().filter(|_| adds), activation };
        let apply = |first: usize, sums: &mut [f32]| {
            let own = beside.iter().map(|all| cast_slice(all.get(first..first + sums.len()).unwrap_or_default()));
            let own: SmallVec<[&[u8]; 2]> = own.collect();
            tail.iter().for_each(|tail| tail.apply(cast_slice_mut(sums), &own));
        };
        let tail = tail.map(|_| &apply as &kernels::gemm::blocks::Tail<'_>);
        let compute = |out: &mut [f32]| -> Result<()> {
            if self.own {
                let x = image_in_blocks(call, layout)?;
                let each = self.each(x.tensor()?.as_slice()?, &axes).plan(images, resources)?;
                let mut scratch = call.scratch::<f32>(each.scratch())?;
                return Ok(Own { each: &each, weights, bias, scale, finish, tail }.run(
                    out,
                    scratch.elements_mut(),
                    resources,
                )?);
            }
            let x;
            let seen = match self.reads_planes(layout, &axes) {
                true => Source::Planes(call.tensor(0)?.as_slice()?),
                false => {
                    x = image_in_blocks(call, layout)?;
                    Source::Blocks(x.tensor()?.as_slice()?)
                }
            };
            let dense = Dense { weights, bias, scale, finish, tail, ..self.dense(seen, &axes) };
            let plan = dense.plan(images, resources)?;
            let mut scratch = call.scratch::<f32>(plan.scratch())?;
            Ok(plan.run(out, scratch.elements_mut(), resources)?)
        };
        let image = counts.get(5 - call.tensor(1)?.shape().len()..).unwrap_or(&counts);
        if layout.output.is_some() {
            let mut y = output_in_blocks(call, images, self.count, image)?;
            compute(y.elements_mut()?)?;
            return Ok(y.finish().into());
        }
        let mut y = call.output::<f32>(&[&[images, self.count], image].concat())?;
        let mut blocks = call.scratch::<f32>(images.saturating_mul(len_of(self.count, positions)))?;
        compute(blocks.elements_mut())?;
        from_blocks::<f32>(blocks.elements_mut(), self.count, positions, y.elements_mut()?, resources)?;
        Ok(y.finish().into())
    }

    fn shape(&self, call: &Call<'_>, layout: &Layout) -> Option<Shape> {
        let Geometry { images, counts, .. } = Geometry::of(&self.filters, call, layout).ok()?;
        let image = counts.get(5 - call.tensor(1).ok()?.rank()..)?;
        Some([&[images, self.count], image].concat().into())
    }

    fn pointwise(&self, inputs: usize) -> Option<Pointwise> {
        let ConvInBlocks { channels, count: filters, .. } = *self;
        self.pointwise.then_some(Pointwise { channels, filters, inputs })
    }

    fn scaled(&self, inputs: usize) -> Option<Arc<dyn Windowed>> {
        let (filters, weights, finite) = (self.filters.clone(), Weights::known(true), AtomicBool::new(false));
        Some(Arc::new(ConvInBlocks { filters, has_bias: inputs > 2, weights, finite, ..*self }))
    }

    fn of_products(&self, inputs: usize, first: Pointwise, tail: Option<Arc<Tail>>) -> Option<Arc<dyn Windowed>> {
        let suits = self.own && self.channels == first.filters;
        suits.then(|| Arc::new(OfProducts::new(&self.filters, inputs, first, tail)) as Arc<dyn Windowed>)
    }
}

impl ConvInBlocks {
    /// Copies in blocks of what the tail reads in planes.
    fn beside<'c>(
        &self,
        call: &'c Call<'_>,
        layout: &Layout,
        tail: Option<&Tail>,
        positions: usize,
    ) -> Result<SmallVec<[Option<Scratch<'c>>; 2]>> {
        let inputs = tail.map(|tail| tail.beside.iter()).into_iter().flatten();
        inputs
            .map(|k| {
                if layout.input(*k).is_some() {
                    return Ok(None);
                }
                let planes = call.tensor(*k)?;
                let images = planes.shape().first().copied().unwrap_or(0);
                let mut room = call.scratch::<f32>(images.saturating_mul(len_of(self.count, positions)))?;
                to_blocks::<f32>(planes.as_slice()?, self.count, positions, room.elements_mut(), call.resources())?;
                Ok(Some(room))
            })
            .collect()
    }
}
