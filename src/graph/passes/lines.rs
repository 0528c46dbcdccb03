//! Joins a convolution of single places and the windows of each channel that follow it: one node computes the image between
//! them line by line.

use super::fuse::Fusion;
use super::{Readers, fact};
use crate::graph::draft::{Draft, Id};
use crate::operator::{How, Laid, Layout, Tail, Windowed};
use crate::value::{Dim, Fact};
use kernels::gemm::blocks::COLUMNS;
use std::sync::Arc;

/// Bytes of an image from which on it doesn't stay in a usual second cache, beside what is computed of it. Those of tests are
/// small.
const LARGE: usize = if cfg!(test) { 1 << 11 } else { 3 << 17 };

/// For each node, how it runs with values in blocks; `None` if it doesn't.
pub(super) type Plans = [Option<(How, Layout)>];

/// Takes nodes that become one from the plans.
pub(super) fn joined(plans: &mut Plans, draft: &Draft, readers: &Readers) -> Vec<Fusion> {
    let all = (0..draft.nodes.len()).filter_map(|at| {
        let joined = Joined::of(at, plans, draft, readers)?;
        let [first, second] = [joined.first, at].map(|at| plans.get_mut(at).and_then(Option::take));
        let ((_, mut layout), (How::Windows(_, tail), own)) = (first?, second?) else { return None };
        layout.inputs.extend(own.inputs.into_iter().skip(1));
        layout.output = own.output;
        let [first, second] = [joined.first, at].map(|at| draft.nodes.get(at));
        Some(Fusion {
            nodes: [joined.first, at].into_iter().collect(),
            inputs: first?.inputs.iter().chain(second?.inputs.iter().skip(1)).flatten().copied().collect(),
            operator: Box::new(Laid { how: How::Windows(joined.operator, tail), layout }),
        })
    });
    all.collect()
}

/// Two nodes that can become one: the place of the first, and the operator.
struct Joined {
    first: usize,
    operator: Arc<dyn Windowed>,
}

impl Joined {
    fn of(at: usize, plans: &Plans, draft: &Draft, readers: &Readers) -> Option<Joined> {
        let own = windows(at, plans)?;
        let node = draft.nodes.get(at)?;
        let between = (*node.inputs.first()?)?;
        let first = readers.producer(between).filter(|_| readers.only_reader(between) == Some(at))?;
        let product = windows(first, plans)?;
        let reads_blocks = product.layout.input(0).is_some() && product.layout.output.is_some();
        let mut tails = [own.tail, product.tail].into_iter().flatten();
        let alone = tails.all(|tail| tail.beside.is_empty() && tail.bias.is_none());
        if !reads_blocks || !alone || !is_large(between, draft) || !is_narrow((*node.outputs.first()?)?, draft) {
            return None;
        }
        let pointwise = product.operator.pointwise(draft.nodes.get(first)?.inputs.len())?;
        let operator = own.operator.of_products(node.inputs.len(), pointwise, product.tail.cloned())?;
        Some(Joined { first, operator })
    }
}

/// Windows that a node shows.
pub(super) struct Seen<'a> {
    pub(super) operator: &'a dyn Windowed,
    pub(super) tail: Option<&'a Arc<Tail>>,
    pub(super) layout: &'a Layout,
}

pub(super) fn windows(at: usize, plans: &Plans) -> Option<Seen<'_>> {
    match plans.get(at)? {
        Some((How::Windows(operator, tail), layout)) => {
            Some(Seen { operator: &**operator, tail: tail.as_ref(), layout })
        }
        _ => None,
    }
}

/// Whether writing an image and reading it again takes longer than computing it where it is read.
fn is_large(id: Id, draft: &Draft) -> bool {
    let sizes = |dims: &[Dim]| dims.iter().skip(1).map(Dim::fixed).map(|size| usize::try_from(size?).ok()).collect();
    let sizes: Option<Vec<usize>> = fact(id, draft).and_then(Fact::dims).and_then(sizes);
    sizes.is_some_and(|sizes| sizes.into_iter().fold(size_of::<f32>(), usize::saturating_mul) >= LARGE)
}

/// Whether the lines of an image are computed once.
fn is_narrow(id: Id, draft: &Draft) -> bool {
    matches!(fact(id, draft).and_then(Fact::dims), Some([.., Dim::Fixed(columns)]) if *columns <= COLUMNS)
}
