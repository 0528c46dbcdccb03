//! Cast, CastLike, BitCast: elements as another type, by value or by their bits.

mod bits;
mod text;
mod value;

use crate::operator::Implementation;

pub(super) static ALL: &[Implementation] = &[value::CAST, value::CAST_LIKE, bits::BIT_CAST];
