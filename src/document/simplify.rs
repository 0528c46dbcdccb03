//! Models without what needn't run: constants are computed, nodes that nobody reads go.

use super::extract::{Needed, domain};
use super::names::Renamed;
use super::{Document, Function, Graph, Initializer, Node, ValueInfo};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{GraphDetails, NodeDetails, Scope};
use crate::model::Inspection;
use crate::tensor::Tensor;
use crate::value::Value;
use std::collections::{HashMap, HashSet};

/// The first opset whose Constant gives all types.
pub(super) const ALL_CONSTANTS: i64 = 9;

/// The first version of the format whose initializers need not be inputs.
pub(super) const FREE_INITIALIZERS: i64 = 4;

impl Document {
    /// Puts constants in the place of nodes that give the same in every run, and drops Identity, nodes that no output
    /// depends on, and initializers, functions and opset imports that nothing uses; in bodies too. `found` is the
    /// inspection of this document. A constant of more than `max_bytes` stays computed,
    /// and so does what DequantizeLinear gives. Inputs and outputs stay, and so do
    /// functions that are called.
    ///
    /// # Errors
    /// If the graph is not valid, or the document was changed after its inspection.
    ///
    /// ```
    /// use onnxref::document::{Document, Graph, Initializer, Node, ValueInfo};
    /// use onnxref::{DType, Tensor};
    ///
    /// let graph = Graph::new("g")
    ///     .input(ValueInfo::tensor("x", DType::Float, ["n"]))
    ///     .initializer(Initializer::new("a", &Tensor::from(vec![2f32])))
    ///     .node(Node::new("Neg", ["a"], ["b"]))
    ///     .node(Node::new("Identity", ["b"], ["c"]))
    ///     .node(Node::new("Add", ["x", "c"], ["y"]))
    ///     .output(ValueInfo::tensor("y", DType::Float, ["n"]));
    /// let mut document = Document::new(graph, 22);
    /// let found = document.inspect(&Default::default())?;
    /// document.simplify(&found, 1 << 20)?;
    /// assert_eq!((document.graph.nodes.len(), document.graph.initializers.len()), (1, 1));
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn simplify(&mut self, found: &Inspection, max_bytes: u64) -> Result<()> {
        self.check_found(found)?;
        let as_nodes = self.ir_version.is_none_or(|version| version < FREE_INITIALIZERS);
        let opset = self.opset_imports.iter().filter(|import| domain(&import.domain).is_empty());
        let all_types = opset.filter_map(|import| import.version).max() >= Some(ALL_CONSTANTS);
        let functions = self.functions.iter().filter(|function| domain(&function.domain).is_empty());
        let functions = functions.map(|function| function.name.clone()).collect();
        let rules = Rules { max_bytes, as_nodes, all_types, functions };
        self.try_change(|content| {
            let mut changed = content.graph.try_change(|graph| graph.simplify(Some((&found.graph, 0)), &rules))?;
            for function in &mut content.functions {
                changed |= function.try_change(|function| function.simplify(&rules))?;
            }
            let parts = |content: &super::Content| content.functions.len() + content.opset_imports.len();
            let before = parts(content);
            content.keep_used();
            changed |= parts(content) < before;
            if changed {
                content.drop_training();
            }
            Ok(changed)
        })
    }
}

impl Function {
    /// Drops Identity and what the outputs don't depend on: as a graph, whose inputs are not constant.
    fn simplify(&mut self, rules: &Rules) -> Result<bool> {
        let untyped = |names: &[String]| names.iter().map(|name| ValueInfo::untyped(name).into()).collect();
        let mut graph = Graph {
            nodes: std::mem::take(&mut self.nodes),
            value_info: std::mem::take(&mut self.value_info),
            inputs: untyped(&self.inputs),
            outputs: untyped(&self.outputs),
            ..Graph::default()
        };
        let changed = graph.simplify(None, rules);
        (self.nodes, self.value_info) = (graph.nodes, graph.value_info);
        changed
    }
}

struct Rules {
    max_bytes: u64,
    /// Constants become nodes, as initializers would have to be inputs.
    as_nodes: bool,
    /// Constant may give all types.
    all_types: bool,
    /// Functions of the model in the domain of the standard: they take the place of its operators.
    functions: HashSet<String>,
}

/// What is known of a graph, and how many bodies are around it.
type Known<'a> = (&'a GraphDetails, usize);

impl Rules {
    /// Whether Constant nodes may take the place of a node.
    fn allow(&self, node: &Node, constants: &[(String, Tensor)]) -> bool {
        let fits = |(_, tensor): &(String, Tensor)| self.all_types || is_old_constant(tensor.dtype());
        node.op_type != "Constant" && constants.iter().all(fits)
    }

    fn is_identity(&self, node: &Node) -> bool {
        node.op_type == "Identity" && domain(&node.domain).is_empty() && !self.functions.contains("Identity")
    }
}

/// Whether a node Constant of any version may give a type.
pub(super) fn is_old_constant(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::Float | DType::Double)
}

impl Graph {
    /// Returns whether it changes anything.
    fn simplify(&mut self, known: Option<Known<'_>>, rules: &Rules) -> Result<bool> {
        let mut changed = false;
        if let Some(known) = known {
            changed |= self.fold(known, rules)?;
        }
        changed |= self.forward(rules);
        Ok(self.drop_unread()? | changed)
    }

    /// Computes constants.
    fn fold(&mut self, (details, depth): Known<'_>, rules: &Rules) -> Result<bool> {
        let makers = makers(details, depth);
        // Bodies see all initializers. A value of a body may have the name of one that is computed later.
        let inside: HashSet<String> = self.inside().into_iter().map(str::to_string).collect();
        let is_seen = |constants: &[(String, Tensor)]| constants.iter().any(|(name, _)| inside.contains(name));
        let mut changed = false;
        let (mut nodes, mut initializers) = (Vec::with_capacity(self.nodes.len()), Vec::new());
        for mut node in std::mem::take(&mut self.nodes) {
            let first = node.outputs.iter().find(|name| !name.is_empty());
            let known = first.and_then(|name| makers.get(name.as_str())).filter(|known| known.operator == node.op_type);
            let constants = known.and_then(|known| constants(&node, known, details, rules.max_bytes));
            match constants {
                Some(constants) if !rules.as_nodes && !is_seen(&constants) => {
                    initializers.extend(constants.iter().map(|(name, tensor)| Initializer::new(name, tensor).into()));
                    changed = true;
                }
                Some(constants) if rules.allow(&node, &constants) => {
                    nodes.extend(constants.iter().map(|(name, tensor)| {
                        let value = Initializer::new("", tensor);
                        Node::new("Constant", [""; 0], [name]).attribute("value", value).into()
                    }));
                    changed = true;
                }
                _ => {
                    changed |= node.try_change(|node| {
                        let mut changed = false;
                        for attribute in &mut node.attributes {
                            let name = attribute.name.clone();
                            let bodies = known.iter().flat_map(|known| &known.bodies);
                            let body =
                                bodies.into_iter().find(|(other, _)| *other == name).map(|(_, body)| (body, depth + 1));
                            changed |= attribute.try_change(|attribute| {
                                let mut changed = false;
                                for graph in attribute.graphs_mut() {
                                    changed |= graph.try_change(|graph| graph.simplify(body, rules))?;
                                }
                                Ok(changed)
                            })?;
                        }
                        Ok(changed)
                    })?;
                    nodes.push(node);
                }
            }
        }
        self.nodes = nodes;
        self.initializers.extend(initializers);
        Ok(changed)
    }

    /// Drops Identity: what reads its output reads its input.
    fn forward(&mut self, rules: &Rules) -> bool {
        let outputs: HashSet<String> = self.outputs.iter().map(|info| info.name.clone()).collect();
        let inside: HashSet<String> = self.inside().into_iter().map(str::to_string).collect();
        let mut sources: HashMap<String, String> = HashMap::new();
        for node in self.nodes.iter().filter(|node| rules.is_identity(node)) {
            let ([from], [to]) = (node.inputs.as_slice(), node.outputs.as_slice()) else { continue };
            if !from.is_empty() && !to.is_empty() && !outputs.contains(to) && !inside.contains(from) {
                sources.insert(to.clone(), from.clone());
            }
        }
        let Some(names) = ends(&sources).filter(|names| !names.is_empty()) else { return false };
        self.nodes
            .retain(|node| !rules.is_identity(node) || !node.outputs.iter().any(|name| sources.contains_key(name)));
        self.value_info.retain(|info| !sources.contains_key(&info.name));
        self.quantization_annotations.retain(|annotation| !sources.contains_key(&annotation.tensor_name));
        self.rename_uses(&names);
        true
    }

    /// Drops nodes and constants that no output depends on.
    fn drop_unread(&mut self) -> Result<bool> {
        let outputs: Vec<String> = self.outputs.iter().map(|info| info.name.clone()).collect();
        let Needed { nodes, values, .. } = Needed::new(self, None, &outputs)?;
        let size = |graph: &Graph| {
            [graph.nodes.len(), graph.initializers.len(), graph.sparse_initializers.len(), graph.value_info.len()]
        };
        let before = size(self);
        let inputs: HashSet<&str> = self.inputs.iter().map(|info| info.name.as_str()).collect();
        let keeps = |name: &str| values.contains(name) || inputs.contains(name);
        let mut kept = nodes.iter();
        self.nodes.retain(|_| kept.next().is_some_and(|kept| *kept));
        self.initializers.retain(|tensor| keeps(&tensor.name));
        self.sparse_initializers.retain(|tensor| keeps(tensor.name()));
        let defined: HashSet<String> = self.defined().into_iter().map(str::to_string).collect();
        self.value_info.retain(|info| defined.contains(&info.name));
        self.keep_annotations(&defined);
        Ok(size(self) != before)
    }
}

/// Where each name leads in the end; `None` if they lead around. Nodes may be in any order.
fn ends(sources: &HashMap<String, String>) -> Option<Renamed<'_>> {
    let mut ends = Renamed::new();
    for start in sources.keys() {
        let (mut at, mut passed): (&str, Vec<&str>) = (start, Vec::new());
        let end = loop {
            if let Some(end) = ends.get(at) {
                break *end;
            }
            let Some(next) = sources.get(at) else { break at };
            if passed.len() == sources.len() {
                return None;
            }
            passed.push(at);
            at = next;
        };
        ends.extend(passed.into_iter().map(|name| (name, end)));
    }
    Some(ends)
}

/// The nodes that give values of a graph itself, by the first one: not values inside of functions that it calls.
pub(super) fn makers(details: &GraphDetails, depth: usize) -> HashMap<&str, &NodeDetails> {
    let maker = |node: &'_ NodeDetails| {
        let value = node.outputs.iter().flatten().next().and_then(|at| details.values.get(*at))?;
        (value.scope.as_ref().map_or(0, Scope::depth) == depth).then_some(value.name.as_str())
    };
    details.nodes.iter().filter_map(|node| Some((maker(node)?, node))).collect()
}

/// The outputs of a node, if each is a constant tensor that isn't too large.
fn constants(
    node: &Node,
    known: &NodeDetails,
    details: &GraphDetails,
    max_bytes: u64,
) -> Option<Vec<(String, Tensor)>> {
    // Weights stay quantized: engines look for them before this operator, and floats are larger.
    if node.op_type == "DequantizeLinear" {
        return None;
    }
    // In training it draws numbers, which may be others in each run.
    if node.op_type == "Dropout" && node.inputs.len() > 2 {
        return None;
    }
    let mut all = Vec::new();
    for (name, place) in node.outputs.iter().zip(&known.outputs) {
        if name.is_empty() {
            continue;
        }
        let value = details.values.get((*place)?)?;
        let Value::Tensor(tensor) = value.constant.as_ref()? else { return None };
        let texts: usize = tensor.strings().map_or(0, |texts| texts.map(str::len).sum());
        if (tensor.bytes().len() + texts) as u64 > max_bytes {
            return None;
        }
        all.push((name.clone(), tensor.clone()));
    }
    if all.is_empty() { None } else { Some(all) }
}
