//! Elementwise functions, tables and sums of bytes that stand for numbers.

use crate::cpu::for_each_level;
use crate::quotients::{Divided, write};

/// What bytes stand for: `((byte ^ flip) - zero) * scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unsigned {
    /// A normal number above 0, as are its products with 255.
    pub scale: f32,
    pub zero: f32,
    /// 128 for bytes of int8.
    pub flip: u8,
}

impl Unsigned {
    /// What makes such bytes of numbers: what is flipped is an integer with a sign.
    fn divided(self) -> Divided {
        let least = -f32::from(self.flip);
        Divided { scale: self.scale, zero: self.zero + least, limits: [least, least + 255.0] }
    }
}

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    Add,
    Mul,
}

/// The function of pairs of bytes, quantized: the steps of [`dequantize`](crate::quantize::dequantize), the function and
/// [`quantize`](crate::quantize::quantize), bit by bit. The scales are those of both operands and of the output.
pub fn pairs(pair: Pair, [a, b]: [&[u8]; 2], scales: [Unsigned; 3], out: &mut [u8]) {
    let [of_a, of_b, to] = scales;
    let both = a.iter().zip(b);
    match pair {
        Pair::Add => write(both.map(|(a, b)| number(*a, of_a) + number(*b, of_b)), to.divided(), out),
        Pair::Mul => write(both.map(|(a, b)| number(*a, of_a) * number(*b, of_b)), to.divided(), out),
    }
}

/// As [`pairs`], of bytes and floats.
pub fn with_floats(pair: Pair, bytes: &[u8], floats: &[f32], [of, to]: [Unsigned; 2], out: &mut [u8]) {
    let both = bytes.iter().zip(floats);
    match pair {
        Pair::Add => write(both.map(|(byte, float)| number(*byte, of) + float), to.divided(), out),
        Pair::Mul => write(both.map(|(byte, float)| number(*byte, of) * float), to.divided(), out),
    }
}

#[inline(always)]
fn number(byte: u8, of: Unsigned) -> f32 {
    (f32::from(byte ^ of.flip) - of.zero) * of.scale
}

/// Places that bytes are added up at.
pub const PLACES: usize = 16;

for_each_level! {
    /// Adds what bytes stand for to the sums of their places: number i to that with the number i mod 16. Up to 2^21 of them,
    /// sums are exact: all are multiples of the last bit of the scale, and less than 2^32 of these.
    pub fn add_up<>(bytes: &[u8], of: Unsigned, sums: &mut [f64; PLACES]) -> () = add_up_body;
}

#[inline(always)]
fn add_up_body(bytes: &[u8], of: Unsigned, sums: &mut [f64; PLACES]) {
    let (blocks, rest) = bytes.as_chunks::<PLACES>();
    // Copies stay in registers. Two of them: none waits for its own result.
    let (mut even, mut odd) = (*sums, [0.0; PLACES]);
    let (pairs, last) = blocks.as_chunks::<2>();
    for [first, second] in pairs {
        add_block(&mut even, first, of);
        add_block(&mut odd, second, of);
    }
    for block in last {
        add_block(&mut even, block, of);
    }
    for (sum, byte) in even.iter_mut().zip(rest) {
        *sum += f64::from(number(*byte, of));
    }
    for ((to, even), odd) in sums.iter_mut().zip(&even).zip(&odd) {
        *to = even + odd;
    }
}

#[inline(always)]
fn add_block(sums: &mut [f64; PLACES], block: &[u8; PLACES], of: Unsigned) {
    for (sum, byte) in sums.iter_mut().zip(block) {
        *sum += f64::from(number(*byte, of));
    }
}

/// `out[i] = table[bytes[i]]`
pub fn look_up(table: &[u8; 256], bytes: &[u8], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::level() >= 4 && is_x86_feature_detected!("avx512vbmi") {
        // SAFETY: the processor has these features.
        #[allow(unsafe_code)]
        return unsafe { x86::look_up(table, bytes, out) };
    }
    look_up_each(table, bytes, out);
}

fn look_up_each(table: &[u8; 256], bytes: &[u8], out: &mut [u8]) {
    for (out, byte) in out.iter_mut().zip(bytes) {
        *out = table.get(usize::from(*byte)).copied().unwrap_or(0);
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)] // loads and stores of vectors
mod x86 {
    use std::arch::x86_64::*;

    /// The table is in four registers, of which an instruction looks up two.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    pub(super) fn look_up(table: &[u8; 256], bytes: &[u8], out: &mut [u8]) {
        const WIDTH: usize = 64;
        // SAFETY: each is a quarter of the table.
        let part = |at: usize| unsafe { _mm512_loadu_si512(table.as_ptr().wrapping_add(at * WIDTH).cast()) };
        let [a, b, c, d] = [part(0), part(1), part(2), part(3)];
        let (vectors, rest) = bytes.as_chunks::<WIDTH>();
        let (to, last) = out.split_at_mut((vectors.len() * WIDTH).min(out.len()));
        for (to, from) in to.as_chunks_mut::<WIDTH>().0.iter_mut().zip(vectors) {
            // SAFETY: there are as many bytes.
            let at = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
            let (low, high) = (_mm512_permutex2var_epi8(a, at, b), _mm512_permutex2var_epi8(c, at, d));
            let found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high);
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), found) };
        }
        super::look_up_each(table, rest, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantize::{dequantize_part, quantize_part};
    use crate::testing::{at_each_level, sized};

    #[test]
    fn pairs_as_floats() {
        let a: Vec<u8> = (0..=255).flat_map(|a| [a; 256]).collect();
        let b: Vec<u8> = (0..=255).cycle().take(a.len()).collect();
        for signed in [[false; 3], [true; 3], [true, false, false], [false, true, true]] {
            for (scales, zeros) in [
                ([0.02f32, 0.013, 0.031], [3.0f32, 100.0, 77.0]),
                ([1.0, 1.0, 2.0], [0.0, 0.0, 0.0]),
                ([1e36, 1e36, 0.1], [0.0, 127.0, 5.0]),
                ([1e-30, 1e-30, 3e-31], [9.0, 9.0, 1.0]),
            ] {
                for pair in [Pair::Add, Pair::Mul] {
                    let [mut x, mut y] = [vec![0f32; a.len()], vec![0f32; a.len()]];
                    dequantize_part(&a, signed[0], [scales[0], zeros[0]], &mut x);
                    dequantize_part(&b, signed[1], [scales[1], zeros[1]], &mut y);
                    for (x, y) in x.iter_mut().zip(&y) {
                        *x = if pair == Pair::Add { *x + *y } else { *x * *y };
                    }
                    let mut want = vec![0; a.len()];
                    quantize_part(&x, signed[2], [scales[2], zeros[2]], &mut want);
                    let of = |k: usize| match signed[k] {
                        true => Unsigned { scale: scales[k], zero: zeros[k] + 128.0, flip: 0x80 },
                        false => Unsigned { scale: scales[k], zero: zeros[k], flip: 0 },
                    };
                    at_each_level(|| {
                        let mut out = vec![0; a.len()];
                        pairs(pair, [&a, &b], [of(0), of(1), of(2)], &mut out);
                        assert!(out == want, "{pair:?}, {scales:?}, {zeros:?}, {signed:?}");
                    });
                }
            }
        }
    }

    /// NaN and infinities are among the floats.
    #[test]
    fn bytes_with_floats() {
        let bytes: Vec<u8> = (0..=255).cycle().take(sized(4000, 300)).collect();
        let float = |k: usize| [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0].get(k % 97).copied();
        let floats: Vec<f32> = (0..bytes.len()).map(|k| float(k).unwrap_or((k % 61) as f32 / 7.0 - 4.0)).collect();
        for signed in [[false; 2], [true; 2], [true, false], [false, true]] {
            let (scales, zeros) = ([0.03f32, 0.025], [9.0f32, 70.0]);
            let of = |k: usize| match signed[k] {
                true => Unsigned { scale: scales[k], zero: zeros[k] + 128.0, flip: 0x80 },
                false => Unsigned { scale: scales[k], zero: zeros[k], flip: 0 },
            };
            for pair in [Pair::Add, Pair::Mul] {
                let (mut x, mut want) = (vec![0f32; bytes.len()], vec![0; bytes.len()]);
                dequantize_part(&bytes, signed[0], [scales[0], zeros[0]], &mut x);
                for (x, y) in x.iter_mut().zip(&floats) {
                    *x = if pair == Pair::Add { *x + *y } else { *x * *y };
                }
                quantize_part(&x, signed[1], [scales[1], zeros[1]], &mut want);
                at_each_level(|| {
                    let mut out = vec![0; bytes.len()];
                    with_floats(pair, &bytes, &floats, [of(0), of(1)], &mut out);
                    assert!(out == want, "{pair:?}, {signed:?}");
                });
            }
        }
    }

    #[test]
    fn sums_of_places() {
        for flip in [0, 0x80] {
            let of = Unsigned { scale: 0.1, zero: 30.0, flip };
            for len in [0, 1, 15, 16, 17, 32, 47, sized(5000, 100)] {
                let bytes: Vec<u8> = (0..len).map(|k| (k * k * 7 % 251) as u8).collect();
                let mut want = [1.0; PLACES];
                for (k, byte) in bytes.iter().enumerate() {
                    want[k % PLACES] += f64::from((f32::from(byte ^ flip) - 30.0) * 0.1);
                }
                at_each_level(|| {
                    let mut sums = [1.0; PLACES];
                    add_up(&bytes, of, &mut sums);
                    assert_eq!(sums, want, "{len}");
                });
            }
        }
    }

    #[test]
    fn tables() {
        let table: [u8; 256] = std::array::from_fn(|at| (at * at / 7 + at) as u8);
        let bytes: Vec<u8> = (0..1000).map(|at: usize| (at * 91 / 5) as u8).collect();
        at_each_level(|| {
            for len in [0, 1, 63, 64, 65, 1000] {
                let mut out = vec![0; len];
                look_up(&table, &bytes[..len], &mut out);
                assert!(out.iter().zip(&bytes).all(|(out, byte)| *out == table[usize::from(*byte)]));
            }
        });
    }
}
