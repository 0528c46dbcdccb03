//! Fused operators: a pass puts one in the place of several nodes, which stay beside it.

use super::{Align, ByteProduct, ByteRows, Call, Constants, Dequantized, Held, InBlocks, Layout, Operator, Values};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Shape, Tensor};
use bytemuck::cast_slice_mut;
use kernels::functions::GeluOfErf;
use kernels::gemm::blocks::Activation;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// An operator in the place of several.
pub(crate) trait Fused: Operator {
    /// Whether it computes what the others would for these inputs, and can't fail as they can. If not, they run.
    fn fits(&self, call: &Call<'_>) -> bool;

    /// Which of its values are in blocks, for those that run in its place.
    fn layout(&self) -> Option<&Layout> {
        None
    }

    /// If it is a product and its tail.
    fn product(&self) -> Option<&ProductThen> {
        None
    }

    /// If it is a chain.
    fn chain(&self) -> Option<&Chain> {
        None
    }

    /// Its form for blocks of channels, if it computes bytes of the windows of bytes: for an input and filters of these
    /// shapes.
    fn byte_windows(&self, channels: usize, filters: &[usize]) -> Option<InBlocks> {
        let _ = (channels, filters);
        None
    }

    /// Its form for bytes in blocks of channels, if it computes bytes element by element.
    fn byte_rows(&self) -> Option<ByteRows> {
        None
    }
}

/// An operator that computes each element of its output from those at its place in the inputs, which are broadcast.
pub(crate) trait Rowwise: Operator {
    /// Whether it may be a step of a [`Chain`] on tensors of this type: the output has it too, the inputs are aligned at
    /// their last dimensions, and no element is refused.
    fn may_chain(&self, dtype: DType) -> bool;

    /// Whether inputs are broadcast at their last dimensions, as from version 7 on.
    fn aligns_last(&self) -> bool {
        true
    }

    /// Computes elements of the output from as many of each input.
    fn compute(&self, dtype: DType, inputs: &[&[u8]], out: &mut [u8]);

    /// What it computes of its first input, of this type, if the others are these constants.
    fn of_constants(&self, dtype: DType, constant: &Constants<'_>) -> Option<Arc<dyn Rowwise>> {
        let _ = (dtype, constant);
        None
    }

    /// What it is, if kernels have it among other steps.
    fn form(&self) -> Option<Form> {
        None
    }

    /// The product of an input and of what this computes of it, in one step: the same bits as in two, if results aren't
    /// rounded again.
    fn gated(&self) -> Option<Arc<dyn Rowwise>> {
        None
    }

    /// Gelu in one step, of which this is the Erf: the same bits as in five, if results aren't rounded again.
    fn gelu(&self, steps: GeluOfErf) -> Option<Arc<dyn Rowwise>> {
        let _ = steps;
        None
    }
}

/// What an operator computes of an element of each of its inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Sum,
    Product,
    /// Of the only one.
    Activation(Activation),
}

/// A product of matrices: before its sums are written, they can go through steps of other operators.
pub(crate) trait MatrixProduct: Operator {
    /// The shape of the output, if the first inputs of a call are a product whose sums are, or become, numbers of this type.
    fn shape(&self, call: &Call<'_>, dtype: DType) -> Option<Shape>;

    /// Whether steps of the tail may read tensors beside the sums.
    fn reads_beside(&self) -> bool {
        false
    }

    /// Its form for blocks of channels, if it has one for an input and filters of these shapes.
    fn in_blocks(&self, channels: usize, filters: &[usize]) -> Option<InBlocks> {
        let _ = (channels, filters);
        None
    }

    /// As [`Operator::run`], and then what `tail` says.
    fn run_then(&self, call: &Call<'_>, tail: &Tail) -> Result<Values>;

    /// The same product of integers, if there is one.
    fn of_bytes(&self, bytes: ByteProduct) -> Option<Box<dyn Fused>> {
        let _ = bytes;
        None
    }

    /// The same product, where the second input is integers in the place of floats.
    fn of_integers(&self, integers: Dequantized) -> Option<Arc<dyn MatrixProduct>> {
        let _ = integers;
        None
    }

    /// Attention, of which this is the product with values.
    fn weighing(&self, weighing: Weighing) -> Option<Box<dyn Fused>> {
        let _ = weighing;
        None
    }
}

/// `softmax(scale(q k) + bias) v`, as nodes compute it one after the other. The inputs are tensors with queries, keys and
/// values, and of these those that are there: a scale, a bias, and what weights become that are NaN.
#[derive(Debug)]
pub(crate) struct Weighing {
    pub(crate) dtype: DType,
    pub(crate) scale: Option<ScoreScale>,
    pub(crate) bias: bool,
    pub(crate) nan: bool,
    /// Where `q`, `k` and `v` are in the tensors, unless these are the matrices.
    pub(crate) heads: [Option<HeadsIn>; 3],
    /// What queries and keys are multiplied by, before their product.
    pub(crate) factors: [Option<f64>; 2],
    /// The output has the heads of a query side by side: `[N, queries, heads, size]`.
    pub(crate) turned: bool,
}

/// Where matrices of heads are in a tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeadsIn {
    /// The sizes of the tensor; `None` for any.
    pub(crate) sizes: SmallVec<[Option<usize>; 6]>,
    /// The rank of `[N, heads, rows, columns]`: without the first ones, if it is less than 4.
    pub(crate) rank: usize,
    /// The axes that these are in the tensor; `None` for a size of 1.
    pub(crate) axes: [Option<usize>; 4],
    /// How many heads each head of the tensor stands for, one after the other.
    pub(crate) group: usize,
}

/// Whether scores are multiplied or divided.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScoreScale {
    Times,
    By,
}

/// What becomes of the sums of a product: each stays a number of the element type.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) dtype: DType,
    /// The input of the call that is added: an element for each column.
    pub(crate) bias: Option<usize>,
    /// The inputs of the call with a number for each channel, or column: sums are multiplied by the first, and the second is added
    /// then. Sums of integers become floats before, which one number may multiply.
    pub(crate) scale: [Option<usize>; 2],
    /// What is computed of sums, and of elements at their places.
    pub(crate) steps: Option<Chain>,
    /// The inputs of the call that the steps read beside the sums, which have the shape of the output.
    pub(crate) beside: SmallVec<[usize; 2]>,
}

impl Tail {
    /// The same in the kernel of a convolution, if it has it: whether the first tensor beside the sums is added, and what is
    /// computed of these then.
    pub(crate) fn finish(&self) -> Option<(bool, Activation)> {
        let Some(steps) = &self.steps else { return Some((false, Activation::None)) };
        if steps.dtype != DType::Float {
            return None;
        }
        let activation = |step: &Step| match step.operator.form()? {
            Form::Activation(activation) => Some(activation),
            Form::Sum | Form::Product => None,
        };
        let adds = |step: &Step| {
            let both = [StepInput::Input(0), StepInput::Input(1)];
            step.operator.form() == Some(Form::Sum) && both.iter().all(|input| step.inputs.contains(input))
        };
        match &*steps.steps {
            [only] if *only.inputs == [StepInput::Input(0)] => Some((false, activation(only)?)),
            [sum] if adds(sum) => Some((true, Activation::None)),
            [sum, last] if adds(sum) && *last.inputs == [StepInput::Step(0)] => Some((true, activation(last)?)),
            _ => None,
        }
    }

    /// Applies the steps to neighbours, with the bytes at their places `beside` them.
    pub(crate) fn apply(&self, sums: &mut [u8], beside: &[&[u8]]) {
        let Some(steps) = &self.steps else { return };
        with_room(|room| {
            let Some((room, buffers)) = room.split_first_mut() else { return };
            for (at, sums) in sums.chunks_mut(PART).enumerate() {
                let Some(before) = room.get_mut(..sums.len()) else { continue };
                before.copy_from_slice(sums);
                let mut inputs: [&[u8]; Chain::INPUTS] = [before, &[], &[], &[]];
                for (input, beside) in inputs.iter_mut().skip(1).zip(beside) {
                    *input = beside.get(at * PART..at * PART + sums.len()).unwrap_or_default();
                }
                steps.blocks(buffers, inputs.get(..steps.inputs).unwrap_or_default(), sums);
            }
        });
    }
}

/// Bytes of elements that go through all steps before the next ones.
const PART: usize = 4096;

thread_local! {
    /// Memory of [`with_room`], which stays: clearing it takes longer than a step.
    static ROOM: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with memory for the results of steps and for what they were computed of, which holds anything.
fn with_room(work: impl FnOnce(&mut [&mut [u8]])) {
    // Vectors that lie in one line of the cache are read faster.
    const LINE: usize = 64;
    let mut room = ROOM.take();
    room.resize(((Chain::BUFFERS + 1) * PART + LINE) / size_of::<u64>(), 0);
    let start = room.as_ptr().align_offset(LINE).min(LINE / size_of::<u64>());
    let bytes: &mut [u8] = cast_slice_mut(room.get_mut(start..).unwrap_or_default());
    let mut parts = bytes.chunks_exact_mut(PART);
    work(&mut std::array::from_fn::<_, { Chain::BUFFERS + 1 }, _>(|_| parts.next().unwrap_or_default()));
    ROOM.set(room);
}

/// A product and its tail.
#[derive(Debug)]
pub(crate) struct ProductThen {
    pub(crate) product: Arc<dyn MatrixProduct>,
    pub(crate) tail: Arc<Tail>,
}

impl Fused for ProductThen {
    fn fits(&self, call: &Call<'_>) -> bool {
        let is_of = |k: usize| call.tensor(k).is_ok_and(|tensor| tensor.dtype() == self.tail.dtype);
        let Some(shape) = self.product.shape(call, self.tail.dtype) else { return false };
        let is_full = |k: &usize| is_of(*k) && call.tensor(*k).is_ok_and(|tensor| *tensor.shape() == *shape);
        let is_one = |k: usize| call.tensor(k).is_ok_and(|tensor| tensor.len() == 1 && tensor.rank() <= shape.len());
        // A number for each entry of the axis of the output behind which there are so many.
        let has_numbers = |k: usize, behind: usize| {
            let own = call.tensor(k).map_or(&[][..], Tensor::shape);
            let mut sizes = own.iter().rev().zip(shape.iter().rev()).enumerate();
            (behind + 1..=shape.len()).contains(&own.len())
                && sizes.all(|(at, (own, size))| own == if at == behind { size } else { &1 })
        };
        let is_row = |k: usize| call.tensor(1).is_ok_and(|columns| columns.rank() > 1) && has_numbers(k, 0);
        let [factor, addend] = self.tail.scale;
        self.tail.bias.is_none_or(|k| is_of(k) && is_row(k))
            && factor.is_none_or(|k| is_of(k) && (is_one(k) || is_row(k)))
            && addend.is_none_or(|k| is_of(k) && has_numbers(k, shape.len().saturating_sub(2)))
            && self.tail.beside.iter().all(is_full)
    }

    fn product(&self) -> Option<&ProductThen> {
        Some(self)
    }
}

impl Operator for ProductThen {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        self.product.run_then(call, &self.tail)
    }
}

/// Where a step finds an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepInput {
    /// An input of the chain.
    Input(usize),
    /// The output of an earlier step.
    Step(usize),
}

/// Where a step finds its inputs.
pub(crate) type StepInputs = SmallVec<[StepInput; 3]>;

/// Operators that compute element by element, one after the other for a few elements at a time: what is between them stays
/// near the processor.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(super) dtype: DType,
    /// The number of inputs.
    inputs: usize,
    pub(super) steps: Arc<[Step]>,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) operator: Arc<dyn Rowwise>,
    pub(super) inputs: StepInputs,
    /// The buffer of the result; that of the last step is the output.
    to: usize,
}

impl Chain {
    /// Maximum number of inputs of a chain and of a step.
    pub(crate) const INPUTS: usize = 4;
    /// Maximum number of steps.
    pub(crate) const STEPS: usize = 12;
    /// Maximum number of results that are needed at the same time.
    const BUFFERS: usize = 4;

    /// A chain of steps with their inputs. `None` if it is larger than it may be.
    pub(crate) fn new(dtype: DType, inputs: usize, mut steps: Vec<(Arc<dyn Rowwise>, StepInputs)>) -> Option<Chain> {
        if inputs == 0 || inputs > Chain::INPUTS || steps.len() > Chain::STEPS {
            return None;
        }
        if matches!(dtype, DType::Float | DType::Double) {
            while gate(&mut steps).is_some() {}
        }
        let to = buffers_of(&steps);
        let steps: Arc<[Step]> =
            steps.into_iter().zip(to).map(|((operator, inputs), to)| Step { operator, inputs, to }).collect();
        // The last result goes to the output.
        let before = steps.len().saturating_sub(1);
        let buffers = steps.iter().take(before).map(|step| step.to + 1).max().unwrap_or(0);
        (buffers <= Chain::BUFFERS).then_some(Chain { dtype, inputs, steps })
    }

    /// The number of inputs.
    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Whether each step reads an input that is whole, or another step.
    pub(crate) fn reads(&self, is_whole: impl Fn(usize) -> bool) -> bool {
        let is_whole = |from: &StepInput| match from {
            StepInput::Input(k) => is_whole(*k),
            StepInput::Step(_) => true,
        };
        self.steps.iter().all(|step| step.inputs.iter().any(is_whole))
    }

    /// The number of steps.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Computes elements from as many of each input.
    pub(super) fn compute(&self, inputs: &[&[u8]], out: &mut [u8]) {
        with_room(|buffers| self.blocks(buffers, inputs, out));
    }

    /// Computes some elements after the others.
    fn blocks(&self, buffers: &mut [&mut [u8]], inputs: &[&[u8]], out: &mut [u8]) {
        for (at, out) in out.chunks_mut(PART).enumerate() {
            let (from, len) = (at * PART, out.len());
            for (k, step) in self.steps.iter().enumerate() {
                let last = k + 1 == self.steps.len();
                let to = buffers.get_mut(step.to).filter(|_| !last).map(std::mem::take).unwrap_or_default();
                let read = |input: &StepInput| match *input {
                    StepInput::Input(k) => inputs.get(k).and_then(|bytes| bytes.get(from..from + len)),
                    StepInput::Step(k) => {
                        self.steps.get(k).and_then(|step| buffers.get(step.to)).and_then(|bytes| bytes.get(..len))
                    }
                };
                let mut given: [&[u8]; Chain::INPUTS] = [&[]; Chain::INPUTS];
                given.iter_mut().zip(&step.inputs).for_each(|(to, from)| *to = read(from).unwrap_or_default());
                let given = given.get(..step.inputs.len()).unwrap_or_default();
                if last {
                    step.operator.compute(self.dtype, given, out);
                    continue;
                }
                if let Some(to) = to.get_mut(..len) {
                    step.operator.compute(self.dtype, given, to);
                }
                if let Some(buffer) = buffers.get_mut(step.to) {
                    *buffer = to;
                }
            }
        }
    }

    fn rows<const N: usize>(&self, call: &mut Call<'_>) -> Result<Values> {
        let inputs: [Held; N] = std::array::from_fn(Held::Input);
        let row = |inputs: [&[u8]; N], out: &mut [u8]| self.compute(&inputs, out);
        Ok(call.rowwise_by(inputs, Align::Last, self.dtype, self.steps.len(), &row)?.into())
    }
}

/// The buffer of the result of each step.
pub(super) fn buffers_of<O>(steps: &[(O, StepInputs)]) -> Vec<usize> {
    let uses = |from: StepInput| steps.iter().rposition(|(_, inputs)| inputs.contains(&from));
    // For each buffer the last step that reads what it holds.
    let mut held: SmallVec<[usize; Chain::BUFFERS]> = SmallVec::new();
    let buffer = |at: usize| {
        let last = uses(StepInput::Step(at)).unwrap_or(at);
        // A step doesn't write where it reads.
        let to = held.iter().position(|last| *last < at).unwrap_or(held.len());
        match held.get_mut(to) {
            Some(held) => *held = last,
            None => held.push(last),
        }
        to
    };
    (0..steps.len()).map(buffer).collect()
}

/// Makes one step of one and of the product with its input, if there are such.
fn gate(steps: &mut Vec<(Arc<dyn Rowwise>, StepInputs)>) -> Option<()> {
    let is_gate = |at: usize, other: StepInput| {
        let uses = steps.iter().flat_map(|(_, inputs)| inputs).filter(|input| **input == StepInput::Step(at));
        let (operator, inputs) = steps.get(at)?;
        if **inputs == [other] && uses.count() == 1 { operator.gated() } else { None }
    };
    let found = steps.iter().enumerate().find_map(|(product, (operator, inputs))| match **inputs {
        [a, b] if operator.form() == Some(Form::Product) => {
            [(a, b), (b, a)].into_iter().find_map(|(gate, other)| match gate {
                StepInput::Step(at) => Some((product, at, other, is_gate(at, other)?)),
                StepInput::Input(_) => None,
            })
        }
        _ => None,
    });
    let (product, at, input, gated) = found?;
    *steps.get_mut(product)? = (gated, [input].into_iter().collect());
    steps.remove(at);
    for input in steps.iter_mut().flat_map(|(_, inputs)| inputs) {
        match input {
            StepInput::Step(k) if *k > at => *k -= 1,
            _ => {}
        }
    }
    Some(())
}

/// The shape to which all others are broadcast, if it is one of them.
pub(super) fn largest<'a>(all: &[&'a [usize]]) -> Option<&'a [usize]> {
    let covers = |largest: &[usize], shape: &[usize]| {
        let mut dims = shape.iter().rev().zip(largest.iter().rev());
        shape.len() <= largest.len() && dims.all(|(own, dim)| own == dim || *own == 1)
    };
    all.iter().copied().find(|largest| all.iter().all(|shape| covers(largest, shape)))
}

impl Fused for Chain {
    /// All results must have the shape of the last.
    fn fits(&self, call: &Call<'_>) -> bool {
        let shape = |k: usize| {
            let tensor = call.tensor(k).ok().filter(|tensor| tensor.dtype() == self.dtype)?;
            Some(tensor.shape())
        };
        let all: Option<SmallVec<[&[usize]; Chain::INPUTS]>> = (0..self.inputs).map(shape).collect();
        let Some(all) = all else { return false };
        let Some(largest) = largest(&all) else { return false };
        self.reads(|k| all.get(k) == Some(&largest))
    }

    fn chain(&self) -> Option<&Chain> {
        Some(self)
    }
}

impl Operator for Chain {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        match self.inputs {
            1 => self.rows::<1>(call),
            2 => self.rows::<2>(call),
            3 => self.rows::<3>(call),
            4 => self.rows::<{ Chain::INPUTS }>(call),
            _ => Err(Error::bug("a chain has too many inputs")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::largest;

    #[test]
    fn the_shape_of_all() {
        let shapes: [&[usize]; 4] = [&[5, 3], &[5, 1], &[3], &[]];
        for turn in 0..4 {
            let mut shapes = shapes;
            shapes.rotate_left(turn);
            assert_eq!(largest(&shapes), Some(&[5, 3][..]), "{turn}");
        }
        assert_eq!(largest(&[&[0, 3], &[1, 3]]), Some(&[0, 3][..]));
        for none in [[&[5, 1][..], &[1, 3]], [&[5, 3], &[4, 3]], [&[1, 1], &[3]]] {
            assert_eq!(largest(&none), None, "{none:?}");
        }
        assert_eq!(largest(&[]), None);
    }
}
