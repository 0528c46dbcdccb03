//! Operators that a caller adds.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::{ModelProto, NodeProto};
use crate::common::{float, node, value};
use crate::{Change, With, at_node, good, good_feeds, good_output, graph_of, import};
use ndarray::array;
use onnxref::operator::{Call, Node, Operator, Values};
use onnxref::{DType, Error, Kind, LoadOptions, Model, Outputs, Place, Tensor, inputs};
use prost::Message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Run = fn(&mut Call<'_>) -> Result<Values, Error>;

type AnyRun = dyn Fn(&mut Call<'_>) -> Result<Values, Error> + Send + Sync;

/// Gives whatever the function does.
struct Given(Arc<AnyRun>);

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Given")
    }
}

impl Operator for Given {
    fn run(&self, call: &mut Call<'_>) -> Result<Values, Error> {
        (self.0)(call)
    }
}

/// Makes operators that do what a function does.
pub(crate) fn given(
    run: impl Fn(&mut Call<'_>) -> Result<Values, Error> + Send + Sync + 'static,
) -> impl Fn(&Node<'_>) -> Result<Box<dyn Operator>, Error> + Send + Sync + 'static {
    let run = Arc::new(run);
    move |_| Ok(Box::new(Given(run.clone())))
}

/// Options with an operator that does what a function does.
pub(crate) fn add(
    schema: &str,
    run: impl Fn(&mut Call<'_>) -> Result<Values, Error> + Send + Sync + 'static,
) -> LoadOptions {
    Model::options().operator(schema, given(run)).unwrap()
}

pub(crate) fn one(tensor: impl Into<Tensor>) -> Result<Values, Error> {
    Ok([tensor.into().into()].into())
}

/// `y = com.example.Own(x)` for a float vector under a version of the domain.
fn own(version: i64) -> ModelProto {
    let mut model = good();
    model.opset_import.push(import("com.example", version));
    let own = node("Own", &["x"], &["y"], vec![]);
    let graph = graph_of(&mut model);
    graph.node = vec![NodeProto { name: Some("node".into()), domain: Some("com.example".into()), ..own }];
    graph.input = vec![value("x", DType::Float, None)];
    graph.output = vec![value("y", DType::Float, None)];
    model
}

fn run(options: &LoadOptions, model: &ModelProto) -> Result<Outputs, Error> {
    options.from_bytes(model.encode_to_vec())?.run(inputs! { "x" => array![1f32, 2.0] })
}

fn at_own(version: impl Into<Option<i64>>) -> Place {
    at_node("Own", version).with(|p| p.domain = Some("com.example".into()))
}

const OWN_1: &str = "com.example.Own 1\n  (x: T) -> (y: T)\n  T: float int64";

#[test]
fn an_operator_of_ones_own() {
    let options = Model::options()
        .operator("com.example.Own 1\n  (x: T) -> (y: T)\n  factor: FLOAT = 2.0\n  T: float", |node| {
            let factor = node.float("factor")?;
            assert!(factor == 2.0 || factor == 3.0);
            given(move |call| one(call.tensor(0)?.view::<f32>()?.mapv(|x| factor * x)))(node)
        })
        .unwrap();
    let mut model = own(1);
    assert_eq!(run(&options, &model).unwrap()["y"], array![2f32, 4.0].into());
    graph_of(&mut model).node[0].attribute = vec![float("factor", 3.0)];
    assert_eq!(run(&options, &model).unwrap()["y"], array![3f32, 6.0].into());
    assert!(format!("{options:?}").contains("com.example::Own-1"));
}

#[test]
fn the_newest_version_that_is_not_newer_than_the_opset() {
    let options = add("com.example.Own 4\n  (x: T) -> (y: T)\n  T: float", |_| one(array![4f32]))
        .operator("com.example.Own 2\n  (x: T) -> (y: T)\n  T: float", given(|_| one(array![2f32])))
        .unwrap();
    for (opset, version) in [(2, 2f32), (3, 2.0), (4, 4.0), (1000, 4.0)] {
        assert_eq!(run(&options, &own(opset)).unwrap()["y"], array![version].into(), "{opset}");
    }
    let text = "node \"node\" (com.example::Own): com.example::Own is not in opset 1: it came with opset 2 (Compatibility::newer_operators accepts it)";
    assert_as_expected([difference_at("too old", run(&options, &own(1)), Kind::Model, text, &at_own(None))]);
}

#[test]
fn an_operator_that_was_not_added() {
    let options = add("com.example.Other 1\n  (x: T) -> (y: T)\n  T: float", |_| one(array![1f32]));
    let text = "node \"node\" (com.example::Own): com.example::Own is not among the operators that were added";
    assert_as_expected([difference_at("other", run(&options, &own(1)), Kind::Unsupported, text, &at_own(None))]);
}

#[test]
fn an_added_operator_wins_over_the_standards() {
    fn schema(name: &str) -> String {
        format!("{name} 13\n  (data: T, indices: Tind) -> (output: T)\n  T: float\n  Tind: int64")
    }
    for name in ["Gather", "ai.onnx.Gather"] {
        let options = add(&schema(name), |_| one(array![[9f32]]));
        let run = |opset| {
            let mut model = good();
            model.opset_import = vec![import("", opset)];
            options.from_bytes(model.encode_to_vec()).unwrap().run(good_feeds()).unwrap()["output"].clone()
        };
        assert_eq!(run(13), array![[9f32]].into(), "{name}");
        assert_eq!(run(28), array![[9f32]].into(), "{name}");
        // The standard's version 11 is there as before.
        assert_eq!(run(12), good_output(), "{name}");
    }
}

#[test]
fn wrong_schemas() {
    let cases = [
        ("", "the schema line \"\" doesn't match the schema grammar: expected `NAME VERSION`"),
        ("Own", "the schema line \"Own\" doesn't match the schema grammar: expected `NAME VERSION`"),
        ("Own x", "the schema line \"Own x\" doesn't match the schema grammar: expected `NAME VERSION`"),
        (
            "Own 0\n  (x: T) -> (y: T)\n  T: float",
            "the schema line \"Own 0\" doesn't match the schema grammar: expected `NAME VERSION`",
        ),
        (
            "Own -1\n  (x: T) -> (y: T)\n  T: float",
            "the schema line \"Own -1\" doesn't match the schema grammar: expected `NAME VERSION`",
        ),
        (
            "Own 1",
            "the schema line \"\" doesn't match the schema grammar: expected `(NAME: TYPE, ..) -> (NAME: TYPE, ..)`",
        ),
        (
            "Own 1\n  (x: T) (y: T)",
            "the schema line \"  (x: T) (y: T)\" doesn't match the schema grammar: expected `(NAME: TYPE, ..) -> (NAME: TYPE, ..)`",
        ),
        (
            "Own 1\n  (x) -> (y)",
            "the schema line \"  (x) -> (y)\" doesn't match the schema grammar: expected `(NAME: TYPE, ..) -> (NAME: TYPE, ..)`",
        ),
        (
            "Own 1\n  (x: T) -> (y: T)",
            "the schema line \"  (x: T) -> (y: T)\" doesn't match the schema grammar: expected `(NAME: TYPE, ..) -> (NAME: TYPE, ..)`",
        ),
        (
            "Own 1\n  (x: T) -> (y: T)\n  T: flot",
            "the schema line \"  T: flot\" doesn't match the schema grammar: unknown type \"flot\"",
        ),
        (
            "Own 1\n  (x: T) -> (y: T)\n  T: @none",
            "the schema line \"  T: @none\" doesn't match the schema grammar: unknown type \"@none\"",
        ),
        (
            "Own 1\n  (x: T) -> (y: T)\n  a: INT = b\n  T: float",
            "the schema line \"  a: INT = b\" doesn't match the schema grammar: expected `NAME: KIND`, then `required` or `= DEFAULT`",
        ),
        (
            "Own 1\n  (x: T) -> (y: T)\n  a: INT requird\n  T: float",
            "the schema line \"  a: INT requird\" doesn't match the schema grammar: expected `NAME: KIND`, then `required` or `= DEFAULT`",
        ),
        (
            "Own 1\n  (x: T) -> (y: T)\n  T float",
            "the schema line \"  T float\" doesn't match the schema grammar: expected `NAME: ..`",
        ),
    ];
    assert_as_expected(cases.map(|(schema, text)| {
        let result = Model::options().operator(schema, given(|_| one(array![0f32])));
        difference_at(schema, result, Kind::Input, text, &Place::default())
    }));
}

#[test]
fn added_twice() {
    let options = add(OWN_1, |_| one(array![0f32]));
    let again = "com.example.Own 1\n  (x: float) -> (y: float)";
    let result = options.operator(again, given(|_| one(array![0f32])));
    let text = "the operator com.example::Own-1 is added twice";
    assert_as_expected([difference_at("twice", result, Kind::Input, text, &Place::default())]);
}

#[test]
fn what_an_operator_says_is_placed() {
    let options = add(OWN_1, |_| Err(Error::input("x[0] = 1 is odd").at(|p| p.value = Some(1))));
    let place = at_own(1).with(|p| p.value = Some(1));
    let text = "node \"node\" (com.example::Own-1): x[0] = 1 is odd";
    assert_as_expected([difference_at("run", run(&options, &own(5)), Kind::Input, text, &place)]);

    let options = Model::options().operator(OWN_1, |_| Err(Error::model("two attributes exclude each other"))).unwrap();
    let text = "node \"node\" (com.example::Own-1): two attributes exclude each other";
    let result = options.from_bytes(own(5).encode_to_vec());
    assert_as_expected([difference_at("load", result, Kind::Model, text, &at_own(1))]);
}

#[test]
fn an_implementation_keeps_to_its_schema() {
    let cases: [(&str, Run, &str, Place); 3] = [
        (
            "another element type",
            |_| one(array![1i64]),
            "node \"node\" (com.example::Own-1): the operator's implementation returned output 0, \"y\", \
             element type int64, not float32",
            at_own(1).parameter("y"),
        ),
        (
            "no output",
            |_| Ok(Values::new()),
            "node \"node\" (com.example::Own-1): the operator's implementation returned 0 outputs, not 1",
            at_own(1),
        ),
        (
            "two outputs",
            |_| Ok([array![1f32].into(), array![1f32].into()].into_iter().collect()),
            "node \"node\" (com.example::Own-1): the operator's implementation returned 2 outputs, not 1",
            at_own(1),
        ),
    ];
    assert_as_expected(cases.map(|(name, run_own, text, place)| {
        difference_at(name, run(&add(OWN_1, run_own), &own(1)), Kind::Input, text, &place)
    }));
}

#[test]
fn an_output_is_as_the_model_declares_it() {
    // The schema leaves the type open, and the model says float.
    let options = add("com.example.Own 1\n  (x: T) -> (y: U)\n  T: float\n  U: float int64", |_| one(array![1i64]));
    let text =
        "node \"node\" (com.example::Own-1): output 0, \"y\", has element type int64, but is declared as float32";
    assert_as_expected([difference_at(
        "declared",
        run(&options, &own(1)),
        Kind::Model,
        text,
        &at_own(1).parameter("y"),
    )]);
}

#[test]
fn an_output_is_of_a_type_that_its_schema_allows() {
    let options = add("com.example.Own 1\n  (x: T) -> (y: U)\n  T: float\n  U: float int64", |_| one(array![1u8]));
    let mut model = own(1);
    graph_of(&mut model).output[0].r#type = None;
    let text = "node \"node\" (com.example::Own-1): the operator's implementation returned output 0, \"y\", \
                element type uint8, not one of float32, int64";
    let place = at_own(1).parameter("y");
    assert_as_expected([difference_at("open", run(&options, &model), Kind::Input, text, &place)]);
}

#[test]
fn a_model_keeps_to_an_added_schema() {
    let two = "com.example.Own 1\n  (a: T, b: T) -> (y: T, z?: T)\n  mode: STRING required\n  T: float int64";
    let load = |change: Change| {
        let mut model = own(1);
        graph_of(&mut model).node[0].attribute = vec![crate::common::string("mode", "é")];
        graph_of(&mut model).node[0].input = vec!["x".into(), "x".into()];
        change(&mut model);
        add(two, |_| one(array![0f32])).from_bytes(model.encode_to_vec())
    };
    load(|_| {}).unwrap();
    let cases: [(&str, Change, &str, Place); 4] = [
        (
            "two types of one variable",
            |m| {
                graph_of(m).input.push(value("i", DType::Int64, None));
                graph_of(m).node[0].input[1] = "i".into();
            },
            "node \"node\" (com.example::Own-1): \"b\" has element type int64 and \"a\" has float32: they must be equal",
            at_own(1).parameter("b"),
        ),
        (
            "no required attribute",
            |m| graph_of(m).node[0].attribute.clear(),
            "node \"node\" (com.example::Own-1): attribute \"mode\" is required",
            at_own(1).with(|p| p.attribute = Some("mode".into())),
        ),
        (
            "a string that is none",
            |m| graph_of(m).node[0].attribute[0].s = Some(b"\xff".as_slice().into()),
            "node \"node\" (com.example::Own-1): attribute \"mode\": its string is not UTF-8: \
             invalid utf-8 sequence of 1 bytes from index 0",
            at_own(1).with(|p| p.attribute = Some("mode".into())),
        ),
        (
            "one name for two outputs",
            |m| graph_of(m).node[0].output = vec!["y".into(), "y".into()],
            "node \"node\" (com.example::Own-1): the name \"y\" is given twice: by node #0 and by node #0",
            at_own(1).named("y"),
        ),
    ];
    assert_as_expected(
        cases.map(|(name, change, text, place)| difference_at(name, load(change), Kind::Model, text, &place)),
    );
}

/// A panic unwinds to the caller of the run, and leaves nothing behind: model and runner go on.
#[test]
fn panics() {
    let doubled = |call: &mut Call<'_>| {
        let x = call.tensor(0)?.clone();
        let mut y = call.output::<f32>(x.shape())?;
        for (y, x) in y.elements_mut()?.iter_mut().zip(x.as_slice::<f32>()?) {
            assert!(*x >= 0.0, "a negative number");
            *y = 2.0 * x;
        }
        Ok([y.finish().into()].into())
    };
    let model =
        add("com.example.Own 1\n  (x: T) -> (y: T)\n  T: float", doubled).from_bytes(own(1).encode_to_vec()).unwrap();
    let right =
        || assert_eq!(model.run(inputs! { "x" => array![1f32, 2.0] }).unwrap()["y"], Tensor::from(vec![2f32, 4.0]));
    let mut runner = model.runner();
    right();
    for _ in 0..3 {
        let outcome = catch_unwind(AssertUnwindSafe(|| model.run(inputs! { "x" => array![1f32, -2.0] }).map(drop)));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"a negative number"));
        right();
        runner.feed("x", array![1f32, -2.0]).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| runner.run().map(drop))).is_err());
        assert_eq!(runner.output("y").unwrap_err().kind(), Kind::Input, "it has no outputs");
        runner.feed("x", array![3f32]).unwrap();
        runner.run().unwrap();
        assert_eq!(runner.output("y").unwrap(), &Tensor::from(vec![6f32]));
    }
    // While it loads too.
    let schema = "com.example.Own 1\n  (x: T) -> (y: T)\n  T: float";
    let options = Model::options().operator(schema, |_: &Node<'_>| panic!("no operator")).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| options.from_bytes(own(1).encode_to_vec()).map(drop))).is_err());
    right();
}
