//! What is known of a model without running it, beside what onnx knows: shapes, and faults.
//!
//! The tables in this folder say what onnx 1.23.2 finds (`onnx.tsv`, `refused.tsv`; scripts in `tools` write them), and
//! where we are behind: `ours.tsv`, `conflicts.tsv`, `missed.tsv`. `UPDATE=1 cargo test --test inference` rewrites these
//! and keeps their reasons. `cargo test --test inference -- --nocapture` prints the sums, and which operators they are.

#![cfg(not(miri))] // it takes days
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;

mod faults;
mod shapes;
mod strip;
mod table;

use anyhow::{Context, Result, anyhow, ensure};
use common::archive;
use std::sync::LazyLock;

const FOLDER: &str = "tests/inference";

/// An archive of models: its name in the tables, its file, and the number of its models.
const ARCHIVES: [(&str, &str, usize); 4] = [
    ("networks", "small-networks.tar.xz", 31),
    ("node", "onnx-1.23.2-node.tar.xz", 1884),
    ("older", "onnx-older-node.tar.xz", 3689),
    ("others", "onnx-1.22.0-others.tar.xz", 149),
];

/// A model of an archive.
struct File {
    archive: &'static str,
    path: String,
    bytes: Vec<u8>,
}

/// All models of `onnx-test-data` in the order of the tables; they are unpacked once.
fn files() -> Result<&'static [File]> {
    static FILES: LazyLock<Result<Vec<File>>> = LazyLock::new(unpacked);
    FILES.as_deref().map_err(|error| anyhow!("{error:#}"))
}

fn unpacked() -> Result<Vec<File>> {
    let mut files = Vec::new();
    for (archive, name, count) in ARCHIVES {
        let models = archive::unpack(format!("onnx-test-data/{name}"), |path| path.ends_with(".onnx"))?;
        ensure!(models.len() == count, "{name} has {} models instead of {count}", models.len());
        for (path, bytes) in models {
            let path = path.split_once('/').context("no folder")?.1;
            let path = path.trim_end_matches(".onnx").trim_end_matches("/model").to_string();
            files.push(File { archive, path, bytes });
        }
    }
    Ok(files)
}
