//! Linear attention: instead of all keys and values each head keeps a state, to which tokens add one by one.

use super::Out;
use crate::cpu::for_each_level;
use crate::functions::exp;
use crate::{Lookout, Resources, Stop, Stopped, parallel, volume};

/// `state[i, j] = e^decay[i] * state[i, j] + k[i] * w[j]`, `out[j] = scale * sum over i of q[i] * state[i, j]`, where `w`
/// is `v`, or `beta * (v - sum over i of k[i] * e^decay[i] * state[i])`.
///
/// Inputs hold the heads of a token one after the other, token by token. A head of keys serves `group` heads of queries.
#[derive(Debug, Clone, Copy)]
pub struct Recurrence<'a> {
    pub batch: usize,
    pub tokens: usize,
    pub heads: usize,
    pub group: usize,
    /// Numbers of a query or key, and of a value: the state has as many rows and columns.
    pub size: usize,
    pub value_size: usize,
    pub q: &'a [f32],
    pub k: &'a [f32],
    pub v: &'a [f32],
    pub decay: Option<Decay<'a>>,
    /// For each head, or one for all.
    pub beta: Option<&'a [f32]>,
    pub scale: f32,
}

/// For each number of a key, or one for all of them.
#[derive(Debug, Clone, Copy)]
pub struct Decay<'a> {
    pub elements: &'a [f32],
    pub of_each: bool,
}

/// Multiplications that are worth waking a thread, and using one that is ready.
const WORTH: (usize, usize) = (1 << 19, 1 << 17);

impl Recurrence<'_> {
    /// Multiplications to be done; saturates.
    pub fn work(&self) -> u64 {
        let Recurrence { batch, tokens, heads, group, size, value_size, .. } = self;
        volume(group.saturating_add(3), [batch, tokens, heads, size, value_size]) as u64
    }

    /// Threads that share the work.
    fn threads(&self, resources: Resources<'_>) -> usize {
        let work = usize::try_from(self.work()).unwrap_or(usize::MAX);
        parallel::threads(work, WORTH.1, WORTH.0, resources)
    }

    /// Elements of scratch memory needed.
    pub fn scratch(&self, resources: Resources<'_>) -> usize {
        self.value_size.saturating_mul(self.threads(resources))
    }

    /// Runs through the tokens, and updates the state of each head.
    pub fn run(
        &self,
        states: &mut [f32],
        out: &mut [f32],
        scratch: &mut [f32],
        resources: Resources<'_>,
    ) -> Result<(), Stopped> {
        let area = self.size.saturating_mul(self.value_size);
        if self.value_size == 0 {
            return Ok(());
        }
        let (states, out) = (Out::new(states), Out::new(out));
        let rooms = scratch.chunks_exact_mut(self.value_size).take(self.threads(resources)).collect();
        parallel::tasks(self.batch.saturating_mul(self.heads), rooms, resources.stop, |room, pair| {
            // SAFETY: the state of this head, and no other task has it.
            #[allow(unsafe_code)]
            let state = unsafe { states.row(pair * area, area) }?;
            run(self, pair, state, room, out, resources.stop)
        })
    }

    /// The row of a token's head in elements that have `heads` heads of `size` numbers for each token.
    #[inline(always)]
    fn row(elements: &[f32], token: usize, heads: usize, head: usize, size: usize) -> Result<&[f32], Stopped> {
        let start = (token * heads + head) * size;
        elements.get(start..start + size).ok_or(Stopped::Misfit)
    }
}

for_each_level! {
    fn run<>(of: &Recurrence<'_>, pair: usize, state: &mut [f32], write: &mut [f32], out: Out<f32>, stop: Option<&Stop>) -> Result<(), Stopped>
        = run_body;
}

/// Runs a head through its tokens.
#[inline(always)]
fn run_body(
    of: &Recurrence<'_>,
    pair: usize,
    state: &mut [f32],
    write: &mut [f32],
    out: Out<f32>,
    stop: Option<&Stop>,
) -> Result<(), Stopped> {
    let Recurrence { tokens, heads, group, size, value_size, .. } = *of;
    let (batch, head) = (pair / heads, pair % heads);
    let (mut lookout, width) = (Lookout::new(stop), value_size * size_of::<f32>());
    for token in batch * tokens..(batch + 1) * tokens {
        let key = Recurrence::row(of.k, token, heads, head, size)?;
        write.copy_from_slice(Recurrence::row(of.v, token, heads, head, value_size)?);
        if let Some(Decay { elements, of_each }) = of.decay {
            let decay = Recurrence::row(elements, token, heads, head, if of_each { size } else { 1 })?;
            let decays =
                decay.iter().chain(std::iter::repeat_n(decay.first().unwrap_or(&0.0), size - decay.len().min(size)));
            for (row, decay) in state.chunks_exact_mut(value_size).zip(decays) {
                lookout.after(width)?;
                let factor = exp(*decay);
                row.iter_mut().for_each(|number| *number *= factor);
            }
        }
        if let Some(beta) = of.beta {
            let each = beta.len() / (of.batch * tokens);
            let beta = *beta.get(token * each + head.min(each - 1)).ok_or(Stopped::Misfit)?;
            for (row, key) in state.chunks_exact(value_size).zip(key) {
                lookout.after(width)?;
                write.iter_mut().zip(row).for_each(|(write, number)| *write = (-key).mul_add(*number, *write));
            }
            write.iter_mut().for_each(|write| *write *= beta);
        }
        for (row, key) in state.chunks_exact_mut(value_size).zip(key) {
            lookout.after(width)?;
            row.iter_mut().zip(&*write).for_each(|(number, write)| *number = key.mul_add(*write, *number));
        }
        for head in head * group..(head + 1) * group {
            let query = Recurrence::row(of.q, token, heads * group, head, size)?;
            // SAFETY: the row of this head of queries, and no other task has it.
            #[allow(unsafe_code)]
            let out = unsafe { out.row((token * heads * group + head) * value_size, value_size) }?;
            out.fill(0.0);
            for (row, query) in state.chunks_exact(value_size).zip(query) {
                lookout.after(width)?;
                out.iter_mut().zip(row).for_each(|(out, number)| *out = query.mul_add(*number, *out));
            }
            out.iter_mut().for_each(|out| *out *= of.scale);
        }
    }
    Ok(())
}
