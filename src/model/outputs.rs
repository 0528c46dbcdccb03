//! What a run gives.

use crate::dtype::Element;
use crate::error::{Error, Result, quote};
use crate::tensor::Tensor;
use crate::value::Value;
use ndarray::ArrayD;
use smallvec::SmallVec;
use std::ops::Index;
use std::sync::Arc;

/// The values that a run gave, by name and in the order of the model.
#[derive(Debug, Default)]
pub struct Outputs {
    pub(super) list: SmallVec<[(Arc<str>, Value); 1]>,
    pub(super) notes: Vec<String>,
}

impl Outputs {
    /// Takes a tensor out as an array. On an error it stays.
    ///
    /// # Errors
    /// There is no output of that name (any more); it is no tensor, or its element type is not `T`.
    pub fn take<T: Element>(&mut self, name: &str) -> Result<ArrayD<T>> {
        self.tensor(name)?.view::<T>()?;
        self.take_value(name)?.into_tensor()?.into_array()
    }

    /// Takes an output out.
    ///
    /// # Errors
    /// There is no output of that name (any more).
    pub fn take_value(&mut self, name: &str) -> Result<Value> {
        let place = self.list.iter().position(|(n, _)| **n == *name).ok_or_else(|| missing(name))?;
        Ok(self.list.remove(place).1)
    }

    /// The output of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// The tensor of a name.
    ///
    /// # Errors
    /// There is no output of that name, or it is no tensor.
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

    /// Whether there is no output (any more).
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Outputs whose shape is not the one that the model declares, a line each. This is common in real models, and
    /// the values are right.
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

    /// The tensor of a name.
    ///
    /// # Panics
    /// There is none; see [`Outputs::tensor`].
    #[allow(clippy::panic)] // what an index does
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
        assert_eq!(outputs.take::<i64>("y").unwrap_err().to_string(), "the tensor has element type float, not int64");
        assert_eq!(outputs.take::<f32>("z").unwrap_err().to_string(), "there is no output \"z\"");
        assert_eq!(outputs.take::<f32>("y").unwrap(), ndarray::array![1f32, 2.0].into_dyn());
        assert!(outputs.is_empty() && outputs.take::<f32>("y").is_err());
    }
}
