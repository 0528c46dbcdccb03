//! ReduceSum, ReduceMean, ReduceMax and their kin: the elements along some axes become one.
//! <https://onnx.ai/onnx/operators/onnx__ReduceSum.html> and so on

use crate::ops::prelude::*;
use kernels::half::Half;
use kernels::lanes::Stored;

pub(super) const REDUCE_SUM: Implementation = Implementation::blockwise("ReduceSum", &[1, 11, 13], |node| {
    Reduce::load(node, Some(wrapping::<lanes::Sum>), Some(Formula::plus))
});
pub(super) const REDUCE_MEAN: Implementation = Implementation::blockwise("ReduceMean", &[1, 11, 13, 18], |node| {
    let halves = Some([means::<lanes::Halved<false>> as Compute, means::<lanes::Halved<true>>]);
    Ok(Arc::new(Reduce { halves, ..Reduce::of(node, Some(exact::<lanes::Mean>), None)? }))
});
pub(super) const REDUCE_MAX: Implementation =
    Implementation::blockwise("ReduceMax", &[1, 11, 12, 13, 18, 20], |node| {
        Reduce::load(node, Some(extreme::<false>), Some(Formula::larger))
    });
pub(super) const REDUCE_MIN: Implementation =
    Implementation::blockwise("ReduceMin", &[1, 11, 12, 13, 18, 20], |node| {
        Reduce::load(node, Some(extreme::<true>), Some(Formula::smaller))
    });
pub(super) const REDUCE_PROD: Implementation = Implementation::blockwise("ReduceProd", &[1, 11, 13, 18], |node| {
    Reduce::load(node, Some(wrapping::<lanes::Prod>), Some(Formula::times))
});
pub(super) const REDUCE_SUM_SQUARE: Implementation =
    Implementation::blockwise("ReduceSumSquare", &[1, 11, 13, 18], |node| {
        Reduce::load(node, Some(wrapping::<lanes::SumSquare>), None)
    });
pub(super) const REDUCE_L1: Implementation =
    Implementation::blockwise("ReduceL1", &[1, 11, 13, 18], |node| Reduce::load(node, Some(magnitudes), None));
pub(super) const REDUCE_L2: Implementation =
    Implementation::blockwise("ReduceL2", &[1, 11, 13, 18], |node| Reduce::load(node, Some(exact::<lanes::L2>), None));
pub(super) const REDUCE_LOG_SUM: Implementation =
    Implementation::blockwise("ReduceLogSum", &[1, 11, 13, 18, 28], |node| {
        Reduce::load(node, Some(exact::<lanes::LogSum>), None)
    });
pub(super) const REDUCE_LOG_SUM_EXP: Implementation =
    Implementation::blockwise("ReduceLogSumExp", &[1, 11, 13, 18, 28], |node| Reduce::load(node, None, None));

/// Each element of the output is the sum (or mean, ..) of a lane: the elements along `axes`, by default along all.
///
/// Of floats it is rounded once: within 0.51 ulp if the elements have one sign, which cancellation multiplies. Of integers,
/// sums, L1 norms, sums of squares and products wrap; means, L2 norms and logarithms of sums are those of all bits, rounded
/// toward 0.
#[derive(Debug, Clone)]
struct Reduce {
    axes: Axes,
    /// The axes stay, with size 1.
    keepdims: bool,
    /// Without axes each element is a lane.
    noop_with_empty_axes: bool,
    /// `None` for the logarithm of the sum of exponentials, which needs scratch memory.
    compute: Option<Compute>,
    /// The same of two sizes that follow from symbols.
    count: Option<Count>,
    /// What it computes of numbers of float16 and bfloat16 that are kept in float32.
    halves: Option<[Compute; 2]>,
}

/// Computes an element of `out` for each lane of `data`, which have this type.
type Compute = fn(&Lanes, DType, data: &[u8], out: &mut [u8], Resources<'_>) -> Result<()>;

impl Reduce {
    /// The axes became an input with version 13 of ReduceSum, and 18 of the others.
    fn of(node: &Node<'_>, compute: Option<Compute>, count: Option<Count>) -> Result<Reduce> {
        let axes = Axes::of(node, if node.schema().name == "ReduceSum" { 13 } else { 18 })?;
        let noop = node.optional("noop_with_empty_axes", Node::is_set)?;
        let keepdims = node.is_set("keepdims")?;
        Ok(Reduce { axes, keepdims, noop_with_empty_axes: noop.unwrap_or(false), compute, count, halves: None })
    }

    fn load(node: &Node<'_>, compute: Option<Compute>, count: Option<Count>) -> Result<Arc<dyn Blockwise>> {
        Ok(Arc::new(Reduce::of(node, compute, count)?))
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

    /// An element of an output of this shape for each lane of the input 0.
    fn values(&self, call: &Call<'_>, lanes: &Lanes, shape: Shape) -> Result<Tensor> {
        let data = call.tensor(0)?;
        let mut output = call.output_of(data.dtype(), shape)?;
        match self.compute {
            Some(compute) => {
                compute(lanes, data.dtype(), data.aligned_bytes(), output.bytes_mut(), call.resources())?;
            }
            None => log_sum_exp(call, lanes, &mut output)?,
        }
        Ok(output.finish())
    }
}

impl Lanewise for Reduce {
    fn compute(&self, dtype: DType, data: &[u8], len: usize, out: &mut [u8]) -> Result<(), Stopped> {
        let lanes = Lanes::new(&[out.len() / dtype.size(), len], |axis| axis == 1);
        let resources = Resources { threads: 1, stop: None };
        let computed = self.compute.map(|compute| compute(&lanes, dtype, data, out, resources));
        computed.and_then(Result::ok).ok_or(Stopped::Misfit)
    }
}

impl Blockwise for Reduce {
    fn of_halves(&self, half: Half) -> Option<Arc<dyn Blockwise>> {
        let [float16, bfloat16] = self.halves?;
        let compute = if half == Half::F16 { float16 } else { bfloat16 };
        Some(Arc::new(Reduce { compute: Some(compute), ..self.clone() }))
    }

    fn of_lanes(&self, rank: usize, constant: &Constants<'_>) -> Option<Arc<dyn Lanewise>> {
        let listed = self.axes.constant(constant, rank)?;
        (self.keepdims && self.compute.is_some() && *listed == [rank - 1]).then(|| Arc::new(self.clone()) as _)
    }

    fn in_blocks(&self, channels: usize, axes: usize, _: &Constants<'_>) -> Option<InBlocks> {
        let operator = Arc::new(OfChannels { reduce: self.clone(), channels, axes });
        Some(InBlocks::Windows { operator, channels, ends: Ends::Input })
    }
}

/// All places of each channel of images in blocks.
#[derive(Debug)]
struct OfChannels {
    reduce: Reduce,
    channels: usize,
    /// The axes of an image.
    axes: usize,
}

impl OfChannels {
    /// Those of the axes of images that are reduced.
    fn reduced(&self, call: &Call<'_>) -> Result<SmallVec<[usize; 4]>> {
        let rank = 2 + self.axes;
        let listed = self.reduce.axes.places(call, rank)?.unwrap_or_default();
        Ok((0..rank).filter(|axis| self.reduce.reduces(&listed, *axis)).collect())
    }
}

impl Windowed for OfChannels {
    fn is_ready(&self, call: &Call<'_>, _: &Layout) -> bool {
        self.reduced(call).is_ok_and(|reduced| reduced.into_iter().eq(2..2 + self.axes))
    }

    fn run(&self, call: &mut Call<'_>, _: &Layout, _: Option<&Tail>) -> Result<Values> {
        let images = call.tensor(0)?.shape().first().copied().unwrap_or(0);
        let (sizes, places) = ([&[images, self.channels][..], &vec![1; self.axes]].concat(), 2..2 + self.axes);
        let shape = self.reduce.left(&sizes, &places.collect::<Vec<_>>(), 1);
        of_channels(call, self.channels, shape, |lanes, shape| self.reduce.values(call, lanes, shape))
    }
}

impl Operator for Reduce {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let data = call.tensor(0)?;
        let listed = self.axes.places(call, data.rank())?.unwrap_or_default();
        let lanes = Lanes::new(data.shape(), |axis| self.reduces(&listed, axis));
        call.charge(data.len() as u64)?;
        Ok(self.values(call, &lanes, self.left(data.shape(), &listed, 1))?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        let Some(listed) = self.axes.known(facts, dims.len())? else {
            if self.keepdims {
                facts.give(0, vec![Dim::Unknown; dims.len()]);
            }
            return Ok(());
        };
        facts.give(0, self.left::<_, Vec<_>>(dims, &listed.unwrap_or_default(), Dim::Fixed(1)));
        // The shape fits if the whole list becomes one number.
        if let (Some(count), Some(list)) = (self.count, facts.list(0)) {
            let all: Option<Vec<Formula>> = list.into_iter().collect();
            let one = all.and_then(|all| all.into_iter().map(Some).reduce(|one, other| count(&one?, &other?)));
            facts.give_list_like(0, 0, &[one.flatten()]);
        }
        Ok(())
    }
}

/// Defines [`Compute`] of a reduction, for the element types of a list of [`by_type`].
macro_rules! compute {
    ($($name:ident),*) => {$(
        fn $name<R: lanes::ReductionOfAll>(
            lanes: &Lanes,
            dtype: DType,
            data: &[u8],
            out: &mut [u8],
            resources: Resources<'_>,
        ) -> Result<()> {
            by_type!($name, dtype, S as T => {
                Ok(lanes::reduce::<R, S, T>(&R::default(), cast_slice(data), lanes, cast_slice_mut(out), resources)?)
            })
        }
    )*};
}

compute!(wrapping, exact);

/// Means of numbers of 16 bits in float32.
fn means<S: Stored<f64>>(lanes: &Lanes, _: DType, data: &[u8], out: &mut [u8], resources: Resources<'_>) -> Result<()> {
    Ok(lanes::reduce_to::<_, f32, S, f32>(&lanes::Mean, cast_slice(data), lanes, cast_slice_mut(out), resources)?)
}

/// The greatest elements, or the least; those of bool are bytes.
fn extreme<const LEAST: bool>(
    lanes: &Lanes,
    dtype: DType,
    data: &[u8],
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<()> {
    if dtype == DType::Bool {
        lanes::reduce::<_, u8, u8>(&<u8 as Ordered<u8>>::extreme::<LEAST>(), data, lanes, out, resources)?;
        // The least of no elements is the greatest byte.
        out.iter_mut().for_each(|truth| *truth = (*truth).min(1));
        return Ok(());
    }
    by_type!(ordered, dtype, S as T => {
        let extreme = <S as Ordered<T>>::extreme::<LEAST>();
        Ok(lanes::reduce::<_, S, T>(&extreme, cast_slice(data), lanes, cast_slice_mut(out), resources)?)
    })
}

/// L1 norms: without a sign, elements are their distances from 0.
fn magnitudes(lanes: &Lanes, dtype: DType, data: &[u8], out: &mut [u8], resources: Resources<'_>) -> Result<()> {
    match dtype {
        DType::Uint32 | DType::Uint64 => wrapping::<lanes::Sum>(lanes, dtype, data, out, resources),
        _ => wrapping::<lanes::L1>(lanes, dtype, data, out, resources),
    }
}

/// In double precision, as the standard's function body.
fn log_sum_exp(call: &Call<'_>, lanes: &Lanes, output: &mut NewTensor) -> Result<()> {
    let data = call.tensor(0)?;
    let log_sum = lanes::LogSumExp { wide: data.dtype().size() == 8 };
    by_type!(exact, data.dtype(), S as _T => measured::<S, S, f64, _>(call, data, lanes, &log_sum, output))
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    fn axes(values: &[i64]) -> Value {
        tensor(&[values.len()], values)
    }

    /// All ten on [[1, -2, 3], [4, 0, -6]], along the last axis.
    #[test]
    fn each_by_hand() {
        let data = tensor(&[2, 3], [1f32, -2.0, 3.0, 4.0, 0.0, -6.0]);
        for (name, want) in [
            ("ReduceSum", [2f32, -2.0]),
            ("ReduceMean", [2.0 / 3.0, -2.0 / 3.0]),
            ("ReduceMax", [3.0, 4.0]),
            ("ReduceMin", [-2.0, -6.0]),
            ("ReduceProd", [-6.0, 0.0]),
            ("ReduceSumSquare", [14.0, 52.0]),
            ("ReduceL1", [6.0, 10.0]),
            ("ReduceL2", [14f32.sqrt(), 52f32.sqrt()]),
        ] {
            let want = if name == "ReduceProd" { [-6.0, -0.0] } else { want };
            run(name, 18, [], [&data, &axes(&[-1])]).gives(tensor(&[2, 1], want));
            run(name, 18, [int("keepdims", 0)], [&data, &axes(&[1])]).gives(tensor(&[2], want));
            let attribute = [("axes", Attribute::Ints(vec![1]))];
            run(name, 1, attribute, [&data]).gives(tensor(&[2, 1], want));
        }
        let data = tensor(&[2, 2], [1f64, 1.0, 1.0, 0.0]);
        run("ReduceLogSum", 18, [], [&data, &axes(&[1])]).gives(tensor(&[2, 1], [std::f64::consts::LN_2, 0.0]));
        // exp(1000) is beyond any float.
        let data = tensor(&[2], [1000f32, 1000.0]);
        run("ReduceLogSumExp", 28, [], [&data]).gives(tensor(&[1], [(1000.0 + std::f64::consts::LN_2) as f32]));
    }

    #[test]
    fn axes_of_all_kinds() {
        let data = tensor(&[2, 3, 2], (0..12).collect::<Vec<i64>>());
        let sum = |list: &[i64], keep| run("ReduceSum", 13, [int("keepdims", keep)], [&data, &axes(list)]);
        sum(&[0], 0).gives(tensor(&[3, 2], [6i64, 8, 10, 12, 14, 16]));
        sum(&[1], 1).gives(tensor(&[2, 1, 2], [6i64, 9, 24, 27]));
        sum(&[2, 0], 0).gives(tensor(&[3], [14i64, 22, 30]));
        sum(&[0, -2], 0).gives(tensor(&[2], [30i64, 36]));
        sum(&[], 1).gives(tensor(&[1, 1, 1], [66i64]));
        run("ReduceSum", 13, [int("keepdims", 0)], [&data]).gives(tensor(&[], [66i64]));
        run("ReduceSum", 13, [], [&tensor(&[], [7i64])]).gives(tensor(&[], [7i64]));
        run("ReduceSum", 11, [("axes", Attribute::Ints(vec![-1]))], [&data])
            .gives(tensor(&[2, 3, 1], [1i64, 5, 9, 13, 17, 21]));
    }

    #[test]
    fn without_axes_there_may_be_nothing_to_reduce() {
        let data = tensor(&[3], [-2f32, -0.0, 3.0]);
        let noop = |name| run(name, 18, [int("noop_with_empty_axes", 1)], [&data]);
        noop("ReduceSum").gives(data.clone());
        noop("ReduceMean").gives(data.clone());
        noop("ReduceSumSquare").gives(tensor(&[3], [4f32, 0.0, 9.0]));
        noop("ReduceL1").gives(tensor(&[3], [2f32, 0.0, 3.0]));
        noop("ReduceL2").gives(tensor(&[3], [2f32, 0.0, 3.0]));
        run("ReduceLogSum", 18, [int("noop_with_empty_axes", 1)], [&tensor(&[2], [1f32, 0.0]), &axes(&[])])
            .gives(tensor(&[2], [0f32, f32::NEG_INFINITY]));
    }

    #[test]
    fn of_no_elements() {
        let data = tensor(&[2, 0], Vec::<f32>::new());
        for (name, want) in [
            ("ReduceSum", 0f32),
            ("ReduceMean", f32::NAN),
            ("ReduceMax", f32::NEG_INFINITY),
            ("ReduceMin", f32::INFINITY),
            ("ReduceProd", 1.0),
            ("ReduceSumSquare", 0.0),
            ("ReduceL1", 0.0),
            ("ReduceL2", 0.0),
            ("ReduceLogSum", f32::NEG_INFINITY),
            ("ReduceLogSumExp", f32::NEG_INFINITY),
        ] {
            run(name, 18, [], [&data, &axes(&[1])]).gives(tensor(&[2, 1], [want; 2]));
            run(name, 18, [], [&data, &axes(&[0])]).gives(tensor(&[1, 0], Vec::<f32>::new()));
        }
        let data = tensor(&[0], Vec::<i32>::new());
        run("ReduceMax", 18, [], [&data]).gives(tensor(&[1], [i32::MIN]));
        run("ReduceMin", 18, [], [&data]).gives(tensor(&[1], [i32::MAX]));
        let data = tensor(&[0], Vec::<bool>::new());
        run("ReduceMax", 20, [], [&data]).gives(tensor(&[1], [false]));
        run("ReduceMin", 20, [], [&data]).gives(tensor(&[1], [true]));
    }

    #[test]
    fn every_type() {
        macro_rules! sums {
            ($($type:ty),*) => {$(
                let data = tensor(&[3], [1, 2, 4].map(|x| x as $type));
                run("ReduceSum", 13, [], [&data]).gives(tensor(&[1], [7 as $type]));
                run("ReduceProd", 18, [], [&data]).gives(tensor(&[1], [8 as $type]));
                run("ReduceSumSquare", 18, [], [&data]).gives(tensor(&[1], [21 as $type]));
                run("ReduceMax", 20, [], [&data]).gives(tensor(&[1], [4 as $type]));
            )*};
        }
        sums!(f32, f64, i32, i64, u32, u64);
        let halves = tensor(&[3], [1f32, 2.0, 4.0].map(f16::from_f32));
        run("ReduceSum", 1, [], [&halves]).gives(tensor(&[1], [f16::from_f32(7.0)]));
        let halves = tensor(&[3], [1f32, 2.0, 4.0].map(bf16::from_f32));
        run("ReduceMean", 13, [], [&halves]).gives(tensor(&[1], [bf16::from_f32(7.0 / 3.0)]));
        run("ReduceMin", 12, [], [&tensor(&[3], [3i8, -5, 4])]).gives(tensor(&[1], [-5i8]));
        run("ReduceMax", 12, [], [&tensor(&[3], [3u8, 200, 4])]).gives(tensor(&[1], [200u8]));
        run("ReduceMax", 20, [], [&tensor(&[2], [false, true])]).gives(tensor(&[1], [true]));
        run("ReduceMin", 20, [], [&tensor(&[2], [false, true])]).gives(tensor(&[1], [false]));
    }

    #[test]
    fn integers_round_toward_zero_and_wrap() {
        run("ReduceMean", 18, [], [&tensor(&[2], [-2i32, -3])]).gives(tensor(&[1], [-2i32]));
        run("ReduceL2", 18, [], [&tensor(&[2], [1i64, 2])]).gives(tensor(&[1], [2i64]));
        run("ReduceLogSum", 18, [], [&tensor(&[2], [10u32, 11])]).gives(tensor(&[1], [3u32]));
        run("ReduceLogSum", 18, [], [&tensor(&[1], [0i32])]).gives(tensor(&[1], [i32::MIN]));
        run("ReduceLogSumExp", 18, [], [&tensor(&[2], [40i64, 40])]).gives(tensor(&[1], [40i64]));
        run("ReduceSum", 18, [], [&tensor(&[2], [i32::MAX, 1])]).gives(tensor(&[1], [i32::MIN]));
        run("ReduceL1", 18, [], [&tensor(&[1], [i32::MIN])]).gives(tensor(&[1], [i32::MIN]));
    }

    /// What a mean or a norm is made of may be beyond the type.
    #[test]
    fn integers_have_exact_means_and_norms() {
        let data = tensor(&[2], [1_500_000_000i32; 2]);
        for version in [1, 11, 13, 18] {
            run("ReduceMean", version, [], [&data]).gives(tensor(&[1], [1_500_000_000i32]));
        }
        run("ReduceMean", 18, [], [&tensor(&[3], [i64::MIN; 3])]).gives(tensor(&[1], [i64::MIN]));
        run("ReduceMean", 18, [], [&tensor(&[3], [u64::MAX; 3])]).gives(tensor(&[1], [u64::MAX]));
        run("ReduceL2", 18, [], [&tensor(&[2], [60_000i32, 80_000])]).gives(tensor(&[1], [100_000i32]));
        run("ReduceL2", 18, [], [&tensor(&[1], [u64::MAX])]).gives(tensor(&[1], [u64::MAX]));
        run("ReduceL2", 18, [], [&tensor(&[1], [i64::MIN + 1])]).gives(tensor(&[1], [i64::MAX]));
        // The root of 2 * (2^31 - 1)^2 has no place in int32.
        run("ReduceL2", 18, [], [&tensor(&[2], [i32::MAX; 2])]).gives(tensor(&[1], [i32::MAX]));
        run("ReduceLogSum", 18, [], [&tensor(&[3], [i32::MAX; 3])]).gives(tensor(&[1], [22i32]));
    }

    /// The order in which factors are multiplied doesn't show.
    #[test]
    fn products_overflow_at_the_end_only() {
        let factors: Vec<f32> = (0..2000).map(|k| if k % 2 == 0 { 1e30 } else { 1e-30 }).collect();
        let ran = crate::ops::testing::outputs("ReduceProd", 18, [], [&tensor(&[2000], factors)]);
        let product = ran[0].tensor().unwrap().as_slice::<f32>().unwrap()[0];
        // 1e-30 in float32 is not the inverse of 1e30: (1e30 * 1e-30)^1000.
        let want = (f64::from(1e30f32) * f64::from(1e-30f32)).powi(1000);
        assert!((f64::from(product) / want - 1.0).abs() < 1e-7, "{product} {want}");
    }

    #[test]
    fn nan_wins() {
        let data = tensor(&[2, 2], [1f32, f32::NAN, f32::NAN, 2.0]);
        for name in ["ReduceMax", "ReduceMin"] {
            run(name, 18, [], [&data, &axes(&[1])]).gives(tensor(&[2, 1], [f32::NAN; 2]));
            run(name, 18, [], [&data, &axes(&[0])]).gives(tensor(&[1, 2], [f32::NAN; 2]));
        }
        run("ReduceLogSumExp", 18, [], [&tensor(&[2], [f32::INFINITY, 0.0])]).gives(tensor(&[1], [f32::INFINITY]));
    }

    /// A float16 sum is rounded once: 2048 + 1 + 1 would stay 2048 if each sum were.
    #[test]
    fn halves_round_once() {
        let data = tensor(&[3], [2048f32, 1.0, 1.0].map(f16::from_f32));
        run("ReduceSum", 13, [], [&data]).gives(tensor(&[1], [f16::from_f32(2050.0)]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[2, 3], [0f32; 6]);
        run("ReduceSum", 13, [], [&data, &axes(&[2])]).fails("axis 2 is out of range: allowed -2..=1");
        run("ReduceSum", 13, [], [&data, &axes(&[1, -1])]).fails("axis -1 is given twice");
        run("ReduceMax", 13, [("axes", Attribute::Ints(vec![3]))], [&data]).fails("axis 3 is out of range");
        run("ReduceMax", 1, [("axes", Attribute::Ints(vec![-3]))], [&data]).fails("allowed -2..=1");
        run("ReduceSum", 13, [], [&tensor(&[], [1f32]), &axes(&[0])])
            .fails("axis 0 is out of range: a scalar has none");
    }

    #[test]
    fn lists_are_inferred() {
        infer("ReduceProd", 13, [], ["{N, 3, N}"]).lists("3*N*N");
        infer("ReduceSum", 13, [int("keepdims", 0)], ["{N, 3, M}", "{0}"]).lists("M + N + 3");
        infer("ReduceMax", 18, [], ["{N, -3}"]).lists("N");
        infer("ReduceMin", 18, [], ["{N, -3}", "{-1}"]).lists("-3");
        infer("ReduceProd", 18, [int("noop_with_empty_axes", 1)], ["{N, 3}"]).gives("[2]");
        infer("ReduceProd", 13, [], ["{N, ?}"]).gives("[1]");
    }
}
