//! What is known of operators: a sentence, the standard's page, where engines differ, what they pass.

use onnxref::inspect::NodeDetails;
use onnxref::schema;
use onnxref_view::differences;
use onnxref_view::totals::label;
use serde_json::{Value as Json, json};

/// An entry for each operator: its name and a sentence, then indented lines.
static SENTENCES: &str = include_str!("../../cli/src/ops/about.txt");

/// A row for each operator version: the cases, and how many of them each engine passes.
static ENGINES: &str = include_str!("../../docs/engines.md");

/// `{"sentence": .., "link": .., "differences": [..], "engines": [[NAME, TEXT], ..]}`; null for an operator that isn't the
/// standard's.
pub(crate) fn of(node: &NodeDetails) -> Json {
    let (domain, name) = (node.domain.as_str(), node.operator.as_str());
    if !schema::operators().any(|own| own == (domain, name)) {
        return Json::Null;
    }
    let head = format!("{}: ", label(domain, name, None));
    let mut lines = SENTENCES.lines().skip_while(|line| !line.starts_with(&head));
    let sentence = lines.next().and_then(|line| line.strip_prefix(&head));
    let own = lines.map_while(|line| line.strip_prefix("  ")).find_map(|line| line.strip_prefix("link: "));
    let page = || format!("https://onnx.ai/onnx/operators/onnx_{}_{name}.html", domain.replace('.', ""));
    json!({
        "sentence": sentence,
        "link": own.map_or_else(page, str::to_string),
        "differences": if domain.is_empty() { differences::of(name) } else { Vec::new() },
        "engines": engines(&label(domain, name, node.version)),
    })
}

/// What the engines pass of the cases of an operator version.
fn engines(operator: &str) -> Vec<(String, String)> {
    let cells =
        |line: &'static str| -> Vec<&'static str> { line.trim_matches('|').split('|').map(str::trim).collect() };
    let rows = || ENGINES.lines().filter(|line| line.starts_with('|')).map(cells);
    let Some(head) = rows().find(|cells| cells.first() == Some(&"operator")) else { return Vec::new() };
    let Some(row) = rows().find(|cells| cells.first() == Some(&operator)) else { return Vec::new() };
    let said = |text: &str| match text {
        "-" => "unsupported".to_string(),
        text => text.to_string(),
    };
    // The last column has links.
    let pairs = head.iter().zip(&row).skip(1).take(head.len().saturating_sub(2));
    pairs.map(|(name, text)| (name.to_string(), said(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_of_an_operator() {
        let names: Vec<String> = engines("MaxPool-12").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["cases", "onnxruntime", "reference", "tract", "rten"]);
        assert!(engines("Abs-7").is_empty());
    }
}
