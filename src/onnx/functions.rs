//! Functions of a model: a node that calls one is replaced by the function's nodes.

use super::graph::{Loader, Scope, decoded};
use super::opsets::{Opsets, domain_of, opsets};
use super::proto::{AttributeProto, FunctionProto, NodeProto};
use super::scan;
use crate::error::{Error, Result, escape, operator_label, quote};
use crate::files::{FunctionInfo, ModelFiles};
use crate::graph::{Ids, NodePlace};
use crate::limits::{Budget, exceeded};
use crate::registry::Registry;
use bytes::Bytes;
use prost::Message;
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// The functions of a model, still encoded: each is decoded at its first call.
#[derive(Default)]
pub(super) struct Functions {
    list: Vec<Function>,
    /// Their places, by name.
    places: HashMap<String, Vec<usize>>,
}

struct Function {
    proto: Bytes,
    decoded: Option<Rc<Decoded>>,
    domain: String,
    overload: String,
    /// The functions that its nodes call, and the number of its other nodes.
    calls: Vec<usize>,
    plain: u64,
    /// The number of nodes that a call becomes.
    nodes: u64,
}

/// A function that is called.
pub(super) struct Decoded {
    proto: FunctionProto,
    /// The names of its attributes.
    attributes: HashSet<String>,
    pub(super) opsets: Arc<Opsets>,
}

impl Decoded {
    /// A node of the function.
    pub(super) fn node(&self, index: u32) -> Option<NodeProto> {
        self.proto.node.get(index as usize).cloned()
    }
}

impl Functions {
    /// Reads the names of functions, and counts the nodes of the expanded model.
    ///
    /// # Errors
    /// If a function has no name or a duplicate name, or calls itself, or if the nodes exceed the limit.
    pub(super) fn read(protos: Vec<Bytes>, files: &ModelFiles) -> Result<Functions> {
        let mut functions = Functions::default();
        for proto in &protos {
            let FunctionProto { name, domain, overload, .. } = decoded(proto.clone())?;
            let (name, overload) = (name.unwrap_or_default(), overload.unwrap_or_default());
            let domain = domain_of(domain.as_deref()).to_string();
            if name.is_empty() {
                return Err(Error::model(format!("function #{} has no name", functions.list.len())));
            }
            if let Some(first) = functions.find(&domain, &name, &overload) {
                let (label, second) = (label(&domain, &name, &overload), functions.list.len());
                return Err(Error::model(format!("functions #{first} and #{second} are both called {label}")));
            }
            let text = name.len() + domain.len() + overload.len();
            files.budget.take((2 * size_of::<Function>() + 256 + 2 * text) as u64)?;
            functions.places.entry(name).or_default().push(functions.list.len());
            functions.list.push(Function {
                proto: proto.clone(),
                decoded: None,
                domain,
                overload,
                calls: Vec::new(),
                plain: 0,
                nodes: 0,
            });
        }
        for (k, proto) in protos.into_iter().enumerate() {
            let FunctionProto { node, .. } = decoded(proto)?;
            let (mut plain, mut calls) = (0, Vec::new());
            for node in each_node(&node) {
                files.budget.take(16)?;
                match functions.called(node) {
                    Some(called) => calls.push(called),
                    None => plain += 1,
                }
            }
            if let Some(function) = functions.list.get_mut(k) {
                (function.plain, function.calls) = (plain, calls);
            }
        }
        functions.count_nodes(files.limits.nodes as u64)?;
        Ok(functions)
    }

    /// Each function, in the order of the file.
    pub(super) fn into_infos(self, budget: &Budget) -> Result<Vec<FunctionInfo>> {
        let mut names = vec![String::new(); self.list.len()];
        for (name, places) in self.places {
            for place in places {
                budget.take((size_of::<FunctionInfo>() + name.len()) as u64)?;
                names.get_mut(place).into_iter().for_each(|own| own.clone_from(&name));
            }
        }
        let info = |(name, function)| {
            let Function { domain, overload, nodes, .. } = function;
            FunctionInfo { domain, name, overload, nodes }
        };
        Ok(names.into_iter().zip(self.list).map(info).collect())
    }

    /// The place of a function.
    #[inline]
    pub(super) fn find(&self, domain: &str, name: &str, overload: &str) -> Option<usize> {
        if self.list.is_empty() {
            return None;
        }
        let same = |k: &usize| self.list.get(*k).is_some_and(|f| f.domain == domain && f.overload == overload);
        self.places.get(name)?.iter().copied().find(same)
    }

    /// Error for a node that names a function, but none of its overloads.
    #[cold]
    pub(super) fn other_overloads(&self, domain: &str, name: &str) -> Option<Error> {
        const SHOWN: usize = 4;
        let functions = self.places.get(name)?.iter().filter_map(|k| self.list.get(*k));
        let mut overloads = functions.filter(|function| function.domain == domain).map(|function| &*function.overload);
        let shown: Vec<String> = overloads.by_ref().take(SHOWN).map(quote).collect();
        let (more, shown) =
            (if overloads.next().is_some() { ", …" } else { "" }, (!shown.is_empty()).then_some(shown)?);
        let text = format!("the function has no such overload: those of the model are {}{more}", shown.join(", "));
        Some(Error::model(text))
    }

    fn called(&self, node: &NodeProto) -> Option<usize> {
        let (name, overload) = (node.op_type.as_deref().unwrap_or(""), node.overload.as_deref().unwrap_or(""));
        self.find(domain_of(node.domain.as_deref()), name, overload)
    }

    /// A function, decoded.
    pub(super) fn decoded(&mut self, k: usize, registry: &Registry, files: &ModelFiles) -> Result<Rc<Decoded>> {
        let budget = &files.budget;
        let function = self.list.get_mut(k).ok_or_else(|| Error::bug("there is no such function"))?;
        if let Some(known) = &function.decoded {
            return Ok(known.clone());
        }
        budget.take(scan::cost_of_function(&function.proto)?)?;
        let mut proto: FunctionProto = decoded(function.proto.clone())?;
        for node in &mut proto.node {
            // Calls copy the nodes.
            (node.doc_string, node.metadata_props) = Default::default();
        }
        let defaults = proto.attribute_proto.iter().filter_map(|attribute| attribute.name.as_ref());
        let mut attributes = HashSet::new();
        for name in defaults.chain(&proto.attribute) {
            budget.take(64 + name.len() as u64)?;
            attributes.insert(name.clone());
        }
        let opsets = Arc::new(opsets(&proto.opset_import, registry, files)?.into_iter().collect());
        Ok(function.decoded.insert(Rc::new(Decoded { proto, attributes, opsets })).clone())
    }

    fn label(&self, k: usize) -> String {
        let name = self.places.iter().find(|(_, places)| places.contains(&k)).map_or("", |(name, _)| name);
        self.list.get(k).map_or(String::new(), |function| label(&function.domain, name, &function.overload))
    }

    /// Counts the nodes that a call of each function becomes. Fails on recursion and on more than `most` nodes.
    fn count_nodes(&mut self, most: u64) -> Result<()> {
        /// How far a function was counted.
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; self.list.len()];
        for start in 0..self.list.len() {
            // The open functions, innermost last, each with the place of its next call.
            let mut open = vec![(start, 0)];
            while let Some((k, next)) = open.pop() {
                let (Some(function), Some(state)) = (self.list.get(k), states.get_mut(k)) else { break };
                if *state == State::Done {
                    continue;
                }
                *state = State::Open;
                let Some(&called) = function.calls.get(next) else {
                    *state = State::Done;
                    let calls = function.calls.iter().filter_map(|called| self.list.get(*called));
                    // A call takes time even if it becomes no nodes.
                    let nodes = calls.fold(function.plain, |sum, called| sum.saturating_add(called.nodes.max(1)));
                    if nodes > most {
                        let what = format!("a call of the function {} becomes", self.label(k));
                        return Err(exceeded("nodes", &what, nodes.into(), "nodes", most));
                    }
                    self.list.get_mut(k).into_iter().for_each(|function| function.nodes = nodes);
                    continue;
                };
                open.push((k, next + 1));
                match states.get(called) {
                    Some(State::New) => open.push((called, 0)),
                    Some(State::Open) => {
                        let (caller, called) = (self.label(k), self.label(called));
                        let text = format!("the function {caller} calls {called}, which is calling it");
                        return Err(Error::model(text + ": functions can't be recursive"));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// The nodes, and those of their subgraphs.
fn each_node(nodes: &[NodeProto]) -> impl Iterator<Item = &NodeProto> {
    let mut open = vec![nodes.iter()];
    std::iter::from_fn(move || {
        loop {
            let Some(node) = open.last_mut()?.next() else {
                open.pop();
                continue;
            };
            let graphs =
                node.attribute.iter().flat_map(|attribute| attribute.g.as_deref().into_iter().chain(&attribute.graphs));
            open.extend(graphs.map(|graph| graph.node.iter()));
            return Some(node);
        }
    })
}

fn label(domain: &str, name: &str, overload: &str) -> String {
    let label = operator_label(domain, name);
    if overload.is_empty() { label.into_owned() } else { format!("{label}[{}]", escape(overload)) }
}

impl Loader<'_> {
    /// Checks that the model may have that many more nodes.
    #[inline]
    pub(super) fn check_nodes(&self, more: u64) -> Result<()> {
        let (nodes, most) = (more.saturating_add(self.nodes), self.files.limits.nodes as u64);
        if nodes <= most {
            return Ok(());
        }
        Err(exceeded("nodes", "with its functions the model has", nodes.into(), "nodes", most))
    }

    /// The scope of a function that a node calls: its nodes, with the node's values and attributes.
    pub(super) fn call(
        &mut self,
        caller: &mut Scope,
        place: NodePlace,
        function: usize,
        node: NodeProto,
    ) -> Result<Option<Scope>> {
        let (NodeProto { input, output, attribute, .. }, budget) = (node, &self.files.budget);
        let Some(Function { nodes, .. }) = self.functions.list.get(function) else { return Ok(None) };
        self.check_nodes(*nodes).map_err(|error| place.locate(error))?;
        let called = self.functions.decoded(function, self.registry, self.files);
        let called = called.map_err(|error| place.locate(error.within("the function")))?;
        let proto = &called.proto;
        let mut faults = Vec::new();
        let key = key(&output, place.index);
        let (mut names, mut produced) = (caller.names.inside(&key, None, 0, budget)?, Ids::new());
        self.draft.open(&mut names, budget)?;
        for (what, given, formal) in [("input", &input, &proto.input), ("output", &output, &proto.output)] {
            if given.len() > formal.len() {
                let (given, most) = (given.len(), formal.len());
                faults
                    .push(Error::model(format!("{given} {what}s given: the function has {most}")).value(given as i128));
            }
            for (k, formal) in formal.iter().enumerate() {
                let name = given.get(k).map_or("", String::as_str);
                let id = self.optional(caller, name)?;
                if what == "output" {
                    produced.push(id);
                }
                if (what == "input" || id.is_some()) && !names.bind(formal, id, budget)? {
                    let formal = quote(formal);
                    faults.push(Error::model(if what == "output" && proto.input.iter().any(|i| quote(i) == formal) {
                        format!("{formal} is an input and an output of the function")
                    } else {
                        format!("the function has two {what}s {formal}")
                    }));
                }
            }
        }
        let attributes = match caller.bind(attribute, budget).and_then(|given| arguments(given, &called, budget)) {
            Ok(attributes) => attributes,
            Err(error) => {
                faults.push(error);
                HashMap::new()
            }
        };
        let calls = Self::calls(&place);
        if !faults.is_empty() {
            self.draft.broken(&place, faults);
            // Its outputs count as produced: nodes that read them are not at fault.
            for name in output.iter().skip(produced.len()) {
                produced.push(self.optional(caller, name)?);
            }
            self.draft.node(place, None, Vec::new(), Ids::new(), produced);
            return Ok(None);
        }
        budget.take(512 + calls.len() as u64)?;
        Ok(Some(Scope {
            names,
            opsets: called.opsets.clone(),
            attributes: Some(Rc::new(attributes)),
            function: Some(calls),
            called: Some(called),
            index: 0,
            inner: false,
        }))
    }

    /// The calls down to this node as errors show them; if there are many, the middle is left out.
    pub(super) fn calls(place: &NodePlace) -> Arc<str> {
        const MOST: usize = 300;
        let node = if place.name.is_empty() {
            format!("node #{}", place.index)
        } else {
            format!("node {}", quote(&place.name))
        };
        let own = format!("{node} ({})", operator_label(&place.operator.domain, &place.operator.name));
        match &place.function {
            None => own.into(),
            Some(outer) if outer.len() < MOST => format!("{outer}: in {own}").into(),
            Some(outer) => {
                let first = outer.split(": in ").next().and_then(|first| first.split(": .. in ").next()).unwrap_or("");
                format!("{first}: .. in {own}").into()
            }
        }
    }
}

/// What a scope calls its node: the first value that it gives, or else its index.
pub(super) fn key(outputs: &[String], index: u32) -> Cow<'_, str> {
    let first = outputs.iter().find(|name| !name.is_empty());
    first.map_or_else(|| format!("#{index}").into(), |name| name.as_str().into())
}

/// The attributes of a function in a call: the given ones, and defaults for the others.
fn arguments(
    given: Vec<AttributeProto>,
    function: &Decoded,
    budget: &Budget,
) -> Result<HashMap<String, AttributeProto>> {
    let mut attributes = HashMap::new();
    for proto in given {
        let name = proto.name.clone().unwrap_or_default();
        if !function.attributes.contains(&name) {
            let text = format!("attribute {} is not one of the function's", quote(&name));
            return Err(Error::model(text).attribute(&name));
        }
        budget.take(256 + name.len() as u64)?;
        if attributes.insert(name.clone(), proto).is_some() {
            return Err(Error::model(format!("attribute {} is given twice", quote(&name))).attribute(&name));
        }
    }
    for proto in &function.proto.attribute_proto {
        let name = proto.name.clone().unwrap_or_default();
        if let Entry::Vacant(free) = attributes.entry(name) {
            free.insert(copied(proto, budget)?);
        }
    }
    Ok(attributes)
}

/// Copies an attribute: its numbers take up to eight times as much memory as in the file.
fn copied(proto: &AttributeProto, budget: &Budget) -> Result<AttributeProto> {
    budget.take(2 * size_of::<AttributeProto>() as u64 + 16 * proto.encoded_len() as u64)?;
    Ok(proto.clone())
}

impl Scope {
    /// A node's attributes. Those that refer to an attribute of the function get its value, or are omitted if it is.
    pub(super) fn bind(&self, protos: Vec<AttributeProto>, budget: &Budget) -> Result<Vec<AttributeProto>> {
        let Some(attributes) = &self.attributes else { return Ok(protos) };
        let mut bound = Vec::with_capacity(protos.len());
        for proto in protos {
            let reference = proto.ref_attr_name.as_deref().filter(|name| !name.is_empty());
            let Some(reference) = reference else {
                bound.push(proto);
                continue;
            };
            let Some(value) = attributes.get(reference) else { continue };
            if value.g.is_some() || !value.graphs.is_empty() {
                // Its names are those of the caller.
                let text = format!("attribute {} of a function is a graph: that is not supported", quote(reference));
                return Err(Error::unsupported(text).attribute(reference));
            }
            if proto.r#type.is_some_and(|kind| kind != 0 && Some(kind) != value.r#type) {
                let name = proto.name.as_deref().unwrap_or("");
                let text = format!("it refers to the attribute {}, which is of another kind", quote(reference));
                return Err(Error::model(text).within(&format!("attribute {}", quote(name))).attribute(name));
            }
            bound.push(AttributeProto { name: proto.name, ..copied(value, budget)? });
        }
        Ok(bound)
    }
}
