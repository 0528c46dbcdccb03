//! The elements of a resized image: what Resize and Upsample share.

use super::coordinates::{Resized, Transform};
use super::with_samples;
use crate::ops::prelude::*;
use bytemuck::allocation::pod_collect_to_vec;
use kernels::resample::{self, Axis as Along, Filter, Sample, Span, Window};

/// Which entry is the nearest to a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nearest {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
    /// The one before, and the one after along an axis that becomes smaller: Resize 10 by its cases.
    FloorUnlessSmaller,
}

impl Nearest {
    fn entry(self, place: f64, smaller: bool) -> f64 {
        let floor = place.floor();
        let up = match self {
            Nearest::RoundPreferFloor => place - floor > 0.5,
            Nearest::RoundPreferCeil => place - floor >= 0.5,
            Nearest::Floor => false,
            Nearest::Ceil => place > floor,
            Nearest::FloorUnlessSmaller => smaller && place > floor,
        };
        if up { floor + 1.0 } else { floor }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Mode {
    Nearest(Nearest),
    Weighted(Filter),
}

/// `Y[i, j, ..] = sum over p, q, .. of weight(p, i) * weight(q, j) * .. * X[p, q, ..]`, where the weights depend on the
/// distance of `p` from the place of `i` in the image
///
/// The text is silent on integers: sums are rounded to the nearest one, ties to even, and saturate.
#[derive(Debug, Clone)]
pub(super) struct Interpolation {
    pub(super) mode: Mode,
    pub(super) transform: Transform,
    pub(super) antialias: bool,
    pub(super) exclude_outside: bool,
    /// Of entries that are outside of the image.
    pub(super) extrapolation: f32,
}

impl Interpolation {
    /// That of the versions which had only modes: their texts don't say where entries are.
    pub(super) fn simple(mode: Mode) -> Interpolation {
        let transform = Transform::Asymmetric;
        Interpolation { mode, transform, antialias: false, exclude_outside: false, extrapolation: 0.0 }
    }

    /// The input 0, resized.
    pub(super) fn run(&self, call: &mut Call<'_>, resized: &[Resized]) -> Result<Values> {
        let x = call.tensor(0)?;
        let resized = self.changed(resized);
        if resized.is_empty() {
            return Ok(call.taken(0)?.into());
        }
        let (shape, strings) = (resized_shape(x, &resized), x.dtype() == DType::String);
        let mut output = match self.mode {
            Mode::Weighted(_) if strings => {
                return Err(Error::input("\"X\" has strings: only the mode \"nearest\" takes these").parameter("X"));
            }
            _ if strings => call.output_like(x, shape)?,
            _ => call.output_of(x.dtype(), shape)?,
        };
        self.fill(call, x, &resized, &mut output)?;
        Ok(output.finish().into())
    }

    /// An image in blocks of so many channels, whose rows or columns are resized.
    pub(super) fn run_in_blocks(
        &self,
        call: &Call<'_>,
        x: &Value,
        channels: usize,
        resized: &[Resized],
    ) -> Result<Values> {
        let (blocks, resized) = (x.tensor()?, self.changed(resized));
        if resized.is_empty() {
            return Ok([x.clone()].into());
        }
        let &[images, _, height, width, _] = &*resized_shape(blocks, &resized) else {
            return Err(Error::bug("images in blocks have five axes"));
        };
        let mut output = output_of_in_blocks(call, blocks.dtype(), images, channels, &[height, width])?;
        self.fill(call, blocks, &resized, &mut output)?;
        Ok(output.finish().into())
    }

    /// The axes that don't stay as they are.
    fn changed<'a>(&self, resized: &'a [Resized]) -> Vec<&'a Resized> {
        resized.iter().filter(|axis| !axis.is_whole(self.transform)).collect()
    }

    fn fill(&self, call: &Call<'_>, x: &Tensor, resized: &[&Resized], output: &mut NewTensor) -> Result<()> {
        if output.bytes_mut().is_empty() {
            return Ok(());
        }
        if let Some(axis) = resized.iter().find(|axis| axis.input == 0) {
            let text = format!("axis {} of \"X\" has no entries: it can't be resized to {}", axis.axis, axis.output);
            return Err(Error::input(text).parameter("X").axis(axis.axis as i64));
        }
        let windows = self.windows(resized);
        self.charge(call, resized, &windows, output.bytes_mut().len() / x.dtype().size().max(1))?;
        let mut spans = call.scratch::<Span>(resized.iter().map(|axis| axis.output).fold(0, usize::saturating_add))?;
        let room = resized.iter().zip(&windows).map(|(axis, window)| axis.output.saturating_mul(most(axis, *window)));
        let mut weights = call.scratch::<f64>(room.fold(0, usize::saturating_add))?;
        let axes = self.tables(call, x, resized, &windows, (spans.elements_mut(), weights.elements_mut()))?;
        let to = output.bytes_mut();
        match (self.mode, x.dtype()) {
            (Mode::Nearest(_), dtype) => {
                resample::nearest(x.bytes(), dtype.size(), &axes, &self.outside(dtype), to, call.resources())?;
            }
            (_, dtype) => with_samples!(dtype, T => self.weighted::<T>(call, x, axes, to))?,
        }
        Ok(())
    }

    /// How neighbours along each axis are weighted; nothing for the nearest.
    fn windows(&self, resized: &[&Resized]) -> SmallVec<[Option<Window>; 6]> {
        let window = |axis: &&Resized| match self.mode {
            Mode::Nearest(_) => None,
            Mode::Weighted(filter) => {
                let stretch = if self.antialias { (axis.scale.1 / axis.scale.0).max(1.0) } else { 1.0 };
                Some(Window { filter, stretch, exclude: self.exclude_outside })
            }
        };
        resized.iter().map(window).collect()
    }

    /// A step for each weight, and for each element that is read.
    fn charge(&self, call: &Call<'_>, resized: &[&Resized], windows: &[Option<Window>], elements: usize) -> Result<()> {
        let mut reads = elements as u64;
        for (axis, window) in resized.iter().zip(windows) {
            call.charge(axis.output as u64)?;
            let Some(window) = window else { continue };
            call.charge((axis.output as u64).saturating_mul(window.neighbours() as u64))?;
            reads = reads.saturating_mul(window.most(axis.input) as u64);
        }
        if windows.iter().any(Option::is_some) { call.charge(reads) } else { Ok(()) }
    }

    /// All axes, those that are resized with their spans and weights.
    fn tables<'a>(
        &self,
        call: &Call<'_>,
        x: &Tensor,
        resized: &[&Resized],
        windows: &[Option<Window>],
        (mut spans, mut weights): (&'a mut [Span], &'a mut [f64]),
    ) -> Result<SmallVec<[Along<'a>; 6]>> {
        let mut axes: SmallVec<[Along<'a>; 6]> = x.shape().iter().map(|size| Along::Whole(*size)).collect();
        let mut lookout = call.lookout();
        for (axis, window) in resized.iter().zip(windows) {
            let (own, rest) = std::mem::take(&mut spans).split_at_mut(axis.output);
            spans = rest;
            let (room, rest) = std::mem::take(&mut weights).split_at_mut(axis.output * most(axis, *window));
            weights = rest;
            let place = |at: usize| axis.place(self.transform, at);
            match (self.mode, window) {
                (_, Some(window)) => window.fill(axis.input, place, own, room, &mut lookout)?,
                (Mode::Nearest(nearest), _) => {
                    for (at, span) in own.iter_mut().enumerate() {
                        // A float that no entry has becomes the first or the last one.
                        let smaller = axis.scale.0 < axis.scale.1;
                        let entry = |place| (nearest.entry(place, smaller) as usize).min(axis.input - 1);
                        *span = place(at).map_or(Span::OUTSIDE, |place| Span::of(entry(place)));
                        lookout.after(size_of::<Span>())?;
                    }
                }
                _ => {}
            }
            if let Some(along) = axes.get_mut(axis.axis) {
                *along = Along::Taps { input: axis.input, spans: own, weights: room };
            }
        }
        Ok(axes)
    }

    /// Of complex numbers, the parts are numbers along a further axis.
    fn weighted<T: Sample>(
        &self,
        call: &Call<'_>,
        x: &Tensor,
        mut axes: SmallVec<[Along<'_>; 6]>,
        to: &mut [u8],
    ) -> Result<()> {
        let outside = self.outside(x.dtype());
        let parts = x.dtype().size() / size_of::<T>();
        axes.extend((parts > 1).then_some(Along::Whole(parts)));
        let (x, outside) = (cast_slice(x.aligned_bytes()), pod_collect_to_vec::<u8, T>(&outside));
        resample::resample::<T>(x, &axes, &outside, cast_slice_mut(to), call.resources())?;
        Ok(())
    }

    /// The bytes of an element outside. A string is empty, and a complex number has no imaginary part.
    fn outside(&self, dtype: DType) -> SmallVec<[u8; 16]> {
        let value = self.extrapolation.into();
        let number = with_samples!(dtype, T => Ok(SmallVec::from_slice(bytemuck::bytes_of(&T::of_f64(value)))));
        let mut bytes: SmallVec<[u8; 16]> = number.unwrap_or_default();
        bytes.resize(dtype.size(), 0);
        bytes
    }
}

/// The shape of an image, resized.
fn resized_shape(x: &Tensor, resized: &[&Resized]) -> Shape {
    let mut shape = Shape::from_slice(x.shape());
    for axis in resized {
        shape.get_mut(axis.axis).into_iter().for_each(|size| *size = axis.output);
    }
    shape
}

/// Weights of an entry along an axis, at most.
fn most(axis: &Resized, window: Option<Window>) -> usize {
    window.map_or(0, |window| window.most(axis.input))
}

#[cfg(test)]
mod tests {
    use super::Nearest;

    #[test]
    fn nearest_entries() {
        let entries = |nearest: Nearest| [0.0, 0.25, 0.5, 1.5, 0.75, -0.5].map(|place| nearest.entry(place, true));
        assert_eq!(entries(Nearest::RoundPreferFloor), [0.0, 0.0, 0.0, 1.0, 1.0, -1.0]);
        assert_eq!(entries(Nearest::RoundPreferCeil), [0.0, 0.0, 1.0, 2.0, 1.0, 0.0]);
        assert_eq!(entries(Nearest::Floor), [0.0, 0.0, 0.0, 1.0, 0.0, -1.0]);
        assert_eq!(entries(Nearest::Ceil), [0.0, 1.0, 1.0, 2.0, 1.0, 0.0]);
        assert_eq!(Nearest::FloorUnlessSmaller.entry(0.25, false), 0.0);
        assert_eq!(Nearest::FloorUnlessSmaller.entry(0.25, true), 1.0);
        // One that is below a half by less than what is lost when a half is added.
        assert_eq!(Nearest::RoundPreferCeil.entry(0.49999999999999994, false), 0.0);
    }
}
