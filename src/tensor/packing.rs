//! Elements of fewer than 8 bits: one byte each in memory, packed in files.

use crate::dtype::DType;
use crate::error::{Error, Result};

/// Bytes of elements in a file: those of fewer than 8 bits are packed, and the last byte is padded.
pub(crate) fn packed_size(dtype: DType, count: usize) -> u64 {
    (count as u128 * dtype.bits() as u128).div_ceil(8) as u64
}

/// Elements of fewer than 8 bits, one byte each, from a stream of bits that starts at the lowest of the first byte.
pub(crate) fn unpack(dtype: DType, count: usize, packed: &[u8]) -> Result<Vec<u8>> {
    let bits = dtype.bits();
    let mut out = vec![0; count];
    for (k, to) in out.iter_mut().enumerate() {
        let at = k * bits;
        let pair = |i: usize| u16::from(packed.get(i).copied().unwrap_or(0));
        let word = pair(at / 8) | pair(at / 8 + 1) << 8;
        let code = (word >> (at % 8)) as u8 & ((1 << bits) - 1);
        *to = extended(dtype, code);
    }
    let used = count * bits % 8;
    match packed.last() {
        Some(&last) if used != 0 && last >> used != 0 => {
            Err(Error::model(format!("the bits after the last of {count} {dtype} elements are not 0")))
        }
        _ => Ok(out),
    }
}

/// A code of a sub-byte type as a byte: signed integers are sign-extended.
pub(crate) fn extended(dtype: DType, code: u8) -> u8 {
    let unused = 8 - dtype.bits() as u32;
    match dtype {
        DType::Int4 | DType::Int2 => ((code << unused).cast_signed() >> unused).cast_unsigned(),
        _ => code,
    }
}

pub(crate) fn pack(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let bits = dtype.bits();
    if bits >= 8 {
        return bytes.to_vec();
    }
    let mut packed = vec![0; packed_size(dtype, bytes.len()) as usize];
    for (k, &byte) in bytes.iter().enumerate() {
        let at = k * bits;
        let word = u16::from(byte & ((1 << bits) - 1)) << (at % 8);
        for (i, part) in word.to_le_bytes().into_iter().enumerate() {
            if let Some(to) = packed.get_mut(at / 8 + i) {
                *to |= part;
            }
        }
    }
    packed
}
