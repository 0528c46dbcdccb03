//! STFT: the Fourier transforms of frames of a signal.
//! <https://onnx.ai/onnx/operators/onnx__STFT.html>

use super::frequencies;
use crate::ops::prelude::*;

pub(super) const STFT: Implementation = Implementation::missing("", "STFT", infer);

/// A frame is as long as `frame_length` or `window` says, or else as the signal.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let onesided = facts.flag("onesided")?;
    facts.single(1)?;
    facts.single(3)?;
    let step = facts.number(1);
    if let Some(step @ ..1) = step.as_ref().and_then(Formula::number) {
        return Err(Error::input(format!("frame_step is {step}: it must be at least 1")).parameter("frame_step"));
    }
    let (signal, window) = (facts.sizes::<3>(0)?, facts.sizes::<1>(2)?);
    if let Some([_, _, Dim::Fixed(parts)]) = signal
        && !(1..=if onesided { 1 } else { 2 }).contains(parts)
    {
        let needed = if onesided { "onesided needs 1 (real)" } else { "1 (real) or 2 (complex) is needed" };
        let text = format!("the last dimension of \"signal\" is {parts}: {needed}");
        return Err(Error::input(text).parameter("signal").axis(2).size(*parts));
    }
    let [batch, samples, _] = signal.cloned().unwrap_or([Dim::Unknown, Dim::Unknown, Dim::Unknown]);
    let mut length = match (facts.input(3), facts.input(2)) {
        (None, None) => samples.clone(),
        (None, Some(_)) => Dim::Unknown,
        (Some(_), _) => facts.size(3),
    };
    if let Some([size]) = window {
        length = length.both(size).ok_or_else(|| {
            let text = format!("\"window\" has {size} entries, and frame_length is {length}: they must be equal");
            Error::input(text).parameter("window").axis(0)
        })?;
    }
    let frames = Formula::of(&samples).and_then(|samples| {
        let steps = samples.minus(&Formula::of(&length)?)?.floor_over(step?.number()?)?;
        Some(steps.plus(&Formula::from(1))?.dim())
    });
    let frequencies = if onesided { frequencies(&length) } else { length };
    facts.give(0, [batch, frames.unwrap_or(Dim::Unknown), frequencies, Dim::Fixed(2)]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes() {
        let x = "float[N, 128, 1]";
        infer("STFT", 17, [], [x, "{8}", "-", "{16}"]).gives("[N, 15, 9, 2]");
        infer("STFT", 17, [int("onesided", 0)], ["float[N, 128, 2]", "{8}", "float[16]"]).gives("[N, 15, 16, 2]");
        infer("STFT", 17, [], ["float[1, T, 1]", "{160}", "float[400]", "int64[]"])
            .gives("[1, floor((T - 400)/160) + 1, 201, 2]");
        infer("STFT", 17, [], [x, "{8}"]).gives("[N, 1, 65, 2]");
        infer("STFT", 17, [], [x, "{8}", "float"]).gives("[N, ?, ?, 2]");
        infer("STFT", 17, [], [x, "int64", "-", "{16}"]).gives("[N, ?, 9, 2]");
        infer("STFT", 17, [], ["float", "{8}", "-", "{16}"]).gives("[?, ?, 9, 2]");
    }

    #[test]
    fn faults() {
        let x = "float[N, 128, 1]";
        infer("STFT", 17, [], [x, "{0}"]).fails("frame_step is 0: it must be at least 1");
        infer("STFT", 17, [], [x, "{8}", "float[15]", "{16}"])
            .fails("\"window\" has 15 entries, and frame_length is 16: they must be equal");
        infer("STFT", 17, [], ["float[N, 128]", "{8}"])
            .fails("\"signal\" has shape [N, 128] of rank 2: allowed rank 3");
        infer("STFT", 17, [], ["float[N, 128, 2]", "{8}"]).fails("the last dimension of \"signal\" is 2: onesided");
        infer("STFT", 17, [int("onesided", 0)], ["float[N, 128, 3]", "{8}"]).fails("1 (real) or 2 (complex)");
    }
}
