//! Operators on values, for the tests beside them: `run("Gather", 13, [int("axis", 1)], [&x, &i]).gives(y)`; and on what
//! is known before a run: `infer("Gather", 13, [], ["float[N, 3]", "int64[2]"]).gives("[2, 3]")`.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::testing::{self, draft, load};
use crate::limits::{Budget, Limits};
use crate::operator::{Attribute, BodyFacts, Call, Context, Feeds, Inference, Made, Resolved, Source, Sources};
use crate::registry::{Own, Registry};
use crate::tensor::Tensor;
use crate::value::{Dim, DimsText, Fact, Formula, List, Value, ValueType};
use std::cell::Cell;

/// The result of a run.
pub(crate) struct Ran(Result<Vec<Value>>);

/// Runs an operator in its version under an opset: with inputs that others hold, and with inputs whose memory it may take,
/// which must give the same. The domain is before the name: `ai.onnx.ml.Scaler`.
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
) -> Vec<Value> {
    try_run(None, operator, opset, attributes, inputs).unwrap()
}

fn try_run<const A: usize, const I: usize>(
    outputs: Option<usize>,
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&Value; I],
) -> Result<Vec<Value>> {
    let (domain, name) = operator.rsplit_once('.').unwrap_or(("", operator));
    let resolved = Registry::default().resolve(domain, name, opset)?;
    let attributes = attributes.map(|(name, value)| (name.to_string(), value));
    let types = inputs.map(|input| Fact::of(input.value_type(), None));
    let outputs = outputs.unwrap_or(resolved.schema.outputs.len());
    let (facts, note) = (types.each_ref().map(Some), Cell::default());
    let budget = Budget::new(&Limits::default());
    let made = resolved.load(&resolved.node(&attributes, &facts, outputs, &[], &note), &Own::new(&budget))?;
    if matches!(made, Made::Body(_)) {
        return run_graph(resolved, attributes, inputs, outputs);
    }
    let run = |constants: &[Value], slots: &mut [Option<Value>], source: fn(u32) -> Source| {
        let sources = Sources { feeds: Feeds::Own(&[]), defaults: &[], constants, slots };
        let inputs: Vec<_> = (0..I as u32).map(|k| Some(source(k))).collect();
        let context = Context::new(1, Limits::default());
        let (schema, wanted) = (&*resolved.schema, u64::MAX);
        let mut call = Call { inputs: &inputs, sources, schema, outputs, wanted, context: &context };
        made.plain().unwrap().run(&mut call).map(|values| values.into_iter().collect::<Vec<_>>())
    };
    let held = run(&inputs.map(Value::clone), &mut [], Source::Constant);
    let dying = run(&[], &mut inputs.map(|input| Some(alone(input))), Source::Last);
    match (&held, &dying) {
        (Err(held), Err(dying)) => assert_eq!(held.to_string(), dying.to_string()),
        _ => assert_eq!(held.as_ref().ok(), dying.as_ref().ok(), "the memory of dying inputs changes the result"),
    }
    let shapes = inputs.map(shaped);
    let constants = inputs.map(|input| Fact::constant(input.clone()));
    for facts in [shapes, constants] {
        check_rule(&resolved, &attributes, &facts.each_ref().map(Some), outputs, held.as_ref().ok());
    }
    held
}

/// The type and the shape of a value.
fn shaped(value: &Value) -> Fact {
    let fact = Fact::constant(value.clone());
    Fact::of(fact.value_type().cloned(), fact.dims().map(Into::into))
}

/// Checks that what the operator's rule says of the outputs is true. If the run failed, it may not know all their values:
/// the node would not run.
#[track_caller]
fn check_rule(
    resolved: &Resolved,
    attributes: &[(String, Attribute)],
    facts: &[Option<&Fact>],
    outputs: usize,
    values: Option<&Vec<Value>>,
) {
    let (note, budget) = (Cell::default(), Budget::new(&Limits::default()));
    let node = resolved.node(attributes, facts, outputs, &[], &note);
    let mut inference = Inference::new(node);
    // With constants a node may be refused at load.
    let inferred = resolved.load(&node, &Own::new(&budget)).and_then(|made| made.infer(&mut inference));
    let Some(values) = values else {
        let known = inferred.is_ok() && inference.finish().iter().all(|fact| fact.value().is_some());
        assert!(!known, "the rule knows the outputs of a run that fails");
        return;
    };
    inferred.expect("the rule refuses what runs");
    for (k, (fact, value)) in inference.finish().iter().zip(values).enumerate() {
        assert!(fact.value_type().is_none_or(|own| value.is_of(own)), "output {k} is no {:?}", fact.value_type());
        let Ok(tensor) = value.tensor() else { continue };
        if let Some(dims) = fact.dims() {
            let fits = |(dim, size): (&Dim, &usize)| !matches!(dim, Dim::Fixed(own) if own != size);
            let all = dims.len() == tensor.rank() && dims.iter().zip(tensor.shape()).all(fits);
            assert!(all, "output {k} has shape {:?}, and not {}", tensor.shape(), DimsText(dims));
        }
        assert!(fact.value().is_none_or(|known| known == value), "output {k} has another value");
    }
}

/// Runs a graph of one node, whose operator is written with others.
fn run_graph<const I: usize>(
    resolved: Resolved,
    attributes: impl Into<Vec<(String, Attribute)>>,
    inputs: [&Value; I],
    outputs: usize,
) -> Result<Vec<Value>> {
    let draft = draft(resolved, attributes.into(), &inputs.map(Value::value_type), outputs);
    testing::run(&load(draft, true)?, &inputs.map(Value::clone), None)
}

/// A copy of a tensor in memory that nobody else holds.
fn alone(value: &Value) -> Value {
    use bytemuck::allocation::pod_collect_to_vec;
    let Value::Tensor(tensor) = value else { return value.clone() };
    let (dtype, shape, bytes) = (tensor.dtype(), tensor.shape(), tensor.bytes());
    match dtype.align() {
        _ if dtype == DType::String => tensor.clone(),
        1 => Tensor::from_words(dtype, shape, bytes.to_vec()),
        2 => Tensor::from_words(dtype, shape, pod_collect_to_vec::<u8, u16>(bytes)),
        4 => Tensor::from_words(dtype, shape, pod_collect_to_vec::<u8, u32>(bytes)),
        _ => Tensor::from_words(dtype, shape, pod_collect_to_vec::<u8, u64>(bytes)),
    }
    .into()
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

/// What an operator infers of its outputs.
pub(crate) struct Inferred(Result<Vec<Fact>>);

/// Infers an operator in its version under an opset, from facts about its inputs: `float[N, 3]`, a type alone such as
/// `seq(float)`, `-` for an omitted one, `{2, -1, 2*N, N - 1}` for an int64 list, `{0.5, 2.0}` for a constant float32 one, or `{true}` for
/// one of bools. There are as many outputs as the schema names.
pub(crate) fn infer<const A: usize, const I: usize>(
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&str; I],
) -> Inferred {
    try_infer(None, operator, opset, attributes, inputs, &[])
}

/// As [`infer`], with a number of outputs, for operators that may have any.
pub(crate) fn infer_for<const A: usize, const I: usize>(
    outputs: usize,
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&str; I],
) -> Inferred {
    try_infer(Some(outputs), operator, opset, attributes, inputs, &[])
}

/// As [`infer_for`], with the subgraph `body`: facts about its inputs and its outputs.
pub(crate) fn infer_with<const A: usize, const I: usize>(
    body: (&[&str], &[&str]),
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&str; I],
) -> Inferred {
    let facts = |texts: &[&str]| texts.iter().map(|text| fact(text).unwrap_or_default()).collect();
    let outputs = Some(body.1.len());
    let (given, made, inferred) = (facts(body.0), facts(body.1), facts(body.1));
    let body = BodyFacts { attribute: "body".into(), inputs: given, outputs: made, inferred };
    try_infer(outputs, operator, opset, attributes, inputs, &[body])
}

fn try_infer<const A: usize, const I: usize>(
    outputs: Option<usize>,
    operator: &str,
    opset: i64,
    attributes: [(&str, Attribute); A],
    inputs: [&str; I],
    bodies: &[BodyFacts],
) -> Inferred {
    let (domain, name) = operator.rsplit_once('.').unwrap_or(("", operator));
    let resolved = Registry::default().resolve(domain, name, opset).unwrap();
    let attributes = attributes.map(|(name, value)| (name.to_string(), value));
    let facts = inputs.map(fact);
    let (facts, note) = (facts.each_ref().map(Option::as_ref), Cell::default());
    let outputs = outputs.unwrap_or(resolved.schema.outputs.len());
    let node = resolved.node(&attributes, &facts, outputs, bodies, &note);
    let mut inference = Inference::new(node);
    let budget = Budget::new(&Limits::default());
    let inferred = resolved.load(&node, &Own::new(&budget)).and_then(|made| made.infer(&mut inference));
    Inferred(inferred.map(|()| inference.finish().into_vec()))
}

fn fact(text: &str) -> Option<Fact> {
    let factor = |word: &str| match word.trim().parse::<i64>() {
        Ok(number) => Some(Formula::from(number)),
        Err(_) if word.trim() == "?" => None,
        Err(_) => Formula::of(&Dim::Symbol(word.trim().to_string())),
    };
    let product = |text: &str| text.split('*').try_fold(Formula::from(1), |all, word| all.times(&factor(word)?));
    let formula = |text: &str| match text.split_once(" - ") {
        Some((from, less)) => product(from)?.minus(&product(less)?),
        None => product(text),
    };
    let list = |text: &str| -> List { text.split(',').filter(|word| !word.trim().is_empty()).map(formula).collect() };
    if let Some(text) = text.strip_prefix('{') {
        let text = text.trim_end_matches('}');
        let truths: Option<Vec<bool>> = text.split(", ").map(|word| word.parse().ok()).collect();
        if let Some(truths) = truths {
            return Some(Fact::constant(Tensor::from_elements(&[truths.len()], truths).unwrap().into()));
        }
        if text.contains('.') {
            let numbers: Vec<f32> = text.split(',').map(|word| word.trim().parse().unwrap()).collect();
            return Some(Fact::constant(tensor(&[numbers.len()], numbers)));
        }
        let list = list(text);
        return Fact::of_list(DType::Int64, &[Dim::Fixed(list.len())], &list);
    }
    let (name, dims) = text.split_once('[').map_or((text, None), |(name, dims)| (name, Some(dims)));
    let fact = Fact::of_type(value_type(name)?);
    Some(match dims {
        Some(dims) => {
            let dims = list(dims.trim_end_matches(']'));
            fact.with_dims(dims.iter().map(|dim| dim.as_ref().map_or(Dim::Unknown, Formula::dim)).collect::<Vec<_>>())
        }
        None => fact,
    })
}

fn value_type(text: &str) -> Option<ValueType> {
    let inner = |of: &str| text.strip_prefix(of)?.strip_prefix('(')?.strip_suffix(')');
    if let Some((key, value)) = inner("map").and_then(|inner| inner.split_once(',')) {
        return Some(ValueType::Map(DType::from_name(key)?, Box::new(value_type(value)?)));
    }
    let sequence = inner("seq").and_then(value_type).map(ValueType::sequence);
    let other = sequence.or_else(|| inner("optional").and_then(value_type).map(ValueType::optional));
    other.or_else(|| DType::from_name(text).map(ValueType::Tensor))
}

impl Inferred {
    /// Checks the shape of the first output: empty text if none is known.
    #[track_caller]
    pub(crate) fn gives(self, shape: &str) {
        self.gives_all([shape]);
    }

    /// Checks the shapes of the first outputs.
    #[track_caller]
    pub(crate) fn gives_all<const N: usize>(self, shapes: [&str; N]) {
        let facts = self.0.unwrap();
        let text = |fact: &Fact| fact.certain_dims().map_or(String::new(), |dims| DimsText(&dims).to_string());
        assert_eq!(facts.iter().map(text).take(N).collect::<Vec<_>>(), shapes);
    }

    /// Checks the shape of the first output if no size is 0.
    #[track_caller]
    pub(crate) fn likely(self, shape: &str) {
        let dims = self.0.unwrap().swap_remove(0).likely_dims().unwrap();
        assert_eq!(DimsText(&dims).to_string(), shape);
    }

    /// Checks the numbers of the first output.
    #[track_caller]
    pub(crate) fn lists(self, numbers: &str) {
        let list = self.0.unwrap().swap_remove(0).list().unwrap();
        let text = |number: &Option<Formula>| number.as_ref().map_or("?".to_string(), Formula::to_string);
        assert_eq!(list.iter().map(text).collect::<Vec<_>>().join(", "), numbers);
    }

    /// Checks that the first output is a list of these truth values.
    #[track_caller]
    pub(crate) fn holds(self, truths: &[bool]) {
        let fact = self.0.unwrap().swap_remove(0);
        assert_eq!(fact.value().and_then(|value| value.tensor().ok()?.as_slice::<bool>().ok()), Some(truths));
    }

    /// Checks the type of the first output that the rule gives.
    #[track_caller]
    pub(crate) fn has_type(self, value_type: &str) {
        let facts = self.0.unwrap();
        assert_eq!(facts.first().and_then(Fact::value_type).map(ToString::to_string).as_deref(), Some(value_type));
    }

    /// Checks for an error with `text` in it.
    #[track_caller]
    pub(crate) fn fails(self, text: &str) {
        let error = self.0.map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// An attribute of kind INT.
pub(crate) fn int(name: &str, value: i64) -> (&str, Attribute) {
    (name, Attribute::Int(value))
}

/// An attribute of kind INTS.
pub(crate) fn ints<'a>(name: &'a str, values: &[i64]) -> (&'a str, Attribute) {
    (name, Attribute::Ints(values.to_vec()))
}

/// An attribute of kind FLOAT.
pub(crate) fn float(name: &str, value: f32) -> (&str, Attribute) {
    (name, Attribute::Float(value))
}

/// An attribute of kind STRING.
pub(crate) fn string<'a>(name: &'a str, value: &str) -> (&'a str, Attribute) {
    (name, Attribute::String(value.to_string()))
}

/// An attribute of kind STRINGS.
pub(crate) fn strings<'a>(name: &'a str, values: &[&str]) -> (&'a str, Attribute) {
    (name, Attribute::Strings(values.iter().map(ToString::to_string).collect()))
}

/// A tensor of a shape.
pub(crate) fn tensor<T: crate::dtype::Element>(shape: &[usize], elements: impl Into<Vec<T>>) -> Value {
    crate::tensor::Tensor::from_elements(shape, elements.into()).unwrap().into()
}
