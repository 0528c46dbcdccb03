//! BatchNormalization: each channel by its mean and variance, scaled and shifted.
//! <https://onnx.ai/onnx/operators/onnx__BatchNormalization.html>

use crate::ops::prelude::*;
use kernels::channels::{self, Channels};
use kernels::gemm::blocks::len_of;
use kernels::half::Half;

pub(super) const BATCH_NORMALIZATION: Implementation =
    Implementation::blockwise("BatchNormalization", &[1, 6, 7, 9, 14, 15], load);

/// `Y = (X - mean) / sqrt(variance + epsilon) * scale + B`, with numbers for each channel. In training, mean and variance
/// are those of the channel in `X`, and the other outputs are the given ones with a share of these:
/// `given * momentum + own * (1 - momentum)`. The variance is that of the population.
///
/// All is computed in f64 and rounded once.
#[derive(Debug, Clone)]
struct BatchNormalization {
    training: bool,
    /// There is a mean of each place, not of each channel.
    by_place: bool,
    momentum: f64,
    epsilon: f64,
    /// Numbers are those of a type of 16 bits, in float32.
    half: Option<Half>,
}

/// Up to version 6 `is_test` asks for training, from version 14 on `training_mode`. Between these it is asked for by the
/// number of outputs. Up to version 8 the attribute `spatial` may ask for a mean of each place.
fn load(node: &Node<'_>) -> Result<Arc<dyn Blockwise>> {
    let training = match node.version() {
        ..7 => !node.is_set("is_test")?,
        7..14 => node.output_count() > 1,
        _ => node.is_set("training_mode")?,
    };
    if !training && node.output_count() > 1 {
        return Err(Error::model("outputs beyond the first are those of training, which the node doesn't ask for"));
    }
    let by_place = node.attribute("spatial").is_some() && !node.is_set("spatial")?;
    let (momentum, epsilon) = (node.float("momentum")?.into(), node.float("epsilon")?.into());
    Ok(Arc::new(BatchNormalization { training, by_place, momentum, epsilon, half: None }))
}

impl BatchNormalization {
    /// What is known about the shape of the numbers of channels.
    fn shape(&self, facts: &Inference<'_>) -> Result<Option<Vec<Dim>>> {
        let x = facts.ranked(0, 1..)?;
        if self.by_place {
            let Some([_, place @ ..]) = x else { return Ok(facts.dims(3).map(<[Dim]>::to_vec)) };
            (1..5).try_for_each(|k| facts.needs(k, place))?;
            return Ok(Some(place.to_vec()));
        }
        let mut channels = match x {
            // A list has one channel.
            Some([_]) => Dim::Fixed(1),
            Some([_, channels, ..]) => channels.clone(),
            _ => Dim::Unknown,
        };
        for k in 1..5 {
            let Some([own]) = facts.sizes(k)? else { continue };
            channels = channels.both(own).ok_or_else(|| {
                let name = facts.input_name(k);
                let text = format!("{} has {own} numbers, but there are {channels} channels", quote(name));
                Error::input(text).parameter(name).axis(0)
            })?;
        }
        Ok(Some(vec![channels]))
    }

    /// Writes the mean of each channel in `X`, or its variance.
    fn measure(&self, call: &Call<'_>, moment: lanes::Moment, to: &mut [f64]) -> Result<()> {
        let x = call.tensor(0)?;
        let lanes = Lanes::new(x.shape(), |axis| if self.by_place { axis == 0 } else { axis != 1 });
        by_type!(floats, x.dtype(), S as T => {
            let mut scratch = call.scratch::<T>(lanes.scratch_to_measure::<S, T>(call.threads()))?;
            let from = x.as_slice::<S>()?;
            Ok(lanes::measure::<_, S, f64, T>(&moment, from, &lanes, scratch.elements_mut(), to, call.resources())?)
        })
    }
}

/// The numbers of an input.
fn read(call: &Call<'_>, k: usize, to: &mut [f64]) -> Result<()> {
    let tensor = call.tensor(k)?;
    by_type!(floats, tensor.dtype(), S as _T => {
        Ok(channels::load(tensor.as_slice::<S>()?, to, &mut call.lookout())?)
    })
}

/// An output with these numbers, of the type and the shape of an input.
fn write(call: &Call<'_>, k: usize, numbers: &[f64]) -> Result<Value> {
    let like = call.tensor(k)?;
    let mut output = call.output_of(like.dtype(), Shape::from_slice(like.shape()))?;
    by_type!(floats, like.dtype(), S as _T => {
        Ok(channels::store(numbers, output.elements_mut::<S>()?, &mut call.lookout())?)
    })?;
    Ok(output.finish().into())
}

impl Blockwise for BatchNormalization {
    fn of_halves(&self, half: Half) -> Option<Arc<dyn Blockwise>> {
        (!self.training).then(|| Arc::new(BatchNormalization { half: Some(half), ..self.clone() }) as _)
    }

    fn in_blocks(&self, channels: usize, _: usize, _: &Constants<'_>) -> Option<InBlocks> {
        let operator = BatchInBlocks { epsilon: self.epsilon, channels, half: self.half };
        (!self.training && !self.by_place).then(|| InBlocks::Windows {
            operator: Arc::new(operator),
            channels,
            ends: Ends::Both,
        })
    }
}

/// Channels by given means and variances, of images in blocks.
#[derive(Debug)]
struct BatchInBlocks {
    epsilon: f64,
    channels: usize,
    half: Option<Half>,
}

impl Windowed for BatchInBlocks {
    fn is_ready(&self, call: &Call<'_>, _: &Layout) -> bool {
        let own = |k: usize| call.tensor(k).is_ok_and(|tensor| tensor.shape() == [self.channels]);
        call.tensor(0).is_ok_and(|x| x.dtype() == DType::Float) && (1..5).all(own)
    }

    fn run(&self, call: &mut Call<'_>, _: &Layout, _: Option<&Tail>) -> Result<Values> {
        let shape = Shape::from_slice(call.tensor(0)?.shape());
        let ([images, _], image) = parts_in_blocks(&shape)?;
        // Where the images are, if nobody reads them later.
        let (mut y, x) = match NewTensor::over(call.taken(0)?.into_tensor()?) {
            Ok(y) => (y, None),
            Err(x) => (output_in_blocks(call, images, self.channels, image)?, Some(x)),
        };
        // Those beyond the last channel have zeros.
        let count = len_of(self.channels, 1);
        let mut memory = call.scratch::<f64>(count.saturating_mul(4))?;
        let numbers = memory.elements_mut::<f64>();
        numbers.fill(0.0);
        let mut lists = numbers.chunks_exact_mut(count.max(1));
        let [factors, biases, means, variances] = std::array::from_fn(|_| lists.next().unwrap_or(&mut []));
        for (k, to) in [&mut *factors, biases, means, variances].into_iter().enumerate() {
            read(call, k + 1, to.get_mut(..self.channels).unwrap_or(&mut []))?;
        }
        let own = factors.get_mut(..self.channels).unwrap_or(&mut []);
        channels::divide_by_deviation(own, variances, self.epsilon, &mut call.lookout())?;
        let data = x.as_ref().map(Tensor::as_slice).transpose()?;
        let channels = Channels { means, factors, biases, run: kernels::volume(1, image) };
        channels::scale_blocks(data, channels, self.half, y.elements_mut()?, call.resources())?;
        Ok(y.finish().into())
    }
}

impl Operator for BatchNormalization {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(|facts| self.shape(facts))?;
        let (x, count) = (call.tensor(0)?, call.tensor(3)?.len());
        let mut memory = call.scratch::<f64>(count.saturating_mul(6))?;
        let mut lists = memory.elements_mut::<f64>().chunks_exact_mut(count.max(1));
        let mut list = || lists.next().unwrap_or(&mut []);
        let [factors, biases, means, variances, own_means, own_variances] = std::array::from_fn(|_| list());
        for (k, to) in [&mut *factors, biases, means, variances].into_iter().enumerate() {
            read(call, k + 1, to)?;
        }
        let mut lookout = call.lookout();
        let (mut y, mut others) = (call.output_of(x.dtype(), Shape::from_slice(x.shape()))?, Values::new());
        if self.training {
            call.charge((x.len() as u64).saturating_mul(2))?;
            self.measure(call, lanes::Moment::Mean, own_means)?;
            self.measure(call, lanes::Moment::Variance, own_variances)?;
            channels::mix(means, own_means, self.momentum, &mut lookout)?;
            channels::mix(variances, own_variances, self.momentum, &mut lookout)?;
            for (k, numbers) in [&*means, variances, own_means, own_variances].into_iter().enumerate() {
                if k + 1 < call.output_count() {
                    others.push(write(call, 3 + k % 2, numbers)?);
                }
            }
        }
        let (means, variances) = if self.training { (own_means, own_variances) } else { (means, variances) };
        channels::divide_by_deviation(factors, variances, self.epsilon, &mut lookout)?;
        let run = if self.by_place { 1 } else { kernels::volume(1, x.shape().iter().skip(2)) };
        by_half!(self.half, x.dtype(), _R to S as _T => {
            let (from, to) = (cast_slice::<u8, S>(x.aligned_bytes()), cast_slice_mut(y.bytes_mut()));
            Ok(channels::scale(from, Channels { means, factors, biases, run }, to, call.resources())?)
        })?;
        Ok(std::iter::once(y.finish().into()).chain(others).collect())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        facts.give_shape_of(0, 0);
        if let Some(shape) = self.shape(facts)? {
            (1..facts.output_count()).for_each(|k| facts.give(k, &*shape));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{infer, int, outputs, run, run_for, tensor};
    use crate::value::Value;
    use half::{bf16, f16};

    fn float(name: &str, value: f32) -> (&str, Attribute) {
        (name, Attribute::Float(value))
    }

    /// Two images with two channels of two entries; scale, bias, mean and variance of each channel.
    fn example() -> [Value; 5] {
        let x = tensor(&[2, 2, 2], [1f32, 3.0, -1.0, 0.0, 5.0, 7.0, 2.0, 3.0]);
        [x, numbers([2.0, -1.0]), numbers([0.5, 1.0]), numbers([3.0, 1.0]), numbers([4.0, 0.25])]
    }

    fn numbers(values: [f32; 2]) -> Value {
        tensor(&[2], values)
    }

    #[test]
    fn by_given_statistics() {
        let [x, scale, bias, mean, variance] = &example();
        let inputs = [x, scale, bias, mean, variance];
        let y = tensor(&[2, 2, 2], [-1.5f32, 0.5, 5.0, 3.0, 2.5, 4.5, -1.0, -3.0]);
        let exact = || float("epsilon", 0.0);
        for opset in [7, 9, 14, 15] {
            run_for(1, "BatchNormalization", opset, [exact()], inputs).gives(y.clone());
        }
        run_for(1, "BatchNormalization", 6, [exact(), int("is_test", 1)], inputs).gives(y.clone());
        let consumed = ("consumed_inputs", Attribute::Ints(vec![0; 5]));
        run_for(1, "BatchNormalization", 1, [exact(), int("is_test", 1), consumed], inputs).gives(y);
        run_for(1, "BatchNormalization", 15, [float("epsilon", 12.0)], [x, scale, bias, mean, &numbers([4.0, 4.0])])
            .gives(tensor(&[2, 2, 2], [-0.5f32, 0.5, 1.5, 1.25, 1.5, 2.5, 0.75, 0.5]));
    }

    /// The means are 4 and 1, the variances 5 and 2.5.
    #[test]
    fn training() {
        let [x, scale, bias, mean, variance] = &example();
        let inputs = [x, scale, bias, mean, variance];
        let y = |k: usize, x: f64| match k / 2 % 2 {
            0 => (x - 4.0) * (2.0 / 5f64.sqrt()) + 0.5,
            _ => (x - 1.0) * (-1.0 / 2.5f64.sqrt()) + 1.0,
        };
        let x = [1.0, 3.0, -1.0, 0.0, 5.0, 7.0, 2.0, 3.0];
        let y = tensor(&[2, 2, 2], x.iter().enumerate().map(|(k, x)| y(k, *x) as f32).collect::<Vec<_>>());
        let running = [numbers([3.75, 1.0]), numbers([4.75, 1.9375])];
        let own = [numbers([4.0, 1.0]), numbers([5.0, 2.5])];
        let attributes = || [float("epsilon", 0.0), float("momentum", 0.25)];
        let [epsilon, momentum] = attributes();
        let ran = outputs("BatchNormalization", 15, [epsilon, momentum, int("training_mode", 1)], inputs);
        assert_eq!(ran.as_slice(), [std::slice::from_ref(&y), &running].concat());
        for opset in [6, 7, 9] {
            let ran = outputs("BatchNormalization", opset, attributes(), inputs);
            assert_eq!(ran.as_slice(), [std::slice::from_ref(&y), &running, &own].concat());
        }
        run_for(1, "BatchNormalization", 6, attributes(), inputs).gives(y);
    }

    #[test]
    fn a_mean_of_each_place() {
        let x = tensor(&[2, 1, 2], [1f32, 10.0, 5.0, 30.0]);
        let each = |values: [f32; 2]| tensor(&[1, 2], values);
        let inputs = [&x, &each([1.0, 2.0]), &each([0.0, 1.0]), &each([1.0, 20.0]), &each([4.0, 25.0])];
        run_for(1, "BatchNormalization", 7, [int("spatial", 0), float("epsilon", 0.0)], inputs)
            .gives(tensor(&[2, 1, 2], [0f32, -3.0, 2.0, 5.0]));
        let ran = outputs("BatchNormalization", 7, [int("spatial", 0), float("epsilon", 0.0)], inputs);
        assert_eq!(ran[0], tensor(&[2, 1, 2], [-1f32, -1.0, 1.0, 3.0]));
        assert_eq!(ran[3..], [each([3.0, 20.0]), each([4.0, 100.0])]);
        run_for(1, "BatchNormalization", 7, [int("spatial", 0)], [&x; 5])
            .fails("has shape [2, 1, 2]: [1, 2] is needed");
    }

    #[test]
    fn lists_have_one_channel() {
        let (x, one) = (tensor(&[3], [1f32, 2.0, 4.0]), |value: f32| tensor(&[1], [value]));
        run_for(1, "BatchNormalization", 9, [float("epsilon", 0.0)], [&x, &one(2.0), &one(1.0), &one(2.0), &one(0.25)])
            .gives(tensor(&[3], [-3f32, 1.0, 9.0]));
    }

    #[test]
    fn every_type() {
        let halves = |values: [f32; 2]| tensor(&[2], values.map(f16::from_f32));
        let brains = |values: [f32; 2]| tensor(&[1, 2], values.map(bf16::from_f32));
        // Each list has a type of its own.
        let (scale, bias) = (tensor(&[2], [2f64, 1.0]), tensor(&[2], [1f64, 0.0]));
        let inputs = [&brains([3.0, 4.0]), &scale, &bias, &halves([1.0, 0.0]), &halves([4.0, 1.0])];
        run_for(1, "BatchNormalization", 15, [float("epsilon", 0.0)], inputs).gives(brains([3.0, 4.0]));
        let ran = outputs("BatchNormalization", 15, [int("training_mode", 1), float("momentum", 0.0)], inputs);
        assert_eq!(ran[1..], [halves([3.0, 4.0]), halves([0.0, 0.0])]);
        let double = |value: f64| tensor(&[1], [value]);
        let x = tensor(&[1, 1], [1.1f64]);
        run_for(
            1,
            "BatchNormalization",
            9,
            [float("epsilon", 0.0)],
            [&x, &double(1.0), &double(0.0), &double(1.0), &double(0.25)],
        )
        .gives(tensor(&[1, 1], [(1.1f64 - 1.0) * 2.0]));
    }

    #[test]
    fn refusals() {
        let [x, scale, bias, mean, variance] = &example();
        let inputs = [x, scale, bias, mean, variance];
        let text = "outputs beyond the first are those of training, which the node doesn't ask for";
        run("BatchNormalization", 14, [], inputs).fails(text);
        run("BatchNormalization", 6, [int("is_test", 1)], inputs).fails(text);
        run_for(1, "BatchNormalization", 9, [], [x, scale, bias, &tensor(&[1], [1f32]), variance])
            .fails("\"mean\" has 1 numbers, but there are 2 channels");
        run_for(1, "BatchNormalization", 9, [], [&tensor(&[], [1f32]), scale, bias, mean, variance])
            .fails("allowed ranks from 1 on");
    }

    #[test]
    fn of_nothing() {
        let (nothing, none) = (tensor(&[2, 0, 3], Vec::<f32>::new()), tensor(&[0], Vec::<f32>::new()));
        run("BatchNormalization", 15, [int("training_mode", 1)], [&nothing, &none, &none, &none, &none]).gives(nothing);
    }

    #[test]
    fn shapes() {
        let x = "float[N, C, H, W]";
        infer("BatchNormalization", 15, [int("training_mode", 1)], [x, "float[3]", "float[3]", "float[3]", "float[3]"])
            .gives_all(["[N, C, H, W]", "[3]", "[3]"]);
        infer("BatchNormalization", 9, [], [x, "float", "float", "float", "float"]).gives_all([
            "[N, C, H, W]",
            "[C]",
            "[C]",
            "[C]",
            "[C]",
        ]);
        infer("BatchNormalization", 14, [int("training_mode", 1)], ["float", "float", "float", "float[C]", "float"])
            .gives_all(["", "[C]", "[C]"]);
        infer("BatchNormalization", 9, [], ["float[N]", "float[1]", "float[1]", "float[1]", "float[1]"])
            .gives_all(["[N]", "[1]"]);
    }

    #[test]
    fn statistics_of_each_place() {
        let (x, each) = ("float[N, C, H, W]", "float[C, H, W]");
        infer("BatchNormalization", 7, [int("spatial", 0)], [x, each, each, each, each]).gives_all([
            "[N, C, H, W]",
            "[C, H, W]",
            "[C, H, W]",
            "[C, H, W]",
            "[C, H, W]",
        ]);
        infer("BatchNormalization", 7, [int("spatial", 0)], [x, each, each, "float[C, H, 2]", "float[C, 3, W]"])
            .gives_all(["[N, C, H, W]", "[C, H, W]", "[C, H, W]", "[C, H, W]", "[C, H, W]"]);
        infer("BatchNormalization", 7, [int("spatial", 0)], ["float[N, 2, 3]", each, each, each, "float[2]"])
            .fails("\"scale\" has shape [C, H, W]: [2, 3] is needed");
        infer("BatchNormalization", 7, [], [x, each, each, each, each])
            .fails("\"scale\" has shape [C, H, W] of rank 3");
        let consumed = ("consumed_inputs", Attribute::Ints(vec![0, 0, 0, 1, 1]));
        infer("BatchNormalization", 1, [consumed], [x, "float", "float", "float", "float"]).gives_all([
            "[N, C, H, W]",
            "[C]",
            "[C]",
            "[C]",
            "[C]",
        ]);
    }

    #[test]
    fn faults() {
        let (x, two) = ("float[N, 3, H, W]", "float[2]");
        infer("BatchNormalization", 15, [int("training_mode", 1)], [x, "float[3]", two, two, two])
            .fails("\"B\" has 2 numbers, but there are 3 channels");
        infer("BatchNormalization", 15, [int("training_mode", 1)], ["float[N]", two, two, two, two])
            .fails("\"scale\" has 2 numbers");
    }
}
