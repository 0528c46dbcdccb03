//! InstanceNormalization and GroupNormalization: each channel, or each group of channels, by its mean and variance.
//! <https://onnx.ai/onnx/operators/onnx__InstanceNormalization.html>,
//! <https://onnx.ai/onnx/operators/onnx__GroupNormalization.html>

use super::scaled::{Precision, Scaled, Spread};
use crate::ops::prelude::*;

pub(super) const INSTANCE_NORMALIZATION: Implementation =
    Implementation::run("InstanceNormalization", &[1, 6, 22], load_instance);

pub(super) const GROUP_NORMALIZATION: Implementation = Implementation::run("GroupNormalization", &[18, 21], load_group);

/// `y = (x - mean) / sqrt(variance + epsilon) * scale + bias`; the statistics are those of a group of an instance.
#[derive(Debug)]
struct GroupNormalization {
    /// Each channel is a group, if there is no number.
    num_groups: Option<usize>,
    /// The scale and the bias are one for each group, not for each channel.
    by_group: bool,
    how: lanes::Normalize,
    precision: Precision,
}

fn load_instance(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    load(node, None, Precision::Own)
}

/// With version 21 the scale is by channel, and `stash_type` came.
fn load_group(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let groups = node.int("num_groups")?;
    let num_groups = usize::try_from(groups).ok().filter(|groups| *groups > 0).ok_or_else(|| {
        Error::model(format!("num_groups {groups} is not positive")).attribute("num_groups").value(groups)
    })?;
    let stashes = [DType::Float, DType::Float16, DType::Double, DType::Bfloat16];
    let precision = if node.version() < 21 { Precision::Own } else { Precision::stashed(node, &stashes)? };
    load(node, Some(num_groups), precision)
}

fn load(node: &Node<'_>, num_groups: Option<usize>, precision: Precision) -> Result<Box<dyn Operator>> {
    let how = lanes::Normalize { center: true, epsilon: node.float("epsilon")? };
    let by_group = num_groups.is_some() && node.version() < 21;
    Ok(Box::new(GroupNormalization { num_groups, by_group, how, precision }))
}

impl Operator for GroupNormalization {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let &[_, channels, ref space @ ..] = x.shape() else {
            let (name, shape) = (call.name(0), ShapeText(x.shape()));
            let text = format!("\"{name}\" of shape {shape} has no channels: its rank must be at least 2");
            return Err(Error::input(text).parameter(name));
        };
        let groups = self.num_groups.unwrap_or(channels);
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(undivided(channels, groups).parameter(call.name(0)));
        }
        let space = kernels::volume(1, space);
        let len = space.saturating_mul(channels / groups);
        let (count, run) = if self.by_group { (groups, len) } else { (channels, space) };
        let (scale, bias) = (spread(call, 1, count, run)?, Some(spread(call, 2, count, run)?));
        let scaled = Scaled { how: self.how, len, precision: self.precision, scale, bias, x };
        Ok(scaled.compute(call)?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        let Some([_, channels, ..]) = facts.ranked(0, 2..)? else { return Ok(()) };
        let groups = self.num_groups.map_or_else(|| channels.clone(), Dim::Fixed);
        if let (Dim::Fixed(have), Dim::Fixed(groups)) = (channels, &groups)
            && (*groups == 0 || !have.is_multiple_of(*groups))
        {
            return Err(undivided(*have, *groups).parameter(facts.input_name(0)));
        }
        let each = std::slice::from_ref(if self.by_group { &groups } else { channels });
        facts.needs(1, each)?;
        facts.needs(2, each)
    }
}

#[cold]
fn undivided(channels: usize, groups: usize) -> Error {
    Error::input(format!("the {channels} channels can't be divided into {groups} groups")).axis(1).size(channels)
}

fn spread(call: &Call<'_>, k: usize, count: usize, run: usize) -> Result<Spread> {
    let values = call.tensor(k)?.clone();
    if values.shape() != [count] {
        let (name, shape) = (call.name(k), ShapeText(values.shape()));
        return Err(Error::input(format!("\"{name}\" has shape {shape}: [{count}] is needed")).parameter(name));
    }
    Ok(Spread { values, run })
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use half::f16;

    const EXACT: (&str, Attribute) = ("epsilon", Attribute::Float(0.0));

    #[test]
    fn shapes_at_load() {
        let x = "float[N, 4, W]";
        infer("InstanceNormalization", 6, [], [x, "float[4]", "float[c]"]).gives("[N, 4, W]");
        infer("InstanceNormalization", 6, [], [x, "float[4]", "float[2]"]).fails("\"B\" has shape [2]: [4] is needed");
        infer("GroupNormalization", 18, [int("num_groups", 2)], [x, "float[2]", "float[2]"]).gives("[N, 4, W]");
        infer("GroupNormalization", 18, [int("num_groups", 2)], [x, "float[4]", "float[2]"])
            .fails("\"scale\" has shape [4]: [2] is needed");
        infer("GroupNormalization", 21, [int("num_groups", 2)], ["float[N]", "float[4]", "float[4]"])
            .fails("allowed ranks from 2 on");
    }

    #[test]
    fn instances_and_groups() {
        let x = tensor(&[1, 2, 2], [1f32, 5.0, -2.0, 0.0]);
        let (scale, bias) = (tensor(&[2], [1f32, 2.0]), tensor(&[2], [0f32, 0.5]));
        let y = tensor(&[1, 2, 2], [-1f32, 1.0, -1.5, 2.5]);
        for version in [1, 6, 22] {
            run("InstanceNormalization", version, [EXACT], [&x, &scale, &bias]).gives(y.clone());
        }
        run("GroupNormalization", 21, [EXACT, int("num_groups", 2)], [&x, &scale, &bias]).gives(y.clone());
        run("GroupNormalization", 18, [EXACT, int("num_groups", 2)], [&x, &scale, &bias]).gives(y);
        let x = tensor(&[1, 2, 1], [1f64, 5.0]);
        let (scale, bias) = (tensor(&[2], [1f64, 2.0]), tensor(&[2], [0f64, 0.5]));
        run("GroupNormalization", 21, [EXACT, int("num_groups", 1)], [&x, &scale, &bias])
            .gives(tensor(&[1, 2, 1], [-1f64, 2.5]));
        let (scale, bias) = (tensor(&[1], [2f64]), tensor(&[1], [0f64]));
        run("GroupNormalization", 18, [EXACT, int("num_groups", 1)], [&x, &scale, &bias])
            .gives(tensor(&[1, 2, 1], [-2f64, 2.0]));
        let x = tensor(&[1, 1, 2], [1f32, 5.0].map(f16::from_f32));
        let one = tensor(&[1], [f16::ONE]);
        run("InstanceNormalization", 6, [EXACT], [&x, &one, &one])
            .gives(tensor(&[1, 1, 2], [0f32, 2.0].map(f16::from_f32)));
    }

    #[test]
    fn refusals() {
        let (x, two) = (tensor(&[1, 3, 1], [1f32, 2.0, 3.0]), tensor(&[2], [1f32, 2.0]));
        run("GroupNormalization", 21, [int("num_groups", 2)], [&x, &two, &two])
            .fails("the 3 channels can't be divided into 2 groups");
        run("GroupNormalization", 21, [int("num_groups", 0)], [&x, &two, &two]).fails("num_groups 0 is not positive");
        run("InstanceNormalization", 6, [], [&x, &two, &two]).fails("\"scale\" has shape [2]: [3] is needed");
        run("InstanceNormalization", 6, [], [&two, &two, &two]).fails("its rank must be at least 2");
    }

    #[test]
    fn inferred() {
        infer("InstanceNormalization", 6, [], ["float[N, 4, H]", "float[4]", "float[4]"]).gives("[N, 4, H]");
        infer("GroupNormalization", 18, [int("num_groups", 2)], ["float[N, 4]", "float[2]", "float"]).gives("[N, 4]");
        infer("GroupNormalization", 21, [int("num_groups", 2)], ["float[N, 4]", "float[2]", "float"])
            .fails("\"scale\" has shape [2]: [4] is needed");
        infer("InstanceNormalization", 6, [], ["float[N, 4, H]", "float", "float[3]"])
            .fails("\"B\" has shape [3]: [4] is needed");
        infer("GroupNormalization", 21, [int("num_groups", 3)], ["float[N, 4]", "float", "float"])
            .fails("the 4 channels can't be divided into 3 groups");
    }
}
