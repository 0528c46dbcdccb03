//! Models of later opsets give the same outputs.

#![allow(clippy::indexing_slicing)]

mod common;

use anyhow::{Context, Result, ensure};
use common::archive::{in_parallel, unpack};
use onnxref::document::Document;
use onnxref::{Inputs, Kind, Model, Outputs, Value};
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
const REFUSED: [&str; 10] = [
    "2 Cast-23: what float4e2m1 can't hold becomes another number in Cast-24",
    "4 Cast-23: what int4 can't hold becomes another number in Cast-24",
    "4 Cast-23: what uint4 can't hold becomes another number in Cast-24",
    "5 DynamicSlice-1: it was an experimental operator, which ONNX dropped in release 1.5",
    "2 GroupNormalization-18: its scale and bias are those of groups, and GroupNormalization-21 has those of channels",
    "1 MeanVarianceNormalization-1: it was an experimental operator, which ONNX dropped in release 1.5",
    "2 OneHot-9: negative indices select nothing, and those of OneHot-11 count from the end",
    "3 Resize-10: its scales aren't constants, on which nearest_mode of Resize-11 depends",
    "1 Scan-8: its inputs have a batch, and those of Scan-9 have none",
    "12 ThresholdedRelu-1: it was an experimental operator, which ONNX dropped in release 1.5",
];

#[test]
fn older_cases_are_the_same_in_the_newest_opset() -> Result<()> {
    let (same, refused) = convert_all("onnx-older-node", 28)?;
    let refused: Vec<String> = refused.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    assert_eq!(refused, REFUSED);
    assert_eq!(same, 3597);
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
