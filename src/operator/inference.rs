//! What is known about the values of a node before a run: operators read it of inputs, and give it for outputs.

use super::{Align, Axis, Node};
use crate::dtype::DType;
use crate::error::{Error, Result, quote};
use crate::value::{Dim, DimsText, Fact, Formula, List, Value, ValueType};
use smallvec::SmallVec;
use std::ops::{Deref, RangeBounds};

/// A node whose outputs are inferred, at load: what is known about its inputs, as [`Node`] shows it, and what follows for
/// its outputs, as far as it has been given. Types that follow from the schema need not be given.
#[derive(Debug)]
pub struct Inference<'a> {
    node: Node<'a>,
    outputs: SmallVec<[Fact; 1]>,
    /// Dimensions that may still be given: a node of many outputs takes no more memory than others.
    room: usize,
}

impl<'a> Deref for Inference<'a> {
    type Target = Node<'a>;

    fn deref(&self) -> &Node<'a> {
        &self.node
    }
}

impl<'a> Inference<'a> {
    pub(crate) fn new(node: Node<'a>) -> Inference<'a> {
        let outputs = (0..node.output_count()).map(|_| Fact::default()).collect();
        Inference { node, outputs, room: 1 << 16 }
    }

    /// What was given for each output.
    pub(crate) fn finish(self) -> SmallVec<[Fact; 1]> {
        self.outputs
    }

    /// The dimensions of an input, if its rank is known.
    pub fn dims(&self, k: usize) -> Option<&'a [Dim]> {
        self.input(k)?.dims()
    }

    /// As [`Inference::dims`].
    ///
    /// # Errors
    /// If the rank isn't one of those allowed.
    pub fn ranked(&self, k: usize, allowed: impl RangeBounds<usize> + std::fmt::Debug) -> Result<Option<&'a [Dim]>> {
        let Some(dims) = self.dims(k).filter(|dims| !allowed.contains(&dims.len())) else { return Ok(self.dims(k)) };
        let (name, shape, rank) = (quote(self.input_name(k)), DimsText(dims), dims.len());
        let text = format!("{name} has shape {shape} of rank {rank}: allowed {}", ranks(&allowed));
        Err(Error::input(text).parameter(self.input_name(k)).size(rank))
    }

    /// As [`Inference::dims`], of an input whose rank must be `N`.
    pub(crate) fn sizes<const N: usize>(&self, k: usize) -> Result<Option<&'a [Dim; N]>> {
        Ok(self.ranked(k, N..=N)?.and_then(|dims| dims.try_into().ok()))
    }

    /// The numbers of an input that is a scalar or a short list of integers, as far as they are known.
    pub(crate) fn list(&self, k: usize) -> Option<List> {
        self.input(k)?.list()
    }

    /// As [`Inference::list`], if all numbers are known.
    pub(crate) fn known(&self, k: usize) -> Option<SmallVec<[i64; 6]>> {
        self.input(k)?.ints()
    }

    /// The sizes that an input lists, if their number is known.
    pub(crate) fn listed(&self, k: usize) -> Option<Vec<Dim>> {
        if let Some(list) = self.list(k) {
            return Some(list.iter().map(|size| size.as_ref().map_or(Dim::Unknown, Formula::dim)).collect());
        }
        match self.dims(k)? {
            [Dim::Fixed(rank)] if *rank <= Fact::LIST => Some(vec![Dim::Unknown; *rank]),
            _ => None,
        }
    }

    /// The only number of an input, if it is known.
    pub(crate) fn number(&self, k: usize) -> Option<Formula> {
        match &*self.list(k)? {
            [number] => number.clone(),
            _ => None,
        }
    }

    /// The size that an input says, if it is known; else `Unknown`.
    pub(crate) fn size(&self, k: usize) -> Dim {
        self.number(k).map_or(Dim::Unknown, |number| number.dim())
    }

    /// The index among the dimensions of the axis that an attribute names, if the rank is known.
    ///
    /// # Errors
    /// If there is no such axis.
    pub(crate) fn place(&self, name: &str, rank: usize) -> Result<usize> {
        self.place_of(self.int(name)?, name, rank)
    }

    /// As [`Inference::place`], of an axis that was read.
    pub(crate) fn place_of(&self, axis: i64, name: &str, rank: usize) -> Result<usize> {
        Axis::place(axis.into(), rank).ok_or_else(|| {
            let allowed = match rank {
                0 => "a scalar has none".to_string(),
                _ => format!("allowed -{rank}..={}", rank - 1),
            };
            Error::model(format!("{name} {axis} is out of range: {allowed}")).attribute(name).axis(axis).value(axis)
        })
    }

    /// What is known about a size that two inputs share: dimension `a.1` of the input `a.0`, and so for `b`. `Unknown` if
    /// a rank isn't known.
    ///
    /// # Errors
    /// If they differ.
    pub(crate) fn same_size(&self, a: (usize, usize), b: (usize, usize)) -> Result<Dim> {
        let dim = |(k, d): (usize, usize)| self.dims(k).and_then(|dims| dims.get(d)).unwrap_or(&Dim::Unknown);
        dim(a).both(dim(b)).ok_or_else(|| self.unequal(a, b))
    }

    /// Fails if an input is a list of numbers, but not one for each entry along dimension `d` of the input `of`. One number
    /// may stand for all.
    pub(crate) fn one_for_each(&self, k: usize, (of, d): (usize, usize)) -> Result<()> {
        match self.dims(k) {
            Some([size]) if *size != Dim::Fixed(1) => self.same_size((of, d), (k, 0)).map(drop),
            _ => Ok(()),
        }
    }

    /// Fails if dimension `d` of an input has another size than it must have.
    pub(crate) fn needs_size(&self, k: usize, d: usize, size: usize) -> Result<()> {
        match self.dims(k).and_then(|dims| Some((dims, dims.get(d)?))) {
            Some((dims, Dim::Fixed(own))) if *own != size => {
                let (name, shape) = (quote(self.input_name(k)), DimsText(dims));
                let text = format!("dimension {d} of {name} of shape {shape} is {own}: it must be {size}");
                Err(Error::input(text).parameter(self.input_name(k)).axis(d as i64).size(*own))
            }
            _ => Ok(()),
        }
    }

    /// Fails if an input that is a number has more or fewer elements than one.
    pub(crate) fn single(&self, k: usize) -> Result<()> {
        let wrong = |dims: &&[Dim]| dims.len() > 1 || matches!(dims, [Dim::Fixed(size)] if *size != 1);
        match self.dims(k).filter(wrong) {
            None => Ok(()),
            Some(own) => {
                let text = format!("{} has shape {}: one value is needed", quote(self.input_name(k)), DimsText(own));
                Err(Error::input(text).parameter(self.input_name(k)))
            }
        }
    }

    /// Whether an input may have dimensions that broadcast to a shape, without changing it.
    pub(crate) fn spreads(&self, k: usize, shape: &[Dim]) -> bool {
        let fits = |(own, size): (&Dim, &Dim)| *own == Dim::Fixed(1) || own.both(size).is_some();
        self.dims(k).is_none_or(|own| own.len() <= shape.len() && own.iter().rev().zip(shape.iter().rev()).all(fits))
    }

    /// Fails if an input can't have these dimensions.
    pub(crate) fn needs(&self, k: usize, needed: &[Dim]) -> Result<()> {
        let fits = |own: &[Dim]| {
            own.len() == needed.len() && own.iter().zip(needed).all(|(own, needed)| own.both(needed).is_some())
        };
        match self.dims(k).filter(|own| !fits(own)) {
            None => Ok(()),
            Some(own) => {
                let (name, own, needed) = (quote(self.input_name(k)), DimsText(own), DimsText(needed));
                let text = format!("{name} has shape {own}: {needed} is needed");
                Err(Error::input(text).parameter(self.input_name(k)))
            }
        }
    }

    /// The error for dimensions of two inputs that must be equal.
    #[cold]
    pub(crate) fn unequal(&self, a: (usize, usize), b: (usize, usize)) -> Error {
        let shape = |k: usize| DimsText(self.dims(k).unwrap_or_default());
        let size = |(k, d): (usize, usize)| self.dims(k).and_then(|dims| dims.get(d)).unwrap_or(&Dim::Unknown);
        let (one, other) = (quote(self.input_name(a.0)), quote(self.input_name(b.0)));
        let text = format!(
            "dimension {} of {one} of shape {} is {}, and dimension {} of {other} of shape {} is {}: they must be equal",
            a.1,
            shape(a.0),
            size(a),
            b.1,
            shape(b.0),
            size(b)
        );
        Error::input(text).parameter(self.input_name(b.0)).axis(b.1 as i64)
    }

    /// The error for the ranks of two inputs that must be equal.
    #[cold]
    pub(crate) fn unequal_ranks(&self, a: usize, b: usize) -> Error {
        let shape = |k: usize| DimsText(self.dims(k).unwrap_or_default());
        let (one, other) = (quote(self.input_name(a)), quote(self.input_name(b)));
        let rank = |k: usize| self.dims(k).map_or(0, <[Dim]>::len);
        let text = format!(
            "{other} has shape {} of rank {}, and {one} has shape {} of rank {}: they must be equal",
            shape(b),
            rank(b),
            shape(a),
            rank(a)
        );
        Error::input(text).parameter(self.input_name(b)).size(rank(b))
    }

    /// Gives output 0 the shape that the inputs broadcast to, if their ranks are known.
    ///
    /// # Errors
    /// If they don't broadcast.
    pub(crate) fn give_broadcast(&mut self, align: Align) -> Result<()> {
        let count = if align == Align::Last { self.input_count() } else { self.input_count().min(1) };
        let dims: Option<Vec<&[Dim]>> = (0..count).map(|k| self.dims(k)).collect();
        if let Some(dims) = dims.filter(|dims| !dims.is_empty()) {
            self.give(0, broadcast(&dims)?);
        }
        Ok(())
    }

    /// Gives output 0 what is counted from the numbers of two inputs, whose shapes broadcast to its own.
    pub(crate) fn give_counted(&mut self, count: Count) {
        let (Some(a), Some(b)) = (self.list(0), self.list(1)) else { return };
        let at = |list: &List, k: usize| list.get(if list.len() == 1 { 0 } else { k })?.clone();
        let counted: List = (0..a.len().max(b.len())).map(|k| count(&at(&a, k)?, &at(&b, k)?)).collect();
        self.give_list_like(0, 0, &counted);
    }

    /// Gives the shape of an output.
    pub fn give(&mut self, k: usize, dims: impl Into<Box<[Dim]>>) {
        let dims = dims.into();
        if let (Some(fact), Some(room)) = (self.outputs.get_mut(k), self.room.checked_sub(dims.len())) {
            (fact.dims, self.room) = (Some(dims), room);
        }
    }

    /// Gives the shape of an output, if it is known.
    pub(crate) fn give_known(&mut self, k: usize, dims: Option<Vec<Dim>>) {
        dims.into_iter().for_each(|dims| self.give(k, dims));
    }

    /// Gives the type of an output that doesn't follow from the schema.
    pub fn give_type(&mut self, k: usize, value_type: impl Into<ValueType>) {
        if let Some(fact) = self.outputs.get_mut(k) {
            fact.value_type = Some(value_type.into());
        }
    }

    /// Gives all that is known about an output.
    pub fn give_fact(&mut self, k: usize, fact: Fact) {
        if let Some(own) = self.outputs.get_mut(k) {
            *own = fact;
        }
    }

    /// Gives the value of an output.
    pub fn give_value(&mut self, k: usize, value: Value) {
        self.give_fact(k, Fact::constant(value));
    }

    /// Gives an output the shape of an input.
    pub fn give_shape_of(&mut self, k: usize, input: usize) {
        if let Some(dims) = self.dims(input) {
            self.give(k, dims);
        }
    }

    /// Gives the type of an output, which is a tensor of the element type of an input.
    pub(crate) fn give_type_of(&mut self, k: usize, input: usize) {
        if let Some(value_type) = self.input_type(input) {
            self.give_type(k, value_type.clone());
        }
    }

    /// Gives the numbers of an output that is a scalar or a list of int32 or int64 numbers, and has its shape.
    pub(crate) fn give_list(&mut self, k: usize, dtype: DType, list: &[Option<Formula>]) {
        let dims = self.outputs.get(k).and_then(Fact::dims);
        if let Some(fact) = dims.and_then(|dims| Fact::of_list(dtype, dims, list)) {
            self.give_fact(k, fact);
        }
    }

    /// As [`Inference::give_list`], of the element type of the input `from`.
    pub(crate) fn give_list_like(&mut self, k: usize, from: usize, list: &[Option<Formula>]) {
        if let Some(dtype) = self.input_type(from).and_then(ValueType::dtype) {
            self.give_list(k, dtype, list);
        }
    }

    /// The name of an input in the schema.
    pub(crate) fn input_name(&self, k: usize) -> &'a str {
        self.schema().input(k).map_or("", |parameter| &parameter.name)
    }
}

/// Arithmetic on numbers that follow from symbols; `None` if the result isn't known.
pub(crate) type Count = fn(&Formula, &Formula) -> Option<Formula>;

/// Allowed ranks, as errors show them.
fn ranks(allowed: &impl RangeBounds<usize>) -> String {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let least = match allowed.start_bound() {
        Included(least) => *least,
        Excluded(below) => below + 1,
        Unbounded => 0,
    };
    match allowed.end_bound() {
        Included(most) if *most == least => format!("rank {least}"),
        Included(most) => format!("ranks {least} to {most}"),
        Excluded(above) => format!("ranks {least} to {}", above.saturating_sub(1)),
        Unbounded => format!("ranks from {least} on"),
    }
}

/// The shape that shapes broadcast to.
pub(crate) fn broadcast(shapes: &[&[Dim]]) -> Result<Vec<Dim>> {
    let rank = shapes.iter().map(|dims| dims.len()).max().unwrap_or(0);
    let each = |d: usize| {
        let mut all = Dim::Fixed(1);
        for dim in shapes.iter().filter_map(|dims| dims.get((d + dims.len()).checked_sub(rank)?)) {
            match (&all, dim) {
                (_, Dim::Fixed(1)) => {}
                (Dim::Fixed(one), Dim::Fixed(other)) if *one != 1 && one != other => {
                    let shapes: Vec<String> = shapes.iter().map(|dims| DimsText(dims).to_string()).collect();
                    let text =
                        format!("the shapes {} don't broadcast: dimension {d} is {one} and {other}", shapes.join(", "));
                    return Err(Error::input(text).axis(d as i64));
                }
                // A size other than 1 stays.
                (Dim::Fixed(size), _) if *size != 1 => {}
                (Dim::Fixed(_), _) | (_, Dim::Fixed(_)) => all = dim.clone(),
                (one, other) if one == other => {}
                (one, other) => {
                    let same = one.likely().filter(|likely| other.likely().as_ref() == Some(likely));
                    all = Dim::if_no_size_is_0(same);
                }
            }
        }
        Ok(all)
    };
    (0..rank).map(each).collect()
}
