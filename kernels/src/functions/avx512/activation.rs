//! As [`super::super::activation`] and [`super::super::normal`].

use super::exponential::{EXP, ROUND, rest, vectors};
use super::some::{Some8, Some16};
use crate::functions::Real;
use crate::functions::activation::{BRIEF, CUBE, FACTOR};

vectors! {
    /// Of numbers from -12.9 to 12.9: nothing is subnormal on the way that isn't at its start.
    pub(super) fn gelu<K>(x: Some16<K>) -> Option<Some16<K>> {
        let (size, one, four) = (x.abs(), Some16::all(1.0), Some16::all(4.0));
        if !size.are_below(12.9) {
            return None;
        }
        let divisor = size.add(four);
        let w = one.div(divisor);
        let wrong = w.neg_mul_add(size.sub(divisor.sub(four)), w.neg_mul_add(divisor, one));
        let u = w.mul_add(Some16::all(-8.0), Some16::all(f32::NORMAL_CENTER));
        let (first, second, others) = NORMAL;
        let (first, second) = (Some16::all(first), Some16::all(second));
        let [a, b, c, d, e, f, g, h] = others;
        let [a, b, c, d] = [Some16::all(a), Some16::all(b), Some16::all(c), Some16::all(d)];
        let [e, f, g, h] = [Some16::all(e), Some16::all(f), Some16::all(g), Some16::all(h)];
        let square = u.mul(u);
        let others = h.mul_add(u, g).mul_add(square, f.mul_add(u, e));
        let others = others.mul_add(square, d.mul_add(u, c)).mul_add(square, b.mul_add(u, a));
        let others = u.mul_add(others, second);
        let p = u.mul_add(others, first);
        let p_low = u.mul_add(others, first.sub(p));
        let q = w.mul(p);
        let q_low = w.mul_add(p_low, w.mul_sub(p, q));
        let high = size.mul(q);
        let low = size.mul_add(q_low, size.mul_sub(q, high));
        let (steep, level) = f32::NORMAL_SLOPE;
        let slope = w.mul_add(Some16::all(steep), Some16::all(level));
        let half = Some16::all(-0.5).mul(size);
        let power = half.mul(size);
        let shifted = power.mul_add(Some16::all(f32::LOG2_E), Some16::all(ROUND));
        let n = shifted.sub(Some16::all(ROUND));
        let r = n.neg_mul_add(Some16::all(f32::LN_2), power);
        let more = n.mul_add(Some16::all(-f32::LN_2_LOW), slope.mul_add(wrong, half.mul_sub(size, power)));
        let rest = rest(r.add(more), more, EXP);
        let y = high.add(high.mul_add(r, high.mul_add(rest, low))).times_power(shifted);
        Some(x.positive().sub(y))
    }

    /// In doubles.
    pub(super) fn gelu_tanh<K>(x: Some16<K>) -> Option<Some16<K>> {
        Some(Some16::rounded(gated(x.low()), gated(x.high())))
    }

    fn gated<K>(x: Some8<K>) -> Some8<K> {
        let one = Some8::all(1.0);
        let sum = x.mul(x).mul_add(Some8::all(CUBE.0), one);
        let gate = x.mul(Some8::all(-FACTOR.0)).mul(sum);
        x.div(one.add(brief_exp(gate)))
    }

    /// As [`crate::functions::activation::brief_exp`].
    fn brief_exp<K>(x: Some8<K>) -> Some8<K> {
        let x = x.least(Some8::all(710.0)).greatest(Some8::all(-709.0));
        let biased = Some8::all(f64::BIASED);
        let shifted = x.mul_add(Some8::all(f64::LOG2_E), biased);
        let n = shifted.sub(biased);
        let r = n.neg_mul_add(Some8::all(f64::LN_2), x);
        let [a, b, c, d, e, f] = BRIEF;
        let [a, b, c] = [Some8::all(a), Some8::all(b), Some8::all(c)];
        let [d, e, f] = [Some8::all(d), Some8::all(e), Some8::all(f)];
        let square = r.mul(r);
        let (high, middle, first) = (f.mul_add(r, e), d.mul_add(r, c), b.mul_add(r, a));
        let p = square.mul_add(high.mul_add(square, middle).mul_add(square, first), r);
        shifted.power_of_two().mul(Some8::all(1.0).add(p))
    }
}

/// [`Real::NORMAL`]
const NORMAL: (f32, f32, [f32; 8]) = {
    let (first, second, [a, b, c, d, e, f, g, h]) = f32::NORMAL else { panic!() };
    (first, second, [*a, *b, *c, *d, *e, *f, *g, *h])
};
