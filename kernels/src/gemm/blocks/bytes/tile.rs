//! The innermost loops on bytes: neighbours in a row of the output stay in registers while the steps run, and become bytes
//! when they are stored.

#![allow(unsafe_code)] // pointers with offsets: `Tile` says what they must point to

use super::super::super::quads::Dot;
#[cfg(target_arch = "x86_64")]
use super::super::super::vectors::x86::{U32x8, U32x16, VnniU32x8};
use super::super::super::vectors::{Plain, Vector};
use super::super::CHANNELS;
use super::super::tile::each_place;
use super::filters::{Check, QUADS, SOME, Steps};
use super::lengths::{Image, Squares, squares};
use super::matrix::{MOST, Matrices};
#[cfg(target_arch = "x86_64")]
use super::matrix::{Rows, matrices};
use super::quantize::{Doubts, Numbers, Quantize, Row};
use super::settle::{Common, Open, Settle, settle};
use crate::cpu::fetch;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Places of the output that are neighbours in a row.
///
/// # Safety
/// To be computed for `R` places by vectors that hold `L` filters together, `offsets` and `weights` must be readable for
/// all steps (`L` weights each), the image for each place at `image + 16 * place + offset`: 4 bytes, or 16 if not all filters
/// of a block see the same. The image and its offsets are those of filters in the first half of a block, and of those in the
/// second one, which are read if these may differ ([`Seen::HALVES`]). `numbers` are those of `L` filters. `out` is writable by
/// this thread alone: `16 * R` bytes from each multiple of `out_block` on that `L` has blocks. `lengths` is null, or there is
/// one for each place, and there is room for a doubt of each vector there. The last check is at the end of the steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile<'a> {
    pub(super) image: [*const u8; 2],
    pub(super) offsets: [*const u32; 2],
    pub(super) weights: *const u32,
    pub(super) steps: usize,
    /// Weights that other tiles read next, at any address: each step fetches the line that is so many bytes further.
    pub(super) next: *const u8,
    pub(super) pace: usize,
    pub(super) numbers: Numbers,
    /// The zero point of the output.
    pub(super) zero: f32,
    pub(super) out: *mut u8,
    pub(super) out_block: usize,
    pub(super) checks: &'a [Check],
    pub(super) lengths: *const f32,
    /// Filters, and the number of the first place among those of doubts.
    pub(super) filters: usize,
    pub(super) first: usize,
    /// The number of the first place among those whose sums are stored together.
    pub(super) at: usize,
}

/// What a place of the image gives to the filters of a vector.
pub(super) trait Seen {
    /// Whether halves of a block see different channels.
    const HALVES: bool = false;
    /// Quads that follow each other wherever what a filter sees begins.
    const TOGETHER: usize = 1;

    /// # Safety
    /// See [`Tile`]. `lane` is the first filter of the vector.
    unsafe fn load<V: Quantize>(from: [*const u8; 2], lane: usize) -> V;

    /// What so many places give at an offset, each to a filter: as many quads as follow each other, or the channel that a place
    /// points to.
    ///
    /// # Safety
    /// There must be as many places as numbers, each with these bytes at the offset.
    #[inline(always)]
    unsafe fn quads<V: Quantize>(places: *const *const u8, offset: usize) -> [V; QUADS] {
        let mut seen = [[0; CHANNELS]; QUADS];
        // SAFETY: the caller's; no vector is longer.
        unsafe {
            for (at, quad) in (0..V::COUNT).flat_map(|at| (0..Self::TOGETHER).map(move |quad| (at, quad))) {
                let from = (*places.add(at)).add(offset + SOME * quad);
                *seen.get_unchecked_mut(quad).get_unchecked_mut(at) = from.cast::<u32>().read_unaligned();
            }
            seen.map(|numbers| V::load(numbers.as_ptr()))
        }
    }
}

/// Four channels for all filters.
pub(super) struct Four;

impl Seen for Four {
    const TOGETHER: usize = QUADS;

    #[inline(always)]
    unsafe fn load<V: Quantize>([from, _]: [*const u8; 2], _: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::splat(&from.cast::<u32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn quads<V: Quantize>(places: *const *const u8, offset: usize) -> [V; QUADS] {
        // SAFETY: the caller's.
        unsafe { V::four(places, offset) }
    }
}

/// Four channels for the filters of each half of a block.
pub(super) struct Halves;

impl Seen for Halves {
    const HALVES: bool = true;
    const TOGETHER: usize = QUADS / 2;

    #[inline(always)]
    unsafe fn load<V: Quantize>(from: [*const u8; 2], lane: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::of_halves(from, lane) }
    }
}

/// Four channels for the filters of each quarter of a block: those of all are side by side.
pub(super) struct Quarters;

impl Seen for Quarters {
    #[inline(always)]
    unsafe fn load<V: Quantize>([from, _]: [*const u8; 2], lane: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::of_quarters(from.add(lane)) }
    }
}

/// The channel of each filter.
pub(super) struct Own;

impl Seen for Own {
    #[inline(always)]
    unsafe fn load<V: Quantize>([from, _]: [*const u8; 2], lane: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::widen(from.add(lane)) }
    }
    #[inline(always)]
    unsafe fn quads<V: Quantize>(places: *const *const u8, offset: usize) -> [V; QUADS] {
        let mut seen = [0; CHANNELS];
        // SAFETY: the caller's; no vector is longer.
        unsafe {
            for (at, seen) in seen.iter_mut().enumerate().take(V::COUNT) {
                *seen = (*places.add(at)).add(offset).read().into();
            }
            [V::load(seen.as_ptr()), V::zero(), V::zero(), V::zero()]
        }
    }
}

/// The channel of each filter, whose weights are up to three numbers of int8.
pub(super) struct Thrice;

impl Seen for Thrice {
    #[inline(always)]
    unsafe fn load<V: Quantize>([from, _]: [*const u8; 2], lane: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::spread(from.add(lane)) }
    }
    #[inline(always)]
    unsafe fn quads<V: Quantize>(places: *const *const u8, offset: usize) -> [V; QUADS] {
        // SAFETY: the caller's.
        unsafe { Own::quads(places, offset) }
    }
}

/// The loops for one processor level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loops {
    /// Filters that are computed together, a multiple of the channels of a block.
    pub(super) filters: usize,
    /// For 1, 2, .. places.
    pub(super) sums: &'static [Sums],
    /// Places that are best computed together, at most, if there are looks at partial sums.
    checked: usize,
    /// Stores the bytes of so many places from the first one of a tile on, and the doubts about them.
    ///
    /// # Safety
    /// As for [`Sums`], which are there.
    pub(super) store: unsafe fn(&Tile<'_>, usize, &mut Room),
    /// Filters of a vector.
    pub(super) lanes: usize,
    /// Whether the bytes of steps are read that say whose weights are few.
    pub(super) prefers_few: bool,
    pub(super) squares: Squares,
    pub(super) settle: Settle,
    /// If the processor has matrices.
    pub(super) matrices: Option<Matrices>,
}

/// Adds the sums of a part of a tile, and the magnitudes that they have at some checks, of which the last is at its end, to
/// those of the parts before. The first part writes them.
///
/// # Safety
/// See [`Tile`]; the processor must have what the vectors need.
pub(super) type Sums = unsafe fn(&Tile<'_>, Range<usize>, Range<usize>, &mut Room);

/// Sums of the filters of a tile at each place, as often as there are `TIMES`.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Sum<const TIMES: usize>([[MaybeUninit<u32>; 2 * MOST * 2 * CHANNELS]; TIMES]);

impl<const TIMES: usize> Sum<TIMES> {
    fn new() -> Self {
        Sum([const { [const { MaybeUninit::uninit() }; _] }; TIMES])
    }
}

/// Memory for a tile.
#[derive(Debug)]
pub(super) struct Room {
    totals: Sum<1>,
    /// The magnitudes of partial sums.
    sizes: Sum<1>,
    /// Sums of matrices, at some checks.
    #[cfg(target_arch = "x86_64")]
    partial: Sum<{ Room::CHECKS }>,
    pub(super) doubts: Doubts,
}

/// Where sums are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pointers {
    pub(super) totals: *mut u32,
    pub(super) sizes: *mut u32,
    #[cfg(target_arch = "x86_64")]
    pub(super) partial: *mut u32,
}

impl Room {
    /// Checks at which sums of matrices are kept: half of those of a block.
    #[cfg(target_arch = "x86_64")]
    pub(super) const CHECKS: usize = 3;

    pub(super) fn new() -> Room {
        Room {
            totals: Sum::new(),
            sizes: Sum::new(),
            #[cfg(target_arch = "x86_64")]
            partial: Sum::new(),
            doubts: Doubts::new(),
        }
    }

    pub(super) fn pointers(&mut self) -> Pointers {
        Pointers {
            totals: self.totals.0.as_mut_ptr().cast(),
            sizes: self.sizes.0.as_mut_ptr().cast(),
            #[cfg(target_arch = "x86_64")]
            partial: self.partial.0.as_mut_ptr().cast(),
        }
    }
}

impl Loops {
    /// Places of a tile, at most.
    pub(super) fn most(&self, steps: &Steps) -> usize {
        if steps.checks.len() < 2 { self.sums.len() } else { self.checked }
    }

    /// Places of tiles whose sums are stored together, at most. Those of many steps are stored sooner: the nearest cache has
    /// better things to hold.
    pub(super) fn together(&self, steps: &Steps) -> usize {
        const FEW: usize = 64;
        const SUMS: usize = 14 * 2 * CHANNELS;
        let most = self.most(steps);
        if steps.count < FEW { most * (SUMS / (self.filters * most)).max(1) } else { most }
    }

    /// Sums a tile of so many places.
    ///
    /// # Safety
    /// See [`Tile`]; there must be loops for so many, and room from the first place on.
    pub(super) unsafe fn run(&self, places: usize, tile: &Tile<'_>, room: &mut Room) {
        let Some(sums) = self.sums.get(places - 1) else { return };
        // SAFETY: the caller's.
        unsafe {
            // At the only check, the sum is the whole one.
            if tile.checks.len() < 2 {
                sums(tile, 0..tile.steps, 0..0, room);
            } else {
                let (mut step, mut first) = (0, 0);
                for (check, Check { end, .. }) in tile.checks.iter().enumerate().filter(|(_, check)| check.last) {
                    sums(tile, step..*end, first..check + 1, room);
                    (step, first) = (*end, check + 1);
                }
            }
        }
    }
}

/// # Safety
/// See [`Sums`] and [`Vector`].
#[inline(always)]
unsafe fn sums<V: Quantize, S: Seen, const W: usize, const R: usize>(
    tile: &Tile<'_>,
    steps: Range<usize>,
    checks: Range<usize>,
    room: &mut Room,
) {
    let at = tile.at * W * V::COUNT;
    let Pointers { totals, sizes, .. } = room.pointers();
    let [totals, sizes] = [totals, sizes].map(|sum| sum.wrapping_add(at));
    // SAFETY: the caller's.
    unsafe {
        let (mut sums, mut own_sizes, mut step) = ([[V::zero(); W]; R], [[V::zero(); W]; R], steps.start);
        let are_few = tile.numbers.are_few(tile.checks.len());
        // Without checks, all steps follow each other.
        for check in checks.start..checks.end.max(checks.start + 1) {
            let is_checked = check < checks.end;
            let end = if is_checked { tile.checks.get_unchecked(check).end } else { steps.end };
            while step < end {
                fetch::<true, _>(tile.next.wrapping_add(step * tile.pace));
                let first = tile.image[0].add(*tile.offsets[0].add(step) as usize);
                let second = if S::HALVES { tile.image[1].add(*tile.offsets[1].add(step) as usize) } else { first };
                let image = [first, second];
                let mut weights = [V::zero(); W];
                for (at, weights) in weights.iter_mut().enumerate() {
                    *weights = V::load(tile.weights.add((step * W + at) * V::COUNT));
                }
                match if V::PREFERS_FEW { are_few.add(step).read() } else { 0 } {
                    0 => add::<V, S, W, R, 0>(image, weights, &mut sums),
                    1 => add::<V, S, W, R, 1>(image, weights, &mut sums),
                    2 => add::<V, S, W, R, 2>(image, weights, &mut sums),
                    _ => add::<V, S, W, R, 3>(image, weights, &mut sums),
                }
                step += 1;
            }
            if is_checked && const { W * R <= V::SIZES } {
                for (sums, own) in sums.iter().zip(&mut own_sizes) {
                    for (at, (sum, own)) in sums.iter().zip(own).enumerate() {
                        *own = own.add(sum.add(tile.numbers.less(check, at * V::COUNT)).sizes());
                    }
                }
            } else if is_checked {
                each_place!(sums, |place, sums| for (at, sum) in sums.iter().enumerate() {
                    let own = sum.add(tile.numbers.less(check, at * V::COUNT)).sizes();
                    let size = sizes.add((place * W + at) * V::COUNT);
                    // Read again from memory, or compilers keep sizes in registers that sums need: there are no others.
                    let all = if check == 0 { own } else { size.cast::<V>().read_volatile().add(own) };
                    all.store(size);
                });
            }
        }
        keep(&sums, totals, steps.start == 0);
        if !checks.is_empty() && const { W * R <= V::SIZES } {
            keep(&own_sizes, sizes, steps.start == 0);
        }
    }
}

/// Adds numbers of a part of the steps to those of the parts before, unless it is the first one.
///
/// # Safety
/// See [`Sums`] and [`Vector`]; there is room for the numbers.
#[inline(always)]
unsafe fn keep<V: Quantize, const W: usize, const R: usize>(own: &[[V; W]; R], to: *mut u32, is_first: bool) {
    for (at, own) in own.as_flattened().iter().enumerate() {
        // SAFETY: the caller's.
        unsafe {
            let to = to.add(at * V::COUNT);
            let all = if is_first { *own } else { V::load(to).add(*own) };
            all.store(to);
        }
    }
}

/// Adds the products of a step. The weights of a vector are few if it has a bit of `FEW`.
///
/// # Safety
/// See [`Sums`] and [`Vector`].
#[inline(always)]
unsafe fn add<V: Quantize, S: Seen, const W: usize, const R: usize, const FEW: u8>(
    image: [*const u8; 2],
    weights: [V; W],
    sums: &mut [[V; W]; R],
) {
    for (place, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's.
        unsafe {
            let image = image.map(|image| image.add(place * CHANNELS));
            for (at, (sum, weights)) in sums.iter_mut().zip(weights).enumerate() {
                let seen = S::load::<V>(image, at * V::COUNT);
                *sum = match FEW >> at & 1 {
                    0 => seen.dot(weights, *sum),
                    _ => seen.dot_of_few(weights, *sum),
                };
            }
        }
    }
}

/// Stores the bytes of a tile, and the doubts about them.
///
/// # Safety
/// See [`Loops`] and [`Vector`].
#[inline(always)]
pub(super) unsafe fn store<V: Quantize>(tile: &Tile<'_>, places: usize, room: &mut Room) {
    let Tile { numbers, zero, filters, lengths, .. } = *tile;
    let Pointers { totals, sizes, .. } = room.pointers();
    // SAFETY: the caller's.
    unsafe {
        // The numbers of a vector stay in registers.
        for lane in (0..filters).step_by(V::COUNT) {
            let [factor, addend, slope, climb, certain]: [V::Floats; 5] =
                [Row::Factor, Row::Addend, Row::Slope, Row::Climb, Row::Certain].map(|row| numbers.load(row, lane));
            let (bias, to) = (numbers.load::<V>(Row::Bias, lane), tile.out.add(lane / CHANNELS * tile.out_block));
            for place in 0..places {
                let number = place * filters + lane;
                let sum = V::load(totals.add(number)).add(bias).floats();
                let scaled = sum.mul_add(factor, addend);
                let apart = V::quantize(scaled, zero, to.add(place * CHANNELS + lane % CHANNELS));
                if !lengths.is_null() {
                    let path = match tile.checks.len() {
                        ..2 => V::magnitudes(sum),
                        _ => V::load(sizes.add(number)).unsigned_floats(),
                    };
                    let certain = V::Floats::splat(lengths.add(place)).mul_add(slope, certain);
                    let lanes = V::greater(apart, path.mul_add(climb, certain));
                    room.doubts.set(((tile.first + place) * filters + lane) / V::COUNT, lanes);
                }
            }
        }
    }
}

/// The loops for `$w` vectors and as many places as there are numbers.
macro_rules! loops_of {
    ($vector:ty, $level:ident, $seen:ty, $w:literal; $($places:literal)*) => {
        Loops {
            filters: $w * <$vector as Vector>::COUNT,
            sums: &[$($level::sums::<$seen, $w, $places>),*],
            checked: match <$vector as Quantize>::SIZES / $w {
                0 => [$($places),*].len(),
                most => most,
            },
            store: $level::store,
            lanes: <$vector as Vector>::COUNT,
            prefers_few: <$vector as Dot>::PREFERS_FEW,
            squares: $level::squares,
            settle: $level::settle::<$seen>,
            matrices: None,
        }
    };
}

/// The loops of a level, by a vector that needs some features of the processor.
macro_rules! level {
    ($(#[$features:meta])? $name:ident: $vector:ty) => {
        mod $name {
            use super::*;

            /// # Safety
            /// See [`Sums`]; these are the features of the vector.
            $(#[$features])?
            pub(super) unsafe fn sums<S: Seen, const W: usize, const R: usize>(
                tile: &Tile<'_>,
                steps: Range<usize>,
                checks: Range<usize>,
                room: &mut Room,
            ) {
                // SAFETY: the caller's.
                unsafe { super::sums::<$vector, S, W, R>(tile, steps, checks, room) }
            }

            /// # Safety
            /// As above.
            $(#[$features])?
            pub(super) unsafe fn store(tile: &Tile<'_>, places: usize, room: &mut Room) {
                // SAFETY: the caller's.
                unsafe { super::store::<$vector>(tile, places, room) }
            }

            /// # Safety
            /// See [`Squares`]; these are the features of the vector.
            $(#[$features])?
            pub(super) unsafe fn squares(of: &Image<'_>, first: usize, to: &mut [f32]) {
                // SAFETY: the caller's.
                unsafe { super::squares::<$vector>(of, first, to) }
            }

            /// # Safety
            /// See [`Settle`]; these are the features of the vector.
            $(#[$features])?
            pub(super) unsafe fn settle<S: Seen>(of: &Common<'_>, open: &[Open]) {
                // SAFETY: the caller's.
                unsafe { super::settle::<$vector, S>(of, open) }
            }
        }
    };
}

level!(plain: Eight);
#[cfg(target_arch = "x86_64")]
level!(#[target_feature(enable = "avx2,fma")] narrow: U32x8);
#[cfg(target_arch = "x86_64")]
level!(#[target_feature(enable = "avx2,fma,avxvnni")] narrow_vnni: VnniU32x8);
#[cfg(target_arch = "x86_64")]
level!(#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")] wide: U32x16);

/// # Safety
/// See [`Matrices`]; these are the features of the vector.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
unsafe fn with_tiles<const W: usize>(tile: &Tile<'_>, rows: &Rows<'_>, places: Range<usize>, room: &mut Room) {
    // SAFETY: the caller's.
    unsafe { matrices::<U32x16, W>(tile, rows, places, room) }
}

type Eight = Plain<u32, 8>;

/// The loops for this processor: of two blocks of filters if there are such loops and `two` is asked for, else of one.
pub(super) fn loops<S: Seen>(two: bool) -> Loops {
    #[cfg(target_arch = "x86_64")]
    match crate::cpu::level_of_bytes() {
        5.. => {
            let has_tiles = crate::cpu::has_tiles();
            return match two {
                true => Loops {
                    matrices: has_tiles.then_some(with_tiles::<2>),
                    ..loops_of!(U32x16, wide, S, 2; 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
                },
                false => Loops {
                    matrices: has_tiles.then_some(with_tiles::<1>),
                    ..loops_of!(U32x16, wide, S, 1; 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
                },
            };
        }
        4 => return loops_of!(VnniU32x8, narrow_vnni, S, 2; 1 2 3 4 5 6),
        3 => return loops_of!(U32x8, narrow, S, 2; 1 2 3 4),
        _ => {}
    }
    let _ = two;
    loops_of!(Eight, plain, S, 2; 1 2)
}
