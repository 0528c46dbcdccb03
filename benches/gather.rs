//! Gather and GatherElements compared with a copy of the output's bytes and the plain loop. Also measures loading.
//!
//! `cargo bench -- --help`; how it measures, and results: `benches/README.md`.

#![allow(missing_docs, unreachable_pub, unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../tests/common/mod.rs"]
mod common;
mod harness;
mod load;
mod plain;

use bytes::Bytes;
use common::proto::{GraphProto, ValueInfoProto};
use harness::{Bench, Contender};
use onnxref::DType::{self, Bool, Double, Float, Float16, Int8, Int32, Int64, String as Text, Uint8};
use onnxref::{Dim, Inputs, Model, Tensor};
use std::hint::black_box;
use std::path::Path;

/// One case to measure: a node and its feeds.
#[derive(Clone, Copy)]
struct Cell {
    name: &'static str,
    op: &'static str,
    dtype: DType,
    shape: &'static [usize],
    axis: usize,
    index: DType,
    indices: &'static [usize],
    order: Order,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Random,
    Equal,
    Sorted,
    Reversed,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Data and indices are fed.
    Fed,
    /// The data is an initializer.
    Constant,
    /// Other indices are fed each time, so that the rows are not in the caches.
    Cold,
    /// 100 nodes in a row, the indices an initializer.
    Chain,
}

const CHAIN: usize = 100;

#[rustfmt::skip] // a table
const CELLS: &[Cell] = &[
    gather("embedding/128 ids",          Float,   &[30522, 768],        0, Int64, &[128]),
    gather("embedding/128 ids, int32",   Float,   &[30522, 768],        0, Int32, &[128]),
    gather("embedding/128 ids, cold",    Float,   &[30522, 768],        0, Int64, &[128]).form(Form::Cold),
    gather("embedding/128 ids, constant", Float,  &[30522, 768],        0, Int64, &[128]).form(Form::Constant),
    gather("embedding/1 id",             Float,   &[30522, 768],        0, Int64, &[1]),
    gather("embedding/8192 ids",         Float,   &[30522, 768],        0, Int64, &[8192]),
    gather("embedding/8192 ids, int32",  Float,   &[30522, 768],        0, Int32, &[8192]),
    gather("embedding/16384 ids",        Float,   &[30522, 768],        0, Int64, &[16384]),
    gather("embedding/f16, 1024 ids",    Float16, &[50257, 768],        0, Int64, &[1024]),
    gather("embedding/i8, 1024 ids",     Int8,    &[30522, 768],        0, Int64, &[1024]),
    gather("rows/3 bytes",               Uint8,   &[1_000_000, 3],      0, Int64, &[100_000]),
    gather("rows/12 bytes",              Float,   &[1_000_000, 3],      0, Int64, &[100_000]),
    gather("rows/64 bytes",              Float,   &[1_000_000, 16],     0, Int64, &[100_000]),
    gather("rows/64 bytes, int32",       Float,   &[1_000_000, 16],     0, Int32, &[100_000]),
    gather("rows/100 bytes",             Float,   &[1_000_000, 25],     0, Int64, &[100_000]),
    gather("rows/axis 1 of 3",           Float,   &[64, 1024, 64],      1, Int64, &[256]),
    gather("rows/axis 2 of 5, 32 bytes", Float,   &[8, 16, 128, 2, 4],  2, Int64, &[64]),
    gather("rows/axis 2 of 5, 512 bytes", Float,  &[4, 8, 64, 8, 16],   2, Int64, &[32]),
    gather("elements/u8",                Uint8,   &[1_000_000],         0, Int64, &[1_000_000]),
    gather("elements/u8, int32",         Uint8,   &[1_000_000],         0, Int32, &[1_000_000]),
    gather("elements/u8, 10 million",    Uint8,   &[1_000_000],         0, Int64, &[10_000_000]),
    gather("elements/bool",              Bool,    &[1_000_000],         0, Int64, &[1_000_000]),
    gather("elements/f32",               Float,   &[1_000_000],         0, Int64, &[1_000_000]),
    gather("elements/f32, int32",        Float,   &[1_000_000],         0, Int32, &[1_000_000]),
    gather("elements/f32, all equal",    Float,   &[1_000_000],         0, Int64, &[1_000_000]).order(Order::Equal),
    gather("elements/f32, sorted",       Float,   &[1_000_000],         0, Int64, &[1_000_000]).order(Order::Sorted),
    gather("elements/f32, reversed",     Float,   &[1_000_000],         0, Int64, &[1_000_000]).order(Order::Reversed),
    gather("elements/f64",               Double,  &[1_000_000],         0, Int64, &[1_000_000]),
    gather("elements/strings, 10,000",   Text,    &[10_000],            0, Int64, &[10_000]),
    gather("last axis/1024 ids",         Float,   &[1024, 1024],        1, Int64, &[1024]),
    gather("last axis/1024 ids, int32",  Float,   &[1024, 1024],        1, Int32, &[1024]),
    gather("last axis/64 ids",           Float,   &[1024, 1024],        1, Int64, &[64]),
    gather("last axis/u8, 1024 ids",     Uint8,   &[1024, 1024],        1, Int64, &[1024]),
    gather_elements("GatherElements/axis 0 of 2",        Float, &[1024, 1024],   0, Int64),
    gather_elements("GatherElements/axis 1 of 2",        Float, &[1024, 1024],   1, Int64),
    gather_elements("GatherElements/axis 1 of 2, int32", Float, &[1024, 1024],   1, Int32),
    gather_elements("GatherElements/axis 1 of 2, u8",    Uint8, &[1024, 1024],   1, Int64),
    gather_elements("GatherElements/axis 1 of 3",        Float, &[64, 128, 256], 1, Int64),
    gather_elements("GatherElements/axis 1 of 4",        Float, &[64, 64, 16, 16], 1, Int64),
    gather_elements("GatherElements/axis 0 of 1",        Float, &[1_000_000],    0, Int64),
    gather("small/one index",            Int64,   &[4096],              0, Int64, &[]),
    gather_elements("small/GatherElements 3 x 3", Float, &[3, 3],       1, Int64),
    gather("small/chain of 100 nodes",   Int64,   &[16],                0, Int64, &[16]).form(Form::Chain),
];

const fn gather(
    name: &'static str,
    dtype: DType,
    shape: &'static [usize],
    axis: usize,
    index: DType,
    indices: &'static [usize],
) -> Cell {
    Cell { name, op: "Gather", dtype, shape, axis, index, indices, order: Order::Random, form: Form::Fed }
}

const fn gather_elements(name: &'static str, dtype: DType, shape: &'static [usize], axis: usize, index: DType) -> Cell {
    Cell { op: "GatherElements", ..gather(name, dtype, shape, axis, index, shape) }
}

impl Cell {
    const fn order(self, order: Order) -> Cell {
        Cell { order, ..self }
    }

    const fn form(self, form: Form) -> Cell {
        Cell { form, ..self }
    }

    fn nodes(&self) -> usize {
        if self.form == Form::Chain { CHAIN } else { 1 }
    }

    fn data(&self, random: &mut Random) -> Tensor {
        let len: usize = self.shape.iter().product();
        if self.dtype == Text {
            let name = |k| if k % 2 == 0 { format!("a_longer_token_string_number_{k}") } else { format!("token{k}") };
            return Tensor::from_strings(self.shape, (0..len).map(name)).unwrap();
        }
        // Floats of 0.5 to 1 and small integers: some runtimes change NaN, subnormal numbers and large integers.
        let (keep, set) = match self.dtype {
            Bool => (0x0101_0101_0101_0101, 0),
            Float16 => (0x83ff_83ff_83ff_83ff, 0x3800_3800_3800_3800),
            Float => (0x807f_ffff_807f_ffff, 0x3f00_0000_3f00_0000),
            Double => (0x800f_ffff_ffff_ffff, 0x3fe0_0000_0000_0000),
            Int64 => (0x7f, 0),
            _ => (!0, 0),
        };
        let words = (0..(len * self.dtype.size()).div_ceil(8)).map(|_| random.next() & keep | set).collect();
        words_tensor(self.dtype, self.shape, words)
    }

    fn indices(&self, random: &mut Random) -> Tensor {
        let (count, size) = (self.indices.iter().product(), self.shape[self.axis] as u64);
        let mut values: Vec<u64> = (0..count).map(|_| random.next() % size).collect();
        match self.order {
            Order::Random => {}
            Order::Equal => values.fill(size / 2),
            Order::Sorted => values.sort(),
            Order::Reversed => values.sort_by(|a, b| b.cmp(a)),
        }
        if self.index == Int32 {
            values = values.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 32).collect();
        }
        words_tensor(self.index, self.indices, values)
    }

    fn model(&self, data: &Tensor, indices: &Tensor) -> Vec<u8> {
        let axis = vec![common::int("axis", self.axis as i64)];
        let mut graph = common::one_node_graph(self.op, axis, &[("data", data), ("indices", indices)], self.dtype);
        graph.input = vec![input("data", data), input("indices", indices)];
        match self.form {
            Form::Fed | Form::Cold => {}
            Form::Constant => common::fix(&mut graph, "data", data),
            Form::Chain => graph = chain(CHAIN, data, indices),
        }
        common::model(17, 8, graph)
    }

    fn measure(&self, bench: &mut Bench) {
        let mut random = Random(7);
        let data = self.data(&mut random);
        let sets = if self.form == Form::Cold { 64 } else { 1 };
        let sets: Vec<Tensor> = (0..sets).map(|_| self.indices(&mut random)).collect();
        let bytes = self.model(&data, &sets[0]);
        if let Some(folder) = bench.export() {
            self.export(&folder.join(self.name.replace('/', "-")), &bytes, &data, &sets).unwrap();
        }

        let alone = Model::options().threads(1).from_bytes(bytes.clone()).unwrap();
        let model = Model::from_bytes(bytes).unwrap();
        let feeds: Vec<(&str, &Tensor)> = [("data", &data), ("indices", &sets[0])]
            .into_iter()
            .filter(|(name, _)| model.inputs().any(|input| input.name == *name))
            .collect();
        let want = model.run(feeds.iter().copied().collect()).unwrap()["output"].clone();
        let facts = serde_json::json!({
            "op": self.op,
            "axis": self.axis,
            "nodes": self.nodes(),
            "feeds": feeds.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "bytes": want.bytes().len(),
            "threads": std::thread::available_parallelism().map_or(1, usize::from),
        });

        let (from, mut to) = (want.bytes().to_vec(), want.bytes().to_vec());
        let memcpy = || (0..self.nodes()).for_each(|_| black_box(&mut to).copy_from_slice(black_box(&from)));
        let mut set = sets.iter().cycle();
        let run = || {
            let mut inputs: Inputs<'_> = feeds.iter().copied().collect();
            if sets.len() > 1 {
                inputs = Inputs::new().with("data", &data).with("indices", set.next().unwrap());
            }
            drop(black_box(model.run(inputs).unwrap()));
        };
        let contenders = vec![
            Contender::new("loop", self.plain(&data, &sets, &want)),
            Contender::new("memcpy", memcpy),
            runner("onnxref", &alone, &feeds, &sets),
            runner("onnxref_threads", &model, &feeds, &sets),
            Contender::new("onnxref_run", run),
        ];
        bench.measure(self.name, facts, contenders);
    }

    /// The plain loop with the same inputs.
    fn plain<'a>(&self, data: &'a Tensor, sets: &'a [Tensor], want: &'a Tensor) -> Box<dyn FnMut() + 'a> {
        let (size, row) = (self.shape[self.axis], self.shape[self.axis + 1..].iter().product());
        let elements = self.op == "GatherElements";
        plain::Work { elements, size, row, nodes: self.nodes(), data, sets, want }.prepare()
    }

    /// Writes the model and its inputs for other programs.
    fn export(&self, folder: &Path, model: &[u8], data: &Tensor, sets: &[Tensor]) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("model.onnx"), model)?;
        std::fs::write(folder.join("data.npy"), npy(data))?;
        for (k, indices) in sets.iter().enumerate() {
            std::fs::write(folder.join(format!("indices-{k:02}.npy")), npy(indices))?;
        }
        Ok(())
    }
}

/// A runner of a model, all inputs fed.
fn runner<'m>(name: &'static str, model: &'m Model, feeds: &[(&str, &Tensor)], sets: &'m [Tensor]) -> Contender<'m> {
    let mut runner = model.runner();
    for &(name, tensor) in feeds {
        runner.feed(name, tensor).unwrap();
    }
    let mut set = sets.iter().cycle();
    Contender::new(name, move || {
        if sets.len() > 1 {
            runner.feed("indices", set.next().unwrap()).unwrap();
        }
        runner.run().unwrap();
    })
}

/// An input declared with a shape, which some runtimes need.
fn input(name: &str, tensor: &Tensor) -> ValueInfoProto {
    let dims: Vec<Dim> = tensor.shape().iter().map(|&dim| Dim::Fixed(dim)).collect();
    common::value(name, tensor.dtype(), Some(&dims))
}

/// A chain of Gathers, all with the same indices.
fn chain(nodes: usize, data: &Tensor, indices: &Tensor) -> GraphProto {
    let name = |k| match k {
        0 => "data".to_string(),
        k if k == nodes => "output".to_string(),
        k => format!("step.{k}"),
    };
    GraphProto {
        name: Some("graph".into()),
        node: (0..nodes).map(|k| common::node("Gather", &[&name(k), "indices"], &[&name(k + 1)], vec![])).collect(),
        input: vec![input("data", data)],
        output: vec![common::value("output", data.dtype(), None)],
        initializer: vec![common::initializer("indices", indices)],
        ..Default::default()
    }
}

/// A tensor with the bytes of 64-bit words, so that they are aligned.
fn words_tensor(dtype: DType, shape: &[usize], words: Vec<u64>) -> Tensor {
    struct Words(Vec<u64>);
    impl AsRef<[u8]> for Words {
        fn as_ref(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }
    }
    let len = shape.iter().product::<usize>() * dtype.size();
    Tensor::new(dtype, shape, Bytes::from_owner(Words(words)).slice(..len)).unwrap()
}

/// The bytes of a NumPy file.
fn npy(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = tensor.bytes().to_vec();
    let kind = match tensor.dtype() {
        Text => {
            let longest = tensor.strings().unwrap().map(str::len).max().unwrap_or(1);
            let padded = |s: &str| s.bytes().chain(std::iter::repeat(0)).take(longest).collect::<Vec<u8>>();
            bytes = tensor.strings().unwrap().flat_map(padded).collect();
            format!("|S{longest}")
        }
        Bool => "|b1".to_string(),
        Float | Double | Float16 => format!("<f{}", tensor.dtype().size()),
        Uint8 => "|u1".to_string(),
        _ => format!("<i{}", tensor.dtype().size()),
    };
    let shape: String = tensor.shape().iter().map(|dim| format!("{dim}, ")).collect();
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    let header = format!("{header:<117}\n"); // 128 bytes with what comes before
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(bytes);
    file
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn main() {
    let mut bench = Bench::from_args();
    for cell in CELLS {
        if bench.wants(cell.name) {
            cell.measure(&mut bench);
        }
    }
    load::measure(&mut bench);
}
