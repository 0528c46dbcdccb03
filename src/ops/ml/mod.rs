//! Classical machine learning, the domain ai.onnx.ml: vectors of features, linear models, trees.

mod array_feature_extractor;
mod attributes;
mod binarizer;
mod cast_map;
mod category_mapper;
mod dict_vectorizer;
mod feature_vectorizer;
mod imputer;
mod label_encoder;
mod linear;
mod machine;
mod normalizer;
mod numbers;
mod one_hot_encoder;
mod scaler;
mod scores;
mod svm;
mod tables;
mod trees;
mod zip_map;

use crate::operator::Implementation;
use crate::ops::prelude::*;

pub(super) static ALL: &[Implementation] = &[
    array_feature_extractor::ARRAY_FEATURE_EXTRACTOR,
    binarizer::BINARIZER,
    cast_map::CAST_MAP,
    category_mapper::CATEGORY_MAPPER,
    dict_vectorizer::DICT_VECTORIZER,
    feature_vectorizer::FEATURE_VECTORIZER,
    imputer::IMPUTER,
    label_encoder::LABEL_ENCODER,
    linear::LINEAR_CLASSIFIER,
    linear::LINEAR_REGRESSOR,
    normalizer::NORMALIZER,
    one_hot_encoder::ONE_HOT_ENCODER,
    scaler::SCALER,
    svm::SVM_CLASSIFIER,
    svm::SVM_REGRESSOR,
    trees::TREE_ENSEMBLE,
    trees::TREE_ENSEMBLE_CLASSIFIER,
    trees::TREE_ENSEMBLE_REGRESSOR,
    zip_map::ZIP_MAP,
];

/// An operator of the domain.
const fn entry(name: &'static str, versions: &'static [i64], load: Load) -> Implementation {
    Implementation { domain: "ai.onnx.ml", name, versions, make: Make::Run(load) }
}
