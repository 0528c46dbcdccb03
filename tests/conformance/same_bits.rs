//! The same bits on each processor level, for any number of threads, with and without optimisation, alone and in a batch.

use crate::common::archive::{self, in_parallel};
use anyhow::{Context, Result, bail, ensure};
use kernels::testing::{at_each_level, on_threads};
use onnxref::{LoadOptions, Model, Tensor, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

type Files = BTreeMap<String, Vec<u8>>;

/// Draws that no seed fixes.
const DRAWN: [&str; 4] = ["test_bernoulli", "test_training_dropout", "test_multinomial", "test_random"];

fn files(archive: &str) -> Result<Files> {
    Ok(archive::unpack(format!("{}/{archive}.tar.xz", crate::DATA), |_| true)?.into_iter().collect())
}

/// The hashes that `onnxref hash` prints, of the first data set of each network.
#[test]
fn networks_have_their_hashes() -> Result<()> {
    let mut lines = String::new();
    for archive in ["small-networks", "learned-models", "merged-decoder", "decoders"] {
        for (name, hash) in hashes(&files(archive)?)? {
            writeln!(lines, "{} {hash}", name.strip_prefix(archive).context("no folder")?.trim_start_matches('/'))?;
        }
    }
    crate::check_table(&lines, "hashes.txt")
}

#[test]
fn official_cases_have_the_same_bits() -> Result<()> {
    let mut files = files("onnx-1.23.2-node")?;
    files.retain(|name, _| !DRAWN.iter().any(|drawn| name.contains(drawn)));
    let count = hashes(&files)?.len();
    ensure!(count > 1800, "{count} cases");
    Ok(())
}

/// The hash of the outputs of each case's first data set; cases that can't be loaded or fed have none.
fn hashes(files: &Files) -> Result<Vec<(&str, String)>> {
    let names: Vec<&str> = files.keys().filter_map(|path| path.strip_suffix("/model.onnx")).collect();
    let hashes = in_parallel(&names, |name| hash(files, name).with_context(|| name.to_string()));
    let wrong: Vec<String> = hashes.iter().filter_map(|r| r.as_ref().err()).map(|error| format!("{error:#}")).collect();
    ensure!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), names.len(), wrong.join("\n"));
    Ok(names.into_iter().zip(hashes).filter_map(|(name, hash)| Some((name, hash.ok()??))).collect())
}

fn hash(files: &Files, name: &str) -> Result<Option<String>> {
    let bytes = files.get(&format!("{name}/model.onnx")).context("no model")?;
    let load = |optimize: bool, threads: usize| {
        LoadOptions::default().optimize(optimize).threads(threads).from_bytes(bytes.clone())
    };
    let Ok(model) = load(true, 1) else { return Ok(None) };
    let Some(fed) = fed(&model, files, name) else { return Ok(None) };
    let Ok(first) = digest(&model, &fed) else { return Ok(None) };
    let same = |what: &str, digest: Result<String>| -> Result<()> {
        let digest = digest?;
        ensure!(digest == first, "{what}: {digest} instead of {first}");
        Ok(())
    };
    let mut at_levels = Ok(());
    at_each_level(|| {
        let each = [true, false].into_iter().try_for_each(|optimize| {
            // Each level packs weights in its own way.
            same(&format!("a level, optimize {optimize}"), digest(&load(optimize, 1)?, &fed))
        });
        at_levels = std::mem::replace(&mut at_levels, Ok(())).and(each);
    });
    at_levels?;
    for threads in [2, 3] {
        for optimize in [true, false] {
            // In one of them nothing is packed.
            let options = LoadOptions::default().optimize(optimize).threads(threads).keep_packed(threads == 2);
            let shared = options.from_bytes(bytes.clone())?;
            same(&format!("{threads} threads"), on_threads(threads, || digest(&shared, &fed)))?;
        }
    }
    Ok(Some(first))
}

/// The model's inputs; `None` if a file is none of its type.
fn fed(model: &Model, files: &Files, name: &str) -> Option<Vec<(String, Value)>> {
    let mut fed = Vec::new();
    for (k, input) in model.inputs().enumerate() {
        // Inputs at the end may be left out.
        let Some(bytes) = files.get(&format!("{name}/test_data_set_0/input_{k}.pb")) else { break };
        fed.push((input.name.clone(), Value::from_proto_bytes(bytes.clone(), input.value_type.as_ref()?).ok()?));
    }
    Some(fed)
}

/// SHA-256 of the outputs' messages.
fn digest(model: &Model, fed: &[(String, Value)]) -> Result<String> {
    let outputs = model.run(fed.iter().map(|(name, value)| (name.as_str(), value)).collect())?;
    let mut messages = Vec::new();
    outputs.iter().try_for_each(|(name, value)| value.write_canonical(name, &mut messages))?;
    Ok(Sha256::digest(messages).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A row gets what it gets alone.
#[test]
fn rows_do_not_depend_on_their_batch() -> Result<()> {
    let files = files("learned-models")?;
    let mut rows = 0;
    for name in files.keys().filter_map(|path| path.strip_suffix("/model.onnx")) {
        let model = Model::from_bytes(files.get(&format!("{name}/model.onnx")).context("no model")?.clone())?;
        let [(input, batch)] = fed(&model, &files, name).context("no inputs")?.try_into().ok().context("one input")?;
        let whole = model.run([(input.as_str(), &batch)].into_iter().collect())?;
        let count = batch.tensor()?.shape()[0];
        for at in 0..count {
            let one = row(&batch, at, count)?;
            let alone = model.run([(input.as_str(), &one)].into_iter().collect())?;
            for ((output, got), (_, of_all)) in alone.iter().zip(whole.iter()) {
                ensure!(*got == row(of_all, at, count)?, "{name}: row {at} of \"{output}\"");
            }
        }
        rows += count;
    }
    ensure!(rows > 200, "{rows} rows");
    Ok(())
}

/// A decoder gives for tokens one by one, or in pieces, with what it gave before as the past, what it gives for all at once.
#[test]
fn steps_equal_the_full_pass() -> Result<()> {
    let files = files("decoders")?;
    for name in ["decoders/gpt2", "decoders/llama"] {
        let bytes = files.get(&format!("{name}/model.onnx")).context("no model")?;
        let model = Model::from_bytes(bytes.clone())?;
        let fed: BTreeMap<String, Value> = fed(&model, &files, name).context("no inputs")?.into_iter().collect();
        let ids = fed["input_ids"].tensor()?.as_slice::<i64>()?.to_vec();
        for (optimize, threads) in [(true, 1), (true, 3), (false, 1)] {
            let model = LoadOptions::default().optimize(optimize).threads(threads).from_bytes(bytes.clone())?;
            let ran = |sizes: &[usize]| on_threads(threads, || decoded(&model, &fed, &ids, sizes));
            let whole = ran(&[ids.len()])?;
            for sizes in [vec![1; ids.len()], vec![5, 1, 4, 2], vec![11, 1]] {
                ensure!(
                    ran(&sizes)? == whole,
                    "{name}: {sizes:?} tokens at a time, optimize {optimize}, {threads} threads"
                );
            }
        }
    }
    Ok(())
}

/// The logits of all tokens, and the cache after them, when so many are given at a time.
fn decoded(
    model: &Model,
    fed: &BTreeMap<String, Value>,
    ids: &[i64],
    sizes: &[usize],
) -> Result<(Vec<u32>, Vec<Value>)> {
    let (mut fed, mut logits, mut cache, mut rest) = (fed.clone(), Vec::new(), Vec::new(), ids);
    for size in sizes {
        let (tokens, later) = rest.split_at(*size);
        rest = later;
        fed.insert("input_ids".to_string(), Tensor::from_elements(&[1, *size], tokens.to_vec())?.into());
        let outputs = model.run(fed.iter().map(|(name, value)| (name.as_str(), value)).collect())?;
        logits.extend(outputs["logits"].as_slice::<f32>()?.iter().map(|logit| logit.to_bits()));
        let present = || outputs.iter().filter(|(name, _)| *name != "logits");
        cache = present().map(|(_, value)| value.clone()).collect();
        fed.extend(present().map(|(name, value)| (name.replace("present", "past"), value.clone())));
    }
    ensure!(rest.is_empty() && logits.iter().any(|logit| *logit != logits[0]));
    Ok((logits, cache))
}

/// A row of a batch, as a batch of one.
fn row(batch: &Value, at: usize, count: usize) -> Result<Value> {
    let tensor = match batch {
        Value::Tensor(tensor) => tensor,
        Value::Sequence(rows) => {
            let row = rows.values().get(at).context("no row")?.clone();
            return Ok(onnxref::Sequence::new(rows.element_type().context("no type")?.clone(), [row])?.into());
        }
        _ => bail!("neither a tensor nor a sequence"),
    };
    let shape = [&[1], &tensor.shape()[1..]].concat();
    if let Ok(strings) = tensor.strings() {
        let each = strings.len() / count;
        return Ok(Tensor::from_strings(&shape, strings.skip(at * each).take(each))?.into());
    }
    let each = tensor.bytes().len() / count;
    Ok(Tensor::new(tensor.dtype(), &shape, tensor.bytes()[at * each..(at + 1) * each].to_vec())?.into())
}
