//! TopK: the greatest or least elements along an axis, and their indices.
//! <https://onnx.ai/onnx/operators/onnx__TopK.html>

use crate::ops::prelude::*;

pub(super) const TOP_K: Implementation = Implementation::missing("", "TopK", infer);

/// The number of elements became an input with version 10; the least elements came with version 11.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    if facts.version() >= 11 {
        facts.flag("largest")?;
        facts.flag("sorted")?;
    }
    let attribute = facts.version() < 10;
    let number = if attribute { Some(Formula::from(facts.int("k")?)) } else { facts.number(1) };
    if !attribute {
        facts.needs(1, &[Dim::Fixed(1)])?;
    }
    let Some(x) = facts.ranked(0, 1..)? else { return Ok(()) };
    let at = facts.place("axis", x.len())?;
    let mut dims = x.to_vec();
    if let Some(dim) = dims.get_mut(at) {
        if let Some(count) = number.as_ref().and_then(Formula::number)
            && (count < 0 || dim.fixed().is_some_and(|size| count > size))
        {
            let name = if attribute { "k" } else { "K" };
            let text = format!("{name} is {count}: axis {at} of \"X\" of shape {} has {dim} entries", DimsText(x));
            let error = if attribute { Error::model(text).attribute(name) } else { Error::input(text).parameter(name) };
            return Err(error.axis(at as i64).value(count));
        }
        *dim = number.map_or(Dim::Unknown, |number| number.dim());
    }
    facts.give(0, &*dims);
    facts.give(1, dims);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes() {
        infer("TopK", 1, [int("k", 2)], ["float[N, 3]"]).gives_all(["[N, 2]", "[N, 2]"]);
        infer("TopK", 10, [int("axis", 0)], ["float[N, 3]", "{5}"]).gives_all(["[5, 3]", "[5, 3]"]);
        infer("TopK", 11, [], ["float[N, C]", "{C}"]).gives_all(["[N, C]", "[N, C]"]);
        infer("TopK", 24, [int("axis", -2)], ["float[N, 3]", "int64[1]"]).gives_all(["[?, 3]", "[?, 3]"]);
        infer("TopK", 24, [], ["float", "{5}"]).gives("");
    }

    #[test]
    fn faults() {
        infer("TopK", 11, [], ["float[N, 3]", "{4}"]).fails("K is 4: axis 1 of \"X\" of shape [N, 3] has 3 entries");
        infer("TopK", 1, [int("k", -1)], ["float[N, C]"])
            .fails("k is -1: axis 1 of \"X\" of shape [N, C] has C entries");
        infer("TopK", 11, [int("axis", 2)], ["float[N, 3]", "{4}"]).fails("axis 2 is out of range: allowed -2..=1");
        infer("TopK", 11, [], ["float[N, 3]", "{1, 2}"]).fails("\"K\" has shape [2]: [1] is needed");
        infer("TopK", 11, [], ["float[]", "{1}"]).fails("allowed ranks from 1 on");
        infer("TopK", 11, [int("sorted", 2)], ["float", "{1}"]).fails("sorted is 2: allowed 0, 1");
    }
}
