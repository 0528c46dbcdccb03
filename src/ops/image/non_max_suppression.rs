//! NonMaxSuppression: the boxes with the highest scores that don't overlap others too much.
//! <https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html>

use crate::ops::prelude::*;

pub(super) const NON_MAX_SUPPRESSION: Implementation = Implementation::missing("", "NonMaxSuppression", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.flag("center_point_box")?;
    facts.sizes::<3>(0)?;
    facts.sizes::<3>(1)?;
    facts.needs_size(0, 2, 4)?;
    facts.same_size((0, 0), (1, 0))?;
    facts.same_size((0, 1), (1, 2))?;
    // Without a number none is selected.
    let count = match facts.input(2) {
        None => Dim::Fixed(0),
        Some(_) => facts.number(2).filter(|most| most.number() == Some(0)).map_or(Dim::Unknown, |none| none.dim()),
    };
    facts.give(0, [count, Dim::Fixed(3)]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes() {
        let (boxes, scores) = ("float[B, S, 4]", "float[B, C, S]");
        infer("NonMaxSuppression", 10, [], [boxes, scores, "int64"]).gives("[?, 3]");
        infer("NonMaxSuppression", 11, [], ["float", "float", "{3}"]).gives("[?, 3]");
        infer("NonMaxSuppression", 11, [], [boxes, scores, "{0}"]).gives("[0, 3]");
        infer("NonMaxSuppression", 11, [], [boxes, scores]).gives("[0, 3]");
    }

    #[test]
    fn faults() {
        let (boxes, scores) = ("float[1, 6, 4]", "float[1, 2, 6]");
        infer("NonMaxSuppression", 11, [], ["float[1, 6, 5]", scores])
            .fails("dimension 2 of \"boxes\" of shape [1, 6, 5] is 5: it must be 4");
        infer("NonMaxSuppression", 11, [], [boxes, "float[1, 2, 5]"])
            .fails("dimension 1 of \"boxes\" of shape [1, 6, 4] is 6, and dimension 2 of \"scores\"");
        infer("NonMaxSuppression", 11, [], [boxes, "float[2, 6]"]).fails("\"scores\" has shape [2, 6] of rank 2");
        infer("NonMaxSuppression", 11, [int("center_point_box", 2)], [boxes, scores]).fails("center_point_box is 2");
    }
}
