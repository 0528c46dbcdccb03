//! LRN: entries divided by a power of the squares of channels near theirs.
//! <https://onnx.ai/onnx/operators/onnx__LRN.html>

use crate::ops::prelude::*;
use kernels::channels::{self, Response};

pub(super) const LRN: Implementation = Implementation::run("LRN", &[1, 13], load);

/// `Y[n, c, i..] = X[n, c, i..] / (bias + alpha / size * sum of X[n, k, i..]^2)^beta`, over the channels `k` from
/// `c - floor((size - 1) / 2)` to `c + ceil((size - 1) / 2)`. In f64, rounded once.
#[derive(Debug)]
struct LocalResponse(Response);

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let size = windows::one_or_more(node, "size")?;
    let around = usize::try_from(size - 1).unwrap_or(usize::MAX);
    let float = |name: &str| node.float(name).map(f64::from);
    let (before, after) = (around / 2, around.div_ceil(2));
    let alpha = float("alpha")? / size as f64;
    Ok(Box::new(LocalResponse(Response { before, after, alpha, beta: float("beta")?, bias: float("bias")? })))
}

fn check(facts: &Inference<'_>) -> Result<()> {
    facts.ranked(0, 2..).map(drop)
}

impl Operator for LocalResponse {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(check)?;
        let x = call.tensor(0)?;
        let (channels, run) = match x.shape() {
            [_, channels, image @ ..] => (*channels, kernels::volume(1, image)),
            _ => (0, 0),
        };
        let mut y = call.output_of(x.dtype(), Shape::from_slice(x.shape()))?;
        let near = self.0.before.saturating_add(self.0.after).saturating_add(1).min(channels);
        call.charge((x.len() as u64).saturating_mul(near as u64))?;
        by_type!(floats, x.dtype(), S as _T => {
            let (from, to) = (x.as_slice::<S>()?, y.elements_mut::<S>()?);
            Ok(channels::respond(self.0, from, [channels, run], to, call.resources())?)
        })?;
        Ok(y.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        check(facts)?;
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use half::{bf16, f16};

    fn float(name: &str, value: f32) -> (&str, Attribute) {
        (name, Attribute::Float(value))
    }

    #[test]
    fn by_the_squares_of_channels_nearby() {
        // Of two images with three channels of two entries.
        let x = tensor(&[2, 3, 2], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 0.0, 0.0, -2.0, 2.0, 0.0]);
        let ran = |size| run("LRN", 13, [int("size", size), float("alpha", size as f32), float("beta", 1.0)], [&x]);
        let divided = |by: [f32; 12]| {
            let x = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 0.0, 0.0, -2.0, 2.0, 0.0];
            tensor(&[2, 3, 2], x.iter().zip(by).map(|(x, by)| x / by).collect::<Vec<_>>())
        };
        ran(1).gives(divided([2.0, 5.0, 10.0, 17.0, 26.0, 37.0, 2.0, 1.0, 1.0, 5.0, 5.0, 1.0]));
        // An even number has one more after.
        ran(2).gives(divided([11.0, 21.0, 35.0, 53.0, 26.0, 37.0, 2.0, 5.0, 5.0, 5.0, 5.0, 1.0]));
        ran(3).gives(divided([11.0, 21.0, 36.0, 57.0, 35.0, 53.0, 2.0, 5.0, 6.0, 5.0, 5.0, 5.0]));
        ran(5).gives(divided([36.0, 57.0, 36.0, 57.0, 36.0, 57.0, 6.0, 5.0, 6.0, 5.0, 6.0, 5.0]));
        ran(1 << 40).gives(divided([36.0, 57.0, 36.0, 57.0, 36.0, 57.0, 6.0, 5.0, 6.0, 5.0, 6.0, 5.0]));
    }

    #[test]
    fn attributes_and_types() {
        let attributes = || [int("size", 1), float("alpha", 1.0), float("beta", 0.5), float("bias", 7.0)];
        run("LRN", 1, attributes(), [&tensor(&[1, 1], [3f64])]).gives(tensor(&[1, 1], [0.75f64]));
        run("LRN", 1, attributes(), [&tensor(&[1, 1], [f16::from_f32(3.0)])])
            .gives(tensor(&[1, 1], [f16::from_f32(0.75)]));
        run("LRN", 13, attributes(), [&tensor(&[1, 1], [bf16::from_f32(-3.0)])])
            .gives(tensor(&[1, 1], [bf16::from_f32(-0.75)]));
        let defaults = (1.0 + f64::from(1e-4f32) * 100.0).powf(0.75);
        run("LRN", 13, [int("size", 1)], [&tensor(&[1, 1], [10f32])])
            .gives(tensor(&[1, 1], [(10.0 / defaults) as f32]));
        run("LRN", 13, attributes(), [&tensor(&[1], [10f32])]).fails("allowed ranks from 2 on");
        run("LRN", 13, [int("size", 1)], [&tensor(&[1, 0, 2], Vec::<f32>::new())])
            .gives(tensor(&[1, 0, 2], Vec::<f32>::new()));
    }

    #[test]
    fn shapes() {
        infer("LRN", 1, [int("size", 3)], ["float[N, C, 5]"]).gives("[N, C, 5]");
        infer("LRN", 13, [int("size", 3)], ["float"]).gives("");
        infer("LRN", 13, [int("size", 0)], ["float[N, C]"]).fails("size is 0: it must be at least 1");
        infer("LRN", 13, [int("size", 1)], ["float[N]"]).fails("allowed ranks from 2 on");
    }
}
