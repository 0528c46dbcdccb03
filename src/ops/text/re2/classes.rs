//! Classes of letters, and escapes.

use super::{Fault, NOTHING, Translator};
use crate::ops::prelude::*;

type Parsed<T> = std::result::Result<T, Fault>;

/// The general categories of RE2, which has no unassigned code points in `C`.
const CATEGORIES: &[&str] = &[
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P",
    "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// The ASCII classes in brackets.
const POSIX: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

impl Translator<'_> {
    /// Reads an escape that stands for a class, if it is one.
    pub(super) fn group(&mut self) -> Parsed<Option<String>> {
        let classes = [
            (r"\d", "[0-9]"),
            (r"\D", "[^0-9]"),
            (r"\s", r"[\t\n\x0C\r ]"),
            (r"\S", r"[^\t\n\x0C\r ]"),
            (r"\w", "[0-9A-Za-z_]"),
            (r"\W", "[^0-9A-Za-z_]"),
        ];
        if let Some((_, class)) = classes.into_iter().find(|(escape, _)| self.eat(escape)) {
            return Ok(Some(class.into()));
        }
        let at = self.at;
        let mut negated = match self.rest() {
            rest if rest.starts_with(r"\p") => false,
            rest if rest.starts_with(r"\P") => true,
            _ => return Ok(None),
        };
        self.at += 2;
        let start = self.at;
        let mut name = match self.next() {
            Some('{') => match self.rest().split_once('}') {
                Some((name, _)) => {
                    self.at += name.len() + 1;
                    name
                }
                None => return self.fault(at, "} is missing"),
            },
            Some(_) => self.pattern.get(start..self.at).unwrap_or(""),
            None => return self.fault(at, "the name of a class is missing"),
        };
        if let Some(rest) = name.strip_prefix('^') {
            (name, negated) = (rest, !negated);
        }
        self.done.classes += 1;
        let not = if negated { "^" } else { "" };
        Ok(Some(match name {
            "Any" => format!("[{}\\x{{0}}-\\x{{10FFFF}}]", not),
            "C" => format!(r"[{not}\p{{gc=Cc}}\p{{gc=Cf}}\p{{gc=Co}}]"),
            "Cs" => format!("[{}\\x{{0}}-\\x{{10FFFF}}]", if negated { "" } else { "^" }),
            _ if CATEGORIES.contains(&name) => format!(r"[{not}\p{{gc={name}}}]"),
            _ if name.len() > 1 && name.bytes().all(|letter| letter.is_ascii_alphabetic() || letter == b'_') => {
                self.done.scripts.push((name.into(), at));
                format!(r"[{not}\p{{sc={name}}}]")
            }
            _ => return self.fault(at, no_class(name)),
        }))
    }

    /// Reads an escape that stands for a letter.
    pub(super) fn code(&mut self) -> Parsed<u32> {
        let at = self.at;
        self.at += 1;
        let digits =
            |text: &str, radix, most: usize| text.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
        let letter = self.next();
        let code = match letter {
            Some('a') => 7,
            Some('f') => 12,
            Some('t') => 9,
            Some('n') => 10,
            Some('r') => 13,
            Some('v') => 11,
            Some('x') => {
                let braces = self.eat("{");
                let len = digits(self.rest(), 16, if braces { usize::MAX } else { 2 });
                let number = self.rest().get(..len).unwrap_or("");
                self.at += len;
                // Zeros before a number don't count.
                let number = u32::from_str_radix(number, 16).ok().filter(|code| *code <= char::MAX.into());
                match number {
                    Some(code) if if braces { self.eat("}") } else { len == 2 } => code,
                    _ => return self.fault(at, r"\x needs two hexadecimal digits, or some in braces, up to 10FFFF"),
                }
            }
            Some(first @ '0'..='7') => {
                let more = digits(self.rest(), 8, 2);
                if first != '0' && more == 0 {
                    return self.fault(at, format!("RE2 has no references to groups, such as \\{first}"));
                }
                let start = self.at - 1;
                self.at += more;
                u32::from_str_radix(self.pattern.get(start..self.at).unwrap_or(""), 8).unwrap_or(0)
            }
            Some(digit @ '8'..='9') => {
                return self.fault(at, format!("RE2 has no references to groups, such as \\{digit}"));
            }
            Some(letter) if letter.is_ascii() && !letter.is_ascii_alphanumeric() => letter.into(),
            Some(letter) => return self.fault(at, format!("RE2 has no escape {}", quote(&format!("\\{letter}")))),
            None => return self.fault(at, r"the pattern ends with \"),
        };
        Ok(code)
    }

    /// Reads a class in brackets.
    pub(super) fn class(&mut self) -> Parsed<()> {
        let at = self.at;
        self.at += 1;
        let mut text = if self.eat("^") { "[^" } else { "[" }.to_string();
        let mut is_first = true;
        while is_first || !self.rest().starts_with(']') {
            is_first = false;
            if self.rest().is_empty() {
                return self.fault(at, "] is missing");
            }
            text.push_str(&self.class_part(at)?);
        }
        self.at += 1;
        text.push(']');
        self.put(&text, 4);
        Ok(())
    }

    /// Reads a part of a class: a class, a letter or a range.
    fn class_part(&mut self, class: usize) -> Parsed<String> {
        let at = self.at;
        if let Some((name, _)) = self.rest().strip_prefix("[:").and_then(|rest| rest.split_once(":]")) {
            self.at += name.len() + 4;
            if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return self.fault(at, format!("there is no class {}", quote(&format!("[:{name}:]"))));
            }
            return Ok(format!("[:{name}:]"));
        }
        if let Some(group) = self.group()? {
            return Ok(group);
        }
        let first = self.class_letter(class)?;
        let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]") && self.rest().len() > 1;
        let mut last = first;
        if is_range {
            self.at += 1;
            last = self.class_letter(class)?;
        }
        if last < first {
            let range = self.pattern.get(at..self.at).unwrap_or("");
            return self.fault(at, format!("the range {} ends before it starts", quote(range)));
        }
        // Halves of surrogate pairs are no letters.
        let halves = 0xD800..=0xDFFF;
        let first = if halves.contains(&first) { 0xE000 } else { first };
        let last = if halves.contains(&last) { 0xD7FF } else { last };
        Ok(if last < first { NOTHING.into() } else { format!(r"\x{{{first:X}}}-\x{{{last:X}}}") })
    }

    fn class_letter(&mut self, class: usize) -> Parsed<u32> {
        if self.rest().starts_with('\\') {
            return self.code();
        }
        match self.next() {
            Some(letter) => Ok(letter.into()),
            None => self.fault(class, "] is missing"),
        }
    }
}

pub(in super::super) fn no_class(name: &str) -> String {
    format!("there is no class {}", quote(name))
}
