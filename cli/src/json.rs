//! Outputs as JSON whose numbers read back exactly.

use crate::print::Stdout;
use onnxref::{Outputs, Scalar, Tensor};
use serde::{Serialize, Serializer};
use std::io::{self, BufWriter, Write};

/// Prints `{"outputs": {NAME: {"dtype": .., "shape": .., "values": ..}}}`, in the order of the model.
pub(crate) fn print(outputs: &Outputs) -> io::Result<()> {
    let mut out = BufWriter::new(Stdout);
    serde_json::to_writer(&mut out, &Document { outputs: Named(outputs) })?;
    out.write_all(b"\n")?;
    out.flush()
}

#[derive(Serialize)]
struct Document<'a> {
    outputs: Named<'a>,
}

struct Named<'a>(&'a Outputs);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, tensor)| {
            let (dtype, shape) = (tensor.dtype().name(), tensor.shape());
            (name, Described { dtype, shape, values: Values(tensor) })
        }))
    }
}

#[derive(Serialize)]
struct Described<'a> {
    dtype: &'static str,
    shape: &'a [usize],
    values: Values<'a>,
}

struct Values<'a>(&'a Tensor);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.scalars().map(Element))
    }
}

struct Element<'a>(Scalar<'a>);

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
            // JSON has no NaN and no infinity: `"NaN"`, `"inf"`, `"-inf"`.
            other => serializer.collect_str(other),
        }
    }
}
