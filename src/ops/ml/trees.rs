//! TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor: sums of the leaves that decisions lead to.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleClassifier.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleRegressor.html>

use super::attributes::{check_post_transform, equally_many, labels, len};
use super::missing;
use crate::ops::prelude::*;

pub(super) const TREE_ENSEMBLE: Implementation = missing("TreeEnsemble", infer);
pub(super) const TREE_ENSEMBLE_CLASSIFIER: Implementation = missing("TreeEnsembleClassifier", infer_classes);
pub(super) const TREE_ENSEMBLE_REGRESSOR: Implementation = missing("TreeEnsembleRegressor", infer_targets);

/// What is known of each node. A node that tests for members has no use for a split.
const NODES: [&str; 8] = [
    "nodes_modes",
    "nodes_featureids",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
    "nodes_hitrates",
    "nodes_missing_value_tracks_true",
];

/// The same of older versions.
const OLD_NODES: [&str; 11] = [
    "nodes_modes",
    "nodes_treeids",
    "nodes_nodeids",
    "nodes_featureids",
    "nodes_values",
    "nodes_values_as_tensor",
    "nodes_truenodeids",
    "nodes_falsenodeids",
    "nodes_hitrates",
    "nodes_hitrates_as_tensor",
    "nodes_missing_value_tracks_true",
];

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    equally_many(facts, &NODES)?;
    equally_many(facts, &["leaf_targetids", "leaf_weights"])?;
    give_targets(facts)
}

fn infer_classes(facts: &mut Inference<'_>) -> Result<()> {
    check_old(facts, ["class_ids", "class_treeids", "class_nodeids", "class_weights", "class_weights_as_tensor"])?;
    let (label, classes) = labels(facts, "classlabels_int64s", "classlabels_strings")?;
    let batch = facts.sizes::<2>(0)?.map_or(Dim::Unknown, |[batch, _]| batch.clone());
    facts.give_type(0, label);
    facts.give(0, std::slice::from_ref(&batch));
    facts.give(1, [batch, Dim::Fixed(classes)]);
    Ok(())
}

fn infer_targets(facts: &mut Inference<'_>) -> Result<()> {
    check_old(facts, ["target_ids", "target_treeids", "target_nodeids", "target_weights", "target_weights_as_tensor"])?;
    facts.choice("aggregate_function", &["AVERAGE", "SUM", "MIN", "MAX"].map(|name| (name, ())))?;
    give_targets(facts)
}

fn give_targets(facts: &mut Inference<'_>) -> Result<()> {
    let targets = facts.optional("n_targets", Node::int)?;
    let batch = facts.sizes::<2>(0)?.map_or(Dim::Unknown, |[batch, _]| batch.clone());
    facts.give(0, [batch, targets.map_or(Dim::Unknown, Dim::of)]);
    Ok(())
}

/// Checks the lists of nodes and votes. Version 3 came with doubles, in tensors that replace lists of floats.
fn check_old(facts: &Inference<'_>, votes: [&str; 5]) -> Result<()> {
    check_post_transform(facts)?;
    let tensor = |name: &str| format!("{name}_as_tensor");
    let replaced = ["base_values", "nodes_values", "nodes_hitrates", votes[3]];
    if let Some(list) = replaced.into_iter().find(|list| len(facts, list) > 0 && len(facts, &tensor(list)) > 0) {
        let text = format!("{list} and {} are both given: allowed is one", tensor(list));
        return Err(Error::model(text).attribute(list));
    }
    equally_many(facts, &OLD_NODES)?;
    equally_many(facts, &votes)
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, string, strings};
    use crate::tensor::Tensor;

    fn doubles(name: &str, count: usize) -> (&str, Attribute) {
        (name, Attribute::Tensor(Tensor::from_elements(&[count], vec![1f64; count]).unwrap()))
    }

    #[test]
    fn ensembles() {
        let name = "ai.onnx.ml.TreeEnsemble";
        infer(name, 5, [int("n_targets", 2)], ["double[N, 3]"]).gives("[N, 2]");
        infer(name, 5, [], ["double"]).gives("[?, ?]");
        infer(name, 5, [ints("nodes_featureids", &[1]), ints("nodes_trueleafs", &[1, 2])], ["double"])
            .fails("nodes_trueleafs has 2 entries, and nodes_featureids has 1: they must be equally many");
        infer(name, 5, [ints("leaf_targetids", &[1]), doubles("leaf_weights", 2)], ["double"])
            .fails("leaf_weights has 2 entries, and leaf_targetids has 1");
        infer(name, 5, [], ["double[3]"]).fails("allowed rank 2");
    }

    #[test]
    fn classifiers() {
        let name = "ai.onnx.ml.TreeEnsembleClassifier";
        infer(name, 1, [strings("classlabels_strings", &["a", "b"])], ["float[N, 3]"]).gives_all(["[N]", "[N, 2]"]);
        infer(name, 3, [ints("classlabels_int64s", &[5])], ["float"]).gives_all(["[?]", "[?, 1]"]);
        infer(name, 3, [ints("classlabels_int64s", &[5])], ["float"]).has_type("int64");
        infer(name, 3, [], ["float"]).fails("neither classlabels_int64s nor classlabels_strings is given");
        infer(name, 3, [ints("class_ids", &[5]), doubles("class_weights_as_tensor", 2)], ["float"])
            .fails("class_weights_as_tensor has 2 entries, and class_ids has 1");
    }

    #[test]
    fn regressors() {
        let name = "ai.onnx.ml.TreeEnsembleRegressor";
        infer(name, 3, [int("n_targets", 4)], ["int32[N, 3]"]).gives("[N, 4]");
        infer(name, 1, [], ["int32[N, 3]"]).gives("[N, ?]");
        infer(name, 3, [("base_values", Attribute::Floats(vec![1.0])), doubles("base_values_as_tensor", 1)], ["float"])
            .fails("base_values and base_values_as_tensor are both given: allowed is one");
        infer(name, 1, [string("aggregate_function", "MEAN")], ["float"])
            .fails("aggregate_function is \"MEAN\": allowed AVERAGE, SUM, MIN, MAX");
    }
}
