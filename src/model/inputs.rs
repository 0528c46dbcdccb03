//! The feeds of a run.

use super::Model;
use crate::error::{Error, Result, quote};
use crate::value::Value;
use smallvec::SmallVec;

/// Values to feed, by the input's name or in the model's order. Made by [`inputs!`](crate::inputs), or collected from
/// pairs.
#[derive(Debug, Default)]
pub struct Inputs<'a>(SmallVec<[(Option<&'a str>, Value); 2]>);

impl<'a> Inputs<'a> {
    /// No values.
    pub fn new() -> Inputs<'a> {
        Inputs::default()
    }

    /// Adds a value for an input by name: a tensor or another value, a reference to one, an array, a vector or a slice.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: impl Into<Value>) -> Inputs<'a> {
        self.0.push((Some(name), value.into()));
        self
    }

    /// Adds a value for the next input in the model's order, starting with the first.
    #[must_use]
    pub fn next(mut self, value: impl Into<Value>) -> Inputs<'a> {
        self.0.push((None, value.into()));
        self
    }

    /// Puts each value at the place of its input.
    pub(super) fn place<'v>(&'v self, model: &Model, feeds: &mut [Option<&'v Value>]) -> Result<()> {
        let inputs = &model.0.graph.inputs;
        let mut next = 0;
        for (k, (name, value)) in self.0.iter().enumerate() {
            let place = match name {
                None => {
                    next += 1;
                    next - 1
                }
                // Feeds usually come in the order of the inputs.
                Some(name) if inputs.get(k).is_some_and(|input| input.info.name == *name) => k,
                Some(name) => model.place(name)?,
            };
            match feeds.get_mut(place) {
                Some(feed) if feed.is_none() => *feed = Some(value),
                Some(_) => {
                    let name = inputs.get(place).map_or("", |input| &input.info.name);
                    return Err(Error::input(format!("input {} is fed twice", quote(name))).about(name));
                }
                None => {
                    let count = inputs.len();
                    let s = if count == 1 { "" } else { "s" };
                    return Err(Error::input(format!(
                        "more than {count} values are fed: the model has {count} input{s}"
                    ))
                    .value(next as i128)
                    .size(count));
                }
            }
        }
        Ok(())
    }
}

impl<'a, V: Into<Value>> FromIterator<(&'a str, V)> for Inputs<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, V)>>(pairs: I) -> Inputs<'a> {
        Inputs(pairs.into_iter().map(|(name, value)| (Some(name), value.into())).collect())
    }
}

/// Values to feed to [`Model::run`](crate::Model::run), by name or in the order of the inputs: tensors and other
/// values, references to them (which share the elements), arrays, vectors, slices.
///
/// ```
/// use ndarray::array;
/// use onnxref::{Tensor, inputs};
///
/// let data = Tensor::from_array(array![1.0f32, 2.0]);
/// let by_name = inputs! { "data" => &data, "indices" => array![1i64, 0] };
/// let in_order = inputs![&data, vec![1i64, 0]];
/// ```
#[macro_export]
macro_rules! inputs {
    ($($name:expr => $value:expr),* $(,)?) => {
        $crate::Inputs::new()$(.with($name, $value))*
    };
    ($($value:expr),* $(,)?) => {
        $crate::Inputs::new()$(.next($value))*
    };
}
