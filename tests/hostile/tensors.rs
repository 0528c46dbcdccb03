//! The payload of tensors, of every element type: as an initializer, and alone.

use crate::case::{At, Case, Door, check, report};
use crate::common::proto::tensor_proto::Segment;
use crate::common::proto::{StringStringEntryProto, TensorProto};
use crate::graphs::{changed, graph_of};
use onnxref::{DType, Kind};
use prost::Message;

fn tensor(dtype: DType, dims: &[i64]) -> TensorProto {
    TensorProto { name: Some("t".into()), data_type: Some(dtype.code()), dims: dims.to_vec(), ..TensorProto::default() }
}

fn raw(dtype: DType, dims: &[i64], len: usize) -> TensorProto {
    TensorProto { raw_data: Some(vec![0; len].into()), ..tensor(dtype, dims) }
}

/// A tensor with `count` zeros in a typed field.
fn typed(field: &str, count: usize, tensor: TensorProto) -> TensorProto {
    match field {
        "float_data" => TensorProto { float_data: vec![0.0; count], ..tensor },
        "int32_data" => TensorProto { int32_data: vec![0; count], ..tensor },
        "string_data" => TensorProto { string_data: vec!["".into(); count], ..tensor },
        "int64_data" => TensorProto { int64_data: vec![0; count], ..tensor },
        "double_data" => TensorProto { double_data: vec![0.0; count], ..tensor },
        "uint64_data" => TensorProto { uint64_data: vec![0; count], ..tensor },
        other => panic!("{other}"),
    }
}

const FIELDS: [&str; 6] = ["float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data"];

/// The field that the standard has for a type.
fn field_of(dtype: DType) -> &'static str {
    use DType::*;
    match dtype {
        Float | Complex64 => "float_data",
        Double | Complex128 => "double_data",
        Int64 => "int64_data",
        Uint32 | Uint64 => "uint64_data",
        String => "string_data",
        _ => "int32_data",
    }
}

struct Bad {
    name: String,
    tensor: TensorProto,
    text: String,
    at: Vec<At>,
}

fn bad(name: String, tensor: TensorProto, text: impl Into<String>, at: impl IntoIterator<Item = At>) -> Bad {
    Bad { name, tensor, text: text.into(), at: at.into_iter().collect() }
}

fn of_every_type() -> Vec<Bad> {
    let mut list = Vec::new();
    for dtype in DType::all() {
        let own = field_of(dtype);
        let mut add = |name: &str, tensor: TensorProto, text: String, at: &[At]| {
            list.push(bad(format!("{dtype}: {name}"), tensor, text, at.to_vec()));
        };
        add("no data", tensor(dtype, &[2]), "it has no data, but its shape [2] takes 2 elements".into(), &[]);
        let bits = dtype.bits() as u128;
        if dtype != DType::String {
            let need = (5 * bits).div_ceil(8) as usize;
            for len in [need - 1, need + 1, 0] {
                let text = format!("its raw data has {len} bytes: {dtype} of shape [5] takes {need}");
                let at = [At::Value(len as i128), At::Size(need)];
                add(&format!("{len} raw bytes for {need}"), raw(dtype, &[5], len), text, &at);
            }
            let both = typed(own, 5, raw(dtype, &[5], need));
            add("raw and typed", both, format!("its data is in raw_data and in {own}: only one is allowed"), &[]);
        }
        for field in FIELDS.into_iter().filter(|field| *field != own) {
            let text = format!("its data is in {field}: {dtype} takes ");
            add(&format!("in {field}"), typed(field, 1, tensor(dtype, &[1])), text, &[]);
        }
        let packed = if matches!(dtype.bits(), 2 | 4) { dtype.bits() } else { 8 };
        let twice = if matches!(dtype, DType::Complex64 | DType::Complex128) { 2 } else { 1 };
        let need = (10 * packed).div_ceil(8) * twice;
        for count in [need - 1, need + 1] {
            let text = format!("its {own} has {count} entries: {dtype} of shape [2, 5] takes {need}");
            let at = [At::Value(count as i128), At::Size(need)];
            add(&format!("{count} entries for {need}"), typed(own, count, tensor(dtype, &[2, 5])), text, &at);
        }
        for (name, dims) in [("2^63-1 squared", &[i64::MAX, i64::MAX][..]), ("2^32 squared", &[1 << 32, 1 << 32])] {
            add(name, tensor(dtype, dims), "than can be counted".into(), &[]);
        }
        let above = (i64::MAX as u64 / dtype.size() as u64 + 1) as i64;
        if above > 0 {
            add("a byte too many", tensor(dtype, &[above]), "than can be counted".into(), &[]);
        }
        let external = TensorProto {
            data_location: Some(1),
            external_data: vec![StringStringEntryProto { key: Some("location".into()), value: Some("w".into()) }],
            ..tensor(dtype, &[2])
        };
        if dtype == DType::String {
            add("external", external, "strings can't be external data".into(), &[]);
        }
    }
    list
}

fn of_any_type() -> Vec<Bad> {
    use DType::*;
    let mut list = Vec::new();
    let mut add = |name: &str, tensor: TensorProto, text: &str, at: &[At]| {
        list.push(bad(name.into(), tensor, text, at.to_vec()));
    };
    for code in [i32::MIN, -1, 0, 29, 255, 256 + 1, i32::MAX] {
        let odd = TensorProto { data_type: Some(code), ..raw(Float, &[1], 4) };
        let text = format!("data_type {code} is not an element type");
        add(&format!("data_type {code}"), odd, &text, &[At::Value(code.into())]);
    }
    for dim in [-1, i64::MIN, -(1 << 32)] {
        let text = format!("dimension 1 is {dim}: allowed 0 or more");
        add(&format!("dimension {dim}"), raw(Float, &[0, dim], 0), &text, &[At::Value(dim.into())]);
    }
    for location in [-1, 2, i32::MAX] {
        let odd = TensorProto { data_location: Some(location), ..raw(Float, &[1], 4) };
        add(&format!("location {location}"), odd, &format!("data_location {location} is not 0 or 1"), &[]);
    }
    let segment =
        TensorProto { segment: Some(Box::new(Segment { begin: Some(0), end: Some(1) })), ..raw(Float, &[1], 4) };
    add("a segment", segment, "it is a segment of a tensor", &[]);
    let unused = vec![StringStringEntryProto::default()];
    let unused = TensorProto { external_data: unused, ..raw(Float, &[1], 4) };
    add("entries that are not used", unused, "its data_location is not EXTERNAL", &[]);
    let strings = TensorProto { raw_data: Some("x".into()), ..tensor(String, &[1]) };
    add("strings that are raw", strings, "strings can't be raw_data", &[]);
    for (name, text) in [("ff", &b"\xff"[..]), ("a surrogate", b"\xed\xa0\x80"), ("cut", b"ok\xe2\x82")] {
        let strings = vec!["a".into(), bytes::Bytes::from(text.to_vec())];
        let strings = TensorProto { string_data: strings, ..tensor(String, &[2]) };
        add(&format!("a string of {name}"), strings, "string 1 is not UTF-8", &[At::Position(vec![1])]);
    }
    // Values that the type doesn't have, the last of several.
    for (dtype, least, most) in [
        (Uint8, 0, 255),
        (Int8, -128, 127),
        (Uint16, 0, 65535),
        (Int16, -32768, 32767),
        (Float16, 0, 65535),
        (Bfloat16, 0, 65535),
        (Bool, 0, 1),
        (Float8e4m3fn, 0, 255),
        (Float8e4m3fnuz, 0, 255),
        (Float8e5m2, 0, 255),
        (Float8e5m2fnuz, 0, 255),
        (Float8e8m0, 0, 255),
        (Uint4, 0, 255),
        (Int4, 0, 255),
        (Float4e2m1, 0, 255),
        (Uint2, 0, 255),
        (Int2, 0, 255),
        (Float6e2m3, 0, 63),
        (Float6e3m2, 0, 63),
    ] {
        for value in [least - 1, most + 1, i32::MIN, i32::MAX] {
            let each = if matches!(dtype.bits(), 2 | 4) { 8 / dtype.bits() as i64 } else { 1 };
            let odd = TensorProto { int32_data: vec![least, most, value], ..tensor(dtype, &[3 * each]) };
            let text = format!("entry 2 is {value}: {dtype} takes {least} to {most}");
            add(&format!("{dtype} {value}"), odd, &text, &[At::Value(value.into()), At::Position(vec![2])]);
        }
    }
    for value in [1 << 32, u64::MAX] {
        let odd = TensorProto { uint64_data: vec![0, value], ..tensor(Uint32, &[2]) };
        let text = format!("entry 1 is {value}: uint32 takes 0 to 4294967295");
        add(&format!("uint32 {value}"), odd, &text, &[At::Value(value.into()), At::Position(vec![1])]);
    }
    for byte in [2, 0x80, 0xff] {
        let odd = TensorProto { raw_data: Some(vec![0, 1, byte].into()), ..tensor(Bool, &[3]) };
        let text = format!("element [2] is the byte {byte}, which is not a valid bool");
        add(&format!("bool {byte}"), odd, &text, &[At::Value(byte.into()), At::Position(vec![2])]);
    }
    for (dtype, last) in
        [(Uint4, 0x10), (Int4, 0xf0), (Float4e2m1, 0x80), (Uint2, 0x04), (Int2, 0xc0), (Float6e2m3, 0xc0)]
    {
        let odd = TensorProto { raw_data: Some(vec![last].into()), ..tensor(dtype, &[1]) };
        add(&format!("{dtype} with more bits"), odd, "the bits after the last of 1", &[]);
        if dtype.bits() < 6 {
            let odd = TensorProto { int32_data: vec![i32::from(last)], ..tensor(dtype, &[1]) };
            add(&format!("{dtype} with more bits in an entry"), odd, "the bits after the last of 1", &[]);
        }
    }
    list
}

fn cases(category: &'static str, list: Vec<Bad>, kind: Kind) -> Vec<Case> {
    let mut cases = Vec::new();
    for Bad { name, tensor, text, at } in list {
        let at = [at, vec![At::Name("t".into())]].concat();
        let alone = Door::Tensor(tensor.encode_to_vec().into());
        cases.push(Case::new(category, format!("{name}, alone"), alone, kind, &text).at(at.clone()));
        let bytes = changed(|m| graph_of(m).initializer.insert(1, tensor));
        cases.push(Case::new(category, name, bytes, kind, &text).at(at));
    }
    cases
}

#[test]
fn payloads_of_every_type() {
    check(cases("tensor", of_every_type(), Kind::Model));
    check(cases("tensor", of_any_type(), Kind::Model));
    report("tensor");
}

#[test]
fn ranks_beyond_the_limit() {
    let ranks = [65, 1000, 100_000].map(|rank| {
        let text = format!("a shape has {rank} dimensions: the limit is 64");
        bad(format!("rank {rank}"), raw(DType::Uint8, &vec![1; rank], 1), text, [At::Limit("rank")])
    });
    check(cases("tensor", ranks.into(), Kind::Limit));
}
