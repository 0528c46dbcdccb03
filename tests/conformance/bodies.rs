//! Operators beside their function bodies: the standard writes them in other operators, and both give the same, also for
//! inputs that no official case has.

use crate::common::archive::{self, in_parallel};
use crate::common::plain::Random;
use anyhow::{Context, Result, ensure};
use onnxref::conformance::Tolerance;
use onnxref::half::{bf16, f16};
use onnxref::{DType, Inputs, Model, Tensor};
use std::collections::BTreeMap;

type Files = BTreeMap<String, Vec<u8>>;

/// Draws that no seed fixes.
const RANDOM: [&str; 2] = ["test_bernoulli", "test_training_dropout"];

#[test]
fn operators_are_their_bodies() -> Result<()> {
    let files: Files =
        archive::unpack(format!("{}/onnx-1.23.2-node.tar.xz", crate::DATA), |_| true)?.into_iter().collect();
    let names: Vec<&str> = files.keys().filter_map(|path| path.strip_suffix("/model.onnx")).collect();
    let mut pairs = Vec::new();
    for body in &names {
        pairs.extend(
            body.split_once("_expanded").map(|(name, _)| (*body, name)).filter(|(_, name)| names.contains(name)),
        );
    }
    let wanted = |(_, name): &(&str, &str)| !RANDOM.iter().any(|random| name.contains(random));
    let pairs: Vec<(&str, &str)> = pairs.into_iter().filter(wanted).collect();
    ensure!(pairs.len() > 400, "{} pairs", pairs.len());
    let compared = in_parallel(&pairs, |(body, name)| compare(&files, name, body).with_context(|| body.to_string()));
    let wrong: Vec<String> =
        compared.iter().filter_map(|r| r.as_ref().err()).map(|error| format!("{error:#}")).collect();
    ensure!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), pairs.len(), wrong.join("\n"));
    Ok(())
}

fn compare(files: &Files, name: &str, body: &str) -> Result<()> {
    let load = |name: &str| -> Result<Model> {
        Ok(Model::from_bytes(files.get(&format!("{name}/model.onnx")).context("no model")?.clone())?)
    };
    let (operator, body) = (load(name)?, load(body)?);
    let mut random = Random(name.len() as u64);
    for _ in 0..3 {
        let mut fed = Vec::new();
        for (k, input) in operator.inputs().enumerate() {
            let Some(bytes) = files.get(&format!("{name}/test_data_set_0/input_{k}.pb")) else { return Ok(()) };
            // Sequences and the like have no bodies that are worth it.
            let Ok(tensor) = Tensor::from_proto_bytes(bytes.clone()) else { return Ok(()) };
            fed.push((input.name.clone(), drawn(&tensor, &mut random)?));
        }
        let feeds = || -> Inputs<'_> { fed.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect() };
        let half = fed.iter().any(|(_, tensor)| [DType::Float16, DType::Bfloat16].contains(&tensor.dtype()));
        let mut tolerance = Tolerance::default();
        (tolerance.rtol, tolerance.atol) = if half { (2e-2, 1e-2) } else { (1e-4, 1e-6) };
        let (outputs, wanted) = (operator.run(feeds())?, body.run(feeds())?);
        for ((name, got), (_, want)) in outputs.iter().zip(wanted.iter()) {
            tolerance.compare(got, want).map_err(|difference| anyhow::anyhow!("{name} {difference}"))?;
        }
    }
    Ok(())
}

/// Other floats between the least and the greatest one; other types as they are.
fn drawn(tensor: &Tensor, random: &mut Random) -> Result<Tensor> {
    macro_rules! draw {
        ($type:ty, $from:expr, $to:expr) => {{
            let elements: Vec<f64> = tensor.as_slice::<$type>()?.iter().copied().map($from).collect();
            let finite = || elements.iter().copied().filter(|x| x.is_finite());
            let (least, greatest) = (finite().fold(f64::MAX, f64::min), finite().fold(f64::MIN, f64::max));
            let mut draw = |x: f64| {
                let share = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
                if x.is_finite() { least + share * (greatest - least) } else { x }
            };
            let bytes: Vec<u8> = elements.into_iter().flat_map(|x| $to(draw(x)).to_le_bytes()).collect();
            Tensor::new(tensor.dtype(), tensor.shape(), bytes)?
        }};
    }
    Ok(match tensor.dtype() {
        DType::Float => draw!(f32, f64::from, |x: f64| x as f32),
        DType::Double => draw!(f64, |x| x, |x: f64| x),
        DType::Float16 => draw!(f16, f64::from, f16::from_f64),
        DType::Bfloat16 => draw!(bf16, f64::from, bf16::from_f64),
        _ => tensor.clone(),
    })
}
