//! What is known of a model without running it, beside what onnx knows: shapes, and faults.
//!
//! | file | what it says | made by |
//! | --- | --- | --- |
//! | `onnx.tsv` | the shapes that onnx's inference finds without declared ones | `tools/export_shapes.py` |
//! | `faulty.txt`, `faulty.tar.xz` | small models with one fault each | by hand, `tools/make_faulty_models.py` |
//! | `refused.tsv` | what onnx's checker refuses of these, and of the official models | `tools/make_faulty_models.py` |
//! | `ours.tsv` | models of whose shapes we know less | the test |
//! | `conflicts.tsv` | values for which we find another shape | the test |
//! | `missed.tsv`, `missed_official.tsv` | faulty models in which we find nothing | the test |
//! | `more.tsv` | official models in which only we find a fault | the test |
//!
//! `UPDATE=1 cargo test --test inference` rewrites the last four rows and keeps the reasons in their last column. Shapes and
//! faults that disagree with onnx need one. `cargo test --test inference -- --nocapture` prints sums, and the operators
//! from which on we know less.

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
