//! Seeded random numbers for tests, and counts of compared cases for proofs.

use std::fmt;

/// Returns the number of cases of a differential test: `MAINSTAY_CASES` if set, otherwise `usual`.
#[must_use]
pub fn case_count(usual: usize) -> usize {
    std::env::var("MAINSTAY_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// Environment variable with a number N: suites on real servers run every N-th test case only.
pub const SAMPLE: &str = "MAINSTAY_SAMPLE";

/// Seeded random number generator (`SplitMix64`). The same seed produces the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % (bound.max(1) as u64)) as usize
    }

    /// Returns true with probability `part / whole`.
    pub fn chance(&mut self, part: usize, whole: usize) -> bool {
        self.below(whole) < part
    }

    /// Returns a random element of `items`.
    ///
    /// # Panics
    ///
    /// If `items` is empty.
    #[allow(clippy::indexing_slicing)]
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Result counts of a differential test. Displayed as `N run, N equal`, which `cargo xtask prove` parses.
#[derive(Clone, Debug, Default)]
pub struct CaseCounts {
    /// Number of compared cases.
    pub run: usize,
    /// Descriptions of the first differences.
    pub differences: Vec<String>,
    unequal: usize,
}

impl CaseCounts {
    /// Counts one case. `difference` is called only if the results differ.
    pub fn count(&mut self, equal: bool, difference: impl FnOnce() -> String) {
        self.run += 1;
        if !equal {
            self.unequal += 1;
            if self.differences.len() < 20 {
                self.differences.push(difference());
            }
        }
    }

    /// Returns the number of cases with equal results.
    #[must_use]
    pub fn equal(&self) -> usize {
        self.run - self.unequal
    }

    /// Prints the counts as `differential NAME: …`.
    ///
    /// # Panics
    ///
    /// If any results differ; the message contains the first differences.
    #[allow(clippy::print_stdout)]
    pub fn assert_all_equal(&self, name: &str) {
        println!("differential {name}: {self}");
        assert!(self.run > 0, "{name}: nothing was compared");
        assert!(
            self.unequal == 0,
            "{name}: {self}\n{}",
            self.differences.join("\n---\n")
        );
    }
}

impl fmt::Display for CaseCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} run, {} equal", self.run, self.equal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_produces_one_sequence() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
    }

    #[test]
    fn equal_and_different_cases_are_counted() {
        let mut counts = CaseCounts::default();
        counts.count(true, String::new);
        counts.count(false, || "a / b".into());
        assert_eq!(counts.to_string(), "2 run, 1 equal");
        assert_eq!(counts.differences, ["a / b"]);
    }
}
