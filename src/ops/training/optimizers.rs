//! Adagrad, Adam and Momentum: tensors changed by their gradients, and 1 or 2 states of each.
//! <https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Adagrad.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Adam.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Momentum.html>

use crate::ops::prelude::*;

const DOMAIN: &str = "ai.onnx.preview.training";

pub(super) const ADAGRAD: Implementation = Implementation::missing(DOMAIN, "Adagrad", |facts| infer(facts, 1));
pub(super) const ADAM: Implementation = Implementation::missing(DOMAIN, "Adam", |facts| infer(facts, 2));
pub(super) const MOMENTUM: Implementation = Implementation::missing(DOMAIN, "Momentum", |facts| {
    facts.choice("mode", &[("nesterov", ()), ("standard", ())])?;
    infer(facts, 1)
});

/// After a rate and a count the inputs are all tensors, all gradients, and all first states, and so on; the outputs are all
/// tensors, and all first states, and so on.
fn infer(facts: &mut Inference<'_>, states: usize) -> Result<()> {
    let (inputs, groups) = (facts.input_count().saturating_sub(2), states + 2);
    if !inputs.is_multiple_of(groups) {
        let text = format!("there are {inputs} tensors after \"T\": a multiple of {groups} is needed");
        return Err(Error::model(text).parameter("inputs").size(inputs));
    }
    let count = inputs / groups;
    if facts.output_count() > count * (states + 1) {
        let (outputs, needed) = (facts.output_count(), count * (states + 1));
        let text = format!("there are {outputs} outputs: {inputs} tensors after \"T\" make {needed}");
        return Err(Error::model(text).parameter("outputs").size(outputs));
    }
    for k in 0..facts.output_count() {
        let from = 2 + if k < count { k } else { k + count };
        facts.give_type_of(k, from);
        facts.give_shape_of(k, from);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::DOMAIN;
    use crate::ops::testing::{float, infer_for, string};

    #[test]
    fn shapes_and_types() {
        let (adagrad, adam) = (format!("{DOMAIN}.Adagrad"), format!("{DOMAIN}.Adam"));
        let (x, g, h) = ("double[N, 3]", "double", "double[?, 3]");
        infer_for(2, &adagrad, 1, [], ["float", "int64", x, g, h]).gives_all(["[N, 3]", "[?, 3]"]);
        infer_for(2, &adagrad, 1, [], ["float", "int64", x, g, h]).has_type("float64");
        infer_for(4, &adagrad, 1, [], ["float", "int64", x, "float[2]", g, g, "float[a]", "float[b]"])
            .gives_all(["[N, 3]", "[2]", "[a]", "[b]"]);
        infer_for(3, &adam, 1, [], ["float", "int64", x, g, "float[v]", "float[h]"])
            .gives_all(["[N, 3]", "[v]", "[h]"]);
    }

    #[test]
    fn faults() {
        let (adam, momentum) = (format!("{DOMAIN}.Adam"), format!("{DOMAIN}.Momentum"));
        infer_for(3, &adam, 1, [], ["float", "int64", "float", "float", "float"])
            .fails("there are 3 tensors after \"T\": a multiple of 4 is needed");
        infer_for(4, &adam, 1, [], ["float", "int64", "float", "float", "float", "float"])
            .fails("there are 4 outputs: 4 tensors after \"T\" make 3");
        let given = [float("alpha", 0.9), float("beta", 1.0), float("norm_coefficient", 0.0), string("mode", "fast")];
        infer_for(2, &momentum, 1, given, ["float", "int64", "float", "float", "float"])
            .fails("mode is \"fast\": allowed nesterov, standard");
    }
}
