//! StringSplit: the parts of strings between delimiters, and their numbers.
//! <https://onnx.ai/onnx/operators/onnx__StringSplit.html>

use crate::ops::prelude::*;

pub(super) const STRING_SPLIT: Implementation = Implementation::run("StringSplit", &[20], |node| {
    let delimiter = node.optional("delimiter", Node::string)?.unwrap_or_default().to_string();
    let most = node.optional("maxsplit", Node::int)?.and_then(|most| usize::try_from(most).ok());
    Ok(Box::new(StringSplit { delimiter, most }))
});

/// `Y[i.., k]` is part `k` of `X[i..]`, or empty if it has fewer; `Z[i..]` is their number. Where
/// whitespace splits, it is that of Unicode, and there is none at the end of the last part. Where the text is silent, parts are
/// what Python's `str.split` gives: one of `""`, or none if whitespace splits; a negative `maxsplit` is none.
#[derive(Debug)]
struct StringSplit {
    /// Empty if whitespace splits.
    delimiter: String,
    /// The most places at which a string is split.
    most: Option<usize>,
}

/// A part of a string, by its bytes.
type Part = std::ops::Range<usize>;

impl StringSplit {
    /// Calls `each` with the parts of a string in order.
    fn parts(&self, text: &str, mut each: impl FnMut(Part) -> Result<()>) -> Result<()> {
        let most = self.most.unwrap_or(usize::MAX);
        let mut start = 0;
        if !self.delimiter.is_empty() {
            for (at, delimiter) in text.match_indices(&self.delimiter).take(most) {
                each(start..at)?;
                start = at + delimiter.len();
            }
            return each(start..text.len());
        }
        let text = text.trim_end();
        let mut rest = text.trim_start();
        for _ in 0..most {
            start = text.len() - rest.len();
            let Some(len) = rest.find(char::is_whitespace) else { break };
            each(start..start + len)?;
            rest = rest.get(len..).unwrap_or("").trim_start();
        }
        if rest.is_empty() { Ok(()) } else { each(text.len() - rest.len()..text.len()) }
    }
}

impl Operator for StringSplit {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        let mut lookout = call.lookout();
        let mut counts = call.output::<i64>(x.shape())?;
        let mut most = 0;
        for (count, text) in counts.elements_mut::<i64>()?.iter_mut().zip(x.strings()?) {
            call.charge(2 * text.len() as u64)?;
            lookout.after(DType::String.size())?;
            *count = 0;
            self.parts(text, |part| {
                *count += 1;
                Ok(lookout.after(self.delimiter.len() + part.len())?)
            })?;
            most = most.max(*count as usize);
        }
        // Parts are views into the text of the input.
        let size = DType::String.size();
        let mut parts = call.output_like(x, shape_of([x.shape(), &[most]]))?;
        kernels::fill(&[0], parts.bytes_mut(), call.resources())?;
        let rows = parts.bytes_mut().chunks_exact_mut((most * size).max(1));
        for ((row, text), view) in rows.zip(x.strings()?).zip(x.bytes().chunks_exact(size)) {
            lookout.after(row.len())?;
            let mut places = row.chunks_exact_mut(size);
            self.parts(text, |part| {
                if let Some(place) = places.next() {
                    lookout.after(size + part.len())?;
                    view_part(view, part, place);
                }
                Ok(())
            })?;
        }
        Ok([parts.finish().into(), counts.finish().into()].into())
    }

    /// Only the run knows how many parts the string with the most of them has.
    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(dims) = facts.dims(0) {
            facts.give(0, [dims, &[Dim::Unknown]].concat());
            facts.give(1, dims);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, run, string, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn text(shape: &[usize], strings: &[&str]) -> Value {
        Tensor::from_strings(shape, strings).unwrap().into()
    }

    /// The parts of each string, and empty strings up to the most of them.
    fn splits(delimiter: &str, most: Option<i64>, given: &[&str], want: &[&[&str]]) {
        let longest = want.iter().map(|parts| parts.len()).max().unwrap_or(0);
        let all: Vec<&str> = want.iter().flat_map(|parts| (0..longest).map(|k| *parts.get(k).unwrap_or(&""))).collect();
        let counts: Vec<i64> = want.iter().map(|parts| parts.len() as i64).collect();
        let want = || [text(&[given.len(), longest], &all), tensor(&[given.len()], counts.clone())];
        let x = text(&[given.len()], given);
        match most {
            Some(most) => run("StringSplit", 20, [string("delimiter", delimiter), int("maxsplit", most)], [&x]),
            None => run("StringSplit", 20, [string("delimiter", delimiter)], [&x]),
        }
        .gives_all(want());
    }

    #[test]
    fn at_a_delimiter() {
        splits(
            "--",
            None,
            &["a--b", "--", "a-b", "", "a---b"],
            &[&["a", "b"], &["", ""], &["a-b"], &[""], &["a", "-b"]],
        );
        splits(".", Some(1), &["a.b.c", ".b", "c"], &[&["a", "b.c"], &["", "b"], &["c"]]);
        splits(".", Some(0), &["a.b"], &[&["a.b"]]);
        splits(".", Some(-1), &["a.b.c"], &[&["a", "b", "c"]]);
        splits(" ", None, &[" a  b"], &[&["", "a", "", "b"]]);
        splits("é", None, &["aébéé", "ü"], &[&["a", "b", "", ""], &["ü"]]);
    }

    #[test]
    fn at_whitespace() {
        splits("", None, &[" a  b ", "c\t\nd\u{a0}e\u{3000}", "", " "], &[&["a", "b"], &["c", "d", "e"], &[], &[]]);
        splits("", Some(1), &["  a  b  c ", " a ", "a b "], &[&["a", "b  c"], &["a"], &["a", "b"]]);
        splits("", Some(0), &["  a b "], &[&["a b"]]);
        let ones = [text(&[1, 2, 1], &["a", "b"]), tensor(&[1, 2], [1i64, 1])];
        run("StringSplit", 20, [], [&text(&[1, 2], &["a", "b"])]).gives_all(ones);
        run("StringSplit", 20, [], [&text(&[], &["a b"])]).gives_all([text(&[2], &["a", "b"]), tensor(&[], [2i64])]);
        run("StringSplit", 20, [], [&text(&[0], &[])]).gives_all([text(&[0, 0], &[]), tensor(&[0], [0i64; 0])]);
    }

    #[test]
    fn shapes() {
        infer("StringSplit", 20, [], ["string[N, 3]"]).gives_all(["[N, 3, ?]", "[N, 3]"]);
        infer("StringSplit", 20, [], ["string[]"]).gives_all(["[?]", "[]"]);
        infer("StringSplit", 20, [], ["string"]).gives_all(["", ""]);
    }
}
