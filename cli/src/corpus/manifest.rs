//! Cases being written to a folder, with `manifest.json`, which lists them.

use super::folder::NewFolder;
use crate::failure::Failure;
use crate::hash::digits;
use onnxref::bytes::Bytes;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The name of the list of cases.
pub(crate) const MANIFEST: &str = "manifest.json";

/// The version of its form.
const FORMAT: u32 = 1;

/// What is told of a case beside its files.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct About {
    /// What the case is about, in words.
    pub(crate) about: String,
    /// Each operator of the model once, sorted.
    pub(crate) operators: Vec<OperatorVersion>,
    #[serde(flatten)]
    pub(crate) details: Details,
}

/// What is told of cases that are generated.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Details {
    /// How far expected outputs are from the exact result, at most, if a bound is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ulp: Option<Option<f64>>,
    /// How far each element of the output may be from the expected one, at most, if it is a sum; `None` of one that can be
    /// anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) absolute: Option<Vec<Option<f64>>>,
    /// How the case must be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refusal: Option<Refusal>,
}

/// What an engine must do with a case: refuse it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Refusal {
    /// The rule that is broken.
    pub(crate) rule: String,
    /// `load`: the model is at fault. `run`: what is fed to it, or a value that is met.
    pub(crate) stage: &'static str,
    /// The kind of onnxref's error.
    pub(crate) kind: String,
    /// The text of onnxref's error.
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct OperatorVersion {
    /// Empty for ai.onnx.
    pub(crate) domain: String,
    pub(crate) name: String,
    /// `None` of an unknown operator.
    pub(crate) version: Option<i64>,
}

/// Cases by name.
pub(crate) struct Corpus<'a> {
    folder: NewFolder<'a>,
    cases: BTreeMap<String, Entry>,
}

#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    about: About,
    /// SHA-256 by the path below the case's folder.
    files: BTreeMap<String, String>,
}

/// What was written.
#[derive(Debug, Serialize)]
pub(crate) struct Written {
    pub(crate) cases: usize,
    pub(crate) files: usize,
    pub(crate) sha256: String,
}

impl<'a> Corpus<'a> {
    pub(crate) fn new(folder: NewFolder<'a>) -> Corpus<'a> {
        Corpus { folder, cases: BTreeMap::new() }
    }

    /// Writes the files of a case to a folder with its name.
    pub(crate) fn add(&mut self, name: &str, about: About, files: &[(String, Bytes)]) -> Result<(), Failure> {
        if self.cases.contains_key(name) {
            return Err(Failure::usage(format!("two cases have the name {name}")));
        }
        let mut entry = Entry { about, files: BTreeMap::new() };
        for (path, bytes) in files {
            self.folder.file(&format!("{name}/{path}"), bytes)?;
            entry.files.insert(path.clone(), digits(Sha256::digest(bytes)));
        }
        self.cases.insert(name.to_string(), entry);
        Ok(())
    }

    /// Writes the manifest, and moves the folder to its place.
    pub(crate) fn finish(self) -> Result<Written, Failure> {
        let files = |(name, entry): (&String, &Entry)| -> Vec<(String, String)> {
            entry.files.iter().map(|(path, hash)| (format!("{name}/{path}"), hash.clone())).collect()
        };
        let mut listed: Vec<(String, String)> = self.cases.iter().flat_map(files).collect();
        listed.sort();
        let mut whole = Sha256::new();
        listed.iter().for_each(|(path, hash)| whole.update(format!("{hash}  {path}\n")));
        let written = Written { cases: self.cases.len(), files: listed.len(), sha256: digits(whole.finalize()) };
        self.folder.file(MANIFEST, text(&written, &self.cases).map_err(Failure::stdout)?.as_bytes())?;
        self.folder.finish()?;
        Ok(written)
    }
}

/// The manifest: a case a line.
fn text(written: &Written, cases: &BTreeMap<String, Entry>) -> std::io::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        name: &'a str,
        #[serde(flatten)]
        entry: &'a Entry,
    }
    let lines = cases.iter().map(|(name, entry)| serde_json::to_string(&Line { name, entry }));
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    let head = format!("{{\"format\": {FORMAT}, \"sha256\": \"{}\", \"cases\": [", written.sha256);
    Ok(format!("{head}\n{}\n]}}\n", lines.join(",\n")))
}
