//! Two Convs on images in blocks of channels, where the first sees single places and the second each channel alone, as blocks
//! of mobile networks begin: the image between them is computed line by line, and is never whole in memory.

use super::in_blocks::bias_fits;
use crate::ops::prelude::*;
use kernels::gemm::blocks::{Each, Finish, Images, Own, Products, ROOM, Scale, len_of, pack_each, to_blocks};
use kernels::volume;
use kernels::windows::Axis;

/// Windows of each channel of products.
#[derive(Debug)]
pub(super) struct OfProducts {
    first: Pointwise,
    tail: Option<Arc<Tail>>,
    filters: Filters,
    /// Filters of the first convolution, and of the second.
    weights: [Weights; 2],
}

impl OfProducts {
    /// Of so many inputs: those from the second on follow the inputs of the first convolution.
    pub(super) fn new(filters: &Filters, inputs: usize, first: Pointwise, tail: Option<Arc<Tail>>) -> OfProducts {
        let weights = [(); 2].map(|()| Weights::known(true));
        let (w, bias) = (first.inputs, (inputs > 2).then_some(first.inputs + 1));
        OfProducts { first, tail, filters: Filters { w, bias, ..filters.clone() }, weights }
    }

    /// The packed filters; `None` if there is no room for them.
    fn packed(&self, call: &Call<'_>) -> Result<Option<[&[f32]; 2]>> {
        let ([first, own], resources) = (&self.weights, call.resources());
        let Pointwise { channels, filters, .. } = self.first;
        let (w, own_w) = (call.tensor(1)?, call.tensor(self.filters.w)?);
        let taps = volume(1, own_w.shape().get(1..).unwrap_or(&[]));
        let first =
            first.formed(call, w, len_of(filters, channels), |to| Ok(pack_each(w.bytes(), filters, to, resources)?))?;
        let own = own.formed(call, own_w, len_of(filters, taps), |to| {
            Ok(to_blocks(own_w.as_slice()?, filters, taps, to, resources)?)
        })?;
        Ok(first.zip(own).map(|(first, own)| [first, own]))
    }

    /// The number of images, their windows, and the sizes of the output.
    fn geometry(&self, call: &Call<'_>) -> Result<(usize, [Axis; 3], [usize; 3])> {
        let [images, _, height, width, _] = *call.tensor(0)?.shape() else {
            return Err(Error::bug("an image in blocks has five axes"));
        };
        let (axes, counts) = self.filters.of_image(call.tensor(self.filters.w)?.shape(), &[height, width])?;
        Ok((images, axes, counts))
    }

    fn products<'a>(&'a self, call: &'a Call<'_>, weights: &'a [f32]) -> Result<Products<'a>> {
        let bias = if self.first.inputs > 2 { Some(call.tensor(2)?.as_slice()?) } else { None };
        Ok(Products {
            images: call.tensor(0)?.as_slice()?,
            channels: self.first.channels,
            weights,
            bias,
            activation: Activation::None,
            tail: None,
        })
    }
}

impl Windowed for OfProducts {
    fn is_ready(&self, call: &Call<'_>, _: &Layout) -> bool {
        let room = || -> Result<usize> {
            let (images, axes, _) = self.geometry(call)?;
            let products = self.products(call, &[])?;
            let each = Each { axes: &axes, images: Images::Products(&products), channels: self.first.filters };
            Ok(each.plan(images, call.resources())?.scratch())
        };
        let has_bias = |input: usize| bias_fits(call, input, self.first.filters);
        (self.first.inputs <= 2 || has_bias(2))
            && self.filters.bias.is_none_or(has_bias)
            && room().is_ok_and(|room| room <= ROOM)
            && matches!(self.packed(call), Ok(Some(_)))
    }

    fn run(&self, call: &mut Call<'_>, layout: &Layout, tail: Option<&Tail>) -> Result<Values> {
        let ((images, axes, counts), resources) = (self.geometry(call)?, call.resources());
        let Pointwise { channels, filters, .. } = self.first;
        let no_room = || Error::bug("a convolution in blocks has no filters");
        let [first, weights] = self.packed(call)?.ok_or_else(no_room)?;
        let [_, rows, columns] = &axes;
        let taps = volume(rows.kernel, [&columns.kernel].into_iter().chain(&counts));
        let steps = volume(channels, [&rows.input, &columns.input]).saturating_add(taps);
        call.charge(volume(steps, [&images, &filters]) as u64)?;

        let [(of_products, before), (activation, after)] = [self.tail.as_deref(), tail].map(finish);
        let then = |sums: &mut [f32]| before.iter().for_each(|tail| tail.apply(cast_slice_mut(sums), &[]));
        let products =
            Products { activation: of_products, tail: before.map(|_| &then as _), ..self.products(call, first)? };
        let each = Each { axes: &axes, images: Images::Products(&products), channels: filters };
        let each = each.plan(images, resources)?;
        let bias = self.filters.bias.map(|k| call.tensor(k)?.as_slice::<f32>()).transpose()?;
        let last = |_: usize, sums: &mut [f32]| after.iter().for_each(|tail| tail.apply(cast_slice_mut(sums), &[]));
        let (tail, finish) = (after.map(|_| &last as _), Finish { beside: None, activation });
        let mut scratch = call.scratch::<f32>(each.scratch())?;
        let mut y = output_in_blocks(call, images, filters, &counts[1..])?;
        Own { each: &each, weights, bias, scale: Scale::default(), finish, tail }.run(
            y.elements_mut()?,
            scratch.elements_mut(),
            resources,
        )?;
        Ok(laid_out(y.finish().into(), filters, layout, call.context())?.into())
    }
}

/// What the kernel computes of a tail that reads nothing beside the sums, or all of it.
fn finish(tail: Option<&Tail>) -> (Activation, Option<&Tail>) {
    match tail.and_then(Tail::finish) {
        Some((false, activation)) => (activation, None),
        _ => (Activation::None, tail),
    }
}
