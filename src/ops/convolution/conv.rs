//! Conv: a convolution with one filter for each channel of the output.
//! <https://onnx.ai/onnx/operators/onnx__Conv.html>

use super::bytes::ByteConv;
use super::in_blocks::ConvInBlocks;
use crate::ops::prelude::*;
use kernels::gemm::blocks::{Few, ROOM};
use kernels::gemm::{Alone, Scaled};
use kernels::windows::Axis;

pub(super) const CONV: Implementation = Implementation::product("Conv", &[1, 11, 22], load);

/// `Y[b, f, o..] = B[f] + sum over c, t.. of W[f, c, t..] * X[b, first + c, o * stride + t * dilation - pad..]`, where `first`
/// is the first channel of the filter's group, and `X` is 0 outside of the image
///
/// The sum is that of a product of matrices over `c` and then `t..`: entries in padding are added as zeros. The bias is
/// added last.
#[derive(Debug)]
struct Conv {
    filters: Filters,
    weights: Weights,
    /// The same filters as the right operand, for images that a window shows as a whole.
    turned: Weights,
}

fn load(node: &Node<'_>) -> Result<Arc<dyn MatrixProduct>> {
    let (weights, turned) = (Weights::of(node, 1), Weights::of(node, 1));
    Ok(Arc::new(Conv { filters: Filters::of(node, [0, 1], Some(2))?, weights, turned }))
}

/// Filters of a channel from which on a product is faster, unless windows have a loop of their own.
const FILTERS: usize = 4;

/// Places from which on few filters see neighbours at once.
const PLACES: usize = 16;

impl Conv {
    fn convolve<S: Multiply>(&self, call: &Call<'_>, convolution: &Convolution, tail: Option<&Tail>) -> Result<Values> {
        let (x, w, bias) = (call.tensor(0)?.as_slice::<S>()?, call.tensor(1)?, call.optional_tensor(2)?);
        let Convolution { m, k, n, groups, batch, axes, channels, output: shape } = convolution;
        let mut output = call.output::<S>(shape)?;
        let by_filter = convolution.by_filter();
        let mut bias =
            bias.map(|bias| bias.as_slice()).transpose()?.map(|bias| convolution.bias::<S>(bias, &by_filter));
        // A matrix by a column for each image is one product, of rows.
        let is_row = *groups == 1 && axes.iter().all(Axis::shows_all);
        let sizes = if is_row { (shape.first().copied().unwrap_or(0), *m) } else { (*m, *n) };
        if let (true, Some(Scaled { c: Some(c), .. })) = (is_row, &mut bias) {
            c.strides = if *m == 1 { Strides::ONE } else { Strides::COLUMNS };
        }
        let tail = TailSteps::<S>::of(call, tail, sizes)?;
        let bias = bias.iter().map(|bias| bias as &dyn kernels::gemm::Step<S::Sum>);
        let steps: SmallVec<[_; 3]> = bias.chain(tail.all()).collect();
        let matrix = Matrix { tensor: w, columns: *k, transposed: is_row };
        let product = if is_row {
            let b = self.turned.right::<S>(call, matrix, 1, (*k, *m))?;
            let (a, (m, n)) = (Left::View(View::rows(x, *k)), sizes);
            Product::<S> { m, k: *k, n, a, b, batch: &[], epilogue: &steps }
        } else {
            let a = self.weights.left::<S>(call, matrix, *groups, (*m, *k))?;
            let b = Right::Windows(kernels::gemm::Windows::new(x, *channels, axes, S::zeroed()));
            Product::<S> { m: *m, k: *k, n: *n, a, b, batch, epilogue: &steps }
        };
        multiply(call, product, output.elements_mut()?)?;
        Ok(output.finish().into())
    }

    /// As [`Conv::convolve`], bit by bit, for groups of one channel.
    fn alone<T: Float + Multiply<Sum = T>>(
        &self,
        call: &Call<'_>,
        convolution: &Convolution,
        tail: Option<&Tail>,
    ) -> Result<Values> {
        let bias = call.optional_tensor(2)?.map(Tensor::as_slice::<T>).transpose()?;
        let (images, filters) = (call.tensor(0)?.as_slice::<T>()?, call.tensor(1)?.as_slice::<T>()?);
        let mut output = call.output::<T>(&convolution.output)?;
        call.charge(kernels::volume(convolution.k, &convolution.output) as u64)?;
        let (axes, channels, of_each) = (&*convolution.axes, convolution.groups, convolution.m);
        let tail = TailSteps::<T>::of(call, tail, (of_each, convolution.n))?;
        Alone { axes, images, channels, filters, of_each, bias, epilogue: &tail.all() }
            .run(output.elements_mut()?, call.resources())?;
        Ok(output.finish().into())
    }

    /// As [`Conv::convolve`], bit by bit, for few filters; `None` if that takes too much memory.
    fn few(&self, call: &Call<'_>, convolution: &Convolution, tail: Option<&Tail>) -> Result<Option<Values>> {
        let (x, w, bias) = (call.tensor(0)?, call.tensor(1)?, call.optional_tensor(2)?);
        let Convolution { m, k, n, channels, output: shape, .. } = convolution;
        let (axes, _) = self.filters.of_image(w.shape(), x.shape().get(2..).unwrap_or(&[]))?;
        let by_filter = convolution.by_filter();
        let bias = bias.map(Tensor::as_slice).transpose()?.map(|bias| convolution.bias::<f32>(bias, &by_filter));
        let tail = TailSteps::<f32>::of(call, tail, (*m, *n))?;
        let bias = bias.iter().map(|bias| bias as &dyn kernels::gemm::Step<f32>);
        let steps: SmallVec<[_; 3]> = bias.chain(tail.all()).collect();
        let (images, filters, resources) = (x.as_slice()?, w.as_slice()?, call.resources());
        let few = Few { axes: &axes, images, channels: *channels, filters, count: *m, epilogue: &steps };
        let plan = few.plan(shape.first().copied().unwrap_or(0), resources);
        let Some(plan) = plan.ok().filter(|plan| plan.scratch() <= ROOM) else { return Ok(None) };
        let mut output = call.output::<f32>(shape)?;
        call.charge(kernels::volume(*k, shape) as u64)?;
        let mut scratch = call.scratch::<f32>(plan.scratch())?;
        plan.run(output.elements_mut()?, scratch.elements_mut(), resources)?;
        Ok(Some(output.finish().into()))
    }

    fn compute(&self, call: &Call<'_>, tail: Option<&Tail>) -> Result<Values> {
        let convolution = self.filters.convolution(call)?;
        let Convolution { groups, channels, m, k, n, axes, .. } = &convolution;
        // A product reads single places where they are: few filters would copy them.
        let are_few = (1..=Few::MOST).contains(m) && *groups == 1 && *channels > 1 && k > channels && *n >= PLACES;
        let suits = are_few && axes.len() <= 3 && call.tensor(0)?.dtype() == DType::Float;
        if suits && let Some(values) = self.few(call, &convolution, tail)? {
            return Ok(values);
        }
        let suits = *m < FILTERS || *groups > 1 && Alone::<f32>::is_direct(axes);
        let is_alone = *channels == 1 && suits && Alone::<f32>::suits(axes);
        match call.tensor(0)?.dtype() {
            DType::Float if is_alone => self.alone::<f32>(call, &convolution, tail),
            DType::Double if is_alone => self.alone::<f64>(call, &convolution, tail),
            dtype => with_floats!(dtype, S => self.convolve::<S>(call, &convolution, tail)),
        }
    }
}

impl MatrixProduct for Conv {
    fn shape(&self, call: &Call<'_>, dtype: DType) -> Option<Shape> {
        call.tensor(0).ok().filter(|x| x.dtype() == dtype)?;
        Some(self.filters.convolution(call).ok()?.output)
    }

    fn reads_beside(&self) -> bool {
        true
    }

    fn in_blocks(&self, channels: usize, filters: &[usize]) -> Option<InBlocks> {
        ConvInBlocks::of(&self.filters, channels, filters)
    }

    fn run_then(&self, call: &Call<'_>, tail: &Tail) -> Result<Values> {
        self.compute(call, Some(tail))
    }

    fn of_bytes(&self, bytes: ByteProduct) -> Option<Box<dyn Fused>> {
        Some(Box::new(ByteConv::new(&self.filters, bytes)))
    }
}

impl Operator for Conv {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        self.compute(call, None)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        self.filters.give(facts)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::filters::plain::{Case, samples};
    use crate::ops::testing::{infer, int, ints, outputs, run, string, tensor};
    use crate::value::Value;
    use half::{bf16, f16};
    use kernels::gemm::BLOCK;

    fn iota(shape: &[usize]) -> Value {
        tensor(shape, (0..shape.iter().product()).map(|k| k as f32).collect::<Vec<_>>())
    }

    fn ones(shape: &[usize]) -> Value {
        tensor(shape, vec![1f32; shape.iter().product()])
    }

    /// The sums of the standard's examples.
    #[test]
    fn sums_of_windows() {
        let (x, w) = (iota(&[1, 1, 5, 5]), ones(&[1, 1, 3, 3]));
        let padded = [
            12f32, 21., 27., 33., 24., 33., 54., 63., 72., 51., 63., 99., 108., 117., 81., 93., 144., 153., 162., 111.,
            72., 111., 117., 123., 84.,
        ];
        let pads = || ints("pads", &[1, 1, 1, 1]);
        run("Conv", 11, [ints("kernel_shape", &[3, 3]), pads()], [&x, &w]).gives(tensor(&[1, 1, 5, 5], padded));
        run("Conv", 1, [], [&x, &w]).gives(tensor(&[1, 1, 3, 3], [54f32, 63., 72., 99., 108., 117., 144., 153., 162.]));
        let x = iota(&[1, 1, 7, 5]);
        let strides = || ints("strides", &[2, 2]);
        let want = [12f32, 27., 24., 63., 108., 81., 123., 198., 141., 112., 177., 124.];
        run("Conv", 22, [pads(), strides()], [&x, &w]).gives(tensor(&[1, 1, 4, 3], want));
        let want = [54f32, 72., 144., 162., 234., 252.];
        run("Conv", 22, [strides()], [&x, &w]).gives(tensor(&[1, 1, 3, 2], want));
        let want = [21f32, 33., 99., 117., 189., 207., 171., 183.];
        run("Conv", 22, [ints("pads", &[1, 0, 1, 0]), strides()], [&x, &w]).gives(tensor(&[1, 1, 4, 2], want));
    }

    /// The odd place of the padding is at the end, or at the beginning.
    #[test]
    fn padding_of_its_own() {
        let (x, w) = (tensor(&[1, 1, 4], [1f32, 2., 3., 4.]), tensor(&[1, 1, 2], [1f32, 10.]));
        let auto = |kind: &str| string("auto_pad", kind);
        run("Conv", 11, [auto("SAME_UPPER")], [&x, &w]).gives(tensor(&[1, 1, 4], [21f32, 32., 43., 4.]));
        run("Conv", 1, [auto("SAME_LOWER")], [&x, &w]).gives(tensor(&[1, 1, 4], [10f32, 21., 32., 43.]));
        run("Conv", 22, [auto("VALID")], [&x, &w]).gives(tensor(&[1, 1, 3], [21f32, 32., 43.]));
        let (four, three) = (ones(&[1, 1, 4]), || ints("strides", &[3]));
        run("Conv", 22, [auto("SAME_UPPER"), three()], [&x, &four]).gives(tensor(&[1, 1, 2], [6f32, 7.]));
        run("Conv", 22, [auto("SAME_LOWER"), three()], [&x, &four]).gives(tensor(&[1, 1, 2], [3f32, 9.]));
        // Each stride begins a window: no padding is needed.
        let (one, three) = (ones(&[1, 1, 1]), ints("strides", &[3]));
        run("Conv", 22, [auto("SAME_LOWER"), three], [&x, &one]).gives(tensor(&[1, 1, 2], [1f32, 4.]));
    }

    /// In blocks of steps, as products are summed.
    fn sum(terms: impl Iterator<Item = (f32, f32)>) -> f32 {
        let terms: Vec<_> = terms.collect();
        let blocks = terms.chunks(BLOCK).map(|block| block.iter().fold(0f32, |sum, (w, x)| w.mul_add(*x, sum)));
        blocks.reduce(|all, block| all + block).unwrap_or(0.0)
    }

    fn check(case: &Case, seed: u64) {
        let taps = case.taps();
        let (x, w, b) = (samples(&case.x, seed), samples(&case.w, seed + 1), samples(&case.w[..1], seed + 2));
        let each = taps.len() / case.output()[..2].iter().product::<usize>().max(1);
        let bias = |at: usize| b[at / each % b.len()];
        let of = |taps: &[(usize, Option<usize>)]| -> Vec<(f32, f32)> {
            taps.iter().map(|(k, at)| (w[*k], at.map_or(0.0, |at| x[at]))).collect()
        };
        let want: Vec<f32> = taps.iter().enumerate().map(|(at, taps)| sum(of(taps).into_iter()) + bias(at)).collect();
        let inputs = [tensor(&case.x, x.clone()), tensor(&case.w, w.clone()), tensor(&[b.len()], b.clone())];
        let got = outputs("Conv", 22, case.attributes(), inputs.each_ref());
        assert_eq!(got[0], tensor(&case.output(), want.clone()), "{case:?}");
        // Beside the exact value.
        for (at, taps) in taps.iter().enumerate() {
            let terms = of(taps);
            let exact = terms.iter().fold(f64::from(bias(at)), |sum, (w, x)| sum + f64::from(*w) * f64::from(*x));
            let all = terms.iter().fold(f64::from(bias(at).abs()), |sum, (w, x)| sum + f64::from((w * x).abs()));
            let bound = (terms.len().min(BLOCK) + terms.len() / BLOCK + 2) as f64 * f64::from(f32::EPSILON) / 2.0;
            assert!((f64::from(want[at]) - exact).abs() <= bound * all, "{case:?} at {at}");
        }
        // float64 and the types of 16 bits, where all sums are exact: small numbers.
        let small = |numbers: &[f32]| numbers.iter().map(|number| (number % 4.0).round()).collect::<Vec<f32>>();
        let (x, w, b) = (small(&x), small(&w), small(&b));
        let of = |taps: &[(usize, Option<usize>)]| {
            taps.iter().fold(0f32, |sum, (k, at)| sum + at.map_or(0.0, |at| w[*k] * x[at]))
        };
        let want: Vec<f32> = taps.iter().enumerate().map(|(at, taps)| of(taps) + b[at / each % b.len()]).collect();
        macro_rules! check_as {
            ($($of:expr),*) => {$(
                let [own_x, own_w, own_b, own] = [(&case.x, &x), (&case.w, &w), (&vec![b.len()], &b), (&case.output(), &want)]
                    .map(|(shape, numbers)| tensor(shape, numbers.iter().copied().map($of).collect::<Vec<_>>()));
                run("Conv", 22, case.attributes(), [&own_x, &own_w, &own_b]).gives(own);
            )*};
        }
        check_as!(f64::from, f16::from_f32, bf16::from_f32);
    }

    #[test]
    fn many_convolutions() {
        Case::many(60, 4, 7).zip(0..).for_each(|(case, seed)| check(&case, seed));
    }

    fn square(x: [usize; 3], w: [usize; 2], kernel: usize, group: usize, stride: i64, pad: i64) -> Case {
        let [channels, height, width] = x;
        Case {
            x: vec![1, channels, height, width],
            w: vec![w[0], w[1], kernel, kernel],
            group,
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            pads: vec![pad; 4],
        }
    }

    /// Longer sums than a block, plain products, one filter for each channel, and images of one place.
    #[test]
    fn kinds_of_convolutions() {
        check(&square([50, 6, 7], [3, 50], 3, 1, 1, 1), 1);
        check(&square([9, 5, 7], [20, 9], 1, 1, 1, 0), 2);
        check(&square([9, 5, 7], [20, 9], 1, 1, 2, 0), 3);
        check(&square([12, 9, 9], [12, 1], 3, 12, 1, 1), 4);
        check(&square([6, 9, 9], [12, 1], 3, 6, 2, 1), 5);
        check(&square([40, 1, 1], [9, 40], 1, 1, 1, 0), 6);
        check(&square([4, 3, 3], [9, 4], 3, 1, 1, 0), 7);
        check(&Case { x: vec![3, 4, 1, 1], ..square([4, 1, 1], [6, 2], 1, 2, 1, 0) }, 8);
    }

    /// A product at float64, where float32 would round.
    #[test]
    fn double() {
        let (x, w) = (tensor(&[1, 1, 2], [1f64, 1e-12]), tensor(&[1, 1, 2], [1f64, 1.]));
        run("Conv", 11, [], [&x, &w]).gives(tensor(&[1, 1, 1], [1f64 + 1e-12]));
    }

    #[test]
    fn rounded_once() {
        let half = |shape: &[usize], numbers: &[f32]| {
            tensor(shape, numbers.iter().map(|number| f16::from_f32(*number)).collect::<Vec<_>>())
        };
        let (x, w) = (half(&[1, 1, 3], &[2048., 1., 1.]), half(&[1, 1, 3], &[1.; 3]));
        run("Conv", 11, [], [&x, &w, &half(&[1], &[2.])]).gives(half(&[1, 1, 1], &[2052.]));
    }

    #[test]
    fn empty_ones() {
        let none = |shape: &[usize]| tensor(shape, Vec::<f32>::new());
        let (w, bias) = (ones(&[2, 3, 3, 3]), tensor(&[2], [1f32, 2.]));
        run("Conv", 11, [], [&none(&[0, 3, 5, 5]), &w]).gives(none(&[0, 2, 3, 3]));
        // Windows that are larger than the image.
        run("Conv", 11, [], [&ones(&[1, 3, 2, 2]), &w]).gives(none(&[1, 2, 0, 0]));
        run("Conv", 11, [], [&none(&[1, 3, 0, 5]), &w]).gives(none(&[1, 2, 0, 3]));
        run("Conv", 11, [], [&ones(&[1, 3, 5, 5]), &none(&[0, 3, 3, 3])]).gives(none(&[1, 0, 3, 3]));
        // Without channels the bias is left.
        run("Conv", 11, [], [&none(&[1, 0, 1, 2]), &none(&[2, 0, 1, 1]), &bias])
            .gives(tensor(&[1, 2, 1, 2], [1f32, 1., 2., 2.]));
        // Padding alone.
        run("Conv", 11, [ints("pads", &[1, 1, 1, 1])], [&none(&[1, 3, 0, 1]), &w, &bias]).gives(none(&[1, 2, 0, 1]));
        run("Conv", 11, [ints("pads", &[2, 1, 1, 1])], [&none(&[1, 3, 0, 1]), &w, &bias])
            .gives(tensor(&[1, 2, 1, 1], [1f32, 2.]));
    }

    #[test]
    fn refusals() {
        let (x, w) = (ones(&[1, 3, 4]), ones(&[3, 1, 2]));
        let error =
            run("Conv", 11, [], [&x, &w]).fails("\"X\" has 3 channels, but the filters of 1 groups have 1 each");
        assert_eq!(error.place().parameter.as_deref(), Some("W"));
        run("Conv", 11, [int("group", 3)], [&x, &ones(&[4, 1, 2])])
            .fails("\"W\" has 4 filters, which can't be divided into 3 groups");
        run("Conv", 11, [int("group", 3)], [&x, &w, &ones(&[2])]).fails("dimension 0 of \"B\" of shape [2] is 2");
        run("Conv", 11, [int("group", 3), ints("strides", &[1, 1])], [&x, &w]).fails("2 numbers: 1 are needed");
        run("Conv", 11, [int("group", 3)], [&x, &ones(&[3, 1, 0])]).fails("has windows without entries");
        run("Conv", 11, [], [&ones(&[3, 4]), &ones(&[3, 4])]).fails("allowed ranks from 3 on");
        let far = [int("group", 3), ints("dilations", &[i64::MAX]), string("auto_pad", "SAME_UPPER")];
        run("Conv", 11, far, [&x, &w]).fails("dilations 9223372036854775807 reach beyond any image");
        let far = [int("group", 3), ints("dilations", &[i64::MAX - 1]), string("auto_pad", "SAME_UPPER")];
        run("Conv", 11, far, [&x, &w]).fails("dilations 9223372036854775806 reach beyond any image");
    }

    #[test]
    fn shapes() {
        let x = "float[N, 3, 7, W]";
        infer("Conv", 11, [], [x, "float[8, 3, 3, 3]"]).gives("[N, 8, 5, max(W - 2, 0)]");
        infer("Conv", 11, [ints("pads", &[1, 1, 1, 1]), ints("strides", &[2, 2])], [x, "float[8, 3, 3, 3]"])
            .gives("[N, 8, 4, floor((W + 1)/2)]");
        infer("Conv", 1, [string("auto_pad", "SAME_LOWER"), ints("strides", &[2, 1])], [x, "float[M, 3, 3, 3]"])
            .gives("[N, M, 4, W]");
        infer("Conv", 22, [int("group", 3), ints("dilations", &[3, 2])], [x, "float[6, 1, 3, 3]", "float[6]"])
            .gives("[N, 6, 1, max(W - 4, 0)]");
        infer("Conv", 22, [], [x, "float[6, 3, k, 3]"]).gives("[N, 6, ?, max(W - 2, 0)]");
        infer("Conv", 22, [ints("kernel_shape", &[3, 5])], [x, "float[6, 3, k, 5]"]).gives("[N, 6, 5, max(W - 4, 0)]");
        infer("Conv", 22, [], ["float", "float[6, 3, 3, 3]"]).gives("");
    }

    #[test]
    fn faults() {
        let x = "float[N, 3, 7, 7]";
        infer("Conv", 11, [], [x, "float[8, 4, 3, 3]"])
            .fails("\"X\" has 3 channels, but the filters of 1 groups have 4 each");
        infer("Conv", 11, [], [x, "float[8, 3, 3]"]).fails("\"W\" has shape [8, 3, 3] of rank 3");
        infer("Conv", 11, [ints("kernel_shape", &[3, 2])], [x, "float[8, 3, 3, 3]"])
            .fails("kernel_shape[1] is 2, but in \"W\" of shape [8, 3, 3, 3] it is 3");
        infer("Conv", 11, [], [x, "float[8, 3, 3, 0]"])
            .fails("\"W\" of shape [8, 3, 3, 0] has windows without entries");
        infer("Conv", 11, [ints("strides", &[1])], [x, "float[8, 3, 3, 3]"])
            .fails("strides has 1 numbers: 2 are needed");
        infer("Conv", 11, [ints("strides", &[1, 0])], [x, "float[8, 3, 3, 3]"]).fails("strides[1] is 0");
        infer("Conv", 11, [], [x, "float[8, 3, 3, 3]", "float[7]"]).fails("dimension 0 of \"B\" of shape [7] is 7");
        infer("Conv", 11, [ints("kernel_shape", &[3])], [x, "float[8, 3, k, 3]"])
            .fails("kernel_shape has 1 numbers: 2 are needed");
        infer("Conv", 11, [int("group", 0)], [x, "float[8, 3, 3, 3]"]).fails("group is 0: it must be at least 1");
        let same = || string("auto_pad", "SAME_UPPER");
        infer("Conv", 11, [same(), ints("pads", &[1, 1, 1, 1])], [x, "float[8, 3, 3, 3]"])
            .fails("pads and auto_pad are both given: only one of them can be");
        infer("Conv", 11, [same(), ints("pads", &[0, 0, 0, 0])], [x, "float[8, 3, 3, 3]"]).gives("[N, 8, 7, 7]");
        infer("Conv", 11, [ints("pads", &[0, 0, -1, 0])], [x, "float[8, 3, 3, 3]"])
            .fails("pads[2] is -1: it must be at least 0");
        infer("Conv", 11, [], ["float[3, 7]", "float[8, 3, 3]"]).fails("allowed ranks from 3 on");
    }
}
