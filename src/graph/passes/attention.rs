//! Fuses attention that exporters write as MatMul, Softmax and MatMul.

use super::fuse::{Fusion, fuse, outside};
use super::heads::Walk;
use super::pattern::{Found, Pattern};
use super::{PassContext, Readers, dtype, fact, integer};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::draft::{Draft, DraftNode};
use crate::operator::{Made, ScoreScale, Weighing};
use crate::value::{Dim, Fact};
use smallvec::SmallVec;

/// The product of values with weights made of scores, and the same without weights that are NaN.
macro_rules! weighed {
    ($($scores:literal),*) => {
        &[$(
            concat!("MatMul(Softmax(", $scores, "), v)"),
            concat!("MatMul(Where(IsNaN(Softmax(", $scores, ")), n, Softmax(", $scores, ")), v)"),
        )*]
    };
}

const PATTERNS: &[&str] = weighed![
    "MatMul(q, k)",
    "Add(MatMul(q, k), m)",
    "Mul(MatMul(q, k), f)",
    "Div(MatMul(q, k), d)",
    "Add(Mul(MatMul(q, k), f), m)",
    "Add(Div(MatMul(q, k), d), m)"
];

/// `MatMul(Softmax(MatMul(q, k) * f + m), v)`, where `f` and `m` may be missing: the scores of a few queries at a time, which
/// stay near the processor. Queries, keys and values are read where they are before nodes turn, repeat or multiply them, and
/// outputs are written where they are turned to.
pub(super) fn attention(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let is = |node: &DraftNode, name: &str| node.standard() == Some(name);
    if !draft.nodes.iter().any(|node| is(node, "Softmax")) {
        return Ok(());
    }
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let patterns: Vec<Pattern> = PATTERNS.iter().map(|text| Pattern::of(text)).collect::<Result<_>>()?;
    let products = draft.nodes.iter().enumerate().filter(|(_, node)| is(node, "MatMul"));
    let found = products.filter_map(|(at, _)| {
        patterns.iter().find_map(|pattern| fusion(pattern.find(at, draft, &readers)?, draft, &readers))
    });
    let mut fusions: Vec<Fusion> = found.collect();
    // One's output that is turned may be what another one reads.
    let mut taken = vec![false; draft.nodes.len()];
    fusions.retain(|fusion| {
        let is_free = fusion.nodes.iter().all(|at| taken.get(*at) == Some(&false));
        for at in fusion.nodes.iter().filter(|_| is_free) {
            taken.get_mut(*at).into_iter().for_each(|taken| *taken = true);
        }
        is_free
    });
    fuse(draft, fusions, context)
}

fn fusion(found: Found, draft: &Draft, readers: &Readers) -> Option<Fusion> {
    let nodes = || found.nodes.iter().filter_map(|at| draft.nodes.get(*at));
    let last = nodes().next_back()?;
    let Some(Made::Product(product)) = &last.operator else { return None };
    let made = |node: &DraftNode| node.operator.as_ref().is_some_and(|made| made.plain().is_some());
    let mut softmax = nodes().filter(|node| node.standard() == Some("Softmax"));
    let value = |name| found.value(name);
    let queries = fact(value("q")?, draft)?;
    let dtype = dtype(value("q")?, draft).filter(|dtype| matches!(dtype, DType::Float | DType::Double))?;
    if !nodes().all(made) || !softmax.all(|node| along_rows(node, draft)) {
        return None;
    }
    let walk = Walk { draft, readers };
    let (q, k, v) = (walk.factor(value("q")?), walk.factor(value("k")?), value("v")?);
    let (q_heads, mut k_heads, mut v_heads) = (walk.heads(q.of, false), walk.heads(k.of, true), walk.heads(v, true));
    if k_heads.group() != v_heads.group() {
        (k_heads, v_heads) = (walk.heads(k.of, false), walk.heads(v, false));
    }
    // The scores of one query are few.
    let is_single = queries.dims().and_then(|dims| dims.iter().nth_back(1)) == Some(&Dim::Fixed(1));
    if is_single && k_heads.heads.is_none() {
        return None;
    }
    let turned = last.outputs.first().copied().flatten().and_then(|id| walk.turned(id));
    let mut all = found.nodes.clone();
    all.extend([&q.nodes, &k.nodes, &q_heads.nodes, &k_heads.nodes, &v_heads.nodes].into_iter().flatten().copied());
    all.extend(turned);
    all.sort_unstable();
    let scale = value("f").map(|_| ScoreScale::Times).or_else(|| value("d").map(|_| ScoreScale::By));
    let mut inputs: SmallVec<_> = [q_heads.of, k_heads.of, v_heads.of].into_iter().collect();
    inputs.extend(["f", "d", "m", "n"].into_iter().filter_map(value));
    outside(&all, &mut inputs, draft);
    let weighing = Weighing {
        dtype,
        scale,
        bias: value("m").is_some(),
        nan: value("n").is_some(),
        heads: [q_heads.heads, k_heads.heads, v_heads.heads],
        factors: [q.factor, k.factor],
        turned: turned.is_some(),
    };
    Some(Fusion { operator: product.weighing(weighing)?, nodes: all, inputs })
}

/// Whether a softmax is along the last axis.
fn along_rows(softmax: &DraftNode, draft: &Draft) -> bool {
    let input = softmax.inputs.first().copied().flatten().and_then(|id| fact(id, draft));
    let rank = input.and_then(Fact::dims).map(<[_]>::len);
    let is_new = softmax.resolved.as_ref().is_some_and(|resolved| resolved.schema.since_version >= 13);
    match integer("axis", softmax).unwrap_or(if is_new { -1 } else { 1 }) {
        -1 => true,
        axis => rank.is_some_and(|rank| axis + 1 == rank as i64),
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::{Seen, run, stands_for};
    use crate::graph::testing::{self, Builder, load};
    use crate::graph::{Draft, Graph};
    use crate::operator::Attribute;
    use crate::ops::testing::tensor;
    use crate::value::{Dim, Fact, Value};

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|at| (at * 7919 % 1009) as f32 / 300.0 - 1.6).collect()
    }

    fn given(shape: &[usize]) -> Value {
        tensor(shape, numbers(shape.iter().product()))
    }

    /// What is done to the scores and the weights, with shapes of q, k, v and the bias.
    #[derive(Debug, Clone, Copy)]
    struct Example<'a> {
        scale: Option<&'a str>,
        bias: Option<&'a [usize]>,
        nan: bool,
        shapes: [&'a [usize]; 3],
    }

    impl Example<'_> {
        fn draft(&self, axis: i64) -> Draft {
            let mut builder = Builder::new();
            let dims = |shape: &[usize]| Some(shape.iter().map(|dim| Dim::Fixed(*dim)).collect());
            for (name, shape) in ["q", "k", "v"].iter().zip(self.shapes) {
                builder.shaped(name, Some(DType::Float.into()), dims(shape));
            }
            for (name, number) in [("factor", 0.3f32), ("zero", 0.0)] {
                builder.constant(name, tensor(&[], [number]));
            }
            let mut scores = "scores";
            builder.op("MatMul", &["q", "k"], scores);
            if let Some(scale) = self.scale {
                builder.op(scale, &[scores, "factor"], "scaled");
                scores = "scaled";
            }
            if let Some(bias) = self.bias {
                builder.shaped("m", Some(DType::Float.into()), dims(bias));
                builder.op("Add", &["m", scores], "biased");
                scores = "biased";
            }
            builder.op_with("Softmax", vec![("axis".to_string(), Attribute::Int(axis))], &[scores], "weights");
            let mut weights = "weights";
            if self.nan {
                builder.op("IsNaN", &["weights"], "nan");
                builder.op("Where", &["nan", "zero", "weights"], "numbers");
                weights = "numbers";
            }
            builder.op("MatMul", &[weights, "v"], "y");
            builder.output("y")
        }

        fn feeds(&self) -> Vec<Value> {
            self.shapes.iter().copied().chain(self.bias).map(given).collect()
        }

        fn graphs(&self) -> [Graph; 2] {
            [true, false].map(|optimize| load(self.draft(-1), optimize).unwrap())
        }
    }

    const SHAPES: [[&[usize]; 3]; 6] = [
        [&[2, 3, 40, 16], &[2, 3, 16, 70], &[2, 3, 70, 9]],
        [&[1, 2, 140, 5], &[1, 2, 5, 200], &[1, 2, 200, 9]],
        [&[3, 2, 4], &[3, 4, 65], &[3, 65, 4]],
        [&[7, 3], &[3, 5], &[5, 2]],
        [&[2, 4, 20, 3], &[4, 3, 6], &[2, 1, 6, 8]],
        [&[2, 2, 1], &[2, 1, 1], &[2, 1, 1]],
    ];

    #[test]
    fn no_bit_changes() {
        for shapes in SHAPES {
            for scale in [None, Some("Mul"), Some("Div")] {
                let [q, k, _] = shapes;
                let (rows, columns) = (q[q.len() - 2], k[k.len() - 1]);
                for bias in [None, Some(&[1][..]), Some(&[columns]), Some(&[rows, 1]), Some(&[rows, columns])] {
                    let example = Example { scale, bias, nan: bias.is_none(), shapes };
                    let [graph, plain] = example.graphs();
                    assert_eq!(stands_for(&graph).len(), 1, "{example:?}");
                    assert_eq!(run(&graph, &example.feeds(), None), run(&plain, &example.feeds(), None), "{example:?}");
                }
            }
        }
    }

    /// The weights that are NaN may be those of another softmax, along another axis.
    #[test]
    fn another_softmax() {
        for (axis, nodes) in [(-1, 1), (0, 7)] {
            let draft = || {
                let mut builder = Builder::new();
                for (name, shape) in [("q", [3, 2]), ("k", [2, 4]), ("v", [4, 5])] {
                    builder.shaped(name, Some(DType::Float.into()), Some(shape.map(Dim::Fixed).to_vec()));
                }
                let zero = builder.id("zero");
                builder.draft.constant(zero, Fact::constant(tensor(&[], [0f32])), None);
                builder.op("MatMul", &["q", "k"], "scores");
                for (name, axis) in [("looked at", -1), ("weights", axis)] {
                    builder.op_with("Softmax", vec![("axis".to_string(), Attribute::Int(axis))], &["scores"], name);
                }
                builder.op("IsNaN", &["looked at"], "nan");
                builder.op("Where", &["nan", "zero", "weights"], "numbers");
                builder.op("MatMul", &["numbers", "v"], "y");
                builder.output("y")
            };
            let feeds = [given(&[3, 2]), given(&[2, 4]), given(&[4, 5])];
            let [graph, plain] = [true, false].map(|optimize| load(draft(), optimize).unwrap());
            assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None), "{axis}");
            assert_eq!(graph.node_infos().len() == 1, nodes == 1, "{axis}");
        }
    }

    /// Nothing is left out: a weight of 0 times infinity is NaN, a row of -inf is NaN or what the model puts there.
    #[test]
    fn numbers_that_are_not_finite() {
        let infinity = f32::INFINITY;
        for nan in [false, true] {
            let shapes: [&[usize]; 3] = [&[20, 2], &[2, 3], &[3, 2]];
            let example = Example { scale: None, bias: Some(&[20, 3]), nan, shapes };
            let mut bias = numbers(60);
            bias[..6].copy_from_slice(&[-infinity, -infinity, -infinity, 0.0, -infinity, f32::NAN]);
            bias[6..9].copy_from_slice(&[infinity, 0.0, -infinity]);
            let values = tensor(&[3, 2], [1.0, infinity, 2.0, 3.0, f32::NAN, 5.0]);
            let feeds = [given(&[20, 2]), given(&[2, 3]), values, tensor(&[20, 3], bias)];
            let [graph, plain] = example.graphs();
            let bits = |graph| {
                let ran = run(graph, &feeds, None);
                let bits = |y: &f32| if y.is_nan() { f32::NAN.to_bits() } else { y.to_bits() };
                ran[0].tensor().unwrap().as_slice().unwrap().iter().map(bits).collect::<Vec<u32>>()
            };
            assert_eq!(bits(&graph), bits(&plain), "{nan}");
            assert_eq!(stands_for(&graph).len(), 1);
        }
    }

    /// A node of a network: operator, inputs, output, and the order of a Transpose.
    type Moves<'a> = &'a [(&'a str, &'a [&'a str], &'a str, &'a [i64])];

    /// Sizes of the tensors that heads are in: of queries, of heads of keys and values, of keys, and of their numbers.
    const SIZES: [(&str, usize); 5] = [("H", 6), ("G", 2), ("Q", 3), ("K", 5), ("D", 4)];

    fn sizes(shape: &str) -> Vec<usize> {
        let size = |name: &str| {
            SIZES.iter().find(|(own, _)| *own == name).map_or_else(|| name.parse().unwrap(), |(_, size)| *size)
        };
        shape.split(' ').map(size).collect()
    }

    /// How a value is made of a tensor of this shape: by nodes, the last of which gives the value.
    #[derive(Debug, Clone, Copy)]
    struct Made<'a>(&'a str, Moves<'a>);

    const Q: [Made<'_>; 4] = [
        Made("1 H Q D", &[]),
        Made("1 H Q D", &[("Mul", &["", "factor"], "q", &[])]),
        Made("1 Q H D", &[("Transpose", &[""], "t", &[0, 2, 1, 3]), ("Mul", &["factor", "t"], "q", &[])]),
        Made("1 H Q D", &[("Squeeze", &["", "zero axis"], "s", &[]), ("Unsqueeze", &["s", "zero axis"], "q", &[])]),
    ];
    const K: [Made<'_>; 6] = [
        Made("1 H D K", &[]),
        Made("1 H D K", &[("Mul", &["", "factor"], "k", &[])]),
        Made("1 K H D", &[("Transpose", &[""], "k", &[0, 2, 3, 1])]),
        Made("1 H K D", &[("Transpose", &[""], "t", &[0, 1, 3, 2]), ("Mul", &["t", "factor"], "k", &[])]),
        Made(
            "1 K H D",
            &[
                ("Transpose", &[""], "a", &[0, 2, 1, 3]),
                ("Reshape", &["a", "H K D"], "b", &[]),
                ("Transpose", &["b"], "c", &[0, 2, 1]),
                ("Reshape", &["c", "1 H D K"], "d", &[]),
                ("Mul", &["d", "factor"], "k", &[]),
            ],
        ),
        Made(
            "1 G K D",
            &[
                ("Unsqueeze", &["", "two axis"], "a", &[]),
                ("Expand", &["a", "1 G 3 K D"], "b", &[]),
                ("Reshape", &["b", "1 H K D"], "c", &[]),
                ("Transpose", &["c"], "k", &[0, 1, 3, 2]),
            ],
        ),
    ];
    const V: [Made<'_>; 3] = [
        Made("1 H K D", &[]),
        Made("1 K H D", &[("Transpose", &[""], "v", &[0, 2, 1, 3])]),
        Made(
            "1 G K D",
            &[
                ("Unsqueeze", &["", "two axis"], "a", &[]),
                ("Expand", &["a", "1 G 3 K D"], "b", &[]),
                ("Reshape", &["b", "1 H K D"], "v", &[]),
            ],
        ),
    ];

    /// Attention whose queries, keys and values are made so, and whose output is turned.
    fn made(of: [Made<'_>; 3], turned: bool) -> (Draft, Vec<Value>) {
        let (mut builder, mut feeds) = (Builder::new(), Vec::new());
        let constant = |builder: &mut Builder, name: &str, value: Value| {
            builder.constant(name, value);
        };
        constant(&mut builder, "factor", tensor(&[1], [0.3f32]));
        constant(&mut builder, "zero axis", tensor(&[1], [0i64]));
        constant(&mut builder, "two axis", tensor(&[1], [2i64]));
        for (Made(shape, moves), name) in of.into_iter().zip(["q", "k", "v"]) {
            let dims = sizes(shape);
            builder.shaped(
                &format!("{name}0"),
                Some(DType::Float.into()),
                Some(dims.iter().copied().map(Dim::Fixed).collect()),
            );
            feeds.push(given(&dims));
            let value = |value: &str| if value.is_empty() { format!("{name}0") } else { format!("{name} {value}") };
            for (operator, inputs, output, perm) in moves {
                let input = |input: &&str| match *input {
                    "factor" | "zero axis" | "two axis" => input.to_string(),
                    shape if shape.contains(' ') => format!("{name} {shape}"),
                    own => value(own),
                };
                for shape in inputs.iter().filter(|input| input.contains(' ') && !input.contains("axis")) {
                    let target: Vec<i64> = sizes(shape).into_iter().map(|size| size as i64).collect();
                    constant(&mut builder, &format!("{name} {shape}"), tensor(&[target.len()], target));
                }
                let attributes = (!perm.is_empty()).then(|| ("perm".to_string(), Attribute::Ints(perm.to_vec())));
                let inputs: Vec<String> = inputs.iter().map(input).collect();
                let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
                builder.op_with(operator, attributes.into_iter().collect(), &inputs, &value(output));
            }
        }
        let last = |at: usize, name: &str| {
            let Made(_, moves) = of[at];
            moves.last().map_or(format!("{name}0"), |(_, _, output, _)| format!("{name} {output}"))
        };
        builder.op("MatMul", &[&last(0, "q"), &last(1, "k")], "scores");
        builder.op("Softmax", &["scores"], "weights");
        builder.op("MatMul", &["weights", &last(2, "v")], "o");
        if turned {
            builder.op_with("Transpose", vec![("perm".into(), Attribute::Ints(vec![0, 2, 1, 3]))], &["o"], "y");
        }
        (builder.output(if turned { "y" } else { "o" }), feeds)
    }

    #[test]
    fn heads_are_read_where_they_are() {
        for (at_q, q) in Q.into_iter().enumerate() {
            for (at_k, k) in K.into_iter().enumerate() {
                for (at_v, v) in V.into_iter().enumerate() {
                    let turned = (at_q + at_k + at_v) % 2 == 0;
                    let (draft, feeds) = made([q, k, v], turned);
                    let graph = load(draft, true).unwrap();
                    let plain = load(made([q, k, v], turned).0, false).unwrap();
                    let which = format!("{q:?} {k:?} {v:?} {turned}");
                    assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None), "{which}");
                    // What moves nothing, and heads that keys or values alone repeat, are made as before.
                    let (q_left, repeat) = (if at_q == 3 { 2 } else { 0 }, (at_k == 5) != (at_v == 2));
                    let left = if !repeat { 0 } else { 3 };
                    assert_eq!(graph.node_infos().len(), 1 + q_left + left, "{which}");
                }
            }
        }
    }

    /// What one writes where another one reads it is turned once.
    #[test]
    fn one_after_another() {
        let draft = || {
            let mut builder = Builder::new();
            for name in ["q", "k", "v"] {
                let dims = Some([1, 4, 4, 4].map(Dim::Fixed).to_vec());
                builder.shaped(name, Some(DType::Float.into()), dims);
            }
            let perm = || vec![("perm".to_string(), Attribute::Ints(vec![0, 2, 1, 3]))];
            for (q, name) in [("q", "a"), ("a", "b")] {
                let [scores, weights, o] = ["scores", "weights", "o"].map(|of| format!("{name} {of}"));
                builder.op("MatMul", &[q, "k"], &scores);
                builder.op("Softmax", &[&scores], &weights);
                builder.op("MatMul", &[&weights, "v"], &o);
                builder.op_with("Transpose", perm(), &[&o], name);
            }
            builder.output("b")
        };
        let [graph, plain] = [true, false].map(|optimize| load(draft(), optimize).unwrap());
        let feeds = [given(&[1, 4, 4, 4]), given(&[1, 4, 4, 4]), given(&[1, 4, 4, 4])];
        assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None));
        assert_eq!(graph.node_infos().len(), 1 + 4);
    }

    #[test]
    fn what_others_read_is_made_before() {
        let (mut draft, feeds) = made([Q[2], K[4], V[1]], true);
        let other = made([Q[2], K[4], V[1]], true).0;
        let made = draft.nodes.iter().find(|node| &*node.place.name == "k b");
        let id = made.and_then(|node| node.outputs[0]).unwrap();
        draft.output(crate::graph::ValueInfo { name: "b".into(), value_type: None, shape: None }, id);
        let graph = load(draft, true).unwrap();
        let want = run(&load(other, false).unwrap(), &feeds, None);
        assert_eq!(run(&graph, &feeds, None)[0], want[0]);
        assert_eq!(graph.node_infos().len(), 3);
    }

    #[test]
    fn what_is_something_else_stays() {
        let shapes: [&[usize]; 3] = [&[2, 8, 4], &[2, 4, 8], &[2, 8, 3]];
        // Another axis, and a bias that makes more scores.
        let example = Example { scale: None, bias: None, nan: true, shapes };
        let graph = load(example.draft(1), true).unwrap();
        assert_eq!(stands_for(&graph).len(), 5);
        let plain = load(example.draft(1), false).unwrap();
        assert_eq!(run(&graph, &example.feeds(), None), run(&plain, &example.feeds(), None));
        let example = Example { bias: Some(&[3, 2, 8, 8]), ..example };
        let [graph, plain] = example.graphs();
        let mut seen = Seen { whole: true, names: Vec::new() };
        assert_eq!(run(&graph, &example.feeds(), Some(&mut seen)), run(&plain, &example.feeds(), None));
        // Its nodes run one after the other, and yet as one.
        assert_eq!((stands_for(&graph).len(), seen.names.join(" ").as_str()), (1, "y.. y"));
        // One query.
        let one = Example { scale: None, bias: None, nan: false, shapes: [&[2, 1, 4], &[2, 4, 8], &[2, 8, 3]] };
        assert_eq!(stands_for(&load(one.draft(-1), true).unwrap()).len(), 3);
        // The last axis by its number.
        assert_eq!(stands_for(&load(example.draft(2), true).unwrap()).len(), 6);
        assert_eq!(stands_for(&load(Example { bias: None, ..example }.draft(2), true).unwrap()).len(), 1);
    }

    #[test]
    fn errors_are_those_of_the_nodes() {
        let shapes: [&[usize]; 3] = [&[8, 4], &[4, 8], &[8, 3]];
        let [graph, plain] = Example { scale: None, bias: None, nan: false, shapes }.graphs();
        let mut feeds = Example { scale: None, bias: None, nan: false, shapes }.feeds();
        feeds[2] = given(&[7, 3]);
        let error = |graph| testing::run(graph, &feeds, None).unwrap_err().to_string();
        assert_eq!(error(&graph), error(&plain));
        assert!(error(&graph).starts_with("node \"y\" (MatMul-13): "), "{}", error(&graph));
    }
}
