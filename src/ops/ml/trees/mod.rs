//! TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor: sums of the leaves that decisions lead to.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleClassifier.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleRegressor.html>

mod forest;
#[cfg(test)]
mod tests;

use super::attributes::{all_equally_many, equally_many, len, numbers};
use super::entry;
use super::numbers::doubles;
use super::scores::{Classes, TRANSFORMS, both, targets};
use crate::ops::prelude::*;
use forest::{Votes, decoded, either, old};
use kernels::scores::Transform;
use kernels::trees::{Aggregate, Forest, Packed, Poll, Rows};

pub(super) const TREE_ENSEMBLE: Implementation = entry("TreeEnsemble", &[5], load);
pub(super) const TREE_ENSEMBLE_CLASSIFIER: Implementation = entry("TreeEnsembleClassifier", &[1, 3], load_classes);
pub(super) const TREE_ENSEMBLE_REGRESSOR: Implementation = entry("TreeEnsembleRegressor", &[1, 3], load_targets);

/// What is known of each node, beside what may be left out. A node that tests for members has a split too, but no use for it.
const NODES: [&str; 7] = [
    "nodes_modes",
    "nodes_featureids",
    "nodes_splits",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
];

/// The same of older versions.
const OLD_NODES: [&str; 7] = [
    "nodes_modes",
    "nodes_treeids",
    "nodes_nodeids",
    "nodes_featureids",
    "nodes_values",
    "nodes_truenodeids",
    "nodes_falsenodeids",
];

/// Where NaN goes: to the false branch if it is left out, as `nodes_hitrates` may be too.
const NAN: &str = "nodes_missing_value_tracks_true";

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
    all_equally_many(node, &NODES)?;
    equally_many(node, &["nodes_modes", "nodes_hitrates", NAN])?;
    all_equally_many(node, &["leaf_targetids", "leaf_weights"])?;
    let (targets, forest) = (target_count(node, "leaf_targetids")?, decoded(node)?);
    let trees = Trees::of(node, forest, targets, "leaf_targetids")?;
    let (aggregate, transform) =
        (by_number(node, "aggregate_function", &AGGREGATES)?, by_number(node, "post_transform", &TRANSFORMS)?);
    Ok(Box::new(TreeEnsemble { trees: Trees { aggregate, transform, ..trees }, targets, like_input: true }))
}

fn load_targets(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let votes =
        Votes { ids: "target_ids", trees: "target_treeids", nodes: "target_nodeids", weights: "target_weights" };
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
    let votes = Votes { ids: "class_ids", trees: "class_treeids", nodes: "class_nodeids", weights: "class_weights" };
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
    let base = numbers(node, &either(node, "base_values"))?;
    if allowed.contains(&base.len()) {
        return Ok(base);
    }
    let mut allowed: Vec<String> = allowed.iter().map(usize::to_string).collect();
    allowed.dedup();
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
    all_equally_many(node, &OLD_NODES.map(|name| either(node, name)).each_ref().map(String::as_str))?;
    equally_many(node, &["nodes_modes", &either(node, "nodes_hitrates"), NAN])?;
    all_equally_many(node, &[votes.ids, votes.trees, votes.nodes, &either(node, votes.weights)])
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
