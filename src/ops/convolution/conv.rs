//! Conv: a convolution with one filter for each channel of the output.
//! <https://onnx.ai/onnx/operators/onnx__Conv.html>

use crate::ops::prelude::*;

pub(super) const CONV: Implementation = Implementation::missing("", "Conv", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    if let Some(dims) = windows::convolved(facts, 0, 1, Some(2))? {
        facts.give(0, dims);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, ints, string};

    #[test]
    fn shapes() {
        let x = "float[N, 3, 7, W]";
        infer("Conv", 11, [], [x, "float[8, 3, 3, 3]"]).gives("[N, 8, 5, W - 2]");
        infer("Conv", 11, [ints("pads", &[1, 1, 1, 1]), ints("strides", &[2, 2])], [x, "float[8, 3, 3, 3]"])
            .gives("[N, 8, 4, floor((W - 1)/2) + 1]");
        infer("Conv", 1, [string("auto_pad", "SAME_LOWER"), ints("strides", &[2, 1])], [x, "float[M, 3, 3, 3]"])
            .gives("[N, M, 4, W]");
        infer("Conv", 22, [int("group", 3), ints("dilations", &[3, 2])], [x, "float[6, 1, 3, 3]", "float[6]"])
            .gives("[N, 6, 1, W - 4]");
        infer("Conv", 22, [], [x, "float[6, 3, k, 3]"]).gives("[N, 6, ?, W - 2]");
        infer("Conv", 22, [ints("kernel_shape", &[3, 5])], [x, "float[6, 3, k, 5]"]).gives("[N, 6, 5, W - 4]");
        infer("Conv", 22, [], ["float", "float[6, 3, 3, 3]"]).gives("");
    }

    #[test]
    fn faults() {
        let x = "float[N, 3, 7, 7]";
        infer("Conv", 11, [], [x, "float[8, 4, 3, 3]"])
            .fails("\"X\" has 3 channels, but the filters of 1 groups have 4 each");
        infer("Conv", 11, [], [x, "float[8, 3, 3]"]).fails("\"W\" has shape [8, 3, 3] of rank 3");
        infer("Conv", 11, [ints("kernel_shape", &[3, 2])], [x, "float[8, 3, 3, 3]"])
            .fails("kernel_shape[1] is 2, but in \"W\" of shape [8, 3, 3, 3] it is 3");
        infer("Conv", 11, [], [x, "float[8, 3, 3, 0]"])
            .fails("\"W\" of shape [8, 3, 3, 0] has windows without entries");
        infer("Conv", 11, [ints("strides", &[1])], [x, "float[8, 3, 3, 3]"])
            .fails("strides has 1 numbers: 2 are needed");
        infer("Conv", 11, [ints("strides", &[1, 0])], [x, "float[8, 3, 3, 3]"]).fails("strides[1] is 0");
        infer("Conv", 11, [], [x, "float[8, 3, 3, 3]", "float[7]"]).fails("dimension 0 of \"B\" of shape [7] is 7");
        infer("Conv", 11, [ints("kernel_shape", &[3])], [x, "float[8, 3, k, 3]"])
            .fails("kernel_shape has 1 numbers: 2 are needed");
        infer("Conv", 11, [int("group", 0)], [x, "float[8, 3, 3, 3]"]).fails("group is 0: it must be at least 1");
        let same = || string("auto_pad", "SAME_UPPER");
        infer("Conv", 11, [same(), ints("pads", &[1, 1, 1, 1])], [x, "float[8, 3, 3, 3]"])
            .fails("pads and auto_pad are both given: only one of them can be");
        infer("Conv", 11, [same(), ints("pads", &[0, 0, 0, 0])], [x, "float[8, 3, 3, 3]"]).gives("[N, 8, 7, 7]");
        infer("Conv", 11, [ints("pads", &[0, 0, -1, 0])], [x, "float[8, 3, 3, 3]"])
            .fails("pads[2] is -1: it must be at least 0");
        infer("Conv", 11, [], ["float[3, 7]", "float[8, 3, 3]"]).fails("allowed ranks from 3 on");
    }
}
