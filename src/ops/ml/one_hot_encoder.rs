//! OneHotEncoder: for each element zeros, with a one at the place of its category.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_OneHotEncoder.html>

use super::attributes::{list, only};
use super::entry;
use super::tables::{Same, Table};
use crate::ops::prelude::*;

pub(super) const ONE_HOT_ENCODER: Implementation = entry("OneHotEncoder", &[1], load);

/// `Y[a.., k] = 1 if X[a..] is category k, 0 otherwise`. Floats are integers as by Cast. Of equal categories the last one counts.
#[derive(Debug)]
struct OneHotEncoder {
    table: Table,
    /// The attribute that has the categories.
    name: &'static str,
    categories: usize,
    /// What is in no category gives zeros.
    zeros: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (name, categories) = only(node, &["cats_int64s", "cats_strings"])?;
    let table = Table::of(node, &list(node, name)?, Same::Whole)?;
    Ok(Box::new(OneHotEncoder { table, name, categories, zeros: node.is_set("zeros")? }))
}

impl Operator for OneHotEncoder {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let input = call.tensor(0)?;
        self.table.check(self.name, IS, input.dtype())?;
        let mut output = call.output::<f32>(&[input.shape(), &[self.categories]].concat())?;
        kernels::fill(&[0], output.bytes_mut(), call.resources())?;
        let mut rows = output.elements_mut::<f32>()?.chunks_exact_mut(self.categories.max(1)).enumerate();
        self.table.for_each(call, input, |place| {
            let Some((at, row)) = rows.next() else { return Ok(()) };
            match place.and_then(|place| row.get_mut(place)) {
                Some(to) => *to = 1.0,
                None if self.zeros => {}
                None => return Err(in_no_category(input, at)),
            }
            Ok(())
        })?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(dtype) = facts.input_type(0).and_then(ValueType::dtype) {
            self.table.check(self.name, IS, dtype)?;
        }
        if let Some(dims) = facts.dims(0) {
            facts.give(0, [dims, &[Dim::Fixed(self.categories)]].concat());
        }
        Ok(())
    }
}

#[cold]
fn in_no_category(input: &Tensor, at: usize) -> Error {
    let element = input.scalars().nth(at).map_or_else(String::new, |element| element.to_string());
    let at = ShapeText(&position_of(at, input.shape()));
    let text = format!("\"X\"{at} is {element}, which is in no category: zeros = 0 doesn't allow it");
    Error::input(text).parameter("X")
}

/// What has a type, in errors.
const IS: &str = "\"X\" is";

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, ints, run, strings, tensor};
    use crate::tensor::Tensor;

    #[test]
    fn categories() {
        let name = "ai.onnx.ml.OneHotEncoder";
        let cats = || ints("cats_int64s", &[4, -1, 4]);
        let want = tensor(&[3, 3], [0f32, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        run(name, 1, [cats()], [&tensor(&[3], [4i64, -1, 9])]).gives(want.clone());
        run(name, 1, [cats()], [&tensor(&[3], [4.9f32, -1.5, f32::NAN])]).gives(want.clone());
        run(name, 1, [cats()], [&tensor(&[3], [4.1f64, -1.9, f64::INFINITY])]).gives(want.clone());
        run(name, 1, [cats()], [&tensor(&[3], [4i32, -1, 9])]).gives(want);
        // As Cast: 0 for what is no number or infinite, and modulo 2^64.
        let most = ints("cats_int64s", &[0, i64::MAX, 1 << 62]);
        run(name, 1, [most.clone()], [&tensor(&[2], [f64::INFINITY, 1.25 * 2f64.powi(64)])])
            .gives(tensor(&[2, 3], [1f32, 0.0, 0.0, 0.0, 0.0, 1.0]));
        run(name, 1, [most], [&tensor(&[2], [f32::NEG_INFINITY, 2f32.powi(63)])])
            .gives(tensor(&[2, 3], [1f32, 0.0, 0.0, 0.0, 0.0, 0.0]));
        let text = Tensor::from_strings(&[1], ["b"]).unwrap().into();
        run(name, 1, [strings("cats_strings", &["a", "b"])], [&text]).gives(tensor(&[1, 2], [0f32, 1.0]));
        run(name, 1, [cats(), int("zeros", 0)], [&tensor(&[1, 2], [4i64, 5])])
            .fails("\"X\"[0, 1] is 5, which is in no category: zeros = 0 doesn't allow it");
    }

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.OneHotEncoder";
        infer(name, 1, [ints("cats_int64s", &[1, 2])], ["float[N, 3]"]).gives("[N, 3, 2]");
        infer(name, 1, [strings("cats_strings", &["a"])], ["string[]"]).gives("[1]");
        infer(name, 1, [strings("cats_strings", &["a"])], ["string"]).gives("");
        infer(name, 1, [ints("cats_int64s", &[1, 2])], ["string[N]"])
            .fails("cats_int64s is given, but \"X\" is string");
        infer(name, 1, [], ["float[N]"]).fails("neither cats_int64s nor cats_strings is given");
    }
}
