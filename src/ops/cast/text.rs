//! Strings as numbers and numbers as strings.
//!
//! A number is written in plain notation with the fewest digits that read back as the same number in its type; infinities
//! as INF and -INF, NaN as NaN, truth values as 1 and 0. Types of at most 16 bits have so few digits that integers would
//! be written as others (65504 as 65500): theirs have all digits.
//!
//! How numbers are read, `ops::parse` says. Those for types of at most 16 bits are read as double first.

use crate::ops::prelude::*;
use kernels::convert::{Conversion, Rounding, convert, shortest};

/// The numbers as strings.
pub(super) fn write(call: &Call<'_>, input: &Tensor) -> Result<Tensor> {
    let (dtype, half) = (input.dtype(), input.dtype().bits() <= 16);
    let text = |scalar| match scalar {
        Scalar::Float(value) if value.is_infinite() => infinity(value > 0.0),
        Scalar::Double(value) if value.is_infinite() => infinity(value > 0.0),
        Scalar::Float(value) if half && value.trunc() == value => format!("{value:.0}"),
        Scalar::Float(value) if half => shortest(value, dtype.format()).to_string(),
        // Rust writes the shortest digits, in plain notation.
        Scalar::Float(value) => value.to_string(),
        Scalar::Double(value) => value.to_string(),
        Scalar::Bool(value) => u8::from(value).to_string(),
        other => other.to_string(),
    };
    call.strings(input.shape(), input.scalars().map(|scalar| Ok(text(scalar))))
}

fn infinity(positive: bool) -> String {
    if positive { "INF" } else { "-INF" }.to_string()
}

/// The strings as numbers.
pub(super) fn read(call: &Call<'_>, input: &Tensor, to: DType, rounding: Rounding) -> Result<Tensor> {
    match to.format() {
        Format::Signed(_) => read_as::<i64>(call, input, to, rounding, |text| parse::integer(text, to)),
        Format::Unsigned(_) => read_as::<u64>(call, input, to, rounding, |text| parse::integer(text, to)),
        _ if to == DType::Float => read_as::<f32>(call, input, to, rounding, parse::float),
        _ => read_as::<f64>(call, input, to, rounding, parse::float),
    }
}

fn read_as<T: Element + Pod>(
    call: &Call<'_>,
    input: &Tensor,
    to: DType,
    rounding: Rounding,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Tensor> {
    let mut memory = call.scratch::<T>(input.len())?;
    let numbers = memory.elements_mut::<T>();
    let mut lookout = call.lookout();
    for (at, (number, text)) in numbers.iter_mut().zip(input.strings()?).enumerate() {
        call.charge(text.len() as u64)?;
        lookout.after(DType::String.size() + text.len())?;
        *number = read(text).ok_or_else(|| {
            let position = position_of(at, input.shape());
            let (at, text) = (ShapeText(&position), quote(text));
            Error::input(format!("input{at} = {text} can't be read as {to}")).parameter("input").position(position)
        })?;
    }
    let mut output = call.output_of(to, shape_of([input.shape()]))?;
    let work = Conversion { from: T::DTYPE.format(), to: to.format(), rounding };
    convert(work, bytemuck::cast_slice(numbers), output.bytes_mut(), call.resources())?;
    Ok(output.finish())
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::operator::Attribute;
    use crate::ops::testing::{int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use half::{bf16, f16};

    fn to(dtype: DType) -> [(&'static str, Attribute); 1] {
        [int("to", dtype.code().into())]
    }

    fn strings<const N: usize>(strings: [&str; N]) -> Value {
        Tensor::from_strings(&[N], strings).unwrap().into()
    }

    #[test]
    fn numbers_are_written_with_the_fewest_digits() {
        let text = |input: Value, want: &[&str]| {
            run("Cast", 28, to(DType::String), [&input]).gives(Tensor::from_strings(&[want.len()], want).unwrap());
        };
        text(tensor(&[4], [0.1f32, -0.0, 2.0, 0.296_140_2]), &["0.1", "-0", "2", "0.2961402"]);
        text(tensor(&[4], [1e10f32, 1e-7, f32::INFINITY, f32::NAN]), &["10000000000", "0.0000001", "INF", "NaN"]);
        text(tensor(&[3], [314.15926, 1.0 / 3.0, f64::NEG_INFINITY]), &["314.15926", "0.3333333333333333", "-INF"]);
        text(tensor(&[4], [0.1, 1.5, 2049.5, 5.9604645e-8].map(f16::from_f32)), &["0.1", "1.5", "2050", "0.00000006"]);
        text(tensor(&[1], [bf16::from_f32(3.1)]), &["3.1"]);
        text(tensor(&[2], [i64::MIN, 7]), &["-9223372036854775808", "7"]);
        text(tensor(&[1], [u64::MAX]), &["18446744073709551615"]);
        text(tensor(&[2], [true, false]), &["1", "0"]);
        let codes = |dtype, codes: &[u8]| Value::from(Tensor::new(dtype, &[codes.len()], codes.to_vec()).unwrap());
        text(codes(DType::Float8e4m3fn, &[0x7e, 0x01, 0xff]), &["448", "0.002", "NaN"]);
        text(codes(DType::Int4, &[0xf8, 3]), &["-8", "3"]);
    }

    #[test]
    fn integers_of_narrow_types_have_all_digits() {
        let text = |input: Value, want: &[&str]| {
            run("Cast", 28, to(DType::String), [&input]).gives(Tensor::from_strings(&[want.len()], want).unwrap());
        };
        let halves = [65504.0, -2049.0, 4100.0, -0.0, f32::INFINITY, f32::NAN].map(f16::from_f32);
        text(tensor(&[6], halves), &["65504", "-2048", "4100", "-0", "INF", "NaN"]);
        let brains = [bf16::MAX, bf16::from_f32(257.0), bf16::from_f32(-65536.0)];
        text(tensor(&[3], brains), &["338953138925153547590470800371487866880", "256", "-65536"]);
    }

    /// What is written is read as the same number.
    #[test]
    fn all_numbers_of_narrow_types_read_back() {
        let step = if cfg!(miri) { 4099 } else { 7 };
        let bits: Vec<u8> = (0..=u16::MAX).step_by(step).flat_map(u16::to_le_bytes).collect();
        for dtype in [DType::Float16, DType::Bfloat16] {
            let all = Tensor::new(dtype, &[bits.len() / 2], bits.clone()).unwrap();
            let back = back(&all);
            for (own, back) in all.scalars().zip(back.tensor().unwrap().scalars()) {
                assert!(own == back || own != own, "{own} {back}");
            }
        }
        for dtype in [DType::Float8e5m2, DType::Float8e4m3fnuz, DType::Float4e2m1, DType::Float8e8m0, DType::Uint2] {
            let codes: Vec<u8> = (0..1u32 << dtype.bits()).map(|code| code as u8).collect();
            let all = Tensor::new(dtype, &[codes.len()], codes).unwrap();
            for (own, back) in all.scalars().zip(back(&all).tensor().unwrap().scalars()) {
                let wide = matches!(own, crate::tensor::Scalar::Float(value) if value.is_infinite());
                assert!(own == back || own != own || wide, "{dtype} {own} {back}");
            }
        }
    }

    fn back(all: &Tensor) -> Value {
        let text = crate::ops::testing::outputs("Cast", 28, to(DType::String), [&all.clone().into()]);
        crate::ops::testing::outputs("Cast", 28, to(all.dtype()), [&text[0]]).remove(0)
    }

    #[test]
    fn text_is_read() {
        let floats = strings([" 3.25\t", "1e-5", "1E8", "+inf", "-INF", ".5", "1000"]);
        run("Cast", 9, to(DType::Float), [&floats])
            .gives(tensor(&[7], [3.25f32, 1e-5, 1e8, f32::INFINITY, f32::NEG_INFINITY, 0.5, 1000.0]));
        run("Cast", 9, to(DType::Double), [&strings(["nan", "NaN"])]).gives(tensor(&[2], [f64::NAN; 2]));
        run("Cast", 9, to(DType::Float16), [&strings(["1e9"])]).gives(tensor(&[1], [f16::INFINITY]));
        run("Cast", 9, to(DType::Int32), [&strings(["-7", "100.5", "1e3"])]).gives(tensor(&[3], [-7, 100, 1000]));
        run("Cast", 9, to(DType::Uint64), [&strings(["18446744073709551615"])]).gives(tensor(&[1], [u64::MAX]));
        run("Cast", 9, to(DType::Bool), [&strings(["0", "-0.0", "2"])]).gives(tensor(&[3], [false, false, true]));
    }

    #[test]
    fn other_text_is_refused() {
        let error = run("Cast", 9, to(DType::Float), [&strings(["1", "Hello"])])
            .fails("input[1] = \"Hello\" can't be read as float");
        assert_eq!(error.place().position.as_deref(), Some(&[1][..]));
        for (text, dtype) in [
            ("", DType::Double),
            ("infinity", DType::Float),
            ("-nan", DType::Float),
            ("1_0", DType::Int32),
            ("NaN", DType::Int32),
            ("300", DType::Uint8),
            ("-1", DType::Uint64),
            ("8", DType::Int4),
        ] {
            run("Cast", 21, to(dtype), [&strings([text])]).fails("can't be read as");
        }
    }
}
