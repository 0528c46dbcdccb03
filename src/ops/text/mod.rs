//! Strings.

mod concat;
mod normalizer;
mod regex_full_match;
mod split;
mod tf_idf;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[
    concat::STRING_CONCAT,
    split::STRING_SPLIT,
    normalizer::STRING_NORMALIZER,
    regex_full_match::REGEX_FULL_MATCH,
    tf_idf::TF_IDF_VECTORIZER,
];
