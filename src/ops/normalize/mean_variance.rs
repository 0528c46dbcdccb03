//! MeanVarianceNormalization: each element less the mean of its lane, divided by the standard deviation.
//! <https://onnx.ai/onnx/operators/onnx__MeanVarianceNormalization.html>

use crate::ops::prelude::*;

pub(super) const MEAN_VARIANCE_NORMALIZATION: Implementation =
    Implementation::run("MeanVarianceNormalization", &[1, 9, 13], load);

/// `Y = (X - EX) / (sqrt(E((X - EX)^2)) + 1e-9)`, where `E` is the mean along `axes`
///
/// The text has no 1e-9; the function's body does, so that lanes of equal elements give 0. The body takes the variance as
/// `E(X^2) - (EX)^2`, which cancels. All is computed in float64, and rounded once.
#[derive(Debug)]
struct MeanVarianceNormalization {
    axes: Axes,
    how: lanes::Standardize,
}

/// Version 1 was experimental: the mean is that of a channel, or of all with `across_channels`; without
/// `normalize_variance` nothing is divided.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (axes, divide) = if node.version() < 9 {
        let axes: &[i64] = if node.flag("across_channels")? { &[0, 1, 2, 3] } else { &[0, 2, 3] };
        (axes, node.flag("normalize_variance")?)
    } else {
        (node.axes("axes", i64::MAX)?.unwrap_or_default(), true)
    };
    let axes = Axes::Attribute { list: Some(axes.to_vec()), negative: true };
    Ok(Box::new(MeanVarianceNormalization { axes, how: lanes::Standardize { divide } }))
}

impl Operator for MeanVarianceNormalization {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let listed = self.axes.places(call, x.rank())?.unwrap_or_default();
        map_floats(call, &Lanes::new(x.shape(), |axis| listed.is_empty() || listed.contains(&axis)), &self.how)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(dims) = facts.dims(0) {
            self.axes.known(facts, dims.len())?;
        }
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, run, tensor};
    use half::f16;

    #[test]
    fn of_each_channel() {
        let x = tensor(&[2, 2, 1, 1], [1f32, 5.0, 3.0, 5.0]);
        for opset in [9, 13, 28] {
            run("MeanVarianceNormalization", opset, [], [&x]).gives(tensor(&[2, 2, 1, 1], [-1f32, 0.0, 1.0, 0.0]));
        }
        let axes = || [ints("axes", &[-1])];
        let x = tensor(&[2, 2], [1e4f32, 1e4 + 2.0, -3.0, 3.0]);
        run("MeanVarianceNormalization", 13, axes(), [&x]).gives(tensor(&[2, 2], [-1f32, 1.0, -1.0, 1.0]));
        let x = tensor(&[1, 2], [f16::from_f32(60000.0), f16::from_f32(-60000.0)]);
        run("MeanVarianceNormalization", 9, axes(), [&x]).gives(tensor(&[1, 2], [f16::ONE, f16::NEG_ONE]));
    }

    #[test]
    fn of_the_experimental_version() {
        let x = tensor(&[2, 2, 1, 1], [1f32, 5.0, 3.0, 5.0]);
        let flag = |name| [int(name, 1)];
        for opset in [1, 8] {
            let run = |attributes: [(&str, Attribute); 1]| run("MeanVarianceNormalization", opset, attributes, [&x]);
            run(flag("normalize_variance")).gives(tensor(&[2, 2, 1, 1], [-1f32, 0.0, 1.0, 0.0]));
            run([int("normalize_variance", 0)]).gives(tensor(&[2, 2, 1, 1], [-1f32, 0.0, 1.0, 0.0]));
            let deviation = 2.75f64.sqrt() + 1e-9;
            let want = [-2.5, 1.5, -0.5, 1.5].map(|distance| (distance / deviation) as f32);
            run(flag("across_channels")).gives(tensor(&[2, 2, 1, 1], want));
        }
        let x = tensor(&[1, 1, 1, 2], [1f64, 5.0]);
        run("MeanVarianceNormalization", 1, [int("normalize_variance", 0)], [&x])
            .gives(tensor(&[1, 1, 1, 2], [-2f64, 2.0]));
    }

    /// Far from 0, of lanes in any order in memory: rounded once.
    #[test]
    fn along_some_axes() {
        let shape = [3usize, 4, 5, 6];
        let numbers: Vec<f32> = (0..360).map(|at| 1e4 + (at * at % 101) as f32 / 64.0).collect();
        let places: Vec<[usize; 4]> = (0..360).map(|at| [at / 120, at / 30 % 4, at / 6 % 5, at % 6]).collect();
        for axes in [&[][..], &[3i64], &[0], &[1, 3], &[0, 2], &[-1, -2], &[0, 1, 2, 3]] {
            let along = |axis: usize| axes.is_empty() || axes.iter().any(|a| a.rem_euclid(4) as usize == axis);
            let same = |a: &[usize; 4], b: &[usize; 4]| (0..4).all(|axis| along(axis) || a[axis] == b[axis]);
            let want = places.iter().zip(&numbers).map(|(place, x)| {
                let lane: Vec<f64> = places
                    .iter()
                    .zip(&numbers)
                    .filter(|(other, _)| same(place, other))
                    .map(|(_, x)| f64::from(*x))
                    .collect();
                let mean = lane.iter().sum::<f64>() / lane.len() as f64;
                let variance = lane.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / lane.len() as f64;
                ((f64::from(*x) - mean) / (variance.sqrt() + 1e-9)) as f32
            });
            let attributes = [("axes", Attribute::Ints(axes.to_vec()))];
            run("MeanVarianceNormalization", 13, attributes, [&tensor(&shape, numbers.clone())])
                .gives(tensor(&shape, want.collect::<Vec<f32>>()));
        }
    }

    #[test]
    fn inferred() {
        let axes = |axis| [("axes", Attribute::Ints(vec![axis]))];
        infer("MeanVarianceNormalization", 13, axes(1), ["float[N, 3]"]).gives("[N, 3]");
        infer("MeanVarianceNormalization", 13, axes(2), ["float[N, 3]"])
            .fails("axis 2 is out of range: allowed -2..=1");
    }

    #[test]
    fn faults() {
        let x = tensor(&[2, 2], [1f32, 2.0, 3.0, 4.0]);
        run("MeanVarianceNormalization", 13, [("axes", Attribute::Ints(vec![2]))], [&x])
            .fails("axis 2 is out of range: allowed -2..=1");
    }
}
