//! RNN, GRU and LSTM: a layer whose state each step of a sequence changes, by 1, 3 or 4 gates.
//! <https://onnx.ai/onnx/operators/onnx__RNN.html>, <https://onnx.ai/onnx/operators/onnx__GRU.html>,
//! <https://onnx.ai/onnx/operators/onnx__LSTM.html>

use crate::ops::prelude::*;

pub(super) const RNN: Implementation = Implementation::missing("", "RNN", |facts| infer(facts, 1));
pub(super) const GRU: Implementation = Implementation::missing("", "GRU", |facts| infer(facts, 3));
pub(super) const LSTM: Implementation = Implementation::missing("", "LSTM", |facts| infer(facts, 4));

/// `layout` came with version 14.
fn infer(facts: &mut Inference<'_>, gates: usize) -> Result<()> {
    let kinds = [("forward", 1), ("reverse", 1), ("bidirectional", 2)];
    // All are forward by default, which GRU-1 misspells.
    let given = facts.given().any(|(name, _)| name == "direction");
    let directions = Dim::Fixed(if given { facts.choice("direction", &kinds)? } else { 1 });
    check_activations(facts, gates, if directions == Dim::Fixed(2) { 2 } else { 1 })?;
    let batch_first = facts.version() >= 14 && facts.flag("layout")?;
    let (input, steps) = match facts.sizes::<3>(0)? {
        Some([batch, steps, input]) if batch_first => ([batch, input], steps),
        Some([steps, batch, input]) => ([batch, input], steps),
        None => ([&Dim::Unknown; 2], &Dim::Unknown),
    };
    let ([_, input], batch) = (input, facts.same_size((0, usize::from(!batch_first)), (4, 0))?);
    let hidden = hidden(facts, gates)?;
    let times = |count: usize| Dim::product([&Dim::Fixed(count), &hidden]);
    facts.needs(1, &[directions.clone(), times(gates), input.clone()])?;
    facts.needs(2, &[directions.clone(), times(gates), hidden.clone()])?;
    facts.needs(3, &[directions.clone(), times(2 * gates)])?;
    facts.needs(4, std::slice::from_ref(&batch))?;
    let (state, all) = match batch_first {
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

/// Each direction has as many functions as equations use: 1, 2 or 3.
fn check_activations(facts: &Inference<'_>, gates: usize, directions: usize) -> Result<()> {
    const KNOWN: [&str; 11] = [
        "Relu",
        "Tanh",
        "Sigmoid",
        "Affine",
        "LeakyRelu",
        "ThresholdedRelu",
        "ScaledTanh",
        "HardSigmoid",
        "Elu",
        "Softsign",
        "Softplus",
    ];
    let Some((_, Attribute::Strings(given))) = facts.given().find(|(name, _)| *name == "activations") else {
        return Ok(());
    };
    let wrong = |text: String| Err(Error::model(text).attribute("activations"));
    if let Some((k, name)) = given.iter().enumerate().find(|(_, name)| !KNOWN.contains(&&***name)) {
        return wrong(format!("activations[{k}] is {}: allowed {}", quote(name), KNOWN.join(", ")));
    }
    let needed = directions * if gates > 1 { gates - 1 } else { 1 };
    if given.len() < needed {
        return wrong(format!("activations has {} entries: {needed} are needed", given.len()));
    }
    Ok(())
}

/// The number of a state's elements: an attribute, or else a dimension of the weights.
fn hidden(facts: &Inference<'_>, gates: usize) -> Result<Dim> {
    if facts.attribute("hidden_size").is_some() {
        let given = facts.int("hidden_size")?;
        return usize::try_from(given).map(Dim::Fixed).map_err(|_| {
            Error::model(format!("hidden_size is {given}: a size is needed")).attribute("hidden_size").value(given)
        });
    }
    Ok(match (facts.sizes::<3>(2)?, facts.sizes::<3>(1)?) {
        (Some([_, _, size]), _) if *size != Dim::Unknown => size.clone(),
        (_, Some([_, all, _])) => Dim::quotient(std::slice::from_ref(all), &[Dim::Fixed(gates)]),
        _ => Dim::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, string, strings};

    #[test]
    fn shapes() {
        let (x, w, r) = ("float[T, N, 5]", "float[1, 12, 5]", "float[1, 12, 3]");
        infer("LSTM", 7, [int("hidden_size", 3)], [x, w, r]).gives_all(["[T, 1, N, 3]", "[1, N, 3]", "[1, N, 3]"]);
        infer("LSTM", 1, [], [x, w, "float"]).gives_all(["[T, 1, N, 3]", "[1, N, 3]", "[1, N, 3]"]);
        infer("LSTM", 22, [int("layout", 1)], [x, w, r]).gives_all(["[T, N, 1, 3]", "[T, 1, 3]", "[T, 1, 3]"]);
        let both = [string("direction", "bidirectional")];
        infer("GRU", 14, both.clone(), [x, "float[2, 9, 5]", "float[2, 9, 3]", "float[2, 18]"])
            .gives_all(["[T, 2, N, 3]", "[2, N, 3]"]);
        infer("RNN", 14, both, [x, "float", "float[2, H, H]", "-", "int32[4]"])
            .gives_all(["[T, 2, 4, H]", "[2, 4, H]"]);
        infer("GRU", 1, [], [x, "float", "float"]).gives_all(["[T, 1, N, ?]", "[1, N, ?]"]);
        infer("GRU", 3, [], ["float", "float", "float[1, 9, 3]"]).gives_all(["[?, 1, ?, 3]", "[1, ?, 3]"]);
    }

    #[test]
    fn faults() {
        let (x, w, r) = ("float[T, 2, 5]", "float[1, 12, 5]", "float[1, 12, 3]");
        infer("LSTM", 7, [], ["float[T, 5]", w, r]).fails("\"X\" has shape [T, 5] of rank 2: allowed rank 3");
        infer("LSTM", 7, [], [x, "float[1, 9, 5]", r]).fails("\"W\" has shape [1, 9, 5]: [1, 12, 5] is needed");
        infer("LSTM", 7, [], [x, "float[1, 12, 4]", r]).fails("\"W\" has shape [1, 12, 4]: [1, 12, 5] is needed");
        infer("LSTM", 7, [int("hidden_size", 4)], [x, "float", r]).fails("\"R\" has shape [1, 12, 3]: [1, 16, 4]");
        infer("LSTM", 7, [int("hidden_size", -4)], [x, w, r]).fails("hidden_size is -4: a size is needed");
        infer("LSTM", 7, [string("direction", "bidirectional")], [x, w, r]).fails("[2, 12, 5] is needed");
        infer("LSTM", 7, [string("direction", "back")], [x, w, r]).fails("direction is \"back\": allowed forward");
        infer("RNN", 7, [strings("activations", &["Tangent"])], [x, "float", "float"])
            .fails("activations[0] is \"Tangent\": allowed Relu, Tanh, Sigmoid");
        infer("GRU", 7, [strings("activations", &["Tanh"])], [x, "float", "float"])
            .fails("activations has 1 entries: 2 are needed");
        infer("LSTM", 7, [], [x, w, r, "float[1, 12]"]).fails("\"B\" has shape [1, 12]: [1, 24] is needed");
        infer("LSTM", 7, [], [x, w, r, "-", "int32[3]"]).fails("dimension 0 of \"sequence_lens\" of shape [3] is 3");
        infer("LSTM", 14, [int("layout", 1)], [x, w, r, "-", "-", "-", "float[1, 2, 3]"])
            .fails("\"initial_c\" has shape [1, 2, 3]: [T, 1, 3] is needed");
        infer("LSTM", 7, [], [x, w, r, "-", "-", "-", "-", "float[1, 12]"]).fails("[1, 9] is needed");
    }
}
