//! MelWeightMatrix: the weights of frequencies in the bands of the mel scale.
//! <https://onnx.ai/onnx/operators/onnx__MelWeightMatrix.html>

use super::frequencies;
use crate::ops::prelude::*;

pub(super) const MEL_WEIGHT_MATRIX: Implementation = Implementation::missing("", "MelWeightMatrix", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.give_type(0, facts.output_type("output_datatype")?);
    (0..5).try_for_each(|k| facts.single(k))?;
    facts.give(0, [frequencies(&facts.size(1)), facts.size(0)]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

    #[test]
    fn shapes_and_types() {
        let edges = ["int64", "float", "float"];
        infer("MelWeightMatrix", 17, [], ["{80}", "{400}", edges[0], edges[1], edges[2]]).gives("[201, 80]");
        infer("MelWeightMatrix", 17, [], ["{80}", "{N}", edges[0], edges[1], edges[2]]).gives("[floor((N)/2) + 1, 80]");
        infer("MelWeightMatrix", 17, [int("output_datatype", 10)], ["int64", "int32", edges[0], edges[1], edges[2]])
            .has_type("float16");
        infer("MelWeightMatrix", 17, [], ["{80}", "{400}", edges[0], "float[1, 1]", edges[2]])
            .fails("\"lower_edge_hertz\" has shape [1, 1]: one value is needed");
    }
}
