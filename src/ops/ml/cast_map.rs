//! CastMap: the values of a map as a tensor, in the order of its keys.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_CastMap.html>

use super::entry;
use crate::ops::prelude::*;
use kernels::convert::wrapped;

pub(super) const CAST_MAP: Implementation = entry("CastMap", &[1], load);

/// `Y[0, ..]` = the values by increasing key; if sparse, `Y[0, key] = value`, and 0 elsewhere. The text doesn't say what rank
/// the tensor has, nor what stands where there is no key: this is what engines give. Values become others as by Cast.
#[derive(Debug)]
struct CastMap {
    to: DType,
    /// The number of columns, if they are sparse.
    columns: Option<usize>,
}

const TYPES: [(&str, DType); 3] =
    [("TO_FLOAT", DType::Float), ("TO_STRING", DType::String), ("TO_INT64", DType::Int64)];
const FORMS: [(&str, bool); 2] = [("DENSE", false), ("SPARSE", true)];

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (to, sparse, most) = (node.choice("cast_to", &TYPES)?, node.choice("map_form", &FORMS)?, node.int("max_map")?);
    let columns = sparse.then(|| {
        usize::try_from(most).map_err(|_| {
            Error::model(format!("max_map is {most}: it must be at least 0")).attribute("max_map").value(most)
        })
    });
    Ok(Box::new(CastMap { to, columns: columns.transpose()? }))
}

impl Operator for CastMap {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let map = call.input(0).ok_or_else(|| Error::bug("CastMap has no map"))?.map()?;
        let mut entries: Vec<(i64, &Value)> = map.keys().as_slice::<i64>()?.iter().copied().zip(map.values()).collect();
        call.charge(entries.len() as u64)?;
        entries.sort_by_key(|(key, _)| *key);
        let columns = self.columns.unwrap_or(entries.len());
        match self.to {
            DType::Float => self.numbers::<f32>(call, &entries, columns, |value| match value {
                Scalar::Float(value) => Some(*value),
                Scalar::String(text) => parse::float(text),
                _ => None,
            }),
            DType::Int64 => self.numbers::<i64>(call, &entries, columns, |value| match value {
                Scalar::Float(value) => Some(wrapped((*value).into())),
                Scalar::String(text) => parse::integer(text, DType::Int64),
                _ => None,
            }),
            _ => self.strings(call, &entries, columns),
        }
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_type(0, self.to);
        facts.give(0, [Dim::Fixed(1), self.columns.map_or(Dim::Unknown, Dim::Fixed)]);
        Ok(())
    }
}

impl CastMap {
    /// The column of an entry, which is number `k` by its key.
    fn column(&self, k: usize, key: i64) -> Result<usize> {
        let Some(columns) = self.columns else { return Ok(k) };
        usize::try_from(key).ok().filter(|column| *column < columns).ok_or_else(|| {
            let text = format!(
                "the key {key} has no column: max_map = {columns} allows keys below {columns} that aren't negative"
            );
            Error::input(text).parameter("X").value(key)
        })
    }

    fn numbers<T: Element + Pod>(
        &self,
        call: &Call<'_>,
        entries: &[(i64, &Value)],
        columns: usize,
        read: impl Fn(&Scalar<'_>) -> Option<T>,
    ) -> Result<Values> {
        let mut output = call.output::<T>(&[1, columns])?;
        kernels::fill(&[0], output.bytes_mut(), call.resources())?;
        let (to, mut lookout) = (output.elements_mut::<T>()?, call.lookout());
        for (k, (key, value)) in entries.iter().enumerate() {
            lookout.after(size_of::<Value>())?;
            let scalar = one(value)?;
            let number = read(&scalar).ok_or_else(|| {
                let text = format!("the value {} of the key {key} is no number of {}", scalar, T::DTYPE);
                Error::input(text).parameter("X")
            })?;
            if let Some(to) = to.get_mut(self.column(k, *key)?) {
                *to = number;
            }
        }
        Ok(output.finish().into())
    }

    fn strings(&self, call: &Call<'_>, entries: &[(i64, &Value)], columns: usize) -> Result<Values> {
        for (k, (key, _)) in entries.iter().enumerate() {
            self.column(k, *key)?;
        }
        let mut rest = entries.iter().enumerate().peekable();
        let strings = (0..columns).map(|column| {
            let mut found = None;
            while let Some((_, (_, value))) = rest.next_if(|(k, (key, _))| self.column(*k, *key).ok() == Some(column)) {
                found = Some(match one(value)? {
                    Scalar::String(text) => text.to_string(),
                    number => number.to_string(),
                });
            }
            Ok(found.unwrap_or_else(|| "0".to_string()))
        });
        Ok(call.strings(&[1, columns], strings)?.into())
    }
}

/// The element of a value.
fn one(value: &Value) -> Result<Scalar<'_>> {
    value
        .tensor()?
        .scalars()
        .next()
        .ok_or_else(|| Error::input("a value of the map \"X\" has no element").parameter("X"))
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, string, tensor};
    use crate::tensor::Tensor;
    use crate::value::{Map, Sequence, Value};

    fn map<T>(keys: Vec<i64>, values: Vec<T>) -> Value
    where
        Tensor: From<Vec<T>>,
    {
        let values: Vec<Value> = values.into_iter().map(|value| Tensor::from(vec![value]).into()).collect();
        Map::new(keys.into(), Sequence::new(values[0].value_type().unwrap(), values).unwrap()).unwrap().into()
    }

    #[test]
    fn values_in_the_order_of_keys() {
        let name = "ai.onnx.ml.CastMap";
        let floats = map(vec![3, 1], vec![0.5f32, 2.75]);
        let sparse = |most| [string("map_form", "SPARSE"), int("max_map", most), string("cast_to", "TO_STRING")];
        run(name, 1, [], [&floats]).gives(tensor(&[1, 2], [2.75f32, 0.5]));
        run(name, 1, [string("cast_to", "TO_INT64")], [&floats]).gives(tensor(&[1, 2], [2i64, 0]));
        let beyond = map(vec![0, 1, 2, 3], vec![f32::INFINITY, f32::NAN, 2f32.powi(63), -1.5 * 2f32.powi(63)]);
        run(name, 1, [string("cast_to", "TO_INT64")], [&beyond]).gives(tensor(&[1, 4], [0i64, 0, i64::MIN, 1 << 62]));
        let text = Tensor::from_strings(&[1, 4], ["0", "2.75", "0", "0.5"]).unwrap();
        run(name, 1, sparse(4), [&floats]).gives(text);
        run(name, 1, sparse(3), [&floats]).fails("the key 3 has no column: max_map = 3 allows keys below 3");
        run(name, 1, sparse(-1), [&floats]).fails("max_map is -1: it must be at least 0");
        let [form, most, _] = sparse(4);
        run(name, 1, [form, most], [&floats]).gives(tensor(&[1, 4], [0f32, 2.75, 0.0, 0.5]));
        let text = |values: [&str; 2]| -> Value {
            let values: Vec<Value> = values.map(|text| Tensor::from_strings(&[], [text]).unwrap().into()).to_vec();
            Map::new(vec![0i64, 1].into(), Sequence::new(values[0].value_type().unwrap(), values).unwrap())
                .unwrap()
                .into()
        };
        run(name, 1, [], [&text(["7", "x"])]).fails("the value \"x\" of the key 1 is no number of float32");
        run(name, 1, [], [&text(["-7.5", " 8 "])]).gives(tensor(&[1, 2], [-7.5f32, 8.0]));
        run(name, 1, [string("cast_to", "TO_INT64")], [&text(["-7.5", " 8 "])]).gives(tensor(&[1, 2], [-7i64, 8]));
    }

    #[test]
    fn types() {
        let name = "ai.onnx.ml.CastMap";
        infer(name, 1, [], ["-"]).has_type("float32");
        infer(name, 1, [string("cast_to", "TO_INT64")], ["-"]).has_type("int64");
        infer(name, 1, [string("cast_to", "INT64")], ["-"])
            .fails("cast_to is \"INT64\": allowed TO_FLOAT, TO_STRING, TO_INT64");
        infer(name, 1, [string("map_form", "THIN")], ["-"]).fails("map_form is \"THIN\": allowed DENSE, SPARSE");
    }
}
