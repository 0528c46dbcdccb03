//! Lists of axes, as attributes in older versions and as inputs in newer ones.

use crate::error::{Error, Remedy, Result};
use crate::operator::{Axis, Call, Constants, Inference, Node};
use smallvec::SmallVec;

/// Axes as places among the dimensions.
pub(super) type Places = SmallVec<[usize; 6]>;

/// Where the list is.
#[derive(Debug, Clone)]
pub(super) enum Axes {
    /// In the attribute `axes`, if it is given; whether axes may be negative.
    Attribute { list: Option<Vec<i64>>, negative: bool },
    /// In the input 1, which may be left out.
    Input,
}

impl Axes {
    /// Of a node whose attribute became an input with version `input_from`. The texts before version 11 don't say whether
    /// axes may be negative.
    pub(super) fn of(node: &Node<'_>, input_from: i64) -> Result<Axes> {
        if node.version() >= input_from {
            return Ok(Axes::Input);
        }
        let list = node.axes("axes", 11)?.map(<[i64]>::to_vec);
        Ok(Axes::Attribute { list, negative: true })
    }

    /// As [`Axes::of`], if the texts before version 11 say that axes are not negative.
    pub(super) fn unsigned_at_first(node: &Node<'_>, input_from: i64) -> Result<Axes> {
        if node.version() >= 11 {
            return Axes::of(node, input_from);
        }
        let list = node.optional("axes", Node::ints)?.map(<[i64]>::to_vec);
        Ok(Axes::Attribute { list, negative: takes_negative_axes(node) })
    }

    fn list<'a>(&'a self, call: &'a Call<'_>) -> Result<Option<&'a [i64]>> {
        match self {
            Axes::Attribute { list, .. } => Ok(list.as_deref()),
            Axes::Input => call.input(1).map(|_| call.list(1)).transpose(),
        }
    }

    /// The number of axes.
    pub(super) fn count(&self, call: &Call<'_>) -> Result<usize> {
        Ok(self.list(call)?.map_or(0, <[i64]>::len))
    }

    /// As [`Axes::count`], at load; `None` if it is not known.
    pub(super) fn known_count(&self, facts: &Inference<'_>) -> Option<usize> {
        match self {
            Axes::Attribute { list, .. } => Some(list.as_ref().map_or(0, Vec::len)),
            Axes::Input => facts.known(1).map(|list| list.len()),
        }
    }

    /// The axes as places among `rank` dimensions; `None` if there is no list.
    pub(super) fn places(&self, call: &Call<'_>, rank: usize) -> Result<Option<Places>> {
        self.list(call)?.map(|list| self.place(list, rank)).transpose()
    }

    /// As [`Axes::places`], of what is known at load; `None` if the list is not known.
    pub(super) fn known(&self, facts: &Inference<'_>, rank: usize) -> Result<Option<Option<Places>>> {
        let place = |list: &[i64]| self.place(list, rank).map(|places| Some(Some(places)));
        if matches!(self, Axes::Input) {
            facts.ranked(1, 0..=1)?;
        }
        match self {
            Axes::Attribute { list: Some(list), .. } => place(list),
            Axes::Input if facts.input(1).is_some() => facts.known(1).map_or(Ok(None), |list| place(&list)),
            _ => Ok(Some(None)),
        }
    }

    /// As [`Axes::places`], for a node whose inputs don't change; `None` if there is no list, or an axis is wrong.
    pub(super) fn constant(&self, constant: &Constants<'_>, rank: usize) -> Option<Places> {
        match self {
            Axes::Attribute { list, .. } => self.place(list.as_ref()?, rank).ok(),
            Axes::Input => self.place(constant(1)?.as_slice::<i64>().ok()?, rank).ok(),
        }
    }

    fn place(&self, list: &[i64], rank: usize) -> Result<Places> {
        match self {
            Axes::Input => places(list, rank, true, |text| Error::input(text).parameter("axes")),
            Axes::Attribute { negative, .. } => {
                let fault = |text| Error::model(text).attribute("axes");
                places(list, rank, *negative, fault)
                    .map_err(|error| if *negative { error } else { not_negative(error, rank) })
            }
        }
    }
}

/// Whether an axis may be negative, where the texts before version 11 say that it may not.
pub(super) fn takes_negative_axes(node: &Node<'_>) -> bool {
    node.version() >= 11 || node.compatibility().negative_axes
}

/// The error about an axis that may not be negative, with what would accept it, if it is one of `rank` dimensions from the end.
pub(super) fn not_negative(error: Error, rank: usize) -> Error {
    let of = error.place().axis.filter(|axis| *axis < 0 && Axis::place((*axis).into(), rank).is_some());
    if of.is_some() { error.with_remedy(Remedy::Allow("negative_axes")) } else { error }
}

/// A list of different axes as places among `rank` dimensions. `fault` is the error about the list.
pub(super) fn places(list: &[i64], rank: usize, negative: bool, fault: impl Fn(String) -> Error) -> Result<Places> {
    let mut places = Places::new();
    for &axis in list {
        let place = Axis::place(axis.into(), rank).filter(|_| negative || axis >= 0);
        let text = match place {
            Some(place) if !places.contains(&place) => {
                places.push(place);
                continue;
            }
            Some(_) => format!("axis {axis} is given twice"),
            None if rank == 0 => format!("axis {axis} is out of range: a scalar has none"),
            None => {
                let least = if negative { format!("-{rank}") } else { "0".to_string() };
                let most = rank as i64 - 1;
                format!("axis {axis} is out of range: allowed {least}..={most}")
            }
        };
        return Err(fault(text).axis(axis).value(axis));
    }
    Ok(places)
}
