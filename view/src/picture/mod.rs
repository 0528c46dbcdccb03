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

/// A picture as SVG, from inputs at the top to outputs at the bottom, in light or dark colours as the viewer prefers.
/// Full names and shapes appear under the mouse. More than 300 nodes are folded by the scopes in their names.
pub fn svg(graph: &GraphDetails, name: &str) -> String {
    svg::draw(&Scene::new(graph), name)
}

/// As [`svg`], in the language of Graphviz.
pub fn dot(graph: &GraphDetails, name: &str) -> String {
    dot::write(&Scene::new(graph), name)
}
