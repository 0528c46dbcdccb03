//! Models of a later opset: nodes whose operators differ in form only are rewritten.

use super::changes::{change, renew};
use super::extract::{self, domain};
use super::names::{Names, all_nodes};
use super::simplify::{ALL_CONSTANTS, FREE_INITIALIZERS, is_old_constant, makers};
use super::step::{Beside, LATER, Step};
use super::{Content, Document, Function, Graph, Initializer, Node, OpsetImport, Part, ValueInfo};
use crate::error::{Error, Result, quote};
use crate::graph::{GraphDetails, NodeDetails, types};
use crate::model::Inspection;
use crate::schema::{self, Schema};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The first version of the format that has `opset_import`.
const IMPORTS: i64 = 3;

/// Opsets of `ai.onnx`, and the first version of the format that has them.
const IR_VERSIONS: [(i64, i64); 11] =
    [(1, 3), (9, 4), (10, 5), (11, 6), (12, 7), (15, 8), (19, 9), (21, 10), (23, 11), (24, 12), (25, 13)];

/// Opset 28, and the version of the format.
const NEWEST: (i64, i64) = (28, 14);

/// So many refused nodes are kept.
const KEPT: usize = 1000;

impl Document {
    /// Makes the model one of a later opset of `ai.onnx`, with bodies and functions. Nodes whose operators change in form
    /// only are rewritten: attributes that became inputs become constants, and what another default would change
    /// is stated. A few nodes stand for some operators that went. Nodes whose types a later version doesn't take are
    /// refused, as far as types are known. Nodes of other domains stay. The version of the format is raised if the opset
    /// needs it; inputs that initializers fix (below version 4 of the format) are no inputs any more then. `found` is the
    /// inspection of this document, which has types and shapes.
    ///
    /// # Errors
    /// [`Kind::Input`](crate::Kind::Input) for an opset that isn't known, or is before that of the model or of a function; for
    /// an inspection from before a change.
    /// [`Kind::Unsupported`](crate::Kind::Unsupported) if nodes change in more than form: [`Error::causes`] lists them, with their reasons. The
    /// document stays as it was then.
    ///
    /// ```
    /// use onnxref::document::{Document, Graph, Node, ValueInfo};
    /// use onnxref::DType;
    ///
    /// let graph = Graph::new("g")
    ///     .input(ValueInfo::tensor("x", DType::Float, [1, 3]))
    ///     .node(Node::new("Squeeze", ["x"], ["y"]).attribute("axes", vec![0i64]))
    ///     .output(ValueInfo::tensor("y", DType::Float, [3]));
    /// let mut document = Document::new(graph, 11);
    /// let found = document.inspect(&Default::default())?;
    /// document.convert(&found, 13)?;
    /// assert_eq!(document.graph.nodes[0].inputs, ["x", "y_axes"]);
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn convert(&mut self, found: &Inspection, opset: i64) -> Result<()> {
        self.check_found(found)?;
        let newest = schema::newest("").unwrap_or_default();
        if !(1..=newest).contains(&opset) {
            return Err(Error::input(format!("opset {opset}: allowed 1..={newest}")).value(opset));
        }
        // Nothing is changed if a node is refused.
        let mut after = self.clone();
        let old_ir = after.ir_version.unwrap_or_default();
        let ir = old_ir.max(ir_version(opset));
        let mut converter = Converter::new(&after, opset, ir);
        let content: &mut Content = &mut after;
        let implied = (old_ir < IMPORTS && content.opset_imports.is_empty()).then_some(1);
        let from = import(&mut content.opset_imports, implied, opset, "the model")?;
        if let Some(from) = from {
            content.graph.try_change(|graph| converter.graph(graph, from, Some(&found.graph)))?;
        }
        for function in &mut content.functions {
            function.try_change(|function| converter.function(function))?;
        }
        if let Some(refused) = Error::all(converter.refused, converter.count, None) {
            return Err(refused);
        }
        content.raise(ir);
        if from.is_some_and(|from| from < opset) {
            content.drop_training();
        }
        *self = after;
        Ok(())
    }

    /// Imports a version of the operators of a domain, in the place of the one that was imported: nodes stay as they are,
    /// where [`Document::convert`] changes them. The version of the format is raised as it is there.
    ///
    /// ```
    /// use onnxref::document::{Document, Graph};
    ///
    /// let mut document = Document::new(Graph::new("g"), 22);
    /// assert_eq!(document.ir_version, Some(10));
    /// document.set_opset("ai.onnx", 25);
    /// assert_eq!((document.opset_imports.len(), document.ir_version), (1, Some(13)));
    /// ```
    pub fn set_opset(&mut self, domain: &str, version: i64) {
        let (content, own) = (&mut **self, extract::domain(domain));
        content.opset_imports.retain(|import| extract::domain(&import.domain) != own);
        content.opset_imports.push(OpsetImport::new(own, version).into());
        if own.is_empty() {
            content.raise(ir_version(version));
        }
    }
}

impl Content {
    /// Raises the version of the format.
    fn raise(&mut self, ir: i64) {
        let old = self.ir_version.unwrap_or_default();
        if old < FREE_INITIALIZERS && ir >= FREE_INITIALIZERS {
            self.graph.change_if(fix_inputs);
        }
        self.ir_version = Some(ir.max(old));
    }
}

/// The first version of the format that has an opset.
pub(super) fn ir_version(opset: i64) -> i64 {
    let rows = IR_VERSIONS.iter().chain([&NEWEST]);
    rows.rev().find(|(first, _)| *first <= opset).map_or(IMPORTS, |(_, ir)| *ir)
}

/// Drops inputs that initializers fix.
fn fix_inputs(graph: &mut Graph) -> bool {
    let before = graph.inputs.len();
    let sparse = graph.sparse_initializers.iter().map(|tensor| tensor.name().to_string());
    let fixed: HashSet<String> = graph.initializers.iter().map(|tensor| tensor.name.clone()).chain(sparse).collect();
    graph.inputs.retain(|info| !fixed.contains(&info.name));
    graph.inputs.len() < before
}

/// Sets the version of `ai.onnx`. Returns the old one, if it is imported.
fn import(imports: &mut Vec<Part<OpsetImport>>, implied: Option<i64>, to: i64, what: &str) -> Result<Option<i64>> {
    let own = |import: &Part<OpsetImport>| domain(&import.domain).is_empty();
    // Of several the highest counts.
    let versions = imports.iter().filter(|import| own(import)).map(|import| import.version.unwrap_or_default());
    let Some(from) = versions.max().or(implied) else { return Ok(None) };
    if to < from {
        let text = format!("opset {to}: {what} has opset {from} already, and models are converted to later ones only");
        return Err(Error::input(text).value(to));
    }
    if to > from {
        imports.retain(|import| !own(import));
        imports.insert(0, OpsetImport::new("", to).into());
    }
    Ok(Some(from))
}

/// What is known of the nodes of a graph.
type Known<'a> = Option<&'a GraphDetails>;

struct Converter {
    to: i64,
    /// Constants become nodes, as initializers would have to be inputs.
    as_nodes: bool,
    histories: HashMap<String, Arc<[Schema]>>,
    names: Names,
    /// What some node or output reads.
    read: HashSet<String>,
    /// Functions of the model in the domain of the standard: calls of them stay.
    functions: HashSet<String>,
    refused: Vec<Error>,
    /// Of refused nodes.
    count: usize,
    /// The function whose nodes are converted.
    function: Option<String>,
    /// How many graphs are around the one that is converted.
    depth: usize,
}

impl Converter {
    fn new(document: &Document, to: i64, ir: i64) -> Converter {
        let (mut names, mut read) = (Names::default(), HashSet::new());
        let mut node = |node: &Node| {
            names.add(node.inputs.iter().chain(&node.outputs));
            let outputs = node.bodies().flat_map(|body| &body.outputs).map(|info| &info.name);
            read.extend(node.inputs.iter().chain(outputs).filter(|name| !name.is_empty()).cloned());
        };
        all_nodes(&document.graph.nodes, &mut node);
        document.functions.iter().for_each(|function| all_nodes(&function.nodes, &mut node));
        for function in &document.functions {
            names.add(function.inputs.iter().chain(&function.outputs));
            read.extend(function.outputs.iter().cloned());
        }
        let graph = &document.graph;
        read.extend(graph.outputs.iter().map(|info| info.name.clone()));
        names.add(graph.defined().into_iter().chain(graph.inside()));
        let own = document.functions.iter().filter(|function| domain(&function.domain).is_empty());
        Converter {
            to,
            as_nodes: ir < FREE_INITIALIZERS,
            histories: HashMap::new(),
            names,
            read,
            functions: own.map(|function| function.name.clone()).collect(),
            refused: Vec::new(),
            count: 0,
            function: None,
            depth: 0,
        }
    }

    fn function(&mut self, function: &mut Function) -> Result<bool> {
        let name = quote(&function.name);
        let Some(from) = import(&mut function.opset_imports, None, self.to, &format!("function {name}"))? else {
            return Ok(false);
        };
        self.function = Some(format!("function {name}"));
        // A function has no initializers.
        let as_nodes = std::mem::replace(&mut self.as_nodes, true);
        let mut constants = Vec::new();
        let changed = self.nodes(&mut function.nodes, &mut constants, from, None)?;
        (self.function, self.as_nodes) = (None, as_nodes);
        Ok(changed || from < self.to)
    }

    /// Returns whether it changes anything.
    fn graph(&mut self, graph: &mut Graph, from: i64, details: Known<'_>) -> Result<bool> {
        let mut constants = Vec::new();
        let changed = self.nodes(&mut graph.nodes, &mut constants, from, details)?;
        if self.as_nodes {
            // What Constant can't give is the default of an input, as all initializers are.
            graph.inputs.extend(constants.iter().filter_map(|tensor| {
                let dims = tensor.dims.iter().copied();
                Some(ValueInfo::tensor(&tensor.name, tensor.dtype()?, dims).into())
            }));
        }
        graph.initializers.extend(constants);
        Ok(changed)
    }

    fn nodes(
        &mut self,
        nodes: &mut Vec<Part<Node>>,
        initializers: &mut Vec<Part<Initializer>>,
        from: i64,
        details: Known<'_>,
    ) -> Result<bool> {
        let makers = details.map_or_else(HashMap::new, |details| makers(details, self.depth));
        let mut changed = false;
        for (index, mut node) in std::mem::take(nodes).into_iter().enumerate() {
            let first = node.outputs.iter().find(|name| !name.is_empty());
            let maker = first.and_then(|name| makers.get(name.as_str()));
            let known = maker.filter(|known| known.operator == node.op_type).copied();
            let mut beside = Beside::default();
            changed |= node.try_change(|node| {
                let mut changed = self.bodies(node, from, known)?;
                if domain(&node.domain).is_empty() && !self.functions.contains(&node.op_type) {
                    match self.node(node, from, known.zip(details)) {
                        Ok(Some(new)) => (beside, changed) = (new, true),
                        Ok(None) => {}
                        Err(error) => self.refuse(error, node, index),
                    }
                }
                Ok(changed)
            })?;
            for mut value in beside.constants {
                let fits = self.to >= ALL_CONSTANTS || value.dtype().is_some_and(is_old_constant);
                if self.as_nodes && fits {
                    let name = std::mem::take(&mut value.name);
                    nodes.push(Node::new("Constant", [""; 0], [name]).attribute("value", value).into());
                } else {
                    initializers.push(value.into());
                }
            }
            nodes.extend(beside.before.into_iter().map(Part::new));
            nodes.push(node);
            nodes.extend(beside.after.into_iter().map(Part::new));
        }
        Ok(changed)
    }

    fn bodies(&mut self, node: &mut Node, from: i64, known: Option<&NodeDetails>) -> Result<bool> {
        let mut changed = false;
        self.depth += 1;
        for attribute in &mut node.attributes {
            let body = known.and_then(|known| known.bodies.iter().find(|(name, _)| *name == attribute.name));
            let body = body.map(|(_, body)| body);
            changed |= attribute.try_change(|attribute| {
                let mut changed = false;
                for graph in attribute.graphs_mut() {
                    changed |= graph.try_change(|graph| self.graph(graph, from, body))?;
                }
                Ok(changed)
            })?;
        }
        self.depth -= 1;
        Ok(changed)
    }

    fn refuse(&mut self, error: Error, node: &Node, index: usize) {
        self.count += 1;
        if self.refused.len() < KEPT {
            let function = self.function.clone();
            self.refused.push(error.at(|place| {
                place.function = function;
                place.node_index = Some(index);
                place.node = Some(node.name.clone()).filter(|name| !name.is_empty());
                place.operator.get_or_insert_with(|| node.op_type.clone());
            }));
        }
    }

    /// Converts a node from version to version of its operator. Returns what is new beside it, or `None` if it stays.
    fn node(
        &mut self,
        node: &mut Node,
        from: i64,
        known: Option<(&NodeDetails, &GraphDetails)>,
    ) -> Result<Option<Beside>> {
        let first = schema::resolve("", &node.op_type, from)?;
        let mut version = first.since_version;
        let at = |operator: &str, version: i64| {
            let operator = Some(operator.to_string());
            move |error: Error| error.at(|place| (place.operator, place.version) = (operator, Some(version)))
        };
        let mut step = Step {
            node: node.clone(),
            first: version,
            known,
            names: &mut self.names,
            read: &self.read,
            to: self.to,
            beside: Beside::default(),
            was_upsample: false,
        };
        if schema::is_experimental(&first) {
            if schema::resolve("", &node.op_type, self.to).is_ok_and(|last| last.since_version == version) {
                return Ok(None);
            }
            renew(&mut step).map_err(|why| at(&node.op_type, version)(Error::unsupported(why)))?;
        }
        let mut stays = step.node.op_type == node.op_type;
        let mut history = history(&mut self.histories, &step.node.op_type)?;
        while let Some(new) = history.iter().find(|new| new.since_version > version && new.since_version <= self.to) {
            let old = history.iter().find(|old| old.since_version == version);
            let since = new.since_version;
            let operator = step.node.op_type.clone();
            let refused = |why: String| at(&operator, version)(Error::unsupported(why));
            change(&mut step, since).map_err(|why| refused(why.replace(LATER, &new.label())))?;
            if step.node.op_type == operator {
                if new.deprecated.is_some() {
                    let gone = schema::resolve("", &operator, self.to).err();
                    return Err(refused(gone.map_or(String::new(), |error| error.to_string())));
                }
                agree(&step.node, old, new).map_err(refused)?;
            } else {
                history = self::history(&mut self.histories, &step.node.op_type)?;
            }
            stays &= step.node.op_type == node.op_type;
            version = since;
        }
        if let Some(last) = history.iter().find(|last| last.since_version == version && version > step.first) {
            let refused = at(&node.op_type, step.first);
            fits(&step, last).map_err(|why| refused(Error::unsupported(why)))?;
        }
        let Step { node: converted, beside, .. } = step;
        if stays && *node == converted {
            return Ok(None);
        }
        *node = converted;
        Ok(Some(beside))
    }
}

fn history(known: &mut HashMap<String, Arc<[Schema]>>, operator: &str) -> Result<Arc<[Schema]>> {
    if let Some(history) = known.get(operator) {
        return Ok(history.clone());
    }
    let history: Arc<[Schema]> = schema::history("", operator)?.into();
    known.insert(operator.to_string(), history.clone());
    Ok(history)
}

/// Checks that a node of one version is one of the next, with the same meaning of what it omits.
fn agree(node: &Node, old: Option<&Schema>, new: &Schema) -> std::result::Result<(), String> {
    let label = new.label();
    let formal = |name: &str| new.attributes.iter().find(|formal| formal.name == name);
    for attribute in &node.attributes {
        formal(&attribute.name).ok_or_else(|| format!("{label} has no attribute {}", quote(&attribute.name)))?;
    }
    let omitted = |name: &str| node.get(name).is_none();
    if let Some(missing) = new.attributes.iter().find(|formal| formal.required && omitted(&formal.name)) {
        return Err(format!("{label} needs attribute {}", missing.name));
    }
    let old_attributes = old.into_iter().flat_map(|old| &old.attributes);
    for old in old_attributes.filter(|old| old.default.is_some() && omitted(&old.name)) {
        if formal(&old.name).is_some_and(|new| new.default != old.default) {
            return Err(format!("attribute {} has another default in {label}", old.name));
        }
    }
    Ok(())
}

/// Checks that a version takes so many inputs and outputs, and the types that are known.
fn fits(step: &Step<'_>, last: &Schema) -> std::result::Result<(), String> {
    let Node { inputs, outputs, .. } = &step.node;
    let is_given = |name: &String| !name.is_empty();
    let type_of = |name: &String| is_given(name).then(|| step.type_of(name));
    types::check_arity(last, inputs.iter().map(is_given), outputs.iter().map(is_given))
        .and_then(|()| types::check(last, inputs.iter().map(type_of), 0))
        .map_err(|error| format!("{error} in {}", last.label()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_was_read() {
        // A new opset needs a look at what changed: `changes` has what isn't the same.
        assert_eq!(schema::newest(""), Some(NEWEST.0));
        assert_eq!([1, 8, 9, 14, 20, 27, 28].map(ir_version), [3, 3, 4, 7, 9, 13, 14]);
    }
}
