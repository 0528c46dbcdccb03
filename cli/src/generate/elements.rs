//! Draws values of inputs: numbers, edge values, and integers that stand for sizes, axes or indices.

use super::goals::Feature;
use super::maker::Maker;
use onnxref::half::{bf16, f16};
use onnxref::{DType, Map, Optional, Sequence, Tensor, Value, ValueType};

/// Edge values of floats, of any float type: the bits of the types are made of these.
const FLOATS: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.0, -1.0, 0.5];

impl Maker<'_> {
    /// A value of a type for the input at a place.
    pub(super) fn value(&mut self, value_type: &ValueType, name: &str, place: usize) -> Result<Value, String> {
        let failed = |error: onnxref::Error| error.to_string();
        match value_type {
            ValueType::Tensor(dtype) => {
                let meant = if self.fitting { self.meant(name, *dtype, place) } else { None };
                if let Some(tensor) = meant {
                    return Ok(tensor.into());
                }
                let shape = self.shape(place);
                let mut tensor = self.tensor(*dtype, &shape)?;
                if self.fitting && self.schema.name == "MaxRoiPool" && name == "rois" {
                    tensor = of_first_image(&tensor)?;
                }
                Ok(tensor.into())
            }
            ValueType::Sequence(element) => {
                let count = 1 + self.source.below(3);
                let values = (0..count).map(|_| self.value(element, "", place)).collect::<Result<Vec<_>, _>>()?;
                Sequence::new((**element).clone(), values).map(Value::Sequence).map_err(failed)
            }
            ValueType::Optional(element) if self.source.once_in(3) => {
                Ok(Value::Optional(Optional::none((**element).clone())))
            }
            ValueType::Optional(element) => Ok(Value::Optional(Optional::some(self.value(element, "", place)?))),
            ValueType::Map(key, element) => {
                let count = 1 + self.source.below(3);
                let keys = match key {
                    DType::String => Tensor::from_strings(&[count], (0..count).map(|k| format!("{k}"))),
                    _ => integers(*key, &[count], (0..count as i64).collect()),
                };
                let dtype = element.dtype().unwrap_or(DType::Float);
                let values =
                    (0..count).map(|_| Ok(self.tensor(dtype, &[])?.into())).collect::<Result<Vec<_>, String>>()?;
                let values = Sequence::new((**element).clone(), values).map_err(failed)?;
                Map::new(keys.map_err(failed)?, values).map(Value::Map).map_err(failed)
            }
            other => Err(format!("no values of type {other}")),
        }
    }

    /// Small numbers, or edge values.
    pub(super) fn tensor(&mut self, dtype: DType, shape: &[usize]) -> Result<Tensor, String> {
        if self.is(Feature::EdgeValues) {
            return self.edges(dtype, shape);
        }
        let range = match dtype {
            DType::Bool | DType::String => None,
            DType::Uint2 | DType::Int2 => Some((0.0, 1.0)),
            DType::Uint4 | DType::Uint8 | DType::Uint16 | DType::Uint32 | DType::Uint64 => Some((0.0, 5.0)),
            DType::Float8e8m0 => Some((0.25, 4.0)),
            _ => Some((-3.0, 4.0)),
        };
        self.source.tensor(dtype, shape, range).or_else(|_| self.source.tensor(dtype, shape, None))
    }

    fn edges(&mut self, dtype: DType, shape: &[usize]) -> Result<Tensor, String> {
        let count: usize = shape.iter().product();
        let size = dtype.size();
        let float =
            |source: &mut super::source::Source, bits: [u64; 5], make: &dyn Fn(f64) -> u64| match source.below(13) {
                // The least and the greatest subnormal and normal number, and the greatest negative one.
                k @ 0..5 => bits.get(k).copied().unwrap_or(0),
                k => FLOATS.get(k - 5).copied().map_or(0, make),
            };
        let mut bytes = Vec::with_capacity(count * size);
        for _ in 0..count {
            let source = &mut *self.source;
            let word: u64 = match dtype {
                DType::Float | DType::Complex64 => {
                    let bits = [1, 0x7f_ffff, 0x80_0000, 0x7f7f_ffff, 0xff7f_ffff];
                    float(source, bits, &|v| (v as f32).to_bits().into())
                }
                DType::Double | DType::Complex128 => {
                    let most = f64::MAX.to_bits();
                    let bits = [1, (1 << 52) - 1, 1 << 52, most, most | 1 << 63];
                    float(source, bits, &f64::to_bits)
                }
                DType::Float16 => {
                    float(source, [1, 0x3ff, 0x400, 0x7bff, 0xfbff], &|v| f16::from_f64(v).to_bits().into())
                }
                DType::Bfloat16 => {
                    float(source, [1, 0x7f, 0x80, 0x7f7f, 0xff7f], &|v| bf16::from_f64(v).to_bits().into())
                }
                DType::Int64 | DType::Int32 | DType::Int16 | DType::Int8 => {
                    let least = 1u64 << (8 * size - 1);
                    source.pick(&[least, least - 1, 0, 1, u64::MAX])
                }
                DType::Uint64 | DType::Uint32 | DType::Uint16 | DType::Uint8 => {
                    source.pick(&[0, u64::MAX, 1, 2, u64::MAX - 1])
                }
                _ => return self.source.tensor(dtype, shape, None),
            };
            if matches!(dtype, DType::Complex64 | DType::Complex128) {
                let half = size / 2;
                bytes.extend(word.to_le_bytes().into_iter().take(half));
                bytes.extend(std::iter::repeat_n(0, half));
            } else {
                bytes.extend(word.to_le_bytes().into_iter().take(size));
            }
        }
        Tensor::new(dtype, shape, bytes).map_err(|error| error.to_string())
    }

    /// Integers that an input of this name has: axes, sizes, positions.
    fn meant(&mut self, name: &str, dtype: DType, place: usize) -> Option<Tensor> {
        let name = if self.schema.name == "ConstantOfShape" { "shape" } else { name };
        if place == 0 && !matches!(name, "shape" | "size" | "input_shape")
            || !matches!(dtype, DType::Int64 | DType::Int32)
        {
            return None;
        }
        let (first, rank) = (self.first.clone(), self.first.len());
        let signed = |size: &usize| *size as i64;
        let list: Vec<i64> = match name {
            "shape" if place == 0 => (0..self.source.below(4)).map(|_| self.source.below(4) as i64).collect(),
            "shape" if self.schema.name == "Reshape" => first.iter().rev().map(signed).collect(),
            "shape" | "output_shape" | "sizes" | "target_shape" => first.iter().map(signed).collect(),
            "size" if rank == 3 => vec![first.first().map_or(1, signed), 2, 2, 3],
            "axes" => (0..self.length.min(rank.max(1))).map(signed_at).collect(),
            "pads" => (0..2 * rank).map(|_| self.source.below(3) as i64).collect(),
            "repeats" => (0..rank).map(|_| 1 + self.source.below(2) as i64).collect(),
            "starts" => (0..self.length.min(rank)).map(|_| self.source.pick(&[0, 0, 1, -2])).collect(),
            "ends" => (0..self.length.min(rank)).map(|_| self.source.pick(&[2, 9, -1])).collect(),
            "steps" => (0..self.length.min(rank)).map(|_| self.source.pick(&[1, 1, 2])).collect(),
            "split" => {
                let size = first.first().map_or(1, signed);
                vec![size / 2, size - size / 2]
            }
            "image_shape" => vec![2, first.last().map_or(1, signed) + 1],
            "block_shape" => vec![2, 2],
            "k" | "K" => vec![1],
            "axis" | "size" | "depth" | "position" | "k_axis" | "frame_length" | "dft_length" | "frame_step"
            | "num_mel_bins" | "sample_rate" => {
                let scalar = match name {
                    "axis" => self.source.below(rank) as i64,
                    "position" => 0,
                    _ => 2 + self.source.below(6) as i64,
                };
                return integers(dtype, &[], vec![scalar]).ok();
            }
            "indices" => {
                let least = first.iter().min().copied().unwrap_or(1);
                let shape = self.shape(place);
                let count = shape.iter().product();
                let list = (0..count).map(|_| self.source.below(least) as i64).collect();
                return integers(dtype, &shape, list).ok();
            }
            "target" => {
                let classes = first.get(1).copied().unwrap_or(1);
                let shape = self.shape(place);
                let list = (0..shape.iter().product()).map(|_| self.source.below(classes) as i64).collect();
                return integers(dtype, &shape, list).ok();
            }
            _ => return None,
        };
        integers(dtype, &[list.len()], list).ok()
    }
}

/// Regions, whose first number is that of their image: 0.
fn of_first_image(rois: &Tensor) -> Result<Tensor, String> {
    let mut bytes = rois.bytes().to_vec();
    for image in bytes.chunks_mut(5 * rois.dtype().size()) {
        image.iter_mut().take(rois.dtype().size()).for_each(|byte| *byte = 0);
    }
    Tensor::new(rois.dtype(), rois.shape(), bytes).map_err(|error| error.to_string())
}

fn signed_at(at: usize) -> i64 {
    at as i64
}

/// A tensor of integers.
pub(super) fn integers(dtype: DType, shape: &[usize], list: Vec<i64>) -> onnxref::Result<Tensor> {
    let bytes = list.iter().flat_map(|number| number.to_le_bytes().into_iter().take(dtype.size()));
    Tensor::new(dtype, shape, bytes.collect::<Vec<u8>>())
}
