//! Unique: the different elements, or the different slices along an axis, their first indices and numbers.
//! <https://onnx.ai/onnx/operators/onnx__Unique.html>

use crate::ops::prelude::*;
use kernels::Lookout;
use kernels::distinct::{self, Items, Rows};
use kernels::gather::{Bounds, Gather, Indices};
use std::cmp::Ordering;

pub(super) const UNIQUE: Implementation = Implementation::run("Unique", &[11, 28], load);

/// `Y` has the different elements of `X`; with an axis its different slices, which are compared by their first elements
/// that differ. They are in ascending order if `sorted`, else in that in which they first occur, at `indices`. For each of
/// `X`, `inverse_indices` has its index in `Y`; for each of `Y`, `counts` has how many are equal to it.
///
/// The text refers to numpy: a NaN equals any other one and comes last, -0.0 equals 0.0, and what occurs first stands for
/// its equals. Complex numbers are ordered by their real parts, then by their imaginary ones; strings by their characters.
#[derive(Debug)]
struct Unique {
    axis: Option<i64>,
    sorted: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let (axis, sorted) = (node.optional("axis", Node::int)?, node.flag("sorted")?);
    Ok(Box::new(Unique { axis, sorted }))
}

impl Operator for Unique {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let axis = self.axis.map(|axis| call.axis(0, axis)).transpose()?;
        let (count, at) = axis.map_or((x.len(), 0), |axis| (axis.size, axis.at));
        let outer = kernels::volume(1, x.shape().iter().take(at));
        let inside =
            |unit| kernels::volume(unit, x.shape().iter().skip(if axis.is_some() { at + 1 } else { x.rank() }));
        charge(call, x, count)?;
        let size = x.dtype().size();
        let (mut room, mut keys) =
            (call.scratch::<i64>(count.saturating_mul(2))?, call.scratch::<u64>(x.bytes().len().div_ceil(8))?);
        let keys = cast_slice_mut::<u64, u8>(keys.elements_mut()).get_mut(..x.bytes().len()).unwrap_or(&mut []);
        kernels::permute::permute(x.bytes(), size, &[outer, count, inside(1)], &[1, 0, 2], keys, call.resources())?;
        let mut inverse = call.output::<i64>(&[count])?;
        let (room, len) =
            (room.elements_mut::<i64>().split_at_mut(count).into(), x.len().checked_div(count).unwrap_or(0));
        let firsts = self.number(call, x, keys, len, room, inverse.elements_mut()?)?;
        let shape = match axis {
            Some(axis) => axis.replaced_in(x.shape(), &[firsts.len()]),
            None => shape_of([&[firsts.len()]]),
        };
        let mut y = call.output_like(x, shape)?;
        let (bounds, row) = (Bounds { size: count, negative: false }, inside(size));
        pick(call, Gather { data: x.bytes(), axis: bounds, row, indices: Indices::I64(firsts) }, y.bytes_mut())??;
        let (mut indices, mut counts) = (call.output::<i64>(&[firsts.len()])?, call.output::<i64>(&[firsts.len()])?);
        kernels::copied(cast_slice(firsts), indices.bytes_mut(), call.resources())?;
        distinct::count(inverse.elements_mut()?, counts.elements_mut()?, call.resources())?;
        let outputs = [y, indices, inverse, counts].into_iter().map(|output| output.finish().into());
        Ok(outputs.take(call.output_count()).collect())
    }

    /// Only the run knows how many are different. Each of all has an inverse index.
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let x = facts.dims(0);
        let (dims, all) = match (self.axis, x) {
            (None, _) => (Some(vec![Dim::Unknown]), x.map_or(Dim::Unknown, Dim::product)),
            (Some(_), None) => (None, Dim::Unknown),
            (Some(axis), Some(x)) => {
                let (mut dims, at) = (x.to_vec(), facts.place_of(axis, "axis", x.len())?);
                let all = dims.get_mut(at).map(|dim| std::mem::replace(dim, Dim::Unknown));
                (Some(dims), all.unwrap_or(Dim::Unknown))
            }
        };
        facts.give_known(0, dims);
        facts.give(1, [Dim::Unknown]);
        facts.give(2, [all]);
        facts.give(3, [Dim::Unknown]);
        Ok(())
    }
}

impl Unique {
    /// Numbers the rows of `keys`, which are copies of elements of `x`, `len` each.
    fn number<'m>(
        &self,
        call: &Call<'_>,
        x: &Tensor,
        keys: &mut [u8],
        len: usize,
        room: [&'m mut [i64]; 2],
        numbers: &mut [i64],
    ) -> Result<&'m [i64]> {
        let (sorted, resources) = (self.sorted, call.resources());
        distinct::make_keys(x.dtype().format(), keys, resources)?;
        /// Numbers rows of keys of a type.
        macro_rules! rows {
            ($key:ident, $len:expr) => {
                distinct::number(
                    &Rows { keys: cast_slice::<u8, $key>(keys), len: $len },
                    sorted,
                    room,
                    numbers,
                    resources,
                )
            };
        }
        Ok(match x.dtype() {
            DType::String => distinct::number(&Texts { x, views: keys, len }, sorted, room, numbers, resources),
            DType::Complex64 => rows!(u32, 2 * len),
            DType::Complex128 => rows!(u64, 2 * len),
            other => match other.size() {
                1 => rows!(u8, len),
                2 => rows!(u16, len),
                4 => rows!(u32, len),
                _ => rows!(u64, len),
            },
        }?)
    }
}

/// Counts the steps of sorting: each of the lists that are merged holds all elements, and all text.
fn charge(call: &Call<'_>, x: &Tensor, count: usize) -> Result<()> {
    let mut steps = x.len().max(count) as u64;
    if let Ok(strings) = x.strings() {
        let mut lookout = call.lookout();
        for string in strings {
            lookout.after(DType::String.size())?;
            steps = steps.saturating_add(string.len() as u64);
        }
    }
    let merges = usize::BITS - count.saturating_sub(1).leading_zeros();
    call.charge(steps.saturating_mul(u64::from(merges) + 1))
}

/// Rows of `len` strings: views into the text of `x`.
struct Texts<'a> {
    x: &'a Tensor,
    views: &'a [u8],
    len: usize,
}

impl Items for Texts<'_> {
    fn compare(&self, a: usize, b: usize, lookout: &mut Lookout<'_>) -> std::result::Result<Ordering, Stopped> {
        let string = |k: usize| {
            let size = DType::String.size();
            self.x.viewed(self.views.get(k * size..(k + 1) * size).unwrap_or(&[])).as_bytes()
        };
        for k in 0..self.len {
            match distinct::compare(string(a * self.len + k), string(b * self.len + k), lookout)? {
                Ordering::Equal => lookout.after(DType::String.size())?,
                different => return Ok(different),
            }
        }
        Ok(Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::Element;
    use crate::ops::testing::{infer, int, outputs, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;
    use half::{bf16, f16};
    use num_complex::Complex;

    fn list<T: Element>(elements: impl Into<Vec<T>>) -> Value {
        elements.into().into()
    }

    /// The outputs that follow from what is picked, where, the numbers of all, and how often each is there.
    fn found(y: Value, firsts: &[i64], inverse: &[i64], counts: &[i64]) -> [Value; 4] {
        [y, list(firsts), list(inverse), list(counts)]
    }

    #[test]
    fn the_examples_of_the_text() {
        let x = list([2f32, 1.0, 1.0, 3.0, 4.0, 3.0]);
        let y = list([2f32, 1.0, 3.0, 4.0]);
        run("Unique", 11, [int("sorted", 0)], [&x]).gives_all(found(
            y,
            &[0, 1, 3, 4],
            &[0, 1, 1, 2, 3, 2],
            &[1, 2, 2, 1],
        ));
        let x = tensor(&[2, 2], [1f64, 3.0, 2.0, 3.0]);
        run("Unique", 11, [], [&x]).gives_all(found(list([1f64, 2.0, 3.0]), &[0, 2, 1], &[0, 2, 1, 2], &[1, 1, 2]));
        let x = tensor(&[3, 3], [1i64, 0, 0, 1, 0, 0, 2, 3, 4]);
        let y = tensor(&[2, 3], [1i64, 0, 0, 2, 3, 4]);
        run("Unique", 28, [int("axis", 0)], [&x]).gives_all(found(y, &[0, 2], &[0, 0, 1], &[2, 1]));
        let x = tensor(&[2, 4, 2], [1f32, 1.0, 0.0, 1.0, 2.0, 1.0, 0.0, 1.0].repeat(2));
        let y = tensor(&[2, 3, 2], [0f32, 1.0, 1.0, 1.0, 2.0, 1.0].repeat(2));
        for axis in [1, -2] {
            run("Unique", 11, [int("axis", axis)], [&x]).gives_all(found(
                y.clone(),
                &[1, 0, 2],
                &[1, 0, 2, 0],
                &[2, 1, 1],
            ));
        }
        let y = tensor(&[2, 3, 2], [1f32, 1.0, 0.0, 1.0, 2.0, 1.0].repeat(2));
        run("Unique", 11, [int("axis", 1), int("sorted", 0)], [&x]).gives_all(found(
            y,
            &[0, 1, 2],
            &[0, 1, 2, 1],
            &[1, 2, 1],
        ));
    }

    #[test]
    fn nan_is_one_and_last_and_zeros_are_equal() {
        let x = list([f32::NAN, -0.0, 5.0, 0.0, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
        let [y, firsts, inverse, counts] = outputs("Unique", 11, [], [&x]).try_into().unwrap();
        let bits: Vec<u32> = y.tensor().unwrap().as_slice::<f32>().unwrap().iter().map(|y| y.to_bits()).collect();
        assert_eq!(bits, [f32::NEG_INFINITY, -0.0, 5.0, f32::INFINITY, f32::NAN].map(f32::to_bits));
        assert_eq!(firsts, list([6i64, 1, 2, 5, 0]));
        assert_eq!(inverse, list([4i64, 1, 2, 1, 4, 3, 0]));
        assert_eq!(counts, list([1i64, 2, 1, 1, 2]));
    }

    #[test]
    fn every_type() {
        macro_rules! each {
            ($($type:ty: $least:expr, $most:expr;)*) => {$(
                run("Unique", 28, [], [&list([$most, $least, $most])]).gives_all(found(
                    list([$least, $most]), &[1, 0], &[1, 0, 1], &[1, 2],
                ));
            )*};
        }
        each! {
            f32: -2.0, 2.0; f64: -2.0, 2.0; f16: f16::NEG_ONE, f16::ONE; bf16: bf16::NEG_ONE, bf16::ONE;
            i8: -1, 1; i16: -1, 1; i32: -1, 1; i64: i64::MIN, i64::MAX;
            u8: 1, 200; u16: 1, 60_000; u32: 1, u32::MAX; u64: 1, u64::MAX; bool: false, true;
            Complex<f32>: Complex::new(1.0, -2.0), Complex::new(1.0, 2.0);
            Complex<f64>: Complex::new(-1.0, 2.0), Complex::new(1.0, -2.0);
        }
    }

    #[test]
    fn strings() {
        let text = |shape: &[usize], strings: &[&str]| Value::from(Tensor::from_strings(shape, strings).unwrap());
        let x = text(&[6], &["b", "", "ab", "b", "ü", "a"]);
        let y = text(&[5], &["", "a", "ab", "b", "ü"]);
        run("Unique", 11, [], [&x]).gives_all(found(y, &[1, 5, 2, 0, 4], &[3, 0, 2, 3, 4, 1], &[1, 1, 1, 2, 1]));
        let x = text(&[2, 3], &["b", "a", "b", "y", "z", "y"]);
        run("Unique", 28, [int("axis", 1)], [&x]).gives_all(found(
            text(&[2, 2], &["a", "b", "z", "y"]),
            &[1, 0],
            &[1, 0, 1],
            &[1, 2],
        ));
        let y = text(&[2, 2], &["b", "a", "y", "z"]);
        run("Unique", 28, [int("axis", 1), int("sorted", 0)], [&x]).gives_all(found(y, &[0, 1], &[0, 1, 0], &[2, 1]));
    }

    #[test]
    fn edges() {
        run("Unique", 11, [], [&tensor(&[], [7u8])]).gives_all(found(list([7u8]), &[0], &[0], &[1]));
        let nothing = |shape: &[usize]| tensor(shape, Vec::<f32>::new());
        run("Unique", 11, [], [&nothing(&[3, 0])]).gives_all(found(nothing(&[0]), &[], &[], &[]));
        run("Unique", 11, [int("axis", 1)], [&nothing(&[3, 0])]).gives_all(found(nothing(&[3, 0]), &[], &[], &[]));
        // Slices of nothing are equal.
        run("Unique", 11, [int("axis", 0)], [&nothing(&[3, 0])]).gives_all(found(
            nothing(&[1, 0]),
            &[0],
            &[0, 0, 0],
            &[3],
        ));
        run("Unique", 11, [int("axis", 1)], [&tensor(&[2, 2], [1i8; 4])]).gives_all(found(
            tensor(&[2, 1], [1i8; 2]),
            &[0],
            &[0, 0],
            &[2],
        ));
    }

    #[test]
    fn refusals() {
        run("Unique", 11, [int("axis", 2)], [&tensor(&[1, 1], [1f32])])
            .fails("axis 2 is out of range for \"X\" of shape [1, 1]: allowed -2..=1");
        run("Unique", 11, [int("axis", 0)], [&tensor(&[], [1f32])]).fails("\"X\" is a scalar");
    }

    #[test]
    fn shapes() {
        infer("Unique", 11, [], ["float[N, 3]"]).gives_all(["[?]", "[?]", "[3*N]", "[?]"]);
        infer("Unique", 28, [int("axis", -1)], ["string[N, 3]"]).gives_all(["[N, ?]", "[?]", "[3]", "[?]"]);
        infer("Unique", 11, [], ["float"]).gives_all(["[?]", "[?]", "[?]", "[?]"]);
        infer("Unique", 11, [int("axis", 0)], ["float"]).gives_all(["", "[?]", "[?]", "[?]"]);
        infer("Unique", 11, [int("axis", 2)], ["float[N, 3]"]).fails("axis 2 is out of range: allowed -2..=1");
        infer("Unique", 11, [int("sorted", 2)], ["float"]).fails("sorted is 2: allowed 0, 1");
    }
}
