//! Layers against plain loops of the equations, and their rules.

use crate::operator::Attribute;
use crate::ops::testing::{float, infer, int, outputs, run, string, strings, tensor};
use crate::value::Value;
use half::{bf16, f16};

type Function = fn(f64) -> f64;

/// A layer in plain numbers, one entry and direction after the other, as the equations of the text read.
#[derive(Default)]
struct Plain {
    gates: usize,
    steps: usize,
    batch: usize,
    size: usize,
    hidden: usize,
    /// For each direction, whether it starts at the end.
    reversed: &'static [bool],
    lens: Option<Vec<i32>>,
    inputs: [Vec<f64>; 4],
    initial: [Option<Vec<f64>>; 2],
    peepholes: Option<Vec<f64>>,
    clip: Option<f64>,
    coupled: bool,
    linear_before_reset: bool,
    functions: Option<Vec<Function>>,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Numbers between -0.75 and 0.75, the same in each run.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|k| ((k * 7919 + seed * 104_729) % 97) as f64 / 64.0 - 0.75).collect()
}

impl Plain {
    fn new(gates: usize, [steps, batch, size, hidden]: [usize; 4], reversed: &'static [bool]) -> Plain {
        let directions = reversed.len();
        let counts = [
            steps * batch * size,
            directions * gates * hidden * size,
            directions * gates * hidden * hidden,
            directions * 2 * gates * hidden,
        ];
        let inputs = std::array::from_fn(|k| numbers(counts[k], k + 1));
        Plain { gates, steps, batch, size, hidden, reversed, inputs, ..Plain::default() }
    }

    /// Y, and the last h and c.
    fn run(&self) -> [Vec<f64>; 3] {
        let &Plain { steps, batch, size, hidden, .. } = self;
        let directions = self.reversed.len();
        let mut y = vec![0.0; steps * directions * batch * hidden];
        let (mut last_h, mut last_c) = (Vec::new(), Vec::new());
        for (d, b) in (0..directions).flat_map(|d| (0..batch).map(move |b| (d, b))) {
            let len = self.lens.as_ref().map_or(steps, |lens| lens[b] as usize);
            let initial = |k: usize| match &self.initial[k] {
                Some(given) => given[(d * batch + b) * hidden..][..hidden].to_vec(),
                None => vec![0.0; hidden],
            };
            let (mut h, mut c) = (initial(0), initial(1));
            for step in 0..len {
                let time = if self.reversed[d] { len - 1 - step } else { step };
                (h, c) = self.step(d, &self.inputs[0][(time * batch + b) * size..][..size], &h, &c);
                y[((time * directions + d) * batch + b) * hidden..][..hidden].copy_from_slice(&h);
            }
            last_h.extend(h);
            last_c.extend(c);
        }
        [y, last_h, last_c]
    }

    fn step(&self, d: usize, x: &[f64], h: &[f64], c: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let &Plain { gates, size, hidden, .. } = self;
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let [_, w, r, biases] = &self.inputs;
        let bias = |k: usize, g: usize, j: usize| biases[((2 * d + k) * gates + g) * hidden + j];
        let input = |g: usize, j: usize| dot(&w[((d * gates + g) * hidden + j) * size..][..size], x) + bias(0, g, j);
        let of = |g: usize, j: usize, h: &[f64]| dot(&r[((d * gates + g) * hidden + j) * hidden..][..hidden], h);
        let usual: &[Function] = match gates {
            1 => &[f64::tanh],
            3 => &[sigmoid, f64::tanh],
            _ => &[sigmoid, f64::tanh, f64::tanh],
        };
        let all = self.functions.clone().unwrap_or(usual.repeat(self.reversed.len()));
        let f = |k: usize, x: f64| all[d * usual.len() + k](self.clip.map_or(x, |clip| x.clamp(-clip, clip)));
        let sum = |g: usize, j: usize| input(g, j) + of(g, j, h) + bias(1, g, j);
        let each = |function: &dyn Fn(usize) -> f64| (0..hidden).map(function).collect::<Vec<_>>();
        let peephole = |k: usize, j: usize| self.peepholes.as_ref().map_or(0.0, |p| p[(3 * d + k) * hidden + j]);
        match gates {
            1 => (each(&|j| f(0, sum(0, j))), c.to_vec()),
            3 => {
                let (z, reset) = (each(&|j| f(0, sum(0, j))), each(&|j| f(0, sum(1, j))));
                let before: Vec<f64> = h.iter().zip(&reset).map(|(h, reset)| h * reset).collect();
                let n = each(&|j| match self.linear_before_reset {
                    true => f(1, input(2, j) + reset[j] * (of(2, j, h) + bias(1, 2, j))),
                    false => f(1, input(2, j) + of(2, j, &before) + bias(1, 2, j)),
                });
                (each(&|j| (1.0 - z[j]) * n[j] + z[j] * h[j]), c.to_vec())
            }
            _ => {
                let i = each(&|j| f(0, sum(0, j) + peephole(0, j) * c[j]));
                let forget = |j: usize| if self.coupled { 1.0 - i[j] } else { f(0, sum(2, j) + peephole(2, j) * c[j]) };
                let cell = each(&|j| forget(j) * c[j] + i[j] * f(1, sum(3, j)));
                (each(&|j| f(0, sum(1, j) + peephole(1, j) * cell[j]) * f(2, cell[j])), cell)
            }
        }
    }

    /// Compares the operator with the plain loops: in float32 within 2e-6, in float64 within 1e-14, and in 16 bits within the
    /// rounding of the outputs; with the batch first too.
    #[track_caller]
    fn check<const A: usize>(&self, attributes: [(&str, Attribute); A]) {
        self.check_type(&attributes, |x| x as f32, |x| x.into(), 2e-6);
        self.check_type(&attributes, |x| x, |x| x, 1e-14);
        self.check_type(&attributes, f16::from_f64, f64::from, 6e-4);
        self.check_type(&attributes, bf16::from_f64, f64::from, 5e-3);
    }

    #[track_caller]
    fn check_type<T: crate::dtype::Element + Copy>(
        &self,
        attributes: &[(&str, Attribute)],
        of: fn(f64) -> T,
        to: fn(T) -> f64,
        most: f64,
    ) {
        // All numbers are exact in each type.
        let want = self.run();
        let (name, directions) = (["RNN", "", "GRU", "LSTM"][self.gates - 1], self.reversed.len());
        let &Plain { gates, steps, batch, size, hidden, .. } = self;
        for batch_first in [false, true] {
            // The dimensions of a tensor, and the two that change places.
            let value = |dims: &[usize], turned: bool, elements: &[f64]| {
                let (dims, elements) =
                    if turned && batch_first { turn(dims, elements) } else { (dims.to_vec(), elements.to_vec()) };
                tensor(&dims, elements.into_iter().map(of).collect::<Vec<_>>())
            };
            let state = [directions, batch, hidden];
            let initial = |k: usize| {
                let zeros = vec![0.0; state.iter().product()];
                value(&state, true, self.initial[k].as_ref().unwrap_or(&zeros))
            };
            let [x, w, r, biases] = &self.inputs;
            let lens = self.lens.clone().unwrap_or(vec![steps as i32; batch]);
            let zeros = vec![0.0; directions * 3 * hidden];
            let inputs = [
                value(&[steps, batch, size], true, x),
                value(&[directions, gates * hidden, size], false, w),
                value(&[directions, gates * hidden, hidden], false, r),
                value(&[directions, 2 * gates * hidden], false, biases),
                tensor(&[batch], lens),
                initial(0),
                initial(1),
                value(&[directions, 3 * hidden], false, self.peepholes.as_ref().unwrap_or(&zeros)),
            ];
            let given: [(&str, Attribute); 8] = std::array::from_fn(|k| match (k, attributes.get(k.wrapping_sub(2))) {
                (0, _) => int("layout", batch_first.into()),
                (1, _) => string(
                    "direction",
                    match self.reversed {
                        [false] => "forward",
                        [true] => "reverse",
                        _ => "bidirectional",
                    },
                ),
                (_, Some(given)) => given.clone(),
                _ => int("hidden_size", hidden as i64),
            });
            let [x, w, r, biases, lens, h, c, p] = &inputs;
            let outputs = match gates {
                4 => outputs(name, 22, given, [x, w, r, biases, lens, h, c, p]),
                _ => outputs(name, 22, given, [x, w, r, biases, lens, h]),
            };
            let shapes = [&[steps, directions, batch, hidden][..], &state, &state];
            for ((output, want), dims) in outputs.iter().zip(&want).zip(shapes) {
                let want = match (batch_first, dims) {
                    (false, _) => want.clone(),
                    (true, [_, _, _]) => turn(dims, want).1,
                    // [steps, directions, batch, ..] becomes [batch, steps, directions, ..].
                    (true, _) => turn(&[steps * directions, batch, hidden], want).1,
                };
                let own: Vec<f64> = output.tensor().unwrap().as_slice::<T>().unwrap().iter().map(|x| to(*x)).collect();
                assert_eq!(own.len(), want.len());
                for (own, want) in own.iter().zip(&want) {
                    assert!((own - want).abs() <= most * want.abs().max(1.0), "{own} {want}, {name}, {batch_first}");
                }
            }
        }
    }
}

/// The first two dimensions change places.
fn turn(dims: &[usize], elements: &[f64]) -> (Vec<usize>, Vec<f64>) {
    let (a, b, inner) = (dims[0], dims[1], dims[2]);
    let at = |k: usize| (k / inner % a * b + k / inner / a) * inner + k % inner;
    (vec![b, a, inner], (0..elements.len()).map(|k| elements[at(k)]).collect())
}

const FORWARD: &[bool] = &[false];
const REVERSE: &[bool] = &[true];
const BOTH: &[bool] = &[false, true];

#[test]
fn directions() {
    for (gates, reversed) in [1, 3, 4].into_iter().flat_map(|gates| [FORWARD, REVERSE, BOTH].map(|of| (gates, of))) {
        for sizes in [[3, 2, 4, 5], [1, 1, 1, 1], [4, 3, 2, 33]] {
            Plain::new(gates, sizes, reversed).check([]);
        }
    }
}

/// An entry without steps keeps its state, and has zeros as outputs.
#[test]
fn lengths_and_initial_states() {
    for (gates, reversed) in [1, 3, 4].into_iter().flat_map(|gates| [FORWARD, REVERSE, BOTH].map(|of| (gates, of))) {
        let state = || Some(numbers(reversed.len() * 4 * 3, 9));
        let initial = [state(), state().filter(|_| gates == 4)];
        let lens = Some(vec![2, 5, 0, 1]);
        Plain { lens, initial, ..Plain::new(gates, [5, 4, 2, 3], reversed) }.check([]);
    }
}

#[test]
fn peepholes_and_coupled_gates() {
    let initial = || [None, Some(numbers(2 * 2 * 3, 9))];
    let peepholes = || Some(numbers(2 * 3 * 3, 8));
    let new = || Plain::new(4, [4, 2, 2, 3], BOTH);
    Plain { peepholes: peepholes(), initial: initial(), ..new() }.check([]);
    Plain { peepholes: peepholes(), coupled: true, initial: initial(), ..new() }.check([int("input_forget", 1)]);
}

#[test]
fn the_reset_gate_comes_after_the_product() {
    let initial = [Some(numbers(2 * 2 * 3, 9)), None];
    let new = Plain::new(3, [4, 2, 2, 3], BOTH);
    Plain { linear_before_reset: true, initial, ..new }.check([int("linear_before_reset", 1)]);
}

/// The threshold bounds what every function gets: also the cell, before the last one of an LSTM.
#[test]
fn clipped() {
    for gates in [1, 3, 4] {
        let initial = [None, Some(vec![2.0; 6]).filter(|_| gates == 4)];
        Plain { clip: Some(0.25), initial, ..Plain::new(gates, [4, 2, 2, 3], FORWARD) }.check([float("clip", 0.25)]);
    }
}

/// Each function takes the next parameters, if it has some. Names are not case sensitive.
#[test]
fn functions_and_their_parameters() {
    let names = strings("activations", &["AFFINE", "softsign", "LeakyRelu", "hardsigmoid", "Elu", "Relu"]);
    let alpha = ("activation_alpha", Attribute::Floats(vec![0.5, 0.25, 0.125]));
    let beta = ("activation_beta", Attribute::Floats(vec![0.75]));
    let functions: Vec<Function> = vec![
        |x| 0.5 * x + 0.75,
        |x| x / (1.0 + x.abs()),
        |x| if x < 0.0 { 0.25 * x } else { x },
        |x| (0.125 * x + 0.5).clamp(0.0, 1.0),
        |x| if x < 0.0 { x.exp_m1() } else { x },
        |x| x.max(0.0),
    ];
    Plain { functions: Some(functions), ..Plain::new(4, [3, 2, 2, 3], BOTH) }.check([names, alpha, beta]);
    let names = strings("activations", &["ThresholdedRelu", "ScaledTanh"]);
    let functions: Vec<Function> = vec![|x| if x < 1.0 { 0.0 } else { x }, f64::tanh];
    Plain { functions: Some(functions), ..Plain::new(3, [3, 2, 2, 3], FORWARD) }.check([names]);
    let functions: Vec<Function> = vec![|x| x.exp().ln_1p()];
    Plain { functions: Some(functions), ..Plain::new(1, [3, 2, 2, 3], FORWARD) }
        .check([strings("activations", &["SOFTPLUS"])]);
}

/// Zeros stand for what is left out; empty sequences, batches and states have outputs too.
#[test]
fn left_out_and_empty() {
    let (x, w, r) = (tensor(&[1, 1, 1], [1f32]), tensor(&[1, 1, 1], [0.5f32]), tensor(&[1, 1, 1], [3f32]));
    let h = tensor(&[1, 1, 1], [0.5f32.tanh()]);
    let relu = strings("activations", &["Relu"]);
    run("RNN", 1, [relu.clone()], [&x, &w, &r])
        .gives_all([tensor(&[1, 1, 1, 1], [0.5f32]), tensor(&[1, 1, 1], [0.5f32])]);
    let near = |value: &Value| (value.tensor().unwrap().as_slice::<f32>().unwrap()[0] - 0.5f32.tanh()).abs() < 1e-7;
    assert!(near(&h) && outputs("RNN", 7, [], [&x, &w, &r]).iter().all(near));
    let floats = |shape: &[usize]| tensor(shape, vec![0f32; shape.iter().product()]);
    run("RNN", 14, [], [&floats(&[0, 2, 1]), &w, &r]).gives_all([floats(&[0, 1, 2, 1]), floats(&[1, 2, 1])]);
    run("RNN", 14, [], [&floats(&[2, 0, 1]), &w, &r]).gives_all([floats(&[2, 1, 0, 1]), floats(&[1, 0, 1])]);
    run("LSTM", 14, [], [&x, &floats(&[1, 0, 1]), &floats(&[1, 0, 0])]).gives_all([
        floats(&[1, 1, 1, 0]),
        floats(&[1, 1, 0]),
        floats(&[1, 1, 0]),
    ]);
    run("RNN", 22, [relu], [&floats(&[1, 1, 0]), &floats(&[1, 1, 0]), &r])
        .gives_all([floats(&[1, 1, 1, 1]), floats(&[1, 1, 1])]);
}

#[test]
fn refusals() {
    let (x, w, r) = (tensor(&[2, 1, 1], [1f32; 2]), tensor(&[1, 1, 1], [0.5f32]), tensor(&[1, 1, 1], [3f32]));
    let biases = tensor(&[1, 2], [0f32; 2]);
    run("RNN", 7, [], [&x, &w, &tensor(&[1, 2, 2], [0f32; 4])]).fails("\"W\" has shape [1, 1, 1]: [1, 2, 1] is needed");
    run("RNN", 7, [int("hidden_size", 2)], [&x, &w, &r]).fails("\"W\" has shape [1, 1, 1]: [1, 2, 1] is needed");
    run("RNN", 7, [], [&biases, &w, &r]).fails("\"X\" has shape [1, 2]: a rank of 3 is needed");
    for len in [-1, 3] {
        let lens = tensor(&[1], [len]);
        let error =
            run("RNN", 7, [], [&x, &w, &r, &biases, &lens]).fails(&format!("sequence_lens[0] is {len}: allowed 0..=2"));
        assert_eq!(error.place().position.as_deref(), Some(&[0][..]));
    }
    run("RNN", 7, [float("clip", -1.0)], [&x, &w, &r]).fails("clip is -1: a threshold is not negative");
    run("RNN", 7, [float("clip", f32::NAN)], [&x, &w, &r]).fails("clip is NaN: a threshold is not negative");
    let more = ("activation_alpha", Attribute::Floats(vec![1.0, 2.0]));
    run("RNN", 7, [more], [&x, &w, &r]).fails("activation_alpha has 2 entries more than the functions have parameters");
}

#[test]
fn shapes() {
    let (x, w, r) = ("float[T, N, 5]", "float[1, 12, 5]", "float[1, 12, 3]");
    infer("LSTM", 7, [int("hidden_size", 3)], [x, w, r]).gives_all(["[T, 1, N, 3]", "[1, N, 3]", "[1, N, 3]"]);
    infer("LSTM", 1, [], [x, w, "float"]).gives_all(["[T, 1, N, 3]", "[1, N, 3]", "[1, N, 3]"]);
    infer("LSTM", 22, [int("layout", 1)], [x, w, r]).gives_all(["[T, N, 1, 3]", "[T, 1, 3]", "[T, 1, 3]"]);
    let both = [string("direction", "bidirectional")];
    infer("GRU", 14, both.clone(), [x, "float[2, 9, 5]", "float[2, 9, 3]", "float[2, 18]"])
        .gives_all(["[T, 2, N, 3]", "[2, N, 3]"]);
    infer("RNN", 14, both, [x, "float", "float[2, H, H]", "-", "int32[4]"]).gives_all(["[T, 2, 4, H]", "[2, 4, H]"]);
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
