//! Products of matrices in operators: counted, with scratch memory, and with constant operands packed once.

use crate::dtype::{Element, ShapeText};
use crate::error::{Error, Result};
use crate::operator::{Call, Inference, Node, Tail, broadcast};
use crate::tensor::{Scratch, Shape, Tensor, release};
use bytemuck::Pod;
use kernels::gemm::blocks::Finish;
use kernels::gemm::{
    Batch, Broadcast, Left, Number, Operand, Packed, Place, Product, Right, Scaled, Side, Step, Strides, View,
    ZeroPoints, pack, packed_len_of,
};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// Evaluates an expression with `$type` as the element type of a product.
macro_rules! with_numbers {
    ($dtype:expr, $type:ident => $body:expr) => {
        with_numbers!(@ $dtype, $type => $body;
            Float f32, Double f64, Float16 half::f16, Bfloat16 half::bf16,
            Int32 i32, Int64 i64, Uint32 u32, Uint64 u64)
    };
    (@ $dtype:expr, $type:ident => $body:expr; $($name:ident $element:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $type = $element;
                $body
            })*
            other => Err(Error::bug(&format!("a product of {other}"))),
        }
    };
}
pub(super) use with_numbers;

/// As [`with_numbers`], of floats alone.
macro_rules! with_floats {
    ($dtype:expr, $type:ident => $body:expr) => {
        with_numbers!(@ $dtype, $type => $body;
            Float f32, Double f64, Float16 half::f16, Bfloat16 half::bf16)
    };
}
pub(super) use with_floats;

/// An element type of products.
pub(super) trait Multiply: Operand<Sum: Element> + Element {}

impl<S: Operand<Sum: Element> + Element> Multiply for S {}

/// A tensor as a matrix whose rows of `columns` elements follow each other, or which is the transposed one of that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) tensor: &'a Tensor,
    pub(super) columns: usize,
    pub(super) transposed: bool,
}

impl<'a> Matrix<'a> {
    /// The matrix, aligned: products may read it in place.
    pub(super) fn aligned<S: Multiply>(self) -> Result<View<'a, S::Sum>> {
        Ok(self.turned(View::rows(self.tensor.as_slice::<S>()?, self.columns)))
    }

    /// The matrix at the address that it has in a file.
    fn in_file<S: Multiply>(self) -> Result<View<'a, S::Sum>> {
        match self.tensor.dtype() {
            dtype if dtype == S::DTYPE => Ok(self.turned(View::of_bytes::<S>(self.tensor.bytes(), self.columns, 1))),
            other => Err(Error::bug(&format!("a product of {} reads {other}", S::DTYPE))),
        }
    }

    fn turned<T: Number>(self, view: View<'a, T>) -> View<'a, T> {
        if self.transposed { view.transposed() } else { view }
    }
}

/// Computes a product into `out`.
pub(super) fn multiply<S: Multiply>(call: &Call<'_>, product: Product<'_, S>, out: &mut [S]) -> Result<()> {
    call.charge(product.work())?;
    let plan = product.plan(call.resources());
    let mut scratch = call.scratch::<S::Sum>(plan.scratch())?;
    Ok(plan.run(out, scratch.elements_mut(), call.resources())?)
}

/// What a tail says, as steps of the epilogue of a product.
pub(super) struct TailSteps<'a, S> {
    bias: Option<Scaled<'a, S>>,
    tail: Option<Functions<'a>>,
}

/// The steps of a tail.
struct Functions<'a> {
    tail: &'a Tail,
    /// The same, if kernels have it.
    finish: Option<Finish<'a>>,
    /// What they read beside the sums.
    beside: SmallVec<[&'a [u8]; 2]>,
    /// Rows and columns of a matrix of the output.
    sizes: (usize, usize),
}

impl<T: Pod> Step<T> for Functions<'_> {
    fn apply(&self, place: &Place<'_>, sums: &mut [T]) {
        let (rows, columns) = self.sizes;
        let first = (place.matrix * rows + place.row) * columns + place.column;
        let whole = |finish: &Finish<'_>| finish.whole(first, bytemuck::try_cast_slice_mut(sums).ok()?).ok();
        if self.finish.as_ref().and_then(whole).is_some() {
            return;
        }
        let at = first * size_of::<T>()..first * size_of::<T>() + size_of_val(sums);
        let beside: SmallVec<[&[u8]; 2]> =
            self.beside.iter().map(|bytes| bytes.get(at.clone()).unwrap_or_default()).collect();
        self.tail.apply(bytemuck::cast_slice_mut(sums), &beside);
    }
}

impl<'a, S: Multiply> TailSteps<'a, S> {
    /// The steps of a tail, if there is one, of a product whose matrices have so many rows and columns.
    pub(super) fn of(call: &'a Call<'_>, tail: Option<&'a Tail>, sizes: (usize, usize)) -> Result<TailSteps<'a, S>> {
        let bias = match tail.and_then(|tail| tail.bias) {
            Some(k) => {
                let c = Broadcast { elements: call.tensor(k)?.as_slice::<S>()?, strides: Strides::COLUMNS };
                Some(Scaled { alpha: 1.0, beta: 1.0, c: Some(c) })
            }
            None => None,
        };
        let tail = match tail.filter(|tail| tail.steps.is_some()) {
            Some(tail) => {
                let beside = tail.beside.iter().map(|k| Ok(call.tensor(*k)?.aligned_bytes())).collect::<Result<_>>()?;
                let finish = match tail.finish() {
                    Some((adds, activation)) => {
                        let own = tail.beside.first().filter(|_| adds);
                        let beside = own.map(|k| call.tensor(*k)?.as_slice::<f32>()).transpose()?;
                        Some(Finish { beside, activation })
                    }
                    None => None,
                };
                Some(Functions { tail, finish, beside, sizes })
            }
            None => None,
        };
        Ok(TailSteps { bias, tail })
    }

    pub(super) fn all(&self) -> SmallVec<[&dyn Step<S::Sum>; 2]> {
        let bias = self.bias.as_ref().map(|bias| bias as &dyn Step<S::Sum>);
        bias.into_iter().chain(self.tail.as_ref().map(|tail| tail as &dyn Step<S::Sum>)).collect()
    }
}

/// Gives output 0 the shape of the product of the inputs `a` and `b`, as numpy's `matmul` multiplies, if their ranks are
/// known.
pub(super) fn give_product(facts: &mut Inference<'_>, a: usize, b: usize) -> Result<()> {
    let (Some(left), Some(right)) = (facts.ranked(a, 1..)?, facts.ranked(b, 1..)?) else { return Ok(()) };
    facts.same_size((a, left.len() - 1), (b, right.len() - right.len().min(2)))?;
    let (batch, rows) = left.split_at(left.len().saturating_sub(2));
    let (other, columns) = right.split_at(right.len().saturating_sub(2));
    let mut dims = broadcast(&[batch, other])?;
    dims.extend(rows.first().filter(|_| rows.len() > 1).cloned());
    dims.extend(columns.last().filter(|_| columns.len() > 1).cloned());
    facts.give(0, dims);
    Ok(())
}

/// The sizes of a product, as numpy's `matmul` multiplies.
pub(super) struct Sizes {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) batch: Vec<Batch>,
    pub(super) output: Shape,
}

impl Sizes {
    /// Those of tensors of two shapes, neither a scalar, and with these names.
    pub(super) fn of(a: &[usize], b: &[usize], names: [&str; 2]) -> Result<Sizes> {
        let ((a_batch, m, k), (b_batch, rows, n)) = (matrix(a, false), matrix(b, true));
        if k != rows {
            return Err(unequal(names, [a, b], [a.len() - 1, b.len() - b.len().min(2)], ""));
        }
        let (mut output, mut batch) = (Shape::new(), Vec::new());
        let (mut a_next, mut b_next) = (kernels::volume(m, [&k]), kernels::volume(k, [&n]));
        let rank = a_batch.len().max(b_batch.len());
        for from_end in 1..=rank {
            let dim = |dims: &[usize]| dims.iter().nth_back(from_end - 1).copied().unwrap_or(1);
            let (a_dim, b_dim) = (dim(a_batch), dim(b_batch));
            if a_dim != b_dim && a_dim != 1 && b_dim != 1 {
                let (at_a, at_b) = (a_batch.len() - from_end, b_batch.len() - from_end);
                return Err(unequal(names, [a, b], [at_a, at_b], ", and neither is 1"));
            }
            let size = if a_dim == 1 { b_dim } else { a_dim };
            let stride = |dim: usize, next: usize| if dim == 1 { 0 } else { next };
            batch.push(Batch { size, a: stride(a_dim, a_next), b: stride(b_dim, b_next) });
            output.push(size);
            (a_next, b_next) = (a_next.saturating_mul(a_dim), b_next.saturating_mul(b_dim));
        }
        batch.reverse();
        output.reverse();
        output.extend((a.len() > 1).then_some(m));
        output.extend((b.len() > 1).then_some(n));
        Ok(Sizes { m, k, n, batch, output })
    }
}

/// The dimensions before those of the matrices, and the number of rows and of columns; a vector is one of these.
fn matrix(dims: &[usize], as_column: bool) -> (&[usize], usize, usize) {
    match dims {
        [batch @ .., rows, columns] => (batch, *rows, *columns),
        [size] if as_column => (&[], *size, 1),
        [size] => (&[], 1, *size),
        [] => (&[], 1, 1),
    }
}

#[cold]
fn unequal([left, right]: [&str; 2], [a, b]: [&[usize]; 2], [at_a, at_b]: [usize; 2], why: &str) -> Error {
    let dim = |dims: &[usize], at: usize| dims.get(at).copied().unwrap_or(0);
    let (size, value) = (dim(a, at_a), dim(b, at_b));
    let (a, b) = (ShapeText(a), ShapeText(b));
    let text = format!(
        "\"{left}\" of shape {a} and \"{right}\" of shape {b} can't be multiplied: \
         dimension {at_a} of \"{left}\" is {size} and dimension {at_b} of \"{right}\" is {value}{why}"
    );
    Error::input(text).parameter(right).axis(at_b as i64).size(size).value(value as i128)
}

/// The packed form of an operand that is the same in every run. The first run packs it, so that loading is fast.
#[derive(Debug)]
pub(super) struct Weights {
    constant: bool,
    packed: OnceLock<Tensor>,
}

impl Weights {
    /// For the input `k` of a node.
    pub(super) fn of(node: &Node<'_>, k: usize) -> Weights {
        Weights { constant: node.constant(k).is_some(), packed: OnceLock::new() }
    }

    /// For inputs of a node of which one is the operand, and others its zero points or omitted.
    pub(super) fn of_each(node: &Node<'_>, inputs: &[usize]) -> Weights {
        let constant = inputs.iter().all(|k| node.input(*k).is_none() || node.constant(*k).is_some());
        Weights { constant, packed: OnceLock::new() }
    }

    /// Weights that are known to be constant, or not to be.
    pub(super) fn known(constant: bool) -> Weights {
        Weights { constant, packed: OnceLock::new() }
    }

    /// The operand `b` of a product: `count` matrices of `k` rows and `n` columns, one after the other.
    pub(super) fn right<'a, S: Multiply>(
        &'a self,
        call: &Call<'_>,
        b: Matrix<'a>,
        count: usize,
        sizes: (usize, usize),
    ) -> Result<Right<'a, S::Sum>> {
        self.right_less::<S>(call, b, None, count, sizes)
    }

    /// As [`Weights::right`], less zero points, which all matrices share.
    pub(super) fn right_less<'a, S: Multiply>(
        &'a self,
        call: &Call<'_>,
        b: Matrix<'a>,
        zero: Option<ZeroPoints<'a, S::Sum>>,
        count: usize,
        (k, n): (usize, usize),
    ) -> Result<Right<'a, S::Sum>> {
        let packed = if n > 1 { self.packed::<S>(call, Side::Right, b, zero, count, (k, n))? } else { None };
        Ok(match packed {
            Some(packed) => Right::Packed(packed),
            None => Right::View(less(b.aligned::<S>()?, zero)),
        })
    }

    /// As [`Weights::right`], packed in any case: in the `room` if they are not constant.
    pub(super) fn packed_right<'a, 'c: 'a, S: Multiply>(
        &'a self,
        call: &'c Call<'_>,
        b: Matrix<'a>,
        count: usize,
        (k, n): (usize, usize),
        room: &'a mut Option<Scratch<'c>>,
    ) -> Result<Packed<'a, S::Sum>> {
        if let Some(packed) = self.packed::<S>(call, Side::Right, b, None, count, (k, n))? {
            return Ok(packed);
        }
        let size = k.saturating_mul(n);
        let room = room.insert(call.scratch::<S::Sum>(packed_len_of::<S>(Side::Right, count, (k, n)))?);
        let elements = room.elements_mut::<S::Sum>();
        pack(Side::Right, b.aligned::<S>()?, (count, size), (k, n), elements, call.resources())?;
        Ok(Packed::of::<S>(Side::Right, elements))
    }

    /// The operand `a` of a product: `count` matrices of `m` rows and `k` columns, one after the other.
    pub(super) fn left<'a, S: Multiply>(
        &'a self,
        call: &Call<'_>,
        a: Matrix<'a>,
        count: usize,
        (m, k): (usize, usize),
    ) -> Result<Left<'a, S::Sum>> {
        Ok(match self.packed::<S>(call, Side::Left, a, None, count, (m, k))? {
            Some(packed) => Left::Packed(packed),
            None => Left::View(a.aligned::<S>()?),
        })
    }

    /// The packed form. None if the operand isn't constant, or if there is no room: it is read as it is then.
    pub(super) fn packed<'a, S: Multiply>(
        &'a self,
        call: &Call<'_>,
        side: Side,
        matrix: Matrix<'a>,
        zero: Option<ZeroPoints<'a, S::Sum>>,
        count: usize,
        (rows, columns): (usize, usize),
    ) -> Result<Option<Packed<'a, S::Sum>>> {
        let (len, sizes) = (packed_len_of::<S>(side, count, (rows, columns)), (rows, columns));
        let packed = self.formed::<S::Sum>(call, matrix.tensor, len, |to| {
            let (view, size) = (less(matrix.in_file::<S>()?, zero), rows.saturating_mul(columns));
            Ok(pack(side, view, (count, size), sizes, to, call.resources())?)
        })?;
        Ok(packed.map(|packed| Packed::of::<S>(side, packed)))
    }

    /// As [`Weights::formed`], in any case: in the `room` if the operand isn't kept so.
    pub(super) fn formed_in<'a, 'c: 'a, T: Element + Pod>(
        &'a self,
        call: &'c Call<'_>,
        operand: &Tensor,
        len: usize,
        room: &'a mut Option<Scratch<'c>>,
        form: impl Fn(&mut [T]) -> Result<()>,
    ) -> Result<&'a [T]> {
        if let Some(formed) = self.formed(call, operand, len, &form)? {
            return Ok(formed);
        }
        let room = room.insert(call.scratch::<T>(len)?);
        form(room.elements_mut())?;
        Ok(room.elements())
    }

    /// A form of the operand, `len` elements that `form` writes once. None as above.
    pub(super) fn formed<T: Element>(
        &self,
        call: &Call<'_>,
        operand: &Tensor,
        len: usize,
        form: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<Option<&[T]>> {
        if !self.constant || !call.context().keeps_packed {
            return Ok(None);
        }
        if let Some(formed) = self.packed.get() {
            return formed.as_slice().map(Some);
        }
        let Ok(mut new) = call.kept::<T>(len) else { return Ok(None) };
        form(new.elements_mut()?)?;
        let formed = self.packed.get_or_init(|| new.finish());
        release(operand.bytes());
        formed.as_slice().map(Some)
    }
}

fn less<'a, T: Number>(view: View<'a, T>, zero: Option<ZeroPoints<'a, T>>) -> View<'a, T> {
    zero.map_or(view, |zero| view.less(zero))
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::limits::{Budget, Limits};
    use crate::operator::{Call, Context, Feeds, Source, Sources};
    use crate::ops::testing::tensor;
    use crate::registry::{Own, Registry};
    use crate::tensor::Tensor;
    use crate::value::Fact;
    use bytes::Bytes;
    use std::cell::Cell;

    /// A constant operand is packed as it stands in a file, without an aligned copy; one that is fed, or isn't packed, is copied.
    #[test]
    fn operands_at_odd_addresses() {
        for (constant, keeps_packed) in [(true, true), (true, false), (false, true)] {
            let elements = [1f32, 2., 3., 4., 5., 6.].map(f32::to_ne_bytes);
            let bytes = Bytes::from([&[0], elements.as_flattened()].concat()).slice(1..);
            let weights = Tensor::new(DType::Float, &[2, 3], bytes).unwrap();
            let inputs = [tensor(&[1, 2], [10f32, 1.]), weights.clone().into()];
            let facts = inputs.each_ref().map(|input| match constant {
                true => Fact::constant(input.clone()),
                false => Fact::of_type(input.value_type().unwrap()),
            });
            let resolved = Registry::default().resolve("", "MatMul", 13).unwrap();
            let (facts, note) = (facts.each_ref().map(Some), Cell::default());
            let budget = Budget::new(&Limits::default());
            let made = resolved.load(&resolved.node(&[], &facts, 1, &[], &note), &Own::new(&budget)).unwrap();
            let sources = Sources { feeds: Feeds::Own(&[]), defaults: &[], constants: &inputs, slots: &mut [] };
            let places = [0, 1].map(|k| Some(Source::Constant(k)));
            let (mut context, schema) = (Context::new(1, Limits::default()), &*resolved.schema);
            context.keeps_packed = keeps_packed;
            let mut call = Call { inputs: &places, sources, schema, outputs: 1, wanted: 1, context: &context };
            let outputs = made.plain().unwrap().run(&mut call).unwrap();
            assert_eq!(outputs.get(0), Some(&tensor(&[1, 3], [14f32, 25., 36.])));
            assert_eq!(weights.is_copied(), !(constant && keeps_packed));
        }
    }
}
