//! Resize: an image with more or fewer entries along its axes, by scales or to sizes.
//! <https://onnx.ai/onnx/operators/onnx__Resize.html>

use super::scales::{check, constant, scaled};
use crate::ops::prelude::*;

pub(super) const RESIZE: Implementation = Implementation::missing("", "Resize", infer);

/// Which sizes keep the ratio of those of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Stretch,
    NotLarger,
    NotSmaller,
}

/// Version 10 has only scales, as input 1. Axes and policies came with version 18.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let version = facts.version();
    let (scales, sizes) = if version < 11 { (1, usize::MAX) } else { (2, 3) };
    let (by_scales, by_sizes) = (given(facts, scales), given(facts, sizes));
    if version >= 11
        && by_scales == by_sizes
        && let Some(both) = by_scales
    {
        let what = if both { "both are given" } else { "none is given" };
        return Err(Error::input(format!("one of \"scales\" and \"sizes\" is needed: {what}")).parameter("sizes"));
    }
    let named = facts.optional("axes", Node::ints)?;
    let policy = policy(facts)?;
    let Some(dims) = facts.dims(0) else {
        // Without axes there is a size for each dimension.
        if let (Some(sizes), None, Policy::Stretch) = (facts.listed(sizes).filter(|s| !s.is_empty()), named, policy) {
            facts.give(0, sizes);
        }
        return Ok(());
    };
    let axes = match named {
        Some(axes) => places(axes, dims.len(), true, |text| Error::model(text).attribute("axes"))?,
        None => (0..dims.len()).collect(),
    };
    let sizes = facts.listed(sizes).filter(|sizes| !sizes.is_empty());
    let scales = constant(facts, scales).filter(|scales| !scales.is_empty());
    let resized = match (sizes, scales) {
        (Some(sizes), _) => {
            if sizes.len() != axes.len() {
                let text = format!("sizes has {} numbers: {} are needed", sizes.len(), axes.len());
                return Err(Error::input(text).parameter("sizes").size(sizes.len()));
            }
            let own: Vec<&Dim> = axes.iter().filter_map(|at| dims.get(*at)).collect();
            sizes_by(policy, &own, sizes)
        }
        (None, Some(scales)) => {
            check(scales, axes.len(), 0.0, |text| Error::input(text).parameter("scales"))?;
            let each = axes.iter().zip(scales).zip(extents(facts, axes.len()));
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

/// Whether there are numbers in an input, if that is known. An empty list counts as omitted.
fn given(facts: &Inference<'_>, k: usize) -> Option<bool> {
    match (facts.input(k), facts.dims(k)) {
        (None, _) => Some(false),
        (_, Some([Dim::Fixed(count)])) => Some(*count > 0),
        _ => None,
    }
}

fn policy(facts: &Inference<'_>) -> Result<Policy> {
    let allowed =
        [("stretch", Policy::Stretch), ("not_larger", Policy::NotLarger), ("not_smaller", Policy::NotSmaller)];
    match facts.attribute("keep_aspect_ratio_policy") {
        Some(_) => facts.choice("keep_aspect_ratio_policy", &allowed),
        None => Ok(Policy::Stretch),
    }
}

/// The sizes that a policy makes of those that are asked for.
fn sizes_by(policy: Policy, own: &[&Dim], sizes: Vec<Dim>) -> Vec<Dim> {
    if policy == Policy::Stretch {
        return sizes;
    }
    let unknown = vec![Dim::Unknown; sizes.len()];
    let pairs: Option<Vec<(i128, i128)>> =
        sizes.iter().zip(own).map(|(size, own)| Some((size.fixed()?.into(), own.fixed()?.into()))).collect();
    // Quotients are compared exactly: by products of sizes, which are below 2^63.
    let Some(pairs) = pairs.filter(|pairs| pairs.iter().all(|(_, own)| *own > 0)) else { return unknown };
    let compare = |a: &&(i128, i128), b: &&(i128, i128)| (a.0 * b.1).cmp(&(b.0 * a.1));
    let scale = match policy {
        Policy::NotLarger => pairs.iter().min_by(compare),
        _ => pairs.iter().max_by(compare),
    };
    let Some((size, of)) = scale else { return unknown };
    let rounded = |own: i128| size.checked_mul(own)?.checked_mul(2)?.checked_add(*of)?.checked_div(2 * of);
    let dim = |own| rounded(own).and_then(|size| i64::try_from(size).ok()).map_or(Dim::Unknown, Dim::of);
    pairs.iter().map(|(_, own)| dim(*own)).collect()
}

/// For each axis, whether scales are those of the whole image: not of a part, or of one that isn't known.
fn extents(facts: &Inference<'_>, count: usize) -> Vec<bool> {
    let mode = facts.attribute("coordinate_transformation_mode");
    if !matches!(mode, Some(Attribute::String(mode)) if mode == "tf_crop_and_resize") {
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

fn number(scalar: Scalar<'_>) -> Option<f64> {
    match scalar {
        Scalar::Float(value) => Some(value.into()),
        Scalar::Double(value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, string};

    const X: &str = "float[N, 3, H, 5]";

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
