//! Attributes that operators of the domain have in common.

use crate::ops::prelude::*;

/// The number of entries of a list or tensor in an attribute; 0 if it isn't given.
pub(super) fn len(node: &Node<'_>, name: &str) -> usize {
    match node.attribute(name) {
        Some(Attribute::Ints(list)) => list.len(),
        Some(Attribute::Floats(list)) => list.len(),
        Some(Attribute::Strings(list)) => list.len(),
        Some(Attribute::Tensor(tensor)) => tensor.len(),
        _ => 0,
    }
}

/// Which one of some lists is given, with the number of its entries. A list without entries is as if it weren't given.
pub(super) fn only<'n>(node: &Node<'_>, names: &[&'n str]) -> Result<(&'n str, usize)> {
    let mut given = names.iter().map(|name| (*name, len(node, name))).filter(|(_, len)| *len > 0);
    let Some(first) = given.next() else {
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        let text = format!("neither {} nor {last} is given: one is needed", others.join(", "));
        return Err(Error::model(text).attribute(last));
    };
    match given.next() {
        None => Ok(first),
        Some((second, _)) => {
            let text = format!("{} and {second} are both given: allowed is one", first.0);
            Err(Error::model(text).attribute(second))
        }
    }
}

/// A list of floats or a tensor in an attribute, as doubles; empty if it isn't given.
pub(super) fn numbers(node: &Node<'_>, name: &str) -> Result<Vec<f64>> {
    let double = |number: Scalar<'_>| match number {
        Scalar::Float(number) => number.into(),
        Scalar::Double(number) => number,
        _ => f64::NAN,
    };
    node.bill(size_of::<f64>() * len(node, name))?;
    match node.attribute(name) {
        Some(Attribute::Tensor(tensor)) => Ok(tensor.scalars().map(double).collect()),
        _ => Ok(node.optional(name, Node::floats)?.unwrap_or(&[]).iter().map(|number| f64::from(*number)).collect()),
    }
}

/// A list in an attribute, as a tensor of rank 1.
pub(super) fn list(node: &Node<'_>, name: &str) -> Result<Tensor> {
    match node.attribute(name) {
        Some(Attribute::Ints(list)) => {
            node.bill(size_of_val(list.as_slice()))?;
            Ok(list.clone().into())
        }
        Some(Attribute::Floats(list)) => {
            node.bill(size_of_val(list.as_slice()))?;
            Ok(list.clone().into())
        }
        Some(Attribute::Strings(list)) => {
            let text = list.iter().map(String::len).sum();
            node.bill(DType::String.size() * list.len() + text)?;
            Tensor::try_from_strings(&[list.len()], text, list.iter().map(Ok))
        }
        _ => Ok(node.tensor(name)?.clone()),
    }
}

/// A list of strings in an attribute, as a tensor of rank 1; empty if it isn't given.
pub(super) fn texts(node: &Node<'_>, name: &str) -> Result<Tensor> {
    node.optional(name, list)?.map_or_else(|| Tensor::from_strings(&[0], [""; 0]), Ok)
}

/// Fails unless those of some lists that are given have the same number of entries.
pub(super) fn equally_many(node: &Node<'_>, names: &[&str]) -> Result<()> {
    let mut given = names.iter().map(|name| (*name, len(node, name))).filter(|(_, len)| *len > 0);
    let Some((first, count)) = given.next() else { return Ok(()) };
    match given.find(|(_, len)| *len != count) {
        None => Ok(()),
        Some((name, len)) => {
            let text = format!("{name} has {len} entries, and {first} has {count}: they must be equally many");
            Err(Error::model(text).attribute(name).size(len))
        }
    }
}

/// Fails unless all of some lists that belong together have the same number of entries: 0 if none is given.
pub(super) fn all_equally_many(node: &Node<'_>, names: &[&str]) -> Result<()> {
    equally_many(node, names)?;
    let (given, missing): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| len(node, name) > 0);
    match (given.first(), missing.first()) {
        (Some(given), Some(missing)) => {
            let count = len(node, given);
            let text = format!("{missing} has no entries, and {given} has {count}: they must be equally many");
            Err(Error::model(text).attribute(missing).size(0))
        }
        _ => Ok(()),
    }
}

/// Fails unless a list that is given has one entry, or one for each feature, along the last dimension of the input.
pub(super) fn one_or_each(facts: &Inference<'_>, name: &str) -> Result<()> {
    let count = len(facts, name);
    match facts.dims(0).and_then(<[Dim]>::last) {
        Some(Dim::Fixed(features)) if count > 1 && count != *features => {
            let text = format!("{name} has {count} entries, but \"X\" has {features} features: allowed 1, {features}");
            Err(Error::model(text).attribute(name).size(count))
        }
        _ => Ok(()),
    }
}

/// The number of examples: the rows of the input, or one if it is a list of features.
pub(super) fn examples(facts: &Inference<'_>) -> Dim {
    match facts.dims(0) {
        Some([_]) => Dim::Fixed(1),
        Some([rows, _]) => rows.clone(),
        _ => Dim::Unknown,
    }
}
