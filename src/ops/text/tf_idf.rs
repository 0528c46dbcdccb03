//! TfIdfVectorizer: how often n-grams of a pool occur in sequences, maybe weighted.
//! <https://onnx.ai/onnx/operators/onnx__TfIdfVectorizer.html>

use crate::ops::prelude::*;

pub(super) const TF_IDF_VECTORIZER: Implementation = Implementation::missing("", "TfIdfVectorizer", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    facts.choice("mode", &[("TF", ()), ("IDF", ()), ("TFIDF", ())])?;
    let (ints, strings) = (facts.attribute("pool_int64s").is_some(), facts.attribute("pool_strings").is_some());
    if ints == strings {
        let which =
            if ints { "pool_int64s and pool_strings are both" } else { "neither pool_int64s nor pool_strings is" };
        return Err(Error::model(format!("{which} given: one is needed")).attribute("pool_strings"));
    }
    if let Some(input) = facts.input_type(0)
        && (*input == DType::String.into()) != strings
    {
        let (pool, what) = if strings { ("pool_strings", "strings") } else { ("pool_int64s", "integers") };
        return Err(Error::model(format!("{pool} is given, but \"X\" is {input}: {what} are needed")).attribute(pool));
    }
    let places = facts.ints("ngram_indexes")?;
    if let Some((k, place)) = places.iter().enumerate().find(|(_, place)| **place < 0) {
        let error = Error::model(format!("ngram_indexes[{k}] is {place}: it is a place in the output"));
        return Err(error.attribute("ngram_indexes").value(*place).position(vec![k]));
    }
    let count = places.iter().max().map_or(Dim::Unknown, |last| Dim::of(last.saturating_add(1)));
    if let Some([rows @ .., _]) = facts.ranked(0, 1..=2)? {
        facts.give(0, [rows, &[count]].concat());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{Inferred, infer, int, ints, string, strings};

    fn tf_idf(mode: &str, pool: (&str, Attribute), places: &[i64], x: &str) -> Inferred {
        let lengths = [int("min_gram_length", 1), int("max_gram_length", 2), int("max_skip_count", 0)];
        let [least, most, skip] = lengths;
        let lists = [ints("ngram_counts", &[0]), ints("ngram_indexes", places), string("mode", mode), pool];
        let [counts, places, mode, pool] = lists;
        infer("TfIdfVectorizer", 9, [least, most, skip, counts, places, mode, pool], [x])
    }

    #[test]
    fn shapes() {
        let pool = || ints("pool_int64s", &[5, 6, 7]);
        tf_idf("TF", pool(), &[2, 6, 0], "int32[C]").gives("[7]");
        tf_idf("IDF", pool(), &[2, 6, 0], "int64[N, 12]").gives("[N, 7]");
        tf_idf("TFIDF", strings("pool_strings", &["a"]), &[0], "string[N, 12]").gives("[N, 1]");
        tf_idf("TF", pool(), &[], "int64[12]").gives("[?]");
    }

    #[test]
    fn faults() {
        let pool = || ints("pool_int64s", &[5, 6, 7]);
        tf_idf("TF", pool(), &[2, -1, 0], "int32[C]").fails("ngram_indexes[1] is -1");
        tf_idf("tf", pool(), &[0], "int32[C]").fails("mode is \"tf\": allowed TF, IDF, TFIDF");
        tf_idf("TF", pool(), &[0], "string[C]").fails("pool_int64s is given, but \"X\" is string: integers are needed");
        tf_idf("TF", strings("pool_strings", &["a"]), &[0], "int64[C]").fails("\"X\" is int64: strings are needed");
        tf_idf("TF", string("mode", "TF"), &[0], "int64[C]").fails("neither pool_int64s nor pool_strings is given");
        tf_idf("TF", pool(), &[0], "int64[]").fails("allowed ranks 1 to 2");
    }
}
