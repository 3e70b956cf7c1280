//! A seeded generator for numbers, uids and name suffixes. The same seed produces the same sequence.

/// A small deterministic generator (`SplitMix64`), sufficient for names and schedules but not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

/// The alphabet of generated name suffixes in Kubernetes: no vowels, no ambiguous characters.
pub(crate) const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Random {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, or zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// Returns a version 4 UUID.
    pub fn uid(&mut self) -> String {
        let high = self.next_u64() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000;
        let low = self.next_u64() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
    }

    /// Returns a suffix of `length` characters, as appended to `generateName`.
    pub fn suffix(&mut self, length: usize) -> String {
        (0..length)
            .filter_map(|_| {
                let at = self.below(SUFFIX_ALPHABET.len() as u64);
                SUFFIX_ALPHABET.get(usize::try_from(at).unwrap_or(0)).copied()
            })
            .map(char::from)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_produces_the_same_sequence() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (random.uid(), random.suffix(5), random.below(10))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn uids_are_version_4() {
        let uid = Random::new(1).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uid.as_bytes()[19]));
    }
}
