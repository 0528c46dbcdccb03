//! Concat: tensors one after the other along an axis.
//! <https://onnx.ai/onnx/operators/onnx__Concat.html>

use crate::ops::prelude::*;

pub(super) const CONCAT: Implementation = Implementation::blockwise("Concat", &[1, 4, 11, 13], load);

/// `output[a.., i, b..] = inputs[p][a.., i - start of p, b..]`, where `a..` are the dimensions before `axis`
#[derive(Debug)]
struct Concat {
    axis: i64,
}

/// In version 1 the axis is 1 by default.
fn load(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    let axis = if node.attribute("axis").is_none() && node.version() == 1 { 1 } else { node.axis("axis", 11)? };
    Ok(Arc::new(Concat { axis }))
}

impl Blockwise for Concat {
    fn in_blocks(&self, _: usize, _: usize, _: &Constants<'_>) -> Option<InBlocks> {
        (self.axis == 1).then_some(InBlocks::Joined)
    }
}

impl Operator for Concat {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let axis = call.axis(0, self.axis)?;
        let inputs = (0..call.input_count()).map(|k| call.tensor(k)).collect::<Result<SmallVec<[&Tensor; 4]>>>()?;
        let size = joined_size(call.context(), &inputs, Some(axis.at), "input", "inputs")?;
        let shape = axis.replaced_in(call.tensor(0)?.shape(), &[size]);
        if let Some(k) = inputs.iter().position(|input| input.shape() == &*shape) {
            // The others are empty.
            drop(inputs);
            return Ok(call.taken(k)?.into());
        }
        Ok(join(call.context(), &inputs, axis.at, shape)?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let all: Option<Vec<&[Dim]>> = (0..facts.input_count()).map(|k| facts.dims(k)).collect();
        let Some((first, others)) = all.as_deref().and_then(<[_]>::split_first) else { return Ok(()) };
        let (mut dims, at) = (first.to_vec(), facts.place_of(self.axis, "axis", first.len())?);
        for (k, other) in others.iter().enumerate() {
            if other.len() != first.len() {
                let text = format!(
                    "input {} has rank {}, and input 0 has rank {}: they must be equal",
                    k + 1,
                    other.len(),
                    first.len()
                );
                return Err(Error::input(text).size(other.len()));
            }
            for (d, (dim, own)) in dims.iter_mut().zip(*other).enumerate() {
                *dim = match dim.both(own) {
                    _ if d == at => dim.plus(own),
                    Some(both) => both,
                    None => {
                        let text = format!("inputs have sizes {dim} and {own} in dimension {d}: they must be equal");
                        return Err(Error::input(text).axis(d as i64));
                    }
                };
            }
        }
        facts.give(0, dims);
        let lists: Option<Vec<List>> = (0..facts.input_count()).map(|k| facts.list(k)).collect();
        facts.give_list_like(0, 0, &lists.unwrap_or_default().concat());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::ops::testing::{int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    #[test]
    fn axes() {
        let (left, right) = (tensor(&[2, 1], [1i16, 2]), tensor(&[2, 2], [3i16, 4, 5, 6]));
        let both = tensor(&[2, 3], [1i16, 3, 4, 2, 5, 6]);
        run("Concat", 13, [int("axis", 1)], [&left, &right]).gives(&both);
        run("Concat", 11, [int("axis", -1)], [&left, &right]).gives(&both);
        run("Concat", 4, [int("axis", 0)], [&right, &right]).gives(tensor(&[4, 2], [3i16, 4, 5, 6, 3, 4, 5, 6]));
        let floats = tensor(&[2, 1], [1f32, 2.0]);
        run("Concat", 1, [], [&floats, &floats]).gives(tensor(&[2, 2], [1f32, 1.0, 2.0, 2.0]));
        let complex = tensor(&[1], [num_complex::Complex::new(1f64, -0.0)]);
        run("Concat", 13, [int("axis", 0)], [&complex]).gives(&complex);
    }

    #[test]
    fn empty_inputs() {
        let (none, some) = (tensor(&[0], Vec::<f32>::new()), tensor(&[2], [1f32, 2.0]));
        run("Concat", 13, [int("axis", 0)], [&none, &some, &none]).gives(&some);
        run("Concat", 13, [int("axis", 0)], [&none, &none]).gives(&none);
        let wide = tensor(&[0, 2], Vec::<f32>::new());
        run("Concat", 13, [int("axis", 1)], [&wide, &wide]).gives(tensor(&[0, 4], Vec::<f32>::new()));
    }

    #[test]
    fn strings_of_different_texts() {
        let strings = |dims: &[usize], values: &[&str]| Value::from(Tensor::from_strings(dims, values).unwrap());
        let (left, right) = (strings(&[2, 1], &["a", ""]), strings(&[2, 2], &["bß", "c", "d", "a"]));
        run("Concat", 4, [int("axis", 1)], [&left, &right]).gives(strings(&[2, 3], &["a", "bß", "c", "", "d", "a"]));
        run("Concat", 13, [int("axis", 0)], [&left, &left]).gives(strings(&[4, 1], &["a", "", "a", ""]));
    }

    #[test]
    fn refusals() {
        let (data, other) = (tensor(&[2, 1], [1i8, 2]), tensor(&[3, 1], [1i8, 2, 3]));
        run("Concat", 13, [int("axis", 1)], [&data, &data, &other])
            .fails("dimension 0 of input 2 is 3, and of input 0 2: off the axis 1 they must be equal");
        run("Concat", 13, [int("axis", 0)], [&data, &tensor(&[1], [1i8])]).fails("input 1 has rank 1");
        run("Concat", 13, [int("axis", 2)], [&data]).fails("axis 2 is out of range");
        run("Concat", 4, [int("axis", -3)], [&data, &data]).fails("of shape [2, 1]: allowed -2..=1");
        run("Concat", 13, [int("axis", 0)], [&tensor(&[], [1i8])]).fails("is a scalar");
        // The sum of two sizes, and of three, which is more than can be counted.
        let huge = tensor(&[isize::MAX as usize, 0], Vec::<i8>::new());
        let error = run("Concat", 13, [int("axis", 0)], [&huge, &huge])
            .fails("has a dimension that is too large: allowed 0..=");
        assert_eq!((error.kind(), error.place().axis), (Kind::Input, Some(0)));
        run("Concat", 13, [int("axis", 0)], [&huge, &huge, &huge]).fails("add up to too many");
    }
}
