//! BitCast: the bits of elements in another type.
//! <https://onnx.ai/onnx/operators/onnx__BitCast.html>

use crate::ops::prelude::*;

pub(super) const BIT_CAST: Implementation = Implementation::run("BitCast", &[26], load);

/// `output = input`, bit by bit; types have as many bits
#[derive(Debug)]
struct BitCast {
    to: DType,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(BitCast { to: node.output_type("to")? }))
}

impl Operator for BitCast {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let input = call.tensor(0)?;
        let (from, to) = (input.dtype(), self.to);
        check_bits(from, to)?;
        if from.bits() >= 8 && from.align() == to.align() && to != DType::Bool {
            let input = call.taken(0)?.into_tensor()?;
            return Ok(input.retyped(to).into());
        }
        if to == DType::Bool {
            check_bools(call, input)?;
        }
        let mut output = call.output_of(to, shape_of([input.shape()]))?;
        kernels::each(output.bytes_mut(), BLOCK, call.resources(), |k, out| {
            let input = input.bytes().get(k * BLOCK..).and_then(|input| input.get(..out.len()));
            input.into_iter().for_each(|input| out.copy_from_slice(input));
            // Signed elements below 8 bits fill their byte with copies of the sign.
            kernels::convert::cut(to.format(), out);
        })?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(from) = facts.input_type(0).and_then(ValueType::dtype) {
            check_bits(from, self.to)?;
        }
        facts.give_type(0, self.to);
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

fn check_bits(from: DType, to: DType) -> Result<()> {
    if from.bits() == to.bits() {
        return Ok(());
    }
    let text = format!("{from} has {} bits, and {to} has {}: they must be equal", from.bits(), to.bits());
    Err(Error::model(text).attribute("to"))
}

/// Bytes that are copied at a time.
const BLOCK: usize = 4 << 10;

/// Fails if a byte is no bool.
fn check_bools(call: &Call<'_>, input: &Tensor) -> Result<()> {
    let mut before = 0;
    for block in call.lookout().blocks(input.bytes()) {
        let block = block?;
        if let Some(at) = DType::Bool.first_invalid(block) {
            return Err(not_bool(input, before + at));
        }
        before += block.len();
    }
    Ok(())
}

#[cold]
fn not_bool(input: &Tensor, at: usize) -> Error {
    let position = position_of(at, input.shape());
    let (place, byte) = (ShapeText(&position), input.bytes().get(at).copied().unwrap_or(0));
    let text = format!("input{place} has the bits {byte:#04x}, which are not a valid bool: allowed 0x00 and 0x01");
    Error::input(text).parameter("input").value(byte).position(position)
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use num_complex::Complex;

    fn to(dtype: DType) -> [(&'static str, Attribute); 1] {
        [int("to", dtype.code().into())]
    }

    #[test]
    fn the_bits_stay() {
        run("BitCast", 26, to(DType::Int32), [&tensor(&[2, 1], [1f32, -2.5])])
            .gives(tensor(&[2, 1], [0x3f80_0000i32, 0xc020_0000u32 as i32]));
        run("BitCast", 26, to(DType::Uint8), [&tensor(&[2], [true, false])]).gives(tensor(&[2], [1u8, 0]));
        run("BitCast", 26, to(DType::Bool), [&tensor(&[2], [1i8, 0])]).gives(tensor(&[2], [true, false]));
        run("BitCast", 26, to(DType::Double), [&tensor(&[1], [Complex::new(0f32, 1.0)])])
            .gives(tensor(&[1], [f64::from_bits(0x3f80_0000_0000_0000)]));
        let codes = |dtype, codes: &[u8]| Value::from(Tensor::new(dtype, &[codes.len()], codes.to_vec()).unwrap());
        run("BitCast", 26, to(DType::Int4), [&codes(DType::Uint4, &[7, 15])]).gives(codes(DType::Int4, &[7, 0xff]));
        run("BitCast", 26, to(DType::Float4e2m1), [&codes(DType::Int4, &[0xf8])]).gives(codes(DType::Float4e2m1, &[8]));
    }

    #[test]
    fn refusals() {
        run("BitCast", 26, to(DType::Int64), [&tensor(&[1], [1f32])])
            .fails("float32 has 32 bits, and int64 has 64: they must be equal");
        run("BitCast", 26, to(DType::String), [&tensor(&[1], [1f32])]).fails("to asks for string: allowed");
        let error =
            run("BitCast", 26, to(DType::Bool), [&tensor(&[1, 2], [1u8, 2])]).fails("input[0, 1] has the bits 0x02");
        assert_eq!(error.place().position.as_deref(), Some(&[0, 1][..]));
    }

    #[test]
    fn inferred() {
        infer("BitCast", 26, [int("to", 6)], ["float[N, 3]"]).gives("[N, 3]");
        infer("BitCast", 26, [int("to", 7)], ["float[N, 3]"]).fails("float32 has 32 bits, and int64 has 64");
    }
}
