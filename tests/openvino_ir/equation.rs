//! The operator in an `.onnx` model, against its equation written out as a walk over the positions of the output.

use crate::common::plain::{Indices, Plain, Random, values};
use crate::common::proto::AttributeProto;
use crate::common::{first_output, fix, int};
use crate::{DOMAIN, onnx};
use ndarray::Array1;
use onnxref::{DType, Error, Inputs, Kind, Model, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// `output[b.., a.., i.., c..] = data[b.., a.., indices[b.., i..], c..]`, where `b..` are the first `batch` dimensions
/// and `a..` those between them and `axis`; zero where the index is out of range.
fn gather(data: &Plain, axis: usize, batch: usize, indices: &Indices) -> Plain {
    let (before, own, after) = (&data.shape[..axis], &indices.shape[batch..], &data.shape[axis + 1..]);
    let zero: &[u8] = if data.dtype == DType::String { b"" } else { &[0; 16][..data.dtype.size()] };
    Plain::fill(data.dtype, [before, own, after].concat(), |position| {
        let (p, rest) = position.split_at(axis);
        let (i, c) = rest.split_at(own.len());
        let entry = indices.entry(&[&p[..batch], i].concat(), data.shape[axis]);
        entry.map_or(zero, |entry| data.at(&[p, &[entry], c].concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gather_is_its_equation(case in any_case()) {
        gather(&case.data, case.at, case.batch, &case.indices).assert_is(&case.run().unwrap());
    }

    /// The first index that is out of range, in row-major order, is what the error is about.
    #[test]
    fn versions_1_and_7_find_bad_indices(case in any_case(), bad in vec(any::<(Index, u64)>(), 1..=3)) {
        prop_assume!(case.version < 8 && !case.indices.values.is_empty());
        let mut case = case;
        let size = case.data.shape[case.at];
        let mut first = usize::MAX;
        for (at, seed) in bad {
            let at = at.index(case.indices.values.len());
            case.indices.values[at] = outside(size, case.indices.dtype, &mut Random(seed), |value| value < 0);
            first = first.min(at);
        }
        let error = case.run().unwrap_err();
        let value = case.indices.values[first];
        let why = if value < 0 { "is negative, which is allowed from version 8 on only," } else { "is out of range" };
        let entries = if size == 1 { "entry" } else { "entries" };
        let text = format!(
            "node \"node\" ({DOMAIN}::Gather-{}): {} {why} for axis {} of \"data\", \
             which has {size} {entries}: allowed 0..={}",
            case.version,
            case.indices.text(first),
            case.axis.0,
            size as i64 - 1,
        );
        prop_assert_eq!(error.to_string(), text);
        prop_assert_eq!(error.kind(), Kind::Input);
        let place = error.place();
        prop_assert_eq!((place.value, place.axis, place.size), (Some(value), Some(case.axis.0), Some(size)));
        prop_assert_eq!(place.position.as_ref(), Some(&case.indices.position(first)));
        prop_assert_eq!((place.parameter.as_deref(), place.operator.as_deref()), (Some("indices"), Some("Gather")));
        prop_assert_eq!((place.version, place.domain.as_deref()), (Some(case.version), Some(DOMAIN)));
        prop_assert_eq!((place.node.as_deref(), place.node_index), (Some("node"), Some(0)));
    }

    /// Memory that an earlier run left, or that the caller gave, has no part in the outputs.
    #[test]
    fn zeros_in_memory_that_was_used(case in any_case(), seed in any::<u64>()) {
        let mut case = Case { opset: 8, version: 8, fixed: [false; 3], ..case };
        let mut random = Random(seed);
        let model = Model::from_bytes(case.model()).unwrap();
        let mut runner = model.runner();
        runner.feed("data", case.data.tensor()).unwrap();
        runner.feed("axis", case.axis_tensor()).unwrap();
        let size = case.data.shape[case.at];
        for round in 0..4 {
            let wild = [0, 4, 1, 2][round];
            let values = case.indices.values.iter().map(|_| any_index(size, &case.indices, wild, &mut random));
            case.indices.values = values.collect();
            let expected = gather(&case.data, case.at, case.batch, &case.indices);
            runner.feed("indices", case.indices.tensor()).unwrap();
            runner.give(dirty(case.data.dtype, expected.elements.len()));
            runner.run().unwrap();
            expected.assert_is(runner.output("output").unwrap());
        }
    }
}

/// Memory full of ones that fits an output.
fn dirty(dtype: DType, len: usize) -> Tensor {
    let len = len * dtype.size();
    match dtype.size() {
        1 => Tensor::from_array(Array1::from(vec![u8::MAX; len])),
        2 => Tensor::from_array(Array1::from(vec![u16::MAX; len / 2])),
        4 => Tensor::from_array(Array1::from(vec![u32::MAX; len / 4])),
        _ => Tensor::from_array(Array1::from(vec![u64::MAX; len / 8])),
    }
}

/// Rows of many sizes in batches, large enough for several threads; every seventh index is out of range.
#[test]
fn large_outputs_with_zeros() {
    for row in [1, 4, 100, 256, 4099, 70_001] {
        let (batches, size) = (3, 50);
        let n = (3 << 20) / row + 1;
        let pattern: Vec<u8> = (0..batches * size * row).map(|at| (at % 251 + at / row) as u8 | 1).collect();
        let data = Tensor::new(DType::Uint8, &[batches, size, row], pattern.clone()).unwrap();
        let value = |k: usize| if k % 7 == 3 { size as i32 + (k % 3) as i32 } else { ((k * 31) % 100) as i32 - 50 };
        let values: Vec<i32> = (0..batches * n).map(value).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let indices = Tensor::new(DType::Int32, &[batches, n], bytes).unwrap();
        let axis = Tensor::scalar(1i64);
        let inputs = [("data", &data), ("indices", &indices), ("axis", &axis)];
        let bytes = onnx(8, vec![int("batch_dims", 1)], &inputs, DType::Uint8, |_| {});
        let model = Model::from_bytes(bytes).unwrap();
        for _ in 0..2 {
            let output = first_output(&model, inputs.into_iter().collect()).unwrap();
            assert_eq!(output.shape(), [batches, n, row]);
            for (k, (entry, &value)) in output.bytes().chunks_exact(row).zip(&values).enumerate() {
                let at = if value < 0 { value + size as i32 } else { value } as usize;
                if at < size {
                    let from = (k / n * size + at) * row;
                    assert!(entry == &pattern[from..from + row], "entry {k}, which is {value}, of {row} bytes");
                } else {
                    assert!(entry.iter().all(|&byte| byte == 0), "entry {k}, which is {value}, of {row} bytes");
                }
            }
        }
    }
}

/// A node with its inputs.
#[derive(Debug, Clone)]
struct Case {
    opset: i64,
    /// The version of the operator that the opset stands for.
    version: i64,
    attributes: Vec<AttributeProto>,
    data: Plain,
    indices: Indices,
    /// The axis as it is given, its element type and its shape.
    axis: (i64, DType, Vec<usize>),
    /// Its place among the dimensions.
    at: usize,
    batch: usize,
    /// Whether `data`, `indices` and `axis` are initializers.
    fixed: [bool; 3],
}

impl Case {
    fn axis_tensor(&self) -> Tensor {
        let (given, dtype, shape) = &self.axis;
        Tensor::new(*dtype, shape, given.to_le_bytes()[..dtype.size()].to_vec()).unwrap()
    }

    fn model(&self) -> Vec<u8> {
        let (data, indices, axis) = (self.data.tensor(), self.indices.tensor(), self.axis_tensor());
        let inputs = [("data", &data), ("indices", &indices), ("axis", &axis)];
        onnx(self.opset, self.attributes.clone(), &inputs, data.dtype(), |graph| {
            for ((name, tensor), _) in inputs.into_iter().zip(self.fixed).filter(|(_, fixed)| *fixed) {
                fix(graph, name, tensor);
            }
        })
    }

    fn run(&self) -> Result<Tensor, Error> {
        let (data, indices, axis) = (self.data.tensor(), self.indices.tensor(), self.axis_tensor());
        let inputs = [("data", data), ("indices", indices), ("axis", axis)];
        let fed = inputs.into_iter().zip(self.fixed).filter(|(_, fixed)| !fixed).map(|(input, _)| input);
        first_output(&Model::from_bytes(self.model())?, fed.collect::<Inputs<'_>>())
    }
}

fn any_case() -> impl Strategy<Value = Case> {
    let dims = |least, most| {
        vec(prop_oneof![1 => Just(0usize), 3 => Just(1), 24 => 2..=5usize, 2 => 6..=40usize], least..=most)
    };
    let opset = prop_oneof![Just(1), Just(7), Just(8), 2..=6i64, 9..=16i64];
    let types = (select(DType::all().collect::<Vec<_>>()), select(&INTEGERS[..]), select(&INTEGERS[..]));
    let flags = any::<[bool; 6]>();
    (opset, types, dims(1, 6), dims(0, 4), any::<(Index, Index, u64)>(), flags).prop_map(
        |(opset, (dtype, index, axis_type), shape, own, (at, batch, seed), flags)| {
            let [from_end, vector, batch_from_end, fixed @ ..] = flags;
            let mut random = Random(seed);
            let version = [8, 7, 1].into_iter().find(|version| *version <= opset).unwrap();
            let shape = fitted(shape, 400);
            let (at, rank) = (at.index(shape.len()), shape.len());
            let size = shape[at];
            let batch = if version == 1 { 0 } else { batch.index(at + 1) };
            // Each index adds one slice to the output.
            let slice: usize = shape.iter().enumerate().filter(|(d, _)| *d != at).map(|(_, dim)| *dim).product();
            let mut own = fitted(own, 4000 / slice.max(1));
            // Only version 8 has indices for an axis that is empty.
            if size == 0 && version < 8 && !own.contains(&0) {
                own.push(0);
            }
            let mut indices = Indices { shape: [&shape[..batch], &own].concat(), values: vec![], dtype: index };
            let wild = if version == 8 { random.below(4) } else { 0 };
            let count = indices.shape.iter().product();
            indices.values = (0..count)
                .map(|_| {
                    let value = any_index(size, &indices, wild, &mut random);
                    if version < 8 && value < 0 { value + size as i128 } else { value }
                })
                .collect();
            let given = at as i64 - if from_end { rank as i64 } else { 0 };
            let axis_type = if values(axis_type).contains(&given.into()) { axis_type } else { DType::Int16 };
            let axis = (given, axis_type, if vector { vec![1] } else { vec![] });
            let attributes = match batch as i64 {
                _ if version == 1 => vec![],
                0 if fixed[0] => vec![],
                b if batch_from_end && !own.is_empty() => vec![int("batch_dims", b - indices.shape.len() as i64)],
                b => vec![int("batch_dims", b)],
            };
            // Elements of fewer than 8 bits are packed in initializers: these are for the tests of initializers.
            let fixed = [fixed[0] && dtype.size() * 8 == dtype.bits(), fixed[1], fixed[2]];
            let data = Plain::random(dtype, shape, &mut random);
            Case { opset, version, attributes, data, indices, axis, at, batch, fixed }
        },
    )
}

const INTEGERS: [DType; 12] = [
    DType::Int32,
    DType::Int64,
    DType::Int32,
    DType::Int64,
    DType::Int8,
    DType::Int16,
    DType::Int32,
    DType::Int64,
    DType::Uint8,
    DType::Uint16,
    DType::Uint32,
    DType::Uint64,
];

/// An index; `wild` of four are out of range for an axis of this size, which is so of all if it is empty.
fn any_index(size: usize, indices: &Indices, wild: usize, random: &mut Random) -> i128 {
    let s = size as i128;
    if size == 0 || random.below(4) < wild {
        return outside(size, indices.dtype, random, |_| true);
    }
    let entry = random.below(size) as i128;
    let value = if random.below(3) == 0 { entry - s } else { entry };
    if values(indices.dtype).contains(&value) { value } else { entry }
}

/// A value of a type that is out of range for an axis of this size, or for which `also` holds. 8 bits have one.
fn outside(size: usize, dtype: DType, random: &mut Random, also: impl Fn(i128) -> bool) -> i128 {
    let s = size as i128;
    let some = [s, -s - 1, -1, (1 << 32) + 1, -(1 << 32), i128::from(random.next()), values(dtype).start];
    let value = some[random.below(some.len())];
    let good = |value: &i128| values(dtype).contains(value) && (!(-s..s).contains(value) || also(*value) && *value < 0);
    Some(value).filter(good).unwrap_or(values(dtype).end - 1)
}

/// A shape with its largest dimensions halved until it has at most `limit` elements, were its empty ones of size 1.
fn fitted(mut shape: Vec<usize>, limit: usize) -> Vec<usize> {
    while shape.iter().map(|dim| 1.max(*dim)).product::<usize>() > limit.max(1) {
        *shape.iter_mut().max().unwrap() /= 2;
    }
    shape
}
