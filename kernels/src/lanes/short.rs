//! Short lanes, of which few are side by side: going from one to the next takes longer than the work on one. So many of them
//! are brought side by side at a time.

use super::fold::{ABREAST, NARROW, PARTIALS};
use super::stored::{Elements, Storage};
use super::walk::{GROUP, Map, Measure};
use super::{Lanes, Number};
use crate::permute::turn;
use crate::positions::Dim;
use crate::{Lookout, Stop, Stopped};
use bytemuck::Pod;

/// Maximum number of elements of a short lane.
pub(super) const SHORT: usize = PARTIALS;

/// Room for the elements of [`ABREAST`] lanes.
pub(super) const ROOM: usize = SHORT * ABREAST;

/// Lanes of `len` elements, of which `abreast` are side by side until the next ones follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    pub(super) len: usize,
    pub(super) abreast: usize,
}

impl Short {
    /// If lanes are short, few are side by side, and there are so many that room for them pays.
    pub(super) fn of(lanes: &Lanes) -> Option<Short> {
        const FEW: usize = ABREAST / 2;
        match *lanes.along {
            _ if lanes.count < ABREAST => None,
            [Dim { size: len @ 2..=SHORT, steps: [abreast @ 1..=FEW] }] => Some(Short { len, abreast }),
            [] if lanes.len == 1 => Some(Short { len: 1, abreast: 1 }),
            _ => None,
        }
    }

    /// The number of lanes that are brought side by side at a time.
    pub(super) fn together(self) -> usize {
        ABREAST / self.abreast * self.abreast
    }

    /// Elements of a row of so many lanes.
    pub(super) fn width(count: usize) -> usize {
        count.next_multiple_of(NARROW)
    }

    /// Brings `count` lanes from `few` side by side to rows of `many`; or back, where several were side by side before.
    pub(super) fn bring<T: Number>(
        self,
        few: &mut [T; ROOM],
        many: &mut [T; ROOM],
        count: usize,
        back: bool,
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (len, width) = (self.len, Short::width(count));
        match self.abreast {
            1 => return turn(few, len, many, width, len, count, lookout),
            2 => self.bring_rows::<T, 2>(few, many, count, back),
            3 => self.bring_rows::<T, 3>(few, many, count, back),
            4 => self.bring_rows::<T, 4>(few, many, count, back),
            8 => self.bring_rows::<T, 8>(few, many, count, back),
            abreast => {
                for (k, group) in few.chunks_exact_mut(len * abreast).take(count / abreast).enumerate() {
                    for (few, many) in group.chunks_exact_mut(abreast).zip(many.chunks_exact_mut(width)) {
                        few.iter_mut().zip(many.iter_mut().skip(k * abreast)).for_each(|pair| assign(pair, back));
                    }
                }
            }
        }
        lookout.after(count * len * size_of::<T>())
    }

    /// As [`Short::bring`], where `N` are side by side.
    fn bring_rows<T: Number, const N: usize>(
        self,
        few: &mut [T; ROOM],
        many: &mut [T; ROOM],
        count: usize,
        back: bool,
    ) {
        let groups = few.as_chunks_mut::<N>().0.chunks_exact_mut(self.len).take(count / N);
        for (k, group) in groups.enumerate() {
            for (few, many) in group.iter_mut().zip(many.chunks_exact_mut(Short::width(count))) {
                many.as_chunks_mut().0.get_mut(k).into_iter().for_each(|many| assign((few, many), back));
            }
        }
    }
}

/// The second becomes the first, or the other way round.
#[inline(always)]
fn assign<T: Copy>((a, b): (&mut T, &mut T), back: bool) {
    if back { *a = *b } else { *b = *a }
}

/// Writes the measures of short lanes to `out`, from the lane with the number `first` on.
pub(super) fn measure_short<T: Number, V: Pod>(
    measure: &dyn Measure<T, Value = V>,
    data: Elements<'_, T>,
    short: Short,
    first: usize,
    to: Storage<V>,
    mut out: &mut [u8],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (len, mut lookout) = (short.len, Lookout::new(stop));
    let (mut few, mut many, mut values) = ([T::ZERO; ROOM], [T::ZERO; ROOM], [V::zeroed(); ABREAST]);
    // Of the first lanes that are side by side, some may be before the first one here.
    let mut before = first % short.abreast;
    let mut next = first - before;
    while !out.is_empty() {
        let count = short.together().min((before + out.len() / to.size).next_multiple_of(short.abreast));
        data.range(next * len..(next + count) * len).load(&mut few);
        let (width, some) = (Short::width(count), values.get_mut(..count).ok_or(Stopped::Misfit)?);
        let mut across = None;
        lookout.after(count * len * size_of::<T>())?;
        if short.abreast > 1 {
            short.bring(&mut few, &mut many, count, false, &mut lookout)?;
            across = measure.across(width, len, &many, some, stop);
            if across.is_none() {
                turn(&many, width, &mut few, len, count, len, &mut lookout)?;
            }
        }
        if let Some(outcome) = across {
            outcome?;
        } else {
            for (lanes, values) in few.chunks(GROUP * len).zip(some.chunks_mut(GROUP)) {
                measure.each(len, lanes.get(..values.len() * len).ok_or(Stopped::Misfit)?, values, stop)?;
            }
        }
        let (now, rest) = out.split_at_mut(out.len().min((count - before) * to.size));
        to.store(some.get(before..before + now.len() / to.size).ok_or(Stopped::Misfit)?, now);
        (next, before, out) = (next + count, 0, rest);
    }
    Ok(())
}

/// Fills the short lanes of `out` from those of `data`.
pub(super) fn map_short<T: Number>(
    map: &dyn Map<T>,
    data: Elements<'_, T>,
    short: Short,
    to: Storage<T>,
    out: &mut [u8],
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let (len, mut lookout) = (short.len, Lookout::new(stop));
    let (mut few, mut many) = (&mut [T::ZERO; ROOM], &mut [T::ZERO; ROOM]);
    let elements = short.together() * len;
    for (k, out) in out.chunks_mut(elements * to.size).enumerate() {
        let (first, count) = (k * elements, out.len() / to.size / len);
        data.range(first..first + count * len).load(few);
        lookout.after(count * len * size_of::<T>())?;
        if short.abreast == 1 {
            let (lanes, results) = (few.get(..count * len), many.get_mut(..count * len));
            let (lanes, results) = lanes.zip(results).ok_or(Stopped::Misfit)?;
            map.each(len, lanes, results, stop)?;
            to.store(results, out);
            continue;
        }
        short.bring(few, many, count, false, &mut lookout)?;
        let width = Short::width(count);
        let (rows, results) = (many.get(..width * len), few.get_mut(..width * len));
        let (rows, results) = rows.zip(results).ok_or(Stopped::Misfit)?;
        if let Some(outcome) = map.across(width, len, rows, results, stop) {
            outcome?;
        } else {
            turn(rows, width, results, len, count, len, &mut lookout)?;
            let (lanes, results) = (few.get(..count * len), many.get_mut(..count * len));
            let (lanes, results) = lanes.zip(results).ok_or(Stopped::Misfit)?;
            map.each(len, lanes, results, stop)?;
            turn(results, len, few, width, len, count, &mut lookout)?;
        }
        std::mem::swap(&mut few, &mut many);
        short.bring(few, many, count, true, &mut lookout)?;
        to.store(few.get(..count * len).ok_or(Stopped::Misfit)?, out);
    }
    Ok(())
}
