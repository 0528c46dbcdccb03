//! Sums that become bytes, and which of these are in doubt.

#![allow(unsafe_code)] // loads and stores through pointers: the callers in `tile.rs` and `settle.rs` vouch for them

use super::super::super::quads::Dot;
use super::super::super::vectors::{Plain, Vector};
use super::super::groups::HALF;
use super::of_half;
use crate::quantize::{Precision, placed};

/// Numbers of filters, stored behind their weights: rows of numbers, `apart` from each other.
///
/// `sum + bias` is the sum without zero points; times `factor` and plus `addend`, it is rounded to an integer. Floats certainly
/// give the same integer if the number is within `certain + length * slope + path * climb` of it: a half, less what floats may
/// be off. The path is the sum of the magnitudes of partial sums. Floats have scales of weights, and a bias. Then
/// there is a row for each check: what partial sums are less for their zero points. The last rows have a byte for each step,
/// with a bit for each vector of filters: whether all its weights are [`few`](super::super::super::quads::few).
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) first: *const u32,
    pub(super) apart: usize,
}

/// What a row has: the first one is of integers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Row {
    Bias,
    Factor,
    Addend,
    Slope,
    Climb,
    Certain,
    Scale,
    FloatBias,
}

/// Rows before those of checks.
pub(super) const ROWS: usize = 8;

impl Numbers {
    /// A vector of a row, for filters from a number on.
    ///
    /// # Safety
    /// There must be so many.
    #[inline(always)]
    pub(super) unsafe fn load<V: Vector>(self, row: Row, filter: usize) -> V {
        // SAFETY: the caller's; numbers of all rows are of four bytes.
        unsafe { V::load(self.first.add(row as usize * self.apart + filter).cast()) }
    }

    /// A vector of the row of a check.
    ///
    /// # Safety
    /// As above; there must be the check.
    #[inline(always)]
    pub(super) unsafe fn less<V: Vector<Of = u32>>(self, check: usize, filter: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::load(self.first.add((ROWS + check) * self.apart + filter)) }
    }

    /// The bytes of steps, behind the rows of so many checks.
    #[inline(always)]
    pub(super) fn are_few(self, checks: usize) -> *const u8 {
        self.first.wrapping_add((ROWS + checks) * self.apart).cast()
    }
}

/// The byte of a scaled number, with the zero point of the output: as [`rounded`](crate::quantize::rounded), which knows
/// NaN too. There is none.
#[inline(always)]
pub(super) fn byte(scaled: f32, zero: f32) -> u8 {
    f32::byte(placed(scaled, zero, 0.0, MOST))
}

const MOST: f32 = 255.0;

/// Filters of a quarter of a block.
const QUARTER: usize = HALF / 2;

/// The highest bit of each byte.
const SIGNS: u32 = 0x8080_8080;

/// Places that are finished together: as many bytes as there are [floats](super::super::band::PLACES). No row is longer.
pub(super) const PLACES: usize = 4 * super::super::band::PLACES;

/// What bytes of a part are in doubt: those of floats may be others. Of each vector of filters at each place, in this order,
/// the lanes.
#[derive(Debug)]
pub(super) struct Doubts([[u16; Doubts::ABREAST]; 2 * PLACES / Doubts::ABREAST]);

impl Doubts {
    /// Vectors that are looked at together: few have a doubt.
    const ABREAST: usize = (u64::BITS / u16::BITS) as usize;

    pub(super) fn new() -> Doubts {
        Doubts([[0; Doubts::ABREAST]; _])
    }

    /// Those of a vector.
    #[inline(always)]
    pub(super) fn set(&mut self, vector: usize, lanes: u16) {
        if let Some(to) = self.0.as_flattened_mut().get_mut(vector) {
            *to = lanes;
        }
    }

    /// The vectors, of so many, and their lanes that are in doubt. They are forgotten.
    pub(super) fn take(&mut self, vectors: usize) -> impl Iterator<Item = [usize; 2]> {
        let some = self.0.iter_mut().take(vectors.div_ceil(Doubts::ABREAST)).enumerate();
        some.filter(|(_, some)| **some != [0; Doubts::ABREAST]).flat_map(|(first, some)| {
            let some = std::mem::take(some).into_iter().rev();
            let mut rest = some.fold(0, |rest, lanes| rest << u16::BITS | u64::from(lanes));
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.checked_sub(1)?;
                Some([first * Doubts::ABREAST + (bit / u16::BITS) as usize, (bit % u16::BITS) as usize])
            })
        })
    }
}

/// Sums that become bytes.
///
/// # Safety
/// See [`Dot`].
pub(super) trait Quantize: Dot {
    /// As many numbers.
    type Floats: Vector<Of = f32>;

    /// Vectors of sums, at most, whose magnitudes stay in registers beside them.
    const SIZES: usize = 0;

    /// The integers, which have signs, as floats.
    unsafe fn floats(self) -> Self::Floats;
    /// As above, without signs.
    unsafe fn unsigned_floats(self) -> Self::Floats;
    /// Writes the bytes of scaled numbers. Returns how far these were from integers: not at all beyond the least or the
    /// greatest byte.
    unsafe fn quantize(scaled: Self::Floats, zero: f32, to: *mut u8) -> Self::Floats;
    /// The lanes where numbers are greater.
    unsafe fn greater(numbers: Self::Floats, than: Self::Floats) -> u16;
    /// The magnitudes of integers with signs.
    unsafe fn sizes(self) -> Self;
    /// Those of floats.
    unsafe fn magnitudes(of: Self::Floats) -> Self::Floats;
    /// What the halves of a block see: each a number. `lane` is the first filter of the vector.
    unsafe fn of_halves(from: [*const u8; 2], lane: usize) -> Self;
    /// What the quarters of a block see, four filters each: numbers that follow each other.
    unsafe fn of_quarters(from: *const u8) -> Self;
    /// Four numbers from each of `COUNT` places on, plus an offset: the first ones, the second ones and so on.
    unsafe fn four(places: *const *const u8, offset: usize) -> [Self; 4];
    /// The numbers, of two vectors that follow each other, that have the numbers of `which`.
    unsafe fn pick(from: *const u32, which: Self) -> Self;
    /// The bits of another where those of `of_other` are set.
    unsafe fn choose(self, other: Self, of_other: Self) -> Self;
    /// The bytes less 128, with signs.
    unsafe fn flip(self) -> Self;
    /// One of the four bytes of each number, with its sign.
    unsafe fn byte(self, at: usize) -> Self;
    /// As above, without a sign.
    unsafe fn unsigned(self, at: usize) -> Self;
}

// SAFETY, of all blocks: the caller's; arrays have the alignment of their elements.
impl<const N: usize> Quantize for Plain<u32, N> {
    type Floats = Plain<f32, N>;

    #[inline(always)]
    unsafe fn floats(self) -> Plain<f32, N> {
        Plain(self.0.map(|number| number as i32 as f32))
    }
    #[inline(always)]
    unsafe fn unsigned_floats(self) -> Plain<f32, N> {
        Plain(self.0.map(|number| number as f32))
    }
    #[inline(always)]
    unsafe fn quantize(scaled: Plain<f32, N>, zero: f32, to: *mut u8) -> Plain<f32, N> {
        let within = scaled.0.map(|scaled| scaled.clamp(-zero, MOST - zero));
        unsafe { to.cast::<[u8; N]>().write(within.map(|within| byte(within, zero))) }
        Plain(within.map(|within| (within - within.round_ties_even()).abs()))
    }
    #[inline(always)]
    unsafe fn greater(numbers: Plain<f32, N>, than: Plain<f32, N>) -> u16 {
        let lanes = numbers.0.iter().zip(&than.0).enumerate();
        lanes.fold(0, |all, (lane, (number, than))| all | u16::from(number > than) << lane)
    }
    #[inline(always)]
    unsafe fn sizes(self) -> Self {
        Plain(self.0.map(|number| (number as i32).unsigned_abs()))
    }
    #[inline(always)]
    unsafe fn magnitudes(of: Plain<f32, N>) -> Plain<f32, N> {
        Plain(of.0.map(f32::abs))
    }
    #[inline(always)]
    unsafe fn of_halves(from: [*const u8; 2], lane: usize) -> Self {
        let half = |at: usize| of_half(from, lane + at >= HALF).cast::<u32>();
        Plain(std::array::from_fn(|at| unsafe { half(at).read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn of_quarters(from: *const u8) -> Self {
        let from = from.cast::<u32>();
        Plain(std::array::from_fn(|at| unsafe { from.add(at / QUARTER).read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn four(places: *const *const u8, offset: usize) -> [Self; 4] {
        let mut four = [[0; N]; 4];
        for place in 0..N {
            let own = unsafe { (*places.add(place)).add(offset).cast::<[u32; 4]>().read_unaligned() };
            for (to, own) in four.iter_mut().zip(&own) {
                to.get_mut(place).into_iter().for_each(|to| *to = *own);
            }
        }
        four.map(Plain)
    }
    #[inline(always)]
    unsafe fn pick(from: *const u32, which: Self) -> Self {
        Plain(which.0.map(|which| unsafe { from.add(which as usize).read() }))
    }
    #[inline(always)]
    unsafe fn choose(mut self, other: Self, of_other: Self) -> Self {
        let others = other.0.iter().zip(&of_other.0);
        self.0.iter_mut().zip(others).for_each(|(own, (other, of_other))| *own ^= (*own ^ other) & of_other);
        self
    }
    #[inline(always)]
    unsafe fn flip(self) -> Self {
        Plain(self.0.map(|quad| quad ^ SIGNS))
    }
    #[inline(always)]
    unsafe fn byte(self, at: usize) -> Self {
        Plain(self.0.map(|quad| ((quad << (24 - 8 * at)) as i32 >> 24) as u32))
    }
    #[inline(always)]
    unsafe fn unsigned(self, at: usize) -> Self {
        Plain(self.0.map(|quad| quad >> (8 * at) & 0xff))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::super::super::vectors::Vector;
    use super::super::super::super::vectors::x86::{F32x8, F32x16, U32x8, U32x16, VnniU32x8};
    use super::{HALF, MOST, Quantize, SIGNS, of_half};
    use std::arch::x86_64::*;

    /// The 16 bytes at each of 16 places, plus an offset: of every fourth one from the first on, from the second on and so on.
    ///
    /// # Safety
    /// They must be readable. Needs AVX-512.
    #[inline(always)]
    unsafe fn rows_of_16(places: *const *const u8, offset: usize) -> [__m512i; 4] {
        // SAFETY: the caller's.
        unsafe {
            let of = |place: usize| _mm_loadu_si128((*places.add(place)).add(offset).cast());
            let row = |first: usize| {
                let row = _mm512_castsi128_si512(of(first));
                let row = _mm512_inserti32x4::<1>(row, of(first + 4));
                _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(row, of(first + 8)), of(first + 12))
            };
            [row(0), row(1), row(2), row(3)]
        }
    }

    // SAFETY, of all blocks: the caller's.
    impl Quantize for U32x16 {
        type Floats = F32x16;

        const SIZES: usize = 14;

        #[inline(always)]
        unsafe fn floats(self) -> F32x16 {
            F32x16(unsafe { _mm512_cvtepi32_ps(self.0) })
        }
        #[inline(always)]
        unsafe fn unsigned_floats(self) -> F32x16 {
            F32x16(unsafe { _mm512_cvtepu32_ps(self.0) })
        }
        #[inline(always)]
        unsafe fn quantize(scaled: F32x16, zero: f32, to: *mut u8) -> F32x16 {
            unsafe {
                let within = _mm512_max_ps(_mm512_min_ps(scaled.0, _mm512_set1_ps(MOST - zero)), _mm512_set1_ps(-zero));
                let nearest = _mm512_cvtps_epi32(within);
                let placed = _mm512_add_epi32(nearest, _mm512_set1_epi32(zero as i32));
                _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(placed));
                F32x16(_mm512_abs_ps(_mm512_sub_ps(within, _mm512_cvtepi32_ps(nearest))))
            }
        }
        #[inline(always)]
        unsafe fn greater(numbers: F32x16, than: F32x16) -> u16 {
            unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(numbers.0, than.0) }
        }
        #[inline(always)]
        unsafe fn sizes(self) -> Self {
            U32x16(unsafe { _mm512_abs_epi32(self.0) })
        }
        #[inline(always)]
        unsafe fn magnitudes(of: F32x16) -> F32x16 {
            F32x16(unsafe { _mm512_abs_ps(of.0) })
        }
        #[inline(always)]
        unsafe fn of_halves([first, second]: [*const u8; 2], _: usize) -> Self {
            unsafe {
                let [first, second] =
                    [first, second].map(|from| _mm512_set1_epi32(from.cast::<i32>().read_unaligned()));
                U32x16(_mm512_mask_blend_epi32(0xff00, first, second))
            }
        }
        #[inline(always)]
        unsafe fn of_quarters(from: *const u8) -> Self {
            unsafe {
                let which = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
                let quads = _mm512_castsi128_si512(_mm_loadu_si128(from.cast()));
                U32x16(_mm512_permutexvar_epi32(which, quads))
            }
        }
        #[inline(always)]
        unsafe fn four(places: *const *const u8, offset: usize) -> [Self; 4] {
            unsafe {
                let rows = rows_of_16(places, offset);
                let low = [_mm512_unpacklo_epi32(rows[0], rows[1]), _mm512_unpacklo_epi32(rows[2], rows[3])];
                let high = [_mm512_unpackhi_epi32(rows[0], rows[1]), _mm512_unpackhi_epi32(rows[2], rows[3])];
                [
                    U32x16(_mm512_unpacklo_epi64(low[0], low[1])),
                    U32x16(_mm512_unpackhi_epi64(low[0], low[1])),
                    U32x16(_mm512_unpacklo_epi64(high[0], high[1])),
                    U32x16(_mm512_unpackhi_epi64(high[0], high[1])),
                ]
            }
        }
        #[inline(always)]
        unsafe fn pick(from: *const u32, which: Self) -> Self {
            unsafe { U32x16(_mm512_permutex2var_epi32(Self::load(from).0, which.0, Self::load(from.add(16)).0)) }
        }
        #[inline(always)]
        unsafe fn choose(self, other: Self, of_other: Self) -> Self {
            U32x16(unsafe { _mm512_ternarylogic_epi32::<0b1101_1000>(self.0, other.0, of_other.0) })
        }
        #[inline(always)]
        unsafe fn flip(self) -> Self {
            U32x16(unsafe { _mm512_xor_si512(self.0, _mm512_set1_epi32(SIGNS as i32)) })
        }
        #[inline(always)]
        unsafe fn byte(self, at: usize) -> Self {
            let up = 24 - 8 * at as i32;
            U32x16(unsafe { _mm512_srai_epi32::<24>(_mm512_sllv_epi32(self.0, _mm512_set1_epi32(up))) })
        }
        #[inline(always)]
        unsafe fn unsigned(self, at: usize) -> Self {
            let down = 8 * at as i32;
            unsafe {
                let rest = _mm512_srlv_epi32(self.0, _mm512_set1_epi32(down));
                U32x16(_mm512_and_si512(rest, _mm512_set1_epi32(0xff)))
            }
        }
    }

    /// Implements [`Quantize`] for vectors of 8 numbers.
    macro_rules! narrow {
        ($($name:ident)*) => {$(
            impl Quantize for $name {
                type Floats = F32x8;

                #[inline(always)]
                unsafe fn floats(self) -> F32x8 {
                    F32x8(unsafe { _mm256_cvtepi32_ps(self.0) })
                }
                #[inline(always)]
                unsafe fn unsigned_floats(self) -> F32x8 {
                    unsafe {
                        let low = _mm256_cvtepi32_ps(_mm256_and_si256(self.0, _mm256_set1_epi32(0xffff)));
                        let high = _mm256_cvtepi32_ps(_mm256_srli_epi32::<16>(self.0));
                        F32x8(_mm256_fmadd_ps(high, _mm256_set1_ps(65536.0), low))
                    }
                }
                #[inline(always)]
                unsafe fn quantize(scaled: F32x8, zero: f32, to: *mut u8) -> F32x8 {
                    unsafe {
                        let within = _mm256_max_ps(_mm256_min_ps(scaled.0, _mm256_set1_ps(MOST - zero)), _mm256_set1_ps(-zero));
                        let nearest = _mm256_cvtps_epi32(within);
                        let placed = _mm256_add_epi32(nearest, _mm256_set1_epi32(zero as i32));
                        let words = _mm_packs_epi32(_mm256_castsi256_si128(placed), _mm256_extracti128_si256::<1>(placed));
                        _mm_storel_epi64(to.cast(), _mm_packus_epi16(words, words));
                        Self::magnitudes(F32x8(_mm256_sub_ps(within, _mm256_cvtepi32_ps(nearest))))
                    }
                }
                #[inline(always)]
                unsafe fn greater(numbers: F32x8, than: F32x8) -> u16 {
                    unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(numbers.0, than.0)) as u16 }
                }
                #[inline(always)]
                unsafe fn sizes(self) -> Self {
                    $name(unsafe { _mm256_abs_epi32(self.0) })
                }
                #[inline(always)]
                unsafe fn magnitudes(of: F32x8) -> F32x8 {
                    F32x8(unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), of.0) })
                }
                #[inline(always)]
                unsafe fn of_halves(from: [*const u8; 2], lane: usize) -> Self {
                    unsafe { Self::splat(&of_half(from, lane >= HALF).cast::<u32>().read_unaligned()) }
                }
                #[inline(always)]
                unsafe fn of_quarters(from: *const u8) -> Self {
                    unsafe {
                        let which = _mm256_setr_epi8(
                            0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, //
                            4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7,
                        );
                        let quads = _mm256_set1_epi64x(from.cast::<i64>().read_unaligned());
                        $name(_mm256_shuffle_epi8(quads, which))
                    }
                }
                #[inline(always)]
                unsafe fn four(places: *const *const u8, offset: usize) -> [Self; 4] {
                    unsafe {
                        let of = |place: usize| _mm_loadu_si128((*places.add(place)).add(offset).cast());
                        let rows = [
                            _mm256_set_m128i(of(4), of(0)),
                            _mm256_set_m128i(of(5), of(1)),
                            _mm256_set_m128i(of(6), of(2)),
                            _mm256_set_m128i(of(7), of(3)),
                        ];
                        let low = [_mm256_unpacklo_epi32(rows[0], rows[1]), _mm256_unpacklo_epi32(rows[2], rows[3])];
                        let high = [_mm256_unpackhi_epi32(rows[0], rows[1]), _mm256_unpackhi_epi32(rows[2], rows[3])];
                        [
                            $name(_mm256_unpacklo_epi64(low[0], low[1])),
                            $name(_mm256_unpackhi_epi64(low[0], low[1])),
                            $name(_mm256_unpacklo_epi64(high[0], high[1])),
                            $name(_mm256_unpackhi_epi64(high[0], high[1])),
                        ]
                    }
                }
                #[inline(always)]
                unsafe fn pick(from: *const u32, which: Self) -> Self {
                    unsafe {
                        let [low, high] = [0, 8].map(|at| _mm256_permutevar8x32_epi32(Self::load(from.add(at)).0, which.0));
                        let is_high = _mm256_cmpgt_epi32(which.0, _mm256_set1_epi32(7));
                        $name(_mm256_blendv_epi8(low, high, is_high))
                    }
                }
                #[inline(always)]
                unsafe fn choose(self, other: Self, of_other: Self) -> Self {
                    $name(unsafe { _mm256_blendv_epi8(self.0, other.0, of_other.0) })
                }
                #[inline(always)]
                unsafe fn flip(self) -> Self {
                    $name(unsafe { _mm256_xor_si256(self.0, _mm256_set1_epi32(SIGNS as i32)) })
                }
                #[inline(always)]
                unsafe fn byte(self, at: usize) -> Self {
                    let up = 24 - 8 * at as i32;
                    $name(unsafe { _mm256_srai_epi32::<24>(_mm256_sllv_epi32(self.0, _mm256_set1_epi32(up))) })
                }
                #[inline(always)]
                unsafe fn unsigned(self, at: usize) -> Self {
                    let down = 8 * at as i32;
                    unsafe {
                        let rest = _mm256_srlv_epi32(self.0, _mm256_set1_epi32(down));
                        $name(_mm256_and_si256(rest, _mm256_set1_epi32(0xff)))
                    }
                }
            }
        )*};
    }

    narrow!(U32x8 VnniU32x8);
}
