//! From names to a graph: one definition for each name, sorted nodes, known types; and slots.

use super::{Dim, Graph, Input, Node, Output, Source, ValueInfo, locate, types};
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
    outputs: Vec<ValueInfo>,
    constants: Vec<Value>,
    nodes: Vec<Node>,
    /// The number of outputs of all nodes so far.
    produced: usize,
    symbols: HashMap<String, usize>,
    /// The declared element types of values that nodes produce.
    declared: HashMap<String, DType>,
    faults: Vec<Error>,
    /// Names that a node used before they were defined: the node's index, and the error if they never are.
    unknown: Vec<(String, usize, Error)>,
    node_count: usize,
}

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
pub(crate) struct NodeNames<'a> {
    pub(crate) name: &'a str,
    pub(crate) inputs: &'a [String],
    pub(crate) outputs: &'a [String],
}

impl Builder {
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

    /// An input of the graph, with its default if the model has one.
    pub(crate) fn input(&mut self, info: ValueInfo, default: Option<Value>) {
        let mut symbols = SmallVec::new();
        for dim in info.shape.iter().flatten() {
            symbols.push(match dim {
                Dim::Symbol(name) => {
                    let next = self.symbols.len();
                    Some(*self.symbols.entry(name.clone()).or_insert(next))
                }
                _ => None,
            });
        }
        if let Some(value) = &default {
            if let Err(error) = check_default(&info, value) {
                self.faults.push(error);
            }
        }
        let definition = Definition { source: Source::Input(self.inputs.len()), dtype: info.dtype, by: By::Input };
        self.define(&info.name, definition);
        self.inputs.push(Input { info, default, symbols });
    }

    /// An initializer that can't be overridden; `declared` is the graph input of the same name, if there is one.
    pub(crate) fn constant(&mut self, name: &str, value: Value, declared: Option<&ValueInfo>) {
        if let Some(Err(error)) = declared.map(|info| check_default(info, &value)) {
            self.faults.push(error);
        }
        let dtype = value.tensor().ok().map(crate::Tensor::dtype);
        let definition = Definition { source: Source::Constant(self.constants.len()), dtype, by: By::Initializer };
        self.define(name, definition);
        self.constants.push(value);
    }

    fn define(&mut self, name: &str, definition: Definition) {
        if name.is_empty() {
            let what = definition.by.describe();
            self.faults.push(Error::model(format!("{what} has no name")));
            return;
        }
        match self.names.get(name) {
            None => {
                self.names.insert(name.to_string(), definition);
            }
            Some(first) => {
                let (first, second) = (first.by.describe(), definition.by.describe());
                let text = format!("the name {} is given twice: by {first} and by {second}", quote(name));
                self.faults.push(Error::model(text).at(|place| {
                    place.value_name = Some(name.into());
                    if let By::Node(index) = definition.by {
                        place.node_index = Some(index);
                    }
                }));
            }
        }
    }

    /// A node whose operator can't be had, for one reason or several. Its outputs count as produced.
    pub(crate) fn broken_node(&mut self, names: &NodeNames<'_>, faults: Vec<Error>) {
        let index = self.node_count;
        self.node_count += 1;
        self.faults.extend(faults);
        self.find_inputs(names, index);
        self.define_outputs(names, index, &[]);
    }

    /// A node.
    pub(crate) fn node(&mut self, names: &NodeNames<'_>, resolved: &Resolved, attributes: Vec<(String, Attribute)>) {
        let index = self.node_count;
        let schema = &resolved.schema;
        let present = |names: &[String]| names.iter().map(|name| !name.is_empty()).collect::<Vec<_>>();
        let checked = types::check_arity(schema, &present(names.inputs), &present(names.outputs));
        let operator = checked.and_then(|()| resolved.load(attributes));
        let operator = match operator {
            Ok(operator) => operator,
            Err(error) => return self.broken_node(names, vec![locate(error, index, names.name, schema)]),
        };
        self.node_count += 1;
        let (inputs, dtypes) = self.find_inputs(names, index);
        let types = types::check(schema, &dtypes, names.outputs.len()).unwrap_or_else(|error| {
            self.faults.push(locate(error, index, names.name, schema));
            types::Types::default()
        });
        let outputs = self.define_outputs(names, index, &types.outputs);
        self.nodes.push(Node {
            index,
            name: names.name.to_string(),
            schema: schema.clone(),
            operator,
            inputs,
            outputs,
            release: SmallVec::new(),
            check_inputs: types.open,
        });
    }

    #[allow(clippy::type_complexity)]
    fn find_inputs(
        &mut self,
        names: &NodeNames<'_>,
        index: usize,
    ) -> (SmallVec<[Option<Source>; 3]>, Vec<Option<Option<DType>>>) {
        let mut dtypes = Vec::with_capacity(names.inputs.len());
        let mut sources = SmallVec::new();
        for name in names.inputs {
            let found = self.names.get(name);
            if found.is_none() && !name.is_empty() {
                let error = Error::model(format!("input {} is produced by nothing", quote(name))).at(|place| {
                    place.node_index = Some(index);
                    place.node = Some(names.name.to_string());
                    place.value_name = Some(name.clone());
                });
                self.unknown.push((name.clone(), index, error));
            }
            sources.push(found.map(|definition| definition.source));
            dtypes.push((!name.is_empty()).then(|| found.and_then(|definition| definition.dtype)));
        }
        (sources, dtypes)
    }

    fn define_outputs(
        &mut self,
        names: &NodeNames<'_>,
        index: usize,
        types: &[Option<DType>],
    ) -> SmallVec<[(Option<usize>, Option<DType>); 1]> {
        let mut outputs = SmallVec::new();
        for (k, name) in names.outputs.iter().enumerate() {
            let known = types.get(k).copied().flatten();
            let declared = self.declared.get(name).copied();
            if let (Some(known), Some(declared)) = (known, declared) {
                if known != declared {
                    let text =
                        format!("output {} has element type {known}, and is declared as {declared}", quote(name));
                    self.faults.push(Error::model(text).at(|place| {
                        place.node_index = Some(index);
                        place.node = Some(names.name.to_string());
                        place.value_name = Some(name.clone());
                    }));
                }
            }
            let dtype = known.or(declared);
            let number = self.produced;
            self.produced += 1;
            outputs.push(((!name.is_empty()).then_some(number), dtype));
            if !name.is_empty() {
                self.define(name, Definition { source: Source::Slot(number), dtype, by: By::Node(index) });
            }
        }
        outputs
    }

    /// An output of the graph.
    pub(crate) fn output(&mut self, info: ValueInfo) {
        self.outputs.push(info);
    }

    /// The graph; or all faults, those of nodes in the order of the nodes.
    pub(crate) fn finish(mut self) -> Result<Graph> {
        for (name, index, error) in std::mem::take(&mut self.unknown) {
            let error = match self.names.get(&name).map(|definition| definition.by) {
                None => error,
                Some(By::Node(by)) if by == index => self.reworded(error, &name, "the node itself: a cycle"),
                Some(By::Node(by)) => {
                    self.reworded(error, &name, &format!("node #{by}, which comes later: nodes must be sorted"))
                }
                Some(_) => continue,
            };
            self.faults.push(error);
        }
        let outputs = std::mem::take(&mut self.outputs).into_iter();
        let outputs = outputs.filter_map(|info| self.find_output(info)).collect();
        self.faults.sort_by_key(|fault| fault.place().node_index);
        if let Some(error) = Error::all(self.faults) {
            return Err(error);
        }
        let mut graph = Graph {
            inputs: self.inputs,
            outputs,
            constants: self.constants,
            nodes: self.nodes,
            slots: 0,
            symbols: self.symbols.len(),
        };
        assign_slots(&mut graph, self.produced);
        Ok(graph)
    }

    fn reworded(&self, error: Error, name: &str, by: &str) -> Error {
        let place = error.place().clone();
        Error::model(format!("input {} is produced by {by}", quote(name))).at(|p| *p = place)
    }

    fn find_output(&mut self, mut info: ValueInfo) -> Option<Output> {
        let at = |name: &str| {
            let name = name.to_string();
            move |place: &mut crate::error::Place| place.value_name = Some(name)
        };
        let Some(definition) = self.names.get(&info.name) else {
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
        info.dtype = info.dtype.or(definition.dtype);
        Some(Output { info, source: definition.source })
    }
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
    let fits = |dims: &Vec<Dim>| {
        let same = |(dim, size): (&Dim, &usize)| !matches!(dim, Dim::Fixed(fixed) if fixed != size);
        dims.len() == tensor.rank() && dims.iter().zip(tensor.shape()).all(same)
    };
    if info.shape.as_ref().is_some_and(|dims| !fits(dims)) {
        let shape = ShapeText(tensor.shape());
        return fault(format!("initializer {name} has shape {shape}, and the input {name} is declared with another"));
    }
    Ok(())
}

/// Replaces the numbers of produced values by slots, which are used again once their value is not.
fn assign_slots(graph: &mut Graph, produced: usize) {
    const KEPT: usize = usize::MAX;
    let mut last_use: Vec<Option<usize>> = vec![None; produced];
    let mut mark = |source: &Source, at: usize| {
        if let Source::Slot(number) = source {
            if let Some(last) = last_use.get_mut(*number) {
                *last = Some(at);
            }
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
            let dies = matches!(source, Source::Slot(number) if last_use.get(*number) == Some(&Some(at)));
            renamed(source, &slot_of);
            if let Source::Slot(slot) = source {
                if dies && !freed.contains(slot) {
                    freed.push(*slot);
                }
            }
        }
        for (output, _) in &mut node.outputs {
            let Some(number) = *output else { continue };
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
            *output = Some(slot);
        }
        free.extend(&freed);
        node.release = freed;
    }
    graph.outputs.iter_mut().for_each(|output| renamed(&mut output.source, &slot_of));
}
