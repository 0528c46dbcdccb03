//! `onnxref run --stats` and `--stop-at`, as a user calls them.

use crate::common::{Bench, Ran, body, bytes, check, graph, int, model, node, number, several};
use onnxref::DType;
use serde_json::{Value, json};

/// `y = Log(x - w)`, where w is 1.
fn log() -> Bench {
    let w = bytes(5, &[number(1, 1), number(2, 1), bytes(4, &1f32.to_le_bytes()), bytes(8, b"w")].concat());
    let sub =
        bytes(1, &[bytes(1, b"x"), bytes(1, b"w"), bytes(2, b"d"), bytes(3, b"minus"), bytes(4, b"Sub")].concat());
    Bench::new(&model(&[w, sub, node("Log", &["d"], "y")].concat(), &[("x", Some(DType::Float))], 18))
}

/// The lines of a table, with single bars between the cells.
fn lines(ran: &Ran) -> Vec<String> {
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect();
        cells.join("|")
    };
    ran.out.lines().map(cells).collect()
}

const HEADER: &str = "value|type|shape|least|greatest|mean|NaN|infinite|zeros|> float16";

#[test]
fn every_value_in_its_order() {
    let ran = log().run(&["--stats", "-i", "x=[1, 2, 0, 70001]"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let expected = [
        HEADER,
        "x|float32|[4]|0|70001|17501|0|0|1|1",
        "d|float32|[4]|-1|70000|17500|0|0|1|1",
        "y|float32|[4]|0|11.156251|5.57813|1|1|1|0",
        "",
        "3 values: 1 with NaN, the first is \"y\"; 1 with infinities, the first is \"y\"; 2 with numbers that float16 can't hold, the first is \"x\"",
    ];
    assert_eq!(lines(&ran), expected);
    // With initializers and operators.
    let ran = log().run(&["--stats", "-v", "-i", "x=[1, 2]", "--threads", "3"]);
    let rows = lines(&ran);
    assert_eq!(
        rows[1..5].iter().map(|row| row.split('|').take(3).collect::<Vec<_>>().join("|")).collect::<Vec<_>>(),
        ["x|input|float32", "w|initializer|float32", "d|Sub-14|float32", "y|Log-13|float32"]
    );
}

#[test]
fn json_has_everything() {
    let ran = log().run(&["--stats", "--json", "-i", "x=[1, 3]"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["outputs"], Value::Null);
    assert_eq!(found["unlisted"], 0);
    let names: Vec<&Value> = found["stats"].as_array().unwrap().iter().map(|value| &value["name"]).collect();
    assert_eq!(names, ["x", "w", "d", "y"]);
    let node = json!({"index": 0, "name": "minus", "operator": "Sub", "domain": "", "version": 14});
    let d = json!({
        "name": "d", "from": "node", "node": node, "type": "float32", "shape": [2], "elements": 2, "least": 0.0,
        "greatest": 2.0, "mean": 1.0, "nan": 0, "infinite": 0, "zeros": 1, "beyond_float16": 0
    });
    assert_eq!(found["stats"][2], d);
}

#[test]
fn a_run_stops_where_nan_begins() {
    let ran = log().run(&["--stop-at", "nan", "-i", "x=[[1, 2, 0.5], [9, 0, 1]]"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    let expected = [
        "node #1 (Log-13) gives \"y\": 2 of 6 elements are NaN, the first at [0, 2]; its inputs have none",
        "",
        HEADER,
        "d|float32|[2, 3]|-1|8|1.25|0|0|2|0",
        "y|float32|[2, 3]|0|2.0794415|1.03972|2|2|1|0",
    ];
    assert_eq!(lines(&ran), expected);
    // Which of the two comes first in the list doesn't matter: both are in one output.
    let ran = log().run(&["--stop-at", "inf", "--json", "-i", "x=[2, 1]"]);
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    let stopped = &found["stopped"];
    assert_eq!((ran.code, &stopped["what"], &stopped["position"]), (Some(1), &json!("inf"), &json!([1])));
    assert_eq!((&stopped["inputs"][0]["name"], &stopped["inputs"][0]["least"]), (&json!("d"), &json!(0.0)));
    assert_eq!((&stopped["output"]["name"], &stopped["count"]), (&json!("y"), &json!(1)));
    // The table of what came before ends there, and the files of outputs aren't written.
    let bench = log();
    let ran = bench.run(&["--stats", "--stop-at", "nan", "-o", &bench.text("y.npy"), "-i", "x=[0]"]);
    assert_eq!((ran.code, lines(&ran).len(), bench.files().len()), (Some(1), 12, 0), "{ran:?}");
}

#[test]
fn a_run_without_it_goes_on() {
    let row = "output  type     shape  values\ny       float32  [1]    ";
    check(
        log().run(&["--stop-at", "nan,inf", "-i", "x=[2]"]),
        0,
        &format!("{row}[0]\n"),
        "note: no value has NaN or infinity\n",
    );
    let note = "note: no node gives NaN without one in its inputs; the first value with NaN is \"x\"\n";
    check(log().run(&["--stop-at", "nan", "-i", "x=[\"NaN\"]"]), 0, &format!("{row}[NaN]\n"), note);
    let bad = log().run(&["--stop-at", "NaNs", "-i", "x=[2]"]);
    assert!(bad.code == Some(2) && bad.err.contains("[possible values: nan, inf]"), "{bad:?}");
}

#[test]
fn values_of_subgraphs_have_their_trip() {
    // y = Loop(4, x): each trip takes one away, and then the square root.
    let inner = [
        several("Identity", &["cond"], &["go"], &[]),
        several("Sub", &["s", "one"], &["less"], &[]),
        several("Sqrt", &["less"], &["next"], &[]),
    ];
    let inner = graph(&inner, &[("i", DType::Int64), ("cond", DType::Bool), ("s", DType::Float)], &["go", "next"]);
    let one = several("Identity", &["x1"], &["one"], &[]);
    let nodes = [
        several("Constant", &[], &["n"], &[int("value_int", 4)]),
        one,
        several("Loop", &["n", "", "x"], &["y"], &[body("body", &inner)]),
    ];
    let graph = graph(&nodes, &[("x", DType::Float), ("x1", DType::Float)], &["y"]);
    let bench =
        Bench::new(&[number(1, 9), bytes(7, &graph), bytes(8, &[bytes(1, b""), number(2, 18)].concat())].concat());
    let feeds = ["-i", "x=[5]", "-i", "x1=[1]"];
    let ran = bench.run(&[&["--stop-at", "nan", "--stats"], &feeds[..]].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let rows = lines(&ran);
    assert!(rows.contains(&"\"less\" in the body of \"y\", trip 1|float32|[1]|1|1|1|0|0|0|0".to_string()), "{rows:?}");
    let stop = "node #2 (Sqrt-13) gives \"next\" in the body of \"y\", trip 3: 1 of 1 elements is NaN, the first at [0]; its inputs have none";
    assert!(rows.contains(&stop.to_string()), "{rows:?}");
    assert_eq!(rows[rows.len() - 2], "\"less\" in the body of \"y\", trip 3|float32|[1]|-1|-1|-1|0|0|0|0");
    // What is fed to a body or captured by it may have NaN: then no node is to blame, the Loop neither.
    let ran = bench.run(&["--stop-at", "nan", "-i", "x=[\"NaN\"]", "-i", "x1=[1]"]);
    assert!(ran.code == Some(0) && ran.err.ends_with("the first value with NaN is \"x\"\n"), "{ran:?}");
    let ran = bench.run(&["--stop-at", "nan", "-i", "x=[9]", "-i", "x1=[\"NaN\"]"]);
    assert!(ran.code == Some(0) && ran.err.ends_with("the first value with NaN is \"x1\"\n"), "{ran:?}");
}

#[test]
fn the_table_of_a_run_that_fails_ends_there() {
    let nodes = [node("Neg", &["data"], "n"), node("Gather", &["n", "indices"], "y")].concat();
    let bench = Bench::new(&model(&nodes, &[("data", Some(DType::Float)), ("indices", Some(DType::Int64))], 13));
    let ran = bench.run(&["--stats", "-i", "data=[1, 2]", "-i", "indices=[2]"]);
    assert_eq!((ran.code, lines(&ran).len()), (Some(4), 6), "{ran:?}");
    assert_eq!(lines(&ran)[3], "n|float32|[2]|-2|-1|-1.5|0|0|0|0");
    // What has no numbers says what it is.
    let nodes = bytes(1, &[bytes(1, b"x"), bytes(2, b"y"), bytes(4, b"SequenceConstruct")].concat());
    let bench = Bench::new(&model(&nodes, &[("x", Some(DType::String))], 13));
    let rows = lines(&bench.run(&["--stats", "-i", "x=[\"a\"]"]));
    assert_eq!(rows[1..3], ["x|string|[1]|-|-|-|-|-|-|-", "y|seq(string)|-|-|-|-|-|-|-"]);
}
