//! Sums of products of tensors over labels that they share: the steps of Einsum, each a product of matrices.

use super::einsum::Index;
use crate::ops::prelude::*;
use kernels::copy::{Axis as Along, Map, Source, copy};
use kernels::gemm::Right;

/// What runs along a dimension: an index, and for an ellipsis which of its dimensions, from the last on.
pub(super) type Label = (Index, usize);

/// A dimension that is read along a label.
#[derive(Debug, Clone, Copy)]
struct Labelled {
    label: Label,
    size: usize,
    stride: usize,
}

/// A tensor with labelled dimensions. Those of size 1 are left out: they are the same for all coordinates of a label.
#[derive(Debug)]
pub(super) struct Term {
    tensor: Tensor,
    dims: Vec<Labelled>,
}

impl Term {
    /// Along a label that is repeated, the elements of a diagonal.
    pub(super) fn new(tensor: Tensor, labels: &[Label]) -> Term {
        let (mut dims, mut stride) = (Vec::<Labelled>::new(), 1usize);
        for (label, size) in labels.iter().zip(tensor.shape()).rev() {
            match dims.iter_mut().find(|dim| dim.label == *label) {
                _ if *size == 1 => {}
                Some(dim) => dim.stride = dim.stride.saturating_add(stride),
                None => dims.push(Labelled { label: *label, size: *size, stride }),
            }
            stride = stride.saturating_mul(*size);
        }
        dims.reverse();
        Term { tensor, dims }
    }

    pub(super) fn has(&self, label: Label) -> bool {
        self.find(label).is_some()
    }

    fn find(&self, label: Label) -> Option<Labelled> {
        self.dims.iter().find(|dim| dim.label == label).copied()
    }

    /// Whether the elements are in the order of these labels.
    fn is_ordered(&self, order: &[Labelled]) -> bool {
        let mut stride = 1;
        let next = |dim: &Labelled| {
            let fits = dim.stride == stride;
            stride = stride.saturating_mul(dim.size);
            fits
        };
        order.iter().rev().all(next) && count_of(order) == self.tensor.len()
    }

    /// The elements in the order of some dimensions: those of the tensor, or a copy.
    fn ordered(&self, call: &Call<'_>, order: &[Labelled]) -> Result<Tensor> {
        if self.is_ordered(order) {
            return Ok(self.tensor.clone());
        }
        let (count, dtype) = (count_of(order), self.tensor.dtype());
        call.charge(count as u64)?;
        let mut new = call.kept_of(dtype, count)?;
        let along = |dim: &Labelled| Along { size: dim.size, stride: dim.stride, map: Map::Line { start: 0, step: 1 } };
        let axes: SmallVec<[Along; 6]> = order.iter().map(along).collect();
        let source = Source { data: self.tensor.bytes(), element: dtype.size(), constant: &[] };
        copy(source, &axes, new.bytes_mut(), call.resources())?;
        Ok(new.finish())
    }

    /// The elements in one of two orders, and whether it is the second: as they are, or else in the one along whose last
    /// dimension neighbours are copied.
    fn laid(&self, call: &Call<'_>, [straight, turned]: [Vec<Labelled>; 2]) -> Result<(Tensor, bool)> {
        let follows = || self.is_ordered(&turned) || turned.last().is_some_and(|dim| dim.stride == 1);
        let is_turned = !self.is_ordered(&straight) && follows();
        Ok((self.ordered(call, if is_turned { &turned } else { &straight })?, is_turned))
    }

    /// The elements in the order of labels. It may lack some, whose size is 1.
    pub(super) fn finish(&self, call: &Call<'_>, order: &[Label]) -> Result<Tensor> {
        let order: Vec<Labelled> = order.iter().filter_map(|label| self.find(*label)).collect();
        self.ordered(call, &order)
    }

    /// Adds up the elements along all labels but those to keep: a product with ones.
    pub(super) fn summed(
        self,
        call: &Call<'_>,
        keep: &dyn Fn(Label) -> bool,
        multiplied: &Multiplied<'_>,
    ) -> Result<Term> {
        let (kept, gone): (Vec<Labelled>, Vec<Labelled>) = self.dims.iter().partition(|dim| keep(dim.label));
        if gone.is_empty() {
            return Ok(self);
        }
        let sizes = Sizes { count: 1, m: count_of(&kept), k: count_of(&gone), n: 1, turned: [false; 2] };
        let elements = self.ordered(call, &[&*kept, &gone].concat())?;
        Ok(Term { tensor: multiplied(&elements, None, sizes)?, dims: packed(kept) })
    }

    /// The product with another term, added up along the labels that both have and that aren't kept.
    pub(super) fn times(
        self,
        other: Term,
        call: &Call<'_>,
        keep: &dyn Fn(Label) -> bool,
        multiplied: &Multiplied<'_>,
    ) -> Result<Term> {
        let shared = |label| self.find(label).is_some() && other.find(label).is_some();
        let of = |term: &Term, part: &dyn Fn(Label) -> bool| -> Vec<Labelled> {
            term.dims.iter().filter(|dim| part(dim.label)).copied().collect()
        };
        let (batch, summed) = (|label| shared(label) && keep(label), |label| shared(label) && !keep(label));
        let (rows, columns) = (of(&self, &|label| !shared(label)), of(&other, &|label| !shared(label)));
        let (a_batch, a_summed) = (of(&self, &batch), of(&self, &summed));
        let in_other = |dims: &[Labelled]| dims.iter().filter_map(|dim| other.find(dim.label)).collect::<Vec<_>>();
        let (b_batch, b_summed) = (in_other(&a_batch), in_other(&a_summed));
        let (count, m, k, n) = (count_of(&a_batch), count_of(&rows), count_of(&a_summed), count_of(&columns));
        let orders = |batch: &[Labelled], [first, second]: [&[Labelled]; 2]| {
            [[batch, first, second].concat(), [batch, second, first].concat()]
        };
        let (a, a_turned) = self.laid(call, orders(&a_batch, [&rows, &a_summed]))?;
        let (b, b_turned) = other.laid(call, orders(&b_batch, [&b_summed, &columns]))?;
        let sizes = Sizes { count, m, k, n, turned: [a_turned, b_turned] };
        Ok(Term { tensor: multiplied(&a, Some(&b), sizes)?, dims: packed([a_batch, rows, columns].concat()) })
    }
}

/// Products of `count` matrices of `m * k` elements by as many of `k * n`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    count: usize,
    m: usize,
    k: usize,
    n: usize,
    /// Whether the left and the right ones are transposed.
    turned: [bool; 2],
}

/// [`product`] of a type.
pub(super) type Multiplied<'a> = dyn Fn(&Tensor, Option<&Tensor>, Sizes) -> Result<Tensor> + 'a;

/// The products of the matrices of two tensors, or of the left ones with a matrix of ones.
pub(super) fn product<S: Multiply>(
    call: &Call<'_>,
    one: S,
    a: &Tensor,
    b: Option<&Tensor>,
    Sizes { count, m, k, n, turned: [a_turned, b_turned] }: Sizes,
) -> Result<Tensor> {
    let len = count.checked_mul(m).and_then(|len| len.checked_mul(n));
    let mut output = call.kept::<S>(len.unwrap_or(usize::MAX))?;
    let (ones, batch) = ([one], [Batch { size: count, a: m.saturating_mul(k), b: k.saturating_mul(n) }]);
    let view = |elements, across, turned, down| match turned {
        true => View::rows(elements, down).transposed(),
        false => View::rows(elements, across),
    };
    let left = view(a.as_slice::<S>()?, k, a_turned, m);
    let (right, batch) = match b {
        Some(b) if [m, k, n] == [1; 3] => {
            elementwise::<S>(call, [a.bytes(), b.bytes()], output.elements_mut()?)?;
            return Ok(output.finish());
        }
        Some(b) => (view(b.as_slice::<S>()?, n, b_turned, k), batch.as_slice()),
        None => (View::new(&ones, 0, 0), [].as_slice()),
    };
    let product = Product::<S> { m, k, n, a: Left::View(left), b: Right::View(right), batch, epilogue: &[] };
    multiply(call, product, output.elements_mut()?)?;
    Ok(output.finish())
}

/// The product of each two elements, as that of many matrices of one element each.
fn elementwise<S: Multiply>(call: &Call<'_>, [a, b]: [&[u8]; 2], out: &mut [S]) -> Result<()> {
    const BLOCK: usize = 256;
    let zero = <S::Sum as kernels::gemm::Number>::ZERO;
    call.charge(out.len() as u64)?;
    kernels::each(cast_slice_mut(out), BLOCK * size_of::<S>(), call.resources(), |at, out| {
        let from = at * BLOCK * size_of::<S>();
        let (mut sums, mut factors) = ([zero; BLOCK], [zero; BLOCK]);
        for (room, elements) in [(&mut sums, a), (&mut factors, b)] {
            let room = room.get_mut(..out.len() / size_of::<S>()).unwrap_or(&mut []);
            S::widen(elements.get(from..from + out.len()).unwrap_or(&[]), room);
        }
        sums.iter_mut()
            .zip(factors)
            .for_each(|(sum, factor)| *sum = kernels::gemm::Number::mul_add(*sum, factor, zero));
        S::narrow(sums.get(..out.len() / size_of::<S>()).unwrap_or(&[]), cast_slice_mut(out));
    })?;
    Ok(())
}

/// The elements of some dimensions.
fn count_of(dims: &[Labelled]) -> usize {
    kernels::volume(1, dims.iter().map(|dim| &dim.size))
}

/// Dimensions of a new tensor in row-major order.
fn packed(mut dims: Vec<Labelled>) -> Vec<Labelled> {
    let mut stride = 1usize;
    for dim in dims.iter_mut().rev() {
        dim.stride = stride;
        stride = stride.saturating_mul(dim.size);
    }
    dims
}
