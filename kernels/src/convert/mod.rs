//! Conversions between the element types of numbers.
//!
//! A block of elements becomes numbers of a type that holds each exactly ([`Exact`]: f32, f64, i32, i64, u32 or u64), and
//! from there elements of the other type, rounded once. So no pair of types has a loop of its own.
//!
//! - To a float: to the nearest, ties to even; beyond the range to infinity, or see [`Rounding`].
//! - A float to an integer: toward 0, then modulo 2^bits as between integers; 0 for NaN and the infinities.
//! - To bool: whether it is not 0. NaN is not.
//!
//! A NaN stays one of its sign: the quiet one without a payload, of which only a float16 or bfloat16 keeps what fits if it
//! was a float32.

mod integer;
mod narrow;

pub use integer::{cut, wrapped};
pub use narrow::{Direction, Rounding, shortest};

use super::cpu::for_each_level;
use super::{Resources, Stopped, parallel};
use crate::format::Format;
use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// Elements that are converted at a time: they stay in the nearest cache.
pub(super) const BLOCK: usize = 256;

/// From one format of numbers to another, neither complex.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    pub from: Format,
    pub to: Format,
    pub rounding: Rounding,
}

impl Conversion {
    /// To a type of more than 8 bits, or of which it holds the numbers: to the nearest, without more to be said.
    pub const fn plain(from: Format, to: Format) -> Conversion {
        Conversion { from, to, rounding: Rounding { saturate: false, direction: Direction::Up, clamp: false } }
    }
}

/// Converts elements to as many in `out`. Both are aligned for their types.
pub fn convert(work: Conversion, elements: &[u8], out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    let (from, to) = (work.from.size(), work.to.size());
    // What is read may be more than what is written.
    parallel::split_by(out, to, from.div_ceil(to), resources, |first, out| {
        let count = out.len() / to;
        let elements = elements.get(first * from..(first + count) * from).unwrap_or(&[]);
        match (work.from, work.to) {
            (Format::Single, Format::Half(half)) => {
                half.narrow(cast_slice(elements), cast_slice_mut(out));
                return Ok(());
            }
            (Format::Half(half), Format::Single) => {
                half.widen_quietly(cast_slice(elements), cast_slice_mut(out));
                return Ok(());
            }
            (from, Format::Bool) if from.is_integer() && from.size() == 1 => {
                map(elements, out, |byte| u8::from(byte != 0));
                return Ok(());
            }
            // Modulo 2^bits the sign makes no difference.
            (from, to) if from.is_integer() && to.is_integer() && from.size() == to.size() => {
                out.copy_from_slice(elements);
                integer::cut(to, out);
                return Ok(());
            }
            _ => {}
        }
        let mut room = [0; BLOCK];
        for (elements, out) in elements.chunks(BLOCK * from).zip(out.chunks_mut(BLOCK * to)) {
            store(exact(work.from, elements, &mut room), work.to, work.rounding, out);
        }
        Ok(())
    })
}

/// As [`convert`], of at most [`BLOCK`] elements.
pub(super) fn block(work: Conversion, elements: &[u8], out: &mut [u8]) {
    let mut room = [0; BLOCK];
    store(exact(work.from, elements, &mut room), work.to, work.rounding, out);
}

/// Numbers as they are.
#[derive(Debug, Clone, Copy)]
enum Exact<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

fn first<T: Pod>(room: &mut [u32; BLOCK], count: usize) -> &mut [T] {
    cast_slice_mut(room).get_mut(..count).unwrap_or(&mut [])
}

/// The numbers that elements stand for.
fn exact<'a>(from: Format, elements: &'a [u8], room: &'a mut [u32; BLOCK]) -> Exact<'a> {
    match from {
        Format::Single => Exact::F32(cast_slice(elements)),
        Format::Double => Exact::F64(cast_slice(elements)),
        Format::Signed(32) => Exact::I32(cast_slice(elements)),
        Format::Signed(64) => Exact::I64(cast_slice(elements)),
        Format::Unsigned(64) => Exact::U64(cast_slice(elements)),
        Format::Unsigned(32) => Exact::U32(cast_slice(elements)),
        Format::Signed(16) => Exact::I32(widened::<i16>(cast_slice(elements), room)),
        Format::Unsigned(16) => Exact::I32(widened::<u16>(cast_slice(elements), room)),
        Format::Small(format) => {
            let numbers = first(room, elements.len());
            for (to, code) in numbers.iter_mut().zip(elements) {
                *to = format.value(*code);
            }
            Exact::F32(numbers)
        }
        Format::Half(half) => {
            let numbers = first(room, elements.len() / 2);
            half.widen(cast_slice(elements), numbers);
            Exact::F32(numbers)
        }
        Format::Signed(_) => Exact::I32(widened::<i8>(cast_slice(elements), room)),
        // Bool and unsigned integers of at most 8 bits; the caller has no others.
        _ => Exact::I32(widened::<u8>(elements, room)),
    }
}

fn widened<'a, S: Pod + Into<i32>>(elements: &[S], room: &'a mut [u32; BLOCK]) -> &'a [i32] {
    let numbers = first(room, elements.len());
    map(elements, numbers, S::into);
    numbers
}

/// The quiet NaN of a type, with the sign of a number.
macro_rules! quiet {
    ($type:ident, $number:expr) => {
        <$type>::NAN.copysign(if $number.is_sign_negative() { -1.0 } else { 1.0 })
    };
}

/// To `f32` or `f64`: Rust's conversions round to the nearest, ties to even. They leave sign and payload of a NaN open.
macro_rules! store_as {
    ($type:ident, $numbers:expr, $out:expr) => {
        match $numbers {
            Exact::F32(numbers) => map(numbers, cast_slice_mut($out), |number| {
                if number.is_nan() { quiet!($type, number) } else { number as $type }
            }),
            Exact::F64(numbers) => map(numbers, cast_slice_mut($out), |number| {
                if number.is_nan() { quiet!($type, number) } else { number as $type }
            }),
            Exact::I32(numbers) => map(numbers, cast_slice_mut($out), |number| number as $type),
            Exact::I64(numbers) => map(numbers, cast_slice_mut($out), |number| number as $type),
            Exact::U32(numbers) => map(numbers, cast_slice_mut($out), |number| number as $type),
            Exact::U64(numbers) => map(numbers, cast_slice_mut($out), |number| number as $type),
        }
    };
}

/// Rounds numbers to elements.
fn store(numbers: Exact<'_>, to: Format, rounding: Rounding, out: &mut [u8]) {
    match to {
        Format::Single => store_as!(f32, numbers, out),
        Format::Double => store_as!(f64, numbers, out),
        Format::Bool => integer::store_truth(numbers, out),
        Format::Small(format) => narrow::store_small(numbers, format, rounding, out),
        Format::Half(half) => narrow::store_half(numbers, half, out),
        _ => integer::store(numbers, to, rounding, out),
    }
}

for_each_level! {
    /// `to[k] = by(from[k])`
    fn map<S: Pod, T: Pod, F: Fn(S) -> T>(from: &[S], to: &mut [T], by: F) -> () = map_plainly;
}

#[inline(always)]
fn map_plainly<S: Pod, T: Pod, F: Fn(S) -> T>(from: &[S], to: &mut [T], by: F) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = by(*from);
    }
}

#[cfg(test)]
mod tests;
