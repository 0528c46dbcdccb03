//! Resize and Upsample of images in blocks of channels: the same sums, of neighbours that are blocks.

use super::coordinates::Resized;
use super::interpolation::Interpolation;
use super::scales::by_scales;
use crate::ops::prelude::*;

/// What is asked of an axis.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    Scale(f32),
    Size(usize),
}

impl Asked {
    /// What becomes of an axis with so many entries.
    pub(super) fn of(self, axis: usize, input: usize) -> Result<Resized> {
        match self {
            Asked::Scale(scale) => by_scales(axis, input, scale),
            Asked::Size(output) => {
                let (scale, target) = ((output as f64, input as f64), output as f64);
                Ok(Resized { axis, input, output, scale, target, part: (0.0, 1.0) })
            }
        }
    }
}

/// An image whose rows and columns get other sizes, the same in every run.
#[derive(Debug)]
pub(super) struct ResizeInBlocks {
    interpolation: Interpolation,
    /// Of the rows, and of the columns.
    asked: [Asked; 2],
    /// The number of images, if it is asked for.
    images: Option<usize>,
    channels: usize,
}

impl ResizeInBlocks {
    /// If all that is asked of other axes is to stay as they are.
    pub(super) fn of(interpolation: &Interpolation, asked: &[(usize, Asked)], channels: usize) -> Option<InBlocks> {
        let (mut own, mut images, interpolation) = ([Asked::Scale(1.0); 2], None, interpolation.clone());
        for (axis, asked) in asked {
            match (axis, asked) {
                (0..2, Asked::Scale(1.0)) => {}
                (0, Asked::Size(size)) => images = Some(*size),
                (1, Asked::Size(size)) if *size == channels => {}
                (2.., _) => *own.get_mut(axis - 2)? = *asked,
                _ => return None,
            }
        }
        let operator = Arc::new(ResizeInBlocks { interpolation, asked: own, images, channels });
        Some(InBlocks::Windows { operator, channels, ends: Ends::Output })
    }

    fn resized(&self, call: &Call<'_>) -> Result<[Resized; 2]> {
        let &[images, _, height, width, ..] = call.tensor(0)?.shape() else {
            return Err(Error::bug("an image has rows and columns"));
        };
        if self.images.is_some_and(|asked| asked != images) {
            return Err(Error::bug("images aren't resized"));
        }
        let [rows, columns] = self.asked;
        Ok([rows.of(2, height)?, columns.of(3, width)?])
    }
}

impl Windowed for ResizeInBlocks {
    fn is_ready(&self, call: &Call<'_>, _: &Layout) -> bool {
        self.resized(call).is_ok_and(|resized| resized.iter().all(|axis| axis.input > 0))
    }

    fn run(&self, call: &mut Call<'_>, layout: &Layout, _: Option<&Tail>) -> Result<Values> {
        let (x, resized) = (image_in_blocks(call, layout)?, self.resized(call)?);
        self.interpolation.run_in_blocks(call, &x, self.channels, &resized)
    }
}
