//! Operators on sequences and optionals.

mod at;
mod concat_from_sequence;
mod construct;
mod empty;
mod erase;
mod insert;
mod length;
mod map;
mod optional;
mod optional_get_element;
mod optional_has_element;
mod position;
mod split_to_sequence;

use crate::operator::Implementation;
use crate::ops::prelude::*;

pub(super) static ALL: &[Implementation] = &[
    concat_from_sequence::CONCAT_FROM_SEQUENCE,
    optional::OPTIONAL,
    optional_get_element::OPTIONAL_GET_ELEMENT,
    optional_has_element::OPTIONAL_HAS_ELEMENT,
    at::SEQUENCE_AT,
    construct::SEQUENCE_CONSTRUCT,
    empty::SEQUENCE_EMPTY,
    erase::SEQUENCE_ERASE,
    insert::SEQUENCE_INSERT,
    length::SEQUENCE_LENGTH,
    map::SEQUENCE_MAP,
    split_to_sequence::SPLIT_TO_SEQUENCE,
];

/// That output 0 has the type of the elements of the input 0.
fn element_fact(inputs: &[Option<&Fact>]) -> Vec<Fact> {
    match inputs.first().and_then(|fact| fact.as_ref()?.value_type()) {
        Some(ValueType::Sequence(element)) => vec![Fact::of_type((**element).clone())],
        _ => Vec::new(),
    }
}
