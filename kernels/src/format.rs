//! How the bits of an element read as a number.

use super::half::Half;

/// How the bits of an element read as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An integer of that many bits, in whole bytes.
    Signed(u8),
    /// An integer of that many bits from 0 on, in whole bytes.
    Unsigned(u8),
    /// 0 or 1 in a byte.
    Bool,
    /// A float of 16 bits.
    Half(Half),
    /// IEEE 754 binary32.
    Single,
    /// IEEE 754 binary64.
    Double,
    /// A float of at most 8 bits.
    Small(Small),
    /// Two [`Format::Single`]: real, imaginary.
    Complex64,
    /// Two [`Format::Double`]: real, imaginary.
    Complex128,
    /// No number: a string is a view, two words of 8 bytes.
    View,
}

impl Format {
    /// The bits that an element has.
    pub const fn bits(self) -> usize {
        match self {
            Format::Signed(bits) | Format::Unsigned(bits) => bits as usize,
            Format::Bool => 8,
            Format::Half(_) => 16,
            Format::Single => 32,
            Format::Double | Format::Complex64 => 64,
            Format::Complex128 | Format::View => 128,
            Format::Small(small) => small.bits(),
        }
    }

    /// Whether it is an integer or a bool.
    pub const fn is_integer(self) -> bool {
        matches!(self, Format::Signed(_) | Format::Unsigned(_) | Format::Bool)
    }

    /// The bytes that an element takes.
    pub const fn size(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// The position of the first of `bytes`, one element each, that is not a valid element: a bool other than 0 and 1, a
    /// 4-bit integer with more bits, ...
    pub fn first_invalid(self, bytes: &[u8]) -> Option<usize> {
        match (self, self.bits()) {
            (Format::Bool, _) => bytes.iter().position(|&b| b > 1),
            (Format::Signed(_), bits @ 1..8) => {
                let half = 1i8 << (bits - 1);
                bytes.iter().position(|&b| !(-half..half).contains(&b.cast_signed()))
            }
            (_, bits @ 1..8) => bytes.iter().position(|&b| b >> bits != 0),
            _ => None,
        }
    }
}

/// The layout of a float of at most 8 bits: from the top a sign (unless there are 8 exponent bits), exponent, mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Small {
    /// Bits of the exponent.
    pub exponent: u8,
    /// Bits of the mantissa.
    pub mantissa: u8,
    /// What is taken off the exponent.
    pub bias: i32,
    /// The codes without a finite value.
    pub specials: Specials,
}

/// Which codes of a small float are not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// As IEEE 754: the greatest exponent is infinity or NaN.
    Ieee,
    /// `fn`: all exponent and mantissa bits set is NaN; no infinity.
    TopIsNan,
    /// `fnuz`: the code of negative zero is NaN; no infinity.
    NegativeZeroIsNan,
    /// Every code is a number.
    None,
}

impl Small {
    const fn bits(self) -> usize {
        let sign = if self.exponent == 8 { 0 } else { 1 };
        sign + self.exponent as usize + self.mantissa as usize
    }

    /// The value of a code.
    pub fn value(self, code: u8) -> f32 {
        let Small { exponent: exponent_bits, mantissa: mantissa_bits, bias, specials } = self;
        let (code, mantissa_bits) = (u32::from(code), u32::from(mantissa_bits));
        let greatest = (1 << exponent_bits) - 1;
        let exponent = code >> mantissa_bits & greatest;
        let mantissa = code & ((1 << mantissa_bits) - 1);
        let negative = exponent_bits < 8 && code >> (u32::from(exponent_bits) + mantissa_bits) & 1 == 1;
        let top = exponent == greatest;
        let magnitude = match specials {
            Specials::Ieee if top && mantissa == 0 => f32::INFINITY,
            Specials::Ieee if top => f32::NAN,
            Specials::TopIsNan if top && mantissa == (1 << mantissa_bits) - 1 => f32::NAN,
            Specials::NegativeZeroIsNan if negative && exponent == 0 && mantissa == 0 => f32::NAN,
            // Subnormal: no leading one, the least exponent. A format without mantissa has none.
            _ if exponent == 0 && mantissa_bits > 0 => scaled(mantissa, 1 - bias - mantissa_bits as i32),
            _ => scaled(1 << mantissa_bits | mantissa, exponent as i32 - bias - mantissa_bits as i32),
        };
        if negative { -magnitude } else { magnitude }
    }
}

/// `n * 2^exponent`, which must be exact: nothing is rounded. The precision of `powi` is unspecified.
fn scaled(n: u32, exponent: i32) -> f32 {
    /// The bias of double's exponent, and the bits below it.
    const BIAS: i32 = 1023;
    const MANTISSA: u32 = 52;
    let power = f64::from_bits(((BIAS + exponent) as u64) << MANTISSA);
    (f64::from(n) * power) as f32
}
