//! Conv of integers of 8 bits on images in blocks of channels: four channels at once, and nothing is packed between one and
//! the next.

use super::in_blocks::{FEW, Geometry};
use crate::ops::prelude::*;
use kernels::gemm::blocks::{Bytes, FilterBytes, Kind, ROOM, Requantize, have_blocks, len_of, share_blocks};
use kernels::volume;
use kernels::windows::Axis;

/// A convolution of images with one or two axes by constant filters: each sees all channels of its group, or that of its own
/// number.
#[derive(Debug)]
pub(super) struct BytesInBlocks {
    filters: Filters,
    bytes: Arc<ByteProduct>,
    channels: usize,
    /// The number of filters, and of groups that see channels of their own.
    pub(super) count: usize,
    groups: usize,
    pub(super) own: bool,
    flip: u8,
    weights: Weights,
}

impl BytesInBlocks {
    /// For images of so many channels, and filters of a shape.
    pub(super) fn of(
        filters: &Filters,
        bytes: &Arc<ByteProduct>,
        channels: usize,
        shape: &[usize],
    ) -> Option<BytesInBlocks> {
        let (&[count, of_each, _] | &[count, of_each, _, _]) = shape else { return None };
        let own = of_each == 1 && count == channels && channels > 1;
        let groups = if own { 1 } else { channels / of_each.max(1) };
        let divides = of_each * groups == channels && filters.groups == groups as i64;
        let (whole, shared) = (have_blocks(channels, count, groups), share_blocks(channels, count, groups));
        let suits = own || divides && (whole || shared) && count >= FEW;
        // Zero points of filters are part of the weights of those that see one channel.
        let plain = bytes.is_symmetric() || own && bytes.floats.is_none();
        if volume(1, shape) == 0 || !suits || !plain || !bytes.is_finite() || !bytes.constant {
            return None;
        }
        let (filters, bytes, flip) = (filters.clone(), bytes.clone(), bytes.flip());
        Some(BytesInBlocks { filters, bytes, channels, count, groups, own, flip, weights: Weights::known(true) })
    }

    /// Channels that each filter sees.
    fn of_each(&self) -> usize {
        if self.own { 1 } else { self.channels / self.groups }
    }

    fn bytes<'a>(&'a self, [_, axes @ ..]: &'a [Axis; 3], images: &'a [u8], weights: &'a [u32]) -> Result<Bytes<'a>> {
        let own = Requantize { weights, scaling: self.bytes.scaling()? };
        let kind = if self.own { Kind::Own(own) } else { Kind::All(self.count, own) };
        Ok(Bytes { axes, images, channels: self.channels, groups: self.groups, kind, tail: None })
    }

    fn filter_bytes<'a>(&'a self, w: &'a Tensor) -> Result<FilterBytes<'a>> {
        let sizes = [self.count, self.of_each(), volume(1, w.shape().get(2..).unwrap_or(&[]))];
        let scaling = self.bytes.scaling()?;
        let (own, groups, flip) = (self.own, self.groups, self.flip);
        Ok(FilterBytes { bytes: w.bytes(), sizes, own, groups, turned: false, flip, scaling })
    }
}

impl Windowed for BytesInBlocks {
    fn is_ready(&self, call: &Call<'_>, layout: &Layout) -> bool {
        let room = || -> Result<usize> {
            let Geometry { images, axes, .. } = Geometry::of(&self.filters, call, layout)?;
            let mut resources = call.resources();
            // However many threads there are: it decides what is computed.
            resources.threads = 1;
            Ok(self.bytes(&axes, &[], &[])?.plan(images, resources)?.scratch())
        };
        let channels = match (layout.input(0), call.tensor(0).map(Tensor::shape)) {
            (None, Ok(shape)) => shape.get(1).copied(),
            (given, _) => given,
        };
        let fits = || {
            let w = call.tensor(1).ok()?.shape();
            let steps = volume(1, w.get(1..)?);
            Some(w.first() == Some(&self.count) && self.bytes.fits(call, steps, self.count))
        };
        channels == Some(self.channels) && fits() == Some(true) && room().is_ok_and(|room| room <= ROOM)
    }

    fn run(&self, call: &mut Call<'_>, layout: &Layout, _: Option<&Tail>) -> Result<Values> {
        let Geometry { images, axes, counts } = Geometry::of(&self.filters, call, layout)?;
        let (resources, positions, x, w) = (call.resources(), volume(1, &counts), call.tensor(0)?, call.tensor(1)?);
        call.charge(volume(w.len(), [&images, &positions]) as u64)?;
        let filters = self.filter_bytes(w)?;
        let (mut room, pack) = (None, |to: &mut [u32]| Ok(filters.pack(to, resources)?));
        let weights = self.weights.formed_in(call, w, filters.packed(), &mut room, pack)?;
        let mut turned = None;
        let x_bytes = match layout.input(0) {
            Some(_) => x.bytes(),
            None => {
                let places = volume(1, x.shape().get(2..).unwrap_or(&[]));
                let len = images.saturating_mul(len_of(self.channels, places));
                let room = turned.insert(call.scratch::<u8>(len)?);
                bytes_to_blocks(x.bytes(), x.dtype(), self.channels, places, room.elements_mut(), resources)?;
                room.elements()
            }
        };
        let plan = self.bytes(&axes, x_bytes, weights)?.plan(images, resources)?;
        let mut scratch = call.scratch::<u32>(plan.scratch())?;
        let (dtype, axes) = (self.bytes.zero_point.dtype(), w.rank() - 2);
        let image = counts.get(counts.len() - axes..).unwrap_or(&counts);
        if layout.output.is_some() {
            let mut y = output_of_in_blocks(call, dtype, images, self.count, image)?;
            plan.run(y.bytes_mut(), scratch.elements_mut(), resources)?;
            return Ok(y.finish().into());
        }
        let mut y = call.output_of(dtype, [&[images, self.count], image].concat().into())?;
        let mut blocks = call.scratch::<u8>(images.saturating_mul(len_of(self.count, positions)))?;
        plan.run(blocks.elements_mut(), scratch.elements_mut(), resources)?;
        bytes_from_blocks(blocks.elements(), dtype, self.count, positions, y.bytes_mut(), resources)?;
        Ok(y.finish().into())
    }
}
