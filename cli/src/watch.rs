//! Running a model while every value is seen.

use crate::path::Trips;
use crate::progress::Progress;
use onnxref::{Cancel, Inputs, Model, NodeInfo, Outputs, Result, Value, Watch};

/// Runs a model, with progress over its nodes. `each` sees the outputs of every node as it ends, and the subgraphs around
/// it; its error ends the run. With `whole`, nodes that run as one are seen as their last one.
pub(crate) fn run(
    model: &Model,
    inputs: Inputs<'_>,
    cancel: &Cancel,
    whole: bool,
    each: impl FnMut(NodeInfo<'_>, &Trips, &[(&str, &Value)]) -> Result<()>,
) -> Result<Outputs> {
    let progress = Progress::new();
    progress.expect(model.nodes().len());
    model.run_watched(inputs, cancel, &mut Watcher { whole, each, trips: Trips::default(), progress })
}

struct Watcher<F> {
    whole: bool,
    each: F,
    trips: Trips,
    progress: Progress,
}

impl<F: FnMut(NodeInfo<'_>, &Trips, &[(&str, &Value)]) -> Result<()>> Watch for Watcher<F> {
    fn whole(&self) -> bool {
        self.whole
    }

    fn starts(&mut self, node: NodeInfo<'_>, _: &[Option<&Value>]) -> Result<()> {
        if self.trips.depth() == 0 {
            self.progress.message(&format!("nodes  {}", node.operator));
        }
        self.trips.starts();
        Ok(())
    }

    fn enters(&mut self, _: NodeInfo<'_>, _: &str) -> Result<()> {
        self.trips.enters();
        Ok(())
    }

    fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
        self.trips.ends();
        if self.trips.depth() == 0 {
            self.progress.step();
        }
        (self.each)(node, &self.trips, outputs)
    }
}
