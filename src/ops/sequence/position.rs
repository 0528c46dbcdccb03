//! Positions in sequences.

use crate::ops::prelude::*;

/// The position that the input `k` names, a scalar: negative values count from the end, `len`. At most `last` is allowed;
/// without one there is no position.
pub(super) fn position(call: &Call<'_>, k: usize, len: usize, last: Option<usize>) -> Result<usize> {
    let given = match call.tensor(k)?.dtype() {
        DType::Int32 => call.scalar::<i32>(k)?.into(),
        _ => call.scalar::<i64>(k)?,
    };
    let distance = usize::try_from(given.unsigned_abs()).ok();
    let at = if given < 0 { distance.and_then(|distance| len.checked_sub(distance)) } else { distance };
    at.filter(|at| last.is_some_and(|last| *at <= last)).ok_or_else(|| {
        let least = if len == 0 { "0".to_string() } else { format!("-{len}") };
        let allowed = last.map_or("no position is allowed".to_string(), |last| format!("allowed {least}..={last}"));
        let s = if len == 1 { "" } else { "s" };
        let text = format!("position = {given} is out of range for a sequence of {len} element{s}: {allowed}");
        Error::input(text).parameter("position").value(given).size(len)
    })
}
