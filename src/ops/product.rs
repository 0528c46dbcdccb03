//! Products of matrices in operators: counted, with scratch memory, and with constant operands packed once.

use crate::dtype::Element;
use crate::error::Result;
use crate::kernels::gemm::{Operand, Packed, Product, Right, View, pack, packed_len};
use crate::operator::{Call, Inference, Node, broadcast};
use crate::tensor::Tensor;
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

/// An element type of products.
pub(super) trait Multiply: Operand<Sum: Element> + Element {}

impl<S: Operand<Sum: Element> + Element> Multiply for S {}

/// Computes a product into `out`.
pub(super) fn multiply<S: Multiply>(call: &Call<'_>, product: Product<'_, S>, out: &mut [S]) -> Result<()> {
    call.charge(product.work())?;
    let plan = product.plan(call.resources());
    let mut scratch = call.scratch::<S::Sum>(plan.scratch())?;
    Ok(plan.run(out, scratch.elements_mut(), call.resources())?)
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

/// The packed form of a right operand that is the same in every run. The first run packs it, so that loading is fast.
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

    /// The operand `b` of a product: `count` matrices of `k` rows and `n` columns, one after the other.
    pub(super) fn right<'a, S: Multiply>(
        &'a self,
        call: &Call<'_>,
        b: View<'a, S>,
        count: usize,
        (k, n): (usize, usize),
    ) -> Result<Right<'a, S>> {
        if !self.constant || n < 2 {
            return Ok(Right::View(b));
        }
        let packed = match self.packed.get() {
            Some(packed) => packed,
            None => {
                let len = packed_len::<S::Sum>(count.saturating_mul(k).saturating_mul(n));
                // Without room for it the operand is read as it is.
                let Ok(mut new) = call.kept::<S::Sum>(len) else { return Ok(Right::View(b)) };
                pack(b, (count, k.saturating_mul(n)), (k, n), new.elements_mut()?, call.resources())?;
                self.packed.get_or_init(|| new.finish())
            }
        };
        Ok(Right::Packed(Packed::new(packed.as_slice()?)))
    }
}
