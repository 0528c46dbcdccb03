//! Einsum: sums of products, over the indices of an equation that its output doesn't have.
//! <https://onnx.ai/onnx/operators/onnx__Einsum.html>

use crate::ops::prelude::*;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

pub(super) const EINSUM: Implementation = Implementation::missing("", "Einsum", infer);

/// The indices of each input and of the output: `ij,jk->ik`.
#[derive(Debug, PartialEq)]
struct Equation {
    inputs: Vec<Vec<Index>>,
    output: Vec<Index>,
}

/// What runs along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Index {
    /// As many dimensions as are left.
    Ellipsis,
    Letter(char),
}

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Index::Ellipsis => f.write_str("..."),
            Index::Letter(letter) => letter.fmt(f),
        }
    }
}

impl FromStr for Equation {
    type Err = Error;

    /// Without an arrow the output has the ellipsis, and then the letters that occur once, in their order.
    fn from_str(equation: &str) -> Result<Equation> {
        let text: String = equation.chars().filter(|letter| *letter != ' ').collect();
        let (left, right) = text.split_once("->").map_or((&*text, None), |(left, right)| (left, Some(right)));
        let inputs = left.split(',').map(|term| indices(term, equation)).collect::<Result<Vec<_>>>()?;
        let mut counts = BTreeMap::new();
        inputs.iter().flatten().for_each(|index| *counts.entry(*index).or_insert(0) += 1);
        let Some(right) = right else {
            let once = |(index, count): (Index, usize)| (count == 1 || index == Index::Ellipsis).then_some(index);
            return Ok(Equation { inputs, output: counts.into_iter().filter_map(once).collect() });
        };
        let output = indices(right, equation)?;
        match output.iter().find(|index| **index != Index::Ellipsis && !counts.contains_key(index)) {
            Some(Index::Letter(letter)) => {
                Err(fault(equation, &format!("its output has {letter}, but no input has it")))
            }
            _ => Ok(Equation { inputs, output }),
        }
    }
}

/// The indices of an input or of the output.
fn indices(term: &str, equation: &str) -> Result<Vec<Index>> {
    let (mut indices, mut rest) = (Vec::new(), term);
    while let Some(letter) = rest.chars().next() {
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        rest = match rest.strip_prefix("...") {
            Some(_) if indices.contains(&Index::Ellipsis) => {
                return Err(fault(equation, &format!("{} has two ellipses", quote(term))));
            }
            Some(after) => {
                indices.push(Index::Ellipsis);
                after
            }
            None if letter.is_ascii_alphabetic() => {
                indices.push(Index::Letter(letter));
                after
            }
            None => {
                let allowed = "allowed are letters, \"...\", commas, spaces and one \"->\"";
                return Err(fault(equation, &format!("{} is not an index: {allowed}", quote(&letter.to_string()))));
            }
        };
    }
    Ok(indices)
}

#[cold]
fn fault(equation: &str, what: &str) -> Error {
    Error::model(format!("equation {}: {what}", quote(equation))).attribute("equation")
}

/// Sizes of 1 are repeated: the text says so of an ellipsis, and engines do it for letters too.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let text = facts.string("equation")?;
    let Equation { inputs, output } = text.parse()?;
    if inputs.len() != facts.input_count() {
        let what = format!("it has {} terms, and there are {} inputs", inputs.len(), facts.input_count());
        return Err(fault(text, &what));
    }
    let mut sizes: BTreeMap<Index, Option<Vec<Dim>>> = BTreeMap::new();
    for (k, indices) in inputs.iter().enumerate() {
        let letters = indices.iter().filter(|index| **index != Index::Ellipsis).count();
        let (dims, open) = (facts.dims(k), indices.len() > letters);
        let left = dims.map_or(0, <[Dim]>::len).saturating_sub(letters);
        if let Some(dims) = dims.filter(|dims| dims.len() < letters || left > 0 && !open) {
            let term: String = indices.iter().map(Index::to_string).collect();
            let what = format!("input {k} has shape {}, which {} doesn't fit", DimsText(dims), quote(&term));
            return Err(fault(text, &what));
        }
        let mut rest = dims.unwrap_or_default();
        for index in indices {
            let own = match (index, dims) {
                (Index::Letter(_), None) => Some(vec![Dim::Unknown]),
                (Index::Ellipsis, None) => None,
                _ => {
                    let count = if *index == Index::Ellipsis { left } else { 1 };
                    let (own, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
                    rest = after;
                    Some(own.to_vec())
                }
            };
            let size = match sizes.remove(index) {
                None => own,
                Some(before) => both(&before, &own)
                    .map_err(|what| fault(text, &format!("{} {what} in input {k}", quote(&index.to_string()))))?,
            };
            sizes.insert(*index, size);
        }
    }
    // An ellipsis of the output alone stands for nothing.
    let size = |index| sizes.get(index).cloned().unwrap_or(Some(Vec::new()));
    if let Some(dims) = output.iter().map(size).collect::<Option<Vec<_>>>() {
        facts.give(0, dims.concat());
    }
    Ok(())
}

/// The sizes that two uses of an index have in common; or what is wrong with them.
fn both(one: &Option<Vec<Dim>>, other: &Option<Vec<Dim>>) -> std::result::Result<Option<Vec<Dim>>, String> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let both = Some(one.len()).filter(|len| *len == other.len()).and_then(|_| broadcast(&[one, other]).ok());
            both.map(Some).ok_or_else(|| format!("stands for {}, and for {}", DimsText(one), DimsText(other)))
        }
        // The other one may have larger sizes.
        (Some(known), None) | (None, Some(known)) => both(&Some(known.clone()), &Some(vec![Dim::Unknown; known.len()])),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::{Equation, Index};
    use crate::ops::testing::{Inferred, infer, string};

    fn einsum<const I: usize>(equation: &str, inputs: [&str; I]) -> Inferred {
        infer("Einsum", 12, [string("equation", equation)], inputs)
    }

    #[test]
    fn equations() {
        let parsed = |text: &str| {
            let Equation { inputs, output } = text.parse().unwrap();
            let term = |term: &Vec<Index>| term.iter().map(Index::to_string).collect::<String>();
            format!("{} -> {}", inputs.iter().map(term).collect::<Vec<_>>().join(" "), term(&output))
        };
        assert_eq!(parsed("ij,jk->ik"), "ij jk -> ik");
        assert_eq!(parsed(" i j , j k -> k "), "ij jk -> k");
        assert_eq!(parsed("ba...,bAc"), "ba... bAc -> ...Aac");
        assert_eq!(parsed("ii"), "ii -> ");
        assert_eq!(parsed("...i->i..."), "...i -> i...");
        assert_eq!(parsed(",ij->"), " ij -> ");
        let fails = |text: &str, what: &str| {
            let error = text.parse::<Equation>().unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        fails("i1->i", "equation \"i1->i\": \"1\" is not an index: allowed are letters, \"...\", commas");
        fails("i..j", "\".\" is not an index");
        fails("i->j->k", "\"-\" is not an index");
        fails("ä", "\"ä\" is not an index");
        fails("...i...", "\"...i...\" has two ellipses");
        fails("ij->ik", "its output has k, but no input has it");
    }

    #[test]
    fn shapes() {
        einsum("ij,jk->ik", ["float[N, 3]", "float[3, M]"]).gives("[N, M]");
        einsum("ij,kj", ["float[N, 3]", "float"]).gives("[N, ?]");
        einsum("ij,jk->ijk", ["float[N, 3]", "float[?, M]"]).gives("[N, 3, M]");
        einsum("ij,jk->ijk", ["float[N, S]", "float"]).gives("[N, ?, ?]");
        einsum("ii->i", ["float[3, ?]"]).gives("[3]");
        einsum("ii", ["float[N, N]"]).gives("[]");
        einsum("...ij,...jk", ["float[B, 1, 2, 3]", "float[1, H, 3, 4]"]).gives("[B, H, 2, 4]");
        einsum("i...,j->...j", ["float[2, N, 5]", "float[7]"]).gives("[N, 5, 7]");
        einsum("i...,...", ["float[2, N, 5]", "float"]).gives("[?, 5, 2]");
        einsum("...,i...", ["float", "float[2, N, 5]"]).gives("[?, 5, 2]");
        einsum("i...->i", ["float[2, 3]"]).gives("[2]");
        einsum("...->...", ["float"]).gives("");
        einsum("i->...i", ["float[N]"]).gives("[N]");
        einsum("i,i->i", ["float[1]", "float[N]"]).gives("[N]");
        einsum("i,->i", ["float[N]", "float[]"]).gives("[N]");
    }

    #[test]
    fn faults() {
        einsum("ij,jk", ["float[2, 3]", "float[4, 5]"])
            .fails("equation \"ij,jk\": \"j\" stands for [3], and for [4] in input 1");
        einsum("...i,...i", ["float[2, 3]", "float[2, 2, 3]"])
            .fails("\"...\" stands for [2], and for [2, 2] in input 1");
        einsum("ii", ["float[3, 4]"]).fails("\"i\" stands for [3], and for [4] in input 0");
        einsum("ij", ["float[3]"]).fails("input 0 has shape [3], which \"ij\" doesn't fit");
        einsum("i,j", ["float[3]", "float[3, 4]"]).fails("input 1 has shape [3, 4], which \"j\" doesn't fit");
        einsum("i,j", ["float[3]"]).fails("it has 2 terms, and there are 1 inputs");
    }
}
