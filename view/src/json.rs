//! Values as JSON; numbers read back exactly. NaNs lose their signs and payloads.

use crate::names::{dtype_name, type_name};
use onnxref::{Scalar, Tensor, Value};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A value with its type. A tensor is `{"dtype": .., "shape": .., "values": ..}`, a sequence
/// `{"type": .., "sequence": [..]}`, an optional `{"type": .., "optional": ..}` with null for none, a map
/// `{"type": .., "keys": .., "map": [..]}`.
pub struct Described<'a>(pub &'a Value);

impl Serialize for Described<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value_type = self.0.value_type().map(|value_type| type_name(&value_type));
        let mut map = serializer.serialize_map(None)?;
        if self.0.tensor().is_err() {
            map.serialize_entry("type", &value_type)?;
        }
        match self.0 {
            Value::Tensor(tensor) => {
                map.serialize_entry("dtype", dtype_name(tensor.dtype()))?;
                map.serialize_entry("shape", tensor.shape())?;
                map.serialize_entry("values", &Values(tensor))?;
            }
            Value::Sequence(sequence) => map.serialize_entry("sequence", &list(sequence.values()))?,
            Value::Optional(optional) => map.serialize_entry("optional", &optional.get().map(Described))?,
            Value::Map(value) => {
                map.serialize_entry("keys", &Values(value.keys()))?;
                map.serialize_entry("map", &list(value.values()))?;
            }
            other => map.serialize_entry("text", &other.to_string())?,
        }
        map.end()
    }
}

fn list(values: &[Value]) -> Vec<Described<'_>> {
    values.iter().map(Described).collect()
}

struct Values<'a>(&'a Tensor);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.scalars().map(Element))
    }
}

/// One element. Numbers read back exactly; `"NaN"`, `"inf"` and `"-inf"` are strings, complex numbers are pairs.
pub struct Element<'a>(pub Scalar<'a>);

impl Serialize for Element<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Scalar::Int(v) => v.serialize(serializer),
            Scalar::Uint(v) => v.serialize(serializer),
            Scalar::Bool(v) => v.serialize(serializer),
            Scalar::String(v) => v.serialize(serializer),
            Scalar::Float(v) if v.is_finite() => v.serialize(serializer),
            Scalar::Double(v) if v.is_finite() => v.serialize(serializer),
            Scalar::Complex64(re, im) => [re, im].map(|v| Element(Scalar::Float(*v))).serialize(serializer),
            Scalar::Complex128(re, im) => [re, im].map(|v| Element(Scalar::Double(*v))).serialize(serializer),
            // JSON has no NaN or infinity.
            other => serializer.collect_str(other),
        }
    }
}
