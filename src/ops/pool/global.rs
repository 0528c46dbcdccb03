//! GlobalAveragePool, GlobalMaxPool and GlobalLpPool: the mean, the largest or the norm of the entries of each channel.
//! <https://onnx.ai/onnx/operators/onnx__GlobalAveragePool.html>,
//! <https://onnx.ai/onnx/operators/onnx__GlobalMaxPool.html>, <https://onnx.ai/onnx/operators/onnx__GlobalLpPool.html>

use super::global_bytes::ByteMean;
use super::order::Order;
use crate::ops::prelude::*;
use kernels::half::Half;

pub(super) const GLOBAL_AVERAGE_POOL: Implementation =
    Implementation::blockwise("GlobalAveragePool", &[1, 22], |_| load(Statistic::Mean { half: None }));

pub(super) const GLOBAL_MAX_POOL: Implementation =
    Implementation::blockwise("GlobalMaxPool", &[1, 22], |_| load(Statistic::Greatest));

pub(super) const GLOBAL_LP_POOL: Implementation = Implementation::blockwise("GlobalLpPool", &[1, 2, 22], load_lp);

/// `Y[n, c, 0..]` is the mean, the greatest or the norm of all `X[n, c, i..]`. NaN is the greatest.
#[derive(Debug, Clone, Copy)]
pub(super) enum Statistic {
    /// Of numbers of a type of 16 bits in float32, if there is one.
    Mean {
        half: Option<Half>,
    },
    Greatest,
    Norm(Order),
}

fn load(of: Statistic) -> Result<Arc<dyn Blockwise>> {
    Ok(Arc::new(of))
}

fn load_lp(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    load(Statistic::Norm(Order::load(node)?))
}

fn shape(facts: &Inference<'_>) -> Result<Option<Vec<Dim>>> {
    let Some([batch, channels, image @ ..]) = facts.ranked(0, 2..)? else { return Ok(None) };
    Ok(Some([&[batch.clone(), channels.clone()], &*vec![Dim::Fixed(1); image.len()]].concat()))
}

impl Statistic {
    /// The same of numbers of a type of 16 bits, in float32.
    pub(super) fn of_halves(self, half: Half) -> Option<Statistic> {
        match self {
            Statistic::Mean { .. } => Some(Statistic::Mean { half: Some(half) }),
            Statistic::Greatest | Statistic::Norm(_) => None,
        }
    }

    /// The number of each lane.
    pub(super) fn reduced(&self, call: &Call<'_>, lanes: &Lanes, shape: Shape) -> Result<Tensor> {
        let (x, resources) = (call.tensor(0)?, call.resources());
        let mut y = call.output_of(x.dtype(), shape)?;
        match *self {
            Statistic::Mean { half } => floats(call, half, &lanes::Mean, lanes, &mut y)?,
            Statistic::Greatest => by_type!(floats_and_bytes, x.dtype(), S as T => {
                let (from, to) = (x.as_slice::<S>()?, y.elements_mut::<S>()?);
                Ok(lanes::reduce::<_, S, T>(&<S as Ordered<T>>::extreme::<false>(), from, lanes, to, resources)?)
            })?,
            Statistic::Norm(Order::One) => floats(call, None, &lanes::L1, lanes, &mut y)?,
            Statistic::Norm(Order::Two) => floats(call, None, &lanes::L2, lanes, &mut y)?,
            Statistic::Norm(Order::Other(order)) => floats(call, None, &lanes::Norm { order }, lanes, &mut y)?,
        }
        Ok(y.finish())
    }
}

fn floats(
    call: &Call<'_>,
    half: Option<Half>,
    reduction: &(impl lanes::Reduction<f32> + lanes::Reduction<f64>),
    lanes: &Lanes,
    y: &mut NewTensor,
) -> Result<()> {
    let x = call.tensor(0)?;
    by_half!(half, x.dtype(), R to S as T => {
        let (from, to) = (cast_slice(x.aligned_bytes()), cast_slice_mut(y.bytes_mut()));
        Ok(lanes::reduce_to::<_, R, S, T>(reduction, from, lanes, to, call.resources())?)
    })
}

/// The shape of a number for each channel of images with so many axes.
pub(super) fn of_each(images: usize, channels: usize, axes: usize) -> Shape {
    shape_of([&[images, channels], &vec![1; axes]])
}

impl Blockwise for Statistic {
    fn in_blocks(&self, channels: usize, axes: usize, _: &Constants<'_>) -> Option<InBlocks> {
        let operator = Arc::new(GlobalInBlocks { of: *self, channels, axes });
        Some(InBlocks::Windows { operator, channels, ends: Ends::Input })
    }

    fn of_halves(&self, half: Half) -> Option<Arc<dyn Blockwise>> {
        Some(Arc::new((*self).of_halves(half)?))
    }

    fn mean_of_bytes(&self, from: ByteScale, to: ByteScale) -> Option<Box<dyn Fused>> {
        matches!(self, Statistic::Mean { .. }).then(|| Box::new(ByteMean::new(from, to)) as Box<dyn Fused>)
    }
}

/// A pool of images in blocks.
#[derive(Debug)]
struct GlobalInBlocks {
    of: Statistic,
    channels: usize,
    /// The axes of an image.
    axes: usize,
}

impl Windowed for GlobalInBlocks {
    fn is_ready(&self, _: &Call<'_>, _: &Layout) -> bool {
        true
    }

    fn run(&self, call: &mut Call<'_>, _: &Layout, _: Option<&Tail>) -> Result<Values> {
        let images = call.tensor(0)?.shape().first().copied().unwrap_or(0);
        let shape = of_each(images, self.channels, self.axes);
        of_channels(call, self.channels, shape, |lanes, shape| self.of.reduced(call, lanes, shape))
    }
}

impl Operator for Statistic {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(shape)?;
        let x = call.tensor(0)?;
        let lanes = Lanes::new(x.shape(), |axis| axis >= 2);
        let shape = x.shape().iter().enumerate().map(|(axis, size)| if axis < 2 { *size } else { 1 }).collect();
        call.charge(x.len() as u64)?;
        Ok(self.reduced(call, &lanes, shape)?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_known(0, shape(facts)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use half::{bf16, f16};

    #[test]
    fn of_each_channel() {
        let x = tensor(&[1, 2, 2, 2], [1f32, 2.0, 3.0, 5.0, 3.0, -4.0, 0.0, 0.0]);
        let y = |values: [f32; 2]| tensor(&[1, 2, 1, 1], values);
        run("GlobalAveragePool", 1, [], [&x]).gives(y([2.75, -0.25]));
        run("GlobalMaxPool", 22, [], [&x]).gives(y([5.0, 3.0]));
        run("GlobalLpPool", 2, [], [&x]).gives(y([39f32.sqrt(), 5.0]));
        run("GlobalLpPool", 1, [("p", Attribute::Float(1.0))], [&x]).gives(y([11.0, 7.0]));
        run("GlobalLpPool", 22, [int("p", 3)], [&x]).gives(y([161f32.cbrt(), 91f32.cbrt()]));
        run("GlobalLpPool", 22, [int("p", 0)], [&x]).fails("p is 0: it must be a number greater than 0");
    }

    #[test]
    fn every_type() {
        let halves = tensor(&[1, 1, 2], [60000f32, 50016.0].map(f16::from_f32));
        run("GlobalAveragePool", 1, [], [&halves]).gives(tensor(&[1, 1, 1], [f16::from_f32(55008.0)]));
        let brains = tensor(&[1, 1, 2], [-1f32, f32::NAN].map(bf16::from_f32));
        run("GlobalMaxPool", 22, [], [&brains]).gives(tensor(&[1, 1, 1], [bf16::NAN]));
        run("GlobalLpPool", 2, [], [&tensor(&[1, 1, 2], [3f64, -4.0])]).gives(tensor(&[1, 1, 1], [5f64]));
    }

    #[test]
    fn of_nothing_and_of_lists() {
        let nothing = tensor(&[1, 1, 0], Vec::<f32>::new());
        run("GlobalAveragePool", 22, [], [&nothing]).gives(tensor(&[1, 1, 1], [f32::NAN]));
        run("GlobalMaxPool", 22, [], [&nothing]).gives(tensor(&[1, 1, 1], [f32::NEG_INFINITY]));
        let list = tensor(&[1, 2], [1f32, 2.0]);
        run("GlobalAveragePool", 22, [], [&list]).gives(list.clone());
        run("GlobalMaxPool", 1, [], [&tensor(&[2], [1f32, 2.0])])
            .fails("has shape [2] of rank 1: allowed ranks from 2 on");
    }

    #[test]
    fn shapes() {
        for (operator, opset) in
            [("GlobalAveragePool", 1), ("GlobalMaxPool", 22), ("GlobalLpPool", 1), ("GlobalLpPool", 2)]
        {
            infer(operator, opset, [], ["float[N, C, H, 5]"]).gives("[N, C, 1, 1]");
            infer(operator, opset, [], ["float[N, C, ?]"]).gives("[N, C, 1]");
            infer(operator, opset, [], ["float"]).gives("");
            infer(operator, opset, [], ["float[N]"]).fails("\"X\" has shape [N] of rank 1: allowed ranks from 2 on");
        }
    }
}
