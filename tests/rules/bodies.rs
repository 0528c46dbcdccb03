//! Subgraphs: what they see, how often they run, and what is refused.

use super::common::proto::FunctionProto;
use super::common::proto::attribute_proto::AttributeType;
use super::common::{attribute, initializer, int, ints, type_of, typed};
use super::*;
use onnxref::{Cancel, Limits, NodeInfo, Optional, Remedy, Sequence, Value, ValueType, Watch};

/// A subgraph in an attribute.
pub(super) fn body(
    name: &str,
    inputs: &[ValueInfoProto],
    nodes: Vec<NodeProto>,
    outputs: &[&str],
) -> common::proto::AttributeProto {
    let graph = GraphProto {
        name: Some(name.into()),
        node: nodes,
        input: inputs.to_vec(),
        output: outputs
            .iter()
            .map(|name| ValueInfoProto { name: Some(name.to_string()), ..Default::default() })
            .collect(),
        ..GraphProto::default()
    };
    common::proto::AttributeProto { g: Some(Box::new(graph)), ..attribute(name, AttributeType::Graph) }
}

pub(super) fn open(name: &str, dtype: DType) -> ValueInfoProto {
    value(name, dtype, None)
}

/// A model with inputs `x` (float), `n` (int64) and `c` (bool), and outputs of any type.
fn model_of(opset: i64, nodes: Vec<NodeProto>, outputs: &[&str]) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![import("", opset)],
        graph: Some(GraphProto {
            node: nodes,
            input: vec![open("x", DType::Float), open("n", DType::Int64), open("c", DType::Bool)],
            output: outputs
                .iter()
                .map(|name| ValueInfoProto { name: Some(name.to_string()), ..Default::default() })
                .collect(),
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

fn feeds(x: &[f32], n: i64, c: bool) -> Inputs<'static> {
    inputs! { "x" => Tensor::from(x.to_vec()), "n" => Tensor::scalar(n), "c" => Tensor::scalar(c) }
}

fn floats(values: &[f32]) -> Value {
    Tensor::from(values.to_vec()).into()
}

/// `y = If(c) { x + x } else { x * (x + x) }`: the branches read outer values, the second one also an inner one.
fn either() -> Vec<NodeProto> {
    let then_branch = body("then_branch", &[], vec![node("Add", &["x", "x"], &["t"], vec![])], &["t"]);
    let nodes = vec![node("Add", &["x", "x"], &["d"], vec![]), node("Mul", &["x", "d"], &["e"], vec![])];
    vec![node("If", &["c"], &["y"], vec![then_branch, body("else_branch", &[], nodes, &["e"])])]
}

/// `s = sum of x over n trips; all = the sums after each`: `x` is read from outside.
fn looped() -> Vec<NodeProto> {
    let inputs = [open("i", DType::Int64), open("go", DType::Bool), open("before", DType::Float)];
    let nodes = vec![
        node("Add", &["before", "x"], &["after"], vec![]),
        node("Identity", &["after"], &["each"], vec![]),
        node("Identity", &["go"], &["on"], vec![]),
    ];
    vec![
        node("Sub", &["x", "x"], &["zero"], vec![]),
        node("Loop", &["n", "", "zero"], &["s", "all"], vec![body("body", &inputs, nodes, &["on", "after", "each"])]),
    ]
}

#[test]
fn one_of_two() {
    let model = load(&model_of(13, either(), &["y"])).unwrap();
    assert_eq!(model.run(feeds(&[1.0, 3.0], 0, true)).unwrap().get("y"), Some(&floats(&[2.0, 6.0])));
    assert_eq!(model.run(feeds(&[1.0, 3.0], 0, false)).unwrap().get("y"), Some(&floats(&[2.0, 18.0])));
    // A branch may give an outer value as it is, and has no other inputs.
    let branches = vec![body("then_branch", &[], vec![], &["x"]), body("else_branch", &[], vec![], &["n"])];
    let model = load(&model_of(13, vec![node("If", &["c"], &["y"], branches)], &["y"])).unwrap();
    assert_eq!(model.run(feeds(&[1.0], 7, false)).unwrap().get("y"), Some(&Tensor::scalar(7i64).into()));
    let wrong =
        vec![body("then_branch", &[open("i", DType::Float)], vec![], &["x"]), body("else_branch", &[], vec![], &["x"])];
    let error = load(&model_of(13, vec![node("If", &["c"], &["y"], wrong)], &["y"])).unwrap_err();
    let text = "node #0 (If-13): the subgraph \"then_branch\" has 1 input: this node needs 0";
    assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Model, text));
}

#[test]
fn as_often_as_it_says() {
    let model = load(&model_of(13, looped(), &["s", "all"])).unwrap();
    let outputs = model.run(feeds(&[1.0, 2.0], 3, true)).unwrap();
    assert_eq!(outputs.get("s"), Some(&floats(&[3.0, 6.0])));
    assert_eq!(outputs["all"], array![[1f32, 2.0], [2.0, 4.0], [3.0, 6.0]].into());
    let outputs = model.run(feeds(&[1.0, 2.0], 0, true)).unwrap();
    assert_eq!(outputs.get("s"), Some(&floats(&[0.0, 0.0])));
    assert_eq!((outputs["all"].dtype(), outputs["all"].shape()[0]), (DType::Float, 0));
    assert_eq!(model.run(feeds(&[1.0, 2.0], -5, true)).unwrap().get("s"), Some(&floats(&[0.0, 0.0])));
    // Without optimisation too.
    let plain = load_with(Model::options().optimize(false), &model_of(13, looped(), &["s", "all"])).unwrap();
    assert_eq!(plain.run(feeds(&[1.0, 2.0], 3, true)).unwrap().get("s"), Some(&floats(&[3.0, 6.0])));
}

#[test]
fn strings_of_all_trips_are_stacked() {
    // Each trip makes a text of its own.
    let inputs = [open("i", DType::Int64), open("go", DType::Bool)];
    let nodes = vec![node("Cast", &["i"], &["text"], vec![int("to", DType::String.code().into())])];
    let nodes = vec![node("Loop", &["n", ""], &["all"], vec![body("body", &inputs, nodes, &["go", "text"])])];
    let outputs = load(&model_of(13, nodes, &["all"])).unwrap().run(feeds(&[], 3, true)).unwrap();
    assert_eq!(outputs["all"], Tensor::from_strings(&[3], ["0", "1", "2"]).unwrap());
}

/// Without trips the shape is the declared one, whatever could be inferred.
#[test]
fn no_trips_give_the_same_shape_with_and_without_optimisation() {
    let inputs = [open("i", DType::Int64), open("go", DType::Bool)];
    let nodes = vec![node("Identity", &["three"], &["out"], vec![])];
    let mut three = body("body", &inputs, nodes, &["go", "out"]);
    three.g.as_mut().unwrap().initializer.push(initializer("three", &Tensor::from(vec![1f32, 2.0, 3.0])));
    let model = model_of(13, vec![node("Loop", &["n", ""], &["all"], vec![three])], &["all"]);
    for optimize in [true, false] {
        let loaded = load_with(Model::options().optimize(optimize), &model).unwrap();
        assert_eq!(loaded.run(feeds(&[], 0, true)).unwrap()["all"].shape(), [0], "{optimize}");
        assert_eq!(loaded.run(feeds(&[], 2, true)).unwrap()["all"].shape(), [2, 3], "{optimize}");
    }
}

#[test]
fn until_the_condition_is_false() {
    // Counts down from n, and stops at 0.
    let inputs = [open("i", DType::Int64), open("go", DType::Bool), open("left", DType::Int64)];
    let one = initializer("one", &Tensor::scalar(1i64));
    let nodes =
        vec![node("Sub", &["left", "one"], &["less"], vec![]), node("Cast", &["less"], &["on"], vec![int("to", 9)])];
    let mut count = body("body", &inputs, nodes, &["on", "less", "i"]);
    count.g.as_mut().unwrap().initializer.push(one);
    let proto = model_of(13, vec![node("Loop", &["", "c", "n"], &["last", "trips"], vec![count])], &["last", "trips"]);
    let model = load(&proto).unwrap();
    let outputs = model.run(feeds(&[], 4, true)).unwrap();
    assert_eq!((&outputs["last"], &outputs["trips"]), (&Tensor::scalar(0i64), &Tensor::from(vec![0i64, 1, 2, 3])));
    let outputs = model.run(feeds(&[], 4, false)).unwrap();
    assert_eq!((&outputs["last"], outputs["trips"].shape()), (&Tensor::scalar(4i64), &[0][..]));
    // It never ends by itself.
    let mut limits = Limits::default();
    limits.run_nodes = 10_000;
    let error = load_with(Model::options().limits(limits), &proto).unwrap().run(feeds(&[], -1, true)).unwrap_err();
    assert_eq!(error.place().limit, Some("run_nodes"));
}

#[test]
fn two_to_the_63_empty_trips() {
    let inputs = [open("i", DType::Int64), open("go", DType::Bool)];
    let nodes = vec![node("Loop", &["n", ""], &["all"], vec![body("body", &inputs, vec![], &["go", "i"])])];
    let model = model_of(13, nodes, &["all"]);
    let mut limits = Limits::default();
    limits.run_nodes = 100_000;
    let error =
        load_with(Model::options().limits(limits), &model).unwrap().run(feeds(&[], i64::MAX, true)).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("run_nodes")));
    // The lists of what is stacked count as memory too.
    let mut limits = Limits::default();
    limits.run_bytes = 1 << 20;
    let error =
        load_with(Model::options().limits(limits), &model).unwrap().run(feeds(&[], i64::MAX, true)).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("run_bytes")));
}

#[test]
fn entry_by_entry() {
    // Sums of the columns before each, from the right; and the doubles of these.
    let inputs = [open("before", DType::Float), open("column", DType::Float)];
    let nodes = vec![
        node("Add", &["before", "column"], &["after"], vec![]),
        node("Add", &["after", "after"], &["twice"], vec![]),
    ];
    let attributes = vec![
        body("body", &inputs, nodes, &["after", "twice"]),
        int("num_scan_inputs", 1),
        ints("scan_input_axes", &[-1]),
        ints("scan_input_directions", &[1]),
        ints("scan_output_axes", &[1]),
        ints("scan_output_directions", &[1]),
    ];
    let mut model = model_of(13, vec![node("Scan", &["start", "x"], &["sum", "all"], attributes)], &["sum", "all"]);
    graph_of(&mut model).initializer.push(initializer("start", &Tensor::from(vec![0f32, 100.0])));
    let x: Tensor = array![[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]].into();
    let feeds = |x: &Tensor| inputs! { "x" => x.clone(), "n" => Tensor::scalar(0i64), "c" => Tensor::scalar(true) };
    let outputs = load_and_run(&model, feeds(&x)).unwrap();
    assert_eq!(outputs.get("sum"), Some(&floats(&[6.0, 115.0])));
    assert_eq!(outputs["all"], array![[12f32, 10.0, 6.0], [230.0, 222.0, 212.0]].into());
    let error = load_and_run(&model, feeds(&Tensor::scalar(1f32))).unwrap_err();
    assert!(error.to_string().contains("is a scalar"), "{error}");
}

/// What is declared of a value that trips hand on holds for all of them only if each makes such a value again.
#[test]
fn sizes_that_trips_change() {
    let grown = |before: Option<&[Dim]>, after: Option<&[Dim]>, change: NodeProto| {
        let mut trip = body("body", &[], vec![change], &["go", "after"]);
        let graph = trip.g.as_mut().unwrap();
        graph.input = vec![open("i", DType::Int64), open("go", DType::Bool), value("before", DType::Float, before)];
        graph.output[1] = value("after", DType::Float, after);
        let model = model_of(13, vec![node("Loop", &["n", "c", "x"], &["y"], vec![trip])], &["y"]);
        load_and_run(&model, feeds(&[1.0, 2.0], 2, true)).map(|outputs| outputs["y"].shape().to_vec())
    };
    let double = || node("Concat", &["before", "before"], &["after"], vec![int("axis", 0)]);
    let (two, many) = ([Dim::Fixed(2)], [Dim::Symbol("n".into())]);
    assert_eq!(grown(Some(&two), Some(&many), double()).unwrap(), [8]);
    assert_eq!(grown(Some(&two), None, double()).unwrap(), [8]);
    assert_eq!(grown(Some(&many), Some(&two), double()).unwrap(), [8]);
    assert_eq!(grown(None, Some(&two), double()).unwrap(), [8]);
    let row = node("Flatten", &["before"], &["after"], vec![int("axis", 0)]);
    assert_eq!(grown(Some(&two), Some(&[Dim::Fixed(1), Dim::Fixed(2)]), row).unwrap(), [1, 2]);
    let error = grown(Some(&two), Some(&two), double()).unwrap_err().to_string();
    assert!(error.contains("input \"before\" has shape [4]: dimension 0 is 4, but the model expects 2"), "{error}");
}

/// Inputs of a body that its node doesn't give have the values of their initializers.
#[test]
fn inputs_that_the_node_does_not_give() {
    let more = |name: &str, inputs: &[&str], nodes, outputs: &[&str]| {
        let inputs: Vec<_> = inputs.iter().chain(&["more"]).map(|name| open(name, DType::Float)).collect();
        let mut body = body(name, &inputs, nodes, outputs);
        body.g.as_mut().unwrap().initializer.push(initializer("more", &Tensor::from(vec![10f32])));
        body
    };
    let plus = |name: &str| vec![node("Add", &[name, "more"], &["sum"], vec![])];
    let given = |model: &ModelProto, want: &[f32]| {
        for ir_version in [3, 8] {
            let model = ModelProto { ir_version: Some(ir_version), ..model.clone() };
            assert_eq!(load_and_run(&model, feeds(&[1.0], 2, true)).unwrap().get("y"), Some(&floats(want)));
        }
    };
    let branches = vec![more("then_branch", &[], plus("x"), &["sum"]), more("else_branch", &[], plus("x"), &["sum"])];
    given(&model_of(13, vec![node("If", &["c"], &["y"], branches)], &["y"]), &[11.0]);
    let trips = || {
        let mut trip = more("body", &["i", "go", "before"], plus("before"), &["go", "sum"]);
        let inputs = &mut trip.g.as_mut().unwrap().input;
        (inputs[0], inputs[1]) = (open("i", DType::Int64), open("go", DType::Bool));
        trip
    };
    given(&model_of(13, vec![node("Loop", &["n", "c", "x"], &["y"], vec![trips()])], &["y"]), &[21.0]);
    // What the node gives counts, as it does for the graph.
    let mut both = model_of(13, vec![node("Loop", &["n", "c", "x", "x"], &["y", "rest"], vec![trips()])], &["y"]);
    graph_of(&mut both).node[0].attribute[0].g.as_mut().unwrap().output.push(open("more", DType::Float));
    assert_eq!(load_and_run(&both, feeds(&[1.0], 2, true)).unwrap().get("y"), Some(&floats(&[3.0])));
    let column = || vec![more("body", &["column"], plus("column"), &["sum"]), int("num_scan_inputs", 1)];
    let rows = node("Unsqueeze", &["x"], &["rows"], vec![ints("axes", &[1])]);
    given(&model_of(11, vec![rows, node("Scan", &["rows"], &["y2"], column()), squeezed("y2", 1)], &["y"]), &[11.0]);
    let batch = node("Unsqueeze", &["x"], &["batch"], vec![ints("axes", &[0, 2])]);
    given(
        &model_of(8, vec![batch, node("Scan", &["", "batch"], &["y3"], column()), squeezed("y3", 2)], &["y"]),
        &[11.0],
    );
    let split = node("SplitToSequence", &["x"], &["parts"], vec![]);
    let map = node("SequenceMap", &["parts"], &["sums"], vec![more("body", &["part"], plus("part"), &["sum"])]);
    let joined = node("ConcatFromSequence", &["sums"], &["y"], vec![int("axis", 0)]);
    given(&model_of(17, vec![split, map, joined], &["y"]), &[11.0]);
    // Without an initializer nothing gives it.
    let mut without = model_of(13, vec![node("Loop", &["n", "c", "x"], &["y"], vec![trips()])], &["y"]);
    graph_of(&mut without).node[0].attribute[0].g.as_mut().unwrap().initializer.clear();
    let error = load(&without).unwrap_err();
    assert!(error.to_string().contains("the subgraph \"body\" has 4 inputs: this node needs 3"), "{error}");
}

/// `y` without the first axes, of size 1.
/// A branch convolves an image of float16 of the graph around it by filters that are there.
#[test]
fn convolutions_of_16_bits_inside() {
    let to = |dtype: DType| vec![int("to", dtype.code().into())];
    let convolved = vec![node("Conv", &["h", "w"], &["s"], vec![]), node("Relu", &["s"], &["r"], vec![])];
    let other = vec![node("Neg", &["h"], &["o"], vec![])];
    let branches = vec![body("then_branch", &[], convolved, &["r"]), body("else_branch", &[], other, &["o"])];
    let nodes = vec![
        node("Cast", &["x"], &["h"], to(DType::Float16)),
        node("If", &["c"], &["y"], branches),
        node("Cast", &["y"], &["z"], to(DType::Float)),
    ];
    let mut model = model_of(17, nodes, &["z"]);
    let filters = Tensor::from_elements(&[2, 1, 1], [2f32, -1.0].map(half::f16::from_f32).to_vec()).unwrap();
    model.graph.as_mut().unwrap().initializer.push(initializer("w", &filters));
    for optimize in [false, true] {
        let model = load_with(Model::options().optimize(optimize), &model).unwrap();
        let x = Tensor::from_elements(&[1, 1, 3], vec![1f32, -2.0, 3.0]).unwrap();
        let ran = model.run(inputs! { "x" => x, "n" => Tensor::scalar(0i64), "c" => Tensor::scalar(true) }).unwrap();
        let want = Tensor::from_elements(&[1, 2, 3], vec![2f32, 0.0, 6.0, 0.0, 2.0, 0.0]).unwrap();
        assert_eq!(ran.get("z"), Some(&want.into()), "{optimize}");
    }
}

fn squeezed(input: &str, count: i64) -> NodeProto {
    node("Squeeze", &[input], &["y"], vec![ints("axes", &(0..count).collect::<Vec<_>>())])
}

#[test]
fn names_inside_and_outside() {
    // What is given outside before may not be given again inside.
    let again = |inner: &str| {
        let branches = [
            body("then_branch", &[], vec![node("Add", &["x", "x"], &[inner], vec![])], &[inner]),
            body("else_branch", &[], vec![], &["x"]),
        ];
        let nodes = vec![node("Add", &["x", "x"], &["d"], vec![]), node("If", &["c"], &["y"], branches.to_vec())];
        load(&model_of(13, nodes, &["y", "d"]))
    };
    let error = again("d").unwrap_err();
    let text = "node #1 (If-13): the name \"d\" is given twice: in its subgraph, and outside";
    assert_eq!((format!("{error:#}").as_str(), error.remedy()), (text, Some(Remedy::Allow("shadowed_names"))));
    // What comes later outside is not seen inside.
    assert!(again("y").is_ok());
    // The same further inside.
    let deeper = |inner: &str| {
        let give = |name: &str| vec![node("Add", &["x", "x"], &[name], vec![])];
        let branches = |name: &str| {
            vec![body("then_branch", &[], give(name), &[name]), body("else_branch", &[], give("e"), &["e"])]
        };
        let chosen = body("then_branch", &[], vec![node("If", &["c"], &["z"], branches(inner))], &["z"]);
        let nodes = vec![
            node("Add", &["x", "x"], &["d"], vec![]),
            node("If", &["c"], &["y"], vec![chosen, body("else_branch", &[], give("f"), &["f"])]),
        ];
        load(&model_of(13, nodes, &["y", "d"]))
    };
    let error = deeper("d").unwrap_err();
    assert_eq!((format!("{error:#}").as_str(), error.remedy()), (text, Some(Remedy::Allow("shadowed_names"))));
    // Branches don't see each other.
    assert!(deeper("f").is_ok());
    // A name that nobody gives is the fault of the outermost node that reads it.
    let branches = [body("then_branch", &[], vec![], &["nobody"]), body("else_branch", &[], vec![], &["x"])];
    let error = load(&model_of(13, vec![node("If", &["c"], &["y"], branches.to_vec())], &["y"])).unwrap_err();
    assert_eq!(error.to_string(), "node #0 (If-13): input \"nobody\" is produced by nothing");
}

/// Where it is allowed to give a name again, the inner value counts inside, and the outer one outside.
#[test]
fn names_that_hide_others() {
    let allowed = |optimize| Model::options().optimize(optimize).compatibility(|c| c.shadowed_names = true);
    let gives = |model: &ModelProto, outputs: &[(&str, &[f32])]| {
        let error = load(model).unwrap_err();
        assert!(error.causes().iter().all(|error| error.remedy() == Some(Remedy::Allow("shadowed_names"))), "{error}");
        for optimize in [true, false] {
            let ran = load_with(allowed(optimize), model).unwrap().run(feeds(&[1.0, 2.0], 2, true)).unwrap();
            outputs.iter().for_each(|(name, want)| assert_eq!(ran.get(name), Some(&floats(want)), "{name}"));
        }
    };
    let twice = node("Add", &["x", "x"], &["d"], vec![]);
    // A node's output, an initializer and an input of a subgraph: `d` outside is [2, 4].
    let inner =
        |nodes: Vec<NodeProto>| vec![body("then_branch", &[], nodes, &["z"]), body("else_branch", &[], vec![], &["x"])];
    let nodes = vec![node("Mul", &["x", "x"], &["d"], vec![]), node("Neg", &["d"], &["z"], vec![])];
    let choice = node("If", &["c"], &["y"], inner(nodes.clone()));
    gives(&model_of(13, vec![twice.clone(), choice], &["y", "d"]), &[("y", &[-1.0, -4.0]), ("d", &[2.0, 4.0])]);
    let mut constant = inner(vec![node("Neg", &["d"], &["z"], vec![])]);
    constant[0].g.as_mut().unwrap().initializer.push(initializer("d", &Tensor::from(vec![5f32])));
    let choice = node("If", &["c"], &["y"], constant);
    gives(&model_of(13, vec![twice.clone(), choice], &["y", "d"]), &[("y", &[-5.0]), ("d", &[2.0, 4.0])]);
    let inputs = [open("i", DType::Int64), open("go", DType::Bool), open("x", DType::Float)];
    let trip = body("body", &inputs, vec![node("Add", &["x", "d"], &["after"], vec![])], &["go", "after"]);
    let sum = node("Loop", &["n", "", "x"], &["y"], vec![trip]);
    gives(&model_of(13, vec![twice.clone(), sum], &["y", "x"]), &[("y", &[5.0, 10.0]), ("x", &[1.0, 2.0])]);
    // A subgraph inside reads the nearest.
    let nearest = node("If", &["c"], &["z"], inner(vec![node("Neg", &["d"], &["z"], vec![])]));
    let mut nodes = nodes;
    nodes[1] = nearest;
    let choice = node("If", &["c"], &["y"], inner(nodes));
    gives(&model_of(13, vec![twice.clone(), choice], &["y", "d"]), &[("y", &[-1.0, -4.0]), ("d", &[2.0, 4.0])]);
    // Before the inner value is there, the name has no meaning.
    let early = vec![node("Neg", &["d"], &["e"], vec![]), node("Neg", &["x"], &["d"], vec![])];
    let choice = node(
        "If",
        &["c"],
        &["y"],
        vec![body("then_branch", &[], early, &["d"]), body("else_branch", &[], vec![], &["x"])],
    );
    let error = load_with(allowed(true), &model_of(13, vec![twice, choice], &["y"])).unwrap_err();
    let text = "in node #1 (If): node #0 (Neg-13): input \"d\" is produced by node #1, which comes later: nodes must be sorted";
    assert_eq!(format!("{error:#}"), text);
}

#[test]
fn subgraphs_in_subgraphs() {
    // A loop whose trips choose; both levels read outer values.
    let inputs = [open("i", DType::Int64), open("go", DType::Bool), open("before", DType::Float)];
    let then_branch = body("then_branch", &[], vec![node("Add", &["before", "x"], &["t"], vec![])], &["t"]);
    let else_branch = body("else_branch", &[], vec![node("Mul", &["before", "x"], &["e"], vec![])], &["e"]);
    let nodes = vec![node("If", &["c"], &["after"], vec![then_branch, else_branch])];
    let nodes = vec![node("Loop", &["n", "", "x"], &["y"], vec![body("body", &inputs, nodes, &["go", "after"])])];
    let model = load(&model_of(13, nodes, &["y"])).unwrap();
    assert_eq!(model.run(feeds(&[2.0, 3.0], 3, true)).unwrap().get("y"), Some(&floats(&[8.0, 12.0])));
    assert_eq!(model.run(feeds(&[2.0, 3.0], 3, false)).unwrap().get("y"), Some(&floats(&[16.0, 81.0])));
}

#[test]
fn errors_name_the_node_in_the_subgraph() {
    let then_branch =
        body("then_branch", &[], vec![named("inner", node("Gather", &["x", "n"], &["t"], vec![]))], &["t"]);
    let nodes =
        vec![named("choice", node("If", &["c"], &["y"], vec![then_branch, body("else_branch", &[], vec![], &["x"])]))];
    let error = load_and_run(&model_of(13, nodes, &["y"]), feeds(&[1.0], 5, true)).unwrap_err();
    let text = "in node \"choice\" (If): node \"inner\" (Gather-13): indices = 5 is out of range";
    assert!(error.to_string().starts_with(text), "{error}");
    let place = error.place();
    assert_eq!((place.node.as_deref(), place.function.as_deref()), (Some("inner"), Some("node \"choice\" (If)")));
}

/// A function whose nodes have subgraphs, and subgraphs whose nodes call functions.
#[test]
fn functions_and_subgraphs() {
    let call = |inputs: &[&str], output: &str| NodeProto {
        domain: Some("own".into()),
        ..node("Pick", inputs, &[output], vec![])
    };
    // Pick(c, v) = If(c) { v + v } else { v }
    let then_branch = body("then_branch", &[], vec![node("Add", &["v", "v"], &["t"], vec![])], &["t"]);
    let pick = FunctionProto {
        name: Some("Pick".into()),
        domain: Some("own".into()),
        input: vec!["c".into(), "v".into()],
        output: vec!["r".into()],
        node: vec![node(
            "If",
            &["c"],
            &["r"],
            vec![then_branch, body("else_branch", &[], vec![node("Identity", &["v"], &["e"], vec![])], &["e"])],
        )],
        opset_import: vec![import("", 13)],
        ..FunctionProto::default()
    };
    let then_branch = body("then_branch", &[], vec![call(&["c", "x"], "p")], &["p"]);
    let nodes = vec![node(
        "If",
        &["c"],
        &["y"],
        vec![then_branch, body("else_branch", &[], vec![call(&["c", "x"], "q")], &["q"])],
    )];
    let mut model = model_of(13, nodes, &["y"]);
    model.opset_import.push(import("own", 1));
    model.functions = vec![pick.clone()];
    let loaded = load(&model).unwrap();
    assert_eq!(loaded.run(feeds(&[2.0], 0, true)).unwrap().get("y"), Some(&floats(&[4.0])));
    assert_eq!(loaded.run(feeds(&[2.0], 0, false)).unwrap().get("y"), Some(&floats(&[2.0])));

    // A function sees no names around its call.
    model.functions[0].node[0].attribute[1].g.as_mut().unwrap().node[0].input[0] = "x".into();
    let error = load(&model).unwrap_err();
    assert!(error.to_string().contains("input \"x\" is produced by nothing"), "{error}");

    // A call of itself in a subgraph is one, too.
    model.functions = vec![pick];
    model.functions[0].node[0].attribute[1].g.as_mut().unwrap().node[0] = call(&["c", "v"], "e");
    let error = load(&model).unwrap_err();
    assert!(error.to_string().contains("functions can't be recursive"), "{error}");
}

/// The names of a run with what is around them, as a watch sees them.
#[derive(Default)]
struct Seen {
    names: Vec<String>,
    trips: Vec<String>,
}

impl Watch for Seen {
    fn enters(&mut self, node: NodeInfo<'_>, body: &str) -> onnxref::Result<()> {
        self.trips.push(format!("{} {body}", node.operator));
        Ok(())
    }

    fn ends(&mut self, node: NodeInfo<'_>, outputs: &[(&str, &Value)]) -> onnxref::Result<()> {
        for (k, (name, _)) in outputs.iter().enumerate() {
            let scopes = std::iter::successors(node.output_scope(k), |scope| scope.outer());
            let scopes = scopes.map(|scope| format!(" < {}{}", scope.node(), scope.body().unwrap_or("()")));
            self.names.push(format!("{name}{}", scopes.collect::<String>()));
        }
        Ok(())
    }
}

/// A watch tells values of one name apart: by the calls and subgraphs around them, and by the trip.
#[test]
fn names_have_scopes() {
    // Twice(v) = { a = v + v; r = Loop(2, a) { a + a } }, whose names are those of the graph.
    let inputs = [open("i", DType::Int64), open("go", DType::Bool), open("s", DType::Float)];
    let nodes = vec![node("Identity", &["go"], &["on"], vec![]), node("Add", &["s", "a"], &["t"], vec![])];
    let twice = FunctionProto {
        name: Some("Twice".into()),
        domain: Some("own".into()),
        input: vec!["v".into(), "n".into()],
        output: vec!["r".into()],
        node: vec![
            node("Add", &["v", "v"], &["a"], vec![]),
            node("Loop", &["n", "", "a"], &["r"], vec![body("body", &inputs, nodes, &["on", "t"])]),
        ],
        opset_import: vec![import("", 13)],
        ..FunctionProto::default()
    };
    let call = |input: &str, output: &str| NodeProto {
        domain: Some("own".into()),
        ..node("Twice", &[input, "n"], &[output], vec![])
    };
    let mut model = model_of(13, vec![call("x", "a"), call("a", "y")], &["y"]);
    model.opset_import.push(import("own", 1));
    model.functions = vec![twice];
    let loaded = Model::options().optimize(false).from_bytes(model.encode_to_vec()).unwrap();
    let mut seen = Seen::default();
    loaded.run_watched(feeds(&[1.0], 2, true), &Cancel::new(), &mut seen).unwrap();
    let inside = |call: &str| {
        let trip = [format!("on < rbody < {call}()"), format!("t < rbody < {call}()")];
        // The loop gives the caller's value.
        [&[format!("a < {call}()")], &trip[..], &trip[..], &[call.to_string()]].concat()
    };
    assert_eq!(seen.names, [inside("a"), inside("y")].concat());
    assert_eq!(seen.trips, ["Loop body"; 4]);
    // So has each run of a runner, which has its outputs afterwards.
    let (mut runner, mut again) = (loaded.runner(), Seen::default());
    runner.feed("x", vec![1f32]).unwrap();
    runner.feed("n", Tensor::scalar(2i64)).unwrap();
    runner.feed("c", Tensor::scalar(true)).unwrap();
    runner.run_watched(&mut again).unwrap();
    assert_eq!((&again.names, &again.trips), (&seen.names, &seen.trips));
    let plain = loaded.run(feeds(&[1.0], 2, true)).unwrap();
    assert_eq!(runner.output("y").unwrap(), &plain["y"]);
    // An inspection has the same scopes.
    let graph = Model::options().inspect_bytes(model.encode_to_vec()).unwrap().graph;
    let known: Vec<&str> = graph
        .values
        .iter()
        .filter(|value| value.name == "a")
        .map(|value| value.scope.as_ref().map_or("", |scope| scope.node()))
        .collect();
    assert_eq!(known, ["", "a", "y"]);
}

#[test]
fn calls_in_subgraphs_are_counted_before_they_are_expanded() {
    // Each function calls the next one in both branches: 2^60 nodes.
    let call = |k: usize, output: &str| NodeProto {
        domain: Some("own".into()),
        ..node(&format!("F{k}"), &["c", "v"], &[output], vec![])
    };
    let function = |k: usize| {
        let inner =
            |output: &str| if k == 60 { node("Identity", &["v"], &[output], vec![]) } else { call(k + 1, output) };
        let branches = vec![
            body("then_branch", &[], vec![inner("t")], &["t"]),
            body("else_branch", &[], vec![inner("e")], &["e"]),
        ];
        FunctionProto {
            name: Some(format!("F{k}")),
            domain: Some("own".into()),
            input: vec!["c".into(), "v".into()],
            output: vec!["r".into()],
            node: vec![node("If", &["c"], &["r"], branches)],
            opset_import: vec![import("", 13), import("own", 1)],
            ..FunctionProto::default()
        }
    };
    let mut model = model_of(13, vec![call(1, "y")], &["y"]);
    graph_of(&mut model).node[0].input = vec!["c".into(), "x".into()];
    model.opset_import.push(import("own", 1));
    model.functions = (1..=60).map(function).collect();
    let error = load(&model).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("nodes")));
    // Deep, but few: subgraphs nest only so far.
    for function in &mut model.functions {
        let branch = function.node[0].attribute[1].g.as_mut().unwrap();
        branch.node = vec![node("Identity", &["v"], &["e"], vec![])];
    }
    let error = load(&model).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("nesting")));
}

/// `s = []; n times s = s + [x]; all = the elements of s; len = their number`
fn collected() -> Vec<NodeProto> {
    let before = typed("before", &ValueType::Tensor(DType::Float).sequence());
    let inputs = [open("i", DType::Int64), open("go", DType::Bool), before];
    let nodes = vec![node("SequenceInsert", &["before", "x"], &["after"], vec![])];
    vec![
        node("SequenceEmpty", &[], &["none"], vec![]),
        node("Loop", &["n", "", "none"], &["s"], vec![body("body", &inputs, nodes, &["go", "after"])]),
        node("SequenceLength", &["s"], &["len"], vec![]),
    ]
}

#[test]
fn a_loop_carries_a_sequence() {
    let mut nodes = collected();
    nodes.push(node("ConcatFromSequence", &["s"], &["all"], vec![int("axis", 0)]));
    let proto = model_of(13, nodes, &["s", "len", "all"]);
    for optimize in [true, false] {
        let model = load_with(Model::options().optimize(optimize), &proto).unwrap();
        let outputs = model.run(feeds(&[1.0, 2.0], 3, true)).unwrap();
        let x = floats(&[1.0, 2.0]);
        let want = Sequence::new(DType::Float.into(), [x.clone(), x.clone(), x]).unwrap();
        assert_eq!(outputs.get("s"), Some(&want.into()));
        assert_eq!(outputs["len"], Tensor::scalar(3i64));
        assert_eq!(outputs.get("all"), Some(&floats(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0])));
        // Without a trip it is the initial one.
        let error = model.run(feeds(&[1.0, 2.0], 0, true)).unwrap_err();
        assert!(error.to_string().contains("an empty sequence can't be concatenated"), "{error}");
    }
}

#[test]
fn what_a_loop_collects_is_memory_and_takes_linear_time() {
    let proto = model_of(13, collected(), &["len"]);
    let limited = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        load_with(Model::options().limits(limits), &proto).unwrap()
    };
    // The tensor is the same, and empty: only the list grows.
    let model = limited(|limits| limits.run_bytes = 1 << 20);
    for _ in 0..3 {
        let error = model.run(feeds(&[], i64::MAX, true)).unwrap_err();
        assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("run_bytes")));
        // All of it is given back.
        assert_eq!(model.run(feeds(&[], 2000, true)).unwrap()["len"], Tensor::scalar(2000i64));
    }
    // A copy for each insert would be 2 million steps.
    let model = limited(|limits| limits.run_work = 10_000);
    assert_eq!(model.run(feeds(&[], 2000, true)).unwrap()["len"], Tensor::scalar(2000i64));
}

#[test]
fn a_sequence_that_leaves_the_run_is_memory_of_the_caller() {
    let mut limits = Limits::default();
    limits.run_bytes = 1 << 20;
    let model = load_with(Model::options().limits(limits), &model_of(13, collected(), &["s"])).unwrap();
    let all: Vec<_> = (0..10).map(|_| model.run(feeds(&[], 2000, true)).unwrap()).collect();
    assert!(all.iter().all(|outputs| outputs.get("s").unwrap().sequence().unwrap().values().len() == 2000));
}

#[test]
fn a_branch_gives_a_sequence() {
    let then_branch = body("then_branch", &[], vec![node("SequenceConstruct", &["x", "x"], &["t"], vec![])], &["t"]);
    let else_branch = body("else_branch", &[], vec![node("SequenceEmpty", &[], &["e"], vec![])], &["e"]);
    let nodes = vec![
        node("If", &["c"], &["s"], vec![then_branch, else_branch]),
        node("SequenceLength", &["s"], &["len"], vec![]),
    ];
    let model = load(&model_of(13, nodes, &["s", "len"])).unwrap();
    let pair = |values: Vec<Value>| Some(Value::from(Sequence::new(DType::Float.into(), values).unwrap()));
    let outputs = model.run(feeds(&[5.0], 0, true)).unwrap();
    assert_eq!(outputs.get("s").cloned(), pair(vec![floats(&[5.0]), floats(&[5.0])]));
    let outputs = model.run(feeds(&[5.0], 0, false)).unwrap();
    assert_eq!((outputs.get("s").cloned(), &outputs["len"]), (pair(vec![]), &Tensor::scalar(0i64)));
    // Branches that differ in type: a run says which one it is.
    let then_branch = body("then_branch", &[], vec![node("SequenceConstruct", &["n"], &["t"], vec![])], &["t"]);
    let else_branch = body("else_branch", &[], vec![node("SequenceEmpty", &[], &["e"], vec![])], &["e"]);
    let nodes = vec![
        node("If", &["c"], &["s"], vec![then_branch, else_branch]),
        node("SequenceInsert", &["s", "x"], &["y"], vec![]),
    ];
    let model = load(&model_of(13, nodes, &["y"])).unwrap();
    assert_eq!(model.run(feeds(&[5.0], 0, false)).unwrap().get("y").cloned(), pair(vec![floats(&[5.0])]));
    let error = model.run(feeds(&[5.0], 0, true)).unwrap_err();
    let text = "\"tensor\" (value \"x\") has element type float32, but \"input_sequence\" (value \"s\") holds int64";
    assert!(error.to_string().contains(text), "{error}");
}

/// The next trip takes as optional what the last one hands on without a wrapper.
#[test]
fn an_optional_that_a_loop_carries() {
    let before = typed("before", &ValueType::Tensor(DType::Float).optional());
    let inputs = [open("i", DType::Int64), open("go", DType::Bool), before];
    let then_branch = body("then_branch", &[], vec![node("OptionalGetElement", &["before"], &["t"], vec![])], &["t"]);
    let nodes = vec![
        node("OptionalHasElement", &["before"], &["has"], vec![]),
        node("If", &["has"], &["v"], vec![then_branch, body("else_branch", &[], vec![], &["x"])]),
        node("Add", &["v", "x"], &["after"], vec![]),
    ];
    let tp = Some(Box::new(type_of(&DType::Float.into())));
    let none = common::proto::AttributeProto { tp, ..attribute("type", AttributeType::TypeProto) };
    let nodes = vec![
        node("Optional", &[], &["none"], vec![none]),
        node("Loop", &["n", "", "none"], &["y"], vec![body("body", &inputs, nodes, &["go", "after"])]),
    ];
    let model = load(&model_of(16, nodes, &["y"])).unwrap();
    assert_eq!(model.run(feeds(&[1.0], 3, true)).unwrap().get("y"), Some(&floats(&[4.0])));
    let none = Optional::none(DType::Float.into());
    assert_eq!(model.run(feeds(&[1.0], 0, true)).unwrap().get("y"), Some(&none.into()));
}

#[test]
fn a_scan_reads_a_sequence() {
    let inputs = [open("at", DType::Int64)];
    let nodes = vec![node("SequenceAt", &["s", "at"], &["element"], vec![])];
    let mut model = model_of(
        13,
        vec![
            node("SplitToSequence", &["x"], &["s"], vec![int("keepdims", 0)]),
            node(
                "Scan",
                &["order"],
                &["y"],
                vec![body("body", &inputs, nodes, &["element"]), int("num_scan_inputs", 1)],
            ),
        ],
        &["y"],
    );
    graph_of(&mut model).initializer.push(initializer("order", &Tensor::from(vec![2i64, -3, 1])));
    assert_eq!(
        load_and_run(&model, feeds(&[5.0, 6.0, 7.0], 0, true)).unwrap().get("y"),
        Some(&floats(&[7.0, 5.0, 6.0]))
    );
    let error = load_and_run(&model, feeds(&[5.0], 0, true)).unwrap_err();
    assert!(error.to_string().contains("position = 2 is out of range for a sequence of 1 element: "), "{error}");
}

#[test]
fn element_by_element() {
    // `sums, x.. = SequenceMap(parts of x, x, parts of x) { part + x + other, x }`
    let inputs = [open("part", DType::Float), open("whole", DType::Float), open("other", DType::Float)];
    let nodes =
        vec![node("Add", &["part", "whole"], &["half"], vec![]), node("Add", &["half", "other"], &["sum"], vec![])];
    let map = |inner: &[&str], outputs: &[&str]| {
        let attributes = vec![body("body", &inputs, nodes.clone(), inner)];
        let split = node("SplitToSequence", &["x"], &["s"], vec![]);
        let others = node("SequenceErase", &["s"], &["less"], vec![]);
        let map = node("SequenceMap", &["s", "x", "s"], outputs, attributes);
        model_of(17, vec![split, others, map], &[outputs, &["s"]].concat())
    };
    let list = |values: &[&[f32]]| {
        Some(Value::from(Sequence::new(DType::Float.into(), values.iter().map(|values| floats(values))).unwrap()))
    };
    let model = load(&map(&["sum", "whole"], &["sums", "wholes"])).unwrap();
    let outputs = model.run(feeds(&[1.0, 2.0], 0, true)).unwrap();
    assert_eq!(outputs.get("sums").cloned(), list(&[&[3.0, 4.0], &[5.0, 6.0]]));
    assert_eq!(outputs.get("wholes").cloned(), list(&[&[1.0, 2.0], &[1.0, 2.0]]));
    let outputs = model.run(feeds(&[], 0, true)).unwrap();
    assert_eq!((outputs.get("sums").cloned(), outputs.get("s").cloned()), (list(&[]), list(&[])));
    let error = load(&map(&["sum"], &["sums", "wholes"])).unwrap_err();
    assert!(error.to_string().contains("the subgraph \"body\" has 1 output: this node needs 2"), "{error}");
    let mut uneven = map(&["sum"], &["sums"]);
    graph_of(&mut uneven).node[2].input[2] = "less".into();
    let error = load_and_run(&uneven, feeds(&[1.0, 2.0], 0, true)).unwrap_err();
    let text = "input 2, of \"additional_inputs\", has 1 elements, and \"input_sequence\" (value \"s\") has 2: they must be equal";
    assert!(error.to_string().contains(text), "{error}");
    // What the body gives are elements, so it gives tensors.
    let mut nested = map(&["sum"], &["sums"]);
    let inner = nested.graph.as_mut().unwrap().node[2].attribute[0].g.as_mut().unwrap();
    inner.node[1] = node("SequenceConstruct", &["half"], &["sum"], vec![]);
    let error = load_and_run(&nested, feeds(&[1.0], 0, true)).unwrap_err();
    assert!(error.to_string().contains("seq(float32)"), "{error}");
}

/// An error of a run says which value a formal input is, if that has another name: an input, a constant, what a node
/// gives, or what a subgraph reads.
#[test]
fn errors_name_the_values_of_the_graph() {
    let text = |table: &str| {
        format!("indices = 5 is out of range for axis 0 of \"data\"{table}, which has 2 entries: allowed -2..=1")
    };
    let gather = |table: &str, picks: &str| node("Gather", &[table, picks], &["y"], vec![]);
    let double = |from: &str, to: &str| node("Add", &[from, from], &[to], vec![]);
    let fails = |nodes: Vec<NodeProto>, value_name: Option<&str>, want: String| {
        let mut model = model_of(13, nodes, &["y"]);
        graph_of(&mut model).initializer.push(initializer("table", &Tensor::from(vec![1f32, 2.0])));
        for optimize in [true, false] {
            let loaded = load_with(Model::options().optimize(optimize), &model).unwrap();
            let error = loaded.run(feeds(&[1.0, 2.0], 5, true)).unwrap_err();
            assert_eq!((error.to_string(), error.place().value_name.as_deref()), (want.clone(), value_name));
            assert_eq!(error.place().parameter.as_deref(), Some("indices"));
        }
    };
    let at = |k: usize, rest: String| format!("node #{k} (Gather-13): {rest}");
    fails(vec![gather("x", "n")], Some("n"), at(0, text(" (value \"x\")")));
    fails(vec![gather("table", "n")], Some("n"), at(0, text(" (value \"table\")")));
    let slots = vec![double("x", "a"), double("a", "b"), double("b", "d"), gather("d", "n")];
    fails(slots, Some("n"), at(3, text(" (value \"d\")")));
    fails(vec![double("x", "data"), gather("data", "n")], Some("n"), at(1, text("")));
    // In a subgraph, of what it reads from outside.
    let then_branch = body("then_branch", &[], vec![gather("a", "n")], &["y"]);
    let choice = node("If", &["c"], &["z"], vec![then_branch, body("else_branch", &[], vec![], &["x"])]);
    let mut model = model_of(13, vec![double("x", "a"), choice], &["z"]);
    graph_of(&mut model).name = Some("outer".into());
    let error = load_and_run(&model, feeds(&[1.0, 2.0], 5, true)).unwrap_err();
    assert_eq!(error.to_string(), format!("in node #1 (If): {}", at(0, text(" (value \"a\")"))));
    // A node with subgraphs, before they run.
    let branches = vec![body("then_branch", &[], vec![], &["x"]), body("else_branch", &[], vec![], &["x"])];
    let nodes =
        vec![node("Concat", &["c", "c"], &["two"], vec![int("axis", 0)]), node("If", &["two"], &["y"], branches)];
    let mut model = model_of(13, nodes, &["y"]);
    graph_of(&mut model).input[2] = value("c", DType::Bool, None);
    let feeds = inputs! { "x" => Tensor::scalar(0f32), "n" => Tensor::scalar(0i64), "c" => Tensor::from(vec![true]) };
    let text = "node #1 (If-13): \"cond\" (value \"two\") has shape [2]: one value is needed";
    assert_eq!(load_and_run(&model, feeds).unwrap_err().to_string(), text);
}

/// Types of values that a subgraph doesn't give itself, which optimisers leave behind, say nothing about outer values.
#[test]
fn declarations_of_values_that_are_gone() {
    for name in ["gone", "later", "y"] {
        let mut branch = body("then_branch", &[], vec![node("Add", &["x", "x"], &["sum"], vec![])], &["sum"]);
        let graph = branch.g.as_mut().unwrap();
        graph.value_info.push(open(name, DType::Float));
        let other = body("else_branch", &[], vec![node("Neg", &["x"], &["negated"], vec![])], &["negated"]);
        let nodes = vec![node("If", &["c"], &["y"], vec![branch, other]), node("Neg", &["y"], &["later"], vec![])];
        let outputs = load_and_run(&model_of(16, nodes, &["later"]), feeds(&[1.0, 2.0], 0, true)).unwrap();
        assert_eq!(outputs["later"], Tensor::from(vec![-2f32, -4.0]), "{name}");
    }
}

/// Sizes that a branch declares of its output, and doesn't have.
#[test]
fn wrong_sizes_of_branches() {
    let [one, other] = ["then_branch", "else_branch"].map(|name| {
        let nodes = vec![node("Transpose", &["matrix"], &["turned"], vec![])];
        let mut branch = body(name, &[], nodes, &[]);
        let sizes = [Dim::Fixed(2), Dim::Fixed(3)];
        branch.g.as_mut().unwrap().output = vec![value("turned", DType::Float, Some(&sizes))];
        branch
    });
    let nodes = vec![
        node("Unsqueeze", &["x", "zero"], &["row"], vec![]),
        node("Concat", &["row", "row"], &["matrix"], vec![int("axis", 0)]),
        node("If", &["c"], &["y"], vec![one, other]),
        node("Shape", &["y"], &["shape"], vec![]),
    ];
    let mut model = model_of(16, nodes, &["shape"]);
    graph_of(&mut model).initializer.push(initializer("zero", &Tensor::from(vec![0i64])));
    for optimize in [true, false] {
        let model = Model::options().optimize(optimize).from_bytes(model.encode_to_vec()).unwrap();
        let outputs = model.run(feeds(&[1.0, 2.0, 3.0], 0, true)).unwrap();
        assert_eq!(outputs["shape"], Tensor::from(vec![3i64, 2]), "{optimize}");
    }
}

/// Sizes that a trip declares of what is stacked, and doesn't have.
#[test]
fn wrong_sizes_of_trips() {
    let nodes = vec![node("NonZero", &["x"], &["places"], vec![]), node("Identity", &["go"], &["on"], vec![])];
    let inputs = [value("trip", DType::Int64, Some(&[])), value("go", DType::Bool, Some(&[]))];
    let mut trip = body("body", &inputs, nodes, &["on"]);
    let sizes = [Dim::Fixed(1), Dim::Fixed(1)];
    trip.g.as_mut().unwrap().output.push(value("places", DType::Int64, Some(&sizes)));
    let nodes = vec![node("Loop", &["n", ""], &["y"], vec![trip]), node("Shape", &["y"], &["shape"], vec![])];
    let model = model_of(16, nodes, &["shape"]);
    for optimize in [true, false] {
        let model = Model::options().optimize(optimize).from_bytes(model.encode_to_vec()).unwrap();
        let outputs = model.run(feeds(&[1.0, 0.0, 3.0], 2, true)).unwrap();
        assert_eq!(outputs["shape"], Tensor::from(vec![2i64, 1, 2]), "{optimize}");
    }
}

/// A body may give a name of the graph around it to another size.
#[test]
fn names_of_sizes_that_bodies_give_to_others() {
    let nodes = vec![
        node("Identity", &["go"], &["on"], vec![]),
        node("Neg", &["state"], &["next"], vec![]),
        node("Shape", &["state"], &["own"], vec![]),
        node("Shape", &["x"], &["around"], vec![]),
        node("Sub", &["own", "around"], &["difference"], vec![]),
    ];
    let n = [Dim::Symbol("N".into())];
    let inputs = [
        value("trip", DType::Int64, Some(&[])),
        value("go", DType::Bool, Some(&[])),
        value("state", DType::Float, Some(&n)),
    ];
    let mut trip = body("body", &inputs, nodes, &["on"]);
    let outputs = [value("next", DType::Float, Some(&n)), value("difference", DType::Int64, None)];
    trip.g.as_mut().unwrap().output.extend(outputs);
    let nodes = vec![
        node("Concat", &["x", "x"], &["twice"], vec![int("axis", 0)]),
        node("Loop", &["n", "", "twice"], &["last", "y"], vec![trip]),
    ];
    let mut model = model_of(16, nodes, &["y"]);
    graph_of(&mut model).input[0] = value("x", DType::Float, Some(&n));
    for optimize in [true, false] {
        let model = Model::options().optimize(optimize).from_bytes(model.encode_to_vec()).unwrap();
        let outputs = model.run(feeds(&[1.0, 2.0, 3.0], 1, true)).unwrap();
        assert_eq!(outputs["y"].as_slice::<i64>().unwrap(), [3], "{optimize}");
    }
}

/// Without a trip, what is stacked has 0 for each size that isn't fixed, whatever its name is.
#[test]
fn sizes_without_a_trip() {
    let n = [Dim::Symbol("N".into())];
    let inputs = [value("trip", DType::Int64, Some(&[])), value("go", DType::Bool, Some(&[]))];
    let nodes = vec![node("Identity", &["go"], &["on"], vec![]), node("Neg", &["x"], &["row"], vec![])];
    let mut trip = body("body", &inputs, nodes, &["on"]);
    trip.g.as_mut().unwrap().output.push(value("row", DType::Float, Some(&n)));
    let nodes = vec![
        node("Loop", &["n", ""], &["y"], vec![trip]),
        node("Shape", &["y"], &["shape"], vec![]),
        node("Shape", &["x"], &["own"], vec![]),
        node("Sub", &["shape", "own"], &["difference"], vec![]),
    ];
    let mut model = model_of(16, nodes, &["difference"]);
    graph_of(&mut model).input[0] = value("x", DType::Float, Some(&n));
    for (trips, want) in [(0, [-3i64, -3]), (2, [-1, 0])] {
        for optimize in [true, false] {
            let model = Model::options().optimize(optimize).from_bytes(model.encode_to_vec()).unwrap();
            let outputs = model.run(feeds(&[1.0, 2.0, 3.0], trips, true)).unwrap();
            assert_eq!(outputs["difference"], Tensor::from(want.to_vec()), "{trips} {optimize}");
        }
    }
}

/// Sizes that a trip of a Scan declares of its states, and doesn't have.
#[test]
fn wrong_sizes_of_states() {
    let nodes = vec![
        node("Concat", &["state", "state"], &["twice"], vec![int("axis", 0)]),
        node("Identity", &["element"], &["same"], vec![]),
    ];
    let inputs = [value("state", DType::Float, None), value("element", DType::Float, Some(&[]))];
    let mut trip = body("body", &inputs, nodes, &[]);
    let outputs = [value("twice", DType::Float, Some(&[Dim::Fixed(3)])), value("same", DType::Float, Some(&[]))];
    trip.g.as_mut().unwrap().output.extend(outputs);
    let nodes = vec![
        node("Scan", &["x", "x"], &["last", "all"], vec![int("num_scan_inputs", 1), trip]),
        node("Shape", &["last"], &["shape"], vec![]),
    ];
    let mut model = model_of(16, nodes, &["shape"]);
    graph_of(&mut model).input[0] = value("x", DType::Float, Some(&[Dim::Fixed(3)]));
    for optimize in [true, false] {
        let model = Model::options().optimize(optimize).from_bytes(model.encode_to_vec()).unwrap();
        let outputs = model.run(feeds(&[1.0, 2.0, 3.0], 0, true)).unwrap();
        assert_eq!(outputs["shape"], Tensor::from(vec![24i64]), "{optimize}");
    }
}
