//! Det: the determinants of square matrices.
//! <https://onnx.ai/onnx/operators/onnx__Det.html>

use crate::ops::prelude::*;

pub(super) const DET: Implementation = Implementation::missing("", "Det", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let Some([batch @ .., rows, columns]) = facts.ranked(0, 2..)? else { return Ok(()) };
    if rows.both(columns).is_none() {
        let shape = DimsText(facts.dims(0).unwrap_or_default());
        let text = format!("\"X\" has shape {shape}: its matrices are not square");
        return Err(Error::input(text).parameter("X").axis(batch.len() as i64 + 1));
    }
    facts.give(0, batch);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::infer;

    #[test]
    fn shapes() {
        infer("Det", 11, [], ["float[N, 2, M, M]"]).gives("[N, 2]");
        infer("Det", 22, [], ["float[3, ?]"]).gives("[]");
        infer("Det", 22, [], ["float"]).gives("");
        infer("Det", 11, [], ["float[N, 3, 4]"]).fails("\"X\" has shape [N, 3, 4]: its matrices are not square");
        infer("Det", 11, [], ["float[3]"]).fails("\"X\" has shape [3] of rank 1: allowed ranks from 2 on");
    }
}
