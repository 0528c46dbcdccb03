//! RoiAlign: the means or largest of samples in the cells of regions of an image.
//! <https://onnx.ai/onnx/operators/onnx__RoiAlign.html>

use crate::ops::prelude::*;

pub(super) const ROI_ALIGN: Implementation = Implementation::missing("", "RoiAlign", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.choice("mode", &[("avg", ()), ("max", ())])?;
    let x = facts.sizes::<4>(0)?;
    facts.sizes::<2>(1)?;
    facts.sizes::<1>(2)?;
    facts.needs_size(1, 1, 4)?;
    let count = facts.same_size((1, 0), (2, 0))?;
    let cells = [facts.int("output_height")?, facts.int("output_width")?];
    let channels = x.map_or(Dim::Unknown, |[_, channels, ..]| channels.clone());
    facts.give(0, [count, channels].into_iter().chain(cells.map(Dim::of)).collect::<Vec<_>>());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, string};

    #[test]
    fn shapes() {
        let x = "float[N, C, H, W]";
        infer("RoiAlign", 10, [], [x, "float[R, 4]", "int64[?]"]).gives("[R, C, 1, 1]");
        infer("RoiAlign", 16, [int("output_height", 5), int("output_width", 7)], [x, "float", "int64[R]"])
            .gives("[R, C, 5, 7]");
        infer("RoiAlign", 22, [string("mode", "max")], ["float", "float", "int64"]).gives("[?, ?, 1, 1]");
    }

    #[test]
    fn faults() {
        let (x, rois) = ("float[N, C, H, W]", "float[3, 4]");
        infer("RoiAlign", 10, [], [x, rois, "int64[2]"]).fails(
            "dimension 0 of \"rois\" of shape [3, 4] is 3, and dimension 0 of \"batch_indices\" of shape [2] is 2",
        );
        infer("RoiAlign", 10, [], [x, "float[3, 5]", "int64[3]"])
            .fails("dimension 1 of \"rois\" of shape [3, 5] is 5: it must be 4");
        infer("RoiAlign", 10, [string("mode", "avgmax")], [x, rois, "int64[3]"])
            .fails("mode is \"avgmax\": allowed avg, max");
    }
}
