//! Operators that are written with other operators: when a model is loaded, the nodes of a body replace the node.

use super::{Attribute, Implementation, Resolved};
use crate::error::{Error, Result};
use crate::schema;
use std::sync::Arc;

/// A value in a body.
#[cfg_attr(not(test), expect(dead_code, reason = "operators with bodies are to come"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyValue {
    /// An input of the node.
    Input(usize),
    /// The output of the body's node at this position.
    Node(usize),
}

/// A node of a body: it has one output.
#[derive(Debug)]
pub(crate) struct BodyNode {
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) attributes: Vec<(String, Attribute)>,
    pub(crate) inputs: Vec<Option<BodyValue>>,
}

/// The nodes that replace a node, each after those that it reads from.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) nodes: Vec<BodyNode>,
    /// For each output of the node the body's node that produces it.
    pub(crate) outputs: Vec<usize>,
}

impl Body {
    /// Adds a node of an operator version of ours.
    #[cfg_attr(not(test), expect(dead_code, reason = "operators with bodies are to come"))]
    pub(crate) fn node(
        &mut self,
        operator: &Implementation,
        version: i64,
        attributes: Vec<(String, Attribute)>,
        inputs: &[Option<BodyValue>],
    ) -> Result<BodyValue> {
        let schema = Arc::new(schema::resolve(operator.domain, operator.name, version)?);
        let resolved = Resolved::new(schema, operator.make.clone(), Default::default());
        Ok(self.node_of(Arc::new(resolved), attributes, inputs))
    }

    /// As [`Body::node`], of an operator that was resolved.
    pub(crate) fn node_of(
        &mut self,
        resolved: Arc<Resolved>,
        attributes: Vec<(String, Attribute)>,
        inputs: &[Option<BodyValue>],
    ) -> BodyValue {
        self.nodes.push(BodyNode { resolved, attributes, inputs: inputs.to_vec() });
        BodyValue::Node(self.nodes.len() - 1)
    }

    /// Says what the next output of the node is: what a node of the body produces, once.
    #[cfg_attr(not(test), expect(dead_code, reason = "operators with bodies are to come"))]
    pub(crate) fn output(&mut self, value: BodyValue) -> Result<()> {
        match value {
            BodyValue::Node(node) if !self.outputs.contains(&node) => {
                self.outputs.push(node);
                Ok(())
            }
            _ => Err(Error::bug("an output of a body is not one of its own values, or is one twice")),
        }
    }
}
