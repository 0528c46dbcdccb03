//! GridSample: an image sampled at the places that a grid lists.
//! <https://onnx.ai/onnx/operators/onnx__GridSample.html>

use crate::ops::prelude::*;

pub(super) const GRID_SAMPLE: Implementation = Implementation::missing("", "GridSample", infer);

/// Up to version 16 images have two dimensions.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.choice("padding_mode", &[("zeros", ()), ("border", ()), ("reflection", ())])?;
    let (x, grid) = if facts.version() < 20 {
        (facts.ranked(0, 4..=4)?, facts.ranked(1, 4..=4)?)
    } else {
        (facts.ranked(0, 3..)?, facts.ranked(1, 3..)?)
    };
    let Some(rank) = x.or(grid).map(<[Dim]>::len) else { return Ok(()) };
    if grid.is_some_and(|grid| grid.len() != rank) {
        return Err(facts.unequal_ranks(0, 1));
    }
    facts.needs_size(1, rank - 1, rank - 2)?;
    let batch = facts.same_size((0, 0), (1, 0))?;
    let channels = x.and_then(|x| x.get(1)).unwrap_or(&Dim::Unknown).clone();
    let places = match grid {
        Some([_, places @ .., _]) => places.to_vec(),
        _ => vec![Dim::Unknown; rank - 2],
    };
    facts.give(0, [&[batch, channels], &*places].concat());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, string};

    #[test]
    fn shapes() {
        infer("GridSample", 16, [], ["float[N, C, H, W]", "float[N, h, 6, 2]"]).gives("[N, C, h, 6]");
        infer("GridSample", 20, [], ["float[?, C, D, H, W]", "float[2, d, h, w, 3]"]).gives("[2, C, d, h, w]");
        infer("GridSample", 22, [], ["float[N, C, L]", "float"]).gives("[N, C, ?]");
        infer("GridSample", 22, [], ["float", "float[N, h, w, 2]"]).gives("[N, ?, h, w]");
        infer("GridSample", 22, [], ["float", "float"]).gives("");
    }

    #[test]
    fn faults() {
        let x = "float[1, 1, 4, 4]";
        infer("GridSample", 16, [], ["float[1, 1, 4, 4, 4]", "float[1, 2, 2, 2, 3]"]).fails("allowed rank 4");
        infer("GridSample", 20, [], [x, "float[1, 2, 2, 2, 3]"]).fails("of rank 5, and \"X\"");
        infer("GridSample", 20, [], [x, "float[1, 2, 2, 3]"])
            .fails("dimension 3 of \"grid\" of shape [1, 2, 2, 3] is 3: it must be 2");
        infer("GridSample", 20, [], [x, "float[2, 2, 2, 2]"]).fails("dimension 0 of \"grid\"");
        infer("GridSample", 20, [string("padding_mode", "zero")], [x, x]).fails("padding_mode is \"zero\"");
    }
}
