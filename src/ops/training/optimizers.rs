//! Adagrad, Adam and Momentum: tensors changed by their gradients, and 1 or 2 states of each.
//! <https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Adagrad.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Adam.html>,
//! <https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Momentum.html>

use super::DOMAIN;
use crate::ops::prelude::*;
use kernels::elementwise::rounded_row;

pub(super) const ADAGRAD: Implementation = optimizer("Adagrad", |node| {
    let number = |name| Ok::<f64, Error>(node.float(name)?.into());
    let (decay, epsilon, norm) = (number("decay_factor")?, number("epsilon")?, number("norm_coefficient")?);
    Ok(Box::new(Optimizer(Adagrad { decay, epsilon, norm })))
});
pub(super) const ADAM: Implementation = optimizer("Adam", |node| {
    let number = |name| Ok::<f64, Error>(node.float(name)?.into());
    let (alpha, beta, epsilon) = (number("alpha")?, number("beta")?, number("epsilon")?);
    let (norm, norm_post) = (number("norm_coefficient")?, number("norm_coefficient_post")?);
    Ok(Box::new(Optimizer(Adam { alpha, beta, epsilon, norm, norm_post })))
});
pub(super) const MOMENTUM: Implementation = optimizer("Momentum", |node| {
    let number = |name| Ok::<f64, Error>(node.float(name)?.into());
    let (alpha, beta, norm) = (number("alpha")?, number("beta")?, number("norm_coefficient")?);
    let nesterov = node.choice("mode", &[("nesterov", true), ("standard", false)])?;
    Ok(Box::new(Optimizer(Momentum { alpha, beta, norm, nesterov })))
});

const fn optimizer(name: &'static str, load: Load) -> Implementation {
    Implementation { domain: DOMAIN, name, versions: &[1], make: Make::Run(load) }
}

/// What becomes of `IN` elements, of a tensor, its gradient and its states: `OUT` elements, of the tensor and its states.
trait Update<const IN: usize, const OUT: usize>: std::fmt::Debug + Send + Sync + 'static {
    /// The formula for the rate `R` and the count `T`.
    fn at(&self, rate: f64, count: i64) -> impl Fn([f64; IN]) -> [f64; OUT] + Sync;
}

/// `g = norm * x + G; h' = h + g * g; x' = x - r * g / (sqrt(h') + epsilon)` where `r = R / (1 + T * decay)`
#[derive(Debug)]
struct Adagrad {
    decay: f64,
    epsilon: f64,
    norm: f64,
}

impl Update<3, 2> for Adagrad {
    fn at(&self, rate: f64, count: i64) -> impl Fn([f64; 3]) -> [f64; 2] + Sync {
        let rate = rate / (1.0 + count as f64 * self.decay);
        move |[x, g, h]| {
            let g = self.norm * x + g;
            let h = h + g * g;
            [x - rate * g / (h.sqrt() + self.epsilon), h]
        }
    }
}

/// `g = norm * x + G; v' = alpha * v + (1 - alpha) * g; h' = beta * h + (1 - beta) * g * g` and
/// `x' = (1 - norm_post) * (x - r * v' / (sqrt(h') + epsilon))` where `r = R * sqrt(1 - beta^T) / (1 - alpha^T)`, or `R` if
/// `T` is not above 0
#[derive(Debug)]
struct Adam {
    alpha: f64,
    beta: f64,
    epsilon: f64,
    norm: f64,
    norm_post: f64,
}

impl Update<4, 3> for Adam {
    fn at(&self, rate: f64, count: i64) -> impl Fn([f64; 4]) -> [f64; 3] + Sync {
        let rate = if count > 0 {
            let rest = |x: f64| 1.0 - functions::pow(x, count as f64);
            rate * rest(self.beta).sqrt() / rest(self.alpha)
        } else {
            rate
        };
        move |[x, g, v, h]| {
            let g = self.norm * x + g;
            let v = self.alpha * v + (1.0 - self.alpha) * g;
            let h = self.beta * h + (1.0 - self.beta) * g * g;
            [(1.0 - self.norm_post) * (x - rate * v / (h.sqrt() + self.epsilon)), v, h]
        }
    }
}

/// `g = norm * x + G; v' = alpha * v + b * g; x' = x - R * v'`, or `x' = x - R * (g + alpha * v')` if Nesterov's, where `b`
/// is `beta`, or 1 if `T` is not above 0
#[derive(Debug)]
struct Momentum {
    alpha: f64,
    beta: f64,
    norm: f64,
    nesterov: bool,
}

impl Update<3, 2> for Momentum {
    fn at(&self, rate: f64, count: i64) -> impl Fn([f64; 3]) -> [f64; 2] + Sync {
        let beta = if count > 0 { self.beta } else { 1.0 };
        move |[x, g, v]| {
            let g = self.norm * x + g;
            let v = self.alpha * v + beta * g;
            [x - rate * if self.nesterov { g + self.alpha * v } else { v }, v]
        }
    }
}

/// After a rate and a count the inputs are all tensors, all gradients, and all first states, and so on; the outputs are all
/// tensors, and all first states, and so on. What belongs to a tensor has its shape, and may have another type: all is
/// computed in float64, and rounded once.
#[derive(Debug)]
struct Optimizer<U, const IN: usize, const OUT: usize>(U);

/// Inputs before those of tensors.
const BEFORE: usize = 2;

impl<U: Update<IN, OUT>, const IN: usize, const OUT: usize> Operator for Optimizer<U, IN, OUT> {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let tensors = call.by_rule(|facts| tensors(facts, IN, OUT))?;
        let rate = match call.tensor(0)?.dtype() {
            DType::Float => call.scalar::<f32>(0)?.into(),
            _ => call.scalar::<f64>(0)?,
        };
        let formula = self.0.at(rate, call.scalar::<i64>(1)?);
        let mut outputs: Vec<Option<Tensor>> = vec![None; call.output_count()];
        // States are first: a tensor that nobody needs any more becomes its output.
        for k in (tensors..outputs.len()).chain(0..tensors.min(outputs.len())) {
            if !call.wants(k) {
                continue;
            }
            let (part, tensor) = (k / tensors, k % tensors);
            let (mut held, mut formats) = ([const { Held::Input(0) }; IN], [Format::Double; IN]);
            for (input, (held, format)) in held.iter_mut().zip(&mut formats).enumerate() {
                let at = BEFORE + input * tensors + tensor;
                let of = call.tensor(at)?;
                *format = of.dtype().format();
                *held = if part + input == 0 { Held::Input(at) } else { Held::Own(of.clone()) };
            }
            let to = call.tensor(own(k, tensors))?.dtype();
            let row = |inputs: [&[u8]; IN], out: &mut [u8]| {
                rounded_row(&formula, part, (formats, to.format()), inputs, out);
            };
            let output = call.rowwise(held, Align::Last, to, &row)?;
            if let Some(to) = outputs.get_mut(k) {
                *to = Some(output);
            }
        }
        let mut values = Values::new();
        for output in outputs {
            match output {
                Some(output) => values.push(output),
                None => values.push_hole(),
            }
        }
        Ok(values)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let tensors = tensors(facts, IN, OUT)?;
        for k in 0..facts.output_count() {
            facts.give_type_of(k, own(k, tensors));
            facts.give_shape_of(k, own(k, tensors));
        }
        Ok(())
    }
}

/// The input of which the output `k` is the new value: there are no new gradients.
fn own(k: usize, tensors: usize) -> usize {
    BEFORE + if k < tensors { k } else { k + tensors }
}

/// The number of tensors, each with as many inputs and outputs as these are.
fn tensors(facts: &Inference<'_>, each: usize, out: usize) -> Result<usize> {
    let inputs = facts.input_count().saturating_sub(BEFORE);
    if !inputs.is_multiple_of(each) {
        let text = format!("there are {inputs} tensors after \"T\": a multiple of {each} is needed");
        return Err(Error::model(text).parameter("inputs").size(inputs));
    }
    let (tensors, outputs) = (inputs / each, facts.output_count());
    if outputs > tensors * out {
        let text = format!("there are {outputs} outputs: {inputs} tensors after \"T\" make {}", tensors * out);
        return Err(Error::model(text).parameter("outputs").size(outputs));
    }
    facts.single(0)?;
    facts.single(1)?;
    for at in BEFORE + tensors..facts.input_count() {
        let of = BEFORE + (at - BEFORE) % tensors;
        let (Some(own), Some(needed)) = (facts.dims(at), facts.dims(of)) else { continue };
        if own.len() != needed.len() || own.iter().zip(needed).any(|(own, needed)| own.both(needed).is_none()) {
            let (own, needed) = (DimsText(own), DimsText(needed));
            let text = format!("input {at} has shape {own}: it belongs to input {of}, of shape {needed}");
            return Err(Error::input(text).parameter("inputs"));
        }
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::DOMAIN;
    use crate::operator::Attribute;
    use crate::ops::testing::{float, infer_for, run_for, string, tensor};
    use crate::value::Value;

    fn named(name: &str) -> String {
        format!("{DOMAIN}.{name}")
    }

    fn scalar<T: crate::dtype::Element>(value: T) -> Value {
        tensor(&[], [value])
    }

    fn momentum(mode: &str) -> [(&str, Attribute); 4] {
        [float("alpha", 0.5), float("beta", 0.25), float("norm_coefficient", 2.0), string("mode", mode)]
    }

    #[test]
    fn adagrad() {
        let (x, g, h) = (scalar(2f32), scalar(3f32), scalar(0f32));
        // r = 1 / (1 + 2 * 0.5), g = 0.5 * 2 + 3, h = 16: x = 2 - 0.5 * 4 / (4 + 1)
        let given = || [float("decay_factor", 0.5), float("norm_coefficient", 0.5), float("epsilon", 1.0)];
        run_for(2, &named("Adagrad"), 1, given(), [&scalar(1f32), &scalar(2i64), &x, &g, &h])
            .gives_all([scalar(1.6f32), scalar(16f32)]);
        // A rate in a list, in double.
        run_for(1, &named("Adagrad"), 1, given(), [&tensor(&[1], [1f64]), &scalar(2i64), &x, &g, &h])
            .gives_all([scalar(1.6f32)]);
    }

    #[test]
    fn adam() {
        let of = |values: &[f64]| tensor(&[2], values);
        let (x, g, v, h) = (of(&[2.0, 1.0]), of(&[3.0, -1.0]), of(&[0.0, 2.0]), of(&[0.0, 8.0]));
        let given = |post| {
            let coefficients = [float("alpha", 0.5), float("beta", 0.75), float("epsilon", 1.0)];
            let [alpha, beta, epsilon] = coefficients;
            [alpha, beta, epsilon, float("norm_coefficient", 0.5), float("norm_coefficient_post", post)]
        };
        // g = [4, -0.5], v = [2, 0.75], h = [4, 6.0625], and without updates the rate stays.
        let (new_v, new_h) = (of(&[2.0, 0.75]), of(&[4.0, 6.0625]));
        let step = |rate: f64, [x, v, h]: [f64; 3]| x - rate * v / (h.sqrt() + 1.0);
        let both = |rate| [step(rate, [2.0, 2.0, 4.0]), step(rate, [1.0, 0.75, 6.0625])];
        for count in [0i64, -3] {
            run_for(3, &named("Adam"), 1, given(0.0), [&scalar(0.5f64), &scalar(count), &x, &g, &v, &h]).gives_all([
                of(&both(0.5)),
                new_v.clone(),
                new_h.clone(),
            ]);
        }
        // 0.5 * sqrt(1 - 0.75^2) / (1 - 0.5^2)
        let rate = 0.5 * 0.4375f64.sqrt() / 0.75;
        run_for(3, &named("Adam"), 1, given(0.5), [&scalar(0.5f64), &scalar(2i64), &x, &g, &v, &h]).gives_all([
            of(&both(rate).map(|x| 0.5 * x)),
            new_v,
            new_h,
        ]);
    }

    #[test]
    fn momentum_of_both_modes() {
        let (x, g, v) = (scalar(1f32), scalar(2f32), scalar(4f32));
        // g = 2 * 1 + 2, v = 0.5 * 4 + 0.25 * 4 = 3
        let inputs = |count: i64| [scalar(0.5f32), scalar(count), x.clone(), g.clone(), v.clone()];
        let name = named("Momentum");
        let ran = |mode, count| run_for(2, &name, 1, momentum(mode), inputs(count).each_ref());
        ran("standard", 1).gives_all([scalar(-0.5f32), scalar(3f32)]);
        ran("nesterov", 1).gives_all([scalar(1.0 - 0.5 * (4.0 + 0.5 * 3.0) as f32), scalar(3f32)]);
        // At first beta is 1: v = 0.5 * 4 + 4
        ran("standard", 0).gives_all([scalar(-2f32), scalar(6f32)]);
    }

    /// Tensors of several shapes and types: all tensors, all gradients, all states.
    #[test]
    fn several_tensors() {
        let (x, y) = (tensor(&[2], [1f32, 2.0]), tensor(&[1, 1], [3f64]));
        let (g, h) = (tensor(&[2], [0f64, 1.0]), tensor(&[1, 1], [1f32]));
        let (v, w) = (tensor(&[2], [0f64, 8.0]), tensor(&[1, 1], [2f32]));
        let given =
            || [float("alpha", 0.5), float("beta", 1.0), float("norm_coefficient", 0.0), string("mode", "standard")];
        let inputs = [&scalar(1f32), &scalar(1i64), &x, &y, &g, &h, &v, &w];
        let (new_x, new_v) = (tensor(&[2], [1f32, -3.0]), tensor(&[2], [0f64, 5.0]));
        let (new_y, new_w) = (tensor(&[1, 1], [1f64]), tensor(&[1, 1], [2f32]));
        run_for(4, &named("Momentum"), 1, given(), inputs).gives_all([new_x.clone(), new_y, new_v, new_w]);
        run_for(1, &named("Momentum"), 1, given(), inputs).gives_all([new_x]);
        let nothing = tensor(&[0], Vec::<f32>::new());
        run_for(2, &named("Momentum"), 1, given(), [&scalar(1f32), &scalar(1i64), &nothing, &nothing, &nothing])
            .gives_all([nothing.clone(), nothing.clone()]);
    }

    #[test]
    fn shapes_and_types() {
        let (adagrad, adam) = (named("Adagrad"), named("Adam"));
        let (x, g, h) = ("double[N, 3]", "double", "double[?, 3]");
        infer_for(2, &adagrad, 1, [], ["float", "int64", x, g, h]).gives_all(["[N, 3]", "[?, 3]"]);
        infer_for(2, &adagrad, 1, [], ["float", "int64", x, g, h]).has_type("float64");
        infer_for(4, &adagrad, 1, [], ["float", "int64", x, "float[2]", g, g, "float[a, 3]", "float[b]"])
            .gives_all(["[N, 3]", "[2]", "[a, 3]", "[b]"]);
        infer_for(3, &adam, 1, [], ["float", "int64", "double[N]", g, "float[v]", "float[h]"])
            .gives_all(["[N]", "[v]", "[h]"]);
    }

    #[test]
    fn faults() {
        let (adam, name) = (named("Adam"), named("Momentum"));
        infer_for(3, &adam, 1, [], ["float", "int64", "float", "float", "float"])
            .fails("there are 3 tensors after \"T\": a multiple of 4 is needed");
        infer_for(4, &adam, 1, [], ["float", "int64", "float", "float", "float", "float"])
            .fails("there are 4 outputs: 4 tensors after \"T\" make 3");
        infer_for(2, &name, 1, momentum("fast"), ["float", "int64", "float", "float", "float"])
            .fails("mode is \"fast\": allowed nesterov, standard");
        infer_for(1, &name, 1, momentum("standard"), ["float", "int64[2]", "float", "float", "float"])
            .fails("\"T\" has shape [2]: one value is needed");
        let (x, one, three) = (tensor(&[2], [1f32; 2]), tensor(&[1], [1f32]), tensor(&[3], [1f32; 3]));
        run_for(2, &name, 1, momentum("standard"), [&scalar(1f32), &scalar(0i64), &x, &x, &one])
            .fails("input 4 has shape [1]: it belongs to input 2, of shape [2]");
        run_for(2, &name, 1, momentum("standard"), [&three, &scalar(0i64), &x, &x, &x])
            .fails("\"R\" has shape [3]: one value is needed");
    }
}
