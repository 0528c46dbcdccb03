//! Pad: a tensor with more, or fewer, entries at both ends of its axes.
//! <https://onnx.ai/onnx/operators/onnx__Pad.html>

use crate::ops::prelude::*;
use kernels::copy::Fill;

pub(super) const PAD: Implementation = Implementation::run("Pad", &[1, 2, 11, 13, 18, 19, 21, 23, 24, 25], load);

/// `output[i, ..] = data[i - begin, ..]` for each of `axes`, and outside of `data` what `fill` says
///
/// A negative pad removes entries: first those of `data`, which are then not repeated, and then what the other pad adds.
/// Where no entry of `data` stays, only constants can be added.
#[derive(Debug)]
struct Pad {
    fill: Fill,
    /// Up to version 2 the pads and the constant are attributes.
    attributes: Option<(&'static str, Vec<i64>, f32)>,
}

/// The attribute is `paddings` in version 1. Wrapping came with version 19.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let fill = match node.string("mode")? {
        "constant" => Fill::Constant,
        "reflect" => Fill::Reflect,
        "edge" => Fill::Edge,
        "wrap" if node.version() >= 19 => Fill::Wrap,
        other => {
            let wrap = if node.version() >= 19 { ", wrap" } else { "" };
            let text = format!("mode is {}: allowed constant, reflect, edge{wrap}", quote(other));
            return Err(Error::model(text).attribute("mode"));
        }
    };
    let name = if node.version() == 1 { "paddings" } else { "pads" };
    let attributes = match node.version() {
        ..11 => Some((name, node.ints(name)?.to_vec(), node.float("value")?)),
        _ => None,
    };
    Ok(Box::new(Pad { fill, attributes }))
}

impl Pad {
    fn fault(&self, text: String) -> Error {
        match self.attributes {
            Some((name, ..)) => Error::model(text).attribute(name),
            None => Error::input(text).parameter("pads"),
        }
    }

    fn check_count(&self, pads: usize, axes: usize) -> Result<()> {
        if pads == 2 * axes {
            return Ok(());
        }
        Err(self.fault(format!("there are {pads} pads: {axes} axes take one at each end")).size(pads))
    }

    fn maps(&self, call: &Call<'_>, data: &[usize]) -> Result<Maps> {
        let pads = self.attributes.as_ref().map_or_else(|| call.list(1), |(_, pads, _)| Ok(pads))?;
        let mut maps: Maps = data.iter().map(|size| whole(*size)).collect();
        let axes = match call.input(3) {
            Some(_) => {
                let list = integers(call, 3, data.len())?;
                places(&list, data.len(), true, |text| Error::input(text).parameter("axes"))?
            }
            None => (0..data.len()).collect(),
        };
        let count = axes.len();
        self.check_count(pads.len(), count)?;
        for ((&at, &begin), &end) in axes.iter().zip(pads).zip(pads.iter().skip(count)) {
            let Some(map) = maps.get_mut(at) else { continue };
            let (size, pads) = (map.0, [begin, end]);
            let fault = |what: String| {
                let text = format!("the pads {begin} and {end} of axis {at}, which has {size} entries, {what}");
                self.fault(text).axis(at as i64).size(size)
            };
            // Negative pads remove entries.
            let removed = pads.map(|pad| usize::try_from(pad.min(0).unsigned_abs()).unwrap_or(usize::MAX));
            let added = pads.map(|pad| usize::try_from(pad.max(0)).unwrap_or(usize::MAX));
            let total = size as i128 + i128::from(begin) + i128::from(end);
            if total < 0 {
                return Err(fault("remove more than there is".to_string()));
            }
            *map = match removed.iter().try_fold(size, |size, removed| size.checked_sub(*removed)) {
                Some(0) | None if total > 0 && self.fill != Fill::Constant => {
                    return Err(fault("add entries, but there are none that these could repeat".to_string()));
                }
                Some(left) => padded(removed[0], left, added, self.fill)?,
                // Of what is added at one end, the other removes a part.
                None => padded(0, 0, [usize::try_from(total).unwrap_or(usize::MAX), 0], self.fill)?,
            };
        }
        Ok(maps)
    }

    /// The constant of the attribute, in the type of the data.
    fn attribute(&self, dtype: DType) -> [u8; 16] {
        let mut bytes = [0; 16];
        let value = self.attributes.as_ref().map_or(0.0, |(_, _, value)| *value);
        let mut set = |value: &[u8]| bytes.iter_mut().zip(value).for_each(|(to, byte)| *to = *byte);
        match dtype {
            DType::Float16 => set(&half::f16::from_f32(value).to_le_bytes()),
            DType::Double => set(&f64::from(value).to_le_bytes()),
            DType::Float => set(&value.to_le_bytes()),
            // For others there is no such attribute, and 0, false and the empty string are zero bytes.
            _ => {}
        }
        bytes
    }
}

impl Operator for Pad {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let data = call.tensor(0)?;
        let maps = self.maps(call, data.shape())?;
        if maps.iter().zip(data.shape()).all(|(map, size)| *map == whole(*size)) {
            return Ok(call.taken(0)?.into());
        }
        let Some(constant) = call.optional_tensor(2)?.filter(|_| self.fill == Fill::Constant) else {
            return Ok(by_maps(call.context(), data, &maps, &self.attribute(data.dtype()))?.into());
        };
        if constant.len() != 1 {
            let text = format!("\"constant_value\" has {} elements: one is needed", constant.len());
            return Err(Error::input(text).parameter("constant_value").size(constant.len()));
        }
        let output = match call.joined(&[data, constant])?.as_deref() {
            Some([data, constant]) => by_maps(call.context(), data, &maps, constant.bytes())?,
            _ => by_maps(call.context(), data, &maps, constant.bytes())?,
        };
        Ok(output.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims) = facts.dims(0) else { return Ok(()) };
        let pads = match &self.attributes {
            Some((_, pads, _)) => Some(pads.iter().map(|pad| Some(Formula::from(*pad))).collect()),
            None => facts.list(1),
        };
        let axes = match facts.input(3) {
            None => Some((0..dims.len()).collect()),
            Some(_) => facts
                .known(3)
                .map(|list| places(&list, dims.len(), true, |text| Error::input(text).parameter("axes")))
                .transpose()?,
        };
        let (Some(pads), Some(axes)) = (pads, axes) else {
            facts.give(0, vec![Dim::Unknown; dims.len()]);
            return Ok(());
        };
        self.check_count(pads.len(), axes.len())?;
        let mut dims = dims.to_vec();
        for (k, at) in axes.iter().enumerate() {
            let pad = |k: usize| pads.get(k)?.clone();
            let both = pad(k).zip(pad(axes.len() + k)).and_then(|(begin, end)| begin.plus(&end));
            if let Some(dim) = dims.get_mut(*at) {
                *dim = Formula::of(dim).and_then(|own| own.plus(&both?)).map_or(Dim::Unknown, |sum| sum.dim());
            }
        }
        facts.give(0, dims);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::operator::Attribute;
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use half::f16;

    fn mode(mode: &str) -> [(&str, Attribute); 1] {
        [("mode", Attribute::String(mode.into()))]
    }

    fn data() -> Value {
        tensor(&[3, 2], [1.0f32, 1.2, 2.3, 3.4, 4.5, 5.7])
    }

    fn list(values: &[i64]) -> Value {
        tensor(&[values.len()], values)
    }

    #[test]
    fn the_examples_of_the_standard() {
        let pads = list(&[0, 2, 0, 0]);
        let rows = |rows: [[f32; 4]; 3]| tensor(&[3, 4], rows.concat());
        let zeros = rows([[0.0, 0.0, 1.0, 1.2], [0.0, 0.0, 2.3, 3.4], [0.0, 0.0, 4.5, 5.7]]);
        let reflected = rows([[1.0, 1.2, 1.0, 1.2], [2.3, 3.4, 2.3, 3.4], [4.5, 5.7, 4.5, 5.7]]);
        let edges = rows([[1.0, 1.0, 1.0, 1.2], [2.3, 2.3, 2.3, 3.4], [4.5, 4.5, 4.5, 5.7]]);
        run("Pad", 13, [], [&data(), &pads]).gives(&zeros);
        run("Pad", 11, mode("reflect"), [&data(), &pads]).gives(&reflected);
        run("Pad", 18, mode("edge"), [&data(), &pads]).gives(&edges);
        run("Pad", 1, [("paddings", Attribute::Ints(vec![0, 2, 0, 0]))], [&data()]).gives(&zeros);
        run("Pad", 2, [("pads", Attribute::Ints(vec![0, 2, 0, 0]))], [&data()]).gives(&zeros);
        let [last, first, middle] = [[3.4f32, 2.3, 3.4, 2.3], [5.7, 4.5, 5.7, 4.5], [1.2, 1.0, 1.2, 1.0]];
        let wrapped = [last, first, middle, last, first, middle].concat();
        run("Pad", 19, mode("wrap"), [&data(), &list(&[2, 1, 1, 1])]).gives(tensor(&[6, 4], wrapped));
    }

    #[test]
    fn more_than_there_is() {
        let data = tensor(&[3], [1i8, 2, 3]);
        let padded = |mode_: &str, pads: &[i64], want: &[i8]| {
            run("Pad", 25, mode(mode_), [&data, &list(pads)]).gives(tensor(&[want.len()], want));
        };
        padded("reflect", &[5, 6], &[2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1]);
        padded("wrap", &[4, 5], &[3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2]);
        padded("edge", &[1, 2], &[1, 1, 2, 3, 3, 3]);
        // What is removed is not repeated.
        padded("reflect", &[-1, 2], &[2, 3, 2, 3]);
        padded("wrap", &[2, -1], &[1, 2, 1, 2]);
        padded("edge", &[-2, 1], &[3, 3]);
        padded("constant", &[-1, -1], &[2]);
        padded("constant", &[-3, 2], &[0, 0]);
        padded("reflect", &[-1, -2], &[]);
        // Nor is what is added, if more is removed than there is.
        padded("constant", &[4, -5], &[0, 0]);
        padded("constant", &[-5, 4], &[0, 0]);
        padded("constant", &[i64::MAX, -i64::MAX], &[0, 0, 0]);
        for (begin, end) in [(1, -4), (-4, 1), (i64::MAX - 2, i64::MIN)] {
            for mode in ["constant", "edge", "reflect", "wrap"] {
                padded(mode, &[begin, end], &[]);
            }
        }
        let two = tensor(&[2], [1i8, 2]);
        run("Pad", 18, [], [&two, &list(&[1, -3])]).gives(tensor(&[0], Vec::<i8>::new()));
        run("Pad", 18, [], [&two, &list(&[3, -4]), &tensor(&[], [9i8])]).gives(tensor(&[1], [9i8]));
        let attribute = [("pads", Attribute::Ints(vec![3, -4])), ("value", Attribute::Float(0.5))];
        run("Pad", 2, attribute, [&tensor(&[2], [1f32, 2.0])]).gives(tensor(&[1], [0.5f32]));
        let none = tensor(&[0], Vec::<i8>::new());
        run("Pad", 18, mode("edge"), [&none, &list(&[-1, 1])]).gives(&none);
        run("Pad", 18, [], [&none, &list(&[-1, 1])]).gives(&none);
        run("Pad", 18, [], [&none, &list(&[3, -1])]).gives(tensor(&[2], [0i8; 2]));
        let one = tensor(&[1], [7i8]);
        run("Pad", 19, mode("reflect"), [&one, &list(&[1, 1])]).gives(tensor(&[3], [7i8; 3]));
    }

    #[test]
    fn constants_and_axes() {
        let data = tensor(&[1, 2], [1i16, 2]);
        let (nine, axes) = (tensor(&[], [9i16]), tensor(&[1], [-1i32]));
        run("Pad", 18, [], [&data, &list(&[1, 0]), &nine, &axes]).gives(tensor(&[1, 3], [9i16, 1, 2]));
        run("Pad", 13, [], [&data, &list(&[0; 4])]).gives(&data);
        run("Pad", 13, [], [&tensor(&[], [1i8]), &list(&[])]).gives(tensor(&[], [1i8]));
        let empty = tensor(&[0, 2], Vec::<u16>::new());
        run("Pad", 13, [], [&empty, &list(&[1, 0, 0, -1])]).gives(tensor(&[1, 1], [0u16]));
        let attributes = || [("pads", Attribute::Ints(vec![1, 0])), ("value", Attribute::Float(1.5))];
        let halves =
            |values: &[f32]| tensor(&[values.len()], values.iter().map(|v| f16::from_f32(*v)).collect::<Vec<_>>());
        run("Pad", 2, attributes(), [&halves(&[2.0])]).gives(halves(&[1.5, 2.0]));
        run("Pad", 2, attributes(), [&tensor(&[1], [2f64])]).gives(tensor(&[2], [1.5f64, 2.0]));
        let strings = |values: &[&str]| Value::from(Tensor::from_strings(&[values.len()], values).unwrap());
        run("Pad", 13, [], [&strings(&["a"]), &list(&[1, 0])]).gives(strings(&["", "a"]));
        run("Pad", 13, [], [&strings(&["a"]), &list(&[1, 0]), &strings(&["b"])]).gives(strings(&["b", "a"]));
    }

    #[test]
    fn refusals() {
        let fails = |pads: &[i64], text: &str| run("Pad", 13, [], [&data(), &list(pads)]).fails(text);
        fails(&[0, 1, 2], "there are 3 pads: 2 axes take one at each end");
        fails(&[0, -1, 0, -2], "the pads -1 and -2 of axis 1, which has 2 entries, remove more than there is");
        fails(&[0, i64::MIN, 0, i64::MAX - 2], "remove more than there is");
        fails(&[i64::MAX, 0, 0, 0], "more bytes than can be counted");
        assert_eq!(fails(&[1 << 62, 0, 1 << 62, 0], "more bytes than can be counted").kind(), Kind::Input);
        fails(&[i64::MAX, 0, i64::MAX, 0], "too many");
        assert_eq!(fails(&[1 << 40, 0, 0, 0], "tensor_bytes").kind(), Kind::Limit);
        let empty = tensor(&[0], Vec::<i8>::new());
        run("Pad", 19, mode("wrap"), [&empty, &list(&[1, 0])]).fails("there are none that these could repeat");
        run("Pad", 19, mode("edge"), [&tensor(&[2], [1i8, 2]), &list(&[3, -4])]).fails(
            "the pads 3 and -4 of axis 0, which has 2 entries, add entries, but there are none that these could",
        );
        fails(&[1, 0, -5, 0], "the pads 1 and -5 of axis 0, which has 3 entries, remove more than there is");
        run("Pad", 18, mode("wrap"), [&data(), &list(&[0; 4])])
            .fails("mode is \"wrap\": allowed constant, reflect, edge");
        run("Pad", 13, [], [&data(), &list(&[1; 4]), &tensor(&[2], [0f32; 2])]).fails("has 2 elements: one is needed");
        let axes = tensor(&[2], [0i64, -2]);
        run("Pad", 18, [], [&data(), &list(&[1; 4]), &tensor(&[], [0f32]), &axes]).fails("axis -2 is given twice");
        let attribute = [("pads", Attribute::Ints(vec![1]))];
        assert_eq!(run("Pad", 2, attribute, [&data()]).fails("there are 1 pads").kind(), Kind::Model);
    }
}
