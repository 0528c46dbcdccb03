//! Multiplies images by a number for each channel.

use super::{CHANNELS, len_of, of_block};
use crate::cpu::for_each_level;
use crate::{Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;

/// Writes `[images, blocks, positions, 16]`: the products of such images and of `[images, channels]` numbers, or of
/// `[channels]` for all. Without images, those in `out` are multiplied.
pub fn gate(
    images: Option<&[f32]>,
    numbers: &[f32],
    channels: usize,
    positions: usize,
    out: &mut [f32],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let (blocks, len) = (channels.div_ceil(CHANNELS), out.len());
    let count = match len_of(channels, positions) {
        // Without positions there may be any number of images.
        0 => numbers.len() / channels.max(1),
        image => len / image,
    };
    let of_each = numbers.len() == count.saturating_mul(channels);
    let fits = len == count.saturating_mul(len_of(channels, positions)) && (of_each || numbers.len() == channels);
    if !fits || images.is_some_and(|images| images.len() != len) {
        return Err(Stopped::Misfit);
    }
    let (unit, plane) = (size_of::<[f32; CHANNELS]>(), len_of(1, positions));
    parallel::pieces(cast_slice_mut(out), unit, plane * size_of::<f32>(), 1, resources, |block, start, out| {
        let (image, own) = (if of_each { block / blocks.max(1) } else { 0 }, block % blocks.max(1));
        let numbers = of_block(numbers.get(image * channels..(image + 1) * channels), 0.0, own);
        let (first, out): (usize, &mut [f32]) = (block * plane + start / size_of::<f32>(), cast_slice_mut(out));
        match images {
            Some(images) => {
                let from = images.get(first..first + out.len()).ok_or(Stopped::Misfit)?;
                products(from.as_chunks().0, &numbers, out.as_chunks_mut().0);
            }
            None => multiply(&numbers, out.as_chunks_mut().0),
        }
        Ok(())
    })
}

type Place = [f32; CHANNELS];

for_each_level! {
    fn products<>(from: &[Place], numbers: &Place, out: &mut [Place]) -> () = products_body;
}

#[inline(always)]
fn products_body(from: &[Place], numbers: &Place, out: &mut [Place]) {
    for (out, from) in out.iter_mut().zip(from) {
        *out = product(from, numbers);
    }
}

for_each_level! {
    fn multiply<>(numbers: &Place, out: &mut [Place]) -> () = multiply_body;
}

#[inline(always)]
fn multiply_body(numbers: &Place, out: &mut [Place]) {
    for out in out {
        *out = product(out, numbers);
    }
}

#[inline(always)]
fn product(place: &Place, numbers: &Place) -> Place {
    // Otherwise vectors would be made of the same channel of several places, element by element.
    let mut product = *std::hint::black_box(place);
    for (product, number) in product.iter_mut().zip(numbers) {
        *product *= number;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Images without positions are there, however many there are.
    #[test]
    fn images_without_positions() {
        let resources = Resources { threads: 1, stop: None };
        for (numbers, fits) in [(20, true), (40, true), (60, true), (30, false)] {
            let outcome = gate(Some(&[]), &vec![1.0; numbers], 20, 0, &mut [], resources);
            assert_eq!(outcome.is_ok(), fits, "{numbers}");
        }
    }
}
