//! A node that is converted, and what its changes are made of.

use super::{Attribute, AttributeValue, Initializer, Node};
use crate::dtype::DType;
use crate::graph::{GraphDetails, NodeDetails, ValueDetails};
use crate::tensor::Tensor;
use crate::value::{Dim, Value, ValueType};
use half::f16;
use std::collections::HashSet;

use AttributeValue as V;

/// Or why a node can't be converted.
pub(super) type Done<T = ()> = Result<T, String>;

/// Stands for the next version in these texts.
pub(super) const LATER: &str = "{new}";

/// A node on its way from one version of its operator to the next.
pub(super) struct Step<'a> {
    pub(super) node: Node,
    known: Option<(&'a NodeDetails, &'a GraphDetails)>,
    names: &'a mut HashSet<String>,
    pub(super) constants: Vec<Initializer>,
}

impl<'a> Step<'a> {
    pub(super) fn new(
        node: Node,
        known: Option<(&'a NodeDetails, &'a GraphDetails)>,
        names: &'a mut HashSet<String>,
    ) -> Step<'a> {
        Step { node, known, names, constants: Vec::new() }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.node.attributes.retain(|attribute| attribute.name != name);
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<AttributeValue>) {
        match self.node.attributes.iter_mut().find(|attribute| attribute.name == name) {
            Some(attribute) => attribute.value = value.into(),
            None => self.node.attributes.push(Attribute::new(name, value).into()),
        }
    }

    /// Sets an attribute that isn't given.
    pub(super) fn default(&mut self, name: &str, value: impl Into<AttributeValue>) {
        if self.node.get(name).is_none() {
            self.set(name, value);
        }
    }

    pub(super) fn rename(&mut self, old: &str, new: &str) {
        if let Some(attribute) = self.node.attributes.iter_mut().find(|attribute| attribute.name == old) {
            attribute.name = new.to_string();
        }
    }

    pub(super) fn get<T>(&self, name: &str, what: &str, read: impl FnOnce(&V) -> Option<T>) -> Done<Option<T>> {
        match self.node.get(name) {
            None => Ok(None),
            Some(V::Reference(..)) => Err(format!("its attribute {name} is an attribute of the function")),
            Some(value) => read(value).map(Some).ok_or_else(|| format!("its attribute {name} is not {what}")),
        }
    }

    pub(super) fn int(&self, name: &str) -> Done<Option<i64>> {
        self.get(name, "an integer", |value| if let V::Int(value) = value { Some(*value) } else { None })
    }

    pub(super) fn float(&self, name: &str) -> Done<Option<f32>> {
        self.get(name, "a number", |value| if let V::Float(value) = value { Some(*value) } else { None })
    }

    pub(super) fn text(&self, name: &str) -> Done<Option<String>> {
        self.get(name, "a text", |value| match value {
            V::String(value) => String::from_utf8(value.to_vec()).ok(),
            _ => None,
        })
    }

    /// Makes a constant that is an input of the node.
    pub(super) fn constant(&mut self, what: &str, input: usize, tensor: &Tensor) {
        let of = self.node.outputs.iter().find(|name| !name.is_empty()).unwrap_or(&self.node.op_type);
        let mut name = format!("{of}_{what}");
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        self.constants.push(Initializer::new(&name, tensor));
        if self.node.inputs.len() <= input {
            self.node.inputs.resize(input + 1, String::new());
        }
        if let Some(place) = self.node.inputs.get_mut(input) {
            *place = name;
        }
    }

    /// An attribute with integers becomes an input.
    pub(super) fn list_to_input(&mut self, name: &str, input: usize) -> Done {
        let read = |value: &V| if let V::Ints(values) = value { Some(values.clone()) } else { None };
        if let Some(values) = self.get(name, "a list of integers", read)? {
            self.remove(name);
            self.constant(name, input, &Tensor::from(values));
        }
        Ok(())
    }

    /// An attribute with a number becomes an input of the type of the first one.
    pub(super) fn number_to_input(&mut self, name: &str, input: usize, default: Option<f32>) -> Done {
        let Some(number) = self.float(name)? else { return Ok(()) };
        self.remove(name);
        if default == Some(number) {
            return Ok(());
        }
        let tensor = match self.value(0).and_then(|value| value.value_type.as_ref()) {
            Some(ValueType::Tensor(DType::Float)) => Tensor::scalar(number),
            Some(ValueType::Tensor(DType::Double)) => Tensor::scalar(f64::from(number)),
            Some(ValueType::Tensor(DType::Float16)) => Tensor::scalar(f16::from_f32(number)),
            _ => return Err(format!("{name} becomes an input, and its type doesn't follow")),
        };
        self.constant(name, input, &tensor);
        Ok(())
    }

    pub(super) fn value(&self, input: usize) -> Option<&'a ValueDetails> {
        let (node, details) = self.known?;
        details.values.get((*node.inputs.get(input)?)?)
    }

    /// The sizes of an input, if its rank is known.
    pub(super) fn dims(&self, input: usize) -> Option<Vec<Option<usize>>> {
        let dims = self.value(input)?.shape.as_ref()?;
        Some(dims.iter().map(|dim| if let Dim::Fixed(size) = dim { Some(*size) } else { None }).collect())
    }

    /// Whether Cast-23 and Cast-24 give the same.
    pub(super) fn rounds_alike(&self, to: Option<DType>) -> Done {
        match to {
            Some(to @ (DType::Int4 | DType::Uint4 | DType::Float4e2m1)) => {
                Err(format!("what {} can't hold becomes another number in {LATER}", to.name()))
            }
            _ => Ok(()),
        }
    }

    /// How Resize-10 rounds places: down, or up along axes that become smaller.
    pub(super) fn nearest(&self) -> Done<&'static str> {
        let unknown = || "its scales aren't constants, on which nearest_mode of {new} depends".to_string();
        let name = self.node.inputs.get(1).ok_or_else(unknown)?;
        let own = self.constants.iter().find(|constant| constant.name == *name).and_then(|own| own.tensor().ok());
        let known = || match self.value(1)?.constant.as_ref()? {
            Value::Tensor(tensor) => Some(tensor.clone()),
            _ => None,
        };
        let scales = own.or_else(known).ok_or_else(unknown)?;
        let scales = scales.as_slice::<f32>().map_err(|_| unknown())?;
        match (scales.iter().any(|scale| *scale < 1.0), scales.iter().any(|scale| *scale > 1.0)) {
            (false, _) => Ok("floor"),
            (true, false) => Ok("ceil"),
            (true, true) => Err("its axes become larger and smaller, which {new} rounds alike".to_string()),
        }
    }

    pub(super) fn has_outputs_after(&self, count: usize) -> bool {
        self.node.outputs.iter().skip(count).any(|name| !name.is_empty())
    }

    /// Drops `is_test`, which must be true.
    pub(super) fn inference(&mut self) -> Done {
        if self.int("is_test")?.unwrap_or(0) == 0 {
            return Err("it is for training, as is_test is 0, and {new} is for inference".to_string());
        }
        self.remove("is_test");
        Ok(())
    }

    /// An axis from which all others were one becomes an axis alone.
    pub(super) fn last_axis(&mut self) -> Done {
        let axis = self.int("axis")?.unwrap_or(1);
        let refused = || "its axis isn't the last dimension, which {new} can't say".to_string();
        if axis != -1 {
            let dims = self
                .dims(0)
                .ok_or("its axis must be the last dimension for {new}, and how many there are isn't known")?;
            let axis =
                usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis }).map_err(|_| refused())?;
            if axis >= dims.len() || dims.iter().skip(axis + 1).any(|size| *size != Some(1)) {
                return Err(refused());
            }
        }
        self.set("axis", axis);
        Ok(())
    }

    /// Drops what said how the second input is broadcast.
    pub(super) fn broadcast(&mut self) -> Done {
        if self.int("broadcast")?.unwrap_or(0) != 0
            && let Some(axis) = self.int("axis")?
        {
            let ranks = self.dims(0).zip(self.dims(1)).map(|(one, other)| (one.len() as i64, other.len() as i64));
            let last = ranks.is_some_and(|(one, other)| (if axis < 0 { axis + one } else { axis }) == one - other);
            if !last {
                return Err(format!("its second input is broadcast from axis {axis}, which {LATER} can't say"));
            }
        }
        self.remove("broadcast");
        self.remove("axis");
        Ok(())
    }
}
