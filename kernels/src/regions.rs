//! Regions of images, each divided into cells of which a number is made. Computed in f64 and rounded once.

use super::lanes::Stored;
use super::lookout::Lookout;
use super::parallel;
use super::{Resources, Stopped};
use std::ops::Range;

/// Images `[n, channels, height, width]`, and what is made of regions of them: `[regions, channels, cells..]`.
#[derive(Debug, Clone, Copy)]
pub struct Regions<'a> {
    /// The image of each region: one of those there are.
    pub images: &'a [usize],
    pub channels: usize,
    /// Height and width.
    pub image: [usize; 2],
    /// Cells of a region, from top to bottom and from left to right.
    pub cells: [usize; 2],
}

/// The cells of a region along an axis.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    pub start: f64,
    /// The size of a cell, and its samples.
    pub cell: f64,
    pub samples: usize,
}

impl Side {
    /// The place of a sample in a cell.
    fn at(&self, cell: usize, sample: usize) -> f64 {
        self.start + cell as f64 * self.cell + (sample as f64 + 0.5) * self.cell / self.samples as f64
    }
}

/// An entry on either side of a place, and the weights of both.
fn around(place: f64, size: usize) -> Option<[(usize, f64); 2]> {
    if place < -1.0 || place > size as f64 {
        return None;
    }
    let (last, place) = (size.checked_sub(1)?, place.max(0.0));
    let low = place as usize;
    if low >= last {
        return Some([(last, 1.0), (last, 0.0)]);
    }
    let share = place - low as f64;
    Some([(low, 1.0 - share), (low + 1, share)])
}

/// Writes the mean of the samples in each cell, interpolated between the four entries around them; or the greatest of all
/// these entries, times their weights. `sides` gives those of a region, and `most` is the maximum
/// number of samples. One that is more than 1 beyond the image counts as 0.
pub fn align<S: Stored<f64>>(
    greatest: bool,
    data: &[S],
    regions: Regions<'_>,
    (sides, most): (impl Fn(usize) -> [Side; 2] + Sync, usize),
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    regions.each(data, most, out, resources, |region, plane, [row, column], lookout| {
        let [y, x] = sides(region);
        let ([height, width], mut total, mut first) = (regions.image, 0.0, true);
        // Rows of samples may be many, and empty.
        for sample in 0..if x.samples == 0 { 0 } else { y.samples } {
            let line = around(y.at(row, sample), height);
            for sample in 0..x.samples {
                // A sample takes much longer than reading what it needs.
                lookout.after(16 * size_of::<f64>())?;
                let mut corners = [0.0; 4];
                if let (Some(line), Some(entries)) = (line, around(x.at(column, sample), width)) {
                    let pairs = line.iter().flat_map(|line| entries.iter().map(move |entry| (line, entry)));
                    for (corner, (line, entry)) in corners.iter_mut().zip(pairs) {
                        *corner = line.1 * entry.1 * number(plane, line.0 * width + entry.0);
                    }
                }
                let [a, b, c, d] = corners;
                if greatest {
                    let value = larger(larger(a, b), larger(c, d));
                    total = if first { value } else { larger(total, value) };
                    first = false;
                } else {
                    total += (a + b) + (c + d);
                }
            }
        }
        let count = y.samples.saturating_mul(x.samples).max(1);
        Ok(if greatest { total } else { total / count as f64 })
    })
}

/// Writes the greatest entry in each cell, or 0 if there is none. `lines` gives the lines of a row of cells in a region, and
/// the entries of a column of cells.
pub fn greatest<S: Stored<f64>>(
    data: &[S],
    regions: Regions<'_>,
    cell: impl Fn(usize, [usize; 2]) -> [Range<usize>; 2] + Sync,
    out: &mut [S],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    let [height, width] = regions.image;
    let most = height.saturating_mul(width);
    regions.each(data, most, out, resources, |region, plane, at, lookout| {
        let [lines, entries] = cell(region, at);
        let mut greatest = None;
        for line in lines.start..lines.end.min(height) {
            for entry in entries.start..entries.end.min(width) {
                lookout.after(size_of::<f64>())?;
                let number = number(plane, line * width + entry);
                greatest = Some(greatest.map_or(number, |greatest| larger(greatest, number)));
            }
        }
        Ok(greatest.unwrap_or(0.0))
    })
}

impl Regions<'_> {
    /// Writes what `make` gives for each cell: of the number of the region, the plane of a channel, and the cell's row and
    /// column.
    fn each<S: Stored<f64>>(
        &self,
        data: &[S],
        cost: usize,
        out: &mut [S],
        resources: Resources<'_>,
        make: impl Fn(usize, &[S], [usize; 2], &mut Lookout<'_>) -> Result<f64, Stopped> + Sync,
    ) -> Result<(), Stopped> {
        let Regions { images, channels, image: [height, width], cells: [rows, columns] } = *self;
        let (size, of_plane) = (size_of::<S>(), height.saturating_mul(width));
        parallel::split_by(bytemuck::cast_slice_mut(out), size, cost, resources, |first, out| {
            let mut lookout = resources.lookout();
            for (k, out) in bytemuck::cast_slice_mut::<u8, S>(out).iter_mut().enumerate() {
                let number = first + k;
                let (cell, plane) = ([number / columns % rows, number % columns], number / columns / rows);
                let (region, channel) = (plane / channels, plane % channels);
                let start = (images.get(region).ok_or(Stopped::Misfit)? * channels + channel) * of_plane;
                let plane = data.get(start..start + of_plane).ok_or(Stopped::Misfit)?;
                lookout.after(size)?;
                S::store(&[make(region, plane, cell, &mut lookout)?], std::slice::from_mut(out));
            }
            Ok(())
        })
    }
}

fn number<S: Stored<f64>>(plane: &[S], at: usize) -> f64 {
    let mut number = [0.0];
    S::load(plane.get(at..).unwrap_or(&[]), &mut number);
    let [number] = number;
    number
}

/// The greater; NaN is.
fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::{looks, on_threads};

    /// The same on any number of threads: one region for each plane, twice.
    #[test]
    fn shared_among_threads() {
        let data: Vec<f32> = (0..3 * 4 * 8 * 9).map(|k| (k * 7919 % 101) as f32).collect();
        let images: Vec<usize> = (0..100).map(|k| k % 3).collect();
        let regions = Regions { images: &images, channels: 4, image: [8, 9], cells: [5, 3] };
        let side = |k: usize| Side { start: k as f64 / 30.0 - 1.0, cell: 1.3, samples: k % 3 + 1 };
        let run = |resources: Resources<'_>, greatest| {
            let mut out = vec![0f32; 100 * 4 * 15];
            align(greatest, &data, regions, (|k| [side(k), side(k + 1)], 9), &mut out, resources).unwrap();
            out
        };
        for greatest in [false, true] {
            let alone = run(Resources { threads: 1, stop: None }, greatest);
            assert_eq!(alone, on_threads(3, || run(Resources { threads: 3, stop: Some(&Stop::default()) }, greatest)));
        }
    }

    #[test]
    fn a_place_is_between_entries() {
        assert_eq!(around(1.25, 4), Some([(1, 0.75), (2, 0.25)]));
        assert_eq!(around(-1.0, 4), Some([(0, 1.0), (1, 0.0)]));
        assert_eq!(around(4.0, 4), Some([(3, 1.0), (3, 0.0)]));
        assert_eq!((around(-1.1, 4), around(4.1, 4), around(0.0, 0)), (None, None, None));
        assert_eq!(around(f64::NAN, 4), Some([(0, 1.0), (1, 0.0)]));
    }

    #[test]
    fn many_samples_can_be_stopped() {
        let (stop, side) = (Stop::default(), Side { start: 0.0, cell: 1.0, samples: 1 << 40 });
        let regions = Regions { images: &[0], channels: 1, image: [1, 1], cells: [1, 1] };
        let resources = Resources { threads: 1, stop: Some(&stop) };
        let run = || align(false, &[1f32], regions, (|_| [side; 2], 1 << 40), &mut [0.0], resources);
        assert_eq!(looks::count(5, run).0, Err(Stopped::Cancelled));
    }
}
