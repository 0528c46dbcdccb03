//! Short lists of whole numbers as inputs of any numeric type.

use super::index::integer;
use crate::dtype::ShapeText;
use crate::error::{Error, Result, quote};
use crate::operator::Call;
use crate::tensor::Scalar;
use smallvec::SmallVec;

/// At most `most` whole numbers of an input of rank 0 or 1. Old versions of operators have them as floats.
pub(super) fn integers(call: &Call<'_>, k: usize, most: usize) -> Result<SmallVec<[i64; 6]>> {
    let (tensor, name) = (call.tensor(k)?, call.name(k));
    if tensor.rank() > 1 {
        let shape = ShapeText(tensor.shape());
        return Err(Error::input(format!("{} has shape {shape}: a list is needed", quote(name))).parameter(name));
    }
    if tensor.len() > most {
        let text = format!("{} has {} values: allowed are at most {most}", quote(name), tensor.len());
        return Err(Error::input(text).parameter(name).size(tensor.len()));
    }
    let whole = |(at, value): (usize, Scalar<'_>)| {
        let number = match value {
            Scalar::Float(value) => whole(value.into()),
            Scalar::Double(value) => whole(value),
            ref value => i64::try_from(integer(value)).ok(),
        };
        let element = if tensor.rank() == 0 { String::new() } else { format!("[{at}]") };
        number.ok_or_else(|| {
            Error::input(format!("{name}{element} = {value} is not a whole number")).parameter(name).position(vec![at])
        })
    };
    tensor.scalars().enumerate().map(whole).collect()
}

/// The whole number that a float is.
fn whole(value: f64) -> Option<i64> {
    let number = value as i64;
    // Beyond that floats skip numbers.
    (number.unsigned_abs() <= 1 << 53 && number as f64 == value).then_some(number)
}
