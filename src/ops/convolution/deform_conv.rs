//! DeformConv: a convolution whose filters are bent by offsets at each place.
//! <https://onnx.ai/onnx/operators/onnx__DeformConv.html>

use crate::ops::prelude::*;

pub(super) const DEFORM_CONV: Implementation = Implementation::missing("", "DeformConv", infer);

fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let groups = windows::one_or_more(facts, "offset_group")?;
    let Some((mut dims, _)) = Filters::of(facts, [0, 1], Some(3))?.convolved(facts)? else { return Ok(()) };
    let (axes, group) = (dims.len() - 2, Dim::of(groups));
    let kernel = windows::kernel_of(facts, 1, axes)?;
    let taps: Vec<Dim> = kernel.into_iter().map(|size| size.map_or(Dim::Unknown, Dim::of)).collect();
    for (k, of_each) in [(2, axes), (4, 1)] {
        let Some(own) = facts.dims(k) else { continue };
        if own.len() != dims.len() {
            return Err(facts.unequal_ranks(0, k));
        }
        facts.same_size((0, 0), (k, 0))?;
        // For images of other ranks than 4 the text doesn't agree with itself about masks.
        let needed = Dim::product(taps.iter().chain([&group, &Dim::Fixed(of_each)]));
        if (k == 2 || axes == 2) && own.get(1).is_some_and(|own| own.both(&needed).is_none()) {
            return Err(unequal(facts, k, 1, &needed));
        }
        for (d, (dim, own)) in dims.iter_mut().zip(own).enumerate().skip(2) {
            *dim = dim.both(own).ok_or_else(|| unequal(facts, k, d, dim))?;
        }
    }
    facts.give(0, dims);
    Ok(())
}

#[cold]
fn unequal(facts: &Inference<'_>, k: usize, d: usize, need: &Dim) -> Error {
    let (name, shape) = (facts.input_name(k), DimsText(facts.dims(k).unwrap_or_default()));
    let text =
        format!("dimension {d} of {} of shape {shape} must be {need}, by the filters and the windows", quote(name));
    Error::input(text).parameter(name).axis(d as i64)
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{infer, int, ints};

    #[test]
    fn shapes() {
        let (x, w) = ("float[N, 1, 3, W]", "float[M, 1, 2, 2]");
        infer("DeformConv", 19, [ints("pads", &[1, 1, 1, 1])], [x, w, "float[N, 8, h, ?]"]).gives("[N, M, 4, W + 1]");
        infer("DeformConv", 22, [], [x, "float[M, 1, k, k]", "float[N, 8, 4, w]"]).gives("[N, M, 4, w]");
        infer(
            "DeformConv",
            19,
            [int("offset_group", 2)],
            ["float[N, 2, 3, 3]", "float[5, 2, 2, 2]", "float[N, 16, 2, 2]", "float[5]", "float[N, 8, 2, 2]"],
        )
        .gives("[N, 5, 2, 2]");
        infer("DeformConv", 22, [], ["float[N, 1, 5]", "float[1, 1, 3]", "float[N, 3, 3]"]).gives("[N, 1, 3]");
    }

    #[test]
    fn faults() {
        let (x, w, offset) = ("float[N, 1, 3, 3]", "float[M, 1, 2, 2]", "float[N, 8, 2, 2]");
        infer("DeformConv", 19, [], [x, w, "float[N, 8, 2, 3]"])
            .fails("dimension 3 of \"offset\" of shape [N, 8, 2, 3] must be 2, by the filters and the windows");
        infer("DeformConv", 19, [], [x, w, "float[N, 4, 2, 2]"]).fails("dimension 1 of \"offset\"");
        infer("DeformConv", 19, [], [x, w, offset, "-", "float[N, 8, 2, 2]"]).fails("of shape [N, 8, 2, 2] must be 4");
        infer("DeformConv", 19, [int("offset_group", 0)], [x, w, offset]).fails("offset_group is 0");
        infer("DeformConv", 19, [], [x, w, "float[N, 8, 4]"]).fails("\"offset\" has shape [N, 8, 4] of rank 3");
    }
}
