//! Small matrices of bytes, which some processors (AMX) hold in registers and multiply at once.
//!
//! There are eight such registers. [`set`] gives them sizes for this thread, [`release`] takes these away: between the two,
//! nothing else may use them, and compilers never do. Here four are sums, and two pairs are operands.

#![allow(unsafe_code)] // instructions that compilers don't know yet: `set` says what they need

use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, _xgetbv};

/// Rows of a matrix, at most, and steps of four bytes.
pub(super) const MOST: usize = 16;

/// Bytes of a step, and of a sum.
const SIZE: usize = 4;

/// Whether this processor has matrices of bytes, and the system lets the process use them: Linux wants to be asked.
pub(super) fn are_allowed() -> bool {
    // In the leaf of features: their registers, and products of bytes. In the states that the system saves: what is set, and
    // what they hold.
    const FEATURES: u32 = 1 << 24 | 1 << 25;
    const STATES: u64 = 1 << 17 | 1 << 18;
    if cfg!(miri)
        || !cfg!(target_os = "linux")
        || !is_x86_feature_detected!("avx512vbmi")
        || !is_x86_feature_detected!("xsave")
    {
        return false;
    }
    // SAFETY: processors with AVX-512 have this leaf, and systems that let programs use it set states.
    #[allow(unused_unsafe)] // newer versions of Rust call asking safe
    let (features, states) = unsafe { (__cpuid_count(7, 0).edx, states()) };
    features & FEATURES == FEATURES && states & STATES == STATES && ask()
}

/// What the system saves.
///
/// # Safety
/// The system must set it.
#[target_feature(enable = "xsave")]
unsafe fn states() -> u64 {
    // SAFETY: the caller's.
    unsafe { _xgetbv(0) }
}

/// Asks Linux for the right to use the registers, as `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
fn ask() -> bool {
    let (call, request, state) = (158usize, 0x1023usize, 18usize);
    let result: usize;
    // SAFETY: the call changes nothing but what the process may do. It overwrites the two registers that all calls do.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") call => result,
            in("rdi") request,
            in("rsi") state,
            out("rcx") _,
            out("r11") _,
            options(nostack)
        );
    }
    result == 0
}

/// Sizes of registers, as the processor reads them.
#[repr(C, align(64))]
struct Sizes {
    palette: u8,
    row: u8,
    none: [u8; 14],
    bytes: [u16; MOST],
    rows: [u8; MOST],
}

/// Sets sizes, until they are released: sums of so many places by 16 filters, and products of so many steps.
///
/// # Safety
/// The processor must have matrices ([`are_allowed`]). Both numbers are 1 to [`MOST`].
pub(super) unsafe fn set(places: usize, steps: usize) {
    let (seen, weights) = ([(places, SIZE * steps); 2], [(steps, SIZE * MOST); 2]);
    let mut sizes = Sizes { palette: 1, row: 0, none: [0; 14], bytes: [0; MOST], rows: [0; MOST] };
    let all = [(places, SIZE * MOST); 4].into_iter().chain(seen).chain(weights);
    for ((rows, bytes), (of_rows, of_bytes)) in sizes.rows.iter_mut().zip(&mut sizes.bytes).zip(all) {
        (*rows, *bytes) = (of_rows as u8, of_bytes as u16);
    }
    // SAFETY: the caller's.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const sizes, options(nostack, readonly)) };
}

/// Takes the sizes away: the system needn't save the registers of this thread any more.
///
/// # Safety
/// The processor must have matrices.
pub(super) unsafe fn release() {
    // SAFETY: the caller's.
    unsafe { asm!("tilerelease", options(nostack, nomem)) };
}

/// Makes all sums 0.
///
/// # Safety
/// Sizes must be set.
#[inline(always)]
pub(super) unsafe fn zero() {
    // SAFETY: the caller's.
    unsafe { asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3", options(nostack, nomem)) };
}

/// Adds the products of what the places of one or of two matrices see, which are so many bytes apart, and of the weights of
/// `W` times 16 filters.
///
/// # Safety
/// Sizes must be set; bytes and weights are readable: all that the places see, a row of weights for each step.
#[inline(always)]
pub(super) unsafe fn multiply<const P: usize, const W: usize>(
    [first, second]: [*const u8; 2],
    apart: usize,
    weights: *const u32,
) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "tileloadd tmm4, [{seen} + {apart}*1]",
            "tileloadd tmm6, [{weights} + {row}*1]",
            "tdpbusd tmm0, tmm4, tmm6",
            seen = in(reg) first, apart = in(reg) apart, weights = in(reg) weights, row = in(reg) 64 * W,
            options(nostack, readonly)
        );
        if W > 1 {
            asm!(
                "tileloadd tmm7, [{weights} + {row}*1 + 64]",
                "tdpbusd tmm1, tmm4, tmm7",
                weights = in(reg) weights, row = in(reg) 64 * W,
                options(nostack, readonly)
            );
        }
        if P > 1 {
            asm!(
                "tileloadd tmm5, [{seen} + {apart}*1]",
                "tdpbusd tmm2, tmm5, tmm6",
                seen = in(reg) second, apart = in(reg) apart,
                options(nostack, readonly)
            );
        }
        if P > 1 && W > 1 {
            asm!("tdpbusd tmm3, tmm5, tmm7", options(nostack, nomem));
        }
    }
}

/// Writes the sums of the places of each matrix, `16 * W` of each place.
///
/// # Safety
/// Sizes must be set, and there must be room for as many places as a matrix has.
#[inline(always)]
pub(super) unsafe fn store<const P: usize, const W: usize>(to: [*mut u32; 2]) {
    let [first, second] = to;
    // SAFETY: the caller's.
    unsafe {
        asm!("tilestored [{} + {}*1], tmm0", in(reg) first, in(reg) 64 * W, options(nostack));
        if W > 1 {
            asm!("tilestored [{} + {}*1 + 64], tmm1", in(reg) first, in(reg) 64 * W, options(nostack));
        }
        if P > 1 {
            asm!("tilestored [{} + {}*1], tmm2", in(reg) second, in(reg) 64 * W, options(nostack));
        }
        if P > 1 && W > 1 {
            asm!("tilestored [{} + {}*1 + 64], tmm3", in(reg) second, in(reg) 64 * W, options(nostack));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::has_tiles;

    /// Of several sizes, added twice.
    #[test]
    fn products_of_matrices() {
        if !has_tiles() {
            return;
        }
        const APART: usize = 100;
        let seen: Vec<u8> = (0..2 * MOST * APART).map(|at| (at * 7 + at / 31) as u8).collect();
        let weights: Vec<u32> = (0..4 * MOST * MOST).map(|at| (at as u32).wrapping_mul(0x9e37_79b9)).collect();
        let want = |row: usize, filter: usize, width: usize, steps: usize| {
            let step = |step: usize| {
                let seen = seen.get(row * APART + SIZE * step..).and_then(|seen| seen.first_chunk::<SIZE>()).unwrap();
                let weights = weights[step * width + filter].to_le_bytes();
                (0..SIZE).map(|at| i32::from(seen[at]) * i32::from(weights[at] as i8)).sum::<i32>()
            };
            2 * (0..steps).map(step).sum::<i32>()
        };
        let second = seen[MOST * APART..].as_ptr();
        for (places, steps) in [1, 2, 7, 16].into_iter().flat_map(|places| [1, 5, 15, 16].map(|steps| (places, steps)))
        {
            let mut out = [7; 4 * MOST * MOST];
            let mut check = |width: usize, count: usize, run: unsafe fn([*const u8; 2], *const u32, [*mut u32; 2])| {
                out.fill(7);
                let to = out.as_mut_ptr();
                // SAFETY: the processor has matrices. Operands have as many rows as any, and so do both results.
                unsafe {
                    set(places, steps);
                    run([seen.as_ptr(), second], weights.as_ptr(), [to, to.wrapping_add(MOST * width)]);
                    release();
                }
                for (at, number) in out.iter().enumerate() {
                    let (row, filter) = (at / width, at % width);
                    let is_there = row % MOST < places && row < count * MOST;
                    let want = if is_there { want(row, filter, width, steps) as u32 } else { 7 };
                    assert_eq!(*number, want, "{places}, {steps}, {width}, {count}: {row}, {filter}");
                }
            };
            check(16, 1, products::<1, 1>);
            check(16, 2, products::<2, 1>);
            check(32, 1, products::<1, 2>);
            check(32, 2, products::<2, 2>);
        }

        /// # Safety
        /// See [`multiply`] and [`store`].
        unsafe fn products<const P: usize, const W: usize>(
            seen: [*const u8; 2],
            weights: *const u32,
            to: [*mut u32; 2],
        ) {
            // SAFETY: the caller's.
            unsafe {
                zero();
                multiply::<P, W>(seen, APART, weights);
                multiply::<P, W>(seen, APART, weights);
                store::<P, W>(to);
            }
        }
    }
}
