//! One of the two graphs, with hashes of what its nodes compute, and of what follows them.

use onnxref::inspect::{GraphDetails, NodeDetails, Origin};
use onnxref::schema::{self, Attribute};
use onnxref::{Tensor, Value};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What of a node is compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Level {
    /// Operator, attributes, and the elements of constants.
    Exact,
    /// Of constants, type and shape only.
    Shapes,
    /// The operator.
    Operators,
}

/// A graph with what is known of its nodes.
pub(super) struct Side<'a> {
    pub(super) graph: &'a GraphDetails,
    /// Whether a node computes something: a Constant doesn't.
    pub(super) works: Vec<bool>,
    /// The attributes that are given, without those that have their default, by name.
    pub(super) attributes: Vec<Vec<(&'a str, &'a Attribute)>>,
    /// The nodes that read a value, with the place among their inputs; `BODY` if a subgraph reads it.
    pub(super) readers: Vec<Vec<(usize, usize)>>,
    /// The elements of each constant.
    contents: Vec<Option<u64>>,
}

/// The place of a value that a subgraph reads.
pub(super) const BODY: usize = usize::MAX;

/// A value that is the same in every run.
#[derive(Clone, Copy)]
pub(super) enum Fixed<'a> {
    Value(&'a Value),
    /// The attributes of a Constant.
    Given(&'a [(String, Attribute)]),
}

impl<'a> Fixed<'a> {
    pub(super) fn value(self) -> Option<&'a Value> {
        if let Fixed::Value(value) = self { Some(value) } else { None }
    }
}

/// The hash of something.
pub(super) fn hashed(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The default values of attributes, by operator and version.
#[derive(Default)]
pub(super) struct Defaults(HashMap<(String, String, i64), Vec<(String, Attribute)>>);

impl Defaults {
    fn is_default(&mut self, node: &NodeDetails, name: &str, value: &Attribute) -> bool {
        let key = (node.domain.clone(), node.operator.clone(), node.version.unwrap_or(0));
        let defaults = self.0.entry(key).or_insert_with(|| {
            let schema = schema::resolve(&node.domain, &node.operator, node.version.unwrap_or(0));
            let attributes = schema.map(|schema| schema.attributes).unwrap_or_default();
            attributes.into_iter().filter_map(|attribute| Some((attribute.name, attribute.default?))).collect()
        });
        defaults.iter().any(|(known, default)| known == name && is_same(default, value))
    }
}

impl<'a> Side<'a> {
    pub(super) fn new(graph: &'a GraphDetails, defaults: &mut Defaults) -> Side<'a> {
        let is_constant = |node: &NodeDetails| node.operator == "Constant" && node.domain.is_empty();
        let works = graph.nodes.iter().map(|node| !is_constant(node)).collect();
        let attributes = graph.nodes.iter().map(|node| {
            let given = node.attributes.iter().map(|(name, value)| (name.as_str(), value));
            let mut given: Vec<_> = given.filter(|(name, value)| !defaults.is_default(node, name, value)).collect();
            given.sort_by_key(|(name, _)| *name);
            given
        });
        let attributes = attributes.collect();
        let mut readers = vec![Vec::new(); graph.values.len()];
        for (k, node) in graph.nodes.iter().enumerate().filter(|(_, node)| !is_constant(node)) {
            let captured = node.bodies.iter().flat_map(|(_, body)| &body.captured).map(|(_, outer)| (BODY, *outer));
            let inputs = node.inputs.iter().enumerate().filter_map(|(slot, at)| Some((slot, (*at)?)));
            for (slot, at) in inputs.chain(captured) {
                readers.get_mut(at).into_iter().for_each(|readers: &mut Vec<_>| readers.push((k, slot)));
            }
        }
        let mut side = Side { graph, works, attributes, readers, contents: Vec::new() };
        side.contents = (0..graph.values.len()).map(|at| side.fixed(at).map(content)).collect();
        side
    }

    /// The inputs that must be fed.
    pub(super) fn inputs(&self) -> Vec<usize> {
        self.graph.inputs.iter().copied().filter(|at| self.fixed(*at).is_none()).collect()
    }

    /// The value, if it is an initializer or a Constant gives it; also as the default of an input.
    pub(super) fn fixed(&self, at: usize) -> Option<Fixed<'a>> {
        let value = self.graph.values.get(at)?;
        match value.origin {
            Origin::Initializer => value.constant.as_ref().map(Fixed::Value),
            Origin::Input => value.default.as_ref().map(Fixed::Value),
            Origin::Node(k) if self.works.get(k) == Some(&false) => match &value.constant {
                Some(constant) => Some(Fixed::Value(constant)),
                None => Some(Fixed::Given(&self.graph.nodes.get(k)?.attributes)),
            },
            _ => None,
        }
    }

    /// The node that computes a value, and the place among its outputs.
    pub(super) fn producer(&self, at: usize) -> Option<(usize, usize)> {
        let Origin::Node(k) = self.graph.values.get(at)?.origin else { return None };
        let node = self.graph.nodes.get(k).filter(|_| self.works.get(k) == Some(&true))?;
        Some((k, node.outputs.iter().position(|output| *output == Some(at))?))
    }

    pub(super) fn node(&self, k: usize) -> Option<&'a NodeDetails> {
        self.graph.nodes.get(k)
    }

    /// The hash of the elements of a constant.
    pub(super) fn content(&self, at: usize) -> Option<u64> {
        self.contents.get(at).copied().flatten()
    }

    fn constant(&self, at: usize, level: Level) -> Option<u64> {
        let content = self.content(at)?;
        let tensor = || self.fixed(at)?.value()?.tensor().ok();
        Some(match (level, tensor()) {
            (Level::Exact, _) => content,
            (Level::Shapes, Some(tensor)) => hashed((tensor.dtype(), tensor.shape())),
            (Level::Shapes, None) => content,
            (Level::Operators, _) => 0,
        })
    }

    /// What a node is by itself: its operator, its attributes, and the constants that it reads.
    pub(super) fn own(&self, k: usize, level: Level) -> u64 {
        let Some(node) = self.node(k) else { return 0 };
        let mut hasher = DefaultHasher::new();
        (&node.domain, &node.operator).hash(&mut hasher);
        if level != Level::Operators {
            for (name, value) in self.attributes.get(k).into_iter().flatten() {
                name.hash(&mut hasher);
                attribute(value, &mut hasher);
            }
        }
        if level == Level::Operators {
            return hasher.finish();
        }
        let constants = node.inputs.iter().map(|at| at.and_then(|at| self.constant(at, level)));
        constants.enumerate().filter(|(_, hash)| hash.is_some()).for_each(|constant| constant.hash(&mut hasher));
        hasher.finish()
    }

    /// Hashes of what each node computes, and of values: from those of the graph's inputs and captured values, in `known`.
    pub(super) fn down(&self, level: Level, known: &HashMap<usize, u64>) -> (Vec<u64>, HashMap<usize, u64>) {
        let (mut nodes, mut values) = (Vec::with_capacity(self.graph.nodes.len()), known.clone());
        for (k, node) in self.graph.nodes.iter().enumerate() {
            let of = |at: usize| values.get(&at).copied().or_else(|| self.constant(at, level)).unwrap_or(0);
            let inputs: Vec<Option<u64>> = node.inputs.iter().map(|at| at.map(of)).collect();
            let bodies = node.bodies.iter().map(|(name, body)| {
                let captured = body.captured.iter().map(|(inner, outer)| (*inner, of(*outer)));
                let inputs = body.inputs.iter().enumerate().map(|(k, at)| (*at, hashed(("input", k))));
                let side = Side::new(body, &mut Defaults::default());
                let (_, values) = side.down(level, &captured.chain(inputs).collect());
                let out = |at: &usize| values.get(at).copied().or_else(|| side.constant(*at, level));
                (name, body.outputs.iter().map(out).collect::<Vec<_>>())
            });
            let bodies: Vec<_> = bodies.collect();
            let hash = hashed((self.own(k, level), inputs, bodies));
            nodes.push(hash);
            if self.works.get(k) == Some(&true) {
                let outputs = node.outputs.iter().enumerate().filter_map(|(j, at)| Some(((*at)?, hashed((hash, j)))));
                values.extend(outputs);
            }
        }
        (nodes, values)
    }

    /// Hashes of what follows each node: the nodes that read its outputs, and the outputs of the graph, by the keys in
    /// `outputs`.
    pub(super) fn up(&self, level: Level, outputs: &HashMap<usize, Vec<usize>>) -> Vec<u64> {
        let mut nodes = vec![0; self.graph.nodes.len()];
        for (k, node) in self.graph.nodes.iter().enumerate().rev() {
            let read = |at: &Option<usize>| {
                let readers = at.and_then(|at| self.readers.get(at));
                let hash = |(reader, slot): &(usize, usize)| (nodes.get(*reader).copied().unwrap_or(0), *slot);
                let mut readers: Vec<(u64, usize)> = readers.into_iter().flatten().map(hash).collect();
                readers.sort_unstable();
                (readers, at.and_then(|at| outputs.get(&at)))
            };
            let hash = hashed((self.own(k, level), node.outputs.iter().map(read).collect::<Vec<_>>()));
            nodes.get_mut(k).into_iter().for_each(|node| *node = hash);
        }
        nodes
    }
}

/// Whether attributes have the same bits.
pub(super) fn is_same(one: &Attribute, other: &Attribute) -> bool {
    match (one, other) {
        (Attribute::Float(one), Attribute::Float(other)) => one.to_bits() == other.to_bits(),
        (Attribute::Floats(one), Attribute::Floats(other)) => {
            one.iter().map(|value| value.to_bits()).eq(other.iter().map(|value| value.to_bits()))
        }
        _ => one == other,
    }
}

/// The elements of a constant.
fn content(fixed: Fixed<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match fixed {
        Fixed::Value(Value::Tensor(of)) => tensor(of, &mut hasher),
        Fixed::Value(other) => other.to_string().hash(&mut hasher),
        Fixed::Given(attributes) => attributes.iter().for_each(|(name, value)| {
            name.hash(&mut hasher);
            attribute(value, &mut hasher);
        }),
    }
    hasher.finish()
}

fn tensor(tensor: &Tensor, hasher: &mut DefaultHasher) {
    (tensor.dtype(), tensor.shape()).hash(hasher);
    match tensor.strings() {
        Ok(strings) => strings.for_each(|text| text.hash(hasher)),
        Err(_) => tensor.bytes().hash(hasher),
    }
}

fn attribute(value: &Attribute, hasher: &mut DefaultHasher) {
    match value {
        Attribute::Float(value) => value.to_bits().hash(hasher),
        Attribute::Int(value) => value.hash(hasher),
        Attribute::String(text) => text.hash(hasher),
        Attribute::Tensor(of) | Attribute::SparseTensor(of) => tensor(of, hasher),
        Attribute::Floats(values) => values.iter().for_each(|value| value.to_bits().hash(hasher)),
        Attribute::Ints(values) => values.hash(hasher),
        Attribute::Strings(texts) => texts.hash(hasher),
        Attribute::Tensors(all) | Attribute::SparseTensors(all) => all.iter().for_each(|of| tensor(of, hasher)),
        other => format!("{other:?}").hash(hasher),
    }
}
