//! Names of values: what a graph defines, what it captures, renaming.

use super::{Document, Graph, Node, Part, SparseInitializer};
use crate::error::{Error, Result, quote};
use std::collections::{HashMap, HashSet};

impl SparseInitializer {
    /// The name, which its values have.
    pub fn name(&self) -> &str {
        self.values.as_ref().map_or("", |values| &values.name)
    }
}

impl Graph {
    /// The names of all values that the graph itself has: inputs, initializers, outputs of nodes. Those of bodies are not
    /// among them.
    pub fn defined(&self) -> HashSet<&str> {
        let inputs = self.inputs.iter().map(|info| info.name.as_str());
        let initializers = self.initializers.iter().map(|tensor| tensor.name.as_str());
        let sparse = self.sparse_initializers.iter().map(|tensor| tensor.name());
        let outputs = self.nodes.iter().flat_map(|node| &node.outputs).map(String::as_str);
        inputs.chain(initializers).chain(sparse).chain(outputs).filter(|name| !name.is_empty()).collect()
    }

    /// The names of values that the graph, which is a body, reads from the graphs around it.
    pub fn captured(&self) -> HashSet<&str> {
        let mut used: HashSet<&str> = self.nodes.iter().flat_map(|node| node.used()).collect();
        used.extend(self.outputs.iter().map(|info| info.name.as_str()));
        let defined = self.defined();
        used.retain(|name| !name.is_empty() && !defined.contains(name));
        used
    }

    /// Whether a body of a node, or a body in it, has a value of this name.
    pub fn is_inside(&self, name: &str) -> bool {
        let bodies = self.nodes.iter().flat_map(|node| node.bodies());
        bodies.into_iter().any(|body| body.defined().contains(name) || body.is_inside(name))
    }

    /// The names of all values of bodies.
    pub(super) fn inside(&self) -> HashSet<&str> {
        let bodies = self.nodes.iter().flat_map(|node| node.bodies());
        bodies.flat_map(|body| body.inside().into_iter().chain(body.defined())).collect()
    }

    /// Gives values of bodies that have one of these names another one. Returns whether there is any.
    pub(super) fn rename_inside(&mut self, hidden: &HashSet<String>, names: &mut Names) -> bool {
        self.each_body(&mut |_, body| {
            let mut own: Vec<String> =
                body.defined().into_iter().filter(|name| hidden.contains(*name)).map(str::to_string).collect();
            own.sort_unstable();
            let new: Vec<String> = own.iter().map(|name| names.make(name)).collect();
            let renamed: Renamed<'_> = own.iter().map(String::as_str).zip(new.iter().map(String::as_str)).collect();
            let changed = !renamed.is_empty() && body.rename_uses(&renamed);
            body.rename_inside(hidden, names) | changed
        })
    }

    /// Renames what the graph uses. Returns whether there is any.
    pub(super) fn rename_uses(&mut self, names: &Renamed<'_>) -> bool {
        let mut changed = false;
        for node in &mut self.nodes {
            changed |= node.change_if(|node| node.rename(names));
        }
        let Graph { inputs, outputs, value_info, .. } = self;
        for info in inputs.iter_mut().chain(outputs).chain(value_info) {
            changed |= info.change_if(|info| replace(&mut info.name, names));
        }
        for tensor in &mut self.initializers {
            changed |= tensor.change_if(|tensor| replace(&mut tensor.name, names));
        }
        for sparse in &mut self.sparse_initializers {
            changed |= sparse.change_if(|sparse| {
                sparse.values.as_mut().is_some_and(|values| values.change_if(|v| replace(&mut v.name, names)))
            });
        }
        for annotation in &mut self.quantization_annotations {
            changed |= annotation.change_if(|annotation| {
                let mut changed = replace(&mut annotation.tensor_name, names);
                for entry in &mut annotation.parameters {
                    changed |= entry.change_if(|entry| replace(&mut entry.value, names));
                }
                changed
            });
        }
        changed
    }
}

/// The names of all values, and new ones that none of them has.
#[derive(Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// The number that was given last, by the name that was wanted.
    numbers: HashMap<String, usize>,
}

impl Names {
    pub(super) fn add(&mut self, names: impl IntoIterator<Item: Into<String>>) {
        self.taken.extend(names.into_iter().map(Into::into));
    }

    /// A new name: the one that is wanted, or that with a number.
    pub(super) fn make(&mut self, wanted: &str) -> String {
        if self.taken.insert(wanted.to_string()) {
            return wanted.to_string();
        }
        // Numbers that are taken aren't tried again, whatever names a model has.
        let number = self.numbers.entry(wanted.to_string()).or_insert(1);
        loop {
            *number += 1;
            let name = format!("{wanted}_{number}");
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// New names of values, by the old ones.
pub(super) type Renamed<'a> = HashMap<&'a str, &'a str>;

impl Node {
    /// The names of the values that the node reads, those that its bodies capture included.
    pub fn used(&self) -> HashSet<&str> {
        let inputs = self.inputs.iter().map(String::as_str).filter(|name| !name.is_empty());
        self.bodies().flat_map(|body| body.captured()).chain(inputs).collect()
    }

    fn rename(&mut self, names: &Renamed<'_>) -> bool {
        let mut changed = false;
        for name in self.inputs.iter_mut().chain(&mut self.outputs) {
            changed |= replace(name, names);
        }
        for attribute in &mut self.attributes {
            changed |= attribute.change_if(|attribute| {
                let mut changed = false;
                for body in attribute.graphs_mut() {
                    // A body may have another value of a name.
                    let captured = body.captured();
                    let own = captured.iter().filter_map(|name| names.get_key_value(*name));
                    let own: Renamed<'_> = own.map(|(old, new)| (*old, *new)).collect();
                    changed |= !own.is_empty() && body.change_if(|body| body.rename_uses(&own));
                }
                changed
            });
        }
        changed
    }
}

fn replace(name: &mut String, names: &Renamed<'_>) -> bool {
    let new = names.get(name.as_str());
    new.map(|new| *name = (*new).to_string()).is_some()
}

impl Document {
    /// Renames a value of the graph wherever it is used, in bodies too. Its own name changes nothing.
    ///
    /// # Errors
    /// The graph has no such value, or the new name is that of another value, of the graph or of a body.
    ///
    /// ```
    /// use onnxref::document::Document;
    ///
    /// let path = "onnx-test-data/gather/onnx-1.12.0/node/test_gather_0/model.onnx";
    /// let mut document = Document::read(path)?;
    /// document.rename("data", "table")?;
    /// assert_eq!((document.graph.inputs[0].name.as_str(), document.graph.nodes[0].inputs[0].as_str()), ("table", "table"));
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn rename(&mut self, old: &str, new: &str) -> Result<()> {
        self.check_name(old)?;
        if new.is_empty() {
            return Err(Error::input("a value's name can't be empty").about(old));
        }
        if new == old {
            return Ok(());
        }
        if self.graph.defined().contains(new) || self.graph.is_inside(new) {
            return Err(Error::input(format!("there is a value {} already", quote(new))).about(new));
        }
        self.change_if(|content| {
            content.drop_training();
            content.graph.change_if(|graph: &mut Graph| graph.rename_uses(&[(old, new)].into()))
        });
        Ok(())
    }

    /// Checks that the graph has a value.
    ///
    /// # Errors
    /// It has none of this name; it is inside of a body.
    pub fn check_name(&self, name: &str) -> Result<()> {
        if self.graph.defined().contains(name) {
            return Ok(());
        }
        let text = if self.graph.is_inside(name) {
            format!("value {} is inside of a body of a node: a value of the graph itself is needed", quote(name))
        } else {
            format!("the graph has no value {}", quote(name))
        };
        Err(Error::input(text).about(name))
    }
}

/// The nodes of a graph or a function, and those of all bodies in them.
pub(super) fn all_nodes<'a>(nodes: &'a [Part<Node>], each: &mut dyn FnMut(&'a Node)) {
    for node in nodes {
        each(node);
        node.bodies().for_each(|body| all_nodes(&body.nodes, each));
    }
}
