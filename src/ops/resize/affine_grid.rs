//! AffineGrid: the places of the entries of an image, moved by affine matrices.
//! <https://onnx.ai/onnx/operators/onnx__AffineGrid.html>

use super::with_samples;
use crate::ops::prelude::*;

use kernels::resample::{Sample, affine};

pub(super) const AFFINE_GRID: Implementation = Implementation::run("AffineGrid", &[20], load);

/// `grid[n, (z,) y, x, ..] = theta[n] * (x, y, (z,) 1)`, where coordinates run from -1 to 1 along each axis
#[derive(Debug)]
struct AffineGrid {
    /// Whether -1 and 1 are the centers of the first and the last entry; else their outer edges. The text is silent on one
    /// entry, which has no such centers: it is at 0, the middle.
    corners: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(AffineGrid { corners: node.flag("align_corners")? }))
}

impl Operator for AffineGrid {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (theta, list) = (call.tensor(0)?, call.list(1)?);
        let size = |(k, size): (usize, &i64)| {
            usize::try_from(*size).map_err(|_| {
                let text = format!("size[{k}] = {size} is negative: a size is needed");
                Error::input(text).parameter("size").position(vec![k]).value(*size)
            })
        };
        if !(4..=5).contains(&list.len()) {
            let text = format!("size has {} numbers: allowed 4 and 5", list.len());
            return Err(Error::input(text).parameter("size").size(list.len()));
        }
        let sizes = list.iter().enumerate().map(size).collect::<Result<SmallVec<[usize; 5]>>>()?;
        let (batch, image) = (sizes.first().copied().unwrap_or(0), sizes.get(2..).unwrap_or(&[]));
        let axes = image.len();
        if theta.shape() != [batch, axes, axes + 1] {
            let (shape, needed) = (ShapeText(theta.shape()), [batch, axes, axes + 1]);
            let text = format!("\"theta\" has shape {shape}: {} is needed", ShapeText(&needed));
            return Err(Error::input(text).parameter("theta"));
        }
        let shape: Shape = [batch].iter().chain(image).chain(&[axes]).copied().collect();
        let mut output = call.output_of(theta.dtype(), shape)?;
        fn compute<T: Sample>(
            call: &Call<'_>,
            theta: &Tensor,
            image: &[usize],
            corners: bool,
            to: &mut [u8],
        ) -> Result<()> {
            let (theta, to) = (cast_slice(theta.aligned_bytes()), cast_slice_mut(to));
            Ok(affine::<T>(theta, image, corners, to, call.resources())?)
        }
        let to = output.bytes_mut();
        with_samples!(theta.dtype(), T => compute::<T>(call, theta, image, self.corners, to))?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let theta = facts.sizes::<3>(0)?;
        facts.sizes::<1>(1)?;
        let size = facts.listed(1);
        let axes = match (&size, theta) {
            (Some(size), _) => size.len().saturating_sub(2),
            (None, Some([_, Dim::Fixed(rows), _])) => *rows,
            (None, Some([_, _, Dim::Fixed(columns)])) => columns.saturating_sub(1),
            _ => return Ok(()),
        };
        if !(2..=3).contains(&axes) {
            let text = match size {
                Some(size) => format!("size has {} numbers: allowed 4 and 5", size.len()),
                None => format!("\"theta\" has matrices for {axes} axes: allowed 2 and 3"),
            };
            return Err(Error::input(text));
        }
        facts.needs_size(0, 1, axes)?;
        facts.needs_size(0, 2, axes + 1)?;
        let size = size.unwrap_or_else(|| vec![Dim::Unknown; axes + 2]);
        let (Some(own), Some(image)) = (size.first(), size.get(2..)) else { return Ok(()) };
        let matrices = theta.map_or(&Dim::Unknown, |[matrices, ..]| matrices);
        let Some(batch) = matrices.both(own) else {
            let text = format!("size[0] is {own}, but \"theta\" has {matrices} matrices: they must be equal");
            return Err(Error::input(text).parameter("size").position(vec![0]));
        };
        facts.give(0, [&[batch], image, &[Dim::Fixed(axes)]].concat());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};

    #[test]
    fn coordinates() {
        let same = tensor(&[1, 2, 3], [1f32, 0., 0., 0., 1., 0.]);
        let size = tensor(&[4], [1i64, 7, 2, 4]);
        let x = [-0.75f32, -0.25, 0.25, 0.75];
        let all = [-0.5, 0.5].iter().flat_map(|y| x.iter().flat_map(|x| [*x, *y])).collect::<Vec<f32>>();
        run("AffineGrid", 20, [], [&same, &size]).gives(tensor(&[1, 2, 4, 2], all));
        let size = tensor(&[4], [1i64, 7, 1, 3]);
        run("AffineGrid", 20, [int("align_corners", 1)], [&same, &size])
            .gives(tensor(&[1, 1, 3, 2], [-1f32, 0., 0., 0., 1., 0.]));
        let turned = tensor(&[2, 2, 3], [0f64, 2., 1., -1., 0., 0., 0., 0., 5., 0., 0., 6.]);
        run("AffineGrid", 20, [], [&turned, &tensor(&[4], [2i64, 1, 2, 1])])
            .gives(tensor(&[2, 2, 1, 2], [0f64, 0., 2., 0., 5., 6., 5., 6.]));
        let cube = tensor(&[1, 3, 4], [1f32, 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0.25]);
        run("AffineGrid", 20, [], [&cube, &tensor(&[5], [1i64, 1, 2, 1, 2])])
            .gives(tensor(&[1, 2, 1, 2, 3], [-0.5f32, 0., -0.25, 0.5, 0., -0.25, -0.5, 0., 0.75, 0.5, 0., 0.75]));
        run("AffineGrid", 20, [], [&same, &tensor(&[4], [1i64, 1, 0, 3])])
            .gives(tensor(&[1, 0, 3, 2], Vec::<f32>::new()));
    }

    #[test]
    fn refusals() {
        let theta = tensor(&[1, 2, 3], [1f32; 6]);
        let sized = |size: &[i64]| run("AffineGrid", 20, [], [&theta, &tensor(&[size.len()], size)]);
        sized(&[1, 2, 3]).fails("size has 3 numbers: allowed 4 and 5");
        sized(&[1, 2, -3, 4]).fails("size[2] = -3 is negative: a size is needed");
        sized(&[2, 1, 3, 4]).fails("\"theta\" has shape [1, 2, 3]: [2, 2, 3] is needed");
        sized(&[1, 1, 3, 4, 5]).fails("\"theta\" has shape [1, 2, 3]: [1, 3, 4] is needed");
    }

    #[test]
    fn shapes() {
        infer("AffineGrid", 20, [], ["float[N, 2, 3]", "{?, 3, H, 6}"]).gives("[N, H, 6, 2]");
        infer("AffineGrid", 20, [], ["float[?, ?, ?]", "{2, 3, 4, 5, W}"]).gives("[2, 4, 5, W, 3]");
        infer("AffineGrid", 20, [], ["float[N, 3, ?]", "int64[n]"]).gives("[N, ?, ?, ?, 3]");
        infer("AffineGrid", 20, [], ["float[N, ?, 3]", "int64"]).gives("[N, ?, ?, 2]");
        infer("AffineGrid", 20, [], ["float", "int64"]).gives("");
    }

    #[test]
    fn faults() {
        infer("AffineGrid", 20, [], ["float[N, 2, 3]", "{2, 3, 4}"]).fails("size has 3 numbers: allowed 4 and 5");
        infer("AffineGrid", 20, [], ["float[N, 4, 5]", "int64"]).fails("\"theta\" has matrices for 4 axes");
        infer("AffineGrid", 20, [], ["float[N, 2, 3]", "{2, 3, 4, 5, 6}"])
            .fails("dimension 1 of \"theta\" of shape [N, 2, 3] is 2: it must be 3");
        infer("AffineGrid", 20, [], ["float[N, 2, 4]", "{2, 3, 4, 5}"]).fails("is 4: it must be 3");
        infer("AffineGrid", 20, [], ["float[3, 2, 3]", "{2, 3, 4, 5}"])
            .fails("size[0] is 2, but \"theta\" has 3 matrices");
    }
}
