//! FlexAttention: attention whose scores and weights subgraphs may change.
//! <https://onnx.ai/onnx/operators/onnx_aionnxpreview_FlexAttention.html>

use super::dot_product::{rounding, scale, softmax_precision};
use crate::ops::prelude::*;
use kernels::attention::{Attention, Heads, Layout, Numbers, Sight, Sizes, Stage};
use kernels::gemm::Right;

pub(super) const FLEX_ATTENTION: Implementation =
    Implementation { domain: "ai.onnx.preview", name: "FlexAttention", versions: &[1], make: Make::Control(load) };

/// `Y = prob_mod(softmax(score_mod(scale * Q K^T))) V`, for each head
///
/// The subgraphs get the tensor of all heads, of the type that `softmax_precision` names: double for inputs of double,
/// otherwise float32, if it is not given.
#[derive(Debug)]
struct FlexAttention {
    scale: Option<f32>,
    precision: Option<DType>,
    score_mod: Option<usize>,
    prob_mod: Option<usize>,
}

fn load(node: &Node<'_>) -> Result<Box<dyn Control>> {
    let body = |name| match node.body(name) {
        Ok((number, facts)) => facts.check_counts(1, 1).map(|()| Some(number)),
        Err(_) => Ok(None),
    };
    let (score_mod, prob_mod) = (body("score_mod")?, body("prob_mod")?);
    Ok(Box::new(FlexAttention { scale: scale(node)?, precision: softmax_precision(node)?, score_mod, prob_mod }))
}

impl Control for FlexAttention {
    fn start(&self, call: &mut Call<'_>) -> Result<(Step, Box<dyn Resume>)> {
        let sizes = sizes(call)?;
        let (q, v) = (call.tensor(0)?, call.tensor(2)?);
        let double = q.dtype() == DType::Double;
        let precision = self.precision.unwrap_or(if double { DType::Double } else { DType::Float });
        let double = double || precision == DType::Double;
        let stage = match (self.score_mod, self.prob_mod) {
            (Some(body), _) => Some((Stage::Scores, body)),
            (None, Some(body)) => Some((Stage::Weights, body)),
            (None, None) => None,
        };
        let wanted = stage.map(|(stage, _)| stage);
        let first = match double {
            false => self.attend::<f32>(call, sizes, precision, wanted),
            true => self.attend::<f64>(call, sizes, precision, wanted),
        }?;
        let feeds = Values::from(first);
        let step = match stage {
            Some((_, body)) => Step::Enter { body, feeds },
            None => Step::Done(feeds),
        };
        let scored = wanted == Some(Stage::Weights);
        let rest = Rest { sizes, precision, double, values: v.clone(), scored, prob_mod: self.prob_mod };
        Ok((step, Box::new(rest)))
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let (Some([batch, heads, queries, _]), Some([_, _, _, size])) = (facts.sizes::<4>(0)?, facts.sizes::<4>(2)?)
        {
            facts.give(0, [batch.clone(), heads.clone(), queries.clone(), size.clone()]);
        }
        Ok(())
    }
}

impl FlexAttention {
    /// The output, or the tensor for the first subgraph.
    fn attend<T: Numbers + Element>(
        &self,
        call: &Call<'_>,
        sizes: Sizes,
        precision: DType,
        wanted: Option<Stage>,
    ) -> Result<Tensor> {
        let (q, context) = (call.tensor(0)?, call.context());
        let Sizes { batch, heads, group, queries, keys, size, .. } = sizes;
        let (queried, value_size) = (heads * group, if wanted.is_some() { 0 } else { sizes.value_size });
        let [mut q_room, mut k_room, mut v_room] = [None, None, None];
        let attention = Attention {
            sizes: Sizes { value_size, ..sizes },
            q: Heads { elements: elements_of::<T>(context, q, &mut q_room)?, layout: layout(queried, queries, size) },
            k: Heads {
                elements: elements_of::<T>(context, call.tensor(1)?, &mut k_room)?,
                layout: layout(heads, keys, size),
            },
            v: match wanted {
                Some(_) => Heads { elements: &[], layout: layout(0, 0, 0) },
                None => Heads {
                    elements: elements_of::<T>(context, call.tensor(2)?, &mut v_room)?,
                    layout: layout(heads, keys, value_size),
                },
            },
            scale: T::of(self.scale.map_or_else(|| 1.0 / (size as f64).sqrt(), f64::from)),
            softcap: T::of(0.0),
            sight: Sight::default(),
            bias: None,
            round: rounding::<T>(precision),
            written: None,
            out: layout(queried, queries, value_size),
        };
        call.charge(attention.work())?;
        let plan = attention.plan(call.resources());
        let mut scratch = call.scratch::<T>(plan.scratch())?;
        let (columns, dtype) = if wanted.is_some() { (keys, precision) } else { (value_size, q.dtype()) };
        let mut output = Output::<T>::new(context, dtype, shape_of([&[batch, queried, queries, columns]]))?;
        let out = output.elements_mut()?;
        match wanted {
            Some(stage) => plan.run(&mut [], Some((stage, out)), scratch.elements_mut(), call.resources()),
            None => plan.run(out, None, scratch.elements_mut(), call.resources()),
        }?;
        output.finish()
    }
}

/// Of a tensor `(batch, heads, rows, size)`.
fn layout(heads: usize, rows: usize, size: usize) -> Layout {
    let head = rows.saturating_mul(size);
    Layout { batch: head.saturating_mul(heads), head, row: size }
}

fn sizes(call: &Call<'_>) -> Result<Sizes> {
    let shape = |k: usize| {
        let tensor = call.tensor(k)?;
        <[usize; 4]>::try_from(tensor.shape()).map_err(|_| {
            let (name, shape) = (call.name(k), ShapeText(tensor.shape()));
            Error::input(format!("{} has shape {shape}: a rank of 4 is needed", quote(name))).parameter(name)
        })
    };
    let ([batch, queried, queries, size], [_, heads, keys, _]) = (shape(0)?, shape(1)?);
    let [_, _, _, value_size] = shape(2)?;
    for (k, needs) in [(1, [batch, heads, keys, size]), (2, [batch, heads, keys, value_size])] {
        if shape(k)? != needs {
            let (name, shape, needs) = (call.name(k), ShapeText(&shape(k)?).to_string(), ShapeText(&needs));
            let text = format!("{} has shape {shape}: {needs} is needed", quote(name));
            return Err(Error::input(text).parameter(name));
        }
    }
    if queried.checked_rem(heads).unwrap_or(queried) != 0 {
        let text = format!("\"Q\" has {queried} heads, which is not a multiple of the {heads} of \"K\"");
        return Err(Error::input(text).parameter("Q").size(queried));
    }
    let group = queried.checked_div(heads).unwrap_or(0);
    Ok(Sizes { batch, heads, group, queries, keys, size, value_size })
}

/// What follows a subgraph.
#[derive(Debug)]
struct Rest {
    sizes: Sizes,
    /// The type of scores and weights.
    precision: DType,
    /// Computed with doubles.
    double: bool,
    values: Tensor,
    /// The scores are weights already.
    scored: bool,
    prob_mod: Option<usize>,
}

impl Resume for Rest {
    fn resume(&mut self, mut results: Values, context: &Context) -> Result<Step> {
        let mut tensor = results.take_first()?.into_tensor()?;
        let Sizes { batch, heads, group, queries, keys, .. } = self.sizes;
        let shape = [batch, heads * group, queries, keys];
        if (tensor.dtype(), tensor.shape()) != (self.precision, &shape[..]) {
            let name = if self.scored { "prob_mod" } else { "score_mod" };
            let (has, needs) = (ShapeText(tensor.shape()), ShapeText(&shape));
            let (dtype, precision) = (tensor.dtype(), self.precision);
            let text = format!("{name} returns {dtype} of shape {has}: {precision} of shape {needs} is needed");
            return Err(Error::model(text).attribute(name));
        }
        if !self.scored {
            self.scored = true;
            tensor = if self.double { softmax::<f64>(&tensor, context) } else { softmax::<f32>(&tensor, context) }?;
            if let Some(body) = self.prob_mod {
                return Ok(Step::Enter { body, feeds: tensor.into() });
            }
        }
        let y = if self.double { self.mean::<f64>(&tensor, context) } else { self.mean::<f32>(&tensor, context) }?;
        Ok(Step::Done(y.into()))
    }
}

impl Rest {
    /// The values, weighted.
    fn mean<T: Numbers + Element>(&self, weights: &Tensor, context: &Context) -> Result<Tensor> {
        let Sizes { batch, heads, group, queries: m, keys: k, value_size: n, .. } = self.sizes;
        let [mut a_room, mut b_room] = [None, None];
        let a = Left::View(View::rows(elements_of::<T>(context, weights, &mut a_room)?, k));
        let b = Right::View(View::rows(elements_of::<T>(context, &self.values, &mut b_room)?, n));
        let (of_a, of_b) = (m.saturating_mul(k), k.saturating_mul(n));
        let batch_dims = [
            Batch { size: batch, a: of_a.saturating_mul(heads * group), b: of_b.saturating_mul(heads) },
            Batch { size: heads, a: of_a.saturating_mul(group), b: of_b },
            Batch { size: group, a: of_a, b: 0 },
        ];
        let product = Product::<T> { m, k, n, a, b, batch: &batch_dims, epilogue: &[] };
        context.charge(product.work())?;
        let plan = product.plan(context.resources());
        let mut room = scratch::<T>(context, plan.scratch())?;
        let shape = shape_of([&[batch, heads * group, m, n]]);
        let mut y = Output::<T>::new(context, self.values.dtype(), shape)?;
        plan.run(y.elements_mut()?, room.elements_mut(), context.resources())?;
        y.finish()
    }
}

fn softmax<T: Numbers + Element>(scores: &Tensor, context: &Context) -> Result<Tensor> {
    let mut room = None;
    let lanes = Lanes::new(scores.shape(), |axis| axis == 3);
    let from = elements_of::<T>(context, scores, &mut room)?;
    let mut weights = Output::<T>::new(context, scores.dtype(), shape_of([scores.shape()]))?;
    lanes::map::<_, T, T>(&lanes::Softmax, from, &lanes, &mut [], weights.elements_mut()?, context.resources())?;
    weights.finish()
}
