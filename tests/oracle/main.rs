//! Each operator against its equation from the standard, written out as a walk over the positions of the output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;

mod cases;

use cases::{Bad, Case, INDEX_TYPES, any_bad, any_gather, any_gather_elements, any_gather_nd, element_types};
use common::plain::{Indices, Plain, Random};
use common::{first_output, fix, int, model, one_node_graph, run_one, run_one_with};
use ndarray::array;
use onnxref::{DType, Inputs, Kind, Model, Tensor};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::HashSet;

/// `output[a.., i.., b..] = data[a.., indices[i..], b..]`, where `a..` are the dimensions before `axis`.
fn gather(data: &Plain, axis: usize, indices: &Indices) -> Plain {
    let (before, after) = (&data.shape[..axis], &data.shape[axis + 1..]);
    let q = indices.shape.len();
    Plain::fill(data.dtype, [before, &indices.shape, after].concat(), |position| {
        let (a, i, b) = (&position[..axis], &position[axis..axis + q], &position[axis + q..]);
        data.at(&[a, &[indices.entry(i, data.shape[axis]).unwrap()], b].concat())
    })
}

/// `output[i, j, k] = data[i, indices[i, j, k], k]` for axis 1 of three; and so on.
fn gather_elements(data: &Plain, axis: usize, indices: &Indices) -> Plain {
    Plain::fill(data.dtype, indices.shape.clone(), |position| {
        let mut source = position.to_vec();
        source[axis] = indices.entry(position, data.shape[axis]).unwrap();
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
            source.push(indices.entry(&[tuple, &[k]].concat(), data.shape[batch_dims + k]).unwrap());
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
        let case = Case { opset, version: 1, ..case };
        let error = case.run().unwrap_err();
        case.assert_place(&error, first);
        let whose = format!("{} ", case.indices.text(first));
        prop_assert!(error.to_string().contains(&whose), "{error}");
        prop_assert!(error.to_string().contains("negative, which is allowed from version 11 on only"), "{error}");

        let options = Model::options().compatibility(|c| c.gather_1_negative_indices = true);
        let (data, indices) = (case.data.tensor(), case.indices.tensor());
        let run = |indices: &Tensor| {
            run_one_with(&options, "Gather", opset, case.attributes.clone(), &[("data", &data), ("indices", indices)])
        };
        case.expected.assert_is(&run(&indices).unwrap());
        let beyond = with(&case.indices, first, -(case.sizes[0] as i128) - 1);
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
        let s = size as i128;
        let ends = vec![0, -1, s - 1, -s, s / 2, 1, -s + 1, s - 2, 127, 128, 255, 256, 257, -127, -128, -129]
            .into_iter()
            .filter(|value| (-s..s).contains(value));
        let values: Vec<i128> = ends.collect();
        let n = values.len();
        for (shape, axis, picked) in
            [(vec![size], 0, vec![n]), (vec![size, 3], 0, vec![n, 1]), (vec![2, size], 1, vec![1, n])]
        {
            let data = Plain::random(DType::Uint8, shape, &mut random);
            let indices = Indices { dtype: INDEX_TYPES[random.below(2)], shape: picked, values: values.clone() };
            let attributes = vec![int("axis", axis as i64)];
            let run = |op, indices: &Indices| {
                let (data, indices) = (data.tensor(), indices.tensor());
                run_one(op, 13, attributes.clone(), &[("data", &data), ("indices", &indices)])
            };
            gather(&data, axis, &indices).assert_is(&run("Gather", &indices).unwrap());
            gather_elements(&data, axis, &indices).assert_is(&run("GatherElements", &indices).unwrap());
            for beyond in [s, -s - 1] {
                let error = run("GatherElements", &with(&indices, n - 1, beyond)).unwrap_err();
                assert_eq!((error.place().value, error.place().size), (Some(beyond), Some(size)));
                assert!(run("Gather", &with(&indices, 0, beyond)).is_err());
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
        let indices = Indices { dtype: DType::Int64, shape: vec![4, 1], values: vec![2, 0, -2, 2] };
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
    for (dtype, index_type) in element_types(13).into_iter().flat_map(|dtype| INDEX_TYPES.map(|index| (dtype, index))) {
        let data = Plain::random(dtype, vec![5, 4], &mut random);
        let indices = Indices { dtype: index_type, shape: vec![2, 3], values: vec![4, 0, -1, -5, 2, 2] };
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

/// The same indices with another value at one place.
fn with(indices: &Indices, at: usize, value: i128) -> Indices {
    let mut indices = indices.clone();
    indices.values[at] = value;
    indices
}
