//! MaxRoiPool: the largest entries in the cells of regions of an image.
//! <https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html>

use super::regions::{no_image, numbers};
use crate::ops::prelude::*;
use kernels::regions::{self, Regions};
use std::ops::Range as Entries;

pub(super) const MAX_ROI_POOL: Implementation = Implementation::run("MaxRoiPool", &[1, 22], load);

/// `Y[r, c, i, j]` is the greatest entry in a cell of region `r` of the channel `c`, of which NaN is; 0 if the cell is beyond
/// the image.
///
/// The text has no formula. As in Caffe and onnxruntime, corners are rounded to entries, half away from 0, and both belong
/// to the region, which has one entry at least. Cells overlap where entries can't be divided.
#[derive(Debug)]
struct MaxRoiPool {
    cells: [usize; 2],
    scale: f64,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let cells = windows::Numbers::of(node, "pooled_shape", 1)?.each(2)?;
    let size = |k: usize| cells.get(k).and_then(|size| usize::try_from(*size).ok()).unwrap_or(usize::MAX);
    Ok(Box::new(MaxRoiPool { cells: [size(0), size(1)], scale: node.float("spatial_scale")?.into() }))
}

impl MaxRoiPool {
    fn shape(&self, facts: &Inference<'_>) -> Result<Vec<Dim>> {
        let (x, rois) = (facts.sizes::<4>(0)?, facts.sizes::<2>(1)?);
        facts.needs_size(1, 1, 5)?;
        let count = rois.map_or(Dim::Unknown, |[count, _]| count.clone());
        let channels = x.map_or(Dim::Unknown, |[_, channels, ..]| channels.clone());
        Ok([count, channels].into_iter().chain(self.cells.map(Dim::Fixed)).collect())
    }

    /// The entries of a cell, one of `cells` between two corners.
    fn entries(&self, cell: usize, cells: usize, corners: [f64; 2]) -> Entries<usize> {
        let [start, end] = corners.map(|corner| i128::from((corner * self.scale).round() as i64));
        let (size, cell, cells) = ((end - start + 1).max(1), cell as i128, cells as i128);
        let place = |at: i128| usize::try_from((start + at).max(0)).unwrap_or(usize::MAX);
        place(cell * size / cells)..place(((cell + 1) * size + cells - 1) / cells)
    }
}

impl Operator for MaxRoiPool {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(|facts| self.shape(facts))?;
        let (x, count) = (call.tensor(0)?, call.tensor(1)?.shape().first().copied().unwrap_or(0));
        let &[batch, channels, height, width] = x.shape() else { return Err(Error::bug("an image has another rank")) };
        let ([rows, columns], outer) = (self.cells, [count, channels]);
        let mut y = call.output_of(x.dtype(), shape_of([&outer, &self.cells]))?;
        let mut memory = (call.scratch::<usize>(count)?, call.scratch::<f64>(5 * count)?);
        let (images, rois) = (memory.0.elements_mut::<usize>(), memory.1.elements_mut::<f64>());
        numbers(call, 1, rois)?;
        let (rois, mut lookout) = (rois.as_chunks::<5>().0, call.lookout());
        for (region, (image, [index, ..])) in images.iter_mut().zip(rois).enumerate() {
            lookout.after(size_of::<[f64; 5]>())?;
            if !(0.0..batch as f64).contains(index) || index.fract() != 0.0 {
                return Err(no_image("rois", vec![region, 0], index, batch));
            }
            *image = *index as usize;
        }
        // Cells may overlap by one line.
        let lines = [height.saturating_add(rows), width.saturating_add(columns)];
        call.charge(kernels::volume(1, outer.iter().chain(&lines)) as u64)?;
        let cell = |region: usize, [row, column]: [usize; 2]| {
            let [_, left, top, right, bottom] = rois.get(region).copied().unwrap_or_default();
            [self.entries(row, rows, [top, bottom]), self.entries(column, columns, [left, right])]
        };
        let regions = Regions { images, channels, image: [height, width], cells: self.cells };
        by_type!(floats, x.dtype(), S as _T => {
            let (from, to) = (x.as_slice::<S>()?, y.elements_mut::<S>()?);
            Ok(regions::greatest(from, regions, cell, to, call.resources())?)
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
    use crate::ops::testing::{infer, ints, run, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    /// Two images: of the entry at `y, x` the number is `10 * y + x`, and the negative of that.
    fn images() -> Value {
        let entries = (0..20).map(|k| (k / 5 * 10 + k % 5) as f32);
        tensor(&[2, 1, 4, 5], entries.clone().chain(entries.map(|x| -x)).collect::<Vec<_>>())
    }

    fn pool(cells: [i64; 2], rois: &[f32]) -> crate::ops::testing::Ran {
        run("MaxRoiPool", 1, [ints("pooled_shape", &cells)], [&images(), &tensor(&[rois.len() / 5, 5], rois)])
    }

    #[test]
    fn cells_of_regions() {
        pool([2, 2], &[0.0, 1.0, 0.0, 4.0, 3.0]).gives(tensor(&[1, 1, 2, 2], [12f32, 14.0, 32.0, 34.0]));
        // Three entries in two cells: the one between is in both.
        pool([1, 2], &[0.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 1.0, 2.0, 1.0])
            .gives(tensor(&[2, 1, 1, 2], [1f32, 2.0, -10.0, -11.0]));
        // Corners are rounded, half away from 0; a region without area has an entry.
        pool([1, 1], &[0.0, 0.5, 0.4, 2.5, 1.4]).gives(tensor(&[1, 1, 1, 1], [13f32]));
        pool([1, 1], &[0.0, 2.0, 2.0, 1.0, 0.0]).gives(tensor(&[1, 1, 1, 1], [22f32]));
        // Beyond the image there is nothing.
        pool([1, 2], &[1.0, 3.0, 3.0, 6.0, 9.0]).gives(tensor(&[1, 1, 1, 2], [-33f32, 0.0]));
        pool([1, 1], &[0.0, f32::NAN, -9e30, f32::INFINITY, 9e30]).gives(tensor(&[1, 1, 1, 1], [34f32]));
        let scale = ("spatial_scale", Attribute::Float(0.25));
        let roi = tensor(&[1, 5], [0f32, 0.0, 0.0, 8.0, 4.0]);
        run("MaxRoiPool", 1, [ints("pooled_shape", &[1, 1]), scale], [&images(), &roi])
            .gives(tensor(&[1, 1, 1, 1], [12f32]));
    }

    #[test]
    fn every_type() {
        macro_rules! each {
            ($($of:expr),*) => {$(
                let x = tensor(&[1, 1, 1, 2], [1.0, 2.0].map($of));
                let roi = tensor(&[1, 5], [0.0, 0.0, 0.0, 1.0, 1.0].map($of));
                run("MaxRoiPool", 22, [ints("pooled_shape", &[1, 1])], [&x, &roi])
                    .gives(tensor(&[1, 1, 1, 1], [2.0].map($of)));
            )*};
        }
        each!(|x: f32| x, |x: f64| x, f16::from_f32, bf16::from_f32);
    }

    #[test]
    fn images_out_of_range() {
        for image in ["2", "-1", "0.5", "NaN"] {
            pool([1, 1], &[0.0, 0.0, 0.0, 0.0, 0.0, image.parse().unwrap(), 0.0, 0.0, 0.0, 0.0])
                .fails(&format!("rois[1, 0] = {image} is out of range: there are 2 images"));
        }
    }

    #[test]
    fn shapes() {
        let cells = || [ints("pooled_shape", &[2, 3])];
        infer("MaxRoiPool", 1, cells(), ["float[N, C, H, W]", "float[R, 5]"]).gives("[R, C, 2, 3]");
        infer("MaxRoiPool", 22, cells(), ["float", "float"]).gives("[?, ?, 2, 3]");
    }

    #[test]
    fn faults() {
        let (x, rois) = ("float[N, C, H, W]", "float[R, 5]");
        infer("MaxRoiPool", 1, [ints("pooled_shape", &[2])], [x, rois])
            .fails("pooled_shape has 1 numbers: 2 are needed");
        infer("MaxRoiPool", 1, [ints("pooled_shape", &[2, 0])], [x, rois]).fails("pooled_shape[1] is 0");
        infer("MaxRoiPool", 1, [ints("pooled_shape", &[1, 1])], [x, "float[R, 4]"])
            .fails("dimension 1 of \"rois\" of shape [R, 4] is 4: it must be 5");
        infer("MaxRoiPool", 1, [ints("pooled_shape", &[1, 1])], ["float[N, C, H]", rois]).fails("allowed rank 4");
    }
}
