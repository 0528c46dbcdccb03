//! DepthToSpace and SpaceToDepth: channels moved to blocks of pixels, and back.
//! <https://onnx.ai/onnx/operators/onnx__DepthToSpace.html>, <https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html>

use crate::ops::prelude::*;
use std::fmt::Display;

pub(super) const DEPTH_TO_SPACE: Implementation =
    Implementation::run("DepthToSpace", &[1, 11, 13, 28], |node| load(node, node.version() >= 11, true));

pub(super) const SPACE_TO_DEPTH: Implementation =
    Implementation::run("SpaceToDepth", &[1, 13, 28], |node| load(node, node.version() >= 28, false));

/// `space[n, c, y * size + i, x * size + j] = depth[n, d, y, x]`, where `d` is `(i * size + j) * channels + c`, or
/// `(c * size + i) * size + j` if the channels are `outer`
#[derive(Debug)]
struct Blocks {
    size: usize,
    outer: bool,
    to_space: bool,
}

/// Without a mode the channels are inner (`DCR`).
fn load(node: &Node<'_>, has_mode: bool, to_space: bool) -> Result<Box<dyn Operator>> {
    let outer = match if has_mode { node.string("mode")? } else { "DCR" } {
        "DCR" => false,
        "CRD" => true,
        other => {
            let text = format!("mode is {}: allowed DCR, CRD", quote(other));
            return Err(Error::model(text).attribute("mode"));
        }
    };
    let given = node.int("blocksize")?;
    let size = usize::try_from(given).ok().filter(|size| *size > 0);
    let wrong = || Error::model(format!("blocksize is {given}: it must be at least 1")).attribute("blocksize");
    Ok(Box::new(Blocks { size: size.ok_or_else(|| wrong().value(given))?, outer, to_space }))
}

impl Blocks {
    /// A dimension divided by the blocks.
    fn divided(&self, shape: impl Display, dim: usize, axis: usize, by: Option<usize>) -> Result<usize> {
        let (size, square) = (self.size, if self.to_space { "the square of " } else { "" });
        let parts = by.filter(|by| dim.is_multiple_of(*by)).and_then(|by| dim.checked_div(by));
        parts.ok_or_else(|| {
            let text = format!("axis {axis} of \"input\" of shape {shape} is no multiple of {square}blocksize {size}");
            Error::input(text).parameter("input").axis(axis as i64).size(dim).value(size as i128)
        })
    }
}

impl Operator for Blocks {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let (input, size) = (call.tensor(0)?, self.size);
        let shape = input.shape();
        let &[n, c, h, w] = shape else {
            let text = format!("\"input\" has shape {}: it needs 4 dimensions", ShapeText(shape));
            return Err(Error::input(text).parameter("input"));
        };
        let large =
            || Error::input(format!("blocksize {size} makes \"input\" of shape {} too large", ShapeText(shape)));
        let times = |dim: usize, by: usize| dim.checked_mul(by).ok_or_else(large);
        // The axes of both sides apart, and their order in the output.
        let (parts, order, out): ([usize; 6], [usize; 6], [usize; 4]) = if self.to_space {
            let c = self.divided(ShapeText(shape), c, 1, size.checked_mul(size))?;
            let out = [n, c, times(h, size)?, times(w, size)?];
            match self.outer {
                false => ([n, size, size, c, h, w], [0, 3, 4, 1, 5, 2], out),
                true => ([n, c, size, size, h, w], [0, 1, 4, 2, 5, 3], out),
            }
        } else {
            let divided = |dim, axis| self.divided(ShapeText(shape), dim, axis, Some(size));
            let (h, w) = (divided(h, 2)?, divided(w, 3)?);
            let order = if self.outer { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
            ([n, c, h, size, w, size], order, [n, times(times(c, size)?, size)?, h, w])
        };
        let mut output = call.output_like(input, Shape::from_slice(&out))?;
        let (element, to) = (input.dtype().size(), output.bytes_mut());
        kernels::permute::permute(input.bytes(), element, &parts, &order, to, call.resources())?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let Some(dims @ [n, c, h, w]) = facts.sizes::<4>(0)? else { return Ok(()) };
        let (side, square) = (Dim::Fixed(self.size), self.size.checked_mul(self.size));
        let square_dim = square.map_or(Dim::Unknown, Dim::Fixed);
        let divided = |dim: &Dim, axis: usize, by: Option<usize>| match dim {
            Dim::Fixed(size) => self.divided(DimsText(dims), *size, axis, by).map(Dim::Fixed),
            // It is divided without a rest, or the run fails.
            _ => Ok(Formula::of(dim)
                .and_then(|dim| dim.floor_over(i64::try_from(by?).ok()?))
                .map_or(Dim::Unknown, |dim| dim.dim())),
        };
        let by = Some(self.size);
        let out = if self.to_space {
            [n.clone(), divided(c, 1, square)?, Dim::product([h, &side]), Dim::product([w, &side])]
        } else {
            [n.clone(), Dim::product([c, &square_dim]), divided(h, 2, by)?, divided(w, 3, by)?]
        };
        facts.give(0, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::value::Value;

    fn mode(mode: &str) -> (&str, Attribute) {
        ("mode", Attribute::String(mode.into()))
    }

    fn depth() -> Value {
        tensor(&[1, 8, 1, 2], (0..16).collect::<Vec<i32>>())
    }

    #[test]
    fn there_and_back() {
        let size = || int("blocksize", 2);
        let inner = tensor(&[1, 2, 2, 4], [0i32, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15]);
        let outer = tensor(&[1, 2, 2, 4], [0i32, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]);
        run("DepthToSpace", 1, [size()], [&depth()]).gives(&inner);
        run("DepthToSpace", 13, [size()], [&depth()]).gives(&inner);
        run("DepthToSpace", 28, [size(), mode("CRD")], [&depth()]).gives(&outer);
        run("SpaceToDepth", 1, [size()], [&inner]).gives(depth());
        run("SpaceToDepth", 28, [size(), mode("DCR")], [&inner]).gives(depth());
        run("SpaceToDepth", 28, [size(), mode("CRD")], [&outer]).gives(depth());
        run("SpaceToDepth", 13, [int("blocksize", 1)], [&inner]).gives(&inner);
        let empty = tensor(&[0, 4, 1, 1], Vec::<u8>::new());
        run("DepthToSpace", 13, [size()], [&empty]).gives(tensor(&[0, 1, 2, 2], Vec::<u8>::new()));
    }

    #[test]
    fn refusals() {
        let sized = |operator: &str, size: i64| run(operator, 13, [int("blocksize", size)], [&depth()]);
        sized("DepthToSpace", 3)
            .fails("axis 1 of \"input\" of shape [1, 8, 1, 2] is no multiple of the square of blocksize 3");
        sized("SpaceToDepth", 2).fails("axis 2 of \"input\" of shape [1, 8, 1, 2] is no multiple of blocksize 2");
        sized("SpaceToDepth", 0).fails("blocksize is 0: it must be at least 1");
        sized("DepthToSpace", i64::MAX).fails("no multiple");
        let empty = tensor(&[0, 0, 0, 0], Vec::<u8>::new());
        run("SpaceToDepth", 13, [int("blocksize", i64::MAX)], [&empty]).gives(tensor(&[0, 0, 0, 0], Vec::<u8>::new()));
        run("DepthToSpace", 13, [int("blocksize", 1)], [&tensor(&[1], [1u8])]).fails("it needs 4 dimensions");
        run("DepthToSpace", 11, [int("blocksize", 1), mode("RCD")], [&depth()])
            .fails("mode is \"RCD\": allowed DCR, CRD");
    }

    #[test]
    fn inferred() {
        let size = |size| [int("blocksize", size)];
        infer("DepthToSpace", 1, size(2), ["float[N, 12, 3, W]"]).gives("[N, 3, 6, 2*W]");
        infer("DepthToSpace", 13, size(2), ["float[N, C, 3, ?]"]).gives("[N, floor((C)/4), 6, ?]");
        infer("SpaceToDepth", 13, size(3), ["float[N, C, 6, W]"]).gives("[N, 9*C, 2, floor((W)/3)]");
        infer("SpaceToDepth", 1, size(3), ["float"]).gives("");
        infer("DepthToSpace", 1, size(2), ["float[N, 6, 3, 3]"])
            .fails("axis 1 of \"input\" of shape [N, 6, 3, 3] is no multiple of the square of blocksize 2");
        infer("SpaceToDepth", 1, size(2), ["float[N, 6, 3, 4]"])
            .fails("axis 2 of \"input\" of shape [N, 6, 3, 4] is no multiple of blocksize 2");
        infer("SpaceToDepth", 1, size(2), ["float[6, 3, 4]"]).fails("allowed rank 4");
    }
}
