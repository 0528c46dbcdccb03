//! SVMClassifier and SVMRegressor: support vector machines.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_SVMClassifier.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_SVMRegressor.html>

use super::attributes::{check_post_transform, equally_many, examples, labels, len};
use super::missing;
use crate::ops::prelude::*;

pub(super) const SVM_CLASSIFIER: Implementation = missing("SVMClassifier", infer_classes);
pub(super) const SVM_REGRESSOR: Implementation = missing("SVMRegressor", infer_targets);

/// The text wants a score for each class; but raw scores are those of pairs of classes in engines.
fn infer_classes(facts: &mut Inference<'_>) -> Result<()> {
    check(facts)?;
    equally_many(facts, &["prob_a", "prob_b"])?;
    let (label, classes) = labels(facts, "classlabels_ints", "classlabels_strings")?;
    let scores = if len(facts, "prob_a") > 0 { Dim::Fixed(classes) } else { Dim::Unknown };
    facts.give_type(0, label);
    facts.give(0, [examples(facts)]);
    facts.give(1, [examples(facts), scores]);
    Ok(())
}

/// The text doesn't say how many targets there are.
fn infer_targets(facts: &mut Inference<'_>) -> Result<()> {
    check(facts)?;
    facts.give(0, [examples(facts), Dim::Unknown]);
    Ok(())
}

fn check(facts: &Inference<'_>) -> Result<()> {
    facts.ranked(0, 1..=2)?;
    facts.choice("kernel_type", &["LINEAR", "POLY", "RBF", "SIGMOID"].map(|name| (name, ())))?;
    check_post_transform(facts)
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, ints, string};

    #[test]
    fn classifiers() {
        let name = "ai.onnx.ml.SVMClassifier";
        let labels = || ints("classlabels_ints", &[5, 6, 7]);
        let floats = |name: &'static str, count: usize| (name, Attribute::Floats(vec![1.0; count]));
        infer(name, 1, [labels()], ["float[N, 3]"]).gives_all(["[N]", "[N, ?]"]);
        infer(name, 1, [labels()], ["float[N, 3]"]).has_type("int64");
        infer(name, 1, [labels(), floats("prob_a", 3), floats("prob_b", 3)], ["float"]).gives_all(["[?]", "[?, 3]"]);
        infer(name, 1, [labels(), floats("prob_a", 3), floats("prob_b", 1)], ["float"])
            .fails("prob_b has 1 entries, and prob_a has 3");
        infer(name, 1, [labels(), string("kernel_type", "linear")], ["float"])
            .fails("kernel_type is \"linear\": allowed LINEAR, POLY, RBF, SIGMOID");
    }

    #[test]
    fn regressors() {
        infer("ai.onnx.ml.SVMRegressor", 1, [], ["float[N, 3]"]).gives("[N, ?]");
        infer("ai.onnx.ml.SVMRegressor", 1, [], ["float[N, 3, 1]"]).fails("allowed ranks 1 to 2");
    }
}
