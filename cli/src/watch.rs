//! Running a model while every value is seen.

use crate::progress::Progress;
use onnxref::{Cancel, Inputs, Model, NodeInfo, Outputs, Result, Value, Watch};

/// Runs a model, with progress over its nodes. `each` sees the outputs of every node as it ends, and the number of nodes
/// whose subgraphs are around it; its error ends the run.
pub(crate) fn run(
    model: &Model,
    inputs: Inputs<'_>,
    cancel: &Cancel,
    each: impl FnMut(NodeInfo<'_>, usize, &[(&str, &Value)]) -> Result<()>,
) -> Result<Outputs> {
    let progress = Progress::new();
    progress.expect(model.nodes().len());
    model.run_watched(inputs, cancel, &mut Watcher { each, depth: 0, progress })
}

struct Watcher<F> {
    each: F,
    /// The number of nodes that have started and not ended.
    depth: usize,
    progress: Progress,
}

impl<F: FnMut(NodeInfo<'_>, usize, &[(&str, &Value)]) -> Result<()>> Watch for Watcher<F> {
    fn starts(&mut self, node: NodeInfo<'_>, _: &[Option<&Value>]) -> Result<()> {
        if self.depth == 0 {
            self.progress.message(&format!("nodes  {}", node.operator));
        }
        self.depth += 1;
        Ok(())
    }

    fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
        self.depth -= 1;
        if self.depth == 0 {
            self.progress.step();
        }
        (self.each)(node, self.depth, outputs)
    }
}
