//! ConvTranspose: each entry of an image spreads its filter over a larger one.
//! <https://onnx.ai/onnx/operators/onnx__ConvTranspose.html>

use super::spread_in_blocks::SpreadInBlocks;
use crate::ops::prelude::*;
use kernels::fold::{Summand, fold, work};
use kernels::gemm::{Number, Operand};
use kernels::windows::Axis;

pub(super) const CONV_TRANSPOSE: Implementation = Implementation::blockwise("ConvTranspose", &[1, 11, 22], load);

/// `Y[b, f, i * stride + t * dilation - pad..] = B[f] + sum over t.. of (sum over c of W[c, f, t..] * X[b, c, i..])`, over the
/// channels `c` of the group and those `i..` that meet the place
///
/// The inner sums are those of a product of matrices. They are added up as float64 in the order of `t..`, then comes the bias,
/// and the result is rounded once. Where the image is larger than what the windows cover, it ends with the bias alone.
#[derive(Debug, Clone)]
pub(super) struct ConvTranspose {
    groups: i64,
    attributes: WindowAttributes,
    /// `output_padding`
    more: windows::Numbers,
    /// `output_shape`. In version 1 the batch and the channels may be before the sizes.
    shape: windows::Numbers,
    with_channels: bool,
    /// The larger half of what the windows cover beyond the image is before it. The formula of version 1 has the halves the
    /// other way round, against what it says of `auto_pad`: that of later versions was corrected.
    begin_first: bool,
}

fn load(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    let attributes = WindowAttributes::of(node)?;
    Ok(Arc::new(ConvTranspose {
        groups: windows::one_or_more(node, "group")?,
        more: windows::Numbers::of(node, "output_padding", 0)?,
        shape: windows::Numbers::of(node, "output_shape", 0)?,
        with_channels: node.version() < 11,
        begin_first: !attributes.is_same_upper(),
        attributes,
    }))
}

/// Elements of columns that are computed at a time, if a filter has no more: of a group, and of several ones.
const COLUMNS: usize = 1 << 21;
const NEAR: usize = 1 << 17;

impl ConvTranspose {
    /// What is known about the shape of the output, and its windows, if the ranks are known.
    fn spread(&self, facts: &Inference<'_>) -> Result<Option<(Vec<Dim>, Windows)>> {
        let (Some(x), Some(w)) = (facts.ranked(0, 3..)?, facts.ranked(1, 3..)?) else { return Ok(None) };
        if x.len() != w.len() {
            return Err(facts.unequal_ranks(0, 1));
        }
        let ([batch, _, image @ ..], [_, of_each, ..]) = (x, w) else { return Ok(None) };
        let (channels, groups) = (facts.same_size((0, 1), (1, 0))?, self.groups);
        if let Some(channels) = channels.fixed()
            && channels % groups != 0
        {
            let text = format!("\"X\" has {channels} channels, which can't be divided into {groups} groups");
            return Err(Error::input(text).parameter("X").axis(1).value(channels));
        }
        let filters = Dim::product([of_each, &Dim::of(groups)]);
        if let Some([bias]) = facts.sizes(2)?
            && filters.both(bias).is_none()
        {
            let text = format!("\"B\" has {bias} numbers, but the output has {filters} channels: they must be equal");
            return Err(Error::input(text).parameter("B").axis(0));
        }
        let windows = self.attributes.windows(&self.attributes.kernel_of(facts, 1, image.len())?)?;
        let sizes = self.image(&windows, image)?;
        Ok(Some(([&[batch.clone(), filters], &*sizes].concat(), windows)))
    }

    /// The sizes of the image that windows at so many places are spread over.
    fn image(&self, windows: &Windows, places: &[Dim]) -> Result<Vec<Dim>> {
        let more = self.more.each(places.len())?;
        // Version 1 has no such rule.
        if !self.with_channels {
            windows.check_more(&more)?;
        }
        match self.shape(places.len())? {
            Some(shape) => Ok(shape),
            None => windows.covered(&more, places),
        }
    }

    /// The windows along each axis of that image.
    fn axes(&self, windows: &Windows, image: &[usize], places: &[usize]) -> Result<SmallVec<[Axis; 3]>> {
        windows.spread(image, places, &self.more.each(places.len())?, !self.shape.list.is_empty(), self.begin_first)
    }

    /// The axes of images of rows and columns, that are as large as they are, for a kernel.
    pub(super) fn of_image(&self, kernel: [usize; 2], places: [usize; 2]) -> Result<Option<([Axis; 2], [usize; 2])>> {
        let windows = self.attributes.windows(&kernel.map(|size| i64::try_from(size).ok()))?;
        let Some(image) = Dim::sizes(&self.image(&windows, &places.map(Dim::Fixed))?) else { return Ok(None) };
        Ok(match (&*self.axes(&windows, &image, &places)?, &*image) {
            ([rows, columns], [height, width]) => Some(([*rows, *columns], [*height, *width])),
            _ => None,
        })
    }

    /// The sizes that `output_shape` gives.
    fn shape(&self, count: usize) -> Result<Option<Vec<Dim>>> {
        let sizes = match &*self.shape.list {
            [] => return Ok(None),
            [_, _, sizes @ ..] if self.with_channels && sizes.len() == count => sizes,
            _ => &self.shape.each(count)?,
        };
        Ok(Some(sizes.iter().map(|size| Dim::of(*size)).collect()))
    }

    fn transpose<S, T>(&self, call: &Call<'_>) -> Result<Values>
    where
        S: Multiply + Operand<Sum = T> + Summand<Sum = f64>,
        T: Multiply + Number + Operand<Sum = T> + Summand<Sum = f64>,
    {
        let nothing = || Error::input("the pads leave nothing of the output");
        let (dims, windows) = call.by_rule(|facts| self.spread(facts))?.ok_or_else(nothing)?;
        let shape: Shape = Dim::sizes(&dims).ok_or_else(nothing)?.into();
        let (x, w) = (call.tensor(0)?, call.tensor(1)?);
        let ([images, channels, places @ ..], [_, m, kernel @ ..]) = (x.shape(), w.shape()) else {
            return Err(nothing());
        };
        let image = shape.get(2..).unwrap_or_default();
        let axes = self.axes(&windows, image, places)?;
        let groups = usize::try_from(self.groups).map_err(|_| nothing())?;
        let (c, n, taps) = (channels / groups, kernels::volume(1, places), kernels::volume(1, kernel));
        let mut output = call.output::<S>(&shape)?;
        let plane = kernels::volume(1, image);
        if output.elements_mut::<S>()?.is_empty() {
            return Ok(output.finish().into());
        }
        call.charge(work(&axes, images.saturating_mul(groups).saturating_mul(*m)) as u64)?;
        // A filter becomes rows of columns, one for each tap. Those of small groups are added up together.
        let (rows, filters) = (taps.saturating_mul(n), groups.saturating_mul(*m));
        let (near, most) = (NEAR / rows.max(1), COLUMNS / rows.max(1));
        let most = near.min(filters).max(most.min(*m)).max(1);
        let mut columns = call.scratch::<T>(most.saturating_mul(rows))?;
        let columns = columns.elements_mut::<T>();
        let (x, w) = (x.as_slice::<S>()?, w.as_slice::<S>()?);
        let bias = call.optional_tensor(2)?.map(Tensor::as_slice::<S>).transpose()?;
        for (image, out) in output.elements_mut()?.chunks_mut(filters * plane).enumerate() {
            for (part, out) in out.chunks_mut(most * plane).enumerate() {
                let (start, count) = (part * most, out.len() / plane);
                let columns = columns.get_mut(..count * rows).unwrap_or_default();
                let (mut done, mut rest) = (0, &mut *columns);
                while done < count {
                    let (group, first) = ((start + done) / m, (start + done) % m);
                    let some = (m - first).min(count - done);
                    let b = x.get((image * groups + group) * c * n..).unwrap_or_default();
                    let a = w.get(group * c * m * taps + first * taps..).unwrap_or_default();
                    let (a, b) = (View::rows(a, m * taps).transposed(), View::rows(b, n));
                    let (a, b) = (Left::View(a), Right::View(b));
                    let product = Product::<T> { m: some * taps, k: c, n, a, b, batch: &[], epilogue: &[] };
                    let (now, others) = rest.split_at_mut(some * rows);
                    multiply(call, product, now)?;
                    (done, rest) = (done + some, others);
                }
                let bias = bias.and_then(|bias| bias.get(start..start + count));
                fold::<T, S>(&axes, columns, bias, out, call.resources())?;
            }
        }
        Ok(output.finish().into())
    }
}

impl Blockwise for ConvTranspose {
    fn in_blocks(&self, channels: usize, axes: usize, constant: &Constants<'_>) -> Option<InBlocks> {
        let kernel = self.attributes.kernel(2).ok()?;
        let &[own, m, rows, columns] = constant(1)?.shape() else { return None };
        let asked = |(asked, size): (&Option<i64>, usize)| asked.is_none_or(|asked| usize::try_from(asked) == Ok(size));
        let suits = axes == 2 && self.groups == 1 && own == channels && kernel.iter().zip([rows, columns]).all(asked);
        suits.then(|| SpreadInBlocks::of(self.clone(), [channels, m], [rows, columns])).flatten()
    }
}

impl Operator for ConvTranspose {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        with_floats!(call.tensor(0)?.dtype(), S => self.transpose::<S, _>(call))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_known(0, self.spread(facts)?.map(|(dims, _)| dims));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::filters::plain::{Case, samples};
    use crate::ops::testing::{infer, int, ints, outputs, run, string, tensor};
    use crate::value::Value;
    use half::f16;
    use kernels::gemm::BLOCK;

    fn iota(shape: &[usize]) -> Value {
        tensor(shape, (0..shape.iter().product()).map(|k| k as f32).collect::<Vec<_>>())
    }

    fn ones(shape: &[usize]) -> Value {
        tensor(shape, vec![1f32; shape.iter().product()])
    }

    /// The standard's examples.
    #[test]
    fn filters_that_spread() {
        let (x, w) = (iota(&[1, 1, 3, 3]), ones(&[1, 2, 3, 3]));
        let want = [
            0f32, 1., 3., 3., 2., 3., 8., 15., 12., 7., 9., 21., 36., 27., 15., 9., 20., 33., 24., 13., 6., 13., 21.,
            15., 8.,
        ];
        run("ConvTranspose", 11, [], [&x, &w]).gives(tensor(&[1, 2, 5, 5], [want, want].concat()));
        let (x, w) = (iota(&[1, 1, 3]), ones(&[1, 2, 3]));
        let want = [0f32, 1., 3., 3., 2.];
        run("ConvTranspose", 1, [], [&x, &w]).gives(tensor(&[1, 2, 5], [want, want].concat()));
        let (x, w) = (tensor(&[1, 1, 2], [3f32, 8.]), tensor(&[1, 1, 2], [7f32, 2.]));
        run("ConvTranspose", 22, [ints("dilations", &[2])], [&x, &w]).gives(tensor(&[1, 1, 4], [21f32, 56., 6., 16.]));
        let strides = || ints("strides", &[3]);
        run("ConvTranspose", 22, [strides()], [&x, &w]).gives(tensor(&[1, 1, 5], [21f32, 6., 0., 56., 16.]));
        run("ConvTranspose", 22, [strides(), ints("output_padding", &[1])], [&x, &w])
            .gives(tensor(&[1, 1, 6], [21f32, 6., 0., 56., 16., 0.]));
        run("ConvTranspose", 22, [strides(), ints("pads", &[1, 2])], [&x, &w]).gives(tensor(&[1, 1, 2], [6f32, 0.]));
    }

    /// What is beyond the image is cut off: the larger half at its end, or at its beginning.
    #[test]
    fn given_sizes() {
        let (x, w) = (tensor(&[1, 1, 2], [1f32, 10.]), tensor(&[1, 1, 3], [1f32, 2., 3.]));
        let shape = |size| ints("output_shape", &[size]);
        let auto = |kind: &str| string("auto_pad", kind);
        let gives = |opset, attributes, want: &[f32]| {
            run("ConvTranspose", opset, attributes, [&x, &w]).gives(tensor(&[1, 1, want.len()], want.to_vec()));
        };
        // All are 1, 12, 23, 30.
        gives(11, [shape(3), auto("NOTSET")], &[12., 23., 30.]);
        gives(11, [shape(3), auto("SAME_LOWER")], &[12., 23., 30.]);
        gives(11, [shape(3), auto("SAME_UPPER")], &[1., 12., 23.]);
        gives(1, [shape(3), auto("NOTSET")], &[12., 23., 30.]);
        gives(1, [shape(3), auto("SAME_UPPER")], &[1., 12., 23.]);
        gives(22, [shape(2), auto("NOTSET")], &[12., 23.]);
        gives(22, [shape(3), ints("pads", &[0, 9])], &[12., 23., 30.]);
        // A larger one ends with zeros.
        gives(22, [shape(6), auto("NOTSET")], &[1., 12., 23., 30., 0., 0.]);
        gives(1, [shape(5), ints("output_padding", &[1])], &[1., 12., 23., 30., 0.]);
        gives(22, [auto("SAME_UPPER"), ints("strides", &[1])], &[12., 23.]);
        // 1, 2, 13, 20, 30
        gives(22, [auto("SAME_UPPER"), ints("strides", &[2])], &[1., 2., 13., 20.]);
        gives(22, [auto("SAME_LOWER"), ints("strides", &[2])], &[2., 13., 20., 30.]);
        gives(22, [auto("SAME_LOWER"), ints("strides", &[4])], &[1., 2., 3., 0., 10., 20., 30., 0.]);
        gives(22, [auto("VALID"), ints("strides", &[2])], &[1., 2., 13., 20., 30.]);
    }

    /// Beside the definition: the adjoint of the convolution with the same filters.
    fn check(case: &Case, seed: u64) {
        let taps = case.taps();
        // The image of the convolution is the output here, and its filters are those of the channels here.
        let (shape, output) = (case.output(), case.x.clone());
        let (x, w, b) = (samples(&shape, seed), samples(&case.w, seed + 1), samples(&case.x[1..2], seed + 2));
        let each: usize = shape[2..].iter().product();
        let per_filter: usize = case.w[1..].iter().product();
        // For each place of the output and each tap, the products of the channels in their order.
        let mut terms = std::collections::BTreeMap::<(usize, usize), Vec<(f32, f32)>>::new();
        for (at, taps) in taps.iter().enumerate() {
            let channel = at / each % case.w[0];
            for (k, place) in taps {
                if let Some(place) = place {
                    let tap = k - channel * per_filter;
                    terms.entry((*place, tap)).or_default().push((w[*k], x[at]));
                }
            }
        }
        let sum = |terms: &Vec<(f32, f32)>| {
            let blocks = terms.chunks(BLOCK).map(|block| block.iter().fold(0f32, |sum, (w, x)| w.mul_add(*x, sum)));
            blocks.reduce(|all, block| all + block).unwrap_or(0.0)
        };
        let mut sums = vec![0f64; output.iter().product()];
        for ((place, _), terms) in &terms {
            sums[*place] += f64::from(sum(terms));
        }
        let plane: usize = output[2..].iter().product();
        let bias = |at: usize| f64::from(b[at / plane % b.len()]);
        let want: Vec<f32> = sums.iter().enumerate().map(|(at, sum)| (sum + bias(at)) as f32).collect();
        let more: Vec<i64> = (0..case.strides.len())
            .map(|k| {
                let covered =
                    (shape[k + 2] as i64 - 1) * case.strides[k] + (case.w[k + 2] as i64 - 1) * case.dilations[k] + 1;
                output[k + 2] as i64 + case.pads[k] + case.pads[case.strides.len() + k] - covered
            })
            .collect();
        let [group, strides, dilations, pads] = case.attributes();
        let attributes = [group, strides, dilations, pads, ints("output_padding", &more)];
        let inputs = [tensor(&shape, x), tensor(&case.w, w), tensor(&[b.len()], b.clone())];
        let got = outputs("ConvTranspose", 22, attributes, inputs.each_ref());
        assert_eq!(got[0], tensor(&output, want), "{case:?}");
    }

    #[test]
    fn many_convolutions() {
        Case::many(60, 4, 5).zip(0..).for_each(|(case, seed)| check(&case, seed));
    }

    #[test]
    fn other_types() {
        let (x, w) = (tensor(&[1, 1, 2], [1f64, 1e-12]), tensor(&[1, 1, 2], [1f64, 1.]));
        run("ConvTranspose", 11, [], [&x, &w]).gives(tensor(&[1, 1, 3], [1f64, 1. + 1e-12, 1e-12]));
        // Rounded once: 2048 + 1 + 1.
        let half = |shape: &[usize], numbers: &[f32]| {
            tensor(shape, numbers.iter().map(|number| f16::from_f32(*number)).collect::<Vec<_>>())
        };
        let (x, w, bias) = (half(&[1, 1, 2], &[2048., 1.]), half(&[1, 1, 2], &[1., 1.]), half(&[1], &[1.]));
        run("ConvTranspose", 22, [], [&x, &w, &bias]).gives(half(&[1, 1, 3], &[2049., 2050., 2.]));
    }

    #[test]
    fn empty_ones() {
        let none = |shape: &[usize]| tensor(shape, Vec::<f32>::new());
        let bias = tensor(&[2], [1f32, 2.]);
        run("ConvTranspose", 11, [], [&none(&[0, 3, 2]), &ones(&[3, 2, 3])]).gives(none(&[0, 2, 4]));
        run("ConvTranspose", 11, [], [&none(&[1, 0, 1]), &none(&[0, 2, 2]), &bias])
            .gives(tensor(&[1, 2, 2], [1f32, 1., 2., 2.]));
        run("ConvTranspose", 11, [], [&none(&[1, 1, 0]), &ones(&[1, 2, 2]), &bias])
            .gives(tensor(&[1, 2, 1], [1f32, 2.]));
        run("ConvTranspose", 11, [ints("pads", &[1, 1])], [&ones(&[1, 1, 1]), &ones(&[1, 2, 2])])
            .gives(none(&[1, 2, 0]));
        run("ConvTranspose", 11, [], [&ones(&[1, 1, 2]), &none(&[1, 0, 2])]).gives(none(&[1, 0, 3]));
    }

    #[test]
    fn refusals() {
        let x = ones(&[1, 1, 1]);
        run("ConvTranspose", 11, [ints("pads", &[1, 2])], [&x, &ones(&[1, 2, 2])]).fails("the pads leave nothing");
        run("ConvTranspose", 11, [ints("output_padding", &[2]), ints("strides", &[2])], [&x, &ones(&[1, 2, 2])])
            .fails("output_padding[0] is 2: it must be less than the stride or the dilation");
        run("ConvTranspose", 11, [], [&x, &ones(&[2, 2, 2])]).fails("dimension 0 of \"W\"");
        run("ConvTranspose", 11, [], [&x, &ones(&[1, 2, 2]), &ones(&[3])]).fails("the output has 2 channels");
    }

    #[test]
    fn shapes() {
        let (x, w) = ("float[N, 4, 3, W]", "float[4, 2, 3, 3]");
        infer("ConvTranspose", 11, [], [x, w]).gives("[N, 2, 5, W + 2]");
        infer("ConvTranspose", 22, [ints("strides", &[3, 2]), ints("pads", &[1, 2, 1, 2]), int("group", 2)], [x, w])
            .gives("[N, 4, 7, 2*W - 3]");
        infer("ConvTranspose", 1, [ints("strides", &[3, 2]), ints("output_padding", &[1, 1])], [x, w])
            .gives("[N, 2, 10, 2*W + 2]");
        infer("ConvTranspose", 11, [ints("dilations", &[2, 1])], [x, "float[4, M, 2, 1]", "float[M]"])
            .gives("[N, M, 5, W]");
        for same in ["SAME_UPPER", "SAME_LOWER"] {
            infer("ConvTranspose", 11, [string("auto_pad", same), ints("strides", &[2, 3])], [x, w])
                .gives("[N, 2, 6, 3*W]");
        }
        infer("ConvTranspose", 11, [ints("kernel_shape", &[3, 5])], [x, "float[4, 2, h, w]"]).gives("[N, 2, 5, W + 4]");
        infer("ConvTranspose", 11, [], [x, "float[4, M, h, 3]"]).gives("[N, M, ?, W + 2]");
    }

    #[test]
    fn given_shapes() {
        let (x, w) = ("float[N, 1, 3, 3]", "float[1, 2, 3, k]");
        infer("ConvTranspose", 11, [ints("output_shape", &[10, 8])], [x, w]).gives("[N, 2, 10, 8]");
        infer("ConvTranspose", 1, [ints("output_shape", &[1, 2, 10, 8])], [x, w]).gives("[N, 2, 10, 8]");
        infer("ConvTranspose", 11, [ints("output_shape", &[1, 2, 10, 8])], [x, w])
            .fails("output_shape has 4 numbers: 2 are needed");
    }

    #[test]
    fn faults() {
        let (x, w) = ("float[N, 3, 7, 7]", "float[3, 8, 3, 3]");
        infer("ConvTranspose", 11, [], [x, "float[8, 3, 3, 3]"])
            .fails("dimension 1 of \"X\" of shape [N, 3, 7, 7] is 3, and dimension 0 of \"W\"");
        infer("ConvTranspose", 11, [int("group", 2)], [x, w])
            .fails("\"X\" has 3 channels, which can't be divided into 2 groups");
        infer("ConvTranspose", 11, [int("group", 3)], [x, w, "float[8]"])
            .fails("\"B\" has 8 numbers, but the output has 24 channels");
        infer("ConvTranspose", 11, [ints("output_padding", &[1])], [x, w])
            .fails("output_padding has 1 numbers: 2 are needed");
        infer("ConvTranspose", 1, [], [x, "float[3, 8, 3]"]).fails("\"W\" has shape [3, 8, 3] of rank 3");
    }
}
