//! LabelEncoder: other values for those that a table has.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_LabelEncoder.html>

use super::attributes::{equally_many, list, only, texts};
use super::entry;
use super::tables::{Both, Mapping, Same, Table};
use crate::ops::prelude::*;

pub(super) const LABEL_ENCODER: Implementation = entry("LabelEncoder", &[1, 2, 4], load);

/// `Y[i] = values[k] where keys[k] is X[i]`, or the default. Of equal keys the last one counts, as version 4 says. Floats are
/// the same key if their bits are, and from version 4 on if they are equal, or both NaN.
#[derive(Debug)]
struct LabelEncoder {
    /// The attribute that has the keys, and their type.
    keys: (&'static str, DType),
    /// The type of the values.
    values: DType,
    mapping: Mapping,
}

/// In version 1 the table has the strings of integers, from 0 on, and is read in both directions.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    if node.version() < 2 {
        let strings = texts(node, "classes_strings")?;
        node.bill(size_of::<i64>() * strings.len())?;
        let ints: Vec<i64> = (0..strings.len() as i64).collect();
        return Ok(Box::new(Both::of(node, &ints.into(), &strings)?));
    }
    let [(keys, key), (values, dtype)] = [side(node, "keys")?, side(node, "values")?];
    node.check_output_type(values, dtype)?;
    equally_many(node, &[keys, values])?;
    let same = if node.version() < 4 { Same::Bits } else { Same::Equal };
    let table = Table::of(node, &list(node, keys)?, same)?;
    let mapping = Mapping::of(node, table, &list(node, values)?, &default(node, dtype)?)?;
    Ok(Box::new(LabelEncoder { keys: (keys, key), values: dtype, mapping }))
}

/// The value of what isn't among the keys.
fn default(node: &Node<'_>, dtype: DType) -> Result<Tensor> {
    if let Some(given) = node.optional("default_tensor", Node::tensor)? {
        if given.dtype() == dtype && given.len() == 1 {
            return Ok(given.clone());
        }
        let (own, count) = (given.dtype(), given.len());
        let text = format!("default_tensor holds {own} of {count} entries: one of {dtype} is needed");
        return Err(Error::model(text).attribute("default_tensor"));
    }
    Ok(match dtype {
        DType::String => Tensor::from_strings(&[], [node.string("default_string")?])?,
        DType::Int64 => Tensor::scalar(node.int("default_int64")?),
        DType::Int32 => Tensor::scalar(-1i32),
        DType::Int16 => Tensor::scalar(-1i16),
        DType::Double => Tensor::scalar(-0.0f64),
        _ => Tensor::scalar(node.float("default_float")?),
    })
}

/// The list on one side of the table, and its type. Tensors came with version 4.
fn side(node: &Node<'_>, of: &str) -> Result<(&'static str, DType)> {
    let lists = match of {
        "keys" => ["keys_floats", "keys_int64s", "keys_strings", "keys_tensor"],
        _ => ["values_floats", "values_int64s", "values_strings", "values_tensor"],
    };
    let known = if node.version() < 4 { 3 } else { 4 };
    let (name, _) = only(node, lists.get(..known).unwrap_or(&lists))?;
    let dtype = match node.attribute(name) {
        Some(Attribute::Tensor(tensor)) => tensor.dtype(),
        Some(Attribute::Floats(_)) => DType::Float,
        Some(Attribute::Ints(_)) => DType::Int64,
        _ => DType::String,
    };
    Ok((name, dtype))
}

impl Operator for LabelEncoder {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        keys_match(self.keys, call.tensor(0)?.dtype())?;
        self.mapping.run(call)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        if let Some(from) = facts.input_type(0).and_then(ValueType::dtype) {
            keys_match(self.keys, from)?;
        }
        facts.give_type(0, self.values);
        Ok(())
    }
}

fn keys_match((keys, key): (&'static str, DType), from: DType) -> Result<()> {
    if from == key {
        return Ok(());
    }
    Err(Error::model(format!("{keys} holds {key}, but \"X\" is {from}")).attribute(keys))
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, ints, run, strings, tensor};

    fn floats(name: &'static str, values: &[f32]) -> (&'static str, Attribute) {
        (name, Attribute::Floats(values.to_vec()))
    }

    #[test]
    fn values_of_keys() {
        let x = tensor(&[4], [3f32, f32::NAN, -0.0, 5.0]);
        let both = || [floats("keys_floats", &[3.0, f32::NAN, 0.0, 3.0]), ints("values_int64s", &[1, 2, 3, 4])];
        // -0 has other bits than 0.
        run(NAME, 2, both(), [&x]).gives(tensor(&[4], [4i64, 2, -1, -1]));
        run(NAME, 4, both(), [&x]).gives(tensor(&[4], [4i64, 2, 3, -1]));
        let strings_of = |list: &[&str]| -> Value { Tensor::from_strings(&[list.len()], list).unwrap().into() };
        run(NAME, 1, [strings("classes_strings", &["a", "b"])], [&strings_of(&["b", "c"])])
            .gives(tensor(&[2], [1i64, -1]));
        run(NAME, 1, [strings("classes_strings", &["a", "b"])], [&tensor(&[2], [1i64, 2])])
            .gives(strings_of(&["b", "_Unused"]));
        let of = |name: &'static str, list: Vec<i16>| (name, Attribute::Tensor(list.into()));
        let table = || [of("keys_tensor", vec![1, 2]), of("values_tensor", vec![5, 6])];
        run(NAME, 4, table(), [&tensor(&[2], [2i16, 3])]).gives(tensor(&[2], [6i16, -1]));
        let [keys, values] = table();
        run(NAME, 4, [keys, values, of("default_tensor", vec![1, 2])], [&tensor(&[1], [2i16])])
            .fails("default_tensor holds int16 of 2 entries: one of int16 is needed");
    }

    /// As if each element were searched for, in more than a block; sizes of values differ from those of keys.
    #[test]
    fn every_type_of_keys() {
        macro_rules! each {
            ($($key:ty: $keys:expr, $value:ty;)*) => {$(
                let (keys, count): ([$key; 5], _) = ($keys, if cfg!(miri) { 20 } else { 3000 });
                let x: Vec<$key> = (0..count).map(|k| if k % 7 < 5 { keys[k % 7] } else { 99 as $key }).collect();
                let is_same = |one: &$key, other: &$key| one == other || one != one && other != other;
                let place = |x: &$key| keys.iter().rposition(|key| is_same(key, x));
                let want: Vec<$value> = x.iter().map(|x| place(x).map_or(-1 as $value, |k| k as $value)).collect();
                let values: Vec<$value> = (0..5).map(|k| k as $value).collect();
                let default = ("default_tensor", Attribute::Tensor(vec![-1 as $value].into()));
                let of = |name: &'static str, list: Tensor| (name, Attribute::Tensor(list));
                let table = [of("keys_tensor", keys.to_vec().into()), of("values_tensor", values.into()), default];
                run(NAME, 4, table, [&tensor(&[count], x)]).gives(tensor(&[count], want));
            )*};
        }
        each! {
            i16: [1, -1, i16::MAX, i16::MIN, 1], f64;
            i32: [1, -1, i32::MAX, i32::MIN, 1], i16;
            i64: [1, -1, i64::MAX, i64::MIN, -1], f32;
            f32: [1.5, -0.0, f32::NAN, f32::NEG_INFINITY, 0.0], i64;
            f64: [1.5, -0.0, f64::NAN, f64::NEG_INFINITY, 1e-320], i32;
        }
    }

    use crate::tensor::Tensor;
    use crate::value::Value;

    const NAME: &str = "ai.onnx.ml.LabelEncoder";

    #[test]
    fn shapes_and_types() {
        infer(NAME, 1, [], ["string[N, 3]"]).gives("[N, 3]");
        infer(NAME, 1, [], ["string[N, 3]"]).has_type("int64");
        infer(NAME, 1, [], ["int64[N, 3]"]).has_type("string");
        infer(NAME, 2, [strings("keys_strings", &["a"]), ints("values_int64s", &[1])], ["string[N]"]).has_type("int64");
        let tensor = |name: &'static str| (name, Attribute::Tensor(Tensor::from_elements(&[1], vec![1i16]).unwrap()));
        infer(NAME, 4, [tensor("keys_tensor"), tensor("values_tensor")], ["int16[N]"]).has_type("int16");
        infer(NAME, 4, [ints("keys_int64s", &[1]), tensor("values_tensor")], ["int64[N]"]).gives("[N]");
    }

    #[test]
    fn faults() {
        let keys = || ints("keys_int64s", &[1]);
        infer(NAME, 2, [keys(), ints("values_int64s", &[1])], ["string[N]"])
            .fails("keys_int64s holds int64, but \"X\" is string");
        infer(NAME, 2, [keys(), ints("values_int64s", &[1, 2])], ["int64[N]"])
            .fails("values_int64s has 2 entries, and keys_int64s has 1: they must be equally many");
        infer(NAME, 2, [keys()], ["int64"])
            .fails("neither values_floats, values_int64s nor values_strings is given: one is needed");
        infer(NAME, 4, [keys(), strings("keys_strings", &["a"])], ["int64"])
            .fails("keys_int64s and keys_strings are both given: allowed is one");
        let halves = Attribute::Tensor(Tensor::from_elements(&[1], vec![true]).unwrap());
        infer(NAME, 4, [keys(), ("values_tensor", halves)], ["int64"]).fails("values_tensor asks for bool: allowed");
    }
}
