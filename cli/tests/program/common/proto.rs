//! Models as bytes.
#![allow(dead_code)] // the tests of pictures use some of it

use onnxref::DType;

/// A model `y = Gather(data, indices)` that declares the element type of its inputs only.
pub(crate) fn gather(dtype: DType) -> Vec<u8> {
    model(&node("Gather", &["data", "indices"], "y"), &[("data", Some(dtype)), ("indices", Some(DType::Int64))], 13)
}

/// A model of nodes, with inputs and an output `y`.
pub(crate) fn model(nodes: &[u8], inputs: &[(&str, Option<DType>)], opset: u64) -> Vec<u8> {
    let mut graph = [nodes, &bytes(2, b"graph")].concat();
    for (name, dtype) in inputs {
        // Without an element type nothing is said about the input.
        let dtype = dtype.map(|dtype| bytes(2, &bytes(1, &number(1, dtype.code() as u64)))).unwrap_or_default();
        graph.extend(bytes(11, &[bytes(1, name.as_bytes()), dtype].concat()));
    }
    graph.extend(bytes(12, &bytes(1, b"y")));
    [number(1, 8), bytes(7, &graph), bytes(8, &[bytes(1, b""), number(2, opset)].concat())].concat()
}

/// A node of a graph.
pub(crate) fn node(operator: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let inputs = inputs.iter().flat_map(|name| bytes(1, name.as_bytes()));
    bytes(1, &inputs.chain(bytes(2, output.as_bytes())).chain(bytes(4, operator.as_bytes())).collect::<Vec<_>>())
}

/// A node with attributes; one of the domain "f" calls a function.
pub(crate) fn several(operator: &str, inputs: &[&str], outputs: &[&str], attributes: &[Vec<u8>]) -> Vec<u8> {
    let (domain, operator) = operator.split_once('.').unwrap_or(("", operator));
    let [inputs, outputs] = [(1, inputs), (2, outputs)]
        .map(|(field, names)| names.iter().flat_map(|n| bytes(field, n.as_bytes())).collect());
    let parts: [Vec<u8>; 5] =
        [inputs, outputs, bytes(4, operator.as_bytes()), attributes.concat(), bytes(7, domain.as_bytes())];
    parts.concat()
}

/// The value before the node `k` of a chain of `count` nodes, which leads from "x" to "y".
pub(crate) fn link(k: usize, count: usize) -> String {
    match k {
        0 => "x".to_string(),
        k if k == count => "y".to_string(),
        k => format!("v{k}"),
    }
}

/// An attribute.
pub(crate) fn int(name: &str, value: u64) -> Vec<u8> {
    bytes(5, &[bytes(1, name.as_bytes()), number(3, value), number(20, 2)].concat())
}

/// An attribute with a graph.
pub(crate) fn body(name: &str, graph: &[u8]) -> Vec<u8> {
    bytes(5, &[bytes(1, name.as_bytes()), bytes(6, graph), number(20, 5)].concat())
}

/// A graph.
pub(crate) fn graph(nodes: &[Vec<u8>], inputs: &[(&str, DType)], outputs: &[&str]) -> Vec<u8> {
    let input = |(name, dtype): &(&str, DType)| {
        bytes(11, &[bytes(1, name.as_bytes()), bytes(2, &bytes(1, &number(1, dtype.code() as u64)))].concat())
    };
    let nodes = nodes.iter().flat_map(|node| bytes(1, node));
    let outputs = outputs.iter().flat_map(|name| bytes(12, &bytes(1, name.as_bytes())));
    nodes.chain(bytes(2, b"g")).chain(inputs.iter().flat_map(input)).chain(outputs).collect()
}

/// A protobuf field of bytes, text or a message.
pub(crate) fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A protobuf field of a number.
pub(crate) fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
