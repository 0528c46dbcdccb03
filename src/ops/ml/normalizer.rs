//! Normalizer: rows divided by their greatest element or their norm.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_Normalizer.html>

use super::entry;
use super::numbers::{doubles, floats};
use crate::ops::prelude::*;

pub(super) const NORMALIZER: Implementation = entry("Normalizer", &[1], load);

/// `Y = X / norm` of each row, in double precision and rounded once; `Y = X` if the norm is 0. For L1 and L2 the norm is what
/// these names say, so signs stay, as in all engines; the formulas of the text have no absolute value in L1, and no signs in
/// L2. MAX divides by the greatest element, negative as it may be.
#[derive(Debug)]
struct Normalizer {
    norm: Norm,
}

#[derive(Debug, Clone, Copy)]
enum Norm {
    Max,
    L1,
    L2,
}

const NORMS: [(&str, Norm); 3] = [("MAX", Norm::Max), ("L1", Norm::L1), ("L2", Norm::L2)];

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Normalizer { norm: node.choice("norm", &NORMS)? }))
}

impl Operator for Normalizer {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = doubles(call, 0)?;
        let wide = call.held(&x)?;
        let Some(last) = wide.rank().checked_sub(1).filter(|last| *last < 2) else { return Err(rank(wide.rank())) };
        let lanes = Lanes::new(wide.shape(), |axis| axis == last);
        let normalized = match self.norm {
            Norm::Max => {
                let mut kept = Shape::from_slice(wide.shape());
                kept.truncate(last);
                kept.push(1);
                let mut greatest = call.output_of(DType::Double, kept)?;
                let max = <f64 as Ordered<f64>>::extreme::<false>();
                lanes::reduce(&max, wide.as_slice::<f64>()?, &lanes, greatest.elements_mut()?, call.resources())?;
                let row = float_row(Format::Double).ok_or_else(|| Error::bug("no row of doubles"))?;
                let held = [x, Held::Own(greatest.finish())];
                call.rowwise(held, Align::Last, DType::Double, &|inputs, out| row(&Divided, inputs, out))?
            }
            Norm::L1 | Norm::L2 => {
                let norm = lanes::LpNormalize { first: matches!(self.norm, Norm::L1) };
                let mut output = call.output_of(DType::Double, Shape::from_slice(wide.shape()))?;
                mapped::<f64, f64>(call, wide, &lanes, &norm, &mut output)?;
                output.finish()
            }
        };
        floats(call, normalized)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(0, 1..=2)?;
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cold]
fn rank(rank: usize) -> Error {
    Error::input(format!("\"X\" has rank {rank}: allowed ranks 1 to 2")).parameter("X")
}

struct Divided;

impl Floats<2> for Divided {
    #[inline(always)]
    fn float<T: Real>(&self, [x, divisor]: [T; 2]) -> T {
        if divisor == T::ZERO { x } else { x / divisor }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, run, string, tensor};

    #[test]
    fn rows_are_divided() {
        let name = "ai.onnx.ml.Normalizer";
        let x = tensor(&[3, 2], [3f32, -4.0, 0.0, 0.0, -1.0, -2.0]);
        run(name, 1, [string("norm", "L1")], [&x])
            .gives(tensor(&[3, 2], [3f32 / 7.0, -4.0 / 7.0, 0.0, 0.0, -1.0 / 3.0, -2.0 / 3.0]));
        run(name, 1, [string("norm", "L2")], [&tensor(&[2], [3i32, -4])]).gives(tensor(&[2], [0.6f32, -0.8]));
        run(name, 1, [string("norm", "MAX")], [&x]).gives(tensor(&[3, 2], [1f32, -4.0 / 3.0, 0.0, 0.0, 1.0, 2.0]));
        run(name, 1, [], [&tensor(&[1, 2], [0f64, -5.0])]).gives(tensor(&[1, 2], [0f32, -5.0]));
        run(name, 1, [], [&tensor(&[1, 1, 1], [1f32])]).fails("allowed ranks 1 to 2");
    }

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.Normalizer";
        infer(name, 1, [], ["int64[N, 3]"]).gives("[N, 3]");
        infer(name, 1, [], ["int64[N, 3, 1]"]).fails("allowed ranks 1 to 2");
        infer(name, 1, [string("norm", "L3")], ["int64"]).fails("norm is \"L3\": allowed MAX, L1, L2");
    }
}
