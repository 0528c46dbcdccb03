//! Inputs and outputs of a graph: declared types and shapes, and checking values against them.

use super::Graph;
use crate::dtype::{DType, ShapeText};
use crate::error::{Error, Result, quote};
use crate::limits::Limits;
use crate::operator::Feeds;
use crate::tensor::Tensor;
use crate::value::{Dim, DimsText, Value, ValueType};
use smallvec::SmallVec;

/// What a model declares about an input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueInfo {
    /// The name.
    pub name: String,
    /// The type, if declared.
    pub value_type: Option<ValueType>,
    /// The shape of a tensor, if declared.
    pub shape: Option<Vec<Dim>>,
}

impl ValueInfo {
    /// The element type of a tensor, if declared.
    pub fn dtype(&self) -> Option<DType> {
        self.value_type.as_ref()?.dtype()
    }

    /// The names of sizes.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &str> {
        let dims = self.shape.iter().flatten();
        dims.filter_map(|dim| if let Dim::Symbol(name) = dim { Some(name.as_str()) } else { None })
    }
}

/// The size of each symbol and the name of the input that set it, once a feed has.
pub(crate) type Symbols<'a> = SmallVec<[Option<(usize, &'a str)>; 4]>;

impl Graph {
    /// Checks that each input has a value of its declared type and shape. Returns the sizes of the symbols.
    pub(crate) fn check_feeds(&self, feeds: Feeds<'_>) -> Result<Symbols<'_>> {
        let mut symbols: Symbols<'_> = SmallVec::from_elem(None, self.symbols);
        for (k, (input, default)) in self.inputs.iter().zip(&self.defaults).enumerate() {
            let info = &input.info;
            let Some(value) = feeds.get(k).or(default.as_ref()) else {
                return Err(missing(info));
            };
            if let Some(want) = info.value_type.as_ref().filter(|want| !value.is_of(want)) {
                return Err(wrong_type(&info.name, value, want));
            }
            if let Value::Tensor(tensor) = value {
                check_shape(info, &input.symbols, tensor.shape(), &mut symbols)?;
            }
        }
        Ok(symbols)
    }

    /// Checks the ranks of feeds: operators take time and memory for each dimension.
    pub(crate) fn check_ranks(&self, feeds: Feeds<'_>, limits: &Limits) -> Result<()> {
        for (k, input) in self.inputs.iter().enumerate() {
            let rank = match feeds.get(k) {
                Some(Value::Tensor(tensor)) => tensor.rank(),
                Some(Value::Sequence(sequence)) => {
                    let tensors = sequence.values().iter().filter_map(|value| value.tensor().ok());
                    tensors.map(Tensor::rank).max().unwrap_or(0)
                }
                _ => 0,
            };
            if rank > limits.rank {
                let name = &input.info.name;
                limits.check_rank(&format!("input {} has", quote(name)), rank).map_err(|error| error.about(name))?;
            }
        }
        Ok(())
    }
}

#[cold]
fn missing(info: &ValueInfo) -> Error {
    let declared = match (&info.value_type, &info.shape) {
        (Some(value_type), Some(dims)) => format!(" ({value_type}, {})", DimsText(dims)),
        (Some(value_type), None) => format!(" ({value_type})"),
        (None, _) => String::new(),
    };
    Error::input(format!("missing input {}{declared}", quote(&info.name))).about(&info.name)
}

#[cold]
fn wrong_type(name: &str, value: &Value, want: &ValueType) -> Error {
    let what = if matches!((value, want), (Value::Tensor(_), ValueType::Tensor(_))) { "element type" } else { "type" };
    fault(name, format!("has {what} {}, but the model expects {want}", value.type_text()))
}

fn check_shape<'a>(
    info: &'a ValueInfo,
    numbers: &[Option<usize>],
    shape: &[usize],
    symbols: &mut Symbols<'a>,
) -> Result<()> {
    let name = &info.name;
    let Some(dims) = &info.shape else { return Ok(()) };
    if dims.len() != shape.len() {
        let (text, rank) = (ShapeText(shape), shape.len());
        return Err(fault(name, format!("has shape {text} of rank {rank}, but the model expects rank {}", dims.len())));
    }
    for (axis, ((dim, symbol), &size)) in dims.iter().zip(numbers).zip(shape).enumerate() {
        let known = symbol.and_then(|k| symbols.get_mut(k));
        let text = match (dim, known) {
            (Dim::Fixed(fixed), _) if *fixed != size => format!("but the model expects {fixed}"),
            (Dim::Symbol(symbol), Some(Some((known, by)))) if *known != size => {
                format!("but {} is {known} in {}", quote(symbol), quote(by))
            }
            (_, Some(known)) => {
                known.get_or_insert((size, name));
                continue;
            }
            _ => continue,
        };
        let error = fault(name, format!("has shape {}: dimension {axis} is {size}, {text}", ShapeText(shape)));
        return Err(error.axis(axis as i64).size(size));
    }
    Ok(())
}

#[cold]
fn fault(input: &str, text: String) -> Error {
    Error::input(format!("input {} {text}", quote(input))).about(input)
}

impl super::Output {
    /// Says how a shape differs from the declared one.
    pub(crate) fn note(&self, shape: &[usize], symbols: &Symbols<'_>) -> Option<String> {
        let dims = self.info.shape.as_ref()?;
        let same = |((dim, symbol), size): ((&Dim, &Option<usize>), &usize)| match (dim, symbol) {
            (Dim::Fixed(fixed), _) => fixed == size,
            (_, Some(k)) => symbols.get(*k).is_none_or(|known| known.is_none_or(|(known, _)| known == *size)),
            _ => true,
        };
        if dims.len() == shape.len() && dims.iter().zip(&self.symbols).zip(shape).all(same) {
            return None;
        }
        let (name, shape) = (quote(&self.name), ShapeText(shape));
        Some(format!("output {name} has shape {shape}, but is declared as {}", DimsText(dims)))
    }
}

/// Checks an initializer that is also an input against the input's type, and its shape where that is fixed.
pub(super) fn check_default(info: &ValueInfo, value: &Value) -> Result<()> {
    let name = quote(&info.name);
    let fault = |text: String| Err(Error::model(text).about(&info.name));
    if let Some(want) = info.value_type.as_ref().filter(|want| !value.is_of(want)) {
        let got = value.type_text();
        return fault(format!("initializer {name} has element type {got}, but the input {name} has {want}"));
    }
    let Value::Tensor(tensor) = value else { return Ok(()) };
    if let Some(dims) = info.shape.as_ref().filter(|dims| !fits(dims, tensor.shape())) {
        let (shape, dims) = (ShapeText(tensor.shape()), DimsText(dims));
        return fault(format!("initializer {name} has shape {shape}, but the input {name} is declared as {dims}"));
    }
    Ok(())
}

/// Whether a shape matches its declaration.
fn fits(dims: &[Dim], shape: &[usize]) -> bool {
    let same = |(axis, (dim, size)): (usize, (&Dim, &usize))| match dim {
        Dim::Fixed(fixed) => fixed == size,
        Dim::Symbol(_) => dims.iter().zip(shape).take(axis).all(|(other, known)| other != dim || known == size),
        Dim::Formula(_) | Dim::Unknown => true,
    };
    dims.len() == shape.len() && dims.iter().zip(shape).enumerate().all(same)
}
