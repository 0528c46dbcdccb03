//! Recurrent layers: steps that multiply states by weights and change them.
//!
//! The directions of a layer have nothing in common but its inputs. All steps of one are done before the next one, so that
//! its weights stay in the caches, or at the same time. A direction has a room: a row of states for each entry of the batch
//! (the hidden state, and what else a step needs), the products of a step, and scratch memory of these.

mod gates;

use crate::functions::Real;
use crate::gemm::{Batch, Left, Number, Operand, Packed, Product, Right, View};
use crate::{Lookout, Resources, Stopped, parallel, volume};
use bytemuck::cast_slice_mut;
pub use gates::Activation;
use gates::{Gate, activate, add_product, blend, complement, multiply, remember, reset, total};
use std::ops::Range;

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

    /// Gates whose weights are one matrix: all, where they are multiplied at once.
    pub fn together(self) -> usize {
        if self.products().len() == 1 { self.gates() } else { 1 }
    }
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

/// Bytes that are written in the time of a byte of a state.
const COST: usize = 8;

impl<T: Real + Number + Operand<Sum = T>> Layer<'_, T> {
    /// Elements of the states of a direction, and of the products of a step; saturates.
    fn parts(&self) -> [usize; 2] {
        [self.cell.slots(), self.cell.gates()].map(|vectors| volume(vectors, [&self.batch, &self.hidden]))
    }

    /// Resources of a direction.
    fn own<'r>(&self, resources: Resources<'r>) -> Resources<'r> {
        Resources { threads: if self.reversed.len() > 1 { 1 } else { resources.threads }, ..resources }
    }

    /// Elements of the rooms of all directions; saturates.
    pub fn rooms(&self, weights: Packed<'_, T>, resources: Resources<'_>) -> usize {
        let resources = self.own(resources);
        let scratch = |number| self.product(number, weights, &[], |product| product.plan(resources).scratch());
        let scratch = (0..self.cell.products().len()).map(scratch).max();
        let room = self.parts().into_iter().chain(scratch).fold(0, usize::saturating_add);
        room.saturating_mul(self.reversed.len())
    }

    /// Elements of the outputs of a direction; saturates.
    pub fn outputs(&self) -> usize {
        volume(self.steps, [&self.batch, &self.hidden])
    }

    /// Steps of the longest entry.
    fn longest(&self) -> usize {
        match self.lens {
            Some(lens) => lens.iter().max().map_or(0, |len| usize::try_from(*len).unwrap_or(0)),
            None => self.steps,
        }
    }

    /// Where an entry is in one step of the inputs or outputs of a direction, unless it has ended.
    fn place(&self, direction: usize, entry: usize, step: usize) -> Option<usize> {
        let len = match self.lens {
            Some(lens) => usize::try_from(*lens.get(entry)?).ok()?.min(self.steps),
            None => self.steps,
        };
        let last = len.checked_sub(step + 1)?;
        let time = if *self.reversed.get(direction)? { last } else { step };
        Some(if self.batch_first { entry * self.steps + time } else { time * self.batch + entry })
    }

    /// Where the state of an entry is outside: in elements.
    fn state_place(&self, direction: usize, entry: usize) -> usize {
        let row = match self.batch_first {
            false => direction * self.batch + entry,
            true => entry * self.reversed.len() + direction,
        };
        row * self.hidden
    }

    /// Bounds of the states in the room of each direction, of so many elements in all.
    fn states(&self, rooms: usize) -> impl Iterator<Item = Range<usize>> + use<T> {
        let (directions, [states, _]) = (self.reversed.len(), self.parts());
        (0..directions).map(move |direction| rooms / directions * direction).map(move |start| start..start + states)
    }

    /// Writes initial states, each 0 if it is left out.
    pub fn start(&self, given: [Option<&[T]>; 2], rooms: &mut [T], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        for (direction, states) in self.states(rooms.len()).enumerate() {
            let states = rooms.get_mut(states).ok_or(Stopped::Misfit)?;
            for (entry, state) in states.chunks_exact_mut((self.cell.slots() * self.hidden).max(1)).enumerate() {
                lookout.after(size_of_val(state))?;
                state.fill(T::zeroed());
                for (given, to) in given.iter().zip(state.chunks_exact_mut(self.hidden)) {
                    if let Some(given) = given {
                        to.copy_from_slice(part(given, self.state_place(direction, entry), self.hidden)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the states: h (`slot` 0) or c (1).
    pub fn end(&self, slot: usize, rooms: &[T], out: &mut [T], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        for (direction, states) in self.states(rooms.len()).enumerate() {
            let states = rooms.get(states).ok_or(Stopped::Misfit)?;
            for (entry, state) in states.chunks_exact((self.cell.slots() * self.hidden).max(1)).enumerate() {
                lookout.after(2 * self.hidden * size_of::<T>())?;
                let from = part(state, slot * self.hidden, self.hidden)?;
                part_mut(out, self.state_place(direction, entry), self.hidden)?.copy_from_slice(from);
            }
        }
        Ok(())
    }

    /// Writes the outputs of several directions to their places in the output.
    pub fn join(&self, outputs: &[T], y: &mut [T], lookout: &mut Lookout<'_>) -> Result<(), Stopped> {
        let unit = if self.batch_first { self.hidden } else { self.batch * self.hidden }.max(1);
        for (direction, outputs) in outputs.chunks_exact(self.outputs().max(1)).enumerate() {
            let places = y.chunks_exact_mut(unit).skip(direction).step_by(self.reversed.len());
            for (from, to) in outputs.chunks_exact(unit).zip(places) {
                lookout.after(2 * size_of_val(from))?;
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    /// Does all steps of all directions. `outputs` are those of each direction, one after the other, or empty if nobody
    /// wants them.
    pub fn run(
        &self,
        weights: Packed<'_, T>,
        rooms: &mut [T],
        outputs: &mut [T],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let ([states, _], of_direction) = (self.parts(), self.outputs());
        if states == 0 || of_direction == 0 {
            return Ok(());
        }
        let room = rooms.len() / self.reversed.len().max(1);
        let own = self.own(resources);
        let work = |first: usize, [rooms, outputs]: [&mut [u8]; 2]| {
            let mut outputs = cast_slice_mut::<u8, T>(outputs).chunks_exact_mut(of_direction);
            let mut rooms = cast_slice_mut::<u8, T>(rooms).chunks_exact_mut(room).enumerate();
            rooms.try_for_each(|(k, room)| {
                self.run_direction(first + k, weights, room, outputs.next().unwrap_or(&mut []), own)
            })
        };
        let (units, parts) = ([room, of_direction], [cast_slice_mut(rooms), cast_slice_mut(outputs)]);
        match own.threads == resources.threads {
            true => work(0, parts),
            false => {
                let units = units.map(|unit| unit * size_of::<T>());
                parallel::split_two(parts, units, COST.saturating_mul(self.steps), resources, work)
            }
        }
    }

    fn run_direction(
        &self,
        direction: usize,
        weights: Packed<'_, T>,
        room: &mut [T],
        outputs: &mut [T],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let [states, products] = self.parts();
        let (states, rest) = room.split_at_mut_checked(states).ok_or(Stopped::Misfit)?;
        let (products, scratch) = rest.split_at_mut_checked(products).ok_or(Stopped::Misfit)?;
        let weights = weights.after(direction * self.cell.gates() * self.hidden * self.hidden);
        let mut lookout = resources.lookout();
        for step in 0..self.longest() {
            for (number, (_, gates, _)) in self.cell.products().iter().enumerate() {
                let products = part_mut(products, 0, gates * self.batch * self.hidden)?;
                self.product(number, weights, states, |product| {
                    product.plan(resources).run(products, scratch, resources)
                })?;
                self.advance(direction, number, step, products, states, resources)?;
            }
            if !outputs.is_empty() {
                self.write(direction, step, states, outputs, &mut lookout)?;
            }
        }
        Ok(())
    }

    /// Calls `work` with a product of [`Cell::products`], by its number.
    fn product<R>(
        &self,
        number: usize,
        weights: Packed<'_, T>,
        states: &[T],
        work: impl FnOnce(Product<'_, T>) -> R,
    ) -> R {
        let (cell, hidden) = (self.cell, self.hidden);
        let &(first, gates, slot) = cell.products().get(number).unwrap_or(&(0, 0, 0));
        let (together, square) = (cell.together(), hidden * hidden);
        work(Product {
            m: self.batch,
            k: hidden,
            n: together * hidden,
            a: Left::View(View::new(states.get(slot * hidden..).unwrap_or(&[]), cell.slots() * hidden, 1)),
            b: Right::Packed(weights.after(first * square)),
            batch: &[Batch { size: gates / together, a: 0, b: together * square }],
            epilogue: &[],
        })
    }

    /// Writes the hidden states after a step to their places in the outputs of a direction.
    fn write(
        &self,
        direction: usize,
        step: usize,
        states: &[T],
        outputs: &mut [T],
        lookout: &mut Lookout<'_>,
    ) -> Result<(), Stopped> {
        let hidden = self.hidden;
        for (entry, state) in states.chunks_exact(self.cell.slots() * hidden).enumerate() {
            lookout.after(2 * hidden * size_of::<T>())?;
            let Some(at) = self.place(direction, entry, step) else { continue };
            part_mut(outputs, at * hidden, hidden)?.copy_from_slice(part(state, 0, hidden)?);
        }
        Ok(())
    }

    /// Does what follows a product of [`Cell::products`], by its number.
    fn advance(
        &self,
        direction: usize,
        number: usize,
        step: usize,
        products: &[T],
        states: &mut [T],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let width = self.cell.slots() * self.hidden;
        parallel::split_by(cast_slice_mut(states), width * size_of::<T>(), COST, resources, |first, states| {
            let mut rows = cast_slice_mut::<u8, T>(states).chunks_exact_mut(width).enumerate();
            rows.try_for_each(|(k, state)| self.step([direction, first + k], number, step, products, state))
        })
    }

    /// Advances the row of an entry of a direction.
    fn step(
        &self,
        [direction, entry]: [usize; 2],
        number: usize,
        step: usize,
        products: &[T],
        state: &mut [T],
    ) -> Result<(), Stopped> {
        let Some(place) = self.place(direction, entry, step) else { return Ok(()) };
        let (hidden, gates, together) = (self.hidden, self.cell.gates(), self.cell.together());
        let &(first, ..) = self.cell.products().get(number).ok_or(Stopped::Misfit)?;
        let input = (direction * self.batch * self.steps + place) * gates;
        let gate = |k: usize| -> Result<Gate<'_, T>, Stopped> {
            let (matrix, within) = ((k - first) / together, (k - first) % together);
            let product = (matrix * self.batch + entry) * together + within;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Side, pack, packed_len};
    use crate::testing::{at_each_level, on_threads, sized};

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|k| (k * 7919 % 1009) as f32 / 1009.0 - 0.5).collect()
    }

    /// All steps, with products that are added up step by step of `k`, as gemm does below one of its blocks.
    fn slowly(layer: &Layer<'_, f32>, weights: &[f32], rooms: &mut [f32], outputs: &mut [f32]) {
        let (cell, hidden, batch) = (layer.cell, layer.hidden, layer.batch);
        let ([states, products], room) = (layer.parts(), rooms.len() / layer.reversed.len());
        let resources = Resources { threads: 1, stop: None };
        for (direction, room) in rooms.chunks_exact_mut(room).enumerate() {
            let (states, products) = room[..states + products].split_at_mut(states);
            let outputs = &mut outputs[direction * layer.outputs()..][..layer.outputs()];
            for step in 0..layer.longest() {
                for (number, &(first, gates, slot)) in cell.products().iter().enumerate() {
                    for (gate, entry, j) in
                        (0..gates * batch * hidden).map(|at| (at / hidden / batch, at / hidden % batch, at % hidden))
                    {
                        let (matrix, within) = (gate / cell.together(), gate % cell.together());
                        let row = ((direction * cell.gates() + first + gate) * hidden + j) * hidden;
                        let state = (entry * cell.slots() + slot) * hidden;
                        let sum = (0..hidden).fold(0.0, |sum, p| states[state + p].mul_add(weights[row + p], sum));
                        products[((matrix * batch + entry) * cell.together() + within) * hidden + j] = sum;
                    }
                    layer.advance(direction, number, step, products, states, resources).unwrap();
                }
                layer.write(direction, step, states, outputs, &mut resources.lookout()).unwrap();
            }
        }
    }

    #[test]
    fn directions() {
        let grus = [true, false].map(|linear_before_reset| Cell::Gru { linear_before_reset });
        for cell in [Cell::Rnn, Cell::Lstm { coupled: false }].into_iter().chain(grus) {
            for (hidden, batch, steps) in [(1, 1, 1), (5, 3, 4), (sized(40, 6), 2, sized(33, 3)), (sized(136, 7), 1, 3)]
            {
                for (reversed, batch_first) in
                    [(&[false][..], false), (&[true], true), (&[false, true], false), (&[false, true], true)]
                {
                    let (directions, gates, together) = (reversed.len(), cell.gates(), cell.together());
                    let weights = numbers(directions * gates * hidden * hidden);
                    let (inputs, biases) = (
                        numbers(directions * steps * batch * gates * hidden),
                        numbers(directions * 2 * gates * hidden),
                    );
                    let lens = [steps as i32, 1, 0];
                    let functions = [Activation::Sigmoid, Activation::Tanh, Activation::Tanh];
                    let functions = functions[usize::from(cell == Cell::Rnn)..][..cell.functions()].repeat(directions);
                    let layer = Layer {
                        cell,
                        steps,
                        batch,
                        hidden,
                        reversed,
                        batch_first,
                        inputs: &inputs,
                        biases: &biases,
                        peepholes: None,
                        lens: (batch == 3).then_some(&lens[..]),
                        functions: &functions,
                        clip: None,
                    };
                    let run = |threads: usize, slow: bool| {
                        let resources = Resources { threads, stop: None };
                        let mut packed = vec![0.0; packed_len::<f32>(weights.len())];
                        let (matrix, width) = (View::rows(&weights, hidden).transposed(), together * hidden);
                        let count = (directions * gates / together, hidden * width);
                        pack(Side::Right, matrix, count, (hidden, width), &mut packed, resources).unwrap();
                        let packed = Packed::new(Side::Right, &packed);
                        let mut rooms = vec![f32::NAN; layer.rooms(packed, resources)];
                        let mut outputs = vec![0.0; directions * layer.outputs()];
                        let h = numbers(directions * batch * hidden);
                        layer.start([Some(&h), Some(&h)], &mut rooms, &mut resources.lookout()).unwrap();
                        match slow {
                            true => slowly(&layer, &weights, &mut rooms, &mut outputs),
                            false => layer.run(packed, &mut rooms, &mut outputs, resources).unwrap(),
                        }
                        let (mut end, mut y) = (h, vec![f32::NAN; outputs.len()]);
                        layer.end(0, &rooms, &mut end, &mut resources.lookout()).unwrap();
                        layer.join(&outputs, &mut y, &mut resources.lookout()).unwrap();
                        (y, end)
                    };
                    let want = run(1, true);
                    at_each_level(|| assert_eq!(run(1, false), want, "{cell:?} {hidden} {batch} {reversed:?}"));
                    assert_eq!(on_threads(3, || run(3, false)), want, "{cell:?} {hidden} {batch} {reversed:?}");
                }
            }
        }
    }
}
