//! Random values, the same for a seed on every machine.

use onnxref::half::{bf16, f16};
use onnxref::{DType, Error, Kind, Scalar, Tensor};
use onnxref_view::{bounds_of, dtype_name};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Maximum number of elements of a value.
const MAX_ELEMENTS: usize = 1 << 31;

/// The least and the greatest number.
pub(crate) type Range = (f64, f64);

/// Makes values.
pub(crate) struct Random(Pcg64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Pcg64::seed_from_u64(seed))
    }

    /// A tensor: floats from -1 to 1, integers 0 and 1, unless a range is given.
    pub(crate) fn tensor(&mut self, dtype: DType, shape: &[usize], range: Option<Range>) -> Result<Tensor, String> {
        let len = shape.iter().try_fold(1usize, |len, size| len.checked_mul(*size)).filter(|len| *len <= MAX_ELEMENTS);
        let len = len.ok_or_else(|| format!("shape {shape:?} has more than {MAX_ELEMENTS} elements"))?;
        let floats = range.unwrap_or((-1.0, 1.0));
        if let Some(greatest) = greatest(dtype)
            && (floats.0 < -greatest || floats.1 > greatest)
        {
            let (name, least) = (dtype_name(dtype), -greatest);
            return Err(format!("{}..{} is out of range for {name}: {least:?}..{greatest:?}", floats.0, floats.1));
        }
        let made = match dtype {
            DType::Float => Tensor::from_elements(shape, self.list(len, |it| it.float(floats) as f32)),
            DType::Double => Tensor::from_elements(shape, self.list(len, |it| it.float(floats))),
            DType::Float16 => Tensor::from_elements(shape, self.list(len, |it| f16::from_f64(it.float(floats)))),
            DType::Bfloat16 => Tensor::from_elements(shape, self.list(len, |it| bf16::from_f64(it.float(floats)))),
            DType::Complex64 => {
                let bytes = self.list(2 * len, |it| (it.float(floats) as f32).to_le_bytes());
                Tensor::new(dtype, shape, bytes.concat())
            }
            DType::Complex128 => {
                let bytes = self.list(2 * len, |it| it.float(floats).to_le_bytes());
                Tensor::new(dtype, shape, bytes.concat())
            }
            DType::String => Tensor::from_strings(shape, self.list(len, Random::word)),
            DType::Bool => Tensor::new(dtype, shape, self.list(len, |it| it.below(1) as u8)),
            _ => match bounds_of(dtype) {
                Some(bounds) => {
                    // Inwards, so that every number is in the range.
                    let inwards = |(least, most): Range| (least.ceil() as i128, most.floor() as i128);
                    let (least, most) = range.map_or((0, 1), inwards);
                    if let Some((low, high)) = range.filter(|_| least > most) {
                        return Err(format!("no value of type {dtype} is in {low}..{high}"));
                    }
                    if least < bounds.0 || most > bounds.1 {
                        return Err(format!("{least}..{most} is out of range for {dtype}: {}..{}", bounds.0, bounds.1));
                    }
                    let size = dtype.size();
                    let bytes =
                        self.list(len, |it| (least + i128::from(it.below((most - least) as u64))).to_le_bytes());
                    Tensor::new(
                        dtype,
                        shape,
                        bytes.iter().flat_map(|b| b.iter().take(size).copied()).collect::<Vec<u8>>(),
                    )
                }
                None => self.codes(dtype, shape, len, floats),
            },
        };
        made.map_err(|e| format!("{e:#}"))
    }

    fn list<T>(&mut self, len: usize, mut one: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..len).map(|_| one(self)).collect()
    }

    /// A number of an interval, with 53 random bits.
    fn float(&mut self, (least, most): Range) -> f64 {
        let part = (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        least + part * (most - least)
    }

    /// An integer of at most `most`.
    fn below(&mut self, most: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * (u128::from(most) + 1)) >> 64) as u64
    }

    fn word(&mut self) -> String {
        (0..8).map(|_| char::from(b'a' + self.below(25) as u8)).collect()
    }

    /// Floats of at most 8 bits: of those in the range.
    fn codes(&mut self, dtype: DType, shape: &[usize], len: usize, (least, most): Range) -> Result<Tensor, Error> {
        let codes: Vec<u8> = (0..=u8::MAX).take(1 << dtype.bits()).collect();
        let table = Tensor::new(dtype, &[codes.len()], codes.clone())?;
        let fits = |scalar: &Scalar<'_>| matches!(scalar, Scalar::Float(v) if (least..=most).contains(&f64::from(*v)));
        let fitting: Vec<u8> = codes.iter().zip(table.scalars()).filter(|(_, s)| fits(s)).map(|(c, _)| *c).collect();
        let Some(last) = fitting.len().checked_sub(1) else {
            return Err(Error::new(Kind::Input, format!("no value of type {dtype} is in {least}..{most}")));
        };
        let bytes = self.list(len, |it| fitting.get(it.below(last as u64) as usize).copied().unwrap_or(0));
        Tensor::new(dtype, shape, bytes)
    }
}

/// The greatest bound of random floats of more than 8 bits. That of float64 leaves room for the width of a range.
fn greatest(dtype: DType) -> Option<f64> {
    match dtype {
        DType::Float16 => Some(f16::MAX.to_f64()),
        DType::Bfloat16 => Some(bf16::MAX.to_f64()),
        DType::Float | DType::Complex64 => Some(f32::MAX.into()),
        DType::Double | DType::Complex128 => Some(f64::MAX / 2.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_values_of_every_type() {
        for dtype in DType::all() {
            let make = |seed| Random::new(seed).tensor(dtype, &[64], None).unwrap();
            assert_eq!(make(1), make(1), "{dtype}");
            assert_ne!(make(1), make(2), "{dtype}");
            assert_eq!((make(1).dtype(), make(1).shape()), (dtype, [64].as_slice()));
        }
        // Committed runs must not change.
        assert_eq!(
            Random::new(0).tensor(DType::Int64, &[8], Some((0.0, 99.0))).unwrap().values().to_string(),
            "[12, 34, 70, 3, 85, 16, 19, 50]"
        );
    }

    #[test]
    fn ranges_are_kept_and_reached() {
        for dtype in [DType::Int8, DType::Uint8, DType::Int16, DType::Int64, DType::Uint64, DType::Int4] {
            let tensor = Random::new(3).tensor(dtype, &[1000], Some((2.0, 5.0))).unwrap();
            let mut seen: Vec<String> = tensor.scalars().map(|v| v.to_string()).collect();
            seen.sort();
            seen.dedup();
            assert_eq!(seen, ["2", "3", "4", "5"], "{dtype}");
        }
        let tensor = Random::new(3).tensor(DType::Float, &[1000], Some((-3.0, 7.0))).unwrap();
        let all = tensor.as_slice::<f32>().unwrap();
        let [least, most] = [f32::min, f32::max].map(|f| all.iter().copied().reduce(f).unwrap());
        assert!((-3.0..-2.9).contains(&least) && (6.9..7.0).contains(&most), "{least} {most}");
        assert!(Random::new(3).tensor(DType::Int4, &[1], Some((100.0, 200.0))).is_err());
        let tensor = Random::new(3).tensor(DType::Int64, &[1000], Some((-1.5, 1.5))).unwrap();
        let all = tensor.as_slice::<i64>().unwrap();
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&-1), Some(&1)));
        let tensor = Random::new(3).tensor(DType::Uint8, &[9], Some((0.5, 1.9))).unwrap();
        assert_eq!(tensor.bytes(), [1; 9]);
        let none = Random::new(3).tensor(DType::Int64, &[1], Some((0.2, 0.8)));
        assert_eq!(none.unwrap_err(), "no value of type int64 is in 0.2..0.8");
        assert!(Random::new(3).tensor(DType::Float, &[usize::MAX, 2], None).is_err());
        let half = |most| Random::new(3).tensor(DType::Float16, &[1000], Some((0.0, most)));
        assert!(half(65504.0).unwrap().scalars().all(|v| matches!(v, Scalar::Float(v) if v.is_finite())));
        assert_eq!(half(1e6).unwrap_err(), "0..1000000 is out of range for float16: -65504.0..65504.0");
        assert!(Random::new(3).tensor(DType::Double, &[1], Some((-1e308, 1e308))).is_err());
    }
}
