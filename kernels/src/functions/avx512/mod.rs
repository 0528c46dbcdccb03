//! Functions of `f32` in vectors of AVX-512, with the bits of the plain ones: the operations are theirs, or exact ones in
//! their place. Several vectors are computed at a time, since the compiler puts one behind the other, and each waits for
//! itself then. What plain code selects is a table here, and powers of two have an instruction.

mod activation;
mod exponential;
mod some;

use some::Some16;

use super::{Known, exp, gelu, gelu_tanh, tanh};

/// Computes a row of a function. The processor has level 4 at least.
pub(super) fn row(known: Known, x: &[f32], out: &mut [f32]) {
    // SAFETY: as the caller promises.
    #[allow(unsafe_code)]
    unsafe {
        match known {
            Known::Exp => exp_row(x, out),
            Known::Tanh => tanh_row(x, out),
            Known::Gelu => gelu_row(x, out),
            Known::GeluTanh => gelu_tanh_row(x, out),
        }
    }
}

/// Rows by groups of vectors, and by single ones at the end. Where a group isn't ordinary, its elements are computed plainly.
macro_rules! rows {
    ($($row:ident: $vectors:literal of $some:path, or $plain:path;)*) => {$(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,fma")]
        fn $row(x: &[f32], out: &mut [f32]) {
            let ((groups, rest), (outs, out)) = (x.as_chunks::<{ 16 * $vectors }>(), out.as_chunks_mut::<{ 16 * $vectors }>());
            for (x, out) in groups.iter().zip(outs) {
                match $some(Some16::<$vectors>::load(x)) {
                    Some(y) => y.store(out),
                    None => x.iter().zip(out).for_each(|(x, out)| *out = $plain(*x)),
                }
            }
            for (x, out) in rest.chunks(16).zip(out.chunks_mut(16)) {
                match $some(Some16::<1>::load(x)) {
                    Some(y) => y.store(out),
                    None => x.iter().zip(out).for_each(|(x, out)| *out = $plain(*x)),
                }
            }
        }
    )*};
}

rows! {
    exp_row: 4 of exponential::exp, or exp;
    tanh_row: 3 of exponential::tanh, or tanh;
    gelu_row: 4 of activation::gelu, or gelu;
    gelu_tanh_row: 4 of activation::gelu_tanh, or gelu_tanh;
}
