//! From a network in a `.xml` file, with its constants in a `.bin` file beside it, to a draft.

use super::xml::{self, Edge, Layer, Net, Port};
use crate::dtype::{DType, VIEW};
use crate::error::{Error, Kind, Remedy, Result, quote};
use crate::files::{LoadedModel, ModelFiles};
use crate::graph::{Draft, NODE_BYTES, Names, NodePlace, ValueInfo};
use crate::operator::{Label, Resolved};
use crate::registry::{Found, Lookup, Registry};
use crate::schema::{self, Attribute, AttributeKind, OPENVINO_DOMAIN};
use crate::tensor::{Shape, Tensor};
use crate::value::{Dim, Fact, Value};
use bytes::Bytes;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a network. Its constants are in the `.bin` file of the same name.
pub(crate) fn load(file: &[u8], path: Option<&Path>, registry: &Registry, files: &ModelFiles) -> Result<LoadedModel> {
    files.budget.allow_for(file.len() as u64);
    let (net, cost) = xml::read(file, &files.limits)?;
    files.budget.take(cost)?;
    let bin = path.map(|path| path.with_extension("bin"));
    let bin = bin.as_deref().and_then(Path::file_name).map(PathBuf::from);
    // A network loaded from bytes has no name.
    let bin = bin.or_else(|| files.only_in_memory("bin"));
    let mut reader = Reader {
        draft: Draft::new(files.limits.fault_bytes()),
        names: Names::default(),
        registry,
        operators: Lookup::default(),
        files,
        constants: Constants { location: bin, content: Content::Unread },
        inputs: HashSet::new(),
        outputs: HashSet::new(),
    };
    reader.net(&net)?;
    let mut draft = reader.draft;
    // The layers of a network may be in any order.
    draft.may_sort = true;
    let opsets = vec![(OPENVINO_DOMAIN.to_string(), i64::from(net.version))];
    let metadata = if net.name.is_empty() { Vec::new() } else { vec![("name".to_string(), net.name.clone())] };
    let graph = [net.name, String::new()];
    Ok(LoadedModel { draft, ir_version: net.version.into(), opsets, metadata, fields: 0, graph, functions: vec![] })
}

struct Reader<'a> {
    draft: Draft,
    names: Names,
    registry: &'a Registry,
    /// By name and operator set.
    operators: Lookup,
    files: &'a ModelFiles,
    constants: Constants,
    inputs: HashSet<String>,
    outputs: HashSet<String>,
}

/// The internal name of a value: an output port of a layer.
fn value_name((layer, port): (u64, u64)) -> String {
    format!("layer {layer}, port {port}")
}

impl Reader<'_> {
    fn net(&mut self, net: &Net) -> Result<()> {
        let ports = Ports::of(net)?;
        ports.check(&net.edges)?;
        // For each input port of a layer, the output port that it reads from.
        let mut sources: HashMap<(u64, u64), (u64, u64)> = HashMap::new();
        for edge in &net.edges {
            if sources.insert(edge.to, edge.from).is_some() {
                let (layer, port) = edge.to;
                return Err(Error::model(format!("two edges lead to layer {layer}, port {port}")));
            }
        }
        let mut index = 0;
        for layer in &net.layers {
            let taken = match (layer.kind.as_str(), layer.outputs.as_slice()) {
                ("Parameter", [port]) => self.parameter(layer, port),
                ("Const", [port]) => self.constant(layer, port),
                ("Result", []) if layer.inputs.len() < 2 => {
                    let source = layer.inputs.first().and_then(|port| sources.get(&(layer.id, port.id)));
                    let from = source.and_then(|from| Some((*from, *ports.outputs.get(from)?)));
                    self.result(layer, from)
                }
                ("Result", []) => Err(Error::model(format!("it has {} input ports", layer.inputs.len()))),
                ("Parameter" | "Const" | "Result", ports) => {
                    for port in ports {
                        let id = self.value((layer.id, port.id))?;
                        self.draft.constant(id, Fact::default(), None);
                    }
                    Err(Error::model(format!("it has {} output ports", ports.len())))
                }
                _ => {
                    self.node(layer, index, &sources)?;
                    index += 1;
                    Ok(())
                }
            };
            if let Err(error) = taken {
                let fault = error.within(&format!("{} {}", quote(&layer.kind), quote(&layer.name)));
                self.draft.faults.push(fault.about(&layer.name));
            }
        }
        Ok(())
    }

    fn parameter(&mut self, layer: &Layer, port: &Port) -> Result<()> {
        let mut info = ValueInfo { name: layer.name.clone(), value_type: None, shape: None };
        let said = free_name(&mut self.inputs, port, layer, "input").and_then(|name| {
            info.name = name;
            info.value_type = Some(dtype_of(layer)?.into());
            info.shape = self.declared_shape(layer)?;
            Ok(())
        });
        // Layers that read from this one are not at fault.
        let id = self.value((layer.id, port.id))?;
        self.draft.input(info, id, None);
        said
    }

    /// `2,?,4..8`; `...` for any rank.
    fn declared_shape(&mut self, layer: &Layer) -> Result<Option<Vec<Dim>>> {
        let text = layer.attribute("shape")?;
        if text.trim() == "..." {
            return Ok(None);
        }
        self.files.limits.check_rank("a shape has", text.split(',').count())?;
        let (mut dims, mut ranges) = (Vec::new(), false);
        for part in text.split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
            dims.push(match part.parse() {
                Ok(size) => Dim::Fixed(size),
                Err(_) if part == "?" || part == "-1" => Dim::Unknown,
                Err(_) if is_range(part) => {
                    ranges = true;
                    Dim::Unknown
                }
                Err(_) => return Err(Error::model(format!("its shape has the invalid dimension {}", quote(part)))),
            });
        }
        if ranges {
            let (shape, name) = (quote(text), quote(&layer.name));
            let note = format!("the shape {shape} of {name} has ranges, which are not checked");
            self.draft.note(note, &self.files.budget)?;
        }
        Ok(Some(dims))
    }

    fn constant(&mut self, layer: &Layer, port: &Port) -> Result<()> {
        let value = self.constants.tensor(layer, self.files);
        // Layers that use it are not at fault.
        let (value, result) = match value {
            Ok(value) => (value.map(Value::Tensor), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let id = self.value((layer.id, port.id))?;
        self.draft.constant(id, value.map(Fact::constant).unwrap_or_default(), None);
        result
    }

    fn result(&mut self, layer: &Layer, from: Option<((u64, u64), &Port)>) -> Result<()> {
        let (value, port) = from.ok_or_else(|| Error::model("no edge leads to it"))?;
        let name = free_name(&mut self.outputs, port, layer, "output")?;
        let id = self.value(value)?;
        self.draft.output(ValueInfo { name, value_type: None, shape: None }, id);
        Ok(())
    }

    /// The value of an output port of a layer.
    fn value(&mut self, port: (u64, u64)) -> Result<crate::graph::Id> {
        self.draft.value(&mut self.names, &value_name(port), &self.files.budget)
    }

    fn node(&mut self, layer: &Layer, index: u32, sources: &HashMap<(u64, u64), (u64, u64)>) -> Result<()> {
        let values = 64 * layer.inputs.len() + 128 * layer.outputs.len();
        self.files.budget.take((NODE_BYTES + values + 2 * layer.name.len() + 128) as u64)?;
        let mut inputs = Vec::with_capacity(layer.inputs.len());
        for port in &layer.inputs {
            let from = sources.get(&(layer.id, port.id));
            inputs.push(from.map(|from| self.value(*from)).transpose()?);
        }
        let outputs = layer.outputs.iter().map(|port| self.value((layer.id, port.id)).map(Some));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let mut place = NodePlace {
            index,
            name: layer.name.as_str().into(),
            operator: Arc::new(Label::new(&layer.kind, OPENVINO_DOMAIN, None)),
            function: None,
        };
        let mut resolved = self.resolve(layer, &place)?;
        resolved.iter().for_each(|resolved| place.operator = resolved.label.clone());
        let attributes = match resolved.as_ref().map(|resolved| attributes(layer, resolved)) {
            Some(Ok(attributes)) => attributes,
            Some(Err(error)) => {
                self.draft.broken(&place, vec![error]);
                resolved = None;
                Vec::new()
            }
            None => Vec::new(),
        };
        self.draft.node(place, resolved, attributes, inputs.into(), outputs.into());
        Ok(())
    }

    /// The operator of a layer. If it can't be resolved, the layer is counted.
    fn resolve(&mut self, layer: &Layer, place: &NodePlace) -> Result<Option<Arc<Resolved>>> {
        self.draft.faults.nodes += 1;
        let found = match self.operators.get(&layer.version, &layer.kind, None) {
            Some(found) => found.clone(),
            None => {
                self.files.budget.take(1024 + 4 * (layer.kind.len() + layer.version.len()) as u64)?;
                self.draft.faults.operators += 1;
                let at = self.draft.node_count();
                let (resolved, why) =
                    self.look_up(layer).map_or_else(|e| (None, Some(e)), |r| (Some(Arc::new(r)), None));
                let unresolved = why.map(|why| self.draft.faults.list_unresolved(at, place.locate(why)));
                let found = Found { resolved, unresolved };
                self.operators.insert(&layer.version, &layer.kind, None, found.clone());
                found
            }
        };
        found.unresolved.into_iter().for_each(|listed| self.draft.faults.unresolved(listed));
        Ok(found.resolved)
    }

    fn look_up(&self, layer: &Layer) -> Result<Resolved> {
        let version = layer.version.strip_prefix("opset").filter(|version| version.bytes().all(|b| b.is_ascii_digit()));
        let newest = schema::newest(OPENVINO_DOMAIN).unwrap_or(0);
        let version = version.and_then(|version| version.parse().ok()).filter(|version| (1..=newest).contains(version));
        let Some(version) = version else {
            let text = format!("the operator set {} is not supported", quote(&layer.version));
            return Err(Error::unsupported(text));
        };
        if schema::versions(OPENVINO_DOMAIN, &layer.kind).is_empty() {
            let set = quote(&layer.version);
            return Err(Error::unsupported(format!("the operator is not implemented (operator set {set})")));
        }
        self.registry.resolve(OPENVINO_DOMAIN, &layer.kind, version)
    }
}

/// The layer's attributes.
fn attributes(layer: &Layer, resolved: &Resolved) -> Result<Vec<(String, Attribute)>> {
    let mut values = Vec::new();
    for (name, text) in &layer.data {
        match (resolved.schema.attribute(name)?.kind, text.trim().parse()) {
            (AttributeKind::Int, Ok(value)) => values.push((name.clone(), Attribute::Int(value))),
            (kind, _) => {
                let text = format!("attribute {} is {}: {} is needed", quote(name), quote(text), kind.name());
                return Err(Error::model(text).attribute(name));
            }
        }
    }
    Ok(values)
}

/// The name of a port's tensor, or of the layer if the former is taken.
fn free_name(taken: &mut HashSet<String>, port: &Port, layer: &Layer, what: &str) -> Result<String> {
    for name in [&port.name, &layer.name].into_iter().filter(|name| !name.is_empty()) {
        if taken.insert(name.clone()) {
            return Ok(name.clone());
        }
    }
    if layer.name.is_empty() {
        return Err(Error::model("neither it nor its tensor has a name"));
    }
    Err(Error::model(format!("another {what} is called {} already", quote(&layer.name))))
}

fn is_range(part: &str) -> bool {
    let bound = |text: &str| text.is_empty() || text.parse::<u64>().is_ok();
    part.split_once("..").is_some_and(|(from, to)| bound(from) && bound(to))
}

/// The layers' ports, by layer and port.
struct Ports<'a> {
    inputs: HashMap<(u64, u64), &'a Port>,
    outputs: HashMap<(u64, u64), &'a Port>,
}

impl<'a> Ports<'a> {
    fn of(net: &'a Net) -> Result<Ports<'a>> {
        let mut ids: HashMap<u64, &Layer> = HashMap::new();
        let mut ports = Ports { inputs: HashMap::new(), outputs: HashMap::new() };
        for layer in &net.layers {
            if let Some(first) = ids.insert(layer.id, layer) {
                let (id, first, second) = (layer.id, quote(&first.name), quote(&layer.name));
                return Err(Error::model(format!("the layer id {id} is given twice: to {first} and to {second}")));
            }
            for (list, known) in [(&layer.inputs, &mut ports.inputs), (&layer.outputs, &mut ports.outputs)] {
                for port in list {
                    if known.insert((layer.id, port.id), port).is_some() {
                        let (layer, id) = (quote(&layer.name), port.id);
                        return Err(Error::model(format!("layer {layer} has the port {id} twice")));
                    }
                }
            }
        }
        Ok(ports)
    }

    /// Checks that edges lead from and to existing ports.
    fn check(&self, edges: &[Edge]) -> Result<()> {
        for edge in edges {
            for (place, known) in [(edge.from, &self.outputs), (edge.to, &self.inputs)] {
                if !known.contains_key(&place) {
                    let (layer, port) = place;
                    return Err(Error::model(format!("an edge names layer {layer}, port {port}, which doesn't exist")));
                }
            }
        }
        Ok(())
    }
}

/// The `.bin` file, read when the first constant needs it.
struct Constants {
    /// `None` for a network loaded from bytes without such a file in memory.
    location: Option<PathBuf>,
    content: Content,
}

enum Content {
    Unread,
    Read(Bytes),
    /// Whether it can't be read: this is reported once.
    Missing,
}

impl Constants {
    /// The tensor of a constant; `None` if the file can't be read (already reported).
    fn tensor(&mut self, layer: &Layer, files: &ModelFiles) -> Result<Option<Tensor>> {
        let dtype = dtype_of(layer)?;
        let text = layer.attribute("shape")?;
        let dims = text.split(',').map(str::trim).filter(|_| !text.trim().is_empty());
        let dim = |part: &str| {
            part.parse().map_err(|_| Error::model(format!("its shape has the invalid dimension {}", quote(part))))
        };
        let shape = dims.map(dim).collect::<Result<Shape>>()?;
        files.limits.check_rank("a shape has", shape.len())?;
        let number = |name| {
            let text = layer.attribute(name)?;
            text.trim()
                .parse::<u64>()
                .map_err(|_| Error::model(format!("its {name} is {}: a number is needed", quote(text))))
        };
        let (offset, size) = (number("offset")?, number("size")?);
        // For a constant without elements the package writes no byte or one.
        let size = if shape.contains(&0) && size == 1 { 0 } else { size };
        let Some(raw) = self.bytes(offset, size, files)? else { return Ok(None) };
        if dtype == DType::String {
            // Each string takes 4 bytes in the file and a view; the text is copied and moved once.
            files.budget.take((VIEW / 4) as u64 * raw.len() as u64 + 64)?;
            strings(&shape, &raw).map(Some)
        } else {
            files.tensor(dtype, &shape, raw).map(Some)
        }
    }

    fn bytes(&mut self, offset: u64, size: u64, files: &ModelFiles) -> Result<Option<Bytes>> {
        if size == 0 {
            return Ok(Some(Bytes::new()));
        }
        let no_file = || {
            Error::input("its data is in a .bin file, but the model was loaded from bytes")
                .with_remedy(Remedy::ExternalData)
        };
        let content = match std::mem::replace(&mut self.content, Content::Missing) {
            Content::Read(content) => content,
            Content::Missing => return Ok(None),
            Content::Unread => {
                let location = self.location.as_ref().ok_or_else(no_file)?;
                files.beside(location)?.ok_or_else(no_file)?
            }
        };
        self.content = Content::Read(content.clone());
        let range =
            usize::try_from(offset).ok().zip(offset.checked_add(size).and_then(|end| usize::try_from(end).ok()));
        match range.filter(|(_, end)| *end <= content.len()) {
            Some((from, to)) => Ok(Some(content.slice(from..to))),
            None => {
                let (name, len) = (self.location.as_deref().unwrap_or(Path::new("")).to_string_lossy(), content.len());
                let name = quote(&name);
                Err(Error::model(format!(
                    "its offset {offset} and size {size} reach beyond {name}, which has {len} bytes"
                )))
            }
        }
    }
}

fn dtype_of(layer: &Layer) -> Result<DType> {
    let name = layer.attribute("element_type")?;
    Ok(match name {
        "f32" => DType::Float,
        "f64" => DType::Double,
        "f16" => DType::Float16,
        "bf16" => DType::Bfloat16,
        "boolean" => DType::Bool,
        "string" => DType::String,
        "i2" => DType::Int2,
        "i4" => DType::Int4,
        "i8" => DType::Int8,
        "i16" => DType::Int16,
        "i32" => DType::Int32,
        "i64" => DType::Int64,
        "u2" => DType::Uint2,
        "u4" => DType::Uint4,
        "u8" => DType::Uint8,
        "u16" => DType::Uint16,
        "u32" => DType::Uint32,
        "u64" => DType::Uint64,
        "f8e4m3" => DType::Float8e4m3fn,
        "f8e5m2" => DType::Float8e5m2,
        "f8e8m0" => DType::Float8e8m0,
        "f4e2m1" => DType::Float4e2m1,
        _ => return Err(Error::unsupported(format!("the element type {} is not supported", quote(name)))),
    })
}

/// Strings in the layout of a `.bin` file: the count, the start of each, the end of the last (4 bytes each); the text.
fn strings(shape: &[usize], raw: &[u8]) -> Result<Tensor> {
    let bad = || Error::model("its strings are not laid out as a count, offsets and text");
    let number = |k: usize| {
        let bytes = raw.get(k * 4..k * 4 + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let count = number(0).unwrap_or(0);
    if raw.len() / 4 < count {
        return Err(bad());
    }
    let text = raw.get(((count + 2) * 4).min(raw.len())..).unwrap_or(&[]);
    let ends = (number(1).unwrap_or(0), number(count + 1).unwrap_or(0));
    let string = |k: usize| {
        let range = number(k + 1).zip(number(k + 2)).ok_or_else(bad)?;
        let bytes = text.get(range.0..range.1).ok_or_else(bad)?;
        std::str::from_utf8(bytes).map_err(|e| Error::model(format!("string {k} is not UTF-8: {e}")))
    };
    if !raw.is_empty() && (raw.len() < 4 || ends != (0, text.len())) {
        return Err(bad());
    }
    Tensor::try_from_strings(shape, text.len(), (0..count).map(string)).map_err(|e| e.with_kind(Kind::Model))
}
