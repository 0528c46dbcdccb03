//! What becomes of sums before they are written: steps, one after the other, each for a part of a row.

use super::number::Operand;
use super::place::{Broadcast, Extent, Place, Strides};
use crate::cpu::for_each_level;
use bytemuck::cast_slice;
use std::fmt;

/// Maximum number of elements of a part.
pub(super) const PART: usize = 256;

/// A step: a function of sums and of the places that they have in the output.
///
/// A closure of the sums alone is one too: it must be a function of each number by itself.
pub trait Step<T>: Sync {
    /// Whether there is all that it reads for an output that isn't empty.
    fn fits(&self, output: &Extent<'_>) -> bool {
        let _ = output;
        true
    }

    /// What it adds to the sums of each column, if that is all it does.
    fn row(&self) -> Option<&[T]> {
        None
    }

    /// Changes the sums of a part of a row, or of the only column, which starts at a place and has at most [`PART`]
    /// elements.
    fn apply(&self, place: &Place<'_>, sums: &mut [T]);
}

impl<T> fmt::Debug for dyn Step<T> + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Step")
    }
}

impl<T, F: Fn(&mut [T]) + Sync> Step<T> for F {
    fn apply(&self, _: &Place<'_>, sums: &mut [T]) {
        self(sums);
    }
}

/// `alpha * sum + beta * c`, as [`Operand::scale`] says: a bias for each row or column, a residual, or less.
#[derive(Debug, Clone, Copy)]
pub struct Scaled<'a, S> {
    pub alpha: f32,
    pub beta: f32,
    pub c: Option<Broadcast<'a, S>>,
}

impl<S: Operand> Step<S::Sum> for Scaled<'_, S> {
    fn fits(&self, output: &Extent<'_>) -> bool {
        self.c.is_none_or(|c| c.fits(output))
    }

    fn row(&self) -> Option<&[S::Sum]> {
        let is_row = |strides: &Strides<'_>| {
            (strides.row, strides.column) == (0, 1) && strides.batch.iter().all(|stride| *stride == 0)
        };
        let c = self.c.as_ref().filter(|c| S::IN_PLACE && is_row(&c.strides))?;
        ((self.alpha, self.beta) == (1.0, 1.0)).then(|| cast_slice(c.elements))
    }

    fn apply(&self, place: &Place<'_>, sums: &mut [S::Sum]) {
        match &self.c {
            Some(c) => match c.neighbours(place, sums.len()) {
                Some(c) => add::<S>(sums, self.alpha, self.beta, c),
                None => {
                    let mut room = [S::zeroed(); PART];
                    add::<S>(sums, self.alpha, self.beta, c.part(place, sums.len(), &mut room));
                }
            },
            None if self.alpha == 1.0 => {}
            None => scale::<S>(sums, self.alpha),
        }
    }
}

for_each_level! {
    fn add<S: Operand>(sums: &mut [S::Sum], alpha: f32, beta: f32, c: &[S]) -> () = add_body::<S>;
}

#[inline(always)]
fn add_body<S: Operand>(sums: &mut [S::Sum], alpha: f32, beta: f32, c: &[S]) {
    for (sum, c) in sums.iter_mut().zip(c) {
        *sum = S::scale(*sum, alpha, Some((*c, beta)));
    }
}

for_each_level! {
    fn scale<S: Operand>(sums: &mut [S::Sum], alpha: f32) -> () = scale_body::<S>;
}

#[inline(always)]
fn scale_body<S: Operand>(sums: &mut [S::Sum], alpha: f32) {
    for sum in sums {
        *sum = S::scale(*sum, alpha, None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{product, run, samples, sum};
    use super::super::{Batch, Left, Packed, Product, Right, Side, View, pack, packed_len};
    use super::*;
    use crate::Resources;
    use crate::testing::sized;

    /// `c` of each kind, for products that are computed as they are, folded, and transposed.
    #[test]
    fn epilogues() {
        let (a, b) = ([1f32, 2.0, 3.0, 4.0], [1f32, 0.0, 0.0, 1.0]);
        let with = |row, column, alpha, beta| {
            let strides = Strides { row, column, batch: &[] };
            let c = Some(Broadcast { elements: &[10f32, 20.0, 30.0, 40.0][..], strides });
            let mut out = [0.0; 4];
            run(Product { epilogue: &[&Scaled { alpha, beta, c }], ..product(2, 2, 2, &a, &b) }, &mut out).unwrap();
            out
        };
        assert_eq!(with(2, 1, 1.0, 1.0), [11.0, 22.0, 33.0, 44.0]);
        assert_eq!(with(0, 1, 1.0, 1.0), [11.0, 22.0, 13.0, 24.0]);
        assert_eq!(with(1, 0, 1.0, 1.0), [11.0, 12.0, 23.0, 24.0]);
        assert_eq!(with(0, 0, 2.0, 0.5), [7.0, 9.0, 11.0, 13.0]);
        assert_eq!(with(1, 2, 1.0, 1.0), [11.0, 32.0, 23.0, 44.0]);
        let negative = |part: &mut [f32]| part.iter_mut().for_each(|x| *x = -*x);
        let mut out = [0.0; 4];
        let twice = Scaled::<f32> { alpha: 2.0, beta: 0.0, c: None };
        run(Product { epilogue: &[&twice, &negative], ..product(2, 2, 2, &a, &b) }, &mut out).unwrap();
        assert_eq!(out, [-2.0, -4.0, -6.0, -8.0]);
    }

    /// The step that writes places instead of sums: `matrix * 10^6 + row * 10^3 + column`.
    struct Places;

    impl Step<f64> for Places {
        fn apply(&self, place: &Place<'_>, sums: &mut [f64]) {
            assert!(sums.len() <= PART);
            for (at, sum) in sums.iter_mut().enumerate() {
                let (row, column) = if place.down { (place.row + at, 0) } else { (place.row, place.column + at) };
                *sum = place.matrix as f64 * 1e6 + row as f64 * 1e3 + column as f64;
            }
        }
    }

    /// Steps know where sums are, however the product is computed.
    #[test]
    fn places() {
        let numbers = vec![1f64; 2000];
        for (m, n) in [(1, 1), (1, 5), (3, 1), (3, 5), (sized(300, 3), 1), (2, sized(600, 7)), (sized(300, 14), 3)] {
            for strides in [(0, 0), (m, 0), (0, 1), (1, 1)] {
                for threads in [1, 3] {
                    let (a, b) = (Left::View(View::rows(&numbers, 1)), Right::View(View::rows(&numbers, n)));
                    let batch = [Batch { size: 2, a: 0, b: 1 }, Batch { size: 3, a: strides.0, b: strides.1 }];
                    let product = Product::<f64> { m, k: 1, n, a, b, batch: &batch, epilogue: &[&Places] };
                    let resources = Resources { threads, stop: None };
                    let plan = product.plan(resources);
                    let mut out = vec![0.0; 6 * m * n];
                    plan.run(&mut out, &mut vec![0.0; plan.scratch()], resources).unwrap();
                    for (at, place) in out.into_iter().enumerate() {
                        let want = (at / (m * n)) as f64 * 1e6 + (at / n % m) as f64 * 1e3 + (at % n) as f64;
                        assert_eq!(place, want, "{m} x {n}, {strides:?}");
                    }
                }
            }
        }
    }

    /// A row that is added to each row, by tiles or afterwards: the sums of whole tiles, of their parts, and of several blocks of
    /// steps.
    #[test]
    fn rows_that_are_added() {
        for (m, n) in [(1, 75), (2, 75), (13, 32), (sized(250, 14), 49), (3, 1), (5, 16)] {
            for k in [0, 1, 7, sized(900, 10)] {
                let (a, b, c) = (samples::<f32>(m * k, 1), samples::<f32>(k * n, 2), samples::<f32>(n, 3));
                let mut want = vec![0.0; m * n];
                run(product(m, k, n, &a, &b), &mut want).unwrap();
                want.chunks_exact_mut(n).flat_map(|row| row.iter_mut().zip(&c)).for_each(|(sum, c)| *sum += c);
                let c = Some(Broadcast { elements: &c[..], strides: Strides::COLUMNS });
                let step = Scaled { alpha: 1.0, beta: 1.0, c };
                let negative = |part: &mut [f32]| part.iter_mut().for_each(|x| *x = -*x);
                let mut packed = vec![0.0; packed_len::<f32>(k * n)];
                let view = View::rows(&b[..], n);
                pack(Side::Right, view, (1, 0), (k, n), &mut packed, Resources { threads: 1, stop: None }).unwrap();
                let right = [Right::View(view), Right::Packed(Packed::new(Side::Right, &packed))];
                for (right, threads) in right.into_iter().flat_map(|right| [(right, 1), (right, 3)]) {
                    let resources = Resources { threads, stop: None };
                    let product = Product { b: right, epilogue: &[&step, &negative], ..product(m, k, n, &a, &b) };
                    let plan = product.plan(resources);
                    let mut out = vec![0.0; m * n];
                    plan.run(&mut out, &mut vec![0.0; plan.scratch()], resources).unwrap();
                    let same = out.iter().zip(&want).all(|(out, want)| *out == -want);
                    assert!(same, "{m} x {k} x {n}, {threads} threads");
                }
            }
        }
    }

    /// Elements of `c` for rows, columns and matrices.
    #[test]
    fn addends_of_a_batch() {
        let (a, b) = (samples::<f32>(2 * 3 * 5, 1), samples::<f32>(5 * 4, 2));
        let c = samples::<f32>(24, 3);
        for n in [1, 4] {
            for (row, column, strides) in
                [(n, 1, &[3 * n][..]), (1, 0, &[3]), (1, 0, &[]), (0, 1, &[4]), (0, 0, &[1]), (0, 0, &[0])]
            {
                let batch = [Batch { size: 2, a: 15, b: 0 }];
                let c_of = Broadcast { elements: &c[..], strides: Strides { row, column, batch: strides } };
                let step = Scaled { alpha: 1.0, beta: 1.0, c: Some(c_of) };
                let product = Product { m: 3, batch: &batch, epilogue: &[&step], ..product(3, 5, n, &a, &b) };
                let mut out = vec![0.0; 6 * n];
                run(product, &mut out).unwrap();
                for (at, out) in out.into_iter().enumerate() {
                    let (matrix, i, j) = (at / (3 * n), at / n % 3, at % n);
                    let addend = c[matrix * strides.first().unwrap_or(&0) + i * row + j * column];
                    let want = sum(5, |p| (a[matrix * 15 + i * 5 + p], b[p * n + j])) + addend;
                    assert_eq!(out, want, "{matrix}, {i}, {j} of {strides:?}");
                }
            }
        }
    }
}
