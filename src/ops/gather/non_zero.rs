//! NonZero: the positions of the elements that are not zero.
//! <https://onnx.ai/onnx/operators/onnx__NonZero.html>

use crate::ops::prelude::*;
use kernels::convert::{Conversion, convert};

pub(super) const NON_ZERO: Implementation = Implementation::run("NonZero", &[9, 13], |_| Ok(Box::new(NonZero)));

/// `Y[d, n]` is the coordinate along dimension d of the n-th element of `X` that is not zero, in row-major order. NaN is
/// not zero, -0 is. A string is zero if it is empty.
#[derive(Debug)]
struct NonZero;

impl Operator for NonZero {
    fn run(&self, call: &mut Call<'_>) -> Result<Values> {
        let x = call.tensor(0)?;
        call.charge(x.len() as u64)?;
        let mut memory = call.scratch::<u8>(2 * x.len())?;
        let truths = truths(call, x, memory.elements_mut())?;
        let mut count = 0;
        for block in call.lookout().blocks(truths) {
            count += block?.iter().filter(|truth| **truth != 0).count();
        }
        let mut y = call.output::<i64>(&[x.rank(), count])?;
        if let (Some((columns, outer)), 1..) = (x.shape().split_last(), count) {
            let mut coordinates: Vec<_> =
                y.elements_mut::<i64>()?.chunks_exact_mut(count).map(|c| c.iter_mut()).collect();
            let (mut position, mut lookout) = (vec![0; outer.len() + 1], call.lookout());
            for row in truths.chunks_exact(*columns) {
                for (first, block) in (0..).step_by(BLOCK).zip(row.chunks(BLOCK)) {
                    lookout.after(block.len())?;
                    let mut found = 0;
                    for (column, _) in (first..).zip(block).filter(|(_, truth)| **truth != 0) {
                        found += 1;
                        position.last_mut().into_iter().for_each(|last| *last = column);
                        for (to, p) in coordinates.iter_mut().zip(&position) {
                            to.next().into_iter().for_each(|to| *to = *p);
                        }
                    }
                    lookout.after(found * size_of_val(&*position))?;
                }
                for (p, dim) in position.iter_mut().zip(outer).rev() {
                    *p += 1;
                    if *p < *dim as i64 {
                        break;
                    }
                    *p = 0;
                }
            }
        }
        Ok(y.finish().into())
    }

    fn infer(&self, facts: &mut Inference<'_>) -> Result<()> {
        if let Some(dims) = facts.dims(0) {
            facts.give(0, [Dim::Fixed(dims.len()), Dim::Unknown]);
        }
        Ok(())
    }
}

/// Elements of a row between two counts of the work.
const BLOCK: usize = 4 << 10;

/// A byte for each element: 0 for zero. There is room for two.
fn truths<'a>(call: &Call<'_>, x: &Tensor, room: &'a mut [u8]) -> Result<&'a [u8]> {
    if let Ok(strings) = x.strings() {
        let mut lookout = call.lookout();
        for (to, string) in room.iter_mut().zip(strings) {
            lookout.after(DType::String.size())?;
            *to = u8::from(!string.is_empty());
        }
        return Ok(room.get(..x.len()).unwrap_or(&[]));
    }
    // A complex number is two floats.
    let (from, parts) = match x.dtype() {
        DType::Complex64 => (DType::Float, 2),
        DType::Complex128 => (DType::Double, 2),
        other => (other, 1),
    };
    let truths = room.get_mut(..parts * x.len()).unwrap_or(&mut []);
    convert(Conversion::plain(from.format(), Format::Bool), x.aligned_bytes(), truths, call.resources())?;
    if parts == 2 {
        let mut lookout = call.lookout();
        for k in 0..x.len() {
            lookout.after(parts)?;
            let either = truths.get(2 * k..2 * k + 2).is_some_and(|parts| parts != [0, 0]);
            truths.get_mut(k).into_iter().for_each(|to| *to = u8::from(either));
        }
    }
    Ok(truths.get(..x.len()).unwrap_or(&[]))
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{run, tensor};
    use crate::tensor::Tensor;
    use num_complex::Complex;

    #[test]
    fn rows_of_several_blocks() {
        let (rows, columns) = (2, 2 * super::BLOCK + 5);
        let truths: Vec<bool> = (0..rows * columns).map(|k| k % 3 != 1).collect();
        let places: Vec<usize> = (0..rows * columns).filter(|k| truths[*k]).collect();
        let along = |of: fn(usize, usize) -> usize| places.iter().map(move |k| of(*k, 2 * super::BLOCK + 5) as i64);
        let want: Vec<i64> = along(|k, columns| k / columns).chain(along(|k, columns| k % columns)).collect();
        run("NonZero", 13, [], [&tensor(&[rows, columns], truths)]).gives(tensor(&[2, places.len()], want));
    }

    #[test]
    fn positions() {
        run("NonZero", 9, [], [&tensor(&[2, 2], [true, false, true, true])])
            .gives(tensor(&[2, 3], [0i64, 1, 1, 0, 0, 1]));
        run("NonZero", 13, [], [&tensor(&[5], [-0.0f32, f32::NAN, 0.0, 1e-45, -1.0])])
            .gives(tensor(&[1, 3], [1i64, 3, 4]));
        run("NonZero", 13, [], [&tensor(&[1, 2, 2], [0u64, 1 << 40, 0, 1])])
            .gives(tensor(&[3, 2], [0i64, 0, 0, 1, 1, 1]));
        let complex = [Complex::new(0f32, -0.0), Complex::new(0.0, 1.0), Complex::new(2.0, 0.0)];
        run("NonZero", 9, [], [&tensor(&[3], complex)]).gives(tensor(&[1, 2], [1i64, 2]));
        let text = Tensor::from_strings(&[3], ["", "a", "0"]).unwrap().into();
        run("NonZero", 9, [], [&text]).gives(tensor(&[1, 2], [1i64, 2]));
    }

    #[test]
    fn edges() {
        let none = Vec::<i64>::new();
        run("NonZero", 13, [], [&tensor(&[2, 1], [0i8, 0])]).gives(tensor(&[2, 0], none.clone()));
        run("NonZero", 13, [], [&tensor(&[3, 0], Vec::<i8>::new())]).gives(tensor(&[2, 0], none.clone()));
        // A scalar has no coordinate.
        run("NonZero", 13, [], [&tensor(&[], [7i32])]).gives(tensor(&[0, 1], none.clone()));
        run("NonZero", 13, [], [&tensor(&[], [0i32])]).gives(tensor(&[0, 0], none));
    }
}
