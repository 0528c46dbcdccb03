//! What a fusion looks for, written as the expression that its nodes compute: `Mul(x, Add(Erf(y), 1))`.
//!
//! A name that begins with a capital letter is an operator of the default domain. A name in small letters is any value, and
//! the same one at each of its uses. A number is a constant of one element. The inputs of Add and Mul may be in either
//! order.

use super::{Readers, aligns_last};
use crate::error::{Error, Result};
use crate::graph::draft::{Draft, DraftNode, Entry, Id};
use crate::tensor::Scalar;
use smallvec::SmallVec;

/// A pattern.
#[derive(Debug, PartialEq)]
pub(super) enum Pattern {
    Node { operator: &'static str, inputs: Vec<Pattern> },
    Value(&'static str),
    Number(f64),
}

/// Where a pattern was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Found {
    /// The places of the nodes, in order. The last one is the outermost.
    pub(super) nodes: SmallVec<[usize; 4]>,
    values: SmallVec<[(&'static str, Id); 4]>,
}

impl Found {
    /// The value that a name stands for.
    pub(super) fn value(&self, name: &str) -> Option<Id> {
        self.values.iter().find(|(own, _)| *own == name).map(|(_, id)| *id)
    }
}

impl Pattern {
    /// As [`Pattern::parse`], of a text that is one.
    pub(super) fn of(text: &'static str) -> Result<Pattern> {
        Pattern::parse(text).ok_or_else(|| Error::bug("a pattern is none"))
    }

    /// Reads a pattern; `None` if it isn't one.
    fn parse(text: &'static str) -> Option<Pattern> {
        let (pattern, rest) = Pattern::read(text)?;
        rest.trim().is_empty().then_some(pattern)
    }

    fn read(text: &'static str) -> Option<(Pattern, &'static str)> {
        let text = text.trim_start();
        let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))).unwrap_or(text.len());
        let (word, mut rest) = text.split_at_checked(end)?;
        match word.chars().next()? {
            'A'..='Z' => {
                let mut inputs = Vec::new();
                rest = rest.strip_prefix('(')?;
                loop {
                    let (input, after) = Pattern::read(rest)?;
                    inputs.push(input);
                    let after = after.trim_start();
                    match after.strip_prefix(',') {
                        Some(more) => rest = more,
                        None => return Some((Pattern::Node { operator: word, inputs }, after.strip_prefix(')')?)),
                    }
                }
            }
            'a'..='z' => Some((Pattern::Value(word), rest)),
            _ => Some((Pattern::Number(word.parse().ok()?), rest)),
        }
    }

    /// Finds it with the node at a place as the outermost one. What its other nodes produce is read inside only.
    pub(super) fn find(&self, at: usize, draft: &Draft, readers: &Readers) -> Option<Found> {
        let mut found = self.node(at, Found::default(), draft, readers)?;
        found.nodes.sort_unstable();
        found.nodes.dedup();
        let nodes = || found.nodes.iter().filter_map(|at| draft.nodes.get(*at));
        let inside = |node: &DraftNode| {
            let mut outputs = node.outputs.iter().flatten();
            outputs.all(|id| readers.count(*id) == nodes().filter(|node| node.reads().any(|own| own == *id)).count())
        };
        let inner = nodes().take(found.nodes.len() - 1);
        inner.into_iter().all(inside).then_some(found)
    }

    fn node(&self, at: usize, mut found: Found, draft: &Draft, readers: &Readers) -> Option<Found> {
        let (Pattern::Node { operator, inputs }, node) = (self, draft.nodes.get(at)?) else { return None };
        let other = node.standard() != Some(*operator) || node.inputs.len() != inputs.len();
        if other || node.open || !aligns_last(node) {
            return None;
        }
        found.nodes.push(at);
        let ids: SmallVec<[Id; 4]> = node.inputs.iter().copied().collect::<Option<_>>()?;
        let each = |found: Found, turned: bool| {
            let order = |k: usize| if turned { ids.len() - 1 - k } else { k };
            let mut inputs = inputs.iter().enumerate();
            inputs.try_fold(found, |found, (k, input)| input.value(*ids.get(order(k))?, found, draft, readers))
        };
        let straight = each(found.clone(), false);
        if straight.is_some() || !matches!(*operator, "Add" | "Mul") { straight } else { each(found, true) }
    }

    fn value(&self, id: Id, mut found: Found, draft: &Draft, readers: &Readers) -> Option<Found> {
        match self {
            Pattern::Node { .. } => self.node(readers.producer(id)?, found, draft, readers),
            Pattern::Value(name) => match found.value(name) {
                Some(known) => (known == id).then_some(found),
                None => {
                    found.values.push((name, id));
                    Some(found)
                }
            },
            Pattern::Number(number) => {
                draft.entries.get(id.at()).is_some_and(|entry| is(entry, *number)).then_some(found)
            }
        }
    }
}

/// Whether a value is a constant of one element, which is this number, or what its type makes of it.
fn is(entry: &Entry, number: f64) -> bool {
    let Some(Ok(tensor)) = entry.fact.value().map(|value| value.tensor()) else { return false };
    match tensor.scalars().next() {
        _ if tensor.len() != 1 => false,
        Some(Scalar::Float(value)) => value == number as f32,
        Some(Scalar::Double(value)) => value == number,
        Some(Scalar::Int(value)) => value as f64 == number,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::passes::PassContext;
    use crate::graph::testing::{Builder, inferred, loading};
    use crate::value::Fact;

    #[test]
    fn patterns_are_read() {
        let value = Pattern::Value;
        let node = |operator, inputs| Pattern::Node { operator, inputs };
        let erf = node("Erf", vec![value("y")]);
        let want = node("Mul", vec![value("x"), node("Add", vec![erf, Pattern::Number(1.5)])]);
        assert_eq!(Pattern::parse("Mul( x, Add(Erf(y) ,1.5)) "), Some(want));
        for wrong in ["", "Mul", "Mul(", "Mul(x", "Mul(x,)", "Mul(x))", "x y", "?"] {
            assert_eq!(Pattern::parse(wrong), None, "{wrong}");
        }
    }

    /// The places and values of a pattern that ends at the last node of `y = a * (erf(b) + 1)`.
    fn found(pattern: &'static str, shared: bool) -> Option<(Vec<usize>, Option<String>)> {
        let mut builder = Builder::new();
        ["a", "b"].into_iter().for_each(|name| builder.input_of(name, Some(crate::dtype::DType::Float.into())));
        let one = builder.id("one");
        builder.draft.constant(one, Fact::constant([1f32].into()), None);
        builder.op("Erf", &["b"], "e");
        builder.op("Add", &["one", "e"], "s");
        builder.op("Mul", &["a", "s"], "y");
        if shared {
            builder.output_named("e");
        }
        let draft = inferred(builder.output("y"));
        let readers = loading(|loading| PassContext { loading }.readers(&draft).unwrap());
        let found = Pattern::parse(pattern).unwrap().find(2, &draft, &readers)?;
        let name = found.value("x").and_then(|id| draft.entries.get(id.at())).map(|entry| entry.name.to_string());
        Some((found.nodes.to_vec(), name))
    }

    #[test]
    fn nodes_are_found_in_either_order() {
        let b = Some("b".to_string());
        assert_eq!(found("Mul(a, Add(Erf(x), 1))", false), Some((vec![0, 1, 2], b.clone())));
        assert_eq!(found("Mul(Add(1, Erf(x)), y)", false), Some((vec![0, 1, 2], b)));
        assert_eq!(found("Mul(x, z)", false), Some((vec![2], Some("a".to_string()))));
        for other in ["Mul(x, x)", "Mul(a, Add(Erf(x), 2))", "Mul(a, Sub(Erf(x), 1))", "Mul(a, Add(Tanh(x), 1))"] {
            assert_eq!(found(other, false), None, "{other}");
        }
    }

    #[test]
    fn what_others_read_is_not_inside() {
        assert_eq!(found("Mul(a, Add(Erf(x), 1))", true), None);
        assert!(found("Mul(a, Add(e, 1))", true).is_some());
    }
}
