//! Tensors as plain lists, walked position by position, for written-out equations.

use onnxref::{DType, Tensor};
use std::fmt;
use std::ops::Range;

/// A tensor as a list of elements in row-major order, each of them its bytes.
#[derive(Clone)]
pub struct Plain {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub elements: Vec<Vec<u8>>,
}

impl Plain {
    /// A tensor whose elements come from their positions.
    pub fn fill<'a>(dtype: DType, shape: Vec<usize>, element: impl Fn(&[usize]) -> &'a [u8]) -> Plain {
        let elements = positions(&shape).iter().map(|position| element(position).to_vec()).collect();
        Plain { dtype, shape, elements }
    }

    /// Any bits: among floats there are NaNs of many kinds and both zeros.
    pub fn random(dtype: DType, shape: Vec<usize>, random: &mut Random) -> Plain {
        let elements = positions(&shape).iter().map(|_| random.element(dtype)).collect();
        Plain { dtype, shape, elements }
    }

    pub fn at(&self, position: &[usize]) -> &[u8] {
        &self.elements[place(&self.shape, position)]
    }

    pub fn tensor(&self) -> Tensor {
        if self.dtype == DType::String {
            let strings = self.elements.iter().map(|bytes| std::str::from_utf8(bytes).unwrap());
            Tensor::from_strings(&self.shape, strings).unwrap()
        } else {
            Tensor::new(self.dtype, &self.shape, self.elements.concat()).unwrap()
        }
    }

    pub fn assert_is(&self, tensor: &Tensor) {
        assert_eq!((tensor.dtype(), tensor.shape()), (self.dtype, &self.shape[..]));
        if self.dtype == DType::String {
            assert!(tensor.strings().unwrap().map(str::as_bytes).eq(&self.elements), "{tensor:?} is not {self:?}");
        } else {
            assert!(tensor.bytes() == self.elements.concat(), "{tensor:?} is not {self:?}");
        }
    }
}

impl fmt::Debug for Plain {
    /// The first elements, as a failed case may have thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:02x?}", self.dtype, self.shape, &self.elements[..self.elements.len().min(64)])
    }
}

/// Indices of any integer type.
#[derive(Clone)]
pub struct Indices {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub values: Vec<i128>,
}

impl Indices {
    /// The entry of an axis of `size` that the index at a position names, if there is one.
    pub fn entry(&self, position: &[usize], size: usize) -> Option<usize> {
        let value = self.values[place(&self.shape, position)];
        let entry = if value < 0 { value + size as i128 } else { value };
        usize::try_from(entry).ok().filter(|entry| *entry < size)
    }

    /// The position of the index at a place in row-major order.
    pub fn position(&self, at: usize) -> Vec<usize> {
        positions(&self.shape).swap_remove(at)
    }

    /// The index at a place as errors write it: `indices[0, 2] = 5`, and `indices = 5` for a scalar.
    pub fn text(&self, at: usize) -> String {
        let position = if self.shape.is_empty() { String::new() } else { format!("{:?}", self.position(at)) };
        format!("indices{position} = {}", self.values[at])
    }

    pub fn tensor(&self) -> Tensor {
        let mut bytes = Vec::new();
        for value in &self.values {
            assert!(values(self.dtype).contains(value), "{value} is not a valid {}", self.dtype);
            bytes.extend(&value.to_le_bytes()[..self.dtype.size()]);
        }
        Tensor::new(self.dtype, &self.shape, bytes).unwrap()
    }
}

impl fmt::Debug for Indices {
    /// As of [`Plain`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.dtype, self.shape, &self.values[..self.values.len().min(64)])
    }
}

/// The values that an integer type has.
pub fn values(dtype: DType) -> Range<i128> {
    let all = 1i128 << dtype.bits();
    match dtype {
        DType::Uint8 | DType::Uint16 | DType::Uint32 | DType::Uint64 => 0..all,
        _ => -all / 2..all / 2,
    }
}

/// Every position of a tensor of a shape, in row-major order: the last coordinate moves fastest.
fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut positions = vec![vec![]];
    for &dim in shape {
        positions = positions.iter().flat_map(|p| (0..dim).map(|c| [p.as_slice(), &[c]].concat())).collect();
    }
    positions
}

/// The place of a position in row-major order.
fn place(shape: &[usize], position: &[usize]) -> usize {
    assert_eq!(shape.len(), position.len());
    assert!(position.iter().zip(shape).all(|(c, dim)| c < dim), "{position:?} lies outside of {shape:?}");
    position.iter().zip(shape).fold(0, |place, (c, dim)| place * dim + c)
}

/// Numbers that look random, the same for the same seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which may not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Any bits that are an element of the type.
    pub fn element(&mut self, dtype: DType) -> Vec<u8> {
        const PIECES: [&str; 6] = ["a", "bc", "é", "漢", "🙂", "\0"];
        match (dtype, dtype.bits()) {
            (DType::String, _) => (0..self.below(8)).flat_map(|_| PIECES[self.below(6)].bytes()).collect(),
            (DType::Bool, _) => vec![self.below(2) as u8],
            (DType::Int4 | DType::Int2, bits) => {
                vec![(self.below(1 << bits) as i8 - (1 << (bits - 1))).cast_unsigned()]
            }
            (_, bits @ 1..8) => vec![self.below(1 << bits) as u8],
            _ => {
                let size = dtype.size();
                let mut bytes: Vec<u8> = (0..size).map(|_| self.next() as u8).collect();
                match self.below(8) {
                    // A NaN of every float type.
                    0 => bytes[size.saturating_sub(2)..].fill(0xff),
                    // Negative zero.
                    1 => bytes = [vec![0; size - 1], vec![0x80]].concat(),
                    _ => {}
                }
                bytes
            }
        }
    }
}
