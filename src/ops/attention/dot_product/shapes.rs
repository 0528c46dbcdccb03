//! The shapes of queries, keys and values.

use crate::ops::prelude::*;
use kernels::attention::{Layout, Sizes};

/// The sizes of an input of rank 4, `(batch, heads, rows, size)`, or 3, `(batch, rows, heads * size)`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) size: usize,
    pub(super) layout: Layout,
}

impl Input {
    pub(super) fn of_rank_4([batch, heads, rows, size]: [usize; 4]) -> Input {
        let head = rows.saturating_mul(size);
        let layout = Layout { batch: head.saturating_mul(heads), head, row: size };
        Input { batch, heads, rows, size, layout }
    }

    pub(super) fn of_rank_3([batch, rows, hidden]: [usize; 3], heads: usize) -> Input {
        let size = hidden.checked_div(heads).unwrap_or(0);
        let layout = Layout { batch: rows.saturating_mul(hidden), head: size, row: hidden };
        Input { batch, heads, rows, size, layout }
    }

    /// Of the input `k`, whose number of heads the attribute `name` gives for rank 3.
    fn of(call: &Call<'_>, k: usize, name: &str, given: Option<i64>) -> Result<Input> {
        let tensor = call.tensor(k)?;
        let shape = ShapeText(tensor.shape());
        let (of, heads) =
            (call.name(k), given.and_then(|heads| usize::try_from(heads).ok()).filter(|heads| *heads > 0));
        match (tensor.shape(), given) {
            (&[batch, own, rows, size], _) if given.is_none() || heads == Some(own) => {
                Ok(Input::of_rank_4([batch, own, rows, size]))
            }
            ([_, own, ..], Some(given)) if tensor.rank() == 4 => {
                let text = format!("{name} is {given}, but {} of shape {shape} has {own} heads", quote(of));
                Err(Error::model(text).attribute(name).parameter(of).value(given))
            }
            (&[batch, rows, hidden], Some(given)) => match heads.filter(|heads| hidden.is_multiple_of(*heads)) {
                Some(heads) => Ok(Input::of_rank_3([batch, rows, hidden], heads)),
                None => {
                    let text = format!("{name} is {given}: it must divide the last dimension of {} {shape}", quote(of));
                    Err(Error::model(text).attribute(name).parameter(of).value(given))
                }
            },
            ([_, _, _], None) => {
                let text = format!("{} has shape {shape}: with rank 3 the attribute {name} is needed", quote(of));
                Err(Error::model(text).attribute(name).parameter(of))
            }
            _ => {
                let text = format!("{} has shape {shape}: a rank of 3 or 4 is needed", quote(of));
                Err(Error::input(text).parameter(of).size(tensor.rank()))
            }
        }
    }
}

/// The sizes of all inputs.
#[derive(Debug)]
pub(super) struct Shapes {
    /// Whether `Q` and `Y` have rank 3.
    flat: bool,
    pub(super) q: Input,
    pub(super) k: Input,
    pub(super) v: Input,
}

impl Shapes {
    pub(super) fn of([queried, held]: [Option<i64>; 2], call: &Call<'_>) -> Result<Shapes> {
        let rank = call.tensor(0)?.rank();
        for k in [1, 2] {
            let tensor = call.tensor(k)?;
            if tensor.rank() != rank {
                let (name, shape) = (call.name(k), ShapeText(tensor.shape()));
                let text = format!("{} has shape {shape}, but \"Q\" has rank {rank}", quote(name));
                return Err(Error::input(text).parameter(name).size(tensor.rank()));
            }
        }
        let q = Input::of(call, 0, "q_num_heads", queried)?;
        let k = Input::of(call, 1, "kv_num_heads", held)?;
        let v = Input::of(call, 2, "kv_num_heads", held)?;
        let equal = [
            ("K", "batch size", k.batch, "Q", q.batch),
            ("K", "head size", k.size, "Q", q.size),
            ("V", "batch size", v.batch, "Q", q.batch),
            ("V", "number of heads", v.heads, "K", k.heads),
            ("V", "sequence length", v.rows, "K", k.rows),
        ];
        for (name, what, has, other, needs) in equal {
            if has != needs {
                let text = format!("the {what} of \"{name}\" is {has}, and that of \"{other}\" {needs}");
                return Err(Error::input(text).parameter(name).size(has));
            }
        }
        if q.heads.checked_rem(k.heads).unwrap_or(q.heads) != 0 {
            let text = format!("\"Q\" has {} heads, which is not a multiple of the {} of \"K\"", q.heads, k.heads);
            return Err(Error::input(text).parameter("Q").size(q.heads));
        }
        Ok(Shapes { flat: rank == 3, q, k, v })
    }

    /// With so many keys in all.
    pub(super) fn sizes(&self, keys: usize) -> Sizes {
        let Shapes { q, k, v, .. } = self;
        let group = q.heads.checked_div(k.heads).unwrap_or(0);
        Sizes { batch: q.batch, heads: k.heads, group, queries: q.rows, keys, size: q.size, value_size: v.size }
    }

    /// The shape of `Y`.
    pub(super) fn y(&self) -> Shape {
        let Shapes { q, v, .. } = self;
        match self.flat {
            true => shape_of([&[q.batch, q.rows, q.heads.saturating_mul(v.size)]]),
            false => shape_of([&[q.batch, q.heads, q.rows, v.size]]),
        }
    }

    /// Where `Y` has its rows.
    pub(super) fn y_layout(&self) -> Layout {
        let Shapes { q, v, .. } = self;
        match self.flat {
            true => Input::of_rank_3([q.batch, q.rows, q.heads.saturating_mul(v.size)], q.heads).layout,
            false => Input::of_rank_4([q.batch, q.heads, q.rows, v.size]).layout,
        }
    }
}
