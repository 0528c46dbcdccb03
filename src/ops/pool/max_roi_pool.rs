//! MaxRoiPool: the largest entries in the cells of regions of an image.
//! <https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html>

use crate::ops::prelude::*;

pub(super) const MAX_ROI_POOL: Implementation = Implementation::missing("", "MaxRoiPool", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let (x, rois) = (facts.sizes::<4>(0)?, facts.sizes::<2>(1)?);
    facts.needs_size(1, 1, 5)?;
    let cells = windows::list(facts, "pooled_shape", 2, 1)?;
    let count = rois.map_or(Dim::Unknown, |[count, _]| count.clone());
    let channels = x.map_or(Dim::Unknown, |[_, channels, ..]| channels.clone());
    facts.give(0, [count, channels].into_iter().chain(cells.into_iter().map(Dim::of)).collect::<Vec<_>>());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints};

    #[test]
    fn shapes() {
        let cells = || [ints("pooled_shape", &[2, 3])];
        infer("MaxRoiPool", 1, cells(), ["float[N, C, H, W]", "float[R, 5]"]).gives("[R, C, 2, 3]");
        infer("MaxRoiPool", 22, cells(), ["float", "float"]).gives("[?, ?, 2, 3]");
    }

    #[test]
    fn faults() {
        let (x, rois) = ("float[N, C, H, W]", "float[R, 5]");
        infer("MaxRoiPool", 1, [ints("pooled_shape", &[2])], [x, rois])
            .fails("pooled_shape has 1 numbers: 2 are needed");
        infer("MaxRoiPool", 1, [ints("pooled_shape", &[2, 0])], [x, rois]).fails("pooled_shape[1] is 0");
        infer("MaxRoiPool", 1, [ints("pooled_shape", &[1, 1])], [x, "float[R, 4]"])
            .fails("dimension 1 of \"rois\" of shape [R, 4] is 4: it must be 5");
        infer("MaxRoiPool", 1, [ints("pooled_shape", &[1, 1])], ["float[N, C, H]", rois]).fails("allowed rank 4");
    }
}
