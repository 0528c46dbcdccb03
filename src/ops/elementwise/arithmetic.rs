//! Add, Sub, Mul and Div: arithmetic on the elements of two tensors.
//! <https://onnx.ai/onnx/operators/onnx__Add.html>, <https://onnx.ai/onnx/operators/onnx__Div.html>

use super::{Elementwise, Function, align};
use crate::ops::prelude::*;

pub(super) const ADD: Implementation =
    arithmetic("Add", |node| Ok(of(node, Add, Formula::plus)?.of_form(Form::Sum).shared()));
pub(super) const SUB: Implementation = arithmetic("Sub", |node| Ok(of(node, Sub, Formula::minus)?.shared()));
pub(super) const MUL: Implementation =
    arithmetic("Mul", |node| Ok(of(node, Mul, Formula::times)?.of_form(Form::Product).shared()));
pub(super) const DIV: Implementation = arithmetic("Div", |node| {
    Ok(Elementwise::new(Div, number_row, align(node)?).counting(Formula::divided).dividing().shared())
});

const fn arithmetic(name: &'static str, load: LoadRowwise) -> Implementation {
    Implementation::rowwise(name, &[1, 6, 7, 13, 14], load)
}

fn of<F: Function + Floats<2> + Ints<2>>(node: &Node<'_>, function: F, count: Count) -> Result<Elementwise<F, 2>> {
    Ok(Elementwise::new(function, number_row, align(node)?).counting(count))
}

/// `C = A + B`
#[derive(Debug)]
pub(super) struct Add;

impl Floats<2> for Add {
    #[inline(always)]
    fn float<T: Real>(&self, [a, b]: [T; 2]) -> T {
        a + b
    }
}

impl Ints<2> for Add {
    fn int<T: Int>(&self, [a, b]: [T; 2]) -> T {
        a.plus(b)
    }
}

/// `C = A - B`
#[derive(Debug)]
struct Sub;

impl Floats<2> for Sub {
    #[inline(always)]
    fn float<T: Real>(&self, [a, b]: [T; 2]) -> T {
        a - b
    }
}

impl Ints<2> for Sub {
    fn int<T: Int>(&self, [a, b]: [T; 2]) -> T {
        a.minus(b)
    }
}

/// `C = A * B`
#[derive(Debug)]
struct Mul;

impl Floats<2> for Mul {
    #[inline(always)]
    fn float<T: Real>(&self, [a, b]: [T; 2]) -> T {
        a * b
    }
}

impl Ints<2> for Mul {
    fn int<T: Int>(&self, [a, b]: [T; 2]) -> T {
        a.times(b)
    }
}

/// `C = A / B`, which integers round toward 0
#[derive(Debug)]
struct Div;

impl Floats<2> for Div {
    #[inline(always)]
    fn float<T: Real>(&self, [a, b]: [T; 2]) -> T {
        a / b
    }
}

impl Ints<2> for Div {
    fn int<T: Int>(&self, [a, b]: [T; 2]) -> T {
        a.over(b)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{int, run, tensor};
    use half::{bf16, f16};

    #[test]
    fn broadcasting() {
        let (a, b) = (tensor(&[2, 3], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]), tensor(&[3], [10f32, 20.0, 30.0]));
        run("Add", 14, [], [&a, &b]).gives(tensor(&[2, 3], [11f32, 22.0, 33.0, 14.0, 25.0, 36.0]));
        run("Sub", 7, [], [&tensor(&[2, 1], [1i32, 2]), &tensor(&[2], [5i32, 7])])
            .gives(tensor(&[2, 2], [-4i32, -6, -3, -5]));
        run("Mul", 13, [], [&tensor(&[], [3i64]), &tensor(&[1, 1], [4i64])]).gives(tensor(&[1, 1], [12i64]));
        run("Add", 14, [], [&tensor(&[0, 3], Vec::<f32>::new()), &b]).gives(tensor(&[0, 3], Vec::<f32>::new()));
        let error = run("Add", 14, [], [&a, &tensor(&[2], [1f32, 2.0])]).fails(
            "\"A\" of shape [2, 3] and \"B\" of shape [2] can't be broadcast: dimension 1 is 3 and dimension 0 is 2",
        );
        assert_eq!((error.place().parameter.as_deref(), error.place().axis), (Some("B"), Some(0)));
    }

    #[test]
    fn broadcasting_before_version_7() {
        let a = tensor(&[2, 3], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let (two, three) = (tensor(&[2], [10f32, 20.0]), tensor(&[3], [10f32, 20.0, 30.0]));
        run("Add", 6, [int("broadcast", 1)], [&a, &three])
            .gives(tensor(&[2, 3], [11f32, 22.0, 33.0, 14.0, 25.0, 36.0]));
        run("Add", 1, [int("broadcast", 1), int("axis", 0)], [&a, &two])
            .gives(tensor(&[2, 3], [11f32, 12.0, 13.0, 24.0, 25.0, 26.0]));
        run("Add", 6, [int("broadcast", 1), int("axis", -1)], [&a, &tensor(&[1], [1f32])])
            .gives(tensor(&[2, 3], [2f32, 3.0, 4.0, 5.0, 6.0, 7.0]));
        let one = tensor(&[1, 1], [1f32]);
        for axis in [-1, 0, 1] {
            run("Add", 6, [int("broadcast", 1), int("axis", axis)], [&a, &one])
                .gives(tensor(&[2, 3], [2f32, 3.0, 4.0, 5.0, 6.0, 7.0]));
        }
        run("Add", 6, [int("broadcast", 1)], [&three, &one]).fails("has no place in \"A\" of shape [3]");
        run("Add", 6, [], [&a, &three]).fails("without broadcast they must be equal");
        run("Add", 1, [], [&three, &tensor(&[], [1f32])]).gives([11f32, 21.0, 31.0]);
        run("Add", 6, [int("broadcast", 1), int("axis", 1)], [&a, &two])
            .fails("dimension 0 of \"B\" is 2, and dimension 1 of \"A\" is 3");
        run("Add", 6, [int("broadcast", 1), int("axis", 2)], [&a, &two])
            .fails("has no place in \"A\" of shape [2, 3] from axis 2 on");
        run("Add", 6, [int("broadcast", 1)], [&three, &a])
            .fails("\"B\" of shape [2, 3] has no place in \"A\" of shape [3]");
    }

    #[test]
    fn every_type() {
        run(
            "Add",
            14,
            [],
            [&[1.0, 65504.0].map(f16::from_f32).to_vec().into(), &[0.5, 32.0].map(f16::from_f32).to_vec().into()],
        )
        .gives([f16::from_f32(1.5), f16::INFINITY].to_vec());
        run("Mul", 14, [], [&vec![bf16::from_f32(1.5)].into(), &vec![bf16::from_f32(-2.0)].into()])
            .gives(vec![bf16::from_f32(-3.0)]);
        run("Div", 14, [], [&[1f64, -1.0, 0.0].into(), &[3f64, 0.0, 4.0].into()]).gives([
            1.0 / 3.0,
            f64::NEG_INFINITY,
            0.0,
        ]);
        run("Sub", 14, [], [&[0u8, 3].into(), &[1u8, 1].into()]).gives([255u8, 2]);
        run("Add", 14, [], [&[i16::MAX].into(), &[1i16].into()]).gives([i16::MIN]);
        run("Mul", 14, [], [&[1u64 << 63].into(), &[2u64].into()]).gives([0u64]);
        run("Mul", 14, [], [&[-7i8, 100].into(), &[3i8, 2].into()]).gives([-21i8, -56]);
        run("Sub", 14, [], [&[1u32].into(), &[2u32].into()]).gives([u32::MAX]);
        run("Add", 14, [], [&[1u16].into(), &[2u16].into()]).gives([3u16]);
    }

    #[test]
    fn integers_divide_toward_0() {
        run("Div", 14, [], [&[7i32, -7, 7, i32::MIN].into(), &[2i32, 2, -2, -1].into()]).gives([
            3i32,
            -3,
            -3,
            i32::MIN,
        ]);
        let error = run("Div", 14, [], [&[1i64, 2].into(), &[3i64, 0].into()])
            .fails("\"B\"[1] = 0: an integer can't be divided by 0");
        assert_eq!(
            (error.place().parameter.as_deref(), error.place().position.as_deref()),
            (Some("B"), Some(&[1][..]))
        );
    }
}
