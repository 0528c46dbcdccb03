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

/// Sets sizes, until they are released: sums of the rows of two matrices by the columns of two, and products of so many steps.
///
/// # Safety
/// The processor must have matrices ([`are_allowed`]). All numbers are 1 to [`MOST`].
pub(super) unsafe fn set(rows: [usize; 2], columns: [usize; 2], steps: usize) {
    let sums = rows.into_iter().flat_map(|rows| columns.map(|columns| (rows, columns)));
    let all = sums.chain(rows.map(|rows| (rows, steps))).chain(columns.map(|columns| (steps, columns)));
    let mut sizes = Sizes { palette: 1, row: 0, none: [0; 14], bytes: [0; MOST], rows: [0; MOST] };
    for ((rows, bytes), (of_rows, numbers)) in sizes.rows.iter_mut().zip(&mut sizes.bytes).zip(all) {
        (*rows, *bytes) = (of_rows as u8, (SIZE * numbers) as u16);
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

/// Adds the products of the rows of `P` matrices, which are so many bytes apart, and of `W` others, whose rows are side by
/// side.
///
/// # Safety
/// Sizes must be set; all rows are readable.
#[inline(always)]
pub(super) unsafe fn multiply<const P: usize, const W: usize>(
    [first, second]: [*const u8; 2],
    apart: usize,
    by: *const u32,
    by_apart: usize,
) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "tileloadd tmm4, [{rows} + {apart}*1]",
            "tileloadd tmm6, [{by} + {by_apart}*1]",
            "tdpbusd tmm0, tmm4, tmm6",
            rows = in(reg) first, apart = in(reg) apart, by = in(reg) by, by_apart = in(reg) by_apart,
            options(nostack, readonly)
        );
        if W > 1 {
            asm!(
                "tileloadd tmm7, [{by} + {by_apart}*1 + 64]",
                "tdpbusd tmm1, tmm4, tmm7",
                by = in(reg) by, by_apart = in(reg) by_apart,
                options(nostack, readonly)
            );
        }
        if P > 1 {
            asm!(
                "tileloadd tmm5, [{rows} + {apart}*1]",
                "tdpbusd tmm2, tmm5, tmm6",
                rows = in(reg) second, apart = in(reg) apart,
                options(nostack, readonly)
            );
        }
        if P > 1 && W > 1 {
            asm!("tdpbusd tmm3, tmm5, tmm7", options(nostack, nomem));
        }
    }
}

/// Writes the sums of the rows of `P` matrices by `W` others, which are side by side, to rows that are so many bytes apart.
///
/// # Safety
/// Sizes must be set, and there must be room for all rows.
#[inline(always)]
pub(super) unsafe fn store<const P: usize, const W: usize>([first, second]: [*mut u32; 2], apart: usize) {
    // SAFETY: the caller's.
    unsafe {
        asm!("tilestored [{} + {}*1], tmm0", in(reg) first, in(reg) apart, options(nostack));
        if W > 1 {
            asm!("tilestored [{} + {}*1 + 64], tmm1", in(reg) first, in(reg) apart, options(nostack));
        }
        if P > 1 {
            asm!("tilestored [{} + {}*1], tmm2", in(reg) second, in(reg) apart, options(nostack));
        }
        if P > 1 && W > 1 {
            asm!("tilestored [{} + {}*1 + 64], tmm3", in(reg) second, in(reg) apart, options(nostack));
        }
    }
}

/// Reads sums from where [`store`] writes them.
///
/// # Safety
/// As there; all rows are readable.
#[inline(always)]
pub(super) unsafe fn load<const P: usize, const W: usize>([first, second]: [*const u32; 2], apart: usize) {
    // SAFETY: the caller's.
    unsafe {
        asm!("tileloadd tmm0, [{} + {}*1]", in(reg) first, in(reg) apart, options(nostack, readonly));
        if W > 1 {
            asm!("tileloadd tmm1, [{} + {}*1 + 64]", in(reg) first, in(reg) apart, options(nostack, readonly));
        }
        if P > 1 {
            asm!("tileloadd tmm2, [{} + {}*1]", in(reg) second, in(reg) apart, options(nostack, readonly));
        }
        if P > 1 && W > 1 {
            asm!("tileloadd tmm3, [{} + {}*1 + 64]", in(reg) second, in(reg) apart, options(nostack, readonly));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::has_tiles;

    /// Of several sizes, added twice: to nothing, and to what was stored.
    #[test]
    fn products_of_matrices() {
        if !has_tiles() {
            return;
        }
        const APART: usize = 100;
        let seen: Vec<u8> = (0..2 * MOST * APART).map(|at| (at * 7 + at / 31) as u8).collect();
        let weights: Vec<u32> = (0..4 * MOST * MOST).map(|at| (at as u32).wrapping_mul(0x9e37_79b9)).collect();
        let want = |row: usize, column: usize, width: usize, steps: usize| {
            let step = |step: usize| {
                let seen = seen.get(row * APART + SIZE * step..).and_then(|seen| seen.first_chunk::<SIZE>()).unwrap();
                let weights = weights[step * width + column].to_le_bytes();
                (0..SIZE).map(|at| i32::from(seen[at]) * i32::from(weights[at] as i8)).sum::<i32>()
            };
            2 * (0..steps).map(step).sum::<i32>()
        };
        let sizes = [1, 2, 7, 16].into_iter().flat_map(|rows| [1, 5, 15, 16].map(|columns| (rows, columns)));
        for (steps, (rows, columns)) in
            [1, 5, 16].into_iter().flat_map(|steps| sizes.clone().map(move |of| (steps, of)))
        {
            let ([rows, columns], mut out) =
                ([rows, columns].map(|first| [first, MOST + 1 - first]), [7; 4 * MOST * MOST]);
            let mut check = |across: usize, down: usize, run: unsafe fn(&Operands, [*mut u32; 2])| {
                let width = MOST * (across + 1);
                let second = seen[rows[0] * APART..].as_ptr();
                let of = Operands { seen: [seen.as_ptr(), second], weights: weights.as_ptr(), apart: SIZE * width };
                out.fill(7);
                let to = out.as_mut_ptr();
                // SAFETY: the processor has matrices. Operands have as many rows as any, and so do both results.
                unsafe {
                    set(rows, columns, steps);
                    run(&of, [to, to.wrapping_add(rows[0] * width)]);
                    release();
                }
                let rows = rows[0] + down * rows[1];
                for (at, number) in out.iter().enumerate() {
                    let (row, column) = (at / width, at % width);
                    let is_there = column % MOST < columns[column / MOST] && row < rows;
                    let want = if is_there { want(row, column, width, steps) as u32 } else { 7 };
                    assert_eq!(*number, want, "{rows}, {columns:?}, {steps}: {row}, {column}");
                }
            };
            check(0, 0, products::<1, 1>);
            check(0, 1, products::<2, 1>);
            check(1, 0, products::<1, 2>);
            check(1, 1, products::<2, 2>);
        }

        struct Operands {
            seen: [*const u8; 2],
            weights: *const u32,
            apart: usize,
        }

        /// # Safety
        /// See [`multiply`], [`store`] and [`load`].
        unsafe fn products<const P: usize, const W: usize>(of: &Operands, to: [*mut u32; 2]) {
            let Operands { seen, weights, apart } = *of;
            // SAFETY: the caller's.
            unsafe {
                zero();
                multiply::<P, W>(seen, APART, weights, apart);
                store::<P, W>(to, apart);
                zero();
                load::<P, W>(to.map(<*mut u32>::cast_const), apart);
                multiply::<P, W>(seen, APART, weights, apart);
                store::<P, W>(to, apart);
            }
        }
    }
}
