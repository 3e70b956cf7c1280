//! Random strings, documents and texts through Go's libraries and ours: every byte and every error text must
//! agree. `MAINSTAY_CASES` sets how many of each.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking.

mod generate;
mod read;
mod write;
