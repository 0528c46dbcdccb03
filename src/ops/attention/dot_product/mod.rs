//! Attention: means of values, weighted by how well queries fit keys.
//! <https://onnx.ai/onnx/operators/onnx__Attention.html>

mod bias;
mod caches;
mod shapes;
#[cfg(test)]
mod tests;

use crate::ops::prelude::*;
use bias::Mask;
use caches::Cache;
use kernels::attention::{self, Heads, Numbers, Sight, Sizes, Stage};
use shapes::Shapes;

pub(super) const ATTENTION: Implementation = Implementation::run("Attention", &[23, 24, 25], load);

/// `Y = softmax(softcap * tanh(scale * Q K^T / softcap) + bias) V`, for each head
///
/// The bias is `attn_mask`, with -inf where a bool is false, and -inf for keys that `is_causal`, the windows or
/// `nonpad_kv_seqlen` exclude. A key whose bias is -inf doesn't count, whatever it holds; a query without any other gets
/// zeros. float16 and bfloat16 are computed as float32 and rounded once; the mask is rounded to the type of `Q` first.
///
/// If `softmax_precision` names another type than that of `Q`, the scores are cast to it and the weights are numbers of it,
/// as in the function's body: a score beyond float16 is infinite there, and makes its row NaN. In between the softmax is
/// rounded once, where the body's Softmax may round each step.
#[derive(Debug)]
pub(super) struct Attention {
    /// The numbers of heads of queries and of keys, which inputs of rank 3 need.
    heads: [Option<i64>; 2],
    scale: Option<f32>,
    softcap: f32,
    left: Option<usize>,
    right: Option<usize>,
    /// The type that the scores are rounded to for the softmax.
    precision: Option<DType>,
    stage: Stage,
    /// From version 24 on the mask's last dimension may be shorter than the keys. There `nonpad_kv_seqlen` came, too.
    pads: bool,
}

/// Windows came with version 25. A causal mask is a window: no key to the right.
fn load(node: &Node<'_>) -> Result<Box<dyn Operator>> {
    let window = |name| if node.version() < 25 { Ok(None) } else { window(node, name) };
    let heads = |name| node.optional(name, Node::int);
    let causal = node.flag("is_causal")?;
    Ok(Box::new(Attention {
        heads: [heads("q_num_heads")?, heads("kv_num_heads")?],
        scale: scale(node)?,
        softcap: node.float("softcap")?,
        left: window("left_window_size")?,
        right: window("right_window_size")?.filter(|_| !causal).or(causal.then_some(0)),
        precision: softmax_precision(node)?,
        stage: stage(node)?,
        pads: node.version() >= 24,
    }))
}

fn window(node: &Node<'_>, name: &str) -> Result<Option<usize>> {
    match node.int(name)? {
        -1 => Ok(None),
        size => match usize::try_from(size) {
            Ok(size) => Ok(Some(size)),
            Err(_) => {
                let text = format!("{name} is {size}: allowed are -1, which leaves that side open, and up");
                Err(Error::model(text).attribute(name).value(size))
            }
        },
    }
}

/// The square root of the scale multiplies both sides of the product, so it can't be negative.
pub(super) fn scale(node: &Node<'_>) -> Result<Option<f32>> {
    let scale = node.optional("scale", Node::float)?;
    match scale.filter(|scale| *scale < 0.0) {
        Some(scale) => Err(Error::model(format!("scale is {scale}: its square root is needed")).attribute("scale")),
        None => Ok(scale),
    }
}

/// The type that the attribute `softmax_precision` names, if it is given.
pub(super) fn softmax_precision(node: &Node<'_>) -> Result<Option<DType>> {
    let name = "softmax_precision";
    let Some(given) = node.optional(name, Node::int)? else { return Ok(None) };
    let allowed = [DType::Float, DType::Float16, DType::Double, DType::Bfloat16];
    match allowed.into_iter().find(|dtype| i64::from(dtype.code()) == given) {
        Some(dtype) => Ok(Some(dtype)),
        None => {
            let text = format!("{name} is {given}: allowed 1 (float32), 10 (float16), 11 (float64), 16 (bfloat16)");
            Err(Error::model(text).attribute(name).value(given))
        }
    }
}

/// How scores are rounded to a type before the softmax, and its result; `None` if they have it already.
pub(super) fn rounding<T: Numbers + Element>(precision: DType) -> Option<fn(&mut [T])> {
    let [to_float16, to_bfloat16, to_float] = T::ROUNDED;
    match precision {
        DType::Float16 => Some(to_float16),
        DType::Bfloat16 => Some(to_bfloat16),
        DType::Float if T::DTYPE != DType::Float => Some(to_float),
        _ => None,
    }
}

fn stage(node: &Node<'_>) -> Result<Stage> {
    let name = "qk_matmul_output_mode";
    match node.int(name)? {
        0 => Ok(Stage::Scores),
        1 => Ok(Stage::Capped),
        2 => Ok(Stage::Biased),
        3 => Ok(Stage::Weights),
        mode => Err(Error::model(format!("{name} is {mode}: allowed 0..=3")).attribute(name).value(mode)),
    }
}

impl Operator for Attention {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let shapes = Shapes::of(self.heads, call)?;
        let key = Cache::of(call, 1, 4, &shapes.k)?;
        let value = Cache::of(call, 2, 5, &shapes.v)?;
        let types = [call.tensor(0)?.dtype(), call.tensor(2)?.dtype()];
        let double = types.contains(&DType::Double) || self.precision == Some(DType::Double);
        let (y, scores) = match double {
            false => self.attend::<f32>(call, &shapes, &key, &value)?,
            true => self.attend::<f64>(call, &shapes, &key, &value)?,
        };
        let mut outputs = Values::from(y);
        for cache in [key, value] {
            outputs.push(cache.tensor);
        }
        outputs.extend(scores.map(Value::from));
        outputs.truncate(call.output_count());
        Ok(outputs)
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        let [Some(q), Some(k), Some(v)] = shapes::heads(self.heads, facts)? else { return Ok(()) };
        let ([batch, heads, queries, _], [_, held, keys, size], [_, _, _, v_size]) = (q, k, v);
        let past = match facts.input(4) {
            Some(_) => facts.sizes::<4>(4)?.map_or(Dim::Unknown, |[_, _, past, _]| past.clone()),
            None => Dim::Fixed(0),
        };
        let total = keys.plus(&past);
        match (facts.dims(0), facts.dims(2)) {
            // As many heads of the same size.
            (Some([_, _, _]), Some([_, _, hidden])) if heads == held && heads != Dim::Unknown => {
                facts.give(0, [batch.clone(), queries.clone(), hidden.clone()]);
            }
            (Some([_, _, _]), _) => facts.give(0, [batch.clone(), queries.clone(), Dim::product([&heads, &v_size])]),
            _ => facts.give(0, [batch.clone(), heads.clone(), queries.clone(), v_size.clone()]),
        }
        facts.give(1, [batch.clone(), held.clone(), total.clone(), size]);
        facts.give(2, [batch.clone(), held, total.clone(), v_size]);
        facts.give(3, [batch, heads, queries, total]);
        Ok(())
    }
}

impl Attention {
    /// `Y`, and the scores if they are wanted.
    fn attend<T: Numbers + Element>(
        &self,
        call: &Call<'_>,
        shapes: &Shapes,
        key: &Cache,
        value: &Cache,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let query = call.tensor(0)?;
        let sizes = shapes.sizes(key.keys);
        let [mut q_room, mut k_room, mut v_room, mut bias_room] = [None, None, None, None];
        let bias = Mask { pads: self.pads, like: query.dtype() }.bias::<T>(call, &sizes, &mut bias_room)?;
        let valid = valid_keys(call, &sizes, bias.as_ref().map_or(sizes.keys, |bias| bias.columns))?;
        let attention = attention::Attention {
            sizes,
            q: Heads { elements: elements_of::<T>(call.context(), query, &mut q_room)?, layout: shapes.q.layout },
            k: Heads { elements: elements_of::<T>(call.context(), &key.tensor, &mut k_room)?, layout: key.layout },
            v: Heads { elements: elements_of::<T>(call.context(), &value.tensor, &mut v_room)?, layout: value.layout },
            scale: T::of(self.scale.map_or_else(|| 1.0 / (sizes.size as f64).sqrt(), f64::from)),
            softcap: T::of(self.softcap.into()),
            sight: Sight { left: self.left, right: self.right, past: key.past, valid: valid.as_deref() },
            bias,
            round: self.precision.filter(|precision| *precision != query.dtype()).and_then(rounding::<T>),
            written: None,
            out: shapes.y_layout(),
        };
        call.charge(attention.work())?;
        let plan = attention.plan(call.resources());
        let mut scratch = call.scratch::<T>(plan.scratch())?;
        let mut y = Output::<T>::new(call.context(), query.dtype(), shapes.y())?;
        let scores = [sizes.batch, shapes.q.heads, sizes.queries, sizes.keys];
        let mut scores = if call.wants(3) {
            Some(Output::<T>::new(call.context(), query.dtype(), shape_of([&scores]))?)
        } else {
            None
        };
        let kept = match &mut scores {
            Some(scores) => Some((self.stage, scores.elements_mut()?)),
            None => None,
        };
        plan.run(y.elements_mut()?, kept, scratch.elements_mut(), call.resources())?;
        Ok((y.finish()?, scores.map(|scores| scores.finish()).transpose()?))
    }
}

/// The number of valid keys of each batch, if it is given: no more than the mask has columns.
fn valid_keys(call: &Call<'_>, sizes: &Sizes, columns: usize) -> Result<Option<Vec<usize>>> {
    if call.input(6).is_none() {
        return Ok(None);
    }
    let name = "nonpad_kv_seqlen";
    if call.input(4).is_some() {
        let text = format!("{name} is given, and past_key too: only one of them can say how many keys are past");
        return Err(Error::model(text).parameter(name));
    }
    let given = call.list(6)?;
    if given.len() != sizes.batch {
        let (has, batch) = (given.len(), sizes.batch);
        let text = format!("{name} has {has} values: one for each of the {batch} batches is needed");
        return Err(Error::input(text).parameter(name).size(has));
    }
    let most = sizes.keys.min(columns);
    let check = |(at, &value): (usize, &i64)| {
        usize::try_from(value).ok().filter(|count| *count <= most).ok_or_else(|| {
            let text = format!("{name}[{at}] = {value}: allowed 0..={most}");
            Error::input(text).parameter(name).value(value).position(vec![at])
        })
    };
    given.iter().enumerate().map(check).collect::<Result<_>>().map(Some)
}
