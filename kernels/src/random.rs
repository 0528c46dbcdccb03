//! Random numbers that are the same everywhere.
//!
//! [`Philox`] gives each element numbers of its own, whichever thread computes it.

use crate::convert::{BLOCK, Conversion, block};
use crate::cpu::for_each_level;
use crate::format::Format;
use crate::functions::{cos_all, exp_below_in_place, log};
use crate::number::Float;
use crate::{Resources, Stopped, parallel};
use bytemuck::{cast_slice, cast_slice_mut};
use std::f64::consts::TAU;

/// The generator MT19937 (Matsumoto, Nishimura, 1998), as numpy's `RandomState` uses it.
pub struct Twister {
    state: [u32; SIZE],
    next: usize,
}

const SIZE: usize = 624;
/// The distance of the states that are combined.
const MIDDLE: usize = 397;

impl Twister {
    pub fn new(seed: u32) -> Twister {
        let mut state = [seed; SIZE];
        let mut last = seed;
        for (k, word) in (0u32..).zip(&mut state).skip(1) {
            *word = 1_812_433_253u32.wrapping_mul(last ^ last >> 30).wrapping_add(k);
            last = *word;
        }
        Twister { state, next: SIZE }
    }

    /// A number of [0, 1), evenly distributed, with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * (1u32 << 26) as f64 + f64::from(low)) / (1u64 << 53) as f64
    }

    fn word(&mut self) -> u32 {
        if self.next == SIZE {
            self.twist();
            self.next = 0;
        }
        let mut word = self.state.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    #[allow(clippy::indexing_slicing)] // each index is below SIZE
    fn twist(&mut self) {
        let state = &mut self.state;
        for k in 0..SIZE {
            let word = state[k] & 0x8000_0000 | state[(k + 1) % SIZE] & 0x7fff_ffff;
            let odd = if word & 1 == 1 { 0x9908_b0df } else { 0 };
            state[k] = state[(k + MIDDLE) % SIZE] ^ word >> 1 ^ odd;
        }
    }
}

/// The generator Philox4x32-10 (Salmon and others, 2011): four words for each number of an element, by a key.
#[derive(Debug, Clone, Copy)]
pub struct Philox {
    key: [u32; 2],
}

impl Philox {
    pub fn new(key: u64) -> Philox {
        Philox { key: [key as u32, (key >> 32) as u32] }
    }

    #[inline(always)]
    fn words(self, mut counter: [u32; 4]) -> [u32; 4] {
        let [mut low, mut high] = self.key;
        for _ in 0..10 {
            let [a, b, c, d] = counter;
            let (one, other) = (u64::from(a) * 0xd251_1f53, u64::from(c) * 0xcd9e_8d57);
            counter = [(other >> 32) as u32 ^ b ^ low, other as u32, (one >> 32) as u32 ^ d ^ high, one as u32];
            (low, high) = (low.wrapping_add(0x9e37_79b9), high.wrapping_add(0xbb67_ae85));
        }
        counter
    }

    /// Two numbers of [0, 1) for an element, evenly distributed, with 53 bits.
    #[inline(always)]
    pub fn uniform(self, element: u64) -> [f64; 2] {
        let [a, b, c, d] = self.words([element as u32, (element >> 32) as u32, 0, 0]);
        let of = |high: u32, low: u32| {
            (f64::from(high >> 5) * (1u32 << 26) as f64 + f64::from(low >> 6)) / (1u64 << 53) as f64
        };
        [of(a, b), of(c, d)]
    }
}

/// How random numbers are distributed.
#[derive(Debug, Clone, Copy)]
pub enum Distribution {
    /// `low + (high - low) * u`, where `u` is the first uniform number of the element.
    Uniform { low: f64, high: f64 },
    /// `mean + scale * sqrt(-2 ln (1 - u)) * cos(2 pi v)`, where `u` and `v` are its uniform numbers.
    Normal { mean: f64, scale: f64 },
}

/// Fills `out` with random numbers, computed in `f64` and rounded once.
pub fn draw(
    of: Distribution,
    random: Philox,
    to: Format,
    out: &mut [u8],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    /// Bytes that are written in the time of one of these.
    const COST: usize = 16;
    let size = to.size();
    parallel::split_by(out, size, COST, resources, |first, out| {
        let mut rooms = [[0f64; BLOCK]; 3];
        for (k, out) in out.chunks_mut(BLOCK * size).enumerate() {
            let [one, other, cosines] =
                rooms.each_mut().map(|room| room.get_mut(..out.len() / size).unwrap_or(&mut []));
            uniforms(random, (first + k * BLOCK) as u64, one, other);
            match of {
                Distribution::Uniform { low, high } => line(one, low, high - low),
                Distribution::Normal { mean, scale } => {
                    line(other, 0.0, TAU);
                    cos_all(other, cosines);
                    normal(one, cosines, mean, scale);
                }
            }
            block(Conversion::plain(Format::Double, to), cast_slice(one), out);
        }
        Ok(())
    })
}

for_each_level! {
    fn uniforms<>(random: Philox, first: u64, one: &mut [f64], other: &mut [f64]) -> () = uniforms_body;
}

#[inline(always)]
fn uniforms_body(random: Philox, first: u64, one: &mut [f64], other: &mut [f64]) {
    for (element, (one, other)) in (first..).zip(one.iter_mut().zip(other)) {
        [*one, *other] = random.uniform(element);
    }
}

for_each_level! {
    fn line<>(numbers: &mut [f64], from: f64, by: f64) -> () = line_body;
}

#[inline(always)]
fn line_body(numbers: &mut [f64], from: f64, by: f64) {
    for number in numbers {
        *number = by.mul_add(*number, from);
    }
}

for_each_level! {
    fn normal<>(numbers: &mut [f64], cosines: &[f64], mean: f64, scale: f64) -> () = normal_body;
}

#[inline(always)]
fn normal_body(numbers: &mut [f64], cosines: &[f64], mean: f64, scale: f64) {
    for (number, cosine) in numbers.iter_mut().zip(cosines) {
        // Never the logarithm of 0.
        let radius = (-2.0 * log(1.0 - *number)).sqrt();
        *number = scale.mul_add(radius * cosine, mean);
    }
}

/// Cumulative sums of what rows of `classes` logarithms stand for, each less the greatest of its row.
///
/// [`Stopped::OutOfRange`]: a row has no total that is a positive number.
pub fn cumulate(
    from: Format,
    logarithms: &[u8],
    classes: usize,
    sums: &mut [f64],
    resources: Resources<'_>,
) -> Result<(), Stopped> {
    /// Bytes that are written in the time of an exponential.
    const COST: usize = 4;
    let unit = classes.max(1) * size_of::<f64>();
    parallel::split_by(cast_slice_mut(sums), unit, COST, resources, |first, sums| {
        let (size, mut lookout) = (from.size(), resources.lookout());
        for (k, row) in cast_slice_mut::<u8, f64>(sums).chunks_mut(classes.max(1)).enumerate() {
            let start = (first + k) * row.len() * size;
            let elements = logarithms.get(start..start + row.len() * size).ok_or(Stopped::Misfit)?;
            let mut most = f64::NEG_INFINITY;
            for (row, elements) in row.chunks_mut(BLOCK).zip(elements.chunks(BLOCK * size)) {
                lookout.after(2 * size_of_val(row))?;
                block(Conversion::plain(from, Format::Double), elements, cast_slice_mut(row));
                most = most.larger(largest(row));
            }
            let mut sum = 0.0;
            for row in row.chunks_mut(BLOCK) {
                lookout.after(4 * size_of_val(row))?;
                exp_below_in_place(row, most);
                for number in row {
                    sum += *number;
                    *number = sum;
                }
            }
            if !sum.is_finite() || sum == 0.0 {
                return Err(Stopped::OutOfRange);
            }
        }
        Ok(())
    })
}

for_each_level! {
    /// The largest of numbers; NaN if one is NaN.
    fn largest<>(numbers: &[f64]) -> f64 = largest_body;
}

#[inline(always)]
fn largest_body(numbers: &[f64]) -> f64 {
    let (blocks, rest) = numbers.as_chunks::<32>();
    let mut lanes = [f64::NEG_INFINITY; 32];
    for block in blocks {
        for (most, x) in lanes.iter_mut().zip(block) {
            *most = most.larger(*x);
        }
    }
    lanes.iter().chain(rest).fold(f64::NEG_INFINITY, |most, x| most.larger(*x))
}

/// The class that a uniform number of [0, 1) falls into, by the cumulative sums of a row.
pub fn class(sums: &[f64], uniform: f64) -> usize {
    let total = sums.last().copied().unwrap_or(0.0);
    let at = sums.partition_point(|sum| *sum <= uniform * total);
    // The product may be rounded up to the total.
    if at < sums.len() { at } else { sums.partition_point(|sum| *sum < total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 10,000th word of the seed 5489 is the one that C++ requires of `std::mt19937`; the numbers are numpy's.
    #[test]
    fn known_numbers() {
        let mut words = Twister::new(5489);
        assert_eq!((0..10_000).map(|_| words.word()).last(), Some(4_123_659_995));
        let mut numbers = Twister::new(0);
        let first: [f64; 3] = std::array::from_fn(|_| numbers.uniform());
        assert_eq!(first, [0.5488135039273248, 0.7151893663724195, 0.6027633760716439]);
    }

    /// The answers that the authors of the generator publish (Random123, kat_vectors).
    #[test]
    fn known_words() {
        let words = |counter, key: [u32; 2]| Philox { key }.words(counter);
        assert_eq!(words([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(words([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = ([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
        assert_eq!(words(pi.0, pi.1), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    /// As if each number were computed by itself, in rows of more than a block too.
    #[test]
    fn sums_of_rows() {
        let special = [f64::NEG_INFINITY, -750.0, 0.0, -0.0];
        for classes in [2, 5, 33, 700].map(|classes| crate::testing::sized(classes, classes.min(40))) {
            let count = classes * crate::testing::sized(9, 2);
            let number = |k: usize| if k % 11 == 3 { special[k / 11 % 4] } else { (k * k % 103) as f64 / 9.0 - 4.0 };
            let logarithms: Vec<f64> = (0..count).map(number).collect();
            let want = logarithms.chunks(classes).flat_map(|row| {
                let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                row.iter().scan(0.0, move |sum, x| {
                    *sum += crate::functions::exp(x - most);
                    Some(*sum)
                })
            });
            let want: Vec<u64> = want.map(f64::to_bits).collect();
            crate::testing::at_each_level(|| {
                let (mut sums, resources) = (vec![0.0; count], Resources { threads: 3, stop: None });
                cumulate(Format::Double, cast_slice(&logarithms), classes, &mut sums, resources).unwrap();
                assert_eq!(sums.iter().map(|sum| sum.to_bits()).collect::<Vec<u64>>(), want);
            });
            for bad in [f64::NAN, f64::INFINITY] {
                let (mut sums, mut row) = (vec![0.0; classes], logarithms[..classes].to_vec());
                row[classes / 2] = bad;
                let resources = Resources { threads: 1, stop: None };
                let got = cumulate(Format::Double, cast_slice(&row), classes, &mut sums, resources);
                assert_eq!(got, Err(Stopped::OutOfRange));
            }
        }
    }

    /// Elements don't depend on the division among threads, nor on the level.
    #[test]
    fn distributions() {
        let count = crate::testing::sized(20_000, 600);
        let drawn = |of, threads| {
            let mut out = vec![0f64; count];
            let resources = Resources { threads, stop: None };
            draw(of, Philox::new(7), Format::Double, bytemuck::cast_slice_mut(&mut out), resources).unwrap();
            out
        };
        let uniform = Distribution::Uniform { low: -1.0, high: 3.0 };
        let normal = Distribution::Normal { mean: 5.0, scale: 2.0 };
        let (flat, bell) = (drawn(uniform, 1), drawn(normal, 1));
        crate::testing::at_each_level(|| {
            assert_eq!(drawn(uniform, 3), flat);
            assert_eq!(drawn(normal, 3), bell);
        });
        let first = Philox::new(7).uniform(599);
        assert_eq!(flat[599], 4f64.mul_add(first[0], -1.0));
        assert!(
            (bell[599] - (5.0 + 2.0 * (-2.0 * (1.0 - first[0]).ln()).sqrt() * (TAU * first[1]).cos())).abs() < 1e-12
        );
        let moments = |of: &[f64]| {
            let mean = of.iter().sum::<f64>() / count as f64;
            (mean, of.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64)
        };
        let ((flat_mean, flat_square), (mean, square)) = (moments(&flat), moments(&bell));
        let near = |value: f64, want: f64| (value - want).abs() < 8.0 / (count as f64).sqrt();
        assert!(near(flat_mean, 1.0) && near(flat_square, 16.0 / 12.0) && near(mean, 5.0) && near(square, 4.0));
        assert!(flat.iter().all(|x| (-1.0..3.0).contains(x)));
    }
}
