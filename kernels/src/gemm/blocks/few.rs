//! Convolutions by few filters, on planes: vectors hold neighbours in a row of the output, as filters would leave most of one
//! empty.

#![allow(unsafe_code)] // parts of one output are written by several threads, and tiles through pointers

use super::super::block::Out;
use super::super::epilogue::PART;
use super::super::place::{Extent, Place};
#[cfg(target_arch = "x86_64")]
use super::super::vectors::x86::{F32x8, F32x16};
use super::super::vectors::{Plain, Vector};
use super::super::{BLOCK, Batch, Step};
use super::READ;
use super::band::{Band, ELEMENTS, Grid, Source};
use crate::windows::Axis;
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;
use std::ops::Range;

/// Multiplications that are worth a thread that is ready, and waking one.
const WORTH: (usize, usize) = (1 << 17, 1 << 19);

/// Numbers of the sums of a tile, at most.
const SUMS: usize = Few::MOST * 8 * 16;

/// Images `[images, channels, slices, rows, columns]` and filters `[filters, channels, slices, rows, columns]`.
#[derive(Clone, Copy)]
pub struct Few<'a> {
    /// Slices, rows and columns.
    pub axes: &'a [Axis; 3],
    pub images: &'a [f32],
    pub channels: usize,
    pub filters: &'a [f32],
    /// The number of filters: at most [`Few::MOST`].
    pub count: usize,
    /// What becomes of sums, as in a product of so many rows for each image.
    pub epilogue: &'a [&'a dyn Step<f32>],
}

/// A convolution that is divided among threads.
pub struct FewPlan<'a> {
    few: Few<'a>,
    grid: Grid,
    loops: Loops,
    steps: usize,
    images: usize,
    threads: usize,
}

/// The places of a tile, and where its numbers are.
///
/// # Safety
/// The image must be readable at all offsets from `image` on, as many numbers as the loop has places; there are as many
/// weights for each of them as filters, and room for as many sums of each filter.
struct Tile<'a> {
    image: *const f32,
    offsets: &'a [u32],
    weights: *const f32,
    sums: *mut f32,
    /// Whether there are no sums yet.
    first: bool,
}

/// # Safety
/// See [`Tile`]; the processor must have what the vectors need.
type Sums = unsafe fn(&Tile<'_>);

/// The loops for one processor level, for 1, 2, 4 and 8 vectors of places, as far as there are.
#[derive(Clone, Copy)]
struct Loops {
    /// Places of a vector.
    lanes: usize,
    sums: &'static [Sums],
}

impl Loops {
    /// Places of the longest tile.
    fn most(&self) -> usize {
        self.lanes << (self.sums.len() - 1)
    }

    /// The longest tile that leaves no vector empty of so many places: its loop and its places.
    fn of(&self, places: usize) -> Option<(Sums, usize)> {
        let at = places.div_ceil(self.lanes).max(1).ilog2() as usize;
        let at = at.min(self.sums.len() - 1);
        Some((*self.sums.get(at)?, self.lanes << at))
    }
}

impl<'a> Few<'a> {
    /// Filters that are few, at most.
    pub const MOST: usize = 3;

    /// Divides the work on so many images among threads.
    pub fn plan(self, images: usize, resources: Resources<'_>) -> Result<FewPlan<'a>, Stopped> {
        let steps = self.axes.iter().map(|axis| axis.kernel).fold(self.channels, usize::saturating_mul);
        let positions = self.axes.iter().map(|axis| axis.output).fold(1, usize::saturating_mul);
        let work = [positions.saturating_add(READ), self.count, images].into_iter().fold(steps, usize::saturating_mul);
        let threads = parallel::threads(work, WORTH.0, WORTH.1, resources);
        let loops = match self.count {
            1 => loops::<1>(),
            2 => loops::<2>(),
            3 => loops::<3>(),
            _ => return Err(Stopped::Misfit),
        };
        let grid = Grid::of(self.axes, self.channels, &Source::Planes(self.images), ELEMENTS, threads, threads);
        // Tiles read beyond the last place.
        let grid = grid.ok_or(Stopped::Misfit)?.copied();
        Ok(FewPlan { few: self, grid, loops, steps, images, threads })
    }
}

impl FewPlan<'_> {
    /// Elements of what each thread sees.
    fn room(&self) -> usize {
        self.grid.room().saturating_add(self.loops.most())
    }

    /// Elements of scratch memory.
    pub fn scratch(&self) -> usize {
        let tables = self.steps.saturating_mul(1 + self.few.count);
        tables.saturating_add(self.room().saturating_mul(self.threads))
    }

    /// Writes `[images, filters, slices, rows, columns]`.
    pub fn run(&self, out: &mut [f32], scratch: &mut [f32], resources: Resources<'_>) -> Result<(), Stopped> {
        let FewPlan { few, grid, steps, images, .. } = self;
        let positions = few.axes.iter().map(|axis| axis.output).fold(1, usize::saturating_mul);
        let batch = [Batch { size: *images, a: 0, b: 0 }, Batch { size: 1, a: 0, b: 0 }];
        let output = Extent { m: few.count, n: positions, batch: &batch };
        let fits = out.len() == [*images, few.count].into_iter().fold(positions, usize::saturating_mul)
            && few.images.len() == images.saturating_mul(grid.image())
            && few.filters.len() == few.count.saturating_mul(*steps)
            && (out.is_empty() || few.epilogue.iter().all(|step| step.fits(&output)))
            && scratch.len() >= self.scratch();
        if !fits {
            return Err(Stopped::Misfit);
        }
        if out.is_empty() {
            return Ok(());
        }
        let (offsets, rest) = scratch.split_at_mut(*steps);
        let (weights, rooms) = rest.split_at_mut(steps * few.count);
        let (offsets, mut lookout): (&mut [u32], _) = (cast_slice_mut(offsets), resources.lookout());
        grid.offsets(1, offsets, &mut lookout)?;
        lookout.after(size_of_val(weights))?;
        for (filter, row) in few.filters.chunks_exact((*steps).max(1)).enumerate() {
            let to = weights.iter_mut().skip(filter).step_by(few.count);
            to.zip(row).for_each(|(to, weight)| *to = *weight);
        }
        let (offsets, weights, bands, to) = (&*offsets, &*weights, grid.bands(), Out::of(out));
        let rooms = rooms.chunks_exact_mut(self.room()).take(self.threads).collect();
        parallel::tasks(images * bands, rooms, resources.stop, |room: &mut &mut [f32], at| {
            let (image, band, mut lookout) = (at / bands, grid.band(at % bands), resources.lookout());
            band.fill(&Source::Planes(few.images), image, 0.0, room, &mut lookout)?;
            for row in band.parts(1).flatten() {
                let [start, end] = [band.columns.start, band.columns.end]
                    .map(|column| image * few.count * positions + band.number(row, column));
                self.row(&band, row, (room, offsets, weights), (to, start), &mut lookout)?;
                for filter in 0..few.count {
                    let first = start + filter * positions;
                    // SAFETY: neighbours in the output, which are this task's, and initialised by now.
                    let sums = unsafe { std::slice::from_raw_parts_mut(to.at(first), end - start) };
                    for (part, sums) in sums.chunks_mut(PART).enumerate() {
                        let column = band.number(row, band.columns.start) + part * PART;
                        let place = Place { matrix: image, row: filter, column, down: false, batch: &batch };
                        few.epilogue.iter().for_each(|step| step.apply(&place, sums));
                    }
                }
            }
            Ok(())
        })
    }

    /// Writes the sums of all filters at the places of a row, of which the first filter's begin somewhere in the output.
    fn row(
        &self,
        band: &Band<'_>,
        row: usize,
        (seen, offsets, weights): (&[f32], &[u32], &[f32]),
        (out, start): (Out<f32>, usize),
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let FewPlan { few, loops, steps, .. } = self;
        let positions = few.axes.iter().map(|axis| axis.output).product::<usize>();
        lookout.after(steps * few.count * band.columns.len())?;
        let (Range { start: mut column, end }, mut room) = (band.columns.clone(), [0f32; SUMS]);
        while column < end {
            let (sums, places) = loops.of(end - column).ok_or(Stopped::Misfit)?;
            for first in (0..*steps).step_by(BLOCK) {
                let last = (first + BLOCK).min(*steps);
                // SAFETY: offsets are those of the band, from whose places on they are in what is seen, and there is room for the
                // longest tile behind that; weights are those of the steps.
                unsafe {
                    sums(&Tile {
                        image: seen.as_ptr().add(band.place(row, column)),
                        offsets: offsets.get_unchecked(first..last),
                        weights: weights.as_ptr().add(first * few.count),
                        sums: room.as_mut_ptr(),
                        first: first == 0,
                    });
                }
            }
            let count = places.min(end - column);
            for (filter, sums) in room.chunks_exact(places).take(few.count).enumerate() {
                let to = start + column - band.columns.start + filter * positions;
                // SAFETY: the places of the output are this task's. Memory may hold anything.
                unsafe { std::ptr::copy_nonoverlapping(sums.as_ptr(), out.at(to), count) };
            }
            column += count;
        }
        Ok(())
    }
}

/// # Safety
/// See [`Sums`] and [`Vector`].
#[inline(always)]
unsafe fn sums<V: Vector<Of = f32>, const M: usize, const R: usize>(tile: &Tile<'_>) {
    const { assert!(M * R * V::COUNT <= SUMS, "a tile has room") };
    // SAFETY: the caller's.
    unsafe {
        let (mut sums, mut weights) = ([[V::zero(); R]; M], tile.weights);
        for offset in tile.offsets {
            let image = tile.image.add(*offset as usize);
            let mut seen = [V::zero(); R];
            for (at, seen) in seen.iter_mut().enumerate() {
                *seen = V::load(image.add(at * V::COUNT));
            }
            for sums in &mut sums {
                let weight = V::splat(weights);
                weights = weights.add(1);
                for (sum, seen) in sums.iter_mut().zip(seen) {
                    *sum = weight.mul_add(seen, *sum);
                }
            }
        }
        for (at, sum) in sums.as_flattened().iter().enumerate() {
            let to = tile.sums.add(at * V::COUNT);
            if tile.first { sum.store(to) } else { V::load(to).add(*sum).store(to) }
        }
    }
}

/// The loops of `M` filters for this processor.
fn loops<const M: usize>() -> Loops {
    /// The loops of a function `$of::<M, R>`: with more filters, fewer vectors stay in registers.
    macro_rules! loops_of {
        ($vector:ty, $of:ident) => {
            Loops {
                lanes: <$vector as Vector>::COUNT,
                sums: match M {
                    1 => &[$of::<M, 1>, $of::<M, 2>, $of::<M, 4>, $of::<M, 8>],
                    _ => &[$of::<M, 1>, $of::<M, 2>, $of::<M, 4>],
                },
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    match crate::cpu::level() {
        4.. => {
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
            unsafe fn wide<const M: usize, const R: usize>(tile: &Tile<'_>) {
                // SAFETY: the caller's; these are the features of the vector.
                unsafe { sums::<F32x16, M, R>(tile) }
            }
            return loops_of!(F32x16, wide);
        }
        3 => {
            #[target_feature(enable = "avx2,fma")]
            unsafe fn narrow<const M: usize, const R: usize>(tile: &Tile<'_>) {
                // SAFETY: as above.
                unsafe { sums::<F32x8, M, R>(tile) }
            }
            return loops_of!(F32x8, narrow);
        }
        _ => {}
    }
    type Four = Plain<f32, 4>;
    /// # Safety
    /// See [`Sums`].
    unsafe fn plain<const M: usize, const R: usize>(tile: &Tile<'_>) {
        // SAFETY: the caller's.
        unsafe { sums::<Four, M, R>(tile) }
    }
    loops_of!(Four, plain)
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::samples;
    use super::super::super::{Broadcast, Left, Product, Right, Scaled, Strides, View, Windows};
    use super::super::tests::axis;
    use super::*;
    use crate::testing::{at_each_level, on_threads, sized};

    /// The bits of a product, with a bias and a function.
    fn check(axes: [Axis; 3], images: usize, channels: usize, count: usize) {
        let all = |of: fn(&Axis) -> usize| axes.iter().map(of).product::<usize>();
        let (k, n, size) = (channels * all(|axis| axis.kernel), all(|axis| axis.output), all(|axis| axis.input));
        let (mut pixels, mut filters) = (samples::<f32>(images * channels * size, 1), samples::<f32>(count * k, 2));
        // What is no number shows whether padding is read.
        if let ([first, ..], [.., last]) = (&mut *pixels, &mut *filters) {
            (*first, *last) = (f32::INFINITY, f32::NEG_INFINITY);
        }
        let bias = samples::<f32>(count, 3);
        let by_filter = Strides { row: 1, column: 0, batch: &[0, 0] };
        let addend = Scaled { alpha: 1.0, beta: 1.0, c: Some(Broadcast { elements: &bias[..], strides: by_filter }) };
        let residual = samples::<f32>(images * count * n, 4);
        let strides = Strides { row: n, column: 1, batch: &[count * n, 0] };
        let residual = Scaled { alpha: 1.0, beta: 1.0, c: Some(Broadcast { elements: &residual[..], strides }) };
        let epilogue: &[&dyn Step<f32>] = &[&addend, &residual];
        let batch = [Batch { size: images, a: 0, b: channels * size }, Batch { size: 1, a: 0, b: 0 }];
        let (a, b) = (Left::View(View::rows(&filters, k)), Right::Windows(Windows::new(&pixels, channels, &axes, 0.0)));
        let product = Product::<f32> { m: count, k, n, a, b, batch: &batch, epilogue };
        let mut want = vec![0f32; images * count * n];
        super::super::super::tests::run(product, &mut want).unwrap();
        let bits =
            |numbers: &[f32]| numbers.iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>();
        at_each_level(|| {
            for threads in [1, 3] {
                let resources = Resources { threads, stop: None };
                let few = Few { axes: &axes, images: &pixels, channels, filters: &filters, count, epilogue };
                let plan = few.plan(images, resources).unwrap();
                let mut out = vec![1f32; want.len()];
                plan.run(&mut out, &mut vec![f32::NAN; plan.scratch()], resources).unwrap();
                assert!(bits(&out) == bits(&want), "{axes:?}, {channels} to {count}, {threads}");
            }
        });
    }

    #[test]
    fn few_filters_as_products() {
        let one = axis(1, 1, 1, 1, [0; 2]);
        on_threads(3, || {
            for count in (1..=Few::MOST).take(sized(Few::MOST, 1)) {
                // Rows of fewer and of more places than a tile, with strides, dilations, and padding on either side.
                check([one, one, axis(sized(700, 40), 7, 1, 1, [3, 3])], 2, 5, count);
                check([one, axis(9, 3, 1, 1, [1, 1]), axis(sized(45, 9), 3, 1, 1, [1, 1])], 2, 3, count);
                check([one, axis(9, 3, 2, 1, [0, 2]), axis(13, 2, 3, 2, [4, 0])], 1, 4, count);
                check([axis(4, 2, 1, 1, [1, 0]), axis(5, 3, 1, 2, [2, 2]), axis(19, 3, 2, 1, [1, 1])], 1, 2, count);
                // No padding, and windows of single places.
                check([one, axis(6, 2, 1, 1, [0; 2]), axis(30, 2, 1, 1, [0; 2])], 1, 3, count);
                check([one, axis(6, 1, 1, 1, [0; 2]), axis(30, 1, 1, 1, [0; 2])], 1, 3, count);
                // More steps than a block of a sum has.
                check([one, axis(7, 3, 1, 1, [1, 1]), axis(20, 3, 1, 1, [1, 1])], 1, sized(100, 45), count);
            }
            check([one, one, axis(0, 2, 1, 1, [3, 2])], 1, 2, 1);
            check([one, one, axis(30, 2, 1, 1, [0; 2])], 0, 2, 2);
            // Several bands, which threads share.
            check([one, axis(sized(90, 5), 3, 1, 1, [1, 1]), axis(sized(500, 9), 3, 1, 1, [1, 1])], 1, sized(8, 2), 2);
        });
    }

    #[test]
    fn what_is_not_few() {
        let axes = [axis(1, 1, 1, 1, [0; 2]), axis(3, 1, 1, 1, [0; 2]), axis(4, 2, 1, 1, [0; 2])];
        let (images, filters, resources) = (&[1f32; 12], &[1f32; 2], Resources { threads: 1, stop: None });
        let few = Few { axes: &axes, images, channels: 1, filters, count: 1, epilogue: &[] };
        let run = |few: Few<'_>, len: usize| {
            let plan = few.plan(1, resources)?;
            plan.run(&mut vec![0.0; len], &mut vec![0.0; plan.scratch()], resources)
        };
        assert_eq!(run(few, 9), Ok(()));
        assert_eq!(run(few, 8), Err(Stopped::Misfit));
        assert_eq!(run(Few { count: Few::MOST + 1, ..few }, 9), Err(Stopped::Misfit));
        assert_eq!(run(Few { filters: &[1.0], ..few }, 9), Err(Stopped::Misfit));
        assert_eq!(run(Few { images: &[1.0], ..few }, 9), Err(Stopped::Misfit));
    }
}
