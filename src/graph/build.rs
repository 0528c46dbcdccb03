//! From names to a graph: one definition for each name, sorted nodes, known types; and slots.

use super::{Dim, DimsText, Graph, Input, Node, NodeOutput, Output, Source, ValueInfo, types};
use crate::dtype::{DType, ShapeText};
use crate::error::{Error, Result, quote};
use crate::operator::Resolved;
use crate::schema::Attribute;
use crate::value::Value;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Builds a graph from a format's names. Faults are collected, so that all of them are reported at once.
#[derive(Default)]
pub(crate) struct Builder {
    names: HashMap<String, Definition>,
    inputs: Vec<Input>,
    /// The graph's outputs, and the value that each is.
    outputs: Vec<(ValueInfo, String)>,
    constants: Vec<Value>,
    nodes: Vec<Node>,
    /// The number of outputs of all nodes so far.
    produced: usize,
    symbols: HashMap<String, usize>,
    /// The declared element types of values that nodes produce.
    declared: HashMap<String, DType>,
    faults: Faults,
    /// Names that a node used before they were defined: the node's index, and the error if they never are.
    unknown: Vec<(String, usize, Error)>,
    unknown_weight: usize,
    /// Inputs whose initializer can't be overridden.
    fixed: Vec<String>,
}

/// Faults in the order they were found; only so many that they stay readable, and their memory bounded.
#[derive(Default)]
struct Faults {
    list: Vec<Error>,
    left_out: usize,
    weight: usize,
    /// So many bytes of them are kept.
    most: usize,
}

impl Faults {
    const KEPT: usize = 1000;

    fn full(&self) -> bool {
        self.list.len() >= Self::KEPT || self.weight >= self.most
    }

    fn push(&mut self, error: Error) {
        if !self.full() {
            self.weight += error.weight();
            self.list.push(error);
        } else {
            self.left_out += 1;
        }
    }
}

/// Where a node's inputs come from.
type Sources = SmallVec<[Option<Source>; 3]>;

/// What a name stands for.
struct Definition {
    source: Source,
    dtype: Option<DType>,
    by: By,
}

/// Who defined a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Input,
    Initializer,
    Node(usize),
}

/// A node as a format has it.
#[derive(Clone, Copy)]
pub(crate) struct NodeNames<'a> {
    pub(crate) index: usize,
    pub(crate) name: &'a str,
    pub(crate) operator: &'a str,
    pub(crate) domain: &'a str,
    /// The version of the operator that rules, if there is one.
    pub(crate) version: Option<i64>,
    pub(crate) inputs: &'a [String],
    pub(crate) outputs: &'a [String],
}

impl NodeNames<'_> {
    /// The error with the node in its place.
    pub(crate) fn locate(&self, error: Error) -> Error {
        error.at(|place| {
            place.node_index = Some(self.index);
            place.node = Some(self.name.to_string());
            // Of a node in a subgraph the operator is known already.
            if place.operator.is_none() {
                place.operator = Some(self.operator.to_string()).filter(|operator| !operator.is_empty());
                place.domain = Some(self.domain.to_string());
                place.version = self.version;
            }
        })
    }

    /// An error of the node about one of its values.
    fn fault(&self, value_name: &str, text: String) -> Error {
        self.locate(Error::model(text)).at(|place| place.value_name = Some(value_name.to_string()))
    }
}

impl Builder {
    /// A builder that keeps so many bytes of faults, and one more fault.
    pub(crate) fn new(fault_bytes: usize) -> Builder {
        let faults = Faults { most: fault_bytes.max(1), ..Faults::default() };
        Builder { faults, ..Builder::default() }
    }

    /// Makes room for so many more nodes, each with a value, and initializers.
    pub(crate) fn reserve(&mut self, nodes: usize, initializers: usize) {
        self.nodes.reserve_exact(nodes);
        self.constants.reserve_exact(initializers);
        self.names.reserve(nodes + initializers);
    }

    /// No more faults are kept: looking for them is in vain.
    pub(crate) fn is_full(&self) -> bool {
        self.faults.full()
    }

    /// Notes a fault and goes on.
    pub(crate) fn fault(&mut self, error: Error) {
        self.faults.push(error);
    }

    /// The element type that the model declares for a value that a node produces.
    pub(crate) fn declare(&mut self, name: &str, dtype: DType) {
        let first = *self.declared.entry(name.to_string()).or_insert(dtype);
        if first != dtype {
            let text = format!("{} is declared as {first} and as {dtype}", quote(name));
            self.faults.push(Error::model(text).at(|place| place.value_name = Some(name.into())));
        }
    }

    /// An input of the graph that nodes know by another name.
    pub(crate) fn input_as(&mut self, info: ValueInfo, value: String) {
        self.add_input(info, &value, None);
    }

    /// An input of the graph, with its default if the model has one.
    pub(crate) fn input(&mut self, info: ValueInfo, default: Option<Value>) {
        let name = info.name.clone();
        self.add_input(info, &name, default);
    }

    fn add_input(&mut self, info: ValueInfo, value: &str, default: Option<Value>) {
        if let Some(Err(error)) = default.as_ref().map(|value| check_default(&info, value)) {
            self.faults.push(error);
        }
        let symbols = self.symbols(&info);
        let source = Source::Input(self.inputs.len());
        self.define(value, Definition { source, dtype: info.dtype, by: By::Input });
        self.inputs.push(Input { info, default, symbols });
    }

    /// The numbers of the symbols in a declared shape.
    fn symbols(&mut self, info: &ValueInfo) -> SmallVec<[Option<usize>; 4]> {
        let mut number = |dim: &Dim| match dim {
            Dim::Symbol(name) => {
                let next = self.symbols.len();
                Some(*self.symbols.entry(name.clone()).or_insert(next))
            }
            _ => None,
        };
        info.shape.iter().flatten().map(&mut number).collect()
    }

    /// An initializer that can't be overridden, if its value can be had; `declared` is the graph input of the same
    /// name, if there is one.
    pub(crate) fn constant(&mut self, name: &str, value: Option<Value>, declared: Option<&ValueInfo>) {
        if let (Some(info), Some(value)) = (declared, &value)
            && let Err(error) = check_default(info, value)
        {
            self.faults.push(error);
        }
        let own = value.as_ref().and_then(|value| Some(value.tensor().ok()?.dtype()));
        // What is declared is what nodes were written for.
        let dtype = declared.and_then(|info| info.dtype).or(own);
        self.define(name, Definition { source: Source::Constant(self.constants.len()), dtype, by: By::Initializer });
        if declared.is_some() {
            self.fixed.push(name.to_string());
        }
        self.constants.extend(value);
    }

    fn define(&mut self, name: &str, definition: Definition) {
        if let Err(error) = self.try_define(name, definition) {
            self.faults.push(error);
        }
    }

    fn try_define(&mut self, name: &str, definition: Definition) -> Result<()> {
        if name.is_empty() {
            return Err(Error::model(format!("{} has no name", definition.by.describe())));
        }
        let Some(first) = self.names.get(name) else {
            self.names.insert(name.to_string(), definition);
            return Ok(());
        };
        let (first, second) = (first.by.describe(), definition.by.describe());
        Err(Error::model(format!("the name {} is given twice: by {first} and by {second}", quote(name)))
            .at(|place| place.value_name = Some(name.into())))
    }

    /// A node whose operator can't be had, for one reason or several. Its outputs count as produced.
    pub(crate) fn broken_node(&mut self, node: &NodeNames<'_>, faults: Vec<Error>) {
        for fault in faults {
            // Names are copied into what is kept only.
            let fault = if self.faults.full() { fault } else { node.locate(fault) };
            self.faults.push(fault);
        }
        self.find_inputs(node);
        self.define_outputs(node, &[]);
    }

    /// A node.
    pub(crate) fn node(&mut self, node: &NodeNames<'_>, resolved: &Resolved, attributes: Vec<(String, Attribute)>) {
        let schema = &resolved.schema;
        let present = |names: &[String]| names.iter().map(|name| !name.is_empty()).collect::<Vec<_>>();
        let checked = types::check_arity(schema, &present(node.inputs), &present(node.outputs));
        let operator = match checked.and_then(|()| resolved.load(attributes)) {
            Ok(operator) => operator,
            Err(error) => return self.broken_node(node, vec![error]),
        };
        let (inputs, dtypes) = self.find_inputs(node);
        let types = types::check(schema, &dtypes, node.outputs.len()).unwrap_or_else(|error| {
            self.faults.push(node.locate(error));
            types::Types::default()
        });
        let outputs = self.define_outputs(node, &types.outputs);
        self.nodes.push(Node {
            index: node.index,
            name: node.name.to_string(),
            schema: schema.clone(),
            operator,
            inputs,
            outputs,
            release: SmallVec::new(),
            check_inputs: types.open,
        });
    }

    /// Where the inputs come from, and their types: as [`types::check`] takes them.
    fn find_inputs(&mut self, node: &NodeNames<'_>) -> (Sources, Vec<Option<Option<DType>>>) {
        let mut dtypes = Vec::with_capacity(node.inputs.len());
        let mut sources = SmallVec::with_capacity(node.inputs.len());
        for name in node.inputs {
            let found = self.names.get(name);
            if found.is_none() && !name.is_empty() && self.unknown_weight < self.faults.most {
                let error = node.fault(name, format!("input {} is produced by", quote(name)));
                self.unknown_weight += error.weight() + name.len();
                self.unknown.push((name.clone(), node.index, error));
            }
            sources.push(found.map(|definition| definition.source));
            dtypes.push((!name.is_empty()).then(|| found.and_then(|definition| definition.dtype)));
        }
        (sources, dtypes)
    }

    fn define_outputs(&mut self, node: &NodeNames<'_>, types: &[Option<DType>]) -> SmallVec<[NodeOutput; 1]> {
        let mut outputs = SmallVec::new();
        for (k, name) in node.outputs.iter().enumerate() {
            let known = types.get(k).copied().flatten();
            let declared = self.declared.get(name).copied();
            if let (Some(known), Some(declared)) = (known, declared)
                && known != declared
            {
                let text = format!("output {} has element type {known}, and is declared as {declared}", quote(name));
                self.faults.push(node.fault(name, text));
            }
            let number = self.produced;
            self.produced += 1;
            outputs.push(NodeOutput { slot: (!name.is_empty()).then_some(number), known, declared });
            if !name.is_empty() {
                let (source, dtype) = (Source::Slot(number), known.or(declared));
                if let Err(error) = self.try_define(name, Definition { source, dtype, by: By::Node(node.index) }) {
                    self.faults.push(node.locate(error));
                }
            }
        }
        outputs
    }

    /// An output of the graph: the value called `value`.
    pub(crate) fn output(&mut self, info: ValueInfo, value: &str) {
        self.outputs.push((info, value.to_string()));
    }

    /// The graph; or all faults, those of nodes in the order of the nodes.
    pub(crate) fn finish(mut self) -> Result<Graph> {
        for (name, index, error) in std::mem::take(&mut self.unknown) {
            let by = match self.names.get(&name).map(|definition| definition.by) {
                Some(By::Node(by)) if by == index => "the node itself: a cycle".to_string(),
                Some(By::Node(by)) => format!("node #{by}, which comes later: nodes must be sorted"),
                _ => "nothing".to_string(),
            };
            self.faults.push(error.and(&format!(" {by}")));
        }
        let outputs = std::mem::take(&mut self.outputs).into_iter();
        let outputs: Vec<_> = outputs.filter_map(|(info, value)| self.find_output(info, &value)).collect();
        let Faults { mut list, left_out, .. } = self.faults;
        list.sort_by_key(|fault| fault.place().node_index);
        if let Some(error) = Error::all(list, left_out) {
            return Err(error);
        }
        let mut graph = Graph {
            inputs_by_name: sorted_places(self.inputs.iter().map(|input| input.info.name.as_str()).collect()),
            outputs_by_name: sorted_places(outputs.iter().map(|output| &*output.name).collect()),
            inputs: self.inputs,
            outputs,
            constants: self.constants,
            nodes: self.nodes,
            slots: 0,
            symbols: self.symbols.len(),
            fixed: self.fixed,
        };
        let mut seen = HashMap::new();
        graph.outputs.iter().for_each(|output| *seen.entry(output.source).or_insert(0) += 1);
        graph.outputs.iter_mut().for_each(|output| output.once = seen.get(&output.source) == Some(&1));
        assign_slots(&mut graph, self.produced);
        Ok(graph)
    }

    fn find_output(&mut self, mut info: ValueInfo, value: &str) -> Option<Output> {
        let at = |name: &str| {
            let name = name.to_string();
            move |place: &mut crate::error::Place| place.value_name = Some(name)
        };
        let Some(definition) = self.names.get(value) else {
            let text = format!("the graph's output {} is produced by nothing", quote(&info.name));
            self.faults.push(Error::model(text).at(at(&info.name)));
            return None;
        };
        if let (Some(known), Some(declared)) = (definition.dtype, info.dtype) {
            // What nodes produce has been compared where they were added.
            if known != declared && !matches!(definition.by, By::Node(_)) {
                let name = quote(&info.name);
                let text = format!("the graph's output {name} has element type {known}, and is declared as {declared}");
                self.faults.push(Error::model(text).at(at(&info.name)));
            }
        }
        let (source, known) = (definition.source, definition.dtype);
        let check = info.dtype.filter(|_| known.is_none());
        let (name, symbols) = (info.name.as_str().into(), self.symbols(&info));
        info.dtype = info.dtype.or(known);
        Some(Output { info, name, source, once: true, check, symbols })
    }
}

/// The places of names in their order; of equal ones the first first.
fn sorted_places(names: Vec<&str>) -> Vec<usize> {
    let mut places: Vec<usize> = (0..names.len()).collect();
    places.sort_by_key(|&k| names.get(k));
    places
}

impl By {
    fn describe(self) -> String {
        match self {
            By::Input => "an input of the graph".to_string(),
            By::Initializer => "an initializer".to_string(),
            By::Node(index) => format!("node #{index}"),
        }
    }
}

/// An initializer that is an input too has the input's type, and its shape where that is fixed.
fn check_default(info: &ValueInfo, value: &Value) -> Result<()> {
    let tensor = value.tensor()?;
    let name = quote(&info.name);
    let fault = |text: String| Err(Error::model(text).at(|place| place.value_name = Some(info.name.clone())));
    if let Some(dtype) = info.dtype.filter(|dtype| *dtype != tensor.dtype()) {
        return fault(format!(
            "initializer {name} has element type {}, and the input {name} has {dtype}",
            tensor.dtype()
        ));
    }
    if let Some(dims) = info.shape.as_ref().filter(|dims| !fits(dims, tensor.shape())) {
        let (shape, dims) = (ShapeText(tensor.shape()), DimsText(dims));
        return fault(format!("initializer {name} has shape {shape}, and the input {name} is declared as {dims}"));
    }
    Ok(())
}

/// Whether a shape is as it is declared.
fn fits(dims: &[Dim], shape: &[usize]) -> bool {
    let same = |(axis, (dim, size)): (usize, (&Dim, &usize))| match dim {
        Dim::Fixed(fixed) => fixed == size,
        Dim::Symbol(_) => dims.iter().zip(shape).take(axis).all(|(other, known)| other != dim || known == size),
        Dim::Unknown => true,
    };
    dims.len() == shape.len() && dims.iter().zip(shape).enumerate().all(same)
}

/// Replaces the numbers of produced values by slots, which are used again once their value is not.
fn assign_slots(graph: &mut Graph, produced: usize) {
    const KEPT: usize = usize::MAX;
    let mut last_use: Vec<Option<usize>> = vec![None; produced];
    let mut mark = |source: &Source, at: usize| {
        if let Source::Slot(number) = source
            && let Some(last) = last_use.get_mut(*number)
        {
            *last = Some(at);
        }
    };
    for (at, node) in graph.nodes.iter().enumerate() {
        node.inputs.iter().flatten().for_each(|source| mark(source, at));
    }
    graph.outputs.iter().for_each(|output| mark(&output.source, KEPT));

    let mut slot_of: Vec<usize> = vec![0; produced];
    let mut free: Vec<usize> = Vec::new();
    let renamed = |source: &mut Source, slot_of: &[usize]| {
        if let Source::Slot(number) = source {
            *number = slot_of.get(*number).copied().unwrap_or(0);
        }
    };
    for (at, node) in graph.nodes.iter_mut().enumerate() {
        // What this node reads last is free for later nodes, not for its own outputs.
        let mut freed: SmallVec<[usize; 2]> = SmallVec::new();
        for source in node.inputs.iter_mut().flatten() {
            let last = match source {
                Source::Slot(number) => last_use.get_mut(*number).filter(|last| **last == Some(at)),
                _ => None,
            };
            renamed(source, &slot_of);
            // A value that the node reads twice is freed once.
            if let (Some(last), Source::Slot(slot)) = (last, source) {
                *last = None;
                freed.push(*slot);
            }
        }
        for output in &mut node.outputs {
            let Some(number) = output.slot else { continue };
            let slot = free.pop().unwrap_or_else(|| {
                graph.slots += 1;
                graph.slots - 1
            });
            if let Some(entry) = slot_of.get_mut(number) {
                *entry = slot;
            }
            // An output that nobody reads is dropped at once.
            if last_use.get(number) == Some(&None) {
                freed.push(slot);
            }
            output.slot = Some(slot);
        }
        free.extend(&freed);
        node.release = freed;
    }
    graph.outputs.iter_mut().for_each(|output| renamed(&mut output.source, &slot_of));
}
