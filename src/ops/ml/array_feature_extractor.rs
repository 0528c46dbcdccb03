//! ArrayFeatureExtractor: the entries along the last dimension that indices pick.
//! <https://onnx.ai/onnx/operators/onnx_aionnxml_ArrayFeatureExtractor.html>

use super::entry;
use crate::ops::prelude::*;

pub(super) const ARRAY_FEATURE_EXTRACTOR: Implementation =
    entry("ArrayFeatureExtractor", &[1], |_| Ok(Box::new(ArrayFeatureExtractor)));

/// `Z[a.., k] = X[a.., Y[k]]`, with the indices as one list. They count from 0 on. The text doesn't say what becomes of a list:
/// here, as in engines, a row.
#[derive(Debug)]
struct ArrayFeatureExtractor;

impl Operator for ArrayFeatureExtractor {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let range = Range::Unsigned { until: i64::MAX };
        let (axis, data, indices) = (call.axis(0, -1)?, call.tensor(0)?, call.tensor(1)?);
        call.charge(indices.len() as u64)?;
        let (row, indices_of) = (data.dtype().size(), indices_of(indices)?);
        let work =
            kernels::gather::Gather { data: data.bytes(), axis: range.bounds(axis.size), row, indices: indices_of };
        let rows = data.shape().get(..axis.at).filter(|rows| !rows.is_empty()).unwrap_or(&[1]);
        let mut output = call.output_like(data, [rows, &[indices.len()]].concat().into())?;
        pick(call, work, output.bytes_mut())?.map_err(|why| out_of_range(why, call, &axis, range))?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some([rows @ .., _]) = facts.ranked(0, 1..)? {
            let count = facts.dims(1).map_or(Dim::Unknown, Dim::product);
            let rows = if rows.is_empty() { &[Dim::Fixed(1)] } else { rows };
            facts.give(0, [rows, &[count]].concat());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, run, tensor};

    #[test]
    fn entries_are_picked() {
        let (name, x) = ("ai.onnx.ml.ArrayFeatureExtractor", tensor(&[2, 3], [0f32, 1.0, 2.0, 3.0, 4.0, 5.0]));
        let picked = tensor(&[2, 2], [2f32, 0.0, 5.0, 3.0]);
        run(name, 1, [], [&x, &tensor(&[1, 2], [2i64, 0])]).gives(picked);
        run(name, 1, [], [&tensor(&[3], [7i64, 8, 9]), &tensor(&[], [1i64])]).gives(tensor(&[1, 1], [8i64]));
        run(name, 1, [], [&x, &tensor(&[1], [3i64])]).fails("Y[0] = 3 is out of range for axis -1 of \"X\"");
        run(name, 1, [], [&x, &tensor(&[1], [-1i64])]).fails("Y[0] = -1 is out of range for axis -1 of \"X\"");
        run(name, 1, [], [&tensor(&[], [1f32]), &tensor(&[1], [0i64])])
            .fails("\"X\" is a scalar: it needs a rank of at least 1");
    }

    #[test]
    fn shapes() {
        let name = "ai.onnx.ml.ArrayFeatureExtractor";
        infer(name, 1, [], ["float[N, 3]", "int64[2, 2]"]).gives("[N, 4]");
        infer(name, 1, [], ["string[2, N, 3]", "int64"]).gives("[2, N, ?]");
        infer(name, 1, [], ["float[3]", "int64[2]"]).gives("[1, 2]");
        infer(name, 1, [], ["float[]", "int64[2]"]).fails("allowed ranks from 1 on");
    }
}
