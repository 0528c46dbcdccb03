//! `run --stats` and `--stop-at`: statistics of the values of a run, and the node where NaN or infinities begin.

mod print;

use crate::failure::Failure;
use crate::feeds::Feeds;
use crate::lineage::Lineage;
use crate::options::Running;
use crate::path::{Trips, ValuePath};
use crate::print::note;
use crate::watch::Seen;
use clap::{Args, ValueEnum};
use onnxref::inspect::{GraphDetails, Origin};
use onnxref::{Cancel, Error, Kind, NodeInfo, Result, Scalar, Value};
use onnxref_view::statistics::Statistics;
use onnxref_view::{grouped, type_name};
pub(crate) use print::{Document, rounded};
use serde::Serialize;
use std::path::Path;

/// What to look for in the values of a run.
#[derive(Debug, Args)]
pub(crate) struct Looking {
    /// Print the range of every value, its NaN and infinities
    ///
    /// This switches optimisation off. Inputs come first, then what nodes compute, in the order of the run; -v adds
    /// initializers and operators. Least, greatest and mean are those of the finite elements, the mean added up in float64.
    /// `> float16` counts finite elements beyond 65504. The table takes the place of the outputs; that of a run that fails
    /// ends with its last value.
    #[arg(long)]
    stats: bool,

    /// Stop at the first node that makes NaN or infinities
    ///
    /// Its inputs have none. It prints the node, the position of the first such element and the ranges of the inputs; the
    /// exit status is 1. `nan,inf` stops at either. Constant and ConstantOfShape give what the model says, and don't count.
    /// This switches optimisation off.
    #[arg(long, value_name = "nan|inf", value_delimiter = ',', hide_possible_values = true)]
    stop_at: Vec<Unwanted>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Unwanted {
    Nan,
    Inf,
}

impl Unwanted {
    /// The number of such elements.
    fn count(self, statistics: &Statistics) -> u64 {
        let count = match self {
            Unwanted::Nan => statistics.nan,
            Unwanted::Inf => statistics.infinite,
        };
        count.unwrap_or(0)
    }

    fn is(self, scalar: &Scalar<'_>) -> bool {
        let is = |v: f64| if self == Unwanted::Nan { v.is_nan() } else { v.is_infinite() };
        match *scalar {
            Scalar::Float(v) => is(v.into()),
            Scalar::Double(v) => is(v),
            Scalar::Complex64(re, im) => is(re.into()) || is(im.into()),
            Scalar::Complex128(re, im) => is(re) || is(im),
            _ => false,
        }
    }

    /// What it is called in texts.
    fn text(self) -> &'static str {
        match self {
            Unwanted::Nan => "NaN",
            Unwanted::Inf => "infinity",
        }
    }
}

impl Looking {
    /// Whether every value must be seen.
    pub(crate) fn every(&self) -> bool {
        self.stats || !self.stop_at.is_empty()
    }

    /// Whether the statistics are printed instead of outputs.
    pub(crate) fn stats(&self) -> bool {
        self.stats
    }
}

/// Operators whose outputs are what the model says.
const CONSTANTS: [&str; 2] = ["Constant", "ConstantOfShape"];

/// Maximum number of values in subgraphs that are listed: a Loop gives them again in each trip.
const MAX_INNER: usize = 100_000;

/// Looks at the values of a run, and keeps none.
pub(crate) struct Look<'a> {
    looking: &'a Looking,
    cancel: &'a Cancel,
    rows: Vec<Row>,
    /// The number of rows of subgraphs, and of those that aren't listed.
    inner: usize,
    unlisted: u64,
    /// The nodes that have started and not ended, outermost first.
    started: Vec<Started>,
    stop: Option<Stop>,
    /// The first value that has what is unwanted, though no node is to blame.
    carried: Option<(Unwanted, ValuePath)>,
}

/// A node that has started.
struct Started {
    inputs: Vec<Numbers>,
    /// Whether it entered a subgraph: the nodes in there are looked at.
    entered: bool,
}

/// A value with what is known of its numbers.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    path: ValuePath,
    from: From,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Node>,
    #[serde(flatten)]
    numbers: Numbers,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum From {
    Input,
    Initializer,
    Node,
}

/// The statistics of a value; `None` if it has no numbers.
#[derive(Clone, Serialize)]
struct Numbers {
    #[serde(rename = "type")]
    value_type: String,
    shape: Option<Vec<usize>>,
    #[serde(flatten)]
    statistics: Option<Statistics>,
}

impl Numbers {
    fn of(value: &Value, cancel: &Cancel) -> Result<Numbers> {
        Ok(Numbers {
            value_type: value.value_type().map_or("?".to_string(), |of| type_name(&of)),
            shape: value.tensor().ok().map(|tensor| tensor.shape().to_vec()),
            statistics: Statistics::of(value, cancel)?,
        })
    }

    fn count(&self, what: Unwanted) -> u64 {
        self.statistics.as_ref().map_or(0, |statistics| what.count(statistics))
    }
}

/// A node.
#[derive(Clone, Serialize)]
struct Node {
    index: usize,
    name: String,
    operator: String,
    domain: String,
    version: i64,
}

impl Node {
    fn new(node: NodeInfo<'_>) -> Node {
        let (name, operator, domain) = (node.name.to_string(), node.operator.to_string(), node.domain.to_string());
        Node { index: node.index, name, operator, domain, version: node.version }
    }
}

/// Where the run was stopped.
#[derive(Serialize)]
struct Stop {
    what: Unwanted,
    node: Node,
    /// How many elements of the output are it, and the first of them, if the output is a tensor.
    count: u64,
    position: Option<Vec<usize>>,
    /// With their names, once they are known.
    inputs: Vec<Input>,
    output: Row,
}

#[derive(Serialize)]
struct Input {
    #[serde(flatten)]
    path: Option<ValuePath>,
    #[serde(flatten)]
    numbers: Numbers,
}

impl<'a> Look<'a> {
    /// Looks at what is fed, and before that at the initializers, if they are to be listed.
    pub(crate) fn new(looking: &'a Looking, feeds: &Feeds<'_>, cancel: &'a Cancel) -> Result<Look<'a>> {
        let (rows, started) = (Vec::new(), Vec::new());
        let mut look = Look { looking, cancel, rows, inner: 0, unlisted: 0, started, stop: None, carried: None };
        if looking.every() {
            for (name, value) in feeds {
                look.add(ValuePath::outermost(name), From::Input, None, Numbers::of(value, cancel)?);
            }
        }
        Ok(look)
    }

    /// The values that a model has, in its subgraphs too, before a run adds others.
    pub(crate) fn initializers(&mut self, running: &Running, model: &Path) -> std::result::Result<(), Failure> {
        let found = running.loading.inspect_as(model, |options| options.optimize(false))?;
        let mut open: Vec<&GraphDetails> = vec![&found.graph];
        while let Some(graph) = open.pop() {
            for value in graph.values.iter().filter(|value| value.origin != Origin::Input) {
                let constant = value.constant.as_ref().filter(|_| value.origin == Origin::Initializer);
                if let (Some(constant), Some(path)) = (constant, ValuePath::new(&value.name, value.scope.as_ref(), []))
                {
                    let numbers = Numbers::of(constant, self.cancel).map_err(Failure::run)?;
                    self.add(path, From::Initializer, None, numbers);
                }
            }
            // The first body is next.
            open.extend(graph.nodes.iter().rev().flat_map(|node| node.bodies.iter().rev()).map(|(_, body)| body));
        }
        Ok(())
    }

    fn add(&mut self, path: ValuePath, from: From, node: Option<Node>, numbers: Numbers) {
        let what = self.looking.stop_at.iter().find(|what| numbers.count(**what) > 0);
        if let (Some(what), None) = (what, &self.carried) {
            self.carried = Some((*what, path.clone()));
        }
        if !self.looking.stats {
            return;
        }
        if path.trips().next().is_some() {
            self.inner += 1;
            if self.inner > MAX_INNER {
                self.unlisted += 1;
                return;
            }
        }
        self.rows.push(Row { path, from, node, numbers });
    }

    /// Whether the run was stopped.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Names the inputs of the node at which the run was stopped.
    pub(crate) fn name_inputs(&mut self, running: &Running, model: &Path) -> std::result::Result<(), Failure> {
        let Some(stop) = &mut self.stop else { return Ok(()) };
        let lineage = Lineage::of(&running.loading, model, false)?;
        let names = lineage.inputs(&stop.output.path);
        // Inputs that are omitted have no numbers and no name.
        if names.len() == stop.inputs.len() {
            stop.inputs.iter_mut().zip(names).for_each(|(input, path)| input.path = Some(path));
        }
        Ok(())
    }

    /// What is said beside the table.
    pub(crate) fn notes(&self) {
        if self.unlisted > 0 {
            note(&format!(
                "the last {} values in subgraphs are not listed: --stop-at looks at all of them",
                grouped(self.unlisted)
            ));
        }
        if self.stop.is_some() || self.looking.stop_at.is_empty() {
            return;
        }
        let what = self.looking.stop_at.iter().map(|what| what.text()).collect::<Vec<_>>().join(" or ");
        match &self.carried {
            Some((what, path)) => {
                let (what, path) = (what.text(), path.text());
                note(&format!("no node gives {what} without one in its inputs; the first value with {what} is {path}"));
            }
            None => note(&format!("no value has {what}")),
        }
    }

    /// Whether the run must stop after a node, and where.
    fn judge(&mut self, node: &NodeInfo<'_>, started: Started, outputs: Vec<(ValuePath, &Value, Numbers)>) -> bool {
        if started.entered || (node.domain.is_empty() && CONSTANTS.contains(&node.operator)) {
            return false;
        }
        let none = |what: Unwanted| started.inputs.iter().all(|input| input.count(what) == 0);
        let wanted = self.looking.stop_at.iter().filter(|what| none(**what)).copied().collect::<Vec<_>>();
        let bad = |(_, _, numbers): &(ValuePath, &Value, Numbers)| {
            wanted.iter().copied().find(|what| numbers.count(*what) > 0)
        };
        let Some((what, (path, value, numbers))) = outputs.into_iter().find_map(|output| Some((bad(&output)?, output)))
        else {
            return false;
        };
        let first = |tensor: &onnxref::Tensor| {
            let at = tensor.scalars().position(|scalar| what.is(&scalar))?;
            Some(kernels::position_of(at, tensor.shape()))
        };
        let (node, count) = (Node::new(*node), numbers.count(what));
        self.stop = Some(Stop {
            what,
            count,
            position: value.tensor().ok().and_then(first),
            inputs: started.inputs.into_iter().map(|numbers| Input { path: None, numbers }).collect(),
            output: Row { path, from: From::Node, node: None, numbers },
            node,
        });
        true
    }
}

impl Seen for Look<'_> {
    fn starts(&mut self, _: NodeInfo<'_>, inputs: &[Option<&Value>]) -> Result<()> {
        let mut started = Started { inputs: Vec::new(), entered: false };
        if !self.looking.stop_at.is_empty() {
            let inputs = inputs.iter().flatten().map(|value| Numbers::of(value, self.cancel));
            started.inputs = inputs.collect::<Result<_>>()?;
        }
        self.started.push(started);
        Ok(())
    }

    fn enters(&mut self) {
        self.started.last_mut().into_iter().for_each(|node| node.entered = true);
    }

    fn ends(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> Result<()> {
        let Some(started) = self.started.pop().filter(|_| self.looking.every()) else { return Ok(()) };
        let mut seen = Vec::new();
        for (k, (name, value)) in outputs.iter().enumerate() {
            let (path, numbers) = (trips.path(node, k, name)?, Numbers::of(value, self.cancel)?);
            self.add(path.clone(), From::Node, Some(Node::new(node)), numbers.clone());
            seen.push((path, *value, numbers));
        }
        if self.judge(&node, started, seen) {
            return Err(Error::new(Kind::Cancelled, "the run was stopped by --stop-at"));
        }
        Ok(())
    }
}
