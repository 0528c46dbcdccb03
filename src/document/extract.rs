//! The part of a model that computes some values.

use super::names::{Names, all_nodes};
use super::{Content, Document, Graph, Node, Part, ValueInfo};
use crate::error::{Error, Result, quote};
use std::collections::{HashMap, HashSet};

impl Document {
    /// Keeps the part of the model that computes `outputs` from `inputs`: values of the graph, in their new order. Without
    /// `inputs` all that the part needs are those of the model; without `outputs` all of the model stay. Functions and
    /// opset imports stay if a node needs them, bodies stay whole. `declare` gives types of values that are not inputs
    /// or outputs of the model. Returns the `inputs` that the outputs don't depend on; they stay too.
    ///
    /// # Errors
    /// The graph has no value of a name, a name is given twice, or the outputs need an input that isn't among `inputs`.
    ///
    /// ```
    /// use onnxref::document::{Document, Graph, Node, ValueInfo};
    /// use onnxref::DType;
    ///
    /// let graph = Graph::new("g")
    ///     .input(ValueInfo::tensor("x", DType::Float, ["n"]))
    ///     .node(Node::new("Relu", ["x"], ["a"]))
    ///     .node(Node::new("Neg", ["a"], ["b"]))
    ///     .output(ValueInfo::untyped("b"));
    /// let mut document = Document::new(graph, 22);
    /// document.extract(None, Some(&["a".to_string()]), &|_| None)?;
    /// assert_eq!((document.graph.nodes.len(), document.graph.outputs[0].name.as_str()), (1, "a"));
    /// # Ok::<(), onnxref::Error>(())
    /// ```
    pub fn extract(
        &mut self,
        inputs: Option<&[String]>,
        outputs: Option<&[String]>,
        declare: &dyn Fn(&str) -> Option<ValueInfo>,
    ) -> Result<Vec<String>> {
        for list in [inputs, outputs].into_iter().flatten() {
            let (defined, mut seen) = (self.graph.defined(), HashSet::new());
            for name in list {
                if !defined.contains(name.as_str()) {
                    self.check_name(name)?;
                }
                if !seen.insert(name) {
                    return Err(Error::input(format!("value {} is given twice", quote(name))).about(name));
                }
            }
        }
        let all: Vec<String>;
        let outputs = match outputs {
            Some(outputs) => outputs,
            None => {
                all = self.graph.outputs.iter().map(|info| info.name.clone()).collect();
                &all
            }
        };
        let part = Needed::new(&self.graph, inputs, outputs)?;
        let Needed { nodes, values, missing } = part;
        if !missing.is_empty() {
            let list: Vec<String> = missing.iter().map(|name| quote(name)).collect();
            let what = if list.len() == 1 { "input" } else { "inputs" };
            let text = format!("the outputs also need the {what} {}", list.join(", "));
            return Err(Error::input(text).about(missing.first().map_or("", String::as_str)));
        }
        let unused = inputs.unwrap_or_default().iter().filter(|name| !values.contains(*name)).cloned().collect();
        let kept_inputs: Vec<String> = match inputs {
            Some(inputs) => {
                // Inputs with a default stay inputs.
                let given: HashSet<&String> = inputs.iter().collect();
                let more = self.graph.inputs.iter().map(|info| &info.name);
                let more = more.filter(|name| values.contains(*name) && !given.contains(name));
                inputs.iter().chain(more).cloned().collect()
            }
            None => {
                let own = self.graph.inputs.iter().map(|info| &info.name);
                own.filter(|name| values.contains(*name)).cloned().collect()
            }
        };
        // An input that was computed is no longer; one that had a default keeps it if it was an input before.
        let was_input: HashSet<&str> = self.graph.inputs.iter().map(|info| info.name.as_str()).collect();
        let cut: HashSet<String> =
            kept_inputs.iter().filter(|name| !was_input.contains(name.as_str())).cloned().collect();
        // An input that is asked for keeps its default, even if no output depends on it.
        let asked: HashSet<&str> = kept_inputs.iter().map(String::as_str).collect();
        let keeps = |name: &str| (values.contains(name) || asked.contains(name)) && !cut.contains(name);
        let content: &mut Content = self;
        let graph: &mut Graph = &mut content.graph;
        let declared = {
            let [own, inside] = [typed(graph.inputs.iter().chain(&graph.outputs)), typed(&graph.value_info)];
            let info = |name: &String| {
                let own = own.get(name.as_str()).map(|info| (*info).clone());
                let known = own.or_else(|| declare(name).map(Into::into));
                let known = known.or_else(|| inside.get(name.as_str()).map(|info| (*info).clone()));
                known.unwrap_or_else(|| ValueInfo::untyped(name).into())
            };
            [kept_inputs.iter().map(info).collect(), outputs.iter().map(info).collect()]
        };
        [graph.inputs, graph.outputs] = declared;
        let mut kept = nodes.iter();
        graph.nodes.retain(|_| kept.next().is_some_and(|kept| *kept));
        // A node stays if another of its outputs is needed; what it gives in the place of an input has no reader.
        let mut names = Names::default();
        names.add(graph.defined().into_iter().chain(graph.inside()));
        // Bodies see all inputs. A value of a body may have the name of one that was computed later.
        graph.rename_inside(&cut, &mut names);
        for node in &mut graph.nodes {
            node.change_if(|node| {
                let given = node.outputs.iter_mut().filter(|output| asked.contains(output.as_str()));
                given.map(|output| *output = names.make(&format!("{output}_computed"))).count() > 0
            });
        }
        graph.initializers.retain(|tensor| keeps(&tensor.name));
        graph.sparse_initializers.retain(|tensor| keeps(tensor.name()));
        let declared: HashSet<&str> = kept_inputs.iter().chain(outputs).map(String::as_str).collect();
        let defined: HashSet<String> = graph.defined().into_iter().map(str::to_string).collect();
        graph.value_info.retain(|info| defined.contains(&info.name) && !declared.contains(info.name.as_str()));
        graph.keep_annotations(&defined);
        content.drop_training();
        content.keep_used();
        Ok(unused)
    }
}

impl Graph {
    /// Drops the annotations of values, or with parameters, that are gone.
    pub(super) fn keep_annotations(&mut self, defined: &HashSet<String>) {
        self.quantization_annotations.retain(|annotation| {
            defined.contains(&annotation.tensor_name)
                && annotation.parameters.iter().all(|entry| defined.contains(&entry.value))
        });
    }
}

/// The first declaration of each value that has a type.
fn typed<'a>(list: impl IntoIterator<Item = &'a Part<ValueInfo>>) -> HashMap<&'a str, &'a Part<ValueInfo>> {
    let mut all = HashMap::new();
    for info in list.into_iter().filter(|info| info.value_type.is_some()) {
        all.entry(info.name.as_str()).or_insert(info);
    }
    all
}

/// The number of the field `training_info` of a model.
const TRAINING_INFO: u32 = 20;

/// What the outputs need, and what is annotated of it.
pub(super) struct Needed {
    /// Whether each node is needed.
    pub(super) nodes: Vec<bool>,
    pub(super) values: HashSet<String>,
    /// Inputs that are needed and not allowed.
    missing: Vec<String>,
}

impl Needed {
    pub(super) fn new(graph: &Graph, inputs: Option<&[String]>, outputs: &[String]) -> Result<Needed> {
        let mut makers: HashMap<&str, usize> = HashMap::new();
        for (place, node) in graph.nodes.iter().enumerate() {
            makers.extend(node.outputs.iter().filter(|name| !name.is_empty()).map(|name| (name.as_str(), place)));
        }
        let constants: HashSet<&str> = graph.initializers.iter().map(|tensor| tensor.name.as_str()).collect();
        let own: HashSet<&str> = graph.inputs.iter().map(|info| info.name.as_str()).collect();
        let cut: HashSet<&str> = inputs.unwrap_or_default().iter().map(String::as_str).collect();
        let mut parameters: HashMap<&str, Vec<&str>> = HashMap::new();
        for annotation in &graph.quantization_annotations {
            let own = annotation.parameters.iter().map(|entry| entry.value.as_str());
            parameters.entry(&annotation.tensor_name).or_default().extend(own.filter(|name| constants.contains(name)));
        }
        let mut needed = Needed { nodes: vec![false; graph.nodes.len()], values: HashSet::new(), missing: Vec::new() };
        let mut open: Vec<&str> = outputs.iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            if !needed.values.insert(name.to_string()) {
                continue;
            }
            open.extend(parameters.remove(name).into_iter().flatten());
            if cut.contains(name) {
                continue;
            }
            if own.contains(name) {
                if inputs.is_some() && !constants.contains(name) {
                    needed.missing.push(name.to_string());
                }
                continue;
            }
            let Some((place, node)) = makers.get(name).and_then(|place| Some((*place, graph.nodes.get(*place)?)))
            else {
                continue;
            };
            if let Some(kept) = needed.nodes.get_mut(place).filter(|kept| !**kept) {
                *kept = true;
                open.extend(node.used());
            }
        }
        needed.missing.sort();
        Ok(needed)
    }
}

impl Content {
    /// Whether it says how to train the model (`training_info`).
    pub fn has_training(&self) -> bool {
        self.other.numbers().any(|number| number == TRAINING_INFO)
    }

    /// Drops what tells of nodes and values that may be others now.
    pub(super) fn drop_training(&mut self) {
        self.other.remove(TRAINING_INFO);
    }

    /// Drops functions that nothing calls, and imports of opsets that nothing uses.
    pub fn keep_used(&mut self) {
        let mut domains = HashSet::new();
        all_nodes(&self.graph.nodes, &mut |node| {
            domains.insert(domain(&node.domain).to_string());
        });
        let mut kept = self.called().into_iter();
        self.functions.retain(|_| kept.next().unwrap_or(true));
        // A function that is called has imports of its own, but engines look for its calls among those of the model.
        for function in &self.functions {
            all_nodes(&function.nodes, &mut |node| {
                domains.insert(domain(&node.domain).to_string());
            });
        }
        if !domains.is_empty() {
            self.opset_imports.retain(|import| {
                let domain = domain(&import.domain);
                domain.is_empty() || domains.contains(domain)
            });
        }
    }

    /// Whether each function is called, by the graph or by a function that is.
    fn called(&self) -> Vec<bool> {
        let mut uncalled: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, function) in self.functions.iter().enumerate() {
            let key = (domain(&function.domain), function.name.as_str(), function.overload.as_str());
            uncalled.entry(key).or_default().push(place);
        }
        let mut called = vec![false; self.functions.len()];
        let mut open = vec![&self.graph.nodes];
        while let Some(nodes) = open.pop() {
            all_nodes(nodes, &mut |node: &Node| {
                let key = (domain(&node.domain), node.op_type.as_str(), node.overload.as_str());
                for place in uncalled.remove(&key).unwrap_or_default() {
                    called.get_mut(place).into_iter().for_each(|called| *called = true);
                    open.extend(self.functions.get(place).map(|function| &function.nodes));
                }
            });
        }
        called
    }
}

/// The standard's domain has two names.
pub(super) fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}
