//! From the messages of a model to a draft.

use super::attribute::{self, Given};
use super::bodies::{Around, Next, Values, Waiting};
use super::functions::{Decoded, Functions, key};
use super::opsets::{Opsets, domain_of, model_opsets, note_opsets};
use super::proto::{AttributeProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto};
use super::{scan, shallow, sparse, tensor, types};
use crate::error::{Error, Kind, Result, quote};
use crate::files::{LoadedModel, ModelFiles};
use crate::graph::{Draft, Ids, NODE_BYTES, Names, NodePlace, ValueInfo};
use crate::operator::Label;
use crate::registry::{Lookup, Registry};
use crate::schema::Arity;
use crate::value::{Fact, Value};
use bytes::Bytes;
use prost::Message;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// The IR versions of the standard.
const IR_VERSIONS: std::ops::RangeInclusive<i64> = 1..=14;

/// Reads a model whose bytes were read into memory (`read`) or mapped. The draft collects the faults; one that makes
/// it useless to look for more is returned at once. `details` asks for what only an inspection shows.
pub(crate) fn load(
    file: Bytes,
    read: bool,
    details: bool,
    registry: &Registry,
    files: &ModelFiles,
) -> Result<LoadedModel> {
    if file.is_empty() {
        return Err(Error::model("the model file is empty"));
    }
    files.budget.allow_for(file.len() as u64);
    files.budget.take(if read { file.len() as u64 } else { 0 })?;
    scan::check_model(&file, files)?;
    let proto: shallow::Model = decoded(file)?;
    let Some(ir_version) = proto.ir_version else { return Err(Error::model("ir_version is missing")) };
    if !IR_VERSIONS.contains(&ir_version) {
        let (first, last) = (IR_VERSIONS.start(), IR_VERSIONS.end());
        let kind = if ir_version > *last { Kind::Unsupported } else { Kind::Model };
        return Err(Error::new(kind, format!("ir_version {ir_version}: allowed {first}..={last}")).value(ir_version));
    }
    let opsets = model_opsets(&proto.opset_import, ir_version, registry, files)?;
    let (metadata, fields) = metadata(&proto, files)?;
    let graph = proto.graph.ok_or_else(|| Error::model("the model has no graph"))?;
    let texts = [text(&graph.name, files)?, text(&graph.doc_string, files)?];
    let functions = Functions::read(proto.functions, files)?;
    let mut draft = Draft::new(files.limits.fault_bytes());
    draft.may_sort = registry.compatibility.unsorted_nodes;
    if !proto.training_info.is_empty() {
        draft.note("training_info is not used".to_string(), &files.budget)?;
    }
    let imports: Opsets = opsets.iter().cloned().collect();
    note_opsets(&proto.opset_import, &imports, &mut draft, files)?;
    let mut loader = Loader {
        draft,
        registry,
        files,
        ir_version,
        functions,
        operators: Lookup::default(),
        seen: HashSet::new(),
        open: Vec::new(),
        sizes: HashSet::new(),
        nodes: 0,
        details,
    };
    loader.graph(graph, imports)?;
    let Loader { draft, functions, .. } = loader;
    let functions = if details { functions.into_infos(&files.budget)? } else { Vec::new() };
    Ok(LoadedModel { draft, ir_version, opsets, metadata, fields, graph: texts, functions })
}

pub(super) fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M> {
    M::decode(bytes).map_err(|e| Error::model(format!("the file is not an ONNX model, or is cut short: {e}")))
}

/// What a model says of itself, and how much of it in fields of its own, which come first.
fn metadata(proto: &shallow::Model, files: &ModelFiles) -> Result<(Vec<(String, String)>, usize)> {
    let version = proto.model_version.filter(|v| *v != 0).map(|v| v.to_string());
    let fields = [
        ("producer_name", &proto.producer_name),
        ("producer_version", &proto.producer_version),
        ("domain", &proto.domain),
        ("model_version", &version),
        ("doc_string", &proto.doc_string),
    ];
    let fields = fields.into_iter().filter_map(|(key, value)| Some((key, value.as_deref().filter(|v| !v.is_empty())?)));
    let own = proto.metadata_props.iter();
    let own = own.map(|e| (e.key.as_deref().unwrap_or_default(), e.value.as_deref().unwrap_or_default()));
    let copied = |(key, value): (&str, &str)| {
        files.budget.take(128 + (key.len() + value.len()) as u64)?;
        Ok((key.to_string(), value.to_string()))
    };
    let count = fields.clone().count();
    Ok((fields.chain(own).map(copied).collect::<Result<_>>()?, count))
}

/// A text that was left encoded; empty if it is missing.
fn text(bytes: &Option<Bytes>, files: &ModelFiles) -> Result<String> {
    let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default());
    files.budget.take(text.len() as u64)?;
    Ok(text.into_owned())
}

/// The nodes of the graph, or of a called function, and their context.
pub(super) struct Scope {
    pub(super) names: Names,
    pub(super) opsets: Arc<Opsets>,
    /// The attributes of the call, for the nodes of a function to refer to.
    pub(super) attributes: Option<Rc<HashMap<String, AttributeProto>>>,
    /// The calls that lead to the function.
    pub(super) function: Option<Arc<str>>,
    /// The function that is called; `None` for the graph.
    pub(super) called: Option<Rc<Decoded>>,
    /// The number of nodes read so far.
    pub(super) index: u32,
    /// It is a subgraph: it sees the names around it.
    pub(super) inner: bool,
}

pub(super) struct Loader<'a> {
    pub(super) draft: Draft,
    pub(super) registry: &'a Registry,
    pub(super) files: &'a ModelFiles,
    pub(super) ir_version: i64,
    pub(super) functions: Functions,
    pub(super) operators: Lookup,
    /// Functions that were looked into, as a node that can't run has calls of them inside.
    pub(super) seen: HashSet<usize>,
    /// The graphs around the subgraph that is read.
    pub(super) open: Vec<Around>,
    /// The names of sizes that inputs of graphs have so far.
    sizes: HashSet<String>,
    /// The number of nodes read so far, those of subgraphs included.
    pub(super) nodes: u64,
    /// Declared shapes are kept.
    details: bool,
}

impl Loader<'_> {
    fn graph(&mut self, proto: shallow::Graph, opsets: Opsets) -> Result<()> {
        let opsets = Arc::new(opsets);
        let names = Names::with_capacity(proto.node.len() + proto.initializer.len(), &self.files.budget)?;
        let mut scope = Scope { names, opsets, attributes: None, function: None, called: None, index: 0, inner: false };
        let nodes = proto.node.into_iter();
        let values = Values {
            initializers: proto.initializer.into_iter().map(decoded),
            sparse: proto.sparse_initializer.into_iter().map(decoded),
            inputs: proto.input,
            given: usize::MAX,
            outputs: proto.output,
            declared: proto.value_info.into_iter().map(decoded),
        };
        let outputs = self.values(&mut scope, nodes.len(), values)?;
        for node in nodes {
            self.node(&mut scope, decoded(node)?)?;
        }
        self.outputs(&mut scope, outputs)
    }

    /// Reads what is in a graph before its nodes into the draft. Returns the graph's outputs.
    pub(super) fn values<I, S, D>(
        &mut self,
        scope: &mut Scope,
        nodes: usize,
        values: Values<I, S, D>,
    ) -> Result<Vec<ValueInfo>>
    where
        I: ExactSizeIterator<Item = Result<TensorProto>>,
        S: Iterator<Item = Result<SparseTensorProto>>,
        D: Iterator<Item = Result<ValueInfoProto>>,
    {
        self.draft.reserve(nodes, values.initializers.len(), &self.files.budget)?;
        let Values { initializers, sparse, inputs, given, outputs, declared } = values;
        self.constants(&mut scope.names, &inputs, given, initializers, sparse)?;
        let outputs: Vec<ValueInfo> = outputs.iter().filter_map(|o| self.value_info(o, "output")).collect();
        for info in &outputs {
            if let Some(value_type) = info.value_type.clone() {
                let id = self.value(scope, &info.name)?;
                self.draft.declare(id, value_type, info.shape.clone().filter(|_| self.details));
            }
        }
        for info in declared {
            let info = info?;
            // A name that a subgraph doesn't give itself may be nobody's.
            let is_own = |name: &&String| self.open.is_empty() || scope.names.get(name).is_some();
            if let (Some(name), Some(value_type)) = (info.name.as_ref().filter(is_own), types::declared(&info)) {
                let (id, files) = (self.value(scope, name)?, self.files);
                // What can't be read isn't checked.
                let dims = || types::declared_dims(&info, &files.limits, &files.budget).unwrap_or_default();
                let dims = if self.details { dims() } else { None };
                self.draft.declare(id, value_type, dims);
            }
        }
        Ok(outputs)
    }

    /// Adds the outputs of a graph, after its nodes.
    pub(super) fn outputs(&mut self, scope: &mut Scope, outputs: Vec<ValueInfo>) -> Result<()> {
        for info in outputs {
            let id = self.value(scope, &info.name)?;
            self.draft.output(info, id);
        }
        Ok(())
    }

    /// Inputs and initializers.
    fn constants(
        &mut self,
        names: &mut Names,
        inputs: &[ValueInfoProto],
        given: usize,
        initializers: impl ExactSizeIterator<Item = Result<TensorProto>>,
        sparse: impl Iterator<Item = Result<SparseTensorProto>>,
    ) -> Result<()> {
        let mut initializers = self.initializers(initializers)?;
        for sparse in sparse {
            let sparse = sparse?;
            let name = sparse.values.as_ref().and_then(|v| v.name.clone()).unwrap_or_default();
            let value = sparse::read(sparse, self.files);
            let value = value.map_err(|error| error.within("initializer"));
            self.initializer(&mut initializers, name, value, Fact::default());
        }
        let (budget, mut sizes) = (&self.files.budget, Vec::new());
        for (k, input) in inputs.iter().enumerate() {
            let Some(info) = self.value_info(input, "input") else { continue };
            let id = self.draft.value(names, &info.name, budget)?;
            // Until IR version 3 an initializer fixes the input of its name; from 4 on it is the input's default.
            match initializers.take(&info.name) {
                Some(fact) if self.ir_version < 4 || k >= given => self.draft.constant(id, fact, Some(&info)),
                default => {
                    // The format has one scope of them, but exporters give a body's sizes the names of others.
                    sizes.extend(info.symbols().map(str::to_string));
                    self.draft.input(info, id, default.and_then(|mut fact| fact.take_value()));
                    if !self.open.is_empty() {
                        self.draft.forget_sizes(id, &self.sizes);
                    }
                }
            }
        }
        budget.take(sizes.iter().map(|name| 64 + name.len() as u64).sum())?;
        self.sizes.extend(sizes);
        for (name, fact) in initializers.rest() {
            if self.ir_version < 4 {
                let version = self.ir_version;
                let name = quote(&name);
                let text =
                    format!("initializer {name} is not an input too, as IR version {version} requires: it is constant");
                self.draft.note(text, budget)?;
            }
            let id = self.draft.value(names, &name, budget)?;
            self.draft.constant(id, fact, None);
        }
        Ok(())
    }

    fn initializers(&mut self, protos: impl ExactSizeIterator<Item = Result<TensorProto>>) -> Result<Initializers> {
        let (places, list) = (HashMap::with_capacity(protos.len()), Vec::with_capacity(protos.len()));
        let mut initializers = Initializers { places, list };
        for proto in protos {
            let proto = proto?;
            let name = proto.name.clone().unwrap_or_default();
            self.files.budget.take(512 + 4 * name.len() as u64)?;
            let declared = tensor::declared(&proto, self.files)?;
            let value = tensor::read(proto, self.files).map(Value::Tensor);
            // The system has no memory left: later initializers can't be read either.
            if let Err(error) = value.as_ref()
                && error.is_out_of_memory()
            {
                return value.map(|_| initializers);
            }
            let value = value.map_err(|error| error.within("initializer"));
            self.initializer(&mut initializers, name, value, declared);
        }
        Ok(initializers)
    }

    /// Adds an initializer; if its file can't be read, with what is declared.
    fn initializer(&mut self, initializers: &mut Initializers, name: String, value: Result<Value>, declared: Fact) {
        match value {
            Ok(value) => {
                if !initializers.add(name.clone(), Fact::constant(value)) {
                    let text = format!("two initializers are named {}", quote(&name));
                    self.draft.faults.push(Error::model(text).about(&name));
                }
            }
            Err(error) => {
                // What is wrong in the model may be the declaration.
                let fact = if error.kind() == Kind::Model { Fact::default() } else { declared };
                self.draft.faults.push(error);
                // The name is there: nodes that use it are not at fault.
                initializers.add(name, fact);
            }
        }
    }

    /// The declaration of an input or output. A fault is noted and gives `None`.
    fn value_info(&mut self, proto: &ValueInfoProto, what: &str) -> Option<ValueInfo> {
        let (info, read) = types::value_info(proto, &self.files.limits, &self.files.budget);
        let untyped = proto.r#type.as_ref().is_none_or(|proto| proto.value.is_none());
        let (name, budget) = (|| quote(&info.name), &self.files.budget);
        if let Err(error) = read {
            self.draft.faults.push(error.within(&format!("{what} {}", name())).about(&info.name));
            return Some(info);
        }
        let noted = if untyped && what == "input" {
            self.draft.note(format!("input {} has no type", name()), budget)
        } else if types::has_negative(proto) {
            let text = format!("{what} {} is declared with a negative dimension: its size is unknown", name());
            self.draft.note(text, budget)
        } else {
            Ok(())
        };
        match noted {
            Ok(()) => Some(info),
            Err(error) => {
                self.draft.faults.push(error);
                None
            }
        }
    }

    /// Adds a node to the draft, or returns what is to be read before.
    pub(super) fn next(&mut self, scope: &mut Scope, mut proto: NodeProto) -> Result<Option<Next>> {
        let (op_type, domain) = (proto.op_type.take().unwrap_or_default(), proto.domain.take());
        let (domain, overload) = (domain_of(domain.as_deref()), proto.overload.take().unwrap_or_default());
        let (name, index) = (proto.name.take().unwrap_or_default(), scope.index);
        let function = scope.function.clone();
        let place = |operator: Arc<Label>| NodePlace {
            index,
            name: name.as_str().into(),
            operator,
            function: function.clone(),
        };
        scope.index += 1;
        if let Some(function) = self.functions.find(domain, &op_type, &overload) {
            let place = place(Arc::new(Label::new(&op_type, domain, None)));
            return Ok(self.call(scope, place, function, proto)?.map(Next::Call));
        }
        // The scan counted the nodes of the file; expanding calls adds more.
        self.check_nodes(1)?;
        self.nodes += 1;
        let budget = &self.files.budget;
        let cost = node_cost(&proto, name.len() + op_type.len() + domain.len());
        budget.take(cost + scope.names.scope_bytes(proto.output.len()))?;
        let (mut inputs, mut outputs) = (Ids::new(), Ids::new());
        for (ids, names) in [(&mut inputs, &proto.input), (&mut outputs, &proto.output)] {
            for name in names {
                ids.push(self.optional(scope, name)?);
            }
        }
        let (place, read) = match self.resolve(&scope.opsets, domain, &op_type, &place)? {
            Some(resolved) => {
                // One that is left out by an empty name at the end is as one that isn't listed.
                let formal = |k: usize| resolved.schema.outputs.get(k).map(|formal| formal.arity);
                while outputs.last() == Some(&None) && formal(outputs.len() - 1) == Some(Arity::Optional) {
                    outputs.pop();
                }
                let place = place(resolved.label.clone());
                let attributes = scope.bind(proto.attribute, budget).map_err(|error| vec![error]);
                let read = |protos| attribute::read(protos, &resolved, self.ir_version, self.files);
                let read = attributes.and_then(read);
                (place, read.map(|given| (resolved, given)))
            }
            None => {
                let place = place(Arc::new(Label::new(&op_type, domain, None)));
                self.inner_operators(scope, &place, proto.attribute)?;
                (place, Err(Vec::new()))
            }
        };
        let (resolved, given) = match read {
            Ok((resolved, given)) => (Some(resolved), given),
            Err(faults) => {
                self.draft.broken(&place, faults);
                (None, Given::default())
            }
        };
        let Given { values: attributes, graphs } = given;
        if graphs.is_empty() {
            self.draft.node(place, resolved, attributes, inputs, outputs);
            return Ok(None);
        }
        let (bodies, graphs) = (Vec::with_capacity(graphs.len()), graphs.into_iter());
        let key = key(&proto.output, place.index).into_owned();
        let waiting = Waiting { place, key, resolved, attributes, inputs, outputs, graphs, bodies };
        Ok(Some(Next::Bodies(Box::new(waiting))))
    }
}

/// Upper bound on the memory of a node in the draft and in the graph; `names` is the length of its own names.
fn node_cost(proto: &NodeProto, names: usize) -> u64 {
    // The node has room for a few values.
    let (inputs, outputs) = (proto.input.len().saturating_sub(3), proto.output.len().saturating_sub(1));
    (NODE_BYTES + 32 + names + 32 * inputs + 128 * outputs) as u64
}

/// Initializers by name, in the order of the file.
struct Initializers {
    places: HashMap<String, usize>,
    /// An entry is `None` once it has been taken.
    list: Vec<Option<(String, Fact)>>,
}

impl Initializers {
    /// Returns whether the name was free.
    fn add(&mut self, name: String, fact: Fact) -> bool {
        let free = !self.places.contains_key(&name);
        if free {
            self.places.insert(name.clone(), self.list.len());
            self.list.push(Some((name, fact)));
        }
        free
    }

    fn take(&mut self, name: &str) -> Option<Fact> {
        let place = self.places.get(name)?;
        self.list.get_mut(*place)?.take().map(|(_, fact)| fact)
    }

    fn rest(self) -> impl Iterator<Item = (String, Fact)> {
        self.list.into_iter().flatten()
    }
}
