//! Limits of one run, and the meter that `include`, `template`, `tpl` and every function share.

use crate::live;

/// The limits of one render. All of them are part of the contract: a hostile template ends in
/// [`LimitExceeded`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// Steps: executed nodes, items of ranges, and bytes processed in bulk (per 64).
    pub fuel: u64,
    /// Bytes of output, over all buffers of the run.
    pub output: usize,
    /// Bytes of any one string that a function creates.
    pub string: usize,
    /// Bytes of live strings, lists and maps, and of everything else that functions keep.
    pub memory: usize,
    /// Depth of nested templates, `tpl` texts and nodes; also the depth of values that are printed, encoded
    /// or copied.
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

/// The remaining resources of a run.
#[derive(Clone, Debug)]
pub struct Meter {
    limits: Limits,
    fuel: u64,
    output: usize,
    /// Bytes that were reserved for good.
    retained: usize,
    /// Live bytes of the thread when the meter was created.
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
    pub fn write(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.output = self.output.checked_sub(bytes).ok_or(LimitExceeded::Output)?;
        Ok(())
    }

    /// Returns the bytes that live values may still take.
    #[must_use]
    pub fn available_memory(&self) -> usize {
        self.limits.memory.saturating_sub(self.used_memory())
    }

    fn used_memory(&self) -> usize {
        let live = live::bytes().wrapping_sub(self.baseline).max(0).cast_unsigned();
        live.saturating_add(self.retained)
    }

    /// Checks that `bytes` of memory are available before values are created. Values count while they are
    /// live; the creation itself consumes fuel, which limits the total of a run.
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

    /// Reserves a string of `bytes` before it is created; consumes memory, and fuel in proportion.
    pub fn string(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        if bytes > self.limits.string {
            return Err(LimitExceeded::String);
        }
        self.allocate(bytes)?;
        self.consume_fuel(bytes as u64 / 64)
    }

    /// Enters one level of nesting. Pair with [`Meter::leave`].
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
