//! CausalConvWithState: a convolution of each channel on its own, that looks back only and hands its past on.
//! <https://onnx.ai/onnx/operators/onnx__CausalConvWithState.html>

use crate::ops::prelude::*;

pub(super) const CAUSAL_CONV_WITH_STATE: Implementation = Implementation::run("CausalConvWithState", &[27], load);

/// `output[b, c, t] = activation(bias[c] + sum over j of weight[c, 0, j] * padded[b, c, t + j])`, where `padded` is
/// `past_state`, or zeros, and then `input`; `present_state` is the end of `padded`
#[derive(Debug)]
struct CausalConv {
    silu: bool,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let silu = node.choice("activation", &[("none", false), ("silu", true), ("swish", true)])?;
    Ok(Box::new(CausalConv { silu }))
}

impl Operator for CausalConv {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (input, weight) = (call.tensor(0)?, call.tensor(1)?);
        let &[batch, channels, length] = input.shape() else { return Err(misfit(call, 0, "a rank of 3")) };
        let taps = match *weight.shape() {
            [c, 1, taps] if c == channels && taps > 0 => taps,
            _ => return Err(misfit(call, 1, &format!("[{channels}, 1, at least 1]"))),
        };
        let state = [batch, channels, taps - 1];
        for (k, needs) in [(2, &[channels][..]), (3, &state)] {
            check_shape(call, k, &[needs])?;
        }
        call.charge(kernels::volume(taps, input.shape()) as u64)?;
        let dtype = input.dtype();
        let [mut in_room, mut weight_room, mut bias_room, mut past_room] = [None, None, None, None];
        let from = elements_of::<f32>(call.context(), input, &mut in_room)?;
        let weight = elements_of::<f32>(call.context(), weight, &mut weight_room)?;
        let bias = call
            .optional_tensor(2)?
            .map(|bias| elements_of::<f32>(call.context(), bias, &mut bias_room))
            .transpose()?;
        let past = call
            .optional_tensor(3)?
            .map(|past| elements_of::<f32>(call.context(), past, &mut past_room))
            .transpose()?;

        let mut output = Output::<f32>::new(call.context(), dtype, shape_of([input.shape()]))?;
        let out = bytemuck::cast_slice_mut(output.elements_mut()?);
        let (row, resources) = (length.saturating_mul(size_of::<f32>()), call.resources());
        kernels::pieces(out, row, row, taps, resources, |at, _, out| {
            let channel = at % channels.max(1);
            let past = past.and_then(|past| past.get(at * (taps - 1)..(at + 1) * (taps - 1)));
            let (Some(from), Some(weight)) =
                (from.get(at * length..(at + 1) * length), weight.get(channel * taps..(channel + 1) * taps))
            else {
                return Err(Stopped::Misfit);
            };
            let bias = bias.and_then(|bias| bias.get(channel)).copied().unwrap_or(0.0);
            let (mut past, mut from, mut out) = (past, from, bytemuck::cast_slice_mut(out));
            let mut lookout = resources.lookout();
            while !out.is_empty() {
                // Behind the first piece, the past of a piece is in the input.
                let (piece, rest) = out.split_at_mut(BLOCK.max(taps - 1).min(out.len()));
                kernels::attention::causal_row(past, from, weight, bias, piece, &mut lookout)?;
                if self.silu {
                    kernels::functions::gated_in_place(piece);
                }
                past = from.get((piece.len() + 1).saturating_sub(taps)..piece.len());
                from = from.get(piece.len()..).unwrap_or(&[]);
                out = rest;
            }
            Ok(())
        })?;
        let output = output.finish()?;
        let present = self.present(call, input, call.optional_tensor(3)?, &state)?;
        Ok([output.into(), present.into()].into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        let Some([batch, channels, _]) = facts.sizes::<3>(0)? else { return Ok(()) };
        let taps = facts.sizes::<3>(1)?.map_or(Dim::Unknown, |[_, _, taps]| taps.clone());
        facts.needs(1, &[channels.clone(), Dim::Fixed(1), taps.clone()])?;
        facts.needs(2, std::slice::from_ref(channels))?;
        let past = Formula::of(&taps).and_then(|taps| taps.minus(&Formula::from(1)));
        let state = [batch.clone(), channels.clone(), past.map_or(Dim::Unknown, |past| past.dim())];
        facts.needs(3, &state)?;
        facts.give(1, state);
        Ok(())
    }
}

/// Numbers of a row that are computed at a time, or as many as there are taps.
const BLOCK: usize = 1 << 12;

impl CausalConv {
    /// The last elements of each row of the past and then the input.
    fn present(&self, call: &Call<'_>, input: &Tensor, past: Option<&Tensor>, shape: &[usize; 3]) -> Result<Tensor> {
        let (size, [_, _, kept]) = (input.dtype().size(), *shape);
        let mut present = call.output_of(input.dtype(), shape_of([shape]))?;
        let length = input.shape().last().copied().unwrap_or(0) * size;
        let (from, past, kept) = (input.aligned_bytes(), past.map(Tensor::aligned_bytes), kept * size);
        let old = kept.saturating_sub(length);
        kernels::pieces(present.bytes_mut(), size, kept, 1, call.resources(), |at, start, out| {
            let (out_old, new) = out.split_at_mut(old.saturating_sub(start).min(out.len()));
            let at_old = (at + 1) * kept - old + start;
            match past.and_then(|past| past.get(at_old..at_old + out_old.len())) {
                Some(past) => out_old.copy_from_slice(past),
                None => out_old.fill(0),
            }
            // Before the new ones, there are none of them.
            let at_new = ((at + 1) * length + start + out_old.len()).checked_sub(kept);
            if let Some(from) = at_new.and_then(|at| from.get(at..at + new.len())) {
                new.copy_from_slice(from);
            }
            Ok(())
        })?;
        Ok(present.finish())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, outputs, run, tensor};
    use half::f16;

    /// Zeros before the input count as a past of zeros does.
    #[test]
    fn infinite_weights() {
        let (x, w) = (tensor(&[1, 1, 3], [1f32, 2., 3.]), tensor(&[1, 1, 3], [f32::INFINITY, 1., 1.]));
        let (bias, past) = (tensor(&[1], [0f32]), tensor(&[1, 1, 2], [0f32; 2]));
        let [zeros, given] = [
            outputs("CausalConvWithState", 27, [], [&x, &w]),
            outputs("CausalConvWithState", 27, [], [&x, &w, &bias, &past]),
        ];
        for ran in [zeros, given] {
            let numbers = ran[0].tensor().unwrap().as_slice::<f32>().unwrap();
            assert!(matches!(*numbers, [a, b, f32::INFINITY] if a.is_nan() && b.is_nan()), "{numbers:?}");
        }
    }

    #[test]
    fn the_past_comes_first() {
        let (x, w) = (tensor(&[1, 2, 2], [1f32, 2., 3., 4.]), tensor(&[2, 1, 3], [1f32, 10., 100., 0., 0., 1.]));
        let bias = tensor(&[2], [0.5f32, -1.]);
        let past = tensor(&[1, 2, 2], [7f32, 8., 9., 9.]);
        let state = || tensor(&[1, 2, 2], [1f32, 2., 3., 4.]);
        let without = [tensor(&[1, 2, 2], [100f32, 210., 3., 4.]), state()];
        run("CausalConvWithState", 27, [], [&x, &w]).gives_all(without);
        let with = [tensor(&[1, 2, 2], [187.5f32, 218.5, 2., 3.]), state()];
        run("CausalConvWithState", 27, [], [&x, &w, &bias, &past]).gives_all(with);
    }

    /// The input is shorter than the state, or there is no state.
    #[test]
    fn states() {
        let (x, w) = (tensor(&[1, 1, 1], [5f32]), tensor(&[1, 1, 4], [1f32, 1., 1., 1.]));
        let (bias, past) = (tensor(&[1], [0f32]), tensor(&[1, 1, 3], [1f32, 2., 3.]));
        let want = [tensor(&[1, 1, 1], [11f32]), tensor(&[1, 1, 3], [2f32, 3., 5.])];
        run("CausalConvWithState", 27, [], [&x, &w, &bias, &past]).gives_all(want);
        let want = [tensor(&[1, 1, 1], [5f32]), tensor(&[1, 1, 3], [0f32, 0., 5.])];
        run("CausalConvWithState", 27, [], [&x, &w]).gives_all(want);
        let (x, w) = (tensor(&[1, 1, 2], [2f32, 0.].map(f16::from_f32)), tensor(&[1, 1, 1], [f16::from_f32(-1.)]));
        let silu = ("activation", Attribute::String("silu".into()));
        let want = tensor(&[1, 1, 2], [-0.2384f32, 0.].map(f16::from_f32));
        let state = tensor(&[1, 1, 0], Vec::<f16>::new());
        run("CausalConvWithState", 27, [silu], [&x, &w]).gives_all([want, state]);
    }

    #[test]
    fn refusals() {
        let (x, w) = (tensor(&[1, 2, 2], [0f32; 4]), tensor(&[2, 1, 3], [0f32; 6]));
        run("CausalConvWithState", 27, [], [&w, &x]).fails("\"weight\" has shape [1, 2, 2]: [1, 1, at least 1]");
        run("CausalConvWithState", 27, [], [&tensor(&[1], [0f32]), &w]).fails("\"input\" has shape [1]: a rank of 3");
        run("CausalConvWithState", 27, [], [&x, &w, &x]).fails("\"bias\" has shape [1, 2, 2]: [2] is needed");
        let none = ("activation", Attribute::String("relu".into()));
        run("CausalConvWithState", 27, [none], [&x, &w]).fails("activation is \"relu\": allowed none, silu, swish");
    }

    #[test]
    fn inferred() {
        infer("CausalConvWithState", 27, [], ["float[N, 4, T]", "float[4, 1, K]"])
            .gives_all(["[N, 4, T]", "[N, 4, K - 1]"]);
        infer("CausalConvWithState", 27, [], ["float[N, 4, T]", "float"]).gives_all(["[N, 4, T]", "[N, 4, ?]"]);
        infer("CausalConvWithState", 27, [], ["float[N, 4, T]", "float[4, 1, 3]", "float[3]"])
            .fails("\"bias\" has shape [3]: [4] is needed");
        infer("CausalConvWithState", 27, [], ["float[N, 4, T]", "float[4, 1, 3]", "-", "float[N, 4, 3]"])
            .fails("\"past_state\" has shape [N, 4, 3]: [N, 4, 2] is needed");
        infer("CausalConvWithState", 27, [], ["float[N, 4, T]", "float[4, 4, 3]"]).fails("[4, 1, 3] is needed");
    }
}
