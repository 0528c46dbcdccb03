//! DFT: the discrete Fourier transform along an axis, and its inverse.
//! <https://onnx.ai/onnx/operators/onnx__DFT.html>

use super::frequencies;
use crate::ops::prelude::*;

pub(super) const DFT: Implementation = Implementation::missing("", "DFT", infer);

/// The last dimension is 1 for real signals, and 2 for complex ones. With `onesided` one side is real: it has all samples,
/// and the other only the frequencies that don't follow from others.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let (inverse, onesided) = (facts.flag("inverse")?, facts.flag("onesided")?);
    facts.single(1)?;
    let Some((parts, signal)) = facts.ranked(0, 2..)?.and_then(<[Dim]>::split_last) else { return Ok(()) };
    let allowed = match (onesided, inverse) {
        (false, _) => 1..=2,
        (true, false) => 1..=1,
        (true, true) => 2..=2,
    };
    if let Dim::Fixed(size) = parts
        && !allowed.contains(size)
    {
        let needed = match (onesided, inverse) {
            (false, _) => "1 (real) or 2 (complex) is needed",
            (true, false) => "onesided needs 1 (real)",
            (true, true) => "onesided needs 2 (complex), as the inverse",
        };
        let text = format!("the last dimension of \"input\" is {size}: {needed}");
        return Err(Error::input(text).parameter("input").axis(signal.len() as i64).size(*size));
    }
    let parts = Dim::Fixed(if onesided && inverse { 1 } else { 2 });
    let mut dims = signal.to_vec();
    let Some(at) = axis(facts, signal.len() + 1)? else {
        // Without a length both sides have as many entries, along whichever axis.
        if onesided || facts.input(1).is_some() {
            dims.fill(Dim::Unknown);
        }
        facts.give(0, [dims, vec![parts]].concat());
        return Ok(());
    };
    if let Some(dim) = dims.get_mut(at) {
        let length = match facts.input(1) {
            Some(_) => facts.size(1),
            None if onesided && inverse => {
                let both = Formula::of(dim).and_then(|size| size.plus(&Formula::from(-1))?.times(&Formula::from(2)));
                both.map_or(Dim::Unknown, |length| length.dim())
            }
            None => dim.clone(),
        };
        *dim = if onesided && !inverse { frequencies(&length) } else { length };
    }
    facts.give(0, [dims, vec![parts]].concat());
    Ok(())
}

/// The place of the axis, which is not the last one. It became an input with version 20, -2 by default.
fn axis(facts: &Inference<'_>, rank: usize) -> Result<Option<usize>> {
    let axis = match (facts.version(), facts.input(2)) {
        (..20, _) => facts.int("axis")?,
        (_, None) => -2,
        (_, Some(_)) => match facts.number(2).and_then(|axis| axis.number()) {
            Some(axis) => axis,
            None => return Ok(None),
        },
    };
    match Axis::place(axis.into(), rank).filter(|at| at + 1 < rank) {
        Some(at) => Ok(Some(at)),
        None => {
            let text = format!("axis {axis} is out of range: allowed -{rank}..=-2 and 0..={}", rank.saturating_sub(2));
            let error = if facts.version() < 20 {
                Error::model(text).attribute("axis")
            } else {
                Error::input(text).parameter("axis")
            };
            Err(error.axis(axis).value(axis))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes() {
        let real = "float[N, 10, W, 1]";
        infer("DFT", 17, [], [real]).gives("[N, 10, W, 2]");
        infer("DFT", 17, [int("onesided", 1)], [real]).gives("[N, 6, W, 2]");
        infer("DFT", 17, [int("axis", 2), int("onesided", 1)], [real]).gives("[N, 10, floor((W)/2) + 1, 2]");
        infer("DFT", 20, [], [real, "{16}"]).gives("[N, 10, 16, 2]");
        infer("DFT", 20, [int("inverse", 1)], ["float[N, 10, 2]", "-", "{0}"]).gives("[N, 10, 2]");
        infer("DFT", 20, [int("onesided", 1)], [real, "{15}", "{1}"]).gives("[N, 8, W, 2]");
        infer("DFT", 20, [], [real, "-", "int64[]"]).gives("[N, 10, W, 2]");
        infer("DFT", 20, [int("onesided", 1)], [real, "-", "int64[]"]).gives("[?, ?, ?, 2]");
        infer("DFT", 20, [], [real, "{16}", "int64[]"]).gives("[?, ?, ?, 2]");
        infer("DFT", 20, [], ["float"]).gives("");
        let back = [int("onesided", 1), int("inverse", 1)];
        infer("DFT", 20, back.clone(), ["float[N, 6, 2]"]).gives("[N, 10, 1]");
        infer("DFT", 20, back.clone(), ["float[6, N, 2]"]).gives("[6, 2*N - 2, 1]");
        infer("DFT", 17, back, ["float[N, 6, 2]", "int64[]"]).gives("[N, ?, 1]");
    }

    #[test]
    fn faults() {
        infer("DFT", 17, [int("axis", 2)], ["float[N, 10, 1]"])
            .fails("axis 2 is out of range: allowed -3..=-2 and 0..=1");
        infer("DFT", 20, [], ["float[N, 10, 1]", "-", "{-1}"]).fails("axis -1 is out of range");
        infer("DFT", 20, [], ["float[10]"]).fails("\"input\" has shape [10] of rank 1: allowed ranks from 2 on");
        infer("DFT", 20, [], ["float[N, 3]"]).fails("the last dimension of \"input\" is 3: 1 (real) or 2 (complex)");
        infer("DFT", 20, [int("onesided", 1)], ["float[N, 2]"]).fails("is 2: onesided needs 1 (real)");
        infer("DFT", 20, [int("onesided", 1), int("inverse", 1)], ["float[N, 1]"]).fails("is 1: onesided needs 2");
        infer("DFT", 20, [], ["float[N, 1]", "int64[2]"]).fails("\"dft_length\" has shape [2]: one value is needed");
        infer("DFT", 20, [int("inverse", 3)], ["float[N, 1]"]).fails("inverse is 3: allowed 0, 1");
    }
}
