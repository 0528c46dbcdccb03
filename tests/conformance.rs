//! The official test cases: every one runs; each outcome is compared with the committed table.
//!
//! `UPDATE=1 cargo test --test conformance` writes the table anew. It can't excuse a wrong answer: there is no line
//! for one.

#![allow(clippy::indexing_slicing)]

use anyhow::{Context, Result, ensure};
use onnxref::conformance::{Case, Outcome};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

const DATA: &str = "onnx-test-data";
const TABLE: &str = "tests/conformance.txt";

#[test]
fn every_gather_case_of_every_release_passes() -> Result<()> {
    let cases = Case::find(format!("{DATA}/gather"))?;
    ensure!(cases.len() == 28, "{} cases instead of 28", cases.len());
    for case in cases {
        ensure!(matches!(case.run(), Outcome::Passed { exact: true }), "{}: {:?}", case.name, case.run());
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

#[test]
fn the_corpus_gives_what_the_table_says() -> Result<()> {
    let cases = corpus()?;
    ensure!(cases.len() == 1884, "{} cases instead of 1884", cases.len());
    let mut lines = String::new();
    for case in &cases {
        let name = case.name.trim_start_matches("node/");
        match case.run() {
            Outcome::Passed { exact: true } => lines += &format!("{name} passed\n"),

            Outcome::Unsupported(error) => {
                let operators = error.causes().iter().filter_map(|cause| cause.place().operator.as_deref());
                let operators = operators.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
                ensure!(!operators.is_empty(), "{name} is unsupported because of no operator: {error}");
                lines += &format!("{name} unsupported {}\n", operators.join(" "));
            }
            other => anyhow::bail!("{name}: {other:?}"),
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(TABLE, &lines)?;
    }
    let table = std::fs::read_to_string(TABLE)?;
    for (got, want) in lines.lines().zip(table.lines()) {
        ensure!(got == want, "got \"{got}\", and {TABLE} says \"{want}\"");
    }
    ensure!(lines.lines().count() == table.lines().count(), "{TABLE} has another number of cases");
    Ok(())
}

fn corpus() -> Result<Vec<Case>> {
    let file = std::fs::File::open(format!("{DATA}/onnx-1.23.2-node.tar.xz"))?;
    let mut archive = tar::Archive::new(lzma_rust2::XzReader::new(std::io::BufReader::new(file), false));
    let mut files = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = entry.path()?.to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            files.push((path, bytes.into()));
        }
    }
    Ok(Case::from_files(files))
}
