//! Tables from keys to values.

use crate::ops::prelude::*;
use std::collections::HashMap;

/// Where each of some keys stands in its list. Of equal keys the last one counts.
#[derive(Debug)]
pub(super) enum Table {
    Strings(HashMap<String, usize>),
    /// By the bits of numbers; whether all NaN are one key, and both zeros.
    Numbers(HashMap<u64, usize>, bool),
}

impl Table {
    /// Floats are compared by their bits, unless they are `equal` by value, and NaN equal to NaN.
    pub(super) fn of(keys: &Tensor, equal: bool) -> Result<Table> {
        if keys.dtype() == DType::String {
            return Ok(Table::Strings(keys.strings()?.enumerate().map(|(k, key)| (key.to_string(), k)).collect()));
        }
        let places = keys.scalars().enumerate().map(|(k, key)| (bits(&key, equal), k));
        Ok(Table::Numbers(places.collect(), equal))
    }

    /// Fails unless `what` (`"X" is`), of a type, can be looked up: strings among strings, numbers among numbers.
    pub(super) fn check(&self, attribute: &'static str, what: &str, keys: DType) -> Result<()> {
        if (keys == DType::String) == matches!(self, Table::Strings(_)) {
            return Ok(());
        }
        Err(Error::model(format!("{attribute} is given, but {what} {keys}")).attribute(attribute))
    }

    pub(super) fn place(&self, key: &Scalar<'_>) -> Option<usize> {
        match (self, key) {
            (Table::Strings(places), Scalar::String(key)) => places.get(*key).copied(),
            (Table::Strings(_), _) => None,
            (Table::Numbers(places, equal), key) => places.get(&bits(key, *equal)).copied(),
        }
    }
}

fn bits(key: &Scalar<'_>, equal: bool) -> u64 {
    match *key {
        Scalar::Int(key) => key.cast_unsigned(),
        Scalar::Float(key) if equal && key.is_nan() => f32::NAN.to_bits().into(),
        Scalar::Float(key) if equal && key == 0.0 => 0,
        Scalar::Float(key) => key.to_bits().into(),
        Scalar::Double(key) if equal && key.is_nan() => f64::NAN.to_bits(),
        Scalar::Double(key) if equal && key == 0.0 => 0,
        Scalar::Double(key) => key.to_bits(),
        _ => 0,
    }
}

/// Values for keys.
#[derive(Debug)]
pub(super) struct Mapping {
    table: Table,
    values: List,
}

/// The values, then the one for all other keys.
#[derive(Debug)]
enum List {
    Strings(Vec<String>),
    Numbers(Tensor),
}

impl Mapping {
    /// For values, and one for all other keys.
    pub(super) fn of(table: Table, values: &Tensor, default: &Tensor) -> Result<Mapping> {
        let values = match values.dtype() {
            DType::String => List::Strings(values.strings()?.chain(default.strings()?).map(str::to_string).collect()),
            dtype => {
                let bytes = [values.bytes(), default.bytes()].concat();
                List::Numbers(Tensor::new(dtype, &[values.len() + default.len()], bytes)?)
            }
        };
        Ok(Mapping { table, values })
    }

    /// The value for each element of input 0.
    pub(super) fn run(&self, call: &Call<'_>) -> Result<Values> {
        let input = call.tensor(0)?;
        let size = input.dtype().size();
        let mut lookout = call.lookout();
        let places = input.scalars().map(|key| {
            let text = if let Scalar::String(key) = key { key.len() } else { 0 };
            call.charge(text as u64)?;
            lookout.after(size + text)?;
            Ok::<_, Error>(self.table.place(&key))
        });
        match &self.values {
            List::Strings(values) => {
                let last = values.len().saturating_sub(1);
                let value = |place: Option<usize>| values.get(place.unwrap_or(last)).map_or("", String::as_str);
                let strings = places.map(|place| Ok(value(place?)));
                Ok(call.strings(input.shape(), strings)?.into())
            }
            List::Numbers(values) => {
                let (size, last) = (values.dtype().size(), values.len().saturating_sub(1));
                let mut output = call.output_of(values.dtype(), Shape::from_slice(input.shape()))?;
                for (to, place) in output.bytes_mut().chunks_exact_mut(size).zip(places) {
                    let at = place?.unwrap_or(last) * size;
                    let value = values.bytes().get(at..at + size);
                    to.copy_from_slice(value.ok_or_else(|| Error::bug("a key has no value"))?);
                }
                Ok(output.finish().into())
            }
        }
    }
}

/// Strings for integers, and integers for strings.
#[derive(Debug)]
pub(super) struct Both {
    strings: Mapping,
    ints: Mapping,
}

impl Both {
    /// For keys and strings at the same places of their lists, with the attributes for what isn't in them.
    pub(super) fn of(node: &Node<'_>, ints: Vec<i64>, strings: &[String]) -> Result<Both> {
        let (ints, strings) = (Tensor::from(ints), Tensor::from_strings(&[strings.len()], strings)?);
        let other = Tensor::from_strings(&[], [node.string("default_string")?])?;
        Ok(Both {
            strings: Mapping::of(Table::of(&ints, false)?, &strings, &other)?,
            ints: Mapping::of(Table::of(&strings, false)?, &ints, &Tensor::scalar(node.int("default_int64")?))?,
        })
    }
}

impl Operator for Both {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        if call.tensor(0)?.dtype() == DType::String { self.ints.run(call) } else { self.strings.run(call) }
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        if let Some(from) = facts.input_type(0) {
            facts.give_type(0, if *from == DType::String.into() { DType::Int64 } else { DType::String });
        }
        Ok(())
    }
}
