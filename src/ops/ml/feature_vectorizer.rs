//! FeatureVectorizer: the features of several tensors, one after the other.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_FeatureVectorizer.html>

use super::entry;
use crate::ops::prelude::*;

pub(super) const FEATURE_VECTORIZER: Implementation = entry("FeatureVectorizer", &[1], load);

/// `Y = [inputs..]` along the features, as floats; a list is one row. Where `inputdimensions` says another number of features
/// than an input has, the others are left out, or zeros follow, as in engines: the text doesn't say.
#[derive(Debug)]
struct FeatureVectorizer {
    sizes: Option<Vec<usize>>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let name = "inputdimensions";
    let Some(given) = node.optional(name, Node::ints)? else { return Ok(Box::new(FeatureVectorizer { sizes: None })) };
    if given.len() != node.input_count() {
        let text = format!("{name} has {} entries, but there are {} inputs", given.len(), node.input_count());
        return Err(Error::model(text).attribute(name).size(given.len()));
    }
    let size = |(k, size): (usize, &i64)| {
        usize::try_from(*size).map_err(|_| {
            Error::model(format!("{name}[{k}] is {size}: it must be at least 0")).attribute(name).value(*size)
        })
    };
    Ok(Box::new(FeatureVectorizer { sizes: Some(given.iter().enumerate().map(size).collect::<Result<_>>()?) }))
}

impl Operator for FeatureVectorizer {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let mut parts = Vec::with_capacity(call.input_count());
        for k in 0..call.input_count() {
            let [rows, features] = match *call.tensor(k)?.shape() {
                [features] => [1, features],
                [rows, features] => [rows, features],
                _ => {
                    return Err(Error::input(format!(
                        "input {k} has rank {}: allowed ranks 1 to 2",
                        call.tensor(k)?.rank()
                    )));
                }
            };
            let size = self.sizes.as_ref().and_then(|sizes| sizes.get(k).copied()).unwrap_or(features);
            parts.push(Part { floats: singles(call, k)?, rows, features, size });
        }
        let rows = parts.first().map_or(0, |part| part.rows);
        if let Some((k, part)) = parts.iter().enumerate().find(|(_, part)| part.rows != rows) {
            let text = format!("input {k} has {} rows, and others have {rows}: they must be equal", part.rows);
            return Err(Error::input(text).axis(0));
        }
        let width = parts.iter().fold(0usize, |sum, part| sum.saturating_add(part.size));
        let mut output = call.output::<f32>(&[rows, width])?;
        kernels::fill(&[0], output.bytes_mut(), call.resources())?;
        let (elements, mut lookout, mut start) = (output.elements_mut::<f32>()?, call.lookout(), 0);
        for part in &parts {
            let from = part.floats.as_slice::<f32>()?.chunks_exact(part.features.max(1));
            for (to, from) in elements.chunks_exact_mut(width.max(1)).zip(from) {
                lookout.after(size_of_val(from))?;
                to.iter_mut().skip(start).take(part.size).zip(from).for_each(|(to, from)| *to = *from);
            }
            start += part.size;
        }
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let given = facts.optional("inputdimensions", Node::ints)?;
        let (mut rows, mut columns) = (Dim::Unknown, Dim::Fixed(0));
        for k in 0..facts.input_count() {
            let (own, features) = match facts.ranked(k, 1..=2)? {
                Some([features]) => (Dim::Fixed(1), features),
                Some([rows, features]) => (rows.clone(), features),
                _ => (Dim::Unknown, &Dim::Unknown),
            };
            rows = rows.both(&own).ok_or_else(|| {
                Error::input(format!("input {k} has {own} rows, and others have {rows}: they must be equal")).axis(0)
            })?;
            columns =
                columns.plus(&given.and_then(|given| given.get(k)).map_or(features.clone(), |given| Dim::of(*given)));
        }
        facts.give(0, [rows, columns]);
        Ok(())
    }
}

/// An input.
struct Part {
    floats: Tensor,
    rows: usize,
    features: usize,
    /// Its features in the output.
    size: usize,
}

/// An input as floats, each rounded once.
fn singles(call: &Call<'_>, k: usize) -> Result<Tensor> {
    let input = call.tensor(k)?;
    if input.dtype() == DType::Float {
        return Ok(input.clone());
    }
    let mut output = call.output_of(DType::Float, Shape::from_slice(input.shape()))?;
    converted(input, DType::Float, output.bytes_mut(), call.context())?;
    Ok(output.finish())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, run, tensor};

    #[test]
    fn features_follow_each_other() {
        let name = "ai.onnx.ml.FeatureVectorizer";
        let (a, b) = (tensor(&[2, 2], [1i64, 2, 3, 1 << 24 | 1]), tensor(&[2, 1], [5i64, 6]));
        run(name, 1, [], [&a, &b]).gives(tensor(&[2, 3], [1f32, 2.0, 5.0, 3.0, 16777216.0, 6.0]));
        run(name, 1, [ints("inputdimensions", &[1, 2])], [&a, &b])
            .gives(tensor(&[2, 4 - 1], [1f32, 5.0, 0.0, 3.0, 6.0, 0.0]));
        run(name, 1, [], [&tensor(&[2], [1f32, 2.0]), &tensor(&[1, 1], [3f32])])
            .gives(tensor(&[1, 3], [1f32, 2.0, 3.0]));
        run(name, 1, [ints("inputdimensions", &[0, 3])], [&a, &b])
            .gives(tensor(&[2, 3], [5f32, 0.0, 0.0, 6.0, 0.0, 0.0]));
        // However many rows there are.
        let none = tensor(&[1 << 40, 0], [0f32; 0]);
        run(name, 1, [], [&none, &none]).gives(none.clone());
        run(name, 1, [ints("inputdimensions", &[1])], [&a, &b])
            .fails("inputdimensions has 1 entries, but there are 2 inputs");
        run(name, 1, [ints("inputdimensions", &[-1])], [&a]).fails("inputdimensions[0] is -1: it must be at least 0");
        run(name, 1, [], [&a, &tensor(&[1], [5i64])]).fails("input 1 has 1 rows, and others have 2");
    }

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.FeatureVectorizer";
        infer(name, 1, [], ["float[N, 3]", "float[N, 2]"]).gives("[N, 5]");
        infer(name, 1, [], ["int64[3]", "int64[1, C]"]).gives("[1, C + 3]");
        infer(name, 1, [ints("inputdimensions", &[3, 2])], ["float[N, 3]", "float[?, 2]"]).gives("[N, 5]");
        infer(name, 1, [ints("inputdimensions", &[3, 1])], ["float[N, 3]", "float[?, 2]"]).gives("[N, 4]");
        infer(name, 1, [], ["float[2, 3]", "float"]).gives("[2, ?]");
    }

    #[test]
    fn faults() {
        let name = "ai.onnx.ml.FeatureVectorizer";
        infer(name, 1, [], ["float[2, 3]", "float[3]"])
            .fails("input 1 has 1 rows, and others have 2: they must be equal");
        infer(name, 1, [], ["float[2, 3, 1]"]).fails("allowed ranks 1 to 2");
    }
}
