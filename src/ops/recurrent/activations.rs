//! The attribute `activations`: the functions of the gates.

use crate::ops::prelude::*;
use kernels::recurrent::{Activation, Cell};

/// The function of a name, with the parameters that the node gives for it, or else the defaults.
struct Known {
    name: &'static str,
    /// Those of `activation_alpha` and `activation_beta`, if it has them.
    defaults: [Option<f32>; 2],
    make: fn(f32, f32) -> Activation,
}

/// The text has the defaults of the operators of these names; Affine and ScaledTanh, which were experimental, change nothing.
const KNOWN: [Known; 11] = [
    Known { name: "Relu", defaults: [None, None], make: |_, _| Activation::Relu },
    Known { name: "Tanh", defaults: [None, None], make: |_, _| Activation::Tanh },
    Known { name: "Sigmoid", defaults: [None, None], make: |_, _| Activation::Sigmoid },
    Known { name: "Affine", defaults: [Some(1.0), Some(0.0)], make: Activation::Affine },
    Known { name: "LeakyRelu", defaults: [Some(0.01), None], make: |alpha, _| Activation::LeakyRelu(alpha) },
    Known { name: "ThresholdedRelu", defaults: [Some(1.0), None], make: |alpha, _| Activation::ThresholdedRelu(alpha) },
    Known { name: "ScaledTanh", defaults: [Some(1.0), Some(1.0)], make: Activation::ScaledTanh },
    Known { name: "HardSigmoid", defaults: [Some(0.2), Some(0.5)], make: Activation::HardSigmoid },
    Known { name: "Elu", defaults: [Some(1.0), None], make: |alpha, _| Activation::Elu(alpha) },
    Known { name: "Softsign", defaults: [None, None], make: |_, _| Activation::Softsign },
    Known { name: "Softplus", defaults: [None, None], make: |_, _| Activation::Softplus },
];

/// The functions f, g, h of each direction, as many as a cell has. Their names may be written in any case. Each takes the
/// next of the parameters of a kind that it has.
pub(super) fn read(node: &Node<'_>, cell: Cell, directions: usize) -> Result<Vec<Activation>> {
    let count = cell.functions();
    let usual = match cell {
        Cell::Rnn => &["Tanh"][..],
        Cell::Gru { .. } => &["Sigmoid", "Tanh"],
        Cell::Lstm { .. } => &["Sigmoid", "Tanh", "Tanh"],
    };
    let given: Vec<&str> = match node.optional("activations", Node::strings)? {
        Some(given) => given.iter().map(String::as_str).collect(),
        None => usual.repeat(directions),
    };
    if given.len() < count * directions {
        let text = format!("activations has {} entries: {} are needed", given.len(), count * directions);
        return Err(Error::model(text).attribute("activations"));
    }
    let names = ["activation_alpha", "activation_beta"];
    let mut parameters = [&[][..]; 2];
    for (parameters, name) in parameters.iter_mut().zip(names) {
        *parameters = node.optional(name, Node::floats)?.unwrap_or_default();
    }
    let mut functions = Vec::new();
    for (k, name) in given.into_iter().enumerate() {
        let Some(known) = KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name)) else {
            let all = KNOWN.each_ref().map(|known| known.name).join(", ");
            return Err(
                Error::model(format!("activations[{k}] is {}: allowed {all}", quote(name))).attribute("activations")
            );
        };
        let mut values = [0.0; 2];
        for ((value, default), rest) in values.iter_mut().zip(known.defaults).zip(&mut parameters) {
            let Some(default) = default else { continue };
            *value = default;
            if let Some((next, others)) = rest.split_first() {
                (*value, *rest) = (*next, others);
            }
        }
        let [alpha, beta] = values;
        functions.push((known.make)(alpha, beta));
    }
    // One more for each function, whether it has that or not, would give others different ones.
    if let Some((rest, name)) = parameters.iter().zip(names).find(|(rest, _)| !rest.is_empty()) {
        let text = format!("{name} has {} entries more than the functions have parameters", rest.len());
        return Err(Error::model(text).attribute(name));
    }
    functions.truncate(count * directions);
    Ok(functions)
}
