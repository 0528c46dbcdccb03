//! The rooms (top-level modules) of the library: each uses only those above it in this list.

use anyhow::{Context, Result, bail, ensure};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// From the one that uses no other to the one that may use all. `lib.rs` names them and isn't one.
const ROOMS: [&str; 17] = [
    "error",
    "limits",
    "dtype",
    "tensor",
    "value",
    "schema",
    "operator",
    "graph",
    "files",
    "ops",
    "registry",
    "onnx",
    "openvino",
    "model",
    "document",
    "conformance",
    "guides",
];

/// Maximum number of lines of code in a file, without comments and tests.
const LINES: usize = 400;

#[test]
fn each_room_uses_only_those_above_it() -> Result<()> {
    let names = names_of_the_root()?;
    let mut seen = 0;
    for file in files(Path::new("src"))? {
        let path = file.strip_prefix("src")?.to_string_lossy().replace(".rs", "");
        let room = path.split('/').next().unwrap_or("");
        if room == "lib" {
            continue;
        }
        let place = ROOMS.iter().position(|r| *r == room).with_context(|| format!("{path} is in no room"))?;
        for used in uses(&code(&file)?) {
            let used = names.get(&used).unwrap_or(&used);
            let Some(other) = ROOMS.iter().position(|r| r == used) else {
                bail!("{path} uses crate::{used}: which room?")
            };
            seen += 1;
            ensure!(other <= place, "{path} uses crate::{used}, which is below it");
        }
    }
    ensure!(seen > 100, "only {seen} uses were found");
    Ok(())
}

/// A family's files use the prelude, and no other family.
#[test]
fn families_stand_alone() -> Result<()> {
    let mut seen = 0;
    for file in files(Path::new("src/ops"))? {
        let path = file.strip_prefix("src/ops")?.to_string_lossy().replace(".rs", "");
        if !path.contains('/') {
            continue;
        }
        for line in code(&file)?.lines().filter(|line| line.contains("crate::")) {
            let allowed = ["use crate::ops::prelude::*;", "use crate::operator::Implementation;"];
            ensure!(allowed.contains(&line.trim()), "{path}: {line}");
            seen += 1;
        }
    }
    ensure!(seen >= 6, "only {seen} uses were found");
    Ok(())
}

#[test]
fn no_file_is_longer_than_it_may_be() -> Result<()> {
    for file in sources()? {
        let lines = code(&file)?.lines().filter(|line| !line.trim().is_empty()).count();
        let generated = file.ends_with("onnx/proto.rs");
        ensure!(generated || lines <= LINES, "{} has {lines} lines of code", file.display());
    }
    Ok(())
}

/// std leaves the precision of these functions open: they may differ between systems.
#[test]
fn every_digit_is_specified() -> Result<()> {
    let names = "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sin_cos \
        exp exp2 exp_m1 ln ln_1p log log2 log10 powi powf cbrt hypot";
    for file in sources()? {
        let code = code(&file)?;
        for name in names.split(' ') {
            let calls = [format!(".{name}("), format!("f32::{name}"), format!("f64::{name}")];
            ensure!(!calls.iter().any(|call| code.contains(call)), "{} calls {name}", file.display());
        }
    }
    Ok(())
}

/// The table of docs/architecture.md has these rooms, in this order.
#[test]
fn the_document_has_these_rooms() -> Result<()> {
    let text = std::fs::read_to_string("docs/architecture.md")?;
    let (_, table) = text.split_once("| room |").context("no table of rooms")?;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let rooms: Vec<&str> = rows.filter_map(|row| quoted(row).next()).collect();
    ensure!(rooms == ROOMS, "docs/architecture.md has the rooms {rooms:?}");
    Ok(())
}

/// The list of passes in docs/architecture.md has all of them, in the order in which they run.
#[test]
fn the_document_has_these_passes() -> Result<()> {
    let code = code(Path::new("src/graph/passes/mod.rs"))?;
    let (_, list) = code.split_once("const PASSES: &[Pass] = &[").context("no list of passes")?;
    let (list, _) = list.split_once("];").context("no end of the list")?;
    let passes: Vec<&str> = list.split(',').filter_map(|pass| Some(pass.trim().split_once("::")?.1)).collect();
    let text = std::fs::read_to_string("docs/architecture.md")?;
    let (_, list) = text.split_once("in the order of `PASSES`:\n").context("no passes in docs/architecture.md")?;
    let items = list.lines().take_while(|line| line.starts_with("   "));
    let named: Vec<&str> =
        items.filter(|line| line.starts_with("   - `")).filter_map(|line| quoted(line).next()).collect();
    ensure!(named == passes, "docs/architecture.md has the passes {named:?}, and the code {passes:?}");
    Ok(())
}

/// Everything that docs/architecture.md names is in the code.
#[test]
fn the_document_names_what_is_there() -> Result<()> {
    let mut code = String::new();
    for folder in ["src", "kernels/src", "tests", "capi/src", "cli/src", "view/src", "web/src", "python/src"] {
        for file in files(Path::new(folder))? {
            code += &std::fs::read_to_string(file)?;
        }
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let known: HashSet<&str> = code.split(|c| !is_part(c)).collect();
    let text = std::fs::read_to_string("docs/architecture.md")?;
    let mut seen = 0;
    for name in quoted(&text) {
        let is_path = Path::new(name).exists() || Path::new("src").join(name).exists();
        let unknown = name.split(|c| !is_part(c)).find(|part| !known.contains(part));
        ensure!(is_path || unknown.is_none(), "`{name}`: what is {unknown:?}?");
        seen += 1;
    }
    ensure!(seen > 100, "only {seen} names were found");
    Ok(())
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn arrows_are_found_wherever_they_are() {
    let text = "use crate::a::b; // crate::no\n#[cfg(test)]\nfn t() {}\nfn f(x: crate::Short) {}\n/// crate::no\n#[cfg(test)]\nmod tests {\n    use crate::no;\n}\n";
    assert_eq!(uses(&strip(text)), ["a", "Short"]);
}

/// The room behind each name that `lib.rs` gives to the root.
fn names_of_the_root() -> Result<HashMap<String, String>> {
    let text = std::fs::read_to_string("src/lib.rs")?;
    let mut names = HashMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("pub use ")?.strip_suffix(';')) {
        let Some((room, list)) = line.split_once("::") else { continue };
        for name in list.trim_matches(['{', '}']).split(", ") {
            names.insert(name.to_string(), room.to_string());
        }
    }
    ensure!(names.contains_key("Tensor"), "no names were found in lib.rs");
    Ok(names)
}

/// The files of the library and of its kernels.
fn sources() -> Result<Vec<PathBuf>> {
    let mut all = files(Path::new("src"))?;
    all.extend(files(Path::new("kernels/src"))?);
    Ok(all)
}

/// What follows each `crate::`.
fn uses(code: &str) -> Vec<String> {
    let name = |at: usize| code[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    code.match_indices("crate::")
        .filter(|(at, _)| !code[..*at].ends_with('$'))
        .map(|(at, word)| name(at + word.len()))
        .collect()
}

fn code(file: &Path) -> Result<String> {
    Ok(strip(&std::fs::read_to_string(file)?))
}

/// The text without comments and without its tests, which may use everything.
fn strip(text: &str) -> String {
    let tests = ["#[cfg(test)]\nmod tests", "#[cfg(test)]\npub(super) mod tests", "#[cfg(all(test, unix))]\nmod tests"];
    let end = tests.iter().filter_map(|tests| text.find(tests)).min().unwrap_or(text.len());
    let without_comment = |line: &str| line.split("//").next().unwrap_or("").to_string() + "\n";
    text[..end].lines().map(without_comment).collect()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs")
            && !path.ends_with("tests.rs")
            && !path.ends_with("testing.rs")
        {
            found.push(path);
        }
    }
    Ok(found)
}
