//! Support vectors: kernels of vectors, and the probabilities of classes that pairs of them give.

use super::{Resources, Stopped, pieces};
use crate::functions::{exp, pow, tanh};
use bytemuck::cast_slice_mut;

/// How alike two vectors are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Likeness {
    /// `x . y`
    Linear,
    /// `(gamma * x . y + coef0) ^ degree`
    Poly { gamma: f64, coef0: f64, degree: f64 },
    /// `exp(-gamma * |x - y|^2)`
    Rbf { gamma: f64 },
    /// `tanh(gamma * x . y + coef0)`
    Sigmoid { gamma: f64, coef0: f64 },
}

impl Likeness {
    /// Of two vectors of the same length.
    pub fn of(self, x: &[f64], y: &[f64]) -> f64 {
        let pairs = x.iter().zip(y);
        let dot = |pairs: std::iter::Zip<std::slice::Iter<'_, f64>, std::slice::Iter<'_, f64>>| {
            pairs.fold(0.0, |sum, (x, y)| sum + x * y)
        };
        match self {
            Likeness::Linear => dot(pairs),
            Likeness::Poly { gamma, coef0, degree } => pow(gamma * dot(pairs) + coef0, degree),
            Likeness::Rbf { gamma } => exp(-gamma * pairs.fold(0.0, |sum, (x, y)| sum + (x - y) * (x - y))),
            Likeness::Sigmoid { gamma, coef0 } => tanh(gamma * dot(pairs) + coef0),
        }
    }

    /// Writes the likeness of each row to each vector, both of `len` numbers.
    pub fn all(
        self,
        rows: &[f64],
        vectors: &[f64],
        len: usize,
        out: &mut [f64],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let count = vectors.len().checked_div(len).unwrap_or(0).max(1);
        let unit = count * size_of::<f64>();
        pieces(cast_slice_mut(out), size_of::<f64>(), unit, len.max(1), resources, |row, before, out| {
            let first = before / size_of::<f64>();
            let x = rows.get(row * len..(row + 1) * len).unwrap_or(&[]);
            let mut lookout = resources.lookout();
            for (k, out) in cast_slice_mut::<u8, f64>(out).iter_mut().enumerate() {
                lookout.after((len + 1) * size_of::<f64>())?;
                let at = (first + k) * len;
                *out = self.of(x, vectors.get(at..at + len).unwrap_or(&[]));
            }
            Ok(())
        })
    }
}

/// The probabilities of `classes` classes, where `pairs[i * classes + j]` is that of class i against class j: the method of
/// Wu, Lin and Weng, as libsvm has it.
pub fn coupled(pairs: &[f64], classes: usize, out: &mut [f64]) {
    let of = |i: usize, j: usize| pairs.get(i * classes + j).copied().unwrap_or(0.0);
    let q = |t: usize, j: usize| match t == j {
        true => (0..classes).filter(|i| *i != t).fold(0.0, |sum, i| sum + of(i, t) * of(i, t)),
        false => -of(j, t) * of(t, j),
    };
    let q: Vec<f64> = (0..classes * classes).map(|at| q(at / classes, at % classes)).collect();
    let q = |t: usize, j: usize| q.get(t * classes + j).copied().unwrap_or(0.0);
    let p = out;
    p.fill(1.0 / classes as f64);
    let mut qp = vec![0.0; classes];
    for _ in 0..classes.max(100) {
        for (t, qp) in qp.iter_mut().enumerate() {
            *qp = p.iter().enumerate().fold(0.0, |sum, (j, p)| sum + q(t, j) * p);
        }
        let mut pqp = p.iter().zip(&qp).fold(0.0, |sum, (p, qp)| sum + p * qp);
        if qp.iter().all(|qp| (qp - pqp).abs() < 0.005 / classes as f64) {
            break;
        }
        for t in 0..classes {
            let (own, diagonal) = (qp.get(t).copied().unwrap_or(0.0), q(t, t));
            let step = (pqp - own) / diagonal;
            if let Some(p) = p.get_mut(t) {
                *p += step;
            }
            pqp = (pqp + step * (step * diagonal + 2.0 * own)) / ((1.0 + step) * (1.0 + step));
            for (j, (qp, p)) in qp.iter_mut().zip(&mut *p).enumerate() {
                *qp = (*qp + step * q(t, j)) / (1.0 + step);
                *p /= 1.0 + step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_threads;

    #[test]
    fn likenesses() {
        let (x, y) = ([1.0, 2.0], [3.0, -0.5]);
        assert_eq!(Likeness::Linear.of(&x, &y), 2.0);
        assert_eq!(Likeness::Poly { gamma: 0.5, coef0: 2.0, degree: 3.0 }.of(&x, &y), 27.0);
        assert_eq!(Likeness::Rbf { gamma: 0.0 }.of(&x, &y), 1.0);
        assert!((Likeness::Rbf { gamma: 0.1 }.of(&x, &y) - (-1.025f64).exp()).abs() < 1e-15);
        assert!((Likeness::Sigmoid { gamma: 0.5, coef0: -0.5 }.of(&x, &y) - 0.5f64.tanh()).abs() < 1e-15);
    }

    #[test]
    fn rows_and_vectors() {
        let rows: Vec<f64> = (0..600).map(f64::from).collect();
        let vectors = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        let run = |threads: usize| {
            let mut out = vec![0.0; 900];
            let resources = Resources { threads, stop: None };
            on_threads(threads, || Likeness::Linear.all(&rows, &vectors, 2, &mut out, resources)).unwrap();
            out
        };
        assert_eq!(run(1)[..6], [0.0, 1.0, 1.0, 2.0, 3.0, 5.0]);
        assert_eq!(run(1), run(3));
    }

    /// Pairs that agree with probabilities give these.
    #[test]
    fn pairs_are_coupled() {
        let want: [f64; 3] = [0.5, 0.3, 0.2];
        let pairs: Vec<f64> = (0..9).map(|at| want[at / 3] / (want[at / 3] + want[at % 3])).collect();
        let mut got = [0.0; 3];
        coupled(&pairs, 3, &mut got);
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 0.005), "{got:?}");
        assert!((got.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
