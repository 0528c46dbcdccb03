//! What the scatter operators share: reductions, and strings.

use crate::ops::prelude::*;
use kernels::scatter::{Combine, Reduction, combine};

/// The attribute `reduction` came with version 16; max and min with version 18.
pub(super) fn reduction(node: &Node<'_>) -> Result<Reduction> {
    let all = [
        ("none", Reduction::None),
        ("add", Reduction::Add),
        ("mul", Reduction::Mul),
        ("max", Reduction::Max),
        ("min", Reduction::Min),
    ];
    match node.version() {
        ..16 => Ok(Reduction::None),
        16 | 17 => node.choice("reduction", all.first_chunk::<3>().unwrap_or(&[("none", Reduction::None); 3])),
        _ => node.choice("reduction", &all),
    }
}

/// The input 0 with updates (input 2). `scatter` combines bytes of the output with those of the updates, elements of the
/// given size.
pub(super) fn updated(
    call: &mut Call<'_>,
    reduction: Reduction,
    scatter: impl Fn(&Call<'_>, &mut [u8], &[u8], usize, Combine) -> Result<()>,
) -> Result<Values> {
    let dtype = call.tensor(0)?.dtype();
    let Some(combine) = combine(reduction, dtype) else {
        let text = format!("reduction {reduction:?} is not defined for {dtype}").to_lowercase();
        return Err(Error::model(text).attribute("reduction"));
    };
    if dtype == DType::String {
        return strings(call, |call, out, updates, size| scatter(call, out, updates, size, combine));
    }
    let mut output = call.output_over(0)?;
    scatter(call, output.bytes_mut(), call.tensor(2)?.aligned_bytes(), dtype.size(), combine)?;
    Ok(smallvec![output.finish().into()])
}

/// Strings of two tensors: their numbers are scattered, those of the updates from the number of strings of the data on.
fn strings(call: &Call<'_>, scatter: impl Fn(&Call<'_>, &mut [u8], &[u8], usize) -> Result<()>) -> Result<Values> {
    let (data, updates) = (call.tensor(0)?, call.tensor(2)?);
    let (mut own, mut new) = (call.scratch::<u64>(data.len())?, call.scratch::<u64>(updates.len())?);
    let (own, new) = (own.elements_mut::<u64>(), new.elements_mut::<u64>());
    own.iter_mut().zip(0..).for_each(|(to, k)| *to = k);
    new.iter_mut().zip(data.len() as u64..).for_each(|(to, k)| *to = k);
    scatter(call, bytemuck::cast_slice_mut(own), bytemuck::cast_slice(new), size_of::<u64>())?;
    let string = |k: usize| if k < data.len() { data.string(k) } else { updates.string(k - data.len()) };
    Ok(smallvec![call.strings(data.shape(), own.iter().map(|k| Ok(string(*k as usize))))?.into()])
}
