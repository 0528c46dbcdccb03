//! TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor: sums of the leaves that decisions lead to.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleClassifier.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleRegressor.html>

use super::attributes::{equally_many, len};
use super::entry;
use super::forest::{Votes, decoded, old};
use super::numbers::doubles;
use super::scores::{Classes, TRANSFORMS, both, targets};
use crate::ops::prelude::*;
use kernels::scores::Transform;
use kernels::trees::{Aggregate, Forest, Packed, Poll, Rows};

pub(super) const TREE_ENSEMBLE: Implementation = entry("TreeEnsemble", &[5], load);
pub(super) const TREE_ENSEMBLE_CLASSIFIER: Implementation = entry("TreeEnsembleClassifier", &[1, 3], load_classes);
pub(super) const TREE_ENSEMBLE_REGRESSOR: Implementation = entry("TreeEnsembleRegressor", &[1, 3], load_targets);

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

/// `Y[n, t] = transform(aggregate of the votes of all trees for t + base_values[t])`, in double precision and rounded once. NaN
/// goes where `nodes_missing_value_tracks_true` says, whatever the mode.
#[derive(Debug)]
struct TreeEnsemble {
    trees: Trees,
    targets: usize,
    /// The output has the type of the input. It is of floats up to version 3.
    like_input: bool,
}

/// The same, with a score for each class, and the label of the greatest one. Where all votes are for the first of two classes,
/// they are scores of the second one, as in engines: the first has the complement to 1 if no weight is negative and there is
/// no transform, and the negative otherwise. The text doesn't say.
#[derive(Debug)]
struct TreeEnsembleClassifier {
    trees: Trees,
    classes: Classes,
    /// All votes are for the first of two classes. Whether they are probabilities.
    one: Option<bool>,
}

#[derive(Debug)]
struct Trees {
    forest: Packed,
    aggregate: Aggregate,
    base: Vec<f64>,
    transform: Transform,
}

const AGGREGATES: [(&str, Aggregate); 4] =
    [("AVERAGE", Aggregate::Average), ("SUM", Aggregate::Sum), ("MIN", Aggregate::Min), ("MAX", Aggregate::Max)];

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    equally_many(node, &NODES)?;
    equally_many(node, &["leaf_targetids", "leaf_weights"])?;
    let (targets, forest) = (target_count(node, "leaf_targetids")?, decoded(node)?);
    let trees = Trees::of(node, forest, targets, "leaf_targetids")?;
    let (aggregate, transform) =
        (by_number(node, "aggregate_function", &AGGREGATES)?, by_number(node, "post_transform", &TRANSFORMS)?);
    Ok(Box::new(TreeEnsemble { trees: Trees { aggregate, transform, ..trees }, targets, like_input: true }))
}

fn load_targets(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let votes = Votes {
        ids: "target_ids",
        trees: "target_treeids",
        nodes: "target_nodeids",
        weights: "target_weights",
        tensor: "target_weights_as_tensor",
    };
    check_old(node, votes)?;
    let targets = target_count(node, votes.ids)?;
    let trees = Trees::of(node, old(node, votes)?, targets, votes.ids)?;
    let aggregate = node.choice("aggregate_function", &AGGREGATES)?;
    let base = base(node, &[0, targets])?;
    Ok(Box::new(TreeEnsemble {
        trees: Trees { aggregate, base, transform: node.choice("post_transform", &TRANSFORMS)?, ..trees },
        targets,
        like_input: false,
    }))
}

fn load_classes(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let votes = Votes {
        ids: "class_ids",
        trees: "class_treeids",
        nodes: "class_nodeids",
        weights: "class_weights",
        tensor: "class_weights_as_tensor",
    };
    check_old(node, votes)?;
    let classes = Classes::of(node, ["classlabels_int64s", "classlabels_strings"])?;
    let count = classes.labels.len();
    let trees = Trees::of(node, old(node, votes)?, count, votes.ids)?;
    let transform = node.choice("post_transform", &TRANSFORMS)?;
    let all = trees.forest.votes();
    let one = (count == 2 && all.iter().all(|vote| vote.target == 0))
        .then(|| transform == Transform::None && all.iter().all(|vote| vote.weight >= 0.0));
    let base = base(node, &[0, count, if one.is_some() { 1 } else { count }])?;
    Ok(Box::new(TreeEnsembleClassifier { trees: Trees { base, transform, ..trees }, classes, one }))
}

/// The choice at a number.
fn by_number<T: Copy>(node: &Node<'_>, name: &str, all: &[(&str, T)]) -> Result<T> {
    let number = node.int(name)?;
    let chosen = usize::try_from(number).ok().and_then(|number| all.get(number));
    chosen.map(|(_, chosen)| *chosen).ok_or_else(|| {
        let text = format!("{name} is {number}: allowed 0..={}", all.len() - 1);
        Error::model(text).attribute(name).value(number)
    })
}

/// `n_targets`, or as many as the votes need.
fn target_count(node: &Node<'_>, ids: &str) -> Result<usize> {
    let needed = node.optional(ids, Node::ints)?.unwrap_or(&[]).iter().max().map_or(1, |id| id.saturating_add(1));
    let count = node.optional("n_targets", Node::int)?.unwrap_or(needed);
    usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
        Error::model(format!("n_targets is {count}: it must be at least 1")).attribute("n_targets").value(count)
    })
}

/// What is added to scores. Version 3 came with doubles, in a tensor.
fn base(node: &Node<'_>, allowed: &[usize]) -> Result<Vec<f64>> {
    let base = super::forest::doubles(node, "base_values", "base_values_as_tensor")?;
    if allowed.contains(&base.len()) {
        return Ok(base);
    }
    let allowed: Vec<String> = allowed.iter().map(usize::to_string).collect();
    let text = format!("base_values has {} entries: allowed {}", base.len(), allowed.join(", "));
    Err(Error::model(text).attribute("base_values").size(base.len()))
}

/// Checks the lists of nodes and votes. Version 3 came with doubles, in tensors that replace lists of floats.
fn check_old(node: &Node<'_>, votes: Votes) -> Result<()> {
    let tensor = |name: &str| format!("{name}_as_tensor");
    let replaced = ["base_values", "nodes_values", "nodes_hitrates", votes.weights];
    if let Some(list) = replaced.into_iter().find(|list| len(node, list) > 0 && len(node, &tensor(list)) > 0) {
        let text = format!("{list} and {} are both given: allowed is one", tensor(list));
        return Err(Error::model(text).attribute(list));
    }
    equally_many(node, &OLD_NODES)?;
    equally_many(node, &[votes.ids, votes.trees, votes.nodes, votes.weights, votes.tensor])
}

impl Trees {
    fn of(node: &Node<'_>, forest: Forest, targets: usize, ids: &str) -> Result<Trees> {
        if let Some(vote) = forest.votes.iter().find(|vote| vote.target >= targets) {
            let text = format!("{ids} holds {}: allowed 0..={}", vote.target, targets.saturating_sub(1));
            return Err(Error::model(text).attribute(ids).value(vote.target as i64));
        }
        let circles = || Error::model("decisions lead back to themselves").attribute("nodes_truenodeids");
        let (aggregate, transform) = (Aggregate::Sum, Transform::None);
        node.bill(forest.packing())?;
        Ok(Trees { forest: Packed::of(forest).ok_or_else(circles)?, aggregate, base: Vec::new(), transform })
    }

    /// The votes of all trees for each of some targets.
    fn scores(&self, call: &mut Call<'_>, targets: usize) -> Result<NewTensor> {
        let x = if call.tensor(0)?.dtype() == DType::Float { Held::Input(0) } else { doubles(call, 0)? };
        let x = call.held(&x)?;
        let [examples, features] = *x.shape() else {
            return Err(Error::input(format!("\"X\" has rank {}: 2 is needed", x.rank())).parameter("X"));
        };
        if features < self.forest.features() {
            let text = format!("\"X\" has {features} features: the trees need {}", self.forest.features());
            return Err(Error::input(text).parameter("X").axis(1).size(features));
        }
        call.charge(examples.saturating_mul(self.forest.steps()) as u64)?;
        let mut scores = call.output_of(DType::Double, [examples, targets].as_slice().into())?;
        let rows = match x.dtype() {
            DType::Float => Rows::Float(x.as_slice()?),
            _ => Rows::Double(x.as_slice()?),
        };
        let poll = Poll { forest: &self.forest, aggregate: self.aggregate, rows, features, targets };
        let mut scratch = call.scratch::<u64>(poll.scratch(examples, call.resources()))?;
        poll.run(scores.elements_mut()?, scratch.elements_mut(), call.resources())?;
        if self.base.len() == targets {
            let mut lookout = call.lookout();
            for scores in scores.elements_mut::<f64>()?.chunks_exact_mut(targets.max(1)) {
                lookout.after(size_of_val(scores))?;
                scores.iter_mut().zip(&self.base).for_each(|(score, base)| *score += base);
            }
        }
        Ok(scores)
    }
}

impl Operator for TreeEnsemble {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let scores = self.trees.scores(call, self.targets)?;
        let to = if self.like_input { call.tensor(0)?.dtype() } else { DType::Float };
        targets(call, scores, self.targets, self.trees.transform, to)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let batch = facts.sizes::<2>(0)?.map_or(Dim::Unknown, |[batch, _]| batch.clone());
        facts.give(0, [batch, Dim::Fixed(self.targets)]);
        Ok(())
    }
}

impl Operator for TreeEnsembleClassifier {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let mut scores = match self.one {
            None => self.trees.scores(call, self.classes.labels.len())?,
            Some(_) => self.trees.scores(call, 1)?,
        };
        if let Some(probable) = self.one {
            if let [_, base] = *self.trees.base {
                scores.elements_mut::<f64>()?.iter_mut().for_each(|score| *score += base);
            }
            scores = both(call, scores.elements_mut()?, probable)?;
        }
        self.classes.outputs(call, scores, self.trees.transform)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let batch = facts.sizes::<2>(0)?.map_or(Dim::Unknown, |[batch, _]| batch.clone());
        facts.give_type(0, self.classes.labels.dtype());
        facts.give(0, std::slice::from_ref(&batch));
        facts.give(1, [batch, Dim::Fixed(self.classes.labels.len())]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, outputs, run, string, strings, tensor};
    use crate::tensor::Tensor;

    const CLASSIFIER: &str = "ai.onnx.ml.TreeEnsembleClassifier";
    const REGRESSOR: &str = "ai.onnx.ml.TreeEnsembleRegressor";
    const NAN: f32 = f32::NAN;

    fn floats<'a>(name: &'a str, values: &[f32]) -> (&'a str, Attribute) {
        (name, Attribute::Floats(values.to_vec()))
    }

    fn doubles<'a>(name: &'a str, values: &[f64]) -> (&'a str, Attribute) {
        (name, Attribute::Tensor(values.to_vec().into()))
    }

    fn bytes<'a>(name: &'a str, values: &[u8]) -> (&'a str, Attribute) {
        (name, Attribute::Tensor(values.to_vec().into()))
    }

    /// Whether feature 0 is at most 1, or missing; if it isn't, whether feature 1 is above 2. With other attributes.
    fn old<const N: usize>(more: [(&'static str, Attribute); N]) -> Vec<(&'static str, Attribute)> {
        let nodes = [
            ints("nodes_treeids", &[3; 5]),
            ints("nodes_nodeids", &[0, 1, 2, 3, 4]),
            ints("nodes_featureids", &[0, 0, 1, 0, 0]),
            floats("nodes_values", &[1.0, 0.0, 2.0, 0.0, 0.0]),
            strings("nodes_modes", &["BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"]),
            ints("nodes_truenodeids", &[1, 0, 3, 0, 0]),
            ints("nodes_falsenodeids", &[2, 0, 4, 0, 0]),
            ints("nodes_missing_value_tracks_true", &[1, 0, 0, 0, 0]),
        ];
        nodes.into_iter().chain(more).collect()
    }

    fn classes<const N: usize>(
        ids: &[i64],
        weights: &[f32],
        more: [(&'static str, Attribute); N],
    ) -> [(&'static str, Attribute); 14] {
        let mut all = old([
            ints("class_treeids", &[3; 3]),
            ints("class_nodeids", &[1, 3, 4]),
            ints("class_ids", ids),
            floats("class_weights", weights),
        ]);
        all.extend(more);
        all.try_into().unwrap()
    }

    #[test]
    fn targets_of_old_versions() {
        let x = tensor(&[4, 2], [1f32, 0.0, 2.0, 3.0, 2.0, NAN, NAN, 9.0]);
        let votes = |more: (&'static str, Attribute)| -> [_; 13] {
            let all = old([
                ints("target_treeids", &[3; 3]),
                ints("target_nodeids", &[4, 1, 3]),
                ints("target_ids", &[0; 3]),
                floats("target_weights", &[4.0, 1.0, 2.0]),
                more,
            ]);
            all.try_into().unwrap()
        };
        run(REGRESSOR, 1, votes(int("n_targets", 1)), [&x]).gives(tensor(&[4, 1], [1f32, 2.0, 4.0, 1.0]));
        run(REGRESSOR, 3, votes(floats("base_values", &[0.5])), [&x]).gives(tensor(&[4, 1], [1.5f32, 2.5, 4.5, 1.5]));
        // Votes at decisions, which no row ends at, don't count.
        let more = old([
            ints("target_treeids", &[3; 5]),
            ints("target_nodeids", &[0, 4, 1, 2, 3]),
            ints("target_ids", &[0; 5]),
            floats("target_weights", &[8.0, 4.0, 1.0, 9.0, 2.0]),
        ]);
        run(REGRESSOR, 1, <[_; 12]>::try_from(more).unwrap(), [&x]).gives(tensor(&[4, 1], [1f32, 2.0, 4.0, 1.0]));
        run(REGRESSOR, 1, votes(int("n_targets", 2)), [&tensor(&[1, 2], [5i64, 3])])
            .gives(tensor(&[1, 2], [2f32, 0.0]));
        run(REGRESSOR, 1, votes(int("n_targets", 1)), [&tensor(&[1, 1], [5f32])])
            .fails("\"X\" has 1 features: the trees need 2");
        run(REGRESSOR, 1, votes(floats("base_values", &[0.5; 2])), [&x])
            .fails("base_values has 2 entries: allowed 0, 1");
    }

    #[test]
    fn classes_of_old_versions() {
        let x = tensor(&[3, 2], [1f32, 0.0, 2.0, 3.0, 2.0, 1.0]);
        let three = classes(
            &[0, 1, 2],
            &[1.0, 1.0, 1.0],
            [strings("classlabels_strings", &["a", "b", "c"]), floats("base_values", &[0.0, 0.25, 0.0])],
        );
        let labels = Tensor::from_strings(&[3], ["a", "b", "c"]).unwrap();
        let scores = tensor(&[3, 3], [1f32, 0.25, 0.0, 0.0, 1.25, 0.0, 0.0, 0.25, 1.0]);
        assert_eq!(outputs(CLASSIFIER, 1, three, [&x]), [labels.into(), scores]);
        // The score of the second class, as a probability, and as a margin.
        let label = || ints("classlabels_int64s", &[7, 8]);
        let one = classes(&[0; 3], &[0.25, 0.75, 0.5], [label(), string("post_transform", "NONE")]);
        let scores = tensor(&[3, 2], [0.75f32, 0.25, 0.25, 0.75, 0.5, 0.5]);
        assert_eq!(outputs(CLASSIFIER, 1, one, [&x]), [tensor(&[3], [7i64, 8, 7]), scores]);
        let margin = classes(&[0; 3], &[-1.0, 2.0, 0.0], [label(), floats("base_values", &[0.5])]);
        let scores = tensor(&[3, 2], [0.5f32, -0.5, -2.5, 2.5, -0.5, 0.5]);
        assert_eq!(outputs(CLASSIFIER, 1, margin, [&x]), [tensor(&[3], [7i64, 8, 8]), scores]);
    }

    #[test]
    fn version_5() {
        let x = tensor(&[3, 1], [1f64, 3.0, 9.0]);
        let tree = |mode: u8| {
            [
                ints("tree_roots", &[0]),
                bytes("nodes_modes", &[mode]),
                ints("nodes_featureids", &[0]),
                doubles("nodes_splits", &[3.0]),
                ints("nodes_truenodeids", &[1]),
                ints("nodes_trueleafs", &[1]),
                ints("nodes_falsenodeids", &[0]),
                ints("nodes_falseleafs", &[1]),
                ints("leaf_targetids", &[0, 0]),
                doubles("leaf_weights", &[10.0, 20.0]),
                doubles("membership_values", &[1.0, 9.0, f64::NAN]),
                int("n_targets", 1),
            ]
        };
        let (yes, no) = (20.0, 10.0);
        let want = [
            [yes, yes, no],
            [yes, no, no],
            [no, yes, yes],
            [no, no, yes],
            [no, yes, no],
            [yes, no, yes],
            [yes, no, yes],
        ];
        for (mode, want) in want.into_iter().enumerate() {
            run("ai.onnx.ml.TreeEnsemble", 5, tree(mode as u8), [&x]).gives(tensor(&[3, 1], want));
        }
        run("ai.onnx.ml.TreeEnsemble", 5, tree(7), [&x]).fails("nodes_modes[0] is 7: allowed 0..=6");
    }

    #[test]
    fn faults_of_trees() {
        let change = |name: &'static str, to: Attribute, text: &str| {
            let mut all =
                classes(&[0; 3], &[1.0; 3], [ints("classlabels_int64s", &[7, 8]), string("post_transform", "NONE")]);
            all.iter_mut().find(|(own, _)| *own == name).unwrap().1 = to;
            infer(CLASSIFIER, 1, all, ["float[N, 2]"]).fails(text);
        };
        change(
            "nodes_truenodeids",
            Attribute::Ints(vec![9, 0, 3, 0, 0]),
            "nodes_truenodeids[0] is 9: its tree has no such node",
        );
        change("nodes_truenodeids", Attribute::Ints(vec![1, 0, 2, 0, 0]), "decisions lead back to themselves");
        change("nodes_truenodeids", Attribute::Ints(vec![1, 0, 0, 0, 0]), "decisions lead back to themselves");
        change(
            "nodes_nodeids",
            Attribute::Ints(vec![0, 1, 2, 3, 3]),
            "nodes_nodeids[4] is 3: its tree has that node already",
        );
        change(
            "nodes_featureids",
            Attribute::Ints(vec![-1, 0, 0, 0, 0]),
            "nodes_featureids[0] is -1: it must be at least 0",
        );
        change("class_nodeids", Attribute::Ints(vec![1, 3, 5]), "class_nodeids[2] is 5: its tree has no such node");
        change("class_ids", Attribute::Ints(vec![0, 0, 2]), "class_ids holds 2: allowed 0..=1");
        let modes = ["BRANCH_LEQ", "LEAF", "BRANCH", "LEAF", "LEAF"].map(str::to_string).to_vec();
        change("nodes_modes", Attribute::Strings(modes), "nodes_modes[2] is \"BRANCH\": allowed BRANCH_LEQ, ");
    }

    #[test]
    fn inferred() {
        let name = "ai.onnx.ml.TreeEnsemble";
        infer(name, 5, [int("n_targets", 2)], ["double[N, 3]"]).gives("[N, 2]");
        infer(name, 5, [], ["double"]).gives("[?, 1]");
        infer(name, 5, [ints("nodes_featureids", &[1]), ints("nodes_trueleafs", &[1, 2])], ["double"])
            .fails("nodes_trueleafs has 2 entries, and nodes_featureids has 1: they must be equally many");
        infer(name, 5, [ints("leaf_targetids", &[1]), doubles("leaf_weights", &[1.0; 2])], ["double"])
            .fails("leaf_weights has 2 entries, and leaf_targetids has 1");
        infer(name, 5, [], ["double[3]"]).fails("allowed rank 2");
        infer(name, 5, [int("post_transform", 5)], ["double"]).fails("post_transform is 5: allowed 0..=4");
        infer(CLASSIFIER, 1, [strings("classlabels_strings", &["a", "b"])], ["float[N, 3]"])
            .gives_all(["[N]", "[N, 2]"]);
        infer(CLASSIFIER, 3, [ints("classlabels_int64s", &[5])], ["float"]).gives_all(["[?]", "[?, 1]"]);
        infer(CLASSIFIER, 3, [ints("classlabels_int64s", &[5])], ["float"]).has_type("int64");
        infer(CLASSIFIER, 3, [], ["float"]).fails("neither classlabels_int64s nor classlabels_strings is given");
        infer(CLASSIFIER, 3, [ints("class_ids", &[5]), doubles("class_weights_as_tensor", &[1.0; 2])], ["float"])
            .fails("class_weights_as_tensor has 2 entries, and class_ids has 1");
        infer(REGRESSOR, 3, [int("n_targets", 4)], ["int32[N, 3]"]).gives("[N, 4]");
        infer(REGRESSOR, 1, [], ["int32[N, 3]"]).gives("[N, 1]");
        infer(REGRESSOR, 3, [floats("base_values", &[1.0]), doubles("base_values_as_tensor", &[1.0])], ["float"])
            .fails("base_values and base_values_as_tensor are both given: allowed is one");
        infer(REGRESSOR, 1, [string("aggregate_function", "MEAN")], ["float"])
            .fails("aggregate_function is \"MEAN\": allowed AVERAGE, SUM, MIN, MAX");
    }
}
