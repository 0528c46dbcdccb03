//! Pictures of other sizes, by a triangle filter.

use crate::image::room;
use kernels::pictures::{Fault, Pixel};

/// The pixels of a picture of `from` columns and rows, at another size. A pixel is the mean of those around its place, with
/// weights that fall from the place on; when a picture shrinks, over as many more pixels. Fails if there is no memory.
pub(crate) fn by_triangle(pixels: Vec<Pixel>, from: (usize, usize), to: (usize, usize)) -> Result<Vec<Pixel>, Fault> {
    if from == to {
        return Ok(pixels);
    }
    let across: Vec<Taps> = (0..to.0).map(|at| Taps::of(at, from.0, to.0)).collect();
    let mut resized = room(to.0 * to.1)?;
    for row in 0..to.1 {
        let down = Taps::of(row, from.1, to.1);
        let mut sums = vec![[0.0; 3]; from.0];
        for (row, weight) in pixels.chunks_exact(from.0.max(1)).skip(down.first).zip(&down.weights) {
            for (sum, pixel) in sums.iter_mut().zip(row) {
                *sum = add(*sum, pixel.map(f32::from), *weight);
            }
        }
        resized.extend(across.iter().map(|taps| {
            let near = sums.iter().skip(taps.first).zip(&taps.weights);
            let mean = near.fold([0.0; 3], |mean, (sum, weight)| add(mean, *sum, *weight));
            mean.map(|channel| channel.round() as u8)
        }));
    }
    Ok(resized)
}

fn add([a, b, c]: [f32; 3], [x, y, z]: [f32; 3], weight: f32) -> [f32; 3] {
    [a + x * weight, b + y * weight, c + z * weight]
}

/// The entries of a row or column, with weights, whose mean is an entry of the resized one.
struct Taps {
    first: usize,
    weights: Vec<f32>,
}

impl Taps {
    fn of(at: usize, from: usize, to: usize) -> Taps {
        let ratio = from as f32 / to as f32;
        let (center, reach) = ((at as f32 + 0.5) * ratio, ratio.max(1.0));
        let first = ((center - reach).floor().max(0.0) as usize).min(from.saturating_sub(1));
        let end = ((center + reach).ceil() as usize).clamp(first + 1, from.max(first + 1));
        let weight = |entry: usize| (1.0 - ((entry as f32 - (center - 0.5)) / reach).abs()).max(0.0);
        let mut weights: Vec<f32> = (first..end).map(weight).collect();
        let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Taps { first, weights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six columns, four rows.
    fn picture() -> Vec<Pixel> {
        let pixel = |x: u32, y: u32| [x * 41 + y * 5, 255 - y * 61 - x * 3, (x * y * 57 + 40) % 256];
        (0..24).map(|k| pixel(k % 6, k / 6).map(|channel| channel as u8)).collect()
    }

    /// The pixels of the crate `image` 0.25, by its filter `Triangle`.
    #[test]
    fn smaller_and_larger() {
        let resized = |width, height| by_triangle(picture(), (6, 4), (width, height)).unwrap();
        assert_eq!(resized(6, 4), picture());
        assert_eq!(resized(1, 1), [[110, 156, 98]]);
        assert_eq!(
            resized(3, 2),
            [[33, 209, 64], [106, 204, 96], [179, 199, 68], [41, 113, 102], [114, 108, 114], [187, 103, 144]]
        );
        assert_eq!(
            resized(2, 7).concat(),
            [
                51, 251, 40, 154, 244, 40, 53, 229, 65, 156, 222, 59, 56, 195, 106, 158, 187, 90, 59, 160, 99, 161,
                152, 121, 62, 125, 89, 164, 117, 147, 64, 90, 112, 167, 83, 141, 66, 68, 126, 169, 61, 137
            ]
        );
        assert_eq!(
            resized(9, 5)[18..27].concat(),
            [
                8, 164, 40, 28, 162, 83, 55, 160, 118, 83, 158, 90, 110, 156, 126, 137, 154, 161, 165, 152, 133, 192,
                150, 105, 213, 149, 84
            ]
        );
    }
}
