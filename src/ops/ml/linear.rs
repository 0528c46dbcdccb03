//! LinearClassifier and LinearRegressor: weighted sums of features.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_LinearClassifier.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_LinearRegressor.html>

use super::attributes::{check_post_transform, examples, labels, len};
use super::missing;
use crate::ops::prelude::*;

pub(super) const LINEAR_CLASSIFIER: Implementation = missing("LinearClassifier", infer_classes);
pub(super) const LINEAR_REGRESSOR: Implementation = missing("LinearRegressor", infer_targets);

fn infer_classes(facts: &mut Inference<'_>) -> Result<()> {
    check_post_transform(facts)?;
    let (label, classes) = labels(facts, "classlabels_ints", "classlabels_strings")?;
    facts.ranked(0, 1..=2)?;
    facts.give_type(0, label);
    facts.give(0, [examples(facts)]);
    facts.give(1, [examples(facts), Dim::Fixed(classes)]);
    Ok(())
}

fn infer_targets(facts: &mut Inference<'_>) -> Result<()> {
    check_post_transform(facts)?;
    let (targets, intercepts) = (facts.int("targets")?, len(facts, "intercepts"));
    if intercepts > 0 && usize::try_from(targets) != Ok(intercepts) {
        let text = format!("intercepts has {intercepts} entries: targets is {targets}");
        return Err(Error::model(text).attribute("intercepts").size(intercepts));
    }
    facts.ranked(0, 1..=2)?;
    facts.give(0, [examples(facts), Dim::of(targets)]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, string, strings};

    fn floats(name: &str, count: usize) -> (&str, Attribute) {
        (name, Attribute::Floats(vec![0.0; count]))
    }

    #[test]
    fn classifiers() {
        let (name, weights) = ("ai.onnx.ml.LinearClassifier", || floats("coefficients", 6));
        let given = [weights(), ints("classlabels_ints", &[5, 6])];
        infer(name, 1, given.clone(), ["float[N, 3]"]).gives_all(["[N]", "[N, 2]"]);
        infer(name, 1, given.clone(), ["float[N, 3]"]).has_type("int64");
        infer(name, 1, given.clone(), ["float[3]"]).gives_all(["[1]", "[1, 2]"]);
        infer(name, 1, [weights(), strings("classlabels_strings", &["a"])], ["float"]).has_type("string");
        infer(name, 1, given, ["float[N, 3, 3]"]).fails("allowed ranks 1 to 2");
        infer(name, 1, [weights()], ["float"]).fails("neither classlabels_ints nor classlabels_strings is given");
    }

    #[test]
    fn regressors() {
        let name = "ai.onnx.ml.LinearRegressor";
        infer(name, 1, [], ["int32[N, 3]"]).gives("[N, 1]");
        infer(name, 1, [int("targets", 2), floats("intercepts", 2)], ["float"]).gives("[?, 2]");
        infer(name, 1, [floats("intercepts", 2)], ["float"]).fails("intercepts has 2 entries: targets is 1");
        infer(name, 1, [string("post_transform", "EXP")], ["float"]).fails("post_transform is \"EXP\": allowed NONE, ");
    }
}
