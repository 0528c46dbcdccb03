//! Pictures of graphs: SVG, and the DOT of Graphviz.
//!
//! ```
//! let path = "../onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx";
//! let found = onnxref::Model::options().inspect(path)?;
//! let svg = onnxref_view::picture::svg(&found.graph, "test_gather_0");
//! assert!(svg.starts_with("<svg ") && svg.contains("Gather"));
//! # Ok::<(), onnxref::Error>(())
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
