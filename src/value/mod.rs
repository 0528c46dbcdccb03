//! The values that flow along the edges of a graph.

mod fact;
mod formula;
mod sequence;
mod types;

pub use fact::{Dim, Fact};
pub(crate) use fact::{DimsText, List};
pub use formula::Formula;
pub use sequence::Sequence;
pub use types::{TypeSet, ValueType};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::tensor::{Memory, Tensor};
use std::fmt::{self, Debug, Display};
use std::sync::Arc;

/// A value on an edge of a graph. Cheap to clone: elements are shared.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// A sequence.
    Sequence(Sequence),
    /// A value, or none.
    Optional(Optional),
    /// A map.
    Map(Map),
}

/// A value, or none.
#[derive(Clone, PartialEq, Eq)]
pub struct Optional {
    element: Option<ValueType>,
    value: Option<Arc<Value>>,
}

/// Keys of an integer type or strings, each with a value; the values are of one type.
#[derive(Clone, PartialEq, Eq)]
pub struct Map(Arc<Entries>);

#[derive(Clone, PartialEq, Eq)]
struct Entries {
    keys: Tensor,
    values: Sequence,
}

impl Value {
    /// The type; `None` if it is open: an empty sequence or optional from a file that doesn't say its element type.
    pub fn value_type(&self) -> Option<ValueType> {
        match self {
            Value::Tensor(tensor) => Some(ValueType::Tensor(tensor.dtype())),
            Value::Sequence(sequence) => sequence.element.clone().map(ValueType::sequence),
            Value::Optional(optional) => optional.element.clone().map(ValueType::optional),
            Value::Map(map) => Some(ValueType::Map(map.keys().dtype(), Box::new(map.0.values.element.clone()?))),
        }
    }

    /// Whether the value is of a type; an empty value of open type may be of any.
    #[inline]
    pub fn is_of(&self, value_type: &ValueType) -> bool {
        match (self, value_type) {
            (Value::Tensor(tensor), ValueType::Tensor(dtype)) => tensor.dtype() == *dtype,
            _ => self.is_of_nested(value_type),
        }
    }

    fn is_of_nested(&self, value_type: &ValueType) -> bool {
        match (self, value_type) {
            (Value::Sequence(sequence), ValueType::Sequence(element)) => {
                sequence.element.as_ref().is_none_or(|own| own == &**element)
            }
            (Value::Optional(optional), ValueType::Optional(element)) => {
                let open = || optional.get().is_none_or(|value| value.is_of(element));
                optional.element.as_ref().map_or_else(open, |own| own == &**element)
            }
            (Value::Map(map), ValueType::Map(key, value)) => {
                map.keys().dtype() == *key && map.0.values.element.as_ref().is_none_or(|own| own == &**value)
            }
            _ => false,
        }
    }

    /// The tensor.
    ///
    /// # Errors
    /// If the value is not a tensor.
    #[inline]
    pub fn tensor(&self) -> Result<&Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_not("tensor")),
        }
    }

    /// The owned tensor.
    ///
    /// # Errors
    /// If the value is not a tensor.
    pub fn into_tensor(self) -> Result<Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_not("tensor")),
        }
    }

    /// The sequence.
    ///
    /// # Errors
    /// If the value is not a sequence.
    pub fn sequence(&self) -> Result<&Sequence> {
        match self {
            Value::Sequence(sequence) => Ok(sequence),
            other => Err(other.is_not("sequence")),
        }
    }

    /// The owned sequence.
    pub(crate) fn into_sequence(self) -> Result<Sequence> {
        match self {
            Value::Sequence(sequence) => Ok(sequence),
            other => Err(other.is_not("sequence")),
        }
    }

    /// The optional.
    ///
    /// # Errors
    /// If the value is not an optional.
    pub fn optional(&self) -> Result<&Optional> {
        match self {
            Value::Optional(optional) => Ok(optional),
            other => Err(other.is_not("optional")),
        }
    }

    /// The map.
    ///
    /// # Errors
    /// If the value is not a map.
    pub fn map(&self) -> Result<&Map> {
        match self {
            Value::Map(map) => Ok(map),
            other => Err(other.is_not("map")),
        }
    }

    #[cold]
    fn is_not(&self, kind: &str) -> Error {
        Error::input(format!("the value is of type {}, not a {kind}", self.type_text()))
    }

    /// The type as errors name it.
    pub(crate) fn type_text(&self) -> String {
        let kind = match self {
            Value::Tensor(_) => "tensor",
            Value::Sequence(_) => "empty sequence",
            Value::Optional(_) => "empty optional",
            Value::Map(_) => "empty map",
        };
        self.value_type().map_or(kind.to_string(), |value_type| value_type.to_string())
    }

    /// Calls `each` for all tensors that the value holds.
    pub(crate) fn for_each_tensor(&self, each: &mut dyn FnMut(&Tensor) -> Result<()>) -> Result<()> {
        match self {
            Value::Tensor(tensor) => each(tensor),
            Value::Sequence(sequence) => sequence.values().iter().try_for_each(|value| value.for_each_tensor(each)),
            Value::Optional(optional) => optional.get().map_or(Ok(()), |value| value.for_each_tensor(each)),
            Value::Map(map) => {
                each(map.keys())?;
                map.values().iter().try_for_each(|value| value.for_each_tensor(each))
            }
        }
    }

    /// Keeps memory that nobody else holds for reuse, during a run. Memory that others hold counts until they drop it.
    #[inline(always)]
    pub(crate) fn release(self, memory: &Memory) {
        if let Value::Tensor(tensor) = self {
            tensor.release(memory);
        }
        // Tensors inside other values return to their ledger when dropped.
    }

    /// As [`Value::release`] after a run: memory that others hold no longer counts.
    #[inline]
    pub(crate) fn recycle(self, memory: &Memory) {
        match self {
            Value::Tensor(tensor) => tensor.recycle(memory),
            other => other.recycle_inside(memory),
        }
    }

    #[cold]
    fn recycle_inside(self, memory: &Memory) {
        match self {
            Value::Tensor(_) => {}
            Value::Sequence(sequence) => sequence.recycle(memory),
            Value::Optional(Optional { value, .. }) => match value.map(Arc::try_unwrap) {
                Some(Ok(value)) => value.recycle(memory),
                Some(Err(shared)) => shared.hand_out(memory),
                None => {}
            },
            Value::Map(map) => {
                let Entries { keys, values } = Arc::unwrap_or_clone(map.0);
                keys.recycle(memory);
                values.recycle(memory);
            }
        }
    }

    /// Stops counting memory that leaves with the outputs of a run.
    #[inline]
    pub(crate) fn hand_out(&self, memory: &Memory) {
        match self {
            Value::Tensor(tensor) => tensor.hand_out(memory),
            Value::Sequence(sequence) => sequence.hand_out(memory),
            Value::Optional(optional) => optional.get().into_iter().for_each(|value| value.hand_out(memory)),
            Value::Map(map) => {
                map.keys().hand_out(memory);
                map.0.values.hand_out(memory);
            }
        }
    }

    /// Counts the memory of a value that an operator allocated itself, unless it is counted already, and calls `check`
    /// for each newly counted tensor.
    pub(crate) fn adopt(&mut self, memory: &Memory, check: &mut dyn FnMut(&Tensor) -> Result<()>) -> Result<()> {
        match self {
            Value::Tensor(tensor) => adopt(tensor, memory, check),
            Value::Sequence(sequence) => sequence.adopt(memory, check),
            Value::Optional(optional) => {
                optional.value.as_mut().and_then(Arc::get_mut).map_or(Ok(()), |value| value.adopt(memory, check))
            }
            Value::Map(map) => {
                let Some(Entries { keys, values }) = Arc::get_mut(&mut map.0) else { return Ok(()) };
                adopt(keys, memory, check)?;
                values.adopt(memory, check)
            }
        }
    }
}

fn adopt(tensor: &mut Tensor, memory: &Memory, check: &mut dyn FnMut(&Tensor) -> Result<()>) -> Result<()> {
    if tensor.adopt(memory)? { check(tensor) } else { Ok(()) }
}

impl Optional {
    /// An optional with a value.
    pub fn some(value: Value) -> Optional {
        Optional { element: value.value_type(), value: Some(Arc::new(value)) }
    }

    /// An optional of a type without a value.
    pub fn none(element: ValueType) -> Optional {
        Optional { element: Some(element), value: None }
    }

    /// An optional without a value whose type is open.
    pub(crate) fn open() -> Optional {
        Optional { element: None, value: None }
    }

    /// The type of the value; `None` where it is open.
    pub fn element_type(&self) -> Option<&ValueType> {
        self.element.as_ref()
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&Value> {
        self.value.as_deref()
    }

    /// The owned value, if there is one.
    pub(crate) fn into_value(self) -> Option<Value> {
        self.value.map(Arc::unwrap_or_clone)
    }
}

impl Map {
    /// A map of keys, a tensor of rank 1 of integers or strings, to the same number of values.
    ///
    /// # Errors
    /// If the keys are not such a tensor, or their number differs from that of the values.
    pub fn new(keys: Tensor, values: Sequence) -> Result<Map> {
        use DType::{Int8, Int16, Int32, Int64, String, Uint8, Uint16, Uint32, Uint64};
        let fits = matches!(keys.dtype(), Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 | String);
        if !fits || keys.rank() != 1 {
            let (dtype, rank) = (keys.dtype(), keys.rank());
            let text = format!("keys of a map are {dtype} of rank {rank}: integers or strings of rank 1 are needed");
            return Err(Error::input(text));
        }
        if keys.len() != values.values().len() {
            let (keys, values) = (keys.len(), values.values().len());
            return Err(Error::input(format!("a map has {keys} keys and {values} values")));
        }
        Ok(Map(Arc::new(Entries { keys, values })))
    }

    /// The keys: a tensor of rank 1.
    pub fn keys(&self) -> &Tensor {
        &self.0.keys
    }

    pub(crate) fn as_sequence(&self) -> &Sequence {
        &self.0.values
    }

    /// The values, in the order of the keys.
    pub fn values(&self) -> &[Value] {
        self.0.values.values()
    }
}

/// Maximum number of elements shown of a sequence or map.
const SHOWN: usize = 6;

/// A tensor as [`Tensor`]'s; `seq(float) [float[1] [1], ..]`, `optional(float) none`, `map(int64,float) {1: float[] 2}`.
/// The length of the text is bounded.
impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self, 0)
    }
}

fn show(f: &mut fmt::Formatter<'_>, value: &Value, depth: usize) -> fmt::Result {
    let list = |f: &mut fmt::Formatter<'_>, values: &[Value], key: &dyn Fn(usize) -> String| {
        // Nested values are cut sooner.
        let shown = if depth == 0 { SHOWN } else { 2 };
        for (k, value) in values.iter().take(shown).enumerate() {
            write!(f, "{}{}", if k == 0 { "" } else { ", " }, key(k))?;
            if depth < 2 { show(f, value, depth + 1)? } else { f.write_str("…")? }
        }
        if values.len() > shown { write!(f, ", … {} elements", values.len()) } else { Ok(()) }
    };
    match value {
        Value::Tensor(tensor) => Display::fmt(tensor, f),
        Value::Sequence(sequence) => {
            write!(f, "{} [", value.type_text())?;
            list(f, sequence.values(), &|_| String::new())?;
            f.write_str("]")
        }
        Value::Optional(optional) => {
            write!(f, "{} ", value.type_text())?;
            match optional.get() {
                None => f.write_str("none"),
                Some(_) if depth >= 2 => f.write_str("…"),
                Some(value) => show(f, value, depth + 1),
            }
        }
        Value::Map(map) => {
            let keys: Vec<String> = map.keys().scalars().take(SHOWN).map(|key| format!("{key}: ")).collect();
            write!(f, "{} {{", value.type_text())?;
            list(f, map.values(), &|k| keys.get(k).cloned().unwrap_or_default())?;
            f.write_str("}")
        }
    }
}

impl Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Tensor(tensor) => Debug::fmt(tensor, f),
            other => write!(f, "Value({other})"),
        }
    }
}

macro_rules! shown_as_values {
    ($($type:ident),*) => {$(
        impl Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($type), "({})"), Value::$type(self.clone()))
            }
        }

        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$type(value)
            }
        }
    )*};
}

shown_as_values!(Sequence, Optional, Map);

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

impl From<&Tensor> for Value {
    fn from(tensor: &Tensor) -> Value {
        Value::Tensor(tensor.clone())
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Value {
        value.clone()
    }
}

#[cfg(feature = "ndarray")]
impl<T: Element, S: ndarray::Data<Elem = T>, D: ndarray::Dimension> From<ndarray::ArrayBase<S, D>> for Value {
    fn from(array: ndarray::ArrayBase<S, D>) -> Value {
        Value::Tensor(array.into())
    }
}

/// A tensor of rank 1. For another shape see [`Tensor::from_elements`].
impl<T: Element> From<Vec<T>> for Value {
    fn from(elements: Vec<T>) -> Value {
        Value::Tensor(elements.into())
    }
}

/// A tensor of rank 1, with a copy of the elements.
impl<T: Element> From<&[T]> for Value {
    fn from(elements: &[T]) -> Value {
        Value::Tensor(elements.to_vec().into())
    }
}

/// A tensor of rank 1, with a copy of the elements.
impl<T: Element, const N: usize> From<[T; N]> for Value {
    fn from(elements: [T; N]) -> Value {
        Value::Tensor(elements.to_vec().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(values: &[f32]) -> Value {
        values.into()
    }

    #[test]
    fn types_and_texts() {
        let sequence = Sequence::new(DType::Float.into(), [float(&[1.0]), float(&[])]).unwrap();
        let keys = Tensor::from(vec![7i64, 9]);
        for (value, text) in [
            (float(&[1.5]), "float32[1] [1.5]"),
            (sequence.clone().into(), "seq(float32) [float32[1] [1], float32[0] []]"),
            (
                Optional::some(sequence.clone().into()).into(),
                "optional(seq(float32)) seq(float32) [float32[1] [1], float32[0] []]",
            ),
            (Optional::none(DType::Int64.into()).into(), "optional(int64) none"),
            (Optional::open().into(), "empty optional none"),
            (Sequence::open().into(), "empty sequence []"),
            (Map::new(keys, sequence).unwrap().into(), "map(int64,float32) {7: float32[1] [1], 9: float32[0] []}"),
        ] {
            assert_eq!(value.to_string(), text);
            assert!(value.value_type().is_none_or(|t| value.is_of(&t)));
        }
    }

    #[test]
    fn what_is_open_fits_every_type_of_its_kind() {
        let (float, int) = (ValueType::Tensor(DType::Float), ValueType::Tensor(DType::Int64));
        let open = Value::from(Sequence::open());
        assert!(open.is_of(&float.clone().sequence()) && open.is_of(&int.clone().sequence()) && !open.is_of(&float));
        let typed = Value::from(Sequence::new(float.clone(), []).unwrap());
        assert!(typed.is_of(&float.clone().sequence()) && !typed.is_of(&int.sequence()));
        assert_ne!(typed, open);
    }

    #[test]
    fn elements_are_of_one_type() {
        let error = Sequence::new(DType::Float.into(), [float(&[1.0]), vec![1i64].into()]).unwrap_err();
        assert_eq!(error.to_string(), "element 1 of a sequence of float32 is of type int64");
        assert_eq!(error.place().position.as_deref(), Some(&[1][..]));
        let values = || Sequence::new(DType::Float.into(), [float(&[1.0])]).unwrap();
        assert!(Map::new(vec![1i64, 2].into(), values()).is_err());
        assert!(Map::new(vec![1f32].into(), values()).is_err());
        assert!(Map::new(Tensor::scalar(1i64), values()).is_err());
    }

    #[test]
    fn text_is_bounded() {
        let many = |value: Value| Value::from(Sequence::new(value.value_type().unwrap(), vec![value; 100]).unwrap());
        let deep = many(many(many(many(float(&[0.5; 100])))));
        assert!(deep.to_string().len() < 6000, "{}", deep.to_string().len());
    }
}
