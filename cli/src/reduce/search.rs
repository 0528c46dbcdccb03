//! The search for the smallest model: nodes, outputs, then sizes and values.

use super::model::{Attempt, Source};
use super::trial::{Check, Trial};
use crate::failure::Failure;
use onnxref::document::{Initializer, Size};
use onnxref::{DType, Tensor, Value};
use std::collections::{BTreeSet, HashSet};

/// Fewer nodes. The first and the last that are needed are found by halving, those between in ever smaller pieces.
pub(super) fn nodes(source: &Source<'_>, trial: &mut Trial<'_>) -> Result<(), Failure> {
    let count = source.node_count();
    let mut outputs: HashSet<String> = source.outputs().into_iter().collect();
    let mut kept = vec![true; count];
    let range = |kept: &[bool], from: usize, to: usize| -> Vec<bool> {
        kept.iter().enumerate().map(|(k, kept)| *kept && (from..to).contains(&k)).collect()
    };
    // The nodes up to `fails` fail, those up to `passes` don't.
    let (mut passes, mut fails) = (0, count);
    while fails - passes > 1 {
        let middle = passes + (fails - passes) / 2;
        if trial.accept(source.part(&range(&kept, 0, middle), &outputs), Check::Structure)? {
            fails = middle;
        } else {
            passes = middle;
        }
    }
    kept = range(&kept, 0, fails);
    let (mut from, mut beyond) = (0, fails);
    while beyond - from > 1 {
        let middle = from + (beyond - from) / 2;
        if trial.accept(source.part(&range(&kept, middle, fails), &outputs), Check::Structure)? {
            from = middle;
        } else {
            beyond = middle;
        }
    }
    kept = range(&kept, from, fails);
    let mut size = left(&kept).len().div_ceil(2);
    while size > 0 {
        let mut removed = false;
        // From the end: what is behind the fault depends on it.
        let pieces: Vec<Vec<usize>> = left(&kept).rchunks(size).map(<[usize]>::to_vec).collect();
        for piece in pieces {
            if left(&kept).len() <= piece.len() {
                break;
            }
            let mut fewer = kept.clone();
            piece.iter().for_each(|k| fewer.get_mut(*k).into_iter().for_each(|kept| *kept = false));
            if trial.accept(source.part(&fewer, &outputs), Check::Structure)? {
                kept = fewer;
                removed = true;
            }
        }
        // Single nodes until none can go.
        size = if size == 1 { usize::from(removed) } else { size / 2 };
    }
    for name in source.outputs() {
        let mut fewer = outputs.clone();
        if fewer.remove(&name) && trial.accept(source.part(&kept, &fewer), Check::Structure)? {
            outputs = fewer;
        }
    }
    Ok(())
}

fn left(kept: &[bool]) -> Vec<usize> {
    kept.iter().enumerate().filter(|(_, kept)| **kept).map(|(k, _)| k).collect()
}

/// Without texts that no run reads.
pub(super) fn texts(trial: &mut Trial<'_>) -> Result<(), Failure> {
    let Some(mut attempt) = trial.best.clone() else { return Ok(()) };
    let model = &mut attempt.model;
    model.metadata.clear();
    model.doc.clear();
    model.other.remove(TRAINING_INFO);
    model.graph.value_info.clear();
    model.graph.metadata.clear();
    model.graph.doc.clear();
    for node in &mut model.graph.nodes {
        node.change_if(|node| {
            let some = !node.doc.is_empty() || !node.metadata.is_empty();
            node.doc.clear();
            node.metadata.clear();
            some
        });
    }
    let size = |attempt: &Attempt| attempt.model.to_bytes().map_or(0, |bytes| bytes.len());
    if trial.best.as_ref().is_some_and(|best| size(&attempt) < size(best)) {
        trial.accept(Some(attempt), Check::Structure)?;
    }
    Ok(())
}

/// The number of the field `training_info` of a model.
const TRAINING_INFO: u32 = 20;

/// Smaller dimensions: all axes of a size together, in inputs, constants and shapes. Returns whether some got smaller.
pub(super) fn sizes(trial: &mut Trial<'_>) -> Result<bool, Failure> {
    let (mut done, mut any) = (BTreeSet::new(), false);
    while let Some(size) =
        trial.best.as_ref().and_then(|best| found(best).into_iter().rfind(|size| !done.contains(size)))
    {
        done.insert(size);
        let mut smaller: Vec<usize> =
            [1, 2, size / 4, size / 2].into_iter().filter(|to| *to > 0 && *to < size).collect();
        smaller.sort_unstable();
        smaller.dedup();
        for to in smaller {
            let attempt = trial.best.as_ref().and_then(|best| shrunk(best, size, to));
            let is_seen = trial.needs_inputs() || trial.best.as_ref().is_some_and(|best| has_axis(best, size));
            if trial.accept(attempt, Check::Run)? {
                any |= is_seen;
                break;
            }
        }
    }
    Ok(any)
}

/// The sizes beyond 1 of inputs and constants.
fn found(attempt: &Attempt) -> BTreeSet<usize> {
    let constants = attempt.model.graph.initializers.iter().flat_map(|tensor| &tensor.dims);
    let constants = constants.filter_map(|dim| usize::try_from(*dim).ok());
    let inputs = attempt.inputs.iter().filter_map(|(_, value)| value.tensor().ok()).flat_map(|tensor| tensor.shape());
    constants.chain(inputs.copied()).filter(|size| *size > 1).collect()
}

/// Whether the model itself has an axis of a size, beside what is fed.
fn has_axis(attempt: &Attempt, size: usize) -> bool {
    let graph = &attempt.model.graph;
    let mut constants = graph.initializers.iter().flat_map(|tensor| &tensor.dims);
    let mut declared = graph.inputs.iter().chain(&graph.outputs).filter_map(|info| info.dims()).flatten();
    let is_size = |dim: i64| usize::try_from(dim) == Ok(size);
    constants.any(|dim| is_size(*dim)) || declared.any(|dim| matches!(dim.size, Size::Fixed(dim) if is_size(dim)))
}

/// The model with smaller axes; `None` if that can't be made.
fn shrunk(attempt: &Attempt, from: usize, to: usize) -> Option<Attempt> {
    let mut smaller = attempt.clone();
    let graph = &mut *smaller.model.graph;
    graph.value_info.clear();
    for constant in &mut graph.initializers {
        let tensor = constant.tensor().ok()?;
        *constant = Initializer::new(&constant.name, &resized(&cut(&tensor, from, to)?, from, to)?).into();
    }
    for (_, value) in &mut smaller.inputs {
        let tensor = value.tensor().ok()?;
        *value = cut(tensor, from, to)?.into();
    }
    let (old, new) = (Size::Fixed(i64::try_from(from).ok()?), Size::Fixed(i64::try_from(to).ok()?));
    for info in graph.inputs.iter_mut().chain(&mut graph.outputs) {
        for dim in info.dims_mut().into_iter().flatten().filter(|dim| dim.size == old) {
            dim.size = new.clone();
        }
    }
    Some(smaller)
}

/// The first entries of each axis of a size.
fn cut(tensor: &Tensor, from: usize, to: usize) -> Option<Tensor> {
    if !tensor.shape().contains(&from) {
        return Some(tensor.clone());
    }
    if tensor.dtype() == DType::String {
        return None;
    }
    let (mut bytes, mut shape) = (tensor.bytes().to_vec(), tensor.shape().to_vec());
    for axis in 0..shape.len() {
        if shape.get(axis) != Some(&from) {
            continue;
        }
        let inner: usize = shape.iter().skip(axis + 1).product::<usize>() * tensor.dtype().size();
        bytes = bytes.chunks(from * inner).flat_map(|row| row.iter().take(to * inner).copied()).collect();
        shape.get_mut(axis).into_iter().for_each(|size| *size = to);
    }
    Tensor::new(tensor.dtype(), &shape, bytes).ok()
}

/// A list of sizes, such as that of a Reshape, with the new size.
fn resized(tensor: &Tensor, from: usize, to: usize) -> Option<Tensor> {
    let Ok(sizes) = tensor.as_slice::<i64>() else { return Some(tensor.clone()) };
    if tensor.rank() > 1 || tensor.len() > 8 {
        return Some(tensor.clone());
    }
    let new = |size: &i64| if usize::try_from(*size) == Ok(from) { i64::try_from(to).ok() } else { Some(*size) };
    Tensor::from_elements(tensor.shape(), sizes.iter().map(new).collect::<Option<Vec<_>>>()?).ok()
}

/// Simpler constants and inputs: all zeros, or all ones.
pub(super) fn values(trial: &mut Trial<'_>) -> Result<(), Failure> {
    let Some(best) = &trial.best else { return Ok(()) };
    let constants = best.model.graph.initializers.len();
    let inputs = if trial.needs_inputs() { best.inputs.len() } else { 0 };
    for k in 0..constants {
        for one in [false, true] {
            let simpler = trial.best.clone().and_then(|mut attempt| {
                let constant = attempt.model.graph.initializers.get_mut(k)?;
                *constant = Initializer::new(&constant.name, &simple(&constant.tensor().ok()?, one)?).into();
                Some(attempt)
            });
            if trial.accept(simpler, Check::Run)? {
                break;
            }
        }
    }
    for k in 0..inputs {
        for one in [false, true] {
            let simpler = trial.best.clone().and_then(|mut attempt| {
                let (_, value) = attempt.inputs.get_mut(k)?;
                *value = Value::from(simple(value.tensor().ok()?, one)?);
                Some(attempt)
            });
            if trial.accept(simpler, Check::Run)? {
                break;
            }
        }
    }
    Ok(())
}

/// All zeros or ones; `None` if it is that, or has other elements.
fn simple(tensor: &Tensor, one: bool) -> Option<Tensor> {
    let element: Vec<u8> = match (one, tensor.dtype()) {
        (_, DType::String) => return None,
        (false, dtype) => vec![0; dtype.size()],
        (true, DType::Float) => 1f32.to_le_bytes().to_vec(),
        (true, DType::Double) => 1f64.to_le_bytes().to_vec(),
        (true, DType::Float16) => onnxref::half::f16::ONE.to_le_bytes().to_vec(),
        (true, DType::Int64) => 1i64.to_le_bytes().to_vec(),
        (true, DType::Int32) => 1i32.to_le_bytes().to_vec(),
        _ => return None,
    };
    let bytes = element.repeat(tensor.len());
    // Zeros are simple enough.
    let is_zero = tensor.bytes().iter().all(|byte| *byte == 0);
    (bytes != tensor.bytes() && !(one && is_zero)).then(|| Tensor::new(tensor.dtype(), tensor.shape(), bytes).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_cut() {
        let tensor = Tensor::from_elements(&[2, 3, 2], (0..12).collect::<Vec<i32>>()).unwrap();
        let smaller = cut(&tensor, 2, 1).unwrap();
        assert_eq!((smaller.shape(), smaller.as_slice::<i32>().unwrap()), (&[1, 3, 1][..], &[0, 2, 4][..]));
        let smaller = cut(&tensor, 3, 2).unwrap();
        assert_eq!(smaller.as_slice::<i32>().unwrap(), [0, 1, 2, 3, 6, 7, 8, 9]);
        assert_eq!(resized(&Tensor::from(vec![-1i64, 12, 64]), 12, 3).unwrap(), Tensor::from(vec![-1i64, 3, 64]));
    }

    #[test]
    fn simple_values() {
        assert_eq!(simple(&Tensor::from(vec![2f32, 3.0]), false), Some(Tensor::from(vec![0f32, 0.0])));
        assert_eq!(simple(&Tensor::from(vec![2f32, 3.0]), true), Some(Tensor::from(vec![1f32, 1.0])));
        assert_eq!(simple(&Tensor::from(vec![0f32, 0.0]), false), None);
        assert_eq!(simple(&Tensor::from(vec![0f32, 0.0]), true), None);
    }
}
