//! Fuses products of matrices and convolutions with the elementwise nodes that follow, in one pass over the output.

use super::fuse::{Fusion, fuse};
use super::{PassContext, Readers, aligns_last, fact};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::draft::{Draft, Id};
use crate::operator::{Chain, Made, MatrixProduct, ProductThen, Rowwise, StepInput, StepInputs, Tail};
use crate::value::{Dim, Fact, ValueType};
use smallvec::SmallVec;
use std::sync::Arc;

/// Maximum number of functions after a product.
const STEPS: usize = 4;

/// `f(MatMul(a, b) + c)` and `f(Cast(MatMulInteger(a, b)) * d + c)`, where `c` is a row and `d` a number or a row,
/// `f(Gemm(a, b, c))`, `f(Conv(x, w, b), y)` and `f(Cast(ConvInteger(x, w)) * d + c, y)`, where `d` is a number and `c` has one for
/// each channel; `f` may be missing or be several functions. `y` has the shape of the output, as what is added to a residual
/// block has.
pub(super) fn product(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let (mut fusions, mut taken) = (Vec::new(), vec![false; draft.nodes.len()]);
    for at in 0..draft.nodes.len() {
        if taken.get(at) == Some(&true) {
            continue;
        }
        let alone = dtype(at, draft).and_then(|dtype| Growing::of(at, dtype, draft));
        let Some(mut growing) = alone.or_else(|| scaled(at, draft, &readers)) else { continue };
        while let Some(grown) = growing.grown(draft, &readers, &taken) {
            growing = grown;
        }
        if growing.nodes.len() > 1 {
            growing.nodes.iter().for_each(|at| _ = taken.get_mut(*at).map(|taken| *taken = true));
            fusions.extend(growing.finish());
        }
    }
    fuse(draft, fusions, context)
}

/// A product, and what follows it so far.
#[derive(Clone)]
struct Growing {
    nodes: SmallVec<[usize; 4]>,
    inputs: SmallVec<[Id; 4]>,
    product: Arc<dyn MatrixProduct>,
    dtype: DType,
    /// The dimensions of the output behind that of the numbers that may be added to sums: those of columns, or of channels.
    behind: Option<usize>,
    /// The inputs that sums of integers are multiplied by, and with the numbers that are added.
    scale: Option<usize>,
    bias: Option<usize>,
    /// Functions of the sums, of each other, and of what is beside these.
    steps: Vec<(Arc<dyn Rowwise>, StepInputs)>,
    values: SmallVec<[(Id, StepInput); 4]>,
    beside: SmallVec<[usize; 2]>,
}

impl Growing {
    /// The product at a place, whose sums are or become numbers of a type.
    fn of(at: usize, dtype: DType, draft: &Draft) -> Option<Growing> {
        let node = draft.nodes.get(at).filter(|node| !node.open)?;
        let (Some(Made::Product(product)), [Some(sums)]) = (&node.operator, &*node.outputs) else { return None };
        let rank = fact(*sums, draft).and_then(Fact::dims).map(<[Dim]>::len);
        let behind = match node.standard()? {
            "MatMul" | "MatMulInteger" => Some(0),
            "ConvInteger" => rank.and_then(|rank| rank.checked_sub(2)),
            _ => None,
        };
        Some(Growing {
            behind,
            nodes: [at].into_iter().collect(),
            // An input that is left out would be another's place.
            inputs: node.inputs.iter().copied().collect::<Option<_>>()?,
            product: product.clone(),
            dtype,
            scale: None,
            bias: None,
            steps: Vec::new(),
            values: [(*sums, StepInput::Input(0))].into_iter().collect(),
            beside: SmallVec::new(),
        })
    }

    /// The sums before any step.
    fn sums(&self) -> Option<Id> {
        self.values.first().map(|(sums, _)| *sums)
    }

    /// Whether a value has a number for each column, or channel, of the output: not for those of a product by a vector, whose
    /// columns the output lacks.
    fn has_numbers(&self, id: Id, draft: &Draft) -> bool {
        let dims = |id: Id| fact(id, draft).and_then(Fact::dims).unwrap_or(&[]);
        let (own, all, behind) = (dims(id), self.sums().map_or(&[][..], dims), self.behind.unwrap_or(0));
        let split = own.len().checked_sub(behind + 1).and_then(|at| own.split_at_checked(at));
        let Some((before, [numbers, after @ ..])) = split else { return false };
        let has_columns = behind > 0 || self.inputs.get(1).is_some_and(|columns| dims(*columns).len() > 1);
        has_columns
            && *numbers != Dim::Unknown
            && all.iter().nth_back(behind) == Some(numbers)
            && own.len() <= all.len()
            && before.iter().chain(after).all(|dim| *dim == Dim::Fixed(1))
    }

    /// With the numbers that the node at a place adds to the sums.
    fn with_numbers(&self, at: usize, draft: &Draft) -> Option<Growing> {
        let node =
            draft.nodes.get(at).filter(|node| node.standard() == Some("Add") && !node.open && aligns_last(node))?;
        let ([Some(output)], sums) = (&*node.outputs, self.sums()?) else { return None };
        let numbers = *node.inputs.iter().flatten().find(|id| **id != sums)?;
        let free = self.behind.is_some() && self.bias.is_none() && self.steps.is_empty();
        if !free || !self.has_numbers(numbers, draft) {
            return None;
        }
        let mut grown = self.clone();
        grown.bias = Some(grown.inputs.len());
        grown.inputs.push(numbers);
        grown.nodes.push(at);
        grown.values = [(*output, StepInput::Input(0))].into_iter().collect();
        Some(grown)
    }

    /// With what follows: numbers that are added, a function of one number and of others at its place, or a gate, `x * f(x)`.
    fn grown(&self, draft: &Draft, readers: &Readers, taken: &[bool]) -> Option<Growing> {
        let [Some(last)] = &*draft.nodes.get(*self.nodes.last()?)?.outputs else { return None };
        let free = |at: &usize| taken.get(*at) == Some(&false);
        let mut grown = self.clone();
        if let Some(at) = readers.only_reader(*last).filter(free) {
            return self.with_numbers(at, draft).or_else(|| grown.push(at, draft).map(|()| grown));
        }
        let at = readers.last_reader(*last).filter(|at| free(at) && readers.count(*last) == 2)?;
        let gate = draft.nodes.get(at)?.inputs.iter().flatten().find(|id| *id != last)?;
        let before = readers.producer(*gate).filter(|at| free(at) && readers.count(*gate) == 1)?;
        if *draft.nodes.get(before)?.inputs != [Some(*last)] {
            return None;
        }
        grown.push(before, draft)?;
        grown.push(at, draft)?;
        Some(grown)
    }

    fn push(&mut self, at: usize, draft: &Draft) -> Option<()> {
        let node = draft.nodes.get(at).filter(|node| !node.open && self.steps.len() < STEPS)?;
        let (Some(Made::Rowwise(step)), [Some(output)]) = (&node.operator, &*node.outputs) else { return None };
        if !step.may_chain(self.dtype) {
            return None;
        }
        let inputs = node.inputs.iter().map(|id| self.input((*id)?, draft)).collect::<Option<_>>()?;
        self.values.push((*output, StepInput::Step(self.steps.len())));
        self.steps.push((step.clone(), inputs));
        self.nodes.push(at);
        Some(())
    }

    /// Where a step finds a value, which may be one of others that has the shape of the output.
    fn input(&mut self, id: Id, draft: &Draft) -> Option<StepInput> {
        if let Some((_, known)) = self.values.iter().find(|(own, _)| *own == id) {
            return Some(*known);
        }
        let (dims, own) = (fact(self.sums()?, draft)?.dims()?, fact(id, draft)?);
        let is_of = own.value_type().and_then(ValueType::dtype) == Some(self.dtype);
        let is_full = own.dims() == Some(dims) && !dims.contains(&Dim::Unknown) && is_of;
        if !is_full || !self.product.reads_beside() || self.inputs.len() < 3 || self.beside.len() + 2 > Chain::INPUTS {
            return None;
        }
        self.beside.push(self.inputs.len());
        self.inputs.push(id);
        let input = StepInput::Input(self.beside.len());
        self.values.push((id, input));
        Some(input)
    }

    fn finish(self) -> Option<Fusion> {
        let Growing { nodes, inputs, product, dtype, behind, scale, bias, steps, beside, .. } = self;
        let steps = match steps.is_empty() {
            true => None,
            false => Some(Chain::new(dtype, 1 + beside.len(), steps)?),
        };
        let (bias, addend) = if behind == Some(0) { (bias, None) } else { (None, bias) };
        let tail = Arc::new(Tail { dtype, bias, scale: [scale, addend], steps, beside });
        Some(Fusion { nodes, inputs, operator: Box::new(ProductThen { product, tail }) })
    }
}

/// The element type of a node's output, if its product and what follows are rounded as one by one.
fn dtype(at: usize, draft: &Draft) -> Option<DType> {
    let node = draft.nodes.get(at).filter(|node| !node.open)?;
    let [Some(output)] = &*node.outputs else { return None };
    let dtype = draft.entries.get(output.at())?.fact.value_type().and_then(ValueType::dtype)?;
    matches!(dtype, DType::Float | DType::Double).then_some(dtype)
}

/// A product of integers less zero points, that become float32 and are scaled.
fn scaled(at: usize, draft: &Draft, readers: &Readers) -> Option<Growing> {
    draft.nodes.get(at).filter(|node| matches!(node.standard(), Some("MatMulInteger" | "ConvInteger")))?;
    let after = |value: Id, name: &str| {
        let next = readers.only_reader(value)?;
        let node = draft.nodes.get(next).filter(|node| node.standard() == Some(name) && aligns_last(node))?;
        let [Some(output)] = &*node.outputs else { return None };
        (!node.open && dtype(next, draft) == Some(DType::Float)).then_some((next, node, *output))
    };
    let mut growing = Growing::of(at, DType::Float, draft).filter(|growing| growing.inputs.len() == 4)?;
    let (cast, _, floats) = after(growing.sums()?, "Cast")?;
    let (product, node, output) = after(floats, "Mul")?;
    let scale = *node.inputs.iter().flatten().find(|id| **id != floats)?;
    let (dims, of) = (fact(scale, draft)?.dims()?, fact(floats, draft)?.dims()?);
    let is_one = dims.len() <= of.len() && dims.iter().all(|dim| *dim == Dim::Fixed(1));
    // Channels have one scale.
    if !is_one && (growing.behind != Some(0) || !growing.has_numbers(scale, draft)) {
        return None;
    }
    growing.scale = Some(growing.inputs.len());
    growing.inputs.push(scale);
    growing.nodes.extend([cast, product]);
    growing.values = [(output, StepInput::Input(0))].into_iter().collect();
    Some(growing)
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::{run, stands_for};
    use crate::graph::testing::{self, Builder, load};
    use crate::graph::{Draft, NodeInfo, Watch};
    use crate::operator::Attribute;
    use crate::ops::testing::tensor;
    use crate::registry::Registry;
    use crate::value::{Dim, Value};

    fn sizes(dims: &[usize]) -> Option<Vec<Dim>> {
        Some(dims.iter().map(|dim| if *dim == 99 { Dim::Symbol("N".into()) } else { Dim::Fixed(*dim) }).collect())
    }

    /// A shape with so many rows for 99.
    fn with_rows(shape: &[usize], rows: usize) -> Vec<usize> {
        shape.iter().map(|dim| if *dim == 99 { rows } else { *dim }).collect()
    }

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|at| (at * 7 % 23) as f32 / 8.0 - 1.3).collect()
    }

    /// `y = tanh(relu(a x b + c))` with 99 for N, where `b` may be constant.
    fn draft(a: &[usize], b: &[usize], c: &[usize], constant: bool, dtype: DType) -> Draft {
        let mut builder = Builder::new();
        builder.shaped("a", Some(dtype.into()), sizes(a));
        let weights = tensor(b, numbers(b.iter().product()));
        if constant {
            builder.constant("b", weights);
        } else {
            builder.shaped("b", Some(dtype.into()), sizes(b));
        }
        builder.shaped("c", Some(dtype.into()), sizes(c));
        builder.op("MatMul", &["a", "b"], "product");
        builder.op("Add", &["c", "product"], "sum");
        builder.op("Relu", &["sum"], "relu");
        builder.op("Tanh", &["relu"], "y");
        builder.output("y")
    }

    #[test]
    fn no_bit_changes() {
        for (a, b, c) in [
            (&[99, 5][..], &[5, 3][..], &[3][..]),
            (&[99, 5], &[5, 3], &[1, 3]),
            (&[2, 99, 400], &[400, 17], &[17]),
            (&[99, 4, 5], &[2, 5, 1], &[1]),
            (&[99, 1], &[1, 300], &[300]),
            (&[99, 0], &[0, 3], &[3]),
        ] {
            for constant in [false, true] {
                for rows in [0, 1, 2] {
                    let own = with_rows(a, rows);
                    let mut feeds = vec![tensor(&own, numbers(own.iter().product()))];
                    if !constant {
                        feeds.push(tensor(b, numbers(b.iter().product())));
                    }
                    feeds.push(tensor(c, numbers(c.iter().product())));
                    let graph = load(draft(a, b, c, constant, DType::Float), true).unwrap();
                    assert_eq!(stands_for(&graph), [["product", "sum", "relu", "y"]]);
                    let plain = load(draft(a, b, c, constant, DType::Float), false).unwrap();
                    match (b.len(), rows) {
                        // The batches don't broadcast.
                        (3, 0) => assert_eq!(failure(&graph, &feeds), failure(&plain, &feeds)),
                        _ => assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None)),
                    }
                }
            }
        }
    }

    /// `y = tanh(a x b * s + c)` of bytes, with 99 for N, whose sums become float32.
    fn of_integers(a: &[usize], b: &[usize], [s, c]: [&[usize]; 2], scaled_first: bool) -> Draft {
        let mut builder = Builder::new();
        builder.shaped("a", Some(DType::Uint8.into()), sizes(a));
        let weights = (0..b.iter().product()).map(|at: usize| (at * 77 % 256) as u8 as i8).collect::<Vec<_>>();
        let own = [("b", tensor(b, weights)), ("b_zero", tensor(&[], [3i8]))];
        for (name, value) in own {
            builder.constant(name, value);
        }
        builder.shaped("a_zero", Some(DType::Uint8.into()), sizes(&[]));
        builder.shaped("s", Some(DType::Float.into()), sizes(s));
        builder.shaped("c", Some(DType::Float.into()), sizes(c));
        builder.op("MatMulInteger", &["a", "b", "a_zero", "b_zero"], "product");
        builder.op_with("Cast", vec![("to".to_string(), Attribute::Int(1))], &["product"], "floats");
        builder.op("Mul", &if scaled_first { ["s", "floats"] } else { ["floats", "s"] }, "scaled");
        builder.op("Add", &["c", "scaled"], "sum");
        builder.op("Tanh", &["sum"], "y");
        builder.output("y")
    }

    #[test]
    fn sums_of_integers_become_floats() {
        let all = ["product", "floats", "scaled", "sum", "y"];
        for (a, b, s, c, fused) in [
            (&[99, 5][..], &[5, 3][..], &[][..], &[3][..], &all[..]),
            (&[99, 5], &[5, 3], &[1], &[1, 3], &all),
            (&[2, 99, 400], &[400, 37], &[37], &[37], &all),
            (&[99, 4, 5], &[2, 5, 1], &[1, 1, 1], &[1], &all),
            (&[99, 0], &[0, 3], &[1, 3], &[3], &all),
            (&[99, 5], &[5, 3], &[1, 3], &[99, 1], &all[..3]),
            // What they are multiplied by has more dimensions, or differs from row to row.
            (&[99, 5], &[5, 3], &[1, 1, 1], &[3], &[]),
            (&[99, 5], &[5, 3], &[99, 1], &[3], &[]),
            (&[99, 5], &[5], &[1], &[1], &all[..3]),
            (&[99, 5], &[5], &[99], &[99], &[]),
        ] {
            for rows in [1, 2, 40] {
                let bytes = |count: usize| (0..count).map(|at| (at * 91 % 256) as u8).collect::<Vec<_>>();
                let [a_own, s_own, c_own] = [a, s, c].map(|shape| with_rows(shape, rows));
                let feeds = [
                    tensor(&a_own, bytes(a_own.iter().product())),
                    tensor(&[], [130u8]),
                    tensor(&s_own, numbers(s_own.iter().product()).iter().map(|x| x / 700.0).collect::<Vec<_>>()),
                    tensor(&c_own, numbers(c_own.iter().product())),
                ];
                let [graph, plain] = [true, false].map(|fast| load(of_integers(a, b, [s, c], rows > 1), fast).unwrap());
                let own = stands_for(&graph).into_iter().find(|parts| parts.iter().any(|name| name == "product"));
                assert_eq!(own.unwrap_or_default(), fused, "{b:?} {s:?}");
                match (b.len(), rows) {
                    (3, 40) => assert_eq!(failure(&graph, &feeds), failure(&plain, &feeds)),
                    _ => assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None), "{a:?} {b:?} {s:?}"),
                }
            }
        }
    }

    /// `y = relu(conv(x, w) * s + c + r)` of bytes, with 99 for N, whose sums become float32.
    fn convolution_of_integers(x: &[usize], w: &[usize], [s, c, r]: [&[usize]; 3], group: i64) -> Draft {
        let mut builder = Builder::new();
        builder.shaped("x", Some(DType::Uint8.into()), sizes(x));
        let filters = (0..w.iter().product()).map(|at: usize| (at * 77 % 256) as u8).collect::<Vec<_>>();
        for (name, value) in [("w", tensor(w, filters)), ("w_zero", tensor(&[], [130u8]))] {
            builder.constant(name, value);
        }
        builder.shaped("x_zero", Some(DType::Uint8.into()), sizes(&[]));
        for (name, shape) in [("s", s), ("c", c), ("r", r)] {
            builder.shaped(name, Some(DType::Float.into()), sizes(shape));
        }
        let group = vec![("group".to_string(), Attribute::Int(group))];
        builder.op_with("ConvInteger", group, &["x", "w", "x_zero", "w_zero"], "product");
        builder.op_with("Cast", vec![("to".to_string(), Attribute::Int(1))], &["product"], "floats");
        builder.op("Mul", &["floats", "s"], "scaled");
        builder.op("Add", &["scaled", "c"], "sum");
        builder.op("Add", &["r", "sum"], "both");
        builder.op("Relu", &["both"], "y");
        builder.output("y")
    }

    #[test]
    fn sums_of_windows_of_integers_become_floats() {
        let all = ["product", "floats", "scaled", "sum", "both", "y"];
        for (x, w, s, c, group, fused) in [
            (&[99, 4, 9, 8][..], &[5, 4, 3, 3][..], &[][..], &[1, 5, 1, 1][..], 1, &all[..]),
            (&[99, 4, 9, 8], &[4, 1, 3, 3], &[1], &[4, 1, 1], 4, &all),
            (&[99, 4, 9], &[8, 1, 2], &[1, 1, 1], &[8, 1], 4, &all),
            (&[99, 4, 1, 1], &[300, 4, 1, 1], &[1], &[1, 300, 1, 1], 1, &all),
            (&[99, 1, 300], &[1, 1, 270], &[1], &[1, 1], 1, &all),
            // What is added has no number for each channel, and sums have no single factor.
            (&[99, 4, 9, 8], &[6, 4, 3, 3], &[], &[6], 1, &all[..3]),
            (&[99, 4, 9, 8], &[6, 4, 3, 3], &[], &[1, 1, 1, 1], 1, &all[..3]),
            (&[99, 4, 9, 8], &[6, 4, 3, 3], &[6, 1, 1], &[6, 1, 1], 1, &[]),
        ] {
            let outer = [99, w[0]];
            let positions: Vec<usize> = x[2..].iter().zip(&w[2..]).map(|(x, w)| x + 1 - w).collect();
            let r = [&outer, &*positions].concat();
            let graph = load(convolution_of_integers(x, w, [s, c, &r], group), true).unwrap();
            let plain = load(convolution_of_integers(x, w, [s, c, &r], group), false).unwrap();
            let own = stands_for(&graph).into_iter().find(|parts| parts.iter().any(|name| name == "product"));
            assert_eq!(own.unwrap_or_default(), fused, "{x:?} {w:?}");
            for rows in [0, 1, 3] {
                let [x, r] = [x, &r].map(|shape| with_rows(shape, rows));
                let bytes = (0..x.iter().product()).map(|at: usize| (at * 91 % 256) as u8).collect::<Vec<_>>();
                let of = |shape: &[usize], by: f32| {
                    tensor(shape, numbers(shape.iter().product()).iter().map(|x| x / by).collect::<Vec<_>>())
                };
                let feeds = [tensor(&x, bytes), tensor(&[], [7u8]), of(s, 9000.0), of(c, 1.0), of(&r, 1.0)];
                let values = run(&plain, &feeds, None);
                assert_eq!(run(&graph, &feeds, None), values, "{x:?} {w:?} {s:?}");
                assert_eq!(run(&graph, &feeds, Some(&mut Nobody)), values);
            }
        }
    }

    fn failure(graph: &crate::graph::Graph, feeds: &[Value]) -> String {
        testing::run(graph, feeds, None).unwrap_err().to_string()
    }

    /// A value of each node: whoever runs doesn't matter to the one who sees none.
    struct Nobody;

    impl Watch for Nobody {
        fn ends(&mut self, _: NodeInfo<'_>, _: &[(&str, &Value)]) -> crate::error::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_no_row_is_added_alone() {
        for (a, b, c) in [
            (&[99, 5][..], &[5, 3][..], &[99, 3][..]),
            (&[4, 5], &[5, 3], &[1]),
            (&[5], &[5], &[]),
            (&[4, 5], &[5], &[4]),
            (&[2, 4, 5], &[5], &[1, 4]),
        ] {
            let graph = load(draft(a, b, c, false, DType::Float), true).unwrap();
            let nodes = stands_for(&graph);
            assert!(nodes.iter().all(|parts| !parts.contains(&"product".to_string())), "{nodes:?}");
        }
        // Half floats are rounded in between.
        let half = load(draft(&[4, 5], &[5, 3], &[3], false, DType::Float16), true).unwrap();
        assert_eq!(stands_for(&half)[0], Vec::<String>::new());
    }

    #[test]
    fn functions_follow_a_gemm() {
        let draft = || {
            let mut builder = Builder::new();
            for (name, shape) in [("a", [2, 3]), ("b", [3, 4]), ("c", [1, 4])] {
                builder.shaped(name, Some(DType::Float.into()), sizes(&shape));
            }
            builder.op("Gemm", &["a", "b", "c"], "product");
            builder.op("Sigmoid", &["product"], "y");
            builder.output("y")
        };
        let feeds = [tensor(&[2, 3], numbers(6)), tensor(&[3, 4], numbers(12)), tensor(&[1, 4], numbers(4))];
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        assert_eq!(stands_for(&graph), [["product", "y"]]);
        let values = run(&graph, &feeds, None);
        assert_eq!(values, run(&plain, &feeds, None));
        assert_eq!(values, run(&graph, &feeds, Some(&mut Nobody)));
    }

    /// `y = relu(silu(conv(x, w, b)) + r)`, with 99 for N; `b` may be missing.
    fn convolution(x: &[usize], w: &[usize], r: &[usize], group: i64, with_bias: bool) -> Draft {
        let mut builder = Builder::new();
        builder.shaped("x", Some(DType::Float.into()), sizes(x));
        builder.shaped("r", Some(DType::Float.into()), sizes(r));
        for (name, shape) in [("w", w), ("b", &w[..1])] {
            builder.constant(name, tensor(shape, numbers(shape.iter().product())));
        }
        let inputs = &["x", "w", "b"][..2 + usize::from(with_bias)];
        builder.op_with("Conv", vec![("group".to_string(), Attribute::Int(group))], inputs, "product");
        builder.op("Sigmoid", &["product"], "gate");
        builder.op("Mul", &["product", "gate"], "silu");
        builder.op("Add", &["r", "silu"], "sum");
        builder.op("Relu", &["sum"], "y");
        builder.output("y")
    }

    #[test]
    fn convolutions_and_residuals() {
        for (x, w, group, positions) in [
            (&[99, 4, 9, 8][..], &[5, 4, 3, 3][..], 1, &[7, 6][..]),
            (&[99, 4, 9, 40], &[4, 1, 3, 3], 4, &[7, 38]),
            (&[99, 4, 9], &[8, 1, 2], 4, &[8]),
            (&[99, 4, 9], &[8, 2, 2], 2, &[8]),
            // A window that shows the image.
            (&[99, 4, 1, 1], &[300, 4, 1, 1], 1, &[1, 1]),
            (&[99, 4, 3, 2], &[1, 4, 3, 2], 1, &[1, 1]),
            (&[99, 4, 1, 1], &[4, 1, 1, 1], 4, &[1, 1]),
        ] {
            let r = [&[99, w[0]], positions].concat();
            for rows in [0, 1, 2] {
                let feeds = [x, &r].map(|shape| {
                    let own = with_rows(shape, rows);
                    tensor(&own, numbers(own.iter().product()))
                });
                let plain = run(&load(convolution(x, w, &r, group, true), false).unwrap(), &feeds, None);
                let graph = load(convolution(x, w, &r, group, true), true).unwrap();
                assert_eq!(stands_for(&graph), [["product", "gate", "silu", "sum", "y"]]);
                assert_eq!(run(&graph, &feeds, None), plain, "{x:?} {w:?}");
                assert_eq!(run(&graph, &feeds, Some(&mut Nobody)), plain);
            }
        }
    }

    /// What kernels compute of sums themselves, in rows of any length: `f(conv(x, w, b) + r)` without and with what is added.
    #[test]
    fn activations() {
        for (x, w) in
            [(&[2, 4, 9, 8][..], &[3, 4, 3, 3][..]), (&[2, 4, 1, 1], &[300, 4, 1, 1]), (&[1, 2, 5], &[3, 2, 5])]
        {
            let positions: Vec<usize> = x[2..].iter().zip(&w[2..]).map(|(x, w)| x + 1 - w).collect();
            let r = [&[x[0], w[0]], &*positions].concat();
            for (operator, adds) in [("Relu", false), ("Relu", true), ("HardSwish", false), ("Clip", true), ("", true)]
            {
                let draft = || {
                    let mut builder = Builder::new();
                    builder.shaped("x", Some(DType::Float.into()), sizes(x));
                    builder.shaped("r", Some(DType::Float.into()), sizes(&r));
                    for (name, shape) in [("w", w), ("b", &w[..1]), ("low", &[]), ("high", &[])] {
                        let count = shape.iter().product();
                        let value = if name == "high" { vec![1.5] } else { numbers(count) };
                        builder.constant(name, tensor(shape, value));
                    }
                    builder.op("Conv", &["x", "w", "b"], "product");
                    let mut last = "product";
                    if adds {
                        builder.op("Add", &["r", "product"], "sum");
                        last = "sum";
                    }
                    match operator {
                        "" => return builder.output(last),
                        "Clip" => builder.op(operator, &[last, "low", "high"], "y"),
                        _ => builder.op(operator, &[last], "y"),
                    }
                    builder.output("y")
                };
                let feeds = [x, &r].map(|shape| tensor(shape, numbers(shape.iter().product())));
                let graph = load(draft(), true).unwrap();
                assert_eq!(graph.nodes.len(), 1);
                let plain = run(&load(draft(), false).unwrap(), &feeds, None);
                assert_eq!(run(&graph, &feeds, None), plain, "{x:?} {operator} {adds}");
            }
        }
    }

    #[test]
    fn what_is_added_has_the_shape_of_a_convolution() {
        let (x, w) = ([1, 4, 3, 3], [4, 4, 1, 1]);
        for (r, with_bias) in [(&[1, 4, 1, 1][..], true), (&[2, 4, 3, 3], true), (&[3], true), (&x, false)] {
            let draft = || convolution(&x, &w, r, 1, with_bias);
            let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
            assert_eq!(stands_for(&graph)[0], ["product", "gate", "silu"]);
            let feeds = [tensor(&x, numbers(36)), tensor(r, numbers(r.iter().product()))];
            assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None));
        }
    }

    /// A value that others read too ends what is fused, and two convolutions don't share what follows.
    #[test]
    fn convolutions_side_by_side() {
        let draft = || {
            let mut builder = Builder::new();
            builder.shaped("x", Some(DType::Float.into()), sizes(&[1, 2, 3, 3]));
            for (name, shape) in [("w", &[2, 2, 1, 1][..]), ("b", &[2])] {
                builder.constant(name, tensor(shape, numbers(shape.iter().product())));
            }
            builder.op("Conv", &["x", "w", "b"], "first");
            builder.op("Conv", &["x", "w", "b"], "second");
            builder.op("Add", &["first", "second"], "sum");
            builder.op("Relu", &["sum"], "relu");
            builder.op("Neg", &["relu"], "y");
            builder.output_named("relu");
            builder.output("y")
        };
        let feeds = [tensor(&[1, 2, 3, 3], numbers(18))];
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        let none = Vec::<String>::new;
        assert_eq!(stands_for(&graph), [none(), ["first", "sum", "relu"].map(String::from).to_vec(), none()]);
        assert_eq!(run(&graph, &feeds, None), run(&plain, &feeds, None));
    }

    #[test]
    fn a_convolution_that_fails_is_blamed() {
        let draft = || {
            let mut builder = Builder::new();
            builder.shaped("x", Some(DType::Float.into()), sizes(&[1, 4, 3, 3]));
            builder.shaped("w", Some(DType::Float.into()), Some(vec![Dim::Unknown; 4]));
            builder.op("Conv", &["x", "w"], "product");
            builder.op("Relu", &["product"], "y");
            builder.output("y")
        };
        let feeds = [tensor(&[1, 4, 3, 3], numbers(36)), tensor(&[2, 3, 1, 1], numbers(6))];
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        assert_eq!(stands_for(&graph), [["product", "y"]]);
        let error = failure(&graph, &feeds);
        assert_eq!(error, failure(&plain, &feeds));
        assert!(error.starts_with("node \"product\" (Conv-11): \"X\" (value \"x\") has 4 channels"), "{error}");
    }

    #[test]
    fn errors_are_those_of_the_nodes() {
        // Nothing is known about the rows of `b` before the run.
        let draft = || {
            let mut builder = Builder::new();
            builder.shaped("a", Some(DType::Float.into()), sizes(&[2, 3]));
            builder.shaped("b", Some(DType::Float.into()), Some(vec![Dim::Unknown, Dim::Fixed(4)]));
            builder.shaped("c", Some(DType::Float.into()), sizes(&[4]));
            builder.op("MatMul", &["a", "b"], "product");
            builder.op("Add", &["product", "c"], "y");
            builder.output("y")
        };
        let feeds = [tensor(&[2, 3], numbers(6)), tensor(&[2, 4], numbers(8)), tensor(&[4], numbers(4))];
        let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
        assert_eq!(stands_for(&graph), [["product", "y"]]);
        let error = failure(&graph, &feeds);
        assert_eq!(error, failure(&plain, &feeds));
        assert!(error.starts_with("node \"product\" (MatMul-13): \"A\" (value \"a\") of shape [2, 3]"), "{error}");
    }

    /// Up to version 6, Add says where its second input belongs.
    #[test]
    fn sums_of_older_versions() {
        let attributes = |axis: Option<i64>| {
            let axis = axis.map(|axis| ("axis".to_string(), Attribute::Int(axis)));
            [("broadcast".to_string(), Attribute::Int(1))].into_iter().chain(axis).collect::<Vec<_>>()
        };
        for (attributes, shape) in [
            (attributes(None), vec![3]),
            (attributes(Some(1)), vec![3]),
            (attributes(Some(2)), vec![3]),
            (attributes(Some(0)), vec![2]),
            (Vec::new(), vec![2, 3, 3]),
            (Vec::new(), vec![3]),
        ] {
            let draft = || {
                let mut builder = Builder::new();
                builder.shaped("a", Some(DType::Float.into()), sizes(&[2, 3, 5]));
                for (name, shape) in [("b", &[5, 3][..]), ("c", &shape)] {
                    let numbers = numbers(shape.iter().product());
                    builder.constant(name, tensor(shape, numbers));
                }
                builder.op("MatMul", &["a", "b"], "product");
                let resolved = Registry::default().resolve("", "Add", 6).unwrap();
                builder.whole_node("y", resolved, attributes.clone(), &["product", "c"], "y");
                builder.output("y")
            };
            let [got, want] = [true, false].map(|optimize| {
                let feeds = [tensor(&[2, 3, 5], numbers(30))];
                testing::run(&load(draft(), optimize).unwrap(), &feeds, None).map_err(|error| error.to_string())
            });
            assert_eq!(got, want, "{attributes:?} {shape:?}");
            assert_eq!(got.is_err(), attributes.is_empty() && shape.len() == 1, "{shape:?}");
        }
    }
}
