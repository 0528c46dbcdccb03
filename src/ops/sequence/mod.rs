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

/// Gives output 0 the type of the elements of the input 0.
fn give_element(facts: &mut Inference<'_>) {
    if let Some(ValueType::Sequence(element)) = facts.input_type(0) {
        facts.give_type(0, (**element).clone());
    }
}
