//! float16 and bfloat16: kernels compute in `f32` and round once.

use super::cpu::for_each_level;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// A float of 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    F16,
    Bf16,
}

impl Half {
    /// Widens elements; each has exactly one `f32`.
    pub fn widen(self, from: &[u16], to: &mut [f32]) {
        match self {
            Half::F16 => widen_f16(from, to),
            Half::Bf16 => widen_bf16(from, to),
        }
    }

    /// As [`Half::widen`], where each NaN becomes the quiet one of its sign, without a payload.
    pub fn widen_quietly(self, from: &[u16], to: &mut [f32]) {
        for (from, to) in from.chunks(WIDE).zip(to.chunks_mut(WIDE)) {
            if !self.widens_numbers(from, to) {
                quieten(to);
            }
        }
    }

    /// As [`Half::widen`]. Whether it is known that no element is NaN.
    fn widens_numbers(self, from: &[u16], to: &mut [f32]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self == Half::F16 && super::cpu::level() >= 3 {
            // SAFETY: `level` checked that the processor has these features.
            #[allow(unsafe_code)]
            return unsafe { f16c::widen_numbers(from, to) };
        }
        self.widen(from, to);
        false
    }

    /// Rounds to the nearest, ties to even.
    pub fn narrow(self, from: &[f32], to: &mut [u16]) {
        match self {
            Half::F16 => narrow_f16(from, to),
            Half::Bf16 => narrow_bf16(from, to),
        }
    }

    /// Rounds so that rounding to the type afterwards gives what rounding once would: as [`odd`], or faster.
    #[inline(always)]
    pub fn odd(self, number: f64) -> f32 {
        match self {
            Half::F16 => odd_within_range(number),
            Half::Bf16 => odd(number),
        }
    }

    /// Rounds to the nearest of the type, ties to even.
    pub fn round(self, numbers: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if self == Half::F16 && super::cpu::level() >= 3 {
            // SAFETY: `level` checked that the processor has this feature.
            #[allow(unsafe_code)]
            return unsafe { f16c::round(numbers) };
        }
        let mut room = [0; SOME];
        for some in numbers.chunks_mut(SOME) {
            let room = room.get_mut(..some.len()).unwrap_or_default();
            self.narrow(some, room);
            self.widen(room, some);
        }
    }
}

/// Elements that are rounded at once where the processor has no conversions: they stay in the nearest cache.
const SOME: usize = 256;

/// Rounds to odd: what f32 doesn't hold becomes the neighbour with the last bit set, so that rounding to 16 bits again gives
/// what rounding once would.
#[inline(always)]
pub fn odd(number: f64) -> f32 {
    if number.is_nan() {
        return f32::NAN.copysign(if number.is_sign_negative() { -1.0 } else { 1.0 });
    }
    let nearest = number as f32;
    let back = f64::from(nearest);
    // The order of magnitudes is that of the bits: the one before infinity is the greatest number, which is odd.
    let toward_zero = nearest.to_bits() - u32::from(back.abs() > number.abs());
    f32::from_bits(toward_zero | u32::from(back != number))
}

/// As [`odd`] where f32 has as many digits as everywhere: it has not for the least numbers, nor are the greatest ones finite.
#[inline(always)]
fn odd_within_range(number: f64) -> f32 {
    const BEYOND: u64 = (1 << 29) - 1;
    let bits = number.to_bits();
    // What f32 doesn't hold carries into its last bit.
    f64::from_bits((bits & !BEYOND) | (((bits & BEYOND) + BEYOND) & (BEYOND + 1))) as f32
}

/// Elements that are widened before they are looked at: they stay in the nearest cache.
const WIDE: usize = 2048;

for_each_level! {
    /// Makes each NaN the quiet one of its sign, without a payload.
    fn quieten<>(numbers: &mut [f32]) -> () = quieten_body;
}

#[inline(always)]
fn quieten_body(numbers: &mut [f32]) {
    let mut any = false;
    for number in &*numbers {
        any |= number.is_nan();
    }
    if any {
        for number in numbers {
            let quiet = f32::NAN.copysign(if number.is_sign_negative() { -1.0 } else { 1.0 });
            *number = if number.is_nan() { quiet } else { *number };
        }
    }
}

fn widen_f16(from: &[u16], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if super::cpu::level() >= 3 {
        // SAFETY: `level` checked that the processor has this feature.
        #[allow(unsafe_code)]
        return unsafe { f16c::widen(from, to) };
    }
    bytemuck::cast_slice::<u16, f16>(from).convert_to_f32_slice(to);
}

fn narrow_f16(from: &[f32], to: &mut [u16]) {
    #[cfg(target_arch = "x86_64")]
    if super::cpu::level() >= 3 {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        return unsafe { if super::cpu::level() >= 4 { f16c::narrow_wide(from, to) } else { f16c::narrow(from, to) } };
    }
    bytemuck::cast_slice_mut::<u16, f16>(to).convert_from_f32_slice(from);
}

/// The processor's conversions of eight elements; what is left at the end is filled up to as many.
#[cfg(target_arch = "x86_64")]
mod f16c {
    use std::arch::x86_64::*;

    #[target_feature(enable = "f16c")]
    pub(super) fn widen(from: &[u16], to: &mut [f32]) {
        let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<8>(), to.as_chunks_mut::<8>());
        for (from, to) in from.iter().zip(to) {
            *to = bytemuck::cast(_mm256_cvtph_ps(bytemuck::cast(*from)));
        }
        let mut rest = [0u16; 8];
        rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to = *from);
        let rest: [f32; 8] = bytemuck::cast(_mm256_cvtph_ps(bytemuck::cast(rest)));
        to_rest.iter_mut().zip(rest).for_each(|(to, from)| *to = from);
    }

    /// As [`widen`]. Whether no element is NaN.
    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen_numbers(from: &[u16], to: &mut [f32]) -> bool {
        let ((blocks, from_rest), (outs, to_rest)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
        let mut nan = _mm256_setzero_ps();
        for (block, out) in blocks.iter().zip(outs) {
            let [low, high]: [[u16; 8]; 2] = bytemuck::cast(*block);
            let [low, high] = [_mm256_cvtph_ps(bytemuck::cast(low)), _mm256_cvtph_ps(bytemuck::cast(high))];
            nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(low, high));
            *out = bytemuck::cast([low, high]);
        }
        widen(from_rest, to_rest);
        _mm256_movemask_ps(nan) == 0 && !to_rest.iter().any(|number| number.is_nan())
    }

    /// As [`narrow`], of sixteen at a time.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
    #[allow(unsafe_code)]
    pub(super) fn narrow_wide(from: &[f32], to: &mut [u16]) {
        let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
        for (from, to) in from.iter().zip(to) {
            // SAFETY: there are sixteen.
            let from = unsafe { _mm512_loadu_ps(from.as_ptr()) };
            *to = bytemuck::cast(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(from));
        }
        narrow(from_rest, to_rest);
    }

    /// As [`narrow`] and back.
    #[target_feature(enable = "f16c")]
    pub(super) fn round(numbers: &mut [f32]) {
        let (blocks, rest) = numbers.as_chunks_mut::<8>();
        let mut last = [0f32; 8];
        last.iter_mut().zip(&*rest).for_each(|(to, from)| *to = *from);
        for block in blocks.iter_mut().chain([&mut last]) {
            let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(bytemuck::cast(*block));
            *block = bytemuck::cast(_mm256_cvtph_ps(narrow));
        }
        rest.iter_mut().zip(last).for_each(|(to, from)| *to = from);
    }

    #[target_feature(enable = "f16c")]
    pub(super) fn narrow(from: &[f32], to: &mut [u16]) {
        let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<8>(), to.as_chunks_mut::<8>());
        for (from, to) in from.iter().zip(to) {
            *to = bytemuck::cast(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(bytemuck::cast(*from)));
        }
        let mut rest = [0f32; 8];
        rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to = *from);
        let rest: [u16; 8] = bytemuck::cast(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(bytemuck::cast(rest)));
        to_rest.iter_mut().zip(rest).for_each(|(to, from)| *to = from);
    }
}

for_each_level! {
    fn widen_bf16<>(from: &[u16], to: &mut [f32]) -> () = widen_bf16_body;
}

for_each_level! {
    fn narrow_bf16<>(from: &[f32], to: &mut [u16]) -> () = narrow_bf16_body;
}

#[inline(always)]
fn widen_bf16_body(from: &[u16], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = f32::from_bits(u32::from(*from) << 16);
    }
}

#[inline(always)]
fn narrow_bf16_body(from: &[f32], to: &mut [u16]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = bf16::from_f32(*from).to_bits();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_each_level;

    /// A NaN has its sign and no payload, wherever it is.
    #[test]
    fn float16_is_widened_quietly() {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let numbers: Vec<u16> = all.iter().copied().filter(|x| !f16::from_bits(*x).is_nan()).collect();
        let quiet = |x: u16| match f16::from_bits(x) {
            x if x.is_nan() => f32::NAN.copysign(if x.is_sign_negative() { -1.0 } else { 1.0 }),
            x => x.to_f32(),
        };
        at_each_level(|| {
            for from in [&all[..], &numbers, &numbers[..77], &all[0x7c00 - 40..0x7c03], &all[..5]] {
                let mut wide = vec![7.0; from.len()];
                Half::F16.widen_quietly(from, &mut wide);
                assert!(from.iter().zip(&wide).all(|(x, got)| got.to_bits() == quiet(*x).to_bits()), "{}", from.len());
            }
        });
    }

    /// Numbers between elements, and beyond them.
    #[test]
    fn what_is_odd_is_rounded_once() {
        let all = (0..0x7c00u16).map(|code| f16::from_bits(code * if cfg!(miri) { 97 } else { 1 } % 0x7c00));
        let (mut wide, mut want) = (Vec::new(), Vec::new());
        for low in all {
            let high = f16::from_bits(low.to_bits() + 1);
            let even = if low.to_bits() % 2 == 0 { low } else { high };
            let middle = (low.to_f64() + high.to_f64().min(65536.0)) / 2.0;
            let around = [(low.to_f64(), low), (middle, even), (middle.next_up(), high), (middle.next_down(), low)];
            for (number, nearest) in around {
                wide.extend([number, -number]);
                want.extend([nearest.to_f32(), -nearest.to_f32()]);
            }
        }
        wide.extend([f64::INFINITY, 1e300, -1e-300, 1e-320, f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)]);
        want.extend([f32::INFINITY, f32::INFINITY, -0.0, 0.0, f32::NAN, f32::NAN]);
        let mut got: Vec<f32> = wide.iter().map(|number| Half::F16.odd(*number)).collect();
        Half::F16.round(&mut got);
        for (number, (got, want)) in wide.iter().zip(got.iter().zip(&want)) {
            assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{number:e}: {got}, not {want}");
        }
    }

    /// All of the 65536 elements, and what is between them; each length up to some vectors.
    #[test]
    fn float16_is_converted_as_one_by_one() {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let singles: Vec<f32> = (0..1 << 20).map(|i: u32| f32::from_bits(i.wrapping_mul(4_099))).collect();
        let between = all.iter().map(|x| f16::from_bits(*x).to_f32()).flat_map(|x| [x.next_up(), x, x.next_down()]);
        let singles: Vec<f32> = singles.into_iter().chain(between).collect();
        at_each_level(|| {
            let (mut wide, mut narrow) = (vec![0.0; all.len()], vec![0; singles.len()]);
            Half::F16.widen(&all, &mut wide);
            for (x, got) in all.iter().zip(&wide) {
                let want = f16::from_bits(*x).to_f32();
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{x:x}: {got}");
            }
            Half::F16.narrow(&singles, &mut narrow);
            for (x, got) in singles.iter().zip(&narrow) {
                let (got, want) = (f16::from_bits(*got), f16::from_f32(*x));
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{x:e}: {got}");
            }
            let mut rounded = singles.clone();
            Half::F16.round(&mut rounded);
            for (x, got) in singles.iter().zip(&rounded) {
                let want = f16::from_f32(*x).to_f32();
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{x:e}: {got}");
            }
            Half::Bf16.round(&mut rounded);
            let brain = |x: f32| bf16::from_f32(f16::from_f32(x).to_f32()).to_f32();
            assert!(singles.iter().zip(&rounded).all(|(x, got)| *got == brain(*x) || got.is_nan() && x.is_nan()));
            for len in 0..40 {
                let (mut wide, mut narrow) = (vec![-1.0; len + 1], vec![7; len + 1]);
                Half::F16.widen(&all[15_000..15_000 + len], &mut wide[..len]);
                Half::F16.narrow(&wide[..len], &mut narrow[..len]);
                assert_eq!((&narrow[..len], wide[len], narrow[len]), (&all[15_000..15_000 + len], -1.0, 7));
            }
        });
    }
}
