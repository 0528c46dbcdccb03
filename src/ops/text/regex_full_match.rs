//! RegexFullMatch: whether whole strings match a regular expression.
//! <https://onnx.ai/onnx/operators/onnx__RegexFullMatch.html>

use super::re2::{Fault, NESTING, no_class, translate};
use crate::ops::prelude::*;
use regex::bytes::{Regex, RegexBuilder};

pub(super) const REGEX_FULL_MATCH: Implementation = Implementation::run("RegexFullMatch", &[20], load);

/// `Y = X matches pattern from its first to its last letter`, in the syntax of RE2
#[derive(Debug)]
struct RegexFullMatch {
    regex: Regex,
    /// Upper bound on the steps for a byte.
    steps: usize,
    /// Bytes of memory for a run.
    memory: usize,
}

/// Bytes that a program of `regex` may take: the least that is enough. It takes time to try.
const PROGRAMS: [usize; 4] = [64 << 10, 512 << 10, 4 << 20, 32 << 20];

/// Bytes that making a program takes, in those that it may take.
const MAKING: usize = 4;

/// Bytes for a letter of a pattern, and for a class of Unicode, before there is a program.
const LETTER: usize = 640;
const CLASS: usize = 64 << 10;

/// Bytes that a run remembers of what it has found.
const FOUND: usize = 1 << 20;

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let pattern = node.string("pattern")?;
    let refused = |Fault { at, why }: Fault| {
        let place = pattern.get(..at).unwrap_or("").chars().count();
        let text = format!("pattern {} is refused at character {place}: {why}", quote(pattern));
        Error::model(text).attribute("pattern").position(vec![place])
    };
    // A letter becomes an escape of up to ten.
    node.bill(pattern.len().saturating_mul(LETTER))?;
    let translated = translate(pattern).map_err(refused)?;
    let whole = format!(r"\A(?:{})\z", translated.text);
    for bytes in PROGRAMS {
        node.bill(MAKING * bytes + CLASS * translated.classes)?;
        // A group makes up to four levels.
        let nesting = 4 * NESTING as u32 + 16;
        let made = RegexBuilder::new(&whole).size_limit(bytes).dfa_size_limit(FOUND).nest_limit(nesting).build();
        match made {
            Ok(regex) => {
                let memory = 2 * FOUND + MAKING * bytes;
                return Ok(Box::new(RegexFullMatch { regex, steps: translated.size, memory }));
            }
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => {
                let unknown = |name: &str| Regex::new(&format!(r"\p{{sc={name}}}")).is_err();
                let script = translated.scripts.iter().find(|(name, _)| unknown(name));
                let Some((name, at)) = script else {
                    return Err(Error::bug(&format!("a pattern of RE2 was written as another: {error}")));
                };
                return Err(refused(Fault { at: *at, why: no_class(name) }));
            }
        }
    }
    let most = PROGRAMS.last().unwrap_or(&0);
    Err(Error::unsupported(format!("pattern makes a program of more than {most} bytes")).attribute("pattern"))
}

impl Operator for RegexFullMatch {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let mut output = call.output::<bool>(x.shape())?;
        // A copy has no memory of its own yet, and gives it back after the run.
        let (regex, _memory) = (self.regex.clone(), call.context().memory.count(self.memory)?);
        let mut lookout = call.lookout();
        for (to, text) in output.elements_mut::<bool>()?.iter_mut().zip(x.strings()?) {
            let steps = self.steps.saturating_mul(text.len());
            call.charge(steps as u64)?;
            lookout.after((DType::String.size() + text.len()).saturating_add(steps / 4))?;
            *to = regex.is_match(text.as_bytes());
        }
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, run, string};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn matches(pattern: &str, texts: &[&str]) -> Vec<bool> {
        let x: Value = Tensor::from_strings(&[texts.len()], texts).unwrap().into();
        let y = crate::ops::testing::outputs("RegexFullMatch", 20, [string("pattern", pattern)], [&x]).remove(0);
        y.tensor().unwrap().as_slice::<bool>().unwrap().to_vec()
    }

    #[track_caller]
    fn all(pattern: &str, yes: &[&str], no: &[&str]) {
        assert_eq!(matches(pattern, yes), vec![true; yes.len()], "{pattern} {yes:?}");
        assert_eq!(matches(pattern, no), vec![false; no.len()], "{pattern} {no:?}");
    }

    #[track_caller]
    fn refused(pattern: &str, place: usize, why: &str) {
        let x: Value = Tensor::from_strings(&[1], ["a"]).unwrap().into();
        let error = run("RegexFullMatch", 20, [string("pattern", pattern)], [&x])
            .fails(&format!("is refused at character {place}: {why}"));
        assert_eq!(error.place().position.as_deref(), Some(&[place][..]));
    }

    #[test]
    fn whole_texts() {
        all("a", &["a"], &["aa", "ba", "a\n", ""]);
        all("a|ab", &["a", "ab"], &["b", "abb"]);
        all("a*?", &["", "a", "aaa"], &["b"]);
        all("", &[""], &["a", "\n"]);
        all("^a$", &["a"], &["a\n", "\na"]);
        all("(?m)a$\n^b", &["a\nb"], &["ab"]);
        all(".", &["a", "é", "😀"], &["\n", "", "ab"]);
        all("(?s).", &["\n"], &[""]);
        all("[^a]", &["\n", "b", "é"], &["a"]);
        all("(?i)straße", &["STRAßE"], &["STRASSE"]);
        all(r"(a|b(?P<x>c)(?<y>d)?)+", &["abcabcd"], &["", "bd"]);
        // Of equal names the first one counts in RE2.
        all("(?P<a>x)(?P<a>y)", &["xy"], &["xx", "x"]);
        all("a{2,3}b{2}c{1,}", &["aabbc", "aaabbccc"], &["abbc", "aabb"]);
        all("(?U)a+b*", &["aab"], &["b"]);
        all("(?i)a(?-i)b(?i:c)", &["Abc", "AbC"], &["aBc"]);
        all("a(?i-i:b)(?)c", &["abc"], &["aBc"]);
    }

    #[test]
    fn classes_of_ascii() {
        all(r"\d", &["7"], &["٣", "a"]);
        all(r"\D", &["٣", "é", "\n"], &["7", "ab"]);
        all(r"\w", &["_", "Z", "0"], &["é", "-"]);
        all(r"\W", &["é", "-", "😀"], &["a"]);
        all(r"\s", &["\t", "\u{c}", " "], &["\u{b}", "\u{a0}"]);
        all(r"[\S]", &["\u{b}", "é"], &[" "]);
        all(r"[\d\-\W]", &["7", "-", "é"], &["a"]);
        all(r"é\bx\b-\B", &["éx-"], &["éx"]);
        all(r"\Bé\B", &["é"], &["e"]);
        all("[[:alpha:][:^ascii:]]", &["a", "é"], &["1"]);
        all(r"(?i)[k]", &["\u{212a}", "K"], &["c"]);
        all(r"(?i)\w\W", &["ſ-"], &["-ſ"]);
    }

    #[test]
    fn classes_of_unicode() {
        all(r"\pL\p{Lu}\p{Greek}", &["éÉω", "aAΩ"], &["éaω", "aAa"]);
        all(r"\PL[\P{Lu}\p{^Han}]", &["1a", "-漢"], &["aa"]);
        all(r"\p{^Lu}", &["a", "1"], &["A"]);
        all(r"\p{Any}\P{Cs}[^\p{Cs}]", &["\n\na"], &["a"]);
        // Code points that are not assigned are in no category of RE2.
        all(r"\pC", &["\u{0}", "\u{ad}", "\u{e000}"], &["\u{378}", "a"]);
        all(r"[^\x{D800}]\x{10FFFF}", &["a\u{10ffff}"], &["a"]);
        all(r"a|\x{D800}|[\x{DFFF}]", &["a"], &[""]);
        all(r"[\x{D7FE}-\x{D900}\x{DA00}-\x{E001}]", &["\u{d7ff}", "\u{e001}"], &["\u{e002}"]);
        refused(r"é\p{Gerek}", 1, "there is no class \"Gerek\"");
        refused(r"\p{Alphabetic=Yes}", 0, "there is no class \"Alphabetic=Yes\"");
        refused(r"\pX", 0, "there is no class \"X\"");
        refused(r"\p{L", 0, "} is missing");
    }

    #[test]
    fn letters_that_are_operators_elsewhere() {
        all("[[a]", &["[", "a"], &["&"]);
        all("[a&&b~~c!--d]", &["a", "b", "&", "~", "c", "!", "-"], &["]", ".", "^"]);
        all("[]a]", &["]", "a"], &["b"]);
        all("[^]a]", &["b"], &["]", "a"]);
        all("[a-]", &["a", "-"], &["b"]);
        all("[[:x]", &["[", ":", "x"], &["a"]);
        all("a{,2}", &["a{,2}"], &["aa"]);
        all("{{1}a{b}]}", &["{a{b}]}"], &[""]);
        all("a{01}", &["a{01}"], &["a"]);
        all("a # b", &["a # b"], &["a"]);
        all(r"\<\-\/\ \]", &["<-/ ]"], &[""]);
        all(r"\_[\w\_-]", &["_-", "__"], &["_", r"\_-"]);
        all(r"\Qa.b\*\E+c\Q(", &["a.b\\*c(", "a.b\\**c("], &["aab*c("]);
        all(r"\07\101\x41\x{00041}\a\f\t\n\r\v", &["\u{7}AAA\u{7}\u{c}\t\n\r\u{b}"], &[""]);
        all(r"[\101-\x{43}\n]", &["A", "C", "\n"], &["D"]);
    }

    #[test]
    fn what_re2_refuses() {
        refused(r"(a)é\1", 4, r"RE2 has no references to groups, such as \1");
        refused(r"\9", 0, "RE2 has no references to groups");
        refused(r"a\C", 1, r"\C is a byte");
        refused(r"a\Z", 1, "RE2 has no escape");
        refused(r"a\E", 1, "RE2 has no escape");
        refused(r"[\b]", 1, "RE2 has no escape");
        refused(r"\é", 0, "RE2 has no escape");
        refused("a\\", 1, r"the pattern ends with \");
        refused(r"\x{110000}", 0, r"\x needs two hexadecimal digits, or some in braces, up to 10FFFF");
        refused(r"\x4", 0, r"\x needs");
        refused("a(b", 1, "the group is not closed");
        refused("(a(b)", 0, "the group is not closed");
        refused("a)(b", 1, "no group is open");
        refused("(*a)", 1, "there is nothing to repeat");
        refused("a|+", 2, "there is nothing to repeat");
        refused("a**", 2, "a repetition can't be repeated");
        refused("a{2}{3}", 4, "a repetition can't be repeated");
        refused("a{1001}", 1, "a part repeats at most 1000 times");
        refused("a{3,2}", 1, "{3,2} has less at most than at least");
        refused("x[a", 1, "] is missing");
        refused("[]", 0, "] is missing");
        refused("[z-a]", 1, "the range \"z-a\" ends before it starts");
        refused(r"[a-\d]", 3, "RE2 has no escape");
        refused("[[:letter:]]", 1, "there is no class \"[:letter:]\"");
        refused("(?=a)", 0, "RE2 has no such group");
        refused("(?x)a", 0, "RE2 has no such group");
        refused("(?i-)a", 0, "RE2 has no such group");
        refused("(?P<a-b>x)", 0, "the name of the group");
        refused(&format!("{}{}", "(".repeat(25), ")".repeat(25)), 24, "more than 24 groups are in each other");
    }

    /// On less stack than loads and runs may need.
    #[test]
    fn deep_patterns() {
        let deep = || {
            let deep = format!("{}a{}", "(x|b".repeat(24), "c?)*".repeat(24));
            all(&deep, &["", "xx", "xbcx", &format!("{}acc", "b".repeat(24))], &["a", "ba"]);
        };
        let stack = if cfg!(debug_assertions) { 768 << 10 } else { 128 << 10 };
        std::thread::Builder::new().stack_size(stack).spawn(deep).unwrap().join().unwrap();
    }

    #[test]
    fn patterns_take_what_loads_may() {
        let x: Value = Tensor::from_strings(&[1], ["a"]).unwrap().into();
        let run = |pattern: &str| run("RegexFullMatch", 20, [string("pattern", pattern)], [&x]);
        run(&format!("a|{}", r"\p{L}{0,50}")).gives([true]);
        let error = run("((a{1000}){1000}){1000}").fails("loading the model takes");
        assert_eq!(error.place().limit, Some("load_bytes"));
        run(&r"\pL".repeat(2000)).fails("loading the model takes");
        run(&"a".repeat(200_000)).fails("loading the model takes");
    }

    #[test]
    fn shapes() {
        infer("RegexFullMatch", 20, [string("pattern", "a*")], ["string[N, 3]"]).gives("[N, 3]");
        infer("RegexFullMatch", 20, [], ["string[N, 3]"]).fails("\"pattern\" of kind STRING is not given");
    }
}
