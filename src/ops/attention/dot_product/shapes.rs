//! The shapes of queries, keys and values.

use crate::ops::prelude::*;
use kernels::attention::{Layout, Sizes};
use std::fmt::Display;

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
            ([_, own, ..], Some(given)) if tensor.rank() == 4 => Err(other_heads(name, given, of, shape, own)),
            (&[batch, rows, hidden], Some(given)) => match heads.filter(|heads| hidden.is_multiple_of(*heads)) {
                Some(heads) => Ok(Input::of_rank_3([batch, rows, hidden], heads)),
                None => Err(undivided(name, given, of, shape)),
            },
            ([_, _, _], None) => Err(no_heads(name, of, shape)),
            _ => {
                let text = format!("{} has shape {shape}: a rank of 3 or 4 is needed", quote(of));
                Err(Error::input(text).parameter(of).size(tensor.rank()))
            }
        }
    }
}

#[cold]
fn other_heads(name: &str, given: i64, of: &str, shape: impl Display, own: impl Display) -> Error {
    let text = format!("{name} is {given}, but {} of shape {shape} has {own} heads", quote(of));
    Error::model(text).attribute(name).parameter(of).value(given)
}

#[cold]
fn undivided(name: &str, given: i64, of: &str, shape: impl Display) -> Error {
    let text = format!("{name} is {given}: it must divide the last dimension of {} {shape}", quote(of));
    Error::model(text).attribute(name).parameter(of).value(given)
}

#[cold]
fn no_heads(name: &str, of: &str, shape: impl Display) -> Error {
    let text = format!("{} has shape {shape}: with rank 3 the attribute {name} is needed", quote(of));
    Error::model(text).attribute(name).parameter(of)
}

/// The dimensions of the heads of the input `k`, as far as they are known, as [`Input::of`] reads them in a run.
fn known(facts: &Inference<'_>, k: usize, name: &str, given: Option<i64>) -> Result<Option<[Dim; 4]>> {
    let of = facts.input_name(k);
    match (facts.ranked(k, 3..=4)?, given) {
        (Some(dims @ [_, _, _]), None) => Err(no_heads(name, of, DimsText(dims))),
        (Some(dims @ [batch, tokens, hidden]), Some(given)) => {
            if given < 1 || hidden.fixed().is_some_and(|hidden| hidden % given != 0) {
                return Err(undivided(name, given, of, DimsText(dims)));
            }
            let heads = Dim::of(given);
            let size = Dim::quotient(std::slice::from_ref(hidden), std::slice::from_ref(&heads));
            Ok(Some([batch.clone(), heads, tokens.clone(), size]))
        }
        (Some(dims @ [_, own, ..]), Some(given)) if own.both(&Dim::of(given)).is_none() => {
            Err(other_heads(name, given, of, DimsText(dims), own))
        }
        (dims, _) => Ok(dims.and_then(|dims| dims.to_vec().try_into().ok())),
    }
}

/// The dimensions of the heads of queries, keys and values, as far as they are known.
pub(super) fn heads([queried, held]: [Option<i64>; 2], facts: &Inference<'_>) -> Result<[Option<[Dim; 4]>; 3]> {
    let rank = |k: usize| facts.dims(k).map(<[Dim]>::len);
    if let Some(k) = (1..3).find(|k| rank(0).zip(rank(*k)).is_some_and(|(one, other)| one != other)) {
        return Err(facts.unequal_ranks(0, k));
    }
    let q = known(facts, 0, "q_num_heads", queried)?;
    let [k, v] = [known(facts, 1, "kv_num_heads", held)?, known(facts, 2, "kv_num_heads", held)?];
    for (name, what, one, other, at) in [
        ("K", "batch size", &k, ("Q", &q), 0),
        ("K", "head size", &k, ("Q", &q), 3),
        ("V", "batch size", &v, ("Q", &q), 0),
        ("V", "number of heads", &v, ("K", &k), 1),
        ("V", "sequence length", &v, ("K", &k), 2),
    ] {
        let (Some(one), Some(dims)) = (one, other.1) else { continue };
        let (Some(has), Some(needs)) = (one.get(at), dims.get(at)) else { continue };
        if has.both(needs).is_none() {
            return Err(unequal(what, name, has, other.0, needs));
        }
    }
    Ok([q, k, v])
}

#[cold]
fn unequal(what: &str, name: &str, has: impl Display, other: &str, needs: impl Display) -> Error {
    Error::input(format!("the {what} of \"{name}\" is {has}, and that of \"{other}\" {needs}")).parameter(name)
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
                return Err(unequal(what, name, has, other, needs).size(has));
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
