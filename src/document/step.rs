//! A node that is converted, and what its changes are made of.

use super::names::Names;
use super::{Attribute, AttributeValue, Initializer, Node};
use crate::dtype::DType;
use crate::graph::{GraphDetails, NodeDetails, ValueDetails};
use crate::tensor::Tensor;
use crate::value::{Dim, Value};
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
    names: &'a mut Names,
    /// What some node or output of the model reads.
    read: &'a HashSet<String>,
    /// The opset that the model gets: further nodes have its form.
    to: i64,
    pub(super) beside: Beside,
    /// It was an Upsample, whose scales are at least 1.
    pub(super) was_upsample: bool,
}

/// What comes to a node that is converted.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) constants: Vec<Initializer>,
    /// Nodes before it, and after it.
    pub(super) before: Vec<Node>,
    pub(super) after: Vec<Node>,
}

/// The opset whose Unsqueeze has its axes as an input.
const AXES_INPUT: i64 = 13;

/// The opset whose Reshape may take a zero as a size.
const ALLOW_ZERO: i64 = 14;

impl<'a> Step<'a> {
    pub(super) fn new(
        node: Node,
        known: Option<(&'a NodeDetails, &'a GraphDetails)>,
        names: &'a mut Names,
        read: &'a HashSet<String>,
        to: i64,
    ) -> Step<'a> {
        Step { node, known, names, read, to, beside: Beside::default(), was_upsample: false }
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
        let name = self.name(what);
        self.beside.constants.push(Initializer::new(&name, tensor));
        self.set_input(input, name);
    }

    /// A new name.
    fn name(&mut self, what: &str) -> String {
        let of = self.node.outputs.iter().find(|name| !name.is_empty()).unwrap_or(&self.node.op_type);
        self.names.make(&format!("{of}_{what}"))
    }

    fn set_input(&mut self, input: usize, name: String) {
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

    /// The element type of an input, if it is a tensor and that follows.
    pub(super) fn dtype(&self, k: usize) -> Option<DType> {
        self.value(k)?.value_type.as_ref()?.dtype()
    }

    /// An attribute with a number becomes an input of the type of the first one.
    pub(super) fn number_to_input(&mut self, name: &str, input: usize, default: Option<f32>) -> Done {
        let Some(number) = self.float(name)? else { return Ok(()) };
        self.remove(name);
        if default.map(f32::to_bits) == Some(number.to_bits()) {
            return Ok(());
        }
        let tensor = match self.dtype(0) {
            Some(DType::Float) => Tensor::scalar(number),
            Some(DType::Double) => Tensor::scalar(f64::from(number)),
            Some(DType::Float16) => Tensor::scalar(f16::from_f32(number)),
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
        if self.was_upsample {
            return Ok("floor");
        }
        let unknown = || "its scales aren't constants, on which nearest_mode of {new} depends".to_string();
        let name = self.node.inputs.get(1).ok_or_else(unknown)?;
        let own =
            self.beside.constants.iter().find(|constant| constant.name == *name).and_then(|own| own.tensor().ok());
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

    /// Drops the outputs after so many, if nobody reads them. Returns whether that is so.
    pub(super) fn drop_outputs_after(&mut self, count: usize) -> bool {
        let unread = self.node.outputs.iter().skip(count).all(|name| !self.read.contains(name));
        if unread {
            self.node.outputs.truncate(count);
        }
        unread
    }

    /// Drops `is_test`, which must be true.
    pub(super) fn inference(&mut self) -> Done {
        if self.int("is_test")?.unwrap_or(0) == 0 {
            return Err("it is for training, as is_test is 0, and {new} is for inference".to_string());
        }
        self.remove("is_test");
        Ok(())
    }

    /// An axis from which all others were one becomes an axis alone: that of a matrix if there are several.
    pub(super) fn last_axis(&mut self) -> Done {
        let axis = self.int("axis")?.unwrap_or(1);
        let dims = self.dims(0);
        let alone = dims.as_ref().is_some_and(|dims| {
            let from = usize::try_from(if axis < 0 { axis + dims.len() as i64 } else { axis });
            from.is_ok_and(|axis| axis < dims.len() && dims.iter().skip(axis + 1).all(|size| *size == Some(1)))
        });
        if alone || axis == -1 {
            self.set("axis", axis);
            return Ok(());
        }
        // Before opset 14, a size of 0 stands for another one.
        let filled = dims.is_some_and(|dims| dims.iter().all(|size| size.is_some_and(|size| size > 0)));
        if self.to < ALLOW_ZERO && !filled {
            return Err("its axis isn't the last dimension, which {new} can't say for a shape that isn't known".into());
        }
        let ([x], [y]) = (self.node.inputs.as_slice(), self.node.outputs.as_slice()) else {
            return Err("it has not one input and one output".to_string());
        };
        let (x, y) = (x.clone(), y.clone());
        let [matrix, computed, shape] = ["matrix", "computed", "shape"].map(|what| self.name(what));
        self.beside.before.push(Node::new("Flatten", [&x], [&matrix]).attribute("axis", axis));
        self.beside.before.push(Node::new("Shape", [&x], [&shape]));
        let mut back = Node::new("Reshape", [&computed, &shape], [&y]);
        if self.to >= ALLOW_ZERO {
            back = back.attribute("allowzero", 1i64);
        }
        self.beside.after.push(back);
        (self.node.inputs, self.node.outputs) = (vec![matrix], vec![computed]);
        self.set("axis", -1i64);
        Ok(())
    }

    /// Adds dimensions of size 1 behind those of an input.
    pub(super) fn unsqueeze(&mut self, input: usize, rank: usize, count: usize) {
        let Some(name) = self.node.inputs.get(input).cloned() else { return };
        let axes: Vec<i64> = (0..count).map(|k| (rank + k) as i64).collect();
        let wide = self.name("wide");
        let node = if self.to >= AXES_INPUT {
            let constant = self.name("axes");
            self.beside.constants.push(Initializer::new(&constant, &Tensor::from(axes)));
            Node::new("Unsqueeze", [name, constant], [&wide])
        } else {
            Node::new("Unsqueeze", [name], [&wide]).attribute("axes", axes)
        };
        self.beside.before.push(node);
        self.set_input(input, wide);
    }

    /// Drops what said how the second input is broadcast.
    pub(super) fn broadcast(&mut self) -> Done {
        if self.int("broadcast")?.unwrap_or(0) != 0
            && let Some(axis) = self.int("axis")?
        {
            let ranks = self.dims(0).zip(self.dims(1)).map(|(one, other)| (one.len(), other.len()));
            let Some((one, other)) = ranks else {
                let text = format!("its second input is broadcast from axis {axis}, which {LATER} can't say");
                return Err(format!("{text} for numbers of dimensions that aren't known"));
            };
            let from = usize::try_from(if axis < 0 { axis + one as i64 } else { axis });
            let behind = from.ok().and_then(|from| one.checked_sub(from + other));
            match behind.ok_or_else(|| format!("its second input can't be broadcast from axis {axis}"))? {
                0 => {}
                behind => self.unsqueeze(1, other, behind),
            }
        }
        self.remove("broadcast");
        self.remove("axis");
        Ok(())
    }
}
