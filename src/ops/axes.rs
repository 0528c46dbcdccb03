//! Lists of axes, as attributes in older versions and as inputs in newer ones.

use crate::error::{Error, Result};
use crate::operator::{Axis, Call, Node};
use smallvec::SmallVec;

/// Where the list is.
#[derive(Debug)]
pub(super) enum Axes {
    /// In the attribute `axes`, if it is given; whether axes may be negative.
    Attribute { list: Option<Vec<i64>>, negative: bool },
    /// In the input 1, which may be left out.
    Input,
}

impl Axes {
    /// Of a node whose attribute became an input with version 13; negative axes came with version 11.
    pub(super) fn of(node: &Node<'_>) -> Result<Axes> {
        if node.version() >= 13 {
            return Ok(Axes::Input);
        }
        let list = node.attribute("axes").map(|_| node.ints("axes")).transpose()?.map(<[i64]>::to_vec);
        Ok(Axes::Attribute { list, negative: node.version() >= 11 })
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

    /// The axes as places among `rank` dimensions; `None` if there is no list.
    pub(super) fn places(&self, call: &Call<'_>, rank: usize) -> Result<Option<SmallVec<[usize; 6]>>> {
        let Some(list) = self.list(call)? else { return Ok(None) };
        let fault = |text| match self {
            Axes::Input => Error::input(text).parameter("axes"),
            Axes::Attribute { .. } => Error::model(text).attribute("axes"),
        };
        places(list, rank, !matches!(self, Axes::Attribute { negative: false, .. }), fault).map(Some)
    }
}

/// A list of different axes as places among `rank` dimensions. `fault` is the error about the list.
pub(super) fn places(
    list: &[i64],
    rank: usize,
    negative: bool,
    fault: impl Fn(String) -> Error,
) -> Result<SmallVec<[usize; 6]>> {
    let mut places = SmallVec::new();
    for &axis in list {
        let place = Axis::place(axis.into(), rank).filter(|_| negative || axis >= 0);
        let text = match place {
            Some(place) if !places.contains(&place) => {
                places.push(place);
                continue;
            }
            Some(_) => format!("axis {axis} is given twice"),
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
