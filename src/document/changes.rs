//! What the versions of operators changed besides types, texts, and new inputs and attributes whose defaults keep the
//! meaning: that needs no row here.

use super::{Attribute, AttributeValue, Initializer, Node};
use crate::dtype::DType;
use crate::graph::{GraphDetails, NodeDetails, ValueDetails};
use crate::tensor::Tensor;
use crate::value::{Dim, Value, ValueType};
use half::f16;
use std::collections::HashSet;

use AttributeValue as V;

/// Or why a node can't be converted.
type Done<T = ()> = Result<T, String>;

/// Stands for the next version in these texts.
pub(super) const LATER: &str = "{new}";

/// A node on its way from one version of its operator to the next.
pub(super) struct Step<'a> {
    pub(super) node: Node,
    known: Option<(&'a NodeDetails, &'a GraphDetails)>,
    names: &'a mut HashSet<String>,
    pub(super) constants: Vec<Initializer>,
}

/// Changes the form of a node to that of the next version of its operator.
pub(super) fn change(step: &mut Step<'_>, since: i64) -> Done {
    step.remove("consumed_inputs");
    let operator = step.node.op_type.clone();
    match (operator.as_str(), since) {
        ("Squeeze" | "Unsqueeze" | "ReduceSum", 13) => step.list_to_input("axes", 1),
        (operator, 18) if operator.starts_with("Reduce") => step.list_to_input("axes", 1),
        ("Reshape", 5) => step.list_to_input("shape", 1),
        ("Slice", 10) => {
            ["starts", "ends", "axes"].iter().zip(1..).try_for_each(|(name, k)| step.list_to_input(name, k))
        }
        ("Split", 2) if step.node.inputs.len() > 1 => {
            Err("its sizes are an input, and an attribute of {new}".to_string())
        }
        ("Split", 2) if step.node.get("axis").is_none() => {
            Err("its axis isn't given, and {new} has another default".to_string())
        }
        ("Split", 13) => step.list_to_input("split", 1),
        ("Split", 18) => {
            if step.node.inputs.get(1).is_none_or(String::is_empty) {
                step.set("num_outputs", step.node.outputs.len() as i64);
            }
            Ok(())
        }
        ("TopK", 10) => {
            let k = step.int("k")?.ok_or("attribute k is missing")?;
            step.remove("k");
            step.constant("k", 1, &Tensor::from(vec![k]));
            Ok(())
        }
        ("DFT", 20) => {
            let axis = step.int("axis")?.unwrap_or(1);
            step.remove("axis");
            step.constant("axis", 2, &Tensor::scalar(axis));
            Ok(())
        }
        ("Clip", 11) => {
            step.number_to_input("min", 1, None)?;
            step.number_to_input("max", 2, None)
        }
        ("Pad", 2) => {
            step.rename("paddings", "pads");
            Ok(())
        }
        ("Pad", 11) => {
            step.list_to_input("pads", 1)?;
            step.number_to_input("value", 2, Some(0.0))
        }
        ("Dropout", 7) => step.inference(),
        ("Dropout", 10) if step.has_outputs_after(1) => Err("its mask is boolean in {new}".to_string()),
        ("Dropout", 12) => {
            if let Some(ratio) = step.float("ratio")? {
                step.remove("ratio");
                step.constant("ratio", 1, &Tensor::scalar(ratio));
            }
            Ok(())
        }
        ("BatchNormalization", 7) => step.inference(),
        ("BatchNormalization", 9) => match step.int("spatial")? {
            None | Some(1) => {
                step.remove("spatial");
                Ok(())
            }
            Some(value) => Err(format!("its spatial is {value}, which {LATER} can't say")),
        },
        ("BatchNormalization", 14) => {
            if step.has_outputs_after(1) {
                return Err("it has outputs of training, and those of {new} mean others".to_string());
            }
            step.node.outputs.truncate(1);
            Ok(())
        }
        ("Softmax" | "LogSoftmax" | "Hardmax", 13) => step.last_axis(),
        ("Add" | "Sub" | "Mul" | "Div" | "Pow" | "And" | "Or" | "Xor" | "Equal" | "Less" | "Greater", 7) => {
            step.broadcast()
        }
        ("Gemm", 7) => {
            step.remove("broadcast");
            Ok(())
        }
        ("PRelu", 7) => {
            let single = step.dims(1).is_some_and(|dims| dims.iter().all(|dim| *dim == Some(1)));
            let matrix = step.dims(0).is_some_and(|dims| dims.len() == 2);
            if single || matrix {
                Ok(())
            } else {
                Err("its slopes are those of channels, and {new} broadcasts from the last dimension".to_string())
            }
        }
        ("Concat", 4) => {
            step.default("axis", 1i64);
            Ok(())
        }
        ("Cast", 6) => {
            let to = step.text("to")?.unwrap_or_default();
            let code = ELEMENT_TYPES.iter().position(|name| *name == to).ok_or("its type is not known")?;
            step.set("to", code as i64 + 1);
            Ok(())
        }
        ("Cast", 24) => {
            let to = step.int("to")?.and_then(|code| DType::from_code(i32::try_from(code).ok()?));
            step.rounds_alike(to)
        }
        ("CastLike", 24) => match step.value(1).and_then(|value| value.value_type.as_ref()) {
            Some(ValueType::Tensor(to)) => step.rounds_alike(Some(*to)),
            _ => Err("its type doesn't follow, and {new} rounds some differently".to_string()),
        },
        ("Selu", 6) => {
            step.default("alpha", 1.6732f32);
            step.default("gamma", 1.0507f32);
            Ok(())
        }
        ("LpPool" | "GlobalLpPool", 2) => match step.float("p")? {
            Some(p) if p.fract() != 0.0 => Err(format!("its p is {p}, and that of {LATER} is whole")),
            Some(p) => {
                step.set("p", p as i64);
                Ok(())
            }
            None => Ok(()),
        },
        ("GRU", 3) => {
            step.default("direction", "forward");
            Ok(())
        }
        ("RNN" | "GRU" | "LSTM", 7) => {
            step.remove("output_sequence");
            Ok(())
        }
        ("Upsample", 7) => {
            let height = step.float("height_scale")?.ok_or("attribute height_scale is missing")?;
            let width = step.float("width_scale")?.ok_or("attribute width_scale is missing")?;
            ["height_scale", "width_scale"].iter().for_each(|name| step.remove(name));
            if step.text("mode")?.as_deref() == Some("bilinear") {
                step.set("mode", "linear");
            }
            step.set("scales", vec![1.0, 1.0, height, width]);
            Ok(())
        }
        ("Upsample", 9) => {
            let Some(V::Floats(scales)) = step.node.get("scales") else {
                return Err("attribute scales is not a list of numbers".to_string());
            };
            let scales = Tensor::from(scales.clone());
            step.remove("scales");
            step.constant("scales", 1, &scales);
            Ok(())
        }
        ("Upsample", 10) => {
            step.node.op_type = "Resize".to_string();
            Ok(())
        }
        ("Resize", 11) => {
            let nearest = step.text("mode")?.is_none_or(|mode| mode == "nearest");
            let rounding = if nearest { Some(step.nearest()?) } else { None };
            let scales = step.node.inputs.get(1).cloned().unwrap_or_default();
            step.constant("roi", 1, &Tensor::from(Vec::<f32>::new()));
            step.node.inputs.push(scales);
            step.set("coordinate_transformation_mode", "asymmetric");
            if let Some(rounding) = rounding {
                step.set("nearest_mode", rounding);
            }
            Ok(())
        }
        ("ConvTranspose", 11) => {
            let read = |value: &V| if let V::Ints(values) = value { Some(values.clone()) } else { None };
            if let Some(sizes) = step.get("output_shape", "a list of integers", read)? {
                let rank = step.dims(0).ok_or("how many of its output_shape are of {new} isn't known")?.len();
                if sizes.len() == rank {
                    step.set("output_shape", sizes.into_iter().skip(2).collect::<Vec<i64>>());
                }
            }
            Ok(())
        }
        ("RoiAlign", 16) => {
            step.default("coordinate_transformation_mode", "output_half_pixel");
            Ok(())
        }
        ("GridSample", 20) => {
            match step.text("mode")?.as_deref() {
                None | Some("bilinear") => step.set("mode", "linear"),
                Some("bicubic") => step.set("mode", "cubic"),
                Some(_) => {}
            }
            Ok(())
        }
        ("Scatter", 11) => {
            step.node.op_type = "ScatterElements".to_string();
            Ok(())
        }
        ("OneHot", 11) => Err("negative indices select nothing, and those of {new} count from the end".to_string()),
        ("GroupNormalization", 21) => {
            Err("its scale and bias are those of groups, and {new} has those of channels".to_string())
        }
        ("Scan", 9) => Err("its inputs have a batch, and those of {new} have none".to_string()),
        ("Tile", 6) => Err("it repeats one axis, and {new} all".to_string()),
        _ => Ok(()),
    }
}

/// Names of element types in Cast-1, numbered from 1.
const ELEMENT_TYPES: [&str; 15] = [
    "FLOAT",
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "BOOL",
    "FLOAT16",
    "DOUBLE",
    "UINT32",
    "UINT64",
    "COMPLEX64",
    "COMPLEX128",
];

impl<'a> Step<'a> {
    pub(super) fn new(
        node: Node,
        known: Option<(&'a NodeDetails, &'a GraphDetails)>,
        names: &'a mut HashSet<String>,
    ) -> Step<'a> {
        Step { node, known, names, constants: Vec::new() }
    }

    fn remove(&mut self, name: &str) {
        self.node.attributes.retain(|attribute| attribute.name != name);
    }

    fn set(&mut self, name: &str, value: impl Into<AttributeValue>) {
        match self.node.attributes.iter_mut().find(|attribute| attribute.name == name) {
            Some(attribute) => attribute.value = value.into(),
            None => self.node.attributes.push(Attribute::new(name, value).into()),
        }
    }

    /// Sets an attribute that isn't given.
    fn default(&mut self, name: &str, value: impl Into<AttributeValue>) {
        if self.node.get(name).is_none() {
            self.set(name, value);
        }
    }

    fn rename(&mut self, old: &str, new: &str) {
        if let Some(attribute) = self.node.attributes.iter_mut().find(|attribute| attribute.name == old) {
            attribute.name = new.to_string();
        }
    }

    fn get<T>(&self, name: &str, what: &str, read: impl FnOnce(&V) -> Option<T>) -> Done<Option<T>> {
        match self.node.get(name) {
            None => Ok(None),
            Some(V::Reference(..)) => Err(format!("its attribute {name} is an attribute of the function")),
            Some(value) => read(value).map(Some).ok_or_else(|| format!("its attribute {name} is not {what}")),
        }
    }

    fn int(&self, name: &str) -> Done<Option<i64>> {
        self.get(name, "an integer", |value| if let V::Int(value) = value { Some(*value) } else { None })
    }

    fn float(&self, name: &str) -> Done<Option<f32>> {
        self.get(name, "a number", |value| if let V::Float(value) = value { Some(*value) } else { None })
    }

    fn text(&self, name: &str) -> Done<Option<String>> {
        self.get(name, "a text", |value| match value {
            V::String(value) => String::from_utf8(value.to_vec()).ok(),
            _ => None,
        })
    }

    /// Makes a constant that is an input of the node.
    fn constant(&mut self, what: &str, input: usize, tensor: &Tensor) {
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
    fn list_to_input(&mut self, name: &str, input: usize) -> Done {
        let read = |value: &V| if let V::Ints(values) = value { Some(values.clone()) } else { None };
        if let Some(values) = self.get(name, "a list of integers", read)? {
            self.remove(name);
            self.constant(name, input, &Tensor::from(values));
        }
        Ok(())
    }

    /// An attribute with a number becomes an input of the type of the first one.
    fn number_to_input(&mut self, name: &str, input: usize, default: Option<f32>) -> Done {
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

    fn value(&self, input: usize) -> Option<&'a ValueDetails> {
        let (node, details) = self.known?;
        details.values.get((*node.inputs.get(input)?)?)
    }

    /// The sizes of an input, if its rank is known.
    fn dims(&self, input: usize) -> Option<Vec<Option<usize>>> {
        let dims = self.value(input)?.shape.as_ref()?;
        Some(dims.iter().map(|dim| if let Dim::Fixed(size) = dim { Some(*size) } else { None }).collect())
    }

    /// Whether Cast-23 and Cast-24 give the same.
    fn rounds_alike(&self, to: Option<DType>) -> Done {
        match to {
            Some(to @ (DType::Int4 | DType::Uint4 | DType::Float4e2m1)) => {
                Err(format!("what {} can't hold becomes another number in {LATER}", to.name()))
            }
            _ => Ok(()),
        }
    }

    /// How Resize-10 rounds places: down, or up along axes that become smaller.
    fn nearest(&self) -> Done<&'static str> {
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

    fn has_outputs_after(&self, count: usize) -> bool {
        self.node.outputs.iter().skip(count).any(|name| !name.is_empty())
    }

    /// Drops `is_test`, which must be true.
    fn inference(&mut self) -> Done {
        if self.int("is_test")?.unwrap_or(0) == 0 {
            return Err("it is for training, as is_test is 0, and {new} is for inference".to_string());
        }
        self.remove("is_test");
        Ok(())
    }

    /// An axis from which all others were one becomes an axis alone.
    fn last_axis(&mut self) -> Done {
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
    fn broadcast(&mut self) -> Done {
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
