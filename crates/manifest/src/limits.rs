//! Limits of a generation. Input is untrusted, so every limit is checked before the work is done.

use mainstay_yaml::Budget;

/// Maximum number of `-f` files.
pub const MAX_FILES: usize = 64;

/// Maximum number of `--set` expressions.
pub const MAX_SETS: usize = 1000;

/// Maximum length of one `--set` expression in bytes.
pub const MAX_SET_BYTES: usize = 64 << 10;

/// Maximum number of gateways of one kind. Each one renders a chart.
pub const MAX_GATEWAYS: usize = 200;

/// Maximum number of overlays of one component.
pub const MAX_OVERLAYS: usize = 1000;

/// Maximum number of patches of one component.
pub const MAX_PATCHES: usize = 10_000;

/// Maximum number of diagnostics that are kept. Further ones are only counted.
pub const MAX_DIAGNOSTICS: usize = 200;

/// Maximum number of nodes that settings and overlays of one generation may visit.
pub const MAX_STEPS: u64 = 20_000_000;

/// Returns the limits of parsing an `IstioOperator` file or a profile.
#[must_use]
pub fn input_budget() -> Budget {
    Budget {
        bytes: 4 << 20,
        depth: 100,
        nodes: 200_000,
        alias_expansion: 20_000,
        expanded_bytes: 4 << 20,
        documents: 100,
    }
}

/// Counter of visited nodes.
#[derive(Debug)]
pub(crate) struct Steps {
    left: u64,
}

/// Error: the number of visited nodes exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("settings and overlays visit more than {MAX_STEPS} nodes")]
pub(crate) struct StepLimit;

impl Default for Steps {
    fn default() -> Self {
        Self { left: MAX_STEPS }
    }
}

impl Steps {
    /// Counts `count` nodes. Fails if the limit is exceeded.
    pub(crate) fn take(&mut self, count: usize) -> Result<(), StepLimit> {
        self.left = self.left.checked_sub(count as u64).ok_or(StepLimit)?;
        Ok(())
    }

    /// Returns the number of counted nodes.
    pub(crate) fn used(&self) -> u64 {
        MAX_STEPS - self.left
    }
}
