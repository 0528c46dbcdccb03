//! A node that is converted, and what its changes are made of.

use super::names::Names;
use super::{Attribute, AttributeValue, Initializer, Node};
use crate::dtype::DType;
use crate::graph::{GraphDetails, NodeDetails, Origin, ValueDetails};
use crate::operator::Axis;
use crate::tensor::{Scalar, Tensor};
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
    /// The version that it had at first.
    pub(super) first: i64,
    pub(super) known: Option<(&'a NodeDetails, &'a GraphDetails)>,
    pub(super) names: &'a mut Names,
    /// What some node or output of the model reads.
    pub(super) read: &'a HashSet<String>,
    /// The opset that the model gets: further nodes have its form.
    pub(super) to: i64,
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

/// The opset that CastLike came with.
const CAST_LIKE: i64 = 15;

/// The scale of each group is repeated for so many channels at most.
const CHANNELS: usize = 1 << 16;

impl<'a> Step<'a> {
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
        let name = self.named(what, tensor);
        self.set_input(input, name);
    }

    /// The name of a new constant.
    fn named(&mut self, what: &str, tensor: &Tensor) -> String {
        let name = self.name(what);
        self.beside.constants.push(Initializer::new(&name, tensor));
        name
    }

    /// Puts a node before this one, from an input to what it has instead.
    fn before(&mut self, input: usize, what: &str, node: impl FnOnce(String, String) -> Node) {
        let Some(name) = self.node.inputs.get(input).cloned() else { return };
        let made = self.name(what);
        self.beside.before.push(node(name, made.clone()));
        self.set_input(input, made);
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
        if default.map(f32::to_bits) != Some(number.to_bits()) {
            let name = self.number(name, number)?;
            self.set_input(input, name);
        }
        Ok(())
    }

    /// The name of a new constant, or of what a new node gives: a number of the type of the first input.
    fn number(&mut self, what: &str, number: f32) -> Done<String> {
        let tensor = match (self.dtype(0), self.node.inputs.first().cloned()) {
            (Some(DType::Float), _) => Tensor::scalar(number),
            (Some(DType::Double), _) => Tensor::scalar(f64::from(number)),
            (Some(DType::Float16), _) => Tensor::scalar(f16::from_f32(number)),
            (None, Some(like)) if self.to >= CAST_LIKE => {
                let (given, made) = (self.named("given", &Tensor::scalar(number)), self.name(what));
                self.beside.before.push(Node::new("CastLike", [given, like], [&made]));
                return Ok(made);
            }
            _ => return Err(format!("{what} becomes an input, and its type doesn't follow")),
        };
        Ok(self.named(what, &tensor))
    }

    /// The type of one of the inputs that the node has now, if it is known.
    pub(super) fn type_of(&self, name: &str) -> Option<ValueType> {
        if let Some(own) = self.beside.constants.iter().find(|constant| constant.name == name) {
            return own.dtype().map(ValueType::Tensor);
        }
        let (node, details) = self.known?;
        let mut given = node.inputs.iter().filter_map(|at| details.values.get((*at)?));
        given.find(|value| value.name == name)?.value_type.clone()
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

    /// An input that is a constant.
    fn tensor(&self, input: usize) -> Option<&'a Tensor> {
        match self.value(input)?.constant.as_ref()? {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Whether an input has one element, if its shape is known.
    pub(super) fn is_single(&self, input: usize) -> bool {
        self.dims(input).is_some_and(|dims| dims.iter().all(|size| *size == Some(1)))
    }

    /// Whether no element of an input is negative, as far as is known.
    pub(super) fn is_natural(&self, input: usize) -> bool {
        let natural = |value: Scalar<'_>| match value {
            Scalar::Int(value) => value >= 0,
            Scalar::Uint(_) => true,
            Scalar::Float(value) => value >= 0.0,
            Scalar::Double(value) => value >= 0.0,
            _ => false,
        };
        let made_by = || match self.value(input)?.origin {
            Origin::Node(at) => self.known?.1.nodes.get(at),
            _ => None,
        };
        matches!(self.dtype(input), Some(DType::Uint8 | DType::Uint16 | DType::Uint32 | DType::Uint64))
            || self.tensor(input).is_some_and(|tensor| tensor.scalars().all(natural))
            || made_by().is_some_and(|by| by.domain.is_empty() && ["ArgMax", "ArgMin"].contains(&by.operator.as_str()))
    }

    /// The whole number that an input is, if it is a constant.
    fn whole(&self, input: usize) -> Option<i64> {
        let value = match self.tensor(input)?.scalars().next()? {
            Scalar::Float(value) => f64::from(value),
            Scalar::Double(value) => value,
            _ => return None,
        };
        (value.fract() == 0.0).then_some(value as i64)
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
        let scales = own.or_else(|| self.tensor(1).cloned()).ok_or_else(unknown)?;
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
            let at = Axis::place(axis.into(), dims.len());
            at.is_some_and(|at| dims.iter().skip(at + 1).all(|size| *size == Some(1)))
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
        let axes: Vec<i64> = (0..count).map(|k| (rank + k) as i64).collect();
        if self.to >= AXES_INPUT {
            let axes = self.named("axes", &Tensor::from(axes));
            self.before(input, "wide", |from, to| Node::new("Unsqueeze", [from, axes], [to]));
        } else {
            self.before(input, "wide", |from, to| Node::new("Unsqueeze", [from], [to]).attribute("axes", axes));
        }
    }

    /// Drops the dimensions of size 1 of an input.
    pub(super) fn squeeze(&mut self, input: usize) {
        self.before(input, "narrow", |from, to| Node::new("Squeeze", [from], [to]));
    }

    /// Makes an input one of int64.
    pub(super) fn cast(&mut self, input: usize) {
        let code = i64::from(DType::Int64.code());
        self.before(input, "cast", |from, to| Node::new("Cast", [from], [to]).attribute("to", code));
    }

    /// One axis that is repeated becomes a number of repeats for each.
    pub(super) fn repeat_all(&mut self) -> Done {
        let unknown =
            "it repeats one axis, and {new} all: its tiles and axis aren't constants, or its rank isn't known";
        let known = self.whole(1).zip(self.whole(2)).zip(self.dims(0));
        let ((tiles, axis), dims) = known.ok_or(unknown)?;
        let at = Axis::place(axis.into(), dims.len());
        let at = at.ok_or_else(|| format!("its axis is {axis}, which it doesn't have"))?;
        let repeats: Vec<i64> = (0..dims.len()).map(|k| if k == at { tiles } else { 1 }).collect();
        self.node.inputs.truncate(1);
        self.constant("repeats", 1, &Tensor::from(repeats));
        Ok(())
    }

    /// The scale and the bias of each group become those of each channel.
    pub(super) fn scale_channels(&mut self) -> Done {
        let groups = self.int("num_groups")?.and_then(|groups| usize::try_from(groups).ok());
        let channels = self.dims(0).and_then(|dims| *dims.get(1)?);
        let known = groups.zip(channels).filter(|(groups, channels)| *groups > 0 && channels.is_multiple_of(*groups));
        let (groups, channels) = known
            .ok_or("its scale and bias are those of groups, and {new} has those of channels, of an unknown number")?;
        match self.dtype(0) {
            Some(DType::Float) => {}
            // It computes in its own type.
            Some(dtype) => self.set("stash_type", i64::from(dtype.code())),
            None => return Err("its type doesn't follow, on which stash_type of {new} depends".to_string()),
        }
        if groups == channels {
            return Ok(());
        }
        if channels > CHANNELS {
            return Err(format!(
                "its scale and bias are those of groups, and {LATER} has those of {channels} channels"
            ));
        }
        let each: Vec<i64> = (0..channels).map(|channel| (channel / (channels / groups)) as i64).collect();
        let each = self.named("groups", &Tensor::from(each));
        for (input, what) in [(1, "scale"), (2, "bias")] {
            self.before(input, what, |from, to| Node::new("Gather", [&from, &each], [&to]));
        }
        Ok(())
    }

    /// An experimental operator becomes one of the standard, scaled before it and after it.
    pub(super) fn scaled(&mut self, operator: &str) -> Done {
        let missing = |name: &str| format!("attribute {name} is missing");
        let alpha = self.float("alpha")?.ok_or_else(|| missing("alpha"))?;
        let beta = self.float("beta")?.ok_or_else(|| missing("beta"))?;
        let (alpha, beta) = (self.number("alpha", alpha)?, self.number("beta", beta)?);
        self.before(0, "scaled", |from, to| Node::new("Mul", [beta, from], [to]));
        let computed = self.name("computed");
        let outputs = std::mem::replace(&mut self.node.outputs, vec![computed.clone()]);
        self.beside.after.push(Node::new("Mul", [alpha, computed], outputs));
        ["alpha", "beta"].iter().for_each(|name| self.remove(name));
        self.node.op_type = operator.to_string();
        Ok(())
    }

    /// Drops what said how the second input is broadcast.
    pub(super) fn broadcast(&mut self) -> Done {
        if self.int("broadcast")?.unwrap_or(0) != 0
            && !self.is_single(1)
            && let Some(axis) = self.int("axis")?
        {
            let ranks = self.dims(0).zip(self.dims(1)).map(|(one, other)| (one.len(), other.len()));
            let Some((one, other)) = ranks else {
                let text = format!("its second input is broadcast from axis {axis}, which {LATER} can't say");
                return Err(format!("{text} for numbers of dimensions that aren't known"));
            };
            let behind = Axis::place(axis.into(), one).and_then(|from| one.checked_sub(from + other));
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
