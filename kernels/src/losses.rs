//! Losses of labels: how far the score of the class that a label names is from certainty.

use super::gather::Indices;
use super::lanes::Stored;
use super::{Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::slice;

/// Scores and labels.
#[derive(Debug)]
pub struct Labelled<'a, S> {
    /// Log-probabilities, `[samples, classes, inner]`; or scores that become these less the number of `log_sums`.
    pub scores: &'a [S],
    pub classes: usize,
    pub inner: usize,
    /// `[samples, inner]`
    pub labels: Indices<'a>,
    /// The label whose loss is 0, wherever its score would be.
    pub ignored: Option<i64>,
    /// One for each class.
    pub weights: Option<&'a [S]>,
    /// One for each label.
    pub log_sums: Option<&'a [f64]>,
}

impl<S: Stored<f64>> Labelled<'_, S> {
    /// Fills `losses` with that of each label, times the weight of its class; and `weights` with these, unless it is empty.
    pub fn losses(&self, losses: &mut [f64], weights: &mut [f64], resources: Resources<'_>) -> Result<(), Stopped> {
        /// Bytes that are read of a label, its score and its weight, for each of the loss: they are far from each other.
        const COST: usize = 4;
        let units = [size_of::<f64>(), if weights.is_empty() { 0 } else { size_of::<f64>() }];
        let outs = [cast_slice_mut(losses), cast_slice_mut(weights)];
        parallel::split_two(outs, units, COST, resources, |first, [losses, weights]| {
            let mut weights = cast_slice_mut::<u8, f64>(weights).iter_mut();
            for (k, loss) in cast_slice_mut::<u8, f64>(losses).iter_mut().enumerate() {
                let (value, weight) = self.of(first + k)?;
                *loss = value;
                weights.next().into_iter().for_each(|to| *to = weight);
            }
            Ok(())
        })
    }

    /// The loss of a label, and the weight of its class.
    #[inline(always)]
    fn of(&self, at: usize) -> Result<(f64, f64), Stopped> {
        let label = match self.labels {
            Indices::I32(labels) => labels.get(at).map(|label| i64::from(*label)),
            Indices::I64(labels) => labels.get(at).copied(),
        };
        let label = label.ok_or(Stopped::Misfit)?;
        if Some(label) == self.ignored {
            return Ok((0.0, 0.0));
        }
        let class = usize::try_from(label).ok().filter(|class| *class < self.classes).ok_or(Stopped::OutOfRange)?;
        let (sample, inside) = (at / self.inner, at % self.inner);
        let score = number(self.scores.get((sample * self.classes + class) * self.inner + inside));
        let weight = self.weights.map_or(1.0, |weights| number(weights.get(class)));
        let loss = match self.log_sums.and_then(|sums| sums.get(at)) {
            None => -score,
            // The softmax of infinity is NaN.
            Some(&f64::INFINITY) => f64::NAN,
            Some(log_sum) => log_sum - score,
        };
        Ok((loss * weight, weight))
    }
}

/// An element as a number.
#[inline(always)]
fn number<S: Stored<f64>>(element: Option<&S>) -> f64 {
    let mut number = f64::NAN;
    S::load(element.map_or(&[], slice::from_ref), slice::from_mut(&mut number));
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_threads;
    use half::f16;

    fn losses<S: Stored<f64>>(labelled: &Labelled<'_, S>, threads: usize) -> Result<[Vec<f64>; 2], Stopped> {
        let mut outs = [(); 2].map(|()| vec![f64::NAN; labelled.labels.len()]);
        let [losses, weights] = &mut outs;
        on_threads(threads, || labelled.losses(losses, weights, Resources { threads, stop: None }))?;
        Ok(outs)
    }

    #[test]
    fn of_each_label() {
        let scores = [1f32, 2.0, 2.0, 2.0, 3.0, 2.0, 0.0, 1.0, 2.0, 2.0, 1.0, 2.0];
        let (labels, weights) = (Indices::I64(&[2, 1, 0, 2]), [0.25, 0.5, 0.125]);
        let plain =
            Labelled { scores: &scores, classes: 3, inner: 2, labels, ignored: None, weights: None, log_sums: None };
        assert_eq!(losses(&plain, 1), Ok([vec![-3.0, -2.0, -0.0, -2.0], vec![1.0; 4]]));
        let weighted = Labelled { weights: Some(&weights), ..plain };
        assert_eq!(losses(&weighted, 1), Ok([vec![-0.375, -1.0, -0.0, -0.25], vec![0.125, 0.5, 0.25, 0.125]]));
        let less = [5.0, 5.0, f64::INFINITY, 5.0];
        let less =
            Labelled { labels: Indices::I32(&[2, -1, 0, 2]), ignored: Some(-1), log_sums: Some(&less), ..weighted };
        let [of_labels, weights] = losses(&less, 1).unwrap();
        assert_eq!((&of_labels[..2], of_labels[2].is_nan(), of_labels[3]), (&[0.25, 0.0][..], true, 0.375));
        assert_eq!(weights, [0.125, 0.0, 0.25, 0.125]);
    }

    #[test]
    fn labels_out_of_range() {
        for label in [-1, 3, i64::MIN, i64::MAX] {
            let (scores, labels) = (&[f16::ONE; 3][..], &[1, label][..]);
            let (labels, scores) = (Indices::I64(labels), [scores, scores].concat());
            let labelled = Labelled {
                scores: &scores,
                classes: 3,
                inner: 1,
                labels,
                ignored: Some(7),
                weights: None,
                log_sums: None,
            };
            assert_eq!(losses(&labelled, 1), Err(Stopped::OutOfRange));
            assert!(losses(&Labelled { ignored: Some(label), ..labelled }, 1).is_ok());
        }
    }

    #[test]
    fn on_any_number_of_threads() {
        let scores: Vec<f64> = (0..60_000).map(|k| f64::from(k % 997)).collect();
        let labels: Vec<i32> = (0..20_000).map(|k| k % 3).collect();
        let labels = Indices::I32(&labels);
        let labelled =
            Labelled { scores: &scores, classes: 3, inner: 5, labels, ignored: None, weights: None, log_sums: None };
        let want = losses(&labelled, 1).unwrap();
        assert_eq!((want[0][7], want[0][19_999]), (-scores[22], -scores[59_994]));
        assert_eq!(losses(&labelled, 3), Ok(want));
    }
}
