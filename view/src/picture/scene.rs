//! The boxes and edges of a picture.

use super::Mark;
use super::family::Family;
use super::fold::{self, Folding};
use super::text::{attribute, constant, short, typed};
use super::{describe, text};
use crate::grouped;
use onnxref::inspect::{Fate, GraphDetails, NodeDetails, Origin, ValueDetails};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of nodes that are drawn one by one. More are folded into at most `MAX_GROUPS` boxes.
const MAX_NODES: usize = 300;
const MAX_GROUPS: usize = 110;

/// Maximum number of inputs and outputs that are drawn one by one. More are drawn as one box for each reader.
const MAX_ENDS: usize = 40;

/// Maximum number of constants and attributes that are listed in a box.
const MAX_LINES: usize = 3;

/// Maximum number of characters of a line.
const MAX_LINE: usize = 30;

/// Boxes, and edges between them.
#[derive(Debug, Default)]
pub(super) struct Scene {
    pub(super) boxes: Vec<Drawn>,
    pub(super) edges: Vec<Edge>,
    /// How the nodes are folded; empty if they aren't.
    pub(super) caption: String,
}

/// A box.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) look: Look,
    /// If pictures of two graphs are compared.
    pub(super) mark: Option<Mark>,
    /// Dashed: it is no work of a run.
    pub(super) quiet: bool,
    /// It stands for several nodes.
    pub(super) several: bool,
    pub(super) heading: String,
    /// The version of the operator.
    pub(super) version: String,
    pub(super) lines: Vec<String>,
    /// The full text, which appears when the mouse is over it.
    pub(super) title: String,
    /// The shape of what leaves it, if that is one value.
    pub(super) leaving: String,
    pub(super) bodies: Vec<(String, Scene)>,
}

/// What a box stands for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Look {
    #[default]
    Input,
    Output,
    /// A value of the graph around a subgraph.
    Captured,
    Missing,
    Node(Family),
}

/// Values that flow between two boxes.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: String,
    pub(super) title: String,
}

impl Scene {
    /// The picture of a graph.
    pub(super) fn new(graph: &GraphDetails) -> Scene {
        let nested = size(graph, 0) <= MAX_NODES;
        Stage::new(graph).scene(nested)
    }

    /// The picture of a graph whose nodes are marked. A box of several has a mark if one of them has.
    pub(super) fn marked(graph: &GraphDetails, marks: &[Mark]) -> Scene {
        let stage = Stage::new(graph);
        let mut of: HashMap<usize, Mark> = HashMap::new();
        // Hidden nodes leave no gap.
        let mut shown = 0..;
        for (place, mark) in stage.of.iter().zip(marks) {
            let Some(place) = place else { continue };
            let at = if stage.folding.is_some() { *place } else { shown.next().unwrap_or(0) };
            let several = of.get(&at).is_some_and(|known| known != mark);
            of.insert(at, if several { Mark::Changed } else { *mark });
        }
        let mut scene = stage.scene(false);
        scene.boxes.iter_mut().enumerate().for_each(|(k, drawn)| drawn.mark = of.get(&k).copied());
        scene
    }
}

/// The number of nodes, those of subgraphs included.
fn size(graph: &GraphDetails, depth: usize) -> usize {
    let bodies = graph.nodes.iter().flat_map(|node| &node.bodies);
    let most = if depth > 4 { MAX_NODES } else { 0 };
    bodies.fold(graph.nodes.len().max(most), |sum, (_, body)| sum.saturating_add(size(body, depth + 1)))
}

/// A scene under construction.
struct Stage<'a> {
    graph: &'a GraphDetails,
    folding: Option<Folding>,
    /// The box of each node.
    of: Vec<Option<usize>>,
    scene: Scene,
    edges: BTreeMap<(usize, usize), Vec<usize>>,
    /// The box that each value comes from, once it has one.
    sources: HashMap<usize, usize>,
    /// Inputs without boxes yet, with the boxes that read them.
    waiting: BTreeMap<usize, Vec<usize>>,
}

impl<'a> Stage<'a> {
    fn new(graph: &'a GraphDetails) -> Stage<'a> {
        let leaving: std::collections::HashSet<usize> = graph.outputs.iter().copied().collect();
        let is_shown = |node: &NodeDetails| {
            let is_constant = node.inputs.is_empty() && node.bodies.is_empty() && node.operator == "Constant";
            !is_constant || node.outputs.iter().flatten().any(|at| leaving.contains(at))
        };
        let shown: Vec<bool> = graph.nodes.iter().map(is_shown).collect();
        let count = shown.iter().filter(|shown| **shown).count();
        let folding = (count > MAX_NODES).then(|| {
            let works = |(shown, node): (&bool, &NodeDetails)| *shown && node.fate != Fate::Computed;
            let shown: Vec<bool> = shown.iter().zip(&graph.nodes).map(works).collect();
            fold::fold(graph, &shown, MAX_GROUPS)
        });
        let mut boxes = 0..;
        let of = match &folding {
            Some(folding) => folding.of.clone(),
            None => shown.iter().map(|shown| boxes.next().filter(|_| *shown)).collect(),
        };
        let (scene, edges, sources, waiting) = Default::default();
        Stage { graph, folding, of, scene, edges, sources, waiting }
    }

    fn scene(mut self, nested: bool) -> Scene {
        match &self.folding {
            Some(folding) => self.scene.boxes = self.groups(folding),
            None => {
                let nodes: Vec<&NodeDetails> =
                    self.graph.nodes.iter().zip(&self.of).filter_map(|(n, of)| of.map(|_| n)).collect();
                // Hidden nodes leave no gap.
                let mut boxes = 0..;
                for of in self.of.iter_mut().flatten() {
                    *of = boxes.next().unwrap_or(0);
                }
                self.scene.boxes = nodes.into_iter().map(|node| self.node(node, nested)).collect();
            }
        }
        self.connect();
        self.inputs();
        self.outputs();
        self.finish()
    }

    /// A box for each group.
    fn groups(&self, folding: &Folding) -> Vec<Drawn> {
        let mut members: Vec<Vec<&NodeDetails>> = vec![Vec::new(); folding.names.len()];
        for (node, group) in self.graph.nodes.iter().zip(&folding.of) {
            group.and_then(|group| members.get_mut(group)).into_iter().for_each(|members| members.push(node));
        }
        let drawn = |(members, name): (&Vec<&NodeDetails>, &String)| match members.as_slice() {
            [only] => self.node(only, false),
            _ => group(name, members),
        };
        members.iter().zip(&folding.names).map(drawn).collect()
    }

    fn value(&self, at: usize) -> Option<&'a ValueDetails> {
        self.graph.values.get(at)
    }

    /// The box of the node that a value comes from.
    fn producer(&self, at: usize) -> Option<usize> {
        let Origin::Node(node) = self.value(at)?.origin else { return None };
        self.of.get(node).copied().flatten()
    }

    fn node(&self, node: &NodeDetails, nested: bool) -> Drawn {
        let family = Family::of(&node.domain, &node.operator);
        let mut lines = Vec::new();
        if !node.name.is_empty() {
            lines.push(short(&node.name, MAX_LINE));
        }
        let given = node.attributes.iter().map(|(name, value)| format!("{} = {}", short(name, 16), attribute(value)));
        push(&mut lines, given.collect(), "attributes");
        let folded = node.inputs.iter().flatten().filter(|at| !self.has_box(**at)).filter_map(|at| self.value(*at));
        push(&mut lines, folded.map(constant_line).collect(), "constants");
        let mut bodies = Vec::new();
        for (name, body) in &node.bodies {
            let count = body.nodes.len();
            if nested && count <= MAX_NODES {
                bodies.push((short(name, MAX_LINE), Stage::new(body).scene(nested)));
            } else {
                lines.push(format!("{}: {}", short(name, 16), nodes(count)));
            }
        }
        let mut leaving = node.outputs.iter().flatten().filter_map(|at| self.value(*at)?.shape.as_deref());
        let only = leaving.next().filter(|_| node.outputs.len() == 1);
        Drawn {
            several: false,
            mark: None,
            look: if node.fate == Fate::Missing { Look::Missing } else { Look::Node(family) },
            quiet: matches!(node.fate, Fate::Computed | Fate::Forwarded | Fate::Unread),
            heading: short(&crate::totals::label(&node.domain, &node.operator, None), MAX_LINE),
            version: node.version.map(|version| format!("-{version}")).unwrap_or_default(),
            lines,
            title: describe::node(self.graph, node),
            leaving: only.map(text::shape).unwrap_or_default(),
            bodies,
        }
    }

    /// Whether a value comes from a box: it is no constant that readers list.
    fn has_box(&self, at: usize) -> bool {
        self.value(at).is_some_and(|value| value.origin == Origin::Input) || self.producer(at).is_some()
    }

    /// Edges from the boxes of nodes. Readers of inputs are noted.
    fn connect(&mut self) {
        for (node, to) in self.graph.nodes.iter().zip(self.of.clone()) {
            let Some(to) = to else { continue };
            let captured = node.bodies.iter().flat_map(|(_, body)| body.captured.iter().map(|(_, outer)| outer));
            for at in node.inputs.iter().flatten().chain(captured) {
                // Constants that are computed at load are no structure.
                if self.folding.is_some() && self.value(*at).is_some_and(|value| value.constant.is_some()) {
                    continue;
                }
                match self.producer(*at) {
                    Some(from) if from != to => self.edges.entry((from, to)).or_default().push(*at),
                    Some(_) => {}
                    None => self.waiting.entry(*at).or_default().push(to),
                }
            }
        }
    }

    /// Boxes of inputs and of captured values; if there are many, one for all that the same boxes read.
    fn inputs(&mut self) {
        let graph = self.graph;
        let captured: Vec<usize> = graph.captured.iter().map(|(inner, _)| *inner).collect();
        let mut kinds = HashMap::new();
        for (look, places) in [(Look::Input, &graph.inputs), (Look::Captured, &captured)] {
            let many = places.len() > MAX_ENDS || self.folding.is_some();
            for at in places {
                let readers = self.waiting.remove(at).unwrap_or_default();
                let known = kinds.get(&(look, readers.clone())).copied().filter(|_| many);
                let from = known.unwrap_or_else(|| self.end(look));
                if many {
                    kinds.insert((look, readers.clone()), from);
                }
                self.name(from, *at);
                self.sources.insert(*at, from);
                for to in readers {
                    self.edges.entry((from, to)).or_default().push(*at);
                }
            }
        }
    }

    /// Boxes of outputs; if there are many, one for all that come from the same box.
    fn outputs(&mut self) {
        let graph = self.graph;
        let many = graph.outputs.len() > MAX_ENDS || self.folding.is_some();
        let mut kinds = HashMap::new();
        for at in &graph.outputs {
            let from = self.producer(*at).or_else(|| self.sources.get(at).copied());
            let known = kinds.get(&from).copied().filter(|_| many);
            let to = known.unwrap_or_else(|| self.end(Look::Output));
            kinds.insert(from, to);
            self.name(to, *at);
            if let Some(from) = from {
                self.edges.entry((from, to)).or_default().push(*at);
            } else if let Some(value) = self.value(*at)
                && let Some(drawn) = self.scene.boxes.get_mut(to)
            {
                drawn.lines.push(constant_line(value));
            }
        }
    }

    fn end(&mut self, look: Look) -> usize {
        self.scene.boxes.push(Drawn { look, ..Drawn::default() });
        self.scene.boxes.len() - 1
    }

    /// Adds a value to the box of an input or output.
    fn name(&mut self, end: usize, at: usize) {
        let (Some(drawn), Some(value)) = (self.scene.boxes.get_mut(end), self.graph.values.get(at)) else { return };
        drawn.title += &describe::value(value);
        if drawn.heading.is_empty() {
            drawn.heading = short(&value.name, MAX_LINE);
            drawn.lines.push(typed(value));
        } else {
            drawn.version.push('+');
        }
    }

    fn finish(mut self) -> Scene {
        for drawn in &mut self.scene.boxes {
            // Each further value left a mark.
            let more = drawn.version.chars().filter(|c| *c == '+').count();
            if more > 0 && matches!(drawn.look, Look::Input | Look::Output | Look::Captured) {
                drawn.version = format!(" and {} more", grouped(more as u64));
            }
        }
        for ((from, to), mut values) in std::mem::take(&mut self.edges) {
            values.sort_unstable();
            values.dedup();
            let known: Vec<&ValueDetails> = values.iter().filter_map(|at| self.value(*at)).collect();
            let label = match known.as_slice() {
                [only] => only.shape.as_deref().map(text::shape).unwrap_or_default(),
                several => format!("{} values", several.len()),
            };
            let title = known.iter().take(describe::MAX_LISTED).map(|value| describe::value(value)).collect();
            self.scene.edges.push(Edge { from, to, label, title });
        }
        let shown = self.of.iter().flatten().count();
        if let Some(folding) = &self.folding {
            let (count, boxes, all) = (nodes(shown), folding.names.len(), self.graph.nodes.len());
            let how = if folding.names.iter().all(String::is_empty) {
                "as they follow each other"
            } else {
                "by the scopes in their names or in those of their parameters"
            };
            let hidden = if all > shown { format!("; {} computed at load", nodes(all - shown)) } else { String::new() };
            self.scene.caption = format!("{count}, folded into {boxes} boxes {how}{hidden}");
        }
        self.scene
    }
}

/// Adds lines, or the first ones and how many are left.
fn push(lines: &mut Vec<String>, mut list: Vec<String>, what: &str) {
    let more = list.len().saturating_sub(MAX_LINES);
    if more > 1 {
        list.truncate(MAX_LINES);
        list.push(format!("and {more} more {what}"));
    }
    lines.extend(list.iter().map(|line| short(line, MAX_LINE + 16)));
}

/// A constant as its readers list it.
fn constant_line(value: &ValueDetails) -> String {
    let name = short(&value.name, 20);
    match (&value.constant, value.origin) {
        (Some(of), _) => format!("{name}: {}", constant(of)),
        (None, Origin::Nothing) => format!("{name}: nothing produces it"),
        (None, _) => format!("{name}: {}", typed(value)),
    }
}

fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_string() } else { format!("{} nodes", grouped(count as u64)) }
}

fn group(name: &str, members: &[&NodeDetails]) -> Drawn {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let works = |node: &&&NodeDetails| matches!(node.fate, Fate::Runs | Fate::Fused | Fate::Missing);
    for node in members.iter().filter(works) {
        *counts.entry(&node.operator).or_default() += 1;
    }
    let running: usize = counts.values().sum();
    let mut sorted: Vec<(&str, usize)> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let text = |(operator, count): &(&str, usize)| {
        if *count == 1 { short(operator, 20) } else { format!("{count} {}", short(operator, 20)) }
    };
    let mut lines: Vec<String> =
        sorted.iter().take(6).map(text).collect::<Vec<_>>().chunks(2).map(|c| c.join(", ")).collect();
    let rest: usize = sorted.iter().skip(6).map(|(_, count)| count).sum();
    if rest > 0 {
        lines.push(format!("{rest} of other operators"));
    }
    let idle = members.len() - running;
    if idle > 0 {
        lines.push(format!("{} not run", nodes(idle)));
    }
    let all: Vec<String> = sorted.iter().take(describe::MAX_LISTED).map(text).collect();
    let heading = if name.is_empty() { "nodes".to_string() } else { short(name, MAX_LINE + 10) };
    // The colour of the heaviest work.
    let families = members.iter().filter(works).map(|node| Family::of(&node.domain, &node.operator));
    let family = families.min().unwrap_or_default();
    Drawn {
        look: if members.iter().any(|node| node.fate == Fate::Missing) { Look::Missing } else { Look::Node(family) },
        quiet: running == 0,
        several: true,
        heading,
        version: format!(" ({})", nodes(members.len())),
        lines,
        title: format!("{}\n{}\n{}", short(name, 300), nodes(members.len()), all.join(", ")),
        ..Drawn::default()
    }
}
