//! Bodies that run once, as nodes of the graph around them.

use super::names::{Names, Renamed};
use super::{Graph, Node};
use std::collections::{HashMap, HashSet};

impl Graph {
    /// Puts the nodes of a body in the place of its node: a branch of an If. Values of the body get other names if theirs
    /// are in use. Returns whether there is such a body without inputs, which gives as many values as the node.
    ///
    /// ```
    /// use onnxref::document::{Graph, Node, ValueInfo};
    ///
    /// let body = |op: &str| Graph::new(op).node(Node::new(op, ["x"], ["a"])).output(ValueInfo::untyped("a"));
    /// let branch = Node::new("If", ["up"], ["y"]).attribute("then_branch", body("Abs")).attribute("else_branch", body("Neg"));
    /// let mut graph = Graph::new("g").node(branch);
    /// assert!(graph.inline(0, "else_branch"));
    /// assert_eq!((graph.nodes[0].op_type.as_str(), graph.nodes[0].outputs[0].as_str()), ("Neg", "y"));
    /// ```
    pub fn inline(&mut self, node: usize, attribute: &str) -> bool {
        let Some(known) = self.nodes.get(node) else { return false };
        let attribute = known.attributes.iter().find(|own| own.name == attribute);
        let Some(body) = attribute.and_then(|attribute| attribute.graphs().first()) else { return false };
        let (mut body, outputs) = ((**body).clone(), known.outputs.clone());
        if !body.inputs.is_empty() || body.outputs.len() < outputs.len() {
            return false;
        }
        self.nodes.remove(node);
        let mut taken = Names::default();
        taken.add(self.defined().into_iter().chain(self.inside()).chain(body.inside()).chain(body.captured()));
        let computed: HashSet<&str> = body.nodes.iter().flat_map(|node| &node.outputs).map(String::as_str).collect();
        let mut names: HashMap<String, String> = HashMap::new();
        let mut passed = Vec::new();
        for (name, info) in outputs.iter().zip(&body.outputs).filter(|(name, _)| !name.is_empty()) {
            taken.add([name]);
            if computed.contains(info.name.as_str()) && !names.contains_key(&info.name) {
                names.insert(info.name.clone(), name.clone());
            } else {
                passed.push((info.name.clone(), name.clone()));
            }
        }
        let mut own: Vec<&str> = body.defined().into_iter().collect();
        own.sort_unstable();
        for old in own {
            if !names.contains_key(old) {
                names.insert(old.to_string(), taken.make(old));
            }
        }
        names.retain(|old, new| old != new);
        body.rename_uses(&names.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect::<Renamed<'_>>());
        // What the body returns without computing it.
        let copies = passed.into_iter().map(|(from, to)| {
            let from = names.get(&from).unwrap_or(&from).clone();
            Node::new("Identity", [from], [to]).into()
        });
        let nodes: Vec<_> = body.nodes.into_iter().chain(copies).collect();
        self.nodes.splice(node..node, nodes);
        self.initializers.extend(body.initializers);
        self.sparse_initializers.extend(body.sparse_initializers);
        self.value_info.extend(body.value_info);
        self.quantization_annotations.extend(body.quantization_annotations);
        true
    }
}
