//! Unique: the different elements, or the different slices along an axis, their first indices and numbers.
//! <https://onnx.ai/onnx/operators/onnx__Unique.html>

use crate::ops::prelude::*;

pub(super) const UNIQUE: Implementation = Implementation::missing("", "Unique", infer);

/// Only the run knows how many are different. Each of all has an inverse index.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.flag("sorted")?;
    let x = facts.dims(0);
    let (dims, all) = match (facts.attribute("axis"), x) {
        (None, _) => (Some(vec![Dim::Unknown]), x.map_or(Dim::Unknown, Dim::product)),
        (Some(_), None) => (None, Dim::Unknown),
        (Some(_), Some(x)) => {
            let (mut dims, at) = (x.to_vec(), facts.place("axis", x.len())?);
            let all = dims.get_mut(at).map(|dim| std::mem::replace(dim, Dim::Unknown));
            (Some(dims), all.unwrap_or(Dim::Unknown))
        }
    };
    if let Some(dims) = dims {
        facts.give(0, dims);
    }
    facts.give(1, [Dim::Unknown]);
    facts.give(2, [all]);
    facts.give(3, [Dim::Unknown]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes() {
        infer("Unique", 11, [], ["float[N, 3]"]).gives_all(["[?]", "[?]", "[3*N]", "[?]"]);
        infer("Unique", 28, [int("axis", -1)], ["string[N, 3]"]).gives_all(["[N, ?]", "[?]", "[3]", "[?]"]);
        infer("Unique", 11, [], ["float"]).gives_all(["[?]", "[?]", "[?]", "[?]"]);
        infer("Unique", 11, [int("axis", 0)], ["float"]).gives_all(["", "[?]", "[?]", "[?]"]);
        infer("Unique", 11, [int("axis", 2)], ["float[N, 3]"]).fails("axis 2 is out of range: allowed -2..=1");
        infer("Unique", 11, [int("sorted", 2)], ["float"]).fails("sorted is 2: allowed 0, 1");
    }
}
