//! Unbiased random numbers from the host's entropy.

use mainstay_template::Host;

/// Number of random bytes that are requested at once: one system call for many numbers.
const BLOCK: usize = 256;

/// A source of random numbers.
pub(crate) struct Source<'a> {
    host: &'a mut dyn Host,
    block: [u8; BLOCK],
    /// Number of bytes of `block` that have been used.
    used: usize,
}

/// Maximum number of draws. Ensures termination if the host's entropy repeats.
const MAX_DRAWS: usize = 128;

impl<'a> Source<'a> {
    pub(crate) fn new(host: &'a mut dyn Host) -> Self {
        Self {
            host,
            block: [0; BLOCK],
            used: BLOCK,
        }
    }

    /// Returns a uniformly distributed number less than `bound`, or zero if `bound` is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let mask = u64::MAX >> (bound - 1).leading_zeros();
        let bytes = mask.count_ones().div_ceil(8);
        let draws = (0..MAX_DRAWS).map(|_| self.number(bytes) & mask);
        let mut last = 0;
        for draw in draws {
            if draw < bound {
                return draw;
            }
            last = draw;
        }
        last % bound
    }

    /// Returns a random number of this many bytes.
    fn number(&mut self, bytes: u32) -> u64 {
        (0..bytes).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    fn byte(&mut self) -> u8 {
        if self.used >= BLOCK {
            self.host.entropy(&mut self.block);
            self.used = 0;
        }
        let byte = self.block.get(self.used).copied().unwrap_or_default();
        self.used += 1;
        byte
    }
}
