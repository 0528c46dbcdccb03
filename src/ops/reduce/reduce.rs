//! ReduceSum, ReduceMean, ReduceMax and their kin: the elements along some axes become one.
//! <https://onnx.ai/onnx/operators/onnx__ReduceSum.html> and so on

use crate::ops::prelude::*;

pub(super) const REDUCE_SUM: Implementation = reduction("ReduceSum", &[1, 11, 13], load::<lanes::Sum>);
pub(super) const REDUCE_MEAN: Implementation = reduction("ReduceMean", &[1, 11, 13, 18], load::<lanes::Mean>);
pub(super) const REDUCE_MAX: Implementation =
    reduction("ReduceMax", &[1, 11, 12, 13, 18, 20], |node| Reduce::new(node, extreme::<lanes::Max>));
pub(super) const REDUCE_MIN: Implementation =
    reduction("ReduceMin", &[1, 11, 12, 13, 18, 20], |node| Reduce::new(node, extreme::<lanes::Min>));
pub(super) const REDUCE_PROD: Implementation = reduction("ReduceProd", &[1, 11, 13, 18], load::<lanes::Prod>);
pub(super) const REDUCE_SUM_SQUARE: Implementation =
    reduction("ReduceSumSquare", &[1, 11, 13, 18], load::<lanes::SumSquare>);
pub(super) const REDUCE_L1: Implementation = reduction("ReduceL1", &[1, 11, 13, 18], load::<lanes::L1>);
pub(super) const REDUCE_L2: Implementation = reduction("ReduceL2", &[1, 11, 13, 18], load::<lanes::L2>);
pub(super) const REDUCE_LOG_SUM: Implementation =
    reduction("ReduceLogSum", &[1, 11, 13, 18, 28], load::<lanes::LogSum>);
pub(super) const REDUCE_LOG_SUM_EXP: Implementation =
    reduction("ReduceLogSumExp", &[1, 11, 13, 18, 28], |node| Reduce::new(node, log_sum_exp));

const fn reduction(name: &'static str, versions: &'static [i64], load: Load) -> Implementation {
    Implementation { domain: "", name, versions, make: Make::Run(load) }
}

/// Each element of the output is the sum (or mean, ..) of a lane: the elements along `axes`, by default along all.
#[derive(Debug)]
struct Reduce {
    axes: Axes,
    /// The axes stay, with size 1.
    keepdims: bool,
    /// Without axes each element is a lane.
    noop_with_empty_axes: bool,
    reduce: Compute,
}

/// Computes an element of an output of this shape for each lane of the input 0.
type Compute = fn(&Call<'_>, &Lanes, Shape) -> Result<Tensor>;

fn load<R: lanes::ReductionOfAll>(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Reduce::new(node, numbers::<R>)
}

impl Reduce {
    /// The axes became an input with version 13 of ReduceSum, and 18 of the others.
    fn new(node: &Node<'_>, reduce: Compute) -> Result<Box<dyn Operator>> {
        let axes = Axes::of(node, if node.schema().name == "ReduceSum" { 13 } else { 18 })?;
        let noop = node.attribute("noop_with_empty_axes").map(|_| node.int("noop_with_empty_axes")).transpose()?;
        let keepdims = node.int("keepdims")? != 0;
        Ok(Box::new(Reduce { axes, keepdims, noop_with_empty_axes: noop.is_some_and(|noop| noop != 0), reduce }))
    }

    /// Whether an axis is reduced, given the listed ones.
    fn reduces(&self, listed: &[usize], axis: usize) -> bool {
        if listed.is_empty() { !self.noop_with_empty_axes } else { listed.contains(&axis) }
    }

    /// The dimensions of the output.
    fn left<D: Clone, L: FromIterator<D>>(&self, dims: &[D], listed: &[usize], one: D) -> L {
        let left = dims.iter().enumerate().filter_map(|(axis, dim)| match self.reduces(listed, axis) {
            false => Some(dim.clone()),
            true => self.keepdims.then(|| one.clone()),
        });
        left.collect()
    }
}

impl Operator for Reduce {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let data = call.tensor(0)?;
        let listed = self.axes.places(call, data.rank())?.unwrap_or_default();
        let lanes = Lanes::new(data.shape(), |axis| self.reduces(&listed, axis));
        call.charge(data.len() as u64)?;
        let reduced = (self.reduce)(call, &lanes, self.left(data.shape(), &listed, 1))?;
        Ok(smallvec![reduced.into()])
    }

    fn infer(&self, inputs: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        let Some(dims) = inputs.first().copied().flatten().and_then(Fact::dims) else { return Ok(Vec::new()) };
        let Some(listed) = self.axes.known_places(inputs, dims.len())? else { return Ok(Vec::new()) };
        let left: Vec<_> = self.left(dims, &listed.unwrap_or_default(), Dim::Fixed(1));
        Ok(vec![Fact::default().with_dims(left)])
    }
}

fn numbers<R: lanes::ReductionOfAll>(call: &Call<'_>, lanes: &Lanes, shape: Shape) -> Result<Tensor> {
    let data = call.tensor(0)?;
    by_type!(wide, data.dtype(), S as T => {
        let mut output = call.output::<S>(&shape)?;
        lanes::reduce::<R, S, T>(data.as_slice()?, lanes, output.elements_mut()?, call.resources())?;
        Ok(output.finish())
    })
}

/// As [`numbers`], also of small integers and bool.
fn extreme<R: lanes::ReductionOfAll>(call: &Call<'_>, lanes: &Lanes, shape: Shape) -> Result<Tensor> {
    let data = call.tensor(0)?;
    if data.dtype() == DType::Bool {
        let mut output = call.output_of(DType::Bool, shape)?;
        lanes::reduce::<R, u8, u8>(data.bytes(), lanes, output.bytes_mut(), call.resources())?;
        // The least of no elements is the greatest byte.
        output.bytes_mut().iter_mut().for_each(|truth| *truth = (*truth).min(1));
        return Ok(output.finish());
    }
    by_type!(numbers, data.dtype(), S as T => {
        let mut output = call.output::<S>(&shape)?;
        lanes::reduce::<R, S, T>(data.as_slice()?, lanes, output.elements_mut()?, call.resources())?;
        Ok(output.finish())
    })
}

/// In double precision, as the standard's function body.
fn log_sum_exp(call: &Call<'_>, lanes: &Lanes, shape: Shape) -> Result<Tensor> {
    let data = call.tensor(0)?;
    by_type!(wide, data.dtype(), S as _T => measured::<S, S, f64, _>(call, data, lanes, &shape, &lanes::LogSumExp))
}
