//! Upsample: an image with more entries along its axes, by scales.
//! <https://onnx.ai/onnx/operators/onnx__Upsample.html>

use super::in_blocks::{Asked, ResizeInBlocks};
use super::interpolation::{Interpolation, Mode, Nearest};
use super::scales::{by_scales, check, constant, scaled};
use crate::ops::prelude::*;
use kernels::resample::Filter;

pub(super) const UPSAMPLE: Implementation = Implementation::blockwise("Upsample", &[1, 7, 9], load);

/// As Resize of the coordinate transformation "asymmetric" and the nearest mode "floor", which the text leaves open
#[derive(Debug)]
struct Upsample {
    interpolation: Interpolation,
    /// Before version 9 they are attributes. Version 1 has those of the last two of four dimensions.
    scales: Option<Vec<f32>>,
}

fn load(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    let linear = if node.version() < 7 { "bilinear" } else { "linear" };
    let nearest = Mode::Nearest(Nearest::Floor);
    let mode = node.choice("mode", &[("nearest", nearest), (linear, Mode::Weighted(Filter::Linear))])?;
    let scales = match node.version() {
        ..7 => Some(vec![1.0, 1.0, scale(node, "height_scale")?, scale(node, "width_scale")?]),
        7..9 => Some(node.floats("scales")?.to_vec()),
        _ => None,
    };
    Ok(Arc::new(Upsample { interpolation: Interpolation::simple(mode), scales }))
}

impl Upsample {
    fn check(&self, scales: &[f32], rank: usize) -> Result<()> {
        check(scales, rank, 1.0, |text| match self.scales {
            Some(_) => Error::model(text).attribute("scales"),
            None => Error::input(text).parameter("scales"),
        })
    }
}

impl Blockwise for Upsample {
    fn in_blocks(&self, channels: usize, axes: usize, constant: &Constants<'_>) -> Option<InBlocks> {
        let scales = match &self.scales {
            Some(scales) => scales,
            None => constant(1)?.as_slice::<f32>().ok()?,
        };
        self.check(scales, axes + 2).ok().filter(|()| axes == 2)?;
        let asked: Vec<(usize, Asked)> = scales.iter().copied().map(Asked::Scale).enumerate().collect();
        ResizeInBlocks::of(&self.interpolation, &asked, channels)
    }
}

impl Operator for Upsample {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let scales = match &self.scales {
            Some(scales) => scales,
            None => call.tensor(1)?.as_slice()?,
        };
        self.check(scales, x.rank())?;
        let axes = x.shape().iter().zip(scales).enumerate();
        let resized = axes.map(|(axis, (size, scale))| by_scales(axis, *size, *scale)).collect::<Result<Vec<_>>>()?;
        self.interpolation.run(call, &resized)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if facts.version() < 7 {
            facts.sizes::<4>(0)?;
        }
        let scales = self.scales.as_deref().or_else(|| constant(facts, 1));
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        scales.map_or(Ok(()), |scales| self.check(scales, dims.len()))?;
        let scale = |d| scales.and_then(|scales| scales.get(d));
        let size = |(d, dim)| scale(d).map_or(Dim::Unknown, |scale| scaled(dim, *scale));
        facts.give(0, dims.iter().enumerate().map(size).collect::<Vec<_>>());
        Ok(())
    }
}

fn scale(node: &Node<'_>, name: &str) -> Result<f32> {
    match node.float(name)? {
        scale @ 1.0.. => Ok(scale),
        scale => Err(Error::model(format!("{name} is {scale}: it must be at least 1")).attribute(name)),
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{float, infer, run, string, tensor};

    #[test]
    fn entries() {
        let x = tensor(&[1, 1, 1, 3], [1f32, 3., 4.]);
        let nearest = tensor(&[1, 1, 2, 4], [1f32, 1., 3., 4., 1., 1., 3., 4.]);
        let of = |scale| [1f32, 1., 2., scale];
        let attributes = [float("height_scale", 2.0), float("width_scale", 1.5)];
        run("Upsample", 1, attributes, [&x]).gives(&nearest);
        run("Upsample", 7, scales(&of(1.5)), [&x]).gives(&nearest);
        run("Upsample", 9, [], [&x, &tensor(&[4], of(1.5))]).gives(&nearest);
        let linear = tensor(&[1, 1, 1, 6], [1f32, 2., 3., 3.5, 4., 4.]);
        run("Upsample", 9, [string("mode", "linear")], [&x, &tensor(&[4], [1f32, 1., 1., 2.])]).gives(&linear);
        let attributes = [string("mode", "bilinear"), float("height_scale", 1.0), float("width_scale", 2.0)];
        run("Upsample", 1, attributes, [&x]).gives(&linear);
        run("Upsample", 9, [], [&x, &tensor(&[4], of(0.5))]).fails("scales[3] is 0.5: it must be at least 1");
        run("Upsample", 7, [string("mode", "cubic"), scales(&of(1.0))[0].clone()], [&x])
            .fails("mode is \"cubic\": allowed nearest, linear");
    }

    fn scales(scales: &[f32]) -> [(&'static str, Attribute); 1] {
        [("scales", Attribute::Floats(scales.to_vec()))]
    }

    #[test]
    fn shapes() {
        let x = "float[N, C, H, 5]";
        infer("Upsample", 1, [float("height_scale", 2.0), float("width_scale", 1.5)], [x]).gives("[N, C, 2*H, 7]");
        infer("Upsample", 7, scales(&[1.0, 1.0, 2.0, 3.0]), [x]).gives("[N, C, 2*H, 15]");
        infer("Upsample", 9, [], [x, "{1.0, 1.0, 2.5, 1.0}"]).gives("[N, C, floor((5*H)/2), 5]");
        infer("Upsample", 9, [], [x, "float[4]"]).gives("[?, ?, ?, ?]");
        infer("Upsample", 9, [], ["float", "{1.0, 2.0}"]).gives("");
    }

    #[test]
    fn faults() {
        let x = "float[N, C, 2, 2]";
        infer("Upsample", 1, [float("height_scale", 0.5), float("width_scale", 1.0)], [x])
            .fails("height_scale is 0.5: it must be at least 1");
        infer("Upsample", 1, [float("height_scale", 1.0), float("width_scale", 1.0)], ["float[2, 2]"])
            .fails("allowed rank 4");
        infer("Upsample", 7, scales(&[1.0, 2.0]), [x]).fails("scales has 2 numbers: 4 are needed");
        infer("Upsample", 9, [], [x, "{1.0, 1.0, 0.5, 1.0}"]).fails("scales[2] is 0.5: it must be at least 1");
    }
}
