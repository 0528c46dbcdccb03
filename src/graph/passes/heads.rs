//! Finds the tensors that hold the queries, keys and values of attention, before nodes transpose, repeat or scale them.

use super::{Readers, aligns_last, constant, dtype, fact};
use crate::graph::draft::{Draft, DraftNode, Id};
use crate::operator::{Attribute, HeadsIn, Made};
use crate::tensor::Scalar;
use crate::value::Dim;
use smallvec::{SmallVec, smallvec};

/// Nodes that only attention reads.
type Nodes = SmallVec<[usize; 8]>;

/// Maximum number of nodes between a matrix and where it is found.
const MOST: usize = 8;

/// Traces queries, keys and values back through Transpose, Reshape, Expand and factors to the tensors that hold them.
pub(super) struct Walk<'a> {
    pub(super) draft: &'a Draft,
    pub(super) readers: &'a Readers,
}

/// A value times a factor.
pub(super) struct Multiplied {
    pub(super) of: Id,
    pub(super) factor: Option<f64>,
    pub(super) nodes: Nodes,
}

/// The value that holds the matrices of another one, and where in it they are.
pub(super) struct Held {
    pub(super) of: Id,
    /// `None` if it is the same value.
    pub(super) heads: Option<HeadsIn>,
    pub(super) nodes: Nodes,
}

impl Held {
    pub(super) fn group(&self) -> usize {
        self.heads.as_ref().map_or(1, |heads| heads.group)
    }
}

/// A part of a dimension: an axis of the value that it comes from, or a repetition.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    dim: Dim,
    axis: Option<usize>,
}

/// The parts of each dimension; none for a size of 1.
type Parts = Vec<SmallVec<[Part; 2]>>;

impl Walk<'_> {
    /// The node that makes a value, which one node reads.
    fn maker(&self, id: Id) -> Option<(usize, &DraftNode)> {
        let at = self.readers.producer(id).filter(|_| self.readers.count(id) == 1)?;
        let node = self.draft.nodes.get(at)?;
        let plain = matches!(node.operator, Some(Made::Plain(_) | Made::Rowwise(_))) && !node.open && aligns_last(node);
        (plain && node.standard().is_some() && node.outputs.len() == 1).then_some((at, node))
    }

    fn dims(&self, id: Id) -> Option<&[Dim]> {
        fact(id, self.draft)?.dims()
    }

    /// What a value is made of, if it is multiplied by a constant.
    pub(super) fn factor(&self, id: Id) -> Multiplied {
        self.multiplied(id).unwrap_or(Multiplied { of: id, factor: None, nodes: Nodes::new() })
    }

    fn multiplied(&self, id: Id) -> Option<Multiplied> {
        let (at, node) = self.maker(id).filter(|(_, node)| node.standard() == Some("Mul"))?;
        let [Some(a), Some(b)] = *node.inputs else { return None };
        let number = |id: Id| {
            let one = constant(id, self.draft).filter(|one| one.len() == 1)?;
            match one.scalars().next()? {
                Scalar::Float(number) => Some(f64::from(number)),
                Scalar::Double(number) => Some(number),
                _ => None,
            }
        };
        let (of, factor) = number(b).map(|factor| (a, factor)).or_else(|| number(a).map(|factor| (b, factor)))?;
        // A constant of more dimensions would give more.
        let same = self.dims(of).is_some() && self.dims(of) == self.dims(id);
        (same && dtype(of, self.draft) == dtype(id, self.draft)).then(|| Multiplied {
            of,
            factor: Some(factor),
            nodes: smallvec![at],
        })
    }

    /// Where the matrices of a value are, as far from it as they are found. Heads are repeated if `repeated` says so.
    pub(super) fn heads(&self, id: Id, repeated: bool) -> Held {
        let (mut ids, mut nodes): (SmallVec<[Id; 8]>, Nodes) = (smallvec![id], Nodes::new());
        let moves = |node: &DraftNode| match node.standard() {
            Some("Transpose" | "Reshape" | "Squeeze" | "Unsqueeze") => true,
            Some("Expand") => repeated,
            _ => false,
        };
        while nodes.len() < MOST
            && let Some((at, node)) = ids.last().and_then(|id| self.maker(*id)).filter(|(_, node)| moves(node))
            && let Some(before) = node.inputs.first().copied().flatten()
        {
            nodes.push(at);
            ids.push(before);
        }
        let heads = |count: usize| {
            let (of, nodes) = (*ids.get(count)?, nodes.get(..count)?);
            let turns = |at: &usize| {
                self.draft.nodes.get(*at).is_some_and(|node| matches!(node.standard(), Some("Transpose" | "Expand")))
            };
            // What isn't moved need not be found elsewhere.
            nodes.iter().find(|at| turns(at))?;
            Some(Held { of, heads: Some(self.found(of, id, nodes)?), nodes: nodes.into() })
        };
        let found = (1..ids.len()).rev().find_map(heads);
        found.unwrap_or(Held { of: id, heads: None, nodes: Nodes::new() })
    }

    /// Where the matrices of a value are in the one that nodes make it of; the last of these comes first.
    fn found(&self, of: Id, id: Id, nodes: &[usize]) -> Option<HeadsIn> {
        let dims = self.dims(of)?;
        let size = |dim: &Dim| if let Dim::Fixed(size) = dim { Some(*size) } else { None };
        let part = |(axis, dim): (usize, &Dim)| match dim {
            Dim::Fixed(1) => SmallVec::new(),
            _ => smallvec![Part { dim: dim.clone(), axis: Some(axis) }],
        };
        let mut parts: Parts = dims.iter().enumerate().map(part).collect();
        for at in nodes.iter().rev() {
            let node = self.draft.nodes.get(*at)?;
            let [Some(output)] = *node.outputs else { return None };
            parts = moved(parts, node, self.dims(output)?)?;
        }
        let rank = self.dims(id)?.len();
        let at =
            |from_end: usize| rank.checked_sub(from_end).and_then(|at| parts.get(at)).map_or(&[][..], |parts| parts);
        let axis = |parts: &[Part]| match parts {
            [] => Some(None),
            [Part { axis: Some(axis), .. }] => Some(Some(*axis)),
            _ => None,
        };
        let (heads, group) = match at(3) {
            [before @ .., Part { axis: None, dim: Dim::Fixed(group) }] => (before, *group),
            parts => (parts, 1),
        };
        let axes = [axis(at(4))?, axis(heads)?, axis(at(2))?, axis(at(1))?];
        (2..=4).contains(&rank).then(|| HeadsIn { sizes: dims.iter().map(size).collect(), rank, axes, group })
    }

    /// The node that puts the heads of each query side by side, if it alone reads a value.
    pub(super) fn turned(&self, id: Id) -> Option<usize> {
        let at = self.readers.only_reader(id)?;
        let node = self.draft.nodes.get(at).filter(|node| node.standard() == Some("Transpose"))?;
        let own = node.inputs.first() == Some(&Some(id));
        let plain = node.operator.as_ref().is_some_and(|made| made.plain().is_some()) && !node.open;
        (own && plain && order(node, self.dims(id)?.len())? == [0, 2, 1, 3]).then_some(at)
    }
}

/// The order of a Transpose.
fn order(node: &DraftNode, rank: usize) -> Option<Vec<usize>> {
    let given = node.attributes.iter().find_map(|(name, value)| match value {
        Attribute::Ints(order) if name == "perm" => Some(order),
        _ => None,
    });
    match given {
        Some(order) => order.iter().map(|axis| usize::try_from(*axis).ok()).collect(),
        None => Some((0..rank).rev().collect()),
    }
}

/// The parts of the output of a node, which has these dimensions, of those of its input.
fn moved(parts: Parts, node: &DraftNode, dims: &[Dim]) -> Option<Parts> {
    if node.standard() == Some("Transpose") {
        return order(node, parts.len())?.iter().map(|axis| parts.get(*axis).cloned()).collect();
    }
    // Sizes that aren't known may be others in a run than names say.
    let fixed = |dim: &Dim| matches!(dim, Dim::Fixed(_));
    if !dims.iter().chain(parts.iter().flatten().map(|part| &part.dim)).all(fixed) {
        return None;
    }
    if node.standard() == Some("Expand") {
        let repeat = |(parts, dim): (&SmallVec<[Part; 2]>, &Dim)| match &**parts {
            [] if *dim != Dim::Fixed(1) => Some(smallvec![Part { dim: dim.clone(), axis: None }]),
            [Part { dim: own, .. }] if own != dim => None,
            _ => Some(parts.clone()),
        };
        return (parts.len() == dims.len()).then(|| parts.iter().zip(dims).map(repeat).collect())?;
    }
    let mut rest = parts.into_iter().flatten();
    let size = |dim: &Dim| if let Dim::Fixed(size) = dim { *size } else { 0 };
    let mut joined = |dim: &Dim| {
        let (mut parts, mut product) = (SmallVec::new(), 1usize);
        while product < size(dim) {
            let part = rest.next()?;
            product = product.checked_mul(size(&part.dim))?;
            parts.push(part);
        }
        (product == size(dim)).then_some(parts)
    };
    let joined = dims.iter().map(&mut joined).collect::<Option<Parts>>()?;
    rest.next().is_none().then_some(joined)
}
