//! ImageDecoder: the pixels of a picture that is stored as BMP, JPEG, PNG and others.
//! <https://onnx.ai/onnx/operators/onnx__ImageDecoder.html>

use crate::ops::prelude::*;

pub(super) const IMAGE_DECODER: Implementation = Implementation::missing("", "ImageDecoder", infer);

/// The number of channels isn't certain: of a stream that can't be decoded the output is empty.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.choice("pixel_format", &[("RGB", ()), ("BGR", ()), ("Grayscale", ())])?;
    facts.sizes::<1>(0)?;
    facts.give(0, [Dim::Unknown, Dim::Unknown, Dim::Unknown]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, string};

    #[test]
    fn shapes() {
        infer("ImageDecoder", 20, [], ["uint8[n]"]).gives("[?, ?, ?]");
        infer("ImageDecoder", 20, [string("pixel_format", "Grayscale")], ["uint8"]).gives("[?, ?, ?]");
        infer("ImageDecoder", 20, [], ["uint8[2, 3]"]).fails("\"encoded_stream\" has shape [2, 3] of rank 2");
        infer("ImageDecoder", 20, [string("pixel_format", "rgb")], ["uint8"])
            .fails("pixel_format is \"rgb\": allowed RGB, BGR, Grayscale");
    }
}
