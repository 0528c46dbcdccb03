//! GlobalAveragePool, GlobalMaxPool and GlobalLpPool: the mean, the largest or the norm of the entries of each channel.
//! <https://onnx.ai/onnx/operators/onnx__GlobalAveragePool.html>,
//! <https://onnx.ai/onnx/operators/onnx__GlobalMaxPool.html>, <https://onnx.ai/onnx/operators/onnx__GlobalLpPool.html>

use crate::ops::prelude::*;

pub(super) const GLOBAL_AVERAGE_POOL: Implementation = Implementation::missing("", "GlobalAveragePool", infer);

pub(super) const GLOBAL_MAX_POOL: Implementation = Implementation::missing("", "GlobalMaxPool", infer);

pub(super) const GLOBAL_LP_POOL: Implementation = Implementation::missing("", "GlobalLpPool", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let Some([batch, channels, image @ ..]) = facts.ranked(0, 2..)? else { return Ok(()) };
    facts.give(0, [&[batch.clone(), channels.clone()], &*vec![Dim::Fixed(1); image.len()]].concat());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        for (operator, opset) in
            [("GlobalAveragePool", 1), ("GlobalMaxPool", 22), ("GlobalLpPool", 1), ("GlobalLpPool", 2)]
        {
            infer(operator, opset, [], ["float[N, C, H, 5]"]).gives("[N, C, 1, 1]");
            infer(operator, opset, [], ["float[N, C, ?]"]).gives("[N, C, 1]");
            infer(operator, opset, [], ["float"]).gives("");
            infer(operator, opset, [], ["float[N]"]).fails("\"X\" has shape [N] of rank 1: allowed ranks from 2 on");
        }
    }
}
