//! Memory of runs: each buffer counts once, from its allocation until it is freed.

use crate::common::proto::{GraphProto, ModelProto, NodeProto};
use crate::common::{initializer, int, node, value};
use crate::custom::{add, given, one};
use crate::{good, graph_of, import, int64, iota};
use ndarray::array;
use onnxref::operator::{Call, Values};
use onnxref::{DType, Error, Kind, LoadOptions, Model, Sequence, Tensor, Value, inputs};
use prost::Message;
use std::sync::{Arc, Mutex};

const OWN: &str = "com.example.Own 1\n  (x: T) -> (y: T)\n  T: float int64";

/// Of any one type of values.
const ANY: &str = "com.example.Any 1\n  (x: T) -> (y: T)\n  T: float seq(float)";

const MIB: usize = 1 << 20;

fn own(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto { domain: Some("com.example".into()), ..node(op_type, inputs, outputs, vec![]) }
}

/// A model of nodes that take float "x" and give `outputs`.
fn model(nodes: Vec<NodeProto>, outputs: &[&str]) -> ModelProto {
    let mut model = good();
    model.opset_import.push(import("com.example", 1));
    let graph = graph_of(&mut model);
    *graph = GraphProto {
        name: Some("graph".into()),
        node: nodes,
        input: vec![value("x", DType::Float, None)],
        output: outputs.iter().map(|name| value(name, DType::Float, None)).collect(),
        ..GraphProto::default()
    };
    model
}

fn load(options: &LoadOptions, model: &ModelProto) -> Model {
    options.from_bytes(model.encode_to_vec()).unwrap()
}

fn run(options: &LoadOptions, model: &ModelProto, x: Tensor) -> Result<Vec<Value>, Error> {
    Ok(load(options, model).run(inputs![x])?.into_iter().map(|(_, value)| value).collect())
}

/// The run is refused for exceeding a limit of that name, of which it takes so much.
fn assert_exceeds<T: std::fmt::Debug>(result: Result<T, Error>, limit: &'static str, value: i128) {
    let error = result.unwrap_err();
    let place = error.place();
    assert_eq!((error.kind(), place.limit, place.value), (Kind::Limit, Some(limit), Some(value)), "{error}");
    assert_eq!(place.node_index, Some(0), "{error}");
}

/// Bytes that the list of a sequence takes for each value: the value itself, and what its buffer takes beside its elements.
fn listed() -> u64 {
    let mut model = model(vec![node("SequenceConstruct", &["x"], &["y"], vec![])], &["y"]);
    graph_of(&mut model).output[0].r#type = None;
    let error = run(&Model::options().change_limits(|l| l.run_bytes = 0), &model, array![1f32].into()).unwrap_err();
    let bytes = error.place().value.unwrap() as u64;
    let value = size_of::<Value>() as u64;
    assert!((value + 40..=value + 80).contains(&bytes), "{bytes}");
    bytes
}

/// Gives a tensor of 4 MiB that does not come from the run.
fn four_mib(_: &mut Call<'_>) -> Result<Values, Error> {
    one(Tensor::from(vec![1f32; MIB]))
}

#[test]
fn what_an_operator_makes_by_itself_is_held_against_the_limits() {
    let model = model(vec![own("Own", &["x"], &["y"])], &["y"]);
    let run = |options: LoadOptions| run(&options, &model, array![1f32].into());
    assert_eq!(run(add(OWN, four_mib)).unwrap().len(), 1);
    let exact = |limits: &mut onnxref::Limits| {
        (limits.tensor_bytes, limits.run_bytes, limits.run_elements) = (4 << 20, 4 << 20, 1 << 20);
    };
    run(add(OWN, four_mib).change_limits(exact)).unwrap();
    assert_exceeds(run(add(OWN, four_mib).change_limits(|l| l.run_bytes = 100)), "run_bytes", 4 << 20);
    assert_exceeds(run(add(OWN, four_mib).change_limits(|l| l.tensor_bytes = 16)), "tensor_bytes", 4 << 20);
    assert_exceeds(run(add(OWN, four_mib).change_limits(|l| l.run_elements = 4)), "run_elements", 1 << 20);
    let ranked = |_: &mut Call<'_>| one(iota(&[1; 9]));
    let error = run(add(OWN, ranked).change_limits(|l| l.rank = 8)).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("rank")), "{error}");
}

#[test]
fn what_is_inside_of_other_values_counts_too() {
    let list = |_: &mut Call<'_>| {
        let tensors = [vec![0f32; 100].into(), vec![0f32; 200].into()];
        Ok([Sequence::new(DType::Float.into(), tensors)?.into()].into())
    };
    let schema = "com.example.Own 1\n  (x: T) -> (y: S)\n  T: float\n  S: seq(float)";
    let mut model = model(vec![own("Own", &["x"], &["y"])], &["y"]);
    graph_of(&mut model).output[0].r#type = None;
    let run = |options: LoadOptions| run(&options, &model, array![1f32].into());
    // The list counts, too.
    let bytes = 1200 + 2 * listed();
    run(add(schema, list).change_limits(|l| (l.run_bytes, l.run_elements, l.tensor_bytes) = (bytes, 300, 800)))
        .unwrap();
    assert_exceeds(run(add(schema, list).change_limits(|l| l.run_bytes = bytes - 1)), "run_bytes", bytes.into());
    assert_exceeds(run(add(schema, list).change_limits(|l| l.run_elements = 299)), "run_elements", 300);
    assert_exceeds(run(add(schema, list).change_limits(|l| l.tensor_bytes = 799)), "tensor_bytes", 800);
}

/// Gives the input as it is.
fn same(call: &mut Call<'_>) -> Result<Values, Error> {
    Ok([call.input(0).unwrap().clone()].into())
}

#[test]
fn what_is_fed_is_not_the_runs() {
    let tight = |l: &mut onnxref::Limits| (l.run_bytes, l.tensor_bytes, l.run_elements) = (100, 100, 10);
    let x = || iota(&[100]);
    // The graph's output is its input.
    let through = model(vec![], &["x"]);
    assert_eq!(run(&Model::options().change_limits(tight), &through, x()).unwrap(), [x().into()]);
    // An operator gives its input, and another one does so with that.
    let nodes = vec![own("Any", &["x"], &["y"]), own("Any", &["y"], &["z"])];
    let identity = model(nodes, &["y", "z"]);
    assert_eq!(run(&add(ANY, same).change_limits(tight), &identity, x()).unwrap(), [x().into(), x().into()]);
    // The caller keeps nothing: only the run has it.
    let mut list = model(vec![own("Any", &["x"], &["y"])], &["y"]);
    graph_of(&mut list).output[0].r#type = None;
    graph_of(&mut list).input[0].r#type = None;
    let model = load(&add(ANY, same).change_limits(tight), &list);
    let sequence = || Value::from(Sequence::new(DType::Float.into(), [x().into(), x().into()]).unwrap());
    assert_eq!(model.run(inputs![sequence()]).unwrap().get("y"), Some(&sequence()));
}

#[test]
fn outputs_that_share_a_buffer_count_once() {
    let schema = "com.example.Own 1\n  (x: T) -> (y: T, z: T)\n  T: float";
    let twice = |call: &mut Call<'_>| {
        let mut new = call.output::<f32>(&[250])?;
        new.elements_mut::<f32>()?.fill(1.0);
        let tensor = new.finish();
        Ok([tensor.clone().into(), tensor.into()].into_iter().collect())
    };
    let model = model(vec![own("Own", &["x"], &["y", "z"])], &["y", "z"]);
    let run = |bytes| run(&add(schema, twice).change_limits(|l| l.run_bytes = bytes), &model, array![1f32].into());
    assert_eq!(run(1000).unwrap(), [Value::from(vec![1f32; 250]), vec![1f32; 250].into()]);
    assert_exceeds(run(999), "run_bytes", 1000);
    // So does one value under two names, and one that nodes hand on.
    let mut nodes = vec![node("Gather", &["x", "i"], &["a"], vec![])];
    nodes.extend([own("Any", &["a"], &["b"]), own("Any", &["b"], &["c"])]);
    let mut chain = self::model(nodes, &["a", "b", "c", "a"]);
    graph_of(&mut chain).initializer.push(initializer("i", &int64(&[250], &[0; 250])));
    let run = |bytes| {
        let options = add(ANY, same).change_limits(|l| l.run_bytes = bytes);
        self::run(&options, &chain, array![1f32].into())
    };
    assert_eq!(run(1000).unwrap(), vec![Value::from(vec![1f32; 250]); 4]);
    assert_exceeds(run(999), "run_bytes", 1000);
}

#[test]
fn what_is_handed_on_counts_until_nobody_has_it() {
    // Ten buffers of 1000 bytes: who made each lets go of it, and the graph's outputs have it.
    let names: Vec<String> = (0..10).map(|k| format!("y{k}")).collect();
    let pair = |name: &String| {
        [node("Gather", &["x", "i"], &[&format!("{name}_")], vec![]), own("Any", &[&format!("{name}_")], &[name])]
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut model = model(names.iter().flat_map(|name| pair(&name.to_string())).collect(), &names);
    graph_of(&mut model).initializer.push(initializer("i", &int64(&[250], &[0; 250])));
    let run = |bytes| {
        let options = add(ANY, same).change_limits(|l| l.run_bytes = bytes);
        self::run(&options, &model, array![1f32].into())
    };
    assert_eq!(run(10_000).unwrap().len(), 10);
    let error = run(9_999).unwrap_err();
    assert_eq!((error.place().limit, error.place().value), (Some("run_bytes"), Some(10_000)), "{error}");
}

/// `y = Gather(x, i)` for so many indices, all of them 0.
fn gathers(count: usize) -> ModelProto {
    let mut model = model(vec![node("Gather", &["x", "i"], &["y"], vec![])], &["y"]);
    graph_of(&mut model).initializer.push(initializer("i", &int64(&[count], &vec![0; count])));
    model
}

#[test]
fn outputs_that_the_caller_keeps_are_not_the_runs() {
    for count in [1000, 100_000] {
        let options = Model::options().change_limits(|l| l.run_bytes = 4 * count as u64);
        let model = load(&options, &gathers(count));
        let mut runner = model.runner();
        let mut kept = Vec::new();
        let runs = if count == 1000 { 1000 } else { 50 };
        for k in 0..runs {
            runner.feed("x", array![k as f32]).unwrap();
            runner.run().unwrap_or_else(|error| panic!("run {k}: {error}"));
            kept.push(runner.output("y").unwrap().clone());
            kept.extend(model.run(inputs![array![-1f32]]).unwrap().take_value("y").unwrap().into_tensor());
        }
        for (k, pair) in kept.chunks(2).enumerate() {
            assert!(pair[0].as_slice::<f32>().unwrap().iter().all(|x| *x == k as f32), "{k}");
            assert!(pair[1].as_slice::<f32>().unwrap().iter().all(|x| *x == -1.0), "{k}");
        }
        // What they drop comes back, and is no more than the limit.
        drop(kept);
        (0..20).for_each(|_| runner.run().unwrap());
    }
}

#[test]
fn sequences_that_the_caller_keeps_are_not_the_runs() {
    let list = |call: &mut Call<'_>| {
        let new = |count: usize| -> Result<Value, Error> {
            let mut new = call.output::<f32>(&[count])?;
            new.elements_mut::<f32>()?.fill(1.0);
            Ok(new.finish().into())
        };
        Ok([Sequence::new(DType::Float.into(), [new(100)?, new(2000)?])?.into()].into())
    };
    let schema = "com.example.Own 1\n  (x: T) -> (y: S)\n  T: float\n  S: seq(float)";
    let mut model = model(vec![own("Own", &["x"], &["y"])], &["y"]);
    graph_of(&mut model).output[0].r#type = None;
    let model = load(&add(schema, list).change_limits(|l| l.run_bytes = 8400 + 2 * listed()), &model);
    let mut runner = model.runner();
    runner.feed("x", array![1f32]).unwrap();
    let mut kept = Vec::new();
    for k in 0..100 {
        runner.run().unwrap_or_else(|error| panic!("run {k}: {error}"));
        let value = runner.value("y").unwrap();
        // The whole, a part, or nothing.
        match k % 3 {
            0 => kept.push(value.clone()),
            1 => kept.push(value.sequence().unwrap().values()[1].clone()),
            _ => {}
        }
        kept.push(model.run(inputs![array![1f32]]).unwrap().take_value("y").unwrap());
    }
}

#[test]
fn the_memory_of_a_failed_run_is_free_afterwards() {
    let nodes = vec![node("Gather", &["x", "i"], &["a"], vec![]), own("Own", &["a"], &["y"])];
    let mut chain = model(nodes, &["y"]);
    graph_of(&mut chain).initializer.push(initializer("i", &int64(&[2000], &[0; 2000])));
    let odd = |call: &mut Call<'_>| {
        let x = call.tensor(0)?.as_slice::<f32>()?[0];
        let mut y = call.output::<f32>(&[2000])?;
        if x < 0.0 {
            return Err(Error::input("it is negative"));
        }
        y.elements_mut::<f32>()?.fill(x);
        one(y)
    };
    let model = load(&add(OWN, odd).change_limits(|l| l.run_bytes = 16_000), &chain);
    let mut runner = model.runner();
    for round in 0..20 {
        for x in [-1f32, 1.0] {
            let whole = model.run(inputs![array![x]]).map(drop);
            runner.feed("x", array![x]).unwrap();
            for result in [whole, runner.run()] {
                assert_eq!(result.is_ok(), x > 0.0, "{round}: {result:?}");
                result.map_or_else(|error| assert_eq!(error.kind(), Kind::Input, "{error}"), |()| {});
            }
        }
    }
}

/// Where the elements of the values are that an operator took or was given, call after call.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(usize, bool)>>>);

impl Seen {
    /// `y = x + 1`, in place where the input may be taken.
    fn add_one(&self) -> impl Fn(&mut Call<'_>) -> Result<Values, Error> + Send + Sync + 'static {
        let seen = self.clone();
        move |call| {
            let at = call.tensor(0)?.bytes().as_ptr().addr();
            let taken = call.take(0);
            seen.0.lock().unwrap().push((at, taken.is_some()));
            let x = match taken {
                Some(x) => x.into_tensor()?,
                None => call.tensor(0)?.clone(),
            };
            let mut x = x.into_array::<f32>()?;
            x += 1.0;
            one(x)
        }
    }

    /// What was seen since.
    fn drain(&self) -> Vec<(usize, bool)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn taken(seen: &[(usize, bool)]) -> Vec<bool> {
    seen.iter().map(|(_, taken)| *taken).collect()
}

#[test]
fn a_buffer_is_taken_at_its_last_use() {
    let seen = Seen::default();
    let options = add(OWN, seen.add_one());
    let nodes = (0..5).map(|k| {
        let (from, to) = (format!("v{k}"), format!("v{}", k + 1));
        own("Own", &[if k == 0 { "x" } else { &from }], &[if k == 4 { "y" } else { &to }])
    });
    let model = load(&options.change_limits(|l| l.run_bytes = 4000), &model(nodes.collect(), &["y"]));
    let x = iota(&[1000]);
    let mut outputs = model.run(inputs![&x]).unwrap();
    let output = outputs.take_value("y").unwrap().into_tensor().unwrap();
    assert!(output.as_slice::<f32>().unwrap().iter().enumerate().all(|(k, y)| *y == k as f32 + 5.0));
    // What is fed is not touched.
    assert_eq!(x, iota(&[1000]));
    let seen = seen.drain();
    assert_eq!(taken(&seen), [false, true, true, true, true]);
    assert_eq!(seen[0].0, x.bytes().as_ptr().addr());
    assert!(seen[1..].iter().all(|(at, _)| *at == output.bytes().as_ptr().addr()), "{seen:?}");
}

#[test]
fn nothing_is_taken_that_is_needed_again() {
    /// A name, nodes, the graph's outputs, which calls of Own take their input.
    type Case<'a> = (&'a str, Vec<NodeProto>, &'a [&'a str], &'a [bool]);
    let cases: [Case<'_>; 5] = [
        ("a feed", vec![own("Own", &["x"], &["y"])], &["y"], &[false]),
        ("a constant", vec![own("Own", &["c"], &["y"])], &["y"], &[false]),
        (
            "an output of the graph",
            vec![own("Own", &["x"], &["y"]), own("Own", &["y"], &["z"])],
            &["y", "z"],
            &[false, false],
        ),
        (
            "a value that is read again",
            vec![own("Own", &["x"], &["a"]), own("Own", &["a"], &["y"]), own("Own", &["a"], &["z"])],
            &["y", "z"],
            &[false, false, true],
        ),
        ("what is handed on as it is", vec![own("Same", &["x"], &["a"]), own("Own", &["a"], &["y"])], &["y"], &[true]),
    ];
    for (name, nodes, outputs, want) in cases {
        let seen = Seen::default();
        let same_schema = "com.example.Same 1\n  (x: T) -> (y: T)\n  T: float";
        let options = add(OWN, seen.add_one()).operator(same_schema, given(same)).unwrap();
        let mut model = model(nodes, outputs);
        graph_of(&mut model).initializer.push(initializer("c", &iota(&[3])));
        let model = load(&options, &model);
        let x = iota(&[3]);
        for _ in 0..2 {
            let first = model.run(inputs![&x]).unwrap();
            assert_eq!(first["y"].as_slice::<f32>().unwrap()[0], if name.ends_with("again") { 2.0 } else { 1.0 });
            assert_eq!(taken(&seen.drain()), want, "{name}");
            assert_eq!(x, iota(&[3]), "{name}");
        }
    }
}

#[test]
fn a_value_that_is_read_twice_by_a_node_is_not_taken() {
    let schema = "com.example.Two 1\n  (a: T, b: T) -> (y: T)\n  T: float";
    let both = |call: &mut Call<'_>| {
        assert!(call.take(0).is_none() && call.take(1).is_none());
        one(call.tensor(0)?.clone().into_array::<f32>()? + call.tensor(1)?.view::<f32>()?)
    };
    let options = add(OWN, Seen::default().add_one()).operator(schema, given(both)).unwrap();
    let nodes = vec![own("Own", &["x"], &["a"]), own("Two", &["a", "a"], &["y"])];
    assert_eq!(run(&options, &model(nodes, &["y"]), array![1f32].into()).unwrap(), [vec![4f32].into()]);
}

#[test]
fn a_taken_input_is_gone() {
    let options = add(OWN, |call| {
        let taken = call.take(0).is_some();
        // It is there before, and afterwards it is left out.
        assert_eq!(call.input(0).is_none(), taken);
        assert!(call.take(0).is_none());
        if taken {
            assert_eq!(call.tensor(0).unwrap_err().place().parameter.as_deref(), Some("x"))
        }
        one(array![1f32])
    });
    let nodes = vec![own("Own", &["x"], &["a"]), own("Own", &["a"], &["y"])];
    run(&options, &model(nodes, &["y"]), array![1f32].into()).unwrap();
}

#[test]
fn nodes_and_work_have_limits() {
    let nodes = || vec![own("Own", &["x"], &["a"]), own("Own", &["a"], &["b"]), own("Own", &["b"], &["y"])];
    let charged = |call: &mut Call<'_>| {
        call.charge(10)?;
        same(call)
    };
    let run = |change: fn(&mut onnxref::Limits)| {
        let model = load(&add(OWN, charged).change_limits(change), &model(nodes(), &["y"]));
        // Each run has as much.
        (0..3).map(|_| model.run(inputs![array![1f32]]).map(drop)).collect::<Result<Vec<()>, Error>>()
    };
    run(|l| (l.run_nodes, l.run_work) = (3, 30)).unwrap();
    let error = run(|l| l.run_nodes = 2).unwrap_err();
    let place = error.place();
    assert_eq!(
        (error.kind(), place.limit, place.value, place.size),
        (Kind::Limit, Some("run_nodes"), Some(3), Some(2))
    );
    let text = "the run executes 3 nodes: the limit is 2 (Limits::run_nodes, which LoadOptions::limits can raise)";
    assert_eq!(error.to_string(), text);
    let error = run(|l| l.run_work = 29).unwrap_err();
    let place = error.place();
    assert_eq!(
        (error.kind(), place.limit, place.value, place.size),
        (Kind::Limit, Some("run_work"), Some(30), Some(29))
    );
    assert_eq!(place.node_index, Some(2), "{error}");
    // As often as it likes, in one call too; what can't be counted is too much.
    let greedy = |call: &mut Call<'_>| {
        call.charge(1)?;
        call.charge(u64::MAX)?;
        same(call)
    };
    let error = self::run(&add(OWN, greedy), &model(nodes(), &["y"]), array![1f32].into()).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("run_work")), "{error}");
}

/// A product of two vectors has one element, whatever it takes.
#[test]
fn the_steps_of_products_are_charged() {
    let product = model(vec![node("MatMul", &["x", "x"], &["y"], vec![])], &["y"]);
    let run = |most| {
        let model = load(&Model::options().change_limits(|l| l.run_work = most), &product);
        model.run(inputs![Tensor::from_elements(&[100], vec![1f32; 100]).unwrap()])
    };
    run(100).unwrap();
    let error = run(99).unwrap_err();
    assert_eq!((error.kind(), error.place().limit), (Kind::Limit, Some("run_work")), "{error}");
}

/// The packed form of a constant operand counts. Without room for it the product is done all the same.
#[test]
fn packed_operands_are_counted() {
    let (k, n) = (100, 200);
    let weights = (0..k * n).map(|at| (at % 7) as f32).collect::<Vec<_>>();
    let mut product = model(vec![node("MatMul", &["x", "w"], &["y"], vec![])], &["y"]);
    let weights = Tensor::from_elements(&[k, n], weights).unwrap();
    graph_of(&mut product).initializer.push(initializer("w", &weights));
    let outputs = [4 * k * n, 4 * k * n - 1, 4 * n + 100].map(|most| {
        let model = load(&Model::options().change_limits(|l| l.run_bytes = most as u64 + 4 * n as u64 + 64), &product);
        let run = || model.run(inputs![Tensor::from_elements(&[1, 100], vec![0.5f32; 100]).unwrap()]).unwrap();
        let first = run().tensor("y").unwrap().clone();
        assert_eq!(run().tensor("y").unwrap(), &first);
        first
    });
    assert!(outputs.iter().all(|output| *output == outputs[0]));
}

/// The text of strings that a cast makes, 39 bytes each: while it grows, the old and the new memory count, beside 16 bytes
/// for each string.
#[test]
fn the_text_of_new_strings_counts() {
    let mut model = model(vec![node("Cast", &["x"], &["y"], vec![int("to", DType::String.code().into())])], &["y"]);
    graph_of(&mut model).output = vec![value("y", DType::String, None)];
    let run = |bytes| run(&Model::options().change_limits(|l| l.run_bytes = bytes), &model, vec![1e38f32; 1024].into());
    let peak = 16 * 1024 + 39 * (512 + 1024);
    assert_eq!(run(peak).unwrap(), [Tensor::from_strings(&[1024], vec![format!("1{:038}", 0); 1024]).unwrap().into()]);
    assert_exceeds(run(peak - 1), "run_bytes", peak.into());
}
