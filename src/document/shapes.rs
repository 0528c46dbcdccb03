//! Declares the types and shapes that follow.

use super::dims::replace_in;
use super::extract::domain;
use super::{Content, Dimension, Document, Graph, Node, Part, Size, ValueInfo};
use crate::error::Result;
use crate::graph::{GraphDetails, Scope, ValueDetails};
use crate::model::Inspection;
use std::borrow::Cow;
use std::collections::HashMap;

/// The first version of the format whose functions declare types.
const FUNCTION_TYPES: i64 = 10;

/// How deep the bodies and calls nest whose values are declared.
const NESTING: usize = 32;

/// Types by the names of values; `None` if calls of a function don't agree.
type Types = HashMap<String, Option<ValueInfo>>;

/// A graph in the model, by its number: that of the model is [`GRAPH`], then come functions, then bodies.
type Place = usize;

const GRAPH: Place = 0;

/// The types that are known, by the graph that they are in.
struct Graphs {
    types: Vec<Types>,
    /// Bodies, by the graph around them, the first value that their node gives, and their attribute.
    bodies: HashMap<(Place, String, String), Place>,
}

impl Document {
    /// Declares types and shapes that follow for what nodes compute, in bodies and functions too, and those of outputs
    /// for which no shape is declared. In a function it declares what holds in all calls. `found` is the inspection of this
    /// document.
    ///
    /// # Errors
    /// The document was changed after its inspection.
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
    /// document.declare_shapes(&found)?;
    /// assert_eq!(document.graph.value_info[0].dims().unwrap()[0].size, Size::from("n"));
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn declare_shapes(&mut self, found: &Inspection) -> Result<()> {
        self.check_found(found)?;
        let mut graphs = Graphs::new(&self.content, &found.graph);
        let with_functions = self.ir_version >= Some(FUNCTION_TYPES);
        // Not a change of its state: the inspection knows what is declared.
        self.content.change_if(|content| {
            let mut changed = content.graph.change_if(|graph| graph.declare(GRAPH, &mut graphs, What::All));
            for (function, place) in content.functions.iter_mut().zip(GRAPH + 1..) {
                changed |= function.change_if(|function| {
                    let types = graphs.take(place);
                    let inside = bodies(&mut function.nodes, place, &mut graphs, What::All);
                    (with_functions && declare(&mut function.value_info, &function.nodes, types)) | inside
                });
            }
            changed
        });
        Ok(())
    }

    /// As [`Document::declare_shapes`], for outputs of the graph and its bodies only, and for sizes that are unknown too.
    pub(super) fn declare_outputs(&mut self, found: &Inspection) {
        let mut graphs = Graphs::new(&self.content, &found.graph);
        let declare = |graph: &mut Graph| graph.declare(GRAPH, &mut graphs, What::Outputs);
        self.change_if(|content| content.graph.change_if(declare));
    }

    /// Replaces a size in bodies and functions: by the new one where that follows, else it is unknown. `found` is the inspection
    /// of this document, with unknown sizes there.
    pub(super) fn replace_inside(&mut self, old: &Size, new: &Size, found: &Inspection) {
        let mut graphs = Graphs::new(&self.content, &found.graph);
        self.change_if(|content| {
            let what = What::Size(old, new);
            let mut changed = content.graph.change_if(|graph| bodies(&mut graph.nodes, GRAPH, &mut graphs, what));
            for (function, place) in content.functions.iter_mut().zip(GRAPH + 1..) {
                let types = graphs.take(place);
                let new = |name: &str, axis| following(&types, name, axis, new);
                changed |= function.change_if(|function| replace_in(&mut function.value_info, old, &new));
            }
            changed
        });
    }
}

/// A size, if it follows for a value.
fn following(types: &Types, name: &str, axis: usize, size: &Size) -> Size {
    let dims = types.get(name).and_then(Option::as_ref).and_then(ValueInfo::dims);
    let dim = dims.and_then(|dims| dims.get(axis)).filter(|dim| dim.size == *size);
    dim.map_or(Size::Unknown, |dim| dim.size.clone())
}

/// What is declared.
#[derive(Clone, Copy, PartialEq)]
enum What<'a> {
    All,
    Outputs,
    /// In the place of a size: this one where it follows, else an unknown one.
    Size(&'a Size, &'a Size),
}

impl Graph {
    /// Returns whether it declares anything.
    fn declare(&mut self, place: Place, graphs: &mut Graphs, what: What<'_>) -> bool {
        let mut types = graphs.take(place);
        let mut changed = bodies(&mut self.nodes, place, graphs, what);
        if let What::Size(old, new) = what {
            return self.replace_size(old, &|name, axis| following(&types, name, axis, new)) | changed;
        }
        for output in &mut self.outputs {
            let is_open = |dims: &[Part<Dimension>]| dims.iter().any(|dim| dim.size == Size::Unknown);
            let open = output.dims().map(|dims| what == What::Outputs && is_open(dims));
            if let Some(Some(known)) = types.remove(&output.name)
                && open.is_none_or(|open| open && known.dims().is_some())
                && output.value_type != known.value_type
            {
                output.value_type = known.value_type;
                changed = true;
            }
        }
        (what == What::All && declare(&mut self.value_info, &self.nodes, types)) | changed
    }
}

fn bodies(nodes: &mut [Part<Node>], place: Place, graphs: &mut Graphs, what: What<'_>) -> bool {
    let mut changed = false;
    for (index, node) in nodes.iter_mut().enumerate().filter(|(_, node)| node.bodies().next().is_some()) {
        let first = first_output(index, node).into_owned();
        changed |= node.change_if(|node| {
            let mut changed = false;
            for attribute in &mut node.attributes {
                let body = graphs.bodies.get(&(place, first.clone(), attribute.name.clone())).copied();
                let Some(body) = body else { continue };
                changed |= attribute.change_if(|attribute| {
                    let mut changed = false;
                    for graph in attribute.graphs_mut() {
                        changed |= graph.change_if(|graph| graph.declare(body, graphs, what));
                    }
                    changed
                });
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
fn first_output(index: usize, node: &Node) -> Cow<'_, str> {
    let first = node.outputs.iter().find(|name| !name.is_empty());
    first.map_or_else(|| format!("#{index}").into(), |name| name.as_str().into())
}

/// Scopes by their number: the model is the first.
#[derive(Default)]
struct Scopes<'a> {
    /// By the scope around them, the first value that their node gives, and the attribute of a body.
    inside: HashMap<(usize, &'a str, Option<&'a str>), usize>,
    values: Vec<Vec<&'a ValueDetails>>,
}

impl<'a> Scopes<'a> {
    fn new(details: &'a GraphDetails) -> Scopes<'a> {
        let mut scopes = Scopes { values: vec![Vec::new()], ..Scopes::default() };
        let mut open = vec![details];
        while let Some(graph) = open.pop() {
            open.extend(graph.nodes.iter().flat_map(|node| &node.bodies).map(|(_, body)| body));
            for value in &graph.values {
                let depth = value.scope.as_ref().map_or(0, Scope::depth);
                if depth <= NESTING {
                    let scope = scopes.number(value.scope.as_ref());
                    scopes.values.get_mut(scope).into_iter().for_each(|values| values.push(value));
                }
            }
        }
        scopes
    }

    fn number(&mut self, scope: Option<&'a Scope>) -> usize {
        let around: Vec<&Scope> = std::iter::successors(scope, |scope| scope.outer()).collect();
        around.into_iter().rev().fold(0, |outer, scope| {
            let values = &mut self.values;
            *self.inside.entry((outer, scope.node(), scope.body())).or_insert_with(|| {
                values.push(Vec::new());
                values.len() - 1
            })
        })
    }
}

impl Graphs {
    /// Looks at each call of a function whose values are known.
    fn new(content: &Content, details: &GraphDetails) -> Graphs {
        let scopes = Scopes::new(details);
        let mut functions: HashMap<(&str, &str, &str), usize> = HashMap::new();
        for (index, function) in content.functions.iter().enumerate() {
            functions.insert((domain(&function.domain), &function.name, &function.overload), index);
        }
        let types = vec![Types::default(); 1 + content.functions.len()];
        let mut graphs = Graphs { types, bodies: HashMap::new() };
        let mut seen = vec![false; scopes.values.len()];
        let mut open: Vec<(usize, Place, &[Part<Node>])> = vec![(0, GRAPH, &content.graph.nodes)];
        while let Some((scope, place, nodes)) = open.pop() {
            // Nodes of an invalid model may have the same outputs, and so their bodies and calls the same scope.
            match seen.get_mut(scope) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            for value in scopes.values.get(scope).into_iter().flatten() {
                graphs.add(place, value);
            }
            for (index, node) in nodes.iter().enumerate() {
                let called = functions.get(&(domain(&node.domain), &*node.op_type, &*node.overload));
                if called.is_none() && node.bodies().next().is_none() {
                    continue;
                }
                let first = first_output(index, node);
                for attribute in &node.attributes {
                    let inside = scopes.inside.get(&(scope, &*first, Some(&*attribute.name)));
                    if let (Some(inside), Some(body)) = (inside, attribute.graphs().first()) {
                        let body_place = graphs.body(place, &first, &attribute.name);
                        open.push((*inside, body_place, &body.nodes));
                    }
                }
                if let Some((called, function)) = called.and_then(|at| Some((*at, content.functions.get(*at)?)))
                    && let Some(inside) = scopes.inside.get(&(scope, &*first, None))
                {
                    open.push((*inside, GRAPH + 1 + called, &function.nodes));
                }
            }
        }
        graphs
    }

    fn add(&mut self, place: Place, value: &ValueDetails) {
        if let (Some(info), Some(types)) = (info(value), self.types.get_mut(place)) {
            types.entry(value.name.clone()).and_modify(|known| agree(known, &info)).or_insert(Some(info));
        }
    }

    /// The place of a body.
    fn body(&mut self, place: Place, first: &str, attribute: &str) -> Place {
        let types = &mut self.types;
        *self.bodies.entry((place, first.to_string(), attribute.to_string())).or_insert_with(|| {
            types.push(Types::default());
            types.len() - 1
        })
    }

    fn take(&mut self, place: Place) -> Types {
        self.types.get_mut(place).map(std::mem::take).unwrap_or_default()
    }
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
