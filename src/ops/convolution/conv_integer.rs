//! ConvInteger: a convolution of small integers, each less its zero point, added up in int32.
//! <https://onnx.ai/onnx/operators/onnx__ConvInteger.html>

use crate::ops::prelude::*;
use kernels::gemm::{OfIntegers, Step};

pub(super) const CONV_INTEGER: Implementation = Implementation::product("ConvInteger", &[10], load);

/// `y` = the convolution of `x - x_zero_point` with `w - w_zero_point`, as Conv's
///
/// Sums wrap. Padding counts as `x_zero_point`: it adds nothing. `w_zero_point` may have a number for each filter.
#[derive(Debug)]
struct ConvInteger {
    filters: Filters,
    weights: Weights,
}

fn load(node: &Node<'_>) -> Result<Arc<dyn MatrixProduct>> {
    Ok(Arc::new(ConvInteger { filters: Filters::of(node, [0, 1], None)?, weights: Weights::of_each(node, &[1, 3]) }))
}

impl ConvInteger {
    fn check(&self, facts: &Inference<'_>) -> Result<Option<(Vec<Dim>, Windows)>> {
        facts.single(2)?;
        facts.ranked(3, ..=1)?;
        facts.one_for_each(3, (1, 0))?;
        self.filters.convolved(facts)
    }

    fn convolution(&self, call: &Call<'_>) -> Result<Convolution> {
        self.filters.of_call(call, |facts| self.check(facts))
    }

    fn sums(
        &self,
        call: &Call<'_>,
        convolution: &Convolution,
        epilogue: &[&dyn Step<u32>],
        out: &mut [i32],
    ) -> Result<()> {
        let zeros = [call.optional_tensor(2)?, call.optional_tensor(3)?];
        convolution.sums(call, &self.weights, [call.tensor(0)?, call.tensor(1)?], zeros, epilogue, out)
    }
}

impl MatrixProduct for ConvInteger {
    fn shape(&self, call: &Call<'_>, dtype: DType) -> Option<Shape> {
        Some(self.convolution(call).ok().filter(|_| dtype == DType::Float)?.output)
    }

    fn reads_beside(&self) -> bool {
        true
    }

    fn run_then(&self, call: &Call<'_>, tail: &Tail) -> Result<Values> {
        let convolution = self.convolution(call)?;
        let mut output = call.output::<f32>(&convolution.output)?;
        let [Some(scale), addend] = tail.scale else { return Err(Error::bug("sums of integers without a scale")) };
        let by_filter = convolution.by_filter();
        let addend = addend.map(|k| call.tensor(k)?.as_slice::<f32>()).transpose()?;
        let addend = addend.map(|addend| convolution.bias::<f32>(addend, &by_filter));
        let steps = TailSteps::<f32>::of(call, Some(tail), (convolution.m, convolution.n))?;
        let then: SmallVec<[_; 3]> = addend.iter().map(|addend| addend as _).chain(steps.all()).collect();
        let scales = Broadcast { elements: call.tensor(scale)?.as_slice()?, strides: Strides::ONE };
        let floats = OfIntegers { scales, then: &then };
        self.sums(call, &convolution, &[&floats], cast_slice_mut::<f32, i32>(output.elements_mut()?))?;
        Ok(output.finish().into())
    }
}

impl Operator for ConvInteger {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let convolution = self.convolution(call)?;
        let mut output = call.output::<i32>(&convolution.output)?;
        self.sums(call, &convolution, &[], output.elements_mut()?)?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_known(0, self.check(facts)?.map(|(dims, _)| dims));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::Element;
    use crate::ops::filters::plain::{Case, random};
    use crate::ops::testing::{infer, int, ints, run, tensor};
    use crate::value::Value;

    /// The standard's examples.
    #[test]
    fn windows_less_their_zero_point() {
        let x = tensor(&[1, 1, 3, 3], [2u8, 3, 4, 5, 6, 7, 8, 9, 10]);
        let (w, zero) = (tensor(&[1, 1, 2, 2], [1u8; 4]), tensor(&[], [1u8]));
        run("ConvInteger", 10, [], [&x, &w, &zero]).gives(tensor(&[1, 1, 2, 2], [12i32, 16, 24, 28]));
        run("ConvInteger", 10, [], [&x, &w]).gives(tensor(&[1, 1, 2, 2], [16i32, 20, 28, 32]));
        let want = [1i32, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9];
        run("ConvInteger", 10, [ints("pads", &[1; 4])], [&x, &w, &zero]).gives(tensor(&[1, 1, 4, 4], want));
    }

    /// All pairs of types, with zero points of all kinds.
    #[test]
    fn many_convolutions() {
        fn bytes<T: Element>(shape: &[usize], seed: usize, of: fn(u8) -> T) -> Value {
            let mut random = random(seed as u64);
            tensor(shape, (0..shape.iter().product()).map(|_| of(random(256) as u8)).collect::<Vec<T>>())
        }
        fn numbers(value: &Value) -> Vec<i32> {
            let tensor = value.tensor().unwrap();
            let signed = tensor.as_slice::<i8>().map(|all| all.iter().map(|x| i32::from(*x)).collect());
            signed.unwrap_or_else(|_| tensor.bytes().iter().map(|x| i32::from(*x)).collect())
        }
        fn check<X: Element, W: Element>(seed: usize, case: &Case, of_x: fn(u8) -> X, of_w: fn(u8) -> W) {
            let (x, w) = (bytes(&case.x, seed, of_x), bytes(&case.w, seed + 1, of_w));
            let taps = case.taps();
            let each = taps.len() / case.output()[..2].iter().product::<usize>().max(1);
            for count in [vec![], vec![1], case.w[..1].to_vec()] {
                let zeros = [bytes(&[1], seed + 2, of_x), bytes(&count, seed + 3, of_w)];
                let (all_x, all_w, zero, of_filters) =
                    (numbers(&x), numbers(&w), numbers(&zeros[0])[0], numbers(&zeros[1]));
                let want = taps.iter().enumerate().map(|(at, taps)| {
                    let of_filter = of_filters[at / each.max(1) % case.w[0] % of_filters.len()];
                    let term = |(k, at): &(usize, Option<usize>)| {
                        at.map_or(0, |at| (all_w[*k] - of_filter) * (all_x[at] - zero))
                    };
                    taps.iter().map(term).sum::<i32>()
                });
                let want = tensor(&case.output(), want.collect::<Vec<_>>());
                run("ConvInteger", 10, case.attributes(), [&x, &w, &zeros[0], &zeros[1]]).gives(want);
            }
        }
        for (seed, case) in Case::many(20, 3, 3).enumerate() {
            check::<u8, u8>(seed, &case, |x| x, |w| w);
            check::<u8, i8>(seed, &case, |x| x, |w| w as i8);
            check::<i8, u8>(seed, &case, |x| x as i8, |w| w);
            check::<i8, i8>(seed, &case, |x| x as i8, |w| w as i8);
        }
    }

    /// As many taps as float32 has sums of, and more, of the greatest products.
    #[test]
    fn large_sums() {
        for taps in [257, 258, 259, 300] {
            let (x, w) =
                (tensor(&[1, 2, taps + 1], vec![0u8; 2 * taps + 2]), tensor(&[2, 1, taps], vec![255u8; 2 * taps]));
            let most = taps as i32 * 255 * 255;
            run("ConvInteger", 10, [int("group", 2)], [&x, &w, &tensor(&[], [255u8]), &tensor(&[2], [0u8, 1])])
                .gives(tensor(&[1, 2, 2], [-most, -most, -most / 255 * 254, -most / 255 * 254]));
        }
    }

    #[test]
    fn refusals() {
        let (x, w) = (tensor(&[1, 1, 3], [1u8, 2, 3]), tensor(&[2, 1, 2], [1i8; 4]));
        let zero = tensor(&[], [0u8]);
        run("ConvInteger", 10, [], [&x, &w, &tensor(&[2], [1u8; 2])]).fails("has shape [2]: one value is needed");
        run("ConvInteger", 10, [], [&x, &w, &zero, &tensor(&[3], [1i8; 3])]).fails("dimension 0 of \"w_zero_point\"");
        run("ConvInteger", 10, [], [&x, &w, &zero, &tensor(&[2, 1], [1i8; 2])]).fails("allowed ranks 0 to 1");
    }

    #[test]
    fn shapes() {
        let (x, w) = ("uint8[N, 1, 3, W]", "uint8[M, 1, 2, 2]");
        infer("ConvInteger", 10, [], [x, w, "uint8[]"]).gives("[N, M, 2, max(W - 1, 0)]");
        infer("ConvInteger", 10, [ints("pads", &[1, 1, 1, 1])], [x, w, "-", "uint8[M]"]).gives("[N, M, 4, W + 1]");
        infer("ConvInteger", 10, [], [x, "int8[4, 1, 2, 2]", "uint8[1]", "int8[1]"]).gives("[N, 4, 2, max(W - 1, 0)]");
    }

    #[test]
    fn faults() {
        let x = "uint8[N, 1, 3, 3]";
        infer("ConvInteger", 10, [], [x, "int8[4, 1, 2, 2]", "-", "int8[3]"]).fails(
            "dimension 0 of \"w\" of shape [4, 1, 2, 2] is 4, and dimension 0 of \"w_zero_point\" of shape [3] is 3",
        );
        infer("ConvInteger", 10, [], [x, "int8[4, 2, 2, 2]"])
            .fails("\"x\" has 1 channels, but the filters of 1 groups have 2 each");
    }
}
