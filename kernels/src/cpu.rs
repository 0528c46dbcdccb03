//! Compiles a loop for several processor levels and picks one at run time.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Defines `fn $name(args) -> R` that calls `$body`, plain `#[inline(always)]` code, compiled for the best level of
/// this processor.
macro_rules! for_each_level {
    ($(#[$doc:meta])* $visible:vis fn $name:ident<$($param:ident: $bound:path),* $(,)?>($($arg:ident: $type:ty),* $(,)?) -> $result:ty = $body:path;) => {
        $(#[$doc])*
        #[inline]
        $visible fn $name<$($param: $bound),*>($($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
                fn v4<$($param: $bound),*>($($arg: $type),*) -> $result {
                    $body($($arg),*)
                }
                #[target_feature(enable = "avx2,bmi2,fma")]
                fn v3<$($param: $bound),*>($($arg: $type),*) -> $result {
                    $body($($arg),*)
                }
                match $crate::cpu::level() {
                    // SAFETY: `level` checked that the processor has these features.
                    #[allow(unsafe_code)]
                    4.. => return unsafe { v4::<$($param),*>($($arg),*) },
                    // SAFETY: as above.
                    #[allow(unsafe_code)]
                    3 => return unsafe { v3::<$($param),*>($($arg),*) },
                    _ => {}
                }
            }
            $body($($arg),*)
        }
    };
}
pub(super) use for_each_level;

/// As [`for_each_level`], for code that is no faster with AVX-512: a processor that has it runs the code for AVX2.
macro_rules! for_avx2 {
    ($(#[$doc:meta])* $visible:vis fn $name:ident<$($param:ident: $bound:path),* $(,)?>($($arg:ident: $type:ty),* $(,)?) -> $result:ty = $body:path;) => {
        $(#[$doc])*
        #[inline]
        $visible fn $name<$($param: $bound),*>($($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi2,fma")]
                fn v3<$($param: $bound),*>($($arg: $type),*) -> $result {
                    $body($($arg),*)
                }
                if $crate::cpu::level() >= 3 {
                    // SAFETY: `level` checked that the processor has these features.
                    #[allow(unsafe_code)]
                    return unsafe { v3::<$($param),*>($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}
pub(super) use for_avx2;

/// 5: AVX-512 with products of bytes (VNNI); 4: AVX-512 as of x86-64-v4; 3: AVX2, FMA and F16C; 0: not all of them.
/// `mul_add` gives the same bits at each.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn level() -> u8 {
    #[cfg(any(test, feature = "testing"))]
    if let Some(level) = crate::testing::forced() {
        return level;
    }
    static LEVEL: AtomicU8 = AtomicU8::new(u8::MAX);
    match LEVEL.load(Relaxed) {
        u8::MAX => {
            let level = detected();
            LEVEL.store(level, Relaxed);
            level
        }
        level => level,
    }
}

/// The level for products of bytes. 5: AVX-512 VNNI; 4: AVX-VNNI, of AVX2; 3: AVX2; 0: neither.
#[cfg(target_arch = "x86_64")]
pub(super) fn level_of_bytes() -> u8 {
    // Tests of level 3 are those of processors without it; those of level 4 have it.
    let has_products = is_x86_feature_detected!("avxvnni");
    #[cfg(any(test, feature = "testing"))]
    let has_products = has_products && crate::testing::forced() != Some(3);
    match level() {
        3 | 4 if has_products => 4,
        3 | 4 => 3,
        level => level,
    }
}

/// Whether the processor multiplies small matrices of bytes ([`crate::tiles`]), and the system lets this process do so.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_tiles() -> bool {
    #[cfg(any(test, feature = "testing"))]
    if crate::testing::forced().is_some_and(|level| level < 6) {
        return false;
    }
    static HAS_TILES: OnceLock<bool> = OnceLock::new();
    level() >= 5 && *HAS_TILES.get_or_init(crate::tiles::are_allowed)
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn detected() -> u8 {
    let v3 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma");
    let v4 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (v3, v4) {
        (true, true) if is_x86_feature_detected!("avx512vnni") => 5,
        (true, true) => 4,
        (true, false) => 3,
        (false, _) => 0,
    }
}

/// Whether `mul_add` is an operation of this processor.
#[inline]
pub(super) fn is_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    return level() >= 3;
    #[cfg(not(target_arch = "x86_64"))]
    cfg!(target_arch = "aarch64")
}

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Prefetches the cache line with the byte `at` of `bytes`.
#[inline(always)]
pub(super) fn prefetch(bytes: &[u8], at: usize) {
    fetch::<false, _>(bytes.as_ptr().wrapping_add(at));
}

/// Fetches a cache line to the first cache, or one that is read `LATER` to the second.
#[inline(always)]
pub(super) fn fetch<const LATER: bool, T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch has no visible effect and never faults, whatever the address.
        #[allow(unsafe_code)]
        unsafe {
            if LATER { _mm_prefetch::<_MM_HINT_T1>(at.cast()) } else { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
