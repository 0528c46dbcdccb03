//! RotaryEmbedding: turns pairs of numbers of a token by angles that depend on its position.
//! <https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html>

use crate::ops::prelude::*;
use std::fmt::Display;
use std::ops::Range;

pub(super) const ROTARY_EMBEDDING: Implementation = Implementation::run("RotaryEmbedding", &[23], load);

/// `Y[a], Y[b] = cos * X[a] - sin * X[b], sin * X[a] + cos * X[b]` for the pairs `(a, b)` of the first
/// `rotary_embedding_dim` numbers of each head; the others stay. Pair `p` is `(2p, 2p + 1)` if `interleaved`, else
/// `(p, p + half)`.
///
/// `cos` and `sin` are row `position_ids[batch, token]` of the caches, or `cache[batch, token]` without `position_ids`. Such a
/// cache may have one batch for all: the text says `batch_size`, but its algorithm broadcasts, and exporters of language models
/// write so.
#[derive(Debug)]
struct RotaryEmbedding {
    heads: Option<i64>,
    /// The numbers of a head that are turned; 0 for all.
    dim: i64,
    interleaved: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let heads = node.optional("num_heads", Node::int)?;
    let interleaved = node.is_set("interleaved")?;
    Ok(Box::new(RotaryEmbedding { heads, dim: node.int("rotary_embedding_dim")?, interleaved }))
}

impl Operator for RotaryEmbedding {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let tokens = self.tokens(call, x)?;
        let half = self.half(&tokens)?;
        let rows = Angles::of(call, &tokens, half)?;
        let [mut x_room, mut cos_room, mut sin_room] = [None, None, None];
        let mut y = Output::<f32>::new(call.context(), x.dtype(), shape_of([x.shape()]))?;
        let from = elements_of::<f32>(call.context(), x, &mut x_room)?;
        let cos = elements_of::<f32>(call.context(), call.tensor(1)?, &mut cos_room)?;
        let sin = elements_of::<f32>(call.context(), call.tensor(2)?, &mut sin_room)?;
        let size = tokens.size.max(1);
        let out = bytemuck::cast_slice_mut(y.elements_mut()?);
        let (row, resources) = (size * size_of::<f32>(), call.resources());
        kernels::pieces(out, row, row, 1, resources, |at, _, out| {
            let from = from.get(at * size..(at + 1) * size).ok_or(Stopped::Misfit)?;
            let token = tokens.place(at);
            let row = |cache: &'_ [f32]| -> Option<Range<usize>> {
                let start = rows.of_token(token, cache.len() / half.max(1)).saturating_mul(half);
                Some(start..start.checked_add(half)?)
            };
            let (Some(cos), Some(sin)) = (row(cos).and_then(|row| cos.get(row)), row(sin).and_then(|row| sin.get(row)))
            else {
                return Err(Stopped::Misfit);
            };
            let out = bytemuck::cast_slice_mut(out);
            kernels::attention::turn(from, cos, sin, self.interleaved, out, resources.stop)
        })?;
        Ok(y.finish()?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let (Some(dims @ [_, _, _]), None) = (facts.ranked(0, 3..=4)?, self.heads) {
            return Err(no_heads(DimsText(dims)));
        }
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

/// How `X` holds its heads: `(batch, heads, tokens, size)`, or `(batch, tokens, heads * size)`.
struct Tokens {
    flat: bool,
    batch: usize,
    heads: usize,
    tokens: usize,
    size: usize,
}

impl Tokens {
    /// The number of a head of a token is that of its token, counted through the batches.
    fn place(&self, at: usize) -> usize {
        if self.flat {
            return at / self.heads.max(1);
        }
        let (head, token) = (at / self.tokens.max(1), at % self.tokens.max(1));
        head / self.heads.max(1) * self.tokens + token
    }
}

impl RotaryEmbedding {
    fn tokens(&self, call: &Call<'_>, x: &Tensor) -> Result<Tokens> {
        let shape = ShapeText(x.shape());
        let heads = self.heads.and_then(|heads| usize::try_from(heads).ok()).filter(|heads| *heads > 0);
        match (x.shape(), self.heads) {
            (&[batch, heads, tokens, size], _) => Ok(Tokens { flat: false, batch, heads, tokens, size }),
            (&[batch, tokens, hidden], Some(given)) => match heads.filter(|heads| hidden.is_multiple_of(*heads)) {
                Some(heads) => Ok(Tokens { flat: true, batch, heads, tokens, size: hidden / heads }),
                None => {
                    let text = format!("num_heads is {given}: it must divide the last dimension of \"X\" {shape}");
                    Err(Error::model(text).attribute("num_heads").value(given))
                }
            },
            ([_, _, _], None) => Err(no_heads(shape)),
            _ => {
                let text = format!("\"X\" has shape {shape}: a rank of 3 or 4 is needed");
                Err(Error::input(text).parameter(call.name(0)).size(x.rank()))
            }
        }
    }

    /// The number of pairs that are turned.
    fn half(&self, tokens: &Tokens) -> Result<usize> {
        let size = tokens.size;
        let dim = if self.dim == 0 { Some(size) } else { usize::try_from(self.dim).ok() };
        match dim.filter(|dim| *dim <= size && dim.is_multiple_of(2)) {
            Some(dim) => Ok(dim / 2),
            None if self.dim == 0 => {
                let text = format!("the heads of \"X\" have {size} elements: an even number is needed");
                Err(Error::input(text).parameter("X").size(size))
            }
            None => {
                let text = format!("rotary_embedding_dim is {}: allowed are even numbers in 0..={size}", self.dim);
                Err(Error::model(text).attribute("rotary_embedding_dim").value(self.dim))
            }
        }
    }
}

#[cold]
fn no_heads(shape: impl Display) -> Error {
    let text = format!("\"X\" has shape {shape}: with rank 3 the attribute num_heads is needed");
    Error::model(text).attribute("num_heads")
}

/// Which rows of the caches the tokens take.
struct Angles<'a>(Option<&'a [i64]>);

impl Angles<'_> {
    fn of<'a>(call: &'a Call<'_>, tokens: &Tokens, half: usize) -> Result<Angles<'a>> {
        let &Tokens { batch, tokens, .. } = tokens;
        let ids = call.optional_tensor(3)?;
        for k in [1, 2] {
            let (name, cache) = (call.name(k), call.tensor(k)?);
            let fits = match (ids, cache.shape()) {
                (Some(_), [_, columns]) => *columns == half,
                (None, shape) => *shape == [batch, tokens, half] || *shape == [1, tokens, half],
                _ => false,
            };
            if !fits {
                let needs = match ids {
                    Some(_) => format!("[any, {half}] is needed with position_ids"),
                    None => format!("[{batch}, {tokens}, {half}] is needed without position_ids"),
                };
                let text = format!("{} has shape {}: {needs}", quote(name), ShapeText(cache.shape()));
                return Err(Error::input(text).parameter(name));
            }
        }
        let Some(ids) = ids else { return Ok(Angles(None)) };
        call.charge(ids.len() as u64)?;
        if *ids.shape() != [batch, tokens] {
            let text = format!("\"position_ids\" has shape {}: [{batch}, {tokens}] is needed", ShapeText(ids.shape()));
            return Err(Error::input(text).parameter("position_ids"));
        }
        for k in [1, 2] {
            let rows = call.tensor(k)?.shape().first().copied().unwrap_or(0);
            let values = ids.as_slice::<i64>()?;
            let (mut at, mut lookout) = (0, call.lookout());
            for block in lookout.blocks(values) {
                let block = block?;
                let wrong = |id: &i64| usize::try_from(*id).map_or(true, |id| id >= rows);
                let found = block.iter().position(wrong);
                at += found.unwrap_or(block.len());
                if found.is_some() {
                    break;
                }
            }
            if at == values.len() {
                continue;
            }
            let (value, position) = (values.get(at).copied().unwrap_or(0), position_of(at, ids.shape()));
            let (element, name) = (ShapeText(&position).to_string(), quote(call.name(k)));
            let text = format!("position_ids{element} = {value}, but {name} has {rows} rows");
            return Err(Error::input(text).parameter("position_ids").value(value).position(position).size(rows));
        }
        Ok(Angles(Some(ids.as_slice()?)))
    }

    /// The row of a token in a cache of so many.
    fn of_token(&self, token: usize, rows: usize) -> usize {
        match self.0 {
            Some(ids) => ids.get(token).and_then(|id| usize::try_from(*id).ok()).unwrap_or(usize::MAX),
            None => token % rows.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::value::Value;
    use half::f16;

    /// One token of one head: pairs are turned by a quarter and by a half.
    fn caches() -> [Value; 2] {
        [tensor(&[2, 2], [1f32, 1., 0., -1.]), tensor(&[2, 2], [0f32, 0., 1., 0.])]
    }

    #[test]
    fn halves_and_interleaved() {
        let [cos, sin] = &caches();
        let (x, ids) = (tensor(&[1, 1, 1, 5], [1f32, 2., 3., 4., 5.]), tensor(&[1, 1], [1i64]));
        let four = || int("rotary_embedding_dim", 4);
        let want = tensor(&[1, 1, 1, 5], [-3f32, -2., 1., -4., 5.]);
        run("RotaryEmbedding", 23, [four()], [&x, cos, sin, &ids]).gives(want);
        let want = tensor(&[1, 1, 1, 5], [-2f32, 1., -3., -4., 5.]);
        run("RotaryEmbedding", 23, [four(), int("interleaved", 1)], [&x, cos, sin, &ids]).gives(want);
    }

    /// Tokens, not heads, have angles; in both layouts.
    #[test]
    fn layouts() {
        let (cos, sin) = (tensor(&[1, 2, 1], [1f32, 0.]), tensor(&[1, 2, 1], [0f32, 1.]));
        let x = tensor(&[1, 2, 2, 2], [1f32, 2., 3., 4., 5., 6., 7., 8.]);
        let want = tensor(&[1, 2, 2, 2], [1f32, 2., -4., 3., 5., 6., -8., 7.]);
        run("RotaryEmbedding", 23, [], [&x, &cos, &sin]).gives(want);
        let x = tensor(&[1, 2, 4], [1f32, 2., 5., 6., 3., 4., 7., 8.]);
        let want = tensor(&[1, 2, 4], [1f32, 2., 5., 6., -4., 3., -8., 7.]);
        run("RotaryEmbedding", 23, [int("num_heads", 2)], [&x, &cos, &sin]).gives(want);
        // One batch of angles for both.
        let x = tensor(&[2, 1, 2, 2], [1f32, 2., 3., 4., 5., 6., 7., 8.]);
        let want = tensor(&[2, 1, 2, 2], [1f32, 2., -4., 3., 5., 6., -8., 7.]);
        run("RotaryEmbedding", 23, [], [&x, &cos, &sin]).gives(want);
        let halves = |values: &[f32]| values.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
        let (cos, sin) = (tensor(&[1, 1, 1], halves(&[0.5])), tensor(&[1, 1, 1], halves(&[0.25])));
        let x = tensor(&[1, 1, 1, 2], halves(&[1., 2.]));
        run("RotaryEmbedding", 23, [], [&x, &cos, &sin]).gives(tensor(&[1, 1, 1, 2], halves(&[0., 1.25])));
    }

    #[test]
    fn refusals() {
        let [cos, sin] = &caches();
        let (x, ids) = (tensor(&[1, 1, 1, 4], [0f32; 4]), tensor(&[1, 1], [2i64]));
        let error =
            run("RotaryEmbedding", 23, [], [&x, cos, sin, &ids]).fails("position_ids[0, 0] = 2, but \"cos_cache\"");
        assert_eq!(error.place().position.as_deref(), Some(&[0, 0][..]));
        run("RotaryEmbedding", 23, [], [&x, cos, sin]).fails("[1, 1, 2] is needed without position_ids");
        let flat = tensor(&[1, 1, 4], [0f32; 4]);
        run("RotaryEmbedding", 23, [], [&flat, cos, sin, &ids]).fails("with rank 3 the attribute num_heads is needed");
        run("RotaryEmbedding", 23, [int("num_heads", 3)], [&flat, cos, sin, &ids])
            .fails("num_heads is 3: it must divide");
        let odd = int("rotary_embedding_dim", 3);
        run("RotaryEmbedding", 23, [odd], [&x, cos, sin, &ids]).fails("rotary_embedding_dim is 3: allowed are even");
    }

    #[test]
    fn inferred() {
        infer("RotaryEmbedding", 23, [], ["float[N, 2, T, 8]", "float", "float"]).gives("[N, 2, T, 8]");
        infer("RotaryEmbedding", 23, [int("num_heads", 2)], ["float[N, T, 8]", "float", "float"]).gives("[N, T, 8]");
        infer("RotaryEmbedding", 23, [], ["float[N, T, 8]", "float", "float"])
            .fails("\"X\" has shape [N, T, 8]: with rank 3 the attribute num_heads is needed");
    }
}
