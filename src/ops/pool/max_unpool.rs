//! MaxUnpool: each entry at the place where MaxPool found it, and zeros elsewhere.
//! <https://onnx.ai/onnx/operators/onnx__MaxUnpool.html>

use crate::ops::prelude::*;
use kernels::copy::Fill;
use kernels::scatter::put;

pub(super) const MAX_UNPOOL: Implementation = Implementation::run("MaxUnpool", &[9, 11, 22], load);

/// `output[I[k..]] = X[k..]`, the last of those with the same index, and 0 elsewhere.
///
/// Indices count the entries that the windows cover. `output_shape` takes the place of `pads`: along each axis the windows
/// cover no more than it says. If they cover less, zeros follow, as in the standard's example; the text doesn't say so.
#[derive(Debug)]
struct MaxUnpool {
    attributes: WindowAttributes,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(MaxUnpool { attributes: WindowAttributes::of(node)? }))
}

impl MaxUnpool {
    /// What is known about the shape that the windows cover, and that of the output.
    fn shapes(&self, facts: &Inference<'_>) -> Result<[Option<Vec<Dim>>; 2]> {
        facts.sizes::<1>(2)?;
        let (x, shape) = (facts.ranked(0, 3..)?, facts.listed(2));
        let Some([_, _, image @ ..]) = x else { return Ok([None, shape]) };
        let rank = image.len() + 2;
        if facts.dims(1).is_some_and(|places| places.len() != rank) {
            return Err(facts.unequal_ranks(0, 1));
        }
        let same: Vec<Dim> = (0..rank).map(|d| facts.same_size((0, d), (1, d))).collect::<Result<_>>()?;
        let windows = self.attributes.windows(&self.attributes.kernel(image.len())?)?;
        let windows = if facts.input(2).is_some() { windows.without_padding() } else { windows };
        let (outer, image) = same.split_at(2);
        let covered = [outer, &*windows.covered(&vec![0; image.len()], image)?].concat();
        let output = match shape {
            Some(shape) if shape.len() != rank => {
                let text =
                    format!("output_shape has {} numbers, but \"X\" has rank {rank}: they must be equal", shape.len());
                return Err(Error::input(text).parameter("output_shape").size(shape.len()));
            }
            Some(shape) => {
                for (d, (own, size)) in outer.iter().zip(&shape).enumerate() {
                    if let (Some(own), Some(size)) = (own.fixed(), size.fixed())
                        && own != size
                    {
                        let text = format!(
                            "output_shape[{d}] is {size}, but dimension {d} of \"X\" is {own}: pools keep it, so they must be equal"
                        );
                        return Err(Error::input(text).parameter("output_shape").position(vec![d]).size(own as usize));
                    }
                }
                shape
            }
            None if facts.input(2).is_none() => covered.clone(),
            None => vec![Dim::Unknown; rank],
        };
        let least = |(covered, size): (&Dim, &Dim)| match (covered.fixed(), size.fixed()) {
            (Some(covered), Some(size)) => Dim::of(covered.min(size)),
            _ => Dim::Unknown,
        };
        Ok([Some(covered.iter().zip(&output).map(least).collect()), Some(output)])
    }
}

impl Operator for MaxUnpool {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let sizes = |dims: Option<Vec<Dim>>| -> Result<Shape> {
            let sizes = dims.and_then(|dims| Dim::sizes(&dims));
            sizes
                .map(Shape::from)
                .ok_or_else(|| Error::input("the sizes of the output can't be counted, or are negative"))
        };
        let [covered, output] = call.by_rule(|facts| self.shapes(facts))?;
        let (covered, output) = (sizes(covered)?, sizes(output)?);
        let (x, indices, resources) = (call.tensor(0)?, call.tensor(1)?.as_slice::<i64>()?, call.resources());
        let (size, count) = (x.dtype().size(), kernels::volume(1, &covered));
        let mut unpooled = call.output_of(x.dtype(), covered.clone())?;
        call.charge(x.len() as u64)?;
        kernels::fill(&[0], unpooled.bytes_mut(), resources)?;
        match put(unpooled.bytes_mut(), size, indices, x.bytes(), resources) {
            Err(Stopped::OutOfRange) => {
                let valid = |index: &i64| usize::try_from(*index).is_ok_and(|index| index < count);
                let invalid = indices.iter().enumerate().find(|(_, index)| !valid(index));
                let (at, index) = invalid.ok_or(Stopped::OutOfRange)?;
                let position = position_of(at, x.shape());
                let text = format!("I{position:?} = {index} is out of range: the windows cover {count} entries");
                return Err(Error::input(text).parameter("I").value(*index).position(position));
            }
            done => done?,
        }
        let unpooled = unpooled.finish();
        if covered == output {
            return Ok(unpooled.into());
        }
        let beside =
            |(size, output): (&usize, &usize)| padded(0, *size, [0, output.saturating_sub(*size)], Fill::Constant);
        let maps: Maps = covered.iter().zip(&output).map(beside).collect::<Result<_>>()?;
        Ok(by_maps(call.context(), &unpooled, &maps, &[0; 16])?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let [_, Some(dims)] = self.shapes(facts)? {
            facts.give(0, dims);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, run, tensor};
    use half::{bf16, f16};

    fn twos() -> [(&'static str, crate::operator::Attribute); 2] {
        [ints("kernel_shape", &[2]), ints("strides", &[2])]
    }

    #[test]
    fn entries_go_back_to_their_places() {
        let (x, places) = (tensor(&[1, 2, 2], [5f32, 7.0, 8.0, 6.0]), tensor(&[1, 2, 2], [0i64, 3, 4, 6]));
        let y = tensor(&[1, 2, 4], [5f32, 0.0, 0.0, 7.0, 8.0, 0.0, 6.0, 0.0]);
        run("MaxUnpool", 9, twos(), [&x, &places]).gives(y.clone());
        run("MaxUnpool", 11, twos(), [&x, &places, &tensor(&[3], [1i64, 2, 4])]).gives(y);
        // Of two with the same index the last counts.
        run("MaxUnpool", 22, twos(), [&x, &tensor(&[1, 2, 2], [1i64, 1, 4, 4])])
            .gives(tensor(&[1, 2, 4], [0f32, 7.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0]));
    }

    /// Indices are those among what the windows cover.
    #[test]
    fn other_output_shapes() {
        let (x, places) = (tensor(&[1, 2, 2], [5f32, 7.0, 8.0, 6.0]), tensor(&[1, 2, 2], [0i64, 3, 4, 6]));
        run("MaxUnpool", 11, twos(), [&x, &places, &tensor(&[3], [1i64, 2, 5])])
            .gives(tensor(&[1, 2, 5], [5f32, 0.0, 0.0, 7.0, 0.0, 8.0, 0.0, 6.0, 0.0, 0.0]));
        run("MaxUnpool", 11, twos(), [&x, &tensor(&[1, 2, 2], [0i64, 2, 3, 5]), &tensor(&[3], [1i64, 2, 3])])
            .gives(tensor(&[1, 2, 3], [5f32, 0.0, 7.0, 8.0, 0.0, 6.0]));
        let [kernel, strides] = twos();
        let padded = [kernel, strides, ints("pads", &[1, 0])];
        run("MaxUnpool", 11, padded.clone(), [&x, &tensor(&[1, 2, 2], [0i64, 2, 3, 5])])
            .gives(tensor(&[1, 2, 3], [5f32, 0.0, 7.0, 8.0, 0.0, 6.0]));
        run("MaxUnpool", 11, padded, [&x, &places, &tensor(&[3], [1i64, 2, 4])])
            .gives(tensor(&[1, 2, 4], [5f32, 0.0, 0.0, 7.0, 8.0, 0.0, 6.0, 0.0]));
    }

    #[test]
    fn every_type() {
        let places = tensor(&[1, 1, 1], [1i64]);
        run("MaxUnpool", 9, twos(), [&tensor(&[1, 1, 1], [2f64]), &places]).gives(tensor(&[1, 1, 2], [0f64, 2.0]));
        run("MaxUnpool", 9, twos(), [&tensor(&[1, 1, 1], [f16::ONE]), &places])
            .gives(tensor(&[1, 1, 2], [f16::ZERO, f16::ONE]));
        run("MaxUnpool", 22, twos(), [&tensor(&[1, 1, 1], [bf16::ONE]), &places])
            .gives(tensor(&[1, 1, 2], [bf16::ZERO, bf16::ONE]));
    }

    #[test]
    fn indices_out_of_range() {
        let x = tensor(&[1, 1, 2], [5f32, 7.0]);
        for index in [4, -1, i64::MAX] {
            run("MaxUnpool", 9, twos(), [&x, &tensor(&[1, 1, 2], [0i64, index])])
                .fails(&format!("I[0, 0, 1] = {index} is out of range: the windows cover 4 entries"));
        }
        run("MaxUnpool", 9, twos(), [&x, &tensor(&[1, 1, 2], [0i64, 1]), &tensor(&[3], [1i64, 1, -4])])
            .fails("the sizes of the output can't be counted, or are negative");
    }

    #[test]
    fn shapes() {
        let (x, places) = ("float[N, C, 2, W]", "int64[N, C, 2, ?]");
        let attributes = || [ints("kernel_shape", &[2, 3]), ints("strides", &[2, 2])];
        infer("MaxUnpool", 9, attributes(), [x, places]).gives("[N, C, 4, 2*W + 1]");
        infer("MaxUnpool", 11, attributes(), ["float[N, C, ?, 2]", places]).gives("[N, C, 4, 5]");
        infer("MaxUnpool", 22, [ints("kernel_shape", &[3, 3]), ints("pads", &[1, 0, 1, 0])], [x, places])
            .gives("[N, C, 2, W + 2]");
        infer("MaxUnpool", 11, attributes(), [x, places, "{1, 1, H, 5}"]).gives("[1, 1, H, 5]");
        infer("MaxUnpool", 11, attributes(), [x, places, "int64[r]"]).gives("[?, ?, ?, ?]");
        infer("MaxUnpool", 11, attributes(), ["float", "int64", "int64[4]"]).gives("[?, ?, ?, ?]");
    }

    #[test]
    fn faults() {
        let (x, places) = ("float[1, 1, 2, 2]", "int64[1, 1, 2, 2]");
        let kernel = || [ints("kernel_shape", &[2, 2])];
        infer("MaxUnpool", 9, kernel(), [x, "int64[1, 1, 2, 3]"]).fails(
            "dimension 3 of \"X\" of shape [1, 1, 2, 2] is 2, and dimension 3 of \"I\" of shape [1, 1, 2, 3] is 3",
        );
        infer("MaxUnpool", 9, kernel(), [x, "int64[1, 2, 2]"]).fails("\"I\" has shape [1, 2, 2] of rank 3");
        infer("MaxUnpool", 9, kernel(), [x, places, "{4, 4}"])
            .fails("output_shape has 2 numbers, but \"X\" has rank 4");
        for (shape, d) in [("{2, 1, 4, 4}", 0), ("{1, 2, 4, 4}", 1)] {
            let text = format!("output_shape[{d}] is 2, but dimension {d} of \"X\" is 1");
            infer("MaxUnpool", 11, kernel(), [x, places, shape]).fails(&text);
        }
        infer("MaxUnpool", 9, [ints("kernel_shape", &[2])], [x, places]).fails("2 are needed");
    }
}
