//! The nodes of a graph, with what they should give.

use super::{ALL, FLOATS, MOST, Maker, NUMBERS, WIDE, attribute, declared, int, string};
use crate::operators::{place, walk};
use crate::plain::{Num, Plain, binary, cast, common, product, reduce, wrap};
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};
use onnxref::DType::{self, Bool, Double, Float, Int32, Int64, Uint8};

impl Maker<'_> {
    /// A node, or a few.
    pub(super) fn node(&mut self, depth: usize) {
        match self.source.below(if depth < 2 { 28 } else { 24 }) {
            0..3 => self.binary(),
            3 => self.unary(),
            4 => self.cast(),
            5 => self.concat(),
            6 => self.split(),
            7 | 8 => self.slice(),
            9 => self.transpose(),
            10 => self.expand(),
            11 => self.tile(),
            12 => self.pad(),
            13 => self.reshape(),
            14 | 15 => self.reduce(),
            16 => self.softmax(),
            17 => self.cumulative(),
            18 => self.matmul(),
            19 => self.gemm(),
            20 => self.choice(),
            21 => self.scatter_nd(),
            22 => self.scatter_elements(),
            23 => self.made(),
            24 | 25 => self.branches(depth),
            _ => self.repeated(depth),
        }
    }

    fn binary(&mut self) {
        let (a, x) = self.operand(ALL, 0..9);
        let (b, y) = self.partner(x.dtype, &x.shape);
        let op = match x.dtype {
            Bool => self.source.pick(&["And", "Or", "Xor", "Equal"]),
            dtype if NUMBERS.contains(&dtype) => self.source.pick(&[
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
            _ => unreachable!("no other type"),
        };
        let op = if op == "Pow" && x.dtype == Uint8 { "Add" } else { op };
        let dtype = if ["Equal", "Less", "GreaterOrEqual"].contains(&op) { Bool } else { x.dtype };
        self.failing |= op == "Div" && !super::FLOATS.contains(&x.dtype);
        // They may also come the other way around.
        let (a, b, x, y) = if self.source.once_in(2) { (b, a, y, x) } else { (a, b, x, y) };
        let output = x.zip(&y, dtype, |x, y| binary(op, dtype, x, y));
        self.emit(op, &[&a, &b], vec![], vec![output]);
    }

    fn unary(&mut self) {
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

    fn cast(&mut self) {
        let (a, x) = self.operand(ALL, 0..9);
        let to = self.source.pick(ALL);
        let output = x.map(to, |v| cast(x.dtype, to, v));
        self.emit("Cast", &[&a], vec![int("to", to.code().into())], vec![output]);
    }

    fn concat(&mut self) {
        let (a, x) = self.operand(ALL, 1..6);
        let (axis, named) = self.axis(x.shape.len());
        let mut dims = x.shape.clone();
        dims[axis] = self.source.below(4);
        let (b, y) = if self.source.once_in(2) {
            (a.clone(), x.clone())
        } else {
            let b = self.constant(x.dtype, &dims);
            (b.clone(), self.plain(&b))
        };
        let (n, mut shape) = (x.shape[axis], x.shape.clone());
        shape[axis] += y.shape[axis];
        if shape.iter().product::<usize>() > MOST.max(x.count()) {
            return;
        }
        let mut output = Plain::unknown(x.dtype, &shape);
        if let (Some(left), Some(right)) = (&x.nums, &y.nums) {
            let all = [&left[..], right].concat();
            let places = walk(&shape, |p| {
                let mut p = p.to_vec();
                if p[axis] < n {
                    return place(&x.shape, &p);
                }
                p[axis] -= n;
                left.len() + place(&y.shape, &p)
            });
            output.nums = Some(places.into_iter().map(|k| all[k]).collect());
        }
        self.emit("Concat", &[&a, &b], vec![int("axis", named)], vec![output]);
    }

    fn split(&mut self) {
        let (a, x) = self.operand(ALL, 1..6);
        let (axis, named) = self.axis(x.shape.len());
        let size = x.shape[axis];
        let first = self.source.below(size + 1);
        let mut parts = vec![first, size - first];
        let mut attributes = vec![int("axis", named)];
        let given = if self.source.once_in(3) {
            attributes.push(int("num_outputs", 2));
            parts = vec![size.div_ceil(2), size - size.div_ceil(2)];
            None
        } else {
            Some(self.shape(&parts))
        };
        let mut from = 0;
        let mut outputs = Vec::new();
        for part in parts {
            let mut shape = x.shape.clone();
            shape[axis] = part;
            outputs.push(
                x.moved(&shape, |p| p.iter().enumerate().map(|(d, c)| c + if d == axis { from } else { 0 }).collect()),
            );
            from += part;
        }
        let inputs: Vec<&str> = [a.as_str()].into_iter().chain(given.as_deref()).collect();
        self.emit("Split", &inputs, attributes, outputs);
    }

    fn slice(&mut self) {
        let (a, x) = self.operand(ALL, 1..7);
        let (mut starts, mut ends, mut axes, mut steps) = (vec![], vec![], vec![], vec![]);
        let (mut shape, mut by) = (x.shape.clone(), vec![(0, 1); x.shape.len()]);
        for (d, dim) in x.shape.iter().enumerate() {
            if !self.source.once_in(2) {
                continue;
            }
            let (size, step) = (*dim as i128, self.source.pick(&[1, -1, 2, -2, 3, 1, i64::MAX, i64::MIN]));
            let mut place = || match self.source.below(16) {
                15 => i64::MIN,
                14 => i64::MAX,
                n => n as i64 - 7,
            };
            let (start, end) = (place(), place());
            let last = if step > 0 { (0, size) } else { (-1, size - 1) };
            let bound = |v: i64| (i128::from(v) + if v < 0 { size } else { 0 }).clamp(last.0, last.1.max(last.0));
            let (from, to) = (if step > 0 { bound(start) } else { bound(start).max(0) }, bound(end));
            let (distance, pace) =
                if step > 0 { (to - from, i128::from(step)) } else { (from - to, -i128::from(step)) };
            shape[d] = if size == 0 { 0 } else { ((distance + pace - 1) / pace).max(0) as usize };
            by[d] = (from, i128::from(step));
            starts.push(start);
            ends.push(end);
            axes.push(if self.source.once_in(2) { d as i64 - x.shape.len() as i64 } else { d as i64 });
            steps.push(step);
        }
        let output = x.moved(&shape, |p| {
            p.iter().zip(&by).map(|(c, (from, step))| (from + *c as i128 * step) as usize).collect()
        });
        let names = [starts, ends, axes, steps].map(|values| self.list(&values));
        self.emit("Slice", &[&a, &names[0], &names[1], &names[2], &names[3]], vec![], vec![output]);
    }

    fn transpose(&mut self) {
        let (a, x) = self.operand(ALL, 0..7);
        let mut perm: Vec<usize> = (0..x.shape.len()).rev().collect();
        let mut attributes = vec![];
        if !self.source.once_in(4) {
            for d in 0..perm.len() {
                let other = self.source.below(d + 1);
                perm.swap(d, other);
            }
            let ints = perm.iter().map(|d| *d as i64).collect();
            attributes.push(AttributeProto { ints, ..attribute("perm", AttributeType::Ints) });
        }
        let shape: Vec<usize> = perm.iter().map(|d| x.shape[*d]).collect();
        let output = x.moved(&shape, |p| {
            let mut from = vec![0; p.len()];
            perm.iter().zip(p).for_each(|(d, c)| from[*d] = *c);
            from
        });
        self.emit("Transpose", &[&a], attributes, vec![output]);
    }

    fn expand(&mut self) {
        let (a, x) = self.operand(ALL, 0..5);
        let mut to: Vec<usize> = x.shape.iter().map(|dim| if *dim == 1 { self.source.dim() } else { *dim }).collect();
        if self.source.once_in(2) {
            to.insert(0, 1 + self.source.below(3));
        }
        let shape = common(&x.shape, &to).expect("made for that");
        if shape.iter().product::<usize>() > MOST.max(x.count()) {
            return;
        }
        let to = self.shape(&to);
        self.emit("Expand", &[&a, &to], vec![], vec![x.broadcast(&shape)]);
    }

    fn tile(&mut self) {
        let (a, x) = self.operand(ALL, 0..6);
        let repeats: Vec<usize> = x.shape.iter().map(|_| self.source.pick(&[1, 2, 1, 3, 0])).collect();
        let shape: Vec<usize> = x.shape.iter().zip(&repeats).map(|(dim, n)| dim * n).collect();
        if shape.iter().product::<usize>() > MOST.max(x.count()) {
            return;
        }
        let repeats = self.shape(&repeats);
        let output = x.moved(&shape, |p| p.iter().zip(&x.shape).map(|(c, dim)| c % dim).collect());
        self.emit("Tile", &[&a, &repeats], vec![], vec![output]);
    }

    fn pad(&mut self) {
        let (a, x) = self.operand(ALL, 1..6);
        let mode = self.source.pick(&["constant", "edge", "constant", "reflect", "wrap"]);
        let least = if mode == "constant" { 0 } else { 2 };
        let mut pads = vec![0; 2 * x.shape.len()];
        let mut shape = x.shape.clone();
        for (d, dim) in x.shape.iter().enumerate().filter(|(_, dim)| **dim >= least) {
            let few = if *dim >= 2 { [0, 1, 0, -1] } else { [0, 1, 0, 2] };
            let (before, after) = (self.source.pick(&few), self.source.pick(&few));
            (pads[d], pads[d + x.shape.len()]) = (before, after);
            shape[d] = (*dim as i64 + before + after) as usize;
        }
        if shape.iter().product::<usize>() > MOST.max(x.count()) {
            return;
        }
        let value = self.constant(x.dtype, &[]);
        let all = [x.nums.clone().unwrap_or_default(), self.plain(&value).nums.expect("a constant")].concat();
        let mut output = Plain::unknown(x.dtype, &shape);
        if x.nums.is_some() && ["constant", "edge"].contains(&mode) {
            let places = walk(&shape, |p| {
                let from: Vec<i64> = p.iter().zip(&pads).map(|(c, before)| *c as i64 - before).collect();
                let inside = from.iter().zip(&x.shape).all(|(c, dim)| (0..*dim as i64).contains(c));
                if !inside && mode == "constant" {
                    return x.count();
                }
                let last = from.iter().zip(&x.shape).map(|(c, dim)| (*c).clamp(0, *dim as i64 - 1) as usize);
                place(&x.shape, &last.collect::<Vec<_>>())
            });
            output.nums = Some(places.into_iter().map(|k| all[k]).collect());
        }
        let pads = self.list(&pads);
        self.emit("Pad", &[&a, &pads, &value], vec![string("mode", mode)], vec![output]);
    }

    fn reshape(&mut self) {
        let (a, x) = self.operand(ALL, 0..7);
        let mut dims = x.shape.clone();
        match self.source.below(4) {
            0 => dims = vec![x.count()],
            1 if dims.len() > 1 => {
                let at = self.source.below(dims.len() - 1);
                let dim = dims.remove(at);
                dims[at] *= dim;
            }
            2 => {
                let at = self.source.below(dims.len() + 1);
                dims.insert(at, 1);
            }
            _ => dims.reverse(),
        }
        let mut given: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
        let mut attributes = vec![];
        if x.count() == 0 {
            attributes.push(int("allowzero", 1));
        } else if !given.is_empty() && self.source.once_in(2) {
            let at = self.source.below(given.len());
            given[at] = -1;
        }
        let to = self.list(&given);
        self.emit("Reshape", &[&a, &to], attributes, vec![x.reshaped(&dims)]);
    }

    fn reduce(&mut self) {
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

    fn softmax(&mut self) {
        let (a, x) = self.operand(FLOATS, 1..6);
        let (_, named) = self.axis(x.shape.len());
        let op = self.source.pick(&["Softmax", "LogSoftmax", "Hardmax"]);
        self.emit(op, &[&a], vec![int("axis", named)], vec![Plain::unknown(x.dtype, &x.shape)]);
    }

    fn cumulative(&mut self) {
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

    fn matmul(&mut self) {
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

    fn gemm(&mut self) {
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

    fn choice(&mut self) {
        let (a, x) = self.operand(ALL, 0..6);
        let (b, y) = self.partner(x.dtype, &x.shape);
        let (c, which) = self.partner(Bool, &common(&x.shape, &y.shape).expect("a partner"));
        let all = common(&common(&x.shape, &y.shape).expect("a partner"), &which.shape).expect("a partner");
        let (x, y, which) = (x.broadcast(&all), y.broadcast(&all), which.broadcast(&all));
        let mut output = Plain::unknown(x.dtype, &all);
        if let (Some(x), Some(y), Some(which)) = (x.nums, y.nums, which.nums) {
            let of = |k: usize| if which[k] == Num::Int(1) { x[k] } else { y[k] };
            output.nums = Some((0..which.len()).map(of).collect());
        }
        self.emit("Where", &[&c, &a, &b], vec![], vec![output]);
    }

    fn scatter_nd(&mut self) {
        let (a, x) = self.operand(&[Float, Int64, Int32, Double, Uint8], 1..5);
        if x.count() == 0 {
            return;
        }
        let (n, width) = (self.source.below(4), 1 + self.source.below(x.shape.len()));
        let indices: Vec<i64> = (0..n * width).map(|k| self.source.index(x.shape[k % width], false)).collect();
        let slice: usize = x.shape[width..].iter().product();
        let updates = self.constant(x.dtype, &[&[n], &x.shape[width..]].concat());
        let update = self.plain(&updates).nums.expect("a constant");
        let reduction = self.source.pick(&["none", "add", "mul", "max"]);
        let mut output = x.clone();
        output.nums = output.nums.filter(|_| reduction != "max" || x.dtype != Float && x.dtype != Double);
        if let Some(nums) = &mut output.nums {
            for (k, num) in update.iter().enumerate() {
                let tuple = &indices[k / slice * width..][..width];
                let at =
                    tuple.iter().zip(&x.shape).fold(0, |at, (i, dim)| at * dim + i.rem_euclid(*dim as i64) as usize);
                combine(reduction, x.dtype, &mut nums[at * slice + k % slice], *num);
            }
        }
        let indices = self.ints(&[n, width], &indices);
        self.emit("ScatterND", &[&a, &indices, &updates], vec![string("reduction", reduction)], vec![output]);
    }

    fn scatter_elements(&mut self) {
        let (a, x) = self.operand(&[Float, Int64, Int32, Double, Uint8], 1..5);
        if x.count() == 0 {
            return;
        }
        let (axis, named) = self.axis(x.shape.len());
        let mut dims: Vec<usize> = x.shape.iter().map(|dim| if self.source.once_in(2) { 1 } else { *dim }).collect();
        dims[axis] = self.source.dim().min(4);
        let count = dims.iter().product();
        let indices: Vec<i64> = (0..count).map(|_| self.source.index(x.shape[axis], false)).collect();
        let updates = self.constant(x.dtype, &dims);
        let update = self.plain(&updates).nums.expect("a constant");
        let reduction = self.source.pick(&["none", "add", "mul", "min"]);
        let mut output = x.clone();
        output.nums = output.nums.filter(|_| reduction != "min" || x.dtype != Float && x.dtype != Double);
        if let Some(nums) = &mut output.nums {
            let mut k = 0;
            let into = walk(&dims, |p| {
                let mut p = p.to_vec();
                p[axis] = indices[k].rem_euclid(x.shape[axis] as i64) as usize;
                k += 1;
                place(&x.shape, &p)
            });
            into.into_iter().zip(update).for_each(|(at, num)| combine(reduction, x.dtype, &mut nums[at], num));
        }
        let indices = self.ints(&dims, &indices);
        let attributes = vec![string("reduction", reduction), int("axis", named)];
        self.emit("ScatterElements", &[&a, &indices, &updates], attributes, vec![output]);
    }

    /// Range, ConstantOfShape or Shape.
    fn made(&mut self) {
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

    /// Nodes that a body has to itself, the last of which is of a type, if one is wanted.
    fn body(&mut self, depth: usize, dtype: Option<DType>) -> (GraphProto, Plain) {
        let (outer, known) = (std::mem::take(&mut self.nodes), self.known.len());
        for _ in 0..1 + self.source.below(2) {
            self.node(depth + 1);
        }
        if self.nodes.is_empty() {
            self.unary();
        }
        let last = self.nodes.last().and_then(|node| node.output.last()).expect("an output").clone();
        let mut output = (last.clone(), self.plain(&last));
        if let Some(to) = dtype {
            let plain = output.1.map(to, |v| cast(output.1.dtype, to, v));
            self.emit("Cast", &[&last], vec![int("to", to.code().into())], vec![plain]);
            output = self.known.last().expect("the node's").clone();
        }
        let graph = GraphProto {
            name: Some("body".into()),
            node: std::mem::replace(&mut self.nodes, outer),
            output: vec![declared(&output.0, output.1.dtype)],
            ..GraphProto::default()
        };
        self.hide(known);
        (graph, output.1)
    }

    /// The values of a body can't be read outside; inputs and initializers can.
    fn hide(&mut self, from: usize) {
        let global = |name: &str| {
            self.inputs.iter().any(|info| info.name() == name)
                || self.initializers.iter().any(|tensor| tensor.name() == name)
        };
        let mut k = 0;
        let keep: Vec<bool> = self.known.iter().map(|(name, _)| global(name)).collect();
        self.known.retain(|_| (k += 1, k <= from || keep[k - 1]).1);
    }

    fn branches(&mut self, depth: usize) {
        let taken = self.source.once_in(2);
        let condition = self.fixed(Plain::new(Bool, &[], vec![Num::Int(taken.into())]));
        let (yes, first) = self.body(depth, None);
        let (no, second) = self.body(depth, Some(first.dtype));
        let graph = |name, graph| AttributeProto { g: Some(Box::new(graph)), ..attribute(name, AttributeType::Graph) };
        let attributes = vec![graph("then_branch", yes), graph("else_branch", no)];
        self.emit("If", &[&condition], attributes, vec![if taken { first } else { second }]);
    }

    /// A loop that applies an operator some times, and collects what it has.
    fn repeated(&mut self, depth: usize) {
        let (a, x) = self.operand(NUMBERS, 0..5);
        let (b, y) = self.partner(x.dtype, &x.shape);
        let op = self.source.pick(&["Add", "Sub", "Mul", "Max"]);
        let (most, limit) = (self.source.below(4), self.source.below(4));
        let trips = most.min(limit + 1);
        let (mut value, mut collected) = (x.clone(), Vec::new());
        for _ in 0..trips {
            value = value.zip(&y, x.dtype, |v, w| binary(op, x.dtype, v, w));
            collected.push(value.nums.clone());
        }
        let mut outputs = vec![value.clone()];
        let collects = trips > 0 && self.source.once_in(2);
        if collects {
            let nums = collected.into_iter().collect::<Option<Vec<_>>>().map(|nums| nums.concat());
            outputs.push(Plain { dtype: x.dtype, shape: [&[trips], &value.shape[..]].concat(), nums });
        }
        let most = self.ints(&[], &[most as i64]);
        let limit = self.ints(&[], &[limit as i64]);
        let yes = self.fixed(Plain::new(Bool, &[], vec![Num::Int(1)]));
        let (mut graph, side) = self.body(depth, None);
        let inner = [(); 5].map(|()| self.new_name());
        let [trip, again, carried, next, goes] = &inner;
        let node = |op: &str, inputs: [&str; 2], output: &str| NodeProto {
            op_type: Some(op.into()),
            input: inputs.map(String::from).to_vec(),
            output: vec![output.into()],
            ..Default::default()
        };
        self.read.extend([b.clone(), limit.clone()]);
        graph.node.push(node(op, [carried, &b], next));
        graph.node.push(node("Less", [trip, &limit], goes));
        graph.input = vec![declared(trip, Int64), declared(again, Bool), declared(carried, x.dtype)];
        let side_output = graph.output.pop().expect("one");
        graph.output = vec![declared(goes, Bool), declared(next, x.dtype)];
        if collects {
            graph.output.push(declared(next, x.dtype));
        }
        if trips > 0 {
            graph.output.push(side_output);
            let nums = side.nums.map(|nums| nums.repeat(trips));
            outputs.push(Plain { dtype: side.dtype, shape: [&[trips], &side.shape[..]].concat(), nums });
        }
        let body = AttributeProto { g: Some(Box::new(graph)), ..attribute("body", AttributeType::Graph) };
        self.emit("Loop", &[&most, &yes, &a], vec![body], outputs);
    }
}

/// What ScatterND and ScatterElements do with an update.
fn combine(reduction: &str, dtype: DType, into: &mut Num, update: Num) {
    let op = match reduction {
        "none" => return *into = update,
        "add" => "Add",
        "mul" => "Mul",
        "min" => "Min",
        _ => "Max",
    };
    *into = binary(op, dtype, *into, update).expect("an oracle");
}
