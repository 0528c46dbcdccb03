//! Upsample: an image with more entries along its axes, by scales.
//! <https://onnx.ai/onnx/operators/onnx__Upsample.html>

use super::scales::{check, constant, scaled};
use crate::ops::prelude::*;

pub(super) const UPSAMPLE: Implementation = Implementation::missing("", "Upsample", infer);

/// Scales are attributes before version 9, and an input then. Version 1 has those of the last two of four dimensions.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let corner;
    let scales = match facts.version() {
        ..7 => {
            facts.sizes::<4>(0)?;
            corner = [1.0, 1.0, scale(facts, "height_scale")?, scale(facts, "width_scale")?];
            Some(&corner[..])
        }
        7..9 => Some(facts.floats("scales")?),
        _ => constant(facts, 1),
    };
    let Some(dims) = facts.dims(0) else { return Ok(()) };
    let attribute = facts.version() < 9;
    if let Some(scales) = scales {
        check(scales, dims.len(), 1.0, |text| match attribute {
            true => Error::model(text).attribute("scales"),
            false => Error::input(text).parameter("scales"),
        })?;
    }
    let scale = |d| scales.and_then(|scales| scales.get(d));
    let size = |(d, dim)| scale(d).map_or(Dim::Unknown, |scale| scaled(dim, *scale));
    facts.give(0, dims.iter().enumerate().map(size).collect::<Vec<_>>());
    Ok(())
}

fn scale(facts: &Inference<'_>, name: &str) -> Result<f32> {
    match facts.float(name)? {
        scale @ 1.0.. => Ok(scale),
        scale => Err(Error::model(format!("{name} is {scale}: it must be at least 1")).attribute(name)),
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{float, infer};

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
