//! LinearAttention: attention with a state of fixed size instead of all keys and values.
//! <https://onnx.ai/onnx/operators/onnx__LinearAttention.html>

use crate::ops::prelude::*;
use kernels::attention::{Decay, Recurrence};

pub(super) const LINEAR_ATTENTION: Implementation = Implementation::run("LinearAttention", &[27], load);

/// For each token `t`: `state = exp(decay[t]) * state`, `state += k[t] w^T`, `output[t] = scale * q[t]^T state`, where `w`
/// is `v[t]`, or `beta[t] * (v[t] - state^T k[t])` for the rules with "delta"
///
/// Computed token by token in float32: `chunk_size` is a hint that changes nothing.
#[derive(Debug)]
struct LinearAttention {
    queried: usize,
    held: usize,
    /// 0 for one over the square root of a key's size.
    scale: f32,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let rules =
        [("linear", (false, false)), ("gated", (true, false)), ("delta", (false, true)), ("gated_delta", (true, true))];
    let (gated, delta) = node.choice("update_rule", &rules)?;
    let rule = node.string("update_rule")?;
    for (k, name, needed) in [(4, "decay", gated), (5, "beta", delta)] {
        if node.input(k).is_some() != needed {
            let verb = if needed { "needs" } else { "has no" };
            return Err(Error::model(format!("the update rule {} {verb} {name}", quote(rule))).parameter(name));
        }
    }
    let heads = |name: &str| {
        let given = node.int(name)?;
        usize::try_from(given)
            .ok()
            .filter(|heads| *heads > 0)
            .ok_or_else(|| Error::model(format!("{name} is {given}: it must be positive")).attribute(name).value(given))
    };
    let (queried, held) = (heads("q_num_heads")?, heads("kv_num_heads")?);
    if !queried.is_multiple_of(held) {
        let text = format!("q_num_heads is {queried}, which is not a multiple of kv_num_heads, {held}");
        return Err(Error::model(text).attribute("q_num_heads").value(queried as i128));
    }
    Ok(Box::new(LinearAttention { queried, held, scale: node.float("scale")? }))
}

impl Operator for LinearAttention {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let call = &*call;
        let &LinearAttention { queried, held, .. } = self;
        let q = call.tensor(0)?;
        let &[batch, tokens, hidden] = q.shape() else { return Err(misfit(call, 0, "a rank of 3")) };
        let size = size_of(call, 0, queried, hidden)?;
        let values = call.tensor(2)?.shape().last().copied().unwrap_or(0);
        let value_size = size_of(call, 2, held, values)?;
        check_shape(call, 1, &[&[batch, tokens, held * size]])?;
        check_shape(call, 2, &[&[batch, tokens, values]])?;
        check_shape(call, 3, &[&[batch, held, size, value_size]])?;
        check_shape(call, 4, &[&[batch, tokens, held * size], &[batch, tokens, held]])?;
        check_shape(call, 5, &[&[batch, tokens, held], &[batch, tokens, 1]])?;

        let past = call.optional_tensor(3)?;
        let [mut q_room, mut k_room, mut v_room, mut decay_room, mut beta_room] = [None, None, None, None, None];
        let decay = call.optional_tensor(4)?;
        let of_each = decay.is_some_and(|decay| decay.shape().last() == Some(&(held * size)));
        let decay = decay.map(|decay| elements_of::<f32>(call.context(), decay, &mut decay_room)).transpose()?;
        let beta = call.optional_tensor(5)?;
        let recurrence = Recurrence {
            batch,
            tokens,
            heads: held,
            group: queried / held,
            size,
            value_size,
            q: elements_of(call.context(), q, &mut q_room)?,
            k: elements_of(call.context(), call.tensor(1)?, &mut k_room)?,
            v: elements_of(call.context(), call.tensor(2)?, &mut v_room)?,
            decay: decay.map(|elements| Decay { elements, of_each }),
            beta: beta.map(|beta| elements_of(call.context(), beta, &mut beta_room)).transpose()?,
            scale: if self.scale == 0.0 { (1.0 / (size as f64).sqrt()) as f32 } else { self.scale },
        };
        call.charge(recurrence.work())?;
        let width = queried.saturating_mul(value_size);
        let mut output = Output::<f32>::new(call.context(), q.dtype(), shape_of([&[batch, tokens, width]]))?;
        let state_type = past.unwrap_or(q).dtype();
        let mut state = Output::<f32>::new(call.context(), state_type, shape_of([&[batch, held, size, value_size]]))?;
        match past {
            Some(past) => {
                converted(past, DType::Float, bytemuck::cast_slice_mut(state.elements_mut()?), call.context())?
            }
            None => kernels::fill(&[0], cast_slice_mut::<f32, u8>(state.elements_mut()?), call.resources())?,
        }
        let mut scratch = call.scratch::<f32>(recurrence.scratch(call.resources()))?;
        recurrence.run(state.elements_mut()?, output.elements_mut()?, scratch.elements_mut(), call.resources())?;
        Ok([output.finish()?.into(), state.finish()?.into()].into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_type_of(1, if facts.input(3).is_some() { 3 } else { 0 });
        let (q, v) = (facts.sizes::<3>(0)?, facts.sizes::<3>(2)?);
        let [batch, tokens, _] = q.or(v).cloned().unwrap_or([Dim::Unknown, Dim::Unknown, Dim::Unknown]);
        let last = |dims: Option<&[Dim; 3]>| dims.map_or(Dim::Unknown, |[_, _, last]| last.clone());
        let (hidden, values) = (last(q), last(v));
        let (queried, held) = (Dim::Fixed(self.queried), Dim::Fixed(self.held));
        let size = Dim::quotient(&[hidden], std::slice::from_ref(&queried));
        let value_size = Dim::quotient(std::slice::from_ref(&values), std::slice::from_ref(&held));
        facts.needs(1, &[batch.clone(), tokens.clone(), Dim::product([&held, &size])])?;
        facts.needs(2, &[batch.clone(), tokens.clone(), values])?;
        let state = [batch.clone(), held, size, value_size.clone()];
        facts.needs(3, &state)?;
        facts.give(0, [batch, tokens, Dim::product([&queried, &value_size])]);
        facts.give(1, state);
        Ok(())
    }
}

/// The numbers of a head, of which the input `k` has so many.
fn size_of(call: &Call<'_>, k: usize, heads: usize, hidden: usize) -> Result<usize> {
    match hidden.is_multiple_of(heads) {
        true => Ok(hidden / heads),
        false => Err(misfit(call, k, &format!("a last dimension that is a multiple of {heads} heads"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, string, tensor};
    use half::f16;

    fn rule(name: &str) -> (&'static str, Attribute) {
        ("update_rule", Attribute::String(name.into()))
    }

    fn scale(value: f32) -> (&'static str, Attribute) {
        ("scale", Attribute::Float(value))
    }

    /// Two tokens, keys and values of one number.
    #[test]
    fn each_rule() {
        let of = |name, scaled| [rule(name), scale(scaled), int("q_num_heads", 1), int("kv_num_heads", 1)];
        let (q, k, v) =
            (tensor(&[1, 2, 1], [1f32, 2.]), tensor(&[1, 2, 1], [2f32, 1.]), tensor(&[1, 2, 1], [3f32, 5.]));
        let past = tensor(&[1, 1, 1, 1], [10f32]);
        let (zeros, halves) = (tensor(&[1, 2, 1], [0f32; 2]), tensor(&[1, 2, 1], [0.5f32; 2]));
        let gives = |y: [f32; 2], state: f32| [tensor(&[1, 2, 1], y), tensor(&[1, 1, 1, 1], [state])];
        run("LinearAttention", 27, of("linear", 0.0), [&q, &k, &v]).gives_all(gives([6., 22.], 11.));
        run("LinearAttention", 27, of("linear", 2.0), [&q, &k, &v, &past]).gives_all(gives([32., 84.], 21.));
        run("LinearAttention", 27, of("gated", 1.0), [&q, &k, &v, &past, &zeros]).gives_all(gives([16., 42.], 21.));
        // 10 + 2 * 0.5 * (3 - 20) = -7, -7 + 0.5 * (5 + 7) = -1
        let delta = run("LinearAttention", 27, of("gated_delta", 1.0), [&q, &k, &v, &past, &zeros, &halves]);
        delta.gives_all(gives([-7., -2.], -1.));
    }

    #[test]
    fn the_state_has_the_type_of_the_past() {
        let one = || tensor(&[1, 1, 1], [f16::from_f32(2.0)]);
        let attributes = || [rule("linear"), int("q_num_heads", 1), int("kv_num_heads", 1)];
        let past = tensor(&[1, 1, 1, 1], [0.25f32]);
        let want = [tensor(&[1, 1, 1], [f16::from_f32(8.5)]), tensor(&[1, 1, 1, 1], [4.25f32])];
        run("LinearAttention", 27, attributes(), [&one(), &one(), &one(), &past]).gives_all(want);
        let none = tensor(&[1, 0, 1], Vec::<f32>::new());
        let want = [tensor(&[1, 0, 1], Vec::<f32>::new()), past.clone()];
        run("LinearAttention", 27, attributes(), [&none, &none, &none, &past]).gives_all(want);
    }

    #[test]
    fn refusals() {
        let x = tensor(&[1, 2, 3], [0f32; 6]);
        let heads = |q, k| [rule("linear"), int("q_num_heads", q), int("kv_num_heads", k)];
        run("LinearAttention", 27, heads(3, 2), [&x, &x, &x]).fails("q_num_heads is 3, which is not a multiple of");
        run("LinearAttention", 27, heads(0, 1), [&x, &x, &x]).fails("q_num_heads is 0: it must be positive");
        run("LinearAttention", 27, heads(2, 1), [&x, &x, &x]).fails("a last dimension that is a multiple of 2 heads");
        run("LinearAttention", 27, heads(3, 1), [&x, &x, &x]).fails("\"key\" has shape [1, 2, 3]: [1, 2, 1] is needed");
        let gated = [rule("gated"), int("q_num_heads", 1), int("kv_num_heads", 1)];
        run("LinearAttention", 27, gated, [&x, &x, &x]).fails("the update rule \"gated\" needs decay");
        let other = [rule("other"), int("q_num_heads", 1), int("kv_num_heads", 1)];
        run("LinearAttention", 27, other, [&x, &x, &x]).fails("update_rule is \"other\": allowed linear, gated");
    }

    #[test]
    fn inferred() {
        let given = [int("q_num_heads", 4), int("kv_num_heads", 2), string("update_rule", "linear")];
        let linear = |inputs: [&str; 4]| infer("LinearAttention", 27, given.clone(), inputs);
        linear(["float[N, T, 32]", "float[N, T, 16]", "float[N, T, 6]", "-"]).gives_all(["[N, T, 12]", "[N, 2, 8, 3]"]);
        linear(["float[N, T, 32]", "float", "float", "-"]).gives_all(["[N, T, ?]", "[N, 2, 8, ?]"]);
        linear(["float", "float", "float", "-"]).gives_all(["[?, ?, ?]", "[?, 2, ?, ?]"]);
        linear(["float[N, T, 32]", "float[N, T, 8]", "float[N, T, 6]", "-"])
            .fails("\"key\" has shape [N, T, 8]: [N, T, 16] is needed");
        linear(["float[N, T, 32]", "float", "float[N, T, 6]", "float[N, 2, 3, 8]"]).fails("[N, 2, 8, 3] is needed");
    }
}
