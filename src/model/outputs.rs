//! The outputs of a run.

use crate::error::{Error, Result, quote};
use crate::tensor::Tensor;
use crate::value::Value;
use smallvec::SmallVec;
use std::ops::Index;
use std::sync::Arc;

/// The outputs of a run, by name and in the order of the model.
#[derive(Debug, Default)]
pub struct Outputs {
    pub(super) list: SmallVec<[(Arc<str>, Value); 1]>,
    pub(super) notes: Vec<String>,
}

impl Outputs {
    /// Moves a tensor out as an array. On an error it stays.
    ///
    /// # Errors
    /// If there is no output of that name (any more), it is not a tensor, or its element type is not `T`.
    #[cfg(feature = "ndarray")]
    pub fn take<T: crate::dtype::Element>(&mut self, name: &str) -> Result<ndarray::ArrayD<T>> {
        self.tensor(name)?.view::<T>()?;
        self.take_value(name)?.into_tensor()?.into_array()
    }

    /// Moves an output out.
    ///
    /// # Errors
    /// If there is no output of that name (any more).
    pub fn take_value(&mut self, name: &str) -> Result<Value> {
        let place = self.list.iter().position(|(n, _)| **n == *name).ok_or_else(|| missing(name))?;
        Ok(self.list.remove(place).1)
    }

    /// An output by name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// A tensor by name.
    ///
    /// # Errors
    /// If there is no output of that name, or it is not a tensor.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        self.get(name).ok_or_else(|| missing(name))?.tensor()
    }

    /// All outputs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.list.iter().map(|(name, value)| (&**name, value))
    }

    /// The number of outputs.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no outputs (any more).
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Outputs whose shape is not the declared one, one line each. This is common in real models; the values are right.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

#[cold]
fn missing(name: &str) -> Error {
    Error::input(format!("there is no output {}", quote(name))).about(name)
}

impl IntoIterator for Outputs {
    type Item = (Arc<str>, Value);
    type IntoIter = smallvec::IntoIter<[(Arc<str>, Value); 1]>;

    /// All outputs, by name and in the order of the model.
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl Index<&str> for Outputs {
    type Output = Tensor;

    /// A tensor by name.
    ///
    /// # Panics
    /// If there is no such tensor; see [`Outputs::tensor`].
    #[allow(clippy::panic)] // as indexing does
    fn index(&self, name: &str) -> &Tensor {
        self.tensor(name).unwrap_or_else(|error| panic!("{error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_take_leaves_the_output() {
        let mut outputs = Outputs::default();
        outputs.list.push(("y".into(), vec![1f32, 2.0].into()));
        assert_eq!(outputs.take::<i64>("y").unwrap_err().to_string(), "the tensor has element type float32, not int64");
        assert_eq!(outputs.take::<f32>("z").unwrap_err().to_string(), "there is no output \"z\"");
        assert_eq!(outputs.take::<f32>("y").unwrap(), ndarray::array![1f32, 2.0].into_dyn());
        assert!(outputs.is_empty() && outputs.take::<f32>("y").is_err());
    }
}
