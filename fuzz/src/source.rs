//! Choices drawn from bytes. Once the bytes are used up, it always takes the first choice.

use crate::proto::TensorProto;
use arbitrary::Unstructured;
use onnxref::{DType, Tensor};

pub struct Source<'a>(Unstructured<'a>);

impl<'a> Source<'a> {
    pub fn new(bytes: &'a [u8]) -> Source<'a> {
        Source(Unstructured::new(bytes))
    }

    pub fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    pub fn word(&mut self) -> i64 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// A number below `end`, which is at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        self.byte() as usize % end.max(1)
    }

    /// True once in that many times, on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    pub fn text(&mut self) -> String {
        let len = self.below(12);
        let bytes: Vec<u8> = (0..len).map(|_| self.byte()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub fn dim(&mut self) -> usize {
        self.pick(&[2, 1, 3, 2, 4, 3, 1, 0, 5, 2, 3, 2, 7, 9, 17, 33])
    }

    /// Dimensions with at most that many elements.
    pub fn dims(&mut self, most: usize, elements: usize) -> Vec<usize> {
        let rank = self.below(most + 1);
        let mut dims: Vec<usize> = (0..rank).map(|_| self.dim()).collect();
        fit(&mut dims, elements);
        dims
    }

    /// A number that may be an axis of a few dimensions.
    pub fn axis(&mut self) -> i64 {
        match self.below(32) {
            31 => self.word(),
            30 => self.pick(&[i64::MIN, i64::MAX, 1 << 32, -(1 << 32), 64, -65]),
            n => n as i64 % 7 - 3,
        }
    }

    /// A number that may be an index into an axis of `size`, and nearly always is.
    pub fn index(&mut self, size: usize, wrong: bool) -> i64 {
        let s = size as i64;
        let byte = self.byte();
        match byte {
            250..=255 if wrong => match byte {
                250 => s,
                251 => -s - 1,
                252 => i64::MAX,
                253 => i64::MIN,
                254 => 1 << 32,
                _ => self.word(),
            },
            _ if size == 0 => 0,
            _ => i64::from(byte) % (2 * s) - s,
        }
    }

    /// A tensor of a type and shape. Integers are small numbers.
    pub fn tensor(&mut self, dtype: DType, dims: &[usize]) -> Tensor {
        let count: usize = dims.iter().product();
        let seed = self.byte();
        if dtype == DType::String {
            let strings = (0..count).map(|k| format!("{}{}", k, &"é\0"[..usize::from(seed & 2)]));
            return Tensor::from_strings(dims, strings).expect("as many as the shape takes");
        }
        let mut bytes = Vec::with_capacity(count * dtype.size());
        for k in 0..count {
            match dtype {
                DType::Int64 => bytes.extend(self.index(3, seed > 200).to_le_bytes()),
                DType::Int32 => bytes.extend((self.index(3, seed > 200) as i32).to_le_bytes()),
                _ => bytes.extend(element(dtype, k, seed)),
            }
        }
        Tensor::new(dtype, dims, bytes).expect("bytes of the type")
    }

    /// The message of a tensor; now and then with something wrong.
    pub fn message(&mut self, name: &str, tensor: &Tensor) -> TensorProto {
        use prost::Message;
        let mut proto = TensorProto::decode(tensor.to_proto_bytes(name).as_slice()).expect("what was encoded");
        match self.below(64) {
            57 => proto.raw_data = None,
            58 => proto.raw_data = Some(vec![0; self.below(20)].into()),
            59 => proto.float_data = vec![1.0; self.below(4)],
            60 => proto.dims.push(self.axis()),
            61 => proto.data_type = Some(self.below(32) as i32 - 1),
            62 => proto.data_location = Some(self.below(3) as i32),
            63 => (proto.raw_data, proto.int64_data) = (None, vec![1; tensor.len()]),
            _ => {}
        }
        proto
    }
}

/// An element that says which one it is.
pub fn element(dtype: DType, k: usize, seed: u8) -> Vec<u8> {
    let mix = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(seed) << 32);
    let wide = (u128::from(mix) << 64 | u128::from(mix.rotate_left(17))).to_le_bytes();
    let low = wide[0];
    match dtype {
        DType::Bool => vec![low & 1],
        DType::Uint4 | DType::Float4e2m1 => vec![low & 15],
        DType::Uint2 => vec![low & 3],
        DType::Int4 => vec![((low << 4).cast_signed() >> 4).cast_unsigned()],
        DType::Int2 => vec![((low << 6).cast_signed() >> 6).cast_unsigned()],
        DType::Float6e2m3 | DType::Float6e3m2 => vec![low & 63],
        _ => wide[..dtype.size()].to_vec(),
    }
}

/// Halves the largest dimension until there are few enough elements.
pub fn fit(dims: &mut [usize], elements: usize) {
    while dims.iter().product::<usize>() > elements {
        if let Some(largest) = dims.iter_mut().max() {
            *largest /= 2;
        }
    }
}
