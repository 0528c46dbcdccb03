//! LpNormalization: the elements of a lane divided by their L1 or L2 norm.
//! <https://onnx.ai/onnx/operators/onnx__LpNormalization.html>

use crate::ops::prelude::*;

pub(super) const LP_NORMALIZATION: Implementation = Implementation::run("LpNormalization", &[1, 22], load);

/// `output[a.., i, b..] = input[a.., i, b..] / norm of input[a.., j, b..]` over all `j`; 0 if the norm is 0
#[derive(Debug)]
struct LpNormalization {
    axis: i64,
    norm: lanes::LpNormalize,
}

/// Of negative axes the text has -1 only.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let first = match node.int("p")? {
        1 => true,
        2 => false,
        p => return Err(Error::model(format!("p {p} is not supported: allowed 1, 2")).attribute("p").value(p)),
    };
    let axis = if node.int("axis")? == -1 { -1 } else { node.axis("axis", i64::MAX)? };
    Ok(Box::new(LpNormalization { axis, norm: lanes::LpNormalize { first } }))
}

impl Operator for LpNormalization {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let axis = call.axis(0, self.axis)?.at;
        map_floats(call, &Lanes::new(call.tensor(0)?.shape(), |at| at == axis), &self.norm)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(dims) = facts.dims(0) {
            facts.place_of(self.axis, "axis", dims.len())?;
        }
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};

    #[test]
    fn norms() {
        let x = tensor(&[2, 2], [3f32, -4.0, 0.0, 0.0]);
        run("LpNormalization", 1, [], [&x]).gives(tensor(&[2, 2], [0.6f32, -0.8, 0.0, 0.0]));
        run("LpNormalization", 22, [int("p", 1), int("axis", 0)], [&x]).gives(tensor(&[2, 2], [1f32, -1.0, 0.0, 0.0]));
        let x = tensor(&[2], [1f32, 3.0].map(half::bf16::from_f32));
        run("LpNormalization", 22, [int("p", 1)], [&x]).gives(tensor(&[2], [0.25f32, 0.75].map(half::bf16::from_f32)));
        run("LpNormalization", 22, [int("p", 3)], [&x]).fails("p 3 is not supported: allowed 1, 2");
    }

    #[test]
    fn inferred() {
        infer("LpNormalization", 22, [], ["float[N, 3]"]).gives("[N, 3]");
        infer("LpNormalization", 1, [int("axis", 2)], ["float[N, 3]"]).fails("axis 2 is out of range: allowed -2..=1");
    }
}
