//! QuantizeLinear and DequantizeLinear: floats as small integers with a scale and a zero point, and back.
//! <https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html>,
//! <https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html>

use crate::ops::prelude::*;

pub(super) const QUANTIZE_LINEAR: Implementation = Implementation::missing("", "QuantizeLinear", quantize);

pub(super) const DEQUANTIZE_LINEAR: Implementation = Implementation::missing("", "DequantizeLinear", dequantize);

/// The zero point has the type of the output. Without one it is uint8, or from version 21 on what `output_dtype` names.
fn quantize(facts: &mut Inference<'_>) -> Result<()> {
    check_scales(facts)?;
    facts.give_shape_of(0, 0);
    let zero = facts.input_type(2).and_then(ValueType::dtype);
    match (asked(facts)?, zero) {
        (Some(asked), Some(zero)) if asked != zero => {
            let text = format!("output_dtype asks for {asked}, but \"y_zero_point\" has {zero}: they must be equal");
            return Err(Error::model(text).attribute("output_dtype"));
        }
        (Some(asked), _) => facts.give_type(0, asked),
        (None, _) if facts.input(2).is_none() => facts.give_type(0, DType::Uint8),
        (None, _) => {}
    }
    Ok(())
}

/// The output has the type of the scale, unless `output_dtype` names another, from version 23 on.
fn dequantize(facts: &mut Inference<'_>) -> Result<()> {
    check_scales(facts)?;
    facts.give_shape_of(0, 0);
    match asked(facts)? {
        Some(asked) => facts.give_type(0, asked),
        None => facts.give_type_of(0, 1),
    }
    Ok(())
}

/// The type that `output_dtype` names, if it is there and not 0.
fn asked(facts: &Inference<'_>) -> Result<Option<DType>> {
    match facts.attribute("output_dtype") {
        None | Some(Attribute::Int(0)) => Ok(None),
        Some(_) => facts.output_type("output_dtype").map(Some),
    }
}

/// There is one scale for all numbers, or from version 13 on one for each entry along `axis`, or from version 21 on one
/// for each block of entries along it; and as many zero points.
fn check_scales(facts: &Inference<'_>) -> Result<()> {
    let one = |dims: &[Dim]| dims.iter().all(|size| *size == Dim::Fixed(1));
    if let (Some(scales), Some(zeros)) = (facts.dims(1), facts.dims(2))
        && !(one(scales) && one(zeros))
    {
        if scales.len() != zeros.len() {
            return Err(facts.unequal_ranks(1, 2));
        }
        (0..scales.len()).try_for_each(|d| facts.same_size((1, d), (2, d)).map(drop))?;
    }
    let (Some(x), Some(scales)) = (facts.dims(0), facts.dims(1)) else { return Ok(()) };
    let blocked = facts.attribute("block_size").is_some();
    match scales {
        _ if one(scales) || facts.attribute("axis").is_none() => Ok(()),
        // The text has no axis for them.
        [_] if x.len() == 1 => Ok(()),
        [_] => facts.same_size((0, facts.place("axis", x.len())?), (1, 0)).map(drop),
        _ if !blocked => facts.ranked(1, 0..=1).map(drop),
        _ if scales.len() != x.len() => Err(facts.unequal_ranks(0, 1)),
        _ => check_blocks(facts, x, scales),
    }
}

fn check_blocks(facts: &Inference<'_>, x: &[Dim], scales: &[Dim]) -> Result<()> {
    let at = facts.place("axis", x.len())?;
    (0..x.len()).filter(|d| *d != at).try_for_each(|d| facts.same_size((0, d), (1, d)).map(drop))?;
    let size = |dims: &[Dim]| dims.get(at).and_then(Dim::fixed);
    let (Some(entries), Some(own), block @ 1..) = (size(x), size(scales), facts.int("block_size")?) else {
        return Ok(());
    };
    // As many as are begun.
    let blocks = entries / block + i64::from(entries % block != 0);
    if own == blocks {
        return Ok(());
    }
    let name = facts.input_name(1);
    let text = format!(
        "dimension {at} of {} of shape {} is {own}, but {entries} entries are in {blocks} blocks of {block}",
        quote(name),
        DimsText(scales)
    );
    Err(Error::input(text).parameter(name).axis(at as i64).value(own))
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int};

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
