//! STFT: the Fourier transforms of frames of a signal.
//! <https://onnx.ai/onnx/operators/onnx__STFT.html>

use super::{beyond, check_length, frequencies, transformed};
use crate::ops::prelude::*;
use kernels::fourier::{self, Places, Sides};

pub(super) const STFT: Implementation = Implementation::run("STFT", &[17], load);

/// `output[b, f, k] = sum over j of signal[b, f * frame_step + j] * window[j] * e^(-2 pi i j k / frame_length)`, for whole
/// frames alone. With `onesided` only for the frequencies that don't follow from others.
///
/// A frame is as long as `frame_length` or `window` says, or else as the signal. Computed in double and rounded once.
#[derive(Debug)]
struct Stft {
    onesided: bool,
    /// Whether a signal may lack the axis of its parts, and is real then.
    rank_2: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Stft { onesided: node.flag("onesided")?, rank_2: node.compatibility().stft_rank_2 }))
}

impl Stft {
    /// What is known about the sizes of the signal.
    fn signal(&self, facts: &Inference<'_>) -> Result<[Dim; 3]> {
        let unknown = [Dim::Unknown, Dim::Unknown, Dim::Unknown];
        match (facts.dims(0), facts.sizes(0)) {
            (Some([batch, samples]), _) if self.rank_2 => Ok([batch.clone(), samples.clone(), Dim::Fixed(1)]),
            (Some([_, _]), Err(error)) => Err(error.with_remedy(Remedy::Allow("stft_rank_2"))),
            (_, sizes) => Ok(sizes?.cloned().unwrap_or(unknown)),
        }
    }

    /// What is known about the shape of the output, the step and the length of a frame.
    fn known(&self, facts: &Inference<'_>) -> Result<([Dim; 4], [Option<Formula>; 2])> {
        let onesided = self.onesided;
        facts.single(1)?;
        facts.single(3)?;
        let step = facts.number(1);
        if let Some(step @ ..1) = step.as_ref().and_then(Formula::number) {
            let text = format!("frame_step is {step}: it must be at least 1");
            return Err(Error::input(text).parameter("frame_step").value(step));
        }
        let ([batch, samples, parts], window) = (self.signal(facts)?, facts.sizes::<1>(2)?);
        if let Dim::Fixed(parts) = parts
            && !(1..=if onesided { 1 } else { 2 }).contains(&parts)
        {
            let needed = if onesided { "onesided needs 1 (real)" } else { "1 (real) or 2 (complex) is needed" };
            let text = format!("the last dimension of \"signal\" is {parts}: {needed}");
            return Err(Error::input(text).parameter("signal").axis(2).size(parts));
        }
        let (mut length, from) = match (facts.input(3), facts.input(2)) {
            (None, None) => (Formula::of(&samples), "signal"),
            (None, Some(_)) => (None, "window"),
            (Some(_), _) => (facts.number(3), "frame_length"),
        };
        check_length(length.as_ref(), from)?;
        if let Some([size]) = window {
            let known = length.map_or(Dim::Unknown, |length| length.dim());
            let both = known.both(size).ok_or_else(|| {
                let text = format!("\"window\" has {size} entries, and frame_length is {known}: they must be equal");
                Error::input(text).parameter("window").axis(0)
            })?;
            length = Formula::of(&both);
            check_length(length.as_ref(), "window")?;
        }
        let frames = Formula::of(&samples).and_then(|samples| {
            let steps = samples.minus(length.as_ref()?)?.floor_over(step.as_ref()?.number()?)?;
            steps.plus(&Formula::from(1))
        });
        let dim = |size: &Option<Formula>| size.as_ref().map_or(Dim::Unknown, |size| size.dim());
        if let Some(..0) = frames.as_ref().and_then(Formula::number) {
            let text = format!("a frame has {} samples, but \"signal\" only {samples}", dim(&length));
            return Err(Error::input(text).parameter("signal").axis(1));
        }
        let bins = if onesided { frequencies(&dim(&length)) } else { dim(&length) };
        Ok(([batch, dim(&frames), bins, Dim::Fixed(2)], [step, length]))
    }
}

impl Operator for Stft {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (dims, [step, length]) = call.by_rule(|facts| self.known(facts))?;
        let number = |size: Option<Formula>| usize::try_from(size?.number()?).ok();
        let (Some(step), Some(len)) = (number(step), number(length)) else { return Err(beyond()) };
        let shape: Shape = Dim::sizes(&dims).ok_or_else(beyond)?.into();
        let (x, window) = (call.tensor(0)?, call.optional_tensor(2)?);
        let (&[_, samples, ref parts @ ..], &[batch, frames, bins, _]) = (x.shape(), &*shape) else {
            return Err(beyond());
        };
        let parts = parts.first().copied().unwrap_or(1);
        let sides = if parts == 1 { Sides::FromReal } else { Sides::Complex };
        let kind = fourier::Kind { sides, inverse: false, len };
        let steps = [samples * parts, step.saturating_mul(parts)];
        let from = Places { inner: frames, steps, step: parts, len };
        let to = Places { inner: 1, steps: [2 * bins, 0], step: 2, len: bins };
        transformed::<f64>(call, kind, batch * frames, [&from, &to], x, window, shape)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let (dims, _) = self.known(facts)?;
        facts.give(0, dims);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};

    #[test]
    fn frames() {
        let (x, step) = (tensor(&[1, 6, 1], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]), tensor(&[], [2i64]));
        let (window, four) = (tensor(&[4], [1f32, 1.0, 0.0, 2.0]), tensor(&[1], [4i64]));
        let spectra = [11f32, 0.0, 1.0, 6.0, -9.0, 0.0, 19.0, 0.0, 3.0, 8.0, -13.0, 0.0];
        run("STFT", 17, [], [&x, &step, &window]).gives(tensor(&[1, 2, 3, 2], spectra));
        run("STFT", 17, [], [&x, &step, &window, &four]).gives(tensor(&[1, 2, 3, 2], spectra));
        let all = [11f32, 0.0, 1.0, 6.0, -9.0, 0.0, 1.0, -6.0, 19.0, 0.0, 3.0, 8.0, -13.0, 0.0, 3.0, -8.0];
        run("STFT", 17, [int("onesided", 0)], [&x, &step, &window]).gives(tensor(&[1, 2, 4, 2], all));
        // The imaginary parts are those of the second signal.
        let complex = tensor(&[1, 2, 2], [1f64, 10.0, 2.0, 20.0]);
        run("STFT", 17, [int("onesided", 0)], [&complex, &step])
            .gives(tensor(&[1, 1, 2, 2], [3f64, 30.0, -1.0, -10.0]));
        let two = tensor(&[2, 3, 1], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        run("STFT", 17, [], [&two, &tensor(&[], [1i32]), &tensor(&[1], [2f32])])
            .gives(tensor(&[2, 3, 1, 2], [2f32, 0.0, 4.0, 0.0, 6.0, 0.0, 8.0, 0.0, 10.0, 0.0, 12.0, 0.0]));
    }

    /// The formula gives no frame if the signal lacks less than a step, and then less than none.
    #[test]
    fn short_signals() {
        let (x, step) = (tensor(&[1, 3, 1], [1f32, 2.0, 3.0]), tensor(&[], [2i64]));
        let length = |length: i64| tensor(&[], [length]);
        let ones = |count: usize| tensor(&[count], vec![1f32; count]);
        run("STFT", 17, [], [&x, &step, &ones(5)]).gives(tensor(&[1, 0, 3, 2], Vec::<f32>::new()));
        run("STFT", 17, [], [&x, &step, &ones(6), &length(6)]).fails("a frame has 6 samples, but \"signal\" only 3");
        run("STFT", 17, [], [&x, &step, &ones(0)]).fails("the length of the transform is 0: it must be at least 1");
        run("STFT", 17, [], [&x, &step, &ones(3), &length(-1)]).fails("the length of the transform is -1");
        run("STFT", 17, [], [&x, &length(i64::MAX), &ones(3)])
            .gives(tensor(&[1, 1, 2, 2], [6f32, 0.0, -1.5, 3f32.sqrt() / 2.0]));
        run("STFT", 17, [], [&x, &length(0), &ones(3)]).fails("frame_step is 0: it must be at least 1");
    }

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
