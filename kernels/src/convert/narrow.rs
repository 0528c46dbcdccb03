//! Numbers to floats of at most 16 bits, rounded once.
//!
//! Wider numbers first become f32 by rounding to odd: one that f32 doesn't hold becomes the neighbour with the last bit
//! set. Rounding that again, to at most 22 bits, gives what one rounding would: it is still on its side of each tie.

use super::{BLOCK, Exact, map, store};
use crate::format::{Format, Small, Specials};
use crate::half::{Half, odd};
use bytemuck::cast_slice_mut;

/// How numbers become floats of at most 8 bits.
#[derive(Debug, Clone, Copy)]
pub struct Rounding {
    /// Beyond the range: the greatest number, or else infinity or NaN.
    pub saturate: bool,
    /// The direction to float8e8m0. Others round to the nearest, ties to even.
    pub direction: Direction,
    /// As Cast does before version 24: a float beyond a type of 4 bits stops at the end of its range, and NaN becomes
    /// the greatest number of float4e2m1. The standard leaves both open; the official cases of each version show them.
    pub clamp: bool,
}

/// Which neighbour to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
    /// Ties up.
    Nearest,
}

/// The number with the fewest decimal digits that rounds to a value of a type of at most 16 bits.
pub fn shortest(value: f32, format: Format) -> f64 {
    const UP: Rounding = Rounding { saturate: true, direction: Direction::Up, clamp: false };
    let rounded = |number: f64| {
        let mut element = [0u16];
        let out = cast_slice_mut(&mut element).get_mut(..format.size()).unwrap_or(&mut []);
        store(Exact::F64(&[number]), format, UP, out);
        element
    };
    let own = rounded(value.into());
    let mut numbers = (0..f32::DIGITS as usize).filter_map(|digits| format!("{value:.digits$e}").parse().ok());
    numbers.find(|number| rounded(*number) == own).unwrap_or(value.into())
}

pub(super) fn store_half(numbers: Exact<'_>, half: Half, out: &mut [u8]) {
    match numbers {
        Exact::F32(numbers) => half.narrow(numbers, cast_slice_mut(out)),
        _ => half.narrow(to_odd(numbers, &mut [0.0; BLOCK]), cast_slice_mut(out)),
    }
}

pub(super) fn store_small(numbers: Exact<'_>, format: Small, rounding: Rounding, out: &mut [u8]) {
    let mut room = [0.0; BLOCK];
    let numbers = to_odd(numbers, &mut room);
    if format.exponent == 8 {
        return map(numbers, out, |number| power_of_two(number, rounding));
    }
    let codes = Codes::of(format, rounding);
    map(numbers, out, |number| codes.nearest(number));
}

fn to_odd<'a>(numbers: Exact<'a>, room: &'a mut [f32; BLOCK]) -> &'a [f32] {
    let count = match numbers {
        Exact::F32(numbers) => return numbers,
        Exact::F64(numbers) => {
            map(numbers, room, odd);
            numbers.len()
        }
        Exact::I32(numbers) => {
            map(numbers, room, |number: i32| odd(number.into()));
            numbers.len()
        }
        Exact::I64(numbers) => {
            map(numbers, room, |number: i64| odd_integer(number < 0, number.unsigned_abs()));
            numbers.len()
        }
        Exact::U32(numbers) => {
            map(numbers, room, |number: u32| odd(number.into()));
            numbers.len()
        }
        Exact::U64(numbers) => {
            map(numbers, room, |number| odd_integer(false, number));
            numbers.len()
        }
    };
    room.get(..count).unwrap_or(&[])
}

/// Rounds to odd.
#[inline(always)]
fn odd_integer(negative: bool, magnitude: u64) -> f32 {
    let excess = (64 - f32::MANTISSA_DIGITS).saturating_sub(magnitude.leading_zeros());
    let top = magnitude >> excess;
    let rest = u64::from(top << excess != magnitude);
    // No more bits than f32 has.
    let rounded = ((top | rest) << excess) as f32;
    if negative { -rounded } else { rounded }
}

/// The codes of a small float that decide how numbers are rounded to it.
#[derive(Debug, Clone, Copy)]
struct Codes {
    mantissa: i32,
    /// The exponent of the least normal number.
    least: i32,
    /// The greatest number, without a sign.
    greatest: u32,
    /// What is beyond it.
    beyond: u32,
    nan: u32,
    sign: u32,
    negative_zero: bool,
}

impl Codes {
    /// Formats without NaN have -0 for it, as the official test cases of float4e2m1 do.
    fn of(format: Small, rounding: Rounding) -> Codes {
        let Small { exponent, mantissa, bias, specials } = format;
        let sign = 1 << (exponent + mantissa);
        let last = sign - 1;
        let infinity = last >> mantissa << mantissa;
        let (greatest, or_else, nan) = match specials {
            Specials::Ieee => (infinity - 1, infinity, infinity | 1 << (mantissa - 1)),
            Specials::TopIsNan => (last - 1, last, last),
            Specials::NegativeZeroIsNan => (last, sign, sign),
            Specials::None => (last, last, if rounding.clamp { last } else { sign }),
        };
        let beyond = if rounding.saturate { greatest } else { or_else };
        let negative_zero = specials != Specials::NegativeZeroIsNan;
        Codes { mantissa: mantissa.into(), least: 1 - bias, greatest, beyond, nan, sign, negative_zero }
    }

    /// Rounds to the nearest, ties to even.
    #[inline(always)]
    fn nearest(self, number: f32) -> u8 {
        /// More than the greatest number of any format.
        const BEYOND: f32 = 65536.0;
        let sign = if number.is_sign_negative() { self.sign } else { 0 };
        if number.is_nan() {
            return (self.nan | sign) as u8;
        }
        let magnitude = number.abs();
        if magnitude >= BEYOND {
            return (self.beyond | sign) as u8;
        }
        let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(self.least);
        // In units of the last bit, of which a normal number has 2^mantissa to 2^(mantissa + 1). Rounding to the latter
        // carries into the exponent of the code. The scale is a power of 2: only `round_ties_even` rounds.
        let scale = f32::from_bits(((self.mantissa - exponent + 127) as u32) << 23);
        let units = (magnitude * scale).round_ties_even() as u32;
        let code = ((exponent - self.least) << self.mantissa) as u32 + units;
        let code = if code > self.greatest { self.beyond } else { code };
        let sign = if code == 0 && !self.negative_zero { 0 } else { sign };
        (code | sign) as u8
    }
}

/// float8e8m0: the code is the exponent of f32, and has neither sign nor zero. What is below its least number, 2^-127,
/// becomes that number, or NaN if it doesn't saturate. The standard leaves negative numbers open: they become NaN.
#[inline(always)]
fn power_of_two(number: f32, rounding: Rounding) -> u8 {
    const NAN: u8 = 255;
    const GREATEST: u8 = 254;
    /// The bits of 2^-127, which f32 holds as a subnormal number.
    const LEAST: u32 = 1 << 22;
    /// Those of 2^127.
    const MOST: u32 = (GREATEST as u32) << 23;
    if number.is_nan() || number < 0.0 {
        return NAN;
    }
    let bits = number.abs().to_bits();
    if bits < LEAST {
        return if rounding.saturate { 0 } else { NAN };
    }
    // The bits of the powers of 2 around it.
    let below = if bits < 2 * LEAST { LEAST } else { bits >> 23 << 23 };
    let up = match rounding.direction {
        Direction::Up => bits > below,
        Direction::Down => false,
        // Halfway between 2^n and 2^(n + 1) the highest bit of the mantissa is set, of a subnormal number the next.
        // Beyond the greatest number nothing is near.
        Direction::Nearest => match below {
            LEAST => bits - below >= LEAST / 2,
            MOST => bits > below,
            _ => bits - below >= LEAST,
        },
    };
    let code = (bits >> 23) as u8;
    match code.checked_add(up.into()) {
        Some(code) if code <= GREATEST => code,
        _ if rounding.saturate => GREATEST,
        _ => NAN,
    }
}
