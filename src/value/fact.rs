//! Facts about a value that are known before a run.

use super::{Value, ValueType};
use crate::error::escape;
use std::fmt::{self, Display};

/// One dimension of a shape, as far as known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dim {
    /// A fixed size.
    Fixed(usize),
    /// A name: the same size at each of its uses.
    Symbol(String),
    /// Any size.
    Unknown,
}

impl Dim {
    /// The size as an int64, if it is fixed.
    pub(crate) fn fixed(&self) -> Option<i64> {
        match self {
            Dim::Fixed(size) => i64::try_from(*size).ok(),
            _ => None,
        }
    }

    /// The sizes of all dimensions, if they are fixed.
    pub(crate) fn sizes(dims: &[Dim]) -> Option<Vec<usize>> {
        dims.iter().map(|dim| if let Dim::Fixed(size) = dim { Some(*size) } else { None }).collect()
    }

    /// The product of sizes divided by that of others, none of which is 0: a size, or the only dimension that is left.
    pub(crate) fn quotient(of: &[Dim], by: &[Dim]) -> Dim {
        let mut left: Vec<&Dim> = of.iter().collect();
        let (mut above, mut below) = (1usize, 1usize);
        for dim in by {
            match (dim, left.iter().position(|other| *other == dim)) {
                (Dim::Fixed(size), _) => below = below.saturating_mul(*size),
                (Dim::Symbol(_), Some(place)) => _ = left.swap_remove(place),
                _ => return Dim::Unknown,
            }
        }
        let mut open = None;
        for dim in left {
            match dim {
                Dim::Fixed(size) => above = above.saturating_mul(*size),
                dim if open.is_none() => open = Some(dim),
                _ => return Dim::Unknown,
            }
        }
        match open {
            None if below != 0 && above != usize::MAX && above.is_multiple_of(below) => Dim::Fixed(above / below),
            Some(dim @ Dim::Symbol(_)) if above == below && below != 0 => dim.clone(),
            _ => Dim::Unknown,
        }
    }
}

impl Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.write_str(&escape(name)),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

/// A declared shape as errors and notes show it: `[batch, 3, ?]`, cut after 16 dimensions.
pub(crate) struct DimsText<'a>(pub(crate) &'a [Dim]);

impl Display for DimsText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.0.iter().take(16).map(Dim::to_string).collect();
        write!(f, "[{}{}]", dims.join(", "), if self.0.len() > 16 { ", …" } else { "" })
    }
}

/// The known facts about a value before a run: its type, its shape, the value itself.
#[derive(Debug, Clone, Default)]
pub struct Fact {
    pub(crate) value_type: Option<ValueType>,
    pub(crate) dims: Option<Box<[Dim]>>,
    pub(crate) constant: Option<Box<Value>>,
}

impl Fact {
    /// The fact that a value is of a type.
    pub fn of_type(value_type: impl Into<ValueType>) -> Fact {
        Fact { value_type: Some(value_type.into()), ..Fact::default() }
    }

    /// Adds the shape of a tensor.
    #[must_use]
    pub fn with_dims(mut self, dims: impl Into<Box<[Dim]>>) -> Fact {
        self.dims = Some(dims.into());
        self
    }

    /// The fact that a value is constant.
    pub fn constant(value: Value) -> Fact {
        let shape = value.tensor().map(|tensor| tensor.shape().iter().copied().map(Dim::Fixed).collect());
        Fact { value_type: value.value_type(), dims: shape.ok(), constant: Some(Box::new(value)) }
    }

    /// What holds if either of two facts does.
    pub(crate) fn common(&self, other: &Fact) -> Fact {
        let value_type = self.value_type.clone().filter(|own| other.value_type.as_ref() == Some(own));
        let dim = |(one, other): (&Dim, &Dim)| if one == other { one.clone() } else { Dim::Unknown };
        let dims = self.dims().zip(other.dims()).filter(|(one, other)| one.len() == other.len());
        Fact { value_type, dims: dims.map(|(one, other)| one.iter().zip(other).map(dim).collect()), constant: None }
    }

    /// The fact about tensors like this that are stacked along a new first dimension.
    pub(crate) fn stacked(&self) -> Fact {
        let dims = self.dims().map(|dims| std::iter::once(Dim::Unknown).chain(dims.iter().cloned()).collect());
        Fact { value_type: self.value_type.clone(), dims, constant: None }
    }

    /// The type, if it is known.
    pub fn value_type(&self) -> Option<&ValueType> {
        self.value_type.as_ref()
    }

    /// The shape of a tensor, if its rank is known.
    pub fn dims(&self) -> Option<&[Dim]> {
        self.dims.as_deref()
    }

    /// The value, if it is the same in every run.
    pub fn value(&self) -> Option<&Value> {
        self.constant.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients() {
        let dims = |text: &str| -> Vec<Dim> {
            let dim = |word: &str| match word.parse() {
                Ok(size) => Dim::Fixed(size),
                Err(_) if word == "?" => Dim::Unknown,
                Err(_) => Dim::Symbol(word.to_string()),
            };
            text.split_whitespace().map(dim).collect()
        };
        for (of, by, want) in [
            ("1 128 384", "1 128 32", "12"),
            ("b s 384", "b s 32", "12"),
            ("b s 384", "b 384", "s"),
            ("b 6", "b 4", "?"),
            ("b 6", "3", "?"),
            ("b b", "b", "b"),
            ("b s", "", "?"),
            ("b ?", "b", "?"),
            ("? 6", "?", "?"),
            ("b", "s", "?"),
            ("0 3", "3", "0"),
            ("6", "0", "?"),
            ("", "", "1"),
        ] {
            assert_eq!(Dim::quotient(&dims(of), &dims(by)).to_string(), want, "{of} / {by}");
        }
    }
}
