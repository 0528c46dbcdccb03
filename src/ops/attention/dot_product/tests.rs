use crate::operator::Attribute;
use crate::ops::testing::{infer, int, outputs, run, tensor};
use crate::value::Value;
use half::{bf16, f16};

const INF: f32 = f32::INFINITY;

fn float(name: &'static str, value: f32) -> (&'static str, Attribute) {
    (name, Attribute::Float(value))
}

/// Two queries that fit all keys alike, and three values: weights are even among the keys that count.
fn even() -> [Value; 3] {
    let (q, k) = (tensor(&[1, 1, 2, 1], [0f32; 2]), tensor(&[1, 1, 3, 1], [1f32; 3]));
    [q, k, tensor(&[1, 1, 3, 1], [1f32, 3., 8.])]
}

fn y(values: [f32; 2]) -> Value {
    tensor(&[1, 1, 2, 1], values)
}

#[test]
fn keys_that_count() {
    let [q, k, v] = &even();
    run("Attention", 23, [], [q, k, v]).gives(y([4., 4.]));
    run("Attention", 23, [int("is_causal", 1)], [q, k, v]).gives(y([1., 2.]));
    run("Attention", 25, [int("left_window_size", 0)], [q, k, v]).gives(y([4., 5.5]));
    let both = [int("left_window_size", 0), int("right_window_size", 1)];
    run("Attention", 25, both, [q, k, v]).gives(y([2., 5.5]));
    let causal = [int("is_causal", 1), int("right_window_size", 1)];
    run("Attention", 25, causal, [q, k, v]).gives(y([1., 2.]));
}

#[test]
fn masks() {
    let [q, k, v] = &even();
    let bools = tensor(&[2, 3], [true, false, true, false, false, false]);
    run("Attention", 23, [], [q, k, v, &bools]).gives(y([4.5, 0.]));
    let floats = tensor(&[3], [-INF, 0., 0.]);
    run("Attention", 23, [], [q, k, v, &floats]).gives(y([5.5, 5.5]));
    run("Attention", 24, [], [q, k, v, &tensor(&[2], [0f32; 2])]).gives(y([2., 2.]));
    run("Attention", 23, [], [q, k, v, &tensor(&[1], [0f32])]).gives(y([4., 4.]));
    run("Attention", 24, [], [q, k, v, &tensor(&[1], [0f32])]).gives(y([1., 1.]));
    run("Attention", 23, [], [q, k, v, &tensor(&[], [7i8])]).gives(y([4., 4.]));
    run("Attention", 23, [], [q, k, v, &tensor(&[2], [0f32; 2])])
        .fails("can't be broadcast to the scores, [1, 1, 2, 3]");
    run("Attention", 24, [], [q, k, v, &tensor(&[3, 3], [0f32; 9])]).fails("its last dimension is not a shorter one");
}

/// What doesn't count may hold anything.
#[test]
fn nan_that_does_not_count() {
    let [q, k, _] = &even();
    let v = tensor(&[1, 1, 3, 1], [1f32, f32::NAN, 8.]);
    run("Attention", 23, [], [q, k, &v, &tensor(&[3], [true, false, true])]).gives(y([4.5, 4.5]));
    let k = tensor(&[1, 1, 3, 1], [1f32, INF, f32::NAN]);
    run("Attention", 23, [int("is_causal", 1)], [&tensor(&[1, 1, 1, 1], [2f32]), &k, &v])
        .gives(tensor(&[1, 1, 1, 1], [1f32]));
}

/// Heads of queries share those of keys; rank 3 has them side by side.
#[test]
fn groups_and_rank_3() {
    let (q, k) = (tensor(&[1, 2, 4], [0f32; 8]), tensor(&[1, 1, 2], [0f32; 2]));
    let v = tensor(&[1, 1, 4], [1f32, 2., 3., 4.]);
    let heads = [int("q_num_heads", 4), int("kv_num_heads", 2)];
    let row = [1f32, 2., 1., 2., 3., 4., 3., 4.];
    let all = outputs("Attention", 23, heads, [&q, &k, &v]);
    assert_eq!(all[0], tensor(&[1, 2, 8], [row, row].concat()));
    assert_eq!(all[1..3], [tensor(&[1, 2, 1, 1], [0f32; 2]), tensor(&[1, 2, 1, 2], [1f32, 2., 3., 4.])]);
}

#[test]
fn the_past() {
    let (q, k) = (tensor(&[1, 1, 1, 1], [0f32]), tensor(&[1, 1, 1, 1], [1f32]));
    let (v, past) = (tensor(&[1, 1, 1, 1], [5f32]), tensor(&[1, 1, 2, 1], [1f32, 3.]));
    let mask = tensor(&[3], [0f32; 3]);
    let all = outputs("Attention", 23, [int("is_causal", 1)], [&q, &k, &v, &mask, &past, &past]);
    let scores = tensor(&[1, 1, 1, 3], [0f32; 3]);
    let kept = |last| tensor(&[1, 1, 3, 1], [1f32, 3., last]);
    assert_eq!(*all, [tensor(&[1, 1, 1, 1], [3f32]), kept(1.), kept(5.), scores]);
}

/// Each stage of the scores 0, 2 and a masked one.
#[test]
fn stages() {
    let (q, k) = (tensor(&[1, 1, 1, 1], [1f32]), tensor(&[1, 1, 3, 1], [0f32, 2., 4.]));
    let mask = tensor(&[3], [1f32, 0., -INF]);
    let stage = |mode| {
        let attributes = [int("qk_matmul_output_mode", mode), float("softcap", 1e30), float("scale", 1.0)];
        outputs("Attention", 25, attributes, [&q, &k, &k, &mask]).remove(3)
    };
    let row = |values: [f32; 3]| tensor(&[1, 1, 1, 3], values);
    assert_eq!(stage(0), row([0., 2., 4.]));
    assert_eq!(stage(2), row([1., 2., -INF]));
    let weights = stage(3);
    let weights = weights.tensor().unwrap().as_slice::<f32>().unwrap();
    assert!((weights[0] - 0.268_941_4).abs() < 1e-6 && weights[2] == 0.0, "{weights:?}");
    let capped = [int("qk_matmul_output_mode", 1), float("softcap", 1.0), float("scale", 1.0)];
    let capped = outputs("Attention", 25, capped, [&q, &k, &k, &mask]).remove(3);
    let capped = capped.tensor().unwrap().as_slice::<f32>().unwrap();
    assert!((capped[1] - 0.964_027_6).abs() < 1e-6, "{capped:?}");
}

#[test]
fn other_types() {
    let halves =
        |shape: &[usize], values: &[f32]| tensor(shape, values.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>());
    let (q, k) = (halves(&[1, 1, 1, 1], &[0.]), halves(&[1, 1, 2, 1], &[1., 2.]));
    let v = halves(&[1, 1, 2, 1], &[1., 2.]);
    run("Attention", 23, [], [&q, &k, &v]).gives(halves(&[1, 1, 1, 1], &[1.5]));
    // Rounded to float16, the mask excludes the first key.
    run("Attention", 23, [], [&q, &k, &v, &tensor(&[2], [-1e9f32, 0.])]).gives(halves(&[1, 1, 1, 1], &[2.]));
    let doubles = tensor(&[1, 1, 2, 1], [1f64, 2.]);
    run("Attention", 23, [int("softmax_precision", 1)], [&q, &k, &doubles]).gives(halves(&[1, 1, 1, 1], &[1.5]));
    let q = tensor(&[1, 1, 1, 1], [0f64]);
    run("Attention", 23, [], [&q, &doubles, &doubles]).gives(tensor(&[1, 1, 1, 1], [1.5f64]));
}

/// Casts to the precision of the softmax and back. Between them it is rounded once.
#[test]
fn a_narrow_softmax() {
    let (q, v) = (tensor(&[1, 1, 1, 1], [1f32]), tensor(&[1, 1, 2, 1], [0f32, 1.]));
    let run = |precision, score: f32, mode| {
        let k = tensor(&[1, 1, 2, 1], [0., score]);
        let attributes = [int("softmax_precision", precision), int("qk_matmul_output_mode", mode), float("scale", 1.0)];
        let all = outputs("Attention", 23, attributes, [&q, &k, &v]);
        let row = |k: usize| all[k].tensor().unwrap().as_slice::<f32>().unwrap().to_vec();
        (row(0), row(3))
    };
    let share = |score: f64| 1.0 / (1.0 + (-score).exp());
    // Neither type has 0.1.
    let score = f16::from_f32(0.1).to_f64();
    let weights = [-score, score].map(|score| f16::from_f64(share(score)).to_f32());
    assert_eq!(run(10, 0.1, 3), (vec![weights[1]], weights.to_vec()));
    let score = bf16::from_f32(0.1).to_f64();
    let weights = [-score, score].map(|score| bf16::from_f64(share(score)).to_f32());
    assert_eq!(run(16, 0.1, 3), (vec![weights[1]], weights.to_vec()));
    // The scores themselves are those before the cast.
    assert_eq!(run(10, 0.1, 2).1, [0., 0.1]);
    // In float16 this is infinite, and its distance to itself NaN.
    assert!(run(10, 65520., 3).0[0].is_nan());
    assert_eq!(run(10, 65504., 3).0, [1.]);
}

#[test]
fn nothing() {
    let none = tensor(&[1, 1, 0, 1], Vec::<f32>::new());
    let q = tensor(&[1, 1, 2, 1], [1f32; 2]);
    run("Attention", 23, [], [&q, &none, &none]).gives(y([0., 0.]));
    run("Attention", 23, [], [&none, &q, &q]).gives(&none);
    let flat = tensor(&[1, 1, 2, 0], Vec::<f32>::new());
    run("Attention", 23, [], [&flat, &flat, &q]).gives(y([1., 1.]));
}

#[test]
fn refusals() {
    let [q, k, v] = &even();
    let flat = tensor(&[1, 2, 3], [0f32; 6]);
    run("Attention", 23, [], [&flat, &flat, &flat]).fails("with rank 3 the attribute q_num_heads is needed");
    let heads = |q, k| [int("q_num_heads", q), int("kv_num_heads", k)];
    run("Attention", 23, heads(2, 1), [&flat, &flat, &flat])
        .fails("q_num_heads is 2: it must divide the last dimension");
    run("Attention", 23, heads(3, 1), [&flat, &flat, &flat]).fails("the head size of \"K\" is 3, and that of \"Q\" 1");
    run("Attention", 25, heads(2, 1), [q, k, v]).fails("q_num_heads is 2, but \"Q\" of shape [1, 1, 2, 1] has 1 heads");
    run("Attention", 23, [], [q, k, q]).fails("the sequence length of \"V\" is 2, and that of \"K\" 3");
    run("Attention", 23, [], [q, &flat, v]).fails("\"K\" has shape [1, 2, 3], but \"Q\" has rank 4");
    run("Attention", 25, [int("left_window_size", -2)], [q, k, v]).fails("left_window_size is -2: allowed are -1");
    run("Attention", 23, [int("qk_matmul_output_mode", 4)], [q, k, v])
        .fails("qk_matmul_output_mode is 4: allowed 0..=3");
    run("Attention", 23, [int("is_causal", 2)], [q, k, v]).fails("is_causal is 2: allowed 0, 1");
    run("Attention", 23, [int("softmax_precision", 7)], [q, k, v]).fails("softmax_precision is 7: allowed 1 (float32)");
    run("Attention", 23, [float("scale", -1.)], [q, k, v]).fails("scale is -1: its square root is needed");
    let mask = tensor(&[1], [0f32]);
    run("Attention", 23, [], [q, k, v, &mask, k]).fails("past_key and past_value must be given together");
    run("Attention", 23, [], [q, k, v, &mask, &flat, k])
        .fails("\"past_key\" has shape [1, 2, 3]: [1, 1, any, 1] is needed");
}

#[test]
fn inferred() {
    let q = "float[N, 4, T, 8]";
    infer("Attention", 23, [], [q, "float[N, 2, S, 8]", "float[N, 2, S, 5]"]).gives_all([
        "[N, 4, T, 5]",
        "[N, 2, S, 8]",
        "[N, 2, S, 5]",
        "[N, 4, T, S]",
    ]);
    let heads = [int("q_num_heads", 4), int("kv_num_heads", 2)];
    infer("Attention", 23, heads.clone(), ["float[N, T, 32]", "float[N, S, 16]", "float[N, S, 10]"])
        .gives("[N, T, 20]");
    infer("Attention", 23, heads, ["float[N, T, 30]", "float", "float"])
        .fails("q_num_heads is 4: it must divide the last dimension of \"Q\" [N, T, 30]");
    infer("Attention", 23, [], ["float[N, T, 32]", "float", "float"])
        .fails("with rank 3 the attribute q_num_heads is needed");
    infer("Attention", 23, [], [q, "float[N, 2, S, 7]", "float"])
        .fails("the head size of \"K\" is 7, and that of \"Q\" 8");
    infer("Attention", 23, [], [q, "float[N, 2, 3, 8]", "float[N, 2, 4, 5]"])
        .fails("the sequence length of \"V\" is 4, and that of \"K\" 3");
    infer("Attention", 23, [], [q, "float[N, S, 8]", "float"]).fails("\"K\" has shape [N, S, 8] of rank 3");
}
