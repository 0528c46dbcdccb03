//! Attention as exporters write it: products, and a softmax between them.

use super::fuse::{Fusion, fuse};
use super::pattern::{Found, Pattern};
use super::{PassContext, fact};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::draft::{Draft, DraftNode};
use crate::operator::{Attribute, Made, ScoreScale, Weighing};
use crate::value::{Dim, Fact, ValueType};
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
/// stay near the processor.
pub(super) fn attention(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let is = |node: &DraftNode, name: &str| *node.place.operator.name == *name;
    if !draft.nodes.iter().any(|node| is(node, "Softmax")) {
        return Ok(());
    }
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let patterns: Option<Vec<Pattern>> = PATTERNS.iter().map(|text| Pattern::parse(text)).collect();
    let patterns = patterns.ok_or_else(|| Error::bug("a pattern is none"))?;
    let products = draft.nodes.iter().enumerate().filter(|(_, node)| is(node, "MatMul"));
    let fusions = products
        .filter_map(|(at, _)| patterns.iter().find_map(|pattern| fusion(pattern.find(at, draft, &readers)?, draft)));
    let fusions = fusions.collect();
    fuse(draft, fusions, context)
}

fn fusion(found: Found, draft: &Draft) -> Option<Fusion> {
    let nodes = || found.nodes.iter().filter_map(|at| draft.nodes.get(*at));
    let Some(Made::Product(product)) = &nodes().next_back()?.operator else { return None };
    let made = |node: &DraftNode| node.operator.as_ref().is_some_and(|made| made.plain().is_some());
    let softmax = nodes().find(|node| *node.place.operator.name == *"Softmax")?;
    let value = |name| found.value(name);
    let queries = fact(value("q")?, draft)?;
    // The scores of one query are few.
    let is_single = queries.dims().and_then(|dims| dims.iter().nth_back(1)) == Some(&Dim::Fixed(1));
    if !nodes().all(made) || !along_rows(softmax, draft) || is_single {
        return None;
    }
    let dtype = queries.value_type().and_then(ValueType::dtype);
    let dtype = dtype.filter(|dtype| matches!(dtype, DType::Float | DType::Double))?;
    let scale = value("f").map(|_| ScoreScale::Times).or_else(|| value("d").map(|_| ScoreScale::By));
    let weighing = Weighing { dtype, scale, bias: value("m").is_some(), nan: value("n").is_some() };
    let mut inputs: SmallVec<_> = [value("q")?, value("k")?, value("v")?].into_iter().collect();
    inputs.extend(["f", "d", "m", "n"].into_iter().filter_map(value));
    Some(Fusion { operator: product.weighing(weighing)?, nodes: found.nodes.clone(), inputs })
}

/// Whether a softmax is along the last axis.
fn along_rows(softmax: &DraftNode, draft: &Draft) -> bool {
    let axis = softmax.attributes.iter().find_map(|(name, value)| match value {
        Attribute::Int(axis) if name == "axis" => Some(*axis),
        _ => None,
    });
    let input = softmax.inputs.first().copied().flatten().and_then(|id| fact(id, draft));
    let rank = input.and_then(Fact::dims).map(<[_]>::len);
    let is_new = softmax.resolved.as_ref().is_some_and(|resolved| resolved.schema.since_version >= 13);
    match axis.unwrap_or(if is_new { -1 } else { 1 }) {
        -1 => true,
        axis => rank.is_some_and(|rank| axis + 1 == rank as i64),
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::{run, stands_for};
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
                let id = builder.id(name);
                builder.draft.constant(id, Fact::constant(tensor(&[], [number])), None);
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
        assert_eq!(run(&graph, &example.feeds(), None), run(&plain, &example.feeds(), None));
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
