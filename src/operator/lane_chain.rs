//! Elementwise chains in which a step may reduce each lane to a number, or rotate it: what normalizations and rotary
//! embeddings are written with.

use super::fused::{StepInput, StepInputs, buffers_of};
use super::{Call, Fused, Operator, Rowwise, Values};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Shape;
use bytemuck::cast_slice_mut;
use kernels::elementwise::{row_again, rows_of};
use kernels::{Stopped, available_threads, volume, with_room};
use smallvec::SmallVec;
use std::sync::Arc;

/// An operator that computes a number of each lane: of the elements along the last axis.
pub(crate) trait Lanewise: std::fmt::Debug + Send + Sync {
    /// Computes the number of each lane of `len` elements, which are one behind the other.
    fn compute(&self, dtype: DType, data: &[u8], len: usize, out: &mut [u8]) -> Result<(), Stopped>;
}

/// What a step computes.
#[derive(Debug, Clone)]
pub(crate) enum Does {
    /// An element, or a number of a lane if all that it reads are such.
    Each(Arc<dyn Rowwise>),
    /// A number of each lane.
    Lane(Arc<dyn Lanewise>),
    /// The elements of each lane from one on, of which the operator makes others, and then those before: as rotary
    /// embeddings turn pairs.
    Turn(Arc<dyn Rowwise>, usize),
}

/// How the elements of an input are spread over those of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// An element for each.
    Full,
    /// Some lanes, again and again.
    Lanes,
    /// A lane for all lanes.
    Lane,
    /// One element.
    One,
}

/// As [`Chain`](super::Chain), where some steps compute a number of each lane, and others read it with all elements of the
/// lane. A few lanes go through all steps before the next ones.
#[derive(Debug)]
pub(crate) struct LaneChain {
    dtype: DType,
    inputs: SmallVec<[Extent; 8]>,
    steps: Vec<Step>,
    /// Results that are needed at the same time.
    buffers: usize,
}

#[derive(Debug)]
struct Step {
    does: Does,
    inputs: StepInputs,
    /// Whether it gives an element for each of the output, and not a number for each lane.
    full: bool,
    /// The buffer of the result; that of the last step is the output.
    to: usize,
}

/// What the steps of some lanes read and write.
struct Room<'a, 'b> {
    /// The elements of each input from these lanes on.
    inputs: &'b [&'a [u8]],
    /// The results of steps.
    results: &'b mut [&'a mut [u8]],
    /// Numbers of lanes with all elements of these, for each input of a step.
    spread: &'b mut [&'a mut [u8]],
}

impl LaneChain {
    /// Maximum number of inputs.
    pub(crate) const INPUTS: usize = 8;
    /// Maximum number of steps.
    pub(crate) const STEPS: usize = 16;
    /// Maximum number of inputs of a step.
    const STEP_INPUTS: usize = 3;
    /// Bytes of lanes that go through all steps before the next ones: as many as fit, but one lane at least.
    const BLOCK: usize = 16 << 10;
    /// Bytes of a line of the cache.
    const LINE: usize = 64;
    /// Maximum size of a lane in bytes.
    const LONGEST: usize = 64 << 10;

    /// A chain of steps with their inputs. `None` if it is larger than it may be, or a step reads what it can't.
    pub(crate) fn new(dtype: DType, inputs: &[Extent], steps: Vec<(Does, StepInputs)>) -> Option<LaneChain> {
        if inputs.len() > LaneChain::INPUTS || steps.len() > LaneChain::STEPS {
            return None;
        }
        let to = buffers_of(&steps);
        let buffers = to.iter().max().map_or(0, |last| last + 1);
        let mut chain = LaneChain { dtype, inputs: inputs.into(), steps: Vec::with_capacity(steps.len()), buffers };
        for ((does, inputs), to) in steps.into_iter().zip(to) {
            let full = chain.is_full(&does, &inputs)?;
            chain.steps.push(Step { does, inputs, full, to });
        }
        chain.steps.last().is_some_and(|last| last.full).then_some(chain)
    }

    /// What a step may read, and whether it gives elements then.
    fn is_full(&self, does: &Does, inputs: &[StepInput]) -> Option<bool> {
        let extent = |from: &StepInput| match *from {
            StepInput::Input(k) => self.inputs.get(k).copied().map(|extent| (extent, false)),
            StepInput::Step(k) => {
                let extent = |step: &Step| if step.full { (Extent::Full, false) } else { (Extent::One, true) };
                self.steps.get(k).map(extent)
            }
        };
        let extents: SmallVec<[(Extent, bool); LaneChain::STEP_INPUTS]> =
            inputs.iter().map(extent).collect::<Option<_>>()?;
        let has = |wanted: Extent| extents.iter().any(|(extent, _)| *extent == wanted);
        let of_lanes = extents.iter().any(|(_, of_lanes)| *of_lanes);
        match does {
            _ if extents.len() > LaneChain::STEP_INPUTS => None,
            Does::Lane(_) | Does::Turn(..) if extents.len() > 1 || !has(Extent::Full) => None,
            Does::Lane(_) => Some(false),
            Does::Turn(..) => Some(true),
            Does::Each(_) if has(Extent::Full) => Some(true),
            // Else the shape would be another one.
            Does::Each(_) => (of_lanes && !has(Extent::Lane) && !has(Extent::Lanes)).then_some(false),
        }
    }

    /// The shape of the output, if the inputs are what the steps read.
    fn shape<'a>(&self, call: &'a Call<'_>) -> Option<&'a [usize]> {
        let shape = |k: usize| Some(call.tensor(k).ok().filter(|tensor| tensor.dtype() == self.dtype)?.shape());
        let full = shape(self.inputs.iter().position(|extent| *extent == Extent::Full)?)?;
        let len = *full.last()?;
        let fits = |(k, extent): (usize, &Extent)| {
            let Some(own) = shape(k) else { return false };
            match extent {
                Extent::Full => own == full,
                Extent::Lanes => {
                    let ones = own.iter().take_while(|dim| **dim == 1).count();
                    own.len() > 1 && own.get(ones..).is_some_and(|rest| full.ends_with(rest) && !rest.is_empty())
                }
                Extent::Lane => {
                    own.split_last().is_some_and(|(last, before)| *last == len && before.iter().all(|dim| *dim == 1))
                }
                Extent::One => own.iter().all(|dim| *dim == 1),
            }
        };
        let short = |k: usize| shape(k).is_some_and(|own| own.len() <= full.len());
        let all = self.inputs.iter().enumerate().all(|(k, extent)| short(k) && fits((k, extent)));
        (all && (1..=LaneChain::LONGEST / self.dtype.size()).contains(&len)).then_some(full)
    }

    /// Bytes of a buffer, and of the lanes that it is for, of which the output has `count`.
    fn block(&self, len: usize, count: usize) -> [usize; 2] {
        let lane = len * self.dtype.size();
        let lanes = (LaneChain::BLOCK / lane).min(count).max(1) * lane;
        // Vectors that lie in one line of the cache are read faster; addresses that differ by pages are mistaken for each
        // other.
        [lanes.next_multiple_of(LaneChain::LINE) + LaneChain::LINE, lanes]
    }

    /// Fills buffers with what each block of lanes reads of inputs that aren't [full](Extent::Full).
    fn repeated(&self, call: &Call<'_>, [buffer, lanes]: [usize; 2], buffers: &mut [u8]) -> Result<()> {
        let size = self.dtype.size();
        for (k, (extent, to)) in self.inputs.iter().zip(buffers.chunks_exact_mut(buffer)).enumerate() {
            let (from, to) = (call.tensor(k)?.aligned_bytes(), to.get_mut(..lanes).unwrap_or_default());
            match extent {
                Extent::Full | Extent::Lanes => {}
                Extent::Lane => row_again(from, size, to),
                Extent::One => rows_of(from, size, lanes / size, to),
            }
        }
        Ok(())
    }

    /// See [`Does::Turn`]; of bytes.
    fn turn(&self, operator: &dyn Rowwise, first: usize, lane: usize, data: &[u8], out: &mut [u8]) {
        for (from, to) in data.chunks_exact(lane).zip(out.chunks_exact_mut(lane)) {
            let ((before, after), (start, end)) = (from.split_at(first), to.split_at_mut(lane - first));
            operator.compute(self.dtype, &[after], start);
            end.copy_from_slice(before);
        }
    }

    /// Computes some lanes of `len` elements.
    fn lanes(&self, len: usize, room: Room<'_, '_>, out: &mut [u8]) -> Result<(), Stopped> {
        let Room { inputs, results, spread } = room;
        let size = self.dtype.size();
        let numbers = out.len() / len;
        for (at, step) in self.steps.iter().enumerate() {
            let to = results.get_mut(step.to).map(std::mem::take).unwrap_or_default();
            let is_number = |input: &StepInput| match *input {
                StepInput::Step(k) => self.steps.get(k).filter(|before| step.full && !before.full),
                StepInput::Input(_) => None,
            };
            for (input, spread) in step.inputs.iter().zip(spread.iter_mut()) {
                if let Some(before) = is_number(input)
                    && let (Some(from), Some(to)) =
                        (results.get(before.to).and_then(|own| own.get(..numbers)), spread.get_mut(..out.len()))
                {
                    rows_of(from, size, len, to);
                }
            }
            let reads_elements = step.full || matches!(step.does, Does::Lane(_));
            let read = |(slot, input): (usize, &StepInput)| {
                let bytes: &[u8] = match *input {
                    StepInput::Input(k) => inputs.get(k)?,
                    StepInput::Step(_) if is_number(input).is_some() => spread.get(slot)?,
                    StepInput::Step(k) => results.get(self.steps.get(k)?.to)?,
                };
                bytes.get(..if reads_elements { out.len() } else { numbers })
            };
            let mut given: [&[u8]; LaneChain::STEP_INPUTS] = Default::default();
            for (given, input) in given.iter_mut().zip(step.inputs.iter().enumerate()) {
                *given = read(input).ok_or(Stopped::Misfit)?;
            }
            let given = given.get(..step.inputs.len()).unwrap_or_default();
            let bytes = if step.full { out.len() } else { numbers };
            let result =
                if at + 1 == self.steps.len() { &mut *out } else { to.get_mut(..bytes).ok_or(Stopped::Misfit)? };
            match (&step.does, given) {
                (Does::Each(operator), _) => operator.compute(self.dtype, given, result),
                (Does::Lane(operator), [data]) => operator.compute(self.dtype, data, len, result)?,
                (Does::Turn(operator, first), [data]) => self.turn(&**operator, first * size, len * size, data, result),
                (Does::Lane(_) | Does::Turn(..), _) => return Err(Stopped::Misfit),
            }
            if let Some(result) = results.get_mut(step.to) {
                *result = to;
            }
        }
        Ok(())
    }
}

impl Fused for LaneChain {
    fn fits(&self, call: &Call<'_>) -> bool {
        self.shape(call).is_some()
    }
}

impl Operator for LaneChain {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let shape = Shape::from_slice(self.shape(call).ok_or_else(|| Error::bug("lanes of other shapes"))?);
        let len = shape.last().copied().unwrap_or(1);
        let of_lanes = self.steps.iter().filter(|step| matches!(step.does, Does::Lane(_))).count();
        call.charge(volume(of_lanes, &shape) as u64)?;
        let [buffer, lanes] = self.block(len, volume(1, &shape) / len);
        let mut output = call.output_of(self.dtype, shape)?;
        let words = size_of::<u64>();
        let own = (self.buffers + LaneChain::STEP_INPUTS) * buffer;
        let given = self.inputs.len() * buffer;
        let mut scratch = call.scratch::<u64>((given + own * call.threads().min(available_threads())) / words)?;
        let (given, scratch) = cast_slice_mut::<u64, u8>(scratch.elements_mut()).split_at_mut(given);
        self.repeated(call, [buffer, lanes], given)?;
        let given: &[u8] = given;
        let tensors: SmallVec<[&[u8]; LaneChain::INPUTS]> =
            (0..self.inputs.len()).map(|k| Ok(call.tensor(k)?.aligned_bytes())).collect::<Result<_>>()?;
        let (unit, cost) = (len * self.dtype.size(), 2 * self.steps.len());
        with_room(output.bytes_mut(), unit, cost, (scratch, own), call.resources(), |first, room, out| {
            let mut buffers = room.chunks_exact_mut(buffer);
            let mut results: SmallVec<[&mut [u8]; 8]> = buffers.by_ref().take(self.buffers).collect();
            let mut spread: SmallVec<[&mut [u8]; LaneChain::STEP_INPUTS]> = buffers.collect();
            let (mut from, mut rest) = (first * unit, out);
            while !rest.is_empty() {
                let mut bytes = lanes.min(rest.len());
                let mut inputs: SmallVec<[&[u8]; LaneChain::INPUTS]> = given.chunks_exact(buffer).collect();
                for ((input, extent), all) in inputs.iter_mut().zip(&self.inputs).zip(&tensors) {
                    match extent {
                        Extent::Full => *input = all.get(from..).unwrap_or_default(),
                        Extent::Lanes => {
                            *input = all.get(from % all.len()..).unwrap_or_default();
                            bytes = bytes.min(input.len());
                        }
                        Extent::Lane | Extent::One => {}
                    }
                }
                let (now, others) = std::mem::take(&mut rest).split_at_mut(bytes);
                self.lanes(len, Room { inputs: &inputs, results: &mut results, spread: &mut spread }, now)?;
                (from, rest) = (from + bytes, others);
            }
            Ok(())
        })?;
        Ok(output.finish().into())
    }
}
