//! Bytes of the live strings, lists and maps of this thread, which [`Meter`](crate::Meter) limits.
//!
//! Values add their size when they are created and subtract it when the last handle is dropped. A string that
//! is shared with another thread may be subtracted by the other one, so that the count is signed and only
//! differences within one run are meaningful.

use std::cell::Cell;

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Adds the size of a new value.
#[inline]
pub(crate) fn add(bytes: usize) {
    BYTES.set(BYTES.get().wrapping_add(bytes.cast_signed()));
}

/// Subtracts the size of a dropped value. Values may outlive the counter at the end of a thread.
#[inline]
pub(crate) fn subtract(bytes: usize) {
    let _ = BYTES.try_with(|count| count.set(count.get().wrapping_sub(bytes.cast_signed())));
}

/// Returns the current count.
pub(crate) fn bytes() -> isize {
    BYTES.get()
}
