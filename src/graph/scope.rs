//! Scopes: the calls of functions and the subgraphs in which names are valid.

use crate::error::Result;
use crate::limits::Budget;
use std::fmt;
use std::sync::Arc;

/// A called function, or a subgraph of a node: its names are its own. A value of a run is known by its scope, its name,
/// and in subgraphs by the trip: see [`Watch`](crate::Watch).
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

struct Inner {
    outer: Option<Scope>,
    node: Box<str>,
    body: Option<Box<str>>,
    depth: usize,
}

impl Scope {
    /// The scope of a call of the node that gives `node`, or of its subgraph.
    pub(super) fn new(outer: Option<&Scope>, node: &str, body: Option<&str>, budget: &Budget) -> Result<Scope> {
        budget.take((size_of::<Inner>() + 64 + node.len() + body.map_or(0, str::len)) as u64)?;
        let depth = outer.map_or(0, Scope::depth) + 1;
        Ok(Scope(Arc::new(Inner { outer: outer.cloned(), node: node.into(), body: body.map(Into::into), depth })))
    }

    /// The scope around it; `None` if that is the model's graph.
    pub fn outer(&self) -> Option<&Scope> {
        self.0.outer.as_ref()
    }

    /// The first value that the node gives, by its name in the scope around it. If it names none, `#` and its index.
    pub fn node(&self) -> &str {
        &self.0.node
    }

    /// The attribute that holds the subgraph; `None` for a called function.
    pub fn body(&self) -> Option<&str> {
        self.0.body.as_deref()
    }

    /// The number of scopes from the model's graph to this one, which counts.
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// This scope and those around it.
    fn outward(&self) -> impl Iterator<Item = &Scope> {
        std::iter::successors(Some(self), |scope| scope.outer())
    }
}

impl PartialEq for Scope {
    fn eq(&self, other: &Scope) -> bool {
        let same = |(a, b): (&Scope, &Scope)| (a.node(), a.body()) == (b.node(), b.body());
        self.depth() == other.depth() && self.outward().zip(other.outward()).all(same)
    }
}

impl Eq for Scope {}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.outward().map(|scope| (scope.node(), scope.body()))).finish()
    }
}

impl Drop for Inner {
    /// One scope after the other: calls may nest deeply.
    fn drop(&mut self) {
        let mut outer = self.outer.take();
        while let Some(mut inner) = outer.and_then(|scope| Arc::into_inner(scope.0)) {
            outer = inner.outer.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn scopes_nest_on_a_small_stack() {
        let budget = Budget::new(&Limits::default());
        let nested = |last: &str| {
            let deep = (0..20_000)
                .fold(None, |outer: Option<Scope>, _| Some(Scope::new(outer.as_ref(), "y", None, &budget).unwrap()));
            Scope::new(deep.as_ref(), last, Some("body"), &budget).unwrap()
        };
        let [a, b, other] = ["a", "a", "b"].map(nested);
        let ran = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            assert_eq!((a == b, a == other, a.depth()), (true, false, 20_001));
            assert!(format!("{other:?}").starts_with(r#"[("b", Some("body")), ("y", None), ("#));
            drop((a, b, other));
        });
        ran.unwrap().join().unwrap();
    }
}
