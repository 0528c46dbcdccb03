//! TensorScatter: a cache with the entries of a sequence written at an index of each sample.
//! <https://onnx.ai/onnx/operators/onnx__TensorScatter.html>

use super::update::updated;
use crate::ops::prelude::*;
use kernels::scatter::{Reduction, scatter_rows};
use std::fmt::Display;

pub(super) const TENSOR_SCATTER: Implementation = Implementation::run("TensorScatter", &[24], load);

/// `present_cache = past_cache`, then `present_cache[n, .., write_indices[n] + t, ..] = update[n, .., t, ..]` for each `t`
/// along `axis`, modulo the size of the cache if it is `circular`
#[derive(Debug)]
struct TensorScatter {
    axis: i64,
    circular: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let circular = node.choice("mode", &[("linear", false), ("circular", true)])?;
    Ok(Box::new(TensorScatter { axis: node.int("axis")?, circular }))
}

impl TensorScatter {
    #[cold]
    fn of_batch(&self, shape: impl Display) -> Error {
        let text = format!("axis {} is that of the batch of \"past_cache\" of shape {shape}", self.axis);
        Error::model(text).attribute("axis").axis(self.axis).value(self.axis)
    }

    #[cold]
    fn too_long(&self, size: usize, most: usize) -> Error {
        let axis = self.axis;
        let text = format!("\"update\" has {size} entries along axis {axis}, and \"past_cache\" has {most}");
        Error::input(text).parameter("update").axis(axis).size(size)
    }

    /// Where the update of a sample starts.
    fn start(&self, sample: usize, index: i64, count: usize, most: usize) -> Result<usize> {
        if self.circular {
            return Ok(index.checked_rem_euclid(most as i64).unwrap_or(0) as usize);
        }
        let last = most - count;
        usize::try_from(index).ok().filter(|start| *start <= last).ok_or_else(|| {
            let text =
                format!("write_indices[{sample}] = {index} is out of range for {count} entries in a cache of {most}");
            let error = Error::input(format!("{text}: allowed 0..={last}")).parameter("write_indices");
            error.position(vec![sample]).value(index)
        })
    }
}

impl Operator for TensorScatter {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (axis, cache, update) = (call.axis(0, self.axis)?, call.tensor(0)?, call.tensor(1)?);
        if axis.at == 0 {
            return Err(self.of_batch(ShapeText(cache.shape())));
        }
        let mut needed = Shape::from_slice(cache.shape());
        let most = needed.get(axis.at).copied().unwrap_or(0);
        let count = update.shape().get(axis.at).copied().unwrap_or(0);
        if count > most {
            return Err(self.too_long(count, most));
        }
        needed.get_mut(axis.at).into_iter().for_each(|size| *size = count);
        if update.shape() != &*needed {
            let (shape, needed) = (ShapeText(update.shape()), ShapeText(&needed));
            return Err(Error::input(format!("\"update\" has shape {shape}: {needed} is needed")).parameter("update"));
        }
        let batch = cache.shape().first().copied().unwrap_or(0);
        if let Some(indices) = call.optional_tensor(2)?.filter(|indices| indices.shape() != [batch]) {
            let text = format!("\"write_indices\" has shape {}: [{batch}] is needed", ShapeText(indices.shape()));
            return Err(Error::input(text).parameter("write_indices").size(indices.len()));
        }
        let per_sample = kernels::volume(1, cache.shape().iter().take(axis.at).skip(1));
        let row = kernels::volume(1, cache.shape().iter().skip(axis.at + 1));
        // Without elements nothing is written, but indices are still checked.
        let prefixes = if update.len() == 0 { 0 } else { per_sample };
        let rows = batch.saturating_mul(prefixes).saturating_mul(count);
        call.charge((rows as u64).saturating_add(batch as u64))?;
        updated(call, 1, Reduction::None, |call, out, update, size, combine| {
            let (mut memory, mut lookout) = (call.scratch::<i64>(rows)?, call.lookout());
            let mut places = memory.elements_mut::<i64>().chunks_exact_mut(count.max(1));
            let indices = call.input(2).map(|_| call.list(2)).transpose()?;
            for sample in 0..batch {
                let index = indices.and_then(|indices| indices.get(sample)).copied().unwrap_or(0);
                let start = self.start(sample, index, count, most)?;
                lookout.after(size_of::<i64>())?;
                for prefix in 0..prefixes {
                    let first = (sample * per_sample + prefix) * most;
                    let places = places.next().into_iter().flatten().enumerate();
                    places.for_each(|(k, place)| *place = (first + (start + k) % most) as i64);
                    lookout.after(count.saturating_mul(size_of::<i64>()))?;
                }
            }
            let row = row.saturating_mul(size);
            Ok(scatter_rows(out, row, memory.elements_mut(), update, combine, call.resources())?)
        })
    }

    /// The update may be shorter than the cache along the axis, which is not that of the batch.
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(cache) = facts.ranked(0, 2..)? else { return Ok(()) };
        let at = facts.place_of(self.axis, "axis", cache.len())?;
        if at == 0 {
            return Err(self.of_batch(DimsText(cache)));
        }
        let mut dims = cache.to_vec();
        if let (Some(dim), Some(update)) = (dims.get_mut(at), facts.dims(1).and_then(|update| update.get(at)))
            && let (Dim::Fixed(most), Dim::Fixed(size)) = (&*dim, update)
        {
            if size > most {
                return Err(self.too_long(*size, *most));
            }
            *dim = Dim::Unknown;
        }
        facts.needs(1, &dims)?;
        facts.needs(2, cache.get(..1).unwrap_or_default())?;
        facts.give(0, cache);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, string, tensor};
    use crate::value::Value;

    #[test]
    fn entries() {
        let cache = tensor(&[2, 3, 2], (0..12).collect::<Vec<i32>>());
        let update = tensor(&[2, 2, 2], [90, 91, 92, 93, 94, 95, 96, 97]);
        let at = tensor(&[2], [1i64, 0]);
        run("TensorScatter", 24, [], [&cache, &update, &at])
            .gives(tensor(&[2, 3, 2], [0, 1, 90, 91, 92, 93, 94, 95, 96, 97, 10, 11]));
        run("TensorScatter", 24, [int("axis", 1)], [&cache, &update])
            .gives(tensor(&[2, 3, 2], [90, 91, 92, 93, 4, 5, 94, 95, 96, 97, 10, 11]));
        let circular = || [string("mode", "circular")];
        run("TensorScatter", 24, circular(), [&cache, &update, &tensor(&[2], [5i64, -2])])
            .gives(tensor(&[2, 3, 2], [92, 93, 2, 3, 90, 91, 6, 7, 94, 95, 96, 97]));
        // Along the last axis.
        let (cache, update) = (tensor(&[1, 2, 3], [0u8; 6]), tensor(&[1, 2, 1], [7u8, 8]));
        run("TensorScatter", 24, [int("axis", -1)], [&cache, &update, &tensor(&[1], [2i64])])
            .gives(tensor(&[1, 2, 3], [0u8, 0, 7, 0, 0, 8]));
        let text = |text: &[&str]| crate::Tensor::from_strings(&[1, text.len()], text).unwrap();
        run("TensorScatter", 24, [int("axis", 1)], [&text(&["a", "b"]).into(), &text(&["c"]).into()])
            .gives(text(&["c", "b"]));
        let none = tensor(&[1, 0], Vec::<f32>::new());
        run("TensorScatter", 24, [int("axis", 1), string("mode", "circular")], [&none, &none]).gives(&none);
    }

    #[test]
    fn refusals() {
        let (cache, update) = (tensor(&[2, 3], [0f32; 6]), tensor(&[2, 2], [1f32; 4]));
        let ran = |update: &Value, at: &Value| run("TensorScatter", 24, [int("axis", 1)], [&cache, update, at]);
        ran(&update, &tensor(&[2], [1i64, 2]))
            .fails("write_indices[1] = 2 is out of range for 2 entries in a cache of 3: allowed 0..=1");
        ran(&update, &tensor(&[2], [-1i64, 0])).fails("write_indices[0] = -1 is out of range");
        ran(&update, &tensor(&[1], [0i64])).fails("\"write_indices\" has shape [1]: [2] is needed");
        ran(&tensor(&[2, 4], [1f32; 8]), &tensor(&[2], [0i64; 2]))
            .fails("\"update\" has 4 entries along axis 1, and \"past_cache\" has 3");
        ran(&tensor(&[1, 2], [1f32; 2]), &tensor(&[2], [0i64; 2]))
            .fails("\"update\" has shape [1, 2]: [2, 2] is needed");
        run("TensorScatter", 24, [], [&cache, &update])
            .fails("axis -2 is that of the batch of \"past_cache\" of shape [2, 3]");
    }

    #[test]
    fn shapes() {
        let cache = "float[N, H, 64, 8]";
        infer("TensorScatter", 24, [], [cache, "float[N, H, T, 8]", "int64[N]"]).gives("[N, H, 64, 8]");
        infer("TensorScatter", 24, [int("axis", 1)], ["float[N, T]", "float"]).gives("[N, T]");
        infer("TensorScatter", 24, [], ["float", cache]).gives("");
    }

    #[test]
    fn faults() {
        let cache = "float[N, H, 64, 8]";
        infer("TensorScatter", 24, [], [cache, "float[N, H, 65, 8]"])
            .fails("\"update\" has 65 entries along axis -2, and \"past_cache\" has 64");
        infer("TensorScatter", 24, [], [cache, "float[N, H, 4, 9]"])
            .fails("\"update\" has shape [N, H, 4, 9]: [N, H, ?, 8] is needed");
        infer("TensorScatter", 24, [], ["float[2, 64, 8]", "float", "int64[3]"]).fails("[3]: [2] is needed");
        infer("TensorScatter", 24, [int("axis", -4)], [cache, "float"]).fails("axis -4 is that of the batch");
        infer("TensorScatter", 24, [string("mode", "ring")], [cache, "float"])
            .fails("mode is \"ring\": allowed linear, circular");
    }
}
