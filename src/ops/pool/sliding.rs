//! AveragePool, MaxPool and LpPool: the mean, the largest or the norm of the entries in each window of an image.
//! <https://onnx.ai/onnx/operators/onnx__AveragePool.html>, <https://onnx.ai/onnx/operators/onnx__MaxPool.html>,
//! <https://onnx.ai/onnx/operators/onnx__LpPool.html>

use super::global::Statistic;
use super::in_blocks::PoolInBlocks;
use super::order::Order;
use crate::ops::prelude::*;
use kernels::gemm::blocks::CHANNELS;
use kernels::half::Half;
use kernels::pool::{self, Greatest, Pooling, Reduced};
use kernels::windows::Axis;

pub(super) const AVERAGE_POOL: Implementation =
    Implementation::blockwise("AveragePool", &[1, 7, 10, 11, 19, 22], load_average);

pub(super) const MAX_POOL: Implementation = Implementation::blockwise("MaxPool", &[1, 8, 10, 11, 12, 22], load_max);

pub(super) const LP_POOL: Implementation = Implementation::run("LpPool", &[1, 2, 11, 18, 22], load_lp);

/// `Y[n, c, o..]` is the mean, the greatest or the norm of `X[n, c, o * stride + t * dilation - pad..]` over all taps `t` of
/// a window. A window that sees padding only has the mean NaN, the greatest -inf (or the least integer) at the index -1,
/// and the norm 0. NaN is the greatest.
///
/// Means and norms are added up in f64 (those of double in pairs of f64) and rounded once.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub(super) attributes: WindowAttributes,
    pub(super) of: Statistic,
    /// In means, padding counts as zeros. What a window sees behind it, with `ceil_mode`, doesn't.
    pub(super) padding_counts: bool,
    /// Within a channel, indices are counted in column-major order. They are those of the first greatest one in the whole input.
    column_major: bool,
}

/// Version 7 brought `count_include_pad`.
fn load_average(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    let padding_counts = node.version() >= 7 && node.is_set("count_include_pad")?;
    Ok(Arc::new(Pool { padding_counts, ..pool(node, Statistic::Mean { half: None })? }))
}

/// Version 8 brought `storage_order`.
fn load_max(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    let column_major = node.version() >= 8 && node.flag("storage_order")?;
    Ok(Arc::new(Pool { column_major, ..pool(node, Statistic::Greatest)? }))
}

fn load_lp(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(pool(node, Statistic::Norm(Order::load(node)?))?))
}

/// LpPool-1 may lack `kernel_shape`, but doesn't say what that means.
fn pool(node: &Node<'_>, of: Statistic) -> Result<Pool> {
    match node.optional("kernel_shape", Node::ints)? {
        None | Some([]) => {
            Err(Error::model("kernel_shape is not given: windows have no size").attribute("kernel_shape"))
        }
        Some(_) => Ok(Pool { attributes: WindowAttributes::of(node)?, of, padding_counts: false, column_major: false }),
    }
}

impl Pool {
    /// What is known about the shape of the output, and the windows.
    ///
    /// The text of AveragePool-11 rounds sizes under `auto_pad` down at one place, but says at `auto_pad` what all other
    /// versions say.
    fn shape(&self, facts: &Inference<'_>) -> Result<Option<(Vec<Dim>, Windows)>> {
        let Some([batch, channels, image @ ..]) = facts.ranked(0, 3..)? else { return Ok(None) };
        let windows = self.attributes.windows(&self.attributes.kernel(image.len())?)?;
        let dims = [&[batch.clone(), channels.clone()], &*windows.counts(image)].concat();
        Ok(Some((dims, windows)))
    }
}

impl Operator for Pool {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let beyond = || Error::model("there are more windows than can be counted");
        let (dims, along) = call.by_rule(|facts| self.shape(facts))?.ok_or_else(beyond)?;
        let shape: Shape = Dim::sizes(&dims).ok_or_else(beyond)?.into();
        let x = call.tensor(0)?;
        let (Some(image), Some(counts)) = (x.shape().get(2..), shape.get(2..)) else { return Err(beyond()) };
        let axes = along.axes(image, counts)?;
        if axes.iter().all(Axis::shows_all) && !call.wants(1) {
            call.charge(x.len() as u64)?;
            return Ok(self.of.reduced(call, &Lanes::new(x.shape(), |axis| axis >= 2), shape)?.into());
        }
        let counted = match self.padding_counts {
            true => pool::Windows::new(along.padded(&axes)),
            false => pool::Windows::new(axes.iter().copied()),
        };
        let windows = pool::Windows::new(axes);
        let pooling = Pooling { windows: &windows, counted: &counted, column_major: self.column_major };
        let mut y = call.output_of(x.dtype(), shape.clone())?;
        let mut places = if call.wants(1) { Some(call.output::<i64>(&shape)?) } else { None };
        call.charge(kernels::volume(windows.taps(), &shape) as u64)?;
        match self.of {
            Statistic::Mean { half } => floats(call, half, &Reduced(lanes::Mean), pooling, &mut y)?,
            Statistic::Greatest => greatest(call, pooling, &mut y, places.as_mut())?,
            Statistic::Norm(Order::One) => floats(call, None, &Reduced(lanes::L1), pooling, &mut y)?,
            Statistic::Norm(Order::Two) => floats(call, None, &Reduced(lanes::L2), pooling, &mut y)?,
            Statistic::Norm(Order::Other(order)) => {
                floats(call, None, &Reduced(lanes::Norm { order }), pooling, &mut y)?
            }
        }
        let outputs = [Some(y), places].into_iter().flatten().map(|output| output.finish().into());
        Ok(outputs.take(call.output_count()).collect())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some((dims, _)) = self.shape(facts)? {
            facts.give(0, dims.clone());
            facts.give(1, dims);
        }
        Ok(())
    }
}

impl Blockwise for Pool {
    fn of_halves(&self, half: Half) -> Option<Arc<dyn Blockwise>> {
        Some(Arc::new(Pool { of: self.of.of_halves(half)?, ..self.clone() }))
    }

    fn in_blocks(&self, channels: usize, axes: usize, _: &Constants<'_>) -> Option<InBlocks> {
        // On planes, windows take longer than changes of the layout and empty parts of vectors.
        let few = if axes == 2 && matches!(self.of, Statistic::Greatest) { CHANNELS } else { FEW };
        let ends = if channels >= few { Ends::Any } else { Ends::Both };
        let operator = PoolInBlocks { pool: self.clone(), channels };
        (!matches!(self.of, Statistic::Norm(_))).then(|| InBlocks::Windows {
            operator: Arc::new(operator),
            channels,
            ends,
        })
    }
}

/// Channels from which on windows are worth blocks of their own; along two axes, the greatest are if a block is full.
const FEW: usize = 4;

fn floats(
    call: &Call<'_>,
    half: Option<Half>,
    pool: &(impl pool::Pool<f32> + pool::Pool<f64>),
    pooling: Pooling<'_>,
    y: &mut NewTensor,
) -> Result<()> {
    let x = call.tensor(0)?;
    by_half!(half, x.dtype(), _R to S as T => {
        let (from, to) = (cast_slice(x.aligned_bytes()), cast_slice_mut(y.bytes_mut()));
        Ok(pool::pool::<_, S, T>(pool, from, pooling, to, &mut [], call.resources())?)
    })
}

fn greatest(call: &Call<'_>, pooling: Pooling<'_>, y: &mut NewTensor, places: Option<&mut NewTensor>) -> Result<()> {
    let (x, resources) = (call.tensor(0)?, call.resources());
    by_type!(floats_and_bytes, x.dtype(), S as T => {
        let (from, to, extreme) = (x.as_slice::<S>()?, y.elements_mut::<S>()?, <S as Ordered<T>>::extreme::<false>());
        let pooled = match places {
            None => pool::greatest::<S, T>(extreme, from, pooling.windows, to, resources),
            Some(places) => {
                pool::pool::<_, S, T>(&Greatest(extreme), from, pooling, to, places.elements_mut()?, resources)
            }
        };
        Ok(pooled?)
    })
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, outputs, run, string, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    fn kernel(sizes: &[i64]) -> (&'static str, Attribute) {
        ints("kernel_shape", sizes)
    }

    fn line(values: &[f32]) -> Value {
        tensor(&[1, 1, values.len()], values)
    }

    #[test]
    fn means() {
        let x = tensor(&[1, 1, 3, 4], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        run("AveragePool", 22, [kernel(&[2, 2])], [&x]).gives(tensor(&[1, 1, 2, 3], [3.5f32, 4.5, 5.5, 7.5, 8.5, 9.5]));
        run("AveragePool", 1, [kernel(&[3, 1]), ints("strides", &[1, 3])], [&x])
            .gives(tensor(&[1, 1, 1, 2], [5f32, 8.0]));
        run("AveragePool", 19, [kernel(&[2, 2]), ints("dilations", &[2, 3])], [&x])
            .gives(tensor(&[1, 1, 1, 1], [6.5f32]));
        let x = line(&[3.0, 5.0, 7.0]);
        let padded = || [kernel(&[2]), ints("pads", &[1, 1])];
        run("AveragePool", 7, padded(), [&x]).gives(line(&[3.0, 4.0, 6.0, 7.0]));
        run("AveragePool", 1, padded(), [&x]).gives(line(&[3.0, 4.0, 6.0, 7.0]));
        let [size, pads] = padded();
        run("AveragePool", 7, [size, pads, int("count_include_pad", 1)], [&x]).gives(line(&[1.5, 4.0, 6.0, 3.5]));
    }

    /// A window that reaches beyond the padding counts the padding, and not what is behind it.
    #[test]
    fn what_is_behind_the_padding_never_counts() {
        let pool = |pads: [i64; 2], counts| {
            let attributes = [
                kernel(&[3]),
                ints("strides", &[2]),
                ints("pads", &pads),
                int("ceil_mode", 1),
                int("count_include_pad", counts),
            ];
            run("AveragePool", 19, attributes, [&line(&[6.0, 6.0, 12.0, 6.0])])
        };
        pool([0, 0], 0).gives(line(&[8.0, 9.0]));
        pool([0, 0], 1).gives(line(&[8.0, 9.0]));
        pool([1, 0], 1).gives(line(&[4.0, 8.0]));
        pool([1, 1], 1).gives(line(&[4.0, 8.0, 3.0]));
        pool([1, 1], 0).gives(line(&[6.0, 8.0, 6.0]));
    }

    /// As global pools, in order and types.
    #[test]
    fn windows_of_the_whole_image() {
        let numbers: Vec<f32> = (0..2 * 3 * 35).map(|k| (k * 37 % 101) as f32 / 7.0 - 3.0).collect();
        let x = tensor(&[2, 3, 5, 7], numbers.clone());
        let halves = tensor(&[2, 3, 5, 7], numbers.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>());
        for (operator, global) in
            [("AveragePool", "GlobalAveragePool"), ("MaxPool", "GlobalMaxPool"), ("LpPool", "GlobalLpPool")]
        {
            for x in [&x, &halves] {
                let want = outputs(global, 22, [], [x]);
                run(operator, 22, [kernel(&[5, 7]), ints("strides", &[5, 7])], [x]).gives(&want[0]);
            }
        }
        let x = tensor(&[1, 2, 2, 1], [-3i8, -128, 5, 7]);
        run("MaxPool", 12, [kernel(&[2, 1])], [&x]).gives(tensor(&[1, 2, 1, 1], [-3i8, 7]));
        let ran = outputs("MaxPool", 12, [kernel(&[2, 1])], [&x]);
        assert_eq!(ran.len(), 2);
        assert_eq!(ran[1], tensor(&[1, 2, 1, 1], [0i64, 3]));
    }

    #[test]
    fn automatic_padding() {
        let x = line(&[1.0, 2.0, 3.0, 4.0]);
        let pool = |kind, counts, strides| {
            let attributes =
                [kernel(&[2]), string("auto_pad", kind), int("count_include_pad", counts), ints("strides", &[strides])];
            run("AveragePool", 11, attributes, [&x])
        };
        pool("SAME_UPPER", 0, 1).gives(line(&[1.5, 2.5, 3.5, 4.0]));
        pool("SAME_UPPER", 1, 1).gives(line(&[1.5, 2.5, 3.5, 2.0]));
        pool("SAME_LOWER", 0, 1).gives(line(&[1.0, 1.5, 2.5, 3.5]));
        pool("SAME_LOWER", 1, 1).gives(line(&[0.5, 1.5, 2.5, 3.5]));
        pool("SAME_LOWER", 1, 3).gives(line(&[0.5, 3.5]));
        pool("VALID", 1, 3).gives(line(&[1.5]));
        pool("NOTSET", 0, 3).gives(line(&[1.5]));
    }

    #[test]
    fn windows_of_padding_only() {
        let padded = || [kernel(&[1]), ints("pads", &[1, 0])];
        run("AveragePool", 22, padded(), [&line(&[3.0])]).gives(line(&[f32::NAN, 3.0]));
        let ran = outputs("MaxPool", 22, padded(), [&line(&[3.0])]);
        assert_eq!(ran.as_slice(), [line(&[f32::NEG_INFINITY, 3.0]), tensor(&[1, 1, 2], [-1i64, 0])]);
        run("MaxPool", 12, padded(), [&tensor(&[1, 1, 1], [3i8])]).gives(tensor(&[1, 1, 2], [-128i8, 3]));
        run("LpPool", 22, padded(), [&line(&[3.0])]).gives(line(&[0.0, 3.0]));
    }

    #[test]
    fn the_greatest_and_their_indices() {
        let x = tensor(&[1, 2, 2, 3], [1f32, 5.0, 5.0, 4.0, 0.0, 2.0, -1.0, -1.0, -3.0, -2.0, -2.0, -2.0]);
        let most = tensor(&[1, 2, 1, 2], [5f32, 5.0, -1.0, -1.0]);
        let ran = outputs("MaxPool", 12, [kernel(&[2, 2])], [&x]);
        assert_eq!(ran.as_slice(), [most.clone(), tensor(&[1, 2, 1, 2], [1i64, 1, 6, 7])]);
        let ran = outputs("MaxPool", 8, [kernel(&[2, 2]), int("storage_order", 1)], [&x]);
        assert_eq!(ran.as_slice(), [most.clone(), tensor(&[1, 2, 1, 2], [2i64, 2, 6, 8])]);
        run("MaxPool", 1, [kernel(&[2, 2])], [&x]).gives(most);
        // Padding has no index, and is less than anything.
        let ran = outputs("MaxPool", 22, [kernel(&[2]), ints("pads", &[1, 1])], [&line(&[f32::NEG_INFINITY, -1.0])]);
        assert_eq!(ran.as_slice(), [line(&[f32::NEG_INFINITY, -1.0, -1.0]), tensor(&[1, 1, 3], [0i64, 1, 1])]);
        let ran = outputs("MaxPool", 12, [kernel(&[2])], [&line(&[1.0, f32::NAN, 3.0, 2.0])]);
        assert_eq!(ran.as_slice(), [line(&[f32::NAN, f32::NAN, 3.0]), tensor(&[1, 1, 3], [1i64, 1, 2])]);
    }

    #[test]
    fn every_type() {
        macro_rules! greatest {
            ($($type:ty),*) => {$(
                let x = tensor(&[1, 1, 3], [1u8, 100, 7].map(|x| x as $type));
                let ran = outputs("MaxPool", 12, [kernel(&[2])], [&x]);
                assert_eq!(ran[0], tensor(&[1, 1, 2], [100u8, 100].map(|x| x as $type)));
                assert_eq!(ran[1], tensor(&[1, 1, 2], [1i64, 1]));
            )*};
        }
        greatest!(f32, f64, i8, u8);
        run("MaxPool", 12, [kernel(&[2])], [&tensor(&[1, 1, 3], [-1i8, -128, 5])]).gives(tensor(&[1, 1, 2], [-1i8, 5]));
        run("MaxPool", 12, [kernel(&[2])], [&tensor(&[1, 1, 3], [200u8, 100, 5])])
            .gives(tensor(&[1, 1, 2], [200u8, 100]));
        let half = |values: [f32; 2]| tensor(&[1, 1, 2], values.map(f16::from_f32));
        run("MaxPool", 1, [kernel(&[1])], [&half([1.5, -2.0])]).gives(half([1.5, -2.0]));
        // The sum of all is beyond float16, the mean isn't.
        run("AveragePool", 7, [kernel(&[2])], [&half([60000.0, 50016.0])])
            .gives(tensor(&[1, 1, 1], [f16::from_f32(55008.0)]));
        let brain = tensor(&[1, 1, 2], [3f32, 4.0].map(bf16::from_f32));
        run("LpPool", 22, [kernel(&[2])], [&brain]).gives(tensor(&[1, 1, 1], [bf16::from_f32(5.0)]));
        run("AveragePool", 22, [kernel(&[2])], [&brain]).gives(tensor(&[1, 1, 1], [bf16::from_f32(3.5)]));
        run("AveragePool", 22, [kernel(&[2])], [&tensor(&[1, 1, 2], [1f64, 2.0])]).gives(tensor(&[1, 1, 1], [1.5f64]));
        run("LpPool", 18, [kernel(&[2]), int("p", 3)], [&tensor(&[1, 1, 2], [3f64, -3.0])])
            .gives(tensor(&[1, 1, 1], [54f64.cbrt()]));
    }

    /// Added in float, the ones would be lost.
    #[test]
    fn sums_are_rounded_once() {
        let x = line(&[16777216.0, 1.0, 1.0, -16777216.0]);
        run("AveragePool", 22, [kernel(&[4])], [&x]).gives(line(&[0.5]));
    }

    #[test]
    fn norms() {
        let x = line(&[3.0, -4.0, 0.0]);
        run("LpPool", 2, [kernel(&[2])], [&x]).gives(line(&[5.0, 4.0]));
        run("LpPool", 11, [kernel(&[2]), int("p", 1)], [&x]).gives(line(&[7.0, 4.0]));
        run("LpPool", 1, [kernel(&[2]), ("p", Attribute::Float(1.0))], [&x]).gives(line(&[7.0, 4.0]));
        run("LpPool", 1, [kernel(&[2]), ("p", Attribute::Float(0.5))], [&line(&[4.0, -9.0])]).gives(line(&[25.0]));
        run("LpPool", 18, [kernel(&[2]), int("p", 3), int("ceil_mode", 1), ints("strides", &[2])], [&x])
            .gives(line(&[91f32.cbrt(), 0.0]));
        for p in [0, -1] {
            run("LpPool", 18, [kernel(&[2]), int("p", p)], [&x])
                .fails(&format!("p is {p}: it must be a number greater than 0"));
        }
        run("LpPool", 1, [kernel(&[2]), ("p", Attribute::Float(f32::INFINITY))], [&x]).fails("p is inf");
    }

    #[test]
    fn no_windows() {
        let nothing = |shape: &[usize]| tensor(shape, Vec::<f32>::new());
        run("MaxPool", 12, [kernel(&[5])], [&line(&[1.0])]).gives(nothing(&[1, 1, 0]));
        run("AveragePool", 22, [kernel(&[1])], [&nothing(&[0, 3, 2])]).gives(nothing(&[0, 3, 2]));
        run("LpPool", 22, [kernel(&[2]), ints("pads", &[1, 1])], [&nothing(&[1, 1, 0])]).gives(line(&[0.0]));
    }

    #[test]
    fn refusals() {
        run("MaxPool", 12, [kernel(&[1, 1])], [&line(&[1.0])]).fails("kernel_shape has 2 numbers: 1 are needed");
        run("MaxPool", 12, [kernel(&[1])], [&tensor(&[2, 2], [0f32; 4])]).fails("of rank 2: allowed ranks from 3 on");
        run("MaxPool", 8, [kernel(&[1]), int("storage_order", 2)], [&line(&[1.0])]).fails("storage_order is 2");
        run("AveragePool", 7, [kernel(&[1]), ints("pads", &[i64::MAX, i64::MAX])], [&line(&[1.0])])
            .fails("there are more windows than can be counted");
        run("LpPool", 1, [], [&line(&[1.0])]).fails("kernel_shape is not given: windows have no size");
    }

    #[test]
    fn shapes() {
        let x = "float[N, C, 7, W]";
        let kernel = || ints("kernel_shape", &[3, 2]);
        infer("AveragePool", 1, [kernel()], [x]).gives("[N, C, 5, max(W - 1, 0)]");
        infer("AveragePool", 22, [kernel(), ints("strides", &[2, 2]), ints("pads", &[0, 0, 1, 1])], [x])
            .gives("[N, C, 3, floor((W + 1)/2)]");
        infer("AveragePool", 19, [kernel(), ints("dilations", &[3, 3])], [x]).gives("[N, C, 1, max(W - 3, 0)]");
        infer("MaxPool", 8, [kernel()], [x]).gives_all(["[N, C, 5, max(W - 1, 0)]", "[N, C, 5, max(W - 1, 0)]"]);
        infer("MaxPool", 1, [kernel(), string("auto_pad", "SAME_UPPER"), ints("strides", &[2, 1])], [x])
            .gives("[N, C, 4, W]");
        infer("LpPool", 2, [kernel(), string("auto_pad", "VALID")], [x]).gives("[N, C, 5, max(W - 1, 0)]");
        infer("LpPool", 2, [kernel(), string("auto_pad", ""), ints("pads", &[1, 0, 1, 0])], [x])
            .gives("[N, C, 7, max(W - 1, 0)]");
        infer("LpPool", 1, [], [x]).fails("kernel_shape is not given: windows have no size");
        infer("MaxPool", 12, [ints("kernel_shape", &[5, 5])], ["float"]).gives("");
    }

    #[test]
    fn sizes_that_are_rounded_up() {
        let pool = |kernel: i64, pads: [i64; 2], size: &str, want: &str| {
            let attributes =
                [ints("kernel_shape", &[kernel]), ints("strides", &[2]), ints("pads", &pads), int("ceil_mode", 1)];
            infer("MaxPool", 12, attributes, [&format!("float[1, 1, {size}]")]).gives(&format!("[1, 1, {want}]"));
        };
        pool(3, [0, 0], "4", "2");
        pool(3, [0, 0], "5", "2");
        pool(3, [0, 0], "6", "3");
        pool(3, [0, 0], "W", "floor((W)/2)");
        pool(3, [1, 1], "W", "floor((W + 2)/2)");
        // The second window would begin behind the input.
        pool(1, [0, 0], "2", "1");
        pool(1, [0, 0], "W", "floor((W + 1)/2)");
        pool(2, [0, 1], "W", "floor((W + 1)/2)");
    }

    /// Windows are counted one by one: each begins within the input, and the one before ends before the padding does.
    #[test]
    fn sizes_are_those_of_windows_that_are_counted() {
        let cases = (0..9 * 3 * 3 * 2 * 3 * 2).map(|k| (k % 9 + 1, k / 9 % 3 + 1, k / 27 % 3 + 1, k / 81 % 6, k / 486));
        for (size, kernel, stride, pads, ceil) in cases {
            let (begin, end) = (pads % 2, pads / 2);
            let (whole, attributes) = (
                begin + size + end,
                [
                    ints("kernel_shape", &[kernel]),
                    ints("strides", &[stride]),
                    ints("pads", &[begin, end]),
                    int("ceil_mode", ceil),
                ],
            );
            let counts = |at: &i64| match ceil {
                0 => at + kernel <= whole,
                _ => *at < begin + size && at - stride + kernel < whole,
            };
            let count = (0..).map(|k| k * stride).take_while(counts).count();
            infer("MaxPool", 12, attributes, [&format!("float[1, 1, {size}]")]).gives(&format!("[1, 1, {count}]"));
        }
    }

    #[test]
    fn windows_without_padding_end_within_the_input() {
        let attributes =
            [ints("kernel_shape", &[3]), ints("strides", &[2]), string("auto_pad", "VALID"), int("ceil_mode", 1)];
        infer("AveragePool", 19, attributes, ["float[1, 1, 6]"]).gives("[1, 1, 2]");
    }

    #[test]
    fn faults() {
        let kernel = |sizes| ints("kernel_shape", sizes);
        infer("MaxPool", 12, [kernel(&[3])], ["float[1, 1, 5, 5]"]).fails("kernel_shape has 1 numbers: 2 are needed");
        infer("MaxPool", 12, [kernel(&[0])], ["float[1, 1, 5]"]).fails("kernel_shape[0] is 0: it must be at least 1");
        infer("MaxPool", 12, [kernel(&[1]), int("ceil_mode", 2)], ["float[1, 1, 5]"]).fails("ceil_mode is 2");
        infer("LpPool", 18, [kernel(&[1]), string("auto_pad", "SAME")], ["float[1, 1, 5]"])
            .fails("auto_pad is \"SAME\": allowed NOTSET, VALID, SAME_UPPER, SAME_LOWER");
        infer("AveragePool", 7, [kernel(&[3])], ["float[5, 5]"]).fails("allowed ranks from 3 on");
    }
}
