//! DictVectorizer: the values of a map at the places of their keys in a vocabulary, zeros at others.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_DictVectorizer.html>

use super::attributes::{list, only};
use super::entry;
use super::tables::{Same, Table};
use crate::ops::prelude::*;

pub(super) const DICT_VECTORIZER: Implementation = entry("DictVectorizer", &[1], load);

/// `Y[k] = X[vocabulary[k]]`, 0 or an empty string if `X` hasn't that key. The output is a list, as the text has it; some
/// engines make a row of it.
#[derive(Debug)]
struct DictVectorizer {
    /// The attribute that has the vocabulary.
    vocabulary: &'static str,
    table: Table,
    count: usize,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (name, count) = only(node, &["int64_vocabulary", "string_vocabulary"])?;
    let table = Table::of(node, &list(node, name)?, Same::Bits)?;
    Ok(Box::new(DictVectorizer { vocabulary: name, table, count }))
}

impl Operator for DictVectorizer {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let value = call.input(0).ok_or_else(|| Error::bug("DictVectorizer has no map"))?;
        let map = value.map()?;
        self.check(map.keys().dtype())?;
        let mut places: Vec<(usize, &Tensor)> = Vec::with_capacity(map.values().len());
        let mut lookout = call.lookout();
        for (key, value) in map.keys().scalars().zip(map.values()) {
            call.charge(1)?;
            lookout.after(map.keys().dtype().size() + size_of::<Value>())?;
            let place = self.table.place(&key).ok_or_else(|| {
                Error::input(format!("the key {key} of \"X\" is not in the vocabulary")).parameter("X")
            })?;
            places.push((place, value.tensor()?));
        }
        places.sort_by_key(|(place, _)| *place);
        let dtype =
            places.first().map(|(_, tensor)| tensor.dtype()).or_else(|| value.value_type().and_then(value_dtype));
        let dtype = dtype.unwrap_or(DType::Float);
        // Of equal keys the last one counts.
        let mut rest = places.into_iter().peekable();
        let mut next = |k: usize| {
            let mut found = None;
            while let Some((_, tensor)) = rest.next_if(|(place, _)| *place == k) {
                found = Some(tensor);
            }
            found
        };
        if dtype == DType::String {
            let text = |k| {
                Ok(next(k).and_then(|tensor| tensor.strings().ok()?.next().map(str::to_string)).unwrap_or_default())
            };
            return Ok(call.strings(&[self.count], (0..self.count).map(text))?.into());
        }
        let mut output = call.output_of(dtype, [self.count].as_slice().into())?;
        kernels::fill(&[0], output.bytes_mut(), call.resources())?;
        for (k, to) in output.bytes_mut().chunks_exact_mut(dtype.size()).enumerate() {
            lookout.after(to.len())?;
            if let Some(from) = next(k).map(Tensor::bytes).filter(|from| from.len() == to.len()) {
                to.copy_from_slice(from);
            }
        }
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give(0, [Dim::Fixed(self.count)]);
        if let Some(ValueType::Map(key, value)) = facts.input_type(0) {
            self.check(*key)?;
            facts.give_type(0, (**value).clone());
        }
        Ok(())
    }
}

impl DictVectorizer {
    fn check(&self, keys: DType) -> Result<()> {
        self.table.check(self.vocabulary, "the keys of \"X\" are", keys)
    }
}

/// The element type of the values of a map.
fn value_dtype(map: ValueType) -> Option<DType> {
    match map {
        ValueType::Map(_, value) => value.dtype(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, run, strings, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Map, Sequence, Value};

    #[test]
    fn values_stand_at_the_places_of_their_keys() {
        let name = "ai.onnx.ml.DictVectorizer";
        let keys = |keys: [&str; 3]| Tensor::from_strings(&[3], keys).unwrap();
        let values = |values: [i64; 3]| {
            let values = values.map(|value| Value::from(Tensor::scalar(value)));
            Sequence::new(values[0].value_type().unwrap(), values).unwrap()
        };
        let map = |names, numbers| -> Value { Map::new(keys(names), values(numbers)).unwrap().into() };
        let vocabulary = || [strings("string_vocabulary", &["a", "c", "b", "z"])];
        run(name, 1, vocabulary(), [&map(["z", "a", "c"], [2, 4, 8])]).gives(tensor(&[4], [4i64, 8, 0, 2]));
        run(name, 1, vocabulary(), [&map(["a", "a", "z"], [2, 4, 8])]).gives(tensor(&[4], [4i64, 0, 0, 8]));
        run(name, 1, vocabulary(), [&map(["z", "y", "c"], [2, 4, 8])])
            .fails("the key \"y\" of \"X\" is not in the vocabulary");
    }

    #[test]
    fn shapes_and_types() {
        let name = "ai.onnx.ml.DictVectorizer";
        infer(name, 1, [strings("string_vocabulary", &["a", "b"])], ["map(string,int64)"]).gives("[2]");
        infer(name, 1, [strings("string_vocabulary", &["a", "b"])], ["map(string,int64)"]).has_type("int64");
        infer(name, 1, [ints("int64_vocabulary", &[5, 6])], ["map(int64,double)"]).has_type("float64");
    }

    #[test]
    fn faults() {
        let name = "ai.onnx.ml.DictVectorizer";
        infer(name, 1, [], ["map(int64,float)"])
            .fails("neither int64_vocabulary nor string_vocabulary is given: one is needed");
        let both = [ints("int64_vocabulary", &[5]), strings("string_vocabulary", &["a"])];
        infer(name, 1, both, ["-"]).fails("int64_vocabulary and string_vocabulary are both given: allowed is one");
        infer(name, 1, [ints("int64_vocabulary", &[5])], ["map(string,float)"])
            .fails("int64_vocabulary is given, but the keys of \"X\" are string");
    }
}
