//! Proves a change of a model: both run on the same inputs, and what they give is compared bit by bit.

use crate::edit::OldName;
use crate::failure::{Failure, LOAD, explain};
use crate::feeds::Feeding;
use crate::options::Running;
use crate::random::{Random, Range};
use crate::repeat::{REPEATS, same};
use onnxref::document::{Dimension, Document, Part, Size, ValueInfo};
use onnxref::{Cancel, Dim, Error, Inputs, Kind, LoadOptions, Model, Outputs, Tensor, Value, quote};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// The sizes that open dimensions get, and the range of numbers, one after the other until the model runs.
const TRIES: [(usize, Option<(f64, f64)>); 6] =
    [(2, None), (1, None), (8, None), (32, None), (2, Some(POSITIVE)), (1, Some(POSITIVE))];

/// Integers are 1 then.
const POSITIVE: (f64, f64) = (0.5, 1.0);

/// What came of a proof.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "proof", content = "detail")]
pub(crate) enum Proof {
    /// So many outputs are the same.
    Equal(usize),
    /// Nothing was compared; why.
    None(String),
    Differs(String),
}

/// A proof, and what is to say of it.
pub(crate) struct Proved {
    pub(crate) proof: Proof,
    /// So many outputs are random, and not compared.
    pub(crate) random: usize,
    /// Why other sizes of dimensions fail that the new model leaves open.
    pub(crate) other_sizes: Option<String>,
}

impl From<Proof> for Proved {
    fn from(proof: Proof) -> Proved {
        Proved { proof, random: 0, other_sizes: None }
    }
}

/// Runs the old model for the inputs and the outputs of the new one, which are values of it, and then the new one. One of
/// them at a time is in memory, and nothing is prepared for runs that don't come.
pub(crate) fn prove(
    before: &Document,
    after: &Document,
    old_name: OldName<'_>,
    (given, running): (&[String], &Running),
) -> Result<Proved, Failure> {
    let mut options = running.options()?.keep_packed(false);
    let cancel = running.cancel();
    let excluded = excluded(before, after, old_name);
    if !excluded.is_empty() {
        return alone((before, after), excluded, old_name, (given, &options), &cancel).map(Proved::from);
    }
    let wanted = names(after.graph.inputs.iter().chain(&after.graph.outputs), old_name);
    let mut old = needed(before, &wanted);
    old.graph.outputs = wanted.into_iter().map(|name| Part::new(ValueInfo::untyped(name))).collect();
    let mut ran = Err(String::new());
    // Nodes that aren't needed may fail. They are dropped then.
    for optimize in [false, true] {
        options = options.optimize(optimize);
        ran = match old.load(&options) {
            Ok(old) => run(&old, after, old_name, &Feeding::named(given, &old)?, &cancel)?,
            Err(error) => return Ok(Proof::None(format!("the model can't be loaded: {}", explain(&error))).into()),
        };
        if ran.is_ok() {
            break;
        }
    }
    let new = load(after, &options)?;
    let (feeds, known) = match ran {
        Ok(ran) => ran,
        Err(why) => return Ok(Proof::None(why).into()),
    };
    let Compared { same, differing } = match compare(&new, &known, &feeds, old_name, &cancel)? {
        Ok(compared) => compared,
        Err(proof) => return Ok(proof.into()),
    };
    if differing.is_empty() {
        if same == 0 {
            return Ok(Proof::None("the model has no outputs".to_string()).into());
        }
        let other_sizes = other_sizes(&new, before, &feeds, old_name, &cancel)?;
        return Ok(Proved { other_sizes, ..Proof::Equal(same).into() });
    }
    drop(new);
    let random = random(&old.load(&options).map_err(Failure::run)?, &differing, (&known, &feeds), &cancel)?;
    let proof = match differing.iter().find(|(_, old)| !random.contains(old)) {
        Some((name, _)) => Proof::Differs(format!("output {} has other values", quote(name))),
        None if same == 0 => Proof::None("the model is random".to_string()),
        None => return Ok(Proved { random: differing.len(), ..Proof::Equal(same).into() }),
    };
    Ok(proof.into())
}

/// The old names of values, each once.
fn names<'a>(infos: impl Iterator<Item = &'a Part<ValueInfo>>, old_name: OldName<'_>) -> Vec<String> {
    let mut seen = HashSet::new();
    infos.map(|info| old_name(&info.name)).filter(|name| seen.insert(name.clone())).collect()
}

/// A model without nodes that some values don't need: they may fail, or run for long.
fn needed(document: &Document, values: &[String]) -> Document {
    let (mut all, mut part) = (document.clone(), document.clone());
    let cut = part.extract(None, Some(values), &|_| None).is_ok();
    if cut && part.graph.nodes.len() < all.graph.nodes.len() {
        all.graph.nodes = std::mem::take(&mut part.graph.nodes);
    }
    all
}

/// The new model, of which all must load.
fn load(after: &Document, options: &LoadOptions) -> Result<Model, Failure> {
    let load = |document: &Document| {
        document.load(options).map_err(|error| {
            let message = format!("the changed model can't be loaded, and nothing is written: {}", explain(&error));
            Failure { error: Some(error), ..Failure::new(LOAD, message) }
        })
    };
    let part = needed(after, &names(after.graph.outputs.iter(), &str::to_string));
    let whole = load(after)?;
    if part.graph.nodes.len() == after.graph.nodes.len() {
        return Ok(whole);
    }
    drop(whole);
    load(&part)
}

/// Inputs of the new model whose fixed sizes the old one excludes, by their old names, and how they differ.
fn excluded(before: &Document, after: &Document, old_name: OldName<'_>) -> HashMap<String, String> {
    let mut all = HashMap::new();
    for info in &after.graph.inputs {
        let old = before.graph.inputs.iter().find(|old| old.name == old_name(&info.name));
        let dims = old.and_then(|old| old.dims()).into_iter().flatten();
        for (axis, (dim, old)) in info.dims().into_iter().flatten().zip(dims).enumerate() {
            if let (Size::Fixed(new @ 0..), Size::Fixed(old @ 0..)) = (&dim.size, &old.size)
                && new != old
            {
                let text = format!("dimension {axis} of {} was {old} and is {new}", quote(&info.name));
                all.entry(old_name(&info.name)).or_insert(text);
            }
        }
    }
    all
}

/// Runs the new model where no input fits both: whether it runs is all that can be said.
fn alone(
    (before, after): (&Document, &Document),
    excluded: HashMap<String, String>,
    old_name: OldName<'_>,
    (given, options): (&[String], &LoadOptions),
    cancel: &Cancel,
) -> Result<Proof, Failure> {
    let mut known = match before.load(options) {
        Ok(old) => Feeding::named(given, &old)?,
        Err(error) => return Ok(Proof::None(format!("the model can't be loaded: {}", explain(&error)))),
    };
    let new = load(after, options)?;
    known.retain(|name, _| !excluded.contains_key(name));
    let given = |info: &onnxref::ValueInfo| Some((info.name.clone(), known.get(&old_name(&info.name))?.clone()));
    let given = new.inputs().filter_map(given).collect();
    let mut texts: Vec<String> = excluded.into_values().collect();
    texts.sort();
    let why = format!("{}: no input fits both models", texts.join(", "));
    Ok(match run(&new, after, &str::to_string, &given, cancel)? {
        Ok(_) => Proof::None(why),
        Err(fails) => Proof::Differs(format!("{why}, and of the changed one, {fails} (--no-prove writes it)")),
    })
}

/// What the old model gives for the first inputs that it runs on, with these; or why it doesn't run.
fn run(
    old: &Model,
    after: &Document,
    old_name: OldName<'_>,
    given: &Fed,
    cancel: &Cancel,
) -> Result<Result<(Fed, Outputs), String>, Failure> {
    let mut why = None;
    // Without inputs that are open, each run would be the first one again.
    let open = old.inputs().any(|info| !given.contains_key(&info.name));
    for (size, range) in TRIES.into_iter().take(if open { TRIES.len() } else { 1 }) {
        let feeds = match feeds(old, after, old_name, (size, range.map(Range::from)), given) {
            Ok(feeds) => feeds,
            // Too large, but other sizes aren't.
            Err(_) if why.is_some() => continue,
            Err(why) => return Ok(Err(why)),
        };
        let inputs = feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        match old.run_with(inputs, cancel) {
            Ok(known) => return Ok(Ok((feeds, known))),
            Err(error) if error.kind() == Kind::Cancelled => return Err(Failure::run(error)),
            Err(error) if is_of_input(&error, given) => return Err(Failure::usage(format!("-i: {error:#}"))),
            Err(error) => {
                let exceeded = error.kind() == Kind::Limit;
                why.get_or_insert(error);
                if exceeded {
                    break;
                }
            }
        }
    }
    let why = why.map_or(String::new(), |error: Error| format!("{error:#}"));
    let inputs = if given.is_empty() { "random inputs (-i gives others)" } else { "these inputs" };
    Ok(Err(format!("the model doesn't run on {inputs}: {why}")))
}

/// Whether an input that is given doesn't fit its declaration.
fn is_of_input(error: &Error, given: &Fed) -> bool {
    let place = error.place();
    place.operator.is_none() && place.value_name.as_ref().is_some_and(|name| given.contains_key(name))
}

type Fed = HashMap<String, Value>;

/// Inputs of the old model: those that are given, else random ones. A size that the new one fixes is the size.
fn feeds(
    old: &Model,
    new: &Document,
    old_name: OldName<'_>,
    (open, range): (usize, Option<Range>),
    given: &Fed,
) -> Result<Fed, String> {
    let mut random = Random::within(old.limits(), 0);
    let mut symbols: HashMap<&str, usize> = HashMap::new();
    let shapes: HashMap<String, &[Part<Dimension>]> =
        new.graph.inputs.iter().filter_map(|info| Some((old_name(&info.name), info.dims()?))).collect();
    let fixed = |name: &str, axis: usize| match shapes.get(name)?.get(axis)?.size {
        Size::Fixed(size) => usize::try_from(size).ok(),
        _ => None,
    };
    for info in old.inputs() {
        let known = given.get(&info.name).and_then(|value| value.tensor().ok()).map(Tensor::shape);
        for (axis, dim) in info.shape.iter().flatten().enumerate() {
            let size = known.map_or_else(|| fixed(&info.name, axis), |shape| shape.get(axis).copied());
            if let (Dim::Symbol(name), Some(size)) = (dim, size) {
                symbols.insert(name, size);
            }
        }
    }
    let mut feeds = given.clone();
    for info in old.inputs().filter(|info| !old.has_default(&info.name) && !given.contains_key(&info.name)) {
        let (Some(dtype), Some(dims)) = (info.dtype(), &info.shape) else {
            return Err(format!("no random value can be made for input {}: give it with -i", quote(&info.name)));
        };
        let size = |(axis, dim): (usize, &Dim)| match dim {
            Dim::Fixed(size) => *size,
            Dim::Symbol(name) => symbols.get(name.as_str()).copied().unwrap_or(open),
            _ => fixed(&info.name, axis).unwrap_or(open),
        };
        let shape: Vec<usize> = dims.iter().enumerate().map(size).collect();
        let value = random.tensor(dtype, &shape, range).map_err(|why| format!("input {}: {why}", quote(&info.name)))?;
        feeds.insert(info.name.clone(), value.into());
    }
    Ok(feeds)
}

/// How many outputs are the same, and the others: their names in the new model and in the old one.
struct Compared {
    same: usize,
    differing: Vec<(String, String)>,
}

/// Runs the new model. In its place there may be what that says already.
fn compare(
    new: &Model,
    known: &Outputs,
    feeds: &Fed,
    old_name: OldName<'_>,
    cancel: &Cancel,
) -> Result<Result<Compared, Proof>, Failure> {
    let mut inputs = Inputs::new();
    for info in new.inputs() {
        let name = old_name(&info.name);
        match known.get(&name).or_else(|| feeds.get(&name)) {
            _ if new.has_default(&info.name) && !feeds.contains_key(&name) => {}
            Some(value) => inputs = inputs.with(&info.name, value.clone()),
            None => return Ok(Err(Proof::None(format!("input {} has no value in the model", quote(&info.name))))),
        }
    }
    let outputs = match new.run_with(inputs, cancel) {
        Ok(outputs) => outputs,
        Err(error) if error.kind() == Kind::Cancelled => return Err(Failure::run(error)),
        Err(error) => return Ok(Err(Proof::Differs(format!("the changed model fails: {error:#}")))),
    };
    let mut compared = Compared { same: 0, differing: Vec::new() };
    for (name, value) in outputs.iter() {
        let old = old_name(name);
        match known.get(&old) {
            Some(expected) if same(expected, value) => compared.same += 1,
            Some(expected) if expected.value_type() != value.value_type() => {
                return Ok(Err(Proof::Differs(format!("output {} has another type", quote(name)))));
            }
            Some(_) => compared.differing.push((name.to_string(), old)),
            None => {}
        }
    }
    Ok(Ok(compared))
}

/// Why the new model doesn't run with other sizes where the old one fixes them. `None` if it does, or fixes the same ones.
fn other_sizes(
    new: &Model,
    before: &Document,
    feeds: &Fed,
    old_name: OldName<'_>,
    cancel: &Cancel,
) -> Result<Option<String>, Failure> {
    let mut symbols: HashMap<&str, usize> = HashMap::new();
    let (mut opened, mut text): (HashMap<(&str, usize), usize>, _) = (HashMap::new(), Vec::new());
    for info in new.inputs() {
        let old = before.graph.inputs.iter().find(|old| old.name == old_name(&info.name));
        let dims = old.and_then(|old| old.dims()).into_iter().flatten();
        for (axis, (dim, old)) in info.shape.iter().flatten().zip(dims).enumerate() {
            let Size::Fixed(size) = old.size else { continue };
            // Many writers mean an unknown one by a negative number.
            let Ok(size) = usize::try_from(size).map(|size| size.saturating_add(1)) else { continue };
            match dim {
                Dim::Fixed(_) => continue,
                Dim::Symbol(symbol) => symbols.insert(symbol, size),
                _ => opened.insert((&info.name, axis), size),
            };
            text.push(format!("size {size} in dimension {axis} of {}", quote(&info.name)));
        }
    }
    if text.is_empty() {
        return Ok(None);
    }
    let (mut random, mut inputs) = (Random::within(new.limits(), 0), Inputs::new());
    for info in new.inputs() {
        let Some(known) = feeds.get(&old_name(&info.name)) else { continue };
        let (Some(dims), Ok(tensor)) = (&info.shape, known.tensor()) else {
            inputs = inputs.with(&info.name, known.clone());
            continue;
        };
        let size = |(axis, (dim, known)): (usize, (&Dim, &usize))| match dim {
            Dim::Symbol(symbol) => symbols.get(symbol.as_str()).copied().unwrap_or(*known),
            _ => opened.get(&(info.name.as_str(), axis)).copied().unwrap_or(*known),
        };
        let shape: Vec<usize> = dims.iter().zip(tensor.shape()).enumerate().map(size).collect();
        let value = match shape == tensor.shape() {
            true => Ok(known.clone()),
            false => random.tensor(tensor.dtype(), &shape, None).map(Value::from),
        };
        let Ok(value) = value else { return Ok(None) };
        inputs = inputs.with(&info.name, value);
    }
    match new.run_with(inputs, cancel) {
        Ok(_) => Ok(None),
        Err(error) if error.kind() == Kind::Cancelled => Err(Failure::run(error)),
        Err(error) => Ok(Some(format!("with {}: {error:#}", text.join(", ")))),
    }
}

/// Which outputs of the old model are random: these differ from run to run, if not from each to the next.
fn random(
    old: &Model,
    differing: &[(String, String)],
    (known, feeds): (&Outputs, &Fed),
    cancel: &Cancel,
) -> Result<HashSet<String>, Failure> {
    let mut random = HashSet::new();
    for _ in 0..REPEATS {
        let inputs = feeds.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let again = old.run_with(inputs, cancel).map_err(Failure::run)?;
        let differs =
            |name: &str| matches!((known.get(name), again.get(name)), (Some(one), Some(other)) if !same(one, other));
        random.extend(differing.iter().map(|(_, old)| old).filter(|old| differs(old)).cloned());
        if differing.iter().all(|(_, old)| random.contains(old)) {
            break;
        }
    }
    Ok(random)
}
