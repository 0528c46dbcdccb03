//! Joins a convolution and what scales its channels then, as batch norms do that were frozen: sums are scaled before they are
//! stored.

use super::fuse::Fusion;
use super::lines::{Plans, windows};
use super::{Readers, fact};
use crate::dtype::DType;
use crate::graph::draft::{Draft, DraftNode, Id};
use crate::operator::{Chain, How, Laid, Layout, Scaling, Tail};
use crate::value::{Dim, Fact};
use smallvec::SmallVec;
use std::sync::Arc;

/// Takes nodes that become one from the plans.
pub(super) fn scaled(plans: &mut Plans, draft: &Draft, readers: &Readers) -> Vec<Fusion> {
    let all = (0..draft.nodes.len()).filter_map(|at| {
        let Joined { first, inputs, how, layout } = Joined::of(at, plans, draft, readers)?;
        for at in [first, at] {
            *plans.get_mut(at)? = None;
        }
        Some(Fusion { nodes: [first, at].into_iter().collect(), inputs, operator: Box::new(Laid { how, layout }) })
    });
    all.collect()
}

/// A convolution and a chain that can become one: the place of the first, and what they are then.
struct Joined {
    first: usize,
    inputs: SmallVec<[Id; 4]>,
    how: How,
    layout: Layout,
}

impl Joined {
    fn of(at: usize, plans: &Plans, draft: &Draft, readers: &Readers) -> Option<Joined> {
        let (how, own) = plans.get(at)?.as_ref()?;
        let chain = match how {
            How::GatedChain(chain) => chain.clone(),
            How::Gated(operator) => Chain::of_two(operator.clone())?,
            _ => return None,
        };
        let node = draft.nodes.get(at)?;
        (0..chain.inputs()).find_map(|image| {
            let between = (*node.inputs.get(image)?)?;
            let first = readers.producer(between).filter(|_| readers.only_reader(between) == Some(at))?;
            let seen = windows(first, plans).filter(|seen| seen.tail.is_none())?;
            let channels = seen.layout.output?;
            let of_channels = |k: usize| own.input(k).is_none() && count(k, node, draft) == Some(channels);
            let Scaling { scale, steps, beside } = chain.scaling(image, of_channels)?;
            if beside.iter().any(|k| own.input(*k).is_none()) {
                return None;
            }
            // Inputs of the chain follow those of the convolution, without the image between them.
            let before = &draft.nodes.get(first)?.inputs;
            let place = |k: usize| before.len() + k - usize::from(k > image);
            let operator = seen.operator.scaled(before.len())?;
            let (scale, beside) = (scale.map(|k| k.map(place)), beside.into_iter().map(place).collect());
            let tail = Tail { dtype: DType::Float, bias: None, scale, steps, beside };
            let others = |k: &usize| *k != image;
            let inputs = (0..chain.inputs()).filter(others).map(|k| node.inputs.get(k).copied().flatten());
            let layouts = (0..chain.inputs()).filter(others).map(|k| own.input(k));
            Some(Joined {
                first,
                inputs: before.iter().copied().chain(inputs).collect::<Option<_>>()?,
                how: How::Windows(operator, Some(Arc::new(tail))),
                layout: Layout {
                    inputs: seen.layout.inputs.iter().copied().chain(layouts).collect(),
                    output: own.output,
                },
            })
        })
    }
}

/// The elements of an input, if they are known.
fn count(k: usize, node: &DraftNode, draft: &Draft) -> Option<usize> {
    let dims = node.inputs.get(k).copied().flatten().and_then(|id| fact(id, draft)).and_then(Fact::dims)?;
    dims.iter().try_fold(1usize, |count, dim| match dim {
        Dim::Fixed(size) => count.checked_mul(*size),
        _ => None,
    })
}
