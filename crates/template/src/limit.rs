//! What one run may use: takes limits, gives a meter that include, template, tpl and every function share.

/// The bounds of one render. All of them are part of the contract: a hostile template ends in [`LimitExceeded`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// Steps: nodes executed, items ranged over, bytes worked on in bulk (per 64).
    pub fuel: u64,
    /// Bytes written, over all buffers of the run.
    pub output: usize,
    /// Bytes in any one string a function makes.
    pub string: usize,
    /// Bytes of all strings and values that functions make, whether they are still held or not.
    pub memory: usize,
    /// Templates, tpl and nested nodes under way at once; also the depth of values printed, encoded or copied.
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

/// A limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    /// Too many steps.
    #[error("the template did not finish within its step limit")]
    Fuel,
    /// Too much output.
    #[error("the template wrote more than its output limit")]
    Output,
    /// One string too long.
    #[error("a function made a string longer than the limit")]
    String,
    /// Too much made in all.
    #[error("the template's functions made more strings and values than the limit")]
    Memory,
    /// Nested too deeply.
    #[error("templates or values are nested more deeply than the limit")]
    Depth,
}

/// What is left of the limits.
#[derive(Clone, Debug)]
pub struct Meter {
    limits: Limits,
    fuel: u64,
    output: usize,
    memory: usize,
    depth: usize,
}

impl Meter {
    /// A full meter.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            fuel: limits.fuel,
            output: limits.output,
            memory: limits.memory,
            depth: 0,
            limits,
        }
    }

    /// The bounds it started from.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Uses `steps` of fuel.
    #[inline]
    pub fn consume_fuel(&mut self, steps: u64) -> Result<(), LimitExceeded> {
        self.fuel = self.fuel.checked_sub(steps).ok_or(LimitExceeded::Fuel)?;
        Ok(())
    }

    /// Uses `bytes` of output.
    #[inline]
    pub fn write(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.output = self.output.checked_sub(bytes).ok_or(LimitExceeded::Output)?;
        Ok(())
    }

    /// Asks for `bytes` of memory that values will take, before they are made. Nothing is ever given back: what counts is what
    /// a run makes, so that the answer does not depend on when values die.
    pub fn allocate(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.memory = self.memory.checked_sub(bytes).ok_or(LimitExceeded::Memory)?;
        Ok(())
    }

    /// Asks for a string of `bytes`, before it is made; costs memory, and fuel in proportion.
    pub fn string(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        if bytes > self.limits.string {
            return Err(LimitExceeded::String);
        }
        self.allocate(bytes)?;
        self.consume_fuel(bytes as u64 / 64)
    }

    /// Goes one level deeper. Pair with [`Meter::leave`].
    pub fn enter(&mut self) -> Result<(), LimitExceeded> {
        if self.depth >= self.limits.depth {
            return Err(LimitExceeded::Depth);
        }
        self.depth += 1;
        Ok(())
    }

    /// Comes back up.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}
