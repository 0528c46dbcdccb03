//! Forests: trees of decisions on features, whose leaves vote for targets.

use super::{Resources, Stopped, pieces};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Trees whose nodes and leaves are in common lists.
#[derive(Debug, Default)]
pub struct Forest {
    pub nodes: Vec<Node>,
    /// Where each tree begins.
    pub roots: Vec<Child>,
    /// The votes of each leaf.
    pub leaves: Vec<Range<usize>>,
    pub votes: Vec<Vote>,
    /// What [`Test::Member`] looks for.
    pub sets: Vec<Vec<f64>>,
}

/// A decision.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    pub feature: usize,
    pub test: Test,
    /// What the feature is compared with; for [`Test::Member`] the number of the set.
    pub value: f64,
    /// Where it goes on if the test holds, and if it doesn't.
    pub children: [Child; 2],
    /// NaN passes the test.
    pub nan: bool,
}

/// What a decision asks of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    AtMost,
    Below,
    AtLeast,
    Above,
    Equal,
    Unequal,
    Member,
}

/// What a decision leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    Node(usize),
    Leaf(usize),
}

/// The weight of a leaf for a target.
#[derive(Debug, Clone, Copy)]
pub struct Vote {
    pub target: usize,
    pub weight: f64,
}

/// How votes of the trees become one number. Without a vote it is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    Sum,
    /// The sum, divided by the number of trees.
    Average,
    Min,
    Max,
}

/// Examples that go through a tree together, so that it stays in the caches.
const TOGETHER: usize = 64;

impl Forest {
    /// Whether a walk may never end. Nodes that no other one leads to are taken away, until there is none: what is left leads
    /// in circles.
    pub fn has_circles(&self) -> bool {
        let mut parents = vec![0usize; self.nodes.len()];
        let inner = |node: &Node| {
            node.children.into_iter().filter_map(|child| match child {
                Child::Node(node) => Some(node),
                Child::Leaf(_) => None,
            })
        };
        for child in self.nodes.iter().flat_map(inner) {
            if let Some(count) = parents.get_mut(child) {
                *count += 1;
            }
        }
        let mut free: Vec<usize> = (0..parents.len()).filter(|node| parents.get(*node) == Some(&0)).collect();
        let mut taken = 0;
        while let Some(node) = free.pop() {
            taken += 1;
            for child in self.nodes.get(node).into_iter().flat_map(inner) {
                if let Some(count) = parents.get_mut(child) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(child);
                    }
                }
            }
        }
        taken < self.nodes.len()
    }

    /// Aggregates the votes for each of `targets` targets, for each row of `features` numbers of `rows`.
    pub fn run(
        &self,
        aggregate: Aggregate,
        rows: &[f64],
        features: usize,
        targets: usize,
        out: &mut [f64],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let unit = targets * size_of::<f64>();
        let cost = (self.roots.len() * 64).div_ceil(unit.max(1)).max(1);
        pieces(cast_slice_mut(out), unit, unit * TOGETHER, cost, resources, |block, before, out| {
            let out = cast_slice_mut::<u8, f64>(out);
            let first = block * TOGETHER + before.checked_div(unit).unwrap_or(0);
            let rows = rows.get(first * features..).unwrap_or(&[]);
            self.run_block(aggregate, rows, features, targets, out, resources)
        })
    }

    fn run_block(
        &self,
        aggregate: Aggregate,
        rows: &[f64],
        features: usize,
        targets: usize,
        out: &mut [f64],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let start = match aggregate {
            Aggregate::Sum | Aggregate::Average => 0.0,
            // What a number is compared with, and stays a number.
            Aggregate::Min | Aggregate::Max => f64::NAN,
        };
        out.fill(start);
        let mut lookout = resources.lookout();
        for root in &self.roots {
            for (row, out) in rows.chunks(features.max(1)).zip(out.chunks_mut(targets.max(1))) {
                let (leaf, steps) = self.leaf(*root, row);
                lookout.after((steps + 1) * size_of::<Node>())?;
                for vote in self.leaves.get(leaf).and_then(|votes| self.votes.get(votes.clone())).unwrap_or(&[]) {
                    let Some(value) = out.get_mut(vote.target) else { continue };
                    *value = match aggregate {
                        Aggregate::Sum | Aggregate::Average => *value + vote.weight,
                        Aggregate::Min => value.min(vote.weight),
                        Aggregate::Max => value.max(vote.weight),
                    };
                }
            }
        }
        match aggregate {
            Aggregate::Sum => {}
            Aggregate::Average => out.iter_mut().for_each(|sum| *sum /= self.roots.len() as f64),
            Aggregate::Min | Aggregate::Max => {
                out.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = 0.0)
            }
        }
        Ok(())
    }

    /// The leaf that a row leads to, and the decisions on the way.
    #[inline]
    fn leaf(&self, root: Child, row: &[f64]) -> (usize, usize) {
        let (mut at, mut steps) = (root, 0);
        loop {
            let node = match at {
                Child::Leaf(leaf) => return (leaf, steps),
                Child::Node(node) => self.nodes.get(node),
            };
            let Some(node) = node else { return (usize::MAX, steps) };
            let x = row.get(node.feature).copied().unwrap_or(f64::NAN);
            let passes = match node.test {
                _ if x.is_nan() => node.nan,
                Test::AtMost => x <= node.value,
                Test::Below => x < node.value,
                Test::AtLeast => x >= node.value,
                Test::Above => x > node.value,
                Test::Equal => x == node.value,
                Test::Unequal => x != node.value,
                Test::Member => self.sets.get(node.value as usize).is_some_and(|set| set.contains(&x)),
            };
            at = if passes { node.children[0] } else { node.children[1] };
            steps += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_threads;

    fn node(feature: usize, test: Test, value: f64, children: [Child; 2]) -> Node {
        Node { feature, test, value, children, nan: false }
    }

    /// Two trees on two features: each test, a set, and a tree that is a leaf.
    fn forest() -> Forest {
        let vote = |target, weight| Vote { target, weight };
        Forest {
            nodes: vec![
                node(0, Test::AtMost, 1.0, [Child::Leaf(0), Child::Node(1)]),
                Node { nan: true, ..node(1, Test::Member, 0.0, [Child::Leaf(1), Child::Leaf(2)]) },
            ],
            roots: vec![Child::Node(0), Child::Leaf(3)],
            leaves: vec![0..1, 1..2, 2..4, 4..5],
            votes: vec![vote(0, 1.0), vote(0, 2.0), vote(0, 4.0), vote(1, 8.0), vote(0, 0.5)],
            sets: vec![vec![3.0, 5.0]],
        }
    }

    fn run(forest: &Forest, aggregate: Aggregate, rows: &[f64], threads: usize) -> Vec<f64> {
        let mut out = vec![f64::NAN; rows.len()];
        let resources = Resources { threads, stop: None };
        on_threads(threads, || forest.run(aggregate, rows, 2, 2, &mut out, resources)).unwrap();
        out
    }

    #[test]
    fn votes_are_aggregated() {
        let rows = [1.0, 9.0, 2.0, 5.0, 2.0, 4.0, 2.0, f64::NAN, f64::NAN, 5.0];
        let sums = run(&forest(), Aggregate::Sum, &rows, 1);
        assert_eq!(sums, [1.5, 0.0, 2.5, 0.0, 4.5, 8.0, 2.5, 0.0, 2.5, 0.0]);
        assert_eq!(run(&forest(), Aggregate::Average, &rows, 1)[..2], [0.75, 0.0]);
        assert_eq!(run(&forest(), Aggregate::Min, &rows, 1)[4..6], [0.5, 8.0]);
        assert_eq!(run(&forest(), Aggregate::Max, &rows, 1)[..4], [1.0, 0.0, 2.0, 0.0]);
        let many = rows.repeat(500);
        assert_eq!(run(&forest(), Aggregate::Sum, &many, 3), sums.repeat(500));
    }

    #[test]
    fn comparisons() {
        let tests = [Test::AtMost, Test::Below, Test::AtLeast, Test::Above, Test::Equal, Test::Unequal];
        let passes = tests.map(|test| {
            [0.0, 1.0, 2.0].map(|x| {
                let forest =
                    Forest { nodes: vec![node(0, test, 1.0, [Child::Leaf(0), Child::Leaf(1)])], ..Forest::default() };
                forest.leaf(Child::Node(0), &[x]).0 == 0
            })
        });
        let (yes, no) = (true, false);
        let want = [[yes, yes, no], [yes, no, no], [no, yes, yes], [no, no, yes], [no, yes, no], [yes, no, yes]];
        assert_eq!(passes, want);
    }

    #[test]
    fn circles_are_found() {
        assert!(!forest().has_circles());
        for (from, to) in [(1, 0), (0, 0), (1, 1)] {
            let mut forest = forest();
            forest.nodes[from].children[0] = Child::Node(to);
            assert!(forest.has_circles(), "{from} to {to}");
        }
    }
}
