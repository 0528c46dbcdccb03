//! SVMClassifier and SVMRegressor: support vector machines.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_SVMClassifier.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_SVMRegressor.html>

use super::attributes::{equally_many, examples, numbers};
use super::entry;
use super::machine::{Machine, count_of, fault};
use super::numbers::floats;
use super::scores::{Classes, first_greatest, targets};
use crate::ops::prelude::*;
use kernels::Lookout;
use kernels::functions::exp;
use kernels::scores::Transform;
use kernels::vectors::{coupled, coupling_steps};

pub(super) const SVM_CLASSIFIER: Implementation = entry("SVMClassifier", &[1], load_classes);
pub(super) const SVM_REGRESSOR: Implementation = entry("SVMRegressor", &[1], load_targets);

/// `Y[n, 0] = transform(sum over v of coefficients[v] * kernel(X[n], support_vectors[v]) + rho[0])`, in double precision and
/// rounded once; of a machine for one class 1 if the sum is above 0, and -1 otherwise. Without support vectors the coefficients
/// are the weights of the features.
#[derive(Debug)]
struct SvmRegressor {
    machine: Machine,
    one_class: bool,
}

/// Each pair of classes has a score: what the vectors of the first class add up to with row `second - 1` of the
/// coefficients, those of the second class with row `first`, and `rho[pair]`. `Y` is the label with most pairs for it, the
/// first of equal ones. `Z` are the transformed scores of the pairs; with `prob_a` and `prob_b` the probabilities of the
/// classes, as libsvm couples those of pairs. Of two classes the second has the score, and the first its negative. Without
/// support vectors each class has a score, the product of the example and its row of coefficients, and `rho[0]`. The text
/// says little of this: it is what engines agree on.
#[derive(Debug)]
struct SvmClassifier {
    machine: Machine,
    classes: Classes,
    /// The number of support vectors of each class.
    counts: Vec<usize>,
    prob: [Vec<f64>; 2],
}

fn load_targets(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let count = node.int("n_supports")?;
    let count = usize::try_from(count)
        .map_err(|_| Error::model(format!("n_supports is {count}: it must be at least 0")).attribute("n_supports"))?;
    let machine = Machine::of(node, count, 1)?;
    if count > 0 && machine.coefficients.len() != count {
        return Err(fault("coefficients", machine.coefficients.len(), &format!("n_supports is {count}")));
    }
    Ok(Box::new(SvmRegressor { machine, one_class: node.is_set("one_class")? }))
}

fn load_classes(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let classes = Classes::of(node, ["classlabels_ints", "classlabels_strings"])?;
    equally_many(node, &["prob_a", "prob_b"])?;
    let given = node.optional("vectors_per_class", Node::ints)?.unwrap_or(&[]);
    let size = |(k, size): (usize, &i64)| {
        usize::try_from(*size).map_err(|_| {
            let text = format!("vectors_per_class[{k}] is {size}: it must be at least 0");
            Error::model(text).attribute("vectors_per_class").value(*size)
        })
    };
    node.bill(2 * size_of_val(given))?;
    let counts: Vec<usize> = given.iter().enumerate().map(size).collect::<Result<_>>()?;
    let sum = counts.iter().fold(0usize, |sum, count| sum.saturating_add(*count));
    let count = classes.labels.len();
    let machine = Machine::of(node, sum, count)?;
    let prob = [numbers(node, "prob_a")?, numbers(node, "prob_b")?];
    let pairs = count.saturating_mul(count.saturating_sub(1)) / 2;
    if sum == 0 {
        return Ok(Box::new(SvmClassifier { machine, classes, counts: Vec::new(), prob }));
    }
    if counts.len() != count {
        return Err(fault("vectors_per_class", counts.len(), &format!("there are {count} classes")));
    }
    if machine.rho.len() < pairs {
        return Err(fault("rho", machine.rho.len(), &format!("{count} classes have {pairs} pairs")));
    }
    if !prob[0].is_empty() && prob[0].len() < pairs {
        return Err(fault("prob_a", prob[0].len(), &format!("{count} classes have {pairs} pairs")));
    }
    if sum.checked_mul(count.saturating_sub(1)) != Some(machine.coefficients.len()) {
        let needed = format!("{} rows for {sum} support vectors are needed", count.saturating_sub(1));
        return Err(fault("coefficients", machine.coefficients.len(), &needed));
    }
    Ok(Box::new(SvmClassifier { machine, classes, counts, prob }))
}

impl Operator for SvmRegressor {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let mut scores = call.output_of(DType::Double, [count_of(call)?, 1].as_slice().into())?;
        let (to, rho) = (scores.elements_mut::<f64>()?, self.machine.rho.first().copied().unwrap_or(0.0));
        self.machine.each(call, 1, |k, alike, _| {
            let sum = match self.machine.count {
                0 => alike.iter().sum::<f64>(),
                _ => dot(&self.machine.coefficients, alike),
            } + rho;
            if let Some(to) = to.get_mut(k) {
                *to = match self.one_class {
                    true if sum > 0.0 => 1.0,
                    true => -1.0,
                    false => sum,
                };
            }
            Ok(())
        })?;
        let transform = if self.one_class { Transform::None } else { self.machine.transform };
        targets(call, scores, 1, transform, DType::Float)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(0, 1..=2)?;
        facts.give(0, [examples(facts), Dim::Fixed(1)]);
        Ok(())
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

impl SvmClassifier {
    /// The scores of an example.
    fn scores(&self) -> usize {
        match self.classes.labels.len() {
            2 => 2,
            count if self.machine.count > 0 && self.prob[0].is_empty() => count * count.saturating_sub(1) / 2,
            count => count,
        }
    }

    /// The scores of the pairs of classes, and how many pairs are for each class.
    fn pairs(&self, alike: &[f64], scores: &mut [f64], votes: &mut [i64], lookout: &mut Lookout<'_>) -> Result<()> {
        let sum = self.machine.count;
        let part = |row: usize, start: usize, len: usize| {
            let from = row * sum + start;
            let own = self.machine.coefficients.get(from..from + len).unwrap_or(&[]);
            dot(own, alike.get(start..).unwrap_or(&[]))
        };
        votes.fill(0);
        let (mut start_i, mut scores) = (0, scores.iter_mut().zip(&self.machine.rho));
        for (i, of_i) in self.counts.iter().enumerate() {
            let mut start_j = start_i + of_i;
            for ((j, of_j), (score, rho)) in self.counts.iter().enumerate().skip(i + 1).zip(&mut scores) {
                lookout.after(size_of::<f64>() * (1 + of_i + of_j))?;
                *score = rho + part(j - 1, start_i, *of_i) + part(i, start_j, *of_j);
                if let Some(votes) = votes.get_mut(if *score > 0.0 { i } else { j }) {
                    *votes += 1;
                }
                start_j += of_j;
            }
            start_i += of_i;
        }
        Ok(())
    }

    /// The probabilities of classes, from the scores of their pairs. `memory` has room for two numbers for each pair of classes
    /// in either order, and one for each class.
    fn probabilities(
        &self,
        pairs: &[f64],
        memory: &mut [f64],
        out: &mut [f64],
        lookout: &mut Lookout<'_>,
    ) -> Result<()> {
        let count = self.counts.len();
        let (table, memory) = memory.split_at_mut(count * count);
        let (q, qp) = memory.split_at_mut(count * count);
        let mut at = 0;
        for i in 0..count {
            lookout.after(size_of_val(out))?;
            for j in i + 1..count {
                let number = |list: &[f64]| list.get(at).copied().unwrap_or(0.0);
                let exponent = number(pairs) * number(&self.prob[0]) + number(&self.prob[1]);
                let p = (1.0 / (1.0 + exp(exponent))).clamp(1e-7, 1.0 - 1e-7);
                for (at, p) in [(i * count + j, p), (j * count + i, 1.0 - p)] {
                    if let Some(to) = table.get_mut(at) {
                        *to = p;
                    }
                }
                at += 1;
            }
        }
        Ok(coupled(table, q, qp, out, lookout)?)
    }
}

impl Operator for SvmClassifier {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (count, examples, width) = (self.classes.labels.len(), count_of(call)?, self.scores());
        let mut scores = call.output_of(DType::Double, [examples, width].as_slice().into())?;
        let mut memory = call.kept::<i64>(examples)?;
        let (to, best) = (scores.elements_mut::<f64>()?, memory.elements_mut::<i64>()?);
        // What pairs take for an example. There are as many of them as the lists of the node have entries, or fewer.
        let (classes, probable) = (self.counts.len(), !self.prob[0].is_empty());
        let pairs = classes * classes.saturating_sub(1) / 2;
        let sums = if classes > 0 { pairs + self.machine.coefficients.len() } else { 0 };
        let (room, steps) =
            if probable { (2 * classes * classes + classes, coupling_steps(classes)) } else { Default::default() };
        call.charge((examples as u64).saturating_mul(sums.saturating_add(steps) as u64))?;
        let (mut numbers, mut votes) = (call.kept::<f64>(pairs + room)?, call.kept::<i64>(classes)?);
        let (pairs, room) = numbers.elements_mut::<f64>()?.split_at_mut(pairs);
        let votes = votes.elements_mut::<i64>()?;
        self.machine.each(call, count, |k, alike, lookout| {
            let (Some(to), Some(best)) = (to.get_mut(k * width..(k + 1) * width), best.get_mut(k)) else {
                return Ok(());
            };
            if classes == 0 {
                let rho = self.machine.rho.first().copied().unwrap_or(0.0);
                to.iter_mut().zip(alike).for_each(|(to, alike)| *to = alike + rho);
                *best = first_greatest(to.iter()) as i64;
                return Ok(());
            }
            self.pairs(alike, pairs, votes, lookout)?;
            *best = first_greatest(votes.iter()) as i64;
            match (&*pairs, to) {
                (pairs, to) if probable => self.probabilities(pairs, room, to, lookout)?,
                ([score], [first, second]) => (*first, *second) = (-score, *score),
                (pairs, to) => to.copy_from_slice(pairs),
            }
            Ok(())
        })?;
        self.machine.transform.apply(to, width, call.resources())?;
        let labels = self.classes.picked(call, memory.elements_mut::<i64>()?)?;
        let mut outputs = Values::from(labels);
        outputs.extend(floats(call, scores.finish())?);
        Ok(outputs)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(0, 1..=2)?;
        facts.give_type(0, self.classes.labels.dtype());
        facts.give(0, [examples(facts)]);
        facts.give(1, [examples(facts), Dim::Fixed(self.scores())]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, outputs, run, string, tensor};

    fn floats<'a>(name: &'a str, values: &[f32]) -> (&'a str, Attribute) {
        (name, Attribute::Floats(values.to_vec()))
    }

    const CLASSIFIER: &str = "ai.onnx.ml.SVMClassifier";
    const REGRESSOR: &str = "ai.onnx.ml.SVMRegressor";

    /// Three classes with a vector each, and linear likeness.
    fn three() -> Vec<(&'static str, Attribute)> {
        vec![
            ints("classlabels_ints", &[5, 6, 7]),
            ints("vectors_per_class", &[1, 1, 1]),
            floats("support_vectors", &[1.0, 0.0, 0.0, 1.0, -1.0, -1.0]),
            floats("coefficients", &[1.0, -1.0, -1.0, 1.0, 1.0, -1.0]),
            floats("rho", &[0.5, 0.0, 0.0]),
        ]
    }

    #[test]
    fn classes() {
        let x = tensor(&[2, 2], [2f32, 1.0, -4.0, -3.0]);
        // Likenesses of the first example are 2, 1, -3: pairs 2 - 1 + 0.5, 2 + 3, 1 + 3.
        let run = |more: Vec<(&'static str, Attribute)>| {
            let all: [(&str, Attribute); 5] = three().try_into().unwrap();
            match <[_; 2]>::try_from(more) {
                Ok([a, b]) => {
                    let [c, d, e, f, g] = all;
                    outputs(CLASSIFIER, 1, [a, b, c, d, e, f, g], [&x])
                }
                Err(_) => outputs(CLASSIFIER, 1, all, [&x]),
            }
        };
        let scores = tensor(&[2, 3], [1.5f32, 5.0, 4.0, -0.5, -11.0, -10.0]);
        assert_eq!(run(Vec::new()), [tensor(&[2], [5i64, 7]), scores]);
        let probable = run(vec![floats("prob_a", &[-1.0; 3]), floats("prob_b", &[0.0; 3])]);
        let sums: Vec<f32> =
            probable[1].tensor().unwrap().as_slice::<f32>().unwrap().chunks(3).map(|p| p.iter().sum()).collect();
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6), "{sums:?}");
    }

    /// NaN is a vote for the second class of a pair, and no probability.
    #[test]
    fn classes_of_nan() {
        let prob = [floats("prob_a", &[-1.0; 3]), floats("prob_b", &[0.0; 3])];
        let all: [(&str, Attribute); 7] = three().into_iter().chain(prob).collect::<Vec<_>>().try_into().unwrap();
        let got = outputs(CLASSIFIER, 1, all, [&tensor(&[2, 2], [f32::NAN, 0.0, 2.0, 1.0])]);
        assert_eq!(got[0], tensor(&[2], [7i64, 5]));
        let scores = got[1].tensor().unwrap().as_slice::<f32>().unwrap().to_vec();
        assert!(scores[..3].iter().all(|p| p.is_nan()) && scores[3] > scores[4], "{scores:?}");
    }

    #[test]
    fn two_classes_and_none_with_vectors() {
        let two = [
            ints("classlabels_ints", &[5, 6]),
            ints("vectors_per_class", &[1, 1]),
            floats("support_vectors", &[1.0, 0.0, 0.0, 1.0]),
            floats("coefficients", &[1.0, -1.0]),
            floats("rho", &[0.0]),
        ];
        let x = tensor(&[1, 2], [2f32, 5.0]);
        let got = outputs(CLASSIFIER, 1, two, [&x]);
        assert_eq!(got, [tensor(&[1], [6i64]), tensor(&[1, 2], [3f32, -3.0])]);
        let linear = [ints("classlabels_ints", &[5, 6]), floats("coefficients", &[1.0, 0.0, 0.0, 1.0])];
        let got = outputs(CLASSIFIER, 1, linear, [&x]);
        assert_eq!(got, [tensor(&[1], [6i64]), tensor(&[1, 2], [2f32, 5.0])]);
    }

    /// They have the likeness of nothing with nothing. Probabilities of classes without vectors take no memory.
    #[test]
    fn examples_without_features() {
        let x = tensor(&[2, 0], [0f32; 0]);
        run(REGRESSOR, 1, [floats("rho", &[0.5])], [&x]).gives(tensor(&[2, 1], [0.5f32; 2]));
        let labels: Vec<i64> = (0..200_000).collect();
        let prob = [floats("prob_a", &[1.0]), floats("prob_b", &[1.0])];
        let [a, b] = prob;
        let got = outputs(CLASSIFIER, 1, [ints("classlabels_ints", &labels), a, b], [&tensor(&[1, 0], [0f32; 0])]);
        assert_eq!(got[0], tensor(&[1], [0i64]));
    }

    #[test]
    fn targets() {
        let x = tensor(&[2, 2], [1f32, 2.0, 0.0, -1.0]);
        let linear = [floats("coefficients", &[1.0, 3.0]), floats("rho", &[0.5])];
        run(REGRESSOR, 1, linear.clone(), [&x]).gives(tensor(&[2, 1], [7.5f32, -2.5]));
        let [a, b] = linear;
        run(REGRESSOR, 1, [a, b, int("one_class", 1)], [&x]).gives(tensor(&[2, 1], [1f32, -1.0]));
        let poly = [
            int("n_supports", 2),
            floats("support_vectors", &[1.0, 0.0, 0.0, 1.0]),
            floats("coefficients", &[1.0, 10.0]),
            floats("kernel_params", &[1.0, 1.0, 2.0]),
            string("kernel_type", "POLY"),
        ];
        run(REGRESSOR, 1, poly, [&x]).gives(tensor(&[2, 1], [94f32, 1.0]));
        let bad = [int("n_supports", 2), floats("support_vectors", &[1.0]), floats("coefficients", &[1.0; 2])];
        run(REGRESSOR, 1, bad, [&x]).fails("support_vectors has 1 entries: they are no 2 vectors of one length");
    }

    #[test]
    fn inferred() {
        let labels = || ints("classlabels_ints", &[5, 6, 7]);
        let ones = |name: &'static str, count: usize| floats(name, &vec![1.0; count]);
        infer(CLASSIFIER, 1, [labels()], ["float[N, 3]"]).gives_all(["[N]", "[N, 3]"]);
        infer(CLASSIFIER, 1, [labels()], ["float[N, 3]"]).has_type("int64");
        infer(CLASSIFIER, 1, [labels(), ones("prob_a", 3), ones("prob_b", 3)], ["float"]).gives_all(["[?]", "[?, 3]"]);
        infer(CLASSIFIER, 1, [labels(), ones("prob_a", 3), ones("prob_b", 1)], ["float"])
            .fails("prob_b has 1 entries, and prob_a has 3");
        infer(CLASSIFIER, 1, [labels(), string("kernel_type", "linear")], ["float"])
            .fails("kernel_type is \"linear\": allowed LINEAR, POLY, RBF, SIGMOID");
        infer(CLASSIFIER, 1, [labels(), ints("vectors_per_class", &[1, 1])], ["float"])
            .fails("vectors_per_class has 2 entries: there are 3 classes");
        infer(CLASSIFIER, 1, [labels(), ints("vectors_per_class", &[1, -1])], ["float"])
            .fails("vectors_per_class[1] is -1: it must be at least 0");
        infer(REGRESSOR, 1, [], ["float[N, 3]"]).gives("[N, 1]");
        infer(REGRESSOR, 1, [], ["float[N, 3, 1]"]).fails("allowed ranks 1 to 2");
        infer(REGRESSOR, 1, [ones("kernel_params", 2)], ["float"]).fails("gamma, coef0 and degree are needed");
    }
}
