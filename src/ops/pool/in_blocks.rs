//! AveragePool and MaxPool on images in blocks of channels.

use super::global::{Statistic, of_each};
use super::sliding::Pool;
use crate::ops::prelude::*;
use kernels::gemm::blocks::{self, Bytes, Each, Images, Kind, ROOM};
use kernels::windows::Axis;

/// The greatest entry or the mean of each window of images in blocks.
#[derive(Debug)]
pub(super) struct PoolInBlocks {
    pub(super) pool: Pool,
    pub(super) channels: usize,
}

impl PoolInBlocks {
    /// The images and their axes; windows of slices, rows and columns, and how many there are along each.
    fn windows(&self, call: &Call<'_>, layout: &Layout) -> Result<([usize; 2], [Axis; 3], [usize; 3])> {
        let (images, image) = match (call.tensor(0)?.shape(), layout.input(0)) {
            ([images, _, image @ .., _], Some(_)) | ([images, _, image @ ..], None) => (*images, image),
            _ => return Err(Error::bug("an image has no channels")),
        };
        let attributes = &self.pool.attributes;
        let windows = attributes.of_image(&attributes.kernel(image.len())?, image)?;
        let (axes, counts) = windows.ok_or_else(|| Error::model("there are more windows than can be counted"))?;
        Ok(([images, image.len()], axes, counts))
    }

    /// Where windows show the whole image: an output of this shape.
    fn of_all(&self, call: &Call<'_>, layout: &Layout, shape: Shape) -> Result<Values> {
        let of = self.pool.of;
        let mut planes = match layout.input(0) {
            Some(_) => of_channels(call, self.channels, shape, |lanes, shape| of.reduced(call, lanes, shape))?,
            None => of.reduced(call, &Lanes::new(call.tensor(0)?.shape(), |axis| axis >= 2), shape)?.into(),
        };
        match layout.output {
            Some(_) => Ok(in_blocks(&planes.take_first()?, call.context())?.into()),
            None => Ok(planes),
        }
    }

    fn each<'a>(&self, images: &'a [f32], axes: &'a [Axis; 3]) -> Each<'a> {
        Each { axes, images: Images::Stored(images), channels: self.channels }
    }

    /// Of bytes, which are unsigned in blocks: padding is 0, the least one. Images have one slice.
    fn of_bytes<'a>(&self, images: &'a [u8], [slices, axes @ ..]: &'a [Axis; 3]) -> Result<Bytes<'a>> {
        if *slices != Axis::ROW {
            return Err(Error::bug("an image of bytes in blocks has one slice"));
        }
        Ok(Bytes { axes, images, channels: self.channels, groups: 1, kind: Kind::Greatest, tail: None })
    }
}

impl Windowed for PoolInBlocks {
    fn is_ready(&self, call: &Call<'_>, layout: &Layout) -> bool {
        let is_alone = layout.input(0).is_none() && layout.output.is_none();
        let room = || -> Result<usize> {
            let ([images, _], axes, _) = self.windows(call, layout)?;
            if is_alone && axes.iter().all(Axis::shows_all) {
                return Ok(usize::MAX);
            }
            Ok(match call.tensor(0)?.dtype() {
                DType::Float => self.each(&[], &axes).plan(images, call.resources())?.scratch(),
                _ => self.of_bytes(&[], &axes)?.plan(images, call.resources())?.scratch(),
            })
        };
        room().is_ok_and(|room| room <= ROOM)
    }

    fn run(&self, call: &mut Call<'_>, layout: &Layout, _: Option<&Tail>) -> Result<Values> {
        let ([images, count], axes, counts) = self.windows(call, layout)?;
        if axes.iter().all(Axis::shows_all) && call.tensor(0)?.dtype() == DType::Float {
            return self.of_all(call, layout, of_each(images, self.channels, count));
        }
        let x = image_in_blocks(call, layout)?;
        let x = x.tensor()?;
        let dtype = x.dtype();
        let image = counts.get(counts.len() - count..).unwrap_or(&counts);
        let mut y = output_of_in_blocks(call, dtype, images, self.channels, image)?;
        let taps = axes.each_ref().map(|axis| axis.kernel.min(axis.input));
        call.charge(kernels::volume(self.channels, [&images].into_iter().chain(&counts).chain(&taps)) as u64)?;
        if dtype != DType::Float {
            let plan = self.of_bytes(x.bytes(), &axes)?.plan(images, call.resources())?;
            let mut scratch = call.scratch::<u32>(plan.scratch())?;
            plan.run(y.bytes_mut(), scratch.elements_mut(), call.resources())?;
            return Ok(laid_out(y.finish().into(), self.channels, layout, call.context())?.into());
        }
        let each = self.each(x.as_slice()?, &axes);
        let planned = each.plan(images, call.resources())?;
        let mut scratch = call.scratch::<f32>(planned.scratch())?;
        let (to, scratch) = (y.elements_mut()?, scratch.elements_mut());
        let Pool { attributes, of, padding_counts, .. } = &self.pool;
        match *of {
            Statistic::Mean { half } => {
                let along = attributes.windows(&attributes.kernel(count)?)?;
                let mut counted = axes;
                if *padding_counts {
                    let (_, own) = counted.split_at_mut(axes.len() - count);
                    let padded = along.padded(own);
                    own.iter_mut().zip(padded).for_each(|(to, axis)| *to = axis);
                }
                let mut room = call.scratch::<usize>(counts.iter().fold(0, |all, count| all.saturating_add(*count)))?;
                let taps = counted.iter().flat_map(|axis| (0..axis.output).map(|at| axis.taps(at).len()));
                room.elements_mut().iter_mut().zip(taps).for_each(|(to, count)| *to = count);
                let (slices, planes) = room.elements().split_at(counts[0]);
                let (rows, columns) = planes.split_at(counts[1]);
                blocks::mean(&planned, half, [slices, rows, columns], to, scratch, call.resources())?;
            }
            Statistic::Greatest => {
                blocks::greatest(&planned, &f32::extreme::<false>(), to, scratch, call.resources())?;
            }
            Statistic::Norm(_) => return Err(Error::bug("norms have no form for blocks")),
        }
        Ok(laid_out(y.finish().into(), self.channels, layout, call.context())?.into())
    }
}
