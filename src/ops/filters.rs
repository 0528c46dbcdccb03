//! Filters over images: what the convolutions of several families share.

use super::converted::converted;
use super::product::{Matrix, Multiply, Weights, multiply};
use super::windows::{Kernel, WindowAttributes, Windows, one_or_more};
use crate::dtype::DType;
use crate::error::{Error, Result, quote};
use crate::operator::{Call, Inference, Node, Values};
use crate::tensor::{Scratch, Shape, Tensor};
use crate::value::Dim;
use bytemuck::cast_slice_mut;
use kernels::gemm::{
    self, Alone, Batch, Broadcast, Left, Product, Quantized, Requantized, Right, Scaled, Side, Step, Strides,
    ToIntegers, ZeroPoints,
};
use kernels::quantize::{Scales, Spread, dequantize};
use kernels::volume;
use kernels::windows::Axis;
use smallvec::SmallVec;

/// Filters of a channel that take less without a product of matrices, at most.
const FEW: usize = 4;

/// Products of two integers of magnitudes up to 255 whose sums, and those before, float32 holds: below 2^24.
const EXACT: usize = (1 << 24) / (255 * 255);

/// Bytes of numbers that are worth a part.
const BLOCK: usize = 4 << 10;

/// Evaluates an expression with `$type` as int8 or uint8.
macro_rules! with_small {
    ($dtype:expr, $type:ident => $body:expr) => {
        match $dtype {
            DType::Int8 => {
                type $type = i8;
                $body
            }
            DType::Uint8 => {
                type $type = u8;
                $body
            }
            other => return Err(Error::bug(&format!("a convolution of {other}"))),
        }
    };
}
pub(super) use with_small;

/// A convolution of the images in the input `x` with the filters in the input `w`. There may be a number for each filter in
/// the input `bias`.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    pub(super) x: usize,
    pub(super) w: usize,
    pub(super) bias: Option<usize>,
    pub(super) groups: i64,
    pub(super) attributes: WindowAttributes,
}

/// A convolution in a run: for each image and each group the product of a matrix of filters, `m` by `k`, with one of
/// windows, `k` by `n`.
#[derive(Debug)]
pub(super) struct Convolution {
    pub(super) output: Shape,
    /// Of a group: filters, and channels of an image.
    pub(super) m: usize,
    pub(super) channels: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) groups: usize,
    /// The images, and the groups of each.
    pub(super) batch: [Batch; 2],
    pub(super) axes: SmallVec<[Axis; 3]>,
}

impl Filters {
    pub(super) fn of(node: &Node<'_>, [x, w]: [usize; 2], bias: Option<usize>) -> Result<Filters> {
        let (groups, attributes) = (one_or_more(node, "group")?, WindowAttributes::of(node)?);
        Ok(Filters { x, w, bias, groups, attributes })
    }

    /// What is known about the shape of the output, and its windows, if the ranks are known.
    pub(super) fn convolved(&self, facts: &Inference<'_>) -> Result<Option<(Vec<Dim>, Windows)>> {
        let Filters { x, w, bias, groups, attributes } = self;
        let (Some(images), Some(filters)) = (facts.ranked(*x, 3..)?, facts.ranked(*w, 3..)?) else { return Ok(None) };
        if images.len() != filters.len() {
            return Err(facts.unequal_ranks(*x, *w));
        }
        let ([batch, channels, image @ ..], [count, of_each, ..]) = (images, filters) else { return Ok(None) };
        let name = facts.input_name(*w);
        if let (Some(have), Some(each)) = (channels.fixed(), of_each.fixed())
            && Some(have) != groups.checked_mul(each)
        {
            let x = quote(facts.input_name(*x));
            let text = format!("{x} has {have} channels, but the filters of {groups} groups have {each} each");
            return Err(Error::input(text).parameter(name).axis(1).value(have));
        }
        if let Some(count) = count.fixed()
            && count % groups != 0
        {
            let text = format!("{} has {count} filters, which can't be divided into {groups} groups", quote(name));
            return Err(Error::input(text).parameter(name).axis(0).value(count));
        }
        if let Some(bias) = *bias {
            facts.sizes::<1>(bias)?;
            facts.same_size((*w, 0), (bias, 0))?;
        }
        let windows = attributes.windows(&self.kernel(facts, image.len())?)?;
        let counts = windows.counts(image);
        Ok(Some(([&[batch.clone(), count.clone()], &*counts].concat(), windows)))
    }

    /// The sizes of the filters along `count` axes, as far as they are known.
    pub(super) fn kernel(&self, facts: &Inference<'_>, count: usize) -> Result<Kernel> {
        self.attributes.kernel_of(facts, self.w, count)
    }

    /// Gives output 0 the shape of the convolution, as far as it is known.
    pub(super) fn give(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_known(0, self.convolved(facts)?.map(|(dims, _)| dims));
        Ok(())
    }

    /// The convolution of a call.
    pub(super) fn convolution(&self, call: &Call<'_>) -> Result<Convolution> {
        self.of_call(call, |facts| self.convolved(facts))
    }

    /// As [`convolution`](Filters::convolution), where inputs follow `rule`.
    pub(super) fn of_call(
        &self,
        call: &Call<'_>,
        rule: impl FnOnce(&Inference<'_>) -> Result<Option<(Vec<Dim>, Windows)>>,
    ) -> Result<Convolution> {
        let beyond = || Error::input("the output has more windows than can be counted");
        let (dims, windows) = call.by_rule(rule)?.ok_or_else(beyond)?;
        let output: Shape = Dim::sizes(&dims).ok_or_else(beyond)?.into();
        let (x, w) = (call.tensor(self.x)?.shape(), call.tensor(self.w)?.shape());
        let ([_, _, image @ ..], [filters, channels, kernel @ ..]) = (x, w) else { return Err(beyond()) };
        let [images, _, counts @ ..] = &*output else { return Err(beyond()) };
        let groups = usize::try_from(self.groups).map_err(|_| beyond())?;
        let (m, k) = (filters / groups, volume(*channels, kernel));
        let (size, b) = (volume(groups, w.get(1..2).into_iter().flatten().chain(image)), volume(*channels, image));
        let batch = [Batch { size: *images, a: 0, b: size }, Batch { size: groups, a: m.saturating_mul(k), b }];
        let (n, axes) = (volume(1, counts), windows.axes(image, counts)?);
        Ok(Convolution { m, channels: *channels, k, n, groups, batch, axes, output })
    }
}

impl Filters {
    /// The windows of an image of one axis to three along slices, rows and columns, and the sizes of the output, by the shape of
    /// the filters.
    pub(super) fn of_image(&self, filters: &[usize], image: &[usize]) -> Result<([Axis; 3], [usize; 3])> {
        let beyond = || Error::input("the output has more windows than can be counted");
        let kernel: Kernel = filters.iter().skip(2).map(|size| i64::try_from(*size).ok()).collect();
        self.attributes.of_image(&kernel, image)?.ok_or_else(beyond)
    }
}

impl Convolution {
    /// How far numbers that belong to the filters are apart: of an image, and of a group.
    pub(super) fn by_filter(&self) -> [usize; 2] {
        [0, self.m]
    }

    /// The operands, where images and filters are int8 or uint8, less their zero points: one of all images, and one of each
    /// filter or of all. Constant filters are packed once.
    fn small<'a>(
        &'a self,
        call: &Call<'_>,
        weights: &'a Weights,
        by_filter: &'a [usize],
        [x, w]: [&'a Tensor; 2],
        [x_zero, w_zero]: [Option<&'a Tensor>; 2],
    ) -> Result<(Left<'a, u32>, Right<'a, u32>)> {
        let a = with_small!(w.dtype(), S => {
            let zero = w_zero.map(Tensor::as_slice::<S>).transpose()?;
            let zeros = |by: &'a [usize]| zero.map(|zero| ZeroPoints::new(zero, self.strides(zero.len(), by)));
            let matrix = Matrix { tensor: w, columns: self.k, transposed: false };
            // The groups are what is packed, without images.
            let of_groups = zeros(by_filter.get(1..).unwrap_or(&[]));
            match weights.packed::<S>(call, Side::Left, matrix, of_groups, self.groups, (self.m, self.k))? {
                Some(packed) => Left::Packed(packed),
                None => {
                    let filters = matrix.aligned::<S>()?;
                    Left::View(zeros(by_filter).map_or(filters, |zeros| filters.less(zeros)))
                }
            }
        });
        let b = with_small!(x.dtype(), S => {
            let images = x.as_slice::<S>()?;
            let windows = |outside| gemm::Windows::new(images, self.channels, &self.axes, outside);
            match x_zero.map(Tensor::as_slice::<S>).transpose()? {
                Some(zero @ [outside]) => windows(*outside).less(ZeroPoints::new(zero, Strides::ONE)),
                _ => windows(0),
            }
        });
        Ok((a, Right::Windows(b)))
    }

    /// Writes the sums of images and filters as in [`Convolution::small`], or what steps make of them.
    pub(super) fn sums<S: Multiply<Sum = u32>>(
        &self,
        call: &Call<'_>,
        weights: &Weights,
        operands: [&Tensor; 2],
        zeros: [Option<&Tensor>; 2],
        epilogue: &[&dyn Step<u32>],
        out: &mut [S],
    ) -> Result<()> {
        if self.channels == 1 && self.m <= FEW && self.k <= EXACT && Alone::<f32>::suits(&self.axes) {
            return self.of_channels(call, operands, zeros, epilogue, out);
        }
        let by_filter = self.by_filter();
        let (a, b) = self.small(call, weights, &by_filter, operands, zeros)?;
        let product = Product::<S> { m: self.m, k: self.k, n: self.n, a, b, batch: &self.batch, epilogue };
        multiply(call, product, out)
    }

    /// The sums of few filters of each channel, which floats hold.
    fn of_channels<S: Multiply<Sum = u32>>(
        &self,
        call: &Call<'_>,
        [x, w]: [&Tensor; 2],
        [x_zero, w_zero]: [Option<&Tensor>; 2],
        epilogue: &[&dyn Step<u32>],
        out: &mut [S],
    ) -> Result<()> {
        let floats = |of: &Tensor, zeros: Option<&Tensor>, out: &mut [f32]| -> Result<()> {
            let count = zeros.map_or(1, Tensor::len);
            let (mut points, ones) = (call.scratch::<f32>(count)?, vec![1.0; count]);
            let points = points.elements_mut::<f32>();
            match zeros {
                Some(zeros) => converted(zeros, DType::Float, cast_slice_mut(points), call.context())?,
                None => points.fill(0.0),
            }
            let spread = if count == 1 { Spread::All } else { Spread::Axis { entries: count, inner: self.k } };
            let (types, scales) = ([of.dtype(), DType::Float], Scales { spread, scales: &ones, zeros: Some(points) });
            Ok(dequantize(types.map(DType::format), scales, of.bytes(), cast_slice_mut(out), call.resources())?)
        };
        let (mut images, mut filters) = (call.scratch::<f32>(x.len())?, call.scratch::<f32>(w.len())?);
        let [images, filters] = [&mut images, &mut filters].map(Scratch::elements_mut::<f32>);
        floats(x, x_zero, images)?;
        floats(w, w_zero, filters)?;
        call.charge(
            volume(w.len(), self.output.iter().take(1).chain(self.output.get(2..).into_iter().flatten())) as u64
        )?;
        let steps = ToIntegers(epilogue);
        let alone = Alone {
            axes: &self.axes,
            images,
            channels: self.groups,
            filters,
            of_each: self.m,
            bias: None,
            epilogue: &[&steps],
        };
        if size_of::<S>() == size_of::<f32>() {
            return Ok(alone.run(cast_slice_mut(out), call.resources())?);
        }
        let mut sums = call.scratch::<f32>(out.len())?;
        alone.run(sums.elements_mut(), call.resources())?;
        let sums: &[u32] = sums.elements();
        kernels::each(cast_slice_mut(out), BLOCK, call.resources(), |at, part| {
            let (from, part) = (at * (BLOCK / size_of::<S>()), cast_slice_mut::<u8, S>(part));
            S::narrow(sums.get(from..from + part.len()).unwrap_or(&[]), part);
        })?;
        Ok(())
    }

    /// The convolution of images and filters as in [`Convolution::small`], quantized again:
    /// `round((sum + bias) * factor) + zero_point`. There is a bias and a factor for each filter, or one for all.
    pub(super) fn requantized<S: Multiply<Sum = u32> + Quantized>(
        &self,
        call: &Call<'_>,
        weights: &Weights,
        operands: [&Tensor; 2],
        zeros: [&Tensor; 2],
        (bias, factors, zero_point): (Option<&[i32]>, &[f32], &[S]),
    ) -> Result<Values> {
        let by_filter = self.by_filter();
        let bias = bias.map(|bias| self.bias::<i32>(bias, &by_filter));
        let factors = Broadcast { elements: factors, strides: self.strides(factors.len(), &by_filter) };
        let one = Broadcast { elements: &[1.0], strides: Strides::ONE };
        let zero_point = Broadcast { elements: zero_point, strides: Strides::ONE };
        let last = Requantized { scales: [factors, one], zero_point };
        let steps: SmallVec<[&dyn Step<u32>; 2]> = bias.iter().map(|bias| bias as _).chain([&last as _]).collect();
        let mut output = call.output::<S>(&self.output)?;
        self.sums::<S>(call, weights, operands, zeros.map(Some), &steps, output.elements_mut()?)?;
        Ok(output.finish().into())
    }

    /// Of so many numbers: one for each filter, or one for all.
    pub(super) fn strides<'a>(&self, count: usize, by_filter: &'a [usize]) -> Strides<'a> {
        if count == 1 { Strides::ONE } else { Strides { row: 1, column: 0, batch: by_filter } }
    }

    /// The addition of a number for each filter.
    pub(super) fn bias<'a, S: Multiply>(&self, elements: &'a [S], by_filter: &'a [usize]) -> Scaled<'a, S> {
        let strides = self.strides(elements.len(), by_filter);
        Scaled { alpha: 1.0, beta: 1.0, c: Some(Broadcast { elements, strides }) }
    }
}

/// Convolutions by the definition, for tests.
#[cfg(test)]
pub(super) mod plain {
    use crate::operator::Attribute;
    use crate::ops::testing::{int, ints};

    /// A convolution: the shapes of the images and of the filters, and attributes.
    #[derive(Debug, Clone)]
    pub(in crate::ops) struct Case {
        pub(in crate::ops) x: Vec<usize>,
        pub(in crate::ops) w: Vec<usize>,
        pub(in crate::ops) group: usize,
        pub(in crate::ops) strides: Vec<i64>,
        pub(in crate::ops) dilations: Vec<i64>,
        pub(in crate::ops) pads: Vec<i64>,
    }

    /// A small generator of numbers below a bound.
    pub(in crate::ops) fn random(seed: u64) -> impl FnMut(usize) -> usize {
        let mut seed = seed;
        move |below| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 33) as usize % below
        }
    }

    impl Case {
        /// A random one of a rank, whose windows fit.
        fn random(axes: usize, random: &mut impl FnMut(usize) -> usize) -> Case {
            let group = 1 + random(3);
            let (images, channels, filters) = (1 + random(2), 1 + random(3), 1 + random(3));
            let each = |count: usize, random: &mut dyn FnMut() -> usize| -> Vec<usize> {
                (0..count).map(|_| random()).collect()
            };
            let numbers = |list: Vec<usize>| list.into_iter().map(|number| number as i64).collect::<Vec<_>>();
            let most = [9, 6, 4, 3][axes - 1];
            let kernel = each(axes, &mut || 1 + random(3));
            let image = each(axes, &mut || 1 + random(most));
            let strides = numbers(each(axes, &mut || 1 + random(3)));
            let dilations = numbers(each(axes, &mut || 1 + random(2)));
            // As much padding as the largest window needs.
            let pads = numbers(each(2 * axes, &mut || 2 + random(2)));
            let x = [vec![images, group * channels], image].concat();
            let w = [vec![group * filters, channels], kernel].concat();
            Case { x, w, group, strides, dilations, pads }
        }

        /// So many random ones, of ranks in turn, and then the small ones.
        pub(in crate::ops) fn many(count: usize, ranks: usize, seed: u64) -> impl Iterator<Item = Case> {
            let mut random = random(seed);
            (0..count).map(move |number| Case::random(1 + number % ranks, &mut random)).chain(Case::small())
        }

        /// All of one axis with few places, taps and padding, whose windows fit.
        fn small() -> impl Iterator<Item = Case> {
            (0..3 * 3 * 2 * 2 * 3 * 3).filter_map(|number| {
                let mut rest = number;
                let mut below = |bound: usize| (rest % bound, rest /= bound).0;
                let (image, kernel, stride, dilation) = (1 + below(3), 1 + below(3), 1 + below(2), 1 + below(2));
                let pads = [below(3), below(3)];
                let fits = (kernel - 1) * dilation < image + pads[0] + pads[1];
                let numbers = |list: &[usize]| list.iter().map(|number| *number as i64).collect();
                fits.then(|| Case {
                    x: vec![2, 2, image],
                    w: vec![3, 2, kernel],
                    group: 1,
                    strides: numbers(&[stride]),
                    dilations: numbers(&[dilation]),
                    pads: numbers(&pads),
                })
            })
        }

        pub(in crate::ops) fn attributes(&self) -> [(&'static str, Attribute); 4] {
            let list = |name: &'static str, list: &[i64]| ints(name, list);
            [
                int("group", self.group as i64),
                list("strides", &self.strides),
                list("dilations", &self.dilations),
                list("pads", &self.pads),
            ]
        }

        pub(in crate::ops) fn output(&self) -> Vec<usize> {
            let axes = self.strides.len();
            let count = |k: usize| {
                let span = (self.w[k + 2] as i64 - 1) * self.dilations[k] + 1;
                let beyond = self.x[k + 2] as i64 + self.pads[k] + self.pads[axes + k] - span;
                (beyond.div_euclid(self.strides[k]) + 1).max(0) as usize
            };
            [vec![self.x[0], self.w[0]], (0..axes).map(count).collect()].concat()
        }

        /// For each number of the output what it adds up: the number of an entry of the filters, and that of an entry of the
        /// images, if it isn't in padding.
        pub(in crate::ops) fn taps(&self) -> Vec<Vec<(usize, Option<usize>)>> {
            let (axes, output) = (self.strides.len(), self.output());
            let places = |sizes: &[usize]| -> Vec<Vec<usize>> {
                sizes.iter().fold(vec![vec![]], |all, size| {
                    all.iter().flat_map(|at| (0..*size).map(move |k| [&**at, &[k]].concat())).collect()
                })
            };
            let flat = |at: &[usize], sizes: &[usize]| at.iter().zip(sizes).fold(0, |all, (at, size)| all * size + at);
            let taps = |at: Vec<usize>| {
                let group = at[1] / (self.w[0] / self.group);
                let each = |tap: &Vec<usize>| {
                    let w = flat(&[&at[1..2], tap].concat(), &self.w);
                    let place = |k: usize| {
                        let place = at[k + 2] as i64 * self.strides[k] + tap[k + 1] as i64 * self.dilations[k];
                        let place = usize::try_from(place - self.pads[k]).ok()?;
                        (place < self.x[k + 2]).then_some(place)
                    };
                    let image: Option<Vec<usize>> = (0..axes).map(place).collect();
                    let channel = group * self.w[1] + tap[0];
                    (w, image.map(|image| flat(&[vec![at[0], channel], image].concat(), &self.x)))
                };
                places(&self.w[1..]).iter().map(each).collect()
            };
            places(&output).into_iter().map(taps).collect()
        }
    }

    /// Numbers whose products and sums are rounded.
    pub(in crate::ops) fn samples(shape: &[usize], seed: u64) -> Vec<f32> {
        let mut random = random(seed);
        (0..shape.iter().product()).map(|_| (random(1 << 20) as f32 - (1 << 19) as f32) / 1e5).collect()
    }
}
