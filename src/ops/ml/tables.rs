//! Tables from keys to values.

use crate::ops::prelude::*;
use kernels::Lookout;
use kernels::convert::wrapped;
use kernels::hashed::NumberMap;
use std::collections::HashMap;

/// Where each of some keys stands in its list. Of equal keys the last one counts.
#[derive(Debug)]
pub(super) enum Table {
    Strings(HashMap<String, usize>),
    Numbers(NumberMap<u64, usize>, Same),
}

/// Which numbers are the same key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Same {
    /// Those of the same bits.
    Bits,
    /// Those that are equal, and all NaN.
    Equal,
    /// Integers, and floats that are the same one as Cast makes them integers.
    Whole,
}

/// A number that is looked up.
trait Key: Element {
    /// The same for numbers that are the same key.
    fn key(self, same: Same) -> u64;
}

macro_rules! keys {
    ($($int:ident)*; $($float:ident)*) => {
        $(impl Key for $int {
            #[inline(always)]
            fn key(self, _: Same) -> u64 {
                i64::from(self).cast_unsigned()
            }
        })*
        $(impl Key for $float {
            #[inline(always)]
            fn key(self, same: Same) -> u64 {
                match same {
                    Same::Equal if self.is_nan() => $float::NAN.to_bits().into(),
                    Same::Equal if self == 0.0 => 0,
                    Same::Bits | Same::Equal => self.to_bits().into(),
                    Same::Whole => wrapped(self.into()).cast_unsigned(),
                }
            }
        })*
    };
}

keys! { i16 i32 i64; f32 f64 }

/// The bytes of a tensor's text.
fn text(tensor: &Tensor) -> usize {
    tensor.strings().map_or(0, |strings| strings.map(str::len).sum())
}

/// The bytes of a table for some keys, with an entry and a byte for each slot: an eighth of these or more is free, and they are
/// a power of two.
fn slots<T>(keys: usize) -> usize {
    (keys.saturating_mul(8) / 7).next_power_of_two().max(8) * (size_of::<T>() + 1) + 16
}

impl Table {
    pub(super) fn of(node: &Node<'_>, keys: &Tensor, same: Same) -> Result<Table> {
        if keys.dtype() == DType::String {
            node.bill(slots::<(String, usize)>(keys.len()) + text(keys))?;
            return Ok(Table::Strings(keys.strings()?.enumerate().map(|(k, key)| (key.to_string(), k)).collect()));
        }
        node.bill(slots::<(u64, usize)>(keys.len()))?;
        let places = keys.scalars().enumerate().map(|(k, key)| (key_of(&key, same), k));
        Ok(Table::Numbers(places.collect(), same))
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
            (Table::Numbers(places, same), key) => places.get(&key_of(key, *same)).copied(),
        }
    }

    /// The place of each element of a tensor. Text counts as work.
    pub(super) fn places(&self, call: &Call<'_>, keys: &Tensor) -> impl Iterator<Item = Result<Option<usize>>> {
        let (mut lookout, size) = (call.lookout(), keys.dtype().size());
        keys.scalars().map(move |key| {
            let text = if let Scalar::String(key) = key { key.len() } else { 0 };
            call.charge(text as u64)?;
            lookout.after(size + text)?;
            Ok(self.place(&key))
        })
    }

    /// Calls `each` with the place of each element of a tensor, as [`Table::places`], in less time where these are numbers.
    pub(super) fn for_each(
        &self,
        call: &Call<'_>,
        keys: &Tensor,
        mut each: impl FnMut(Option<usize>) -> Result<()>,
    ) -> Result<()> {
        let Table::Numbers(places, same) = self else {
            return self.places(call, keys).try_for_each(|place| each(place?));
        };
        let (place, lookout) = (|key| each(places.get(&key).copied()), call.lookout());
        match keys.dtype() {
            DType::Int64 => all(keys.as_slice::<i64>()?, *same, lookout, place),
            DType::Int32 => all(keys.as_slice::<i32>()?, *same, lookout, place),
            DType::Int16 => all(keys.as_slice::<i16>()?, *same, lookout, place),
            DType::Float => all(keys.as_slice::<f32>()?, *same, lookout, place),
            DType::Double => all(keys.as_slice::<f64>()?, *same, lookout, place),
            _ => self.places(call, keys).try_for_each(|place| each(place?)),
        }
    }
}

/// Calls `each` with the key of each number.
#[inline(always)]
fn all<T: Key>(
    numbers: &[T],
    same: Same,
    mut lookout: Lookout<'_>,
    mut each: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    for block in lookout.blocks(numbers) {
        for number in block? {
            each(number.key(same))?;
        }
    }
    Ok(())
}

fn key_of(key: &Scalar<'_>, same: Same) -> u64 {
    match *key {
        Scalar::Int(key) => key.key(same),
        Scalar::Float(key) => key.key(same),
        Scalar::Double(key) => key.key(same),
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
    pub(super) fn of(node: &Node<'_>, table: Table, values: &Tensor, default: &Tensor) -> Result<Mapping> {
        let count = values.len() + default.len();
        let values = match values.dtype() {
            DType::String => {
                node.bill(count * size_of::<String>() + text(values) + text(default))?;
                List::Strings(values.strings()?.chain(default.strings()?).map(str::to_string).collect())
            }
            dtype => {
                node.bill(count * dtype.size())?;
                let bytes = [values.bytes(), default.bytes()].concat();
                List::Numbers(Tensor::new(dtype, &[count], bytes)?)
            }
        };
        Ok(Mapping { table, values })
    }

    /// The value for each element of input 0.
    pub(super) fn run(&self, call: &Call<'_>) -> Result<Values> {
        let input = call.tensor(0)?;
        match &self.values {
            List::Strings(values) => {
                let last = values.len().saturating_sub(1);
                let value = |place: Option<usize>| values.get(place.unwrap_or(last)).map_or("", String::as_str);
                let strings = self.table.places(call, input).map(|place| Ok(value(place?)));
                Ok(call.strings(input.shape(), strings)?.into())
            }
            List::Numbers(values) => {
                let mut output = call.output_of(values.dtype(), Shape::from_slice(input.shape()))?;
                let (size, values, out) = (values.dtype().size(), values.aligned_bytes(), output.bytes_mut());
                match size {
                    8 => self.fill::<u64>(call, values, out),
                    4 => self.fill::<u32>(call, values, out),
                    2 => self.fill::<u16>(call, values, out),
                    _ => self.fill::<u8>(call, values, out),
                }?;
                Ok(output.finish().into())
            }
        }
    }

    /// Writes the value for each element of input 0; values have the size of `T`.
    fn fill<T: Pod>(&self, call: &Call<'_>, values: &[u8], out: &mut [u8]) -> Result<()> {
        let values = cast_slice::<u8, T>(values);
        let (Some((other, _)), mut out) = (values.split_last(), cast_slice_mut::<u8, T>(out).iter_mut()) else {
            return Err(Error::bug("a table has no value for other keys"));
        };
        self.table.for_each(call, call.tensor(0)?, |place| {
            if let Some(to) = out.next() {
                *to = *place.and_then(|place| values.get(place)).unwrap_or(other);
            }
            Ok(())
        })
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
    pub(super) fn of(node: &Node<'_>, ints: &Tensor, strings: &Tensor) -> Result<Both> {
        let string = Tensor::from_strings(&[], [node.string("default_string")?])?;
        let int = Tensor::scalar(node.int("default_int64")?);
        Ok(Both {
            strings: Mapping::of(node, Table::of(node, ints, Same::Bits)?, strings, &string)?,
            ints: Mapping::of(node, Table::of(node, strings, Same::Bits)?, ints, &int)?,
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
