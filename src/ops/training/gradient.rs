//! Gradient: the derivatives of one tensor by others. It doesn't run: what it computes isn't in its node, but in the graph
//! that leads from its inputs to `y`, whose operators would all have to be differentiated.
//! <https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Gradient.html>

use super::DOMAIN;
use crate::ops::prelude::*;

pub(super) const GRADIENT: Implementation =
    Implementation { domain: DOMAIN, name: "Gradient", versions: &[], make: Make::Missing(infer, WHY) };

const WHY: &str = "onnxref doesn't differentiate graphs: export the gradient as a graph of its own";

/// The first inputs are those of `xs`, each with a derivative; then come those of `zs`.
fn infer(facts: &mut Inference<'_>) -> Result<()> {
    let names = |name: &str| Ok::<usize, Error>(facts.optional(name, Node::strings)?.map_or(0, <[String]>::len));
    let (inputs, by) = (names("xs")? + names("zs")?, names("xs")?);
    for (what, own, needed) in [("inputs", facts.input_count(), inputs), ("outputs", facts.output_count(), by)] {
        if own != needed {
            let text = format!("there are {own} {what}: \"xs\" and \"zs\" name {needed}");
            return Err(Error::model(text).parameter(if what == "inputs" { "Inputs" } else { "Outputs" }).size(own));
        }
    }
    for k in 0..by {
        facts.give_type_of(k, k);
        facts.give_shape_of(k, k);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DOMAIN, WHY};
    use crate::ops::testing::{infer_for, string, strings};
    use crate::registry::Registry;

    #[test]
    fn shapes() {
        let (name, y) = (format!("{DOMAIN}.Gradient"), || string("y", "y"));
        let given = || [strings("xs", &["a", "b"]), y(), strings("zs", &["c"])];
        infer_for(2, &name, 1, given(), ["float[N, 3]", "double", "float"]).gives_all(["[N, 3]", ""]);
        infer_for(2, &name, 1, given(), ["double[]", "double", "float"]).has_type("float64");
        infer_for(2, &name, 1, given(), ["float", "float"]).fails("there are 2 inputs: \"xs\" and \"zs\" name 3");
        infer_for(1, &name, 1, given(), ["float", "float", "float"]).fails("there are 1 outputs");
    }

    #[test]
    fn it_says_why_it_does_not_run() {
        let resolved = Registry::default().resolve(DOMAIN, "Gradient", 1).unwrap();
        assert_eq!(resolved.missing().map(|why| why.to_string()).as_deref(), Some(WHY));
    }
}
