//! Cases that chance doesn't find: `texts.txt` has their models as text.

use super::goals::{Feature, Goal, type_key};
use super::maker::{Given, Made, Maker, OTHERS, options};
use super::source::Source;
use crate::proto::{ModelProto, TensorProto};
use onnxref::document::Document;
use onnxref::schema::Schema;
use onnxref::{DType, Dim, Sequence, Tensor, Value, ValueInfo, ValueType};
use prost::Message;

const TEXTS: &str = include_str!("texts.txt");

/// A case as text.
pub(super) struct Text {
    pub(super) name: String,
    /// What it shows.
    pub(super) about: &'static str,
    exact: bool,
    graph: String,
}

/// The texts of an operator version.
pub(super) fn of(schema: &Schema, label: &str) -> Vec<Text> {
    let operator = label.rsplit_once('-').map_or(label, |(operator, _)| operator);
    let blocks = TEXTS.split("\n\n").filter_map(|block| {
        let (head, graph) = block.split_once('\n')?;
        let (exact, head) = (head.starts_with("== "), head.get(3..)?);
        let (subject, about) = head.split_once(": ")?;
        let (of, case) = subject.split_once(' ')?;
        (of == operator || of == label).then_some((exact, case, about, graph))
    });
    let mut texts = Vec::new();
    for (exact, case, about, graph) in blocks {
        let Some(variable) = case.strip_suffix("-*") else {
            texts.push(Text { name: case.to_string(), about, exact, graph: graph.to_string() });
            continue;
        };
        let parameter = schema.inputs.iter().chain(&schema.outputs).find(|parameter| type_key(parameter) == variable);
        for value_type in parameter.iter().flat_map(|parameter| parameter.types.iter()) {
            let name = Goal::Type(variable.to_string(), value_type.clone()).name();
            let graph = graph.replace("{T}", &whole(&value_type)).replace("{E}", element(&value_type).name());
            texts.push(Text { name, about, exact, graph });
        }
    }
    texts
}

/// A type in the syntax of `onnx.parser`, of tensors of any rank.
fn whole(value_type: &ValueType) -> String {
    match value_type {
        ValueType::Sequence(element) => format!("seq({})", whole(element)),
        ValueType::Optional(element) => format!("optional({})", whole(element)),
        other => format!("{}[]", element(other).name()),
    }
}

/// The type of the elements of all tensors in a value.
pub(super) fn element(value_type: &ValueType) -> DType {
    match value_type {
        ValueType::Sequence(of) | ValueType::Optional(of) => element(of),
        other => other.dtype().unwrap_or(DType::Float),
    }
}

impl Text {
    /// The node, with values for the inputs of the graph.
    pub(super) fn make(&self, source: &mut Source, schema: &Schema, opset: i64) -> Result<Made, String> {
        let failed = |error: onnxref::Error| error.to_string();
        let imports = match schema.domain.as_str() {
            "" => format!("\"\": {opset}"),
            domain => format!("\"\": {OTHERS}, \"{domain}\": {opset}"),
        };
        let text = format!("<ir_version: 10, opset_import: [{imports}]>\n{}", self.graph);
        let mut bytes = Vec::new();
        Document::from_text(&text).and_then(|document| document.write(&mut bytes)).map_err(failed)?;
        let graph = ModelProto::decode(&*bytes).map_err(|error| error.to_string())?.graph.unwrap_or_default();
        let declared = options().from_bytes(bytes).map_err(failed)?;
        let mut inputs = Vec::new();
        for info in declared.inputs() {
            let value = match self.given(info, &graph.initializer)? {
                Some(value) => value,
                None => drawn(source, schema, info)?,
            };
            inputs.push(Given { name: info.name.clone(), value, constant: false });
        }
        let node = graph.node.into_iter().next().unwrap_or_default();
        let open = self.name == Feature::OpenShapes.name();
        Ok(Made { node, inputs, open, opset, exact: Some(self.exact) })
    }

    /// The value that the text has for an input.
    fn given(&self, info: &ValueInfo, initializers: &[TensorProto]) -> Result<Option<Value>, String> {
        let named = |name: &str| {
            let found = initializers.iter().find(|tensor| tensor.name() == name);
            found.map(|tensor| Tensor::from_proto_bytes(tensor.encode_to_vec()).map(Value::from)).transpose()
        };
        let failed = |error: onnxref::Error| error.to_string();
        let Some(ValueType::Sequence(element)) = &info.value_type else { return named(&info.name).map_err(failed) };
        let places = (0..initializers.len()).map_while(|k| named(&format!("{}_{k}", info.name)).transpose());
        let values = places.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        if values.is_empty() {
            return Ok(None);
        }
        Sequence::new((**element).clone(), values).map(|sequence| Some(sequence.into())).map_err(failed)
    }
}

/// A value of the type of an input.
fn drawn(source: &mut Source, schema: &Schema, info: &ValueInfo) -> Result<Value, String> {
    let value_type = info.value_type.clone().ok_or("an input has no type")?;
    let goal = Goal::Feature(Feature::OpenShapes);
    let mut maker = Maker::new(source, schema, &goal);
    let sizes = info.shape.as_ref().and_then(|dims| dims.iter().map(fixed).collect::<Option<Vec<_>>>());
    match (value_type.dtype(), sizes) {
        (Some(dtype), Some(shape)) => Ok(maker.tensor(dtype, &shape)?.into()),
        _ => maker.value(&value_type, "", 0),
    }
}

fn fixed(dim: &Dim) -> Option<usize> {
    if let Dim::Fixed(size) = dim { Some(*size) } else { None }
}
