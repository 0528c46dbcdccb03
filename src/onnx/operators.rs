//! The operators of nodes: each is looked up once, and what can't be resolved is counted.

use super::functions::Decoded;
use super::graph::{Loader, Scope};
use super::opsets::{Opsets, domain_name, domain_of};
use super::proto::{AttributeProto, GraphProto, NodeProto};
use crate::error::{Error, Remedy, Result};
use crate::graph::NodePlace;
use crate::operator::{Label, Resolved};
use crate::registry::{Found, Newest};
use crate::schema;
use std::rc::Rc;
use std::sync::Arc;

/// Upper bound on the memory of a parsed schema.
const SCHEMA: u64 = 8 << 10;

/// Memory of a resolved operator, excluding names and schema.
const LOOKED_UP: u64 = 1 << 10;

impl Loader<'_> {
    /// The operator of a node at a place. If it can't run, the node is counted.
    pub(super) fn resolve(
        &mut self,
        opsets: &Opsets,
        domain: &str,
        op_type: &str,
        place: &dyn Fn(Arc<Label>) -> NodePlace,
    ) -> Result<Option<Arc<Resolved>>> {
        self.draft.faults.nodes += 1;
        let opset = opsets.get(domain);
        let found = match self.operators.get(domain, op_type, opset) {
            Some(found) => found.clone(),
            None => {
                self.files.budget.take(LOOKED_UP + 4 * (op_type.len() + domain.len()) as u64)?;
                self.draft.faults.operators += 1;
                let at = self.draft.place();
                let found = self.look_up(opset, domain, op_type);
                let found = match found.map_err(|why| self.functions.other_overloads(domain, op_type).unwrap_or(why)) {
                    Ok(resolved) => {
                        self.files.budget.take(SCHEMA)?;
                        if !resolved.is_custom() && schema::is_experimental(&resolved.schema) {
                            let text = "is an experimental operator, which ONNX dropped in release 1.5: later opsets don't have it";
                            self.draft.note(format!("{} {text}", resolved.schema.label()), &self.files.budget)?;
                        }
                        let why = resolved.missing().map(|why| place(resolved.label.clone()).locate(why));
                        let unresolved = why.map(|why| self.draft.faults.list_unresolved(at, why));
                        Found { resolved: Some(Arc::new(resolved)), unresolved }
                    }
                    Err(why) => {
                        let why = place(Arc::new(Label::new(op_type, domain, None))).locate(why);
                        Found { resolved: None, unresolved: Some(self.draft.faults.list_unresolved(at, why)) }
                    }
                };
                self.operators.insert(domain, op_type, opset, found.clone());
                found
            }
        };
        if let Some(listed) = found.unresolved {
            self.draft.faults.unresolved(listed);
        }
        Ok(found.resolved)
    }

    fn look_up(&self, opset: Option<i64>, domain: &str, op_type: &str) -> Result<Resolved> {
        if op_type.is_empty() {
            return Err(Error::model("the node has no op_type"));
        }
        let newest = || match self.registry.newest(domain) {
            Some(Newest::Standard(newest)) => newest,
            Some(Newest::Custom) | None => i64::MAX,
        };
        match opset {
            Some(opset) if opset > 0 => self.registry.resolve(domain, op_type, opset),
            _ if self.registry.compatibility.undeclared_domains => self.registry.resolve(domain, op_type, newest()),
            None => {
                let error = Error::model(format!("the model doesn't import the domain {}", domain_name(domain)));
                let runs = self.registry.resolve(domain, op_type, newest()).is_ok_and(|found| !found.is_missing());
                Err(if runs { error.with_remedy(Remedy::Allow("undeclared_domains")) } else { error })
            }
            Some(opset) => {
                let name = domain_name(domain);
                let text = format!("opset_import has version {opset} of domain {name}: versions start at 1");
                Err(Error::model(text).value(opset))
            }
        }
    }

    /// Counts the unresolved operators in a node's subgraphs too, and in functions that these call.
    pub(super) fn inner_operators(
        &mut self,
        scope: &Scope,
        place: &NodePlace,
        attributes: Vec<AttributeProto>,
    ) -> Result<()> {
        let around = Self::calls(place);
        // A stack: a node's subgraphs come before the nodes after it.
        let mut open = inner_graphs(attributes, &around, &scope.opsets);
        while let Some(Inner { nodes, next, around, opsets }) = open.last_mut() {
            let (index, Some(node)) = (*next, nodes.node(*next)) else {
                open.pop();
                continue;
            };
            *next += 1;
            let (around, opsets) = (around.clone(), opsets.clone());
            let (op_type, domain) = (node.op_type.unwrap_or_default(), domain_of(node.domain.as_deref()));
            let name = node.name.unwrap_or_default();
            let place =
                |operator| NodePlace { index, name: name.as_str().into(), operator, function: Some(around.clone()) };
            let labelled = || place(Arc::new(Label::new(&op_type, domain, None)));
            let function = self.functions.find(domain, &op_type, node.overload.as_deref().unwrap_or(""));
            if function.is_none() {
                _ = self.resolve(&opsets, domain, &op_type, &place)?;
            }
            if let Some(function) = function.filter(|function| self.seen.insert(*function)) {
                let (place, called) = (labelled(), self.functions.decoded(function, self.registry, self.files));
                match called {
                    Ok(called) => {
                        let (around, opsets) = (Self::calls(&place), called.opsets.clone());
                        open.push(Inner { nodes: Nodes::Function(called), next: 0, around, opsets });
                    }
                    Err(error) => self.draft.faults.push(place.locate(error.within("the function"))),
                }
            }
            if node.attribute.iter().any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty()) {
                let around = Self::calls(&labelled());
                open.extend(inner_graphs(node.attribute, &around, &opsets));
            }
        }
        Ok(())
    }
}

/// Nodes that are looked into because those around them can't run.
struct Inner {
    nodes: Nodes,
    next: u32,
    /// The nodes around them, as errors show these.
    around: Arc<str>,
    opsets: Arc<Opsets>,
}

enum Nodes {
    /// Of a graph; each is taken once.
    Graph(std::vec::IntoIter<NodeProto>),
    Function(Rc<Decoded>),
}

/// The graphs among attributes, the last one first.
fn inner_graphs(attributes: Vec<AttributeProto>, around: &Arc<str>, opsets: &Arc<Opsets>) -> Vec<Inner> {
    let graphs = attributes.into_iter().flat_map(|a| a.g.map(|graph| *graph).into_iter().chain(a.graphs));
    let inner = |graph: GraphProto| Inner {
        nodes: Nodes::Graph(graph.node.into_iter()),
        next: 0,
        around: around.clone(),
        opsets: opsets.clone(),
    };
    let mut graphs: Vec<Inner> = graphs.map(inner).collect();
    graphs.reverse();
    graphs
}

impl Nodes {
    fn node(&mut self, index: u32) -> Option<NodeProto> {
        match self {
            Nodes::Graph(nodes) => nodes.next(),
            Nodes::Function(function) => function.node(index),
        }
    }
}
