//! Declared types.

use super::message::message;
use super::wire::{Content, Field, Message, Writer};
use super::{Entry, Fields, Part};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::value::{Dim, ValueType};

message! {
    /// A value and its type (`ValueInfoProto`).
    pub struct ValueInfo {
        /// The name of the value.
        name: String = 1,
        /// Its type.
        value_type: Option<Box<Part<Type>>> = 2,
        /// Text for people (`doc_string`).
        doc: String = 3,
        /// `metadata_props`
        metadata: Vec<Part<Entry>> = 4,
    }
}

message! {
    /// A type (`TypeProto`). One of its kinds is given.
    pub struct Type {
        /// A tensor.
        tensor: Option<Box<Part<TensorType>>> = 1,
        /// A sequence.
        sequence: Option<Box<Part<ElementType>>> = 4,
        /// A map.
        map: Option<Box<Part<MapType>>> = 5,
        /// What the value means.
        denotation: String = 6,
        /// A sparse tensor.
        sparse_tensor: Option<Box<Part<TensorType>>> = 8,
        /// An optional value.
        optional: Option<Box<Part<ElementType>>> = 9,
    }
}

message! {
    /// The type of a tensor (`TypeProto.Tensor`).
    pub struct TensorType {
        /// The number of the element type.
        elem_type: i32 = 1,
        /// The shape, if its rank is known.
        shape: Option<Box<Part<Shape>>> = 2,
    }
}

message! {
    /// What a sequence or an optional value holds (`TypeProto.Sequence`, `TypeProto.Optional`).
    pub struct ElementType {
        /// The type of the elements.
        elem_type: Option<Box<Part<Type>>> = 1,
    }
}

message! {
    /// The type of a map (`TypeProto.Map`).
    pub struct MapType {
        /// The number of the type of keys.
        key_type: i32 = 1,
        /// The type of values.
        value_type: Option<Box<Part<Type>>> = 2,
    }
}

message! {
    /// A shape (`TensorShapeProto`).
    pub struct Shape {
        /// The dimensions.
        dims: Vec<Part<Dimension>> = 1,
    }
}

/// A dimension (`TensorShapeProto.Dimension`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dimension {
    /// The size.
    pub size: Size,
    /// What the dimension means.
    pub denotation: String,
    /// All other fields.
    pub other: Fields,
}

/// The size of a dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Size {
    /// Any size.
    #[default]
    Unknown,
    /// A fixed size (`dim_value`). Many writers mean an unknown one by a negative number.
    Fixed(i64),
    /// A symbol (`dim_param`).
    Symbol(String),
}

impl Message for Dimension {
    fn read(&mut self, field: &Field<'_>) -> Result<bool> {
        match field.number {
            1 => self.size = Size::Fixed(field.number().cast_signed()),
            2 => self.size = Size::Symbol(field.text()?),
            3 => self.denotation = field.text()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn other(&mut self) -> &mut Fields {
        &mut self.other
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<()> {
        match &self.size {
            Size::Unknown => {}
            Size::Fixed(size) => to.number(1, size.cast_unsigned())?,
            Size::Symbol(name) => to.bytes(2, name.as_bytes())?,
        }
        self.denotation.write(3, to)?;
        self.other.iter().try_for_each(|field| to.raw(field))
    }
}

impl From<Size> for Dimension {
    fn from(size: Size) -> Dimension {
        Dimension { size, ..Dimension::default() }
    }
}

/// A size that follows from symbols isn't known to the format: it becomes `Unknown`.
impl From<&Dim> for Size {
    fn from(dim: &Dim) -> Size {
        match dim {
            Dim::Fixed(size) => i64::try_from(*size).map_or(Size::Unknown, Size::Fixed),
            Dim::Symbol(name) => Size::Symbol(name.clone()),
            _ => Size::Unknown,
        }
    }
}

impl From<i64> for Size {
    fn from(size: i64) -> Size {
        Size::Fixed(size)
    }
}

impl Size {
    /// Checks that it may be declared.
    ///
    /// # Errors
    /// It is a negative number.
    pub fn check(&self) -> Result<()> {
        match self {
            Size::Fixed(size @ ..0) => Err(Error::input(format!("size {size}: a size can't be negative")).value(*size)),
            _ => Ok(()),
        }
    }
}

/// A symbol.
impl From<&str> for Size {
    fn from(name: &str) -> Size {
        Size::Symbol(name.to_string())
    }
}

impl Type {
    /// A type, and the shape of a tensor if its rank is known.
    pub fn new(value_type: &ValueType, dims: Option<&[Size]>) -> Type {
        let boxed = |inner: &ValueType| {
            Some(Box::new(ElementType { elem_type: Type::boxed(inner, None), ..ElementType::default() }.into()))
        };
        match value_type {
            ValueType::Tensor(dtype) => Type { tensor: tensor_type(*dtype, dims), ..Type::default() },
            ValueType::Sequence(inner) => Type { sequence: boxed(inner), ..Type::default() },
            ValueType::Optional(inner) => Type { optional: boxed(inner), ..Type::default() },
            ValueType::Map(key, value) => {
                let map = MapType { key_type: key.code(), value_type: Type::boxed(value, None), ..MapType::default() };
                Type { map: Some(Box::new(map.into())), ..Type::default() }
            }
        }
    }

    fn boxed(value_type: &ValueType, dims: Option<&[Size]>) -> Option<Box<Part<Type>>> {
        Some(Box::new(Type::new(value_type, dims).into()))
    }
}

fn tensor_type(dtype: DType, dims: Option<&[Size]>) -> Option<Box<Part<TensorType>>> {
    let shape = dims.map(|dims| {
        let dims = dims.iter().map(|size| Dimension::from(size.clone()).into()).collect();
        Box::new(Shape { dims, ..Shape::default() }.into())
    });
    Some(Box::new(TensorType { elem_type: dtype.code(), shape, ..TensorType::default() }.into()))
}

impl ValueInfo {
    /// A tensor with its shape: sizes, or names of symbols.
    pub fn tensor<S: Into<Size>>(
        name: impl Into<String>,
        dtype: DType,
        dims: impl IntoIterator<Item = S>,
    ) -> ValueInfo {
        let dims: Vec<Size> = dims.into_iter().map(Into::into).collect();
        ValueInfo::new(name, &dtype.into(), Some(&dims))
    }

    /// A value with its type, and its shape if the rank is known.
    pub fn new(name: impl Into<String>, value_type: &ValueType, dims: Option<&[Size]>) -> ValueInfo {
        ValueInfo { name: name.into(), value_type: Type::boxed(value_type, dims), ..ValueInfo::default() }
    }

    /// A value of which no type is declared.
    pub fn untyped(name: impl Into<String>) -> ValueInfo {
        ValueInfo { name: name.into(), ..ValueInfo::default() }
    }

    /// The dimensions of a tensor, if its rank is declared.
    pub fn dims(&self) -> Option<&[Part<Dimension>]> {
        let value_type = self.value_type.as_ref()?;
        let tensor = value_type.tensor.as_ref().or(value_type.sparse_tensor.as_ref())?;
        Some(&tensor.shape.as_ref()?.dims)
    }

    /// The dimensions of a tensor, to change them; the declaration counts as changed.
    pub fn dims_mut(&mut self) -> Option<&mut [Part<Dimension>]> {
        let value_type = &mut **self.value_type.as_mut()?;
        let value_type = &mut **value_type;
        let tensor = value_type.tensor.as_mut().or(value_type.sparse_tensor.as_mut())?;
        let shape = tensor.shape.as_mut()?;
        Some(&mut shape.dims)
    }
}
