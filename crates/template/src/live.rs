//! Number of bytes of the live strings, lists and maps of this thread, which is limited by
//! [`Meter`](crate::Meter).
//!
//! Values add their size when they are created and subtract it when the last handle is dropped. A string
//! that is shared with another thread may be subtracted on that thread, so the count is signed, and only
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

/// Subtracts the size of a dropped value. At the end of a thread, values may be dropped after the counter.
#[inline]
pub(crate) fn subtract(bytes: usize) {
    let _ = BYTES.try_with(|count| count.set(count.get().wrapping_sub(bytes.cast_signed())));
}

/// Returns the number of live bytes.
pub(crate) fn bytes() -> isize {
    BYTES.get()
}
