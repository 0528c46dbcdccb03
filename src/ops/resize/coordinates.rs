//! Where the entries of a resized axis are among those of the image.

/// How coordinates of the resized axis become those of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    TfCropAndResize,
}

/// An axis of an image that is resized.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resized {
    /// Its place among the dimensions.
    pub(super) axis: usize,
    pub(super) input: usize,
    pub(super) output: usize,
    /// The scale as a quotient, so that sizes are divided once.
    pub(super) scale: (f64, f64),
    /// The output's entries before they were rounded to whole ones: the texts up to version 18 name the whole ones, but
    /// their cases were made with these.
    pub(super) target: f64,
    /// Where the part begins and ends that [`Transform::TfCropAndResize`] reads.
    pub(super) part: (f64, f64),
}

impl Resized {
    /// Whether all entries stay where they are.
    pub(super) fn is_whole(&self, transform: Transform) -> bool {
        self.input == self.output
            && self.scale.0 == self.scale.1
            && self.part == (0.0, 1.0)
            && transform != Transform::TfHalfPixelForNn
    }

    /// The coordinate of an entry of the output in the image; `None` if it is outside of that.
    pub(super) fn place(&self, transform: Transform, at: usize) -> Option<f64> {
        let (at, last, (size, of)) = (at as f64, self.input.saturating_sub(1) as f64, self.scale);
        let half_pixel = (at + 0.5) * of / size;
        Some(match transform {
            Transform::HalfPixel => half_pixel - 0.5,
            Transform::HalfPixelSymmetric => {
                let adjustment = self.output as f64 / self.target;
                self.input as f64 / 2.0 * (1.0 - adjustment) + half_pixel - 0.5
            }
            Transform::PytorchHalfPixel if self.output <= 1 => 0.0,
            Transform::PytorchHalfPixel => half_pixel - 0.5,
            Transform::AlignCorners if self.output <= 1 => 0.0,
            Transform::AlignCorners => at * last / (self.target - 1.0),
            Transform::Asymmetric => at * of / size,
            Transform::TfHalfPixelForNn => half_pixel,
            Transform::TfCropAndResize => {
                let (start, end) = self.part;
                let place = match self.output {
                    ..=1 => 0.5 * (start + end) * last,
                    _ => start * last + at * (end - start) * last / (self.target - 1.0),
                };
                return (0.0..=last).contains(&place).then_some(place);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Resized, Transform};

    fn places(transform: Transform, resized: Resized) -> Vec<Option<f64>> {
        (0..resized.output).map(|at| resized.place(transform, at)).collect()
    }

    #[test]
    fn coordinates() {
        let double = Resized { axis: 0, input: 3, output: 6, scale: (6.0, 3.0), target: 6.0, part: (0.0, 1.0) };
        let gives = |transform, resized, want: &[f64]| {
            assert_eq!(places(transform, resized), want.iter().map(|place| Some(*place)).collect::<Vec<_>>());
        };
        gives(Transform::HalfPixel, double, &[-0.25, 0.25, 0.75, 1.25, 1.75, 2.25]);
        gives(Transform::PytorchHalfPixel, double, &[-0.25, 0.25, 0.75, 1.25, 1.75, 2.25]);
        gives(Transform::HalfPixelSymmetric, double, &[-0.25, 0.25, 0.75, 1.25, 1.75, 2.25]);
        gives(Transform::AlignCorners, double, &[0.0, 0.4, 0.8, 1.2, 1.6, 2.0]);
        gives(Transform::Asymmetric, double, &[0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        gives(Transform::TfHalfPixelForNn, double, &[0.25, 0.75, 1.25, 1.75, 2.25, 2.75]);
        gives(Transform::TfCropAndResize, double, &[0.0, 0.4, 0.8, 1.2, 1.6, 2.0]);
        // By a scale that makes half an entry more.
        let scaled = Resized { output: 4, scale: (1.5, 1.0), target: 4.5, ..double };
        gives(Transform::AlignCorners, scaled, &[0.0, 4.0 / 7.0, 8.0 / 7.0, 12.0 / 7.0]);
        let offset = 1.5 * (1.0 - 4.0 / 4.5);
        let symmetric = [1.0 / 3.0, 1.0, 2.5 / 1.5, 3.5 / 1.5].map(|place| offset + place - 0.5);
        gives(Transform::HalfPixelSymmetric, scaled, &symmetric);
        // One entry.
        let one = Resized { output: 1, scale: (1.0, 3.0), target: 1.0, ..double };
        gives(Transform::HalfPixel, one, &[1.0]);
        gives(Transform::PytorchHalfPixel, one, &[0.0]);
        gives(Transform::AlignCorners, one, &[0.0]);
        gives(Transform::TfCropAndResize, Resized { part: (0.5, 0.75), ..one }, &[1.25]);
        let beyond = Resized { part: (-0.25, 1.25), output: 4, target: 4.0, ..double };
        assert_eq!(places(Transform::TfCropAndResize, beyond), [None, Some(0.5), Some(1.5), None]);
        assert!(!one.is_whole(Transform::HalfPixel));
        let same = Resized { output: 3, scale: (1.0, 1.0), target: 3.0, ..double };
        assert!(same.is_whole(Transform::HalfPixel) && !same.is_whole(Transform::TfHalfPixelForNn));
    }
}
