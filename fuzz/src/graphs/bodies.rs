//! Nodes with bodies.

use super::{Maker, NUMBERS, attribute, declared, int};
use crate::plain::{Num, Plain, binary, cast};
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, GraphProto, NodeProto};
use onnxref::DType::{self, Bool, Int64};

impl Maker<'_> {
    /// Nodes that a body has to itself, the last of which is of a type, if one is wanted.
    pub(super) fn body(&mut self, depth: usize, dtype: Option<DType>) -> (GraphProto, Plain) {
        let (outer, known) = (std::mem::take(&mut self.nodes), self.known.len());
        for _ in 0..1 + self.source.below(2) {
            self.node(depth + 1);
        }
        if self.nodes.is_empty() {
            self.unary();
        }
        let last = self.nodes.last().and_then(|node| node.output.last()).expect("an output").clone();
        let mut output = (last.clone(), self.plain(&last));
        if let Some(to) = dtype {
            let plain = output.1.map(to, |v| cast(output.1.dtype, to, v));
            self.emit("Cast", &[&last], vec![int("to", to.code().into())], vec![plain]);
            output = self.known.last().expect("the node's").clone();
        }
        let graph = GraphProto {
            name: Some("body".into()),
            node: std::mem::replace(&mut self.nodes, outer),
            output: vec![declared(&output.0, output.1.dtype, None)],
            ..GraphProto::default()
        };
        self.hide(known);
        (graph, output.1)
    }

    /// The values of a body can't be read outside; inputs and initializers can.
    pub(super) fn hide(&mut self, from: usize) {
        let global = |name: &str| {
            self.inputs.iter().any(|info| info.name() == name)
                || self.initializers.iter().any(|tensor| tensor.name() == name)
        };
        let mut k = 0;
        let keep: Vec<bool> = self.known.iter().map(|(name, _)| global(name)).collect();
        self.known.retain(|_| (k += 1, k <= from || keep[k - 1]).1);
    }

    pub(super) fn branches(&mut self, depth: usize) {
        let taken = self.source.once_in(2);
        let condition = self.fixed(Plain::new(Bool, &[], vec![Num::Int(taken.into())]));
        let (yes, first) = self.body(depth, None);
        let (no, second) = self.body(depth, Some(first.dtype));
        let graph = |name, graph| AttributeProto { g: Some(Box::new(graph)), ..attribute(name, AttributeType::Graph) };
        let attributes = vec![graph("then_branch", yes), graph("else_branch", no)];
        self.emit("If", &[&condition], attributes, vec![if taken { first } else { second }]);
    }

    /// A loop that applies an operator some times, and collects what it has.
    pub(super) fn repeated(&mut self, depth: usize) {
        let (a, x) = self.operand(NUMBERS, 0..5);
        let (b, y) = self.partner(x.dtype, &x.shape);
        let op = self.source.pick(&["Add", "Sub", "Mul", "Max"]);
        let (most, limit) = (self.source.below(4), self.source.below(4));
        let trips = most.min(limit + 1);
        let (mut value, mut collected) = (x.clone(), Vec::new());
        for _ in 0..trips {
            value = value.zip(&y, x.dtype, |v, w| binary(op, x.dtype, v, w));
            collected.push(value.nums.clone());
        }
        let mut outputs = vec![value.clone()];
        let collects = trips > 0 && self.source.once_in(2);
        if collects {
            let nums = collected.into_iter().collect::<Option<Vec<_>>>().map(|nums| nums.concat());
            outputs.push(Plain { dtype: x.dtype, shape: [&[trips], &value.shape[..]].concat(), nums });
        }
        // The shape of what no trip collects is open, so this number is never wrong.
        let most = self.fixed(Plain::new(Int64, &[], vec![Num::Int(most as i64)]));
        let limit = self.ints(&[], &[limit as i64]);
        let yes = self.fixed(Plain::new(Bool, &[], vec![Num::Int(1)]));
        let (mut graph, side) = self.body(depth, None);
        let inner = [(); 5].map(|()| self.new_name());
        let [trip, again, carried, next, goes] = &inner;
        let node = |op: &str, inputs: [&str; 2], output: &str| NodeProto {
            op_type: Some(op.into()),
            input: inputs.map(String::from).to_vec(),
            output: vec![output.into()],
            ..Default::default()
        };
        self.read.extend([b.clone(), limit.clone()]);
        graph.node.push(node(op, [carried, &b], next));
        graph.node.push(node("Less", [trip, &limit], goes));
        graph.input = vec![declared(trip, Int64, None), declared(again, Bool, None), declared(carried, x.dtype, None)];
        let side_output = graph.output.pop().expect("one");
        graph.output = vec![declared(goes, Bool, None), declared(next, x.dtype, None)];
        if collects {
            graph.output.push(declared(next, x.dtype, None));
        }
        if trips > 0 {
            graph.output.push(side_output);
            let nums = side.nums.map(|nums| nums.repeat(trips));
            outputs.push(Plain { dtype: side.dtype, shape: [&[trips], &side.shape[..]].concat(), nums });
        }
        let body = AttributeProto { g: Some(Box::new(graph)), ..attribute("body", AttributeType::Graph) };
        self.emit("Loop", &[&most, &yes, &a], vec![body], outputs);
    }
}
