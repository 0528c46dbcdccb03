//! Checks a node's attributes against its operator's schema.

use super::proto::{AttributeProto, GraphProto, TypeProto};
use super::{sparse, tensor, types};
use crate::error::{Error, Result, quote};
use crate::files::ModelFiles;
use crate::operator::Resolved;
use crate::schema::{Attribute, AttributeKind};
use crate::value::ValueType;

/// The attributes of a node.
#[derive(Default)]
pub(super) struct Given {
    pub(super) values: Vec<(String, Attribute)>,
    /// Its subgraphs.
    pub(super) graphs: Vec<(String, GraphProto)>,
}

impl Given {
    fn has(&self, name: &str) -> bool {
        self.values.iter().any(|(other, _)| *other == name) || self.graphs.iter().any(|(other, _)| *other == name)
    }
}

/// Returns the node's attributes, and all faults.
pub(super) fn read(
    protos: Vec<AttributeProto>,
    operator: &Resolved,
    ir_version: i64,
    files: &ModelFiles,
) -> Result<Given, Vec<Error>> {
    let schema = &operator.schema;
    let mut given = Given { values: Vec::with_capacity(protos.len()), graphs: Vec::new() };
    let mut faults = Vec::new();
    for mut proto in protos {
        if faults.iter().map(Error::weight).sum::<usize>() > files.limits.fault_bytes() / 16 {
            break;
        }
        let name = proto.name.take().unwrap_or_default();
        if given.has(&name) {
            faults.push(Error::model(format!("attribute {} is given twice", quote(&name))).attribute(&name));
            continue;
        }
        let formal = match schema.attribute(&name) {
            Ok(formal) => formal,
            Err(error) => {
                faults.push(error);
                continue;
            }
        };
        match value(proto, formal.kind, ir_version, files) {
            Ok(Read::Value(value)) => given.values.push((name, value)),
            Ok(Read::Graph(graph)) if operator.has_bodies() => given.graphs.push((name, *graph)),
            Ok(Read::Graph(_)) => {
                let text = format!("attribute {} is a graph: this operator can't run it", quote(&name));
                faults.push(Error::unsupported(text).attribute(&name));
            }
            Err(error) => {
                faults.push(error.within(&format!("attribute {}", quote(&name))).attribute(&name));
            }
        }
    }
    for formal in schema.attributes.iter().filter(|formal| formal.required && faults.is_empty()) {
        if !given.has(&formal.name) {
            let text = format!("attribute {} is required", quote(&formal.name));
            faults.push(Error::model(text).attribute(&formal.name));
            break;
        }
    }
    if faults.is_empty() { Ok(given) } else { Err(faults) }
}

/// The value of an attribute.
enum Read {
    Value(Attribute),
    Graph(Box<GraphProto>),
}

/// The value of an attribute of an expected kind.
fn value(proto: AttributeProto, kind: AttributeKind, ir_version: i64, files: &ModelFiles) -> Result<Read> {
    if proto.ref_attr_name.as_ref().is_some_and(|name| !name.is_empty()) {
        return Err(Error::model("it refers to an attribute of a function, but is not in one"));
    }
    let given = present_fields(&proto);
    // Before IR version 2 only the field told the kind.
    let stated = match proto.r#type.unwrap_or(0) {
        0 if ir_version < 2 => given.first().map_or(kind, |(kind, _)| *kind),
        0 => return Err(Error::model("it has no type")),
        code => AttributeKind::from_code(code)
            .ok_or_else(|| Error::model(format!("its type {code} is not an attribute type")))?,
    };
    if stated != kind {
        return Err(Error::model(format!("it is of kind {}: {} is needed", stated.name(), kind.name())));
    }
    if let Some((_, field)) = given.iter().find(|(k, _)| *k != kind) {
        return Err(Error::model(format!("its kind is {}, but it has a value in the field {field}", kind.name())));
    }
    files.budget.take(cost(&proto))?;
    let text = |bytes: &bytes::Bytes| {
        let text = std::str::from_utf8(bytes).map_err(|e| Error::model(format!("its string is not UTF-8: {e}")))?;
        Ok(text.to_string())
    };
    let missing = || Error::model("it has no value");
    Ok(Read::Value(match kind {
        // A proto3 writer omits zeros and empty strings.
        AttributeKind::Int => Attribute::Int(proto.i.unwrap_or(0)),
        AttributeKind::Float => Attribute::Float(proto.f.unwrap_or(0.0)),
        AttributeKind::String => Attribute::String(proto.s.as_ref().map(text).transpose()?.unwrap_or_default()),
        AttributeKind::Tensor => Attribute::Tensor(tensor::read(*proto.t.ok_or_else(missing)?, files)?),
        AttributeKind::Ints => Attribute::Ints(proto.ints),
        AttributeKind::Floats => Attribute::Floats(proto.floats),
        AttributeKind::Strings => Attribute::Strings(proto.strings.iter().map(text).collect::<Result<_>>()?),
        AttributeKind::Tensors => {
            Attribute::Tensors(proto.tensors.into_iter().map(|t| tensor::read(t, files)).collect::<Result<_>>()?)
        }
        AttributeKind::SparseTensor => {
            Attribute::SparseTensor(sparse::read(*proto.sparse_tensor.ok_or_else(missing)?, files)?.into_tensor()?)
        }
        AttributeKind::SparseTensors => {
            let tensor = |proto| sparse::read(proto, files)?.into_tensor();
            Attribute::SparseTensors(proto.sparse_tensors.into_iter().map(tensor).collect::<Result<_>>()?)
        }
        AttributeKind::TypeProto => Attribute::Type(type_of(&*proto.tp.ok_or_else(missing)?, files)?),
        AttributeKind::TypeProtos => {
            Attribute::Types(proto.type_protos.iter().map(|proto| type_of(proto, files)).collect::<Result<_>>()?)
        }
        AttributeKind::Graph => return Ok(Read::Graph(proto.g.ok_or_else(missing)?)),
        AttributeKind::Graphs => {
            return Err(Error::unsupported(format!("attributes of kind {} are not supported", kind.name())));
        }
    }))
}

/// Memory of the value until the operator is made, excluding tensors.
fn cost(proto: &AttributeProto) -> u64 {
    let string = |text: &bytes::Bytes| size_of::<String>() + 16 + text.len();
    let strings: usize = proto.strings.iter().chain(&proto.s).map(string).sum();
    let name = proto.name.as_ref().map_or(0, String::len);
    (2 * size_of::<(String, Attribute)>() + name + strings + 4 * proto.floats.len() + 8 * proto.ints.len()) as u64
}

fn type_of(proto: &TypeProto, files: &ModelFiles) -> Result<ValueType> {
    types::read(proto, &files.limits, &files.budget)?.0.ok_or_else(|| Error::model("its type is missing"))
}

/// The value fields that a message has, with the kind of each.
fn present_fields(proto: &AttributeProto) -> Vec<(AttributeKind, &'static str)> {
    [
        (AttributeKind::Float, "f", proto.f.is_some()),
        (AttributeKind::Int, "i", proto.i.is_some()),
        (AttributeKind::String, "s", proto.s.is_some()),
        (AttributeKind::Tensor, "t", proto.t.is_some()),
        (AttributeKind::Graph, "g", proto.g.is_some()),
        (AttributeKind::SparseTensor, "sparse_tensor", proto.sparse_tensor.is_some()),
        (AttributeKind::TypeProto, "tp", proto.tp.is_some()),
        (AttributeKind::Floats, "floats", !proto.floats.is_empty()),
        (AttributeKind::Ints, "ints", !proto.ints.is_empty()),
        (AttributeKind::Strings, "strings", !proto.strings.is_empty()),
        (AttributeKind::Tensors, "tensors", !proto.tensors.is_empty()),
        (AttributeKind::Graphs, "graphs", !proto.graphs.is_empty()),
        (AttributeKind::SparseTensors, "sparse_tensors", !proto.sparse_tensors.is_empty()),
        (AttributeKind::TypeProtos, "type_protos", !proto.type_protos.is_empty()),
    ]
    .into_iter()
    .filter(|(_, _, present)| *present)
    .map(|(kind, field, _)| (kind, field))
    .collect()
}
