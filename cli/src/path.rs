//! Where a value of a run is: the calls and subgraphs around it, and its name.

use onnxref::{Error, Kind, NodeInfo, Result, Scope, quote};
use onnxref_view::plain;
use serde::{Deserialize, Serialize};

/// Maximum number of calls and subgraphs around a value. Paths of a model that nests deeper would take too much memory.
const MAX_DEPTH: usize = 200;

/// A value of a run. No other has the same path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ValuePath {
    pub(crate) name: String,
    /// The calls and subgraphs around it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) path: Vec<Step>,
}

/// A call of a function, or a trip through the subgraph of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Step {
    /// The first value that the node gives; `#` and its index, if it names none.
    node: String,
    /// The attribute that holds the subgraph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// From 0. A branch of an If has trip 0 only.
    #[serde(default)]
    trip: u64,
}

impl Step {
    fn new(scope: &Scope, trip: u64) -> Step {
        Step { node: scope.node().to_string(), body: scope.body().map(str::to_string), trip }
    }
}

impl ValuePath {
    /// A value of the model's graph.
    pub(crate) fn outermost(name: &str) -> ValuePath {
        ValuePath { name: name.to_string(), path: Vec::new() }
    }

    /// A value in a scope; `trips` are those of the subgraphs around it, outermost first. `None` if too much is around it.
    pub(crate) fn new(name: &str, scope: Option<&Scope>, trips: impl IntoIterator<Item = u64>) -> Option<ValuePath> {
        if scope.is_some_and(|scope| scope.depth() > MAX_DEPTH) {
            return None;
        }
        let mut scopes: Vec<&Scope> = std::iter::successors(scope, |scope| scope.outer()).collect();
        scopes.reverse();
        let mut trips = trips.into_iter();
        let trip = |scope: &&Scope| if scope.body().is_some() { trips.next().unwrap_or(0) } else { 0 };
        let trips: Vec<u64> = scopes.iter().map(trip).collect();
        let path = scopes.into_iter().zip(trips).map(|(scope, trip)| Step::new(scope, trip)).collect();
        Some(ValuePath { name: name.to_string(), path })
    }

    /// A value of a body of the node that gives `node`, in its first trip; `around` is the path of that node's values.
    pub(crate) fn in_body(name: &str, around: &[Step], node: &str, body: &str) -> ValuePath {
        let step = Step { node: node.to_string(), body: Some(body.to_string()), trip: 0 };
        ValuePath { name: name.to_string(), path: around.iter().cloned().chain([step]).collect() }
    }

    /// The same value in the first trip of each subgraph.
    pub(crate) fn first_trips(&self) -> ValuePath {
        let path = self.path.iter().map(|step| Step { trip: 0, ..step.clone() }).collect();
        ValuePath { name: self.name.clone(), path }
    }

    /// The trips of the subgraphs around it, outermost first.
    pub(crate) fn trips(&self) -> impl Iterator<Item = u64> {
        self.path.iter().filter(|step| step.body.is_some()).map(|step| step.trip)
    }

    /// `"x"`, or `"x" in the body of "y", trip 2`.
    pub(crate) fn text(&self) -> String {
        let step = |step: &Step| match step.body.as_deref() {
            None => format!(" in the call that gives {}", quote(&step.node)),
            // A branch is taken once.
            Some(branch @ ("then_branch" | "else_branch")) => format!(" in the {branch} of {}", quote(&step.node)),
            Some(body) => format!(" in the {} of {}, trip {}", plain(body), quote(&step.node), step.trip),
        };
        quote(&self.name) + &self.path.iter().rev().map(step).collect::<Vec<_>>().join(",")
    }
}

/// The trips of the nodes that have started and not ended, outermost first: how often each has entered a subgraph.
#[derive(Default)]
pub(crate) struct Trips(Vec<u64>);

impl Trips {
    pub(crate) fn starts(&mut self) {
        self.0.push(0);
    }

    pub(crate) fn enters(&mut self) {
        self.0.last_mut().into_iter().for_each(|trips| *trips += 1);
    }

    pub(crate) fn ends(&mut self) {
        self.0.pop();
    }

    /// The number of subgraphs around the node that has just ended.
    pub(crate) fn depth(&self) -> usize {
        self.0.len()
    }

    /// The path of an output of the node that has just ended.
    pub(crate) fn path(&self, node: NodeInfo<'_>, k: usize, name: &str) -> Result<ValuePath> {
        let trips = self.0.iter().map(|entered| entered.saturating_sub(1));
        ValuePath::new(name, node.output_scope(k), trips).ok_or_else(|| {
            let text = format!("value {} is inside more than {MAX_DEPTH} calls and subgraphs", quote(name));
            Error::new(Kind::Unsupported, text + ": its path would be too long to compare or to list")
        })
    }
}
