//! Writes the wire format by hand, from the format's definition of every message.

use std::collections::{BTreeMap, VecDeque};

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push((value & 127) as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub(crate) fn key(number: u32, wire: u8) -> Vec<u8> {
    varint(u64::from(number) << 3 | u64::from(wire))
}

/// A field that is a number.
pub(crate) fn number(number: u32, value: u64) -> Vec<u8> {
    [key(number, 0), varint(value)].concat()
}

/// A field of bytes: text, a message, packed numbers.
pub(crate) fn field(number: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = [key(number, 2), varint(body.len() as u64)].concat();
    bytes.extend(body);
    bytes
}

/// `body` inside of the messages at `path`, the outermost first; it is at the end of what comes out.
pub(crate) fn within(path: &[u32], body: &[u8]) -> Vec<u8> {
    let cycles = path.iter().rev();
    let mut reversed: Vec<u8> = body.iter().rev().copied().collect();
    for &number in cycles {
        let head = [key(number, 2), varint(reversed.len() as u64)].concat();
        reversed.extend(head.iter().rev());
    }
    reversed.reverse();
    reversed
}

/// What is in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holds {
    Message(String),
    Text,
    Bytes,
    Varint,
    Fixed32,
    Fixed64,
}

/// A field of a message that can be in a model.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) message: String,
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) repeated: bool,
    pub(crate) holds: Holds,
    /// Fields of one choice exclude each other.
    pub(crate) choice: Option<i32>,
}

impl Field {
    /// The wire types that the field is written with.
    pub(crate) fn wires(&self) -> Vec<u8> {
        let one = match self.holds {
            Holds::Message(_) | Holds::Text | Holds::Bytes => return vec![2],
            Holds::Varint => 0,
            Holds::Fixed32 => 5,
            Holds::Fixed64 => 1,
        };
        if self.repeated { vec![one, 2] } else { vec![one] }
    }

    /// The field, with the least in it.
    pub(crate) fn least(&self) -> Vec<u8> {
        self.as_wire(self.wires()[0])
    }

    /// The field as something of a wire type.
    pub(crate) fn as_wire(&self, wire: u8) -> Vec<u8> {
        let body: &[u8] = match wire {
            0 | 2 => &[0],
            1 => &[0; 8],
            _ => &[0; 4],
        };
        [key(self.number, wire), body.to_vec()].concat()
    }

    pub(crate) fn label(&self) -> String {
        format!("{}.{}", self.message, self.name)
    }
}

/// The fields of all messages that can be in a model, and a shortest way to each message.
pub(crate) struct Format {
    pub(crate) fields: Vec<Field>,
    pub(crate) paths: BTreeMap<String, Vec<u32>>,
}

impl Format {
    /// As `proto/onnx.proto` defines it.
    pub(crate) fn read() -> Format {
        let set = protox::compile(["proto/onnx.proto"], ["proto"]).unwrap();
        let package = format!(".{}.", set.file[0].package());
        let mut open: Vec<(String, _)> =
            set.file[0].message_type.iter().map(|message| (message.name().to_string(), message)).collect();
        let mut all = Vec::new();
        while let Some((name, message)) = open.pop() {
            open.extend(message.nested_type.iter().map(|inner| (format!("{name}.{}", inner.name()), inner)));
            for field in &message.field {
                let holds = match field.r#type.unwrap() {
                    11 => Holds::Message(field.type_name().strip_prefix(&package).unwrap().to_string()),
                    9 => Holds::Text,
                    12 => Holds::Bytes,
                    1 => Holds::Fixed64,
                    2 => Holds::Fixed32,
                    3 | 4 | 5 | 14 => Holds::Varint,
                    other => panic!("a type {other} that is not known here"),
                };
                let number = u32::try_from(field.number()).unwrap();
                let (message, name, repeated) = (name.clone(), field.name().to_string(), field.label == Some(3));
                all.push(Field { message, name, number, repeated, holds, choice: field.oneof_index });
            }
        }
        let mut paths = BTreeMap::from([("ModelProto".to_string(), vec![])]);
        let mut open = VecDeque::from(["ModelProto".to_string()]);
        while let Some(message) = open.pop_front() {
            let path = paths[&message].clone();
            for field in all.iter().filter(|field| field.message == message) {
                if let Holds::Message(inner) = &field.holds
                    && !paths.contains_key(inner)
                {
                    paths.insert(inner.clone(), [path.clone(), vec![field.number]].concat());
                    open.push_back(inner.clone());
                }
            }
        }
        let mut fields: Vec<Field> = all.into_iter().filter(|field| paths.contains_key(&field.message)).collect();
        fields.sort_by_key(|field| (field.message.clone(), field.number));
        Format { fields, paths }
    }

    /// `body` as the only content of a message of a kind, in a model.
    pub(crate) fn within(&self, message: &str, body: &[u8]) -> Vec<u8> {
        within(&self.paths[message], body)
    }
}
