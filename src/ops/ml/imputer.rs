//! Imputer: elements of one value replaced by others.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_Imputer.html>

use super::attributes::{one_or_each, only};
use super::entry;
use super::numbers::Each;
use crate::ops::prelude::*;

pub(super) const IMPUTER: Implementation = entry("Imputer", &[1], load);

/// `Y = imputed_value if X is replaced_value, X otherwise`; NaN stands for every NaN
#[derive(Debug)]
struct Imputer {
    imputed: Imputed,
    replaced: Replaced,
}

/// A number for each feature, or one for all.
#[derive(Debug)]
enum Imputed {
    Floats(Vec<f32>),
    Ints(Vec<i64>),
}

#[derive(Debug)]
struct Replaced {
    float: f32,
    int: i64,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (name, count) = only(node, &[FLOATS, INTS])?;
    node.bill(count * size_of::<i64>())?;
    let imputed = match name {
        FLOATS => Imputed::Floats(node.floats(FLOATS)?.to_vec()),
        _ => Imputed::Ints(node.ints(INTS)?.to_vec()),
    };
    let replaced = Replaced { float: node.float("replaced_value_float")?, int: node.int("replaced_value_int64")? };
    Ok(Box::new(Imputer { imputed, replaced }))
}

const FLOATS: &str = "imputed_value_floats";
const INTS: &str = "imputed_value_int64s";

impl Operator for Imputer {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let dtype = call.tensor(0)?.dtype();
        let each = match (&self.imputed, dtype) {
            (Imputed::Floats(list), DType::Float) => Each::of(FLOATS, list.clone(), 0.0)?,
            (Imputed::Floats(list), DType::Double) => {
                Each::of(FLOATS, list.iter().map(|value| f64::from(*value)).collect(), 0.0)?
            }
            (Imputed::Ints(list), DType::Int64) => Each::of(INTS, list.clone(), 0)?,
            (Imputed::Ints(list), DType::Int32) => {
                let narrow = |value: &i64| {
                    i32::try_from(*value).map_err(|_| {
                        Error::model(format!("{INTS} holds {value}, which int32 can't")).attribute(INTS).value(*value)
                    })
                };
                Each::of(INTS, list.iter().map(narrow).collect::<Result<_>>()?, 0)?
            }
            (Imputed::Floats(_), _) => return Err(unfit(FLOATS, dtype)),
            (Imputed::Ints(_), _) => return Err(unfit(INTS, dtype)),
        };
        let row = number_row(dtype.format()).ok_or_else(|| unfit(INTS, dtype))?;
        let held = [Held::Input(0), each.held(call)?];
        Ok(call.rowwise(held, Align::Last, dtype, &|inputs, out| row(&self.replaced, inputs, out))?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let name = if let Imputed::Floats(_) = self.imputed { FLOATS } else { INTS };
        if let Some(input) = facts.input_type(0)
            && matches!(input.dtype(), Some(DType::Float | DType::Double)) != (name == FLOATS)
        {
            return Err(unfit(name, input));
        }
        one_or_each(facts, name)?;
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

fn unfit(name: &str, input: impl std::fmt::Display) -> Error {
    Error::model(format!("{name} is given, but \"X\" is {input}")).attribute(name)
}

impl Floats<2> for Replaced {
    #[inline(always)]
    fn float<T: Real>(&self, [x, imputed]: [T; 2]) -> T {
        let replaced = T::of(self.float.into());
        if x == replaced || x.is_nan() && replaced.is_nan() { imputed } else { x }
    }
}

impl Ints<2> for Replaced {
    #[inline(always)]
    fn int<T: Int>(&self, [x, imputed]: [T; 2]) -> T {
        if x.to_i128() == i128::from(self.int) { imputed } else { x }
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, run, tensor};

    #[test]
    fn values_are_replaced() {
        let name = "ai.onnx.ml.Imputer";
        let x = tensor(&[2, 2], [1i64, 7, 7, 2]);
        let ints_of = |values: &[i64]| [ints("imputed_value_int64s", values), int("replaced_value_int64", 7)];
        run(name, 1, ints_of(&[10, 20]), [&x]).gives(tensor(&[2, 2], [1i64, 20, 10, 2]));
        run(name, 1, ints_of(&[-3]), [&tensor(&[2], [7i32, 6])]).gives(tensor(&[2], [-3i32, 6]));
        run(name, 1, ints_of(&[1 << 40]), [&tensor(&[1], [7i32])])
            .fails("imputed_value_int64s holds 1099511627776, which int32 can't");
        let nan = ("replaced_value_float", Attribute::Float(f32::NAN));
        let list = ("imputed_value_floats", Attribute::Floats(vec![0.5]));
        run(name, 1, [list, nan], [&tensor(&[2], [f64::NAN, 3.0])]).gives(tensor(&[2], [0.5f64, 3.0]));
        run(name, 1, ints_of(&[1, 2, 3]), [&x]).fails("imputed_value_int64s has 3 entries, but \"X\" has 2 features");
    }

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.Imputer";
        infer(name, 1, [ints("imputed_value_int64s", &[1, 2, 3])], ["int64[N, 3]"]).gives("[N, 3]");
        infer(name, 1, [ints("imputed_value_int64s", &[1])], ["int32[N, C]"]).gives("[N, C]");
    }

    #[test]
    fn faults() {
        let name = "ai.onnx.ml.Imputer";
        infer(name, 1, [ints("imputed_value_int64s", &[1, 2])], ["int64[N, 3]"])
            .fails("imputed_value_int64s has 2 entries, but \"X\" has 3 features: allowed 1, 3");
        infer(name, 1, [ints("imputed_value_int64s", &[1])], ["float[N, 3]"])
            .fails("imputed_value_int64s is given, but \"X\" is float32");
        infer(name, 1, [], ["float[N, 3]"]).fails("neither imputed_value_floats nor imputed_value_int64s is given");
    }
}
