//! Carries DequantizeLinear past nodes that only move elements: they move integers of 8 bits then, not floats.

use super::copies::{beside, copy, insert};
use super::quantized::{Scaling, scaling};
use super::{PassContext, fact};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::NODE_BYTES;
use crate::graph::draft::{Draft, DraftNode, Id};
use crate::operator::{Attribute, Made};
use crate::value::{Dim, Fact};
use std::collections::HashMap;

/// Operators whose output has elements of their first input, each as it is.
const MOVES: [&str; 7] = ["Flatten", "Gather", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"];

/// Whether a node is a MaxPool that takes integers, too, each of whose windows shows an element of the image: what is greatest
/// has the greatest integer.
fn picks(node: &DraftNode) -> bool {
    let ints = |name: &str| match node.attributes.iter().find(|(own, _)| own == name) {
        None => Some(&[][..]),
        Some((_, Attribute::Ints(list))) => Some(list.as_slice()),
        _ => None,
    };
    let plain = |(name, value): &(String, Attribute)| match (name.as_str(), value) {
        ("kernel_shape" | "pads" | "strides", _) => true,
        ("auto_pad", Attribute::String(kind)) => matches!(&**kind, "" | "NOTSET"),
        ("ceil_mode" | "storage_order", Attribute::Int(set)) => *set == 0,
        ("dilations", Attribute::Ints(list)) => list.iter().all(|size| *size == 1),
        _ => false,
    };
    let since = node.resolved.as_ref().is_some_and(|resolved| resolved.schema.since_version >= 12);
    let (Some(kernel), Some(pads)) = (ints("kernel_shape"), ints("pads")) else { return false };
    let sees = || pads.iter().zip(kernel.iter().chain(kernel)).all(|(pad, size)| pad < size);
    node.standard() == Some("MaxPool") && since && node.attributes.iter().all(plain) && sees()
}

/// Integers of which a DequantizeLinear node makes floats.
struct Integers {
    id: Id,
    /// The node, or one like it.
    at: usize,
    dtype: DType,
    scale: f32,
    zero: u8,
}

impl Integers {
    /// What a node reads or gives. `None` if it hasn't one scale.
    fn of(scaling: &Scaling<'_>, id: Id) -> Option<Integers> {
        let ([scale], zero) = (scaling.scales, scaling.zeros()?) else { return None };
        Some(Integers { id, at: scaling.at, dtype: scaling.dtype, scale: *scale, zero: *zero.bytes().first()? })
    }

    /// Whether the same integers come back.
    fn same(&self, other: &Integers) -> bool {
        (self.dtype, self.zero) == (other.dtype, other.zero) && self.scale.to_bits() == other.scale.to_bits()
    }
}

/// `f(DequantizeLinear(x))` becomes `DequantizeLinear(f(x))`, and who reads `QuantizeLinear(DequantizeLinear(x))` reads `x`.
///
/// With the same parameters the quotient of the scaled difference is within two roundings of a number up to 255, so it is
/// rounded to that.
pub(super) fn carry(draft: &mut Draft, context: &PassContext<'_>) -> Result<()> {
    let Some(readers) = context.readers(draft) else { return Ok(()) };
    let (mut instead, mut from) = (HashMap::<Id, Id>::new(), HashMap::<Id, Integers>::new());
    let mut after: Vec<(usize, DraftNode)> = Vec::new();
    for at in 0..draft.nodes.len() {
        let Some(node) = draft.nodes.get_mut(at) else { break };
        let captured = node.bodies.iter_mut().flat_map(|body| &mut body.captured);
        for id in node.inputs.iter_mut().flatten().chain(captured) {
            *id = instead.get(id).copied().unwrap_or(*id);
        }
        let (Some(Some(input)), [Some(output)]) = (node.inputs.first().copied(), &*node.outputs) else { continue };
        let (output, pools) = (*output, matches!(node.operator, Some(Made::Blockwise(_))) && picks(node));
        let is_plain = (matches!(node.operator, Some(Made::Plain(_))) || pools) && !node.open;
        let label = node.place.operator.clone();
        if !is_plain || node.standard().is_none() {
            continue;
        }
        if *label.name == *"DequantizeLinear" {
            from.extend(
                scaling("DequantizeLinear", at, draft)
                    .and_then(|all| Integers::of(&all, input))
                    .map(|all| (output, all)),
            );
        } else if *label.name == *"QuantizeLinear" {
            let own = scaling("QuantizeLinear", at, draft).and_then(|all| Integers::of(&all, output));
            if let (Some(own), Some(integers)) = (own, from.get(&input))
                && own.same(integers)
            {
                instead.insert(output, integers.id);
            }
        } else if (pools || MOVES.contains(&&*label.name))
            && let Some(integers) = from.get(&input).filter(|_| readers.count(input) == 1)
        {
            let (moved, source) = (integers.id, integers.at);
            // Windows of images without places show nothing.
            let shows = |dims: &[Dim]| dims.iter().skip(2).all(|dim| dim.fixed().is_some_and(|size| size > 0));
            if pools && !fact(moved, draft).and_then(Fact::dims).is_some_and(shows) {
                continue;
            }
            let budget = context.loading.budget;
            let taken = budget.take(2 * NODE_BYTES as u64).is_ok();
            let Some((mut last, _)) = copy(source, draft, context).filter(|_| taken) else { continue };
            let Some(of) = fact(moved, draft).and_then(|fact| fact.value_type.clone()) else { continue };
            let dims = fact(output, draft).and_then(|fact| fact.dims().map(Into::into));
            // The floats keep their name.
            let own = Fact::of(Some(of.clone()), dims);
            let id = beside(output, "integers", own, draft, context)?;
            let Some(node) = draft.nodes.get_mut(at) else { break };
            node.inputs.first_mut().into_iter().for_each(|input| *input = Some(moved));
            last.outputs = std::mem::replace(&mut node.outputs, [Some(id)].into_iter().collect());
            node.known = [Some(of)].into_iter().collect();
            last.inputs.first_mut().into_iter().for_each(|input| *input = Some(id));
            let Integers { dtype, scale, zero, .. } = *integers;
            from.insert(output, Integers { id, at: source, dtype, scale, zero });
            after.push((at + 1, last));
        }
    }
    for (_, id) in &mut draft.outputs {
        *id = instead.get(id).copied().unwrap_or(*id);
    }
    insert(after, draft);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::graph::passes::testing::run;
    use crate::graph::testing::{Builder, load};
    use crate::graph::{Draft, Graph};
    use crate::operator::Attribute;
    use crate::ops::testing::tensor;
    use crate::value::{Dim, Value};
    use std::slice::from_ref;

    fn nodes(graph: &Graph) -> Vec<String> {
        graph.node_infos().map(|node| node.operator.to_string()).collect()
    }

    /// `QuantizeLinear(Transpose(DequantizeLinear(x)))`; the second scale is `scale`.
    fn moved(scale: f32, also_read: bool) -> Draft {
        let mut builder = Builder::new();
        builder.shaped("x", Some(DType::Uint8.into()), Some(vec![Dim::Symbol("N".into()), Dim::Fixed(3)]));
        let zero: Value = tensor(&[], [7u8]);
        for (name, value) in [("s", tensor(&[], [0.3f32])), ("t", tensor(&[], [scale])), ("z", zero)] {
            builder.constant(name, value);
        }
        builder.op("DequantizeLinear", &["x", "s", "z"], "floats");
        builder.op("Transpose", &["floats"], "turned");
        builder.op("QuantizeLinear", &["turned", "t", "z"], "y");
        if also_read {
            builder.output_named("floats");
        }
        builder.output_named("turned");
        builder.output("y")
    }

    #[test]
    fn no_bit_changes() {
        let x = tensor(&[2, 3], [0u8, 255, 7, 8, 100, 3]);
        for (scale, also_read, left) in [
            (0.3, false, &["Transpose", "DequantizeLinear"][..]),
            (0.4, false, &["Transpose", "DequantizeLinear", "QuantizeLinear"]),
            (0.3, true, &["DequantizeLinear", "Transpose", "QuantizeLinear"]),
        ] {
            let (graph, plain) =
                (load(moved(scale, also_read), true).unwrap(), load(moved(scale, also_read), false).unwrap());
            assert_eq!(nodes(&graph), left);
            assert_eq!(run(&graph, from_ref(&x), None), run(&plain, from_ref(&x), None));
        }
    }

    /// `QuantizeLinear(MaxPool(DequantizeLinear(x)))` with padding on all sides.
    fn pooled(attribute: (&str, Attribute), pad: i64) -> Draft {
        let mut builder = Builder::new();
        let dims = [Dim::Symbol("N".into()), Dim::Fixed(1), Dim::Fixed(3), Dim::Fixed(4)];
        builder.shaped("x", Some(DType::Int8.into()), Some(dims.into()));
        let zero: Value = tensor(&[], [-7i8]);
        for (name, value) in [("s", tensor(&[], [0.3f32])), ("z", zero)] {
            builder.constant(name, value);
        }
        let sizes = [("kernel_shape", vec![2; 2]), ("pads", vec![pad; 4])];
        let sizes = sizes.map(|(name, list)| (name.to_string(), Attribute::Ints(list)));
        let all = sizes.into_iter().chain([(attribute.0.to_string(), attribute.1)]).collect();
        builder.op("DequantizeLinear", &["x", "s", "z"], "floats");
        builder.op_with("MaxPool", all, &["floats"], "pooled");
        builder.op("QuantizeLinear", &["pooled", "s", "z"], "y");
        builder.output_named("pooled");
        builder.output("y")
    }

    /// A window that shows padding only has no element: -inf isn't the least integer.
    #[test]
    fn the_greatest_integers() {
        let x = tensor(&[1, 1, 3, 4], [5i8, -128, -128, -128, -128, -128, -7, 127, 0, 3, 3, -9]);
        let strides = || ("strides", Attribute::Ints(vec![1, 2]));
        for (attribute, pad, carries) in [
            (strides(), 1, true),
            (strides(), 0, true),
            (strides(), 2, false),
            (("ceil_mode", Attribute::Int(1)), 1, false),
            (("dilations", Attribute::Ints(vec![2, 2])), 1, false),
        ] {
            let draft = || pooled(attribute.clone(), pad);
            let (graph, plain) = (load(draft(), true).unwrap(), load(draft(), false).unwrap());
            assert_eq!(nodes(&graph).first().is_some_and(|name| name == "MaxPool"), carries, "{attribute:?}, {pad}");
            assert_eq!(run(&graph, from_ref(&x), None), run(&plain, from_ref(&x), None), "{attribute:?}, {pad}");
        }
    }

    /// All integers come back from floats of many scales.
    #[test]
    fn integers_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        for scale in [1e-30f32, 0.1, 0.3, 1.0 / 3.0, 0.999_999_94, 1.0, 7.7, 1e30, f32::MIN_POSITIVE, 1e36] {
            for zero in [0u8, 1, 128, 255] {
                let numbers = all.iter().map(|x| (f32::from(*x) - f32::from(zero)) * scale / scale);
                let back = numbers.map(|x| (x.round_ties_even() + f32::from(zero)) as u8);
                assert!(back.eq(all.iter().copied()), "{scale}, {zero}");
            }
        }
    }
}
