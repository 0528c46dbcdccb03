//! TopK: the greatest or least elements along an axis, and their indices.
//! <https://onnx.ai/onnx/operators/onnx__TopK.html>

use crate::ops::prelude::*;
use kernels::lanes::First;
use kernels::lanes::pick::{Scratch, pick};

pub(super) const TOP_K: Implementation = Implementation::run("TopK", &[1, 10, 11, 24], load);

/// `Values[a.., j, b..]` is the j-th greatest (or least) of `X[a.., i, b..]` over all `i`, and `Indices` has its `i`. Of
/// equal elements the one with the lowest index comes first. NaN is the greatest. Unsorted outputs are sorted too.
#[derive(Debug)]
struct TopK {
    axis: i64,
    /// The attribute of version 1.
    k: Option<i64>,
    least: bool,
}

/// The number of elements became an input with version 10; the least elements and negative axes came with version 11, but
/// -1 was the default before.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let k = if node.version() < 10 { Some(node.int("k")?) } else { None };
    let least = node.version() >= 11 && !node.flag("largest")?;
    if node.version() >= 11 {
        node.flag("sorted")?;
    }
    let axis = if node.int("axis")? == -1 { -1 } else { node.axis("axis", 11)? };
    Ok(Box::new(TopK { axis, k, least }))
}

impl TopK {
    /// What is known about the outputs' shape, if the rank is known.
    fn shape(&self, facts: &Inference<'_>) -> Result<Option<Vec<Dim>>> {
        let number = self.k.map_or_else(|| facts.number(1), |k| Some(Formula::from(k)));
        if self.k.is_none() {
            facts.needs(1, &[Dim::Fixed(1)])?;
        }
        let Some(x) = facts.ranked(0, 1..)? else { return Ok(None) };
        let at = facts.place_of(self.axis, "axis", x.len())?;
        let mut dims = x.to_vec();
        if let Some(dim) = dims.get_mut(at) {
            if let Some(count) = number.as_ref().and_then(Formula::number)
                && (count < 0 || dim.fixed().is_some_and(|size| count > size))
            {
                let name = if self.k.is_some() { "k" } else { "K" };
                let text = format!("{name} is {count}: axis {at} of \"X\" of shape {} has {dim} entries", DimsText(x));
                let error = match self.k {
                    Some(_) => Error::model(text).attribute(name),
                    None => Error::input(text).parameter(name),
                };
                return Err(error.axis(at as i64).value(count));
            }
            *dim = number.map_or(Dim::Unknown, |number| number.dim());
        }
        Ok(Some(dims))
    }
}

impl Operator for TopK {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let shape = call.by_rule(|facts| self.shape(facts))?.and_then(|dims| Dim::sizes(&dims)).map(Shape::from);
        let shape = shape.ok_or_else(|| Error::bug("the number of elements isn't known"))?;
        let (x, axis) = (call.tensor(0)?, call.axis(0, self.axis)?);
        let (lanes, count) = (Lanes::new(x.shape(), |at| at == axis.at), shape.get(axis.at).copied().unwrap_or(0));
        let (mut values, mut indices) = (call.output_of(x.dtype(), shape.clone())?, call.output::<i64>(&shape)?);
        call.charge(x.len() as u64)?;
        by_type!(ordered, x.dtype(), S as T => {
            let (collected, results) = lanes.scratch_to_pick::<S, T>(count, call.threads());
            let mut memory = (call.scratch::<T>(collected)?, call.scratch::<T>(results)?, call.scratch::<i64>(results)?);
            let scratch = Scratch {
                lanes: memory.0.elements_mut(),
                values: memory.1.elements_mut(),
                beside: memory.2.elements_mut(),
            };
            let (from, outs) = (x.as_slice::<S>()?, (values.elements_mut::<S>()?, indices.elements_mut::<i64>()?));
            let resources = call.resources();
            let picked = match self.least {
                true => {
                    let first = First(<S as Ordered<T>>::extreme::<true>());
                    pick::<_, S, S, i64, T>(&first, from, &lanes, count, scratch, outs, resources)
                }
                false => {
                    let first = First(<S as Ordered<T>>::extreme::<false>());
                    pick::<_, S, S, i64, T>(&first, from, &lanes, count, scratch, outs, resources)
                }
            };
            Ok(picked?)
        })?;
        Ok([values, indices].into_iter().map(|output| output.finish().into()).take(call.output_count()).collect())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(dims) = self.shape(facts)? {
            facts.give(0, &*dims);
            facts.give(1, dims);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, outputs, run, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    fn k(count: i64) -> Value {
        tensor(&[1], [count])
    }

    #[test]
    fn the_greatest_and_the_least() {
        let x = tensor(&[2, 4], [3f32, 9.0, 3.0, 5.0, -1.0, f32::NAN, 0.0, -0.0]);
        let ran = outputs("TopK", 11, [], [&x, &k(3)]);
        let most = tensor(&[2, 3], [9f32, 5.0, 3.0, f32::NAN, 0.0, -0.0]);
        assert_eq!(ran.as_slice(), [most.clone(), tensor(&[2, 3], [1i64, 3, 0, 1, 2, 3])]);
        assert_eq!(outputs("TopK", 1, [int("k", 3)], [&x]), ran);
        assert_eq!(outputs("TopK", 10, [], [&x, &k(3)]), ran);
        assert_eq!(outputs("TopK", 24, [int("sorted", 0)], [&x, &k(3)]), ran);
        let ran = outputs("TopK", 24, [int("largest", 0)], [&x, &k(4)]);
        let least = tensor(&[2, 4], [3f32, 3.0, 5.0, 9.0, -1.0, 0.0, -0.0, f32::NAN]);
        assert_eq!(ran.as_slice(), [least, tensor(&[2, 4], [0i64, 2, 3, 1, 0, 2, 3, 1])]);
    }

    #[test]
    fn along_any_axis() {
        let x = tensor(&[3, 2, 2], [1i32, 8, 3, 6, 5, 2, 7, 4, 9, 0, 3, 2]);
        let ran = outputs("TopK", 11, [int("axis", 0)], [&x, &k(2)]);
        let values = tensor(&[2, 2, 2], [9i32, 8, 7, 6, 5, 2, 3, 4]);
        assert_eq!(ran.as_slice(), [values, tensor(&[2, 2, 2], [2i64, 0, 1, 0, 1, 1, 0, 1])]);
        run("TopK", 11, [int("axis", -2)], [&x, &k(1)]).gives(tensor(&[3, 1, 2], [3i32, 8, 7, 4, 9, 2]));
        let nothing = |shape: &[usize]| tensor(shape, Vec::<i32>::new());
        run("TopK", 11, [int("axis", 1)], [&x, &k(0)]).gives(nothing(&[3, 0, 2]));
        run("TopK", 11, [], [&nothing(&[2, 0]), &k(0)]).gives(nothing(&[2, 0]));
    }

    #[test]
    fn every_type() {
        macro_rules! each {
            ($($type:ty: $greatest:expr, $least:expr;)*) => {$(
                let x: Value = tensor(&[3], [$least, 1 as $type, $greatest]);
                run("TopK", 11, [], [&x, &k(2)]).gives(tensor(&[2], [$greatest, 1 as $type]));
                run("TopK", 11, [int("largest", 0)], [&x, &k(2)]).gives(tensor(&[2], [$least, 1 as $type]));
            )*};
        }
        each! {
            f32: 2.0, -2.0; f64: 2.0, -2.0; i8: 127, -128; i16: 2, -2; i32: 2, -2; i64: i64::MAX, i64::MIN;
            u8: 200, 0; u16: 65535, 0; u32: u32::MAX, 0; u64: u64::MAX, 0;
        }
        let halves = tensor(&[2], [1f32, 2.0].map(f16::from_f32));
        run("TopK", 1, [int("k", 1)], [&halves]).gives(tensor(&[1], [f16::from_f32(2.0)]));
        let brains = tensor(&[2], [1f32, 2.0].map(bf16::from_f32));
        run("TopK", 24, [], [&brains, &k(1)]).gives(tensor(&[1], [bf16::from_f32(2.0)]));
    }

    #[test]
    fn refusals() {
        let x = tensor(&[2, 3], [0f32; 6]);
        run("TopK", 11, [], [&x, &k(4)]).fails("K is 4: axis 1 of \"X\" of shape [2, 3] has 3 entries");
        run("TopK", 11, [], [&x, &k(-1)]).fails("K is -1");
        run("TopK", 1, [int("k", 4)], [&x]).fails("k is 4: axis 1 of \"X\" of shape [2, 3] has 3 entries");
        run("TopK", 11, [int("axis", 2)], [&x, &k(1)]).fails("axis 2 is out of range: allowed -2..=1");
        run("TopK", 11, [], [&x, &tensor(&[], [1i64])]).fails("\"K\" has shape []: [1] is needed");
    }

    #[test]
    fn shapes() {
        infer("TopK", 1, [int("k", 2)], ["float[N, 3]"]).gives_all(["[N, 2]", "[N, 2]"]);
        infer("TopK", 10, [int("axis", 0)], ["float[N, 3]", "{5}"]).gives_all(["[5, 3]", "[5, 3]"]);
        infer("TopK", 11, [], ["float[N, C]", "{C}"]).gives_all(["[N, C]", "[N, C]"]);
        infer("TopK", 24, [int("axis", -2)], ["float[N, 3]", "int64[1]"]).gives_all(["[?, 3]", "[?, 3]"]);
        infer("TopK", 24, [], ["float", "{5}"]).gives("");
    }

    #[test]
    fn faults() {
        infer("TopK", 11, [], ["float[N, 3]", "{4}"]).fails("K is 4: axis 1 of \"X\" of shape [N, 3] has 3 entries");
        infer("TopK", 1, [int("k", -1)], ["float[N, C]"])
            .fails("k is -1: axis 1 of \"X\" of shape [N, C] has C entries");
        infer("TopK", 11, [int("axis", 2)], ["float[N, 3]", "{4}"]).fails("axis 2 is out of range: allowed -2..=1");
        infer("TopK", 11, [], ["float[N, 3]", "{1, 2}"]).fails("\"K\" has shape [2]: [1] is needed");
        infer("TopK", 11, [], ["float[]", "{1}"]).fails("allowed ranks from 1 on");
        infer("TopK", 11, [int("sorted", 2)], ["float", "{1}"]).fails("sorted is 2: allowed 0, 1");
    }
}
