//! MaxUnpool: each entry at the place where MaxPool found it, and zeros elsewhere.
//! <https://onnx.ai/onnx/operators/onnx__MaxUnpool.html>

use crate::ops::prelude::*;

pub(super) const MAX_UNPOOL: Implementation = Implementation::missing("", "MaxUnpool", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.sizes::<1>(2)?;
    let (x, shape) = (facts.ranked(0, 3..)?, facts.listed(2));
    let Some([_, _, image @ ..]) = x else {
        shape.into_iter().for_each(|shape| facts.give(0, shape));
        return Ok(());
    };
    let rank = image.len() + 2;
    if facts.dims(1).is_some_and(|places| places.len() != rank) {
        return Err(facts.unequal_ranks(0, 1));
    }
    let same: Vec<Dim> = (0..rank).map(|d| facts.same_size((0, d), (1, d))).collect::<Result<_>>()?;
    let windows = Windows::of(facts, &windows::kernel(facts, image.len())?)?;
    let dims = match (shape, &*same) {
        (Some(shape), _) if shape.len() != rank => {
            let text =
                format!("output_shape has {} numbers, but \"X\" has rank {rank}: they must be equal", shape.len());
            return Err(Error::input(text).parameter("output_shape").size(shape.len()));
        }
        (Some(shape), _) => shape,
        (None, [batch, channels, image @ ..]) if facts.input(2).is_none() => {
            [&[batch.clone(), channels.clone()], &*windows.covered(facts, image)?].concat()
        }
        _ => vec![Dim::Unknown; rank],
    };
    facts.give(0, dims);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints};

    #[test]
    fn shapes() {
        let (x, places) = ("float[N, C, 2, W]", "int64[N, C, 2, ?]");
        let attributes = || [ints("kernel_shape", &[2, 3]), ints("strides", &[2, 2])];
        infer("MaxUnpool", 9, attributes(), [x, places]).gives("[N, C, 4, 2*W + 1]");
        infer("MaxUnpool", 11, attributes(), ["float[N, C, ?, 2]", places]).gives("[N, C, 4, 5]");
        infer("MaxUnpool", 22, [ints("kernel_shape", &[3, 3]), ints("pads", &[1, 0, 1, 0])], [x, places])
            .gives("[N, C, 2, W + 2]");
        infer("MaxUnpool", 11, attributes(), [x, places, "{1, 1, H, 5}"]).gives("[1, 1, H, 5]");
        infer("MaxUnpool", 11, attributes(), [x, places, "int64[r]"]).gives("[?, ?, ?, ?]");
        infer("MaxUnpool", 11, attributes(), ["float", "int64", "int64[4]"]).gives("[?, ?, ?, ?]");
    }

    #[test]
    fn faults() {
        let (x, places) = ("float[1, 1, 2, 2]", "int64[1, 1, 2, 2]");
        let kernel = || [ints("kernel_shape", &[2, 2])];
        infer("MaxUnpool", 9, kernel(), [x, "int64[1, 1, 2, 3]"]).fails(
            "dimension 3 of \"X\" of shape [1, 1, 2, 2] is 2, and dimension 3 of \"I\" of shape [1, 1, 2, 3] is 3",
        );
        infer("MaxUnpool", 9, kernel(), [x, "int64[1, 2, 2]"]).fails("\"I\" has shape [1, 2, 2] of rank 3");
        infer("MaxUnpool", 9, kernel(), [x, places, "{4, 4}"])
            .fails("output_shape has 2 numbers, but \"X\" has rank 4");
        infer("MaxUnpool", 9, [ints("kernel_shape", &[2])], [x, places]).fails("2 are needed");
    }
}
