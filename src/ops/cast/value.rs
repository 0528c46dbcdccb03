//! Cast and CastLike: the values of elements in another type.
//! <https://onnx.ai/onnx/operators/onnx__Cast.html>, <https://onnx.ai/onnx/operators/onnx__CastLike.html>

use super::text;
use crate::ops::prelude::*;
use kernels::convert::{Conversion, Direction, Rounding, convert};

pub(super) const CAST: Implementation = Implementation::run("Cast", &[1, 6, 9, 13, 19, 21, 23, 24, 25, 28], |node| {
    load(node, Some(node.output_type("to")?))
});

pub(super) const CAST_LIKE: Implementation = Implementation::run("CastLike", &[15, 19, 21, 23, 24, 25], |node| {
    load(node, node.input_type(1).and_then(ValueType::dtype))
});

/// `output = input`, rounded once. [`kernels::convert`] says how numbers round, [`text`] what strings stand for.
#[derive(Debug)]
struct Cast {
    /// `None` if only the run knows the type of CastLike's second input.
    to: Option<DType>,
    rounding: Rounding,
    /// The input is known to have the type already.
    same: bool,
}

/// `saturate` came with version 19, `round_mode` with 24. In version 1 `to` is the name of the type.
fn load(node: &Node<'_>, to: Option<DType>) -> Result<Box<dyn Operator>> {
    let version = node.version();
    let saturate = version < 19 || node.is_set("saturate")?;
    let directions = [("up", Direction::Up), ("down", Direction::Down), ("nearest", Direction::Nearest)];
    let direction = if version < 24 { Direction::Up } else { node.choice("round_mode", &directions)? };
    let rounding = Rounding { saturate, direction, clamp: version < 24 };
    let same = to.is_some() && node.input_type(0).and_then(ValueType::dtype) == to;
    Ok(Box::new(Cast { to, rounding, same }))
}

impl Operator for Cast {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let input = call.tensor(0)?;
        let from = input.dtype();
        let to = match self.to {
            Some(to) => to,
            None => call.tensor(1)?.dtype(),
        };
        if from == to {
            return Ok(call.taken(0)?.into());
        }
        let output = match (from, to) {
            (DType::String, _) => text::read(call, input, to, self.rounding)?,
            (_, DType::String) => text::write(call, input)?,
            _ => {
                let mut output = call.output_of(to, shape_of([input.shape()]))?;
                let work = Conversion { from: from.format(), to: to.format(), rounding: self.rounding };
                convert(work, input.aligned_bytes(), output.bytes_mut(), call.resources())?;
                output.finish()
            }
        };
        Ok(output.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        let Some(to) = self.to else { return Ok(()) };
        facts.give_type(0, to);
        let whole = |from: Option<&ValueType>| matches!(from, Some(ValueType::Tensor(DType::Int32 | DType::Int64)));
        if let Some(list) = facts.list(0).filter(|_| whole(facts.input_type(0))) {
            facts.give_list(0, to, &list);
        }
        Ok(())
    }

    fn forwards(&self) -> Option<usize> {
        self.same.then_some(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::operator::Attribute;
    use crate::ops::testing::{int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use half::f16;

    fn to(dtype: DType) -> (&'static str, Attribute) {
        int("to", dtype.code().into())
    }

    #[test]
    fn numbers() {
        let floats = tensor(&[2, 2], [1.9f32, -1.9, 300.0, f32::NAN]);
        run("Cast", 28, [to(DType::Uint8)], [&floats]).gives(tensor(&[2, 2], [1u8, 255, 44, 0]));
        run("Cast", 6, [to(DType::Bool)], [&floats]).gives(tensor(&[2, 2], [true; 4]));
        run("Cast", 9, [to(DType::Double)], [&tensor(&[], [7i8])]).gives(tensor(&[], [7f64]));
        run("Cast", 13, [to(DType::Int8)], [&tensor(&[1], [200i16])]).gives(tensor(&[1], [-56i8]));
        let name = ("to", Attribute::String("FLOAT16".into()));
        run("Cast", 1, [name], [&tensor(&[1], [0.5f64])]).gives(tensor(&[1], [f16::from_f32(0.5)]));
        let codes = |dtype, codes: &[u8]| Value::from(Tensor::new(dtype, &[codes.len()], codes.to_vec()).unwrap());
        let far = tensor(&[2], [1e9f32, 9.0]);
        let not = int("saturate", 0);
        run("Cast", 19, [to(DType::Float8e4m3fn), not], [&far]).gives(codes(DType::Float8e4m3fn, &[0x7f, 0x51]));
        run("Cast", 24, [to(DType::Int4)], [&far]).gives(codes(DType::Int4, &[0, 0xf9]));
        run("Cast", 23, [to(DType::Int4)], [&far]).gives(codes(DType::Int4, &[7, 7]));
        let down = ("round_mode", Attribute::String("down".into()));
        run("Cast", 25, [to(DType::Float8e8m0), down], [&far]).gives(codes(DType::Float8e8m0, &[156, 130]));
        // Its greatest number, and what is above it, though it is nearest.
        let (ends, nearest) =
            (tensor(&[2], [2f32.powi(127), 1.8e38]), ("round_mode", Attribute::String("nearest".into())));
        let attributes = [to(DType::Float8e8m0), nearest, int("saturate", 0)];
        run("Cast", 25, attributes, [&ends]).gives(codes(DType::Float8e8m0, &[254, 255]));
        run("Cast", 25, [to(DType::Float8e8m0)], [&ends]).gives(codes(DType::Float8e8m0, &[254, 254]));
        run("Cast", 28, [to(DType::Float)], [&tensor(&[0, 3], Vec::<i64>::new())])
            .gives(tensor(&[0, 3], Vec::<f32>::new()));
    }

    #[test]
    fn the_same_type_and_a_type_like_another() {
        let nan = tensor(&[1], [f32::from_bits(0x7f80_0001)]);
        run("Cast", 13, [to(DType::Float)], [&nan]).gives(&nan);
        run("CastLike", 15, [], [&tensor(&[2], [1i64, 0]), &tensor(&[0], Vec::<bool>::new())])
            .gives(tensor(&[2], [true, false]));
    }

    #[test]
    fn refusals() {
        let x = tensor(&[1], [1f32]);
        let error = run("Cast", 13, [to(DType::Float8e5m2)], [&x]).fails("to asks for float8e5m2: allowed ");
        assert_eq!(error.place().attribute.as_deref(), Some("to"));
        run("Cast", 13, [int("to", 99)], [&x]).fails("to is 99, which is not an element type");
        run("Cast", 1, [("to", Attribute::String("float".into()))], [&x]).fails("to is \"float\"");
        let round = ("round_mode", Attribute::String("even".into()));
        run("Cast", 24, [to(DType::Float16), round], [&x]).fails("round_mode is \"even\": allowed up, down, nearest");
    }
}
