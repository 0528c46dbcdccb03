//! A graph, ready to run: every name is a slot, every operator is made, every type that can be known is checked.

mod build;
mod types;

pub(crate) use build::{Builder, NodeNames};

use crate::dtype::{DType, ShapeText};
use crate::error::{Error, Kind, Result, escape, quote};
use crate::operator::{Call, Context, Operator, Values};
use crate::schema::Schema;
use crate::value::Value;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::sync::Arc;

/// Where a node finds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// The name again: runs share it.
    pub(crate) name: Arc<str>,
    /// The declared element type, if it is not known to be that of what is produced.
    check: Option<DType>,
    /// As of an input.
    symbols: SmallVec<[Option<usize>; 4]>,
    source: Source,
    /// No other output has the same source.
    once: bool,
}

#[derive(Debug)]
struct Node {
    index: usize,
    name: String,
    schema: Arc<Schema>,
    operator: Box<dyn Operator>,
    inputs: SmallVec<[Option<Source>; 3]>,
    outputs: SmallVec<[NodeOutput; 1]>,
    /// Slots that no later node reads.
    release: SmallVec<[usize; 2]>,
    /// The type of an input isn't known before a run and is checked then.
    check_inputs: bool,
}

#[derive(Debug)]
struct NodeOutput {
    /// Where the value goes; `None` if the node doesn't name it.
    slot: Option<usize>,
    /// The element type that follows from the inputs.
    known: Option<DType>,
    /// The element type that the model declares.
    declared: Option<DType>,
}

/// What nodes produced, by slot.
#[derive(Debug, Default)]
pub(crate) struct Slots(SmallVec<[Option<Value>; 2]>);

impl Slots {
    /// Gives the memory of all values to the next run.
    fn clear(&mut self, context: &Context) {
        for slot in &mut self.0 {
            if let Some(Value::Tensor(tensor)) = slot.take() {
                tensor.recycle(&context.memory);
            }
        }
    }
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
    /// Inputs that can't be fed, as their initializer can't be overridden.
    pub(crate) fixed: Vec<String>,
    /// The places of the inputs and of the outputs, in the order of their names.
    inputs_by_name: Vec<usize>,
    outputs_by_name: Vec<usize>,
}

/// What is fed to an input: a value, or a reference to one, or nothing.
pub(crate) trait Feed {
    fn value(&self) -> Option<&Value>;
}

impl<V: Borrow<Value>> Feed for Option<V> {
    #[inline]
    fn value(&self) -> Option<&Value> {
        self.as_ref().map(Borrow::borrow)
    }
}

/// The size of each symbol that feeds gave one, and the input that did.
pub(crate) type Symbols<'a> = SmallVec<[Option<(usize, &'a str)>; 4]>;

impl Graph {
    /// The number of nodes.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The place of an input.
    pub(crate) fn input_place(&self, name: &str) -> Option<usize> {
        find_name(&self.inputs_by_name, name, |k| self.inputs.get(k).map(|input| input.info.name.as_str()))
    }

    /// The place of an output.
    pub(crate) fn output_place(&self, name: &str) -> Option<usize> {
        find_name(&self.outputs_by_name, name, |k| self.outputs.get(k).map(|output| &*output.name))
    }

    /// Runs all nodes. `feeds` has one place for each of the graph's inputs; they have been checked.
    /// `slots` has what an earlier run left, and has the outputs afterwards.
    pub(crate) fn run(&self, feeds: &[impl Feed], slots: &mut Slots, context: &Context) -> Result<()> {
        slots.clear(context);
        context.start();
        slots.0.resize_with(self.slots, || None);
        for node in &self.nodes {
            context.check_cancel()?;
            let values = self.call(node, feeds, slots, context).map_err(|error| node.locate(error))?;
            for (output, value) in node.outputs.iter().zip(values) {
                context.memory.came(value.tensor()?.held())?;
                if let Some(held) = output.slot.and_then(|slot| slots.0.get_mut(slot)) {
                    *held = Some(value);
                }
            }
            for slot in &node.release {
                if let Some(Value::Tensor(tensor)) = slots.0.get_mut(*slot).and_then(Option::take) {
                    context.memory.gone(tensor.held());
                    tensor.recycle(&context.memory);
                }
            }
        }
        for (k, output) in self.outputs.iter().enumerate() {
            let Some(declared) = output.check else { continue };
            let got = self.output(k, feeds, slots)?.tensor()?.dtype();
            if got != declared {
                let name = quote(&output.name);
                return Err(Error::model(format!(
                    "the graph's output {name} has element type {got}, and is declared as {declared}"
                ))
                .at(|place| place.value_name = Some(output.info.name.clone())));
            }
        }
        Ok(())
    }

    /// Takes an output of the graph out after a run, or shares it if it is needed again.
    pub(crate) fn take(&self, k: usize, feeds: &[impl Feed], slots: &mut Slots) -> Result<Value> {
        if let Some(&Output { source: Source::Slot(slot), once: true, .. }) = self.outputs.get(k)
            && let Some(value) = slots.0.get_mut(slot).and_then(Option::take)
        {
            return Ok(value);
        }
        self.output(k, feeds, slots).cloned()
    }

    /// An output of the graph after a run.
    pub(crate) fn output<'a>(&'a self, k: usize, feeds: &'a [impl Feed], slots: &'a Slots) -> Result<&'a Value> {
        let output = self.outputs.get(k).ok_or_else(|| Error::input(format!("there is no output {k}")))?;
        self.find(output.source, feeds, slots)
    }

    fn call(&self, node: &Node, feeds: &[impl Feed], slots: &Slots, context: &Context) -> Result<Values> {
        let mut inputs: SmallVec<[Option<&Value>; 3]> = SmallVec::new();
        for source in &node.inputs {
            inputs.push(match source {
                Some(source) => Some(self.find(*source, feeds, slots)?),
                None => None,
            });
        }
        node.run(&inputs, context)
    }

    #[inline]
    fn find<'a>(&'a self, source: Source, feeds: &'a [impl Feed], slots: &'a Slots) -> Result<&'a Value> {
        match source {
            Source::Input(k) => feeds.get(k).and_then(Feed::value).or_else(|| self.inputs.get(k)?.default.as_ref()),
            Source::Constant(k) => self.constants.get(k),
            Source::Slot(k) => slots.0.get(k).and_then(Option::as_ref),
        }
        // The builder lets no node read what isn't there, and feeds are checked.
        .ok_or_else(|| Error::model("a value is used that was not produced"))
    }

    /// Each input has a value of its declared type and shape. Gives the sizes of the symbols.
    pub(crate) fn check_feeds(&self, feeds: &[impl Feed]) -> Result<Symbols<'_>> {
        let mut symbols: Symbols<'_> = SmallVec::from_elem(None, self.symbols);
        for (input, feed) in self.inputs.iter().zip(feeds) {
            let info = &input.info;
            let Some(value) = feed.value().or(input.default.as_ref()) else {
                return Err(fault(&info.name, "is not fed".to_string()));
            };
            let tensor = value.tensor()?;
            if let Some(dtype) = info.dtype.filter(|dtype| *dtype != tensor.dtype()) {
                let text = format!("has element type {}, and the model takes {dtype}", tensor.dtype());
                return Err(fault(&info.name, text));
            }
            input.check_shape(tensor.shape(), &mut symbols)?;
        }
        Ok(symbols)
    }
}

/// The first of the places that has a name, where they are in the order of their names.
fn find_name<'a>(places: &[usize], name: &str, name_of: impl Fn(usize) -> Option<&'a str>) -> Option<usize> {
    let first = places.partition_point(|&k| name_of(k) < Some(name));
    places.get(first).copied().filter(|&k| name_of(k) == Some(name))
}

impl Input {
    fn check_shape<'a>(&'a self, shape: &[usize], symbols: &mut Symbols<'a>) -> Result<()> {
        let name = &self.info.name;
        let Some(dims) = &self.info.shape else { return Ok(()) };
        if dims.len() != shape.len() {
            let (text, rank) = (ShapeText(shape), shape.len());
            return Err(fault(
                name,
                format!("has shape {text} of rank {rank}, and the model takes rank {}", dims.len()),
            ));
        }
        for (axis, ((dim, symbol), &size)) in dims.iter().zip(&self.symbols).zip(shape).enumerate() {
            let known = symbol.and_then(|k| symbols.get_mut(k));
            let text = match (dim, known) {
                (Dim::Fixed(fixed), _) if *fixed != size => format!("and the model takes {fixed}"),
                (Dim::Symbol(symbol), Some(Some((known, by)))) if *known != size => {
                    format!("and {} is {known} in {}", quote(symbol), quote(by))
                }
                (_, Some(known)) => {
                    known.get_or_insert((size, name));
                    continue;
                }
                _ => continue,
            };
            let error = fault(name, format!("has shape {}: dimension {axis} is {size}, {text}", ShapeText(shape)));
            return Err(error.at(|place| {
                place.axis = Some(axis as i64);
                place.size = Some(size);
            }));
        }
        Ok(())
    }
}

impl Output {
    /// Says how a shape differs from the declared one.
    pub(crate) fn note(&self, shape: &[usize], symbols: &Symbols<'_>) -> Option<String> {
        let dims = self.info.shape.as_ref()?;
        let same = |((dim, symbol), size): ((&Dim, &Option<usize>), &usize)| match (dim, symbol) {
            (Dim::Fixed(fixed), _) => fixed == size,
            (_, Some(k)) => symbols.get(*k).is_none_or(|known| known.is_none_or(|(known, _)| known == *size)),
            _ => true,
        };
        if dims.len() == shape.len() && dims.iter().zip(&self.symbols).zip(shape).all(same) {
            return None;
        }
        let (name, shape) = (quote(&self.name), ShapeText(shape));
        Some(format!("output {name} has shape {shape}, and is declared as {}", DimsText(dims)))
    }
}

fn fault(input: &str, text: String) -> Error {
    Error::input(format!("input {} {text}", quote(input))).at(|place| place.value_name = Some(input.into()))
}

impl Node {
    fn run(&self, inputs: &[Option<&Value>], context: &Context) -> Result<Values> {
        let types = if self.check_inputs {
            let types: SmallVec<[_; 3]> =
                inputs.iter().map(|v| v.map(|v| Some(v.tensor().map(crate::Tensor::dtype).ok()).flatten())).collect();
            Some(types::check(&self.schema, &types, self.outputs.len()).map_err(|e| e.with_kind(Kind::Input))?)
        } else {
            None
        };
        let values = self.operator.run(&Call::new(inputs, self.outputs.len(), context))?;
        if values.len() != self.outputs.len() {
            let (got, want) = (values.len(), self.outputs.len());
            return Err(Error::unsupported(format!("the operator's implementation gave {got} outputs, not {want}")));
        }
        for (k, (value, output)) in values.iter().zip(&self.outputs).enumerate() {
            let got = value.tensor()?.dtype();
            let known = output.known.or_else(|| types.as_ref()?.outputs.get(k).copied().flatten());
            if known != Some(got) || output.declared.is_some_and(|declared| declared != got) {
                self.check_output(k, got, known, output.declared)?;
            }
        }
        Ok(values)
    }

    /// The type of an output is one that the schema allows and the one that the model declares.
    #[cold]
    fn check_output(&self, k: usize, got: DType, known: Option<DType>, declared: Option<DType>) -> Result<()> {
        let Some(formal) = self.schema.output(k) else { return Ok(()) };
        let name = quote(&formal.name);
        let want = match known {
            Some(known) if known != got => known.to_string(),
            None if !formal.types.contains(got) => format!("one of {}", formal.types),
            _ => {
                let Some(declared) = declared.filter(|declared| *declared != got) else { return Ok(()) };
                let text = format!("output {k}, {name}, has element type {got}, and is declared as {declared}");
                return Err(Error::model(text).at(|place| place.value_name = Some(formal.name.clone())));
            }
        };
        let text = format!("the operator's implementation gave output {k}, {name}, element type {got}, not {want}");
        Err(Error::unsupported(text).at(|place| place.value_name = Some(formal.name.clone())))
    }

    fn locate(&self, error: Error) -> Error {
        error.at(|place| {
            place.node_index = Some(self.index);
            place.node = Some(self.name.clone());
            place.operator = Some(self.schema.name.clone());
            place.domain = Some(self.schema.domain.clone());
            place.version = Some(self.schema.since_version);
        })
    }
}

/// A declared shape as errors and notes show it: `[batch, 3, ?]`.
struct DimsText<'a>(&'a [Dim]);

impl std::fmt::Display for DimsText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims: Vec<String> = self.0.iter().take(16).map(Dim::to_string).collect();
        write!(f, "[{}{}]", dims.join(", "), if self.0.len() > 16 { ", …" } else { "" })
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Fixed(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.write_str(&escape(name)),
            Dim::Unknown => f.write_str("?"),
        }
    }
}
