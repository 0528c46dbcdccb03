//! Pools regions of images (RoiAlign, MaxRoiPool): each is divided into cells, and each cell becomes a number, computed in f64
//! and rounded once.

use super::lanes::Stored;
use super::lookout::Lookout;
use super::positions::Part;
use super::{Resources, Stopped, parallel, volume};
use smallvec::SmallVec;
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
    #[inline(always)]
    fn at(&self, cell: usize, sample: usize) -> f64 {
        self.start + cell as f64 * self.cell + (sample as f64 + 0.5) * self.cell / self.samples as f64
    }
}

/// An entry on either side of a place, and the weights of both.
#[inline(always)]
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
    let image = regions.image;
    match greatest {
        true => regions.each(data, most, out, resources, || Sampled::<_, true>::new(image, &sides)),
        false => regions.each(data, most, out, resources, || Sampled::<_, false>::new(image, &sides)),
    }
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
    regions.each(data, most, out, resources, || Parts { image: regions.image, cell: &cell, parts: SmallVec::new() })
}

/// What some cells of a region read: found once, for all channels.
trait Cells<S> {
    fn clear(&mut self);
    /// Adds a cell. Returns whether these are enough.
    fn add(&mut self, region: usize, cell: [usize; 2], lookout: &mut Lookout<'_>) -> Result<bool, Stopped>;
    /// Writes the numbers of a plane's cells, from one on.
    fn write(&self, plane: &[S], first: usize, out: &mut [S], lookout: &mut Lookout<'_>) -> Result<(), Stopped>;
}

/// The four entries around a sample, and their weights; none of the plane's if it is beyond.
#[derive(Debug, Clone, Copy)]
struct Sample {
    entries: [usize; 4],
    weights: [f64; 4],
}

impl Sample {
    const BEYOND: Sample = Sample { entries: [usize::MAX; 4], weights: [0.0; 4] };

    /// Adds what the sample is to those before.
    #[inline(always)]
    fn add<S: Stored<f64>, const GREATEST: bool>(&self, plane: &[S], total: Option<f64>) -> Option<f64> {
        let ([a, b, c, d], [i, j, k, l]) = (self.weights, self.entries);
        let (a, b) = (a * number(plane, i), b * number(plane, j));
        let (c, d) = (c * number(plane, k), d * number(plane, l));
        Some(match (GREATEST, total) {
            (false, total) => total.unwrap_or(0.0) + ((a + b) + (c + d)),
            (true, None) => larger(larger(a, b), larger(c, d)),
            (true, Some(total)) => larger(total, larger(larger(a, b), larger(c, d))),
        })
    }
}

/// Cells with samples, of which there is the mean or the greatest entry.
struct Sampled<'a, F, const GREATEST: bool> {
    image: [usize; 2],
    sides: &'a F,
    samples: Vec<Sample>,
    cells: SmallVec<[SampledCell; 16]>,
}

#[derive(Debug)]
struct SampledCell {
    sides: [Side; 2],
    at: [usize; 2],
    /// The end of its samples, if these are listed.
    end: Option<usize>,
    count: usize,
}

impl SampledCell {
    /// Calls `work` with each sample.
    #[inline(always)]
    fn each(
        &self,
        [height, width]: [usize; 2],
        lookout: &mut Lookout<'_>,
        mut work: impl FnMut(Sample),
    ) -> Result<(), Stopped> {
        let ([y, x], [row, column]) = (&self.sides, self.at);
        // Rows of samples may be many, and empty.
        for sample in 0..if x.samples == 0 { 0 } else { y.samples } {
            let line = around(y.at(row, sample), height);
            for sample in 0..x.samples {
                // A sample takes much longer than reading what it needs.
                lookout.after(16 * size_of::<f64>())?;
                work(match (line, around(x.at(column, sample), width)) {
                    (Some([(top, a), (bottom, b)]), Some([(left, c), (right, d)])) => Sample {
                        entries: [
                            top * width + left,
                            top * width + right,
                            bottom * width + left,
                            bottom * width + right,
                        ],
                        weights: [a * c, a * d, b * c, b * d],
                    },
                    _ => Sample::BEYOND,
                });
            }
        }
        Ok(())
    }
}

impl<'a, F, const GREATEST: bool> Sampled<'a, F, GREATEST> {
    fn new(image: [usize; 2], sides: &'a F) -> Self {
        Sampled { image, sides, samples: Vec::new(), cells: SmallVec::new() }
    }
}

impl<S: Stored<f64>, F: Fn(usize) -> [Side; 2], const GREATEST: bool> Cells<S> for Sampled<'_, F, GREATEST> {
    fn clear(&mut self) {
        self.samples.clear();
        self.cells.clear();
    }

    fn add(&mut self, region: usize, at: [usize; 2], lookout: &mut Lookout<'_>) -> Result<bool, Stopped> {
        /// Samples from which on there are enough: no cell's are listed that has more.
        const ENOUGH: usize = 256;
        let sides = (self.sides)(region);
        let count = sides.iter().fold(1, |count: usize, side| count.saturating_mul(side.samples));
        let mut cell = SampledCell { sides, at, end: None, count };
        if count <= ENOUGH {
            cell.each(self.image, lookout, |sample| self.samples.push(sample))?;
            cell.end = Some(self.samples.len());
        }
        self.cells.push(cell);
        Ok(count >= ENOUGH || self.samples.len() >= ENOUGH || self.cells.len() >= ENOUGH)
    }

    fn write(&self, plane: &[S], first: usize, out: &mut [S], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let end = |cell: &SampledCell| cell.end.unwrap_or(0);
        let mut start = first.checked_sub(1).and_then(|at| self.cells.get(at)).map_or(0, end);
        for (cell, out) in self.cells.iter().skip(first).zip(out) {
            let mut total = None;
            match cell.end {
                Some(end) => {
                    let samples = self.samples.get(start..end).unwrap_or(&[]);
                    lookout.after(size_of::<S>() + size_of_val(samples))?;
                    for sample in samples {
                        total = sample.add::<S, GREATEST>(plane, total);
                    }
                    start = end;
                }
                None => cell.each(self.image, lookout, |sample| total = sample.add::<S, GREATEST>(plane, total))?,
            }
            let total = total.unwrap_or(0.0);
            let number = if GREATEST { total } else { total / cell.count.max(1) as f64 };
            S::store(&[number], std::slice::from_mut(out));
        }
        Ok(())
    }
}

/// Cells of which there is the greatest entry: the lines of each, and the entries of these.
struct Parts<'a, F> {
    image: [usize; 2],
    cell: &'a F,
    parts: SmallVec<[[Range<usize>; 2]; 64]>,
}

impl<S: Stored<f64>, F: Fn(usize, [usize; 2]) -> [Range<usize>; 2]> Cells<S> for Parts<'_, F> {
    fn clear(&mut self) {
        self.parts.clear();
    }

    fn add(&mut self, region: usize, at: [usize; 2], lookout: &mut Lookout<'_>) -> Result<bool, Stopped> {
        let ([lines, entries], [height, width]) = ((self.cell)(region, at), self.image);
        let inside = |of: Range<usize>, size: usize| of.start.min(size)..of.end.min(size);
        self.parts.push([inside(lines, height), inside(entries, width)]);
        lookout.after(size_of::<[Range<usize>; 2]>())?;
        Ok(self.parts.len() == self.parts.inline_size())
    }

    fn write(&self, plane: &[S], first: usize, out: &mut [S], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let [_, width] = self.image;
        for ([lines, entries], out) in self.parts.iter().skip(first).zip(out) {
            let part = lines
                .clone()
                .map(|line| plane.get(line * width + entries.start..line * width + entries.end).unwrap_or(&[]));
            let number = if lines.is_empty() || entries.is_empty() { 0.0 } else { greatest_of(part, lookout)? };
            S::store(&[number], std::slice::from_mut(out));
        }
        Ok(())
    }
}

/// The greatest number of lines, the last of those that are equal; or the first NaN.
#[inline(always)]
fn greatest_of<'a, S: Stored<f64>>(
    lines: impl Iterator<Item = &'a [S]>,
    lookout: &mut Lookout<'_>,
) -> Result<f64, Stopped> {
    let mut greatest = f64::NEG_INFINITY;
    for line in lines {
        lookout.after(size_of_val(line))?;
        for entry in line {
            let number = number(std::slice::from_ref(entry), 0);
            if number.is_nan() {
                return Ok(number);
            }
            greatest = if greatest > number { greatest } else { number };
        }
    }
    Ok(greatest)
}

impl Regions<'_> {
    /// Writes what is made of each cell. Channels have cells in common.
    fn each<S: Stored<f64>, C: Cells<S>>(
        &self,
        data: &[S],
        cost: usize,
        out: &mut [S],
        resources: Resources<'_>,
        new: impl Fn() -> C + Sync,
    ) -> Result<(), Stopped> {
        let Regions { images, channels, image: [height, width], cells: [rows, columns] } = *self;
        let (size, of_plane, count) = (size_of::<S>(), height.saturating_mul(width), rows.saturating_mul(columns));
        let of_region = volume(size, &[channels, count]);
        parallel::pieces(bytemuck::cast_slice_mut(out), size, of_region, cost, resources, |region, before, out| {
            let out: &mut [S] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
            let (mut cells, mut lookout) = (new(), resources.lookout());
            let part = Part { start: before / size, len: out.len(), plane: count };
            let image = images.get(region).ok_or(Stopped::Misfit)? * channels;
            let mut places = part.places();
            while !places.is_empty() {
                let first = places.start;
                cells.clear();
                for at in places.by_ref() {
                    if cells.add(region, [at / columns, at % columns], &mut lookout)? {
                        break;
                    }
                }
                for (channel, skipped, own) in part.planes(first..places.start) {
                    let start = (image + channel) * of_plane;
                    let plane = data.get(start..start + of_plane).ok_or(Stopped::Misfit)?;
                    lookout.after(size)?;
                    cells.write(plane, skipped, out.get_mut(own).ok_or(Stopped::Misfit)?, &mut lookout)?;
                }
            }
            Ok(())
        })
    }
}

#[inline(always)]
fn number<S: Stored<f64>>(plane: &[S], at: usize) -> f64 {
    let mut number = [0.0];
    S::load(plane.get(at..).unwrap_or(&[]), &mut number);
    let [number] = number;
    number
}

/// The greater; NaN is.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;
    use crate::testing::{looks, on_threads, sized};

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

    /// Numbers with zeros of either sign, infinities and NaN.
    fn numbers(count: usize) -> Vec<f32> {
        let special = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let number = |k: usize| special.get(k * 31 % 47).copied().unwrap_or((k * 7919 % 103) as f32 - 51.0);
        (0..count).map(number).collect()
    }

    /// What channels have in common is as if each cell were by itself, in parts of any length.
    #[test]
    fn cells_one_by_one() {
        let (image, cells, channels) = ([6, 7], [3, sized(30, 5)], 3);
        let (data, images) = (numbers(2 * channels * 42), [1, 0, 1, 1]);
        let regions = Regions { images: &images, channels, image, cells };
        let count = cells[0] * cells[1];
        // Too many samples to be listed, none, and few.
        let samples = [[sized(20, 17), 17], [0, 3], [3, 1], [1, 2]];
        let sides = |region: usize| {
            let [y, x] = samples[region];
            let start = region as f64 - 1.7;
            [Side { start, cell: 2.1, samples: y }, Side { start, cell: 7.0 / cells[1] as f64, samples: x }]
        };
        let cell = |region: usize, [row, column]: [usize; 2]| {
            [row * 2..row * 2 + region, if column % 5 == 4 { 9..11 } else { column % 8..column % 8 + 3 }]
        };
        let of_plane = |number: usize| {
            let plane = images[number / channels] * channels + number % channels;
            (number / channels, &data[plane * 42..][..42])
        };
        let places = (0..4 * channels * count).map(|k| (k / count, [k % count / cells[1], k % cells[1]]));
        let sampled = |greatest: bool, (plane, at): (usize, [usize; 2])| {
            let (region, plane) = of_plane(plane);
            let ([y, x], mut all) = (sides(region), Vec::new());
            for (i, j) in (0..y.samples).flat_map(|i| (0..x.samples).map(move |j| (i, j))) {
                let mut corners = [0.0; 4];
                if let (Some(line), Some(entries)) = (around(y.at(at[0], i), 6), around(x.at(at[1], j), 7)) {
                    for k in 0..4 {
                        let (line, entry) = (line[k / 2], entries[k % 2]);
                        corners[k] = line.1 * entry.1 * f64::from(plane[line.0 * 7 + entry.0]);
                    }
                }
                all.push(corners);
            }
            let of_four = |[a, b, c, d]: [f64; 4]| larger(larger(a, b), larger(c, d));
            let total = all.iter().fold(0.0, |total, [a, b, c, d]| total + ((a + b) + (c + d)));
            let mean = total / all.len().max(1) as f64;
            (if greatest { all.into_iter().map(of_four).reduce(larger).unwrap_or(0.0) } else { mean }) as f32
        };
        let largest = |(plane, at): (usize, [usize; 2])| {
            let (region, plane) = of_plane(plane);
            let [lines, entries] = cell(region, at);
            let places =
                lines.filter(|line| *line < 6).flat_map(|line| entries.clone().map(move |entry| (line, entry)));
            let numbers =
                places.filter(|(_, entry)| *entry < 7).map(|(line, entry)| f64::from(plane[line * 7 + entry]));
            numbers.reduce(larger).unwrap_or(0.0) as f32
        };
        // All NaN are the same here.
        let bits =
            |numbers: &[f32]| numbers.iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>();
        for (threads, stop) in [(1, None), (1, Some(&Stop::default())), (3, None)] {
            let resources = Resources { threads, stop };
            let mut out = vec![0f32; 4 * channels * count];
            for greatest in [false, true] {
                on_threads(threads, || align(greatest, &data, regions, (sides, 340), &mut out, resources)).unwrap();
                let want: Vec<f32> = places.clone().map(|place| sampled(greatest, place)).collect();
                assert_eq!(bits(&out), bits(&want), "{greatest} {threads}");
            }
            on_threads(threads, || super::greatest(&data, regions, cell, &mut out, resources)).unwrap();
            assert_eq!(bits(&out), bits(&places.clone().map(largest).collect::<Vec<_>>()), "{threads}");
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
