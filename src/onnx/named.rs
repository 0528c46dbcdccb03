//! The operators that a model names, whether it can run or not.

use super::functions::each_node;
use super::graph::decoded;
use super::opsets::domain_of;
use super::proto::{FunctionProto, NodeProto};
use super::{scan, shallow};
use crate::error::Result;
use crate::files::ModelFiles;
use bytes::Bytes;
use std::collections::BTreeSet;

/// Domain and name of each operator, those in functions and subgraphs included.
///
/// # Errors
/// If the file is not a model, or decoding it exceeds a limit.
pub(crate) fn operators(file: Bytes, files: &ModelFiles) -> Result<BTreeSet<(String, String)>> {
    files.budget.allow_for(file.len() as u64);
    scan::check_model(&file, files)?;
    let model: shallow::Model = decoded(file)?;
    let mut named = BTreeSet::new();
    let mut add = |nodes: &[NodeProto]| {
        named.extend(
            each_node(nodes)
                .map(|node| (domain_of(node.domain.as_deref()).to_string(), node.op_type.clone().unwrap_or_default())),
        );
    };
    // One part at a time: the scan counts on it.
    for node in model.graph.into_iter().flat_map(|graph| graph.node) {
        add(&[decoded(node)?]);
    }
    for function in model.functions {
        add(&decoded::<FunctionProto>(function)?.node);
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::proto::{AttributeProto, GraphProto, ModelProto};
    use prost::Message;

    fn node(domain: &str, name: &str, body: Vec<NodeProto>) -> NodeProto {
        let graph = GraphProto { node: body, ..Default::default() };
        let attribute = AttributeProto { g: Some(Box::new(graph)), ..Default::default() };
        NodeProto {
            op_type: Some(name.to_string()),
            domain: Some(domain.to_string()),
            attribute: vec![attribute],
            ..Default::default()
        }
    }

    #[test]
    fn functions_and_subgraphs_count() {
        let inner = node("ai.onnx", "Loop", vec![node("com.example", "Own", vec![])]);
        let graph =
            GraphProto { node: vec![node("", "If", vec![inner]), node("", "If", vec![])], ..Default::default() };
        let function = FunctionProto { node: vec![node("", "Gather", vec![])], ..Default::default() };
        let model = ModelProto { graph: Some(graph), functions: vec![function], ..Default::default() };
        let named = operators(model.encode_to_vec().into(), &ModelFiles::none()).unwrap();
        let named: Vec<(&str, &str)> = named.iter().map(|(domain, name)| (domain.as_str(), name.as_str())).collect();
        assert_eq!(named, [("", "Gather"), ("", "If"), ("", "Loop"), ("com.example", "Own")]);
        for other in ["", "other"] {
            assert!(operators(Bytes::from_static(other.as_bytes()), &ModelFiles::none()).is_err());
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = (0..50).fold(node("", "If", vec![]), |node, _| self::node("", "If", vec![node]));
        let graph = GraphProto { node: vec![deep], ..Default::default() };
        let model = ModelProto { graph: Some(graph), ..Default::default() };
        let error = operators(model.encode_to_vec().into(), &ModelFiles::none()).unwrap_err();
        assert_eq!(error.place().limit, Some("nesting"), "{error}");
    }
}
