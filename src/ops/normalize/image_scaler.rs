//! ImageScaler: the channels of images, scaled, each with a number added. An experimental operator that ONNX dropped in
//! release 1.5.
//! <https://github.com/onnx/onnx/blob/v1.4.1/docs/Operators.md#ImageScaler>

use crate::ops::prelude::*;
use kernels::elementwise::rounded_row;

pub(super) const IMAGE_SCALER: Implementation = Implementation::run("ImageScaler", &[1], load);

/// `output[n, c, h, w] = scale * input[n, c, h, w] + bias[c]`, rounded once. Without `bias` nothing is added.
#[derive(Debug)]
struct ImageScaler {
    scale: f64,
    /// One number for each channel, or 0 for all.
    bias: Tensor,
    channels: Option<usize>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let bias = node.optional("bias", Node::floats)?;
    let numbers: Vec<f64> = bias.unwrap_or(&[0.0]).iter().map(|number| f64::from(*number)).collect();
    let (scale, channels) = (node.float("scale")?.into(), bias.map(<[f32]>::len));
    Ok(Box::new(ImageScaler { scale, bias: Tensor::from_elements(&[numbers.len(), 1, 1], numbers)?, channels }))
}

impl ImageScaler {
    fn check(&self, facts: &Inference<'_>) -> Result<()> {
        match (facts.sizes::<4>(0)?, self.channels) {
            (Some([_, Dim::Fixed(channels), ..]), Some(count)) if *channels != count => {
                let text = format!("bias has {count} values: \"input\" has {channels} channels");
                Err(Error::model(text).attribute("bias").size(count))
            }
            _ => Ok(()),
        }
    }
}

impl Operator for ImageScaler {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        call.by_rule(|facts| self.check(facts))?;
        let dtype = call.tensor(0)?.dtype();
        let formats = ([dtype.format(), Format::Double], dtype.format());
        let row = |inputs: [&[u8]; 2], out: &mut [u8]| {
            rounded_row(|[x, bias]: [f64; 2]| [self.scale * x + bias], 0, formats, inputs, out);
        };
        let held = [Held::Input(0), Held::Own(self.bias.clone())];
        Ok(call.rowwise(held, Align::Last, dtype, &row)?.into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        self.check(facts)?;
        facts.give_shape_of(0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::operator::Attribute;
    use crate::ops::testing::{float, infer, run, tensor};
    use half::f16;

    fn bias(numbers: &[f32]) -> (&'static str, Attribute) {
        ("bias", Attribute::Floats(numbers.to_vec()))
    }

    #[test]
    fn values() {
        let x = tensor(&[2, 2, 1, 2], [0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let scale = || float("scale", 2.0);
        run("ImageScaler", 1, [scale(), bias(&[1.0, -2.0])], [&x])
            .gives(tensor(&[2, 2, 1, 2], [1f32, 3.0, 2.0, 4.0, 9.0, 11.0, 10.0, 12.0]));
        run("ImageScaler", 9, [scale()], [&x])
            .gives(tensor(&[2, 2, 1, 2], [0f32, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]));
        run("ImageScaler", 9, [], [&x]).gives(x);
        // Twice the greatest half, less as much.
        run("ImageScaler", 1, [scale(), bias(&[-65504.0])], [&tensor(&[1, 1, 1, 1], [f16::MAX])])
            .gives(tensor(&[1, 1, 1, 1], [f16::MAX]));
        let nothing = || tensor(&[1, 0, 2, 2], Vec::<f32>::new());
        run("ImageScaler", 1, [bias(&[])], [&nothing()]).gives(nothing());
        run("ImageScaler", 1, [], [&nothing()]).gives(nothing());
    }

    #[test]
    fn refusals() {
        for count in [1, 3] {
            let x = tensor(&[1, 2, 1, 1], [0f32, 1.0]);
            run("ImageScaler", 1, [bias(&vec![1.0; count])], [&x])
                .fails(&format!("bias has {count} values: \"input\" has 2 channels"));
        }
        infer("ImageScaler", 1, [bias(&[1.0])], ["float[N, 3, H, W]"]).fails("bias has 1 values");
        infer("ImageScaler", 1, [bias(&[1.0])], ["float[N, C, H, W]"]).gives("[N, C, H, W]");
        infer("ImageScaler", 1, [], ["float[3]"]).fails("rank 1: allowed rank 4");
    }
}
