//! Col2Im: blocks, a column each, added up into an image.
//! <https://onnx.ai/onnx/operators/onnx__Col2Im.html>

use crate::ops::prelude::*;
use kernels::fold::{Summand, Truth, fold, work};

pub(super) const COL2IM: Implementation = Implementation::run("Col2Im", &[18], load);

/// `output[n, c, place..]` = the sum over the entries `t` of a block of `input[n, (c, t), position]`, where the block at the
/// position has its entry `t` at the place
///
/// Floats are added up as float64 in the order of `t` and rounded once, integers wrap, and for bools the sum is `or`. Strings
/// have none.
#[derive(Debug)]
struct Col2Im {
    attributes: WindowAttributes,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Col2Im { attributes: WindowAttributes::of(node)? }))
}

impl Col2Im {
    /// What is known about the shape of the output, and its windows if they are known.
    fn image(&self, facts: &Inference<'_>) -> Result<Option<(Vec<Dim>, Option<Windows>)>> {
        let input = facts.sizes::<3>(0)?;
        facts.sizes::<1>(1)?;
        facts.sizes::<1>(2)?;
        facts.same_size((1, 0), (2, 0))?;
        let block = facts.known(2);
        for (k, least) in [(1, 0), (2, 1)] {
            let sizes = facts.known(k).unwrap_or_default();
            if let Some(at) = sizes.iter().position(|size| *size < least) {
                let name = facts.input_name(k);
                let error = Error::input(format!("{name}[{at}] must be at least {least}")).parameter(name);
                return Err(error.position(vec![at]));
            }
        }
        let image = match (facts.listed(1), facts.listed(2)) {
            (Some(image), _) => image,
            (None, Some(block)) => vec![Dim::Unknown; block.len()],
            (None, None) => return Ok(None),
        };
        let [batch, rows, count] = input.cloned().unwrap_or([Dim::Unknown, Dim::Unknown, Dim::Unknown]);
        let Some(block) = block else {
            return Ok(Some(([&[batch, Dim::Unknown], &*image].concat(), None)));
        };
        let sizes: Vec<Dim> = block.iter().map(|size| Dim::of(*size)).collect();
        let channels = Dim::quotient(std::slice::from_ref(&rows), &sizes);
        if let (Some(rows), Some(entries), Dim::Unknown) = (rows.fixed(), Dim::product(&sizes).fixed(), &channels) {
            let text =
                format!("dimension 1 of \"input\" is {rows}, not a multiple of the {entries} entries of a block");
            return Err(Error::input(text).parameter("input").axis(1).value(rows));
        }
        let windows = self.attributes.windows(&block.iter().copied().map(Some).collect::<Vec<_>>())?;
        let blocks = Dim::product(&windows.counts(&image));
        if blocks.both(&count).is_none() {
            let text = format!("dimension 2 of \"input\" is {count}, but the image has {blocks} blocks");
            return Err(Error::input(text).parameter("input").axis(2));
        }
        Ok(Some(([&[batch, channels], &*image].concat(), Some(windows))))
    }
}

impl Operator for Col2Im {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let beyond = || Error::input("the blocks have more entries than can be counted");
        let Some((dims, Some(windows))) = call.by_rule(|facts| self.image(facts))? else { return Err(beyond()) };
        let shape: Shape = Dim::sizes(&dims).ok_or_else(beyond)?.into();
        let image = shape.get(2..).unwrap_or_default();
        let counts = windows.counts(&image.iter().copied().map(Dim::Fixed).collect::<Vec<_>>());
        let axes = windows.axes(image, &Dim::sizes(&counts).ok_or_else(beyond)?)?;
        let (input, planes) = (call.tensor(0)?, kernels::volume(1, shape.iter().take(2)));
        let mut output = call.output_like(input, shape)?;
        call.charge(work(&axes, planes) as u64)?;
        let sum: fn(&[kernels::windows::Axis], &[u8], &mut [u8], kernels::Resources<'_>) -> _ = match input.dtype() {
            DType::Float => sum::<f32>,
            DType::Double => sum::<f64>,
            DType::Float16 => sum::<f16>,
            DType::Bfloat16 => sum::<bf16>,
            DType::Int8 | DType::Uint8 => sum::<u8>,
            DType::Int16 | DType::Uint16 => sum::<u16>,
            DType::Int32 | DType::Uint32 => sum::<u32>,
            DType::Int64 | DType::Uint64 => sum::<u64>,
            DType::Bool => sum::<Truth>,
            DType::Complex64 => sum::<[f32; 2]>,
            DType::Complex128 => sum::<[f64; 2]>,
            other => return Err(Error::unsupported(format!("{other} can't be added up")).parameter("input")),
        };
        sum(&axes, input.aligned_bytes(), output.bytes_mut(), call.resources())?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_known(0, self.image(facts)?.map(|(dims, _)| dims));
        Ok(())
    }
}

fn sum<T: Summand>(
    axes: &[kernels::windows::Axis],
    columns: &[u8],
    out: &mut [u8],
    resources: kernels::Resources<'_>,
) -> Result<(), Stopped> {
    fold::<T, T>(axes, cast_slice(columns), None, cast_slice_mut(out), resources)
}

#[cfg(test)]
mod tests {
    use crate::dtype::{DType, Element};
    use crate::ops::testing::{infer, ints, outputs, run, tensor};
    use crate::tensor::Tensor;
    use crate::value::Value;

    fn sizes(sizes: &[i64]) -> Value {
        tensor(&[sizes.len()], sizes.to_vec())
    }

    /// The standard's examples.
    #[test]
    fn blocks_of_an_image() {
        let x: Vec<f32> = (0..5).flat_map(|row| (0..5).map(move |column| (1 + row + 5 * column) as f32)).collect();
        let want: Vec<f32> = (1..=25).map(|k| k as f32).collect();
        run("Col2Im", 18, [], [&tensor(&[1, 5, 5], x), &sizes(&[5, 5]), &sizes(&[1, 5])])
            .gives(tensor(&[1, 1, 5, 5], want));
        let x = [1f32, 5., 9., 13., 2., 6., 10., 14., 3., 7., 11., 15., 4., 8., 12., 16.];
        let dilated = [ints("dilations", &[1, 5])];
        run("Col2Im", 18, dilated, [&tensor(&[1, 4, 4], x), &sizes(&[5, 9]), &sizes(&[1, 4])])
            .fails("but the image has 0 blocks");
        // 3 of 4 places are met twice.
        let x = tensor(&[1, 2, 4], [1f32, 2., 3., 4., 10., 20., 30., 40.]);
        run("Col2Im", 18, [], [&x, &sizes(&[5]), &sizes(&[2])]).gives(tensor(&[1, 1, 5], [1f32, 12., 23., 34., 40.]));
        let pads = [ints("pads", &[1, 0])];
        run("Col2Im", 18, pads, [&x, &sizes(&[4]), &sizes(&[2])]).gives(tensor(&[1, 1, 4], [12f32, 23., 34., 40.]));
        let strides = [ints("strides", &[3]), ints("dilations", &[2])];
        let x = tensor(&[1, 4, 2], [1f32, 2., 3., 4., 5., 6., 7., 8.]);
        run("Col2Im", 18, strides, [&x, &sizes(&[7]), &sizes(&[2])])
            .gives(tensor(&[1, 2, 7], [1f32, 0., 3., 2., 0., 4., 0., 5., 0., 7., 6., 0., 8., 0.]));
    }

    #[test]
    fn all_types() {
        fn check<T: Element>(of: fn(u8) -> T) {
            let x = tensor(&[1, 2, 2], [1, 200, 100, 3].map(of).to_vec());
            let want = tensor(&[1, 1, 3], [1u8, 44, 3].map(of).to_vec());
            let got = outputs("Col2Im", 18, [], [&x, &sizes(&[3]), &sizes(&[2])]);
            // 200 + 100 is 44 in 8 bits, and 300 in others.
            match T::DTYPE.size() {
                1 => assert_eq!(got[0], want),
                _ => assert_eq!(got[0].tensor().unwrap().dtype(), T::DTYPE),
            }
        }
        check(|x| x);
        check(|x| x as i8);
        let wide = |dtype: DType, x: [f32; 4], want: [f32; 3]| {
            let cast = |shape: &[usize], numbers: &[f32]| {
                let to = [("to", crate::operator::Attribute::Int(dtype.code().into()))];
                outputs("Cast", 21, to, [&tensor(shape, numbers.to_vec())]).swap_remove(0)
            };
            let inputs = [cast(&[1, 2, 2], &x), sizes(&[3]), sizes(&[2])];
            run("Col2Im", 18, [], inputs.each_ref()).gives(cast(&[1, 1, 3], &want));
        };
        use DType::{Bfloat16, Bool, Double, Float, Float16, Int16, Int32, Int64, Uint16, Uint32, Uint64};
        for dtype in [Int16, Uint16, Int32, Uint32, Int64, Uint64, Float, Double, Float16, Bfloat16] {
            wide(dtype, [1., 200., 100., 3.], [1., 300., 3.]);
        }
        wide(Bool, [0., 1., 1., 0.], [0., 1., 0.]);
        let words = Tensor::from_strings(&[1, 2, 2], ["a", "b", "c", "d"]).unwrap().into();
        run("Col2Im", 18, [], [&words, &sizes(&[3]), &sizes(&[2])]).fails("string can't be added up");
    }

    #[test]
    fn empty_ones() {
        let none = |shape: &[usize]| tensor(shape, Vec::<f32>::new());
        run("Col2Im", 18, [], [&none(&[0, 2, 4]), &sizes(&[5]), &sizes(&[2])]).gives(none(&[0, 1, 5]));
        run("Col2Im", 18, [], [&none(&[1, 2, 0]), &sizes(&[1]), &sizes(&[2])]).gives(tensor(&[1, 1, 1], [0f32]));
        run("Col2Im", 18, [], [&none(&[1, 2, 0]), &sizes(&[0]), &sizes(&[2])]).gives(none(&[1, 1, 0]));
        run("Col2Im", 18, [], [&none(&[1, 2, 0]), &sizes(&[-1]), &sizes(&[2])])
            .fails("image_shape[0] must be at least 0");
    }

    #[test]
    fn shapes() {
        infer("Col2Im", 18, [], ["float[N, 10, 5]", "{5, 5}", "{1, 5}"]).gives("[N, 2, 5, 5]");
        infer("Col2Im", 18, [ints("strides", &[2, 2])], ["float[1, 9, 4]", "{5, 5}", "{3, 3}"]).gives("[1, 1, 5, 5]");
        infer("Col2Im", 18, [], ["float[N, 6, L]", "{H, W}", "{2, 3}"]).gives("[N, 1, H, W]");
        infer("Col2Im", 18, [], ["float[N, C, L]", "int64[3]", "int64[b]"]).gives("[N, ?, ?, ?, ?]");
        infer("Col2Im", 18, [], ["float", "int64[n]", "{1, 1, 5}"]).gives("[?, ?, ?, ?, ?]");
    }

    #[test]
    fn faults() {
        infer("Col2Im", 18, [], ["float[N, 10, 4]", "{5, 5}", "{1, 5}"])
            .fails("dimension 2 of \"input\" is 4, but the image has 5 blocks");
        infer("Col2Im", 18, [], ["float[N, 9, 5]", "{5, 5}", "{1, 5}"])
            .fails("dimension 1 of \"input\" is 9, not a multiple of the 5 entries of a block");
        infer("Col2Im", 18, [], ["float[N, 9, 5]", "{5, 5}", "{0, 5}"]).fails("block_shape[0] must be at least 1");
        infer("Col2Im", 18, [], ["float[N, 9, 5]", "{5, 5}", "{5}"]).fails("dimension 0 of \"block_shape\"");
        infer("Col2Im", 18, [ints("strides", &[1])], ["float[N, 5, 5]", "{5, 5}", "{1, 5}"]).fails("2 are needed");
    }
}
