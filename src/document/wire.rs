//! Reads and writes the fields of messages.

use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::onnx::{self, MAX_MESSAGE};
use crate::tensor::release;
use bytes::Bytes;
use std::io::{self, Write};
use std::ops::Range;

/// Maximum nesting of messages, as when a model is loaded.
const MAX_NESTING: usize = 100;

/// Bytes that are written at once.
const PIECE: usize = 4 << 20;

/// Overhead of one allocation.
const ALLOCATION: u64 = 16;

/// A message: its fields, and those that are not known here.
pub(super) trait Message: Default {
    /// Reads a field. Returns whether it is known.
    fn read(&mut self, field: &Field<'_>) -> Result<bool>;

    /// Fields that are not known.
    fn other(&mut self) -> &mut super::Fields;

    /// Called after the last field.
    fn finish(&mut self) {}

    fn write(&self, to: &mut Writer<'_>) -> Result<()>;
}

/// Reads a message whose bytes the scan of a model has accepted.
pub(super) fn read<M: Message>(bytes: &Bytes, budget: &Budget) -> Result<M> {
    let mut message = M::default();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let Some((number, wire, len)) = onnx::field_at(bytes, &mut at) else {
            return Err(Error::model(format!("a message is malformed at its byte {start}")));
        };
        let content = at..at + len;
        at = content.end;
        let field = Field { number, wire, message: bytes, content, budget };
        if !message.read(&field)? {
            budget.take(2 * size_of::<(u32, Bytes)>() as u64)?;
            message.other().push(number, bytes.slice(start..at));
        }
    }
    message.finish();
    Ok(message)
}

/// A field of a message that is read.
pub(super) struct Field<'a> {
    pub(super) number: u32,
    wire: u8,
    message: &'a Bytes,
    content: Range<usize>,
    budget: &'a Budget,
}

impl Field<'_> {
    /// The bytes of a message, a text or packed numbers.
    pub(super) fn bytes(&self) -> Bytes {
        self.message.slice(self.content.clone())
    }

    fn slice(&self) -> &[u8] {
        self.message.get(self.content.clone()).unwrap_or(&[])
    }

    pub(super) fn text(&self) -> Result<String> {
        self.budget.take(self.content.len() as u64 + ALLOCATION)?;
        let text = std::str::from_utf8(self.slice());
        text.map(str::to_string).map_err(|e| Error::model(format!("a string is not UTF-8: {e}")))
    }

    pub(super) fn number(&self) -> u64 {
        varint(self.slice(), &mut 0)
    }

    pub(super) fn float(&self) -> f32 {
        f32::from_le_bytes(self.slice().try_into().unwrap_or_default())
    }

    /// Adds numbers, packed or not.
    pub(super) fn numbers(&self, list: &mut Vec<i64>) -> Result<()> {
        if self.wire == 0 {
            self.grow::<i64>(1)?;
            list.push(self.number().cast_signed());
            return Ok(());
        }
        let (bytes, mut at) = (self.slice(), 0);
        self.grow::<i64>(bytes.iter().filter(|byte| **byte < 128).count())?;
        while at < bytes.len() {
            list.push(varint(bytes, &mut at).cast_signed());
        }
        Ok(())
    }

    /// Adds floats, packed or not.
    pub(super) fn floats(&self, list: &mut Vec<f32>) -> Result<()> {
        self.grow::<f32>(self.content.len() / 4)?;
        let floats = self.slice().chunks_exact(4);
        list.extend(floats.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap_or_default())));
        Ok(())
    }

    /// Pays for elements of a list.
    pub(super) fn grow<T>(&self, count: usize) -> Result<()> {
        self.budget.take(2 * (count * size_of::<T>()) as u64)
    }

    /// The message that is the field.
    pub(super) fn message<M: Message>(&self) -> Result<super::Part<M>> {
        self.grow::<super::Part<M>>(1)?;
        let bytes = self.bytes();
        Ok(super::Part::read(read(&bytes, self.budget)?, bytes))
    }
}

fn varint(bytes: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    for (byte, shift) in bytes.iter().skip(*at).zip((0..64).step_by(7)) {
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        if *byte < 128 {
            break;
        }
    }
    value
}

/// Writes a message, after its parts were counted: a message within another comes after its size.
pub(super) struct Writer<'a> {
    /// `None` while sizes are counted.
    to: Option<&'a mut dyn Write>,
    /// The sizes of messages in the order in which they begin.
    sizes: Vec<u64>,
    /// The number of messages that began.
    begun: usize,
    /// Bytes so far.
    bytes: u64,
    depth: usize,
}

/// Writes a whole message.
pub(super) fn write(message: &impl Message, to: &mut dyn Write) -> Result<()> {
    let mut counter = Writer { to: None, sizes: Vec::new(), begun: 0, bytes: 0, depth: 0 };
    message.write(&mut counter)?;
    message.write(&mut Writer { to: Some(to), begun: 0, bytes: 0, ..counter })
}

/// The size of a message.
pub(super) fn size(message: &impl Message) -> Result<u64> {
    let mut counter = Writer { to: None, sizes: Vec::new(), begun: 0, bytes: 0, depth: 0 };
    message.write(&mut counter)?;
    Ok(counter.bytes)
}

impl Writer<'_> {
    /// Bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > MAX_MESSAGE {
            let text = format!("the model takes more than {MAX_MESSAGE} bytes, which protobuf can't hold");
            return Err(Error::input(format!("{text}: store its initializers as external data")));
        }
        match &mut self.to {
            Some(to) => write_pieces(bytes, to).map_err(|error| Error::io("the model can't be written", error)),
            None => Ok(()),
        }
    }

    fn varint(&mut self, number: u64) -> Result<()> {
        self.raw(&onnx::varint(number))
    }

    pub(super) fn number(&mut self, field: u32, number: u64) -> Result<()> {
        self.varint(u64::from(field) << 3)?;
        self.varint(number)
    }

    pub(super) fn float(&mut self, field: u32, number: f32) -> Result<()> {
        self.varint(u64::from(field) << 3 | 5)?;
        self.raw(&number.to_le_bytes())
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) -> Result<()> {
        self.varint(u64::from(field) << 3 | 2)?;
        self.varint(bytes.len() as u64)?;
        self.raw(bytes)
    }

    pub(super) fn message(&mut self, field: u32, message: &impl Message) -> Result<()> {
        self.depth += 1;
        if self.depth >= MAX_NESTING {
            return Err(Error::input(format!("messages nest more than {MAX_NESTING} deep")));
        }
        let place = self.begun;
        self.begun += 1;
        if self.to.is_some() {
            let size = self.sizes.get(place).copied().unwrap_or(0);
            self.varint(u64::from(field) << 3 | 2)?;
            self.varint(size)?;
            message.write(self)?;
        } else {
            self.sizes.push(0);
            let before = self.bytes;
            message.write(self)?;
            let size = self.bytes - before;
            self.sizes.iter_mut().skip(place).take(1).for_each(|known| *known = size);
            self.varint(u64::from(field) << 3 | 2)?;
            self.varint(size)?;
        }
        self.depth -= 1;
        Ok(())
    }
}

/// Writes bytes, which leave memory again if they are those of a mapped file.
pub(super) fn write_pieces(bytes: &[u8], to: &mut dyn Write) -> io::Result<()> {
    bytes.chunks(PIECE).try_for_each(|piece| {
        to.write_all(piece)?;
        release(piece);
        Ok(())
    })
}

/// What a field of a message holds.
pub(super) trait Content {
    fn read(&mut self, field: &Field<'_>) -> Result<()>;
    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()>;
}

/// An empty text is not written.
impl Content for String {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = field.text()?;
        Ok(())
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        if self.is_empty() { Ok(()) } else { to.bytes(number, self.as_bytes()) }
    }
}

impl Content for Vec<String> {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        field.grow::<String>(1)?;
        self.push(field.text()?);
        Ok(())
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        self.iter().try_for_each(|text| to.bytes(number, text.as_bytes()))
    }
}

impl Content for Option<i64> {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(field.number().cast_signed());
        Ok(())
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        self.map_or(Ok(()), |value| to.number(number, value.cast_unsigned()))
    }
}

/// 0 is not written.
impl Content for i32 {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        // As decoders do: the lower bits of a longer number.
        *self = field.number() as i32;
        Ok(())
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        if *self == 0 { Ok(()) } else { to.number(number, i64::from(*self).cast_unsigned()) }
    }
}

/// Numbers, which are not packed: the standard's lists of whole numbers in messages.
impl Content for Vec<i64> {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        field.numbers(self)
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        self.iter().try_for_each(|value| to.number(number, value.cast_unsigned()))
    }
}

impl Content for Option<Bytes> {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(field.bytes());
        Ok(())
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        self.as_ref().map_or(Ok(()), |bytes| to.bytes(number, bytes))
    }
}

impl<M: Message> Content for super::Part<M> {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = field.message()?;
        Ok(())
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        match self.source() {
            Some(bytes) => to.bytes(number, bytes),
            None => to.message(number, &**self),
        }
    }
}

impl<M: Message> Content for Option<Box<super::Part<M>>> {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        *self = Some(Box::new(field.message()?));
        Ok(())
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        self.as_ref().map_or(Ok(()), |part| part.write(number, to))
    }
}

impl<M: Message> Content for Vec<super::Part<M>> {
    fn read(&mut self, field: &Field<'_>) -> Result<()> {
        self.push(field.message()?);
        Ok(())
    }

    fn write(&self, number: u32, to: &mut Writer<'_>) -> Result<()> {
        self.iter().try_for_each(|part| part.write(number, to))
    }
}
