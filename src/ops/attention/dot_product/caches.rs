//! Keys or values, with those of the past.

use super::shapes::Input;
use crate::ops::prelude::*;
use kernels::attention::Layout;

/// All keys or values of a call.
#[derive(Debug)]
pub(super) struct Cache {
    /// The output `present_key` or `present_value`, if the node names it.
    pub(super) tensor: Tensor,
    pub(super) layout: Layout,
    /// Rows of each head, and how many of them are from the past.
    pub(super) keys: usize,
    pub(super) past: usize,
}

impl Cache {
    /// Of the input `k`, behind the rows of the input `past_at`.
    pub(super) fn of(call: &Call<'_>, k: usize, past_at: usize, input: &Input) -> Result<Cache> {
        let Input { batch, heads, rows, size, layout } = *input;
        let (new, past) = (call.tensor(k)?, call.optional_tensor(past_at)?);
        if call.input(4).is_some() != call.input(5).is_some() {
            let text = "past_key and past_value must be given together";
            return Err(Error::model(text).parameter(if call.input(4).is_some() { "past_value" } else { "past_key" }));
        }
        if past.is_none() && (new.rank() == 4 || !call.wants(k)) {
            return Ok(Cache { tensor: new.clone(), layout, keys: rows, past: 0 });
        }
        let past_rows = match past.map(Tensor::shape) {
            None => 0,
            Some(&[b, h, past, s]) if [b, h, s] == [batch, heads, size] => past,
            Some(other) => {
                let (name, shape) = (call.name(past_at), ShapeText(other));
                let text = format!("{} has shape {shape}: [{batch}, {heads}, any, {size}] is needed", quote(name));
                return Err(Error::input(text).parameter(name));
            }
        };
        let keys = past_rows.saturating_add(rows);
        let all = Input::of_rank_4([batch, heads, keys, size]);
        let mut tensor = call.output_of(new.dtype(), shape_of([&[batch, heads, keys, size]]))?;
        let width = new.dtype().size();
        let bytes = |elements: usize| elements.saturating_mul(width);
        let (from, past) = (new.aligned_bytes(), past.map_or(&[][..], Tensor::aligned_bytes));
        let (row, head) = (bytes(size), bytes(all.layout.head));
        kernels::pieces(tensor.bytes_mut(), row, head, 1, call.resources(), |at, start, out| {
            let of_past = bytes(past_rows * size);
            let (out_past, out) = out.split_at_mut(of_past.saturating_sub(start).min(out.len()));
            copy_part(past, at * of_past + start, out_past);
            let first = start.saturating_sub(of_past) / row.max(1);
            let start = at / heads.max(1) * layout.batch + at % heads.max(1) * layout.head;
            for (k, out) in out.chunks_mut(row.max(1)).enumerate() {
                copy_part(from, bytes(start + (first + k) * layout.row), out);
            }
            Ok(())
        })?;
        Ok(Cache { tensor: tensor.finish(), layout: all.layout, keys, past: past_rows })
    }
}

fn copy_part(from: &[u8], at: usize, to: &mut [u8]) {
    if let Some(from) = from.get(at..).and_then(|from| from.get(..to.len())) {
        to.copy_from_slice(from);
    }
}
