//! If: runs one of two subgraphs.
//! <https://onnx.ai/onnx/operators/onnx__If.html>

use crate::ops::prelude::*;

pub(super) const IF: Implementation = Implementation::control("If", &[1, 11, 13, 16, 19, 21, 23, 24, 25], load);

/// `outputs = then_branch()` if `cond` is true, else `else_branch()`
#[derive(Debug)]
struct If {
    /// The numbers of the two subgraphs.
    then_branch: usize,
    else_branch: usize,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Control>> {
    let ((then_branch, one), (else_branch, other)) = (node.body("then_branch")?, node.body("else_branch")?);
    one.check_counts(0, node.output_count())?;
    other.check_counts(0, node.output_count())?;
    Ok(Box::new(If { then_branch, else_branch }))
}

impl Control for If {
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
        let body = if call.only_element::<bool>(0)? { self.then_branch } else { self.else_branch };
        Ok((Step::Enter { body, feeds: Values::new() }, Box::new(Branch)))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let [one, other] = ["then_branch", "else_branch"].map(|name| facts.body(name).map(|(_, body)| &body.inferred));
        for (k, (one, other)) in one?.iter().zip(other?).enumerate() {
            if let (Some(of_one @ ValueType::Tensor(_)), Some(of_other @ ValueType::Tensor(_))) =
                (one.value_type(), other.value_type())
                && of_one != of_other
            {
                let text =
                    format!("output {k} is {of_one} in then_branch and {of_other} in else_branch: they must be equal");
                return Err(Error::model(text));
            }
            facts.give_fact(k, one.common(other));
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::super::testing::{body, graph, run};
    use super::*;
    use crate::ops::testing::tensor;

    #[test]
    fn one_of_two_that_read_what_is_around() {
        let branches = || {
            let then_branch = graph("", ["d = Sub(x, y)", "e = Mul(d, d)"], "e, y");
            let else_branch = graph("", ["s = Add(x, x)"], "s, x");
            vec![body("then_branch", then_branch), body("else_branch", else_branch)]
        };
        let (x, y) = (tensor::<f32>(&[2], [5.0, 1.0]), tensor::<f32>(&[2], [2.0, 3.0]));
        for opset in [1, 11, 13, 25] {
            let opset = opset.max(7);
            let ran = |cond: bool| {
                let cond = Tensor::scalar(cond).into();
                run(opset, "a, b = If(c)", branches(), &[("c", &cond), ("x", &x), ("y", &y)])
            };
            assert_eq!(ran(true).unwrap(), [tensor::<f32>(&[2], [9.0, 4.0]), y.clone()], "{opset}");
            assert_eq!(ran(false).unwrap(), [tensor::<f32>(&[2], [10.0, 2.0]), x.clone()], "{opset}");
        }
        // One value decides, whatever its rank.
        let ran = |cond: Value| run(13, "a, b = If(c)", branches(), &[("c", &cond), ("x", &x), ("y", &y)]);
        assert_eq!(ran(tensor(&[1], [false])).unwrap()[1], x);
        assert_eq!(ran(tensor(&[1, 1], [true])).unwrap()[1], y);
        assert_eq!(ran(tensor(&[1, 1, 1], [false])).unwrap()[1], x);
        let error = ran(tensor::<bool>(&[1, 0], [])).unwrap_err();
        assert!(error.to_string().ends_with("has shape [1, 0]: one value is needed"), "{error}");
        let error = ran(tensor(&[2], [true, true])).unwrap_err();
        assert!(error.to_string().ends_with("\"cond\" (value \"c\") has shape [2]: one value is needed"), "{error}");
    }
}
