//! Multinomial: samples of classes, by the unnormalized logarithms of their probabilities.
//! <https://onnx.ai/onnx/operators/onnx__Multinomial.html>

use super::seed::Seed;
use crate::ops::prelude::*;
use kernels::random::{class, cumulate};

pub(super) const MULTINOMIAL: Implementation = Implementation::run("Multinomial", &[7, 22], load);

/// `output[b, s]` = a class, drawn with a probability in proportion to `e^input[b, class]`; see [`Seed`]
///
/// Computed in float64, from the first uniform number of the element. A row needs a class of positive probability.
#[derive(Debug)]
struct Multinomial {
    seed: Seed,
    dtype: DType,
    samples: usize,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let count = node.int("sample_size")?;
    let samples = usize::try_from(count).map_err(|_| {
        Error::model(format!("sample_size is {count}: a number is needed")).attribute("sample_size").value(count)
    })?;
    Ok(Box::new(Multinomial { seed: Seed::of(node)?, dtype: node.output_type("dtype")?, samples }))
}

impl Operator for Multinomial {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let call = &*call;
        let (input, samples) = (call.tensor(0)?, self.samples);
        let &[batch, classes] = input.shape() else { return Err(misfit(call, 0, "a rank of 2")) };
        if classes == 0 && batch > 0 && samples > 0 {
            return Err(misfit(call, 0, "at least one class"));
        }
        let mut output = call.output_of(self.dtype, shape_of([&[batch, samples]]))?;
        call.charge(input.len() as u64)?;
        let mut sums = call.scratch::<f64>(input.len())?;
        let sums = sums.elements_mut::<f64>();
        cumulate(input.dtype().format(), input.aligned_bytes(), classes, sums, call.resources()).map_err(
            |stopped| match stopped {
                Stopped::OutOfRange => {
                    let text = "\"input\" has a row without a class of positive probability, or with NaN or infinity";
                    Error::input(text).parameter("input")
                }
                other => other.into(),
            },
        )?;
        let (sums, random, size) = (&*sums, self.seed.generator(), self.dtype.size());
        // For no rows there may be any number of samples.
        let row = samples.saturating_mul(size);
        kernels::pieces(output.bytes_mut(), size, row, COST, call.resources(), |row, before, out| {
            let sums = sums.get(row * classes..(row + 1) * classes).ok_or(Stopped::Misfit)?;
            for (k, out) in out.chunks_exact_mut(size).enumerate() {
                let [uniform, _] = random.uniform((row * samples + before / size + k) as u64);
                let class = class(sums, uniform) as u64;
                // The lowest bytes: systems that are not little-endian don't compile.
                out.copy_from_slice(class.to_ne_bytes().get(..size).ok_or(Stopped::Misfit)?);
            }
            Ok(())
        })?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_type(0, self.dtype);
        let batch = facts.sizes::<2>(0)?.map_or(Dim::Unknown, |[batch, _]| batch.clone());
        facts.give(0, [batch, Dim::Fixed(self.samples)]);
        Ok(())
    }

    fn pure(&self) -> bool {
        false
    }
}

/// Bytes that are written in the time of a byte of a sample.
const COST: usize = 16;

#[cfg(test)]
mod tests {
    use crate::ops::testing::{float, infer, int, outputs, run, tensor};
    use half::f16;

    #[test]
    fn as_often_as_probable() {
        // Probabilities 1/4, 0, 3/4, however large the logarithms are.
        let (zero, three) = (1000f64, 1000.0 + 3f64.ln());
        let input = tensor(&[2, 3], [zero, f64::NEG_INFINITY, three, three, f64::NEG_INFINITY, zero]);
        let drawn =
            |seed| outputs("Multinomial", 7, [int("sample_size", 4096), float("seed", seed)], [&input]).remove(0);
        let classes = drawn(1.0);
        let classes = classes.tensor().unwrap().as_slice::<i32>().unwrap();
        for (row, want) in classes.chunks(4096).zip([0.25, 0.75]) {
            assert!(row.iter().all(|class| [0, 2].contains(class)));
            let zeros = row.iter().filter(|class| **class == 0).count() as f64 / 4096.0;
            assert!((zeros - want).abs() < 0.04, "{zeros}");
        }
        assert_eq!(drawn(1.0), drawn(1.0));
        assert_ne!(drawn(1.0), drawn(2.0));
        let only = tensor(&[1, 3], [f16::NEG_INFINITY, f16::NEG_INFINITY, f16::ONE]);
        run("Multinomial", 22, [int("dtype", 7), int("sample_size", 2)], [&only]).gives(tensor(&[1, 2], [2i64, 2]));
        let none = tensor(&[0, 3], Vec::<f32>::new());
        run("Multinomial", 22, [], [&none]).gives(tensor(&[0, 1], Vec::<i32>::new()));
    }

    #[test]
    fn refusals() {
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            run("Multinomial", 22, [], [&tensor(&[1, 1], [number])]).fails("has a row without a class of positive");
        }
        run("Multinomial", 22, [], [&tensor(&[1, 0], Vec::<f32>::new())])
            .fails("\"input\" has shape [1, 0]: at least one class is needed");
    }

    #[test]
    fn shapes_and_types() {
        infer("Multinomial", 7, [int("sample_size", 4)], ["float[N, 3]"]).gives("[N, 4]");
        infer("Multinomial", 22, [], ["float"]).gives("[?, 1]");
        infer("Multinomial", 7, [], ["float"]).has_type("int32");
        infer("Multinomial", 22, [int("dtype", 7)], ["float"]).has_type("int64");
    }

    #[test]
    fn faults() {
        infer("Multinomial", 7, [int("dtype", 1)], ["float"]).fails("dtype asks for float32: allowed int32, int64");
        infer("Multinomial", 7, [int("sample_size", -1)], ["float"]).fails("sample_size is -1: a number is needed");
        infer("Multinomial", 7, [], ["float[3]"]).fails("\"input\" has shape [3] of rank 1: allowed rank 2");
    }
}
