//! Tile: a tensor repeated along its axes.
//! <https://onnx.ai/onnx/operators/onnx__Tile.html>

use crate::ops::prelude::*;
use kernels::copy::{Fill, Map};

pub(super) const TILE: Implementation = Implementation::run("Tile", &[1, 6, 13], load);

/// `output[i, j, ..] = input[i mod size of axis 0, j mod size of axis 1, ..]`
#[derive(Debug)]
struct Tile {
    /// Version 1 repeats `tiles` times along one axis; both are inputs of the type of the data.
    one_axis: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    node.note_constant_axes(2, 6);
    Ok(Box::new(Tile { one_axis: node.version() < 6 }))
}

impl Tile {
    /// The number of repeats along each axis.
    fn repeats(&self, call: &Call<'_>, rank: usize) -> Result<SmallVec<[i64; 6]>> {
        if self.one_axis {
            let (tiles, axis) = (one(call, 1)?, one(call, 2)?);
            let axis = call.axis(0, axis).map_err(|error| error.with_kind(Kind::Input))?;
            return Ok((0..rank).map(|at| if at == axis.at { tiles } else { 1 }).collect());
        }
        let repeats = call.list(1)?;
        check_count(repeats.len(), rank)?;
        Ok(repeats.into())
    }
}

fn check_count(repeats: usize, rank: usize) -> Result<()> {
    if repeats == rank {
        return Ok(());
    }
    let text = format!("\"repeats\" has {repeats} values, but \"input\" has rank {rank}: they must be equal");
    Err(Error::input(text).parameter("repeats").size(rank))
}

/// The only value of an input.
fn one(call: &Call<'_>, k: usize) -> Result<i64> {
    let wrong = || Error::input(format!("\"{}\" is empty: it needs a value", call.name(k))).parameter(call.name(k));
    integers(call, k, 1)?.first().copied().ok_or_else(wrong)
}

impl Operator for Tile {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let input = call.tensor(0)?;
        let repeats = self.repeats(call, input.rank())?;
        let name = call.name(1);
        let map = |(k, (&repeats, &size)): (usize, (&i64, &usize))| {
            let wrong = |what| {
                let text = format!("{name}[{k}] = {repeats} {what} along an axis of size {size}");
                Error::input(text).parameter(name).position(vec![k]).value(repeats).size(size)
            };
            let count = usize::try_from(repeats).map_err(|_| wrong("is not a number of repeats"))?;
            let total = size.checked_mul(count).ok_or_else(|| wrong("is too many repeats"))?;
            Ok(match count {
                1 => whole(size),
                _ => (total, Map::Padded { start: 0, size, before: 0, fill: Fill::Wrap }),
            })
        };
        let maps = repeats.iter().zip(input.shape()).enumerate().map(map).collect::<Result<Maps>>()?;
        if maps.iter().map(|(size, _)| size).eq(input.shape()) {
            return Ok(call.taken(0)?.into());
        }
        Ok(by_maps(call.context(), input, &maps, &[])?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        let repeats = facts.list(1).filter(|_| !self.one_axis);
        if let Some(repeats) = &repeats {
            check_count(repeats.len(), dims.len())?;
        }
        let times = |(k, dim): (usize, &Dim)| {
            let repeats = repeats.as_ref()?.get(k)?.as_ref()?;
            Some(Formula::of(dim)?.times(repeats)?.dim())
        };
        facts.give(0, dims.iter().enumerate().map(|dim| times(dim).unwrap_or(Dim::Unknown)).collect::<Vec<_>>());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::ops::testing::{infer, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn repeats(values: &[i64]) -> Value {
        tensor(&[values.len()], values)
    }

    #[test]
    fn repeated() {
        let data = tensor(&[2, 2], [1i32, 2, 3, 4]);
        let wide = tensor(&[2, 4], [1i32, 2, 1, 2, 3, 4, 3, 4]);
        run("Tile", 6, [], [&data, &repeats(&[1, 2])]).gives(&wide);
        run("Tile", 13, [], [&data, &repeats(&[2, 1])]).gives(tensor(&[4, 2], [1i32, 2, 3, 4, 1, 2, 3, 4]));
        run("Tile", 13, [], [&data, &repeats(&[1, 1])]).gives(&data);
        run("Tile", 13, [], [&data, &repeats(&[0, 3])]).gives(tensor(&[0, 6], Vec::<i32>::new()));
        run("Tile", 13, [], [&tensor(&[], [7u8]), &repeats(&[])]).gives(tensor(&[], [7u8]));
        run("Tile", 13, [], [&tensor(&[1, 1], [7u8]), &repeats(&[2, 3])]).gives(tensor(&[2, 3], [7u8; 6]));
        let empty = tensor(&[0], Vec::<u8>::new());
        run("Tile", 13, [], [&empty, &repeats(&[1 << 62])]).gives(&empty);
        let strings = |values: &[&str]| Tensor::from_strings(&[values.len()], values).unwrap();
        run("Tile", 13, [], [&strings(&["a", "b"]).into(), &repeats(&[2])]).gives(strings(&["a", "b", "a", "b"]));
        let floats = |values: &[f64]| tensor(&[2, values.len() / 2], values);
        run("Tile", 1, [], [&floats(&[1.0, 2.0]), &tensor(&[1], [2f64]), &tensor(&[], [1f64])])
            .gives(floats(&[1.0, 1.0, 2.0, 2.0]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[2, 2], [1i32, 2, 3, 4]);
        let fails = |values: &[i64], text: &str| run("Tile", 13, [], [&data, &repeats(values)]).fails(text);
        fails(&[2], "\"repeats\" has 1 values, but \"input\" has rank 2");
        fails(&[1, -1], "repeats[1] = -1 is not a number of repeats");
        fails(&[i64::MAX, 1], "more bytes than can be counted");
        assert_eq!(fails(&[1 << 62, 1 << 62], "more bytes than can be counted").kind(), Kind::Input);
        assert_eq!(fails(&[1 << 40, 1], "").kind(), Kind::Limit);
        let wide = tensor(&[4], [0i8; 4]);
        run("Tile", 13, [], [&wide, &repeats(&[1 << 62])])
            .fails("repeats[0] = 4611686018427387904 is too many repeats");
        let (floats, one) = (tensor(&[1], [1f32]), tensor(&[1], [1f32]));
        run("Tile", 1, [], [&floats, &one, &tensor(&[1], [-2f32])]).fails("axis -2 is out of range");
        run("Tile", 1, [], [&floats, &tensor(&[1], [0.5f32]), &one]).fails("tiles[0] = 0.5 is not a whole number");
        run("Tile", 1, [], [&floats, &tensor(&[0], Vec::<f32>::new()), &one]).fails("\"tiles\" is empty");
    }

    #[test]
    fn inferred() {
        infer("Tile", 6, [], ["float[N, 3]", "{2, M}"]).gives("[2*N, 3*M]");
        infer("Tile", 13, [], ["float[N, 3]", "{?, 2}"]).gives("[?, 6]");
        infer("Tile", 13, [], ["float[N, 3]", "int64"]).gives("[?, ?]");
        infer("Tile", 13, [], ["float[N, 3]", "{2}"]).fails("\"repeats\" has 1 values, but \"input\" has rank 2");
    }
}
