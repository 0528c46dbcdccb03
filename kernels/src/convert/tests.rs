//! Each pair of types against the definition: the neighbours among all numbers of the type, compared exactly.

use super::{Conversion, Direction, Rounding, convert};
use crate::Resources;
use crate::format::{Format, Small, Specials};
use crate::half::Half;
use crate::testing::at_each_level;
use crate::testing::sized;
use half::{bf16, f16};
use std::cmp::Ordering;

const UP: Rounding = Rounding { saturate: true, direction: Direction::Up, clamp: false };

const F16: Format = Format::Half(Half::F16);
const BF16: Format = Format::Half(Half::Bf16);
const FLOAT8E4M3FN: Format = small(4, 3, 7, Specials::TopIsNan);
const FLOAT8E4M3FNUZ: Format = small(4, 3, 8, Specials::NegativeZeroIsNan);
const FLOAT8E5M2: Format = small(5, 2, 15, Specials::Ieee);
const FLOAT8E5M2FNUZ: Format = small(5, 2, 16, Specials::NegativeZeroIsNan);
const FLOAT4E2M1: Format = small(2, 1, 1, Specials::None);
const FLOAT8E8M0: Format = small(8, 0, 127, Specials::TopIsNan);
const FLOAT6E2M3: Format = small(2, 3, 1, Specials::None);
const FLOAT6E3M2: Format = small(3, 2, 3, Specials::None);

const fn small(exponent: u8, mantissa: u8, bias: i32, specials: Specials) -> Format {
    Format::Small(Small { exponent, mantissa, bias, specials })
}

fn numeric() -> impl Iterator<Item = Format> {
    let floats = [Format::Single, Format::Double, F16, BF16, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ];
    let tiny = [FLOAT4E2M1, FLOAT8E8M0, FLOAT6E2M3, FLOAT6E3M2, Format::Bool];
    let integers = [2, 4, 8, 16, 32, 64].into_iter().flat_map(|bits| [Format::Signed(bits), Format::Unsigned(bits)]);
    floats.into_iter().chain(tiny).chain(integers)
}

fn converted(from: Format, to: Format, rounding: Rounding, elements: &[u8], threads: usize) -> Vec<u8> {
    let count = elements.len() / from.size();
    let mut aligned = vec![0u64; elements.len().div_ceil(8)];
    let aligned: &mut [u8] = bytemuck::cast_slice_mut(&mut aligned).get_mut(..elements.len()).unwrap();
    aligned.copy_from_slice(elements);
    let mut out = vec![0u64; (count * to.size()).div_ceil(8)];
    let out = bytemuck::cast_slice_mut(&mut out).get_mut(..count * to.size()).unwrap();
    convert(Conversion { from, to, rounding }, aligned, out, Resources { threads, stop: None }).unwrap();
    out.to_vec()
}

/// A number of any type, as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Float(f64),
    Integer(i128),
}

fn read(format: Format, element: &[u8]) -> Number {
    let mut word = [0; 8];
    word[..element.len()].copy_from_slice(element);
    let bits = u64::from_le_bytes(word);
    match format {
        Format::Small(format) => Number::Float(format.value(bits as u8).into()),
        Format::Single => Number::Float(f32::from_bits(bits as u32).into()),
        Format::Double => Number::Float(f64::from_bits(bits)),
        F16 => Number::Float(f16::from_bits(bits as u16).into()),
        BF16 => Number::Float(bf16::from_bits(bits as u16).into()),
        Format::Signed(_) => {
            let unused = 64 - 8 * format.size();
            Number::Integer(i128::from((bits << unused).cast_signed() >> unused))
        }
        _ => Number::Integer(bits.into()),
    }
}

impl Number {
    fn compare(self, other: f64) -> Ordering {
        match self {
            Number::Float(own) => own.total_cmp(&other).then(Ordering::Equal),
            // No integer has more than 64 bits, so it doesn't matter that this saturates.
            Number::Integer(own) => own.cmp(&(other.floor() as i128)).then(if other.floor() == other {
                Ordering::Equal
            } else {
                Ordering::Less
            }),
        }
    }

    fn is_negative(self) -> bool {
        match self {
            Number::Float(own) => own.is_sign_negative(),
            Number::Integer(own) => own < 0,
        }
    }

    fn is_nan(self) -> bool {
        matches!(self, Number::Float(own) if own.is_nan())
    }

    fn magnitude(self) -> Number {
        match self {
            Number::Float(own) => Number::Float(own.abs()),
            Number::Integer(own) => Number::Integer(own.abs()),
        }
    }
}

/// The numbers of a float type of at most 16 bits from 0 on. A number's index is its code.
struct Numbers {
    format: Format,
    finite: Vec<f64>,
}

impl Numbers {
    fn of(format: Format) -> Numbers {
        let unsigned = 1u32 << (format.bits() - usize::from(format != FLOAT8E8M0));
        let value = |code: u32| match read(format, &code.to_le_bytes()[..format.size()]) {
            Number::Float(value) => value,
            Number::Integer(_) => unreachable!(),
        };
        let finite: Vec<f64> = (0..unsigned).map(value).take_while(|value| value.is_finite()).collect();
        assert!(finite.is_sorted());
        Numbers { format, finite }
    }

    /// The code of a positive number: as if there were a next number beyond the greatest.
    fn nearest(&self, number: Number) -> usize {
        let above = self.finite.partition_point(|value| number.compare(*value).is_gt());
        let at = |k: usize| match self.finite.get(k) {
            Some(value) => *value,
            None => 2.0 * self.finite[k - 1] - self.finite[k - 2],
        };
        let Some(below) = above.checked_sub(1) else { return above };
        if number == Number::Float(f64::INFINITY) {
            return self.finite.len();
        }
        match number.compare(f64::midpoint(at(below), at(above))) {
            Ordering::Less => below,
            Ordering::Greater => above,
            Ordering::Equal => below + below % 2,
        }
    }

    fn code(&self, number: Number, Rounding { saturate, direction, .. }: Rounding) -> u32 {
        if self.format == FLOAT8E8M0 {
            return self.power(number, saturate, direction);
        }
        let sign = 1 << (self.format.bits() - 1);
        let specials = match self.format {
            Format::Small(format) => format.specials,
            _ => Specials::Ieee,
        };
        let sign = if number.is_negative() { sign } else { 0 };
        let (greatest, saturate) = (self.finite.len() as u32 - 1, saturate && self.format.bits() <= 8);
        let code = self.nearest(number.magnitude()) as u32;
        let code = match specials {
            _ if code <= greatest => code,
            Specials::None => greatest,
            _ if saturate => greatest,
            Specials::Ieee | Specials::TopIsNan => greatest + 1,
            Specials::NegativeZeroIsNan => return 0x80,
        };
        if code == 0 && specials == Specials::NegativeZeroIsNan { 0 } else { code | sign }
    }

    fn power(&self, number: Number, saturate: bool, direction: Direction) -> u32 {
        if number.compare(0.0).is_lt() && number != Number::Float(-0.0) {
            return 255;
        }
        let number = number.magnitude();
        let Some(below) = self.finite.partition_point(|value| number.compare(*value).is_ge()).checked_sub(1) else {
            return if saturate { 0 } else { 255 };
        };
        let value = self.finite[below];
        let up = match direction {
            Direction::Up => number.compare(value).is_gt(),
            Direction::Down => false,
            // The standard's table: what is above the greatest number is NaN.
            Direction::Nearest if below == 254 => number.compare(value).is_gt(),
            Direction::Nearest => number.compare(1.5 * value).is_ge(),
        };
        match below + usize::from(up) {
            _ if number == Number::Float(f64::INFINITY) => {
                if saturate {
                    254
                } else {
                    255
                }
            }
            255 if saturate => 254,
            code => code as u32,
        }
    }
}

/// What an element becomes, by definition.
fn check(from: Format, to: Format, numbers: Option<&Numbers>, rounding: Rounding, element: &[u8], got: &[u8]) {
    let number = read(from, element);
    let what = || format!("{from:?} {number:?} to {to:?} {rounding:?}: {got:?}");
    let result = read(to, got);
    if let (Some(numbers), false) = (numbers, number.is_nan()) {
        assert_eq!(got, &numbers.code(number, rounding).to_le_bytes()[..to.size()], "{}", what());
        return;
    }
    assert_eq!(to.first_invalid(&got[..1]).filter(|_| to.size() == 1), None, "{}", what());
    match (to, number) {
        (Format::Bool, Number::Float(number)) => {
            assert_eq!(result, Number::Integer((number != 0.0).into()), "{}", what())
        }
        (Format::Bool, Number::Integer(number)) => {
            assert_eq!(result, Number::Integer((number != 0).into()), "{}", what())
        }
        (Format::Small(format), _) if format.specials == Specials::None => {
            assert!(matches!(result, Number::Float(zero) if zero == 0.0 && zero.is_sign_negative()), "{}", what());
        }
        (Format::Small(_) | Format::Half(_) | Format::Single | Format::Double, _) if number.is_nan() => {
            assert!(result.is_nan(), "{}", what())
        }
        (Format::Single, Number::Float(number)) => {
            assert_eq!(result, Number::Float((number as f32).into()), "{}", what());
        }
        (Format::Half(_) | Format::Double, Number::Float(_)) => assert_eq!(result, number, "{}", what()),
        (Format::Single, Number::Integer(number)) => {
            assert_eq!(result, Number::Float((number as f32).into()), "{}", what());
        }
        (Format::Half(_) | Format::Double, Number::Integer(number)) => {
            assert_eq!(result, Number::Float(number as f64), "{}", what())
        }
        (_, number) => {
            let integer = match number {
                Number::Float(number) if number.is_finite() => (number.trunc() % 2f64.powi(64)) as i128,
                Number::Float(_) => 0,
                Number::Integer(number) => number,
            };
            let modulus = 1i128 << to.bits();
            let low = integer.rem_euclid(modulus);
            let signed = matches!(to, Format::Signed(_)) && low >= modulus / 2;
            assert_eq!(result, Number::Integer(if signed { low - modulus } else { low }), "{}", what());
        }
    }
}

/// Elements of a type: all of them up to 16 bits; of wider ones those around powers of 2 and around all ties of narrow
/// types.
fn interesting(format: Format) -> Vec<u8> {
    let step = sized(1, 501);
    if format.size() == 1 {
        return (0..=255u8).step_by(sized(1, 9)).filter(|byte| format.first_invalid(&[*byte]).is_none()).collect();
    }
    if format.size() == 2 {
        let step = if matches!(format, Format::Half(_)) { step } else { sized(7, 501) };
        return (0..=u16::MAX).step_by(step).flat_map(u16::to_le_bytes).collect();
    }
    let mut floats =
        vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN, f64::MAX, f64::MIN_POSITIVE];
    let mut integers = vec![0];
    for k in (0..64).step_by(sized(1, 9)) {
        integers.extend((-3..=3).flat_map(|near: i128| [(1i128 << k) + near, -(1i128 << k) + near, (3 << k) + near]));
    }
    let near = |value: f64| [value, value.next_up(), value.next_down(), f64::from((value as f32).next_up())];
    for k in (-1074..1024).step_by(sized(1, 97)) {
        floats.extend([1.0, 1.5, -1.0].into_iter().flat_map(|by| near(by * 2f64.powi(k))));
    }
    // An interpreter takes minutes for the tables of 16 bits.
    for narrow in numeric().filter(|narrow| matches!(narrow, Format::Small(_)) || narrow.bits() == 16 && !cfg!(miri)) {
        if matches!(narrow, Format::Signed(_) | Format::Unsigned(_)) {
            continue;
        }
        let step = sized(if narrow.bits() == 16 { 97 } else { 1 }, 777);
        for pair in Numbers::of(narrow).finite.windows(2).step_by(step) {
            floats.extend(near(f64::midpoint(pair[0], pair[1])).into_iter().chain(near(-pair[1])));
        }
    }
    match format {
        Format::Single => floats.into_iter().flat_map(|value| (value as f32).to_le_bytes()).collect(),
        Format::Double => floats.into_iter().flat_map(f64::to_le_bytes).collect(),
        _ => {
            integers.extend(floats.iter().map(|value| *value as i128));
            integers.into_iter().flat_map(|value| value.to_le_bytes().into_iter().take(format.size())).collect()
        }
    }
}

#[test]
fn each_pair_of_types_is_rounded_once() {
    let sources: Vec<(Format, Vec<u8>)> = numeric().map(|from| (from, interesting(from))).collect();
    for to in numeric() {
        let narrow = matches!(to, Format::Small(_)) || matches!(to, F16 | BF16);
        let known = narrow && !(cfg!(miri) && to.bits() == 16);
        let numbers = known.then(|| Numbers::of(to));
        let roundings: &[Rounding] = match to {
            FLOAT8E8M0 => &[
                UP,
                Rounding { saturate: false, direction: Direction::Up, clamp: false },
                Rounding { saturate: true, direction: Direction::Down, clamp: false },
                Rounding { saturate: false, direction: Direction::Nearest, clamp: false },
                Rounding { saturate: true, direction: Direction::Nearest, clamp: false },
            ],
            _ if narrow => &[UP, Rounding { saturate: false, direction: Direction::Up, clamp: false }],
            _ => &[UP],
        };
        for (from, elements) in &sources {
            for &rounding in roundings {
                let out = converted(*from, to, rounding, elements, 1);
                if narrow && !known {
                    continue;
                }
                for (element, got) in elements.chunks(from.size()).zip(out.chunks(to.size())) {
                    check(*from, to, numbers.as_ref(), rounding, element, got);
                }
            }
        }
    }
}

#[test]
fn the_bits_depend_on_no_level() {
    for from in numeric() {
        let elements = interesting(from);
        let few = elements.len() / from.size() / sized(1500, 50);
        let elements: Vec<u8> = elements.chunks(from.size()).step_by(few + 1).flatten().copied().collect();
        for to in numeric() {
            let want = converted(from, to, UP, &elements, 1);
            at_each_level(|| assert!(converted(from, to, UP, &elements, 1) == want, "{from:?} to {to:?}"));
        }
    }
}

#[test]
#[cfg(feature = "rayon")]
#[cfg_attr(miri, ignore = "too large")]
fn the_bits_depend_on_no_number_of_threads() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    for from in [Format::Single, Format::Unsigned(8), F16] {
        let elements = interesting(from);
        let elements = elements.repeat((300 << 10) / elements.len() + 1);
        for to in [F16, Format::Signed(64), Format::Bool] {
            let want = converted(from, to, UP, &elements, 1);
            assert!(pool.install(|| converted(from, to, UP, &elements, 3)) == want, "{from:?} to {to:?}");
        }
    }
}

/// Values of the standard's tables and of its test cases.
#[test]
fn special_values() {
    let narrow = |to, saturate, values: &[f32]| {
        let elements: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        converted(Format::Single, to, Rounding { saturate, direction: Direction::Nearest, clamp: false }, &elements, 1)
    };
    let values = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e6, -1e6, 464.0, 465.0];
    assert_eq!(narrow(FLOAT8E4M3FN, true, &values), [0, 0x80, 0x7f, 0x7e, 0xfe, 0x7e, 0xfe, 0x7e, 0x7e]);
    assert_eq!(narrow(FLOAT8E4M3FN, false, &values), [0, 0x80, 0x7f, 0x7f, 0xff, 0x7f, 0xff, 0x7e, 0x7f]);
    assert_eq!(narrow(FLOAT8E4M3FNUZ, true, &values[..7]), [0, 0, 0x80, 0x7f, 0xff, 0x7f, 0xff]);
    assert_eq!(narrow(FLOAT8E4M3FNUZ, false, &values[..7]), [0, 0, 0x80, 0x80, 0x80, 0x80, 0x80]);
    assert_eq!(narrow(FLOAT8E5M2, true, &values[..7]), [0, 0x80, 0x7e, 0x7b, 0xfb, 0x7b, 0xfb]);
    assert_eq!(narrow(FLOAT8E5M2, false, &values[..7]), [0, 0x80, 0x7e, 0x7c, 0xfc, 0x7c, 0xfc]);
    assert_eq!(narrow(FLOAT4E2M1, true, &values[..5]), [0, 8, 8, 7, 15]);
    assert_eq!(narrow(FLOAT6E3M2, true, &values[..5]), [0, 32, 32, 31, 63]);
    assert_eq!(narrow(FLOAT8E8M0, true, &[0.0, f32::NAN, f32::INFINITY, 1.5, -1.0]), [0, 255, 254, 128, 255]);
    assert_eq!(narrow(FLOAT8E8M0, false, &[0.0, f32::INFINITY, 1.4, f32::MAX]), [255, 255, 127, 255]);
    let clamped = |to, values: &[f64]| {
        let elements: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        converted(Format::Double, to, Rounding { clamp: true, ..UP }, &elements, 1)
    };
    let far = [-9.0, 7.9, 300.0, f64::NAN, f64::NEG_INFINITY];
    assert_eq!(clamped(Format::Signed(4), &far), [0xf8, 7, 7, 0, 0xf8]);
    assert_eq!(clamped(Format::Unsigned(4), &far), [0, 7, 15, 0, 0]);
    assert_eq!(clamped(FLOAT4E2M1, &far), [15, 7, 7, 7, 15]);
    // NaN of each sign, signalling and with a payload.
    for (sign, double, float) in
        [(0u32, 0x7ff0_0000_0000_0001u64, 0x7fa0_0001u32), (1u32, 0xfff8_0000_0000_1234, 0xff80_0001)]
    {
        let quiet_float = (0x7fc0_0000u32 | sign << 31).to_le_bytes();
        assert_eq!(converted(Format::Double, Format::Single, UP, &double.to_le_bytes(), 1), quiet_float);
        let quiet_double = (0x7ff8u64 << 48 | u64::from(sign) << 63).to_le_bytes();
        assert_eq!(converted(Format::Single, Format::Double, UP, &float.to_le_bytes(), 1), quiet_double);
        let half = |bits: u16| (bits | (sign as u16) << 15).to_le_bytes();
        assert_eq!(converted(Format::Double, F16, UP, &double.to_le_bytes(), 1), half(0x7e00));
        assert_eq!(converted(Format::Double, BF16, UP, &double.to_le_bytes(), 1), half(0x7fc0));
        assert_eq!(converted(F16, Format::Single, UP, &half(0x7c01), 1), quiet_float);
        assert_eq!(converted(Format::Double, FLOAT8E4M3FN, UP, &double.to_le_bytes(), 1), [0x7f | (sign as u8) << 7]);
    }
    // 1 + 2^-11 + 2^-40: through f32 it would be a tie, and 1.
    let twice = (1.0 + 2f64.powi(-11) + 2f64.powi(-40)).to_le_bytes();
    assert_eq!(converted(Format::Double, F16, UP, &twice, 1), 0x3c01u16.to_le_bytes());
}
