//! Vectors of numbers, as wide as the processor has them.

#![allow(unsafe_code)] // loads, stores and processor features: the callers in `tile.rs` vouch for them

use super::number::Number;

/// A vector of `COUNT` numbers.
///
/// # Safety
/// Each function needs the processor features of its vector. Those with a pointer access `COUNT` numbers there, those
/// with a `count` as many (at most `COUNT`), and [`splat`](Vector::splat) one.
pub(super) trait Vector: Copy {
    type Of: Number;
    /// A single number.
    type One: Vector<Of = Self::Of>;
    const COUNT: usize;

    unsafe fn zero() -> Self;
    unsafe fn splat(from: *const Self::Of) -> Self;
    unsafe fn load(from: *const Self::Of) -> Self;
    /// The numbers beyond `count` are 0.
    unsafe fn load_some(from: *const Self::Of, count: usize) -> Self;
    unsafe fn store(self, to: *mut Self::Of);
    unsafe fn store_some(self, to: *mut Self::Of, count: usize);
    /// `self * by + plus`, as [`Number::mul_add`]
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self;
    /// Whether [`mul_add_of_few`](Vector::mul_add_of_few) is faster than [`mul_add`](Vector::mul_add).
    const SAYS_FEW: bool = false;
    /// As `mul_add`, by bytes that are [`few`](super::quads::few).
    #[inline(always)]
    unsafe fn mul_add_of_few(self, by: Self, plus: Self) -> Self {
        // SAFETY: the caller's.
        unsafe { self.mul_add(by, plus) }
    }
    /// As [`Number::add`].
    unsafe fn add(self, other: Self) -> Self;
}

/// A vector of `WIDTH` elements that are `STRIDE` apart in memory, 1 or 2.
///
/// # Safety
/// See [`Vector`].
// Lines of an image are read so on x86-64 alone.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(super) trait Spread: Copy {
    type Element: Copy;
    const WIDTH: usize;
    /// Some of the lanes.
    type Lanes: Copy;

    /// The same element in each lane.
    unsafe fn all(element: Self::Element) -> Self;
    /// Writes the first `count` elements, at most `WIDTH`.
    unsafe fn write(self, to: *mut Self::Element, count: usize);

    /// Those from `low` on and below `high`, which is at most `WIDTH`.
    unsafe fn lanes<const STRIDE: usize>(low: usize, high: usize) -> Self::Lanes;
    /// The numbers at `from`, `from + STRIDE`, .. of some lanes, and those of `self` of others, which are not read.
    unsafe fn load_lanes<const STRIDE: usize>(self, from: *const Self::Element, lanes: Self::Lanes) -> Self;
}

/// `N` numbers for any processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain<T, const N: usize>(pub(super) [T; N]);

impl<T: Number, const N: usize> Vector for Plain<T, N> {
    type Of = T;
    type One = Plain<T, 1>;
    const COUNT: usize = N;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Plain([T::ZERO; N])
    }
    #[inline(always)]
    unsafe fn splat(from: *const T) -> Self {
        // SAFETY: see `Vector`.
        Plain([unsafe { from.read() }; N])
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: see `Vector`; an array has the alignment of its elements.
        Plain(unsafe { from.cast::<[T; N]>().read() })
    }
    #[inline(always)]
    unsafe fn load_some(from: *const T, count: usize) -> Self {
        // SAFETY: see `Vector`.
        Plain(std::array::from_fn(|at| if at < count { unsafe { from.add(at).read() } } else { T::ZERO }))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: as for `load`.
        unsafe { to.cast::<[T; N]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn store_some(self, to: *mut T, count: usize) {
        for (at, number) in self.0.into_iter().enumerate().take(count) {
            // SAFETY: see `Vector`.
            unsafe { to.add(at).write(number) }
        }
    }
    #[inline(always)]
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
        let mut out = plus.0;
        for ((out, a), b) in out.iter_mut().zip(&self.0).zip(&by.0) {
            *out = a.mul_add(*b, *out);
        }
        Plain(out)
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        let mut out = self.0;
        for (out, other) in out.iter_mut().zip(&other.0) {
            *out = out.add(*other);
        }
        Plain(out)
    }
}

impl<T: Number, const N: usize> Spread for Plain<T, N> {
    type Element = T;
    const WIDTH: usize = N;
    type Lanes = (usize, usize);

    #[inline(always)]
    unsafe fn all(element: T) -> Self {
        Plain([element; N])
    }
    #[inline(always)]
    unsafe fn write(self, to: *mut T, count: usize) {
        // SAFETY: see `Vector`.
        unsafe { self.store_some(to, count) }
    }
    #[inline(always)]
    unsafe fn lanes<const STRIDE: usize>(low: usize, high: usize) -> (usize, usize) {
        (low, high)
    }
    #[inline(always)]
    unsafe fn load_lanes<const STRIDE: usize>(self, from: *const T, (low, high): (usize, usize)) -> Self {
        let mut at = 0..N;
        Plain(self.0.map(|own| match at.next() {
            // SAFETY: see `Spread`.
            Some(at) if at >= low && at < high => unsafe { from.wrapping_add(at * STRIDE).read() },
            _ => own,
        }))
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::{Plain, Spread, Vector};
    use std::arch::x86_64::*;

    /// Implements [`Vector`] by intrinsics.
    macro_rules! vectors {
        ($($($(#[$doc:meta])* $name:ident)+ ($vector:ty): $count:literal of $of:ty;
            $zero:expr, $splat:expr, $load:expr, $store:expr, $mask:expr, $load_some:expr, $store_some:expr, $mul_add:expr, $add:expr;)*) => {$($(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub(in super::super) struct $name(pub(in super::super) $vector);

            // SAFETY, of all blocks: see `Vector`.
            impl Vector for $name {
                type Of = $of;
                type One = Plain<$of, 1>;
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn zero() -> Self {
                    $name(unsafe { $zero() })
                }
                #[inline(always)]
                unsafe fn splat(from: *const $of) -> Self {
                    $name(unsafe { $splat(*from as _) })
                }
                #[inline(always)]
                unsafe fn load(from: *const $of) -> Self {
                    $name(unsafe { $load(from.cast()) })
                }
                #[inline(always)]
                unsafe fn load_some(from: *const $of, count: usize) -> Self {
                    $name(unsafe { $load_some($mask(count), from.cast()) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $of) {
                    unsafe { $store(to.cast(), self.0) }
                }
                #[inline(always)]
                unsafe fn store_some(self, to: *mut $of, count: usize) {
                    unsafe { $store_some(to.cast(), $mask(count), self.0) }
                }
                #[inline(always)]
                unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
                    $name(unsafe { $mul_add(self.0, by.0, plus.0) })
                }
                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    $name(unsafe { $add(self.0, other.0) })
                }
            }
        )+)*};
    }

    vectors! {
        /// 16 f32, with AVX-512.
        F32x16(__m512): 16 of f32;
            _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps,
            first_of_16, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps;
        /// 8 f64, with AVX-512.
        F64x8(__m512d): 8 of f64;
            _mm512_setzero_pd, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd,
            first_of_8, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd;
        /// 16 integers, with AVX-512.
        U32x16(__m512i): 16 of u32;
            _mm512_setzero_si512, _mm512_set1_epi32, _mm512_loadu_epi32, _mm512_storeu_epi32,
            first_of_16, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32,
            |a, b, c| _mm512_add_epi32(_mm512_mullo_epi32(a, b), c), _mm512_add_epi32;
        /// 8 integers, with AVX-512.
        U64x8(__m512i): 8 of u64;
            _mm512_setzero_si512, _mm512_set1_epi64, _mm512_loadu_epi64, _mm512_storeu_epi64,
            first_of_8, _mm512_maskz_loadu_epi64, _mm512_mask_storeu_epi64,
            |a, b, c| _mm512_add_epi64(_mm512_mullo_epi64(a, b), c), _mm512_add_epi64;
        /// 8 f32, with AVX2 and FMA.
        F32x8(__m256): 8 of f32;
            _mm256_setzero_ps, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps,
            words, |mask, from| _mm256_maskload_ps(from, mask), _mm256_maskstore_ps, _mm256_fmadd_ps, _mm256_add_ps;
        /// 4 f64, with AVX2 and FMA.
        F64x4(__m256d): 4 of f64;
            _mm256_setzero_pd, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd,
            long_words, |mask, from| _mm256_maskload_pd(from, mask), _mm256_maskstore_pd, _mm256_fmadd_pd, _mm256_add_pd;
        /// 8 integers, with AVX2.
        U32x8
        /// As above, with AVX-VNNI.
        VnniU32x8(__m256i): 8 of u32;
            _mm256_setzero_si256, _mm256_set1_epi32, |from: *const __m256i| _mm256_loadu_si256(from),
            |to: *mut __m256i, from| _mm256_storeu_si256(to, from),
            words, |mask, from| _mm256_maskload_epi32(from, mask), _mm256_maskstore_epi32,
            |a, b, c| _mm256_add_epi32(_mm256_mullo_epi32(a, b), c), _mm256_add_epi32;
    }

    impl Spread for F32x16 {
        type Element = f32;
        const WIDTH: usize = 16;
        /// The elements to be read, and the lanes.
        type Lanes = (u32, u16);

        #[inline(always)]
        unsafe fn all(element: f32) -> Self {
            // SAFETY: see `Vector`.
            unsafe { Vector::splat(&element) }
        }
        #[inline(always)]
        unsafe fn write(self, to: *mut f32, count: usize) {
            // SAFETY: see `Vector`.
            unsafe { if count == Self::WIDTH { self.store(to) } else { self.store_some(to, count) } }
        }
        #[inline(always)]
        unsafe fn lanes<const STRIDE: usize>(low: usize, high: usize) -> (u32, u16) {
            let lanes = first_of_16(high) & !first_of_16(low);
            let below = |lane: usize| (1u64 << (2 * lane)) - 1;
            let even = (below(high) & !below(low)) as u32 & 0x5555_5555;
            (if STRIDE == 1 { lanes.into() } else { even }, lanes)
        }
        #[inline(always)]
        unsafe fn load_lanes<const STRIDE: usize>(self, from: *const f32, (read, lanes): (u32, u16)) -> Self {
            // SAFETY: see `Spread`; nothing is read where a mask is 0.
            unsafe {
                if STRIDE == 1 {
                    return F32x16(_mm512_mask_loadu_ps(self.0, lanes, from));
                }
                let first = _mm512_maskz_loadu_ps(read as u16, from);
                let second = _mm512_maskz_loadu_ps((read >> 16) as u16, from.wrapping_add(16));
                let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
                F32x16(_mm512_mask_mov_ps(self.0, lanes, _mm512_permutex2var_ps(first, even, second)))
            }
        }
    }

    impl Spread for F32x8 {
        type Element = f32;
        const WIDTH: usize = 8;
        /// The elements to be read, and the lanes.
        type Lanes = ([__m256i; 2], __m256i);

        #[inline(always)]
        unsafe fn all(element: f32) -> Self {
            // SAFETY: see `Vector`.
            unsafe { Vector::splat(&element) }
        }
        #[inline(always)]
        unsafe fn write(self, to: *mut f32, count: usize) {
            // SAFETY: see `Vector`.
            unsafe { if count == Self::WIDTH { self.store(to) } else { self.store_some(to, count) } }
        }
        #[inline(always)]
        unsafe fn lanes<const STRIDE: usize>(low: usize, high: usize) -> Self::Lanes {
            // What follows the last even element may not be there.
            let (start, end) = (2 * low, (2 * high).saturating_sub(1));
            // SAFETY: see `Vector`.
            unsafe {
                let range = |low: usize, high: usize| _mm256_andnot_si256(words(low), words(high));
                let after = |at: usize| at.saturating_sub(8);
                ([range(start, end), range(after(start), after(end))], range(low, high))
            }
        }
        #[inline(always)]
        unsafe fn load_lanes<const STRIDE: usize>(self, from: *const f32, (read, lanes): Self::Lanes) -> Self {
            // SAFETY: see `Spread`; nothing is read where a mask is 0.
            unsafe {
                let loaded = if STRIDE == 1 {
                    _mm256_maskload_ps(from, lanes)
                } else {
                    let [first, second] = read;
                    let first = _mm256_maskload_ps(from, first);
                    let second = _mm256_maskload_ps(from.wrapping_add(8), second);
                    let even = _mm256_castps_pd(_mm256_shuffle_ps::<0b10_00_10_00>(first, second));
                    _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(even))
                };
                F32x8(_mm256_blendv_ps(self.0, loaded, _mm256_castsi256_ps(lanes)))
            }
        }
    }

    /// 32 bytes, with AVX-512.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::gemm) struct U8x32(__m256i);

    impl Spread for U8x32 {
        type Element = u8;
        const WIDTH: usize = 32;
        /// The bytes to be read, and the lanes.
        type Lanes = (u64, u32);

        #[inline(always)]
        unsafe fn all(element: u8) -> Self {
            // SAFETY: see `Vector`.
            U8x32(unsafe { _mm256_set1_epi8(element as i8) })
        }
        #[inline(always)]
        unsafe fn write(self, to: *mut u8, count: usize) {
            // SAFETY: see `Vector`.
            unsafe { _mm256_mask_storeu_epi8(to.cast(), first_of_32(count), self.0) }
        }
        #[inline(always)]
        unsafe fn lanes<const STRIDE: usize>(low: usize, high: usize) -> (u64, u32) {
            let lanes = first_of_32(high) & !first_of_32(low);
            let below = |lane: usize| (1u128 << (2 * lane)) - 1;
            let even = (below(high) & !below(low)) as u64 & 0x5555_5555_5555_5555;
            (if STRIDE == 1 { lanes.into() } else { even }, lanes)
        }
        #[inline(always)]
        unsafe fn load_lanes<const STRIDE: usize>(self, from: *const u8, (read, lanes): (u64, u32)) -> Self {
            // SAFETY: see `Spread`; nothing is read where a mask is 0.
            unsafe {
                if STRIDE == 1 {
                    return U8x32(_mm256_mask_loadu_epi8(self.0, lanes, from.cast()));
                }
                let even = _mm512_cvtepi16_epi8(_mm512_maskz_loadu_epi8(read, from.cast()));
                U8x32(_mm256_mask_mov_epi8(self.0, lanes, even))
            }
        }
    }

    #[inline(always)]
    fn first_of_32(count: usize) -> u32 {
        if count >= 32 { u32::MAX } else { (1 << count) - 1 }
    }

    #[inline(always)]
    fn first_of_16(count: usize) -> u16 {
        if count >= 16 { u16::MAX } else { (1 << count) - 1 }
    }

    #[inline(always)]
    fn first_of_8(count: usize) -> u8 {
        if count >= 8 { u8::MAX } else { (1 << count) - 1 }
    }

    /// # Safety
    /// Needs AVX2.
    #[inline(always)]
    unsafe fn words(count: usize) -> __m256i {
        // SAFETY: the caller's.
        unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
    }

    /// # Safety
    /// Needs AVX2.
    #[inline(always)]
    unsafe fn long_words(count: usize) -> __m256i {
        // SAFETY: the caller's.
        unsafe { _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)) }
    }
}
