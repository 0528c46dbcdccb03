//! Elementwise calls: inputs are broadcast, and an output takes over the memory of an input that dies.

use super::Call;
use crate::dtype::{DType, ShapeText};
use crate::error::{Error, Result, quote};
use crate::tensor::{NewTensor, Shape, Tensor};
use kernels::elementwise::{Operand, RowOf, walk};

/// How the inputs of an elementwise operator are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// All inputs at their last dimensions, as numpy does.
    Last,
    /// The second input has dimensions of the first from this axis on; without an axis, the last ones. Or it is one for all,
    /// with no more dimensions than the first.
    At(Option<i64>),
    /// The second input is one for all, or one for each entry of axis 1 of the first; else at the last dimensions of the
    /// first.
    Channels,
    /// The inputs have the same shape.
    Equal,
    /// They have the same shape, or the second is a scalar.
    EqualOrScalar,
}

/// An operand of [`Call::rowwise`].
#[derive(Debug)]
pub(crate) enum Held {
    /// An input of the call.
    Input(usize),
    /// An intermediate result.
    Own(Tensor),
    /// The elements of an input in another form.
    Replaced(usize, Tensor),
}

impl Held {
    /// The input that it stands for.
    fn input(&self) -> Option<usize> {
        match self {
            Held::Input(k) | Held::Replaced(k, _) => Some(*k),
            Held::Own(_) => None,
        }
    }
}

impl Call<'_> {
    /// Computes an output of the shape that the operands broadcast to. `row` gets contiguous elements of each operand, and
    /// writes as many of the output. If the output is of strings, the operands of strings share their text.
    pub(crate) fn rowwise<const N: usize>(
        &mut self,
        held: [Held; N],
        align: Align,
        dtype: DType,
        row: &RowOf<'_, N>,
    ) -> Result<Tensor> {
        self.rowwise_by(held, align, dtype, 1, row)
    }

    /// As [`Call::rowwise`], where an element takes the time of `cost` simple ones.
    pub(crate) fn rowwise_by<const N: usize>(
        &mut self,
        mut held: [Held; N],
        align: Align,
        dtype: DType,
        cost: usize,
        row: &RowOf<'_, N>,
    ) -> Result<Tensor> {
        let mut shapes: [Shape; N] = std::array::from_fn(|_| Shape::new());
        for (shape, held) in shapes.iter_mut().zip(&held) {
            *shape = Shape::from_slice(self.held(held)?.shape());
        }
        if align != Align::Last {
            self.align(align, &held, &mut shapes)?;
        }
        let shape = match broadcast(&shapes) {
            Ok(shape) => shape,
            Err((d, j, k)) => return Err(self.not_broadcast(&held, d, j, k)),
        };
        let len = self.context.check_output(dtype, &shape)?;
        let mut place = None;
        for (k, held) in held.iter_mut().enumerate() {
            let tensor = self.held(held)?;
            if tensor.dtype() != dtype || tensor.shape() != &*shape || matches!(held, Held::Replaced(..)) {
                continue;
            }
            if let Held::Input(input) = *held {
                let Some(value) = self.take(input) else { continue };
                *held = Held::Own(value.into_tensor()?);
            }
            let Held::Own(tensor) = std::mem::replace(held, Held::Input(0)) else { continue };
            match NewTensor::over(tensor) {
                Ok(new) => {
                    place = Some((k, new));
                    break;
                }
                Err(tensor) => *held = Held::Own(tensor),
            }
        }
        let (inside, mut output) = match place {
            Some((k, new)) => (Some(k), new),
            None => {
                // Strings are views into the text that the operands share.
                let like =
                    held.iter().filter_map(|held| self.held(held).ok()).find(|held| held.dtype() == DType::String);
                let text = like.filter(|_| dtype == DType::String).and_then(Tensor::text);
                (None, NewTensor::new(dtype, shape.clone(), len, text, &self.context.memory)?)
            }
        };
        let mut operands = [Operand { bytes: None, size: dtype.size(), shape: &shape }; N];
        for (k, ((operand, held), own)) in operands.iter_mut().zip(&held).zip(&shapes).enumerate() {
            if inside != Some(k) {
                let tensor = self.held(held)?;
                *operand = Operand { bytes: Some(tensor.aligned_bytes()), size: tensor.dtype().size(), shape: own };
            }
        }
        walk(&shape, operands, output.bytes_mut(), dtype.size(), row, cost, self.resources())?;
        Ok(output.finish())
    }

    /// The tensor of an operand.
    pub(crate) fn held<'a>(&'a self, held: &'a Held) -> Result<&'a Tensor> {
        match held {
            Held::Input(k) => self.tensor(*k),
            Held::Own(tensor) | Held::Replaced(_, tensor) => Ok(tensor),
        }
    }

    /// Aligns the second shape to the first.
    fn align(&self, align: Align, held: &[Held], shapes: &mut [Shape]) -> Result<()> {
        let [first, second] = shapes else { return Ok(()) };
        let single = |shape: &[usize]| shape.iter().all(|dim| *dim == 1);
        let axis = match align {
            Align::Last => return Ok(()),
            Align::Equal | Align::EqualOrScalar if first == second => return Ok(()),
            Align::EqualOrScalar if second.is_empty() => return Ok(()),
            Align::Equal | Align::EqualOrScalar => {
                let (a, b) = (ShapeText(first), ShapeText(second));
                let other = held.get(1).and_then(Held::input).unwrap_or(1);
                let (first, name) = (quote(&self.label(0)), quote(&self.label(other)));
                let text = format!("{name} has shape {b}, {first} has shape {a}: without broadcast they must be equal");
                return Err(Error::input(text).parameter(self.name(other)));
            }
            Align::Channels if single(second) => {
                second.clear();
                return Ok(());
            }
            // Its place doesn't matter, but must be there.
            Align::At(axis)
                if single(second)
                    && second.len() <= first.len()
                    && axis.is_none_or(|axis| axis.unsigned_abs() <= first.len() as u64) =>
            {
                second.clear();
                return Ok(());
            }
            Align::Channels if first.len() > 1 && second.len() == 1 => Some(1),
            Align::Channels => None,
            Align::At(axis) => axis,
        };
        let last = first.len() as i64 - second.len() as i64;
        let at = axis.unwrap_or(last);
        let at = if at < 0 { at + first.len() as i64 } else { at };
        if !(0..=last).contains(&at) {
            let (a, b, text) = (ShapeText(first), ShapeText(second), axis.map(|axis| format!(" from axis {axis} on")));
            let (first, second) = (quote(self.name(0)), quote(self.name(1)));
            let text =
                format!("{second} of shape {b} has no place in {first} of shape {a}{}", text.unwrap_or_default());
            return Err(Error::input(text).parameter(self.name(1)).at(|place| place.axis = axis));
        }
        second.extend(std::iter::repeat_n(1, (last - at) as usize));
        for (d, (have, want)) in second.iter().zip(first.iter().skip(at as usize)).enumerate() {
            if have != want && *have != 1 {
                let (first, second, at) = (quote(self.name(0)), quote(self.name(1)), at as usize + d);
                let text = format!("dimension {d} of {second} is {have}, and dimension {at} of {first} is {want}");
                return Err(Error::input(text).parameter(self.name(1)).axis(d as i64).size(*have));
            }
        }
        Ok(())
    }

    /// Error for dimensions, counted from the last one, of two operands.
    #[cold]
    fn not_broadcast(&self, held: &[Held], d: usize, j: usize, k: usize) -> Error {
        let describe = |k: usize| {
            let held = held.get(k)?;
            let shape = self.held(held).ok()?.shape();
            let name = held.input().map(|k| quote(&self.label(k)));
            let name = name.unwrap_or_else(|| "the result of the inputs before".to_string());
            let at = shape.len().checked_sub(1 + d)?;
            Some((name, ShapeText(shape), at, *shape.get(at)?))
        };
        let (Some((one, first, p, a)), Some((other, second, q, b))) = (describe(j), describe(k)) else {
            return Error::bug("shapes that broadcast were refused");
        };
        let text = format!(
            "{one} of shape {first} and {other} of shape {second} can't be broadcast: dimension {p} is {a} and dimension \
             {q} is {b}"
        );
        let error = Error::input(text).axis(q as i64).size(b);
        match held.get(k).and_then(Held::input) {
            Some(k) => error.parameter(self.name(k)),
            None => error,
        }
    }

    /// The formal name of an input, with its number if it is one of many.
    fn label(&self, k: usize) -> String {
        let name = self.name(k);
        let many = (0..self.input_count()).filter(|other| self.name(*other) == name).count() > 1;
        if many { format!("{name}[{k}]") } else { name.to_string() }
    }
}

/// The shape that shapes broadcast to; or a dimension, counted from the last one, that differs in two of them.
fn broadcast<const N: usize>(shapes: &[Shape; N]) -> std::result::Result<Shape, (usize, usize, usize)> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut all = Shape::from_elem(1, rank);
    for (d, to) in all.iter_mut().rev().enumerate() {
        let mut from = 0;
        for (k, shape) in shapes.iter().enumerate() {
            match shape.iter().rev().nth(d).copied().unwrap_or(1) {
                dim if dim == *to => {}
                1 => {}
                dim if *to == 1 => (*to, from) = (dim, k),
                _ => return Err((d, from, k)),
            }
        }
    }
    Ok(all)
}
