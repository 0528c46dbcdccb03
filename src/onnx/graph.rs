//! From the messages of a model to a graph that is ready to run.

use super::external::Folder;
use super::proto::{
    AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto, SparseTensorProto, TensorProto, ValueInfoProto,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};
use super::{attribute, scan, shallow, tensor};
use crate::dtype::DType;
use crate::error::{Error, Kind, Result, operator_label, quote};
use crate::graph::{Builder, Dim, Graph, NodeNames, ValueInfo};
use crate::operator::Resolved;
use crate::registry::{Newest, Registry};
use crate::value::Value;
use bytes::Bytes;
use prost::Message;
use std::collections::{HashMap, HashSet};

/// The IR versions that there are.
const IR_VERSIONS: std::ops::RangeInclusive<i64> = 1..=14;

/// What a model is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) graph: Graph,
    pub(crate) ir_version: i64,
    pub(crate) opsets: Vec<(String, i64)>,
    pub(crate) metadata: Vec<(String, String)>,
    /// What departs from the standard without being in the way.
    pub(crate) notes: Vec<String>,
}

/// Reads a model, whose bytes are in memory for it (`read`) or mapped; the error has every fault that could be seen.
pub(crate) fn load(file: Bytes, read: bool, registry: &Registry, folder: &Folder) -> Result<Parts> {
    if file.is_empty() {
        return Err(Error::model("the model file is empty"));
    }
    folder.spend(scan::check_model(&file, read, &folder.limits)?, file.len() as u64)?;
    let proto: shallow::Model = decoded(file)?;
    let ir_version = proto.ir_version.unwrap_or(0);
    if !IR_VERSIONS.contains(&ir_version) {
        let (first, last) = (IR_VERSIONS.start(), IR_VERSIONS.end());
        let kind = if ir_version > *last { Kind::Unsupported } else { Kind::Model };
        return Err(Error::new(kind, format!("ir_version {ir_version}: allowed {first}..={last}"))
            .at(|place| place.value = Some(ir_version.into())));
    }
    let opsets = opsets(&proto.opset_import, ir_version, registry)?;
    let metadata = metadata(&proto);
    let mut notes = Vec::new();
    if !proto.training_info.is_empty() {
        notes.push("training_info is not used".to_string());
    }
    let graph = proto.graph.ok_or_else(|| Error::model("the model has no graph"))?;
    let mut loader = Loader {
        builder: Builder::new(folder.limits.fault_bytes()),
        registry,
        folder,
        ir_version,
        opsets: opsets.iter().map(|(domain, version)| (domain.as_str(), *version)).collect(),
        functions: proto.functions.into_iter().map(function_name).collect::<Result<_>>()?,
        resolved: HashMap::new(),
        notes,
    };
    loader.graph(graph)?;
    let Loader { builder, notes, .. } = loader;
    Ok(Parts { graph: builder.finish()?, ir_version, opsets, metadata, notes })
}

fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M> {
    M::decode(bytes).map_err(|e| Error::model(format!("the file is no ONNX model, or is cut short: {e}")))
}

fn function_name(function: Bytes) -> Result<(String, String, String)> {
    let FunctionProto { name, domain, overload, .. } = decoded(function)?;
    Ok((domain_of(domain.as_deref()).to_string(), name.unwrap_or_default(), overload.unwrap_or_default()))
}

/// `ai.onnx` and the empty domain are one.
fn domain_of(domain: Option<&str>) -> &str {
    domain.filter(|domain| *domain != "ai.onnx").unwrap_or("")
}

fn opsets(imports: &[OperatorSetIdProto], ir_version: i64, registry: &Registry) -> Result<Vec<(String, i64)>> {
    if ir_version < 3 {
        return match imports {
            [] => Ok(vec![(String::new(), 1)]),
            _ => {
                Err(Error::model(format!("opset_import is not allowed under IR version {ir_version}: it came with 3")))
            }
        };
    }
    if imports.is_empty() {
        return Err(Error::model(format!("opset_import is missing: IR version {ir_version} needs it")));
    }
    let mut opsets: Vec<(String, i64)> = Vec::new();
    let mut known: HashMap<&str, i64> = HashMap::new();
    for import in imports {
        let domain = domain_of(import.domain.as_deref());
        let version = import.version.unwrap_or(0);
        let name = quote(if domain.is_empty() { "ai.onnx" } else { domain });
        let fault = |kind, text: String| {
            Err(Error::new(kind, text).at(|place| {
                place.domain = Some(domain.to_string());
                place.value = Some(version.into());
            }))
        };
        if version <= 0 {
            return fault(
                Kind::Model,
                format!("opset_import has version {version} of domain {name}: versions start at 1"),
            );
        }
        match registry.newest(domain) {
            Some(Newest::Standard(newest)) if version > newest => {
                let text = format!(
                    "opset_import has version {version} of domain {name}: {newest} is the newest that is known"
                );
                return fault(Kind::Unsupported, text);
            }
            _ => {}
        }
        match known.insert(domain, version) {
            None => opsets.push((domain.to_string(), version)),
            Some(first) if first == version => {}
            Some(first) => {
                return fault(Kind::Model, format!("opset_import has versions {first} and {version} of domain {name}"));
            }
        }
    }
    Ok(opsets)
}

fn metadata(proto: &shallow::Model) -> Vec<(String, String)> {
    let version = proto.model_version.filter(|v| *v != 0).map(|v| v.to_string());
    let fields = [
        ("producer_name", proto.producer_name.clone()),
        ("producer_version", proto.producer_version.clone()),
        ("domain", proto.domain.clone()),
        ("model_version", version),
        ("doc_string", proto.doc_string.clone()),
    ];
    let fields =
        fields.into_iter().filter_map(|(key, value)| Some((key.to_string(), value.filter(|v| !v.is_empty())?)));
    let own = proto.metadata_props.iter().cloned();
    fields.chain(own.map(|e| (e.key.unwrap_or_default(), e.value.unwrap_or_default()))).collect()
}

struct Loader<'a> {
    builder: Builder,
    registry: &'a Registry,
    folder: &'a Folder,
    ir_version: i64,
    opsets: HashMap<&'a str, i64>,
    /// The model's functions: domain, name, overload.
    functions: HashSet<(String, String, String)>,
    /// Each operator is looked up once.
    resolved: HashMap<(String, String), Resolved>,
    notes: Vec<String>,
}

impl Loader<'_> {
    fn graph(&mut self, proto: shallow::Graph) -> Result<()> {
        self.builder.reserve(proto.node.len(), proto.initializer.len());
        let mut initializers = self.initializers(proto.initializer)?;
        for sparse in proto.sparse_initializer {
            let sparse: SparseTensorProto = decoded(sparse)?;
            let name = sparse.values.as_ref().and_then(|v| v.name.as_deref()).unwrap_or("");
            let text = format!("sparse initializer {}: sparse tensors are not supported", quote(name));
            self.builder.fault(Error::unsupported(text).at(|place| place.value_name = Some(name.into())));
            initializers.add(name.to_string(), None);
        }
        for input in &proto.input {
            let Some(info) = self.value_info(input, "input") else { continue };
            // Until IR version 3 an initializer fixes the input of its name; from 4 on it is the input's default.
            match initializers.take(&info.name) {
                Some(value) if self.ir_version < 4 => self.builder.constant(&info.name, value, Some(&info)),
                default => self.builder.input(info, default.flatten()),
            }
        }
        for (name, value) in initializers.rest() {
            if self.ir_version < 4 {
                let text = format!(
                    "initializer {} is not an input too: IR version {} needs it",
                    quote(&name),
                    self.ir_version
                );
                self.builder.fault(Error::model(text).at(|place| place.value_name = Some(name.clone())));
            }
            self.builder.constant(&name, value, None);
        }
        let outputs: Vec<ValueInfo> = proto.output.iter().filter_map(|o| self.value_info(o, "output")).collect();
        for info in &outputs {
            if let Some(dtype) = info.dtype {
                self.builder.declare(&info.name, dtype);
            }
        }
        for info in proto.value_info {
            let info: ValueInfoProto = decoded(info)?;
            if let (Some(name), Some(dtype)) = (&info.name, declared_type(&info)) {
                self.builder.declare(name, dtype);
            }
        }
        for (index, node) in proto.node.into_iter().enumerate() {
            self.node(decoded(node)?, index);
        }
        for info in outputs {
            let name = info.name.clone();
            self.builder.output(info, &name);
        }
        Ok(())
    }

    fn initializers(&mut self, protos: Vec<Bytes>) -> Result<Initializers> {
        let (places, list) = (HashMap::with_capacity(protos.len()), Vec::with_capacity(protos.len()));
        let mut initializers = Initializers { places, list };
        for proto in protos {
            let proto: TensorProto = decoded(proto)?;
            let name = proto.name.clone().unwrap_or_default();
            match tensor::read(proto, self.folder) {
                Ok(tensor) => {
                    if !initializers.add(name.clone(), Some(tensor.into())) {
                        let text = format!(
                            "the name {} is given twice: by an initializer and by an initializer",
                            quote(&name)
                        );
                        self.builder.fault(Error::model(text).at(|place| place.value_name = Some(name)));
                    }
                }
                Err(error) => {
                    self.builder.fault(error.within("initializer"));
                    // The name is there: nodes that use it are not at fault.
                    initializers.add(name, None);
                }
            }
        }
        Ok(initializers)
    }

    /// What is said of an input or output. A fault is noted and gives `None`.
    fn value_info(&mut self, proto: &ValueInfoProto, what: &str) -> Option<ValueInfo> {
        let name = proto.name.clone().unwrap_or_default();
        let mut info = ValueInfo { name, dtype: None, shape: None };
        let Some(value) = proto.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
            if what == "input" {
                let note = format!("input {} has no type", quote(&info.name));
                if let Err(error) = self.folder.spend(note.len() as u64 + 128, 0) {
                    self.builder.fault(error);
                    return None;
                }
                self.notes.push(note);
            }
            return Some(info);
        };
        let read = match value {
            type_proto::Value::TensorType(tensor) => {
                let dims = |dims: &[Dimension]| dims.iter().enumerate().map(dim).collect::<Result<Vec<_>>>();
                let rank = |dims: &[Dimension]| tensor::check_rank(dims.len(), &self.folder.limits);
                let dims = tensor.shape.as_ref().map(|shape| rank(&shape.dim).and_then(|()| dims(&shape.dim)));
                let dtype = tensor::dtype_of("elem_type", tensor.elem_type.unwrap_or(0));
                dims.transpose().and_then(|dims| Ok((dtype?, dims)))
            }
            type_proto::Value::SequenceType(_) => Err(Error::unsupported("sequences are not supported")),
            type_proto::Value::MapType(_) => Err(Error::unsupported("maps are not supported")),
            type_proto::Value::OptionalType(_) => Err(Error::unsupported("optionals are not supported")),
            type_proto::Value::SparseTensorType(_) => Err(Error::unsupported("sparse tensors are not supported")),
            type_proto::Value::OpaqueType(_) => Err(Error::unsupported("opaque types are not supported")),
        };
        match read {
            Ok((dtype, shape)) => (info.dtype, info.shape) = (Some(dtype), shape),
            Err(error) => {
                let fault = error.within(&format!("{what} {}", quote(&info.name)));
                self.builder.fault(fault.at(|place| place.value_name = Some(info.name.clone())));
            }
        }
        Some(info)
    }

    fn node(&mut self, proto: NodeProto, index: usize) {
        let NodeProto { name, input, output, op_type, domain, attribute, overload, .. } = proto;
        let (name, op_type) = (name.unwrap_or_default(), op_type.unwrap_or_default());
        let domain = domain_of(domain.as_deref());
        let mut node = NodeNames {
            index,
            name: &name,
            operator: &op_type,
            domain,
            version: None,
            inputs: &input,
            outputs: &output,
        };
        let resolved = match self.resolve(domain, &op_type, overload.as_deref()) {
            Ok(resolved) => resolved,
            Err(error) => {
                let mut faults = vec![error];
                faults.extend(self.inner_faults(attribute));
                return self.builder.broken_node(&node, faults);
            }
        };
        node.version = Some(resolved.schema.since_version);
        match attribute::read(attribute, &resolved.schema, self.ir_version, self.folder) {
            Ok(values) => self.builder.node(&node, &resolved, values),
            Err(faults) => self.builder.broken_node(&node, faults),
        }
    }

    fn resolve(&mut self, domain: &str, op_type: &str, overload: Option<&str>) -> Result<Resolved> {
        let key = (domain.to_string(), op_type.to_string());
        if let Some(resolved) = self.resolved.get(&key) {
            return Ok(resolved.clone());
        }
        if op_type.is_empty() {
            return Err(Error::model("the node has no op_type"));
        }
        if self.functions.contains(&(key.0.clone(), key.1.clone(), overload.unwrap_or("").to_string())) {
            let label = operator_label(domain, op_type);
            return Err(Error::unsupported(format!("{label} is a function of the model: these are not supported")));
        }
        let Some(opset) = self.opsets.get(domain) else {
            let name = quote(if domain.is_empty() { "ai.onnx" } else { domain });
            return Err(Error::model(format!("domain {name} is not in opset_import")));
        };
        let resolved = self.registry.resolve(domain, op_type, *opset)?;
        self.resolved.insert(key, resolved.clone());
        Ok(resolved)
    }

    /// The operators inside of a node's subgraphs that can't run either.
    fn inner_faults(&mut self, attributes: Vec<AttributeProto>) -> Vec<Error> {
        let (mut faults, mut weight) = (Vec::new(), 0);
        // The next node is the last one: subgraphs come before what follows their node.
        let mut open: Vec<NodeProto> = inner_nodes(attributes);
        while let Some(node) = open.pop() {
            let (domain, operator) = (domain_of(node.domain.as_deref()), node.op_type.as_deref().unwrap_or(""));
            if let Err(error) = self.resolve(domain, operator, node.overload.as_deref()) {
                let error = error.within("in its subgraph").at(|place| {
                    place.operator = Some(operator.to_string());
                    place.domain = Some(domain.to_string());
                });
                weight += error.weight();
                faults.push(error);
            }
            if self.builder.is_full() || weight > self.folder.limits.fault_bytes() {
                break;
            }
            open.extend(inner_nodes(node.attribute));
        }
        faults
    }
}

/// The nodes of the graphs among attributes, the last one first.
fn inner_nodes(attributes: Vec<AttributeProto>) -> Vec<NodeProto> {
    let graphs = attributes.into_iter().flat_map(|a| a.g.map(|graph| *graph).into_iter().chain(a.graphs));
    let mut nodes: Vec<NodeProto> = graphs.flat_map(|graph| graph.node).collect();
    nodes.reverse();
    nodes
}

fn declared_type(info: &ValueInfoProto) -> Option<DType> {
    match info.r#type.as_ref()?.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => DType::from_code(tensor.elem_type?),
        _ => None,
    }
}

fn dim((axis, dim): (usize, &Dimension)) -> Result<Dim> {
    Ok(match &dim.value {
        None => Dim::Unknown,
        Some(dimension::Value::DimParam(name)) if name.is_empty() => Dim::Unknown,
        Some(dimension::Value::DimParam(name)) => Dim::Symbol(name.clone()),
        Some(dimension::Value::DimValue(size)) => Dim::Fixed(tensor::size_of_dim(axis, *size)?),
    })
}

/// Initializers by name, in the order of the file.
struct Initializers {
    places: HashMap<String, usize>,
    /// The value is `None` where it can't be had; the whole is where it was taken.
    list: Vec<Option<(String, Option<Value>)>>,
}

impl Initializers {
    /// Whether the name was free.
    fn add(&mut self, name: String, value: Option<Value>) -> bool {
        let free = !self.places.contains_key(&name);
        if free {
            self.places.insert(name.clone(), self.list.len());
            self.list.push(Some((name, value)));
        }
        free
    }

    fn take(&mut self, name: &str) -> Option<Option<Value>> {
        let place = self.places.get(name)?;
        self.list.get_mut(*place)?.take().map(|(_, value)| value)
    }

    fn rest(self) -> impl Iterator<Item = (String, Option<Value>)> {
        self.list.into_iter().flatten()
    }
}
