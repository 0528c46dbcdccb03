//! The payload of tensors, as initializers that no node uses.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::tensor_proto::Segment;
use crate::common::proto::{StringStringEntryProto, TensorProto};
use crate::{With, at_value, good, graph_of, load};
use onnxref::{DType, Error, Kind, Model, Place};

/// What is read, what is said of it, and the place of that apart from the name.
type Case = (TensorProto, &'static str, fn(&mut Place));

fn tensor(dtype: DType, dims: &[i64]) -> TensorProto {
    TensorProto { name: Some("t".into()), data_type: Some(dtype.code()), dims: dims.to_vec(), ..TensorProto::default() }
}

fn raw(dtype: DType, dims: &[i64], bytes: &'static [u8]) -> TensorProto {
    TensorProto { raw_data: Some(bytes.into()), ..tensor(dtype, dims) }
}

fn int32(dtype: DType, dims: &[i64], entries: &[i32]) -> TensorProto {
    TensorProto { int32_data: entries.to_vec(), ..tensor(dtype, dims) }
}

fn load_with(tensor: TensorProto) -> Result<Model, Error> {
    let mut model = good();
    graph_of(&mut model).initializer.push(tensor);
    load(&model)
}

fn check<const N: usize>(cases: [Case; N]) {
    assert_as_expected(cases.map(|(tensor, text, fill)| {
        let full = format!("initializer: tensor \"t\": {text}");
        difference_at(text, load_with(tensor), Kind::Model, &full, &at_value("t").with(fill))
    }));
}

#[test]
fn one_field_and_the_right_one() {
    use DType::*;
    check([
        (tensor(Float, &[2]), "it has no data, but its shape [2] takes 2 elements", |_| {}),
        (tensor(Float, &[]), "it has no data, but its shape [] takes 1 elements", |_| {}),
        (
            TensorProto { int64_data: vec![1], ..tensor(Float, &[1]) },
            "its data is in int64_data: float32 takes raw_data or float_data",
            |_| {},
        ),
        (
            TensorProto { int64_data: vec![1], ..tensor(Int32, &[1]) },
            "its data is in int64_data: int32 takes raw_data or int32_data",
            |_| {},
        ),
        (int32(Uint32, &[1], &[1]), "its data is in int32_data: uint32 takes raw_data or uint64_data", |_| {}),
        (int32(Uint64, &[1], &[1]), "its data is in int32_data: uint64 takes raw_data or uint64_data", |_| {}),
        (int32(Int64, &[1], &[1]), "its data is in int32_data: int64 takes raw_data or int64_data", |_| {}),
        (
            TensorProto { float_data: vec![1.0], ..tensor(Float16, &[1]) },
            "its data is in float_data: float16 takes raw_data or int32_data",
            |_| {},
        ),
        (
            TensorProto { float_data: vec![1.0], ..tensor(Double, &[1]) },
            "its data is in float_data: float64 takes raw_data or double_data",
            |_| {},
        ),
        (
            TensorProto { double_data: vec![1.0; 2], ..tensor(Complex64, &[1]) },
            "its data is in double_data: complex64 takes raw_data or float_data",
            |_| {},
        ),
        (
            TensorProto { string_data: vec!["x".into()], ..tensor(Uint8, &[1]) },
            "its data is in string_data: uint8 takes raw_data or int32_data",
            |_| {},
        ),
        (
            TensorProto { float_data: vec![1.0], ..tensor(String, &[1]) },
            "its data is in float_data: string takes string_data",
            |_| {},
        ),
        (raw(String, &[1], b"x"), "strings can't be raw_data", |_| {}),
        (
            TensorProto { float_data: vec![1.0], ..raw(Float, &[1], &[0; 4]) },
            "its data is in raw_data and in float_data: only one is allowed",
            |_| {},
        ),
        (
            TensorProto { float_data: vec![1.0], int32_data: vec![1], ..tensor(Float, &[1]) },
            "its data is in float_data and in int32_data: only one is allowed",
            |_| {},
        ),
    ]);
}

#[test]
fn as_many_as_the_shape_takes() {
    use DType::*;
    check([
        (
            TensorProto { float_data: vec![1.0; 3], ..tensor(Float, &[2]) },
            "its float_data has 3 entries: float32 of shape [2] takes 2",
            |p| (p.value, p.size) = (Some(3), Some(2)),
        ),
        (
            TensorProto { int64_data: vec![1; 3], ..tensor(Int64, &[2, 2]) },
            "its int64_data has 3 entries: int64 of shape [2, 2] takes 4",
            |p| (p.value, p.size) = (Some(3), Some(4)),
        ),
        (
            TensorProto { double_data: vec![1.0; 2], ..tensor(Double, &[0]) },
            "its double_data has 2 entries: float64 of shape [0] takes 0",
            |p| (p.value, p.size) = (Some(2), Some(0)),
        ),
        (
            TensorProto { uint64_data: vec![1; 2], ..tensor(Uint64, &[]) },
            "its uint64_data has 2 entries: uint64 of shape [] takes 1",
            |p| (p.value, p.size) = (Some(2), Some(1)),
        ),
        (
            TensorProto { float_data: vec![1.0; 3], ..tensor(Complex64, &[2]) },
            "its float_data has 3 entries: complex64 of shape [2] takes 4",
            |p| (p.value, p.size) = (Some(3), Some(4)),
        ),
        (
            TensorProto { string_data: vec!["x".into(); 3], ..tensor(String, &[2]) },
            "its string_data has 3 entries: string of shape [2] takes 2",
            |p| (p.value, p.size) = (Some(3), Some(2)),
        ),
        (int32(Int4, &[3], &[1, 2, 3]), "its int32_data has 3 entries: int4 of shape [3] takes 2", |p| {
            (p.value, p.size) = (Some(3), Some(2));
        }),
        (raw(Float, &[2], &[0; 7]), "its raw data has 7 bytes: float32 of shape [2] takes 8", |p| {
            (p.value, p.size) = (Some(7), Some(8));
        }),
        (raw(Float, &[2], &[0; 9]), "its raw data has 9 bytes: float32 of shape [2] takes 8", |p| {
            (p.value, p.size) = (Some(9), Some(8));
        }),
        (raw(Float, &[1], &[]), "its raw data has 0 bytes: float32 of shape [1] takes 4", |p| {
            (p.value, p.size) = (Some(0), Some(4));
        }),
        (raw(Float, &[0], &[0]), "its raw data has 1 bytes: float32 of shape [0] takes 0", |p| {
            (p.value, p.size) = (Some(1), Some(0));
        }),
        (raw(Complex128, &[1], &[0; 8]), "its raw data has 8 bytes: complex128 of shape [1] takes 16", |p| {
            (p.value, p.size) = (Some(8), Some(16));
        }),
        (raw(Uint4, &[3], &[0; 3]), "its raw data has 3 bytes: uint4 of shape [3] takes 2", |p| {
            (p.value, p.size) = (Some(3), Some(2));
        }),
    ]);
}

#[test]
fn dimensions_that_can_be_counted() {
    use DType::*;
    check([
        (tensor(Float, &[2, -1]), "dimension 1 is -1: allowed 0 or more", |p| p.value = Some(-1)),
        (tensor(Float, &[0, -1]), "dimension 1 is -1: allowed 0 or more", |p| p.value = Some(-1)),
        (tensor(Float, &[i64::MIN]), "dimension 0 is -9223372036854775808: allowed 0 or more", |p| {
            p.value = Some(i64::MIN.into())
        }),
        (
            tensor(Uint8, &[1 << 30, 1 << 30, 8]),
            "a tensor of uint8 of shape [1073741824, 1073741824, 8] has more bytes than can be counted",
            |_| {},
        ),
        (
            tensor(Double, &[1 << 30, 1 << 30]),
            "a tensor of float64 of shape [1073741824, 1073741824] has more bytes than can be counted",
            |_| {},
        ),
        (
            tensor(Uint8, &[1 << 30, 1 << 30, 1 << 30]),
            "a tensor of uint8 of shape [1073741824, 1073741824, 1073741824] has more bytes than can be counted",
            |_| {},
        ),
        (
            raw(Uint8, &[1 << 30], &[0; 8]),
            "its raw data has 8 bytes: uint8 of shape [1073741824] takes 1073741824",
            |p| (p.value, p.size) = (Some(8), Some(1 << 30)),
        ),
    ]);
}

#[test]
fn values_of_the_type() {
    use DType::*;
    check([
        (int32(Uint8, &[2], &[0, 256]), "entry 1 is 256: uint8 takes 0 to 255", |p| entry(p, 256, 1)),
        (int32(Uint8, &[1], &[-1]), "entry 0 is -1: uint8 takes 0 to 255", |p| entry(p, -1, 0)),
        (int32(Int8, &[1], &[128]), "entry 0 is 128: int8 takes -128 to 127", |p| entry(p, 128, 0)),
        (int32(Uint16, &[1], &[65536]), "entry 0 is 65536: uint16 takes 0 to 65535", |p| entry(p, 65536, 0)),
        (int32(Int16, &[1], &[-32769]), "entry 0 is -32769: int16 takes -32768 to 32767", |p| entry(p, -32769, 0)),
        (int32(Float16, &[1], &[-1]), "entry 0 is -1: float16 takes 0 to 65535", |p| entry(p, -1, 0)),
        (int32(Bfloat16, &[1], &[65536]), "entry 0 is 65536: bfloat16 takes 0 to 65535", |p| entry(p, 65536, 0)),
        (int32(Float8e5m2, &[1], &[256]), "entry 0 is 256: float8e5m2 takes 0 to 255", |p| entry(p, 256, 0)),
        (int32(Bool, &[2], &[1, 2]), "entry 1 is 2: bool takes 0 to 1", |p| entry(p, 2, 1)),
        (int32(Bool, &[1], &[-1]), "entry 0 is -1: bool takes 0 to 1", |p| entry(p, -1, 0)),
        (raw(Bool, &[2], &[1, 2]), "element [1] is the byte 2, which is not a valid bool", |p| entry(p, 2, 1)),
        (
            TensorProto { uint64_data: vec![0, 1 << 32], ..tensor(Uint32, &[2]) },
            "entry 1 is 4294967296: uint32 takes 0 to 4294967295",
            |p| entry(p, 1 << 32, 1),
        ),
        (raw(Uint4, &[1], &[0x10]), "the bits after the last of 1 uint4 elements are not 0", |_| {}),
        (
            TensorProto { string_data: vec!["x".into(), b"\xff".as_slice().into()], ..tensor(String, &[2]) },
            "string 1 is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0",
            |p| p.position = Some(vec![1]),
        ),
    ]);
}

fn entry(p: &mut Place, value: i128, position: usize) {
    (p.value, p.position) = (Some(value), Some(vec![position]));
}

#[test]
fn whole_tensors_of_known_types() {
    let with_code = |code| TensorProto { data_type: code, ..raw(DType::Float, &[1], &[0; 4]) };
    check([
        (with_code(Some(99)), "data_type 99 is not an element type", |p| p.value = Some(99)),
        (with_code(Some(29)), "data_type 29 is not an element type", |p| p.value = Some(29)),
        (with_code(Some(-1)), "data_type -1 is not an element type", |p| p.value = Some(-1)),
        (with_code(Some(0)), "data_type 0 is not an element type", |p| p.value = Some(0)),
        (with_code(None), "data_type is missing", |_| {}),
        (
            TensorProto { segment: Some(Box::new(Segment::default())), ..raw(DType::Float, &[1], &[0; 4]) },
            "it is a segment of a tensor: segments can't be joined",
            |_| {},
        ),
        (
            TensorProto { data_location: Some(2), ..raw(DType::Float, &[1], &[0; 4]) },
            "data_location 2 is not 0 or 1",
            |_| {},
        ),
        (
            TensorProto {
                external_data: vec![StringStringEntryProto { key: Some("location".into()), value: Some("w".into()) }],
                ..raw(DType::Float, &[1], &[0; 4])
            },
            "it has external_data, but its data_location is not EXTERNAL",
            |_| {},
        ),
    ]);
}

#[test]
fn what_is_right() {
    use DType::*;
    let right = [
        raw(Float, &[2], &[0; 8]),
        int32(Int8, &[2], &[-128, 127]),
        int32(Float16, &[1], &[65535]),
        int32(Bool, &[2], &[0, 1]),
        int32(Uint4, &[3], &[0xff, 0xf]),
        raw(Int4, &[3], &[0xff, 0xf]),
        TensorProto { uint64_data: vec![u32::MAX.into()], ..tensor(Uint32, &[]) },
        TensorProto { double_data: vec![1.0; 2], ..tensor(Complex128, &[1]) },
        TensorProto { string_data: vec!["é".into(), "".into()], ..tensor(String, &[2]) },
        TensorProto { raw_data: Some("".into()), float_data: vec![1.0], ..tensor(Float, &[1]) },
    ];
    for tensor in right {
        load_with(tensor.clone()).unwrap_or_else(|error| panic!("{tensor:?}: {error}"));
    }
}

#[test]
fn a_tensor_without_elements_needs_no_field() {
    for dtype in DType::all() {
        load_with(tensor(dtype, &[2, 0])).unwrap();
        if dtype != DType::String {
            load_with(raw(dtype, &[0], &[])).unwrap();
        }
    }
}
