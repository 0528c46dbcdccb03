//! Tensors of float64 that broadcast, for the formulas of bounds.

use onnxref::half::{bf16, f16};
use onnxref::{DType, Tensor, Value};

/// Elements of a tensor of floats, in float64.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct List {
    pub(super) shape: Vec<usize>,
    pub(super) elements: Vec<f64>,
}

impl List {
    /// The elements of a tensor of floats; `None` of another one.
    pub(super) fn floats(tensor: &Tensor) -> Option<List> {
        let elements = match tensor.dtype() {
            DType::Float => tensor.as_slice::<f32>().ok()?.iter().map(|x| f64::from(*x)).collect(),
            DType::Double => tensor.as_slice::<f64>().ok()?.to_vec(),
            DType::Float16 => tensor.as_slice::<f16>().ok()?.iter().map(|x| x.to_f64()).collect(),
            DType::Bfloat16 => tensor.as_slice::<bf16>().ok()?.iter().map(|x| x.to_f64()).collect(),
            _ => return None,
        };
        Some(List { shape: tensor.shape().to_vec(), elements })
    }

    pub(super) fn value(self) -> Option<Value> {
        Tensor::from_elements(&self.shape, self.elements).ok().map(Value::from)
    }

    pub(super) fn map(&self, change: impl Fn(f64) -> f64) -> List {
        List { shape: self.shape.clone(), elements: self.elements.iter().map(|x| change(*x)).collect() }
    }

    /// Elements of two lists together, broadcast as numpy does.
    pub(super) fn zip(&self, other: &List, join: impl Fn(f64, f64) -> f64) -> Option<List> {
        let rank = self.shape.len().max(other.shape.len());
        let size = |list: &List, axis: usize| {
            (axis + list.shape.len()).checked_sub(rank).and_then(|at| list.shape.get(at).copied()).unwrap_or(1)
        };
        let join_sizes = |axis| match (size(self, axis), size(other, axis)) {
            (a, b) if a == b || b == 1 => Some(a),
            (1, b) => Some(b),
            _ => None,
        };
        let shape = (0..rank).map(join_sizes).collect::<Option<Vec<_>>>()?;
        let place = |list: &List, at: usize| {
            let (mut rest, mut stride, mut place) = (at, 1, 0);
            for (axis, whole) in shape.iter().enumerate().rev() {
                let own = size(list, axis);
                place += if own == 1 { 0 } else { rest % whole * stride };
                (rest, stride) = (rest / whole, stride * own);
            }
            list.elements.get(place).copied()
        };
        let each = (0..shape.iter().product()).map(|at| Some(join(place(self, at)?, place(other, at)?)));
        Some(List { elements: each.collect::<Option<_>>()?, shape })
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn lists_broadcast() {
        let list = |shape: &[usize], elements: &[f64]| List { shape: shape.to_vec(), elements: elements.to_vec() };
        let add = |a: &List, b: &List| a.zip(b, |a, b| a + b);
        let (row, column) = (list(&[3], &[1.0, 2.0, 3.0]), list(&[2, 1], &[10.0, 20.0]));
        let both = list(&[2, 3], &[11.0, 12.0, 13.0, 21.0, 22.0, 23.0]);
        assert_eq!((add(&row, &column), add(&column, &row)), (Some(both.clone()), Some(both)));
        assert_eq!(add(&list(&[], &[5.0]), &column), Some(list(&[2, 1], &[15.0, 25.0])));
        assert_eq!(add(&list(&[0, 3], &[]), &row), Some(list(&[0, 3], &[])));
        assert_eq!(add(&row, &list(&[2], &[0.0, 0.0])), None);
    }
}
