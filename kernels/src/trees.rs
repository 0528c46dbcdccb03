//! Forests: trees of decisions on features, whose leaves vote for targets.
//!
//! A [`Forest`] is what a model says. Rows walk through a [`Packed`] one, several side by side, so that no step waits for
//! the one before it, and without branches: each decision asks whether a whole number, the key of a feature, is at most a
//! bound, and what it leads to stands side by side. Many rows walk through a tree before the next one is read.

use super::parallel::{Benches, available_threads, split_by};
use super::{Lookout, Resources, Stopped};
use bytemuck::cast_slice_mut;
use std::collections::VecDeque;
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

/// Numbers of features, row by row.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    Float(&'a [f32]),
    Double(&'a [f64]),
}

/// A forest that rows can walk through.
#[derive(Debug)]
pub struct Packed {
    places: Vec<Place>,
    /// The place where each tree begins, and the decisions on its longest way.
    roots: Vec<(u32, u32)>,
    votes: Vec<Vote>,
    /// What each column of keys is of: a feature, and whether NaN comes before all numbers, or after them.
    columns: Vec<(usize, bool)>,
}

/// A decision, or a leaf.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Keys up to this one go to `next`, others to the place after it. Of a leaf: where its votes start, and where they end.
    bound: u64,
    /// The column of the key. That of a leaf is 0, where all keys are 0: it leads to itself.
    column: u32,
    next: u32,
}

/// A decision on a key: those up to `bound` go to the first child.
struct Split {
    column: (usize, bool),
    bound: u64,
    children: [Child; 2],
}

/// Rows or trees that are walked side by side.
const LANES: usize = 8;

/// Steps between two looks whether all have come to a leaf.
const STEPS: usize = 4;

/// Maximum number of rows that walk through a tree before the next one, and of their keys: as much as a usual second cache. A
/// large forest is read from farther away, once for so many rows.
const TOGETHER: usize = 2048;
const KEYS_TOGETHER: usize = 128 << 10;

/// Bytes that are written in the time of a tree.
const COST: usize = 64;

/// A whole number that grows with `x`. NaN comes before all numbers, or after them.
#[inline]
fn key(x: f64, nan_first: bool) -> u64 {
    // Both zeros have one key.
    let bits = (x + 0.0).to_bits();
    match (x.is_nan(), nan_first) {
        (false, _) if bits >> 63 == 1 => !bits,
        (false, _) => bits | 1 << 63,
        (true, true) => 0,
        (true, false) => u64::MAX,
    }
}

impl Split {
    /// `x <= value`, or `x < value`.
    fn at_most(feature: usize, value: f64, or_equal: bool, nan: bool, children: [Child; 2]) -> Split {
        // Beside NaN there is nothing to compare with: only NaN passes, if it does.
        let bound = if value.is_nan() { 0 } else { key(value, false) - u64::from(!or_equal) };
        Split { column: (feature, nan), bound, children }
    }

    /// `x >= value`, or `x > value`.
    fn at_least(feature: usize, value: f64, or_equal: bool, nan: bool, [yes, no]: [Child; 2]) -> Split {
        let split = Split::at_most(feature, value, !or_equal, !nan, [no, yes]);
        Split { bound: if value.is_nan() { u64::MAX - 1 } else { split.bound }, ..split }
    }

    /// `x == value`: not above it, and then not below it, which is pushed to `more`, the splits from the number `first` on.
    fn equal(
        feature: usize,
        value: f64,
        nan: bool,
        [yes, no]: [Child; 2],
        (more, first): (&mut Vec<Split>, usize),
    ) -> Split {
        let not_below = Child::Node(first + more.len());
        more.push(Split::at_most(feature, value, false, false, [no, yes]));
        Split::at_most(feature, value, true, nan, [not_below, no])
    }
}

impl Forest {
    /// Bytes that packing takes beyond those of the nodes: of trees, whose nodes may be shared, and of members and equal
    /// numbers, which take several splits each.
    pub fn packing(&self) -> usize {
        /// A split with its two places, and what orders and joins them.
        const SPLIT: usize = size_of::<Split>() + 2 * size_of::<Place>() + 96;
        let equal = self.nodes.iter().filter(|node| matches!(node.test, Test::Equal | Test::Unequal)).count();
        let more = self.sets.iter().fold(equal, |more, set| more + 2 * set.len());
        SPLIT * more + 2 * size_of::<Place>() * (self.nodes.len() + self.roots.len())
    }

    /// All decisions as splits, those of the nodes first.
    fn splits(&self) -> Vec<Split> {
        let (mut splits, mut more, first) = (Vec::with_capacity(self.nodes.len()), Vec::new(), self.nodes.len());
        for &Node { feature, test, value, children, nan } in &self.nodes {
            let [yes, no] = children;
            splits.push(match test {
                Test::AtMost => Split::at_most(feature, value, true, nan, children),
                Test::Below => Split::at_most(feature, value, false, nan, children),
                Test::AtLeast => Split::at_least(feature, value, true, nan, children),
                Test::Above => Split::at_least(feature, value, false, nan, children),
                Test::Equal => Split::equal(feature, value, nan, children, (&mut more, first)),
                Test::Unequal => Split::equal(feature, value, !nan, [no, yes], (&mut more, first)),
                Test::Member => {
                    let set = self.sets.get(value as usize).map_or(&[][..], Vec::as_slice);
                    let mut split = Split::at_most(feature, f64::NAN, true, nan, children);
                    for (k, member) in set.iter().enumerate() {
                        let mut others = no;
                        if k > 0 {
                            others = Child::Node(first + more.len());
                            more.push(split);
                        }
                        split = Split::equal(feature, *member, nan, [yes, others], (&mut more, first));
                    }
                    split
                }
            });
        }
        splits.append(&mut more);
        splits
    }
}

/// The decisions on the longest way from each split. None if a walk may never end.
fn heights(splits: &[Split]) -> Option<Vec<u32>> {
    let inner = |split: &Split| {
        split.children.into_iter().filter_map(|child| match child {
            Child::Node(node) => Some(node),
            Child::Leaf(_) => None,
        })
    };
    let mut parents = vec![0usize; splits.len()];
    for child in splits.iter().flat_map(inner) {
        if let Some(count) = parents.get_mut(child) {
            *count += 1;
        }
    }
    // Splits that no other one leads to are taken away, until there is none: what is left leads in circles.
    let mut taken: Vec<usize> = (0..splits.len()).filter(|split| parents.get(*split) == Some(&0)).collect();
    let mut at = 0;
    while let Some(split) = taken.get(at) {
        at += 1;
        for child in splits.get(*split).into_iter().flat_map(inner) {
            if let Some(count) = parents.get_mut(child) {
                *count -= 1;
                if *count == 0 {
                    taken.push(child);
                }
            }
        }
    }
    let mut heights = vec![0u32; splits.len()];
    for split in taken.iter().rev() {
        let below = splits.get(*split).into_iter().flat_map(inner).filter_map(|child| heights.get(child)).max();
        let height = below.map_or(1, |below| below.saturating_add(1));
        if let Some(to) = heights.get_mut(*split) {
            *to = height;
        }
    }
    (taken.len() == splits.len()).then_some(heights)
}

impl Packed {
    /// None if decisions lead back to themselves, or are 2^31 and more.
    pub fn of(forest: Forest) -> Option<Packed> {
        let splits = forest.splits();
        let heights = heights(&splits)?;
        // Column 0 is that of leaves.
        let mut columns: Vec<(usize, bool)> = splits.iter().map(|split| split.column).collect();
        columns.sort_unstable();
        columns.dedup();
        // Where the children of each split are: next to each other, level by level of each tree. A split that several lead to
        // is at several places, and its children at one.
        let mut pairs: Vec<Option<u32>> = vec![None; splits.len()];
        let mut packed = Packed { places: Vec::new(), roots: Vec::new(), votes: forest.votes, columns };
        let mut left = VecDeque::new();
        for root in &forest.roots {
            let height = if let Child::Node(node) = root { heights.get(*node).copied().unwrap_or(0) } else { 0 };
            packed.roots.push((u32::try_from(packed.places.len()).ok()?, height));
            packed.places.push(Place::default());
            left.push_back((packed.places.len() - 1, *root));
            while let Some((at, child)) = left.pop_front() {
                let place = match child {
                    Child::Leaf(leaf) => {
                        let votes = forest.leaves.get(leaf).cloned().unwrap_or(0..0);
                        let bound = (u32::try_from(votes.start).ok()?, u32::try_from(votes.end).ok()?);
                        Place { bound: u64::from(bound.0) << 32 | u64::from(bound.1), column: 0, next: at as u32 }
                    }
                    Child::Node(node) => {
                        let (split, pair) = (splits.get(node)?, pairs.get_mut(node)?);
                        let next = match *pair {
                            Some(next) => next,
                            None => {
                                let next = packed.places.len();
                                packed.places.extend([Place::default(); 2]);
                                left.extend([next, next + 1].into_iter().zip(split.children));
                                *pair.insert(u32::try_from(next).ok()?)
                            }
                        };
                        let column = packed.columns.partition_point(|column| *column < split.column) + 1;
                        Place { bound: split.bound, column: u32::try_from(column).ok()?, next }
                    }
                };
                *packed.places.get_mut(at)? = place;
            }
        }
        Some(packed)
    }

    /// The number of trees.
    pub fn trees(&self) -> usize {
        self.roots.len()
    }

    /// Decisions of a row at most, and one more for each tree.
    pub fn steps(&self) -> usize {
        self.roots.iter().fold(0, |sum, (_, height)| sum.saturating_add(*height as usize + 1))
    }

    /// The number of features that decisions need.
    pub fn features(&self) -> usize {
        self.columns.last().map_or(0, |(feature, _)| feature.saturating_add(1))
    }

    /// All votes of leaves.
    pub fn votes(&self) -> &[Vote] {
        &self.votes
    }

    /// Keys of a row.
    fn width(&self) -> usize {
        self.columns.len() + 1
    }

    /// Rows that walk through a tree before the next one, of so many: each thread has some.
    fn together(&self, rows: usize, threads: usize) -> usize {
        let most = (KEYS_TOGETHER / self.width()).clamp(LANES, TOGETHER);
        rows.div_ceil(threads.max(1)).next_multiple_of(LANES).clamp(LANES, most)
    }

    /// Writes the keys of a row.
    fn keys<T: Copy + Into<f64>>(&self, row: &[T], keys: &mut [u64]) {
        let Some((of_leaves, keys)) = keys.split_first_mut() else { return };
        *of_leaves = 0;
        for (to, (feature, nan_first)) in keys.iter_mut().zip(&self.columns) {
            *to = key(row.get(*feature).map_or(f64::NAN, |x| (*x).into()), *nan_first);
        }
    }

    /// Walks from each place to a leaf, at most `height` decisions, by the keys that start there.
    #[inline]
    fn walk(
        &self,
        keys: &[u64],
        starts: &[usize; LANES],
        height: u32,
        at: &mut [u32; LANES],
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let mut left = height as usize;
        while left > 0 {
            let steps = left.min(STEPS);
            left -= steps;
            lookout.after(steps * LANES * size_of::<Place>())?;
            for _ in 0..steps {
                for (at, start) in at.iter_mut().zip(starts) {
                    let Some(place) = self.places.get(*at as usize) else { continue };
                    let Some(key) = keys.get(start + place.column as usize) else { continue };
                    *at = place.next + u32::from(*key > place.bound);
                }
            }
            let columns = at.iter().map(|at| self.places.get(*at as usize).map_or(0, |place| place.column));
            if left > 0 && columns.fold(0, |all, column| all | column) == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Adds the votes of a leaf.
    #[inline]
    fn add(&self, aggregate: Aggregate, leaf: u32, out: &mut [f64]) {
        let votes = self.places.get(leaf as usize).map_or(0, |place| place.bound);
        let votes = (votes >> 32) as usize..votes as u32 as usize;
        for vote in self.votes.get(votes).unwrap_or(&[]) {
            let Some(value) = out.get_mut(vote.target) else { continue };
            *value = match aggregate {
                Aggregate::Sum | Aggregate::Average => *value + vote.weight,
                // The first of equals, 0 and -0 among them.
                Aggregate::Min if value.is_nan() || vote.weight < *value => vote.weight,
                Aggregate::Max if value.is_nan() || vote.weight > *value => vote.weight,
                Aggregate::Min | Aggregate::Max => *value,
            };
        }
    }
}

/// What a forest says of rows: the votes for each of `targets` targets, for each row of `features` numbers.
#[derive(Debug, Clone, Copy)]
pub struct Poll<'a> {
    pub forest: &'a Packed,
    pub aggregate: Aggregate,
    pub rows: Rows<'a>,
    pub features: usize,
    pub targets: usize,
}

/// The threads that may work.
fn threads(resources: Resources<'_>) -> usize {
    resources.threads.min(available_threads()).max(1)
}

impl Poll<'_> {
    /// Elements of scratch memory for so many rows; saturates.
    pub fn scratch(&self, rows: usize, resources: Resources<'_>) -> usize {
        let threads = threads(resources);
        crate::volume(self.forest.width(), [&self.forest.together(rows, threads).min(rows), &threads])
    }

    /// Aggregates the votes. A sum has those of the trees in their order, and those of a leaf in theirs.
    pub fn run(&self, out: &mut [f64], scratch: &mut [u64], resources: Resources<'_>) -> Result<(), Stopped> {
        let &Poll { forest, features, targets, .. } = self;
        if targets == 0 || features < forest.features() {
            return if out.is_empty() { Ok(()) } else { Err(Stopped::Misfit) };
        }
        let (count, width) = (out.len() / targets, forest.width());
        let together = forest.together(count, threads(resources));
        let benches = Benches::new(scratch, width * together.min(count));
        let unit = targets * size_of::<f64>();
        let cost = (forest.trees() * COST).div_ceil(unit);
        split_by(cast_slice_mut(out), unit * together, cost, resources, |block, out| {
            let mut blocks = cast_slice_mut::<u8, f64>(out).chunks_mut(targets * together).enumerate();
            blocks.try_for_each(|(k, out)| {
                benches.with(|bench| {
                    let keys = bench.get_mut(..out.len() / targets * width).ok_or(Stopped::Misfit)?;
                    let mut lookout = resources.lookout();
                    self.keys((block + k) * together, keys, &mut lookout)?;
                    self.vote(keys, out, &mut lookout)
                })
            })
        })
    }

    /// Writes the keys of some rows from the `first` on.
    fn keys(&self, first: usize, keys: &mut [u64], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        for (k, keys) in keys.chunks_exact_mut(self.forest.width()).enumerate() {
            lookout.after(2 * size_of_val(keys))?;
            let row = (first + k) * self.features..(first + k + 1) * self.features;
            match self.rows {
                Rows::Float(rows) => self.forest.keys(rows.get(row).ok_or(Stopped::Misfit)?, keys),
                Rows::Double(rows) => self.forest.keys(rows.get(row).ok_or(Stopped::Misfit)?, keys),
            }
        }
        Ok(())
    }

    /// Aggregates the votes for some rows.
    fn vote(&self, keys: &[u64], out: &mut [f64], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let &Poll { forest, aggregate, targets, .. } = self;
        let width = forest.width();
        out.fill(match aggregate {
            Aggregate::Sum | Aggregate::Average => 0.0,
            // What a number is compared with, and stays a number.
            Aggregate::Min | Aggregate::Max => f64::NAN,
        });
        if out.len() < targets * LANES {
            // Some trees of a row side by side.
            for (row, out) in out.chunks_exact_mut(targets).enumerate() {
                for roots in forest.roots.chunks(LANES) {
                    let height = roots.iter().map(|(_, height)| *height).max().unwrap_or(0);
                    let mut at = [0; LANES];
                    at.iter_mut().zip(roots).for_each(|(at, (root, _))| *at = *root);
                    forest.walk(keys, &[row * width; LANES], height, &mut at, lookout)?;
                    at.iter().zip(roots).for_each(|(at, _)| forest.add(aggregate, *at, out));
                }
            }
        } else {
            // Some rows of a tree.
            for (root, height) in &forest.roots {
                for (k, out) in out.chunks_mut(targets * LANES).enumerate() {
                    let last = out.len() / targets - 1;
                    let starts = std::array::from_fn(|lane| (k * LANES + lane.min(last)) * width);
                    let mut at = [*root; LANES];
                    forest.walk(keys, &starts, *height, &mut at, lookout)?;
                    at.iter().zip(out.chunks_exact_mut(targets)).for_each(|(at, out)| forest.add(aggregate, *at, out));
                }
            }
        }
        match aggregate {
            Aggregate::Sum => {}
            Aggregate::Average => out.iter_mut().for_each(|sum| *sum /= forest.trees() as f64),
            Aggregate::Min | Aggregate::Max => {
                out.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = 0.0)
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_threads;

    /// As the standard says it: the leaf that a row leads to.
    fn leaf(forest: &Forest, root: Child, row: &[f64]) -> usize {
        let mut at = root;
        loop {
            let node = match at {
                Child::Leaf(leaf) => return leaf,
                Child::Node(node) => forest.nodes[node],
            };
            let x = row[node.feature];
            let passes = match node.test {
                _ if x.is_nan() => node.nan,
                Test::AtMost => x <= node.value,
                Test::Below => x < node.value,
                Test::AtLeast => x >= node.value,
                Test::Above => x > node.value,
                Test::Equal => x == node.value,
                Test::Unequal => x != node.value,
                Test::Member => forest.sets[node.value as usize].contains(&x),
            };
            at = node.children[usize::from(!passes)];
        }
    }

    /// The sums of all votes, tree by tree.
    fn sums(forest: &Forest, rows: &[f64], features: usize, targets: usize) -> Vec<f64> {
        let of_row = |row: &[f64]| {
            let mut sums = vec![0.0; targets];
            for root in &forest.roots {
                for vote in &forest.votes[forest.leaves[leaf(forest, *root, row)].clone()] {
                    sums[vote.target] += vote.weight;
                }
            }
            sums
        };
        rows.chunks(features).flat_map(of_row).collect()
    }

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

    fn run(forest: Forest, aggregate: Aggregate, rows: Rows<'_>, sizes: [usize; 3], threads: usize) -> Vec<f64> {
        let ([count, features, targets], forest) = (sizes, Packed::of(forest).unwrap());
        let poll = Poll { forest: &forest, aggregate, rows, features, targets };
        let mut out = vec![f64::NAN; count * targets];
        let resources = Resources { threads, stop: None };
        on_threads(threads, || {
            let mut scratch = vec![u64::MAX; poll.scratch(count, resources)];
            poll.run(&mut out, &mut scratch, resources)
        })
        .unwrap();
        out
    }

    #[test]
    fn votes_are_aggregated() {
        let rows = [1.0, 9.0, 2.0, 5.0, 2.0, 4.0, 2.0, f64::NAN, f64::NAN, 5.0];
        let run = |aggregate, rows: &[f64], threads| {
            run(forest(), aggregate, Rows::Double(rows), [rows.len() / 2, 2, 2], threads)
        };
        let sums = run(Aggregate::Sum, &rows, 1);
        assert_eq!(sums, [1.5, 0.0, 2.5, 0.0, 4.5, 8.0, 2.5, 0.0, 2.5, 0.0]);
        assert_eq!(run(Aggregate::Average, &rows, 1)[..2], [0.75, 0.0]);
        assert_eq!(run(Aggregate::Min, &rows, 1)[4..6], [0.5, 8.0]);
        assert_eq!(run(Aggregate::Max, &rows, 1)[..4], [1.0, 0.0, 2.0, 0.0]);
        let many = rows.repeat(500);
        assert_eq!(run(Aggregate::Sum, &many, 3), sums.repeat(500));
    }

    /// The sign of a zero is that of the first one.
    #[test]
    fn zeros_of_either_sign() {
        for aggregate in [Aggregate::Min, Aggregate::Max] {
            for first in [0.0f64, -0.0] {
                let forest = Forest {
                    nodes: vec![],
                    roots: vec![Child::Leaf(0), Child::Leaf(1)],
                    leaves: vec![0..1, 1..2],
                    votes: [first, -first].map(|weight| Vote { target: 0, weight }).to_vec(),
                    sets: vec![],
                };
                let got = run(forest, aggregate, Rows::Double(&[1.0]), [1, 1, 1], 1);
                assert_eq!(got[0].to_bits(), first.to_bits(), "{aggregate:?}");
            }
        }
    }

    const SPECIAL: [f64; 12] = [
        f64::NAN,
        f64::NEG_INFINITY,
        f64::MIN,
        -1.0,
        -f64::MIN_POSITIVE,
        -0.0,
        0.0,
        5e-324,
        1.0,
        1.0 + f64::EPSILON,
        f64::MAX,
        f64::INFINITY,
    ];
    const TESTS: [Test; 7] =
        [Test::AtMost, Test::Below, Test::AtLeast, Test::Above, Test::Equal, Test::Unequal, Test::Member];

    /// Each test of each special number by each other one, wherever NaN goes.
    #[test]
    fn comparisons() {
        let sets = [vec![], vec![0.0], vec![1.0, f64::INFINITY, -1.0]];
        for test in TESTS {
            let values = if test == Test::Member { &[0.0, 1.0, 2.0, 3.0][..] } else { &SPECIAL };
            for (value, nan) in values.iter().flat_map(|value| [(value, false), (value, true)]) {
                let forest = || Forest {
                    nodes: vec![Node { nan, ..node(0, test, *value, [Child::Leaf(0), Child::Leaf(1)]) }],
                    roots: vec![Child::Node(0)],
                    leaves: vec![0..1, 1..2],
                    votes: vec![Vote { target: 0, weight: 1.0 }, Vote { target: 0, weight: 2.0 }],
                    sets: sets.iter().cloned().chain([vec![]]).collect(),
                };
                let want = sums(&forest(), &SPECIAL, 1, 1);
                let got = run(forest(), Aggregate::Sum, Rows::Double(&SPECIAL), [12, 1, 1], 1);
                assert_eq!(got, want, "{test:?} {value} {nan}");
            }
        }
    }

    /// Numbers that are different at each call.
    fn random(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) as usize % below
    }

    /// Trees of any shape, whose nodes and leaves may be shared; few and many rows; as floats and as doubles.
    #[test]
    fn forests() {
        let mut state = 1;
        for (trees, nodes, features, targets) in [(1, 1, 1, 1), (3, 20, 4, 1), (20, 7, 3, 3), (9, 60, 30, 2)] {
            let mut forest = Forest { sets: vec![vec![2.0, 0.5], vec![]], ..Forest::default() };
            for leaf in 0..nodes {
                forest.leaves.push(forest.votes.len()..forest.votes.len() + leaf % 3);
                for _ in 0..leaf % 3 {
                    let weight = random(&mut state, 1000) as f64 * 0.1;
                    forest.votes.push(Vote { target: random(&mut state, targets), weight });
                }
            }
            for tree in 0..trees {
                let first = forest.nodes.len();
                for k in 0..nodes {
                    // Chains and bushes: a child is a later node, or a leaf.
                    let child =
                        |state: &mut u64| match first + k + 1 + random(state, if tree % 2 == 0 { 2 } else { nodes }) {
                            node if node < first + nodes => Child::Node(node),
                            _ => Child::Leaf(random(state, nodes)),
                        };
                    let children = [child(&mut state), child(&mut state)];
                    let test = TESTS[random(&mut state, 7)];
                    let value = if test == Test::Member { 0.0 } else { random(&mut state, 9) as f64 * 0.5 - 1.0 };
                    let nan = random(&mut state, 2) == 0;
                    forest.nodes.push(Node { nan, ..node(random(&mut state, features), test, value, children) });
                }
                forest.roots.push(if tree == 2 { Child::Leaf(1 % nodes) } else { Child::Node(first) });
            }
            let parts = |forest: &Forest| Forest {
                nodes: forest.nodes.clone(),
                roots: forest.roots.clone(),
                leaves: forest.leaves.clone(),
                votes: forest.votes.clone(),
                sets: forest.sets.clone(),
            };
            for count in [0, 1, 7, 8, 9, 100, 2500] {
                let number = |state: &mut u64| [f64::NAN, -0.0][random(state, 2)];
                let rows: Vec<f64> = (0..count * features)
                    .map(|_| match random(&mut state, 12) {
                        at @ 0..9 => at as f64 * 0.5 - 1.0,
                        _ => number(&mut state),
                    })
                    .collect();
                let narrow: Vec<f32> = rows.iter().map(|x| *x as f32).collect();
                let want = sums(&forest, &rows, features, targets);
                for threads in [1, 3] {
                    for rows in [Rows::Float(&narrow), Rows::Double(&rows)] {
                        let sizes = [count, features, targets];
                        let got = run(parts(&forest), Aggregate::Sum, rows, sizes, threads);
                        assert!(got.iter().zip(&want).all(|(got, want)| got.to_bits() == want.to_bits()));
                    }
                }
            }
        }
    }

    /// Nodes that many lead to take one place for each, not one for each way.
    #[test]
    fn shared_nodes_take_little() {
        let nodes = (0..100).map(|k| node(0, Test::AtMost, 0.0, [Child::Node(k + 1); 2]));
        let nodes = nodes.chain([node(0, Test::AtMost, 0.0, [Child::Leaf(0); 2])]).collect();
        let forest = Forest { nodes, roots: vec![Child::Node(0); 2], ..Forest::default() };
        assert_eq!(Packed::of(forest).unwrap().places.len(), 2 + 2 * 101);
    }

    #[test]
    fn circles_are_found() {
        assert!(Packed::of(forest()).is_some());
        for (from, to) in [(1, 0), (0, 0), (1, 1)] {
            let mut forest = forest();
            forest.nodes[from].children[0] = Child::Node(to);
            assert!(Packed::of(forest).is_none(), "{from} to {to}");
        }
    }
}
