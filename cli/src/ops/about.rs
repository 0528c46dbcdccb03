//! What is known of operators beyond their schemas: a sentence, changes of the text, links, examples.

use super::changes;
use onnxref::schema::Schema;

/// A sentence for each operator; what a version changed where the schemas don't show it; commands to run.
static ABOUT: &str = include_str!("about.txt");

/// An official case for each operator version that has one.
static CASES: &str = include_str!("cases.txt");

/// An operator's lines of the file.
#[derive(Clone, Copy)]
pub(super) struct About(&'static str);

impl About {
    pub(super) fn new(domain: &str, name: &str) -> About {
        let head = format!("{}: ", key(domain, name));
        About(entries().find(|entry| entry.starts_with(&head)).unwrap_or(""))
    }

    /// What the operator does, in one sentence.
    pub(super) fn sentence(self) -> Option<&'static str> {
        self.0.lines().next()?.split_once(": ").map(|(_, sentence)| sentence)
    }

    /// What the text of a version changed.
    fn text(self, version: i64) -> Option<&'static str> {
        self.field(&version.to_string())
    }

    /// A command that runs the operator.
    pub(super) fn command(self) -> Option<&'static str> {
        self.field("run")
    }

    /// The official page, where it is not on the site of the standard.
    pub(super) fn link(self) -> Option<&'static str> {
        self.field("link")
    }

    /// The greatest errors in float32 and in float64, in units of the last place.
    pub(super) fn ulp(self) -> Option<&'static str> {
        self.field("ulp")
    }

    fn field(self, name: &str) -> Option<&'static str> {
        let fields = self.0.lines().skip(1).filter_map(|line| line.trim_start().split_once(": "));
        fields.filter(|(field, _)| *field == name).map(|(_, text)| text).next()
    }

    /// What a version changed, in one line: first what the schemas show, then what the text says.
    pub(super) fn change(self, old: &Schema, new: &Schema) -> Option<String> {
        let changes = changes::between(old, new);
        let text = self.text(new.since_version).map(str::to_string);
        let line = changes.into_iter().chain(text).collect::<Vec<_>>().join("; ");
        (!line.is_empty()).then_some(line)
    }
}

/// The entries of the file: a line for the operator, then indented ones.
fn entries() -> impl Iterator<Item = &'static str> {
    let text = ABOUT.split_once("\n\n").map_or("", |(_, entries)| entries);
    text.split("\n\n")
}

/// The operator as the tables name it.
pub(super) fn key(domain: &str, name: &str) -> String {
    if domain.is_empty() { name.to_string() } else { format!("{domain}.{name}") }
}

/// The command that tests an official case of a version.
pub(super) fn case(schema: &Schema) -> Option<String> {
    let head = format!("{} {} ", key(&schema.domain, &schema.name), schema.since_version);
    let (archive, case) = CASES.lines().find_map(|line| line.strip_prefix(&head))?.split_once(' ')?;
    Some(format!("onnxref test onnx-test-data/{archive}.tar.xz -k '{case}$'"))
}

/// The page of an operator on the site of the standard.
pub(super) fn page(domain: &str, name: &str) -> String {
    format!("https://onnx.ai/onnx/operators/onnx_{}_{name}.html", domain.replace('.', ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnxref::schema;

    #[test]
    fn every_version_has_its_line() {
        let mut missing = Vec::new();
        for (domain, name) in schema::operators() {
            let (about, history) = (About::new(domain, name), schema::history(domain, name).unwrap());
            let pairs = history.iter().zip(history.iter().skip(1));
            missing.extend(
                pairs
                    .filter(|(old, new)| about.change(old, new).is_none())
                    .map(|(_, new)| format!("{} {}", key(domain, name), new.since_version)),
            );
            missing.extend(about.sentence().is_none().then(|| key(domain, name)));
        }
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn every_line_belongs_to_a_version() {
        let mut last = String::new();
        for entry in entries() {
            let (head, sentence) = entry.lines().next().unwrap().split_once(": ").unwrap();
            assert!(last.as_str() < head, "{head} is out of order");
            last = head.to_string();
            assert!((10..=100).contains(&sentence.len()) && sentence.ends_with('.'), "{head}: {sentence}");
            let (domain, name) = head.rsplit_once('.').unwrap_or(("", head));
            let history = schema::history(domain, name).unwrap();
            let later: Vec<String> = history.iter().skip(1).map(|schema| schema.since_version.to_string()).collect();
            let mut versions = Vec::new();
            for line in entry.lines().skip(1) {
                let (field, text) = line.strip_prefix("  ").unwrap().split_once(": ").unwrap();
                if field == "ulp" {
                    let bounds: Vec<f64> = text.split(", ").map(|bound| bound.parse().unwrap()).collect();
                    assert!(
                        bounds.len() == 2 && bounds.iter().all(|bound| (0.5..=4.0).contains(bound)),
                        "{head}: {text}"
                    );
                } else if !["run", "link"].contains(&field) {
                    assert!(later.iter().any(|version| version == field), "{head} has no version {field} to change");
                    assert!(text.len() <= 110, "{head} {field} is long: {text}");
                    versions.push(field.parse::<i64>().unwrap());
                }
            }
            assert!(versions.is_sorted_by(|a, b| a < b), "{head}: {versions:?}");
        }
    }

    #[test]
    fn every_case_is_of_a_version() {
        let cases: Vec<&str> = CASES.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(cases.len() > 500);
        for line in cases {
            let [operator, version, archive, name] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let (domain, name_of) = operator.rsplit_once('.').unwrap_or(("", operator));
            let schema = schema::resolve(domain, name_of, version.parse().unwrap()).unwrap();
            assert_eq!(schema.since_version.to_string(), version, "{operator}");
            assert_eq!(case(&schema).unwrap(), format!("onnxref test onnx-test-data/{archive}.tar.xz -k '{name}$'"));
        }
    }

    #[test]
    fn links_are_those_of_the_site() {
        assert_eq!(page("", "Gather"), "https://onnx.ai/onnx/operators/onnx__Gather.html");
        assert_eq!(page("ai.onnx.ml", "Binarizer"), "https://onnx.ai/onnx/operators/onnx_aionnxml_Binarizer.html");
    }
}
