//! Subgraphs of nodes: each becomes a draft of its own, whose last inputs are the values around it that it reads.

use super::graph::{Loader, Scope};
use super::proto::{GraphProto, NodeProto, TypeProto, ValueInfoProto, type_proto};
use crate::error::{Error, Result};
use crate::graph::{Draft, DraftBody, Id, Ids, Names, NodePlace, ValueInfo};
use crate::limits::exceeded;
use crate::operator::{Attribute, Label, Resolved};
use std::sync::Arc;

/// The values of a graph beside those of its nodes, decoded one by one.
pub(super) struct Values<I, S, D> {
    pub(super) initializers: I,
    pub(super) sparse: S,
    pub(super) inputs: Vec<ValueInfoProto>,
    /// How many of the inputs can be given another value than that of their initializers.
    pub(super) given: usize,
    pub(super) outputs: Vec<ValueInfoProto>,
    /// Types of other values.
    pub(super) declared: D,
}

/// A graph around the subgraph that is read.
pub(super) struct Around {
    draft: Draft,
    names: Names,
    /// The values that the subgraph reads.
    captured: Vec<Id>,
    /// The values with names that are given again inside.
    hidden: Vec<Id>,
    /// It is in a function: what is around it has other names.
    closed: bool,
}

/// What is read before the next node.
pub(super) enum Next {
    /// The nodes of a function that the node calls.
    Call(Scope),
    /// The node's subgraphs, and then the node itself.
    Bodies(Box<Waiting>),
}

/// A node whose subgraphs are read first.
pub(super) struct Waiting {
    pub(super) place: NodePlace,
    /// What the scopes of its subgraphs call it.
    pub(super) key: String,
    pub(super) resolved: Option<Arc<Resolved>>,
    pub(super) attributes: Vec<(String, Attribute)>,
    pub(super) inputs: Ids,
    pub(super) outputs: Ids,
    pub(super) graphs: std::vec::IntoIter<(String, GraphProto)>,
    /// The subgraphs that are read.
    pub(super) bodies: Vec<DraftBody>,
}

/// How many inputs a node gives to its subgraph. There may be more of them, if they have initializers.
fn given(operator: &Label, inputs: usize) -> usize {
    match (&*operator.domain, &*operator.name) {
        ("", "If") => 0,
        ("", "Loop") => inputs.max(2),
        // The first has the lengths of sequences.
        ("", "Scan") if operator.version == Some(8) => inputs.saturating_sub(1),
        ("", "Scan" | "SequenceMap") => inputs,
        _ => usize::MAX,
    }
}

/// Forgets the sizes that are declared of what trips of a Loop hand on, where they are not those of what a trip makes of it: it
/// may have others then. Exporters declare what the first trip sees.
fn forget_sizes(GraphProto { input, output, .. }: &mut GraphProto) {
    for (before, after) in input.iter_mut().skip(2).zip(output.iter().skip(1)) {
        let Some(TypeProto { value: Some(type_proto::Value::TensorType(own)), .. }) = &mut before.r#type else {
            continue;
        };
        let sizes = match &after.r#type {
            Some(TypeProto { value: Some(type_proto::Value::TensorType(of)), .. }) => of.shape.as_ref(),
            _ => None,
        };
        match (&mut own.shape, sizes) {
            (Some(own), Some(sizes)) if own.dim.len() == sizes.dim.len() => {
                let changing = own.dim.iter_mut().zip(&sizes.dim).filter(|(own, size)| own.value != size.value);
                changing.for_each(|(own, _)| own.value = None);
            }
            _ => own.shape = None,
        }
    }
}

/// A subgraph that is read.
struct Body {
    scope: Scope,
    attribute: String,
    nodes: std::vec::IntoIter<NodeProto>,
    outputs: Vec<ValueInfo>,
}

/// What is read inside of a graph.
enum Open {
    Call(Scope),
    Waiting(Box<Waiting>),
    Body(Box<Body>),
}

/// The last one that is open, a node, and the scope that it is in: that below it.
fn waiting<'a>(open: &'a mut [Open], outermost: &'a mut Scope) -> Result<(&'a mut Scope, &'a mut Waiting)> {
    match open {
        [Open::Waiting(waiting)] => Ok((outermost, waiting)),
        [.., Open::Call(scope), Open::Waiting(waiting)] => Ok((scope, waiting)),
        [.., Open::Body(body), Open::Waiting(waiting)] => Ok((&mut body.scope, waiting)),
        _ => Err(Error::bug("no node waits for a subgraph")),
    }
}

impl Loader<'_> {
    /// Reads a node, its subgraphs, and all nodes of the functions that it calls. These may nest deeply: what is open is in
    /// a list, the innermost last.
    pub(super) fn node(&mut self, outermost: &mut Scope, proto: NodeProto) -> Result<()> {
        let Some(mut next) = self.next(outermost, proto)? else { return Ok(()) };
        let mut open: Vec<Open> = Vec::new();
        loop {
            open.push(match next {
                Next::Call(scope) => Open::Call(scope),
                Next::Bodies(waiting) => Open::Waiting(waiting),
            });
            next = match self.inside(&mut open, outermost)? {
                Some(next) => next,
                None => return Ok(()),
            };
        }
    }

    /// Reads what is open, to the next node that calls a function or has subgraphs, or to the end.
    fn inside(&mut self, open: &mut Vec<Open>, outermost: &mut Scope) -> Result<Option<Next>> {
        while let Some(top) = open.last_mut() {
            let (scope, node) = match top {
                Open::Call(scope) => {
                    let node = scope.called.as_ref().and_then(|called| called.node(scope.index));
                    (scope, node)
                }
                Open::Body(body) => (&mut body.scope, body.nodes.next()),
                Open::Waiting(_) => {
                    let (scope, waiting) = waiting(open, outermost)?;
                    match waiting.graphs.next() {
                        Some((attribute, graph)) => {
                            let body = self.start(scope, waiting, attribute, graph)?;
                            open.push(Open::Body(body));
                        }
                        None => {
                            if let Some(Open::Waiting(waiting)) = open.pop() {
                                let Waiting { place, resolved, attributes, inputs, outputs, bodies, .. } = *waiting;
                                self.draft.node(place, resolved, attributes, inputs, outputs);
                                self.draft.bodies(bodies);
                            }
                        }
                    }
                    continue;
                }
            };
            match node {
                Some(node) => {
                    let next = self.next(scope, node)?;
                    if next.is_some() {
                        return Ok(next);
                    }
                }
                None => {
                    if let Some(Open::Body(body)) = open.pop() {
                        let (scope, waiting) = waiting(open, outermost)?;
                        waiting.bodies.push(self.end(scope, *body)?);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Starts with a subgraph of a node.
    fn start(
        &mut self,
        scope: &mut Scope,
        Waiting { place, key, inputs, .. }: &Waiting,
        attribute: String,
        mut graph: GraphProto,
    ) -> Result<Box<Body>> {
        // In a file each is three messages; functions can nest them further.
        let most = self.files.limits.nesting / 3;
        let depth = self.open.len() + 1;
        if depth > most {
            return Err(exceeded("nesting", "subgraphs nest", depth as u128, "deep", most as u64));
        }
        let budget = &self.files.budget;
        let around = Self::calls(place);
        budget
            .take((4 * size_of::<Draft>() + size_of::<DraftBody>() + size_of::<Body>() + 512 + around.len()) as u64)?;
        let mut own = Scope {
            names: scope.names.inside(key, Some(&attribute), graph.node.len() + graph.initializer.len(), budget)?,
            opsets: scope.opsets.clone(),
            attributes: scope.attributes.clone(),
            function: Some(around),
            called: None,
            index: 0,
            inner: true,
        };
        let inner = self.draft.inner();
        self.open.push(Around {
            draft: std::mem::replace(&mut self.draft, inner),
            names: std::mem::take(&mut scope.names),
            captured: Vec::new(),
            hidden: Vec::new(),
            closed: !scope.inner && scope.function.is_some(),
        });
        self.draft.open(&mut own.names, budget)?;
        self.own_names(&mut own.names, &graph)?;
        if (&*place.operator.domain, &*place.operator.name) == ("", "Loop") {
            forget_sizes(&mut graph);
        }
        let GraphProto { node, initializer, sparse_initializer, input, output, value_info, .. } = graph;
        let nodes = node.into_iter();
        let values = Values {
            initializers: initializer.into_iter().map(Ok),
            sparse: sparse_initializer.into_iter().map(Ok),
            inputs: input,
            given: given(&place.operator, inputs.len()),
            outputs: output,
            declared: value_info.into_iter().map(Ok),
        };
        let outputs = self.values(&mut own, nodes.len(), values)?;
        Ok(Box::new(Body { scope: own, attribute, nodes, outputs }))
    }

    /// Ends a subgraph whose nodes are read. `scope` is that of its node.
    fn end(&mut self, scope: &mut Scope, body: Body) -> Result<DraftBody> {
        let Body { scope: mut own, attribute, outputs, .. } = body;
        self.outputs(&mut own, outputs)?;
        let Some(around) = self.open.pop() else { return Err(Error::bug("no graph is open")) };
        let mut draft = std::mem::replace(&mut self.draft, around.draft);
        self.draft.close(&mut draft);
        scope.names = around.names;
        Ok(DraftBody { attribute, draft, captured: around.captured, hidden: around.hidden })
    }

    /// Makes the names that a subgraph gives to its own values, and notes the values around it that have one of them,
    /// unless that is allowed.
    fn own_names(&mut self, own: &mut Names, graph: &GraphProto) -> Result<()> {
        let budget = &self.files.budget;
        let inputs = graph.input.iter().filter_map(|input| input.name.as_deref());
        let initializers = graph.initializer.iter().filter_map(|initializer| initializer.name.as_deref());
        let sparse = graph.sparse_initializer.iter().filter_map(|sparse| sparse.values.as_ref()?.name.as_deref());
        let outputs = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
        let allowed = self.registry.compatibility.shadowed_names;
        for name in inputs.chain(initializers).chain(sparse).chain(outputs).filter(|name| !name.is_empty()) {
            if !allowed
                && own.get(name).is_none()
                && let Some(around) =
                    self.open.iter_mut().rfind(|around| around.closed || around.names.get(name).is_some())
                && let Some(Some(id)) = around.names.get(name)
            {
                budget.take(size_of::<Id>() as u64)?;
                around.hidden.push(id);
            }
            self.draft.optional(own, name, budget)?;
        }
        Ok(())
    }

    /// The value that a name stands for in a scope, here or later; `None` for an omitted one.
    #[inline]
    pub(super) fn optional(&mut self, scope: &mut Scope, name: &str) -> Result<Option<Id>> {
        if scope.inner && !name.is_empty() && scope.names.get(name).is_none() {
            return self.captured(scope, name);
        }
        self.draft.optional(&mut scope.names, name, &self.files.budget)
    }

    /// As [`Loader::optional`], for a value that must have a name.
    pub(super) fn value(&mut self, scope: &mut Scope, name: &str) -> Result<Id> {
        match self.optional(scope, name)? {
            Some(id) => Ok(id),
            None => self.draft.value(&mut scope.names, name, &self.files.budget),
        }
    }

    /// A value of a graph around the subgraph: a further input of each subgraph down to this one. `None` if it is an
    /// input of a function that the call omits.
    fn captured(&mut self, scope: &mut Scope, name: &str) -> Result<Option<Id>> {
        let budget = &self.files.budget;
        let knows = |around: &Around| around.closed || around.names.get(name).is_some();
        // If nobody knows it, the outermost graph is to be at fault.
        let level = self.open.iter().rposition(knows).unwrap_or(0);
        for (depth, Around { draft, names, captured, .. }) in self.open.iter_mut().enumerate().skip(level) {
            let id = if depth == level {
                match draft.optional(names, name, budget)? {
                    Some(id) => id,
                    None => return Ok(None),
                }
            } else {
                draft.captured(names, name, budget)?
            };
            budget.take(2 * size_of::<Id>() as u64)?;
            captured.push(id);
        }
        self.draft.captured(&mut scope.names, name, budget).map(Some)
    }
}
