//! The rooms of the library: each may use those above it in this list, and no other.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// From the one that knows nothing to the one that knows all. `lib.rs` names them and is none.
const ROOMS: [&str; 15] = [
    "error",
    "limits",
    "dtype",
    "tensor",
    "value",
    "schema",
    "kernels",
    "operator",
    "graph",
    "ops",
    "registry",
    "onnx",
    "openvino",
    "model",
    "conformance",
];

#[test]
fn each_room_uses_only_those_above_it() -> Result<()> {
    let mut seen = 0;
    for file in files(Path::new("src"))? {
        let path = file.strip_prefix("src")?.to_string_lossy().replace(".rs", "");
        let room = path.split('/').next().unwrap_or("").to_string();
        if room == "lib" {
            continue;
        }
        let place =
            ROOMS.iter().position(|r| *r == room).with_context(|| format!("{} is in no room", file.display()))?;
        let text = std::fs::read_to_string(&file)?;
        // Tests may use everything.
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for used in code.match_indices("crate::").map(|(at, word)| &code[at + word.len()..]) {
            let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let Some(other) = ROOMS.iter().position(|r| *r == used) else { continue };
            seen += 1;
            ensure!(other <= place, "{} uses crate::{used}, which is below it", file.display());
        }
        if room == "ops" {
            let allowed = ["crate::operator::prelude", "crate::operator::Implementation"];
            for line in code.lines().filter(|line| line.contains("use crate::")) {
                ensure!(allowed.iter().any(|a| line.contains(a)), "{}: {line}", file.display());
            }
        }
    }
    ensure!(seen > 50, "only {seen} uses were found");
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}
