//! docs/operators.md, made from the code: `UPDATE=1 cargo test -p onnxref-cli page` rewrites it.

use super::{Operator, operators, types};
use std::fmt::Write;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operators.md");

const HEAD: &str = "\
# Operators

Every operator of the standard, with its versions. Those in brackets don't run. `onnxref ops NAME` says more on one: its
inputs and attributes, what each version changed, an example, where other engines differ ([all of these](differences.md)).

Types are those of the first input (of the first output where there is no input) in the newest version. `ulp` is the greatest
error in float32 and in float64, in units of the last place, where it is bounded; of reductions if nothing cancels. Smaller
floats are computed in float32 and rounded once.

This page is made from the code by `UPDATE=1 cargo test -p onnxref-cli page`.
";

#[test]
fn the_page_of_operators_is_true() {
    let (mut page, mut domain) = (HEAD.to_string(), None);
    for operator in operators().unwrap() {
        if domain != Some(operator.domain) {
            domain = Some(operator.domain);
            let name = if operator.domain.is_empty() { "ai.onnx" } else { operator.domain };
            write!(
                page,
                "\n## {name}\n\n| operator | versions | types | ulp | what it does |\n| - | - | - | - | - |\n"
            )
            .unwrap();
        }
        writeln!(page, "{}", row(&operator)).unwrap();
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PATH, &page).unwrap();
    }
    assert!(std::fs::read_to_string(PATH).unwrap() == page, "docs/operators.md differs from the code");
}

fn row(operator: &Operator) -> String {
    let defined = operator.versions.iter().filter(|version| !version.removed);
    let version = |version: &super::Version| match version.runs {
        true => version.schema.since_version.to_string(),
        false => format!("({})", version.schema.since_version),
    };
    let versions: Vec<String> = defined.map(version).collect();
    let schema = &operator.shown().unwrap().schema;
    let types = types::of_set(&schema.inputs.first().or(schema.outputs.first()).unwrap().types);
    let (about, link) = (operator.about(), operator.link());
    let (ulp, sentence) = (about.ulp().unwrap_or(""), about.sentence().unwrap_or(""));
    format!("| [{}]({link}) | {} | {types} | {ulp} | {sentence} |", operator.name, versions.join(", "))
}
