//! What bent windows of an image show: each tap is moved by an offset, and reads between elements.

use super::fold::Summand;
use super::windows::Axis;
use super::{Resources, Stopped, parallel, volume};
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
        let taps = volume(1, self.axes.iter().map(|axis| &axis.kernel));
        let positions = volume(1, self.axes.iter().map(|axis| &axis.output));
        let size = volume(1, self.axes.iter().map(|axis| &axis.input));
        let corners = 1u64.checked_shl(u32::try_from(self.axes.len()).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
        let cost = Self::work(self.axes, 1) / volume(taps, [&positions]).max(1);
        let row = positions * size_of::<T>();
        parallel::pieces(cast_slice_mut(columns), size_of::<T>(), row, cost, resources, |row, start, out| {
            let (channel, tap) = (row / taps.max(1), row % taps.max(1));
            let group = channel.checked_div(self.channels).ok_or(Stopped::Misfit)? * taps + tap;
            let apart = self.axes.len() * positions;
            let offsets = self.offsets.get(group * apart..(group + 1) * apart).ok_or(Stopped::Misfit)?;
            let plane = self.image.get(channel * size..(channel + 1) * size).ok_or(Stopped::Misfit)?;
            let first = start / size_of::<T>();
            let mut places = Places::new(self.axes, tap, first);
            let mut lookout = resources.lookout();
            for (at, out) in cast_slice_mut::<u8, T>(out).iter_mut().enumerate() {
                lookout.after(cost * size_of::<S>())?;
                let at = first + at;
                let offset = |axis: usize| offsets.get(axis * positions + at).map_or(0.0, |offset| offset.add(0.0));
                let ends = places.ends(offset);
                let mut sum = 0.0;
                for corner in 0..corners {
                    let mut bits = corner;
                    let place = ends.iter().zip(self.axes).rev().try_fold((0, 1, 1.0), |place, (ends, axis)| {
                        let ((element, unit, weight), end) = (place, ends.get((bits & 1) as usize)?);
                        bits >>= 1;
                        end.map(|(own, part)| (element + own * unit, unit * axis.input, weight * part))
                    });
                    if let Some((element, _, weight)) = place {
                        sum += plane.get(element).map_or(0.0, |element| weight * element.add(0.0));
                    }
                }
                let factor = self.mask.and_then(|mask| mask.get(group * positions + at));
                *out = T::of(factor.map_or(sum, |factor| sum * factor.add(0.0)));
                places.next();
            }
            Ok(())
        })
    }
}

/// Where a tap is without offsets, position by position.
struct Places<'a> {
    /// For each axis its position, and its tap.
    at: SmallVec<[(&'a Axis, usize, usize); 3]>,
}

impl<'a> Places<'a> {
    fn new(axes: &'a [Axis], mut tap: usize, mut position: usize) -> Places<'a> {
        let mut at: SmallVec<[_; 3]> = axes.iter().map(|axis| (axis, 0, 0)).collect();
        for (axis, own, own_tap) in at.iter_mut().rev() {
            (*own, position) = (position % axis.output.max(1), position / axis.output.max(1));
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

    #[test]
    fn what_does_not_fit() {
        let axes = [axis(2, 1, 1, 1, 1, 0)];
        let image = [1f32, 2.0];
        let deformed = Deformed { axes: &axes, image: &image, channels: 1, offsets: &[0.0], mask: None };
        assert_eq!(deformed.sample(&mut [0f32; 2], ONE), Err(Stopped::Misfit));
        assert_eq!(Deformed { channels: 0, ..deformed }.sample(&mut [0f32], ONE), Err(Stopped::Misfit));
        assert_eq!(Deformed { offsets: &[], ..deformed }.sample(&mut [0f32], ONE), Err(Stopped::Misfit));
    }
}
