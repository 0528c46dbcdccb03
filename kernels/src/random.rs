//! Random numbers that are the same everywhere.

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
}
