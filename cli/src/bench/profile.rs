//! Takes the time between the start and the end of each node.

use super::tally::{Node, Tally, bytes};
use super::trace::Trace;
use onnxref::{NodeInfo, Result, Value, Watch, inspect};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Figures of nodes over watched runs. The time that watching takes counts nowhere.
#[derive(Default)]
pub(super) struct Profile {
    /// Time of all runs.
    pub(super) time: Duration,
    pub(super) tally: Tally,
    /// The nodes by the one around them and their position in its graph. Branches share positions.
    places: HashMap<(Option<usize>, usize), Vec<usize>>,
    stack: Vec<Frame>,
    started: Option<Instant>,
    /// Time of watching in this run.
    watching: Duration,
    /// Events, if they are wanted.
    pub(super) trace: Option<Trace>,
}

/// A node that has started.
struct Frame {
    node: usize,
    shapes: Vec<Option<Vec<usize>>>,
    bytes: u64,
    /// What `watching` was.
    watching: Duration,
    /// Time of the nodes inside.
    inside: Duration,
    started: Instant,
}

impl Profile {
    /// With events.
    pub(super) fn traced() -> Profile {
        Profile { trace: Some(Trace::new()), ..Profile::default() }
    }

    /// A run starts.
    pub(super) fn start(&mut self) {
        self.stack.clear();
        self.watching = Duration::ZERO;
        self.started = Some(Instant::now());
    }

    /// The run has ended: its time.
    pub(super) fn end(&mut self) -> Duration {
        let took = self.started.map_or(Duration::ZERO, |started| started.elapsed()).saturating_sub(self.watching);
        self.tally.runs += 1;
        self.time += took;
        took
    }

    /// The node's place in the tally.
    fn find(&mut self, info: NodeInfo<'_>) -> usize {
        let parent = self.stack.last().map(|frame| frame.node);
        let known = self.places.entry((parent, info.index)).or_default();
        let found = known.iter().find(|node| self.tally.nodes.get(**node).is_some_and(|node| node.is(info)));
        found.copied().unwrap_or_else(|| {
            known.push(self.tally.nodes.len());
            self.tally.nodes.push(Node::new(info, parent));
            self.tally.nodes.len() - 1
        })
    }
}

impl Watch for Profile {
    fn whole(&self) -> bool {
        true
    }

    fn starts(&mut self, info: NodeInfo<'_>, inputs: &[Option<&Value>]) -> Result<()> {
        let now = Instant::now();
        let node = self.find(info);
        let shapes = inputs.iter().map(|value| shape((*value)?).map(<[usize]>::to_vec)).collect();
        let size = inputs.iter().flatten().map(|value| bytes(value)).sum();
        if let Some(trace) = &mut self.trace {
            trace.starts(inputs);
        }
        let (inside, watching) = (Duration::ZERO, self.watching);
        self.stack.push(Frame { node, shapes, bytes: size, watching, inside, started: now });
        // As late as possible.
        let started = Instant::now();
        self.watching += started - now;
        if let Some(frame) = self.stack.last_mut() {
            (frame.started, frame.watching) = (started, self.watching);
        }
        Ok(())
    }

    fn ends(&mut self, info: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> Result<()> {
        let now = Instant::now();
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let time = (now - frame.started).saturating_sub(self.watching - frame.watching);
        if let Some(around) = self.stack.last_mut() {
            around.inside += time;
        }
        let ins: Vec<Option<&[usize]>> = frame.shapes.iter().map(Option::as_deref).collect();
        let outs: Vec<Option<&[usize]>> = outputs.iter().map(|(_, value)| shape(value)).collect();
        // The counts are those of the standard's operators.
        let macs = |info: NodeInfo<'_>| match info.domain {
            "" => inspect::macs(info.operator, &ins, &outs).unwrap_or(0),
            _ => 0,
        };
        // A product that stands for several nodes has its own inputs first, and their last output.
        // Of several products in one, the shapes between them aren't known.
        let mut products = info.parts().map(macs).filter(|macs| *macs > 0);
        let macs = match (info.parts().len(), products.next(), products.next()) {
            (0, ..) => macs(info),
            (_, Some(one), None) => one,
            _ => 0,
        };
        let bytes = outputs.iter().fold(frame.bytes, |sum, (_, value)| sum.saturating_add(bytes(value)));
        if let Some(node) = self.tally.nodes.get_mut(frame.node) {
            node.count(time, time.saturating_sub(frame.inside), macs, bytes);
        }
        if let Some(trace) = &mut self.trace {
            trace.ends(info, outputs, (frame.started, now), (macs, bytes));
        }
        self.watching += now.elapsed();
        Ok(())
    }
}

fn shape(value: &Value) -> Option<&[usize]> {
    value.tensor().ok().map(onnxref::Tensor::shape)
}
