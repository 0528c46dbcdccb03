//! Attention as it is written with products and a softmax, for a few queries at a time.

use crate::ops::prelude::*;
use kernels::attention::{Attention, Bias, Heads, Layout, Numbers, Scale, Sight, Written};

impl Fused for Weighing {
    fn fits(&self, call: &Call<'_>) -> bool {
        self.extent(call).is_some()
    }
}

impl Operator for Weighing {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        match self.dtype {
            DType::Float => self.weigh::<f32>(call),
            DType::Double => self.weigh::<f64>(call),
            other => Err(Error::bug(&format!("attention of {other}"))),
        }
    }
}

impl Weighing {
    /// The inputs after queries, keys and values: the scale, the bias, and what NaN becomes.
    fn others(&self) -> [Option<usize>; 3] {
        let mut next = 3..;
        [self.scale.is_some(), self.bias, self.nan].map(|is_there| if is_there { next.next() } else { None })
    }

    /// What the inputs are, if the nodes can't fail, and have something to compute.
    fn extent(&self, call: &Call<'_>) -> Option<Extent> {
        let shape = |k: usize| Some(call.tensor(k).ok().filter(|tensor| tensor.dtype() == self.dtype)?.shape());
        let [q, k, v] = [0, 1, 2].map(|at| Matrices::of(shape(at)?, self.heads.get(at)?.as_ref()));
        let [q, k, v] = [q?, k?, v?];
        let ([.., queries, size], [.., keys, value_size]) = (q.sizes, v.sizes);
        // The keys may be the columns of their matrix, or the rows of one that was transposed.
        let key_rows = !k.has_rows() && k.transposed().has_rows();
        if !q.has_rows() || !v.has_rows() || !(k.has_rows() || key_rows) || !k.sizes.ends_with(&[size, keys]) {
            return None;
        }
        let joined = |a: usize, b: usize| if a == 1 { Some(b) } else { Some(a).filter(|_| a == b || b == 1) };
        let [(q_batch, q_heads), (k_batch, k_heads), (v_batch, v_heads)] = [q, k, v].map(|own| own.outer());
        let (of_batches, of_heads) = (joined(q_batch, k_batch)?, joined(q_heads, k_heads)?);
        let (batch, heads) = (joined(of_batches, v_batch)?, joined(of_heads, v_heads)?);
        let group = k.group.max(v.group);
        let same = q.group == 1 && k.group == v.group && [q_heads, k_heads, v_heads] == [heads; 3];
        let scores = [of_batches, of_heads, queries, keys];
        let part = |own: &[usize]| {
            let fits = |(own, dim): (&usize, &usize)| own == dim || *own == 1;
            own.len() <= q.rank.max(k.rank) && own.iter().rev().zip(scores.iter().rev()).all(fits)
        };
        let is_one = |k: usize| shape(k).is_some_and(|own| part(own) && own.iter().all(|dim| *dim == 1));
        let is_part = |k: usize| shape(k).is_some_and(part);
        let [scale, bias, nan] = self.others();
        let others = scale.is_none_or(is_one) && nan.is_none_or(is_one) && bias.is_none_or(is_part);
        let rank = q.rank.max(k.rank).max(v.rank);
        if !others || group > 1 && !same || self.turned && rank != 4 {
            return None;
        }
        let sizes = kernels::attention::Sizes { batch, heads: heads / group, group, queries, keys, size, value_size };
        let written = [batch, heads, queries, value_size];
        let row = |heads: usize| heads * value_size;
        let (shape, out) = match self.turned {
            true => ([batch, queries, heads, value_size], [row(queries * heads), row(1), row(heads)]),
            false => (written, [row(heads * queries), row(queries), row(1)]),
        };
        let [batch, head, row] = out;
        let shape = Shape::from_slice(shape.get(4 - rank..)?);
        let out = Layout { batch, head, row };
        (written.iter().all(|size| *size > 0) && keys > 0 && size > 0).then_some(Extent {
            shape,
            sizes,
            q: q.layout(),
            k: if key_rows { k.transposed().layout() } else { k.layout() },
            v: v.layout(),
            key_rows,
            out,
        })
    }

    fn weigh<T: Numbers + Element>(&self, call: &Call<'_>) -> Result<Values> {
        let of = self.extent(call).ok_or_else(|| Error::bug("attention of other shapes"))?;
        let mut output = call.output::<T>(&of.shape)?;
        let heads =
            |k: usize, layout: Layout| Ok::<_, Error>(Heads { elements: call.tensor(k)?.as_slice::<T>()?, layout });
        let [scale, bias, nan] = self.others();
        let one = |k: usize| Ok::<_, Error>(call.tensor(k)?.as_slice::<T>()?.first().copied());
        let bias = bias.map(|k| {
            let shape = call.tensor(k)?.shape();
            let dim = |from_end: usize| dim(shape, from_end);
            let mut rows = heads(k, layout(shape))?;
            // A dimension of size 1 is broadcast.
            rows.layout.row = if dim(2) == 1 { 0 } else { dim(1) };
            Ok::<_, Error>(Bias { rows, column: usize::from(dim(1) > 1), columns: of.sizes.keys })
        });
        let scale = scale.map(one).transpose()?.flatten().zip(self.scale);
        let attention = Attention {
            sizes: of.sizes,
            q: heads(0, of.q)?,
            k: heads(1, of.k)?,
            v: heads(2, of.v)?,
            scale: T::of(1.0),
            softcap: T::of(0.0),
            sight: Sight::default(),
            bias: bias.transpose()?,
            round: None,
            written: Some(Written {
                factors: self.factors.map(|factor| factor.map(T::of)),
                key_rows: of.key_rows,
                scale: scale.map(|(number, scale)| match scale {
                    ScoreScale::Times => Scale::Times(number),
                    ScoreScale::By => Scale::By(number),
                }),
                nan: nan.map(one).transpose()?.flatten(),
            }),
            out: of.out,
        };
        call.charge(attention.work())?;
        let plan = attention.plan(call.resources());
        let mut scratch = call.scratch::<T>(plan.scratch())?;
        plan.run(output.elements_mut()?, None, scratch.elements_mut(), call.resources())?;
        Ok(output.finish().into())
    }
}

/// What the inputs of attention are, and its output.
struct Extent {
    shape: Shape,
    sizes: kernels::attention::Sizes,
    q: Layout,
    k: Layout,
    v: Layout,
    key_rows: bool,
    out: Layout,
}

/// A matrix for each batch and head.
#[derive(Clone, Copy)]
struct Matrices {
    /// Of batches, heads without their group, rows and columns.
    sizes: [usize; 4],
    strides: [usize; 4],
    group: usize,
    rank: usize,
}

impl Matrices {
    /// Those in a tensor of this shape.
    fn of(shape: &[usize], heads: Option<&HeadsIn>) -> Option<Matrices> {
        let own = shape.len();
        let plain = || {
            let axes = std::array::from_fn(|at| (at + own).checked_sub(4));
            (2..=4).contains(&own).then(|| HeadsIn { sizes: smallvec![None; own], rank: own, axes, group: 1 })
        };
        let HeadsIn { sizes, rank, axes, group } = heads.cloned().or_else(plain)?;
        let fits = |(own, size): (&usize, &Option<usize>)| size.is_none_or(|size| size == *own);
        if sizes.len() != own || !shape.iter().zip(&sizes).all(fits) {
            return None;
        }
        let stride = |axis: usize| kernels::volume(1, shape.get(axis + 1..).unwrap_or_default());
        let sizes = axes.map(|axis| axis.and_then(|axis| shape.get(axis).copied()).unwrap_or(1));
        Some(Matrices { sizes, strides: axes.map(|axis| axis.map_or(1, stride)), group, rank })
    }

    /// Batches and heads.
    fn outer(&self) -> (usize, usize) {
        let [batch, heads, ..] = self.sizes;
        (batch, heads * self.group)
    }

    /// Whether the elements of a row are neighbours.
    fn has_rows(&self) -> bool {
        let ([.., size], [.., stride]) = (self.sizes, self.strides);
        size == 1 || stride == 1
    }

    fn transposed(&self) -> Matrices {
        let turned = |[batch, head, row, column]: [usize; 4]| [batch, head, column, row];
        Matrices { sizes: turned(self.sizes), strides: turned(self.strides), ..*self }
    }

    /// Where rows are. A batch or head of 1 is broadcast.
    fn layout(&self) -> Layout {
        let ([batches, heads, ..], [batch, head, row, _]) = (self.sizes, self.strides);
        let stride = |size: usize, stride: usize| if size == 1 { 0 } else { stride };
        Layout { batch: stride(batches, batch), head: stride(heads, head), row }
    }
}

/// A dimension, the last one with 1; one that isn't there is 1.
fn dim(shape: &[usize], from_end: usize) -> usize {
    shape.iter().nth_back(from_end - 1).copied().unwrap_or(1)
}

/// Where the matrices and rows of a tensor are. A batch of 1 is broadcast.
fn layout(shape: &[usize]) -> Layout {
    let size = |from_end: usize| (1..from_end).map(|from_end| dim(shape, from_end)).product();
    let batch = |from_end: usize| if dim(shape, from_end) == 1 { 0 } else { size(from_end) };
    Layout { batch: batch(4), head: batch(3), row: size(2) }
}
