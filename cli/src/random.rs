//! Random values, the same for a seed on every machine.

use crate::failure::exceeded;
use onnxref::half::{bf16, f16};
use onnxref::{DType, Error, Kind, Limits, Scalar, Tensor};
use onnxref_view::{bounds_of, dtype_name};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Maximum number of elements of a value.
const MAX_ELEMENTS: usize = 1 << 31;

/// Bytes of a random string.
const WORD: usize = 8;

/// The least and the greatest number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    floats: (f64, f64),
    /// The integers inside: none if the first is greater.
    integers: (i128, i128),
}

impl From<(f64, f64)> for Range {
    fn from((least, most): (f64, f64)) -> Range {
        // Inwards, so that every number is in the range.
        Range { floats: (least, most), integers: (least.ceil() as i128, most.floor() as i128) }
    }
}

impl Range {
    /// `LO..HI`, where integers are exact.
    pub(crate) fn parse(text: &str) -> Option<Range> {
        let (least, most) = text.split_once("..")?;
        let floats: (f64, f64) = (least.parse().ok()?, most.parse().ok()?);
        let near = Range::from(floats);
        let exact: (Option<i128>, Option<i128>) = (least.parse().ok(), most.parse().ok());
        let ordered = match exact {
            (Some(least), Some(most)) => least <= most,
            _ => floats.0 <= floats.1,
        };
        let integers = (exact.0.unwrap_or(near.integers.0), exact.1.unwrap_or(near.integers.1));
        let good = ordered && floats.0.is_finite() && floats.1.is_finite();
        good.then_some(Range { floats, integers })
    }
}

/// Makes values.
pub(crate) struct Random {
    numbers: Pcg64,
    limits: Limits,
    /// Bytes of all values that were made.
    made: u64,
}

impl Random {
    /// Makes values within the default limits.
    pub(crate) fn new(seed: u64) -> Random {
        Random::within(&Limits::default(), seed)
    }

    /// Makes values that take at most as many bytes as a run may hold, and each at most as many as a tensor may have.
    pub(crate) fn within(limits: &Limits, seed: u64) -> Random {
        Random { numbers: Pcg64::seed_from_u64(seed), limits: limits.clone(), made: 0 }
    }

    /// Counts the bytes of a value before it is made.
    fn charge(&mut self, dtype: DType, len: usize) -> Result<(), String> {
        let text = if dtype == DType::String { WORD } else { 0 };
        let bytes = (len as u64).saturating_mul((dtype.size() + text) as u64);
        if bytes > self.limits.tensor_bytes {
            return Err(exceeded("random values take", bytes, "tensor_bytes", self.limits.tensor_bytes));
        }
        self.made = self.made.saturating_add(bytes);
        if self.made > self.limits.run_bytes {
            return Err(exceeded("all random values take", self.made, "run_bytes", self.limits.run_bytes));
        }
        Ok(())
    }

    /// A tensor: floats from -1 to 1, integers 0 and 1, unless a range is given.
    pub(crate) fn tensor(&mut self, dtype: DType, shape: &[usize], range: Option<Range>) -> Result<Tensor, String> {
        let len = shape.iter().try_fold(1usize, |len, size| len.checked_mul(*size)).filter(|len| *len <= MAX_ELEMENTS);
        let len = len.ok_or_else(|| format!("shape {shape:?} has more than {MAX_ELEMENTS} elements"))?;
        let floats = range.map_or((-1.0, 1.0), |range| range.floats);
        if let Some(greatest) = greatest(dtype)
            && (floats.0 < -greatest || floats.1 > greatest)
        {
            let (name, least) = (dtype_name(dtype), -greatest);
            return Err(format!("{}..{} is out of range for {name}: {least:?}..{greatest:?}", floats.0, floats.1));
        }
        self.charge(dtype, len)?;
        let made = match dtype {
            DType::Float => Tensor::from_elements(shape, self.list(len, |it| it.float(floats) as f32)),
            DType::Double => Tensor::from_elements(shape, self.list(len, |it| it.float(floats))),
            DType::Float16 => Tensor::from_elements(shape, self.list(len, |it| f16::from_f64(it.float(floats)))),
            DType::Bfloat16 => Tensor::from_elements(shape, self.list(len, |it| bf16::from_f64(it.float(floats)))),
            DType::Complex64 => {
                let bytes = self.bytes(2 * len, size_of::<f32>(), |it| (it.float(floats) as f32).to_le_bytes());
                Tensor::new(dtype, shape, bytes)
            }
            DType::Complex128 => {
                let bytes = self.bytes(2 * len, size_of::<f64>(), |it| it.float(floats).to_le_bytes());
                Tensor::new(dtype, shape, bytes)
            }
            DType::String => Tensor::from_strings(shape, (0..len).map(|_| self.word())),
            DType::Bool => Tensor::new(dtype, shape, self.list(len, |it| it.below(1) as u8)),
            _ => match bounds_of(dtype) {
                Some(bounds) => {
                    let (least, most) = range.map_or((0, 1), |range| range.integers);
                    if least > most {
                        return Err(format!("no value of type {dtype} is in {}..{}", floats.0, floats.1));
                    }
                    if least < bounds.0 || most > bounds.1 {
                        return Err(format!("{least}..{most} is out of range for {dtype}: {}..{}", bounds.0, bounds.1));
                    }
                    let width = (most - least) as u64;
                    let bytes = self.bytes(len, dtype.size(), |it| (least + i128::from(it.below(width))).to_le_bytes());
                    Tensor::new(dtype, shape, bytes)
                }
                None => self.codes(dtype, shape, len, floats),
            },
        };
        made.map_err(|e| format!("{e:#}"))
    }

    fn list<T>(&mut self, len: usize, mut one: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..len).map(|_| one(self)).collect()
    }

    /// The first `size` bytes of each element.
    fn bytes<const N: usize>(
        &mut self,
        len: usize,
        size: usize,
        mut one: impl FnMut(&mut Random) -> [u8; N],
    ) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len * size);
        (0..len).for_each(|_| bytes.extend(one(self).iter().take(size)));
        bytes
    }

    /// A number of an interval, with 53 random bits.
    fn float(&mut self, (least, most): (f64, f64)) -> f64 {
        let part = (self.numbers.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        least + part * (most - least)
    }

    /// An integer of at most `most`.
    fn below(&mut self, most: u64) -> u64 {
        ((u128::from(self.numbers.next_u64()) * (u128::from(most) + 1)) >> 64) as u64
    }

    fn word(&mut self) -> String {
        (0..WORD).map(|_| char::from(b'a' + self.below(25) as u8)).collect()
    }

    /// Floats of at most 8 bits: of those in the range.
    fn codes(&mut self, dtype: DType, shape: &[usize], len: usize, (least, most): (f64, f64)) -> Result<Tensor, Error> {
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
            Random::new(0).tensor(DType::Int64, &[8], Some((0.0, 99.0).into())).unwrap().values().to_string(),
            "[12, 34, 70, 3, 85, 16, 19, 50]"
        );
    }

    #[test]
    fn ranges_are_kept_and_reached() {
        for dtype in [DType::Int8, DType::Uint8, DType::Int16, DType::Int64, DType::Uint64, DType::Int4] {
            let tensor = Random::new(3).tensor(dtype, &[1000], Some((2.0, 5.0).into())).unwrap();
            let mut seen: Vec<String> = tensor.scalars().map(|v| v.to_string()).collect();
            seen.sort();
            seen.dedup();
            assert_eq!(seen, ["2", "3", "4", "5"], "{dtype}");
        }
        let tensor = Random::new(3).tensor(DType::Float, &[1000], Some((-3.0, 7.0).into())).unwrap();
        let all = tensor.as_slice::<f32>().unwrap();
        let [least, most] = [f32::min, f32::max].map(|f| all.iter().copied().reduce(f).unwrap());
        assert!((-3.0..-2.9).contains(&least) && (6.9..7.0).contains(&most), "{least} {most}");
        assert!(Random::new(3).tensor(DType::Int4, &[1], Some((100.0, 200.0).into())).is_err());
        let tensor = Random::new(3).tensor(DType::Int64, &[1000], Some((-1.5, 1.5).into())).unwrap();
        let all = tensor.as_slice::<i64>().unwrap();
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&-1), Some(&1)));
        let tensor = Random::new(3).tensor(DType::Uint8, &[9], Some((0.5, 1.9).into())).unwrap();
        assert_eq!(tensor.bytes(), [1; 9]);
        let none = Random::new(3).tensor(DType::Int64, &[1], Some((0.2, 0.8).into()));
        assert_eq!(none.unwrap_err(), "no value of type int64 is in 0.2..0.8");
        assert!(Random::new(3).tensor(DType::Float, &[usize::MAX, 2], None).is_err());
        let half = |most| Random::new(3).tensor(DType::Float16, &[1000], Some((0.0, most).into()));
        assert!(half(65504.0).unwrap().scalars().all(|v| matches!(v, Scalar::Float(v) if v.is_finite())));
        assert_eq!(half(1e6).unwrap_err(), "0..1000000 is out of range for float16: -65504.0..65504.0");
        assert!(Random::new(3).tensor(DType::Double, &[1], Some((-1e308, 1e308).into())).is_err());
    }

    #[test]
    fn integers_are_exact() {
        let drawn = |text: &str| {
            let range = Range::parse(text).unwrap();
            Random::new(3)
                .tensor(DType::Int64, &[50], Some(range))
                .map(|tensor| tensor.as_slice::<i64>().unwrap().to_vec())
        };
        assert_eq!(drawn("9007199254740993..9007199254740993").unwrap(), [9_007_199_254_740_993; 50]);
        assert!(drawn("1..9223372036854775807").unwrap().iter().all(|v| *v >= 1));
        assert!(drawn("-9223372036854775808..9223372036854775807").unwrap().iter().any(|v| *v < 0));
        let why = "1..9223372036854775808 is out of range for int64: -9223372036854775808..9223372036854775807";
        assert_eq!(drawn("1..9223372036854775808").unwrap_err(), why);
        assert_eq!(drawn("0.5..1e0").unwrap(), [1; 50]);
        for wrong in ["9007199254740993..9007199254740992", "1..0.5", "1", "1..", "0..inf", "NaN..1"] {
            assert!(Range::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn values_are_within_the_limits() {
        let mut limits = Limits::default();
        (limits.tensor_bytes, limits.run_bytes) = (64, 90);
        for dtype in DType::all() {
            let mut random = Random::within(&limits, 1);
            let each = dtype.size() + if dtype == DType::String { WORD } else { 0 };
            let len = 64 / each;
            let why = format!(
                "random values take {} bytes: the limit is 64 (--limit tensor_bytes=N raises it)",
                each * (len + 1)
            );
            assert_eq!(random.tensor(dtype, &[len + 1], None).unwrap_err(), why, "{dtype}");
            assert_eq!(random.tensor(dtype, &[len], None).unwrap().shape(), [len]);
            let all = 2 * len * each;
            let why = format!("all random values take {all} bytes: the limit is 90 (--limit run_bytes=N raises it)");
            assert_eq!(random.tensor(dtype, &[len], None).unwrap_err(), why, "{dtype}");
        }
    }
}
