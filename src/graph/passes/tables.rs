//! Lets Gather pick from a table of small integers, so that floats are made of the picked ones alone.

use super::copies::{beside, copy, copy_with, insert};
use super::weights::Scaled;
use super::{PassContext, Readers, constant, fact, integer};
use crate::error::Result;
use crate::graph::NODE_BYTES;
use crate::graph::draft::{Draft, DraftNode, Entry};
use crate::operator::{Attribute, Made};
use crate::tensor::{Shape, Tensor};
use crate::value::{Fact, ValueType};

/// Elements of the smallest table; of fewer, floats are made at load.
const LEAST: usize = if cfg!(test) { 1 << 11 } else { 1 << 20 };

/// How floats are made of the entries that Gather picks.
#[derive(Debug, PartialEq)]
pub(super) struct Picked {
    /// The axis of the DequantizeLinear node then, and the size of blocks. `None` if there is one scale.
    places: Option<[i64; 2]>,
    /// The shape of scales and zero points, if their entries are picked, too.
    scales: Option<Shape>,
}

impl Picked {
    /// What a DequantizeLinear node makes of entries along an axis of its integers. `None` if these aren't a table.
    pub(super) fn of(node: &DraftNode, entries: &[Entry], axis: i64) -> Option<Picked> {
        let Scaled { x, scales, zeros, places: [own, block] } = Scaled::of(node, entries)?;
        let single = |tensor: &Tensor| tensor.len() == 1;
        let fits = |zeros: &Tensor| zeros.shape() == scales.shape() || single(zeros) && single(scales);
        if x.len() < LEAST || x.dtype().size() != 1 || !zeros.is_none_or(fits) {
            return None;
        }
        if single(scales) {
            return Some(Picked { places: None, scales: None });
        }
        let rank = x.rank() as i64;
        let place = |axis: i64| (-rank..rank).contains(&axis).then(|| axis.rem_euclid(rank));
        let (axis, own) = (place(axis)?, place(own)?);
        // Where axes are picked before it, it is counted from the last.
        let after = if own > axis { own - rank } else { own };
        let since = node.resolved.as_ref().map_or(0, |resolved| resolved.schema.since_version);
        let entries = |axis: i64| x.shape().get(axis as usize).copied();
        let needed = |(d, size): (usize, &usize)| match block {
            1.. if d as i64 == own => size.div_ceil(block as usize),
            _ => *size,
        };
        match scales.shape() {
            [count] if since >= 13 && Some(*count) == entries(own) => match (rank, axis == own) {
                (_, false) => Some(Picked { places: Some([after, 0]), scales: None }),
                // A row of a matrix is a block of it.
                (2, true) if axis == 0 => {
                    let block = entries(1).and_then(|size| i64::try_from(size).ok())?;
                    Some(Picked { places: Some([-1, block]), scales: Some(Shape::from_slice(&[*count, 1])) })
                }
                _ => None,
            },
            shape if block > 0 && axis != own && x.shape().iter().enumerate().map(needed).eq(shape.iter().copied()) => {
                Some(Picked { places: Some([after, block]), scales: Some(Shape::from_slice(shape)) })
            }
            _ => None,
        }
    }
}

/// The axis along which a node picks entries, if it is a Gather.
pub(super) fn axis(node: &DraftNode) -> Option<i64> {
    (node.standard()? == "Gather").then(|| integer("axis", node).unwrap_or(0))
}

/// `Gather(DequantizeLinear(table))` becomes `DequantizeLinear(Gather(table))`.
pub(super) fn tables(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let mut new = Vec::new();
    for at in 0..draft.nodes.len() {
        if let Some((source, picked)) = found(at, draft, &readers) {
            pick(at, source, picked, draft, &mut new, context)?;
        }
    }
    insert(new, draft);
    Ok(())
}

/// The node that makes the table from which the one at a place picks, and how.
fn found(at: usize, draft: &Draft, readers: &Readers) -> Option<(usize, Picked)> {
    let is_plain = |node: &&DraftNode| matches!(node.operator, Some(Made::Plain(_))) && !node.open;
    let node = draft.nodes.get(at).filter(is_plain)?;
    let (axis, source) = (axis(node)?, readers.producer(node.inputs.first().copied().flatten()?)?);
    let table = draft.nodes.get(source).filter(is_plain)?;
    table.standard().filter(|name| *name == "DequantizeLinear")?;
    Some((source, Picked::of(table, &draft.entries, axis)?))
}

/// Makes the node at a place the one that makes floats of picked integers; those that pick are to stand before it.
fn pick(
    at: usize,
    source: usize,
    picked: Picked,
    draft: &mut Draft,
    new: &mut Vec<(usize, DraftNode)>,
    context: &PassContext<'_>,
) -> Result<()> {
    let Some((gather, table)) = draft.nodes.get(at).zip(draft.nodes.get(source)) else { return Ok(()) };
    let (&[Some(output)], mut attributes) = (&*gather.outputs, table.attributes.clone()) else { return Ok(()) };
    if let Some(places) = picked.places {
        attributes.retain(|(name, _)| !matches!(name.as_str(), "axis" | "block_size"));
        attributes.extend(["axis", "block_size"].map(String::from).into_iter().zip(places.map(Attribute::Int)));
    }
    let taken = context.loading.budget.take(4 * NODE_BYTES as u64).is_ok();
    let Some((mut floats, _)) = copy_with(attributes, source, draft, context).filter(|_| taken) else { return Ok(()) };
    for (k, what) in ["integers", "scales", "zero points"].into_iter().enumerate() {
        let shape = picked.scales.as_ref().filter(|_| k > 0);
        let Some(list) = floats.inputs.get_mut(k).filter(|_| k == 0 || shape.is_some()) else { continue };
        let Some(tensor) = list.and_then(|list| constant(list, draft)).cloned() else { continue };
        let (of, dims) = (ValueType::from(tensor.dtype()), fact(output, draft).and_then(Fact::dims));
        let own = Fact::of(Some(of.clone()), dims.filter(|_| k == 0).map(Into::into));
        let Some((mut gather, _)) = copy(at, draft, context) else { return Ok(()) };
        let Some(data) = gather.inputs.first_mut() else { return Ok(()) };
        let tensor = shape.map_or(Ok(tensor.clone()), |shape| tensor.reshaped(shape.clone()))?;
        // Errors name what the node of the model reads.
        *data = data.map(|data| beside(data, "", Fact::constant(tensor.into()), draft, context)).transpose()?;
        let id = beside(output, what, own, draft, context)?;
        *list = Some(id);
        (gather.outputs, gather.known) = ([Some(id)].into_iter().collect(), [Some(of)].into_iter().collect());
        new.push((at, gather));
    }
    if let Some(node) = draft.nodes.get_mut(at) {
        floats.outputs = std::mem::take(&mut node.outputs);
        *node = floats;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::LEAST;
    use crate::dtype::DType;
    use crate::graph::passes::testing::run;
    use crate::graph::testing::{self, Builder, load};
    use crate::graph::{Draft, Graph};
    use crate::operator::Attribute;
    use crate::ops::testing::{int, tensor};
    use crate::registry::Registry;
    use crate::tensor::Tensor;
    use crate::value::{Dim, Value};
    use half::f16;
    use std::slice::from_ref;

    /// `y = gather(dequantize(table), indices)`.
    #[derive(Clone)]
    struct Case {
        shape: Vec<usize>,
        integers: DType,
        half: bool,
        version: i64,
        /// Of DequantizeLinear.
        axis: i64,
        block: i64,
        scales: Vec<usize>,
        zeros: bool,
        /// Of Gather.
        along: i64,
        /// Who else reads the floats.
        also: bool,
    }

    impl Default for Case {
        fn default() -> Case {
            let shape = vec![LEAST / 32, 32];
            let (scales, along) = (vec![LEAST / 32, 2], 0);
            Case {
                shape,
                integers: DType::Int4,
                half: false,
                version: 25,
                axis: 1,
                block: 16,
                scales,
                zeros: true,
                along,
                also: false,
            }
        }
    }

    impl Case {
        fn draft(&self, indices: &[usize]) -> Draft {
            let mut builder = Builder::new();
            let dims = indices.iter().copied().map(Dim::Fixed).collect();
            builder.shaped("indices", Some(DType::Int64.into()), Some(dims));
            let count = |shape: &[usize]| shape.iter().product::<usize>();
            let codes = |shape: &[usize], seed: usize| {
                let code = |k: usize| match self.integers {
                    DType::Int4 => ((k * 7 + k / 31 + seed) % 16) as u8 ^ 8,
                    _ => (k * 37 + k / 255 + seed) as u8,
                };
                let signed = |code: u8| if self.integers == DType::Int4 { code.wrapping_sub(8) } else { code };
                let codes = (0..count(shape)).map(|k| signed(code(k))).collect::<Vec<u8>>();
                Value::from(Tensor::new(self.integers, shape, codes).unwrap())
            };
            let scale = |k: usize| (k % 1999) as f32 / 1024.0 + 0.1;
            let scales = match self.half {
                false => tensor(&self.scales, (0..count(&self.scales)).map(scale).collect::<Vec<f32>>()),
                true => tensor(
                    &self.scales,
                    (0..count(&self.scales)).map(|k| f16::from_f32(scale(k))).collect::<Vec<f16>>(),
                ),
            };
            for (name, value) in
                [("table", codes(&self.shape, 0)), ("scales", scales), ("zeros", codes(&self.scales, 5))]
            {
                builder.constant(name, value);
            }
            let inputs = if self.zeros { &["table", "scales", "zeros"][..] } else { &["table", "scales"] };
            let named = |(name, value): (&str, Attribute)| (name.to_string(), value);
            let mut attributes = Vec::new();
            attributes.extend((self.version >= 13).then(|| named(int("axis", self.axis))));
            attributes.extend((self.version >= 21).then(|| named(int("block_size", self.block))));
            let resolved = Registry::default().resolve("", "DequantizeLinear", self.version).unwrap();
            builder.whole_node("floats", resolved, attributes, inputs, "floats");
            builder.op_with("Gather", vec![named(int("axis", self.along))], &["floats", "indices"], "y");
            if self.also {
                builder.op("Neg", &["floats"], "other");
                builder.output_named("other");
            }
            builder.output("y")
        }

        /// Whether the integers are picked. The bits are those of floats.
        fn picks(&self) -> bool {
            let entries = self.shape[self.along.rem_euclid(self.shape.len() as i64) as usize] as i64;
            let mut picks = None;
            for shape in [&[][..], &[3], &[0], &[2, 1, 2]] {
                let list = (0..shape.iter().product::<usize>() as i64).map(|k| k * 7 % entries - entries * (k % 2));
                let indices = tensor(shape, list.collect::<Vec<i64>>());
                let [got, want] = [true, false].map(|optimize| load(self.draft(shape), optimize).unwrap());
                let feeds = from_ref(&indices);
                assert_eq!(run(&got, feeds, None), run(&want, feeds, None), "{:?} {shape:?}", self.scales);
                let now = reads(&got, self.integers);
                assert_eq!(picks.replace(now).unwrap_or(now), now);
            }
            picks.unwrap()
        }
    }

    /// Whether the graph has a constant of a type.
    fn reads(graph: &Graph, integers: DType) -> bool {
        graph.constants.iter().any(|value| value.tensor().is_ok_and(|tensor| tensor.dtype() == integers))
    }

    #[test]
    fn integers_are_picked() {
        let case = Case::default();
        let (rows, columns) = (LEAST / 32, 32);
        assert!(case.picks());
        assert!(Case { zeros: false, axis: -1, half: true, ..case.clone() }.picks());
        for scales in [vec![], vec![1]] {
            let single = Case { block: 0, scales, ..case.clone() };
            for version in [10, 13, 19, 21] {
                assert!(Case { integers: DType::Int8, version, ..single.clone() }.picks());
            }
            assert!(single.picks());
            assert!(Case { along: 1, ..single }.picks());
        }
        // Lists: for the axis of the picked entries, and for another one.
        let rows = Case { axis: 0, block: 0, scales: vec![rows], integers: DType::Uint8, ..case.clone() };
        for version in [13, 19, 25] {
            assert!(Case { version, ..rows.clone() }.picks());
        }
        assert!(Case { along: -1, ..rows }.picks());
        assert!(Case { axis: -1, block: 0, scales: vec![columns], ..case.clone() }.picks());
        // Blocks of the rows.
        assert!(Case { axis: 0, block: 10, scales: vec![LEAST.div_ceil(320), 32], along: 1, ..case }.picks());
        let cube = Case { shape: vec![8, LEAST / 128, 16], ..Case::default() };
        assert!(Case { axis: 2, block: 5, scales: vec![8, LEAST / 128, 4], along: 1, ..cube.clone() }.picks());
        assert!(Case { axis: 0, block: 6, scales: vec![2, LEAST / 128, 16], along: 1, ..cube.clone() }.picks());
        assert!(Case { axis: 1, block: 0, scales: vec![LEAST / 128], along: 2, ..cube.clone() }.picks());
        assert!(Case { axis: 1, block: 0, scales: vec![LEAST / 128], along: 0, ..cube }.picks());
    }

    /// An error names the floats, as without optimisation.
    #[test]
    fn a_place_beyond_the_table() {
        let matrix = Case { axis: 0, block: 10, scales: vec![LEAST.div_ceil(320), 32], along: 1, ..Case::default() };
        for case in [Case::default(), matrix] {
            let errors = [true, false].map(|optimize| {
                let graph = load(case.draft(&[1]), optimize).unwrap();
                let indices = tensor(&[1], [i64::MAX]);
                testing::run(&graph, &[indices], None).unwrap_err().to_string()
            });
            assert_eq!(errors[0], errors[1]);
        }
    }

    /// Small tables, blocks of what is picked, lists of a cube's entries, and what else reads the floats.
    #[test]
    fn floats_that_stay() {
        let case = Case { integers: DType::Int8, ..Case::default() };
        assert!(!Case { also: true, ..case.clone() }.picks());
        assert!(!Case { along: 1, ..case.clone() }.picks());
        let small = LEAST / 32 - 1;
        assert!(!Case { shape: vec![small, 32], scales: vec![small, 2], ..case.clone() }.picks());
        let cube = Case { shape: vec![8, LEAST / 128, 16], block: 0, ..case };
        assert!(!Case { axis: 1, scales: vec![LEAST / 128], along: 1, ..cube }.picks());
    }
}
