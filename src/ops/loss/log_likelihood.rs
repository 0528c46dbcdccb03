//! NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the negative logarithms of the probabilities of labels, or of
//! their softmax.
//! <https://onnx.ai/onnx/operators/onnx__NegativeLogLikelihoodLoss.html>,
//! <https://onnx.ai/onnx/operators/onnx__SoftmaxCrossEntropyLoss.html>

use crate::ops::prelude::*;
use kernels::lanes::{LogSoftmax, LogSumExp, Sum};
use kernels::losses::Labelled;

pub(super) const NEGATIVE_LOG_LIKELIHOOD_LOSS: Implementation =
    Implementation::run("NegativeLogLikelihoodLoss", &[12, 13, 22], |node| {
        Ok(Box::new(LogLikelihood::of(node, false)?))
    });
pub(super) const SOFTMAX_CROSS_ENTROPY_LOSS: Implementation =
    Implementation::run("SoftmaxCrossEntropyLoss", &[12, 13], |node| Ok(Box::new(LogLikelihood::of(node, true)?)));

/// `loss[n, d..] = -y[n, c, d..] * weight[c]` where `c` is the label at `[n, d..]`, and `y` is the input or `log_prob`, the
/// logarithm of its softmax along axis 1; 0 where `c` is `ignore_index`. Without weights they are 1.
///
/// `sum` adds up all losses, `mean` divides that by the sum of the weights of all labels but the ignored ones: without any
/// it is NaN. Losses and sums are computed in float64, and rounded once.
#[derive(Debug)]
struct LogLikelihood {
    softmax: bool,
    reduction: Reduction,
    ignored: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reduction {
    None,
    Mean,
    Sum,
}

impl LogLikelihood {
    fn of(node: &Node<'_>, softmax: bool) -> Result<LogLikelihood> {
        let reductions = [("none", Reduction::None), ("mean", Reduction::Mean), ("sum", Reduction::Sum)];
        let reduction = node.choice("reduction", &reductions)?;
        Ok(LogLikelihood { softmax, reduction, ignored: node.optional("ignore_index", Node::int)? })
    }

    /// What is known about the shape of the losses. The classes are dimension 1 of the scores. The labels have the other
    /// dimensions.
    fn losses(facts: &Inference<'_>) -> Result<Option<Vec<Dim>>> {
        let (scores, mut losses) = (facts.ranked(0, 2..)?, facts.ranked(1, 1..)?.map(<[Dim]>::to_vec));
        if let Some([batch, classes, others @ ..]) = scores {
            let expected = [std::slice::from_ref(batch), others].concat();
            facts.needs(1, &expected)?;
            facts.needs(2, std::slice::from_ref(classes))?;
            let labels = losses.unwrap_or_else(|| expected.clone());
            let both = |(a, b): (&Dim, &Dim)| a.both(b).unwrap_or(Dim::Unknown);
            losses = Some(expected.iter().zip(&labels).map(both).collect());
        }
        facts.ranked(2, 1..=1)?;
        Ok(losses)
    }

    /// The loss, from scores of type `S`.
    fn run_for<S: Element + Stored<f64>>(&self, call: &Call<'_>) -> Result<Tensor> {
        let (scores, labels, resources) = (call.tensor(0)?, call.tensor(1)?, call.resources());
        let weights = call.optional_tensor(2)?;
        let (dtype, shape, count) = (scores.dtype(), scores.shape(), labels.len());
        let from = scores.as_slice::<S>()?;
        let mut log_sums = None;
        if self.softmax {
            let lanes = Lanes::new(shape, |at| at == 1);
            let sums = log_sums.insert(call.scratch::<f64>(count)?).elements_mut::<f64>();
            let mut room = call.scratch::<f64>(lanes.scratch_to_measure::<S, f64>(call.threads()))?;
            let log_sum = LogSumExp { wide: dtype.size() == 8 };
            lanes::measure(&log_sum, from, &lanes, room.elements_mut(), sums, resources)?;
        }
        let labelled = Labelled {
            scores: from,
            classes: shape.get(1).copied().unwrap_or(0),
            inner: kernels::volume(1, shape.iter().skip(2)),
            labels: indices_of(labels)?,
            ignored: self.ignored,
            weights: weights.map(|weights| weights.as_slice()).transpose()?,
            log_sums: log_sums.as_mut().map(|sums| &*sums.elements_mut::<f64>()),
        };
        let losses = |losses: &mut [f64], weights: &mut [f64]| match labelled.losses(losses, weights, resources) {
            Err(Stopped::OutOfRange) => Err(self.bad_label(call, labels, labelled.classes)),
            outcome => Ok(outcome?),
        };
        if self.reduction == Reduction::None {
            let mut output = Output::<f64>::new(call.context(), dtype, shape_of([labels.shape()]))?;
            losses(output.elements_mut()?, &mut [])?;
            return output.finish();
        }
        let mean = self.reduction == Reduction::Mean;
        let (mut each, mut applied) = (call.scratch::<f64>(count)?, call.scratch::<f64>(if mean { count } else { 0 })?);
        losses(each.elements_mut(), applied.elements_mut())?;
        let total = |numbers: &[f64]| {
            let mut total = [0.0];
            lanes::reduce::<_, f64, f64>(&Sum, numbers, &Lanes::new(&[count], |_| true), &mut total, resources)?;
            Ok::<f64, Error>(total.iter().sum())
        };
        let mut loss = total(each.elements_mut())?;
        if mean {
            loss /= total(applied.elements_mut())?;
        }
        let mut output = Output::<f64>::new(call.context(), dtype, Shape::new())?;
        output.elements_mut()?.fill(loss);
        output.finish()
    }

    /// The error for the first label that is no class.
    #[cold]
    fn bad_label(&self, call: &Call<'_>, labels: &Tensor, classes: usize) -> Error {
        let (name, mut lookout) = (call.name(1), call.lookout());
        for (at, label) in labels.scalars().enumerate() {
            let label = integer(&label);
            if !(0..classes as i128).contains(&label) && self.ignored.map(i128::from) != Some(label) {
                let position = position_of(at, labels.shape());
                let allowed = match (classes, self.ignored) {
                    (0, _) => "there are no classes".to_string(),
                    (_, None) => format!("allowed 0..={}", classes - 1),
                    (_, Some(ignored)) => format!("allowed 0..={}, and {ignored}, which is ignored", classes - 1),
                };
                let text = format!("{name}{} = {label} is not a class: {allowed}", ShapeText(&position));
                return Error::input(text).parameter(name).value(label).size(classes).position(position);
            }
            if let Err(why) = lookout.after(labels.dtype().size()) {
                return why.into();
            }
        }
        Stopped::OutOfRange.into()
    }
}

impl Operator for LogLikelihood {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(LogLikelihood::losses)?;
        let scores = call.tensor(0)?;
        // Each label is read, and all scores if they are normalized.
        call.charge(call.tensor(1)?.len() as u64 + if self.softmax { scores.len() as u64 } else { 0 })?;
        by_type!(floats, scores.dtype(), S as T => {
            let mut outputs = Values::from(self.run_for::<S>(call)?);
            if call.wants(1) {
                let mut log_prob = call.output_of(scores.dtype(), shape_of([scores.shape()]))?;
                mapped::<S, T>(call, scores, &Lanes::new(scores.shape(), |at| at == 1), &LogSoftmax, &mut log_prob)?;
                outputs.push(log_prob.finish());
            }
            Ok(outputs)
        })
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(1, 0);
        match LogLikelihood::losses(facts)? {
            _ if self.reduction != Reduction::None => facts.give(0, []),
            Some(losses) => facts.give(0, losses),
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, outputs, run, string, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    fn reduced(how: &str) -> [(&str, Attribute); 1] {
        [string("reduction", how)]
    }

    fn scalar(value: f32) -> Value {
        tensor(&[], [value])
    }

    #[test]
    fn the_examples_of_the_text() {
        let input = tensor(&[2, 3, 2], [1f32, 2.0, 2.0, 2.0, 3.0, 2.0, 0.0, 1.0, 2.0, 2.0, 1.0, 2.0]);
        let (target, weight) = (tensor(&[2, 2], [2i64, 1, 0, 2]), tensor(&[3], [0.2f32, 0.3, 0.1]));
        let name = "NegativeLogLikelihoodLoss";
        for opset in [12, 13, 22] {
            run(name, opset, reduced("none"), [&input, &target]).gives(tensor(&[2, 2], [-3f32, -2.0, -0.0, -2.0]));
            run(name, opset, reduced("sum"), [&input, &target, &weight]).gives(scalar(-1.1));
            run(name, opset, [], [&input, &target, &weight]).gives(scalar(-1.571_428_5));
            run(name, opset, [], [&input, &target]).gives(scalar(-1.75));
        }
        let target = tensor(&[2, 2], [2i32, 1, 0, 2]);
        run(name, 22, reduced("sum"), [&input, &target]).gives(scalar(-7.0));
    }

    #[test]
    fn ignored_labels_count_for_nothing() {
        let input = tensor(&[3, 2], [-1f64, -2.0, f64::NAN, f64::NAN, -4.0, -8.0]);
        let weight = tensor(&[2], [1f64, 3.0]);
        for ignored in [-7, 1, 2, i64::MAX] {
            let (target, name) = (tensor(&[3], [0i64, ignored, 0]), "NegativeLogLikelihoodLoss");
            let with = |how| [int("ignore_index", ignored), string("reduction", how)];
            run(name, 13, with("none"), [&input, &target]).gives(tensor(&[3], [1f64, 0.0, 4.0]));
            run(name, 13, with("mean"), [&input, &target]).gives(tensor(&[], [2.5f64]));
            run(name, 13, with("sum"), [&input, &target, &weight]).gives(tensor(&[], [5f64]));
        }
        let target = tensor(&[3], [0i64, 9, 1]);
        run("NegativeLogLikelihoodLoss", 13, [int("ignore_index", 9)], [&input, &target, &weight])
            .gives(tensor(&[], [25f64 / 4.0]));
    }

    #[test]
    fn without_a_label_the_mean_is_nan() {
        let mean = |name, scores: &Value, labels: &Value| {
            let loss = outputs(name, 13, [int("ignore_index", 5)], [scores, labels]).swap_remove(0);
            loss.tensor().unwrap().as_slice::<f32>().unwrap()[0]
        };
        for name in ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"] {
            assert!(mean(name, &tensor(&[1, 2], [1f32, 2.0]), &tensor(&[1], [5i32])).is_nan());
            let (scores, labels) = (tensor(&[0, 2], Vec::<f32>::new()), tensor(&[0], Vec::<i64>::new()));
            assert!(mean(name, &scores, &labels).is_nan());
            run(name, 13, reduced("sum"), [&scores, &labels]).gives(scalar(0.0));
            run(name, 13, reduced("none"), [&scores, &labels]).gives(tensor(&[0], Vec::<f32>::new()));
        }
    }

    #[test]
    fn softmax() {
        let (scores, labels) = (tensor(&[2, 2, 1], [1000f32, 1000.0, 0.0, 0.0]), tensor(&[2, 1], [1i64, 0]));
        let half = std::f32::consts::LN_2;
        for opset in [12, 13] {
            let ran = outputs("SoftmaxCrossEntropyLoss", opset, reduced("none"), [&scores, &labels]);
            assert_eq!(*ran, [tensor(&[2, 1], [half; 2]), tensor(&[2, 2, 1], [-half; 4])]);
            run("SoftmaxCrossEntropyLoss", opset, [], [&scores, &labels]).gives(scalar(half));
        }
        let weights = tensor(&[2], [1f32, 3.0]);
        run("SoftmaxCrossEntropyLoss", 13, reduced("sum"), [&scores, &labels, &weights]).gives(scalar(4.0 * half));
        // A softmax with infinity is NaN, and so is its loss.
        let scores = tensor(&[1, 2], [f32::INFINITY, 0.0]);
        let ran = outputs("SoftmaxCrossEntropyLoss", 13, [], [&scores, &tensor(&[1], [1i64])]);
        assert!(ran[0].tensor().unwrap().as_slice::<f32>().unwrap()[0].is_nan());
    }

    /// Sums in the type would lose what is small.
    #[test]
    fn halves_are_rounded_once() {
        let (count, labels) = (5000, tensor(&[5000], vec![0i64; 5000]));
        let scores = tensor(&[count, 1], vec![f16::from_f32(-0.01); count]);
        let sum = f16::from_f64(f16::from_f32(0.01).to_f64() * count as f64);
        run("NegativeLogLikelihoodLoss", 12, reduced("sum"), [&scores, &labels]).gives(tensor(&[], [sum]));
        let scores = tensor(&[count, 1], vec![bf16::from_f32(-1.0); count]);
        run("NegativeLogLikelihoodLoss", 22, [], [&scores, &labels]).gives(tensor(&[], [bf16::ONE]));
        run("SoftmaxCrossEntropyLoss", 13, reduced("sum"), [&scores, &labels]).gives(tensor(&[], [bf16::ZERO]));
    }

    #[test]
    fn refusals() {
        let scores = tensor(&[2, 5, 3], [0f32; 30]);
        let labels = |at: usize, label| {
            let mut labels = [0i64; 6];
            labels[at] = label;
            tensor(&[2, 3], labels)
        };
        let error = run("SoftmaxCrossEntropyLoss", 13, [], [&scores, &labels(4, 5)])
            .fails("labels[1, 1] = 5 is not a class: allowed 0..=4");
        let place = error.place();
        assert_eq!((place.position.as_deref(), place.value), (Some(&[1, 1][..]), Some(5)));
        run("NegativeLogLikelihoodLoss", 22, [int("ignore_index", 9)], [&scores, &labels(2, -1)])
            .fails("target[0, 2] = -1 is not a class: allowed 0..=4, and 9, which is ignored");
        let (none, label) = (tensor(&[1, 0], Vec::<f32>::new()), tensor(&[1], [0i32]));
        run("NegativeLogLikelihoodLoss", 12, [], [&none, &label])
            .fails("target[0] = 0 is not a class: there are no classes");
        run("NegativeLogLikelihoodLoss", 12, [], [&scores, &tensor(&[2], [0i64; 2])])
            .fails("\"target\" has shape [2]: [2, 3] is needed");
    }

    #[test]
    fn shapes() {
        let (scores, labels) = ("float[N, 5, 3, ?]", "int64[N, ?, 2]");
        infer("NegativeLogLikelihoodLoss", 13, [], [scores, labels, "float[5]"]).gives("[]");
        infer("SoftmaxCrossEntropyLoss", 13, [string("reduction", "sum")], [scores, labels])
            .gives_all(["[]", "[N, 5, 3, ?]"]);
        infer("SoftmaxCrossEntropyLoss", 12, [], ["float", "int32"]).gives_all(["[]", ""]);
        let none = [string("reduction", "none")];
        infer("NegativeLogLikelihoodLoss", 22, none.clone(), [scores, labels]).gives("[N, 3, 2]");
        infer("NegativeLogLikelihoodLoss", 12, none.clone(), [scores, "int32"]).gives("[N, 3, ?]");
        infer("NegativeLogLikelihoodLoss", 12, none.clone(), ["float", labels]).gives("[N, ?, 2]");
        infer("NegativeLogLikelihoodLoss", 12, none, ["float", "int64"]).gives("");
    }

    #[test]
    fn faults() {
        let scores = "float[2, 5, 3]";
        infer("SoftmaxCrossEntropyLoss", 13, [], [scores, "int64[2, 5]"])
            .fails("\"labels\" has shape [2, 5]: [2, 3] is needed");
        infer("SoftmaxCrossEntropyLoss", 13, [], [scores, "int64[2]"]).fails("[2, 3] is needed");
        infer("NegativeLogLikelihoodLoss", 13, [], [scores, "int64[2, 3]", "float[3]"])
            .fails("\"weight\" has shape [3]: [5] is needed");
        infer("NegativeLogLikelihoodLoss", 13, [], ["float", "int64", "float[3, 1]"]).fails("allowed rank 1");
        infer("NegativeLogLikelihoodLoss", 13, [], ["float[5]", "int64"]).fails("allowed ranks from 2 on");
        infer("NegativeLogLikelihoodLoss", 13, [string("reduction", "max")], [scores, "int64"])
            .fails("reduction is \"max\": allowed none, mean, sum");
    }
}
