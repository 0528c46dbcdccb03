//! The official test cases: every one runs; each outcome is compared with the line of a committed table.
//!
//! `UPDATE=1 cargo test --test conformance` rewrites the tables. It can't record a wrong answer: the table has no line for one.

#![allow(clippy::indexing_slicing)]

mod common;

#[path = "conformance/bodies.rs"]
mod bodies;
#[path = "conformance/differences.rs"]
mod differences;
#[path = "conformance/same_bits.rs"]
mod same_bits;

use anyhow::{Context, Result, ensure};
use common::archive::{self, in_parallel};
use common::{fix, int, model, one_node_graph, value};
use ndarray::{Array1, array, aview1};
use onnxref::conformance::{Case, Outcome};
use onnxref::{DType, Dim, Limits, Model, Tensor};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;

const DATA: &str = "onnx-test-data";
const TABLES: &str = "tests/conformance";

#[test]
fn node_cases_of_1_23_2() -> Result<()> {
    check("onnx-1.23.2-node.tar.xz", "node/", "1.23.2.txt", 1884)
}

#[test]
fn node_cases_of_older_releases() -> Result<()> {
    check("onnx-older-node.tar.xz", "onnx-older/", "older.txt", 3689)
}

#[test]
fn cases_of_other_kinds() -> Result<()> {
    check_others(false, "others.txt", 143)
}

/// Without optimisation these take minutes: then the runner of onnx has them, with optimised kernels (`python/check`).
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn large_networks() -> Result<()> {
    check_others(true, "large.txt", 6)
}

fn check_others(large: bool, table: &str, count: usize) -> Result<()> {
    const LARGE: [&str; 6] = ["densenet121", "inception_v1", "inception_v2", "resnet50", "vgg19", "zfnet512"];
    let is_large = |case: &Case| LARGE.iter().any(|name| case.name.ends_with(&format!("light/light_{name}")));
    let mut cases = unpack("onnx-1.22.0-others.tar.xz")?;
    cases.retain(|case| is_large(case) == large);
    check_cases(&cases, "onnx-1.22.0-others/", table, count)
}

/// Small exports of real networks, learned models, and decoders: with a branch for each kind of past, and with any past.
#[test]
fn networks() -> Result<()> {
    as_onnxruntime("small-networks", "networks.txt", 31)?;
    as_onnxruntime("learned-models", "learned.txt", 7)?;
    as_onnxruntime("merged-decoder", "merged.txt", 1)?;
    as_onnxruntime("decoders", "decoders.txt", 2)
}

/// The expected outputs are those of onnxruntime.
fn as_onnxruntime(archive: &str, table: &str, count: usize) -> Result<()> {
    let mut cases = unpack(&format!("{archive}.tar.xz"))?;
    for case in &mut cases {
        (case.tolerance.rtol, case.tolerance.atol) = (1e-3, 1e-5);
    }
    check_cases(&cases, &format!("{archive}/"), table, count)
}

#[test]
fn the_table_of_engines_names_older_cases() -> Result<()> {
    let engines = std::fs::read_to_string(format!("{DATA}/onnx-older-engines.tsv"))?;
    let table = std::fs::read_to_string(format!("{TABLES}/older.txt"))?;
    let known: HashSet<&str> = table.lines().filter_map(|line| line.split(' ').next()).collect();
    ensure!(engines.lines().count() == 1 + 695 && engines.starts_with("case\treference\tonnxruntime\n"));
    for line in engines.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        ensure!(columns.len() == 3 && known.contains(columns[0]), "{line}");
        ensure!(
            columns[1..].iter().all(|word| ["pass", "differs", "error", "not implemented"].contains(word)),
            "{line}"
        );
    }
    Ok(())
}

/// Runs the cases of an archive and compares the outcomes with the table. Names are without `folder`.
fn check(archive: &str, folder: &str, table: &str, count: usize) -> Result<()> {
    check_cases(&unpack(archive)?, folder, table, count)
}

fn check_cases(cases: &[Case], folder: &str, table: &str, count: usize) -> Result<()> {
    ensure!(cases.len() == count, "{} cases instead of {count}", cases.len());
    let (mut lines, mut wrong) = (String::new(), Vec::new());
    for line in in_parallel(cases, |case| line(case, folder)) {
        match line {
            Ok(line) => lines += &line,
            Err(error) => wrong.push(format!("{error:#}")),
        }
    }
    ensure!(wrong.is_empty(), "{} cases fail:\n{}", wrong.len(), wrong.join("\n"));
    check_table(&lines, table)
}

/// Compares a line of each case with those of a table.
fn check_table(lines: &str, table: &str) -> Result<()> {
    let table = format!("{TABLES}/{table}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&table, lines)?;
    }
    let want = std::fs::read_to_string(&table)?;
    for (got, want) in lines.lines().zip(want.lines()) {
        ensure!(got == want, "got \"{got}\", and {table} says \"{want}\"");
    }
    ensure!(lines.lines().count() == want.lines().count(), "{table} has another number of cases");
    Ok(())
}

/// The data has a rank that the model's declaration excludes.
const RANK: &str = "has shape [1] of rank 1, but the model expects rank 2";

/// 12 strings are declared, and 3 are there.
const COUNT: &str = "its string_data has 3 entries: string of shape [3, 4] takes 12";

/// The caches are wider than half of `rotary_embedding_dim`; corrected in 1.19.
const CACHE: &str = "\"cos_cache\" has shape ";

/// Made without the attributes of the node; corrected in 1.7.
const NEAREST: &str = "39 of 64 differ, by up to 5";

/// Modes 1 and 2 were the other way round, and the softcap came after the mask; corrected in 1.22.
const MODES: &str = "output \"qk_matmul_output\" is ";
const SOFTCAP: &str = "output \"Y\" is ";

/// An odd padding was divided the other way round; corrected later.
const HALVES: &str = "output \"Y\" is 1 at [0, 0, 0, 1], expected 0; 60 of 72 differ";

/// What the expected output needs is a Softmax that rounds each of its steps to float16: ours rounds once, and is nearer.
const STEPS: &str = "output \"Y\" is 0.46899414 at [0, 0, 1, 4], expected 0.46948242; 2 of 192 differ";

/// What windows see behind the padding counts as zeros; corrected in 1.18.
const OVERHANG: &str = "output \"y\" is 0.10582701 at [0, 0, 0, 0, 8], expected 0.084661596; 217 of 729 differ";

/// Expects the 0 of a transform in double; from 1.17 on the case has the errors of float32.
const DOUBLE: &str = "output \"y\" is 1.9073487e-7 at [0, 5, 0, 1], expected 1.4210855e-15; 10 of 200 differ";

/// The model lacks the `epsilon` that the data was made with; corrected in 1.22.
const EPSILON: &str = "output \"X1_new\" is 0.75595933 at [0], expected 0.75913626; 1 of 1 differ";

/// Cases with wrong data: it doesn't fit its model, a later release corrects it, or it is off by more than the tolerance.
const BROKEN: [(&str, &str); 30] = [
    ("test_attention_4d_causal_fp16_expanded", STEPS),
    ("1.16.2/node/test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True", OVERHANG),
    ("1.18.0/node/test_rotary_embedding_no_position_ids_rotary_dim", CACHE),
    ("1.18.0/node/test_rotary_embedding_with_interleaved_rotary_dim", CACHE),
    ("1.18.0/node/test_rotary_embedding_with_rotary_dim", CACHE),
    ("1.21.0/node/test_adam_multiple", EPSILON),
    ("1.21.0/node/test_attention_3d_with_past_and_present_qk_matmul_bias", MODES),
    ("1.21.0/node/test_attention_3d_with_past_and_present_qk_matmul_softcap", SOFTCAP),
    ("1.21.0/node/test_attention_4d_with_past_and_present_qk_matmul_bias", MODES),
    ("1.21.0/node/test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask", MODES),
    ("1.21.0/node/test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal", MODES),
    ("1.21.0/node/test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask", MODES),
    ("1.21.0/node/test_attention_4d_with_past_and_present_qk_matmul_bias_4d_mask_causal", MODES),
    ("1.21.0/node/test_attention_4d_with_qk_matmul_bias", MODES),
    ("1.21.0/node/test_attention_4d_with_qk_matmul_softcap", SOFTCAP),
    ("1.6.0/node/test_resize_upsample_sizes_nearest_ceil_half_pixel", NEAREST),
    ("1.6.0/node/test_resize_upsample_sizes_nearest_floor_align_corners", NEAREST),
    ("1.6.0/node/test_resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric", NEAREST),
    ("1.4.1/node/test_cast_FLOAT_to_STRING", COUNT),
    ("1.4.1/node/test_cast_STRING_to_FLOAT", COUNT),
    ("1.9.0/node/test_convtranspose_autopad_same", HALVES),
    ("1.13.1/node/test_castlike_BFLOAT16_to_FLOAT", RANK),
    ("1.13.1/node/test_castlike_BFLOAT16_to_FLOAT_expanded", RANK),
    ("1.13.1/node/test_castlike_FLOAT_to_BFLOAT16", RANK),
    ("1.13.1/node/test_castlike_FLOAT_to_BFLOAT16_expanded", RANK),
    ("1.14.1/node/test_castlike_BFLOAT16_to_FLOAT", RANK),
    ("1.14.1/node/test_castlike_BFLOAT16_to_FLOAT_expanded", RANK),
    ("1.14.1/node/test_castlike_FLOAT_to_BFLOAT16", RANK),
    ("1.14.1/node/test_castlike_FLOAT_to_BFLOAT16_expanded", RANK),
    ("1.14.1/node/test_dft_inverse", DOUBLE),
];

fn line(case: &Case, folder: &str) -> Result<String> {
    let name = case.name.strip_prefix(folder).with_context(|| format!("{} is not in {folder}", case.name))?;
    if let Some((_, text)) = BROKEN.iter().find(|(broken, _)| *broken == name) {
        let outcome = run(case);
        ensure!(matches!(&outcome, Outcome::Failed(why) if why.to_string().contains(text)), "{name}: {outcome:?}");
        return Ok(format!("{name} broken {text}\n"));
    }
    if name.rsplit('/').next().is_some_and(|name| name.starts_with("test_bernoulli")) {
        // Type and shape are right: only the numbers differ, which nobody can expect.
        let outcome = run(case);
        let drawn = matches!(&outcome, Outcome::Failed(why) if why.to_string().contains("output \"y\" is "));
        ensure!(drawn || matches!(outcome, Outcome::Passed { .. }), "{name}: {outcome:?}");
        return Ok(format!("{name} drawn\n"));
    }
    let outcome = outcome(case).with_context(|| name.to_string())?;
    Ok(format!("{name} {outcome}\n"))
}

/// With limits for strangers' models: they suit all official cases and the small networks.
fn run(case: &Case) -> Outcome {
    case.run_with(&Model::options().limits(Limits::untrusted()))
}

/// What the table says of a case behind its name. A wrong answer is an error.
fn outcome(case: &Case) -> Result<String> {
    Ok(match run(case) {
        Outcome::Passed { exact: true, .. } => "passed".to_string(),
        Outcome::Passed { exact: false, .. } => "passed within tolerance".to_string(),
        Outcome::Unsupported(error) => {
            let operators = error.causes().iter().filter_map(|cause| cause.place().operator.as_deref());
            let operators = operators.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
            ensure!(!operators.is_empty(), "unsupported because of no operator: {error}");
            format!("unsupported {}", operators.join(" "))
        }
        Outcome::Refused(error) => format!("refused {}", error.to_string().lines().next().unwrap_or("")),
        Outcome::Failed(why) => anyhow::bail!("{why}"),
        other => anyhow::bail!("{other:?}"),
    })
}

fn unpack(archive: &str) -> Result<Vec<Case>> {
    let files = archive::unpack(format!("{DATA}/{archive}"), |_| true)?;
    Ok(Case::from_files(files.into_iter().map(|(path, bytes)| (path, bytes.into()))))
}

#[test]
fn every_gather_case_of_every_release_passes() -> Result<()> {
    let cases = Case::find(format!("{DATA}/gather"))?;
    ensure!(cases.len() == 28, "{} cases instead of 28", cases.len());
    for case in cases {
        ensure!(matches!(run(&case), Outcome::Passed { exact: true, .. }), "{}: {:?}", case.name, run(&case));
    }
    Ok(())
}

#[test]
fn the_gather_cases_are_the_official_files() -> Result<()> {
    let root = Path::new(DATA).join("gather");
    let manifest: Value = serde_json::from_slice(&std::fs::read(root.join("manifest.json"))?)?;
    let cases = manifest["cases"].as_array().context("no cases")?;
    ensure!(cases.len() == 28, "{} cases instead of 28", cases.len());
    let mut files = 0;
    for case in cases {
        let folder = root.join(case["path"].as_str().context("no path")?);
        for (file, hash) in case["sha256"].as_object().context("no hashes")? {
            let digest = Sha256::digest(std::fs::read(folder.join(file))?);
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            ensure!(Some(digest.as_str()) == hash.as_str(), "{} is not the official file", folder.join(file).display());
            files += 1;
        }
    }
    ensure!(files >= 28 * 3, "{files} files");
    Ok(())
}

/// A model that takes the entries 3 and 0 along the last axis of float data.
fn gather_model(dims: &[Dim]) -> Vec<u8> {
    let data = Tensor::from_array(Array1::<f32>::zeros(0));
    let indices = Tensor::from_array(array![3i64, 0]);
    let inputs = [("data", &data), ("indices", &indices)];
    let mut graph = one_node_graph("Gather", vec![int("axis", -1)], &inputs, DType::Float);
    graph.input[0] = value("data", DType::Float, Some(dims));
    fix(&mut graph, "indices", &indices);
    model(13, 8, graph)
}

fn floats(values: &[f32]) -> Vec<u8> {
    Tensor::from_array(aview1(values)).to_proto_bytes("")
}

fn case<const N: usize>(files: [(&str, Vec<u8>); N]) -> Result<Case> {
    Case::from_files(files.map(|(name, bytes)| (name.to_string(), bytes.into()))).pop().context("no case")
}

#[test]
fn all_data_sets_count() -> Result<()> {
    let run = |first: &[f32], second: &[f32]| {
        let case = case([
            ("model.onnx", gather_model(&[Dim::Unknown])),
            ("test_data_set_0/input_0.pb", floats(&[1.0, 2.0, 3.0, 4.0])),
            ("test_data_set_0/output_0.pb", floats(first)),
            ("test_data_set_1/input_0.pb", floats(&[5.0, 6.0, 7.0, 8.0])),
            ("test_data_set_1/output_0.pb", floats(second)),
        ])?;
        outcome(&case)
    };
    ensure!(run(&[4.0, 1.0], &[8.0, 5.0])? == "passed");
    ensure!(run(&[4.001, 1.0], &[8.0, 5.0])? == "passed within tolerance");
    ensure!(run(&[4.0, 1.0], &[8.0, 5.001])? == "passed within tolerance");
    let error = run(&[4.0, 1.0], &[8.0, 6.0]).err().context("no error")?.to_string();
    let why = "test_data_set_1: output \"output\" is 5 at [1], expected 6; 1 of 2 differ, by up to 1";
    ensure!(error == why, "{error}");
    Ok(())
}

#[test]
fn a_case_has_its_own_tolerance() -> Result<()> {
    let mut case = case([
        ("model.onnx", gather_model(&[Dim::Unknown])),
        ("test_data_set_0/input_0.pb", floats(&[1.0, 2.0, 3.0, 4.0])),
        ("test_data_set_0/output_0.pb", floats(&[4.003, 1.0])),
    ])?;
    ensure!(outcome(&case)? == "passed within tolerance");
    case.tolerance.rtol = 1e-4;
    ensure!(matches!(run(&case), Outcome::Failed(_)));
    Ok(())
}

#[test]
fn light_models_get_their_inputs() -> Result<()> {
    let files = |output: Tensor| {
        [("m.onnx", gather_model(&[Dim::Fixed(2), Dim::Fixed(4)])), ("m_output_0.pb", output.to_proto_bytes(""))]
    };
    let right = case(files(array![[3.0f32 / 8.0, 0.0], [7.0 / 8.0, 4.0 / 8.0]].into()))?;
    ensure!((right.name.as_str(), outcome(&right)?.as_str()) == ("m", "passed"), "{:?}", run(&right));
    let wrong = case(files(array![[3.0f32 / 8.0, 0.0], [7.0 / 8.0, 5.0 / 8.0]].into()))?;
    ensure!(matches!(run(&wrong), Outcome::Failed(_)));
    Ok(())
}

#[test]
fn models_are_refused_for_their_nodes_alone() -> Result<()> {
    let x = Tensor::from_array(array![1f32]);
    let early = model(9, 4, one_node_graph("GatherElements", vec![], &[("x", &x)], DType::Float));
    let line = outcome(&case([("model.onnx", early.clone())])?)?;
    ensure!(line.starts_with("refused node \"node\" (GatherElements): "), "{line}");
    let cut = early[..early.len() - 1].to_vec();
    ensure!(matches!(run(&case([("model.onnx", cut)])?), Outcome::Failed(_)));
    Ok(())
}
