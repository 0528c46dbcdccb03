//! Operators that are written with other operators: when a model is loaded, the nodes of a body replace the node.

use super::{Attribute, Call, Inference, Make, Operator, Resolved, Values};
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::schema::Schema;
use std::sync::Arc;

/// Finds operators by name, for nodes that no file has: those of bodies, and those that passes make. One for a load; each
/// operator is looked up once, and its memory is charged.
pub(crate) trait Resolver {
    /// The version of an operator that rules under an opset.
    fn resolve(&self, domain: &str, name: &str, opset: i64) -> Result<Arc<Resolved>>;

    /// The memory of the load.
    fn budget(&self) -> &Budget;
}

/// A value in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyValue {
    /// An input of the node.
    Input(usize),
    /// An output of the body's node at a position.
    Output { node: usize, k: usize },
}

/// A node of a body.
#[derive(Debug)]
pub(crate) struct BodyNode {
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) attributes: Vec<(String, Attribute)>,
    pub(crate) inputs: Vec<Option<BodyValue>>,
    /// The number of its outputs.
    pub(crate) outputs: usize,
    /// It has the subgraphs of the node that is replaced.
    pub(crate) bodies: bool,
}

/// The nodes that replace a node, each after those that it reads from.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    pub(crate) nodes: Vec<BodyNode>,
    /// For each output of the node what produces it.
    pub(crate) outputs: Vec<BodyValue>,
}

/// The operator that returns its inputs: with the types of another one's, which a run checks where they aren't known before.
pub(crate) fn gate(of: &Resolved) -> Resolved {
    let schema = Schema { outputs: of.schema.inputs.clone(), attributes: Vec::new(), ..(*of.schema).clone() };
    Resolved::new(Arc::new(schema), Make::Run(|_| Ok(Box::new(Gate))), of.compatibility)
}

#[derive(Debug)]
struct Gate;

impl Operator for Gate {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let mut outputs = Values::new();
        for k in 0..call.input_count() {
            match call.input(k) {
                Some(_) => outputs.push(call.taken(k)?),
                None => outputs.push_hole(),
            }
        }
        Ok(outputs)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        (0..facts.input_count()).for_each(|k| facts.give_shape_of(k, k));
        Ok(())
    }
}

/// A body that is being written.
pub(crate) struct Body<'a> {
    resolver: &'a dyn Resolver,
    expansion: Expansion,
}

impl<'a> Body<'a> {
    pub(super) fn new(resolver: &'a dyn Resolver) -> Body<'a> {
        Body { resolver, expansion: Expansion::default() }
    }

    pub(super) fn finish(self) -> Expansion {
        self.expansion
    }

    /// Adds a node of one output: of an operator of the default domain, in its version under an opset.
    pub(crate) fn node<const A: usize, const I: usize>(
        &mut self,
        name: &str,
        opset: i64,
        attributes: [(&str, Attribute); A],
        inputs: [BodyValue; I],
    ) -> Result<BodyValue> {
        let [output] = self.nodes(name, opset, attributes, inputs)?;
        Ok(output)
    }

    /// As [`Body::node`], with any number of outputs.
    pub(crate) fn nodes<const A: usize, const I: usize, const O: usize>(
        &mut self,
        name: &str,
        opset: i64,
        attributes: [(&str, Attribute); A],
        inputs: [BodyValue; I],
    ) -> Result<[BodyValue; O]> {
        let attributes = attributes.map(|(name, value)| (name.to_string(), value));
        Ok(self.nodes_of(self.resolver.resolve("", name, opset)?, attributes.into(), inputs.map(Some).into()))
    }

    /// As [`Body::nodes`], of an operator that was resolved.
    pub(crate) fn nodes_of<const O: usize>(
        &mut self,
        resolved: Arc<Resolved>,
        attributes: Vec<(String, Attribute)>,
        inputs: Vec<Option<BodyValue>>,
    ) -> [BodyValue; O] {
        let (node, bodies) = (self.expansion.nodes.len(), resolved.has_bodies());
        self.expansion.nodes.push(BodyNode { resolved, attributes, inputs, outputs: O, bodies });
        std::array::from_fn(|k| BodyValue::Output { node, k })
    }

    /// Says what the next output of the node is: what a node of the body produces, once.
    pub(crate) fn output(&mut self, value: BodyValue) -> Result<()> {
        match value {
            BodyValue::Output { .. } if !self.expansion.outputs.contains(&value) => {
                self.expansion.outputs.push(value);
                Ok(())
            }
            _ => Err(Error::bug("an output of a body is not one of its own values, or is one twice")),
        }
    }
}
