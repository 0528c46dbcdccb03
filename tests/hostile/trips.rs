//! Subgraphs that run as often as the data says.

use crate::case::{At, Case, check, on_thread, report};
use crate::common::proto::attribute_proto::AttributeType;
use crate::common::proto::{AttributeProto, GraphProto, ValueInfoProto};
use crate::common::{attribute, int, ints, model, node, value};
use crate::graphs::array;
use onnxref::operator::Cancel;
use onnxref::{DType, Kind, Model, Tensor, inputs};
use std::time::Duration;

/// Entries of which a shape has no elements: more than a list may have.
const HUGE: usize = 1 << (usize::BITS - 4);

fn floats(shape: &[usize]) -> Tensor {
    array(shape, |k| k as f32)
}

/// `sums, all = Scan-8(lengths, start, entries)`: `all` are the sums after each trip. `lengths` may be left out.
fn batch(lengths: &[&str], directions: &[i64]) -> Vec<u8> {
    let names =
        |names: &[&str]| -> Vec<ValueInfoProto> { names.iter().map(|name| value(name, DType::Float, None)).collect() };
    let body = GraphProto {
        node: vec![
            node("Add", &["before", "entry"], &["after"], vec![]),
            node("Identity", &["after"], &["each"], vec![]),
        ],
        input: names(&["before", "entry"]),
        output: names(&["after", "each"]),
        ..GraphProto::default()
    };
    let body = AttributeProto { g: Some(Box::new(body)), ..attribute("body", AttributeType::Graph) };
    let attributes = vec![body, int("num_scan_inputs", 1), ints("directions", directions)];
    let graph = GraphProto {
        node: vec![node("Scan", &[lengths.first().unwrap_or(&""), "start", "entries"], &["sums", "all"], attributes)],
        input: [lengths.iter().map(|name| value(name, DType::Int64, None)).collect(), names(&["start", "entries"])]
            .concat(),
        output: names(&["sums", "all"]),
        ..GraphProto::default()
    };
    model(8, 3, graph)
}

/// An entry that ends at once doesn't take stack.
#[test]
fn many_entries_without_trips() {
    const ENTRIES: usize = 20_000;
    on_thread("entries without trips", 256 << 10, || {
        let model = Model::from_bytes(batch(&["lengths"], &[0])).unwrap();
        let start = floats(&[ENTRIES, 1]);
        let lengths = array(&[ENTRIES], |_| 0i64);
        let feeds = |entries: Tensor| inputs! { "lengths" => &lengths, "start" => &start, "entries" => entries };
        let outputs = model.run(feeds(floats(&[ENTRIES, 0, 1]))).unwrap();
        assert_eq!((&outputs["sums"], outputs["all"].shape()), (&start, &[ENTRIES, 0][..]));
        // Trips at both ends, and none in between.
        let ends = array(&[ENTRIES], |k| i64::from(k == 0 || k == ENTRIES - 1));
        let entries = array(&[ENTRIES, 1, 1], |_| 0.5f32);
        let outputs = model.run(inputs! { "lengths" => &ends, "start" => &start, "entries" => entries }).unwrap();
        let sums = outputs["sums"].as_slice::<f32>().unwrap();
        assert_eq!((sums[0], sums[1], sums[ENTRIES - 1]), (0.5, 1.0, ENTRIES as f32 - 0.5));
    })
    .unwrap();
}

#[test]
fn what_trips_may_take() {
    let mut cases = Vec::new();
    let nothing = || [("start", floats(&[HUGE, 0])), ("entries", floats(&[HUGE, 0, 0]))];
    let text = format!("sequence_lens must have {HUGE} entries from 0 to 0");
    let lengths = [("lengths", array(&[0], |_| 0i64))].into_iter().chain(nothing());
    cases.push(Case::new("trips", "no lengths", batch(&["lengths"], &[0]), Kind::Input, text).fed(lengths));
    let case = Case::new("trips", "entries of nothing", batch(&[], &[0]), Kind::Limit, "bytes");
    cases.push(case.at([At::Limit("run_bytes")]).limits(|limits| limits.run_bytes = 1 << 20).fed(nothing()));
    for direction in [2, -1, i64::MAX] {
        let text = format!("directions[0] is {direction}: allowed 0 (forward) and 1 (reverse)");
        let case =
            Case::new("trips", format!("direction {direction}"), batch(&["lengths"], &[direction]), Kind::Model, text);
        cases.push(case.at([At::Attribute("directions".into()), At::Value(direction.into()), At::Position(vec![0])]));
    }
    let entries = || [("lengths", array(&[9], |_| 0i64)), ("start", floats(&[9, 1])), ("entries", floats(&[9, 0, 1]))];
    let case =
        Case::new("trips", "nodes of a batch", batch(&["lengths"], &[0]), Kind::Limit, "the run executes 8 nodes");
    cases.push(case.at([At::Limit("run_nodes")]).limits(|limits| limits.run_nodes = 7).fed(entries()));
    check(cases);
    report("trips");
}

#[test]
fn a_batch_of_nothing_is_cancelled() {
    let model = Model::from_bytes(batch(&[], &[0])).unwrap();
    let mut runner = model.runner();
    runner.feed("start", floats(&[HUGE, 0])).unwrap();
    runner.feed("entries", floats(&[HUGE, 0, 0])).unwrap();
    runner.cancel_with(&Cancel::after(Duration::from_millis(20)));
    assert_eq!(runner.run().unwrap_err().kind(), Kind::Cancelled);
}
