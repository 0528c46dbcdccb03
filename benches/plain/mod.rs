//! Plain loops with every index checked, as anyone would write them: the baseline for onnxref.

use bytemuck::{Pod, cast_slice};
use onnxref::{DType, Tensor};
use std::borrow::Cow;
use std::hint::black_box;

/// The entry that an index names; negative ones count from the end.
#[inline]
fn entry(index: impl Into<i64>, size: usize) -> usize {
    let index = index.into();
    let entry = if index < 0 { index + size as i64 } else { index };
    assert!(0 <= entry && entry < size as i64, "index {index} is out of range");
    entry as usize
}

/// `out[o, k, ..] = data[o, indices[k], ..]`, where each `o` has `size` entries of `row` elements.
pub fn gather<T: Clone, I: Copy + Into<i64>>(data: &[T], size: usize, row: usize, indices: &[I], out: &mut [T]) {
    if row == 1 {
        for (data, out) in data.chunks_exact(size).zip(out.chunks_exact_mut(indices.len())) {
            for (out, &index) in out.iter_mut().zip(indices) {
                *out = data[entry(index, size)].clone();
            }
        }
    } else {
        for (data, out) in data.chunks_exact(size * row).zip(out.chunks_exact_mut(indices.len() * row)) {
            for (out, &index) in out.chunks_exact_mut(row).zip(indices) {
                let start = entry(index, size) * row;
                out.clone_from_slice(&data[start..start + row]);
            }
        }
    }
}

/// `out[o, k, j] = data[o, indices[o, k, j], j]`, where `indices` has the shape of `data`.
pub fn gather_elements<T: Clone, I: Copy + Into<i64>>(
    data: &[T],
    size: usize,
    row: usize,
    indices: &[I],
    out: &mut [T],
) {
    let block = size * row;
    let blocks = data.chunks_exact(block).zip(indices.chunks_exact(block)).zip(out.chunks_exact_mut(block));
    for ((data, indices), out) in blocks {
        let mut j = 0;
        for (out, &index) in out.iter_mut().zip(indices) {
            *out = data[entry(index, size) * row + j].clone();
            j = if j + 1 == row { 0 } else { j + 1 };
        }
    }
}

/// What a loop is to do.
pub struct Work<'a> {
    /// GatherElements, not Gather.
    pub elements: bool,
    /// Entries along the axis.
    pub size: usize,
    /// Elements of an entry.
    pub row: usize,
    /// Length of the chain, each loop reading the previous output.
    pub nodes: usize,
    pub data: &'a Tensor,
    /// Indices, of which each run takes the next.
    pub sets: &'a [Tensor],
    /// The output of the first.
    pub want: &'a Tensor,
}

impl<'a> Work<'a> {
    /// The loop for the type of the elements, with reused memory.
    pub fn prepare(self) -> Box<dyn FnMut() + 'a> {
        let (data, want) = (self.data, self.want);
        match data.dtype().size() {
            _ if data.dtype() == DType::String => {
                let strings: Vec<String> = data.strings().unwrap().map(str::to_string).collect();
                self.with_data(strings.into(), |out| out.iter().eq(want.strings().unwrap()))
            }
            1 => self.with_words::<u8>(),
            2 => self.with_words::<u16>(),
            4 => self.with_words::<u32>(),
            _ => self.with_words::<u64>(),
        }
    }

    fn with_words<T: Pod + Default>(self) -> Box<dyn FnMut() + 'a> {
        let (data, want) = (self.data.bytes(), self.want.bytes());
        self.with_data(cast_slice(data).into(), |out: &[T]| cast_slice::<T, u8>(out) == want)
    }

    fn with_data<T: Clone + Default>(self, data: Cow<'a, [T]>, right: impl Fn(&[T]) -> bool) -> Box<dyn FnMut() + 'a> {
        match self.sets[0].dtype() {
            DType::Int32 => self.with_indices::<T, i32>(data, right),
            _ => self.with_indices::<T, i64>(data, right),
        }
    }

    fn with_indices<T: Clone + Default, I: Pod + Into<i64>>(
        self,
        data: Cow<'a, [T]>,
        right: impl Fn(&[T]) -> bool,
    ) -> Box<dyn FnMut() + 'a> {
        let step = if self.elements { gather_elements::<T, I> } else { gather::<T, I> };
        let run = move |indices: &[I], out: &mut Vec<T>, last: &mut Vec<T>| {
            step(black_box(&data), self.size, self.row, black_box(indices), out);
            for _ in 1..self.nodes {
                std::mem::swap(out, last);
                step(last, self.size, self.row, indices, out);
            }
            black_box(out);
        };
        let mut out = vec![T::default(); self.want.len()];
        let mut last = out.clone();
        let mut sets = self.sets.iter().map(|indices| cast_slice::<u8, I>(indices.bytes())).cycle();
        run(sets.next().unwrap(), &mut out, &mut last);
        assert!(right(&out), "the plain loop gives something else");
        Box::new(move || run(sets.next().unwrap(), &mut out, &mut last))
    }
}
