//! Types of values, and sets of them.

use crate::dtype::{DType, DTypes};
use std::fmt::{self, Display};

/// The type of a value, as the standard's `TypeProto` has it, without shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// A tensor of an element type. Sparse tensors are made dense when they are loaded.
    Tensor(DType),
    /// A sequence of values of one type.
    Sequence(Box<ValueType>),
    /// A value of a type, or none.
    Optional(Box<ValueType>),
    /// A map: keys of an integer type or string, values of one type.
    Map(DType, Box<ValueType>),
}

impl ValueType {
    /// The element type of a tensor; `None` for other values.
    #[inline]
    pub fn dtype(&self) -> Option<DType> {
        match self {
            ValueType::Tensor(dtype) => Some(*dtype),
            _ => None,
        }
    }

    /// A sequence of values of this type.
    pub fn sequence(self) -> ValueType {
        ValueType::Sequence(Box::new(self))
    }

    /// An optional of this type.
    pub fn optional(self) -> ValueType {
        ValueType::Optional(Box::new(self))
    }
}

impl From<DType> for ValueType {
    fn from(dtype: DType) -> ValueType {
        ValueType::Tensor(dtype)
    }
}

/// The type as the standard writes it, with the names of element types that errors use; a tensor's is only its element
/// type: `float32`, `seq(float32)`, `map(int64,float32)`.
impl Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Tensor(dtype) => dtype.fmt(f),
            ValueType::Sequence(element) => write!(f, "seq({element})"),
            ValueType::Optional(element) => write!(f, "optional({element})"),
            ValueType::Map(key, value) => write!(f, "map({key},{value})"),
        }
    }
}

/// A set of types of values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypeSet {
    tensors: DTypes,
    others: Vec<ValueType>,
}

impl TypeSet {
    /// Whether a type is in the set.
    #[inline]
    pub fn contains(&self, value_type: &ValueType) -> bool {
        match value_type {
            ValueType::Tensor(dtype) => self.tensors.contains(*dtype),
            other => self.others.contains(other),
        }
    }

    /// The element types of the tensors in the set.
    pub fn tensors(&self) -> DTypes {
        self.tensors
    }

    /// The types in the set: tensors first, by the number of their element type.
    pub fn iter(&self) -> impl Iterator<Item = ValueType> {
        self.tensors.iter().map(ValueType::Tensor).chain(self.others.iter().cloned())
    }

    /// The only type in the set, if it has one.
    pub fn only(&self) -> Option<ValueType> {
        match self.others.as_slice() {
            [] => self.tensors.only().map(ValueType::Tensor),
            [other] if self.tensors.is_empty() => Some(other.clone()),
            _ => None,
        }
    }

    /// Whether no type is in the set.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty() && self.others.is_empty()
    }

    pub(crate) fn insert_tensors(&mut self, tensors: DTypes) {
        self.tensors = self.tensors | tensors;
    }

    pub(crate) fn insert(&mut self, value_type: ValueType) {
        match value_type {
            ValueType::Tensor(dtype) => self.insert_tensors(DTypes::from_iter([dtype])),
            other if self.others.contains(&other) => {}
            other => self.others.push(other),
        }
    }
}

impl Display for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, value_type) in self.iter().enumerate() {
            write!(f, "{}{value_type}", if k == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        let float = ValueType::Tensor(DType::Float);
        let mut set = TypeSet::default();
        assert!(set.is_empty() && set.only().is_none());
        set.insert(float.clone().sequence());
        assert_eq!(set.only(), Some(float.clone().sequence()));
        set.insert(float.clone());
        set.insert(float.clone().sequence());
        set.insert(ValueType::Map(DType::Int64, Box::new(float.clone())).sequence());
        assert_eq!(set.to_string(), "float32, seq(float32), seq(map(int64,float32))");
        assert!(set.contains(&float) && !set.contains(&float.clone().optional()) && set.only().is_none());
        assert!(!set.contains(&ValueType::Tensor(DType::Int64).sequence()));
    }
}
