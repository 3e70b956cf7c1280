//! Trace of a simulation. The same seed and calls produce the same trace.

use std::fmt::Write as _;

use crate::clock::Instant;

/// Trace of a run.
#[derive(Clone, Debug)]
pub struct Trace {
    keep: bool,
    text: String,
    digest: u64,
    lines: u64,
}

impl Trace {
    /// Creates an empty trace. If `keep` is false, lines are counted but not stored.
    #[must_use]
    pub fn new(keep: bool) -> Self {
        Self {
            keep,
            text: String::new(),
            digest: FNV_OFFSET,
            lines: 0,
        }
    }

    /// Returns whether lines are stored. If they are not, callers can skip formatting them.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.keep
    }

    /// Appends a line.
    pub fn line(&mut self, at: Instant, what: &str) {
        self.lines += 1;
        if !self.keep {
            return;
        }
        let start = self.text.len();
        let _ = writeln!(self.text, "{at} {what}");
        self.digest = fnv(self.digest, self.text.get(start..).unwrap_or("").as_bytes());
    }

    /// Returns the text of all lines.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of lines that were written.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns a digest of the text, for comparing runs.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;

/// Returns the FNV-1a hash of `bytes`, continued from `seed`.
#[must_use]
pub(crate) fn fnv(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Returns the FNV-1a hash of a body, for trace lines.
#[must_use]
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    fnv(FNV_OFFSET, bytes)
}
