//! NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the negative logarithms of the probabilities of labels, or of
//! their softmax.
//! <https://onnx.ai/onnx/operators/onnx__NegativeLogLikelihoodLoss.html>,
//! <https://onnx.ai/onnx/operators/onnx__SoftmaxCrossEntropyLoss.html>

use crate::ops::prelude::*;

pub(super) const NEGATIVE_LOG_LIKELIHOOD_LOSS: Implementation =
    Implementation::missing("", "NegativeLogLikelihoodLoss", infer);
pub(super) const SOFTMAX_CROSS_ENTROPY_LOSS: Implementation =
    Implementation::missing("", "SoftmaxCrossEntropyLoss", infer);

/// The classes are dimension 1 of the scores. The labels have the other dimensions.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let each = facts.choice("reduction", &[("none", true), ("mean", false), ("sum", false)])?;
    facts.give_shape_of(1, 0);
    let (scores, mut losses) = (facts.ranked(0, 2..)?, facts.ranked(1, 1..)?.map(<[Dim]>::to_vec));
    if let Some([batch, classes, others @ ..]) = scores {
        let expected = [std::slice::from_ref(batch), others].concat();
        facts.needs(1, &expected)?;
        facts.needs(2, std::slice::from_ref(classes))?;
        let labels = losses.unwrap_or_else(|| expected.clone());
        let both = |(a, b): (&Dim, &Dim)| a.both(b).unwrap_or(Dim::Unknown);
        losses = Some(expected.iter().zip(&labels).map(both).collect());
    }
    facts.ranked(2, 1..=1)?;
    match losses {
        _ if !each => facts.give(0, []),
        Some(losses) => facts.give(0, losses),
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, string};

    #[test]
    fn shapes() {
        let (scores, labels) = ("float[N, 5, 3, ?]", "int64[N, ?, 2]");
        infer("NegativeLogLikelihoodLoss", 13, [], [scores, labels, "float[5]"]).gives("[]");
        infer("SoftmaxCrossEntropyLoss", 13, [string("reduction", "sum")], [scores, labels])
            .gives_all(["[]", "[N, 5, 3, ?]"]);
        infer("SoftmaxCrossEntropyLoss", 12, [], ["float", "int32"]).gives_all(["[]", ""]);
        let none = [string("reduction", "none")];
        infer("NegativeLogLikelihoodLoss", 22, none.clone(), [scores, labels]).gives("[N, 3, 2]");
        infer("NegativeLogLikelihoodLoss", 12, none.clone(), [scores, "int32"]).gives("[N, 3, ?]");
        infer("NegativeLogLikelihoodLoss", 12, none.clone(), ["float", labels]).gives("[N, ?, 2]");
        infer("NegativeLogLikelihoodLoss", 12, none, ["float", "int64"]).gives("");
    }

    #[test]
    fn faults() {
        let scores = "float[2, 5, 3]";
        infer("SoftmaxCrossEntropyLoss", 13, [], [scores, "int64[2, 5]"])
            .fails("\"labels\" has shape [2, 5]: [2, 3] is needed");
        infer("SoftmaxCrossEntropyLoss", 13, [], [scores, "int64[2]"]).fails("[2, 3] is needed");
        infer("NegativeLogLikelihoodLoss", 13, [], [scores, "int64[2, 3]", "float[3]"])
            .fails("\"weight\" has shape [3]: [5] is needed");
        infer("NegativeLogLikelihoodLoss", 13, [], ["float", "int64", "float[3, 1]"]).fails("allowed rank 1");
        infer("NegativeLogLikelihoodLoss", 13, [], ["float[5]", "int64"]).fails("allowed ranks from 2 on");
        infer("NegativeLogLikelihoodLoss", 13, [string("reduction", "max")], [scores, "int64"])
            .fails("reduction is \"max\": allowed none, mean, sum");
    }
}
