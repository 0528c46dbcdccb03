//! The README's table of operators is what the code has. `UPDATE=1 cargo test --test readme` rewrites it.

use anyhow::{Context, Result, ensure};

#[test]
fn the_table_of_operators_is_true() -> Result<()> {
    let readme = std::fs::read_to_string("README.md")?;
    let (head, rest) = readme.split_once("| operator |").context("no table")?;
    let (_, tail) = rest.split_once("<!-- /support -->").context("no end of the table")?;
    let mut table = String::from("| operator | versions that run |\n| --- | --- |\n");
    for support in onnxref::supported() {
        let domain = if support.domain.is_empty() { "" } else { &format!("{} ", support.domain) };
        let versions: Vec<String> = support.versions.iter().map(i64::to_string).collect();
        table += &format!("| {domain}{} | {} |\n", support.name, versions.join(", "));
    }
    let want = format!("{head}{table}<!-- /support -->{tail}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write("README.md", &want)?;
    }
    ensure!(std::fs::read_to_string("README.md")? == want, "README.md has another table");
    Ok(())
}
