//! Faults: each model that onnx's checker refuses has a finding.

use crate::common::archive::{in_parallel, unpack};
use crate::{FOLDER, File, files, table};
use anyhow::{Context, Result, ensure};
use onnxref::{Error, Kind, Model};
use std::collections::{BTreeMap, HashMap};

/// What onnx's checker says of the models that it refuses, by archive and model.
fn refused() -> Result<HashMap<(String, String), String>> {
    let text = std::fs::read_to_string(format!("{FOLDER}/refused.tsv"))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| {
        let mut columns = line.splitn(3, '\t').map(str::to_string);
        let mut next = || columns.next().context("too few columns");
        Ok(((next()?, next()?), next()?))
    });
    lines.collect()
}

/// What departs from the standard, as `onnxref check` counts it: the first line of the first finding.
fn finding(file: &File) -> Result<Option<String>> {
    let line = |error: &Error| error.to_string().lines().next().unwrap_or("").replace('\t', " ");
    let found = match Model::options().inspect_bytes(file.bytes.clone()) {
        Ok(found) => found,
        Err(error) if error.kind() == Kind::Model => return Ok(Some(line(&error))),
        Err(error) => return Err(error).with_context(|| format!("{} {}", file.archive, file.path)),
    };
    let causes = found.error.as_ref().map(Error::causes).unwrap_or_default();
    let faults = causes.iter().filter(|cause| cause.kind() == Kind::Model);
    Ok(faults.chain(&found.mismatches).next().map(line))
}

fn findings(files: &[File]) -> Result<Vec<Option<String>>> {
    in_parallel(files, finding).into_iter().collect()
}

#[test]
fn official_models() -> Result<()> {
    let (files, refused) = (files()?, refused()?);
    let (mut missed, mut more) = (Vec::new(), Vec::new());
    for (file, finding) in files.iter().zip(findings(files)?) {
        let onnx = refused.get(&(file.archive.to_string(), file.path.clone()));
        let columns = |text: String| vec![file.archive.to_string(), file.path.clone(), text];
        match (finding, onnx) {
            (None, Some(words)) => missed.push(columns(words.clone())),
            (Some(finding), None) => more.push(columns(finding)),
            _ => {}
        }
    }
    let official = refused.keys().filter(|(archive, _)| archive != "faulty").count();
    println!("onnx refuses {official} official models: we find {}, and {} others", official - missed.len(), more.len());
    table::compare_reasoned("missed_official.tsv", "archive\tmodel\tonnx's words", 2, &missed)?;
    table::compare_reasoned("more.tsv", "archive\tmodel\tour finding", 2, &more)
}

/// The models of `faulty.txt`: each has a finding, also if onnx accepts it, and none has one without its fault.
#[test]
fn small_models_with_one_fault_each() -> Result<()> {
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for (path, bytes) in unpack(format!("{FOLDER}/faulty.tar.xz"), |_| true)? {
        let (folder, name) = path.split_once('/').context("no folder")?;
        let path = name.trim_end_matches(".onnx").to_string();
        let list = if folder == "right" { &mut right } else { &mut wrong };
        list.push(File { archive: "faulty", path, bytes });
    }
    ensure!(right.len() == wrong.len() && right.len() > 480, "{} and {} models", right.len(), wrong.len());
    let (refused, mut missed, mut alarms) = (refused()?, Vec::new(), Vec::new());
    let mut families: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    for (file, finding) in wrong.iter().zip(findings(&wrong)?) {
        let words = refused.get(&("faulty".to_string(), file.path.clone()));
        let family = families.entry(file.path.split('/').next().unwrap_or("").to_string()).or_default();
        family[0] += 1;
        family[1] += usize::from(words.is_some());
        family[2] += usize::from(finding.is_some());
        if finding.is_none() {
            missed.push(vec![file.path.clone(), words.cloned().unwrap_or("accepts it".to_string())]);
        }
    }
    for (file, finding) in right.iter().zip(findings(&right)?) {
        alarms.extend(finding.map(|finding| format!("{}: {finding}", file.path)));
    }
    println!("{:12} {:>8} {:>8} {:>8}", "", "models", "onnx", "ours");
    for (family, [models, onnx, ours]) in families {
        println!("{family:12} {models:8} {onnx:8} {ours:8}");
    }
    ensure!(alarms.is_empty(), "findings in models without a fault:\n{}", alarms.join("\n"));
    table::compare("missed.tsv", "model\tonnx's words", 1, &missed)
}
