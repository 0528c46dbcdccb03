//! ZipMap: a map for each row, from keys to the row's elements.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_ZipMap.html>

use super::attributes::{list, only};
use super::entry;
use crate::ops::prelude::*;

pub(super) const ZIP_MAP: Implementation = entry("ZipMap", &[1], load);

/// `Z[n] = {keys[k]: X[n, k], ..}`; a list is one row
#[derive(Debug)]
struct ZipMap {
    keys: Tensor,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(ZipMap { keys: list(node, only(node, &["classlabels_int64s", "classlabels_strings"])?.0)? }))
}

impl Operator for ZipMap {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.ranked(0)?;
        let (columns, keys) = (x.shape().last().copied().unwrap_or(0), self.keys.len());
        if columns != keys || x.rank() > 2 {
            return Err(unfit(columns, keys));
        }
        let context = call.context();
        let element = ValueType::Map(self.keys.dtype(), Box::new(DType::Float.into()));
        let mut maps = context.sequence(Some(element), x.len() / keys.max(1))?;
        let mut lookout = call.lookout();
        for row in x.as_slice::<f32>()?.chunks_exact(keys.max(1)) {
            call.charge(keys as u64)?;
            let mut values = context.sequence(Some(DType::Float.into()), keys)?;
            for value in row {
                lookout.after(size_of::<Value>())?;
                let mut scalar = call.output::<f32>(&[])?;
                scalar.elements_mut()?.fill(*value);
                values.push(scalar.finish().into(), &context.memory)?;
            }
            maps.push(Map::new(self.keys.clone(), values)?.into(), &context.memory)?;
        }
        Ok(maps.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let keys = self.keys.len();
        if let Some(Dim::Fixed(columns)) = facts.dims(0).and_then(<[Dim]>::last)
            && *columns != keys
        {
            return Err(unfit(*columns, keys));
        }
        facts.give_type(0, ValueType::Map(self.keys.dtype(), Box::new(DType::Float.into())).sequence());
        Ok(())
    }
}

#[cold]
fn unfit(columns: usize, keys: usize) -> Error {
    let text = format!("\"X\" has {columns} columns, but there are {keys} keys: they must be equally many");
    Error::input(text).parameter("X").size(columns)
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, outputs, run, strings, tensor};

    #[test]
    fn a_map_for_each_row() {
        let name = "ai.onnx.ml.ZipMap";
        let maps = outputs(name, 1, [ints("classlabels_int64s", &[5, 6])], [&tensor(&[2, 2], [1f32, 2.0, 3.0, 4.0])]);
        let maps = maps[0].sequence().unwrap().values();
        let second = maps[1].map().unwrap();
        assert_eq!((maps.len(), second.keys()), (2, &vec![5i64, 6].into()));
        assert_eq!(second.values(), [tensor(&[], [3f32]), tensor(&[], [4f32])]);
        let one = outputs(name, 1, [strings("classlabels_strings", &["a"])], [&tensor(&[1], [0.5f32])]);
        assert_eq!(one[0].to_string(), "seq(map(string,float32)) [map(string,float32) {\"a\": float32[] 0.5}]");
        run(name, 1, [ints("classlabels_int64s", &[5])], [&tensor(&[1, 2], [1f32, 2.0])])
            .fails("\"X\" has 2 columns, but there are 1 keys");
    }

    #[test]
    fn types() {
        let name = "ai.onnx.ml.ZipMap";
        infer(name, 1, [ints("classlabels_int64s", &[5, 6])], ["float[N, 2]"]).has_type("seq(map(int64,float32))");
        infer(name, 1, [strings("classlabels_strings", &["a"])], ["float"]).has_type("seq(map(string,float32))");
        infer(name, 1, [ints("classlabels_int64s", &[5, 6])], ["float[N, 3]"])
            .fails("\"X\" has 3 columns, but there are 2 keys: they must be equally many");
    }
}
