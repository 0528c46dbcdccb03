//! Transpose: the axes in another order.
//! <https://onnx.ai/onnx/operators/onnx__Transpose.html>

use crate::ops::prelude::*;

pub(super) const TRANSPOSE: Implementation = Implementation::run("Transpose", &[1, 13, 21, 23, 24, 25], load);

/// Axis `i` of `transposed` is axis `perm[i]` of `data`.
#[derive(Debug)]
struct Transpose {
    /// `None` reverses the axes.
    perm: Option<Vec<i64>>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let perm = node.optional("perm", Node::ints)?;
    Ok(Box::new(Transpose { perm: perm.map(<[i64]>::to_vec) }))
}

impl Transpose {
    fn order(&self, rank: usize) -> Result<SmallVec<[usize; 6]>> {
        let Some(perm) = &self.perm else { return Ok((0..rank).rev().collect()) };
        let fault = |text| Error::model(format!("perm: {text}")).attribute("perm");
        if perm.len() != rank {
            return Err(fault(format!("there are {} axes, but \"data\" has rank {rank}", perm.len())).size(rank));
        }
        places(perm, rank, false, fault)
    }
}

impl Operator for Transpose {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let data = call.tensor(0)?;
        let order = self.order(data.rank())?;
        let shape: Shape = order.iter().filter_map(|&at| data.shape().get(at).copied()).collect();
        // Axes of size 1 have no order.
        if order.iter().filter(|&&at| data.shape().get(at) != Some(&1)).is_sorted() {
            return call.reshaped(0, shape);
        }
        let mut output = call.output_like(data, shape)?;
        let (size, out) = (data.dtype().size(), output.bytes_mut());
        kernels::permute::permute(data.bytes(), size, data.shape(), &order, out, call.resources())?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        let order = self.order(dims.len())?;
        facts.give(0, order.iter().filter_map(|&at| dims.get(at).cloned()).collect::<Vec<_>>());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;

    fn perm(axes: &[i64]) -> (&str, Attribute) {
        ("perm", Attribute::Ints(axes.to_vec()))
    }

    #[test]
    fn orders() {
        let data = tensor(&[1, 2, 3], [1i64, 2, 3, 4, 5, 6]);
        run("Transpose", 1, [], [&data]).gives(tensor(&[3, 2, 1], [1i64, 4, 2, 5, 3, 6]));
        run("Transpose", 13, [perm(&[1, 0, 2])], [&data]).gives(tensor(&[2, 1, 3], [1i64, 2, 3, 4, 5, 6]));
        run("Transpose", 25, [perm(&[1, 2, 0])], [&data]).gives(tensor(&[2, 3, 1], [1i64, 2, 3, 4, 5, 6]));
        run("Transpose", 21, [perm(&[2, 0, 1])], [&data]).gives(tensor(&[3, 1, 2], [1i64, 4, 2, 5, 3, 6]));
        run("Transpose", 1, [], [&tensor(&[], [1i8])]).gives(tensor(&[], [1i8]));
        run("Transpose", 1, [perm(&[0])], [&tensor(&[2], [1i8, 2])]).gives(tensor(&[2], [1i8, 2]));
        run("Transpose", 1, [], [&tensor(&[0, 2], Vec::<i8>::new())]).gives(tensor(&[2, 0], Vec::<i8>::new()));
        let strings = |dims: &[usize], values: &[&str]| Tensor::from_strings(dims, values).unwrap();
        run("Transpose", 13, [], [&strings(&[2, 2], &["a", "b", "", "d"]).into()])
            .gives(strings(&[2, 2], &["a", "", "b", "d"]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[1, 2], [1i8, 2]);
        run("Transpose", 13, [perm(&[0])], [&data]).fails("perm: there are 1 axes, but \"data\" has rank 2");
        run("Transpose", 13, [perm(&[0, 2])], [&data]).fails("perm: axis 2 is out of range: allowed 0..=1");
        run("Transpose", 13, [perm(&[1, -1])], [&data]).fails("perm: axis -1 is out of range: allowed 0..=1");
        run("Transpose", 13, [perm(&[1, 1])], [&data]).fails("perm: axis 1 is given twice");
    }
}
