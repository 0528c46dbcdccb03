//! Deformed windows of an image: an offset moves each tap, which then reads between elements.

use super::fold::Summand;
use super::windows::Axis;
use super::{Lookout, Resources, Stopped, parallel, volume};
use bytemuck::cast_slice_mut;
use smallvec::SmallVec;

/// The channels of an image, and how windows of it are bent.
#[derive(Debug, Clone, Copy)]
pub struct Deformed<'a, S> {
    pub axes: &'a [Axis],
    pub image: &'a [S],
    /// Channels that share offsets.
    pub channels: usize,
    /// `[groups of channels, taps, axes, positions]`
    pub offsets: &'a [S],
    /// What is read times this, `[groups of channels, taps, positions]`.
    pub mask: Option<&'a [S]>,
}

/// The elements at both sides of a place along an axis, with their weights; none outside of the image or without weight.
type Ends = [Option<(usize, f64)>; 2];

impl<S: Summand<Sum = f64>> Deformed<'_, S> {
    /// Steps of [`Deformed::sample`] for so many channels; saturates.
    pub fn work(axes: &[Axis], channels: usize) -> usize {
        let corners = u32::try_from(axes.len()).ok().and_then(|axes| 1usize.checked_shl(axes)).unwrap_or(usize::MAX);
        volume(corners, axes.iter().flat_map(|axis| [&axis.kernel, &axis.output]).chain([&channels]))
    }

    /// Writes the columns `[channels, taps, positions]`: linear interpolation in float64, rounded once. Outside of the image
    /// are zeros; a place that is no number is outside.
    pub fn sample<T: Summand<Sum = f64>>(&self, columns: &mut [T], resources: Resources<'_>) -> Result<(), Stopped> {
        let size = volume(1, self.axes.iter().map(|axis| &axis.input));
        let [taps, positions] = [|axis: &Axis| axis.kernel, |axis: &Axis| axis.output]
            .map(|of| self.axes.iter().map(of).fold(1, usize::saturating_mul));
        let cost = Self::work(self.axes, 1) / volume(taps, [&positions]).max(1);
        let of_channel = volume(taps, [&positions]);
        let unit = of_channel.saturating_mul(size_of::<T>());
        if unit == 0 {
            return Ok(());
        }
        parallel::split_by(cast_slice_mut(columns), unit, cost, resources, |first, out| {
            let (mut lookout, mut channel) = (resources.lookout(), first);
            let mut out = cast_slice_mut::<u8, T>(out);
            // Channels of one group are read at the same places.
            while !out.is_empty() {
                let group = channel.checked_div(self.channels).ok_or(Stopped::Misfit)?;
                let count = ((group + 1) * self.channels - channel).min(out.len() / of_channel);
                if count == 0 {
                    return Err(Stopped::Misfit);
                }
                let (own, rest) = std::mem::take(&mut out).split_at_mut(count * of_channel);
                let planes = self.image.get(channel * size..(channel + count) * size).ok_or(Stopped::Misfit)?;
                for tap in 0..taps {
                    let some = Tap { group, tap, taps, positions };
                    self.sample_tap(some, planes, size, own, &mut lookout)?;
                }
                (out, channel) = (rest, channel + count);
            }
            Ok(())
        })
    }

    /// Writes what a tap reads of some channels of a group.
    fn sample_tap<T: Summand<Sum = f64>>(
        &self,
        Tap { group, tap, taps, positions }: Tap,
        planes: &[S],
        size: usize,
        columns: &mut [T],
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let (row, apart) = (group * taps + tap, self.axes.len() * positions);
        let offsets = self.offsets.get(row * apart..(row + 1) * apart).ok_or(Stopped::Misfit)?;
        let mask = self.mask.map(|mask| mask.get(row * positions..(row + 1) * positions).ok_or(Stopped::Misfit));
        let (mask, mut places) = (mask.transpose()?, Places::new(self.axes, tap));
        let ends = |places: &Places<'_>, at: usize| {
            places.ends(|axis| offsets.get(axis * positions + at).map_or(0.0, |offset| offset.add(0.0)))
        };
        let value =
            |at: usize, sum: f64| T::of(mask.and_then(|mask| mask.get(at)).map_or(sum, |factor| sum * factor.add(0.0)));
        let planes = planes.chunks_exact(size.max(1));
        let read = |plane: &[S], (element, weight): (usize, f64)| {
            plane.get(element).map_or(0.0, |element| weight * element.add(0.0))
        };
        let of_each = 1usize.checked_shl(self.axes.len() as u32).filter(|corners| *corners <= CORNERS);
        let Some(of_each) = of_each else {
            // Too many to be kept.
            for at in 0..positions {
                let ends = ends(&places, at);
                for (plane, column) in planes.clone().zip(columns.chunks_exact_mut(taps * positions)) {
                    let mut sum = 0.0;
                    corners_of(&ends, self.axes, |corner| sum += read(plane, corner), lookout)?;
                    column.get_mut(tap * positions + at).into_iter().for_each(|to| *to = value(at, sum));
                }
                places.next();
            }
            return Ok(());
        };
        let mut corners = SmallVec::<[(usize, f64); CORNERS]>::new();
        let mut parts = SmallVec::<[usize; CORNERS]>::new();
        for start in (0..positions).step_by(CORNERS / of_each) {
            corners.clear();
            parts.clear();
            for at in start..positions.min(start + CORNERS / of_each) {
                let from = corners.len();
                corners_of(&ends(&places, at), self.axes, |corner| corners.push(corner), lookout)?;
                parts.push(corners.len() - from);
                places.next();
            }
            for (plane, column) in planes.clone().zip(columns.chunks_exact_mut(taps * positions)) {
                lookout.after(corners.len() * size_of::<f64>())?;
                let (mut rest, out) = (&*corners, column.get_mut(tap * positions + start..).unwrap_or_default());
                for ((at, out), count) in (start..).zip(out).zip(&parts) {
                    let (own, others) = rest.split_at(*count);
                    *out = value(at, own.iter().fold(0.0, |sum, corner| sum + read(plane, *corner)));
                    rest = others;
                }
            }
        }
        Ok(())
    }
}

/// Elements that are read for each channel at a time: they stay in the nearest cache.
const CORNERS: usize = 256;

/// A tap of the windows of a group of channels.
#[derive(Clone, Copy)]
struct Tap {
    group: usize,
    tap: usize,
    taps: usize,
    positions: usize,
}

/// The elements around a place, with their weights.
fn corners_of(
    ends: &[Ends],
    axes: &[Axis],
    mut found: impl FnMut((usize, f64)),
    lookout: &mut Lookout<'_>,
) -> Result<(), Stopped> {
    let corners = 1u64.checked_shl(u32::try_from(axes.len()).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
    for corner in 0..corners {
        lookout.after(size_of::<f64>())?;
        let mut bits = corner;
        let place = ends.iter().zip(axes).rev().try_fold((0, 1, 1.0), |place, (ends, axis)| {
            let ((element, unit, weight), end) = (place, ends.get((bits & 1) as usize)?);
            bits >>= 1;
            end.map(|(own, part)| (element + own * unit, unit * axis.input, weight * part))
        });
        if let Some((element, _, weight)) = place {
            found((element, weight));
        }
    }
    Ok(())
}

/// Where a tap is without offsets, position by position.
struct Places<'a> {
    /// For each axis its position, and its tap.
    at: SmallVec<[(&'a Axis, usize, usize); 3]>,
}

impl<'a> Places<'a> {
    fn new(axes: &'a [Axis], mut tap: usize) -> Places<'a> {
        let mut at: SmallVec<[_; 3]> = axes.iter().map(|axis| (axis, 0, 0)).collect();
        for (axis, _, own_tap) in at.iter_mut().rev() {
            (*own_tap, tap) = (tap % axis.kernel.max(1), tap / axis.kernel.max(1));
        }
        Places { at }
    }

    fn ends(&self, offset: impl Fn(usize) -> f64) -> SmallVec<[Ends; 3]> {
        let ends = |(k, (axis, at, tap)): (usize, &(&Axis, usize, usize))| {
            let place = (at * axis.stride + tap * axis.dilation) as f64 - axis.pad as f64 + offset(k);
            let low = place.floor();
            let part = place - low;
            let end = |place: f64, weight: f64| {
                let inside = place >= 0.0 && place < axis.input as f64 && weight > 0.0;
                inside.then_some((place as usize, weight))
            };
            [end(low, 1.0 - part), end(low + 1.0, part)]
        };
        self.at.iter().enumerate().map(ends).collect()
    }

    fn next(&mut self) {
        for (axis, at, _) in self.at.iter_mut().rev() {
            *at = if *at + 1 < axis.output { *at + 1 } else { 0 };
            if *at > 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(input: usize, output: usize, kernel: usize, stride: usize, dilation: usize, pad: usize) -> Axis {
        Axis { input, output, kernel, stride, dilation, pad }
    }

    const ONE: Resources<'static> = Resources { threads: 1, stop: None };

    #[test]
    fn between_elements() {
        let axes = [axis(3, 4, 1, 1, 1, 0)];
        let sample = |offsets: [f32; 4], mask: Option<&[f32]>| {
            let mut columns = [f32::NAN; 4];
            let deformed = Deformed { axes: &axes, image: &[1.0, 2.0, 4.0], channels: 1, offsets: &offsets, mask };
            deformed.sample(&mut columns, ONE).unwrap();
            columns
        };
        assert_eq!(sample([0.0; 4], None), [1.0, 2.0, 4.0, 0.0]);
        assert_eq!(sample([0.5, 0.25, 0.5, -0.5], None), [1.5, 2.5, 2.0, 2.0]);
        assert_eq!(sample([-0.5, -1.5, -2.5, -9.0], None), [0.5, 0.5, 0.5, 0.0]);
        assert_eq!(sample([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30], None), [0.0; 4]);
        assert_eq!(sample([0.0; 4], Some(&[2.0, 0.5, 0.0, 1.0])), [2.0, 1.0, 0.0, 0.0]);
    }

    /// An element without weight isn't read: infinity times 0 would be NaN.
    #[test]
    fn elements_without_weight() {
        let (axes, mut columns) = ([axis(2, 1, 1, 1, 1, 0)], [0f32]);
        let image = [1.0, f32::INFINITY];
        Deformed { axes: &axes, image: &image, channels: 1, offsets: &[0.0], mask: None }
            .sample(&mut columns, ONE)
            .unwrap();
        assert_eq!(columns, [1.0]);
    }

    /// Two axes, two taps along each, channels in two groups.
    #[test]
    fn groups_and_taps() {
        let axes = [axis(3, 2, 2, 1, 1, 0), axis(4, 2, 2, 2, 1, 1)];
        let image: Vec<f32> = (0..3 * 4 * 4).map(|k| (k * k % 37) as f32).collect();
        let offsets: Vec<f32> = (0..2 * 4 * 2 * 4).map(|k| ((k * 29 % 17) as f32 - 8.0) / 4.0).collect();
        let mut columns = vec![0f64; 4 * 4 * 4];
        Deformed { axes: &axes, image: &image, channels: 2, offsets: &offsets, mask: None }
            .sample(&mut columns, ONE)
            .unwrap();
        for (at, value) in columns.into_iter().enumerate() {
            let (channel, tap, position) = (at / 16, at / 4 % 4, at % 4);
            let offset = |axis: usize| f64::from(offsets[(((channel / 2) * 4 + tap) * 2 + axis) * 4 + position]);
            let y = (position / 2 + tap / 2) as f64 + offset(0);
            let x = (position % 2 * 2 + tap % 2) as f64 - 1.0 + offset(1);
            let mut want = 0.0;
            for (row, column) in (0..3).flat_map(|row| (0..4).map(move |column| (row, column))) {
                let weight = |place: f64, at: usize| (1.0 - (place - at as f64).abs()).max(0.0);
                want += weight(y, row) * weight(x, column) * f64::from(image[channel * 12 + row * 4 + column]);
            }
            assert!((value - want).abs() < 1e-12, "{at}: {value} and not {want}");
        }
    }

    /// More places than are read together, in channels of two groups, on some threads.
    #[test]
    fn many_places() {
        let axes = [axis(300, 290, 2, 1, 3, 0)];
        let image: Vec<f32> = (0..4 * 300).map(|k| (k * k % 101) as f32).collect();
        let offsets: Vec<f32> = (0..2 * 2 * 290).map(|k| ((k * 29 % 17) as f32 - 8.0) / 4.0).collect();
        let mask: Vec<f32> = (0..2 * 2 * 290).map(|k| (k % 3) as f32).collect();
        let want = |at: usize| {
            let (channel, tap, position) = (at / 580, at / 290 % 2, at % 290);
            let row = (channel / 2 * 2 + tap) * 290 + position;
            let place = (position + 3 * tap) as f32 + offsets[row];
            let (low, part) = (place.floor(), place - place.floor());
            let read = |place: f32| {
                if (0.0..300.0).contains(&place) { image[channel * 300 + place as usize] } else { 0.0 }
            };
            (read(low) * (1.0 - part) + read(low + 1.0) * part) * mask[row]
        };
        let deformed = Deformed { axes: &axes, image: &image, channels: 2, offsets: &offsets, mask: Some(&mask) };
        for threads in [1, 3] {
            crate::testing::on_threads(threads, || {
                let mut columns = vec![f32::NAN; 4 * 580];
                deformed.sample(&mut columns, Resources { threads, stop: None }).unwrap();
                assert!(columns.iter().enumerate().all(|(at, got)| *got == want(at)));
            });
        }
    }

    /// In the middle of more axes than are kept at a time.
    #[test]
    fn many_axes() {
        let (axes, image) = ([axis(2, 1, 1, 1, 1, 0); 9], (0..512u16).map(f32::from).collect::<Vec<_>>());
        let mut columns = [f32::NAN];
        Deformed { axes: &axes, image: &image, channels: 1, offsets: &[0.5; 9], mask: None }
            .sample(&mut columns, ONE)
            .unwrap();
        assert_eq!(columns, [255.5]);
    }

    #[test]
    fn what_does_not_fit() {
        let axes = [axis(2, 1, 1, 1, 1, 0)];
        let image = [1f32, 2.0];
        let deformed = Deformed { axes: &axes, image: &image, channels: 1, offsets: &[0.0], mask: None };
        assert_eq!(deformed.sample(&mut [0f32; 2], ONE), Err(Stopped::Misfit));
        assert_eq!(Deformed { channels: 0, ..deformed }.sample(&mut [0f32], ONE), Err(Stopped::Misfit));
        let wide = [axis(2, 2, 1, 1, 1, 0)];
        let deformed_wide = Deformed { axes: &wide, offsets: &[0.0; 2], ..deformed };
        assert_eq!(deformed_wide.sample(&mut [0f32; 3], ONE), Err(Stopped::Misfit));
        assert_eq!(Deformed { offsets: &[], ..deformed }.sample(&mut [0f32], ONE), Err(Stopped::Misfit));
    }
}
