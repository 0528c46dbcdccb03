//! Col2Im: blocks, a column each, added up into an image.
//! <https://onnx.ai/onnx/operators/onnx__Col2Im.html>

use crate::ops::prelude::*;

pub(super) const COL2IM: Implementation = Implementation::missing("", "Col2Im", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let input = facts.sizes::<3>(0)?;
    facts.sizes::<1>(1)?;
    facts.sizes::<1>(2)?;
    facts.same_size((1, 0), (2, 0))?;
    let block = facts.known(2);
    let image = match (facts.listed(1), facts.listed(2)) {
        (Some(image), _) => image,
        (None, Some(block)) => vec![Dim::Unknown; block.len()],
        (None, None) => return Ok(()),
    };
    let [batch, rows, count] = input.cloned().unwrap_or([Dim::Unknown, Dim::Unknown, Dim::Unknown]);
    let mut channels = Dim::Unknown;
    if let Some(block) = block {
        if let Some(k) = block.iter().position(|size| *size < 1) {
            let error = Error::input(format!("block_shape[{k}] must be at least 1")).parameter("block_shape");
            return Err(error.position(vec![k]));
        }
        let sizes: Vec<Dim> = block.iter().map(|size| Dim::of(*size)).collect();
        channels = Dim::quotient(std::slice::from_ref(&rows), &sizes);
        if let (Some(rows), Some(entries), Dim::Unknown) = (rows.fixed(), Dim::product(&sizes).fixed(), &channels) {
            let text =
                format!("dimension 1 of \"input\" is {rows}, not a multiple of the {entries} entries of a block");
            return Err(Error::input(text).parameter("input").axis(1).value(rows));
        }
        let blocks =
            Dim::product(&Windows::of(facts, &block.iter().copied().map(Some).collect::<Vec<_>>())?.counts(&image));
        if blocks.both(&count).is_none() {
            let text = format!("dimension 2 of \"input\" is {count}, but the image has {blocks} blocks");
            return Err(Error::input(text).parameter("input").axis(2));
        }
    }
    facts.give(0, [&[batch, channels], &*image].concat());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints};

    #[test]
    fn shapes() {
        infer("Col2Im", 18, [], ["float[N, 10, 5]", "{5, 5}", "{1, 5}"]).gives("[N, 2, 5, 5]");
        infer("Col2Im", 18, [ints("strides", &[2, 2])], ["float[1, 9, 4]", "{5, 5}", "{3, 3}"]).gives("[1, 1, 5, 5]");
        infer("Col2Im", 18, [], ["float[N, 6, L]", "{H, W}", "{2, 3}"]).gives("[N, 1, H, W]");
        infer("Col2Im", 18, [], ["float[N, C, L]", "int64[3]", "int64[b]"]).gives("[N, ?, ?, ?, ?]");
        infer("Col2Im", 18, [], ["float", "int64[n]", "{1, 1, 5}"]).gives("[?, ?, ?, ?, ?]");
    }

    #[test]
    fn faults() {
        infer("Col2Im", 18, [], ["float[N, 10, 4]", "{5, 5}", "{1, 5}"])
            .fails("dimension 2 of \"input\" is 4, but the image has 5 blocks");
        infer("Col2Im", 18, [], ["float[N, 9, 5]", "{5, 5}", "{1, 5}"])
            .fails("dimension 1 of \"input\" is 9, not a multiple of the 5 entries of a block");
        infer("Col2Im", 18, [], ["float[N, 9, 5]", "{5, 5}", "{0, 5}"]).fails("block_shape[0] must be at least 1");
        infer("Col2Im", 18, [], ["float[N, 9, 5]", "{5, 5}", "{5}"]).fails("dimension 0 of \"block_shape\"");
        infer("Col2Im", 18, [ints("strides", &[1])], ["float[N, 5, 5]", "{5, 5}", "{1, 5}"]).fails("2 are needed");
    }
}
