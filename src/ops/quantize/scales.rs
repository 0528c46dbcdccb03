//! Which elements share a scale and a zero point.

use crate::ops::prelude::*;
use kernels::quantize::{Precision, Scales, Spread};

/// How scales and zero points, the inputs 1 and 2, belong to the elements of the input 0.
#[derive(Debug)]
pub(super) struct Granularity {
    /// None before version 13: there is one scale.
    axis: Option<i64>,
    /// The entries of a block; 0 if `block_size` is not given.
    block: usize,
}

/// Memory for scales and zero points in another type.
pub(super) type Rooms<'c> = [Option<Scratch<'c>>; 2];

impl Granularity {
    pub(super) fn of(node: &Node<'_>) -> Result<Granularity> {
        let axis = node.attribute("axis").map(|_| node.axis("axis", 13)).transpose()?;
        let block = node.optional("block_size", Node::int)?.unwrap_or(0);
        let wrong = |_| {
            let text = format!("block_size is {block}: it must be positive, or 0 without blocks");
            Error::model(text).attribute("block_size").value(block)
        };
        Ok(Granularity { axis, block: usize::try_from(block).map_err(wrong)? })
    }

    /// Scales and zero points as numbers of `T`.
    pub(super) fn scales<'m, 'c: 'm, T: Precision + Element>(
        &self,
        call: &'c Call<'_>,
        [scale_room, zero_room]: &'m mut Rooms<'c>,
    ) -> Result<Scales<'m, T>> {
        let (scales, zeros) = (call.tensor(1)?, call.optional_tensor(2)?);
        let single = |tensor: &Tensor| tensor.len() == 1;
        if let Some(zeros) = zeros
            && zeros.shape() != scales.shape()
            && !(single(zeros) && single(scales))
        {
            return Err(misfit(call, 2, &format!("that of {}, {},", quote(call.name(1)), ShapeText(scales.shape()))));
        }
        Ok(Scales {
            spread: if single(scales) { Spread::All } else { self.spread(call, scales.shape())? },
            scales: elements_of(call.context(), scales, scale_room)?,
            zeros: zeros.map(|zeros| elements_of(call.context(), zeros, zero_room)).transpose()?,
        })
    }

    fn spread(&self, call: &Call<'_>, scales: &[usize]) -> Result<Spread> {
        let x = call.tensor(0)?.shape();
        let (Some(axis), true) = (self.axis, scales.len() == 1 || self.block > 0) else {
            return Err(misfit(call, 1, if self.axis.is_none() { "a single number" } else { "a list, or block_size" }));
        };
        // A list is one for each entry; without other axes, blocks have lists too. The text has no axis for them.
        let blocked = self.block > 0 && scales.len() == x.len();
        let axis = call.axis(0, if x.len() == 1 { 0 } else { axis })?;
        let inner = kernels::volume(1, x.get(axis.at + 1..).unwrap_or(&[]));
        let (entries, block) = (axis.size, if blocked { self.block } else { 1 });
        let blocks = [entries.div_ceil(block)];
        let needed = if blocked { axis.replaced_in(x, &blocks) } else { Shape::from_slice(&blocks) };
        match () {
            () if *scales != *needed => Err(misfit(call, 1, &ShapeText(&needed).to_string())),
            () if blocked => Ok(Spread::Blocks { entries, inner, block }),
            () => Ok(Spread::Axis { entries, inner }),
        }
    }
}

/// There is one scale for all numbers, or from version 13 on one for each entry along `axis`, or from version 21 on one
/// for each block of entries along it; and as many zero points.
pub(super) fn check_scales(facts: &Inference<'_>) -> Result<()> {
    let one = |dims: &[Dim]| dims.iter().all(|size| *size == Dim::Fixed(1));
    if let (Some(scales), Some(zeros)) = (facts.dims(1), facts.dims(2))
        && !(one(scales) && one(zeros))
    {
        if scales.len() != zeros.len() {
            return Err(facts.unequal_ranks(1, 2));
        }
        (0..scales.len()).try_for_each(|d| facts.same_size((1, d), (2, d)).map(drop))?;
    }
    let (Some(x), Some(scales)) = (facts.dims(0), facts.dims(1)) else { return Ok(()) };
    let blocked = facts.attribute("block_size").is_some();
    match scales {
        _ if one(scales) || facts.attribute("axis").is_none() => Ok(()),
        // The text has no axis for them.
        [_] if x.len() == 1 => Ok(()),
        [_] => facts.same_size((0, facts.place("axis", x.len())?), (1, 0)).map(drop),
        _ if !blocked => facts.ranked(1, 0..=1).map(drop),
        _ if scales.len() != x.len() => Err(facts.unequal_ranks(0, 1)),
        _ => check_blocks(facts, x, scales),
    }
}

fn check_blocks(facts: &Inference<'_>, x: &[Dim], scales: &[Dim]) -> Result<()> {
    let at = facts.place("axis", x.len())?;
    (0..x.len()).filter(|d| *d != at).try_for_each(|d| facts.same_size((0, d), (1, d)).map(drop))?;
    let size = |dims: &[Dim]| dims.get(at).and_then(Dim::fixed);
    let (Some(entries), Some(own), block @ 1..) = (size(x), size(scales), facts.int("block_size")?) else {
        return Ok(());
    };
    // As many as are begun.
    let blocks = entries / block + i64::from(entries % block != 0);
    if own == blocks {
        return Ok(());
    }
    let name = facts.input_name(1);
    let text = format!(
        "dimension {at} of {} of shape {} is {own}, but {entries} entries are in {blocks} blocks of {block}",
        quote(name),
        DimsText(scales)
    );
    Err(Error::input(text).parameter(name).axis(at as i64).value(own))
}
