//! Random values for inputs.

use crate::print::nested;
use onnxref::DType;
use onnxref_view::bounds_of;
use serde::Deserialize;

/// Maximum number of elements of a random tensor.
const MAX_ELEMENTS: usize = 10_000_000;

/// A shape and a range. The same seed gives the same values.
#[derive(Deserialize)]
pub(crate) struct Random {
    pub(crate) shape: Vec<usize>,
    pub(crate) seed: u32,
    /// The least integer.
    pub(crate) low: i32,
    /// The greatest integer. Floats are in -1..1, whatever the range.
    pub(crate) high: i32,
}

/// A literal of random values; float32 if no element type is declared.
pub(crate) fn literal(dtype: Option<DType>, random: &Random) -> Result<String, String> {
    let count = random.shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
    let count = count.filter(|count| *count <= MAX_ELEMENTS);
    let count = count.ok_or_else(|| format!("at most {MAX_ELEMENTS} random elements are made"))?;
    let mut state = State(u64::from(random.seed));
    let elements: Vec<String> =
        (0..count).map(|_| element(dtype.unwrap_or(DType::Float), random, &mut state)).collect();
    Ok(nested(&random.shape, &elements))
}

fn element(dtype: DType, random: &Random, state: &mut State) -> String {
    match dtype {
        DType::Bool => (state.below(2) == 1).to_string(),
        DType::String => format!("\"{}\"", char::from(b'a' + state.below(26) as u8)),
        DType::Complex64 | DType::Complex128 => format!("[{}, {}]", state.decimal(), state.decimal()),
        DType::Float | DType::Double | DType::Float16 | DType::Bfloat16 => state.decimal(),
        // Powers of two only; the other small floats hold these too.
        DType::Float8e8m0 | DType::Float8e4m3fn | DType::Float8e4m3fnuz => ["0.5", "1", "2"].pick(state),
        DType::Float8e5m2 | DType::Float8e5m2fnuz | DType::Float4e2m1 => ["0.5", "1", "2"].pick(state),
        _ => {
            let (least, most) = bounds_of(dtype).unwrap_or((0, 0));
            let low = i128::from(random.low).clamp(least, most);
            let high = i128::from(random.high).clamp(low, most);
            (low + i128::from(state.below((high - low) as u64 + 1))).to_string()
        }
    }
}

trait Pick {
    fn pick(&self, state: &mut State) -> String;
}

impl Pick for [&str; 3] {
    fn pick(&self, state: &mut State) -> String {
        self.get(state.below(3) as usize).copied().unwrap_or("1").to_string()
    }
}

/// SplitMix64.
struct State(u64);

impl State {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Between -1 and 1, with three digits.
    fn decimal(&mut self) -> String {
        let thousandths = self.below(1999) as i64 - 999;
        format!("{}0.{:03}", if thousandths < 0 { "-" } else { "" }, thousandths.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_can_be_random() {
        for dtype in DType::all() {
            let random = Random { shape: vec![3, 4], seed: 7, low: -1, high: 1 };
            let text = literal(Some(dtype), &random).unwrap();
            let tensor =
                onnxref_view::literal::parse(&text, Some(dtype)).unwrap_or_else(|why| panic!("{dtype}: {why}"));
            assert_eq!((tensor.dtype(), tensor.shape()), (dtype, [3, 4].as_slice()));
        }
    }

    #[test]
    fn shapes() {
        let text =
            |shape: &[usize]| literal(Some(DType::Int64), &Random { shape: shape.into(), seed: 0, low: 5, high: 5 });
        assert_eq!(text(&[]).unwrap(), "5");
        assert_eq!(text(&[2, 2]).unwrap(), "[[5, 5],\n [5, 5]]");
        assert_eq!(text(&[2, 0]).unwrap(), "[[],\n []]");
        assert!(text(&[usize::MAX, 2]).is_err() && text(&[MAX_ELEMENTS + 1]).is_err());
    }
}
