//! Tensors and operators as plain as can be, one element at a time: the oracle of [`crate::graphs`].

use crate::operators::{place, walk};
use half::f16;
use onnxref::{DType, Tensor};

/// An element. All floats are kept as `f64`, which has their values.
#[derive(Clone, Copy, Debug)]
pub enum Num {
    Int(i64),
    Float(f64),
}

/// The same bits; all NaNs are the same.
impl PartialEq for Num {
    fn eq(&self, other: &Num) -> bool {
        match (self, other) {
            (Num::Int(a), Num::Int(b)) => a == b,
            (Num::Float(a), Num::Float(b)) => a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plain {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// `None`: there is no oracle for them.
    pub nums: Option<Vec<Num>>,
}

/// The number of elements. Where a dimension is 0, the others may be of any size.
fn volume(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().product() }
}

impl Plain {
    pub fn new(dtype: DType, shape: &[usize], nums: Vec<Num>) -> Plain {
        assert_eq!(nums.len(), volume(shape));
        Plain { dtype, shape: shape.to_vec(), nums: Some(nums) }
    }

    pub fn unknown(dtype: DType, shape: &[usize]) -> Plain {
        Plain { dtype, shape: shape.to_vec(), nums: None }
    }

    pub fn count(&self) -> usize {
        volume(&self.shape)
    }

    /// Reads a tensor.
    pub fn of(tensor: &Tensor) -> Plain {
        let size = tensor.dtype().size();
        let read = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            let bits = u64::from_le_bytes(word);
            match tensor.dtype() {
                DType::Double => Num::Float(f64::from_bits(bits)),
                DType::Float => Num::Float(f32::from_bits(bits as u32).into()),
                DType::Float16 => Num::Float(f16::from_bits(bits as u16).into()),
                DType::Int32 => Num::Int((bits as i32).into()),
                _ => Num::Int(bits as i64),
            }
        };
        Plain::new(tensor.dtype(), tensor.shape(), tensor.bytes().chunks_exact(size).map(read).collect())
    }

    /// A tensor of elements that are known.
    pub fn tensor(&self) -> Tensor {
        let mut bytes = Vec::new();
        for num in self.nums.as_ref().expect("known elements") {
            match (*num, self.dtype) {
                (Num::Float(x), DType::Double) => bytes.extend(x.to_le_bytes()),
                (Num::Float(x), DType::Float) => bytes.extend((x as f32).to_le_bytes()),
                (Num::Float(x), _) => bytes.extend(f16::from_f32(x as f32).to_le_bytes()),
                (Num::Int(x), dtype) => bytes.extend(&x.to_le_bytes()[..dtype.size()]),
            }
        }
        Tensor::new(self.dtype, &self.shape, bytes).expect("as many as the shape takes")
    }

    /// `output[p] = self[from(p)]`
    pub fn moved(&self, shape: &[usize], from: impl Fn(&[usize]) -> Vec<usize>) -> Plain {
        let nums = self.nums.as_ref();
        let nums =
            nums.map(|nums| walk(shape, |p| place(&self.shape, &from(p))).into_iter().map(|k| nums[k]).collect());
        Plain { dtype: self.dtype, shape: shape.to_vec(), nums }
    }

    /// The same elements in another shape.
    pub fn reshaped(self, shape: &[usize]) -> Plain {
        assert_eq!(self.count(), volume(shape));
        Plain { shape: shape.to_vec(), ..self }
    }

    pub fn broadcast(&self, shape: &[usize]) -> Plain {
        let skip = shape.len() - self.shape.len();
        self.moved(shape, |p| p[skip..].iter().zip(&self.shape).map(|(c, dim)| c % dim).collect())
    }

    /// `None` of a function: there is no oracle for these operands.
    pub fn map(&self, dtype: DType, f: impl Fn(Num) -> Option<Num>) -> Plain {
        let nums = self.nums.as_ref().and_then(|nums| nums.iter().map(|num| f(*num)).collect());
        Plain { dtype, shape: self.shape.clone(), nums }
    }

    /// Of shapes that broadcast.
    pub fn zip(&self, other: &Plain, dtype: DType, f: impl Fn(Num, Num) -> Option<Num>) -> Plain {
        let shape = common(&self.shape, &other.shape).expect("shapes that broadcast");
        let (a, b) = (self.broadcast(&shape).nums, other.broadcast(&shape).nums);
        let nums = a.zip(b).and_then(|(a, b)| a.into_iter().zip(b).map(|(a, b)| f(a, b)).collect());
        Plain { dtype, shape, nums }
    }
}

/// The shape of two that broadcast.
pub fn common(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let dim = |shape: &[usize], k: usize| shape.iter().rev().nth(k).copied().unwrap_or(1);
    let dims = (0..a.len().max(b.len())).rev().map(|k| match (dim(a, k), dim(b, k)) {
        (1, n) | (n, 1) => Some(n),
        (n, m) => (n == m).then_some(n),
    });
    dims.collect()
}

pub fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Double | DType::Float16)
}

/// What is left of an integer in a type.
pub fn wrap(dtype: DType, x: i128) -> Num {
    Num::Int(match dtype {
        DType::Int32 => (x as i32).into(),
        DType::Uint8 => (x as u8).into(),
        DType::Bool => (x != 0).into(),
        _ => x as i64,
    })
}

/// The nearest number of a type. Two roundings are as good as one for a sum, product or quotient of its numbers: each type
/// has more than twice the digits of the next.
pub fn round(dtype: DType, x: f64) -> Num {
    Num::Float(match dtype {
        DType::Float => (x as f32).into(),
        DType::Float16 => f16::from_f32(x as f32).into(),
        _ => x,
    })
}

pub fn cast(from: DType, to: DType, x: Num) -> Option<Num> {
    Some(match x {
        Num::Int(x) if is_float(to) => match to {
            DType::Double => Num::Float(x as f64),
            _ => round(to, (x as f32).into()),
        },
        Num::Int(x) => wrap(to, x.into()),
        Num::Float(x) if to == DType::Bool => Num::Int((x != 0.0).into()),
        Num::Float(x) if is_float(to) => {
            // Rounding twice is not good enough here.
            return (from != DType::Double || to != DType::Float16).then(|| round(to, x));
        }
        Num::Float(x) if !x.is_finite() => Num::Int(0),
        Num::Float(x) => return (x.abs() < 1e38).then(|| wrap(to, x as i128)),
    })
}

/// Add, Sub, Mul and Div; a comparison; And, Or, Xor. No others.
pub fn binary(op: &str, dtype: DType, a: Num, b: Num) -> Option<Num> {
    let truth = |yes: bool| Some(Num::Int(yes.into()));
    match (a, b) {
        (Num::Int(a), Num::Int(b)) => {
            let (a, b) = (i128::from(a), i128::from(b));
            Some(wrap(
                dtype,
                match op {
                    "Add" => a + b,
                    "Sub" => a - b,
                    "Mul" => a * b,
                    "Div" => a.checked_div(b)?,
                    "Max" => a.max(b),
                    "Min" => a.min(b),
                    "Equal" => return truth(a == b),
                    "Less" => return truth(a < b),
                    "GreaterOrEqual" => return truth(a >= b),
                    "And" => a & b,
                    "Or" => a | b,
                    "Xor" => a ^ b,
                    _ => return None,
                },
            ))
        }
        (Num::Float(a), Num::Float(b)) => Some(round(
            dtype,
            match op {
                "Add" => a + b,
                "Sub" => a - b,
                "Mul" => a * b,
                "Div" => a / b,
                "Equal" => return truth(a == b),
                "Less" => return truth(a < b),
                "GreaterOrEqual" => return truth(a >= b),
                _ => return None,
            },
        )),
        _ => None,
    }
}

/// Reduces the axes that are marked, keeping them, by a function on integers from its first value on.
pub fn reduce(data: &Plain, axes: &[bool], first: i128, f: impl Fn(i128, i128) -> i128) -> Plain {
    let shape: Vec<usize> = data.shape.iter().zip(axes).map(|(dim, reduced)| if *reduced { 1 } else { *dim }).collect();
    let into = walk(&data.shape, |p| {
        let p: Vec<usize> = p.iter().zip(axes).map(|(c, reduced)| if *reduced { 0 } else { *c }).collect();
        place(&shape, &p)
    });
    let mut sums = vec![first; volume(&shape)];
    let nums = data.nums.as_ref().filter(|_| !is_float(data.dtype));
    let nums = nums.and_then(|nums| {
        for (num, into) in nums.iter().zip(into) {
            let Num::Int(x) = num else { return None };
            let Num::Int(sum) = wrap(data.dtype, f(sums[into], (*x).into())) else { return None };
            sums[into] = sum.into();
        }
        Some(sums.iter().map(|sum| wrap(data.dtype, *sum)).collect())
    });
    Plain { dtype: data.dtype, shape, nums }
}

/// The product of `a [.., m, k]` and `b [.., k, n]` of integers, by broadcasting to `[.., m, k, n]`.
pub fn product(a: &Plain, b: &Plain) -> Plain {
    let rank = a.shape.len().max(b.shape.len());
    let a = a.clone().reshaped(&[&a.shape[..], &[1]].concat());
    let mut columns = b.shape.clone();
    columns.insert(columns.len() - 2, 1);
    let b = b.clone().reshaped(&columns);
    let terms = a.zip(&b, a.dtype, |x, y| match (x, y) {
        (Num::Int(_), Num::Int(_)) => binary("Mul", a.dtype, x, y),
        _ => None,
    });
    let axes: Vec<bool> = (0..=rank).map(|d| d == rank - 1).collect();
    let sums = reduce(&terms, &axes, 0, |sum, x| sum + x);
    let mut shape = sums.shape.clone();
    shape.remove(rank - 1);
    sums.reshaped(&shape)
}
