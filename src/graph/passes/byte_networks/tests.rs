//! Networks of integers of 8 bits: in blocks and in planes, folded and as they are written.

use super::testing::{run, stands_for};
use crate::dtype::DType;
use crate::error::Kind;
use crate::graph::testing::{Builder, load, load_fast};
use crate::graph::{Draft, Graph, Slots};
use crate::limits::Limits;
use crate::operator::{Attribute, Context, Feeds};
use crate::ops::testing::tensor;
use crate::tensor::Tensor;
use crate::value::{Dim, Fact, Value};
use kernels::gemm::blocks::{integers_pay, pays};
use kernels::testing::at_each_level;

struct Network {
    builder: Builder,
    /// The type of images.
    dtype: DType,
}

impl Network {
    fn constant(&mut self, name: &str, value: Value) {
        let id = self.builder.id(name);
        self.builder.draft.constant(id, Fact::constant(value), None);
    }

    fn bytes(&mut self, name: &str, dtype: DType, shape: &[usize], bytes: Vec<u8>) {
        self.constant(name, Tensor::new(dtype, shape, bytes).unwrap().into());
    }

    /// `y` is `x` quantized and dequantized again.
    fn quantize(&mut self, x: &str, (scale, zero): (f32, u8), y: &str) {
        let [s, z, q] = ["scale", "zero", "integers"].map(|part| format!("{y}.{part}"));
        self.constant(&s, tensor(&[], [scale]));
        let zero = if self.dtype == DType::Int8 { zero ^ 0x80 } else { zero };
        self.bytes(&z, self.dtype, &[], vec![zero]);
        self.builder.op("QuantizeLinear", &[x, &s, &z], &q);
        self.builder.op("DequantizeLinear", &[&q, &s, &z], y);
    }

    /// `y` is the convolution of `x` with filters of a shape and a bias, quantized, and maybe no less than 0.
    fn convolve(&mut self, x: &str, filters: [usize; 4], stride: i64, relu: bool, to: (f32, u8), y: &str) {
        let [w, q, s, z, b, sums] =
            ["w", "integers.w", "scale.w", "zero.w", "b", "sums"].map(|part| format!("{y}.{part}"));
        let (count, steps): (usize, usize) = (filters[0], filters[1..].iter().product());
        let bytes: Vec<u8> = (0..count * steps).map(|at| (at * 37 % 251) as u8).collect();
        self.bytes(&q, DType::Int8, &filters, bytes);
        let scale = |filter: usize| (1.0 + (filter % 5) as f32 / 4.0) / 90.0 / (steps as f32).sqrt();
        self.constant(&s, tensor(&[count], (0..count).map(scale).collect::<Vec<f32>>()));
        self.bytes(&z, DType::Int8, &[count], vec![0; count]);
        self.constant(&b, tensor(&[count], (0..count).map(|at| (at % 7) as f32 / 9.0 - 0.3).collect::<Vec<f32>>()));
        self.builder.op_with("DequantizeLinear", vec![("axis".into(), Attribute::Int(0))], &[&q, &s, &z], &w);
        let pad = (filters[2] / 2) as i64;
        let group = if filters[1] == 1 { count as i64 } else { 1 };
        let attributes = vec![
            ("pads".into(), Attribute::Ints(vec![pad; 4])),
            ("strides".into(), Attribute::Ints(vec![stride; 2])),
            ("group".into(), Attribute::Int(group)),
        ];
        self.builder.op_with("Conv", attributes, &[x, &w, &b], &sums);
        let relued = format!("{y}.relu");
        if relu {
            self.builder.op("Relu", &[&sums], &relued);
        }
        self.quantize(if relu { &relued } else { &sums }, to, y);
    }
}

/// What convolutional networks have, between integers of a type.
fn network(dtype: DType) -> Draft {
    let mut builder = Builder::new();
    let dims = [Dim::Symbol("N".into()), Dim::Fixed(3), Dim::Fixed(17), Dim::Fixed(15)];
    builder.shaped("x", Some(DType::Float.into()), Some(dims.to_vec()));
    let mut net = Network { builder, dtype };
    net.quantize("x", (0.02, 120), "image");
    net.convolve("image", [20, 3, 3, 3], 2, true, (0.01, 0), "stem");
    let pool = [("kernel_shape", vec![3; 2]), ("pads", vec![1; 4])];
    let pool = pool.map(|(name, list)| (name.into(), Attribute::Ints(list)));
    net.builder.op_with("MaxPool", pool.into(), &["stem"], "pool.floats");
    net.quantize("pool.floats", (0.01, 0), "pool");
    net.convolve("pool", [20, 1, 5, 5], 1, false, (0.02, 110), "alone");
    net.builder.op("HardSigmoid", &["alone"], "sigmoid.floats");
    net.quantize("sigmoid.floats", (1.0 / 255.0, 0), "sigmoid");
    net.builder.op("Mul", &["alone", "sigmoid"], "swish.floats");
    net.quantize("swish.floats", (0.01, 30), "swish");
    net.builder.op("GlobalAveragePool", &["swish"], "mean.floats");
    net.quantize("mean.floats", (0.01, 30), "mean");
    net.convolve("mean", [20, 20, 1, 1], 1, false, (0.02, 128), "squeeze");
    net.builder.op("HardSigmoid", &["squeeze"], "gate.floats");
    net.quantize("gate.floats", (1.0 / 255.0, 0), "gate");
    net.builder.op("Mul", &["gate", "swish"], "gated.floats");
    net.quantize("gated.floats", (0.007, 40), "gated");
    net.convolve("gated", [20, 20, 1, 1], 1, false, (0.015, 128), "back");
    net.builder.op("Add", &["back", "pool"], "residual.floats");
    net.quantize("residual.floats", (0.02, 90), "residual");
    net.convolve("residual", [40, 20, 1, 1], 2, true, (0.02, 0), "wide");
    net.convolve("wide", [33, 40, 3, 3], 1, false, (0.02, 128), "last");
    net.builder.op("Identity", &["last"], "y");
    net.builder.output_named("gated");
    net.builder.output("y")
}

fn feed(images: usize) -> [Value; 1] {
    let count = images * 3 * 17 * 15;
    [tensor(&[images, 3, 17, 15], (0..count).map(|at| (at * 7 % 257) as f32 / 60.0 - 2.1).collect::<Vec<f32>>())]
}

/// The nodes with values in blocks.
fn laid(graph: &Graph) -> usize {
    let layouts = graph.nodes.iter().filter_map(|node| match &node.operator {
        crate::graph::Runs::Fused(fused) => fused.operator.layout(),
        _ => None,
    });
    layouts.filter(|layout| layout.output.is_some()).count()
}

#[test]
fn networks_in_blocks() {
    for dtype in [DType::Uint8, DType::Int8] {
        let (graph, plain) = (load_fast(network(dtype)).unwrap(), load(network(dtype), false).unwrap());
        for images in [0, 1, 2] {
            let got = run(&graph, &feed(images), None);
            // Processors of other levels have no blocks.
            at_each_level(|| assert_eq!(run(&load_fast(network(dtype)).unwrap(), &feed(images), None), got));
            let want = run(&plain, &feed(images), None);
            // Unless somebody asks for more, no bit is another.
            at_each_level(|| assert_eq!(run(&load(network(dtype), true).unwrap(), &feed(images), None), want));
            for (got, want) in got.iter().zip(&want) {
                let [got, want] = [got, want].map(|value| value.tensor().unwrap().as_slice::<f32>().unwrap());
                assert_eq!(got.len(), want.len());
                // Integers between are off by one at most, in few places.
                let far = got.iter().zip(want).filter(|(got, want)| (*got - *want).abs() > 0.0201).count();
                let apart = got.iter().zip(want).filter(|(got, want)| got != want).count();
                assert!(far == 0 && apart * 20 <= got.len(), "{apart} of {} differ, {far} of them much", got.len());
            }
        }
        if integers_pay() {
            assert_eq!(laid(&load(network(dtype), true).unwrap()), LAID);
        }
        if pays() {
            assert_eq!(laid(&graph), LAID);
            // A table: nobody sees what is between.
            let table = |parts: &Vec<String>| {
                ["sigmoid.floats", "swish.floats"].iter().all(|name| parts.iter().any(|part| part == name))
            };
            assert!(stands_for(&graph).iter().any(table), "{:?}", stands_for(&graph));
            let mean = ["swish", "mean.floats", "mean.integers"];
            assert!(stands_for(&graph).iter().any(|parts| *parts == mean), "{:?}", stands_for(&graph));
        }
    }
}

/// Means of the channels of integers, as they are written and as integers: also of an image without places, which has none.
#[test]
fn means_of_planes() {
    for dtype in [DType::Uint8, DType::Int8] {
        for dims in [vec![2, 5, 7, 9], vec![3, 2, 40], vec![1, 17, 2, 3, 4], vec![2, 3, 0], vec![2, 3]] {
            let draft = || {
                let mut builder = Builder::new();
                builder.shaped("x", Some(dtype.into()), Some(dims.iter().map(|size| Dim::Fixed(*size)).collect()));
                let mut net = Network { builder, dtype };
                net.constant("scale", tensor(&[], [0.013f32]));
                net.bytes("zero", dtype, &[], vec![77]);
                net.builder.op("DequantizeLinear", &["x", "scale", "zero"], "floats");
                net.builder.op("GlobalAveragePool", &["floats"], "mean");
                net.quantize("mean", (0.0041, 130), "y");
                net.builder.output("y")
            };
            let bytes = (0..dims.iter().product::<usize>()).map(|at| (at * at * 31 % 253) as u8).collect::<Vec<u8>>();
            let feeds = [Tensor::new(dtype, &dims, bytes).unwrap().into()];
            let (graph, want) = (load(draft(), true).unwrap(), run(&load(draft(), false).unwrap(), &feeds, None));
            assert!(stands_for(&graph).iter().any(|parts| *parts == ["floats", "mean", "y.integers"]));
            at_each_level(|| assert_eq!(run(&graph, &feeds, None), want, "{dtype} {dims:?}"));
        }
    }
}

/// Values in blocks of the network.
const LAID: usize = 8;

/// A run with little memory gives the same, or fails as it must.
#[test]
fn little_memory() {
    let (graph, mut outcomes) = (load_fast(network(DType::Int8)).unwrap(), [0, 0]);
    let want = run(&graph, &feed(1), None);
    for run_bytes in (1..64).map(|step| step * 4096) {
        let limits = Limits { run_bytes, ..Limits::default() };
        let graph = load_fast(network(DType::Int8)).unwrap();
        let (feeds, mut slots, context) = (feed(1).map(Some), Slots::default(), Context::new(1, limits));
        match graph.run(Feeds::Own(&feeds), &mut slots, &context, None) {
            Ok(()) => {
                let values = (0..want.len()).map(|k| graph.take(k, Feeds::Own(&feeds), &mut slots).unwrap());
                assert_eq!(values.collect::<Vec<Value>>(), want);
                outcomes[0] += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Limit, "{error}");
                outcomes[1] += 1;
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}
