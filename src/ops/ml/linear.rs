//! LinearClassifier and LinearRegressor: weighted sums of features.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_LinearClassifier.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_LinearRegressor.html>

use super::attributes::{examples, numbers};
use super::entry;
use super::numbers::doubles;
use super::scores::{Classes, TRANSFORMS, both, targets};
use crate::ops::prelude::*;
use kernels::scores::Transform;

pub(super) const LINEAR_CLASSIFIER: Implementation = entry("LinearClassifier", &[1], |node| {
    let classes = Classes::of(node, ["classlabels_ints", "classlabels_strings"])?;
    let (count, linear) = (classes.labels.len(), Linear::of(node)?);
    // Two classes may have the weights of the second one only.
    let rows = if count == 2 && linear.intercepts.len() == 1 { 1 } else { count };
    linear.check(rows)?;
    Ok(Box::new(LinearClassifier { classes, rows, linear }))
});

pub(super) const LINEAR_REGRESSOR: Implementation = entry("LinearRegressor", &[1], |node| {
    let targets = node.int("targets")?;
    let linear = Linear::of(node)?;
    let count = usize::try_from(targets).ok().filter(|count| *count > 0);
    let count = count
        .ok_or_else(|| Error::model(format!("targets is {targets}: it must be at least 1")).attribute("targets"))?;
    linear.check(count)?;
    Ok(Box::new(LinearRegressor { targets: count, linear }))
});

/// `Z = transform(X * coefficients^T + intercepts)`, and `Y` = the label of the greatest score before the transform. Where two
/// classes have one row of coefficients, it is that of the second class, and the first has the negative of its score: the
/// text doesn't say.
#[derive(Debug)]
struct LinearClassifier {
    classes: Classes,
    rows: usize,
    linear: Linear,
}

/// `Y = transform(X * coefficients^T + intercepts)`
#[derive(Debug)]
struct LinearRegressor {
    targets: usize,
    linear: Linear,
}

/// Weighted sums, in double precision.
#[derive(Debug)]
struct Linear {
    coefficients: Tensor,
    intercepts: Tensor,
    transform: Transform,
}

impl Linear {
    fn of(node: &Node<'_>) -> Result<Linear> {
        let list = |name: &str| Ok::<_, Error>(Tensor::from(numbers(node, name)?));
        let transform = node.choice("post_transform", &TRANSFORMS)?;
        Ok(Linear { coefficients: list("coefficients")?, intercepts: list("intercepts")?, transform })
    }

    /// Checks that there are as many intercepts as rows of coefficients, or none.
    fn check(&self, rows: usize) -> Result<()> {
        match self.intercepts.len() {
            0 => Ok(()),
            count if count == rows => Ok(()),
            count => {
                let text = format!("intercepts has {count} entries, but there are {rows} rows of coefficients");
                Err(Error::model(text).attribute("intercepts").size(count))
            }
        }
    }

    /// The sums of each example, for rows of coefficients.
    fn sums(&self, call: &mut Call<'_>, rows: usize) -> Result<NewTensor> {
        let x = doubles(call, 0)?;
        let x = call.held(&x)?;
        let [examples, features] = match *x.shape() {
            [features] => [1, features],
            [examples, features] => [examples, features],
            _ => return Err(Error::input(format!("\"X\" has rank {}: allowed ranks 1 to 2", x.rank())).parameter("X")),
        };
        let count = self.coefficients.len();
        if rows.checked_mul(features) != Some(count) {
            let text = format!(
                "coefficients has {count} entries: {rows} rows for the {features} features of \"X\" are needed"
            );
            return Err(Error::input(text).parameter("X").size(features));
        }
        let mut output = call.output_of(DType::Double, [examples, rows].as_slice().into())?;
        let c = Broadcast { elements: self.intercepts.as_slice::<f64>()?, strides: Strides::COLUMNS };
        let c = Some(c).filter(|_| self.intercepts.len() > 0);
        let scaled = Scaled { alpha: 1.0, beta: 1.0, c };
        let weights = View::rows(self.coefficients.as_slice::<f64>()?, features).transposed();
        let product = Product::<f64> {
            m: examples,
            k: features,
            n: rows,
            a: Left::View(View::rows(x.as_slice::<f64>()?, features)),
            b: kernels::gemm::Right::View(weights),
            batch: &[],
            epilogue: &[&scaled],
        };
        multiply(call, product, output.elements_mut()?)?;
        Ok(output)
    }
}

impl Operator for LinearClassifier {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let mut sums = self.linear.sums(call, self.rows)?;
        if self.rows < self.classes.labels.len() {
            sums = both(call, sums.elements_mut()?, false)?;
        }
        self.classes.outputs(call, sums, self.linear.transform)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(0, 1..=2)?;
        facts.give_type(0, self.classes.labels.dtype());
        facts.give(0, [examples(facts)]);
        facts.give(1, [examples(facts), Dim::Fixed(self.classes.labels.len())]);
        Ok(())
    }
}

impl Operator for LinearRegressor {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let sums = self.linear.sums(call, self.targets)?;
        targets(call, sums, self.targets, self.linear.transform, DType::Float)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(0, 1..=2)?;
        facts.give(0, [examples(facts), Dim::Fixed(self.targets)]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, outputs, run, string, strings, tensor};
    use crate::tensor::Tensor;

    fn floats<'a>(name: &'a str, values: &[f32]) -> (&'a str, Attribute) {
        (name, Attribute::Floats(values.to_vec()))
    }

    #[test]
    fn scores_and_labels() {
        let name = "ai.onnx.ml.LinearClassifier";
        let x = tensor(&[2, 2], [1f32, 2.0, -3.0, 0.5]);
        let three = [
            floats("coefficients", &[1.0, 0.0, 0.0, 1.0, -1.0, -1.0]),
            floats("intercepts", &[0.5, 0.0, 0.0]),
            strings("classlabels_strings", &["a", "b", "c"]),
        ];
        let got = outputs(name, 1, three, [&x]);
        let labels = Tensor::from_strings(&[2], ["b", "c"]).unwrap();
        assert_eq!(got, [labels.into(), tensor(&[2, 3], [1.5f32, 2.0, -3.0, -2.5, 0.5, 2.5])]);
        // One row for two classes; equal scores give the first label.
        let one =
            [floats("coefficients", &[1.0, 0.0]), floats("intercepts", &[-1.0]), ints("classlabels_ints", &[5, 6])];
        let got = outputs(name, 1, one, [&x]);
        assert_eq!(got, [tensor(&[2], [5i64, 5]), tensor(&[2, 2], [-0f32, 0.0, 4.0, -4.0])]);
    }

    #[test]
    fn targets() {
        let name = "ai.onnx.ml.LinearRegressor";
        let x = tensor(&[3], [1i64, 2, 3]);
        run(name, 1, [floats("coefficients", &[1.0, 0.5, 2.0])], [&x]).gives(tensor(&[1, 1], [8f32]));
        let logistic = [floats("coefficients", &[0.0; 3]), string("post_transform", "LOGISTIC")];
        run(name, 1, logistic, [&x]).gives(tensor(&[1, 1], [0.5f32]));
        run(name, 1, [floats("coefficients", &[1.0])], [&x])
            .fails("coefficients has 1 entries: 1 rows for the 3 features of \"X\" are needed");
    }

    #[test]
    fn inferred() {
        let (name, weights) = ("ai.onnx.ml.LinearClassifier", || floats("coefficients", &[0.0; 6]));
        let given = [weights(), ints("classlabels_ints", &[5, 6])];
        infer(name, 1, given.clone(), ["float[N, 3]"]).gives_all(["[N]", "[N, 2]"]);
        infer(name, 1, given.clone(), ["float[N, 3]"]).has_type("int64");
        infer(name, 1, given.clone(), ["float[3]"]).gives_all(["[1]", "[1, 2]"]);
        infer(name, 1, [weights(), strings("classlabels_strings", &["a"])], ["float"]).has_type("string");
        infer(name, 1, given, ["float[N, 3, 3]"]).fails("allowed ranks 1 to 2");
        infer(name, 1, [weights()], ["float"]).fails("neither classlabels_ints nor classlabels_strings is given");
        let name = "ai.onnx.ml.LinearRegressor";
        infer(name, 1, [], ["int32[N, 3]"]).gives("[N, 1]");
        infer(name, 1, [int("targets", 2), floats("intercepts", &[0.0; 2])], ["float"]).gives("[?, 2]");
        infer(name, 1, [floats("intercepts", &[0.0; 2])], ["float"])
            .fails("intercepts has 2 entries, but there are 1 rows of coefficients");
        infer(name, 1, [int("targets", 0)], ["float"]).fails("targets is 0: it must be at least 1");
        infer(name, 1, [string("post_transform", "EXP")], ["float"]).fails("post_transform is \"EXP\": allowed NONE, ");
    }
}
