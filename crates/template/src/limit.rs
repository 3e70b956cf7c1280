//! Limits of one run, and the meter that is shared by `include`, `template`, `tpl` and every function.

use crate::live;

/// Limits of one render. All of them are part of the contract: a hostile template fails with
/// [`LimitExceeded`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of steps: executed nodes, items of ranges, and 64-byte units of bulk data.
    pub fuel: u64,
    /// Maximum number of bytes of output, in all buffers of the run.
    pub output: usize,
    /// Maximum number of bytes of a string that a function creates.
    pub string: usize,
    /// Maximum number of bytes of live strings, lists and maps, and of all other data that functions keep.
    pub memory: usize,
    /// Maximum depth of nested templates, `tpl` texts and nodes, and of values that are printed, encoded or
    /// copied.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 40_000_000,
            output: 64 << 20,
            string: 32 << 20,
            memory: 160 << 20,
            depth: 5_000,
        }
    }
}

/// An exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    /// Too many steps.
    #[error("the template did not finish within its step limit")]
    Fuel,
    /// Too much output.
    #[error("the template wrote more than its output limit")]
    Output,
    /// A string is too long.
    #[error("a function made a string longer than the limit")]
    String,
    /// Too many bytes of strings and values.
    #[error("the template's strings and values exceed the memory limit")]
    Memory,
    /// Nesting is too deep.
    #[error("templates or values are nested more deeply than the limit")]
    Depth,
}

/// Remaining resources of a run.
#[derive(Clone, Debug)]
pub struct Meter {
    limits: Limits,
    fuel: u64,
    output: usize,
    /// Number of bytes that are reserved until the end of the run.
    retained: usize,
    /// Number of live bytes of the thread when the meter was created.
    baseline: isize,
    depth: usize,
}

impl Meter {
    /// Creates a meter with all resources unused.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            fuel: limits.fuel,
            output: limits.output,
            retained: 0,
            baseline: live::bytes(),
            depth: 0,
            limits,
        }
    }

    /// Returns the initial limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Consumes `steps` of fuel.
    #[inline]
    pub fn consume_fuel(&mut self, steps: u64) -> Result<(), LimitExceeded> {
        self.fuel = self.fuel.checked_sub(steps).ok_or(LimitExceeded::Fuel)?;
        Ok(())
    }

    /// Consumes `bytes` of output.
    #[inline]
    pub fn consume_output(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.output = self.output.checked_sub(bytes).ok_or(LimitExceeded::Output)?;
        Ok(())
    }

    /// Returns the number of bytes that are still available for live values.
    #[must_use]
    pub fn available_memory(&self) -> usize {
        self.limits.memory.saturating_sub(self.used_memory())
    }

    fn used_memory(&self) -> usize {
        let live = live::bytes().wrapping_sub(self.baseline).max(0).cast_unsigned();
        live.saturating_add(self.retained)
    }

    /// Checks that `bytes` of memory are available before values are created. Values count as long as they
    /// are live; their creation also consumes fuel, which limits the total of a run.
    pub fn allocate(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        let used = self.used_memory().saturating_add(bytes);
        if used > self.limits.memory {
            return Err(LimitExceeded::Memory);
        }
        Ok(())
    }

    /// Reserves `bytes` until the end of the run, for data that is not a string, list or map.
    pub fn retain(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.allocate(bytes)?;
        self.retained += bytes;
        Ok(())
    }

    /// Checks that a string of `bytes` may be created. Checks the available memory, and consumes fuel in
    /// proportion to the length.
    pub fn reserve_string(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        if bytes > self.limits.string {
            return Err(LimitExceeded::String);
        }
        self.allocate(bytes)?;
        self.consume_fuel(bytes as u64 / 64)
    }

    /// Enters one level of nesting. Every call must be paired with [`Meter::leave`].
    pub fn enter(&mut self) -> Result<(), LimitExceeded> {
        if self.depth >= self.limits.depth {
            return Err(LimitExceeded::Depth);
        }
        self.depth += 1;
        Ok(())
    }

    /// Leaves a level of nesting.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}
