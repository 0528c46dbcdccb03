//! Turns scores into probabilities, by one of the transforms of classical machine learning.

use crate::cpu::for_each_level;
use crate::functions::{exp, exp_in_place};
use crate::{Resources, Stopped};

/// What is done to the scores of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    None,
    /// `exp(x) / sum of exp`
    Softmax,
    /// `1 / (1 + exp(-x))`
    Logistic,
    /// Softmax, but scores of 0 stay 0, and don't count in the sum. Those within 1e-7 of 0 are multiplied by the common
    /// factor instead.
    SoftmaxZero,
    /// The quantile of the normal distribution at `x`; NaN outside of 0 to 1.
    Probit,
}

impl Transform {
    /// Transforms the scores of examples, `count` each.
    pub fn apply(self, scores: &mut [f64], count: usize, resources: Resources<'_>) -> Result<(), Stopped> {
        /// Scores that are transformed together, so that they stay in a near cache.
        const TOGETHER: usize = 1 << 10;
        let (count, mut lookout) = (count.max(1), resources.lookout());
        for some in scores.chunks_mut((TOGETHER / count).max(1) * count) {
            lookout.after(size_of_val(some))?;
            match self {
                Transform::None => {}
                Transform::Softmax => softmax(some, count),
                Transform::Logistic => logistic(some),
                Transform::SoftmaxZero => some.chunks_mut(count).for_each(softmax_zero),
                Transform::Probit => some.iter_mut().for_each(|score| *score = quantile(*score)),
            }
        }
        Ok(())
    }
}

fn greatest(scores: &[f64]) -> f64 {
    scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn softmax(scores: &mut [f64], count: usize) {
    for scores in scores.chunks_mut(count) {
        let greatest = greatest(scores);
        scores.iter_mut().for_each(|score| *score -= greatest);
    }
    exp_in_place(scores);
    for scores in scores.chunks_mut(count) {
        let sum = scores.iter().fold(0.0, |sum, score| sum + score);
        scores.iter_mut().for_each(|score| *score /= sum);
    }
}

fn logistic(scores: &mut [f64]) {
    scores.iter_mut().for_each(|score| *score = -*score);
    exp_in_place(scores);
    scores.iter_mut().for_each(|score| *score = 1.0 / (1.0 + *score));
}

for_each_level! {
    fn softmax_zero<>(scores: &mut [f64]) -> () = softmax_zero_body;
}

#[inline(always)]
fn softmax_zero_body(scores: &mut [f64]) {
    let greatest = greatest(scores);
    let (factor, mut sum) = (exp(-greatest), 0.0);
    for score in &mut *scores {
        *score = if score.abs() <= 1e-7 { *score * factor } else { exp(*score - greatest) };
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}

/// The quantile of the standard normal distribution: Acklam's rational functions, within 1.2e-9 of it.
fn quantile(p: f64) -> f64 {
    const CENTER: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const CENTER_BELOW: [f64; 6] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
        1.0,
    ];
    const TAIL: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const TAIL_BELOW: [f64; 5] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    /// Where the tails begin.
    const LOW: f64 = 0.02425;

    let of = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient);
    let tail = |p: f64| {
        let q = (-2.0 * crate::functions::log(p)).sqrt();
        of(&TAIL, q) / of(&TAIL_BELOW, q)
    };
    match p {
        0.0 => f64::NEG_INFINITY,
        1.0 => f64::INFINITY,
        _ if !(0.0..=1.0).contains(&p) => f64::NAN,
        _ if p < LOW => tail(p),
        _ if p > 1.0 - LOW => -tail(1.0 - p),
        _ => {
            let q = p - 0.5;
            q * of(&CENTER, q * q) / of(&CENTER_BELOW, q * q)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transformed<const N: usize>(transform: Transform, mut scores: [f64; N]) -> [f64; N] {
        transform.apply(&mut scores, N, Resources { threads: 1, stop: None }).unwrap();
        scores
    }

    fn near(got: &[f64], want: &[f64], within: f64) {
        let fits = |(got, want): (&f64, &f64)| (got - want).abs() <= within * want.abs().max(1e-300) || got == want;
        assert!(got.len() == want.len() && got.iter().zip(want).all(fits), "{got:?} {want:?}");
    }

    #[test]
    fn probabilities() {
        near(&transformed(Transform::Logistic, [0.0, 2.0, -800.0]), &[0.5, 0.880797077977882, 0.0], 1e-14);
        near(&transformed(Transform::Softmax, [1000.0, 1001.0]), &[0.268941421369995, 0.731058578630005], 1e-14);
        near(
            &transformed(Transform::SoftmaxZero, [1.0, 0.0, 2.0]),
            &[0.268941421369995, 0.0, 0.731058578630005],
            1e-14,
        );
        near(&transformed(Transform::None, [1.5]), &[1.5], 0.0);
    }

    /// As if the scores were transformed one by one, whatever others are beside them.
    #[test]
    fn many_examples() {
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-8, 800.0, -740.0];
        let plain = |transform: Transform, scores: &mut [f64]| {
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            for score in &mut *scores {
                *score = match transform {
                    Transform::Logistic => 1.0 / (1.0 + exp(-*score)),
                    Transform::SoftmaxZero if score.abs() <= 1e-7 => *score * exp(-most),
                    _ => exp(*score - most),
                };
                sum += *score;
            }
            if transform != Transform::Logistic {
                scores.iter_mut().for_each(|score| *score /= sum);
            }
        };
        let bits = |scores: &[f64]| -> Vec<u64> {
            scores.iter().map(|x| if x.is_nan() { f64::NAN } else { *x }.to_bits()).collect()
        };
        for count in [1, 3, 10, 1500].map(|count| crate::testing::sized(count, count.min(10))) {
            let number = |k: usize| if k % 97 == 5 { special[k / 97 % 7] } else { (k * k % 1009) as f64 / 50.0 - 9.0 };
            let scores: Vec<f64> = (0..crate::testing::sized(3000, 300) / count * count).map(number).collect();
            for transform in [Transform::Softmax, Transform::Logistic, Transform::SoftmaxZero] {
                let mut want = scores.clone();
                want.chunks_mut(count).for_each(|scores| plain(transform, scores));
                crate::testing::at_each_level(|| {
                    let mut got = scores.clone();
                    transform.apply(&mut got, count, Resources { threads: 1, stop: None }).unwrap();
                    assert_eq!(bits(&got), bits(&want), "{transform:?} of {count}");
                });
            }
        }
    }

    /// Quantiles as Python's `statistics.NormalDist().inv_cdf` has them.
    #[test]
    fn quantiles() {
        let p = [0.001, 0.02, 0.1, 0.275, 0.5, 0.9, 0.99999];
        let want = [
            -3.090232306167813,
            -2.053748910631823,
            -1.281551565544601,
            -0.597760126042478,
            0.0,
            1.281551565544601,
            4.264890793922602,
        ];
        near(&p.map(quantile), &want, 1.2e-9);
        assert_eq!([0.0, 1.0].map(quantile), [f64::NEG_INFINITY, f64::INFINITY]);
        assert!([-0.1, 1.1, f64::NAN].map(quantile).iter().all(|x| x.is_nan()));
    }
}
