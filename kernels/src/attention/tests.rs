use super::*;
use crate::lanes::{MapSome, Softmax};
use crate::testing::at_each_level;
use crate::testing::sized;
use proptest::prelude::*;

/// An attention in numbers of its own.
#[derive(Debug, Clone)]
struct Example {
    sizes: Sizes,
    flat: bool,
    left: Option<usize>,
    right: Option<usize>,
    past: usize,
    valid: Option<Vec<usize>>,
    /// The column stride of a bias for all batches and heads, and its columns.
    bias: Option<(usize, usize)>,
    softcap: f32,
    kept: Stage,
    threads: usize,
}

fn examples() -> impl Strategy<Value = Example> {
    let many = sized(150, 4);
    let sizes = (
        (1usize..3, 1usize..3, 1usize..4),
        prop_oneof![1usize..6, Just(1), Just(many)],
        prop_oneof![0usize..9, 30usize..sized(100, 40), Just(sized(300, 33))],
        (0usize..9, 0usize..9),
    );
    let window = || prop_oneof![Just(None), (0usize..50).prop_map(Some)];
    let stage = prop_oneof![Just(Stage::Scores), Just(Stage::Capped), Just(Stage::Biased), Just(Stage::Weights)];
    let valid = prop::option::of((0usize..1000, 0usize..1000));
    let bias = prop::option::of((0usize..2, 0usize..1000));
    let rest = (any::<bool>(), window(), window(), 0usize..20, valid, bias, prop_oneof![Just(0f32), Just(2.0)]);
    (sizes, rest, stage, 1usize..4).prop_map(|(sizes, rest, kept, threads)| {
        let ((batch, heads, group), queries, keys, (size, value_size)) = sizes;
        let (flat, left, right, past, valid, bias, softcap) = rest;
        Example {
            sizes: Sizes { batch, heads, group, queries, keys, size, value_size },
            flat,
            left,
            right,
            past,
            valid: valid.map(|(a, b)| vec![a % (keys + 1), b % (keys + 1)]),
            bias: bias.map(|(column, columns)| (column, if column == 1 { columns % (keys + 1) } else { keys })),
            softcap,
            kept,
            threads,
        }
    })
}

/// Numbers that repeat late.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919 + seed * 104_729) % 1009) as f32 / 500.0 - 1.0).collect()
}

impl Example {
    fn layout(&self, heads: usize, rows: usize, size: usize) -> Layout {
        match self.flat {
            true => Layout { batch: rows * heads * size, head: size, row: heads * size },
            false => Layout { batch: heads * rows * size, head: rows * size, row: size },
        }
    }

    /// Whether a query sees a key, by the bias too.
    fn counts(&self, batch: usize, query: usize, key: usize, bias: &[f32]) -> bool {
        let Sizes { queries, keys, .. } = self.sizes;
        let valid = self.valid.as_ref().map_or(keys, |valid| valid[batch]) as i64;
        let past = if self.valid.is_some() { valid - queries as i64 } else { self.past as i64 };
        let (position, at) = (past + query as i64, key as i64);
        at < valid
            && self.left.is_none_or(|left| at >= position - left as i64)
            && self.right.is_none_or(|right| at <= position + right as i64)
            && self.bias.is_none_or(|(column, columns)| {
                let width = if column == 1 { columns } else { 1 };
                key < columns && bias[query * width + key * column] != f32::NEG_INFINITY
            })
    }

    /// The output and the scores after a stage, by plain loops and by the kernel: at each level, and with threads, which have the
    /// level of the processor.
    fn check(&self) {
        let Sizes { batch, heads, group, queries, keys, size, value_size } = self.sizes;
        let queried = heads * group;
        let q = numbers(batch * queried * queries * size, 1);
        let (k, mut v) = (numbers(batch * heads * keys * size, 2), numbers(batch * heads * keys * value_size, 3));
        let (column, columns) = self.bias.unwrap_or((0, keys));
        let width = if column == 1 { columns } else { 1 };
        let mut bias = numbers(queries * width, 4);
        bias.iter_mut().step_by(3).for_each(|bias| *bias = f32::NEG_INFINITY);
        let layouts =
            [self.layout(queried, queries, size), self.layout(heads, keys, size), self.layout(heads, keys, value_size)];
        let [of_q, of_k, of_v] = layouts;
        // What nobody sees holds anything.
        for at in 0..batch {
            for key in (0..keys).filter(|key| (0..queries).all(|query| !self.counts(at, query, *key, &bias))) {
                for head in 0..heads {
                    v[of_v.at(at, head, key)..][..value_size].fill(f32::NAN);
                }
            }
        }
        let of_out = self.layout(queried, queries, value_size);
        let mut want = vec![0f32; batch * queried * queries * value_size];
        let mut want_kept = vec![0f32; batch * queried * queries * keys];
        for (at, kept) in want_kept.chunks_exact_mut(keys.max(1)).enumerate() {
            let (query, head, batch) = (at % queries, at / queries % queried, at / queries / queried);
            let q = &q[of_q.at(batch, head, query)..][..size];
            let mut scores: Vec<f32> = (0..keys)
                .map(|key| {
                    let k = &k[of_k.at(batch, head / group, key)..][..size];
                    let blocks = q.chunks(gemm::BLOCK).zip(k.chunks(gemm::BLOCK));
                    let sum =
                        |(q, k): (&[f32], &[f32])| q.iter().zip(k).fold(0.0, |sum, (q, k)| (q * 0.5).mul_add(*k, sum));
                    blocks.map(sum).sum::<f32>()
                })
                .collect();
            let keep = |stage, scores: &[f32], kept: &mut [f32]| {
                if self.kept == stage {
                    kept.copy_from_slice(scores);
                }
            };
            keep(Stage::Scores, &scores, kept);
            if self.softcap != 0.0 {
                let tanh = crate::functions::tanh::<f32>;
                scores.iter_mut().for_each(|score| *score = self.softcap * tanh(*score / self.softcap));
            }
            keep(Stage::Capped, &scores, kept);
            let counts: Vec<bool> = (0..keys).map(|key| self.counts(batch, query, key, &bias)).collect();
            for (key, (score, counts)) in scores.iter_mut().zip(&counts).enumerate() {
                let bias = if self.bias.is_some() && *counts { bias[query * width + key * column] } else { 0.0 };
                *score = if *counts { *score + bias } else { f32::NEG_INFINITY };
            }
            keep(Stage::Biased, &scores, kept);
            let mut weights = vec![0.0; keys];
            if counts.contains(&true) {
                Softmax.map(scores.len(), &scores, &mut weights, None).unwrap();
            }
            keep(Stage::Weights, &weights, kept);
            let out = &mut want[of_out.at(batch, head, query)..][..value_size];
            for first in (0..keys).step_by(gemm::BLOCK) {
                let mut sums = vec![0.0; value_size];
                for key in (first..keys.min(first + gemm::BLOCK)).filter(|key| counts[*key]) {
                    let v = &v[of_v.at(batch, head / group, key)..][..value_size];
                    sums.iter_mut().zip(v).for_each(|(sum, v)| *sum = weights[key].mul_add(*v, *sum));
                }
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
            }
        }
        let rows = Heads { elements: &bias, layout: Layout { batch: 0, head: 0, row: width } };
        let attention = Attention {
            sizes: self.sizes,
            q: Heads { elements: &q, layout: of_q },
            k: Heads { elements: &k, layout: of_k },
            v: Heads { elements: &v, layout: of_v },
            scale: 0.5,
            softcap: self.softcap,
            sight: Sight { left: self.left, right: self.right, past: self.past, valid: self.valid.as_deref() },
            bias: self.bias.map(|_| Bias { rows, column, columns }),
            round: None,
            written: None,
            out: of_out,
        };
        let run = |threads| {
            let resources = Resources { threads, stop: None };
            let plan = attention.plan(resources);
            let mut scratch = vec![f32::NAN; plan.scratch()];
            let (mut out, mut kept) = (vec![f32::NAN; want.len()], vec![f32::NAN; want_kept.len()]);
            plan.run(&mut out, Some((self.kept, &mut kept)), &mut scratch, resources).unwrap();
            assert_eq!(kept, want_kept);
            assert_eq!(out, want);
            out.fill(f32::NAN);
            plan.run(&mut out, None, &mut scratch, resources).unwrap();
            assert_eq!(out, want, "without scores");
        };
        at_each_level(|| run(1));
        run(self.threads);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sized(100, 2)))]

    #[test]
    fn attention_equals_plain_loops(example in examples()) {
        example.check();
    }
}

/// More keys and numbers than a product takes at once, and several blocks.
#[test]
fn large_attention() {
    for (queries, keys, size) in sized(&[(300, 1100, 5), (20, 500, 400), (1, 2000, 64), (3, 40, 1024)][..], &[]) {
        let sizes = Sizes { batch: 1, heads: 1, group: 2, queries: *queries, keys: *keys, size: *size, value_size: 3 };
        let example = Example {
            sizes,
            flat: false,
            left: Some(700),
            right: Some(0),
            past: 400,
            valid: None,
            bias: None,
            softcap: 0.0,
            kept: Stage::Weights,
            threads: 2,
        };
        example.check();
    }
}

#[test]
fn a_recurrence_equals_plain_loops() {
    let (batch, tokens, heads, group, size, value_size) = (2, sized(70, 3), 2, 3, 4, sized(37, 5));
    let [q, k, v] = [(group * size, 1), (size, 2), (value_size, 3)]
        .map(|(each, seed)| numbers(batch * tokens * heads * each, seed));
    for (of_each, betas) in [(true, heads), (false, 1)] {
        let decay = numbers(batch * tokens * heads * if of_each { size } else { 1 }, 4);
        let beta = numbers(batch * tokens * betas, 5);
        let first = numbers(batch * heads * size * value_size, 6);
        let (mut want_state, mut want) = (first.clone(), vec![0f32; batch * tokens * heads * group * value_size]);
        for at in 0..batch * tokens * heads {
            let (head, token, b) = (at % heads, at / heads, at / heads / tokens);
            let state = &mut want_state[(b * heads + head) * size * value_size..][..size * value_size];
            for i in 0..size {
                let decay = if of_each { decay[at * size + i] } else { decay[at] };
                let factor = crate::functions::exp(decay);
                state[i * value_size..][..value_size].iter_mut().for_each(|number| *number *= factor);
            }
            for j in 0..value_size {
                let key = |i: usize| k[at * size + i];
                let kept =
                    (0..size).fold(v[at * value_size + j], |w, i| (-key(i)).mul_add(state[i * value_size + j], w));
                let w = kept * beta[token * betas + head.min(betas - 1)];
                for i in 0..size {
                    state[i * value_size + j] = key(i).mul_add(w, state[i * value_size + j]);
                }
                for g in 0..group {
                    let q = &q[(at * group + g) * size..][..size];
                    let sum = (0..size).fold(0.0, |sum, i| q[i].mul_add(state[i * value_size + j], sum));
                    want[(at * group + g) * value_size + j] = sum * 0.5;
                }
            }
        }
        let decay = Some(Decay { elements: &decay, of_each });
        let (q, k, v, beta) = (&*q, &*k, &*v, Some(&*beta));
        let of = Recurrence { batch, tokens, heads, group, size, value_size, q, k, v, decay, beta, scale: 0.5 };
        let check = |threads| {
            let resources = Resources { threads, stop: None };
            let (mut state, mut out) = (first.clone(), vec![f32::NAN; want.len()]);
            let mut scratch = vec![0.0; of.scratch(resources)];
            of.run(&mut state, &mut out, &mut scratch, resources).unwrap();
            assert_eq!(state, want_state);
            assert_eq!(out, want);
        };
        at_each_level(|| check(1));
        check(3);
    }
}

/// Attention as nodes compute it: products, a softmax between them, nothing left out.
#[test]
fn written_attention_equals_its_steps() {
    for queries in [1, 3, sized(140, 3)] {
        for (factors, key_rows, group) in [
            ([None; 2], false, 1),
            ([None; 2], true, 2),
            ([Some(0.3), None], false, 2),
            ([Some(0.3), Some(0.7)], true, 1),
        ] {
            check_written(queries, factors, key_rows, group);
        }
    }
}

fn check_written(queries: usize, factors: [Option<f32>; 2], key_rows: bool, group: usize) {
    let (heads, keys, size, value_size) = (2, sized(70, 5), 5, 9);
    let q = numbers(heads * group * queries * size, 1);
    let [k, v] = [(size, 2), (value_size, 3)].map(|(each, seed)| numbers(heads * keys * each, seed));
    let mut bias = numbers(queries * keys, 4);
    bias.iter_mut().step_by(3).for_each(|bias| *bias = f32::NEG_INFINITY);
    bias[..keys].fill(f32::NEG_INFINITY);
    let [q_factor, k_factor] = factors.map(|factor| factor.unwrap_or(1.0));
    let mut want = vec![0f32; heads * group * queries * value_size];
    for (at, out) in want.chunks_exact_mut(value_size).enumerate() {
        let (head, query) = (at / queries / group, at % queries);
        let score = |key: usize| {
            let k = |i: usize| k[head * size * keys + if key_rows { key * size + i } else { i * keys + key }];
            let sum = (0..size).fold(0.0, |sum, i| (q[at * size + i] * q_factor).mul_add(k(i) * k_factor, sum));
            sum / 3.0 + bias[query * keys + key]
        };
        let scores: Vec<f32> = (0..keys).map(score).collect();
        let mut weights = vec![0.0; keys];
        Softmax.map(keys, &scores, &mut weights, None).unwrap();
        weights.iter_mut().filter(|weight| weight.is_nan()).for_each(|weight| *weight = 0.25);
        for (j, out) in out.iter_mut().enumerate() {
            let value = |key: usize| v[(head * keys + key) * value_size + j];
            *out = (0..keys).fold(0.0, |sum, key| weights[key].mul_add(value(key), sum));
        }
    }
    let rows = |rows: usize, row: usize| Layout { batch: 0, head: rows * row, row };
    let attention = Attention {
        sizes: Sizes { batch: 1, heads, group, queries, keys, size, value_size },
        q: Heads { elements: &q, layout: rows(queries, size) },
        k: Heads { elements: &k, layout: if key_rows { rows(keys, size) } else { rows(size, keys) } },
        v: Heads { elements: &v, layout: rows(keys, value_size) },
        scale: 1.0,
        softcap: 0.0,
        sight: Sight::default(),
        bias: Some(Bias { rows: Heads { elements: &bias, layout: rows(0, keys) }, column: 1, columns: keys }),
        round: None,
        written: Some(Written { factors, key_rows, scale: Some(Scale::By(3.0)), nan: Some(0.25) }),
        out: rows(queries, value_size),
    };
    let check = |threads| {
        let resources = Resources { threads, stop: None };
        let plan = attention.plan(resources);
        let (mut out, mut scratch) = (vec![f32::NAN; want.len()], vec![f32::NAN; plan.scratch()]);
        plan.run(&mut out, None, &mut scratch, resources).unwrap();
        assert_eq!(out, want, "{queries} {factors:?} {key_rows} {group}");
    };
    at_each_level(|| check(1));
    check(3);
}
