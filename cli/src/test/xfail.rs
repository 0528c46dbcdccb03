//! Cases that are expected to fail, each with a reason.

use super::record::{Record, Verdict};
use crate::failure::Failure;
use crate::print;
use onnxref::quote;
use onnxref_view::counted;
use regex::Regex;
use std::path::Path;

/// The entries of a file: a name or pattern and a reason in each line.
#[derive(Default)]
pub(super) struct Xfail {
    file: String,
    entries: Vec<Entry>,
}

struct Entry {
    line: usize,
    pattern: String,
    regex: Regex,
    reason: String,
    /// Whether it matches the name of a case.
    used: bool,
    /// The cases that passed, and the first of them.
    passed: usize,
    first: String,
}

impl Xfail {
    pub(super) fn read(path: &Path) -> Result<Xfail, Failure> {
        let file = print::path(&path.to_string_lossy());
        let text = std::fs::read_to_string(path).map_err(|e| Failure::usage(format!("--xfail {file}: {e}")))?;
        let lines = text.lines().enumerate().map(|(k, line)| (k + 1, line.trim()));
        let entries = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(line, text)| {
            let wrong = |why: String| Failure::usage(format!("--xfail {file}:{line}: {why}"));
            let (pattern, reason) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            if reason.is_empty() {
                return Err(wrong(format!("{} needs a reason after the name", quote(pattern))));
            }
            let regex = regex(pattern).map_err(|e| wrong(e.to_string()))?;
            let (pattern, reason) = (pattern.to_string(), reason.trim_start().to_string());
            Ok(Entry { line, pattern, regex, reason, used: false, passed: 0, first: String::new() })
        });
        let entries = entries.collect::<Result<_, _>>()?;
        Ok(Xfail { file, entries })
    }

    /// Notes a case that was found, whether it is run or not.
    pub(super) fn finds(&mut self, name: &str) {
        self.entries.iter_mut().filter(|entry| entry.regex.is_match(name)).for_each(|entry| entry.used = true);
    }

    /// Turns the failure of a case into an expected one.
    pub(super) fn judge(&mut self, record: &mut Record) {
        let mut entries = self.entries.iter_mut().filter(|entry| entry.regex.is_match(&record.name));
        match record.verdict {
            Verdict::Failed | Verdict::Refused => {
                if let Some(entry) = entries.next() {
                    (record.verdict, record.expected) = (Verdict::Xfail, Some(entry.reason.clone()));
                }
            }
            Verdict::Passed => entries.for_each(|entry| {
                if entry.passed == 0 {
                    entry.first.clone_from(&record.name);
                }
                entry.passed += 1;
            }),
            Verdict::Unsupported | Verdict::Xfail => {}
        }
    }

    /// Why entries are stale, one line each.
    pub(super) fn stale(&self) -> Vec<String> {
        let entries = self.entries.iter().filter(|entry| entry.passed > 0 || !entry.used);
        let line = |entry: &Entry| {
            let why = match entry.passed {
                0 => "matches no case".to_string(),
                1 => format!("{} passes", print::path(&entry.first)),
                more => format!("{} pass, the first is {}", counted(more, "case"), print::path(&entry.first)),
            };
            format!("--xfail {}:{}: {} is stale: {why}", self.file, entry.line, quote(&entry.pattern))
        };
        entries.map(line).collect()
    }
}

/// A pattern matches a whole path, or its end after a `/`. `*` and `?` stand for any characters but `/`.
fn regex(pattern: &str) -> Result<Regex, regex::Error> {
    let wild = |c: char| match c {
        '*' => "[^/]*".to_string(),
        '?' => "[^/]".to_string(),
        c => regex::escape(&c.to_string()),
    };
    Regex::new(&format!("(?:^|/){}$", pattern.chars().map(wild).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_the_end_of_a_path() {
        let matches = |pattern: &str, name: &str| regex(pattern).unwrap().is_match(name);
        let name = "data/x.tar.xz/node/test_add_1";
        for pattern in ["test_add_1", "test_*", "node/test_add_?", "*/test_add_1", name, "data/x.tar.xz/*/*"] {
            assert!(matches(pattern, name), "{pattern}");
        }
        for pattern in ["test_add", "est_add_1", "data/*", "*", "data/x?tar.xz/node/test_add_1?", "test_add_1*/"] {
            assert_eq!(matches(pattern, name), pattern == "*", "{pattern}");
        }
        assert!(matches("a+(b", "x/a+(b") && !matches("a.b", "a_b"));
    }
}
