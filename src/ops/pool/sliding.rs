//! AveragePool, MaxPool and LpPool: the mean, the largest or the norm of the entries in each window of an image.
//! <https://onnx.ai/onnx/operators/onnx__AveragePool.html>, <https://onnx.ai/onnx/operators/onnx__MaxPool.html>,
//! <https://onnx.ai/onnx/operators/onnx__LpPool.html>

use crate::ops::prelude::*;

pub(super) const AVERAGE_POOL: Implementation = Implementation::missing("", "AveragePool", infer);

pub(super) const MAX_POOL: Implementation = Implementation::missing("", "MaxPool", infer);

pub(super) const LP_POOL: Implementation = Implementation::missing("", "LpPool", infer);

/// The text of AveragePool-11 rounds sizes under `auto_pad` down at one place, but says at `auto_pad` what all other
/// versions say. LpPool-1 may lack `kernel_shape`, and doesn't say what that means.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let Some([batch, channels, image @ ..]) = facts.ranked(0, 3..)? else { return Ok(()) };
    let counts = Windows::of(facts, &windows::kernel(facts, image.len())?)?.counts(image);
    let dims = [&[batch.clone(), channels.clone()], &*counts].concat();
    facts.give(0, dims.clone());
    facts.give(1, dims);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, ints, string};

    #[test]
    fn shapes() {
        let x = "float[N, C, 7, W]";
        let kernel = || ints("kernel_shape", &[3, 2]);
        infer("AveragePool", 1, [kernel()], [x]).gives("[N, C, 5, W - 1]");
        infer("AveragePool", 22, [kernel(), ints("strides", &[2, 2]), ints("pads", &[0, 0, 1, 1])], [x])
            .gives("[N, C, 3, floor((W - 1)/2) + 1]");
        infer("AveragePool", 19, [kernel(), ints("dilations", &[3, 3])], [x]).gives("[N, C, 1, W - 3]");
        infer("MaxPool", 8, [kernel()], [x]).gives_all(["[N, C, 5, W - 1]", "[N, C, 5, W - 1]"]);
        infer("MaxPool", 1, [kernel(), string("auto_pad", "SAME_UPPER"), ints("strides", &[2, 1])], [x])
            .gives("[N, C, 4, W]");
        infer("LpPool", 2, [kernel(), string("auto_pad", "VALID")], [x]).gives("[N, C, 5, W - 1]");
        infer("LpPool", 1, [], [x]).gives("[N, C, ?, ?]");
        infer("MaxPool", 12, [ints("kernel_shape", &[5, 5])], ["float"]).gives("");
    }

    #[test]
    fn sizes_that_are_rounded_up() {
        let pool = |kernel: i64, pads: [i64; 2], size: &str, want: &str| {
            let attributes =
                [ints("kernel_shape", &[kernel]), ints("strides", &[2]), ints("pads", &pads), int("ceil_mode", 1)];
            infer("MaxPool", 12, attributes, [&format!("float[1, 1, {size}]")]).gives(&format!("[1, 1, {want}]"));
        };
        pool(3, [0, 0], "4", "2");
        pool(3, [0, 0], "5", "2");
        pool(3, [0, 0], "6", "3");
        pool(3, [0, 0], "W", "floor((W - 2)/2) + 1");
        pool(3, [1, 1], "W", "floor((W)/2) + 1");
        // The second window would begin behind the input.
        pool(1, [0, 0], "2", "1");
        pool(1, [0, 0], "W", "floor((W - 1)/2) + 1");
        pool(2, [0, 1], "W", "floor((W - 1)/2) + 1");
    }

    /// Windows are counted one by one: each begins within the input, and the one before ends before the padding does.
    #[test]
    fn sizes_are_those_of_windows_that_are_counted() {
        let cases = (0..9 * 3 * 3 * 2 * 3 * 2).map(|k| (k % 9 + 1, k / 9 % 3 + 1, k / 27 % 3 + 1, k / 81 % 6, k / 486));
        for (size, kernel, stride, pads, ceil) in cases {
            let (begin, end) = (pads % 2, pads / 2);
            let (whole, attributes) = (
                begin + size + end,
                [
                    ints("kernel_shape", &[kernel]),
                    ints("strides", &[stride]),
                    ints("pads", &[begin, end]),
                    int("ceil_mode", ceil),
                ],
            );
            let counts = |at: &i64| match ceil {
                0 => at + kernel <= whole,
                _ => *at < begin + size && at - stride + kernel < whole,
            };
            let count = (0..).map(|k| k * stride).take_while(counts).count();
            infer("MaxPool", 12, attributes, [&format!("float[1, 1, {size}]")]).gives(&format!("[1, 1, {count}]"));
        }
    }

    #[test]
    fn windows_without_padding_end_within_the_input() {
        let attributes =
            [ints("kernel_shape", &[3]), ints("strides", &[2]), string("auto_pad", "VALID"), int("ceil_mode", 1)];
        infer("AveragePool", 19, attributes, ["float[1, 1, 6]"]).gives("[1, 1, 2]");
    }

    #[test]
    fn faults() {
        let kernel = |sizes| ints("kernel_shape", sizes);
        infer("MaxPool", 12, [kernel(&[3])], ["float[1, 1, 5, 5]"]).fails("kernel_shape has 1 numbers: 2 are needed");
        infer("MaxPool", 12, [kernel(&[0])], ["float[1, 1, 5]"]).fails("kernel_shape[0] is 0: it must be at least 1");
        infer("MaxPool", 12, [kernel(&[1]), int("ceil_mode", 2)], ["float[1, 1, 5]"]).fails("ceil_mode is 2");
        infer("LpPool", 18, [kernel(&[1]), string("auto_pad", "SAME")], ["float[1, 1, 5]"])
            .fails("auto_pad is \"SAME\": allowed NOTSET, VALID, SAME_UPPER, SAME_LOWER");
        infer("AveragePool", 7, [kernel(&[3])], ["float[5, 5]"]).fails("allowed ranks from 3 on");
    }
}
