//! MelWeightMatrix: the weights of frequencies in the bands of the mel scale.
//! <https://onnx.ai/onnx/operators/onnx__MelWeightMatrix.html>

use super::{beyond, frequencies};
use crate::ops::prelude::*;
use kernels::bands::{mel_edges, triangles};

pub(super) const MEL_WEIGHT_MATRIX: Implementation = Implementation::run("MelWeightMatrix", &[17], load);

/// `output[j, b]` is the weight of the frequency `j` in the band `b`, a triangle with the peak 1 between its edges.
///
/// The text leaves open where the edges are. As in the reference implementation there are `num_mel_bins + 2` from
/// `lower_edge_hertz` on, at equal distances in mel, of which `upper_edge_hertz` is the next one; each is moved to the bin
/// `floor((dft_length + 1) * hertz / sample_rate)`. Bins beyond the last frequency have no row. Computed in double and rounded
/// once; to integers toward 0.
#[derive(Debug)]
struct MelWeightMatrix {
    dtype: DType,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(MelWeightMatrix { dtype: node.output_type("output_datatype")? }))
}

/// What is known about the numbers of frequencies and of bands, the length of a transform, and the sample rate.
fn known(facts: &Inference<'_>) -> Result<([Dim; 2], [Option<i64>; 2])> {
    (0..5).try_for_each(|k| facts.single(k))?;
    let number = |k: usize| facts.number(k).and_then(|number| number.number());
    for (k, least) in [0, 1, 1].into_iter().enumerate() {
        if let Some(number) = number(k).filter(|number| *number < least) {
            let name = facts.input_name(k);
            let text = format!("{name} is {number}: it must be at least {least}");
            return Err(Error::input(text).parameter(name).value(number));
        }
    }
    Ok(([frequencies(&facts.size(1)), facts.size(0)], [1, 2].map(number)))
}

impl Operator for MelWeightMatrix {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let ([Dim::Fixed(rows), Dim::Fixed(bands)], [Some(len), Some(rate)]) = call.by_rule(known)? else {
            return Err(beyond());
        };
        let [low, high] = [hertz(call, 3)?, hertz(call, 4)?];
        let scale = (len as f64 + 1.0, rate as f64);
        // Either may be NaN.
        if !(0.0 <= low && low <= high && (scale.0 * high / scale.1).is_finite()) {
            let text =
                format!("the edges are {low} and {high} Hz: they must be finite and in order, and not be negative");
            return Err(Error::input(text).parameter("lower_edge_hertz"));
        }
        let mut output = Output::<f64>::new(call.context(), self.dtype, shape_of([&[rows, bands]]))?;
        let mut room = call.scratch::<f64>(bands + 2)?;
        call.charge(bands as u64)?;
        mel_edges([low, high], scale, room.elements_mut(), &mut call.lookout())?;
        triangles(room.elements_mut(), output.elements_mut()?, call.resources())?;
        Ok(output.finish()?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_type(0, self.dtype);
        let (dims, _) = known(facts)?;
        facts.give(0, dims);
        Ok(())
    }
}

/// A frequency, of any float type.
fn hertz(call: &Call<'_>, k: usize) -> Result<f64> {
    let mut room = None;
    let numbers = elements_of::<f64>(call.context(), call.tensor(k)?, &mut room)?;
    Ok(numbers.first().copied().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{infer, int, run, tensor};
    use crate::value::Value;

    fn inputs(bands: i64, len: i64, rate: i64, edges: [f32; 2]) -> [Value; 5] {
        let [low, high] = edges.map(|edge| tensor(&[], [edge]));
        [tensor(&[], [bands]), tensor(&[], [len]), tensor(&[1], [rate]), low, high]
    }

    #[test]
    fn bands() {
        // Edges are in the bins 2, 3 and 5.
        let one = inputs(1, 14, 15, [2.0, 8.0]);
        run("MelWeightMatrix", 17, [], one.each_ref()).gives(tensor(&[8, 1], [0f32, 0., 0., 1., 0.5, 0., 0., 0.]));
        let dtype = int("output_datatype", DType::Int8.code().into());
        run("MelWeightMatrix", 17, [dtype], one.each_ref()).gives(tensor(&[8, 1], [0i8, 0, 0, 1, 0, 0, 0, 0]));
        // In 2, 7, 13, 18 and 24: there is no row beyond 7.
        let cut = [[0.0; 3], [0.0; 3], [0.0; 3], [0.2, 0.0, 0.0], [0.4, 0.0, 0.0], [0.6, 0.0, 0.0], [0.8, 0.0, 0.0]];
        let cut: Vec<f32> = cut.into_iter().chain([[1.0, 0.0, 0.0]]).flatten().collect();
        run("MelWeightMatrix", 17, [], inputs(3, 14, 15, [2.0, 30.0]).each_ref()).gives(tensor(&[8, 3], cut));
        // Bands without a width have one bin.
        run("MelWeightMatrix", 17, [], inputs(2, 8, 16, [4.0, 4.0]).each_ref())
            .gives(tensor(&[5, 2], [0f32, 0., 0., 0., 1., 1., 0., 0., 0., 0.]));
        run("MelWeightMatrix", 17, [], inputs(0, 8, 16, [1.0, 4.0]).each_ref())
            .gives(tensor(&[5, 0], Vec::<f32>::new()));
    }

    #[test]
    fn refusals() {
        let fails = |inputs: [Value; 5], text: &str| {
            run("MelWeightMatrix", 17, [], inputs.each_ref()).fails(text);
        };
        fails(inputs(-1, 8, 16, [1.0, 4.0]), "num_mel_bins is -1: it must be at least 0");
        fails(inputs(1, 0, 16, [1.0, 4.0]), "dft_length is 0: it must be at least 1");
        fails(inputs(1, 8, 0, [1.0, 4.0]), "sample_rate is 0: it must be at least 1");
        fails(inputs(1, 8, 16, [-1.0, 4.0]), "the edges are -1 and 4 Hz: they must be finite and in order");
        fails(inputs(1, 8, 16, [5.0, 4.0]), "the edges are 5 and 4 Hz");
        fails(inputs(1, 8, 16, [1.0, f32::NAN]), "the edges are 1 and NaN Hz");
        fails(inputs(1, 8, 16, [1.0, f32::INFINITY]), "the edges are 1 and inf Hz");
        fails(inputs(i64::MAX, 8, 16, [1.0, 4.0]), "more bytes than can be counted");
        fails(inputs(1 << 40, 8, 16, [1.0, 4.0]), "tensor_bytes");
    }

    #[test]
    fn shapes_and_types() {
        let edges = ["int64", "float", "float"];
        infer("MelWeightMatrix", 17, [], ["{80}", "{400}", edges[0], edges[1], edges[2]]).gives("[201, 80]");
        infer("MelWeightMatrix", 17, [], ["{80}", "{N}", edges[0], edges[1], edges[2]]).gives("[floor((N)/2) + 1, 80]");
        infer("MelWeightMatrix", 17, [int("output_datatype", 10)], ["int64", "int32", edges[0], edges[1], edges[2]])
            .has_type("float16");
        infer("MelWeightMatrix", 17, [], ["{80}", "{400}", edges[0], "float[1, 1]", edges[2]])
            .fails("\"lower_edge_hertz\" has shape [1, 1]: one value is needed");
    }
}
