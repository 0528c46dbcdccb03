//! Numbers of the domain: computed as doubles, and given as floats.

use crate::ops::prelude::*;

/// The elements of an input as doubles. Integers beyond 2^53 are rounded.
pub(super) fn doubles(call: &mut Call<'_>, k: usize) -> Result<Held> {
    let format = call.tensor(k)?.dtype().format();
    if format == Format::Double {
        return Ok(Held::Input(k));
    }
    let wide = call.rowwise([Held::Input(k)], Align::Last, DType::Double, &|[x], out| to_f64(format, x, out))?;
    Ok(Held::Replaced(k, wide))
}

/// Doubles as floats, rounded once: what an operator returns.
pub(super) fn floats(call: &mut Call<'_>, doubles: Tensor) -> Result<Values> {
    rounded(call, doubles, DType::Float)
}

/// Doubles as floats of a type, rounded once.
pub(super) fn rounded(call: &mut Call<'_>, doubles: Tensor, to: DType) -> Result<Values> {
    if to == DType::Double {
        return Ok(doubles.into());
    }
    let rounded = call.rowwise([Held::Own(doubles)], Align::Last, to, &|[x], out| of_f64(to.format(), x, out))?;
    Ok(rounded.into())
}

/// A number for each feature, or one for all of them.
#[derive(Debug)]
pub(super) struct Each {
    name: &'static str,
    numbers: Tensor,
}

impl Each {
    /// Those of an attribute; `default` if it isn't given.
    pub(super) fn of<T: Element>(name: &'static str, numbers: Vec<T>, default: T) -> Result<Each> {
        let numbers = match numbers.len() {
            0 => Tensor::scalar(default),
            1 => Tensor::from(numbers).reshaped(Shape::new())?,
            _ => Tensor::from(numbers),
        };
        Ok(Each { name, numbers })
    }

    /// The numbers, for the features along the last dimension of input 0.
    pub(super) fn held(&self, call: &Call<'_>) -> Result<Held> {
        let (count, features) = (self.numbers.len(), call.tensor(0)?.shape().last().copied());
        if self.numbers.rank() == 0 || features == Some(count) {
            return Ok(Held::Own(self.numbers.clone()));
        }
        let (name, features) = (call.name(0), features.unwrap_or(1));
        let text = format!(
            "{} has {count} entries, but {} has {features} features: allowed 1, {features}",
            self.name,
            quote(name)
        );
        Err(Error::input(text).parameter(name))
    }
}
