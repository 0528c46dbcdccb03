//! Operators that compute each element of the output from the elements at its place in the inputs, which are broadcast.
//!
//! An operator is a [`Floats`], an [`Ints`] or a [`Test`] with a line in [`ALL`]: see [`arithmetic`] for two inputs.

mod arithmetic;

use crate::operator::Implementation;
use crate::ops::prelude::*;

pub(super) static ALL: &[Implementation] = &[arithmetic::ADD, arithmetic::SUB, arithmetic::MUL, arithmetic::DIV];

/// `output[i] = function(inputs[..][i])`
#[derive(Debug)]
struct Elementwise<F, const N: usize> {
    function: F,
    row: fn(DType) -> Option<Row<F, N>>,
    align: Align,
    /// The output is bool; else it has the type of the inputs.
    test: bool,
    /// The second input divides the first.
    divides: bool,
}

impl<F: std::fmt::Debug + Send + Sync + 'static, const N: usize> Elementwise<F, N> {
    fn new(function: F, row: fn(DType) -> Option<Row<F, N>>, align: Align) -> Elementwise<F, N> {
        Elementwise { function, row, align, test: false, divides: false }
    }

    fn dividing(self) -> Elementwise<F, N> {
        Elementwise { divides: true, ..self }
    }

    fn boxed(self) -> Box<dyn Operator> {
        Box::new(self)
    }
}

/// How versions 1 and 6 of an operator of two inputs align them: only if `broadcast` is 1, and then at `axis`.
fn align(node: &Node<'_>) -> Result<Align> {
    Ok(match node.version() {
        7.. => Align::Last,
        _ if node.int("broadcast")? == 0 => Align::Equal,
        _ => Align::At(node.attribute("axis").map(|_| node.int("axis")).transpose()?),
    })
}

impl<F: std::fmt::Debug + Send + Sync, const N: usize> Operator for Elementwise<F, N> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let dtype = call.tensor(0)?.dtype();
        let row = (self.row)(dtype).ok_or_else(|| Error::bug("an elementwise operator has no row for a type"))?;
        let output = if self.test { DType::Bool } else { dtype };
        if self.divides {
            check_divisor(call.tensor(1)?, call.name(1))?;
        }
        let inputs = std::array::from_fn(Held::Input);
        let output = call.rowwise(inputs, self.align, output, &|inputs, out| row(&self.function, inputs, out))?;
        Ok(smallvec![output.into()])
    }

    fn infer(&self, inputs: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        let inputs = if self.align == Align::Last { inputs } else { inputs.get(..1).unwrap_or(&[]) };
        Ok(broadcast_fact(inputs).into_iter().collect())
    }
}

/// Fails if an integer is 0.
fn check_divisor(divisor: &Tensor, name: &str) -> Result<()> {
    if divisor.dtype().is_float() {
        return Ok(());
    }
    let size = divisor.dtype().size();
    let Some(at) = divisor.bytes().chunks_exact(size).position(|element| element.iter().all(|byte| *byte == 0)) else {
        return Ok(());
    };
    let position = position_of(at, divisor.shape());
    let text = format!("{}{} = 0: an integer can't be divided by 0", quote(name), ShapeText(&position));
    Err(Error::input(text).parameter(name).position(position).value(0))
}
