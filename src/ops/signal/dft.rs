//! DFT: the discrete Fourier transform along an axis, and its inverse.
//! <https://onnx.ai/onnx/operators/onnx__DFT.html>

use super::{beyond, check_length, frequencies, transformed};
use crate::ops::prelude::*;
use kernels::fourier::{self, Places, Sides};

pub(super) const DFT: Implementation = Implementation::run("DFT", &[17, 20], load);

/// `output[.., k, ..] = sum over j of input[.., j, ..] * e^(-2 pi i j k / n)`, and the inverse `1 / n` of the sums with the
/// opposite angle. The input is cut, or filled up with zeros, to the length `n`.
///
/// The last dimension is 1 for real signals, and 2 for complex ones. With `onesided` one side is real: it has all samples,
/// and the other only the frequencies that don't follow from others.
///
/// Computed in double and rounded once, but for complex float32 on both sides: there every step is rounded to float32, in the
/// order of pocketfft, as the standard's cases have these errors (1.9e-7 where 0 is exact).
#[derive(Debug)]
struct Dft {
    inverse: bool,
    onesided: bool,
    /// `None`: it is an input.
    axis: Option<i64>,
}

/// The axis became an input with version 20, -2 by default.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let axis = if node.version() < 20 { Some(node.int("axis")?) } else { None };
    Ok(Box::new(Dft { inverse: node.flag("inverse")?, onesided: node.flag("onesided")?, axis }))
}

/// What is known about an output.
struct Known {
    dims: Vec<Dim>,
    /// The axis and the length of the transform.
    along: Option<(usize, Dim)>,
}

impl Dft {
    fn known(&self, facts: &Inference<'_>) -> Result<Option<Known>> {
        let (inverse, onesided) = (self.inverse, self.onesided);
        (1..3).try_for_each(|k| facts.single(k))?;
        let Some((parts, signal)) = facts.ranked(0, 2..)?.and_then(<[Dim]>::split_last) else { return Ok(None) };
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
        let Some(at) = self.axis(facts, signal.len() + 1)? else {
            // Without a length both sides have as many entries, along whichever axis.
            if onesided || facts.input(1).is_some() {
                dims.fill(Dim::Unknown);
            }
            return Ok(Some(Known { dims: [dims, vec![parts]].concat(), along: None }));
        };
        let Some(dim) = dims.get_mut(at) else { return Ok(None) };
        let length = match facts.input(1) {
            Some(_) => facts.number(1),
            None if onesided && inverse => {
                Formula::of(dim).and_then(|size| size.plus(&Formula::from(-1))?.times(&Formula::from(2)))
            }
            None => Formula::of(dim),
        };
        check_length(length.as_ref(), if facts.input(1).is_some() { "dft_length" } else { "input" })?;
        let length = length.map_or(Dim::Unknown, |length| length.dim());
        *dim = if onesided && !inverse { frequencies(&length) } else { length.clone() };
        Ok(Some(Known { dims: [dims, vec![parts]].concat(), along: Some((at, length)) }))
    }

    /// The place of the axis, which is not the last one.
    fn axis(&self, facts: &Inference<'_>, rank: usize) -> Result<Option<usize>> {
        let axis = match (self.axis, facts.input(2)) {
            (Some(axis), _) => axis,
            (None, None) => -2,
            (None, Some(_)) => match facts.number(2).and_then(|axis| axis.number()) {
                Some(axis) => axis,
                None => return Ok(None),
            },
        };
        match Axis::place(axis.into(), rank).filter(|at| at + 1 < rank) {
            Some(at) => Ok(Some(at)),
            None => {
                let last = rank.saturating_sub(2);
                let text = format!("axis {axis} is out of range: allowed -{rank}..=-2 and 0..={last}");
                let error = match self.axis {
                    Some(_) => Error::model(text).attribute("axis"),
                    None => Error::input(text).parameter("axis"),
                };
                Err(error.axis(axis).value(axis))
            }
        }
    }
}

impl Operator for Dft {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let Some(Known { dims, along: Some((at, Dim::Fixed(len))) }) = call.by_rule(|facts| self.known(facts))? else {
            return Err(beyond());
        };
        let shape: Shape = Dim::sizes(&dims).ok_or_else(beyond)?.into();
        let x = call.tensor(0)?;
        let parts = |shape: &[usize]| shape.last().copied().unwrap_or(1);
        let sides = match [parts(x.shape()), parts(&shape)] {
            [1, _] => Sides::FromReal,
            [_, 1] => Sides::ToReal,
            _ => Sides::Complex,
        };
        let kind = fourier::Kind { sides, inverse: self.inverse, len };
        let volume = |dims: Option<&[usize]>| kernels::volume(1, dims.unwrap_or(&[]));
        let outer = volume(shape.get(..at));
        let inner = volume(shape.get(at + 1..shape.len() - 1));
        let places = |shape: &[usize]| {
            let (step, len) = (inner * parts(shape), shape.get(at).copied().unwrap_or(0));
            Places { inner, steps: [step * len, parts(shape)], step, len }
        };
        let (mut from, to) = (places(x.shape()), places(&shape));
        from.len = from.len.min(kind.elements());
        let count = outer * inner;
        match (x.dtype(), sides) {
            (DType::Float, Sides::Complex) => transformed::<f32>(call, kind, count, [&from, &to], x, None, shape),
            _ => transformed::<f64>(call, kind, count, [&from, &to], x, None, shape),
        }
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(Known { dims, .. }) = self.known(facts)? {
            facts.give(0, dims);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::ops::testing::{infer, int, outputs, run, tensor};
    use half::f16;

    /// 1, 2, 3, 4
    fn real() -> [f32; 4] {
        [1.0, 2.0, 3.0, 4.0]
    }

    #[test]
    fn transforms() {
        let x = tensor(&[1, 4, 1], real());
        let spectrum = [10f32, 0.0, -2.0, 2.0, -2.0, 0.0, -2.0, -2.0];
        run("DFT", 17, [], [&x]).gives(tensor(&[1, 4, 2], spectrum));
        run("DFT", 20, [], [&x]).gives(tensor(&[1, 4, 2], spectrum));
        let conjugate = [2.5f32, 0.0, -0.5, -0.5, -0.5, 0.0, -0.5, 0.5];
        run("DFT", 20, [int("inverse", 1)], [&x]).gives(tensor(&[1, 4, 2], conjugate));
        run("DFT", 20, [int("onesided", 1)], [&x]).gives(tensor(&[1, 3, 2], &spectrum[..6]));
        let back = || [int("onesided", 1), int("inverse", 1)];
        let half = tensor(&[1, 3, 2], &spectrum[..6]);
        run("DFT", 17, back(), [&half]).gives(tensor(&[1, 4, 1], real()));
        run("DFT", 20, back(), [&half, &tensor(&[], [2i32])]).gives(tensor(&[1, 2, 1], [4f32, 6.0]));
        let both = tensor(&[1, 4, 2], spectrum);
        run("DFT", 20, [int("inverse", 1)], [&both])
            .gives(tensor(&[1, 4, 2], [1f32, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0]));
        run("DFT", 20, [], [&tensor(&[1, 1, 2], [3f32, -4.0])]).gives(tensor(&[1, 1, 2], [3f32, -4.0]));
    }

    /// Each axis, lengths that cut and fill up, and signals of each type.
    #[test]
    fn axes_and_lengths() {
        let x = tensor(&[2, 4, 1], [1f64, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let first = [6f64, 0.0, 8.0, 0.0, 10.0, 0.0, 12.0, 0.0, -4.0, 0.0, -4.0, 0.0, -4.0, 0.0, -4.0, 0.0];
        run("DFT", 17, [int("axis", 0)], [&x]).gives(tensor(&[2, 4, 2], first));
        run("DFT", 17, [int("axis", -3)], [&x]).gives(tensor(&[2, 4, 2], first));
        let (none, axis) = (tensor(&[], [2i64]), tensor(&[], [0i64]));
        run("DFT", 20, [], [&x, &none, &axis]).gives(tensor(&[2, 4, 2], first));
        run("DFT", 20, [], [&x, &tensor(&[1], [1i64]), &axis])
            .gives(tensor(&[1, 4, 2], [1f64, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0]));
        let wide = tensor(&[1, 1, 2], [1f64, 1.0]);
        run("DFT", 20, [], [&wide, &tensor(&[], [3i64])]).gives(tensor(&[1, 3, 2], [1f64; 6]));
        let halves = |values: &[f32]| values.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
        run("DFT", 20, [int("onesided", 1)], [&tensor(&[1, 4, 1], halves(&real()))])
            .gives(tensor(&[1, 3, 2], halves(&[10.0, 0.0, -2.0, 2.0, -2.0, 0.0])));
        let empty = tensor(&[0, 4, 1], Vec::<f32>::new());
        run("DFT", 20, [], [&empty]).gives(tensor(&[0, 4, 2], Vec::<f32>::new()));
        // All of a signal of no samples is filled up.
        run("DFT", 20, [], [&tensor(&[1, 0, 1], Vec::<f32>::new()), &none]).gives(tensor(&[1, 2, 2], [0f32; 4]));
    }

    /// Two axes along which neighbours are side by side, beside one lane at a time.
    #[test]
    fn lanes_side_by_side() {
        let value = |at: usize| ((at * 7919) % 1013) as f32 / 500.0 - 1.0;
        let x: Vec<f32> = (0..3 * 6 * 11 * 2).map(value).collect();
        let at = |a: usize, k: usize, b: usize, part: usize| ((a * 6 + k) * 11 + b) * 2 + part;
        let mut want = vec![0f32; x.len()];
        for (a, b) in (0..3).flat_map(|a| (0..11).map(move |b| (a, b))) {
            let lane: Vec<f32> = (0..12).map(|k| x[at(a, k / 2, b, k % 2)]).collect();
            let one = outputs("DFT", 20, [], [&tensor(&[1, 6, 2], lane)]);
            let one = one[0].tensor().unwrap().as_slice::<f32>().unwrap().to_vec();
            (0..12).for_each(|k| want[at(a, k / 2, b, k % 2)] = one[k]);
        }
        run("DFT", 17, [int("axis", 1)], [&tensor(&[3, 6, 11, 2], x)]).gives(tensor(&[3, 6, 11, 2], want));
    }

    #[test]
    fn refusals() {
        let x = tensor(&[1, 4, 1], real());
        let length = |length: i64| tensor(&[], [length]);
        let error =
            run("DFT", 20, [], [&x, &length(0)]).fails("the length of the transform is 0: it must be at least 1");
        assert_eq!((error.kind(), error.place().value), (Kind::Input, Some(0)));
        run("DFT", 17, [], [&x, &length(-3)]).fails("the length of the transform is -3");
        run("DFT", 17, [], [&x, &length(1 << 62)]).fails("more bytes than can be counted");
        run("DFT", 20, [], [&tensor(&[1, 0, 1], Vec::<f32>::new())]).fails("the length of the transform is 0");
        let back = [int("onesided", 1), int("inverse", 1)];
        run("DFT", 20, back, [&tensor(&[1, 1, 2], [1f32, 0.0])]).fails("the length of the transform is 0");
        run("DFT", 20, [int("onesided", 1)], [&tensor(&[1, 2, 2], real())]).fails("is 2: onesided needs 1 (real)");
        run("DFT", 20, [], [&x, &length(4), &length(2)]).fails("axis 2 is out of range: allowed -3..=-2 and 0..=1");
        run("DFT", 20, [], [&x, &length(4), &tensor(&[2], [0i64, 1])])
            .fails("\"axis\" has shape [2]: one value is needed");
    }

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
