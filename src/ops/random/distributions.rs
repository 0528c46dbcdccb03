//! RandomNormal and RandomUniform: random numbers of a distribution, in a shape that is given or that of a tensor.
//! <https://onnx.ai/onnx/operators/onnx__RandomNormal.html>, <https://onnx.ai/onnx/operators/onnx__RandomNormalLike.html>,
//! <https://onnx.ai/onnx/operators/onnx__RandomUniform.html>, <https://onnx.ai/onnx/operators/onnx__RandomUniformLike.html>

use super::seed::Seed;
use crate::ops::prelude::*;
use kernels::random::{Distribution, draw};

pub(super) const RANDOM_NORMAL: Implementation =
    Implementation::run("RandomNormal", &[1, 22], |node| load(node, normal(node)?, true));
pub(super) const RANDOM_UNIFORM: Implementation =
    Implementation::run("RandomUniform", &[1, 22], |node| load(node, uniform(node)?, true));
pub(super) const RANDOM_NORMAL_LIKE: Implementation =
    Implementation::run("RandomNormalLike", &[1, 22], |node| load(node, normal(node)?, false));
pub(super) const RANDOM_UNIFORM_LIKE: Implementation =
    Implementation::run("RandomUniformLike", &[1, 22], |node| load(node, uniform(node)?, false));

/// Elements of a distribution, computed in float64 and rounded once; see [`Seed`]
#[derive(Debug)]
struct Random {
    of: Distribution,
    seed: Seed,
    /// Without it the numbers have the type of the input.
    dtype: Option<DType>,
    /// Without it the output has that of the input.
    shape: Option<Shape>,
}

fn normal(node: &Node<'_>) -> Result<Distribution> {
    Ok(Distribution::Normal { mean: node.float("mean")?.into(), scale: node.float("scale")?.into() })
}

fn uniform(node: &Node<'_>) -> Result<Distribution> {
    Ok(Distribution::Uniform { low: node.float("low")?.into(), high: node.float("high")?.into() })
}

fn load(node: &Node<'_>, of: Distribution, has_shape: bool) -> Result<Box<dyn Operator>> {
    let size = |(k, dim): (usize, &i64)| {
        let error = || Error::model(format!("shape[{k}] is {dim}: a size is needed"));
        usize::try_from(*dim).map_err(|_| error().attribute("shape").value(*dim).position(vec![k]))
    };
    let shape = match has_shape {
        true => Some(node.ints("shape")?.iter().enumerate().map(size).collect::<Result<Shape>>()?),
        false => None,
    };
    Ok(Box::new(Random { of, seed: Seed::of(node)?, dtype: node.optional("dtype", Node::output_type)?, shape }))
}

impl Random {
    /// The type of the output, like an input of which the type is given.
    fn output_type(&self, like: impl Fn() -> Result<Option<DType>>) -> Result<Option<DType>> {
        if self.dtype.is_some() {
            return Ok(self.dtype);
        }
        match like()? {
            Some(other) if !other.is_float() => {
                let text = format!("dtype is not given, and \"input\" is {other}: allowed are floats");
                Err(Error::model(text).attribute("dtype"))
            }
            like => Ok(like),
        }
    }
}

impl Operator for Random {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let dtype = self.output_type(|| Ok(Some(call.tensor(0)?.dtype())))?.unwrap_or(DType::Float);
        let shape = match &self.shape {
            Some(shape) => shape.clone(),
            None => Shape::from_slice(call.tensor(0)?.shape()),
        };
        let mut output = call.output_of(dtype, shape)?;
        draw(self.of, self.seed.generator(), dtype.format(), output.bytes_mut(), call.resources())?;
        Ok(output.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let like = facts.input_type(0).and_then(ValueType::dtype);
        if let Some(dtype) = self.output_type(|| Ok(like))? {
            facts.give_type(0, dtype);
        }
        match &self.shape {
            Some(shape) => facts.give(0, shape.iter().map(|size| Dim::Fixed(*size)).collect::<Vec<_>>()),
            None => facts.give_shape_of(0, 0),
        }
        Ok(())
    }

    fn pure(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::ops::testing::{float, infer, int, ints, outputs, run, tensor};
    use crate::value::Value;
    use half::f16;

    fn doubles(value: &Value) -> &[f64] {
        value.tensor().unwrap().as_slice().unwrap()
    }

    /// By hand from the published words of the key 0: 0x6627e8d5 and 0xe169c58d are 0.39904..
    #[test]
    fn numbers_of_a_seed() {
        let double = || int("dtype", DType::Double.code().into());
        let given = || [ints("shape", &[1]), float("seed", 0.0), double(), float("low", 1.0), float("high", 3.0)];
        let want = (f64::from(0x6627_e8d5u32 >> 5) * 67_108_864.0 + f64::from(0xe169_c58du32 >> 6)) / 2f64.powi(53);
        run("RandomUniform", 22, given(), []).gives(tensor(&[1], [1.0 + 2.0 * want]));
        run("RandomUniformLike", 1, [float("seed", 0.0)], [&tensor(&[1], [f16::ONE])])
            .gives(tensor(&[1], [f16::from_f64(want)]));
        let drawn = |seed| outputs("RandomNormal", 22, [ints("shape", &[2, 3]), float("seed", seed), double()], []);
        assert_eq!(drawn(1.5), drawn(1.5));
        assert_ne!(drawn(1.5), drawn(2.5));
    }

    #[test]
    fn without_a_seed_each_run_draws_others() {
        let like = tensor(&[64, 64], vec![0f64; 4096]);
        let load =
            || outputs("RandomNormalLike", 22, [float("mean", 2.0), float("scale", 0.5), float("seed", 3.0)], [&like]);
        let sum: f64 = doubles(&load()[0]).iter().sum();
        assert!((sum / 4096.0 - 2.0).abs() < 0.04, "{sum}");
        let seeds = [(); 2].map(|()| super::Seed::unsaid().generator().uniform(0));
        assert_ne!(seeds[0], seeds[1]);
    }

    #[test]
    fn shapes_and_types() {
        infer("RandomNormal", 1, [ints("shape", &[2, 0])], []).gives("[2, 0]");
        infer("RandomNormal", 1, [ints("shape", &[])], []).has_type("float32");
        infer("RandomUniform", 22, [ints("shape", &[2]), int("dtype", 16)], []).has_type("bfloat16");
        infer("RandomNormalLike", 1, [int("dtype", 11)], ["int64[N, 3]"]).has_type("float64");
        infer("RandomNormalLike", 1, [int("dtype", 11)], ["int64[N, 3]"]).gives("[N, 3]");
        infer("RandomUniformLike", 22, [], ["float16[N]"]).has_type("float16");
        infer("RandomUniformLike", 22, [], ["float16"]).gives("");
    }

    #[test]
    fn faults() {
        infer("RandomUniform", 1, [ints("shape", &[2, -1])], []).fails("shape[1] is -1: a size is needed");
        infer("RandomUniform", 1, [ints("shape", &[2]), int("dtype", 16)], [])
            .fails("dtype asks for bfloat16: allowed");
        infer("RandomNormalLike", 1, [int("dtype", 7)], ["float[2]"]).fails("dtype asks for int64: allowed float32");
        infer("RandomNormalLike", 22, [], ["int64[2]"])
            .fails("dtype is not given, and \"input\" is int64: allowed are floats");
    }
}
