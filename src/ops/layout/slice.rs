//! Slice, DynamicSlice: elements of a range with steps along some axes.
//! <https://onnx.ai/onnx/operators/onnx__Slice.html>

use crate::ops::prelude::*;
use kernels::copy::Map;

pub(super) const SLICE: Implementation = Implementation::run("Slice", &[1, 10, 11, 13], load);

/// An experimental operator, which ONNX dropped in release 1.5: Slice-10 without steps. Its text says nothing of negative
/// axes.
pub(super) const DYNAMIC_SLICE: Implementation = Implementation::run("DynamicSlice", &[1], |node| {
    node.note_constant_axes(3, i64::MAX);
    Ok(Box::new(Slice { attributes: None }))
});

/// `output[i, ..] = data[start + i * step, ..]` for each of `axes`
#[derive(Debug)]
struct Slice {
    /// In version 1 the ranges are attributes, without steps.
    attributes: Option<Ranges>,
}

/// Lists with an item for each axis.
#[derive(Debug)]
struct Ranges {
    starts: List,
    ends: List,
    axes: Option<List>,
    steps: Option<List>,
}

type List = SmallVec<[i64; 6]>;

/// The texts before version 11 don't say whether axes may be negative.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let mut slice = Slice { attributes: None };
    node.note_constant_axes(3, 11);
    if node.version() < 10 {
        let axes = node.axes("axes", 11)?;
        let (starts, ends, axes) = (node.ints("starts")?.into(), node.ints("ends")?.into(), axes.map(List::from));
        slice.attributes = Some(Ranges { starts, ends, axes, steps: None });
    }
    Ok(Box::new(slice))
}

impl Ranges {
    fn of(call: &Call<'_>, rank: usize) -> Result<Ranges> {
        let optional = |k| call.input(k).map(|_| integers(call, k, rank)).transpose();
        let (starts, ends) = (integers(call, 1, rank)?, integers(call, 2, rank)?);
        Ok(Ranges { starts, ends, axes: optional(3)?, steps: optional(4)? })
    }

    /// The ranges, if they are known at load.
    fn known(facts: &Inference<'_>) -> Option<Ranges> {
        let list = |k: usize| facts.known(k).map(|list| list.into_iter().collect());
        let optional = |k: usize| facts.input(k).map_or(Some(None), |_| list(k).map(Some));
        Some(Ranges { starts: list(1)?, ends: list(2)?, axes: optional(3)?, steps: optional(4)? })
    }

    /// Calls `each` with the axis, start, end and step of each range.
    fn each(&self, rank: usize, mut each: impl FnMut(usize, i64, i64, i64) -> Result<()>) -> Result<()> {
        let count = self.starts.len();
        let lists = [("ends", Some(&self.ends)), ("axes", self.axes.as_ref()), ("steps", self.steps.as_ref())];
        for (name, list) in lists {
            let len = list.map_or(count, SmallVec::len);
            if len != count {
                let text = format!("\"{name}\" has {len} values, and \"starts\" {count}: they must be equally many");
                return Err(Error::input(text).parameter(name).size(len));
            }
        }
        let first: List = (0..count as i64).collect();
        let axes = self.axes.as_ref().unwrap_or(&first);
        let axes = places(axes, rank, true, |text| Error::input(text).parameter("axes"))?;
        let steps = self.steps.iter().flatten().copied().chain(std::iter::repeat(1));
        for (k, (((&axis, &start), &end), step)) in axes.iter().zip(&self.starts).zip(&self.ends).zip(steps).enumerate()
        {
            if step == 0 {
                let text = format!("steps[{k}] = 0 is not allowed");
                return Err(Error::input(text).parameter("steps").position(vec![k]).value(0));
            }
            each(axis, start, end, step)?;
        }
        Ok(())
    }
}

/// The coordinates from `start` to `end` along an axis of some size. Negative ones count from the end, and both stay
/// within the axis.
fn range(size: usize, start: i64, end: i64, step: i64) -> (usize, Map) {
    let (size, step) = (size as i128, i128::from(step));
    // Backward, the first coordinate is an element, and the end may be before all of them.
    let (least, most) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let place = |at: i64| if at < 0 { i128::from(at) + size } else { at.into() };
    let (start, end) = (place(start).clamp(0.min(most), most), place(end).clamp(least, most));
    let count = (end - start + step - step.signum()) / step;
    let (start, count) = (usize::try_from(start).unwrap_or(0), usize::try_from(count).unwrap_or(0));
    // Among two or more the step is within the axis.
    (count, Map::Line { start, step: if count > 1 { step as isize } else { 1 } })
}

/// The number of coordinates along an axis, as far as it is known.
fn sliced(dim: &Dim, start: i64, end: i64, step: i64) -> Dim {
    let whole = |at: i64| usize::try_from(at).map_or(at == i64::MIN, |at| at >= i32::MAX as usize);
    match (dim, start, end, step) {
        (Dim::Fixed(size), ..) => Dim::Fixed(range(*size, start, end, step).0),
        (_, 0, end, 1) if end > 0 && whole(end) => dim.clone(),
        _ => Dim::Unknown,
    }
}

impl Operator for Slice {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let data = call.tensor(0)?;
        let mut maps: Maps = data.shape().iter().map(|size| whole(*size)).collect();
        let (rank, given) = (maps.len(), self.attributes.is_none().then(|| Ranges::of(call, data.rank())).transpose()?);
        let ranges = self.attributes.as_ref().or(given.as_ref()).ok_or_else(|| Error::bug("Slice has no ranges"))?;
        ranges.each(rank, |axis, start, end, step| {
            if let Some(map) = maps.get_mut(axis) {
                *map = range(map.0, start, end, step);
            }
            Ok(())
        })?;
        if maps.iter().zip(data.shape()).all(|(map, size)| *map == whole(*size)) {
            return Ok(call.taken(0)?.into());
        }
        Ok(by_maps(call.context(), data, &maps, &[])?.into())
    }

    /// The sizes along `axes` are known if all ranges are.
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(data) = facts.dims(0) else { return Ok(()) };
        let (mut dims, mut list) = (data.to_vec(), facts.list(0));
        let given = Ranges::known(facts);
        let Some(ranges) = self.attributes.as_ref().or(given.as_ref()) else {
            // Without `axes` the ranges are those of the first ones.
            let axes = match facts.input(3) {
                Some(_) => facts.known(3),
                None => facts.listed(1).map(|starts| (0..starts.len() as i64).collect()),
            };
            let Some(axes) = axes else {
                facts.give(0, vec![Dim::Unknown; dims.len()]);
                return Ok(());
            };
            for at in places(&axes, data.len(), true, |text| Error::input(text).parameter("axes"))? {
                dims.get_mut(at).into_iter().for_each(|dim| *dim = Dim::Unknown);
            }
            facts.give(0, dims);
            return Ok(());
        };
        ranges.each(data.len(), |axis, start, end, step| {
            let Some(dim) = dims.get_mut(axis) else { return Ok(()) };
            if let (Dim::Fixed(size), Some(all)) = (&*dim, &list) {
                let (count, along) = range(*size, start, end, step);
                let Map::Line { start, step } = along else { return Ok(()) };
                let at = |k: usize| start.checked_add_signed(step.checked_mul(k as isize)?);
                list = Some((0..count.min(all.len())).map(|k| all.get(at(k)?)?.clone()).collect());
            }
            *dim = sliced(dim, start, end, step);
            Ok(())
        })?;
        facts.give(0, dims);
        if let Some(list) = list {
            facts.give_list_like(0, 0, &list);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn data() -> Value {
        tensor(&[2, 4], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    }

    fn list(values: &[i64]) -> Value {
        tensor(&[values.len()], values)
    }

    fn ints<'a>(name: &'a str, values: &[i64]) -> (&'a str, Attribute) {
        (name, Attribute::Ints(values.to_vec()))
    }

    #[test]
    fn the_examples_of_the_standard() {
        let (axes, steps) = (list(&[0, 1]), list(&[1, 2]));
        run("Slice", 13, [], [&data(), &list(&[1, 0]), &list(&[2, 3]), &axes, &steps])
            .gives(tensor(&[1, 2], [5f32, 7.0]));
        run("Slice", 10, [], [&data(), &list(&[0, 1]), &list(&[-1, 1000])]).gives(tensor(&[1, 3], [2f32, 3.0, 4.0]));
        let first = [ints("starts", &[1, 0]), ints("ends", &[2, 3]), ints("axes", &[0, 1])];
        run("Slice", 1, first, [&data()]).gives(tensor(&[1, 3], [5f32, 6.0, 7.0]));
        let second = [ints("starts", &[0, 1]), ints("ends", &[-1, 1000])];
        run("Slice", 1, second, [&data()]).gives(tensor(&[1, 3], [2f32, 3.0, 4.0]));
    }

    /// As numpy's `range(6)[start:end:step]`; but backward, a start before all entries is the first one.
    #[test]
    fn ranges() {
        let data = tensor(&[6], [0i8, 1, 2, 3, 4, 5]);
        let (least, most) = (i64::MIN, i64::MAX);
        for (start, end, step, want) in [
            (0, 6, 2, &[0i8, 2, 4][..]),
            (-4, -1, 1, &[2, 3, 4]),
            (5, 0, -1, &[5, 4, 3, 2, 1]),
            (-1, least, -1, &[5, 4, 3, 2, 1, 0]),
            (most, least, -2, &[5, 3, 1]),
            (4, -100, -3, &[4, 1]),
            (least, most, 1, &[0, 1, 2, 3, 4, 5]),
            (least, most, most, &[0]),
            (most, least, least, &[5]),
            (0, least, least, &[0]),
            (-100, least, -1, &[0]),
            (3, 3, 1, &[]),
            (4, 2, 1, &[]),
            (2, 4, -1, &[]),
            (6, 7, 1, &[]),
            (least, least, least, &[0]),
        ] {
            let (start, end, step) = (list(&[start]), list(&[end]), list(&[step]));
            let given = [&data, &start, &end, &list(&[0]), &step];
            run("Slice", 13, [], given).gives(tensor(&[want.len()], want));
            let empty = tensor(&[0], Vec::<i8>::new());
            run("Slice", 13, [], [&empty, &start, &end, &list(&[0]), &step]).gives(&empty);
        }
    }

    #[test]
    fn axes_and_types() {
        let backward = [&data(), &list(&[-1]), &list(&[-9]), &list(&[-1]), &list(&[-1])];
        run("Slice", 11, [], backward).gives(tensor(&[2, 4], [4f32, 3.0, 2.0, 1.0, 8.0, 7.0, 6.0, 5.0]));
        let narrow = |value: i32| tensor(&[1], [value]);
        run("Slice", 10, [], [&data(), &narrow(1), &narrow(2)]).gives(tensor(&[1, 4], [5f32, 6.0, 7.0, 8.0]));
        run("Slice", 13, [], [&data(), &list(&[0]), &list(&[9])]).gives(data());
        run("Slice", 13, [], [&tensor(&[], [1i8]), &list(&[]), &list(&[])]).gives(tensor(&[], [1i8]));
        let strings = |values: &[&str]| Value::from(Tensor::from_strings(&[values.len()], values).unwrap());
        run("Slice", 13, [], [&strings(&["a", "b", "c"]), &list(&[1]), &list(&[3])]).gives(strings(&["b", "c"]));
    }

    #[test]
    fn refusals() {
        let one = list(&[1]);
        let axes = |axes: &[i64]| run("Slice", 13, [], [&data(), &one, &one, &list(axes)]);
        axes(&[2]).fails("axis 2 is out of range: allowed -2..=1");
        axes(&[0, 1]).fails("\"axes\" has 2 values, and \"starts\" 1");
        run("Slice", 10, [], [&data(), &one, &one, &list(&[-3])]).fails("axis -3 is out of range: allowed -2..=1");
        run("Slice", 13, [], [&data(), &one, &one, &list(&[0]), &list(&[0])]).fails("steps[0] = 0 is not allowed");
        run("Slice", 13, [], [&data(), &list(&[0, 0]), &one]).fails("\"ends\" has 1 values, and \"starts\" 2");
        run("Slice", 13, [], [&data(), &list(&[0; 9]), &list(&[0; 9])]).fails("\"starts\" has 9 values");
        let two = list(&[0, 0]);
        run("Slice", 13, [], [&data(), &two, &two, &list(&[1, -1])]).fails("axis -1 is given twice");
    }

    #[test]
    fn dynamic_slices() {
        run("DynamicSlice", 1, [], [&data(), &list(&[-3]), &list(&[i64::MAX]), &list(&[1])])
            .gives(tensor(&[2, 3], [2f32, 3.0, 4.0, 6.0, 7.0, 8.0]));
        let both = [tensor(&[2], [1i32, 0]), tensor(&[2], [2i32, -2])];
        run("DynamicSlice", 9, [], [&data(), &both[0], &both[1]]).gives(tensor(&[1, 2], [5f32, 6.0]));
        let text = Tensor::from_strings(&[2], ["a", "b"]).unwrap().into();
        run("DynamicSlice", 7, [], [&text, &list(&[1]), &list(&[2])]).gives(Tensor::from_strings(&[1], ["b"]).unwrap());
    }
}
