//! Equal, Greater, Less and their kin, IsNaN, IsInf: the output is bool.
//! <https://onnx.ai/onnx/operators/onnx__Equal.html>, <https://onnx.ai/onnx/operators/onnx__IsInf.html>

use super::{Elementwise, Function, align, no_row};
use crate::ops::prelude::*;

pub(super) const EQUAL: Implementation =
    Implementation::run("Equal", &[1, 7, 11, 13, 19], |node| Ok(Box::new(Equal { align: align(node)? })));
pub(super) const GREATER: Implementation =
    Implementation::rowwise("Greater", &[1, 7, 9, 13], |node| test(Greater, node));
pub(super) const GREATER_OR_EQUAL: Implementation =
    Implementation::rowwise("GreaterOrEqual", &[12, 16], |node| test(GreaterOrEqual, node));
pub(super) const LESS: Implementation = Implementation::rowwise("Less", &[1, 7, 9, 13], |node| test(Less, node));
pub(super) const LESS_OR_EQUAL: Implementation =
    Implementation::rowwise("LessOrEqual", &[12, 16], |node| test(LessOrEqual, node));

fn test<F: Function + Test<2>>(function: F, node: &Node<'_>) -> Result<Arc<dyn Rowwise>> {
    Ok(Elementwise::new(function, test_row, align(node)?).testing().shared())
}

/// `C = A > B`
#[derive(Debug)]
struct Greater;

impl Test<2> for Greater {
    fn test<T: PartialOrd + Copy>(&self, [a, b]: [T; 2]) -> bool {
        a > b
    }
}

/// `C = A >= B`
#[derive(Debug)]
struct GreaterOrEqual;

impl Test<2> for GreaterOrEqual {
    fn test<T: PartialOrd + Copy>(&self, [a, b]: [T; 2]) -> bool {
        a >= b
    }
}

/// `C = A < B`
#[derive(Debug)]
struct Less;

impl Test<2> for Less {
    fn test<T: PartialOrd + Copy>(&self, [a, b]: [T; 2]) -> bool {
        a < b
    }
}

/// `C = A <= B`
#[derive(Debug)]
struct LessOrEqual;

impl Test<2> for LessOrEqual {
    fn test<T: PartialOrd + Copy>(&self, [a, b]: [T; 2]) -> bool {
        a <= b
    }
}

/// `C = A == B`, also of strings and bools
#[derive(Debug)]
struct Equal {
    align: Align,
}

impl Test<2> for Equal {
    fn test<T: PartialOrd + Copy>(&self, [a, b]: [T; 2]) -> bool {
        a == b
    }
}

impl Operator for Equal {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let held = [Held::Input(0), Held::Input(1)];
        let output = match call.tensor(0)?.dtype() {
            DType::String => {
                let (first, second) = (call.tensor(0)?.clone(), call.tensor(1)?.clone());
                let (pairs, bytes) = compared(call, &first, &second)?;
                call.charge(pairs.saturating_mul(bytes))?;
                let (size, cost) = (DType::String.size(), 1 + usize::try_from(bytes).unwrap_or(usize::MAX));
                call.rowwise_by(held, self.align, DType::Bool, cost, &|[a, b], out| {
                    for ((out, a), b) in out.iter_mut().zip(a.chunks_exact(size)).zip(b.chunks_exact(size)) {
                        *out = u8::from(first.viewed(a) == second.viewed(b));
                    }
                })?
            }
            dtype => {
                let row = test_row(dtype.format()).ok_or_else(|| no_row(dtype))?;
                call.rowwise(held, self.align, DType::Bool, &|inputs, out| row(self, inputs, out))?
            }
        };
        Ok(output.into())
    }

    /// Sizes are often compared with -1.
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_broadcast(self.align)?;
        let (Align::Last, Some(a), Some(b)) = (self.align, facts.list(0), facts.list(1)) else { return Ok(()) };
        let at = |list: &List, k: usize| list.get(if list.len() == 1 { 0 } else { k })?.clone();
        let count = if a.is_empty() || b.is_empty() { 0 } else { a.len().max(b.len()) };
        let equal = (0..count).map(|k| at(&a, k)?.equals(&at(&b, k)?)).collect::<Option<Vec<bool>>>();
        let scalar = [0, 1].iter().all(|k| facts.dims(*k).is_some_and(<[Dim]>::is_empty));
        let shape: &[usize] = if scalar { &[] } else { &[count] };
        if let Some(tensor) = equal.and_then(|equal| Tensor::from_elements(shape, equal).ok()) {
            facts.give_value(0, tensor.into());
        }
        Ok(())
    }
}

/// Upper bounds on the pairs of strings that are compared, and on the bytes that a pair reads: at most its shorter string.
fn compared(call: &Call<'_>, first: &Tensor, second: &Tensor) -> Result<(u64, u64)> {
    let longest = |tensor: &Tensor| {
        let (mut lookout, mut longest) = (call.lookout(), 0);
        for string in tensor.strings()? {
            lookout.after(DType::String.size())?;
            longest = string.len().max(longest);
        }
        Ok::<_, Error>(longest as u64)
    };
    let (a, b) = (first.len() as u64, second.len() as u64);
    let pairs = if first.shape() == second.shape() { a } else { a.saturating_mul(b) };
    Ok((pairs, longest(first)?.min(longest(second)?)))
}

pub(super) const IS_NAN: Implementation = Implementation::rowwise("IsNaN", &[9, 13, 20], |_| {
    Ok(Elementwise::new(IsNaN, IsNaN::row, Align::Last).testing().shared())
});

/// `Y = isnan(X)`
#[derive(Debug)]
struct IsNaN;

impl Test<1> for IsNaN {
    #[allow(clippy::eq_op)] // NaN differs from itself
    fn test<T: PartialOrd + Copy>(&self, [x]: [T; 1]) -> bool {
        x != x
    }
}

impl IsNaN {
    fn row(format: Format) -> Option<Row<IsNaN, 1>> {
        match format {
            Format::Small(Small { specials, .. }) => Some(match specials {
                Specials::TopIsNan => |_, [x], out| has_bits([0x7fu8, 0xff], x, out),
                Specials::NegativeZeroIsNan => |_, [x], out| has_bits([0x80u8], x, out),
                // float8e5m2; those without specials aren't among the types.
                _ => |_, [x], out| has_bits([0x7du8, 0x7e, 0x7f, 0xfd, 0xfe, 0xff], x, out),
            }),
            format => test_row(format),
        }
    }
}

pub(super) const IS_INF: Implementation = Implementation::rowwise("IsInf", &[10, 20], |node| {
    let signs = (node.is_set("detect_positive")?, node.is_set("detect_negative")?);
    Ok(Elementwise::new(IsInf { signs }, IsInf::row, Align::Last).testing().shared())
});

/// `Y = isinf(X)`, of one sign or both
#[derive(Debug)]
struct IsInf {
    /// Positive, negative.
    signs: (bool, bool),
}

impl IsInf {
    fn row(format: Format) -> Option<Row<IsInf, 1>> {
        Some(match format {
            Format::Single => |f, [x], out| f.find([f32::INFINITY, f32::NEG_INFINITY].map(f32::to_bits), x, out),
            Format::Double => |f, [x], out| f.find([f64::INFINITY, f64::NEG_INFINITY].map(f64::to_bits), x, out),
            Format::Half(Half::F16) => |f, [x], out| f.find([0x7c00u16, 0xfc00], x, out),
            Format::Half(Half::Bf16) => |f, [x], out| f.find([0x7f80u16, 0xff80], x, out),
            Format::Small(Small { specials: Specials::Ieee, .. }) => |f, [x], out| f.find([0x7cu8, 0xfc], x, out),
            // The others have no infinity.
            _ => |_, _, out| out.fill(0),
        })
    }

    fn find<T: bytemuck::Pod + Eq>(&self, [positive, negative]: [T; 2], x: &[u8], out: &mut [u8]) {
        match self.signs {
            (true, true) => has_bits([positive, negative], x, out),
            (true, false) => has_bits([positive], x, out),
            (false, true) => has_bits([negative], x, out),
            (false, false) => out.fill(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use half::{bf16, f16};

    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;

    #[test]
    fn order() {
        let (a, b) = ([1f32, 2.0, 3.0, NAN, -0.0].into(), [2f32, 2.0, 2.0, NAN, 0.0].into());
        run("Greater", 13, [], [&a, &b]).gives([false, false, true, false, false]);
        run("GreaterOrEqual", 16, [], [&a, &b]).gives([false, true, true, false, true]);
        run("Less", 9, [], [&a, &b]).gives([true, false, false, false, false]);
        run("LessOrEqual", 12, [], [&a, &b]).gives([true, true, false, false, true]);
        run("Equal", 13, [], [&a, &b]).gives([false, true, false, false, true]);
        run("Less", 9, [], [&[u64::MAX].into(), &[1u64].into()]).gives([false]);
        run("Less", 9, [], [&[-1i8].into(), &[1i8].into()]).gives([true]);
        run("Greater", 13, [], [&vec![bf16::ONE].into(), &vec![bf16::ZERO].into()]).gives([true]);
        run("Less", 9, [], [&tensor(&[2, 1], [1f64, 3.0]), &tensor(&[2], [2f64, 3.0])])
            .gives(tensor(&[2, 2], [true, true, false, false]));
    }

    #[test]
    fn equality() {
        run("Equal", 7, [], [&[true, false].into(), &[true, true].into()]).gives([true, false]);
        run("Equal", 1, [int("broadcast", 1), int("axis", 0)], [&tensor(&[2, 1], [1i64, 2]), &[1i64, 3].into()])
            .gives(tensor(&[2, 1], [true, false]));
        let strings = |shape: &[usize], strings: &[&str]| Tensor::from_strings(shape, strings).unwrap().into();
        run("Equal", 19, [], [&strings(&[2, 1], &["añ", ""]), &strings(&[3], &["añ", "", "a"])])
            .gives(tensor(&[2, 3], [true, false, false, false, true, false]));
    }

    #[test]
    fn nan_and_infinity() {
        run("IsNaN", 9, [], [&[1f32, NAN, -NAN, INF].into()]).gives([false, true, true, false]);
        run("IsNaN", 9, [], [&vec![f16::NAN, f16::INFINITY].into()]).gives([true, false]);
        run("IsInf", 10, [], [&[1f64, f64::INFINITY, f64::NEG_INFINITY, f64::NAN].into()])
            .gives([false, true, true, false]);
        let x = vec![bf16::INFINITY, bf16::NEG_INFINITY, bf16::MAX].into();
        run("IsInf", 20, [int("detect_negative", 0)], [&x]).gives([true, false, false]);
        run("IsInf", 20, [int("detect_positive", 0)], [&x]).gives([false, true, false]);
        run("IsInf", 20, [int("detect_positive", 0), int("detect_negative", 0)], [&x]).gives([false; 3]);
    }

    /// As many codes of each small float are NaN or infinite as its format says.
    #[test]
    fn small_floats() {
        let count = |operator: &str, dtype| {
            let all = Tensor::new(dtype, &[256], (0..=255).collect::<Vec<u8>>()).unwrap();
            let found = crate::ops::testing::outputs(operator, 20, [], [&all.clone().into()]);
            let found = found[0].tensor().unwrap().as_slice::<bool>().unwrap().to_vec();
            for (scalar, found) in all.scalars().zip(&found) {
                let text = scalar.to_string().to_lowercase();
                assert_eq!(text.contains(if operator == "IsNaN" { "nan" } else { "inf" }), *found, "{dtype} {text}");
            }
            found.iter().filter(|found| **found).count()
        };
        for (dtype, nan, infinite) in [
            (DType::Float8e4m3fn, 2, 0),
            (DType::Float8e4m3fnuz, 1, 0),
            (DType::Float8e5m2, 6, 2),
            (DType::Float8e5m2fnuz, 1, 0),
        ] {
            assert_eq!((count("IsNaN", dtype), count("IsInf", dtype)), (nan, infinite), "{dtype}");
        }
    }

    #[test]
    fn sizes_are_compared() {
        infer("Equal", 11, [], ["{N, 3, -1}", "{-1, 3, -1}"]).holds(&[false, true, true]);
        infer("Equal", 13, [], ["{N, M}", "{-1}"]).holds(&[false, false]);
        infer("Equal", 13, [], ["{N, M}", "{-1, 1}"]).gives("[2]");
    }
}
