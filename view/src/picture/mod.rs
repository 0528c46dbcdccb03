//! Pictures of graphs: SVG, and the DOT of Graphviz.
//!
//! ```no_run
//! let found = onnxref::Model::options().inspect("model.onnx")?;
//! std::fs::write("model.svg", onnxref_view::picture::svg(&found.graph, "model.onnx"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod describe;
mod dot;
mod family;
mod fold;
mod layout;
mod lines;
mod scene;
mod svg;
mod text;

use onnxref::inspect::GraphDetails;
use scene::Scene;
pub(crate) use text::MAX_ELEMENTS;
pub use text::attribute as attribute_text;

/// How a node differs from that of another graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// It is in both.
    Same,
    /// It is in both, and differs.
    Changed,
    /// It is in the second graph only.
    Added,
    /// It is in the first graph only.
    Removed,
}

/// What of a graph is drawn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part<'a> {
    /// These nodes, by place, with the values that enter and leave; all nodes if `None`.
    pub nodes: Option<&'a [usize]>,
    /// Nodes that are computed at load are left out.
    pub without_computed: bool,
    /// Each node has a box of its own, also if they are many: see [`Picture::foldable`].
    pub unfolded: bool,
}

/// A picture whose boxes can be found.
#[derive(Debug)]
pub struct Picture {
    /// The picture. A box has its number as `data-box`, and what it stands for as `data-node` or `data-values`; the curves
    /// that leave a box have its number as `data-from`, and what they carry as `data-values`.
    pub svg: String,
    /// How nodes are folded; empty if they aren't.
    pub caption: String,
    /// The boxes that stand for several nodes: the number, the name, and the places of the nodes.
    pub groups: Vec<(usize, String, Vec<usize>)>,
    /// Whether nodes are folded unless [`Part::unfolded`] says otherwise.
    pub foldable: bool,
}

/// As [`svg`], of a part. Places in a subgraph follow a prefix: `4.0.` for the first subgraph of the node at place 4.
pub fn draw(graph: &GraphDetails, part: Part<'_>, prefix: &str) -> Picture {
    let scene = Scene::new(graph, part);
    let groups = several(&scene);
    Picture { svg: svg::draw(&scene, "", prefix), groups, foldable: scene.foldable, caption: scene.caption }
}

/// The boxes of [`draw`] that stand for several nodes, as [`Picture::groups`].
pub fn groups(graph: &GraphDetails, part: Part<'_>) -> Vec<(usize, String, Vec<usize>)> {
    several(&Scene::new(graph, part))
}

fn several(scene: &Scene) -> Vec<(usize, String, Vec<usize>)> {
    let several = scene.boxes.iter().enumerate().filter(|(_, drawn)| drawn.several);
    several.map(|(k, drawn)| (k, drawn.heading.clone(), drawn.nodes.clone())).collect()
}

/// A picture as SVG, from inputs at the top to outputs at the bottom, in light or dark colours as the viewer prefers.
/// Full names and shapes appear under the mouse. More than 300 nodes are folded by the scopes in their names.
pub fn svg(graph: &GraphDetails, name: &str) -> String {
    svg::draw(&Scene::new(graph, Part::default()), name, "")
}

/// As [`svg`], in the colours of the marks that the nodes of the graph have.
pub fn marked_svg(graph: &GraphDetails, marks: &[Mark], name: &str) -> String {
    svg::draw(&Scene::marked(graph, marks), name, "")
}

/// As [`svg`], in the language of Graphviz.
pub fn dot(graph: &GraphDetails, name: &str) -> String {
    dot::write(&Scene::new(graph, Part::default()), name)
}
