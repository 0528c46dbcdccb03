//! MatMulInteger and QLinearMatMul: products of matrices of small integers, in int32 or quantized again.
//! <https://onnx.ai/onnx/operators/onnx__MatMulInteger.html>, <https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html>

use crate::ops::prelude::*;

pub(super) const MATMUL_INTEGER: Implementation =
    Implementation::missing("", "MatMulInteger", |facts| infer(facts, [0, 1], [&[2], &[3]]));

pub(super) const QLINEAR_MATMUL: Implementation =
    Implementation::missing("", "QLinearMatMul", |facts| infer(facts, [0, 3], [&[1, 2], &[4, 5]]));

/// The inputs `of_a` and `of_b` are scales and zero points: one for each row of a matrix `a` and each column of `b`, or one
/// for all.
fn infer(facts: &mut Inference<'_>, [a, b]: [usize; 2], [of_a, of_b]: [&[usize]; 2]) -> Result<()> {
    let rank = |k| facts.dims(k).map(<[Dim]>::len);
    if rank(a) == Some(2) {
        of_a.iter().try_for_each(|k| facts.one_for_each(*k, (a, 0)))?;
    }
    if rank(b) == Some(2) {
        of_b.iter().try_for_each(|k| facts.one_for_each(*k, (b, 1)))?;
    }
    give_product(facts, a, b)
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        infer("MatMulInteger", 10, [], ["uint8[N, 3]", "int8[3, M]"]).gives("[N, M]");
        infer("MatMulInteger", 10, [], ["uint8[N, 3]", "int8[3, 2]", "uint8[N]", "int8[2]"]).gives("[N, 2]");
        infer("MatMulInteger", 10, [], ["uint8[B, 4, 3]", "int8[3, 2]", "uint8[]", "int8[1]"]).gives("[B, 4, 2]");
        let scale = "float[]";
        infer(
            "QLinearMatMul",
            10,
            [],
            ["uint8[N, 3]", scale, "uint8[]", "int8[3, M]", scale, "int8[]", scale, "uint8[]"],
        )
        .gives("[N, M]");
        infer(
            "QLinearMatMul",
            21,
            [],
            [
                "uint8[B, 2, 3]",
                "float[B, 2, 1]",
                "uint8[B, 2, 1]",
                "int8[3, 4]",
                "float[4]",
                "int8[4]",
                scale,
                "uint8[]",
            ],
        )
        .gives("[B, 2, 4]");
    }

    #[test]
    fn faults() {
        infer("MatMulInteger", 10, [], ["uint8[2, 3]", "int8[4, 5]"])
            .fails("dimension 1 of \"A\" of shape [2, 3] is 3, and dimension 0 of \"B\" of shape [4, 5] is 4");
        infer("MatMulInteger", 10, [], ["uint8[2, 3]", "int8[3, 5]", "uint8[3]"])
            .fails("dimension 0 of \"a_zero_point\" of shape [3] is 3");
        infer("MatMulInteger", 10, [], ["uint8[2, 3]", "int8[3, 5]", "-", "int8[3]"])
            .fails("dimension 1 of \"B\" of shape [3, 5] is 5");
        let (a, b, scale, zero) = ("int8[2, 3]", "int8[3, 5]", "float[]", "int8[]");
        infer("QLinearMatMul", 21, [], [a, scale, zero, b, "float[3]", zero, scale, zero])
            .fails("dimension 0 of \"b_scale\" of shape [3] is 3");
    }
}
