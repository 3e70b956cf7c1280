//! Stack growth for recursion: runs a step on a new stack segment if the current one is nearly exhausted.
//! The depth is limited elsewhere; this module makes that limit independent of the caller's thread.

/// Number of bytes of stack that a step may use before the next check, including functions that recurse on
/// their own.
const RED_ZONE: usize = 256 << 10;
/// Size of a new stack segment in bytes.
const SEGMENT: usize = 4 << 20;

/// Runs `step` with at least 256 KiB of stack. Required for functions that recurse over values, which may
/// be as deep as the limits allow.
#[inline]
pub fn ensure_stack<R>(step: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(RED_ZONE, SEGMENT, step)
}
