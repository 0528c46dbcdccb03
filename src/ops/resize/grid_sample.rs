//! GridSample: an image sampled at the places that a grid lists.
//! <https://onnx.ai/onnx/operators/onnx__GridSample.html>

use super::with_samples;
use crate::ops::prelude::*;
use kernels::resample::{Filter, Grid, Padding, Sample, sample, sample_nearest};

pub(super) const GRID_SAMPLE: Implementation = Implementation::run("GridSample", &[16, 20, 22], load);

/// `Y[n, c, k, ..] = sum over p, q, .. of weight(p, y) * weight(q, x) * .. * X[n, c, p, q, ..]`, where `grid[n, k, ..]` lists
/// `x, y, ..`, the innermost first
///
/// The text is silent on integers: sums are rounded to the nearest one, ties to even, and saturate.
#[derive(Debug)]
struct GridSample {
    /// None for the nearest element.
    filter: Option<Filter>,
    padding: Padding,
    corners: bool,
    /// Up to version 16 images have two dimensions.
    ranks: (usize, usize),
}

/// Modes have other names since version 20.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let names = if node.version() < 20 { ["bilinear", "bicubic"] } else { ["linear", "cubic"] };
    let modes = [("nearest", None), (names[0], Some(Filter::Linear)), (names[1], Some(Filter::Cubic { a: -0.75 }))];
    let paddings = [("zeros", Padding::Zeros), ("border", Padding::Border), ("reflection", Padding::Reflection)];
    Ok(Box::new(GridSample {
        filter: node.choice("mode", &modes)?,
        padding: node.choice("padding_mode", &paddings)?,
        corners: node.flag("align_corners")?,
        ranks: if node.version() < 20 { (4, 4) } else { (3, usize::MAX) },
    }))
}

impl GridSample {
    fn compute<T: Sample>(
        &self,
        call: &Call<'_>,
        x: &Tensor,
        grid: &Grid<'_>,
        filter: Filter,
        to: &mut [u8],
    ) -> Result<()> {
        let parts = x.dtype().size() / size_of::<T>();
        let (x, to) = (cast_slice(x.aligned_bytes()), cast_slice_mut(to));
        Ok(sample::<T>(x, grid, filter, parts, to, call.resources())?)
    }
}

impl Operator for GridSample {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (x, grid) = (call.tensor(0)?, call.tensor(1)?);
        let fault = |what: &str| {
            let (x, grid) = (ShapeText(x.shape()), ShapeText(grid.shape()));
            Error::input(format!("\"X\" of shape {x} and \"grid\" of shape {grid} don't fit: {what}")).parameter("grid")
        };
        let (&[batch, channels, ref sizes @ ..], &[own, ref places @ .., numbers]) = (x.shape(), grid.shape()) else {
            return Err(fault("both need dimensions"));
        };
        if !(self.ranks.0..=self.ranks.1).contains(&x.rank()) {
            let allowed = if self.ranks.0 == self.ranks.1 { "4" } else { "3 and more" };
            return Err(fault(&format!("allowed ranks are {allowed}")));
        }
        if grid.rank() != x.rank() || numbers != sizes.len() {
            return Err(fault(&format!("\"grid\" needs {0} dimensions, the last of size {1}", x.rank(), sizes.len())));
        }
        if own != batch {
            return Err(fault("dimension 0 must be the same"));
        }
        let shape: Shape = [batch, channels].iter().chain(places).copied().collect();
        let elements = kernels::volume(1, &shape);
        let mut output = match x.dtype() {
            DType::String => call.output_like(x, shape)?,
            dtype => call.output_of(dtype, shape)?,
        };
        if elements == 0 {
            return Ok(output.finish().into());
        }
        // Zeros are around an image without elements, too.
        if sizes.contains(&0) && !matches!(self.padding, Padding::Zeros) {
            return Err(fault("there is nothing to sample"));
        }
        let taps: u64 = match self.filter {
            None => 1,
            Some(Filter::Linear) => 2,
            Some(Filter::Cubic { .. }) => 4,
        };
        call.charge((elements as u64).saturating_mul(taps.saturating_pow(sizes.len() as u32)))?;
        call.charge(grid.len() as u64)?;
        let mut room = call.scratch::<f64>(grid.len())?;
        converted(grid, DType::Double, cast_slice_mut(room.elements_mut::<f64>()), call.context())?;
        let count = kernels::volume(1, places);
        let (corners, padding) = (self.corners, self.padding);
        let grid = Grid { sizes, places: room.elements_mut(), count, channels, corners, padding };
        let to = output.bytes_mut();
        match self.filter {
            None => sample_nearest(x.bytes(), x.dtype().size(), &grid, to, call.resources())?,
            Some(_) if x.dtype() == DType::String => {
                let text = "\"X\" has strings: only the mode \"nearest\" takes these";
                return Err(Error::input(text).parameter("X"));
            }
            Some(filter) => with_samples!(x.dtype(), T => self.compute::<T>(call, x, &grid, filter, to))?,
        }
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let (x, grid) = match self.ranks {
            (4, 4) => (facts.ranked(0, 4..=4)?, facts.ranked(1, 4..=4)?),
            _ => (facts.ranked(0, 3..)?, facts.ranked(1, 3..)?),
        };
        let Some(rank) = x.or(grid).map(<[Dim]>::len) else { return Ok(()) };
        if grid.is_some_and(|grid| grid.len() != rank) {
            return Err(facts.unequal_ranks(0, 1));
        }
        facts.needs_size(1, rank - 1, rank - 2)?;
        let batch = facts.same_size((0, 0), (1, 0))?;
        let channels = x.and_then(|x| x.get(1)).unwrap_or(&Dim::Unknown).clone();
        let places = match grid {
            Some([_, places @ .., _]) => places.to_vec(),
            _ => vec![Dim::Unknown; rank - 2],
        };
        facts.give(0, [&[batch, channels], &*places].concat());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, string, tensor};
    use crate::value::Value;

    /// A row of an image at coordinates, and the middle of its height.
    fn row<const A: usize>(attributes: [(&str, Attribute); A], x: &[f32], at: &[f32], want: &[f32]) {
        let image = tensor(&[1, 1, 1, x.len()], x);
        let numbers = at.iter().flat_map(|x| [*x, 0.0]).collect::<Vec<f32>>();
        run("GridSample", 20, attributes, [&image, &tensor(&[1, 1, at.len(), 2], numbers)])
            .gives(tensor(&[1, 1, 1, want.len()], want));
    }

    #[test]
    fn modes() {
        let x = [1., 2., 4., 8.];
        // The centers are at -0.75, -0.25, 0.25 and 0.75.
        row([], &x, &[-0.75, -0.5, 0.25, 0.625], &[1., 1.5, 4., 7.]);
        let nearest = || string("mode", "nearest");
        // Halves go to the even element.
        row([nearest()], &x, &[-0.75, -0.5, 0.0, 0.5], &[1., 1., 4., 4.]);
        row([int("align_corners", 1)], &x, &[-1., 0., 1.], &[1., 3., 8.]);
        let cubic = string("mode", "cubic");
        row([cubic], &[0., 0., 16., 0., 0.], &[0.2, 0.0], &[9.5, 16.]);
        let text = crate::Tensor::from_strings(&[1, 1, 2], ["a", "b"]).unwrap().into();
        let grid = tensor(&[1, 3, 1], [-0.5f64, 0.5, 2.0]);
        run("GridSample", 22, [nearest()], [&text, &grid])
            .gives(crate::Tensor::from_strings(&[1, 1, 3], ["a", "b", ""]).unwrap());
        run("GridSample", 22, [], [&text, &grid]).fails("\"X\" has strings: only the mode \"nearest\" takes these");
    }

    #[test]
    fn paddings() {
        let (x, at) = ([1., 2., 4., 8.], [-1., 1.25, 1.75, 5.25]);
        row([], &x, &at, &[0.5, 0., 0., 0.]);
        row([string("padding_mode", "border")], &x, &at, &[1., 8., 8., 8.]);
        row([string("padding_mode", "reflection")], &x, &at, &[1., 8., 4., 8.]);
        let corners = [string("padding_mode", "reflection"), int("align_corners", 1)];
        row(corners, &[1., 2., 4.], &[-2., 3.], &[2., 1.]);
        let corners = [string("padding_mode", "reflection"), int("align_corners", 1)];
        row(corners, &[3.], &[-7., 0.3], &[3., 3.]);
        let far = [f32::INFINITY, -1e30, 1e30];
        row([], &x, &far, &[0.; 3]);
        row([string("padding_mode", "border")], &x, &far, &[8., 1., 8.]);
    }

    /// The last dimension is first in the grid.
    #[test]
    fn of_any_rank() {
        let image = |of: fn(i32) -> u8| tensor(&[1, 2, 2, 2], (0..8).map(of).collect::<Vec<u8>>());
        let places = tensor(&[1, 1, 3, 2], [0.5f32, -0.5, -0.5, 0.5, 0.0, -0.5]);
        run("GridSample", 22, [], [&image(|k| 10 * k as u8), &places])
            .gives(tensor(&[1, 2, 1, 3], [10u8, 20, 5, 50, 60, 45]));
        // 2.5 and 6.5 are rounded to the even number.
        run("GridSample", 16, [], [&image(|k| 5 * k as u8), &places])
            .gives(tensor(&[1, 2, 1, 3], [5u8, 10, 2, 25, 30, 22]));
        let cube = tensor(&[1, 1, 2, 2, 2], (0..8).map(|k| k as f32).collect::<Vec<_>>());
        let places = tensor(&[1, 1, 1, 2, 3], [0.5f32, -0.5, 0.5, 0.0, 0.0, 0.0]);
        run("GridSample", 20, [], [&cube, &places]).gives(tensor(&[1, 1, 1, 1, 2], [5f32, 3.5]));
        let line: Value = tensor(&[1, 1, 2], [false, true]);
        run("GridSample", 22, [], [&line, &tensor(&[1, 2, 1], [0.0f32, 0.25])])
            .gives(tensor(&[1, 1, 2], [false, true]));
    }

    /// Everything is outside of an image without elements.
    #[test]
    fn nothing_among_zeros() {
        let (x, grid) = (tensor(&[1, 1, 2, 0], Vec::<f32>::new()), tensor(&[1, 1, 2, 2], [0f32, 0., 1., f32::NAN]));
        for mode in ["linear", "nearest", "cubic"] {
            for corners in [0, 1] {
                run("GridSample", 20, [string("mode", mode), int("align_corners", corners)], [&x, &grid])
                    .gives(tensor(&[1, 1, 1, 2], [0f32, 0.]));
            }
        }
    }

    #[test]
    fn refusals() {
        let (x, grid) = (tensor(&[1, 1, 2, 0], Vec::<f32>::new()), tensor(&[1, 1, 1, 2], [0f32; 2]));
        run("GridSample", 20, [string("padding_mode", "border")], [&x, &grid]).fails(
            "\"X\" of shape [1, 1, 2, 0] and \"grid\" of shape [1, 1, 1, 2] don't fit: there is nothing to sample",
        );
        let line = tensor(&[1, 1, 2], [1f32, 2.]);
        run("GridSample", 20, [], [&line, &grid]).fails("\"grid\" needs 3 dimensions, the last of size 1");
        run("GridSample", 16, [], [&line, &tensor(&[1, 1, 1], [0f32])]).fails("allowed ranks are 4");
        run("GridSample", 20, [], [&line, &tensor(&[2, 1, 1], [0f32; 2])]).fails("dimension 0 must be the same");
        run("GridSample", 20, [string("mode", "bilinear")], [&line, &line])
            .fails("mode is \"bilinear\": allowed nearest, linear, cubic");
    }

    #[test]
    fn shapes() {
        infer("GridSample", 16, [], ["float[N, C, H, W]", "float[N, h, 6, 2]"]).gives("[N, C, h, 6]");
        infer("GridSample", 20, [], ["float[?, C, D, H, W]", "float[2, d, h, w, 3]"]).gives("[2, C, d, h, w]");
        infer("GridSample", 22, [], ["float[N, C, L]", "float"]).gives("[N, C, ?]");
        infer("GridSample", 22, [], ["float", "float[N, h, w, 2]"]).gives("[N, ?, h, w]");
        infer("GridSample", 22, [], ["float", "float"]).gives("");
    }

    #[test]
    fn faults() {
        let x = "float[1, 1, 4, 4]";
        infer("GridSample", 16, [], ["float[1, 1, 4, 4, 4]", "float[1, 2, 2, 2, 3]"]).fails("allowed rank 4");
        infer("GridSample", 20, [], [x, "float[1, 2, 2, 2, 3]"]).fails("of rank 5, and \"X\"");
        infer("GridSample", 20, [], [x, "float[1, 2, 2, 3]"])
            .fails("dimension 3 of \"grid\" of shape [1, 2, 2, 3] is 3: it must be 2");
        infer("GridSample", 20, [], [x, "float[2, 2, 2, 2]"]).fails("dimension 0 of \"grid\"");
        infer("GridSample", 20, [string("padding_mode", "zero")], [x, x]).fails("padding_mode is \"zero\"");
    }
}
