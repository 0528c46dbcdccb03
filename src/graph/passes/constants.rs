//! Makes constant operands part of elementwise operators, which then have one input.

use super::{PassContext, constant, dtype};
use crate::error::Result;
use crate::graph::draft::Draft;
use crate::operator::Made;

/// Elementwise nodes whose other inputs are constants read the first one alone: so they can be steps of chains.
pub(super) fn constants(draft: &mut Draft, _: &PassContext<'_>) -> Result<()> {
    for at in 0..draft.nodes.len() {
        let Some(node) = draft.nodes.get(at).filter(|node| !node.open) else { continue };
        let Some(Made::Rowwise(operator)) = &node.operator else { continue };
        let known = node.inputs.iter().skip(1).flatten().all(|id| constant(*id, draft).is_some());
        let input = |k: usize| constant(node.inputs.get(k).copied().flatten()?, draft);
        let first = node.inputs.first().copied().flatten().and_then(|id| dtype(id, draft));
        if let Some(operator) = first.and_then(|dtype| operator.of_constants(dtype, &input)).filter(|_| known)
            && let Some(node) = draft.nodes.get_mut(at)
        {
            node.operator = Some(Made::Rowwise(operator));
            node.inputs.truncate(1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::{run, stands_for};
    use crate::graph::testing::{Builder, load};
    use crate::graph::{Draft, Slots};
    use crate::limits::Limits;
    use crate::operator::{Attribute, Context, Feeds};
    use crate::ops::testing::tensor;
    use crate::registry::Registry;
    use crate::value::{Dim, Fact, Value};

    /// `y = -clip(abs(x), bounds)`; a bound without a value is fed.
    fn draft(bounds: &[(&str, Option<Value>)]) -> Draft {
        let mut builder = Builder::new();
        builder.shaped("x", Some(DType::Float.into()), Some(vec![Dim::Fixed(2), Dim::Fixed(3)]));
        for (name, value) in bounds {
            match value {
                Some(value) => {
                    builder.constant(name, value.clone());
                }
                None => builder.shaped(name, Some(DType::Float.into()), Some(vec![])),
            }
        }
        let inputs: Vec<&str> = ["a"].into_iter().chain(bounds.iter().map(|(name, _)| *name)).collect();
        builder.op("Abs", &["x"], "a");
        builder.op("Clip", &inputs, "b");
        builder.op("Neg", &["b"], "y");
        builder.output("y")
    }

    #[test]
    fn bounds_become_part_of_a_chain() {
        let number = |value: f32| Some(tensor(&[], [value]));
        let x = tensor(&[2, 3], [-7f32, 0.0, f32::NAN, 1.5, f32::INFINITY, -0.0]);
        for (bounds, fused) in [
            (&[("min", number(0.5)), ("max", number(6.0))][..], true),
            (&[("min", number(1.0))], true),
            (&[("min", Some(tensor(&[1], [1f32]))), ("max", number(-2.0))], true),
            (&[("min", number(f32::NAN)), ("max", number(6.0))], true),
            (&[("min", number(0.5)), ("max", None)], false),
        ] {
            let fed = bounds.iter().filter(|(_, value)| value.is_none());
            let feeds: Vec<Value> = [x.clone()].into_iter().chain(fed.map(|_| tensor(&[], [6f32]))).collect();
            let (graph, plain) = (load(draft(bounds), true).unwrap(), load(draft(bounds), false).unwrap());
            let bits = |values: Vec<Value>| -> Vec<u32> {
                values[0].tensor().unwrap().as_slice::<f32>().unwrap().iter().map(|x| x.to_bits()).collect()
            };
            assert_eq!(bits(run(&graph, &feeds, None)), bits(run(&plain, &feeds, None)), "{bounds:?}");
            assert_eq!(stands_for(&graph).iter().any(|parts| *parts == ["a", "b", "y"]), fused, "{bounds:?}");
        }
    }

    /// A place that the base doesn't have is refused, whatever the exponent is.
    #[test]
    fn an_exponent_with_an_axis() {
        let x = tensor(&[2, 3], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let run = |axis: i64, optimize: bool| {
            let mut builder = Builder::new();
            builder.input_of("x", Some(DType::Float.into()));
            let exponent = builder.id("exponent");
            builder.draft.constant(exponent, Fact::constant(tensor(&[], [2f32])), None);
            let attributes = [("broadcast", 1), ("axis", axis)].map(|(name, k)| (name.into(), Attribute::Int(k)));
            let resolved = Registry::default().resolve("", "Pow", 1).unwrap();
            builder.whole_node("pow", resolved, attributes.to_vec(), &["x", "exponent"], "y");
            let graph = load(builder.output("y"), optimize)?;
            let (feeds, mut slots) = ([Some(x.clone())], Slots::default());
            graph.run(Feeds::Own(&feeds), &mut slots, &Context::new(1, Limits::default()), None)?;
            graph.take(0, Feeds::Own(&feeds), &mut slots)
        };
        for optimize in [false, true] {
            assert_eq!(run(1, optimize).unwrap(), tensor(&[2, 3], [1f32, 4.0, 9.0, 16.0, 25.0, 36.0]));
            let error = run(3, optimize).unwrap_err().to_string();
            assert!(error.ends_with("of shape [2, 3] from axis 3 on"), "{error}");
        }
    }

    /// What isn't a single number is refused as it is written.
    #[test]
    fn a_bound_that_is_a_list() {
        let bounds = [("min", Some(tensor(&[3], [0f32, 1.0, 2.0])))];
        for optimize in [false, true] {
            let graph = load(draft(&bounds), optimize).unwrap();
            let (feeds, mut slots) = ([Some(tensor(&[2, 3], [1f32; 6]))], Slots::default());
            let context = Context::new(1, Limits::default());
            let error = graph.run(Feeds::Own(&feeds), &mut slots, &context, None).unwrap_err();
            assert!(error.to_string().contains("a scalar is needed"), "{error}");
        }
    }
}
