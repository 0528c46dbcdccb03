//! Expand: a tensor repeated along axes of size 1.
//! <https://onnx.ai/onnx/operators/onnx__Expand.html>

use crate::ops::prelude::*;
use kernels::copy::Map;

pub(super) const EXPAND: Implementation = Implementation::run("Expand", &[8, 13], |_| Ok(Box::new(Expand)));

/// The dimensions of `input` and `shape` are aligned at the last one. In each pair both are equal, or one of them is 1 and
/// the other is that of `output`.
#[derive(Debug)]
struct Expand;

impl Operator for Expand {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (input, given) = (call.tensor(0)?, call.list(1)?);
        let rank = input.rank().max(given.len());
        call.check_rank(rank)?;
        let missing = |len: usize| std::iter::repeat_n(1, rank - len);
        let own = missing(input.rank()).chain(input.shape().iter().copied());
        let sizes = std::iter::repeat_n(1, rank - given.len()).chain(given.iter().copied());
        let pair = |(at, (own, wanted)): (usize, (usize, i64))| match usize::try_from(wanted) {
            Ok(1) => Ok(whole(own)),
            Ok(wanted) if wanted == own => Ok(whole(own)),
            Ok(wanted) if own == 1 => Ok((wanted, Map::Line { start: 0, step: 0 })),
            wrong => Err(refused(at + given.len() - rank, wanted, own, wrong.is_ok())),
        };
        let maps = own.zip(sizes).enumerate().map(pair).collect::<Result<Maps>>()?;
        let shape: Shape = maps.iter().map(|(size, _)| *size).collect();
        if kernels::volume(1, &shape) == input.len() {
            return call.reshaped(0, shape);
        }
        Ok(by_maps(call.context(), input, &maps, &[])?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.ranked(1, 0..=1)?;
        let (Some(dims), Some(shape)) = (facts.dims(0), facts.listed(1)) else { return Ok(()) };
        facts.give(0, broadcast(&[dims, &shape])?);
        Ok(())
    }
}

fn refused(at: usize, wanted: i64, own: usize, fits: bool) -> Error {
    let allowed = match own {
        _ if !fits => "it is not a size".to_string(),
        1 => "any size is allowed".to_string(),
        own => format!("allowed are 1 and {own}, which it is in \"input\""),
    };
    let error = Error::input(format!("shape[{at}] = {wanted} can't be expanded to: {allowed}"));
    error.parameter("shape").position(vec![at]).value(wanted).size(own)
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn shape(dims: &[i64]) -> Value {
        tensor(&[dims.len()], dims)
    }

    #[test]
    fn both_ways() {
        let column = tensor(&[3, 1], [1i64, 2, 3]);
        let wide = tensor(&[3, 4], [1i64, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
        run("Expand", 8, [], [&column, &shape(&[3, 4])]).gives(&wide);
        run("Expand", 13, [], [&column, &shape(&[4])]).gives(&wide);
        run("Expand", 13, [], [&wide, &shape(&[1, 4])]).gives(&wide);
        run("Expand", 13, [], [&column, &shape(&[2, 1, 1])]).gives(tensor(&[2, 3, 1], [1i64, 2, 3, 1, 2, 3]));
        run("Expand", 13, [], [&column, &shape(&[1, 3, 1])]).gives(tensor(&[1, 3, 1], [1i64, 2, 3]));
        run("Expand", 13, [], [&column, &shape(&[])]).gives(&column);
        run("Expand", 13, [], [&tensor(&[], [7u8]), &shape(&[2, 2])]).gives(tensor(&[2, 2], [7u8; 4]));
        run("Expand", 13, [], [&column, &shape(&[3, 0])]).gives(tensor(&[3, 0], Vec::<i64>::new()));
        let empty = tensor(&[0, 1], Vec::<i64>::new());
        run("Expand", 13, [], [&empty, &shape(&[1 << 62, 1, 5])]).gives(tensor(&[1 << 62, 0, 5], Vec::<i64>::new()));
        let strings = |values: &[&str]| Tensor::from_strings(&[values.len()], values).unwrap();
        run("Expand", 13, [], [&strings(&["a"]).into(), &shape(&[2])]).gives(strings(&["a", "a"]));
    }

    #[test]
    fn refusals() {
        let data = tensor(&[3, 1], [1u8, 2, 3]);
        let fails = |dims: &[i64], text: &str| run("Expand", 13, [], [&data, &shape(dims)]).fails(text);
        fails(&[2, 1], "shape[0] = 2 can't be expanded to: allowed are 1 and 3, which it is in \"input\"");
        fails(&[5, 0, 1], "shape[1] = 0 can't be expanded to");
        fails(&[-1], "shape[0] = -1 can't be expanded to: it is not a size");
        assert_eq!(fails(&[1 << 40], "tensor_bytes").kind(), Kind::Limit);
        assert_eq!(fails(&[1 << 62, 1, 1 << 62], "more bytes than can be counted").kind(), Kind::Input);
        fails(&[1; 65], "has 65 dimensions: the limit is 64");
        run("Expand", 13, [], [&data, &tensor(&[1, 1], [1i64])]).fails("a list is needed");
    }
}
