//! Patterns in the syntax of RE2, as the crate `regex` writes them: <https://github.com/google/re2/wiki/Syntax>.
//!
//! Both find what they find in linear time, and know the same operators. They differ in details: `\d`, `\w`, `\s` and `\b`
//! are ASCII in RE2; `\Q..\E` and octal numbers are RE2's alone; `[[a]`, `[a&&b]` and `a{,2}` are letters there, and operators
//! or faults here. So each part is read as RE2 reads it, and written so that it has one meaning. Groups don't capture, and
//! whether operators are greedy is dropped: neither matters to whether a whole text matches.

mod classes;

pub(super) use classes::no_class;

/// A pattern as `regex` writes it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Translated {
    pub(super) text: String,
    /// Upper bound on the places of the pattern at which a match can be at one time.
    pub(super) size: usize,
    /// The names of scripts in it, and where: only `regex` knows whether they exist.
    pub(super) scripts: Vec<(String, usize)>,
    /// The number of classes of Unicode in it.
    pub(super) classes: usize,
}

/// What is wrong with a pattern, and at which byte.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) why: String,
}

/// The most groups in groups: `regex` recurses over them.
pub(super) const NESTING: usize = 24;

/// The most repetitions that RE2 counts.
const REPEATS: u32 = 1000;

/// What nothing matches.
const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// What a repetition would repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    Part,
    Repetition,
}

pub(super) fn translate(pattern: &str) -> Result<Translated, Fault> {
    let mut translator = Translator {
        pattern,
        at: 0,
        done: Translated::default(),
        before: Before::Nothing,
        groups: vec![Group::default()],
    };
    while let Some(letter) = translator.peek() {
        translator.part(letter)?;
    }
    let Translator { mut done, mut groups, .. } = translator;
    match (groups.pop(), groups.pop()) {
        (Some(whole), None) => done.size = whole.size().max(1),
        (open, _) => {
            let at = open.map_or(0, |group| group.at);
            return Err(Fault { at, why: "the group is not closed".into() });
        }
    }
    Ok(done)
}

/// A group that is open.
#[derive(Debug, Default)]
struct Group {
    at: usize,
    /// The sizes of the parts, and of the last one.
    parts: usize,
    last: usize,
}

impl Group {
    fn size(&self) -> usize {
        self.parts.saturating_add(self.last)
    }
}

struct Translator<'p> {
    pattern: &'p str,
    at: usize,
    done: Translated,
    before: Before,
    /// The whole pattern, and the open groups in it.
    groups: Vec<Group>,
}

impl<'p> Translator<'p> {
    fn rest(&self) -> &'p str {
        self.pattern.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    /// Reads `text` if it comes next.
    fn eat(&mut self, text: &str) -> bool {
        let comes = self.rest().starts_with(text);
        self.at += if comes { text.len() } else { 0 };
        comes
    }

    fn fault<T>(&self, at: usize, why: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { at, why: why.into() })
    }

    /// Writes a part that can be repeated.
    fn put(&mut self, text: &str, size: usize) {
        self.done.text.push_str(text);
        self.before = Before::Part;
        if let Some(group) = self.groups.last_mut() {
            (group.parts, group.last) = (group.size(), size);
        }
    }

    /// Writes a letter that stands for itself.
    fn letter(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(letter) => self.put(&format!(r"\x{{{code:X}}}"), letter.len_utf8()),
            // A half of a surrogate pair is no letter of any text.
            None => self.put(NOTHING, 1),
        }
    }

    fn part(&mut self, letter: char) -> Result<(), Fault> {
        let at = self.at;
        match letter {
            '\\' => return self.escape(),
            '(' => return self.open(),
            '[' => return self.class(),
            '{' => match self.counts()? {
                Some((least, most)) => return self.repeat(at, &counted(least, most), most.unwrap_or(least)),
                None => self.letter('{'.into()),
            },
            _ => {}
        }
        self.at += if letter == '{' { 1 } else { letter.len_utf8() };
        match letter {
            ')' => {
                if self.groups.len() < 2 {
                    return self.fault(at, "no group is open");
                }
                let size = self.groups.pop().map_or(0, |group| group.size());
                self.put(")", size.saturating_add(1));
            }
            '|' => {
                self.put("|", 1);
                self.before = Before::Nothing;
            }
            '*' | '+' | '?' => self.repeat(at, letter.encode_utf8(&mut [0; 4]), 1)?,
            '^' | '$' => self.put(letter.encode_utf8(&mut [0; 4]), 1),
            '.' => self.put(".", 4),
            '{' => {}
            letter => self.letter(letter.into()),
        }
        Ok(())
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`, if it is one: else the brace is a letter.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, Fault> {
        let at = self.at;
        let Some(inner) = self.rest().strip_prefix('{').and_then(|rest| Some(rest.split_once('}')?.0)) else {
            return Ok(None);
        };
        let number = |digits: &str| {
            let plain =
                digits.bytes().all(|digit| digit.is_ascii_digit()) && !(digits.len() > 1 && digits.starts_with('0'));
            digits.parse::<u32>().ok().filter(|number| plain && *number < 1_000_000_000)
        };
        let (least, most) = match inner.split_once(',') {
            None => (number(inner), number(inner).map(Some)),
            Some((least, "")) => (number(least), Some(None)),
            Some((least, most)) => (number(least), number(most).map(Some)),
        };
        let (Some(least), Some(most)) = (least, most) else { return Ok(None) };
        self.at += inner.len() + 2;
        if least > REPEATS || most.is_some_and(|most| most > REPEATS) {
            return self.fault(at, format!("a part repeats at most {REPEATS} times"));
        }
        if most.is_some_and(|most| most < least) {
            return self.fault(at, format!("{{{inner}}} has less at most than at least"));
        }
        Ok(Some((least, most)))
    }

    /// Writes a repetition of the last part, at most so often beside loops.
    fn repeat(&mut self, at: usize, text: &str, most: u32) -> Result<(), Fault> {
        match self.before {
            Before::Nothing => return self.fault(at, "there is nothing to repeat"),
            Before::Repetition => return self.fault(at, "a repetition can't be repeated without a group around it"),
            Before::Part => {}
        }
        self.eat("?");
        self.done.text.push_str(text);
        self.before = Before::Repetition;
        if let Some(group) = self.groups.last_mut() {
            group.last = group.last.saturating_mul(most.max(1) as usize);
        }
        Ok(())
    }

    /// Reads `(`, `(?:`, `(?P<name>`, `(?<name>`, `(?flags:` or `(?flags)`.
    fn open(&mut self) -> Result<(), Fault> {
        let at = self.at;
        self.at += 1;
        let mut text = "(?:".to_string();
        if self.eat("?P<") || self.eat("?<") {
            let name = self.rest().split_once('>').map_or(self.rest(), |(name, _)| name);
            self.at += name.len();
            let fits = !name.is_empty() && name.chars().all(|letter| letter == '_' || letter.is_alphanumeric());
            if !fits || !self.eat(">") {
                return self.fault(at, "the name of the group is not made of letters, digits and _");
            }
        } else if self.eat("?") {
            let (flags, ends) = self.flags(at)?;
            text = format!("(?{flags}{}", if ends { ")" } else { ":" });
            if ends {
                // `(?)` has no meaning.
                self.done.text.push_str(if flags.is_empty() { "" } else { &text });
                self.before = Before::Nothing;
                return Ok(());
            }
        }
        if self.groups.len() > NESTING {
            return self.fault(at, format!("more than {NESTING} groups are in each other"));
        }
        self.done.text.push_str(&text);
        self.groups.push(Group { at, ..Group::default() });
        self.before = Before::Nothing;
        Ok(())
    }

    /// Reads flags, and whether they hold for what comes after the group, not inside of it. The last one counts.
    fn flags(&mut self, at: usize) -> Result<(String, bool), Fault> {
        let mut set: [Option<bool>; 3] = [None; 3];
        let (mut on, mut bare) = (true, false);
        let ends = loop {
            let letter = self.next();
            let flag = letter.and_then(|letter| "imsU".find(letter));
            match letter {
                Some('-') if on => (on, bare) = (false, true),
                Some(':' | ')') if !bare => break letter == Some(')'),
                _ if flag.is_some() => {
                    // Greed, the fourth flag, doesn't matter.
                    if let Some(flag) = flag.and_then(|flag| set.get_mut(flag)) {
                        *flag = Some(on);
                    }
                    bare = false;
                }
                _ => return self.fault(at, "RE2 has no such group: its flags are i, m, s, U"),
            }
        };
        let named = |on| "ims".chars().zip(set).filter(move |(_, flag)| *flag == Some(on)).map(|(name, _)| name);
        let (on, off): (String, String) = (named(true).collect(), named(false).collect());
        Ok((if off.is_empty() { on } else { format!("{on}-{off}") }, ends))
    }

    /// Reads an escape outside of brackets.
    fn escape(&mut self) -> Result<(), Fault> {
        let at = self.at;
        if self.eat(r"\Q") {
            while !self.rest().is_empty() && !self.eat(r"\E") {
                if let Some(letter) = self.next() {
                    self.letter(letter.into());
                }
            }
            return Ok(());
        }
        for (escape, text) in [(r"\b", r"(?-u:\b)"), (r"\B", r"(?-u:\B)"), (r"\A", r"\A"), (r"\z", r"\z")] {
            if self.eat(escape) {
                self.put(text, 1);
                return Ok(());
            }
        }
        if self.rest().starts_with(r"\C") {
            return self.fault(at, r"\C is a byte: only whole letters can match");
        }
        match self.group()? {
            Some(class) => self.put(&class, 4),
            None => {
                let code = self.code()?;
                self.letter(code);
            }
        }
        Ok(())
    }
}

/// A counted repetition.
fn counted(least: u32, most: Option<u32>) -> String {
    match most {
        Some(most) => format!("{{{least},{most}}}"),
        None => format!("{{{least},}}"),
    }
}
