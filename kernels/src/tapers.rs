//! Tapers (HannWindow and its kin), which weigh the samples of a frame: polynomials in `sin^2(pi k / len)`.

use crate::{Resources, Stopped, functions, parallel};
use bytemuck::cast_slice_mut;

/// Numbers that are computed at a time.
const BLOCK: usize = 64;
/// Bytes that are written in the time of a byte of the result.
const COST: usize = 16;

/// Writes `a + b q + c q^2` with `q = sin^2(pi k / len)` for each `k`, which is at most `len`. It is symmetric, and exact where
/// the sine is 0 or 1. Without a length all is NaN.
pub fn taper([a, b, c]: [f64; 3], len: usize, out: &mut [f64], resources: Resources<'_>) -> Result<(), Stopped> {
    let unit = BLOCK * size_of::<f64>();
    parallel::split_by(cast_slice_mut(out), unit, COST, resources, |first, out| {
        let out: &mut [f64] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        if len == 0 {
            out.fill(f64::NAN);
            return Ok(());
        }
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let (mut at, mut turns) = ([0; BLOCK], [[0.0; 2]; BLOCK]);
            for (k, at) in at.iter_mut().enumerate().take(out.len()) {
                *at = ((first + block) * BLOCK + k) as u64;
            }
            functions::turns(&at, 2 * len as u64, &mut turns);
            for (to, [_, sine]) in out.iter_mut().zip(turns) {
                let q = sine * sine;
                *to = a + q * (b + q * c);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::{looks, on_threads};
    use std::f64::consts::PI;

    #[test]
    fn symmetric_and_exact() {
        let alone = Resources { threads: 1, stop: None };
        for len in [1, 2, 4, 7, 100, 999] {
            for weights in [[0.0, 1.0, 0.0], [2.0 / 23.0, 21.0 / 23.0, 0.0], [0.0, 0.36, 0.64]] {
                let mut out = vec![0.0; len + 1];
                taper(weights, len, &mut out, alone).unwrap();
                assert_eq!(out[0], weights[0]);
                let mut others = vec![0.0; len + 1];
                on_threads(2, || taper(weights, len, &mut others, Resources { threads: 2, stop: None })).unwrap();
                assert_eq!(out, others);
                for (k, value) in out.iter().enumerate() {
                    assert_eq!(*value, out[len - k]);
                    let q = (PI * k as f64 / len as f64).sin().powi(2);
                    let plain = weights[0] + weights[1] * q + weights[2] * q * q;
                    assert!((value - plain).abs() < 1e-15, "{k} of {len}: {value} instead of {plain}");
                }
                if len % 2 == 0 {
                    assert_eq!(out[len / 2], 1.0);
                }
            }
        }
        let mut out = [0.0];
        taper([0.0, 1.0, 0.0], 0, &mut out, alone).unwrap();
        assert!(out[0].is_nan());
    }

    #[test]
    fn asks() {
        let stop = Stop::default();
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let mut out = vec![0.0; 1 << 16];
        let (_, looks) = looks::count(usize::MAX, || taper([1.0, 0.0, 0.0], 1 << 16, &mut out, resources));
        assert!(looks.len() >= 32, "{}", looks.len());
    }
}
