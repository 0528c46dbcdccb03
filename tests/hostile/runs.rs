//! Runs: feeds that don't fit, indices out of range, outputs that grow without end, cancelled runs.

use crate::case::{At, BESIDE, Case, GOOD, check, on_thread, report};
use crate::common::proto::{GraphProto, NodeProto};
use crate::common::{int, model, node, one_node, typed, value};
use crate::graphs::{array, good_bytes, good_feeds};
use crate::memory::peak_of;
use ndarray::Array2;
use num_complex::Complex;
use onnxref::operator::Cancel;
use onnxref::{DType, Error, Kind, Limits, LoadOptions, Model, Runner, Sequence, Tensor, Value, ValueType, inputs};
use std::time::Duration;

/// A dimension of which a shape has no elements: a quarter of what a byte count may be, in floats.
const HUGE: usize = 1 << (usize::BITS - 4);

type Feeds = Vec<(&'static str, Tensor)>;

fn floats(shape: &[usize]) -> Tensor {
    array(shape, |k| k as f32)
}

fn ids(shape: &[usize], values: &[i64]) -> Tensor {
    array(shape, |k| values[k])
}

/// A tensor of any type but strings, of zeros.
fn zeros(dtype: DType, shape: &[usize]) -> Tensor {
    let bytes = vec![0; shape.iter().product::<usize>() * dtype.size()];
    Tensor::new(dtype, shape, bytes).unwrap()
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[test]
fn feeds() {
    let feeds = |data: Tensor, indices: Tensor| vec![("data", data), ("indices", indices)];
    let right = || good_feeds().remove(0).1;
    let index = || good_feeds().remove(1).1;
    let mut cases = Vec::new();
    let mut case = |name: String, feeds: Feeds, text: &str, at: &[At]| {
        cases.push(Case::new("feed", name, good_bytes(), Kind::Input, text).at(at.to_vec()).fed(feeds));
    };
    let name = |name: &str| At::Name(name.into());
    case("none".into(), vec![], "missing input \"data\"", &[name("data")]);
    case("one".into(), vec![("data", right())], "missing input \"indices\"", &[name("indices")]);
    case("twice".into(), vec![("data", right()), ("data", right())], "is fed twice", &[name("data")]);
    let more = [feeds(right(), index()), vec![("more", right())]].concat();
    case("undeclared".into(), more, "is not an input of the model, which takes", &[name("more")]);
    for other in ["", "Data", "data ", "data\0", "picks", "rows"] {
        let odd = [feeds(right(), index()), vec![(other, right())]].concat();
        case(format!("{other:?}"), odd, "is not an input of the model", &[name(other)]);
    }
    for dtype in DType::all().filter(|dtype| *dtype != DType::String) {
        if dtype != DType::Float {
            let text = format!("input \"data\" has element type {dtype}, but the model expects float32");
            case(format!("data of {dtype}"), feeds(zeros(dtype, &[6, 4]), index()), &text, &[name("data")]);
        }
        if dtype != DType::Int64 {
            let text = format!("input \"indices\" has element type {dtype}, but the model expects int64");
            case(format!("indices of {dtype}"), feeds(right(), zeros(dtype, &[64])), &text, &[name("indices")]);
        }
    }
    for shape in [&[][..], &[24], &[6, 4, 1], &[1; 64], &[1; 1000], &[0; 3]] {
        let text = format!("of rank {}, but the model expects rank 2", shape.len());
        case(
            format!("data of rank {}", shape.len()),
            feeds(floats(&shape.iter().map(|_| 1).collect::<Vec<_>>()), index()),
            &text,
            &[name("data")],
        );
    }
    for (shape, axis, size) in [([6, 5], 1, 5), ([7, 4], 0, 7), ([0, 4], 0, 0), ([6, 0], 1, 0), ([4, 6], 0, 4)] {
        let text = format!("dimension {axis} is {size}, but the model expects");
        let at = [name("data"), At::Axis(axis), At::Size(size)];
        case(format!("data of shape {shape:?}"), feeds(floats(&shape), index()), &text, &at);
    }
    let huge = Tensor::new(DType::Float, &[HUGE, 0], vec![]).unwrap();
    case("a huge dimension".into(), feeds(huge, index()), &format!("dimension 0 is {HUGE}"), &[name("data")]);
    // Indices beyond their axis, wherever they are.
    for value in [6, -7, 1 << 31, -(1 << 31) - 1, (1 << 32) + 1, -(1 << 32), 1 << 62, i64::MAX, i64::MAX - 5, i64::MIN]
    {
        for at in [0, 1, 31, 32, 63] {
            let odd = array(&[64], |k| if k == at { value } else { k as i64 % 6 });
            let text = format!("indices[{at}] = {value} is out of range for axis 0 of \"data\"");
            let place = [
                At::Node(0),
                At::Operator("Gather".into()),
                At::Version(13),
                name("indices"),
                At::Axis(0),
                At::Size(6),
                At::Value(value.into()),
                At::Position(vec![at]),
            ];
            case(format!("index {value} at {at}"), feeds(right(), odd), &text, &place);
        }
    }
    check(cases);
    report("feed");
}

/// One node, all of whose inputs are fed.
fn one(op: &str, attributes: Vec<crate::common::proto::AttributeProto>, data: &Tensor, indices: &Tensor) -> Vec<u8> {
    one_node(op, 13, attributes, &[("data", data), ("indices", indices)], data.dtype())
}

#[test]
fn shapes_and_indices_that_do_not_fit() {
    let mut cases = Vec::new();
    let mut case = |op: &str, attribute: (&str, i64), data: Tensor, indices: Tensor, kind: Kind, text: &str| {
        let bytes = one(op, vec![int(attribute.0, attribute.1)], &data, &indices);
        let name = format!("{op} {} of {:?} by {:?}", attribute.1, short(data.shape()), short(indices.shape()));
        let at = [At::Node(0), At::Operator(op.into()), At::Version(13)];
        cases.push(Case::new("feed", name, bytes, kind, text).at(at).fed([("data", data), ("indices", indices)]));
    };
    let empty = |shape: &[usize]| Tensor::new(DType::Float, shape, vec![]).unwrap();
    let no_ids = |shape: &[usize]| Tensor::new(DType::Int64, shape, vec![]).unwrap();
    let (axis, batch) = (("axis", 0), ("batch_dims", 0));
    case("Gather", axis, floats(&[]), ids(&[1], &[0]), Kind::Input, "\"data\" is a scalar");
    case("Gather", axis, floats(&[1; 64]), ids(&[1, 1], &[0]), Kind::Limit, "the output has 65 dimensions");
    case("Gather", axis, floats(&[1; 2]), ids(&[1; 64], &[0]), Kind::Limit, "the output has 65 dimensions");
    // What can be counted is within the limit where `usize` has 32 bits.
    if usize::BITS == 64 {
        let text = "the output takes 4611686018427387904 bytes";
        case("Gather", axis, empty(&[0, HUGE]), ids(&[1], &[0]), Kind::Limit, text);
    }
    case("Gather", axis, empty(&[0]), ids(&[], &[-1]), Kind::Input, "indices = -1 is out of range");
    case("Gather", axis, empty(&[HUGE, 0]), ids(&[1], &[1 << 60]), Kind::Input, "indices[0] = 1152921504606846976");
    case("GatherElements", axis, floats(&[]), ids(&[], &[0]), Kind::Input, "\"data\" is a scalar");
    case("GatherElements", axis, floats(&[2, 2]), ids(&[2], &[0, 0]), Kind::Input, "has rank 1, \"data\" has rank 2");
    case(
        "GatherElements",
        axis,
        floats(&[2, 2]),
        ids(&[1, 3], &[0; 3]),
        Kind::Input,
        "dimension 1 of \"indices\" is 3",
    );
    case(
        "GatherElements",
        ("axis", 1),
        empty(&[0, 5]),
        ids(&[1, 1], &[0]),
        Kind::Input,
        "dimension 0 of \"indices\" is 1",
    );
    case("GatherElements", axis, empty(&[0, 5]), ids(&[1, 1], &[0]), Kind::Input, "no index is allowed");
    case("GatherElements", axis, empty(&[HUGE, 0]), no_ids(&[0, 1]), Kind::Input, "dimension 1 of \"indices\"");
    case("GatherND", batch, floats(&[]), ids(&[1], &[0]), Kind::Input, "\"data\" is a scalar");
    case("GatherND", batch, floats(&[2]), ids(&[], &[0]), Kind::Input, "\"indices\" is a scalar");
    case("GatherND", batch, floats(&[2]), ids(&[1, 2], &[0, 0]), Kind::Input, "the last dimension of \"indices\" is 2");
    case("GatherND", batch, floats(&[2]), no_ids(&[5, 0]), Kind::Input, "the last dimension of \"indices\" is 0");
    case("GatherND", batch, floats(&[2, 2]), ids(&[2], &[0, 2]), Kind::Input, "indices[1] = 2 is out of range");
    case(
        "GatherND",
        batch,
        floats(&[2, 2]),
        ids(&[2], &[i64::MIN, 0]),
        Kind::Input,
        "indices[0] = -9223372036854775808",
    );
    case("GatherND", ("batch_dims", 1), floats(&[2, 2]), ids(&[3, 1], &[0; 3]), Kind::Input, "batch dimension 0 is 2");
    case("GatherND", batch, empty(&[HUGE, 0]), no_ids(&[HUGE / 2, 0]), Kind::Input, "is 0: allowed 1..=2");
    case("GatherND", batch, empty(&[0, HUGE]), ids(&[1, 1], &[0]), Kind::Input, "no index is allowed");
    case("GatherND", ("batch_dims", 63), floats(&[1; 64]), ids(&[1; 64], &[1]), Kind::Input, "= 1 is out of range");
    check(cases);
    report("feed");
}

/// A feed has no more dimensions than any tensor.
#[test]
fn ranks_of_feeds() {
    let wide = || floats(&[1; 100_000]);
    let text = "input \"data\" has 100000 dimensions: the limit is 64";
    let at = [At::Limit("rank"), At::Name("data".into())];
    let bytes = one("Gather", vec![], &wide(), &ids(&[1], &[0]));
    let case = Case::new("feed", "a tensor of rank 100,000", bytes, Kind::Limit, text).at(at.clone());
    check([case.fed([("data", wide()), ("indices", ids(&[1], &[0]))])]);
    let sequence = Sequence::new(DType::Float.into(), [floats(&[]).into(), wide().into()]).unwrap();
    let graph = GraphProto {
        node: vec![node("SequenceLength", &["data"], &["length"], vec![])],
        input: vec![typed("data", &ValueType::from(DType::Float).sequence())],
        output: vec![value("length", DType::Int64, None)],
        ..GraphProto::default()
    };
    let case = Case::new("feed", "a sequence of rank 100,000", model(13, 8, graph), Kind::Limit, text).at(at);
    check([case.fed([("data", Value::from(sequence))])]);
    report("feed");
}

fn short(shape: &[usize]) -> String {
    if shape.len() > 8 { format!("{} dimensions", shape.len()) } else { format!("{shape:?}") }
}

/// What has no elements may have dimensions of any size: it runs, or is refused, and nothing overflows.
#[test]
fn dimensions_of_nothing() {
    let empty = |shape: &[usize]| Tensor::new(DType::Float, shape, vec![]).unwrap();
    let no_ids = |shape: &[usize]| Tensor::new(DType::Int64, shape, vec![]).unwrap();
    let run = |op: &str, attribute: (&str, i64), data: &Tensor, indices: &Tensor| {
        let model = Model::from_bytes(one(op, vec![int(attribute.0, attribute.1)], data, indices)).unwrap();
        model.run(inputs! { "data" => data, "indices" => indices }).map(|o| o["output"].shape().to_vec())
    };
    let most = HUGE / 4;
    assert_eq!(run("Gather", ("axis", 0), &empty(&[most, 0]), &ids(&[2], &[-1, 0])).unwrap(), [2, 0]);
    assert_eq!(run("Gather", ("axis", 0), &empty(&[0, most]), &no_ids(&[0, 2])).unwrap(), [0, 2, most]);
    assert_eq!(run("Gather", ("axis", 1), &empty(&[most, 0]), &no_ids(&[0])).unwrap(), [most, 0]);
    assert_eq!(run("Gather", ("axis", 1), &empty(&[0, 2, HUGE / 2]), &ids(&[1], &[1])).unwrap(), [0, 1, HUGE / 2]);
    // More elements than can be counted, times none.
    assert_eq!(run("Gather", ("axis", 0), &empty(&[0, HUGE]), &no_ids(&[0, HUGE])).unwrap(), [0, HUGE, HUGE]);
    assert_eq!(run("Gather", ("axis", 1), &empty(&[HUGE, 0]), &no_ids(&[0, HUGE])).unwrap(), [HUGE, 0, HUGE]);
    let (data, indices) = (empty(&[HUGE, 0, HUGE]), no_ids(&[0, HUGE, 1]));
    assert_eq!(run("GatherND", ("batch_dims", 0), &data, &indices).unwrap(), [0, HUGE, 0, HUGE]);
    assert_eq!(run("GatherElements", ("axis", 1), &data, &no_ids(&[HUGE, 0, HUGE])).unwrap(), [HUGE, 0, HUGE]);
    assert_eq!(
        run("GatherElements", ("axis", 0), &empty(&[most, 0]), &no_ids(&[HUGE >> 10, 0])).unwrap(),
        [HUGE >> 10, 0]
    );
    assert_eq!(run("GatherElements", ("axis", 1), &empty(&[most, 0]), &no_ids(&[most, 0])).unwrap(), [most, 0]);
    assert_eq!(run("GatherND", ("batch_dims", 0), &empty(&[most, 0]), &ids(&[1, 1], &[5])).unwrap(), [1, 0]);
    assert_eq!(run("GatherND", ("batch_dims", 1), &empty(&[0, most]), &no_ids(&[0, 7, 1])).unwrap(), [0, 7]);

    // No dimension is larger than the standard's int64.
    for shape in [&[0, isize::MAX as usize + 1][..], &[usize::MAX, 0], &[0, usize::MAX, 0]] {
        let error = Tensor::new(DType::Float, shape, vec![]).unwrap_err().to_string();
        assert!(error.contains("has a dimension that is too large"), "{error}");
        let error = Tensor::from_strings(shape, [""; 0]).unwrap_err().to_string();
        assert!(error.contains("has a dimension that is too large"), "{error}");
    }

    // An array of no elements counts its elements, not their bytes.
    let mut wrong = Vec::new();
    let wide = Array2::<Complex<f64>>::from_shape_vec((0, HUGE), vec![]).unwrap();
    let tall = Array2::<Complex<f64>>::from_shape_vec((HUGE, 0), vec![]).unwrap();
    for (name, array) in [("wide", wide), ("tall", tall)] {
        for (op, attribute, shape) in [
            ("Gather", "axis", &[1][..]),
            ("GatherElements", "axis", &[1, 0]),
            ("GatherElements", "axis", &[0, 1]),
            ("GatherND", "batch_dims", &[1, 1]),
        ] {
            let array = array.clone();
            let indices = if shape.contains(&0) { no_ids(shape) } else { ids(shape, &[0]) };
            let outcome = on_thread(&format!("{op} of {name}"), 1 << 20, move || {
                let data = Tensor::from_array(array);
                let bytes = one(op, vec![int(attribute, 0)], &data, &indices);
                let _ = Model::from_bytes(bytes).unwrap().run(inputs! { "data" => &data, "indices" => &indices });
            });
            wrong
                .extend(outcome.err().map(|fate| format!("{op} by {shape:?} of a {name} array of no elements {fate}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each node makes its input's last dimension, of size 1, one of `by` and another of size 1.
fn growing(nodes: usize, by: usize, outputs: bool) -> (Vec<u8>, Feeds) {
    let name = |k: usize| format!("x{k}");
    let gather = |k: usize| NodeProto {
        name: Some(format!("grow {k}")),
        ..node("Gather", &[&name(k), "ids"], &[&name(k + 1)], vec![int("axis", -1)])
    };
    let kept = if outputs { 1 } else { nodes };
    let graph = GraphProto {
        node: (0..nodes).map(gather).collect(),
        input: vec![value("x0", DType::Uint8, None), value("ids", DType::Int32, None)],
        output: (kept..=nodes).map(|k| value(&name(k), DType::Uint8, None)).collect(),
        ..GraphProto::default()
    };
    (model(13, 8, graph), vec![("x0", zeros(DType::Uint8, &[1])), ("ids", array(&[by, 1], |_| 0i32))])
}

#[test]
fn outputs_that_grow() {
    let grown = |name: &str, nodes, by, limit: &'static str, at: usize, change: fn(&mut Limits)| {
        let (bytes, feeds) = growing(nodes, by, false);
        let case = Case::new("amplification", name, bytes, Kind::Limit, format!("Limits::{limit}"));
        // The indices are narrowed: four bytes each.
        let scratch = 4 * by as u64;
        case.at([At::Limit(limit), At::Node(at)]).fed(feeds).limits(change).scratch(scratch)
    };
    if usize::BITS == 64 {
        check([grown("a chain that grows by 100,000", 20, 100_000, "tensor_bytes", 1, |_| {})]);
    }
    check([
        grown("a chain that grows by 1000", 20, 1000, "tensor_bytes", 1, |l| l.tensor_bytes = 999_999),
        grown("a chain that doubles", 60, 2, "tensor_bytes", 16, |l| l.tensor_bytes = 1 << 16),
        grown("a run that holds much", 20, 100, "run_bytes", 2, |l| l.run_bytes = 900_000),
        grown("a run that holds nothing", 1, 1, "run_bytes", 0, |l| l.run_bytes = 0),
        grown("a run that works much", 20, 1000, "run_elements", 1, |l| l.run_elements = 1_000_999),
        grown("a run that may not work", 1, 1, "run_elements", 0, |l| l.run_elements = 0),
        grown("ranks that grow", 100, 1, "rank", 63, |_| {}),
        grown("a rank of 2", 5, 3, "rank", 1, |l| l.rank = 2),
    ]);
    report("amplification");
}

/// Without limits the system is asked first: no process has room for 2^47 bytes.
#[test]
#[cfg(target_pointer_width = "64")]
fn more_than_the_system_has() {
    let (data, indices) =
        (zeros(DType::Uint8, &[1, 1 << 23]), Tensor::new(DType::Int32, &[1 << 24], vec![0; 4 << 24]).unwrap());
    let bytes = one("Gather", vec![], &data, &indices);
    let case = Case::new("amplification", "2^47 bytes", bytes, Kind::Limit, "the system has no 140737488355328 bytes");
    let case = case.at([At::Node(0)]).fed([("data", data), ("indices", indices)]);
    check([case.limits(|l| (l.tensor_bytes, l.run_bytes, l.run_elements) = (u64::MAX, u64::MAX, u64::MAX))]);
}

/// The memory of a run, with outputs that are all kept, is what the limit says, and a byte less is refused.
#[test]
fn a_run_holds_no_more_than_it_may() {
    let (bytes, feeds) = growing(2, 1000, true);
    // Two outputs, and four bytes for each index that the entries of the second one share.
    let held = 1000 + 1_000_000 + 4 * 1000;
    let run = |allowed| {
        let options = Model::options().threads(1).limits(limits(|l| l.run_bytes = allowed));
        let model = options.from_bytes(bytes.clone()).unwrap();
        let feeds: Feeds = feeds.clone();
        let (result, peak) = peak_of(|| model.run(feeds.iter().map(|(name, tensor)| (*name, tensor)).collect()));
        (result.map(drop), peak)
    };
    let (result, peak) = run(held);
    result.unwrap();
    println!("a run that holds {held} B takes {} B", peak.bytes);
    assert!(peak.bytes >= held && peak.bytes <= held + BESIDE, "{peak:?}");
    let (result, peak) = run(held - 1);
    assert_eq!(result.unwrap_err().place().limit, Some("run_bytes"));
    assert!(peak.bytes <= held - 1 + BESIDE, "{peak:?}");
}

/// A chain of nodes; the last outputs are the graph's.
fn chain(nodes: usize) -> GraphProto {
    let name = |k: usize| format!("x{k}");
    GraphProto {
        node: (0..nodes).map(|k| node("Gather", &[&name(k), "ids"], &[&name(k + 1)], vec![])).collect(),
        input: vec![value("x0", DType::Float, None), value("ids", DType::Int64, None)],
        output: vec![value(&name(nodes), DType::Float, None)],
        ..GraphProto::default()
    }
}

/// Nodes that each read `data` at indices of their own; all that they make are the graph's outputs.
fn side_by_side(nodes: usize) -> GraphProto {
    let gather = |k: usize| node("Gather", &["data", &format!("i{k}")], &[&format!("o{k}")], vec![]);
    let inputs = (0..nodes).map(|k| value(&format!("i{k}"), DType::Int32, None));
    GraphProto {
        node: (0..nodes).map(gather).collect(),
        input: [value("data", DType::Float, None)].into_iter().chain(inputs).collect(),
        output: (0..nodes).map(|k| value(&format!("o{k}"), DType::Float, None)).collect(),
        ..GraphProto::default()
    }
}

/// What a large value leaves when it dies counts as well, while many small ones take all that is allowed.
#[test]
fn memory_that_waits_counts() {
    const SMALL: usize = 1000;
    let mut graph = GraphProto {
        node: vec![
            node("Gather", &["data", "all"], &["large"], vec![]),
            node("Gather", &["large", "few"], &["some"], vec![]),
        ],
        input: vec![
            value("data", DType::Float, None),
            value("all", DType::Int32, None),
            value("few", DType::Int32, None),
        ],
        ..GraphProto::default()
    };
    for k in 0..SMALL {
        graph.node.push(node("Gather", &["some", "few"], &[&format!("s{k}")], vec![]));
        graph.output.push(value(&format!("s{k}"), DType::Float, None));
    }
    let (data, all, few) = (floats(&[1]), array(&[500_000], |_| 0i32), array(&[1000], |_| 0i32));
    let allowed = (SMALL as u64 + 1) * 4000;
    let options = Model::options().threads(1).limits(limits(|l| l.run_bytes = allowed));
    let loaded = options.from_bytes(model(13, 8, graph)).unwrap();
    let (result, peak) = peak_of(|| loaded.run(inputs! { "data" => &data, "all" => &all, "few" => &few }).map(drop));
    result.unwrap();
    // The places of so many outputs.
    let beside = BESIDE + SMALL as u64 * 512;
    println!("small values after a large one: {} B of {allowed}", peak.bytes);
    assert!(peak.bytes <= allowed + beside, "takes {} bytes, and {allowed} are allowed", peak.bytes);
}

/// Memory that is used again counts as large as it is, not as what is in it now.
#[test]
fn a_runner_holds_no_more_than_it_may() {
    const ROWS: usize = 50_000;
    const NODES: usize = 16;
    let bytes = model(13, 8, side_by_side(NODES));
    let allowed = (NODES / 2 * ROWS * 4) as u64;
    let (data, ids) = (floats(&[1]), |count: usize| array(&[count], |_| 0i32));
    let (whole, half, none) = (ids(ROWS), ids(ROWS / 2), ids(0));
    let mut wrong = Vec::new();
    for threads in [1, 2] {
        let options = Model::options().threads(threads).limits(limits(|l| l.run_bytes = allowed));
        let loaded = options.from_bytes(bytes.clone()).unwrap();
        let names: Vec<String> = (0..NODES).map(|k| format!("i{k}")).collect();
        // Half of the nodes make whole outputs, all of them half ones: the same number of bytes.
        for rounds in [&[0, 1][..], &[1, 0, 1], &[0, 0, 1, 1, 0]] {
            let ((), peak) = peak_of(|| {
                let mut runner = loaded.runner();
                runner.feed("data", &data).unwrap();
                for round in rounds {
                    for (k, name) in names.iter().enumerate() {
                        let odd = if k < NODES / 2 { &whole } else { &none };
                        runner.feed(name, if *round == 0 { odd } else { &half }).unwrap();
                    }
                    runner.run().unwrap();
                }
            });
            println!("a runner of outputs of two sizes: {} B of {allowed}", peak.bytes);
            if peak.bytes > allowed + BESIDE {
                wrong.push(format!("{rounds:?} on {threads}: takes {} bytes, and {allowed} are allowed", peak.bytes));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What an operator takes beside its output, as the documentation has it.
#[test]
fn scratch() {
    const N: usize = 100_001;
    let run = |op: &str, attribute: (&str, i64), data: &Tensor, indices: &Tensor| {
        let bytes = one(op, vec![int(attribute.0, attribute.1)], data, indices);
        let model = Model::options().threads(1).from_bytes(bytes).unwrap();
        let (result, peak) = peak_of(|| model.run(inputs! { "data" => data, "indices" => indices }));
        let output = result.unwrap()["output"].bytes().len() as u64;
        peak.bytes - output
    };
    let wide = array(&[N], |k| k as i64 % 3);
    let narrow = array(&[N], |k| k as i32 % 3);
    let mut wrong = Vec::new();
    for (name, taken, each) in [
        ("Gather along the first axis", run("Gather", ("axis", 0), &floats(&[3]), &wide), 0),
        ("Gather of rows", run("Gather", ("axis", 0), &floats(&[3, 3]), &wide), 0),
        ("Gather along the last of two axes", run("Gather", ("axis", 1), &floats(&[2, 3]), &wide), 4),
        ("Gather along the last axis, int32", run("Gather", ("axis", 1), &floats(&[2, 3]), &narrow), 4),
        ("GatherElements", run("GatherElements", ("axis", 0), &floats(&[3]), &wide), 0),
        ("GatherND", run("GatherND", ("batch_dims", 0), &floats(&[3]), &array(&[N, 1], |k| k as i64 % 3)), 8),
    ] {
        println!("{name}: {:.2} bytes for each index beside the output", taken as f64 / N as f64);
        if taken > each * N as u64 + BESIDE {
            wrong.push(format!("{name} takes {:.2} bytes for each index, not {each}", taken as f64 / N as f64));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Many inputs are fed in a time that grows as they do.
#[test]
fn as_many_feeds_as_there_are_inputs() {
    const INPUTS: usize = 200_000;
    let name = |k: usize| format!("an input with a name of some length and the number {k:06}");
    let graph = GraphProto {
        input: (0..INPUTS).map(|k| value(&name(k), DType::Uint8, None)).collect(),
        ..GraphProto::default()
    };
    let bytes = model(13, 8, graph);
    on_thread("many feeds", 1 << 20, move || {
        let limits = limits(|limits| limits.load_bytes = 1 << 30);
        let model = Model::options().limits(limits).from_bytes(bytes).unwrap();
        let names: Vec<String> = (0..INPUTS).map(name).collect();
        let feed = zeros(DType::Uint8, &[1]);
        model.run(names.iter().map(|name| (name.as_str(), &feed)).collect()).unwrap();
        let mut runner = model.runner();
        names.iter().for_each(|name| runner.feed(name, &feed).unwrap());
        runner.run().unwrap();
    })
    .unwrap();
}

fn endless(options: LoadOptions) -> Model {
    options.from_bytes(model(13, 8, chain(20_000))).unwrap()
}

/// The error of the run that is stopped, of as many as take longer than anyone waits.
fn stopped(runner: &mut Runner) -> Error {
    (0..2000).find_map(|_| runner.run().err()).expect("a run that is stopped")
}

#[test]
fn a_cancelled_run_stops_and_the_next_one_does_not() {
    on_thread("cancel", 256 << 10, || {
        let model = endless(Model::options());
        let (data, indices) = (floats(&[3]), ids(&[3], &[1, 2, 0]));
        let mut runner = model.runner();
        runner.feed("x0", &data).unwrap();
        runner.feed("ids", &indices).unwrap();
        // Before the run.
        let cancel = Cancel::new();
        runner.cancel_with(&cancel);
        cancel.cancel();
        let error = runner.run().unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (Kind::Cancelled, "the run was cancelled by its caller")
        );
        assert_eq!(runner.run().unwrap_err().kind(), Kind::Cancelled, "it stays so");
        assert_eq!(runner.output("x20000").unwrap_err().kind(), Kind::Input);
        // While it runs.
        let cancel = Cancel::new();
        runner.cancel_with(&cancel);
        let other = cancel.clone();
        let caller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            other.cancel();
        });
        let error = stopped(&mut runner);
        caller.join().unwrap();
        assert_eq!(error.kind(), Kind::Cancelled);
        // And not any more.
        runner.cancel_with(&Cancel::new());
        runner.run().unwrap();
        // Each of 20,000 = 2 mod 3 nodes turns by one.
        assert_eq!(runner.output("x20000").unwrap(), &array(&[3], |k| ((k + 2) % 3) as f32));
        GOOD.runs();
    })
    .unwrap();
}

#[test]
fn a_kernel_is_cancelled_in_the_middle() {
    // As many bytes as are written between two looks at the token, and more.
    const N: usize = 700_000;
    for (op, attribute, axis, data, shape) in [
        ("Gather", "axis", 0, &[1][..], &[N][..]),
        ("Gather", "axis", 1, &[1, 1], &[N]),
        ("GatherElements", "axis", 0, &[1, 1], &[N, 1]),
        ("GatherND", "batch_dims", 0, &[1], &[N, 1]),
    ] {
        let (data, indices) = (zeros(DType::Double, data), array(shape, |_| 0i64));
        for threads in [1, 2] {
            let options = Model::options().threads(threads);
            let model = options.from_bytes(one(op, vec![int(attribute, axis)], &data, &indices)).unwrap();
            let mut runner = model.runner();
            runner.feed("data", &data).unwrap();
            runner.feed("indices", &indices).unwrap();
            let cancel = Cancel::new();
            runner.cancel_with(&cancel);
            let caller = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(5));
                cancel.cancel();
            });
            let error = stopped(&mut runner);
            caller.join().unwrap();
            assert_eq!(error.kind(), Kind::Cancelled, "{op}: {error}");
            runner.cancel_with(&Cancel::new());
            runner.run().unwrap();
            assert_eq!(runner.output("output").unwrap().len(), N, "{op}");
        }
    }
}
