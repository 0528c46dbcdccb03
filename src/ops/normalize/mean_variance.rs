//! MeanVarianceNormalization: each element less the mean of its lane, divided by the standard deviation.
//! <https://onnx.ai/onnx/operators/onnx__MeanVarianceNormalization.html>

use crate::ops::prelude::*;

pub(super) const MEAN_VARIANCE_NORMALIZATION: Implementation =
    Implementation { domain: "", name: "MeanVarianceNormalization", versions: &[1, 9, 13], make: Make::Expand(expand) };

/// `Y = (X - EX) / (sqrt(E((X - EX)^2)) + 1e-9)`, where `E` is the mean along `axes`
///
/// The text has no 1e-9; the function's body does, so that lanes of equal elements give 0. The body takes the variance as
/// `E(X^2) - (EX)^2`, which cancels. All is computed in float64, and rounded once.
///
/// Version 1 was experimental: the mean is that of a channel, or of all with `across_channels`; without
/// `normalize_variance` nothing is divided.
fn expand(node: &Node<'_>, body: &mut Body<'_>) -> Result<()> {
    let (axes, divide) = if node.version() < 9 {
        let axes: &[i64] = if node.flag("across_channels")? { &[0, 1, 2, 3] } else { &[0, 2, 3] };
        (axes, node.flag("normalize_variance")?)
    } else {
        (node.axes("axes", i64::MAX)?.unwrap_or_default(), true)
    };
    let axes = || Attribute::Ints(axes.to_vec());
    let input = BodyValue::Input(0);
    let x = body.node("Cast", 13, [("to", Attribute::Int(DType::Double.code().into()))], [input])?;
    let mean = body.node("ReduceMean", 13, [("axes", axes())], [x])?;
    let distance = body.node("Sub", 14, [], [x, mean])?;
    if !divide {
        let y = body.node("CastLike", 15, [], [distance, input])?;
        return body.output(y);
    }
    let square = body.node("Mul", 14, [], [distance, distance])?;
    let variance = body.node("ReduceMean", 13, [("axes", axes())], [square])?;
    let deviation = body.node("Sqrt", 13, [], [variance])?;
    let least = body.constant(Tensor::scalar(1e-9f64))?;
    let divisor = body.node("Add", 14, [], [deviation, least])?;
    let quotient = body.node("Div", 14, [], [distance, divisor])?;
    let y = body.node("CastLike", 15, [], [quotient, input])?;
    body.output(y)
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{int, ints, run, tensor};
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

    #[test]
    fn faults() {
        let x = tensor(&[2, 2], [1f32, 2.0, 3.0, 4.0]);
        run("MeanVarianceNormalization", 13, [("axes", Attribute::Ints(vec![2]))], [&x])
            .fails("(MeanVarianceNormalization-13): axis 2 is out of range: allowed -2..=1");
    }
}
