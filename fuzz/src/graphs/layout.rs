//! Nodes that move elements.

use super::{ALL, MOST, Maker, attribute, int, string};
use crate::operators::{place, walk};
use crate::plain::{Num, Plain, binary, common};
use crate::proto::AttributeProto;
use crate::proto::attribute_proto::AttributeType;
use onnxref::DType::{self, Bool, Double, Float, Int32, Int64, Uint8};

impl Maker<'_> {
    pub(super) fn concat(&mut self) {
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

    pub(super) fn split(&mut self) {
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

    pub(super) fn slice(&mut self) {
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

    pub(super) fn transpose(&mut self) {
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

    pub(super) fn expand(&mut self) {
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

    pub(super) fn tile(&mut self) {
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

    pub(super) fn pad(&mut self) {
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

    pub(super) fn reshape(&mut self) {
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

    pub(super) fn choice(&mut self) {
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

    pub(super) fn scatter_nd(&mut self) {
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

    pub(super) fn scatter_elements(&mut self) {
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
