//! Stack growth for recursion: runs a step on a new stack segment when the current one is nearly used up.
//! Depth is limited elsewhere; this makes the limit independent of the caller's thread.

/// Stack that one step may use before the next check, including a function that recurses by itself.
const RED_ZONE: usize = 256 << 10;
/// Size of a new stack segment.
const SEGMENT: usize = 4 << 20;

/// Runs `step` with at least 256 KiB of stack. For functions that recurse over values, which may be as deep
/// as the limits allow.
#[inline]
pub fn ensure_stack<R>(step: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(RED_ZONE, SEGMENT, step)
}
