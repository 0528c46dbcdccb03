//! A graph, ready to run: every name is a slot, every operator is made, every type that can be known is checked.

mod build;
mod types;

pub(crate) use build::{Builder, NodeNames};

use crate::dtype::{DType, ShapeText};
use crate::error::{Error, Kind, Result, quote};
use crate::operator::{Call, Operator};
use crate::schema::Schema;
use crate::value::Value;
use smallvec::SmallVec;
use std::sync::Arc;

/// Where a node finds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// What is fed to an input of the graph, or its default.
    Input(usize),
    /// An initializer.
    Constant(usize),
    /// What a node produced, by the node's output until slots are given out and by slot then.
    Slot(usize),
}

/// One dimension of a declared shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dim {
    /// A fixed size.
    Fixed(usize),
    /// A name: the same size wherever it stands.
    Symbol(String),
    /// Any size.
    Unknown,
}

/// What a model says about one of its inputs or outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueInfo {
    /// The name.
    pub name: String,
    /// The element type, if it is said.
    pub dtype: Option<DType>,
    /// The shape, if it is said.
    pub shape: Option<Vec<Dim>>,
}

#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) info: ValueInfo,
    /// The initializer of the same name, which is used where nothing is fed.
    pub(crate) default: Option<Value>,
    /// For each dimension of the declared shape: its number among the graph's symbols, if it is one.
    symbols: SmallVec<[Option<usize>; 4]>,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) info: ValueInfo,
    source: Source,
}

#[derive(Debug)]
struct Node {
    index: usize,
    name: String,
    schema: Arc<Schema>,
    operator: Box<dyn Operator>,
    inputs: SmallVec<[Option<Source>; 3]>,
    /// The slot of each output, and the element type that it will have if that is known.
    outputs: SmallVec<[(Option<usize>, Option<DType>); 1]>,
    /// Slots that no later node reads.
    release: SmallVec<[usize; 2]>,
    /// The type of an input isn't known before a run and is checked then.
    check_inputs: bool,
}

/// A graph of nodes in the order they run.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
    constants: Vec<Value>,
    nodes: Vec<Node>,
    slots: usize,
    symbols: usize,
}

impl Graph {
    /// The number of nodes.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The values of the graph's outputs. `feeds` has one place for each of the graph's inputs.
    pub(crate) fn run(&self, feeds: &[Option<&Value>]) -> Result<Vec<Value>> {
        self.check_feeds(feeds)?;
        let mut slots: Vec<Option<Value>> = vec![None; self.slots];
        for node in &self.nodes {
            let run = || -> Result<_> {
                let find = |source: &Option<Source>| source.map(|source| self.find(source, feeds, &slots)).transpose();
                let inputs = node.inputs.iter().map(find).collect::<Result<SmallVec<[_; 3]>>>()?;
                node.run(&inputs)
            };
            let values = run().map_err(|error| node.locate(error))?;
            for ((slot, _), value) in node.outputs.iter().zip(values) {
                if let Some(held) = slot.and_then(|slot| slots.get_mut(slot)) {
                    *held = Some(value);
                }
            }
            for slot in &node.release {
                if let Some(held) = slots.get_mut(*slot) {
                    *held = None;
                }
            }
        }
        self.outputs.iter().map(|output| self.find(output.source, feeds, &slots).cloned()).collect()
    }

    fn find<'a>(
        &'a self,
        source: Source,
        feeds: &[Option<&'a Value>],
        slots: &'a [Option<Value>],
    ) -> Result<&'a Value> {
        match source {
            Source::Input(k) => feeds.get(k).copied().flatten().or_else(|| self.inputs.get(k)?.default.as_ref()),
            Source::Constant(k) => self.constants.get(k),
            Source::Slot(k) => slots.get(k).and_then(Option::as_ref),
        }
        // The builder lets no node read what isn't there, and feeds are checked.
        .ok_or_else(|| Error::model("a value is used that was not produced"))
    }

    /// Each input has a value of its declared type and shape.
    fn check_feeds(&self, feeds: &[Option<&Value>]) -> Result<()> {
        // For each symbol: its size, and the input that gave it.
        let mut symbols: SmallVec<[Option<(usize, &str)>; 4]> = SmallVec::from_elem(None, self.symbols);
        for (input, feed) in self.inputs.iter().zip(feeds) {
            let Input { info, default, .. } = input;
            let Some(value) = feed else {
                if default.is_none() {
                    return Err(fault(&info.name, "is not fed".to_string()));
                }
                continue;
            };
            let tensor = value.tensor()?;
            if let Some(dtype) = info.dtype.filter(|dtype| *dtype != tensor.dtype()) {
                return Err(fault(
                    &info.name,
                    format!("has element type {}, and the model takes {dtype}", tensor.dtype()),
                ));
            }
            let Some(dims) = &info.shape else { continue };
            if dims.len() != tensor.rank() {
                let shape = ShapeText(tensor.shape());
                let text =
                    format!("has shape {shape} of rank {}, and the model takes rank {}", tensor.rank(), dims.len());
                return Err(fault(&info.name, text));
            }
            for (axis, ((dim, symbol), &size)) in dims.iter().zip(&input.symbols).zip(tensor.shape()).enumerate() {
                let known = symbol.and_then(|k| symbols.get_mut(k));
                let text = match (dim, known) {
                    (Dim::Fixed(fixed), _) if *fixed != size => format!("and the model takes {fixed}"),
                    (Dim::Symbol(name), Some(Some((known, by)))) if *known != size => {
                        format!("and {} is {known} in {}", quote(name), quote(by))
                    }
                    (_, Some(known)) => {
                        known.get_or_insert((size, &info.name));
                        continue;
                    }
                    _ => continue,
                };
                let shape = ShapeText(tensor.shape());
                let error = fault(&info.name, format!("has shape {shape}: dimension {axis} is {size}, {text}"));
                return Err(error.at(|place| {
                    place.axis = Some(axis as i64);
                    place.size = Some(size);
                }));
            }
        }
        Ok(())
    }
}

fn fault(input: &str, text: String) -> Error {
    Error::input(format!("input {} {text}", quote(input))).at(|place| place.value_name = Some(input.into()))
}

impl Node {
    fn run(&self, inputs: &[Option<&Value>]) -> Result<crate::operator::Values> {
        let types = if self.check_inputs {
            let types: SmallVec<[_; 3]> =
                inputs.iter().map(|v| v.map(|v| Some(v.tensor().map(crate::Tensor::dtype).ok()).flatten())).collect();
            Some(types::check(&self.schema, &types, self.outputs.len()).map_err(|e| e.with_kind(Kind::Input))?)
        } else {
            None
        };
        let values = self.operator.run(&Call::new(inputs, self.outputs.len()))?;
        if values.len() != self.outputs.len() {
            let (got, want) = (values.len(), self.outputs.len());
            return Err(Error::unsupported(format!("the operator's implementation gave {got} outputs, not {want}")));
        }
        for (k, (value, (_, known))) in values.iter().zip(&self.outputs).enumerate() {
            let want = known.or_else(|| types.as_ref()?.outputs.get(k).copied().flatten());
            let got = value.tensor()?.dtype();
            if want.is_some_and(|want| want != got) {
                let want = want.map_or("", DType::name);
                return Err(Error::model(format!("output {k} has element type {got}, and is declared as {want}")));
            }
        }
        Ok(values)
    }

    fn locate(&self, error: Error) -> Error {
        locate(error, self.index, &self.name, &self.schema)
    }
}

/// The error with the node and its operator in its place.
fn locate(error: Error, index: usize, name: &str, schema: &Schema) -> Error {
    error.at(|place| {
        place.node_index = Some(index);
        place.node = Some(name.to_string());
        place.operator = Some(schema.name.clone());
        place.domain = Some(schema.domain.clone());
        place.version = Some(schema.since_version);
    })
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Fixed(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.write_str(quote(name).trim_matches('"')),
            Dim::Unknown => f.write_str("?"),
        }
    }
}
