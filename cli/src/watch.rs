//! Running a model while every value is seen.

use crate::path::Trips;
use crate::progress::Progress;
use onnxref::{Cancel, Inputs, Model, NodeInfo, Outputs, Result, Value, Watch};

/// Sees the nodes of a run. An error ends the run.
pub(crate) trait Seen {
    /// A node is about to run with these inputs.
    fn starts(&mut self, node: NodeInfo<'_>, inputs: &[Option<&Value>]) -> Result<()> {
        let _ = (node, inputs);
        Ok(())
    }

    /// The node that has started last enters a subgraph.
    fn enters(&mut self) {}

    /// A node has run, with the subgraphs around it.
    fn ends(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> Result<()>;
}

/// Runs a model, with progress over its nodes. `each` sees the outputs of every node as it ends, and the subgraphs around
/// it; its error ends the run. With `whole`, nodes that run as one are seen as their last one.
pub(crate) fn run(
    model: &Model,
    inputs: Inputs<'_>,
    cancel: &Cancel,
    whole: bool,
    each: impl FnMut(NodeInfo<'_>, &Trips, &[(&str, &Value)]) -> Result<()>,
) -> Result<Outputs> {
    run_seen(model, inputs, cancel, whole, &mut Ends(each))
}

/// As [`run`], for what sees the inputs of nodes too.
pub(crate) fn run_seen(
    model: &Model,
    inputs: Inputs<'_>,
    cancel: &Cancel,
    whole: bool,
    seen: &mut dyn Seen,
) -> Result<Outputs> {
    let progress = Progress::new();
    progress.expect(model.nodes().len());
    model.run_watched(inputs, cancel, &mut Watcher { whole, seen, trips: Trips::default(), progress })
}

struct Ends<F>(F);

impl<F: FnMut(NodeInfo<'_>, &Trips, &[(&str, &Value)]) -> Result<()>> Seen for Ends<F> {
    fn ends(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> Result<()> {
        (self.0)(node, trips, outputs)
    }
}

struct Watcher<'a> {
    whole: bool,
    seen: &'a mut dyn Seen,
    trips: Trips,
    progress: Progress,
}

impl Watch for Watcher<'_> {
    fn whole(&self) -> bool {
        self.whole
    }

    fn starts(&mut self, node: NodeInfo<'_>, inputs: &[Option<&Value>]) -> Result<()> {
        if self.trips.depth() == 0 {
            self.progress.message(&format!("nodes  {}", node.operator));
        }
        self.trips.starts();
        self.seen.starts(node, inputs)
    }

    fn enters(&mut self, _: NodeInfo<'_>, _: &str) -> Result<()> {
        self.trips.enters();
        self.seen.enters();
        Ok(())
    }

    fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
        self.trips.ends();
        if self.trips.depth() == 0 {
            self.progress.step();
        }
        self.seen.ends(node, &self.trips, outputs)
    }
}
