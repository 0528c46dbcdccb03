//! A case for each node of a model, from the values of a run.

use super::{Whole, set, unwritten};
use crate::bounded::Unwritten;
use crate::corpus::manifest::{About, Corpus, Written};
use crate::corpus::operators;
use crate::failure::Failure;
use crate::path::Trips;
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto};
use crate::{file_name, messages, print};
use onnxref::bytes::Bytes;
use onnxref::conformance::{Case, Outcome};
use onnxref::inspect::{NodeDetails, Origin, ValueDetails};
use onnxref::{LoadOptions, NodeInfo, Value, quote};
use prost::Message;
use std::collections::{HashMap, HashSet};

/// Writes a case for each node as soon as its values are known. A call of a function is one node, and so is one with
/// subgraphs.
pub(crate) struct Nodes<'a> {
    corpus: Corpus<'a>,
    options: LoadOptions,
    /// The model without its graph.
    model: ModelProto,
    /// By their positions; `None` once the case of a node is done.
    nodes: Vec<Option<Waiting>>,
    /// The node that gives a value.
    givers: HashMap<String, usize>,
    values: HashMap<String, Held>,
    /// The number of nodes that still read a value.
    readers: HashMap<String, usize>,
    /// Nodes that have no case, and why.
    skipped: Vec<String>,
}

/// A node whose values are not all known yet.
struct Waiting {
    node: NodeProto,
    /// The values that it and its subgraphs read, each once.
    reads: Vec<String>,
    /// The values that it gives to others.
    gives: Vec<String>,
}

/// A value that is known, until the last node that reads it is done.
struct Held {
    value: Value,
    constant: bool,
}

impl<'a> Nodes<'a> {
    /// Begins with the values that are known before the run: what is fed, and constants.
    pub(crate) fn new(
        corpus: Corpus<'a>,
        whole: Whole,
        options: LoadOptions,
        fed: &[(&str, Value)],
    ) -> Result<Nodes<'a>, Failure> {
        let Whole { mut proto, found, .. } = whole;
        let graph = proto.graph.take().unwrap_or_default();
        let read: Vec<Vec<String>> = graph.node.iter().map(reads).collect();
        let mut used: HashSet<&str> = read.iter().flatten().map(String::as_str).collect();
        used.extend(graph.output.iter().filter_map(|info| info.name.as_deref()));
        let waiting = |(node, reads): (&NodeProto, &Vec<String>)| {
            let named = || node.output.iter().filter(|name| !name.is_empty());
            let mut gives: Vec<String> = named().filter(|name| used.contains(name.as_str())).cloned().collect();
            if gives.is_empty() {
                gives = named().cloned().collect();
            }
            Some(Waiting { node: node.clone(), reads: reads.clone(), gives })
        };
        let nodes: Vec<Option<Waiting>> = graph.node.iter().zip(&read).map(waiting).collect();
        let given =
            |(k, node): (usize, &NodeProto)| node.output.iter().map(move |name| (name.clone(), k)).collect::<Vec<_>>();
        let givers = graph.node.iter().enumerate().flat_map(given).collect();
        let mut values = HashMap::new();
        // Of what nodes give, shapes may be known too: those are seen in the run.
        let is_constant = |node: &NodeDetails| node.domain.is_empty() && node.operator == "Constant";
        let is_given = |value: &ValueDetails| match value.origin {
            Origin::Node(at) => found.graph.nodes.get(at).is_some_and(is_constant),
            _ => true,
        };
        for value in found.graph.values.iter().filter(|value| value.scope.is_none() && is_given(value)).cloned() {
            let (constant, known) = (value.constant.is_some(), value.constant.or(value.default));
            values.extend(known.map(|known| (value.name, Held { value: known, constant })));
        }
        let mut readers = HashMap::new();
        read.iter().flatten().for_each(|name| *readers.entry(name.clone()).or_default() += 1);
        let fed = fed.iter().map(|(name, value)| (name.to_string(), Held { value: value.clone(), constant: false }));
        values.extend(fed);
        let mut nodes = Nodes { corpus, options, model: proto, nodes, givers, values, readers, skipped: Vec::new() };
        (0..nodes.nodes.len()).try_for_each(|k| nodes.finish_if_known(k))?;
        Ok(nodes)
    }

    /// Takes the values of a node that ran.
    pub(crate) fn add(&mut self, node: NodeInfo<'_>, trips: &Trips, outputs: &[(&str, &Value)]) -> Result<(), Failure> {
        if trips.depth() > 0 {
            return Ok(());
        }
        let constant = node.domain.is_empty() && node.operator == "Constant";
        let own = outputs.iter().enumerate().filter(|(k, _)| node.output_scope(*k).is_none());
        let own: Vec<_> =
            own.map(|(_, (name, value))| (name.to_string(), Held { value: (*value).clone(), constant })).collect();
        let givers: HashSet<usize> = own.iter().filter_map(|(name, _)| self.givers.get(name).copied()).collect();
        self.values.extend(own);
        givers.into_iter().try_for_each(|k| self.finish_if_known(k))
    }

    /// Ends the run: writes what is left. Returns what was written, and prints which nodes have no case.
    pub(crate) fn end(mut self) -> Result<Written, Failure> {
        (0..self.nodes.len()).try_for_each(|k| self.finish(k))?;
        self.skipped.iter().for_each(|text| print::note(text));
        self.corpus.finish()
    }

    fn finish_if_known(&mut self, k: usize) -> Result<(), Failure> {
        let known = |waiting: &Waiting| waiting.gives.iter().all(|name| self.values.contains_key(name));
        if self.nodes.get(k).and_then(Option::as_ref).is_some_and(known) { self.finish(k) } else { Ok(()) }
    }

    /// Writes the case of a node, and drops the values that no other node reads.
    fn finish(&mut self, k: usize) -> Result<(), Failure> {
        let Some(waiting) = self.nodes.get_mut(k).and_then(Option::take) else { return Ok(()) };
        let Waiting { node, reads, .. } = &waiting;
        let operator = node.op_type();
        let mut label = format!("node {k} ({operator})");
        if !node.name().is_empty() {
            label += &format!(" {}", quote(node.name()));
        }
        let files = self.files(node, reads).map_err(|why| unwritten(&label, why))?;
        match files.map(|files| (Case::from_files(at_root(&files)), files)) {
            Ok((cases, files)) => match cases.first().map(|case| case.run_with(&self.options)) {
                Some(Outcome::Passed { .. }) => {
                    let about = About { about: label, operators: operators(&files, &self.options), ..About::default() };
                    self.corpus.add(&format!("{k:05}-{}", file_name::escaped(operator)), about, &files)?;
                }
                Some(Outcome::Failed(why)) if why.difference.is_some() => {
                    self.skipped.push(format!("{label} has no case: it gives other values in each run"));
                }
                Some(Outcome::Failed(why)) => self.skipped.push(format!("{label} has no case: {why}")),
                Some(Outcome::Refused(error) | Outcome::Unsupported(error)) => {
                    self.skipped.push(format!("{label} has no case: {error:#}"));
                }
                _ => self.skipped.push(format!("{label} has no case")),
            },
            Err(why) => self.skipped.push(format!("{label} has no case: {why}")),
        }
        for name in &waiting.reads {
            self.readers.entry(name.clone()).and_modify(|left| *left -= 1);
        }
        for name in waiting.reads.iter().chain(&waiting.node.output) {
            if self.readers.get(name).is_none_or(|left| *left == 0) {
                self.values.remove(name);
            }
        }
        Ok(())
    }

    /// The files of a node's case, or why there is none.
    fn files(&self, node: &NodeProto, reads: &[String]) -> Result<Result<Vec<(String, Bytes)>, String>, Unwritten> {
        let mut node = node.clone();
        for name in node.output.iter_mut().filter(|name| !self.values.contains_key(*name)) {
            name.clear();
        }
        while node.output.last().is_some_and(String::is_empty) {
            node.output.pop();
        }
        if node.output.is_empty() {
            return Ok(Err("no value of it was seen".to_string()));
        }
        let (mut graph, mut files, mut defaults) = (GraphProto::default(), Vec::new(), Vec::new());
        for name in reads {
            let Some(held) = self.values.get(name) else {
                return Ok(Err(format!("{} has no value", quote(name))));
            };
            match held.value.tensor() {
                Ok(tensor) if held.constant => {
                    graph.initializer.push(messages::tensor(name, tensor)?);
                    defaults.push(messages::declared(name, &held.value));
                }
                _ => {
                    files.push((set("input", graph.input.len()), messages::encoded(name, &held.value)?));
                    graph.input.push(messages::declared(name, &held.value));
                }
            }
        }
        // Of old, an initializer is an input's default.
        if self.model.ir_version() < 4 {
            graph.input.append(&mut defaults);
        }
        let outputs = node.output.iter().filter_map(|name| Some((name, self.values.get(name)?)));
        for (k, (name, held)) in outputs.enumerate() {
            files.push((set("output", k), messages::encoded(name, &held.value)?));
            graph.output.push(messages::declared(name, &held.value));
        }
        let functions = self.functions(&node);
        graph.name = Some("node".to_string());
        graph.node = vec![node];
        let (ir_version, opset_import) = (self.model.ir_version, self.model.opset_import.clone());
        let model = ModelProto { ir_version, opset_import, functions, graph: Some(graph), ..ModelProto::default() };
        files.push(("model.onnx".to_string(), model.encode_to_vec().into()));
        Ok(Ok(files))
    }

    /// The functions of the model that a node calls, also from other functions and in subgraphs.
    fn functions(&self, node: &NodeProto) -> Vec<FunctionProto> {
        let (mut found, mut open) = (HashSet::new(), vec![node]);
        while let Some(node) = open.pop() {
            open.extend(messages::bodies(node).flat_map(|body| &body.node));
            let is_called = |function: &FunctionProto| {
                let (domain, overload) = (function.domain() == node.domain(), function.overload() == node.overload());
                domain && overload && function.name() == node.op_type()
            };
            if let Some(k) = self.model.functions.iter().position(is_called)
                && found.insert(k)
            {
                open.extend(self.model.functions.get(k).into_iter().flat_map(|function| &function.node));
            }
        }
        let called = self.model.functions.iter().enumerate().filter(|(k, _)| found.contains(k));
        called.map(|(_, function)| function.clone()).collect()
    }
}

/// The values that a node and its subgraphs read, each once.
fn reads(node: &NodeProto) -> Vec<String> {
    let mut reads: Vec<String> = Vec::new();
    for name in node.input.iter().cloned().chain(messages::captured(node)) {
        if !name.is_empty() && !reads.contains(&name) {
            reads.push(name);
        }
    }
    reads
}

/// The files as those of a case in an archive.
fn at_root(files: &[(String, Bytes)]) -> impl Iterator<Item = (String, Bytes)> {
    files.iter().map(|(path, bytes)| (format!("case/{path}"), bytes.clone()))
}
