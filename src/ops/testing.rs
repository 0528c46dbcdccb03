//! Operators on values, for the tests beside them: `run("Gather", 13, [int("axis", 1)], [&x, &i]).gives(y)`.

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::operator::{Attribute, Call, Context, Feeds, Source, Sources, Values};
use crate::registry::Registry;
use crate::value::{Fact, Value};

/// The result of a run.
pub(crate) struct Ran(Result<Values>);

/// Runs an operator in its version under an opset. The domain is before the name: `ai.onnx.ml.Scaler`.
pub(crate) fn run<const A: usize, const I: usize>(
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&Value; I],
) -> Ran {
    Ran(try_run(None, operator, opset, attributes, inputs))
}

/// As [`run`], with a number of outputs, for operators that may have any.
pub(crate) fn run_for<const A: usize, const I: usize>(
    outputs: usize,
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&Value; I],
) -> Ran {
    Ran(try_run(Some(outputs), operator, opset, attributes, inputs))
}

/// The outputs of an operator in its version under an opset.
pub(crate) fn outputs<const A: usize, const I: usize>(
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&Value; I],
) -> Values {
    try_run(None, operator, opset, attributes, inputs).unwrap()
}

fn try_run<const A: usize, const I: usize>(
    outputs: Option<usize>,
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&Value; I],
) -> Result<Values> {
    let (domain, name) = operator.rsplit_once('.').unwrap_or(("", operator));
    let resolved = Registry::default().resolve(domain, name, opset)?;
    let attributes = attributes.map(|(name, value)| (name.to_string(), value));
    let types = inputs.map(|input| Fact { value_type: input.value_type(), ..Fact::default() });
    let made = resolved.load(&attributes, &types.each_ref().map(Some))?;
    let constants = inputs.map(Value::clone);
    let sources = Sources { feeds: Feeds::Own(&[]), defaults: &[], constants: &constants, slots: &mut [] };
    let inputs: Vec<_> = (0..I as u32).map(|k| Some(Source::Constant(k))).collect();
    let context = Context::new(1, Limits::default());
    let (schema, wanted) = (&*resolved.schema, u64::MAX);
    let outputs = outputs.unwrap_or(schema.outputs.len());
    let mut call = Call { inputs: &inputs, sources, schema, outputs, wanted, context: &context };
    made.plain().unwrap().run(&mut call)
}

impl Ran {
    /// Checks that the first output is `want`, bit by bit.
    #[track_caller]
    pub(crate) fn gives(self, want: impl Into<Value>) {
        assert_eq!(self.0.unwrap()[0], want.into());
    }

    /// Checks that the outputs are `want`, bit by bit.
    #[track_caller]
    pub(crate) fn gives_all<const N: usize>(self, want: [Value; N]) {
        assert_eq!(*self.0.unwrap(), want);
    }

    /// Checks that the first output is `input` itself: no element was copied.
    #[track_caller]
    pub(crate) fn shares(self, input: &Value) {
        let output = self.0.unwrap().swap_remove(0);
        let address = |value: &Value| value.tensor().unwrap().bytes().as_ptr();
        assert_eq!(address(&output), address(input));
    }

    /// Checks for an error with `text` in it.
    #[track_caller]
    pub(crate) fn fails(self, text: &str) -> Error {
        let error = self.0.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        error
    }
}

/// An attribute of kind INT.
pub(crate) fn int(name: &str, value: i64) -> (&str, Attribute) {
    (name, Attribute::Int(value))
}

/// An attribute of kind FLOAT.
pub(crate) fn float(name: &str, value: f32) -> (&str, Attribute) {
    (name, Attribute::Float(value))
}

/// An attribute of kind STRING.
pub(crate) fn string<'a>(name: &'a str, value: &str) -> (&'a str, Attribute) {
    (name, Attribute::String(value.to_string()))
}

/// A tensor of a shape.
pub(crate) fn tensor<T: crate::dtype::Element>(shape: &[usize], elements: impl Into<Vec<T>>) -> Value {
    crate::tensor::Tensor::from_elements(shape, elements.into()).unwrap().into()
}
