//! Bands of the mel scale: triangles over the bins of a spectrum.

use crate::functions::{exp, log};
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;

/// Writes the bins of `edges.len()` frequencies at equal distances in mel, from the lowest one on; the highest would be one
/// more step away. A bin is `floor(frequency * bins_per_hertz.0 / bins_per_hertz.1)`.
///
/// As `mel(f) = 2595 log10(1 + f / 700)`, equal distances in mel are equal quotients of `1 + f / 700`.
pub fn mel_edges(
    [lowest, highest]: [f64; 2],
    (times, over): (f64, f64),
    edges: &mut [f64],
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let [low, high] = [lowest, highest].map(|frequency| log(1.0 + frequency / 700.0));
    let step = (high - low) / edges.len() as f64;
    for (k, edge) in edges.iter_mut().enumerate() {
        lookout.after(16 * size_of::<f64>())?;
        // The lowest frequency itself: a rounded one may be in the bin below.
        let frequency = if k == 0 { lowest } else { 700.0 * (exp(low + k as f64 * step) - 1.0) };
        *edge = (times * frequency / over).floor();
    }
    Ok(())
}

/// Writes the weights of bins in bands, a row for each bin. Band `b` rises from `edges[b]` to 1 at `edges[b + 1]`, and falls
/// to `edges[b + 2]`.
pub fn triangles(edges: &[f64], out: &mut [f64], resources: Resources<'_>) -> Result<(), Stopped> {
    let bands = edges.len().saturating_sub(2);
    if out.is_empty() {
        return Ok(());
    }
    parallel::split_by(cast_slice_mut(out), size_of::<f64>(), 2, resources, |first, out| {
        let out: &mut [f64] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let (mut row, mut band) = (first / bands, first % bands);
        for to in out {
            *to = match edges.get(band..band + 3) {
                Some([low, center, high]) => weight(row as f64, *low, *center, *high),
                _ => return Err(Stopped::Misfit),
            };
            band += 1;
            if band == bands {
                (row, band) = (row + 1, 0);
            }
        }
        Ok(())
    })
}

fn weight(bin: f64, low: f64, center: f64, high: f64) -> f64 {
    if bin == center {
        1.0
    } else if low < bin && bin < center {
        (bin - low) / (center - low)
    } else if center < bin && bin < high {
        (high - bin) / (high - center)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::{looks, on_threads};

    #[test]
    fn edges_and_triangles() {
        let alone = Resources { threads: 1, stop: None };
        let mut edges = [0.0; 4];
        // 1 + f / 700 is 1, 2, 4, 8.
        mel_edges([0.0, 700.0 * 15.0], (1.0, 699.9), &mut edges, &mut alone.lookout()).unwrap();
        assert_eq!(edges, [0.0, 1.0, 3.0, 7.0]);
        let mut out = [0.0; 18];
        triangles(&edges, &mut out, alone).unwrap();
        let columns = [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.0, 0.75], [0.0, 0.5], [0.0, 0.25]];
        assert_eq!(out[..14], *columns.as_flattened());
        assert_eq!(out[14..], [0.0; 4]);
        // A band without a width has its one bin; one that ends where it begins to fall has no fall.
        let mut out = [0.0; 8];
        triangles(&[2.0, 2.0, 2.0, 3.0], &mut out, alone).unwrap();
        assert_eq!(out, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn threads_and_stops() {
        let edges: Vec<f64> = (0..103).map(f64::from).collect();
        let run = |threads| {
            let mut out = vec![f64::NAN; 101 * 1000];
            triangles(&edges, &mut out, Resources { threads, stop: None }).unwrap();
            out
        };
        assert_eq!(run(1), on_threads(3, || run(3)));
        let stop = Stop::default();
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let (outcome, _) = looks::count(2, || triangles(&edges, &mut vec![0.0; 101 * 1000], resources));
        assert_eq!(outcome, Err(Stopped::Cancelled));
        let (outcome, _) =
            looks::count(2, || mel_edges([0.0, 1.0], (1.0, 1.0), &mut vec![0.0; 10_000], &mut resources.lookout()));
        assert_eq!(outcome, Err(Stopped::Cancelled));
    }
}
