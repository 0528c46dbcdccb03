//! And, Or, Xor and Not: of bools, and of the bits of integers; BitShift.
//! <https://onnx.ai/onnx/operators/onnx__And.html>, <https://onnx.ai/onnx/operators/onnx__BitShift.html>

use super::{Elementwise, Function, align};
use crate::ops::prelude::*;

pub(super) const AND: Implementation = Implementation::rowwise("And", &[1, 7], |node| bytes(And, align(node)?));
pub(super) const OR: Implementation = Implementation::rowwise("Or", &[1, 7], |node| bytes(Or, align(node)?));
pub(super) const XOR: Implementation = Implementation::rowwise("Xor", &[1, 7], |node| bytes(Xor, align(node)?));
pub(super) const NOT: Implementation = Implementation::rowwise("Not", &[1], |_| bytes(Not { bits: 1 }, Align::Last));
pub(super) const BITWISE_AND: Implementation =
    Implementation::rowwise("BitwiseAnd", &[18], |_| bytes(And, Align::Last));
pub(super) const BITWISE_OR: Implementation = Implementation::rowwise("BitwiseOr", &[18], |_| bytes(Or, Align::Last));
pub(super) const BITWISE_XOR: Implementation =
    Implementation::rowwise("BitwiseXor", &[18], |_| bytes(Xor, Align::Last));
pub(super) const BITWISE_NOT: Implementation =
    Implementation::rowwise("BitwiseNot", &[18], |_| bytes(Not { bits: 0xff }, Align::Last));

fn bytes<F: Function + Bytes<N>, const N: usize>(function: F, align: Align) -> Result<Arc<dyn Rowwise>> {
    Ok(Elementwise::new(function, byte_row, align).shared())
}

/// `C = A & B`
#[derive(Debug)]
struct And;

impl Bytes<2> for And {
    fn byte(&self, [a, b]: [u8; 2]) -> u8 {
        a & b
    }
}

/// `C = A | B`
#[derive(Debug)]
struct Or;

impl Bytes<2> for Or {
    fn byte(&self, [a, b]: [u8; 2]) -> u8 {
        a | b
    }
}

/// `C = A ^ B`
#[derive(Debug)]
struct Xor;

impl Bytes<2> for Xor {
    fn byte(&self, [a, b]: [u8; 2]) -> u8 {
        a ^ b
    }
}

/// `Y = !X`
#[derive(Debug)]
struct Not {
    /// The bits of a byte that count: a bool has one.
    bits: u8,
}

impl Bytes<1> for Not {
    fn byte(&self, [x]: [u8; 1]) -> u8 {
        x ^ self.bits
    }
}

pub(super) const BIT_SHIFT: Implementation = Implementation::rowwise("BitShift", &[11, 28], |node| {
    let left = node.choice("direction", &[("LEFT", true), ("RIGHT", false)])?;
    Ok(Elementwise::new(BitShift { left }, int_row, Align::Last).shared())
});

/// `Z = X << Y`, or `X >> Y` with copies of the sign; the result of shifting by one place at a time if Y is large, and
/// as if it were large if Y is negative.
#[derive(Debug)]
struct BitShift {
    left: bool,
}

impl Ints<2> for BitShift {
    fn int<T: Int>(&self, [x, y]: [T; 2]) -> T {
        if self.left { x.left(y) } else { x.right(y) }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{int, run, string, tensor};

    #[test]
    fn bools() {
        let (a, b) = ([true, true, false, false].into(), [true, false, true, false].into());
        run("And", 7, [], [&a, &b]).gives([true, false, false, false]);
        run("Or", 7, [], [&a, &b]).gives([true, true, true, false]);
        run("Xor", 7, [], [&a, &b]).gives([false, true, true, false]);
        run("Not", 1, [], [&b]).gives([false, true, false, true]);
        run("And", 1, [int("broadcast", 1), int("axis", 0)], [&tensor(&[2, 1], [true, true]), &[true, false].into()])
            .gives(tensor(&[2, 1], [true, false]));
    }

    #[test]
    fn bits() {
        run("BitwiseAnd", 18, [], [&[0x1234i16, -1].into(), &[0x0ff0i16].into()]).gives([0x0230i16, 0x0ff0]);
        run("BitwiseOr", 18, [], [&[1u64 << 63].into(), &[1u64].into()]).gives([1u64 << 63 | 1]);
        run("BitwiseXor", 18, [], [&[-1i32].into(), &[0xffi32].into()]).gives([!0xffi32]);
        run("BitwiseNot", 18, [], [&[0i64, -1].into()]).gives([-1i64, 0]);
        run("BitwiseNot", 18, [], [&[0u8, 0xf0].into()]).gives([255u8, 15]);
    }

    #[test]
    fn shifts() {
        let (left, right) = (|| [string("direction", "LEFT")], || [string("direction", "RIGHT")]);
        run("BitShift", 11, right(), [&[16u8, 4, 1].into(), &[1u8, 2, 8].into()]).gives([8u8, 1, 0]);
        run("BitShift", 11, left(), [&[16u64, 4, 1].into(), &[1u64, 63, 64].into()]).gives([32u64, 0, 0]);
        run("BitShift", 28, right(), [&[-8i8, -8, 8, -8, 8].into(), &[1i8, 8, 100, -1, -1].into()])
            .gives([-4i8, -1, 0, -1, 0]);
        run("BitShift", 28, left(), [&[64i8, -1, -1].into(), &[1i8, 8, -1].into()]).gives([-128i8, 0, 0]);
        run("BitShift", 11, [string("direction", "left")], [&[1u8].into(), &[1u8].into()])
            .fails("direction is \"left\": allowed LEFT, RIGHT");
    }
}
