//! Attributes.

use super::wire::{Content, Field, Message, Writer};
use super::{Fields, Graph, Initializer, Part, SparseInitializer, Type};
use crate::error::Result;
use bytes::Bytes;

/// An attribute of a node (`AttributeProto`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attribute {
    /// The name.
    pub name: String,
    /// The value.
    pub value: AttributeValue,
    /// Text for people (`doc_string`).
    pub doc: String,
    /// All other fields.
    pub other: Fields,
    /// The kind that the file states, while the attribute is read.
    kind: i32,
}

/// The value of an attribute. Strings are UTF-8 in valid models. Floats are equal if their bits are, also those of NaN.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum AttributeValue {
    /// None, which is not valid.
    #[default]
    Missing,
    /// That of an attribute of the function which the node is in: its name, and the number of its kind.
    Reference(String, i32),
    /// `FLOAT`
    Float(f32),
    /// `INT`
    Int(i64),
    /// `STRING`
    String(Bytes),
    /// `TENSOR`
    Tensor(Box<Part<Initializer>>),
    /// `GRAPH`
    Graph(Box<Part<Graph>>),
    /// `SPARSE_TENSOR`
    SparseTensor(Box<Part<SparseInitializer>>),
    /// `TYPE_PROTO`
    Type(Box<Part<Type>>),
    /// `FLOATS`
    Floats(Vec<f32>),
    /// `INTS`
    Ints(Vec<i64>),
    /// `STRINGS`
    Strings(Vec<Bytes>),
    /// `TENSORS`
    Tensors(Vec<Part<Initializer>>),
    /// `GRAPHS`
    Graphs(Vec<Part<Graph>>),
    /// `SPARSE_TENSORS`
    SparseTensors(Vec<Part<SparseInitializer>>),
    /// `TYPE_PROTOS`
    Types(Vec<Part<Type>>),
}

use AttributeValue as V;

impl Attribute {
    /// An attribute with a value.
    pub fn new(name: impl Into<String>, value: impl Into<AttributeValue>) -> Attribute {
        Attribute { name: name.into(), value: value.into(), ..Attribute::default() }
    }

    /// The graphs that it holds.
    pub fn graphs(&self) -> &[Part<Graph>] {
        match &self.value {
            V::Graph(graph) => std::slice::from_ref(graph),
            V::Graphs(graphs) => graphs,
            _ => &[],
        }
    }

    /// The graphs that it holds, to change them with [`Part::change_if`].
    pub fn graphs_mut(&mut self) -> &mut [Part<Graph>] {
        match &mut self.value {
            V::Graph(graph) => std::slice::from_mut(graph),
            V::Graphs(graphs) => graphs,
            _ => &mut [],
        }
    }

    /// The tensors that it holds, to change them with [`Part::change_if`].
    pub(super) fn tensors_mut(&mut self) -> &mut [Part<Initializer>] {
        match &mut self.value {
            V::Tensor(tensor) => std::slice::from_mut(tensor),
            V::Tensors(tensors) => tensors,
            _ => &mut [],
        }
    }
}

impl AttributeValue {
    /// The number of the kind: `AttributeProto.AttributeType`.
    pub fn kind(&self) -> i32 {
        match self {
            V::Missing => 0,
            V::Reference(_, kind) => *kind,
            V::Float(_) => 1,
            V::Int(_) => 2,
            V::String(_) => 3,
            V::Tensor(_) => 4,
            V::Graph(_) => 5,
            V::Floats(_) => 6,
            V::Ints(_) => 7,
            V::Strings(_) => 8,
            V::Tensors(_) => 9,
            V::Graphs(_) => 10,
            V::SparseTensor(_) => 11,
            V::SparseTensors(_) => 12,
            V::Type(_) => 13,
            V::Types(_) => 14,
        }
    }

    /// What an attribute without a field for its value has: writers omit zeros and empty lists.
    fn empty(kind: i32) -> AttributeValue {
        match kind {
            1 => V::Float(0.0),
            2 => V::Int(0),
            3 => V::String(Bytes::new()),
            6 => V::Floats(Vec::new()),
            7 => V::Ints(Vec::new()),
            8 => V::Strings(Vec::new()),
            9 => V::Tensors(Vec::new()),
            10 => V::Graphs(Vec::new()),
            12 => V::SparseTensors(Vec::new()),
            14 => V::Types(Vec::new()),
            _ => V::Missing,
        }
    }

    /// Makes room for a field of a value. Returns whether it is one and no other has been read.
    fn begin(&mut self, number: u32) -> bool {
        let kind = match number {
            2 => 1,
            3 => 2,
            4 => 3,
            5 => 4,
            6 => 5,
            7..=11 => number as i32 - 1,
            22 => 11,
            23 => 12,
            14 => 13,
            15 => 14,
            _ => return false,
        };
        if *self == V::Missing {
            *self = match kind {
                4 => V::Tensor(Box::default()),
                5 => V::Graph(Box::default()),
                11 => V::SparseTensor(Box::default()),
                13 => V::Type(Box::default()),
                kind => V::empty(kind),
            };
            return true;
        }
        self.kind() == kind && !matches!(self, V::Reference(..))
    }
}

impl PartialEq for AttributeValue {
    fn eq(&self, other: &AttributeValue) -> bool {
        match (self, other) {
            (V::Missing, V::Missing) => true,
            (V::Reference(one, kind), V::Reference(other, other_kind)) => (one, kind) == (other, other_kind),
            (V::Float(one), V::Float(other)) => one.to_bits() == other.to_bits(),
            (V::Int(one), V::Int(other)) => one == other,
            (V::String(one), V::String(other)) => one == other,
            (V::Tensor(one), V::Tensor(other)) => one == other,
            (V::Graph(one), V::Graph(other)) => one == other,
            (V::SparseTensor(one), V::SparseTensor(other)) => one == other,
            (V::Type(one), V::Type(other)) => one == other,
            (V::Floats(one), V::Floats(other)) => {
                one.iter().map(|value| value.to_bits()).eq(other.iter().map(|value| value.to_bits()))
            }
            (V::Ints(one), V::Ints(other)) => one == other,
            (V::Strings(one), V::Strings(other)) => one == other,
            (V::Tensors(one), V::Tensors(other)) => one == other,
            (V::Graphs(one), V::Graphs(other)) => one == other,
            (V::SparseTensors(one), V::SparseTensors(other)) => one == other,
            (V::Types(one), V::Types(other)) => one == other,
            _ => false,
        }
    }
}

impl Message for Attribute {
    fn read(&mut self, field: &Field<'_>) -> Result<bool> {
        match field.number {
            1 => self.name = field.text()?,
            13 => self.doc = field.text()?,
            20 => Content::read(&mut self.kind, field)?,
            21 if self.value == V::Missing => self.value = V::Reference(field.text()?, 0),
            number if self.value.begin(number) => match &mut self.value {
                V::Float(value) => *value = field.float(),
                V::Int(value) => *value = field.number().cast_signed(),
                V::String(value) => *value = field.bytes(),
                V::Tensor(value) => Content::read(&mut **value, field)?,
                V::Graph(value) => Content::read(&mut **value, field)?,
                V::SparseTensor(value) => Content::read(&mut **value, field)?,
                V::Type(value) => Content::read(&mut **value, field)?,
                V::Floats(values) => field.floats(values)?,
                V::Ints(values) => field.numbers(values)?,
                V::Strings(values) => {
                    field.grow::<Bytes>(1)?;
                    values.push(field.bytes());
                }
                V::Tensors(values) => Content::read(values, field)?,
                V::Graphs(values) => Content::read(values, field)?,
                V::SparseTensors(values) => Content::read(values, field)?,
                V::Types(values) => Content::read(values, field)?,
                V::Missing | V::Reference(..) => return Ok(false),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn other(&mut self) -> &mut Fields {
        &mut self.other
    }

    fn finish(&mut self) {
        let kind = std::mem::take(&mut self.kind);
        match &mut self.value {
            V::Missing => self.value = V::empty(kind),
            V::Reference(_, own) => *own = kind,
            _ => {}
        }
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<()> {
        self.name.write(1, to)?;
        match &self.value {
            V::Missing => {}
            V::Reference(name, _) => to.bytes(21, name.as_bytes())?,
            V::Float(value) => to.float(2, *value)?,
            V::Int(value) => to.number(3, value.cast_unsigned())?,
            V::String(value) => to.bytes(4, value)?,
            V::Tensor(value) => value.write(5, to)?,
            V::Graph(value) => value.write(6, to)?,
            V::SparseTensor(value) => value.write(22, to)?,
            V::Type(value) => value.write(14, to)?,
            V::Floats(values) => values.iter().try_for_each(|value| to.float(7, *value))?,
            V::Ints(values) => values.write(8, to)?,
            V::Strings(values) => values.iter().try_for_each(|value| to.bytes(9, value))?,
            V::Tensors(values) => values.write(10, to)?,
            V::Graphs(values) => values.write(11, to)?,
            V::SparseTensors(values) => values.write(23, to)?,
            V::Types(values) => values.write(15, to)?,
        }
        self.doc.write(13, to)?;
        self.value.kind().write(20, to)?;
        self.other.iter().try_for_each(|field| to.raw(field))
    }
}

macro_rules! value_from {
    ($($from:ty => |$value:ident| $made:expr;)*) => {$(
        impl From<$from> for AttributeValue {
            fn from($value: $from) -> AttributeValue {
                $made
            }
        }
    )*};
}

value_from! {
    f32 => |value| V::Float(value);
    i64 => |value| V::Int(value);
    &str => |value| V::String(Bytes::copy_from_slice(value.as_bytes()));
    String => |value| V::String(value.into());
    Vec<f32> => |value| V::Floats(value);
    Vec<i64> => |value| V::Ints(value);
    Graph => |value| V::Graph(Box::new(value.into()));
    Initializer => |value| V::Tensor(Box::new(value.into()));
    Type => |value| V::Type(Box::new(value.into()));
}
