//! Multinomial: samples of classes, by the unnormalized logarithms of their probabilities.
//! <https://onnx.ai/onnx/operators/onnx__Multinomial.html>

use crate::ops::prelude::*;

pub(super) const MULTINOMIAL: Implementation = Implementation::missing("", "Multinomial", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.give_type(0, facts.output_type("dtype")?);
    let count = facts.int("sample_size")?;
    let samples = usize::try_from(count).map(Dim::Fixed).map_err(|_| {
        Error::model(format!("sample_size is {count}: a number is needed")).attribute("sample_size").value(count)
    })?;
    let batch = facts.sizes::<2>(0)?.map_or(Dim::Unknown, |[batch, _]| batch.clone());
    facts.give(0, [batch, samples]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes_and_types() {
        infer("Multinomial", 7, [int("sample_size", 4)], ["float[N, 3]"]).gives("[N, 4]");
        infer("Multinomial", 22, [], ["float"]).gives("[?, 1]");
        infer("Multinomial", 7, [], ["float"]).has_type("int32");
        infer("Multinomial", 22, [int("dtype", 7)], ["float"]).has_type("int64");
    }

    #[test]
    fn faults() {
        infer("Multinomial", 7, [int("dtype", 1)], ["float"]).fails("dtype asks for float32: allowed int32, int64");
        infer("Multinomial", 7, [int("sample_size", -1)], ["float"]).fails("sample_size is -1: a number is needed");
        infer("Multinomial", 7, [], ["float[3]"]).fails("\"input\" has shape [3] of rank 1: allowed rank 2");
    }
}
