//! Which neighbours a position reads along an axis, and their weights.

use crate::{Lookout, Stopped};
use bytemuck::{Pod, Zeroable};

/// The weight of a neighbour by its distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Filter {
    Linear,
    /// Cubic convolution with the coefficient `a`.
    Cubic {
        a: f64,
    },
}

impl Filter {
    /// From this distance on the weight is 0.
    pub fn reach(self) -> f64 {
        match self {
            Filter::Linear => 1.0,
            Filter::Cubic { .. } => 2.0,
        }
    }

    pub fn weight(self, distance: f64) -> f64 {
        let x = distance.abs();
        match self {
            Filter::Linear => (1.0 - x).max(0.0),
            Filter::Cubic { a } if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
            Filter::Cubic { a } if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
            Filter::Cubic { .. } => 0.0,
        }
    }
}

/// What a position reads along an axis: `count` elements from `first` on, with the weights from `start` on. Without elements
/// it is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Span {
    pub first: usize,
    pub start: usize,
    pub count: usize,
}

impl Span {
    /// A position outside.
    pub const OUTSIDE: Span = Span { first: 0, start: 0, count: 0 };

    /// One element, for [`nearest`](super::nearest).
    pub fn of(element: usize) -> Span {
        Span { first: element, start: 0, count: 1 }
    }
}

/// How the neighbours of a position are weighted.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub filter: Filter,
    /// Elements that a distance of 1 stands for: at least 1.
    pub stretch: f64,
    /// Whether neighbours beyond the ends don't count; else those at the ends stand for them.
    pub exclude: bool,
}

impl Window {
    /// Neighbours that a position looks at, at most.
    pub fn neighbours(&self) -> f64 {
        (2.0 * self.filter.reach() * self.stretch).ceil() + 1.0
    }

    /// Elements that a position reads along an axis of `input`, at most.
    pub fn most(&self, input: usize) -> usize {
        (self.neighbours() as usize).min(input)
    }

    /// Finds the span of each position, given where it is among the elements; `None` if outside. There is room for
    /// [`Window::most`] weights for each.
    pub fn fill(
        &self,
        input: usize,
        place: impl Fn(usize) -> Option<f64>,
        spans: &mut [Span],
        weights: &mut [f64],
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let most = self.most(input);
        for (k, (span, room)) in spans.iter_mut().zip(weights.chunks_exact_mut(most.max(1))).enumerate() {
            *span = match place(k) {
                Some(place) => {
                    let Span { first, start, count } = self.span(input, place, room, lookout)?;
                    Span { first, start: k * most + start, count }
                }
                None => Span::OUTSIDE,
            };
        }
        Ok(())
    }

    /// The span of a position, with weights at the start of `room`.
    fn span(&self, input: usize, place: f64, room: &mut [f64], lookout: &mut Lookout<'_>) -> Result<Span, Stopped> {
        let (reach, last) = (self.filter.reach() * self.stretch, input.saturating_sub(1) as i64);
        let (low, high) = ((place - reach).floor() as i64 + 1, (place + reach).ceil() as i64 - 1);
        let (first, end) = (low.clamp(0, last), high.clamp(0, last));
        let count = (end - first + 1).max(1) as usize;
        let room = room.get_mut(..count).ok_or(Stopped::Misfit)?;
        room.fill(0.0);
        let (low, high) = if self.exclude { (low.max(0), high.min(last)) } else { (low, high) };
        let mut sum = 0.0;
        for at in low..=high {
            let weight = self.filter.weight((at as f64 - place) / self.stretch);
            sum += weight;
            let slot = at.clamp(first, end) - first;
            room.get_mut(slot as usize).into_iter().for_each(|slot| *slot += weight);
            lookout.after(size_of::<f64>())?;
        }
        if (self.exclude || self.stretch > 1.0) && sum != 0.0 {
            room.iter_mut().for_each(|weight| *weight /= sum);
        }
        // An element whose weight is 0 isn't read: it may be infinite.
        let start = room.iter().position(|weight| *weight != 0.0).unwrap_or(0);
        let end = room.iter().rposition(|weight| *weight != 0.0).unwrap_or(0);
        Ok(Span { first: first as usize + start, start, count: end - start + 1 })
    }
}
