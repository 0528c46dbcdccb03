//! CategoryMapper: integers for strings, or strings for integers.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_CategoryMapper.html>

use super::attributes::{list, texts};
use super::entry;
use super::tables::Both;
use crate::ops::prelude::*;

/// The text gives a meaning to one of both defaults; but both have a value, so the type of the input decides, as in engines.
pub(super) const CATEGORY_MAPPER: Implementation = entry("CategoryMapper", &[1], |node| {
    let ints = node.optional("cats_int64s", list)?.unwrap_or_else(|| Vec::<i64>::new().into());
    let strings = texts(node, "cats_strings")?;
    if ints.len() != strings.len() {
        let (strings, ints) = (strings.len(), ints.len());
        let text = format!("cats_strings has {strings} entries, and cats_int64s has {ints}: they must be equally many");
        return Err(Error::model(text).attribute("cats_strings").size(strings));
    }
    Ok(Box::new(Both::of(node, &ints, &strings)?))
});

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, ints, run, strings, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    #[test]
    fn both_directions() {
        let name = "ai.onnx.ml.CategoryMapper";
        let table = || [ints("cats_int64s", &[4, 9]), strings("cats_strings", &["a", "b"])];
        let text = |list: [&str; 3]| -> Value { Tensor::from_strings(&[3], list).unwrap().into() };
        run(name, 1, table(), [&text(["b", "z", "a"])]).gives(tensor(&[3], [9i64, -1, 4]));
        run(name, 1, table(), [&tensor(&[3], [9i64, 5, 4])]).gives(text(["b", "_Unused", "a"]));
        let [ints, strings] = table();
        run(name, 1, [ints, strings, int("default_int64", 7)], [&text(["", "b", "b"])])
            .gives(tensor(&[3], [7i64, 9, 9]));
    }

    #[test]
    fn shapes_and_types() {
        let name = "ai.onnx.ml.CategoryMapper";
        let cats = [ints("cats_int64s", &[1, 2]), strings("cats_strings", &["a", "b"])];
        infer(name, 1, cats.clone(), ["string[N, 3]"]).gives("[N, 3]");
        infer(name, 1, cats.clone(), ["string[N, 3]"]).has_type("int64");
        infer(name, 1, cats, ["int64[N, 3]"]).has_type("string");
        infer(name, 1, [ints("cats_int64s", &[1, 2]), strings("cats_strings", &["a"])], ["string"])
            .fails("cats_strings has 1 entries, and cats_int64s has 2: they must be equally many");
        infer(name, 1, [ints("cats_int64s", &[1, 2])], ["string"])
            .fails("cats_strings has 0 entries, and cats_int64s has 2: they must be equally many");
    }
}
