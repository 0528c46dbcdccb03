//! Each operator against its equation from the standard, written out as a walk over the positions of the output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::proto::AttributeProto;
use common::{first_output, fix, int, model, one_node_graph, run_one, run_one_with};
use ndarray::array;
use onnxref::{DType, Error, Inputs, Kind, Model, Tensor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::HashSet;
use std::fmt;

/// `output[a.., i.., b..] = data[a.., indices[i..], b..]`, where `a..` are the dimensions before `axis`.
fn gather(data: &Plain, axis: usize, indices: &Indices) -> Plain {
    let (before, after) = (&data.shape[..axis], &data.shape[axis + 1..]);
    let q = indices.shape.len();
    Plain::fill(data.dtype, [before, &indices.shape, after].concat(), |position| {
        let (a, i, b) = (&position[..axis], &position[axis..axis + q], &position[axis + q..]);
        data.at(&[a, &[indices.at(i, data.shape[axis])], b].concat())
    })
}

/// `output[i, j, k] = data[i, indices[i, j, k], k]` for axis 1 of three; and so on.
fn gather_elements(data: &Plain, axis: usize, indices: &Indices) -> Plain {
    Plain::fill(data.dtype, indices.shape.clone(), |position| {
        let mut source = position.to_vec();
        source[axis] = indices.at(position, data.shape[axis]);
        data.at(&source)
    })
}

/// `output[b.., i.., s..] = data[b.., indices[b.., i.., 0], indices[b.., i.., 1], .., s..]`, where `b..` are the first
/// `batch_dims` dimensions.
fn gather_nd(data: &Plain, batch_dims: usize, indices: &Indices) -> Plain {
    let (&width, outer) = indices.shape.split_last().unwrap();
    let slice = &data.shape[batch_dims + width..];
    Plain::fill(data.dtype, [outer, slice].concat(), |position| {
        let (tuple, s) = position.split_at(outer.len());
        let mut source = position[..batch_dims].to_vec();
        for k in 0..width {
            source.push(indices.at(&[tuple, &[k]].concat(), data.shape[batch_dims + k]));
        }
        source.extend(s);
        data.at(&source)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gather_is_its_equation(case in any_gather(select(&[1, 2, 10, 11, 12, 13, 25][..]))) {
        case.check();
    }

    #[test]
    fn gather_elements_is_its_equation(case in any_gather_elements()) {
        case.check();
    }

    #[test]
    fn gather_nd_is_its_equation(case in any_gather_nd()) {
        case.check();
    }

    #[test]
    fn gather_finds_bad_indices(case in any_gather(select(&[1, 10, 11, 13][..])), bad in any_bad()) {
        case.check_bad(&bad);
    }

    #[test]
    fn gather_elements_finds_bad_indices(case in any_gather_elements(), bad in any_bad()) {
        case.check_bad(&bad);
    }

    #[test]
    fn gather_nd_finds_bad_indices(case in any_gather_nd(), bad in any_bad()) {
        case.check_bad(&bad);
    }

    /// Gather-1 refuses the negative indices of Gather-11, unless it is told to take them.
    #[test]
    fn gather_1_and_negative_indices(case in any_gather(select(&[11, 12][..])), opset in 1..=10i64) {
        let Some(first) = case.indices.values.iter().position(|&value| value < 0) else { return Ok(()) };
        let value = case.indices.values[first];
        let case = Case { opset, version: 1, ..case };
        let error = case.run().unwrap_err();
        case.assert_place(&error, first);
        let whose = format!("indices{} = {value} ", position_text(&case.indices.shape, first));
        prop_assert!(error.to_string().contains(&whose), "{error}");
        prop_assert!(error.to_string().contains("negative, which is allowed from version 11 on only"), "{error}");

        let options = Model::options().compatibility(|c| c.gather_1_negative_indices = true);
        let (data, indices) = (case.data.tensor(), case.indices.tensor());
        let run = |indices: &Tensor| {
            run_one_with(&options, "Gather", opset, case.attributes.clone(), &[("data", &data), ("indices", indices)])
        };
        case.expected.assert_is(&run(&indices).unwrap());
        let beyond = case.indices.with(first, -(case.sizes[0] as i64) - 1);
        let error = run(&beyond.tensor()).unwrap_err();
        let allowed = format!("allowed -{}..={}", case.sizes[0], case.sizes[0] - 1);
        prop_assert!(error.to_string().ends_with(&allowed), "{error}");
    }
}

#[test]
fn examples_of_gather() {
    let data = Tensor::from_array(array![[1.0f32, 1.2], [2.3, 3.4], [4.5, 5.7]]);
    let indices = Tensor::from_array(array![[0i64, 1], [1, 2]]);
    let expected = Tensor::from_array(array![[[1.0f32, 1.2], [2.3, 3.4]], [[2.3, 3.4], [4.5, 5.7]]]);
    let wide = Tensor::from_array(array![[1.0f32, 1.2, 1.9], [2.3, 3.4, 3.9], [4.5, 5.7, 5.9]]);
    let ends = Tensor::from_array(array![[0i64, 2]]);
    let columns = Tensor::from_array(array![[[1.0f32, 1.9]], [[2.3, 3.9]], [[4.5, 5.9]]]);
    for opset in [1, 11, 13] {
        assert_eq!(run_one("Gather", opset, vec![], &[("data", &data), ("indices", &indices)]).unwrap(), expected);
        let axis = vec![int("axis", 1)];
        assert_eq!(run_one("Gather", opset, axis, &[("data", &wide), ("indices", &ends)]).unwrap(), columns);
    }
}

#[test]
fn examples_of_gather_elements() {
    let data = Tensor::from_array(array![[1.0f32, 2.0], [3.0, 4.0]]);
    let indices = Tensor::from_array(array![[0i64, 0], [1, 0]]);
    let expected = Tensor::from_array(array![[1.0f32, 1.0], [4.0, 3.0]]);
    let square = Tensor::from_array(array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]);
    let fewer = Tensor::from_array(array![[1i32, 2, 0], [2, 0, 0]]);
    let picked = Tensor::from_array(array![[4.0f32, 8.0, 3.0], [7.0, 2.0, 3.0]]);
    for opset in [11, 13] {
        let run = |axis, data, indices| {
            run_one("GatherElements", opset, vec![int("axis", axis)], &[("data", data), ("indices", indices)]).unwrap()
        };
        assert_eq!(run(1, &data, &indices), expected);
        assert_eq!(run(0, &square, &fewer), picked);
    }
}

#[test]
fn examples_of_gather_nd() {
    let square = Tensor::from_array(array![[0i32, 1], [2, 3]]);
    let cube = Tensor::from_array(array![[[0i32, 1], [2, 3]], [[4, 5], [6, 7]]]);
    let examples: [(i64, &Tensor, Tensor, Tensor); 5] = [
        (0, &square, array![[0i64, 0], [1, 1]].into(), array![0i32, 3].into()),
        (0, &square, array![[1i64], [0]].into(), array![[2i32, 3], [0, 1]].into()),
        (0, &cube, array![[0i64, 1], [1, 0]].into(), array![[2i32, 3], [4, 5]].into()),
        (0, &cube, array![[[0i64, 1]], [[1, 0]]].into(), array![[[2i32, 3]], [[4, 5]]].into()),
        (1, &cube, array![[1i64], [0]].into(), array![[2i32, 3], [4, 5]].into()),
    ];
    for opset in [11, 12, 13] {
        for (batch_dims, data, indices, expected) in &examples {
            let attributes = match (opset, batch_dims) {
                (11, 1) => continue,
                (11, _) => vec![],
                _ => vec![int("batch_dims", *batch_dims)],
            };
            let output = run_one("GatherND", opset, attributes, &[("data", data), ("indices", indices)]);
            assert_eq!(&output.unwrap(), expected);
        }
    }
}

/// Axes whose size is near a power of two, and positions at both of their ends.
#[test]
fn long_axes() {
    let mut random = Random(1);
    for size in [63, 64, 65, 127, 128, 129, 255, 256, 257, 65_535, 65_536, 65_537] {
        let s = size as i64;
        let ends = vec![0, -1, s - 1, -s, s / 2, 1, -s + 1, s - 2, 127, 128, 255, 256, 257, -127, -128, -129]
            .into_iter()
            .filter(|value| (-s..s).contains(value));
        let values: Vec<i64> = ends.collect();
        let n = values.len();
        for (shape, axis, picked) in
            [(vec![size], 0, vec![n]), (vec![size, 3], 0, vec![n, 1]), (vec![2, size], 1, vec![1, n])]
        {
            let data = Plain::random(DType::Uint8, shape, &mut random);
            let indices = Indices { shape: picked, values: values.clone(), wide: random.below(2) == 0 };
            let attributes = vec![int("axis", axis as i64)];
            let run = |op, indices: &Indices| {
                let (data, indices) = (data.tensor(), indices.tensor());
                run_one(op, 13, attributes.clone(), &[("data", &data), ("indices", &indices)])
            };
            gather(&data, axis, &indices).assert_is(&run("Gather", &indices).unwrap());
            gather_elements(&data, axis, &indices).assert_is(&run("GatherElements", &indices).unwrap());
            for beyond in [s, -s - 1] {
                let error = run("GatherElements", &indices.with(n - 1, beyond)).unwrap_err();
                assert_eq!((error.place().value, error.place().size), (Some(beyond.into()), Some(size)));
                assert!(run("Gather", &indices.with(0, beyond)).is_err());
            }
        }
    }
}

/// What moves at once is 1 byte, 70 kB, and much in between.
#[test]
fn rows_of_many_sizes() {
    let mut random = Random(2);
    for row in (1..=70).chain([127, 128, 129, 255, 256, 257, 65_535, 65_536, 65_537, 70_000]) {
        let data = Plain::random(DType::Uint8, vec![3, row], &mut random);
        let indices = Indices { shape: vec![4, 1], values: vec![2, 0, -2, 2], wide: true };
        let (all, tensor) = (data.tensor(), indices.tensor());
        let feeds = [("data", &all), ("indices", &tensor)];
        let flat = Indices { shape: vec![4], ..indices };
        let expected = gather(&data, 0, &flat);
        expected.assert_is(&run_one("GatherND", 13, vec![], &feeds).unwrap());
        expected.assert_is(&run_one("Gather", 13, vec![], &[("data", &all), ("indices", &flat.tensor())]).unwrap());
    }
}

/// Lists of indices, and axes, that are longer than what a loop takes at once, for each size of an element.
#[test]
fn long_lists_of_indices() {
    let mut random = Random(5);
    for dtype in [DType::Uint8, DType::Bfloat16, DType::Float, DType::Double, DType::Complex128, DType::String] {
        for n in [31, 32, 33, 511, 512, 513, 1300, (120 << 10) / dtype.size()] {
            let nd = [("GatherND", vec![0, 1], vec![300, 25], vec![n, 2]), ("GatherND", vec![0], vec![9], vec![n, 1])];
            let one_axis = [
                ("Gather", vec![0], vec![70_000], vec![n]),
                ("Gather", vec![1], vec![2, 700], vec![n]),
                ("GatherElements", vec![0], vec![70_000, 1], vec![n, 1]),
                ("GatherElements", vec![1], vec![2, 700], vec![2, n]),
                ("GatherElements", vec![0], vec![5, n], vec![3, n]),
                ("GatherElements", vec![0], vec![5, n + 1], vec![1, n]),
            ];
            for (op, axes, shape, picks) in one_axis.into_iter().chain(nd) {
                let case = Case::long(op, axes, Plain::random(dtype, shape, &mut random), picks, &mut random);
                case.check();
                case.check_bad(&[(random.below(usize::MAX), Bad::Size), (random.below(usize::MAX), Bad::Below)]);
            }
        }
    }
}

/// Many megabytes, in rows of several sizes. Outputs that are still held stay as they are when the model runs again.
#[test]
fn large_outputs() {
    let mut random = Random(4);
    let graph = {
        let (data, indices) = (Tensor::scalar(0u8), Tensor::scalar(0i64));
        one_node_graph("Gather", vec![], &[("data", &data), ("indices", &indices)], DType::Uint8)
    };
    let model = Model::from_bytes(model(13, 8, graph)).unwrap();
    let mut outputs = Vec::new();
    for row in [256, 4099, 70_001] {
        let pattern: Vec<u8> = (0..64 * row).map(|at| (at % 251 + at / row) as u8).collect();
        let data = Tensor::new(DType::Uint8, &[64, row], pattern).unwrap();
        let values: Vec<i64> = (0..(17 << 20) / row).map(|_| random.below(64) as i64).collect();
        let indices = Tensor::from_array(ndarray::Array1::from(values.clone()));
        let bad = Tensor::from_array(ndarray::Array1::from([values.clone(), vec![64]].concat()));
        let run = |indices: &Tensor| first_output(&model, onnxref::inputs! { "data" => &data, "indices" => indices });
        let output = run(&indices).unwrap();
        assert_eq!(run(&bad).unwrap_err().place().position, Some(vec![values.len()]));
        assert_eq!(run(&indices).unwrap(), output);
        outputs.push((data, values, output));
    }
    for (data, values, output) in outputs {
        let row = data.shape()[1];
        assert_eq!(output.shape(), [values.len(), row]);
        for (&value, entry) in values.iter().zip(output.bytes().chunks_exact(row)) {
            assert!(entry == &data.bytes()[value as usize * row..][..row], "entry {value} of {row} bytes");
        }
    }
}

/// Initializers are parts of the model file, wherever they lie in it.
#[test]
fn constants_at_any_address() {
    let mut random = Random(3);
    for (dtype, wide) in element_types(13).into_iter().flat_map(|dtype| [(dtype, false), (dtype, true)]) {
        let data = Plain::random(dtype, vec![5, 4], &mut random);
        let indices = Indices { shape: vec![2, 3], values: vec![4, 0, -1, -5, 2, 2], wide };
        let expected = gather(&data, 0, &indices);
        let (data, indices) = (data.tensor(), indices.tensor());
        let mut offsets = HashSet::new();
        for len in 0..16 {
            let mut graph = one_node_graph("Gather", vec![], &[("data", &data), ("indices", &indices)], dtype);
            fix(&mut graph, "data", &data);
            fix(&mut graph, "indices", &indices);
            graph.name = Some("g".repeat(len));
            let bytes = model(13, 8, graph);
            let needle = indices.bytes();
            offsets.insert(bytes.windows(needle.len()).position(|w| w == needle).unwrap() % 16);
            let model = Model::from_bytes(bytes).unwrap();
            expected.assert_is(&first_output(&model, Inputs::new()).unwrap());
            expected.assert_is(&first_output(&model, Inputs::new()).unwrap());
        }
        assert_eq!(offsets.len(), 16, "every offset has its turn");
    }
}

/// No index names an entry of an axis that has none.
#[test]
fn any_index_on_an_empty_axis() {
    let data = Tensor::new(DType::Float, &[2, 0], vec![]).unwrap();
    for (op, attributes) in
        [("Gather", vec![int("axis", 1)]), ("GatherElements", vec![int("axis", 1)]), ("GatherND", vec![])]
    {
        let indices = array![[0i64, 0]].into();
        let error = run_one(op, 13, attributes, &[("data", &data), ("indices", &indices)]).unwrap_err();
        let at = if op == "GatherND" { 1 } else { 0 };
        let text = format!(
            "node \"node\" ({op}-13): indices[0, {at}] = 0 is out of range for axis 1 of \"data\", \
             which has 0 entries: no index is allowed"
        );
        assert_eq!(error.to_string(), text);
        assert_eq!((error.kind(), error.place().size), (Kind::Input, Some(0)));
    }
}

/// A node with its inputs, and what it must give.
#[derive(Debug, Clone)]
struct Case {
    op: &'static str,
    opset: i64,
    /// The version of the operator that the opset stands for.
    version: i64,
    attributes: Vec<AttributeProto>,
    data: Plain,
    indices: Indices,
    /// The axes that indices are for, as errors name them: one, or those of a tuple in turn.
    axes: Vec<i64>,
    /// The sizes of these axes.
    sizes: Vec<usize>,
    /// Whether `data` and `indices` are initializers.
    constant: [bool; 2],
    expected: Plain,
}

impl Case {
    /// A case of version 13 with these axes, both inputs fed.
    fn long(op: &'static str, axes: Vec<i64>, data: Plain, indices: Vec<usize>, random: &mut Random) -> Case {
        let sizes: Vec<usize> = axes.iter().map(|&axis| data.shape[axis as usize]).collect();
        let wide = op == "GatherND" || random.below(2) == 0;
        let indices = Indices::random(indices, &sizes, true, wide, random);
        let axis = axes[0];
        let (attributes, expected) = match op {
            "Gather" => (vec![int("axis", axis)], gather(&data, axis as usize, &indices)),
            "GatherElements" => (vec![int("axis", axis)], gather_elements(&data, axis as usize, &indices)),
            _ => (vec![], gather_nd(&data, 0, &indices)),
        };
        let constant = [false; 2];
        Case { op, opset: 13, version: 13, attributes, data, indices, axes, sizes, constant, expected }
    }

    fn check(&self) {
        self.expected.assert_is(&self.run().unwrap());
    }

    /// Plants indices that are out of range: the first in row-major order is what the error is about.
    fn check_bad(mut self, bad: &[(usize, Bad)]) {
        let count = self.indices.values.len();
        if count == 0 {
            return;
        }
        let mut first = count;
        for (at, bad) in bad {
            let at = at % count;
            let size = self.size(at);
            let value = bad.value(size, self.indices.wide);
            // A negative index has an error of its own in version 1, see `gather_1_and_negative_indices`.
            let value = if self.op == "Gather" && self.version == 1 && value < 0 { size as i64 } else { value };
            self.indices.values[at] = value;
            first = first.min(at);
        }
        let error = self.run().unwrap_err();
        self.assert_place(&error, first);

        let (value, axis, size) = (self.indices.values[first], self.axis(first), self.size(first));
        let entries = if size == 1 { "entry" } else { "entries" };
        let least = if self.op == "Gather" && self.version == 1 { "0".to_string() } else { format!("-{size}") };
        let text = format!(
            "node \"node\" ({}-{}): indices{} = {value} is out of range for axis {axis} of \"data\", \
             which has {size} {entries}: allowed {least}..={}",
            self.op,
            self.version,
            position_text(&self.indices.shape, first),
            size - 1,
        );
        assert_eq!(error.to_string(), text);
    }

    fn assert_place(&self, error: &Error, at: usize) {
        assert_eq!(error.kind(), Kind::Input);
        let place = error.place();
        assert_eq!(place.value, Some(self.indices.values[at].into()));
        assert_eq!(place.position, Some(positions(&self.indices.shape)[at].clone()));
        assert_eq!((place.axis, place.size), (Some(self.axis(at)), Some(self.size(at))));
        assert_eq!((place.value_name.as_deref(), place.operator.as_deref()), (Some("indices"), Some(self.op)));
        assert_eq!((place.version, place.domain.as_deref()), (Some(self.version), Some("")));
        assert_eq!((place.node.as_deref(), place.node_index), (Some("node"), Some(0)));
    }

    fn run(&self) -> Result<Tensor, Error> {
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
    data: Vec<usize>,
    indices: Vec<usize>,
    /// An axis, or the number of batch dimensions.
    axis: Index,
    /// How many indices a tuple has.
    width: Index,
    /// The axis counts from the end, the indices are int64, data and indices are constants.
    flags: [bool; 4],
    limit: usize,
    seed: u64,
}

fn any_draw(opset: impl Strategy<Value = i64>, data: usize, indices: usize) -> impl Strategy<Value = Draw> {
    let limit = prop_oneof![Just(40), Just(400), Just(4000)];
    let opset = (opset, any::<Index>()).prop_map(|(opset, dtype)| (opset, *dtype.get(&element_types(opset))));
    let picks = (any::<Index>(), any::<Index>(), any::<[bool; 4]>(), limit, any::<u64>());
    (opset, vec(any_dim(), data..=6), vec(any_dim(), indices..=6), picks).prop_map(
        |((opset, dtype), data, indices, (axis, width, flags, limit, seed))| Draw {
            opset,
            dtype,
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

fn any_gather(opset: impl Strategy<Value = i64>) -> impl Strategy<Value = Case> {
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
        let indices = Indices::random(shape, &[size], version > 1, draw.flags[1], &mut random);
        let expected = gather(&data, axis, &indices);
        draw.case("Gather", version, attributes, (vec![given], vec![size]), (data, indices, expected))
    })
}

fn any_gather_elements() -> impl Strategy<Value = Case> {
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
        let indices = Indices::random(shape, &[size], true, draw.flags[1], &mut random);
        let expected = gather_elements(&data, axis, &indices);
        let version = if draw.opset < 13 { 11 } else { 13 };
        draw.case("GatherElements", version, attributes, (vec![given], vec![size]), (data, indices, expected))
    })
}

fn any_gather_nd() -> impl Strategy<Value = Case> {
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
        let indices = Indices::random(shape, sizes, true, true, &mut random);
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
        let attributes = if given == 0 && self.flags[3] { vec![] } else { vec![int("axis", given)] };
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
        let constant = [self.flags[2], self.flags[3]];
        Case { op, opset: self.opset, version, attributes, data, indices, axes, sizes, constant, expected }
    }
}

/// A way for an index to be out of range.
#[derive(Debug, Clone, Copy)]
enum Bad {
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
fn any_bad() -> impl Strategy<Value = Vec<(usize, Bad)>> {
    let bad = prop_oneof![
        select(&[Bad::Size, Bad::Below, Bad::Max, Bad::Min, Bad::High][..]),
        any::<i64>().prop_map(Bad::Random)
    ];
    vec((any::<usize>(), bad), 1..=3)
}

impl Bad {
    fn value(self, size: usize, wide: bool) -> i64 {
        let s = size as i64;
        let value = match (self, wide) {
            (Bad::Size, _) => s,
            (Bad::Below, _) => -s - 1,
            (Bad::Max, true) => i64::MAX,
            (Bad::Min, true) => i64::MIN,
            (Bad::High, true) => (1 << 32) + 1,
            (Bad::Random(value), true) => value,
            (Bad::Max | Bad::High, false) => i32::MAX.into(),
            (Bad::Min, false) => i32::MIN.into(),
            (Bad::Random(value), false) => i64::from(value as i32),
        };
        if (-s..s).contains(&value) { s } else { value }
    }
}

/// The first 15 element types by number are those of versions 1 to 12; 13 adds the next, bfloat16.
fn element_types(opset: i64) -> Vec<DType> {
    DType::all().take(if opset < 13 { 15 } else { 16 }).collect()
}

/// A tensor as a list of elements in row-major order, each of them its bytes.
#[derive(Clone)]
struct Plain {
    dtype: DType,
    shape: Vec<usize>,
    elements: Vec<Vec<u8>>,
}

impl Plain {
    /// A tensor whose elements come from their positions.
    fn fill<'a>(dtype: DType, shape: Vec<usize>, element: impl Fn(&[usize]) -> &'a [u8]) -> Plain {
        let elements = positions(&shape).iter().map(|position| element(position).to_vec()).collect();
        Plain { dtype, shape, elements }
    }

    /// Any bits: among floats there are NaNs of many kinds and both zeros.
    fn random(dtype: DType, shape: Vec<usize>, random: &mut Random) -> Plain {
        let elements = positions(&shape).iter().map(|_| random.element(dtype)).collect();
        Plain { dtype, shape, elements }
    }

    fn at(&self, position: &[usize]) -> &[u8] {
        &self.elements[place(&self.shape, position)]
    }

    fn tensor(&self) -> Tensor {
        if self.dtype == DType::String {
            let strings = self.elements.iter().map(|bytes| std::str::from_utf8(bytes).unwrap());
            Tensor::from_strings(&self.shape, strings).unwrap()
        } else {
            Tensor::new(self.dtype, &self.shape, self.elements.concat()).unwrap()
        }
    }

    fn assert_is(&self, tensor: &Tensor) {
        assert_eq!((tensor.dtype(), tensor.shape()), (self.dtype, &self.shape[..]));
        if self.dtype == DType::String {
            assert!(tensor.strings().unwrap().map(str::as_bytes).eq(&self.elements), "{tensor:?} is not {self:?}");
        } else {
            assert!(tensor.bytes() == self.elements.concat(), "{tensor:?} is not {self:?}");
        }
    }
}

impl fmt::Debug for Plain {
    /// The first elements, as a failed case may have thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:02x?}", self.dtype, self.shape, &self.elements[..self.elements.len().min(64)])
    }
}

/// Indices, int64 or int32.
#[derive(Clone)]
struct Indices {
    shape: Vec<usize>,
    values: Vec<i64>,
    wide: bool,
}

impl Indices {
    /// Indices in range for axes of `sizes` in turn.
    fn random(shape: Vec<usize>, sizes: &[usize], negative: bool, wide: bool, random: &mut Random) -> Indices {
        let count = shape.iter().product();
        let values = sizes.iter().cycle().take(count).map(|&size| {
            let entry = random.below(size) as i64;
            if negative && random.below(3) == 0 { entry - size as i64 } else { entry }
        });
        Indices { values: values.collect(), shape, wide }
    }

    /// The entry of an axis of `size` that the index at a position names.
    fn at(&self, position: &[usize], size: usize) -> usize {
        let value = self.values[place(&self.shape, position)];
        usize::try_from(if value < 0 { value + size as i64 } else { value }).unwrap()
    }

    /// The same with another value at one place.
    fn with(&self, at: usize, value: i64) -> Indices {
        let mut indices = self.clone();
        indices.values[at] = value;
        indices
    }

    fn tensor(&self) -> Tensor {
        let (dtype, bytes): (_, Vec<u8>) = if self.wide {
            (DType::Int64, self.values.iter().flat_map(|value| value.to_le_bytes()).collect())
        } else {
            (DType::Int32, self.values.iter().flat_map(|&v| i32::try_from(v).unwrap().to_le_bytes()).collect())
        };
        Tensor::new(dtype, &self.shape, bytes).unwrap()
    }
}

impl fmt::Debug for Indices {
    /// As of [`Plain`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.wide { "int64" } else { "int32" };
        write!(f, "{width} {:?} {:?}", self.shape, &self.values[..self.values.len().min(64)])
    }
}

/// Every position of a tensor of a shape, in row-major order: the last coordinate moves fastest.
fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut positions = vec![vec![]];
    for &dim in shape {
        positions = positions.iter().flat_map(|p| (0..dim).map(|c| [p.as_slice(), &[c]].concat())).collect();
    }
    positions
}

/// The place of a position in row-major order.
fn place(shape: &[usize], position: &[usize]) -> usize {
    assert_eq!(shape.len(), position.len());
    assert!(position.iter().zip(shape).all(|(c, dim)| c < dim), "{position:?} lies outside of {shape:?}");
    position.iter().zip(shape).fold(0, |place, (c, dim)| place * dim + c)
}

/// The position of an element as errors write it: `[0, 2]`, and nothing for a scalar.
fn position_text(shape: &[usize], at: usize) -> String {
    if shape.is_empty() { String::new() } else { format!("{:?}", positions(shape)[at]) }
}

/// A shape with its largest dimensions halved until it has at most `limit` elements.
fn fitted(mut shape: Vec<usize>, limit: usize) -> Vec<usize> {
    while shape.iter().product::<usize>() > limit.max(1) {
        let largest = shape.iter_mut().max().unwrap();
        *largest /= 2;
    }
    shape
}

/// Numbers that look random, the same for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which may not be 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn element(&mut self, dtype: DType) -> Vec<u8> {
        const PIECES: [&str; 6] = ["a", "bc", "é", "漢", "🙂", "\0"];
        let size = dtype.size();
        match dtype {
            DType::String => (0..self.below(8)).flat_map(|_| PIECES[self.below(6)].bytes()).collect(),
            DType::Bool => vec![self.below(2) as u8],
            _ => {
                let mut bytes: Vec<u8> = (0..size).map(|_| self.next() as u8).collect();
                match self.below(8) {
                    // A NaN of every float type.
                    0 => bytes[size.saturating_sub(2)..].fill(0xff),
                    // Negative zero.
                    1 => bytes = [vec![0; size - 1], vec![0x80]].concat(),
                    _ => {}
                }
                bytes
            }
        }
    }
}
