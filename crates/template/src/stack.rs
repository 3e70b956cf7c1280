//! Room for recursion: takes a step of work, gives its result, on a new piece of stack where the present one runs low. Depth is
//! bounded elsewhere; this makes the bound independent of the caller's thread.

/// What one step may use before it asks again, with room for a function that recurses on its own.
const RED_ZONE: usize = 256 << 10;
/// What is added when the stack runs low.
const SEGMENT: usize = 4 << 20;

/// Runs `step` with at least 256 KiB of stack. For functions that recurse over values, which may be as deep as the limits allow.
#[inline]
pub fn ensure_stack<R>(step: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(RED_ZONE, SEGMENT, step)
}
