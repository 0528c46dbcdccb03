//! The boxes and edges of a picture.

use super::Mark;
use super::family::Family;
use super::fold::{self, Folding};
use super::lines::{self, MAX_LINE, constant_line, nodes, push};
use super::text::{short, typed};
use super::{Part, describe, text};
use crate::grouped;
use onnxref::inspect::{Fate, GraphDetails, NodeDetails, Origin, ValueDetails};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of nodes that are drawn one by one. More are folded into at most `MAX_GROUPS` boxes.
const MAX_NODES: usize = 300;
const MAX_GROUPS: usize = 110;

/// Maximum number of nodes that can be drawn one by one if that is asked for.
const MAX_UNFOLDED: usize = 4000;

/// Maximum number of inputs and outputs that are drawn one by one. More are drawn as one box for each reader.
const MAX_ENDS: usize = 40;

/// Boxes, and edges between them.
#[derive(Debug, Default)]
pub(super) struct Scene {
    pub(super) boxes: Vec<Drawn>,
    pub(super) edges: Vec<Edge>,
    /// How the nodes are folded; empty if they aren't.
    pub(super) caption: String,
    /// Whether folding is a choice.
    pub(super) foldable: bool,
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
    /// The shape of what leaves a node or several, if that is one value.
    pub(super) leaving: String,
    pub(super) bodies: Vec<(String, Scene)>,
    /// The places of the nodes that it stands for.
    pub(super) nodes: Vec<usize>,
    /// Of an input or an output: the places of its values.
    pub(super) values: Vec<usize>,
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
    pub(super) values: Vec<usize>,
}

impl Scene {
    /// The picture of a graph, or of a part of it.
    pub(super) fn new(graph: &GraphDetails, part: Part<'_>) -> Scene {
        let nested = size(graph, 0) <= MAX_NODES;
        Stage::new(graph, part).scene(nested)
    }

    /// The picture of a graph whose nodes are marked. A box of several has a mark if one of them has.
    pub(super) fn marked(graph: &GraphDetails, marks: &[Mark]) -> Scene {
        let stage = Stage::new(graph, Part::default());
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
    ends: Option<Ends>,
    without_computed: bool,
}

/// What enters and leaves a part of a graph, sorted.
struct Ends {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl Ends {
    fn new(graph: &GraphDetails, nodes: &[usize]) -> Ends {
        let mut inside = vec![false; graph.nodes.len()];
        nodes.iter().for_each(|at| inside.get_mut(*at).into_iter().for_each(|inside| *inside = true));
        let is_inside =
            |value: &ValueDetails| matches!(value.origin, Origin::Node(node) if inside.get(node) == Some(&true));
        let mut ends = Ends { inputs: Vec::new(), outputs: graph.outputs.clone() };
        for (node, inside) in graph.nodes.iter().zip(&inside) {
            let ends = if *inside { &mut ends.inputs } else { &mut ends.outputs };
            ends.extend(reads(node));
        }
        ends.inputs
            .retain(|at| graph.values.get(*at).is_some_and(|value| !is_inside(value) && value.constant.is_none()));
        ends.outputs.retain(|at| graph.values.get(*at).is_some_and(is_inside));
        for list in [&mut ends.inputs, &mut ends.outputs] {
            list.sort_unstable();
            list.dedup();
        }
        ends
    }
}

/// The values that a node reads, also in its subgraphs.
fn reads(node: &NodeDetails) -> impl Iterator<Item = usize> {
    let captured = node.bodies.iter().flat_map(|(_, body)| body.captured.iter().map(|(_, outer)| outer));
    node.inputs.iter().flatten().chain(captured).copied()
}

impl<'a> Stage<'a> {
    fn new(graph: &'a GraphDetails, part: Part<'_>) -> Stage<'a> {
        let Part { nodes, without_computed, unfolded } = part;
        let ends = nodes.map(|nodes| Ends::new(graph, nodes));
        let leaving: std::collections::HashSet<usize> = graph.outputs.iter().copied().collect();
        let is_shown = |node: &NodeDetails| {
            let is_constant = node.inputs.is_empty() && node.bodies.is_empty() && node.operator == "Constant";
            !is_constant || node.outputs.iter().flatten().any(|at| leaving.contains(at))
        };
        let mut shown: Vec<bool> = graph.nodes.iter().map(is_shown).collect();
        if let Some(nodes) = nodes {
            let mut inside = vec![false; shown.len()];
            nodes.iter().for_each(|at| inside.get_mut(*at).into_iter().for_each(|inside| *inside = true));
            shown.iter_mut().zip(inside).for_each(|(shown, inside)| *shown &= inside);
        }
        if without_computed {
            let computed = graph.nodes.iter().map(|node| node.fate == Fate::Computed);
            shown.iter_mut().zip(computed).for_each(|(shown, computed)| *shown &= !computed);
        }
        let count = shown.iter().filter(|shown| **shown).count();
        let foldable = (MAX_NODES + 1..=MAX_UNFOLDED).contains(&count);
        let folding = (count > MAX_NODES && !(foldable && unfolded)).then(|| {
            let works = |(shown, node): (&bool, &NodeDetails)| *shown && node.fate != Fate::Computed;
            let shown: Vec<bool> = shown.iter().zip(&graph.nodes).map(works).collect();
            fold::fold(graph, &shown, MAX_GROUPS)
        });
        let mut boxes = 0..;
        let of = match &folding {
            Some(folding) => folding.of.clone(),
            None => shown.iter().map(|shown| boxes.next().filter(|_| *shown)).collect(),
        };
        let (edges, sources, waiting) = Default::default();
        let scene = Scene { foldable, ..Scene::default() };
        Stage { graph, folding, of, scene, edges, sources, waiting, ends, without_computed }
    }

    fn scene(mut self, nested: bool) -> Scene {
        match &self.folding {
            Some(folding) => self.scene.boxes = self.groups(folding),
            None => {
                let nodes: Vec<usize> = self.of.iter().enumerate().filter_map(|(k, of)| of.map(|_| k)).collect();
                // Hidden nodes leave no gap.
                let mut boxes = 0..;
                for of in self.of.iter_mut().flatten() {
                    *of = boxes.next().unwrap_or(0);
                }
                self.scene.boxes = nodes.into_iter().filter_map(|at| self.node(at, nested)).collect();
            }
        }
        self.connect();
        self.inputs();
        self.outputs();
        self.finish()
    }

    /// A box for each group.
    fn groups(&self, folding: &Folding) -> Vec<Drawn> {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); folding.names.len()];
        for (at, group) in folding.of.iter().enumerate() {
            group.and_then(|group| members.get_mut(group)).into_iter().for_each(|members| members.push(at));
        }
        let drawn = |(places, name): (Vec<usize>, &String)| match places.as_slice() {
            [only] => self.node(*only, false).unwrap_or_default(),
            places => {
                let members: Vec<&NodeDetails> = places.iter().filter_map(|at| self.graph.nodes.get(*at)).collect();
                Drawn { nodes: places.to_vec(), ..lines::group(name, &members) }
            }
        };
        members.into_iter().zip(&folding.names).map(drawn).collect()
    }

    fn value(&self, at: usize) -> Option<&'a ValueDetails> {
        self.graph.values.get(at)
    }

    /// The box of the node that a value comes from.
    fn producer(&self, at: usize) -> Option<usize> {
        let Origin::Node(node) = self.value(at)?.origin else { return None };
        self.of.get(node).copied().flatten()
    }

    fn node(&self, at: usize, nested: bool) -> Option<Drawn> {
        let node = self.graph.nodes.get(at)?;
        let family = Family::of(&node.domain, &node.operator);
        let mut lines = Vec::new();
        if !matches!(node.domain.as_str(), "" | "org.openvinotoolkit") {
            lines.push(short(&node.domain, MAX_LINE));
        }
        if !node.name.is_empty() {
            lines.push(short(&node.name, MAX_LINE));
        }
        push(&mut lines, lines::attributes(node), "attributes");
        let folded = node.inputs.iter().flatten().filter(|at| !self.has_box(**at)).filter_map(|at| self.value(*at));
        push(&mut lines, folded.map(constant_line).collect(), "constants");
        let mut bodies = Vec::new();
        for (name, body) in &node.bodies {
            let count = body.nodes.len();
            if nested && count <= MAX_NODES {
                let part = Part { without_computed: self.without_computed, ..Part::default() };
                bodies.push((short(name, MAX_LINE), Stage::new(body, part).scene(nested)));
            } else {
                lines.push(format!("{}: {}", short(name, 16), nodes(count)));
            }
        }
        Some(Drawn {
            look: if node.fate == Fate::Missing { Look::Missing } else { Look::Node(family) },
            quiet: matches!(node.fate, Fate::Computed | Fate::Forwarded | Fate::Unread),
            heading: short(&node.operator, MAX_LINE),
            version: node.version.map(|version| format!("-{version}")).unwrap_or_default(),
            lines,
            title: describe::node(self.graph, node),
            bodies,
            nodes: vec![at],
            ..Drawn::default()
        })
    }

    /// Whether a value comes from a box: it is no constant that readers list.
    fn has_box(&self, at: usize) -> bool {
        let enters = self.ends.as_ref().is_some_and(|ends| ends.inputs.binary_search(&at).is_ok());
        self.value(at).is_some_and(|value| value.origin == Origin::Input) || self.producer(at).is_some() || enters
    }

    /// Edges from the boxes of nodes. Readers of inputs are noted.
    fn connect(&mut self) {
        for (node, to) in self.graph.nodes.iter().zip(self.of.clone()) {
            let Some(to) = to else { continue };
            for at in reads(node) {
                // Constants that are computed at load are no structure.
                if self.folding.is_some() && self.value(at).is_some_and(|value| value.constant.is_some()) {
                    continue;
                }
                match self.producer(at) {
                    Some(from) if from != to => self.edges.entry((from, to)).or_default().push(at),
                    Some(_) => {}
                    None => self.waiting.entry(at).or_default().push(to),
                }
            }
        }
    }

    /// Boxes of inputs and of captured values; if there are many, one for all that the same boxes read.
    fn inputs(&mut self) {
        let graph = self.graph;
        let mut inputs = graph.inputs.clone();
        let mut captured: Vec<usize> = graph.captured.iter().map(|(inner, _)| *inner).collect();
        if let Some(ends) = &self.ends {
            inputs.retain(|at| ends.inputs.binary_search(at).is_ok());
            captured.clone_from(&ends.inputs);
            captured.retain(|at| !inputs.contains(at));
        }
        let mut kinds = HashMap::new();
        for (look, places) in [(Look::Input, &inputs), (Look::Captured, &captured)] {
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
        let outputs = self.ends.as_ref().map_or(&graph.outputs, |ends| &ends.outputs).clone();
        let many = outputs.len() > MAX_ENDS || self.folding.is_some();
        let mut kinds = HashMap::new();
        for at in &outputs {
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
        drawn.values.push(at);
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
        let mut leaving: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for ((from, to), mut values) in std::mem::take(&mut self.edges) {
            values.sort_unstable();
            values.dedup();
            leaving.entry(from).or_default().extend(&values);
            let known: Vec<&ValueDetails> = values.iter().filter_map(|at| self.value(*at)).collect();
            let label = match known.as_slice() {
                [only] => only.shape.as_deref().map(text::shape).unwrap_or_default(),
                several => format!("{} values", several.len()),
            };
            let title = known.iter().take(describe::MAX_LISTED).map(|value| describe::value(value)).collect();
            self.scene.edges.push(Edge { from, to, label, title, values });
        }
        for (from, values) in leaving {
            let only = values.first().filter(|_| values.len() == 1).and_then(|at| self.value(*at)?.shape.as_deref());
            if let (Some(shape), Some(drawn)) = (only, self.scene.boxes.get_mut(from))
                && matches!(drawn.look, Look::Node(_) | Look::Missing)
            {
                drawn.leaving = text::shape(shape);
            }
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
