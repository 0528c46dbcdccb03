//! Crop: a part of each image. An experimental operator that ONNX dropped in release 1.5.
//! <https://github.com/onnx/onnx/blob/v1.4.1/docs/Operators.md#Crop>

use crate::ops::prelude::*;
use kernels::copy::Map;

pub(super) const CROP: Implementation = Implementation::run("Crop", &[1], load);

/// `output[n, c, h, w] = input[n, c, top + h, left + w]`, as far as the borders on the right and at the bottom; or with
/// `scale`, its height and width. Without `border` all are 0.
#[derive(Debug)]
struct Crop {
    /// Entries before the part along axes 2 and 3, and after it, unless its size is given.
    before: [usize; 2],
    after: [usize; 2],
    size: Option<[usize; 2]>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let [left, top, right, bottom] = sizes(node, "border")?.unwrap_or_default();
    let size = sizes(node, "scale")?;
    if size.is_none() && node.attribute("border").is_none() {
        return Err(Error::model("neither border nor scale is given").attribute("border"));
    }
    Ok(Box::new(Crop { before: [top, left], after: [bottom, right], size }))
}

/// The sizes that an attribute lists.
fn sizes<const N: usize>(node: &Node<'_>, name: &str) -> Result<Option<[usize; N]>> {
    let Some(list) = node.optional(name, Node::ints)? else { return Ok(None) };
    if let Some(least) = list.iter().find(|size| **size < 0) {
        return Err(Error::model(format!("{name} has {least}: it must not be negative")).attribute(name).value(*least));
    }
    let sizes: Vec<usize> = list.iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX)).collect();
    let text = || format!("{name} has {} values: {N} are needed", list.len());
    sizes.try_into().map(Some).map_err(|_| Error::model(text()).attribute(name).size(list.len()))
}

impl Crop {
    /// What is left along axis 2 or 3 of some size.
    fn part(&self, at: usize, size: usize) -> Result<usize> {
        let of = |list: &[usize; 2]| list.get(at).copied().unwrap_or(0);
        let (before, after) = (of(&self.before), self.size.as_ref().map_or(of(&self.after), of));
        let part = size.checked_sub(before).and_then(|rest| Some((rest, rest.checked_sub(after)?)));
        let text = || {
            let what = if self.size.is_some() { "a part" } else { "a border" };
            format!("axis {} of \"input\" has {size} entries: {before} before {what} of {after} are too many", at + 2)
        };
        let (_, rest) = part.ok_or_else(|| Error::input(text()).parameter("input").axis(at as i64 + 2).size(size))?;
        Ok(if self.size.is_some() { after } else { rest })
    }
}

impl Operator for Crop {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(|facts| facts.sizes::<4>(0).map(drop))?;
        let input = call.tensor(0)?;
        let mut maps: Maps = input.shape().iter().map(|size| whole(*size)).collect();
        for (at, map) in maps.iter_mut().skip(2).enumerate() {
            let start = self.before.get(at).copied().unwrap_or(0);
            *map = (self.part(at, map.0)?, Map::Line { start, step: 1 });
        }
        Ok(by_maps(call.context(), input, &maps, &[])?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some([batch, channels, image @ ..]) = facts.sizes::<4>(0)? else { return Ok(()) };
        let mut dims = vec![batch.clone(), channels.clone()];
        for (at, dim) in image.iter().enumerate() {
            dims.push(match (dim, self.size) {
                (Dim::Fixed(size), _) => Dim::Fixed(self.part(at, *size)?),
                (_, Some(size)) => size.get(at).map_or(Dim::Unknown, |size| Dim::Fixed(*size)),
                (_, None) => Dim::Unknown,
            });
        }
        facts.give(0, dims);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, ints, run, tensor};
    use crate::value::Value;

    /// 20 numbers as an image of 4 times 5.
    fn image() -> Value {
        tensor(&[1, 1, 4, 5], (0..20u8).map(f32::from).collect::<Vec<_>>())
    }

    #[test]
    fn parts() {
        run("Crop", 1, [ints("border", &[1, 0, 2, 1])], [&image()])
            .gives(tensor(&[1, 1, 3, 2], [1f32, 2.0, 6.0, 7.0, 11.0, 12.0]));
        // With a size the borders on the right and at the bottom don't count.
        run("Crop", 9, [ints("border", &[1, 1, 2, 9]), ints("scale", &[2, 3])], [&image()])
            .gives(tensor(&[1, 1, 2, 3], [6f32, 7.0, 8.0, 11.0, 12.0, 13.0]));
        run("Crop", 6, [ints("scale", &[1, 2])], [&image()]).gives(tensor(&[1, 1, 1, 2], [0f32, 1.0]));
        run("Crop", 6, [ints("border", &[3, 0, 2, 0])], [&image()]).gives(tensor(&[1, 1, 4, 0], Vec::<f32>::new()));
    }

    #[test]
    fn refusals() {
        run("Crop", 1, [ints("border", &[3, 0, 3, 0])], [&image()])
            .fails("axis 3 of \"input\" has 5 entries: 3 before a border of 3 are too many");
        run("Crop", 1, [ints("border", &[0, 3, 0, 0]), ints("scale", &[2, 1])], [&image()])
            .fails("axis 2 of \"input\" has 4 entries: 3 before a part of 2 are too many");
        run("Crop", 1, [ints("border", &[0, i64::MAX, 0, 0])], [&image()]).fails("are too many");
        run("Crop", 1, [ints("border", &[-1, 0, 0, 0])], [&image()]).fails("border has -1: it must not be negative");
        run("Crop", 1, [ints("border", &[1])], [&image()]).fails("border has 1 values: 4 are needed");
        run("Crop", 1, [], [&image()]).fails("neither border nor scale is given");
        run("Crop", 1, [ints("scale", &[1, 1])], [&tensor(&[1, 1], [1f32])]).fails("rank 2: allowed rank 4");
    }

    #[test]
    fn shapes() {
        let border = || ints("border", &[1, 0, 2, 1]);
        infer("Crop", 1, [border()], ["float[N, C, 4, W]"]).gives("[N, C, 3, ?]");
        infer("Crop", 1, [border(), ints("scale", &[2, 3])], ["float[N, C, 4, W]"]).gives("[N, C, 2, 3]");
        infer("Crop", 1, [border()], ["float[N, C, 0, W]"]).fails("are too many");
        infer("Crop", 1, [border()], ["float"]).gives("");
    }
}
