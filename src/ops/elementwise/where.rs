//! Where: elements of one tensor or of another, as a third says.
//! <https://onnx.ai/onnx/operators/onnx__Where.html>

use crate::ops::prelude::*;

pub(super) const WHERE: Implementation = Implementation::run("Where", &[9, 16], |_| Ok(Box::new(Where)));

/// `output = if condition { X } else { Y }`, of any type
#[derive(Debug)]
struct Where;

impl Operator for Where {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let dtype = call.tensor(1)?.dtype();
        let joined = call.joined(&[call.tensor(1)?, call.tensor(2)?])?;
        let held = match joined.map(<[Tensor; 2]>::try_from) {
            Some(Ok([x, y])) => [Held::Input(0), Held::Replaced(1, x), Held::Replaced(2, y)],
            _ => [Held::Input(0), Held::Input(1), Held::Input(2)],
        };
        let output = call.rowwise(held, Align::Last, dtype, &|inputs, out| select(dtype.size(), inputs, out))?;
        Ok(output.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_broadcast(Align::Last)?;
        let condition = facts.constant(0).and_then(|condition| condition.tensor().ok()).map(Tensor::bytes);
        let (Some(condition), Some(x), Some(y)) = (condition, facts.list(1), facts.list(2)) else { return Ok(()) };
        let at = |len: usize, k: usize| if len == 1 { 0 } else { k };
        let pick = |k: usize| {
            let list = if *condition.get(at(condition.len(), k))? != 0 { &x } else { &y };
            list.get(at(list.len(), k))?.clone()
        };
        let count = condition.len().max(x.len()).max(y.len()).min(Fact::LIST + 1);
        facts.give_list_like(0, 1, &(0..count).map(pick).collect::<List>());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, run, tensor};
    use crate::tensor::Tensor;
    use half::bf16;
    use num_complex::Complex;

    #[test]
    fn elements_of_each_size() {
        let condition = [true, false, true].into();
        run("Where", 9, [], [&condition, &[1u8, 2, 3].into(), &[4u8, 5, 6].into()]).gives([1u8, 5, 3]);
        run("Where", 9, [], [&condition, &[true; 3].into(), &[false; 3].into()]).gives([true, false, true]);
        run("Where", 16, [], [&condition, &vec![bf16::ONE; 3].into(), &vec![bf16::ZERO; 1].into()]).gives(vec![
            bf16::ONE,
            bf16::ZERO,
            bf16::ONE,
        ]);
        run("Where", 16, [], [&condition, &[f32::NAN, 2.0, 3.0].into(), &tensor(&[], [-0f32])]).gives([
            f32::NAN,
            -0.0,
            3.0,
        ]);
        run("Where", 9, [], [&condition, &[1i64].into(), &[4i64, 5, 6].into()]).gives([1i64, 5, 1]);
        let (one, i) = (vec![Complex::new(1f32, 0.0); 3], vec![Complex::new(0f32, 1.0); 3]);
        run("Where", 9, [], [&condition, &one.clone().into(), &i.clone().into()]).gives(vec![one[0], i[0], one[0]]);
        let (one, i) = (vec![Complex::new(1f64, 0.0); 3], vec![Complex::new(0f64, 1.0); 3]);
        run("Where", 9, [], [&condition, &one.clone().into(), &i.clone().into()]).gives(vec![one[0], i[0], one[0]]);
    }

    #[test]
    fn broadcasting() {
        run("Where", 16, [], [&tensor(&[2, 1], [true, false]), &[1i32, 2, 3].into(), &tensor(&[], [0i32])])
            .gives(tensor(&[2, 3], [1i32, 2, 3, 0, 0, 0]));
        run("Where", 16, [], [&[true, false].into(), &[1i32, 2, 3].into(), &tensor(&[], [0i32])])
            .fails("\"condition\" of shape [2] and \"X\" of shape [3] can't be broadcast");
    }

    #[test]
    fn strings() {
        let (x, y) = (Tensor::from_strings(&[2], ["a", "b"]).unwrap(), Tensor::from_strings(&[3], ["c"; 3]).unwrap());
        run("Where", 9, [], [&tensor(&[], [true]), &x.into(), &y.into()])
            .fails("\"X\" of shape [2] and \"Y\" of shape [3] can't be broadcast");
        let strings = |strings: &[&str]| Tensor::from_strings(&[strings.len()], strings).unwrap().into();
        let (x, y) = (strings(&["añ", "", "x"]), strings(&["y", "long text", ""]));
        run("Where", 9, [], [&[true, false, false].into(), &x, &y]).gives(strings(&["añ", "long text", ""]));
        run("Where", 9, [], [&[true, false, false].into(), &x, &x]).gives(&x);
    }

    #[test]
    fn inferred() {
        infer("Where", 9, [], ["bool[N, 1]", "float[3]", "float[]"]).gives("[N, 3]");
        infer("Where", 9, [], ["{true, false}", "{N, 3}", "{1}"]).lists("N, 1");
        infer("Where", 9, [], ["bool[2]", "{N, 3}", "{1}"]).gives("[2]");
    }
}
