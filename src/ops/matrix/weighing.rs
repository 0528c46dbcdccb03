//! Attention as it is written with products and a softmax, for a few queries at a time.

use crate::ops::prelude::*;
use kernels::attention::{Attention, Bias, Heads, Layout, Numbers, Scale, Sight, Sizes as Extent, Written};

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

    /// The shape of the output and the sizes, if the nodes can't fail, and have something to compute.
    fn extent(&self, call: &Call<'_>) -> Option<(Shape, Extent)> {
        let shape = |k: usize| Some(call.tensor(k).ok().filter(|tensor| tensor.dtype() == self.dtype)?.shape());
        let ([q, k, v], [scale, bias, nan]) = ([shape(0)?, shape(1)?, shape(2)?], self.others());
        if [q, k, v].iter().any(|shape| !(2..=4).contains(&shape.len())) {
            return None;
        }
        let scores = Sizes::of(q, k, ["A", "B"]).ok()?;
        let of = Sizes::of(&scores.output, v, ["A", "B"]).ok()?;
        let is_one =
            |k: usize| shape(k).is_some_and(|own| own.len() <= scores.output.len() && own.iter().all(|dim| *dim == 1));
        let is_part = |k: usize| {
            let fits = |(own, dim): (&usize, &usize)| own == dim || *own == 1;
            let pairs = |own: &'_ [usize]| own.iter().rev().zip(scores.output.iter().rev()).all(fits);
            shape(k).is_some_and(|own| own.len() <= scores.output.len() && pairs(own))
        };
        if !scale.is_none_or(is_one) || !nan.is_none_or(is_one) || !bias.is_none_or(is_part) {
            return None;
        }
        let [batch, heads] = batch_of(&of.output);
        let (queries, keys, size, value_size) = (scores.m, scores.n, scores.k, of.n);
        let extent = Extent { batch, heads, group: 1, queries, keys, size, value_size };
        (kernels::volume(batch, [&heads, &queries, &keys, &size, &value_size]) > 0).then_some((of.output, extent))
    }

    fn weigh<T: Numbers + Element>(&self, call: &Call<'_>) -> Result<Values> {
        let (shape, sizes) = self.extent(call).ok_or_else(|| Error::bug("attention of other shapes"))?;
        let mut output = call.output::<T>(&shape)?;
        let heads = |k: usize| {
            let tensor = call.tensor(k)?;
            Ok::<_, Error>(Heads { elements: tensor.as_slice::<T>()?, layout: layout(tensor.shape()) })
        };
        let [scale, bias, nan] = self.others();
        let one = |k: usize| Ok::<_, Error>(call.tensor(k)?.as_slice::<T>()?.first().copied());
        let bias = bias.map(|k| {
            let (mut rows, dim) =
                (heads(k)?, |from_end: usize| dim(call.tensor(k).map_or(&[], Tensor::shape), from_end));
            // A dimension of size 1 is broadcast.
            rows.layout.row = if dim(2) == 1 { 0 } else { dim(1) };
            Ok::<_, Error>(Bias { rows, column: usize::from(dim(1) > 1), columns: sizes.keys })
        });
        let scale = scale.map(one).transpose()?.flatten().zip(self.scale);
        let attention = Attention {
            sizes,
            q: heads(0)?,
            k: heads(1)?,
            v: heads(2)?,
            scale: T::of(1.0),
            softcap: T::of(0.0),
            sight: Sight::default(),
            bias: bias.transpose()?,
            round: None,
            written: Some(Written {
                scale: scale.map(|(number, scale)| match scale {
                    ScoreScale::Times => Scale::Times(number),
                    ScoreScale::By => Scale::By(number),
                }),
                nan: nan.map(one).transpose()?.flatten(),
            }),
            out: layout(&shape),
        };
        call.charge(attention.work())?;
        let plan = attention.plan(call.resources());
        let mut scratch = call.scratch::<T>(plan.scratch())?;
        plan.run(output.elements_mut()?, None, scratch.elements_mut(), call.resources())?;
        Ok(output.finish().into())
    }
}

/// The two dimensions before those of the matrices.
fn batch_of(shape: &[usize]) -> [usize; 2] {
    [4, 3].map(|from_end| dim(shape, from_end))
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
