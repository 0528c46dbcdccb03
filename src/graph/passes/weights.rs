//! Lets products read a constant as small integers, in the place of the floats that DequantizeLinear makes of them.

use super::tables::{self, Picked};
use super::{PassContext, Readers, integer};
use crate::error::Result;
use crate::graph::draft::{Draft, DraftNode, Entry, Id};
use crate::operator::{Dequantized, Made};
use crate::tensor::Tensor;
use crate::value::ValueType;

/// Values that DequantizeLinear nodes give and that nobody reads but products, as their second operands, or Gather nodes, as
/// their data.
#[derive(Debug, Default)]
pub(in crate::graph) struct Operands(Vec<(usize, Reader)>);

/// Who reads such a value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reader {
    Nobody,
    /// Products, which may transpose it.
    Product {
        turned: bool,
    },
    Gather {
        axis: i64,
    },
    Others,
}

impl Operands {
    pub(super) fn of(draft: &Draft) -> Operands {
        let dequantized = draft.nodes.iter().filter(|node| node.standard() == Some("DequantizeLinear"));
        let mut values: Vec<(usize, Reader)> = dequantized
            .filter_map(|node| node.outputs.first().copied().flatten())
            .map(|id| (id.at(), Reader::Nobody))
            .collect();
        if values.is_empty() {
            return Operands(values);
        }
        values.sort_unstable_by_key(|(at, _)| *at);
        let mut read = |id: Id, by: Reader| {
            let found = values.binary_search_by_key(&id.at(), |(at, _)| *at).ok();
            if let Some((_, reader)) = found.and_then(|found| values.get_mut(found)) {
                *reader = if *reader == Reader::Nobody || *reader == by { by } else { Reader::Others };
            }
        };
        for node in &draft.nodes {
            let product = turned(node).map(|turned| (1, Reader::Product { turned }));
            let own = product.or_else(|| tables::axis(node).map(|axis| (0, Reader::Gather { axis })));
            let operand = own.and_then(|(k, by)| Some((node.inputs.get(k).copied().flatten()?, by)));
            for id in node.reads() {
                let single = node.inputs.iter().filter(|input| **input == Some(id)).count() == 1;
                let by = operand.filter(|(own, _)| *own == id && single);
                read(id, by.map_or(Reader::Others, |(_, by)| by));
            }
        }
        draft.outputs.iter().for_each(|(_, id)| read(*id, Reader::Others));
        Operands(values)
    }

    /// Whether those that read what a node gives can do with its integers.
    pub(super) fn has(&self, node: &DraftNode, entries: &[Entry]) -> bool {
        let [Some(y)] = *node.outputs else { return false };
        let found = self.0.binary_search_by_key(&y.at(), |(at, _)| *at).ok();
        match found.and_then(|found| self.0.get(found)) {
            Some((_, Reader::Product { turned })) => dequantized(node, entries, *turned).is_some(),
            Some((_, Reader::Gather { axis })) => Picked::of(node, entries, *axis).is_some(),
            _ => false,
        }
    }
}

/// MatMul and Gemm whose second operand is left to them.
pub(super) fn weights(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    for at in 0..draft.nodes.len() {
        if let Some((operator, x)) = reads_integers(at, draft, &readers)
            && let Some(node) = draft.nodes.get_mut(at)
            && let Some(input) = node.inputs.get_mut(1)
        {
            (node.operator, *input) = (Some(operator), Some(x));
        }
    }
    Ok(())
}

/// The product at a place as one of integers, and these.
fn reads_integers(at: usize, draft: &Draft, readers: &Readers) -> Option<(Made, Id)> {
    let node = draft.nodes.get(at).filter(|node| !node.open)?;
    let (Some(Made::Product(product)), Some(turned)) = (&node.operator, turned(node)) else { return None };
    let source = draft.nodes.get(readers.producer(node.inputs.get(1).copied().flatten()?)?)?;
    // What was computed at load is as good.
    if source.operator.is_none() || source.standard() != Some("DequantizeLinear") {
        return None;
    }
    let product = product.of_integers(dequantized(source, &draft.entries, turned)?)?;
    Some((Made::Product(product), source.inputs.first().copied().flatten()?))
}

/// Whether a node transposes its second operand, if it is a product of matrices.
fn turned(node: &DraftNode) -> Option<bool> {
    match node.standard()? {
        "MatMul" => Some(false),
        "Gemm" => Some(integer("transB", node).is_some_and(|set| set != 0)),
        _ => None,
    }
}

/// The integers of a DequantizeLinear node, if they are constant and a product can read them.
fn dequantized(node: &DraftNode, entries: &[Entry], turned: bool) -> Option<Dequantized> {
    let y = node.outputs.first().copied().flatten()?;
    let dtype = entries.get(y.at())?.fact.value_type().and_then(ValueType::dtype)?;
    let Scaled { x, scales, zeros, places } = Scaled::of(node, entries)?;
    Dequantized::of(places, [x, scales], zeros, dtype, turned)
}

/// The constants that a DequantizeLinear node reads.
pub(super) struct Scaled<'a> {
    pub(super) x: &'a Tensor,
    pub(super) scales: &'a Tensor,
    pub(super) zeros: Option<&'a Tensor>,
    /// The axis, and the size of blocks, or 0.
    pub(super) places: [i64; 2],
}

impl Scaled<'_> {
    pub(super) fn of<'a>(node: &DraftNode, entries: &'a [Entry]) -> Option<Scaled<'a>> {
        let constant = |id: Option<Id>| entries.get(id?.at())?.fact.value()?.tensor().ok();
        let [x, scales, zeros @ ..] = &*node.inputs else { return None };
        let zeros = match zeros.first() {
            Some(Some(zeros)) => Some(constant(Some(*zeros))?),
            _ => None,
        };
        let places = [integer("axis", node).unwrap_or(1), integer("block_size", node).unwrap_or(0)];
        (!node.open).then_some(Scaled { x: constant(*x)?, scales: constant(*scales)?, zeros, places })
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::{run, stands_for};
    use crate::graph::testing::{Builder, load};
    use crate::graph::{Draft, Graph};
    use crate::operator::Attribute;
    use crate::ops::testing::{int, tensor};
    use crate::registry::Registry;
    use crate::tensor::Tensor;
    use crate::value::{Dim, Value};
    use half::{bf16, f16};

    /// `y = relu(product(x, dequantize(w)) + c)`.
    #[derive(Clone)]
    struct Case {
        operator: &'static str,
        /// Of x, and of w as it is stored.
        shapes: [Vec<usize>; 2],
        integers: DType,
        floats: DType,
        axis: i64,
        block: i64,
        scales: Vec<usize>,
        zeros: bool,
        turned: bool,
        /// Who else reads the floats.
        also: Option<&'static str>,
    }

    impl Default for Case {
        fn default() -> Case {
            Case {
                operator: "MatMul",
                shapes: [vec![3, 40], vec![40, 18]],
                integers: DType::Int4,
                floats: DType::Float,
                axis: 0,
                block: 16,
                scales: vec![3, 18],
                zeros: true,
                turned: false,
                also: None,
            }
        }
    }

    /// Small numbers that differ.
    fn numbers(dtype: DType, shape: &[usize], seed: usize) -> Value {
        let count = shape.iter().product();
        let at = |k: usize| (k * 29 + seed * 7) % 113;
        let floats = (0..count).map(|k| at(k) as f32 / 64.0 - 0.7);
        let codes = |least: i32, values: i32| -> Vec<u8> {
            (0..count).map(|k| (at(k) as i32 % values + least) as u8).collect()
        };
        let codes = match dtype {
            DType::Float => return tensor(shape, floats.collect::<Vec<_>>()),
            DType::Float16 => return tensor(shape, floats.map(f16::from_f32).collect::<Vec<_>>()),
            DType::Bfloat16 => return tensor(shape, floats.map(bf16::from_f32).collect::<Vec<_>>()),
            DType::Int4 => codes(-8, 16),
            DType::Uint4 => codes(0, 16),
            DType::Int2 => codes(-2, 4),
            DType::Uint2 => codes(0, 4),
            DType::Int8 => codes(-57, 113),
            _ => codes(100, 113),
        };
        Tensor::new(dtype, shape, codes).unwrap().into()
    }

    impl Case {
        fn draft(&self) -> Draft {
            let [x, w] = &self.shapes;
            let mut builder = Builder::new();
            builder.shaped("x", Some(self.floats.into()), Some(x.iter().copied().map(Dim::Fixed).collect()));
            let columns = if self.turned { w[0] } else { w[1] };
            for (name, value) in [
                ("w", numbers(self.integers, w, 1)),
                ("scales", numbers(self.floats, &self.scales, 2)),
                ("zeros", numbers(self.integers, &self.scales, 3)),
                ("c", numbers(self.floats, &[columns], 4)),
            ] {
                builder.constant(name, value);
            }
            let inputs = if self.zeros { &["w", "scales", "zeros"][..] } else { &["w", "scales"] };
            let named = |(name, value): (&str, Attribute)| (name.to_string(), value);
            let attributes = [int("axis", self.axis), int("block_size", self.block)].map(named).to_vec();
            let resolved = Registry::default().resolve("", "DequantizeLinear", 25).unwrap();
            builder.whole_node("floats", resolved, attributes, inputs, "floats");
            let attributes = if self.turned { vec![named(int("transB", 1))] } else { Vec::new() };
            builder.op_with(self.operator, attributes, &["x", "floats"], "product");
            builder.op("Add", &["product", "c"], "sum");
            builder.op("Relu", &["sum"], "y");
            match self.also {
                Some("output") => builder.output_named("floats"),
                Some(operator) => {
                    builder.op(operator, &["floats"], "other");
                    builder.output_named("other");
                }
                None => {}
            }
            builder.output("y")
        }

        /// Whether the product reads integers. The bits are those of floats.
        fn reads_integers(&self) -> bool {
            let [got, want] = [true, false].map(|optimize| load(self.draft(), optimize).unwrap());
            let feeds = [numbers(self.floats, &self.shapes[0], 5)];
            assert_eq!(run(&got, &feeds, None), run(&want, &feeds, None), "{:?} {:?}", self.integers, self.shapes);
            reads(&got, self.integers)
        }
    }

    /// Whether a node that is no DequantizeLinear reads integers of a type.
    fn reads(graph: &Graph, integers: DType) -> bool {
        assert!(stands_for(graph).iter().flatten().all(|name| name != "floats"));
        graph.constants.iter().any(|value| value.tensor().is_ok_and(|tensor| tensor.dtype() == integers))
    }

    #[test]
    fn products_read_integers() {
        let integers = [DType::Int4, DType::Uint4, DType::Int2, DType::Uint2, DType::Int8, DType::Uint8];
        for (at, integers) in integers.into_iter().enumerate() {
            for floats in [DType::Float, DType::Float16, DType::Bfloat16] {
                let case = Case { integers, floats, zeros: at % 2 == 0, ..Case::default() };
                assert!(case.reads_integers());
                assert!(Case { shapes: [vec![2, 3, 40], vec![40, 18]], ..case.clone() }.reads_integers());
                assert!(Case { shapes: [vec![40], vec![40, 18]], ..case.clone() }.reads_integers());
                // A scale for each column, and one for all.
                assert!(Case { axis: 1, block: 0, scales: vec![18], ..case.clone() }.reads_integers());
                assert!(Case { axis: -1, block: 0, scales: vec![18], ..case.clone() }.reads_integers());
                for scales in [vec![], vec![1]] {
                    assert!(Case { axis: 1, block: 0, scales, ..case.clone() }.reads_integers());
                }
                let gemm = Case { operator: "Gemm", ..case };
                assert!(gemm.reads_integers());
                let turned = Case { shapes: [vec![3, 40], vec![18, 40]], turned: true, ..gemm };
                assert!(Case { axis: 1, scales: vec![18, 3], ..turned.clone() }.reads_integers());
                assert!(Case { axis: 0, block: 0, scales: vec![18], ..turned }.reads_integers());
            }
        }
    }

    /// What else reads the floats, scales along the sums or for blocks of columns, few rows a block, few columns.
    #[test]
    fn floats_that_stay() {
        let case = Case { integers: DType::Int8, ..Case::default() };
        for also in ["output", "Neg"] {
            assert!(!Case { also: Some(also), ..case.clone() }.reads_integers(), "{also}");
        }
        assert!(!Case { axis: 0, block: 0, scales: vec![40], ..case.clone() }.reads_integers());
        assert!(!Case { axis: 1, block: 9, scales: vec![40, 2], ..case.clone() }.reads_integers());
        assert!(!Case { block: 4, scales: vec![10, 18], ..case.clone() }.reads_integers());
        let few = Case { shapes: [vec![3, 40], vec![40, 15]], scales: vec![3, 15], ..case };
        assert!(!few.reads_integers());
    }
}
