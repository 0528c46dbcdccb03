//! Models of later opsets give the same outputs.

#![allow(clippy::indexing_slicing)]

mod common;

use anyhow::{Context, Result, ensure};
use common::archive::{in_parallel, unpack};
use onnxref::document::Document;
use onnxref::{Inputs, Kind, Model, Outputs, Tensor, Value};
use std::collections::{BTreeMap, HashMap};

/// What came of a case.
enum Outcome {
    /// Both models ran, and the outputs are the same.
    Same,
    /// Both models fail, or the old one can't be loaded.
    Neither,
    /// Operators that were refused, with their reasons.
    Refused(Vec<String>),
}

/// How many nodes of the older cases are refused, and why.
const REFUSED: [&str; 7] = [
    "2 Cast-23: what float4e2m1 can't hold becomes another number in Cast-24",
    "4 Cast-23: what int4 can't hold becomes another number in Cast-24",
    "4 Cast-23: what uint4 can't hold becomes another number in Cast-24",
    "1 MeanVarianceNormalization-1: it was an experimental operator, which ONNX dropped in release 1.5",
    "2 OneHot-9: negative indices select nothing, and those of OneHot-11 count from the end",
    "3 Resize-10: its scales aren't constants, on which nearest_mode of Resize-11 depends",
    "1 Scan-8: its inputs have a batch, and those of Scan-9 have none",
];

#[test]
fn older_cases_are_the_same_in_the_newest_opset() -> Result<()> {
    let (same, refused) = convert_all("onnx-older-node", 28)?;
    let refused: Vec<String> = refused.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    assert_eq!(refused, REFUSED);
    assert_eq!(same, 3616);
    Ok(())
}

#[test]
fn networks_are_the_same_in_the_newest_opset() -> Result<()> {
    let (same, refused) = convert_all("small-networks", 28)?;
    assert_eq!((same, refused), (31, BTreeMap::new()));
    Ok(())
}

/// Returns the number of cases that are the same, and of those that were refused for each reason.
fn convert_all(archive: &str, opset: i64) -> Result<(usize, BTreeMap<String, usize>)> {
    let files: HashMap<String, Vec<u8>> =
        unpack(format!("onnx-test-data/{archive}.tar.xz"), |_| true)?.into_iter().collect();
    let mut cases: Vec<&str> = files.keys().filter_map(|path| path.strip_suffix("/model.onnx")).collect();
    // Random numbers have no seed there.
    cases.retain(|case| !case.contains("test_bernoulli"));
    cases.sort_unstable();
    let outcomes = in_parallel(&cases, |case| convert(case, &files, opset).with_context(|| case.to_string()));
    let (mut same, mut refused, mut wrong) = (0, BTreeMap::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(Outcome::Same) => same += 1,
            Ok(Outcome::Neither) => {}
            Ok(Outcome::Refused(reasons)) => {
                reasons.into_iter().for_each(|reason| *refused.entry(reason).or_default() += 1)
            }
            Err(error) => wrong.push(format!("{error:#}")),
        }
    }
    ensure!(wrong.is_empty(), "{} cases fail:\n{}", wrong.len(), wrong.join("\n"));
    Ok((same, refused))
}

fn convert(case: &str, files: &HashMap<String, Vec<u8>>, opset: i64) -> Result<Outcome> {
    let mut document = Document::from_bytes(files[&format!("{case}/model.onnx")].clone())?;
    let found = document.inspect(&Model::options())?;
    if found.error.is_some() {
        return Ok(Outcome::Neither);
    }
    let before = document.load(&Model::options())?;
    if let Err(error) = document.convert(&found, opset) {
        ensure!(error.kind() == Kind::Unsupported, "{error}");
        let reason = |error: &onnxref::Error| {
            let text = error.to_string();
            text.split_once(" (").map_or(text.clone(), |(_, text)| text.replacen("): ", ": ", 1))
        };
        return Ok(Outcome::Refused(error.causes().iter().map(reason).collect()));
    }
    let mut imported = document.opset_imports.iter().filter(|import| import.domain.is_empty());
    ensure!(imported.all(|import| import.version == Some(opset)));
    let after = document.load(&Model::options())?;
    let mut known = HashMap::new();
    for (k, info) in before.inputs().enumerate() {
        let path = format!("{case}/test_data_set_0/input_{k}.pb");
        if let (Some(bytes), Some(value_type)) = (files.get(&path), info.value_type.as_ref()) {
            match Value::from_proto_bytes(bytes.clone(), value_type) {
                Ok(value) => known.insert(info.name.clone(), value),
                Err(_) => return Ok(Outcome::Neither),
            };
        }
    }
    let run = |model: &Model| {
        let mut inputs = Inputs::new();
        for (name, value) in known.iter().filter(|(name, _)| model.inputs().any(|info| info.name == **name)) {
            inputs = inputs.with(name, value.clone());
        }
        model.run(inputs)
    };
    let Ok(old) = run(&before) else { return Ok(Outcome::Neither) };
    let new = run(&after)?;
    ensure!(bits(&old)? == bits(&new)?, "the outputs differ");
    Ok(Outcome::Same)
}

fn bits(outputs: &Outputs) -> Result<Vec<(String, Vec<u8>)>> {
    let bytes = |(name, value): (&str, &Value)| {
        let mut bytes = Vec::new();
        value.write_canonical("", &mut bytes)?;
        Ok((name.to_string(), bytes))
    };
    outputs.iter().map(bytes).collect()
}

/// A document, its model, and what [`Document::convert`] says of it.
fn converted(text: &str, opset: i64) -> Result<(Model, onnxref::Result<Document>)> {
    let mut document = Document::from_text(text)?;
    let model = document.load(&Model::options())?;
    let found = document.inspect(&Model::options())?;
    let done = document.convert(&found, opset);
    Ok((model, done.map(|()| document)))
}

/// Both give the same of `x`; the new nodes of the graph, or of its function, are `operators`.
fn same(text: &str, opset: i64, x: impl Into<Value>, operators: &[&str]) -> Result<()> {
    let (before, after) = converted(text, opset)?;
    let document = after.with_context(|| text.to_string())?;
    let nodes = document.functions.first().map_or(&document.graph.nodes, |function| &function.nodes);
    let found: Vec<&str> = nodes.iter().map(|node| node.op_type.as_str()).filter(|name| *name != "Constant").collect();
    ensure!(found == operators, "{found:?} of {text}");
    let (x, after) = (x.into(), document.load(&Model::options())?);
    let run = |model: &Model| model.run(Inputs::new().with("x", x.clone()));
    ensure!(bits(&run(&before)?)? == bits(&run(&after)?)?, "the outputs differ: {text}");
    Ok(())
}

fn refused(text: &str, opset: i64, why: &str) -> Result<()> {
    let (_, after) = converted(text, opset)?;
    let error = after.err().context(text.to_string())?;
    let texts: Vec<String> = error.causes().iter().map(|cause| cause.to_string()).collect();
    ensure!(texts == [format!("node #0 {why}")], "{texts:?} instead of {why}");
    Ok(())
}

/// Later versions of some operators have fewer types.
#[test]
fn types_that_went_are_refused() -> Result<()> {
    for operator in ["ReduceLogSum", "ReduceLogSumExp"] {
        let text = format!("<ir_version: 8, opset_import: [\"\" : 18]> g (int32[4] x) => (y) {{ y = {operator} (x) }}");
        let why = format!(
            "({operator}-18): \"data\" has element type int32: allowed float32, float16, float64, bfloat16 in {operator}-28"
        );
        refused(&text, 28, &why)?;
        same(&text, 27, vec![1, 2, 3, 4], &[operator])?;
    }
    let text = "<ir_version: 4, opset_import: [\"\" : 9]> g (int32[4] x) => (y) { y = Erf (x) }";
    let why = "(Erf-9): \"input\" has element type int32: allowed float32, float16, float64, bfloat16 in Erf-13";
    refused(text, 21, why)?;
    let text = "<ir_version: 5, opset_import: [\"\" : 10]> g (int32[3] x) => (y) <float s = {0.5}>
        { y = QuantizeLinear (x, s) }";
    for opset in [19, 21] {
        let why =
            "(QuantizeLinear-10): \"y_scale\" has element type float32 and \"x\" has int32: they must be equal in";
        refused(text, opset, &format!("{why} QuantizeLinear-{opset}"))?;
    }
    same(text, 28, vec![1, 2, 300], &["QuantizeLinear"])
}

/// Broadcasting is another as of opset 7.
#[test]
fn slopes_and_second_inputs_of_one_element() -> Result<()> {
    let text = "<ir_version: 4, opset_import: [\"\" : 6]> g (float x) => (y) <float[1] s = {0.5}> { y = PRelu (x, s) }";
    same(text, 22, Tensor::scalar(-3f32), &["Squeeze", "PRelu"])?;
    let x = Tensor::from_elements(&[2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    for axis in ["", ", axis = 0", ", axis = 1"] {
        for operator in ["Add", "Sub", "Mul", "Div", "Pow", "Equal"] {
            let of = if operator == "Equal" { "int32" } else { "float" };
            let text = format!(
                "<ir_version: 4, opset_import: [\"\" : 6]> g ({of}[2, 3] x) => (y) <{of}[1, 1] b = {{3}}>
                {{ y = {operator} <broadcast = 1{axis}> (x, b) }}"
            );
            if operator == "Equal" {
                same(&text, 22, Tensor::from_elements(&[2, 3], vec![1, 2, 3, 4, 5, 6])?, &[operator])?;
            } else {
                same(&text, 22, x.clone(), &[operator])?;
            }
        }
    }
    Ok(())
}

/// Indices that aren't negative select the same in each version.
#[test]
fn indices_that_are_not_negative_stay() -> Result<()> {
    let text = |x: &str, nodes: &str, more: &str| {
        format!(
            "<ir_version: 4, opset_import: [\"\" : 9]> g ({x} x) => (y) <int64[1] d = {{3}}, float[2] v = {{0, 1}}{more}>
            {{ {nodes} }}"
        )
    };
    same(&text("uint8[3]", "y = OneHot (x, d, v)", ""), 28, vec![2u8, 3, 0], &["OneHot"])?;
    let constant = |last: i64| {
        let more = format!(", int64[3] i = {{0, 2, {last}}}");
        text("float[3]", "o = OneHot (i, d, v) y = Add (o, x)", &more)
    };
    same(&constant(1), 28, vec![1f32, 2.0, 3.0], &["OneHot", "Add"])?;
    let why = "(OneHot-9): negative indices select nothing, and those of OneHot-11 count from the end";
    refused(&constant(-1), 28, why)?;
    refused(&text("int64[3]", "y = OneHot (x, d, v)", ""), 28, why)?;
    let best = text("float[2, 3]", "i = ArgMin <axis = 1, keepdims = 0> (x) y = OneHot (i, d, v)", "");
    same(&best, 28, Tensor::from_elements(&[2, 3], vec![1f32, 2.0, 0.0, -4.0, 5.0, 6.0])?, &["ArgMin", "OneHot"])
}

/// Some experimental operators are those of later versions, or a few of them.
#[test]
fn experimental_operators() -> Result<()> {
    let x = vec![-2f32, -0.0, 0.3, 0.75, 1e30];
    let double: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    let of = |dtype: &str, node: &str| {
        format!("<ir_version: 3, opset_import: [\"\" : 7]> g ({dtype}[5] x) => (y) {{ y = {node} (x) }}")
    };
    for (node, operators) in [
        ("ThresholdedRelu <alpha = 0.5>", &["ThresholdedRelu"][..]),
        ("Scale <scale = 0.1>", &["Mul"]),
        ("Scale", &["Mul"]),
        ("ScaledTanh <alpha = 1.7, beta = 0.6>", &["Mul", "Tanh", "Mul"]),
        ("ParametricSoftplus <alpha = 0.3, beta = 1.1>", &["Mul", "Softplus", "Mul"]),
    ] {
        same(&of("float", node), 22, x.clone(), operators)?;
        same(&of("double", node), 10, double.clone(), operators)?;
    }
    let text = "<ir_version: 3, opset_import: [\"\" : 7]> g (float[5] x) => (y)
        <int64[1] s = {1}, int64[1] e = {-1}> { y = DynamicSlice (x, s, e) }";
    same(text, 22, x, &["Slice"])?;
    let why =
        |operator: &str| format!("({operator}-1): it was an experimental operator, which ONNX dropped in release 1.5");
    refused(&of("float16", "ScaledTanh <alpha = 1.7, beta = 0.6>"), 22, &why("ScaledTanh"))?;
    refused(&of("float", "Affine <alpha = 1.7, beta = 0.6>"), 22, &why("Affine"))
}

#[test]
fn normalization_of_channels() -> Result<()> {
    let text = "<ir_version: 4, opset_import: [\"\" : 7]> g (float[2, 3] x) => (y)
        <float[3] s = {1, 2, 3}, float[3] b = {2, 4, 6}, float[3] m = {3, 6, 9}, float[3] v = {4, 8, 12}>
        { y = BatchNormalization <spatial = 0> (x, s, b, m, v) }";
    same(text, 22, Tensor::from_elements(&[2, 3], vec![1f32, -2.0, 3.0, 0.1, 5.0, 6.0])?, &["BatchNormalization"])?;
    let groups = |dtype: &str, count: usize| {
        let list = |from: usize| (0..count).map(|k| (k + from).to_string()).collect::<Vec<_>>().join(", ");
        format!(
            "<ir_version: 8, opset_import: [\"\" : 18]> g ({dtype}[1, 4, 3] x) => (y)
            <{dtype}[{count}] s = {{{}}}, {dtype}[{count}] b = {{{}}}>
            {{ y = GroupNormalization <num_groups = {count}> (x, s, b) }}",
            list(1),
            list(3)
        )
    };
    let numbers: Vec<f64> = (0..12).map(|k| f64::from(k * k) / 7.0).collect();
    for (count, operators) in [
        (4, &["GroupNormalization"][..]),
        (2, &["Gather", "Gather", "GroupNormalization"]),
        (1, &["Gather", "Gather", "GroupNormalization"]),
    ] {
        same(&groups("double", count), 22, Tensor::from_elements(&[1, 4, 3], numbers.clone())?, operators)?;
        let single = numbers.iter().map(|x| *x as f32).collect();
        same(&groups("float", count), 22, Tensor::from_elements(&[1, 4, 3], single)?, operators)?;
        let half = numbers.iter().map(|x| half::f16::from_f64(*x)).collect();
        same(&groups("float16", count), 22, Tensor::from_elements(&[1, 4, 3], half)?, operators)?;
    }
    let open = groups("float", 2).replace("[1, 4, 3]", "[1, C, 3]");
    let why = "(GroupNormalization-18): its scale and bias are those of groups, and GroupNormalization-21 has those of channels, \
               of an unknown number";
    refused(&open, 22, why)
}

/// A mask may be shorter than the keys as of opset 24.
#[test]
fn masks_for_all_keys() -> Result<()> {
    let text = |keys: u8| {
        format!(
            "<ir_version: 11, opset_import: [\"\" : 23]> g (float[1, 1, 3, 2] x, bool[1, {keys}] m) => (y)
            <bool[1, {keys}] m = {{{}}}> {{ y = Attention (x, x, x, m) }}",
            ["1", "1, 0, 1"][usize::from(keys > 1)]
        )
    };
    let x = Tensor::from_elements(&[1, 1, 3, 2], vec![1f32, 2.0, 3.0, -4.0, 5.0, 6.0])?;
    same(&text(3), 28, x, &["Attention"])?;
    let why = "its mask is one for all keys, and Attention-24 excludes those that it doesn't have";
    refused(&text(1), 28, &format!("(Attention-23): {why}"))
}

/// What versions in between can't say may be the same at the start and at the end.
#[test]
fn the_start_and_the_end_count() -> Result<()> {
    let ends = [1e300, -1e300, f64::INFINITY, 1.0, f64::NEG_INFINITY];
    for attributes in ["", "<max = 1.0>", "<min = -2.0>", "<min = -2.0, max = 1.0>"] {
        let text = |dtype: &str| {
            format!("<ir_version: 3, opset_import: [\"\" : 5]> g ({dtype}[5] x) => (y) {{ y = Clip {attributes} (x) }}")
        };
        same(&text("double"), 13, ends.to_vec(), &["Clip"])?;
        same(&text("float16"), 11, ends.map(half::f16::from_f64).to_vec(), &["Clip"])?;
        same(&text("float"), 11, ends.map(|x| x as f32).to_vec(), &["Clip"])?;
    }
    let text = "<ir_version: 3, opset_import: [\"\" : 5]> g (double[5] x) => (y) { y = Clip (x) }";
    refused(text, 8, "(Clip-1): its bounds are those of its type, and Clip-6 has those of float32")?;

    let split = "<ir_version: 4, opset_import: [\"\" : 1]> g (float[2, 4] x) => (y, z) <float[2] s = {1, 3}>
        { y, z = Split <axis = 1> (x, s) }";
    let x = || Tensor::from_elements(&[2, 4], (0..8).map(|k| k as f32).collect());
    for opset in [13, 28] {
        same(split, opset, x()?, &["Cast", "Split"])?;
    }
    refused(split, 11, "(Split-1): its sizes are an input, and an attribute of Split-2")
}

#[test]
fn one_axis_that_is_repeated() -> Result<()> {
    let x = || Tensor::from_elements(&[2, 3], (0..6).map(|k| k as f32).collect());
    // Inputs that initializers fix are constants too, up to version 3 of the format.
    for (ir, inputs) in [(4, ""), (3, ", float[1] t, float[1] a")] {
        for axis in [-1, 0, 1] {
            let text = format!(
                "<ir_version: {ir}, opset_import: [\"\" : 1]> g (float[2, 3] x{inputs}) => (y)
                <float[1] t = {{2}}, float[1] a = {{{axis}}}> {{ y = Tile (x, t, a) }}"
            );
            same(&text, 22, x()?, &["Tile"])?;
        }
    }
    let why =
        "(Tile-1): it repeats one axis, and Tile-6 all: its tiles and axis aren't constants, or its rank isn't known";
    // One that may be fed is none.
    let text = "<ir_version: 4, opset_import: [\"\" : 1]> g (float[2, 3] x, float[1] t) => (y) <float[1] t = {1}>
        { y = Tile (x, t, t) }";
    refused(text, 6, why)?;
    refused(
        &text.replace(", float[1] t)", ")").replace("{1}", "{2}"),
        6,
        "(Tile-1): its axis is 2, which it doesn't have",
    )
}

/// The types of a function's values are those of its callers.
#[test]
fn numbers_in_functions() -> Result<()> {
    for (node, operators) in [
        ("Clip <min = 0.0, max = 1.0>", &["CastLike", "CastLike", "Clip"][..]),
        ("Pad <pads = [1, 1], value = 2.0>", &["CastLike", "Pad"]),
    ] {
        for dtype in ["float", "double"] {
            let text = format!(
                "<ir_version: 8, opset_import: [\"\" : 10, \"my\" : 1]> g ({dtype}[3] x) => (y) {{ y = my.F (x) }}
                <domain: \"my\", opset_import: [\"\" : 10]> F (a) => (b) {{ b = {node} (a) }}"
            );
            if dtype == "float" {
                same(&text, 18, vec![-1f32, 0.5, 2.0], operators)?;
            } else {
                same(&text, 18, vec![-1f64, 0.1, 2.0], operators)?;
            }
        }
    }
    Ok(())
}

/// So are those of a body's values, at any depth.
#[test]
fn numbers_in_bodies() -> Result<()> {
    let branches = |clip: &str| {
        format!(
            "If (c) <then_branch: graph = t () => (b) {{ b = {clip} }}, else_branch: graph = e () => (d) {{ d = Neg (x) }}>"
        )
    };
    let clip = branches("Clip <min = 0.0, max = 1.0> (x)");
    for node in [clip.clone(), branches(&clip.replace("t ()", "t2 ()").replace("=> (b) { b", "=> (b2) { b2"))] {
        let text = format!(
            "<ir_version: 8, opset_import: [\"\" : 10]> g (double[3] x) => (y) <bool c = {{1}}> {{ y = {node} }}"
        );
        same(&text, 18, vec![-1f64, 0.1, 2.0], &["If"])?;
    }
    Ok(())
}
