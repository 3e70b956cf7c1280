//! Unbiased random numbers from the host's entropy.

use mainstay_template::Host;

/// A source of random numbers.
pub(crate) struct Source<'a>(pub(crate) &'a mut dyn Host);

/// Maximum number of draws. Ensures termination if the host's entropy repeats.
const MAX_DRAWS: usize = 128;

impl Source<'_> {
    /// Returns a uniformly distributed number less than `bound`, or zero if `bound` is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let mask = u64::MAX >> (bound - 1).leading_zeros();
        let draws = (0..MAX_DRAWS).map(|_| self.bits() & mask);
        let mut last = 0;
        for draw in draws {
            if draw < bound {
                return draw;
            }
            last = draw;
        }
        last % bound
    }

    fn bits(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.entropy(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}
