//! Grids of coordinates that affine maps give (AffineGrid).

use super::Sample;
use crate::cpu::for_each_level;
use crate::{Resources, Stopped, parallel, volume};

/// The coordinates of the entries of an image of two or three axes, from -1 to 1, each list multiplied by an affine matrix
/// for each image: `out[n, .., r] = theta[n, r] * (x, y, .., 1)`, in f64, rounded once.
pub fn affine<T: Sample>(
    theta: &[T],
    image: &[usize],
    corners: bool,
    out: &mut [T],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    match *image {
        [rows, columns] => affine_of(theta, [columns, rows], corners, out, resources, moved_of_two::<T>),
        [slices, rows, columns] => {
            affine_of(theta, [columns, rows, slices], corners, out, resources, moved_of_three::<T>)
        }
        _ => Err(Stopped::Misfit),
    }
}

/// Columns whose coordinates are known at a time.
const COLUMNS: usize = 256;

/// As [`affine`], of an image whose last axis is the first here.
fn affine_of<T: Sample, const AXES: usize>(
    theta: &[T],
    image: [usize; AXES],
    corners: bool,
    out: &mut [T],
    resources: Resources<'_>,
    moved: fn(&[Row<AXES>; AXES], &[f64], &mut [[T; AXES]]),
) -> Result<(), Stopped> {
    let (width, count) = (image.first().copied().unwrap_or(1), volume(1, &image));
    let (unit, matrix) = (size_of::<T>() * AXES, AXES * (AXES + 1));
    let out = bytemuck::cast_slice_mut(out);
    parallel::pieces(out, unit, count * unit, 2, resources, |number, before, out| {
        let out: &mut [T] = bytemuck::try_cast_slice_mut(out).map_err(|_| Stopped::Misfit)?;
        let theta = theta.get(number * matrix..(number + 1) * matrix).ok_or(Stopped::Misfit)?;
        let (mut first, mut rest) = (before / unit, out.as_chunks_mut::<AXES>().0);
        let (mut columns, mut known) = ([0.0; COLUMNS], 0..0);
        while !rest.is_empty() {
            let start = first % width;
            let (now, others) = rest.split_at_mut((width - start).min(COLUMNS).min(rest.len()));
            if known.start != start || known.len() < now.len() {
                known = start..start + now.len();
                columns.iter_mut().zip(known.clone()).for_each(|(to, at)| *to = coordinate(at, width, corners));
            }
            let (mut rows, mut above) = ([Row { by: 0.0, terms: [0.0; AXES] }; AXES], first / width);
            for (row, theta) in rows.iter_mut().zip(theta.chunks_exact(AXES + 1)) {
                if let [by, outer @ .., shift] = theta {
                    row.by = by.to_f64();
                    row.terms.iter_mut().zip(outer).for_each(|(term, by)| *term = by.to_f64());
                    row.terms.last_mut().into_iter().for_each(|term| *term = shift.to_f64());
                }
            }
            for (axis, size) in image.iter().skip(1).enumerate() {
                let place = coordinate(above % size, *size, corners);
                rows.iter_mut().filter_map(|row| row.terms.get_mut(axis)).for_each(|term| *term *= place);
                above /= size;
            }
            moved(&rows, &columns, now);
            (first, rest) = (first + now.len(), others);
        }
        Ok(())
    })
}

/// What a row of a matrix makes of a line of the image: `by` times the coordinate along the line, and what is added then.
#[derive(Debug, Clone, Copy)]
struct Row<const AXES: usize> {
    by: f64,
    terms: [f64; AXES],
}

for_each_level! {
    /// Moves places of a line, at these columns.
    fn moved_of_two<T: Sample>(rows: &[Row<2>; 2], columns: &[f64], out: &mut [[T; 2]]) -> () = moved::<T, 2>;
}

for_each_level! {
    /// As [`moved_of_two`].
    fn moved_of_three<T: Sample>(rows: &[Row<3>; 3], columns: &[f64], out: &mut [[T; 3]]) -> () = moved::<T, 3>;
}

#[inline(always)]
fn moved<T: Sample, const AXES: usize>(rows: &[Row<AXES>; AXES], columns: &[f64], out: &mut [[T; AXES]]) {
    let rows = *rows;
    for (out, column) in out.iter_mut().zip(columns) {
        for (out, row) in out.iter_mut().zip(&rows) {
            let mut sum = row.by * column;
            for term in &row.terms {
                sum += term;
            }
            *out = T::of_f64(sum);
        }
    }
}

/// The coordinate of an entry of an axis; 0 for the center of the only one.
#[inline(always)]
fn coordinate(at: usize, size: usize, corners: bool) -> f64 {
    let (at, size) = (at as f64, size as f64);
    match corners {
        true if size > 1.0 => 2.0 * at / (size - 1.0) - 1.0,
        _ => (2.0 * at + 1.0) / size - 1.0,
    }
}
