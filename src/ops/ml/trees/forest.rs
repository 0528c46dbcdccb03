//! Forests as attributes have them.

use super::super::attributes::{len, numbers};
use crate::ops::prelude::*;
use kernels::trees::{Child, Forest, Node as Decision, Test, Vote};
use std::collections::{HashMap, HashSet};

/// The attributes of votes in the old form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Votes {
    pub(super) ids: &'static str,
    pub(super) trees: &'static str,
    pub(super) nodes: &'static str,
    pub(super) weights: &'static str,
}

/// The name of a list of floats, or of the tensor of doubles that is given in its place. Version 3 came with these.
pub(super) fn either(node: &Node<'_>, list: &str) -> String {
    let tensor = format!("{list}_as_tensor");
    if len(node, &tensor) > 0 { tensor } else { list.to_string() }
}

fn ints<'a>(node: &Node<'a>, name: &str) -> Result<&'a [i64]> {
    Ok(node.optional(name, Node::ints)?.unwrap_or(&[]))
}

fn at<T: Copy + Default>(list: &[T], k: usize) -> T {
    list.get(k).copied().unwrap_or_default()
}

/// A number that counts from 0 on.
fn place(name: &str, k: usize, number: i64) -> Result<usize> {
    usize::try_from(number).map_err(|_| bad(name, k, number, "it must be at least 0"))
}

fn bad(name: &str, k: usize, number: i64, why: &str) -> Error {
    Error::model(format!("{name}[{k}] is {number}: {why}")).attribute(name).value(number)
}

/// Decisions of the modes that the old form and version 5 have, in the order of their numbers.
const MODES: [(&str, Test); 7] = [
    ("BRANCH_LEQ", Test::AtMost),
    ("BRANCH_LT", Test::Below),
    ("BRANCH_GTE", Test::AtLeast),
    ("BRANCH_GT", Test::Above),
    ("BRANCH_EQ", Test::Equal),
    ("BRANCH_NEQ", Test::Unequal),
    ("BRANCH_MEMBER", Test::Member),
];

/// The form up to version 3: nodes have ids within their trees, and leaves are nodes.
pub(super) fn old(node: &Node<'_>, votes: Votes) -> Result<Forest> {
    let (trees, ids) = (ints(node, "nodes_treeids")?, ints(node, "nodes_nodeids")?);
    let modes = node.optional("nodes_modes", Node::strings)?.unwrap_or(&[]);
    let (features, nan) = (ints(node, "nodes_featureids")?, ints(node, "nodes_missing_value_tracks_true")?);
    let values = numbers(node, &either(node, "nodes_values"))?;
    let mut forest = Forest::default();
    let mut places = HashMap::new();
    let (mut decisions, mut leaves) = (0, 0);
    for (k, mode) in modes.iter().enumerate() {
        let is_leaf = mode == "LEAF";
        let count = if is_leaf { &mut leaves } else { &mut decisions };
        let child = if is_leaf { Child::Leaf(*count) } else { Child::Node(*count) };
        *count += 1;
        if places.insert((at(trees, k), at(ids, k)), child).is_some() {
            return Err(bad("nodes_nodeids", k, at(ids, k), "its tree has that node already"));
        }
    }
    let mut children = HashSet::new();
    // Members came with version 5.
    let [branches @ .., _] = &MODES;
    for (k, mode) in modes.iter().enumerate().filter(|(_, mode)| *mode != "LEAF") {
        let test = branches.iter().find(|(name, _)| name == mode).map(|(_, test)| *test);
        let test = test.ok_or_else(|| {
            let names: Vec<&str> = branches.iter().map(|(name, _)| *name).collect();
            let text = format!("nodes_modes[{k}] is {}: allowed {}, LEAF", quote(mode), names.join(", "));
            Error::model(text).attribute("nodes_modes")
        })?;
        let mut child = |name: &str| {
            let id = at(ints(node, name)?, k);
            let child = places.get(&(at(trees, k), id)).copied();
            let child = child.ok_or_else(|| bad(name, k, id, "its tree has no such node"))?;
            children.insert((at(trees, k), id));
            Ok::<_, Error>(child)
        };
        let children = [child("nodes_truenodeids")?, child("nodes_falsenodeids")?];
        let feature = place("nodes_featureids", k, at(features, k))?;
        forest.nodes.push(Decision { feature, test, value: at(&values, k), children, nan: at(nan, k) != 0 });
    }
    let mut seen = HashSet::new();
    for k in 0..modes.len() {
        let key = (at(trees, k), at(ids, k));
        if let Some(root) = places.get(&key).filter(|_| !children.contains(&key))
            && seen.insert(key.0)
        {
            forest.roots.push(*root);
        }
    }
    let weights = numbers(node, &either(node, votes.weights))?;
    let (targets, of_trees, of_nodes) = (ints(node, votes.ids)?, ints(node, votes.trees)?, ints(node, votes.nodes)?);
    let mut given = Vec::with_capacity(weights.len());
    for (k, weight) in weights.into_iter().enumerate() {
        let vote = Vote { target: place(votes.ids, k, at(targets, k))?, weight };
        match places.get(&(at(of_trees, k), at(of_nodes, k))) {
            Some(Child::Leaf(leaf)) => given.push((*leaf, vote)),
            // Exporters used to write those of decisions too, where no row ends.
            Some(Child::Node(_)) => {}
            None => return Err(bad(votes.nodes, k, at(of_nodes, k), "its tree has no such node")),
        }
    }
    given.sort_by_key(|(leaf, _)| *leaf);
    for leaf in 0..leaves {
        let start = given.partition_point(|(own, _)| *own < leaf);
        forest.leaves.push(start..given.partition_point(|(own, _)| *own <= leaf));
    }
    forest.votes = given.into_iter().map(|(_, vote)| vote).collect();
    Ok(forest)
}

/// The form of version 5: decisions and leaves have lists of their own. That `nodes_falsenodeids` is an index of leaves where
/// `nodes_falseleafs` is set, the text says with a slip.
pub(super) fn decoded(node: &Node<'_>) -> Result<Forest> {
    let modes = match node.optional("nodes_modes", Node::tensor)? {
        Some(modes) => modes.clone(),
        None => Tensor::from(Vec::<u8>::new()),
    };
    let (features, nan) = (ints(node, "nodes_featureids")?, ints(node, "nodes_missing_value_tracks_true")?);
    let (values, weights) = (numbers(node, "nodes_splits")?, numbers(node, "leaf_weights")?);
    let members = numbers(node, "membership_values")?;
    let mut forest = Forest::default();
    // NaN ends each set; the last one may do without.
    let mut sets = members.split_inclusive(|member| member.is_nan());
    let targets = ints(node, "leaf_targetids")?;
    for (k, weight) in weights.iter().enumerate() {
        forest.leaves.push(k..k + 1);
        forest.votes.push(Vote { target: place("leaf_targetids", k, at(targets, k))?, weight: *weight });
    }
    let (count, leaves) = (modes.len(), weights.len());
    for (k, mode) in modes.as_slice::<u8>()?.iter().enumerate() {
        let (_, test) =
            MODES.get(usize::from(*mode)).ok_or_else(|| bad("nodes_modes", k, (*mode).into(), "allowed 0..=6"))?;
        let child = |to: &str, leafs: &str| {
            let (is_leaf, number) = (at(ints(node, leafs)?, k) != 0, at(ints(node, to)?, k));
            let (most, child): (_, fn(usize) -> Child) =
                if is_leaf { (leaves, Child::Leaf) } else { (count, Child::Node) };
            match usize::try_from(number).ok().filter(|number| *number < most) {
                Some(number) => Ok(child(number)),
                None => {
                    Err(bad(to, k, number, &format!("there are {most} {}", if is_leaf { "leaves" } else { "nodes" })))
                }
            }
        };
        let children =
            [child("nodes_truenodeids", "nodes_trueleafs")?, child("nodes_falsenodeids", "nodes_falseleafs")?];
        let mut value = at(&values, k);
        if *test == Test::Member {
            let count = forest.sets.len();
            let set = sets.next().ok_or_else(|| {
                let text = format!("membership_values has {count} sets: node {k} tests for members and needs one more");
                Error::model(text).attribute("membership_values").size(count)
            })?;
            value = count as f64;
            forest.sets.push(set.iter().copied().filter(|member| !member.is_nan()).collect());
        }
        let feature = place("nodes_featureids", k, at(features, k))?;
        forest.nodes.push(Decision { feature, test: *test, value, children, nan: at(nan, k) != 0 });
    }
    for (k, root) in ints(node, "tree_roots")?.iter().enumerate() {
        let root = usize::try_from(*root).ok().filter(|root| *root < count);
        let root = root.ok_or_else(|| {
            bad("tree_roots", k, at(ints(node, "tree_roots").unwrap_or(&[]), k), &format!("there are {count} nodes"))
        })?;
        forest.roots.push(Child::Node(root));
    }
    Ok(forest)
}
