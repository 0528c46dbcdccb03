//! Parts side by side along an axis.

use super::each;
use crate::cpu::for_each_level;
use crate::{Resources, Stopped, parallel};
use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// `out[o, k] = parts[p][o, k - start of p]`: each part has its bytes of an entry `o`, and of all entries as many as the
/// others. Fills all of `out`.
pub fn concat(parts: &[(&[u8], usize)], out: &mut [u8], resources: Resources<'_>) -> Result<(), Stopped> {
    if out.is_empty() {
        return Ok(());
    }
    let total: usize = parts.iter().map(|(_, row)| row).sum();
    if total <= SHORT_ROW {
        return parallel::split(out, total, resources, |first, out| {
            if weave(parts, first, out)? {
                return Ok(());
            }
            // So many that they stay in the caches until all parts are there.
            let entries = BLOCK / total;
            for (block, out) in out.chunks_mut(entries * total).enumerate() {
                let (first, mut at) = (first + block * entries, 0);
                for &(data, row) in parts.iter().filter(|(_, row)| *row > 0) {
                    let from = data.get(first * row..).ok_or(Stopped::OutOfRange)?.chunks_exact(row);
                    let to = out.chunks_exact_mut(total).filter_map(|to| to.get_mut(at..at + row));
                    each(row, from.zip(to).map(|(from, to)| (to, from)));
                    at += row;
                }
            }
            Ok(())
        });
    }
    // Finding the part of a byte takes as many steps as there are parts.
    let unit = parts.len();
    parallel::split(out, unit, resources, |first, mut out| {
        let (mut entry, mut skipped) = (first * unit / total, first * unit % total);
        let mut lookout = resources.lookout();
        while !out.is_empty() {
            for &(data, row) in parts {
                lookout.after(size_of_val(parts) / unit)?;
                let now = row.saturating_sub(skipped).min(out.len());
                let (to, rest) = out.split_at_mut(now);
                let at = entry * row + skipped.min(row);
                to.copy_from_slice(data.get(at..at + now).ok_or(Stopped::OutOfRange)?);
                lookout.after(now)?;
                (out, skipped) = (rest, skipped.saturating_sub(row));
            }
            entry += 1;
        }
        Ok(())
    })
}

/// Fills `out` with the entries of up to four parts, of one word each, from the entry `first` on. Returns false if they are
/// something else.
fn weave(parts: &[(&[u8], usize)], first: usize, out: &mut [u8]) -> Result<bool, Stopped> {
    let unit = parts.first().map_or(0, |(_, row)| *row);
    if !(2..=4).contains(&parts.len()) || parts.iter().any(|(_, row)| *row != unit) {
        return Ok(false);
    }
    let mut own: [&[u8]; 4] = Default::default();
    for (own, (data, row)) in own.iter_mut().zip(parts) {
        *own = data.get(first * row..).ok_or(Stopped::OutOfRange)?;
    }
    match unit {
        1 => weave_words::<[u8; 1]>(own, parts.len(), out),
        2 => weave_words::<[u8; 2]>(own, parts.len(), out),
        4 => weave_words::<[u8; 4]>(own, parts.len(), out),
        8 => weave_words::<[u8; 8]>(own, parts.len(), out),
        16 => weave_words::<[u8; 16]>(own, parts.len(), out),
        _ => return Ok(false),
    }
    Ok(true)
}

for_each_level! {
    /// Fills `out` with the first word of each of `count` parts, the second one of each, ..
    fn weave_words<T: Pod>(parts: [&[u8]; 4], count: usize, out: &mut [u8]) -> () = weave_words_body::<T>;
}

#[inline(always)]
fn weave_words_body<T: Pod>(parts: [&[u8]; 4], count: usize, out: &mut [u8]) {
    // Bytes in arrays are at any address.
    let ([a, b, c, d], out) = (parts.map(cast_slice::<u8, T>), cast_slice_mut::<u8, T>(out));
    match count {
        2 => {
            for ((to, a), b) in out.as_chunks_mut::<2>().0.iter_mut().zip(a).zip(b) {
                *to = [*a, *b];
            }
        }
        3 => {
            for (((to, a), b), c) in out.as_chunks_mut::<3>().0.iter_mut().zip(a).zip(b).zip(c) {
                *to = [*a, *b, *c];
            }
        }
        _ => {
            for ((((to, a), b), c), d) in out.as_chunks_mut::<4>().0.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *to = [*a, *b, *c, *d];
            }
        }
    }
}

/// Rows of [`concat`] up to this many bytes are copied part by part, longer ones row by row.
const SHORT_ROW: usize = 2048;

/// Bytes of short rows that are written together.
const BLOCK: usize = 16 << 10;
