//! What begins a chain of an image: factors and addends of its channels, which a convolution applies before its sums are stored.

use super::fused::{Chain, StepInput};
use super::{Form, Rowwise};
use crate::dtype::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// A chain that scales an image first.
pub(crate) struct Scaling {
    /// The inputs of the chain that are factors and addends of channels.
    pub(crate) scale: [Option<usize>; 2],
    /// What is computed then of these numbers, the first input of these steps, and of what is beside them.
    pub(crate) steps: Option<Chain>,
    /// The inputs of the chain that the steps read beside.
    pub(crate) beside: SmallVec<[usize; 2]>,
}

impl Chain {
    /// A function of two numbers.
    pub(crate) fn of_two(operator: Arc<dyn Rowwise>) -> Option<Chain> {
        let inputs = [StepInput::Input(0), StepInput::Input(1)];
        Chain::new(DType::Float, 2, vec![(operator, inputs.into_iter().collect())])
    }

    /// The same, if it scales an input by others that are `of_channels`, and reads it nowhere else.
    pub(crate) fn scaling(&self, image: usize, of_channels: impl Fn(usize) -> bool) -> Option<Scaling> {
        let (mut scale, mut value, mut begun) = ([None; 2], StepInput::Input(image), 0);
        for (own, form) in scale.iter_mut().zip([Form::Product, Form::Sum]) {
            let Some(step) = self.steps.get(begun).filter(|step| step.operator.form() == Some(form)) else { continue };
            let other = match *step.inputs {
                [a, b] if a == value => b,
                [a, b] if b == value => a,
                _ => continue,
            };
            if let StepInput::Input(k) = other
                && of_channels(k)
            {
                (*own, value, begun) = (Some(k), StepInput::Step(begun), begun + 1);
            }
        }
        let mut beside = SmallVec::new();
        let mut input = |from: &StepInput| match *from {
            from if from == value => Some(StepInput::Input(0)),
            StepInput::Step(k) => k.checked_sub(begun).map(StepInput::Step),
            StepInput::Input(k) if k == image || of_channels(k) => None,
            StepInput::Input(k) => {
                let at = beside.iter().position(|own| *own == k).unwrap_or_else(|| {
                    beside.push(k);
                    beside.len() - 1
                });
                Some(StepInput::Input(1 + at))
            }
        };
        let rest = self.steps.get(begun..).filter(|_| begun > 0)?.iter();
        let steps = rest
            .map(|step| Some((step.operator.clone(), step.inputs.iter().map(&mut input).collect::<Option<_>>()?)))
            .collect::<Option<Vec<_>>>()?;
        let steps = match steps.is_empty() {
            true => None,
            false => Some(Chain::new(self.dtype, 1 + beside.len(), steps)?),
        };
        Some(Scaling { scale, steps, beside })
    }
}
