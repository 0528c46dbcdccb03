//! Converts values that are stored in blocks of channels, as fused nodes give them, to planes.

use onnxref::{DType, Tensor, Value};

/// Channels of a block.
const CHANNELS: usize = 16;

/// What is stored in blocks of channels, in the form of another value: `None` unless it is `[N, C / 16, .., 16]` of the
/// other's `[N, C, ..]`, whatever their types. An int8 has 128 added to it there, modulo 256.
pub(super) fn in_planes(blocks: &Value, like: &Value) -> Option<Value> {
    let (blocks, like) = (blocks.tensor().ok()?, like.tensor().ok()?);
    let &[images, channels, ref places @ ..] = like.shape() else { return None };
    let &[ref shape @ .., CHANNELS] = blocks.shape() else { return None };
    let (dtype, size) = (blocks.dtype(), blocks.dtype().size());
    if *shape != *[&[images, channels.div_ceil(CHANNELS)], places].concat() {
        return None;
    }
    let block: usize = places.iter().product::<usize>() * CHANNELS * size;
    let image = channels.div_ceil(CHANNELS) * block;
    let mut planes = Vec::with_capacity(like.bytes().len());
    for image in blocks.bytes().chunks_exact(image.max(1)) {
        for channel in 0..channels {
            let block = image.get(channel / CHANNELS * block..)?.get(..block)?;
            block.chunks_exact(size).skip(channel % CHANNELS).step_by(CHANNELS).for_each(|x| planes.extend(x));
        }
    }
    if dtype == DType::Int8 {
        planes.iter_mut().for_each(|byte| *byte ^= 0x80);
    }
    Some(Tensor::new(dtype, like.shape(), planes).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dtype: DType, shape: &[usize], numbers: Vec<u8>) -> Value {
        Tensor::new(dtype, shape, numbers).unwrap().into()
    }

    fn value(shape: &[usize], numbers: Vec<u8>) -> Value {
        of(DType::Uint8, shape, numbers)
    }

    #[test]
    fn blocks_are_planes_of_their_channels() {
        // The number of a channel and of a place, for two images; channels from 20 on are nobody's.
        let number = |image: usize, channel: usize, place: usize| (image * 100 + channel * 3 + place) as u8;
        let (mut planes, mut blocks) = (Vec::new(), Vec::new());
        for image in 0..2 {
            (0..60).for_each(|at| planes.push(number(image, at / 3, at % 3)));
            (0..96).for_each(|at| blocks.push(number(image, at / 48 * 16 + at % 16, at / 16 % 3)));
        }
        let signed = of(DType::Int8, &[2, 20, 3], planes.iter().map(|byte| byte ^ 0x80).collect());
        assert_eq!(in_planes(&of(DType::Int8, &[2, 2, 3, 16], blocks.clone()), &signed), Some(signed));
        let (planes, blocks) = (value(&[2, 20, 3], planes), value(&[2, 2, 3, 16], blocks));
        assert_eq!(in_planes(&blocks, &planes), Some(planes.clone()));
        let floats = (0..96).flat_map(|k| (k as f32).to_le_bytes()).collect();
        let blocks_of_floats = of(DType::Float, &[1, 2, 3, 16], floats);
        let halves = of(DType::Float16, &[1, 20, 3], vec![0; 120]);
        let planes_of_floats = in_planes(&blocks_of_floats, &halves).unwrap();
        let planes_of_floats = planes_of_floats.tensor().unwrap();
        assert_eq!((planes_of_floats.dtype(), planes_of_floats.shape()), (DType::Float, &[1, 20, 3][..]));
        assert_eq!(planes_of_floats.as_slice::<f32>().unwrap()[..4], [0.0, 16.0, 32.0, 1.0]);
        // None of them is in blocks of the other.
        for other in [&planes, &value(&[2, 2, 3, 8], vec![0; 96]), &value(&[2, 3, 3, 16], vec![0; 288])] {
            assert_eq!(in_planes(other, &planes), None);
        }
        let none = value(&[0, 20, 3], vec![]);
        assert_eq!(in_planes(&value(&[0, 2, 3, 16], vec![]), &none), Some(none.clone()));
    }
}
