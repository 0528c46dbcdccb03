//! ConvTranspose: each entry of an image spreads its filter over a larger one.
//! <https://onnx.ai/onnx/operators/onnx__ConvTranspose.html>

use crate::ops::prelude::*;

pub(super) const CONV_TRANSPOSE: Implementation = Implementation::missing("", "ConvTranspose", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let group = windows::one_or_more(facts, "group")?;
    let (Some(x), Some(w)) = (facts.ranked(0, 3..)?, facts.ranked(1, 3..)?) else { return Ok(()) };
    if x.len() != w.len() {
        return Err(facts.unequal_ranks(0, 1));
    }
    let ([batch, _, image @ ..], [_, of_each, ..]) = (x, w) else { return Ok(()) };
    let channels = facts.same_size((0, 1), (1, 0))?;
    if let Some(channels) = channels.fixed()
        && channels % group != 0
    {
        let text = format!("\"X\" has {channels} channels, which can't be divided into {group} groups");
        return Err(Error::input(text).parameter("X").axis(1).value(channels));
    }
    let filters = Dim::product([of_each, &Dim::of(group)]);
    if let Some([bias]) = facts.sizes(2)?
        && filters.both(bias).is_none()
    {
        let text = format!("\"B\" has {bias} numbers, but the output has {filters} channels: they must be equal");
        return Err(Error::input(text).parameter("B").axis(0));
    }
    let windows = Windows::of(facts, &windows::kernel_of(facts, 1, image.len())?)?;
    let sizes = match shape(facts, image.len())? {
        Some(shape) => shape,
        None => windows.covered(facts, image)?,
    };
    facts.give(0, [&[batch.clone(), filters], &*sizes].concat());
    Ok(())
}

/// The sizes in the attribute `output_shape`. In version 1 the batch and the channels may be before them.
fn shape(facts: &Inference<'_>, count: usize) -> Result<Option<Vec<Dim>>> {
    let given = facts.optional("output_shape", Node::ints)?;
    let sizes = match given {
        None | Some([]) => return Ok(None),
        Some([_, _, sizes @ ..]) if facts.version() < 11 && sizes.len() == count => sizes,
        Some(_) => &windows::list(facts, "output_shape", count, 0)?,
    };
    Ok(Some(sizes.iter().map(|size| Dim::of(*size)).collect()))
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, ints, string};

    #[test]
    fn shapes() {
        let (x, w) = ("float[N, 4, 3, W]", "float[4, 2, 3, 3]");
        infer("ConvTranspose", 11, [], [x, w]).gives("[N, 2, 5, W + 2]");
        infer("ConvTranspose", 22, [ints("strides", &[3, 2]), ints("pads", &[1, 2, 1, 2]), int("group", 2)], [x, w])
            .gives("[N, 4, 7, 2*W - 3]");
        infer("ConvTranspose", 1, [ints("strides", &[3, 2]), ints("output_padding", &[1, 1])], [x, w])
            .gives("[N, 2, 10, 2*W + 2]");
        infer("ConvTranspose", 11, [ints("dilations", &[2, 1])], [x, "float[4, M, 2, 1]", "float[M]"])
            .gives("[N, M, 5, W]");
        for same in ["SAME_UPPER", "SAME_LOWER"] {
            infer("ConvTranspose", 11, [string("auto_pad", same), ints("strides", &[2, 3])], [x, w])
                .gives("[N, 2, 6, 3*W]");
        }
        infer("ConvTranspose", 11, [ints("kernel_shape", &[3, 5])], [x, "float[4, 2, h, w]"]).gives("[N, 2, 5, W + 4]");
        infer("ConvTranspose", 11, [], [x, "float[4, M, h, 3]"]).gives("[N, M, ?, W + 2]");
    }

    #[test]
    fn given_shapes() {
        let (x, w) = ("float[N, 1, 3, 3]", "float[1, 2, 3, k]");
        infer("ConvTranspose", 11, [ints("output_shape", &[10, 8])], [x, w]).gives("[N, 2, 10, 8]");
        infer("ConvTranspose", 1, [ints("output_shape", &[1, 2, 10, 8])], [x, w]).gives("[N, 2, 10, 8]");
        infer("ConvTranspose", 11, [ints("output_shape", &[1, 2, 10, 8])], [x, w])
            .fails("output_shape has 4 numbers: 2 are needed");
    }

    #[test]
    fn faults() {
        let (x, w) = ("float[N, 3, 7, 7]", "float[3, 8, 3, 3]");
        infer("ConvTranspose", 11, [], [x, "float[8, 3, 3, 3]"])
            .fails("dimension 1 of \"X\" of shape [N, 3, 7, 7] is 3, and dimension 0 of \"W\"");
        infer("ConvTranspose", 11, [int("group", 2)], [x, w])
            .fails("\"X\" has 3 channels, which can't be divided into 2 groups");
        infer("ConvTranspose", 11, [int("group", 3)], [x, w, "float[8]"])
            .fails("\"B\" has 8 numbers, but the output has 24 channels");
        infer("ConvTranspose", 11, [ints("output_padding", &[1])], [x, w])
            .fails("output_padding has 1 numbers: 2 are needed");
        infer("ConvTranspose", 1, [], [x, "float[3, 8, 3]"]).fails("\"W\" has shape [3, 8, 3] of rank 3");
    }
}
