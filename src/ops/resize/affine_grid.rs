//! AffineGrid: the places of the entries of an image, moved by affine matrices.
//! <https://onnx.ai/onnx/operators/onnx__AffineGrid.html>

use crate::ops::prelude::*;

pub(super) const AFFINE_GRID: Implementation = Implementation::missing("", "AffineGrid", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let theta = facts.sizes::<3>(0)?;
    facts.sizes::<1>(1)?;
    let size = facts.listed(1);
    let axes = match (&size, theta) {
        (Some(size), _) => size.len().saturating_sub(2),
        (None, Some([_, Dim::Fixed(rows), _])) => *rows,
        (None, Some([_, _, Dim::Fixed(columns)])) => columns.saturating_sub(1),
        _ => return Ok(()),
    };
    if !(2..=3).contains(&axes) {
        let text = match size {
            Some(size) => format!("size has {} numbers: allowed 4 and 5", size.len()),
            None => format!("\"theta\" has matrices for {axes} axes: allowed 2 and 3"),
        };
        return Err(Error::input(text));
    }
    facts.needs_size(0, 1, axes)?;
    facts.needs_size(0, 2, axes + 1)?;
    let size = size.unwrap_or_else(|| vec![Dim::Unknown; axes + 2]);
    let (Some(own), Some(image)) = (size.first(), size.get(2..)) else { return Ok(()) };
    let matrices = theta.map_or(&Dim::Unknown, |[matrices, ..]| matrices);
    let Some(batch) = matrices.both(own) else {
        let text = format!("size[0] is {own}, but \"theta\" has {matrices} matrices: they must be equal");
        return Err(Error::input(text).parameter("size").position(vec![0]));
    };
    facts.give(0, [&[batch], image, &[Dim::Fixed(axes)]].concat());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        infer("AffineGrid", 20, [], ["float[N, 2, 3]", "{?, 3, H, 6}"]).gives("[N, H, 6, 2]");
        infer("AffineGrid", 20, [], ["float[?, ?, ?]", "{2, 3, 4, 5, W}"]).gives("[2, 4, 5, W, 3]");
        infer("AffineGrid", 20, [], ["float[N, 3, ?]", "int64[n]"]).gives("[N, ?, ?, ?, 3]");
        infer("AffineGrid", 20, [], ["float[N, ?, 3]", "int64"]).gives("[N, ?, ?, 2]");
        infer("AffineGrid", 20, [], ["float", "int64"]).gives("");
    }

    #[test]
    fn faults() {
        infer("AffineGrid", 20, [], ["float[N, 2, 3]", "{2, 3, 4}"]).fails("size has 3 numbers: allowed 4 and 5");
        infer("AffineGrid", 20, [], ["float[N, 4, 5]", "int64"]).fails("\"theta\" has matrices for 4 axes");
        infer("AffineGrid", 20, [], ["float[N, 2, 3]", "{2, 3, 4, 5, 6}"])
            .fails("dimension 1 of \"theta\" of shape [N, 2, 3] is 2: it must be 3");
        infer("AffineGrid", 20, [], ["float[N, 2, 4]", "{2, 3, 4, 5}"]).fails("is 4: it must be 3");
        infer("AffineGrid", 20, [], ["float[3, 2, 3]", "{2, 3, 4, 5}"])
            .fails("size[0] is 2, but \"theta\" has 3 matrices");
    }
}
