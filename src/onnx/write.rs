//! Writes values as messages, piece by piece: no message is built in memory first.

use super::proto::sequence_proto::DataType;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, pack, packed_size};
use crate::value::{Map, Optional, Sequence, Value, ValueType};
use smallvec::SmallVec;
use std::io::{self, Write};

/// Maximum size of a message: protobuf counts its bytes as int32.
pub(crate) const MAX_MESSAGE: u64 = i32::MAX as u64;

/// Number of elements that are packed at a time, which are whole bytes.
const PACKED: usize = 1 << 16;

impl Value {
    /// The value as an encoded message with a name: see [`Value::from_proto_bytes`].
    ///
    /// This takes the memory of the whole message, which may be far more than the value's: strings, and the tensors of a
    /// sequence, may share memory, but the message has each of them in full. [`Value::write_proto`] takes none.
    /// Other programs can't read messages of 2 GiB and more.
    pub fn to_proto_bytes(&self, name: &str) -> Vec<u8> {
        encoded(|sink| value(self, name, sink))
    }

    /// Writes the value as an encoded message with a name, piece by piece: see [`Value::from_proto_bytes`]. Pieces may be
    /// small, so `to` should have a buffer. The size is counted first; of a large message `to` is flushed now and then
    /// while that takes, so that a writer which has to stop can do so.
    ///
    /// # Errors
    /// If the message would have 2 GiB or more, which protobuf doesn't allow; nothing is written then. If `to` fails:
    /// its error is the [source](std::error::Error::source).
    ///
    /// ```
    /// use onnxref::{Tensor, Value};
    ///
    /// let value = Value::from(Tensor::from(vec![1.5f32, 2.0]));
    /// let mut bytes = Vec::new();
    /// value.write_proto("x", &mut bytes)?;
    /// assert_eq!(bytes, value.to_proto_bytes("x"));
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn write_proto(&self, name: &str, to: impl Write) -> Result<()> {
        write(to, false, |sink| value(self, name, sink))
    }

    /// As [`Value::write_proto`], with each NaN written as one: quiet, positive, without a payload. Which NaN an operation
    /// gives is the processor's choice, all else is the same everywhere; so is a hash of these bytes.
    ///
    /// # Errors
    /// As [`Value::write_proto`].
    ///
    /// ```
    /// use onnxref::Value;
    ///
    /// let bytes = |number: f32| {
    ///     let mut bytes = Vec::new();
    ///     Value::from(vec![number]).write_canonical("x", &mut bytes).map(|()| bytes)
    /// };
    /// assert_eq!(bytes(f32::NAN)?, bytes(-f32::NAN)?);
    /// assert_ne!(bytes(0.0)?, bytes(-0.0)?);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn write_canonical(&self, name: &str, to: impl Write) -> Result<()> {
        write(to, true, |sink| value(self, name, sink))
    }
}

impl Tensor {
    /// The tensor as an encoded `TensorProto` with a name: raw data, or `string_data` for strings. This takes the memory
    /// of the whole message: see [`Value::to_proto_bytes`].
    pub fn to_proto_bytes(&self, name: &str) -> Vec<u8> {
        encoded(|sink| tensor(self, name, sink))
    }

    /// Writes the tensor as an encoded `TensorProto` with a name, piece by piece: see [`Value::write_proto`].
    ///
    /// # Errors
    /// As [`Value::write_proto`].
    pub fn write_proto(&self, name: &str, to: impl Write) -> Result<()> {
        write(to, false, |sink| tensor(self, name, sink))
    }
}

fn encoded(message: impl Fn(&mut Sink<'_>) -> Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Neither counting nor writing to memory fails.
    if let Ok(size) = size(&mut io::sink(), u64::MAX, &message) {
        bytes.reserve_exact(usize::try_from(size).unwrap_or(usize::MAX));
        let _ = message(&mut Sink { to: &mut bytes, size: None, one_nan: false });
    }
    bytes
}

fn write(mut to: impl Write, one_nan: bool, message: impl Fn(&mut Sink<'_>) -> Result<()>) -> Result<()> {
    size(&mut to, MAX_MESSAGE, &message)?;
    message(&mut Sink { to: &mut to, size: None, one_nan })
}

/// The size of a message, which may be `most`.
fn size(to: &mut dyn Write, most: u64, message: impl Fn(&mut Sink<'_>) -> Result<()>) -> Result<u64> {
    let mut sink = Sink { to, size: Some(Size { most, ..Size::default() }), one_nan: false };
    message(&mut sink)?;
    Ok(sink.size.map_or(0, |size| size.bytes))
}

/// Where a message goes. A message within another comes after its size, so messages are counted before they are written.
struct Sink<'a> {
    to: &'a mut dyn Write,
    /// What was counted; `None` while the message is written.
    size: Option<Size>,
    /// Each NaN is written as one.
    one_nan: bool,
}

#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    most: u64,
    /// The number of parts that were counted.
    parts: u32,
}

/// Parts that are counted between two flushes, which tell the writer's error early.
const BETWEEN_FLUSHES: u32 = 1 << 16;

/// A number of as few bytes as it needs.
pub(crate) fn varint(mut number: u64) -> SmallVec<[u8; 10]> {
    let mut bytes = SmallVec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

impl Sink<'_> {
    /// Bytes without a key.
    fn raw(&mut self, len: u64, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let failed = |error| Error::io("the message can't be written", error);
        let Some(size) = &mut self.size else { return content(self.to).map_err(failed) };
        size.bytes = size.bytes.saturating_add(len);
        if size.bytes > size.most {
            return Err(Error::input(format!("it takes more than {} bytes, which protobuf can't hold", size.most)));
        }
        size.parts = size.parts.wrapping_add(1);
        if size.parts.is_multiple_of(BETWEEN_FLUSHES) { self.to.flush().map_err(failed) } else { Ok(()) }
    }

    fn varint(&mut self, number: u64) -> Result<()> {
        let bytes = varint(number);
        self.raw(bytes.len() as u64, |to| to.write_all(&bytes))
    }

    fn number(&mut self, field: u64, number: u64) -> Result<()> {
        self.varint(field << 3)?;
        self.varint(number)
    }

    /// The key and the size of a field.
    fn head(&mut self, field: u64, len: u64) -> Result<()> {
        self.varint(field << 3 | 2)?;
        self.varint(len)
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> Result<()> {
        self.head(field, bytes.len() as u64)?;
        self.raw(bytes.len() as u64, |to| to.write_all(bytes))
    }

    fn message(&mut self, field: u64, message: impl Fn(&mut Sink<'_>) -> Result<()>) -> Result<()> {
        let most = self.size.map_or(u64::MAX, |size| size.most);
        let len = size(self.to, most, &message)?;
        self.head(field, len)?;
        if self.size.is_some() { self.raw(len, |_| Ok(())) } else { message(self) }
    }
}

fn value(value: &Value, name: &str, sink: &mut Sink<'_>) -> Result<()> {
    match value {
        Value::Tensor(value) => tensor(value, name, sink),
        Value::Sequence(value) => sequence(value, name, sink),
        Value::Optional(value) => optional(value, name, sink),
        Value::Map(value) => map(value, name, sink),
    }
}

/// `TensorProto`
fn tensor(tensor: &Tensor, name: &str, sink: &mut Sink<'_>) -> Result<()> {
    for &dim in tensor.shape() {
        sink.number(1, dim as u64)?;
    }
    sink.number(2, u64::from(tensor.dtype().code().cast_unsigned()))?;
    if let Ok(mut strings) = tensor.strings() {
        strings.try_for_each(|string| sink.bytes(6, string.as_bytes()))?;
        return sink.bytes(8, name.as_bytes());
    }
    sink.bytes(8, name.as_bytes())?;
    let (dtype, elements) = (tensor.dtype(), tensor.bytes());
    if sink.one_nan && dtype.bits() >= 8 {
        sink.head(9, elements.len() as u64)?;
        return sink.raw(elements.len() as u64, |to| {
            elements.chunks(PACKED).try_for_each(|some| to.write_all(&with_one_nan(dtype, some)))
        });
    }
    if dtype.bits() >= 8 {
        return sink.bytes(9, elements);
    }
    let len = packed_size(dtype, elements.len());
    sink.head(9, len)?;
    sink.raw(len, |to| elements.chunks(PACKED).try_for_each(|some| to.write_all(&pack(dtype, some))))
}

/// Elements whose NaN are one.
fn with_one_nan(dtype: DType, elements: &[u8]) -> Vec<u8> {
    let mut bytes = elements.to_vec();
    // The size of a number, the greatest magnitude that is none, and what stands for all others.
    let (size, greatest, nan) = match dtype {
        DType::Double | DType::Complex128 => (8, 0x7ff0 << 48, 0x7ff8 << 48),
        DType::Float | DType::Complex64 => (4, 0x7f80 << 16, 0x7fc0 << 16),
        DType::Float16 => (2, 0x7c00, 0x7e00),
        DType::Bfloat16 => (2, 0x7f80, 0x7fc0),
        DType::Float8e5m2 => (1, 0x7c, 0x7e),
        DType::Float8e4m3fn => (1, 0x7e, 0x7f),
        // There is one NaN or none.
        _ => return bytes,
    };
    for number in bytes.chunks_exact_mut(size) {
        let bits = number.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        if bits & !(1 << (8 * size - 1)) > greatest {
            number.iter_mut().zip(u64::to_le_bytes(nan)).for_each(|(byte, of_nan)| *byte = of_nan);
        }
    }
    bytes
}

/// `SequenceProto`
fn sequence(sequence: &Sequence, name: &str, sink: &mut Sink<'_>) -> Result<()> {
    sink.bytes(1, name.as_bytes())?;
    sink.number(2, kind_of(sequence.element_type()))?;
    sequence.values().iter().try_for_each(|value| inner(value, sink))
}

/// `OptionalProto`
fn optional(optional: &Optional, name: &str, sink: &mut Sink<'_>) -> Result<()> {
    sink.bytes(1, name.as_bytes())?;
    sink.number(2, kind_of(optional.element_type()))?;
    optional.get().map_or(Ok(()), |value| inner(value, sink))
}

/// `MapProto`
fn map(map: &Map, name: &str, sink: &mut Sink<'_>) -> Result<()> {
    let keys: &Tensor = map.keys();
    sink.bytes(1, name.as_bytes())?;
    sink.number(2, u64::from(keys.dtype().code().cast_unsigned()))?;
    match keys.strings() {
        Ok(mut strings) => strings.try_for_each(|string| sink.bytes(4, string.as_bytes()))?,
        Err(_) => keys.scalars().try_for_each(|key| sink.number(3, key.integer().cast_unsigned()))?,
    }
    sink.message(5, |sink| sequence(map.as_sequence(), "", sink))
}

/// A value in a sequence or an optional: each kind has a field of its own, with the same number in both.
fn inner(inner: &Value, sink: &mut Sink<'_>) -> Result<()> {
    let field = match inner {
        Value::Tensor(_) => 3,
        Value::Sequence(_) => 5,
        Value::Map(_) => 6,
        Value::Optional(_) => 7,
    };
    sink.message(field, |sink| value(inner, "", sink))
}

/// The number of a kind of element, the same in sequences and optionals.
fn kind_of(element: Option<&ValueType>) -> u64 {
    let kind = match element {
        None => DataType::Undefined,
        Some(ValueType::Tensor(_)) => DataType::Tensor,
        Some(ValueType::Sequence(_)) => DataType::Sequence,
        Some(ValueType::Map(..)) => DataType::Map,
        Some(ValueType::Optional(_)) => DataType::Optional,
    };
    kind as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::proto::{MapProto, OptionalProto, SequenceProto, TensorProto};
    use prost::Message;

    /// That prost writes what it reads with the same bytes.
    #[track_caller]
    fn same<M: Message + Default + std::fmt::Debug>(value: impl Into<Value>) {
        let bytes = value.into().to_proto_bytes("näme");
        let message = M::decode(bytes.as_slice()).unwrap();
        assert_eq!(message.encode_to_vec(), bytes, "{message:?}");
        assert!(bytes.len() > 8);
    }

    #[test]
    fn messages_are_those_of_prost() {
        let floats = Tensor::from_elements(&[2, 0, 300], Vec::<f32>::new()).unwrap();
        let strings = Tensor::from_strings(&[3], ["", "é", &"long".repeat(100)]).unwrap();
        let packed = Tensor::new(DType::Int4, &[PACKED + 3], vec![7; PACKED + 3]).unwrap();
        for tensor in [&floats, &strings, &packed] {
            same::<TensorProto>(tensor.clone());
            assert_eq!(&Tensor::from_proto_bytes(tensor.to_proto_bytes("")).unwrap(), tensor);
        }
        let list = Sequence::new(DType::String.into(), [strings.clone().into(), strings.clone().into()]).unwrap();
        let lists = Sequence::new(ValueType::from(DType::String).sequence(), [list.clone().into()]).unwrap();
        same::<SequenceProto>(lists.clone());
        same::<OptionalProto>(Optional::some(lists.into()));
        same::<OptionalProto>(Optional::none(DType::Float.into()));
        same::<MapProto>(Map::new(vec![i64::MIN, 300].into(), list.clone()).unwrap());
        let keys = Tensor::from_strings(&[2], ["a", "b"]).unwrap();
        same::<SequenceProto>(
            Sequence::new(
                ValueType::Map(DType::String, Box::new(DType::String.into())),
                [Map::new(keys, list).unwrap().into()],
            )
            .unwrap(),
        );
    }

    /// Of each code of one or two bytes, and of longer numbers around infinity.
    #[test]
    fn each_nan_is_one() {
        let mut codes = 0;
        for dtype in DType::all().filter(|dtype| dtype.bits() >= 8) {
            let bytes: Vec<u8> = match dtype.size() {
                1 => (0..=255).collect(),
                2 => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
                4 => [0x7f80_0000u32, 0x7f80_0001, 0xffc0_0000, 0xff80_0000]
                    .into_iter()
                    .flat_map(u32::to_le_bytes)
                    .collect(),
                _ => [0x7ff0_0000_0000_0000u64, !0, 0x7fc0_0000_ff80_0001, 3]
                    .into_iter()
                    .flat_map(u64::to_le_bytes)
                    .collect(),
            };
            let Ok(tensor) = Tensor::new(dtype, &[bytes.len() / dtype.size()], bytes) else { continue };
            let mut message = Vec::new();
            Value::from(tensor.clone()).write_canonical("x", &mut message).unwrap();
            let written = Tensor::from_proto_bytes(message).unwrap();
            let mut nan = None;
            for ((was, is), bytes) in tensor.scalars().zip(written.scalars()).zip(written.bytes().chunks(dtype.size()))
            {
                let (was, is) = (was.to_string(), is.to_string());
                assert_eq!(was, is, "{dtype}");
                if is == "NaN" {
                    assert_eq!(*nan.get_or_insert(bytes), bytes, "{dtype}");
                    codes += 1;
                }
            }
        }
        assert!(codes > 2300, "{codes}");
    }

    #[test]
    fn a_message_has_less_than_2_gib() {
        // Strings share one text, and tensors share elements.
        let long = Tensor::from_strings(&[1], ["x".repeat(1 << 20)]).unwrap();
        let some = Sequence::new(DType::String.into(), vec![Value::from(long); 1 << 11]).unwrap();
        let mut out = Vec::new();
        let error = Value::from(some).write_proto("x", &mut out).unwrap_err();
        assert_eq!(error.kind(), crate::Kind::Input);
        assert_eq!(error.to_string(), "it takes more than 2147483647 bytes, which protobuf can't hold");
        assert!(out.is_empty());
    }

    fn source(error: &Error) -> Option<io::ErrorKind> {
        let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
        source.map(io::Error::kind)
    }

    #[test]
    fn the_error_of_a_writer_is_the_source() {
        let mut room = [0; 20];
        let error = Tensor::from(vec![1i64, 2]).write_proto("x", &mut room[..]).unwrap_err();
        assert_eq!((error.kind(), source(&error)), (crate::Kind::Io, Some(io::ErrorKind::WriteZero)));
    }

    #[test]
    fn a_writer_stops_the_counting_of_a_large_message() {
        struct Late;
        impl Write for Late {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                panic!("nothing is written before it is counted");
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::TimedOut.into())
            }
        }
        let many = Tensor::from_strings(&[1 << 16], vec![""; 1 << 16]).unwrap();
        let error = many.write_proto("x", Late).unwrap_err();
        assert_eq!(source(&error), Some(io::ErrorKind::TimedOut));
        let list = Value::from(Sequence::new(DType::String.into(), [many.into()]).unwrap());
        assert_eq!(source(&list.write_proto("x", Late).unwrap_err()), Some(io::ErrorKind::TimedOut));
    }
}
