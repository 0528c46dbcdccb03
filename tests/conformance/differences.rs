//! The models of `docs/differences.md`: onnxref gives for each what the page says, and page, archive and the table of what
//! engines give name the same models.

use crate::common::archive::in_parallel;
use anyhow::{Context, Result, bail, ensure};
use onnxref::Model;
use onnxref::conformance::{Case, DIFFERENCES, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// Operator with its version, and what onnxref gives, by model: two columns of the table of what engines give.
fn engines() -> Result<BTreeMap<String, [String; 2]>> {
    let text = std::fs::read_to_string(format!("{}/differences.tsv", crate::DATA))?;
    let mut lines = text.lines();
    ensure!(lines.next() == Some("model\toperator\tonnxruntime\treference\tonnxref"), "other columns");
    let line = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        ensure!(columns.len() == 5 && columns.iter().all(|column| !column.is_empty()), "{line}");
        Ok((columns[0].to_string(), [columns[1], columns[4]].map(str::to_string)))
    };
    lines.map(line).collect()
}

/// With and without optimisation, each as a line of a committed table says.
#[test]
fn models_give_what_the_page_says() -> Result<()> {
    let (cases, engines) = (crate::unpack("differences.tar.xz")?, engines()?);
    let lines = in_parallel(&cases, |case| {
        let [_, expected] = engines.get(&case.name).with_context(|| format!("{} is not in the table", case.name))?;
        line(case, expected).with_context(|| case.name.clone())
    });
    let wrong: Vec<String> = lines.iter().filter_map(|r| r.as_ref().err()).map(|error| format!("{error:#}")).collect();
    ensure!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    crate::check_table(&lines.into_iter().collect::<Result<String>>()?, "differences.txt")
}

fn line(case: &Case, expected: &str) -> Result<String> {
    // NaN has any sign: that of 0 / 0 depends on the processor.
    let mut exactly = case.clone();
    (exactly.tolerance.rtol, exactly.tolerance.atol) = (0.0, 0.0);
    let [word, plain] = [true, false].map(|optimize| {
        let options = Model::options().optimize(optimize);
        match (case.run_with(&options), expected.strip_prefix("error: ")) {
            (Outcome::Passed { .. }, None) => Ok(match exactly.run_with(&options) {
                Outcome::Passed { .. } => "passed",
                _ => "passed within tolerance",
            }),
            (Outcome::Refused(error), Some(text)) if error.to_string().contains(text) => Ok("refused"),
            (Outcome::Failed(why), Some(text)) if why.error.as_ref().is_some_and(|e| e.to_string().contains(text)) => {
                Ok("refused in the run")
            }
            (outcome, _) => bail!("{outcome:?}, but {expected}"),
        }
    });
    let (word, plain) = (word?, plain?);
    ensure!(word == plain, "{word}, but without optimisation {plain}");
    Ok(format!("{} {word}\n", case.name))
}

/// Each row has a model of one of its operators in one of its versions, and each model a row.
#[test]
fn rows_have_models_and_models_rows() -> Result<()> {
    let (engines, mut named) = (engines()?, BTreeSet::new());
    let mut rows = 0;
    for row in DIFFERENCES.lines().skip_while(|line| !line.starts_with("| ---")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [operators, versions, _, _, _, _, last] = cells[..] else { bail!("{} cells: {row}", cells.len()) };
        let (anchor, models) = last.split_once("</a>").with_context(|| format!("no anchor: {row}"))?;
        // Other projects link to it, so it stays: it is the name of the first model, and no model is in two rows.
        let first = models.split(", ").next().unwrap_or_default().trim_matches('`');
        ensure!(anchor == format!("<a id=\"{first}\">"), "the row's anchor is {anchor}, its first model {first}");
        for model in models.split(", ") {
            let model = model.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
            let model = model.with_context(|| format!("no name of a model: {row}"))?;
            let [operator, _] = engines.get(model).with_context(|| format!("{model} is not in the table"))?;
            let (name, version) = operator.rsplit_once('-').with_context(|| format!("{operator} has no version"))?;
            let fits = operators.split(", ").any(|of| is_of(name, of)) && is_in(version.parse()?, versions);
            ensure!(fits, "{model} has {operator}: {row}");
            ensure!(named.insert(model), "{model} is in two rows");
        }
        rows += 1;
    }
    let cases = crate::unpack("differences.tar.xz")?;
    let archived: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let listed: BTreeSet<&str> = engines.keys().map(String::as_str).collect();
    for (what, models) in [("archive", archived), ("table", listed)] {
        let apart: Vec<_> = named.symmetric_difference(&models).collect();
        ensure!(apart.is_empty(), "in one of page and {what}: {apart:?}");
    }
    ensure!(rows > 60, "only {rows} rows");
    Ok(())
}

/// Links to rows reach one, from the table of engines too.
#[test]
fn links_to_rows_reach_them() -> Result<()> {
    let page = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/engines.md"))?;
    let mut count = 0;
    for link in page.split("(differences.md").skip(1) {
        let (anchor, _) = link.split_once(')').context("a link without an end")?;
        if let Some(anchor) = anchor.strip_prefix('#') {
            let rows = DIFFERENCES.matches(&format!("<a id=\"{anchor}\"></a>")).count();
            ensure!(rows == 1, "{rows} rows have the anchor {anchor}");
            count += 1;
        }
    }
    ensure!(count > 300, "only {count} links to rows");
    Ok(())
}

/// Whether a row's name is that of an operator, such as `Random*`.
fn is_of(operator: &str, name: &str) -> bool {
    let operator = operator.rsplit('.').next().unwrap_or(operator);
    name.strip_suffix('*').map_or(operator == name, |start| operator.starts_with(start))
}

/// Whether a version is among those of a row: `all`, `1, 13`, `8 to 22`, `19 on`, `1 (experimental)`.
fn is_in(version: u32, versions: &str) -> bool {
    versions.split(", ").any(|part| match part.split(' ').collect::<Vec<_>>()[..] {
        ["all"] => true,
        [first, "to", last] => {
            first.parse().is_ok_and(|first: u32| first <= version)
                && last.parse().is_ok_and(|last: u32| version <= last)
        }
        [first, "on"] => first.parse().is_ok_and(|first: u32| first <= version),
        [one] | [one, "(experimental)"] => one.parse() == Ok(version),
        _ => false,
    })
}
