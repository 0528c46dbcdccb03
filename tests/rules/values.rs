//! Values that are not tensors, sparse tensors, and attributes of every kind.

use crate::common::differences::{assert_as_expected, difference_at};
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, StringStringEntryProto, TensorProto,
};
use crate::common::{attribute, float, initializer, int, ints, node, string, tensor, type_of, typed};
use crate::custom::{add, one};
use crate::{With, at_value, good, graph_of, import, int64, iota};
use ndarray::array;
use onnxref::operator::{Attribute, Node, Operator};
use onnxref::{
    DType, Error, Kind, LoadOptions, Map, Model, Optional, Place, Sequence, Tensor, Value, ValueType, inputs,
};
use prost::Message;

const SAME: &str = "com.example.Same 1\n  (x: T) -> (y: T)\n  T: seq(float) optional(float) map(int64,float) \
                    seq(map(string,float))";

fn same() -> LoadOptions {
    add(SAME, |call| Ok([call.input(0).unwrap().clone()].into()))
}

fn float_type() -> ValueType {
    DType::Float.into()
}

fn floats(values: &[f32]) -> Value {
    values.into()
}

fn sequence(element: ValueType, values: &[Value]) -> Value {
    Sequence::new(element, values.to_vec()).unwrap().into()
}

fn map(keys: impl Into<Tensor>, values: &[Value]) -> Value {
    Map::new(keys.into(), Sequence::new(float_type(), values.to_vec()).unwrap()).unwrap().into()
}

fn strings(list: &[&str]) -> Tensor {
    Tensor::from_strings(&[list.len()], list).unwrap()
}

fn map_type(key: DType) -> ValueType {
    ValueType::Map(key, Box::new(float_type()))
}

/// Of each type that [`SAME`] takes: values, some of them empty.
fn of_each_type() -> Vec<(ValueType, Vec<Value>)> {
    let named = map(strings(&["a", ""]), &[floats(&[1.0]), floats(&[])]);
    let list = map_type(DType::String);
    vec![
        (
            float_type().sequence(),
            vec![sequence(float_type(), &[floats(&[1.0, 2.0]), floats(&[])]), sequence(float_type(), &[])],
        ),
        (float_type().optional(), vec![Optional::some(floats(&[1.0])).into(), Optional::none(float_type()).into()]),
        (
            map_type(DType::Int64),
            vec![map(vec![7i64, -9], &[floats(&[1.0]), floats(&[2.0, 3.0])]), map(Vec::<i64>::new(), &[])],
        ),
        (list.clone().sequence(), vec![sequence(list.clone(), &[named.clone(), named]), sequence(list, &[])]),
    ]
}

/// `nodes` from "x" to "y", both of a type.
fn model(value_type: &ValueType, nodes: Vec<NodeProto>, output: &str) -> ModelProto {
    let mut model = good();
    model.opset_import.push(import("com.example", 1));
    *graph_of(&mut model) = GraphProto {
        name: Some("graph".into()),
        node: nodes,
        input: vec![typed("x", value_type)],
        output: vec![typed(output, value_type)],
        ..GraphProto::default()
    };
    model
}

fn own(op_type: &str, attributes: Vec<AttributeProto>) -> NodeProto {
    let own = node(op_type, &["x"], &["y"], attributes);
    NodeProto { name: Some("node".into()), domain: Some("com.example".into()), ..own }
}

fn load(options: &LoadOptions, model: &ModelProto) -> Result<Model, Error> {
    options.from_bytes(model.encode_to_vec())
}

#[test]
fn every_kind_of_value_goes_in_and_comes_out() {
    for (value_type, values) in of_each_type() {
        let model = load(&same(), &model(&value_type, vec![own("Same", vec![])], "y")).unwrap();
        let info = model.inputs().next().unwrap();
        assert_eq!((info.value_type.as_ref(), info.dtype()), (Some(&value_type), None));
        assert_eq!(model.outputs().next().unwrap().value_type, Some(value_type.clone()));
        let mut runner = model.runner();
        for value in values {
            assert_eq!(value.value_type(), Some(value_type.clone()));
            let mut outputs = model.run(inputs! { "x" => &value }).unwrap();
            assert_eq!(outputs.get("y"), Some(&value), "{value_type}");
            assert_eq!(outputs.tensor("y").unwrap_err().kind(), Kind::Input);
            assert_eq!(outputs.take::<f32>("y").unwrap_err().kind(), Kind::Input);
            assert_eq!(outputs.take_value("y").unwrap(), value);
            runner.feed("x", &value).unwrap();
            runner.run().unwrap();
            assert_eq!(runner.value("y").unwrap(), &value);
            assert_eq!(runner.output("y").unwrap_err().kind(), Kind::Input);
        }
    }
}

#[test]
fn an_output_may_be_an_input_of_any_kind() {
    let tensors = [(float_type(), vec![floats(&[1.0])]), (DType::String.into(), vec![strings(&["a"]).into()])];
    let nested = sequence(float_type().sequence(), &[sequence(float_type(), &[floats(&[1.0])])]);
    let nested = [(float_type().sequence().sequence(), vec![nested])];
    for (value_type, values) in of_each_type().into_iter().chain(tensors).chain(nested) {
        for optimize in [true, false] {
            let model = load(&Model::options().optimize(optimize), &model(&value_type, vec![], "x")).unwrap();
            for value in &values {
                assert_eq!(model.run(inputs![value]).unwrap().get("x"), Some(value));
            }
        }
    }
}

#[test]
fn a_feed_is_of_the_declared_type() {
    let check = |value_type: &ValueType, feed: Value, text: &str| {
        let model = load(&same(), &model(value_type, vec![own("Same", vec![])], "y")).unwrap();
        let place = at_value("x");
        assert_as_expected([difference_at(text, model.run(inputs![feed]), Kind::Input, text, &place)]);
    };
    let (list, int_list) = (float_type().sequence(), ValueType::from(DType::Int64).sequence());
    check(&list, floats(&[1.0]), "input \"x\" has type float32, but the model expects seq(float32)");
    check(
        &list,
        sequence(DType::Int64.into(), &[]),
        &format!("input \"x\" has type {int_list}, but the model expects seq(float32)"),
    );
    check(
        &list,
        Optional::some(floats(&[])).into(),
        "input \"x\" has type optional(float32), but the model expects seq(float32)",
    );
    check(
        &float_type().optional(),
        Optional::none(DType::Double.into()).into(),
        "input \"x\" has type optional(float64), but the model expects optional(float32)",
    );
    check(
        &map_type(DType::Int64),
        map(strings(&["a"]), &[floats(&[1.0])]),
        "input \"x\" has type map(string,float32), but the model expects map(int64,float32)",
    );
    // A sequence of a file that doesn't say its type, and is empty, is of every type.
    let open = Value::from_proto_bytes(sequence(float_type(), &[]).to_proto_bytes("x"), &list).unwrap();
    let model = load(&same(), &model(&list, vec![own("Same", vec![])], "y")).unwrap();
    assert_eq!(model.run(inputs![open]).unwrap().get("y"), Some(&sequence(float_type(), &[])));
}

#[test]
fn declared_types_are_held_against_the_operators() {
    let wrong = ValueType::from(DType::Int64).sequence();
    let result = load(&same(), &model(&wrong, vec![own("Same", vec![])], "y"));
    let place = Place::default().with(|p| {
        (p.node_index, p.node, p.version) = (Some(0), Some("node".into()), Some(1));
        (p.operator, p.domain) = (Some("Same".into()), Some("com.example".into()));
    });
    let text = "node \"node\" (com.example::Same-1): \"x\" has type seq(int64): allowed seq(float32), optional(float32), \
                map(int64,float32), seq(map(string,float32))";
    let at_input = place.clone().parameter("x");
    assert_as_expected([difference_at("input", result, Kind::Model, text, &at_input)]);
    let mut other = model(&float_type().sequence(), vec![own("Same", vec![])], "y");
    graph_of(&mut other).output[0] = typed("y", &float_type().optional());
    let text = "node \"node\" (com.example::Same-1): output \"y\" has type seq(float32), but is declared as \
                optional(float32)";
    let result = load(&same(), &other);
    assert_as_expected([difference_at("output", result, Kind::Model, text, &place.named("y"))]);
}

#[test]
fn values_are_the_same_after_a_round_trip_through_bytes() {
    let list = |values: &[Value]| sequence(float_type(), values);
    let lists = |values: &[Value]| sequence(float_type().sequence(), values);
    let more = [
        (float_type(), vec![floats(&[1.0, -2.5]), floats(&[])]),
        (DType::String.into(), vec![strings(&["", "é"]).into()]),
        (ValueType::from(DType::String).sequence(), vec![sequence(DType::String.into(), &[strings(&["a"]).into()])]),
        (
            float_type().sequence().sequence(),
            vec![lists(&[list(&[floats(&[1.0])]), list(&[])]), lists(&[list(&[])]), lists(&[])],
        ),
        (
            float_type().sequence().optional(),
            vec![
                Optional::some(list(&[floats(&[1.0])])).into(),
                Optional::some(list(&[])).into(),
                Optional::none(float_type().sequence()).into(),
            ],
        ),
        (
            float_type().optional().sequence(),
            vec![sequence(float_type().optional(), &[Optional::none(float_type()).into()])],
        ),
        (map_type(DType::Uint8), vec![map(vec![0u8, 255], &[floats(&[1.0]), floats(&[2.0])])]),
        (map_type(DType::Int64), vec![map(vec![i64::MIN, i64::MAX], &[floats(&[1.0]), floats(&[2.0])])]),
    ];
    for (value_type, values) in of_each_type().into_iter().chain(more) {
        for value in values {
            let bytes = value.to_proto_bytes("name");
            let read = Value::from_proto_bytes(bytes, &value_type).unwrap_or_else(|e| panic!("{value}: {e}"));
            assert_eq!((&read, read.value_type()), (&value, Some(value_type.clone())));
        }
    }
}

#[test]
fn bytes_that_are_no_value() {
    let read = |bytes: Vec<u8>| onnxref::Tensor::from_proto_bytes(bytes).unwrap_err().to_string();
    assert_eq!(read(vec![]), "there are no bytes: an encoded TensorProto is needed");
    let model = ModelProto { producer_name: Some("exporter".into()), ..crate::good() }.encode_to_vec();
    assert_eq!(read(model.clone()), "the bytes are an ONNX model: an encoded TensorProto is needed");
    assert!(
        read(model[..9].to_vec()).starts_with("the bytes are not an encoded TensorProto, or are cut short: at byte ")
    );
    let external = TensorProto {
        data_type: Some(DType::Float.code()),
        data_location: Some(1),
        external_data: vec![StringStringEntryProto { key: Some("location".into()), value: Some("w".into()) }],
        ..TensorProto::default()
    };
    assert!(read(external.encode_to_vec()).ends_with("its data is external: only a model can have external data"));
}

#[test]
fn bytes_of_another_type_are_refused() {
    let bytes = |value: Value| value.to_proto_bytes("v");
    let list = bytes(sequence(float_type(), &[floats(&[1.0])]));
    let error = Value::from_proto_bytes(list, &ValueType::from(DType::Int64).sequence()).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (Kind::Input, "the value is of type seq(float32), not seq(int64)")
    );
    let error = Value::from_proto_bytes(bytes(floats(&[1.0])), &DType::Int64.into()).unwrap_err();
    assert_eq!(error.kind(), Kind::Input, "{error}");
    let some = bytes(Optional::some(floats(&[1.0])).into());
    let error = Value::from_proto_bytes(some, &ValueType::from(DType::Int64).optional()).unwrap_err();
    assert_eq!(error.kind(), Kind::Input, "{error}");
    let error = Value::from_proto_bytes(vec![0xff; 3], &float_type().sequence()).unwrap_err();
    assert_eq!(error.kind(), Kind::Model, "{error}");
}

fn sparse(values: &Tensor, indices: &Tensor, dims: &[i64]) -> SparseTensorProto {
    SparseTensorProto {
        values: Some(Box::new(initializer("s", values))),
        indices: Some(Box::new(initializer("", indices))),
        dims: dims.to_vec(),
    }
}

/// A graph whose output is a sparse initializer.
fn with_sparse(sparse: SparseTensorProto, dtype: DType) -> ModelProto {
    let mut model = model(&float_type(), vec![], "x");
    let graph = graph_of(&mut model);
    graph.input.clear();
    graph.sparse_initializer = vec![sparse];
    graph.output = vec![typed("s", &dtype.into())];
    model
}

fn dense(values: &Tensor, indices: &Tensor, dims: &[i64]) -> Result<Tensor, Error> {
    let model = load(&Model::options(), &with_sparse(sparse(values, indices, dims), values.dtype()))?;
    model.run(inputs! {})?.take_value("s")?.into_tensor()
}

#[test]
fn sparse_initializers_are_made_dense() {
    let want: Tensor = array![[0f32, 1.0, 0.0], [2.0, 0.0, 3.0]].into();
    let values: Tensor = vec![1f32, 2.0, 3.0].into();
    assert_eq!(dense(&values, &int64(&[3], &[1, 3, 5]), &[2, 3]).unwrap(), want);
    assert_eq!(dense(&values, &int64(&[3, 2], &[0, 1, 1, 0, 1, 2]), &[2, 3]).unwrap(), want);
    // Of other types, and without values or elements.
    assert_eq!(dense(&vec![true].into(), &int64(&[1], &[1]), &[2]).unwrap(), vec![false, true].into());
    assert_eq!(dense(&vec![-1i64].into(), &int64(&[1, 1], &[0]), &[2]).unwrap(), vec![-1i64, 0].into());
    let none: Tensor = Vec::<f32>::new().into();
    assert_eq!(dense(&none, &int64(&[0], &[]), &[2]).unwrap(), vec![0f32, 0.0].into());
    assert_eq!(dense(&none, &int64(&[0, 2], &[]), &[2, 0]).unwrap().shape(), [2, 0]);
    assert_eq!(dense(&vec![5f32].into(), &int64(&[1], &[0]), &[]).unwrap(), Tensor::scalar(5f32));

    // A node reads it as any other.
    let mut model = good();
    let graph = graph_of(&mut model);
    let mut table = sparse(&values, &int64(&[3], &[1, 3, 5]), &[2, 3]);
    table.values.as_mut().unwrap().name = Some("data".into());
    graph.sparse_initializer = vec![table];
    (graph.input, graph.output) = (graph.input.split_off(1), vec![typed("output", &float_type())]);
    let outputs = crate::load_and_run(&model, inputs! { "indices" => vec![1i64, 0] }).unwrap();
    assert_eq!(outputs["output"], array![[2f32, 0.0, 3.0], [0.0, 1.0, 0.0]].into());
}

#[test]
fn wrong_sparse_tensors() {
    let two: Tensor = vec![1f32, 2.0].into();
    let said = |text: &str| format!("initializer: sparse tensor \"s\": {text}");
    let check = |indices: Tensor, dims: &[i64], text: &str, position: Option<usize>| {
        let place = at_value("s").with(|p| p.position = position.map(|k| vec![k]));
        let result = dense(&two, &indices, dims);
        assert_as_expected([difference_at(text, result, Kind::Model, &said(text), &place)]);
    };
    let later = |k| format!("its index {k} is not greater than the one before: indices must ascend");
    check(int64(&[2], &[3, 1]), &[4], &later(1), Some(1));
    check(int64(&[2], &[1, 1]), &[4], &later(1), Some(1));
    check(int64(&[2, 2], &[1, 0, 0, 1]), &[2, 2], &later(1), Some(1));
    check(int64(&[2], &[0, 4]), &[4], "its index 1 is out of range for shape [4]", Some(1));
    check(int64(&[2], &[-1, 0]), &[4], "its index 0 is out of range for shape [4]", Some(0));
    check(int64(&[2], &[0, i64::MAX]), &[4], "its index 1 is out of range for shape [4]", Some(1));
    // Its place would be that of another element.
    check(int64(&[2, 2], &[0, 0, 0, 2]), &[2, 2], "its index 1 is out of range for shape [2, 2]", Some(1));
    check(int64(&[2, 2], &[0, 0, 1, -1]), &[2, 2], "its index 1 is out of range for shape [2, 2]", Some(1));
    check(int64(&[2], &[0, 1]), &[0, 4], "its index 0 is out of range for shape [0, 4]", Some(0));
    let shapes = |got: &str, rank| format!("its indices have shape {got}: [2] or [2, {rank}] is needed for 2 values");
    check(int64(&[3], &[0, 1, 2]), &[4], &shapes("[3]", 1), None);
    check(int64(&[2, 1], &[0, 1]), &[2, 2], &shapes("[2, 1]", 2), None);
    check(int64(&[1, 2], &[0, 1]), &[4], &shapes("[1, 2]", 1), None);
    check(int64(&[2, 1, 1], &[0, 1]), &[4], &shapes("[2, 1, 1]", 1), None);
    let types = "its values have rank 1 and its indices type int32: 1 and int64 are needed";
    check(vec![0i32, 1].into(), &[4], types, None);
    let error = dense(&iota(&[1, 1]), &int64(&[1], &[0]), &[4]).unwrap_err();
    assert_eq!((error.kind(), error.place()), (Kind::Model, &at_value("s")), "{error}");
    let error = dense(&strings(&["a"]), &int64(&[1], &[0]), &[4]).unwrap_err();
    assert_eq!((error.kind(), error.place()), (Kind::Unsupported, &at_value("s")), "{error}");
    for dims in [&[-1][..], &[i64::MAX, 16]] {
        let error = dense(&two, &int64(&[2], &[0, 1]), dims).unwrap_err();
        assert_eq!((error.kind(), error.place().value_name.as_deref()), (Kind::Model, Some("s")), "{error}");
    }
    for change in [|s: &mut SparseTensorProto| s.indices = None, |s: &mut SparseTensorProto| s.dims.clear()] {
        let mut odd = sparse(&two, &int64(&[2], &[0, 1]), &[4]);
        change(&mut odd);
        let error = load(&Model::options(), &with_sparse(odd, DType::Float)).unwrap_err();
        assert_eq!((error.kind(), error.place().value_name.as_deref()), (Kind::Model, Some("s")), "{error}");
    }
}

#[test]
fn a_sparse_tensor_is_not_larger_than_the_budget() {
    // A few bytes stand for 4 TiB, and for what is just beyond the budget.
    for size in [1 << 40, (64 << 20) / 4 + 10_000] {
        let error = dense(&vec![1f32].into(), &int64(&[1], &[0]), &[size]).unwrap_err();
        assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("load_bytes")), "{error}");
    }
    let dims = vec![1i64; 65];
    let error = dense(&vec![1f32].into(), &int64(&[1], &[0]), &dims).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("rank")), "{error}");
}

/// An operator whose node has an attribute "a" of a kind, which is looked at when it is made.
fn reading(
    kind: &str,
    read: impl Fn(&Node<'_>) -> Result<(), Error> + Send + Sync + 'static,
    given: Vec<AttributeProto>,
) -> Result<Model, Error> {
    let schema = format!("com.example.Reads 1\n  (x: T) -> (y: T)\n  a: {kind}\n  T: float");
    let make = move |node: &Node<'_>| -> Result<Box<dyn Operator>, Error> {
        read(node)?;
        crate::custom::given(|call| one(call.tensor(0)?.clone()))(node)
    };
    let options = Model::options().operator(&schema, make).unwrap();
    load(&options, &model(&float_type(), vec![own("Reads", given)], "y"))
}

#[test]
fn attributes_of_every_kind_are_read() {
    let of = |kind| attribute("a", kind);
    fn wants<T: PartialEq + std::fmt::Debug>(got: T, want: T) -> Result<(), Error> {
        if got == want { Ok(()) } else { Err(Error::model(format!("{got:?} is not {want:?}"))) }
    }
    reading("INT", |n| wants(n.int("a")?, -3), vec![int("a", -3)]).unwrap();
    reading("FLOAT", |n| wants(n.float("a")?, 0.5), vec![float("a", 0.5)]).unwrap();
    reading("STRING", |n| wants(n.string("a")?, "é"), vec![string("a", "é")]).unwrap();
    reading("TENSOR", |n| wants(n.tensor("a")?, &iota(&[2])), vec![tensor("a", &iota(&[2]))]).unwrap();
    reading("INTS", |n| wants(n.ints("a")?, &[1, -2]), vec![ints("a", &[1, -2])]).unwrap();
    let list = AttributeProto { floats: vec![0.5, 1.0], ..of(AttributeType::Floats) };
    reading("FLOATS", |n| wants(n.floats("a")?, &[0.5, 1.0]), vec![list]).unwrap();
    let list = AttributeProto { strings: vec!["a".into(), "".into()], ..of(AttributeType::Strings) };
    reading("STRINGS", |n| wants(n.strings("a")?, &["a".to_string(), String::new()]), vec![list]).unwrap();
    let list = AttributeProto { tensors: vec![initializer("", &iota(&[1]))], ..of(AttributeType::Tensors) };
    reading("TENSORS", |n| wants(n.tensors("a")?, &[iota(&[1])]), vec![list]).unwrap();
    let nested = float_type().sequence().optional();
    let of_type = AttributeProto { tp: Some(Box::new(type_of(&nested))), ..of(AttributeType::TypeProto) };
    reading("TYPE_PROTO", move |n| wants(n.value_type("a")?, &nested), vec![of_type]).unwrap();
    let types = [float_type(), map_type(DType::String)];
    let list = AttributeProto { type_protos: types.iter().map(type_of).collect(), ..of(AttributeType::TypeProtos) };
    reading("TYPE_PROTOS", move |n| wants(n.attribute("a"), Some(&Attribute::Types(types.to_vec()))), vec![list])
        .unwrap();
    let thin = || sparse(&vec![1f32].into(), &int64(&[1], &[1]), &[2]);
    let wide: Tensor = vec![0f32, 1.0].into();
    let (first, second) = (wide.clone(), wide);
    let one = AttributeProto { sparse_tensor: Some(Box::new(thin())), ..of(AttributeType::SparseTensor) };
    let read = move |n: &Node<'_>| wants(n.attribute("a"), Some(&Attribute::SparseTensor(first.clone())));
    reading("SPARSE_TENSOR", read, vec![one]).unwrap();
    let list = AttributeProto { sparse_tensors: vec![thin()], ..of(AttributeType::SparseTensors) };
    let read = move |n: &Node<'_>| wants(n.attribute("a"), Some(&Attribute::SparseTensors(vec![second.clone()])));
    reading("SPARSE_TENSORS", read, vec![list]).unwrap();
}

#[test]
fn an_attribute_that_is_not_there_or_of_another_kind() {
    fn wants(right: bool) -> Result<(), Error> {
        right.then_some(()).ok_or_else(|| Error::model("it is another one"))
    }
    reading("INT", |n| wants(n.attribute("a").is_none()), vec![]).unwrap();
    reading("INT = 4", |n| wants(n.int("a")? == 4), vec![]).unwrap();
    let refused = |error: Error, text: &str| {
        assert_eq!((error.kind(), error.place().attribute.as_deref()), (Kind::Model, Some("a")));
        assert_eq!(error.to_string(), format!("node \"node\" (com.example::Reads-1): {text}"));
    };
    let missing = reading("INT", |n| n.int("a").map(drop), vec![]).unwrap_err();
    refused(missing, "attribute \"a\" of kind INT is not given");
    let other = reading("INT", |n| n.strings("a").map(drop), vec![int("a", 1)]).unwrap_err();
    refused(other, "attribute \"a\" of kind STRINGS is of another kind");
    let odd = sparse(&vec![1f32].into(), &int64(&[1], &[2]), &[2]);
    let odd = AttributeProto { sparse_tensor: Some(Box::new(odd)), ..attribute("a", AttributeType::SparseTensor) };
    let error = reading("SPARSE_TENSOR", |_| Ok(()), vec![odd]).unwrap_err();
    refused(error, "attribute \"a\": sparse tensor \"s\": its index 0 is out of range for shape [2]");
}
