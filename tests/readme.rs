//! The README's numbers of operators match the code. Links and examples work in the published package.

use anyhow::{Context, Result, ensure};
use std::path::Path;

#[test]
fn the_number_of_operators_is_true() -> Result<()> {
    let standard = |domain: &str| domain != "org.openvinotoolkit";
    let runs = onnxref::supported().into_iter().filter(|support| standard(support.domain)).count();
    let all = onnxref::schema::operators().filter(|(domain, _)| standard(domain)).count();
    let text = std::fs::read_to_string("README.md")?;
    ensure!(
        text.contains(&format!("runs {runs} of the {all} operators")),
        "README.md has other numbers: {runs}, {all}"
    );
    let missing = all - runs;
    ensure!(missing == 1 && text.contains("- 1 operator of the standard, Gradient"), "{missing} operators don't run");
    Ok(())
}

#[test]
fn the_hash_is_that_of_the_network() -> Result<()> {
    let hashes = std::fs::read_to_string("tests/conformance/hashes.txt")?;
    let own =
        hashes.lines().find_map(|line| line.strip_prefix("bert.dynamo18 ")).context("no hash of bert.dynamo18")?;
    let text = std::fs::read_to_string("README.md")?;
    ensure!(text.lines().any(|line| line == own), "README.md has another hash than {own}");
    Ok(())
}

/// The README is the front page of the library's documentation too, where there are no files beside it.
#[test]
fn no_link_leads_to_a_file() -> Result<()> {
    for file in ["README.md", "capi/README.md", "cli/README.md", "python/README.md"] {
        for link in std::fs::read_to_string(file)?.split("](").skip(1) {
            ensure!(link.starts_with("https://"), "{file} has a link to {}", link.lines().next().unwrap_or(""));
        }
    }
    Ok(())
}

#[test]
fn the_package_has_what_its_examples_load() -> Result<()> {
    let package = std::fs::read_to_string("Cargo.toml")?;
    let mut text = std::fs::read_to_string("README.md")?;
    read_all(Path::new("src"), &mut text)?;
    read_all(Path::new("docs/guides"), &mut text)?;
    let mut seen = 0;
    for call in text.split("load(\"").skip(1) {
        let (path, _) = call.split_once('"').context("no end of a path")?;
        if path.starts_with("onnx-test-data/") {
            ensure!(package.contains(&format!("\"/{path}\"")), "{path} is not in the package");
            seen += 1;
        }
    }
    ensure!(seen >= 5, "only {seen} paths were found");
    Ok(())
}

/// The operator that CONTRIBUTING.md shows is in the code as it is there.
#[test]
fn the_operator_of_contributing_is_in_the_code() -> Result<()> {
    let text = std::fs::read_to_string("CONTRIBUTING.md")?;
    let (before, rest) = text.split_once("\n```rust\n").context("no operator")?;
    let path = before.rsplit('`').nth(1).context("no path before the operator")?;
    let (shown, _) = rest.split_once("```").context("no end of the operator")?;
    ensure!(std::fs::read_to_string(path)?.starts_with(shown), "{path} differs from the operator shown");
    ensure!(shown.contains("impl Operator for"), "no operator is shown:\n{shown}");
    Ok(())
}

/// Adds the text of all files in a folder.
fn read_all(folder: &Path, text: &mut String) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path, text)?;
        } else {
            *text += &std::fs::read_to_string(path)?;
        }
    }
    Ok(())
}
