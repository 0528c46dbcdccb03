//! `onnxref generate`: cases from the table of the standard.

use crate::common::{Ran, data, onnxref};
use onnxref::{Inputs, Model, Tensor, schema};
use onnxref_view::type_name;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use tempfile::TempDir;

fn generate(to: &Path, more: &[&str]) -> Ran {
    onnxref([&["generate", "-o", to.to_str().unwrap()], more].concat())
}

fn cases(folder: &Path) -> Vec<Value> {
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    manifest["cases"].as_array().unwrap().clone()
}

/// The names of the cases that don't have to be refused.
fn names(folder: &Path) -> Vec<String> {
    let name = |case: &Value| case["name"].as_str().unwrap().to_string();
    cases(folder).iter().map(name).filter(|name| !name.starts_with("negative/")).collect()
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let add = ["--operator", "Add", "--opset", "28"];
    let first = generate(&at("a"), &add);
    assert_eq!((first.code, first.err.as_str()), (Some(0), "note: 24 cases, 94 files\n"));
    let types = ["bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8"];
    let types = types.into_iter().chain(["uint16", "uint32", "uint64", "uint8"]).map(|name| format!("Add-14/T-{name}"));
    let features =
        ["constant-inputs", "edge-values", "empty", "open-shapes", "scalar"].map(|name| format!("Add-14/{name}"));
    assert_eq!(names(&at("a")), types.chain(features).collect::<Vec<_>>());
    // Together with others, an operator has the same cases.
    let both =
        generate(&at("b"), &["--operator", "Add", "--operator", "ai.onnx.ml.Scaler", "--opset", "28", "--seed", "1"]);
    assert_eq!(both.code, Some(0));
    let add: Vec<Value> =
        cases(&at("b")).into_iter().filter(|case| case["name"].as_str().unwrap().contains("Add-14")).collect();
    assert_eq!(add, cases(&at("a")));
    let other = generate(&at("c"), &["--operator", "Add", "--opset", "28", "--seed", "2", "-q"]);
    assert_ne!(other.out, first.out);
    assert_eq!(names(&at("c")), names(&at("a")));
    // All pass.
    let ran = onnxref(["test", at("b").to_str().unwrap()]);
    assert_eq!(ran.code, Some(0));
    let count = cases(&at("b")).len();
    let last = ran.last();
    assert!(last.starts_with(&format!("{count} passed (")) && last.ends_with("), 0 failed, 0 unsupported"), "{last}");
}

#[test]
fn every_version_has_cases() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("gather");
    let ran = generate(&to, &["--operator", "Gather", "--per-version", "3"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let versions = [1, 11, 13]
        .map(|version| ["T-float32", "constant-inputs", "open-shapes"].map(|goal| format!("Gather-{version}/{goal}")));
    let mut expected = versions.concat();
    expected.sort();
    assert_eq!(names(&to), expected);
}

/// Operators with subgraphs, whose cases are written as text: what the text of the standard says they give.
#[test]
fn subgraphs_have_telling_cases() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("bodies");
    let operators = ["If", "Loop", "Scan", "SequenceMap"].map(|name| ["--operator", name]).concat();
    let ran = generate(&to, &[&operators[..], &["--opset", "28"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let names = names(&to);
    let of = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
    assert_eq!([of("If-25/"), of("Loop-25/"), of("Scan-25/"), of("SequenceMap-17/")], [101, 110, 38, 49]);
    let output = |case: &str, k: usize| {
        let bytes = fs::read(to.join(format!("{case}/test_data_set_0/output_{k}.pb"))).unwrap();
        let tensor = Tensor::from_proto_bytes(bytes).unwrap();
        (tensor.shape().to_vec(), tensor.into_elements::<f32>().unwrap())
    };
    let gives = |case: &str, k, shape: &[usize], elements: &[f32]| {
        assert_eq!(output(case, k), (shape.to_vec(), elements.to_vec()), "{case}");
    };
    gives("If-25/nested", 0, &[2], &[9.0, 38.0]);
    gives("If-25/shapes-differ", 0, &[1, 6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    gives("Loop-25/for-ignores-condition", 0, &[2], &[8.0, 16.0]);
    gives("Loop-25/break", 1, &[3], &[2.0, 4.0, 8.0]);
    gives("Loop-25/no-trips", 1, &[0, 2], &[]);
    gives("Loop-25/with-if", 0, &[2], &[2.0, 6.0]);
    gives("Scan-25/axes", 1, &[2, 3], &[1.0, 3.0, 6.0, 14.0, 19.0, 25.0]);
    gives("Scan-25/both-directions", 1, &[3], &[154.0, 147.0, 129.0]);
    // The operators of the body are listed too, and outputs are exact.
    let all = cases(&to);
    let nested = all.iter().find(|case| case["name"] == "If-25/nested").unwrap();
    let operators: Vec<&str> =
        nested["operators"].as_array().unwrap().iter().map(|operator| operator["name"].as_str().unwrap()).collect();
    assert_eq!((operators, nested["ulp"].as_f64()), (vec!["Identity", "If", "Mul", "Sub"], Some(0.0)));
    assert_eq!(onnxref(["test", to.to_str().unwrap()]).code, Some(0));
}

#[test]
fn every_version_that_runs_has_a_case() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("old");
    // Those of which luck finds none, and those of releases before 1.5.
    let written = ["TfIdfVectorizer", "Tile", "ai.onnx.ml.TreeEnsemble", "Scan", "ai.onnx.preview.FlexAttention"];
    let operators = written.into_iter().chain(onnxref::schema::experimental_operators());
    let flags: Vec<&str> = operators.flat_map(|name| ["--operator", name]).collect();
    let ran = generate(&to, &[&flags[..], &["--per-version", "1", "-q"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let names = names(&to);
    let labels: Vec<&str> = names.iter().map(|name| name.split('/').next().unwrap()).collect();
    for label in
        ["Affine-1", "MeanVarianceNormalization-1", "MeanVarianceNormalization-13", "Tile-1", "Scan-8", "Scan-25"]
    {
        assert!(labels.contains(&label), "{labels:?}");
    }
    assert_eq!(labels.len(), 28, "{labels:?}");
}

#[test]
fn bounds_follow_from_the_operator() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("all");
    let operators = ["Exp", "Mul", "Transpose", "MatMul"].map(|name| ["--operator", name]).concat();
    let ran = generate(&to, &[&operators[..], &["--opset", "28"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let bounds: Vec<(String, Value)> =
        cases(&to).iter().map(|case| (case["name"].as_str().unwrap().to_string(), case["ulp"].clone())).collect();
    let of = |name: &str| bounds.iter().find(|(case, _)| case == name).map(|(_, ulp)| ulp.as_f64()).unwrap();
    assert_eq!(
        (of("Exp-13/T-float32"), of("Exp-13/T-float64"), of("Exp-13/T-bfloat16")),
        (Some(1.0), Some(2.0), Some(0.51))
    );
    assert_eq!((of("Mul-14/T-float16"), of("Mul-14/T-int8")), (Some(0.5), Some(0.0)));
    assert_eq!((of("Transpose-25/T-float64"), of("MatMul-13/T-float32")), (Some(0.0), None));
}

/// An engine that adds in another order is within the bounds of sums, and one that is wrong isn't.
#[test]
fn sums_have_bounds_for_any_order() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("sums");
    let operators = ["MatMul", "Conv", "ReduceMean", "Einsum", "Gemm"].map(|name| ["--operator", name]).concat();
    let ran = generate(&to, &[&operators[..], &["--opset", "28"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = cases(&to);
    let bounds = |name: &str| -> Vec<Option<f64>> {
        let case = all.iter().find(|case| case["name"] == name).unwrap();
        case["absolute"].as_array().unwrap().iter().map(Value::as_f64).collect()
    };
    let read = |name: &str, file: &str| {
        Tensor::from_proto_bytes(fs::read(to.join(format!("{name}/test_data_set_0/{file}.pb"))).unwrap()).unwrap()
    };
    // Floats have bounds, integers are exact.
    for case in all.iter().filter(|case| case.get("refusal").is_none()) {
        let name = case["name"].as_str().unwrap();
        let float = read(name, "output_0").dtype().name();
        let float = float.contains("float") || float == "double";
        let mean = name.starts_with("ReduceMean");
        assert_eq!(case.get("absolute").is_some(), float, "{name}");
        assert!(float || mean || case["ulp"].as_f64() == Some(0.0), "{name}");
    }
    let name = "MatMul-13/T-float32";
    let (a, b, y) = (read(name, "input_0"), read(name, "input_1"), read(name, "output_0"));
    let (inner, width) = (*a.shape().last().unwrap(), b.shape()[1]);
    assert!(inner > 1 && b.shape()[0] == inner);
    let list = |tensor: &Tensor| tensor.as_slice::<f32>().unwrap().to_vec();
    let (a, b, y, bounds) = (list(&a), list(&b), list(&y), bounds(name));
    let sum = |at: usize, terms: &mut dyn Iterator<Item = usize>| {
        terms.fold(0f32, |sum, k| sum + a[at / width * inner + k] * b[k * width + at % width])
    };
    assert_eq!(bounds.len(), y.len());
    for (at, (expected, bound)) in y.iter().zip(bounds).enumerate() {
        let off = |other: f32| f64::from((other - expected).abs());
        let bound = bound.unwrap();
        assert!(off(sum(at, &mut (0..inner).rev())) <= bound, "{at}");
        assert!(off(sum(at, &mut (1..inner))) > bound, "{at}: a term is missing");
        assert!(off(expected * (1.0 + 1e-4)) > bound && bound < 1e-4, "{at}: {bound}");
    }
}

/// An engine that rounds each step of a formula to float32 is within the bounds, and one that skips a step isn't.
#[test]
fn formulas_have_bounds_step_by_step() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("steps");
    let operators = ["Softmax", "LayerNormalization", "CumProd"].map(|name| ["--operator", name]).concat();
    let ran = generate(&to, &[&operators[..], &["--opset", "28"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = cases(&to);
    let bounds = |name: &str| -> Vec<f64> {
        let case = all.iter().find(|case| case["name"] == name).unwrap();
        case["absolute"].as_array().unwrap().iter().map(|bound| bound.as_f64().unwrap()).collect()
    };
    let read = |name: &str, file: &str| {
        let path = to.join(format!("{name}/test_data_set_0/{file}.pb"));
        let tensor = Tensor::from_proto_bytes(fs::read(path).unwrap()).unwrap();
        (tensor.shape().to_vec(), tensor.as_slice::<f32>().unwrap().to_vec())
    };
    let within = |other: &[f32], expected: &[f32], bounds: &[f64]| {
        assert!(other.len() == expected.len() && bounds.len() == expected.len());
        other.iter().zip(expected).zip(bounds).all(|((a, b), bound)| f64::from((a - b).abs()) <= *bound)
    };
    // Along the last axis.
    let name = "Softmax-13/T-float32";
    let ((shape, x), (_, y), limits) = (read(name, "input_0"), read(name, "output_0"), bounds(name));
    let width = *shape.last().unwrap();
    let softmax = |scale: f32| -> Vec<f32> {
        let lane = |lane: &[f32]| {
            let most = lane.iter().copied().fold(f32::MIN, f32::max);
            let powers: Vec<f32> = lane.iter().map(|x| ((x - most) * scale).exp()).collect();
            let sum = powers.iter().rev().sum::<f32>();
            powers.into_iter().map(move |power| power / sum).collect::<Vec<_>>()
        };
        x.chunks(width).flat_map(lane).collect()
    };
    assert!(width > 1 && within(&softmax(1.0), &y, &limits));
    assert!(!within(&softmax(1.0 + 1e-4), &y, &limits) && limits.iter().all(|bound| *bound < 1e-5), "{limits:?}");
    let name = "LayerNormalization-17/only-required";
    let ((shape, x), (_, scale), (_, y)) = (read(name, "input_0"), read(name, "input_1"), read(name, "output_0"));
    let width = *shape.last().unwrap();
    let normalized = |epsilon: f32| -> Vec<f32> {
        let lane = |lane: &[f32]| {
            let mean = lane.iter().rev().sum::<f32>() / width as f32;
            let variance = lane.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / width as f32;
            let deviation = (variance + epsilon).sqrt();
            lane.iter().zip(&scale).map(|(x, scale)| (x - mean) / deviation * scale).collect::<Vec<_>>()
        };
        x.chunks(width).flat_map(lane).collect()
    };
    let limits = bounds(name);
    assert!(width > 1 && within(&normalized(1e-5), &y, &limits[..y.len()]));
    assert!(!within(&normalized(1e-3), &y, &limits[..y.len()]), "{limits:?}");
    // Each rounding of a product counts.
    let products = bounds("CumProd-26/T-float32");
    assert!(products.iter().all(|bound| *bound < 1e-4) && products.iter().any(|bound| *bound > 0.0), "{products:?}");
}

/// The operators that round and of which a case has no bound, and how many of these cases there are. None may come newly.
#[test]
fn few_floats_are_without_a_bound() {
    let files = frozen();
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    let mut without = BTreeMap::new();
    let mut floats = 0;
    for case in manifest["cases"].as_array().unwrap().iter().filter(|case| case.get("refusal").is_none()) {
        let name = case["name"].as_str().unwrap();
        let read = |k: usize| {
            let bytes = files.get(&format!("{name}/test_data_set_0/output_{k}.pb"))?.clone();
            Tensor::from_proto_bytes(bytes).ok()
        };
        let is_float = |tensor: Tensor| tensor.dtype().name().contains("float");
        if !(0..).map_while(read).any(is_float) {
            continue;
        }
        floats += 1;
        if case["ulp"].is_null() && case.get("absolute").is_none() {
            *without.entry(name.split('-').next().unwrap().to_string()).or_insert(0) += 1;
        }
    }
    let list: Vec<String> = without.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let known = "\
        AffineGrid 10, Attention 25, BlackmanWindow 3, CausalConvWithState 9, DFT 12, DeformConv 7, DequantizeLinear \
        2, Det 5, DynamicQuantizeLinear 7, GRU 9, GlobalLpPool 1, GridSample 8, GroupNormalization 1, HammingWindow \
        3, HannWindow 1, LRN 6, LSTM 9, LinearAttention 10, LpPool 7, MaxRoiPool 9, MelWeightMatrix 14, \
        NegativeLogLikelihoodLoss 10, Pow 19, QLinearMatMul 13, QuantizeLinear 10, RNN 9, Range 9, Resize 10, \
        RoiAlign 9, RotaryEmbedding 9, STFT 11, ScatterElements 1, ScatterND 1, Shrink 6, SoftmaxCrossEntropyLoss \
        11, ai.onnx.ml.LinearClassifier 10, ai.onnx.ml.LinearRegressor 5, ai.onnx.ml.Normalizer 10, \
        ai.onnx.ml.SVMClassifier 9, ai.onnx.ml.SVMRegressor 9, ai.onnx.ml.Scaler 1, ai.onnx.ml.TreeEnsemble 2, \
        ai.onnx.preview.FlexAttention 1, ai.onnx.preview.training.Adam 13";
    assert_eq!((floats, list.join(", ").as_str()), (1684, known));
}

#[test]
fn wrong_usage() {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("x");
    let wrong = |more: &[&str], text: &str| {
        let ran = generate(&to, more);
        assert_eq!((ran.code, ran.err), (Some(2), format!("error: {text}\n")));
        assert!(!to.exists());
    };
    wrong(&["--opset", "29"], "--opset 29: the newest opset is 28");
    wrong(&["--operator", "Nonsense"], "--operator \"Nonsense\": it is not an operator of the standard");
    let near = "did you mean \"Gather\", \"GatherND\", \"GatherElements\"?";
    wrong(&["--operator", "Gathr"], &format!("--operator \"Gathr\": it is not an operator of the standard: {near}"));
    let none = generate(&to, &["--per-version", "0"]);
    assert_eq!(none.code, Some(2));
    assert!(none.err.starts_with("error: invalid value '0' for '--per-version <N>': number would be zero"), "{none:?}");
    let ran = generate(&to, &["--operator", "Bernoulli"]);
    assert_eq!((ran.code, ran.err.as_str(), to.exists()), (Some(5), "error: there are no cases\n", false));
}

/// Each type of each input has a case. Its name says so, and the case isn't made otherwise.
#[test]
fn every_type_has_a_case() {
    let manifest: Value = serde_json::from_slice(&frozen()["manifest.json"]).unwrap();
    let names: BTreeSet<&str> =
        manifest["cases"].as_array().unwrap().iter().map(|case| case["name"].as_str().unwrap()).collect();
    let tidy = |text: String| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    let (mut missing, mut count) = (Vec::new(), 0);
    for (domain, name) in schema::operators().filter(|(domain, _)| *domain != "org.openvinotoolkit") {
        let Ok(schema) = schema::resolve(domain, name, schema::newest(domain).unwrap()) else { continue };
        let label = if domain.is_empty() { name.to_string() } else { format!("{domain}.{name}") };
        let label = format!("{label}-{}", schema.since_version);
        if !names.iter().any(|case| case.starts_with(&format!("{label}/"))) {
            missing.push(label);
            continue;
        }
        for parameter in &schema.inputs {
            let key = parameter.variable.as_ref().unwrap_or(&parameter.name);
            let of = |value_type| format!("{label}/{}", tidy(format!("{key}-{}", type_name(&value_type))));
            let (found, none): (Vec<String>, Vec<String>) =
                parameter.types.iter().map(of).partition(|case| names.contains(case.as_str()));
            count += found.len();
            match found.is_empty() {
                true => missing.push(format!("{label}/{key}")),
                false => missing.extend(none),
            }
        }
    }
    missing.sort();
    missing.dedup();
    // What is random or can't run, parameters of cases as text, and strings that would be added up.
    let known = "Bernoulli-22 Col2Im-18/T-string If-25/B Loop-25/B Loop-25/I Multinomial-22 RandomNormal-22 \
        RandomNormalLike-22 RandomUniform-22 RandomUniformLike-22 ai.onnx.preview.training.Gradient-1";
    assert_eq!((missing.join(" ").as_str(), count), (known, 3019));
}

/// The frozen cases: the files of the archive by their paths below its folder.
fn frozen() -> BTreeMap<String, Vec<u8>> {
    let file = fs::File::open(data("generated-opset28.tar.xz")).unwrap();
    let mut tar = tar::Archive::new(lzma_rust2::XzReader::new(std::io::BufReader::new(file), false));
    let files = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().strip_prefix("generated-opset28/").unwrap().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (path, bytes)
    });
    files.collect()
}

/// The hash of the frozen cases: those of opset 28 and seed 1, on every machine.
const FROZEN: &str = "c333fafcaeab3e7387d4175ee89202c55a5cad6e201dba34b401efb7e53577c6";

fn hash_of(cases: &[Value]) -> String {
    let mut lines = Vec::new();
    for case in cases {
        for (path, hash) in case["files"].as_object().unwrap() {
            lines.push((format!("{}/{path}", case["name"].as_str().unwrap()), hash.as_str().unwrap()));
        }
    }
    lines.sort();
    let lines: String = lines.iter().map(|(path, hash)| format!("{hash}  {path}\n")).collect();
    Sha256::digest(lines).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is generated today is what was frozen, file by file: here of every eighth operator.
#[test]
fn frozen_cases_are_generated_again() {
    let files = frozen();
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    let all = manifest["cases"].as_array().unwrap().clone();
    assert_eq!((manifest["sha256"].as_str(), hash_of(&all).as_str(), all.len()), (Some(FROZEN), FROZEN, 5468));
    for case in &all {
        for (path, hash) in case["files"].as_object().unwrap() {
            let bytes = &files[&format!("{}/{path}", case["name"].as_str().unwrap())];
            let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, &digits);
        }
    }
    // `Add` of `Add-14/empty` and of `negative/Add-14/too-few-inputs`.
    let label = |case: &Value| {
        let name = case["name"].as_str().unwrap();
        let (operator, _) = name.trim_start_matches("negative/").split_once('/')?.0.rsplit_once('-')?;
        Some(operator.to_string())
    };
    let operators: BTreeSet<String> = all.iter().filter_map(label).collect();
    assert!(operators.len() > 200, "{}", operators.len());
    let chosen: Vec<_> = operators.into_iter().step_by(8).collect();
    let flags: Vec<String> = chosen.iter().cloned().flat_map(|key| ["--operator".to_string(), key]).collect();
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("some");
    let ran = onnxref(
        ["generate", "--opset", "28", "-q", "-o", to.to_str().unwrap()].map(str::to_string).into_iter().chain(flags),
    );
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let wanted: Vec<Value> =
        all.into_iter().filter(|case| label(case).is_some_and(|label| chosen.contains(&label))).collect();
    assert_eq!(cases(&to), wanted);
    assert_eq!(ran.out, hash_of(&wanted) + "\n");
}

#[test]
#[ignore = "takes a minute without optimisation"]
fn all_frozen_cases_are_generated_again() {
    let folder = TempDir::new().unwrap();
    let ran = generate(&folder.path().join("all"), &["--opset", "28", "--seed", "1", "-q"]);
    assert_eq!((ran.code, ran.out), (Some(0), format!("{FROZEN}\n")));
}

/// Each case that must be refused is refused by the error that its file has, and by no other.
#[test]
fn negatives_are_refused_by_their_rule() {
    let files = frozen();
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    let mut rules = BTreeMap::new();
    for case in manifest["cases"].as_array().unwrap() {
        let Some(refusal) = case.get("refusal") else { continue };
        let text = |name: &str| refusal[name].as_str().unwrap();
        let name = case["name"].as_str().unwrap();
        let file = |path: &str| files.get(&format!("{name}/{path}")).cloned();
        let said: Value = serde_json::from_slice(&file("test_data_set_0/expected_error.json").unwrap()).unwrap();
        assert_eq!(&said, refusal);
        let (stage, error) = match Model::from_bytes(file("model.onnx").unwrap()) {
            Err(error) => ("load", error),
            Ok(model) => {
                let mut inputs = Inputs::new();
                for (k, info) in model.inputs().enumerate() {
                    let Some(bytes) = file(&format!("test_data_set_0/input_{k}.pb")) else { continue };
                    let value = match info.value_type.as_ref().filter(|of| of.dtype().is_none()) {
                        Some(declared) => onnxref::Value::from_proto_bytes(bytes, declared).unwrap(),
                        None => Tensor::from_proto_bytes(bytes).unwrap().into(),
                    };
                    inputs = inputs.with(&info.name, value);
                }
                ("run", model.run(inputs).unwrap_err())
            }
        };
        let first = format!("{error:#}").lines().next().unwrap().to_string();
        let kind = error.kind().to_string();
        assert_eq!((stage, kind.as_str(), first.as_str()), (text("stage"), text("kind"), text("text")), "{name}");
        *rules.entry(text("rule").to_string()).or_insert(0) += 1;
    }
    // Every rule has a case; those of operators have many.
    let of_models: Vec<&str> = rules.iter().filter(|(_, count)| **count == 1).map(|(rule, _)| rule.as_str()).collect();
    assert_eq!((rules.len(), of_models.len()), (40, 26));
    assert!(
        rules["too-few-inputs"] > 200 && rules["type-not-allowed"] > 160 && rules["axis-too-large"] > 18,
        "{rules:?}"
    );
}
