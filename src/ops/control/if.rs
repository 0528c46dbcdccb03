//! If: runs one of two subgraphs.
//! <https://onnx.ai/onnx/operators/onnx__If.html>

use crate::ops::prelude::*;

pub(super) const IF: Implementation = Implementation {
    domain: "",
    name: "If",
    versions: &[1, 11, 13, 16, 19, 21, 23, 24, 25],
    make: Make::Control(load),
};

/// `outputs = then_branch()` if `cond` is true, else `else_branch()`
#[derive(Debug)]
struct If {
    /// The numbers of the two subgraphs.
    then_branch: usize,
    else_branch: usize,
    /// What both say about the outputs.
    facts: Vec<Fact>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Control>> {
    let ((then_branch, one), (else_branch, other)) = (node.body("then_branch")?, node.body("else_branch")?);
    one.check_counts(0, node.output_count())?;
    other.check_counts(0, node.output_count())?;
    let facts = one.outputs.iter().zip(&other.outputs).map(|(one, other)| one.common(other)).collect();
    Ok(Box::new(If { then_branch, else_branch, facts }))
}

impl Control for If {
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
        let body = if call.scalar::<bool>(0)? { self.then_branch } else { self.else_branch };
        Ok((Step::Enter { body, feeds: Values::new() }, Box::new(Branch)))
    }

    fn infer(&self, _: &[Option<&Fact>]) -> Result<Vec<Fact>> {
        Ok(self.facts.clone())
    }
}

/// The running branch.
#[derive(Debug)]
struct Branch;

impl Resume for Branch {
    fn resume(&mut self, results: Values, _: &Context) -> Result<Step> {
        Ok(Step::Done(results))
    }
}
