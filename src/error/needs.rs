//! Operators that a model needs but this runtime doesn't have.

use super::{Error, Place, operator_label};
use std::fmt::{self, Display};

/// The operators of a model that can't run here: [`Error::needs`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// The missing operators, those with the most nodes first.
    pub missing: Vec<Missing>,
    /// The number of missing operators; more than in `missing` if a hostile model has too many to list.
    pub missing_operators: usize,
    /// The number of nodes that need them.
    pub missing_nodes: usize,
    /// The number of operators of the model, each version counted separately.
    pub operators: usize,
    /// The number of nodes of the model, those of subgraphs and called functions included.
    pub nodes: usize,
}

/// An operator that can't run here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Its domain; empty for `ai.onnx`.
    pub domain: String,
    /// Its name.
    pub operator: String,
    /// The version (`since_version`) that applies, if the domain's versions are known.
    pub version: Option<i64>,
    /// Why it can't run.
    pub reason: String,
    /// The number of nodes that need it.
    pub nodes: usize,
    /// The first of these nodes.
    pub first: Place,
}

/// The operator as errors name it: `Add-14`.
impl Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&operator_label(&self.domain, &self.operator))?;
        self.version.map_or(Ok(()), |version| write!(f, "-{version}"))
    }
}

/// `needs 20 operators that are not implemented (of 24; 3,790 of 3,836 nodes)`
impl Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Needs { missing_operators, missing_nodes, operators, nodes, .. } = *self;
        let what = if missing_operators == 1 { "1 operator that is" } else { "operators that are" };
        let count = if missing_operators == 1 { String::new() } else { format!("{} ", grouped(missing_operators)) };
        let (of, most, nodes) = (grouped(operators), grouped(missing_nodes), grouped(nodes));
        write!(f, "needs {count}{what} not implemented (of {of}; {most} of {nodes} nodes)")
    }
}

/// A number with a comma before every three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An operator that nodes name and that can't be resolved.
#[derive(Debug)]
pub(crate) struct Unresolved {
    /// Why, with the place of the first node; `None` if there are too many to keep.
    pub(crate) error: Option<Error>,
    /// It is missing here; otherwise the model is at fault.
    pub(crate) missing: bool,
    /// The place of the first node in the draft.
    pub(crate) at: usize,
    pub(crate) nodes: usize,
}

impl Unresolved {
    /// The error for all its nodes.
    pub(crate) fn into_error(self) -> Option<Error> {
        let error = self.error?;
        Some(if self.nodes > 1 { error.and(&format!(" ({} nodes)", grouped(self.nodes))) } else { error })
    }

    /// The same as data.
    pub(crate) fn as_data(&self) -> Option<Missing> {
        let error = self.error.as_ref()?;
        let place = error.place();
        Some(Missing {
            domain: place.domain.clone().unwrap_or_default(),
            operator: place.operator.clone().unwrap_or_default(),
            version: place.version,
            reason: error.0.message.clone(),
            nodes: self.nodes,
            first: place.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
