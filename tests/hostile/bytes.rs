//! Bytes that are not a model, and every possible fault of the wire format in every message of a model.

use crate::case::{At, Case, check, report};
use crate::common::int;
use crate::graphs::{changed, good_bytes, node_of};
use crate::wire::{Field, Format, Holds, field, key, number, varint, within};
use onnxref::{Kind, Limits};

const CUT: &str = "the file is not an ONNX model, or is cut short: ";

#[test]
fn no_model_at_all() {
    let kib = |byte: u8| vec![byte; 1024];
    let text = |text: &str| text.as_bytes().to_vec();
    let files = [
        ("zeros", kib(0)),
        ("ones", kib(0xff)),
        ("0x0a", kib(0x0a)),
        ("0x3a", kib(0x3a)),
        ("0x80", kib(0x80)),
        ("text", text("this is not the model that you are looking for\n")),
        ("json", text("{\"format\": \"onnx\", \"graph\": []}")),
        ("zip", text("PK\x03\x04\x14\0\0\0\x08\0")),
        ("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec()),
        ("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()),
        ("elf", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec()),
        ("pickle", b"\x80\x02}q\0(X\x05\0\0\0stateq\x01".to_vec()),
        ("hdf5", b"\x89HDF\r\n\x1a\n".to_vec()),
        ("utf-16", "onnx".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("one byte", vec![0x08]),
        ("git lfs", text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")),
        ("a tensor", field(9, &[0; 8])),
    ];
    let mut cases: Vec<Case> =
        files.map(|(name, bytes)| Case::new("bytes", name, bytes, Kind::Model, "")).into_iter().collect();
    cases.push(Case::new("bytes", "nothing", vec![], Kind::Model, "the model file is empty").at([At::Nowhere]));
    let whole = good_bytes();
    for len in 1..whole.len() {
        let cut = whole[..len].to_vec();
        cases.push(Case::new("bytes", format!("the first {len} of {} bytes", whole.len()), cut, Kind::Model, ""));
    }
    check(cases);
    report("bytes");
}

/// What is wrong with a field: its bytes, where in them the fault is seen, and what is said of it.
fn malformations() -> Vec<(&'static str, Vec<u8>, usize, String)> {
    let unknown = |wire: u8, body: &[u8]| [key(1000, wire), body.to_vec()].concat();
    let left = |need: u64, left: u64| format!("{need} bytes follow, and {left} are left");
    let group = || "a group, which ONNX doesn't have".to_string();
    let no_wire = |wire: u8| format!("wire type {wire}, which doesn't exist");
    let no_number = || "a field has no number".to_string();
    let wide = || "a number has more than 64 bits".to_string();
    let cut = || "a number is cut short".to_string();
    vec![
        ("field 0", vec![0x00, 0x00], 0, no_number()),
        ("field 0 with a length", vec![0x02, 0x00], 0, no_number()),
        ("a field above the last", [varint(1 << 32), vec![0]].concat(), 0, no_number()),
        ("a field of 61 bits", [varint(u64::MAX - 7), vec![0]].concat(), 0, no_number()),
        ("a group begins", vec![0x0b], 0, group()),
        ("a group ends", vec![0x0c], 0, group()),
        ("groups in groups", vec![0x0b; 10_000], 0, group()),
        ("wire type 6", vec![0x0e, 0], 0, no_wire(6)),
        ("wire type 7", vec![0x0f, 0], 0, no_wire(7)),
        ("a key that is cut", vec![0x80], 0, cut()),
        ("a key of 11 bytes", vec![0xff; 11], 0, wide()),
        ("a key whose tenth byte is 2", [vec![0x80; 9], vec![2, 0]].concat(), 0, wide()),
        ("a number that is not there", unknown(0, &[]), 2, cut()),
        ("a number that is cut", unknown(0, &[0xff, 0xff]), 2, cut()),
        ("a number of 11 bytes", unknown(0, &[0xff; 11]), 2, wide()),
        ("a number whose tenth byte is 2", unknown(0, &[&[0x80; 9][..], &[2]].concat()), 2, wide()),
        ("4 bytes of which 3 are there", unknown(5, &[0; 3]), 0, left(4, 3)),
        ("8 bytes of which 7 are there", unknown(1, &[0; 7]), 0, left(8, 7)),
        ("a length that is cut", unknown(2, &[0x80]), 2, cut()),
        ("a length of 11 bytes", unknown(2, &[0xff; 11]), 2, wide()),
        ("a length one beyond", unknown(2, &[2, 0]), 0, left(2, 1)),
        ("2^31 bytes", unknown(2, &varint(1 << 31)), 0, left(1 << 31, 0)),
        ("2^32 bytes", unknown(2, &[varint(1 << 32), vec![1]].concat()), 0, left(1 << 32, 1)),
        ("2^63 bytes", unknown(2, &varint(1 << 63)), 0, left(1 << 63, 0)),
        ("2^64-1 bytes", unknown(2, &[varint(u64::MAX), vec![1, 2]].concat()), 0, left(u64::MAX, 2)),
    ]
}

#[test]
fn malformed_fields_of_every_message() {
    let format = Format::read();
    assert_eq!(format.paths.len(), 28, "a message is new: {:?}", format.paths.keys());
    let mut cases = Vec::new();
    for message in format.paths.keys() {
        for (name, body, at, text) in malformations() {
            let bytes = format.within(message, &body);
            let place = (bytes.len() - body.len() + at) as i128;
            let case = Case::new("wire", format!("{message}: {name}"), bytes, Kind::Model, format!("{place}: {text}"));
            cases.push(case.at([At::Value(place)]));
        }
    }
    check(cases);
    report("wire");
}

/// A field inside of its message, which is at the end of the file.
fn alone(format: &Format, of: &Field, body: &[u8]) -> Vec<u8> {
    format.within(&of.message, body)
}

/// A field inside of its message, in what is a model otherwise.
fn in_model(format: &Format, of: &Field, body: &[u8]) -> Vec<u8> {
    let graph = if format.paths[&of.message].first() == Some(&7) { vec![] } else { field(7, &[]) };
    let head = |of: &Field| of.message == "ModelProto" && (of.number == 1 || of.number == 7);
    let version = if head(of) && of.number == 1 { vec![] } else { number(1, 8) };
    let graph = if head(of) && of.number == 7 { vec![] } else { graph };
    [version, graph, field(8, &number(2, 13)), alone(format, of, body)].concat()
}

#[test]
fn fields_given_twice_of_every_message() {
    let format = Format::read();
    let mut cases = Vec::new();
    for field in format.fields.iter().filter(|field| !field.repeated) {
        let least = if field.holds == Holds::Varint { number(field.number, 1) } else { field.least() };
        // Once more after something else, as mergers write it.
        for (how, between) in [("at once", vec![]), ("later", number(1001, 7))] {
            let bytes = alone(&format, field, &[least.clone(), between, least.clone()].concat());
            let text = format!("has field {} twice", field.number);
            let name = format!("{} twice, {how}", field.label());
            let second = (bytes.len() - least.len()) as i128;
            cases.push(Case::new("twice", name, bytes, Kind::Model, text).at([At::Value(second)]));
        }
        let others = format.fields.iter().filter(|other| other.message == field.message && other.number > field.number);
        for other in others.filter(|other| field.choice.is_some() && other.choice == field.choice) {
            let bytes = alone(&format, field, &[field.least(), other.least()].concat());
            let name = format!("{} and {}", field.label(), other.name);
            cases.push(Case::new("twice", name, bytes, Kind::Model, "it may be there once"));
        }
    }
    check(cases);
    report("twice");
}

#[test]
fn fields_of_another_type_of_every_message() {
    let format = Format::read();
    let mut cases = Vec::new();
    for field in &format.fields {
        for wire in [0, 1, 2, 5] {
            if !field.wires().contains(&wire) {
                let bytes = in_model(&format, field, &field.as_wire(wire));
                let name = format!("{} as wire type {wire}", field.label());
                cases.push(Case::new("mistyped", name, bytes, Kind::Model, CUT));
            }
        }
        // Packed numbers that end in the middle of one.
        let broken: &[u8] = match field.holds {
            Holds::Varint => &[1, 0x80],
            Holds::Fixed32 => &[0; 5],
            Holds::Fixed64 => &[0; 12],
            _ => continue,
        };
        if field.repeated {
            let bytes = in_model(&format, field, &crate::wire::field(field.number, broken));
            cases.push(Case::new("mistyped", format!("{} cut in a number", field.label()), bytes, Kind::Model, CUT));
        }
    }
    check(cases);
    report("mistyped");
}

#[test]
fn text_that_is_not_utf_8_in_every_message() {
    let format = Format::read();
    let bad: [&[u8]; 4] = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"];
    let mut cases = Vec::new();
    for text in format.fields.iter().filter(|field| field.holds == Holds::Text) {
        for bad in bad {
            let bytes = in_model(&format, text, &field(text.number, bad));
            cases.push(Case::new("text", format!("{} = {bad:x?}", text.label()), bytes, Kind::Model, "UTF-8"));
        }
    }
    check(cases);
    report("text");
}

/// A megabyte of the least that a repeated field can have is refused before it is decoded.
#[test]
fn bombs_of_every_message() {
    let format = Format::read();
    let mut cases = Vec::new();
    for bomb in format.fields.iter().filter(|field| field.repeated) {
        for wire in bomb.wires() {
            let unit = if wire == 2 { [key(bomb.number, 2), vec![0]].concat() } else { bomb.as_wire(wire) };
            let packed = wire == 2 && !matches!(bomb.holds, Holds::Message(_) | Holds::Text | Holds::Bytes);
            // What takes no more than four bytes for each of the file's is no bomb.
            if packed && bomb.holds != Holds::Varint || matches!(wire, 1 | 5) {
                continue;
            }
            let body = if packed { field(bomb.number, &vec![1; 1 << 20]) } else { unit.repeat((1 << 20) / unit.len()) };
            let bytes = alone(&format, bomb, &body);
            let name = format!("{} as wire type {wire}", bomb.label());
            let case = Case::new("amplification", name, bytes, Kind::Limit, "Limits::load_bytes");
            let limits = |l: &mut Limits| (l.load_bytes, l.load_bytes_per_byte) = (1 << 20, 2);
            cases.push(case.at([At::Limit("load_bytes")]).limits(limits));
        }
    }
    // With the limits as they are.
    let millions = |unit: &[u8]| unit.repeat(12_000_000 / unit.len());
    for (name, path, unit) in [
        ("attributes", &[7, 1][..], field(5, &[])),
        ("nodes", &[7], field(1, &[])),
        ("initializers", &[7], field(5, &[])),
        ("strings", &[7, 5], field(6, &[])),
        ("functions", &[], field(25, &[])),
        ("opsets", &[], field(8, &[])),
        ("dimensions", &[7, 11, 2, 1, 2], field(1, &[])),
        ("unpacked dims", &[7, 5], number(1, 1)),
        ("graphs of an attribute", &[7, 1, 5], field(11, &[])),
    ] {
        let bytes = within(path, &millions(&unit));
        let case = Case::new("amplification", format!("12 MB of {name}"), bytes, Kind::Limit, "Limits::load_bytes");
        cases.push(case.at([At::Limit("load_bytes")]));
    }
    check(cases);
    report("amplification");
}

/// What the limits count: nodes wherever they are, bytes of a name, bytes of the file.
#[test]
fn limits_of_a_file() {
    let format = Format::read();
    let mut cases = Vec::new();
    for name in format.fields.iter().filter(|field| field.holds == Holds::Text) {
        // Documentation, values of entries and producers are no names, and may be long.
        let free = ["doc_string", "value", "denotation", "producer_name", "producer_version"];
        if free.contains(&name.name.as_str()) || name.label() == "ModelProto.domain" {
            continue;
        }
        let bytes = alone(&format, name, &field(name.number, &vec![b'n'; 1001]));
        let case =
            Case::new("limits", format!("{} of 1001 bytes", name.label()), bytes, Kind::Limit, "a name has 1001");
        let at = [At::Limit("name_bytes"), At::Value(1001), At::Size(1000)];
        cases.push(case.at(at).limits(|limits| limits.name_bytes = 1000));
    }
    for (where_, path) in [
        ("the graph", &[7, 1][..]),
        ("a subgraph", &[7, 1, 5, 6, 1]),
        ("one of several subgraphs", &[7, 1, 5, 11, 1]),
        ("a function", &[25, 7]),
        ("training", &[20, 2, 1]),
        ("a function's attribute", &[25, 11, 6, 1]),
    ] {
        let (last, outer) = path.split_last().unwrap();
        let bytes = within(outer, &field(*last, &[]).repeat(11));
        let case = Case::new("limits", format!("11 nodes in {where_}"), bytes, Kind::Limit, "Limits::nodes");
        cases.push(case.at([At::Limit("nodes")]).limits(|limits| limits.nodes = 10));
    }
    let whole = good_bytes();
    let len = whole.len() as u64;
    let case = Case::new("limits", "a file of a byte too many", whole, Kind::Limit, "Limits::file_bytes");
    cases.push(case.at([At::Limit("file_bytes"), At::Value(len.into())]).limits(|l| l.file_bytes = len - 1));
    let unknown = field(1000, &vec![0; 1 << 20]);
    let bytes = [good_bytes(), unknown].concat();
    let case = Case::new("limits", "a file that is not paid for", bytes, Kind::Limit, "");
    cases.push(case.limits(|l| (l.load_bytes, l.load_bytes_per_byte) = (1000, 0)));
    let many = changed(|m| node_of(m, 0).attribute = vec![int("axis", 0); 200]);
    let case = Case::new("limits", "a budget for nothing", many, Kind::Limit, "Limits::load_bytes");
    cases.push(case.limits(|l| (l.load_bytes, l.load_bytes_per_byte) = (0, 0)));
    check(cases);
    report("limits");
}
