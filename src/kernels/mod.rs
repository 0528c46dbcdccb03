//! Loops that move elements: they know sizes in bytes, not types. Positions are in range when they get here.
//!
//! A kernel is three steps: positions are checked ([`index`]), the loop for the size of what moves is chosen, and
//! the loop copies.

pub(crate) mod index;

/// `out[o, k, ..] = data[o, positions[k], ..]`: `data` has `size` entries of `row` bytes for each `o`.
pub(crate) fn gather(data: &[u8], size: usize, row: usize, positions: &[usize], out: &mut [u8]) {
    match row {
        0 => {}
        1 => gather_elements_of::<1>(data, size, positions, out),
        2 => gather_elements_of::<2>(data, size, positions, out),
        4 => gather_elements_of::<4>(data, size, positions, out),
        8 => gather_elements_of::<8>(data, size, positions, out),
        16 => gather_elements_of::<16>(data, size, positions, out),
        _ => gather_rows(data, size, row, positions, out),
    }
}

fn gather_rows(data: &[u8], size: usize, row: usize, positions: &[usize], out: &mut [u8]) {
    if size == 0 || positions.is_empty() {
        return;
    }
    for (data, out) in data.chunks_exact(size * row).zip(out.chunks_exact_mut(positions.len() * row)) {
        for (out, &position) in out.chunks_exact_mut(row).zip(positions) {
            if let Some(row) = data.get(position * row..(position + 1) * row) {
                out.copy_from_slice(row);
            }
        }
    }
}

fn gather_elements_of<const N: usize>(data: &[u8], size: usize, positions: &[usize], out: &mut [u8]) {
    if size == 0 || positions.is_empty() {
        return;
    }
    let (data, out) = (data.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    for (data, out) in data.chunks_exact(size).zip(out.chunks_exact_mut(positions.len())) {
        for (out, &position) in out.iter_mut().zip(positions) {
            if let Some(element) = data.get(position) {
                *out = *element;
            }
        }
    }
}

/// The shape of a GatherElements: what its kernel walks over.
#[derive(Debug)]
pub(crate) struct Grid<'a> {
    /// The shape of `data`.
    pub(crate) data: &'a [usize],
    /// The shape of `indices` and the output.
    pub(crate) indices: &'a [usize],
    /// The axis that the indices are for.
    pub(crate) axis: usize,
}

/// `out[i, j, k] = data[i, positions[i, j, k], k]`, elements of `element` bytes.
pub(crate) fn gather_elements(data: &[u8], element: usize, grid: &Grid<'_>, positions: &[usize], out: &mut [u8]) {
    match element {
        1 => gather_grid::<1>(data, grid, positions, out),
        2 => gather_grid::<2>(data, grid, positions, out),
        4 => gather_grid::<4>(data, grid, positions, out),
        8 => gather_grid::<8>(data, grid, positions, out),
        _ => gather_grid::<16>(data, grid, positions, out),
    }
}

fn gather_grid<const N: usize>(data: &[u8], grid: &Grid<'_>, positions: &[usize], out: &mut [u8]) {
    let (data, out) = (data.as_chunks::<N>().0, out.as_chunks_mut::<N>().0);
    let Some((&row, outer)) = grid.indices.split_last().filter(|(row, _)| **row > 0) else { return };
    let strides = strides(grid.data);
    let stride = strides.get(grid.axis).copied().unwrap_or(1);
    // Along the last dimension an element steps on by one in `data` too, unless that is the axis.
    let step = usize::from(grid.axis != outer.len());
    let mut position = vec![0; outer.len()];
    for (out, positions) in out.chunks_exact_mut(row).zip(positions.chunks_exact(row)) {
        let along = |(d, (p, stride)): (usize, (&usize, &usize))| if d == grid.axis { 0 } else { p * stride };
        let base: usize = position.iter().zip(&strides).enumerate().map(along).sum();
        for (k, (out, &p)) in out.iter_mut().zip(positions).enumerate() {
            if let Some(element) = data.get(base + p * stride + k * step) {
                *out = *element;
            }
        }
        for (p, &dim) in position.iter_mut().zip(outer).rev() {
            *p += 1;
            if *p < dim {
                break;
            }
            *p = 0;
        }
    }
}

/// How many elements lie between neighbours along each axis of a row-major tensor.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    let mut stride = 1usize;
    for (s, &dim) in strides.iter_mut().zip(shape).rev() {
        *s = stride;
        // Where a dimension is 0 there is nothing to step over.
        stride = stride.saturating_mul(dim.max(1));
    }
    strides
}
