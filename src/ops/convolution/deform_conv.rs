//! DeformConv: a convolution whose filters are bent by offsets at each place.
//! <https://onnx.ai/onnx/operators/onnx__DeformConv.html>

use crate::ops::prelude::*;
use kernels::deform::Deformed;
use kernels::fold::Summand;
use kernels::gemm::{Number, Operand};

pub(super) const DEFORM_CONV: Implementation = Implementation::run("DeformConv", &[19, 22], load);

/// `Y` = the convolution of `X` with `W` plus `B`, as Conv's, where each tap reads `X` at its place plus the numbers that
/// `offset` has for it, one along each axis, times that of `mask`
///
/// Between elements it reads what linear interpolation says, computed as float64 and rounded once. Outside of the image are
/// zeros, also for interpolation at its border; an offset that is NaN leads there. The channels are divided into
/// `offset_group` groups, each with offsets of its own.
#[derive(Debug)]
struct DeformConv {
    filters: Filters,
    offset_groups: i64,
    weights: Weights,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(DeformConv {
        filters: Filters::of(node, [0, 1], Some(3))?,
        offset_groups: windows::one_or_more(node, "offset_group")?,
        weights: Weights::of(node, 1),
    }))
}

impl DeformConv {
    fn check(&self, facts: &Inference<'_>) -> Result<Option<(Vec<Dim>, Windows)>> {
        let Some((mut dims, windows)) = self.filters.convolved(facts)? else { return Ok(None) };
        let (axes, groups) = (dims.len() - 2, self.offset_groups);
        if let Some(channels) = facts.dims(0).and_then(|dims| dims.get(1)?.fixed())
            && channels % groups != 0
        {
            let text = format!("\"X\" has {channels} channels, which can't be divided into {groups} offset groups");
            return Err(Error::input(text).parameter("X").axis(1).value(channels));
        }
        let kernel = self.filters.kernel(facts, axes)?;
        let taps: Vec<Dim> = kernel.into_iter().map(|size| size.map_or(Dim::Unknown, Dim::of)).collect();
        // The text's shape of masks for images of other ranks than 4 has a number for each axis: no formula uses them.
        for (k, of_each) in [(2, axes), (4, 1)] {
            let Some(own) = facts.dims(k) else { continue };
            if own.len() != dims.len() {
                return Err(facts.unequal_ranks(0, k));
            }
            facts.same_size((0, 0), (k, 0))?;
            let needed = Dim::product(taps.iter().chain([&Dim::of(groups), &Dim::Fixed(of_each)]));
            if own.get(1).is_some_and(|own| own.both(&needed).is_none()) {
                return Err(unequal(facts, k, 1, &needed));
            }
            for (d, (dim, own)) in dims.iter_mut().zip(own).enumerate().skip(2) {
                *dim = dim.both(own).ok_or_else(|| unequal(facts, k, d, dim))?;
            }
        }
        Ok(Some((dims, windows)))
    }

    fn convolve<S, T>(&self, call: &Call<'_>) -> Result<Values>
    where
        S: Multiply + Operand<Sum = T> + Summand<Sum = f64>,
        T: Multiply + Number + Operand<Sum = T> + Summand<Sum = f64>,
    {
        let convolution = self.filters.of_call(call, |facts| self.check(facts))?;
        let Convolution { m, k, n, groups, batch, axes, channels, output } = &convolution;
        let [images, of_groups] = *batch;
        let mut output = call.output::<S>(output)?;
        let columns = kernels::volume(*groups, [k, n]);
        let all = groups.saturating_mul(*channels);
        call.charge((Deformed::<S>::work(axes, all) as u64).saturating_mul(images.size as u64))?;
        if output.elements_mut::<S>()?.is_empty() {
            return Ok(output.finish().into());
        }
        let [x, offset] = [call.tensor(0)?.as_slice::<S>()?, call.tensor(2)?.as_slice::<S>()?];
        let mask = call.optional_tensor(4)?.map(Tensor::as_slice::<S>).transpose()?;
        let bias = call.optional_tensor(3)?.map(Tensor::as_slice::<S>).transpose()?;
        let by_filter = [*m];
        let bias = bias.map(|bias| convolution.bias::<S>(bias, &by_filter));
        let steps: SmallVec<[&dyn kernels::gemm::Step<T>; 1]> = bias.iter().map(|bias| bias as _).collect();
        let w = Matrix { tensor: call.tensor(1)?, columns: *k, transposed: false };
        let a = self.weights.left::<S>(call, w, *groups, (*m, *k))?;
        let batch = [Batch { b: k.saturating_mul(*n), ..of_groups }];
        let mut columns = call.scratch::<T>(columns)?;
        let columns = columns.elements_mut::<T>();
        // Elements of an image in each of the inputs.
        let [of_x, of_offset, of_mask] =
            [x.len(), offset.len(), mask.map_or(0, <[S]>::len)].map(|len| len / images.size.max(1));
        let size = groups.saturating_mul(*m).saturating_mul(*n);
        for (at, out) in output.elements_mut()?.chunks_mut(size.max(1)).enumerate() {
            let image = x.get(at * of_x..).unwrap_or_default();
            let offsets = offset.get(at * of_offset..).unwrap_or_default();
            let mask = mask.map(|mask| mask.get(at * of_mask..).unwrap_or_default());
            let channels = all / usize::try_from(self.offset_groups).unwrap_or(1).max(1);
            Deformed { axes, image, channels, offsets, mask }.sample(columns, call.resources())?;
            let b = Right::View(View::rows(&*columns, *n));
            let product = Product::<S> { m: *m, k: *k, n: *n, a, b, batch: &batch, epilogue: &steps };
            multiply(call, product, out)?;
        }
        Ok(output.finish().into())
    }
}

impl Operator for DeformConv {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        with_floats!(call.tensor(0)?.dtype(), S => self.convolve::<S, _>(call))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_known(0, self.check(facts)?.map(|(dims, _)| dims));
        Ok(())
    }
}

#[cold]
fn unequal(facts: &Inference<'_>, k: usize, d: usize, need: &Dim) -> Error {
    let (name, shape) = (facts.input_name(k), DimsText(facts.dims(k).unwrap_or_default()));
    let text =
        format!("dimension {d} of {} of shape {shape} must be {need}, by the filters and the windows", quote(name));
    Error::input(text).parameter(name).axis(d as i64)
}

#[cfg(test)]
mod tests {
    use crate::ops::filters::plain::{Case, samples};
    use crate::ops::testing::{infer, int, ints, outputs, run, tensor};
    use crate::value::Value;

    fn iota(shape: &[usize]) -> Value {
        tensor(shape, (0..shape.iter().product()).map(|k| k as f32).collect::<Vec<_>>())
    }

    fn ones(shape: &[usize]) -> Value {
        tensor(shape, vec![1f32; shape.iter().product()])
    }

    /// The standard's examples.
    #[test]
    fn bent_windows() {
        let (x, w) = (iota(&[1, 1, 3, 3]), ones(&[1, 1, 2, 2]));
        let mut numbers = vec![0f32; 8 * 4];
        // The first tap of the first window goes down by a half, the second of the last one goes left by a tenth.
        (numbers[0], numbers[5 * 4 + 3]) = (0.5, -0.1);
        let offset = tensor(&[1, 8, 2, 2], numbers);
        let bias = tensor(&[1], [1f32]);
        let got = outputs("DeformConv", 19, [], [&x, &w, &offset, &bias]);
        let got: Vec<f32> = got[0].tensor().unwrap().as_slice::<f32>().unwrap().to_vec();
        assert_eq!(got, [10.5, 13., 21., 24.9]);
        let mut numbers = vec![1f32; 16];
        (numbers[0], numbers[9]) = (0.0, 2.0);
        let (plain, mask) = (tensor(&[1, 8, 2, 2], vec![0f32; 32]), tensor(&[1, 4, 2, 2], numbers));
        run("DeformConv", 22, [], [&x, &w, &plain, &bias, &mask]).gives(tensor(&[1, 1, 2, 2], [9f32, 17., 21., 25.]));
    }

    /// Without offsets it is a convolution, bit by bit; with whole ones it reads other elements.
    #[test]
    fn straight_windows() {
        for (case, seed) in Case::many(30, 3, 9).zip(0..) {
            let (x, w) = (tensor(&case.x, samples(&case.x, seed)), tensor(&case.w, samples(&case.w, seed + 1)));
            let bias = tensor(&case.w[..1], samples(&case.w[..1], seed + 2));
            let want = outputs("Conv", 22, case.attributes(), [&x, &w, &bias]);
            let axes = case.strides.len();
            let taps: usize = case.w[2..].iter().product();
            // As many offset groups as channels.
            let groups = case.x[1];
            let mut shape = case.output();
            shape[1] = groups * taps * axes;
            let offset = tensor(&shape, vec![0f32; shape.iter().product()]);
            let [group, strides, dilations, pads] = case.attributes();
            let attributes = [group, strides, dilations, pads, int("offset_group", groups as i64)];
            let got = outputs("DeformConv", 22, attributes.clone(), [&x, &w, &offset, &bias]);
            assert_eq!(got, want, "{case:?}");
            // A mask of twos doubles what is read.
            shape[1] = groups * taps;
            let mask = tensor(&shape, vec![2f32; shape.iter().product()]);
            let none = tensor(&case.w[..1], vec![0f32; case.w[0]]);
            let got = outputs("DeformConv", 22, attributes.clone(), [&x, &w, &offset, &none, &mask]);
            let twice = outputs("Conv", 22, case.attributes(), [&x, &w]).swap_remove(0);
            let twice = twice.tensor().unwrap().as_slice::<f32>().unwrap().iter().map(|y| y * 2.0).collect::<Vec<_>>();
            assert_eq!(got[0], tensor(&case.output(), twice), "{case:?}");
        }
    }

    #[test]
    fn empty_ones() {
        let none = |shape: &[usize]| tensor(shape, Vec::<f32>::new());
        let w = ones(&[2, 1, 2]);
        run("DeformConv", 22, [], [&none(&[0, 1, 3]), &w, &none(&[0, 2, 2])]).gives(none(&[0, 2, 2]));
        let bias = tensor(&[2], [1f32, 2.]);
        run("DeformConv", 22, [], [&none(&[1, 0, 3]), &none(&[2, 0, 2]), &tensor(&[1, 2, 2], [0f32; 4]), &bias])
            .gives(tensor(&[1, 2, 2], [1f32, 1., 2., 2.]));
    }

    #[test]
    fn refusals() {
        let (x, w) = (ones(&[1, 3, 3]), ones(&[1, 3, 2]));
        run("DeformConv", 22, [int("offset_group", 2)], [&x, &w, &ones(&[1, 4, 2])])
            .fails("\"X\" has 3 channels, which can't be divided into 2 offset groups");
        run("DeformConv", 22, [], [&x, &w, &ones(&[1, 3, 2])]).fails("dimension 1 of \"offset\"");
        run("DeformConv", 22, [], [&x, &w, &ones(&[1, 2, 3])]).fails("dimension 2 of \"offset\"");
        run("DeformConv", 22, [], [&x, &w, &ones(&[2, 2, 2])]).fails("dimension 0 of \"X\"");
    }

    #[test]
    fn shapes() {
        let (x, w) = ("float[N, 1, 3, W]", "float[M, 1, 2, 2]");
        infer("DeformConv", 19, [ints("pads", &[1, 1, 1, 1])], [x, w, "float[N, 8, h, ?]"]).gives("[N, M, 4, W + 1]");
        infer("DeformConv", 22, [], [x, "float[M, 1, k, k]", "float[N, 8, 4, w]"]).gives("[N, M, 4, w]");
        infer(
            "DeformConv",
            19,
            [int("offset_group", 2)],
            ["float[N, 2, 3, 3]", "float[5, 2, 2, 2]", "float[N, 16, 2, 2]", "float[5]", "float[N, 8, 2, 2]"],
        )
        .gives("[N, 5, 2, 2]");
        infer("DeformConv", 22, [], ["float[N, 1, 5]", "float[1, 1, 3]", "float[N, 3, 3]"]).gives("[N, 1, 3]");
    }

    #[test]
    fn faults() {
        let (x, w, offset) = ("float[N, 1, 3, 3]", "float[M, 1, 2, 2]", "float[N, 8, 2, 2]");
        infer("DeformConv", 19, [], [x, w, "float[N, 8, 2, 3]"])
            .fails("dimension 3 of \"offset\" of shape [N, 8, 2, 3] must be 2, by the filters and the windows");
        infer("DeformConv", 19, [], [x, w, "float[N, 4, 2, 2]"]).fails("dimension 1 of \"offset\"");
        infer("DeformConv", 19, [], [x, w, offset, "-", "float[N, 8, 2, 2]"]).fails("of shape [N, 8, 2, 2] must be 4");
        infer("DeformConv", 19, [int("offset_group", 0)], [x, w, offset]).fails("offset_group is 0");
        infer("DeformConv", 19, [], [x, w, "float[N, 8, 4]"]).fails("\"offset\" has shape [N, 8, 4] of rank 3");
    }
}
