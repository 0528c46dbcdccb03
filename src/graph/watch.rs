//! Watching a run node by node.

use super::{Graph, Node, NodeOutput, Runs, Scope};
use crate::dtype::DType;
use crate::error::Result;
use crate::operator::{Context, Label, Sources, Values};
use crate::tensor::Shape;
use crate::value::Value;
use kernels::Format;
use kernels::convert::{Conversion, convert};
use kernels::half::Half;
use std::sync::Arc;

/// A node of a model: [`Model::nodes`](crate::Model::nodes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInfo<'a> {
    /// Its position in its graph or function, from 0.
    pub index: usize,
    /// Its name; empty if it has none.
    pub name: &'a str,
    /// Its operator.
    pub operator: &'a str,
    /// The operator's domain; empty for `ai.onnx`.
    pub domain: &'a str,
    /// The version (`since_version`) of the operator that applies.
    pub version: i64,
    /// The calls of model functions around it, outermost first, as errors show them.
    pub function: Option<&'a str>,
    scopes: &'a [Option<Scope>],
    parts: Parts<'a>,
}

/// The nodes that a node stands for.
#[derive(Debug, Clone, Copy)]
struct Parts<'a>(&'a [Node]);

impl PartialEq for Parts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(Node::info).eq(other.0.iter().map(Node::info))
    }
}

impl Eq for Parts<'_> {}

impl<'a> NodeInfo<'a> {
    /// The nodes that it stands for, if it runs in the place of several; the last one's names are also its own.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = NodeInfo<'a>> + use<'a> {
        self.parts.0.iter().map(Node::info)
    }

    /// The scope of the name of an output, counted as [`Watch::ends`] gives them; `None` if the name is one of the
    /// model's graph. A function's last nodes give values of its caller.
    pub fn output_scope(&self, k: usize) -> Option<&'a Scope> {
        self.scopes.get(k)?.as_ref()
    }
}

/// Watches a run, node by node: [`Model::run_watched`](crate::Model::run_watched). Nodes of a subgraph come between the
/// start and the end of the node that it belongs to, as often as it runs.
///
/// Names are unique in their [`Scope`]: that of an output is [`NodeInfo::output_scope`]. In a subgraph they come again in
/// each trip, which [`Watch::enters`] announces.
///
/// A value that a watch keeps can't be overwritten by the node that reads it last, and counts as memory of the run.
pub trait Watch {
    /// Whether a node that stands for several is watched as one, whose inner values nobody sees: see [`NodeInfo::parts`].
    /// By default its nodes run one after the other, each watched.
    ///
    /// Watched as one, nodes give values in the form that they are stored in: images between convolutions may be in blocks
    /// of channels, `[N, C / 16, H, W, 16]` in the place of `[N, C, H, W]`, with 128 added to each int8, modulo 256, and numbers
    /// of float16 and bfloat16 may be in float32. Otherwise all values are as the model says.
    fn whole(&self) -> bool {
        false
    }

    /// A node is about to run with these inputs; `None` for an omitted one.
    ///
    /// # Errors
    /// An error ends the run, which returns it.
    fn starts(&mut self, node: NodeInfo<'_>, inputs: &[Option<&Value>]) -> Result<()> {
        let _ = (node, inputs);
        Ok(())
    }

    /// A node that has started enters the subgraph of an attribute: for a Loop, another trip begins.
    ///
    /// # Errors
    /// An error ends the run, which returns it.
    fn enters(&mut self, node: NodeInfo<'_>, body: &str) -> Result<()> {
        let _ = (node, body);
        Ok(())
    }

    /// A node has run: its outputs by name, without those that it doesn't name.
    ///
    /// # Errors
    /// An error ends the run, which returns it.
    fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()>;
}

/// The watch of a run, if there is one.
pub(crate) type Watching<'w> = Option<&'w mut dyn Watch>;

/// How a watch sees a node that computes in float32 in the place of 16 bits: with the values of the model.
#[derive(Debug)]
pub(super) struct Wide {
    pub(super) half: Half,
    /// The node of the model that it starts, and that it ends; the same unless there is rounding between.
    pub(super) starts: bool,
    pub(super) ends: Option<Arc<Label>>,
    /// Inputs that are what the model says: those from this one on.
    pub(super) own_from: usize,
}

impl Wide {
    /// A tensor of float32 in the model's type of 16 bits; `None` of another value.
    fn narrowed(&self, value: &Value, context: &Context) -> Result<Option<Value>> {
        let Some(numbers) = value.tensor().ok().filter(|tensor| tensor.dtype() == DType::Float) else {
            return Ok(None);
        };
        let dtype = if self.half == Half::F16 { DType::Float16 } else { DType::Bfloat16 };
        let mut narrow = context.output_of(dtype, Shape::from_slice(numbers.shape()))?;
        let work = Conversion::plain(Format::Single, Format::Half(self.half));
        convert(work, numbers.aligned_bytes(), narrow.bytes_mut(), context.resources())?;
        Ok(Some(narrow.finish().into()))
    }
}

impl Node {
    pub(super) fn info(&self) -> NodeInfo<'_> {
        let place = &self.place;
        NodeInfo {
            index: place.index as usize,
            name: &place.name,
            operator: &place.operator.name,
            domain: &place.operator.domain,
            version: place.operator.version.unwrap_or(0),
            function: place.function.as_deref(),
            scopes: &self.scopes,
            // One that stands for itself differs in the layout of its values only.
            parts: Parts(match &self.operator {
                Runs::Fused(fused) if fused.nodes.nodes.len() > 1 => &fused.nodes.nodes,
                _ => &[],
            }),
        }
    }

    /// Whether a watch sees it as one node.
    pub(super) fn is_whole(&self, watch: &dyn Watch) -> bool {
        watch.whole() || !matches!(self.operator, Runs::Fused(_))
    }

    #[cold]
    pub(super) fn starts(&self, sources: &Sources<'_>, context: &Context, watch: &mut dyn Watch) -> Result<()> {
        let inputs: Vec<Option<&Value>> = self.inputs.iter().map(|input| sources.get((*input)?)).collect();
        let Some(wide) = self.wide.as_deref().filter(|_| !watch.whole()) else {
            return watch.starts(self.info(), &inputs);
        };
        if !wide.starts {
            return Ok(());
        }
        let narrow = |(k, value): (usize, &Option<&Value>)| match value {
            Some(value) if k < wide.own_from => wide.narrowed(value, context),
            _ => Ok(None),
        };
        let narrow = inputs.iter().enumerate().map(narrow).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<_> = narrow.iter().zip(inputs).map(|(narrow, own)| narrow.as_ref().or(own)).collect();
        watch.starts(self.info(), &inputs)
    }

    pub(super) fn enters(&self, body: usize, watch: &mut Watching<'_>) -> Result<()> {
        let (Some(watch), Runs::Control(operator)) = (watch, &self.operator) else { return Ok(()) };
        operator.bodies.get(body).map_or(Ok(()), |body| watch.enters(self.info(), &body.attribute))
    }

    #[cold]
    pub(super) fn ends(&self, values: &Values, context: &Context, watch: &mut dyn Watch) -> Result<()> {
        let named = |output: &NodeOutput| output.slot.is_some() && !output.name.is_empty();
        let outputs = self.outputs.iter().zip(values.iter()).filter(|(output, _)| named(output));
        let outputs: Vec<(&str, &Value)> =
            outputs.filter_map(|(output, value)| Some((&*output.name, value?))).collect();
        let Some(wide) = self.wide.as_deref().filter(|_| !watch.whole()) else {
            return watch.ends(self.info(), &outputs);
        };
        let Some(Label { name, domain, version }) = wide.ends.as_deref() else { return Ok(()) };
        let narrow = outputs.iter().map(|(_, value)| wide.narrowed(value, context)).collect::<Result<Vec<_>>>()?;
        let outputs: Vec<_> =
            outputs.iter().zip(&narrow).map(|((name, own), narrow)| (*name, narrow.as_ref().unwrap_or(own))).collect();
        watch.ends(NodeInfo { operator: name, domain, version: version.unwrap_or(0), ..self.info() }, &outputs)
    }
}

impl Graph {
    /// The nodes that a run executes, in order, without those of subgraphs.
    pub(crate) fn node_infos(&self) -> impl ExactSizeIterator<Item = NodeInfo<'_>> {
        self.nodes.iter().map(Node::info)
    }
}
