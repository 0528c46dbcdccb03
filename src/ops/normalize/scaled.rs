//! Normalized lanes, then a scale and a bias: what several operators share.

use crate::ops::prelude::*;
use kernels::copy::Map;
use std::fmt::Display;

/// The input 0, normalized, scaled and shifted.
pub(super) struct Scaled<'a> {
    pub(super) how: lanes::Normalize,
    /// The elements of a lane, which are neighbours.
    pub(super) len: usize,
    pub(super) precision: Precision,
    pub(super) scale: Spread,
    pub(super) bias: Option<Spread>,
    pub(super) x: &'a Tensor,
}

/// What to compute the normalized elements with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// The type of the elements, or float for those of 16 bits; the output is rounded once.
    Own,
    /// Float, then rounded to the type of the elements, and scaled and shifted in the type of the output.
    Float,
    /// As `Float`.
    Double,
}

impl Precision {
    /// As the attribute `stash_type` says.
    pub(super) fn stashed(node: &Node<'_>, allowed: &[DType]) -> Result<Precision> {
        let code = node.int("stash_type")?;
        match allowed.iter().find(|dtype| i64::from(dtype.code()) == code) {
            Some(DType::Double) => Ok(Precision::Double),
            Some(_) => Ok(Precision::Float),
            None => {
                let allowed: Vec<_> = allowed.iter().map(|dtype| format!("{} ({dtype})", dtype.code())).collect();
                let text = format!("stash_type {code} is no type to compute with: allowed {}", allowed.join(", "));
                Err(Error::model(text).attribute("stash_type").value(code))
            }
        }
    }
}

/// Values, each for `run` elements that are neighbours; after the last comes the first again.
pub(super) struct Spread {
    pub(super) values: Tensor,
    pub(super) run: usize,
}

impl Spread {
    /// The values of the input `k`, which broadcast to a shape.
    pub(super) fn broadcast(call: &Call<'_>, k: usize, shape: &[usize]) -> Result<Spread> {
        let values = call.tensor(k)?.clone();
        let own = values.shape();
        let missing = shape.len().checked_sub(own.len());
        let fits =
            |missing: usize| own.iter().zip(shape.iter().skip(missing)).all(|(own, size)| *own == 1 || own == size);
        let Some(missing) = missing.filter(|missing| fits(*missing)) else {
            return Err(unfit(call.name(k), ShapeText(own), ShapeText(shape)));
        };
        // Dimensions that are repeated before and after those that are not, but not between.
        let repeats = |axis: usize| axis < missing || own.get(axis - missing) == Some(&1);
        let first = (0..shape.len()).find(|axis| !repeats(*axis)).unwrap_or(shape.len());
        let end = (0..shape.len()).rfind(|axis| !repeats(*axis)).map_or(first, |last| last + 1);
        let between = |axis: &usize| repeats(*axis) && shape.get(*axis) != Some(&1);
        if !(first..end).any(|axis| between(&axis)) {
            let run = kernels::volume(1, shape.iter().skip(end));
            return Ok(Spread { values, run });
        }
        let repeated =
            |(axis, &size): (usize, &usize)| (size, Map::Line { start: 0, step: isize::from(!repeats(axis)) });
        let maps: Maps = shape.iter().enumerate().map(repeated).collect();
        Ok(Spread { values: by_maps(call.context(), &values, &maps, &[])?, run: 1 })
    }

    /// Fails if the input `k` can't be broadcast to a shape.
    pub(super) fn check(facts: &Inference<'_>, k: usize, shape: &[Dim]) -> Result<()> {
        match facts.dims(k).filter(|_| !facts.spreads(k, shape)) {
            None => Ok(()),
            Some(own) => Err(unfit(facts.input_name(k), DimsText(own), DimsText(shape))),
        }
    }

    fn slice<V: Element>(&self) -> Result<lanes::Spread<'_, V>> {
        Ok(lanes::Spread { values: self.values.as_slice()?, run: self.run })
    }
}

#[cold]
fn unfit(name: &str, own: impl Display, shape: impl Display) -> Error {
    let text = format!("{} of shape {own} can't be broadcast to the shape {shape} of \"X\"", quote(name));
    Error::input(text).parameter(name)
}

/// Normalizes, and fills the output with what the function makes of the elements, which have so many bytes then.
type Normalized<'a> = dyn Fn(&(dyn Fn(usize, &[u8], &mut [u8]) + Sync), usize, &mut [u8]) -> Result<()> + 'a;

impl Scaled<'_> {
    /// The output, of the type of the scale.
    pub(super) fn compute(&self, call: &Call<'_>) -> Result<Tensor> {
        if let Some((scales, biases)) = self.of_singles() {
            let mut y = call.output::<f32>(self.x.shape())?;
            lanes::normalize_scaled(self.how, self.x.as_slice()?, scales, biases, y.elements_mut()?, call.resources())?;
            return Ok(y.finish());
        }
        by_type!(floats, self.x.dtype(), S as T => match self.precision {
            Precision::Own => self.typed::<S, T, T>(call),
            Precision::Float => self.typed::<S, S, f32>(call),
            Precision::Double => self.typed::<S, S, f64>(call),
        })
    }

    /// The scale and the bias of each element of a lane, if all are float and nothing is computed in double.
    fn of_singles(&self) -> Option<(&[f32], &[f32])> {
        let (scale, bias) = (&self.scale, self.bias.as_ref()?);
        let (scales, biases) = (scale.values.as_slice().ok()?, bias.values.as_slice().ok()?);
        let each = [(scale, scales), (bias, biases)].iter().all(|(of, values)| of.run == 1 && values.len() == self.len);
        let of_singles = self.x.dtype() == DType::Float && self.precision != Precision::Double;
        (each && of_singles && self.len > 0).then_some((scales, biases))
    }

    /// Normalizes `S` with the precision of `T` to `R`.
    fn typed<S, R, T>(&self, call: &Call<'_>) -> Result<Tensor>
    where
        S: Element + Stored<T>,
        R: Stored<T> + Stored<f32> + Stored<f64>,
        T: Floating,
    {
        let x = self.x.as_slice::<S>()?;
        self.finished::<R>(call, &|finish, width, out| {
            Ok(lanes::normalize::<S, R, T>(self.how, x, self.len, finish, width, out, call.resources())?)
        })
    }

    /// Makes the output of normalized elements `R`.
    fn finished<R: Stored<f32> + Stored<f64>>(&self, call: &Call<'_>, normalize: &Normalized<'_>) -> Result<Tensor> {
        by_type!(floats, self.scale.values.dtype(), V as A => {
            let bias = self.bias.as_ref().map(Spread::slice::<V>).transpose()?;
            let affine = lanes::Affine { scale: self.scale.slice::<V>()?, bias };
            let mut y = call.output::<V>(self.x.shape())?;
            normalize(&affine.finish::<R, A>(), size_of::<V>(), y.bytes_mut())?;
            Ok(y.finish())
        })
    }
}
