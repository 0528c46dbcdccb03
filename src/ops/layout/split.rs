//! Split: parts of a tensor along an axis.
//! <https://onnx.ai/onnx/operators/onnx__Split.html>

use crate::ops::prelude::*;

pub(super) const SPLIT: Implementation = Implementation::run("Split", &[1, 2, 11, 13, 18], load);

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
    let axis = node.optional("axis", |node, name| node.axis(name, 11))?.unwrap_or(0);
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
    /// Fails unless the sizes come from one place, which says as many as there are outputs.
    fn check(&self, input: bool, count: usize) -> Result<()> {
        let wrong = |text: String, given: i64| Err(Error::model(text).attribute("num_outputs").value(given));
        match (&self.sizes, input) {
            (Sizes::Attribute(_), true) => {
                Err(Error::model("the attribute and the input \"split\" are both given: allowed is one")
                    .attribute("split"))
            }
            (Sizes::Nearly(given), true) => {
                wrong("\"split\" and \"num_outputs\" are both given: allowed is one".to_string(), *given)
            }
            (Sizes::Nearly(given), false) if usize::try_from(*given) != Ok(count) => {
                wrong(format!("num_outputs is {given}, but there are {count} outputs"), *given)
            }
            (Sizes::Input, false) => Err(Error::model("neither \"split\" nor \"num_outputs\" is given")),
            _ => Ok(()),
        }
    }

    fn parts(&self, call: &Call<'_>, axis: &Axis) -> Result<Parts> {
        let count = call.output_count();
        self.check(call.input(1).is_some(), count)?;
        match call.input(1) {
            Some(split) => {
                let (len, most) = (split.tensor()?.len(), count.max(axis.size));
                if len <= most {
                    check_count(len, count, axis)?;
                }
                listed(&integers(call, 1, most)?, count, axis)
            }
            None => self.own_parts(count, axis),
        }
    }

    /// The parts without the input `split`.
    fn own_parts(&self, count: usize, axis: &Axis) -> Result<Parts> {
        let wrong = |text: String| Err(Error::input(text).axis(axis.given).size(axis.size));
        match &self.sizes {
            Sizes::Attribute(list) => listed(list, count, axis).map_err(|error| error.with_kind(Kind::Model)),
            Sizes::Equal if axis.size.is_multiple_of(count) => Ok(Parts::from_elem(axis.size / count, count)),
            Sizes::Equal => {
                wrong(format!("{} entries along axis {} make no {count} equal parts", axis.size, axis.given))
            }
            Sizes::Nearly(_) | Sizes::Input => {
                let size = axis.size.div_ceil(count.max(1));
                let Some(last) = axis.size.checked_sub(size * count.saturating_sub(1)) else {
                    return wrong(format!(
                        "{} entries along axis {} make no {count} parts of {size}, the last one smaller",
                        axis.size, axis.given
                    ));
                };
                let mut parts = Parts::from_elem(size, count);
                parts.last_mut().into_iter().for_each(|part| *part = last);
                Ok(parts)
            }
        }
    }

    /// What is known about the parts of an axis whose size isn't fixed.
    fn open_parts(&self, count: usize, size: &Dim, list: Option<List>) -> Option<Vec<Dim>> {
        if let Some(list) = list {
            return Some(list.iter().map(|size| size.as_ref().map_or(Dim::Unknown, Formula::dim)).collect());
        }
        let (parts, size) = (i64::try_from(count).ok()?, Formula::of(size)?);
        let (each, last) = match &self.sizes {
            Sizes::Equal => (size.floor_over(parts)?, None),
            Sizes::Nearly(_) => {
                let each = size.plus(&Formula::from(parts - 1))?.floor_over(parts)?;
                let last = size.minus(&each.times(&Formula::from(parts - 1))?)?;
                (each, Some(last.dim()))
            }
            _ => return None,
        };
        let mut dims = vec![each.dim(); count];
        dims.last_mut().zip(last).into_iter().for_each(|(dim, last)| *dim = last);
        Some(dims)
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
            return Ok(call.taken(0)?.into());
        }
        let input = call.tensor(0)?;
        let (mut start, mut outputs) = (0, Values::new());
        for (k, &size) in parts.iter().enumerate() {
            call.check_cancel()?;
            if call.wants(k) {
                outputs.push(part(call.context(), input, &axis, start, size)?);
            } else {
                outputs.push(input.clone());
            }
            start += size;
        }
        Ok(outputs)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let (count, input) = (facts.output_count(), facts.input(1).is_some());
        self.check(input, count)?;
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        let at = facts.place_of(self.axis, "axis", dims.len())?;
        let size = dims.get(at).unwrap_or(&Dim::Unknown);
        let list = match &self.sizes {
            Sizes::Attribute(list) => Some(list.iter().map(|size| Some(Formula::from(*size))).collect()),
            _ => facts.list(1),
        };
        let parts = match (size, facts.known(1)) {
            (Dim::Fixed(size), known) if known.is_some() || !input => {
                let axis = Axis { given: self.axis, at, size: *size };
                let parts = known.map_or_else(|| self.own_parts(count, &axis), |list| listed(&list, count, &axis));
                match parts {
                    // Bodies of official functions have it in a branch that doesn't run.
                    Err(_) if matches!(self.sizes, Sizes::Nearly(_)) => None,
                    parts => Some(parts?.into_iter().map(Dim::Fixed).collect()),
                }
            }
            _ if input && list.is_none() => None,
            _ => self.open_parts(count, size, list.filter(|list| list.len() == count)),
        };
        let parts = parts.unwrap_or_else(|| vec![if count == 1 { size.clone() } else { Dim::Unknown }; count]);
        for (k, part) in parts.into_iter().enumerate() {
            let mut dims = dims.to_vec();
            dims.get_mut(at).into_iter().for_each(|dim| *dim = part.clone());
            facts.give(k, dims);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::operator::Attribute;
    use crate::ops::testing::{infer_for, int, ints, run_for, tensor};
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

    #[test]
    fn inferred() {
        let x = "float[N, 7]";
        let split =
            |opset, attributes: [(&str, Attribute); 1], split| infer_for(3, "Split", opset, attributes, [x, split]);
        split(13, [int("axis", 1)], "{1, 2, 4}").gives_all(["[N, 1]", "[N, 2]", "[N, 4]"]);
        split(18, [int("axis", 1)], "int64[3]").gives_all(["[N, ?]", "[N, ?]", "[N, ?]"]);
        split(13, [int("axis", 0)], "{1, A, ?}").gives_all(["[1, 7]", "[A, 7]", "[?, 7]"]);
        split(13, [int("axis", 0)], "int64").gives_all(["[?, 7]", "[?, 7]", "[?, 7]"]);
        infer_for(3, "Split", 2, [int("axis", 1), ints("split", &[5, 0, 2])], [x])
            .gives_all(["[N, 5]", "[N, 0]", "[N, 2]"]);
        infer_for(2, "Split", 11, [ints("split", &[5, 2])], [x]).gives_all(["[5, 7]", "[2, 7]"]);
        infer_for(2, "Split", 13, [], [x]).gives_all(["[floor((N)/2), 7]", "[floor((N)/2), 7]"]);
        infer_for(2, "Split", 13, [], ["float[6]"]).gives_all(["[3]", "[3]"]);
        infer_for(3, "Split", 18, [int("axis", 1), int("num_outputs", 3)], [x])
            .gives_all(["[N, 3]", "[N, 3]", "[N, 1]"]);
        infer_for(1, "Split", 13, [], [x, "int64[1]"]).gives("[N, 7]");
        infer_for(2, "Split", 18, [int("num_outputs", 2)], [x])
            .gives_all(["[floor((N + 1)/2), 7]", "[N - floor((N + 1)/2), 7]"]);
        infer_for(2, "Split", 13, [], ["float"]).gives_all(["", ""]);
        infer_for(4, "Split", 18, [int("num_outputs", 4)], ["float[5]"]).gives_all(["[?]", "[?]", "[?]", "[?]"]);
    }

    #[test]
    fn inferred_faults() {
        let x = "float[N, 7]";
        let axis = || int("axis", 1);
        infer_for(2, "Split", 13, [axis()], [x]).fails("7 entries along axis 1 make no 2 equal parts");
        infer_for(2, "Split", 13, [axis()], [x, "{3, 5}"]).fails("the sizes in \"split\" add up to 8, but axis 1");
        infer_for(2, "Split", 13, [axis()], [x, "{3, 3, 1}"]).fails("\"split\" has 3 sizes, but there are 2 outputs");
        infer_for(2, "Split", 18, [axis(), int("num_outputs", 3)], [x])
            .fails("num_outputs is 3, but there are 2 outputs");
        infer_for(2, "Split", 18, [axis(), int("num_outputs", 2)], [x, "{3, 4}"]).fails("are both given");
        infer_for(2, "Split", 18, [axis()], [x]).fails("neither \"split\" nor \"num_outputs\" is given");
        infer_for(2, "Split", 13, [int("axis", 2)], [x]).fails("axis 2 is out of range: allowed -2..=1");
    }
}
