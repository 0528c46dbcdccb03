//! OneHot: for each index a list of off values, with the on value at the index.
//! <https://onnx.ai/onnx/operators/onnx__OneHot.html>

use crate::ops::prelude::*;

pub(super) const ONE_HOT: Implementation = Implementation::run("OneHot", &[9, 11, 28], load);

/// `output[a.., d, b..] = values[1]` where `indices[a.., b..]` is `d`, else `values[0]`; `d` is a new dimension of size
/// `depth` at `axis`. An index out of range leaves its list off. Floats are cut off; NaN is out of range.
#[derive(Debug)]
struct OneHot {
    axis: i64,
    negative: bool,
}

/// Negative indices count from the end as of version 11. Before, they are out of range, and of negative axes the text has
/// -1 only.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let axis = if node.int("axis")? == -1 { -1 } else { node.axis("axis", 11)? };
    Ok(Box::new(OneHot { axis, negative: node.version() >= 11 }))
}

impl Operator for OneHot {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (indices, values) = (call.tensor(0)?, call.tensor(2)?);
        let depth = depth(call.tensor(1)?)?;
        let at = self.place(indices.rank())?;
        let (outer, inner) = indices.shape().split_at(at);
        let size = values.dtype().size();
        let Some((off, on)) = values.bytes().split_at_checked(size).filter(|_| values.shape() == [2]) else {
            let text = format!("\"values\" has shape {}: [2] is needed", ShapeText(values.shape()));
            return Err(Error::input(text).parameter("values"));
        };
        call.charge(indices.len() as u64)?;
        let mut output = call.output_like(values, shape_of([outer, &[depth], inner]))?;
        let out = output.bytes_mut();
        kernels::fill(off, out, call.resources())?;
        let (inner, bounds) =
            (kernels::volume(1, inner), kernels::gather::Bounds { size: depth, negative: self.negative });
        let mut lookout = call.lookout();
        for (k, index) in indices.scalars().enumerate() {
            lookout.after(indices.dtype().size() + size)?;
            let Some(entry) = bounds.entry(truncated(&index)) else { continue };
            let place = ((k / inner * depth + entry) * inner + k % inner) * size;
            out.get_mut(place..place + size).into_iter().for_each(|to| to.copy_from_slice(on));
        }
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        let (outer, inner) = dims.split_at(self.place(dims.len())?);
        facts.single(1)?;
        let size = match facts.constant(1).and_then(|size| size.tensor().ok()) {
            Some(constant) => Dim::Fixed(depth(constant)?),
            None => facts.size(1),
        };
        facts.needs(2, &[Dim::Fixed(2)])?;
        facts.give(0, [outer, &[size], inner].concat());
        Ok(())
    }
}

impl OneHot {
    /// Where the new dimension is.
    fn place(&self, rank: usize) -> Result<usize> {
        Axis::place(self.axis.into(), rank + 1).ok_or_else(|| {
            let (axis, least) = (self.axis, rank + 1);
            let text = format!("axis {axis} is out of range for \"indices\" of rank {rank}: allowed -{least}..={rank}");
            Error::model(text).attribute("axis").axis(axis).value(axis)
        })
    }
}

fn depth(depth: &Tensor) -> Result<usize> {
    let wrong = |text: String| Error::input(text).parameter("depth");
    let Some(value) = depth.scalars().next().filter(|_| depth.len() == 1 && depth.rank() < 2) else {
        let shape = ShapeText(depth.shape());
        return Err(wrong(format!("\"depth\" has shape {shape}: one value is needed")));
    };
    usize::try_from(truncated(&value)).map_err(|_| wrong(format!("depth is {value}: a size is needed")))
}

/// A number cut off to int64; the least one for NaN. Numbers beyond int64 saturate.
fn truncated(number: &Scalar<'_>) -> i64 {
    match number {
        Scalar::Float(number) if number.is_nan() => i64::MIN,
        Scalar::Double(number) if number.is_nan() => i64::MIN,
        Scalar::Float(number) => *number as i64,
        Scalar::Double(number) => *number as i64,
        other => i64::try_from(integer(other)).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    #[test]
    fn lists() {
        let (depth, values) = (tensor(&[], [3i64]), tensor(&[2], [2f32, 5.0]));
        let indices = tensor(&[4], [1i64, -1, 3, -4]);
        let (two, rows) = (2f32, [[2f32, 5.0, 2.0], [2.0, 2.0, 5.0], [2.0; 3], [2.0; 3]]);
        run("OneHot", 11, [], [&indices, &depth, &values]).gives(tensor(&[4, 3], rows.concat()));
        let old = [[2f32, 5.0, 2.0], [two; 3], [two; 3], [two; 3]];
        run("OneHot", 9, [], [&indices, &depth, &values]).gives(tensor(&[4, 3], old.concat()));
        run("OneHot", 28, [int("axis", 0)], [&tensor(&[2], [0u8, 2]), &depth, &tensor(&[2], [0i8, 1])])
            .gives(tensor(&[3, 2], [1i8, 0, 0, 0, 0, 1]));
        run(
            "OneHot",
            11,
            [int("axis", -2)],
            [&tensor(&[1, 2], [0i32, 1]), &tensor(&[1], [2.9f32]), &tensor(&[2], [false, true])],
        )
        .gives(tensor(&[1, 2, 2], [true, false, false, true]));
    }

    #[test]
    fn edges() {
        let (depth, values) = (tensor(&[], [2u64]), tensor(&[2], [0i16, 1]));
        let odd = [1.9, f64::NAN, -0.5, 1e300];
        run("OneHot", 11, [], [&tensor(&[4], odd), &depth, &values])
            .gives(tensor(&[4, 2], [0i16, 1, 0, 0, 1, 0, 0, 0]));
        run("OneHot", 11, [], [&tensor(&[1], [u64::MAX]), &depth, &values]).gives(tensor(&[1, 2], [0i16, 0]));
        run("OneHot", 11, [], [&tensor(&[], [1i64]), &depth, &values]).gives(tensor(&[2], [0i16, 1]));
        run("OneHot", 11, [], [&tensor(&[1], [0i64]), &tensor(&[], [0i64]), &values])
            .gives(tensor(&[1, 0], Vec::<i16>::new()));
        let text = |shape: &[usize], strings: &[&str]| Value::from(Tensor::from_strings(shape, strings).unwrap());
        run("OneHot", 11, [], [&tensor(&[1], [1i64]), &depth, &text(&[2], &["off", "on"])])
            .gives(text(&[1, 2], &["off", "on"]));
    }

    #[test]
    fn refusals() {
        let (i, values) = (tensor(&[1], [0i64]), tensor(&[2], [0i16, 1]));
        let depth = |value: i64| tensor(&[], [value]);
        run("OneHot", 11, [], [&i, &depth(1 << 62), &values]).fails("more bytes than can be counted");
        let error = run("OneHot", 11, [], [&i, &depth(1 << 40), &values]).fails("tensor_bytes");
        assert_eq!(error.kind(), Kind::Limit);
        run("OneHot", 11, [], [&i, &depth(-1), &values]).fails("depth is -1: a size is needed");
        run("OneHot", 11, [], [&i, &tensor(&[2], [1i64, 2]), &values]).fails("\"depth\" has shape [2]");
        run("OneHot", 11, [], [&i, &depth(2), &tensor(&[3], [0i16; 3])])
            .fails("\"values\" has shape [3]: [2] is needed");
        run("OneHot", 11, [int("axis", 2)], [&i, &depth(2), &values])
            .fails("axis 2 is out of range for \"indices\" of rank 1: allowed -2..=1");
    }

    #[test]
    fn inferred() {
        infer("OneHot", 9, [], ["int64[N]", "{5}", "float[2]"]).gives("[N, 5]");
        infer("OneHot", 11, [int("axis", 0)], ["int64[N]", "{D}", "float"]).gives("[D, N]");
        infer("OneHot", 11, [], ["int64[N]", "int64[]", "float[2]"]).gives("[N, ?]");
        infer("OneHot", 11, [], ["int64[N]", "{-5}", "float[2]"]).fails("depth is -5: a size is needed");
        infer("OneHot", 11, [], ["int64[N]", "int64[2]", "float"])
            .fails("\"depth\" has shape [2]: one value is needed");
        infer("OneHot", 11, [], ["int64[N]", "{5}", "float[3]"]).fails("\"values\" has shape [3]: [2] is needed");
    }
}
