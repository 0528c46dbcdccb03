//! ConvTranspose on images in blocks of channels: the same columns and the same sums of these, of blocks.

use super::conv_transpose::ConvTranspose;
use super::in_blocks::bias_fits;
use crate::ops::prelude::*;
use kernels::fold::{fold, work};
use kernels::gemm::blocks::{CHANNELS, Dense, Finish, ROOM, Scale, Source, from_blocks, len_of, pack};
use kernels::volume;
use kernels::windows::Axis;

/// Images of two axes, spread by constant filters that all see the same channels.
#[derive(Debug)]
pub(super) struct SpreadInBlocks {
    operator: ConvTranspose,
    channels: usize,
    filters: usize,
    kernel: [usize; 2],
    /// Of each block of filters, those of all taps.
    weights: Weights,
}

/// Images, their places, and what they are spread over.
struct Geometry {
    images: usize,
    places: [usize; 2],
    axes: [Axis; 2],
    image: [usize; 2],
}

impl SpreadInBlocks {
    pub(super) fn of(operator: ConvTranspose, [channels, filters]: [usize; 2], kernel: [usize; 2]) -> Option<InBlocks> {
        // Much of a vector would be empty.
        let wastes = |count: usize| count.next_multiple_of(CHANNELS) > count.saturating_add(count / 3);
        if wastes(channels) || wastes(filters) || kernel.contains(&0) {
            return None;
        }
        let operator = SpreadInBlocks { operator, channels, filters, kernel, weights: Weights::known(true) };
        Some(InBlocks::Windows { operator: Arc::new(operator), channels: filters, ends: Ends::Any })
    }

    fn taps(&self) -> usize {
        volume(1, &self.kernel)
    }

    fn geometry(&self, call: &Call<'_>) -> Result<Geometry> {
        let misfit = || Error::bug("images to be spread don't fit the filters");
        let &[images, _, height, width, ..] = call.tensor(0)?.shape() else { return Err(misfit()) };
        let fits = bias_fits(call, 2, self.filters) && height > 0 && width > 0;
        let (axes, image) =
            self.operator.of_image(self.kernel, [height, width])?.filter(|_| fits).ok_or_else(misfit)?;
        Ok(Geometry { images, places: [height, width], axes, image })
    }

    /// Elements of columns of a block of filters.
    fn columns(&self, of: &Geometry) -> usize {
        volume(self.taps(), &[CHANNELS, of.places[0], of.places[1]])
    }

    /// The filters, packed; `None` if there is no room for them.
    fn packed(&self, call: &Call<'_>) -> Result<Option<&[f32]>> {
        let (w, taps, resources) = (call.tensor(1)?, self.taps(), call.resources());
        let steps = self.channels.saturating_mul(CHANNELS);
        let each = steps.saturating_mul(taps);
        let len = each.saturating_mul(self.filters.div_ceil(CHANNELS));
        self.weights.formed(call, w, len, |to| {
            let (from, mut rows) = (w.as_slice::<f32>()?, call.scratch::<f32>(each)?);
            let (rows, mut lookout) = (rows.elements_mut::<f32>(), call.lookout());
            for (block, to) in to.chunks_exact_mut(each.max(1)).enumerate() {
                lookout.after(size_of_val(to))?;
                // All filters of the block for the first tap, for the second, ..
                for (at, row) in rows.chunks_exact_mut(self.channels.max(1)).enumerate() {
                    let (tap, filter) = (at / CHANNELS, block * CHANNELS + at % CHANNELS);
                    for (channel, to) in row.iter_mut().enumerate() {
                        let of = from.get((channel * self.filters + filter) * taps + tap);
                        *to = of.copied().filter(|_| filter < self.filters).unwrap_or(0.0);
                    }
                }
                pack(cast_slice(rows), taps * CHANNELS, 1, to, resources)?;
            }
            Ok(())
        })
    }

    /// What a block of filters makes of the channels of single places.
    fn dense<'a>(&self, images: &'a [f32], weights: &'a [f32], axes: &'a [Axis; 3]) -> Dense<'a> {
        Dense {
            axes,
            images: Source::Blocks(images),
            channels: self.channels,
            filters: self.taps() * CHANNELS,
            groups: 1,
            weights,
            finite: false,
            bias: None,
            scale: Scale::default(),
            finish: Finish::default(),
            tail: None,
        }
    }

    /// Writes `[images, blocks, rows, columns, 16]`.
    fn spread(&self, call: &Call<'_>, of: &Geometry, x: &[f32], out: &mut [f32]) -> Result<()> {
        let no_room = || Error::bug("there are no filters to be spread");
        let (weights, resources) = (self.packed(call)?.ok_or_else(no_room)?, call.resources());
        let (count, taps, single) = (volume(1, &of.places), self.taps(), single(of.places));
        let mut bias = vec![0f32; len_of(self.filters, 1)];
        if let Some(own) = call.optional_tensor(2)? {
            bias.iter_mut().zip(own.as_slice::<f32>()?).for_each(|(to, from)| *to = *from);
        }
        let mut columns = call.scratch::<f32>(self.columns(of))?;
        let columns = columns.elements_mut::<f32>();
        let scratch = self.dense(&[], &[], &single).plan(1, resources)?.scratch();
        let mut scratch = call.scratch::<f32>(scratch)?;
        let each = len_of(self.channels, count).max(1);
        let blocks = || weights.chunks_exact((self.channels * taps * CHANNELS).max(1)).zip(bias.as_chunks().0);
        let mut all = out.chunks_exact_mut(volume(CHANNELS, &of.image).max(1));
        for image in x.chunks_exact(each) {
            for ((weights, bias), out) in blocks().zip(&mut all) {
                let dense = self.dense(image, weights, &single).plan(1, resources)?;
                dense.run(columns, scratch.elements_mut(), resources)?;
                let (columns, out) = (columns.as_chunks::<CHANNELS>().0, out.as_chunks_mut::<CHANNELS>().0);
                fold::<[f32; CHANNELS], _>(&of.axes, columns, Some(&[*bias]), out, resources)?;
            }
        }
        Ok(())
    }
}

/// Windows that are single places.
fn single(places: [usize; 2]) -> [Axis; 3] {
    Axis::of_slice(places.map(|size| Axis { input: size, output: size, ..Axis::ROW }))
}

impl Windowed for SpreadInBlocks {
    fn is_ready(&self, call: &Call<'_>, _: &Layout) -> bool {
        let Ok(of) = self.geometry(call) else { return false };
        let plan = self.dense(&[], &[], &single(of.places)).plan(1, call.resources()).map(|plan| plan.scratch());
        let fits = plan.is_ok_and(|room| room <= ROOM) && self.columns(&of) <= ROOM;
        fits && matches!(self.packed(call), Ok(Some(_)))
    }

    fn run(&self, call: &mut Call<'_>, layout: &Layout, _: Option<&Tail>) -> Result<Values> {
        let (of, x) = (self.geometry(call)?, image_in_blocks(call, layout)?);
        let x = x.tensor()?.as_slice::<f32>()?;
        call.charge(work(&of.axes, of.images.saturating_mul(self.filters)) as u64)?;
        if layout.output.is_some() {
            let mut y = output_in_blocks(call, of.images, self.filters, &of.image)?;
            self.spread(call, &of, x, y.elements_mut()?)?;
            return Ok(y.finish().into());
        }
        let [height, width] = of.image;
        let mut y = call.output::<f32>(&[of.images, self.filters, height, width])?;
        let positions = volume(1, &of.image);
        let mut blocks = call.scratch::<f32>(of.images.saturating_mul(len_of(self.filters, positions)))?;
        self.spread(call, &of, x, blocks.elements_mut())?;
        from_blocks::<f32>(blocks.elements_mut(), self.filters, positions, y.elements_mut()?, call.resources())?;
        Ok(y.finish().into())
    }
}
