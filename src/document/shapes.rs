//! Declares the types and shapes that follow.

use super::extract::domain;
use super::{Content, Document, Graph, Node, Part, Size, ValueInfo};
use crate::graph::{GraphDetails, Scope, ValueDetails};
use crate::model::Inspection;
use std::collections::HashMap;

/// The first version of the format whose functions declare types.
const FUNCTION_TYPES: i64 = 10;

/// How deep the bodies and calls nest whose values are declared.
const NESTING: usize = 32;

/// The nodes around a graph, outermost first: the first value that each gives, and the attribute of the body; `None` for
/// a call.
type Path = Vec<(String, Option<String>)>;

/// Types by the names of values; `None` if calls of a function don't agree.
type Types = HashMap<String, Option<ValueInfo>>;

impl Document {
    /// Declares types and shapes that follow for what nodes compute, in bodies and functions too, and those of outputs
    /// for which no shape is declared. In a function it declares what holds in all calls. `found` is the inspection of this
    /// document.
    ///
    /// ```
    /// use onnxref::document::{Document, Graph, Node, Size, ValueInfo};
    /// use onnxref::DType;
    ///
    /// let graph = Graph::new("g")
    ///     .input(ValueInfo::tensor("x", DType::Float, ["n"]))
    ///     .node(Node::new("Relu", ["x"], ["a"]))
    ///     .node(Node::new("Neg", ["a"], ["y"]))
    ///     .output(ValueInfo::untyped("y"));
    /// let mut document = Document::new(graph, 22);
    /// let found = document.inspect(&Default::default())?;
    /// document.declare_shapes(&found);
    /// assert_eq!(document.graph.value_info[0].dims().unwrap()[0].size, Size::from("n"));
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn declare_shapes(&mut self, found: &Inspection) {
        let mut graphs = known(&self.content, &found.graph);
        let with_functions = self.ir_version >= Some(FUNCTION_TYPES);
        self.content.change_if(|content| {
            let place = &mut (None, Path::new());
            let mut changed = content.graph.change_if(|graph| graph.declare(place, &mut graphs));
            for (index, function) in content.functions.iter_mut().enumerate() {
                let place = &mut (Some(index), Path::new());
                changed |= function.change_if(|function| {
                    let types = graphs.remove(place).unwrap_or_default();
                    let inside = bodies(&mut function.nodes, place, &mut graphs);
                    (with_functions && declare(&mut function.value_info, &function.nodes, types)) | inside
                });
            }
            changed
        });
    }
}

/// A graph: that of the model or of a function by its place, and the nodes around it there.
type Place = (Option<usize>, Path);

impl Graph {
    /// Returns whether it declares anything.
    fn declare(&mut self, place: &mut Place, graphs: &mut HashMap<Place, Types>) -> bool {
        let mut types = graphs.remove(place).unwrap_or_default();
        let mut changed = bodies(&mut self.nodes, place, graphs);
        for output in &mut self.outputs {
            if let Some(Some(known)) = types.remove(&output.name)
                && output.dims().is_none()
                && output.value_type != known.value_type
            {
                output.value_type = known.value_type;
                changed = true;
            }
        }
        declare(&mut self.value_info, &self.nodes, types) | changed
    }
}

fn bodies(nodes: &mut [Part<Node>], place: &mut Place, graphs: &mut HashMap<Place, Types>) -> bool {
    let mut changed = false;
    for (index, node) in nodes.iter_mut().enumerate().filter(|(_, node)| node.bodies().next().is_some()) {
        let first = first_output(index, node);
        changed |= node.change_if(|node| {
            let mut changed = false;
            for attribute in &mut node.attributes {
                place.1.push((first.clone(), Some(attribute.name.clone())));
                changed |= attribute.change_if(|attribute| {
                    let mut changed = false;
                    for graph in attribute.graphs_mut() {
                        changed |= graph.change_if(|graph| graph.declare(place, graphs));
                    }
                    changed
                });
                place.1.pop();
            }
            changed
        });
    }
    changed
}

/// Declares what nodes compute. Returns whether that changes the list.
fn declare(list: &mut Vec<Part<ValueInfo>>, nodes: &[Part<Node>], mut types: Types) -> bool {
    let mut changed = false;
    for info in list.iter_mut() {
        if let Some(Some(known)) = types.remove(&info.name) {
            changed |= info.change_if(|info| {
                let new = info.value_type != known.value_type;
                info.value_type = known.value_type;
                new
            });
        }
    }
    let before = list.len();
    let computed = nodes.iter().flat_map(|node| &node.outputs);
    list.extend(computed.filter_map(|name| types.remove(name)).flatten().map(Part::new));
    changed || list.len() > before
}

/// How scopes name a node.
fn first_output(index: usize, node: &Node) -> String {
    node.outputs.iter().find(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("#{index}"))
}

/// The types of all values, by the graph that they are in.
fn known(content: &Content, details: &GraphDetails) -> HashMap<Place, Types> {
    let mut scopes: HashMap<Path, Vec<&ValueDetails>> = HashMap::new();
    let mut open = vec![details];
    while let Some(graph) = open.pop() {
        open.extend(graph.nodes.iter().flat_map(|node| &node.bodies).map(|(_, body)| body));
        for value in &graph.values {
            let around: Vec<&Scope> =
                std::iter::successors(value.scope.as_ref(), |scope| scope.outer()).take(NESTING + 1).collect();
            if around.len() <= NESTING {
                let step = |scope: &&Scope| (scope.node().to_string(), scope.body().map(str::to_string));
                scopes.entry(around.iter().rev().map(step).collect()).or_default().push(value);
            }
        }
    }
    let mut functions: HashMap<(&str, &str, &str), usize> = HashMap::new();
    for (index, function) in content.functions.iter().enumerate() {
        functions.insert((domain(&function.domain), &function.name, &function.overload), index);
    }
    let mut graphs: HashMap<Place, Types> = HashMap::new();
    // Each call of a function is looked at: the path in the model, and the place in the file.
    let mut open: Vec<(Path, Place, &[Part<Node>])> = vec![(Path::new(), (None, Path::new()), &content.graph.nodes)];
    while let Some((path, place, nodes)) = open.pop() {
        let types = graphs.entry(place.clone()).or_default();
        for value in scopes.remove(&path).unwrap_or_default() {
            let Some(info) = info(value) else { continue };
            types.entry(value.name.clone()).and_modify(|known| agree(known, &info)).or_insert(Some(info));
        }
        if path.len() == NESTING {
            continue;
        }
        for (index, node) in nodes.iter().enumerate() {
            let first = first_output(index, node);
            for attribute in &node.attributes {
                for body in attribute.graphs() {
                    let step = (first.clone(), Some(attribute.name.clone()));
                    let inside = |path: &Path| path.iter().cloned().chain([step.clone()]).collect();
                    open.push((inside(&path), (place.0, inside(&place.1)), &body.nodes));
                }
            }
            let called = functions.get(&(domain(&node.domain), &*node.op_type, &*node.overload));
            if let Some((called, function)) = called.and_then(|at| Some((*at, content.functions.get(*at)?))) {
                let path = path.iter().cloned().chain([(first, None)]).collect();
                open.push((path, (Some(called), Path::new()), &function.nodes));
            }
        }
    }
    graphs
}

fn info(value: &ValueDetails) -> Option<ValueInfo> {
    let dims: Option<Vec<Size>> = value.shape.as_ref().map(|dims| dims.iter().map(Size::from).collect());
    Some(ValueInfo::new(&value.name, value.value_type.as_ref()?, dims.as_deref()))
}

/// What holds of a value in another call too.
fn agree(known: &mut Option<ValueInfo>, other: &ValueInfo) {
    let Some(info) = known else { return };
    if info == other {
        return;
    }
    // Sizes on which the calls don't agree are open. If the types differ, nothing is declared.
    let sizes: Vec<Size> = other.dims().into_iter().flatten().map(|dim| dim.size.clone()).collect();
    let (rank, mut other) = (info.dims().map(<[_]>::len), other.clone());
    if rank != other.dims().map(<[_]>::len) {
        *known = None;
        return;
    }
    let differ = info.dims_mut().into_iter().flatten().zip(sizes).filter(|(dim, size)| dim.size != *size);
    for (dim, _) in differ {
        dim.size = Size::Unknown;
    }
    for (dim, own) in other.dims_mut().into_iter().flatten().zip(info.dims().unwrap_or_default()) {
        dim.size.clone_from(&own.size);
    }
    if *info != other {
        *known = None;
    }
}
