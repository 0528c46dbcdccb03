//! Operators that compute each element of the output from the elements at its place in the inputs, which are broadcast.
//!
//! An operator is a [`Floats`], an [`Ints`], a [`Bytes`] or a [`Test`] with a line in [`ALL`]: see [`trigonometry`] for
//! one input, [`arithmetic`] for two.

mod activation;
mod arithmetic;
mod clip;
mod comparison;
mod dropout;
mod experimental;
mod logic;
mod power;
mod remainder;
mod smooth;
mod trigonometry;
mod unary;
mod variadic;
mod r#where;

use crate::operator::Implementation;
use crate::ops::prelude::*;
use kernels::functions::GeluOfErf;

pub(super) static ALL: &[Implementation] = &[
    arithmetic::ADD,
    arithmetic::SUB,
    arithmetic::MUL,
    arithmetic::DIV,
    remainder::MOD,
    power::POW,
    unary::ABS,
    unary::NEG,
    unary::SIGN,
    unary::RECIPROCAL,
    unary::SQRT,
    unary::FLOOR,
    unary::CEIL,
    unary::ROUND,
    unary::EXP,
    unary::LOG,
    unary::ERF,
    trigonometry::SIN,
    trigonometry::COS,
    trigonometry::TAN,
    trigonometry::ASIN,
    trigonometry::ACOS,
    trigonometry::ATAN,
    trigonometry::SINH,
    trigonometry::COSH,
    trigonometry::TANH,
    trigonometry::ASINH,
    trigonometry::ACOSH,
    trigonometry::ATANH,
    activation::RELU,
    activation::LEAKY_RELU,
    activation::PRELU,
    activation::THRESHOLDED_RELU,
    activation::HARD_SIGMOID,
    activation::HARD_SWISH,
    activation::SOFTSIGN,
    activation::SHRINK,
    clip::CLIP,
    smooth::SIGMOID,
    smooth::SWISH,
    smooth::SWIGLU,
    smooth::GELU,
    smooth::MISH,
    smooth::SOFTPLUS,
    smooth::ELU,
    smooth::SELU,
    smooth::CELU,
    comparison::EQUAL,
    comparison::GREATER,
    comparison::GREATER_OR_EQUAL,
    comparison::LESS,
    comparison::LESS_OR_EQUAL,
    comparison::IS_NAN,
    comparison::IS_INF,
    logic::AND,
    logic::OR,
    logic::XOR,
    logic::NOT,
    logic::BITWISE_AND,
    logic::BITWISE_OR,
    logic::BITWISE_XOR,
    logic::BITWISE_NOT,
    logic::BIT_SHIFT,
    r#where::WHERE,
    variadic::MAX,
    variadic::MIN,
    variadic::SUM,
    variadic::MEAN,
    dropout::DROPOUT,
    experimental::AFFINE,
    experimental::SCALE,
    experimental::SCALED_TANH,
    experimental::PARAMETRIC_SOFTPLUS,
];

/// A function of floats.
fn floats<F: Function + Floats<N>, const N: usize>(function: F) -> Result<Arc<dyn Rowwise>> {
    Ok(Elementwise::new(function, float_row, Align::Last).shared())
}

/// A function of floats and integers.
fn numbers<F: Function + Floats<N> + Ints<N>, const N: usize>(function: F) -> Result<Arc<dyn Rowwise>> {
    Ok(Elementwise::new(function, number_row, Align::Last).shared())
}

/// A scalar of a type of floats.
fn scalar(dtype: DType, value: f32) -> Result<Tensor> {
    Ok(match dtype {
        DType::Float => Tensor::scalar(value),
        DType::Double => Tensor::scalar(f64::from(value)),
        DType::Float16 => Tensor::scalar(f16::from_f32(value)),
        DType::Bfloat16 => Tensor::scalar(bf16::from_f32(value)),
        _ => return Err(no_row(dtype)),
    })
}

/// What is computed of the elements at one place. Its fields are fixed at load.
trait Function: std::fmt::Debug + Send + Sync + 'static {}
impl<F: std::fmt::Debug + Send + Sync + 'static> Function for F {}

/// `output[i] = function(inputs[..][i])`
#[derive(Debug)]
struct Elementwise<F, const N: usize> {
    function: F,
    row: fn(Format) -> Option<Row<F, N>>,
    align: Align,
    /// The output is bool; else it has the type of the inputs.
    test: bool,
    /// The second input divides the first.
    divides: bool,
    /// The same of sizes that follow from symbols.
    count: Option<Count>,
    /// See [`Rowwise::form`], [`Rowwise::gated`] and [`Rowwise::gelu`].
    form: Option<Form>,
    gated: Option<fn() -> Arc<dyn Rowwise>>,
    gelu: Option<fn(GeluOfErf) -> Arc<dyn Rowwise>>,
}

impl<F: Function, const N: usize> Elementwise<F, N> {
    fn new(function: F, row: fn(Format) -> Option<Row<F, N>>, align: Align) -> Elementwise<F, N> {
        Elementwise {
            function,
            row,
            align,
            test: false,
            divides: false,
            count: None,
            form: None,
            gated: None,
            gelu: None,
        }
    }

    fn testing(self) -> Elementwise<F, N> {
        Elementwise { test: true, ..self }
    }

    fn dividing(self) -> Elementwise<F, N> {
        Elementwise { divides: true, ..self }
    }

    fn counting(self, count: Count) -> Elementwise<F, N> {
        Elementwise { count: Some(count), ..self }
    }

    fn of_form(self, form: Form) -> Elementwise<F, N> {
        Elementwise { form: Some(form), ..self }
    }

    fn shared(self) -> Arc<dyn Rowwise> {
        Arc::new(self)
    }
}

/// How versions 1 and 6 of an operator of two inputs align them: at `axis` if `broadcast` is 1. Else bodies of official
/// functions still have scalars (Softplus-1).
fn align(node: &Node<'_>) -> Result<Align> {
    Ok(match node.version() {
        7.. => Align::Last,
        _ if !node.is_set("broadcast")? => Align::EqualOrScalar,
        _ => Align::At(node.optional("axis", |node, name| node.axis(name, 7))?),
    })
}

impl<F: Function, const N: usize> Rowwise for Elementwise<F, N> {
    fn may_chain(&self, dtype: DType) -> bool {
        may_chain(self.align, self.test, self.divides, dtype) && (self.row)(dtype.format()).is_some()
    }

    fn aligns_last(&self) -> bool {
        self.align == Align::Last
    }

    fn compute(&self, dtype: DType, inputs: &[&[u8]], out: &mut [u8]) {
        if let (Some(row), Ok(inputs)) = ((self.row)(dtype.format()), inputs.try_into()) {
            row(&self.function, inputs, out);
        }
    }

    fn form(&self) -> Option<Form> {
        self.form
    }

    fn gated(&self) -> Option<Arc<dyn Rowwise>> {
        self.gated.map(|gated| gated())
    }

    fn gelu(&self, steps: GeluOfErf) -> Option<Arc<dyn Rowwise>> {
        self.gelu.map(|gelu| gelu(steps))
    }
}

impl<F: Function, const N: usize> Operator for Elementwise<F, N> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let dtype = call.tensor(0)?.dtype();
        let Some(row) = (self.row)(dtype.format()) else { return Err(no_row(dtype)) };
        if self.divides {
            check_divisor(call)?;
        }
        let output = if self.test { DType::Bool } else { dtype };
        computed(call, self.align, output, &|inputs, out| row(&self.function, inputs, out))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_broadcast(self.align)?;
        if let Some(count) = self.count {
            facts.give_counted(count);
        }
        Ok(())
    }
}

/// [`Rowwise::may_chain`], if there is a row kernel.
fn may_chain(align: Align, test: bool, divides: bool, dtype: DType) -> bool {
    align == Align::Last && !test && (!divides || dtype.is_float())
}

/// The output of a row kernel for all inputs.
fn computed<const N: usize>(call: &mut Call<'_>, align: Align, dtype: DType, row: &RowOf<'_, N>) -> Result<Values> {
    Ok(call.rowwise(std::array::from_fn(Held::Input), align, dtype, row)?.into())
}

/// Error for a type that the table of the standard has, and the operator doesn't.
#[cold]
fn no_row(dtype: DType) -> Error {
    Error::bug(&format!("the operator computes nothing of {dtype}"))
}

/// Fails if an integer is 0.
fn check_divisor(call: &Call<'_>) -> Result<()> {
    let (divisor, name) = (call.tensor(1)?, call.name(1));
    if divisor.dtype().is_float() {
        return Ok(());
    }
    let (size, mut before, mut zero) = (divisor.dtype().size(), 0, None);
    for block in call.lookout().blocks(divisor.bytes()) {
        let block = block?;
        zero = block.chunks_exact(size).position(|element| element.iter().all(|byte| *byte == 0));
        if zero.is_some() {
            break;
        }
        before += block.len() / size;
    }
    let Some(at) = zero.map(|at| before + at) else { return Ok(()) };
    let position = position_of(at, divisor.shape());
    let text = format!("{}{} = 0: an integer can't be divided by 0", quote(name), ShapeText(&position));
    Err(Error::input(text).parameter(name).position(position).value(0))
}
