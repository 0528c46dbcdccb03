//! HannWindow, HammingWindow and BlackmanWindow: weights for the samples of a frame.
//! <https://onnx.ai/onnx/operators/onnx__HannWindow.html>, <https://onnx.ai/onnx/operators/onnx__HammingWindow.html>,
//! <https://onnx.ai/onnx/operators/onnx__BlackmanWindow.html>

use crate::ops::prelude::*;

pub(super) const HANN_WINDOW: Implementation = Implementation::missing("", "HannWindow", infer);
pub(super) const HAMMING_WINDOW: Implementation = Implementation::missing("", "HammingWindow", infer);
pub(super) const BLACKMAN_WINDOW: Implementation = Implementation::missing("", "BlackmanWindow", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.flag("periodic")?;
    facts.single(0)?;
    facts.give_type(0, facts.output_type("output_datatype")?);
    facts.give(0, [facts.size(0)]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes_and_types() {
        infer("HannWindow", 17, [], ["{400}"]).gives("[400]");
        infer("HammingWindow", 17, [], ["{N}"]).gives("[N]");
        infer("BlackmanWindow", 17, [], ["int32[]"]).gives("[?]");
        infer("HannWindow", 17, [], ["{400}"]).has_type("float32");
        infer("HannWindow", 17, [int("output_datatype", 11)], ["{400}"]).has_type("float64");
        infer("HannWindow", 17, [int("output_datatype", 9)], ["{4}"]).fails("output_datatype asks for bool: allowed");
        infer("HannWindow", 17, [], ["{4, 5}"]).fails("\"size\" has shape [2]: one value is needed");
        infer("HannWindow", 17, [int("periodic", 2)], ["{4}"]).fails("periodic is 2: allowed 0, 1");
    }
}
