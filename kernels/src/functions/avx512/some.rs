//! Vectors.

use std::arch::x86_64::*;

/// `K` vectors of 16 numbers.
#[derive(Clone, Copy)]
pub(super) struct Some16<const K: usize>(pub(super) [__m512; K]);

/// `K` vectors of 8 doubles.
#[derive(Clone, Copy)]
pub(super) struct Some8<const K: usize>(pub(super) [__m512d; K]);

/// Defines operations on each vector.
macro_rules! operations {
    ($some:ident: $($(#[$doc:meta])* fn $name:ident($x:ident $(, $other:ident)*) = $result:expr;)*) => {
        impl<const K: usize> $some<K> {$(
            $(#[$doc])*
            #[target_feature(enable = "avx512f,avx512dq")]
            #[inline]
            pub(super) fn $name(self $(, $other: $some<K>)*) -> $some<K> {
                let mut result = self;
                for k in 0..K {
                    // Each has `K` vectors.
                    #[allow(clippy::indexing_slicing)]
                    {
                        let ($x, $($other,)*) = (self.0[k], $($other.0[k],)*);
                        result.0[k] = $result;
                    }
                }
                result
            }
        )*}
    };
}

operations! { Some16:
    fn add(x, other) = _mm512_add_ps(x, other);
    fn sub(x, other) = _mm512_sub_ps(x, other);
    fn mul(x, other) = _mm512_mul_ps(x, other);
    fn div(x, other) = _mm512_div_ps(x, other);
    /// `x * by + plus`
    fn mul_add(x, by, plus) = _mm512_fmadd_ps(x, by, plus);
    /// `x * by - minus`
    fn mul_sub(x, by, minus) = _mm512_fmsub_ps(x, by, minus);
    /// `from - x * by`
    fn neg_mul_add(x, by, from) = _mm512_fnmadd_ps(x, by, from);
    /// The lesser one; the first if that is NaN.
    fn least(x, bound) = _mm512_min_ps(bound, x);
    fn abs(x) = _mm512_abs_ps(x);
    /// With the sign of another number in place of none.
    fn or_sign(x, of) = or_sign(x, of);
    /// `x * 2^n`, rounded once
    fn scale(x, n) = _mm512_scalef_ps(x, n);
    /// It, or a zero of its sign or of the sign of -0 in place of numbers below.
    fn positive(x) = _mm512_max_ps(_mm512_set1_ps(-0.0), x);
    /// 2^n of [`Real::BIASED`](super::super::Real)` + n`.
    fn power_of_two(x) = _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_castps_si512(x)));
    /// `x * 2^n` of a number whose low bits are n, if `x` is 0 and n too, or if `x` and the result are normal numbers.
    fn times_power(x, shifted) = times_power(x, shifted);
}

operations! { Some8:
    fn add(x, other) = _mm512_add_pd(x, other);
    fn sub(x, other) = _mm512_sub_pd(x, other);
    fn mul(x, other) = _mm512_mul_pd(x, other);
    fn div(x, other) = _mm512_div_pd(x, other);
    /// `x * by + plus`
    fn mul_add(x, by, plus) = _mm512_fmadd_pd(x, by, plus);
    /// `from - x * by`
    fn neg_mul_add(x, by, from) = _mm512_fnmadd_pd(x, by, from);
    /// The lesser one; the first if that is NaN.
    fn least(x, bound) = _mm512_min_pd(bound, x);
    /// The greater one; the first if that is NaN.
    fn greatest(x, bound) = _mm512_max_pd(bound, x);
    /// 2^n of [`Real::BIASED`](super::super::Real)` + n`.
    fn power_of_two(x) = _mm512_castsi512_pd(_mm512_slli_epi64::<52>(_mm512_castpd_si512(x)));
}

impl<const K: usize> Some8<K> {
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn all(number: f64) -> Some8<K> {
        Some8([_mm512_set1_pd(number); K])
    }
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn or_sign(x: __m512, of: __m512) -> __m512 {
    // x | of & sign
    let sign = _mm512_set1_epi32(i32::MIN);
    let bits = _mm512_ternarylogic_epi32::<0xf8>(_mm512_castps_si512(x), _mm512_castps_si512(of), sign);
    _mm512_castsi512_ps(bits)
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn times_power(x: __m512, shifted: __m512) -> __m512 {
    let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
    _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), exponent))
}

impl<const K: usize> Some16<K> {
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn all(number: f32) -> Some16<K> {
        Some16([_mm512_set1_ps(number); K])
    }

    /// As many numbers as `from` has, and zeros behind.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn load(from: &[f32]) -> Some16<K> {
        let mut vectors = Some16::<K>::all(0.0);
        for (vector, from) in vectors.0.iter_mut().zip(from.chunks(16)) {
            // SAFETY: as many elements are read as there are.
            #[allow(unsafe_code)]
            unsafe {
                *vector = match from.first_chunk::<16>() {
                    Some(from) => _mm512_loadu_ps(from.as_ptr()),
                    None => _mm512_maskz_loadu_ps(first(from.len()), from.as_ptr()),
                };
            }
        }
        vectors
    }

    /// Writes as many numbers as `to` has room for.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn store(self, to: &mut [f32]) {
        for (vector, to) in self.0.into_iter().zip(to.chunks_mut(16)) {
            // SAFETY: as many elements are written as there are.
            #[allow(unsafe_code)]
            unsafe {
                match to.first_chunk_mut::<16>() {
                    Some(to) => _mm512_storeu_ps(to.as_mut_ptr(), vector),
                    None => _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), vector),
                }
            }
        }
    }

    /// Whether all are below this bound; NaN isn't.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn are_below(self, bound: f32) -> bool {
        let mut negative = _mm512_set1_epi32(-1);
        for vector in self.sub(Some16::all(bound)).0 {
            negative = _mm512_and_si512(negative, _mm512_castps_si512(vector));
        }
        _mm512_movepi32_mask(negative) == u16::MAX
    }

    /// The first halves of all vectors as doubles.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn low(self) -> Some8<K> {
        let mut wide = Some8::<K>::all(0.0);
        for k in 0..K {
            // Each has `K` vectors.
            #[allow(clippy::indexing_slicing)]
            {
                wide.0[k] = _mm512_cvtps_pd(_mm512_castps512_ps256(self.0[k]));
            }
        }
        wide
    }

    /// The second halves.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn high(self) -> Some8<K> {
        let mut wide = Some8::<K>::all(0.0);
        for k in 0..K {
            // As above.
            #[allow(clippy::indexing_slicing)]
            {
                wide.0[k] = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(self.0[k]));
            }
        }
        wide
    }

    /// Rounds the halves of vectors.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn rounded(low: Some8<K>, high: Some8<K>) -> Some16<K> {
        let mut rounded = Some16::<K>::all(0.0);
        for k in 0..K {
            // As above.
            #[allow(clippy::indexing_slicing)]
            {
                let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(low.0[k]));
                rounded.0[k] = _mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(high.0[k]));
            }
        }
        rounded
    }

    /// Whether no number has a bit other than `base` has, but for those of `low`.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn differs_below(self, base: f32, low: u32) -> bool {
        let (base, mut differences) = (_mm512_set1_epi32(base.to_bits() as i32), _mm512_setzero_si512());
        for vector in self.0 {
            // differences | vector ^ base
            differences = _mm512_ternarylogic_epi32::<0xf6>(differences, _mm512_castps_si512(vector), base);
        }
        _mm512_test_epi32_mask(differences, _mm512_set1_epi32(!low as i32)) == 0
    }

    /// The elements of a table at the low bits of each number.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn pick(self, table: &[[f32; 16]; 2]) -> Some16<K> {
        let [low, high] = table;
        let (Some16([low]), Some16([high])) = (Some16::<1>::load(low), Some16::<1>::load(high));
        let mut result = self;
        for vector in &mut result.0 {
            *vector = _mm512_permutex2var_ps(low, _mm512_castps_si512(*vector), high);
        }
        result
    }
}

/// A mask of the first `count` of 16 elements.
#[inline(always)]
fn first(count: usize) -> __mmask16 {
    // `count` is below 16.
    (1u16 << (count & 15)) - 1
}
