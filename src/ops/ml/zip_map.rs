//! ZipMap: a map for each row, from keys to the row's elements.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_ZipMap.html>

use super::attributes::labels;
use super::missing;
use crate::ops::prelude::*;

pub(super) const ZIP_MAP: Implementation = missing("ZipMap", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let (key, keys) = labels(facts, "classlabels_int64s", "classlabels_strings")?;
    if let Some(Dim::Fixed(columns)) = facts.dims(0).and_then(<[Dim]>::last)
        && *columns != keys
    {
        let text = format!("\"X\" has {columns} columns, but there are {keys} keys: they must be equally many");
        return Err(Error::input(text).parameter("X").size(*columns));
    }
    facts.give_type(0, ValueType::Map(key, Box::new(DType::Float.into())).sequence());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, strings};

    #[test]
    fn types() {
        let name = "ai.onnx.ml.ZipMap";
        infer(name, 1, [ints("classlabels_int64s", &[5, 6])], ["float[N, 2]"]).has_type("seq(map(int64,float32))");
        infer(name, 1, [strings("classlabels_strings", &["a"])], ["float"]).has_type("seq(map(string,float32))");
        infer(name, 1, [ints("classlabels_int64s", &[5, 6])], ["float[N, 3]"])
            .fails("\"X\" has 3 columns, but there are 2 keys: they must be equally many");
    }
}
