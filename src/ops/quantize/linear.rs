//! QuantizeLinear and DequantizeLinear: floats as small integers with a scale and a zero point, and back.
//! <https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html>,
//! <https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html>

use super::scales::{Granularity, check_scales};
use crate::ops::prelude::*;
use kernels::half::Half;
use kernels::quantize::{Precision, Quantize, dequantize, quantize};

const VERSIONS: &[i64] = &[10, 13, 19, 21, 23, 24, 25, 28];

pub(super) const QUANTIZE_LINEAR: Implementation = Implementation::run("QuantizeLinear", VERSIONS, load);

pub(super) const DEQUANTIZE_LINEAR: Implementation = Implementation::run("DequantizeLinear", VERSIONS, load_back);

/// `y = saturate(round(x / y_scale) + y_zero_point)`, ties to even
///
/// The quotient is computed in `precision`, else in the type of `y_scale`, to which `x` is rounded first. Scales that are no
/// floats have none: by float8e8m0 `x` is divided in its own type (int32 in float32), by int32 in float64, which rounds as
/// the exact quotient would. The text has no integer for NaN: it becomes 0. For a float type the zero point is added before
/// the only rounding.
#[derive(Debug)]
struct QuantizeLinear {
    granularity: Granularity,
    output: Option<DType>,
    precision: Option<DType>,
    saturate: bool,
}

/// `axis` came with version 13, `saturate` with 19, blocks and `output_dtype` with 21, `precision` with 23.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let precision = given_type(node, "precision", Node::element_type)?;
    if let Some(other) = precision.filter(|dtype| !dtype.is_float()) {
        let text = format!("precision is {other}: allowed float32, float64, float16, bfloat16");
        return Err(Error::model(text).attribute("precision"));
    }
    Ok(Box::new(QuantizeLinear {
        granularity: Granularity::of(node)?,
        output: given_type(node, "output_dtype", Node::output_type)?,
        precision,
        saturate: node.attribute("saturate").is_none() || node.is_set("saturate")?,
    }))
}

/// The type that an attribute names, if it is there and not 0.
fn given_type<'a>(
    node: &Node<'a>,
    name: &str,
    read: impl FnOnce(&Node<'a>, &str) -> Result<DType>,
) -> Result<Option<DType>> {
    match node.attribute(name) {
        None | Some(Attribute::Int(0)) => Ok(None),
        Some(_) => read(node, name).map(Some),
    }
}

impl QuantizeLinear {
    /// The type of the output, of which the zero point is. Without one it is uint8, or from version 21 on what
    /// `output_dtype` names.
    fn output_type(&self, zero: Option<DType>) -> Result<DType> {
        match (self.output, zero) {
            (Some(asked), Some(zero)) if asked != zero => {
                let text =
                    format!("output_dtype asks for {asked}, but \"y_zero_point\" has {zero}: they must be equal");
                Err(Error::model(text).attribute("output_dtype"))
            }
            (asked, zero) => Ok(asked.or(zero).unwrap_or(DType::Uint8)),
        }
    }

    /// The type that the quotient is computed in.
    fn precision(&self, x: DType, scale: DType) -> DType {
        match (self.precision, scale) {
            (Some(precision), _) => precision,
            (None, DType::Int32) => DType::Double,
            (None, DType::Float8e8m0) if x.is_float() => x,
            (None, DType::Float8e8m0) => DType::Float,
            (None, scale) => scale,
        }
    }

    fn quantized<T: Precision + Element>(&self, call: &Call<'_>, half: Option<Half>) -> Result<Values> {
        let (x, zero) = (call.tensor(0)?, call.optional_tensor(2)?);
        let to = self.output_type(zero.map(Tensor::dtype))?;
        let mut rooms = Default::default();
        let scales = self.granularity.scales::<T>(call, &mut rooms)?;
        let mut output = call.output_of(to, Shape::from_slice(x.shape()))?;
        let work = Quantize { from: x.dtype().format(), to: to.format(), half, saturate: self.saturate };
        quantize(work, scales, x.aligned_bytes(), output.bytes_mut(), call.resources())?;
        Ok(output.finish().into())
    }
}

impl Operator for QuantizeLinear {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let precision = self.precision(call.tensor(0)?.dtype(), call.tensor(1)?.dtype());
        match precision {
            DType::Double => self.quantized::<f64>(call, None),
            other => self.quantized::<f32>(call, other.half()),
        }
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        check_scales(facts)?;
        facts.give_shape_of(0, 0);
        let zero = facts.input_type(2).and_then(ValueType::dtype);
        if zero.is_some() || facts.input(2).is_none() || self.output.is_some() {
            facts.give_type(0, self.output_type(zero)?);
        }
        Ok(())
    }
}

/// `y = (x - x_zero_point) * x_scale`, in float32, and rounded once to the type of the output: that of the scale, or from
/// version 23 on the one that `output_dtype` names
///
/// An int32 has no zero point, as the text says: only 0 is allowed.
#[derive(Debug)]
struct DequantizeLinear {
    granularity: Granularity,
    output: Option<DType>,
}

fn load_back(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let output = given_type(node, "output_dtype", Node::output_type)?;
    Ok(Box::new(DequantizeLinear { granularity: Granularity::of(node)?, output }))
}

/// Fails if the output can't have the type of the scale.
fn check_output(scale: DType) -> Result<()> {
    if scale.is_float() {
        return Ok(());
    }
    let text = format!("\"x_scale\" has {scale}, which \"y\" can't have: output_dtype is needed");
    Err(Error::model(text).attribute("output_dtype"))
}

impl Operator for DequantizeLinear {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let to = self.output.unwrap_or(call.tensor(1)?.dtype());
        if x.dtype() == DType::Int32 {
            check_no_zeros(call)?;
        }
        check_output(to)?;
        let mut rooms = Default::default();
        let scales = self.granularity.scales::<f32>(call, &mut rooms)?;
        let mut output = call.output_of(to, Shape::from_slice(x.shape()))?;
        let formats = [x.dtype(), to].map(DType::format);
        dequantize(formats, scales, x.aligned_bytes(), output.bytes_mut(), call.resources())?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        check_scales(facts)?;
        facts.give_shape_of(0, 0);
        match self.output {
            Some(output) => facts.give_type(0, output),
            None => {
                facts.input_type(1).and_then(ValueType::dtype).map_or(Ok(()), check_output)?;
                facts.give_type_of(0, 1);
            }
        }
        Ok(())
    }
}

/// Fails if a zero point of type int32 is not 0.
fn check_no_zeros(call: &Call<'_>) -> Result<()> {
    let Some(zeros) = call.optional_tensor(2)? else { return Ok(()) };
    call.charge(zeros.len() as u64)?;
    let (mut at, elements) = (0, zeros.as_slice::<i32>()?);
    for block in call.lookout().blocks(elements) {
        let block = block?;
        if let Some((k, zero)) = block.iter().enumerate().find(|(_, zero)| **zero != 0) {
            let position = position_of(at + k, zeros.shape());
            let text = format!("x_zero_point{} is {zero}: int32 has no zero point but 0", ShapeText(&position));
            return Err(Error::input(text).parameter("x_zero_point").value(*zero).position(position));
        }
        at += block.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use half::{bf16, f16};

    /// Elements of a type that Rust doesn't have.
    fn codes(dtype: DType, shape: &[usize], codes: &[u8]) -> Value {
        Tensor::new(dtype, shape, codes.to_vec()).unwrap().into()
    }

    fn named(name: &str, dtype: DType) -> (&str, Attribute) {
        int(name, dtype.code().into())
    }

    /// Ties go to even before the zero point is added, infinities stop at the range, NaN becomes 0.
    #[test]
    fn rounded_then_moved_then_cut() {
        let x = tensor(&[2, 4], [1f32, 3.0, -1.0, 500.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -3.0]);
        let scale = tensor(&[], [2f32]);
        for opset in [10, 13, 19, 21, 23, 24, 25, 28] {
            run("QuantizeLinear", opset, [], [&x, &scale, &tensor(&[], [7u8])])
                .gives(tensor(&[2, 4], [7u8, 9, 7, 255, 0, 255, 0, 5]));
            run("QuantizeLinear", opset, [], [&x, &scale]).gives(tensor(&[2, 4], [0u8, 2, 0, 250, 0, 255, 0, 0]));
            run("QuantizeLinear", opset, [], [&x, &scale, &tensor(&[1], [-100i8])])
                .gives(tensor(&[2, 4], [-100i8, -98, -100, 127, 0, 127, -128, -102]));
        }
        // A reciprocal would give 0.49999997 and 0.
        run("QuantizeLinear", 13, [], [&tensor(&[1], [24.5f32]), &tensor(&[], [49f32]), &tensor(&[], [1u8])])
            .gives(tensor(&[1], [1u8]));
        run("QuantizeLinear", 13, [], [&tensor(&[1], [61.5f32]), &tensor(&[], [41f32])]).gives(tensor(&[1], [2u8]));
        run("QuantizeLinear", 10, [], [&tensor(&[2], [7i32, -1]), &tensor(&[], [2f32])]).gives(tensor(&[2], [4u8, 0]));
    }

    #[test]
    fn every_type_of_integers() {
        let (x, scale) = (tensor(&[3], [-1e6f32, 1.5, 1e6]), tensor(&[], [1f32]));
        let to = |dtype| run("QuantizeLinear", 25, [named("output_dtype", dtype)], [&x, &scale]);
        to(DType::Int8).gives(tensor(&[3], [-128i8, 2, 127]));
        to(DType::Uint8).gives(tensor(&[3], [0u8, 2, 255]));
        to(DType::Int16).gives(tensor(&[3], [i16::MIN, 2, i16::MAX]));
        to(DType::Uint16).gives(tensor(&[3], [0u16, 2, u16::MAX]));
        to(DType::Int4).gives(codes(DType::Int4, &[3], &[0xf8, 2, 7]));
        to(DType::Uint4).gives(codes(DType::Uint4, &[3], &[0, 2, 15]));
        to(DType::Int2).gives(codes(DType::Int2, &[3], &[0xfe, 1, 1]));
        to(DType::Uint2).gives(codes(DType::Uint2, &[3], &[0, 2, 3]));
        for (dtype, code, want) in [
            (DType::Int4, 0xf8, -8f32),
            (DType::Uint4, 15, 15.0),
            (DType::Int2, 0xfe, -2.0),
            (DType::Uint2, 3, 3.0),
            (DType::Float4e2m1, 7, 6.0),
            (DType::Float6e2m3, 31, 7.5),
            (DType::Float8e5m2, 0x3c, 1.0),
        ] {
            let x = codes(dtype, &[1], &[code]);
            run("DequantizeLinear", 28, [], [&x, &tensor(&[], [0.5f32])]).gives(tensor(&[1], [want / 2.0]));
        }
    }

    #[test]
    fn small_floats() {
        let (x, scale) = (tensor(&[4], [1f32, -1000.0, f32::NAN, 1e-9]), tensor(&[], [0.5f32]));
        let zero = codes(DType::Float8e4m3fn, &[], &[0x38]);
        let not = int("saturate", 0);
        run("QuantizeLinear", 19, [], [&x, &scale, &zero]).gives(codes(
            DType::Float8e4m3fn,
            &[4],
            &[0x44, 0xfe, 0x7f, 0x38],
        ));
        run("QuantizeLinear", 19, [not], [&x, &scale, &zero]).gives(codes(
            DType::Float8e4m3fn,
            &[4],
            &[0x44, 0xff, 0x7f, 0x38],
        ));
        run("QuantizeLinear", 28, [named("output_dtype", DType::Float6e3m2)], [&tensor(&[2], [14f32, 99.0]), &scale])
            .gives(codes(DType::Float6e3m2, &[2], &[0x1f, 0x1f]));
        let x = codes(DType::Float8e4m3fn, &[1], &[0x44]);
        run("DequantizeLinear", 19, [], [&x, &scale, &zero]).gives(tensor(&[1], [1f32]));
    }

    /// The type of the scale decides, unless `precision` does.
    #[test]
    fn precisions() {
        let (x, one) = (tensor(&[1], [2.49f32]), tensor(&[], [1f32]));
        let fine = tensor(&[], [0.004f32]);
        // In bfloat16 the operands are rounded, and then the quotient 621.4.
        run("QuantizeLinear", 23, [named("output_dtype", DType::Int16)], [&x, &fine]).gives(tensor(&[1], [622i16]));
        let as_bf16 = [named("output_dtype", DType::Int16), named("precision", DType::Bfloat16)];
        run("QuantizeLinear", 23, as_bf16, [&x, &fine]).gives(tensor(&[1], [620i16]));
        let scale = tensor(&[], [bf16::from_f32(0.004)]);
        run("QuantizeLinear", 23, [named("output_dtype", DType::Int16)], [&x, &scale]).gives(tensor(&[1], [620i16]));
        // The greatest number of float16, and beyond.
        let (x, scale) = (tensor(&[2], [2047.0, 2048.0].map(f16::from_f32)), tensor(&[], [f16::from_f32(0.03125)]));
        run("QuantizeLinear", 21, [named("output_dtype", DType::Uint16)], [&x, &scale])
            .gives(tensor(&[2], [65504u16, 65535]));
        let in_double = [named("output_dtype", DType::Uint16), named("precision", DType::Double)];
        let (x, third) = (tensor(&[1], [16_777_217i32]), tensor(&[], [512f32]));
        run("QuantizeLinear", 23, in_double, [&x, &third]).gives(tensor(&[1], [32768u16]));
        run("QuantizeLinear", 19, [], [&tensor(&[1], [i32::MAX]), &tensor(&[], [1i32 << 24])])
            .gives(tensor(&[1], [128u8]));
        run("QuantizeLinear", 24, [], [&x, &codes(DType::Float8e8m0, &[], &[127 + 20])]).gives(tensor(&[1], [16u8]));
        let wrong = named("precision", DType::Int32);
        run("QuantizeLinear", 23, [wrong], [&x, &one])
            .fails("precision is int32: allowed float32, float64, float16, bfloat16");
    }

    #[test]
    fn floats_round_once() {
        let x = tensor(&[2], [127i8, -128]);
        let (scale, zero) = (tensor(&[], [f16::from_f32(0.1)]), tensor(&[], [-128i8]));
        run("DequantizeLinear", 19, [], [&x, &scale, &zero])
            .gives(tensor(&[2], [f16::from_f32(255.0 * f16::from_f32(0.1).to_f32()), f16::ZERO]));
        run(
            "DequantizeLinear",
            24,
            [named("output_dtype", DType::Bfloat16)],
            [&x, &codes(DType::Float8e8m0, &[], &[128])],
        )
        .gives(tensor(&[2], [bf16::from_f32(254.0), bf16::from_f32(-256.0)]));
        let (x, zero) = (tensor(&[1, 2], [1i32 << 30, -5]), tensor(&[], [0i32]));
        for opset in [10, 13, 19, 21, 23, 24, 25, 28] {
            run("DequantizeLinear", opset, [], [&x, &tensor(&[], [0.5f32]), &zero])
                .gives(tensor(&[1, 2], [(1u32 << 29) as f32, -2.5]));
        }
    }

    #[test]
    fn axes_and_blocks() {
        let x = tensor(&[2, 3, 2], (0..12).collect::<Vec<i8>>());
        let floats = |values: [f32; 12]| tensor(&[2, 3, 2], values);
        let (scale, zero) = (tensor(&[3], [1f32, 10.0, 100.0]), tensor(&[3], [0i8, 1, 2]));
        let want = floats([0., 1., 10., 20., 200., 300., 6., 7., 70., 80., 800., 900.]);
        run("DequantizeLinear", 13, [], [&x, &scale, &zero]).gives(&want);
        run("DequantizeLinear", 21, [int("axis", -2)], [&x, &scale, &zero]).gives(&want);
        run("QuantizeLinear", 13, [], [&want, &scale, &zero]).gives(&x);
        let (scale, zero) = (tensor(&[2], [1f32, 10.0]), tensor(&[2], [0i8, 1]));
        run("DequantizeLinear", 28, [int("axis", 2)], [&x, &scale, &zero])
            .gives(floats([0., 0., 2., 20., 4., 40., 6., 60., 8., 80., 10., 100.]));
        // Two entries a block: the last one has one.
        let blocks = || [int("axis", 1), int("block_size", 2)];
        let scale = tensor(&[2, 2, 2], [1f32, 2., 3., 4., 5., 6., 7., 8.]);
        let want = floats([0., 2., 2., 6., 12., 20., 30., 42., 40., 54., 70., 88.]);
        run("DequantizeLinear", 21, blocks(), [&x, &scale]).gives(&want);
        run("QuantizeLinear", 21, [int("block_size", 2), named("output_dtype", DType::Int8)], [&want, &scale])
            .gives(&x);
        let (x, scale) = (tensor(&[5], [1i8; 5]), tensor(&[2], [2f32, 3.0]));
        run("DequantizeLinear", 25, [int("axis", 0), int("block_size", 3)], [&x, &scale])
            .gives(tensor(&[5], [2f32, 2., 2., 3., 3.]));
        let each = tensor(&[5], [1f32, 2., 3., 4., 5.]);
        run("DequantizeLinear", 13, [], [&x, &each]).gives(&each);
        let none = tensor(&[2, 0], Vec::<f32>::new());
        run("QuantizeLinear", 13, [], [&none, &tensor(&[0], Vec::<f32>::new())])
            .gives(tensor(&[2, 0], Vec::<u8>::new()));
    }

    #[test]
    fn refusals() {
        let (x, scale) = (tensor(&[2, 3], [0i8; 6]), tensor(&[3], [1f32; 3]));
        run("DequantizeLinear", 10, [], [&x, &scale]).fails("\"x_scale\" has shape [3]: a single number is needed");
        run("DequantizeLinear", 13, [int("axis", 0)], [&x, &scale]).fails("\"x_scale\" has shape [3]: [2] is needed");
        run("DequantizeLinear", 13, [int("axis", 2)], [&x, &scale])
            .fails("axis 2 is out of range for \"x\" of shape [2, 3]: allowed -2..=1");
        run("DequantizeLinear", 13, [], [&tensor(&[], [1i8]), &scale]).fails("\"x\" is a scalar");
        let zero = tensor(&[2], [0i8; 2]);
        let error = run("DequantizeLinear", 13, [], [&x, &scale, &zero])
            .fails("\"x_zero_point\" has shape [2]: that of \"x_scale\", [3], is needed");
        assert_eq!(error.place().parameter.as_deref(), Some("x_zero_point"));
        let square = tensor(&[2, 3], [1f32; 6]);
        run("DequantizeLinear", 21, [], [&x, &square])
            .fails("\"x_scale\" has shape [2, 3]: a list, or block_size is needed");
        run("DequantizeLinear", 21, [int("block_size", 2)], [&x, &square])
            .fails("\"x_scale\" has shape [2, 3]: [2, 2] is needed");
        run("DequantizeLinear", 21, [int("block_size", -1)], [&x, &square])
            .fails("block_size is -1: it must be positive, or 0 without blocks");
        let (x, zero) = (tensor(&[1, 2], [1i32, 2]), tensor(&[2], [0i32, 3]));
        run("DequantizeLinear", 13, [], [&x, &tensor(&[2], [1f32; 2]), &zero])
            .fails("x_zero_point[1] is 3: int32 has no zero point but 0");
        run("DequantizeLinear", 24, [], [&x, &codes(DType::Float8e8m0, &[], &[127])])
            .fails("\"x_scale\" has float8e8m0, which \"y\" can't have: output_dtype is needed");
        let (x, one, zero) = (tensor(&[1], [1f32]), tensor(&[], [1f32]), tensor(&[], [1i8]));
        run("QuantizeLinear", 21, [named("output_dtype", DType::Uint8)], [&x, &one, &zero])
            .fails("output_dtype asks for uint8, but \"y_zero_point\" has int8: they must be equal");
    }

    #[test]
    fn types_of_quantized_numbers() {
        let (x, scale) = ("float[N, 3]", "float[]");
        infer("QuantizeLinear", 10, [], [x, scale]).has_type("uint8");
        infer("QuantizeLinear", 21, [int("output_dtype", 3)], [x, scale]).has_type("int8");
        infer("QuantizeLinear", 25, [int("output_dtype", 3)], [x, scale, "int8[]"]).has_type("int8");
        infer("QuantizeLinear", 25, [int("output_dtype", 3)], [x, scale, "uint8[]"])
            .fails("output_dtype asks for int8, but \"y_zero_point\" has uint8");
        infer("QuantizeLinear", 21, [int("output_dtype", 1)], [x, scale]).fails("output_dtype asks for float");
    }

    #[test]
    fn types_of_floats() {
        let (x, scale) = ("int8[N, 3]", "float16[]");
        infer("DequantizeLinear", 23, [], [x, scale]).has_type("float16");
        infer("DequantizeLinear", 24, [int("output_dtype", 16)], [x, scale]).has_type("bfloat16");
        infer("DequantizeLinear", 28, [int("output_dtype", 3)], [x, scale]).fails("output_dtype asks for int8");
    }

    #[test]
    fn shapes() {
        let (x, q) = ("float[N, 3, 8]", "int8[N, 3, 8]");
        infer("QuantizeLinear", 10, [], [x, "float[]", "int8[]"]).gives("[N, 3, 8]");
        infer("QuantizeLinear", 13, [], [x, "float[3]", "int8[3]"]).gives("[N, 3, 8]");
        infer("QuantizeLinear", 19, [int("axis", -1)], [x, "float[8]"]).gives("[N, 3, 8]");
        infer("QuantizeLinear", 21, [int("axis", 2), int("block_size", 3)], [x, "float[N, 3, 3]", "int8[N, 3, 3]"])
            .gives("[N, 3, 8]");
        infer("DequantizeLinear", 10, [], [q, "float[1]", "int8[]"]).gives("[N, 3, 8]");
        infer("DequantizeLinear", 19, [], ["int8[4]", "float[4]"]).gives("[4]");
        infer("DequantizeLinear", 21, [], [q, "float[N, s, 8]"]).gives("[N, 3, 8]");
        infer("DequantizeLinear", 21, [], ["int8", "float[3]"]).gives("");
    }

    #[test]
    fn faults() {
        let q = "int8[N, 3, 8]";
        infer("DequantizeLinear", 13, [], [q, "float[3]", "int8[4]"]).fails(
            "dimension 0 of \"x_scale\" of shape [3] is 3, and dimension 0 of \"x_zero_point\" of shape [4] is 4",
        );
        infer("DequantizeLinear", 13, [], [q, "float[3]", "int8[]"]).fails("\"x_zero_point\" has shape [] of rank 0");
        infer("DequantizeLinear", 13, [], [q, "float[8]"]).fails("dimension 1 of \"x\" of shape [N, 3, 8] is 3");
        infer("DequantizeLinear", 13, [int("axis", 3)], [q, "float[8]"])
            .fails("axis 3 is out of range: allowed -3..=2");
        infer("DequantizeLinear", 19, [], [q, "float[N, 3]"]).fails("allowed ranks 0 to 1");
        infer("DequantizeLinear", 21, [], [q, "float[N, 3]"]).fails("they must be equal");
        infer("DequantizeLinear", 21, [int("axis", 2), int("block_size", 3)], [q, "float[N, 3, 2]"])
            .fails("dimension 2 of \"x_scale\" of shape [N, 3, 2] is 2, but 8 entries are in 3 blocks of 3");
    }
}
