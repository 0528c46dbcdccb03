//! The machine's limits, measured on the spot.

use super::report::Machine;
use crate::failure::Failure;
use onnxref::{Model, Tensor, inputs};
use std::thread;
use std::time::{Duration, Instant};

/// Size of the buffer that is copied: larger than the caches.
const BUFFER: usize = 128 << 20;

/// Number of copies; the fastest counts.
const COPIES: usize = 6;

/// Sizes of the matrices that are multiplied. The next one is tried if the last was fast.
const SIZES: [usize; 4] = [128, 256, 512, 1024];
const FAST: Duration = Duration::from_millis(50);

/// Number of products of a size; the fastest counts.
const PRODUCTS: usize = 5;

impl Machine {
    /// Measures with so many threads.
    pub(super) fn measure(threads: usize) -> Result<Machine, Failure> {
        let (macs, size) = product(threads).map_err(Failure::run)?;
        Ok(Machine {
            processor: processor(),
            copy_bytes_per_second: copy(threads),
            copy_bytes: BUFFER,
            macs_per_second: macs,
            matrix_size: size,
        })
    }
}

/// Bytes read and written in a second by the fastest of several copies.
fn copy(threads: usize) -> f64 {
    // Pages that were never written may all be one.
    let (from, mut to) = (vec![1u8; BUFFER], vec![2u8; BUFFER]);
    let part = BUFFER.div_ceil(threads.max(1));
    let fastest = fastest(COPIES, || {
        thread::scope(|scope| {
            let mut parts = to.chunks_mut(part).zip(from.chunks(part));
            let own = parts.next();
            for (to, from) in parts {
                scope.spawn(move || to.copy_from_slice(from));
            }
            own.into_iter().for_each(|(to, from)| to.copy_from_slice(from));
        });
        std::hint::black_box(&to);
        Ok::<(), onnxref::Error>(())
    });
    fastest.map_or(0.0, |time| 2.0 * BUFFER as f64 / time.as_secs_f64())
}

/// Multiply-accumulates in a second of the library's own product of two square matrices, and their size.
fn product(threads: usize) -> onnxref::Result<(f64, usize)> {
    let model = Model::options().threads(threads).from_bytes(matmul())?;
    let mut best = (0.0, 0);
    for size in SIZES {
        let operand = Tensor::from_elements(&[size, size], vec![0.5f32; size * size])?;
        let time = fastest(PRODUCTS, || model.run(inputs![&operand, &operand]).map(drop))?;
        let rate = (size as f64).powi(3) / time.as_secs_f64();
        if rate > best.0 {
            best = (rate, size);
        }
        if time > FAST {
            break;
        }
    }
    Ok(best)
}

fn fastest<E>(times: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    let mut fastest = Duration::MAX;
    for _ in 0..times {
        let start = Instant::now();
        work()?;
        fastest = fastest.min(start.elapsed()).max(Duration::from_nanos(1));
    }
    Ok(fastest)
}

/// A model `y = MatMul(a, b)` of float32.
fn matmul() -> Vec<u8> {
    let float = field(2, &field(1, &[1 << 3, 1]));
    let value = |name: &[u8]| [field(1, name), float.clone()].concat();
    let node = [field(1, b"a"), field(1, b"b"), field(2, b"y"), field(4, b"MatMul")].concat();
    let ends = [field(11, &value(b"a")), field(11, &value(b"b")), field(12, &value(b"y"))].concat();
    let graph = [field(1, &node), field(2, b"product"), ends].concat();
    // IR version 8, opset 13.
    [vec![1 << 3, 8], field(7, &graph), field(8, &[2 << 3, 13])].concat()
}

/// A protobuf field of fewer than 128 bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, content.len() as u8], content].concat()
}

/// The processor's name, where the system tells.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_runs() {
        let model = Model::from_bytes(matmul()).unwrap();
        let (a, b) = (ndarray(&[1.0, 2.0, 3.0, 4.0]), ndarray(&[0.0, 1.0, 1.0, 0.0]));
        let outputs = model.run(inputs![&a, &b]).unwrap();
        assert_eq!(outputs["y"].as_slice::<f32>().unwrap(), [2.0, 1.0, 4.0, 3.0]);
    }

    fn ndarray(elements: &[f32]) -> Tensor {
        Tensor::from_elements(&[2, 2], elements.to_vec()).unwrap()
    }
}
