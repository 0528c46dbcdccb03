//! Recurrent layers: what each step does to the states, beside its products of matrices.
//!
//! A row of states belongs to a direction and to an entry of the batch: all entries of the first direction come first. It
//! has the hidden state, and room for what a step needs. Products have the rows of a gate together, gate by gate of each
//! direction.

use crate::cpu::for_each_level;
use crate::functions::{Real, elu, sigmoid, softplus, tanh};
use crate::number::Float;
use crate::{Lookout, Resources, Stopped, parallel};
use bytemuck::cast_slice_mut;

/// What a step computes of the sums `x` of its gates, the hidden state `h` and the cell `c`. `*` is element by element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// `h = f(x)`
    Rnn,
    /// Gates z, r, n: `z = f(x)`, `r = f(x)`, `n = g(x)`, `h = (1 - z) * n + z * h`. The sum of n has the product of
    /// `r * h`; if it is linear before the reset, it has `r` times the product of `h` and its bias.
    Gru { linear_before_reset: bool },
    /// Gates i, o, f, c: `c = f(x) * c + f(x) * g(x)`, `h = f(x) * h(c)`. If coupled the forget gate is `1 - i`.
    Lstm { coupled: bool },
}

impl Cell {
    pub fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// Functions that a direction has: f, g, h.
    pub fn functions(self) -> usize {
        self.gates().saturating_sub(1).max(1)
    }

    /// Vectors in a row of states: h, then c of an LSTM.
    pub fn slots(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 4,
            Cell::Lstm { .. } => 6,
        }
    }

    /// The products of a step, one after the other: the first gate and the number of gates that it is for, and the vector of
    /// a row of states that is multiplied.
    pub fn products(self) -> &'static [(usize, usize, usize)] {
        match self {
            Cell::Rnn => &[(0, 1, 0)],
            Cell::Gru { linear_before_reset: true } => &[(0, 3, 0)],
            Cell::Gru { linear_before_reset: false } => &[(0, 2, 0), (2, 1, 2)],
            Cell::Lstm { .. } => &[(0, 4, 0)],
        }
    }
}

/// A function of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    Relu,
    Tanh,
    Sigmoid,
    /// `alpha * x + beta`
    Affine(f32, f32),
    /// `x` if it is not negative, else `alpha * x`
    LeakyRelu(f32),
    /// `x` from `alpha` on, else 0
    ThresholdedRelu(f32),
    /// `alpha * tanh(beta * x)`
    ScaledTanh(f32, f32),
    /// `alpha * x + beta`, between 0 and 1
    HardSigmoid(f32, f32),
    /// `x` if it is not negative, else `alpha * (e^x - 1)`
    Elu(f32),
    /// `x / (1 + |x|)`
    Softsign,
    /// `log(1 + e^x)`
    Softplus,
}

/// A layer, with all that its steps read but the products of its states.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a, T> {
    pub cell: Cell,
    pub steps: usize,
    pub batch: usize,
    pub hidden: usize,
    /// For each direction, whether it starts at the end.
    pub reversed: &'a [bool],
    /// Inputs, outputs and states have the batch before steps and directions.
    pub batch_first: bool,
    /// The products of inputs and weights: for each direction, step and entry of the batch all gates.
    pub inputs: &'a [T],
    /// For each direction those of inputs, and those of products of states, of all gates.
    pub biases: &'a [T],
    /// For each direction those of i, o and f.
    pub peepholes: Option<&'a [T]>,
    /// The steps of each entry of the batch; all have all if it is left out.
    pub lens: Option<&'a [i32]>,
    /// Those of each direction.
    pub functions: &'a [Activation],
    /// The argument of a function is between `-clip` and `clip`.
    pub clip: Option<f32>,
}

/// What a gate adds up.
struct Gate<'a, T> {
    input: &'a [T],
    product: &'a [T],
    biases: [&'a [T]; 2],
}

/// Bytes that are written in the time of a byte of a state.
const COST: usize = 8;

impl<T: Real> Layer<'_, T> {
    fn rows(&self) -> usize {
        self.reversed.len() * self.batch
    }

    /// Elements of all rows of states; saturates.
    pub fn states(&self) -> usize {
        crate::volume(self.cell.slots(), [&self.reversed.len(), &self.batch, &self.hidden])
    }

    /// Steps of the longest entry.
    pub fn longest(&self) -> usize {
        match self.lens {
            Some(lens) => lens.iter().max().map_or(0, |len| usize::try_from(*len).unwrap_or(0)),
            None => self.steps,
        }
    }

    /// Where a row is in one step of the inputs or outputs, unless its entry has ended.
    fn time(&self, row: usize, step: usize) -> Option<usize> {
        let (direction, entry) = (row / self.batch, row % self.batch);
        let len = match self.lens {
            Some(lens) => usize::try_from(*lens.get(entry)?).ok()?.min(self.steps),
            None => self.steps,
        };
        let last = len.checked_sub(step + 1)?;
        Some(if *self.reversed.get(direction)? { last } else { step })
    }

    /// Where the state of a row is outside: in elements.
    fn state_place(&self, row: usize) -> usize {
        let (direction, entry) = (row / self.batch, row % self.batch);
        (if self.batch_first { entry * self.reversed.len() + direction } else { row }) * self.hidden
    }

    /// Writes initial states, each 0 if it is left out.
    pub fn start(&self, given: [Option<&[T]>; 2], states: &mut [T], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let slots = self.cell.slots();
        for (row, state) in states.chunks_exact_mut((slots * self.hidden).max(1)).enumerate() {
            lookout.after(size_of_val(state))?;
            state.fill(T::ZERO);
            for (given, to) in given.iter().zip(state.chunks_exact_mut(self.hidden)) {
                if let Some(given) = given {
                    to.copy_from_slice(part(given, self.state_place(row), self.hidden)?);
                }
            }
        }
        Ok(())
    }

    /// Writes the states: h (`slot` 0) or c (1).
    pub fn end(&self, slot: usize, states: &[T], out: &mut [T], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        for (row, state) in states.chunks_exact((self.cell.slots() * self.hidden).max(1)).enumerate() {
            lookout.after(2 * self.hidden * size_of::<T>())?;
            let from = part(state, slot * self.hidden, self.hidden)?;
            part_mut(out, self.state_place(row), self.hidden)?.copy_from_slice(from);
        }
        Ok(())
    }

    /// Writes the hidden states after a step to their places in the output.
    pub fn write(&self, step: usize, states: &[T], out: &mut [T], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let (directions, hidden) = (self.reversed.len(), self.hidden);
        for (row, state) in states.chunks_exact((self.cell.slots() * hidden).max(1)).enumerate() {
            lookout.after(2 * hidden * size_of::<T>())?;
            let Some(time) = self.time(row, step) else { continue };
            let (direction, entry) = (row / self.batch, row % self.batch);
            let at = match self.batch_first {
                false => (time * directions + direction) * self.batch + entry,
                true => (entry * self.steps + time) * directions + direction,
            };
            part_mut(out, at * hidden, hidden)?.copy_from_slice(part(state, 0, hidden)?);
        }
        Ok(())
    }

    /// Does what follows a product of [`Cell::products`], by its number.
    pub fn advance(
        &self,
        number: usize,
        step: usize,
        products: &[T],
        states: &mut [T],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let width = self.cell.slots() * self.hidden;
        if width == 0 || states.len() != self.rows() * width {
            return Err(Stopped::Misfit);
        }
        parallel::split_by(cast_slice_mut(states), width * size_of::<T>(), COST, resources, |first, states| {
            let rows = cast_slice_mut::<u8, T>(states).chunks_exact_mut(width).enumerate();
            rows.into_iter().try_for_each(|(k, state)| self.step(number, step, first + k, products, state))
        })
    }

    /// Advances a row.
    fn step(&self, number: usize, step: usize, row: usize, products: &[T], state: &mut [T]) -> Result<(), Stopped> {
        let Some(time) = self.time(row, step) else { return Ok(()) };
        let (direction, entry, hidden) = (row / self.batch, row % self.batch, self.hidden);
        let gates = self.cell.gates();
        let &(first, count, _) = self.cell.products().get(number).ok_or(Stopped::Misfit)?;
        let place = if self.batch_first { entry * self.steps + time } else { time * self.batch + entry };
        let input = (direction * self.batch * self.steps + place) * gates;
        let gate = |k: usize| -> Result<Gate<'_, T>, Stopped> {
            let product = (direction * count + k - first) * self.batch + entry;
            let bias = 2 * direction * gates + k;
            Ok(Gate {
                input: part(self.inputs, (input + k) * hidden, hidden)?,
                product: part(products, product * hidden, hidden)?,
                biases: [
                    part(self.biases, bias * hidden, hidden)?,
                    part(self.biases, (bias + gates) * hidden, hidden)?,
                ],
            })
        };
        let function = |k: usize, numbers: &mut [T]| -> Result<(), Stopped> {
            let of = self.functions.get(direction * self.cell.functions() + k).ok_or(Stopped::Misfit)?;
            activate(*of, self.clip, numbers);
            Ok(())
        };
        match self.cell {
            Cell::Rnn => {
                total(&gate(0)?, state);
                function(0, state)
            }
            Cell::Lstm { coupled } => {
                let [h, c, i, o, f, g] = slots(state, hidden);
                let peephole = |k: usize| {
                    let all = |all| part(all, (3 * direction + k) * hidden, hidden);
                    self.peepholes.map(all).transpose()
                };
                for (k, to) in [&mut *i, &mut *o, &mut *f, &mut *g].into_iter().enumerate() {
                    total(&gate(k)?, to);
                }
                if let (Some(of_i), Some(of_f)) = (peephole(0)?, peephole(2)?) {
                    add_product(i, of_i, c);
                    add_product(f, of_f, c);
                }
                function(0, i)?;
                match coupled {
                    true => complement(f, i),
                    false => function(0, f)?,
                }
                function(1, g)?;
                remember(c, f, i, g);
                if let Some(of_o) = peephole(1)? {
                    add_product(o, of_o, c);
                }
                function(0, o)?;
                h.copy_from_slice(c);
                function(2, h)?;
                multiply(h, o);
                Ok(())
            }
            Cell::Gru { linear_before_reset } => {
                let [h, z, r, n] = slots(state, hidden);
                if number == 0 {
                    total(&gate(0)?, z);
                    total(&gate(1)?, r);
                    function(0, z)?;
                    function(0, r)?;
                    if !linear_before_reset {
                        multiply(r, h);
                        return Ok(());
                    }
                    reset(&gate(2)?, r, n);
                } else {
                    total(&gate(2)?, n);
                }
                function(1, n)?;
                blend(h, z, n);
                Ok(())
            }
        }
    }
}

fn part<T>(elements: &[T], start: usize, count: usize) -> Result<&[T], Stopped> {
    elements.get(start..start + count).ok_or(Stopped::Misfit)
}

fn part_mut<T>(elements: &mut [T], start: usize, count: usize) -> Result<&mut [T], Stopped> {
    elements.get_mut(start..start + count).ok_or(Stopped::Misfit)
}

/// The vectors of a row of states.
fn slots<T, const N: usize>(state: &mut [T], hidden: usize) -> [&mut [T]; N] {
    let mut vectors = state.chunks_exact_mut(hidden);
    std::array::from_fn(|_| vectors.next().unwrap_or(&mut []))
}

for_each_level! {
    /// `input + product + both biases`
    fn total<T: Float>(gate: &Gate<'_, T>, to: &mut [T]) -> () = total_body::<T>;
}

#[inline(always)]
fn total_body<T: Float>(gate: &Gate<'_, T>, to: &mut [T]) {
    let [one, other] = gate.biases;
    for ((((to, input), product), one), other) in to.iter_mut().zip(gate.input).zip(gate.product).zip(one).zip(other) {
        *to = (*input + *product) + (*one + *other);
    }
}

for_each_level! {
    /// `input + bias + r * (product + other bias)`
    fn reset<T: Float>(gate: &Gate<'_, T>, r: &[T], to: &mut [T]) -> () = reset_body::<T>;
}

#[inline(always)]
fn reset_body<T: Float>(gate: &Gate<'_, T>, r: &[T], to: &mut [T]) {
    let [one, other] = gate.biases;
    let sums = gate.input.iter().zip(gate.product).zip(one).zip(other);
    for ((to, r), (((input, product), one), other)) in to.iter_mut().zip(r).zip(sums) {
        *to = r.mul_add(*product + *other, *input + *one);
    }
}

for_each_level! {
    /// `to += a * b`
    fn add_product<T: Float>(to: &mut [T], a: &[T], b: &[T]) -> () = add_product_body::<T>;
}

#[inline(always)]
fn add_product_body<T: Float>(to: &mut [T], a: &[T], b: &[T]) {
    for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
        *to = a.mul_add(*b, *to);
    }
}

for_each_level! {
    /// `to *= by`
    fn multiply<T: Float>(to: &mut [T], by: &[T]) -> () = multiply_body::<T>;
}

#[inline(always)]
fn multiply_body<T: Float>(to: &mut [T], by: &[T]) {
    for (to, by) in to.iter_mut().zip(by) {
        *to = *to * *by;
    }
}

for_each_level! {
    /// `to = 1 - of`
    fn complement<T: Float>(to: &mut [T], of: &[T]) -> () = complement_body::<T>;
}

#[inline(always)]
fn complement_body<T: Float>(to: &mut [T], of: &[T]) {
    for (to, of) in to.iter_mut().zip(of) {
        *to = T::ONE - *of;
    }
}

for_each_level! {
    /// `c = f * c + i * g`
    fn remember<T: Float>(c: &mut [T], f: &[T], i: &[T], g: &[T]) -> () = remember_body::<T>;
}

#[inline(always)]
fn remember_body<T: Float>(c: &mut [T], f: &[T], i: &[T], g: &[T]) {
    for (((c, f), i), g) in c.iter_mut().zip(f).zip(i).zip(g) {
        *c = f.mul_add(*c, *i * *g);
    }
}

for_each_level! {
    /// `h = (1 - z) * n + z * h`
    fn blend<T: Float>(h: &mut [T], z: &[T], n: &[T]) -> () = blend_body::<T>;
}

#[inline(always)]
fn blend_body<T: Float>(h: &mut [T], z: &[T], n: &[T]) {
    for ((h, z), n) in h.iter_mut().zip(z).zip(n) {
        *h = z.mul_add(*h, (T::ONE - *z) * *n);
    }
}

for_each_level! {
    /// Clips numbers, and replaces them by what a function makes of them.
    fn activate<T: Real>(of: Activation, clip: Option<f32>, numbers: &mut [T]) -> () = activate_body::<T>;
}

#[inline(always)]
fn activate_body<T: Real>(of: Activation, clip: Option<f32>, numbers: &mut [T]) {
    macro_rules! each {
        (|$x:ident| $y:expr) => {
            for number in numbers.iter_mut() {
                let $x = *number;
                *number = $y;
            }
        };
    }
    let wide = |number: f32| T::of(number.into());
    if let Some(clip) = clip {
        let (least, most) = (wide(-clip), wide(clip));
        each!(|x| if x < least {
            least
        } else if x > most {
            most
        } else {
            x
        });
    }
    match of {
        Activation::Relu => each!(|x| x.larger(T::ZERO)),
        Activation::Tanh => each!(|x| tanh(x)),
        Activation::Sigmoid => each!(|x| sigmoid(x)),
        Activation::Affine(alpha, beta) => {
            let (alpha, beta) = (wide(alpha), wide(beta));
            each!(|x| alpha.mul_add(x, beta));
        }
        Activation::LeakyRelu(alpha) => {
            let alpha = wide(alpha);
            each!(|x| if x < T::ZERO { alpha * x } else { x });
        }
        Activation::ThresholdedRelu(alpha) => {
            let alpha = wide(alpha);
            each!(|x| if x < alpha { T::ZERO } else { x });
        }
        Activation::ScaledTanh(alpha, beta) => {
            let (alpha, beta) = (wide(alpha), wide(beta));
            each!(|x| alpha * tanh(beta * x));
        }
        Activation::HardSigmoid(alpha, beta) => {
            let (alpha, beta) = (wide(alpha), wide(beta));
            each!(|x| alpha.mul_add(x, beta).larger(T::ZERO).smaller(T::ONE));
        }
        Activation::Elu(alpha) => each!(|x| elu(x, alpha.into())),
        Activation::Softsign => each!(|x| x / (T::ONE + x.abs())),
        Activation::Softplus => each!(|x| softplus(x)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_each_level;

    #[test]
    fn activations() {
        use Activation::*;
        for (of, want) in [
            (Relu, [0.0, 0.0, 2.0]),
            (Tanh, [(-0.5f64).tanh(), 0.0, 2f64.tanh()]),
            (Sigmoid, [1.0 / (1.0 + 0.5f64.exp()), 0.5, 1.0 / (1.0 + (-2f64).exp())]),
            (Affine(3.0, 1.0), [-0.5, 1.0, 7.0]),
            (LeakyRelu(0.5), [-0.25, 0.0, 2.0]),
            (ThresholdedRelu(2.0), [0.0, 0.0, 2.0]),
            (ThresholdedRelu(-0.5), [-0.5, 0.0, 2.0]),
            (ScaledTanh(3.0, 0.5), [3.0 * (-0.25f64).tanh(), 0.0, 3.0 * 1f64.tanh()]),
            (HardSigmoid(0.5, 0.125), [0.0, 0.125, 1.0]),
            (Elu(2.0), [2.0 * (-0.5f64).exp_m1(), 0.0, 2.0]),
            (Softsign, [-1.0 / 3.0, 0.0, 2.0 / 3.0]),
            (Softplus, [(-0.5f64).exp().ln_1p(), std::f64::consts::LN_2, 2f64.exp().ln_1p()]),
        ] {
            at_each_level(|| {
                let (mut wide, mut narrow) = ([-0.5f64, 0.0, 2.0], [-0.5f32, 0.0, 2.0]);
                activate(of, None, &mut wide);
                activate(of, None, &mut narrow);
                for ((wide, narrow), want) in wide.iter().zip(narrow).zip(want) {
                    assert!((wide - want).abs() < 1e-15, "{of:?}: {wide} {want}");
                    assert!((f64::from(narrow) - want).abs() < 1e-7 * want.abs().max(1.0), "{of:?}: {narrow} {want}");
                }
                let mut clipped = [f32::NEG_INFINITY, f32::NAN, 0.25, 9.0];
                activate(Affine(2.0, 0.0), Some(0.5), &mut clipped);
                assert!(clipped[1].is_nan() && [clipped[0], clipped[2], clipped[3]] == [-1.0, 0.5, 1.0]);
            });
        }
    }
}
