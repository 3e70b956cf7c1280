//! Numbers out of entropy: takes the host, gives numbers without bias.

use mainstay_template::Host;

/// A source of random numbers.
pub(crate) struct Source<'a>(pub(crate) &'a mut dyn Host);

/// Draws before a host that repeats itself is taken as it is.
const PATIENCE: usize = 128;

impl Source<'_> {
    /// A number less than `bound`, each equally likely; zero where there is none.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let mask = u64::MAX >> (bound - 1).leading_zeros();
        let draws = (0..PATIENCE).map(|_| self.bits() & mask);
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
