//! Strings.

mod concat;
mod normalizer;
mod re2;
mod regex_full_match;
mod split;
mod tf_idf;

use crate::ops::prelude::*;

pub(super) static ALL: &[Implementation] = &[
    concat::STRING_CONCAT,
    split::STRING_SPLIT,
    normalizer::STRING_NORMALIZER,
    regex_full_match::REGEX_FULL_MATCH,
    tf_idf::TF_IDF_VECTORIZER,
];

/// A new string on its way to an output. Its memory counts.
struct Passing {
    text: String,
    _memory: Counted,
}

impl Passing {
    /// The string that `make` makes in at most `bytes` of memory.
    fn new(call: &Call<'_>, bytes: usize, make: impl FnOnce() -> String) -> Result<Passing> {
        let memory = call.context().memory.count(bytes)?;
        // A trial allocation, freed at once: making can't report failure.
        if bytes >= 1 << 20 && Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
            return Err(Error::out_of_memory("a string", bytes as u64));
        }
        Ok(Passing { text: make(), _memory: memory })
    }
}

impl AsRef<str> for Passing {
    fn as_ref(&self) -> &str {
        &self.text
    }
}
