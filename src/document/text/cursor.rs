//! Words, strings and numbers of the text form, and where they are.

use crate::error::{Error, Result};
use crate::files::ModelFiles;

/// A place in a text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Limits, and the memory that is left.
    pub(super) files: &'a ModelFiles,
    /// How deep graphs and types nest.
    depth: usize,
    /// The spaces and comments that were passed last.
    passed: (usize, usize),
    /// Whether it is a note, in which strings have escapes for the ends of lines.
    note: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, files: &'a ModelFiles) -> Cursor<'a> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Cursor { text, at: 0, files, depth: 0, passed: (0, 0), note: false }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// What comes after spaces and comments.
    pub(super) fn next(&mut self) -> &'a str {
        let begin = self.at;
        loop {
            let rest = self.rest();
            let start = rest.trim_start();
            self.at += rest.len() - start.len();
            if !start.starts_with('#') {
                if self.at > begin {
                    self.passed = (begin, self.at);
                }
                return start;
            }
            self.at += start.find('\n').unwrap_or(start.len());
        }
    }

    /// The notes right before the next token.
    pub(super) fn notes(&mut self) -> Result<Vec<Cursor<'a>>> {
        self.next();
        let mut notes = Vec::new();
        let (mut at, end) = self.passed;
        if end != self.at {
            return Ok(notes);
        }
        for line in self.text.get(at..end).unwrap_or("").split_inclusive('\n') {
            let begin = line.trim_start();
            let end = at + line.trim_end().len();
            at += line.len();
            if let (true, Some(text)) = (begin.starts_with("#:"), self.text.get(..end)) {
                let at = at - begin.len() + "#:".len();
                self.take(size_of::<Cursor<'_>>())?;
                notes.push(Cursor { text, at, files: self.files, depth: self.depth, passed: (at, at), note: true });
            }
        }
        Ok(notes)
    }

    /// Whether a token comes next.
    pub(super) fn sees(&mut self, token: &str) -> bool {
        self.next().starts_with(token)
    }

    /// Passes a token if it comes next.
    pub(super) fn accept(&mut self, token: &str) -> bool {
        let found = self.sees(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// Items up to a closing token, with commas between them.
    pub(super) fn list(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.accept(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.accept(close) {
                return Ok(());
            }
            if !self.accept(",") {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// The word that comes next, which is empty if there is none.
    pub(super) fn peek(&mut self) -> &'a str {
        let next = self.next();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if next.starts_with(|c: char| c.is_ascii_digit()) {
            return "";
        }
        next.get(..next.find(|c| !is_part(c)).unwrap_or(next.len())).unwrap_or("")
    }

    /// Passes a word.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str> {
        let word = self.peek();
        if word.is_empty() {
            return Err(self.expected(what));
        }
        self.at += word.len();
        Ok(word)
    }

    /// A name: a word, or a string.
    pub(super) fn name(&mut self, what: &str) -> Result<String> {
        if self.sees("\"") {
            return self.string();
        }
        let name = self.word(what)?;
        self.take(name.len())?;
        Ok(name.to_string())
    }

    /// Whether a name comes next.
    pub(super) fn sees_name(&mut self) -> bool {
        self.sees("\"") || !self.peek().is_empty()
    }

    /// A string in quotes. A backslash stands before a character that is meant as it is.
    pub(super) fn string(&mut self) -> Result<String> {
        if !self.sees("\"") {
            return Err(self.expected("a string"));
        }
        let mut string = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    self.take(string.capacity())?;
                    return Ok(string);
                }
                '\\' => string.extend(chars.next().map(|(_, c)| match c {
                    'n' if self.note => '\n',
                    'r' if self.note => '\r',
                    c => c,
                })),
                c => string.push(c),
            }
        }
        Err(self.error("the string has no closing quote"))
    }

    /// The number that comes next, if there is one: `-1`, `2.5e3`, `nan`, `-inf`.
    pub(super) fn number(&mut self) -> Option<&'a str> {
        let next = self.next();
        let unsigned = next.strip_prefix('-').unwrap_or(next);
        let word =
            unsigned.get(..unsigned.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(unsigned.len()));
        let special = ["nan", "inf", "infinity"].iter().any(|name| word.is_some_and(|w| w.eq_ignore_ascii_case(name)));
        let len = if special {
            word.map_or(0, str::len)
        } else {
            let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let after = |at: usize| unsigned.get(at..).unwrap_or("");
            let mut len = digits(unsigned);
            if len == 0 {
                return None;
            }
            if after(len).starts_with('.') {
                len += 1 + digits(after(len + 1));
            }
            if after(len).starts_with(['e', 'E']) {
                let sign = usize::from(after(len + 1).starts_with(['+', '-']));
                let exponent = digits(after(len + 1 + sign));
                len += if exponent == 0 { 0 } else { 1 + sign + exponent };
            }
            len
        };
        let number = next.get(..next.len() - unsigned.len() + len)?;
        self.at += number.len();
        Some(number)
    }

    /// A number of a type.
    pub(super) fn parse<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        self.next();
        let start = self.at;
        let Some(number) = self.number() else { return Err(self.expected(what)) };
        number.parse().map_err(|_| {
            self.at = start;
            self.error(&format!("expected {what}, found {number}"))
        })
    }

    /// Reads what nests one level deeper.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // Each level of a text is up to three messages of a file.
        let most = self.files.limits.nesting.min(100) / 3;
        self.depth += 1;
        if self.depth > most {
            return Err(self.error(&format!("graphs and types nest more than {most} deep")));
        }
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// Takes memory.
    pub(super) fn take(&self, bytes: usize) -> Result<()> {
        self.files.budget.take(bytes as u64)
    }

    /// The error for something else than what is expected here.
    pub(super) fn expected(&mut self, what: &str) -> Error {
        let next = self.next();
        let found = match (self.peek(), next.chars().next()) {
            ("", None) => "the end".to_string(),
            ("", Some(c)) => format!("`{}`", c.escape_debug()),
            (word, _) => format!("`{}`", word.chars().take(40).collect::<String>()),
        };
        self.error(&format!("expected {what}, found {found}"))
    }

    /// An error here.
    pub(super) fn error(&self, text: &str) -> Error {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Error::model(format!("line {line}, column {column}: {text}"))
    }
}
