//! Resize: an image with more or fewer entries along its axes, by scales or to sizes.
//! <https://onnx.ai/onnx/operators/onnx__Resize.html>

use super::coordinates::{Resized, Transform};
use super::in_blocks::{Asked, ResizeInBlocks};
use super::interpolation::{Interpolation, Mode, Nearest};
use super::scales::{by_scales, check, constant, scaled, too_large};
use crate::ops::prelude::*;
use kernels::resample::Filter;

pub(super) const RESIZE: Implementation = Implementation::blockwise("Resize", &[10, 11, 13, 18, 19], load);

/// Which sizes keep the ratio of those of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Stretch,
    NotLarger,
    NotSmaller,
}

/// `Y` = `X` at coordinates that follow from `scales` or from `sizes`: see [`Interpolation`]
#[derive(Debug)]
struct Resize {
    interpolation: Interpolation,
    axes: Option<Vec<i64>>,
    policy: Policy,
    /// The inputs that have scales and sizes; version 10 has only scales.
    scales: usize,
    sizes: Option<usize>,
}

/// Axes, policies and antialiasing came with version 18. `tf_half_pixel_for_nn` left the text with version 13, but files of
/// later versions have it; it has its meaning there too.
fn load(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    if node.version() < 11 {
        let modes =
            [("nearest", Mode::Nearest(Nearest::FloorUnlessSmaller)), ("linear", Mode::Weighted(Filter::Linear))];
        let interpolation = Interpolation::simple(node.choice("mode", &modes)?);
        return Ok(Arc::new(Resize { interpolation, axes: None, policy: Policy::Stretch, scales: 1, sizes: None }));
    }
    let nearest = [
        ("round_prefer_floor", Nearest::RoundPreferFloor),
        ("round_prefer_ceil", Nearest::RoundPreferCeil),
        ("floor", Nearest::Floor),
        ("ceil", Nearest::Ceil),
    ];
    let cubic = Filter::Cubic { a: node.float("cubic_coeff_a")?.into() };
    let modes = [
        ("nearest", Mode::Nearest(node.choice("nearest_mode", &nearest)?)),
        ("linear", Mode::Weighted(Filter::Linear)),
        ("cubic", Mode::Weighted(cubic)),
    ];
    let transforms = [
        ("half_pixel", Transform::HalfPixel),
        ("pytorch_half_pixel", Transform::PytorchHalfPixel),
        ("align_corners", Transform::AlignCorners),
        ("asymmetric", Transform::Asymmetric),
        ("tf_half_pixel_for_nn", Transform::TfHalfPixelForNn),
        ("tf_crop_and_resize", Transform::TfCropAndResize),
        ("half_pixel_symmetric", Transform::HalfPixelSymmetric),
    ];
    let transforms = if node.version() < 19 { &transforms[..6] } else { &transforms };
    let policies =
        [("stretch", Policy::Stretch), ("not_larger", Policy::NotLarger), ("not_smaller", Policy::NotSmaller)];
    let policy = node.optional("keep_aspect_ratio_policy", |node, name| node.choice(name, &policies))?;
    let interpolation = Interpolation {
        mode: node.choice("mode", &modes)?,
        transform: node.choice("coordinate_transformation_mode", transforms)?,
        antialias: node.version() >= 18 && node.flag("antialias")?,
        exclude_outside: node.flag("exclude_outside")?,
        extrapolation: node.float("extrapolation_value")?,
    };
    if interpolation.antialias && matches!(interpolation.mode, Mode::Nearest(_)) {
        let text = "antialias is 1, but mode is \"nearest\": only linear and cubic have a filter";
        return Err(Error::model(text).attribute("antialias"));
    }
    let axes = node.optional("axes", Node::ints)?.map(<[i64]>::to_vec);
    Ok(Arc::new(Resize { interpolation, axes, policy: policy.unwrap_or(Policy::Stretch), scales: 2, sizes: Some(3) }))
}

impl Resize {
    fn places(&self, rank: usize) -> Result<Places> {
        match &self.axes {
            Some(axes) => places(axes, rank, true, |text| Error::model(text).attribute("axes")),
            None => Ok((0..rank).collect()),
        }
    }

    /// What becomes of each axis.
    fn resized(&self, call: &Call<'_>) -> Result<Vec<Resized>> {
        let shape = call.tensor(0)?.shape();
        let axes = self.places(shape.len())?;
        let axes: Vec<(usize, usize)> =
            axes.iter().map(|axis| (*axis, shape.get(*axis).copied().unwrap_or(1))).collect();
        let parts = self.parts(call, axes.len())?;
        let scales = match call.optional_tensor(self.scales)? {
            Some(scales) => scales.as_slice::<f32>()?,
            None => &[],
        };
        let sizes = match self.sizes {
            Some(k) if call.input(k).is_some() => call.list(k)?,
            _ => &[],
        };
        if !sizes.is_empty() || scales.is_empty() && self.sizes.is_some() {
            check_one(!scales.is_empty(), !sizes.is_empty())?;
            return self.by_sizes(&axes, sizes, &parts);
        }
        check(scales, axes.len(), 0.0, |text| Error::input(text).parameter("scales"))?;
        let each = axes.iter().zip(scales).zip(parts);
        each.map(|((&(axis, input), &scale), part)| {
            if part == (0.0, 1.0) {
                return by_scales(axis, input, scale);
            }
            let target = input as f64 * (part.1 - part.0) * f64::from(scale);
            if target < 0.0 {
                let (start, end) = part;
                let text = format!("the part of axis {axis} ends at {end}, before its start at {start}");
                return Err(Error::input(text).parameter("roi").axis(axis as i64));
            }
            if !(0.0..=i64::MAX as f64).contains(&target) {
                return Err(too_large(axis, input, scale));
            }
            let output = target.floor() as usize;
            Ok(Resized { axis, input, output, scale: (scale.into(), 1.0), target, part })
        })
        .collect()
    }

    fn by_sizes(&self, axes: &[(usize, usize)], sizes: &[i64], parts: &[(f64, f64)]) -> Result<Vec<Resized>> {
        check_sizes(sizes.len(), axes.len())?;
        let asked = sizes.iter().enumerate().map(|(k, size)| {
            usize::try_from(*size).map_err(|_| {
                let text = format!("sizes[{k}] = {size} is negative: a size is needed");
                Error::input(text).parameter("sizes").position(vec![k]).value(*size)
            })
        });
        let asked = asked.collect::<Result<Vec<usize>>>()?;
        if self.policy == Policy::Stretch {
            let each = axes.iter().zip(asked).zip(parts).map(|((&(axis, input), output), part)| {
                Ok(Resized { part: *part, ..Asked::Size(output).of(axis, input)? })
            });
            return each.collect();
        }
        if let Some((axis, _)) = axes.iter().find(|(_, input)| *input == 0) {
            let text = format!("axis {axis} of \"X\" has no entries: there is no ratio to keep");
            return Err(Error::input(text).parameter("X").axis(*axis as i64));
        }
        let pairs = asked.iter().zip(axes).map(|(size, (_, own))| (*size as i128, *own as i128)).collect::<Vec<_>>();
        let Some((size, of)) = self.policy.scale(&pairs) else { return Ok(Vec::new()) };
        let each = axes.iter().zip(parts);
        each.map(|(&(axis, input), &part)| {
            let output = rounded((size, of), input as i128).and_then(|size| usize::try_from(size).ok());
            let output = output.ok_or_else(|| {
                let text = format!("axis {axis} of \"X\" has {input} entries: {size}/{of} times as many are too many");
                Error::input(text).parameter("sizes").axis(axis as i64)
            })?;
            let scale = (size as f64, of as f64);
            Ok(Resized { axis, input, output, scale, target: input as f64 * scale.0 / scale.1, part })
        })
        .collect()
    }

    /// Where the part of the image begins and ends along each axis.
    fn parts(&self, call: &Call<'_>, count: usize) -> Result<Vec<(f64, f64)>> {
        if self.interpolation.transform != Transform::TfCropAndResize {
            return Ok(vec![(0.0, 1.0); count]);
        }
        let roi = call.tensor(1)?;
        if roi.rank() != 1 || roi.len() != 2 * count {
            let shape = ShapeText(roi.shape());
            let text = format!("\"roi\" has shape {shape}: [{}] is needed, where each axis begins and ends", 2 * count);
            return Err(Error::input(text).parameter("roi"));
        }
        let bounds: Vec<f64> = roi.scalars().filter_map(number).collect();
        if let Some(k) = bounds.iter().position(|bound| !bound.is_finite()) {
            let bound = bounds.get(k).copied().unwrap_or_default();
            return Err(Error::input(format!("roi[{k}] is {bound}: it must be finite"))
                .parameter("roi")
                .position(vec![k]));
        }
        let (starts, ends) = bounds.split_at(bounds.len() / 2);
        Ok(starts.iter().copied().zip(ends.iter().copied()).collect())
    }

    /// For each axis, whether scales are those of the whole image: not of a part, or of one that isn't known.
    fn extents(&self, facts: &Inference<'_>, count: usize) -> Vec<bool> {
        if self.interpolation.transform != Transform::TfCropAndResize {
            return vec![true; count];
        }
        let roi = facts.constant(1).and_then(|roi| roi.tensor().ok());
        let bounds: Vec<f64> = match roi {
            Some(roi) if roi.rank() == 1 && roi.len() <= Fact::LIST => roi.scalars().filter_map(number).collect(),
            _ => Vec::new(),
        };
        let (starts, ends) = bounds.split_at(bounds.len() / 2);
        let whole = |k: usize| starts.get(k) == Some(&0.0) && ends.get(k) == Some(&1.0);
        (0..count).map(|k| bounds.len() == 2 * count && whole(k)).collect()
    }
}

impl Blockwise for Resize {
    fn in_blocks(&self, channels: usize, axes: usize, constant: &Constants<'_>) -> Option<InBlocks> {
        // These change axes that keep their sizes, too.
        let of_all = matches!(self.interpolation.transform, Transform::TfCropAndResize | Transform::TfHalfPixelForNn);
        if axes != 2 || of_all || self.policy != Policy::Stretch {
            return None;
        }
        let axes = self.places(4).ok()?;
        let scales = constant(self.scales).map(Tensor::as_slice::<f32>).transpose().ok()?.unwrap_or(&[]);
        let sizes = self.sizes.and_then(constant).map(Tensor::as_slice::<i64>).transpose().ok()?.unwrap_or(&[]);
        check(scales, scales.len(), 0.0, Error::input).ok()?;
        let size = |size: &i64| usize::try_from(*size).map(Asked::Size);
        let asked: Vec<Asked> = match (scales, sizes) {
            (scales, []) => scales.iter().copied().map(Asked::Scale).collect(),
            ([], sizes) => sizes.iter().map(size).collect::<Result<_, _>>().ok()?,
            _ => return None,
        };
        if asked.is_empty() || asked.len() != axes.len() {
            return None;
        }
        let asked: Vec<(usize, Asked)> = axes.iter().copied().zip(asked).collect();
        ResizeInBlocks::of(&self.interpolation, &asked, channels)
    }
}

impl Operator for Resize {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let resized = self.resized(call)?;
        self.interpolation.run(call, &resized)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let by_scales = given(facts, self.scales);
        if let Some(sizes) = self.sizes
            && let (Some(by_scales), Some(by_sizes)) = (by_scales, given(facts, sizes))
        {
            check_one(by_scales, by_sizes)?;
        }
        let sizes = self.sizes.and_then(|sizes| facts.listed(sizes)).filter(|sizes| !sizes.is_empty());
        let Some(dims) = facts.dims(0) else {
            // Without axes there is a size for each dimension.
            if let (Some(sizes), None, Policy::Stretch) = (sizes, &self.axes, self.policy) {
                facts.give(0, sizes);
            }
            return Ok(());
        };
        let axes = self.places(dims.len())?;
        let scales = constant(facts, self.scales).filter(|scales| !scales.is_empty());
        let resized = match (sizes, scales) {
            (Some(sizes), _) => {
                check_sizes(sizes.len(), axes.len())?;
                let own: Vec<&Dim> = axes.iter().filter_map(|at| dims.get(*at)).collect();
                self.policy.sizes(&own, sizes)
            }
            (None, Some(scales)) => {
                check(scales, axes.len(), 0.0, |text| Error::input(text).parameter("scales"))?;
                let each = axes.iter().zip(scales).zip(self.extents(facts, axes.len()));
                each.map(|((at, scale), whole)| {
                    dims.get(*at).filter(|_| whole).map_or(Dim::Unknown, |dim| scaled(dim, *scale))
                })
                .collect()
            }
            (None, None) => vec![Dim::Unknown; axes.len()],
        };
        let mut dims = dims.to_vec();
        for (at, size) in axes.iter().zip(resized) {
            dims.get_mut(*at).into_iter().for_each(|dim| *dim = size.clone());
        }
        facts.give(0, dims);
        Ok(())
    }
}

impl Policy {
    /// The scale of all axes, as a quotient of the size that is asked for and that of the image. Quotients are compared
    /// exactly: by products of sizes, which are below 2^63 and not 0.
    fn scale(self, pairs: &[(i128, i128)]) -> Option<(i128, i128)> {
        let compare = |a: &&(i128, i128), b: &&(i128, i128)| (a.0 * b.1).cmp(&(b.0 * a.1));
        match self {
            Policy::NotLarger => pairs.iter().min_by(compare).copied(),
            _ => pairs.iter().max_by(compare).copied(),
        }
    }

    /// The sizes that a policy makes of those that are asked for.
    fn sizes(self, own: &[&Dim], sizes: Vec<Dim>) -> Vec<Dim> {
        if self == Policy::Stretch {
            return sizes;
        }
        let unknown = vec![Dim::Unknown; sizes.len()];
        let pairs: Option<Vec<(i128, i128)>> =
            sizes.iter().zip(own).map(|(size, own)| Some((size.fixed()?.into(), own.fixed()?.into()))).collect();
        let Some(pairs) = pairs.filter(|pairs| pairs.iter().all(|(_, own)| *own > 0)) else { return unknown };
        let Some(scale) = self.scale(&pairs) else { return unknown };
        let dim = |own| rounded(scale, own).and_then(|size| i64::try_from(size).ok()).map_or(Dim::Unknown, Dim::of);
        pairs.iter().map(|(_, own)| dim(*own)).collect()
    }
}

/// A size times a scale, halves rounded up.
fn rounded((size, of): (i128, i128), own: i128) -> Option<i128> {
    size.checked_mul(own)?.checked_mul(2)?.checked_add(of)?.checked_div(2 * of)
}

/// Fails unless the size is said once.
fn check_one(by_scales: bool, by_sizes: bool) -> Result<()> {
    if by_scales != by_sizes {
        return Ok(());
    }
    let what = if by_scales { "both are given" } else { "none is given" };
    Err(Error::input(format!("one of \"scales\" and \"sizes\" is needed: {what}")).parameter("sizes"))
}

fn check_sizes(sizes: usize, axes: usize) -> Result<()> {
    if sizes == axes {
        return Ok(());
    }
    let text = format!("sizes has {sizes} numbers: {axes} are needed");
    Err(Error::input(text).parameter("sizes").size(sizes))
}

/// Whether there are numbers in an input, if that is known. An empty list counts as omitted.
fn given(facts: &Inference<'_>, k: usize) -> Option<bool> {
    match (facts.input(k), facts.dims(k)) {
        (None, _) => Some(false),
        (_, Some([Dim::Fixed(count)])) => Some(*count > 0),
        _ => None,
    }
}

fn number(scalar: Scalar<'_>) -> Option<f64> {
    match scalar {
        Scalar::Float(value) => Some(value.into()),
        Scalar::Double(value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{Ran, float, infer, int, ints, run, string, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    const X: &str = "float[N, 3, H, 5]";

    fn none() -> Value {
        tensor(&[0], Vec::<f32>::new())
    }

    /// Along the axis 1, by scales.
    fn scaled<const A: usize>(attributes: [(&str, Attribute); A], x: &Value, scale: f32) -> Ran {
        run("Resize", 19, attributes, [x, &none(), &tensor(&[2], [1f32, scale])])
    }

    fn row(elements: &[f32]) -> Value {
        tensor(&[1, elements.len()], elements)
    }

    #[test]
    fn nearest() {
        let (x, mode) = (row(&[1., 2., 3., 4.]), |mode: &str| [string("nearest_mode", mode)]);
        scaled([], &x, 0.6).gives(row(&[1., 3.]));
        // 0.25, 1.25, 2.25 ..; halves are in the middle of 1 to 2 and 2 to 3.
        scaled(mode("floor"), &x, 1.5).gives(row(&[1., 1., 2., 2., 3., 4.]));
        scaled(mode("ceil"), &x, 1.5).gives(row(&[1., 2., 3., 3., 4., 4.]));
        scaled(mode("round_prefer_floor"), &x, 0.5).gives(row(&[1., 3.]));
        scaled(mode("round_prefer_ceil"), &x, 0.5).gives(row(&[2., 4.]));
        let nn = [string("coordinate_transformation_mode", "tf_half_pixel_for_nn"), string("nearest_mode", "floor")];
        scaled(nn, &x, 0.5).gives(row(&[2., 4.]));
        let (rows, scales) = (tensor(&[2, 1], [7i64, 8]), tensor(&[2], [2f32, 3.]));
        let want = tensor(&[4, 3], [7i64, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8]);
        run("Resize", 13, [], [&rows, &none(), &scales]).gives(&want);
        run("Resize", 10, [], [&rows, &scales]).gives(&want);
        // At 1.33 and 2.67: the entries after these.
        run("Resize", 10, [], [&x, &tensor(&[2], [1f32, 0.75])]).gives(row(&[1., 3., 4.]));
        let text = |text: &[&str]| -> Value { crate::Tensor::from_strings(&[1, text.len()], text).unwrap().into() };
        run("Resize", 13, [], [&text(&["a", "bc"]), &none(), &tensor(&[2], [2f32, 1.])])
            .gives(crate::Tensor::from_strings(&[2, 2], ["a", "bc", "a", "bc"]).unwrap());
    }

    #[test]
    fn linear() {
        let linear = || string("mode", "linear");
        let x = row(&[1., 2., 4.]);
        scaled([linear()], &x, 2.0).gives(row(&[1., 1.25, 1.75, 2.5, 3.5, 4.]));
        run("Resize", 10, [linear()], [&x, &tensor(&[2], [1f32, 2.])]).gives(row(&[1., 1.5, 2., 3., 4., 4.]));
        // The width of 4.5 before it is rounded.
        let corners = string("coordinate_transformation_mode", "align_corners");
        scaled([linear(), corners], &row(&[0., 7., 14.]), 1.5).gives(row(&[0., 4., 8., 12.]));
        // An infinite neighbour of weight 0 isn't read.
        run("Resize", 13, [linear()], [&row(&[f32::INFINITY, 2., 3.]), &none(), &none(), &tensor(&[2], [1i64, 1])])
            .gives(row(&[2.]));
        let symmetric = string("coordinate_transformation_mode", "half_pixel_symmetric");
        scaled([linear(), symmetric], &row(&[0., 1., 2., 3.]), 0.75).gives(row(&[1. / 6., 1.5, 17. / 6.]));
        let double = tensor(&[1, 2], [0f64, 1.]);
        scaled([linear()], &double, 2.0).gives(tensor(&[1, 4], [0f64, 0.25, 0.75, 1.]));
        let halves = |of: fn(f32) -> f16| tensor(&[1, 2], [0f32, 1.].map(of));
        scaled([linear()], &halves(f16::from_f32), 2.0)
            .gives(tensor(&[1, 4], [0f32, 0.25, 0.75, 1.].map(f16::from_f32)));
        let x = tensor(&[1, 2], [0f32, 1.].map(bf16::from_f32));
        scaled([linear()], &x, 2.0).gives(tensor(&[1, 4], [0f32, 0.25, 0.75, 1.].map(bf16::from_f32)));
    }

    /// Sums of integers are rounded once, halves to even, and saturate.
    #[test]
    fn integers() {
        let (linear, cubic) = (|| string("mode", "linear"), || string("mode", "cubic"));
        scaled([linear()], &tensor(&[1, 2], [1u8, 3]), 2.0).gives(tensor(&[1, 4], [1u8, 2, 2, 3]));
        scaled([linear()], &tensor(&[1, 2], [-2i64, 0]), 2.0).gives(tensor(&[1, 4], [-2i64, -2, 0, 0]));
        scaled([cubic()], &tensor(&[1, 4], [0u8, 0, 255, 255]), 2.0)
            .gives(tensor(&[1, 8], [0u8, 0, 0, 58, 197, 255, 255, 255]));
        scaled([linear()], &tensor(&[1, 2], [false, true]), 2.0).gives(tensor(&[1, 4], [false, false, true, true]));
        let both = [string("mode", "linear")];
        let x = tensor(&[2, 2], [0i8, 1, 1, 1]);
        // 0.25, 0.5 and 0.75: rounded along one axis after the other they would be others.
        run("Resize", 19, both, [&x, &none(), &tensor(&[2], [2f32, 2.])])
            .gives(tensor(&[4, 4], [0i8, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]));
    }

    #[cfg(feature = "num-complex")]
    #[test]
    fn complex_numbers() {
        use num_complex::Complex;
        let x = tensor(&[1, 2], [Complex::new(0f32, 4.), Complex::new(1., 0.)]);
        scaled([string("mode", "linear")], &x, 2.0).gives(tensor(
            &[1, 4],
            [(0f32, 4f32), (0.25, 3.), (0.75, 1.), (1., 0.)].map(|(re, im)| Complex::new(re, im)),
        ));
        let crop = [
            string("mode", "linear"),
            string("coordinate_transformation_mode", "tf_crop_and_resize"),
            float("extrapolation_value", 7.0),
        ];
        let (roi, sizes) = (tensor(&[4], [0f32, 0., 1., 2.]), tensor(&[2], [1i64, 3]));
        run("Resize", 13, crop, [&x, &roi, &none(), &sizes])
            .gives(tensor(&[1, 3], [(0f32, 4f32), (1., 0.), (7., 0.)].map(|(re, im)| Complex::new(re, im))));
    }

    #[test]
    fn cubic() {
        let cubic = || string("mode", "cubic");
        let a = || float("cubic_coeff_a", -0.5);
        let x = row(&[0., 1., 0., 0.]);
        let corners = || string("coordinate_transformation_mode", "align_corners");
        run("Resize", 13, [cubic(), a(), corners()], [&x, &none(), &none(), &tensor(&[2], [1i64, 7])])
            .gives(row(&[0., 0.5625, 1., 0.5625, 0., -0.0625, 0.]));
        // Without those outside, the weights 0.5625, 0.5625 and -0.0625 are divided by their sum.
        run(
            "Resize",
            13,
            [cubic(), a(), corners(), int("exclude_outside", 1)],
            [&row(&[17., 17., 17., 34.]), &none(), &none(), &tensor(&[2], [1i64, 7])],
        )
        .gives(row(&[17., 17., 17., 15.9375, 17., 26., 34.]));
    }

    #[test]
    fn antialiasing() {
        let attributes = |exclude| [string("mode", "linear"), int("antialias", 1), int("exclude_outside", exclude)];
        let x = row(&[0., 8., 16., 80.]);
        // Weights 1, 3, 3, 1 of 8; those beyond the ends are those of the elements there.
        scaled(attributes(0), &x, 0.5).gives(row(&[5., 47.]));
        scaled(attributes(1), &x, 0.5).gives(row(&[40. / 7., 296. / 7.]));
        scaled([int("antialias", 1)], &x, 0.5)
            .fails("antialias is 1, but mode is \"nearest\": only linear and cubic have a filter");
    }

    #[test]
    fn crops() {
        let crop = || string("coordinate_transformation_mode", "tf_crop_and_resize");
        let x = row(&[1., 2., 3., 4., 5.]);
        let cropped = |roi: [f32; 2], sizes: &[i64], mode: &str| {
            let roi = tensor(&[4], [0f32, roi[0], 1., roi[1]]);
            let attributes = [crop(), string("mode", mode), float("extrapolation_value", 9.5)];
            run("Resize", 13, attributes, [&x, &roi, &none(), &tensor(&[sizes.len()], sizes)])
        };
        cropped([0.25, 0.75], &[1, 3], "linear").gives(row(&[2., 3., 4.]));
        cropped([0.25, 0.75], &[1, 1], "linear").gives(row(&[3.]));
        cropped([1.0, 0.0], &[1, 3], "nearest").gives(row(&[5., 3., 1.]));
        cropped([-0.25, 1.25], &[1, 4], "linear").gives(row(&[9.5, 2., 4., 9.5]));
        cropped([0.5, 1.5], &[2, 2], "nearest").gives(tensor(&[2, 2], [3f32, 9.5, 3., 9.5]));
        // Scales are those of the part, as the text says.
        let (roi, scales) = (tensor(&[4], [0f32, 0.25, 1., 0.75]), tensor(&[2], [1f32, 1.2]));
        run("Resize", 13, [crop(), string("mode", "linear")], [&x, &roi, &scales]).gives(row(&[2., 3., 4.]));
        run("Resize", 13, [crop()], [&x, &tensor(&[2], [0f32, 1.]), &scales])
            .fails("\"roi\" has shape [2]: [4] is needed, where each axis begins and ends");
        run("Resize", 13, [crop()], [&x, &tensor(&[4], [0f32, f32::NAN, 1., 1.]), &scales])
            .fails("roi[1] is NaN: it must be finite");
        run("Resize", 13, [crop()], [&x, &tensor(&[4], [0f32, 1., 1., 0.25]), &scales])
            .fails("the part of axis 1 ends at 0.25, before its start at 1");
    }

    #[test]
    fn sizes_and_ratios() {
        let x = tensor(&[2, 4], (0..8).collect::<Vec<i32>>());
        let resized = |policy: &str, sizes: [i64; 2]| {
            let attributes = [ints("axes", &[-1, 0]), string("keep_aspect_ratio_policy", policy)];
            run("Resize", 18, attributes, [&x, &none(), &none(), &tensor(&[2], sizes)])
        };
        resized("stretch", [2, 1]).gives(tensor(&[1, 2], [0, 2]));
        resized("not_larger", [2, 9]).gives(tensor(&[1, 2], [0, 2]));
        resized("not_smaller", [2, 2]).gives(&x);
        resized("stretch", [4, -1]).fails("sizes[1] = -1 is negative: a size is needed");
        let empty = tensor(&[0, 4], Vec::<f32>::new());
        let to = |sizes: [i64; 2]| run("Resize", 13, [], [&empty, &none(), &none(), &tensor(&[2], sizes)]);
        to([0, 2]).gives(tensor(&[0, 2], Vec::<f32>::new()));
        to([1, 4]).fails("axis 0 of \"X\" has no entries: it can't be resized to 1");
        run(
            "Resize",
            18,
            [string("keep_aspect_ratio_policy", "not_larger")],
            [&empty, &none(), &none(), &tensor(&[2], [1i64, 1])],
        )
        .fails("axis 0 of \"X\" has no entries: there is no ratio to keep");
    }

    #[test]
    fn refusals() {
        let x = row(&[1., 2.]);
        scaled([], &x, f32::INFINITY).fails("scales[1] is inf: it must be finite");
        scaled([], &x, f32::NAN).fails("scales[1] is NaN: it must be above 0");
        scaled([], &x, 1e30)
            .fails("axis 1 of \"X\" has 2 entries: 1000000000000000000000000000000 times as many are too many");
        run("Resize", 13, [], [&x, &none(), &none(), &tensor(&[1], [1i64])]).fails("sizes has 1 numbers: 2 are needed");
        run("Resize", 13, [], [&x, &none(), &none()]).fails("one of \"scales\" and \"sizes\" is needed: none is given");
        run("Resize", 13, [], [&x, &none(), &tensor(&[2], [1f32, 1.]), &tensor(&[2], [1i64, 2])])
            .fails("both are given");
        let symmetric = string("coordinate_transformation_mode", "half_pixel_symmetric");
        run("Resize", 18, [symmetric], [&x, &none(), &tensor(&[2], [1f32, 1.])]).fails(
            "coordinate_transformation_mode is \"half_pixel_symmetric\": allowed half_pixel, pytorch_half_pixel",
        );
        let text: Value = crate::Tensor::from_strings(&[1, 1], ["a"]).unwrap().into();
        scaled([string("mode", "linear")], &text, 2.0)
            .fails("\"X\" has strings: only the mode \"nearest\" takes these");
    }

    #[test]
    fn scales() {
        infer("Resize", 10, [], [X, "{1.0, 1.0, 2.0, 0.5}"]).gives("[N, 3, 2*H, 2]");
        infer("Resize", 11, [], [X, "float[0]", "{1.0, 1.0, 0.5, 0.6}"]).gives("[N, 3, floor((H)/2), 3]");
        infer("Resize", 13, [], [X, "-", "{1.0, 2.0, 1.0, 1.4}"]).gives("[N, 6, H, 6]");
        infer("Resize", 18, [ints("axes", &[-1, 1])], [X, "-", "{2.0, 3.0}"]).gives("[N, 9, H, 10]");
        infer("Resize", 19, [ints("axes", &[2])], [X, "-", "float[1]"]).gives("[N, 3, ?, 5]");
        infer("Resize", 13, [], [X, "-", "float"]).gives("[?, ?, ?, ?]");
    }

    #[test]
    fn sizes() {
        infer("Resize", 11, [], [X, "float[0]", "float[0]", "{N, 3, 2, M}"]).gives("[N, 3, 2, M]");
        infer("Resize", 18, [ints("axes", &[3, 2])], [X, "-", "-", "{7, 8}"]).gives("[N, 3, 8, 7]");
        infer("Resize", 13, [], ["float", "-", "-", "{1, 2, M}"]).gives("[1, 2, M]");
        infer("Resize", 19, [], [X, "-", "-", "int64[4]"]).gives("[?, ?, ?, ?]");
    }

    #[test]
    fn ratios_are_kept() {
        let resize = |policy: &str, sizes: &str, want: &str| {
            let attributes = [ints("axes", &[0, 1]), string("keep_aspect_ratio_policy", policy)];
            infer("Resize", 18, attributes, ["float[2, 4, C]", "-", "-", sizes]).gives(want);
        };
        resize("not_larger", "{7, 8}", "[4, 8, C]");
        resize("not_smaller", "{7, 8}", "[7, 14, C]");
        // Halves are rounded up.
        resize("not_larger", "{9, 5}", "[3, 5, C]");
        resize("not_larger", "{9, M}", "[?, ?, C]");
        resize("stretch", "{9, M}", "[9, M, C]");
    }

    #[test]
    fn parts_of_an_image() {
        let crop = || [string("coordinate_transformation_mode", "tf_crop_and_resize")];
        let (x, scales) = ("float[N, 4]", "{1.0, 2.0}");
        infer("Resize", 11, crop(), [x, "{0.0, 0.0, 1.0, 1.0}", scales]).gives("[N, 8]");
        infer("Resize", 13, crop(), [x, "{0.0, 0.5, 1.0, 1.0}", scales]).gives("[N, ?]");
        infer("Resize", 13, crop(), [x, "float[4]", scales]).gives("[?, ?]");
        infer("Resize", 13, crop(), [x, "float[4]", "-", "{2, 3}"]).gives("[2, 3]");
    }

    #[test]
    fn faults() {
        let x = "float[1, 1, 2, 4]";
        infer("Resize", 10, [], [x, "{1.0, 1.0}"]).fails("scales has 2 numbers: 4 are needed");
        infer("Resize", 13, [], [x, "-", "{1.0, 1.0, 0.0, 1.0}"]).fails("scales[2] is 0: it must be above 0");
        infer("Resize", 13, [], [x, "-", "-", "{1, 2}"]).fails("sizes has 2 numbers: 4 are needed");
        infer("Resize", 13, [], [x, "-", "float[4]", "int64[4]"])
            .fails("one of \"scales\" and \"sizes\" is needed: both are given");
        infer("Resize", 13, [], [x]).fails("one of \"scales\" and \"sizes\" is needed: none is given");
        infer("Resize", 18, [ints("axes", &[4])], [x, "-", "{1.0}"]).fails("axis 4 is out of range: allowed -4..=3");
        infer("Resize", 18, [string("keep_aspect_ratio_policy", "larger")], [x, "-", "float[4]"])
            .fails("keep_aspect_ratio_policy is \"larger\": allowed stretch, not_larger, not_smaller");
    }
}
