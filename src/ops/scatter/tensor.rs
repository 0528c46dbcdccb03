//! TensorScatter: a cache with the entries of a sequence written at an index of each sample.
//! <https://onnx.ai/onnx/operators/onnx__TensorScatter.html>

use crate::ops::prelude::*;

pub(super) const TENSOR_SCATTER: Implementation = Implementation::missing("", "TensorScatter", infer);

/// The update may be shorter than the cache along the axis, which is not that of the batch.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.choice("mode", &[("linear", ()), ("circular", ())])?;
    let Some(cache) = facts.ranked(0, 2..)? else { return Ok(()) };
    let axis = facts.int("axis")?;
    let at = facts.place("axis", cache.len())?;
    if at == 0 {
        let text = format!("axis {axis} is that of the batch of \"past_cache\" of shape {}", DimsText(cache));
        return Err(Error::model(text).attribute("axis").axis(axis).value(axis));
    }
    let mut dims = cache.to_vec();
    if let (Some(dim), Some(update)) = (dims.get_mut(at), facts.dims(1).and_then(|update| update.get(at)))
        && let (Some(most), Some(size)) = (dim.fixed(), update.fixed())
    {
        if size > most {
            let text = format!("\"update\" has {size} entries along axis {axis}, and \"past_cache\" has {most}");
            return Err(Error::input(text).parameter("update").axis(axis).size(size as usize));
        }
        *dim = Dim::Unknown;
    }
    facts.needs(1, &dims)?;
    facts.needs(2, cache.get(..1).unwrap_or_default())?;
    facts.give(0, cache);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, string};

    #[test]
    fn shapes() {
        let cache = "float[N, H, 64, 8]";
        infer("TensorScatter", 24, [], [cache, "float[N, H, T, 8]", "int64[N]"]).gives("[N, H, 64, 8]");
        infer("TensorScatter", 24, [int("axis", 1)], ["float[N, T]", "float"]).gives("[N, T]");
        infer("TensorScatter", 24, [], ["float", cache]).gives("");
    }

    #[test]
    fn faults() {
        let cache = "float[N, H, 64, 8]";
        infer("TensorScatter", 24, [], [cache, "float[N, H, 65, 8]"])
            .fails("\"update\" has 65 entries along axis -2, and \"past_cache\" has 64");
        infer("TensorScatter", 24, [], [cache, "float[N, H, 4, 9]"])
            .fails("\"update\" has shape [N, H, 4, 9]: [N, H, ?, 8] is needed");
        infer("TensorScatter", 24, [], ["float[2, 64, 8]", "float", "int64[3]"]).fails("[3]: [2] is needed");
        infer("TensorScatter", 24, [int("axis", -4)], [cache, "float"]).fails("axis -4 is that of the batch");
        infer("TensorScatter", 24, [string("mode", "ring")], [cache, "float"])
            .fails("mode is \"ring\": allowed linear, circular");
    }
}
