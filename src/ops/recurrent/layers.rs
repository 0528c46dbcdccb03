//! RNN, GRU and LSTM: a layer whose state each step of a sequence changes, by 1, 3 or 4 gates.
//! <https://onnx.ai/onnx/operators/onnx__RNN.html>, <https://onnx.ai/onnx/operators/onnx__GRU.html>,
//! <https://onnx.ai/onnx/operators/onnx__LSTM.html>

use super::activations::read;
use crate::ops::prelude::*;
use kernels::gemm::Number;
use kernels::recurrent::{Activation, Cell, Layer};

pub(super) const RNN: Implementation = Implementation::run("RNN", &[1, 7, 14, 22], |node| load(node, Cell::Rnn));

/// `linear_before_reset` came with version 3.
pub(super) const GRU: Implementation = Implementation::run("GRU", &[1, 3, 7, 14, 22], |node| {
    let linear_before_reset = node.version() >= 3 && node.is_set("linear_before_reset")?;
    load(node, Cell::Gru { linear_before_reset })
});

pub(super) const LSTM: Implementation =
    Implementation::run("LSTM", &[1, 7, 14, 22], |node| load(node, Cell::Lstm { coupled: node.flag("input_forget")? }));

/// For each step `t` and direction: `h = cell(x[t] W^T + Wb + h R^T + Rb)`, `Y[t] = h`; see [`Cell`]
///
/// float16 and bfloat16 are computed in float32, states too: only outputs are rounded. `clip` bounds the argument of every
/// function, so also of the one that an LSTM applies to its cell; the cell itself isn't clipped. An entry of no steps keeps
/// its initial state.
#[derive(Debug)]
struct Recurrent {
    cell: Cell,
    /// For each direction, whether it starts at the end.
    reversed: Vec<bool>,
    batch_first: bool,
    functions: Vec<Activation>,
    clip: Option<f32>,
    hidden: Option<usize>,
    weights: [Weights; 2],
}

/// `layout` came with version 14. `output_sequence` of old versions says whether `Y` is there, which the outputs of the node
/// do too.
fn load(node: &Node<'_>, cell: Cell) -> Result<Box<dyn Operator>> {
    let kinds = [("forward", &[false][..]), ("reverse", &[true]), ("bidirectional", &[false, true])];
    // All are forward by default, which GRU-1 misspells.
    let given = node.given().any(|(name, _)| name == "direction");
    let reversed = if given { node.choice("direction", &kinds)? } else { &[false] };
    let clip = node.optional("clip", Node::float)?;
    if let Some(clip) = clip.filter(|clip| clip.is_nan() || *clip < 0.0) {
        return Err(Error::model(format!("clip is {clip}: a threshold is not negative")).attribute("clip"));
    }
    let hidden = node.optional("hidden_size", Node::int)?;
    let size = |given: i64| {
        let text = || format!("hidden_size is {given}: a size is needed");
        usize::try_from(given).map_err(|_| Error::model(text()).attribute("hidden_size").value(given))
    };
    Ok(Box::new(Recurrent {
        cell,
        reversed: reversed.to_vec(),
        batch_first: node.version() >= 14 && node.flag("layout")?,
        functions: read(node, cell, reversed.len())?,
        clip,
        hidden: hidden.map(size).transpose()?,
        weights: [Weights::of(node, 1), Weights::of(node, 2)],
    }))
}

impl Recurrent {
    /// The sizes of a call: steps, batch, numbers of an input and of a state. Checks all shapes.
    fn sizes(&self, call: &Call<'_>) -> Result<[usize; 4]> {
        let &[outer, inner, size] = call.tensor(0)?.shape() else { return Err(misfit(call, 0, "a rank of 3")) };
        let (steps, batch) = if self.batch_first { (inner, outer) } else { (outer, inner) };
        let &[_, _, last] = call.tensor(2)?.shape() else { return Err(misfit(call, 2, "a rank of 3")) };
        let (hidden, directions) = (self.hidden.unwrap_or(last), self.reversed.len());
        let times = |count: usize| count.saturating_mul(hidden);
        let gates = self.cell.gates();
        check_shape(call, 1, &[&[directions, times(gates), size]])?;
        check_shape(call, 2, &[&[directions, times(gates), hidden]])?;
        check_shape(call, 3, &[&[directions, times(2 * gates)]])?;
        check_shape(call, 4, &[&[batch]])?;
        let state = self.state_shape(batch, hidden);
        check_shape(call, 5, &[&state])?;
        check_shape(call, 6, &[&state])?;
        check_shape(call, 7, &[&[directions, times(3)]])?;
        Ok([steps, batch, size, hidden])
    }

    fn state_shape(&self, batch: usize, hidden: usize) -> [usize; 3] {
        let directions = self.reversed.len();
        if self.batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] }
    }

    /// The products of all inputs and weights, in one.
    fn inputs<'c, S: Multiply<Sum = T>, T: Multiply<Sum = T> + Number>(
        &self,
        call: &'c Call<'_>,
        [steps, batch, size, hidden]: [usize; 4],
    ) -> Result<Scratch<'c>> {
        let [weights, _] = &self.weights;
        let (directions, rows) = (self.reversed.len(), steps.saturating_mul(batch));
        let width = self.cell.gates().saturating_mul(hidden);
        let mut inputs = call.scratch::<T>(kernels::volume(width, [&directions, &rows]))?;
        let matrix = Matrix { tensor: call.tensor(1)?, columns: size, transposed: true };
        let product = Product::<T> {
            m: rows,
            k: size,
            n: width,
            a: Left::View(View::rows(call.tensor(0)?.as_slice::<S>()?, size)),
            b: weights.right::<S>(call, matrix, directions, (size, width))?,
            batch: &[Batch { size: directions, a: 0, b: size.saturating_mul(width) }],
            epilogue: &[],
        };
        multiply(call, product, inputs.elements_mut::<T>())?;
        Ok(inputs)
    }

    /// Runs on elements of `S`, in numbers of `T`.
    fn run_as<S: Multiply<Sum = T>, T: Multiply<Sum = T> + Number + functions::Real>(
        &self,
        call: &Call<'_>,
    ) -> Result<Values> {
        let sizes = self.sizes(call)?;
        let [steps, batch, _, hidden] = sizes;
        let (directions, gates) = (self.reversed.len(), self.cell.gates());
        let state = self.state_shape(batch, hidden);
        let all = match self.batch_first {
            false => [steps, directions, batch, hidden],
            true => [batch, steps, directions, hidden],
        };
        let is_lstm = matches!(self.cell, Cell::Lstm { .. });
        let output = |k: usize, shape: &[usize]| match call.wants(k) && (k < 2 || is_lstm) {
            true => Output::<T>::new(call.context(), S::DTYPE, Shape::from_slice(shape)).map(Some),
            false => Ok(None),
        };
        let lens = self.lens(call, steps)?;
        // The products of all steps, and what follows them.
        let of_step = kernels::volume(gates, [&directions, &batch, &hidden, &hidden.saturating_add(1)]);
        call.charge(kernels::volume(of_step, [&steps]) as u64)?;
        let (mut y, mut ends) = (output(0, &all)?, [output(1, &state)?, output(2, &state)?]);

        let mut inputs = self.inputs::<S, T>(call, sizes)?;
        let mut rooms: [Option<Scratch<'_>>; 6] = Default::default();
        let [bias_room, zero_room, peephole_room, h_room, c_room, weight_room] = &mut rooms;
        let optional = |k: usize, room| {
            call.optional_tensor(k)?.map(|tensor| elements_of::<T>(call.context(), tensor, room)).transpose()
        };
        let biases = match optional(3, bias_room)? {
            Some(biases) => biases,
            None => zeros::<T>(call, zero_room, kernels::volume(2 * gates, [&directions, &hidden]))?,
        };
        let layer = Layer {
            cell: self.cell,
            steps,
            batch,
            hidden,
            reversed: &self.reversed,
            batch_first: self.batch_first,
            inputs: inputs.elements_mut::<T>(),
            biases,
            peepholes: optional(7, peephole_room)?,
            lens,
            functions: &self.functions,
            clip: self.clip,
        };
        let weights = Matrix { tensor: call.tensor(2)?, columns: hidden, transposed: true };
        let together = self.cell.together();
        let (count, sizes) = (directions * (gates / together), (hidden, together.saturating_mul(hidden)));
        let weights = self.weights[1].packed_right::<S>(call, weights, count, sizes, weight_room)?;
        let mut rooms = call.scratch::<T>(layer.rooms(weights, call.resources()))?;
        let (rooms, mut lookout) = (rooms.elements_mut::<T>(), call.lookout());
        layer.start([optional(5, h_room)?, optional(6, c_room)?], rooms, &mut lookout)?;
        // Outputs of a single direction are where they belong already.
        let mut apart = match directions > 1 && y.is_some() {
            true => Some(call.scratch::<T>(layer.outputs().saturating_mul(directions))?),
            false => None,
        };
        let outputs = match (&mut apart, &mut y) {
            (Some(apart), _) => apart.elements_mut(),
            (None, Some(y)) => y.elements_mut()?,
            (None, None) => &mut [],
        };
        if layer.lens.is_some() {
            kernels::fill(&[0], cast_slice_mut(outputs), call.resources())?;
        }
        layer.run(weights, rooms, outputs, call.resources())?;
        if let (Some(apart), Some(y)) = (&mut apart, &mut y) {
            layer.join(apart.elements_mut(), y.elements_mut()?, &mut lookout)?;
        }
        let mut outputs = Values::new();
        for (slot, end) in ends.iter_mut().enumerate() {
            if let Some(end) = end {
                layer.end(slot, rooms, end.elements_mut()?, &mut lookout)?;
            }
        }
        for output in [y].into_iter().chain(ends).take(call.output_count()) {
            match output {
                Some(output) => outputs.push(output.finish()?),
                None => outputs.push_hole(),
            }
        }
        Ok(outputs)
    }

    /// The steps of each entry of the batch, which must be between 0 and those of the input.
    fn lens<'c>(&self, call: &'c Call<'_>, steps: usize) -> Result<Option<&'c [i32]>> {
        let Some(lens) = call.optional_tensor(4)? else { return Ok(None) };
        let (lens, mut at) = (lens.as_slice::<i32>()?, 0);
        call.charge(lens.len() as u64)?;
        for block in call.lookout().blocks(lens) {
            let block = block?;
            let wrong = |len: &&i32| !usize::try_from(**len).is_ok_and(|len| len <= steps);
            if let Some((k, len)) = block.iter().enumerate().find(|(_, len)| wrong(len)) {
                let text = format!("sequence_lens[{}] is {len}: allowed 0..={steps}", at + k);
                return Err(Error::input(text).parameter("sequence_lens").value(*len).position(vec![at + k]));
            }
            at += block.len();
        }
        Ok(Some(lens))
    }
}

/// So many zeros.
fn zeros<'m, 'c: 'm, T: Pod>(call: &'c Call<'_>, room: &'m mut Option<Scratch<'c>>, count: usize) -> Result<&'m [T]> {
    let zeros = room.insert(call.scratch::<T>(count)?).elements_mut::<T>();
    kernels::fill(&[0], cast_slice_mut(zeros), call.resources())?;
    Ok(zeros)
}

impl Operator for Recurrent {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        by_type!(floats, call.tensor(0)?.dtype(), S as T => self.run_as::<S, T>(call))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let (gates, directions) = (self.cell.gates(), Dim::Fixed(self.reversed.len()));
        let (input, steps) = match facts.sizes::<3>(0)? {
            Some([batch, steps, input]) if self.batch_first => ([batch, input], steps),
            Some([steps, batch, input]) => ([batch, input], steps),
            None => ([&Dim::Unknown; 2], &Dim::Unknown),
        };
        let ([_, input], batch) = (input, facts.same_size((0, usize::from(!self.batch_first)), (4, 0))?);
        let hidden = match self.hidden {
            Some(hidden) => Dim::Fixed(hidden),
            None => hidden(facts, gates)?,
        };
        let times = |count: usize| Dim::product([&Dim::Fixed(count), &hidden]);
        facts.needs(1, &[directions.clone(), times(gates), input.clone()])?;
        facts.needs(2, &[directions.clone(), times(gates), hidden.clone()])?;
        facts.needs(3, &[directions.clone(), times(2 * gates)])?;
        facts.needs(4, std::slice::from_ref(&batch))?;
        let (state, all) = match self.batch_first {
            false => ([&directions, &batch, &hidden], [steps, &directions, &batch, &hidden]),
            true => ([&batch, &directions, &hidden], [&batch, steps, &directions, &hidden]),
        };
        let (state, all) = (state.map(Dim::clone), all.map(Dim::clone));
        facts.needs(5, &state)?;
        facts.needs(6, &state)?;
        facts.needs(7, &[directions.clone(), times(3)])?;
        facts.give(0, all);
        facts.give(1, state.clone());
        facts.give(2, state);
        Ok(())
    }
}

/// The number of a state's elements, by a dimension of the weights.
fn hidden(facts: &Inference<'_>, gates: usize) -> Result<Dim> {
    Ok(match (facts.sizes::<3>(2)?, facts.sizes::<3>(1)?) {
        (Some([_, _, size]), _) if *size != Dim::Unknown => size.clone(),
        (_, Some([_, all, _])) => Dim::quotient(std::slice::from_ref(all), &[Dim::Fixed(gates)]),
        _ => Dim::Unknown,
    })
}
