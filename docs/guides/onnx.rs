// Bytes of small models for the examples of the guides: protobuf messages written by hand.

use onnxref::DType;

/// A field that holds a number.
pub fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field that holds bytes: a text or a message.
pub fn bytes(field: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
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

/// An `.onnx` file from the parts of its graph. It imports opset 13 of the standard and version 1 of com.example.
pub fn model(parts: &[Vec<u8>]) -> Vec<u8> {
    let standard = bytes(8, number(2, 13));
    let example = bytes(8, [bytes(1, "com.example"), number(2, 1)].concat());
    [number(1, 8), bytes(7, parts.concat()), standard, example].concat()
}

/// A node: `operator` is `Name` or `domain.Name`, attributes come from [`int`] and [`float`].
pub fn node(operator: &str, inputs: &[&str], outputs: &[&str], attributes: &[Vec<u8>]) -> Vec<u8> {
    let (domain, name) = operator.rsplit_once('.').unwrap_or(("", operator));
    let inputs: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name)).collect();
    let outputs: Vec<u8> = outputs.iter().flat_map(|name| bytes(2, name)).collect();
    bytes(1, [inputs, outputs, bytes(4, name), attributes.concat(), bytes(7, domain)].concat())
}

/// An attribute of kind INT.
pub fn int(name: &str, value: i64) -> Vec<u8> {
    bytes(5, [bytes(1, name), number(3, value as u64), number(20, 2)].concat())
}

/// An attribute of kind FLOAT.
pub fn float(name: &str, value: f32) -> Vec<u8> {
    bytes(5, [bytes(1, name), vec![2 << 3 | 5], value.to_le_bytes().to_vec(), number(20, 1)].concat())
}

/// An input of the graph: a tensor with a declared shape.
pub fn input(name: &str, dtype: DType, shape: &[u64]) -> Vec<u8> {
    declared(11, name, dtype, shape.iter().map(|size| number(1, *size)).collect())
}

/// An input of the graph: a tensor whose first dimension has a name instead of a size.
pub fn open_input(name: &str, dtype: DType, first: &str, rest: &[u64]) -> Vec<u8> {
    let rest = rest.iter().map(|size| number(1, *size));
    declared(11, name, dtype, std::iter::once(bytes(2, first)).chain(rest).collect())
}

/// An output of the graph with a declared type and shape.
pub fn declared_output(name: &str, dtype: DType, shape: &[u64]) -> Vec<u8> {
    declared(12, name, dtype, shape.iter().map(|size| number(1, *size)).collect())
}

fn declared(field: u64, name: &str, dtype: DType, dims: Vec<Vec<u8>>) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|dim| bytes(1, dim)).collect();
    let tensor = [number(1, dtype.code() as u64), bytes(2, dims)].concat();
    bytes(field, [bytes(1, name), bytes(2, bytes(1, tensor))].concat())
}

/// An input of the graph: a tensor of any shape.
pub fn any_shape(name: &str, dtype: DType) -> Vec<u8> {
    bytes(11, [bytes(1, name), bytes(2, bytes(1, number(1, dtype.code() as u64)))].concat())
}

/// An output of the graph; its type follows from the node that computes it.
pub fn output(name: &str) -> Vec<u8> {
    bytes(12, bytes(1, name))
}

/// A constant of the graph whose data is in the file at `location`.
pub fn external(name: &str, dtype: DType, shape: &[u64], location: &str) -> Vec<u8> {
    let dims: Vec<u8> = shape.iter().flat_map(|size| number(1, *size)).collect();
    let entry = bytes(13, [bytes(1, "location"), bytes(2, location)].concat());
    bytes(5, [dims, number(2, dtype.code() as u64), bytes(8, name), entry, number(14, 1)].concat())
}
