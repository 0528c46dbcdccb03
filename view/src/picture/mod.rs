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
mod scene;
mod svg;
mod text;

use onnxref::inspect::GraphDetails;
use scene::Scene;
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

/// A picture as SVG, from inputs at the top to outputs at the bottom, in light or dark colours as the viewer prefers.
/// Full names and shapes appear under the mouse. More than 300 nodes are folded by the scopes in their names.
pub fn svg(graph: &GraphDetails, name: &str) -> String {
    svg::draw(&Scene::new(graph), name)
}

/// As [`svg`], in the colours of the marks that the nodes of the graph have.
pub fn marked_svg(graph: &GraphDetails, marks: &[Mark], name: &str) -> String {
    svg::draw(&Scene::marked(graph, marks), name)
}

/// As [`svg`], in the language of Graphviz.
pub fn dot(graph: &GraphDetails, name: &str) -> String {
    dot::write(&Scene::new(graph), name)
}
