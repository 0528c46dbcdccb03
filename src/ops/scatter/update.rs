//! What the scatter operators share: reductions, and where the updates go.

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

/// The input 0 with updates, the input `from`. `scatter` combines bytes of the output with those of the updates, elements of the
/// given size.
pub(super) fn updated(
    call: &mut Call<'_>,
    from: usize,
    reduction: Reduction,
    scatter: impl Fn(&Call<'_>, &mut [u8], &[u8], usize, Combine) -> Result<()>,
) -> Result<Values> {
    let dtype = call.tensor(0)?.dtype();
    let Some(combine) = combine(reduction, dtype.format()) else {
        let text = format!("reduction {reduction:?} is not defined for {dtype}").to_lowercase();
        return Err(Error::model(text).attribute("reduction"));
    };
    // Strings of two tensors can be mixed if they are views into one text.
    let strings = [call.tensor(0)?, call.tensor(from)?];
    let joined = if dtype == DType::String { call.joined(&strings)? } else { None };
    let mut output = match joined.as_deref() {
        Some([data, _]) => {
            let mut output = call.output_like(data, shape_of([data.shape()]))?;
            kernels::copied(data.bytes(), output.bytes_mut(), call.resources())?;
            output
        }
        _ => call.output_over(0)?,
    };
    let updates = match joined.as_deref() {
        Some([_, updates]) => updates,
        _ => call.tensor(from)?,
    };
    scatter(call, output.bytes_mut(), updates.aligned_bytes(), dtype.size(), combine)?;
    Ok(output.finish().into())
}
