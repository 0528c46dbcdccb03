//! Cases of each operator, drawn at random: with indices in range, and out of range.

use crate::common::plain::{Indices, Plain, Random, values};
use crate::common::proto::AttributeProto;
use crate::common::{first_output, fix, int, model, one_node_graph};
use crate::{gather, gather_elements, gather_nd};
use onnxref::{DType, Error, Inputs, Kind, Model, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The element types that indices may have.
pub(crate) const INDEX_TYPES: [DType; 2] = [DType::Int64, DType::Int32];

/// A node with its inputs, and what it must give.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) opset: i64,
    /// The version of the operator that the opset stands for.
    pub(crate) version: i64,
    pub(crate) attributes: Vec<AttributeProto>,
    pub(crate) data: Plain,
    pub(crate) indices: Indices,
    /// The axes that indices are for, as errors name them: one, or those of a tuple in turn.
    pub(crate) axes: Vec<i64>,
    /// The sizes of these axes.
    pub(crate) sizes: Vec<usize>,
    /// Whether `data` and `indices` are initializers.
    pub(crate) constant: [bool; 2],
    pub(crate) expected: Plain,
}

impl Case {
    /// A case of version 13 with these axes, both inputs fed.
    pub(crate) fn long(
        op: &'static str,
        axes: Vec<i64>,
        data: Plain,
        indices: Vec<usize>,
        random: &mut Random,
    ) -> Case {
        let sizes: Vec<usize> = axes.iter().map(|&axis| data.shape[axis as usize]).collect();
        let dtype = if op == "GatherND" { DType::Int64 } else { INDEX_TYPES[random.below(2)] };
        let indices = random_indices(dtype, indices, &sizes, true, random);
        let axis = axes[0];
        let (attributes, expected) = match op {
            "Gather" => (vec![int("axis", axis)], gather(&data, axis as usize, &indices)),
            "GatherElements" => (vec![int("axis", axis)], gather_elements(&data, axis as usize, &indices)),
            _ => (vec![], gather_nd(&data, 0, &indices)),
        };
        let constant = [false; 2];
        Case { op, opset: 13, version: 13, attributes, data, indices, axes, sizes, constant, expected }
    }

    pub(crate) fn check(&self) {
        self.expected.assert_is(&self.run().unwrap());
    }

    /// Plants indices that are out of range: the first in row-major order is what the error is about.
    pub(crate) fn check_bad(mut self, bad: &[(usize, Bad)]) {
        let count = self.indices.values.len();
        if count == 0 {
            return;
        }
        let mut first = count;
        for (at, bad) in bad {
            let at = at % count;
            let size = self.size(at);
            let value = bad.value(size, self.indices.dtype);
            // A negative index has an error of its own in version 1, see `gather_1_and_negative_indices`.
            let value = if self.op == "Gather" && self.version == 1 && value < 0 { size as i128 } else { value };
            self.indices.values[at] = value;
            first = first.min(at);
        }
        let error = self.run().unwrap_err();
        self.assert_place(&error, first);

        let (axis, size) = (self.axis(first), self.size(first));
        let entries = if size == 1 { "entry" } else { "entries" };
        let least = if self.op == "Gather" && self.version == 1 { "0".to_string() } else { format!("-{size}") };
        let text = format!(
            "node \"node\" ({}-{}): {} is out of range for axis {axis} of \"data\", \
             which has {size} {entries}: allowed {least}..={}",
            self.op,
            self.version,
            self.indices.text(first),
            size - 1,
        );
        assert_eq!(error.to_string(), text);
    }

    pub(crate) fn assert_place(&self, error: &Error, at: usize) {
        assert_eq!(error.kind(), Kind::Input);
        let place = error.place();
        assert_eq!(place.value, Some(self.indices.values[at]));
        assert_eq!(place.position, Some(self.indices.position(at)));
        assert_eq!((place.axis, place.size), (Some(self.axis(at)), Some(self.size(at))));
        assert_eq!((place.parameter.as_deref(), place.operator.as_deref()), (Some("indices"), Some(self.op)));
        assert_eq!((place.version, place.domain.as_deref()), (Some(self.version), Some("")));
        assert_eq!((place.node.as_deref(), place.node_index), (Some("node"), Some(0)));
    }

    pub(crate) fn run(&self) -> Result<Tensor, Error> {
        let (data, indices) = (self.data.tensor(), self.indices.tensor());
        let inputs = [("data", &data), ("indices", &indices)];
        let mut graph = one_node_graph(self.op, self.attributes.clone(), &inputs, data.dtype());
        let mut feeds = Inputs::new();
        for ((name, tensor), constant) in inputs.into_iter().zip(self.constant) {
            if constant {
                fix(&mut graph, name, tensor);
            } else {
                feeds = feeds.with(name, tensor);
            }
        }
        first_output(&Model::from_bytes(model(self.opset, 8, graph))?, feeds)
    }

    fn axis(&self, at: usize) -> i64 {
        self.axes[at % self.axes.len()]
    }

    fn size(&self, at: usize) -> usize {
        self.sizes[at % self.sizes.len()]
    }
}

/// What all cases draw: the rest follows from it.
#[derive(Debug, Clone)]
struct Draw {
    opset: i64,
    dtype: DType,
    index_type: DType,
    data: Vec<usize>,
    indices: Vec<usize>,
    /// An axis, or the number of batch dimensions.
    axis: Index,
    /// How many indices a tuple has.
    width: Index,
    /// The axis counts from the end, data and indices are constants.
    flags: [bool; 3],
    limit: usize,
    seed: u64,
}

fn any_draw(opset: impl Strategy<Value = i64>, data: usize, indices: usize) -> impl Strategy<Value = Draw> {
    let limit = prop_oneof![Just(40), Just(400), Just(4000)];
    let opset = (opset, any::<Index>()).prop_map(|(opset, dtype)| (opset, *dtype.get(&element_types(opset))));
    let picks = (any::<Index>(), any::<Index>(), any::<[bool; 3]>(), limit, any::<u64>());
    (opset, select(&INDEX_TYPES[..]), vec(any_dim(), data..=6), vec(any_dim(), indices..=6), picks).prop_map(
        |((opset, dtype), index_type, data, indices, (axis, width, flags, limit, seed))| Draw {
            opset,
            dtype,
            index_type,
            data,
            indices,
            axis,
            width,
            flags,
            limit,
            seed,
        },
    )
}

fn any_dim() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(0usize), 3 => Just(1), 24 => 2..=5usize, 2 => 6..=40usize]
}

pub(crate) fn any_gather(opset: impl Strategy<Value = i64>) -> impl Strategy<Value = Case> {
    any_draw(opset, 1, 0).prop_map(|draw| {
        let mut random = Random(draw.seed);
        let data = Plain::random(draw.dtype, fitted(draw.data.clone(), draw.limit), &mut random);
        let (axis, given, attributes) = draw.axis(data.shape.len());
        let size = data.shape[axis];
        // Each index adds one slice to the output; where the axis is empty there can't be any.
        let slice = data.elements.len() / size.max(1);
        let mut shape = fitted(draw.indices[..draw.indices.len().min(4)].to_vec(), 4000 / slice.max(1));
        if size == 0 && !shape.contains(&0) {
            shape.push(0);
        }
        let version = [13, 11, 1].into_iter().find(|version| *version <= draw.opset).unwrap();
        let indices = random_indices(draw.index_type, shape, &[size], version > 1, &mut random);
        let expected = gather(&data, axis, &indices);
        draw.case("Gather", version, attributes, (vec![given], vec![size]), (data, indices, expected))
    })
}

pub(crate) fn any_gather_elements() -> impl Strategy<Value = Case> {
    any_draw(select(&[11, 12, 13, 25][..]), 1, 6).prop_map(|draw| {
        let mut random = Random(draw.seed);
        let data = Plain::random(draw.dtype, fitted(draw.data.clone(), draw.limit), &mut random);
        let (axis, given, attributes) = draw.axis(data.shape.len());
        let size = data.shape[axis];
        // Off the axis the indices may be smaller than the data, and no larger; half of the cases have the same size.
        let same = random.below(2) == 0;
        let smaller = |(d, (&have, &drawn)): (usize, (&usize, &usize))| match d {
            _ if d == axis => drawn,
            _ if same => have,
            _ => have.min(drawn),
        };
        let mut shape: Vec<usize> = data.shape.iter().zip(&draw.indices).enumerate().map(smaller).collect();
        if size == 0 {
            shape[axis] = 0;
        }
        let shape = fitted(shape, 4000);
        let indices = random_indices(draw.index_type, shape, &[size], true, &mut random);
        let expected = gather_elements(&data, axis, &indices);
        let version = if draw.opset < 13 { 11 } else { 13 };
        draw.case("GatherElements", version, attributes, (vec![given], vec![size]), (data, indices, expected))
    })
}

pub(crate) fn any_gather_nd() -> impl Strategy<Value = Case> {
    any_draw(select(&[11, 12, 13, 25][..]), 1, 1).prop_map(|draw| {
        let mut random = Random(draw.seed);
        let data = Plain::random(draw.dtype, fitted(draw.data.clone(), draw.limit), &mut random);
        let r = data.shape.len();
        let b = if draw.opset < 12 { 0 } else { draw.axis.index(r.min(draw.indices.len())) };
        let width = 1 + draw.width.index(r - b);
        let sizes = &data.shape[b..b + width];
        let (batch, slice) = (data.shape[..b].iter().product::<usize>(), data.shape[b + width..].iter().product());
        // Each tuple adds one slice to the output; where an axis is empty there can't be any.
        let tuples = fitted(draw.indices[b + 1..].to_vec(), 4000 / batch.max(1) / 1.max(slice));
        let mut shape = [&data.shape[..b], &tuples].concat();
        if sizes.contains(&0) && !shape.contains(&0) {
            shape.push(0);
        }
        shape.push(width);
        let indices = random_indices(DType::Int64, shape, sizes, true, &mut random);
        let attributes =
            if b == 0 && draw.flags[0] || draw.opset < 12 { vec![] } else { vec![int("batch_dims", b as i64)] };
        let expected = gather_nd(&data, b, &indices);
        let version = draw.opset.min(13);
        let axes = (b..b + width).map(|axis| axis as i64).collect();
        let sizes = sizes.to_vec();
        draw.case("GatherND", version, attributes, (axes, sizes), (data, indices, expected))
    })
}

impl Draw {
    /// The axis, as it is given, and as an attribute: left out now and then where it is 0.
    fn axis(&self, rank: usize) -> (usize, i64, Vec<AttributeProto>) {
        let axis = self.axis.index(rank);
        let given = axis as i64 - if self.flags[0] { rank as i64 } else { 0 };
        let attributes = if given == 0 && self.flags[2] { vec![] } else { vec![int("axis", given)] };
        (axis, given, attributes)
    }

    fn case(
        self,
        op: &'static str,
        version: i64,
        attributes: Vec<AttributeProto>,
        (axes, sizes): (Vec<i64>, Vec<usize>),
        (data, indices, expected): (Plain, Indices, Plain),
    ) -> Case {
        let constant = [self.flags[1], self.flags[2]];
        Case { op, opset: self.opset, version, attributes, data, indices, axes, sizes, constant, expected }
    }
}

/// A way for an index to be out of range.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bad {
    /// The size.
    Size,
    /// One below the least.
    Below,
    Max,
    Min,
    /// In range in its lower 32 bits.
    High,
    Random(i64),
}

/// One index out of range, or a few, each with its place.
pub(crate) fn any_bad() -> impl Strategy<Value = Vec<(usize, Bad)>> {
    let bad = prop_oneof![
        select(&[Bad::Size, Bad::Below, Bad::Max, Bad::Min, Bad::High][..]),
        any::<i64>().prop_map(Bad::Random)
    ];
    vec((any::<usize>(), bad), 1..=3)
}

impl Bad {
    fn value(self, size: usize, dtype: DType) -> i128 {
        let (s, all) = (size as i128, values(dtype));
        let value = match self {
            Bad::Size => s,
            Bad::Below => -s - 1,
            Bad::Max => all.end - 1,
            Bad::Min => all.start,
            Bad::High => (all.end - 1).min((1 << 32) + 1),
            Bad::Random(value) if dtype == DType::Int32 => i128::from(value as i32),
            Bad::Random(value) => value.into(),
        };
        if (-s..s).contains(&value) { s } else { value }
    }
}

/// Indices in range for axes of `sizes` in turn.
fn random_indices(dtype: DType, shape: Vec<usize>, sizes: &[usize], negative: bool, random: &mut Random) -> Indices {
    let count = shape.iter().product();
    let values = sizes.iter().cycle().take(count).map(|&size| {
        let entry = random.below(size) as i128;
        if negative && random.below(3) == 0 { entry - size as i128 } else { entry }
    });
    Indices { dtype, values: values.collect(), shape }
}

/// The first 15 element types by number are those of versions 1 to 12; 13 adds the next, bfloat16.
pub(crate) fn element_types(opset: i64) -> Vec<DType> {
    DType::all().take(if opset < 13 { 15 } else { 16 }).collect()
}

/// A shape with its largest dimensions halved until it has at most `limit` elements.
fn fitted(mut shape: Vec<usize>, limit: usize) -> Vec<usize> {
    while shape.iter().product::<usize>() > limit.max(1) {
        let largest = shape.iter_mut().max().unwrap();
        *largest /= 2;
    }
    shape
}
