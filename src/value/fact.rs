//! Facts about a value that are known before a run.

use super::{Formula, Value, ValueType};
use crate::dtype::DType;
use crate::error::escape;
use crate::tensor::{Scalar, Tensor};
use smallvec::SmallVec;
use std::fmt::{self, Display};

/// One dimension of a shape, as far as known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dim {
    /// A fixed size.
    Fixed(usize),
    /// A name: the same size at each of its uses.
    Symbol(String),
    /// A size that follows from names, or one without a name that has been given a formula of its own.
    Formula(Formula),
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

    /// The dimension of a size that an attribute gives.
    pub(crate) fn of(size: i64) -> Dim {
        usize::try_from(size).map_or(Dim::Unknown, Dim::Fixed)
    }

    /// The product of sizes; `Unknown` if it isn't known.
    pub(crate) fn product<'a>(dims: impl IntoIterator<Item = &'a Dim>) -> Dim {
        let product = dims.into_iter().try_fold(Formula::from(1), |all, dim| all.times(&Formula::of(dim)?));
        product.map_or(Dim::Unknown, |product| product.dim())
    }

    /// The product of sizes divided by that of others, of which none is 0.
    pub(crate) fn quotient(of: &[Dim], by: &[Dim]) -> Dim {
        // Dimensions whose size isn't known may not cancel: each use is another size.
        let [of, by] = [of, by].map(|dims| Formula::of(&Dim::product(dims)));
        of.and_then(|of| of.over(&by?)).map_or(Dim::Unknown, |quotient| quotient.dim())
    }

    /// What it is if no size is 0.
    pub(crate) fn likely(&self) -> Option<Formula> {
        Formula::of(self)?.likely()
    }

    /// A size of which it is known what it is if no size is 0.
    pub(crate) fn if_no_size_is_0(likely: Option<Formula>) -> Dim {
        likely.map_or(Dim::Unknown, |likely| Formula::own(Some(likely)).dim())
    }

    /// What is known about a size of which two facts are known; `None` if they contradict each other.
    pub(crate) fn both(&self, other: &Dim) -> Option<Dim> {
        match (self, other) {
            (Dim::Fixed(one), Dim::Fixed(other)) if one != other => None,
            (Dim::Fixed(_), _) | (_, Dim::Unknown) => Some(self.clone()),
            (_, Dim::Fixed(_)) | (Dim::Unknown, _) => Some(other.clone()),
            _ => Some(self.clone()),
        }
    }

    fn memory(&self) -> usize {
        size_of::<Dim>()
            + match self {
                Dim::Symbol(name) => name.len(),
                Dim::Formula(formula) => formula.memory(),
                Dim::Fixed(_) | Dim::Unknown => 0,
            }
    }

    /// The sum of two sizes.
    pub(crate) fn plus(&self, other: &Dim) -> Dim {
        let sum = Formula::of(self).and_then(|own| own.plus(&Formula::of(other)?));
        sum.map_or(Dim::Unknown, |sum| sum.dim())
    }
}

impl Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.write_str(&escape(name)),
            Dim::Formula(formula) => match formula.likely() {
                Some(likely) => write!(f, "{likely}"),
                None => f.write_str("?"),
            },
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
    known: Option<Box<Known>>,
}

/// What is known about a value itself.
#[derive(Debug, Clone)]
enum Known {
    /// It is the same in every run.
    Constant(Value),
    /// The elements of a scalar or short list of whole numbers, as far as they follow from symbols.
    List(List),
}

/// A short list of whole numbers, as far as they are known.
pub(crate) type List = SmallVec<[Option<Formula>; 4]>;

impl Fact {
    /// Lists of more numbers are not followed.
    pub(crate) const LIST: usize = 64;

    /// The fact that a value is of a type.
    pub fn of_type(value_type: impl Into<ValueType>) -> Fact {
        Fact { value_type: Some(value_type.into()), ..Fact::default() }
    }

    /// A type and a shape, as far as they are known.
    pub(crate) fn of(value_type: Option<ValueType>, dims: Option<Box<[Dim]>>) -> Fact {
        Fact { value_type, dims, known: None }
    }

    /// Adds the shape of a tensor.
    #[must_use]
    pub fn with_dims(mut self, dims: impl Into<Box<[Dim]>>) -> Fact {
        self.dims = Some(dims.into());
        self
    }

    /// Gives each size that isn't known a formula of its own: what has the same shape is known to have it then.
    pub(crate) fn own_sizes(&mut self) {
        let unknown = self.dims.iter_mut().flatten().filter(|dim| **dim == Dim::Unknown);
        unknown.for_each(|dim| *dim = Formula::own(None).dim());
    }

    /// The bytes of the tensor, if its type and its sizes are known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let (sizes, dtype) = (Dim::sizes(self.dims()?)?, self.value_type()?.dtype()?);
        Some(sizes.iter().fold(dtype.size() as u64, |bytes, size| bytes.saturating_mul(*size as u64)))
    }

    /// The shape, as far as it follows from names.
    pub(crate) fn certain_dims(&self) -> Option<Box<[Dim]>> {
        let certain = |dim: &Dim| match dim {
            Dim::Formula(formula) if !formula.is_certain() => Dim::Unknown,
            dim => dim.clone(),
        };
        Some(self.dims()?.iter().map(certain).collect())
    }

    /// The shape if no size is 0.
    pub(crate) fn likely_dims(&self) -> Option<Box<[Dim]>> {
        Some(self.dims()?.iter().map(|dim| dim.likely().map_or(Dim::Unknown, |likely| likely.dim())).collect())
    }

    /// The fact that a value is constant.
    pub fn constant(value: Value) -> Fact {
        let shape = value.tensor().map(|tensor| tensor.shape().iter().copied().map(Dim::Fixed).collect());
        Fact { value_type: value.value_type(), dims: shape.ok(), known: Some(Box::new(Known::Constant(value))) }
    }

    /// What holds if either of two facts does.
    pub(crate) fn common(&self, other: &Fact) -> Fact {
        let value_type = self.value_type.clone().filter(|own| other.value_type.as_ref() == Some(own));
        let dim = |(one, other): (&Dim, &Dim)| if one == other { one.clone() } else { Dim::Unknown };
        let dims = self.dims().zip(other.dims()).filter(|(one, other)| one.len() == other.len());
        let dims = dims.map(|(one, other)| one.iter().zip(other).map(dim).collect());
        Fact::of(value_type, dims)
    }

    /// The fact about a value whose sizes are those of this one, unless some size is 0: fixed ones are in any case.
    pub(crate) fn if_no_size_is_0(&self) -> Fact {
        let size = |dim: &Dim| if let Dim::Fixed(_) = dim { dim.clone() } else { Dim::if_no_size_is_0(dim.likely()) };
        Fact::of(self.value_type.clone(), self.dims().map(|dims| dims.iter().map(size).collect()))
    }

    /// The fact about tensors like this that are stacked along a new first dimension.
    pub(crate) fn stacked(&self) -> Fact {
        let dims = self.dims().map(|dims| std::iter::once(Dim::Unknown).chain(dims.iter().cloned()).collect());
        Fact::of(self.value_type.clone(), dims)
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
        match self.known.as_deref()? {
            Known::Constant(value) => Some(value),
            Known::List(_) => None,
        }
    }

    /// Moves the value out, if it is the same in every run.
    pub(crate) fn take_value(&mut self) -> Option<Value> {
        match *self.known.take()? {
            Known::Constant(value) => Some(value),
            Known::List(_) => None,
        }
    }

    /// A scalar or short list of int32 or int64 numbers of which something is known: a constant if all of them are.
    pub(crate) fn of_list(dtype: DType, dims: &[Dim], list: &[Option<Formula>]) -> Option<Fact> {
        let fits = |value: &i64| dtype == DType::Int64 || i32::try_from(*value).is_ok();
        let number = |item: &Option<Formula>| item.as_ref()?.number().filter(fits);
        let count = match dims {
            [] => 1,
            [Dim::Fixed(count)] => *count,
            _ => return None,
        };
        if count != list.len() || count > Fact::LIST || !matches!(dtype, DType::Int32 | DType::Int64) {
            return None;
        }
        if let Some(values) = list.iter().map(number).collect::<Option<Vec<i64>>>() {
            let shape = Dim::sizes(dims)?;
            let tensor = match dtype {
                DType::Int64 => Tensor::from_elements(&shape, values),
                _ => Tensor::from_elements(&shape, values.into_iter().map(|value| value as i32).collect()),
            };
            return Some(Fact::constant(tensor.ok()?.into()));
        }
        // What a number beyond the type would wrap to isn't known.
        let keep = |item: &Option<Formula>| item.clone().filter(|item| item.number().is_none_or(|n| fits(&n)));
        let known = Some(Box::new(Known::List(list.iter().map(keep).collect())));
        Some(Fact { known, ..Fact::of_type(dtype).with_dims(dims) })
    }

    /// Upper bound on the memory that it takes, beyond what a value of a model takes anyway.
    pub(crate) fn memory(&self) -> u64 {
        let dims = self.dims().unwrap_or_default().iter().map(Dim::memory).sum::<usize>();
        let known = match self.known.as_deref() {
            None => 0,
            // Values that follow from others are small, or are there already.
            Some(Known::Constant(_)) => 1024,
            Some(Known::List(list)) => list.iter().flatten().map(Formula::memory).sum(),
        };
        (dims + known).saturating_sub(512) as u64
    }

    /// The numbers of a scalar or short list, as far as they are known.
    pub(crate) fn list(&self) -> Option<List> {
        let tensor = match self.known.as_deref()? {
            Known::List(list) => return Some(list.clone()),
            Known::Constant(value) => value.tensor().ok()?,
        };
        if tensor.rank() > 1 || tensor.len() > Fact::LIST {
            return None;
        }
        let number = |scalar: Scalar<'_>| match scalar {
            Scalar::Int(value) => Some(Some(Formula::from(value))),
            _ => None,
        };
        tensor.scalars().map(number).collect()
    }

    /// The numbers of a scalar or short list, if all of them are known.
    pub(crate) fn ints(&self) -> Option<SmallVec<[i64; 6]>> {
        self.list()?.iter().map(|item| item.as_ref()?.number()).collect()
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
            ("b 6", "3", "2*b"),
            ("b b", "b", "b"),
            ("b s", "", "b*s"),
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
