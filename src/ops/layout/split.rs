//! Split: parts of a tensor along an axis.
//! <https://onnx.ai/onnx/operators/onnx__Split.html>

use crate::ops::prelude::*;

pub(super) const SPLIT: Implementation =
    Implementation { domain: "", name: "Split", versions: &[1, 2, 11, 13, 18], make: Make::Run(load) };

/// `outputs[p][a.., i, b..] = input[a.., start of p + i, b..]`, where `a..` are the dimensions before `axis`
#[derive(Debug)]
struct Split {
    axis: i64,
    sizes: Sizes,
}

/// Where the sizes of the parts come from, if the input `split` is not given.
#[derive(Debug)]
enum Sizes {
    Attribute(Vec<i64>),
    /// All are equal.
    Equal,
    /// The last one may be smaller.
    Nearly(i64),
    /// The input must be given.
    Input,
}

/// The sizes are an attribute up to version 11, or in version 1 an input; an input from version 13 on, beside which
/// version 18 has `num_outputs`. Version 1 doesn't say what the axis is by default: 0, as later.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let axis = if node.attribute("axis").is_some() { node.axis("axis", 11)? } else { 0 };
    let sizes = if node.version() >= 18 {
        match node.attribute("num_outputs") {
            Some(_) => Sizes::Nearly(node.int("num_outputs")?),
            None => Sizes::Input,
        }
    } else if node.version() < 13 && node.attribute("split").is_some() {
        Sizes::Attribute(node.ints("split")?.to_vec())
    } else {
        Sizes::Equal
    };
    Ok(Box::new(Split { axis, sizes }))
}

type Parts = SmallVec<[usize; 4]>;

impl Split {
    fn parts(&self, call: &Call<'_>, axis: &Axis) -> Result<Parts> {
        let count = call.output_count();
        let wrong = |text: String, name: &str, given: i64| Error::model(text).attribute(name).value(given);
        match (&self.sizes, call.input(1)) {
            (Sizes::Attribute(_), Some(_)) => {
                Err(Error::model("the attribute and the input \"split\" are both given: allowed is one")
                    .attribute("split"))
            }
            (Sizes::Nearly(given), Some(_)) => {
                Err(wrong("\"split\" and \"num_outputs\" are both given: allowed is one".into(), "num_outputs", *given))
            }
            (Sizes::Input, None) => Err(Error::model("neither \"split\" nor \"num_outputs\" is given")),
            (_, Some(split)) => {
                let (len, most) = (split.tensor()?.len(), count.max(axis.size));
                if len <= most {
                    check_count(len, count, axis)?;
                }
                listed(&integers(call, 1, most)?, count, axis)
            }
            (Sizes::Attribute(list), None) => listed(list, count, axis).map_err(|error| error.with_kind(Kind::Model)),
            (Sizes::Nearly(given), None) => {
                let size = axis.size.div_ceil(count.max(1));
                let last = axis.size.checked_sub(size * count.saturating_sub(1));
                if usize::try_from(*given) != Ok(count) {
                    return Err(wrong(
                        format!("num_outputs is {given}, but there are {count} outputs"),
                        "num_outputs",
                        *given,
                    ));
                }
                let Some(last) = last else {
                    let text = format!(
                        "{} entries along axis {} make no {count} parts of {size}, the last one smaller",
                        axis.size, axis.given
                    );
                    return Err(Error::input(text).axis(axis.given).size(axis.size).value(*given));
                };
                let mut parts = Parts::from_elem(size, count);
                parts.last_mut().into_iter().for_each(|part| *part = last);
                Ok(parts)
            }
            (Sizes::Equal, None) if axis.size.is_multiple_of(count) => Ok(Parts::from_elem(axis.size / count, count)),
            (Sizes::Equal, None) => {
                let text = format!("{} entries along axis {} make no {count} equal parts", axis.size, axis.given);
                Err(Error::input(text).axis(axis.given).size(axis.size))
            }
        }
    }
}

fn check_count(sizes: usize, count: usize, axis: &Axis) -> Result<()> {
    if sizes == count {
        return Ok(());
    }
    let text = format!("\"split\" has {sizes} sizes, but there are {count} outputs");
    Err(Error::input(text).parameter("split").axis(axis.given).size(axis.size))
}

/// Checks that a list of sizes has one for each output, and that they add up.
fn listed(list: &[i64], count: usize, axis: &Axis) -> Result<Parts> {
    check_count(list.len(), count, axis)?;
    let wrong = |text| Error::input(text).parameter("split").axis(axis.given).size(axis.size);
    let mut parts = Parts::new();
    for (k, &size) in list.iter().enumerate() {
        let part = usize::try_from(size).map_err(|_| wrong(format!("split[{k}] = {size} is negative")));
        parts.push(part.map_err(|error| error.position(vec![k]).value(size))?);
    }
    let sum: i128 = list.iter().map(|size| i128::from(*size)).sum();
    if sum != axis.size as i128 {
        let (given, size) = (axis.given, axis.size);
        let text = format!("the sizes in \"split\" add up to {sum}, but axis {given} of \"input\" has {size} entries");
        return Err(wrong(text).value(sum));
    }
    Ok(parts)
}

impl Operator for Split {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let axis = call.axis(0, self.axis)?;
        let parts = self.parts(call, &axis)?;
        if parts.len() == 1 {
            return Ok(smallvec![call.taken(0)?]);
        }
        let input = call.tensor(0)?;
        let (mut start, mut outputs) = (0, Values::new());
        for (k, &size) in parts.iter().enumerate() {
            call.check_cancel()?;
            if call.wants(k) {
                outputs.push(part(call.context(), input, &axis, start, size)?.into());
            } else {
                outputs.push(input.clone().into());
            }
            start += size;
        }
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::operator::Attribute;
    use crate::ops::testing::{int, run_for, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn data() -> Value {
        tensor(&[2, 4], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    }

    fn halves() -> [Value; 2] {
        [tensor(&[2, 2], [1f32, 2.0, 5.0, 6.0]), tensor(&[2, 2], [3f32, 4.0, 7.0, 8.0])]
    }

    fn uneven() -> [Value; 2] {
        [tensor(&[2, 3], [1f32, 2.0, 3.0, 5.0, 6.0, 7.0]), tensor(&[2, 1], [4f32, 8.0])]
    }

    fn attribute(sizes: &[i64]) -> (&str, Attribute) {
        ("split", Attribute::Ints(sizes.to_vec()))
    }

    #[test]
    fn equal_parts() {
        let rows = [tensor(&[1, 4], [1f32, 2.0, 3.0, 4.0]), tensor(&[1, 4], [5f32, 6.0, 7.0, 8.0])];
        run_for(2, "Split", 1, [], [&data()]).gives_all(rows);
        run_for(2, "Split", 2, [int("axis", 1)], [&data()]).gives_all(halves());
        run_for(2, "Split", 13, [int("axis", -1)], [&data()]).gives_all(halves());
        run_for(2, "Split", 18, [int("axis", 1), int("num_outputs", 2)], [&data()]).gives_all(halves());
        run_for(1, "Split", 13, [], [&data()]).gives_all([data()]);
        let empty = tensor(&[0, 1], Vec::<i8>::new());
        run_for(2, "Split", 13, [], [&empty]).gives_all([empty.clone(), empty.clone()]);
        // The last part is smaller.
        let seven = tensor(&[7], [1i8, 2, 3, 4, 5, 6, 7]);
        let parts = [tensor(&[3], [1i8, 2, 3]), tensor(&[3], [4i8, 5, 6]), tensor(&[1], [7i8])];
        run_for(3, "Split", 18, [int("num_outputs", 3)], [&seven]).gives_all(parts);
        let two = tensor(&[2], [1i8, 2]);
        let parts = [tensor(&[1], [1i8]), tensor(&[1], [2i8]), tensor(&[0], Vec::<i8>::new())];
        run_for(3, "Split", 18, [int("num_outputs", 3)], [&two]).gives_all(parts);
    }

    #[test]
    fn listed_parts() {
        run_for(2, "Split", 1, [int("axis", 1)], [&data(), &tensor(&[2], [3f32, 1.0])]).gives_all(uneven());
        run_for(2, "Split", 1, [int("axis", 1), attribute(&[3, 1])], [&data()]).gives_all(uneven());
        run_for(2, "Split", 11, [int("axis", -1), attribute(&[3, 1])], [&data()]).gives_all(uneven());
        run_for(2, "Split", 18, [int("axis", 1)], [&data(), &tensor(&[2], [3i64, 1])]).gives_all(uneven());
        let strings = |values: &[&str]| Value::from(Tensor::from_strings(&[values.len()], values).unwrap());
        run_for(2, "Split", 13, [], [&strings(&["a", "b", "c"]), &tensor(&[2], [0i64, 3])])
            .gives_all([strings(&[]), strings(&["a", "b", "c"])]);
    }

    #[test]
    fn refusals() {
        let sizes = |values: &[i64]| tensor(&[values.len()], values);
        let fails = |sizes: &Value, text: &str| run_for(2, "Split", 13, [int("axis", 1)], [&data(), sizes]).fails(text);
        fails(&sizes(&[3, 2]), "the sizes in \"split\" add up to 5, but axis 1 of \"input\" has 4 entries");
        fails(&sizes(&[5, -1]), "split[1] = -1 is negative");
        fails(&sizes(&[i64::MAX, i64::MAX]), "add up to 18446744073709551614");
        fails(&sizes(&[4]), "\"split\" has 1 sizes, but there are 2 outputs");
        fails(&sizes(&[0; 9]), "\"split\" has 9 values");
        fails(&tensor(&[1, 2], [2i64, 2]), "a list is needed");
        run_for(3, "Split", 13, [int("axis", 1)], [&data()]).fails("4 entries along axis 1 make no 3 equal parts");
        run_for(2, "Split", 1, [], [&data(), &tensor(&[2], [0.5f32, 1.5])])
            .fails("split[0] = 0.5 is not a whole number");
        run_for(2, "Split", 1, [int("axis", -3)], [&data()]).fails("allowed -2..=1");
        let seven = tensor(&[7], [0i8; 7]);
        run_for(5, "Split", 18, [int("num_outputs", 5)], [&seven]).fails("make no 5 parts of 2");
        run_for(2, "Split", 18, [int("num_outputs", 3)], [&seven]).fails("num_outputs is 3, but there are 2 outputs");
        run_for(2, "Split", 18, [], [&seven]).fails("neither \"split\" nor \"num_outputs\"");
        run_for(2, "Split", 18, [int("num_outputs", 2)], [&data(), &sizes(&[1, 1])]).fails("both given");
        run_for(2, "Split", 1, [attribute(&[1, 1])], [&data(), &tensor(&[2], [1f32, 1.0])]).fails("both given");
        let error = run_for(2, "Split", 2, [attribute(&[1, 2])], [&data()]).fails("add up to 3");
        assert_eq!(error.kind(), Kind::Model);
    }
}
