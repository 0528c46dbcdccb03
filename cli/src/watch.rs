//! What watches a run: progress, a dump of all values, the node to stop after.

use crate::dump::Dump;
use crate::progress::Progress;
use onnxref::{Error, Kind, NodeInfo, Result, Value, Watch};

/// Watches a run. Only nodes of the graph itself count, not those of subgraphs.
pub(crate) struct Watcher<'a> {
    progress: Progress,
    dump: Option<Dump<'a>>,
    until: Option<Until<'a>>,
    /// The number of nodes that have started and not ended.
    depth: usize,
}

/// The node to stop after.
struct Until<'a> {
    name: &'a str,
    /// Its outputs, once it has run.
    outputs: Option<Vec<(String, Value)>>,
}

impl<'a> Watcher<'a> {
    /// Watches a run of this number of nodes. `until` is the name of a node or one of its outputs, or `#` and its index.
    pub(crate) fn new(nodes: usize, dump: Option<Dump<'a>>, until: Option<&'a str>) -> Watcher<'a> {
        let until = until.map(|name| Until { name, outputs: None });
        let progress = Progress::new();
        progress.expect(nodes);
        Watcher { progress, dump, until, depth: 0 }
    }

    /// The outputs of the node to stop after, if it has run; and the dump.
    pub(crate) fn end(self) -> (Option<Vec<(String, Value)>>, Option<Dump<'a>>) {
        (self.until.and_then(|until| until.outputs), self.dump)
    }
}

impl Watch for Watcher<'_> {
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
        if let Some(dump) = &mut self.dump {
            dump.add(node, self.depth, outputs)?;
        }
        let Some(until) = self.until.as_mut().filter(|_| self.depth == 0) else { return Ok(()) };
        let index = until.name.strip_prefix('#').and_then(|index| index.parse().ok());
        let named = node.name == until.name || outputs.iter().any(|(name, _)| *name == until.name);
        if named || (node.function.is_none() && index == Some(node.index)) {
            until.outputs = Some(outputs.iter().map(|(name, value)| (name.to_string(), (*value).clone())).collect());
            return Err(Error::new(Kind::Cancelled, "the run was stopped after a node"));
        }
        Ok(())
    }
}
