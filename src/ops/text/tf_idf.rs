//! TfIdfVectorizer: how often n-grams of a pool occur in sequences, maybe weighted.
//! <https://onnx.ai/onnx/operators/onnx__TfIdfVectorizer.html>

use crate::ops::prelude::*;
use kernels::Lookout;
use kernels::grams::Grams;
use kernels::hashed::NumberMap;
use std::collections::HashMap;

pub(super) const TF_IDF_VECTORIZER: Implementation = Implementation::run("TfIdfVectorizer", &[9], load);

/// `Y[n, t] = sum over the n-grams g with ngram_indexes[g] = t of weight[g] * count[g]`, added up in double precision and
/// rounded once. The count is how often the n-gram is in row `n` with the same number of other tokens between its own, from 0
/// up to `max_skip_count`; at most 1 if the mode is IDF. There are no weights if it is TF.
#[derive(Debug)]
struct TfIdfVectorizer {
    tokens: Tokens,
    grams: Grams,
    skips: usize,
    /// For each n-gram its place in the output, its number in `grams`, and its weight; by places.
    terms: Vec<(usize, usize, f32)>,
    /// The number of places.
    width: usize,
    /// An n-gram counts once.
    once: bool,
}

/// The tokens of the pool, numbered.
#[derive(Debug)]
enum Tokens {
    Ints(NumberMap<i64, u32>),
    Strings(HashMap<String, u32>),
}

/// The number of all tokens that aren't in the pool.
const OTHER: u32 = u32::MAX;

impl Tokens {
    /// The numbers of the tokens from `first` on. Text counts as work.
    fn number(
        &self,
        call: &Call<'_>,
        x: &Tensor,
        first: usize,
        out: &mut [u32],
        lookout: &mut Lookout<'_>,
    ) -> Result<()> {
        match (self, x.dtype()) {
            (Tokens::Ints(numbers), DType::Int32) => of_ints(numbers, x.as_slice::<i32>()?, first, out, lookout),
            (Tokens::Ints(numbers), _) => of_ints(numbers, x.as_slice::<i64>()?, first, out, lookout),
            (Tokens::Strings(numbers), _) => {
                let size = DType::String.size();
                for (to, view) in out.iter_mut().zip(x.bytes().chunks_exact(size).skip(first)) {
                    let token = x.viewed(view);
                    call.charge(token.len() as u64)?;
                    lookout.after(size + token.len())?;
                    *to = numbers.get(token).copied().unwrap_or(OTHER);
                }
                Ok(())
            }
        }
    }

    /// The number of a token of the pool, which is a new one if it hasn't any.
    fn add(&mut self, pool: Pool<'_>, k: usize) -> u32 {
        match (self, pool) {
            (Tokens::Ints(numbers), Pool::Ints(pool)) => {
                let new = numbers.len() as u32;
                *numbers.entry(pool.get(k).copied().unwrap_or_default()).or_insert(new)
            }
            (Tokens::Strings(numbers), Pool::Strings(pool)) => {
                let (new, token) = (numbers.len() as u32, pool.get(k).map_or("", String::as_str));
                match numbers.get(token) {
                    Some(number) => *number,
                    None => *numbers.entry(token.to_string()).or_insert(new),
                }
            }
            _ => OTHER,
        }
    }
}

fn of_ints<T: Copy + Into<i64>>(
    numbers: &NumberMap<i64, u32>,
    tokens: &[T],
    first: usize,
    out: &mut [u32],
    lookout: &mut Lookout<'_>,
) -> Result<()> {
    let mut out = out.iter_mut();
    for block in lookout.blocks(tokens.get(first..first + out.len()).unwrap_or(&[])) {
        for (token, to) in block?.iter().zip(&mut out) {
            *to = numbers.get(&(*token).into()).copied().unwrap_or(OTHER);
        }
    }
    Ok(())
}

/// The tokens of all n-grams, one after the other.
#[derive(Debug, Clone, Copy)]
enum Pool<'a> {
    Ints(&'a [i64]),
    Strings(&'a [String]),
}

impl<'a> Pool<'a> {
    /// A list without entries is as if it weren't given.
    fn of(node: &Node<'a>) -> Result<Pool<'a>> {
        let ints = node.optional("pool_int64s", Node::ints)?.filter(|pool| !pool.is_empty());
        let strings = node.optional("pool_strings", Node::strings)?.filter(|pool| !pool.is_empty());
        let which = match (ints, strings) {
            (Some(ints), None) => return Ok(Pool::Ints(ints)),
            (None, Some(strings)) => return Ok(Pool::Strings(strings)),
            (Some(_), _) => "pool_int64s and pool_strings are both",
            (None, _) => "neither pool_int64s nor pool_strings is",
        };
        Err(Error::model(format!("{which} given: one is needed")).attribute("pool_strings"))
    }

    fn len(self) -> usize {
        match self {
            Pool::Ints(pool) => pool.len(),
            Pool::Strings(pool) => pool.len(),
        }
    }

    /// Upper bound on the memory of what is made of it.
    fn bytes(self) -> usize {
        let text = if let Pool::Strings(pool) = self { pool.iter().map(|token| 96 + token.len()).sum() } else { 0 };
        text + self.len() * (96 + Grams::TOKEN + 2 * size_of::<(usize, usize, f32)>())
    }
}

/// The n-grams of a pool: for each its length, and where it starts.
fn grams(node: &Node<'_>, pool: Pool<'_>) -> Result<impl Iterator<Item = (usize, usize)>> {
    let fault = |k: usize, start: i64, why: String| {
        let text = format!("ngram_counts[{k}] is {start}: {why}");
        Err(Error::model(text).attribute("ngram_counts").value(start).position(vec![k]))
    };
    let starts = node.ints("ngram_counts")?;
    if starts.is_empty() {
        return Err(Error::model("ngram_counts is empty: where the n-grams of each length start is needed")
            .attribute("ngram_counts"));
    }
    let (mut parts, mut before) = (Vec::with_capacity(starts.len()), 0);
    for (k, start) in starts.iter().enumerate() {
        let last = if k == 0 { 0 } else { pool.len() };
        let Some(place) = usize::try_from(*start).ok().filter(|place| (before..=last).contains(place)) else {
            return fault(
                k,
                *start,
                if last == 0 { "it must be 0".into() } else { format!("allowed {before}..={last}") },
            );
        };
        parts.push(place);
        before = place;
    }
    for (k, start) in starts.iter().enumerate() {
        let end = parts.get(k + 1).copied().unwrap_or(pool.len());
        let count = end - parts.get(k).copied().unwrap_or(end);
        if count % (k + 1) != 0 {
            return fault(k, *start, format!("the {count} entries from there on are no {}-grams", k + 1));
        }
    }
    let ends = parts.clone().into_iter().skip(1).chain([pool.len()]);
    let ranges = parts.into_iter().zip(ends).enumerate();
    Ok(ranges.flat_map(|(k, (start, end))| (start..end).step_by(k + 1).map(move |at| (k + 1, at))))
}

/// An attribute that is a number, and its lower bound.
fn at_least(node: &Node<'_>, name: &str, least: usize) -> Result<usize> {
    let given = node.int(name)?;
    usize::try_from(given).ok().filter(|given| *given >= least).ok_or_else(|| {
        Error::model(format!("{name} is {given}: it must be at least {least}")).attribute(name).value(given)
    })
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let once = node.choice("mode", &[("TF", false), ("IDF", true), ("TFIDF", false)])?;
    let weighted = node.string("mode")? != "TF";
    let least = at_least(node, "min_gram_length", 1)?;
    let (most, skips) = (at_least(node, "max_gram_length", least)?, at_least(node, "max_skip_count", 0)?);
    let pool = Pool::of(node)?;
    let places = node.ints("ngram_indexes")?;
    let weights = node.optional("weights", Node::floats)?.filter(|weights| !weights.is_empty());
    let count = grams(node, pool)?.count();
    let lens = [("ngram_indexes", places.len()), ("weights", weights.map_or(count, <[f32]>::len))];
    if let Some((name, len)) = lens.into_iter().find(|(_, len)| *len != count) {
        let text = format!("{name} has {len} entries, and the pool has {count} n-grams: they must be equally many");
        return Err(Error::model(text).attribute(name).size(len));
    }
    node.bill(pool.bytes())?;
    let mut tokens = match pool {
        Pool::Ints(_) => Tokens::Ints(NumberMap::default()),
        Pool::Strings(_) => Tokens::Strings(HashMap::new()),
    };
    let (mut tree, mut terms, mut width) = (Grams::new(), Vec::with_capacity(count), 0);
    for (k, ((len, at), place)) in grams(node, pool)?.zip(places).enumerate() {
        let Some(place) = usize::try_from(*place).ok().filter(|place| *place < usize::MAX) else {
            let error = Error::model(format!("ngram_indexes[{k}] is {place}: it is a place in the output"));
            return Err(error.attribute("ngram_indexes").value(*place).position(vec![k]));
        };
        width = width.max(place + 1);
        if (least..=most).contains(&len) {
            let weight = weights.and_then(|weights| weights.get(k)).filter(|_| weighted).map_or(1.0, |weight| *weight);
            terms.push((place, tree.add((at..at + len).map(|at| tokens.add(pool, at))), weight));
        }
    }
    terms.sort_by_key(|(place, ..)| *place);
    Ok(Box::new(TfIdfVectorizer { tokens, grams: tree, skips, terms, width, once }))
}

impl TfIdfVectorizer {
    /// Fails unless the input is a list or rows of tokens of the pool's type.
    fn check(&self, facts: &Inference<'_>) -> Result<()> {
        facts.ranked(0, 1..=2)?;
        let (pool, what, strings) = match self.tokens {
            Tokens::Ints(_) => ("pool_int64s", "integers", false),
            Tokens::Strings(_) => ("pool_strings", "strings", true),
        };
        match facts.input_type(0) {
            Some(input) if (*input == DType::String.into()) != strings => {
                let text = format!("{pool} is given, but \"X\" is {input}: {what} are needed");
                Err(Error::model(text).attribute(pool))
            }
            _ => Ok(()),
        }
    }
}

impl Operator for TfIdfVectorizer {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(|facts| self.check(facts))?;
        let x = call.tensor(0)?;
        let (rows, len) = x.shape().split_at(x.rank().saturating_sub(1));
        let len = len.first().copied().unwrap_or(0);
        let steps = self.grams.steps(len, self.skips).saturating_add(self.terms.len()).saturating_add(len);
        call.charge(kernels::volume(steps, rows) as u64)?;
        let mut output = call.output::<f32>(&shape_of([rows, &[self.width]]))?;
        kernels::fill(&[0], output.bytes_mut(), call.resources())?;
        let (mut row, mut counts) = (call.scratch::<u32>(len)?, call.scratch::<u64>(self.grams.len())?);
        let (row, counts) = (row.elements_mut::<u32>(), counts.elements_mut::<u64>());
        let mut lookout = call.lookout();
        for (at, to) in output.elements_mut::<f32>()?.chunks_exact_mut(self.width.max(1)).enumerate() {
            self.tokens.number(call, x, at * len, row, &mut lookout)?;
            lookout.after(size_of_val(counts) + size_of_val(to))?;
            counts.fill(0);
            self.grams.count(row, self.skips, counts, &mut lookout)?;
            for terms in self.terms.chunk_by(|one, other| one.0 == other.0) {
                lookout.after(size_of_val(terms))?;
                let term = |(_, gram, weight): &(usize, usize, f32)| {
                    let count = counts.get(*gram).copied().unwrap_or(0);
                    f64::from(*weight) * if self.once { count.min(1) } else { count } as f64
                };
                let sum: f64 = terms.iter().map(term).sum();
                if let Some(to) = terms.first().and_then(|(place, ..)| to.get_mut(*place)) {
                    *to = sum as f32;
                }
            }
        }
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        self.check(facts)?;
        if let Some([rows @ .., _]) = facts.dims(0) {
            facts.give(0, [rows, &[Dim::Fixed(self.width)]].concat());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, ints, run, string, strings, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    const NAME: &str = "TfIdfVectorizer";

    type Attributes = [(&'static str, Attribute); 8];

    /// All n-grams of 1 to 2 integers, without skips: 5, 7, (5, 7), (5, 5), (7, 7). Their places are 4, 1, 0, 2, 2.
    fn integers(mode: &str) -> Attributes {
        let weights = ("weights", Attribute::Floats(vec![0.5, 2.0, 3.0, 10.0, 100.0]));
        let [counts, places] = [ints("ngram_counts", &[0, 2]), ints("ngram_indexes", &[4, 1, 0, 2, 2])];
        let [least, most, skips] = [int("min_gram_length", 1), int("max_gram_length", 2), int("max_skip_count", 0)];
        let pool = ints("pool_int64s", &[5, 7, 5, 7, 5, 5, 7, 7]);
        [string("mode", mode), least, most, skips, counts, places, pool, weights]
    }

    fn with(attributes: Attributes, name: &'static str, value: Attribute) -> Attributes {
        attributes.map(|own| if own.0 == name { (name, value.clone()) } else { own })
    }

    #[test]
    fn counts_and_weights() {
        let x = tensor(&[7], [5i64, 7, 5, 5, 5, 7, 9]);
        run(NAME, 9, integers("TF"), [&x]).gives(tensor(&[5], [2f32, 2.0, 2.0, 0.0, 4.0]));
        run(NAME, 9, integers("TFIDF"), [&x]).gives(tensor(&[5], [6f32, 4.0, 20.0, 0.0, 2.0]));
        run(NAME, 9, integers("IDF"), [&x]).gives(tensor(&[5], [3f32, 2.0, 10.0, 0.0, 0.5]));
        let rows = tensor(&[2, 3], [5i32, 7, 7, 1, 1, 5]);
        let want = tensor(&[2, 5], [1f32, 2.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        run(NAME, 9, integers("TF"), [&rows]).gives(want);
        // Rows of more than a block.
        let long = tensor(&[2, 2400], [5i64, 7].repeat(2400));
        run(NAME, 9, integers("TF"), [&long]).gives(tensor(&[2, 5], [1200f32, 1200.0, 0.0, 0.0, 1200.0].repeat(2)));
        run(NAME, 9, integers("TF"), [&tensor(&[2, 0], [0i32; 0])]).gives(tensor(&[2, 5], [0f32; 10]));
        run(NAME, 9, integers("TF"), [&tensor(&[0, 2], [0i32; 0])]).gives(tensor(&[0, 5], [0f32; 0]));
    }

    #[test]
    fn skips_and_lengths() {
        let x = tensor(&[5], [5i64, 7, 5, 7, 7]);
        let skips = |count| with(integers("TF"), "max_skip_count", Attribute::Int(count));
        // (5, 7) at 0-1, 2-3; with one between at 2-4; with two at 0-3; with three at 0-4.
        run(NAME, 9, skips(0), [&x]).gives(tensor(&[5], [2f32, 3.0, 1.0, 0.0, 2.0]));
        run(NAME, 9, skips(1), [&x]).gives(tensor(&[5], [3f32, 3.0, 3.0, 0.0, 2.0]));
        run(NAME, 9, skips(i64::MAX), [&x]).gives(tensor(&[5], [5f32, 3.0, 4.0, 0.0, 2.0]));
        let pairs = with(integers("TF"), "min_gram_length", Attribute::Int(2));
        run(NAME, 9, pairs, [&x]).gives(tensor(&[5], [2f32, 0.0, 1.0, 0.0, 0.0]));
        let ones = with(integers("TF"), "max_gram_length", Attribute::Int(1));
        run(NAME, 9, ones, [&x]).gives(tensor(&[5], [0f32, 3.0, 0.0, 0.0, 2.0]));
    }

    #[test]
    fn equal_ngrams_count_each() {
        let twice = with(integers("TFIDF"), "pool_int64s", Attribute::Ints(vec![5, 5, 5, 7, 5, 7, 7, 7]));
        run(NAME, 9, twice, [&tensor(&[2], [5i64, 7])]).gives(tensor(&[5], [3f32, 2.0, 10.0, 0.0, 0.5]));
    }

    #[test]
    fn words() {
        let pool = Attribute::Strings(["a", "bc", "a", "bc", "a", "", "ü", "a"].map(Into::into).to_vec());
        let words =
            || integers("TF").map(|own| if own.0 == "pool_int64s" { ("pool_strings", pool.clone()) } else { own });
        let x: Value = Tensor::from_strings(&[5], ["ü", "a", "bc", "ab", "A"]).unwrap().into();
        run(NAME, 9, words(), [&x]).gives(tensor(&[5], [1f32, 1.0, 1.0, 0.0, 1.0]));
        let rows: Value = Tensor::from_strings(&[2, 2], ["a", "bc", "ü", "a"]).unwrap().into();
        let want = tensor(&[2, 5], [1f32, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
        run(NAME, 9, words(), [&rows]).gives(want);
        run(NAME, 9, words(), [&tensor(&[1], [1i64])])
            .fails("pool_strings is given, but \"X\" is int64: strings are needed");
    }

    #[test]
    fn attributes_that_do_not_fit() {
        let x = tensor(&[1], [5i64]);
        let fails = |name: &'static str, value: Attribute, text: &str| {
            run(NAME, 9, with(integers("TF"), name, value), [&x]).fails(text);
        };
        let list = |list: &[i64]| Attribute::Ints(list.to_vec());
        fails("ngram_indexes", list(&[0; 4]), "ngram_indexes has 4 entries, and the pool has 5 n-grams: they must be");
        fails("ngram_indexes", list(&[0, 0, -1, 0, 0]), "ngram_indexes[2] is -1: it is a place in the output");
        fails("weights", Attribute::Floats(vec![1.0; 6]), "weights has 6 entries, and the pool has 5 n-grams");
        fails("ngram_counts", list(&[0, 1]), "ngram_counts[1] is 1: the 7 entries from there on are no 2-grams");
        fails("ngram_counts", list(&[1, 2]), "ngram_counts[0] is 1: it must be 0");
        fails("ngram_counts", list(&[0, 4, 2]), "ngram_counts[2] is 2: allowed 4..=8");
        fails("ngram_counts", list(&[0, 10]), "ngram_counts[1] is 10: allowed 0..=8");
        fails("ngram_counts", list(&[]), "ngram_counts is empty");
        fails("min_gram_length", Attribute::Int(0), "min_gram_length is 0: it must be at least 1");
        fails("min_gram_length", Attribute::Int(3), "max_gram_length is 2: it must be at least 3");
        fails("max_skip_count", Attribute::Int(-1), "max_skip_count is -1: it must be at least 0");
        fails("pool_int64s", list(&[]), "neither pool_int64s nor pool_strings is given: one is needed");
        let both = integers("TF").map(|own| if own.0 == "weights" { strings("pool_strings", &["a"]) } else { own });
        run(NAME, 9, both, [&x]).fails("pool_int64s and pool_strings are both given: one is needed");
    }

    #[test]
    fn shapes() {
        infer(NAME, 9, integers("TF"), ["int32[C]"]).gives("[5]");
        infer(NAME, 9, integers("IDF"), ["int64[N, 12]"]).gives("[N, 5]");
        infer(NAME, 9, integers("TFIDF"), ["int64"]).gives("");
    }

    #[test]
    fn faults() {
        infer(NAME, 9, integers("tf"), ["int32[C]"]).fails("mode is \"tf\": allowed TF, IDF, TFIDF");
        infer(NAME, 9, integers("TF"), ["string[C]"])
            .fails("pool_int64s is given, but \"X\" is string: integers are needed");
        infer(NAME, 9, integers("TF"), ["int64[]"]).fails("allowed ranks 1 to 2");
    }
}
