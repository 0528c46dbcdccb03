//! Nodes as exporters write networks with them, which passes replace by others. There is no oracle but the nodes one by one.

use super::{MOST, Maker, attribute, int};
use crate::plain::{Num, Plain, common};
use crate::proto::AttributeProto;
use crate::proto::attribute_proto::AttributeType;
use half::f16;
use onnxref::DType::{self, Float, Float16, Int8, Uint8};

/// Products of a convolution, at most.
const LARGEST: usize = 1 << 22;

impl Maker<'_> {
    pub(super) fn network(&mut self) {
        self.floating = self.source.pick(&[Float, Float, Float16]);
        match self.source.below(8) {
            0..3 => self.convolution(),
            3 => self.pool(),
            4 => self.gate(),
            5 => self.normalization(),
            6 => self.attention(),
            _ => self.row_after_product(),
        }
    }

    /// A node of one output, whose name is given.
    fn with(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
        dtype: DType,
        shape: &[usize],
    ) -> String {
        self.emit(op, inputs, attributes, vec![Plain::unknown(dtype, shape)]);
        self.known.last().expect("what was added").0.clone()
    }

    /// As [`Maker::with`], of the floats of the network and without attributes.
    fn then(&mut self, op: &str, inputs: &[&str], shape: &[usize]) -> String {
        self.with(op, inputs, vec![], self.floating, shape)
    }

    /// `x * sigmoid(x)`
    fn gated(&mut self, x: &str, shape: &[usize]) -> String {
        let gate = self.then("Sigmoid", &[x], shape);
        self.then("Mul", &[x, &gate], shape)
    }

    /// One number.
    fn number(&mut self, number: f32) -> String {
        let number = if self.floating == Float16 { f16::from_f32(number).to_f32() } else { number };
        self.initializer(Plain::new(self.floating, &[], vec![Num::Float(number.into())]))
    }

    /// Constant numbers.
    fn floats(&mut self, shape: &[usize]) -> String {
        let numbers = self.numbers(self.floating, shape);
        self.initializer(numbers)
    }

    /// What is quantized and dequantized again, if integers stand between the nodes.
    fn quantized(&mut self, x: &str, shape: &[usize], integers: bool) -> String {
        if !integers || self.floating != Float {
            return x.to_string();
        }
        let dtype = self.source.pick(&[Uint8, Int8]);
        let scale = self.source.pick(&[0.03, 0.11, 0.5, 0.007]);
        let scale = self.number(scale);
        let zero = self.source.pick(&[0, 3, 127, 0]);
        let zero = self.initializer(Plain::new(dtype, &[], vec![Num::Int(zero)]));
        let integers = self.with("QuantizeLinear", &[x, &scale, &zero], vec![], dtype, shape);
        self.then("DequantizeLinear", &[&integers, &scale, &zero], shape)
    }

    /// Constant weights, mostly dequantized if integers stand between the nodes; they may have a scale for each entry of an axis.
    fn weights(&mut self, shape: &[usize], axis: usize, integers: bool) -> String {
        if !integers || self.floating != Float || self.source.once_in(6) {
            return self.floats(shape);
        }
        let mut integers = self.numbers(Uint8, shape);
        integers.dtype = Int8;
        let (integers, count) = (self.initializer(integers), shape[axis]);
        let (dims, scales) = if self.source.once_in(2) { (vec![count], count) } else { (vec![], 1) };
        let scales = (0..scales).map(|k| Num::Float(f64::from(0.01f32 + k as f32 / 128.0))).collect();
        let scales = self.initializer(Plain::new(Float, &dims, scales));
        self.with("DequantizeLinear", &[&integers, &scales], vec![int("axis", axis as i64)], Float, shape)
    }

    /// A late image, or a new one.
    fn image(&mut self) -> (String, Plain) {
        let found = self
            .known
            .iter()
            .rev()
            .take(3)
            .find(|(_, x)| x.dtype == self.floating && (3..6).contains(&x.shape.len()) && !x.shape.contains(&0));
        if let Some(found) = found.cloned().filter(|_| !self.source.once_in(4)) {
            return found;
        }
        let channels = self.source.pick(&[1, 3, 16, 17, 32, 8, 24, 48]);
        let sizes = if self.source.once_in(4) { (20, 17) } else { (7, 9) };
        let shape =
            [1 + self.source.below(2), channels, 1 + self.source.below(sizes.0), 1 + self.source.below(sizes.1)];
        let x = self.numbers(self.floating, &shape);
        (self.input(x.clone()), x)
    }

    /// Windows along the axes from the third on: their sizes, attributes, and the sizes of the output.
    fn windows(&mut self, image: &[usize], dilates: bool) -> (Vec<usize>, Vec<AttributeProto>, Vec<usize>) {
        let (mut kernel, mut strides, mut dilations, mut begins, mut ends, mut sizes) =
            <(Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        for size in &image[2..] {
            let own = if self.source.once_in(6) { self.source.pick(&[5, 7]) } else { 1 + self.source.below(3) };
            let pads = [self.source.below(own), self.source.below(own)];
            let stride = self.source.pick(&[1, 1, 2]);
            let own = own.min(size + pads[0] + pads[1]);
            let reach = |dilation: usize| (own - 1) * dilation + 1;
            let dilation = if dilates && self.source.once_in(6) { 2 } else { 1 };
            let dilation = if reach(dilation) > size + pads[0] + pads[1] { 1 } else { dilation };
            sizes.push((size + pads[0] + pads[1] - reach(dilation)) / stride + 1);
            kernel.push(own);
            strides.push(stride as i64);
            dilations.push(dilation as i64);
            begins.push(pads[0] as i64);
            ends.push(pads[1] as i64);
        }
        let pads = [begins, ends].concat();
        let sides = kernel.iter().map(|size| *size as i64).collect();
        let mut attributes = vec![("kernel_shape", sides), ("strides", strides), ("pads", pads)];
        if dilates {
            attributes.push(("dilations", dilations));
        }
        let made = |(name, ints): (_, Vec<i64>)| AttributeProto { ints, ..attribute(name, AttributeType::Ints) };
        (kernel, attributes.into_iter().map(made).collect(), sizes)
    }

    /// A convolution, and what follows one.
    fn convolution(&mut self) {
        let (x, image) = self.image();
        let integers = self.source.once_in(2);
        let channels = image.shape[1];
        let groups = match self.source.below(8) {
            0 | 1 => channels,
            2 | 3 => self.source.pick(&[2, 3, 4, 8, 6]),
            _ => 1,
        };
        let groups = if channels % groups == 0 { groups } else { 1 };
        let (of_each, own) = (channels / groups, groups == channels && channels > 1);
        let filters = match groups {
            _ if own => channels,
            1 => self.source.pick(&[16, 1, 3, 17, 32, 8]),
            _ => groups * self.source.pick(&[of_each, of_each, 4, 8, 16, 1]),
        };
        let (kernel, mut attributes, sizes) = self.windows(&image.shape, true);
        attributes.push(int("group", groups as i64));
        let shape = [&[image.shape[0], filters][..], &sizes].concat();
        // The largest take long: of these, some.
        let size = shape.iter().chain(&kernel).product::<usize>() * of_each;
        if size > LARGEST || size > 8 * MOST && !self.source.once_in(8) {
            return;
        }
        let x = self.quantized(&x, &image.shape, integers);
        let w = self.weights(&[&[filters, of_each][..], &kernel].concat(), 0, integers);
        let mut inputs = vec![x, w];
        if self.source.once_in(2) {
            inputs.push(self.floats(&[filters]));
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let mut last = self.with("Conv", &inputs, attributes, self.floating, &shape);
        if self.source.once_in(4) {
            let of = [(); 4].map(|()| self.floats(&[filters]));
            let inputs = [&last, &of[0], &of[1], &of[2], &of[3]].map(String::as_str);
            last = self.then("BatchNormalization", &inputs, &shape);
        }
        if self.source.once_in(3) {
            let other = self.partner(self.floating, &shape);
            if common(&other.1.shape, &shape).as_ref() == Some(&shape) {
                last = self.then("Add", &[&last, &other.0], &shape);
            }
        }
        last = match self.source.below(5) {
            0 => self.then("Relu", &[&last], &shape),
            1 => self.then("HardSwish", &[&last], &shape),
            2 => {
                let bounds = [0.0, 6.0].map(|bound| self.number(bound));
                self.then("Clip", &[&last, &bounds[0], &bounds[1]], &shape)
            }
            3 => self.gated(&last, &shape),
            _ => last,
        };
        self.quantized(&last, &shape, integers);
    }

    fn pool(&mut self) {
        let (x, image) = self.image();
        let integers = self.source.once_in(2);
        let x = self.quantized(&x, &image.shape, integers);
        let (_, attributes, sizes) = self.windows(&image.shape, false);
        let shape = [&image.shape[..2], &sizes].concat();
        let ones = [&image.shape[..2], &vec![1; sizes.len()]].concat();
        let last = match self.source.below(4) {
            0 | 1 => self.with("MaxPool", &[&x], attributes, self.floating, &shape),
            2 => self.with("AveragePool", &[&x], attributes, self.floating, &shape),
            _ => self.then("GlobalAveragePool", &[&x], &ones),
        };
        let shape = self.plain(&last).shape;
        self.quantized(&last, &shape, integers);
    }

    /// `x * sigmoid(x)`, or Gelu by the error function.
    fn gate(&mut self) {
        let (a, x) = self.operand(&[self.floating], 0..5);
        let shape = x.shape;
        if self.source.once_in(2) {
            self.gated(&a, &shape);
            return;
        }
        let [root, one, half] = [std::f32::consts::SQRT_2, 1.0, 0.5].map(|number| self.number(number));
        let quotient = self.then("Div", &[&a, &root], &shape);
        let error = self.then("Erf", &[&quotient], &shape);
        let sum = self.then("Add", &[&error, &one], &shape);
        let product = self.then("Mul", &[&a, &sum], &shape);
        self.then("Mul", &[&product, &half], &shape);
    }

    /// LayerNormalization or RMSNormalization, decomposed.
    fn normalization(&mut self) {
        let (a, x) = self.operand(&[self.floating], 1..5);
        let (shape, last) = (x.shape.clone(), x.shape[x.shape.len() - 1]);
        if last == 0 {
            return;
        }
        let ones = [&shape[..shape.len() - 1], &[1]].concat();
        let axes = self.initializer(Plain::new(DType::Int64, &[1], vec![Num::Int(-1)]));
        let [two, epsilon] = [2.0, 1e-5].map(|number| self.number(number));
        let mut centred = a;
        if self.source.once_in(2) {
            let mean = self.then("ReduceMean", &[&centred, &axes], &ones);
            centred = self.then("Sub", &[&centred, &mean], &shape);
        }
        let squares = self.then("Pow", &[&centred, &two], &shape);
        let variance = self.then("ReduceMean", &[&squares, &axes], &ones);
        let sum = self.then("Add", &[&variance, &epsilon], &ones);
        let root = self.then("Sqrt", &[&sum], &ones);
        let normal = self.then("Div", &[&centred, &root], &shape);
        let [scale, bias] = [(); 2].map(|()| self.floats(&[last]));
        let scaled = self.then("Mul", &[&normal, &scale], &shape);
        self.then("Add", &[&scaled, &bias], &shape);
    }

    /// `softmax(q k * scale + mask) v`
    fn attention(&mut self) {
        let batch: Vec<usize> = (0..self.source.below(3)).map(|_| 1 + self.source.below(3)).collect();
        let [queries, keys, size, columns] = [(); 4].map(|()| 1 + self.source.below(9));
        let of = |rows: usize, columns: usize| [&batch[..], &[rows, columns]].concat();
        let [q, k, v] = [of(queries, size), of(keys, size), of(keys, columns)].map(|shape| {
            let x = self.numbers(self.floating, &shape);
            self.input(x)
        });
        let mut perm: Vec<i64> = (0..batch.len() as i64 + 2).collect();
        let last = perm.len() - 1;
        perm.swap(last, last - 1);
        let perm = AttributeProto { ints: perm, ..attribute("perm", AttributeType::Ints) };
        let turned = self.with("Transpose", &[&k], vec![perm], self.floating, &of(size, keys));
        let shape = of(queries, keys);
        let mut scores = self.then("MatMul", &[&q, &turned], &shape);
        let scale = self.number(0.3);
        match self.source.below(3) {
            0 => scores = self.then("Mul", &[&scores, &scale], &shape),
            1 => scores = self.then("Div", &[&scores, &scale], &shape),
            _ => {}
        }
        if self.source.once_in(2) {
            let from = self.source.below(shape.len());
            let dims: Vec<usize> =
                shape[from..].iter().map(|dim| if self.source.once_in(4) { 1 } else { *dim }).collect();
            let mask = self.numbers(self.floating, &dims);
            let mask = self.input(mask);
            scores = self.then("Add", &[&scores, &mask], &shape);
        }
        let weights = self.with("Softmax", &[&scores], vec![int("axis", -1)], self.floating, &shape);
        self.then("MatMul", &[&weights, &v], &of(queries, columns));
    }

    /// `f(a b + c)`, where `b` may be a vector and `c` a row of the output. Weights may be integers where `a` isn't.
    fn row_after_product(&mut self) {
        let (a, x) = self.operand(&[self.floating], 1..5);
        let integers = self.source.once_in(2);
        let (before, k) = (&x.shape[..x.shape.len() - 1], x.shape[x.shape.len() - 1]);
        let vector = self.source.once_in(3);
        let n = if vector { 1 } else { self.source.pick(&[3, 16, 17, 1, 40]) };
        let shape = if vector { before.to_vec() } else { [before, &[n]].concat() };
        if shape.iter().product::<usize>() > MOST {
            return;
        }
        let between = integers && !self.source.once_in(3);
        let a = self.quantized(&a, &x.shape, between);
        let b = if vector { self.weights(&[k], 0, integers) } else { self.weights(&[k, n], 1, integers) };
        let mut last = self.then("MatMul", &[&a, &b], &shape);
        if let Some(columns) = shape.last().filter(|_| !self.source.once_in(4)) {
            let dims = if self.source.once_in(4) && shape.len() > 1 { vec![1, *columns] } else { vec![*columns] };
            let row = self.numbers(self.floating, &dims);
            let row = if self.source.once_in(2) { self.input(row) } else { self.initializer(row) };
            last = self.then("Add", &[&last, &row], &shape);
        }
        if self.source.once_in(2) {
            let function = self.source.pick(&["Relu", "Tanh", "Sigmoid", "HardSwish"]);
            last = self.then(function, &[&last], &shape);
        }
        self.quantized(&last, &shape, between);
    }
}
