//! Scans the wire format before it is decoded: what decoding would cost, and whether the bytes have one meaning.
//!
//! A decoder allocates as a file tells it to: a megabyte of empty attributes becomes more than a gigabyte. The scan
//! walks over the same bytes without allocating and adds up what the decoded messages take. It refuses what protobuf
//! would silently merge: a singular field given twice.

use super::fields::{Field, Wire};
use crate::error::{Error, Kind, Result};
use crate::files::ModelFiles;
use crate::limits::{Limits, exceeded};
use std::borrow::Cow;

pub(super) use super::fields::Message;

/// Overhead of one allocation.
const ALLOCATION: u64 = 16;

impl Message {
    /// Whether parts of this message are decoded one at a time: see `shallow`.
    fn takes_turns(self, number: u32, depth: usize) -> bool {
        match self {
            Message::Model => matches!(number, 20 | 25),
            Message::Graph => depth == 2 && matches!(number, 1 | 5 | 13 | 15),
            _ => false,
        }
    }
}

/// A message that the scan is inside of.
#[derive(Clone, Copy)]
struct Frame {
    message: Message,
    start: usize,
    end: usize,
    /// Singular fields seen so far: one bit for each number.
    seen: u32,
}

/// The decoder refuses deeper nesting.
const MAX_NESTING: usize = 100;

/// Refuses a model file that is ambiguous, or whose decoding takes more memory than is left in the budget. Takes that
/// memory.
pub(crate) fn check_model(file: &[u8], files: &ModelFiles) -> Result<()> {
    // The faults of a model are kept too.
    files.budget.take(4 * files.limits.fault_bytes() as u64)?;
    let taken = files.budget.taken();
    let cost = check(Message::Model, file, taken, files.budget.allowed(), &files.limits)?;
    files.budget.take(cost - taken)
}

/// Refuses a file by its first bytes if they can't be those of a model, so that nothing else needs to be read.
pub(crate) fn check_head(head: &[u8], size: u64) -> Result<()> {
    let mut at = 0;
    while at < head.len() {
        let whole = usize::try_from(size).unwrap_or(usize::MAX);
        // A number may go on beyond the head.
        let (number, wire, len) = match header(head, &mut at, whole) {
            Ok(header) => header,
            Err(malformed) if malformed.what == CUT_SHORT && head.len() < whole => return Ok(()),
            // The graph, after fields that are well-formed: the rest of the file is missing.
            Err(malformed) if malformed.at > 0 && head.get(malformed.at) == Some(&GRAPH) => {
                return Err(Error::model(format!("the model file is cut short: of its graph {}", malformed.what)));
            }
            Err(_) => return Err(not_a_model(head)),
        };
        match Message::Model.field(number) {
            Some(Field::Number) if wire != 0 => return Err(not_a_model(head)),
            // Later versions of the format may have more fields.
            Some(Field::Number) | None => {}
            Some(_) if wire != 2 => return Err(not_a_model(head)),
            Some(_) => {}
        }
        at = at.saturating_add(len);
    }
    Ok(())
}

/// The head of the field `graph` of a model: number 7, wire type 2.
const GRAPH: u8 = 0x3a;

#[cold]
fn not_a_model(head: &[u8]) -> Error {
    let head = head.get(..8).unwrap_or(head);
    let text: String = head.iter().map(|&b| if b.is_ascii_graphic() { b as char } else { '.' }).collect();
    let bytes: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
    Error::model(format!("the file is not an ONNX model: it begins with the bytes {} ({text})", bytes.join(" ")))
}

/// As [`check_model`], of an encoded tensor, sequence, optional or map in memory.
pub(super) fn check_data(message: Message, file: &[u8], files: &ModelFiles) -> Result<()> {
    files.budget.allow_for(file.len() as u64);
    files.budget.take(file.len() as u64)?;
    if file.is_empty() && message == Message::Tensor {
        return Err(Error::model("there are no bytes: an encoded TensorProto is needed"));
    }
    let taken = files.budget.taken();
    let cost = check(message, file, taken, files.budget.allowed(), &files.limits).map_err(|error| {
        let is_model = error.kind() == Kind::Model && check(Message::Model, file, 0, u64::MAX, &files.limits).is_ok();
        let text = || format!("the bytes are an ONNX model: an encoded {} is needed", message.label());
        if is_model { Error::model(text()) } else { error }
    })?;
    files.budget.take(cost - taken)
}

/// Memory of a decoded function, which was checked as a part of its model.
pub(super) fn cost_of_function(function: &[u8]) -> Result<u64> {
    check(Message::Function, function, 0, u64::MAX, &Limits { nesting: usize::MAX, ..Limits::default() })
}

/// Upper bound on the memory of a decoded message, plus `taken`. Fails if the sum exceeds `allowed`.
fn check(message: Message, file: &[u8], taken: u64, allowed: u64, limits: &Limits) -> Result<u64> {
    // Memory until the model is loaded, and memory of the part being decoded: from the depth `turn` on.
    let mut kept = taken + message.size();
    let (mut passing, mut most, mut turn) = (0u64, 0u64, usize::MAX);
    let mut nodes = 0usize;
    let mut at = 0;
    let root = Frame { message, start: 0, end: file.len(), seen: 0 };
    let (mut frames, mut depth) = ([root; MAX_NESTING], 1usize);
    let bad = |malformed: Malformed| malformed.of(message);
    while let Some(frame) = depth.checked_sub(1).and_then(|top| frames.get_mut(top)) {
        if at >= frame.end {
            if depth == turn {
                (passing, turn) = (0, usize::MAX);
            }
            depth -= 1;
            continue;
        }
        let start = at;
        let (number, wire, len) = header(file, &mut at, frame.end).map_err(bad)?;
        let body = at;
        // The scan enters messages and skips anything else.
        at += len;
        let Some(field) = frame.message.field(number) else { continue };
        let repeated = match field {
            Field::Message(_, repeated) | Field::Name(repeated) | Field::Text(repeated) | Field::Slice(repeated) => {
                repeated
            }
            Field::Number | Field::Float => false,
            Field::Numbers(..) => true,
        };
        let fits = match field {
            Field::Number => wire == 0,
            Field::Float => wire == 5,
            Field::Numbers(_, Wire::Varint) => matches!(wire, 0 | 2),
            Field::Numbers(_, Wire::Fixed32) => matches!(wire, 5 | 2),
            Field::Numbers(_, Wire::Fixed64) => matches!(wire, 1 | 2),
            _ => wire == 2,
        };
        if !fits {
            let what = format!("{} has another type in field {number}", frame.message.label());
            return Err(bad(Malformed::new(start, what)));
        }
        if matches!(field, Field::Name(_) | Field::Text(_)) {
            let text = file.get(body..at).unwrap_or(&[]);
            let text =
                std::str::from_utf8(text).map_err(|e| Malformed::new(start, format!("a string is not UTF-8: {e}")));
            text.map_err(bad)?;
        }
        let bit = 1u32.checked_shl(frame.message.once(number)).unwrap_or(0);
        if !repeated && frame.seen & bit != 0 {
            return Err(given_twice(file, *frame, number, start));
        }
        // A list begins with room for four, and grows to up to twice what is in it.
        let growth = match (repeated, frame.seen & bit) {
            (false, _) => 1,
            (true, 0) => 4,
            _ => 2,
        };
        frame.seen |= bit;
        let outer = frame.message;
        // Of a part decoded on its own, only the objects built from it stay.
        let lasting = |cost: u64| if turn == usize::MAX { (cost, 0) } else { (0, cost) };
        let (stays, passes) = match field {
            Field::Message(inner, _) => {
                if inner == Message::Node {
                    nodes += 1;
                    if nodes > limits.nodes {
                        return Err(exceeded(
                            "nodes",
                            "the model has more than",
                            limits.nodes as u128,
                            "nodes",
                            limits.nodes as u64,
                        ));
                    }
                }
                if depth >= limits.nesting.min(MAX_NESTING) {
                    let deepest = limits.nesting.min(MAX_NESTING) as u64;
                    return Err(exceeded("nesting", "messages nest", depth as u128 + 1, "deep", deepest));
                }
                if let Some(next) = frames.get_mut(depth) {
                    *next = Frame { message: inner, start: body, end: body + len, seen: 0 };
                }
                depth += 1;
                at = body;
                if outer.takes_turns(number, depth - 1) {
                    turn = depth;
                    (2 * size_of::<bytes::Bytes>() as u64, inner.size())
                } else {
                    lasting(growth * inner.size() + 2 * ALLOCATION)
                }
            }
            Field::Name(_) => {
                if len > limits.name_bytes {
                    return Err(exceeded("name_bytes", "a name has", len as u128, "bytes", limits.name_bytes as u64));
                }
                let len = len as u64;
                let (stays, passes) =
                    lasting(if repeated { growth * size_of::<String>() as u64 } else { 0 } + len + ALLOCATION);
                // A fault of a node names it, its operator and the value.
                (stays, passes + if outer == Message::Node { 4 * len } else { 0 })
            }
            Field::Text(_) => lasting(len as u64 + ALLOCATION),
            Field::Slice(true) => lasting(growth * size_of::<bytes::Bytes>() as u64),
            Field::Slice(false) => (0, 0),
            Field::Number | Field::Float => (0, 0),
            Field::Numbers(size, kind) => {
                let count = match (wire, kind) {
                    (2, Wire::Varint) => file.get(body..at).map_or(0, count_varints),
                    (2, Wire::Fixed32) => len as u64 / 4,
                    (2, Wire::Fixed64) => len as u64 / 8,
                    _ => 1,
                };
                // Lists of numbers move into tensors and attributes. One that isn't packed is a field for each number.
                (2 * size * count + if growth == 4 { ALLOCATION } else { 0 }, 0)
            }
        };
        kept += stays;
        passing += passes;
        most = most.max(kept + passing);
        let cost = kept + passing;
        if cost > allowed {
            let what = format!("decoding the first {at} of {} bytes would take", file.len());
            return Err(exceeded("load_bytes", &what, cost.into(), "bytes", allowed));
        }
    }
    Ok(most.max(kept))
}

/// Reads a field's number and wire type. Returns them and the length of the content, which ends within `end`.
fn header(file: &[u8], at: &mut usize, end: usize) -> Result<(u32, u8, usize), Malformed> {
    let start = *at;
    let tag = varint(file, at, end)?;
    let wire = (tag & 7) as u8;
    let number = u32::try_from(tag >> 3).ok().filter(|n| (1..1 << 29).contains(n));
    let number = number.ok_or_else(|| Malformed::new(start, "a field has no number"))?;
    let len = match wire {
        0 => {
            let mut next = *at;
            varint(file, &mut next, end)?;
            (next - *at) as u64
        }
        1 => 8,
        5 => 4,
        2 => varint(file, at, end)?,
        3 | 4 => return Err(Malformed::new(start, "a group, which ONNX doesn't have")),
        wire => return Err(Malformed::new(start, format!("wire type {wire}, which doesn't exist"))),
    };
    match usize::try_from(len) {
        Ok(len) if len <= end - *at => Ok((number, wire, len)),
        _ => Err(Malformed::new(start, format!("{len} bytes follow, and {} are left", end - *at))),
    }
}

/// The number, the wire type and the length of a field of a message, whose content begins at `at` then; `None` if it is
/// malformed.
pub(crate) fn field_at(message: &[u8], at: &mut usize) -> Option<(u32, u8, usize)> {
    header(message, at, message.len()).ok()
}

fn varint(file: &[u8], at: &mut usize, end: usize) -> Result<u64, Malformed> {
    let start = *at;
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = file.get(*at).filter(|_| *at < end).ok_or_else(|| Malformed::new(start, CUT_SHORT))?;
        *at += 1;
        // The tenth byte has one bit.
        if shift == 63 && *byte > 1 {
            break;
        }
        value |= u64::from(byte & 127) << shift;
        if *byte < 128 {
            return Ok(value);
        }
    }
    Err(Malformed::new(start, "a number has more than 64 bits"))
}

/// The numbers in packed bytes: each ends with a byte below 128.
fn count_varints(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte < 128)).sum()
}

const CUT_SHORT: &str = "a number is cut short";

/// Bytes that are not a valid protobuf message, or not the expected one.
struct Malformed {
    at: usize,
    what: Cow<'static, str>,
}

impl Malformed {
    #[cold]
    fn new(at: usize, what: impl Into<Cow<'static, str>>) -> Malformed {
        Malformed { at, what: what.into() }
    }

    /// The error for bytes that should be a message.
    #[cold]
    fn of(self, message: Message) -> Error {
        let Malformed { at, what } = self;
        let text = match message {
            Message::Model => "the file is not an ONNX model, or is cut short".to_string(),
            other => format!("the bytes are not an encoded {}, or are cut short", other.label()),
        };
        Error::model(format!("{text}: at byte {at}: {what}")).at(|place| place.value = Some(at as i128))
    }
}

/// The error for a field given twice, with both places.
#[cold]
fn given_twice(file: &[u8], frame: Frame, number: u32, second: usize) -> Error {
    let mut at = frame.start;
    let mut first = at;
    while at < second {
        first = at;
        match header(file, &mut at, frame.end) {
            Ok((other, _, len)) => {
                at += len;
                if frame.message.once(other) == frame.message.once(number) {
                    break;
                }
            }
            Err(malformed) => return malformed.of(frame.message),
        }
    }
    let label = frame.message.label();
    Error::model(format!(
        "{label} has field {number} twice, at byte {first} and at byte {second}: it may be there once"
    ))
    .at(|place| place.value = Some(second as i128))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::proto as p;
    use prost::Message as _;

    fn scan(file: &[u8]) -> Result<()> {
        scan_with(file, Limits::default())
    }

    fn scan_with(file: &[u8], limits: Limits) -> Result<()> {
        let files = ModelFiles::new(None, Default::default(), limits);
        files.budget.allow_for(file.len() as u64);
        check_model(file, &files)
    }

    fn field(number: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut bytes);
        prost::encoding::encode_varint(body.len() as u64, &mut bytes);
        bytes.extend(body);
        bytes
    }

    /// `file` inside of field after field, the last one outermost.
    fn within(numbers: &[u32], file: Vec<u8>) -> Vec<u8> {
        numbers.iter().fold(file, |file, &number| field(number, &file))
    }

    #[test]
    #[cfg_attr(miri, ignore = "too large")]
    fn bombs_are_refused() {
        let megabytes = |unit: Vec<u8>| unit.repeat(12_000_000 / unit.len());
        // Empty attributes of a node, nodes, initializers, inputs, dimensions, opsets, functions, strings.
        for bomb in [
            within(&[1, 7], megabytes(field(5, &[]))),
            within(&[7], megabytes(field(1, &[]))),
            within(&[7], megabytes(field(5, &[]))),
            within(&[7], megabytes(field(11, &[]))),
            within(&[2, 1, 2, 11, 7], megabytes(field(1, &[]))),
            megabytes(field(8, &[])),
            megabytes(field(25, &[])),
            within(&[5, 7], megabytes(field(6, &[]))),
            within(&[1, 7], megabytes(field(1, &[]))),
            megabytes(field(26, &[])),
        ] {
            let error = scan(&bomb).unwrap_err();
            assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("load_bytes")), "{error}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too large")]
    fn numbers_are_billed_by_what_they_become() {
        let tensor = |count: usize| within(&[7, 5, 7], vec![1; count]);
        assert!(scan(&tensor(4_000_000)).is_ok());
        assert_eq!(scan(&tensor(8_000_000)).unwrap_err().kind(), Kind::Limit);
        // Raw data costs nothing.
        assert!(scan(&within(&[9, 5, 7], vec![1; 100_000_000])).is_ok());
        assert!(scan(&within(&[4, 5, 7], vec![1; 100_000_000])).is_ok());
    }

    #[test]
    fn nesting_is_bounded() {
        // Graphs in attributes of nodes in graphs.
        let deep = |levels: usize| (0..levels).fold(Vec::new(), |file, _| within(&[6, 5, 1], file));
        assert!(scan(&field(7, &deep(32))).is_ok());
        let error = scan(&field(7, &deep(33))).unwrap_err();
        assert_eq!(error.place().limit, Some("nesting"), "{error}");
        let limits = Limits { nesting: usize::MAX, ..Limits::default() };
        assert_eq!(scan_with(&field(7, &deep(40)), limits).unwrap_err().kind(), Kind::Limit);
    }

    #[test]
    fn a_field_that_is_there_once() {
        let model = p::ModelProto { ir_version: Some(8), graph: Some(p::GraphProto::default()), ..Default::default() };
        let mut twice = model.encode_to_vec();
        assert!(scan(&twice).is_ok());
        twice.extend(model.encode_to_vec());
        let text = scan(&twice).unwrap_err().to_string();
        assert_eq!(text, "ModelProto has field 1 twice, at byte 0 and at byte 4: it may be there once");
        let types = [field(1, &[]), field(4, &[])].concat();
        let text = scan(&within(&[2, 11, 7], types)).unwrap_err().to_string();
        assert_eq!(text, "TypeProto has field 4 twice, at byte 6 and at byte 8: it may be there once");
    }

    #[test]
    fn the_head_of_a_file() {
        let good = |head: &[u8], size| check_head(head, size).is_ok();
        for other in [&b"GGUF\x03\0\0\0"[..], b"PK\x03\x04", b"\x93NUMPY\x01", b"\x7fELF", b"{\"a\": 1}"] {
            assert!(!good(other, 1 << 30), "{other:?}");
        }
        // Fields that are not known, with numbers of any size.
        assert!(good(&[0x08, 8, 0xa0, 0x1f, 7, 0xb5, 0x1f, 0, 0, 0, 0], 1 << 20));
        assert!(good(&[0xfa, 0xff, 0xff, 0xff, 0x0f, 1, 0, 0x08, 8], 9));
        // The graph begins after the head, and a number ends after it.
        assert!(good(&[0x08, 8, 0x3a, 0xff, 0xff, 0x03], 1 << 20));
        assert!(good(&[0x08, 0x88], 1 << 20) && !good(&[0x08, 0x88], 2));
        assert!(!good(&[0x3a, 0xff, 0xff, 0x03], 100));
        let cut = check_head(&[0x08, 8, 0x3a, 0xff, 0xff, 0x03], 100).unwrap_err().to_string();
        assert_eq!(cut, "the model file is cut short: of its graph 65535 bytes follow, and 94 are left");
        let error = check_head(b"GGUF\x03\0\0\0\x01", 1 << 30).unwrap_err().to_string();
        assert_eq!(error, "the file is not an ONNX model: it begins with the bytes 47 47 55 46 03 00 00 00 (GGUF....)");
    }

    #[test]
    fn malformed_bytes() {
        let error = |bytes: &[u8]| scan(bytes).unwrap_err().to_string();
        assert!(error(&[0x3a, 5, 1]).ends_with("at byte 0: 5 bytes follow, and 1 are left"));
        assert!(error(&[0x08]).ends_with("at byte 1: a number is cut short"));
        assert!(error(&[0x3b]).ends_with("at byte 0: a group, which ONNX doesn't have"));
        assert!(error(&[0x00]).ends_with("at byte 0: a field has no number"));
        assert!(error(&[0x0f]).ends_with("at byte 0: wire type 7, which doesn't exist"));
        assert!(error(&[0xff; 11]).ends_with("at byte 0: a number has more than 64 bits"));
        // A field inside may not reach beyond its message.
        assert!(error(&[0x3a, 2, 0x0a, 1, 0]).ends_with("at byte 2: 1 bytes follow, and 0 are left"));
    }

    #[test]
    fn names_and_nodes_have_limits() {
        let error = scan(&within(&[3, 1, 7], vec![b'a'; (64 << 10) + 1])).unwrap_err();
        assert_eq!(error.place().limit, Some("name_bytes"));
        let limits = Limits { nodes: 2, ..Limits::default() };
        let nodes = |n: usize| field(7, &field(1, &[]).repeat(n));
        assert!(scan_with(&nodes(2), limits.clone()).is_ok());
        assert_eq!(scan_with(&nodes(3), limits).unwrap_err().place().limit, Some("nodes"));
    }
}
