//! Support vector machines: how alike two vectors are, and the probabilities of classes from those of pairs of classes.

use super::cpu::for_each_level;
use super::{Lookout, Resources, Stopped, pieces};
use crate::functions::{exp_in_place, pow, tanh_in_place};
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
    /// Writes the likeness of each row to each of `count` vectors. A row has `len` numbers, and `columns` the same numbers of
    /// the vectors: the first ones of all vectors, then the second ones.
    pub fn all(
        self,
        rows: &[f64],
        columns: &[f64],
        len: usize,
        count: usize,
        out: &mut [f64],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        /// Vectors whose sums stay in the nearest cache.
        const TOGETHER: usize = 512;
        let unit = count.max(1) * size_of::<f64>();
        pieces(cast_slice_mut(out), size_of::<f64>(), unit, len.max(1), resources, |row, before, out| {
            let x = rows.get(row * len..(row + 1) * len).unwrap_or(&[]);
            let mut lookout = resources.lookout();
            for (k, out) in cast_slice_mut::<u8, f64>(out).chunks_mut(TOGETHER).enumerate() {
                lookout.after((len + 1) * size_of_val(out))?;
                some(self, x, columns, count, before / size_of::<f64>() + k * TOGETHER, out);
            }
            Ok(())
        })
    }
}

for_each_level! {
    /// The likeness of `x` to some vectors, from number `first` on.
    fn some<>(likeness: Likeness, x: &[f64], columns: &[f64], count: usize, first: usize, out: &mut [f64]) -> () = some_body;
}

#[inline(always)]
fn some_body(likeness: Likeness, x: &[f64], columns: &[f64], count: usize, first: usize, out: &mut [f64]) {
    out.fill(0.0);
    let is_distance = matches!(likeness, Likeness::Rbf { .. });
    for (x, column) in x.iter().zip(columns.chunks_exact(count.max(1))) {
        let column = column.get(first..).unwrap_or(&[]);
        if is_distance {
            for (sum, y) in out.iter_mut().zip(column) {
                *sum += (x - y) * (x - y);
            }
        } else {
            for (sum, y) in out.iter_mut().zip(column) {
                *sum += x * y;
            }
        }
    }
    match likeness {
        Likeness::Linear => {}
        Likeness::Poly { gamma, coef0, degree } => {
            for sum in out {
                *sum = pow(gamma * *sum + coef0, degree);
            }
        }
        Likeness::Rbf { gamma } => {
            for sum in &mut *out {
                *sum *= -gamma;
            }
            exp_in_place(out);
        }
        Likeness::Sigmoid { gamma, coef0 } => {
            for sum in &mut *out {
                *sum = gamma * *sum + coef0;
            }
            tanh_in_place(out);
        }
    }
}

/// The rounds after which the probabilities of some classes are taken as they are.
fn rounds(classes: usize) -> usize {
    classes.max(100)
}

/// The steps that [`coupled`] takes at most.
pub fn coupling_steps(classes: usize) -> usize {
    let round = classes.saturating_mul(classes).saturating_mul(2);
    round.saturating_mul(rounds(classes))
}

/// The probabilities of classes, where `pairs[i * classes + j]` is that of class i against class j: the method of Wu, Lin and
/// Weng, as libsvm has it. All are NaN if that of a pair is. `q` has room for as many numbers as `pairs`, and `qp` as `out`.
pub fn coupled(
    pairs: &[f64],
    q: &mut [f64],
    qp: &mut [f64],
    out: &mut [f64],
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let (classes, row) = (out.len(), size_of_val(out));
    let of = |i: usize, j: usize| pairs.get(i * classes + j).copied().unwrap_or(0.0);
    for (t, q) in q.chunks_exact_mut(classes.max(1)).enumerate() {
        lookout.after(2 * row)?;
        for (j, q) in q.iter_mut().enumerate() {
            *q = match t == j {
                true => (0..classes).filter(|i| *i != t).fold(0.0, |sum, i| sum + of(i, t) * of(i, t)),
                false => -of(j, t) * of(t, j),
            };
        }
    }
    let q = |t: usize, j: usize| q.get(t * classes + j).copied().unwrap_or(0.0);
    let p = out;
    p.fill(1.0 / classes as f64);
    for _ in 0..rounds(classes) {
        for (t, qp) in qp.iter_mut().enumerate() {
            lookout.after(row)?;
            *qp = p.iter().enumerate().fold(0.0, |sum, (j, p)| sum + q(t, j) * p);
        }
        let mut pqp = p.iter().zip(&*qp).fold(0.0, |sum, (p, qp)| sum + p * qp);
        if pqp.is_nan() {
            p.fill(f64::NAN);
            break;
        }
        if qp.iter().all(|qp| (qp - pqp).abs() < 0.005 / classes as f64) {
            break;
        }
        for t in 0..classes {
            lookout.after(row)?;
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::functions::{exp, tanh};
    use crate::testing::{looks, on_threads};

    const KINDS: [Likeness; 4] = [
        Likeness::Linear,
        Likeness::Poly { gamma: 0.5, coef0: 2.0, degree: 3.0 },
        Likeness::Rbf { gamma: 0.1 },
        Likeness::Sigmoid { gamma: 0.5, coef0: -0.5 },
    ];

    /// That of two vectors.
    fn of(likeness: Likeness, x: &[f64], y: &[f64]) -> f64 {
        let pairs = x.iter().zip(y);
        let dot = pairs.clone().fold(0.0, |sum, (x, y)| sum + x * y);
        match likeness {
            Likeness::Linear => dot,
            Likeness::Poly { gamma, coef0, degree } => pow(gamma * dot + coef0, degree),
            Likeness::Rbf { gamma } => exp(-gamma * pairs.fold(0.0, |sum, (x, y)| sum + (x - y) * (x - y))),
            Likeness::Sigmoid { gamma, coef0 } => tanh(gamma * dot + coef0),
        }
    }

    #[test]
    fn likenesses() {
        let (x, y) = ([1.0, 2.0], [3.0, -0.5]);
        let got = KINDS.map(|kind| of(kind, &x, &y));
        let want = [2.0, 27.0, (-1.025f64).exp(), 0.5f64.tanh()];
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-15), "{got:?}");
    }

    #[test]
    fn rows_and_vectors() {
        for (count, len, rows) in [(3, 2, 300), (1, 5, 7), (70, 1, 9), (4, 0, 2), (1100, 3, 2)] {
            let rows = crate::testing::sized(rows, rows.min(3));
            let number = |k: usize| if k % 41 == 7 { f64::INFINITY } else { (k * k % 101) as f64 / 25.0 - 2.0 };
            let x: Vec<f64> = (0..rows * len).map(number).collect();
            let y: Vec<f64> = (0..count * len).map(|k| number(k + 5)).collect();
            let columns: Vec<f64> = (0..count * len).map(|k| y[k % count * len + k / count]).collect();
            let part = |of: &[f64], k: usize| of[k * len..(k + 1) * len].to_vec();
            for kind in KINDS {
                let want: Vec<f64> =
                    (0..rows * count).map(|k| of(kind, &part(&x, k / count), &part(&y, k % count))).collect();
                crate::testing::at_each_level(|| {
                    for threads in [1, 3] {
                        let (mut got, resources) = (vec![-1.0; rows * count], Resources { threads, stop: None });
                        on_threads(threads, || kind.all(&x, &columns, len, count, &mut got, resources)).unwrap();
                        let same = |(got, want): (&f64, &f64)| {
                            got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan()
                        };
                        assert!(got.iter().zip(&want).all(same), "{kind:?} {count} {len}");
                    }
                });
            }
        }
    }

    /// The probabilities of as many classes, and how often that asked whether to stop.
    fn coupled_of<const N: usize>(pairs: &[f64]) -> ([f64; N], usize) {
        let (mut q, mut qp, mut out, stop) = (vec![-1.0; N * N], vec![-1.0; N], [-1.0; N], Stop::default());
        let mut lookout = Lookout::new(Some(&stop));
        let (done, times) = looks::count(usize::MAX, || coupled(pairs, &mut q, &mut qp, &mut out, &mut lookout));
        done.unwrap();
        (out, times.len())
    }

    /// Pairs that agree with probabilities give these.
    #[test]
    fn pairs_are_coupled() {
        let want: [f64; 3] = [0.5, 0.3, 0.2];
        let pairs: Vec<f64> = (0..9).map(|at| want[at / 3] / (want[at / 3] + want[at % 3])).collect();
        let (got, _) = coupled_of::<3>(&pairs);
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 0.005), "{got:?}");
        assert!((got.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// It ends at NaN, and asks as often as it reads 128 KiB: here 200 rows of 1600 bytes twice for the start, and once for
    /// half of a round.
    #[test]
    fn pairs_of_nan() {
        const COUNT: usize = 200;
        let mut pairs = vec![0.5; COUNT * COUNT];
        let (got, looked) = coupled_of::<COUNT>(&pairs);
        assert!(got.iter().all(|p| (p - 1.0 / COUNT as f64).abs() < 1e-9), "{got:?}");
        assert_eq!(looked, 7);
        pairs[COUNT + 5] = f64::NAN;
        let (got, looked) = coupled_of::<COUNT>(&pairs);
        assert!(got.iter().all(|p| p.is_nan()), "{got:?}");
        assert_eq!(looked, 7);
        assert_eq!(coupling_steps(COUNT), 2 * COUNT * COUNT * COUNT);
        assert_eq!(coupling_steps(3), 1800);
    }
}
