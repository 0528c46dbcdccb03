//! A scale and a bias for elements that were normalized.

use super::reduce::BLOCK;
use super::stored::{Elements, Storage};
use super::{Number, Stored};
use crate::cpu::for_each_level;

/// `scale * x + bias`
#[derive(Debug, Clone, Copy)]
pub struct Affine<'a, V> {
    pub scale: Spread<'a, V>,
    pub bias: Option<Spread<'a, V>>,
}

/// A value for each element: each is for `run` neighbours, and after the last comes the first again.
#[derive(Debug, Clone, Copy)]
pub struct Spread<'a, V> {
    pub values: &'a [V],
    pub run: usize,
}

impl<'a, V> Affine<'a, V> {
    /// As [`super::normalize::Finish`], of elements `R`. Operations are rounded to `V` one by one, as `Mul` and `Add` do.
    #[inline]
    pub fn finish<R: Stored<T>, T: Number + 'a>(self) -> impl Fn(usize, &[u8], &mut [u8]) + Sync + 'a
    where
        V: Stored<T>,
    {
        let values = |spread: Spread<'a, V>| Values {
            values: Elements::of(spread.values),
            count: spread.values.len(),
            run: spread.run,
        };
        let (scale, bias) = (values(self.scale), self.bias.map(values));
        let (from, to) = (Storage::of::<R>(), Storage::of::<V>());
        move |first, elements, out| affine_part(scale, bias, first, Elements::in_bytes(elements, from), to, out)
    }
}

/// As [`Spread`].
#[derive(Debug, Clone, Copy)]
struct Values<'a, T> {
    values: Elements<'a, T>,
    count: usize,
    run: usize,
}

for_each_level! {
    /// Multiplies the elements by the values, again and again.
    fn scale<T: Number>(elements: &mut [T], values: &[T]) -> () = scale_body::<T>;
}

for_each_level! {
    /// Adds the values to the elements, again and again.
    fn shift<T: Number>(elements: &mut [T], values: &[T]) -> () = shift_body::<T>;
}

for_each_level! {
    /// `elements * scales + biases`, from the values with the number `first` on, again and again.
    fn both<T: Number>(elements: &[T], values: (&[T], &[T]), first: usize, out: &mut [T]) -> () = both_body::<T>;
}

/// As [`both`], where each value is for `run` elements.
fn both_in_runs<T: Number>(
    mut elements: &[T],
    (scales, biases): (&[T], &[T]),
    run: usize,
    mut first: usize,
    mut out: &mut [T],
) {
    if run == 1 {
        return both(elements, (scales, biases), first, out);
    }
    while !elements.is_empty() && !out.is_empty() {
        let (k, len) = (first / run % scales.len().max(1), (run - first % run).min(elements.len()).min(out.len()));
        let ((x, x_rest), (to, to_rest)) = (elements.split_at(len), out.split_at_mut(len));
        both(x, (scales.get(k..=k).unwrap_or(&[]), biases.get(k..=k).unwrap_or(&[])), 0, to);
        (elements, out, first) = (x_rest, to_rest, first + len);
    }
}

#[inline(always)]
fn both_body<T: Number>(mut elements: &[T], (scales, biases): (&[T], &[T]), first: usize, mut out: &mut [T]) {
    if let ([scale], [bias]) = (scales, biases) {
        for (to, x) in out.iter_mut().zip(elements) {
            *to = x.times(*scale).plus(*bias);
        }
        return;
    }
    let count = scales.len().max(1);
    let mut at = first % count;
    while !elements.is_empty() && !out.is_empty() {
        let len = elements.len().min(out.len()).min(count - at);
        let ((x, x_rest), (to, to_rest)) = (elements.split_at(len), out.split_at_mut(len));
        let (scales, biases) = (scales.get(at..).unwrap_or(&[]), biases.get(at..).unwrap_or(&[]));
        for (((to, x), scale), bias) in to.iter_mut().zip(x).zip(scales).zip(biases) {
            *to = x.times(*scale).plus(*bias);
        }
        (elements, out, at) = (x_rest, to_rest, 0);
    }
}

#[inline(always)]
fn scale_body<T: Number>(elements: &mut [T], values: &[T]) {
    match values {
        [value] => elements.iter_mut().for_each(|x| *x = x.times(*value)),
        _ => {
            for elements in elements.chunks_mut(values.len().max(1)) {
                elements.iter_mut().zip(values).for_each(|(x, value)| *x = x.times(*value));
            }
        }
    }
}

#[inline(always)]
fn shift_body<T: Number>(elements: &mut [T], values: &[T]) {
    match values {
        [value] => elements.iter_mut().for_each(|x| *x = x.plus(*value)),
        _ => {
            for elements in elements.chunks_mut(values.len().max(1)) {
                elements.iter_mut().zip(values).for_each(|(x, value)| *x = x.plus(*value));
            }
        }
    }
}

fn affine_part<T: Number>(
    scale_by: Values<'_, T>,
    shift_by: Option<Values<'_, T>>,
    mut first: usize,
    elements: Elements<'_, T>,
    to: Storage<T>,
    out: &mut [u8],
) {
    if let Some(elements) = elements.direct()
        && let Some(out) = to.direct_mut(out)
    {
        if let Some(bias) = shift_by
            && let (Some(scales), Some(biases)) = (scale_by.values.direct(), bias.values.direct())
            && (scale_by.run, scales.len()) == (bias.run, biases.len())
        {
            return both_in_runs(elements, (scales, biases), scale_by.run, first, out);
        }
        out.copy_from_slice(elements);
        scale_by.combine(first, out, scale);
        if let Some(bias) = shift_by {
            bias.combine(first, out, shift);
        }
        return;
    }
    let mut block = [T::ZERO; BLOCK];
    for (k, out) in out.chunks_mut(BLOCK * to.size).enumerate() {
        let count = out.len() / to.size;
        let block = block.get_mut(..count).unwrap_or(&mut []);
        elements.range(k * BLOCK..k * BLOCK + count).load(block);
        scale_by.combine(first, block, scale);
        if let Some(bias) = shift_by {
            to.store(block, out);
            Elements::in_bytes(out, to).load(block);
            bias.combine(first, block, shift);
        }
        to.store(block, out);
        first += count;
    }
}

impl<T: Number> Values<'_, T> {
    /// Combines elements, of which the first has the number `first`, with their values.
    fn combine(self, first: usize, mut elements: &mut [T], with: fn(&mut [T], &[T])) {
        let (mut at, values) = (first, self.count);
        while !elements.is_empty() {
            let (k, left) = (at / self.run % values, self.run - at % self.run);
            let count = if self.run == 1 { values - k } else { left }.min(elements.len());
            let values = self.values.range(k..k + if self.run == 1 { count } else { 1 });
            // All of them again and again, as far as they are numbers.
            let whole = self.run == 1 && count == self.count && values.is_direct();
            let (now, rest) = elements.split_at_mut(if whole { elements.len() / count * count } else { count });
            match values.direct() {
                Some(values) => with(now, values),
                None => {
                    let mut converted = [T::ZERO; BLOCK];
                    values.load(&mut converted);
                    with(now, converted.get(..if self.run == 1 { count } else { 1 }).unwrap_or(&[]));
                }
            }
            at += now.len();
            elements = rest;
        }
    }
}
