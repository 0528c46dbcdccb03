//! RoiAlign: the means or largest of samples in the cells of regions of an image.
//! <https://onnx.ai/onnx/operators/onnx__RoiAlign.html>

use super::regions::{no_image, numbers};
use crate::ops::prelude::*;
use kernels::regions::{self, Regions, Side};

pub(super) const ROI_ALIGN: Implementation = Implementation::run("RoiAlign", &[10, 16, 22], load);

/// `Y[r, c, i, j]` is the mean of samples in a cell of region `r` of the channel `c`, each interpolated between the four
/// entries around it; or the greatest of all their entries, times their weights, which the standard's example calls `max`.
/// A sample more than 1 beyond the image counts as 0. In f64, rounded once.
#[derive(Debug)]
struct RoiAlign {
    greatest: bool,
    /// Entries are at the center of their pixel.
    half_pixel: bool,
    /// In either direction; as many as entries if there is no number.
    ratio: Option<usize>,
    scale: f64,
    cells: [usize; 2],
}

/// Version 16 brought the shift by half a pixel; without it regions are 1 wide at least.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let greatest = node.choice("mode", &[("avg", false), ("max", true)])?;
    let modes = [("half_pixel", true), ("output_half_pixel", false)];
    let half_pixel = node.version() >= 16 && node.choice("coordinate_transformation_mode", &modes)?;
    let ratio = match node.int("sampling_ratio")? {
        ratio @ 0.. => usize::try_from(ratio).ok().filter(|ratio| *ratio > 0),
        ratio => {
            let text = format!("sampling_ratio is {ratio}: it must be at least 0");
            return Err(Error::model(text).attribute("sampling_ratio").value(ratio));
        }
    };
    let size = |name: &str| Ok::<_, Error>(usize::try_from(windows::one_or_more(node, name)?).unwrap_or(usize::MAX));
    let cells = [size("output_height")?, size("output_width")?];
    let scale = node.float("spatial_scale")?.into();
    Ok(Box::new(RoiAlign { greatest, half_pixel, ratio, scale, cells }))
}

impl RoiAlign {
    fn shape(&self, facts: &Inference<'_>) -> Result<Vec<Dim>> {
        let x = facts.sizes::<4>(0)?;
        facts.sizes::<2>(1)?;
        facts.sizes::<1>(2)?;
        facts.needs_size(1, 1, 4)?;
        let count = facts.same_size((1, 0), (2, 0))?;
        let channels = x.map_or(Dim::Unknown, |[_, channels, ..]| channels.clone());
        Ok([count, channels].into_iter().chain(self.cells.map(Dim::Fixed)).collect())
    }

    /// A region along an axis, from its ends.
    fn side(&self, [start, end]: [f64; 2], cells: usize) -> Side {
        let shift = if self.half_pixel { 0.5 } else { 0.0 };
        let size = (end - start) * self.scale;
        let cell = if self.half_pixel { size } else { size.max(1.0) } / cells as f64;
        // What isn't positive has no samples.
        Side { start: start * self.scale - shift, cell, samples: self.ratio.unwrap_or(cell.ceil() as usize) }
    }
}

impl Operator for RoiAlign {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(|facts| self.shape(facts))?;
        let (x, indices) = (call.tensor(0)?, call.tensor(2)?.as_slice::<i64>()?);
        let &[count, channels, height, width] = x.shape() else { return Err(Error::bug("an image has another rank")) };
        let mut y = call.output_of(x.dtype(), shape_of([&[indices.len(), channels], &self.cells]))?;
        let mut memory = (call.scratch::<usize>(indices.len())?, call.scratch::<f64>(4 * indices.len())?);
        let (images, rois) = (memory.0.elements_mut::<usize>(), memory.1.elements_mut::<f64>());
        numbers(call, 1, rois)?;
        let rois = rois.as_chunks::<4>().0;
        let sides = |region: usize| {
            let [left, top, right, bottom] = rois.get(region).copied().unwrap_or_default();
            let [rows, columns] = self.cells;
            [self.side([top, bottom], rows), self.side([left, right], columns)]
        };
        let (mut most, mut all, mut lookout) = (0, 0usize, call.lookout());
        for (region, (image, index)) in images.iter_mut().zip(indices).enumerate() {
            lookout.after(8 * size_of::<f64>())?;
            let valid = usize::try_from(*index).ok().filter(|index| *index < count);
            *image = valid.ok_or_else(|| no_image("batch_indices", vec![region], index, count))?;
            let [y, x] = sides(region);
            let samples = y.samples.saturating_mul(x.samples);
            (most, all) = (most.max(samples), all.saturating_add(samples));
        }
        call.charge(kernels::volume(all, [&channels].into_iter().chain(&self.cells)) as u64)?;
        let regions = Regions { images, channels, image: [height, width], cells: self.cells };
        by_type!(floats, x.dtype(), S as _T => {
            let (from, to) = (x.as_slice::<S>()?, y.elements_mut::<S>()?);
            Ok(regions::align(self.greatest, from, regions, (sides, most), to, call.resources())?)
        })?;
        Ok(y.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let shape = self.shape(facts)?;
        facts.give(0, shape);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, string, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    /// Two images: of the entry at `y, x` the number is `10 * y + x`, and the negative of that.
    fn images() -> Value {
        let entries = (0..16).map(|k| (k / 4 * 10 + k % 4) as f32);
        tensor(&[2, 1, 4, 4], entries.clone().chain(entries.map(|x| -x)).collect::<Vec<_>>())
    }

    fn rois(values: &[f32]) -> Value {
        tensor(&[values.len() / 4, 4], values)
    }

    #[test]
    fn means_of_samples() {
        let (x, first) = (images(), tensor(&[1], [0i64]));
        let cells = || [int("output_height", 2), int("output_width", 2), int("sampling_ratio", 2)];
        // Samples at 1 + 1/4, 3/4, .. from top to bottom, less half a pixel, and so from left to right.
        let y = |shift: f32| {
            let at = |y: f32, x: f32| 10.0 * (y - shift) + (x - shift);
            tensor(&[1, 1, 2, 2], [at(1.5, 1.5), at(1.5, 2.5), at(2.5, 1.5), at(2.5, 2.5)])
        };
        run("RoiAlign", 16, cells(), [&x, &rois(&[1.0, 1.0, 3.0, 3.0]), &first]).gives(y(0.5));
        run("RoiAlign", 10, cells(), [&x, &rois(&[1.0, 1.0, 3.0, 3.0]), &first]).gives(y(0.0));
        let [height, width, ratio] = cells();
        let old = string("coordinate_transformation_mode", "output_half_pixel");
        run("RoiAlign", 22, [height, width, ratio, old], [&x, &rois(&[1.0, 1.0, 3.0, 3.0]), &first]).gives(y(0.0));
        let [height, width, ratio] = cells();
        let scale = ("spatial_scale", Attribute::Float(0.5));
        run("RoiAlign", 10, [height, width, ratio, scale], [&x, &rois(&[2.0, 2.0, 6.0, 6.0]), &first]).gives(y(0.0));
    }

    /// Regions of any image, and as many samples as they have entries: three by one.
    #[test]
    fn samples_by_size() {
        let (x, regions) = (images(), rois(&[0.5, 0.0, 1.5, 3.0, 0.5, 0.0, 1.5, 3.0]));
        let ran = run("RoiAlign", 10, [], [&x, &regions, &tensor(&[2], [1i64, 0])]);
        ran.gives(tensor(&[2, 1, 1, 1], [-16f32, 16.0]));
    }

    #[test]
    fn beyond_the_image() {
        let (x, first) = (images(), tensor(&[1], [0i64]));
        let one = |opset, roi: [f32; 4]| run("RoiAlign", opset, [int("sampling_ratio", 1)], [&x, &rois(&roi), &first]);
        let y = |value: f32| tensor(&[1, 1, 1, 1], [value]);
        // Up to 1 beyond it has the entries of its edge, and behind that zeros.
        one(10, [-2.0, 0.0, 0.0, 2.0]).gives(y(10.0));
        one(10, [3.0, 3.0, 5.0, 5.0]).gives(y(33.0));
        one(10, [-3.0, 0.0, 0.0, 2.0]).gives(y(0.0));
        one(10, [3.0, 3.0, 6.0, 6.0]).gives(y(0.0));
        one(10, [f32::NAN, 0.0, 0.0, f32::INFINITY]).gives(y(0.0));
        // Without area: 1 wide, or no sample.
        run("RoiAlign", 10, [], [&x, &rois(&[1.0, 1.0, 1.0, 1.0]), &first]).gives(y(16.5));
        run("RoiAlign", 16, [], [&x, &rois(&[1.0, 1.0, 1.0, 1.0]), &first]).gives(y(0.0));
        run("RoiAlign", 16, [string("mode", "max")], [&x, &rois(&[3.0, 3.0, 1.0, 1.0]), &first]).gives(y(0.0));
        run("RoiAlign", 16, [], [&tensor(&[1, 1, 0, 2], Vec::<f32>::new()), &rois(&[0.0, 0.0, 2.0, 2.0]), &first])
            .gives(y(0.0));
    }

    /// At 1.25, 2.25: the greatest is the entry at 1, 2, times its weights.
    #[test]
    fn greatest_of_weighted_entries() {
        let attributes = [string("mode", "max"), int("sampling_ratio", 1)];
        run("RoiAlign", 10, attributes, [&images(), &rois(&[1.75, 0.75, 2.75, 1.75]), &tensor(&[1], [0i64])])
            .gives(tensor(&[1, 1, 1, 1], [12.0f32 * 0.75 * 0.75]));
    }

    #[test]
    fn every_type() {
        let first = tensor(&[1], [0i64]);
        macro_rules! each {
            ($($of:expr),*) => {$(
                let x = tensor(&[1, 1, 1, 2], [1.0, 2.0].map($of));
                let y = tensor(&[1, 1, 1, 1], [1.5].map($of));
                run("RoiAlign", 22, [], [&x, &tensor(&[1, 4], [0.0, 0.0, 2.0, 1.0].map($of)), &first]).gives(y);
            )*};
        }
        each!(|x: f32| x, |x: f64| x, f16::from_f32, bf16::from_f32);
    }

    #[test]
    fn refusals() {
        let (x, roi) = (images(), rois(&[0.0; 4]));
        for index in [2i64, -1] {
            run("RoiAlign", 10, [], [&x, &roi, &tensor(&[1], [index])])
                .fails(&format!("batch_indices[0] = {index} is out of range: there are 2 images"));
        }
        let first = tensor(&[1], [0i64]);
        run("RoiAlign", 10, [int("sampling_ratio", -1)], [&x, &roi, &first]).fails("sampling_ratio is -1");
        run("RoiAlign", 10, [int("output_width", 0)], [&x, &roi, &first]).fails("output_width is 0");
        run("RoiAlign", 16, [string("coordinate_transformation_mode", "half")], [&x, &roi, &first])
            .fails("allowed half_pixel, output_half_pixel");
    }

    #[test]
    fn shapes() {
        let x = "float[N, C, H, W]";
        infer("RoiAlign", 10, [], [x, "float[R, 4]", "int64[?]"]).gives("[R, C, 1, 1]");
        infer("RoiAlign", 16, [int("output_height", 5), int("output_width", 7)], [x, "float", "int64[R]"])
            .gives("[R, C, 5, 7]");
        infer("RoiAlign", 22, [string("mode", "max")], ["float", "float", "int64"]).gives("[?, ?, 1, 1]");
    }

    #[test]
    fn faults() {
        let (x, rois) = ("float[N, C, H, W]", "float[3, 4]");
        infer("RoiAlign", 10, [], [x, rois, "int64[2]"]).fails(
            "dimension 0 of \"rois\" of shape [3, 4] is 3, and dimension 0 of \"batch_indices\" of shape [2] is 2",
        );
        infer("RoiAlign", 10, [], [x, "float[3, 5]", "int64[3]"])
            .fails("dimension 1 of \"rois\" of shape [3, 5] is 5: it must be 4");
        infer("RoiAlign", 10, [string("mode", "avgmax")], [x, rois, "int64[3]"])
            .fails("mode is \"avgmax\": allowed avg, max");
    }
}
