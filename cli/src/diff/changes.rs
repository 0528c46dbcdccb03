//! What differs between two graphs.

use super::matching::{Matching, value_name};
use super::side::{Defaults, Side, is_same};
use crate::expect::Compared;
use onnxref::conformance::Tolerance;
use onnxref::inspect::{GraphDetails, NodeDetails, ValueDetails};
use onnxref::quote;
use onnxref_view::picture::attribute_text;
use onnxref_view::totals::label;
use onnxref_view::type_name;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The differences of two graphs, and of the subgraphs of nodes that belong together.
#[derive(Default)]
pub(super) struct Found {
    pub(super) graphs: Vec<Graph>,
    /// The number of nodes that are the same, and of those that have another name, in all graphs.
    pub(super) same: usize,
    pub(super) renamed: usize,
    /// Versions of operators that changed, with the number of nodes.
    pub(super) versions: BTreeMap<(String, String), usize>,
    pub(super) weights: Weights,
}

/// The differences of two graphs.
#[derive(Serialize)]
pub(super) struct Graph {
    /// The subgraph; empty for the model's graph.
    pub(super) place: String,
    /// The node of B's outermost graph that it is in, and the attribute with the body there.
    #[serde(skip)]
    pub(super) outermost: Option<(usize, String)>,
    pub(super) inputs: Vec<Change>,
    pub(super) outputs: Vec<Change>,
    /// The number of nodes that are the same, and of those that have another name.
    pub(super) same: usize,
    pub(super) renamed: usize,
    pub(super) changed: Vec<Changed>,
    pub(super) added: Vec<Node>,
    pub(super) removed: Vec<Node>,
}

/// A node on one side.
#[derive(Serialize)]
pub(super) struct Node {
    #[serde(skip)]
    pub(super) at: usize,
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) operator: String,
    pub(super) function: Option<String>,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
}

/// A node that is on both sides.
#[derive(Serialize)]
pub(super) struct Changed {
    pub(super) a: Node,
    pub(super) b: Node,
    pub(super) changes: Vec<Change>,
}

/// What differs: `None` where it is missing.
#[derive(Serialize)]
pub(super) struct Change {
    pub(super) what: String,
    pub(super) a: Option<String>,
    pub(super) b: Option<String>,
}

/// Constants that nodes on both sides read in the same place.
#[derive(Default, Serialize)]
pub(super) struct Weights {
    pub(super) same: usize,
    pub(super) changed: Vec<Weight>,
}

#[derive(Serialize)]
pub(super) struct Weight {
    pub(super) a: String,
    pub(super) b: String,
    #[serde(flatten)]
    pub(super) compared: Compared,
}

impl Graph {
    pub(super) fn is_same(&self) -> bool {
        let Graph { inputs, outputs, changed, added, removed, .. } = self;
        inputs.is_empty() && outputs.is_empty() && changed.is_empty() && added.is_empty() && removed.is_empty()
    }
}

/// Two graphs to compare; of bodies also the captured values that belong together; and where the graphs are.
type Open<'a> = (&'a GraphDetails, &'a GraphDetails, Option<Vec<(usize, usize)>>, Place);

/// A text for people, and the node of the outermost graph with the attribute.
type Place = (String, Option<(usize, String)>);

impl Found {
    /// Compares two graphs. The matching is that of the outermost ones.
    pub(super) fn new(a: &GraphDetails, b: &GraphDetails) -> (Found, Matching) {
        let (mut found, mut defaults, mut seen) = (Found::default(), Defaults::default(), HashSet::new());
        let (mut first, mut open): (_, Vec<Open<'_>>) = (None, vec![(a, b, None, Place::default())]);
        while let Some((a, b, captured, place)) = open.pop() {
            let (a, b) = (Side::new(a, &mut defaults), Side::new(b, &mut defaults));
            let matching = Matching::new(&a, &b, captured.as_deref());
            let pair = Pair { a: &a, b: &b, matching: &matching, is_body: captured.is_some() };
            let inner = found.graph(&pair, place, &mut seen);
            open.extend(inner.into_iter().rev());
            first = first.or(Some(matching));
            // Places are those of one graph.
            seen.clear();
        }
        let empty = || Matching { nodes: Vec::new(), back: Vec::new(), inputs: HashMap::new(), outputs: Vec::new() };
        (found, first.unwrap_or_else(empty))
    }

    pub(super) fn is_same(&self) -> bool {
        self.graphs.iter().all(Graph::is_same) && self.versions.is_empty() && self.weights.changed.is_empty()
    }

    /// Adds the differences of two graphs. Returns the subgraphs of their nodes.
    fn graph<'a>(
        &mut self,
        pair: &Pair<'_, 'a>,
        (place, outermost): Place,
        seen: &mut HashSet<(usize, usize)>,
    ) -> Vec<Open<'a>> {
        let Pair { a, b, matching, .. } = pair;
        let mut graph = Graph {
            inputs: pair.inputs(),
            outputs: pair.outputs(),
            place,
            outermost,
            same: 0,
            renamed: 0,
            changed: Vec::new(),
            added: unmatched(b, &matching.back),
            removed: unmatched(a, &matching.nodes),
        };
        let mut inner = Vec::new();
        for (x, y) in pair.output_pairs() {
            if seen.insert((x, y)) {
                self.weights.add(pair, x, y);
            }
        }
        for (x, y) in matching.nodes.iter().enumerate().filter_map(|(x, y)| Some((x, (*y)?))) {
            let (Some(p), Some(q)) = (a.node(x), b.node(y)) else { continue };
            let changes = pair.node(x, y, p, q);
            if p.operator == q.operator && p.version != q.version {
                *self.versions.entry((operator(p), operator(q))).or_default() += 1;
            }
            if changes.is_empty() {
                graph.same += 1;
                graph.renamed += usize::from(p.name != q.name);
            } else {
                graph.changed.push(Changed { a: Node::new(a, x, p), b: Node::new(b, y, q), changes });
            }
            for (x, y) in p.inputs.iter().zip(&q.inputs).filter_map(|(x, y)| x.zip(*y)) {
                if seen.insert((x, y)) {
                    self.weights.add(pair, x, y);
                }
            }
            for (name, body) in &p.bodies {
                let Some((_, other)) = q.bodies.iter().find(|(known, _)| known == name) else { continue };
                let twins = matching.twins((a, b), &body.captured, &other.captured);
                for [_, (x, y)] in &twins {
                    if seen.insert((*x, *y)) {
                        self.weights.add(pair, *x, *y);
                    }
                }
                let captured = twins.into_iter().map(|[inside, _]| inside).collect();
                let around = if graph.place.is_empty() { String::new() } else { format!(", in {}", graph.place) };
                let text = format!("the {name} of {}{around}", title(&q.name, q.index, &operator(q)));
                let outermost = graph.outermost.clone().unwrap_or_else(|| (y, name.clone()));
                inner.push((body, other, Some(captured), (text, Some(outermost))));
            }
        }
        self.same += graph.same;
        self.renamed += graph.renamed;
        if !graph.place.is_empty() {
            // The place says it.
            let changed = graph.changed.iter_mut().flat_map(|changed| [&mut changed.a, &mut changed.b]);
            changed.chain(&mut graph.added).chain(&mut graph.removed).for_each(|node| node.function = None);
        }
        if graph.place.is_empty() || !graph.is_same() {
            self.graphs.push(graph);
        }
        inner
    }
}

impl Weights {
    fn add(&mut self, pair: &Pair<'_, '_>, x: usize, y: usize) {
        let (Some(p), Some(q)) = (pair.a.fixed(x), pair.b.fixed(y)) else { return };
        let Some((p, q)) = p.value().zip(q.value()) else { return };
        let compared = Compared::new(q, p, Tolerance::EXACT);
        if compared.exact {
            self.same += 1;
        } else {
            self.changed.push(Weight { a: named(pair.a, x), b: named(pair.b, y), compared });
        }
    }
}

/// Two graphs.
struct Pair<'p, 'a> {
    a: &'p Side<'a>,
    b: &'p Side<'a>,
    matching: &'p Matching,
    is_body: bool,
}

impl Pair<'_, '_> {
    fn same(&self, x: usize, y: usize) -> bool {
        self.matching.same_value(self.a, self.b, x, y)
    }

    fn inputs(&self) -> Vec<Change> {
        let (left, right) = (self.a.inputs(), self.b.inputs());
        let pairs = left.iter().filter_map(|x| Some((*x, *self.matching.inputs.get(x)?))).collect();
        self.ends("input", &left, &right, pairs)
    }

    fn outputs(&self) -> Vec<Change> {
        let (left, right) = (&self.a.graph.outputs, &self.b.graph.outputs);
        let pairs = self.output_pairs();
        let mut changes = self.ends("output", left, right, pairs.clone());
        for (x, y) in pairs.into_iter().filter(|(x, y)| !self.same(*x, *y)) {
            // What a node in the place of another gives is the same output; weights are compared by themselves.
            if self.a.fixed(x).is_none() || self.b.fixed(y).is_none() {
                let what = format!("output {} comes from", quote(&named(self.b, y)));
                changes.push(Change { what, a: Some(source(self.a, x)), b: Some(source(self.b, y)) });
            }
        }
        changes
    }

    /// The outputs that belong together.
    fn output_pairs(&self) -> Vec<(usize, usize)> {
        let (left, right) = (&self.a.graph.outputs, &self.b.graph.outputs);
        self.matching.outputs.iter().filter_map(|(x, y)| Some((*left.get(*x)?, *right.get(*y)?))).collect()
    }

    fn ends(&self, what: &str, left: &[usize], right: &[usize], pairs: Vec<(usize, usize)>) -> Vec<Change> {
        let mut changes = Vec::new();
        for (x, y) in &pairs {
            let (p, q) = (named(self.a, *x), named(self.b, *y));
            if p != q && !self.is_body {
                let (what, a, b) = (format!("name of {what}"), Some(quote(&p)), Some(quote(&q)));
                changes.push(Change { what, a, b });
            }
            let (a, b) = (typed(self.a, *x), typed(self.b, *y));
            if a != b {
                changes.push(Change { what: format!("{what} {}", quote(&q)), a: Some(a), b: Some(b) });
            }
        }
        changes.extend(self.order(what, right, &pairs));
        let matched: HashSet<usize> = pairs.iter().map(|(x, _)| *x).collect();
        for x in left.iter().filter(|x| !matched.contains(x)) {
            let what = format!("{what} {}", quote(&named(self.a, *x)));
            changes.push(Change { what, a: Some(typed(self.a, *x)), b: None });
        }
        let matched: HashSet<usize> = pairs.iter().map(|(_, y)| *y).collect();
        for y in right.iter().filter(|y| !matched.contains(y)) {
            let what = format!("{what} {}", quote(&named(self.b, *y)));
            changes.push(Change { what, a: None, b: Some(typed(self.b, *y)) });
        }
        changes
    }

    /// Inputs or outputs that are in another order: those of B that aren't in the same place among the pairs.
    fn order(&self, what: &str, right: &[usize], pairs: &[(usize, usize)]) -> Option<Change> {
        let places: HashMap<usize, usize> = right.iter().enumerate().rev().map(|(place, y)| (*y, place)).collect();
        let mut sorted: Vec<usize> = pairs.iter().map(|(_, y)| *y).collect();
        sorted.sort_by_key(|y| places.get(y));
        let moved = || pairs.iter().zip(&sorted).filter(|((_, y), other)| y != *other);
        let list = |names: Vec<String>| (!names.is_empty()).then(|| names.join(", "));
        let a = list(moved().map(|((x, _), _)| quote(&named(self.a, *x))).collect())?;
        let b = list(moved().map(|(_, y)| quote(&named(self.b, *y))).collect());
        Some(Change { what: format!("order of {what}s"), a: Some(a), b })
    }

    /// What differs between two nodes.
    fn node(&self, x: usize, y: usize, p: &NodeDetails, q: &NodeDetails) -> Vec<Change> {
        let mut changes = Vec::new();
        if (&p.domain, &p.operator) != (&q.domain, &q.operator) {
            changes.push(Change { what: "operator".to_string(), a: Some(operator(p)), b: Some(operator(q)) });
        }
        let given = |side: &Side<'_>, k: usize| -> BTreeMap<String, onnxref::schema::Attribute> {
            let given = side.attributes.get(k).into_iter().flatten();
            given.map(|(name, value)| (name.to_string(), (*value).clone())).collect()
        };
        let (given_a, given_b) = (given(self.a, x), given(self.b, y));
        let names: std::collections::BTreeSet<&String> = given_a.keys().chain(given_b.keys()).collect();
        for name in names {
            let (a, b) = (given_a.get(name), given_b.get(name));
            if a.zip(b).is_none_or(|(a, b)| !is_same(a, b)) {
                let (a, b) = (a.map(attribute_text), b.map(attribute_text));
                changes.push(Change { what: onnxref_view::plain(name), a, b });
            }
        }
        for k in 0..p.inputs.len().max(q.inputs.len()) {
            let at = |inputs: &[Option<usize>]| inputs.get(k).copied().flatten();
            let same = match (at(&p.inputs), at(&q.inputs)) {
                (None, None) => true,
                // Weights are compared by themselves.
                (Some(x), Some(y)) => (self.a.fixed(x).is_some() && self.b.fixed(y).is_some()) || self.same(x, y),
                _ => false,
            };
            if !same {
                let text = |side: &Side<'_>, at: Option<usize>| at.map(|at| source(side, at));
                let (a, b) = (text(self.a, at(&p.inputs)), text(self.b, at(&q.inputs)));
                changes.push(Change { what: format!("input {k}"), a, b });
            }
        }
        changes.extend(self.types(p, q));
        changes
    }

    /// Types of outputs, if those of the inputs are the same.
    fn types(&self, p: &NodeDetails, q: &NodeDetails) -> Vec<Change> {
        let texts = |side: &Side<'_>, places: &[Option<usize>]| -> Vec<String> {
            places.iter().map(|at| at.map_or(String::new(), |at| typed(side, at))).collect()
        };
        if texts(self.a, &p.inputs) != texts(self.b, &q.inputs) || p.outputs.len() != q.outputs.len() {
            return Vec::new();
        }
        let pairs = texts(self.a, &p.outputs).into_iter().zip(texts(self.b, &q.outputs)).enumerate();
        let change = |(k, (a, b))| Change { what: format!("type of output {k}"), a: Some(a), b: Some(b) };
        pairs.filter(|(_, (a, b))| a != b).map(change).collect()
    }
}

fn unmatched(side: &Side<'_>, partners: &[Option<usize>]) -> Vec<Node> {
    let open = |(k, node)| {
        let works = side.works.get(k) == Some(&true) && partners.get(k) == Some(&None);
        works.then(|| Node::new(side, k, node))
    };
    side.graph.nodes.iter().enumerate().filter_map(open).collect()
}

impl Node {
    fn new(side: &Side<'_>, at: usize, node: &NodeDetails) -> Node {
        let names =
            |places: &[Option<usize>]| places.iter().map(|at| at.map_or(String::new(), |at| named(side, at))).collect();
        Node {
            at,
            index: node.index,
            name: node.name.clone(),
            operator: operator(node),
            function: node.function.clone(),
            inputs: names(&node.inputs),
            outputs: names(&node.outputs),
        }
    }

    /// `node "add" (Add-14)`.
    pub(super) fn title(&self) -> String {
        let function = self.function.as_ref().map(|function| format!(" in {function}")).unwrap_or_default();
        title(&self.name, self.index, &self.operator) + &function
    }
}

fn title(name: &str, index: usize, operator: &str) -> String {
    let name = if name.is_empty() { format!("#{index}") } else { quote(name) };
    format!("node {name} ({operator})")
}

fn operator(node: &NodeDetails) -> String {
    label(&node.domain, &node.operator, node.version)
}

fn named(side: &Side<'_>, at: usize) -> String {
    value_name(side, at).to_string()
}

/// Where a value comes from: `"x"`, with the operator that computes it or its place among the inputs.
fn source(side: &Side<'_>, at: usize) -> String {
    let name = quote(&named(side, at));
    if side.fixed(at).is_some() {
        return format!("{name} (constant)");
    }
    if let Some(place) = side.graph.inputs.iter().position(|input| *input == at) {
        return format!("{name} (input {place})");
    }
    let node = side.producer(at).and_then(|(k, _)| side.node(k));
    node.map_or(name.clone(), |node| format!("{name} ({})", operator(node)))
}

/// `float32[1, N]`
fn typed(side: &Side<'_>, at: usize) -> String {
    let text = |value: &ValueDetails| {
        let name = value.value_type.as_ref().map_or("?".to_string(), type_name);
        let dims = value.shape.as_ref().map(|dims| dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        name + &dims.map(|dims| format!("[{dims}]")).unwrap_or_default()
    };
    side.graph.values.get(at).map(text).unwrap_or_default()
}
