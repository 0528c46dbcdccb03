//! Determinants of square matrices, by elimination with the greatest pivot of each column.

use super::cpu::for_each_level;
use super::{Resources, Stopped, parallel};

/// Eliminates what is below the diagonal of each matrix of `size` rows. The product of a diagonal is then the determinant,
/// but for the sign, which is in its first element.
pub fn eliminate(matrices: &mut [f64], size: usize, resources: Resources<'_>) -> Result<(), Stopped> {
    if matrices.is_empty() {
        return Ok(());
    }
    let count = size * size;
    let unit = count * size_of::<f64>();
    parallel::split_by(bytemuck::cast_slice_mut(matrices), unit, size, resources, |_, part| {
        let part: &mut [f64] = bytemuck::try_cast_slice_mut(part).map_err(|_| Stopped::Misfit)?;
        let mut lookout = resources.lookout();
        for matrix in part.chunks_exact_mut(count) {
            let mut negative = false;
            for column in 0..size {
                // A line of the cache for each row.
                lookout.after((size - column) * 64)?;
                let below = matrix.chunks_exact(size).enumerate().skip(column);
                let magnitude = |row: &[f64]| row.get(column).map_or(0.0, |value| value.abs());
                // The first of the greatest; NaN is greater than all.
                let pivot = below.fold((column, -1.0), |best, (at, row)| {
                    let own = magnitude(row);
                    if own > best.1 || own.is_nan() && !f64::is_nan(best.1) { (at, own) } else { best }
                });
                let (upper, lower) = matrix.split_at_mut((column + 1) * size);
                let Some(top) = upper.get_mut(column * size..) else { break };
                if let Some(other) = lower.get_mut((pivot.0 - column).wrapping_sub(1).saturating_mul(size)..)
                    && pivot.0 > column
                {
                    top.iter_mut().zip(other).for_each(|(a, b)| std::mem::swap(a, b));
                    negative = !negative;
                }
                let Some(divisor) = top.get(column).copied().filter(|divisor| *divisor != 0.0) else { continue };
                for row in lower.chunks_exact_mut(size) {
                    let by = row.get(column).map_or(0.0, |value| value / divisor);
                    subtract(top.get(column..).unwrap_or(&[]), by, row.get_mut(column..).unwrap_or(&mut []));
                    lookout.after((size - column) * size_of::<f64>())?;
                }
            }
            if negative {
                matrix.first_mut().into_iter().for_each(|first| *first = -*first);
            }
        }
        Ok(())
    })
}

for_each_level! {
    /// `row[k] -= by * top[k]`
    fn subtract<>(top: &[f64], by: f64, row: &mut [f64]) -> () = subtract_plainly;
}

#[inline(always)]
fn subtract_plainly(top: &[f64], by: f64, row: &mut [f64]) {
    for (value, top) in row.iter_mut().zip(top) {
        *value -= by * top;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::{at_each_level, looks, on_threads};

    fn determinant(matrix: &[f64], size: usize, resources: Resources<'_>) -> f64 {
        let mut room = matrix.to_vec();
        eliminate(&mut room, size, resources).unwrap();
        room.iter().step_by(size + 1).product()
    }

    #[test]
    fn small_ones() {
        let alone = Resources { threads: 1, stop: None };
        at_each_level(|| {
            assert_eq!(determinant(&[3.0], 1, alone), 3.0);
            assert_eq!(determinant(&[0.0, 2.0, 3.0, 4.0], 2, alone), -6.0);
            assert_eq!(determinant(&[1.0, 2.0, 2.0, 4.0], 2, alone), 0.0);
            assert_eq!(determinant(&[0.0, 0.0, 0.0, 4.0], 2, alone), 0.0);
            assert_eq!(determinant(&[0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 5.0, 0.0, 0.0], 3, alone), 30.0);
            assert_eq!(determinant(&[2.0, 0.0, 1.0, 1.0, 3.0, 2.0, 1.0, 1.0, 1.0], 3, alone).round(), 0.0);
            assert!(determinant(&[1.0, f64::NAN, 2.0, 1.0], 2, alone).is_nan());
        });
    }

    /// A triangle with ones on the diagonal, times another: any threads, and a stop within a matrix.
    #[test]
    fn large_ones() {
        let size = 60;
        let value =
            |row: usize, column: usize| (0..=row.min(column)).map(|k| f64::from(u8::from(k % 3 == 0))).sum::<f64>();
        let matrix: Vec<f64> =
            (0..size * size).map(|k| value(k / size, k % size) + f64::from(u8::from(k / size == k % size))).collect();
        let many = matrix.repeat(9);
        let run = |threads| {
            let mut room = many.clone();
            eliminate(&mut room, size, Resources { threads, stop: None }).unwrap();
            room
        };
        let alone = run(1);
        assert_eq!(alone, on_threads(3, || run(3)));
        assert_eq!(&alone[..size * size], &alone[size * size..2 * size * size]);
        let stop = Stop::default();
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let (outcome, looks) = looks::count(3, || eliminate(&mut matrix.repeat(2), size, resources));
        assert_eq!((outcome, looks.len()), (Err(Stopped::Cancelled), 3));
    }
}
