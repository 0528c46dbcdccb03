//! Where engines differ, of each operator.

use onnxref::conformance::DIFFERENCES;
use serde::Serialize;

/// A row of the table.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Names, some as `Random*`.
    #[serde(skip)]
    operators: &'static str,
    /// The versions that it is about.
    pub versions: &'static str,
    /// What the standard's text says.
    pub text: &'static str,
    /// What onnxruntime does.
    pub onnxruntime: &'static str,
    /// The reference implementation in Python.
    pub reference: &'static str,
    /// What onnxref does.
    pub onnxref: &'static str,
    /// Cases of `onnx-test-data/differences.tar.xz` that show it.
    pub models: Vec<&'static str>,
}

impl Row {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.operators.split(", ")
    }
}

/// Whether a row's name is that of an operator.
fn names(name: &str, operator: &str) -> bool {
    name.strip_suffix('*').map_or(operator == name, |start| operator.starts_with(start))
}

/// The rows of an operator.
pub fn of(operator: &str) -> Vec<Row> {
    rows().filter(|row| row.names().any(|name| names(name, operator))).collect()
}

fn rows() -> impl Iterator<Item = Row> {
    let table = DIFFERENCES.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    table.filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let mut next = || cells.next();
        Some(Row {
            operators: next()?,
            versions: next()?,
            text: next()?,
            onnxruntime: next()?,
            reference: next()?,
            onnxref: next()?,
            models: next()?.split_once("</a>")?.1.split(", ").map(|name| name.trim_matches('`')).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::schema;

    #[test]
    fn every_row_has_operators_and_versions() {
        let mut count = 0;
        for row in rows() {
            for name in row.names() {
                let mut all = schema::operators().map(|(_, name)| name).chain(schema::experimental_operators());
                assert!(all.any(|operator| names(name, operator)), "{name} is no operator");
            }
            assert!(row.versions == "all" || row.versions.contains(|c: char| c.is_ascii_digit()), "{row:?}");
            assert!(!row.text.is_empty() && !row.onnxref.is_empty(), "{row:?}");
            assert!(row.models.iter().all(|model| !model.is_empty()), "{row:?}");
            count += 1;
        }
        let lines = DIFFERENCES.lines().filter(|line| line.starts_with('|')).count();
        assert_eq!(count + 2, lines, "rows with fewer cells");
        assert!(count > 60, "only {count} rows");
    }

    #[test]
    fn rows_of_an_operator() {
        assert!(of("Abs").is_empty());
        let texts = |name: &str| of(name).iter().map(|row| row.text).collect::<Vec<_>>();
        assert!(texts("RandomUniformLike").contains(&"no generator"), "{:?}", texts("RandomUniformLike"));
        assert!(texts("MaxPool").contains(&"nothing on NaN"), "{:?}", texts("MaxPool"));
    }
}
