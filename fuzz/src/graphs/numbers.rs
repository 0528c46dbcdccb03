//! Nodes that compute, and those that make tensors of numbers.

use super::{ALL, FLOATS, Maker, WIDE, attribute, int};
use crate::operators::{place, walk};
use crate::plain::{Num, Plain, binary, cast, product, reduce, wrap};
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, TensorProto};
use onnxref::DType::{Bool, Double, Float, Int32, Int64, Uint8};

impl Maker<'_> {
    pub(super) fn binary(&mut self) {
        let (a, x) = self.operand(ALL, 0..9);
        let (b, y) = self.partner(x.dtype, &x.shape);
        let op = match x.dtype {
            Bool => self.source.pick(&["And", "Or", "Xor", "Equal"]),
            _ => self.source.pick(&[
                "Add",
                "Sub",
                "Mul",
                "Div",
                "Equal",
                "Less",
                "GreaterOrEqual",
                "Max",
                "Min",
                "Add",
                "Mul",
                "Pow",
            ]),
        };
        let op = if op == "Pow" && x.dtype == Uint8 { "Add" } else { op };
        let dtype = if ["Equal", "Less", "GreaterOrEqual"].contains(&op) { Bool } else { x.dtype };
        self.failing |= op == "Div" && !FLOATS.contains(&x.dtype);
        // They may also come the other way around.
        let (a, b, x, y) = if self.source.once_in(2) { (b, a, y, x) } else { (a, b, x, y) };
        let output = x.zip(&y, dtype, |x, y| binary(op, dtype, x, y));
        self.emit(op, &[&a, &b], vec![], vec![output]);
    }

    pub(super) fn unary(&mut self) {
        let (a, x) = self.operand(ALL, 0..9);
        let floats =
            ["Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Erf", "Floor", "Round", "Relu", "Reciprocal", "Sin", "Neg"];
        let op = match x.dtype {
            Bool => "Not",
            Uint8 => self.source.pick(&["Abs", "Identity", "Sign"]),
            Int32 | Int64 => self.source.pick(&["Neg", "Abs", "Relu", "Sign", "Identity"]),
            _ => self.source.pick(&floats),
        };
        let output = x.map(x.dtype, |v| match (op, v) {
            ("Identity", v) => Some(v),
            ("Neg", Num::Float(v)) => Some(Num::Float(-v)),
            ("Neg", Num::Int(v)) => Some(wrap(x.dtype, -i128::from(v))),
            ("Abs", Num::Int(v)) => Some(wrap(x.dtype, i128::from(v).abs())),
            ("Relu", Num::Int(v)) => Some(wrap(x.dtype, v.max(0).into())),
            ("Sign", Num::Int(v)) => Some(Num::Int(v.signum())),
            ("Not", Num::Int(v)) => Some(Num::Int(1 - v)),
            ("Floor", Num::Float(v)) => Some(Num::Float(v.floor())),
            _ => None,
        });
        self.emit(op, &[&a], vec![], vec![output]);
    }

    pub(super) fn cast(&mut self) {
        let (a, x) = self.operand(ALL, 0..9);
        let to = self.source.pick(ALL);
        let output = x.map(to, |v| cast(x.dtype, to, v));
        self.emit("Cast", &[&a], vec![int("to", to.code().into())], vec![output]);
    }

    pub(super) fn reduce(&mut self) {
        let op = self.source.pick(&["Sum", "Max", "Min", "Prod", "Sum", "Mean", "L1", "L2", "LogSumExp", "SumSquare"]);
        let (a, x) = self.operand(WIDE, 0..6);
        let axes: Vec<bool> = x.shape.iter().map(|_| self.source.once_in(2)).collect();
        let keep = self.source.below(2) as i64;
        let named: Vec<i64> = (0..axes.len() as i64).filter(|d| axes[*d as usize]).collect();
        let noop = named.is_empty() && self.source.once_in(2);
        let marked: Vec<bool> = axes.iter().map(|axis| *axis || named.is_empty() && !noop).collect();
        let empty = x.shape.iter().zip(&marked).any(|(dim, axis)| *axis && *dim == 0);
        self.failing |= empty;
        let output = match op {
            "Sum" => reduce(&x, &marked, 0, |sum, v| sum + v),
            "Prod" => reduce(&x, &marked, 1, |sum, v| sum * v),
            "Max" if !empty => reduce(&x, &marked, i64::MIN.into(), |sum, v| sum.max(v)),
            "Min" if !empty => reduce(&x, &marked, i64::MAX.into(), |sum, v| sum.min(v)),
            _ => reduce(&Plain::unknown(x.dtype, &x.shape), &marked, 0, |sum, _| sum),
        };
        let shape: Vec<usize> =
            output.shape.iter().zip(&marked).filter(|(_, axis)| keep == 1 || !**axis).map(|(dim, _)| *dim).collect();
        let named = self.list(&named);
        let attributes = vec![int("keepdims", keep), int("noop_with_empty_axes", noop.into())];
        self.emit(&format!("Reduce{op}"), &[&a, &named], attributes, vec![output.reshaped(&shape)]);
    }

    pub(super) fn softmax(&mut self) {
        let (a, x) = self.operand(FLOATS, 1..6);
        let (_, named) = self.axis(x.shape.len());
        let op = self.source.pick(&["Softmax", "LogSoftmax", "Hardmax"]);
        self.emit(op, &[&a], vec![int("axis", named)], vec![Plain::unknown(x.dtype, &x.shape)]);
    }

    pub(super) fn cumulative(&mut self) {
        let (a, x) = self.operand(&[Int64, Int32, Float, Double], 1..6);
        let (axis, named) = self.axis(x.shape.len());
        let (exclusive, reverse) = (self.source.once_in(2), self.source.once_in(2));
        let size = x.shape[axis];
        let mut output = Plain::unknown(x.dtype, &x.shape);
        if let (Some(nums), Int64 | Int32) = (&x.nums, x.dtype) {
            let mut sums = nums.clone();
            for k in walk(&x.shape, |p| place(&x.shape, p)) {
                let step: usize = x.shape[axis + 1..].iter().product();
                let at = k / step % size;
                let within = if reverse { at + usize::from(exclusive)..size } else { 0..at + usize::from(!exclusive) };
                let terms = within.map(|other| match nums[k - at * step + other * step] {
                    Num::Int(v) => i128::from(v),
                    Num::Float(_) => unreachable!("integers"),
                });
                sums[k] = wrap(x.dtype, terms.sum());
            }
            output.nums = Some(sums);
        }
        let axis = self.ints(&[], &[named]);
        let attributes = vec![int("exclusive", exclusive.into()), int("reverse", reverse.into())];
        self.emit("CumSum", &[&a, &axis], attributes, vec![output]);
    }

    pub(super) fn matmul(&mut self) {
        let (a, x) = self.operand(WIDE, 1..5);
        let k = x.shape[x.shape.len() - 1];
        let n = self.source.dim().min(9);
        let mut dims =
            if x.shape.len() > 2 && self.source.once_in(2) { x.shape[..x.shape.len() - 2].to_vec() } else { vec![] };
        dims.iter_mut().for_each(|dim| *dim = if self.source.once_in(3) { 1 } else { *dim });
        dims.extend([k, n]);
        let column = self.source.once_in(6);
        if column {
            dims = vec![k];
        }
        let b = self.constant(x.dtype, &dims);
        let mut left = x.clone();
        if x.shape.len() == 1 {
            left = left.reshaped(&[1, k]);
        }
        let mut right = self.plain(&b);
        if column {
            right = right.reshaped(&[k, 1]);
        }
        let output = product(&left, &right);
        let (rows, columns) = (output.shape.len() - 2, output.shape.len() - 1);
        let mut shape = output.shape.clone();
        if column {
            shape.remove(columns);
        }
        if x.shape.len() == 1 {
            shape.remove(rows);
        }
        self.emit("MatMul", &[&a, &b], vec![], vec![output.reshaped(&shape)]);
    }

    pub(super) fn gemm(&mut self) {
        let (a, x) = self.operand(WIDE, 2..3);
        let (by_row, by_column) = (self.source.once_in(2), self.source.once_in(2));
        let turned = |x: &Plain| x.moved(&[x.shape[1], x.shape[0]], |p| vec![p[1], p[0]]);
        let left = if by_row { turned(&x) } else { x.clone() };
        let (k, n) = (left.shape[1], self.source.dim().min(9));
        let b = self.constant(x.dtype, &if by_column { [n, k] } else { [k, n] });
        let right = self.plain(&b);
        let mut output = product(&left, &if by_column { turned(&right) } else { right });
        let mut attributes = vec![int("transA", by_row.into()), int("transB", by_column.into())];
        let mut inputs = vec![a, b];
        if self.source.once_in(2) {
            let dims = [left.shape[0], n];
            let dims: Vec<usize> = dims.iter().map(|dim| if self.source.once_in(3) { 1 } else { *dim }).collect();
            let from = self.source.below(3);
            let c = self.constant(x.dtype, &dims[from..]);
            output = output.zip(&self.plain(&c), x.dtype, |v, c| binary("Add", x.dtype, v, c));
            inputs.push(c);
        }
        if self.source.once_in(4) {
            attributes.push(AttributeProto { f: Some(0.5), ..attribute("alpha", AttributeType::Float) });
            output.nums = None;
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        self.emit("Gemm", &inputs, attributes, vec![output]);
    }

    /// Range, ConstantOfShape or Shape.
    pub(super) fn made(&mut self) {
        match self.source.below(3) {
            0 => {
                let dtype = self.source.pick(&[Int64, Int32, Float, Double]);
                let (start, delta) = (self.source.below(9) as i64 - 4, self.source.pick(&[1, -1, 2, -3]));
                let count = self.source.below(9) as i64;
                let number =
                    |v: i64| Plain::new(dtype, &[], vec![cast(Int64, dtype, Num::Int(v)).expect("an integer")]);
                let names = [start, start + count * delta, delta].map(|v| self.fixed(number(v)));
                let nums = (0..count).map(|k| cast(Int64, dtype, Num::Int(start + k * delta)).expect("an integer"));
                let output = Plain::new(dtype, &[count as usize], nums.collect());
                self.emit("Range", &[&names[0], &names[1], &names[2]], vec![], vec![output]);
            }
            1 => {
                let dims = self.source.dims(4, 100);
                let value = Plain::new(Int32, &[1], vec![Num::Int(self.source.below(9) as i64)]);
                let output = value.moved(&dims, |_| vec![0]);
                let tensor = TensorProto {
                    dims: vec![1],
                    data_type: Some(Int32.code()),
                    raw_data: Some(value.tensor().bytes().to_vec().into()),
                    ..Default::default()
                };
                let value = AttributeProto { t: Some(Box::new(tensor)), ..attribute("value", AttributeType::Tensor) };
                let dims = self.shape(&dims);
                self.emit("ConstantOfShape", &[&dims], vec![value], vec![output]);
            }
            _ => {
                let (a, x) = self.operand(ALL, 0..9);
                let nums = x.shape.iter().map(|dim| Num::Int(*dim as i64)).collect();
                self.emit("Shape", &[&a], vec![], vec![Plain::new(Int64, &[x.shape.len()], nums)]);
            }
        }
    }
}
