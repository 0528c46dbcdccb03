//! CenterCropPad: the middle of a tensor, with zeros around it where there is less.
//! <https://onnx.ai/onnx/operators/onnx__CenterCropPad.html>

use crate::ops::prelude::*;
use kernels::copy::{Fill, Map};

pub(super) const CENTER_CROP_PAD: Implementation = Implementation::run("CenterCropPad", &[18], load);

/// Along each of `axes`, half of the entries to remove or add are at the beginning, rounded down, and the others at the end.
#[derive(Debug)]
struct CenterCropPad {
    axes: Option<Vec<i64>>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let axes = node.optional("axes", Node::ints)?;
    Ok(Box::new(CenterCropPad { axes: axes.map(<[i64]>::to_vec) }))
}

impl CenterCropPad {
    fn axes(&self, rank: usize) -> Result<Places> {
        match &self.axes {
            Some(axes) => places(axes, rank, true, |text| Error::model(text).attribute("axes")),
            None => Ok((0..rank).collect()),
        }
    }

    fn maps(&self, call: &Call<'_>, data: &[usize]) -> Result<Maps> {
        let axes = self.axes(data.len())?;
        let sizes = integers(call, 1, data.len())?;
        check_count(sizes.len(), axes.len())?;
        let mut maps: Maps = data.iter().map(|size| whole(*size)).collect();
        for (k, (&at, &wanted)) in axes.iter().zip(&sizes).enumerate() {
            let Some(map) = maps.get_mut(at) else { continue };
            let (size, wrong) = (map.0, || Error::input(format!("shape[{k}] = {wanted} is not a size")));
            let target =
                usize::try_from(wanted).map_err(|_| wrong().parameter("shape").position(vec![k]).value(wanted))?;
            *map = match target.checked_sub(size) {
                Some(more) => padded(0, size, [more / 2, more - more / 2], Fill::Constant)?,
                None => (target, Map::Line { start: (size - target) / 2, step: 1 }),
            };
        }
        Ok(maps)
    }
}

impl Operator for CenterCropPad {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let data = call.tensor(0)?;
        let maps = self.maps(call, data.shape())?;
        if maps.iter().zip(data.shape()).all(|(map, size)| *map == whole(*size)) {
            return Ok(call.taken(0)?.into());
        }
        Ok(by_maps(call.context(), data, &maps, &[0; 16])?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(mut dims) = facts.dims(0).map(<[Dim]>::to_vec) else { return Ok(()) };
        let axes = self.axes(dims.len())?;
        let sizes = facts.listed(1).unwrap_or_else(|| vec![Dim::Unknown; axes.len()]);
        check_count(sizes.len(), axes.len())?;
        for (at, size) in axes.into_iter().zip(sizes) {
            dims.get_mut(at).into_iter().for_each(|dim| *dim = size.clone());
        }
        facts.give(0, dims);
        Ok(())
    }
}

fn check_count(sizes: usize, axes: usize) -> Result<()> {
    if sizes == axes {
        return Ok(());
    }
    let text = format!("\"shape\" has {sizes} values, but there are {axes} axes: they must be equally many");
    Err(Error::input(text).parameter("shape").size(sizes))
}

#[cfg(test)]
mod tests {
    use crate::error::Kind;
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, ints, run, tensor};
    use crate::value::Value;

    fn shape(sizes: &[i64]) -> Value {
        tensor(&[sizes.len()], sizes)
    }

    #[test]
    fn centers() {
        let data = tensor(&[5], [1i8, 2, 3, 4, 5]);
        let gives = |size: i64, want: &[i8]| {
            run("CenterCropPad", 18, [], [&data, &shape(&[size])]).gives(tensor(&[want.len()], want));
        };
        gives(5, &[1, 2, 3, 4, 5]);
        gives(3, &[2, 3, 4]);
        gives(2, &[2, 3]);
        gives(0, &[]);
        gives(7, &[0, 1, 2, 3, 4, 5, 0]);
        gives(8, &[0, 1, 2, 3, 4, 5, 0, 0]);
        let data = tensor(&[2, 3], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let both = tensor(&[4, 1], [0f32, 2.0, 5.0, 0.0]);
        run("CenterCropPad", 18, [], [&data, &shape(&[4, 1])]).gives(&both);
        let axes = [("axes", Attribute::Ints(vec![-1, 0]))];
        run("CenterCropPad", 18, axes, [&data, &tensor(&[2], [1i32, 4])]).gives(&both);
    }

    #[test]
    fn refusals() {
        let data = tensor(&[2, 1], [1i8, 2]);
        let fails = |sizes: &[i64], text: &str| run("CenterCropPad", 18, [], [&data, &shape(sizes)]).fails(text);
        fails(&[1], "\"shape\" has 1 values, but there are 2 axes");
        fails(&[1, -1], "shape[1] = -1 is not a size");
        assert_eq!(fails(&[1 << 40, 1], "tensor_bytes").kind(), Kind::Limit);
        assert_eq!(fails(&[1 << 62, 1 << 62], "more bytes than can be counted").kind(), Kind::Input);
        let axes = [("axes", Attribute::Ints(vec![0, 0]))];
        run("CenterCropPad", 18, axes, [&data, &shape(&[1, 1])]).fails("axis 0 is given twice");
    }

    #[test]
    fn inferred() {
        let data = "float[N, 5, C]";
        infer("CenterCropPad", 18, [], [data, "{2, M, 3}"]).gives("[2, M, 3]");
        infer("CenterCropPad", 18, [ints("axes", &[-1, 0])], [data, "{2, ?}"]).gives("[?, 5, 2]");
        infer("CenterCropPad", 18, [ints("axes", &[1])], [data, "int64"]).gives("[N, ?, C]");
        infer("CenterCropPad", 18, [], [data, "{2, 3}"]).fails("\"shape\" has 2 values, but there are 3 axes");
        infer("CenterCropPad", 18, [ints("axes", &[3])], [data, "{2}"]).fails("axis 3 is out of range");
    }
}
