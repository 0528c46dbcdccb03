//! Fuses what stands between DequantizeLinear and QuantizeLinear: integers go in and come out, and no floats are in memory.

use super::copies::{is_own, own_sources};
use super::fuse::{Fusion, fuse, outside};
use super::{PassContext, Readers, aligns_last, constant, dtype, fact, functions, integer};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::draft::{Draft, DraftNode, Id};
use crate::operator::{ByteProduct, ByteRows, ByteScale, Floats, Fused, Made};
use crate::tensor::Tensor;
use crate::value::Dim;
use kernels::bytes::Pair;
use kernels::gemm::blocks::integers_pay;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// `QuantizeLinear(f(DequantizeLinear(x), DequantizeLinear(w)))`, where `f` is a MatMul, Gemm or Conv, with a constant bias.
/// A Relu after it changes nothing where the zero point is the least integer. The integers are those that the floats give,
/// unless `fast_math` is asked for.
pub(super) fn products(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    replace(draft, |at, draft, _| quantized(at, draft), context)?;
    replace(draft, |at, draft, readers| product(at, draft, readers, !context.loading.fast_math), context)
}

/// `QuantizeLinear(f(DequantizeLinear(x), ..))`, where `f` computes element by element, or the mean of channels: floats stay
/// near the processor.
pub(super) fn rows(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    functions::functions(draft, context)?;
    replace(draft, row, context)?;
    replace(draft, mean, context)
}

/// Puts operators in the place of nodes that are found by their last one.
fn replace(
    draft: &mut Draft,
    find: impl Fn(usize, &Draft, &Readers) -> Option<ByteNodes>,
    context: &PassContext<'_>,
) -> Result<()> {
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let found: Vec<ByteNodes> = (0..draft.nodes.len()).filter_map(|at| find(at, draft, &readers)).collect();
    let sources = found.iter().flat_map(|found| found.sources.iter().copied());
    own_sources(draft, sources.collect(), &readers, context)?;
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let own = |found: &ByteNodes| found.sources.iter().all(|(.., at)| is_own(*at, draft, &readers));
    let found = (0..draft.nodes.len()).filter_map(|at| find(at, draft, &readers).filter(own));
    let fusions = found.map(|found| found.finish(draft)).collect();
    fuse(draft, fusions, context)
}

/// Nodes from integers to integers.
struct ByteNodes {
    /// The node that computes.
    main: usize,
    /// The DequantizeLinear nodes that are read: by whom, and as which input.
    sources: SmallVec<[(usize, usize, usize); 2]>,
    /// What the operator reads.
    inputs: SmallVec<[Id; 4]>,
    /// The nodes after it.
    after: SmallVec<[usize; 3]>,
    operator: Box<dyn Fused>,
}

impl ByteNodes {
    fn finish(self, draft: &Draft) -> Fusion {
        let ByteNodes { main, sources, mut inputs, after, operator } = self;
        let mut nodes: SmallVec<[usize; 4]> = sources.iter().map(|(.., at)| *at).chain([main]).chain(after).collect();
        nodes.sort_unstable();
        nodes.dedup();
        outside(&nodes, &mut inputs, draft);
        Fusion { nodes, inputs, operator }
    }
}

/// The scales and zero points of a DequantizeLinear or QuantizeLinear node.
pub(super) struct Scaling<'a> {
    pub(super) at: usize,
    /// One or, of an axis, one for each entry.
    pub(super) scales: &'a [f32],
    zeros: Option<&'a Tensor>,
    pub(super) dtype: DType,
    axis: usize,
    dims: &'a [Dim],
}

impl Scaling<'_> {
    /// The zero points.
    pub(super) fn zeros(&self) -> Option<Tensor> {
        match self.zeros {
            Some(zeros) => Some(zeros.clone()),
            None => Tensor::new(self.dtype, &[1], vec![0u8]).ok(),
        }
    }

    /// The scale and the zero point of all.
    pub(super) fn single(&self) -> Option<ByteScale> {
        let ([scale], zero) = (self.scales, self.zeros()?) else { return None };
        Some(ByteScale::new(self.dtype, *scale, *zero.bytes().first()?))
    }
}

/// The scales of the node at a place, if it is an operator of the standard that has them, and they are normal numbers.
pub(super) fn scaling<'a>(name: &str, at: usize, draft: &'a Draft) -> Option<Scaling<'a>> {
    let node = draft.nodes.get(at)?;
    let known = |(name, _): &(String, _)| matches!(name.as_str(), "axis" | "saturate");
    if node.standard() != Some(name) || node.open || !node.attributes.iter().all(known) {
        return None;
    }
    let [Some(x), Some(scale), zero @ ..] = &*node.inputs else { return None };
    let [Some(y)] = &*node.outputs else { return None };
    let (floats, integers) = if name == "QuantizeLinear" { (x, y) } else { (y, x) };
    let dtype_of = dtype(*integers, draft).filter(|dtype| matches!(dtype, DType::Int8 | DType::Uint8))?;
    let (scale, dims) = (constant(*scale, draft)?, fact(*x, draft)?.dims()?);
    let zeros = match zero.first() {
        Some(Some(zero)) => Some(constant(*zero, draft).filter(|zeros| zeros.len() == scale.len())?),
        _ => None,
    };
    let scales = scale.as_slice::<f32>().ok()?;
    let normal = |scale: &f32| scale.is_normal() && *scale > 0.0 && (scale * 255.0).is_finite();
    if dtype(*floats, draft) != Some(DType::Float) || scale.rank() > 1 || !scales.iter().all(normal) {
        return None;
    }
    let axis = integer("axis", node).unwrap_or(1);
    let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
    let axis = usize::try_from(axis).ok()?;
    let counted = scales.len() == 1 || dims.get(axis) == Some(&Dim::Fixed(scales.len()));
    counted.then_some(Scaling { at, scales, zeros, dtype: dtype_of, axis, dims })
}

/// The DequantizeLinear node that produces a value.
fn source<'a>(id: Id, draft: &'a Draft, readers: &Readers) -> Option<Scaling<'a>> {
    scaling("DequantizeLinear", readers.producer(id)?, draft)
}

/// The node that produces a value, if nobody but one reads it.
fn before<'a>(id: Id, draft: &'a Draft, readers: &Readers) -> Option<(usize, &'a DraftNode)> {
    let at = readers.producer(id).filter(|_| readers.count(id) == 1)?;
    draft.nodes.get(at).filter(|node| !node.open && node.operator.is_some()).map(|node| (at, node))
}

/// A QuantizeLinear node of one scale, and the node that it reads. A Relu between them may count as nothing, if it is.
struct Last<'a> {
    scaling: Scaling<'a>,
    zero_point: Tensor,
    after: SmallVec<[usize; 3]>,
    main: usize,
    node: &'a DraftNode,
}

fn last<'a>(at: usize, draft: &'a Draft, readers: &Readers, without_relu: bool) -> Option<Last<'a>> {
    let scaling = scaling("QuantizeLinear", at, draft).filter(|last| last.scales.len() == 1)?;
    let zero_point = scaling.zeros()?;
    let mut after: SmallVec<[usize; 3]> = [at].into_iter().collect();
    let (mut main, mut node) = before(draft.nodes.get(at)?.inputs.first().copied().flatten()?, draft, readers)?;
    // What is below 0 becomes the least integer in any case.
    let least = if scaling.dtype == DType::Int8 { 0x80 } else { 0 };
    if without_relu
        && node.standard() == Some("Relu")
        && zero_point.bytes() == [least]
        && let Some(earlier) = before(node.inputs.first().copied().flatten()?, draft, readers)
    {
        after.push(main);
        (main, node) = earlier;
    }
    Some(Last { scaling, zero_point, after, main, node })
}

/// The function of elements whose QuantizeLinear node is at a place.
fn row(at: usize, draft: &Draft, readers: &Readers) -> Option<ByteNodes> {
    let Row { main, sources, inputs, after, rows } = rows_of(at, draft, readers)?;
    Some(ByteNodes { main, sources, inputs, after, operator: Box::new(rows) })
}

/// A function of elements.
struct Row {
    main: usize,
    sources: SmallVec<[(usize, usize, usize); 2]>,
    inputs: SmallVec<[Id; 4]>,
    after: SmallVec<[usize; 3]>,
    rows: ByteRows,
}

fn rows_of(at: usize, draft: &Draft, readers: &Readers) -> Option<Row> {
    [true, false]
        .into_iter()
        .find_map(|without_relu| rows_before(last(at, draft, readers, without_relu)?, draft, readers))
}

fn rows_before(last: Last<'_>, draft: &Draft, readers: &Readers) -> Option<Row> {
    let Last { scaling: last, after, main, node, .. } = last;
    let Some(Made::Rowwise(operator)) = &node.operator else { return None };
    let [Some(output)] = *node.outputs else { return None };
    if !operator.may_chain(DType::Float) || node.inputs.len() > ByteRows::INPUTS {
        return None;
    }
    let (dims, mut full) = (fact(output, draft)?.dims()?, false);
    let (mut sources, mut inputs, mut scales) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
    for (k, id) in node.inputs.iter().enumerate() {
        let id = (*id)?;
        let runs = |source: &Scaling<'_>| draft.nodes.get(source.at).is_some_and(|node| node.operator.is_some());
        match source(id, draft, readers).filter(runs) {
            Some(source) => {
                full |= source.dims == dims;
                sources.push((main, k, source.at));
                inputs.push(draft.nodes.get(source.at)?.inputs.first().copied().flatten()?);
                scales.push(Some(source.single()?));
            }
            None if dtype(id, draft) == Some(DType::Float) => {
                inputs.push(id);
                scales.push(None);
            }
            None => return None,
        }
    }
    let pair = match node.standard() {
        Some("Add") => Some(Pair::Add),
        Some("Mul") => Some(Pair::Mul),
        _ => None,
    };
    let rows = ByteRows::new(operator.clone(), scales, last.single()?, pair);
    full.then_some(Row { main, sources, inputs, after, rows })
}

/// The mean of channels whose QuantizeLinear node is at a place.
fn mean(at: usize, draft: &Draft, readers: &Readers) -> Option<ByteNodes> {
    let Last { scaling: last, after, main, node, .. } = last(at, draft, readers, true)?;
    let (Some(Made::Blockwise(operator)), [Some(x)]) = (&node.operator, &*node.inputs) else { return None };
    let source = source(*x, draft, readers)?;
    let operator = operator.mean_of_bytes(source.single()?, last.single()?)?;
    let inputs = [draft.nodes.get(source.at)?.inputs.first().copied().flatten()?].into_iter().collect();
    Some(ByteNodes { main, sources: [(main, 0, source.at)].into_iter().collect(), inputs, after, operator })
}

/// The product whose QuantizeLinear node is at a place.
fn product(at: usize, draft: &Draft, readers: &Readers, are_met: bool) -> Option<ByteNodes> {
    let Last { scaling: last, zero_point, mut after, mut main, mut node } = last(at, draft, readers, true)?;
    let mut row = None;
    if node.standard() == Some("Add")
        && aligns_last(node)
        && let [Some(one), Some(other)] = *node.inputs
    {
        let (sums, added) = if constant(other, draft).is_some() { (one, other) } else { (other, one) };
        row = Some(constant(added, draft)?);
        after.push(main);
        (main, node) = before(sums, draft, readers)?;
    }
    let Some(Made::Product(made)) = &node.operator else { return None };
    let (is_conv, is_turned) = (node.standard() == Some("Conv"), integer("transB", node).is_some_and(|set| set != 0));
    if are_met && !integers_pay() {
        return None;
    }
    let ([Some(x), Some(w)] | [Some(x), Some(w), _]) = *node.inputs else { return None };
    let (x, w) = (source(x, draft, readers)?, source(w, draft, readers)?);
    let groups = integer("group", node).unwrap_or(1);
    let alone = groups > 1 && w.dims.get(1) == Some(&Dim::Fixed(1));
    // Of each column or filter.
    let axis = if is_conv || is_turned { 0 } else { w.dims.len().checked_sub(1)? };
    let matrix = is_conv || w.dims.len() == 2;
    if x.scales.len() != 1 || (w.scales.len() != 1 && (w.axis != axis || !matrix)) {
        return None;
    }
    let count = w.scales.len();
    let scale = |k: usize| {
        let own = if count == 1 { w.scales.first() } else { w.scales.get(k) };
        own.zip(x.scales.first()).map(|(own, x)| f64::from(*own) * f64::from(*x))
    };
    let by = f64::from(*last.scales.first()?);
    let factors = (0..count).map(|k| Some((scale(k)? / by) as f32)).collect::<Option<Vec<f32>>>()?;
    let bias = bias_of(node, row, [&x, &w], axis, draft)?;
    let of_sum = |(k, number): (usize, &f32)| {
        let number = (f64::from(*number) / scale(k)?).round_ties_even();
        (number.abs() <= f64::from(i32::MAX)).then_some(number as i32)
    };
    let of_sums = match &bias {
        Some(bias) => Some(Tensor::from(bias.iter().enumerate().map(of_sum).collect::<Option<Vec<i32>>>()?)),
        None => None,
    };
    let is_constant = constant(draft.nodes.get(w.at)?.inputs.first().copied().flatten()?, draft).is_some();
    let floats = Floats {
        scales: [*x.scales.first()?, *last.scales.first()?],
        of_columns: Tensor::from(w.scales.to_vec()),
        bias: bias.map(Tensor::from),
    };
    let is_usual = floats.are_usual();
    let zeros = [x.zeros()?, w.zeros()?];
    let (factors, floats) = (Tensor::from(factors), are_met.then_some(floats));
    let bytes =
        ByteProduct { zeros, constant: is_constant, factors, bias: of_sums, most: OnceLock::new(), zero_point, floats };
    // A channel on its own has loops for images and lines alone; else it is soonest summed in floats, which is exact too.
    let own = |count: &Dim| count.fixed() == Some(groups) && matches!(w.dims.len(), 3 | 4);
    let symmetric = is_constant && bytes.is_symmetric();
    if alone && !(symmetric && w.dims.first().is_some_and(own)) {
        return None;
    }
    if are_met && !(symmetric && is_usual && matrix) {
        return None;
    }
    let operator = made.of_bytes(bytes)?;
    if are_met && is_conv {
        let size = |dim: &Dim| dim.fixed().and_then(|size| usize::try_from(size).ok());
        let filters = w.dims.iter().map(size).collect::<Option<SmallVec<[usize; 4]>>>()?;
        operator.byte_windows(size(x.dims.get(1)?)?, &filters)?;
    }
    let integers = |at: usize| draft.nodes.get(at)?.inputs.first().copied().flatten();
    let inputs = [integers(x.at)?, integers(w.at)?].into_iter().collect();
    let sources = [(main, 0, x.at), (main, 1, w.at)].into_iter().collect();
    Some(ByteNodes { main, sources, inputs, after, operator })
}

/// What is added to the sums of each column or filter, along an axis of `w`: what the product adds, or the row of an Add
/// behind it. A single number counts for each scale. `Some(None)` if nothing is added.
fn bias_of(
    node: &DraftNode,
    row: Option<&Tensor>,
    [x, w]: [&Scaling<'_>; 2],
    axis: usize,
    draft: &Draft,
) -> Option<Option<Vec<f32>>> {
    let is_conv = node.standard() == Some("Conv");
    let given = match node.inputs.get(2) {
        Some(Some(bias)) => Some(constant(*bias, draft)?),
        _ => None,
    };
    let bias = match (given, row) {
        (None, None) => return Some(None),
        (Some(bias), None) => bias,
        // A row beside images isn't one number for each filter.
        (None, Some(row)) if !is_conv || row.len() <= 1 => row,
        _ => return None,
    };
    // One number for each column, if it has the shape of a row.
    let is_row = bias.rank() <= x.dims.len() && bias.shape().iter().rev().skip(1).all(|dim| *dim == 1);
    let (len, count, width) = (bias.len(), w.scales.len(), w.dims.get(axis)?);
    if !is_row || !is_conv && w.dims.len() != 2 || len != 1 && *width != Dim::Fixed(len) {
        return None;
    }
    let elements = bias.as_slice::<f32>().ok()?;
    let all = if len == 1 && count > 1 { count } else { len };
    Some(Some((0..all).map(|k| elements.get(k).or(elements.first()).copied()).collect::<Option<Vec<f32>>>()?))
}

/// The node at a place that is a product of bytes as it is, with constants beside them.
fn quantized(main: usize, draft: &Draft) -> Option<ByteNodes> {
    let node = draft.nodes.get(main).filter(|node| !node.open)?;
    let Some(Made::Blockwise(made)) = &node.operator else { return None };
    let input = |k: usize| node.inputs.get(k).copied().flatten();
    let (operator, operands @ [x, _]) = made.of_bytes(&|k| constant(input(k)?, draft))?;
    let known = |(k, id): (usize, &Option<Id>)| k == x || id.is_none_or(|id| constant(id, draft).is_some());
    if !node.inputs.iter().enumerate().all(known) {
        return None;
    }
    let inputs = operands.into_iter().map(input).collect::<Option<SmallVec<[Id; 4]>>>()?;
    Some(ByteNodes { main, sources: SmallVec::new(), inputs, after: SmallVec::new(), operator })
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::{run, stands_for};
    use crate::graph::testing::{self, Builder, load, load_fast};
    use crate::graph::{Draft, Graph, Runs};
    use crate::operator::Attribute;
    use crate::ops::testing::tensor;
    use crate::tensor::Tensor;
    use crate::value::{Dim, Fact, Value};
    use kernels::gemm::blocks::integers_pay;
    use kernels::testing::at_each_level;

    /// A product of two quantized operands, quantized again.
    struct Case {
        operator: &'static str,
        attributes: Vec<(&'static str, Attribute)>,
        x: (DType, Vec<usize>),
        w: (DType, Vec<usize>),
        /// The axis of the scales of `w`, if there are several.
        axis: Option<usize>,
        bias: Option<Vec<usize>>,
        /// A row that is added after the product.
        row: bool,
        relu: bool,
        y: (DType, f32, i32),
        constant: bool,
        /// Whether the zero points of `w` are those of integers that have signs.
        symmetric: bool,
    }

    impl Default for Case {
        fn default() -> Case {
            Case {
                operator: "MatMul",
                attributes: Vec::new(),
                x: (DType::Uint8, vec![4, 70]),
                w: (DType::Int8, vec![70, 33]),
                axis: None,
                bias: None,
                row: false,
                relu: false,
                y: (DType::Uint8, 0.02, 128),
                constant: true,
                symmetric: false,
            }
        }
    }

    fn bytes(dtype: DType, shape: &[usize], seed: u64) -> Value {
        let mut seed = seed;
        let elements = (0..shape.iter().product()).map(|_| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 40) as u8
        });
        Tensor::new(dtype, shape, elements.collect::<Vec<u8>>()).unwrap().into()
    }

    impl Case {
        fn draft(&self) -> Draft {
            let mut builder = Builder::new();
            let (sizes, mut constants) =
                (|shape: &[usize]| Some(shape.iter().copied().map(Dim::Fixed).collect()), vec![]);
            builder.shaped("x", Some(self.x.0.into()), sizes(&self.x.1));
            match self.constant {
                true => constants.push(("w", bytes(self.w.0, &self.w.1, 3))),
                false => builder.shaped("w", Some(self.w.0.into()), sizes(&self.w.1)),
            }
            let count = self.axis.map_or(1, |axis| self.w.1[axis]);
            let shape = &[count][..usize::from(count > 1)];
            let scales: Vec<f32> = (0..count).map(|k| 0.003 + (k % 7) as f32 / 1000.0).collect();
            constants.push(("w_scale", tensor(shape, scales)));
            let zero = if self.w.0 == DType::Int8 { 0 } else { 0x80 };
            constants.push(match self.symmetric {
                true => ("w_zero", Tensor::new(self.w.0, shape, vec![zero; count]).unwrap().into()),
                false => ("w_zero", bytes(self.w.0, shape, 5)),
            });
            constants.push(("x_scale", tensor(&[], [0.01f32])));
            constants.push(("x_zero", bytes(self.x.0, &[], 7)));
            constants.push(("y_scale", tensor(&[], [self.y.1])));
            constants.push(("y_zero", Tensor::new(self.y.0, &[], vec![self.y.2 as u8]).unwrap().into()));
            let numbers = |shape: &[usize]| -> Value {
                tensor(
                    shape,
                    (0..shape.iter().product()).map(|k: usize| (k % 11) as f32 / 7.0 - 0.6).collect::<Vec<_>>(),
                )
            };
            constants.extend(self.bias.iter().map(|shape| ("bias", numbers(shape))));
            constants.extend(self.row.then(|| ("row", numbers(&[self.w.1[1]]))));
            for (name, value) in constants {
                builder.constant(name, value);
            }
            let axis = vec![("axis".to_string(), Attribute::Int(self.axis.unwrap_or(0) as i64))];
            builder.op("DequantizeLinear", &["x", "x_scale", "x_zero"], "a");
            builder.op_with("DequantizeLinear", axis, &["w", "w_scale", "w_zero"], "b");
            let attributes = self.attributes.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
            let inputs = &["a", "b", "bias"][..2 + usize::from(self.bias.is_some())];
            builder.op_with(self.operator, attributes, inputs, "product");
            let mut last = "product";
            if self.row {
                builder.op("Add", &["row", last], "sum");
                last = "sum";
            }
            if self.relu {
                builder.op("Relu", &[last], "relu");
                last = "relu";
            }
            builder.op("QuantizeLinear", &[last, "y_scale", "y_zero"], "y");
            builder.output("y")
        }

        fn feeds(&self) -> Vec<Value> {
            let mut feeds = vec![bytes(self.x.0, &self.x.1, 1)];
            feeds.extend((!self.constant).then(|| bytes(self.w.0, &self.w.1, 3)));
            feeds
        }

        /// Runs it as it is loaded and as it is written: no bit differs. Returns the nodes that the last one stands for.
        fn check_bits(&self) -> Vec<String> {
            let want = run(&load(self.draft(), false).unwrap(), &self.feeds(), None);
            let numbers = want[0].tensor().unwrap().bytes();
            let most = numbers.iter().filter(|byte| **byte == numbers[0]).count();
            assert!(most * 2 < numbers.len(), "most of {numbers:?} are the same");
            at_each_level(|| assert_eq!(run(&load(self.draft(), true).unwrap(), &self.feeds(), None), want));
            parts(&load(self.draft(), true).unwrap())
        }

        /// Runs it folded and as it is written. Returns the nodes that the last one stands for.
        fn check(&self) -> Vec<String> {
            let (graph, plain) = (load_fast(self.draft()).unwrap(), load(self.draft(), false).unwrap());
            let [got, want] = [&graph, &plain].map(|graph| run(graph, &self.feeds(), None).swap_remove(0));
            at_each_level(|| {
                assert_eq!(run(&load_fast(self.draft()).unwrap(), &self.feeds(), None), vec![got.clone()])
            });
            let numbers = |value: &Value| -> Vec<i32> {
                let tensor = value.tensor().unwrap();
                let signed = tensor.dtype() == DType::Int8;
                tensor.bytes().iter().map(|x| if signed { i32::from(*x as i8) } else { i32::from(*x) }).collect()
            };
            let (got, want) = (numbers(&got), numbers(&want));
            assert_eq!(got.len(), want.len());
            let apart = got.iter().zip(&want).filter(|(got, want)| got != want).count();
            let most = got.iter().zip(&want).map(|(got, want)| got.abs_diff(*want)).max().unwrap_or(0);
            assert!(most <= 1 && apart * 100 <= got.len(), "{apart} of {} differ, by {most}", got.len());
            parts(&graph)
        }
    }

    fn parts(graph: &Graph) -> Vec<String> {
        stands_for(graph).pop().unwrap()
    }

    #[test]
    fn products_of_integers() {
        let (u8, i8) = (DType::Uint8, DType::Int8);
        for (x, w) in [(u8, i8), (i8, i8), (u8, u8), (i8, u8)] {
            for y in [(u8, 0.02, 128), (i8, 0.02, -3), (u8, 0.0001, 0), (i8, 0.0003, -128)] {
                for axis in [None, Some(1)] {
                    let case = || Case { x: (x, vec![4, 70]), w: (w, vec![70, 33]), axis, y, ..Case::default() };
                    assert_eq!(case().check(), ["a", "b", "product", "y"]);
                    let with_row = Case { row: true, ..case() };
                    assert_eq!(with_row.check(), ["a", "b", "product", "sum", "y"]);
                }
            }
        }
        let turned = vec![("transB", Attribute::Int(1))];
        let gemm = |bias: &[usize]| Case {
            operator: "Gemm",
            attributes: turned.clone(),
            w: (i8, vec![33, 70]),
            axis: Some(0),
            bias: Some(bias.to_vec()),
            ..Case::default()
        };
        assert_eq!(gemm(&[33]).check(), ["a", "b", "product", "y"]);
        assert_eq!(gemm(&[1, 33]).check(), ["a", "b", "product", "y"]);
        assert_eq!(gemm(&[1]).check(), ["a", "b", "product", "y"]);
        // Two activations, in a batch.
        let both = Case { x: (u8, vec![2, 4, 70]), w: (u8, vec![2, 70, 5]), constant: false, ..Case::default() };
        assert_eq!(both.check(), ["a", "b", "product", "y"]);
    }

    #[test]
    fn convolutions_of_integers() {
        let (u8, i8) = (DType::Uint8, DType::Int8);
        for (w, group, stride) in [(vec![6, 4, 3, 3], 1, 1), (vec![6, 4, 1, 1], 1, 2), (vec![6, 2, 3, 3], 2, 2)] {
            for (axis, bias) in [(None, None), (Some(0), Some(vec![6])), (None, Some(vec![6]))] {
                for y in [(u8, 0.03, 0), (i8, 0.001, -128), (u8, 0.03, 100)] {
                    let case = Case {
                        operator: "Conv",
                        attributes: vec![
                            ("group", Attribute::Int(group)),
                            ("strides", Attribute::Ints(vec![stride; 2])),
                            ("pads", Attribute::Ints(vec![1; 4])),
                        ],
                        x: (u8, vec![2, 4, 9, 38]),
                        w: (i8, w.clone()),
                        axis,
                        bias: bias.clone(),
                        relu: y.2 != 100,
                        y,
                        ..Case::default()
                    };
                    let want = &["a", "b", "product", "relu", "y"][..];
                    let want: Vec<&str> = want.iter().copied().filter(|name| case.relu || *name != "relu").collect();
                    assert_eq!(case.check(), want);
                }
            }
        }
    }

    /// Without being asked for, and with the bits of floats.
    #[test]
    fn integers_of_floats() {
        let (u8, i8, turned) = (DType::Uint8, DType::Int8, vec![("transB", Attribute::Int(1))]);
        let mut fused = Vec::new();
        for (x, w, y) in [(u8, i8, (u8, 0.05, 128)), (i8, u8, (i8, 0.07, -3)), (u8, u8, (i8, 0.06, 0))] {
            for (axis, row) in [(None, false), (Some(1), true)] {
                let case = || Case { w: (w, vec![70, 33]), axis, row, y, symmetric: true, ..Case::default() };
                for shape in [vec![4, 70], vec![3, 2, 70], vec![70]] {
                    fused.push(Case { x: (x, shape), ..case() }.check_bits());
                }
                let gemm = Case { operator: "Gemm", w: (w, vec![33, 70]), attributes: turned.clone(), ..case() };
                let (axis, bias) = (axis.map(|_| 0), Some(vec![33]));
                fused.push(Case { x: (x, vec![4, 70]), axis, row: false, bias, ..gemm }.check_bits());
            }
            for (shape, group, stride) in [
                (vec![6, 4, 3, 3], 1, 1),
                (vec![6, 4, 1, 1], 1, 2),
                (vec![4, 1, 3, 3], 4, 2),
                (vec![4, 1, 21, 23], 4, 2),
            ] {
                for (axis, bias) in [(None, None), (Some(0), Some(vec![shape[0]]))] {
                    let attributes = vec![
                        ("group", Attribute::Int(group)),
                        ("strides", Attribute::Ints(vec![stride; 2])),
                        ("pads", Attribute::Ints(vec![shape[2] as i64 / 2; 4])),
                    ];
                    let (x, w) = ((x, vec![2, 4, 9, 38]), (w, shape.clone()));
                    let conv =
                        Case { operator: "Conv", attributes, x, w, axis, bias, y, symmetric: true, ..Case::default() };
                    fused.push(conv.check_bits());
                }
            }
        }
        assert!(fused.iter().all(|parts| parts.is_empty() != integers_pay()), "{fused:?}");
        // A relu after it, and operands that have to stay floats.
        let relu = Case { relu: true, y: (u8, 0.05, 0), symmetric: true, ..Case::default() };
        assert_eq!(relu.check_bits().is_empty(), !integers_pay());
        let both = Case { x: (u8, vec![2, 4, 70]), w: (i8, vec![2, 70, 5]), symmetric: true, ..Case::default() };
        assert_eq!(both.check_bits(), Vec::<String>::new());
        assert_eq!(Case { constant: false, symmetric: true, ..Case::default() }.check_bits(), Vec::<String>::new());
        assert_eq!(Case { y: (u8, 1.0, 200), ..Case::default() }.check_bits(), Vec::<String>::new());
    }

    /// `y` = QLinearConv of `x` with constants; `w_zero` is that of all filters.
    fn qlinear(builder: &mut Builder, [x, y]: [&str; 2], dtypes: [DType; 3], w: (&[usize], u8), group: i64) {
        let name = |what: &str| format!("{y}.{what}");
        let (shape, zero) = w;
        let mut constants: Vec<(String, Value)> = Vec::new();
        for (k, (what, scale)) in
            [("x", 0.02f32), ("y", 0.04 * (shape[1..].iter().product::<usize>() as f32).sqrt())].into_iter().enumerate()
        {
            constants.push((name(&format!("{what}.scale")), tensor(&[], [scale])));
            let zero = if dtypes[2 * k] == DType::Int8 { 3 } else { 131 };
            constants
                .push((name(&format!("{what}.zero")), Tensor::new(dtypes[2 * k], &[], vec![zero]).unwrap().into()));
        }
        let count = shape[0];
        let numbers = |k: usize| (k * 7 % 11) as f32;
        constants.push((name("w"), bytes(dtypes[1], shape, count as u64)));
        constants.push((
            name("w.scale"),
            tensor(&[count], (0..count).map(|k| 0.01 + numbers(k) / 1000.0).collect::<Vec<_>>()),
        ));
        constants.push((name("w.zero"), Tensor::new(dtypes[1], &[count], vec![zero; count]).unwrap().into()));
        constants
            .push((name("b"), tensor(&[count], (0..count).map(|k| numbers(k) as i32 * 200 - 900).collect::<Vec<_>>())));
        for (name, value) in constants {
            builder.constant(&name, value);
        }
        let inputs = ["x.scale", "x.zero", "w", "w.scale", "w.zero", "y.scale", "y.zero", "b"].map(name);
        let inputs: Vec<&str> = [x].into_iter().chain(inputs.iter().map(String::as_str)).collect();
        let pads = Attribute::Ints(vec![shape[2] as i64 / 2; 2 * (shape.len() - 2)]);
        let attributes = vec![("group".to_string(), Attribute::Int(group)), ("pads".to_string(), pads)];
        builder.op_with("QLinearConv", attributes, &inputs, y);
    }

    /// In blocks from the first to the last, with what stands between them, and what the last one's filters have to have.
    #[test]
    fn convolutions_of_bytes() {
        let (u8, i8) = (DType::Uint8, DType::Int8);
        for (x, w, symmetric) in [(u8, i8, 0), (i8, i8, 0), (u8, u8, 128), (i8, u8, 128)] {
            for last in [symmetric, symmetric + 1] {
                let draft = || {
                    let mut builder = Builder::new();
                    builder.shaped("x", Some(x.into()), Some([2, 3, 9, 38].map(Dim::Fixed).to_vec()));
                    qlinear(&mut builder, ["x", "first"], [x, w, u8], (&[20, 3, 3, 3], symmetric), 1);
                    let zero = builder.id("relu.zero");
                    builder.draft.constant(
                        zero,
                        Fact::constant(Tensor::new(x, &[], vec![if x == i8 { 0x80 } else { 0 }]).unwrap().into()),
                        None,
                    );
                    builder.op("DequantizeLinear", &["first", "first.y.scale", "first.y.zero"], "floats");
                    builder.op("Relu", &["floats"], "relu");
                    builder.op("QuantizeLinear", &["relu", "first.x.scale", "relu.zero"], "bytes");
                    qlinear(&mut builder, ["bytes", "own"], [x, w, i8], (&[20, 1, 3, 3], symmetric), 20);
                    qlinear(&mut builder, ["own", "y"], [i8, w, x], (&[18, 20, 1, 1], last), 1);
                    builder.output("y")
                };
                let feeds = [bytes(x, &[2, 3, 9, 38], 1)];
                let want = run(&load(draft(), false).unwrap(), &feeds, None);
                let numbers = want[0].tensor().unwrap().bytes();
                let most = numbers.iter().filter(|byte| **byte == numbers[0]).count();
                assert!(most * 2 < numbers.len(), "most of {numbers:?} are the same");
                at_each_level(|| assert_eq!(run(&load(draft(), true).unwrap(), &feeds, None), want, "{x} {w} {last}"));
                let graph = load(draft(), true).unwrap();
                let fused = graph.nodes.iter().filter(|node| matches!(node.operator, Runs::Fused(_))).count();
                assert_eq!(fused, if last == symmetric { 4 } else { 3 }, "{x} {w} {last}");
            }
        }
    }

    /// Filters of one channel have zero points in blocks too, and lines are images of one axis.
    #[test]
    fn bytes_of_lines_and_zero_points_of_filters() {
        let (u8, i8) = (DType::Uint8, DType::Int8);
        let shapes: [[&[usize]; 3]; 2] =
            [[&[2, 20, 38], &[20, 1, 9], &[7, 20, 3]], [&[1, 20, 9, 13], &[20, 1, 3, 3], &[18, 20, 1, 1]]];
        for ([image, own, all], (x, w, zero)) in shapes.into_iter().flat_map(|shapes| {
            [(u8, u8, 120), (u8, u8, 0), (i8, u8, 255), (u8, i8, 3), (i8, i8, 0x80), (u8, i8, 0)].map(|of| (shapes, of))
        }) {
            let draft = || {
                let mut builder = Builder::new();
                let dims: Vec<Dim> = image.iter().copied().map(Dim::Fixed).collect();
                builder.shaped("x", Some(x.into()), Some(dims));
                qlinear(&mut builder, ["x", "own"], [x, w, u8], (own, zero), 20);
                qlinear(&mut builder, ["own", "y"], [u8, i8, x], (all, 0), 1);
                builder.output("y")
            };
            let feeds = [bytes(x, image, 1)];
            let want = run(&load(draft(), false).unwrap(), &feeds, None);
            at_each_level(|| {
                assert_eq!(run(&load(draft(), true).unwrap(), &feeds, None), want, "{image:?} {w} {zero}")
            });
            let graph = load(draft(), true).unwrap();
            let fused = graph.nodes.iter().filter(|node| matches!(node.operator, Runs::Fused(_))).count();
            assert_eq!(fused, 2, "{image:?} {w} {zero}");
        }
    }

    /// Groups that have blocks of channels and of filters, and that share them, of images and of lines.
    #[test]
    fn groups_of_bytes() {
        let (u8, i8) = (DType::Uint8, DType::Int8);
        let shapes: [(&[usize], &[usize]); 5] = [
            (&[1, 32, 9, 13], &[32, 16, 3, 3]),
            (&[2, 24, 9, 13], &[24, 8, 3, 3]),
            (&[1, 48, 5, 13], &[16, 24, 3, 3]),
            (&[1, 36, 9, 13], &[36, 4, 5, 5]),
            (&[2, 24, 38], &[72, 8, 3]),
        ];
        for (image, filters) in shapes {
            let group = (image[1] / filters[1]) as i64;
            for (x, w, zero) in [(u8, i8, 0), (i8, u8, 128)] {
                let draft = || {
                    let mut builder = Builder::new();
                    let dims: Vec<Dim> = image.iter().copied().map(Dim::Fixed).collect();
                    builder.shaped("x", Some(x.into()), Some(dims));
                    qlinear(&mut builder, ["x", "y"], [x, w, u8], (filters, zero), group);
                    builder.output("y")
                };
                let feeds = [bytes(x, image, 1)];
                let want = run(&load(draft(), false).unwrap(), &feeds, None);
                at_each_level(|| assert_eq!(run(&load(draft(), true).unwrap(), &feeds, None), want, "{filters:?} {w}"));
                let graph = load(draft(), true).unwrap();
                assert!(graph.nodes.iter().all(|node| matches!(node.operator, Runs::Fused(_))), "{filters:?} {w}");
            }
        }
    }

    /// Parameters of a rank that the operator doesn't take are refused, as without optimisation.
    #[test]
    fn parameters_of_another_rank() {
        let (u8, i8) = (DType::Uint8, DType::Int8);
        for what in ["x.scale", "x.zero", "w.scale", "w.zero", "y.scale", "y.zero"] {
            let errors = [true, false].map(|optimize| {
                let mut builder = Builder::new();
                builder.shaped("x", Some(u8.into()), Some([1, 8, 5, 5].map(Dim::Fixed).to_vec()));
                qlinear(&mut builder, ["x", "y"], [u8, i8, u8], (&[16, 8, 3, 3], 0), 1);
                let id = builder.id(&format!("y.{what}"));
                let fact = &mut builder.draft.entries[id.at()].fact;
                let tensor = fact.take_value().unwrap().into_tensor().unwrap();
                let shape = [1, tensor.len()];
                *fact = Fact::constant(tensor.reshaped(shape[..].into()).unwrap().into());
                let graph = load(builder.output("y"), optimize);
                let ran = graph.and_then(|graph| testing::run(&graph, &[bytes(u8, &[1, 8, 5, 5], 1)], None));
                ran.unwrap_err().to_string()
            });
            assert!(errors[0].contains("has shape [1, "), "{}", errors[0]);
            assert_eq!(errors[0], errors[1], "{what}");
        }
    }

    /// What isn't such a product runs as it is written.
    #[test]
    fn what_stays() {
        let none = Vec::<String>::new();
        // Scales along the sums, a Relu above the least integer, a transposed first operand, scaled products.
        assert_eq!(Case { axis: Some(0), ..Case::default() }.check(), none);
        assert_eq!(Case { relu: true, ..Case::default() }.check(), none);
        for attribute in [("alpha", Attribute::Float(0.5)), ("beta", Attribute::Float(2.0))] {
            let case = Case { operator: "Gemm", attributes: vec![attribute], bias: Some(vec![33]), ..Case::default() };
            assert_eq!(case.check(), none);
        }
        let turned = vec![("transA", Attribute::Int(1))];
        let case = Case { operator: "Gemm", attributes: turned, x: (DType::Uint8, vec![70, 4]), ..Case::default() };
        assert_eq!(case.check(), none);
        // A bias for each row.
        assert_eq!(Case { operator: "Gemm", bias: Some(vec![4, 1]), ..Case::default() }.check(), none);
    }

    /// Somebody else reads the floats of an operand, or the sums.
    #[test]
    fn what_others_read() {
        for (also, fused) in [("a", true), ("b", true), ("product", false)] {
            let draft = || {
                let mut draft = Case::default().draft();
                let id = draft.entries.iter().position(|entry| *entry.name == *also).unwrap();
                let node =
                    draft.nodes.iter().find(|node| node.outputs.iter().flatten().any(|own| own.at() == id)).unwrap();
                let id = node.outputs[0].unwrap();
                let info = crate::graph::ValueInfo { name: also.into(), value_type: None, shape: None };
                draft.output(info, id);
                draft
            };
            let (graph, plain) = (load_fast(draft()).unwrap(), load(draft(), false).unwrap());
            assert_eq!(!parts(&graph).is_empty(), fused, "{also}");
            let [got, want] = [&graph, &plain].map(|graph| run(graph, &Case::default().feeds(), None).pop().unwrap());
            assert_eq!(got, want, "{also}");
        }
    }

    /// `y = quantize(f(dequantize(x), ..))`, where other inputs are dequantized too or are floats.
    fn of_elements(operator: &str, inputs: &[&str], types: [DType; 2], to: DType, also_read: bool) -> Draft {
        let mut builder = Builder::new();
        let shapes: [(&str, Vec<Dim>); 3] = [
            ("a", vec![Dim::Fixed(3), Dim::Fixed(700)]),
            ("b", vec![Dim::Symbol("N".into()), Dim::Fixed(700)]),
            ("c", vec![Dim::Fixed(700)]),
        ];
        let mut constant = |name: String, value: Value| {
            builder.constant(&name, value);
        };
        for (k, dtype) in [types[0], types[1], to].into_iter().enumerate() {
            constant(format!("scale{k}"), tensor(&[], [0.013f32 + k as f32 / 100.0]));
            constant(format!("zero{k}"), bytes(dtype, &[], 7 + k as u64));
        }
        for ((k, (name, dims)), dtype) in shapes.into_iter().enumerate().zip([types[0], types[1], DType::Float]) {
            builder.shaped(&format!("{name}_fed"), Some(dtype.into()), Some(dims));
            match k {
                2 => builder.op("Identity", &["c_fed"], "c"),
                _ => builder.op(
                    "DequantizeLinear",
                    &[&format!("{name}_fed"), &format!("scale{k}"), &format!("zero{k}")],
                    name,
                ),
            }
        }
        builder.op(operator, inputs, "floats");
        builder.op("QuantizeLinear", &["floats", "scale2", "zero2"], "y");
        if also_read {
            builder.output_named("a");
        }
        builder.output("y")
    }

    #[test]
    fn rows_of_integers() {
        let (u8, i8) = (DType::Uint8, DType::Int8);
        let row: Vec<f32> = (0..700).map(|k| (k % 13) as f32 / 5.0 - 1.2).collect();
        for (operator, inputs) in [
            ("Add", &["a", "b"][..]),
            ("Mul", &["a", "c"]),
            ("Add", &["c", "a"]),
            ("Mul", &["a", "a"]),
            ("Sigmoid", &["a"]),
            ("HardSigmoid", &["a"]),
            // No number at all becomes 0.
            ("Sqrt", &["a"]),
        ] {
            for (types, to) in [([u8, u8], u8), ([i8, u8], i8), ([u8, i8], u8)] {
                for also_read in [false, true] {
                    let draft = || of_elements(operator, inputs, types, to, also_read);
                    let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
                    assert!(parts(&graph).contains(&"y".to_string()), "{operator}");
                    for rows in [3, 1] {
                        let (a, b) = (bytes(types[0], &[3, 700], 1), bytes(types[1], &[rows, 700], 2));
                        let feeds = [a, b, tensor(&[700], row.clone())];
                        let want = run(&plain, &feeds, None);
                        at_each_level(|| assert_eq!(run(&graph, &feeds, None), want, "{operator} {types:?}"));
                    }
                }
            }
        }
    }
}
