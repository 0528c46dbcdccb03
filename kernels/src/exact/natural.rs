//! Natural numbers of any length.

use std::cmp::Ordering;

/// Limbs of 64 bits, the lowest first; the last isn't 0.
#[derive(Debug, Clone)]
pub(super) struct Natural(Vec<u64>);

impl Natural {
    pub(super) fn of(value: u64) -> Natural {
        Natural::of_limbs(vec![value])
    }

    pub(super) fn of_limbs(mut limbs: Vec<u64>) -> Natural {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Natural(limbs)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of bits from the first 1.
    pub(super) fn bits(&self) -> u64 {
        self.0.last().map_or(0, |last| self.0.len() as u64 * 64 - u64::from(last.leading_zeros()))
    }

    /// The lowest 64 bits.
    pub(super) fn low(&self) -> u64 {
        self.0.first().copied().unwrap_or(0)
    }

    pub(super) fn compare(&self, other: &Natural) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    pub(super) fn plus(&self, other: &Natural) -> Natural {
        let mut carry = false;
        let len = self.0.len().max(other.0.len()) + 1;
        let limb = |number: &Natural, k: usize| number.0.get(k).copied().unwrap_or(0);
        let limbs = (0..len).map(|k| {
            let (sum, over) = limb(self, k).overflowing_add(limb(other, k));
            let (sum, again) = sum.overflowing_add(u64::from(carry));
            carry = over || again;
            sum
        });
        Natural::of_limbs(limbs.collect())
    }

    /// The difference to one that isn't greater.
    pub(super) fn minus(&self, other: &Natural) -> Natural {
        let mut borrow = false;
        let limbs = self.0.iter().enumerate().map(|(k, limb)| {
            let (rest, under) = limb.overflowing_sub(other.0.get(k).copied().unwrap_or(0));
            let (rest, again) = rest.overflowing_sub(u64::from(borrow));
            borrow = under || again;
            rest
        });
        let rest = Natural::of_limbs(limbs.collect());
        assert!(!borrow && other.0.len() <= self.0.len(), "the difference is negative");
        rest
    }

    pub(super) fn times(&self, other: &Natural) -> Natural {
        let mut limbs = vec![0; self.0.len() + other.0.len()];
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (j, b) in other.0.iter().enumerate() {
                let sum = u128::from(*a) * u128::from(*b) + u128::from(limbs[i + j]) + u128::from(carry);
                limbs[i + j] = sum as u64;
                carry = (sum >> 64) as u64;
            }
            limbs[i + other.0.len()] = carry;
        }
        Natural::of_limbs(limbs)
    }

    /// Times 2^`places`.
    pub(super) fn shifted(&self, places: u64) -> Natural {
        let (whole, places) = ((places / 64) as usize, places % 64);
        let mut limbs = vec![0; whole];
        let mut carry = 0;
        for limb in &self.0 {
            let wide = u128::from(*limb) << places;
            limbs.push(wide as u64 | carry);
            carry = (wide >> 64) as u64;
        }
        limbs.push(carry);
        Natural::of_limbs(limbs)
    }

    /// The integer part of this times 2^`places`, and whether there is more.
    pub(super) fn moved(&self, places: i64) -> (Natural, bool) {
        let Ok(down) = u64::try_from(-places) else { return (self.shifted(places as u64), false) };
        if down >= self.bits() {
            return (Natural::of(0), !self.is_zero());
        }
        let whole = (down / 64) as usize;
        // Up to the next limb, and a limb down.
        let (cut, places) = if down % 64 == 0 { (whole, 0) } else { (whole + 1, 64 - down % 64) };
        let kept = Natural(self.0[whole..].to_vec()).shifted(places);
        let kept = Natural::of_limbs(kept.0[cut - whole..].to_vec());
        let more = self.0[..whole].iter().any(|limb| *limb != 0) || self.0[whole] << places != 0 && places > 0;
        (kept, more)
    }

    /// Twice this, and 1 more if `bit`.
    pub(super) fn followed_by(&self, bit: bool) -> Natural {
        self.shifted(1).plus(&Natural::of(bit.into()))
    }
}
