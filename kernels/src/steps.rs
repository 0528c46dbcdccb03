//! Numbers at equal distances (Range): how many there are, and what they are.

use super::cpu::for_each_level;
use super::number::Float;

for_each_level! {
    /// `out[i] = start + (first + i) * delta`, rounded once in `f64`, and from that to the type.
    pub fn steps<T: Float>(start: f64, delta: f64, first: usize, out: &mut [T]) -> () = each;
}

#[inline(always)]
fn each<T: Float>(start: f64, delta: f64, first: usize, out: &mut [T]) {
    for (i, to) in out.iter_mut().enumerate() {
        *to = T::of(((first + i) as f64).mul_add(delta, start));
    }
}

/// `max(ceil((limit - start) / delta), 0)` of the exact quotient; NaN if there is none. Beyond 2^50 it may be rounded.
pub fn count(start: f64, limit: f64, delta: f64) -> f64 {
    if (limit - start).is_infinite() && start.is_finite() && limit.is_finite() {
        return count(start / 2.0, limit / 2.0, delta / 2.0);
    }
    if delta < 0.0 {
        return count(-start, -limit, -delta);
    }
    let distance = limit - start;
    if !(distance > 0.0 && distance < f64::INFINITY && delta > 0.0 && delta < f64::INFINITY) {
        return (distance / delta).ceil().larger(0.0);
    }
    // What the difference lacks: less than delta, unless there are more than 2^50 numbers.
    let back = distance - limit;
    let lost = (limit - (distance - back)) + (-start - back);
    // The remainder is exact. What it lacks of delta is too, or more than was lost.
    let rest = distance % delta;
    let whole = ((distance - rest) / delta).round_ties_even();
    whole + f64::from(u8::from(rest > -lost)) + f64::from(u8::from(lost > delta - rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{Exact, Rounded, ulps};
    use crate::testing::at_each_level;
    use crate::testing::sized;
    use half::{bf16, f16};
    use std::fmt::Debug;

    const INF: f64 = f64::INFINITY;

    /// The count of exact fractions: after one number less there is a distance left, and after all there is none.
    fn assert_count(start: f64, limit: f64, delta: f64) {
        let (distance, step) = (Exact::of(limit).minus(&Exact::of(start)), Exact::of(delta));
        let (distance, step) = if delta < 0.0 { (distance.negated(), step.negated()) } else { (distance, step) };
        let got = count(start, limit, delta);
        let left = |count: f64| distance.minus(&step.times(&Exact::of(count))).is_positive();
        let is_enough = !left(got);
        let is_least = got == 0.0 || left(got - 1.0);
        assert!(is_enough && is_least, "from {start:e} to {limit:e} by {delta:e}: {got}");
    }

    /// A limit that is the nearest to a number of steps, and its neighbours.
    fn assert_counts_of<T: Rounded + Debug>(exponents: i64) {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 20) % below
        };
        let nearest = |x: f64| Exact::of(x).nearest::<T>().into();
        for _ in 0..sized(3000, 30) {
            let mut number = || {
                let sign = if next(2) == 0 { 1.0 } else { -1.0 };
                let power = (2f64).powi(next(2 * exponents as u64) as i32 - exponents as i32);
                nearest(sign * power * (1.0 + next(1 << 40) as f64 / (1u64 << 40) as f64))
            };
            let (start, delta) = (number(), number());
            let steps = Exact::of(next(3000) as f64 - 10.0);
            let limit: f64 = Exact::of(start).plus(&Exact::of(delta).times(&steps)).nearest::<T>().into();
            if limit.is_infinite() || delta == 0.0 {
                continue;
            }
            for limit in [limit, limit.next_up(), limit.next_down(), nearest(limit * 1.01), start, -limit] {
                let steps = (limit - start) / delta;
                if steps < 1e15 {
                    assert_count(start, limit, delta);
                    assert_count(-start, -limit, -delta);
                }
            }
        }
    }

    #[test]
    fn counts_are_exact() {
        assert_eq!(count(0.0, 0.3f32.into(), 0.1f32.into()), 4.0);
        assert_eq!(count(0.0, 0.3, 0.1), 3.0);
        assert_eq!(count(0.0, 1.0, 0.1), 10.0);
        assert_counts_of::<f32>(30);
        assert_counts_of::<f32>(5);
        assert_counts_of::<f64>(60);
        assert_counts_of::<f64>(5);
        assert_counts_of::<f16>(8);
        assert_counts_of::<bf16>(100);
        // The difference rounds to a multiple of delta, or is infinite.
        assert_eq!((count(-1e-300, 1.0, 0.125), count(1e-300, 1.0, 0.125)), (9.0, 8.0));
        assert_eq!((count(5e-324, 1.0, 1.0), count(-5e-324, 1.0, 1.0)), (1.0, 2.0));
        let (delta, quarter) = (1.0 + f64::EPSILON, f64::EPSILON);
        assert_eq!(count(-quarter, 5.0 + 4.0 * quarter, delta), 5.0);
        assert_eq!(count(-quarter * (1.0 + f64::EPSILON), 5.0 + 4.0 * quarter, delta), 6.0);
        for delta in [f64::MAX, f64::MAX.next_down(), f64::MAX / 2.0, f64::MAX / 3.0, 1e300] {
            assert_count(-f64::MAX, f64::MAX, delta);
            assert_count(f64::MAX, -f64::MAX, -delta);
        }
        assert_count(-5e-324, 5e-324, 5e-324);
        assert_count(0.0, 2f64.powi(50), 1.0 - f64::EPSILON);
    }

    #[test]
    fn counts_at_the_ends() {
        assert_eq!([count(0.0, -1.0, 2.0), count(0.0, 0.0, 2.0), count(1.0, 2.0, -1.0)], [0.0; 3]);
        assert_eq!([count(1.0, -INF, 1.0), count(0.0, 1.0, INF), count(INF, 0.0, 1.0)], [0.0; 3]);
        assert_eq!([count(0.0, INF, 1.0), count(-INF, 0.0, 1.0), count(0.0, -INF, -1.0)], [INF; 3]);
        assert_eq!([count(-f64::MAX, f64::MAX, 5e-324), count(0.0, 1.0, 5e-324)], [INF; 2]);
        assert!(count(0.0, f64::NAN, 1.0).is_nan() && count(0.0, 1.0, f64::NAN).is_nan());
        assert!(count(INF, INF, 1.0).is_nan() && count(0.0, INF, INF).is_nan());
    }

    fn assert_rounded_once<T: Rounded + Float>(start: f64, delta: f64, first: usize, bound: f64) {
        let mut out = [T::ZERO; 100];
        at_each_level(|| {
            steps(start, delta, first, &mut out);
            for (i, &got) in out.iter().enumerate() {
                let exact = Exact::of(start).plus(&Exact::of((first + i) as f64).times(&Exact::of(delta)));
                assert!(ulps(got, &exact) <= bound, "{start} + {} * {delta} = {got:?}", first + i);
            }
        });
    }

    #[test]
    fn elements_are_rounded_once() {
        for first in [0, 1 << 10, (1 << 24) - 50, (1 << 30) + 1] {
            assert_rounded_once::<f64>(-1000.3, 0.1, first, 0.5);
            assert_rounded_once::<f64>(1e-3, 1e-320, first, 0.5);
            assert_rounded_once::<f32>((-102.4f32).into(), 0.1f32.into(), first, 0.500_000_01);
            assert_rounded_once::<f32>(1e30, -0.7, first, 0.500_000_01);
        }
    }
}
