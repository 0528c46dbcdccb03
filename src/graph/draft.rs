//! A model while it is loaded: values by id, nodes as read, and the faults found so far.

use super::faults::Faults;
use super::feeds::{ValueInfo, check_default};
use super::names::Names;
use super::scope::Scope;
use super::watch::Wide;
use crate::error::{Error, Result, quote};
use crate::limits::Budget;
use crate::operator::{BodyFacts, Label, Made, Note, Resolved};
use crate::schema::Attribute;
use crate::value::{Dim, Fact, Value, ValueType};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;

/// A value of a draft: the position of its entry, plus 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id(NonZeroU32);

impl Id {
    /// Its index in the entries.
    pub(super) fn at(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What is known of a value, and where it comes from.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    /// Where the name is valid: a place in the draft's scopes, plus 1; 0 for the model's graph.
    pub(super) scope: u32,
    pub(super) by: By,
    pub(super) fact: Fact,
    /// The type that the model declares for a node's output; for an inspection, the shape too.
    pub(super) declared: Option<ValueType>,
    pub(super) declared_dims: Option<Box<[Dim]>>,
}

impl Entry {
    /// Sets where the value comes from. Fails the second time.
    pub(super) fn define(&mut self, by: By, fact: Fact) -> Result<()> {
        if self.by != By::Nothing {
            let (first, second) = (self.by.describe(), by.describe());
            let text = format!("the name {} is given twice: by {first} and by {second}", quote(&self.name));
            return Err(Error::model(text).about(&self.name));
        }
        (self.by, self.fact) = (by, fact);
        Ok(())
    }

    /// Whether its value is the same in every run.
    pub(super) fn is_constant(&self) -> bool {
        self.fact.value().is_some()
    }
}

/// Who defines a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Nobody yet.
    Nothing,
    Input(u32),
    Initializer,
    /// The node at a place in the draft, and its index in its graph or function.
    Node {
        at: u32,
        index: u32,
    },
}

impl By {
    fn describe(self) -> String {
        match self {
            By::Nothing => "nothing".to_string(),
            By::Input(_) => "an input of the graph".to_string(),
            By::Initializer => "an initializer".to_string(),
            By::Node { index, .. } => format!("node #{index}"),
        }
    }
}

/// The values that a node lists; `None` for an omitted one.
pub(crate) type Ids = SmallVec<[Option<Id>; 4]>;

/// A node as it was read.
#[derive(Debug)]
pub(crate) struct DraftNode {
    pub(crate) place: NodePlace,
    /// The operator version; `None` if it can't be resolved (already reported).
    pub(crate) resolved: Option<Arc<Resolved>>,
    pub(crate) attributes: Vec<(String, Attribute)>,
    pub(crate) inputs: Ids,
    pub(crate) outputs: Ids,
    /// The operator, once types are known.
    pub(super) operator: Option<Made>,
    /// Its subgraphs.
    pub(super) bodies: Vec<DraftBody>,
    /// The type of some input isn't known before a run.
    pub(super) open: bool,
    /// What a user should know of it.
    pub(super) note: Option<Note>,
    /// The types of the outputs, if they follow from the inputs.
    pub(super) known: SmallVec<[Option<ValueType>; 1]>,
    /// How a watch sees it, if it computes in float32 in the place of 16 bits.
    pub(super) wide: Option<Box<Wide>>,
}

impl DraftNode {
    pub(super) fn new(
        place: NodePlace,
        resolved: Option<Arc<Resolved>>,
        attributes: Vec<(String, Attribute)>,
        inputs: Ids,
        outputs: Ids,
    ) -> DraftNode {
        let (operator, bodies, open, note, known, wide) = Default::default();
        DraftNode { place, resolved, attributes, inputs, outputs, operator, bodies, open, note, known, wide }
    }

    /// The name of its operator, if the standard's implementation of the default domain runs it.
    pub(super) fn standard(&self) -> Option<&str> {
        let own = self.resolved.as_ref().is_some_and(|resolved| !resolved.is_custom());
        (own && self.place.operator.domain.is_empty()).then_some(&*self.place.operator.name)
    }

    /// The values that the node and its bodies read.
    pub(super) fn reads(&self) -> impl Iterator<Item = Id> {
        self.inputs.iter().flatten().chain(self.bodies.iter().flat_map(|body| &body.captured)).copied()
    }
}

/// A subgraph of a node.
#[derive(Debug)]
pub(crate) struct DraftBody {
    /// The attribute that it stands in.
    pub(crate) attribute: String,
    pub(crate) draft: Draft,
    /// The values that it reads from the outer graph: its last inputs.
    pub(crate) captured: Vec<Id>,
    /// Values of the outer graph that have names of its own values: they may not be there yet.
    pub(crate) hidden: Vec<Id>,
}

impl DraftBody {
    /// Passes on what is known about the values that it reads from the outer graph.
    pub(super) fn capture(&mut self, outer: &[Entry], budget: &Budget) -> Result<()> {
        let first = self.draft.inputs.len().saturating_sub(self.captured.len());
        for (id, input) in self.captured.iter().zip(self.draft.inputs.iter().skip(first)) {
            let (Some(from), Some(to)) = (outer.get(id.at()), self.draft.entries.get_mut(input.id.at())) else {
                continue;
            };
            budget.take(256 + 32 * from.fact.dims().map_or(0, <[_]>::len) as u64)?;
            to.fact = from.fact.clone();
        }
        Ok(())
    }

    /// What is known about its own inputs and its outputs.
    pub(super) fn facts(&self) -> BodyFacts {
        let own = self.draft.inputs.len().saturating_sub(self.captured.len());
        let fact = |id: Id| self.draft.entries.get(id.at()).map(|entry| entry.fact.clone()).unwrap_or_default();
        let inputs = self.draft.inputs.iter().take(own).map(|input| {
            let fact = fact(input.id);
            Fact::of(fact.value_type.clone(), fact.certain_dims())
        });
        let outputs = self.draft.outputs.iter().map(|(info, id)| {
            let value_type = fact(*id).value_type.or_else(|| info.value_type.clone());
            // More would follow with optimisation than without it, and a loop without trips gives what is declared.
            let dims = info.shape.clone().map(Vec::into_boxed_slice);
            Fact::of(value_type, dims)
        });
        let inferred = self.draft.outputs.iter().map(|(info, id)| {
            let fact = fact(*id);
            // What is declared of sizes may be wrong.
            let dims = fact.certain_dims();
            Fact::of(fact.value_type.or_else(|| info.value_type.clone()), dims)
        });
        let (inputs, outputs, inferred) = (inputs.collect(), outputs.collect(), inferred.collect());
        BodyFacts { attribute: self.attribute.clone(), inputs, outputs, inferred }
    }
}

/// Where a node is, for errors.
#[derive(Debug, Clone)]
pub(crate) struct NodePlace {
    /// Its position in its graph or function.
    pub(crate) index: u32,
    pub(crate) name: Box<str>,
    pub(crate) operator: Arc<Label>,
    /// The calls of model functions around it.
    pub(crate) function: Option<Arc<str>>,
}

impl NodePlace {
    /// Adds the node to the error's place.
    #[cold]
    pub(crate) fn locate(&self, error: Error) -> Error {
        error.at(|place| {
            place.function = self.function.as_deref().map(str::to_string);
            place.node_index = Some(self.index as usize);
            place.node = Some(self.name.to_string()).filter(|name| !name.is_empty());
            // For a node in a subgraph the operator is set already.
            if place.operator.is_none() {
                let Label { name, domain, version } = &*self.operator;
                place.operator = Some(name.to_string()).filter(|operator| !operator.is_empty());
                place.domain = Some(domain.to_string());
                place.version = place.version.or(*version);
            }
        })
    }

    /// An error of the node about one of its values.
    pub(super) fn fault(&self, value_name: &str, text: String) -> Error {
        self.locate(Error::model(text)).about(value_name)
    }
}

/// An input of the graph.
#[derive(Debug)]
pub(super) struct DraftInput {
    pub(super) info: ValueInfo,
    pub(super) id: Id,
    pub(super) default: Option<Value>,
}

/// A model while it is loaded.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(super) entries: Vec<Entry>,
    /// The scopes of the entries.
    pub(super) scopes: Vec<Scope>,
    pub(super) nodes: Vec<DraftNode>,
    pub(super) inputs: Vec<DraftInput>,
    pub(super) outputs: Vec<(ValueInfo, Id)>,
    /// Inputs whose initializer can't be overridden.
    pub(super) fixed: Vec<String>,
    /// Nodes may be in any order.
    pub(crate) may_sort: bool,
    /// Harmless departures from the standard, and parts of the model that are not used.
    pub(crate) notes: Vec<String>,
    pub(crate) faults: Faults,
    /// For a subgraph: the place of its node in the whole graph.
    pub(crate) at: Option<usize>,
}

/// A new value.
pub(super) fn new_entry(entries: &mut Vec<Entry>, name: Arc<str>, scope: u32, budget: &Budget) -> Result<Id> {
    let (len, bytes) = (entries.len(), |count: usize| (count * size_of::<Entry>()) as u64);
    if len == entries.capacity() {
        // While the list grows, both copies exist.
        budget.take(bytes(2 * len.max(2)))?;
        entries.reserve_exact(2 * len.max(2) - len);
        budget.give_back(bytes(len));
    }
    // The plan has tables of the entries.
    budget.take(32)?;
    paid_entry(entries, name, scope)
}

/// As [`new_entry`], where its memory is charged already.
pub(super) fn paid_entry(entries: &mut Vec<Entry>, name: Arc<str>, scope: u32) -> Result<Id> {
    let (by, fact) = (By::Nothing, Fact::default());
    entries.push(Entry { name, scope, by, fact, declared: None, declared_dims: None });
    let id = u32::try_from(entries.len()).ok().and_then(NonZeroU32::new);
    id.map(Id).ok_or_else(|| Error::unsupported("the model has more than 2^32 - 1 values"))
}

impl Draft {
    /// The draft of a subgraph of the next node.
    pub(crate) fn inner(&mut self) -> Draft {
        let faults = std::mem::take(&mut self.faults);
        Draft { faults, at: Some(self.place()), may_sort: self.may_sort, ..Draft::default() }
    }

    /// Opens the scope of names that are to be valid in this draft.
    pub(crate) fn open(&mut self, names: &mut Names, budget: &Budget) -> Result<()> {
        if let Some(scope) = &names.scope {
            budget.take(3 * size_of::<Scope>() as u64)?;
            self.scopes.push(scope.clone());
            // There are no more scopes than nodes, so the number fits.
            names.place = self.scopes.len() as u32;
        }
        Ok(())
    }

    /// The scope of an entry's name.
    pub(super) fn scope(scopes: &[Scope], entry: &Entry) -> Option<Scope> {
        scopes.get((entry.scope as usize).checked_sub(1)?).cloned()
    }

    /// Takes back the faults from the draft of a subgraph.
    pub(crate) fn close(&mut self, inner: &mut Draft) {
        let own = Faults::up_to(inner.faults.most());
        self.faults = std::mem::replace(&mut inner.faults, own);
        self.notes.append(&mut inner.notes);
    }

    /// The place of the next node, for faults.
    pub(crate) fn place(&self) -> usize {
        self.at.unwrap_or(self.nodes.len())
    }

    /// A value of the outer graph that a subgraph reads: a further input.
    pub(crate) fn captured(&mut self, names: &mut Names, name: &str, budget: &Budget) -> Result<Id> {
        budget.take(size_of::<DraftInput>() as u64 + 64 + 2 * name.len() as u64)?;
        let id = self.value(names, name, budget)?;
        self.input(ValueInfo { name: name.to_string(), value_type: None, shape: None }, id, None);
        Ok(id)
    }

    /// A draft that keeps faults until they exceed `fault_bytes`.
    pub(crate) fn new(fault_bytes: usize) -> Draft {
        Draft { faults: Faults::up_to(fault_bytes.max(1)), ..Draft::default() }
    }

    /// Makes room for more nodes, with one value each, and for other values.
    pub(crate) fn reserve(&mut self, nodes: usize, values: usize, budget: &Budget) -> Result<()> {
        budget.take(((nodes + values) * size_of::<Entry>()) as u64)?;
        // Each node is paid for when it is added.
        self.nodes.reserve_exact(nodes);
        self.entries.reserve_exact(nodes + values);
        Ok(())
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, text: String, budget: &Budget) -> Result<()> {
        budget.take(text.len() as u64 + 128)?;
        self.notes.push(text);
        Ok(())
    }

    /// Adds the notes of nodes, one for each operator.
    pub(super) fn note_nodes(&mut self, budget: &Budget) -> Result<()> {
        let mut found = Vec::new();
        self.find_notes(&mut found);
        for (place, note, count) in found {
            let nodes = if count > 1 { format!(" ({count} nodes)") } else { String::new() };
            self.note(format!("{}{nodes}", place.locate(Error::model(note.text()))), budget)?;
        }
        Ok(())
    }

    /// The first node of each operator that has a note, and the number of its nodes.
    fn find_notes(&self, found: &mut Vec<(NodePlace, Note, usize)>) {
        for node in &self.nodes {
            node.bodies.iter().for_each(|body| body.draft.find_notes(found));
            let Some(note) = node.note else { continue };
            let place = &node.place;
            match found.iter_mut().find(|(first, ..)| Arc::ptr_eq(&first.operator, &place.operator)) {
                Some((.., count)) => *count += 1,
                None => found.push((place.clone(), note, 1)),
            }
        }
    }

    /// The number of nodes.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The value that a name stands for, here or later; `None` for an omitted one.
    pub(crate) fn optional(&mut self, names: &mut Names, name: &str, budget: &Budget) -> Result<Option<Id>> {
        if name.is_empty() {
            return Ok(None);
        }
        if let Some(id) = names.ids.get(name) {
            return Ok(*id);
        }
        let name: Arc<str> = name.into();
        let id = new_entry(&mut self.entries, name.clone(), names.place, budget)?;
        names.insert(name, Some(id), budget)?;
        Ok(Some(id))
    }

    /// As [`Draft::optional`], for a value that must have a name.
    pub(crate) fn value(&mut self, names: &mut Names, name: &str, budget: &Budget) -> Result<Id> {
        match self.optional(names, name, budget)? {
            Some(id) => Ok(id),
            // Reported where it is defined.
            None => new_entry(&mut self.entries, "".into(), 0, budget),
        }
    }

    /// The type, and maybe the shape, that the model declares for a value that a node produces.
    pub(crate) fn declare(&mut self, id: Id, value_type: ValueType, dims: Option<Vec<Dim>>) {
        let Some(entry) = self.entries.get_mut(id.at()) else { return };
        entry.declared_dims = entry.declared_dims.take().or(dims.map(Vec::into_boxed_slice));
        match &entry.declared {
            Some(first) if *first != value_type => {
                let text = format!("{} is declared as {first} and as {value_type}", quote(&entry.name));
                self.faults.push(Error::model(text).about(&entry.name));
            }
            _ => entry.declared = Some(value_type),
        }
    }

    /// An input of the graph, which nodes know as `id`, with its default if the model has one.
    pub(crate) fn input(&mut self, info: ValueInfo, id: Id, default: Option<Value>) {
        let dims = info.shape.clone().map(Vec::into_boxed_slice);
        let mut fact = Fact::of(info.value_type.clone(), dims);
        if let Some(Err(error)) = default.as_ref().map(|value| check_default(&info, value)) {
            self.faults.push(error);
            // A fault here must not become a fault of the nodes that read the value.
            fact = Fact::default();
        }
        self.define(id, By::Input(self.inputs.len() as u32), fact);
        self.inputs.push(DraftInput { info, id, default });
    }

    /// Forgets the sizes of an input that have one of these names.
    pub(crate) fn forget_sizes(&mut self, id: Id, names: &HashSet<String>) {
        let Some(entry) = self.entries.get_mut(id.at()) else { return };
        let known = |dim: &Dim| if let Dim::Symbol(name) = dim { !names.contains(name) } else { true };
        if let Some(dims) = entry.fact.dims().filter(|dims| !dims.iter().all(known)) {
            let dims = dims.iter().map(|dim| if known(dim) { dim.clone() } else { Dim::Unknown }).collect();
            entry.fact = Fact::of(entry.fact.value_type.clone(), Some(dims));
        }
    }

    /// An initializer that can't be overridden; it has no value if it can't be read. `declared` is the graph's input of
    /// the same name, if any.
    pub(crate) fn constant(&mut self, id: Id, mut fact: Fact, declared: Option<&ValueInfo>) {
        if let (Some(info), Some(value)) = (declared, fact.value())
            && let Err(error) = check_default(info, value)
        {
            self.faults.push(error);
        }
        if let Some(info) = declared {
            // Nodes were written for the declared type.
            fact.value_type = info.value_type.clone().or(fact.value_type);
            self.fixed.push(info.name.clone());
        }
        self.define(id, By::Initializer, fact);
    }

    fn define(&mut self, id: Id, by: By, fact: Fact) {
        let Some(entry) = self.entries.get_mut(id.at()) else { return };
        if entry.name.is_empty() {
            self.faults.push(Error::model(format!("{} has no name", by.describe())));
        } else if let Err(error) = entry.define(by, fact) {
            self.faults.push(error);
        }
    }

    /// Reports why a node's operator can't be made. Its outputs still count as produced.
    pub(crate) fn broken(&mut self, place: &NodePlace, faults: Vec<Error>) {
        for fault in faults {
            // Copy names only into errors that are kept.
            let fault = if self.faults.full() { fault } else { place.locate(fault) };
            self.faults.push_at(Some(self.place()), fault);
        }
    }

    /// A node.
    pub(crate) fn node(
        &mut self,
        place: NodePlace,
        resolved: Option<Arc<Resolved>>,
        attributes: Vec<(String, Attribute)>,
        inputs: Ids,
        outputs: Ids,
    ) {
        self.nodes.push(DraftNode::new(place, resolved, attributes, inputs, outputs));
    }

    /// Gives a symbol of the declared shapes a size. Returns whether an input has it.
    pub(crate) fn set_dimension(&mut self, name: &str, size: usize) -> bool {
        let set = |dims: Option<&mut [Dim]>| {
            let mut found = false;
            for dim in dims.unwrap_or_default() {
                if matches!(dim, Dim::Symbol(symbol) if symbol == name) {
                    (*dim, found) = (Dim::Fixed(size), true);
                }
            }
            found
        };
        let mut found = false;
        for DraftInput { info, id, .. } in &mut self.inputs {
            found |= set(info.shape.as_deref_mut());
            set(self.entries.get_mut(id.at()).and_then(|entry| entry.fact.dims.as_deref_mut()));
        }
        self.outputs.iter_mut().for_each(|(info, _)| _ = set(info.shape.as_deref_mut()));
        self.entries.iter_mut().for_each(|entry| _ = set(entry.declared_dims.as_deref_mut()));
        found
    }

    /// The symbols of the inputs' shapes.
    pub(crate) fn symbols(&self) -> Vec<&str> {
        let mut symbols: Vec<&str> = self.inputs.iter().flat_map(|input| input.info.symbols()).collect();
        symbols.sort();
        symbols.dedup();
        symbols
    }

    /// Gives the last node its subgraphs.
    pub(crate) fn bodies(&mut self, bodies: Vec<DraftBody>) {
        if let Some(node) = self.nodes.last_mut() {
            node.bodies = bodies;
        }
    }

    /// An output of the graph: the value `id`.
    pub(crate) fn output(&mut self, info: ValueInfo, id: Id) {
        self.outputs.push((info, id));
    }
}
